#include "compiler/arith/linear_bound.h"

#include <doctest/doctest.h>

#include "compiler/ir/visitor.h"

namespace ingot::arith {
namespace {

using ir::Int64;
using ir::PrimExpr;
using ir::PrimVar;

// Whether a condition holds at these values.
bool Holds(const PrimExpr& condition, const ir::PrimVarMap& values) {
  return ir::AsConstInt(Analyzer().Simplify(ir::Substitute(condition, values))).value() != 0;
}

TEST_CASE("a comparison that is linear in a variable holds on one side of one place") {
  const PrimVar i = ir::MakePrimVar("i"), n = ir::MakePrimVar("n");
  const PrimExpr sides[] = {PrimExpr(i), i * 3 + n, n - i * 4, n * 2 - i, i * 2 - 7};
  int solved = 0;
  for (const PrimExpr& a : sides) {
    for (const PrimExpr& b : {PrimExpr(n), Int64(5), n - i}) {
      for (const PrimExpr& comparison : {a<b, a <= b, a> b, a >= b}) {
        Analyzer analyzer;
        const std::optional<LinearBound> bound = BoundOf(comparison, i, analyzer);
        if (!bound) continue;
        ++solved;
        for (int64_t at_n = -3; at_n <= 9; ++at_n) {
          const PrimExpr place = ir::Substitute(bound->Place(), {{n, Int64(at_n)}});
          for (int64_t at_i = -20; at_i <= 20; ++at_i) {
            const bool is_after = Holds(Int64(at_i) >= place, {});
            CHECK(Holds(comparison, {{i, Int64(at_i)}, {n, Int64(at_n)}}) == (is_after == bound->holds_after()));
          }
        }
      }
    }
  }
  CHECK(solved == 60 - 4);  // n * 2 - i against n - i says nothing about i
}

TEST_CASE("comparisons that bound no variable") {
  const PrimVar i = ir::MakePrimVar("i"), n = ir::MakePrimVar("n"), x = ir::MakePrimVar("x", DataType::Float(32));
  Analyzer analyzer;
  CHECK_FALSE(BoundOf(ir::Equal(i, n), i, analyzer));
  CHECK_FALSE(BoundOf(i * n < n, i, analyzer));
  CHECK_FALSE(BoundOf(ir::FloorDiv(i, Int64(2)) < n, i, analyzer));
  CHECK_FALSE(BoundOf(PrimExpr(n) < Int64(4), i, analyzer));
  CHECK_FALSE(BoundOf(x < ir::FloatImm(DataType::Float(32), 1), x, analyzer));
  CHECK_FALSE(BoundOf(PrimExpr(i), i, analyzer));
}

}  // namespace
}  // namespace ingot::arith
