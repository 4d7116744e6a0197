// Every binary operator, cast and simple intrinsic, in every dtype where it applies, in scalars, odd vectors and wide
// vectors, against the same arithmetic in C++.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <type_traits>

#include "compiler/op/topi/byte_products.h"
#include "runtime/small_float.h"
#include "tests/compiler/codegen/jit.h"

namespace ingot::codegen::testing {
namespace {

using ir::BinaryOp;
using ir::Intrinsic;
using ir::PrimExpr;

constexpr int kLanes[] = {3, 8};
constexpr int64_t kCount = 83;  // leaves tails that are computed in scalars

template <typename T>
DataType TypeOf() {
  if constexpr (std::is_floating_point_v<T>)
    return DataType::Float(sizeof(T) * 8);
  else if constexpr (std::is_signed_v<T>)
    return DataType::Int(sizeof(T) * 8);
  else
    return DataType::UInt(sizeof(T) * 8);
}

// A mixture of small values, extremes and (floats) special values.
template <typename T>
Tensor<T> Values(uint64_t seed) {
  std::vector<T> edges = {
      0, 1, 2, 3, static_cast<T>(-1), std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest()};
  if constexpr (std::is_floating_point_v<T>) {
    edges = {0,
             -T(0),
             1,
             -1,
             T(0.5),
             T(-0.5),
             T(1.5),
             T(-2.5),
             T(1e30),
             std::numeric_limits<T>::infinity(),
             -std::numeric_limits<T>::infinity(),
             std::numeric_limits<T>::quiet_NaN(),
             std::numeric_limits<T>::denorm_min(),
             T(0.49999997),
             T(8388609),
             T(-3.25),
             T(127.5),
             T(-128.5),
             T(255.5),
             T(2147483520.0),
             T(2147483648.0),
             T(-2147483648.0),
             T(4294967296.0),
             T(9223372036854775808.0),
             T(-9223372036854775808.0)};
  }
  Tensor<T> values(kCount);
  for (T& value : values) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    value = edges[(seed >> 33) % edges.size()];
    if ((seed >> 60) % 3 == 0)
      value = static_cast<T>(static_cast<int>((seed >> 40) % 200) - (std::is_unsigned_v<T> ? 0 : 100));
  }
  return values;
}

template <typename T>
bool Same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return std::memcmp(&a, &b, sizeof(T)) == 0 || (a == 0 && b == 0);
  } else {
    return a == b;
  }
}

template <typename In, typename Out>
void CheckUnary(const char* name, DataType out, const std::function<PrimExpr(PrimExpr)>& build,
                const std::function<Out(In)>& expected) {
  for (int lanes : kLanes) {
    Kernel kernel(Elementwise({TypeOf<In>()}, out, kCount, lanes, [&](const auto& x) { return build(x[0]); }));
    Tensor<In> x = Values<In>(1);
    Tensor<Out> results(kCount);
    REQUIRE(kernel.Run({x.data(), results.data()}) == 0);
    for (int64_t i = 0; i < kCount; ++i) {
      INFO(name, " of ", TypeOf<In>().ToString(), " in ", lanes, " lanes: ", x[i], " gives ", results[i], ", not ",
           expected(x[i]));
      REQUIRE(Same(results[i], expected(x[i])));
    }
  }
}

template <typename T, typename Out>
void CheckBinary(const char* name, DataType out, const std::function<PrimExpr(PrimExpr, PrimExpr)>& build,
                 const std::function<Out(T, T)>& expected, bool nonzero_divisor = false) {
  for (int lanes : kLanes) {
    Kernel kernel(
        Elementwise({TypeOf<T>(), TypeOf<T>()}, out, kCount, lanes, [&](const auto& x) { return build(x[0], x[1]); }));
    Tensor<T> x = Values<T>(2), y = Values<T>(3);
    if (nonzero_divisor) {
      for (T& divisor : y) divisor = divisor == 0 ? T(3) : divisor;
    }
    Tensor<Out> results(kCount);
    REQUIRE(kernel.Run({x.data(), y.data(), results.data()}) == 0);
    for (int64_t i = 0; i < kCount; ++i) {
      INFO(name, " of ", TypeOf<T>().ToString(), " in ", lanes, " lanes: ", x[i], ", ", y[i], " gives ", results[i],
           ", not ", expected(x[i], y[i]));
      REQUIRE(Same(results[i], expected(x[i], y[i])));
    }
  }
}

template <typename T>
void CheckArithmetic() {
  const DataType dtype = TypeOf<T>();
  const auto op = [](BinaryOp which) {
    return [which](PrimExpr a, PrimExpr b) { return ir::MakeBinary(which, std::move(a), std::move(b)); };
  };
  // Integers wrap: computed in unsigned 64 bits.
  const auto wrap = [](auto f) {
    return [f](T a, T b) -> T {
      if constexpr (std::is_floating_point_v<T>)
        return f(a, b);
      else
        return static_cast<T>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
    };
  };
  CheckBinary<T, T>("+", dtype, op(BinaryOp::kAdd), wrap([](auto a, auto b) { return a + b; }));
  CheckBinary<T, T>("-", dtype, op(BinaryOp::kSub), wrap([](auto a, auto b) { return a - b; }));
  CheckBinary<T, T>("*", dtype, op(BinaryOp::kMul), wrap([](auto a, auto b) { return a * b; }));
  const auto nan_or = [](T a, T b, T chosen) -> T {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    }
    return chosen;
  };
  CheckBinary<T, T>("min", dtype, op(BinaryOp::kMin), [&](T a, T b) { return nan_or(a, b, b < a ? b : a); });
  CheckBinary<T, T>("max", dtype, op(BinaryOp::kMax), [&](T a, T b) { return nan_or(a, b, a < b ? b : a); });
  CheckUnary<T, T>(
      "max with 0", dtype, [](PrimExpr x) { return ir::Max(x, ir::MakeConst(x->dtype, 0)); },
      [&](T a) { return nan_or(a, a, a < 0 ? 0 : a); });
  const DataType boolean = DataType::Bool();
  CheckBinary<T, uint8_t>("==", boolean, op(BinaryOp::kEQ), [](T a, T b) { return a == b; });
  CheckBinary<T, uint8_t>("!=", boolean, op(BinaryOp::kNE), [](T a, T b) { return a != b; });
  CheckBinary<T, uint8_t>("<", boolean, op(BinaryOp::kLT), [](T a, T b) { return a < b; });
  CheckBinary<T, uint8_t>("<=", boolean, op(BinaryOp::kLE), [](T a, T b) { return a <= b; });
  CheckBinary<T, uint8_t>(">", boolean, op(BinaryOp::kGT), [](T a, T b) { return a > b; });
  CheckBinary<T, uint8_t>(">=", boolean, op(BinaryOp::kGE), [](T a, T b) { return a >= b; });
  CheckBinary<T, T>(
      "select", dtype, [](PrimExpr a, PrimExpr b) { return ir::Select(a < b, a, b); },
      [](T a, T b) { return a < b ? a : b; });
  CheckBinary<T, uint8_t>(
      "and, or, not", boolean,
      [](PrimExpr a, PrimExpr b) {
        const PrimExpr zero = ir::MakeConst(a->dtype, 0);
        return ir::Or(ir::And(a < b, zero < a), ir::Not(ir::Equal(b, zero)));
      },
      [](T a, T b) { return (a < b && 0 < a) || !(b == 0); });
  const auto call = [](Intrinsic which) {
    return [which](PrimExpr x) { return ir::CallIntrinsic(which, {std::move(x)}); };
  };
  CheckUnary<T, T>("abs", dtype, call(Intrinsic::kAbs), [](T a) -> T {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(a);
    else if constexpr (std::is_signed_v<T>)
      return a < 0 ? static_cast<T>(-static_cast<uint64_t>(a)) : a;
    else
      return a;
  });
}

template <typename T>
void CheckFloat() {
  const DataType dtype = TypeOf<T>();
  CheckArithmetic<T>();
  const auto call = [](Intrinsic which) {
    return [which](PrimExpr x) { return ir::CallIntrinsic(which, {std::move(x)}); };
  };
  CheckUnary<T, T>("sqrt", dtype, call(Intrinsic::kSqrt), [](T a) { return std::sqrt(a); });
  CheckUnary<T, T>("rsqrt", dtype, call(Intrinsic::kRsqrt), [](T a) { return 1 / std::sqrt(a); });
  CheckUnary<T, T>("fabs", dtype, call(Intrinsic::kFabs), [](T a) { return std::fabs(a); });
  CheckUnary<T, T>("floor", dtype, call(Intrinsic::kFloor), [](T a) { return std::floor(a); });
  CheckUnary<T, T>("ceil", dtype, call(Intrinsic::kCeil), [](T a) { return std::ceil(a); });
  CheckUnary<T, T>("trunc", dtype, call(Intrinsic::kTrunc), [](T a) { return std::trunc(a); });
  CheckUnary<T, T>("round", dtype, call(Intrinsic::kRound), [](T a) { return std::round(a); });
  CheckUnary<T, T>("nearbyint", dtype, call(Intrinsic::kNearbyInt), [](T a) { return std::nearbyint(a); });
  CheckUnary<T, uint8_t>("isnan", DataType::Bool(), call(Intrinsic::kIsNan), [](T a) { return std::isnan(a); });
  CheckUnary<T, uint8_t>("isinf", DataType::Bool(), call(Intrinsic::kIsInf), [](T a) { return std::isinf(a); });
  CheckBinary<T, T>(
      "/", dtype, [](PrimExpr a, PrimExpr b) { return std::move(a) / std::move(b); }, [](T a, T b) { return a / b; });
  CheckBinary<T, T>(
      "fma", dtype,
      [](PrimExpr a, PrimExpr b) {
        return ir::CallIntrinsic(Intrinsic::kFma, {a, b, a});
      },
      [](T a, T b) { return std::fma(a, b, a); });
  CheckBinary<T, T>(
      "a + b * b", dtype, [](PrimExpr a, PrimExpr b) { return a + b * b; }, [](T a, T b) { return std::fma(b, b, a); });
  CheckBinary<T, T>(
      "a - b * b", dtype, [](PrimExpr a, PrimExpr b) { return a - b * b; },
      [](T a, T b) { return std::fma(-b, b, a); });
  CheckBinary<T, T>(
      "floormod", dtype, [](PrimExpr a, PrimExpr b) { return ir::FloorMod(a, b); },
      [](T a, T b) {
        const T rest = std::fmod(a, b);
        return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
      });
  for (double y : {1.0, 2.0, 3.0, -1.0}) {
    CheckUnary<T, T>(
        "pow", dtype,
        [&](PrimExpr x) {
          return ir::CallIntrinsic(Intrinsic::kPow, {x, ir::MakeConst(x->dtype, y)});
        },
        [&](T a) {
          return y == 1 ? a : y == 2 ? a * a : y == 3 ? a * a * a : 1 / a;
        });
  }
}

template <typename T>
void CheckInteger() {
  const DataType dtype = TypeOf<T>();
  CheckArithmetic<T>();
  const auto call = [](Intrinsic which) {
    return [which](PrimExpr a, PrimExpr b) { return ir::CallIntrinsic(which, {std::move(a), std::move(b)}); };
  };
  constexpr int kBits = sizeof(T) * 8;
  CheckBinary<T, T>("&", dtype, call(Intrinsic::kBitwiseAnd), [](T a, T b) { return static_cast<T>(a & b); });
  CheckBinary<T, T>("|", dtype, call(Intrinsic::kBitwiseOr), [](T a, T b) { return static_cast<T>(a | b); });
  CheckBinary<T, T>("^", dtype, call(Intrinsic::kBitwiseXor), [](T a, T b) { return static_cast<T>(a ^ b); });
  CheckUnary<T, T>(
      "~", dtype, [](PrimExpr x) { return ir::CallIntrinsic(Intrinsic::kBitwiseNot, {x}); },
      [](T a) { return static_cast<T>(~a); });
  const auto amount = [](T b) { return static_cast<std::make_unsigned_t<T>>(b); };
  CheckBinary<T, T>("<<", dtype, call(Intrinsic::kShiftLeft), [&](T a, T b) {
    return amount(b) >= kBits ? T(0) : static_cast<T>(static_cast<uint64_t>(a) << amount(b));
  });
  CheckBinary<T, T>(">>", dtype, call(Intrinsic::kShiftRight), [&](T a, T b) {
    if (amount(b) >= kBits) return static_cast<T>(a < 0 ? -1 : 0);
    return static_cast<T>(a >> amount(b));
  });
  const auto divide = [](BinaryOp which) {
    return [which](PrimExpr a, PrimExpr b) { return ir::MakeBinary(which, std::move(a), std::move(b)); };
  };
  const auto quotient = [](T a, T b, bool floors) -> T {
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(-static_cast<uint64_t>(a));
    const T q = static_cast<T>(a / b);
    return floors && a % b != 0 && (a < 0) != (b < 0) ? static_cast<T>(q - 1) : q;
  };
  const auto rest = [&](T a, T b, bool floors) -> T {
    return static_cast<T>(static_cast<uint64_t>(a) -
                          static_cast<uint64_t>(quotient(a, b, floors)) * static_cast<uint64_t>(b));
  };
  CheckBinary<T, T>(
      "truncdiv", dtype, divide(BinaryOp::kDiv), [&](T a, T b) { return quotient(a, b, false); }, true);
  CheckBinary<T, T>(
      "truncmod", dtype, divide(BinaryOp::kTruncMod), [&](T a, T b) { return rest(a, b, false); }, true);
  CheckBinary<T, T>(
      "floordiv", dtype, divide(BinaryOp::kFloorDiv), [&](T a, T b) { return quotient(a, b, true); }, true);
  CheckBinary<T, T>(
      "floormod", dtype, divide(BinaryOp::kFloorMod), [&](T a, T b) { return rest(a, b, true); }, true);
}

TEST_CASE("arithmetic of floats") {
  CheckFloat<float>();
  CheckFloat<double>();
}

TEST_CASE("arithmetic of signed integers") {
  CheckInteger<int8_t>();
  CheckInteger<int16_t>();
  CheckInteger<int32_t>();
  CheckInteger<int64_t>();
}

TEST_CASE("arithmetic of unsigned integers") {
  CheckInteger<uint8_t>();
  CheckInteger<uint16_t>();
  CheckInteger<uint32_t>();
  CheckInteger<uint64_t>();
}

template <typename From, typename To>
To Converted(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {  // saturates, NaN is 0
    if (std::isnan(value)) return 0;
    const long double wide = std::trunc(static_cast<long double>(value));
    if (wide <= static_cast<long double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (wide >= static_cast<long double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(wide);
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename... To>
void CheckCasts() {
  const auto check = [&]<typename T>(T) {
    const DataType to = TypeOf<T>();
    CheckUnary<From, T>(
        "cast", to, [&](PrimExpr x) { return ir::Cast(to.with_lanes(x->dtype.lanes), x); },
        [](From value) { return Converted<From, T>(value); });
  };
  (check(To{}), ...);
  CheckUnary<From, uint8_t>(
      "cast to bool", DataType::Bool(), [](PrimExpr x) { return ir::Cast(DataType::Bool(x->dtype.lanes), x); },
      [](From value) { return value != 0; });
  CheckUnary<From, From>(
      "cast from bool", TypeOf<From>(), [](PrimExpr x) { return ir::Cast(x->dtype, ir::MakeConst(x->dtype, 1) < x); },
      [](From value) { return From(1 < value); });
}

TEST_CASE("casts between every pair of dtypes") {
  CheckCasts<float, double, int8_t, uint8_t, int32_t, uint32_t, int64_t, uint64_t>();
  CheckCasts<double, float, int16_t, uint16_t, int32_t, int64_t, uint64_t>();
  CheckCasts<int8_t, float, double, uint8_t, int32_t, uint64_t>();
  CheckCasts<uint16_t, float, int8_t, int16_t, int64_t>();
  CheckCasts<int32_t, float, double, int8_t, int64_t, uint32_t>();
  CheckCasts<int64_t, float, double, int32_t, uint8_t>();
  CheckCasts<uint64_t, float, double, int32_t, uint16_t>();
}

template <typename T>
void CheckReductions() {
  const DataType dtype = TypeOf<T>();
  for (int lanes : {2, 3, 5, 8, 16, 31}) {
    const ir::Buffer in = ir::MakeBuffer("in", dtype, {ir::Int64(lanes)});
    const ir::Buffer out = ir::MakeBuffer("out", dtype, {ir::Int64(3)});
    const auto reduce = [&](Intrinsic op, int at) {
      const PrimExpr x = Load(in, {Ramp(ir::Int64(0), lanes)});
      return Store(out, ir::Make<ir::PrimCallNode>(dtype, op, std::vector<PrimExpr>{x}), {ir::Int64(at)});
    };
    Kernel kernel(
        Function({in, out}, ir::MakeSeq({reduce(Intrinsic::kVectorReduceAdd, 0), reduce(Intrinsic::kVectorReduceMax, 1),
                                         reduce(Intrinsic::kVectorReduceMin, 2)})));
    Tensor<T> x(lanes), results(3);
    T sum = 0;
    for (int i = 0; i < lanes; ++i) {
      x[i] = static_cast<T>((i * 7) % 11 + 1);
      sum = static_cast<T>(sum + x[i]);
    }
    REQUIRE(kernel.Run({x.data(), results.data()}) == 0);
    CHECK(results[0] == sum);
    CHECK(results[1] == *std::max_element(x.begin(), x.end()));
    CHECK(results[2] == *std::min_element(x.begin(), x.end()));
    if constexpr (std::is_floating_point_v<T>) {
      x[lanes - 1] = std::numeric_limits<T>::quiet_NaN();
      REQUIRE(kernel.Run({x.data(), results.data()}) == 0);
      CHECK((std::isnan(results[0]) && std::isnan(results[1]) && std::isnan(results[2])));
    }
  }
}

TEST_CASE("reductions of a vector") {
  CheckReductions<float>();
  CheckReductions<double>();
  CheckReductions<int8_t>();
  CheckReductions<uint32_t>();
  CheckReductions<int64_t>();
}

TEST_CASE("reinterpret and shuffle") {
  CheckUnary<float, uint32_t>(
      "reinterpret", DataType::UInt(32),
      [](PrimExpr x) {
        return ir::Make<ir::PrimCallNode>(DataType::UInt(32, x->dtype.lanes), Intrinsic::kReinterpret,
                                          std::vector<PrimExpr>{x});
      },
      [](float x) { return std::bit_cast<uint32_t>(x); });
  const DataType f32 = DataType::Float(32);
  const ir::Buffer in = ir::MakeBuffer("in", f32, {ir::Int64(8)});
  const ir::Buffer out = ir::MakeBuffer("out", f32, {ir::Int64(8)});
  const PrimExpr low = Load(in, {Ramp(ir::Int64(0), 4)}), high = Load(in, {Ramp(ir::Int64(4), 4)});
  const PrimExpr mixed = ir::Make<ir::ShuffleNode>(std::vector<PrimExpr>{low, high}, std::vector<int64_t>{7, 0, 6, 1});
  const PrimExpr one = ir::Make<ir::ShuffleNode>(std::vector<PrimExpr>{low, high}, std::vector<int64_t>{5});
  const PrimExpr scalars = ir::Make<ir::ShuffleNode>(std::vector<PrimExpr>{one, ir::FloatImm(f32, -1), low},
                                                     std::vector<int64_t>{0, 1, 4, 0});
  Kernel kernel(Function({in, out}, ir::MakeSeq({Store(out, mixed, {Ramp(ir::Int64(0), 4)}),
                                                 Store(out, scalars, {Ramp(ir::Int64(4), 4)})})));
  Tensor<float> x = {0, 1, 2, 3, 4, 5, 6, 7}, results(8);
  REQUIRE(kernel.Run({x.data(), results.data()}) == 0);
  CHECK(results == Tensor<float>{7, 0, 6, 1, 5, -1, 2, 5});
}

// Small floats: all bit patterns, against the host's conversions.
template <typename Code>
void CheckSmallFloat(DataType dtype) {
  constexpr int64_t kAll = int64_t{1} << (8 * sizeof(Code));
  const DataType f32 = DataType::Float(32), f64 = DataType::Float(64);
  const auto widen = [&](Code bits) { return static_cast<float>(DecodeFloat(dtype, bits)); };
  const auto narrow = [&](double value) { return static_cast<Code>(EncodeFloat(dtype, value)); };
  const auto differ = [&](Code a, Code b) {
    return std::isnan(widen(a)) || std::isnan(widen(b)) ? std::isnan(widen(a)) != std::isnan(widen(b)) : a != b;
  };
  const auto cast = [](DataType to) {
    return [to](const auto& v) { return ir::Cast(to.with_lanes(v[0]->dtype.lanes), v[0]); };
  };
  Tensor<Code> x(kAll), y(kAll), results(kAll);
  Tensor<float> wide(kAll), floats(kAll);
  Tensor<double> doubles(kAll);
  for (int64_t i = 0; i < kAll; ++i) {
    x[i] = static_cast<Code>(i);
    y[i] = static_cast<Code>(static_cast<uint64_t>(i) * 40503u + 77);
    // Halfway between two values (a tie), and a hair beside it.
    const double half = (DecodeFloat(dtype, x[i]) + DecodeFloat(dtype, static_cast<Code>(i + 1))) / 2;
    floats[i] = static_cast<float>(half);
    doubles[i] = half * (1 + static_cast<double>(i % 3 - 1) * 1e-12);
  }
  for (int lanes : {1, 8}) {
    int wrong = 0;
    Kernel(Elementwise({dtype}, f32, kAll, lanes, cast(f32))).Run({x.data(), wide.data()});
    for (int64_t i = 0; i < kAll; ++i) {
      const float expected = widen(x[i]);
      wrong += std::isnan(expected) ? !std::isnan(wide[i]) : wide[i] != expected;
    }
    CHECK(wrong == 0);
    Kernel(Elementwise({dtype, dtype}, dtype, kAll, lanes, [](const auto& v) {
      return v[0] + v[1];
    })).Run({x.data(), y.data(), results.data()});
    for (int64_t i = 0; i < kAll; ++i) wrong += differ(results[i], narrow(widen(x[i]) + widen(y[i])));
    CHECK(wrong == 0);
    Kernel(Elementwise({f32}, dtype, kAll, lanes, cast(dtype))).Run({floats.data(), results.data()});
    for (int64_t i = 0; i < kAll; ++i) wrong += differ(results[i], narrow(floats[i]));
    CHECK(wrong == 0);
    Kernel(Elementwise({f64}, dtype, kAll, lanes, cast(dtype))).Run({doubles.data(), results.data()});
    for (int64_t i = 0; i < kAll; ++i) wrong += differ(results[i], narrow(doubles[i]));
    CHECK(wrong == 0);
  }
}

TEST_CASE("float16 and bfloat16 round once, to nearest even") {
  CheckSmallFloat<uint16_t>(DataType::Float(16));
  CheckSmallFloat<uint16_t>(DataType::Bfloat16());
}

TEST_CASE("every float8 rounds once, to nearest even") {
  for (TypeCode code :
       {TypeCode::kFloat8E3M4, TypeCode::kFloat8E4M3, TypeCode::kFloat8E4M3B11FNUZ, TypeCode::kFloat8E4M3FN,
        TypeCode::kFloat8E4M3FNUZ, TypeCode::kFloat8E5M2, TypeCode::kFloat8E5M2FNUZ, TypeCode::kFloat8E8M0FNU}) {
    const DataType dtype(code, 8);
    CAPTURE(dtype.ToString());
    CheckSmallFloat<uint8_t>(dtype);
  }
}

// Calls check(target, lanes) on each level that this machine runs: the instructions that CPUs have for sums of
// products, and the expansions of those that have none.
template <typename Check>
void OnEveryLevel(const Check& check) {
  int num_levels = 0;
  for (const char* level : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v3,+avxvnni", "x86-64-v4,+avx512vnni"}) {
    const Target target = TargetNamed(level);
    if (!HostRuns(target)) continue;
    ++num_levels;
    for (int lanes : {1, 3, 4, 8, 10, 12, 16, 20, 32}) {
      CAPTURE(std::string(level));
      CAPTURE(lanes);
      check(target, lanes);
    }
  }
  CHECK(num_levels >= 2);
}

TEST_CASE("dot products of bytes are the same on every level, alone and added to a sum") {
  constexpr int64_t kNumWords = 261;
  Tensor<int32_t> a(kNumWords), b(kNumWords), sum(kNumWords), expected(kNumWords), of_products(kNumWords);
  std::mt19937 random(3);
  for (int64_t i = 0; i < kNumWords; ++i) {
    a[i] = i < 4 ? -1 : static_cast<int32_t>(random());  // bytes of 255
    b[i] = i < 2 ? static_cast<int32_t>(0x80808080u) : i < 4 ? 0x7F7F7F7F : static_cast<int32_t>(random());
    sum[i] = static_cast<int32_t>(random());
    int32_t products = 0;
    for (int shift = 0; shift < 32; shift += 8) {
      products += int32_t{static_cast<uint8_t>(a[i] >> shift)} * static_cast<int8_t>(b[i] >> shift);
    }
    of_products[i] = products;
    expected[i] = static_cast<int32_t>(static_cast<uint32_t>(sum[i]) + static_cast<uint32_t>(products));
  }
  const DataType word = DataType::Int(32);
  OnEveryLevel([&](const Target& target, int lanes) {
    const auto dot = [](const PrimExpr& x, const PrimExpr& y) {
      return ir::CallIntrinsic(Intrinsic::kDotBytes, {x, y});
    };
    Kernel added(
        Elementwise({word, word, word}, word, kNumWords, lanes, [&](const auto& v) { return v[2] + dot(v[0], v[1]); }),
        target);
    Tensor<int32_t> results(kNumWords);
    REQUIRE(added.Run({a.data(), b.data(), sum.data(), results.data()}) == 0);
    CHECK(std::equal(results.begin(), results.end(), expected.begin()));
    Kernel alone(Elementwise({word, word}, word, kNumWords, lanes, [&](const auto& v) { return dot(v[0], v[1]); }),
                 target);
    REQUIRE(alone.Run({a.data(), b.data(), results.data()}) == 0);
    CHECK(std::equal(results.begin(), results.end(), of_products.begin()));
  });
}

// Words whose halves are the least number of 16 bits on both sides overflow int32, as the sum of the products does.
TEST_CASE("sums of two products of 16 bits are the same on every level, alone and added to a sum") {
  constexpr int64_t kNumWords = 261;
  const DataType half = DataType::Int(16), word = DataType::Int(32);
  Tensor<int16_t> low(kNumWords), high(kNumWords);
  Tensor<int32_t> words(kNumWords), sum(kNumWords), expected(kNumWords), of_products(kNumWords);
  std::mt19937 random(5);
  for (int64_t i = 0; i < kNumWords; ++i) {
    low[i] = i < 4 ? int16_t{-32768} : static_cast<int16_t>(random());
    high[i] = i < 2 ? int16_t{-32768} : static_cast<int16_t>(random());
    words[i] = i < 2 ? static_cast<int32_t>(0x80008000u) : i < 4 ? 0x7FFF7FFF : static_cast<int32_t>(random());
    sum[i] = static_cast<int32_t>(random());
    const int64_t products = int64_t{low[i]} * static_cast<int16_t>(words[i]) + int64_t{high[i]} * (words[i] >> 16);
    of_products[i] = static_cast<int32_t>(products);
    expected[i] = static_cast<int32_t>(sum[i] + products);
  }
  OnEveryLevel([&](const Target& target, int lanes) {
    const auto pairs = [](const auto& v) { return op::topi::PairProduct(v[0], v[1], v[2]); };
    Kernel added(
        Elementwise({half, half, word, word}, word, kNumWords, lanes, [&](const auto& v) { return v[3] + pairs(v); }),
        target);
    Tensor<int32_t> results(kNumWords);
    REQUIRE(added.Run({low.data(), high.data(), words.data(), sum.data(), results.data()}) == 0);
    CHECK(std::equal(results.begin(), results.end(), expected.begin()));
    Kernel alone(Elementwise({half, half, word}, word, kNumWords, lanes, pairs), target);
    REQUIRE(alone.Run({low.data(), high.data(), words.data(), results.data()}) == 0);
    CHECK(std::equal(results.begin(), results.end(), of_products.begin()));
  });
}

}  // namespace
}  // namespace ingot::codegen::testing
