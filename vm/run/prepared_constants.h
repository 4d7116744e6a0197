// The constants of an executable that functions of its own compute (Constant::prepared_by): weights that are packed
// where the file runs, because the file keeps them raw. They are computed once, when the first context is made, by
// builtins alone and hence to the same bytes everywhere, and shared by all contexts from then on. Looking at a file
// (opening, verifying, inspecting) computes nothing. In: the verified program. Out: bytes, aligned like other
// constants'. The verifier proves what such functions may do.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::vm {

class Executable;
struct ContextOptions;

class PreparedConstants {
 public:
  // Computes all of them, once; after a success it does nothing. The memory cap and the deadline hold for all functions
  // together, the fuel for each; the deadline also for waiting until another context has computed them. Thread-safe.
  Status Compute(const std::shared_ptr<const Executable>& executable, const ContextOptions& limits);
  // The elements of a prepared constant, after Compute.
  std::byte* data(size_t constant) const { return static_cast<std::byte*>(tensors_[constant].data()); }

 private:
  Status ComputeAll(const std::shared_ptr<const Executable>& executable, const ContextOptions& limits,
                    std::chrono::steady_clock::time_point began);

  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_computing_ = false;    // a context computes them
  std::vector<Tensor> tensors_;  // per constant; empty for others, and altogether until they are computed
};

}  // namespace ingot::vm
