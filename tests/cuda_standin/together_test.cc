// What is no arithmetic of one lane: memory in all widths and spaces, atomics, shuffles, votes, barriers, control flow,
// and the fragments of matrices, beside what the manual says, written down a second time here.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "runtime/small_float.h"
#include "tests/cuda_standin/ptx_bodies.h"

namespace ingot::ptx {
namespace {

using Words = std::vector<uint32_t>;

Words Run(const std::string& body, const Words& input, const BodyOptions& options = {}) {
  const Result<Words> result = RunBody(body, input, options);
  REQUIRE_MESSAGE(result.ok(), result.status().message() << "\n" << body);
  return *result;
}
Words Random(int seed, size_t words = 64 * kWordsPerThread) {
  std::mt19937 random(static_cast<unsigned>(seed));
  Words values(words);
  for (uint32_t& value : values) value = static_cast<uint32_t>(random());
  return values;
}
uint32_t At(const Words& words, int thread, int word) {
  return words[static_cast<size_t>(thread * kWordsPerThread + word)];
}

TEST_CASE("ptx memory: every type and width goes through every space") {
  const Words input = Random(1);
  struct Type {
    const char *name, *reg;
    int bytes;
    bool is_signed;
  };
  const Type types[] = {{"b8", "%h", 1, false},  {"u8", "%h", 1, false},  {"s8", "%r", 1, true},
                        {"b16", "%h", 2, false}, {"u16", "%r", 2, false}, {"s16", "%r", 2, true},
                        {"b32", "%r", 4, false}, {"u32", "%r", 4, false}, {"s32", "%r", 4, true},
                        {"f32", "%f", 4, false}, {"b64", "%d", 8, false}, {"u64", "%d", 8, false},
                        {"s64", "%d", 8, false}, {"f64", "%d", 8, false}};
  for (const Type& type : types) {
    for (const int count : {1, 2, 4}) {
      if (type.bytes * count > 16) continue;
      for (const char* space : {"global", "shared", "local"}) {
        const std::string vector = count == 1 ? "" : count == 2 ? ".v2" : ".v4";
        std::string registers;
        for (int k = 0; k < count; ++k) registers += StrCat({k > 0 ? ", " : "", type.reg, k + 1});
        if (count > 1) registers = "{" + registers + "}";
        const std::string t = StrCat({vector, ".", type.name});
        std::string body = StrCat({"ld.global", t, " ", registers, ", [%in];\n"});
        const std::string at = std::string(space) == "global"  ? "[%out]"
                               : std::string(space) == "local" ? "[depot+16]"
                                                               : "[%r30]";
        body += "shl.b32 %r30, %t, 4;\n";
        body += StrCat({"st.", space, t, " ", at, ", ", registers, ";\nld.", space, t, " ", registers, ", ", at,
                        ";\nst.global", t, " [%out], ", registers, ";\n"});
        const Words result = Run(body, input);
        for (int thread = 0; thread < 32; ++thread) {
          const auto* from = reinterpret_cast<const uint8_t*>(&input[static_cast<size_t>(thread * kWordsPerThread)]);
          const auto* got = reinterpret_cast<const uint8_t*>(&result[static_cast<size_t>(thread * kWordsPerThread)]);
          REQUIRE(std::equal(from, from + type.bytes * count, got));
        }
      }
    }
  }
  // Into wider registers: with the sign, or with zeros.
  const Words wide = Run(
      "ld.global.s8 %r1, [%in];\nst.global.u32 [%out], %r1;\nld.global.u8 %r1, [%in];\nst.global.u32 [%out+4], %r1;\n"
      "ld.global.nc.s16 %r1, [%in];\nst.global.u32 [%out+8], %r1;\nldu.global.u16 %r1, [%in];\nst.global.u32 "
      "[%out+12], %r1;\n"
      "ld.const.u32 %r1, [table+8];\nst.volatile.global.u32 [%out+16], %r1;",
      input);
  for (int thread = 0; thread < 32; ++thread) {
    const uint32_t word = At(input, thread, 0);
    REQUIRE(At(wide, thread, 0) == static_cast<uint32_t>(static_cast<int8_t>(word)));
    REQUIRE(At(wide, thread, 1) == (word & 0xff));
    REQUIRE(At(wide, thread, 2) == static_cast<uint32_t>(static_cast<int16_t>(word)));
    REQUIRE(At(wide, thread, 3) == (word & 0xffff));
    REQUIRE(At(wide, thread, 4) == 3);
  }
  // Types that only ld.global.nc and ldu are left to show.
  for (const Type& type : types) {
    const std::string reg = StrCat({type.reg, 1});
    Run(StrCat({"ld.global.nc.", type.name, " ", reg, ", [%in];\nst.global.", type.name, " [%out], ", reg,
                ";\nldu.global.", type.name, " ", reg, ", [%in];\n"}),
        input);
  }
  // Generic addresses find their space.
  const Words generic =
      Run("mov.u64 %d1, smem;\ncvta.shared.u64 %d1, %d1;\nmul.wide.u32 %d2, %t, 4;\nadd.s64 %d1, %d1, %d2;\nst.u32 "
          "[%d1], %t;\n"
          "mov.u64 %d3, depot;\ncvta.local.u64 %d3, %d3;\nld.u32 %r1, [%d1];\nst.u32 [%d3+4], %r1;\nld.local.u32 %r2, "
          "[depot+4];\n"
          "st.u32 [%out], %r2;\nprefetch.global.L2 [%in];\nmembar.gl;\nfence.acq_rel.gpu;",
          input);
  for (int thread = 0; thread < 32; ++thread) REQUIRE(At(generic, thread, 0) == static_cast<uint32_t>(thread));
}

TEST_CASE("ptx memory: atomics") {
  struct Atomic {
    const char* name;
    int words;
    std::function<uint64_t(uint64_t old, uint64_t b, uint64_t c)> now;
  };
  const auto f = [](uint64_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x)); };
  const auto halves = [](bool bf16, bool pair) {
    return [=](uint64_t a, uint64_t b, uint64_t) {
      const DataType type = bf16 ? DataType::Bfloat16() : DataType::Float(16);
      uint64_t sum = 0;
      for (int k = 0; k < (pair ? 32 : 16); k += 16) {
        const double exact = DecodeFloat(type, a >> k & 0xffff) + DecodeFloat(type, b >> k & 0xffff);
        sum |= (exact != exact ? 0x7fff : EncodeFloat(type, exact)) << k;
      }
      return pair ? sum : sum | (a & 0xffff0000);
    };
  };
  const auto s = [](uint64_t x) { return static_cast<int32_t>(x); };
  const auto l = [](uint64_t x) { return static_cast<int64_t>(x); };
  const Atomic atomics[] = {
      {"add.u32", 1, [](uint64_t a, uint64_t b, uint64_t) { return (a + b) & 0xffffffff; }},
      {"add.s32", 1, [](uint64_t a, uint64_t b, uint64_t) { return (a + b) & 0xffffffff; }},
      {"add.u64", 2, [](uint64_t a, uint64_t b, uint64_t) { return a + b; }},
      {"add.f32", 1,
       [=](uint64_t a, uint64_t b, uint64_t) -> uint64_t { return std::bit_cast<uint32_t>(f(a) + f(b)); }},
      {"add.f64", 2,
       [](uint64_t a, uint64_t b, uint64_t) {
         return std::bit_cast<uint64_t>(std::bit_cast<double>(a) + std::bit_cast<double>(b));
       }},
      {"add.noftz.f16x2", 1, halves(false, true)},
      {"add.noftz.bf16x2", 1, halves(true, true)},
      {"min.u32", 1, [](uint64_t a, uint64_t b, uint64_t) { return std::min(a, b); }},
      {"max.u32", 1, [](uint64_t a, uint64_t b, uint64_t) { return std::max(a, b); }},
      {"min.s32", 1, [=](uint64_t a, uint64_t b, uint64_t) { return s(a) < s(b) ? a : b; }},
      {"max.s32", 1, [=](uint64_t a, uint64_t b, uint64_t) { return s(a) < s(b) ? b : a; }},
      {"min.u64", 2, [](uint64_t a, uint64_t b, uint64_t) { return std::min(a, b); }},
      {"max.u64", 2, [](uint64_t a, uint64_t b, uint64_t) { return std::max(a, b); }},
      {"min.s64", 2, [=](uint64_t a, uint64_t b, uint64_t) { return l(a) < l(b) ? a : b; }},
      {"max.s64", 2, [=](uint64_t a, uint64_t b, uint64_t) { return l(a) < l(b) ? b : a; }},
      {"and.b32", 1, [](uint64_t a, uint64_t b, uint64_t) { return a & b; }},
      {"and.b64", 2, [](uint64_t a, uint64_t b, uint64_t) { return a & b; }},
      {"or.b32", 1, [](uint64_t a, uint64_t b, uint64_t) { return a | b; }},
      {"or.b64", 2, [](uint64_t a, uint64_t b, uint64_t) { return a | b; }},
      {"xor.b32", 1, [](uint64_t a, uint64_t b, uint64_t) { return a ^ b; }},
      {"xor.b64", 2, [](uint64_t a, uint64_t b, uint64_t) { return a ^ b; }},
      {"exch.b32", 1, [](uint64_t, uint64_t b, uint64_t) { return b; }},
      {"exch.b64", 2, [](uint64_t, uint64_t b, uint64_t) { return b; }},
      {"cas.b32", 1, [](uint64_t a, uint64_t b, uint64_t c) { return a == b ? c : a; }},
      {"cas.b64", 2, [](uint64_t a, uint64_t b, uint64_t c) { return a == b ? c : a; }},
      {"inc.u32", 1, [](uint64_t a, uint64_t b, uint64_t) { return a >= b ? 0 : a + 1; }},
      {"dec.u32", 1, [](uint64_t a, uint64_t b, uint64_t) { return a == 0 || a > b ? b : a - 1; }},
  };
  Words input = Random(2);
  input[kWordsPerThread + 2] = 0x00123456, input[2 * kWordsPerThread] = 0x80000001;  // denormals
  for (int thread = 0; thread < 32; thread += 4) {                                   // some comparisons succeed
    for (int k = 0; k < 2; ++k) input[static_cast<size_t>(thread * kWordsPerThread + 2 + k)] = At(input, thread, k);
  }
  for (const Atomic& atomic : atomics) {
    CAPTURE(std::string(atomic.name));
    const bool wide = atomic.words == 2, swap = std::string(atomic.name).starts_with("cas");
    const bool has_red = !swap && !std::string(atomic.name).starts_with("exch");
    const std::string r = wide ? "%d" : "%r", type = wide ? "u64" : "u32";
    const bool as_float = std::string(atomic.name).find(".f32") != std::string::npos;
    const std::string reg = as_float ? "%f" : r;
    const std::string ld = as_float ? "f32" : type;
    for (const char* space : {".global", ".shared"}) {
      const std::string at = std::string(space) == ".global" ? "[%out+8]" : "[%r30]";
      std::string body = StrCat({"shl.b32 %r30, %t, 3;\nld.global.", ld, " ", reg, "1, [%in];\nld.global.", ld, " ",
                                 reg, "2, [%in+8];\nld.global.", ld, " ", reg, "3, [%in+16];\n"});
      body += StrCat({"st", space,       ".", ld,         " ",
                      at,   ", ",        reg, "1;\natom", space,
                      ".",  atomic.name, " ", reg,        "4, ",
                      at,   ", ",        reg, "2",        swap ? StrCat({", ", reg, "3"}) : std::string(),
                      ";\n"});
      body += StrCat({"st.global.", ld, " [%out], ", reg, "4;\nld", space, ".", ld, " ", reg, "5, ", at,
                      ";\nst.global.", ld, " [%out+8], ", reg, "5;\n"});
      if (has_red) {
        body += StrCat({"st",
                        space,
                        ".",
                        ld,
                        " ",
                        at,
                        ", ",
                        reg,
                        "1;\nred",
                        space,
                        ".",
                        atomic.name,
                        " ",
                        at,
                        ", ",
                        reg,
                        "2;\nld",
                        space,
                        ".",
                        ld,
                        " ",
                        reg,
                        "6, ",
                        at,
                        ";\nst.global.",
                        ld,
                        " [%out+16], ",
                        reg,
                        "6;\n"});
        body += StrCat({"st.global.", ld, " [%out+8], ", reg, "5;\n"});
      }
      const Words result = Run(body, input);
      for (int thread = 0; thread < 32; ++thread) {
        const auto value = [&](const Words& words, int word) {
          return wide ? static_cast<uint64_t>(At(words, thread, word + 1)) << 32 | At(words, thread, word)
                      : At(words, thread, word);
        };
        const bool flush = as_float && std::string(space) == ".global";
        const auto flushed = [=](uint64_t x) { return flush && (x & 0x7f800000) == 0 ? x & 0x80000000 : x; };
        const uint64_t expected =
            flushed(atomic.now(flushed(value(input, 0)), flushed(value(input, 2)), value(input, 4)));
        const auto same = [&](uint64_t got) {
          if (got == expected) return true;
          const bool single = as_float && f(got) != f(got) && f(expected) != f(expected);
          return single ||
                 (std::string(atomic.name) == "add.f64" && std::bit_cast<double>(got) != std::bit_cast<double>(got));
        };
        REQUIRE(value(result, 0) == value(input, 0));
        REQUIRE(same(value(result, 2)));
        if (has_red) REQUIRE(same(value(result, 4)));
      }
    }
  }
  // Sixteen bits.
  const Words small =
      Run("ld.global.u16 %h1, [%in];\nst.global.u16 [%out], %h1;\nld.global.u16 %h2, "
          "[%in+4];\natom.global.add.noftz.f16 %h3, [%out], %h2;\n"
          "st.global.u16 [%out+4], %h1;\nred.global.add.noftz.f16 [%out+4], %h2;\n"
          "st.global.u16 [%out+8], %h1;\natom.global.add.noftz.bf16 %h3, [%out+8], %h2;\nst.global.u16 [%out+12], "
          "%h1;\nred.global.add.noftz.bf16 [%out+12], %h2;\n"
          "st.global.u16 [%out+16], %h1;\natom.global.cas.b16 %h4, [%out+16], %h1, %h2;\n",
          input);
  for (int thread = 0; thread < 32; ++thread) {
    const uint64_t a = At(input, thread, 0) & 0xffff, b = At(input, thread, 1) & 0xffff;
    REQUIRE(At(small, thread, 0) == (halves(false, false)(a, b, 0) & 0xffff));
    REQUIRE(At(small, thread, 1) == (halves(false, false)(a, b, 0) & 0xffff));
    REQUIRE(At(small, thread, 2) == (halves(true, false)(a, b, 0) & 0xffff));
    REQUIRE(At(small, thread, 3) == (halves(true, false)(a, b, 0) & 0xffff));
    REQUIRE(At(small, thread, 4) == b);
  }
}

TEST_CASE("ptx memory: cp.async of every size, with zeros behind what is read") {
  const Words input = Random(3);
  for (const int size : {4, 8, 16}) {
    for (int read = 0; read <= size; ++read) {
      const std::string kind = size == 16 && read % 2 == 0 ? "cg" : "ca";
      const std::string tail = read < size ? StrCat({", ", read}) : std::string();
      const Words result =
          Run(StrCat({"shl.b32 %r1, %t, 4;\ncp.async.", kind, ".shared.global [%r1], [%in], ", size, tail,
                      ";\ncp.async.commit_group;\ncp.async.wait_group 0;\n",
                      "ld.shared.u32 %r2, [%r1];\nst.global.u32 [%out], %r2;\n",
                      size == 16 ? "ld.shared.u32 %r2, [%r1+12];\nst.global.u32 [%out+12], %r2;" : ""}),
              input);
      for (int thread = 0; thread < 32; ++thread) {
        for (const int word : {0, 3}) {
          if (word == 3 && size < 16) continue;
          uint32_t expected = 0;
          for (int k = 0; k < 4; ++k) expected |= 4 * word + k < read ? At(input, thread, word) & 0xffu << (8 * k) : 0;
          REQUIRE(At(result, thread, word) == expected);
        }
      }
    }
  }
}

TEST_CASE("ptx warps: shuffles as the functions of CUDA define them") {
  const Words input = Random(4);
  for (const int width : {32, 16, 8, 4, 2}) {
    for (int amount = 0; amount < 32; amount += amount < 3 ? 1 : 5) {
      for (const std::string kind : {"up", "down", "bfly", "idx"}) {
        const int c = (32 - width) << 8 | (kind == "up" ? 0 : 31);
        const Words result =
            Run(StrCat({"ld.global.u32 %r1, [%in];\nshfl.sync.", kind, ".b32 %r2|%p1, %r1, ", amount, ", ", c,
                        ", -1;\nst.global.u32 [%out], %r2;\nselp.u32 %r3, 1, 0, %p1;\nst.global.u32 [%out+4], %r3;"}),
                input);
        for (int lane = 0; lane < 32; ++lane) {
          const int base = lane / width * width;
          int from = 0;
          bool valid = false;
          if (kind == "up") from = lane - amount, valid = from >= base;
          if (kind == "down") from = lane + amount, valid = from < base + width;
          if (kind == "bfly") from = lane ^ amount, valid = from < base + width;
          if (kind == "idx") from = base + amount % width, valid = true;
          REQUIRE(At(result, lane, 0) == At(input, valid ? from : lane, 0));
          REQUIRE(At(result, lane, 1) == (valid ? 1 : 0));
        }
      }
    }
  }
}

TEST_CASE("ptx warps: votes, matches and reductions") {
  Words input = Random(5);
  for (int thread = 0; thread < 32; ++thread) input[static_cast<size_t>(thread * kWordsPerThread)] %= 4;
  const Words result =
      Run("ld.global.u32 %r1, [%in];\nsetp.lt.u32 %p1, %r1, 2;\nsetp.lt.u32 %p2, %r1, 4;\nvote.sync.all.pred %p3, %p1, "
          "-1;\nvote.sync.all.pred %p4, %p2, -1;\n"
          "vote.sync.any.pred %p5, %p1, -1;\nvote.sync.uni.pred %p6, %p1, -1;\nvote.sync.ballot.b32 %r2, %p1, "
          "-1;\nst.global.u32 [%out], %r2;\nmov.u32 %r3, 0;\n"
          "@%p3 or.b32 %r3, %r3, 1;\n@%p4 or.b32 %r3, %r3, 2;\n@%p5 or.b32 %r3, %r3, 4;\n@%p6 or.b32 %r3, %r3, "
          "8;\nst.global.u32 [%out+4], %r3;\n"
          "match.any.sync.b32 %r4, %r1, -1;\nst.global.u32 [%out+8], %r4;\ncvt.u64.u32 %d1, %r1;\nmatch.any.sync.b64 "
          "%r5, %d1, -1;\nst.global.u32 [%out+12], %r5;\n"
          "match.all.sync.b32 %r6|%p7, %r1, -1;\nst.global.u32 [%out+16], %r6;\nmov.u64 %d2, 9;\nmatch.all.sync.b64 "
          "%r7|%p8, %d2, -1;\nst.global.u32 [%out+20], %r7;\n"
          "activemask.b32 %r8;\nst.global.u32 [%out+24], %r8;\nelect.sync %r9|%p9, -1;\nselp.u32 %r9, 1, 0, "
          "%p9;\nst.global.u32 [%out+28], %r9;\nnanosleep.u32 10;",
          input);
  uint32_t ballot = 0;
  for (int lane = 0; lane < 32; ++lane) ballot |= At(input, lane, 0) < 2 ? 1u << lane : 0;
  for (int lane = 0; lane < 32; ++lane) {
    uint32_t equal = 0;
    for (int other = 0; other < 32; ++other) equal |= At(input, other, 0) == At(input, lane, 0) ? 1u << other : 0;
    REQUIRE(At(result, lane, 0) == ballot);
    REQUIRE(At(result, lane, 1) == 6);
    REQUIRE(At(result, lane, 2) == equal);
    REQUIRE(At(result, lane, 3) == equal);
    REQUIRE(At(result, lane, 4) == 0);
    REQUIRE(At(result, lane, 5) == 0xffffffff);
    REQUIRE(At(result, lane, 6) == 0xffffffff);
    REQUIRE(At(result, lane, 7) == (lane == 0 ? 1 : 0));
  }
  const Words values = Random(6);
  uint32_t sum = 0, all = ~0u, any = 0, odd = 0, low = ~0u, high = 0;
  int32_t lowest = INT32_MAX, highest = INT32_MIN;
  for (int lane = 0; lane < 32; ++lane) {
    const uint32_t x = At(values, lane, 0);
    sum += x, all &= x, any |= x, odd ^= x, low = std::min(low, x), high = std::max(high, x);
    lowest = std::min(lowest, static_cast<int32_t>(x)), highest = std::max(highest, static_cast<int32_t>(x));
  }
  const std::pair<const char*, uint32_t> reductions[] = {{"add.u32", sum},
                                                         {"add.s32", sum},
                                                         {"min.u32", low},
                                                         {"max.u32", high},
                                                         {"min.s32", static_cast<uint32_t>(lowest)},
                                                         {"max.s32", static_cast<uint32_t>(highest)},
                                                         {"and.b32", all},
                                                         {"or.b32", any},
                                                         {"xor.b32", odd}};
  for (const auto& [name, expected] : reductions) {
    const Words reduced = Run(
        StrCat({"ld.global.u32 %r1, [%in];\nredux.sync.", name, " %r2, %r1, -1;\nst.global.u32 [%out], %r2;"}), values);
    for (int lane = 0; lane < 32; ++lane) REQUIRE(At(reduced, lane, 0) == expected);
  }
}

TEST_CASE("ptx blocks: barriers that reduce, branches, calls, early returns") {
  BodyOptions options;
  options.threads = 64;
  for (const std::string name : {"bar", "barrier"}) {
    const std::string aligned = name == "barrier" ? ".aligned" : "";
    const Words result = Run(StrCat({"setp.lt.u32 %p1, %t, 40;\n", name, ".red.popc", aligned, ".u32 %r1, 0, %p1;\n",
                                     name, ".red.and", aligned, ".pred %p2, 0, %p1;\n", name, ".red.or", aligned,
                                     ".pred %p3, 0, %p1;\nselp.u32 %r2, 1, 0, %p2;\nselp.u32 %r3, 1, 0, "
                                     "%p3;\nst.global.v2.u32 [%out], {%r1, %r2};\nst.global.u32 [%out+8], %r3;\n",
                                     name, ".sync 0;"}),
                             {}, options);
    for (int thread = 0; thread < 64; ++thread) {
      REQUIRE(At(result, thread, 0) == 40);
      REQUIRE(At(result, thread, 1) == 0);
      REQUIRE(At(result, thread, 2) == 1);
    }
  }
  options.functions =
      ".func (.param .b32 r) twice(.param .b32 a) { .reg .b32 %v; .reg .pred %q; ld.param.u32 %v, [a]; setp.gt.u32 %q, "
      "%v, 90; @%q bra L; add.s32 %v, %v, %v; L: st.param.u32 [r], %v; ret; }\n";
  const Words result =
      Run("and.b32 %r1, %t, 3;\nT: .branchtargets A, B, C, D;\nbrx.idx %r1, T;\nA: mov.u32 %r2, 10;\nbra.uni E;\nB: "
          "mov.u32 %r2, 20;\nbra E;\nC: mov.u32 %r2, 30;\nbra E;\nD: mov.u32 %r2, 99;\n"
          "E: { .param .b32 p; .param .b32 q; st.param.u32 [p], %r2; call.uni (q), twice, (p); ld.param.u32 %r3, [q]; "
          "}\nst.global.u32 [%out], %r3;\n"
          "setp.lt.u32 %p1, %t, 10;\n@%p1 exit;\nst.global.u32 [%out+4], %r3;\nbar.warp.sync -1;",
          {}, options);
  const uint32_t expected[] = {20, 40, 60, 99};
  for (int thread = 0; thread < 64; ++thread) {
    REQUIRE(At(result, thread, 0) == expected[thread % 4]);
    REQUIRE(At(result, thread, 1) == (thread < 10 ? 0 : expected[thread % 4]));
  }
}

// ---- matrices
TEST_CASE("ptx matrices: ldmatrix, stmatrix, movmatrix") {
  const Words input = Random(7);
  for (const int count : {1, 2, 4}) {
    for (const bool transposed : {false, true}) {
      const std::string registers = count == 1 ? "{%r1}" : count == 2 ? "{%r1, %r2}" : "{%r1, %r2, %r3, %r4}";
      const std::string form = StrCat({".sync.aligned.m8n8.x", count, transposed ? ".trans" : "", ".shared.b16"});
      // Each thread's four words are a row of eight halves; then the matrices go back, to other rows of memory.
      std::string body =
          StrCat({"ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%in];\nshl.b32 %r20, %t, 4;\nst.shared.v4.u32 [%r20], "
                  "{%r10, %r11, %r12, %r13};\nbar.sync 0;\nldmatrix",
                  form, " ", registers, ", [%r20];\n"});
      body += StrCat({"st.global.u32 [%out], %r1;\n", count > 1 ? "st.global.u32 [%out+4], %r2;\n" : "",
                      count > 2 ? "st.global.v2.u32 [%out+8], {%r3, %r4};\n" : ""});
      body += StrCat({"stmatrix", form, " [%r20+1024], ", registers, ";\nbar.sync 0;\nsetp.lt.u32 %p1, %t, ", 8 * count,
                      ";\n@%p1 ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r20+1024];\n@%p1 st.global.v4.u32 "
                      "[%out+16], {%r10, %r11, %r12, %r13};\n"});
      const Words result = Run(body, input);
      const auto element = [&](int matrix, int row, int column) {
        return At(input, 8 * matrix + row, column / 2) >> (16 * (column % 2)) & 0xffff;
      };
      for (int lane = 0; lane < 32; ++lane) {
        for (int m = 0; m < count; ++m) {
          for (int k = 0; k < 2; ++k) {
            const int i = lane / 4, j = lane % 4 * 2 + k;
            REQUIRE((At(result, lane, m) >> (16 * k) & 0xffff) == (transposed ? element(m, j, i) : element(m, i, j)));
          }
        }
        for (int word = 0; word < 4 && lane < 8 * count; ++word)
          REQUIRE(At(result, lane, 4 + word) == At(input, lane, word));
      }
    }
  }
  const Words moved = Run(
      "ld.global.u32 %r1, [%in];\nmovmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;\nst.global.u32 [%out], %r2;", input);
  for (int lane = 0; lane < 32; ++lane) {
    for (int k = 0; k < 2; ++k) {
      const int row = lane % 4 * 2 + k, column = lane / 4;  // of the source
      REQUIRE((At(moved, lane, 0) >> (16 * k) & 0xffff) ==
              (At(input, row * 4 + column / 2, 0) >> (16 * (column % 2)) & 0xffff));
    }
  }
}

// The manual's tables: where element i of a fragment of lane `l` is.
struct Position {
  int row, column;
};
struct MmaCase {
  const char* name;
  int a_elements, b_elements, c_elements, depth, per_register;
  Position (*a)(int g, int t, int i);
  Position (*b)(int g, int t, int i);
};
Position HalfA16(int g, int t, int i) {
  return {i < 2 || (i >= 4 && i < 6) ? g : g + 8, t * 2 + (i & 1) + (i < 4 ? 0 : 8)};
}
Position HalfB16(int g, int t, int i) { return {t * 2 + (i & 1) + (i < 2 ? 0 : 8), g}; }
Position HalfA8(int g, int t, int i) { return {i < 2 ? g : g + 8, t * 2 + (i & 1)}; }
Position HalfB8(int g, int t, int i) { return {t * 2 + i, g}; }
Position TfA4(int g, int t, int i) { return {i == 0 ? g : g + 8, t}; }
Position TfB4(int g, int t, int) { return {t, g}; }
Position TfA8(int g, int t, int i) { return {i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4}; }
Position TfB8(int g, int t, int i) { return {i == 0 ? t : t + 4, g}; }
Position ByteA16(int g, int t, int i) { return {i < 4 ? g : g + 8, t * 4 + (i & 3)}; }
Position ByteB16(int g, int t, int i) { return {t * 4 + i, g}; }
Position ByteA32(int g, int t, int i) {
  return {i < 4 || (i >= 8 && i < 12) ? g : g + 8, t * 4 + (i & 3) + (i < 8 ? 0 : 16)};
}
Position ByteB32(int g, int t, int i) { return {t * 4 + (i & 3) + (i < 4 ? 0 : 16), g}; }
constexpr MmaCase kMmaCases[] = {
    {"m16n8k8.row.col.f32.f16.f16.f32", 4, 2, 4, 8, 2, HalfA8, HalfB8},
    {"m16n8k16.row.col.f32.f16.f16.f32", 8, 4, 4, 16, 2, HalfA16, HalfB16},
    {"m16n8k8.row.col.f16.f16.f16.f16", 4, 2, 4, 8, 2, HalfA8, HalfB8},
    {"m16n8k16.row.col.f16.f16.f16.f16", 8, 4, 4, 16, 2, HalfA16, HalfB16},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 4, 2, 4, 8, 2, HalfA8, HalfB8},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 8, 4, 4, 16, 2, HalfA16, HalfB16},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 2, 1, 4, 4, 1, TfA4, TfB4},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4, 8, 1, TfA8, TfB8},
    {"m16n8k16.row.col.s32.s8.s8.s32", 8, 4, 4, 16, 4, ByteA16, ByteB16},
    {"m16n8k32.row.col.s32.s8.s8.s32", 16, 8, 4, 32, 4, ByteA32, ByteB32},
    {"m16n8k32.row.col.s32.u8.u8.s32", 16, 8, 4, 32, 4, ByteA32, ByteB32},
    {"m16n8k32.row.col.s32.u8.s8.s32", 16, 8, 4, 32, 4, ByteA32, ByteB32},
    {"m16n8k32.row.col.s32.s8.u8.s32", 16, 8, 4, 32, 4, ByteA32, ByteB32},
};

// Small whole numbers, whose sums are exact, or such that products and sums are rounded.
void CheckMma(const MmaCase& form, bool exact) {
  CAPTURE(std::string(form.name));
  const std::string name = form.name;
  const bool half = name.find(".f16") != std::string::npos, half_sum = name.ends_with("f16.f16.f16.f16");
  const bool bf16 = name.find("bf16") != std::string::npos, tf32 = name.find("tf32") != std::string::npos,
             integer = name.find("s32") != std::string::npos;
  if (integer && !exact) return;
  std::mt19937 random(11);
  std::vector<std::vector<double>> a(16, std::vector<double>(32)), b(32, std::vector<double>(8)),
      c(16, std::vector<double>(8));
  const bool a_unsigned = name.find(".u8.u8") != std::string::npos || name.find("s32.u8.") != std::string::npos;
  const bool b_unsigned = name.ends_with("u8.s32");
  for (auto* matrix : {&a, &b, &c}) {
    for (auto& row : *matrix) {
      for (double& x : row) {
        if (exact) {
          x = static_cast<int>(random() % 15) -
              (integer && ((matrix == &a && a_unsigned) || (matrix == &b && b_unsigned)) ? 0 : 7);
        } else {  // of eight bits, as bfloat16 has
          x = std::ldexp(static_cast<int>(random() % 511) - 255, -7 - static_cast<int>(random() % 6));
        }
      }
    }
  }
  if (a_unsigned) a[0][0] = 200;
  const auto bits = [&](double x) -> uint32_t {
    if (half) return static_cast<uint32_t>(EncodeFloat(DataType::Float(16), x));
    if (bf16) return static_cast<uint32_t>(EncodeFloat(DataType::Bfloat16(), x));
    return tf32 ? std::bit_cast<uint32_t>(static_cast<float>(x)) : static_cast<uint32_t>(static_cast<int>(x)) & 0xff;
  };
  const int width = 32 / form.per_register, a_registers = form.a_elements / form.per_register,
            b_registers = form.b_elements / form.per_register;
  const int c_registers = half_sum ? 2 : 4;
  Words input(32 * kWordsPerThread, 0);
  const auto c_position = [](int g, int t, int i) { return Position{i < 2 ? g : g + 8, t * 2 + (i & 1)}; };
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    uint32_t* words = &input[static_cast<size_t>(lane * kWordsPerThread)];
    for (int i = 0; i < form.a_elements; ++i) {
      const Position p = form.a(g, t, i);
      words[i / form.per_register] |= bits(a[static_cast<size_t>(p.row)][static_cast<size_t>(p.column)])
                                      << (width * (i % form.per_register) % 32);
    }
    for (int i = 0; i < form.b_elements; ++i) {
      const Position p = form.b(g, t, i);
      words[4 + i / form.per_register] |= bits(b[static_cast<size_t>(p.row)][static_cast<size_t>(p.column)])
                                          << (width * (i % form.per_register) % 32);
    }
    for (int i = 0; i < 4; ++i) {
      const Position p = c_position(g, t, i);
      const double x = c[static_cast<size_t>(p.row)][static_cast<size_t>(p.column)];
      if (half_sum) {
        words[8 + i / 2] |= static_cast<uint32_t>(EncodeFloat(DataType::Float(16), x)) << (16 * (i % 2));
      } else {
        words[8 + i] =
            integer ? static_cast<uint32_t>(static_cast<int>(x)) : std::bit_cast<uint32_t>(static_cast<float>(x));
      }
    }
  }
  const std::string c_reg = integer || half_sum ? "%r2" : "%f";
  const auto list = [](const std::string& prefix, int count) {
    std::string text = "{";
    for (int k = 0; k < count; ++k) text += StrCat({k > 0 ? ", " : "", prefix, k});
    return text + "}";
  };
  const std::string c_type = integer || half_sum ? "u32" : "f32";
  std::string body =
      StrCat({"ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%in];\nld.global.v2.u32 {%r10, %r11}, [%in+16];\nld.global.v4.",
              c_type, " ", list(c_reg, 4), ", [%in+32];\n"});
  body += StrCat({"mma.sync.aligned.", name, " ", list(c_reg, c_registers), ", ", list("%r", a_registers), ", ",
                  list("%r1", b_registers), ", ", list(c_reg, c_registers), ";\n"});
  for (int k = 0; k < c_registers; ++k)
    body += StrCat({"st.global.", c_type, " [%out+", 4 * k, "], ", c_reg, k, ";\n"});
  const Words result = Run(body, input);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const Position p = c_position(lane / 4, lane % 4, i);
      double expected = c[static_cast<size_t>(p.row)][static_cast<size_t>(p.column)], size = std::fabs(expected);
      for (int k = 0; k < form.depth; ++k) {
        const double product = a[static_cast<size_t>(p.row)][static_cast<size_t>(k)] *
                               b[static_cast<size_t>(k)][static_cast<size_t>(p.column)];
        expected += product, size += std::fabs(product);
      }
      const double got = half_sum ? DecodeFloat(DataType::Float(16), At(result, lane, i / 2) >> (16 * (i % 2)) & 0xffff)
                         : integer ? static_cast<int32_t>(At(result, lane, i))
                                   : std::bit_cast<float>(At(result, lane, i));
      REQUIRE(std::fabs(got - expected) <= (exact ? 0 : size * (half_sum ? 0x1p-11 : 0x1p-24)));
    }
  }
}

TEST_CASE("ptx matrices: mma.sync with the fragments of the manual's tables") {
  for (const bool exact : {true, false}) {
    for (const MmaCase& form : kMmaCases) CheckMma(form, exact);
  }
  // float64: one row of eight.
  Words input(32 * kWordsPerThread, 0);
  const auto put = [&](int lane, int word, double x) {
    input[static_cast<size_t>(lane * kWordsPerThread + word)] = static_cast<uint32_t>(std::bit_cast<uint64_t>(x));
    input[static_cast<size_t>(lane * kWordsPerThread + word + 1)] =
        static_cast<uint32_t>(std::bit_cast<uint64_t>(x) >> 32);
  };
  for (int lane = 0; lane < 32; ++lane)
    put(lane, 0, lane + 0.5), put(lane, 2, 100 - lane * 3), put(lane, 4, lane), put(lane, 6, -lane);
  const Words result =
      Run("ld.global.f64 %d0, [%in];\nld.global.f64 %d1, [%in+8];\nld.global.v2.f64 {%d2, %d3}, "
          "[%in+16];\nmma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d2, %d3}, {%d0}, {%d1}, {%d2, "
          "%d3};\nst.global.v2.f64 [%out], {%d2, %d3};",
          input);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 2; ++i) {
      const int row = lane / 4, column = lane % 4 * 2 + i;
      double expected = i == 0 ? lane : -lane;
      for (int k = 0; k < 4; ++k) expected += (row * 4 + k + 0.5) * (100 - (column * 4 + k) * 3);
      const uint64_t bits = static_cast<uint64_t>(At(result, lane, 2 * i + 1)) << 32 | At(result, lane, 2 * i);
      REQUIRE(std::bit_cast<double>(bits) == expected);
    }
  }
}

TEST_CASE("ptx matrices: wmma in every layout") {
  // Two 16 x 16 matrices, read by rows or by columns.
  for (const bool bf16 : {false, true}) {
    const DataType type = bf16 ? DataType::Bfloat16() : DataType::Float(16);
    for (const char* a_layout : {"row", "col"}) {
      for (const char* b_layout : {"row", "col"}) {
        Words input(32 * kWordsPerThread, 0);
        std::vector<double> a(256), b(256);
        for (size_t k = 0; k < 256; ++k) {
          a[k] = static_cast<double>(k * 7 % 13) - 6, b[k] = static_cast<double>(k * 5 % 11) - 5;
          input[k / 2] |= static_cast<uint32_t>(EncodeFloat(type, a[k])) << (16 * (k % 2));
          input[128 + k / 2] |= static_cast<uint32_t>(EncodeFloat(type, b[k])) << (16 * (k % 2));
        }
        const std::string t = bf16 ? "bf16" : "f16";
        const std::string fa = bf16 ? "{%r0, %r1, %r2, %r3}" : "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}",
                          fb = bf16 ? "{%r10, %r11, %r12, %r13}" : "{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}";
        const std::string fc = "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}";
        std::string body = StrCat({"wmma.load.a.sync.aligned.", a_layout, ".m16n16k16.global.", t, " ", fa,
                                   ", [%x], 16;\nwmma.load.b.sync.aligned.", b_layout, ".m16n16k16.global.", t, " ", fb,
                                   ", [%x+512];\n"});
        body += StrCat({"wmma.load.c.sync.aligned.", a_layout, ".m16n16k16.global.f32 ", fc,
                        ", [%y];\nwmma.mma.sync.aligned.", a_layout, ".", b_layout, ".m16n16k16.f32",
                        bf16 ? ".bf16.bf16" : "", ".f32 ", fc, ", ", fa, ", ", fb, ", ", fc, ";\nbar.warp.sync -1;\n"});
        body += StrCat({"wmma.store.d.sync.aligned.", b_layout, ".m16n16k16.global.f32 [%y], ", fc, ", 16;\n"});
        if (!bf16)
          body += StrCat(
              {"wmma.store.d.sync.aligned.", a_layout, ".m16n16k16.shared.f16 [smem], {%r0, %r1, %r2, %r3}, 16;\n"});
        const Words result = Run(body, input);
        for (size_t i = 0; i < 16; ++i) {
          for (size_t j = 0; j < 16; ++j) {
            double expected = 0;
            for (size_t k = 0; k < 16; ++k)
              expected += (a_layout[0] == 'r' ? a[16 * i + k] : a[16 * k + i]) *
                          (b_layout[0] == 'r' ? b[16 * k + j] : b[16 * j + k]);
            REQUIRE(std::bit_cast<float>(result[b_layout[0] == 'r' ? 16 * i + j : 16 * j + i]) == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("ptx: every row of the instruction table was run") {
  if (CoveredRows().size() < 550) return;  // a part of the tests was chosen
  for (const Row& row : InstructionTable()) CHECK_MESSAGE(CoveredRows().count(&row) != 0, row.pattern);
}

}  // namespace
}  // namespace ingot::ptx
