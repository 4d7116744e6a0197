// The primitives: each checks that it keeps the function's meaning, and changes the state only then; a refusal names
// the primitive, the block or loop, and the reason. Schedule (schedule.h) calls them through its table and records a
// trace; rules and users use Schedule. One file per family in primitives/.
//
// Floating-point note: a reduction may be reordered (its combiner is associative and commutative by declaration), so
// results can differ in rounding; everything else keeps results bitwise.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/schedule/index_map.h"
#include "compiler/schedule/state.h"

namespace ingot::schedule {

using BlockName = std::string;
using LoopVar = ir::PrimVar;

// ---- primitives/loops.cc
// Loop of extent n -> nested loops; one factor may be absent (ceil(n / product of the others)). Where the product
// is not provably n, blocks get the predicate that the index is below n. A factor is a constant or an expression over
// the function's symbolic variables; unless the product divides n for certain, it must be 1 at least for certain. Every
// block inside must be regular.
Result<std::vector<LoopVar>> Split(ScheduleState& state, const LoopVar& loop,
                                   const std::vector<std::optional<ir::PrimExpr>>& factors);
// Perfectly nested loops, outermost first -> one loop.
Result<LoopVar> Fuse(ScheduleState& state, const std::vector<LoopVar>& loops);
// Puts the loops (of one nest around a single block) in this order; the others stay where they are.
Status Reorder(ScheduleState& state, const std::vector<LoopVar>& loops);
// Loop over [0, n) -> two loops after each other, over the greatest multiple of `multiple` that is <= n, and the rest.
// A part that is provably empty is left out. Blocks of the rest are copies named NAME_tail; intermediates that live
// inside of the loop alone are copied with them.
struct LoopParts {
  std::optional<LoopVar> main, tail;
};
Result<LoopParts> LoopPartition(ScheduleState& state, const LoopVar& loop, int64_t multiple);
// Loop over [0, n) around one block -> loops after each other, cut where the conditions of the block's if_then_else
// that compare this loop's iteration variable alone with a constant change; in the copies of the block that they hold
// (NAME_tail, ...) those conditions are decided. As many parts as there are different comparisons, and one; those that
// are provably empty are left out.
Result<std::vector<std::optional<LoopVar>>> PartitionByConditions(ScheduleState& state, const LoopVar& loop);
// A loop of one iteration around the block.
Result<LoopVar> AddUnitLoop(ScheduleState& state, const BlockName& block);

// ---- primitives/loop_kinds.cc
// Iterations of parallel, vectorized and bound loops must be independent.
Status Parallel(ScheduleState& state, const LoopVar& loop);
Status Vectorize(ScheduleState& state, const LoopVar& loop);  // constant extent, one block, innermost
Status Unroll(ScheduleState& state, const LoopVar& loop);     // constant extent
// Runs the loop's iterations as the threads of an axis: blockIdx.x, .y, .z, threadIdx.x, .y, .z, vthread.x, .y, .z. The
// axis may stand around a block once; its extent is the same wherever it stands.
Status Bind(ScheduleState& state, const LoopVar& loop, const std::string& thread_axis);
Status AnnotateLoop(ScheduleState& state, const LoopVar& loop, const std::string& key, ir::AttrValue value);
Status AnnotateBlock(ScheduleState& state, const BlockName& block, const std::string& key, ir::AttrValue value);

// ---- primitives/compute_at.cc
// Moves a producer under a loop that holds all its consumers: it computes, at the start of each iteration, what they
// read there.
Status ComputeAt(ScheduleState& state, const BlockName& block, const LoopVar& loop);
// Moves a consumer under a loop of its producer, to the end of each iteration, where its input is complete.
Status ReverseComputeAt(ScheduleState& state, const BlockName& block, const LoopVar& loop);
// Gives some consumers (one at least) their own copy of a producer (block and buffer), so that they may be placed apart
// from the others. Returns the copy's name.
Result<BlockName> RecomputeFor(ScheduleState& state, const BlockName& producer,
                               const std::vector<BlockName>& consumers);

// ---- primitives/inline.cc
// Replaces every read of what the block writes by its expression; the block goes.
Status ComputeInline(ScheduleState& state, const BlockName& block);
// Replaces the producer's store by this (element-wise) consumer's; the consumer goes.
Status ReverseComputeInline(ScheduleState& state, const BlockName& block);

// ---- primitives/cache.cc
// Adds a copy block; the block, and other consumers of the same buffer that are named, read the copy instead (the block
// writes it). Returns the new block's name.
Result<BlockName> CacheRead(ScheduleState& state, const BlockName& block, int64_t read_index, const std::string& scope,
                            const std::vector<BlockName>& consumers = {});
Result<BlockName> CacheWrite(ScheduleState& state, const BlockName& block, int64_t write_index,
                             const std::string& scope);
Status SetScope(ScheduleState& state, const BlockName& block, int64_t write_index, const std::string& scope);
// Spreads the rows of an intermediate in memory: axis must be the last but one, and the distance between its elements
// becomes the least one that leaves `offset` when divided by `factor` and holds a row, wherever and however small the
// buffer is in the end.
Status StorageAlign(ScheduleState& state, const BlockName& block, int64_t write_index, int64_t axis, int64_t factor,
                    int64_t offset);

// ---- primitives/layout.cc
// Lays an intermediate that the block writes out anew (index_map.h): NCHW becomes NCHW16c by n, c // 16, h, w, c % 16.
// Accesses change, loops do not.
Status TransformLayout(ScheduleState& state, const BlockName& block, int64_t write_index, const IndexMap& map);

// ---- primitives/reduction.cc
// Puts the initialisation into a block of its own before the loop, which must hold all the reduction's loops.
Result<BlockName> DecomposeReduction(ScheduleState& state, const BlockName& block, const LoopVar& loop);
// Turns one reduction loop (innermost or not) into a spatial axis of a new intermediate: partial results by this loop's
// value, then a final reduction over them, which keeps the old name. Returns the name of the partial block. The new
// axis is the intermediate's last one.
Result<BlockName> RFactor(ScheduleState& state, const LoopVar& loop);

// ---- primitives/pad_einsum.cc
// A sum of products over iterations that run to the next multiple each (one per iteration variable): operands are
// copied into buffers with zeros at the end, the result out of one. Before anything else is done to the block.
Status PadEinsum(ScheduleState& state, const BlockName& block, const std::vector<int64_t>& multiples);

// ---- primitives/tensorize.cc
// The nest that begins at the loop, whose loops are those of a registered intrinsic's description around a single block
// that computes the same, becomes its implementation: one block without loops.
Status Tensorize(ScheduleState& state, const LoopVar& loop, const std::string& intrinsic);
// An annotation of blocks that hold an implementation: loops of their own, which primitives for single stores leave
// alone.
inline constexpr const char* kTensorized = "tensorized";
bool IsTensorized(const ir::BlockNode& block);

// ---- Shared by several.
// `out[i] = out[i] op source`, started from `out[i] = identity`; op is +, *, min or max.
struct Reduction {
  const ir::BufferStoreNode* update;
  ir::BinaryOp op;
  ir::PrimExpr source, identity;
};
std::optional<Reduction> MatchReduction(const ir::BlockNode& block);
// The iteration variables of the block whose binding uses the loop are all of type spatial (reduce).
bool BindsOnly(const ir::BlockRealizeNode& realize, const LoopVar& loop, ir::IterType type);
bool Binds(const ir::BlockRealizeNode& realize, const LoopVar& loop, ir::IterType type);
// Everything that reads or writes the buffer is below the loop.
bool LivesInside(const ScheduleState& state, const ir::Buffer& buffer, const For& loop);
// A realize whose bindings and predicate are rewritten by the analyzer, everywhere below the statement.
ir::Stmt SimplifyBindings(const ir::Stmt& stmt, const std::vector<For>& outer, ir::PrimExpr extra_predicate = nullptr);
// Loops over fresh variables of these extents around the body, outermost first.
ir::Stmt Nest(const std::vector<LoopVar>& vars, const std::vector<ir::PrimExpr>& extents, ir::Stmt body);

}  // namespace ingot::schedule
