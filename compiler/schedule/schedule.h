// Schedule: a function, the primitives that transform it, and the trace of what was done. Every primitive is a row of
// primitives.def, from which its method comes; what it does and requires stands in primitives.h.
//
// After a refused primitive nothing happens any more: status() gives the first error, and the handles that later calls
// return are inert. They are void, they stand for an empty block or a loop of one iteration, and lists of them may be
// indexed at any place. So a rule is written as a sequence of calls and checked once, at its end.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "compiler/schedule/choices.h"
#include "compiler/schedule/primitives.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/trace.h"

namespace ingot::schedule {

class Schedule {
 public:
  // `intrinsics` may be named by tensorize, besides the built-in ones (tensor_intrin.h).
  static Result<Schedule> Create(ir::PrimFunc function, std::vector<TensorIntrin> intrinsics = {});

  const ir::PrimFunc& function() const { return state_.function(); }
  const ScheduleState& state() const { return state_; }
  const Trace& trace() const { return trace_; }
  const Status& status() const { return status_; }

  // What a handle stands for now: a block, a loop, an integer (1 where it is void). Block and Loop INGOT_CHECK that the
  // handle is not void. After a refused primitive a void block is one without name, loops and iteration variables that
  // stores 0, and a void loop has one iteration that does nothing.
  bool IsVoid(Handle handle) const { return std::holds_alternative<Void>(Resolve(handle)); }
  BlockSite Block(BlockRV block) const;
  LoopSite Loop(LoopRV loop) const;
  int64_t Int(IntRV value) const;

#define INGOT_PRIMITIVE(method, name, result, parameters, ...) result method parameters;
#include "compiler/schedule/primitives.def"

  IntRVs SamplePerfectTile(LoopRV loop, int64_t n, int64_t max_innermost_factor) {
    return SamplePerfectTile(loop, n, max_innermost_factor, Decision());
  }
  BlockRV CacheRead(BlockRV block, int64_t read_index, const std::string& scope) {
    return CacheRead(block, read_index, scope, OptionalBlocks());
  }
  // Two nested loops in tiles: splits both and reorders. The trace records the splits and the reorder.
  struct Tiled {
    LoopRV x_outer, y_outer, x_inner, y_inner;
  };
  Tiled Tile(LoopRV x, LoopRV y, const Factor& x_factor, const Factor& y_factor);
  using Parts = PartRVs;

  // A number that a rule chooses: the one given for this name by SetChosen, else `usual`. A given one that is neither
  // usual nor a candidate is refused. After a refusal: usual.
  int64_t Choose(const std::string& name, int64_t usual, std::vector<int64_t> candidates);
  void SetChosen(Chosen chosen) { chosen_ = std::move(chosen); }
  const std::vector<Choice>& choices() const { return choices_; }  // in the order in which they were asked for

  // For tests of rules: the instruction that would be the index-th of the trace is refused.
  void RefuseInstruction(size_t index) { refused_ = index; }

 private:
  struct Void {};
  struct BlockRef {
    std::string name;
  };
  // What a handle stands for in this function.
  using Entity = std::variant<Void, BlockRef, LoopVar, int64_t>;
  struct Engine;  // the table of primitives, and how their operands are read; in schedule.cc
  friend struct Trace;
  friend Result<Schedule> Replay(const Trace& trace, ir::PrimFunc function, std::vector<TensorIntrin> intrinsics);

  // Runs the primitive and records the instruction.
  template <typename R>
  R Call(Primitive primitive, std::vector<Operand> operands);
  Status Run(Instruction& instruction, bool replay);
  const Entity& Resolve(Handle handle) const;

  ScheduleState state_;
  Trace trace_;
  std::vector<Entity> entities_;  // by handle id
  Status status_;
  size_t refused_ = SIZE_MAX;
  Chosen chosen_;
  std::vector<Choice> choices_;
};

// Runs the trace's instructions on another function than the recorded one. A sampling decision that does not fit the
// new function (a tile that does not divide) is taken again by default. A loop of which loop_partition left only one
// part in the recorded function stays whole in the new one. Blocks that an instruction found in the recorded function
// and that the new one does not have, such as those of a tail, are void; blocks that only the new one has are left as
// they are.
Result<Schedule> Replay(const Trace& trace, ir::PrimFunc function, std::vector<TensorIntrin> intrinsics = {});

}  // namespace ingot::schedule
