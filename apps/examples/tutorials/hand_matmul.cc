// hand_matmul: a product of two 1024 x 1024 float32 matrices, scheduled by hand with a micro-kernel for this machine's
// vectors, saved as an executable. tests/acceptance/hand_matmul.py times it beside ONNX Runtime.
//
//   for each panel of 16 (32) columns of B:
//     copy the panel, its rows side by side
//     for each tile of 6 (14) rows of A:   tile of C = tile of A times panel   (the micro-kernel, k inside)
//     the rows that are left:              a smaller micro-kernel
//
//   hand_matmul OUT.ingot      prints the trace
#include <cstdio>

#include "apps/examples/tutorials/tutorial.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/te/tensor.h"
#include "vm/program/program_codec.h"

using namespace ingot;  // NOLINT: an example
using schedule::BlockRV;
using schedule::kRest;
using schedule::LoopRV;
using schedule::LoopRVs;

namespace {

constexpr int64_t kSize = 1024;

ir::PrimFunc Product() {
  const te::Tensor a = te::Placeholder({ir::Int64(kSize), ir::Int64(kSize)}, DataType::Float(32), "A");
  const te::Tensor b = te::Placeholder({ir::Int64(kSize), ir::Int64(kSize)}, DataType::Float(32), "B");
  const ir::IterVar k = te::ReduceAxis(ir::Int64(kSize), "k");
  const te::Tensor c =
      te::Compute(a.shape(), [&](const te::Indices& i) { return te::Sum(a(i[0], k->var) * b(k->var, i[1]), {k}); }, "C",
                  {"i", "j"});
  return te::CreatePrimFunc({a, b, c});
}

schedule::Schedule ByHand(const Target& target) {
  schedule::Schedule s = tutorial::Need(schedule::Schedule::Create(Product()));
  const int64_t lanes = target.vector_lanes(32);
  const int64_t rows = lanes == 16 ? 14 : 6, columns = 2 * lanes;
  const auto kernel = [&](int64_t tile_rows) {
    return "gemm_f32_" + std::to_string(tile_rows) + "x" + std::to_string(columns) + "_v" + std::to_string(lanes) +
           "_init";
  };
  const BlockRV product = s.GetBlock("C");
  const BlockRV panel = s.CacheRead(product, 1, "global");
  const LoopRVs ijk = s.GetLoops(product);
  const LoopRVs j = s.Split(ijk[1], {kRest, columns});
  s.Reorder({j[0], ijk[0], j[1], ijk[2]});
  s.ComputeAt(panel, j[0]);
  const LoopRVs copied = s.GetLoops(panel);
  s.Vectorize(s.Split(copied.back(), {kRest, lanes})[1]);
  const schedule::Schedule::Parts i = s.LoopPartition(ijk[0], rows);
  const LoopRVs tiles = s.Split(i.main, {kRest, rows});
  s.Tensorize(tiles[1], kernel(rows));
  s.Tensorize(i.tail, kernel(kSize % rows));
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) tutorial::Die("usage: hand_matmul OUT.ingot");
  driver::JitOptions options;
  options.compile.target = tutorial::Need(ParseTarget("cpu:native"));
  const schedule::Schedule s = ByHand(options.compile.target.variants[0]);
  tutorial::Need(s.status());
  std::printf("%s", s.trace().ToString().c_str());
  ir::IRModule module;
  module.Add("matmul", schedule::MarkScheduled(s.function()));
  const auto jit = tutorial::Need(driver::JitModule::Compile(module, options));
  tutorial::Need(vm::WriteProgram(jit->executable().program(), argv[1]));
  return 0;
}
