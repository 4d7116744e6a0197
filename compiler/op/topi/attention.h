// The two definitions of scaled dot-product attention, out = softmax(scale * Q K^T + bias) V per head: tensor
// expressions of one stage per step, for any dtype and shape, and the fused CPU kernel as statements. Both let a query
// that sees no key at all (every score is -inf) give zeros, unless they stand for the single steps (`stepwise`) and do
// not say otherwise (`masked_gives_zero`).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/op/topi/elementwise.h"

namespace ingot::op::topi {

enum class CausalMask : uint8_t {
  kNone,
  kTopLeft,      // query i sees keys 0 .. i
  kBottomRight,  // query i sees keys 0 .. i + num_keys - num_queries
};

// The meaning of the operands' axes, and all parameters that are not tensors.
struct AttentionConfig {
  // Of query, key, value and result: the order of the letters B (batch), S (sequence), N (heads) and H (depth).
  std::array<std::string, 4> layouts;
  PrimExpr batch, num_heads, num_key_heads, num_queries, num_keys, depth, value_depth;
  int64_t group;  // query heads per key head
  double scale;
  double softcap;  // 0: none; else scores become softcap * tanh(score / softcap) before the bias
  CausalMask causal = CausalMask::kNone;
  // The score of a key that a bias of bool hides; absent: -inf. When given, it replaces the score, and nothing of a
  // hidden key shows.
  std::optional<double> hidden;
  // The result equals that of the single steps (products, scale, bias or choice, softmax, products) for numbers that
  // are not finite, too: scores are rounded to the operands' dtype and overflow there; a query all of whose scores are
  // -inf gives NaN; a causal mask adds -inf, so that a score of NaN or inf behind it shows, as does a hidden value that
  // is not finite.
  bool stepwise = false;
  // A query from which bias and causal mask hide every key (by -inf) has shares of 0, whatever its scores are.
  bool masked_gives_zero = false;
  // The operands are scaled before they are multiplied, so that no product is stored without its scale.
  bool scales_operands = false;

  // Whether products are rounded to the operands' dtype before they are scaled.
  bool stores_products() const { return stepwise && !scales_operands; }
  // Whether a key that is not finite shows where the causal mask hides it.
  bool hidden_keys_show() const { return stepwise && causal != CausalMask::kNone && !hidden; }
  bool hidden_values_show() const { return stepwise && causal != CausalMask::kNone; }
  // Whether there may be queries that see no key and give zeros for that reason.
  bool may_mask(bool has_bias) const { return masked_gives_zero && (has_bias || causal == CausalMask::kBottomRight); }
};

// The operand's indices for one element, in its layout.
te::Indices AttentionIndices(const std::string& layout, PrimExpr batch, PrimExpr position, PrimExpr head,
                             PrimExpr element);

// inputs: query, key, value and perhaps bias, whose dims broadcast to [batch, heads, queries, keys]; a bias of
// bool says which keys are seen. Small floats are computed in float32.
te::Tensor Attention(const std::vector<te::Tensor>& inputs, const AttentionConfig& config, DataType dtype);

// The same as statements, the fused kernel (attention.cc describes it): for float32 with constant depths.
std::vector<ir::Stmt> FusedAttention(const std::vector<ir::Buffer>& inputs, const ir::Buffer& out,
                                     const AttentionConfig& config);

}  // namespace ingot::op::topi
