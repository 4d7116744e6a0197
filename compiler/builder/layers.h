// The usual layers of nn.h, with PyTorch's parameter names, shapes and defaults, so that its checkpoints load by name.
#pragma once

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "compiler/builder/nn.h"

namespace ingot::nn {

// y = x weight^T + bias; weight[out, in], bias[out].
class Linear : public Layer {
 public:
  Linear(int64_t in_features, int64_t out_features, bool bias = true, DataType dtype = DataType::Float(32));
  Value Forward(const Value& x) const override;

 private:
  const Parameter& weight_;
  const Parameter* bias_;
};

struct Conv2DOptions {
  std::array<int64_t, 2> stride = {1, 1}, padding = {0, 0}, dilation = {1, 1};  // height, width
  int64_t groups = 1;
  bool bias = true;
  DataType dtype = DataType::Float(32);
};
// x[n, in, h, w]; weight[out, in / groups, kernel height, kernel width], bias[out].
class Conv2D : public Layer {
 public:
  Conv2D(int64_t in_channels, int64_t out_channels, std::array<int64_t, 2> kernel, Conv2DOptions options = {});
  Value Forward(const Value& x) const override;

 private:
  Conv2DOptions options_;
  const Parameter& weight_;
  const Parameter* bias_;
};

// Normalises over the last axes, whose extents are `dims`; weight and bias have these dims.
class LayerNorm : public Layer {
 public:
  explicit LayerNorm(std::vector<int64_t> dims, double epsilon = 1e-5, bool bias = true,
                     DataType dtype = DataType::Float(32));
  Value Forward(const Value& x) const override;

 private:
  std::vector<int64_t> axes_;
  double epsilon_;
  const Parameter& weight_;
  const Parameter* bias_;
};
class RMSNorm : public Layer {
 public:
  explicit RMSNorm(std::vector<int64_t> dims, double epsilon = 1e-5, DataType dtype = DataType::Float(32));
  Value Forward(const Value& x) const override;

 private:
  std::vector<int64_t> axes_;
  double epsilon_;
  const Parameter& weight_;
};

// Looks up rows of weight[num, dim] by integers: a tensor of any shape gives one of that shape and [dim].
class Embedding : public Layer {
 public:
  Embedding(int64_t num, int64_t dim, DataType dtype = DataType::Float(32));
  Value Forward(const Value& indices) const override;

 private:
  const Parameter& weight_;
};

// Multi-head attention over [batch, length, embed_dim]: q_proj, k_proj, v_proj and out_proj are Linear. num_kv_heads
// below num_heads groups the heads (grouped-query attention); 0 means as many.
struct AttentionOptions {
  int64_t num_kv_heads = 0;
  bool bias = true;
  bool causal = false;  // a position does not see later ones
  DataType dtype = DataType::Float(32);
};
class MultiHeadAttention : public Layer {
 public:
  MultiHeadAttention(int64_t embed_dim, int64_t num_heads, AttentionOptions options = {});
  Value Forward(const Value& x) const override { return Forward(x, x, x); }
  Value Forward(const Value& query, const Value& key, const Value& value) const;

 private:
  int64_t num_heads_, num_kv_heads_, head_dim_;
  bool causal_;
  const Linear &q_proj_, &k_proj_, &v_proj_, &out_proj_;
};

class ReLU : public Layer {
 public:
  Value Forward(const Value& x) const override { return Relu(x); }
};
class GELU : public Layer {
 public:
  Value Forward(const Value& x) const override { return Gelu(x); }
};
class SiLU : public Layer {
 public:
  Value Forward(const Value& x) const override { return Silu(x); }
};

// Layers one after the other, named "0", "1", ...:
//     nn::Sequential mlp;
//     mlp.Append<nn::Linear>(784, 256);
//     mlp.Append<nn::ReLU>();
class Sequential : public Layer {
 public:
  template <typename L, typename... Args>
  L& Append(Args&&... args) {
    L& layer = Add<L>(std::to_string(layers_.size()), std::forward<Args>(args)...);
    layers_.push_back(&layer);
    return layer;
  }
  Value Forward(const Value& x) const override;

 private:
  std::vector<const Layer*> layers_;
};

}  // namespace ingot::nn
