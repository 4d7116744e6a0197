// Operators of streaming models, which continue where their last call stopped: they take their state as a tensor, and
// return the new one.
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/contrib_attention.h"
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

// How a convolution of a streaming model takes its data: [batch, channels, length], or [batch, length, ...] of channels
// that have one axis or several.
struct CausalForm {
  int64_t dilation = 1;
  bool channels_last = false;
};

// A depthwise convolution over the length that also reads the state, the end of the input so far.
Outputs CausalConvolution(const NodeImporter& node, const CausalForm& form) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr weight, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> kernel, StaticRankDims(node, 1));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(const std::string activation, node.String("activation", "none"));
  const bool is_swish = activation == "silu" || activation == "swish";
  if (!is_swish && activation != "none") return node.Invalid("activation is \"" + activation + "\"");
  if (in.size() < 3 || (in.size() > 3 && !form.channels_last) || kernel.size() != 3) {
    return node.Invalid("expected an input and a weight of rank 3");
  }
  const auto channels = ir::AsConstInt(kernel[0]), width = ir::AsConstInt(kernel[2]);
  if (!channels || !width) return node.Unsupported("a weight of symbolic dims");
  const std::span<const PrimExpr> parts(in.begin() + 2, in.end());
  if (form.channels_last && op::DimsDiffer(Product(parts), ir::Int64(*channels))) {
    return node.Invalid("the input's channels are not those of the weight");
  }
  const PrimExpr &batch = in[0], &length = in[form.channels_last ? 1 : 2], many = ir::Int64(*channels);
  const PrimExpr state = ir::Int64((*width - 1) * form.dilation);
  const auto channels_first = [&](Expr value, const PrimExpr& along) -> Result<Expr> {
    if (!form.channels_last) return value;
    INGOT_ASSIGN_OR_RETURN(value, node.Bind("reshape", {value, ShapeOf({batch, along, many})}));
    return Permuted(node, std::move(value), {0, 2, 1});
  };
  const auto as_given = [&](Expr value, const PrimExpr& along) -> Result<Expr> {
    if (!form.channels_last) return value;
    std::vector<PrimExpr> dims = in;
    dims[1] = along;
    INGOT_ASSIGN_OR_RETURN(value, Permuted(node, std::move(value), {0, 2, 1}));
    return ReshapeTo(node, std::move(value), std::move(dims));
  };
  INGOT_ASSIGN_OR_RETURN(x, channels_first(std::move(x), length));
  Expr past;
  if (node.HasInput(3)) {
    std::vector<PrimExpr> dims = in;
    dims[form.channels_last ? 1 : 2] = state;
    INGOT_ASSIGN_OR_RETURN(past, InputOfDims(node, 3, std::move(dims)));
    INGOT_ASSIGN_OR_RETURN(past, channels_first(std::move(past), state));
  } else {
    const PrimExpr& own = form.channels_last ? many : in[1];
    INGOT_ASSIGN_OR_RETURN(past, node.Bind("zeros", {ShapeOf({batch, own, state})}, {{"dtype", *type->dtype}}));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr all, node.Bind("concat", {TupleOf({past, x})}, {{"axis", int64_t{2}}}));
  ir::Attrs attrs = {{"groups", *channels}};
  if (form.dilation != 1) attrs = attrs.With("dilation", AttrValue::Ints({form.dilation}));
  INGOT_ASSIGN_OR_RETURN(Expr y, node.Bind("nn.conv1d", {all, weight}, attrs));
  if (node.HasInput(2)) {
    INGOT_ASSIGN_OR_RETURN(Expr bias, node.Input(2));
    INGOT_ASSIGN_OR_RETURN(bias, node.Bind("reshape", {bias, ShapeOf({many, ir::Int64(1)})}));
    INGOT_ASSIGN_OR_RETURN(y, node.Bind("add", {y, bias}));
  }
  if (is_swish) {
    INGOT_ASSIGN_OR_RETURN(y, node.Bind("nn.silu", {y}));
  }
  const auto numbers = [](const PrimExpr& value) { return TupleOf({Number(value)}); };
  INGOT_ASSIGN_OR_RETURN(Expr present, node.Bind("strided_slice", {all, numbers(ir::Int64(2)), numbers(length),
                                                                   numbers(op::SimplifyDim(length + state))}));
  INGOT_ASSIGN_OR_RETURN(y, as_given(std::move(y), length));
  INGOT_ASSIGN_OR_RETURN(present, as_given(std::move(present), state));
  return std::vector<Expr>{std::move(y), std::move(present)};
}

Outputs CausalConvWithState(const NodeImporter& node) { return CausalConvolution(node, {}); }

// com.microsoft's form, without what runs on GPUs alone.
Outputs MsCausalConvWithState(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(
      CheckAttributes(node, {"activation", "channels_last", "dilation", "input_channel_offset", "input_channels",
                             "ndim", "state_channels_last", "state_length", "state_update_capacity", "state_window"}));
  for (const auto& [name, value] : {std::pair<const char*, int64_t>("ndim", 1),
                                    {"state_window", 0},
                                    {"state_update_capacity", 0},
                                    {"state_channels_last", -1},
                                    {"state_length", 0},
                                    {"input_channel_offset", 0},
                                    {"input_channels", 0}}) {
    INGOT_RETURN_IF_ERROR(RefuseUnless(node, name, value));
  }
  INGOT_RETURN_IF_ERROR(RefuseOutput(node, 2, "state_update"));
  CausalForm form;
  INGOT_ASSIGN_OR_RETURN(form.dilation, node.Int("dilation", 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t channels_last, node.Int("channels_last", 0));
  constexpr int64_t kFarthest = int64_t{1} << 20;
  if (form.dilation < 1 || form.dilation > kFarthest) {
    return node.Invalid("dilation is " + std::to_string(form.dilation));
  }
  form.channels_last = channels_last != 0;
  return CausalConvolution(node, form);
}

// Writes each sample's update into its cache from the sample's own position on, around the end if the cache is
// circular.
Outputs TensorScatter(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr cache, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr update, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> room, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> in, StaticRankDims(node, 1));
  INGOT_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "linear"));
  INGOT_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", -2));
  INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, std::ssize(in)));
  if (mode != "linear" && mode != "circular") return node.Invalid("mode is \"" + mode + "\"");
  if (axis == 0 || room.size() != in.size())
    return node.Invalid("the axis is that of the batch, or the ranks are unlike");
  for (size_t i = 0; i < in.size(); ++i) {
    if (static_cast<int64_t>(i) != axis) in[i] = room[i];
  }
  update = WithDims(node, std::move(update), in);
  const DataType index = DataType::Int(64);
  const PrimExpr& length = in[static_cast<size_t>(axis)];
  std::vector<PrimExpr> along(in.size(), ir::Int64(1)), batch = along;
  along[static_cast<size_t>(axis)] = length;
  batch[0] = in[0];
  INGOT_ASSIGN_OR_RETURN(Expr places, node.Bind("arange", {Number(ir::Int64(0)), Number(length), Number(ir::Int64(1))},
                                                {{"dtype", index}}));
  INGOT_ASSIGN_OR_RETURN(places, node.Bind("reshape", {places, ShapeOf(along)}));
  if (node.HasInput(2)) {
    INGOT_ASSIGN_OR_RETURN(Expr begin, node.Input(2));
    INGOT_ASSIGN_OR_RETURN(begin, node.Bind("astype", {begin}, {{"dtype", index}}));
    INGOT_ASSIGN_OR_RETURN(begin, node.Bind("reshape", {begin, ShapeOf(batch)}));
    INGOT_ASSIGN_OR_RETURN(places, node.Bind("add", {places, begin}));
  }
  if (mode == "circular") {
    INGOT_ASSIGN_OR_RETURN(Expr around, node.Bind("shape_to_tensor", {ShapeOf({room[static_cast<size_t>(axis)]})}));
    INGOT_ASSIGN_OR_RETURN(places, node.Bind("floor_mod", {places, around}));
  }
  INGOT_ASSIGN_OR_RETURN(places, node.Bind("broadcast_to", {places, ShapeOf(in)}));
  return One(node.Call("scatter_elements", {cache, places, update}, {{"axis", axis}, {"reduction", "update"}}));
}

// ---- LinearAttention

// Numbers of 16 bits are computed with in float32, as the specification's formulas are.
Result<Expr> Widened(const NodeImporter& node, size_t input) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(input));
  if (!type->dtype->is_floating()) return node.Invalid("expected floats, got " + type->dtype->ToString());
  return CastTo(node, std::move(x), DataType::Float(32));
}

// Attention by a state [batch, heads, depth, value depth] instead of keys and values.
Outputs LinearAttention(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(
      CheckAttributes(node, {"chunk_size", "kv_num_heads", "q_num_heads", "scale", "state_window", "update_rule"}));
  INGOT_ASSIGN_OR_RETURN(const int64_t query_heads, node.Int("q_num_heads", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t key_heads, node.Int("kv_num_heads", 0));
  INGOT_ASSIGN_OR_RETURN(const std::string rule, node.String("update_rule", "gated_delta"));
  INGOT_ASSIGN_OR_RETURN(double scale, node.Float("scale", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t window, node.Int("state_window", 0));
  if (window != 0) return node.Unsupported("the attribute \"state_window\"");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta") {
    return node.Invalid("update_rule is \"" + rule + "\"");
  }
  if (query_heads < 1 || key_heads < 1 || query_heads % key_heads != 0) {
    return node.Invalid("q_num_heads is no multiple of kv_num_heads");
  }
  const bool is_gated = rule.starts_with("gated"), is_corrected = rule.ends_with("delta");
  if (node.HasInput(4) != is_gated) return node.Invalid("a decay goes with the rules \"gated\" and \"gated_delta\"");
  if (node.HasInput(5) != is_corrected) return node.Invalid("rates go with the rules \"delta\" and \"gated_delta\"");
  std::vector<Expr> args;
  for (size_t input = 0; input < 3; ++input) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, input));
    if (dims.size() != 3) return node.Invalid("expected a rank of 3, got " + std::to_string(dims.size()));
    INGOT_ASSIGN_OR_RETURN(Expr x, Widened(node, input));
    args.push_back(std::move(x));
  }
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  const std::vector<PrimExpr>& in = *type->dims;
  const DataType dtype = *type->dtype;
  const auto width = ir::AsConstInt(in[2]), value_width = ir::AsConstInt(DimsOf(args[2])[2]);
  if (!width || !value_width || !ir::AsConstInt(DimsOf(args[1])[2])) return node.Unsupported("heads of unknown depth");
  if (*width % query_heads != 0 || *value_width % key_heads != 0) {
    return node.Invalid("the last dim is no multiple of the number of heads");
  }
  const int64_t depth = *width / query_heads;
  if (depth < 1 || *value_width < 1) return node.Invalid("heads without elements");
  const std::vector<PrimExpr> state_dims = {in[0], ir::Int64(key_heads), ir::Int64(depth),
                                            ir::Int64(*value_width / key_heads)};
  DataType state_dtype = dtype;
  Expr state;
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* given, node.InputType(3));
    if (given->rank != 4) return node.Invalid("expected a state of rank 4");
    state_dtype = *given->dtype;
    INGOT_ASSIGN_OR_RETURN(state, Widened(node, 3));
    state = WithDims(node, std::move(state), state_dims);
  } else {
    INGOT_ASSIGN_OR_RETURN(state, node.Bind("zeros", {ShapeOf(state_dims)}, {{"dtype", DataType::Float(32)}}));
  }
  args.push_back(std::move(state));
  for (size_t input = 4; input < 6; ++input) {
    if (!node.HasInput(input)) continue;
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, input));
    if (dims.size() != 3) return node.Invalid("expected a rank of 3, got " + std::to_string(dims.size()));
    if (!ir::AsConstInt(dims[2])) return node.Unsupported("a decay or rates of unknown width");
    INGOT_ASSIGN_OR_RETURN(Expr x, Widened(node, input));
    if (input == 4) {
      INGOT_ASSIGN_OR_RETURN(x, node.Bind("exp", {x}));
    }
    args.push_back(std::move(x));
  }
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(depth));
  INGOT_ASSIGN_OR_RETURN(
      std::vector<Expr> results,
      Fields(node.Bind(
          "nn.linear_attention", std::move(args),
          {{"query_heads", query_heads}, {"key_heads", key_heads}, {"scale", scale}, {"update_rule", rule}})));
  const DataType dtypes[] = {dtype, state_dtype};
  for (size_t i = 0; i < results.size(); ++i) {
    if (dtypes[i] == DataType::Float(32)) continue;
    results[i] = node.BindValue(std::move(results[i]), "wide");
    INGOT_ASSIGN_OR_RETURN(results[i], CastTo(node, results[i], dtypes[i]));
  }
  return results;
}

constexpr OnnxOpRow kStreamingRows[] = {
    {"CausalConvWithState", nullptr, CausalConvWithState},
    {"CausalConvWithState", nullptr, MsCausalConvWithState, kMicrosoft},
    {"LinearAttention", nullptr, LinearAttention},
    {"LinearAttention", nullptr, LinearAttention, kMicrosoft},
    {"TensorScatter", nullptr, TensorScatter},
};

}  // namespace

std::span<const OnnxOpRow> StreamingOnnxOps() { return kStreamingRows; }

}  // namespace ingot::importer
