// Expectations are what str() of NumPy 2.4 gives for the same arrays.
#include "formats/tensor_print.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/small_float.h"

namespace ingot::formats {
namespace {

using Dims = std::vector<int64_t>;

template <typename T>
std::string Print(DataType dtype, Dims dims, const std::vector<T>& values) {
  Tensor tensor = Tensor::Allocate(dtype, dims).value();
  REQUIRE(tensor.num_elements() == static_cast<int64_t>(values.size()));
  std::copy(values.begin(), values.end(), tensor.MutableElements<T>().begin());
  return TensorToText(tensor).value();
}
std::string F32(Dims dims, std::vector<float> values) { return Print<float>(DataType::Float(32), dims, values); }
std::string F64(Dims dims, std::vector<double> values) { return Print<double>(DataType::Float(64), dims, values); }
std::string F16(std::vector<double> values) {
  std::vector<uint16_t> bits;
  for (const double v : values) bits.push_back(static_cast<uint16_t>(EncodeFloat(DataType::Float(16), v)));
  return Print<uint16_t>(DataType::Float(16), {static_cast<int64_t>(bits.size())}, bits);
}
template <typename T>
std::vector<T> Iota(int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), T{0});
  return values;
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST_CASE("positional floats are padded on both sides of the point") {
  CHECK(F32({2, 3}, Iota<float>(6)) == "[[0. 1. 2.]\n [3. 4. 5.]]");
  CHECK(F64({3}, {1.0 / 3, 100, -2.25}) == "[  0.33333333 100.          -2.25      ]");
  CHECK(F16({0.1, 0.25}) == "[0.1  0.25]");
  CHECK(F64({2}, {0.0, -0.0}) == "[ 0. -0.]");
}

TEST_CASE("floats of very different sizes are scientific") {
  CHECK(F32({3}, {1e-5f, 1.2345678e-5f, -3}) == "[ 9.9999997e-06  1.2345678e-05 -3.0000000e+00]");
  CHECK(F32({1, 2}, {1.5f, -1234567.f}) == "[[ 1.500000e+00 -1.234567e+06]]");
  CHECK(F16({1.0 / 3, 0.1, 65504}) == "[3.333e-01 9.998e-02 6.550e+04]");
  CHECK(F64({3}, {1e300, 1e-300, 1e5}) == "[1.e+300 1.e-300 1.e+005]");
}

TEST_CASE("NaN and infinity fit in") {
  CHECK(F64({4}, {1.5, kNan, -kInf, kInf}) == "[ 1.5  nan -inf  inf]");
  CHECK(F64({2}, {kNan, kNan}) == "[nan nan]");
  CHECK(F64({3}, {1e-10, kNan, kInf}) == "[1.e-10    nan    inf]");
}

TEST_CASE("integers and bools") {
  CHECK(Print<uint8_t>(DataType::UInt(8), {2, 2, 2}, Iota<uint8_t>(8)) == "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
  CHECK(Print<int8_t>(DataType::Int(8), {3}, {-1, 10, -100}) == "[  -1   10 -100]");
  CHECK(Print<uint64_t>(DataType::UInt(64), {2}, {~uint64_t{0}, 0}) == "[18446744073709551615                    0]");
  CHECK(Print<uint8_t>(DataType::Bool(), {2}, {1, 0}) == "[ True False]");
  CHECK(Print<uint8_t>(DataType::Bool(), {1}, {1}) == "[ True]");
  const uint8_t packed[] = {0x1f, 0x08};
  CHECK(TensorToText(Tensor::FromBytes(DataType::Int(4), Dims{3}, packed).value()).value() == "[-1  1 -8]");
}

TEST_CASE("long rows wrap") {
  std::vector<int32_t> thousands = Iota<int32_t>(40);
  for (int32_t& v : thousands) v *= 1000;
  CHECK(Print<int32_t>(DataType::Int(32), {40}, thousands) ==
        "[    0  1000  2000  3000  4000  5000  6000  7000  8000  9000 10000 11000\n"
        " 12000 13000 14000 15000 16000 17000 18000 19000 20000 21000 22000 23000\n"
        " 24000 25000 26000 27000 28000 29000 30000 31000 32000 33000 34000 35000\n"
        " 36000 37000 38000 39000]");
  std::vector<float> sevenths = Iota<float>(24);
  for (float& v : sevenths) v /= 7;
  CHECK(F32({2, 12}, sevenths) ==
        "[[0.         0.14285715 0.2857143  0.42857143 0.5714286  0.71428573\n"
        "  0.85714287 1.         1.1428572  1.2857143  1.4285715  1.5714285 ]\n"
        " [1.7142857  1.8571428  2.         2.142857   2.2857144  2.4285715\n"
        "  2.5714285  2.7142856  2.857143   3.         3.142857   3.2857144 ]]");
  std::vector<double> halves(20, 0.5);
  for (size_t i = 1; i < halves.size(); i += 2) halves[i] = 1;
  CHECK(F64({20}, halves) == "[0.5 1.  0.5 1.  0.5 1.  0.5 1.  0.5 1.  0.5 1.  0.5 1.  0.5 1.  0.5 1.\n 0.5 1. ]");
}

TEST_CASE("large tensors are shortened") {
  CHECK(Print<int64_t>(DataType::Int(64), {2000}, Iota<int64_t>(2000)) == "[   0    1    2 ... 1997 1998 1999]");
  CHECK(Print<int16_t>(DataType::Int(16), {2, 5, 300}, Iota<int16_t>(3000)) ==
        "[[[   0    1    2 ...  297  298  299]\n"
        "  [ 300  301  302 ...  597  598  599]\n"
        "  [ 600  601  602 ...  897  898  899]\n"
        "  [ 900  901  902 ... 1197 1198 1199]\n"
        "  [1200 1201 1202 ... 1497 1498 1499]]\n"
        "\n"
        " [[1500 1501 1502 ... 1797 1798 1799]\n"
        "  [1800 1801 1802 ... 2097 2098 2099]\n"
        "  [2100 2101 2102 ... 2397 2398 2399]\n"
        "  [2400 2401 2402 ... 2697 2698 2699]\n"
        "  [2700 2701 2702 ... 2997 2998 2999]]]");
  std::vector<float> eighths = Iota<float>(4000);
  for (float& v : eighths) v /= 8;
  const std::string text = F32({40, 100}, eighths);
  CHECK(text.starts_with("[[0.00000e+00 1.25000e-01 2.50000e-01 ... 1.21250e+01 1.22500e+01\n  1.23750e+01]\n"));
  CHECK(text.ends_with("\n [4.87500e+02 4.87625e+02 4.87750e+02 ... 4.99625e+02 4.99750e+02\n  4.99875e+02]]"));
  CHECK(text.find("]\n ...\n [4.62500e+02") != std::string::npos);
}

TEST_CASE("tensors of many axes show fewer elements") {
  const auto count_shown = [](const Dims& dims) {
    const Tensor tensor = Tensor::Allocate(DataType::Int(8), dims).value();
    std::ranges::fill(tensor.mutable_bytes(), uint8_t{1});
    const std::string text = TensorToText(tensor).value();
    CHECK(text.find("...") != std::string::npos);
    return std::ranges::count(text, '1');
  };
  CHECK(count_shown({7, 7, 7, 7}) == 1296);  // three at each end, as NumPy has
  CHECK(count_shown({7, 7, 7, 7, 7}) == 1024);
  CHECK(count_shown({1, 7, 7, 7, 1, 7}) == 1296);
  CHECK(count_shown({5, 5, 5, 5, 5, 5, 5, 5}) == 256);
  CHECK(count_shown({2, 2, 2, 2, 2, 2, 2, 20}) == 768);
}

TEST_CASE("scalars, empty and strided tensors") {
  CHECK(F64({}, {1.0}) == "1.0");
  CHECK(F64({}, {1e16}) == "1e+16");
  CHECK(F64({}, {1e-5}) == "1e-05");
  CHECK(F64({}, {-0.0}) == "-0.0");
  CHECK(F64({}, {123456789.0}) == "123456789.0");
  CHECK(F32({}, {0.1f}) == "0.1");
  CHECK(F32({}, {999999.f}) == "999999.0");
  CHECK(F32({}, {12345678.f}) == "1.2345678e+07");
  CHECK(F32({}, {123456792.f}) == "1.2345679e+08");
  CHECK(F64({0, 3}, {}) == "[]");
  const Tensor tensor = Tensor::Allocate(DataType::Int(32), Dims{2, 2}).value();
  std::iota(tensor.MutableElements<int32_t>().begin(), tensor.MutableElements<int32_t>().end(), 1);
  CHECK(TensorToText(tensor.Permute(std::vector<int>{1, 0}).value()).value() == "[[1 3]\n [2 4]]");
  CHECK_FALSE(TensorToText(Tensor::Allocate({TypeCode::kComplex, 64}, Dims{1}).value()).ok());
  CHECK_FALSE(TensorToText(Tensor::Allocate(DataType::Float(32, 4), Dims{1}).value()).ok());
}

TEST_CASE("options") {
  Tensor tensor = Tensor::Allocate(DataType::Float(32), Dims{6}).value();
  for (int i = 0; i < 6; ++i) tensor.MutableElements<float>()[i] = static_cast<float>(i) / 3;
  TensorPrintOptions options;
  options.precision = 2;
  options.threshold = 4;
  options.edge_items = 1;
  CHECK(TensorToText(tensor, options).value() == "[0.   ... 1.67]");
}

}  // namespace
}  // namespace ingot::formats
