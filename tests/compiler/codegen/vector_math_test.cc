// Accuracy of the elementary functions against long double libm: errors in ULP of the result's format, and the special
// values. INGOT_LONG_TESTS=1 visits every 61st float32 instead of every 100,003rd.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <random>

#include "tests/compiler/codegen/jit.h"

namespace ingot::codegen::testing {
namespace {

using LongUnary = long double (*)(long double);

long double SigmoidOf(long double x) { return 1 / (1 + std::exp(-x)); }
long double ExpOf(long double x) { return std::exp(x); }
long double Exp2Of(long double x) { return std::exp2(x); }
long double LogOf(long double x) { return std::log(x); }
long double Log2Of(long double x) { return std::log2(x); }
long double Log1pOf(long double x) { return std::log1p(x); }
long double TanhOf(long double x) { return std::tanh(x); }
long double ErfOf(long double x) { return std::erf(x); }
long double AsinOf(long double x) { return std::asin(x); }
long double AcosOf(long double x) { return std::acos(x); }
long double AtanOf(long double x) { return std::atan(x); }
long double SinhOf(long double x) { return std::sinh(x); }
long double CoshOf(long double x) { return std::cosh(x); }
long double AsinhOf(long double x) { return std::asinh(x); }
long double AcoshOf(long double x) { return std::acosh(x); }
long double AtanhOf(long double x) { return std::atanh(x); }
long double SinOf(long double x) { return std::sin(x); }
long double CosOf(long double x) { return std::cos(x); }
long double TanOf(long double x) { return std::tan(x); }

struct Row {
  ir::Intrinsic op;
  const char* name;
  LongUnary exact;
  double max_float32, max_float64;  // ULP
};
const Row kRows[] = {
    {ir::Intrinsic::kExp, "exp", ExpOf, 4, 4},
    {ir::Intrinsic::kExp2, "exp2", Exp2Of, 4, 4},
    {ir::Intrinsic::kLog, "log", LogOf, 4, 4},
    {ir::Intrinsic::kLog2, "log2", Log2Of, 4, 4},
    {ir::Intrinsic::kLog1p, "log1p", Log1pOf, 4, 4},
    {ir::Intrinsic::kTanh, "tanh", TanhOf, 4, 4},
    {ir::Intrinsic::kSigmoid, "sigmoid", SigmoidOf, 4, 4},
    {ir::Intrinsic::kErf, "erf", ErfOf, 4, 4},
    {ir::Intrinsic::kAsin, "asin", AsinOf, 4, 4},
    {ir::Intrinsic::kAcos, "acos", AcosOf, 4, 4},
    {ir::Intrinsic::kAtan, "atan", AtanOf, 4, 4},
    {ir::Intrinsic::kSinh, "sinh", SinhOf, 4, 4},
    {ir::Intrinsic::kCosh, "cosh", CoshOf, 4, 4},
    {ir::Intrinsic::kAsinh, "asinh", AsinhOf, 4, 4},
    {ir::Intrinsic::kAcosh, "acosh", AcoshOf, 4, 4},
    {ir::Intrinsic::kAtanh, "atanh", AtanhOf, 4, 4},
    {ir::Intrinsic::kSin, "sin", SinOf, 4, 4},
    {ir::Intrinsic::kCos, "cos", CosOf, 4, 4},
    {ir::Intrinsic::kTan, "tan", TanOf, 4, 4},
};

// The distance in units in the last place of T at the exact value.
template <typename T>
double UlpError(T got, long double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : HUGE_VAL;
  const T rounded = static_cast<T>(exact);
  if (got == rounded) return 0;
  if (std::isnan(got) || std::isinf(got) || std::isinf(rounded)) {
    // One step around the overflow threshold is an error of one unit.
    const T largest = std::copysign(std::numeric_limits<T>::max(), rounded);
    const bool adjacent =
        !std::isnan(got) && ((std::isinf(rounded) && got == largest) || (std::isinf(got) && rounded == largest));
    return adjacent ? 1 : HUGE_VAL;
  }
  int exponent;
  std::frexp(exact, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) /
                             std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits));
}

bool LongTests() {
  const char* value = std::getenv("INGOT_LONG_TESTS");
  return value != nullptr && *value != '\0';
}

Tensor<float> FloatArguments() {
  Tensor<float> values = {0.0f,
                          -0.0f,
                          1.0f,
                          -1.0f,
                          0.5f,
                          INFINITY,
                          -INFINITY,
                          NAN,
                          FLT_MAX,
                          -FLT_MAX,
                          FLT_MIN,
                          std::numeric_limits<float>::denorm_min(),
                          -std::numeric_limits<float>::denorm_min(),
                          88.72283f,
                          88.72284f,
                          -87.33654f,
                          -87.33655f,
                          -88.5f,
                          -95.0f,
                          -103.97208f,
                          -103.97209f,
                          -104.0f,
                          128.0f,
                          -149.0f,
                          -150.0f};
  const uint64_t step = LongTests() ? 61 : 100003;
  for (uint64_t bits = 0; bits <= 0xFFFFFFFFu; bits += step) {
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  std::mt19937 random(1);  // where networks live
  std::uniform_real_distribution<float> near_zero(-20, 20);
  for (int i = 0; i < 20000; ++i) values.push_back(near_zero(random));
  std::uniform_real_distribution<float> near_one(-1.25f, 1.25f);
  for (int i = 0; i < 10000; ++i) values.push_back(near_one(random));
  while (values.size() % 8 != 3) values.push_back(0.25f);  // a tail
  return values;
}

Tensor<double> DoubleArguments() {
  Tensor<double> values = {0.0,    -0.0,   1.0,    -1.0,   HUGE_VAL, -HUGE_VAL, NAN,    709.78,
                           709.79, -745.1, -745.2, -708.4, DBL_MIN,  5e-324,    -5e-324};
  // The float64 that is nearest to a multiple of pi / 2, and others on both sides of where the reduction changes.
  for (double x : {0x1.6ac5b262ca1ffp+849, 0x1p30, 0x1.fffffffffffffp29, 0x1p52, 0x1.921fb54442d18p55, 1e22, DBL_MAX}) {
    values.insert(values.end(), {x, -x});
  }
  std::mt19937_64 exponents(4);
  for (int exponent = 25; exponent < 1024; ++exponent) {
    for (int i = 0; i < 8; ++i)
      values.push_back(std::ldexp(1 + static_cast<double>(exponents() >> 12) * 0x1p-52, exponent));
  }
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> near_zero(-30, 30);
  for (int i = 0; i < 20000; ++i) values.push_back(near_zero(random));
  std::uniform_real_distribution<double> near_one(-1.25, 1.25);
  for (int i = 0; i < 10000; ++i) values.push_back(near_one(random));
  for (int i = 0; i < 20000; ++i) {
    const double any = std::bit_cast<double>(random());
    if (std::fabs(any) <= 1e308) values.push_back(any);
  }
  return values;
}

template <typename T>
void CheckRow(const Row& row, const Tensor<T>& arguments, double max_ulp) {
  const DataType dtype = DataType::Float(sizeof(T) * 8);
  Tensor<T> scalar_results;
  for (int lanes : {1, static_cast<int>(32 / sizeof(T))}) {
    Kernel kernel(Elementwise({dtype}, dtype, static_cast<int64_t>(arguments.size()), lanes,
                              [&](const auto& x) { return ir::CallIntrinsic(row.op, {x[0]}); }));
    Tensor<T> results(arguments.size());
    Tensor<T> input = arguments;
    REQUIRE(kernel.Run({input.data(), results.data()}) == 0);
    if (lanes == 1) {
      scalar_results = results;
      continue;
    }
    double worst = 0;
    T worst_argument = 0;
    bool lanes_agree = true;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const long double exact = row.exact(arguments[i]);
      const bool is_flushed = row.op == ir::Intrinsic::kSigmoid && exact < std::numeric_limits<T>::min();
      const double error = UlpError(results[i], is_flushed ? 0 : exact);
      if (!(error <= worst)) {
        worst = error;
        worst_argument = arguments[i];
      }
      lanes_agree = lanes_agree && (results[i] == scalar_results[i] || std::isnan(results[i]));
    }
    INFO(row.name, " of ", dtype.ToString(), ": worst error ", worst, " ULP at ", worst_argument);
    if (LongTests())
      MESSAGE(std::string(row.name) << " " << dtype.ToString() << ": " << worst << " ULP at " << worst_argument);
    CHECK(worst <= max_ulp);
    CHECK(lanes_agree);
  }
}

TEST_CASE("elementary functions of float32 are within 4 ULP") {
  const Tensor<float> arguments = FloatArguments();
  for (const Row& row : kRows) CheckRow<float>(row, arguments, row.max_float32);
}

TEST_CASE("elementary functions of float64 are within a few ULP") {
  const Tensor<double> arguments = DoubleArguments();
  for (const Row& row : kRows) CheckRow<double>(row, arguments, row.max_float64);
}

template <typename T>
void CheckBinary(ir::Intrinsic op, long double (*exact)(long double, long double), double max_ulp) {
  const DataType dtype = DataType::Float(sizeof(T) * 8);
  const T infinity = std::numeric_limits<T>::infinity(), tiny = std::numeric_limits<T>::denorm_min();
  const T special[] = {0,
                       -T(0),
                       1,
                       -1,
                       2,
                       -2,
                       3,
                       T(0.5),
                       T(-0.5),
                       T(2.5),
                       infinity,
                       -infinity,
                       T(NAN),
                       tiny,
                       -tiny,
                       std::numeric_limits<T>::max(),
                       std::numeric_limits<T>::min(),
                       T(1e9),
                       T(-1e9 - 1)};
  Tensor<T> x, y;
  for (T a : special) {
    for (T b : special) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  std::mt19937_64 random(3);
  std::uniform_real_distribution<T> base(0, 20), exponent(-30, 30);
  for (int i = 0; i < 20000; ++i) {
    x.push_back(base(random));
    y.push_back(exponent(random));
    const auto any = [&] {
      if constexpr (sizeof(T) == 4)
        return std::bit_cast<float>(static_cast<uint32_t>(random()));
      else
        return std::bit_cast<double>(random());
    };
    x.push_back(any());
    y.push_back(any());
  }
  Kernel kernel(Elementwise({dtype, dtype}, dtype, static_cast<int64_t>(x.size()), 32 / sizeof(T), [&](const auto& v) {
    return ir::CallIntrinsic(op, {v[0], v[1]});
  }));
  Tensor<T> results(x.size());
  REQUIRE(kernel.Run({x.data(), y.data(), results.data()}) == 0);
  double worst = 0;
  size_t at = 0;
  bool signs_agree = true;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double expected = exact(x[i], y[i]);
    const double error = UlpError(results[i], expected);
    if (!(error <= worst)) {
      worst = error;
      at = i;
    }
    if (static_cast<T>(expected) == 0) signs_agree = signs_agree && std::signbit(results[i]) == std::signbit(expected);
  }
  INFO(ir::GetIntrinsicRow(op).name, " of ", dtype.ToString(), ": worst error ", worst, " ULP at ", x[at], ", ", y[at],
       ": got ", results[at]);
  CHECK(worst <= max_ulp);
  CHECK(signs_agree);
}

TEST_CASE("pow and fmod behave as C's") {
  const auto pow = [](long double x, long double y) { return std::pow(x, y); };
  const auto fmod = [](long double x, long double y) { return std::fmod(x, y); };
  CheckBinary<float>(ir::Intrinsic::kPow, pow, 1);
  CheckBinary<double>(ir::Intrinsic::kPow, pow, 8);
  CheckBinary<float>(ir::Intrinsic::kFmod, fmod, 0);
  CheckBinary<double>(ir::Intrinsic::kFmod, fmod, 0);
}

TEST_CASE("float16 and bfloat16 go through float32") {
  for (DataType dtype : {DataType::Float(16), DataType::Bfloat16()}) {
    const DataType float32 = DataType::Float(32);
    const auto exp_of = [](const auto& x) { return ir::CallIntrinsic(ir::Intrinsic::kExp, {x[0]}); };
    const auto cast_to = [](DataType to) {
      return [to](const auto& x) { return ir::Cast(to.with_lanes(x[0]->dtype.lanes), x[0]); };
    };
    constexpr int64_t kCount = 1 << 16;
    Tensor<uint16_t> input(kCount), direct(kCount), rounded(kCount);
    for (int64_t i = 0; i < kCount; ++i) input[i] = static_cast<uint16_t>(i);
    Tensor<float> wide(kCount), wide_exp(kCount);
    CHECK(Kernel(Elementwise({dtype}, dtype, kCount, 8, exp_of)).Run({input.data(), direct.data()}) == 0);
    CHECK(Kernel(Elementwise({dtype}, float32, kCount, 8, cast_to(float32))).Run({input.data(), wide.data()}) == 0);
    CHECK(Kernel(Elementwise({float32}, float32, kCount, 8, exp_of)).Run({wide.data(), wide_exp.data()}) == 0);
    CHECK(Kernel(Elementwise({float32}, dtype, kCount, 8, cast_to(dtype))).Run({wide_exp.data(), rounded.data()}) == 0);
    CHECK(direct == rounded);
  }
}

// On x86-64-v2, which lacks FMA instructions, a fused multiply-add is emulated, and x86-64-v4 scales by an instruction of
// its own; the results must be the same bits.
template <typename T>
void CheckLevel(const char* level, int lanes, const Row& row, const Tensor<T>& arguments) {
  const DataType dtype = DataType::Float(sizeof(T) * 8);
  const ir::PrimFunc function = Elementwise({dtype}, dtype, static_cast<int64_t>(arguments.size()), lanes,
                                            [&](const auto& x) { return ir::CallIntrinsic(row.op, {x[0]}); });
  Tensor<T> input = arguments, expected(arguments.size()), got(arguments.size());
  REQUIRE(Kernel(function, TargetNamed("x86-64-v3")).Run({input.data(), expected.data()}) == 0);
  REQUIRE(Kernel(function, TargetNamed(level)).Run({input.data(), got.data()}) == 0);
  size_t different = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool same = got[i] == expected[i] && std::signbit(got[i]) == std::signbit(expected[i]);
    // The rounding error of the smallest products is below float64's range; then one unit in the last place is allowed.
    const bool near = sizeof(T) == 8 && std::fabs(expected[i]) < 0x1p-960 &&
                      std::fabs(got[i] - expected[i]) <= std::numeric_limits<T>::epsilon() * std::fabs(expected[i]) +
                                                             std::numeric_limits<T>::denorm_min();
    different += !(same || near || (std::isnan(got[i]) && std::isnan(expected[i])));
  }
  INFO(std::string(row.name), " of ", dtype.ToString(), ", ", std::string(level), ", lanes ", lanes);
  CHECK(different == 0);
}

// The processor's seconds for many results of one argument, at their least.
template <typename T>
double SecondsFor(Kernel& kernel, T argument, size_t count) {
  Tensor<T> input(count, argument), results(count);
  double least = HUGE_VAL;
  for (int round = 0; round < 5; ++round) {
    const std::clock_t start = std::clock();
    for (int i = 0; i < 20; ++i) kernel.Run({input.data(), results.data()});
    least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return least;
}

// A product that vanishes takes a hundred times as long, and hidden scores are many.
template <typename T>
void CheckTimeWhereNothingIsLeft(const Row& row) {
  constexpr size_t kCount = 8192;
  constexpr double kMostTimes = 8;
  const DataType dtype = DataType::Float(sizeof(T) * 8);
  Kernel kernel(Elementwise({dtype}, dtype, kCount, 32 / sizeof(T),
                            [&](const auto& x) { return ir::CallIntrinsic(row.op, {x[0]}); }));
  const double usual = SecondsFor<T>(kernel, T(0.5), kCount);
  for (const double argument : {-HUGE_VAL, -1e30, -1e4, -800.0, 800.0, 1e4, HUGE_VAL}) {
    // Great angles are reduced by other means.
    const bool is_angle =
        row.op == ir::Intrinsic::kSin || row.op == ir::Intrinsic::kCos || row.op == ir::Intrinsic::kTan;
    if (is_angle && std::fabs(argument) > 1e5) continue;
    INFO(std::string(row.name), " of ", dtype.ToString(), ", ", argument);
    CHECK(SecondsFor<T>(kernel, static_cast<T>(argument), kCount) <= kMostTimes * usual);
  }
}

TEST_CASE("elementary functions take no longer where nothing or infinity is left") {
  for (const Row& row : kRows) {
    CheckTimeWhereNothingIsLeft<float>(row);
    CheckTimeWhereNothingIsLeft<double>(row);
  }
}

TEST_CASE("elementary functions of levels 2 and 4 are those of level 3, bit by bit") {
  const Tensor<float> singles = FloatArguments();
  const Tensor<double> doubles = DoubleArguments();
  for (const Row& row : kRows) {
    CheckLevel<float>("x86-64-v2", 4, row, singles);
    CheckLevel<double>("x86-64-v2", 2, row, doubles);
    if (!HostRuns(TargetNamed("x86-64-v4"))) continue;
    for (const int lanes : {1, 2, 4, 8, 16, 24, 32}) {
      CheckLevel<float>("x86-64-v4", lanes, row, singles);
      CheckLevel<double>("x86-64-v4", lanes, row, doubles);
    }
  }
}

template <typename T>
void CheckFma(const Target& target) {
  const T infinity = std::numeric_limits<T>::infinity(), max = std::numeric_limits<T>::max();
  const T special[] = {0,
                       -T(0),
                       1,
                       -1,
                       T(1.5),
                       3,
                       infinity,
                       -infinity,
                       T(NAN),
                       max,
                       -max,
                       max / 2,
                       std::numeric_limits<T>::min(),
                       std::numeric_limits<T>::denorm_min(),
                       1 + std::numeric_limits<T>::epsilon()};
  Tensor<T> x, y, z;
  for (T a : special) {
    for (T b : special) {
      for (T c : special) {
        x.push_back(a);
        y.push_back(b);
        z.push_back(c);
      }
    }
  }
  std::mt19937_64 random(4);
  for (int i = 0; i < 60000; ++i) {  // sums that cancel more or less, or barely change the larger term
    const auto any = [&] { return std::ldexp(static_cast<T>(static_cast<int64_t>(random())), -63); };
    const T a = any(), b = any();
    x.push_back(a);
    y.push_back(b);
    const int scale = static_cast<int>(random() % 140) - 70;
    z.push_back(i % 4 == 0   ? -a * b
                : i % 4 == 1 ? -a * b * (1 + std::numeric_limits<T>::epsilon())
                             : std::ldexp(any(), scale));
  }
  const DataType dtype = DataType::Float(sizeof(T) * 8);
  Kernel kernel(Elementwise({dtype, dtype, dtype}, dtype, static_cast<int64_t>(x.size()), 16 / sizeof(T),
                            [&](const auto& v) {
                              return ir::CallIntrinsic(ir::Intrinsic::kFma, {v[0], v[1], v[2]});
                            }),
                target);
  Tensor<T> results(x.size());
  REQUIRE(kernel.Run({x.data(), y.data(), z.data(), results.data()}) == 0);
  size_t different = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const T product = std::fabs(x[i] * y[i]);
    if (sizeof(T) == 8 && product < 0x1p-960 && x[i] != 0 && y[i] != 0) continue;  // the error is no float64
    const T expected = std::fma(x[i], y[i], z[i]);
    const bool same = results[i] == expected && std::signbit(results[i]) == std::signbit(expected);
    if (same || (std::isnan(results[i]) && std::isnan(expected))) continue;
    if (++different < 6)
      MESSAGE(x[i] << " * " << y[i] << " + " << z[i] << ": got " << results[i] << ", expected " << expected);
  }
  CHECK(different == 0);
}

TEST_CASE("the fused multiply-add rounds once on every level") {
  for (const char* level : {"x86-64-v2", "x86-64-v3"}) {
    CheckFma<float>(TargetNamed(level));
    CheckFma<double>(TargetNamed(level));
  }
}

TEST_CASE("float16 is converted alike on every level") {
  const DataType half = DataType::Float(16), single = DataType::Float(32);
  Tensor<uint16_t> halves(1 << 16);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  Tensor<float> singles = FloatArguments();
  for (uint32_t bits = 0x33000000 - 64; bits < 0x47800000 + 64; bits += 997) {  // what float16 has, and a little more
    singles.push_back(std::bit_cast<float>(bits));
    singles.push_back(std::bit_cast<float>((bits & ~0x1FFFu) | 0x1000u));  // halfway
  }
  const auto cast = [](DataType from, DataType to, size_t n) {
    return Elementwise({from}, to, static_cast<int64_t>(n), 8,
                       [&](const auto& x) { return ir::Cast(to.with_lanes(x[0]->dtype.lanes), x[0]); });
  };
  const ir::PrimFunc widen = cast(half, single, halves.size()), narrow = cast(single, half, singles.size());
  Tensor<float> wide[2] = {Tensor<float>(halves.size()), Tensor<float>(halves.size())};
  Tensor<uint16_t> narrowed[2] = {Tensor<uint16_t>(singles.size()), Tensor<uint16_t>(singles.size())};
  for (int i : {0, 1}) {
    const Target target = TargetNamed(i == 0 ? "x86-64-v2" : "x86-64-v3");
    REQUIRE(Kernel(widen, target).Run({halves.data(), wide[i].data()}) == 0);
    REQUIRE(Kernel(narrow, target).Run({singles.data(), narrowed[i].data()}) == 0);
  }
  CHECK(std::memcmp(wide[0].data(), wide[1].data(), halves.size() * sizeof(float)) == 0);
  CHECK(narrowed[0] == narrowed[1]);
}

}  // namespace
}  // namespace ingot::codegen::testing
