// The tensor pass unfuse_loops: what it makes computes the same, and it leaves loops alone that may run with a divisor
// of 0.
#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "compiler/interp/interpreter.h"
#include "compiler/transform/tensor/passes.h"
#include "tests/compiler/codegen/jit.h"

namespace ingot::transform {
namespace {

using codegen::testing::Function;
using codegen::testing::Loop;
using codegen::testing::Store;
using ir::Int64;
using ir::PrimExpr;
using ir::PrimVar;

const DataType kI64 = DataType::Int(64);

struct Symbols {
  PrimVar a = ir::MakePrimVar("a", kI64), b = ir::MakePrimVar("b", kI64), n = ir::MakePrimVar("n", kI64);
  ir::Buffer input = ir::Make<ir::BufferNode>("x", kI64, std::vector<PrimExpr>{a, b, n});
  ir::Buffer output = ir::Make<ir::BufferNode>("y", kI64, std::vector<PrimExpr>{a * b * n});
};

ir::PrimFunc Unfused(const ir::PrimFunc& function) {
  Result<ir::PrimFunc> result = UnfuseLoops(function, codegen::testing::TargetNamed("x86-64-v3"));
  REQUIRE(result.ok());
  return *result;
}

std::vector<int64_t> Interpreted(const ir::PrimFunc& function, const std::array<int64_t, 3>& dims) {
  const int64_t count = dims[0] * dims[1] * dims[2];
  std::vector<int64_t> x(static_cast<size_t>(count), 0), y(static_cast<size_t>(count), -1);
  const std::vector<interp::HostBuffer> host{
      {kI64, {dims[0], dims[1], dims[2]}, std::as_writable_bytes(std::span(x)), true},
      {kI64, {count}, std::as_writable_bytes(std::span(y)), false}};
  const Status status = interp::Interpret(function, host);
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  return y;
}

void CheckSame(const ir::PrimFunc& function) {
  const ir::PrimFunc unfused = Unfused(function);
  CHECK(unfused->body.get() != function->body.get());
  codegen::testing::Kernel kernel(unfused);
  for (const std::array<int64_t, 3>& dims : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                                {2, 3, 5},
                                                                                {3, 1, 7},
                                                                                {1, 4, 9},
                                                                                {5, 6, 1},
                                                                                {2, 1, 2},
                                                                                {0, 3, 4},
                                                                                {3, 0, 4},
                                                                                {3, 4, 0},
                                                                                {3, 2, 23}}) {
    CAPTURE(dims[0]);
    CAPTURE(dims[1]);
    CAPTURE(dims[2]);
    const std::vector<int64_t> expected = Interpreted(function, dims);
    CHECK(Interpreted(unfused, dims) == expected);
    codegen::testing::Tensor<int64_t> x(expected.size() + 1), y(expected.size(), -1);
    CHECK(kernel.Run({x.data(), y.data()}, {dims[0], dims[1], dims[2]}) == 0);
    CHECK(std::vector<int64_t>(y.begin(), y.end()) == expected);
  }
}

TEST_CASE("a fused loop in chunks becomes loops over quotients and remainders") {
  const Symbols s;
  const PrimExpr total = s.a * s.b * s.n;
  const auto value = [&](const PrimExpr& place, const PrimExpr& step) {
    const PrimExpr row = ir::FloorDiv(place, s.n);
    return ((step * Int64(1000) + ir::FloorDiv(row, s.b)) * Int64(1000) + ir::FloorMod(row, s.b)) * Int64(1000) +
           ir::FloorMod(place, s.n);
  };
  for (const int64_t chunk : {1, 3, 7, 64}) {
    const PrimExpr size = Int64(chunk);
    CheckSame(Function({s.input, s.output}, Loop(
                                                ir::FloorDiv(total + size - Int64(1), size),
                                                [&](const PrimExpr& t) {
                                                  return Loop(ir::Min(size, total - t * size), [&](const PrimExpr& i) {
                                                    return Store(s.output, value(t * size + i, i), {t * size + i});
                                                  });
                                                },
                                                ir::ForKind::kParallel)));
  }
  CheckSame(Function({s.input, s.output},
                     Loop(total, [&](const PrimExpr& i) { return Store(s.output, value(i, Int64(0)), {i}); })));
}

TEST_CASE("a loop whose quotient by a number is divided by a symbol is cut by the number first") {
  const Symbols s;
  const PrimExpr total = s.a * s.b * s.n, size = Int64(7);
  const auto value = [&](const PrimExpr& place) {
    const PrimExpr half = ir::FloorDiv(place, Int64(2));
    return (ir::FloorDiv(half, s.n) * Int64(1000) + ir::FloorMod(half, s.n)) * Int64(10) +
           ir::FloorMod(place, Int64(2));
  };
  CheckSame(Function({s.input, s.output}, Loop(ir::FloorDiv(total + size - Int64(1), size), [&](const PrimExpr& t) {
                       return Loop(ir::Min(size, total - t * size), [&](const PrimExpr& i) {
                         return Store(s.output, value(t * size + i), {t * size + i});
                       });
                     })));
}

TEST_CASE("a divisor that is a sum or a product may be one of the fused extents") {
  const Symbols s;
  const PrimExpr less = s.n - Int64(2), plane = s.b * s.n;
  CheckSame(Function({s.input, s.output}, Loop(s.a * s.b * less, [&](const PrimExpr& i) {
                       return Store(s.output, ir::FloorMod(i, less), {ir::FloorDiv(i, less)});
                     })));
  CheckSame(Function({s.input, s.output}, Loop(s.a * plane, [&](const PrimExpr& i) {
                       return Store(s.output, ir::FloorMod(i, plane), {ir::FloorDiv(i, plane)});
                     })));
}

TEST_CASE("a loop that may run with a divisor of 0 is left alone") {
  const Symbols s;
  const auto check = [](const ir::PrimFunc& function) { CHECK(Unfused(function)->body.get() == function->body.get()); };
  check(Function({s.input, s.output},
                 Loop(s.a, [&](const PrimExpr& i) { return Store(s.output, ir::FloorMod(i, s.n), {i}); })));
  // A divisor that the loop changes, and a constant one.
  check(Function({s.input, s.output},
                 Loop(s.a, [&](const PrimExpr& i) { return Store(s.output, ir::FloorMod(i, i + Int64(1)), {i}); })));
  check(Function({s.input, s.output},
                 Loop(s.a, [&](const PrimExpr& i) { return Store(s.output, ir::FloorDiv(i, Int64(3)), {i}); })));
}

}  // namespace
}  // namespace ingot::transform
