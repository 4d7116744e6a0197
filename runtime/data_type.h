// DataType: the element type of tensors and scalars: DLPack's (code, bits, lanes), with sub-byte integers, bfloat16 and
// the float8 family. Text form as in the field: "float32", "int4", "uint8", "bool", "bfloat16", "float8_e4m3fn",
// "float32x16" (lanes), "handle".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/status.h"

namespace ingot {

// DLPack's codes (dlpack.h, DLDataTypeCode, up to version 1.3); also the values in the file.
enum class TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kHandle = 3,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E3M4 = 7,
  kFloat8E4M3 = 8,
  kFloat8E4M3B11FNUZ = 9,
  kFloat8E4M3FN = 10,
  kFloat8E4M3FNUZ = 11,
  kFloat8E5M2 = 12,
  kFloat8E5M2FNUZ = 13,
  kFloat8E8M0FNU = 14,
};

struct DataType {
  TypeCode code = TypeCode::kFloat;
  uint8_t bits = 32;
  uint16_t lanes = 1;

  constexpr DataType() = default;
  constexpr DataType(TypeCode c, int b, int l = 1)
      : code(c), bits(static_cast<uint8_t>(b)), lanes(static_cast<uint16_t>(l)) {}
  static constexpr DataType Int(int bits, int lanes = 1) { return {TypeCode::kInt, bits, lanes}; }
  static constexpr DataType UInt(int bits, int lanes = 1) { return {TypeCode::kUInt, bits, lanes}; }
  static constexpr DataType Float(int bits, int lanes = 1) { return {TypeCode::kFloat, bits, lanes}; }
  static constexpr DataType Bfloat16(int lanes = 1) { return {TypeCode::kBfloat, 16, lanes}; }
  static constexpr DataType Bool(int lanes = 1) { return {TypeCode::kBool, 8, lanes}; }
  static constexpr DataType Handle() { return {TypeCode::kHandle, 64, 1}; }
  // Parses the text form; an error names the text and suggests the nearest known name.
  static Result<DataType> Parse(std::string_view text);
  // True for a combination that the text form can name (bits within what the code allows, lanes >= 1).
  bool IsKnown() const;
  std::string ToString() const;

  bool is_int() const { return code == TypeCode::kInt; }
  bool is_uint() const { return code == TypeCode::kUInt; }
  bool is_bool() const { return code == TypeCode::kBool; }
  // Every floating kind: float, bfloat, float8.
  bool is_floating() const {
    return code == TypeCode::kFloat || code == TypeCode::kBfloat || code >= TypeCode::kFloat8E3M4;
  }
  bool is_integral() const { return is_int() || is_uint(); }
  bool is_handle() const { return code == TypeCode::kHandle; }
  bool is_scalar() const { return lanes == 1; }
  DataType element_of() const { return {code, bits, 1}; }
  DataType with_lanes(int l) const { return {code, bits, l}; }
  int total_bits() const { return int{bits} * lanes; }
  // Bytes of num_elements packed elements (sub-byte types: little-endian packed, rounded up); negative counts and
  // overflow of int64 are refused.
  Result<int64_t> SizeBytes(int64_t num_elements) const;

  friend constexpr bool operator==(DataType, DataType) = default;
  friend constexpr auto operator<=>(DataType, DataType) = default;
};

}  // namespace ingot
