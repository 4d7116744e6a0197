#include "runtime/data_type.h"

#include <doctest/doctest.h>

namespace ingot {
namespace {

TEST_CASE("data types print and parse back") {
  for (const char* text :
       {"bool", "int4", "int64", "uint1", "uint8", "float16", "float32", "float64", "bfloat16", "float8_e4m3fn",
        "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "complex64", "handle", "float32x16", "float8_e4m3fnx4", "int4x65535"}) {
    CAPTURE(text);
    const Result<DataType> parsed = DataType::Parse(text);
    REQUIRE(parsed.ok());
    CHECK(parsed->IsKnown());
    CHECK(parsed->ToString() == text);
  }
  CHECK(DataType::Parse("float32x16").value() == DataType::Float(32, 16));
}

TEST_CASE("unknown data types are refused, with a suggestion when one is near") {
  CHECK(DataType::Parse("flot32").status().message() == "unknown data type \"flot32\"; did you mean \"float32\"?");
  CHECK(DataType::Parse("tensor").status().message() == "unknown data type \"tensor\"");
  for (const char* text :
       {"", "x", "float32x", "float32x0", "float32x1", "float32x65536", "float32x-4", "x4", "int3"}) {
    CAPTURE(text);
    CHECK_FALSE(DataType::Parse(text).ok());
  }
  CHECK_FALSE(DataType(TypeCode::kFloat, 31).IsKnown());
  CHECK_FALSE(DataType(TypeCode::kFloat, 32, 0).IsKnown());
  CHECK_FALSE(DataType(static_cast<TypeCode>(200), 8).IsKnown());
}

TEST_CASE("sizes are packed, rounded up and checked") {
  CHECK(DataType::Float(32).SizeBytes(3).value() == 12);
  CHECK(DataType::Int(4).SizeBytes(3).value() == 2);
  CHECK(DataType::UInt(1).SizeBytes(9).value() == 2);
  CHECK(DataType::Int(4, 3).SizeBytes(3).value() == 5);
  CHECK(DataType::Float(32).SizeBytes(0).value() == 0);
  CHECK(DataType::Int(8).SizeBytes(INT64_MAX).value() == INT64_MAX);
  CHECK_FALSE(DataType::Int(16).SizeBytes(INT64_MAX).ok());
  CHECK_FALSE(DataType::Int(4, 65535).SizeBytes(INT64_MAX / 1000).ok());
  CHECK_FALSE(DataType::Int(8).SizeBytes(-1).ok());
}

}  // namespace
}  // namespace ingot
