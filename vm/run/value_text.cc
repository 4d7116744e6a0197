// Numbers with nine digits, tensors with at most 16 elements.
#include "vm/run/value_text.h"

#include <cstdio>
#include <cstring>

#include "runtime/small_float.h"

namespace ingot::vm {
namespace {

constexpr int64_t kMaxShownElements = 16;

std::string NumberText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

// An element of whole bytes.
std::string ElementText(DataType dtype, const std::byte* element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<size_t>(dtype.bits / 8));
  if (dtype.is_bool()) return bits != 0 ? "true" : "false";
  if (dtype.is_floating()) return NumberText(DecodeFloat(dtype, bits));
  if (dtype.is_uint()) return std::to_string(bits);
  const int shift = 64 - dtype.bits;
  return std::to_string(static_cast<int64_t>(bits << shift) >> shift);
}

}  // namespace

std::string TensorText(const TensorView& view) {
  std::string text = view.TypeToString();
  const DataType dtype = view.dtype;
  const bool is_plain = dtype.is_scalar() && dtype.bits % 8 == 0 && dtype.bits <= 64 &&
                        (dtype.is_integral() || dtype.is_bool() || dtype.is_floating());
  if (!is_plain || !view.is_compact || !view.device.is_host_accessible()) return text;
  text += " {";
  for (int64_t i = 0; i < std::min(view.num_elements, kMaxShownElements); ++i) {
    text += (i == 0 ? "" : ", ") + ElementText(dtype, static_cast<const std::byte*>(view.data) + i * (dtype.bits / 8));
  }
  return text + (view.num_elements > kMaxShownElements ? ", ...}" : "}");
}

std::string ValueText(const Value& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return std::to_string(*i);
  if (const auto* f = std::get_if<double>(&value)) return NumberText(*f);
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const auto* d = std::get_if<DataType>(&value)) return d->ToString();
  if (const auto* tensor = std::get_if<Tensor>(&value)) return TensorText(tensor->view());
  if (const auto* object = std::get_if<Ref<Object>>(&value)) {
    if (const auto* text = dynamic_cast<const StringObject*>(object->get())) {
      return text->text.substr(0, kMostTextBytes + 1);
    }
  }
  return DescribeValue(value);
}

}  // namespace ingot::vm
