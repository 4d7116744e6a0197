// Reads and writes the bits of single elements, packed ones of 1, 2 and 4 bits included.
#include "formats/element.h"

#include <cstring>

namespace ingot::formats {

bool IsNumeric(DataType dtype) {
  return dtype.is_scalar() && dtype.IsKnown() && (dtype.is_integral() || dtype.is_bool() || dtype.is_floating());
}

uint64_t ElementBits(const TensorView& tensor, int64_t index) {
  const int bits = tensor.dtype.bits;
  const auto* bytes = static_cast<const uint8_t*>(tensor.data);
  if (bits < 8) {
    const int64_t first_bit = index * bits;
    return static_cast<uint64_t>(bytes[first_bit / 8] >> (first_bit % 8)) & ((uint64_t{1} << bits) - 1);
  }
  uint64_t value = 0;
  std::memcpy(&value, bytes + index * (bits / 8), static_cast<size_t>(bits / 8));
  return value;
}

void SetElementBits(const TensorView& tensor, int64_t index, uint64_t value) {
  const int bits = tensor.dtype.bits;
  auto* bytes = static_cast<uint8_t*>(tensor.data);
  if (bits < 8) {
    const int64_t first_bit = index * bits;
    const uint64_t mask = ((uint64_t{1} << bits) - 1) << (first_bit % 8);
    uint8_t& byte = bytes[first_bit / 8];
    byte = static_cast<uint8_t>((byte & ~mask) | (value << (first_bit % 8) & mask));
    return;
  }
  std::memcpy(bytes + index * (bits / 8), &value, static_cast<size_t>(bits / 8));
}

int64_t SignExtend(uint64_t value, int bits) {
  return bits == 64 ? static_cast<int64_t>(value) : static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

}  // namespace ingot::formats
