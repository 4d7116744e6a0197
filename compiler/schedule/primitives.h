// The primitives of schedules. Each checks that it keeps the function's meaning, and changes the state only then; a
// refusal names the primitive, the block or loop, and the reason. Schedule (schedule.h) calls them through its table
// (primitives.def) and records a trace; rules and users use Schedule. One file per family in primitives/.
//
// Floating-point note: a reduction may be reordered (its combiner is associative and commutative by declaration), so
// results can differ in rounding; everything else keeps results bitwise.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/schedule/index_map.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/trace.h"

namespace ingot::schedule {

using BlockName = std::string;
using LoopVar = ir::PrimVar;

// ---- primitives/queries.cc
// Lists are in order of nesting (outermost first) or of execution.
Result<BlockName> GetBlock(const ScheduleState& state, const std::string& name);
Result<std::vector<LoopVar>> GetLoops(const ScheduleState& state, const BlockName& block);
Result<std::vector<BlockName>> GetChildBlocks(const ScheduleState& state, const LoopVar& loop);
Result<std::vector<BlockName>> GetProducers(const ScheduleState& state, const BlockName& block);  // of what it reads

// ---- primitives/sampling.cc
template <typename Value>
struct Sampled {
  Value value;
  Decision decision;  // the given one where it fits
};
// n factors whose product is the loop's extent (constant), the last one at most max_innermost_factor. By default the
// last is the greatest divisor allowed, the first takes the rest.
Result<Sampled<std::vector<int64_t>>> SamplePerfectTile(const ScheduleState& state, const LoopVar& loop, int64_t n,
                                                        int64_t max_innermost_factor, const Decision& decision);
// One of the candidates; the decision is an index.
Result<Sampled<int64_t>> SampleCategorical(const ScheduleState& state, const std::vector<int64_t>& candidates,
                                           const Decision& decision);

// ---- primitives/loops.cc
// Loop of extent n -> nested loops; one factor may be absent (ceil(n / product of the others)). Where the product
// is not provably n, blocks get the predicate that the index is below n. A factor is a constant or an expression over
// the function's symbolic variables; unless the product is proved to divide n, it must be proved to be at least 1.
// Every block inside must be regular.
Result<std::vector<LoopVar>> Split(ScheduleState& state, const LoopVar& loop,
                                   const std::vector<std::optional<ir::PrimExpr>>& factors);
// Perfectly nested loops, outermost first -> one loop.
Result<LoopVar> Fuse(ScheduleState& state, const std::vector<LoopVar>& loops);
// Puts the loops (of one nest around a single block) in this order; the others stay where they are.
Status Reorder(ScheduleState& state, const std::vector<LoopVar>& loops);
// Loop over [0, n) -> two loops after each other, over the greatest multiple of `multiple` that is <= n, and the rest.
// A part that is provably empty is left out. Blocks of the rest are copies named NAME_tail; intermediates that live
// only inside of the loop are copied with them.
struct LoopParts {
  std::optional<LoopVar> main, tail;
};
Result<LoopParts> LoopPartition(ScheduleState& state, const LoopVar& loop, int64_t multiple);
// The same with the cut at `point`, an expression over the function's symbolic variables: below 0 it counts as 0, beyond
// n as n. Of a loop of one iteration (AddUnitLoop) the parts are two versions of what is inside, of which one runs.
Result<LoopParts> PartitionAt(ScheduleState& state, const LoopVar& loop, const std::optional<ir::PrimExpr>& point);
// Loop over [0, n) around one block -> loops after each other, cut where those conditions of the block's if_then_else
// change that compare this loop's iteration variable with a bound free of the block's other variables. In each part
// these conditions are decided; parts after the first hold copies of the block (NAME1_tail, NAME2_tail, ...). The
// result has one entry more than there are different bounds; entries of provably empty parts are absent.
Result<std::vector<std::optional<LoopVar>>> PartitionByConditions(ScheduleState& state, const LoopVar& loop);
// A loop of one iteration around the block.
Result<LoopVar> AddUnitLoop(ScheduleState& state, const BlockName& block);

// ---- primitives/loop_kinds.cc
// Iterations of parallel, vectorized and bound loops must be independent.
Status Parallel(ScheduleState& state, const LoopVar& loop);
Status Vectorize(ScheduleState& state, const LoopVar& loop);  // constant extent, one block, innermost
Status Unroll(ScheduleState& state, const LoopVar& loop);     // constant extent
// Runs the loop's iterations as the threads of an axis: blockIdx.x, .y, .z, threadIdx.x, .y, .z, vthread.x, .y, .z. The
// axis may stand around a block once; its extent is the same wherever it stands below one outermost loop.
Status Bind(ScheduleState& state, const LoopVar& loop, const std::string& thread_axis);
Status Annotate(ScheduleState& state, const std::variant<BlockName, LoopVar>& target, const std::string& key,
                ir::AttrValue value);

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
// Replaces every read of the block's result by the block's expression and removes the block.
Status ComputeInline(ScheduleState& state, const BlockName& block);
// Replaces the producer's store by the store of this (element-wise) consumer and removes the consumer's block.
Status ReverseComputeInline(ScheduleState& state, const BlockName& block);

// ---- primitives/cache.cc
// CacheRead adds a block that copies an input of the block; the block, and the named other consumers of that buffer,
// read the copy. CacheWrite lets the block write a copy, from which a new block writes the output. Both return the new
// block's name.
Result<BlockName> CacheRead(ScheduleState& state, const BlockName& block, int64_t read_index, const std::string& scope,
                            const std::vector<BlockName>& consumers);
Result<BlockName> CacheWrite(ScheduleState& state, const BlockName& block, int64_t write_index,
                             const std::string& scope);
// The same for what is read, or written, in one iteration of a loop around the block, where the copy is made: read_at is
// cache_read (for all readers under the loop) and compute_at in one, write_at cache_write and reverse_compute_at.
Result<BlockName> ReadAt(ScheduleState& state, const LoopVar& loop, const BlockName& block, int64_t read_index,
                         const std::string& scope);
Result<BlockName> WriteAt(ScheduleState& state, const LoopVar& loop, const BlockName& block, int64_t write_index,
                          const std::string& scope);
Status SetScope(ScheduleState& state, const BlockName& block, int64_t write_index, const std::string& scope);
// Spreads the rows of an intermediate in memory: axis must be the last but one, and the distance between
// consecutive rows becomes the least one that holds a row and leaves the remainder `offset` when divided by `factor`.
// Lowering applies it to the buffer's final size.
Status StorageAlign(ScheduleState& state, const BlockName& block, int64_t write_index, int64_t axis, int64_t factor,
                    int64_t offset);

// ---- primitives/reindex.cc
// Gives the block a buffer over its own iteration variables, those that choose the place in one of its inputs ("read") or
// outputs ("write"), and copies from the input before it, or to the output behind it. What is read is proved to be inside
// of the input, what is written is at variables and constants. Returns the name of the block that copies.
Result<BlockName> Reindex(ScheduleState& state, const BlockName& block, int64_t buffer_index,
                          const std::string& buffer_index_type);
// Computes the places at which the block reads, where these are more than variables and stand in it cse_thresh times or
// more, in blocks before it, and has the block look them up. Returns the blocks' names; none where there is no such place.
Result<std::vector<BlockName>> CacheIndex(ScheduleState& state, const BlockName& block,
                                          const std::string& storage_scope, int64_t cse_thresh);

// ---- primitives/layout.cc
// Changes the layout of an intermediate that the block writes (index_map.h): NCHW becomes NCHW16c by n, c // 16, h, w,
// c % 16. Accesses change, loops do not.
Status TransformLayout(ScheduleState& state, const BlockName& block, int64_t write_index, const IndexMap& map);

// ---- primitives/reduction.cc
// Puts the initialisation into a block of its own before the loop, which must hold all the reduction's loops.
Result<BlockName> DecomposeReduction(ScheduleState& state, const BlockName& block, const LoopVar& loop);
// Turns one reduction loop (innermost or not) into a spatial axis of a new intermediate: partial results by this loop's
// value, then a final reduction over them, which keeps the old name. Returns the name of the partial block. The new
// axis is the intermediate's last one.
Result<BlockName> RFactor(ScheduleState& state, const LoopVar& loop);

// ---- primitives/pad_einsum.cc
// Pads a sum of products: every iteration variable runs to the next multiple of its number in `multiples`. Operands are
// copied into buffers with zeros at the end, and the result is copied out of a padded one. Indices are variables or
// constants; an operand's may also be the quotient and the remainder of a spatial one by a divisor of its multiple. It
// must be the first primitive on the block.
Status PadEinsum(ScheduleState& state, const BlockName& block, const std::vector<int64_t>& multiples);

// ---- primitives/fuse_einsum.cc
// Gives a block of one store, or a reduction, fewer variables: group after group of the iterations `iters` (positions, each
// in one group, of results or of summands) becomes one variable that counts through them; `sizes` are those of the groups. A part other than 0 is of an iteration
// that two groups have: d is its quotient by d, -d its remainder. The block has its nest to itself, with a loop for each
// iteration.
Status FuseIters(ScheduleState& state, const BlockName& block, const std::vector<int64_t>& iters,
                 const std::vector<int64_t>& parts, const std::vector<int64_t>& sizes);
// The same for a sum of products. A group's variable runs to the next multiple of its number in `multiples`. Factors are
// copied into buffers over the groups that they depend on, with zeros at the end, and the result is copied out of one
// over the groups. Factors may be read anywhere. It must be the first primitive on the block.
Status FuseEinsum(ScheduleState& state, const BlockName& block, const std::vector<int64_t>& iters,
                  const std::vector<int64_t>& parts, const std::vector<int64_t>& sizes,
                  const std::vector<int64_t>& multiples);

// ---- primitives/tensorize.cc
// Replaces the nest that begins at the loop by the implementation of a registered or built-in intrinsic: one block
// without loops. The nest must have the loops of the intrinsic's description, around a single block that computes the
// same.
Status Tensorize(ScheduleState& state, const LoopVar& loop, const std::string& intrinsic);
// The annotation of blocks that hold an intrinsic's implementation.
inline constexpr const char* kTensorized = "tensorized";

// ---- primitives/blockize.cc
// Makes the nest that begins at the loop, of serial loops around a single block, the body of one block, whose iterations
// are the nest's tiles. Returns its name; what is inside is no longer a place for primitives. Sums are whole within a tile.
Result<BlockName> Blockize(ScheduleState& state, const LoopVar& loop);

// ---- Shared by several.
// Whether the block was blockized or tensorized: it contains loops of its own, and primitives for blocks of a single store
// refuse or skip it.
bool HoldsLoops(const ir::BlockNode& block);
// The outermost loop around the block, or the block.
ir::Stmt OutermostStatement(const BlockSite& site);
// Refuses scopes that a buffer cannot have.
Status CheckScope(const char* primitive, const BlockSite& site, const std::string& scope);
// `out[i] = out[i] op source`, started from `out[i] = identity`; op is +, *, min or max.
struct Reduction {
  const ir::BufferStoreNode* update;
  ir::BinaryOp op;
  ir::PrimExpr source, identity;
};
std::optional<Reduction> MatchReduction(const ir::BlockNode& block);
// The loads that an expression multiplies, casts left out; nothing where it is something else.
std::optional<std::vector<const ir::BufferLoadNode*>> FactorsOfProduct(const ir::PrimExpr& expr);
// BindsOnly: all iteration variables of the block whose bindings use the loop have this type; Binds: at least one has.
bool BindsOnly(const ir::BlockRealizeNode& realize, const LoopVar& loop, ir::IterType type);
bool Binds(const ir::BlockRealizeNode& realize, const LoopVar& loop, ir::IterType type);
// Whether all blocks that read or write the buffer are below the loop.
bool LivesInside(const ScheduleState& state, const ir::Buffer& buffer, const For& loop);
// The statement with the bindings and predicates of all blocks below it simplified, and extra_predicate (null: none)
// added to the predicates. `outer` are the loops around it.
ir::Stmt SimplifyBindings(const ir::Stmt& stmt, const std::vector<For>& outer, ir::PrimExpr extra_predicate = nullptr);
// Loops over fresh variables of these extents around the body, outermost first.
ir::Stmt Nest(const std::vector<LoopVar>& vars, const std::vector<ir::PrimExpr>& extents, ir::Stmt body);

}  // namespace ingot::schedule
