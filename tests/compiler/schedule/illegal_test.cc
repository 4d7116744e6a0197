// Every primitive refuses what would change the meaning of a function, or what it cannot do, with a message that begins
// with its name and shows the block, or the loop with the blocks in it. A refusal leaves the function as it was.
#include <functional>

#include "compiler/ir/structural.h"
#include "compiler/schedule/schedule.h"
#include "compiler/te/tensor.h"
#include "doctest/doctest.h"
#include "tests/compiler/schedule/functions.h"

namespace ingot::schedule {
namespace {

using ir::FloorMod;
using ir::Int64;
using ir::Max;
using ir::PrimExpr;
using testing::Dense;
using testing::PanelProduct;

struct Illegal {
  const char* name;
  ir::PrimFunc function;
  std::function<void(Schedule&)> legal;  // what goes before
  std::function<void(Schedule&)> illegal;
  const char* place;   // a part of the message that shows where
  const char* reason;  // and one that says why
};

LoopRVs LoopsOf(Schedule& s, const char* block) { return s.GetLoops(s.GetBlock(block)); }
LoopRV L(Schedule& s, const char* block, size_t i) { return LoopsOf(s, block)[i]; }
void Nothing(Schedule&) {}

// Splits dimension d into blocks; the position in the block becomes the last dimension.
IndexMap Blocked(size_t d, int64_t factor) {
  return MakeIndexMap(2, [&](std::vector<PrimExpr> i) {
    const PrimExpr place = ir::FloorMod(i[d], Int64(factor));
    i[d] = ir::FloorDiv(i[d], Int64(factor));
    i.push_back(place);
    return i;
  });
}

void TileForGemm(Schedule& s, int64_t rows, int64_t columns) {
  const BlockRV block = s.GetBlock("matmul");
  const LoopRVs l = s.GetLoops(block);
  const LoopRVs i = s.Split(l[0], {kRest, rows}), j = s.Split(l[1], {kRest, columns});
  s.Reorder({i[0], j[0], i[1], j[1], l[2]});
}

// Sums of two elements next to each other.
ir::PrimFunc Neighbours() {
  const te::Tensor x = te::Placeholder({Int64(9)}, DataType::Float(32), "X");
  const te::Tensor y = te::Compute(
      {Int64(8)}, [&](const te::Indices& i) { return x(i[0]) + x(i[0] + 1); }, "pair");
  return te::CreatePrimFunc({x, y});
}

// Elements at places that another tensor has.
ir::PrimFunc Chosen() {
  const te::Tensor x = te::Placeholder({Int64(9)}, DataType::Float(32), "X");
  const te::Tensor places = te::Placeholder({Int64(8)}, DataType::Int(64), "P");
  const te::Tensor y = te::Compute(
      {Int64(8)}, [&](const te::Indices& i) { return x(ir::Max(ir::Min(places(i[0]), Int64(8)), Int64(0))); }, "take");
  return te::CreatePrimFunc({x, places, y});
}

std::vector<Illegal> LoopCases() {
  const ir::PrimFunc dense = Dense(Int64(13), Int64(8), Int64(200), true);
  const ir::PrimFunc chain = testing::ElementwiseChain(testing::N(), Int64(100));
  const ir::PrimFunc small = testing::ElementwiseChain(Int64(6), Int64(8));
  const ir::PrimFunc sum = testing::RowSum(Int64(4), Int64(8));
  const auto parallel = [](const char* block) { return [=](Schedule& s) { s.Parallel(L(s, block, 0)); }; };
  const auto under_row = [](Schedule& s) { s.ComputeAt(s.GetBlock("add"), L(s, "tanh", 0)); };
  const auto under_column = [](Schedule& s) { s.ComputeAt(s.GetBlock("add"), L(s, "tanh", 1)); };
  return {
      {"split: a factor of 0", dense, Nothing,
       [](Schedule& s) {
         s.Split(L(s, "matmul", 0), {kRest, int64_t{0}});
       },
       "loop i0 (13) around block \"matmul\"", "factors must be at least 1"},
      {"split: two factors are left open", dense, Nothing,
       [](Schedule& s) {
         s.Split(L(s, "matmul", 0), {kRest, kRest});
       },
       "loop i0 (13) around block \"matmul\"", "all but one at most"},
      {"split: no factor", dense, Nothing, [](Schedule& s) { s.Split(L(s, "matmul", 0), {}); },
       "loop i0 (13) around block \"matmul\"", "give factors"},
      {"split: too few iterations", dense, Nothing,
       [](Schedule& s) {
         s.Split(L(s, "matmul", 0), {int64_t{3}, int64_t{4}});
       },
       "loop i0 (13) around block \"matmul\"", "the factors' product 12 may be below the extent"},
      {"split: factors overflow", dense, Nothing,
       [](Schedule& s) {
         s.Split(L(s, "relu", 0), {kRest, int64_t{1} << 40, int64_t{1} << 40});
       },
       "loop i0 (13) around block \"relu\"", "overflows"},
      {"split: a symbolic factor that may be 0", chain, Nothing,
       [](Schedule& s) {
         s.Split(L(s, "mul", 1), {kRest, ir::FreePrimVars(s.function())[0]});
       },
       "loop i1 (100) around block \"mul\"", "may be 0"},
      {"split: a factor over a variable that is none of the function", chain, Nothing,
       [](Schedule& s) {
         s.Split(L(s, "mul", 0), {kRest, ir::MakePrimVar("other")});
       },
       "split", "symbolic variable other"},
      {"split: a parallel loop", dense, parallel("relu"),
       [](Schedule& s) {
         s.Split(L(s, "relu", 0), {kRest, int64_t{4}});
       },
       "loop i0 (13) around block \"relu\"", "no longer serial"},
      {"fuse: a loop between them", dense, Nothing,
       [](Schedule& s) {
         s.Fuse({L(s, "matmul", 0), L(s, "matmul", 2)});
       },
       "loop i0 (13) around block \"matmul\"", "loop k does not stand directly inside i0"},
      {"fuse: the inner loop first", dense, Nothing,
       [](Schedule& s) {
         s.Fuse({L(s, "matmul", 1), L(s, "matmul", 0)});
       },
       "loop i1 (200) around block \"matmul\"", "does not stand directly inside"},
      {"fuse: a parallel loop", dense, parallel("relu"), [](Schedule& s) { s.Fuse(LoopsOf(s, "relu")); },
       "loop i0 (13) around block \"relu\"", "no longer serial"},
      {"fuse: a block between them", small, under_row,
       [](Schedule& s) {
         s.Fuse({L(s, "tanh", 0), L(s, "tanh", 1)});
       },
       "loop i0 (6) around block \"add\", \"tanh\"", "does not stand directly inside"},
      {"reorder: loops of two nests", dense, Nothing,
       [](Schedule& s) {
         s.Reorder({L(s, "matmul", 0), L(s, "relu", 1)});
       },
       "loop i0 (13) around block \"matmul\"", "not one perfect nest"},
      {"reorder: a block between them", small, under_row,
       [](Schedule& s) {
         s.Reorder({L(s, "tanh", 1), L(s, "tanh", 0)});
       },
       "loop i0 (6) around block \"add\", \"tanh\"", "not one perfect nest"},
      {"reorder: two blocks inside", small, under_column,
       [](Schedule& s) {
         s.Reorder({L(s, "tanh", 1), L(s, "tanh", 0)});
       },
       "loop i0 (6) around block \"add\", \"tanh\"", "a single block"},
      {"reorder: a loop that is spatial and a reduction", dense,
       [](Schedule& s) {
         s.Fuse({L(s, "matmul", 1), L(s, "matmul", 2)});
       },
       [](Schedule& s) {
         s.Reorder({L(s, "matmul", 1), L(s, "matmul", 0)});
       },
       "loop i0 (13) around block \"matmul\"", "both spatial and a reduction"},
      {"loop_partition: a multiple of 0", dense, Nothing, [](Schedule& s) { s.LoopPartition(L(s, "matmul", 0), 0); },
       "loop i0 (13) around block \"matmul\"", "at least 1"},
      {"loop_partition: a parallel loop", dense, parallel("relu"),
       [](Schedule& s) { s.LoopPartition(L(s, "relu", 0), 4); }, "loop i0 (13) around block \"relu\"",
       "no longer serial"},
      {"partition_at: no place", dense, Nothing, [](Schedule& s) { s.PartitionAt(L(s, "relu", 0), kRest); },
       "loop i0 (13) around block \"relu\"", "no place"},
      {"partition_by_conditions: a reduction", dense, Nothing,
       [](Schedule& s) { s.PartitionByConditions(L(s, "matmul", 2)); }, "loop k (8) around block \"matmul\"",
       "without a reduction"},
      {"partition_by_conditions: two blocks", small, under_row,
       [](Schedule& s) { s.PartitionByConditions(L(s, "tanh", 0)); }, "loop i0 (6) around block \"add\", \"tanh\"",
       "a single block"},
      {"parallel: a reduction", sum, Nothing, [](Schedule& s) { s.Parallel(L(s, "sum", 1)); },
       "loop k (8) around block \"sum\"", "iterations depend on each other"},
      {"parallel: a loop that has a kind", dense, parallel("relu"), parallel("relu"),
       "loop i0 (13) around block \"relu\"", "has a kind already"},
      {"vectorize: a symbolic extent", chain,
       [](Schedule& s) {
         s.Reorder({L(s, "mul", 1), L(s, "mul", 0)});
       },
       [](Schedule& s) { s.Vectorize(L(s, "mul", 1)); }, "loop i0 (n) around block \"mul\"", "not constant"},
      {"vectorize: too many lanes", testing::ElementwiseChain(Int64(2), Int64(2000)), Nothing,
       [](Schedule& s) { s.Vectorize(L(s, "mul", 1)); }, "loop i1 (2000) around block \"mul\"", "not in 1..1024"},
      {"vectorize: an outer loop", dense, Nothing, [](Schedule& s) { s.Vectorize(L(s, "relu", 0)); },
       "loop i0 (13) around block \"relu\"", "innermost"},
      {"vectorize: a reduction with its start", sum, Nothing, [](Schedule& s) { s.Vectorize(L(s, "sum", 1)); },
       "loop k (8) around block \"sum\"", "it reduces"},
      {"unroll: a symbolic extent", chain, Nothing, [](Schedule& s) { s.Unroll(L(s, "mul", 0)); },
       "loop i0 (n) around block \"mul\"", "not constant"},
      {"unroll: a loop that has a kind", dense, parallel("relu"), [](Schedule& s) { s.Unroll(L(s, "relu", 0)); },
       "loop i0 (13) around block \"relu\"", "has a kind already"},
      {"bind: an axis that does not exist", dense, Nothing, [](Schedule& s) { s.Bind(L(s, "relu", 0), "threadIdx.w"); },
       "loop i0 (13) around block \"relu\"", "no thread axis \"threadIdx.w\""},
      {"bind: a reduction", sum, Nothing, [](Schedule& s) { s.Bind(L(s, "sum", 1), "threadIdx.x"); },
       "loop k (8) around block \"sum\"", "it reduces"},
      {"bind: one axis twice", dense, [](Schedule& s) { s.Bind(L(s, "relu", 0), "threadIdx.x"); },
       [](Schedule& s) { s.Bind(L(s, "relu", 1), "threadIdx.x"); }, "loop i1 (200) around block \"relu\"",
       "is threadIdx.x already"},
      {"bind: an axis of two extents in one nest", dense,
       [](Schedule& s) {
         s.ComputeAt(s.GetBlock("add"), L(s, "relu", 0));
         s.Bind(s.Split(L(s, "relu", 1), {{}, int64_t{8}})[1], "threadIdx.x");
       },
       [](Schedule& s) { s.Bind(L(s, "add", 1), "threadIdx.x"); }, "block \"add\"", "threadIdx.x has another extent"},
      {"bind: a parallel loop", dense, parallel("relu"), [](Schedule& s) { s.Bind(L(s, "relu", 0), "threadIdx.x"); },
       "loop i0 (13) around block \"relu\"", "has a kind already"},
      {"sample_perfect_tile: a symbolic extent", chain, Nothing,
       [](Schedule& s) { s.SamplePerfectTile(L(s, "mul", 0), 2, 16); }, "loop i0 (n) around block \"mul\"",
       "a constant extent"},
      {"sample_categorical: nothing to choose from", chain, Nothing, [](Schedule& s) { s.SampleCategorical({}, 0); },
       "sample_categorical", "no candidates"},
      {"get_block: no such block", dense, Nothing, [](Schedule& s) { s.GetBlock("C"); }, "no block \"C\"",
       "the function has matmul, add, relu"},
  };
}

std::vector<Illegal> BlockCases() {
  const ir::PrimFunc dense = Dense(Int64(13), Int64(8), Int64(200), true);
  const ir::PrimFunc plain = Dense(Int64(12), Int64(8), Int64(32), false);
  const ir::PrimFunc small = testing::ElementwiseChain(Int64(6), Int64(8));
  const ir::PrimFunc softmax = testing::Softmax(Int64(4), Int64(10));
  const ir::PrimFunc mean = testing::GlobalMean(Int64(4), Int64(6));
  const ir::PrimFunc sum = testing::RowSum(Int64(4), Int64(8));
  const auto decomposed = [](Schedule& s) {
    TileForGemm(s, 6, 16);
    s.DecomposeReduction(s.GetBlock("matmul"), L(s, "matmul", 0));
  };
  return {
      {"compute_at: it writes a parameter", dense, Nothing,
       [](Schedule& s) { s.ComputeAt(s.GetBlock("relu"), L(s, "matmul", 0)); },
       "block \"relu\" under loops i0 (13), i1 (200)", "writes the parameter relu"},
      {"compute_at: a reader outside of the loop", softmax, Nothing,
       [](Schedule& s) { s.ComputeAt(s.GetBlock("exp"), L(s, "norm", 0)); }, "block \"exp\"",
       "block \"sum\" reads it outside of loop i0"},
      {"compute_at: it is there already", small, [](Schedule& s) { s.ComputeAt(s.GetBlock("add"), L(s, "tanh", 0)); },
       [](Schedule& s) { s.ComputeAt(s.GetBlock("add"), L(s, "tanh", 0)); }, "block \"add\"", "under loop i0 already"},
      {"compute_at: under a vector", small, [](Schedule& s) { s.Vectorize(L(s, "tanh", 1)); },
       [](Schedule& s) { s.ComputeAt(s.GetBlock("add"), L(s, "tanh", 1)); }, "block \"add\"", "vectorized or unrolled"},
      {"compute_at: its own loops have kinds", small, [](Schedule& s) { s.Parallel(L(s, "add", 0)); },
       [](Schedule& s) { s.ComputeAt(s.GetBlock("add"), L(s, "tanh", 0)); }, "block \"add\"", "have kinds"},
      {"compute_at: nothing there reads it", softmax, Nothing,
       [](Schedule& s) { s.ComputeAt(s.GetBlock("sum"), L(s, "max", 0)); }, "block \"sum\"",
       "block \"norm\" reads it outside of loop i0"},
      {"reverse_compute_at: the result is not complete there", dense, Nothing,
       [](Schedule& s) { s.ReverseComputeAt(s.GetBlock("add"), L(s, "matmul", 2)); }, "block \"add\"",
       "loop k reduces in block \"matmul\""},
      {"reverse_compute_at: nothing that it reads is made there", small, Nothing,
       [](Schedule& s) { s.ReverseComputeAt(s.GetBlock("tanh"), L(s, "mul", 0)); }, "block \"tanh\"",
       "nothing it reads is written there"},
      {"reverse_compute_at: a reduction", softmax, Nothing,
       [](Schedule& s) { s.ReverseComputeAt(s.GetBlock("sum"), L(s, "exp", 0)); }, "block \"sum\"",
       "it is a reduction"},
      {"reverse_compute_at: under an unrolled loop", small, [](Schedule& s) { s.Unroll(L(s, "add", 0)); },
       [](Schedule& s) { s.ReverseComputeAt(s.GetBlock("tanh"), L(s, "add", 0)); }, "block \"tanh\"",
       "vectorized or unrolled"},
      {"recompute_for: no consumer", small, Nothing,
       [](Schedule& s) { s.RecomputeFor(s.GetBlock("mul"), s.GetBlock("tanh")); }, "block \"mul\"",
       "not the only source of what tanh reads"},
      {"recompute_for: a result of the function", small, Nothing,
       [](Schedule& s) { s.RecomputeFor(s.GetBlock("tanh"), s.GetBlock("add")); }, "block \"tanh\"",
       "does not write one intermediate buffer"},
      {"compute_inline: a reduction", dense, Nothing, [](Schedule& s) { s.ComputeInline(s.GetBlock("matmul")); },
       "block \"matmul\" under loops i0 (13), i1 (200), k (8)", "not one plain store"},
      {"compute_inline: it writes a parameter", dense, Nothing,
       [](Schedule& s) { s.ComputeInline(s.GetBlock("relu")); }, "block \"relu\"", "it writes a parameter"},
      {"compute_inline: a part of the loop is cut off", small, [](Schedule& s) { s.LoopPartition(L(s, "mul", 0), 4); },
       [](Schedule& s) { s.ComputeInline(s.GetBlock("mul")); }, "block \"mul\"", "other blocks write the same buffer"},
      {"compute_inline: under a predicate", small,
       [](Schedule& s) {
         s.Split(L(s, "mul", 0), {kRest, int64_t{4}});
       },
       [](Schedule& s) { s.ComputeInline(s.GetBlock("mul")); }, "block \"mul\"", "bindings are not simple"},
      {"compute_inline: into a micro-kernel", Dense(Int64(6), Int64(8), Int64(16), false),
       [](Schedule& s) {
         s.CacheRead(s.GetBlock("matmul"), 0, "global");
         s.DecomposeReduction(s.GetBlock("matmul"), L(s, "matmul", 0));
         s.Tensorize(L(s, "matmul", 0), "gemm_f32_6x16_v8");
       },
       [](Schedule& s) { s.ComputeInline(s.GetBlock("A_global")); }, "block \"A_global\"",
       "its reader \"matmul\" holds loops of its own"},
      {"reverse_compute_inline: a reduction", sum, Nothing,
       [](Schedule& s) { s.ReverseComputeInline(s.GetBlock("sum")); }, "block \"sum\"", "not one plain store"},
      {"reverse_compute_inline: into a reduction", dense, Nothing,
       [](Schedule& s) { s.ReverseComputeInline(s.GetBlock("add")); }, "block \"add\"",
       "no input is made by one plain store"},
      {"read_at: no such input", dense, Nothing,
       [](Schedule& s) { s.ReadAt(L(s, "matmul", 2), s.GetBlock("matmul"), 7, "shared"); }, "block \"matmul\"",
       "it has no input 7"},
      {"read_at: a loop of another block", dense, Nothing,
       [](Schedule& s) { s.ReadAt(L(s, "relu", 0), s.GetBlock("matmul"), 0, "shared"); }, "block \"matmul\"",
       "loop i0 is not around it"},
      {"read_at: what the loop writes", softmax,
       [](Schedule& s) { s.ReverseComputeAt(s.GetBlock("exp"), L(s, "max", 0)); },
       [](Schedule& s) { s.ReadAt(L(s, "exp", 0), s.GetBlock("exp"), 1, "shared"); }, "read_at: block \"exp\"",
       "is written under the same loops"},
      {"write_at: under a loop that sums", dense, Nothing,
       [](Schedule& s) { s.WriteAt(L(s, "matmul", 2), s.GetBlock("matmul"), 0, "local"); },
       "write_at: block \"matmul\"", "reduces in block \"matmul\""},
      {"reindex: a word that is neither", dense, Nothing,
       [](Schedule& s) { s.Reindex(s.GetBlock("matmul"), 0, "both"); }, "block \"matmul\"",
       "needs \"read\" or \"write\""},
      {"reindex: a place that may be outside", testing::Pad(Int64(5), 3), Nothing,
       [](Schedule& s) { s.Reindex(s.GetBlock(s.state().Blocks()[0].block().name), 0, "read"); }, "reindex: block",
       "is not proved to be inside of"},
      {"reindex: a place that a load chooses", Chosen(), Nothing,
       [](Schedule& s) { s.Reindex(s.GetBlock("take"), 0, "read"); }, "reindex: block \"take\"",
       "iterations alone do not choose the place"},
      {"reindex: several places", Neighbours(), Nothing, [](Schedule& s) { s.Reindex(s.GetBlock("pair"), 0, "read"); },
       "reindex: block \"pair\"", "several places"},
      {"cache_index: a scope that is none", dense, Nothing,
       [](Schedule& s) { s.CacheIndex(s.GetBlock("matmul"), "disk", 0); }, "block \"matmul\"",
       "unknown scope \"disk\""},
      {"blockize: a sum that goes on", dense,
       [](Schedule& s) {
         s.Split(L(s, "matmul", 2), {kRest, int64_t{4}});
       },
       [](Schedule& s) { s.Blockize(L(s, "matmul", 3)); }, "around block \"matmul\"", "goes on outside of the nest"},
      {"blockize: a rest", dense,
       [](Schedule& s) {
         s.Split(L(s, "matmul", 0), {kRest, int64_t{4}});
       },
       [](Schedule& s) { s.Blockize(L(s, "matmul", 1)); }, "around block \"matmul\"", "has a predicate"},
      {"blockize: what is blockized", dense, [](Schedule& s) { s.Blockize(L(s, "relu", 1)); },
       [](Schedule& s) { s.Blockize(L(s, "relu_o", 0)); }, "around block \"relu_o\"", "holds loops already"},
      {"cache_read: no such input", dense, Nothing, [](Schedule& s) { s.CacheRead(s.GetBlock("matmul"), 7, "local"); },
       "block \"matmul\"", "it has no input 7"},
      {"cache_read: an unknown scope", dense, Nothing,
       [](Schedule& s) { s.CacheRead(s.GetBlock("matmul"), 0, "moon"); }, "block \"matmul\"", "unknown scope \"moon\""},
      {"cache_read: written under the same loops", small,
       [](Schedule& s) { s.ComputeAt(s.GetBlock("add"), L(s, "tanh", 0)); },
       [](Schedule& s) { s.CacheRead(s.GetBlock("tanh"), 0, "local"); }, "block \"tanh\"",
       "written under the same loops"},
      {"cache_write: no such output", dense, Nothing,
       [](Schedule& s) { s.CacheWrite(s.GetBlock("matmul"), 1, "local"); }, "block \"matmul\"", "it has no output 1"},
      {"cache_write: another block writes a part", dense, [](Schedule& s) { s.LoopPartition(L(s, "matmul", 0), 4); },
       [](Schedule& s) { s.CacheWrite(s.GetBlock("matmul"), 0, "local"); }, "block \"matmul\"",
       "does not write all of"},
      {"set_scope: a parameter", dense, Nothing, [](Schedule& s) { s.SetScope(s.GetBlock("relu"), 0, "local"); },
       "block \"relu\"", "relu is a parameter"},
      {"set_scope: an unknown scope", dense, Nothing, [](Schedule& s) { s.SetScope(s.GetBlock("matmul"), 0, "L4"); },
       "block \"matmul\"", "unknown scope \"L4\""},
      {"storage_align: a parameter", dense, Nothing,
       [](Schedule& s) { s.StorageAlign(s.GetBlock("relu"), 0, 0, 32, 1); }, "block \"relu\"", "relu is a parameter"},
      {"storage_align: the last axis", dense, Nothing,
       [](Schedule& s) { s.StorageAlign(s.GetBlock("matmul"), 0, 1, 32, 1); }, "block \"matmul\"", "the last but one"},
      {"storage_align: an offset of a whole factor", dense, Nothing,
       [](Schedule& s) { s.StorageAlign(s.GetBlock("matmul"), 0, 0, 32, 32); }, "block \"matmul\"",
       "an offset below it"},
      {"transform_layout: a parameter", dense, Nothing,
       [](Schedule& s) {
         s.TransformLayout(s.GetBlock("relu"), 0, PermutingMap({1, 0}));
       },
       "block \"relu\"", "relu is a parameter"},
      {"transform_layout: an axis twice", dense, Nothing,
       [](Schedule& s) {
         s.TransformLayout(s.GetBlock("matmul"), 0, PermutingMap({1, 1}));
       },
       "block \"matmul\"", "the new layout of matmul: the new dimensions do not hold all of dimension 0"},
      {"transform_layout: another rank", dense, Nothing,
       [](Schedule& s) {
         s.TransformLayout(s.GetBlock("matmul"), 0, PermutingMap({2, 1, 0}));
       },
       "block \"matmul\"", "the map is of 3 dimensions, the buffer has 2"},
      {"transform_layout: a block that does not divide what stands below others", dense, Nothing,
       [](Schedule& s) {
         s.TransformLayout(s.GetBlock("matmul"), 0, MakeIndexMap(2, [](const std::vector<PrimExpr>& i) {
                             const PrimExpr place = i[0] * Int64(200) + i[1];
                             return std::vector<PrimExpr>{FloorDiv(place, Int64(16)), FloorMod(place, Int64(16))};
                           }));
       },
       "block \"matmul\"",
       "16 does not divide dimension 1 (200); a dimension of unknown length, or within others, is not padded"},
      {"transform_layout: blocks of a remainder", dense, Nothing,
       [](Schedule& s) {
         s.TransformLayout(s.GetBlock("matmul"), 0, MakeIndexMap(2, [](const std::vector<PrimExpr>& i) {
           return std::vector<PrimExpr>{i[0], FloorDiv(FloorMod(i[1], Int64(199)), Int64(100)),
                                        FloorMod(i[1], Int64(100))};  // 99 and 199 lie at one place
         }));
       },
       "block \"matmul\"",
       "100 does not divide dimension 1 (199); a dimension of unknown length, or within others, is not padded"},
      {"transform_layout: a block of symbolic rows", Dense(testing::N(), Int64(8), Int64(20), true), Nothing,
       [](Schedule& s) { s.TransformLayout(s.GetBlock("matmul"), 0, Blocked(0, 4)); }, "block \"matmul\"",
       "4 does not divide dimension 0 (n)"},
      {"transform_layout: one place for two elements", dense, Nothing,
       [](Schedule& s) {
         const auto diagonal = [](const std::vector<PrimExpr>& i) { return std::vector<PrimExpr>{i[0] + i[1]}; };
         s.TransformLayout(s.GetBlock("matmul"), 0, MakeIndexMap(2, diagonal));
       },
       "block \"matmul\"", "leaves out places, or gives one to two elements"},
      {"transform_layout: a part is there twice", dense, Nothing,
       [](Schedule& s) {
         const auto twice = [](const std::vector<PrimExpr>& i) {
           return std::vector<PrimExpr>{i[0], i[1], FloorMod(i[1], Int64(8))};
         };
         s.TransformLayout(s.GetBlock("matmul"), 0, MakeIndexMap(2, twice));
       },
       "block \"matmul\"", "a part of dimension 1 is there twice"},
      {"transform_layout: no index", dense, Nothing,
       [](Schedule& s) {
         const auto half = [](const std::vector<PrimExpr>& i) {
           return std::vector<PrimExpr>{i[0], Max(i[1], Int64(8))};
         };
         s.TransformLayout(s.GetBlock("matmul"), 0, MakeIndexMap(2, half));
       },
       "block \"matmul\"", "is no index, and no quotient, remainder or sum of indices"},
      {"transform_layout: after storage_align", dense,
       [](Schedule& s) { s.StorageAlign(s.GetBlock("matmul"), 0, 0, 32, 1); },
       [](Schedule& s) { s.TransformLayout(s.GetBlock("matmul"), 0, Blocked(1, 8)); }, "block \"matmul\"",
       "storage_align has fixed the dimensions of matmul"},
      {"cache_read: a consumer that does not read it", dense, Nothing,
       [](Schedule& s) { s.CacheRead(s.GetBlock("matmul"), 0, "global", {s.GetBlock("relu")}); }, "block \"relu\"",
       "it does not read A"},
      {"decompose_reduction: nothing starts", dense, Nothing,
       [](Schedule& s) { s.DecomposeReduction(s.GetBlock("relu"), L(s, "relu", 0)); }, "block \"relu\"",
       "no initialisation"},
      {"decompose_reduction: a loop of another block", dense, Nothing,
       [](Schedule& s) { s.DecomposeReduction(s.GetBlock("matmul"), L(s, "relu", 0)); }, "block \"matmul\"",
       "loop i0 is not around it"},
      {"decompose_reduction: inside of a reduction", mean, Nothing,
       [](Schedule& s) { s.DecomposeReduction(s.GetBlock("sum"), L(s, "sum", 1)); },
       "block \"sum\" under loops r (4), k (6)", "loop r outside of k is a reduction loop"},
      {"rfactor: a spatial loop", dense, Nothing, [](Schedule& s) { s.RFactor(L(s, "matmul", 0)); }, "block \"matmul\"",
       "loop i0 is not a reduction loop"},
      {"rfactor: no reduction", dense, Nothing, [](Schedule& s) { s.RFactor(L(s, "relu", 0)); }, "block \"relu\"",
       "no reduction by +, *, min or max"},
      {"rfactor: loops have kinds", sum, [](Schedule& s) { s.Parallel(L(s, "sum", 0)); },
       [](Schedule& s) { s.RFactor(L(s, "sum", 1)); }, "block \"sum\"", "have kinds already"},
      {"pad_einsum: a multiple is missing", dense, Nothing,
       [](Schedule& s) {
         s.PadEinsum(s.GetBlock("matmul"), {6, 16});
       },
       "block \"matmul\"", "each of its 3 iterations"},
      {"pad_einsum: a multiple of 0", dense, Nothing,
       [](Schedule& s) {
         s.PadEinsum(s.GetBlock("matmul"), {6, 16, 0});
       },
       "block \"matmul\"", "at least 1"},
      {"pad_einsum: no sum of products", dense, Nothing,
       [](Schedule& s) {
         s.PadEinsum(s.GetBlock("relu"), {6, 16});
       },
       "block \"relu\"", "no sum of products"},
      {"pad_einsum: nothing to pad", plain, Nothing,
       [](Schedule& s) {
         s.PadEinsum(s.GetBlock("matmul"), {6, 16, 8});
       },
       "block \"matmul\"", "nothing is to be padded"},
      {"pad_einsum: the loops were split", dense,
       [](Schedule& s) {
         s.Split(L(s, "matmul", 0), {kRest, int64_t{4}});
       },
       [](Schedule& s) {
         s.PadEinsum(s.GetBlock("matmul"), {6, 16, 1});
       },
       "block \"matmul\"", "pad first"},
      {"pad_einsum: half a panel", PanelProduct(Int64(13)), Nothing,
       [](Schedule& s) {
         s.PadEinsum(s.GetBlock("matmul"), {1, 24, 1});
       },
       "block \"matmul\"", "B is not indexed by iteration variables alone"},
      {"fuse_einsum: a group is missing", dense, Nothing,
       [](Schedule& s) {
         s.FuseEinsum(s.GetBlock("matmul"), {0, 1, 2}, {0, 0, 0}, {1, 1}, {6, 16});
       },
       "block \"matmul\"", "groups and iterations differ"},
      {"fuse_einsum: a multiple of 0", dense, Nothing,
       [](Schedule& s) {
         s.FuseEinsum(s.GetBlock("matmul"), {0, 1, 2}, {0, 0, 0}, {1, 1, 1}, {6, 16, 0});
       },
       "block \"matmul\"", "one multiple of at least 1"},
      {"fuse_einsum: rows and sum", dense, Nothing,
       [](Schedule& s) {
         s.FuseEinsum(s.GetBlock("matmul"), {0, 2, 1}, {0, 0, 0}, {2, 1}, {6, 16});
       },
       "block \"matmul\"", "of results and of summands"},
      {"fuse_einsum: an iteration in two groups", dense, Nothing,
       [](Schedule& s) {
         s.FuseEinsum(s.GetBlock("matmul"), {0, 1, 2, 1}, {0, 0, 0, 0}, {1, 1, 1, 1}, {6, 16, 1, 1});
       },
       "block \"matmul\"", "is not in one group, nor cut by a divisor"},
      {"fuse_einsum: cut by no divisor", plain, Nothing,
       [](Schedule& s) {
         s.FuseEinsum(s.GetBlock("matmul"), {0, 0, 1, 2}, {5, -5, 0, 0}, {1, 1, 1, 1}, {1, 1, 1, 1});
       },
       "block \"matmul\"", "is not in one group, nor cut by a divisor"},
      {"fuse_einsum: no sum of products", dense, Nothing,
       [](Schedule& s) {
         s.FuseEinsum(s.GetBlock("relu"), {0, 1}, {0, 0}, {1, 1}, {6, 16});
       },
       "block \"relu\"", "no sum of products"},
      {"fuse_einsum: the loops were split", dense,
       [](Schedule& s) {
         s.Split(L(s, "matmul", 0), {kRest, int64_t{4}});
       },
       [](Schedule& s) {
         s.FuseEinsum(s.GetBlock("matmul"), {0, 1, 2}, {0, 0, 0}, {1, 1, 1}, {6, 16, 1});
       },
       "block \"matmul\"", "fuse first"},
      {"fuse_iters: results and summands in one", dense, Nothing,
       [](Schedule& s) {
         s.FuseIters(s.GetBlock("matmul"), {0, 1, 2}, {0, 0, 0}, {1, 2});
       },
       "block \"matmul\"", "a group is of results and of summands"},
      {"fuse_iters: no such iteration", dense, Nothing,
       [](Schedule& s) {
         s.FuseIters(s.GetBlock("relu"), {0, 2}, {0, 0}, {2});
       },
       "block \"relu\"", "it has no iteration 2"},
      {"fuse_iters: the loops were split", dense,
       [](Schedule& s) {
         s.Split(L(s, "relu", 0), {kRest, int64_t{4}});
       },
       [](Schedule& s) {
         s.FuseIters(s.GetBlock("relu"), {0, 1}, {0, 0}, {2});
       },
       "block \"relu\"", "fuse first"},
      {"tensorize: no such intrinsic", plain, Nothing, [](Schedule& s) { s.Tensorize(L(s, "matmul", 0), "gemm"); },
       "loop i0 (12) around block \"matmul\"", "no intrinsic \"gemm\" is registered"},
      {"tensorize: another number of loops", plain, decomposed,
       [](Schedule& s) { s.Tensorize(L(s, "matmul", 1), "gemm_f32_6x16_v8"); }, "around block \"matmul\"",
       "has 3 loops, the nest 4"},
      {"tensorize: another extent", plain, decomposed,
       [](Schedule& s) { s.Tensorize(L(s, "matmul", 2), "gemm_f32_4x16_v8"); }, "around block \"matmul\"",
       "should have the extent 4"},
      {"tensorize: the block starts the reduction itself", plain, [](Schedule& s) { TileForGemm(s, 6, 16); },
       [](Schedule& s) { s.Tensorize(L(s, "matmul", 2), "gemm_f32_6x16_v8"); }, "around block \"matmul\"",
       "use decompose_reduction first"},
      {"tensorize: tiles that reach over the end", dense,
       [](Schedule& s) {
         TileForGemm(s, 6, 16);
         s.DecomposeReduction(s.GetBlock("matmul"), L(s, "matmul", 0));
       },
       [](Schedule& s) { s.Tensorize(L(s, "matmul", 2), "gemm_f32_6x16_v8"); }, "around block \"matmul\"",
       "has a predicate"},
      {"tensorize: something else is computed", testing::BatchedMatmul(Int64(6), Int64(16), Int64(3), Int64(1)),
       [](Schedule& s) {
         s.DecomposeReduction(s.GetBlock("matmul"), L(s, "matmul", 0));
         s.Fuse({L(s, "matmul", 2), L(s, "matmul", 3)});
       },
       [](Schedule& s) { s.Tensorize(L(s, "matmul", 0), "gemm_f32_6x16_v8"); }, "around block \"matmul\"", "intrinsic"},
      {"tensorize: a loop that has a kind", plain,
       [](Schedule& s) {
         TileForGemm(s, 6, 16);
         s.DecomposeReduction(s.GetBlock("matmul"), L(s, "matmul", 0));
         s.Unroll(L(s, "matmul", 2));
       },
       [](Schedule& s) { s.Tensorize(L(s, "matmul", 2), "gemm_f32_6x16_v8"); }, "around block \"matmul\"",
       "no longer serial"},
      {"vectorize: around a micro-kernel", plain,
       [decomposed](Schedule& s) {
         decomposed(s);
         s.Tensorize(L(s, "matmul", 2), "gemm_f32_6x16_v8");
       },
       [](Schedule& s) { s.Vectorize(L(s, "matmul", 1)); }, "around block \"matmul\"", "holds loops of its own"},
  };
}

void Check(const Illegal& c) {
  Schedule s = Schedule::Create(c.function).value();
  c.legal(s);
  REQUIRE_MESSAGE(s.status().ok(), s.status().message());
  const ir::PrimFunc before = s.function();
  c.illegal(s);
  REQUIRE_FALSE(s.status().ok());
  const std::string message = s.status().message();
  CAPTURE(message);
  CHECK(message.find(c.place) != std::string::npos);
  CHECK(message.find(c.reason) != std::string::npos);
  CHECK(ir::StructuralEqual(ir::Expr(before), ir::Expr(s.function()), true));
}

TEST_CASE("illegal schedules of loops are refused") {
  for (const Illegal& c : LoopCases()) {
    SUBCASE(c.name) { Check(c); }
  }
}

TEST_CASE("illegal schedules of blocks are refused") {
  for (const Illegal& c : BlockCases()) {
    SUBCASE(c.name) { Check(c); }
  }
}

TEST_CASE("at least forty kinds of illegal schedules are refused") {
  CHECK(LoopCases().size() + BlockCases().size() >= 40);
}

TEST_CASE("a handle to a loop that is gone is refused by the loop's name") {
  Schedule s = Schedule::Create(testing::RowSum(Int64(4), Int64(8))).value();
  const LoopRVs loops = LoopsOf(s, "sum");
  s.Split(loops[0], {kRest, int64_t{2}});
  REQUIRE(s.status().ok());
  s.Parallel(loops[0]);
  CHECK(s.status().message() == "loop i0 is gone: a later primitive replaced it");
}

}  // namespace
}  // namespace ingot::schedule
