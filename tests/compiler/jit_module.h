// Modules compiled in the process, as tests make them: the text of the executable assembles back to the same bytes.
#pragma once

#include <memory>
#include <utility>

#include "compiler/driver/jit.h"
#include "tests/vm/round_trip.h"

namespace ingot::test {

inline Result<std::unique_ptr<driver::JitModule>> CompileJit(ir::IRModule module, driver::JitOptions options = {}) {
  Result<std::unique_ptr<driver::JitModule>> jit = driver::JitModule::Compile(std::move(module), std::move(options));
  if (jit.ok()) CheckRoundTrip((*jit)->executable().program());
  return jit;
}

}  // namespace ingot::test
