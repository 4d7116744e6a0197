// Comparing a call's results with what they should be: a file of the user's (--expect), or the golden cases that an
// executable holds (--self-test). In: a session and its outputs; out: comparisons, and notes about what had none.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/common/session.h"
#include "formats/tensor_compare.h"
#include "runtime/status.h"

namespace ingot::apps {

struct ComparedOutput {
  std::string name;
  formats::Comparison comparison;
};
bool AllEqual(const std::vector<ComparedOutput>& compared);

using NoteFunction = std::function<void(const std::string&)>;

// expect: "@FILE". Compares the outputs that the file names; its one unnamed tensor (.npy) is the only output's. A
// tensor without elements that is named like a sequence says that it has none.
Result<std::vector<ComparedOutput>> CompareWithFile(const std::string& expect, const formats::Tolerance& tolerance,
                                                    const std::vector<Session::Output>& outputs,
                                                    const NoteFunction& note);

struct GoldenResult {
  std::string function;
  std::string origin;  // of the expected outputs: "file", "reference"
  std::vector<ComparedOutput> outputs;
};
// Runs every golden case, with every hash of the file checked before. No cases are a failure: there is nothing to test.
Result<std::vector<GoldenResult>> RunSelfTest(SessionOptions options, const NoteFunction& note);
// "self-test: 2 of 2 golden cases passed".
std::string SelfTestText(const std::vector<GoldenResult>& results);

}  // namespace ingot::apps
