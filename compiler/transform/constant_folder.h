// Evaluates operator calls over constants by the operators' host routines (runtime/host_ops.h), and calls of tensor
// functions by the interpreter. Both give equal bytes on every host, and stay within a budget of result bytes and
// operations. Used by constant folding, and by the evaluation of `prepare` at compile time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/module.h"
#include "compiler/transform/pass.h"

namespace ingot::transform {

class ConstantFolder {
 public:
  // The budget of operations, and that of bytes which no operand has, are for all calls of this folder together.
  explicit ConstantFolder(const PassOptions& options) : options_(options) {}

  struct Outcome {
    ir::Constant value;  // null: the call is left as it is
    std::string reason;  // why a call over constants was left; empty if an argument is no constant
    bool over_budget = false;
  };
  Outcome Fold(const ir::Call& call);
  // Interprets a call_tir of a function of the module (fold_tensor_function.cc).
  Outcome FoldTir(const ir::IRModule& module, const ir::Call& call);

 private:
  // Whether named constants are among the arguments whose elements are unknown, as PassOptions::keep_prepare says.
  bool UsesKeptWeights(const ir::Call& call) const;

  const PassOptions& options_;
  int64_t operations_ = 0;  // operations used so far
  int64_t steps_ = 0;       // steps used so far
  int64_t growth_ = 0;      // bytes of results so far beyond those of their operands
};

// Returns the outcome of a call that is left because it costs too much.
ConstantFolder::Outcome OverBudget(std::string reason);
// Notes that a call was left, and why: calls over budget go to the log, others to the details.
void NoteLeft(const PassContext& context, const std::string& what, const ConstantFolder::Outcome& outcome);
// Returns nothing if the dims are not all constants.
std::optional<std::vector<int64_t>> KnownDims(const ir::TensorTypeNode& type);
// Whether every argument is known: constants, constant shapes and scalars, and tuples of these.
bool IsConstantCall(const ir::Call& call);

}  // namespace ingot::transform
