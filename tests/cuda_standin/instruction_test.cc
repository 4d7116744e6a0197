// Every row of arithmetic of the instruction table beside values that the host computes: each opcode runs in a kernel
// of its own over corner values and random ones, in every combination of the corners. Floats and conversions have files
// of their own.
#include <doctest/doctest.h>

#include "tests/cuda_standin/instruction_check.h"
#include "tests/cuda_standin/instruction_table.h"

namespace ingot::ptx {
namespace {

template <typename T>
uint64_t Bits(T value) {
  return static_cast<std::make_unsigned_t<T>>(value);
}

template <typename T>
void CheckIntegers(const std::string& t) {
  using Big = __int128;
  const Type type = ParseType(t);
  const int bits = 8 * sizeof(T);
  const auto two = [&](const std::string& name, Big (*f)(Big, Big)) {
    Check(name + "." + t, type, {type, type}, [=](uint64_t a, uint64_t b, uint64_t) {
      return Bits(static_cast<T>(f(static_cast<T>(a), static_cast<T>(b))));
    });
  };
  two("add", [](Big a, Big b) { return a + b; });
  two("sub", [](Big a, Big b) { return a - b; });
  two("mul.lo", [](Big a, Big b) {
    return static_cast<Big>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
  });
  two("min", [](Big a, Big b) { return a < b ? a : b; });
  two("max", [](Big a, Big b) { return a > b ? a : b; });
  const auto high = [=](uint64_t a, uint64_t b) {  // by parts, of the magnitudes
    const Big x = static_cast<T>(a), y = static_cast<T>(b);
    if (std::is_signed_v<T>) return static_cast<uint64_t>((x * y) >> bits) & MaskOf(type);
    return static_cast<uint64_t>((static_cast<unsigned __int128>(static_cast<T>(a)) * static_cast<T>(b)) >> bits) &
           MaskOf(type);
  };
  Check("mul.hi." + t, type, {type, type}, [=](uint64_t a, uint64_t b, uint64_t) { return high(a, b); });
  Check("mad.hi." + t, type, {type, type, type},
        [=](uint64_t a, uint64_t b, uint64_t c) { return (high(a, b) + c) & MaskOf(type); });
  Check("mad.lo." + t, type, {type, type, type},
        [=](uint64_t a, uint64_t b, uint64_t c) { return (a * b + c) & MaskOf(type); });
  Check("sad." + t, type, {type, type, type}, [=](uint64_t a, uint64_t b, uint64_t c) {
    const Big x = static_cast<T>(a), y = static_cast<T>(b);
    return (static_cast<uint64_t>(x < y ? y - x : x - y) + c) & MaskOf(type);
  });
  Check("shr." + t, type, {type, Type::kU32}, [=](uint64_t a, uint64_t n, uint64_t) {
    Big x = static_cast<T>(a);
    for (uint64_t k = 0; k < std::min<uint64_t>(n, 64); ++k) x >>= 1;
    return Bits(static_cast<T>(x));
  });
  // A divisor of zero has no result: an odd one takes its place.
  for (const std::string name : {"div.", "rem."}) {
    std::vector<std::vector<uint64_t>> in(3);
    for (const uint64_t a : Corners(type)) {
      for (const uint64_t b : Corners(type)) in[0].push_back(a), in[1].push_back(b == 0 ? 3 : b), in[2].push_back(0);
    }
    const std::vector<uint64_t> results = Execute(name + t, type, {type, type}, "", in);
    for (size_t n = 0; n < results.size(); ++n) {
      const Big a = static_cast<T>(in[0][n]), b = static_cast<T>(in[1][n]);
      REQUIRE(results[n] == Bits(static_cast<T>(name == "div." ? a / b : a % b)));
    }
  }
  const auto compare = [&](const std::string& name, bool (*f)(Big, Big)) {
    Check("setp." + name + "." + t, Type::kPred, {type, type},
          [=](uint64_t a, uint64_t b, uint64_t) -> uint64_t { return f(static_cast<T>(a), static_cast<T>(b)); });
  };
  compare("eq", [](Big a, Big b) { return a == b; });
  compare("ne", [](Big a, Big b) { return a != b; });
  compare("lt", [](Big a, Big b) { return a < b; });
  compare("le", [](Big a, Big b) { return a <= b; });
  compare("gt", [](Big a, Big b) { return a > b; });
  compare("ge", [](Big a, Big b) { return a >= b; });
  if (!std::is_signed_v<T>) {
    compare("lo", [](Big a, Big b) { return a < b; });
    compare("ls", [](Big a, Big b) { return a <= b; });
    compare("hi", [](Big a, Big b) { return a > b; });
    compare("hs", [](Big a, Big b) { return a >= b; });
  }
  Check("setp.lt.and." + t, Type::kPred, {type, type, Type::kPred},
        [](uint64_t a, uint64_t b, uint64_t c) -> uint64_t { return static_cast<T>(a) < static_cast<T>(b) && c != 0; });
  Check("setp.lt.or." + t, Type::kPred, {type, type, Type::kPred},
        [](uint64_t a, uint64_t b, uint64_t c) -> uint64_t { return static_cast<T>(a) < static_cast<T>(b) || c != 0; });
  Check("setp.lt.xor." + t, Type::kPred, {type, type, Type::kPred}, [](uint64_t a, uint64_t b, uint64_t c) -> uint64_t {
    return (static_cast<T>(a) < static_cast<T>(b)) != (c != 0);
  });
  if (!std::is_signed_v<T>) return;
  Check("neg." + t, type, {type}, [=](uint64_t a, uint64_t, uint64_t) { return (0 - a) & MaskOf(type); });
  Check("abs." + t, type, {type},
        [=](uint64_t a, uint64_t, uint64_t) { return (static_cast<T>(a) < 0 ? 0 - a : a) & MaskOf(type); });
}

TEST_CASE("ptx instructions: integers") {
  CheckIntegers<int16_t>("s16");
  CheckIntegers<uint16_t>("u16");
  CheckIntegers<int32_t>("s32");
  CheckIntegers<uint32_t>("u32");
  CheckIntegers<int64_t>("s64");
  CheckIntegers<uint64_t>("u64");
  Check("mul.wide.s16", Type::kS32, {Type::kS16, Type::kS16},
        [](uint64_t a, uint64_t b, uint64_t) { return Bits(static_cast<int16_t>(a) * static_cast<int16_t>(b)); });
  Check("mul.wide.u16", Type::kU32, {Type::kU16, Type::kU16}, [](uint64_t a, uint64_t b, uint64_t) { return a * b; });
  Check("mul.wide.s32", Type::kS64, {Type::kS32, Type::kS32}, [](uint64_t a, uint64_t b, uint64_t) {
    return Bits(int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b));
  });
  Check("mul.wide.u32", Type::kU64, {Type::kU32, Type::kU32}, [](uint64_t a, uint64_t b, uint64_t) { return a * b; });
  Check("mad.wide.s32", Type::kS64, {Type::kS32, Type::kS32, Type::kS64}, [](uint64_t a, uint64_t b, uint64_t c) {
    return Bits(int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b)) + c;
  });
  Check("mad.wide.u32", Type::kU64, {Type::kU32, Type::kU32, Type::kU64},
        [](uint64_t a, uint64_t b, uint64_t c) { return a * b + c; });
  Check("mad.wide.s16", Type::kS32, {Type::kS16, Type::kS16, Type::kS32}, [](uint64_t a, uint64_t b, uint64_t c) {
    return (Bits(static_cast<int16_t>(a) * static_cast<int16_t>(b)) + c) & 0xffffffff;
  });
  Check("mad.wide.u16", Type::kU32, {Type::kU16, Type::kU16, Type::kU32},
        [](uint64_t a, uint64_t b, uint64_t c) { return (a * b + c) & 0xffffffff; });
  const auto saturated = [](int64_t x) {
    return Bits(static_cast<int32_t>(std::max<int64_t>(INT32_MIN, std::min<int64_t>(INT32_MAX, x))));
  };
  Check("add.sat.s32", Type::kS32, {Type::kS32, Type::kS32}, [=](uint64_t a, uint64_t b, uint64_t) {
    return saturated(int64_t{static_cast<int32_t>(a)} + static_cast<int32_t>(b));
  });
  Check("sub.sat.s32", Type::kS32, {Type::kS32, Type::kS32}, [=](uint64_t a, uint64_t b, uint64_t) {
    return saturated(int64_t{static_cast<int32_t>(a)} - static_cast<int32_t>(b));
  });
}

TEST_CASE("ptx instructions: bits") {
  for (const char* t : {"b16", "b32", "b64"}) {
    const Type type = ParseType(t);
    const uint64_t mask = MaskOf(type);
    const std::string s = t;
    Check("and." + s, type, {type, type}, [](uint64_t a, uint64_t b, uint64_t) { return a & b; });
    Check("or." + s, type, {type, type}, [](uint64_t a, uint64_t b, uint64_t) { return a | b; });
    Check("xor." + s, type, {type, type}, [](uint64_t a, uint64_t b, uint64_t) { return a ^ b; });
    Check("not." + s, type, {type}, [=](uint64_t a, uint64_t, uint64_t) { return ~a & mask; });
    Check("cnot." + s, type, {type}, [](uint64_t a, uint64_t, uint64_t) -> uint64_t { return a == 0; });
    Check("shl." + s, type, {type, Type::kU32},
          [=](uint64_t a, uint64_t n, uint64_t) { return n > 63 ? 0 : (a << n) & mask; });
    Check("shr." + s, type, {type, Type::kU32}, [](uint64_t a, uint64_t n, uint64_t) { return n > 63 ? 0 : a >> n; });
    Check("setp.eq." + s, Type::kPred, {type, type},
          [](uint64_t a, uint64_t b, uint64_t) -> uint64_t { return a == b; });
    Check("setp.ne.and." + s, Type::kPred, {type, type, Type::kPred},
          [](uint64_t a, uint64_t b, uint64_t c) -> uint64_t { return a != b && c != 0; });
  }
  for (const char* t : {"b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"}) {
    const Type type = ParseType(t);
    Check(std::string("mov.") + t, type, {type}, [](uint64_t a, uint64_t, uint64_t) { return a; });
    Check(std::string("selp.") + t, type, {type, type, Type::kPred},
          [](uint64_t a, uint64_t b, uint64_t c) { return c != 0 ? a : b; });
  }
  Check("popc.b32", Type::kU32, {Type::kB32},
        [](uint64_t a, uint64_t, uint64_t) -> uint64_t { return static_cast<uint64_t>(__builtin_popcountll(a)); });
  Check("popc.b64", Type::kU32, {Type::kB64},
        [](uint64_t a, uint64_t, uint64_t) -> uint64_t { return static_cast<uint64_t>(__builtin_popcountll(a)); });
  const auto leading = [](uint64_t a, int width) {
    uint64_t n = 0;
    for (int k = width - 1; k >= 0 && (a >> k & 1) == 0; --k) ++n;
    return n;
  };
  Check("clz.b32", Type::kU32, {Type::kB32}, [=](uint64_t a, uint64_t, uint64_t) { return leading(a, 32); });
  Check("clz.b64", Type::kU32, {Type::kB64}, [=](uint64_t a, uint64_t, uint64_t) { return leading(a, 64); });
  const auto reversed = [](uint64_t a, int width) {
    uint64_t r = 0;
    for (int k = 0; k < width; ++k) r |= (a >> k & 1) << (width - 1 - k);
    return r;
  };
  Check("brev.b32", Type::kB32, {Type::kB32}, [=](uint64_t a, uint64_t, uint64_t) { return reversed(a, 32); });
  Check("brev.b64", Type::kB64, {Type::kB64}, [=](uint64_t a, uint64_t, uint64_t) { return reversed(a, 64); });
  // bfind: of a negative number the highest zero.
  for (const auto& [t, width] :
       {std::pair("u32", 32), std::pair("s32", 32), std::pair("u64", 64), std::pair("s64", 64)}) {
    const bool is_signed = t[0] == 's';
    const auto find = [=](uint64_t a) {
      if (is_signed && (a >> (width - 1) & 1) != 0) a = ~a & (~uint64_t{0} >> (64 - width));
      return a == 0 ? uint64_t{0xffffffff} : static_cast<uint64_t>(63 - __builtin_clzll(a));
    };
    Check(std::string("bfind.") + t, Type::kU32, {ParseType(t)},
          [=](uint64_t a, uint64_t, uint64_t) { return find(a); });
    Check(std::string("bfind.shiftamt.") + t, Type::kU32, {ParseType(t)}, [=](uint64_t a, uint64_t, uint64_t) {
      const uint64_t at = find(a);
      return at == 0xffffffff ? at : static_cast<uint64_t>(width) - 1 - at;
    });
    Check(std::string("bfe.") + t, ParseType(t), {ParseType(t), Type::kU32, Type::kU32},
          [=](uint64_t a, uint64_t b, uint64_t c) {
            // The manual's pseudo-code, but of 64 bits a GPU takes position and length as they are.
            const uint64_t read = width == 64 ? 0xffffffff : 255;
            const auto position = static_cast<int64_t>(b & read), length = static_cast<int64_t>(c & read);
            const uint64_t sign =
                !is_signed || length == 0 ? 0 : a >> std::min<int64_t>(position + length - 1, width - 1) & 1;
            uint64_t d = 0;
            for (int k = 0; k < width; ++k)
              d |= (k < length && position + k < width ? a >> (position + k) & 1 : sign) << k;
            return d;
          });
  }
  Check("prmt.b32", Type::kB32, {Type::kB32, Type::kB32, Type::kB32}, [](uint64_t a, uint64_t b, uint64_t c) {
    uint64_t d = 0;
    for (int k = 0; k < 4; ++k) {
      const auto control = static_cast<int>(c >> (4 * k) & 15);
      uint64_t byte = ((control & 4) != 0 ? b : a) >> (8 * (control & 3)) & 255;
      if (control >= 8) byte = byte >= 128 ? 255 : 0;
      d |= byte << (8 * k);
    }
    return d;
  });
  Check("shf.l.wrap.b32", Type::kB32, {Type::kB32, Type::kB32, Type::kU32}, [](uint64_t a, uint64_t b, uint64_t c) {
    return (c & 31) == 0 ? b : (b << (c & 31) | a >> (32 - (c & 31))) & 0xffffffff;
  });
  Check("shf.r.wrap.b32", Type::kB32, {Type::kB32, Type::kB32, Type::kU32}, [](uint64_t a, uint64_t b, uint64_t c) {
    return (c & 31) == 0 ? a : (b << (32 - (c & 31)) | a >> (c & 31)) & 0xffffffff;
  });
  Check("shf.l.clamp.b32", Type::kB32, {Type::kB32, Type::kB32, Type::kU32}, [](uint64_t a, uint64_t b, uint64_t c) {
    return c >= 32 ? a : c == 0 ? b : (b << c | a >> (32 - c)) & 0xffffffff;
  });
  Check("shf.r.clamp.b32", Type::kB32, {Type::kB32, Type::kB32, Type::kU32}, [](uint64_t a, uint64_t b, uint64_t c) {
    return c >= 32 ? b : c == 0 ? a : (b << (32 - c) | a >> c) & 0xffffffff;
  });
  Check(
      "lop3.b32", Type::kB32, {Type::kB32, Type::kB32, Type::kB32},
      [](uint64_t a, uint64_t b, uint64_t c) { return (a & b) ^ c; }, ", 0x6a");
  Check(
      "bfi.b32", Type::kB32, {Type::kB32, Type::kB32},
      [](uint64_t a, uint64_t b, uint64_t) { return (b & ~uint64_t{0x1f00}) | (a & 31) << 8; }, ", 8, 5");
  Check(
      "bfi.b64", Type::kB64, {Type::kB64, Type::kB64},
      [](uint64_t a, uint64_t b, uint64_t) { return (b & 0xffffffff) | a << 32; }, ", 32, 40");
  Check(
      "bfi.b64", Type::kB64, {Type::kB64, Type::kB64, Type::kU32},
      [](uint64_t a, uint64_t b, uint64_t at) { return at > 63 ? b : (b & ~(uint64_t{255} << at)) | (a & 255) << at; },
      ", 8");
  const auto dot = [](auto a, auto b) {
    return [](uint64_t x, uint64_t y, uint64_t c) {
      for (int k = 0; k < 32; k += 8)
        c += static_cast<uint64_t>(int64_t{static_cast<decltype(a)>(x >> k)} * static_cast<decltype(b)>(y >> k));
      return c & 0xffffffff;
    };
  };
  Check("dp4a.u32.u32", Type::kU32, {Type::kU32, Type::kU32, Type::kU32}, dot(uint8_t{}, uint8_t{}));
  Check("dp4a.s32.s32", Type::kS32, {Type::kS32, Type::kS32, Type::kS32}, dot(int8_t{}, int8_t{}));
  Check("dp4a.u32.s32", Type::kS32, {Type::kU32, Type::kS32, Type::kS32}, dot(uint8_t{}, int8_t{}));
  Check("dp4a.s32.u32", Type::kS32, {Type::kS32, Type::kU32, Type::kS32}, dot(int8_t{}, uint8_t{}));
  Check("and.pred", Type::kPred, {Type::kPred, Type::kPred}, [](uint64_t a, uint64_t b, uint64_t) { return a & b; });
  Check("or.pred", Type::kPred, {Type::kPred, Type::kPred}, [](uint64_t a, uint64_t b, uint64_t) { return a | b; });
  Check("xor.pred", Type::kPred, {Type::kPred, Type::kPred}, [](uint64_t a, uint64_t b, uint64_t) { return a ^ b; });
  Check("not.pred", Type::kPred, {Type::kPred}, [](uint64_t a, uint64_t, uint64_t) { return a ^ 1; });
  Check("mov.pred", Type::kPred, {Type::kPred}, [](uint64_t a, uint64_t, uint64_t) { return a; });
}

// The families above leave no row out. Rows of memory, warps and matrices are the matter of other tests.
TEST_CASE("ptx instructions: every row of arithmetic was run") {
  MESSAGE(CoveredRows().size() << " of " << InstructionTable().size() << " rows ran");
  if (CoveredRows().size() < 200) return;  // a part of the tests was chosen
  Rows others;
  AddMemoryRows(others), AddWarpRows(others), AddMatrixRows(others);
  const size_t arithmetic = InstructionTable().size() - others.size();
  for (size_t k = 0; k < arithmetic; ++k) {
    const Row& row = InstructionTable()[k];
    CHECK_MESSAGE(CoveredRows().count(&row) != 0, row.pattern);
  }
}

}  // namespace
}  // namespace ingot::ptx
