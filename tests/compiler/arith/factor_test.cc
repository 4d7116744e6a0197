#include "compiler/arith/factor.h"

#include <doctest/doctest.h>

#include <random>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/count_nodes.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"

namespace ingot::arith {
namespace {

using ir::Int64;
using ir::PrimExpr;
using ir::PrimVar;

TEST_CASE("factors of sums stand outside of brackets") {
  const PrimVar a = ir::MakePrimVar("a"), b = ir::MakePrimVar("b"), c = ir::MakePrimVar("c");
  const PrimExpr half = ir::FloorDiv(b - 1, Int64(2));
  const struct {
    PrimExpr expr;
    int64_t nodes;  // at most
  } cases[] = {
      {(a + 3) * (b + 5) * (c - 1), 11},
      {(a + 3) * (b - 5) * (c + 1) * 6, 13},
      {(a - b) * (c + 1) * 3, 11},
      {(a - b) * (b - c) * (a + c), 19},
      {ir::FloorDiv(a * (ir::Min(a, b) - ir::Min(b, c)) * (ir::Min(a, c) - ir::Min(b, Int64(4))) + 31, Int64(32)), 23},
      {(a * a + a * 3 + 1) * (half + 2), 17},
      {(half + 1) * (half + 1) * (a + 1), 23},
      {ir::FloorDiv((a + 3) * (b + 5) * (c + 7) + 255, Int64(256)), 17},
      {a * b + a * c + b * 2, 9},
      {ir::Max((a + 1) * (b + 1), (a + 2) * (c + 2)), 15},
      {(a + 1) * 4 - (a + 1) * 2, 5},
      {a - a, 1},
      {a + 1, 3},
  };
  std::mt19937_64 random(1);
  for (const auto& [expr, nodes] : cases) {
    const PrimExpr factored = FactorSums(Analyzer().Simplify(expr));
    CHECK(ir::CountNodes(factored) <= nodes);
    for (int draw = 0; draw < 20; ++draw) {
      ir::PrimVarMap values;
      for (const PrimVar& var : {a, b, c}) values.emplace(var, Int64(static_cast<int64_t>(random() % 100)));
      const auto value = [&](const PrimExpr& e) {
        return ir::AsConstInt(Analyzer().Simplify(ir::Substitute(e, values))).value();
      };
      CHECK(value(factored) == value(expr));
    }
  }
  // What overflows stays as it is.
  const PrimExpr large = (a + (int64_t{1} << 62)) * (b + 8);
  CHECK(ir::StructuralEqual(FactorSums(large), large));
}

TEST_CASE("the factors of a sum are found in few steps, of numbers that have quotients") {
  const PrimVar x = ir::MakePrimVar("x"), y = ir::MakePrimVar("y"), z = ir::MakePrimVar("z"), t = ir::MakePrimVar("t");
  // Division of the power by the difference would go on for all ways to choose 30 of eleven factors.
  PrimExpr difference = x, power = x;
  for (int i = 0; i < 10; ++i) difference = difference - ir::MakePrimVar("y" + std::to_string(i));
  for (int i = 1; i < 30; ++i) power = power * x;
  CHECK(ir::CountNodes(FactorSums(t * difference + power)) < 200);
  // The least number has no quotient by -1.
  const PrimExpr least = Int64(-(int64_t{1} << 62));
  CHECK(ir::CountNodes(FactorSums(least * x * x * z + least * x * y * z + t * (y - x))) < 60);
}

}  // namespace
}  // namespace ingot::arith
