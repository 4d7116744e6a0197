// Integer, logical and bit instructions, comparisons and selections. Arithmetic wraps; a division by zero gives no
// computed value, since the manual leaves it open.
#include <bit>
#include <limits>
#include <type_traits>

#include "tests/cuda_standin/lane_loops.h"

namespace ingot::ptx {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;
template <typename T>
struct WiderType;
template <>
struct WiderType<int16_t> {
  using Type = int32_t;
};
template <>
struct WiderType<uint16_t> {
  using Type = uint32_t;
};
template <>
struct WiderType<int32_t> {
  using Type = int64_t;
};
template <>
struct WiderType<uint32_t> {
  using Type = uint64_t;
};
template <>
struct WiderType<int64_t> {
  using Type = __int128;
};
template <>
struct WiderType<uint64_t> {
  using Type = unsigned __int128;
};
template <typename T>
using Wide = typename WiderType<T>::Type;

template <typename T>
T AddWrapped(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
}
template <typename T>
T SubtractWrapped(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
}
template <typename T>
T MultiplyLow(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <typename T>
T MultiplyHigh(T a, T b) {
  return static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> (8 * sizeof(T)));
}

// A row per type of a function of two values of that type.
#define INGOT_PTX_BINARY(name, expression)                              \
  template <typename T>                                                 \
  void name(Warp& w, const Instruction& i, uint32_t mask) {             \
    Map<T, T, T>(w, i, mask, [](T a, T b) -> T { return expression; }); \
  }
#define INGOT_PTX_UNARY(name, expression)                       \
  template <typename T>                                         \
  void name(Warp& w, const Instruction& i, uint32_t mask) {     \
    Map<T, T>(w, i, mask, [](T a) -> T { return expression; }); \
  }
INGOT_PTX_BINARY(Add, AddWrapped(a, b))
INGOT_PTX_BINARY(Subtract, SubtractWrapped(a, b))
INGOT_PTX_BINARY(MulLo, MultiplyLow(a, b))
INGOT_PTX_BINARY(MulHi, MultiplyHigh(a, b))
INGOT_PTX_BINARY(Min, a < b ? a : b)
INGOT_PTX_BINARY(Max, a < b ? b : a)
INGOT_PTX_BINARY(And, static_cast<T>(a& b))
INGOT_PTX_BINARY(Or, static_cast<T>(a | b))
INGOT_PTX_BINARY(Xor, static_cast<T>(a ^ b))
INGOT_PTX_UNARY(Not, static_cast<T>(~a))
INGOT_PTX_UNARY(Cnot, a == 0 ? 1 : 0)
INGOT_PTX_UNARY(Negate, SubtractWrapped(T{0}, a))
INGOT_PTX_UNARY(Absolute, a < 0 ? SubtractWrapped(T{0}, a) : a)
INGOT_PTX_UNARY(Move, a)
#undef INGOT_PTX_BINARY
#undef INGOT_PTX_UNARY

int32_t Saturated(int64_t value) {
  if (value > std::numeric_limits<int32_t>::max()) return std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::max<int64_t>(value, std::numeric_limits<int32_t>::min()));
}
void AddSaturated(Warp& w, const Instruction& i, uint32_t mask) {
  Map<int32_t, int32_t, int32_t>(w, i, mask, [](int64_t a, int64_t b) { return Saturated(a + b); });
}
void SubtractSaturated(Warp& w, const Instruction& i, uint32_t mask) {
  Map<int32_t, int32_t, int32_t>(w, i, mask, [](int64_t a, int64_t b) { return Saturated(a - b); });
}

template <typename T>
void MulWide(Warp& w, const Instruction& i, uint32_t mask) {
  Map<Wide<T>, T, T>(w, i, mask, [](T a, T b) { return static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b); });
}
template <typename T>
void MadLo(Warp& w, const Instruction& i, uint32_t mask) {
  Map<T, T, T, T>(w, i, mask, [](T a, T b, T c) { return AddWrapped(MultiplyLow(a, b), c); });
}
template <typename T>
void MadHi(Warp& w, const Instruction& i, uint32_t mask) {
  Map<T, T, T, T>(w, i, mask, [](T a, T b, T c) { return AddWrapped(MultiplyHigh(a, b), c); });
}
template <typename T>
void MadWide(Warp& w, const Instruction& i, uint32_t mask) {
  Map<Wide<T>, T, T, Wide<T>>(w, i, mask, [](T a, T b, Wide<T> c) {
    return AddWrapped(static_cast<Wide<T>>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)), c);
  });
}
template <typename T>
void SumOfAbsoluteDifference(Warp& w, const Instruction& i, uint32_t mask) {
  Map<T, T, T, T>(w, i, mask,
                  [](T a, T b, T c) { return AddWrapped(c, a < b ? SubtractWrapped(b, a) : SubtractWrapped(a, b)); });
}

// Variant 0 divides, 1 gives the remainder.
template <typename T>
void Divide(Warp& w, const Instruction& i, uint32_t mask) {
  const T* divisor = w.Lanes<T>(i.r[2]);
  uint32_t by_zero = 0;
  for (int lane = 0; lane < kLanes; ++lane) by_zero |= divisor[lane] == 0 ? 1u << lane : 0;
  const bool remainder = i.variant == 1;
  Map<T, T, T>(w, i, mask & ~by_zero, [=](T a, T b) -> T {
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return remainder ? T{0} : SubtractWrapped(T{0}, a);
    return static_cast<T>(remainder ? a % b : a / b);
  });
  w.SetComputed(i.r[0], mask & by_zero, 0);
}

// Amounts above the width clamp.
template <typename T>
void ShiftLeft(Warp& w, const Instruction& i, uint32_t mask) {
  Map<T, T, uint32_t>(w, i, mask, [](T a, uint32_t n) -> T {
    return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(static_cast<uint64_t>(a) << n);
  });
}
template <typename T>
void ShiftRight(Warp& w, const Instruction& i, uint32_t mask) {
  Map<T, T, uint32_t>(w, i, mask, [](T a, uint32_t n) -> T {
    if (n >= 8 * sizeof(T)) return std::is_signed_v<T> && a < 0 ? static_cast<T>(-1) : T{0};
    return static_cast<T>(a >> n);
  });
}

template <typename T>
void PopulationCount(Warp& w, const Instruction& i, uint32_t mask) {
  Map<uint32_t, T>(w, i, mask, [](T a) { return static_cast<uint32_t>(std::popcount(a)); });
}
template <typename T>
void LeadingZeros(Warp& w, const Instruction& i, uint32_t mask) {
  Map<uint32_t, T>(w, i, mask, [](T a) { return static_cast<uint32_t>(std::countl_zero(a)); });
}
template <typename T>
void ReverseBits(Warp& w, const Instruction& i, uint32_t mask) {
  Map<T, T>(w, i, mask, [](T a) {
    T reversed = 0;
    for (size_t k = 0; k < 8 * sizeof(T); ++k) reversed = static_cast<T>(reversed << 1 | (a >> k & 1));
    return reversed;
  });
}
// The position of the highest bit that differs from the sign; variant 1 counts from above (.shiftamt).
template <typename T>
void FindBit(Warp& w, const Instruction& i, uint32_t mask) {
  const bool from_above = i.variant == 1;
  Map<uint32_t, T>(w, i, mask, [=](T a) -> uint32_t {
    const auto bits = static_cast<Unsigned<T>>(std::is_signed_v<T> && a < 0 ? ~a : a);
    if (bits == 0) return 0xffffffffu;
    const auto leading = static_cast<uint32_t>(std::countl_zero(bits));
    return from_above ? leading : static_cast<uint32_t>(8 * sizeof(T)) - 1 - leading;
  });
}
// Of 64 bits, GPUs read the whole position and length, where the manual says their lowest eight bits.
template <typename T>
void ExtractBits(Warp& w, const Instruction& i, uint32_t mask) {
  Map<T, T, uint32_t, uint32_t>(w, i, mask, [](T a, uint32_t b, uint32_t c) -> T {
    const uint64_t width = 8 * sizeof(T), read = width == 64 ? 0xffffffff : 255, start = b & read, length = c & read;
    if (length == 0) return 0;
    const auto bits = static_cast<Unsigned<T>>(a);
    const bool sign = std::is_signed_v<T> && (bits >> std::min(start + length - 1, width - 1) & 1) != 0;
    T result = 0;
    for (uint64_t k = 0; k < width; ++k) {
      const bool bit = k < length && start + k < width ? (bits >> (start + k) & 1) != 0 : sign;
      result = static_cast<T>(static_cast<Unsigned<T>>(result) | static_cast<Unsigned<T>>(bit) << k);
    }
    return result;
  });
}
template <typename T>
void InsertBits(Warp& w, const Instruction& i, uint32_t mask) {
  T* d = w.Lanes<T>(i.r[0]);
  const T *a = w.Lanes<T>(i.r[1]), *b = w.Lanes<T>(i.r[2]);
  const uint32_t *starts = w.Lanes<uint32_t>(i.r[3]), *lengths = w.Lanes<uint32_t>(i.r[4]);
  ForLanes(mask, [=](int lane) {
    const uint64_t read = sizeof(T) == 8 ? 0xffffffff : 255, start = starts[lane] & read, length = lengths[lane] & read;
    T result = b[lane];
    for (uint64_t k = 0; k < length && start + k < 8 * sizeof(T); ++k) {
      result = static_cast<T>((result & ~(T{1} << (start + k))) | (a[lane] >> k & 1) << (start + k));
    }
    d[lane] = result;
  });
  w.SetComputed(i.r[0], mask, w.Computed(i.r[1]) & w.Computed(i.r[2]) & w.Computed(i.r[3]) & w.Computed(i.r[4]));
}
void Permute(Warp& w, const Instruction& i, uint32_t mask) {
  Map<uint32_t, uint32_t, uint32_t, uint32_t>(w, i, mask, [](uint32_t a, uint32_t b, uint32_t selector) {
    const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
    uint32_t result = 0;
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t pick = selector >> (4 * k) & 15;
      auto byte = static_cast<uint32_t>(bytes >> (8 * (pick & 7)) & 255);
      if ((pick & 8) != 0) byte = (byte & 0x80) != 0 ? 255 : 0;
      result |= byte << (8 * k);
    }
    return result;
  });
}
// Variants: bit 0 right, bit 1 clamp.
void FunnelShift(Warp& w, const Instruction& i, uint32_t mask) {
  const bool right = (i.variant & 1) != 0, clamp = (i.variant & 2) != 0;
  Map<uint32_t, uint32_t, uint32_t, uint32_t>(w, i, mask, [=](uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t n = clamp ? std::min(c, 32u) : c & 31;
    const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
    return static_cast<uint32_t>(right ? both >> n : (both << n) >> 32);
  });
}
void Lop3(Warp& w, const Instruction& i, uint32_t mask) {
  const uint32_t table = w.Lanes<uint32_t>(i.r[4])[0];
  Map<uint32_t, uint32_t, uint32_t, uint32_t>(w, i, mask, [=](uint32_t a, uint32_t b, uint32_t c) {
    uint32_t result = 0;
    for (uint32_t k = 0; k < 8; ++k) {
      if ((table >> k & 1) == 0) continue;
      result |= ((k & 4) != 0 ? a : ~a) & ((k & 2) != 0 ? b : ~b) & ((k & 1) != 0 ? c : ~c);
    }
    return result;
  });
}
// Four products of bytes and a sum; A and B are the signedness of each side.
template <typename A, typename B>
void DotProduct4(Warp& w, const Instruction& i, uint32_t mask) {
  Map<uint32_t, uint32_t, uint32_t, uint32_t>(w, i, mask, [](uint32_t a, uint32_t b, uint32_t c) {
    for (int k = 0; k < 32; k += 8) {
      c += static_cast<uint32_t>(static_cast<int32_t>(static_cast<A>(a >> k)) *
                                 static_cast<int32_t>(static_cast<B>(b >> k)));
    }
    return c;
  });
}

// ---- comparisons and selections

template <typename T>
void SetPredicate(Warp& w, const Instruction& i, uint32_t mask) {
  switch (static_cast<Compare>(i.compare)) {
    case Compare::kEq:
      return SetPredicates<T>(w, i, mask, [](T a, T b) { return a == b; });
    case Compare::kNe:
      return SetPredicates<T>(w, i, mask, [](T a, T b) { return a != b; });
    case Compare::kLt:
    case Compare::kLo:
      return SetPredicates<T>(w, i, mask, [](T a, T b) { return a < b; });
    case Compare::kLe:
    case Compare::kLs:
      return SetPredicates<T>(w, i, mask, [](T a, T b) { return a <= b; });
    case Compare::kGt:
    case Compare::kHi:
      return SetPredicates<T>(w, i, mask, [](T a, T b) { return a > b; });
    case Compare::kGe:
    case Compare::kHs:
      return SetPredicates<T>(w, i, mask, [](T a, T b) { return a >= b; });
    default:
      return w.Fail(-1, "a comparison of floats applied to integers");
  }
}

template <typename T>
void Select(Warp& w, const Instruction& i, uint32_t mask) {
  T* d = w.Lanes<T>(i.r[0]);
  const T *a = w.Lanes<T>(i.r[1]), *b = w.Lanes<T>(i.r[2]);
  const uint32_t p = w.Predicate(i.r[3]);
  ForLanes(mask, [=](int lane) { d[lane] = (p >> lane & 1) != 0 ? a[lane] : b[lane]; });
  const uint32_t from_both = (p & w.Computed(i.r[1])) | (~p & w.Computed(i.r[2]));
  w.SetComputed(i.r[0], mask, from_both & w.Computed(i.r[3]));
}

// Predicates are masks; variants name the operation.
enum PredicateOp : uint8_t { kPredAnd, kPredOr, kPredXor, kPredNot, kPredMove };
void PredicateLogic(Warp& w, const Instruction& i, uint32_t mask) {
  const uint32_t a = w.Predicate(i.r[1]);
  uint32_t result = i.variant == kPredNot ? ~a : a, computed = w.Computed(i.r[1]);
  if (i.variant < kPredNot) {
    const uint32_t b = w.Predicate(i.r[2]);
    result = i.variant == kPredAnd ? a & b : i.variant == kPredOr ? a | b : a ^ b;
    computed &= w.Computed(i.r[2]);
  }
  uint32_t& d = w.Predicate(i.r[0]);
  d = (d & ~mask) | (result & mask);
  w.SetComputed(i.r[0], mask, computed);
}

// ---- rows

template <typename T>
void AddTypedRows(Rows& rows, const std::string& t) {
  const std::string two = StrCat({"=", t, " ", t, " ", t}), three = StrCat({two, " ", t}),
                    one = StrCat({"=", t, " ", t});
  rows.push_back({"add." + t, two, Add<T>});
  rows.push_back({"sub." + t, two, Subtract<T>});
  rows.push_back({"mul.lo." + t, two, MulLo<T>});
  rows.push_back({"mul.hi." + t, two, MulHi<T>});
  rows.push_back({"mad.lo." + t, three, MadLo<T>});
  rows.push_back({"mad.hi." + t, three, MadHi<T>});
  rows.push_back({"sad." + t, three, SumOfAbsoluteDifference<T>});
  rows.push_back({"div." + t, two, Divide<T>, 0});
  rows.push_back({"rem." + t, two, Divide<T>, 1});
  rows.push_back({"min." + t, two, Min<T>});
  rows.push_back({"max." + t, two, Max<T>});
  rows.push_back({"shr." + t, StrCat({"=", t, " ", t, " u32"}), ShiftRight<T>});
  const std::string compares =
      StrCat({"setp(.eq|.ne|.lt|.le|.gt|.ge", std::is_signed_v<T> ? "" : "|.lo|.ls|.hi|.hs", ")"});
  rows.push_back({StrCat({compares, ".", t}), StrCat({"=pred|pred ", t, " ", t}), SetPredicate<T>});
  rows.push_back(
      {StrCat({compares, "(.and|.or|.xor).", t}), StrCat({"=pred|pred ", t, " ", t, " pred"}), SetPredicate<T>});
  if (std::is_signed_v<T>) {
    rows.push_back({"neg." + t, one, Negate<T>});
    rows.push_back({"abs." + t, one, Absolute<T>});
  }
}
template <typename T>
void AddWideRows(Rows& rows, const std::string& t, const std::string& wide) {
  rows.push_back({"mul.wide." + t, StrCat({"=", wide, " ", t, " ", t}), MulWide<T>});
  rows.push_back({"mad.wide." + t, StrCat({"=", wide, " ", t, " ", t, " ", wide}), MadWide<T>});
}
template <typename T>
void AddBitRows(Rows& rows, const std::string& t) {
  const std::string two = StrCat({"=", t, " ", t, " ", t}), one = StrCat({"=", t, " ", t});
  rows.push_back({"and." + t, two, And<T>});
  rows.push_back({"or." + t, two, Or<T>});
  rows.push_back({"xor." + t, two, Xor<T>});
  rows.push_back({"not." + t, one, Not<T>});
  rows.push_back({"cnot." + t, one, Cnot<T>});
  rows.push_back({"shl." + t, StrCat({"=", t, " ", t, " u32"}), ShiftLeft<T>});
  rows.push_back({"shr." + t, StrCat({"=", t, " ", t, " u32"}), ShiftRight<T>});
  rows.push_back({StrCat({"setp(.eq|.ne).", t}), StrCat({"=pred|pred ", t, " ", t}), SetPredicate<T>});
  rows.push_back(
      {StrCat({"setp(.eq|.ne)(.and|.or|.xor).", t}), StrCat({"=pred|pred ", t, " ", t, " pred"}), SetPredicate<T>});
}

}  // namespace

void AddIntegerRows(Rows& rows) {
  AddTypedRows<int16_t>(rows, "s16");
  AddTypedRows<uint16_t>(rows, "u16");
  AddTypedRows<int32_t>(rows, "s32");
  AddTypedRows<uint32_t>(rows, "u32");
  AddTypedRows<int64_t>(rows, "s64");
  AddTypedRows<uint64_t>(rows, "u64");
  AddWideRows<int16_t>(rows, "s16", "s32");
  AddWideRows<uint16_t>(rows, "u16", "u32");
  AddWideRows<int32_t>(rows, "s32", "s64");
  AddWideRows<uint32_t>(rows, "u32", "u64");
  AddBitRows<uint16_t>(rows, "b16");
  AddBitRows<uint32_t>(rows, "b32");
  AddBitRows<uint64_t>(rows, "b64");
  rows.push_back({"add.sat.s32", "=s32 s32 s32", AddSaturated});
  rows.push_back({"sub.sat.s32", "=s32 s32 s32", SubtractSaturated});
  for (const char* t : {"b16", "u16", "s16"}) {
    rows.push_back({StrCat({"mov.", t}), StrCat({"=", t, " ", t}), Move<uint16_t>});
    rows.push_back({StrCat({"selp.", t}), StrCat({"=", t, " ", t, " ", t, " pred"}), Select<uint16_t>});
  }
  for (const char* t : {"b32", "u32", "s32", "f32"}) {
    rows.push_back({StrCat({"mov.", t}), StrCat({"=", t, " ", t}), Move<uint32_t>});
    rows.push_back({StrCat({"selp.", t}), StrCat({"=", t, " ", t, " ", t, " pred"}), Select<uint32_t>});
  }
  for (const char* t : {"b64", "u64", "s64", "f64"}) {
    rows.push_back({StrCat({"mov.", t}), StrCat({"=", t, " ", t}), Move<uint64_t>});
    rows.push_back({StrCat({"selp.", t}), StrCat({"=", t, " ", t, " ", t, " pred"}), Select<uint64_t>});
  }
  rows.push_back({"popc.b32", "=u32 b32", PopulationCount<uint32_t>});
  rows.push_back({"popc.b64", "=u32 b64", PopulationCount<uint64_t>});
  rows.push_back({"clz.b32", "=u32 b32", LeadingZeros<uint32_t>});
  rows.push_back({"clz.b64", "=u32 b64", LeadingZeros<uint64_t>});
  rows.push_back({"brev.b32", "=b32 b32", ReverseBits<uint32_t>});
  rows.push_back({"brev.b64", "=b64 b64", ReverseBits<uint64_t>});
  for (const uint8_t from_above : {uint8_t{0}, uint8_t{1}}) {
    const char* amount = from_above != 0 ? ".shiftamt" : "";
    rows.push_back({StrCat({"bfind", amount, ".u32"}), "=u32 u32", FindBit<uint32_t>, from_above});
    rows.push_back({StrCat({"bfind", amount, ".s32"}), "=u32 s32", FindBit<int32_t>, from_above});
    rows.push_back({StrCat({"bfind", amount, ".u64"}), "=u32 u64", FindBit<uint64_t>, from_above});
    rows.push_back({StrCat({"bfind", amount, ".s64"}), "=u32 s64", FindBit<int64_t>, from_above});
  }
  rows.push_back({"bfe.u32", "=u32 u32 u32 u32", ExtractBits<uint32_t>});
  rows.push_back({"bfe.s32", "=s32 s32 u32 u32", ExtractBits<int32_t>});
  rows.push_back({"bfe.u64", "=u64 u64 u32 u32", ExtractBits<uint64_t>});
  rows.push_back({"bfe.s64", "=s64 s64 u32 u32", ExtractBits<int64_t>});
  rows.push_back({"bfi.b32", "=b32 b32 b32 u32 u32", InsertBits<uint32_t>});
  rows.push_back({"bfi.b64", "=b64 b64 b64 u32 u32", InsertBits<uint64_t>});
  rows.push_back({"prmt.b32", "=b32 b32 b32 b32", Permute});
  rows.push_back({"shf.l.wrap.b32", "=b32 b32 b32 u32", FunnelShift, 0});
  rows.push_back({"shf.r.wrap.b32", "=b32 b32 b32 u32", FunnelShift, 1});
  rows.push_back({"shf.l.clamp.b32", "=b32 b32 b32 u32", FunnelShift, 2});
  rows.push_back({"shf.r.clamp.b32", "=b32 b32 b32 u32", FunnelShift, 3});
  rows.push_back({"lop3.b32", "=b32 b32 b32 b32 u32", Lop3});
  rows.push_back({"dp4a.u32.u32", "=u32 u32 u32 u32", DotProduct4<uint8_t, uint8_t>});
  rows.push_back({"dp4a.s32.s32", "=s32 s32 s32 s32", DotProduct4<int8_t, int8_t>});
  rows.push_back({"dp4a.u32.s32", "=s32 u32 s32 s32", DotProduct4<uint8_t, int8_t>});
  rows.push_back({"dp4a.s32.u32", "=s32 s32 u32 s32", DotProduct4<int8_t, uint8_t>});
  rows.push_back({"and.pred", "=pred pred pred", PredicateLogic, kPredAnd});
  rows.push_back({"or.pred", "=pred pred pred", PredicateLogic, kPredOr});
  rows.push_back({"xor.pred", "=pred pred pred", PredicateLogic, kPredXor});
  rows.push_back({"not.pred", "=pred pred", PredicateLogic, kPredNot});
  rows.push_back({"mov.pred", "=pred pred", PredicateLogic, kPredMove});
}

}  // namespace ingot::ptx
