// Lowered functions built by hand, compiled, loaded and run: statements, memory, parallel loops and failures.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <sstream>

#include "runtime/small_float.h"
#include "runtime/thread_pool.h"
#include "tests/compiler/codegen/jit.h"

namespace ingot::codegen::testing {
namespace {

using ir::Int64;
using ir::PrimExpr;
using ir::Stmt;

const DataType kF32 = DataType::Float(32);

Tensor<float> Iota(size_t n) {
  Tensor<float> values(n);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST_CASE("vectors of any number of lanes, with tails") {
  const Tensor<float> a = Iota(101), b = Iota(101);
  for (int lanes : {1, 2, 3, 4, 5, 8, 13, 16, 32}) {
    CAPTURE(lanes);
    Kernel kernel(Elementwise({kF32, kF32}, kF32, 101, lanes, [](const auto& x) { return x[0] + x[1] * x[1]; }));
    Tensor<float> out(102, -7.0f), x = a, y = b;
    CHECK(kernel.Run({x.data(), y.data(), out.data()}) == 0);
    for (size_t i = 0; i < 101; ++i) REQUIRE(out[i] == a[i] + b[i] * b[i]);
    CHECK(out[101] == -7.0f);  // nothing behind the end is touched
  }
}

TEST_CASE("sums of an odd number of lanes stay whole registers from iteration to iteration") {
  for (int lanes : {3, 12, 27, 30, 59}) {
    CAPTURE(lanes);
    const ir::PrimVar n = ir::MakePrimVar("n");
    const ir::Buffer in = ir::MakeBuffer("in", kF32, {n, Int64(lanes)});
    const ir::Buffer out = ir::MakeBuffer("out", kF32, {Int64(lanes)});
    const ir::Buffer sum = ir::MakeBuffer("sum", kF32, {Int64(lanes)}, "local");
    const PrimExpr all = Ramp(Int64(0), lanes);
    const Stmt zero = Store(sum, ir::Make<ir::BroadcastNode>(ir::MakeConst(kF32, 0), lanes), {all});
    const Stmt add = Loop(n, [&](const PrimExpr& i) {
      // The second row is left out: the sum lives across the blocks of a condition.
      const PrimExpr zeros = ir::Make<ir::BroadcastNode>(ir::MakeConst(kF32, 0), lanes);
      const PrimExpr row = ir::IfThenElse(ir::NotEqual(i, Int64(1)), Load(in, {i, all}), zeros);
      return Store(sum, Load(sum, {all}) + row, {all});
    });
    const Stmt body = ir::MakeSeq({zero, add, Store(out, Load(sum, {all}), {all})});
    CodegenOptions options;
    options.emit_llvm = options.emit_asm = true;
    Kernel kernel(Function({in, out}, ir::Make<ir::AllocateNode>(sum, body)), TargetNamed("x86-64-v3"), options);
    CHECK(Count(kernel.compiled.llvm, "phi <" + std::to_string(lanes) + " x") == 0);
    CHECK(Count(kernel.compiled.llvm, "x float> [") > 0);
    CHECK(Count(kernel.compiled.assembly, "vinsertps") <= 1);  // where three lanes are loaded
    Tensor<float> input = Iota(static_cast<size_t>(lanes) * 5), output(static_cast<size_t>(lanes));
    CHECK(kernel.Run({input.data(), output.data()}, {5}) == 0);
    for (int i = 0; i < lanes; ++i) {
      float expected = 0;
      for (int row : {0, 2, 3, 4}) expected += input[static_cast<size_t>(row * lanes + i)];
      REQUIRE(output[static_cast<size_t>(i)] == expected);
    }
  }
}

TEST_CASE("what is rounded to float16 between two steps is computed in whole vectors, and rounded once a step") {
  const DataType f16 = DataType::Float(16);
  const auto wide = [](const PrimExpr& x) { return ir::Cast(kF32.with_lanes(x->dtype.lanes), x); };
  const auto rounded = [&](const PrimExpr& x) { return ir::Cast(f16.with_lanes(x->dtype.lanes), x); };
  const auto at_least = [](const PrimExpr& x, double least) {
    PrimExpr bound = ir::MakeConst(kF32, least);
    if (x->dtype.lanes > 1) bound = ir::Make<ir::BroadcastNode>(bound, x->dtype.lanes);
    return ir::Max(x, bound);
  };
  constexpr const char* kSteps[] = {" fcmp ", " fadd ", " fmul ", " fdiv ", "@llvm.floor"};
  constexpr int64_t kCount = 67;
  Tensor<uint16_t> x(kCount), y(kCount), got(kCount);
  std::vector<uint16_t> want(kCount);
  for (size_t i = 0; i < x.size(); ++i) {  // numbers of either sign, infinities and NaN among them
    x[i] = static_cast<uint16_t>(EncodeFloat(f16, i % 16 == 9 ? 1e9 : (static_cast<double>(i) - 30) * 0.37));
    y[i] = static_cast<uint16_t>(EncodeFloat(f16, i % 16 == 4 ? std::nan("") : 3.3 / (static_cast<double>(i) + 1)));
    const auto step = [&](double value) { return DecodeFloat(f16, EncodeFloat(f16, value)); };
    const double sum = step(DecodeFloat(f16, x[i]) + DecodeFloat(f16, y[i]));
    const double product = step((sum < -2 ? -2 : sum) * DecodeFloat(f16, y[i]));
    want[i] = static_cast<uint16_t>(EncodeFloat(f16, std::floor(product) / 3));
  }
  for (const char* name : {"x86-64-v3", "x86-64-v4"}) {
    for (const int lanes : {1, 3, 8, 16, 32}) {
      CAPTURE(name);
      CAPTURE(lanes);
      CodegenOptions options;
      options.emit_llvm = true;
      const Target target = TargetNamed(name);
      const ir::PrimFunc function = Elementwise({f16, f16}, f16, kCount, lanes, [&](const auto& v) {
        const PrimExpr sum = rounded(wide(v[0]) + wide(v[1]));
        const PrimExpr product = rounded(wide(rounded(at_least(wide(sum), -2))) * wide(v[1]));
        const PrimExpr floor = rounded(ir::CallIntrinsic(ir::Intrinsic::kFloor, {wide(product)}));
        PrimExpr three = ir::MakeConst(kF32, 3);
        if (v[0]->dtype.lanes > 1) three = ir::Make<ir::BroadcastNode>(three, v[0]->dtype.lanes);
        return rounded(wide(floor) / three);
      });
      if (!HostRuns(target)) continue;
      Kernel kernel(function, target, options);
      std::istringstream lines(kernel.compiled.llvm);
      for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("  ") || line.find("half") == std::string::npos) continue;
        const auto computes = [&](const char* step) { return line.find(step) != std::string::npos; };
        CHECK_MESSAGE(std::ranges::none_of(kSteps, computes), line);
      }
      CHECK(kernel.Run({x.data(), y.data(), got.data()}) == 0);
      for (size_t i = 0; i < x.size(); ++i) {
        const double a = DecodeFloat(f16, got[i]), b = DecodeFloat(f16, want[i]);
        REQUIRE_MESSAGE((a == b || (std::isnan(a) && std::isnan(b))), i);
      }
    }
  }
}

TEST_CASE("the offsets of unrolled accesses share all but a constant") {
  // out[i, 3 + r] = in[5 * i - 7 + r, i] for eight rows r: one offset, and one addition per access.
  const ir::PrimVar n = ir::MakePrimVar("n");
  const ir::Buffer in = ir::MakeBuffer("in", kF32, {Int64(40), Int64(6)});
  const ir::Buffer out = ir::MakeBuffer("out", kF32, {n, Int64(12)});
  const Stmt body = Loop(n, [&](const PrimExpr& i) {
    std::vector<Stmt> stores;
    for (int64_t row = 0; row < 8; ++row) {
      stores.push_back(Store(out, Load(in, {Int64(5) * i + (row - 7), i}), {i, Int64(3 + row)}));
    }
    return ir::MakeSeq(stores);
  });
  CodegenOptions options;
  options.opt_level = 0;
  options.emit_llvm = true;
  Kernel kernel(Function({in, out}, body), TargetNamed("x86-64-v3"), options);
  CHECK(Count(kernel.compiled.llvm, " = mul ") == 3);          // 5 i, times 6; 12 i
  CHECK(Count(kernel.compiled.llvm, " = add ") <= 2 * 8 + 3);  // one per access, 5 i * 6 + i, i + 1
  Tensor<float> input = Iota(240), output(5 * 12, -1.0f);
  // From the second row on, where all that is read lies inside.
  const Stmt inside = Loop(Int64(2), [&](const PrimExpr& i) {
    std::vector<Stmt> stores;
    for (int64_t row = 0; row < 8; ++row) {
      stores.push_back(Store(out, Load(in, {Int64(5) * (i + 2) + (row - 7), i}), {i, Int64(3 + row)}));
    }
    return ir::MakeSeq(stores);
  });
  for (int opt_level : {0, 3}) {
    options.opt_level = opt_level;
    Kernel run(Function({in, out}, inside), TargetNamed("x86-64-v3"), options);
    CHECK(run.Run({input.data(), output.data()}, {5}) == 0);
    for (size_t i = 0; i < 2; ++i) {
      for (size_t row = 0; row < 8; ++row) {
        REQUIRE(output[i * 12 + 3 + row] == input[(5 * (i + 2) + row - 7) * 6 + i]);
      }
    }
  }
}

TEST_CASE("words that are equal by very many ways of their operands are compared in no time") {
  // Twice the same chain of squares, from two loads: one by one, its operands are 2^40 pairs.
  constexpr int kLanes = 8, kSquares = 40;
  const DataType i16 = DataType::Int(16), i32 = DataType::Int(32);
  const ir::Buffer x = ir::MakeBuffer("x", i32, {Int64(kLanes)}), a = ir::MakeBuffer("a", i16, {Int64(kLanes)});
  const ir::Buffer out = ir::MakeBuffer("out", i32, {Int64(kLanes)});
  const PrimExpr all = Ramp(Int64(0), kLanes), factor = ir::Cast(i32.with_lanes(kLanes), Load(a, {all}));
  const PrimExpr half = Broadcast(ir::MakeConst(i32, 16), kLanes);
  std::vector<std::pair<ir::PrimVar, PrimExpr>> lets;
  const auto chain = [&] {
    PrimExpr value = Load(x, {all});
    for (int i = 0; i <= kSquares; ++i) {
      const ir::PrimVar power = ir::MakePrimVar("power", i32.with_lanes(kLanes));
      lets.emplace_back(power, i == 0 ? value : value * value);
      value = power;
    }
    return value;
  };
  const PrimExpr low = ir::CallIntrinsic(ir::Intrinsic::kShiftLeft, {chain(), half});
  const PrimExpr sum = factor * ir::CallIntrinsic(ir::Intrinsic::kShiftRight, {low, half}) +
                       factor * ir::CallIntrinsic(ir::Intrinsic::kShiftRight, {chain(), half});
  Stmt body = Store(out, sum, {all});
  for (size_t i = lets.size(); i-- > 0;) body = ir::Make<ir::LetStmtNode>(lets[i].first, lets[i].second, body);
  Kernel kernel(Function({x, a, out}, body));
  Tensor<int32_t> words(kLanes), results(kLanes);
  Tensor<int16_t> factors(kLanes);
  for (size_t i = 0; i < kLanes; ++i) words[i] = static_cast<int32_t>(3 * i + 1), factors[i] = static_cast<int16_t>(i);
  CHECK(kernel.Run({words.data(), factors.data(), results.data()}) == 0);
  for (size_t i = 0; i < kLanes; ++i) {
    auto power = static_cast<uint32_t>(words[i]);
    for (int k = 0; k < kSquares; ++k) power *= power;
    const int32_t upper = static_cast<int32_t>(power) >> 16, lower = static_cast<int16_t>(power);
    CHECK(results[i] == factors[i] * (lower + upper));
  }
}

TEST_CASE("arithmetic that may wrap is not taken from arithmetic that may not") {
  // out[i * 3] = i * 3 and out[i * 3 + 1] = i * 3: the values may wrap, the places may not.
  const ir::PrimVar n = ir::MakePrimVar("n");
  const ir::Buffer out = ir::MakeBuffer("out", DataType::Int(64), {Int64(3) * n});
  const Stmt body = Loop(n, [&](const PrimExpr& i) {
    const Stmt place_first = Store(out, Int64(7), {i * 3 + 2});
    return ir::MakeSeq({place_first, Store(out, i * 3, {i * 3}), Store(out, i * 3, {i * 3 + 1})});
  });
  CodegenOptions options;
  options.opt_level = 0;
  options.emit_llvm = true;
  Kernel kernel(Function({out}, body), TargetNamed("x86-64-v3"), options);
  CHECK(Count(kernel.compiled.llvm, " = mul nsw i64") == 1);  // the one of all places
  CHECK(Count(kernel.compiled.llvm, " = mul i64") == 1);      // the one of both values
  Tensor<int64_t> results(12);
  CHECK(kernel.Run({results.data()}, {4}) == 0);
  for (int64_t i = 0; i < 4; ++i) {
    const auto at = static_cast<size_t>(3 * i);
    CHECK((results[at] == 3 * i && results[at + 1] == 3 * i && results[at + 2] == 7));
  }
}

TEST_CASE("symbolic extents, strides and offsets") {
  // out[j, i] = in[i, j] for in of n rows, each stride s apart, starting at an offset.
  const ir::PrimVar n = ir::MakePrimVar("n"), m = ir::MakePrimVar("m"), s = ir::MakePrimVar("s");
  auto in_node = ir::BufferNode("in", kF32, {n, m});
  in_node.strides = {s, Int64(1)};
  in_node.elem_offset = Int64(2);
  const ir::Buffer in = ir::Make<ir::BufferNode>(std::move(in_node));
  const ir::Buffer out = ir::MakeBuffer("out", kF32, {m, n});
  const Stmt body = Loop(n, [&](const PrimExpr& i) {
    return Loop(m, [&](const PrimExpr& j) { return Store(out, Load(in, {i, j}), {j, i}); });
  });
  Kernel kernel(Function({in, out}, body));
  REQUIRE(kernel.description.kernel.ints.size() == 3);
  CHECK(kernel.description.kernel.ints[2].name == "s");
  Tensor<float> input = Iota(2 + 3 * 7), output(12);
  CHECK(kernel.Run({input.data(), output.data()}, {3, 4, 7}) == 0);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j) CHECK(output[j * 3 + i] == input[2 + i * 7 + j]);
  }
}

TEST_CASE("strided, repeated and gathered vectors, as loads and as stores") {
  const ir::Buffer in = ir::MakeBuffer("in", kF32, {Int64(4), Int64(8)});
  const ir::Buffer index = ir::MakeBuffer("index", DataType::Int(32), {Int64(4)});
  const ir::Buffer out = ir::MakeBuffer("out", kF32, {Int64(6), Int64(4)});
  const PrimExpr four = Ramp(Int64(0), 4);
  const PrimExpr gathered = ir::Cast(DataType::Int(64, 4), Load(index, {four}));
  std::vector<Stmt> stmts = {
      Store(out, Load(in, {four, Broadcast(Int64(1), 4)}), {Int64(0), four}),                              // a column
      Store(out, Load(in, {Int64(2), ir::Make<ir::RampNode>(Int64(7), Int64(-2), 4)}), {Int64(1), four}),  // backwards
      Store(out, Load(in, {Int64(3), Broadcast(Int64(5), 4)}), {Int64(2), four}),  // one element
      Store(out, Load(in, {Broadcast(Int64(1), 4), gathered}), {Int64(3), four}),
      Store(out, Load(in, {Int64(0), four}), {Int64(4), gathered}),  // scattered
      Store(out, Load(in, {Int64(0), ir::Make<ir::RampNode>(Int64(0), Int64(2), 4)}),
            {Int64(5), ir::Make<ir::RampNode>(Int64(3), Int64(-1), 4)}),
  };
  Kernel kernel(Function({in, index, out}, ir::MakeSeq(std::move(stmts))));
  Tensor<float> input(32);
  std::iota(input.begin(), input.end(), 0.0f);
  Tensor<int32_t> indices = {3, 0, 2, 1};
  Tensor<float> output(24);
  CHECK(kernel.Run({input.data(), indices.data(), output.data()}) == 0);
  const Tensor<float> expected = {1, 9, 17, 25, 23, 21, 19, 17, 29, 29, 29, 29, 11, 8, 10, 9, 1, 3, 2, 0, 6, 4, 2, 0};
  CHECK(output == expected);
}

// A page of floats, behind which nothing can be read.
class GuardedPage {
 public:
  GuardedPage() : bytes_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    void* pages = mmap(nullptr, 2 * bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED);
    floats_ = static_cast<float*>(pages);
    REQUIRE(mprotect(floats_ + size(), bytes_, PROT_NONE) == 0);
    std::iota(floats_, floats_ + size(), 1.0f);
  }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;
  ~GuardedPage() { munmap(floats_, 2 * bytes_); }
  float* data() { return floats_; }
  size_t size() const { return bytes_ / sizeof(float); }

 private:
  size_t bytes_;
  float* floats_ = nullptr;
};

TEST_CASE("masked lanes a few steps apart read nothing behind the last one") {
  GuardedPage page;
  for (const char* level : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    const Target target = TargetNamed(level);
    if (!HostRuns(target)) continue;
    for (int lanes : {4, 8, 13, 16}) {
      for (int stride : {2, 3, 4, 5}) {
        CAPTURE(level);
        CAPTURE(lanes);
        CAPTURE(stride);
        const ir::PrimVar n = ir::MakePrimVar("n"), first = ir::MakePrimVar("first"), count = ir::MakePrimVar("count");
        const ir::Buffer in = ir::MakeBuffer("in", kF32, {n});
        const ir::Buffer takes = ir::MakeBuffer("takes", DataType::Bool(), {first + count});  // gives both as integers
        const ir::Buffer out = ir::MakeBuffer("out", kF32, {Int64(2), Int64(lanes)});
        const PrimExpr all = Ramp(Int64(0), lanes);
        const PrimExpr strided = Load(in, {ir::Make<ir::RampNode>(first, Int64(stride), lanes)});
        const PrimExpr ones = ir::Make<ir::BroadcastNode>(ir::MakeConst(kF32, 1), lanes);
        const Stmt first_lanes = ir::Make<ir::IfStmtNode>(all < Broadcast(count, lanes),
                                                          Store(out, strided + ones, {Int64(0), all}), nullptr);
        const Stmt chosen_lanes =
            Store(out, ir::IfThenElse(Load(takes, {all}), strided, ones), {Broadcast(Int64(1), lanes), all});
        Kernel kernel(Function({in, takes, out}, ir::MakeSeq({first_lanes, chosen_lanes})), target);
        REQUIRE(kernel.description.kernel.ints.size() == 3);
        for (int number = 0; number <= lanes; ++number) {
          CAPTURE(number);
          const auto size = static_cast<int64_t>(page.size());
          const int64_t begin =
              size - 1 - int64_t{stride} * std::max(number - 1, 0);  // the last lane's: the page's last
          Tensor<uint8_t> taken(static_cast<size_t>(begin) + static_cast<size_t>(lanes));
          for (int i = 0; i < number; ++i) taken[static_cast<size_t>(i)] = i % 3 != 1 || i == number - 1;
          Tensor<float> output(static_cast<size_t>(2 * lanes), -7.0f);
          std::vector<int64_t> ints;
          for (const auto& argument : kernel.description.kernel.ints) {
            ints.push_back(argument.name == "n" ? size : argument.name == "first" ? begin : number);
          }
          CHECK(kernel.Run({page.data(), taken.data(), output.data()}, ints) == 0);
          for (int i = 0; i < lanes; ++i) {
            const auto at = static_cast<size_t>(i);
            const float element = i < number ? page.data()[begin + int64_t{stride} * i] : 0;
            REQUIRE(output[at] == (i < number ? element + 1 : -7.0f));
            REQUIRE(output[static_cast<size_t>(lanes) + at] == (taken[at] != 0 ? element : 1.0f));
          }
        }
      }
    }
  }
}

TEST_CASE("a condition that does not hold guards elements that nobody wrote") {
  // Of sixteen elements of an array, eight are written, as a vector; the others are read behind a condition alone.
  const int lanes = 8;
  const ir::Buffer in = ir::MakeBuffer("in", kF32, {Int64(lanes)}), out = ir::MakeBuffer("out", kF32, {Int64(lanes)});
  const ir::Buffer array = ir::MakeBuffer("array", kF32, {Int64(2 * lanes)}, "local");
  const PrimExpr all = Ramp(Int64(0), lanes), least = ir::FloatImm(kF32, -1), seven = ir::FloatImm(kF32, 7);
  std::vector<Stmt> stmts = {Store(array, Load(in, {all}), {all})};
  for (int64_t i = 0; i < lanes; ++i) {
    const PrimExpr is_asked = Load(in, {Int64(0)}) < ir::FloatImm(kF32, 0);
    const PrimExpr unwritten = Load(array, {Int64(lanes + i)});
    const PrimExpr guard = ir::And(is_asked, unwritten > least);
    const PrimExpr value = ir::IfThenElse(guard, unwritten, Load(array, {Int64(i)}));
    stmts.push_back(Store(out, value, {Int64(i)}));
    stmts.push_back(ir::Make<ir::IfStmtNode>(guard, Store(out, seven, {Int64(i)}), nullptr));
  }
  const Stmt body = ir::Make<ir::AllocateNode>(array, ir::MakeSeq(std::move(stmts)));
  Kernel kernel(Function({in, out}, body));
  Tensor<float> input = Iota(lanes), output(lanes);
  CHECK(kernel.Run({input.data(), output.data()}) == 0);
  CHECK(output == input);
}

void CheckGemm(Kernel& kernel, int64_t m, int64_t n, int64_t k, ThreadPool* pool) {
  Tensor<float> a(m * k), b(k * n), c(m * n);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2;
  CHECK(kernel.Run({a.data(), b.data(), c.data()}, {}, pool) == 0);
  bool equal = true;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t x = 0; x < k; ++x) sum += a[i * k + x] * b[x * n + j];
      equal = equal && sum == c[i * n + j];
    }
  }
  CHECK(equal);
}

// Lines that move a vector to or from the stack.
size_t VectorSpills(const std::string& assembly, const std::string& register_prefix) {
  size_t count = 0;
  std::istringstream lines(assembly);
  for (std::string line; std::getline(lines, line);) {
    if (Count(line, register_prefix) > 0 && Count(line, "(%rsp)") > 0) ++count;
  }
  return count;
}

TEST_CASE("a register tile stays in registers") {
  CodegenOptions options;
  options.emit_asm = true;
  Kernel v3(TiledGemm(12, 32, 9, 6, 2, 8, false), TargetNamed("x86-64-v3"), options);
  CheckGemm(v3, 12, 32, 9, nullptr);
  CHECK(Count(v3.compiled.assembly, "vfmadd") >= 12);
  CHECK(VectorSpills(v3.compiled.assembly, "%ymm") == 0);
  CHECK(v3.compiled.stack_bytes <= 64);

  const Target target = TargetNamed("x86-64-v4");
  Kernel v4(TiledGemm(28, 32, 9, 14, 2, 16, false), target, options);
  CHECK(Count(v4.compiled.assembly, "%zmm") > 28);
  CHECK(VectorSpills(v4.compiled.assembly, "%zmm") == 0);
  CHECK(v4.compiled.stack_bytes <= 128);
  if (HostRuns(target)) {
    CheckGemm(v4, 28, 32, 9, nullptr);
  } else {
    MESSAGE("SKIP: this machine does not run x86-64-v4");
  }
}

TEST_CASE("parallel loops give equal results on any number of threads") {
  Kernel kernel(TiledGemm(12, 64, 5, 6, 2, 8, true));
  CheckGemm(kernel, 12, 64, 5, nullptr);
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::Create(4);
  REQUIRE(pool.ok());
  for (int i = 0; i < 50; ++i) CheckGemm(kernel, 12, 64, 5, pool->get());
}

TEST_CASE("a failing task ends the kernel with its code; the lowest of several wins") {
  // for t in parallel(100): assert in[t] != 0; out[t] = 100 // in[t]
  const ir::Buffer in = ir::MakeBuffer("in", DataType::Int(32), {Int64(100)});
  const ir::Buffer out = ir::MakeBuffer("out", DataType::Int(32), {Int64(100)});
  const Stmt body = Loop(
      Int64(100),
      [&](const PrimExpr& t) {
        return Stmt(ir::Make<ir::AssertStmtNode>(
            Load(in, {t}) < ir::Int32(1000), "too large",
            Store(out, ir::FloorDiv(ir::Cast(DataType::Int(32), t) - 50, Load(in, {t})), {t})));
      },
      ir::ForKind::kParallel);
  Kernel kernel(Function({in, out}, body));
  REQUIRE(kernel.description.kernel.messages == std::vector<std::string>{"too large"});
  CHECK((kernel.description.kernel.effects & vm::kEffectMayFail) != 0);
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::Create(3);
  REQUIRE(pool.ok());
  Tensor<int32_t> input(100, 7), output(100);
  for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), pool->get()}) {
    CHECK(kernel.Run({input.data(), output.data()}, {}, threads) == 0);
    CHECK(output[0] == -8);  // floor(-50 / 7)
    CHECK(output[99] == 7);
    input[60] = 0;
    CHECK(kernel.Run({input.data(), output.data()}, {}, threads) == INGOT_KERNEL_DIV_BY_ZERO);
    CHECK(kernel.failure.a == 10);
    input[20] = 1000;
    CHECK(kernel.Run({input.data(), output.data()}, {}, threads) == INGOT_KERNEL_ASSERT);
    CHECK(kernel.failure.a == 0);
    input[20] = input[60] = 7;
  }
  kernel.cancel = 1;
  CHECK(kernel.Run({input.data(), output.data()}) == INGOT_KERNEL_CANCELLED);
}

TEST_CASE("integer division at its edges") {
  const DataType i32 = DataType::Int(32);
  const int32_t min = INT32_MIN;
  const Tensor<int32_t> a = {7, -7, 7, -7, min, min, 0, min}, b = {3, 3, -3, -3, -1, 1, -5, 2};
  struct Case {
    ir::BinaryOp op;
    Tensor<int32_t> expected;
  };
  const Case cases[] = {
      {ir::BinaryOp::kDiv, {2, -2, -2, 2, min, min, 0, min / 2}},
      {ir::BinaryOp::kTruncMod, {1, -1, 1, -1, 0, 0, 0, 0}},
      {ir::BinaryOp::kFloorDiv, {2, -3, -3, 2, min, min, 0, min / 2}},
      {ir::BinaryOp::kFloorMod, {1, 2, -2, -1, 0, 0, 0, 0}},
  };
  for (const Case& row : cases) {
    for (int lanes : {1, 8}) {
      Kernel kernel(
          Elementwise({i32, i32}, i32, 8, lanes, [&](const auto& x) { return ir::MakeBinary(row.op, x[0], x[1]); }));
      Tensor<int32_t> x = a, y = b, out(8);
      CHECK(kernel.Run({x.data(), y.data(), out.data()}) == 0);
      CHECK(out == row.expected);
      y[5] = 0;
      CHECK(kernel.Run({x.data(), y.data(), out.data()}) == INGOT_KERNEL_DIV_BY_ZERO);
    }
    for (int divisor : {3, -3, 4, 1, -1}) {
      Kernel kernel(Elementwise({i32}, i32, 8, 4, [&](const auto& x) {
        return ir::MakeBinary(row.op, x[0], ir::MakeConst(x[0]->dtype, divisor));
      }));
      Tensor<int32_t> x = a, out(8);
      CHECK(kernel.Run({x.data(), out.data()}) == 0);
      for (int i = 0; i < 8; ++i) {
        const int64_t n = a[i], d = divisor;
        const int64_t floor = n / d - (n % d != 0 && (n < 0) != (d < 0) ? 1 : 0);
        int64_t expected = n / d;
        if (row.op == ir::BinaryOp::kTruncMod) expected = n % d;
        if (row.op == ir::BinaryOp::kFloorDiv) expected = floor;
        if (row.op == ir::BinaryOp::kFloorMod) expected = n - floor * d;
        CHECK(out[i] == static_cast<int32_t>(expected));
      }
    }
  }
}

TEST_CASE("if_then_else reads only the chosen side; if, while, let and select") {
  // Padding: out[i] = if 0 <= i - 1 < n then in[i - 1] else -1, with in at the end of its memory.
  const ir::PrimVar n = ir::MakePrimVar("n");
  const ir::Buffer in = ir::MakeBuffer("in", kF32, {n});
  const ir::Buffer out = ir::MakeBuffer("out", kF32, {n + 2});
  const Stmt pad = Loop(n + 2, [&](const PrimExpr& i) {
    const PrimExpr inside = ir::And(ir::Int64(1) <= i, i < n + 1);
    return Store(out, ir::IfThenElse(inside, Load(in, {i - 1}), ir::FloatImm(kF32, -1)), {i});
  });
  Tensor<float> output(6);
  Tensor<float> input = Iota(4);
  Kernel padding(Function({in, out}, pad));
  CHECK(padding.Run({input.data(), output.data()}, {4}) == 0);
  CHECK(output == Tensor<float>{-1, 1, 2, 3, 4, -1});
  CHECK(padding.Run({nullptr, output.data()}, {0}) == 0);  // nothing is read
  CHECK(output[1] == -1);

  // Collatz steps by a while loop over a stack cell.
  const DataType i64 = DataType::Int(64);
  const ir::Buffer start = ir::MakeBuffer("start", i64, {Int64(3)});
  const ir::Buffer steps = ir::MakeBuffer("steps", i64, {Int64(3)});
  const ir::Buffer cell = ir::MakeBuffer("cell", i64, {Int64(2)}, "local");
  const PrimExpr zero = Int64(0), one = Int64(1);
  const Stmt collatz = Loop(Int64(3), [&](const PrimExpr& i) {
    const ir::PrimVar x = ir::MakePrimVar("x");
    const PrimExpr even = ir::Equal(ir::FloorMod(x, Int64(2)), Int64(0));
    const Stmt advance = ir::Make<ir::LetStmtNode>(
        x, Load(cell, {zero}),
        ir::MakeSeq({Store(cell, ir::Select(even, ir::FloorDiv(x, Int64(2)), x * 3 + 1), {zero}),
                     Store(cell, Load(cell, {one}) + 1, {one})}));
    const Stmt loop = ir::Make<ir::WhileNode>(Load(cell, {zero}) > Int64(1), advance);
    const Stmt body =
        ir::MakeSeq({Store(cell, Load(start, {i}), {zero}), Store(cell, Int64(0), {one}), loop,
                     Stmt(ir::Make<ir::IfStmtNode>(Load(start, {i}) < Int64(1), Store(steps, Int64(-1), {i}),
                                                   Store(steps, Load(cell, {one}), {i})))});
    return Stmt(ir::Make<ir::AllocateNode>(cell, body));
  });
  Kernel kernel(Function({start, steps}, collatz));
  Tensor<int64_t> starts = {27, 0, 6}, counts(3);
  CHECK(kernel.Run({starts.data(), counts.data()}) == 0);
  CHECK(counts == Tensor<int64_t>{111, -1, 8});
}

TEST_CASE("workspaces lie one behind the other; the formula covers them") {
  const ir::PrimVar n = ir::MakePrimVar("n");
  const ir::Buffer in = ir::MakeBuffer("in", kF32, {n});
  const ir::Buffer out = ir::MakeBuffer("out", kF32, {n});
  const ir::Buffer w0 = ir::MakeBuffer("w0", kF32, {n});
  const ir::Buffer w1 = ir::MakeBuffer("w1", DataType::Bool(), {n});
  const auto over_n = [&](const std::function<Stmt(const PrimExpr&)>& f) { return Loop(n, f); };
  Stmt body = ir::MakeSeq({
      over_n([&](const PrimExpr& i) { return Store(w0, Load(in, {i}) * Load(in, {i}), {i}); }),
      over_n([&](const PrimExpr& i) { return Store(w1, Load(in, {i}) > ir::FloatImm(kF32, 2), {i}); }),
      Loop(
          n,
          [&](const PrimExpr& i) {
            return Store(out, ir::Select(Load(w1, {i}), Load(w0, {i}), ir::FloatImm(kF32, 0)), {i});
          },
          ir::ForKind::kParallel),
  });
  body = ir::Make<ir::AllocateNode>(w0, ir::Make<ir::AllocateNode>(w1, body));
  Kernel kernel(Function({in, out}, body));
  const int64_t five = 5;
  CHECK(*kernel.compiled.workspace.Evaluate({&five, 1}) == 64 + 64);
  const int64_t hundred = 100;
  CHECK(*kernel.compiled.workspace.Evaluate({&hundred, 1}) == 448 + 128);
  Tensor<float> input = Iota(100), output(100);
  CHECK(kernel.Run({input.data(), output.data()}, {100}) == 0);
  CHECK(output[1] == 0);
  CHECK(output[99] == 10000);
}

TEST_CASE("an output may lie in the memory of the input that it may share") {
  const ir::Buffer in = ir::MakeBuffer("in", kF32, {Int64(64)});
  const ir::Buffer out = ir::MakeBuffer("out", kF32, {Int64(64)});
  KernelSource source = Source(
      "reverse_pairs",
      Function({in, out}, Loop(Int64(32), [&](const PrimExpr& i) {
                 // Both loads stand before the stores, which may not move above them.
                 const ir::PrimVar a = ir::MakePrimVar("a", kF32), b = ir::MakePrimVar("b", kF32);
                 return Stmt(ir::Make<ir::LetStmtNode>(
                     a, Load(in, {i * 2}),
                     ir::Make<ir::LetStmtNode>(b, Load(in, {i * 2 + 1}),
                                               ir::MakeSeq({Store(out, b, {i * 2}), Store(out, a, {i * 2 + 1})}))));
               })));
  source.description.kernel.params[1].in_place = 0;
  Result<KernelImage> image = CompileKernels({&source, 1}, TargetNamed("x86-64-v3"));
  REQUIRE(image.ok());
  LoadedImage loaded(image->elf);
  Tensor<float> data = Iota(64);
  KernelContext context(nullptr, nullptr);
  void* buffers[] = {data.data(), data.data()};
  CHECK(context.Call(loaded.Entry(image->kernels[0].offset), buffers, nullptr) == 0);
  for (int i = 0; i < 64; i += 2) CHECK((data[i] == i + 2 && data[i + 1] == i + 1));
}

TEST_CASE("external functions get pointers and integers; their code ends the kernel") {
  const ir::Buffer in = ir::MakeBuffer("in", kF32, {Int64(4)});
  const ir::PrimVar scale = ir::MakePrimVar("scale", kF32), count = ir::MakePrimVar("count", DataType::Int(32));
  const PrimExpr call =
      ir::Make<ir::PrimCallNode>(DataType::Int(32), ir::Intrinsic::kCallExtern,
                                 std::vector<PrimExpr>{ir::StringImm("record"), in->data, count, scale});
  Kernel kernel(Function({in}, ir::Make<ir::EvaluateNode>(call), {scale, count}));
  CHECK(kernel.description.externals == std::vector<std::string>{"record"});
  CHECK(kernel.description.kernel.effects == vm::kAllEffects);
  struct Seen {
    void* buffer = nullptr;
    int64_t ints[2] = {};
    int32_t code = 0;
  } seen;
  kernel.external_user_data = &seen;
  kernel.external = [](void* user, const IngotKernelContext*, int32_t index, void* const* buffers,
                       const int64_t* ints) -> int32_t {
    auto* record = static_cast<Seen*>(user);
    if (index != 0) return 99;
    record->buffer = buffers[0];
    record->ints[0] = ints[0];
    record->ints[1] = ints[1];
    return record->code;
  };
  Tensor<float> input(4);
  CHECK(kernel.Run({input.data()}, {0x40490FDB, -3}) == 0);
  CHECK(seen.buffer == input.data());
  CHECK(seen.ints[0] == -3);
  CHECK(seen.ints[1] == 0x40490FDB);
  seen.code = 77;
  CHECK(kernel.Run({input.data()}, {0, 0}) == 77);
}

TEST_CASE("loops that LLVM turns into memset, memcpy and memmove need no library") {
  const DataType u8 = DataType::UInt(8);
  const ir::PrimVar n = ir::MakePrimVar("n");
  const ir::Buffer out = ir::MakeBuffer("out", u8, {n});
  const ir::Buffer in = ir::MakeBuffer("in", u8, {Int64(1000)});
  const ir::Buffer local = ir::MakeBuffer("local", u8, {Int64(1000)}, "local");
  const Stmt set = Loop(n, [&](const PrimExpr& i) { return Store(out, ir::IntImm(u8, 9), {i}); });
  const Stmt move = Loop(n - 1, [&](const PrimExpr& i) { return Store(out, Load(out, {i + 1}), {i}); });
  const Stmt copy = Loop(Int64(1000), [&](const PrimExpr& i) { return Store(local, Load(in, {i}), {i}); });
  const Stmt use = Loop(n, [&](const PrimExpr& i) { return Store(out, Load(local, {Int64(999) - i}), {i}); });
  CodegenOptions options;
  options.emit_llvm = true;
  Kernel setting(Function({out}, set), TargetNamed("x86-64-v3"), options);
  Kernel moving(Function({out}, move), TargetNamed("x86-64-v3"), options);
  Kernel copying(Function({in, out}, ir::Make<ir::AllocateNode>(local, ir::MakeSeq({copy, use}))),
                 TargetNamed("x86-64-v3"), options);
  CHECK(Count(setting.compiled.llvm, "call void @llvm.memset") == 1);
  CHECK(Count(moving.compiled.llvm, "call void @llvm.memmove") == 1);
  CHECK(Count(copying.compiled.llvm, "call void @llvm.memcpy") == 1);
  Tensor<uint8_t> input(1000);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<uint8_t>(i * 7);
  for (int64_t size : {1, 2, 31, 32, 33, 34, 100, 1000}) {
    CAPTURE(size);
    Tensor<uint8_t> output(size + 1, 77);
    CHECK(copying.Run({input.data(), output.data()}, {size}) == 0);
    CHECK(std::equal(input.rbegin(), input.rbegin() + size, output.begin()));
    CHECK(moving.Run({output.data()}, {size}) == 0);
    CHECK(std::equal(input.rbegin() + 1, input.rbegin() + size, output.begin()));
    CHECK(setting.Run({output.data()}, {size}) == 0);
    CHECK(std::all_of(output.begin(), output.end() - 1, [](uint8_t x) { return x == 9; }));
    CHECK(output.back() == 77);
  }
}

}  // namespace
}  // namespace ingot::codegen::testing
