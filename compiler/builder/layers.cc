// The parameters of each layer, and its forward function in terms of nn.h's operations.
#include "compiler/builder/layers.h"

namespace ingot::nn {

namespace {

// -n, ..., -1
std::vector<int64_t> LastAxes(size_t n) {
  std::vector<int64_t> axes;
  for (size_t i = n; i > 0; --i) axes.push_back(-static_cast<int64_t>(i));
  return axes;
}

ir::AttrValue Pair(const std::array<int64_t, 2>& values) { return ir::AttrValue::Ints({values[0], values[1]}); }

}  // namespace

Linear::Linear(int64_t in_features, int64_t out_features, bool bias, DataType dtype)
    : weight_(AddParameter("weight", {out_features, in_features}, dtype)),
      bias_(bias ? &AddParameter("bias", {out_features}, dtype) : nullptr) {}

Value Linear::Forward(const Value& x) const {
  const Value product = MatMul(x, PermuteDims(weight_.In(x)));
  return bias_ == nullptr ? product : product + bias_->In(x);
}

Conv2D::Conv2D(int64_t in_channels, int64_t out_channels, std::array<int64_t, 2> kernel, Conv2DOptions options)
    : options_(options),
      weight_(
          AddParameter("weight", {out_channels, in_channels / options.groups, kernel[0], kernel[1]}, options.dtype)),
      bias_(options.bias ? &AddParameter("bias", {out_channels}, options.dtype) : nullptr) {}

Value Conv2D::Forward(const Value& x) const {
  Value result = Apply("nn.conv2d", {x, weight_.In(x)},
                       {{"strides", Pair(options_.stride)},
                        {"padding", Pair(options_.padding)},
                        {"dilation", Pair(options_.dilation)},
                        {"groups", options_.groups}});
  if (bias_ == nullptr) return result;
  return result + Reshape(bias_->In(x), {ir::Int64(1), ir::Int64(bias_->dims()[0]), ir::Int64(1), ir::Int64(1)});
}

LayerNorm::LayerNorm(std::vector<int64_t> dims, double epsilon, bool bias, DataType dtype)
    : axes_(LastAxes(dims.size())),
      epsilon_(epsilon),
      weight_(AddParameter("weight", dims, dtype)),
      bias_(bias ? &AddParameter("bias", dims, dtype) : nullptr) {}

Value LayerNorm::Forward(const Value& x) const {
  std::vector<Value> inputs{x, weight_.In(x)};
  if (bias_ != nullptr) inputs.push_back(bias_->In(x));
  return Apply("nn.layer_norm", inputs,
               {{"axes", ir::AttrValue::Ints(axes_)}, {"epsilon", epsilon_}, {"center", bias_ != nullptr}});
}

RMSNorm::RMSNorm(std::vector<int64_t> dims, double epsilon, DataType dtype)
    : axes_(LastAxes(dims.size())), epsilon_(epsilon), weight_(AddParameter("weight", dims, dtype)) {}

Value RMSNorm::Forward(const Value& x) const {
  return Apply("nn.rms_norm", {x, weight_.In(x)}, {{"axes", ir::AttrValue::Ints(axes_)}, {"epsilon", epsilon_}});
}

Embedding::Embedding(int64_t num, int64_t dim, DataType dtype) : weight_(AddParameter("weight", {num, dim}, dtype)) {}

Value Embedding::Forward(const Value& indices) const {
  return Apply("take", {weight_.In(indices), indices}, {{"axis", int64_t{0}}});
}

MultiHeadAttention::MultiHeadAttention(int64_t embed_dim, int64_t num_heads, AttentionOptions options)
    : num_heads_(num_heads),
      num_kv_heads_(options.num_kv_heads == 0 ? num_heads : options.num_kv_heads),
      head_dim_(embed_dim / num_heads),
      causal_(options.causal),
      q_proj_(Add<Linear>("q_proj", embed_dim, num_heads * head_dim_, options.bias, options.dtype)),
      k_proj_(Add<Linear>("k_proj", embed_dim, num_kv_heads_ * head_dim_, options.bias, options.dtype)),
      v_proj_(Add<Linear>("v_proj", embed_dim, num_kv_heads_ * head_dim_, options.bias, options.dtype)),
      out_proj_(Add<Linear>("out_proj", num_heads * head_dim_, embed_dim, options.bias, options.dtype)) {}

Value MultiHeadAttention::Forward(const Value& query, const Value& key, const Value& value) const {
  // From [batch, length, heads * depth] to [batch, length, heads, depth]. A wrong rank, or missing dims after a refused
  // step, is refused by nn.attention with its message.
  const auto split = [&](const Value& x, int64_t heads) {
    const std::vector<ir::PrimExpr> dims = x.dims();
    if (dims.size() != 3) return Apply("nn.attention", {x, x, x});  // refused
    return Reshape(x, {dims[0], dims[1], ir::Int64(heads), ir::Int64(head_dim_)});
  };
  const Value q = split(q_proj_.Forward(query), num_heads_);
  const Value k = split(k_proj_.Forward(key), num_kv_heads_);
  const Value v = split(v_proj_.Forward(value), num_kv_heads_);
  Value heads = Apply("nn.attention", {q, k, v}, causal_ ? ir::Attrs{{"causal_mask", "TopLeft"}} : ir::Attrs{});
  const std::vector<ir::PrimExpr> dims = heads.dims();
  if (dims.size() != 4) return heads;
  return out_proj_.Forward(Reshape(heads, {dims[0], dims[1], ir::Int64(num_heads_ * head_dim_)}));
}

Value Sequential::Forward(const Value& x) const {
  Value value = x;
  for (const Layer* layer : layers_) value = layer->Forward(value);
  return value;
}

}  // namespace ingot::nn
