// cvt: between all integer and float types, and cvta between spaces. Integers out of range saturate where the manual
// says so (from floats always, from integers with .sat). Sources and results may stand in wider registers.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/cuda_standin/float_formats.h"
#include "tests/cuda_standin/lane_loops.h"

namespace ingot::ptx {
namespace {

uint64_t ReadLane(const Warp& w, uint32_t place, int bytes, int lane) {
  uint64_t bits = 0;
  std::memcpy(&bits, w.Lanes<uint8_t>(place) + lane * bytes, static_cast<size_t>(bytes));
  return bits;
}
void WriteLane(const Warp& w, uint32_t place, int bytes, int lane, uint64_t bits) {
  std::memcpy(w.Lanes<uint8_t>(place) + lane * bytes, &bits, static_cast<size_t>(bytes));
}

double RoundToInteger(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::kNearest:
      return std::nearbyint(value);  // to even: the host's mode is never changed here
    case Rounding::kZero:
      return std::trunc(value);
    case Rounding::kDown:
      return std::floor(value);
    case Rounding::kUp:
      return std::ceil(value);
    case Rounding::kNearestAway:
      return std::round(value);
  }
  return value;
}

FloatFormat FormatOf(Type type) {
  switch (type) {
    case Type::kF16:
      return kHalfFormat;
    case Type::kBf16:
      return kBf16Format;
    case Type::kTf32:
      return kTf32Format;
    default:
      return kFloatFormat;
  }
}

// An integer rounded to a float, exactly as if it had all bits: sticky where double has too few.
double IntegerToOdd(__int128 value) {
  const auto nearest = static_cast<double>(value);
  const auto back = static_cast<__int128>(nearest);
  if (back == value) return nearest;
  const bool away = (back < value) == (nearest > 0);
  const auto bits = std::bit_cast<uint64_t>(nearest);
  return (bits & 1) != 0 ? nearest : std::bit_cast<double>(bits + (away ? 1 : -1));
}

double IntegerToDouble(__int128 value, Rounding rounding) {
  auto result = static_cast<double>(value);
  const auto back = static_cast<__int128>(result);
  if (rounding == Rounding::kDown && back > value) result = std::nextafter(result, -HUGE_VAL);
  if (rounding == Rounding::kUp && back < value) result = std::nextafter(result, HUGE_VAL);
  if (rounding == Rounding::kZero && (value > 0 ? back > value : back < value)) result = std::nextafter(result, 0.0);
  return result;
}

__int128 Lowest(Type type) { return IsSigned(type) ? -(static_cast<__int128>(1) << (8 * TypeBytes(type) - 1)) : 0; }
__int128 Highest(Type type) {
  return (static_cast<__int128>(1) << (8 * TypeBytes(type) - (IsSigned(type) ? 1 : 0))) - 1;
}

// What GPUs make of a NaN; which one it is, is not in the manual. As an integer it is zero, or the lowest signed one from
// float64 and to 64 bits (there the manual says zero, too). From and to float64 and bfloat16 it keeps sign and upper
// bits.
uint64_t ConvertNan(const Instruction& i, Type to, Type from, uint64_t bits) {
  if (!IsFloat(to) && to != Type::kTf32)
    return from == Type::kF64 || TypeBytes(to) == 8 ? uint64_t{1} << (8 * TypeBytes(to) - 1) : 0;
  if (i.sat) return 0;
  const bool plain = !i.to_integer && !i.relu && !i.ftz;
  if (i.ftz && from == Type::kF32) bits = 0x7fffffff;
  if (to == Type::kF32 && from == Type::kF32 && plain) return bits;
  if (to == Type::kF32 && from == Type::kBf16 && plain) return bits << 16;
  // .satfinite lowers what is not finite by a unit.
  if (to == Type::kTf32 && i.rounding == Rounding::kNearestAway) return (bits >> 13) - (i.satfinite ? 1 : 0);
  if (to == Type::kF64 || (from == Type::kF64 && !i.relu)) {
    if (to == from && plain) return bits;
    const FloatFormat in = from == Type::kF64 ? FloatFormat{11, 52} : FormatOf(from),
                      out = to == Type::kF64 ? FloatFormat{11, 52} : FormatOf(to);
    const uint64_t mantissa = (bits << (64 - in.mantissa_bits)) >> (64 - out.mantissa_bits);
    const uint64_t sign = bits >> (in.exponent_bits + in.mantissa_bits) & 1;
    const uint64_t exponent = (uint64_t{1} << out.exponent_bits) - 1;
    return (sign << out.exponent_bits | exponent) << out.mantissa_bits | mantissa |
           uint64_t{1} << (out.mantissa_bits - 1);
  }
  return RoundTo(FormatOf(to), std::nan(""), i.rounding);
}

uint64_t ConvertValue(const Instruction& i, Type to, Type from, uint64_t bits) {
  const int from_bits = 8 * TypeBytes(from);
  if (!IsFloat(from)) {
    __int128 value;
    if (IsSigned(from)) {
      value = static_cast<int64_t>(bits << (64 - from_bits)) >> (64 - from_bits);
    } else {
      value = bits & (from_bits == 64 ? ~uint64_t{0} : (uint64_t{1} << from_bits) - 1);
    }
    if (IsFloat(to) && i.sat) value = std::max<__int128>(0, std::min<__int128>(1, value));
    if (to == Type::kF64) return std::bit_cast<uint64_t>(IntegerToDouble(value, i.rounding));
    if (IsFloat(to)) return RoundTo(FormatOf(to), IntegerToOdd(value), i.rounding);
    if (i.sat) value = std::max(Lowest(to), std::min(Highest(to), value));
    return static_cast<uint64_t>(value);
  }
  double value = from == Type::kF64 ? std::bit_cast<double>(bits) : Widen(FormatOf(from), static_cast<uint32_t>(bits));
  const bool single = from == Type::kF32 || to == Type::kF32;
  if (std::isnan(value)) return ConvertNan(i, to, from, bits) << (to == Type::kTf32 ? 13 : 0);
  const bool flushes = i.ftz && from == Type::kF32 && to != Type::kF16;  // nothing, on GPUs, on the way to float16
  if (flushes && std::fabs(value) < 0x1p-126) value = std::copysign(0.0, value);
  if (!IsFloat(to) && to != Type::kTf32) {
    value = RoundToInteger(value, i.rounding);
    if (value <= static_cast<double>(Lowest(to))) return static_cast<uint64_t>(Lowest(to));
    if (value >= static_cast<double>(Highest(to))) return static_cast<uint64_t>(Highest(to));
    return static_cast<uint64_t>(static_cast<__int128>(value));
  }
  if (i.to_integer) value = std::isfinite(value) ? std::copysign(RoundToInteger(value, i.rounding), value) : value;
  if (i.sat) value = std::fmin(std::fmax(value, 0.0), 1.0) + 0.0;
  if (i.relu) value = std::fmax(value, 0.0) + 0.0;
  if (to == Type::kF64) return std::bit_cast<uint64_t>(value);
  if (i.satfinite) {
    const double largest =
        Widen(FormatOf(to), (((1u << FormatOf(to).exponent_bits) - 1) << FormatOf(to).mantissa_bits) - 1);
    value = std::fmin(std::fmax(value, -largest), largest);
  }
  uint32_t result = RoundTo(FormatOf(to), value, i.rounding);
  if (i.ftz && single && to == Type::kF32 && (result & 0x7f800000u) == 0) result &= 0x80000000u;
  if (to == Type::kTf32) result <<= 13;  // the upper bits of a float32
  return result;
}

// Signed results fill a wider register with their sign, others with zeros.
uint64_t Extend(Type type, uint64_t bits) {
  const int unused = 64 - 8 * TypeBytes(type);
  if (IsSigned(type)) return static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused);
  return bits << unused >> unused;
}

template <Type to, Type from>
void Convert(Warp& w, const Instruction& i, uint32_t mask) {
  const int d_bytes = i.bytes[0], a_bytes = i.bytes[1];
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    WriteLane(w, i.r[0], d_bytes, lane, Extend(to, ConvertValue(i, to, from, ReadLane(w, i.r[1], a_bytes, lane))));
  }
  w.SetComputed(i.r[0], mask, w.Computed(i.r[1]));
}

// The conversions that index arithmetic is made of, as loops without calls.
template <typename D, typename A>
void ConvertPlain(Warp& w, const Instruction& i, uint32_t mask) {
  Map<D, A>(w, i, mask, [](A a) { return static_cast<D>(a); });
}

// cvt.rn.f16x2.f32 d, a, b: a is the upper half.
template <Type to>
void ConvertPair(Warp& w, const Instruction& i, uint32_t mask) {
  uint32_t* d = w.Lanes<uint32_t>(i.r[0]);
  const uint32_t *a = w.Lanes<uint32_t>(i.r[1]), *b = w.Lanes<uint32_t>(i.r[2]);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    const uint64_t upper = ConvertValue(i, to, Type::kF32, a[lane]), lower = ConvertValue(i, to, Type::kF32, b[lane]);
    d[lane] = static_cast<uint32_t>(upper << 16 | lower);
  }
  w.SetComputed(i.r[0], mask, w.Computed(i.r[1]) & w.Computed(i.r[2]));
}

// Between a space and generic addresses: adds (variant 0) or subtracts (1) the base of the space's window.
uint64_t WindowOf(Space space) {
  switch (space) {
    case Space::kShared:
      return kSharedBase;
    case Space::kLocal:
      return kLocalBase;
    case Space::kParam:
      return kParamBase;
    default:
      return 0;
  }
}
void ConvertAddress(Warp& w, const Instruction& i, uint32_t mask) {
  const uint64_t window = WindowOf(i.space);
  const uint64_t delta = i.variant == 0 ? window : 0 - window;
  Map<uint64_t, uint64_t>(w, i, mask, [=](uint64_t a) { return a + delta; });
}
// isspacep
void IsInSpace(Warp& w, const Instruction& i, uint32_t mask) {
  const uint64_t* a = w.Lanes<uint64_t>(i.r[1]);
  uint32_t result = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint64_t window = WindowOf(i.space);
    const bool inside = window != 0 ? a[lane] - window < kWindowBytes : a[lane] >= kDeviceBase && a[lane] < kSharedBase;
    result |= static_cast<uint32_t>(inside) << lane;
  }
  uint32_t& d = w.Predicate(i.r[0]);
  d = (d & ~mask) | (result & mask);
  w.SetComputed(i.r[0], mask, w.Computed(i.r[1]));
}

constexpr Type kIntegers[] = {Type::kU8,  Type::kS8,  Type::kU16, Type::kS16,
                              Type::kU32, Type::kS32, Type::kU64, Type::kS64};
constexpr Type kFloats[] = {Type::kF16, Type::kBf16, Type::kF32, Type::kF64};

template <Type to, Type from>
void AddRow(Rows& rows, const std::string& modes, int from_sm = 0) {
  rows.push_back({StrCat({"cvt", modes, ".", TypeName(to), ".", TypeName(from)}),
                  StrCat({"=*", TypeName(to), " *", TypeName(from)}), Convert<to, from>, 0, Flow::kNext, 0,
                  Space::kGeneric, from_sm});
}
constexpr const char *kRound = "(.rn|.rz|.rm|.rp)", *kRoundIfWished = "{.rn|.rz|.rm|.rp}",
                     *kRoundToInteger = "(.rni|.rzi|.rmi|.rpi)", *kRoundToIntegerIfWished = "{.rni|.rzi|.rmi|.rpi}";
// .sat stands where it may change something.
template <Type to, Type from>
void AddBetweenIntegers(Rows& rows) {
  if (TypeBytes(from) == 4 && TypeBytes(to) == 8 && IsSigned(from) == IsSigned(to)) return;  // a plain one
  const bool fits = Lowest(from) >= Lowest(to) && Highest(from) <= Highest(to);
  AddRow<to, from>(rows, fits ? "" : "{.sat}");
}
// Between an integer and a float, `rounding` being that of the result.
template <Type to, Type from, Type integer, Type floating>
void AddWithFloat(Rows& rows, const char* rounding) {
  if constexpr (floating == Type::kBf16) {
    if (TypeBytes(integer) > 1) AddRow<to, from>(rows, rounding, 90);
  } else {
    AddRow<to, from>(rows, StrCat({rounding, floating == Type::kF32 ? "{.ftz}{.sat}" : "{.sat}"}));
  }
}
template <Type integer, size_t... k, size_t... f>
void AddInteger(Rows& rows, std::index_sequence<k...>, std::index_sequence<f...>) {
  (AddBetweenIntegers<integer, kIntegers[k]>(rows), ...);
  (AddWithFloat<integer, kFloats[f], integer, kFloats[f]>(rows, kRoundToInteger), ...);
  (AddWithFloat<kFloats[f], integer, integer, kFloats[f]>(rows, kRound), ...);
}
template <size_t... k>
void AddIntegers(Rows& rows, std::index_sequence<k...> integers) {
  (AddInteger<kIntegers[k]>(rows, integers, std::make_index_sequence<4>()), ...);
}
void AddBetweenFloats(Rows& rows) {
  const auto with = [](const char* rounding, const char* modes) { return StrCat({rounding, modes}); };
  AddRow<Type::kF16, Type::kF16>(rows, with(kRoundToIntegerIfWished, "{.sat}"));
  AddRow<Type::kF16, Type::kBf16>(rows, kRoundIfWished, 90);
  AddRow<Type::kF16, Type::kF32>(rows, with(kRound, "{.ftz}{.sat}"));
  AddRow<Type::kF16, Type::kF32>(rows, "(.rn|.rz)(.relu)");
  AddRow<Type::kF16, Type::kF64>(rows, with(kRound, "{.sat}"));
  AddRow<Type::kBf16, Type::kF16>(rows, kRoundIfWished, 90);
  AddRow<Type::kBf16, Type::kBf16>(rows, kRoundToIntegerIfWished, 90);
  AddRow<Type::kBf16, Type::kF32>(rows, with(kRound, "{.ftz}"));
  AddRow<Type::kBf16, Type::kF32>(rows, "(.rn|.rz)(.relu)");
  AddRow<Type::kBf16, Type::kF64>(rows, kRound, 90);
  AddRow<Type::kF32, Type::kF16>(rows, "{.ftz}{.sat}");
  AddRow<Type::kF32, Type::kBf16>(rows, kRoundIfWished);
  AddRow<Type::kF32, Type::kBf16>(rows, with(kRoundIfWished, "(.ftz)"), 90);
  AddRow<Type::kF32, Type::kF32>(rows, with(kRoundToIntegerIfWished, "{.ftz}{.sat}"));
  AddRow<Type::kF32, Type::kF64>(rows, with(kRound, "{.ftz}{.sat}"));
  AddRow<Type::kF64, Type::kF16>(rows, "{.sat}");
  AddRow<Type::kF64, Type::kBf16>(rows, kRoundIfWished, 90);
  AddRow<Type::kF64, Type::kF32>(rows, "{.ftz}{.sat}");
  AddRow<Type::kF64, Type::kF64>(rows, with(kRoundToIntegerIfWished, "{.sat}"));
  rows.push_back({"cvt(.rna){.satfinite}.tf32.f32", "=b32 f32", Convert<Type::kTf32, Type::kF32>});
  rows.push_back({"cvt(.rn|.rz){.relu}.tf32.f32", "=b32 f32", Convert<Type::kTf32, Type::kF32>, 0, Flow::kNext, 0,
                  Space::kGeneric, 90});
}

}  // namespace

void AddConvertRows(Rows& rows) {
  rows.push_back({"cvt.u64.u32", "=u64 u32", ConvertPlain<uint64_t, uint32_t>});
  rows.push_back({"cvt.s64.s32", "=s64 s32", ConvertPlain<int64_t, int32_t>});
  rows.push_back({"cvt.u32.u64", "=u32 u64", ConvertPlain<uint32_t, uint64_t>});
  AddIntegers(rows, std::make_index_sequence<8>());
  AddBetweenFloats(rows);
  rows.push_back({"cvt(.rn|.rz){.relu}{.satfinite}.f16x2.f32", "=f16x2 f32 f32", ConvertPair<Type::kF16>});
  rows.push_back({"cvt(.rn|.rz){.relu}{.satfinite}.bf16x2.f32", "=bf16x2 f32 f32", ConvertPair<Type::kBf16>});
  constexpr const char* kSpaces = "(.global|.shared|.shared::cta|.local|.const|.param|.param::entry)";
  rows.push_back({StrCat({"cvta", kSpaces, ".u64"}), "=u64 u64", ConvertAddress, 0});
  rows.push_back({StrCat({"cvta.to", kSpaces, ".u64"}), "=u64 u64", ConvertAddress, 1});
  rows.push_back({"isspacep(.global|.shared|.shared::cta|.local)", "=pred u64", IsInSpace});
}

}  // namespace ingot::ptx
