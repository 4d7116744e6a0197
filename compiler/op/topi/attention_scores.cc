#include "compiler/op/topi/attention_scores.h"

#include "compiler/op/broadcast.h"
#include "compiler/op/topi/reduction.h"

namespace ingot::op::topi {

using ir::Int64;
using ir::Intrinsic;
using te::Indices;

te::Indices AttentionIndices(const std::string& layout, PrimExpr batch, PrimExpr position, PrimExpr head,
                             PrimExpr element) {
  Indices indices;
  for (char axis : layout) {
    switch (axis) {
      case 'B':
        indices.push_back(batch);
        break;
      case 'S':
        indices.push_back(position);
        break;
      case 'N':
        indices.push_back(head);
        break;
      default:
        indices.push_back(element);
    }
  }
  return indices;
}

PrimExpr Exp(PrimExpr x) { return ir::CallIntrinsic(Intrinsic::kExp, {std::move(x)}); }

PrimExpr MinusInfinity(DataType dtype) { return Identity(Reducer::kMax, dtype); }

PrimExpr Softcap(PrimExpr score, double softcap) {
  if (softcap == 0) return score;
  const DataType dtype = score->dtype;
  return ir::CallIntrinsic(Intrinsic::kTanh, {score * ir::MakeConst(dtype, 1 / softcap)}) *
         ir::MakeConst(dtype, softcap);
}

PrimExpr CausalEnd(const AttentionConfig& config, const PrimExpr& query) {
  PrimExpr end = query + 1;
  if (config.causal == CausalMask::kBottomRight) end = end + (config.num_keys - config.num_queries);
  return end;
}

Indices BiasIndices(const std::vector<PrimExpr>& shape, const AttentionConfig& config, const Indices& score) {
  const Indices extents = {config.batch, config.num_heads, config.num_queries, config.num_keys};
  Indices indices;
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t at = score.size() - shape.size() + i;
    indices.push_back(BroadcastIndex(shape[i], extents[at], score[at]));
  }
  return indices;
}

bool VariesByKey(const std::vector<PrimExpr>& shape, const AttentionConfig& config) {
  // BroadcastIndex gives the index itself for a dimension that is the extent, also if that is 1.
  return !shape.empty() && (!ir::IsConstInt(shape.back(), 1) || ir::IsConstInt(config.num_keys, 1));
}

PrimExpr Shift(const PrimExpr& greatest) {
  return ir::Select(ir::Equal(greatest, MinusInfinity(greatest->dtype)), ir::MakeConst(greatest->dtype, 0), greatest);
}
PrimExpr Inverse(const AttentionConfig& config, const PrimExpr& sum, const PrimExpr& is_masked) {
  const PrimExpr zero = ir::MakeConst(sum->dtype, 0);
  PrimExpr gives_zero = config.stepwise ? ir::Equal(config.num_keys, Int64(0)) : ir::Equal(sum, zero);
  if (is_masked != nullptr) gives_zero = ir::Or(gives_zero, is_masked);
  return ir::Select(gives_zero, zero, ir::MakeConst(sum->dtype, 1) / sum);
}

PrimExpr Replacement(const AttentionConfig& config, DataType dtype) {
  return config.hidden ? ir::MakeConst(dtype, *config.hidden) : MinusInfinity(dtype);
}

PrimExpr CausallyHidden(const AttentionConfig& config, const PrimExpr& score) {
  const PrimExpr infinity = MinusInfinity(score->dtype);
  return config.hidden_keys_show() ? score + infinity : infinity;
}

PrimExpr MaskOf(const AttentionConfig& config, DataType dtype, PrimExpr bias, const PrimExpr& query,
                const PrimExpr& key) {
  const PrimExpr zero = ir::MakeConst(dtype, 0);
  if (bias == nullptr) {
    bias = zero;
  } else {
    bias = bias->dtype.is_bool() ? ir::Select(bias, zero, Replacement(config, dtype)) : ir::Cast(dtype, bias);
  }
  if (config.causal == CausalMask::kNone) return bias;
  return ir::Select(key < CausalEnd(config, query), bias, MinusInfinity(dtype));
}

}  // namespace ingot::op::topi
