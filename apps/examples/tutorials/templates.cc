// A product of matrices and a convolution, with what their schedules leave open as knobs.
#include "apps/examples/tutorials/templates.h"

#include "compiler/te/tensor.h"

using namespace ingot;  // NOLINT: an example
using schedule::BlockRV;
using schedule::LoopRVs;

namespace tutorial {
namespace {

ir::PrimFunc Product(int64_t size) {
  const std::vector<ir::PrimExpr> shape{ir::Int64(size), ir::Int64(size)};
  const te::Tensor a = te::Placeholder(shape, DataType::Float(32), "A");
  const te::Tensor b = te::Placeholder(shape, DataType::Float(32), "B");
  const ir::IterVar k = te::ReduceAxis(ir::Int64(size), "k");
  const te::Tensor c = te::Compute(
      shape, [&](const te::Indices& i) { return te::Sum(a(i[0], k->var) * b(k->var, i[1]), {k}); }, "C", {"i", "j"});
  return te::CreatePrimFunc({a, b, c});
}

// The sums of a tile stay in registers while k runs; the columns of B that a tile needs may be copied side by side.
void ScheduleProduct(schedule::Schedule& s, tune::Knobs& knobs) {
  const BlockRV sum = s.GetBlock("C");
  const BlockRV out = s.CacheWrite(sum, 0, "local");
  const LoopRVs ij = s.GetLoops(out);
  const LoopRVs i = knobs.DefineSplit("tile_i", ij[0], 2, 16).Apply(s, ij[0]);
  const LoopRVs j = knobs.DefineSplit("tile_j", ij[1], 2, 64).Apply(s, ij[1]);
  const bool rows_first = knobs.DefineKnob("columns_first", {0, 1}) == 0;
  s.Reorder(rows_first ? LoopRVs{i[0], j[0], i[1], j[1]} : LoopRVs{j[0], i[0], i[1], j[1]});
  s.ComputeAt(sum, rows_first ? j[0] : i[0]);
  const bool in_vectors = knobs.DefineKnob("vectorize", {0, 1}) == 1;
  if (knobs.DefineKnob("pack", {0, 1}) == 1) {
    const BlockRV panel = s.CacheRead(sum, 1, "global");
    s.ComputeAt(panel, j[0]);
    if (in_vectors) s.Vectorize(s.GetLoops(panel).back());
  }
  const LoopRVs loops = s.GetLoops(sum);  // two around, then rows and columns of the tile, then k
  const LoopRVs k = knobs.DefineSplit("tile_k", loops[4], 2, 16).Apply(s, loops[4]);
  s.Reorder({k[0], k[1], loops[2], loops[3]});
  if (knobs.DefineKnob("unroll", {0, 1}) == 1) {
    s.Unroll(k[1]);
    s.Unroll(loops[2]);
  }
  if (in_vectors) {
    s.Vectorize(loops[3]);
    s.Vectorize(j[1]);
  }
  s.DecomposeReduction(sum, k[0]);
}

ir::PrimFunc Convolution(int64_t size) {
  const auto shape = [](int64_t channels, int64_t height, int64_t width) {
    return std::vector<ir::PrimExpr>{ir::Int64(1), ir::Int64(channels), ir::Int64(height), ir::Int64(width)};
  };
  const te::Tensor x = te::Placeholder(shape(kChannels, size, size), DataType::Float(32), "X");
  const te::Tensor w = te::Placeholder(
      {ir::Int64(kChannels), ir::Int64(kChannels), ir::Int64(kWindow), ir::Int64(kWindow)}, DataType::Float(32), "W");
  const te::Tensor padded = te::Compute(
      shape(kChannels, size + 2, size + 2),
      [&](const te::Indices& i) {
        const auto is_inside = [&](const ir::PrimExpr& at) {
          return ir::And(ir::Int64(1) <= at, at <= ir::Int64(size));
        };
        return ir::IfThenElse(ir::And(is_inside(i[2]), is_inside(i[3])), x(i[0], i[1], i[2] - 1, i[3] - 1),
                              ir::FloatImm(DataType::Float(32), 0));
      },
      "pad");
  const ir::IterVar c = te::ReduceAxis(ir::Int64(kChannels), "c"), v = te::ReduceAxis(ir::Int64(kWindow), "v"),
                    u = te::ReduceAxis(ir::Int64(kWindow), "u");
  const te::Tensor y = te::Compute(
      shape(kChannels, size, size),
      [&](const te::Indices& i) {
        return te::Sum(padded(i[0], c->var, i[2] + v->var, i[3] + u->var) * w(i[1], c->var, v->var, u->var), {c, v, u});
      },
      "conv");
  return te::CreatePrimFunc({x, w, y});
}

// The sums of a tile of output channels, rows and columns stay in registers while input channels and the window run.
void ScheduleConvolution(schedule::Schedule& s, tune::Knobs& knobs) {
  const BlockRV conv = s.GetBlock("conv");
  const BlockRV out = s.CacheWrite(conv, 0, "local");
  const LoopRVs around = s.GetLoops(out);  // of the batch, channels, rows, columns
  const LoopRVs channels = knobs.DefineSplit("tile_channels", around[1], 2, 16).Apply(s, around[1]);
  const LoopRVs rows = knobs.DefineSplit("tile_rows", around[2], 2, 4).Apply(s, around[2]);
  const LoopRVs columns = knobs.DefineSplit("tile_columns", around[3], 2, 64).Apply(s, around[3]);
  const bool channels_first = knobs.DefineKnob("rows_first", {0, 1}) == 0;
  s.Reorder(channels_first ? LoopRVs{channels[0], rows[0], columns[0], channels[1], rows[1], columns[1]}
                           : LoopRVs{rows[0], columns[0], channels[0], channels[1], rows[1], columns[1]});
  s.ComputeAt(conv, channels_first ? columns[0] : channels[0]);
  const LoopRVs loops = s.GetLoops(conv);  // four around, then those of the tile (its image, too), then of the sum
  const LoopRVs tile{loops[5], loops[6], loops[7]}, sum{loops[8], loops[9], loops[10]};
  s.Reorder({sum[0], sum[1], sum[2], tile[0], tile[1], tile[2]});
  if (knobs.DefineKnob("unroll", {0, 1}) == 1) {
    s.Unroll(tile[0]);
    s.Unroll(tile[1]);
  }
  if (knobs.DefineKnob("unroll_window", {0, 1}) == 1) s.Unroll(sum[2]);
  if (knobs.DefineKnob("vectorize", {0, 1}) == 1) {
    s.Vectorize(tile[2]);
    s.Vectorize(columns[1]);
  }
  s.DecomposeReduction(conv, sum[0]);
}

}  // namespace

tune::Template ProductTemplate(int64_t size) { return {"matmul", Product(size), ScheduleProduct}; }

tune::Template ConvolutionTemplate(int64_t size) { return {"conv2d", Convolution(size), ScheduleConvolution}; }

}  // namespace tutorial
