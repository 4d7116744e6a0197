// Sizes, dtypes, orders of axes and epilogues of products; the numbers are small integers, so that sums are exact in any
// order and results equal bit for bit.
#include "tests/compiler/codegen/ptx_product.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "compiler/op/reference.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/schedule/device_loops.h"
#include "compiler/te/tensor.h"

namespace ingot::codegen::testing {

using ir::Int64;
using ir::PrimExpr;

namespace {
constexpr int64_t kPanel = 16;
}  // namespace

std::string Product::Text() const {
  std::string text = dtype.ToString() + "->" + sum_dtype.ToString();
  for (const int64_t size : {batch, m, n, k}) text += " " + std::to_string(size);
  return text + (a_turned ? " a^T" : "") + (b_turned ? " b^T" : "") + (out_turned ? " out^T" : "") +
         (b_shared ? " b shared" : "") + (b_panels ? " b in panels" : "") + (has_epilogue ? " epilogue" : "") +
         (rounds ? " tf32" : "") + " symbolic " + std::to_string(symbolic);
}

Product Plain(int64_t m, int64_t n, int64_t k) {
  Product p{};
  p.m = m;
  p.n = n;
  p.k = k;
  return p;
}

SizedFunction Build(const Product& p) {
  const auto size = [&](int64_t value, unsigned bit, const char* name) {
    return (p.symbolic >> bit & 1u) != 0 ? PrimExpr(ir::MakePrimVar(name)) : Int64(value);
  };
  const PrimExpr batch = size(p.batch, 0, "b"), m = size(p.m, 1, "m"), n = size(p.n, 2, "n"), k = size(p.k, 3, "k");
  const auto in_order = [&](auto x, auto y, auto of_batch, bool turned, bool has_batch) {
    std::vector<decltype(x)> all{turned ? y : x, turned ? x : y};
    if (has_batch) all.insert(all.begin(), of_batch);
    return all;
  };
  const bool has_batch = p.batch > 0, b_has_batch = has_batch && !p.b_shared && !p.b_panels;
  const std::vector<int64_t> panels = {(p.n + kPanel - 1) / kPanel, p.k, kPanel};
  const te::Tensor a = te::Placeholder(in_order(m, k, batch, p.a_turned, has_batch), p.dtype, "A");
  const te::Tensor b = p.b_panels ? te::Placeholder({Int64(panels[0]), k, Int64(kPanel)}, p.dtype, "B")
                                  : te::Placeholder(in_order(k, n, batch, p.b_turned, b_has_batch), p.dtype, "B");
  const te::Tensor bias = te::Placeholder({n}, p.sum_dtype, "bias");
  const ir::IterVar r = te::ReduceAxis(k, "k");
  const std::vector<PrimExpr> shape = in_order(m, n, batch, p.out_turned, has_batch);
  const size_t at = has_batch ? 1 : 0;
  const auto row = [&](const te::Indices& i) { return i[at + (p.out_turned ? 1 : 0)]; };
  const auto column = [&](const te::Indices& i) { return i[at + (p.out_turned ? 0 : 1)]; };
  te::Tensor out = te::Compute(
      shape,
      [&](const te::Indices& i) {
        const PrimExpr rk = r->var, at = column(i);
        const PrimExpr weight = p.b_panels ? b(ir::FloorDiv(at, Int64(kPanel)), rk, ir::FloorMod(at, Int64(kPanel)))
                                           : b(in_order(rk, at, i[0], p.b_turned, b_has_batch));
        return te::Sum(
            ir::Cast(p.sum_dtype, a(in_order(row(i), rk, i[0], p.a_turned, has_batch))) * ir::Cast(p.sum_dtype, weight),
            {r});
      },
      "matmul");
  SizedFunction built{nullptr, {}, {p.dtype, p.dtype}};
  built.dims = {in_order(p.m, p.k, p.batch, p.a_turned, has_batch),
                p.b_panels ? panels : in_order(p.k, p.n, p.batch, p.b_turned, b_has_batch)};
  std::vector<te::Tensor> args{a, b};
  if (p.has_epilogue) {
    const te::Tensor sum = out;
    const te::Tensor biased = te::Compute(
        shape, [&](const te::Indices& i) { return sum(i) + bias(std::vector<PrimExpr>{column(i)}); }, "biased");
    out = te::Compute(
        shape,
        [&](const te::Indices& i) { return ir::Cast(p.dtype, ir::Max(biased(i), ir::MakeConst(p.sum_dtype, 0))); },
        "clipped");
    args.push_back(bias);
    built.dims.push_back({p.n});
    built.dtypes.push_back(p.sum_dtype);
  }
  args.push_back(out);
  built.dims.push_back(in_order(p.m, p.n, p.batch, p.out_turned, has_batch));
  built.dtypes.push_back(out.dtype());
  built.function = te::CreatePrimFunc(args);
  if (p.rounds) {
    ir::PrimFuncNode permitted = *built.function;
    permitted.attrs = permitted.attrs.With(schedule::kTf32Attr, true);
    built.function = ir::Make<ir::PrimFuncNode>(std::move(permitted));
  }
  return built;
}

op::KernelArguments ArgumentsOf(const Product& p, const SizedFunction& built, uint64_t seed) {
  op::KernelArguments arguments = SmallIntegers(built, seed);
  if (!p.rounds) return arguments;
  constexpr uint32_t kHalf = 1u << 12;
  for (size_t i = 0; i < 2; ++i) {
    for (size_t at = 0; at < arguments.bytes[i].size(); at += 4) {
      uint32_t bits = 0;
      std::memcpy(&bits, &arguments.bytes[i][at], 4);
      if (bits << 1 == 0) continue;
      bits += at % 12 == 0 ? -kHalf : at % 12 == 4 ? kHalf - 1 : -(kHalf / 2);
      std::memcpy(&arguments.bytes[i][at], &bits, 4);
    }
  }
  return arguments;
}

Result<op::Bytes> Expected(const Product& p, uint64_t seed) {
  Product whole = p;
  whole.k = std::max<int64_t>(p.k, 1);
  const SizedFunction built = Build(whole);
  op::KernelArguments arguments = SmallIntegers(built, seed);
  for (size_t i = 0; p.k == 0 && i < 2; ++i) std::ranges::fill(arguments.bytes[i], std::byte{0});
  return InterpretedResult(built, std::move(arguments));
}

Product RandomProduct(std::mt19937_64& generator, const Dtypes& dtypes, const std::vector<int64_t>& sizes,
                      int64_t least) {
  const auto below = [&](uint64_t n) { return static_cast<size_t>(generator() % n); };
  const auto size = [&] { return sizes[below(sizes.size())]; };
  Product p{};
  p.batch = below(3) == 0 ? static_cast<int64_t>(1 + below(3)) : 0;
  p.m = size();
  p.n = size();
  p.k = size();
  std::tie(p.dtype, p.sum_dtype) = dtypes[below(dtypes.size())];
  p.a_turned = below(2) == 0;
  p.b_turned = below(2) == 0;
  p.out_turned = below(4) == 0;
  p.b_shared = below(2) == 0;
  p.has_epilogue = below(2) == 0;
  p.symbolic = below(2) == 0 ? 0 : static_cast<unsigned>(below(16));
  p.b_panels = p.n >= least && below(5) == 0;
  if (p.b_panels) p.symbolic &= ~4u;
  const int64_t fixed[] = {p.m, p.n, p.k};
  for (unsigned i = 0; i < 3; ++i) p.symbolic |= fixed[i] < least ? 2u << i : 0;
  if (p.batch == 0) p.symbolic &= ~1u;
  return p;
}

void CheckProducts(const std::string& rule, const Dtypes& dtypes, const std::vector<int64_t>& sizes, int64_t least,
                   size_t count) {
  if (std::getenv("INGOT_LONG_TESTS") != nullptr) count *= 10;
  std::mt19937_64 generator(21);
  std::vector<KernelSource> sources;
  for (size_t i = 0; i < count; ++i) {
    Product p = RandomProduct(generator, dtypes, sizes, least);
    p.rounds = rule == "cuda_mma" && p.dtype == DataType::Float(32);
    CAPTURE(p.Text());
    const SizedFunction built = Build(p);
    const std::string kept_away = KeepsAway(built.function, rule, "matmul");
    // Products of any number of rows have a rule of their own.
    const bool has_rows = rule == "cuda_mma" && KeepsAway(built.function, "cuda_mma_rows", "matmul").empty();
    CHECK((has_rows ? "" : kept_away) == "");
    const Result<op::Bytes> expected = Expected(p, i);
    REQUIRE_MESSAGE(expected.ok(), expected.status().message());
    CHECK(Wrong(built, ArgumentsOf(p, built, i), *expected, sources) == "");
  }
  CompileForLater(sources);
}

Judged Judge(Product p, const std::vector<std::vector<int64_t>>& sizes, const schedule::Chosen& chosen) {
  p.symbolic = 14;
  std::vector<Judged::Run> runs;
  ir::PrimFunc function;
  for (const std::vector<int64_t>& size : sizes) {
    p.m = size[0];
    p.n = size[1];
    p.k = size[2];
    const SizedFunction built = Build(p);
    if (!function) function = built.function;
    const Result<op::Bytes> expected = Expected(p, 1);
    REQUIRE(expected.ok());
    runs.push_back({ArgumentsOf(p, built, 1), *expected});
  }
  const Target target = Sm("sm_80");
  const Result<schedule::ScheduledFunction> scheduled = schedule::ApplyDefaultSchedule(function, target, chosen);
  REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
  const Result<KernelSource> source = SourceOf(schedule::MarkScheduled(scheduled->function), target);
  REQUIRE_MESSAGE(source.ok(), source.status().message());
  Result<PtxImage> image = CompilePtx({&*source, 1}, target);
  REQUIRE(image.ok());
  Judged judged{*source, *std::move(image), std::move(runs)};
  REQUIRE(judged.IsRight(judged.image.ptx));
  return judged;
}

void ForLines(const std::string& text, const std::function<void(size_t, const std::string&)>& visit) {
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    visit(start, text.substr(start, end - start));
    start = end + 1;
  }
}

}  // namespace ingot::codegen::testing
