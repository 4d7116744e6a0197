// The main function of vm_tests: doctest's, and --without-check=NAME|all (left_out_checks.h).
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <string_view>

#include "tests/left_out_checks.h"

int main(int argc, char** argv) {
  constexpr std::string_view kFlag = "--without-check=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(kFlag)) continue;
    const std::string_view name = argument.substr(kFlag.size());
    if (name == "all") return ingot::test::RunWithoutEachCheck(argv[0]);
    if (!ingot::test::LeaveOutCheck(name)) {
      std::fprintf(stderr, "vm_tests: no check %.*s\n", static_cast<int>(name.size()), name.data());
      return 2;
    }
  }
  return doctest::Context(argc, argv).run();
}
