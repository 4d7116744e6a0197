// An axis of the result belongs to the factors that move along it. One along which a factor moves in steps, as a group of
// output channels reads the same inputs, is cut there first.
#include "compiler/schedule/rules/cuda_product.h"

#include <algorithm>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/schedule/rules/analysis.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// The numbers by which a variable is divided anywhere in an expression.
class StepFinder : public PrimVisitor {
 public:
  explicit StepFinder(const PrimVar& var) : var_(var) {}
  std::vector<int64_t> steps;

 protected:
  using PrimVisitor::Visit;
  void Visit(const BinaryNode& node) override {
    const auto by = AsConstInt(node.b);
    if (node.op == BinaryOp::kFloorDiv && node.a.get() == var_.get() && by && *by > 1) steps.push_back(*by);
    PrimVisitor::Visit(node);
  }

 private:
  const PrimVar& var_;
};

// Where a factor is read, in simple terms: what has no effect is not there.
using Places = std::vector<PrimExpr>;
Places PlacesOf(const BufferLoadNode& load, const BlockSite& site) {
  arith::Analyzer analyzer;
  for (const IterVar& iter : site.block().iter_vars) analyzer.Bind(iter->var, iter->domain);
  Places places;
  for (const PrimExpr& index : load.indices) places.push_back(analyzer.Simplify(index));
  return places;
}

bool MovesAlong(const Places& places, const PrimVar& var) {
  return std::ranges::any_of(places, [&](const PrimExpr& index) { return UsesVar(index, var); });
}

// The greatest number of values of the iteration through which the factor stands still; 1: it moves with each.
int64_t StepOf(const Places& places, const IterVarNode& iter) {
  StepFinder finder(iter.var);
  for (const PrimExpr& index : places) finder.VisitPrim(index);
  for (const int64_t step : finder.steps) {
    arith::Analyzer analyzer;
    if (!analyzer.ProveDivisible(iter.domain.extent, step)) continue;
    const PrimVar quotient = MakePrimVar("q"), rest = MakePrimVar("r");
    analyzer.Bind(quotient, Range{Int64(0), analyzer.Simplify(FloorDiv(iter.domain.extent, Int64(step)))});
    analyzer.Bind(rest, Range{Int64(0), Int64(step)});
    const PrimExpr value = PrimExpr(quotient) * step + PrimExpr(rest);
    const bool stands_still = std::ranges::none_of(places, [&](const PrimExpr& index) {
      return UsesVar(analyzer.Simplify(Substitute(index, {{iter.var, value}})), rest);
    });
    if (stands_still) return step;
  }
  return 1;
}

bool ReadsElements(const BufferLoadNode& load) { return std::ranges::any_of(load.indices, ReadsMemory); }

// The dimension of the load whose index is the variable alone, or its quotient; -1: there is none.
int PlainDimension(const BufferLoadNode& load, const PrimVar& var) {
  for (size_t d = 0; d < load.indices.size(); ++d) {
    const auto* binary = As<BinaryNode>(load.indices[d]);
    const bool is_quotient = binary != nullptr && binary->op == BinaryOp::kFloorDiv && binary->a.get() == var.get();
    if (load.indices[d].get() == var.get() || is_quotient) return static_cast<int>(d);
  }
  return -1;
}

// In the order in which the elements of the factor lie that has all of them as plain indices: what it reads then is one
// row after the other. As they are where there is no such factor.
void SortSum(const BlockSite& site, std::span<const BufferLoadNode* const> factors, std::vector<ProductAxis>& sum) {
  const auto dimension = [&](const BufferLoadNode& factor, const ProductAxis& axis) {
    return PlainDimension(factor, site.block().iter_vars[static_cast<size_t>(axis.iter)]->var);
  };
  for (const BufferLoadNode* factor : factors) {
    if (!std::ranges::all_of(sum, [&](const ProductAxis& axis) { return dimension(*factor, axis) >= 0; })) continue;
    std::ranges::stable_sort(sum, {}, [&](const ProductAxis& axis) { return dimension(*factor, axis); });
    return;
  }
}

// Whether the value is one element, perhaps under a condition.
bool IsElementOrPadding(const PrimExpr& value) {
  if (const auto* call = As<PrimCallNode>(value); call != nullptr && call->op == Intrinsic::kIfThenElse) {
    return std::all_of(call->args.begin() + 1, call->args.end(), [](const PrimExpr& end) {
      return end->kind == PrimKind::kBufferLoad || end->kind == PrimKind::kFloatImm || end->kind == PrimKind::kIntImm;
    });
  }
  return As<BufferLoadNode>(value) != nullptr;
}

}  // namespace

BlockRV SplitProductSum(Schedule& schedule, BlockRV& product, LoopRV part, BlockRV out, int64_t threads) {
  const BlockRV total = product;
  product = schedule.RFactor(part);
  if (!schedule.status().ok()) return out;
  const auto rank = static_cast<int64_t>(StoreOf(schedule.Block(product)).indices.size());
  std::vector<int64_t> axes{rank - 1};
  for (int64_t d = 0; d + 1 < rank; ++d) axes.push_back(d);
  schedule.TransformLayout(product, 0, PermutingMap(axes));
  const LoopRVs around = schedule.GetLoops(out);
  const LoopRVs elements = schedule.Split(around.size() > 1 ? schedule.Fuse(around) : around[0], {kRest, threads});
  schedule.ComputeAt(total, elements[1]);
  schedule.SetScope(total, 0, "local");
  const LoopRV sum = schedule.GetLoops(total).back();
  schedule.DecomposeReduction(total, sum);
  schedule.Unroll(sum);
  schedule.Bind(elements[0], "blockIdx.x");
  schedule.Bind(elements[1], "threadIdx.x");
  return schedule.CacheWrite(product, 0, "local");
}

void BindTiles(Schedule& schedule, const std::vector<LoopRV>& batch, LoopRV rows, LoopRV columns) {
  constexpr int64_t kMostOfOtherAxes = 65535;
  std::vector<LoopRV> all = batch;
  all.insert(all.end(), {rows, columns});
  const auto extent_of = [&](LoopRV loop) {
    return schedule.status().ok() ? ir::AsConstInt(schedule.Loop(loop).loop->extent) : std::optional<int64_t>();
  };
  const bool is_constant =
      std::all_of(all.begin() + 1, all.end(), [&](LoopRV loop) { return extent_of(loop).has_value(); });
  if (is_constant) return schedule.Bind(schedule.Fuse(all), "blockIdx.x");
  all = {rows, columns};
  if (!batch.empty()) all.insert(all.begin(), batch.size() > 1 ? schedule.Fuse(batch) : batch[0]);
  const auto first = std::find_if(all.begin(), all.end(), [&](LoopRV loop) {
    return extent_of(loop).value_or(kMostOfOtherAxes + 1) > kMostOfOtherAxes;
  });
  if (first != all.end()) std::rotate(all.begin(), first, first + 1);
  const char* axes[] = {"blockIdx.x", "blockIdx.y", "blockIdx.z"};
  for (size_t i = 0; i < all.size(); ++i) schedule.Bind(all[i], axes[i]);
}

void InlineMoves(Schedule& s, BlockRV block) {
  while (s.status().ok()) {
    std::optional<BlockName> move;
    for (const BufferRegion& region : s.Block(block).block().reads) {
      const std::optional<BlockSite> writer = s.state().OnlyWriter(region.buffer);
      if (!s.state().IsAllocated(region.buffer) || !writer || !IsInjective(s.state(), *writer)) continue;
      if (s.state().Readers(region.buffer).size() == 1 && IsElementOrPadding(StoreOf(*writer).value)) {
        move = writer->block().name;
      }
    }
    if (!move) return;
    s.ComputeInline(s.GetBlock(*move));
  }
}

std::optional<int64_t> CountValues(const BlockSite& site, const std::vector<ProductAxis>& axes) {
  int64_t count = 1;
  for (const ProductAxis& axis : axes) {
    std::optional<int64_t> extent = ConstantExtent(*site.block().iter_vars[static_cast<size_t>(axis.iter)]);
    if (!extent && axis.part >= 0) return std::nullopt;
    const int64_t values = axis.part < 0 ? -axis.part : axis.part > 0 ? *extent / axis.part : *extent;
    if (__builtin_mul_overflow(count, values, &count)) return std::nullopt;
  }
  return count;
}

Match<CudaProduct> FindCudaProduct(const BlockSite& site) {
  const std::optional<Reduction> reduction = MatchReduction(site.block());
  std::optional<std::vector<const BufferLoadNode*>> factors;
  if (reduction && reduction->op == BinaryOp::kAdd) factors = FactorsOfProduct(reduction->source);
  if (!factors || factors->size() != 2) return Declined{"it is no sum of products of two loads"};
  const BufferLoadNode &first = *(*factors)[0], &second = *(*factors)[1];
  if (ReadsElements(first) || ReadsElements(second))
    return Declined{"one of its factors is read at places from a table"};
  const Places of_one = PlacesOf(first, site), of_other = PlacesOf(second, site);
  const auto& iters = site.block().iter_vars;
  CudaProduct p;
  std::vector<ProductAxis> of_first, of_second, of_none;
  const auto add = [&](int iter, int64_t part, bool in_first, bool in_second) {
    std::vector<ProductAxis>& axes = in_first && in_second ? p.batch : in_first ? of_first : of_second;
    axes.push_back({iter, part});
  };
  // Axes of the result in its order; those of one value that it does not have come last.
  const BufferStoreNode& store = StoreOf(site);
  std::vector<int> order;
  for (size_t d = 0; d < store.indices.size(); ++d) {
    if (const int iter = IterOfDimension(site, d); iter >= 0) order.push_back(iter);
  }
  for (const int iter : SpatialIters(site)) {
    if (std::ranges::find(order, iter) == order.end()) order.push_back(iter);
  }
  for (const int i : order) {
    const IterVarNode& iter = *iters[static_cast<size_t>(i)];
    const bool in_first = MovesAlong(of_one, iter.var), in_second = MovesAlong(of_other, iter.var);
    const int64_t step_of_first = in_first && in_second ? StepOf(of_one, iter) : 1;
    const int64_t step_of_second = in_first && in_second ? StepOf(of_other, iter) : 1;
    if (step_of_first > 1 && step_of_second > 1) return Declined{"both of its factors are read in steps"};
    const int64_t step = step_of_first > 1 ? step_of_first : step_of_second;
    if (ConstantExtent(iter) == 1) {
      of_none.push_back({i, 0});
    } else if (!in_first && !in_second) {
      return Declined{"its factors are the same for all results along an axis"};
    } else if (step == 1) {
      add(i, 0, in_first, in_second);
    } else {
      add(i, step, true, true);
      add(i, -step, step_of_first == 1, step_of_first > 1);
    }
  }
  for (const int i : ReduceIters(site)) {
    const IterVarNode& iter = *iters[static_cast<size_t>(i)];
    if (ConstantExtent(iter) != 1 && (!MovesAlong(of_one, iter.var) || !MovesAlong(of_other, iter.var))) {
      return Declined{"one of its factors is the same for all summands"};
    }
    p.sum.push_back({i, 0});
  }
  if ((of_first.empty() && of_second.empty()) || p.sum.empty()) return Declined{"it has no rows and columns"};
  // The last dimension of the result along which one factor alone moves has the columns.
  const auto position = [&](const std::vector<ProductAxis>& axes) {
    return axes.empty() ? -1 : std::ranges::find(order, axes.back().iter) - order.begin();
  };
  const bool is_swapped = position(of_first) > position(of_second);
  p.rows = is_swapped ? of_second : of_first;
  p.columns = is_swapped ? of_first : of_second;
  p.row_factor = is_swapped ? 1 : 0;
  p.column_factor = 1 - p.row_factor;
  p.columns.insert(p.columns.begin(), of_none.begin(), of_none.end());
  const BufferLoadNode* ordered[] = {(*factors)[static_cast<size_t>(p.row_factor)],
                                     (*factors)[static_cast<size_t>(p.column_factor)]};
  SortSum(site, ordered, p.sum);
  for (size_t d = 0; d < store.indices.size(); ++d) p.iter_of_dimension.push_back(IterOfDimension(site, d));
  return p;
}

BlockRV FuseProduct(Schedule& s, BlockRV product, const CudaProduct& axes, const ProductMultiples& multiples,
                    BlockRV last) {
  std::vector<int64_t> iters, parts, sizes, padding;
  const auto add = [&](const std::vector<ProductAxis>& group, int64_t multiple) {
    if (group.empty()) return;
    for (const ProductAxis& axis : group) {
      iters.push_back(axis.iter);
      parts.push_back(axis.part);
    }
    sizes.push_back(static_cast<int64_t>(group.size()));
    padding.push_back(multiple);
  };
  add(axes.batch, 1);
  add(axes.sum, multiples.sum);
  add(axes.rows, multiples.rows);
  add(axes.columns, multiples.columns);
  s.FuseEinsum(product, iters, parts, sizes, padding);
  if (!s.status().ok()) return last;
  const BlockSite site = s.Block(product);
  for (const BlockSite& reader : s.state().Readers(StoreOf(site).buffer)) {
    if (reader.block().name == site.block().name) continue;
    const BlockRV copy = s.GetBlock(reader.block().name);
    if (last.id < 0) return copy;
    s.ComputeInline(copy);
  }
  return last;
}

void FuseResult(Schedule& s, BlockRV out, const CudaProduct& axes) {
  if (!s.status().ok()) return;
  const BlockSite site = s.Block(out);
  std::vector<int64_t> iters, parts, sizes, left;
  for (size_t i = 0; i < site.block().iter_vars.size(); ++i) left.push_back(static_cast<int64_t>(i));
  for (const auto* group : {&axes.batch, &axes.rows, &axes.columns}) {
    const size_t before = iters.size();
    for (const ProductAxis& axis : *group) {
      for (size_t d = 0; d < axes.iter_of_dimension.size(); ++d) {
        const int iter = IterOfDimension(site, d);
        if (axes.iter_of_dimension[d] != axis.iter || iter < 0) continue;
        iters.push_back(iter);
        parts.push_back(axis.part);
        std::erase(left, iter);
      }
    }
    if (iters.size() > before) sizes.push_back(static_cast<int64_t>(iters.size() - before));
  }
  // What is left has one iteration.
  iters.insert(iters.end(), left.begin(), left.end());
  parts.insert(parts.end(), left.size(), 0);
  sizes.back() += static_cast<int64_t>(left.size());
  s.FuseIters(out, iters, parts, sizes);
}

}  // namespace ingot::schedule
