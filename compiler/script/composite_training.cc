// Composed operators of training: losses, and the gradients that TVM's automatic differentiation calls.
#include <algorithm>

#include "compiler/script/composite_maker.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

// -sum(predictions * labels), over the batch where there is one
Result<Expr> ComposeCrossEntropy(const CompositeArgs& args, const Attrs&, const BindValue& bind) {
  CompositeMaker m(bind);
  const std::vector<PrimExpr> dims = m.Dims(args[0]);
  const Expr sum = m("negative", {m.SumAll(m("multiply", {args[0], args[1]}))});
  if (dims.size() < 2) return m.Take(sum);
  const Expr batch = m.Reshape(m("shape_to_tensor", {m.Shape({dims[0]})}), {});
  return m.Take(m("divide", {sum, m.Cast(batch, m.DType(args[0]))}));
}

// What a loss knows of its targets: classes that can be looked up, and their weights, 0 where the target is ignored.
struct Targets {
  Expr classes, weights;
  int64_t axis;  // of the classes in the predictions
  PrimExpr num_classes;
};
Targets ReadTargets(CompositeMaker& m, const Expr& predictions, const Expr& targets, const Expr& weights,
                    int64_t ignored) {
  const std::vector<PrimExpr> dims = m.Dims(predictions);
  const std::vector<PrimExpr> target_dims = m.Dims(targets);
  const DataType dtype = m.DType(predictions), whole = m.DType(targets);
  Targets result;
  if (dims.empty()) {
    m.Fail("expected predictions of classes");
    return result;
  }
  result.axis = dims.size() > 1 ? 1 : 0;
  result.num_classes = dims[static_cast<size_t>(result.axis)];
  const Expr is_ignored = m("equal", {targets, m.Number(static_cast<double>(ignored), whole)});
  result.classes = m("where", {is_ignored, m.Number(0, whole), targets});
  const Expr given = weights != nullptr ? m("take", {weights, result.classes}, {{"axis", 0}})
                                        : m("ones", {m.Shape(target_dims)}, {{"dtype", dtype}});
  result.weights = m("where", {is_ignored, m.Number(0, dtype), given});
  return result;
}

Result<Expr> ComposeNllLoss(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const Targets targets = ReadTargets(m, args[0], args[1], args[2], attrs.GetInt("ignore_index"));
  const bool batched = m.Dims(args[0]).size() > 1;
  const Expr picked =
      batched ? m("squeeze",
                  {m("gather_elements", {args[0], m.Expand(targets.classes, {1})}, {{"axis", 1}})},
                  {{"axis", AttrList{1}}})
              : m("take", {args[0], targets.classes}, {{"axis", 0}});
  const Expr losses = m("negative", {m("multiply", {picked, targets.weights})});
  const std::string& reduction = attrs.GetString("reduction");
  if (reduction == "none") return m.Take(losses);
  if (reduction == "sum") return m.Take(batched ? m.SumAll(losses) : losses);
  if (reduction != "mean") return m.Take(m.Fail("reduction: expected \"none\", \"sum\" or \"mean\""));
  if (!batched) return m.Take(m("divide", {losses, targets.weights}));
  return m.Take(m("divide", {m.SumAll(losses), m.SumAll(targets.weights)}));
}

Result<Expr> ComposeNllLossBackward(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const Expr &gradient = args[0], &predictions = args[1];
  const Targets targets = ReadTargets(m, predictions, args[2], args[3], attrs.GetInt("ignore_index"));
  const DataType dtype = m.DType(predictions);
  const bool batched = m.Dims(predictions).size() > 1;
  Expr each = gradient;
  if (attrs.GetString("reduction") == "mean") {
    each = m("divide", {gradient, batched ? m.SumAll(targets.weights) : targets.weights});
  }
  const Expr scaled = m("negative", {m("multiply", {targets.weights, each})});
  const int64_t depth = m.Constant(targets.num_classes, "the number of classes");
  const Attrs over_classes = {{"depth", depth}, {"axis", targets.axis}};
  const Expr chosen = m("one_hot", {targets.classes, m.Prim(Int64(1)), m.Prim(Int64(0))}, over_classes);
  const Expr is_chosen = m("greater", {chosen, m.Number(0, DataType::Int(64))});
  return m.Take(m("where", {is_chosen, m.Expand(scaled, {targets.axis}), m.Number(0, dtype)}));
}

// Adds the gradient of what take gave to the places that it came from.
Result<Expr> ComposeTakeBackward(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const Expr &gradient = args[0], &x = args[1], &indices = args[2];
  const std::vector<PrimExpr> dims = m.Dims(x), index_dims = m.Dims(indices);
  const auto* given = attrs.Find("axis")->get<int64_t>();
  const int64_t axis = given == nullptr ? 0 : m.Axis(*given, dims.size());
  if (dims.empty() || (given == nullptr && dims.size() != 1)) return m.Take(m.Fail("axis None needs a vector"));
  const auto rank = static_cast<int64_t>(dims.size()), taken = static_cast<int64_t>(index_dims.size());
  std::vector<int64_t> order{axis}, back(dims.size()), gradient_order;
  std::vector<PrimExpr> moved{dims[static_cast<size_t>(axis)]};
  for (int64_t i = 0; i < rank; ++i) {
    if (i == axis) continue;
    order.push_back(i);
    moved.push_back(dims[static_cast<size_t>(i)]);
  }
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  for (int64_t i = 0; i < taken; ++i) gradient_order.push_back(axis + i);
  for (int64_t i = 0; i < rank + taken - 1; ++i) {
    if (i < axis || i >= axis + taken) gradient_order.push_back(i);
  }
  const Expr places = m.Expand(m.Cast(indices, DataType::Int(64)), {-1});
  const Expr sum = m("scatter_nd", {m.Zeros(moved, m.DType(x)), places, m.Permute(gradient, gradient_order)},
                     {{"reduction", "add"}});
  return m.Take(m.Permute(sum, back));
}

// The attributes of a pool over images, as far as its gradient is composed.
struct PoolWindow {
  std::vector<int64_t> size, strides, padding;
};
PoolWindow ReadPool(CompositeMaker& m, const Attrs& attrs) {
  PoolWindow window{attrs.GetInts("pool_size"), attrs.GetInts("strides"), attrs.GetInts("padding")};
  if (attrs.GetString("layout") != "NCHW") m.Fail("layout: expected \"NCHW\"");
  if (attrs.GetBool("ceil_mode")) m.Fail("ceil_mode is not supported");
  if (window.size.size() != 2 || window.strides.size() != 2 || window.padding.size() != 4) {
    m.Fail("expected windows of two dimensions");
    window = {{1, 1}, {1, 1}, {0, 0, 0, 0}};
  }
  return window;
}

// Each gradient is added at the place of the greatest element under its window.
Result<Expr> ComposeMaxPoolBackward(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const PoolWindow window = ReadPool(m, attrs);
  const std::vector<int64_t> dilation = attrs.GetInts("dilation");
  const std::vector<PrimExpr> dims = m.Dims(args[1]);
  const Expr pooled = m("nn.max_pool2d", {args[1]},
                        {{"pool_size", AttrValue::Ints(window.size)},
                         {"strides", AttrValue::Ints(window.strides)},
                         {"padding", AttrValue::Ints(window.padding)},
                         {"dilation", AttrValue::Ints(dilation)}});
  const Expr places = m("nn.max_pool_indices", {args[1], pooled},
                        {{"pool_size", AttrValue::Ints(window.size)},
                         {"strides", AttrValue::Ints(window.strides)},
                         {"dilation", AttrValue::Ints(dilation)},
                         {"padding", AttrValue::Ints(window.padding)}});
  PrimExpr size = Int64(1);
  for (const PrimExpr& dim : dims) size = size * dim;
  const Expr flat_places = m.Reshape(places, {Int64(-1)}), gradients = m.Reshape(args[0], {Int64(-1)});
  const Expr sums = m("scatter_elements", {m.Zeros({size}, m.DType(args[1])), flat_places, gradients},
                      {{"axis", 0}, {"reduction", "add"}});
  return m.Take(m.Reshape(sums, dims));
}

// Each gradient is shared by the elements under its window: a transposed convolution with ones, per channel.
Result<Expr> ComposeAvgPoolBackward(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const PoolWindow window = ReadPool(m, attrs);
  if (attrs.GetInts("dilation") != std::vector<int64_t>{1, 1}) m.Fail("dilation is not supported");
  const std::vector<PrimExpr> dims = m.Dims(args[1]), out = m.Dims(args[0]);
  const DataType dtype = m.DType(args[1]);
  if (dims.size() != 4 || out.size() != 4) return m.Take(m.Fail("expected images"));
  const int64_t channels = m.Constant(dims[1], "the number of channels");
  const double area = static_cast<double>(window.size[0] * window.size[1]);
  Expr share = m("divide", {args[0], m.Number(area, dtype)});
  if (!attrs.GetBool("count_include_pad")) {
    const Expr ones = m("ones", {m.Shape({Int64(1), Int64(1), dims[2], dims[3]})}, {{"dtype", dtype}});
    const Expr part = m("nn.avg_pool2d", {ones},
                        {{"pool_size", AttrValue::Ints(window.size)},
                         {"strides", AttrValue::Ints(window.strides)},
                         {"padding", AttrValue::Ints(window.padding)},
                         {"count_include_pad", true}});
    share = m("divide", {share, part});
  }
  std::vector<int64_t> rest;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t in = m.Constant(dims[2 + i], "the image's size");
    const int64_t steps = m.Constant(out[2 + i], "the image's size") - 1;
    rest.push_back(in - (steps * window.strides[i] - window.padding[i] - window.padding[i + 2] + window.size[i]));
  }
  const Expr kernel = m("ones", {m.Shape({Int64(channels), Int64(1), Int64(window.size[0]), Int64(window.size[1])})},
                        {{"dtype", dtype}});
  return m.Take(m("nn.conv2d_transpose", {share, kernel},
                  {{"strides", AttrValue::Ints(window.strides)},
                   {"padding", AttrValue::Ints(window.padding)},
                   {"output_padding", AttrValue::Ints(rest)},
                   {"groups", channels}}));
}

}  // namespace

const std::vector<CompositeOperator>& TrainingComposites() {
  const std::vector<CompositeAttr> loss = {{"reduction", "mean"}, {"ignore_index", -100}};
  const AttrValue ones = AttrValue::Ints({1, 1});
  const std::vector<CompositeAttr> pool = {{"pool_size", ones},
                                           {"strides", ones},
                                           {"padding", AttrValue::Ints({0, 0, 0, 0})},
                                           {"dilation", ones},
                                           {"ceil_mode", false},
                                           {"count_include_pad", false},
                                           {"layout", "NCHW"},
                                           {"out_layout", {}}};
  static const std::vector<CompositeOperator> kOperators = {
      {"grad.avg_pool2d_backward", {"output_grad", "data"}, pool, ComposeAvgPoolBackward},
      {"grad.max_pool2d_backward", {"output_grad", "data"}, pool, ComposeMaxPoolBackward},
      {"grad.nll_loss_backward",
       {"output_grad", "predictions", "targets", "weights"},
       loss,
       ComposeNllLossBackward,
       1},
      {"grad.take_backward", {"output_grad", "x", "indices"}, {{"axis", {}}, {"mode", "fast"}}, ComposeTakeBackward},
      {"nn.cross_entropy_with_logits", {"predictions", "labels"}, {}, ComposeCrossEntropy},
      {"nn.nll_loss", {"predictions", "targets", "weights"}, loss, ComposeNllLoss, 1},
  };
  return kOperators;
}

}  // namespace ingot::script
