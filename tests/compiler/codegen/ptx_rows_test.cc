// Reductions of rows by the rule cuda_rows on the GPU that is not there, beside the interpreter of the function as it was
// before its schedule: random sizes around those of warps, vectors and registers, fixed and symbolic, several dtypes,
// stages in between and behind. The numbers are small integers, so that sums are exact in any order and results equal bit
// for bit. INGOT_LONG_TESTS=1 takes 300 functions in place of 40.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "compiler/schedule/default_schedule.h"
#include "compiler/te/tensor.h"
#include "tests/compiler/codegen/ptx_run.h"

namespace ingot::codegen {
namespace {

using ir::Int64;
using ir::PrimExpr;
using testing::CompileForLater, testing::RunImage, testing::SizedFunction, testing::Sm, testing::SmallIntegers,
    testing::WrongBesideInterpreter;

enum Kind : int { kReduce, kCentre, kSoftmax, kNorm, kNumKinds };

// A reduction of x[.., rows, length (as two axes)], and what depends on it.
struct Rows {
  int64_t batch, rows, length;  // batch 0: there is none
  int64_t inner = 0;            // of the row's axes, the last one; 0: there is one
  int kind = kReduce;
  ir::BinaryOp op = ir::BinaryOp::kAdd;
  DataType dtype = DataType::Float(32), sum_dtype = DataType::Float(32);
  unsigned symbolic = 0;  // bits: batch, rows, length
  std::string Text() const {
    std::string text = dtype.ToString() + "->" + sum_dtype.ToString() + " kind " + std::to_string(kind);
    for (const int64_t size : {batch, rows, length, inner}) text += " " + std::to_string(size);
    return text + " op " + std::to_string(static_cast<int>(op)) + " symbolic " + std::to_string(symbolic);
  }
};

SizedFunction Build(const Rows& p) {
  const auto size = [&](int64_t value, unsigned bit, const char* name) {
    return (p.symbolic >> bit & 1u) != 0 ? PrimExpr(ir::MakePrimVar(name)) : Int64(value);
  };
  std::vector<PrimExpr> outer, row;
  std::vector<int64_t> outer_dims, row_dims;
  if (p.batch > 0) {
    outer.push_back(size(p.batch, 0, "b"));
    outer_dims.push_back(p.batch);
  }
  outer.push_back(size(p.rows, 1, "r"));
  outer_dims.push_back(p.rows);
  row.push_back(size(p.length, 2, "n"));
  row_dims.push_back(p.length);
  if (p.inner > 0) {
    row.push_back(Int64(p.inner));
    row_dims.push_back(p.inner);
  }
  const auto joined = [](auto a, const auto& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const std::vector<PrimExpr> shape = joined(outer, row);
  const te::Tensor x = te::Placeholder(shape, p.dtype, "X");
  const te::Tensor weight = te::Placeholder(row, p.sum_dtype, "W");
  const auto of_row = [&](const te::Indices& i) {
    return std::vector<PrimExpr>(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(outer.size()));
  };
  const auto in_row = [&](const te::Indices& i) {
    return std::vector<PrimExpr>(i.begin() + static_cast<std::ptrdiff_t>(outer.size()), i.end());
  };
  const auto reduce = [&](const std::string& name, ir::BinaryOp op, const auto& value) {
    std::vector<ir::IterVar> axes;
    for (size_t d = 0; d < row.size(); ++d) axes.push_back(te::ReduceAxis(row[d], "k" + std::to_string(d)));
    return te::Compute(
        outer,
        [&](const te::Indices& i) {
          te::Indices at = i;
          for (const ir::IterVar& axis : axes) at.push_back(axis->var);
          PrimExpr each = value(at);
          return op == ir::BinaryOp::kAdd   ? te::Sum(each, axes)
                 : op == ir::BinaryOp::kMax ? te::ReduceMax(each, axes)
                                            : te::ReduceMin(each, axes);
        },
        name);
  };
  const auto load = [&](const te::Indices& i) { return ir::Cast(p.sum_dtype, x(i)); };
  te::Tensor out = reduce("first", p.kind == kNorm ? ir::BinaryOp::kAdd : p.op, load);
  std::vector<te::Tensor> args{x};
  if (p.kind == kCentre) {
    const te::Tensor first = out;
    out = te::Compute(
        shape, [&](const te::Indices& i) { return ir::Cast(p.dtype, load(i) - first(of_row(i))); }, "centred");
  } else if (p.kind == kSoftmax) {
    const te::Tensor first = out;
    const te::Tensor between = te::Compute(
        shape, [&](const te::Indices& i) { return (load(i) - first(of_row(i))) * load(i); }, "between");
    const te::Tensor second = reduce("second", ir::BinaryOp::kAdd, [&](const te::Indices& i) { return between(i); });
    out = te::Compute(
        shape, [&](const te::Indices& i) { return between(i) + second(of_row(i)); }, "behind");
  } else if (p.kind == kNorm) {
    const te::Tensor first = out;
    const te::Tensor half = te::Compute(
        outer, [&](const te::Indices& i) { return first(i) + ir::MakeConst(p.sum_dtype, 1); }, "half");
    const te::Tensor second =
        reduce("second", ir::BinaryOp::kMax, [&](const te::Indices& i) { return ir::Max(load(i), half(of_row(i))); });
    out = te::Compute(
        shape,
        [&](const te::Indices& i) { return (load(i) - half(of_row(i))) * weight(in_row(i)) + second(of_row(i)); },
        "normed");
    args.push_back(weight);
  }
  SizedFunction built;
  built.dims.push_back(joined(outer_dims, row_dims));
  built.dtypes.push_back(p.dtype);
  if (p.kind == kNorm) {
    built.dims.push_back(row_dims);
    built.dtypes.push_back(p.sum_dtype);
  }
  args.push_back(out);
  built.dims.push_back(p.kind == kReduce ? outer_dims : built.dims[0]);
  built.dtypes.push_back(out.dtype());
  built.function = te::CreatePrimFunc(args);
  return built;
}

// Whether the rule scheduled the function.
bool IsByRows(const ir::PrimFunc& function) {
  const Result<schedule::ScheduledFunction> scheduled = schedule::ApplyDefaultSchedule(function, Sm("sm_80"));
  return scheduled.ok() && std::ranges::any_of(scheduled->applications, [](const schedule::Application& application) {
           return application.rule == std::string("cuda_rows");
         });
}

Rows RandomRows(std::mt19937_64& generator) {
  const auto below = [&](uint64_t n) { return static_cast<size_t>(generator() % n); };
  const DataType f16 = DataType::Float(16), f32 = DataType::Float(32), f64 = DataType::Float(64);
  const std::vector<std::pair<DataType, DataType>> dtypes = {{f32, f32},
                                                             {f32, f32},
                                                             {f16, f32},
                                                             {DataType::Bfloat16(), f32},
                                                             {f64, f64},
                                                             {DataType::Int(8), DataType::Int(32)},
                                                             {DataType::Int(64), DataType::Int(64)}};
  const int64_t lengths[] = {4,   5,   7,   10,  16,  21,  31,  32,   33,   48,   63,   64,   65,  96,
                             100, 128, 197, 250, 256, 512, 768, 1000, 1024, 1500, 2048, 4096, 6000};
  const int64_t counts[] = {1, 2, 3, 4, 7, 8, 16, 33, 50};
  Rows p{};
  p.batch = below(3) == 0 ? counts[below(3)] : 0;
  p.rows = counts[below(std::size(counts))];
  p.length = lengths[below(std::size(lengths))];
  if (below(4) == 0) {
    p.inner = static_cast<int64_t>(1 + below(40));
    p.length = (p.length + p.inner - 1) / p.inner;
    if (p.length * p.inner < 4) p.length = 4;
  }
  p.kind = static_cast<int>(below(kNumKinds));
  p.op = std::vector{ir::BinaryOp::kAdd, ir::BinaryOp::kMax, ir::BinaryOp::kMin}[below(3)];
  std::tie(p.dtype, p.sum_dtype) = dtypes[below(dtypes.size())];
  p.symbolic = below(2) == 0 ? 0 : static_cast<unsigned>(below(8));
  if (p.batch == 0) p.symbolic &= ~1u;
  return p;
}

TEST_CASE("reductions of rows on the stand-in GPU are those of the interpreter") {
  const size_t count = std::getenv("INGOT_LONG_TESTS") != nullptr ? 300 : 40;
  std::mt19937_64 generator(7);
  std::vector<KernelSource> sources;
  for (size_t i = 0; i < count; ++i) {
    const Rows p = RandomRows(generator);
    CAPTURE(p.Text());
    CHECK(IsByRows(Build(p).function));
    CHECK(WrongBesideInterpreter(Build(p), i, sources) == "");
  }
  CompileForLater(sources);
}

TEST_CASE("each block of the kernels of rows of symbolic sizes runs for some size") {
  for (int kind = kReduce; kind < kNumKinds; ++kind) {
    for (const bool is_batch : {false, true}) {
      std::mt19937_64 generator(3);
      const auto any = [&](std::initializer_list<int64_t> sizes) { return sizes.begin()[generator() % sizes.size()]; };
      Rows p{};
      p.kind = kind;
      p.symbolic = is_batch ? 3 : 7;
      p.batch = is_batch ? 1 : 0;
      CAPTURE(p.Text());
      CHECK(testing::BlocksLeftOut(
                [&](size_t) {
                  p.batch = is_batch ? any({1, 3}) : 0;
                  p.rows = any({1, 2, 7, 8, 33});
                  p.length = is_batch ? 1000 : any({1, 31, 32, 255, 256, 257, 1000, 1024, 4096, 4100});
                  return Build(p);
                },
                40) == 0);
    }
  }
}

// Reductions of columns, or of groups of channels, and what depends on them: x[batch, length, columns].
struct Columns {
  int64_t batch, length, columns, group = 0;  // of so many channels of `length`, with the columns; 0: columns
  int kind = kCentre;
  DataType dtype = DataType::Float(32), sum_dtype = DataType::Float(32);
  bool is_batch_symbolic = false;
  std::string Text() const {
    std::string text = dtype.ToString() + "->" + sum_dtype.ToString() + " kind " + std::to_string(kind);
    for (const int64_t size : {batch, length, columns, group}) text += " " + std::to_string(size);
    return text + (is_batch_symbolic ? " symbolic" : "");
  }
};

SizedFunction Build(const Columns& p) {
  const PrimExpr batch = p.is_batch_symbolic ? PrimExpr(ir::MakePrimVar("b")) : Int64(p.batch);
  const std::vector<PrimExpr> shape{batch, Int64(p.length), Int64(p.columns)};
  const te::Tensor x = te::Placeholder(shape, p.dtype, "X");
  const te::Tensor weight = te::Placeholder({shape[1]}, p.sum_dtype, "W");
  const auto load = [&](const te::Indices& i) { return ir::Cast(p.sum_dtype, x(i)); };
  const int64_t group = p.group;
  const std::vector<PrimExpr> of_rows{batch, group > 0 ? Int64(p.length / group) : Int64(p.columns)};
  const auto row_of = [&](const te::Indices& i) -> std::vector<PrimExpr> {
    if (group > 0) return {i[0], ir::FloorDiv(i[1], Int64(group))};
    return {i[0], i[2]};
  };
  const auto reduce = [&](const std::string& name, ir::BinaryOp op, const auto& value) {
    std::vector<ir::IterVar> axes{te::ReduceAxis(Int64(group > 0 ? group : p.length), "k")};
    if (group > 0) axes.push_back(te::ReduceAxis(Int64(p.columns), "l"));
    return te::Compute(
        of_rows,
        [&](const te::Indices& i) {
          const te::Indices at = group > 0 ? te::Indices{i[0], i[1] * Int64(group) + axes[0]->var, axes[1]->var}
                                           : te::Indices{i[0], axes[0]->var, i[1]};
          const PrimExpr each = value(at);
          return op == ir::BinaryOp::kAdd ? te::Sum(each, axes) : te::ReduceMax(each, axes);
        },
        name);
  };
  std::vector<te::Tensor> args{x};
  const te::Tensor first = reduce("first", p.kind == kNorm ? ir::BinaryOp::kAdd : ir::BinaryOp::kMax, load);
  te::Tensor out = first;
  if (p.kind == kReduce) {  // the result has a place for each row
    const te::Tensor second = reduce("second", ir::BinaryOp::kAdd, [&](const te::Indices& i) {
      return ir::Max(load(i), first(row_of(i)) - ir::MakeConst(p.sum_dtype, 1));
    });
    out = te::Compute(
        of_rows, [&](const te::Indices& i) { return second(i) + first(i); }, "both");
  } else if (p.kind == kCentre) {
    out = te::Compute(
        shape, [&](const te::Indices& i) { return ir::Cast(p.dtype, load(i) - first(row_of(i))); }, "centred");
  } else if (p.kind == kSoftmax) {
    const te::Tensor between = te::Compute(
        shape, [&](const te::Indices& i) { return (load(i) - first(row_of(i))) * load(i); }, "between");
    const te::Tensor second = reduce("second", ir::BinaryOp::kAdd, [&](const te::Indices& i) { return between(i); });
    out = te::Compute(
        shape, [&](const te::Indices& i) { return between(i) + second(row_of(i)); }, "behind");
  } else {
    const te::Tensor half = te::Compute(
        of_rows, [&](const te::Indices& i) { return first(i) + ir::MakeConst(p.sum_dtype, 1); }, "half");
    const te::Tensor second =
        reduce("second", ir::BinaryOp::kMax, [&](const te::Indices& i) { return ir::Max(load(i), half(row_of(i))); });
    out = te::Compute(
        shape, [&](const te::Indices& i) { return (load(i) - half(row_of(i))) * weight(i[1]) + second(row_of(i)); },
        "normed");
    args.push_back(weight);
  }
  SizedFunction built;
  built.dims = {{p.batch, p.length, p.columns}};
  built.dtypes = {p.dtype};
  if (p.kind == kNorm) {
    built.dims.push_back({p.length});
    built.dtypes.push_back(p.sum_dtype);
  }
  args.push_back(out);
  built.dims.push_back(built.dims[0]);
  if (p.kind == kReduce) built.dims.back() = {p.batch, group > 0 ? p.length / group : p.columns};
  built.dtypes.push_back(out.dtype());
  built.function = te::CreatePrimFunc(args);
  return built;
}

TEST_CASE("columns and groups of channels on the stand-in GPU are those of the interpreter") {
  const size_t count = std::getenv("INGOT_LONG_TESTS") != nullptr ? 200 : 30;
  std::mt19937_64 generator(11);
  const auto any = [&](std::initializer_list<int64_t> sizes) { return sizes.begin()[generator() % sizes.size()]; };
  const DataType f16 = DataType::Float(16), f32 = DataType::Float(32), f64 = DataType::Float(64);
  std::vector<KernelSource> sources;
  for (size_t i = 0; i < count; ++i) {
    Columns p{};
    p.batch = any({1, 2, 3, 7});
    p.length = any({4, 5, 8, 16, 21, 32, 33, 64, 100, 256, 300});
    p.columns = any({8, 9, 16, 31, 32, 33, 64, 100});
    if (generator() % 3 == 0) {
      p.group = any({2, 4, 8});
      p.length = p.group * any({2, 3, 8});
    }
    if (p.group == 0 && p.length > 200) p.columns = any({8, 17, 40});
    p.kind = static_cast<int>(generator() % kNumKinds);
    std::tie(p.dtype, p.sum_dtype) =
        std::vector<std::pair<DataType, DataType>>{{f32, f32}, {f16, f32}, {f64, f64}}[generator() % 3];
    p.is_batch_symbolic = generator() % 3 == 0;
    CAPTURE(p.Text());
    CHECK(IsByRows(Build(p).function));
    CHECK(WrongBesideInterpreter(Build(p), i, sources) == "");
  }
  CompileForLater(sources);
}

TEST_CASE("a few long rows are reduced in segments, each byte of them read once") {
  std::vector<KernelSource> sources;
  for (const auto& [rows, length, inner] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 65536, 0}, {3, 70001, 0}, {2, 300, 256}}) {
    Rows p{};
    p.rows = rows;
    p.length = length;
    p.inner = inner;
    CAPTURE(p.Text());
    CHECK(WrongBesideInterpreter(Build(p), 1, sources) == "");
  }
  const SizedFunction built = Build([] {
    Rows p{};
    p.rows = 1;
    p.length = 65536;
    return p;
  }());
  const Result<PtxImage> image = CompilePtx({sources.data(), 1}, Sm("sm_80"));
  REQUIRE(image.ok());
  CHECK(image->kernels[0].launches.size() == 2);
  op::KernelArguments arguments = SmallIntegers(built, 1);
  const Result<ptx::LaunchCounts> counts =
      RunImage(sources[0], *image, arguments, {.orders = {ptx::WarpOrder::kLowestFirst}, .count_accesses = true});
  REQUIRE(counts.ok());
  MESSAGE(counts->global_sectors, " sectors in ", counts->global_requests, " requests");
  CHECK(counts->global_sectors <= 65536 * 4 / 32 + 64);
}

}  // namespace
}  // namespace ingot::codegen
