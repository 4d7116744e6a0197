// Products of bytes by tiles: nests of kAmxProduct as the rules write them and as they could, and whole products, where
// the machine has AMX; elsewhere they are compiled alone.
#include <doctest/doctest.h>

#include <random>

#include "compiler/op/topi/byte_products.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/schedule/device_loops.h"
#include "compiler/te/tensor.h"
#include "compiler/transform/tensor/lowered.h"
#include "runtime/cpu_features.h"
#include "runtime/thread_pool.h"
#include "tests/compiler/codegen/jit.h"

namespace ingot::codegen::testing {
namespace {

using ir::Int64;
using ir::PrimExpr;
using ir::Stmt;

const DataType kWord = DataType::Int(32);

Target Amx() { return TargetNamed("x86-64-v4,+avx512vnni,+amx-tile,+amx-int8"); }

bool HostHasTiles() {
  if (HostRuns(Amx()) && RequestAmxPermission().ok()) return true;
  MESSAGE("SKIP: this machine has no AMX");
  return false;
}

Tensor<int32_t> Words(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor<int32_t> words(static_cast<size_t>(count));
  for (int32_t& word : words)
    word = random() % 4 == 0 ? static_cast<int32_t>(0x80FF7F80u) : static_cast<int32_t>(random());
  return words;
}

// What T.dot_bytes adds up to, row by row: a[rows, depth], b[panels, depth, 16], sums[rows, columns].
void AddProducts(int64_t rows, int64_t depth, int64_t columns, const Tensor<int32_t>& a, const Tensor<int32_t>& b,
                 Tensor<int32_t>* sums) {
  for (int64_t y = 0; y < rows; ++y) {
    for (int64_t x = 0; x < columns; ++x) {
      auto sum = static_cast<uint32_t>((*sums)[y * columns + x]);
      for (int64_t k = 0; k < depth; ++k) {
        const int32_t left = a[y * depth + k], right = b[(x / 16 * depth + k) * 16 + x % 16];
        for (int shift = 0; shift < 32; shift += 8) {
          sum +=
              static_cast<uint32_t>(int32_t{static_cast<uint8_t>(left >> shift)} * static_cast<int8_t>(right >> shift));
        }
      }
      (*sums)[y * columns + x] = static_cast<int32_t>(sum);
    }
  }
}

struct Form {
  PrimExpr rows, depth;
  int64_t panels = 1, columns = 16;
  bool starts = false;
};

struct Buffers {
  ir::Buffer a, b, c;
  Buffers(ir::Buffer of_a, ir::Buffer of_b, ir::Buffer of_c)
      : a(std::move(of_a)), b(std::move(of_b)), c(std::move(of_c)) {}
  explicit Buffers(const Form& form)
      : a(ir::MakeBuffer("A", kWord, {form.rows, form.depth})),
        b(ir::MakeBuffer("B", kWord, {Int64(form.panels), form.depth, Int64(16)})),
        c(ir::MakeBuffer("C", kWord, {form.rows, Int64(form.panels == 1 ? form.columns : form.panels * 16)})) {}
};

// The nest over rows, panels, columns and words, or over words outermost where sums do not start in it.
Stmt Nest(const Form& form, const Buffers& buffers, bool words_first = false) {
  const auto add = [&](const PrimExpr& y, const PrimExpr& p, const PrimExpr& x, const PrimExpr& k) {
    const std::vector<PrimExpr> at{y, p * 16 + x};
    return Store(buffers.c,
                 Load(buffers.c, at) +
                     ir::CallIntrinsic(ir::Intrinsic::kDotBytes, {Load(buffers.a, {y, k}), Load(buffers.b, {p, k, x})}),
                 at);
  };
  const auto sums = [&](const std::function<Stmt(const PrimExpr&, const PrimExpr&, const PrimExpr&)>& body) {
    return Loop(form.rows, [&](const PrimExpr& y) {
      if (form.panels == 1) return Loop(Int64(form.columns), [&](const PrimExpr& x) { return body(y, Int64(0), x); });
      return Loop(Int64(form.panels), [&](const PrimExpr& p) {
        return Loop(Int64(form.columns), [&](const PrimExpr& x) { return body(y, p, x); });
      });
    });
  };
  Stmt nest;
  if (words_first) {
    nest = Loop(form.depth, [&](const PrimExpr& k) {
      return sums([&](const PrimExpr& y, const PrimExpr& p, const PrimExpr& x) { return add(y, p, x, k); });
    });
  } else {
    nest = sums([&](const PrimExpr& y, const PrimExpr& p, const PrimExpr& x) {
      const Stmt all = Loop(form.depth, [&](const PrimExpr& k) { return add(y, p, x, k); });
      return form.starts ? ir::MakeSeq({Store(buffers.c, ir::MakeConst(kWord, 0), {y, p * 16 + x}), all}) : all;
    });
  }
  ir::ForNode outer = *ir::As<ir::ForNode>(nest);
  outer.annotations = ir::Attrs{{schedule::kAmxProduct, int64_t{1}}};
  return ir::Make<ir::ForNode>(std::move(outer));
}

TEST_CASE("nests of products of bytes are tile instructions, for every number of rows, columns and words") {
  const bool runs = HostHasTiles();
  for (const bool starts : {false, true}) {
    for (const auto& [rows, panels, columns, depth] : std::vector<std::array<int64_t, 4>>{{16, 1, 16, 16},
                                                                                          {32, 2, 16, 64},
                                                                                          {1, 1, 1, 1},
                                                                                          {1, 4, 16, 17},
                                                                                          {16, 4, 16, 33},
                                                                                          {17, 2, 16, 15},
                                                                                          {31, 1, 15, 48},
                                                                                          {32, 1, 3, 40},
                                                                                          {5, 3, 16, 31}}) {
      CAPTURE(starts);
      CAPTURE(rows);
      CAPTURE(panels);
      CAPTURE(columns);
      CAPTURE(depth);
      const int64_t width = panels == 1 ? columns : panels * 16;
      const Form form{Int64(rows), Int64(depth), panels, columns, starts};
      const Buffers buffers(form);
      for (const bool words_first : {false, true}) {
        if (words_first && starts) continue;
        Kernel kernel(Function({buffers.a, buffers.b, buffers.c}, Nest(form, buffers, words_first)), Amx());
        if (!runs) continue;
        Tensor<int32_t> a = Words(rows * depth, 1), b = Words(panels * depth * 16, 2), c = Words(rows * width, 3);
        Tensor<int32_t> expected = c;
        if (starts) std::fill(expected.begin(), expected.end(), 0);
        AddProducts(rows, depth, width, a, b, &expected);
        REQUIRE(kernel.Run({a.data(), b.data(), c.data()}) == 0);
        CHECK(std::equal(c.begin(), c.end(), expected.begin()));
      }
    }
  }
}

TEST_CASE("tiles of symbolic rows and words, between tasks that leave them in other forms") {
  const ir::PrimVar m = ir::MakePrimVar("m"), k = ir::MakePrimVar("k");
  const Form some{ir::Min(m, Int64(16)), k}, many{Int64(32), k, 2, 16, true};
  const Buffers of_some(Form{m, k}), of_many(many);
  const ir::Buffer parts = ir::MakeBuffer("P", kWord, {Int64(4), Int64(32), Int64(32)});
  // Four tasks that use the tiles, between nests of one form.
  const Stmt tasks = Loop(
      Int64(4),
      [&](const PrimExpr& task) {
        Buffers own = of_many;
        own.c = ir::MakeBuffer("own", kWord, {Int64(32), Int64(32)}, "local");
        const Stmt copy = Loop(Int64(32), [&](const PrimExpr& y) {
          return Loop(Int64(32), [&](const PrimExpr& x) { return Store(parts, Load(own.c, {y, x}), {task, y, x}); });
        });
        return Stmt(ir::Make<ir::AllocateNode>(own.c, ir::MakeSeq({Nest(many, own), copy})));
      },
      ir::ForKind::kParallel);
  const ir::PrimFunc function = Function({of_some.a, of_some.b, of_some.c, of_many.a, of_many.b, parts},
                                         ir::MakeSeq({Nest(some, of_some), Loop(Int64(2), [&](const PrimExpr&) {
                                                        return ir::MakeSeq({tasks, Nest(some, of_some)});
                                                      })}));
  Kernel kernel(function, Amx());
  if (!HostHasTiles()) return;
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::Create(3);
  REQUIRE(pool.ok());
  for (const int64_t rows : {0, 1, 9, 16}) {
    for (const int64_t depth : {0, 1, 16, 37}) {
      CAPTURE(rows);
      CAPTURE(depth);
      Tensor<int32_t> a = Words(rows * depth, 1), b = Words(depth * 16, 2), c = Words(rows * 16, 3);
      Tensor<int32_t> more_a = Words(32 * depth, 4), more_b = Words(2 * depth * 16, 5), results(4 * 32 * 32);
      Tensor<int32_t> expected = c, of_task(32 * 32);
      for (int i = 0; i < 3; ++i) AddProducts(rows, depth, 16, a, b, &expected);
      AddProducts(32, depth, 32, more_a, more_b, &of_task);
      for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), pool->get()}) {
        Tensor<int32_t> sums = c;
        std::vector<int64_t> ints;
        for (const ir::PrimVar& var : KernelIntArguments(function)) {
          ints.push_back(var.get() == m.get() ? rows : depth);
        }
        REQUIRE(kernel.Run({a.data(), b.data(), sums.data(), more_a.data(), more_b.data(), results.data()}, ints,
                           threads) == 0);
        CHECK(std::equal(sums.begin(), sums.end(), expected.begin()));
        for (int task = 0; task < 4; ++task) {
          CHECK(std::equal(of_task.begin(), of_task.end(), results.begin() + task * 32 * 32));
        }
      }
    }
  }
}

TEST_CASE("nests of other forms are no products by tiles, and say why") {
  const auto refusal = [](const Form& form, const Buffers& buffers) {
    const KernelSource source = Source("kernel", Function({buffers.a, buffers.b, buffers.c}, Nest(form, buffers)));
    const Result<KernelImage> image = CompileKernels({&source, 1}, Amx(), {});
    return image.ok() ? std::string("compiled") : image.status().message();
  };
  const auto of = [&](const Form& form) { return refusal(form, Buffers(form)); };
  const auto says = [](const std::string& message, const char* part) {
    return message.find(part) != std::string::npos;
  };
  CHECK(says(of({Int64(33), Int64(16)}), "too many sums"));
  CHECK(says(of({Int64(17), Int64(16), 3}), "too many sums"));
  CHECK(says(of({Int64(16), Int64(16), 5}), "too many sums"));
  CHECK(says(of({Int64(16), Int64(16), 2, 15}), "have not 16 columns"));
  CHECK(says(of({PrimExpr(ir::MakePrimVar("m")), Int64(16)}), "may have more than 16 rows"));
  const Buffers usual(Form{Int64(16), Int64(16)});
  CHECK(says(refusal({Int64(16), Int64(-2)}, usual), "never runs"));
  CHECK(says(refusal({Int64(16), Int64(16), 1, -2}, usual), "never runs"));
  CHECK(says(refusal({Int64(int64_t{1} << 62), Int64(16)}, usual), "too many sums"));
  const auto with = [&](const std::function<void(Buffers&)>& change) {
    const Form form{Int64(16), Int64(16)};
    Buffers buffers(form);
    change(buffers);
    return refusal(form, buffers);
  };
  const auto bytes = [](const ir::Buffer& buffer) {
    return ir::MakeBuffer(buffer->name, DataType::Int(8), buffer->shape);
  };
  CHECK(says(with([&](Buffers& x) { x = {bytes(x.a), bytes(x.b), bytes(x.c)}; }), "are not int32"));
  CHECK(says(with([](Buffers& x) { x.a = x.c; }), "reads what it stores"));
  // Sums that several rows have.
  Buffers overlapping(Form{Int64(16), Int64(16), 2});
  overlapping.c = ir::MakeBuffer("C", kWord, {Int64(16), Int64(31)});
  CHECK(says(refusal(Form{Int64(16), Int64(16), 2}, overlapping), "rows of its sums overlap"));
  // Panels of 17 columns each.
  const Form form{Int64(16), Int64(16)};
  Buffers wide(form);
  wide.b = ir::MakeBuffer("B", kWord, {Int64(1), Int64(16), Int64(17)});
  CHECK(says(refusal(form, wide), "no rows of a panel"));
}

TEST_CASE("where sums are not started, no words are nothing: nothing is read, nothing is stored") {
  const ir::PrimVar k = ir::MakePrimVar("k");
  const Form form{Int64(16), k - Int64(5)};
  Buffers buffers(form);
  buffers.a = ir::MakeBuffer("A", kWord, {Int64(16), k});
  buffers.b = ir::MakeBuffer("B", kWord, {Int64(1), k, Int64(16)});
  Kernel kernel(Function({buffers.a, buffers.b, buffers.c}, Nest(form, buffers)), Amx());
  if (!HostHasTiles()) return;
  Tensor<int32_t> a = Words(16 * 5, 1), b = Words(5 * 16, 2), c = Words(16 * 16, 3);
  const Tensor<int32_t> before = c;
  for (const int64_t depth : {0, 3, 5}) {
    REQUIRE(kernel.Run({depth < 5 ? nullptr : a.data(), depth < 5 ? nullptr : b.data(), c.data()}, {depth}) == 0);
    CHECK(std::equal(c.begin(), c.end(), before.begin()));
  }
}

TEST_CASE("matrix products of bytes by a weight in panels") {
  const bool runs = HostHasTiles();
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::Create(3);
  REQUIRE(pool.ok());
  for (const auto& [rows, depth, columns] : std::vector<std::array<int64_t, 3>>{
           {8, 16, 16}, {85, 41, 79}, {33, 17, 70}, {64, 64, 64}, {46, 375, 89}, {15, 100, 130}, {100, 20, 10}}) {
    for (const bool symbolic : {false, true}) {
      CAPTURE(rows);
      CAPTURE(depth);
      CAPTURE(columns);
      CAPTURE(symbolic);
      const ir::PrimVar m = ir::MakePrimVar("m");
      const te::Tensor x = te::Placeholder({symbolic ? PrimExpr(m) : Int64(rows), Int64(depth)}, kWord, "x");
      const int64_t panels = (columns + 15) / 16;
      const te::Tensor weight = te::Placeholder({Int64(panels), Int64(depth), Int64(16)}, kWord, "weight");
      const ir::PrimFunc function = te::CreatePrimFunc({x, weight, op::topi::MatmulBytes(x, weight, columns)});
      const Result<schedule::ScheduledFunction> scheduled = schedule::ApplyDefaultSchedule(function, Amx());
      REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().ToString());
      const Result<ir::PrimFunc> lowered = transform::LowerPrimFunc(scheduled->function, Amx());
      REQUIRE_MESSAGE(lowered.ok(), lowered.status().ToString());
      Kernel kernel(*lowered, Amx());
      if (!runs) continue;
      for (const int64_t count :
           symbolic ? std::vector<int64_t>{0, 1, 15, 16, 31, 32, 33, 47, rows} : std::vector{rows}) {
        CAPTURE(count);
        Tensor<int32_t> a = Words(count * depth, 1), b = Words(panels * depth * 16, 2);
        Tensor<int32_t> expected(static_cast<size_t>(count * columns)), sums(expected.size());
        AddProducts(count, depth, columns, a, b, &expected);
        for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), pool->get()}) {
          std::fill(sums.begin(), sums.end(), -1);
          REQUIRE(kernel.Run({a.data(), b.data(), sums.data()},
                             symbolic ? std::vector<int64_t>{count} : std::vector<int64_t>{}, threads) == 0);
          CHECK(std::equal(sums.begin(), sums.end(), expected.begin()));
        }
      }
    }
  }
}

}  // namespace
}  // namespace ingot::codegen::testing
