// Interval arithmetic with symbolic ends, kept as (min, span) so that the terms of outer variables never have to
// cancel: a tile's extent comes out as a constant even where its position is symbolic.
#include "compiler/schedule/region.h"

#include <algorithm>

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

class Relaxer {
 public:
  Relaxer(const std::vector<InnerVar>& inner, arith::Analyzer& analyzer) : inner_(inner), analyzer_(analyzer) {}

  // Where there are remainders: a quotient and a remainder may be parts of one index, whose span is not that of the sum
  // of theirs.
  PrimExpr JoinParts(const PrimExpr& expr) {
    Finder finder(inner_);
    finder.VisitPrim(expr);
    return finder.found && finder.found_remainder ? analyzer_.Simplify(expr) : expr;
  }

  std::optional<Span1D> Relax(const PrimExpr& expr) {
    if (const auto* var = As<PrimVarNode>(expr)) {
      for (const InnerVar& candidate : inner_) {
        if (candidate.var.get() == var) return Span1D{candidate.min, candidate.extent - 1};
      }
    }
    if (!UsesInner(expr)) return Span1D{expr, IntImm(expr->dtype, 0)};
    if (const auto* binary = As<BinaryNode>(expr)) return RelaxBinary(*binary);
    if (const auto* cast = As<CastNode>(expr)) {
      std::optional<Span1D> value = Relax(cast->value);
      if (value && cast->dtype.is_int()) return Span1D{Cast(cast->dtype, value->min), Cast(cast->dtype, value->span)};
    }
    return std::nullopt;
  }

 private:
  class Finder : public PrimVisitor {
   public:
    explicit Finder(const std::vector<InnerVar>& inner) : inner_(inner) {}
    bool found = false, found_remainder = false;

   protected:
    using PrimVisitor::Visit;
    void Visit(const BinaryNode& node) override {
      found_remainder |= node.op == BinaryOp::kFloorMod;
      PrimVisitor::Visit(node);
    }
    void Visit(const PrimVarNode& node) override {
      for (const InnerVar& candidate : inner_) found |= candidate.var.get() == &node;
    }

   private:
    const std::vector<InnerVar>& inner_;
  };
  bool UsesInner(const PrimExpr& expr) const {
    Finder finder(inner_);
    finder.VisitPrim(expr);
    return finder.found;
  }

  std::optional<Span1D> RelaxBinary(const BinaryNode& node) {
    std::optional<Span1D> a = Relax(node.a), b = Relax(node.b);
    if (!a || !b) return std::nullopt;
    if (node.op == BinaryOp::kAdd) return Span1D{a->min + b->min, a->span + b->span};
    if (node.op == BinaryOp::kSub) return Span1D{a->min - (b->min + b->span), a->span + b->span};
    if (node.op == BinaryOp::kMul) {
      if (IsConstInt(a->span, 0)) std::swap(a, b);
      return IsConstInt(b->span, 0) ? Scale(*a, b->min) : std::nullopt;
    }
    if (node.op == BinaryOp::kMin || node.op == BinaryOp::kMax) {
      const auto pick = node.op == BinaryOp::kMin ? Min : Max;
      PrimExpr low = pick(a->min, b->min);
      return Span1D{low, analyzer_.Simplify(pick(a->min + a->span, b->min + b->span) - low)};
    }
    const auto divisor = AsConstInt(node.b);
    if (!divisor || *divisor <= 0) return std::nullopt;
    if (node.op == BinaryOp::kFloorDiv) return Divide(*a, *divisor);
    if (node.op == BinaryOp::kFloorMod) return Remainder(*a, *divisor);
    return std::nullopt;
  }

  std::optional<Span1D> Scale(const Span1D& a, const PrimExpr& factor) {
    const auto constant = AsConstInt(factor);
    if (constant && *constant < 0) return Span1D{(a.min + a.span) * factor, a.span * -*constant};
    if (!constant && analyzer_.Bounds(factor).min < 0) return std::nullopt;
    return Span1D{a.min * factor, a.span * factor};
  }

  Span1D Divide(const Span1D& a, int64_t divisor) {
    const PrimExpr c = IntImm(a.min->dtype, divisor);
    if (analyzer_.ProveDivisible(a.min, divisor)) return {FloorDiv(a.min, c), FloorDiv(a.span, c)};
    // floor((m + s) / c) - floor(m / c) <= ceil(s / c)
    return {FloorDiv(a.min, c), FloorDiv(a.span + (divisor - 1), c)};
  }

  Span1D Remainder(const Span1D& a, int64_t divisor) {
    const DataType dtype = a.min->dtype;
    const PrimExpr c = IntImm(dtype, divisor);
    if (IsConstInt(a.span, 0)) return {FloorMod(a.min, c), IntImm(dtype, 0)};
    if (analyzer_.ProveDivisible(a.min, divisor) && analyzer_.ProveLess(a.span, c)) return {IntImm(dtype, 0), a.span};
    return {IntImm(dtype, 0), IntImm(dtype, divisor - 1)};
  }

  const std::vector<InnerVar>& inner_;
  arith::Analyzer& analyzer_;
};

}  // namespace

std::optional<Span1D> RelaxExpr(const PrimExpr& expr, const std::vector<InnerVar>& inner, arith::Analyzer& analyzer) {
  Relaxer relaxer(inner, analyzer);
  std::optional<Span1D> result = relaxer.Relax(relaxer.JoinParts(expr));
  if (result) *result = {analyzer.Simplify(result->min), analyzer.Simplify(result->span)};
  return result;
}

BufferRegion RelaxRegion(const BufferRegion& region, const std::vector<InnerVar>& inner, arith::Analyzer& analyzer) {
  BufferRegion result{region.buffer, {}};
  for (size_t i = 0; i < region.region.size(); ++i) {
    const Range& range = region.region[i];
    const PrimExpr& whole = region.buffer->shape[i];
    std::optional<Span1D> low = RelaxExpr(range.min, inner, analyzer);
    std::optional<Span1D> length = RelaxExpr(range.extent, inner, analyzer);
    if (!low || !length) {
      result.region.push_back({IntImm(whole->dtype, 0), whole});
      continue;
    }
    PrimExpr extent = analyzer.Simplify(low->span + (length->min + length->span));
    result.region.push_back({low->min, std::move(extent)});
  }
  return result;
}

BufferRegion UnionRegion(const BufferRegion& a, const BufferRegion& b, arith::Analyzer& analyzer) {
  BufferRegion result{a.buffer, {}};
  for (size_t i = 0; i < a.region.size(); ++i) {
    const Range &x = a.region[i], &y = b.region[i];
    if (analyzer.ProveEqual(x.min, y.min)) {
      result.region.push_back({x.min, analyzer.Simplify(Max(x.extent, y.extent))});
      continue;
    }
    PrimExpr low = analyzer.Simplify(Min(x.min, y.min));
    PrimExpr end = analyzer.Simplify(Max(x.min + x.extent, y.min + y.extent));
    result.region.push_back({low, analyzer.Simplify(end - low)});
  }
  return result;
}

PrimVarMap BindingMap(const BlockRealizeNode& realize) {
  PrimVarMap map;
  for (size_t i = 0; i < realize.iter_values.size(); ++i) {
    map.emplace(realize.block->iter_vars[i]->var, realize.iter_values[i]);
  }
  return map;
}

BufferRegion BindRegion(const BufferRegion& region, const BlockRealizeNode& realize) {
  const PrimVarMap map = BindingMap(realize);
  BufferRegion result{region.buffer, {}};
  for (const Range& range : region.region) {
    result.region.push_back({Substitute(range.min, map), Substitute(range.extent, map)});
  }
  return result;
}

}  // namespace ingot::schedule
