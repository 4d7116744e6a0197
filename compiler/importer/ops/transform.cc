// Shapes and layouts: the same elements under other dims or in another order.
#include "compiler/importer/ops/families.h"

#include <algorithm>

#include "compiler/importer/ops/util.h"
#include "compiler/op/broadcast.h"
#include "compiler/op/infer.h"
#include "runtime/tensor.h"

namespace ingot::importer {
namespace {

// A reshape to a data-dependent target: -1 stands for the remaining extent, 0 for the input's dimension (unless
// allowzero); both are resolved by arithmetic on the target.
Outputs ReshapeByData(const NodeImporter& node, const Expr& x, const std::vector<PrimExpr>& in, bool allows_zero) {
  INGOT_ASSIGN_OR_RETURN(Expr target, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> length, StaticRankDims(node, 1));
  const std::optional<int64_t> rank = length.size() == 1 ? ir::AsConstInt(length[0]) : std::nullopt;
  if (!rank || *rank > kMaxRank) return node.Unsupported("the shape is not a constant");
  const DataType index = DataType::Int(64);
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, index));
  INGOT_ASSIGN_OR_RETURN(const Expr one, node.Scalar(1, index));
  INGOT_ASSIGN_OR_RETURN(const Expr rest_sign, node.Scalar(-1, index));
  if (!allows_zero) {
    std::vector<PrimExpr> own(in.begin(), in.begin() + std::min<int64_t>(*rank, std::ssize(in)));
    own.resize(static_cast<size_t>(*rank), ir::Int64(0));
    INGOT_ASSIGN_OR_RETURN(const Expr copied, node.Bind("shape_to_tensor", {ShapeOf(std::move(own))}));
    INGOT_ASSIGN_OR_RETURN(const Expr copies, node.Bind("equal", {target, zero}));
    INGOT_ASSIGN_OR_RETURN(target, node.Bind("where", {copies, copied, target}));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr is_rest, node.Bind("equal", {target, rest_sign}));
  INGOT_ASSIGN_OR_RETURN(Expr known, node.Bind("where", {is_rest, one, target}));
  INGOT_ASSIGN_OR_RETURN(known, node.Bind("prod", {known}, {{"axis", AttrValue::Ints({0})}, {"keepdims", true}}));
  INGOT_ASSIGN_OR_RETURN(known, node.Bind("maximum", {known, one}));
  INGOT_ASSIGN_OR_RETURN(const Expr total, node.Bind("shape_to_tensor", {ShapeOf({Product(in)})}));
  INGOT_ASSIGN_OR_RETURN(const Expr rest, node.Bind("floor_divide", {total, known}));
  INGOT_ASSIGN_OR_RETURN(target, node.Bind("where", {is_rest, rest, target}));
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> dims, node.NameLengths(target));
  // Checks that there are as many elements as before.
  node.Match(ShapeOf({Product(dims)}), ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{Product(in)}));
  return One(ReshapeTo(node, x, std::move(dims)));
}

Outputs Reshape(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t allow_zero, node.Int("allowzero", 0));
  if (node.HasInput(1) && !node.MayBeKnown(1)) return ReshapeByData(node, x, in, allow_zero != 0);
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> shape, node.SymbolicInts(1, "the shape"));
  const auto is_rest = [](const PrimExpr& dim) { return ir::IsConstInt(dim, -1); };
  if (std::ranges::count_if(shape, is_rest) > 1) return node.Invalid("the shape has more than one -1");
  std::vector<PrimExpr> out;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto value = ir::AsConstInt(shape[i]);
    if (value && *value < -1) return node.Invalid("the shape holds " + std::to_string(*value));
    const bool copies = ir::IsConstInt(shape[i], 0) && allow_zero == 0;
    if (copies && i >= in.size()) {
      return node.Invalid("the shape copies dimension " + std::to_string(i) + ", which is not there");
    }
    out.push_back(copies ? in[i] : shape[i]);
  }
  return One(ReshapeTo(node, std::move(x), std::move(out)));
}

Outputs Flatten(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", 1));
  INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, static_cast<int64_t>(in.size()), true));
  const std::span<const PrimExpr> dims(in);
  return One(ReshapeTo(node, std::move(x), {Product(dims.first(axis)), Product(dims.subspan(axis))}));
}

// Of dims whose product is too long for one formula; any other size is known when the node is read.
Outputs Size(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const Expr dims, node.Bind("shape_to_tensor", {ShapeOf(in)}));
  return One(node.Call("prod", {dims}, {{"axis", AttrValue::Ints({0})}, {"keepdims", false}}));
}

Outputs Squeeze(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, AxesOf(node));
  std::vector<bool> drop(in.size());
  std::vector<int64_t> places;
  for (int64_t axis : axes) {
    INGOT_ASSIGN_OR_RETURN(const int64_t index, NormaliseAxis(node, axis, static_cast<int64_t>(in.size())));
    if (ir::AsConstInt(in[index]) && !ir::IsConstInt(in[index], 1)) {
      return node.Invalid("axis " + std::to_string(axis) + " is not of size 1");
    }
    if (!drop[index]) places.push_back(index);
    drop[index] = true;
  }
  std::vector<PrimExpr> out;
  bool is_known = true;
  for (size_t i = 0; i < in.size(); ++i) {
    is_known = is_known && (ir::AsConstInt(in[i]) || (!axes.empty() && !drop[i]));
    if (axes.empty() ? !ir::IsConstInt(in[i], 1) : !drop[i]) out.push_back(in[i]);
  }
  if (is_known) return One(ReshapeTo(node, std::move(x), std::move(out)));
  // Whether a symbolic dim is 1 is checked when the model runs.
  return One(node.Call("squeeze", {x}, {{"axis", axes.empty() ? AttrValue() : AttrValue::Ints(places)}}));
}

Outputs Unsqueeze(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, AxesOf(node));
  const int64_t rank = static_cast<int64_t>(in.size() + axes.size());
  std::vector<bool> added(rank);
  for (int64_t axis : axes) {
    INGOT_ASSIGN_OR_RETURN(const int64_t index, NormaliseAxis(node, axis, rank));
    if (added[index]) return node.Invalid("axis " + std::to_string(axis) + " is given twice");
    added[index] = true;
  }
  std::vector<PrimExpr> out;
  for (size_t i = 0, from = 0; i < added.size(); ++i) out.push_back(added[i] ? ir::Int64(1) : in[from++]);
  return One(ReshapeTo(node, std::move(x), std::move(out)));
}

Outputs Transpose(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  std::vector<int64_t> reversed;
  for (size_t i = in.size(); i-- > 0;) reversed.push_back(static_cast<int64_t>(i));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                         node.Ints("perm", std::move(reversed), static_cast<int64_t>(in.size())));
  return One(node.Call("permute_dims", {x}, {{"axes", AttrValue::Ints(axes)}}));
}

Outputs Concat(const NodeImporter& node) {
  std::vector<Expr> fields;
  std::vector<ir::Type> types;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr field, node.Input(i));
    types.push_back(field->type);
    fields.push_back(std::move(field));
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", 0));
  INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, static_cast<int64_t>(in.size())));
  const Expr tuple = ir::Make<ir::TupleNode>(std::move(fields), ir::Make<ir::TupleTypeNode>(std::move(types)));
  return One(node.Call("concat", {tuple}, {{"axis", axis}}));
}

// Broadcasts both ways, as NumPy does: a 1 in the shape keeps the input's dimension.
Outputs Expand(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> shape, node.DataInts(1, "the shape"));
  std::vector<PrimExpr> out(std::max(in.size(), shape.size()), ir::Int64(1)), targets, expected;
  for (size_t i = 0; i < in.size(); ++i) out[out.size() - in.size() + i] = in[i];
  for (size_t i = 0; i < shape.size(); ++i) {
    const PrimExpr& target = shape[i];
    const auto value = ir::AsConstInt(target);
    if (value && *value < 0) return node.Invalid("the shape holds " + std::to_string(*value));
    PrimExpr& dim = out[out.size() - shape.size() + i];
    if (!value && !ir::IsConstInt(dim, 1) && !op::DimsEqual(dim, target)) {
      // Whether the dim fits the result is an assumption of broadcast_to; that the target does is compared here.
      const PrimExpr one = ir::Int64(1);
      const PrimExpr fits = ir::Select(ir::Equal(target, one), one, dim);
      targets.push_back(target);
      expected.push_back(ir::AsConstInt(dim) ? fits : ir::Select(ir::Equal(dim, one), target, fits));
    }
    dim =
        value && ir::AsConstInt(dim) && !ir::IsConstInt(dim, 1) && *value != 1 ? target : op::BroadcastDim(dim, target);
  }
  if (!targets.empty()) node.Match(ShapeOf(std::move(targets)), ir::Make<ir::ShapeTypeNode>(std::move(expected)));
  return One(node.Call("broadcast_to", {x, ShapeOf(std::move(out))}));
}

constexpr OnnxOpRow kTransformRows[] = {
    {"Concat", nullptr, Concat},       {"Expand", nullptr, Expand},       {"Flatten", nullptr, Flatten},
    {"Reshape", nullptr, Reshape},     {"Size", nullptr, Size},           {"Squeeze", nullptr, Squeeze},
    {"Transpose", nullptr, Transpose}, {"Unsqueeze", nullptr, Unsqueeze},
};

}  // namespace

std::span<const OnnxOpRow> TransformOnnxOps() { return kTransformRows; }

}  // namespace ingot::importer
