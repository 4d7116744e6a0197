// Reads the convolution's arguments back through what the importer and quantised_products spelled: subtractions of zero
// points from converted bytes.
#include "compiler/transform/byte_convolutions.h"

#include <algorithm>
#include <limits>

#include "compiler/op/infer.h"
#include "compiler/op/names.h"
#include "compiler/op/reference.h"
#include "compiler/transform/blocked_calls.h"
#include "compiler/transform/graph_util.h"
#include "runtime/cpu_features.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;

namespace {

const DataType kInt16 = DataType::Int(16);

// The operand of a conversion of bytes to int16; null otherwise.
Expr BytesOf(const Expr& expr, const Definitions& definitions) {
  const ir::Call call = ir::AsRef<ir::CallNode>(Resolve(expr, definitions));
  if (call == nullptr || !op::IsCallOf(call, op::names::kAstype) || TypedDimsOf(call) == nullptr) return nullptr;
  const auto* from = As<ir::TensorTypeNode>(call->args[0]->type);
  const bool are_bytes = from != nullptr && (from->dtype == DataType::Int(8) || from->dtype == DataType::UInt(8));
  return are_bytes && As<ir::TensorTypeNode>(call->type)->dtype == kInt16 ? call->args[0] : nullptr;
}

// Whether the CPUs of a variant add products of four bytes by one instruction.
bool HasByteProducts(const Target& variant) {
  const CpuFeatures features{variant.required_features};
  return features.Has(CpuFeature::kAvxVnni) ||
         (features.Has(CpuFeature::kAvx512vnni) && features.Has(CpuFeature::kAvx512vl));
}

}  // namespace

bool AnyHasByteProducts(const TargetFamily& target) {
  return std::ranges::any_of(target.variants, HasByteProducts) ||
         std::ranges::any_of(target.byte_product_variants, HasByteProducts);
}

std::optional<ByteConvolution> AsByteConvolution(const ir::Call& call, const Definitions& definitions,
                                                 const TargetFamily& target) {
  if (!AnyHasByteProducts(target)) return std::nullopt;
  const auto* weight = As<ir::ConstantNode>(call->args[1]);
  if (weight == nullptr || weight->data->dtype() != kInt16) return std::nullopt;
  ByteConvolution result;
  const ir::Call difference = ir::AsRef<ir::CallNode>(Resolve(call->args[0], definitions));
  if (difference != nullptr && op::IsCallOf(difference, op::names::kSubtract)) {
    result.bytes = BytesOf(difference->args[0], definitions);
    result.zero = difference->args[1];
    const op::Dims* dims = DimsOf(result.zero);
    if (dims == nullptr || !IsScalar(*dims)) return std::nullopt;
    // The zero point is one of bytes, and of these bytes: it lies around the image.
    if (result.bytes == nullptr) return std::nullopt;
    const DataType dtype = *As<ir::TensorTypeNode>(result.bytes->type)->dtype;
    const std::optional<double> number = AsNumber(result.zero);
    const Expr zero_bytes = number ? nullptr : BytesOf(result.zero, definitions);
    if (!number && (zero_bytes == nullptr || As<ir::TensorTypeNode>(zero_bytes->type)->dtype != dtype)) {
      return std::nullopt;
    }
    const bool is_signed = dtype.is_int();
    if (number && (*number < (is_signed ? -128 : 0) || *number > (is_signed ? 127 : 255))) return std::nullopt;
  } else {
    result.bytes = BytesOf(call->args[0], definitions);
  }
  if (result.bytes == nullptr || DimsOf(result.bytes) == nullptr) return std::nullopt;
  if (!EqualDims(*DimsOf(result.bytes), *DimsOf(call->args[0]))) return std::nullopt;
  const std::vector<int64_t>& dims = weight->data->dims();
  const op::ReferenceTensor values = op::UnpackReference(kInt16, dims, weight->data->bytes());
  const auto fits = [](int64_t value) {
    return value >= std::numeric_limits<int8_t>::min() && value <= std::numeric_limits<int8_t>::max();
  };
  if (dims.empty() || dims[0] == 0 || !std::ranges::all_of(values.ints, fits)) return std::nullopt;
  result.weight_sums.resize(static_cast<size_t>(dims[0]));
  const size_t per_output = values.ints.size() / result.weight_sums.size();
  for (size_t i = 0; i < values.ints.size(); ++i) result.weight_sums[i / per_output] += values.ints[i];
  return result;
}

}  // namespace ingot::transform
