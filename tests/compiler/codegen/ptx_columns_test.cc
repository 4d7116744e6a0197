// Reductions over axes that are not the last one, by the rules cuda_columns and cuda_strips on the GPU that is not there, beside the
// interpreter of the function as it was before its schedule: any axes before the last one, sizes around those of accesses,
// tiles and segments, fixed and symbolic, several dtypes, with what follows element by element. The numbers are small
// integers, so that sums are exact in any order and results equal bit for bit. INGOT_LONG_TESTS=1 takes 200 functions in
// place of 20.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
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

struct Columns {
  std::vector<int64_t> dims;
  unsigned reduced = 1;  // bits: axes
  ir::BinaryOp op = ir::BinaryOp::kAdd;
  DataType dtype = DataType::Float(32), sum_dtype = DataType::Float(32);
  bool has_unit = false;  // an axis of one place in the result, in front of the last one
  bool follows = false;   // something does, element by element
  unsigned symbolic = 0;  // bits: axes
  std::string Text() const {
    std::string text = dtype.ToString() + "->" + sum_dtype.ToString() + " over " + std::to_string(reduced) + " op " +
                       std::to_string(static_cast<int>(op)) + " symbolic " + std::to_string(symbolic) +
                       (has_unit ? " unit" : "") + (follows ? " follows" : "");
    for (const int64_t dim : dims) text += " " + std::to_string(dim);
    return text;
  }
};

SizedFunction Build(const Columns& p) {
  std::vector<PrimExpr> shape, kept;
  std::vector<int64_t> kept_dims;
  for (size_t d = 0; d < p.dims.size(); ++d) {
    shape.push_back((p.symbolic >> d & 1u) != 0 ? PrimExpr(ir::MakePrimVar("n" + std::to_string(d)))
                                                : Int64(p.dims[d]));
    if ((p.reduced >> d & 1u) != 0) continue;
    kept.push_back(shape.back());
    kept_dims.push_back(p.dims[d]);
  }
  const size_t unit = !p.has_unit ? kept.size() + 1 : kept.size() > 1 ? 1 : 0;
  if (p.has_unit) {
    kept.insert(kept.begin() + static_cast<std::ptrdiff_t>(unit), Int64(1));
    kept_dims.insert(kept_dims.begin() + static_cast<std::ptrdiff_t>(unit), 1);
  }
  const te::Tensor x = te::Placeholder(shape, p.dtype, "X");
  std::vector<ir::IterVar> axes;
  for (size_t d = 0; d < shape.size(); ++d) {
    if ((p.reduced >> d & 1u) != 0) axes.push_back(te::ReduceAxis(shape[d], "k" + std::to_string(d)));
  }
  te::Tensor out = te::Compute(
      kept,
      [&](const te::Indices& i) {
        te::Indices at;
        size_t next = 0, axis = 0;
        for (size_t d = 0; d < shape.size(); ++d) {
          if (next == unit) ++next;
          if ((p.reduced >> d & 1u) != 0) {
            at.push_back(axes[axis++]->var);
          } else {
            at.push_back(i[next++]);
          }
        }
        PrimExpr each = ir::Cast(p.sum_dtype, x(at));
        return p.op == ir::BinaryOp::kAdd   ? te::Sum(each, axes)
               : p.op == ir::BinaryOp::kMax ? te::ReduceMax(each, axes)
                                            : te::ReduceMin(each, axes);
      },
      "red");
  std::vector<te::Tensor> args{x};
  SizedFunction built;
  built.dims = {p.dims, kept_dims};
  built.dtypes = {p.dtype, p.sum_dtype};
  if (p.follows) {
    const te::Tensor red = out, bias = te::Placeholder({kept.back()}, p.sum_dtype, "B");
    out = te::Compute(
        kept, [&](const te::Indices& i) { return red(i) + bias({i.back()}) * ir::MakeConst(p.sum_dtype, 3); }, "out");
    args.push_back(bias);
    built.dims.insert(built.dims.begin() + 1, {p.dims.back()});
    built.dtypes.push_back(p.sum_dtype);
  }
  args.push_back(out);
  built.function = te::CreatePrimFunc(args);
  return built;
}

Columns RandomColumns(std::mt19937_64& generator) {
  const auto below = [&](uint64_t n) { return static_cast<size_t>(generator() % n); };
  const DataType f16 = DataType::Float(16), f32 = DataType::Float(32), f64 = DataType::Float(64);
  const std::vector<std::pair<DataType, DataType>> dtypes = {{f32, f32},
                                                             {f32, f32},
                                                             {f16, f32},
                                                             {f16, f16},
                                                             {f64, f64},
                                                             {DataType::Int(8), DataType::Int(32)},
                                                             {DataType::Int(64), DataType::Int(64)}};
  const int64_t sizes[] = {1, 2, 3, 4, 7, 8, 12, 16, 31, 32, 33, 40, 64, 65, 100, 128, 256, 300};
  const int64_t most = below(4) == 0 ? 80000 : 12000;
  Columns p;
  const size_t rank = 2 + below(3);
  int64_t elements = 1;
  for (size_t d = 0; d < rank; ++d) {
    int64_t size = sizes[below(std::size(sizes))];
    while (elements * size > most) size = sizes[below(std::size(sizes)) % 8];
    p.dims.push_back(size);
    elements *= size;
  }
  std::ranges::shuffle(p.dims, generator);
  if (below(3) == 0 && rank == 2) p.dims = {most / 3, 3};  // segments of a few columns
  p.reduced = 1 + static_cast<unsigned>(below((uint64_t{1} << (rank - 1)) - 1));
  p.op = std::vector{ir::BinaryOp::kAdd, ir::BinaryOp::kMax, ir::BinaryOp::kMin}[below(3)];
  std::tie(p.dtype, p.sum_dtype) = dtypes[below(dtypes.size())];
  if (p.sum_dtype == f16) p.op = ir::BinaryOp::kMax;  // whose sums are not exact
  p.has_unit = below(4) == 0;
  p.follows = below(2) == 0;
  p.symbolic = below(3) == 0 ? static_cast<unsigned>(below(uint64_t{1} << rank)) : 0;
  return p;
}

TEST_CASE("reductions of columns on the stand-in GPU are those of the interpreter") {
  const size_t count = std::getenv("INGOT_LONG_TESTS") != nullptr ? 200 : 20;
  std::mt19937_64 generator(5);
  std::vector<KernelSource> sources;
  for (size_t taken = 0; taken < count;) {
    const Columns p = RandomColumns(generator);
    const SizedFunction built = Build(p);
    const std::string why = KeepsAway(built.function, "cuda_columns", "red");
    if (why == "it reduces a few rows" || why == "it has one column" || why == "nobody asked it") continue;
    CAPTURE(p.Text());
    CHECK(why == "");
    CHECK(WrongBesideInterpreter(built, taken++, sources) == "");
  }
  CompileForLater(sources);
}

TEST_CASE("each block of the kernels of columns of symbolic sizes runs for some size") {
  for (const unsigned reduced : {1u, 2u}) {
    for (const unsigned symbolic : {1u, 3u, 7u}) {
      std::mt19937_64 generator(3);
      const auto any = [&](std::initializer_list<int64_t> sizes) {
        return generator() % 2 == 0 ? static_cast<int64_t>(1 + generator() % 150)
                                    : sizes.begin()[generator() % sizes.size()];
      };
      Columns p;
      p.reduced = reduced;
      p.symbolic = symbolic;
      p.follows = reduced == 2;
      // A thread's columns of the last one of the rows that are read at once, behind all in which they are there.
      const int64_t never = reduced == 1 && symbolic == 1 ? 2 : 0;
      CHECK(testing::BlocksLeftOut(
                [&](size_t) {
                  p.dims = {any({1, 2, 5, 33, 64, 100, 2000}), (symbolic & 2) == 0 ? 48 : any({1, 2, 7, 48, 100, 128}),
                            (symbolic & 4) == 0 ? 64 : any({1, 3, 32, 33, 64, 100, 130})};
                  return Build(p);
                },
                60, never) == never);
    }
  }
}

// out[i] = the sum over k of x[k, 2 * i], which are neither rows nor columns side by side.
SizedFunction BuildApart(int64_t rows, int64_t columns) {
  const PrimExpr m = ir::MakePrimVar("m"), n = ir::MakePrimVar("n");
  const te::Tensor x = te::Placeholder({m, n * 2}, DataType::Float(32), "X");
  const ir::IterVar k = te::ReduceAxis(m, "k");
  const te::Tensor out = te::Compute(
      {n},
      [&](const te::Indices& i) {
        return te::Sum(x({k->var, i[0] * 2}), {k});
      },
      "red");
  const DataType f32 = DataType::Float(32);
  return {te::CreatePrimFunc({x, out}), {{rows, 2 * columns}, {columns}}, {f32, f32}};
}

TEST_CASE("each block of the kernels of general reductions of symbolic sizes runs for some size") {
  CHECK(KeepsAway(BuildApart(1, 1).function, "cuda_reduction", "red") == "");
  std::mt19937_64 generator(3);
  const auto any = [&](std::initializer_list<int64_t> sizes) { return sizes.begin()[generator() % sizes.size()]; };
  CHECK(testing::BlocksLeftOut(
            [&](size_t) {
              return BuildApart(any({1, 2, 7, 64, 255, 256, 257, 1000, 2000}), any({1, 2, 33}));
            },
            40) == 0);
}

// Each element is read once, in whole sectors and accesses of up to 16 bytes; shared memory meets different banks.
TEST_CASE("reductions of columns read each sector of memory once") {
  struct Case {
    std::vector<int64_t> dims;
    unsigned reduced;
    DataType dtype;
  };
  const DataType f32 = DataType::Float(32), f16 = DataType::Float(16);
  for (const Case& c : {Case{{512, 256}, 1, f32}, Case{{4096, 16}, 1, f32}, Case{{2, 256, 128}, 2, f32},
                        Case{{4, 16, 16, 64}, 7, f32}, Case{{512, 256}, 1, f16}}) {
    Columns p{c.dims, c.reduced};
    p.dtype = c.dtype;
    CAPTURE(p.Text());
    const Result<ptx::LaunchCounts> counts = CountAccesses(Build(p), {});
    REQUIRE_MESSAGE(counts.ok(), counts.status().message());
    int64_t elements = 1;
    for (const int64_t dim : c.dims) elements *= dim;
    constexpr int64_t kSectorBytes = 32;
    const int64_t bytes = elements * c.dtype.bits / 8;
    CHECK(counts->global_sectors <= bytes / kSectorBytes * 3 / 2);
    CHECK(counts->global_requests <= bytes / (16 * 32) * 3 / 2);
    CHECK(counts->shared_wavefronts <= 4 * counts->shared_requests);
  }
}

// x[around, rows, columns]; a reduction of its columns, one of what differs from that, and both in every row of the result.
SizedFunction BuildStages(const Columns& p, bool has_weights) {
  std::vector<PrimExpr> shape, kept;
  for (size_t d = 0; d < p.dims.size(); ++d) {
    shape.push_back((p.symbolic >> d & 1u) != 0 ? PrimExpr(ir::MakePrimVar("n" + std::to_string(d)))
                                                : Int64(p.dims[d]));
    if ((p.reduced >> d & 1u) == 0) kept.push_back(shape.back());
  }
  const te::Tensor x = te::Placeholder(shape, p.dtype, "X");
  const te::Tensor weight = te::Placeholder({shape.back()}, p.sum_dtype, "W");
  const auto kept_of = [&](const te::Indices& i) {
    te::Indices at;
    for (size_t d = 0; d < shape.size(); ++d) {
      if ((p.reduced >> d & 1u) == 0) at.push_back(i[d]);
    }
    return at;
  };
  const auto load = [&](const te::Indices& i) { return ir::Cast(p.sum_dtype, x(i)); };
  const auto reduce = [&](const char* name, bool is_max, const auto& value) {
    std::vector<ir::IterVar> axes;
    for (size_t d = 0; d < shape.size(); ++d) {
      if ((p.reduced >> d & 1u) != 0) axes.push_back(te::ReduceAxis(shape[d], "k" + std::to_string(d)));
    }
    return te::Compute(
        kept,
        [&](const te::Indices& i) {
          te::Indices at;
          size_t next = 0, axis = 0;
          for (size_t d = 0; d < shape.size(); ++d) {
            at.push_back((p.reduced >> d & 1u) != 0 ? PrimExpr(axes[axis++]->var) : PrimExpr(i[next++]));
          }
          PrimExpr each = value(at);
          return is_max ? te::ReduceMax(each, axes) : te::Sum(each, axes);
        },
        name);
  };
  const te::Tensor first = reduce("first", p.op != ir::BinaryOp::kAdd, load);
  const te::Tensor between = te::Compute(
      shape, [&](const te::Indices& i) { return (load(i) - first(kept_of(i))) * load(i); }, "between");
  const te::Tensor second = reduce("second", false, [&](const te::Indices& i) { return between(i); });
  const te::Tensor half = te::Compute(
      kept, [&](const te::Indices& i) { return second(i) + ir::MakeConst(p.sum_dtype, 1); }, "half");
  const te::Tensor out = te::Compute(
      shape,
      [&](const te::Indices& i) {
        PrimExpr value = between(i) + half(kept_of(i));
        return has_weights ? value * weight({i.back()}) : value;
      },
      "out");
  SizedFunction built;
  built.dims = {p.dims, p.dims};
  built.dtypes = {p.dtype, p.sum_dtype};
  std::vector<te::Tensor> args{x, out};
  if (has_weights) {
    args.insert(args.begin() + 1, weight);
    built.dims.insert(built.dims.begin() + 1, {p.dims.back()});
    built.dtypes.insert(built.dtypes.begin() + 1, p.sum_dtype);
  }
  built.function = te::CreatePrimFunc(args);
  return built;
}

TEST_CASE("each block of the kernels of stages of columns of symbolic sizes runs for some size") {
  for (const bool has_weights : {false, true}) {
    for (const unsigned symbolic : {1u, 7u}) {
      std::mt19937_64 generator(3);
      const auto any = [&](std::initializer_list<int64_t> sizes) {
        return generator() % 2 == 0 ? static_cast<int64_t>(1 + generator() % 150)
                                    : sizes.begin()[generator() % sizes.size()];
      };
      Columns p;
      p.reduced = 2;
      p.symbolic = symbolic;
      CHECK(testing::BlocksLeftOut(
                [&](size_t) {
                  p.dims = {any({1, 2, 3}), symbolic == 1 ? 300 : any({1, 7, 64, 300, 1100}),
                            symbolic == 1 ? 65 : any({1, 8, 32, 65, 128})};
                  return BuildStages(p, has_weights);
                },
                60) == 0);
    }
  }
}

// Their lengths are symbols: columns of known length are rows that threads keep (ptx_rows_test.cc).
TEST_CASE("stages of columns in one launch on the stand-in GPU are those of the interpreter") {
  struct Case {
    std::vector<int64_t> dims;
    unsigned reduced, symbolic;
    DataType dtype, sum_dtype;
    bool is_max = false, has_weights = false;
  };
  const DataType f16 = DataType::Float(16), f32 = DataType::Float(32), f64 = DataType::Float(64);
  std::vector<KernelSource> sources;
  for (const Case& c : {Case{{128, 32, 8}, 2, 2, f32, f32}, Case{{130, 40, 16}, 2, 2, f32, f32, true, true},
                        Case{{43, 30, 65}, 2, 2, f32, f32}, Case{{130, 7, 3, 16}, 6, 2, f16, f32, true},
                        Case{{2, 70, 33}, 2, 7, f32, f32, false, true}, Case{{5, 64, 24}, 2, 7, f64, f64},
                        Case{{130, 33, 4, 8}, 2, 2, f32, f32, true}, Case{{33, 4200}, 1, 1, f32, f32}}) {
    Columns p{c.dims, c.reduced, c.is_max ? ir::BinaryOp::kMax : ir::BinaryOp::kAdd, c.dtype, c.sum_dtype};
    p.symbolic = c.symbolic;
    CAPTURE(p.Text());
    const SizedFunction built = BuildStages(p, c.has_weights);
    CHECK(KeepsAway(built.function, "cuda_strips", "first") == "");
    CHECK(WrongBesideInterpreter(built, 3, sources) == "");
  }
  CompileForLater(sources);
}

}  // namespace
}  // namespace ingot::codegen
