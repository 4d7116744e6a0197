// The shortest decimals come from std::to_chars, for formats below float32 in float32; escapes keep any bytes readable.
#include "compiler/script/literals.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "runtime/small_float.h"

namespace ingot::script {
namespace {

template <typename T>
std::string ShortestDecimal(T value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, end.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string Hex(uint64_t bits) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), bits, 16);
  return "0x" + std::string(buffer, end.ptr);
}

// Returns the length of the UTF-8 sequence at the start of the text, 0 if there is none.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char head = byte(0);
  const size_t length = head < 0x80 ? 1 : head < 0xC2 ? 0 : head < 0xE0 ? 2 : head < 0xF0 ? 3 : head < 0xF5 ? 4 : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string Quote(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const char c = text[0];
    const size_t length = Utf8Length(text);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (length == 0 || static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      constexpr char kDigits[] = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
      continue;
    }
    text.remove_prefix(1);
  }
  return out + "\"";
}

std::string FloatLiteral(DataType dtype, double value) {
  if (std::isnan(value)) {
    const auto bits = std::bit_cast<uint64_t>(value);
    const auto usual = std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN());
    return bits == usual ? "\"nan\"" : "\"bits:" + Hex(bits) + "\"";
  }
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  // Every smaller format is a subset of float32.
  const auto narrow = static_cast<float>(value);
  return dtype.bits < 64 && narrow == value ? ShortestDecimal(narrow) : ShortestDecimal(value);
}

std::string PythonFloat(double value) {
  const std::string text = FloatLiteral(DataType::Float(64), value);
  return text[0] == '"' ? "float(" + text + ")" : text;
}

std::string FloatBitsLiteral(DataType dtype, uint64_t bits) {
  const double value = DecodeFloat(dtype, bits);
  const std::string text = std::isnan(value) ? "\"nan\"" : FloatLiteral(dtype, value);
  const double read_back = std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
  return EncodeFloat(dtype, read_back) == bits ? text : "\"bits:" + Hex(bits) + "\"";
}

std::string IntLiteral(DataType dtype, int64_t value) {
  if (dtype.is_bool()) return value != 0 ? "True" : "False";
  return dtype.is_uint() ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
}

}  // namespace ingot::script
