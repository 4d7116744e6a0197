// The table of named scalar types, from which parsing, printing and IsKnown() work, and sizes in bytes. This file is
// compiled for speed; functions marked cold are not.
#include "runtime/data_type.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <vector>

#include "runtime/float4.h"
#include "runtime/suggest.h"

namespace ingot {
namespace {

// One row per named scalar type. The order decides nothing.
struct NamedType {
  const char* name;
  TypeCode code;
  uint8_t bits;
};
constexpr NamedType kNamedTypes[] = {
    {"bool", TypeCode::kBool, 8},
    {"int1", TypeCode::kInt, 1},
    {"int2", TypeCode::kInt, 2},
    {"int4", TypeCode::kInt, 4},
    {"int8", TypeCode::kInt, 8},
    {"int16", TypeCode::kInt, 16},
    {"int32", TypeCode::kInt, 32},
    {"int64", TypeCode::kInt, 64},
    {"uint1", TypeCode::kUInt, 1},
    {"uint2", TypeCode::kUInt, 2},
    {"uint4", TypeCode::kUInt, 4},
    {"uint8", TypeCode::kUInt, 8},
    {"uint16", TypeCode::kUInt, 16},
    {"uint32", TypeCode::kUInt, 32},
    {"uint64", TypeCode::kUInt, 64},
    {"float16", TypeCode::kFloat, 16},
    {"float32", TypeCode::kFloat, 32},
    {"float64", TypeCode::kFloat, 64},
    {"bfloat16", TypeCode::kBfloat, 16},
    {"complex64", TypeCode::kComplex, 64},
    {"complex128", TypeCode::kComplex, 128},
    {"float8_e3m4", TypeCode::kFloat8E3M4, 8},
    {"float8_e4m3", TypeCode::kFloat8E4M3, 8},
    {"float8_e4m3b11fnuz", TypeCode::kFloat8E4M3B11FNUZ, 8},
    {"float8_e4m3fn", TypeCode::kFloat8E4M3FN, 8},
    {"float8_e4m3fnuz", TypeCode::kFloat8E4M3FNUZ, 8},
    {"float8_e5m2", TypeCode::kFloat8E5M2, 8},
    {"float8_e5m2fnuz", TypeCode::kFloat8E5M2FNUZ, 8},
    {"float8_e8m0fnu", TypeCode::kFloat8E8M0FNU, 8},
    {"float4_e2m1fn", kFloat4Code, 4},
    {"handle", TypeCode::kHandle, 64},
};

const NamedType* FindRow(TypeCode code, int bits) {
  for (const NamedType& row : kNamedTypes) {
    if (row.code == code && row.bits == bits) return &row;
  }
  return nullptr;
}

// For each type code, the widths that have a row, or-ed together: all are powers of two below 256. IsKnown() looks them
// up here, since it runs for every tensor that comes from outside.
struct KnownWidths {
  static constexpr size_t kNumCodes = 18;
  uint8_t of_code[kNumCodes] = {};
  constexpr KnownWidths() {
    for (const NamedType& row : kNamedTypes) of_code[static_cast<size_t>(row.code)] |= row.bits;
  }
};
constexpr KnownWidths kKnownWidths;

[[gnu::cold]] Status UnknownType(std::string_view text) {
  std::string message = StrCat({"unknown data type \"", text.substr(0, 40), "\""});
  std::vector<std::string_view> names;
  for (const NamedType& row : kNamedTypes) names.push_back(row.name);
  message += DidYouMean(text, names);
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

[[gnu::cold]] Status NegativeCount(int64_t num_elements) {
  return Status(StatusCode::kInvalidArgument, {"negative number of elements ", num_elements});
}

[[gnu::cold]] Status SizeOverflows(DataType dtype, int64_t num_elements) {
  return Status(StatusCode::kInvalidArgument,
                {"size of ", num_elements, " x ", dtype.ToString(), " overflows 64 bits"});
}

}  // namespace

[[gnu::cold]] Result<DataType> DataType::Parse(std::string_view text) {
  const auto find = [](std::string_view name) {
    return std::find_if(std::begin(kNamedTypes), std::end(kNamedTypes),
                        [&](const NamedType& row) { return name == row.name; });
  };
  const NamedType* row = find(text);
  if (row != std::end(kNamedTypes)) return DataType(row->code, row->bits);
  const size_t x = text.rfind('x');
  if (x == std::string_view::npos) return UnknownType(text);
  int lanes = 0;
  const char* end = text.data() + text.size();
  auto [parsed, error] = std::from_chars(text.data() + x + 1, end, lanes);
  row = find(text.substr(0, x));
  if (error != std::errc() || parsed != end || lanes < 2 || lanes > std::numeric_limits<uint16_t>::max() ||
      row == std::end(kNamedTypes)) {
    return UnknownType(text);
  }
  return DataType(row->code, row->bits, lanes);
}

bool DataType::IsKnown() const {
  const auto index = static_cast<size_t>(code);
  const bool is_power_of_two = bits != 0 && (bits & (bits - 1)) == 0;  // popcount may be a library call
  return lanes >= 1 && is_power_of_two && index < KnownWidths::kNumCodes && (kKnownWidths.of_code[index] & bits) != 0;
}

[[gnu::cold]] std::string DataType::ToString() const {
  const NamedType* row = FindRow(code, bits);
  std::string text =
      row != nullptr ? row->name : StrCat({"unknown(code=", static_cast<int>(code), ", bits=", bits, ")"});
  if (lanes != 1) text += StrCat({"x", lanes});
  return text;
}

Result<int64_t> DataType::SizeBytes(int64_t num_elements) const {
  if (num_elements < 0) return NegativeCount(num_elements);
  // Whole bytes and the rest apart, so that 2^61 int8 elements (2^64 bits) still count.
  const int64_t bits_per_element = total_bits();
  const int64_t whole = bits_per_element / 8;
  const int64_t rest = bits_per_element % 8;
  int64_t size_bytes = 0;
  int64_t rest_bits = 0;
  if (__builtin_mul_overflow(num_elements, whole, &size_bytes) ||
      __builtin_mul_overflow(num_elements, rest, &rest_bits) ||
      __builtin_add_overflow(size_bytes, rest_bits / 8 + (rest_bits % 8 != 0 ? 1 : 0), &size_bytes)) {
    return SizeOverflows(*this, num_elements);
  }
  return size_bytes;
}

}  // namespace ingot
