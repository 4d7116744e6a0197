// Element-wise stages that read along another axis than they write, by the rule cuda_transpose on the GPU that is not
// there, beside the interpreter of the function as it was before its schedule: random permutations of up to five axes,
// sizes around those of tiles and accesses, fixed and symbolic, several dtypes and inputs.
// INGOT_LONG_TESTS=1 takes 400 functions in place of 40.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "compiler/te/tensor.h"
#include "tests/compiler/codegen/ptx_run.h"

namespace ingot::codegen {
namespace {

using ir::Int64;
using ir::PrimExpr;
using testing::CompileForLater, testing::CountAccesses, testing::KeepsAway, testing::SizedFunction,
    testing::WrongBesideInterpreter;

struct Move {
  std::vector<int64_t> dims;  // of the input
  std::vector<size_t> axes;   // of the input, in the result's order
  DataType dtype = DataType::Float(32);
  int others = 0;          // 1: a tensor like the result is added, 2: another one like the input
  unsigned symbolic = 0;   // bits: axes of the input
  bool is_joined = false;  // the input's last two axes are one in its buffer
  std::string Text() const {
    std::string text = dtype.ToString() + " others " + std::to_string(others) + " symbolic " + std::to_string(symbolic);
    text += is_joined ? " joined" : "";
    for (const int64_t dim : dims) text += " " + std::to_string(dim);
    text += " by";
    for (const size_t axis : axes) text += " " + std::to_string(axis);
    return text;
  }
};

SizedFunction Build(const Move& p) {
  const size_t rank = p.dims.size();
  std::vector<PrimExpr> sizes, of_input, of_result;
  std::vector<int64_t> input_dims = p.dims, result_dims;
  for (size_t d = 0; d < rank; ++d) {
    sizes.push_back((p.symbolic >> d & 1u) != 0 ? PrimExpr(ir::MakePrimVar("n" + std::to_string(d)))
                                                : Int64(p.dims[d]));
  }
  of_input = sizes;
  if (p.is_joined) {
    of_input.pop_back();
    of_input.back() = Int64(p.dims[rank - 2] * p.dims[rank - 1]);
    input_dims.pop_back();
    input_dims.back() = p.dims[rank - 2] * p.dims[rank - 1];
  }
  for (const size_t axis : p.axes) {
    of_result.push_back(sizes[axis]);
    result_dims.push_back(p.dims[axis]);
  }
  const te::Tensor x = te::Placeholder(of_input, p.dtype, "X");
  const te::Tensor other = te::Placeholder(p.others == 1 ? of_result : of_input, p.dtype, "Y");
  const auto at = [&](const te::Indices& i) {
    std::vector<PrimExpr> places(rank);
    for (size_t d = 0; d < rank; ++d) places[p.axes[d]] = i[d];
    if (p.is_joined) {
      places[rank - 2] = places[rank - 2] * p.dims[rank - 1] + places[rank - 1];
      places.pop_back();
    }
    return places;
  };
  const te::Tensor out = te::Compute(
      of_result,
      [&](const te::Indices& i) {
        if (p.others == 1) return x(at(i)) + other(std::vector<PrimExpr>(i.begin(), i.end()));
        return p.others == 2 ? x(at(i)) - other(at(i)) : PrimExpr(x(at(i)));
      },
      "out");
  std::vector<te::Tensor> args{x};
  SizedFunction built;
  built.dims.push_back(input_dims);
  if (p.others != 0) {
    args.push_back(other);
    built.dims.push_back(p.others == 1 ? result_dims : input_dims);
  }
  args.push_back(out);
  built.dims.push_back(result_dims);
  built.dtypes.assign(built.dims.size(), p.dtype);
  built.function = te::CreatePrimFunc(args);
  return built;
}

Move RandomMove(std::mt19937_64& generator) {
  const auto below = [&](uint64_t n) { return static_cast<size_t>(generator() % n); };
  const DataType dtypes[] = {DataType::Float(32),  DataType::Float(32), DataType::Float(16), DataType::Float(16),
                             DataType::Bfloat16(), DataType::Int(8),    DataType::Float(64), DataType::Int(64)};
  const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 31, 32, 33, 48, 64, 65, 96, 100, 128, 130};
  Move p;
  const size_t rank = 2 + below(4);
  int64_t elements = 1;
  for (size_t d = 0; d < rank; ++d) {
    int64_t size = sizes[below(std::size(sizes))];
    while (elements * size > 40000) size = sizes[below(std::size(sizes)) % 8];
    p.dims.push_back(size);
    elements *= size;
  }
  std::ranges::shuffle(p.dims, generator);
  p.axes.resize(rank);
  std::iota(p.axes.begin(), p.axes.end(), size_t{0});
  std::ranges::shuffle(p.axes, generator);
  p.dtype = dtypes[below(std::size(dtypes))];
  p.others = static_cast<int>(below(3));
  p.is_joined = rank > 2 && below(4) == 0;
  p.symbolic = below(3) == 0 ? static_cast<unsigned>(below(uint64_t{1} << rank)) : 0;
  if (p.is_joined) p.symbolic &= (1u << (rank - 2)) - 1;
  return p;
}

TEST_CASE("permutations on the stand-in GPU are those of the interpreter") {
  const size_t count = std::getenv("INGOT_LONG_TESTS") != nullptr ? 400 : 40;
  std::mt19937_64 generator(11);
  std::vector<KernelSource> sources;
  for (size_t taken = 0; taken < count;) {
    const Move p = RandomMove(generator);
    const SizedFunction built = Build(p);
    if (!KeepsAway(built.function, "cuda_transpose", "out").empty()) continue;
    CAPTURE(p.Text());
    CHECK(WrongBesideInterpreter(built, taken++, sources) == "");
  }
  CompileForLater(sources);
}

TEST_CASE("each block of the kernels of permutations of symbolic sizes runs for some size") {
  for (const DataType& dtype : {DataType::Float(32), DataType::Float(16), DataType::Int(8)}) {
    for (const std::vector<size_t>& axes : {std::vector<size_t>{0, 2, 1}, {2, 1, 0}, {1, 2, 0}}) {
      std::mt19937_64 generator(3);
      const auto any = [&](std::initializer_list<int64_t> sizes) {
        return generator() % 2 == 0 ? static_cast<int64_t>(1 + generator() % 70)
                                    : sizes.begin()[generator() % sizes.size()];
      };
      Move p;
      p.axes = axes;
      p.dtype = dtype;
      p.symbolic = 7;
      CHECK(testing::BlocksLeftOut(
                [&](size_t) {
                  p.dims = {any({1, 3, 32, 33, 64}), any({1, 2, 31, 64, 100}), any({1, 4, 32, 65, 128})};
                  if (dtype.bits == 8) {  // whose tiles are wider
                    for (int64_t& dim : p.dims) dim = any({1, 3, 64, 130, 260});
                    while (p.dims[0] * p.dims[1] * p.dims[2] > 70000) p.dims[generator() % 3] = 1;
                  }
                  return Build(p);
                },
                120) == 0);
    }
  }
}

TEST_CASE("each block of the kernels of loops of threads of symbolic sizes runs for some size") {
  for (const DataType& dtype : {DataType::Float(32), DataType::Float(16), DataType::Int(8)}) {
    for (const unsigned symbolic : {1u, 3u, 7u}) {
      std::mt19937_64 generator(3);
      const auto any = [&](std::initializer_list<int64_t> sizes) { return sizes.begin()[generator() % sizes.size()]; };
      Move p;
      p.axes = {0, 1, 2};
      p.dtype = dtype;
      p.others = 1;
      p.symbolic = symbolic;
      p.dims = {2, 8, 64};
      CHECK(KeepsAway(Build(p).function, "cuda_threads", "out") == "");
      CHECK(testing::BlocksLeftOut(
                [&](size_t) {
                  p.dims = {any({1, 3, 32, 33}), symbolic < 3 ? 8 : any({1, 2, 31, 64}),
                            symbolic < 7 ? 64 : any({1, 4, 65})};
                  return Build(p);
                },
                40) == 0);
    }
  }
}

// Each element is read once and written once, in whole sectors; a warp's accesses of shared memory meet different banks.
TEST_CASE("permutations touch each sector of memory once, and shared memory without conflicts") {
  struct Case {
    std::vector<int64_t> dims;
    std::vector<size_t> axes;
    DataType dtype;
    int64_t most_conflicts = 1;  // passes of an access of shared memory, on average
  };
  const DataType f32 = DataType::Float(32);
  const Case cases[] = {{{256, 256}, {1, 0}, f32},
                        {{1, 64, 16, 16}, {0, 2, 3, 1}, f32},
                        {{1, 16, 16, 64}, {0, 3, 1, 2}, f32},
                        {{1, 128, 128, 3}, {0, 3, 1, 2}, f32},
                        {{1, 3, 128, 128}, {0, 2, 3, 1}, f32},
                        {{2, 64, 4, 64}, {0, 2, 3, 1}, f32},
                        {{64, 3, 64}, {2, 1, 0}, f32},
                        {{256, 256}, {1, 0}, DataType::Float(16), 2},
                        {{256, 256}, {1, 0}, DataType::Int(8), 4},
                        {{128, 128}, {1, 0}, DataType::Float(64), 2}};
  for (const Case& c : cases) {
    Move p{c.dims, c.axes, c.dtype};
    CAPTURE(p.Text());
    const SizedFunction built = Build(p);
    CHECK(KeepsAway(built.function, "cuda_transpose", "out") == "");
    const Result<ptx::LaunchCounts> counts = CountAccesses(built, {});
    REQUIRE_MESSAGE(counts.ok(), counts.status().message());
    int64_t bytes = (c.dtype.bits + 7) / 8;
    for (const int64_t dim : c.dims) bytes *= dim;
    constexpr int64_t kSectorBytes = 32;
    CHECK(counts->global_sectors <= 2 * bytes / kSectorBytes * 5 / 4);
    CHECK(counts->shared_wavefronts <= counts->shared_requests * c.most_conflicts);
  }
}

}  // namespace
}  // namespace ingot::codegen
