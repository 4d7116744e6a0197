// Float arithmetic. float32 and float64 are computed by the host under the rounding mode of the instruction (this file
// is compiled with -frounding-math); float16 and bfloat16 exactly or to odd in double, then rounded once. NaN results
// of float32 and below are the canonical NaN, of float64 one of the inputs', as GPUs do it. The approximate functions
// give the correctly rounded result, which is within what the manual allows.
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "tests/cuda_standin/float_formats.h"
#include "tests/cuda_standin/lane_loops.h"

// Sanitizers are not ready yet when the loader chooses a clone.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define INGOT_PTX_CLONES __attribute__((target_clones("default", "arch=haswell")))
#else
#define INGOT_PTX_CLONES
#endif

namespace ingot::ptx {
namespace {

class RoundingScope {
 public:
  explicit RoundingScope(Rounding rounding) {
    if (rounding == Rounding::kNearest) return;
    changed_ = true;
    std::fesetround(rounding == Rounding::kZero   ? FE_TOWARDZERO
                    : rounding == Rounding::kDown ? FE_DOWNWARD
                                                  : FE_UPWARD);
  }
  ~RoundingScope() {
    if (changed_) std::fesetround(FE_TONEAREST);
  }
  RoundingScope(const RoundingScope&) = delete;

 private:
  bool changed_ = false;
};

const float kNan = std::bit_cast<float>(0x7fffffffu);

float Flush(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : value;
}
float Flush(float value, bool ftz) { return ftz ? Flush(value) : value; }
double Flush(double value, bool) { return value; }
float Finish(float value, bool ftz, bool sat) {
  if (value != value) return sat ? 0.0f : kNan;
  value = Flush(value, ftz);
  return sat ? std::fmin(std::fmax(value, 0.0f), 1.0f) + 0.0f : value;
}
// The result beside the inputs, in the order in which their NaN is preferred.
template <typename... Inputs>
float Canonical(float value, Inputs...) {
  return value == value ? value : kNan;
}
double Canonical(double value) { return value == value ? value : std::bit_cast<double>(uint64_t{0xfff8} << 48); }
template <typename... Inputs>
double Canonical(double value, double input, Inputs... others) {
  if (value == value) return value;
  if (input != input) return std::bit_cast<double>(std::bit_cast<uint64_t>(input) | uint64_t{1} << 51);
  return Canonical(value, others...);
}

// d = f(inputs), with flushing and saturation where the instruction has them.
template <typename T, typename F>
void Map1(Warp& w, const Instruction& i, uint32_t mask, F f) {
  const bool ftz = i.ftz, sat = i.sat;
  RoundingScope scope(i.rounding);
  if constexpr (std::is_same_v<T, float>) {
    if (ftz || sat) return Map<T, T>(w, i, mask, [=](T a) -> T { return Finish(f(Flush(a, ftz)), ftz, sat); });
  }
  Map<T, T>(w, i, mask, [=](T a) -> T { return Canonical(f(a), a); });
}
template <typename T, bool first_nan = false, typename F>
void Map2(Warp& w, const Instruction& i, uint32_t mask, F f) {
  const bool ftz = i.ftz, sat = i.sat;
  RoundingScope scope(i.rounding);
  if constexpr (std::is_same_v<T, float>) {
    if (ftz || sat) {
      return Map<T, T, T>(w, i, mask, [=](T a, T b) -> T { return Finish(f(Flush(a, ftz), Flush(b, ftz)), ftz, sat); });
    }
  }
  Map<T, T, T>(w, i, mask, [=](T a, T b) -> T {
    const T result = f(a, b);
    return first_nan ? Canonical(result, a, b) : Canonical(result, b, a);
  });
}

template <typename T>
void Add(Warp& w, const Instruction& i, uint32_t mask) {
  Map2<T>(w, i, mask, [](T a, T b) { return a + b; });
}
template <typename T>
void Subtract(Warp& w, const Instruction& i, uint32_t mask) {
  Map2<T>(w, i, mask, [](T a, T b) { return a - b; });
}
template <typename T>
void Multiply(Warp& w, const Instruction& i, uint32_t mask) {
  Map2<T>(w, i, mask, [](T a, T b) { return a * b; });
}
template <typename T>
void Divide(Warp& w, const Instruction& i, uint32_t mask) {
  const bool ftz = i.ftz;
  Map2<T, true>(w, i, mask, [=](T a, T b) -> T {
    // Flushed if the exact quotient is, whatever it is rounded to.
    if constexpr (std::is_same_v<T, float>) {
      if (ftz && std::fabs(a) < std::fabs(double{b}) * 0x1p-126) return std::copysign(0.0f, a) * std::copysign(1.0f, b);
    }
    return a / b;
  });
}
// a * (1 / b), the reciprocal without denormals, b scaled where they would be needed: .full at both ends, .approx below
// alone, nothing of what .ftz flushes.
void DivideApproximately(Warp& w, const Instruction& i, uint32_t mask) {
  const bool ftz = i.ftz, full = i.variant == 1;
  Map2<float>(w, i, mask, [=](float a, float b) {
    if (full && std::fabs(b) > 0x1p126f) a = Flush(a * 0.25f, ftz), b *= 0.25f;
    if (!ftz && !(std::fabs(b) >= 0x1p-126f)) a *= 0x1p24f, b *= 0x1p24f;
    return a * Flush(1 / b);
  });
}
template <typename T>
void Reciprocal(Warp& w, const Instruction& i, uint32_t mask) {
  Map1<T>(w, i, mask, [](T a) { return T{1} / a; });
}
// rcp.approx.ftz.f64 knows the upper halves alone.
void ReciprocalOfUpperHalf(Warp& w, const Instruction& i, uint32_t mask) {
  Map<uint64_t, uint64_t>(w, i, mask, [](uint64_t bits) {
    constexpr uint64_t kUpper = ~uint64_t{0} << 32, kExponent = uint64_t{0x7ff} << 52, kSign = uint64_t{1} << 63;
    const auto flushed = [](uint64_t x) { return (x & kExponent) == 0 ? x & kSign : x; };
    if ((bits & ~kSign) > kExponent) return (bits | uint64_t{1} << 51) & kUpper;
    const auto result = std::bit_cast<uint64_t>(1 / std::bit_cast<double>(flushed(bits & kUpper)));
    return flushed((result + (uint64_t{1} << 31)) & kUpper);
  });
}
template <typename T>
void SquareRoot(Warp& w, const Instruction& i, uint32_t mask) {
  Map1<T>(w, i, mask, [](T a) { return std::sqrt(a); });
}

INGOT_PTX_CLONES void FmaLoop(float* d, const float* a, const float* b, const float* c) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const float r = __builtin_fmaf(a[lane], b[lane], c[lane]);
    d[lane] = r == r ? r : kNan;
  }
}
INGOT_PTX_CLONES void FmaLoop(double* d, const double* a, const double* b, const double* c) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const double r = __builtin_fma(a[lane], b[lane], c[lane]);
    d[lane] = Canonical(r, b[lane], c[lane], a[lane]);
  }
}
template <typename T>
void Fma(Warp& w, const Instruction& i, uint32_t mask) {
  const bool ftz = i.ftz, sat = i.sat;
  RoundingScope scope(i.rounding);
  if (mask == kAllLanes && !ftz && !sat) {
    FmaLoop(w.Lanes<T>(i.r[0]), w.Lanes<T>(i.r[1]), w.Lanes<T>(i.r[2]), w.Lanes<T>(i.r[3]));
    return w.SetComputed(i.r[0], mask, w.Computed(i.r[1]) & w.Computed(i.r[2]) & w.Computed(i.r[3]));
  }
  Map<T, T, T, T>(w, i, mask, [=](T a, T b, T c) -> T {
    if constexpr (std::is_same_v<T, double>) {
      return Canonical(std::fma(a, b, c), b, c, a);
    } else {
      return Finish(std::fma(Flush(a, ftz), Flush(b, ftz), Flush(c, ftz)), ftz, sat);
    }
  });
}

// The sign of numbers; a NaN is that of any other instruction.
template <typename T>
void Negate(Warp& w, const Instruction& i, uint32_t mask) {
  Map1<T>(w, i, mask, [](T a) { return -a; });
}
template <typename T>
void Absolute(Warp& w, const Instruction& i, uint32_t mask) {
  Map1<T>(w, i, mask, [](T a) { return std::fabs(a); });
}
// Operand 1 gives the sign, operand 2 the rest.
template <typename U>
void CopySign(Warp& w, const Instruction& i, uint32_t mask) {
  const U sign = U{1} << (8 * sizeof(U) - 1);
  Map<U, U, U>(w, i, mask, [=](U a, U b) { return (a & sign) | (b & ~sign); });
}

// A NaN loses against a number, unless .NaN asks for it; -0 is below +0.
template <typename T>
T MinMax(T a, T b, bool max, bool nan) {
  if (a != a || b != b) {
    const bool both = a != a && b != b;
    if (nan || both) return std::numeric_limits<T>::quiet_NaN();
    return a != a ? b : a;
  }
  if (a == b) return std::signbit(a) != max ? a : b;
  return (a < b) != max ? a : b;
}
template <typename T>
void MinOrMax(Warp& w, const Instruction& i, uint32_t mask) {
  const bool max = i.variant == 1, nan = i.nan;
  Map2<T>(w, i, mask, [=](T a, T b) { return MinMax(a, b, max, nan); });
}

// ---- approximate functions, by number
enum Function : uint8_t { kExp2, kLog2, kSin, kCos, kTanh, kRsqrt };
double Evaluate(uint8_t function, double x) {
  switch (static_cast<Function>(function)) {
    case kExp2:
      return std::exp2(x);
    case kLog2:
      return std::log2(x);
    case kSin:
      return std::sin(x);
    case kCos:
      return std::cos(x);
    case kTanh:
      return std::tanh(x);
    case kRsqrt:
      return 1 / std::sqrt(x);
  }
  return 0;
}
template <typename T>
void Approximate(Warp& w, const Instruction& i, uint32_t mask) {
  const uint8_t function = i.variant;
  Map1<T>(w, i, mask, [=](T a) { return static_cast<T>(Evaluate(function, a)); });
}

// ---- float16 and bfloat16, one or two in a register
template <typename F>
uint16_t Narrow(FloatFormat format, const Instruction& i, F f) {
  double value = f();
  if (std::isnan(value)) return i.sat ? 0 : 0x7fff;
  if (i.sat) value = std::fmin(std::fmax(value, 0.0), 1.0) + 0.0;
  if (i.relu) value = std::fmax(value, 0.0) + 0.0;
  return static_cast<uint16_t>(RoundTo(format, value, Rounding::kNearest));
}
template <bool bf16>
double WidenSmall(uint16_t bits, bool ftz) {
  if (!bf16 && ftz && (bits & 0x7c00) == 0) bits &= 0x8000;
  return bf16 ? Bf16Value(bits) : HalfValue(bits);
}
enum SmallOp : uint8_t { kAdd, kSub, kMul, kFma, kMin, kMax, kNegate, kAbsolute, kSmallExp2, kSmallTanh };
template <bool bf16>
uint16_t SmallResult(const Instruction& i, uint16_t a_bits, uint16_t b_bits, uint16_t c_bits) {
  const FloatFormat format = bf16 ? kBf16Format : kHalfFormat;
  const double a = WidenSmall<bf16>(a_bits, i.ftz), b = WidenSmall<bf16>(b_bits, i.ftz),
               c = WidenSmall<bf16>(c_bits, i.ftz);
  uint16_t result = Narrow(format, i, [&]() -> double {
    switch (static_cast<SmallOp>(i.variant)) {
      case kAdd:
        return FusedToOdd(a, 1, b);
      case kSub:
        return FusedToOdd(a, 1, -b);
      case kMul:
        return a * b;
      case kFma:
        return FusedToOdd(a, b, c);
      case kMin:
        return MinMax(a, b, false, i.nan);
      case kMax:
        return MinMax(a, b, true, i.nan);
      case kNegate:
        return -a;
      case kAbsolute:
        return std::fabs(a);
      case kSmallExp2:
        return std::exp2(a);
      case kSmallTanh:
        return std::tanh(a);
    }
    return 0;
  });
  if (!bf16 && i.ftz && (result & 0x7c00) == 0) result &= 0x8000;
  return result;
}
// The register types: uint16_t one value, uint32_t two. `inputs` operands are read.
template <typename U, bool bf16, int inputs>
void Small(Warp& w, const Instruction& i, uint32_t mask) {
  U* d = w.Lanes<U>(i.r[0]);
  const U* a = w.Lanes<U>(i.r[1]);
  const U* b = inputs > 1 ? w.Lanes<U>(i.r[2]) : a;
  const U* c = inputs > 2 ? w.Lanes<U>(i.r[3]) : a;
  uint32_t computed = kAllLanes;
  for (int k = 1; k <= inputs; ++k) computed &= w.Computed(i.r[k]);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    uint32_t result = 0;
    for (size_t k = 0; k < 8 * sizeof(U); k += 16) {
      const auto half = [&](U value) { return static_cast<uint16_t>(value >> k); };
      result |= static_cast<uint32_t>(SmallResult<bf16>(i, half(a[lane]), half(b[lane]), half(c[lane]))) << k;
    }
    d[lane] = static_cast<U>(result);
  }
  w.SetComputed(i.r[0], mask, computed);
}

// ---- comparisons
template <typename T>
bool Compares(Compare compare, T a, T b) {
  const bool unordered = a != a || b != b;
  switch (compare) {
    case Compare::kEq:
      return a == b;
    case Compare::kNe:
      return !unordered && a != b;
    case Compare::kLt:
      return a < b;
    case Compare::kLe:
      return a <= b;
    case Compare::kGt:
      return a > b;
    case Compare::kGe:
      return a >= b;
    case Compare::kEqu:
      return unordered || a == b;
    case Compare::kNeu:
      return unordered || a != b;
    case Compare::kLtu:
      return unordered || a < b;
    case Compare::kLeu:
      return unordered || a <= b;
    case Compare::kGtu:
      return unordered || a > b;
    case Compare::kGeu:
      return unordered || a >= b;
    case Compare::kNum:
      return !unordered;
    case Compare::kNan:
      return unordered;
    default:
      return false;
  }
}
template <typename T>
void SetPredicate(Warp& w, const Instruction& i, uint32_t mask) {
  const auto compare = static_cast<Compare>(i.compare);
  const bool ftz = i.ftz;
  SetPredicates<T>(w, i, mask, [=](T a, T b) { return Compares<T>(compare, Flush(a, ftz), Flush(b, ftz)); });
}
template <bool bf16>
void SetPredicateSmall(Warp& w, const Instruction& i, uint32_t mask) {
  const auto compare = static_cast<Compare>(i.compare);
  const bool ftz = i.ftz;
  SetPredicates<uint16_t>(w, i, mask, [=](uint16_t a, uint16_t b) {
    return Compares<double>(compare, WidenSmall<bf16>(a, ftz), WidenSmall<bf16>(b, ftz));
  });
}
// Of two halves: p says what the lower ones do, q the upper ones.
template <bool bf16>
void SetPredicatePair(Warp& w, const Instruction& i, uint32_t mask) {
  const auto compare = static_cast<Compare>(i.compare);
  const uint32_t *a = w.Lanes<uint32_t>(i.r[2]), *b = w.Lanes<uint32_t>(i.r[3]);
  uint32_t holds[2] = {};
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int half = 0; half < 2; ++half) {
      const auto widen = [&](uint32_t pair) {
        return WidenSmall<bf16>(static_cast<uint16_t>(pair >> 16 * half), i.ftz);
      };
      holds[half] |= static_cast<uint32_t>(Compares<double>(compare, widen(a[lane]), widen(b[lane]))) << lane;
    }
  }
  StorePredicates(w, i, mask, holds[0], holds[1]);
}
// testp: operands d, a.
enum Test : uint8_t { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };
template <typename T>
void TestFloat(Warp& w, const Instruction& i, uint32_t mask) {
  const T* a = w.Lanes<T>(i.r[1]);
  uint32_t result = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const T x = a[lane];
    bool holds = false;
    switch (static_cast<Test>(i.variant)) {
      case kFinite:
        holds = std::isfinite(x);
        break;
      case kInfinite:
        holds = std::isinf(x);
        break;
      case kNumber:
        holds = !std::isnan(x);
        break;
      case kNotANumber:
        holds = std::isnan(x);
        break;
      case kNormal:
        holds = std::isnormal(x) || x == 0;
        break;
      case kSubnormal:
        holds = std::fpclassify(x) == FP_SUBNORMAL;
        break;
    }
    result |= static_cast<uint32_t>(holds) << lane;
  }
  uint32_t& d = w.Predicate(i.r[0]);
  d = (d & ~mask) | (result & mask);
  w.SetComputed(i.r[0], mask, w.Computed(i.r[1]));
}

constexpr const char* kFloatCompares = "setp(.eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan)";

template <typename T, typename U>
void AddTypedRows(Rows& rows, const std::string& t) {
  const std::string one = StrCat({"=", t, " ", t}), two = StrCat({one, " ", t}), three = StrCat({two, " ", t});
  constexpr bool single = std::is_same_v<T, float>;
  const char* modes = single ? "{.ftz}{.sat}" : "";
  rows.push_back({StrCat({"add{.rn|.rz|.rm|.rp}", modes, ".", t}), two, Add<T>});
  rows.push_back({StrCat({"sub{.rn|.rz|.rm|.rp}", modes, ".", t}), two, Subtract<T>});
  rows.push_back({StrCat({"mul{.rn|.rz|.rm|.rp}", modes, ".", t}), two, Multiply<T>});
  rows.push_back({StrCat({"fma(.rn|.rz|.rm|.rp)", modes, ".", t}), three, Fma<T>});
  rows.push_back({StrCat({"mad(.rn|.rz|.rm|.rp)", modes, ".", t}), three, Fma<T>});
  const char* ftz = single ? "{.ftz}" : "";
  const char* nan = single ? "{.NaN}" : "";
  rows.push_back({StrCat({"div(.rn|.rz|.rm|.rp)", ftz, ".", t}), two, Divide<T>});
  rows.push_back({StrCat({"rcp(.rn|.rz|.rm|.rp)", ftz, ".", t}), one, Reciprocal<T>});
  rows.push_back({StrCat({"sqrt(.rn|.rz|.rm|.rp)", ftz, ".", t}), one, SquareRoot<T>});
  rows.push_back({StrCat({"rsqrt.approx", ftz, ".", t}), one, Approximate<T>, kRsqrt});
  rows.push_back({StrCat({"neg", ftz, ".", t}), one, Negate<T>});
  rows.push_back({StrCat({"abs", ftz, ".", t}), one, Absolute<T>});
  rows.push_back({StrCat({"copysign.", t}), two, CopySign<U>});
  rows.push_back({StrCat({"min", ftz, nan, ".", t}), two, MinOrMax<T>, 0});
  rows.push_back({StrCat({"max", ftz, nan, ".", t}), two, MinOrMax<T>, 1});
  rows.push_back({StrCat({kFloatCompares, ftz, ".", t}), StrCat({"=pred|pred ", t, " ", t}), SetPredicate<T>});
  rows.push_back({StrCat({kFloatCompares, "(.and|.or|.xor)", ftz, ".", t}), StrCat({"=pred|pred ", t, " ", t, " pred"}),
                  SetPredicate<T>});
  constexpr const char* kTests[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  for (uint8_t k = 0; k < 6; ++k)
    rows.push_back({StrCat({"testp.", kTests[k], ".", t}), StrCat({"=pred ", t}), TestFloat<T>, k});
}

template <typename U, bool bf16>
void AddSmallRows(Rows& rows, const std::string& t) {
  const std::string one = StrCat({"=", t, " ", t}), two = StrCat({one, " ", t}), three = StrCat({two, " ", t});
  const char *ftz = bf16 ? "" : "{.ftz}", *modes = bf16 ? "{.rn}" : "{.rn}{.ftz}{.sat}";
  const auto add = [&](const std::string& opcode, const std::string& signature, Handler handler, uint8_t op, int sm) {
    rows.push_back({StrCat({opcode, ".", t}), signature, handler, op, Flow::kNext, 0, Space::kGeneric, sm});
  };
  const int late = bf16 ? 90 : 0;
  add(StrCat({"add", modes}), two, Small<U, bf16, 2>, kAdd, late);
  add(StrCat({"sub", modes}), two, Small<U, bf16, 2>, kSub, late);
  add(StrCat({"mul", modes}), two, Small<U, bf16, 2>, kMul, late);
  add(StrCat({"fma.rn", bf16 ? "{.relu}" : "{.ftz}{.sat|.relu}"}), three, Small<U, bf16, 3>, kFma, 0);
  add(StrCat({"min", ftz, "{.NaN}"}), two, Small<U, bf16, 2>, kMin, 0);
  add(StrCat({"max", ftz, "{.NaN}"}), two, Small<U, bf16, 2>, kMax, 0);
  add(StrCat({"neg", ftz}), one, Small<U, bf16, 1>, kNegate, 0);
  add(StrCat({"abs", ftz}), one, Small<U, bf16, 1>, kAbsolute, 0);
  add(bf16 ? "ex2.approx.ftz" : "ex2.approx", one, Small<U, bf16, 1>, kSmallExp2, late);
  add("tanh.approx", one, Small<U, bf16, 1>, kSmallTanh, late);
}

}  // namespace

void AddFloatRows(Rows& rows) {
  AddTypedRows<float, uint32_t>(rows, "f32");
  AddTypedRows<double, uint64_t>(rows, "f64");
  rows.push_back({"rcp.approx{.ftz}.f32", "=f32 f32", Reciprocal<float>});
  rows.push_back({"rcp.approx.ftz.f64", "=f64 f64", ReciprocalOfUpperHalf});
  rows.push_back({"div.approx{.ftz}.f32", "=f32 f32 f32", DivideApproximately, 0});
  rows.push_back({"div.full{.ftz}.f32", "=f32 f32 f32", DivideApproximately, 1});
  rows.push_back({"sqrt.approx{.ftz}.f32", "=f32 f32", SquareRoot<float>});
  rows.push_back({"ex2.approx{.ftz}.f32", "=f32 f32", Approximate<float>, kExp2});
  rows.push_back({"lg2.approx{.ftz}.f32", "=f32 f32", Approximate<float>, kLog2});
  rows.push_back({"sin.approx{.ftz}.f32", "=f32 f32", Approximate<float>, kSin});
  rows.push_back({"cos.approx{.ftz}.f32", "=f32 f32", Approximate<float>, kCos});
  rows.push_back({"tanh.approx.f32", "=f32 f32", Approximate<float>, kTanh});
  AddSmallRows<uint16_t, false>(rows, "f16");
  AddSmallRows<uint32_t, false>(rows, "f16x2");
  AddSmallRows<uint16_t, true>(rows, "bf16");
  AddSmallRows<uint32_t, true>(rows, "bf16x2");
  rows.push_back({StrCat({kFloatCompares, "{.ftz}.f16"}), "=pred|- f16 f16", SetPredicateSmall<false>});
  rows.push_back(
      {StrCat({kFloatCompares, "(.and|.or|.xor){.ftz}.f16"}), "=pred|- f16 f16 pred", SetPredicateSmall<false>});
  rows.push_back({StrCat({kFloatCompares, "{.ftz}.f16x2"}), "=pred|pred f16x2 f16x2", SetPredicatePair<false>});
  rows.push_back({StrCat({kFloatCompares, "(.and|.or|.xor){.ftz}.f16x2"}), "=pred|pred f16x2 f16x2 pred",
                  SetPredicatePair<false>});
  rows.push_back({StrCat({kFloatCompares, ".bf16x2"}), "=pred|pred bf16x2 bf16x2", SetPredicatePair<true>, 0,
                  Flow::kNext, 0, Space::kGeneric, 90});
  rows.push_back({StrCat({kFloatCompares, "(.and|.or|.xor).bf16x2"}), "=pred|pred bf16x2 bf16x2 pred",
                  SetPredicatePair<true>, 0, Flow::kNext, 0, Space::kGeneric, 90});
  rows.push_back({StrCat({kFloatCompares, ".bf16"}), "=pred|- bf16 bf16", SetPredicateSmall<true>, 0, Flow::kNext, 0,
                  Space::kGeneric, 90});
  rows.push_back({StrCat({kFloatCompares, "(.and|.or|.xor).bf16"}), "=pred|- bf16 bf16 pred", SetPredicateSmall<true>,
                  0, Flow::kNext, 0, Space::kGeneric, 90});
}

}  // namespace ingot::ptx
