// Element by element: files of such tensors are small beside what is done with them.
#include "formats/packed_elements.h"

#include <cstring>
#include <string>

#include "formats/element.h"

namespace ingot::formats {
namespace {

bool IsPackedInteger(DataType dtype) { return dtype.is_integral() && dtype.bits < 8 && dtype.is_scalar(); }
DataType ByteOf(DataType dtype) { return {dtype.code, 8}; }

}  // namespace

Result<Tensor> UnpackIntegers(const Tensor& tensor) {
  const DataType dtype = tensor.dtype();
  if (!IsPackedInteger(dtype)) return tensor;
  INGOT_ASSIGN_OR_RETURN(const Tensor packed, tensor.Compact());
  INGOT_ASSIGN_OR_RETURN(Tensor bytes, Tensor::Allocate(ByteOf(dtype), tensor.dims()));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const uint64_t bits = ElementBits(packed.view(), i);
    SetElementBits(bytes.view(), i, dtype.is_int() ? static_cast<uint64_t>(SignExtend(bits, dtype.bits)) : bits);
  }
  return bytes;
}

Result<Tensor> PackIntegersAs(const Tensor& tensor, DataType expected) {
  if (!IsPackedInteger(expected) || tensor.dtype() != ByteOf(expected)) return tensor;
  INGOT_ASSIGN_OR_RETURN(const Tensor bytes, tensor.Compact());
  INGOT_ASSIGN_OR_RETURN(Tensor packed, Tensor::Allocate(expected, tensor.dims()));
  if (packed.size_bytes() > 0) std::memset(packed.data(), 0, static_cast<size_t>(packed.size_bytes()));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const uint64_t bits = ElementBits(bytes.view(), i);
    const int64_t number = expected.is_int() ? SignExtend(bits, 8) : static_cast<int64_t>(bits);
    const bool fits = expected.is_int() ? SignExtend(bits, expected.bits) == number : number >> expected.bits == 0;
    if (!fits) {
      return Status(StatusCode::kBadInput, "element " + std::to_string(i) + " of " + tensor.TypeToString() + " is " +
                                               std::to_string(number) + ", which is no " + expected.ToString());
    }
    SetElementBits(packed.view(), i, bits);
  }
  return packed;
}

}  // namespace ingot::formats
