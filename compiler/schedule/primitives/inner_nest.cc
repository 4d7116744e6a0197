#include "compiler/schedule/primitives/inner_nest.h"

#include <algorithm>

#include "compiler/schedule/primitives.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

class NestFinder {
 public:
  NestFinder(const ScheduleState& state, const LoopSite& place, const char* primitive)
      : state_(state), place_(place), primitive_(primitive) {}

  Result<InnerNest> Run() {
    INGOT_RETURN_IF_ERROR(FindLoops());
    nest_.analyzer = ScheduleState::MakeAnalyzer(place_.outer);
    for (const For& loop : nest_.loops) nest_.analyzer.Bind(loop->var, Range{loop->min, loop->extent});
    INGOT_RETURN_IF_ERROR(SplitIterations());
    return std::move(nest_);
  }

 private:
  Status No(const std::string& what) const { return Refuse(primitive_, Describe(place_), what); }

  // Collects the directly nested loops from the place down to the only block.
  Status FindLoops() {
    Stmt stmt = place_.loop;
    while (const auto loop = AsRef<ForNode>(stmt)) {
      if (loop->for_kind != ForKind::kSerial) return No("loop " + loop->var->name + " is no longer serial");
      if (!IsConstInt(loop->min, 0)) return No("loop " + loop->var->name + " does not start at 0");
      nest_.loops.push_back(loop);
      nest_.vars.push_back(loop->var);
      stmt = loop->body;
    }
    nest_.realize = AsRef<BlockRealizeNode>(stmt);
    if (!nest_.realize) return No("its loops are not one perfect nest around a single block");
    const std::string block = "block \"" + nest_.realize->block->name + "\"";
    if (!state_.IsRegular(nest_.realize->block->name)) return No(block + " has bindings that are not simple");
    if (!IsTrue(nest_.realize->predicate)) return No(block + " has a predicate: cut the rest off with loop_partition");
    if (HoldsLoops(*nest_.realize->block)) return No(block + " holds loops already");
    return Status();
  }

  Status SplitIterations() {
    arith::Analyzer& analyzer = nest_.analyzer;
    PrimExpr instances = Int64(1);
    for (size_t i = 0; i < nest_.realize->iter_values.size(); ++i) {
      const IterVarNode& iter = *nest_.realize->block->iter_vars[i];
      const PrimExpr& value = nest_.realize->iter_values[i];
      const std::optional<arith::LinearForm> linear = arith::DetectLinear(value, nest_.vars);
      const std::optional<PrimExpr> extent = linear ? InnerExtent(*linear) : std::nullopt;
      if (!extent) return No("iteration " + iter.var->name + " does not run over a range of its own in the nest");
      instances = instances * *extent;
      const PrimVar outer = MakePrimVar(iter.var->name + "_o", iter.var->dtype);
      const PrimExpr base = analyzer.Simplify(linear->constant);
      const PrimExpr inside = analyzer.Simplify(value - base);
      const PrimExpr zero = IntImm(iter.var->dtype, 0);
      if (IsConstInt(*extent, 1)) {
        Add(iter, iter.domain, outer, base, outer);
        continue;
      }
      if (analyzer.ProveEqual(iter.domain.extent, *extent)) {
        Add(iter, Range{zero, IntImm(iter.var->dtype, 1)}, outer, zero, value);
        continue;
      }
      const auto e = AsConstInt(*extent);
      if (!e || !IsConstInt(iter.domain.min, 0) || !analyzer.ProveDivisible(base, *e)) {
        return No("iteration " + iter.var->name + " does not fall into whole tiles of the nest");
      }
      // Rounded up: where loop_partition cut off a rest of the domain, the last tile covers that rest and never runs.
      const PrimExpr tiles = analyzer.Simplify(FloorDiv(iter.domain.extent + (*e - 1), *extent));
      Add(iter, Range{zero, tiles}, outer, analyzer.Simplify(FloorDiv(base, *extent)),
          PrimExpr(outer) * *extent + inside);
    }
    PrimExpr iterations = Int64(1);
    for (const For& loop : nest_.loops) iterations = iterations * loop->extent;
    if (!analyzer.ProveEqual(instances, iterations)) return No("a loop of the nest repeats the block's instances");
    for (const SplitIteration& part : nest_.iterations) analyzer.Bind(part.outer->var, part.outer->domain);
    return Status();
  }

  void Add(const IterVarNode& iter, Range domain, const PrimVar& outer, PrimExpr binding, PrimExpr value) {
    nest_.iterations.push_back(
        {Make<IterVarNode>(std::move(domain), outer, iter.type), std::move(binding), std::move(value)});
  }

  // The extent e such that the inner part takes every value in [0, e) once, the loops being digits of a number; nothing
  // where it does not.
  std::optional<PrimExpr> InnerExtent(const arith::LinearForm& linear) const {
    std::vector<std::pair<int64_t, const ForNode*>> digits;
    for (size_t i = 0; i < nest_.loops.size(); ++i) {
      const auto c = AsConstInt(linear.coefficients[i]);
      if (!c || *c < 0) return std::nullopt;
      if (*c > 0 && !IsConstInt(nest_.loops[i]->extent, 1)) digits.push_back({*c, nest_.loops[i].get()});
    }
    std::sort(digits.begin(), digits.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    PrimExpr extent = IntImm(linear.constant->dtype, 1);
    for (const auto& [weight, loop] : digits) {
      if (!IsConstInt(extent, weight)) return std::nullopt;
      extent = extent * loop->extent;
    }
    return extent;
  }

  const ScheduleState& state_;
  const LoopSite& place_;
  const char* primitive_;
  InnerNest nest_;
};

}  // namespace

std::vector<InnerVar> InnerNest::InnerVars() const {
  std::vector<InnerVar> inner;
  for (const For& loop : loops) inner.push_back({loop->var, loop->min, loop->extent});
  return inner;
}

PrimVarMap InnerNest::Values() const {
  PrimVarMap values;
  for (size_t i = 0; i < iterations.size(); ++i) {
    values.emplace(realize->block->iter_vars[i]->var, iterations[i].value);
  }
  return values;
}

Result<InnerNest> FindInnerNest(const ScheduleState& state, const LoopSite& place, const char* primitive) {
  return NestFinder(state, place, primitive).Run();
}

}  // namespace ingot::schedule
