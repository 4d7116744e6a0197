#include "compiler/arith/analyzer.h"

#include <doctest/doctest.h>

#include <random>

#include "compiler/ir/int_math.h"
#include "compiler/ir/structural.h"

namespace ingot::arith {
namespace {

using ir::BinaryOp;
using ir::FloorDiv;
using ir::FloorMod;
using ir::Int64;
using ir::MakePrimVar;
using ir::PrimExpr;
using ir::PrimVar;

// A short text of an expression, for the messages of failing checks.
std::string Text(const PrimExpr& expr) {
  if (const auto constant = ir::AsConstInt(expr)) return std::to_string(*constant);
  if (const auto* var = ir::As<ir::PrimVarNode>(expr)) return var->name;
  const auto* node = ir::As<ir::BinaryNode>(expr);
  if (node == nullptr) return "?";
  static constexpr const char* kNames[] = {"+",  "-",  "*", "div", "mod", "//", "%",   "min", "max",
                                           "==", "!=", "<", "<=",  ">",   ">=", "and", "or"};
  return "(" + Text(node->a) + " " + kNames[static_cast<size_t>(node->op)] + " " + Text(node->b) + ")";
}

struct Fixture {
  Analyzer analyzer;
  PrimVar i = MakePrimVar("i");
  PrimVar j = MakePrimVar("j");
  PrimVar k = MakePrimVar("k");
  PrimVar n = MakePrimVar("n");
  PrimVar m = MakePrimVar("m");
  PrimVar x = MakePrimVar("x");  // any value
  Fixture() {
    analyzer.Bind(i, {Int64(0), Int64(16)});
    analyzer.Bind(j, {Int64(0), Int64(4)});
    analyzer.Bind(x, Interval::Everything());
  }
  // Checks that simplifying `from` gives exactly `to`.
  void Becomes(const PrimExpr& from, const PrimExpr& to) {
    const PrimExpr got = analyzer.Simplify(from);
    INFO(Text(got), " instead of ", Text(to));
    CHECK(ir::StructuralEqual(got, to));
  }
};

TEST_CASE_FIXTURE(Fixture, "sums are collected in order of first occurrence") {
  Becomes(n + 3 + m - n * 2 - 5, m - n - 2);
  Becomes((n + 1) * (m + 2), n * m + n * 2 + m + 2);
  Becomes(Int64(3) - n, Int64(3) - n);
  Becomes(n * m - m * n, Int64(0));
}

TEST_CASE_FIXTURE(Fixture, "indices of fused and split loops come apart") {
  Becomes(FloorDiv(i * 4 + j, Int64(4)), i);
  Becomes(FloorMod(i * 4 + j, Int64(4)), j);
  Becomes(FloorDiv(i * 4 + j, Int64(8)), FloorDiv(i, Int64(2)));
  Becomes(FloorMod(i * 4 + j, Int64(8)), FloorMod(i, Int64(2)) * 4 + j);
  Becomes(FloorDiv(FloorDiv(x, Int64(4)), Int64(3)), FloorDiv(x, Int64(12)));
  Becomes(FloorDiv(FloorMod(x, Int64(12)), Int64(4)), FloorMod(FloorDiv(x, Int64(4)), Int64(3)));
  Becomes(FloorDiv(x, Int64(4)) * 4 + FloorMod(x, Int64(4)), x);
  Becomes(FloorDiv(x, Int64(12)) * 12 + FloorMod(FloorDiv(x, Int64(4)), Int64(3)) * 4 + FloorMod(x, Int64(4)), x);
  Becomes(FloorDiv(x, Int64(12)) * 3 + FloorMod(FloorDiv(x, Int64(4)), Int64(3)), FloorDiv(x, Int64(4)));
  Becomes(FloorDiv(x, Int64(12)) * 6 + FloorMod(FloorDiv(x, Int64(6)), Int64(2)) * 3 +
              FloorMod(FloorDiv(x, Int64(2)), Int64(3)),
          FloorDiv(x, Int64(2)));
  Becomes(FloorMod(FloorMod(x, Int64(12)), Int64(4)), FloorMod(x, Int64(4)));
  // Also when a multiple of the divisor is taken out of the quotient (40 = 5 * 7 + 5), and over three levels.
  const PrimExpr y = x * 40 + i;
  Becomes(FloorDiv(y, Int64(7)) * 7 + FloorMod(y, Int64(7)), y);
  Becomes(FloorDiv(y, Int64(49)) * 49 + FloorMod(FloorDiv(y, Int64(7)), Int64(7)) * 7 + FloorMod(y, Int64(7)), y);
  Becomes(FloorDiv(x, n) * n + FloorMod(x, n), x);
  // The same by a sum, of which the divisor is one factor among others.
  Becomes(FloorDiv(x, n + 3) * (n + 3) + FloorMod(x, n + 3), x);
  Becomes((FloorDiv(x, n + 3) + m) * ((n + 3) * 7) + FloorMod(x, n + 3) * 7, m * n * 7 + m * 21 + x * 7);
  Becomes(FloorDiv(x, n * 2 + 1) * (n * 2 + 1) * k + FloorMod(x, n * 2 + 1) * k, x * k);
  Becomes(FloorDiv(x, n + 3) * n + FloorMod(x, n + 3), FloorDiv(x, n + 3) * n + FloorMod(x, n + 3));
  Becomes(FloorMod(Int64(7) - FloorMod(x, Int64(8)), Int64(8)), Int64(7) - FloorMod(x, Int64(8)));
  Becomes(FloorDiv(x * 6 + 3, Int64(4)), x + FloorDiv(x + 1, Int64(2)));
}

TEST_CASE_FIXTURE(Fixture, "symbolic extents divide") {
  analyzer.Bind(k, {Int64(0), n});
  Becomes(FloorDiv(i * n + k, n), i);
  Becomes(FloorMod(i * n + k, n), k);
  Becomes(FloorDiv(n * 64 * m, n * 32), m * 2);
  CHECK(analyzer.ProveDivisible(n * 64 + 32, 32));
  CHECK_FALSE(analyzer.ProveDivisible(n * 64 + 16, 32));
  analyzer.Assume(ir::Equal(FloorMod(n, Int64(4)), Int64(0)));
  CHECK(analyzer.ProveDivisible(n, 4));
  Becomes(FloorDiv(n, Int64(4)) * 4, n);
}

TEST_CASE_FIXTURE(Fixture, "conditions are decided by ranges") {
  analyzer.Bind(k, {Int64(0), n});
  CHECK(analyzer.Prove(k < n));
  CHECK(analyzer.Prove(FloorMod(x, n) < n));
  analyzer.Bind(x, {Int64(0), n * 12});
  CHECK(analyzer.Prove(FloorDiv(x, n) < Int64(12)));
  CHECK_FALSE(analyzer.Prove(FloorDiv(x, n) < Int64(11)));
  CHECK(analyzer.Prove(k * 4 + j < n * 4));
  CHECK(analyzer.Prove(i * 4 + j < Int64(64)));
  CHECK_FALSE(analyzer.Prove(i * 4 + j < Int64(63)));
  CHECK(analyzer.ProveLessEqual(FloorDiv(n + 13, Int64(14)) * 14, n + 13));
  CHECK(analyzer.ProveLessEqual(n, FloorDiv(n + 13, Int64(14)) * 14));
  CHECK_FALSE(analyzer.ProveLess(n, FloorDiv(n + 13, Int64(14)) * 14));
  CHECK(analyzer.ProveLessEqual(FloorDiv(n, Int64(8)) * 2, FloorDiv(n, Int64(4))));
  CHECK(analyzer.ProveLessEqual(FloorDiv(n, Int64(4)), FloorDiv(n, Int64(12)) * 3 + 2));
  CHECK_FALSE(analyzer.ProveLessEqual(FloorDiv(n, Int64(4)), FloorDiv(n, Int64(12)) * 3 + 1));
  CHECK_FALSE(analyzer.ProveLess(FloorDiv(n, Int64(8)) * 2, FloorDiv(n, Int64(4))));
  Becomes(i < Int64(16), ir::BoolImm(true));
  Becomes(i * 4 < Int64(32), i < Int64(8));
  Becomes(n + 1 < Int64(9), n < Int64(8));
  Becomes(ir::Equal(n * 2, Int64(3)), ir::BoolImm(false));
  Becomes(Int64(1) <= i, Int64(1) <= i);
}

TEST_CASE_FIXTURE(Fixture, "the tail of a split loop stays inside") {
  // for o in (n + 13) // 14: for t in min(n - o*14, 14)
  const PrimVar o = MakePrimVar("o");
  const PrimVar t = MakePrimVar("t");
  const PrimExpr tail = ir::Min(n - o * 14, Int64(14));
  analyzer.Bind(o, {Int64(0), FloorDiv(n + 13, Int64(14))});
  analyzer.Bind(t, {Int64(0), tail});
  CHECK(analyzer.ProveLess(o * 14 + t, n));
  CHECK(analyzer.ProveLessEqual(tail, Int64(14)));
  CHECK(analyzer.ProveLess(Int64(0), tail));
  CHECK(analyzer.Bounds(t).max == 13);
}

TEST_CASE_FIXTURE(Fixture, "parts of a fused loop stay inside") {
  // for f in n * ((m + 3) // 4) * 3, fused of loops over n, over strips of four of m, and over 3
  const PrimVar f = MakePrimVar("f"), m = MakePrimVar("m");
  const PrimExpr strips = FloorDiv(m + 3, Int64(4));
  analyzer.Bind(f, {Int64(0), n * strips * 3});
  CHECK(analyzer.ProveLess(FloorDiv(f, Int64(3)), n * strips));
  CHECK_FALSE(analyzer.ProveLess(FloorDiv(f, Int64(3)) + 1, n * strips));
  CHECK_FALSE(analyzer.ProveLess(FloorDiv(f, Int64(2)), n * strips));
  CHECK(analyzer.ProveLess(FloorDiv(FloorDiv(f, Int64(3)), strips), n));
  CHECK_FALSE(analyzer.ProveLess(FloorDiv(FloorDiv(f, Int64(2)), strips), n));
}

TEST_CASE_FIXTURE(Fixture, "assumptions count") {
  CHECK_FALSE(analyzer.Prove(x * 2 < n));
  analyzer.Assume(ir::And(x * 2 + 3 < n, x >= Int64(2)));
  CHECK(analyzer.Prove(x * 2 < n));
  CHECK(analyzer.Bounds(x).min == 2);
  CHECK(analyzer.Prove(n >= Int64(8)));
}

TEST_CASE_FIXTURE(Fixture, "minima, truncating division and vectors") {
  Becomes(ir::Min(n, n + 1), n);
  Becomes(ir::Min(Int64(std::numeric_limits<int64_t>::max()), n * 2), n * 2);
  Becomes(ir::Max(n - 7, Int64(std::numeric_limits<int64_t>::min())), n - 7);
  Becomes(ir::Max(i, Int64(20)), Int64(20));
  Becomes(ir::MakeBinary(BinaryOp::kDiv, i * 4 + j, Int64(4)), i);
  Becomes(ir::MakeBinary(BinaryOp::kDiv, x, Int64(4)), ir::MakeBinary(BinaryOp::kDiv, x, Int64(4)));
  const PrimExpr ramp = ir::Make<ir::RampNode>(i, Int64(1), 8);
  Becomes(ramp + n, ir::Make<ir::RampNode>(i + n, Int64(1), 8));
  Becomes(ramp * 4, ir::Make<ir::RampNode>(i * 4, Int64(4), 8));
}

TEST_CASE_FIXTURE(Fixture, "what would overflow stays as it is") {
  const PrimExpr big = Int64(INT64_MAX);
  const PrimExpr sum = (n + big) + big;
  CHECK(analyzer.Simplify(sum)->kind == ir::PrimKind::kBinary);
  CHECK_FALSE(analyzer.Prove(sum >= Int64(0)));
  const PrimVar small = MakePrimVar("small", DataType::Int(32));
  const PrimExpr product = (small * 65536) * 65536;
  CHECK_FALSE(ir::IsConstInt(analyzer.Simplify(product), 0));
}

TEST_CASE_FIXTURE(Fixture, "linear forms") {
  const auto form = DetectLinear(i * 4 + j * n + m + 3, {i, j});
  REQUIRE(form.has_value());
  CHECK(ir::IsConstInt(form->coefficients[0], 4));
  CHECK(form->coefficients[1].same_as(n));
  CHECK(ir::StructuralEqual(form->constant, m + 3));
  CHECK_FALSE(DetectLinear(i * j, {i, j}).has_value());
  CHECK_FALSE(DetectLinear(FloorDiv(i, Int64(2)), {i, j}).has_value());
}

// Random expressions mean the same after simplification, lie in their bounds, and proofs hold.
std::optional<int64_t> Evaluate(const PrimExpr& expr, const std::vector<PrimVar>& vars,
                                const std::vector<int64_t>& values) {
  if (const auto constant = ir::AsConstInt(expr)) return *constant;
  for (size_t v = 0; v < vars.size(); ++v) {
    if (vars[v].get() == expr.get()) return values[v];
  }
  if (const auto* node = ir::As<ir::NotNode>(expr)) {
    const auto a = Evaluate(node->a, vars, values);
    return a.has_value() ? std::optional<int64_t>(*a == 0) : std::nullopt;
  }
  if (const auto* node = ir::As<ir::SelectNode>(expr)) {
    const auto c = Evaluate(node->condition, vars, values);
    const auto t = Evaluate(node->true_value, vars, values);
    const auto f = Evaluate(node->false_value, vars, values);
    return c.has_value() && t.has_value() && f.has_value() ? (*c != 0 ? t : f) : std::nullopt;
  }
  const auto* node = ir::As<ir::BinaryNode>(expr);
  REQUIRE(node != nullptr);
  const auto a = Evaluate(node->a, vars, values);
  const auto b = Evaluate(node->b, vars, values);
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  switch (node->op) {
    case BinaryOp::kAdd:
      return ir::CheckedAdd(*a, *b);
    case BinaryOp::kSub:
      return ir::CheckedSub(*a, *b);
    case BinaryOp::kMul:
      return ir::CheckedMul(*a, *b);
    case BinaryOp::kDiv:
      return ir::CheckedTruncDiv(*a, *b);
    case BinaryOp::kTruncMod:
      return ir::CheckedTruncMod(*a, *b);
    case BinaryOp::kFloorDiv:
      return ir::CheckedFloorDiv(*a, *b);
    case BinaryOp::kFloorMod:
      return ir::CheckedFloorMod(*a, *b);
    case BinaryOp::kMin:
      return std::min(*a, *b);
    case BinaryOp::kMax:
      return std::max(*a, *b);
    case BinaryOp::kEQ:
      return *a == *b;
    case BinaryOp::kNE:
      return *a != *b;
    case BinaryOp::kLT:
      return *a < *b;
    case BinaryOp::kLE:
      return *a <= *b;
    case BinaryOp::kGT:
      return *a > *b;
    case BinaryOp::kGE:
      return *a >= *b;
    case BinaryOp::kAnd:
      return *a != 0 && *b != 0;
    case BinaryOp::kOr:
      return *a != 0 || *b != 0;
  }
  return std::nullopt;
}

class RandomExpr {
 public:
  RandomExpr(std::mt19937& rng, const std::vector<PrimVar>& vars) : rng_(rng), vars_(vars) {}
  PrimExpr Integer(int depth) {
    const int choice = Below(depth == 0 ? 3 : 14);
    if (choice < 2) return vars_[static_cast<size_t>(Below(static_cast<int>(vars_.size())))];
    if (choice == 2) return Int64(Below(41) - 20);
    const PrimExpr a = Integer(depth - 1);
    if (choice < 9) {
      static constexpr int64_t kFactors[] = {2, 3, 4, 6, 8, 12, -2, -3, 1, 16};
      const PrimExpr c = Int64(kFactors[Below(10)]);
      static constexpr BinaryOp kOps[] = {BinaryOp::kMul,      BinaryOp::kFloorDiv, BinaryOp::kFloorMod,
                                          BinaryOp::kFloorDiv, BinaryOp::kFloorMod, BinaryOp::kMul};
      return ir::MakeBinary(kOps[choice - 3], a, c);
    }
    if (choice == 13) return ir::Select(Condition(depth - 1), a, Integer(depth - 1));
    static constexpr BinaryOp kOps[] = {BinaryOp::kAdd, BinaryOp::kSub,     BinaryOp::kAdd,      BinaryOp::kMin,
                                        BinaryOp::kMax, BinaryOp::kMul,     BinaryOp::kFloorDiv, BinaryOp::kFloorMod,
                                        BinaryOp::kDiv, BinaryOp::kTruncMod};
    return ir::MakeBinary(kOps[Below(10)], a, Integer(depth - 1));
  }
  PrimExpr Condition(int depth) {
    static constexpr BinaryOp kOps[] = {BinaryOp::kEQ, BinaryOp::kNE, BinaryOp::kLT,
                                        BinaryOp::kLE, BinaryOp::kGT, BinaryOp::kGE};
    return ir::MakeBinary(kOps[Below(6)], Integer(depth), Integer(depth));
  }
  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(rng_); }

 private:
  std::mt19937& rng_;
  const std::vector<PrimVar>& vars_;
};

TEST_CASE("a loop as long as an element says is not bounded by what the element is later") {
  const ir::Buffer lengths = ir::MakeBuffer("lengths", DataType::Int(64), {Int64(1)});
  const PrimExpr length = ir::Make<ir::BufferLoadNode>(lengths, std::vector<PrimExpr>{Int64(0)});
  const PrimVar k = MakePrimVar("k", DataType::Int(64)), l = MakePrimVar("l", DataType::Int(64)),
                n = MakePrimVar("n", DataType::Int(64));
  Analyzer analyzer;
  analyzer.Bind(k, ir::Range{Int64(0), length});
  analyzer.Bind(l, ir::Range{Int64(0), n});
  CHECK(analyzer.ProveLessEqual(Int64(0), k));
  CHECK_FALSE(analyzer.ProveLess(k, length));
  CHECK(analyzer.ProveLess(l, n));
}

TEST_CASE("random expressions keep their values") {
  std::mt19937 rng(7);
  const std::vector<PrimVar> vars = {MakePrimVar("a"), MakePrimVar("b"), MakePrimVar("c"), MakePrimVar("t")};
  RandomExpr random(rng, vars);
  int evaluated = 0;
  int decided = 0;
  for (int round = 0; round < 1500; ++round) {
    // a and b over constant intervals, negative ones too; c over a loop of a steps, t over a tail min(b, 5).
    Analyzer analyzer;
    const int64_t low = random.Below(30) - 20;
    const int64_t high = low + random.Below(25);
    analyzer.Bind(vars[0], Interval{1, 9});
    analyzer.Bind(vars[1], Interval{low, high});
    analyzer.Bind(vars[2], {Int64(-2), vars[0]});
    analyzer.Bind(vars[3], {vars[2] * 3, ir::Min(vars[0], Int64(5))});
    const PrimExpr expr = round % 3 == 0 ? random.Condition(3) : random.Integer(4);
    const PrimExpr simple = analyzer.Simplify(expr);
    const Interval bounds = analyzer.Bounds(expr);
    decided += round % 3 == 0 && ir::AsConstInt(simple);
    for (int sample = 0; sample < 12; ++sample) {
      const int64_t a = 1 + random.Below(9);
      const int64_t b = low + random.Below(static_cast<int>(high - low + 1));
      const int64_t c = -2 + random.Below(static_cast<int>(a));
      const int64_t t = c * 3 + random.Below(static_cast<int>(std::min<int64_t>(a, 5)));
      const std::vector<int64_t> values = {a, b, c, t};
      const auto expected = Evaluate(expr, vars, values);
      if (!expected.has_value()) continue;
      ++evaluated;
      const auto got = Evaluate(simple, vars, values);
      if (got != expected || *expected < bounds.min || *expected > bounds.max) {
        CAPTURE(round);
        CAPTURE(*expected);
        CAPTURE(got.value_or(-999999));
        CAPTURE(bounds.min);
        CAPTURE(bounds.max);
        REQUIRE(false);
      }
    }
  }
  CHECK(evaluated > 10'000);
  CHECK(decided > 20);
}

}  // namespace
}  // namespace ingot::arith
