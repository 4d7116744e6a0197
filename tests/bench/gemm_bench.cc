// GEMM through an explicit register tile, compiled by codegen and run in this process: what the emitted code reaches
// without packing and blocking, beside the FMA peak that the same machine shows in registers.
#include <benchmark/benchmark.h>

#include "tests/compiler/codegen/jit.h"

namespace ingot::codegen::testing {
namespace {

// 12 independent chains of fused multiply-adds on registers, 8 floats each.
void FmaPeak(benchmark::State& state) {
  const DataType f32 = DataType::Float(32);
  const ir::Buffer out = ir::MakeBuffer("out", f32, {ir::Int64(12), ir::Int64(8)});
  const ir::Buffer in = ir::MakeBuffer("in", f32, {ir::Int64(2), ir::Int64(8)});
  const ir::Buffer acc = ir::MakeBuffer("acc", f32, {ir::Int64(12), ir::Int64(8)}, "local");
  constexpr int64_t kSteps = 100000;
  const auto each = [&](const std::function<ir::Stmt(std::vector<ir::PrimExpr>)>& f) {
    std::vector<ir::Stmt> stmts;
    for (int i = 0; i < 12; ++i) stmts.push_back(f({ir::Int64(i), Ramp(ir::Int64(0), 8)}));
    return ir::MakeSeq(std::move(stmts));
  };
  const ir::PrimVar x = ir::MakePrimVar("x", f32.with_lanes(8)), y = ir::MakePrimVar("y", f32.with_lanes(8));
  const ir::Stmt body = ir::MakeSeq({
      each([&](auto at) { return Store(acc, x, at); }),
      Loop(ir::Int64(kSteps),
           [&](const ir::PrimExpr&) { return each([&](auto at) { return Store(acc, y + Load(acc, at) * x, at); }); }),
      each([&](auto at) { return Store(out, Load(acc, at), at); }),
  });
  const auto row = [&](int i) { return Load(in, {ir::Int64(i), Ramp(ir::Int64(0), 8)}); };
  Kernel kernel(
      Function({in, out}, ir::Make<ir::LetStmtNode>(
                              x, row(0), ir::Make<ir::LetStmtNode>(y, row(1), ir::Make<ir::AllocateNode>(acc, body)))));
  Tensor<float> input(16, 0.5f), output(96);
  for (auto _ : state) kernel.Run({input.data(), output.data()});
  state.counters["GFLOP/s"] = benchmark::Counter(2.0 * 12 * 8 * kSteps, benchmark::Counter::kIsIterationInvariantRate,
                                                 benchmark::Counter::kIs1000);
}
BENCHMARK(FmaPeak);

// B fits the second-level cache; A is read in place.
void Gemm(benchmark::State& state) {
  const int64_t m = 240, n = 16 * state.range(0), k = 256;
  Kernel kernel(TiledGemm(m, n, k, 6, 2, 8, false));
  Tensor<float> a(m * k, 0.5f), b(k * n, 0.25f), c(m * n);
  for (auto _ : state) kernel.Run({a.data(), b.data(), c.data()});
  state.counters["GFLOP/s"] = benchmark::Counter(
      2.0 * static_cast<double>(m * n * k), benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}
BENCHMARK(Gemm)->Arg(1)->Arg(16);

void Unary(benchmark::State& state, ir::Intrinsic op) {
  constexpr int64_t kCount = 4096;
  const DataType f32 = DataType::Float(32);
  Kernel kernel(Elementwise({f32}, f32, kCount, 8, [&](const auto& x) { return ir::CallIntrinsic(op, {x[0]}); }));
  Tensor<float> input(kCount, 0.7f), output(kCount);
  for (auto _ : state) kernel.Run({input.data(), output.data()});
  state.SetItemsProcessed(state.iterations() * kCount);
}
BENCHMARK_CAPTURE(Unary, exp, ir::Intrinsic::kExp);
BENCHMARK_CAPTURE(Unary, tanh, ir::Intrinsic::kTanh);
BENCHMARK_CAPTURE(Unary, sigmoid, ir::Intrinsic::kSigmoid);
BENCHMARK_CAPTURE(Unary, erf, ir::Intrinsic::kErf);
BENCHMARK_CAPTURE(Unary, log, ir::Intrinsic::kLog);
BENCHMARK_CAPTURE(Unary, sin, ir::Intrinsic::kSin);

}  // namespace
}  // namespace ingot::codegen::testing
