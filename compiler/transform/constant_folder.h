// Evaluates operator calls over constants by the rows' host routines (runtime/host_ops.h), and calls of tensor
// functions by the interpreter, which give equal bytes on every host, within a budget of result bytes and operations.
// What folding, and preparing weights at compile time, share.
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
  // The budget of operations is for all calls of this folder together.
  explicit ConstantFolder(const PassOptions& options) : options_(options) {}

  struct Outcome {
    ir::Constant value;  // null: left as it is
    std::string reason;  // why a call over constants was left; empty for a call that has other arguments
    bool over_budget = false;
  };
  Outcome Fold(const ir::Call& call);
  // A call_tir of a function of the module, interpreted (fold_tensor_function.cc).
  Outcome FoldTir(const ir::IRModule& module, const ir::Call& call);

 private:
  // Named constants, whose elements are not known yet with PassOptions::keep_prepare.
  bool UsesKeptWeights(const ir::Call& call) const;

  const PassOptions& options_;
  int64_t operations_ = 0;  // spent
  int64_t steps_ = 0;       // spent
};

// What stays as it is since it costs too much.
ConstantFolder::Outcome OverBudget(std::string reason);
// Says that a call was left, and why: what the budgets leave goes to the log, the rest to the details.
void NoteLeft(const PassContext& context, const std::string& what, const ConstantFolder::Outcome& outcome);
// Nothing when they are not all constants.
std::optional<std::vector<int64_t>> KnownDims(const ir::TensorTypeNode& type);
// True when every argument is known now: constants, shapes and scalars of constants, tuples of such.
bool IsConstantCall(const ir::Call& call);

}  // namespace ingot::transform
