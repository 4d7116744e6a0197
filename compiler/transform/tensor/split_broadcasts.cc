// Before: an operand whose extent is not known to equal the result's is read at Select(extent == the result's, index,
// 0), since the extent may be 1 and be broadcast (op/broadcast.h). After: the function tests once whether all such
// extents equal those of the result. If so, it runs a copy of the body in which they are one symbol and indices are
// plain, so that its loops are those of operands of equal dims; otherwise the original body. Functions that allocate
// (products, attention) stay whole: they broadcast batches and masks, and two copies would take twice the workspace. It
// comes before everything that examines how indices change.
#include <algorithm>
#include <unordered_set>

#include "compiler/ir/fresh_copy.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/tensor/passes.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

struct Extents {
  PrimExpr own, whole;
  bool operator==(const Extents& other) const {
    return StructuralEqual(own, other.own) && StructuralEqual(whole, other.whole);
  }
};

// Returns the extents that the condition of an index compares; nothing for any other Select.
std::optional<Extents> Compared(const SelectNode& select) {
  const auto* test = As<BinaryNode>(select.condition);
  const bool repeats = test != nullptr && test->op == BinaryOp::kEQ && select.dtype == DataType::Int(64) &&
                       IsConstInt(select.false_value, 0);
  return repeats ? std::optional(Extents{test->a, test->b}) : std::nullopt;
}

// Finds the extents that indices compare, and the variables that are no symbols of the function.
class Finder : public StmtVisitor {
 public:
  bool allocates = false;
  std::vector<Extents> Invariant() const {
    std::vector<Extents> invariant;
    for (const Extents& extents : found_) {
      const bool is_bound = IsBound(extents.own) || IsBound(extents.whole);
      if (!is_bound && std::ranges::find(invariant, extents) == invariant.end()) invariant.push_back(extents);
    }
    return invariant;
  }

 protected:
  using StmtVisitor::Visit;
  void Visit(const SelectNode& select) override {
    if (in_index_ > 0) {
      if (std::optional<Extents> extents = Compared(select)) found_.push_back(*std::move(extents));
    }
    StmtVisitor::Visit(select);
  }
  void Visit(const BufferLoadNode& load) override {
    ++in_index_;
    StmtVisitor::Visit(load);
    --in_index_;
  }
  void Visit(const AllocateNode& allocate) override {
    allocates = true;
    StmtVisitor::Visit(allocate);
  }

 private:
  void VisitDefinition(const PrimVar& var) override { bound_.insert(var.get()); }
  bool IsBound(const PrimExpr& expr) const { return ReadsMemory(expr) || MentionsAny(expr, bound_); }

  std::vector<Extents> found_;
  std::unordered_set<const PrimVarNode*> bound_;
  int in_index_ = 0;
};

// Rewrites the body for equal extents: each pair becomes one symbol, or the number that one of them is.
class Equalizer : public StmtMutator {
 public:
  explicit Equalizer(const std::vector<Extents>& equal) : equal_(equal) {
    for (const Extents& extents : equal) {
      const PrimVar own = AsRef<PrimVarNode>(extents.own);
      if (own == nullptr) continue;
      if (AsConstInt(extents.whole)) {
        symbols_.emplace(own, extents.whole);
        continue;
      }
      const auto known =
          std::ranges::find_if(wholes_, [&](const auto& whole) { return StructuralEqual(whole.first, extents.whole); });
      if (known != wholes_.end()) {
        symbols_.emplace(own, known->second);
      } else if (!symbols_.contains(own)) {
        wholes_.emplace_back(extents.whole, PrimExpr(own));
      }
    }
  }

  PrimExpr MutatePrim(const PrimExpr& expr) override {
    for (const auto& [whole, symbol] : wholes_) {
      if (StructuralEqual(expr, whole)) return symbol.same_as(expr) ? expr : Final(symbol);
    }
    return StmtMutator::MutatePrim(expr);
  }

 protected:
  using StmtMutator::Mutate;
  PrimExpr Mutate(const Ref<PrimVarNode>& var) override { return Final(var); }
  PrimExpr Mutate(const Ref<SelectNode>& select) override {
    const std::optional<Extents> extents = Compared(*select);
    if (extents && std::ranges::find(equal_, *extents) != equal_.end()) return MutatePrim(select->true_value);
    return StmtMutator::Mutate(select);
  }
  Buffer MutateBuffer(const Buffer& buffer) override {
    const auto known = buffers_.find(buffer);
    if (known != buffers_.end()) return known->second;
    BufferNode copy = *buffer;
    bool changed = false;
    for (std::vector<PrimExpr>* exprs : {&copy.shape, &copy.strides}) {
      for (PrimExpr& expr : *exprs) {
        PrimExpr mutated = MutatePrim(expr);
        changed = changed || !mutated.same_as(expr);
        expr = std::move(mutated);
      }
    }
    return buffers_[buffer] = changed ? Make<BufferNode>(std::move(copy)) : buffer;
  }

 private:
  PrimExpr Final(const PrimExpr& symbol) const {
    const PrimVar var = AsRef<PrimVarNode>(symbol);
    const auto found = symbols_.find(var);
    return found == symbols_.end() ? symbol : found->second;
  }

  const std::vector<Extents>& equal_;
  std::vector<std::pair<PrimExpr, PrimExpr>> wholes_;  // extent of the result -> its symbol
  PrimVarMap symbols_;
  BufferMap buffers_;
};

}  // namespace

Result<PrimFunc> SplitBroadcasts(const PrimFunc& function, const Target&) {
  Finder finder;
  finder.VisitStmt(function->body);
  const std::vector<Extents> extents = finder.Invariant();
  if (extents.empty() || finder.allocates) return function;
  PrimExpr all = BoolImm(true);
  for (const auto& [own, whole] : extents) all = And(all, Equal(own, whole));
  Stmt equal = Equalizer(extents).MutateStmt(function->body);
  return WithBody(function, Make<IfStmtNode>(std::move(all), std::move(equal), CopyFresh(function->body)));
}

}  // namespace ingot::transform
