// How far a block's accesses are contiguous: which of its iteration variables may run as one loop, in which every
// access moves by one constant step, and which steps those are. Rules fuse such loops and cut vectors from the whole.
#pragma once

#include <optional>
#include <vector>

#include "compiler/schedule/rules/analysis.h"

namespace ingot::schedule {

// An access of the block, with its place in the buffer as one number.
struct LinearAccess {
  const ir::BufferLoadNode* load = nullptr;  // null: the store
  ir::PrimExpr element;                      // over the block's iteration variables
};
class Contiguity {
 public:
  explicit Contiguity(const BlockSite& site);

  // Divides the given iteration variables (positions in block.iter_vars, outermost first) into runs: every access moves
  // with a run as it would with a single variable, so does one that loads an index. Variables of extent 1 join any run.
  std::vector<std::vector<int>> Runs(const std::vector<int>& iters);
  // The step of an access, in elements, per step of a variable: absent when it is not constant.
  std::optional<int64_t> Step(const LinearAccess& access, int iter);
  const std::vector<LinearAccess>& accesses() const { return accesses_; }
  // Whether something other than the place of an access depends on the variable (a condition, the element's value, an
  // index that is loaded).
  bool IsUsedAlone(int iter) const { return in_value_[iter] || gathers_[iter]; }
  // Whether an index that is loaded depends on the variable.
  bool Gathers(int iter) const { return gathers_[iter]; }
  // Whether an access moves through two runs, one around the other, as through one: a rule may fuse their loops for the
  // sake of these accesses, while others then find the two variables by division. Not where a variable is used alone.
  bool Continues(const LinearAccess& access, const std::vector<int>& outer, const std::vector<int>& inner);
  // The innermost variable of the run that is longer than 1, or the last one.
  int Innermost(const std::vector<int>& run) const;

 private:
  bool Joins(int outer, int inner);
  const ir::BlockNode& block_;
  arith::Analyzer analyzer_;
  std::vector<LinearAccess> accesses_;
  std::vector<ir::PrimExpr>
      places_;  // elements of the accesses, and of those in their indices, whose value is no place
  std::vector<bool> in_value_, gathers_;
};

// How vectors are cut: the widest elements of the block decide how many lanes a register has, the work on each element
// how many registers one iteration holds.
struct VectorShape {
  int64_t lanes = 1;  // elements of a register
  int64_t registers = 1;
};
VectorShape ChooseVectors(const BlockSite& site, const Target& target);

// Cuts a loop (the innermost one, around one block) into vectors: whole iterations of shape.lanes * shape.registers
// elements, then the rest in shorter vectors where the extent is constant and in masked vectors where it is symbolic.
// Returns the loop over whole iterations (void: there is none).
LoopRV VectorizeRun(Schedule& schedule, LoopRV loop, const VectorShape& shape);

// Fuses the loops that bind these iteration variables, which follow each other directly, and returns the loop.
LoopRV FuseIters(Schedule& schedule, const HandleList<InnerLoop>& loops, const std::vector<int>& run);

}  // namespace ingot::schedule
