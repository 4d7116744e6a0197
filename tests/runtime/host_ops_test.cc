#include "runtime/host_ops.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/small_float.h"

namespace ingot::host {
namespace {

using Dims = std::vector<int64_t>;
constexpr DataType kF32 = DataType::Float(32);

Tensor Empty(DataType dtype, const Dims& dims) { return Tensor::Allocate(dtype, dims).value(); }

template <typename T>
Tensor Of(DataType dtype, const Dims& dims, const std::vector<T>& values) {
  Tensor tensor = Empty(dtype, dims);
  REQUIRE(static_cast<int64_t>(values.size()) == tensor.num_elements());
  std::copy(values.begin(), values.end(), tensor.MutableElements<T>().begin());
  return tensor;
}
Tensor Floats(const Dims& dims, const std::vector<float>& values) { return Of<float>(kF32, dims, values); }
template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  const auto elements = tensor.Elements<T>();
  return {elements.begin(), elements.end()};
}
// The tensor converted to float32.
std::vector<float> AsFloats(const Tensor& tensor) {
  const Tensor floats = Empty(kF32, {tensor.dims().begin(), tensor.dims().end()});
  REQUIRE(Cast(tensor.view(), floats.view()).ok());
  return Values<float>(floats);
}
Tensor FromFloats(DataType dtype, const Dims& dims, const std::vector<float>& values) {
  const Tensor tensor = Empty(dtype, dims);
  REQUIRE(Cast(Floats(dims, values).view(), tensor.view()).ok());
  return tensor;
}
std::vector<float> Iota(int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

const DataType kSmallFloats[] = {DataType::Float(16),
                                 DataType::Bfloat16(),
                                 {TypeCode::kFloat8E3M4, 8},
                                 {TypeCode::kFloat8E4M3, 8},
                                 {TypeCode::kFloat8E4M3B11FNUZ, 8},
                                 {TypeCode::kFloat8E4M3FN, 8},
                                 {TypeCode::kFloat8E4M3FNUZ, 8},
                                 {TypeCode::kFloat8E5M2, 8},
                                 {TypeCode::kFloat8E5M2FNUZ, 8},
                                 {TypeCode::kFloat8E8M0FNU, 8}};

TEST_CASE("small floats: every code decodes and encodes to itself, midpoints go to the even neighbour or up") {
  for (const DataType dtype : kSmallFloats) {
    CAPTURE(dtype.ToString());
    const bool goes_up = dtype.code == TypeCode::kFloat8E8M0FNU;  // a number without a mantissa, as in ml_dtypes
    const uint64_t codes = uint64_t{1} << dtype.bits;
    for (uint64_t code = 0; code < codes; ++code) {
      const double value = DecodeFloat(dtype, code);
      if (std::isnan(value)) {
        REQUIRE(std::isnan(DecodeFloat(dtype, EncodeFloat(dtype, value))));
        continue;
      }
      REQUIRE(EncodeFloat(dtype, value) == code);
      const double next = code + 1 < codes ? DecodeFloat(dtype, code + 1) : NAN;
      if (std::isfinite(value) && std::isfinite(next) && std::signbit(value) == std::signbit(next)) {
        REQUIRE(EncodeFloat(dtype, (value + next) / 2) == (code % 2 == 0 && !goes_up ? code : code + 1));
      }
    }
  }
}

TEST_CASE("small floats: the limits of each format are the published ones") {
  const DataType half = DataType::Float(16);
  CHECK(DecodeFloat(half, 0x7bff) == 65504.0);
  CHECK(DecodeFloat(half, 0x0001) == std::ldexp(1.0, -24));
  CHECK(EncodeFloat(half, 65519.0) == 0x7bff);
  CHECK(EncodeFloat(half, 65520.0) == 0x7c00);
  CHECK(EncodeFloat(DataType::Bfloat16(), 3.14159) == 0x4049);
  CHECK(DecodeFloat({TypeCode::kFloat8E4M3FN, 8}, 0x7e) == 448.0);
  CHECK(std::isnan(DecodeFloat({TypeCode::kFloat8E4M3FN, 8}, 0xff)));
  CHECK(EncodeFloat({TypeCode::kFloat8E4M3FN, 8}, 1e6) == 0x7f);
  CHECK(DecodeFloat({TypeCode::kFloat8E5M2, 8}, 0x7b) == 57344.0);
  CHECK(DecodeFloat({TypeCode::kFloat8E5M2FNUZ, 8}, 0x7f) == 57344.0);
  CHECK(DecodeFloat({TypeCode::kFloat8E4M3FNUZ, 8}, 0x7f) == 240.0);
  CHECK(DecodeFloat({TypeCode::kFloat8E4M3B11FNUZ, 8}, 0x7f) == 30.0);
  CHECK(DecodeFloat({TypeCode::kFloat8E3M4, 8}, 0x6f) == 15.5);
  CHECK(EncodeFloat({TypeCode::kFloat8E4M3FNUZ, 8}, -0.0) == 0);
  CHECK(std::isnan(DecodeFloat({TypeCode::kFloat8E4M3FNUZ, 8}, 0x80)));
  CHECK(DecodeFloat({TypeCode::kFloat8E8M0FNU, 8}, 127) == 1.0);
}

TEST_CASE("permute moves axes for every element width") {
  for (const DataType dtype : {DataType::UInt(4), DataType::Int(8), DataType::Float(16), kF32, DataType::Float(64)}) {
    CAPTURE(dtype.ToString());
    const Tensor in = FromFloats(dtype, {2, 3, 2}, Iota(12));
    const Tensor out = Empty(dtype, {3, 2, 2});
    REQUIRE(Permute(in.view(), Dims{1, 2, 0}, out.view()).ok());
    CHECK(AsFloats(out) == std::vector<float>{0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11});
  }
  const Tensor scalar = Floats({}, {7});
  const Tensor out = Empty(kF32, {});
  REQUIRE(Permute(scalar.view(), Dims{}, out.view()).ok());
  CHECK(Values<float>(out) == std::vector<float>{7});
  const Tensor empty = Empty(kF32, {0, 3});
  CHECK(Permute(empty.view(), Dims{1, 0}, Empty(kF32, {3, 0}).view()).ok());
  CHECK_FALSE(Permute(empty.view(), Dims{1, 1}, Empty(kF32, {3, 0}).view()).ok());
  CHECK_FALSE(Permute(empty.view(), Dims{0, 1}, Empty(kF32, {3, 0}).view()).ok());
  CHECK_FALSE(Permute(empty.view(), Dims{0}, empty.view()).ok());
}

TEST_CASE("pad surrounds with the value") {
  const Tensor out = Empty(kF32, {3, 4});
  REQUIRE(Pad(Floats({2, 2}, {1, 2, 3, 4}).view(), Dims{1, 0}, -1, out.view()).ok());
  CHECK(Values<float>(out) == std::vector<float>{-1, -1, -1, -1, 1, 2, -1, -1, 3, 4, -1, -1});
  CHECK_FALSE(Pad(Floats({2, 2}, {1, 2, 3, 4}).view(), Dims{2, 0}, 0, out.view()).ok());
  CHECK_FALSE(Pad(Floats({2, 2}, {1, 2, 3, 4}).view(), Dims{INT64_MAX, 0}, 0, out.view()).ok());
  const Tensor bytes = Empty(DataType::Int(8), {3});
  REQUIRE(Pad(Empty(DataType::Int(8), {0}).view(), Dims{1}, -300, bytes.view()).ok());
  CHECK(Values<int8_t>(bytes) == std::vector<int8_t>{-128, -128, -128});
}

TEST_CASE("slice steps forwards and backwards and stays inside") {
  const Tensor in = Floats({2, 4}, Iota(8));
  const Tensor out = Empty(kF32, {2, 2});
  REQUIRE(Slice(in.view(), Dims{1, 3}, Dims{-1, -2}, out.view()).ok());
  CHECK(Values<float>(out) == std::vector<float>{7, 5, 3, 1});
  CHECK_FALSE(Slice(in.view(), Dims{0, 0}, Dims{1, 4}, out.view()).ok());
  CHECK_FALSE(Slice(in.view(), Dims{0, -1}, Dims{1, 1}, out.view()).ok());
  CHECK_FALSE(Slice(in.view(), Dims{0, 1}, Dims{1, INT64_MAX}, out.view()).ok());
  CHECK(Slice(in.view(), Dims{9, 0}, Dims{1, 1}, Empty(kF32, {0, 4}).view()).ok());
}

TEST_CASE("concat joins along any axis, packed elements too") {
  const Tensor out = Empty(DataType::UInt(4), {2, 3});
  const Tensor a = FromFloats(DataType::UInt(4), {2, 2}, {1, 2, 3, 4});
  const Tensor b = FromFloats(DataType::UInt(4), {2, 1}, {14, 15});
  REQUIRE(Concat(std::vector<TensorView>{a.view(), b.view()}, 1, out.view()).ok());
  CHECK(AsFloats(out) == std::vector<float>{1, 2, 14, 3, 4, 15});
  CHECK_FALSE(Concat(std::vector<TensorView>{a.view()}, 1, out.view()).ok());
  CHECK_FALSE(Concat(std::vector<TensorView>{a.view(), a.view()}, 1, out.view()).ok());
  CHECK_FALSE(Concat(std::vector<TensorView>{a.view(), b.view()}, 2, out.view()).ok());
}

TEST_CASE("reshape and broadcast_to") {
  const Tensor in = Floats({2, 1}, {1, 2});
  const Tensor out = Empty(kF32, {2, 2, 3});
  REQUIRE(BroadcastTo(in.view(), out.view()).ok());
  CHECK(Values<float>(out) == std::vector<float>{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  CHECK_FALSE(BroadcastTo(out.view(), in.view()).ok());
  const Tensor flat = Empty(kF32, {2});
  REQUIRE(Reshape(in.view(), flat.view()).ok());
  CHECK(Values<float>(flat) == std::vector<float>{1, 2});
  CHECK_FALSE(Reshape(in.view(), out.view()).ok());
}

TEST_CASE("cast truncates, saturates, wraps and rounds to even") {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor in = Floats({7}, {-1.9f, 1.9f, 300, -300, NAN, inf, -inf});
  const Tensor bytes = Empty(DataType::Int(8), {7});
  REQUIRE(Cast(in.view(), bytes.view()).ok());
  CHECK(Values<int8_t>(bytes) == std::vector<int8_t>{-1, 1, 127, -128, 0, 127, -128});
  const Tensor longs = Empty(DataType::UInt(64), {7});
  REQUIRE(Cast(in.view(), longs.view()).ok());
  CHECK(Values<uint64_t>(longs) == std::vector<uint64_t>{0, 1, 300, 0, 0, UINT64_MAX, 0});
  const Tensor flags = Empty(DataType::Bool(), {7});
  REQUIRE(Cast(in.view(), flags.view()).ok());
  CHECK(Values<uint8_t>(flags) == std::vector<uint8_t>{1, 1, 1, 1, 1, 1, 1});
  const Tensor wide = Of<int32_t>(DataType::Int(32), {2}, {257, -1});
  const Tensor low = Empty(DataType::UInt(8), {2});
  REQUIRE(Cast(wide.view(), low.view()).ok());
  CHECK(Values<uint8_t>(low) == std::vector<uint8_t>{1, 255});
  const Tensor nibbles = Empty(DataType::Int(4), {2});
  REQUIRE(Cast(wide.view(), nibbles.view()).ok());
  CHECK(AsFloats(nibbles) == std::vector<float>{1, -1});
  const Tensor half = FromFloats(DataType::Float(16), {2}, {2049, 2051});
  CHECK(AsFloats(half) == std::vector<float>{2048, 2052});
  CHECK_FALSE(Cast(in.view(), low.view()).ok());
}

TEST_CASE("arithmetic broadcasts in every dtype; integers wrap, NaN wins") {
  const Tensor out = Empty(kF32, {2, 3});
  REQUIRE(Binary(BinaryOp::kSub, Floats({2, 1}, {10, 20}).view(), Floats({3}, {1, 2, 3}).view(), out.view()).ok());
  CHECK(Values<float>(out) == std::vector<float>{9, 8, 7, 19, 18, 17});
  for (const DataType dtype : {DataType::Float(16), DataType::Bfloat16(), DataType::Float(64), DataType::Int(4),
                               DataType::Int(8), DataType::UInt(16), DataType::Int(64)}) {
    CAPTURE(dtype.ToString());
    const Tensor a = FromFloats(dtype, {3}, {1, 6, 7});
    const Tensor b = FromFloats(dtype, {}, {2});
    const Tensor c = Empty(dtype, {3});
    REQUIRE(Binary(BinaryOp::kMax, a.view(), b.view(), c.view()).ok());
    CHECK(AsFloats(c) == std::vector<float>{2, 6, 7});
    REQUIRE(Binary(BinaryOp::kDiv, a.view(), b.view(), c.view()).ok());
    CHECK(AsFloats(c) == (dtype.is_floating() ? std::vector<float>{0.5f, 3, 3.5f} : std::vector<float>{0, 3, 3}));
  }
  const DataType i8 = DataType::Int(8);
  const Tensor a = Of<int8_t>(i8, {3}, {127, -128, 5});
  const Tensor c = Empty(i8, {3});
  REQUIRE(Binary(BinaryOp::kAdd, a.view(), Of<int8_t>(i8, {}, {1}).view(), c.view()).ok());
  CHECK(Values<int8_t>(c) == std::vector<int8_t>{-128, -127, 6});
  REQUIRE(Binary(BinaryOp::kDiv, a.view(), Of<int8_t>(i8, {3}, {0, -1, -2}).view(), c.view()).ok());
  CHECK(Values<int8_t>(c) == std::vector<int8_t>{0, -128, -2});
  const Tensor nan = Floats({2}, {NAN, 1});
  const Tensor min = Empty(kF32, {2});
  REQUIRE(Binary(BinaryOp::kMin, nan.view(), Floats({2}, {1, NAN}).view(), min.view()).ok());
  CHECK(std::isnan(Values<float>(min)[0]));
  CHECK(std::isnan(Values<float>(min)[1]));
  // A result that is larger than what the operands broadcast to is refused.
  CHECK_FALSE(Binary(BinaryOp::kAdd, Floats({1}, {1}).view(), Floats({1}, {1}).view(), out.view()).ok());
  CHECK_FALSE(Binary(BinaryOp::kAdd, a.view(), Floats({3}, {1, 2, 3}).view(), c.view()).ok());
}

TEST_CASE("square root and negation") {
  const Tensor out = Empty(kF32, {3});
  REQUIRE(Sqrt(Floats({3}, {4, 2, -1}).view(), out.view()).ok());
  CHECK(Values<float>(out)[0] == 2);
  CHECK(Values<float>(out)[1] == std::sqrt(2.0f));
  CHECK(std::isnan(Values<float>(out)[2]));
  REQUIRE(Negate(Floats({3}, {0, 2, -1}).view(), out.view()).ok());
  CHECK(std::signbit(Values<float>(out)[0]));
  const Tensor low = Empty(DataType::Int(32), {1});
  REQUIRE(Negate(Of<int32_t>(DataType::Int(32), {1}, {INT32_MIN}).view(), low.view()).ok());
  CHECK(Values<int32_t>(low)[0] == INT32_MIN);
  CHECK_FALSE(Sqrt(low.view(), low.view()).ok());
}

TEST_CASE("matmul adds up over k in ascending order and broadcasts batches") {
  const Tensor a = Floats({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b = Floats({3, 2}, {1, 0, 0, 1, 1, 1});
  const Tensor out = Empty(kF32, {2, 1, 2});
  REQUIRE(MatMul(a.view(), b.view(), out.view()).ok());
  CHECK(Values<float>(out) == std::vector<float>{4, 5, 10, 11});
  // 1e8 + 1 is 1e8 in float32, so the order of addition shows.
  const Tensor ordered = Empty(kF32, {1, 1});
  REQUIRE(MatMul(Floats({1, 3}, {1, 1e8f, -1e8f}).view(), Floats({3, 1}, {1, 1, 1}).view(), ordered.view()).ok());
  CHECK(Values<float>(ordered)[0] == 0);
  const Tensor sums = Empty(DataType::Int(32), {1, 1});
  const Tensor bytes = Of<int8_t>(DataType::Int(8), {1, 2}, {-128, -128});
  const Tensor column = Of<int8_t>(DataType::Int(8), {2, 1}, {-128, 127});
  REQUIRE(MatMul(bytes.view(), column.view(), sums.view()).ok());
  CHECK(Values<int32_t>(sums)[0] == 128);
  const Tensor half = Empty(DataType::Float(16), {1, 1});
  REQUIRE(MatMul(FromFloats(DataType::Float(16), {1, 2}, {1, 2}).view(),
                 FromFloats(DataType::Float(16), {2, 1}, {3, 4}).view(), half.view())
              .ok());
  CHECK(AsFloats(half) == std::vector<float>{11});
  const Tensor none = Empty(kF32, {2, 2});
  REQUIRE(MatMul(Empty(kF32, {2, 0}).view(), Empty(kF32, {0, 2}).view(), none.view()).ok());
  CHECK(Values<float>(none) == std::vector<float>{0, 0, 0, 0});
  CHECK_FALSE(MatMul(a.view(), a.view(), out.view()).ok());
}

TEST_CASE("quantise rounds to even, saturates and takes scales per slice") {
  const DataType u8 = DataType::UInt(8);
  const Tensor in = Floats({2, 3}, {0.5f, 1.5f, 1000, -1000, NAN, 2.5f});
  const Tensor out = Empty(u8, {2, 3});
  REQUIRE(Quantize(in.view(), Floats({}, {1}).view(), Of<uint8_t>(u8, {}, {10}).view(), 0, out.view()).ok());
  CHECK(Values<uint8_t>(out) == std::vector<uint8_t>{10, 12, 255, 0, 10, 12});
  REQUIRE(Quantize(in.view(), Floats({2}, {0.5f, 1}).view(), Of<uint8_t>(u8, {2}, {0, 1}).view(), 0, out.view()).ok());
  CHECK(Values<uint8_t>(out) == std::vector<uint8_t>{1, 3, 255, 0, 1, 3});
  CHECK_FALSE(Quantize(in.view(), Floats({2}, {1, 1}).view(), Of<uint8_t>(u8, {}, {0}).view(), 1, out.view()).ok());
}

}  // namespace
}  // namespace ingot::host
