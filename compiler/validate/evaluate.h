// Evaluator: runs "main" of a module at any stage on the host, operator by operator, each result rounded to its dtype.
// Operators run as the tensor functions that legalising would call, calls of tensor functions as they are, by the
// interpreter (compiler/interp); allocations and arenas are bytes, so that tensors which a memory plan puts on each
// other overwrite each other here too. What it shares with the compiled program is the definition of each operator
// alone: passes, schedules and code generation are what it judges (compiler/op's tests judge the definitions).
//
// Not evaluated, and said so by kUnsupportedModel: functions of the embedding program, states that grow in place,
// what is above the budget (kDeadlineExceeded). A module that the inputs do not fit is kBadInput.
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

// One call of a tensor function: what it was given (outputs as they were), and what it left there.
struct KernelCall {
  ir::PrimFunc function;
  std::vector<HostTensor> before, after;  // one per buffer parameter
  std::vector<int64_t> scalars;
  size_t num_inputs = 0;  // of the buffers; the others are outputs
};

struct EvaluatorOptions {
  Target target;                 // decides which implementation of an operator runs
  int64_t max_steps = 0;         // statements that one evaluation may run
  int64_t max_cached_bytes = 0;  // results of tensor functions that are kept for the next evaluation
  int64_t max_tensor_bytes = 0;  // of one tensor
};

class Evaluator {
 public:
  explicit Evaluator(EvaluatorOptions options) : options_(std::move(options)) {}

  // The results of "main", tuples taken apart. inputs: one value for each parameter that "prepare" does not give.
  Result<std::vector<HostTensor>> Run(const ir::IRModule& module, std::span<const Value> inputs);

  // Statements that it interpreted; what was remembered costs none.
  int64_t steps_of_last_run() const { return steps_of_last_run_; }

  // Called for each call of a tensor function by call_tir; empty: none.
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
