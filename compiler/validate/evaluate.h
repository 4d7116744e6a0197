// Evaluator: runs "main" of a module at any stage on the host, operator by operator, each result rounded to its dtype.
// Operators run as the tensor functions to which they would be legalised, calls of tensor functions as they are, both
// in the interpreter (compiler/interp). Allocations and arenas are bytes, so that tensors which a memory plan places on
// each other overwrite each other here too, and reading one that another has overwritten is an error. The evaluator
// shares with the compiled program only the definition of each operator: it judges passes, schedules and code
// generation (compiler/op's tests judge the definitions).
//
// Not evaluated, with kUnsupportedModel: functions of the embedding program, states that grow in place. Above the
// budget: kDeadlineExceeded. A module that the inputs do not fit: kBadInput.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/target/target.h"
#include "compiler/validate/value.h"
#include "runtime/status.h"

namespace ingot::validate {

// One call of a tensor function: its buffers before the call (outputs as they were) and after it.
struct KernelCall {
  ir::PrimFunc function;
  std::vector<HostTensor> before, after;  // one per buffer parameter
  std::vector<int64_t> scalars;
  size_t num_inputs = 0;  // how many buffers are inputs; the others are outputs
};

struct EvaluatorOptions {
  Target target;                 // decides which implementation of an operator runs
  int64_t max_steps = 0;         // statements that one evaluation may run
  int64_t max_cached_bytes = 0;  // size limit of the results of tensor functions that are kept for the next evaluation
  int64_t max_tensor_bytes = 0;  // size limit of one tensor
};

class Evaluator {
 public:
  explicit Evaluator(EvaluatorOptions options) : options_(std::move(options)) {}

  // Returns the results of "main", tuples flattened. inputs: one value for each parameter that "prepare" does not
  // compute.
  Result<std::vector<HostTensor>> Run(const ir::IRModule& module, std::span<const Value> inputs);

  // How many statements the last run interpreted; remembered results count none.
  int64_t steps_of_last_run() const { return steps_of_last_run_; }

  // Called for each call of a tensor function by call_tir; may be empty.
  std::function<void(const KernelCall& call)> on_kernel;

 private:
  friend class Evaluation;
  struct Prepared {
    ir::Call original;      // keeps the key alive
    ir::Call call;          // with tuples taken apart
    ir::PrimFunc function;  // null: not built yet, or the shapes are not known
  };
  EvaluatorOptions options_;
  std::unordered_map<const ir::CallNode*, Prepared> prepared_;
  std::unordered_map<const ir::PrimFuncNode*, std::pair<ir::PrimFunc, uint64_t>> hashes_;
  std::unordered_map<uint64_t, std::vector<HostTensor>> results_;
  int64_t cached_bytes_ = 0, steps_of_last_run_ = 0;
};

}  // namespace ingot::validate
