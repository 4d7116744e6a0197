// Before: a loop that was fused from several accesses buffers at quotients and remainders of its variable, a buffer
// whose last dimension is 1 is accessed at 0 there, and a vectorized loop moves along another dimension than the last
// by few elements (every second one, of groups of two). After: if the quotients cancel in the element's linear index,
// the last dimension is 1, or the elements of a vector are close, the access goes to a view of the buffer: one
// dimension, the same data variable (lowered.h).
// Such a loop runs through rows of any length in whole vectors, since the last index is the one that moves, and its
// scalar code has no divisions. It comes before vectorisation, which then sees one ramp, and after everything that
// reads regions.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/tensor/passes.h"
#include "compiler/transform/tensor/range_mutator.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

int CountDivisions(const PrimExpr& expr) {
  struct Finder : PrimVisitor {
    int found = 0;
    using PrimVisitor::Visit;
    void Visit(const BinaryNode& node) override {
      found += node.op == BinaryOp::kFloorDiv || node.op == BinaryOp::kFloorMod ? 1 : 0;
      PrimVisitor::Visit(node);
    }
    void Visit(const BufferLoadNode&) override {}  // an index that is loaded is the same in both forms
  } finder;
  finder.VisitPrim(expr);
  return finder.found;
}

class AccessFlattener : public RangeMutator {
 protected:
  using RangeMutator::Mutate;
  Stmt Mutate(const Ref<ForNode>& loop) override {
    const bool is_vector = loop->for_kind == ForKind::kVectorized;
    if (is_vector) lanes_.push_back(loop->var);
    Stmt mutated = RangeMutator::Mutate(loop);
    if (is_vector) lanes_.pop_back();
    return mutated;
  }
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    const PrimExpr mutated = StmtMutator::Mutate(load);
    const auto* node = As<BufferLoadNode>(mutated);
    const std::optional<PrimExpr> element = Element(node->buffer, node->indices);
    if (!element) return mutated;
    return Make<BufferLoadNode>(ViewOf(node->buffer), std::vector<PrimExpr>{*element});
  }
  Stmt Mutate(const Ref<BufferStoreNode>& store) override {
    const Stmt mutated = StmtMutator::Mutate(store);
    const auto* node = As<BufferStoreNode>(mutated);
    const std::optional<PrimExpr> element = Element(node->buffer, node->indices);
    if (!element) return mutated;
    return Make<BufferStoreNode>(ViewOf(node->buffer), node->value, std::vector<PrimExpr>{*element});
  }

 private:
  // Returns the element's linear index, if it is simpler than the indices.
  std::optional<PrimExpr> Element(const Buffer& buffer, const std::vector<PrimExpr>& indices) {
    if (indices.size() < 2 || !buffer->strides.empty() || buffer->elem_offset) return std::nullopt;
    if (buffer->scope == "thread") return std::nullopt;  // its first index is the thread's number
    int divisions = 0;
    for (const PrimExpr& index : indices) {
      if (!index->dtype.is_scalar()) return std::nullopt;
      divisions += CountDivisions(index);
    }
    const bool ends_in_one = IsConstInt(buffer->shape.back(), 1);
    const bool has_lanes_before_last = lanes_.size() == 1 && MovesBeforeLast(indices, lanes_[0]);
    if (divisions == 0 && !ends_in_one && !has_lanes_before_last) return std::nullopt;
    PrimExpr element = Cast(DataType::Int(64), indices[0]);
    for (size_t d = 1; d < indices.size(); ++d) {
      element = element * Cast(DataType::Int(64), buffer->shape[d]) + Cast(DataType::Int(64), indices[d]);
    }
    element = analyzer_.Simplify(element);
    const int left = CountDivisions(element);
    if (has_lanes_before_last && left <= divisions && HasCloseLanes(element, lanes_[0])) return element;
    if (ends_in_one ? left > divisions : left >= divisions) return std::nullopt;
    return element;
  }
  // Whether the variable moves an index before the last one, and no other.
  static bool MovesBeforeLast(const std::vector<PrimExpr>& indices, const PrimVar& var) {
    const auto moves = [&](const PrimExpr& index) {
      return std::ranges::any_of(FreePrimVars(index), [&](const PrimVar& used) { return used.same_as(var); });
    };
    return !moves(indices.back()) && std::any_of(indices.begin(), indices.end() - 1, moves);
  }
  // Whether the elements are a few steps apart: those of interleaved stores, and of loads that choose from vectors.
  bool HasCloseLanes(const PrimExpr& element, const PrimVar& var) {
    constexpr int64_t kMostSteps = 8;
    const std::optional<arith::LinearForm> form = arith::DetectLinear(element, {var});
    if (!form) return false;
    const auto step = AsConstInt(analyzer_.Simplify(form->coefficients[0]));
    return step && *step >= 1 && *step <= kMostSteps;
  }
  Buffer ViewOf(const Buffer& buffer) {
    Buffer& view = views_[buffer];
    if (view) return view;
    PrimExpr size = Int64(1);
    for (const PrimExpr& dim : buffer->shape) size = size * Cast(DataType::Int(64), dim);
    BufferNode node(buffer->name, buffer->dtype, {analyzer_.Simplify(size)}, buffer->scope);
    node.data = buffer->data;
    node.alignment = buffer->alignment;
    return view = Make<BufferNode>(std::move(node));
  }

  BufferMap views_;
  std::vector<PrimVar> lanes_;  // of the vectorized loops around
};

}  // namespace

Result<PrimFunc> FlattenAccesses(const PrimFunc& function, const Target&) {
  return WithBody(function, AccessFlattener().MutateStmt(function->body));
}

}  // namespace ingot::transform
