// INGOT_CHECK: broken invariants of Ingot's own code. It stays on in every build type, prints the expectation with file
// and line, and aborts. It never checks input: everything that a user, a file or a tensor can cause is a Status.
#pragma once

namespace ingot {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, const char* detail = "");
}  // namespace ingot

#define INGOT_CHECK(condition, ...)                                                                    \
  do {                                                                                                 \
    if (!(condition)) ::ingot::CheckFailed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (0)
#define INGOT_UNREACHABLE(...) ::ingot::CheckFailed(__FILE__, __LINE__, "unreachable" __VA_OPT__(, ) __VA_ARGS__)
