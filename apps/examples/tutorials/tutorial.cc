// Helpers of the tutorial programs: inputs, compilation, timing, and results for NumPy to check.
#include "apps/examples/tutorials/tutorial.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace tutorial {

using ingot::DataType;
using ingot::Tensor;

void Die(const std::string& message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  std::exit(1);
}

void Need(const ingot::Status& status) {
  if (!status.ok()) Die(status.message());
}

Tensor Uniform(const std::vector<int64_t>& dims, uint32_t seed) {
  Tensor tensor = Need(Tensor::Allocate(DataType::Float(32), dims));
  std::mt19937 generator(seed);
  for (float& element : tensor.MutableElements<float>()) {
    element = static_cast<float>(generator() >> 8) / static_cast<float>(1 << 24);
  }
  return tensor;
}

Tensor Zeros(const std::vector<int64_t>& dims) {
  Tensor tensor = Need(Tensor::Allocate(DataType::Float(32), dims));
  std::ranges::fill(tensor.MutableElements<float>(), 0.0F);
  return tensor;
}

std::unique_ptr<ingot::driver::JitModule> Compile(const std::string& name, const ingot::ir::PrimFunc& function) {
  ingot::ir::IRModule module;
  module.Add(name, function);
  return Need(ingot::driver::JitModule::Compile(module));
}

double LeastSeconds(const std::function<void()>& run) {
  using Clock = std::chrono::steady_clock;
  double least = 0, all = 0;
  do {
    const Clock::time_point begin = Clock::now();
    run();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    least = all == 0 ? seconds : std::min(least, seconds);
    all += seconds;
  } while (all < 0.1);
  return least;
}

void Save(const std::string& path, const std::vector<ingot::formats::NamedTensor>& tensors) {
  Need(ingot::formats::WriteTensorFile(path, tensors));
}

}  // namespace tutorial
