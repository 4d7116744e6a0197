// Every row of arithmetic of the instruction table beside values that the host computes: each opcode runs in a kernel
// of its own over corner values and random ones, in every combination of the corners.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "runtime/small_float.h"
#include "tests/cuda_standin/float_formats.h"
#include "tests/cuda_standin/instruction_table.h"
#include "tests/cuda_standin/machine.h"
#include "tests/cuda_standin/ptx_bodies.h"

namespace ingot::ptx {
namespace {

// Bits of the operands, widened; the result's bits.
using Expected = std::function<uint64_t(uint64_t a, uint64_t b, uint64_t c)>;

// Runs `opcode` over all triples and returns the results. A source of type kPred is given as 0 or 1.
std::vector<uint64_t> Execute(const std::string& opcode, Type to, const std::vector<Type>& from,
                              const std::string& tail, const std::vector<std::vector<uint64_t>>& inputs) {
  const auto reg = [](Type type) {
    return type == Type::kPred    ? Type::kB32
           : TypeBytes(type) == 1 ? Type::kB16
           : TypeBytes(type) == 2 ? Type::kB16
           : TypeBytes(type) == 4 ? Type::kB32
                                  : Type::kB64;
  };
  Instruction ignored;
  const Row* row = FindRow(opcode, ignored);
  REQUIRE_MESSAGE(row != nullptr, opcode);
  CoveredRows().insert(row);
  const int sm = std::max(80, row->from_sm);
  std::string text = StrCat({".version 8.0\n.target sm_", sm, "\n"});
  text +=
      ".address_size 64\n.visible .entry k(.param .u64 d, .param .u64 x0, .param .u64 x1, "
      ".param .u64 x2)\n{\n"
      ".reg .b64 %a<8>;\n.reg .b32 %i<4>;\n.reg .pred %p<4>;\n.reg .b32 %w<4>;\n"
      "mov.u32 %i0, %ctaid.x;\nmov.u32 %i1, %tid.x;\nmad.lo.s32 %i2, %i0, 128, %i1;\nmul.wide.s32 %a0, %i2, 8;\n";
  std::string instruction = opcode;
  const auto sized = [&](Type type, const std::string& name) {
    text += StrCat({".reg .", TypeName(reg(type)), " ", name, ";\n"});
  };
  sized(to, "%out");
  instruction += to == Type::kPred ? " %p3" : " %out";
  for (size_t k = 0; k < from.size(); ++k) {
    const std::string name = StrCat({"%in", k}), address = StrCat({"%a", k + 1});
    sized(from[k], name);
    text += StrCat({"ld.param.u64 ", address, ", [x", k, "];\nadd.s64 ", address, ", ", address, ", %a0;\n"});
    text += StrCat({"ld.global.b", 8 * std::max(1, TypeBytes(reg(from[k]))), " ", name, ", [", address, "];\n"});
    if (from[k] == Type::kPred) text += StrCat({"setp.ne.u32 %p", k, ", ", name, ", 0;\n"});
    instruction += StrCat({", ", from[k] == Type::kPred ? StrCat({"%p", k}) : name});
  }
  text += instruction + tail + ";\n";
  if (to == Type::kPred) text += "selp.u32 %out, 1, 0, %p3;\n";
  const int stored = 8 * TypeBytes(reg(to));
  text += StrCat({"ld.param.u64 %a5, [d];\nadd.s64 %a5, %a5, %a0;\nst.global.b", stored, " [%a5], %out;\nret;\n}\n"});

  Machine machine({.sm = sm, .orders = {WarpOrder::kLowestFirst}});
  const Result<ModuleId> module = machine.LoadModule(text);
  REQUIRE_MESSAGE(module.ok(), module.status().message() << "\n" << text);
  const size_t count = (inputs[0].size() + 127) / 128 * 128;
  std::vector<uint64_t> addresses;
  for (const std::vector<uint64_t>& values : inputs) {
    std::vector<uint64_t> padded = values;
    padded.resize(count, values[0]);
    addresses.push_back(machine.Allocate(static_cast<int64_t>(count) * 8).value());
    REQUIRE(machine.Write(addresses.back(), padded.data(), static_cast<int64_t>(count) * 8).ok());
  }
  std::vector<uint64_t> results(count, 0);
  const uint64_t out = machine.Allocate(static_cast<int64_t>(count) * 8).value();
  REQUIRE(machine.Write(out, results.data(), static_cast<int64_t>(count) * 8).ok());
  const Result<LaunchCounts> counts =
      machine.Launch(*module, "k", {{static_cast<int64_t>(count / 128), 1, 1}, {128, 1, 1}},
                     Arguments().Add(out).Add(addresses[0]).Add(addresses[1]).Add(addresses[2]));
  REQUIRE_MESSAGE(counts.ok(), counts.status().message());
  REQUIRE(machine.Read(results.data(), out, static_cast<int64_t>(count) * 8).ok());
  results.resize(inputs[0].size());
  return results;
}

void Check(const std::string& opcode, Type to, const std::vector<Type>& from, const Expected& expected,
           const std::string& tail = "") {
  std::vector<std::vector<uint64_t>> inputs(3);
  const auto corners = [&](size_t k) { return k < from.size() ? Corners(from[k]) : std::vector<uint64_t>{0}; };
  for (const uint64_t a : corners(0)) {
    for (const uint64_t b : corners(1)) {
      for (const uint64_t c : corners(2)) inputs[0].push_back(a), inputs[1].push_back(b), inputs[2].push_back(c);
    }
  }
  std::mt19937_64 random(7);
  for (int n = 0; n < 256; ++n) {
    for (size_t k = 0; k < 3; ++k) inputs[k].push_back(k < from.size() ? random() & MaskOf(from[k]) : 0);
  }
  const std::vector<uint64_t> results = Execute(opcode, to, from, tail, inputs);
  for (size_t n = 0; n < results.size(); ++n) {
    const uint64_t want = expected(inputs[0][n], inputs[1][n], inputs[2][n]);
    if ((results[n] ^ want) == 0) continue;
    FAIL(opcode << ": inputs 0x" << std::hex << inputs[0][n] << " 0x" << inputs[1][n] << " 0x" << inputs[2][n] << ": 0x"
                << results[n] << ", expected 0x" << want);
  }
}

// ---- integers
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

// ---- floats
float F(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
double D(uint64_t bits) { return std::bit_cast<double>(bits); }
uint64_t B(float value) { return value != value ? 0x7fffffff : std::bit_cast<uint32_t>(value); }
uint64_t B(double value) { return std::bit_cast<uint64_t>(value); }
float Ftz(float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }

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

// Half formats beside the runtime's conversions, which share no code with ours.
DataType SmallType(bool bf16) { return bf16 ? DataType::Bfloat16() : DataType::Float(16); }
double WidenBits(bool bf16, uint64_t bits) { return DecodeFloat(SmallType(bf16), bits & 0xffff); }
uint64_t NarrowBits(bool bf16, double value) { return value != value ? 0x7fff : EncodeFloat(SmallType(bf16), value); }

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

// ---- conversions
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
