// The failing half of INGOT_CHECK: prints the condition with its place to stderr and aborts. It is out of line, so that
// each check costs its caller only a test and a call.
#include "runtime/check.h"

#include <cstdio>
#include <cstdlib>

namespace ingot {

void CheckFailed(const char* file, int line, const char* condition, const char* detail) {
  std::fprintf(stderr, "%s:%d: internal error: %s%s%s\n", file, line, condition, *detail ? ": " : "", detail);
  std::abort();
}

}  // namespace ingot
