// Views and permutations. Reshapes cost nothing, but they separate operators that could be fused. So they move down,
// behind element-wise operators, normalisations and products with a matrix, until they meet another reshape or a reader
// that needs them. Permutations are joined, become views if they only move dims of 1, and move below views, so that the
// operators that absorb them (attention) see them.
#include <algorithm>

#include "compiler/op/infer.h"
#include "compiler/op/names.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/rewrite.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;
using Dims = std::vector<ir::PrimExpr>;

namespace {

bool IsView(const ir::Call& call) { return op::RowOf(call)->is_view; }

// Axis i of the result is axis axes[i] of x.
std::vector<int64_t> AxesOf(const ir::Call& permute) {
  const size_t rank = DimsOf(permute->args[0])->size();
  std::vector<int64_t> axes;
  if (const auto given = op::IntsAttr(permute, "axes")) {
    for (int64_t axis : *given) axes.push_back(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
    return axes;
  }
  for (size_t i = rank; i-- > 0;) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

Expr Permute(RewriteContext& context, const Expr& x, const std::vector<int64_t>& axes) {
  if (std::ranges::is_sorted(axes)) return x;
  return context.Call("permute_dims", {x}, {{"axes", ir::AttrValue::Ints(axes)}});
}

Dims Select(const Dims& dims, const std::vector<int64_t>& axes) {
  Dims result;
  for (int64_t axis : axes) result.push_back(dims[static_cast<size_t>(axis)]);
  return result;
}

// Returns the axes whose dims are not 1.
std::vector<int64_t> LongAxes(const Dims& dims) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!ir::IsConstInt(dims[i], 1)) axes.push_back(static_cast<int64_t>(i));
  }
  return axes;
}

// Makes a view of a view one view of the innermost value, and replaces a view that changes nothing by its operand.
Expr JoinViews(const Match& match, RewriteContext& context) {
  const ir::Call view = match.GetCall("view");
  const ir::Call inner = context.ResolveCall(view->args[0]);
  const bool is_chain = inner && IsView(inner);
  const Expr x = is_chain ? inner->args[0] : view->args[0];
  const Dims* dims = DimsOf(view);
  if (dims == nullptr || DimsOf(x) == nullptr) return nullptr;
  if (!is_chain && !SameType(x->type, view->type)) return nullptr;
  return ReshapeTo(context, x, *dims);
}

Expr JoinPermutes(const Match& match, RewriteContext& context) {
  const ir::Call outer = match.GetCall("outer"), inner = match.GetCall("inner");
  if (DimsOf(match.Get("x")) == nullptr) return nullptr;
  const std::vector<int64_t> first = AxesOf(inner);
  std::vector<int64_t> axes;
  for (int64_t axis : AxesOf(outer)) axes.push_back(first[static_cast<size_t>(axis)]);
  return Permute(context, match.Get("x"), axes);
}

// A permutation that keeps the order of the dims longer than 1 becomes a view.
Expr PermuteToView(const Match& match, RewriteContext& context) {
  const ir::Call permute = match.GetCall("permute");
  const Dims* dims = DimsOf(match.Get("x"));
  if (dims == nullptr) return nullptr;
  std::vector<int64_t> order;
  for (int64_t axis : AxesOf(permute)) {
    if (!ir::IsConstInt((*dims)[static_cast<size_t>(axis)], 1)) order.push_back(axis);
  }
  if (!std::ranges::is_sorted(order)) return nullptr;
  return ReshapeTo(context, match.Get("x"), Select(*dims, AxesOf(permute)));
}

// A view that only adds or removes dims of 1 moves in front of the permutation before it: x gets all dims of 1 in
// front.
Expr ViewBeforePermute(const Match& match, RewriteContext& context) {
  const ir::Call view = match.GetCall("view");
  const ir::Call permute = context.ResolveCall(view->args[0]);
  if (!IsView(view) || !permute || !op::IsCallOf(permute, op::names::kPermuteDims)) return nullptr;
  const Dims* result = DimsOf(view);
  const Dims* x = DimsOf(permute->args[0]);
  if (result == nullptr || x == nullptr) return nullptr;
  const std::vector<int64_t> axes = AxesOf(permute);
  const std::vector<int64_t> result_long = LongAxes(*result);
  const std::vector<int64_t> x_long = LongAxes(*x);
  // The axes of x that are the longer dims of the result, in order.
  std::vector<int64_t> sources;
  for (int64_t axis : axes) {
    if (!ir::IsConstInt((*x)[static_cast<size_t>(axis)], 1)) sources.push_back(axis);
  }
  if (!EqualDims(Select(*x, sources), Select(*result, result_long))) return nullptr;
  const int64_t num_ones = std::ssize(*result) - std::ssize(result_long);
  Dims dims(static_cast<size_t>(num_ones), ir::Int64(1));
  for (int64_t axis : x_long) dims.push_back((*x)[static_cast<size_t>(axis)]);
  std::vector<int64_t> order;
  int64_t next_one = 0;
  size_t next_long = 0;
  for (const ir::PrimExpr& dim : *result) {
    if (ir::IsConstInt(dim, 1)) {
      order.push_back(next_one++);
    } else {
      const auto at = std::ranges::find(x_long, sources[next_long++]) - x_long.begin();
      order.push_back(num_ones + at);
    }
  }
  const Expr base = context.AsArgument(ReshapeTo(context, permute->args[0], dims));
  return base ? Permute(context, base, order) : nullptr;
}

// Selecting one place of a permuted axis is a permutation of a selection.
Expr TakeBeforePermute(const Match& match, RewriteContext& context) {
  const ir::Call take = match.GetCall("take"), permute = match.GetCall("permute");
  const Dims* indices = DimsOf(take->args[1]);
  const Expr x = match.Get("x");
  if (indices == nullptr || !indices->empty() || DimsOf(x) == nullptr) return nullptr;
  const ir::AttrValue* given = take->attrs.Find("axis");
  if (given == nullptr || given->is_none()) return nullptr;
  const std::vector<int64_t> axes = AxesOf(permute);
  int64_t axis = take->attrs.GetInt("axis");
  if (axis < 0) axis += std::ssize(axes);
  const int64_t source = axes[static_cast<size_t>(axis)];
  std::vector<int64_t> order;
  for (int64_t a : axes) {
    if (a != source) order.push_back(a > source ? a - 1 : a);
  }
  const Expr slice = context.Bind("take", {x, take->args[1]}, take->attrs.With("axis", source));
  return slice ? Permute(context, slice, order) : nullptr;
}

// Returns the viewed value, if expr is a view of a value that is computed and could be fused with its readers.
Expr ComputedBehindView(RewriteContext& context, const Expr& expr) {
  const ir::Call view = context.ResolveCall(expr);
  if (!view || !IsView(view) || DimsOf(view) == nullptr) return nullptr;
  const ir::Call producer = context.ResolveCall(view->args[0]);
  if (!producer || DimsOf(view->args[0]) == nullptr || DimsOf(view->args[0])->empty()) return nullptr;
  const op::FusionClass fusion = op::RowOf(producer)->fusion;
  const bool computes = fusion == op::FusionClass::kOutFusible || fusion == op::FusionClass::kElementwise ||
                        fusion == op::FusionClass::kBroadcast;
  return computes ? view->args[0] : nullptr;
}

bool SameLastDim(const Dims& a, const Dims& b) { return !a.empty() && !b.empty() && op::DimsEqual(a.back(), b.back()); }

// f(view(x)) = view(f(x)) for an element-wise f of one tensor.
Expr ViewAfterUnary(const Match& match, RewriteContext& context) {
  const ir::Call call = match.GetCall("call");
  const op::OpRow& row = *op::RowOf(call);
  if (row.fusion != op::FusionClass::kElementwise || call->args.empty() || op::InputTensors(call).size() != 1) {
    return nullptr;
  }
  const Expr x = ComputedBehindView(context, call->args[0]);
  if (!x) return nullptr;
  std::vector<Expr> args = call->args;
  args[0] = x;
  const Expr moved = context.Bind(row.name, std::move(args), call->attrs);
  return moved ? ReshapeTo(context, moved, *DimsOf(call)) : nullptr;
}

// Returns the other operand of a binary operator in the dims of x, which the view has in `dims`: a number, a row along
// the last axis that both have, or a tensor of the same dims.
Expr OtherOperand(RewriteContext& context, const Expr& other, const Dims& x, const Dims& dims) {
  const Dims* own = DimsOf(other);
  if (own == nullptr) return nullptr;
  if (own->empty()) return other;
  if (const auto* constant = As<ir::ConstantNode>(other); constant && constant->data->num_elements() == 1) {
    const ir::ConstantData& data = *constant->data;
    return ir::Make<ir::ConstantNode>(
        std::make_shared<const ir::ConstantData>(data.dtype(), std::vector<int64_t>(), data.bytes(), data.owner()));
  }
  if (own->size() == 1 && SameLastDim(*own, dims) && SameLastDim(x, dims)) return other;
  // Only if x has fewer dims: the other operand gets a view, and that view must not be moved back.
  if (!EqualDims(*own, dims) || x.size() >= dims.size()) return nullptr;
  return context.AsArgument(ReshapeTo(context, other, x));
}

Expr ViewAfterBinary(const Match& match, RewriteContext& context) {
  const ir::Call call = match.GetCall("call");
  const op::OpRow& row = *op::RowOf(call);
  if (row.fusion != op::FusionClass::kBroadcast || call->args.size() != 2 || op::InputTensors(call).size() != 2) {
    return nullptr;
  }
  for (size_t side : {0, 1}) {
    const Expr x = ComputedBehindView(context, call->args[side]);
    const Dims* dims = DimsOf(call->args[side]);
    if (!x || DimsOf(call) == nullptr || !EqualDims(*DimsOf(call), *dims)) continue;
    const Expr other = OtherOperand(context, call->args[1 - side], *DimsOf(x), *dims);
    if (!other) continue;
    std::vector<Expr> args = {x, other};
    if (side == 1) std::swap(args[0], args[1]);
    const Expr moved = context.Bind(row.name, std::move(args), call->attrs);
    return moved ? ReshapeTo(context, moved, *DimsOf(call)) : nullptr;
  }
  return nullptr;
}

// Normalisation over the last axis, which the view does not change.
Expr ViewAfterNorm(const Match& match, RewriteContext& context) {
  const ir::Call call = match.GetCall("norm");
  const Expr x = ComputedBehindView(context, call->args[0]);
  if (!x || DimsOf(call) == nullptr || !SameLastDim(*DimsOf(x), *DimsOf(call))) return nullptr;
  const std::vector<int64_t> axes = call->attrs.GetInts("axes");
  if (axes.size() != 1 || (axes[0] != -1 && axes[0] != std::ssize(*DimsOf(call)) - 1)) return nullptr;
  std::vector<Expr> args = call->args;
  args[0] = x;
  const Expr moved =
      context.Bind(op::RowOf(call)->name, std::move(args), call->attrs.With("axes", ir::AttrValue::Ints({-1})));
  return moved ? ReshapeTo(context, moved, *DimsOf(call)) : nullptr;
}

// view(x) w = view(x w) for a matrix w, if the view keeps the last axis.
Expr ViewAfterProduct(const Match& match, RewriteContext& context) {
  const ir::Call call = match.GetCall("product"), view = context.ResolveCall(match.Get("x"));
  if (!view || !IsView(view)) return nullptr;
  const Expr x = view->args[0];
  const Dims* w = DimsOf(match.Get("w"));
  if (w == nullptr || w->size() != 2 || DimsOf(x) == nullptr || DimsOf(x)->size() < 2 || DimsOf(view) == nullptr ||
      DimsOf(view)->size() < 2 || DimsOf(call) == nullptr || !SameLastDim(*DimsOf(x), *DimsOf(view))) {
    return nullptr;
  }
  // Kernels tile the last two dims: if x has a single row there, or may have one and the view joins rows, the view's dims
  // are kept.
  const ir::PrimExpr rows = *(DimsOf(x)->end() - 2), rows_of_view = *(DimsOf(view)->end() - 2);
  if (ir::IsConstInt(rows, 1) && !ir::IsConstInt(rows_of_view, 1)) return nullptr;
  const bool joins_rows = DimsOf(x)->size() > DimsOf(view)->size() && !EqualDims({rows}, {rows_of_view});
  if (joins_rows && !ir::AsConstInt(rows)) return nullptr;
  const Expr moved = context.Bind("matmul", {x, match.Get("w")}, call->attrs);
  return moved ? ReshapeTo(context, moved, *DimsOf(call)) : nullptr;
}

}  // namespace

std::vector<RewriteRow> ViewRewrites() {
  const Pattern call = AnyOp().As("call");
  const Pattern view = AnyOp().Where(IsView).As("view");
  return {
      {RewriteId::kViewView, view, JoinViews},
      {RewriteId::kPermutePermute, Op("permute_dims", {Op("permute_dims", {Any("x")}).As("inner")}).As("outer"),
       JoinPermutes},
      {RewriteId::kPermuteIsView, Op("permute_dims", {Any("x")}).As("permute"), PermuteToView},
      {RewriteId::kViewPermute, view, ViewBeforePermute},
      {RewriteId::kTakePermute, Op("take", {Op("permute_dims", {Any("x")}).As("permute"), Any()}).As("take"),
       TakeBeforePermute},
      {RewriteId::kUnaryView, call, ViewAfterUnary},
      {RewriteId::kBinaryView, call, ViewAfterBinary},
      {RewriteId::kNormView,
       OneOf({Op("nn.layer_norm", {Any(), Any()}), Op("nn.layer_norm", {Any(), Any(), Any()}),
              Op("nn.rms_norm", {Any(), Any()})})
           .As("norm"),
       ViewAfterNorm},
      {RewriteId::kProductView, Op("matmul", {Any("x"), Any("w")}).As("product"), ViewAfterProduct},
  };
}

}  // namespace ingot::transform
