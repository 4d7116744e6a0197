// Every module and tensor function that a test of compiler_tests makes or meets reads back from its text structurally
// equal. No test asks for this, so none can forget it: the linker sends the calls of the functions below, the tests'
// and the compiler's own, through read_back_hook.cc (--wrap in tests/CMakeLists.txt), which checks what goes in or
// comes out and fails the test that runs. Within a pipeline that is the module after each pass.
#pragma once

#include <atomic>
#include <cstdint>

namespace ingot::script::testing {

// How often each was checked.
struct ReadBackCounts {
  std::atomic<int64_t> passes{0};       // transform::RunPasses, after each pass
  std::atomic<int64_t> modules{0};      // op::VerifyModule, of those that hold
  std::atomic<int64_t> created{0};      // te::CreatePrimFunc
  std::atomic<int64_t> lowered{0};      // transform::LowerPrimFunc, before and after
  std::atomic<int64_t> described{0};    // codegen::DescribeKernel: every kernel that is compiled
  std::atomic<int64_t> interpreted{0};  // interp::Interpret
};
ReadBackCounts& GetReadBackCounts();

}  // namespace ingot::script::testing
