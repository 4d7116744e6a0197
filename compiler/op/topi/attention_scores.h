// The formulas of attention's scores, one by one: what the staged definition and both fused kernels have in common.
#pragma once

#include "compiler/op/topi/attention.h"

namespace ingot::op::topi {

PrimExpr Exp(PrimExpr x);
PrimExpr MinusInfinity(DataType dtype);
PrimExpr Softcap(PrimExpr score, double softcap);
// The first key that the query does not see because of the causal mask.
PrimExpr CausalEnd(const AttentionConfig& config, const PrimExpr& query);
// The element of the bias for a score: [batch, head, query, key].
te::Indices BiasIndices(const std::vector<PrimExpr>& shape, const AttentionConfig& config, const te::Indices& score);
// Whether the element of the bias depends on the key, so that positions after the last key have none.
bool VariesByKey(const std::vector<PrimExpr>& shape, const AttentionConfig& config);
// What is subtracted from scores with this maximum before exp: the maximum, or 0 where it is -inf.
PrimExpr Shift(const PrimExpr& greatest);
// 1 / sum. A sum of 0 gives 0, or with `stepwise` inf, so that its products with zeros are NaN. Without any key, and
// for a masked query (is_masked null: there is none), it is always 0.
PrimExpr Inverse(const AttentionConfig& config, const PrimExpr& sum, const PrimExpr& is_masked);
// The score of a key that a bias of bool hides.
PrimExpr Replacement(const AttentionConfig& config, DataType dtype);
// The score of a key that the causal mask hides: -inf, or NaN where hidden keys show and the score is NaN or inf.
PrimExpr CausallyHidden(const AttentionConfig& config, const PrimExpr& score);
// What the masks alone add to a score: 0 for a key that is seen without a bias, -inf for one that is hidden.
PrimExpr MaskOf(const AttentionConfig& config, DataType dtype, PrimExpr bias, const PrimExpr& query,
                const PrimExpr& key);

}  // namespace ingot::op::topi
