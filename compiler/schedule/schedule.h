// Schedule: a function, the primitives that transform it, and the trace of what was done. Every method is one row of
// the table in schedule.cc and one instruction of the trace; what it does and requires stands in primitives.h. After a
// refused primitive nothing happens any more: later calls return void handles and status() gives the first error, so
// that a rule is written as a sequence of calls and checked once.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/schedule/primitives.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/trace.h"

namespace ingot::schedule {

// A factor of split: absent (at most one), an integer, a sampled one, or an expression over symbolic variables.
using Factor = std::variant<std::monostate, int64_t, IntRV, ir::PrimExpr>;
inline constexpr std::monostate kRest{};

class Schedule {
 public:
  // `intrinsics` may be named by tensorize, besides the built-in ones (tensor_intrin.h).
  static Result<Schedule> Create(ir::PrimFunc function, std::vector<TensorIntrin> intrinsics = {});

  const ir::PrimFunc& function() const { return state_.function(); }
  const ScheduleState& state() const { return state_; }
  const Trace& trace() const { return trace_; }
  const Status& status() const { return status_; }

  // The block, loop or integer that a handle stands for now. Block and Loop INGOT_CHECK that the handle is not void.
  bool IsVoid(BlockRV block) const;
  bool IsVoid(LoopRV loop) const;
  BlockSite Block(BlockRV block) const;
  LoopSite Loop(LoopRV loop) const;
  int64_t Int(IntRV value) const;

  BlockRV GetBlock(const std::string& name);
  std::vector<LoopRV> GetLoops(BlockRV block);       // outermost first
  std::vector<BlockRV> GetChildBlocks(LoopRV loop);  // in order of execution
  std::vector<BlockRV> GetProducers(BlockRV block);  // blocks that write what it reads, in order of execution
  // n factors whose product is the loop's extent (constant), the last one at most max_innermost. By default the last is
  // the greatest divisor allowed, the first takes the rest.
  std::vector<IntRV> SamplePerfectTile(LoopRV loop, int64_t n, int64_t max_innermost,
                                       std::vector<int64_t> decision = {});
  // One of the candidates; decision is an index.
  IntRV SampleCategorical(const std::vector<int64_t>& candidates, int64_t decision);

  std::vector<LoopRV> Split(LoopRV loop, const std::vector<Factor>& factors);
  LoopRV Fuse(const std::vector<LoopRV>& loops);
  void Reorder(const std::vector<LoopRV>& loops);
  // Two nested loops in tiles: splits both and reorders. The trace records the splits and the reorder.
  struct Tiled {
    LoopRV x_outer, y_outer, x_inner, y_inner;
  };
  Tiled Tile(LoopRV x, LoopRV y, const Factor& x_factor, const Factor& y_factor);
  struct Parts {
    LoopRV main, tail;
  };
  Parts LoopPartition(LoopRV loop, int64_t multiple);
  std::vector<LoopRV> PartitionByConditions(LoopRV loop);
  LoopRV AddUnitLoop(BlockRV block);
  void Parallel(LoopRV loop);
  void Vectorize(LoopRV loop);
  void Unroll(LoopRV loop);
  void Bind(LoopRV loop, const std::string& thread_axis);
  void Annotate(LoopRV loop, const std::string& key, std::variant<int64_t, std::string> value);
  void Annotate(BlockRV block, const std::string& key, std::variant<int64_t, std::string> value);
  void ComputeAt(BlockRV block, LoopRV loop);
  void ReverseComputeAt(BlockRV block, LoopRV loop);
  BlockRV RecomputeFor(BlockRV producer, BlockRV consumer) { return RecomputeFor(producer, std::vector{consumer}); }
  BlockRV RecomputeFor(BlockRV producer, const std::vector<BlockRV>& consumers);  // void consumers do not count
  void ComputeInline(BlockRV block);
  void ReverseComputeInline(BlockRV block);
  // Consumers besides the block may be void.
  BlockRV CacheRead(BlockRV block, int64_t read_index, const std::string& scope,
                    const std::vector<BlockRV>& consumers = {});
  BlockRV CacheWrite(BlockRV block, int64_t write_index, const std::string& scope);
  void SetScope(BlockRV block, int64_t write_index, const std::string& scope);
  void StorageAlign(BlockRV block, int64_t write_index, int64_t axis, int64_t factor, int64_t offset);
  void TransformLayout(BlockRV block, int64_t write_index, const IndexMap& map);
  BlockRV DecomposeReduction(BlockRV block, LoopRV loop);
  BlockRV RFactor(LoopRV loop);
  void PadEinsum(BlockRV block, const std::vector<int64_t>& multiples);
  void Tensorize(LoopRV loop, const std::string& intrinsic);

 private:
  struct Void {};
  struct BlockRef {
    std::string name;
  };

 public:
  // What a TraceValue stands for in this function.
  using Entity = std::variant<std::monostate, Void, BlockRef, LoopVar, int64_t, std::string, ir::PrimExpr, IndexMap>;

 private:
  friend struct PrimitiveRow;
  friend struct Rows;
  friend Result<Schedule> Replay(const Trace& trace, ir::PrimFunc function, std::vector<TensorIntrin> intrinsics);

  // Resolves the arguments, runs the primitive, makes a handle for each result and records the instruction.
  std::vector<TraceValue> Apply(const char* primitive, std::vector<TraceValue> arguments,
                                std::vector<int64_t> decision = {});
  Status Run(Instruction& instruction, bool replay);
  Entity Resolve(const TraceValue& value) const;
  TraceValue NewHandle(const Entity& entity, char kind);
  BlockRV ApplyForBlock(const char* primitive, std::vector<TraceValue> arguments);

  ScheduleState state_;
  Trace trace_;
  std::vector<Entity> entities_;  // by handle id
  Status status_;
};

// Runs the trace's instructions on another function than the recorded one. A sampling decision that does not fit the
// new function (a tile that does not divide) is taken again by default. A loop of which loop_partition left only one
// part in the recorded function stays whole in the new one. Blocks that an instruction found in the recorded function
// and that the new one does not have, such as those of a tail, are void; blocks that only the new one has are left as
// they are.
Result<Schedule> Replay(const Trace& trace, ir::PrimFunc function, std::vector<TensorIntrin> intrinsics = {});

}  // namespace ingot::schedule
