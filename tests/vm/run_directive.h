// The golden directive "run": assembles a program and calls a function of it.
//
//   # RUN: run ENTRY ARG... [--stub] [--fuel=N] [--twice] [--check-finite]
//
// An ARG is int:3, float:1.5, bool:true, str:text, shape:2,3 or DTYPE[2, 3]:1,2,3,4,5,6 without spaces. The output is
// what the builtin `print` logged, then a line per result. --twice calls it twice in one context, and the second call
// must give the same.
#pragma once

#include <string>

#include "tests/golden.h"
#include "vm/run/value.h"

namespace ingot::vm {

Result<Value> ParseArgument(const std::string& text);
// The text of a value, as in the line of a result.
std::string ShowValue(const Value& value);
Result<std::string> RunRun(const golden::Case& golden);

}  // namespace ingot::vm
