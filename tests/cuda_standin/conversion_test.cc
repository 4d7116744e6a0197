// Conversions between all types, and addresses of spaces.
#include <doctest/doctest.h>

#include "tests/cuda_standin/device_memory.h"
#include "tests/cuda_standin/float_formats.h"
#include "tests/cuda_standin/instruction_check.h"

namespace ingot::ptx {
namespace {

constexpr Type kAllIntegers[] = {Type::kU8,  Type::kS8,  Type::kU16, Type::kS16,
                                 Type::kU32, Type::kS32, Type::kU64, Type::kS64};
constexpr Type kAllFloats[] = {Type::kF16, Type::kBf16, Type::kF32, Type::kF64};
__int128 IntegerValue(Type type, uint64_t bits) {
  const int unused = 64 - 8 * TypeBytes(type);
  return IsSigned(type) ? static_cast<__int128>(static_cast<int64_t>(bits << unused) >> unused)
                        : static_cast<__int128>(bits << unused >> unused);
}
double FloatValue(Type type, uint64_t bits) {
  return type == Type::kF64 ? D(bits) : type == Type::kF32 ? double{F(bits)} : WidenBits(type == Type::kBf16, bits);
}
// As it stands in a register of the type's size, of at least 16 bits.
uint64_t InRegister(Type type, __int128 value) {
  return static_cast<uint64_t>(value) & (TypeBytes(type) == 1 ? 0xffff : MaskOf(type));
}
__int128 Clamped(Type type, __int128 value) {
  const int bits = 8 * TypeBytes(type);
  const __int128 one = 1, low = IsSigned(type) ? -(one << (bits - 1)) : 0,
                 high = (one << (IsSigned(type) ? bits - 1 : bits)) - 1;
  return std::max(low, std::min(high, value));
}

constexpr __int128 kHuge = static_cast<__int128>(1) << 100;
// bfloat16 has no conversions to and from eight bits.
bool Converts(Type to, Type from) {
  return !((to == Type::kBf16 && TypeBytes(from) == 1) || (from == Type::kBf16 && TypeBytes(to) == 1));
}

TEST_CASE("ptx instructions: conversions") {
  for (const Type to : kAllIntegers) {
    for (const Type from : kAllIntegers) {
      const std::string name = StrCat({TypeName(to), ".", TypeName(from)});
      Check("cvt." + name, to, {from}, [=](uint64_t a, uint64_t, uint64_t) {
        return InRegister(to, IntegerValue(to, static_cast<uint64_t>(IntegerValue(from, a))));
      });
      const auto value_range = [](Type type) { return std::pair(Clamped(type, -kHuge), Clamped(type, kHuge)); };
      if (value_range(from).first >= value_range(to).first && value_range(from).second <= value_range(to).second)
        continue;  // nothing may be out of range
      Check("cvt.sat." + name, to, {from},
            [=](uint64_t a, uint64_t, uint64_t) { return InRegister(to, Clamped(to, IntegerValue(from, a))); });
    }
    for (const Type from : kAllFloats) {
      if (!Converts(to, from)) continue;
      const std::pair<const char*, double (*)(double)> modes[] = {{"rni", [](double x) { return std::nearbyint(x); }},
                                                                  {"rzi", [](double x) { return std::trunc(x); }},
                                                                  {"rmi", [](double x) { return std::floor(x); }},
                                                                  {"rpi", [](double x) { return std::ceil(x); }}};
      for (const auto& [mode, f] : modes) {
        const auto g = f;
        Check(StrCat({"cvt.", mode, ".", TypeName(to), ".", TypeName(from)}), to, {from},
              [=](uint64_t a, uint64_t, uint64_t) {
                const double x = FloatValue(from, a);
                // Not always the zero that the manual has.
                if (x != x)
                  return from == Type::kF64 || TypeBytes(to) == 8
                             ? InRegister(to, IntegerValue(to, uint64_t{1} << (8 * TypeBytes(to) - 1)))
                             : 0;
                return InRegister(to, Clamped(to, static_cast<__int128>(std::max(-0x1p100, std::min(0x1p100, g(x))))));
              });
      }
    }
  }
  for (const Type to : kAllFloats) {
    for (const Type from : kAllIntegers) {
      if (!Converts(to, from)) continue;
      if (to != Type::kBf16) {
        Check(StrCat({"cvt.rn.sat.", TypeName(to), ".", TypeName(from)}), to, {from},
              [=](uint64_t a, uint64_t, uint64_t) -> uint64_t {
                const uint64_t one = to == Type::kF64 ? B(1.0) : to == Type::kF32 ? B(1.0f) : 0x3c00;
                return IntegerValue(from, a) > 0 ? one : 0;
              });
      }
      Check(StrCat({"cvt.rn.", TypeName(to), ".", TypeName(from)}), to, {from},
            [=](uint64_t a, uint64_t, uint64_t) -> uint64_t {
              const __int128 value = IntegerValue(from, a);
              if (to == Type::kF64) return B(static_cast<double>(value));
              if (to == Type::kF32) return B(static_cast<float>(value));
              // Above 2^53 a half overflows; a bfloat16 has so few bits that a sticky last one decides.
              const auto x = static_cast<double>(value);
              const double odd = static_cast<__int128>(x) == value ? x
                                 : (std::bit_cast<uint64_t>(x) & 1) != 0
                                     ? x
                                     : std::nextafter(x, static_cast<__int128>(x) < value ? HUGE_VAL : -HUGE_VAL);
              return NarrowBits(to == Type::kBf16, odd);
            });
    }
    for (const Type from : kAllFloats) {
      const bool widens = TypeBytes(to) >= TypeBytes(from) && to != from && TypeBytes(from) < TypeBytes(to);
      const std::string mode = widens || to == from ? "" : ".rn";
      Check(StrCat({"cvt", mode, ".", TypeName(to), ".", TypeName(from)}), to, {from},
            [=](uint64_t a, uint64_t, uint64_t) -> uint64_t {
              const double x = FloatValue(from, a);
              if (x != x && mode.empty() && (to == from || (to == Type::kF32 && from == Type::kBf16)) &&
                  TypeBytes(to) >= 4) {
                return a << (to == from ? 0 : 16);  // a move
              }
              if (x != x && (to == Type::kF64 || from == Type::kF64)) {  // sign and upper bits stay
                const auto shape = [](Type type) {
                  return type == Type::kF64   ? std::pair(11, 52)
                         : type == Type::kF32 ? std::pair(8, 23)
                         : type == Type::kF16 ? std::pair(5, 10)
                                              : std::pair(8, 7);
                };
                const auto [in_exponent, in_mantissa] = shape(from);
                const auto [out_exponent, out_mantissa] = shape(to);
                const uint64_t mantissa = a & ((uint64_t{1} << in_mantissa) - 1);
                const int moved = out_mantissa - in_mantissa;
                const uint64_t sign = a >> (in_exponent + in_mantissa);
                return sign << (out_exponent + out_mantissa) | ((uint64_t{1} << out_exponent) - 1) << out_mantissa |
                       (moved > 0 ? mantissa << moved : mantissa >> -moved) | uint64_t{1} << (out_mantissa - 1);
              }
              if (to == Type::kF64) return std::bit_cast<uint64_t>(x);
              if (to == Type::kF32) return B(static_cast<float>(x));
              return NarrowBits(to == Type::kBf16, x);
            });
    }
  }
  Check("cvt.rzi.f32.f32", Type::kF32, {Type::kF32},
        [](uint64_t a, uint64_t, uint64_t) { return B(std::trunc(F(a))); });
  Check("cvt.rni.f32.f32", Type::kF32, {Type::kF32},
        [](uint64_t a, uint64_t, uint64_t) { return B(std::nearbyint(F(a))); });
  Check("cvt.sat.f32.f32", Type::kF32, {Type::kF32},
        [](uint64_t a, uint64_t, uint64_t) { return B(F(a) > 0 ? std::min(F(a), 1.0f) : 0.0f); });
  Check("cvt.rz.f32.f64", Type::kF32, {Type::kF64}, [](uint64_t a, uint64_t, uint64_t) -> uint64_t {
    if (D(a) == D(a)) return RoundTo(kFloatFormat, D(a), Rounding::kZero);
    return (a >> 32 & 0x80000000) | 0x7fc00000 | (a >> 29 & 0x7fffff);
  });
  // float16 has values where a float32 is flushed.
  Check("cvt.rp.ftz.f16.f32", Type::kF16, {Type::kF32}, [](uint64_t a, uint64_t, uint64_t) -> uint64_t {
    return F(a) != F(a) ? 0x7fff : RoundTo(kHalfFormat, F(a), Rounding::kUp);
  });
  Check("cvt.ftz.f64.f32", Type::kF64, {Type::kF32}, [](uint64_t a, uint64_t, uint64_t) {
    return F(a) != F(a) ? 0x7fffffffe0000000 : B(static_cast<double>(Ftz(F(a))));
  });
  Check("cvt.rp.f32.u32", Type::kF32, {Type::kU32}, [](uint64_t a, uint64_t, uint64_t) -> uint64_t {
    return RoundTo(kFloatFormat, static_cast<double>(a), Rounding::kUp);
  });
  for (const Type to : {Type::kF16, Type::kBf16}) {
    Check(StrCat({"cvt.rn.relu.", TypeName(to), ".f32"}), to, {Type::kF32}, [=](uint64_t a, uint64_t, uint64_t) {
      return F(a) <= 0 ? uint64_t{0} : NarrowBits(to == Type::kBf16, F(a));
    });
  }
  Check("cvt.ftz.f32.bf16", Type::kF32, {Type::kBf16},
        [](uint64_t a, uint64_t, uint64_t) { return B(Ftz(static_cast<float>(WidenBits(true, a)))); });
  Check("cvt.rz.tf32.f32", Type::kB32, {Type::kF32},
        [](uint64_t a, uint64_t, uint64_t) { return F(a) != F(a) ? uint64_t{0x7fffe000} : a & 0xffffe000; });
  // Ten bits are kept, halves go away from zero; the lower 13 bits are zero.
  Check("cvt.rna.tf32.f32", Type::kB32, {Type::kF32}, [](uint64_t a, uint64_t, uint64_t) -> uint64_t {
    return ((a & 0x7fffffff) >= 0x7f800000 ? a : a + 0x1000) & 0xffffe000;
  });
  for (const bool bf16 : {false, true}) {
    Check(StrCat({"cvt.rn.", bf16 ? "bf16x2" : "f16x2", ".f32"}), Type::kB32, {Type::kF32, Type::kF32},
          [=](uint64_t a, uint64_t b, uint64_t) { return NarrowBits(bf16, F(a)) << 16 | NarrowBits(bf16, F(b)); });
  }
  Check("cvta.global.u64", Type::kU64, {Type::kU64}, [](uint64_t a, uint64_t, uint64_t) { return a; });
  Check("cvta.to.shared.u64", Type::kU64, {Type::kU64}, [](uint64_t a, uint64_t, uint64_t) { return a - kSharedBase; });
  Check("isspacep.shared", Type::kPred, {Type::kU64},
        [](uint64_t a, uint64_t, uint64_t) -> uint64_t { return a >= kSharedBase && a < kSharedBase + kWindowBytes; });
}

}  // namespace
}  // namespace ingot::ptx
