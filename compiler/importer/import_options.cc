// Parses the arguments of --input-shape and --dim, as vm-compile passes them on. The importer applies them.
#include <algorithm>
#include <charconv>
#include <limits>

#include "compiler/importer/onnx.h"

namespace ingot::importer {
namespace {

std::optional<int64_t> ParseCount(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

bool IsIdentifier(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || !is_letter(text[0])) return false;
  for (char c : text) {
    if (!is_letter(c) && !(c >= '0' && c <= '9')) return false;
  }
  return true;
}

// Whether the text may be arithmetic on names; whether it is, the dimensions of the model tell.
bool MayBeFormula(std::string_view text) {
  const auto is_word = [](char c) { return (c >= '0' && c <= '9') || IsIdentifier({&c, 1}); };
  const auto is_operator = [](char c) { return c == '+' || c == '-' || c == '*' || c == '/'; };
  return !text.empty() && is_word(text[0]) && std::ranges::any_of(text, is_operator) &&
         std::ranges::all_of(text, [&](char c) { return c == ' ' || is_operator(c) || is_word(c); });
}

Status Bad(std::string_view option, std::string_view text, const char* expected) {
  return Status(StatusCode::kInvalidArgument,
                std::string(option) + " \"" + std::string(text) + "\": expected " + expected);
}

}  // namespace

Result<InputShape> ParseInputShape(std::string_view text) {
  constexpr const char* kExpected =
      "NAME=D0,D1,... with numbers, symbols, sums of their products or ?, such as image=1,3,224,224";
  const size_t equals = text.rfind('=');  // input names may contain "=", dimensions cannot
  if (equals == std::string_view::npos || equals == 0) return Bad("--input-shape", text, kExpected);
  InputShape shape{std::string(text.substr(0, equals)), {}};
  std::string_view rest = text.substr(equals + 1);
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view dim = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    if (comma != std::string_view::npos && rest.empty()) return Bad("--input-shape", text, kExpected);
    const std::optional<int64_t> value = ParseCount(dim);
    if (!value.has_value() && dim != "?" && !IsIdentifier(dim) && !MayBeFormula(dim))
      return Bad("--input-shape", text, kExpected);
    shape.dims.push_back({value, value.has_value() || dim == "?" ? std::string() : std::string(dim)});
  }
  return shape;
}

Result<DimRange> ParseDimRange(std::string_view text) {
  constexpr const char* kExpected = "NAME=N or NAME=MIN..MAX, such as batch=1..64";
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) return Bad("--dim", text, kExpected);
  const std::string_view value = text.substr(equals + 1);
  const size_t dots = value.find("..");
  const std::optional<int64_t> min = ParseCount(value.substr(0, dots));
  const std::optional<int64_t> max = dots == std::string_view::npos ? min : ParseCount(value.substr(dots + 2));
  if (!min.has_value() || !max.has_value() || *min > *max) return Bad("--dim", text, kExpected);
  return DimRange{std::string(text.substr(0, equals)), *min, *max};
}

}  // namespace ingot::importer
