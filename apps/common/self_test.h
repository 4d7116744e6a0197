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

// expect: "@FILE". Compares the outputs that the file names; the unnamed tensor of an .npy file is compared with the
// only output. A tensor without elements that is named like a sequence expects the sequence to be empty.
Result<std::vector<ComparedOutput>> CompareWithFile(const std::string& expect, const formats::Tolerance& tolerance,
                                                    const std::vector<Session::Output>& outputs,
                                                    const NoteFunction& note);

struct GoldenResult {
  std::string function;
  std::string origin;  // of the expected outputs: "file", "reference"
  std::vector<ComparedOutput> outputs;
};
// Checks every hash of the file, then runs every golden case. A file without cases is a failure: there is nothing to
// test.
Result<std::vector<GoldenResult>> RunSelfTest(SessionOptions options, const NoteFunction& note);
// "self-test: 2 of 2 golden cases passed".
std::string SelfTestText(const std::vector<GoldenResult>& results);

}  // namespace ingot::apps
