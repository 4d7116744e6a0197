// What the tutorials share: inputs, compiling one function in this process, timing, and writing results for NumPy to
// check (tests/acceptance/tutorials.py). A failure prints a message and exits: these are examples, not a library.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/driver/jit.h"
#include "compiler/ir/expr.h"
#include "formats/tensor_files.h"
#include "runtime/status.h"
#include "runtime/tensor.h"

namespace tutorial {

[[noreturn]] void Die(const std::string& message);
void Need(const ingot::Status& status);
template <typename T>
T Need(ingot::Result<T> result) {
  Need(result.ok() ? ingot::Status() : result.status());
  return std::move(result).value();
}

// float32, uniform in [0, 1), the same for equal seeds.
ingot::Tensor Uniform(const std::vector<int64_t>& dims, uint32_t seed);
ingot::Tensor Zeros(const std::vector<int64_t>& dims);

// Compiles one function for the machine at hand.
std::unique_ptr<ingot::driver::JitModule> Compile(const std::string& name, const ingot::ir::PrimFunc& function);

// The shortest of several runs: at least one run, and as many as take a tenth of a second together.
double LeastSeconds(const std::function<void()>& run);

void Save(const std::string& path, const std::vector<ingot::formats::NamedTensor>& tensors);

}  // namespace tutorial
