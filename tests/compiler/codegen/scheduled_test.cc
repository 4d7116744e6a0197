// Tensor expressions through the default schedule, lowering and code generation, against the interpreter on the
// unscheduled function: for v3 and, where the machine has it, v4; with static and symbolic extents; on one thread and
// on several.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "compiler/interp/interpreter.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/te/tensor.h"
#include "compiler/transform/tensor/lowered.h"
#include "runtime/thread_pool.h"
#include "tests/compiler/codegen/jit.h"

namespace ingot::codegen::testing {
namespace {

using ir::Int64;
using ir::PrimExpr;

const DataType kF32 = DataType::Float(32);

// Both levels, and v4's schedules compiled to v3's instructions, so that v4's tiles and vectors are tested on every
// machine.
std::vector<Target> Targets() {
  const Target v3 = TargetNamed("x86-64-v3");
  const Target v4 = TargetNamed("x86-64-v4");
  Target mixed = v4;
  mixed.name = "x86-64-v4's schedules in x86-64-v3's instructions";
  mixed.llvm_features = v3.llvm_features;
  mixed.required_features = v3.required_features;
  return {v3, v4, mixed};
}

// Runs the function on float32 buffers whose extents follow from the integer arguments, with the last one as result.
void CheckFunction(const std::string& name, const ir::PrimFunc& function, const std::vector<int64_t>& ints,
                   float tolerance) {
  CAPTURE(name);
  for (const Target& target : Targets()) {
    CAPTURE(target.name);
    Result<schedule::ScheduledFunction> scheduled = schedule::ApplyDefaultSchedule(function, target);
    REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().ToString());
    Result<ir::PrimFunc> lowered = transform::LowerPrimFunc(scheduled->function, target);
    REQUIRE_MESSAGE(lowered.ok(), lowered.status().ToString());
    Result<KernelDescription> description = DescribeKernel("kernel", function);
    REQUIRE_MESSAGE(description.ok(), description.status().ToString());
    Kernel kernel(*lowered, target);
    if (!HostRuns(target)) {
      MESSAGE("SKIP: this machine does not run " << target.name);
      continue;
    }
    std::vector<Tensor<float>> buffers;
    std::vector<std::vector<int64_t>> dims;
    uint32_t seed = 1;
    for (const vm::KernelParam& param : description->kernel.params) {
      int64_t count = 1;
      dims.emplace_back();
      for (const DimCode& extent : param.extents) {
        Result<int64_t> value = extent.Evaluate(ints);
        REQUIRE(value.ok());
        dims.back().push_back(*value);
        count *= *value;
      }
      Tensor<float> values(static_cast<size_t>(count));
      for (float& value : values) {
        seed = seed * 1664525u + 1013904223u;
        value = static_cast<float>(static_cast<int32_t>(seed >> 8) % 2001 - 1000) / 500.0f;
      }
      buffers.push_back(std::move(values));
    }
    std::vector<Tensor<float>> expected = buffers;
    std::vector<interp::HostBuffer> host;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const bool is_output = i + 1 == buffers.size();
      host.push_back({kF32, dims[i], std::as_writable_bytes(std::span(expected[i])), !is_output});
    }
    const Status interpreted = interp::Interpret(function, host);
    REQUIRE_MESSAGE(interpreted.ok(), interpreted.ToString());
    Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::Create(3);
    REQUIRE(pool.ok());
    Tensor<float> serial;
    for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), pool->get()}) {
      std::vector<void*> pointers;
      for (Tensor<float>& buffer : buffers) pointers.push_back(buffer.data());
      std::fill(buffers.back().begin(), buffers.back().end(), NAN);
      REQUIRE(kernel.Run(pointers, ints, threads) == 0);
      double worst = 0;
      for (size_t i = 0; i < buffers.back().size(); ++i) {
        const double difference = std::fabs(double{buffers.back()[i]} - double{expected.back()[i]});
        if (!(difference <= worst)) worst = difference;
      }
      CHECK(worst <= tolerance);
      if (threads == nullptr) serial = buffers.back();
    }
    const bool is_same =
        serial.empty() || std::memcmp(serial.data(), buffers.back().data(), serial.size() * sizeof(float)) == 0;
    CHECK(is_same);
  }
}

te::Tensor Matmul(const te::Tensor& a, const te::Tensor& b) {
  const ir::IterVar k = te::ReduceAxis(a.shape()[1], "k");
  return te::Compute(
      {a.shape()[0], b.shape()[1]},
      [&](const te::Indices& i) { return te::Sum(a(i[0], PrimExpr(k->var)) * b(PrimExpr(k->var), i[1]), {k}); },
      "matmul");
}

TEST_CASE("scheduled matrix products with an epilogue") {
  for (const auto& [m, n, k] :
       std::vector<std::array<int64_t, 3>>{{1, 10, 784}, {7, 33, 19}, {64, 64, 64}, {37, 256, 100}}) {
    for (bool symbolic : {false, true}) {
      const ir::PrimVar rows = ir::MakePrimVar("m");
      const PrimExpr extent = symbolic ? PrimExpr(rows) : Int64(m);
      const te::Tensor a = te::Placeholder({extent, Int64(k)}, kF32, "a");
      const te::Tensor b = te::Placeholder({Int64(k), Int64(n)}, kF32, "b");
      const te::Tensor bias = te::Placeholder({Int64(n)}, kF32, "bias");
      const te::Tensor product = Matmul(a, b);
      const te::Tensor sum = te::Compute(
          product.shape(), [&](const te::Indices& i) { return product(i[0], i[1]) + bias(i[1]); }, "add");
      const te::Tensor out = te::Compute(
          product.shape(), [&](const te::Indices& i) { return ir::Max(sum(i[0], i[1]), ir::FloatImm(kF32, 0)); },
          "relu");
      CheckFunction("matmul " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k),
                    te::CreatePrimFunc({a, b, bias, out}), symbolic ? std::vector<int64_t>{m} : std::vector<int64_t>{},
                    2e-3f);
    }
  }
}

// How the right-hand side of a product lies in memory.
enum class Right { kPanels, kRows, kColumns };

// relu(a[batch, m, k] * b + bias[n]) for every dimension either constant or symbolic.
ir::PrimFunc Product(Right right, bool batched, const std::array<int64_t, 3>& mnk, const std::array<bool, 3>& symbolic,
                     std::vector<int64_t>& ints) {
  const std::array<const char*, 3> names{"m", "n", "k"};
  std::array<PrimExpr, 3> dims;
  for (size_t i = 0; i < 3; ++i) dims[i] = symbolic[i] ? PrimExpr(ir::MakePrimVar(names[i])) : Int64(mnk[i]);
  const auto& [m, n, k] = dims;
  const int64_t panels = (mnk[1] + 15) / 16;
  std::vector<PrimExpr> left{m, k};
  std::vector<PrimExpr> shape = right == Right::kPanels ? std::vector<PrimExpr>{Int64(panels), k, Int64(16)}
                                : right == Right::kRows ? std::vector<PrimExpr>{k, n}
                                                        : std::vector<PrimExpr>{n, k};
  std::vector<PrimExpr> out{m, n};
  for (std::vector<PrimExpr>* batch : {&left, &shape, &out}) {
    if (batched && (batch != &shape || right != Right::kPanels)) batch->insert(batch->begin(), Int64(3));
  }
  const te::Tensor a = te::Placeholder(left, kF32, "a"), b = te::Placeholder(shape, kF32, "b");
  const te::Tensor bias = te::Placeholder({n}, kF32, "bias");
  const ir::IterVar r = te::ReduceAxis(k, "k");
  const te::Tensor product = te::Compute(
      out,
      [&](const te::Indices& i) {
        const PrimExpr row = i[i.size() - 2], column = i.back();
        std::vector<PrimExpr> at{row, r->var}, weight{r->var, column};
        if (right == Right::kColumns) weight = {column, r->var};
        if (right == Right::kPanels) {
          weight = {ir::FloorDiv(column, Int64(16)), r->var, ir::FloorMod(column, Int64(16))};
        }
        if (batched) at.insert(at.begin(), i[0]);
        if (batched && right != Right::kPanels) weight.insert(weight.begin(), i[0]);
        return te::Sum(a(at) * b(weight), {r});
      },
      "matmul");
  const te::Tensor relu = te::Compute(
      out, [&](const te::Indices& i) { return ir::Max(product(i) + bias(i.back()), ir::FloatImm(kF32, 0)); }, "relu");
  // Integer arguments by first occurrence: m and k of a, then n.
  for (size_t i : {0, 2, 1}) {
    if (symbolic[i]) ints.push_back(mnk[i]);
  }
  return te::CreatePrimFunc({a, b, bias, relu});
}

TEST_CASE("scheduled products over odd sizes, constant and symbolic") {
  const std::vector<std::array<int64_t, 3>> sizes{{1, 140, 5},  {3, 70, 4},   {13, 31, 11},
                                                  {200, 20, 3}, {29, 144, 5}, {0, 18, 4}};
  for (const auto& mnk : sizes) {
    for (Right right : {Right::kPanels, Right::kRows, Right::kColumns}) {
      for (bool batched : {false, true}) {
        const std::string name = std::to_string(mnk[0]) + "x" + std::to_string(mnk[1]) + "x" + std::to_string(mnk[2]) +
                                 " right " + std::to_string(static_cast<int>(right)) + (batched ? " batched" : "");
        for (const std::array<bool, 3>& symbolic :
             {std::array{false, false, false}, std::array{true, false, false}, std::array{true, true, true}}) {
          if (symbolic[1] && right == Right::kPanels) continue;  // a weight has constant dims
          if (batched && mnk[0] != 13) continue;                 // each is a compilation for three targets
          std::vector<int64_t> ints;
          const ir::PrimFunc function = Product(right, batched, mnk, symbolic, ints);
          CheckFunction(name + (symbolic[1]   ? " symbolic"
                                : symbolic[0] ? " symbolic rows"
                                              : ""),
                        function, ints, 1e-3f);
        }
      }
    }
  }
}

TEST_CASE("scheduled products whose sums are cut into blocks") {
  for (const std::array<bool, 3>& symbolic : {std::array{false, false, false}, std::array{true, false, false}}) {
    std::vector<int64_t> ints;
    const ir::PrimFunc function = Product(Right::kPanels, false, {9, 35, 4608}, symbolic, ints);
    CheckFunction(symbolic[0] ? "symbolic rows" : "constant", function, ints, 5e-2f);
  }
}

TEST_CASE("scheduled products of a batch with a large weight") {
  std::vector<int64_t> ints;
  const ir::PrimFunc function = Product(Right::kPanels, true, {8, 148, 512}, {false, false, false}, ints);
  CheckFunction("batched", function, ints, 2e-2f);
}

TEST_CASE("scheduled softmax") {
  const ir::PrimVar n = ir::MakePrimVar("n");
  const te::Tensor x = te::Placeholder({n, Int64(10)}, kF32, "x");
  const ir::IterVar k = te::ReduceAxis(Int64(10), "k"), j = te::ReduceAxis(Int64(10), "j");
  const te::Tensor greatest = te::Compute(
      {n}, [&](const te::Indices& i) { return te::ReduceMax(x(i[0], PrimExpr(k->var)), {k}); }, "max");
  const te::Tensor exp = te::Compute(
      x.shape(),
      [&](const te::Indices& i) { return ir::CallIntrinsic(ir::Intrinsic::kExp, {x(i[0], i[1]) - greatest(i[0])}); },
      "exp");
  const te::Tensor sum = te::Compute(
      {n}, [&](const te::Indices& i) { return te::Sum(exp(i[0], PrimExpr(j->var)), {j}); }, "sum");
  const te::Tensor out = te::Compute(
      x.shape(), [&](const te::Indices& i) { return exp(i[0], i[1]) / sum(i[0]); }, "softmax");
  for (int64_t rows : {0, 1, 9}) CheckFunction("softmax", te::CreatePrimFunc({x, out}), {rows}, 1e-6f);
}

TEST_CASE("scheduled convolution with padding, and pooling") {
  const te::Tensor x = te::Placeholder({Int64(2), Int64(3), Int64(9), Int64(9)}, kF32, "x");
  const te::Tensor w = te::Placeholder({Int64(8), Int64(3), Int64(3), Int64(3)}, kF32, "w");
  const te::Tensor padded = te::Compute(
      {Int64(2), Int64(3), Int64(11), Int64(11)},
      [&](const te::Indices& i) {
        const PrimExpr inside =
            ir::And(ir::And(i[2] >= Int64(1), i[2] < Int64(10)), ir::And(i[3] >= Int64(1), i[3] < Int64(10)));
        return ir::IfThenElse(inside, x(i[0], i[1], i[2] - 1, i[3] - 1), ir::FloatImm(kF32, 0));
      },
      "pad");
  const ir::IterVar c = te::ReduceAxis(Int64(3), "c"), p = te::ReduceAxis(Int64(3), "p"),
                    q = te::ReduceAxis(Int64(3), "q");
  const te::Tensor conv = te::Compute(
      {Int64(2), Int64(8), Int64(9), Int64(9)},
      [&](const te::Indices& i) {
        return te::Sum(padded(i[0], PrimExpr(c->var), i[2] + p->var, i[3] + q->var) *
                           w(i[1], PrimExpr(c->var), PrimExpr(p->var), PrimExpr(q->var)),
                       {c, p, q});
      },
      "conv");
  CheckFunction("conv", te::CreatePrimFunc({x, w, conv}), {}, 1e-4f);
  const ir::IterVar u = te::ReduceAxis(Int64(2), "u"), v = te::ReduceAxis(Int64(2), "v");
  const te::Tensor pool = te::Compute(
      {Int64(2), Int64(3), Int64(4), Int64(4)},
      [&](const te::Indices& i) {
        return te::ReduceMax(x(i[0], i[1], i[2] * 2 + u->var, i[3] * 2 + v->var), {u, v});
      },
      "pool");
  CheckFunction("pool", te::CreatePrimFunc({x, pool}), {}, 0);
}

}  // namespace
}  // namespace ingot::codegen::testing
