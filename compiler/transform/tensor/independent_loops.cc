// One walk lists the accesses below the loop with the loops around each; then each buffer is looked at by itself.
#include "compiler/transform/tensor/independent_loops.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"
#include "compiler/schedule/region.h"

namespace ingot::transform {

using namespace ir;  // NOLINT
using schedule::InnerVar;

namespace {

struct ElementUse {
  std::vector<PrimExpr> indices;
  std::vector<InnerVar> inner;  // the loops below the one in question
};
struct BufferUse {
  std::vector<ElementUse> accesses;
  bool is_stored = false;
  Buffer first;            // by which it is used
  bool has_views = false;  // and by others, in whose shapes equal indices are other elements
};

class UseLister : public StmtVisitor {
 public:
  std::unordered_map<const PrimVarNode*, BufferUse> uses;  // by the data variable, which views share
  std::unordered_set<const PrimVarNode*> defined;          // by Lets below the loop
  std::vector<PrimVar> lets;                               // the same
  bool calls = false;

 protected:
  using StmtVisitor::Visit;
  void Visit(const ForNode& loop) override {
    inner_.push_back({loop.var, loop.min, loop.extent});
    StmtVisitor::Visit(loop);
    inner_.pop_back();
  }
  void Visit(const LetStmtNode& let) override {
    defined.insert(let.var.get());
    lets.push_back(let.var);
    StmtVisitor::Visit(let);
  }
  void Visit(const LetNode& let) override {
    defined.insert(let.var.get());
    lets.push_back(let.var);
    StmtVisitor::Visit(let);
  }
  void Visit(const AllocateNode& allocate) override {
    StmtVisitor::Visit(allocate);
    uses.erase(allocate.buffer->data.get());
  }
  void Visit(const BufferStoreNode& store) override {
    StmtVisitor::Visit(store);
    Add(store.buffer, store.indices).is_stored = true;
  }
  void Visit(const BufferLoadNode& load) override {
    StmtVisitor::Visit(load);
    Add(load.buffer, load.indices);
  }
  void Visit(const PrimCallNode& call) override {
    calls |= call.op == Intrinsic::kCallExtern || call.op == Intrinsic::kCallPacked;
    StmtVisitor::Visit(call);
  }

 private:
  BufferUse& Add(const Buffer& buffer, const std::vector<PrimExpr>& indices) {
    BufferUse& use = uses[buffer->data.get()];
    if (!use.first) use.first = buffer;
    use.has_views |= !use.first.same_as(buffer);
    use.accesses.push_back({indices, inner_});
    return use;
  }
  std::vector<InnerVar> inner_;
};

// step * (the loop's variable) + [first, last], over variables from outside of the loop.
struct MovingRange {
  PrimExpr step, first, last;
};

class Prover {
 public:
  Prover(const ForNode& loop, const UseLister& lister, const arith::Analyzer& analyzer)
      : loop_(loop), lister_(lister), analyzer_(analyzer) {}

  bool AreApart(const BufferUse& use) {
    if (use.has_views) return false;
    const size_t rank = use.accesses.front().indices.size();
    for (size_t d = 0; d < rank; ++d) {
      if (AreApart(use, d)) return true;
    }
    return false;
  }

 private:
  bool AreApart(const BufferUse& use, size_t d) {
    std::vector<MovingRange> ranges;
    for (const ElementUse& access : use.accesses) {
      std::optional<MovingRange> range = RangeOf(access, access.indices[d]);
      if (!range) return false;
      ranges.push_back(*std::move(range));
    }
    const PrimExpr& step = ranges.front().step;
    const auto is_first = [&](const MovingRange& candidate) {
      return std::ranges::all_of(
          ranges, [&](const MovingRange& range) { return analyzer_.ProveLessEqual(candidate.first, range.first); });
    };
    const auto lowest = std::ranges::find_if(ranges, is_first);
    if (lowest == ranges.end() || !analyzer_.ProveLess(Int64(0), step)) return false;
    return std::ranges::all_of(ranges, [&](const MovingRange& range) {
      return analyzer_.ProveEqual(range.step, step) && analyzer_.ProveLess(range.last - lowest->first, step);
    });
  }

  std::optional<MovingRange> RangeOf(const ElementUse& access, const PrimExpr& index) {
    if (!index->dtype.is_scalar() || ReadsMemory(index)) return std::nullopt;
    arith::Analyzer inside = analyzer_;
    for (const InnerVar& inner : access.inner) inside.Bind(inner.var, Range{inner.min, inner.extent});
    for (const PrimVar& var : lister_.lets) inside.Bind(var, arith::Interval::Everything());
    const std::optional<arith::LinearForm> linear = arith::DetectLinear(index, {loop_.var}, inside);
    if (!linear) return std::nullopt;
    const std::optional<schedule::Span1D> rest = schedule::RelaxExpr(linear->constant, access.inner, inside);
    if (!rest) return std::nullopt;
    MovingRange range{linear->coefficients[0], rest->min, rest->min + rest->span};
    for (const PrimExpr& part : {range.step, range.first, range.last}) {
      if (ReadsMemory(part) || DependsOnInside(part, access)) return std::nullopt;
    }
    return range;
  }
  bool DependsOnInside(const PrimExpr& expr, const ElementUse& access) const {
    return std::ranges::any_of(FreePrimVars(expr), [&](const PrimVar& var) {
      const auto is_var = [&](const InnerVar& inner) { return inner.var.same_as(var); };
      return var.same_as(loop_.var) || lister_.defined.contains(var.get()) || std::ranges::any_of(access.inner, is_var);
    });
  }

  const ForNode& loop_;
  const UseLister& lister_;
  arith::Analyzer analyzer_;
};

}  // namespace

bool IterationsAreIndependent(const ForNode& loop, const arith::Analyzer& analyzer) {
  UseLister lister;
  lister.VisitStmt(loop.body);
  if (lister.calls) return false;
  Prover prover(loop, lister, analyzer);
  return std::ranges::all_of(
      lister.uses, [&](const auto& entry) { return !entry.second.is_stored || prover.AreApart(entry.second); });
}

}  // namespace ingot::transform
