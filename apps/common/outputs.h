// What vm-run and packed programs do with a call's results: print them as NumPy does, write them to tensor files, name
// the best classes. In: a session's outputs and the arguments of --output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/common/session.h"
#include "formats/file.h"
#include "runtime/status.h"

namespace ingot::apps {

// About half a megabyte of text at most; a line tells how many outputs it leaves out.
Status PrintOutputs(const std::vector<Session::Output>& outputs);

// The arguments of --output: "NAME=@file", "@file", "NAME=-": which outputs go where.
Status WriteOutputs(const std::vector<std::string>& arguments, const std::vector<Session::Output>& outputs,
                    formats::FileCalls& calls);

// One of the best classes of a row of scores.
struct ClassScore {
  int64_t row = 0;
  std::string label;  // the class's number where no label names it
  double probability = 0;
};
// The k largest of each row (the last axis) of the first output, best first.
Result<std::vector<ClassScore>> FindTopK(int64_t k, const std::vector<std::string>& labels,
                                         const std::vector<Session::Output>& outputs);
// "class='tabby' with probability=0.621104", a line each, behind "[row] " when there are several rows.
std::string TopKText(const std::vector<ClassScore>& scores);

}  // namespace ingot::apps
