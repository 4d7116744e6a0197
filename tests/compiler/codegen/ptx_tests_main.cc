// The main function of ptx_tests: doctest's, and then what is asked about all PTX that the tests made (ptx_audit.h).
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "tests/compiler/codegen/ptx_audit.h"

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int failed = context.run();
  if (context.shouldExit()) return failed;
  return ingot::codegen::testing::FinishAudit() == 0 ? failed : 1;
}
