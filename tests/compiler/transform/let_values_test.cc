// Variables of lets are no dimensions: they may be negative, and no pass and no emitter of code may take them for
// something else. Functions with lets of drawn values are lowered and compiled; the interpreter says what they compute.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "compiler/interp/interpreter.h"
#include "compiler/transform/tensor/lowered.h"
#include "tests/compiler/codegen/jit.h"

namespace ingot::transform {
namespace {

using codegen::testing::Function;
using codegen::testing::Load;
using codegen::testing::Loop;
using codegen::testing::Store;
using ir::Int64;
using ir::PrimExpr;
using ir::PrimVar;

const DataType kI64 = DataType::Int(64);
constexpr int64_t kValues = 12, kRows = 4, kColumns = 6;

// What is computed of a let's variable, and of the iteration: all of it is defined for values from -3 to 3.
using Use = std::function<PrimExpr(const PrimExpr& let, const PrimExpr& i, const ir::Buffer& table)>;
const std::vector<Use> kUses = {
    // By 0 at run time as well, where the interpreter and the kernel fail alike.
    [](auto& let, auto&, auto&) { return ir::FloorMod(Int64(-7), let); },
    [](auto& let, auto&, auto&) { return ir::FloorDiv(Int64(100), let); },
    [](auto& let, auto& i, auto&) { return ir::FloorDiv(i, let + Int64(1)); },
    [](auto& let, auto& i, auto&) { return ir::FloorMod(i - Int64(5), let - Int64(1)); },
    // Comparisons and choices that hold of every dimension.
    [](auto& let, auto&, auto&) { return ir::Max(let, Int64(0)); },
    [](auto& let, auto&, auto&) { return ir::Min(let, Int64(-1)); },
    [](auto& let, auto& i, auto&) { return ir::Select(let < Int64(0), i, Int64(-9)); },
    [](auto& let, auto& i, auto&) { return ir::Select(Int64(0) <= let + i, i, Int64(-9)); },
    // Places that are clamped, in a table of which a fused index finds row and column.
    [](auto& let, auto& i, auto& table) {
      return Load(table, {ir::Max(let, Int64(0)), ir::FloorMod(i, Int64(kColumns))});
    },
    [](auto& let, auto& i, auto& table) {
      const PrimExpr place = ir::Max(ir::Min(let + ir::FloorDiv(i, Int64(kColumns)), Int64(kRows - 1)), Int64(0));
      return Load(table, {place, ir::FloorMod(i, Int64(kColumns))});
    },
};

// for i: let d = x[i]: y[i] = use(d, i), the let as a statement or in the expression, the loop in vectors or not.
ir::PrimFunc Made(const Use& use, bool is_stmt, ir::ForKind kind) {
  const auto buffer = [](const char* name, std::vector<PrimExpr> shape) {
    return ir::Make<ir::BufferNode>(name, kI64, std::move(shape));
  };
  const ir::Buffer x = buffer("x", {Int64(kValues)}), table = buffer("table", {Int64(kRows), Int64(kColumns)});
  const ir::Buffer y = buffer("y", {Int64(kValues)});
  return Function({x, table, y}, Loop(
                                     Int64(kValues),
                                     [&](const PrimExpr& i) -> ir::Stmt {
                                       const PrimVar d = ir::MakePrimVar("d", kI64);
                                       const PrimExpr value = Load(x, {i}), body = use(d, i, table);
                                       if (is_stmt) return ir::Make<ir::LetStmtNode>(d, value, Store(y, body, {i}));
                                       const PrimExpr inside = ir::Make<ir::LetNode>(d, value, body);
                                       return Store(y, inside * Int64(2) + Int64(1), {i});
                                     },
                                     kind));
}

ir::PrimFunc Lowered(const ir::PrimFunc& function) {
  Result<ir::PrimFunc> lowered = LowerPrimFunc(function, codegen::testing::TargetNamed("x86-64-v3"));
  REQUIRE_MESSAGE(lowered.ok(), lowered.status().ToString());
  return *lowered;
}

TEST_CASE("variables of lets may be negative") {
  for (size_t u = 0; u < kUses.size(); ++u) {
    for (const bool is_stmt : {false, true}) {
      for (const ir::ForKind kind : {ir::ForKind::kSerial, ir::ForKind::kVectorized}) {
        CAPTURE(u);
        CAPTURE(is_stmt);
        CAPTURE((kind == ir::ForKind::kVectorized));
        const ir::PrimFunc function = Made(kUses[u], is_stmt, kind);
        codegen::testing::Kernel kernel(Lowered(function));
        for (const int64_t shift : {-3, -2, -1, 0, 1, 2}) {
          codegen::testing::Tensor<int64_t> x(kValues), table(kRows * kColumns), y(kValues, 77), expected(kValues, 77);
          for (size_t i = 0; i < x.size(); ++i) x[i] = i % 2 == 0 ? shift : std::min<int64_t>(shift + 1, -1);
          for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int64_t>(i) + 100;
          const auto host = [](codegen::testing::Tensor<int64_t>& data, std::vector<int64_t> shape, bool is_input) {
            return interp::HostBuffer{kI64, std::move(shape), std::as_writable_bytes(std::span(data)), is_input};
          };
          const std::vector<interp::HostBuffer> buffers{host(x, {kValues}, true), host(table, {kRows, kColumns}, true),
                                                        host(expected, {kValues}, false)};
          const Status status = interp::Interpret(function, buffers);
          CHECK((kernel.Run({x.data(), table.data(), y.data()}) == 0) == status.ok());
          if (!status.ok()) continue;
          for (size_t i = 0; i < y.size(); ++i) CHECK(y[i] == expected[i]);
        }
      }
    }
  }
}

// Products of elements wrap around: of factors above 0 they may be below it, or 0.
TEST_CASE("nothing is known of what is computed from elements") {
  const Use clamped = [](auto& let, auto&, auto&) {
    const PrimVar product = ir::MakePrimVar("product", kI64);
    const PrimExpr positive = ir::Max(let, Int64(1));
    return PrimExpr(ir::Make<ir::LetNode>(product, positive * positive, ir::Max(product, Int64(0))));
  };
  const Use divided = [](auto& let, auto&, auto&) {
    return ir::FloorDiv(Int64(100), ir::Max(let, Int64(1)) * ir::Max(let, Int64(1)));
  };
  for (const bool is_stmt : {false, true}) {
    for (const bool divides : {false, true}) {
      CAPTURE(is_stmt);
      CAPTURE(divides);
      codegen::testing::Kernel kernel(Lowered(Made(divides ? divided : clamped, is_stmt, ir::ForKind::kSerial)));
      for (const int64_t factor : {int64_t{3}, int64_t{3037000500}, int64_t{1} << 32}) {
        CAPTURE(factor);
        const auto square = static_cast<int64_t>(static_cast<uint64_t>(factor) * static_cast<uint64_t>(factor));
        codegen::testing::Tensor<int64_t> x(kValues, factor), table(kRows * kColumns), y(kValues, 77);
        const bool fails = divides && square == 0;
        CHECK((kernel.Run({x.data(), table.data(), y.data()}) == 0) == !fails);
        const int64_t quotient = square == 0 ? 0 : 100 / square - (100 % square != 0 && square < 0 ? 1 : 0);
        const int64_t expected = divides ? quotient : std::max<int64_t>(square, 0);
        if (!fails) CHECK(y[0] == (is_stmt ? expected : 2 * expected + 1));
      }
    }
  }
}

// The quotient wraps; the processor's instruction would end the process.
TEST_CASE("the smallest integer is divided by a let's variable of -1") {
  const Use quotient = [](auto& let, auto&, auto&) { return ir::FloorDiv(Int64(INT64_MIN), let); };
  for (const bool is_stmt : {false, true}) {
    codegen::testing::Kernel kernel(Lowered(Made(quotient, is_stmt, ir::ForKind::kSerial)));
    codegen::testing::Tensor<int64_t> x(kValues, -1), table(kRows * kColumns), y(kValues, 77);
    CHECK(kernel.Run({x.data(), table.data(), y.data()}) == 0);
    CHECK(y[0] == (is_stmt ? INT64_MIN : 1));
  }
}

}  // namespace
}  // namespace ingot::transform
