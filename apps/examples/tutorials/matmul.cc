// matmul: C = A B with all three dimensions symbolic, scheduled in steps, each faster than the one before: the outer
// axis parallel; then in tiles; then with vectors in them; then with the tile's sums in registers and B's columns
// copied side by side. Prints the speed of each step and saves its result.
//
//   matmul ROWS COLUMNS DEPTH RESULTS.npz
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "apps/examples/tutorials/tutorial.h"
#include "compiler/builder/te_schedule.h"
#include "compiler/schedule/default_schedule.h"

using namespace ingot;  // NOLINT: an example
using schedule::BlockRV;
using schedule::LoopRV;
using schedule::LoopRVs;

namespace {

struct Product {
  te::Tensor a, b, c;
  ir::IterVar k;
  Product() {
    const ir::PrimVar n = ir::MakePrimVar("n"), m = ir::MakePrimVar("m"), depth = ir::MakePrimVar("k");
    a = te::Placeholder({n, depth}, DataType::Float(32), "A");
    b = te::Placeholder({depth, m}, DataType::Float(32), "B");
    k = te::ReduceAxis(depth, "k");
    c = te::Compute({n, m}, [&](const te::Indices& i) { return te::Sum(a(i[0], k->var) * b(k->var, i[1]), {k}); }, "C",
                    {"i", "j"});
  }
};

constexpr int64_t kRows = 6, kColumns = 16;

ir::PrimFunc Parallel(const Product& p) {
  te::Schedule s = te::CreateSchedule({p.c});
  s[p.c].Parallel(te::AxesOf(p.c)[0]);
  return tutorial::Need(s.Lower({p.a, p.b, p.c}));
}

ir::PrimFunc Tiled(const Product& p) {
  te::Schedule s = te::CreateSchedule({p.c});
  const te::Stage::Tiles tiles = s[p.c].Tile(te::AxesOf(p.c)[0], te::AxesOf(p.c)[1], kRows, kColumns);
  s[p.c].Reorder({tiles.x_outer, tiles.y_outer, p.k, tiles.x_inner, tiles.y_inner});
  s[p.c].Parallel(tiles.x_outer);
  return tutorial::Need(s.Lower({p.a, p.b, p.c}));
}

ir::PrimFunc Vectorised(const Product& p) {
  te::Schedule s = te::CreateSchedule({p.c});
  const te::Stage::Tiles tiles = s[p.c].Tile(te::AxesOf(p.c)[0], te::AxesOf(p.c)[1], kRows, kColumns);
  s[p.c].Reorder({tiles.x_outer, tiles.y_outer, p.k, tiles.x_inner, tiles.y_inner});
  s[p.c].Parallel(tiles.x_outer);
  s[p.c].Unroll(tiles.x_inner);
  s[p.c].Vectorize(tiles.y_inner);
  return tutorial::Need(s.Lower({p.a, p.b, p.c}));
}

// Operands are padded to whole tiles; the tiles' sums stay in registers while k runs, and are written out once; the
// columns of B that a task needs are copied side by side where it begins.
ir::PrimFunc Cached(const Product& p) {
  schedule::Schedule s = tutorial::Need(schedule::Schedule::Create(te::CreatePrimFunc({p.a, p.b, p.c})));
  const BlockRV sum = s.GetBlock("C");
  s.PadEinsum(sum, {kRows, kColumns, 1});
  const BlockRV out = s.CacheWrite(sum, 0, "local"), panel = s.GetBlock("B_pad");
  const LoopRVs ij = s.GetLoops(out);
  const schedule::Schedule::Tiled tiles = s.Tile(ij[0], ij[1], kRows, kColumns);
  s.Reorder({tiles.y_outer, tiles.x_outer});
  s.ComputeAt(sum, tiles.x_outer);
  s.ComputeAt(panel, tiles.y_outer);
  tutorial::Need(s.status());
  const LoopRVs loops = s.GetLoops(sum);  // two around, then rows and columns of the tile, then k
  s.Reorder({loops[4], loops[2], loops[3]});
  s.Unroll(loops[2]);
  s.Vectorize(loops[3]);
  s.DecomposeReduction(sum, loops[4]);
  s.Vectorize(tiles.y_inner);
  s.Vectorize(s.GetLoops(panel).back());
  s.Parallel(tiles.y_outer);
  tutorial::Need(s.status());
  return schedule::MarkScheduled(s.function());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) tutorial::Die("usage: matmul ROWS COLUMNS DEPTH RESULTS.npz");
  const int64_t n = std::atoll(argv[1]), m = std::atoll(argv[2]), depth = std::atoll(argv[3]);
  if (n < 1 || m < 1 || depth < 1) tutorial::Die("dimensions must be at least 1");
  const Product product;
  const Tensor a = tutorial::Uniform({n, depth}, 1), b = tutorial::Uniform({depth, m}, 2);
  std::vector<formats::NamedTensor> results{{"a", a}, {"b", b}};
  const std::vector<std::pair<const char*, std::function<ir::PrimFunc()>>> steps{
      {"parallel", [&] { return Parallel(product); }},
      {"tiled", [&] { return Tiled(product); }},
      {"vectorised", [&] { return Vectorised(product); }},
      {"cached", [&] { return Cached(product); }},
      {"default",
       [&] {
         return te::CreatePrimFunc({product.a, product.b, product.c});
       }},
  };
  for (const auto& [name, make] : steps) {
    const auto jit = tutorial::Compile("matmul", make());
    const Tensor c = tutorial::Zeros({n, m});
    const double seconds = tutorial::LeastSeconds([&] { tutorial::Need(jit->CallInto("matmul", {a, b}, {c})); });
    std::printf("%-10s %10.3f ms %8.2f GFLOP/s\n", name, seconds * 1e3,
                2e-9 * static_cast<double>(n * m * depth) / seconds);
    results.push_back({name, c});
  }
  tutorial::Save(argv[4], results);
  return 0;
}
