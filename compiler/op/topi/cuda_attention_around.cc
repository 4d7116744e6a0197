// What runs before and behind the tiles of attention: a search for what is not finite, and the join of splits.
#include <algorithm>
#include <numbers>

#include "compiler/op/topi/attention_scores.h"
#include "compiler/op/topi/attention_statements.h"
#include "compiler/op/topi/cuda_attention.h"

namespace ingot::op::topi {

using namespace statements;  // NOLINT

namespace {

constexpr int64_t kAroundThreads = 128, kAroundGroups = 8;

PrimExpr ZeroNumber() { return ir::MakeConst(kFloat32, 0); }

// Adds 0 * element to the thread's sum, of its share of the elements at the positions from `first` to `end`.
Stmt SearchOperand(const Buffer& partial, const Buffer& from, size_t operand, const AttentionConfig& config,
                   const PrimExpr& first, const PrimExpr& end, const PrimExpr& head, const PrimExpr& t) {
  const std::string& layout = config.layouts[operand];
  const int64_t depth = *ir::AsConstInt(operand == 1 ? config.depth : config.value_depth);
  const int64_t lanes = layout.back() == 'H' && depth % kCudaSquareChunk == 0 ? kCudaSquareChunk : 1;
  const Buffer sums = Local("sums", {Int64(lanes)});
  const auto each = [&](const Body& body) { return Vector(lanes, body); };
  const PrimExpr rounds = CeilDiv((end - first) * (depth / lanes) - t, kAroundThreads);
  const Stmt add = Serial("round", ir::Max(rounds, Int64(0)), [&](const PrimExpr& round) {
    const PrimExpr piece = round * kAroundThreads + t;
    const PrimExpr position = first + ir::FloorDiv(piece, Int64(depth / lanes));
    const PrimExpr h = ir::FloorMod(piece, Int64(depth / lanes)) * lanes;
    return each([&](const PrimExpr& x) {
      const PrimExpr element = Load(from, AttentionIndices(layout, ir::FloorDiv(head, config.num_key_heads), position,
                                                           ir::FloorMod(head, config.num_key_heads), h + x));
      return Store(sums, Load(sums, {x}) + ir::Cast(kFloat32, element) * ZeroNumber(), {x});
    });
  });
  PrimExpr all = Load(partial, {t});
  for (int64_t x = 0; x < lanes; ++x) all = all + Load(sums, {Int64(x)});
  const Stmt clear = each([&](const PrimExpr& x) { return Store(sums, ZeroNumber(), {x}); });
  return Allocate(sums, Seq({clear, add, Store(partial, all, {t})}));
}

}  // namespace

PrimExpr CudaExp(const PrimExpr& x) {
  return ir::CallIntrinsic(ir::Intrinsic::kExp2, {x * ir::MakeConst(kFloat32, std::numbers::log2e)});
}

Stmt SearchCudaOperands(const std::vector<Buffer>& inputs, const AttentionConfig& config, const Buffer& poison) {
  const Buffer partial = ir::MakeBuffer("partial", kFloat32, {Int64(kAroundThreads)}, "shared");
  const Buffer groups = ir::MakeBuffer("groups", kFloat32, {Int64(kAroundGroups)}, "shared");
  const PrimExpr count = CeilDiv(config.num_keys, kCudaSearches);
  return OverBlocks(config.batch * config.num_key_heads * kCudaSearches, [&](const PrimExpr& block) {
    const PrimExpr part = ir::FloorMod(block, Int64(kCudaSearches)), head = ir::FloorDiv(block, Int64(kCudaSearches));
    const Stmt search = OverThreads(kAroundThreads, [&](const PrimExpr& t) {
      const PrimExpr first = part * count, end = ir::Min(first + count, config.num_keys);
      std::vector<Stmt> stmts = {Store(partial, ZeroNumber(), {t}),
                                 SearchOperand(partial, inputs[2], 2, config, first, end, head, t)};
      if (config.hidden_keys_show()) stmts.push_back(SearchOperand(partial, inputs[1], 1, config, first, end, head, t));
      return Seq(std::move(stmts));
    });
    const Stmt join_groups = OverThreads(kAroundThreads, [&](const PrimExpr& t) {
      PrimExpr sum = ZeroNumber();
      for (int64_t i = 0; i < kAroundThreads / kAroundGroups; ++i)
        sum = sum + Load(partial, {t * (kAroundThreads / kAroundGroups) + i});
      return If(t < Int64(kAroundGroups), Store(groups, sum, {t}));
    });
    const Stmt join = OverThreads(kAroundThreads, [&](const PrimExpr& t) {
      PrimExpr sum = ZeroNumber();
      for (int64_t i = 0; i < kAroundGroups; ++i) sum = sum + Load(groups, {Int64(i)});
      return If(t < Int64(1), Store(poison, sum, {head, part}));
    });
    return Allocate(partial, Allocate(groups, Seq({search, join_groups, join})));
  });
}

// A thread for each element: the splits' sums and results are brought to the greatest score of all of them.
Stmt JoinCudaSplits(const Buffer& results, const Buffer& rows, const Buffer& out, const AttentionConfig& config,
                    const CudaAttentionTile& tile, bool has_bias, const PrimExpr& condition) {
  const PrimExpr count = config.batch * config.num_heads * config.num_queries * config.value_depth;
  PrimExpr blocks = CeilDiv(count, kAroundThreads);
  if (condition) blocks = ir::Select(condition, blocks, Int64(0));
  const PrimExpr num_tiles = CeilDiv(config.num_queries, tile.rows);
  return OverBlocks(blocks, [&](const PrimExpr& block) {
    return OverThreads(kAroundThreads, [&](const PrimExpr& t) {
      const PrimExpr number = block * kAroundThreads + t;
      const PrimExpr element = ir::FloorMod(number, config.value_depth);
      const PrimExpr of_query = ir::FloorDiv(number, config.value_depth);
      const PrimExpr query = ir::FloorMod(of_query, config.num_queries);
      const PrimExpr of_head = ir::FloorDiv(of_query, config.num_queries);  // of the batch's heads
      PrimExpr of_tiles = ir::FloorDiv(query, Int64(tile.rows));
      if (config.causal != CausalMask::kNone) of_tiles = num_tiles - 1 - of_tiles;
      const auto at = [&](int64_t split, const PrimExpr& place) {
        return te::Indices{of_head * num_tiles + of_tiles, Int64(split), ir::FloorMod(query, Int64(tile.rows)), place};
      };
      const Buffer all = Local("all", {Int64(4)});  // the greatest score, what is subtracted, the sum, the result
      const auto of = [&](int64_t place) { return Load(all, {Int64(place)}); };
      const auto set = [&](int64_t place, PrimExpr value) { return Store(all, std::move(value), {Int64(place)}); };
      std::vector<Stmt> stmts;
      PrimExpr greatest = MinusInfinity(kFloat32), sum = ZeroNumber(), result = ZeroNumber();
      for (int64_t split = 0; split < tile.splits; ++split) {
        greatest = ir::Max(greatest, Load(rows, at(split, Int64(0))));
      }
      stmts.push_back(set(0, greatest));
      stmts.push_back(set(1, Shift(of(0))));
      for (int64_t split = 0; split < tile.splits; ++split) {
        const PrimExpr factor = CudaExp(Load(rows, at(split, Int64(0))) - of(1));
        sum = sum + factor * Load(rows, at(split, Int64(1)));
        result = result + factor * Load(results, at(split, element));
      }
      stmts.push_back(set(2, sum));
      stmts.push_back(set(3, result));
      PrimExpr is_masked;
      if (config.may_mask(has_bias)) is_masked = ir::Equal(Load(rows, at(0, Int64(2))), MinusInfinity(kFloat32));
      const PrimExpr value = of(3) * Inverse(config, of(2), is_masked);
      stmts.push_back(Store(out, ir::Cast(out->dtype, value),
                            AttentionIndices(config.layouts[3], ir::FloorDiv(of_head, config.num_heads), query,
                                             ir::FloorMod(of_head, config.num_heads), element)));
      return If(number < count, Allocate(all, Seq(std::move(stmts))));
    });
  });
}

}  // namespace ingot::op::topi
