// One visitor collects the accesses of a statement. Every index is relaxed to its least and greatest value over the
// loops inside, and the boxes of one buffer are joined to their hull; a dimension whose ends cannot be expressed or
// compared becomes the whole one.
#include "compiler/arith/block_util.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"

namespace ingot::arith {

using namespace ir;  // NOLINT
namespace {

// The least and the greatest value of an index.
struct Ends {
  PrimExpr min, max;
};

class RegionCollector : public StmtVisitor {
 public:
  explicit RegionCollector(Analyzer analyzer) : analyzer_(std::move(analyzer)) {}

  void VisitDomain(const IterVar& iter) {
    const auto extent = AsConstInt(iter->domain.extent);
    // A variable of one value keeps its name in the regions.
    if (!extent || *extent != 1) analyzer_.Bind(iter->var, iter->domain);
  }
  void Exclude(const Buffer& buffer) { excluded_.insert(buffer); }
  // An access of the matched buffer counts as one of its whole source.
  void Match(const MatchBufferRegion& match) { matched_[match.buffer] = match.source; }

  ReadWriteRegions Take(bool is_reduction) {
    ReadWriteRegions result;
    std::unordered_set<Buffer, RefHash, RefSame> written;
    for (const BufferRegion& region : writes_) {
      if (excluded_.contains(region.buffer)) continue;
      result.writes.push_back(region);
      written.insert(region.buffer);
    }
    for (const BufferRegion& region : reads_) {
      if (excluded_.contains(region.buffer) || (is_reduction && written.contains(region.buffer))) continue;
      result.reads.push_back(region);
    }
    return result;
  }

 protected:
  using StmtVisitor::Visit;
  void Visit(const BufferLoadNode& node) override {
    Add(reads_, node.buffer, node.indices);
    StmtVisitor::Visit(node);
  }
  void Visit(const BufferStoreNode& node) override {
    StmtVisitor::Visit(node);
    Add(writes_, node.buffer, node.indices);
  }
  void Visit(const LetNode& node) override {
    VisitPrim(node.value);
    lets_[node.var] = Expand(node.value);
    VisitPrim(node.body);
  }
  void Visit(const LetStmtNode& node) override {
    VisitPrim(node.value);
    lets_[node.var] = Expand(node.value);
    VisitStmt(node.body);
  }
  void Visit(const ForNode& node) override {
    VisitPrim(node.min);
    VisitPrim(node.extent);
    const Range range{Expand(node.min), Expand(node.extent)};
    inner_[node.var] = range;
    analyzer_.Bind(node.var, range);
    VisitStmt(node.body);
  }
  void Visit(const AllocateNode& node) override {
    Exclude(node.buffer);
    StmtVisitor::Visit(node);
  }
  // An inner block counts by the regions that it declares; its body is visited where it declares none.
  void Visit(const BlockRealizeNode& node) override {
    for (const PrimExpr& value : node.iter_values) VisitPrim(value);
    VisitPrim(node.predicate);
    const BlockNode& block = *node.block;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) lets_[block.iter_vars[i]->var] = Expand(node.iter_values[i]);
    if (block.reads.empty() && block.writes.empty()) {
      for (const Buffer& buffer : block.alloc_buffers) Exclude(buffer);
      for (const MatchBufferRegion& match : block.match_buffers) Match(match);
      if (block.init) VisitStmt(block.init);
      VisitStmt(block.body);
    }
    for (const BufferRegion& region : block.reads) Add(reads_, region);
    for (const BufferRegion& region : block.writes) Add(writes_, region);
  }

 private:
  PrimExpr Expand(const PrimExpr& expr) { return Substitute(expr, lets_); }

  // Whether something in the expression has a value inside of the statement only: a loop variable, or an element of a
  // buffer that is allocated or matched there.
  bool MentionsInner(const PrimExpr& expr) const {
    const std::vector<PrimVar> vars = FreePrimVars(expr);
    if (std::any_of(vars.begin(), vars.end(), [this](const PrimVar& var) { return inner_.contains(var); })) return true;
    struct Loads : PrimVisitor {
      using PrimVisitor::Visit;
      void Visit(const BufferLoadNode& node) override {
        found = found || excluded.contains(node.buffer) || matched.contains(node.buffer);
        PrimVisitor::Visit(node);
      }
      explicit Loads(const RegionCollector& collector) : excluded(collector.excluded_), matched(collector.matched_) {}
      const decltype(excluded_)& excluded;
      const decltype(matched_)& matched;
      bool found = false;
    } loads(*this);
    loads.VisitPrim(expr);
    return loads.found;
  }

  std::optional<Ends> Relax(const PrimExpr& expr) {
    if (const auto* ramp = As<RampNode>(expr)) {
      const auto first = Relax(ramp->base);
      const auto last = Relax(analyzer_.Simplify(ramp->base + ramp->stride * (ramp->lanes - 1)));
      if (!first.has_value() || !last.has_value()) return std::nullopt;
      const auto stride = AsConstInt(ramp->stride);
      if (!stride) return std::nullopt;
      return *stride >= 0 ? Ends{first->min, last->max} : Ends{last->min, first->max};
    }
    if (const auto* broadcast = As<BroadcastNode>(expr)) return Relax(broadcast->value);
    if (!MentionsInner(expr)) return Ends{expr, expr};
    if (const auto var = AsRef<PrimVarNode>(expr)) {
      const Range& range = inner_.at(var);
      const auto first = Relax(range.min);
      const auto last = Relax(analyzer_.Simplify(range.min + range.extent - 1));
      if (!first.has_value() || !last.has_value()) return std::nullopt;
      return Ends{first->min, last->max};
    }
    if (const auto* cast = As<CastNode>(expr); cast != nullptr && cast->value->dtype.is_int()) {
      const auto ends = Relax(cast->value);
      if (!ends.has_value()) return std::nullopt;
      return Ends{Cast(expr->dtype, ends->min), Cast(expr->dtype, ends->max)};
    }
    if (const auto* node = As<BinaryNode>(expr)) return RelaxBinary(*node);
    return std::nullopt;
  }

  std::optional<Ends> RelaxBinary(const BinaryNode& node) {
    const auto a = Relax(node.a);
    const auto b = Relax(node.b);
    if (!a.has_value() || !b.has_value()) return std::nullopt;
    const auto constant = AsConstInt(node.b);
    switch (node.op) {
      case BinaryOp::kAdd:
        return Ends{a->min + b->min, a->max + b->max};
      case BinaryOp::kSub:
        return Ends{a->min - b->max, a->max - b->min};
      case BinaryOp::kMin:
        return Ends{Min(a->min, b->min), Min(a->max, b->max)};
      case BinaryOp::kMax:
        return Ends{Max(a->min, b->min), Max(a->max, b->max)};
      case BinaryOp::kMul: {
        // The factor that does not vary decides which end is which.
        const bool b_fixed = !MentionsInner(node.b);
        if (!b_fixed && MentionsInner(node.a)) return std::nullopt;
        const PrimExpr& factor = b_fixed ? node.b : node.a;
        const Ends& varying = b_fixed ? *a : *b;
        const Interval sign = analyzer_.Bounds(factor);
        if (sign.min >= 0) return Ends{varying.min * factor, varying.max * factor};
        if (sign.max <= 0) return Ends{varying.max * factor, varying.min * factor};
        return std::nullopt;
      }
      case BinaryOp::kFloorDiv:
        if (!constant || *constant <= 0) return std::nullopt;
        return Ends{FloorDiv(a->min, node.b), FloorDiv(a->max, node.b)};
      case BinaryOp::kFloorMod: {
        if (!constant || *constant <= 0) return std::nullopt;
        return Ends{IntImm(node.dtype, 0), IntImm(node.dtype, *constant - 1)};
      }
      case BinaryOp::kDiv:
      case BinaryOp::kTruncMod:
      case BinaryOp::kEQ:
      case BinaryOp::kNE:
      case BinaryOp::kLT:
      case BinaryOp::kLE:
      case BinaryOp::kGT:
      case BinaryOp::kGE:
      case BinaryOp::kAnd:
      case BinaryOp::kOr:
        return std::nullopt;
    }
    INGOT_UNREACHABLE("BinaryOp");
  }

  void Add(std::vector<BufferRegion>& list, const Buffer& buffer, const std::vector<PrimExpr>& indices) {
    BufferRegion region{buffer, {}};
    for (const PrimExpr& index : indices) region.region.push_back({index, IntImm(index->dtype.element_of(), 1)});
    Add(list, region);
  }

  void Add(std::vector<BufferRegion>& list, const BufferRegion& region) {
    const Buffer& buffer = region.buffer;
    if (const auto it = matched_.find(buffer); it != matched_.end()) return Add(list, BufferRegion(it->second));
    BufferRegion relaxed{buffer, {}};
    for (size_t d = 0; d < region.region.size(); ++d) {
      const Range& range = region.region[d];
      const PrimExpr first = analyzer_.Simplify(Expand(range.min));
      std::optional<Ends> ends;
      if (ReadsExcluded(first)) {
        // The place depends on a buffer that does not exist outside: the whole dimension.
      } else if (IsConstInt(range.extent, 1)) {
        ends = Relax(first);
      } else {
        const auto low = Relax(first);
        const auto high = Relax(analyzer_.Simplify(first + Expand(range.extent) - 1));
        if (low.has_value() && high.has_value()) ends = Ends{low->min, high->max};
      }
      relaxed.region.push_back(ends.has_value() ? ToRange(*ends) : WholeOf(buffer, d));
    }
    const auto it = std::find_if(list.begin(), list.end(), [&](const auto& r) { return r.buffer.same_as(buffer); });
    if (it == list.end()) {
      list.push_back(std::move(relaxed));
      return;
    }
    for (size_t d = 0; d < relaxed.region.size(); ++d) {
      it->region[d] = Union(it->region[d], relaxed.region[d], WholeOf(buffer, d));
    }
  }

  bool ReadsExcluded(const PrimExpr& expr) const {
    struct Finder : PrimVisitor {
      explicit Finder(const RegionCollector& c) : collector(c) {}
      using PrimVisitor::Visit;
      void Visit(const BufferLoadNode& load) override {
        found = found || collector.excluded_.contains(load.buffer);
        PrimVisitor::Visit(load);
      }
      const RegionCollector& collector;
      bool found = false;
    };
    if (excluded_.empty()) return false;
    Finder finder(*this);
    finder.VisitPrim(expr);
    return finder.found;
  }

  static Range WholeOf(const Buffer& buffer, size_t dimension) {
    const PrimExpr& extent = buffer->shape[dimension];
    return {IntImm(extent->dtype, 0), extent};
  }

  Range ToRange(const Ends& ends) {
    if (ends.min.same_as(ends.max)) return {ends.min, IntImm(ends.min->dtype, 1)};
    return {analyzer_.Simplify(ends.min), analyzer_.Simplify(ends.max - ends.min + 1)};
  }

  Range Union(const Range& a, const Range& b, const Range& whole) {
    if (analyzer_.ProveEqual(a.min, b.min) && analyzer_.ProveEqual(a.extent, b.extent)) return a;
    const PrimExpr a_end = analyzer_.Simplify(a.min + a.extent);
    const PrimExpr b_end = analyzer_.Simplify(b.min + b.extent);
    PrimExpr min;
    PrimExpr end;
    if (analyzer_.ProveLessEqual(a.min, b.min)) min = a.min;
    if (!min && analyzer_.ProveLessEqual(b.min, a.min)) min = b.min;
    if (analyzer_.ProveLessEqual(a_end, b_end)) end = b_end;
    if (!end && analyzer_.ProveLessEqual(b_end, a_end)) end = a_end;
    if (!min || !end) return whole;
    return {min, analyzer_.Simplify(end - min)};
  }

  Analyzer analyzer_;
  PrimVarMap lets_;
  std::unordered_map<PrimVar, Range, RefHash, RefSame> inner_;  // loops inside the statement
  std::unordered_map<Buffer, BufferRegion, RefHash, RefSame> matched_;
  std::vector<BufferRegion> reads_, writes_;
  std::unordered_set<Buffer, RefHash, RefSame> excluded_;
};

}  // namespace

ReadWriteRegions GetBlockReadWriteRegions(const Stmt& body, const Stmt& init) {
  RegionCollector collector{Analyzer()};
  if (init) collector.VisitStmt(init);
  collector.VisitStmt(body);
  return collector.Take(init.get() != nullptr);
}

ReadWriteRegions GetBlockReadWriteRegions(const BlockNode& block) {
  RegionCollector collector{Analyzer()};
  for (const IterVar& iter : block.iter_vars) collector.VisitDomain(iter);
  for (const Buffer& buffer : block.alloc_buffers) collector.Exclude(buffer);
  for (const MatchBufferRegion& match : block.match_buffers) collector.Match(match);
  if (block.init) collector.VisitStmt(block.init);
  collector.VisitStmt(block.body);
  return collector.Take(block.init.get() != nullptr);
}

}  // namespace ingot::arith
