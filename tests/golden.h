// The golden test runner: text in, text out. A test is one file tests/golden/<area>/**/NAME.txt (it is found by
// itself):
//
//   # RUN: <directive> <arguments>
//   ... input ...
//   # EXPECT
//   ... expected output ...
//
// A directive is a function of the test binary, listed in an explicit table. A file whose name starts with "bad-"
// expects the directive to fail, and then its EXPECT part is the message. INGOT_UPDATE_GOLDEN=1 rewrites EXPECT
// parts instead of comparing. Each file is reported as a doctest subcase. Input and output end with a newline each;
// a missing one at the output's end is added.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/status.h"

namespace ingot::golden {

struct Case {
  std::string path;       // of the file, for directives that need files beside it
  std::string arguments;  // of the RUN line, after the directive
  std::string input;
};

struct Directive {
  const char* name;
  Result<std::string> (*run)(const Case& golden);
};

// Runs every file below tests/golden/<area>; called inside a TEST_CASE. An area without files fails.
void RunArea(std::string_view area, std::span<const Directive> directives);

// tests/ of the source tree.
std::string TestDirectory();

}  // namespace ingot::golden
