#include "compiler/script/constant_text.h"

#include <cstring>

#include "compiler/script/literals.h"

namespace ingot::script {
namespace {

uint64_t ReadElement(const ir::ConstantData& data, int64_t index) {
  const int bits = data.dtype().bits;
  const std::byte* bytes = data.bytes().data();
  if (bits < 8) {  // packed, the first element in the low bits
    const int64_t bit = index * bits;
    return (std::to_integer<uint64_t>(bytes[bit / 8]) >> (bit % 8)) & ((uint64_t{1} << bits) - 1);
  }
  uint64_t element = 0;
  std::memcpy(&element, bytes + index * (bits / 8), static_cast<size_t>(bits / 8));
  return element;
}

std::string ElementText(DataType dtype, uint64_t bits) {
  if (dtype.is_floating()) return FloatBitsLiteral(dtype, bits);
  if (!dtype.is_int()) return IntLiteral(dtype, static_cast<int64_t>(bits));
  const int unused = 64 - dtype.bits;
  return IntLiteral(dtype, static_cast<int64_t>(bits << unused) >> unused);
}

// Elements from index on, one level of brackets per dimension left.
void AppendElements(const ir::ConstantData& data, size_t axis, int64_t* index, std::string* text) {
  if (axis == data.dims().size()) {
    *text += ElementText(data.dtype(), ReadElement(data, (*index)++));
    return;
  }
  *text += '[';
  for (int64_t i = 0; i < data.dims()[axis]; ++i) {
    if (i > 0) *text += ", ";
    AppendElements(data, axis + 1, index, text);
  }
  *text += ']';
}

}  // namespace

bool HasElementText(const ir::ConstantData& data) {
  const DataType dtype = data.dtype();
  if (!dtype.is_scalar() || dtype.code == TypeCode::kHandle || dtype.code == TypeCode::kComplex) return false;
  // True and False are all that a bool can say.
  if (dtype.is_bool()) {
    for (const std::byte byte : data.bytes()) {
      if (std::to_integer<int>(byte) > 1) return false;
    }
  }
  // Nothing behind a dimension of zero can be seen in brackets; wide shapes of nothing would be long.
  const auto& dims = data.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] > kMaxInlineElements || (dims[i] == 0 && i + 1 < dims.size())) return false;
  }
  return data.num_elements() <= kMaxInlineElements && (data.num_elements() > 0 || dims.size() <= 2);
}

std::string ElementText(const ir::ConstantData& data) {
  std::string text;
  int64_t index = 0;
  AppendElements(data, 0, &index, &text);
  return text;
}

}  // namespace ingot::script
