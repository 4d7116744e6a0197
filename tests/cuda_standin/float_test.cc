// Float arithmetic of the instruction table beside the host's.
#include <doctest/doctest.h>

#include <random>

#include "tests/cuda_standin/float_formats.h"
#include "tests/cuda_standin/instruction_check.h"
#include "tests/cuda_standin/ptx_bodies.h"

namespace ingot::ptx {
namespace {

TEST_CASE("ptx instructions: float32") {
  const Type f32 = Type::kF32;
  using Two = float (*)(float, float);
  const std::pair<const char*, Two> twos[] = {{"add", [](float a, float b) { return a + b; }},
                                              {"sub", [](float a, float b) { return a - b; }},
                                              {"mul", [](float a, float b) { return a * b; }}};
  for (const auto& [name, f] : twos) {
    const Two g = f;
    Check(StrCat({name, ".f32"}), f32, {f32, f32}, [=](uint64_t a, uint64_t b, uint64_t) { return B(g(F(a), F(b))); });
    Check(StrCat({name, ".ftz.f32"}), f32, {f32, f32},
          [=](uint64_t a, uint64_t b, uint64_t) { return B(Ftz(g(Ftz(F(a)), Ftz(F(b))))); });
    Check(StrCat({name, ".sat.f32"}), f32, {f32, f32}, [=](uint64_t a, uint64_t b, uint64_t) {
      const float x = g(F(a), F(b));
      return B(x > 0 ? std::min(x, 1.0f) : 0.0f);
    });
  }
  Check("div.rn.f32", f32, {f32, f32}, [](uint64_t a, uint64_t b, uint64_t) { return B(F(a) / F(b)); });
  // The reciprocal has no denormals.
  Check("div.approx.f32", f32, {f32, f32}, [](uint64_t a, uint64_t b, uint64_t) {
    const float x = F(a), y = F(b), scale = std::fabs(y) < 0x1p-126f ? 0x1p24f : 1.0f;
    return B(x * scale * Ftz(1 / (y * scale)));
  });
  // Within two units in the last place, the divisor scaled by powers of two.
  Check("div.rm.ftz.f32", f32, {f32, f32}, [](uint64_t a, uint64_t b, uint64_t) -> uint64_t {
    const double x = Ftz(F(a)), y = Ftz(F(b));
    const double quotient = x / y;  // inexact ones are away from the ends of the range by more than a double's unit
    const uint64_t flushed = (a ^ b) & 0x80000000;
    if (quotient != quotient) return 0x7fffffff;
    return std::fabs(x) < std::fabs(y) * 0x1p-126 ? flushed : RoundTo(kFloatFormat, quotient, Rounding::kDown);
  });
  Check("div.full.f32", f32, {f32, f32}, [](uint64_t a, uint64_t b, uint64_t) {
    const float x = F(a), y = F(b), scale = std::fabs(y) > 0x1p126f ? 0.25f : std::fabs(y) < 0x1p-126f ? 0x1p24f : 1.0f;
    return B(x * scale * (1 / (y * scale)));
  });
  Check("fma.rn.f32", f32, {f32, f32, f32},
        [](uint64_t a, uint64_t b, uint64_t c) { return B(std::fma(F(a), F(b), F(c))); });
  Check("fma.rn.ftz.f32", f32, {f32, f32, f32},
        [](uint64_t a, uint64_t b, uint64_t c) { return B(Ftz(std::fma(Ftz(F(a)), Ftz(F(b)), Ftz(F(c))))); });
  Check("mad.rn.f32", f32, {f32, f32, f32},
        [](uint64_t a, uint64_t b, uint64_t c) { return B(std::fma(F(a), F(b), F(c))); });
  Check("rcp.rn.f32", f32, {f32}, [](uint64_t a, uint64_t, uint64_t) { return B(1 / F(a)); });
  Check("rcp.approx.ftz.f32", f32, {f32}, [](uint64_t a, uint64_t, uint64_t) { return B(Ftz(1 / Ftz(F(a)))); });
  Check("sqrt.rn.f32", f32, {f32}, [](uint64_t a, uint64_t, uint64_t) { return B(std::sqrt(F(a))); });
  Check("sqrt.approx.f32", f32, {f32}, [](uint64_t a, uint64_t, uint64_t) { return B(std::sqrt(F(a))); });
  const auto nan = [](uint64_t a) { return (a & 0x7fffffff) > 0x7f800000; };
  Check("neg.f32", f32, {f32}, [=](uint64_t a, uint64_t, uint64_t) { return nan(a) ? 0x7fffffff : a ^ 0x80000000; });
  Check("abs.f32", f32, {f32}, [=](uint64_t a, uint64_t, uint64_t) { return nan(a) ? 0x7fffffff : a & 0x7fffffff; });
  Check("copysign.f32", f32, {f32, f32},
        [](uint64_t a, uint64_t b, uint64_t) { return (a & 0x80000000) | (b & 0x7fffffff); });
  const auto min_max = [](uint64_t a, uint64_t b, bool max, bool nan) {
    const float x = F(a), y = F(b);
    if (x != x || y != y) return B(nan || (x != x && y != y) ? NAN : x != x ? y : x);
    if (x == y) return max ? a & b : a | b;  // zeros of both signs
    return (x < y) == max ? b : a;
  };
  Check("min.f32", f32, {f32, f32}, [=](uint64_t a, uint64_t b, uint64_t) { return min_max(a, b, false, false); });
  Check("max.f32", f32, {f32, f32}, [=](uint64_t a, uint64_t b, uint64_t) { return min_max(a, b, true, false); });
  Check("min.NaN.f32", f32, {f32, f32}, [=](uint64_t a, uint64_t b, uint64_t) { return min_max(a, b, false, true); });
  Check("max.NaN.f32", f32, {f32, f32}, [=](uint64_t a, uint64_t b, uint64_t) { return min_max(a, b, true, true); });
  // Directed rounding, by bits: sums and products of numbers near one are exact in double.
  std::vector<std::vector<uint64_t>> in(3);
  std::mt19937_64 random(3);
  for (int n = 0; n < 1024; ++n) {
    for (int k = 0; k < 3; ++k)
      in[static_cast<size_t>(k)].push_back((random() & 0x807fffff) | (120 + random() % 14) << 23);
  }
  const std::pair<const char*, Rounding> modes[] = {
      {"rn", Rounding::kNearest}, {"rz", Rounding::kZero}, {"rm", Rounding::kDown}, {"rp", Rounding::kUp}};
  for (const auto& [mode, rounding] : modes) {
    const std::vector<uint64_t> sums = Execute(StrCat({"add.", mode, ".f32"}), f32, {f32, f32}, "", in);
    const std::vector<uint64_t> products = Execute(StrCat({"mul.", mode, ".f32"}), f32, {f32, f32}, "", in);
    const std::vector<uint64_t> fused = Execute(StrCat({"fma.", mode, ".f32"}), f32, {f32, f32, f32}, "", in);
    const std::vector<uint64_t> quotients = Execute(StrCat({"div.", mode, ".f32"}), f32, {f32, f32}, "", in);
    const std::vector<uint64_t> roots = Execute(StrCat({"sqrt.", mode, ".f32"}), f32, {f32}, "", in);
    for (size_t n = 0; n < sums.size(); ++n) {
      const double a = F(in[0][n]), b = F(in[1][n]), c = F(in[2][n]);
      REQUIRE(sums[n] == RoundTo(kFloatFormat, a + b, rounding));
      REQUIRE(products[n] == RoundTo(kFloatFormat, a * b, rounding));
      REQUIRE(fused[n] == RoundTo(kFloatFormat, FusedToOdd(a, b, c), rounding));
      REQUIRE(quotients[n] == RoundTo(kFloatFormat, a / b, rounding));  // never within half a unit of double of a tie
      if (a > 0) REQUIRE(roots[n] == RoundTo(kFloatFormat, std::sqrt(a), rounding));
    }
  }
  const auto compare = [&](const std::string& name, bool (*f)(float, float)) {
    Check("setp." + name + ".f32", Type::kPred, {f32, f32},
          [=](uint64_t a, uint64_t b, uint64_t) -> uint64_t { return f(F(a), F(b)); });
    Check("setp." + name + ".and.f32", Type::kPred, {f32, f32, Type::kPred},
          [=](uint64_t a, uint64_t b, uint64_t c) -> uint64_t { return f(F(a), F(b)) && c != 0; });
    Check("setp." + name + ".f64", Type::kPred, {Type::kF64, Type::kF64},
          [=](uint64_t a, uint64_t b, uint64_t) -> uint64_t {
            const double x = D(a), y = D(b);  // the order alone matters
            return f(x != x ? NAN : x < y ? 0.0f : x > y ? 2.0f : 1.0f, y != y ? NAN : 1.0f);
          });
    Check("setp." + name + ".or.f64", Type::kPred, {Type::kF64, Type::kF64, Type::kPred},
          [=](uint64_t a, uint64_t b, uint64_t c) -> uint64_t {
            const double x = D(a), y = D(b);
            return f(x != x ? NAN : x < y ? 0.0f : x > y ? 2.0f : 1.0f, y != y ? NAN : 1.0f) || c != 0;
          });
  };
  compare("eq", [](float a, float b) { return a == b; });
  compare("ne", [](float a, float b) { return a < b || a > b; });
  compare("lt", [](float a, float b) { return a < b; });
  compare("le", [](float a, float b) { return a <= b; });
  compare("gt", [](float a, float b) { return a > b; });
  compare("ge", [](float a, float b) { return a >= b; });
  compare("equ", [](float a, float b) { return !(a < b || a > b); });
  compare("neu", [](float a, float b) { return !(a == b); });
  compare("ltu", [](float a, float b) { return !(a >= b); });
  compare("leu", [](float a, float b) { return !(a > b); });
  compare("gtu", [](float a, float b) { return !(a <= b); });
  compare("geu", [](float a, float b) { return !(a < b); });
  compare("num", [](float a, float b) { return a == a && b == b; });
  compare("nan", [](float a, float b) { return a != a || b != b; });
  const std::pair<const char*, int (*)(double)> tests[] = {{"finite", [](double x) -> int { return std::isfinite(x); }},
                                                           {"infinite", [](double x) -> int { return std::isinf(x); }},
                                                           {"number", [](double x) -> int { return x == x; }},
                                                           {"notanumber", [](double x) -> int { return x != x; }}};
  for (const auto& [name, f] : tests) {
    const auto g = f;
    Check(StrCat({"testp.", name, ".f32"}), Type::kPred, {f32},
          [=](uint64_t a, uint64_t, uint64_t) { return static_cast<uint64_t>(g(F(a))); });
    Check(StrCat({"testp.", name, ".f64"}), Type::kPred, {Type::kF64},
          [=](uint64_t a, uint64_t, uint64_t) { return static_cast<uint64_t>(g(D(a))); });
  }
  const auto subnormal = [](float x) { return x != 0 && std::fabs(x) < std::numeric_limits<float>::min(); };
  Check("testp.subnormal.f32", Type::kPred, {f32},
        [=](uint64_t a, uint64_t, uint64_t) -> uint64_t { return subnormal(F(a)); });
  Check("testp.normal.f32", Type::kPred, {f32},
        [=](uint64_t a, uint64_t, uint64_t) -> uint64_t { return std::isfinite(F(a)) && !subnormal(F(a)); });
  const auto subnormal64 = [](double x) { return x != 0 && std::fabs(x) < std::numeric_limits<double>::min(); };
  Check("testp.subnormal.f64", Type::kPred, {Type::kF64},
        [=](uint64_t a, uint64_t, uint64_t) -> uint64_t { return subnormal64(D(a)); });
  Check("testp.normal.f64", Type::kPred, {Type::kF64},
        [=](uint64_t a, uint64_t, uint64_t) -> uint64_t { return std::isfinite(D(a)) && !subnormal64(D(a)); });
}

TEST_CASE("ptx instructions: float64") {
  const Type f64 = Type::kF64;
  // A NaN comes from the operands in the order of `preferred`, made quiet; without one it is negative.
  const auto same = [&](const std::string& opcode, const std::vector<Type>& from, double (*f)(double, double, double),
                        const std::string& preferred = "bca") {
    std::vector<std::vector<uint64_t>> in(3);
    for (const uint64_t a : Corners(f64)) {
      for (const uint64_t b : Corners(f64)) {
        for (const uint64_t c : Corners(f64)) in[0].push_back(a), in[1].push_back(b), in[2].push_back(c);
      }
    }
    const std::vector<uint64_t> results = Execute(opcode, f64, from, "", in);
    for (size_t n = 0; n < results.size(); ++n) {
      const double want = f(D(in[0][n]), D(in[1][n]), D(in[2][n]));
      CAPTURE(opcode);
      if (want != want) {
        uint64_t nan = 0xfff8000000000000;
        for (size_t k = preferred.size(); k-- > 0;) {
          const auto operand = static_cast<size_t>(preferred[k] - 'a');
          if (operand < from.size() && D(in[operand][n]) != D(in[operand][n])) nan = in[operand][n] | uint64_t{1} << 51;
        }
        REQUIRE(results[n] == nan);
      } else {
        REQUIRE(results[n] == B(want));
      }
    }
  };
  same("add.f64", {f64, f64}, [](double a, double b, double) { return a + b; });
  same("sub.rn.f64", {f64, f64}, [](double a, double b, double) { return a - b; });
  same("mul.f64", {f64, f64}, [](double a, double b, double) { return a * b; });
  same(
      "div.rn.f64", {f64, f64}, [](double a, double b, double) { return a / b; }, "ab");
  same("fma.rn.f64", {f64, f64, f64}, [](double a, double b, double c) { return std::fma(a, b, c); });
  same("mad.rn.f64", {f64, f64, f64}, [](double a, double b, double c) { return std::fma(a, b, c); });
  same("rcp.rn.f64", {f64}, [](double a, double, double) { return 1 / a; });
  // Of the upper half alone, and without denormals.
  Check("rcp.approx.ftz.f64", f64, {f64}, [](uint64_t a, uint64_t, uint64_t) -> uint64_t {
    const uint64_t upper = a >> 32 << 32;
    const double x = D(upper), y = 1 / (std::fabs(x) < 0x1p-1022 ? std::copysign(0.0, x) : x);
    if (x != x) return upper | uint64_t{1} << 51;
    return (B(std::fabs(y) < 0x1p-1022 ? std::copysign(0.0, y) : y) + 0x80000000) >> 32 << 32;
  });
  same("sqrt.rn.f64", {f64}, [](double a, double, double) { return std::sqrt(a); });
  same("rsqrt.approx.f64", {f64}, [](double a, double, double) { return 1 / std::sqrt(a); });
  same("min.f64", {f64, f64}, [](double a, double b, double) {
    return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
  });
  same("max.f64", {f64, f64}, [](double a, double b, double) {
    return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
  });
  same("neg.f64", {f64}, [](double a, double, double) { return -a; });
  same("abs.f64", {f64}, [](double a, double, double) { return std::fabs(a); });
  Check("copysign.f64", f64, {f64, f64},
        [](uint64_t a, uint64_t b, uint64_t) { return (a & uint64_t{1} << 63) | (b & ~(uint64_t{1} << 63)); });
}

TEST_CASE("ptx instructions: approximate functions are within the bounds of the manual") {
  struct Function {
    const char* opcode;
    double (*exact)(double);
    double relative, absolute, low, high;
  };
  const Function functions[] = {
      {"ex2.approx.f32", [](double x) { return std::exp2(x); }, 0x1p-22, 0, -120, 120},
      {"lg2.approx.f32", [](double x) { return std::log2(x); }, 0x1p-22, 0x1p-22, 1e-6, 1e6},
      {"sin.approx.f32", [](double x) { return std::sin(x); }, 0, 0x1p-20, -3.14, 3.14},
      {"cos.approx.f32", [](double x) { return std::cos(x); }, 0, 0x1p-20, -3.14, 3.14},
      {"tanh.approx.f32", [](double x) { return std::tanh(x); }, 0x1p-11, 0, -5, 5},
      {"rsqrt.approx.f32", [](double x) { return 1 / std::sqrt(x); }, 0x1p-22, 0, 1e-6, 1e6},
      {"rcp.approx.f32", [](double x) { return 1 / x; }, 0x1p-23, 0, 0.01, 100},
  };
  for (const Function& f : functions) {
    std::vector<std::vector<uint64_t>> in(3, std::vector<uint64_t>(512, 0));
    for (size_t n = 0; n < 512; ++n)
      in[0][n] = B(static_cast<float>(f.low + (f.high - f.low) * static_cast<double>(n) / 511));
    const std::vector<uint64_t> results = Execute(f.opcode, Type::kF32, {Type::kF32}, "", in);
    for (size_t n = 0; n < 512; ++n) {
      const double want = f.exact(F(in[0][n]));
      CHECK(std::fabs(F(results[n]) - want) <= std::fabs(want) * f.relative + f.absolute);
    }
  }
}

TEST_CASE("ptx formats: rounding beside the runtime's conversions") {
  std::mt19937 random(5);
  for (int n = 0; n < 200000; ++n) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (x != x) continue;
    REQUIRE(RoundTo(kHalfFormat, x, Rounding::kNearest) == NarrowBits(false, x));
    REQUIRE(RoundTo(kBf16Format, x, Rounding::kNearest) == NarrowBits(true, x));
    REQUIRE(RoundTo(kFloatFormat, x, Rounding::kNearest) == std::bit_cast<uint32_t>(x));
    const double y = double{x} * (1 + static_cast<double>(random()) / 0x1p33);
    REQUIRE(RoundTo(kFloatFormat, y, Rounding::kNearest) == std::bit_cast<uint32_t>(static_cast<float>(y)));
  }
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const double half = HalfValue(static_cast<uint16_t>(bits)), other = WidenBits(false, bits);
    REQUIRE((half == other || (half != half && other != other)));
  }
}

TEST_CASE("ptx instructions: float16 and bfloat16") {
  for (const bool bf16 : {false, true}) {
    const std::string t = bf16 ? "bf16" : "f16";
    const Type one = ParseType(t), two = ParseType(t + "x2");
    using Op = double (*)(double, double, double);
    const auto check = [&](const std::string& name, int inputs, Op f) {
      const auto single = [=](uint64_t a, uint64_t b, uint64_t c) {
        return NarrowBits(bf16, f(WidenBits(bf16, a), WidenBits(bf16, b), WidenBits(bf16, c)));
      };
      Check(name + "." + t, one, std::vector<Type>(static_cast<size_t>(inputs), one), single);
      Check(name + "." + t + "x2", two, std::vector<Type>(static_cast<size_t>(inputs), two),
            [=](uint64_t a, uint64_t b, uint64_t c) {
              return single(a & 0xffff, b & 0xffff, c & 0xffff) | single(a >> 16, b >> 16, c >> 16) << 16;
            });
    };
    check("add", 2, [](double a, double b, double) { return FusedToOdd(a, 1, b); });
    check("sub", 2, [](double a, double b, double) { return FusedToOdd(a, 1, -b); });
    check("mul", 2, [](double a, double b, double) { return a * b; });
    check("fma.rn", 3, [](double a, double b, double c) { return FusedToOdd(a, b, c); });
    check("min", 2, [](double a, double b, double) {
      return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
    });
    check("max", 2, [](double a, double b, double) {
      return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
    });
    check(bf16 ? "ex2.approx.ftz" : "ex2.approx", 1, [](double a, double, double) { return std::exp2(a); });
    check("tanh.approx", 1, [](double a, double, double) { return std::tanh(a); });
    Check("fma.rn.relu." + t, one, {one, one, one}, [=](uint64_t a, uint64_t b, uint64_t c) {
      const double r = FusedToOdd(WidenBits(bf16, a), WidenBits(bf16, b), WidenBits(bf16, c));
      return r > 0 || r != r ? NarrowBits(bf16, r) : 0;
    });
    for (const Type type : {one, two}) {
      const std::string name = TypeName(type);
      for (const uint64_t change : {0x8000, 0x7fff}) {
        const auto half = [=](uint64_t a) {
          const uint64_t x = a & 0xffff;
          return WidenBits(bf16, x) != WidenBits(bf16, x) ? 0x7fff : change == 0x8000 ? x ^ change : x & change;
        };
        Check((change == 0x8000 ? "neg." : "abs.") + name, type, {type},
              [=](uint64_t a, uint64_t, uint64_t) { return (half(a) | half(a >> 16) << 16) & MaskOf(type); });
      }
    }
    Check("setp.lt." + t, Type::kPred, {one, one},
          [=](uint64_t a, uint64_t b, uint64_t) -> uint64_t { return WidenBits(bf16, a) < WidenBits(bf16, b); });
    Check("setp.geu.or." + t, Type::kPred, {one, one, Type::kPred},
          [=](uint64_t a, uint64_t b, uint64_t c) -> uint64_t {
            return !(WidenBits(bf16, a) < WidenBits(bf16, b)) || c != 0;
          });
  }
}

// Of two halves in a register: a predicate for each.
TEST_CASE("ptx instructions: comparisons of pairs") {
  for (const char* combined : {"", ".and"}) {
    const std::string tail = *combined != '\0' ? ", %p2" : "";
    const std::string body =
        StrCat({"ld.global.b32 %r0, [%in];\nld.global.b32 %r1, [%in+4];\nld.global.b32 %r2, [%in+8];\n"
                "setp.ne.u32 %p2, %r2, 0;\nsetp.lt",
                combined, ".f16x2 %p0|%p1, %r0, %r1", tail, ";\nselp.u32 %r3, 1, 0, %p0;\nselp.u32 %r4, 1, 0, %p1;\n",
                "setp.gtu", combined, ".bf16x2 %p3|%p4, %r0, %r1", tail,
                ";\nselp.u32 %r5, 1, 0, %p3;\nselp.u32 %r6, 1, 0, %p4;\n"
                "st.global.b32 [%out], %r3;\nst.global.b32 [%out+4], %r4;\nst.global.b32 [%out+8], %r5;\n"
                "st.global.b32 [%out+12], %r6;"});
    // Halves 1, 2 and NaN, in both formats.
    constexpr uint32_t kOne = 0x3c00, kTwo = 0x4000, kNan = 0x7fff;
    const uint32_t pairs[][2] = {{kOne | kTwo << 16, kTwo | kOne << 16}, {kNan | kOne << 16, kOne | kOne << 16}};
    const uint32_t less[][2] = {{1, 0}, {0, 0}}, greater_or_not[][2] = {{0, 1}, {1, 0}};
    std::vector<uint32_t> input(32 * kWordsPerThread);
    for (size_t thread = 0; thread < 32; ++thread) {
      input[thread * kWordsPerThread] = pairs[thread % 2][0];
      input[thread * kWordsPerThread + 1] = pairs[thread % 2][1];
      input[thread * kWordsPerThread + 2] = thread % 4 < 2 ? 1 : 0;
    }
    const Result<std::vector<uint32_t>> got = RunBody(body, input);
    REQUIRE_MESSAGE(got.ok(), got.status().message());
    for (size_t thread = 0; thread < 32; ++thread) {
      const uint32_t passes = tail.empty() || thread % 4 < 2 ? 1 : 0;
      for (size_t half = 0; half < 2; ++half) {
        CHECK((*got)[thread * kWordsPerThread + half] == (less[thread % 2][half] & passes));
        CHECK((*got)[thread * kWordsPerThread + 2 + half] == (greater_or_not[thread % 2][half] & passes));
      }
    }
  }
}

}  // namespace
}  // namespace ingot::ptx
