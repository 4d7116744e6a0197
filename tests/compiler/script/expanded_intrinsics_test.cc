// Functions that are expanded when they are read, nested in each of their operands: the expression grows by the same
// number of nodes with each, since an operand is mentioned once. So do scheduled and lowered functions, which give the
// values of what was read. Further texts have lets where passes move conditions, widen integers and turn squares.
#include "compiler/script/expanded_intrinsics.h"

#include <doctest/doctest.h>

#include <functional>

#include "compiler/ir/verify_prim_func.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "compiler/target/target.h"
#include "compiler/transform/tensor/lowered.h"
#include "compiler/transform/tensor/passes.h"
#include "tests/compiler/schedule/functions.h"
#include "tests/compiler/schedule/narrowed.h"

namespace ingot::script {
namespace {

// More than any of these expressions should have: an exponential one is not walked to its end.
constexpr int64_t kManyNodes = 200000;

class NodeCounter : public ir::StmtVisitor {
 public:
  int64_t nodes = 0;
  void VisitPrim(const ir::PrimExpr& expr) override {
    if (++nodes < kManyNodes) StmtVisitor::VisitPrim(expr);
  }
};
int64_t CountOf(const ir::PrimExpr& expr) {
  NodeCounter counter;
  counter.VisitPrim(expr);
  return counter.nodes;
}
int64_t CountOf(const ir::PrimFunc& function) {
  NodeCounter counter;
  counter.VisitStmt(function->body);
  return counter.nodes;
}

// The row's expansions in its operand number `place`, so many deep.
ir::PrimExpr Nested(const ExpandedIntrinsic& row, DataType dtype, size_t place, int depth) {
  std::vector<ir::PrimExpr> operands;
  for (size_t i = 0; i < row.arity; ++i) operands.push_back(ir::MakePrimVar("x" + std::to_string(i), dtype));
  for (int i = 0; i < depth; ++i) operands[place] = row.expand(operands);
  return operands[place];
}

TEST_CASE("expanded intrinsics: nested ones grow by the same number of nodes each, in every operand") {
  for (const ExpandedIntrinsic& row : ExpandedIntrinsics()) {
    for (const int bits : row.of_integers ? std::vector{8, 16, 32, 64} : std::vector{16, 32, 64}) {
      const DataType dtype = row.of_integers ? DataType::Int(bits) : DataType::Float(bits);
      for (size_t place = 0; place < row.arity; ++place) {
        CAPTURE(row.name);
        CAPTURE(bits);
        CAPTURE(place);
        const int64_t two = CountOf(Nested(row, dtype, place, 2)), three = CountOf(Nested(row, dtype, place, 3));
        REQUIRE(three < kManyNodes);
        CHECK(CountOf(Nested(row, dtype, place, 12)) == two + 10 * (three - two));
      }
    }
  }
}

std::string Repeated(const std::function<std::string(std::string)>& outer, int depth) {
  std::string text = "x";
  for (int i = 0; i < depth; ++i) text = outer(text);
  return text;
}

// A function of a block, which is vectorized: Y[i] = the expression, of X[i] as `x` and Z[i] as `z`.
Result<ir::PrimFunc> ReadBlock(const std::string& expression) {
  std::string text = expression;
  for (const auto& [name, load] : {std::pair("x", "X[vi]"), std::pair("z", "Z[vi]")}) {
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; ++at) {
      const bool alone = (at == 0 || (std::isalnum(text[at - 1]) == 0 && text[at - 1] != '_')) &&
                         (at + 1 == text.size() || (std::isalnum(text[at + 1]) == 0 && text[at + 1] != '_'));
      if (alone) text.replace(at, 1, load);
    }
  }
  INGOT_ASSIGN_OR_RETURN(const ir::IRModule module, ParseModule(R"(@T.prim_func
def main(X: T.Buffer((64,), "float32"), Z: T.Buffer((64,), "float32"), S: T.Buffer((16, 64), "float32"),
         Y: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.sblock("block"):
            vi = T.axis.spatial(64, i)
            Y[vi] = )" + text + "\n",
                                                                "block.py"));
  return module.FindPrimFunc("main");
}

const std::vector<std::vector<int64_t>> kDims{{64}, {64}, {16, 64}, {64}};

// Schedules and lowers the function for a target, and compares what all three give.
Result<ir::PrimFunc> Lowered(const ir::PrimFunc& function, const Target& target) {
  INGOT_ASSIGN_OR_RETURN(const schedule::ScheduledFunction scheduled, schedule::ApplyDefaultSchedule(function, target));
  INGOT_ASSIGN_OR_RETURN(const ir::PrimFunc lowered, transform::LowerPrimFunc(scheduled.function, target));
  INGOT_RETURN_IF_ERROR(ir::VerifyPrimFunc(lowered));
  INGOT_ASSIGN_OR_RETURN(const auto expected, schedule::testing::RunOnRandom(function, kDims, 1, 7, false));
  INGOT_ASSIGN_OR_RETURN(const auto got, schedule::testing::RunOnRandom(lowered, kDims, 1, 7, true));
  const std::string difference = schedule::testing::Compare(expected, got);
  if (!difference.empty()) return Status(StatusCode::kFailed, difference + "\n" + PrintFunction("f", lowered));
  return lowered;
}

TEST_CASE("expanded intrinsics: nested ones are scheduled, lowered and vectorized in proportion") {
  using Text = std::string;
  const auto integer = [](const Text& x) { return "T.Cast(\"int32\", " + x + " * T.float32(1000))"; };
  const auto number = [](const Text& x) { return "T.Cast(\"float32\", " + x + ")"; };
  const std::pair<const char*, std::function<Text(Text)>> families[] = {
      {"clz", [&](const Text& x) { return number("T.clz(" + integer(x) + ")"); }},
      {"popcount", [&](const Text& x) { return number("T.popcount(" + integer(x) + ")"); }},
      {"hypot, first", [](const Text& x) { return "T.hypot(" + x + ", z)"; }},
      {"hypot, second", [](const Text& x) { return "T.hypot(z, " + x + ")"; }},
      {"atan2, first", [](const Text& x) { return "T.atan2(" + x + ", z)"; }},
      {"atan2, second", [](const Text& x) { return "T.atan2(z, " + x + ")"; }},
      {"copysign", [](const Text& x) { return "T.copysign(z, " + x + ")"; }},
      {"ldexp", [](const Text& x) { return "T.ldexp(z, " + x + " * T.float32(0.01))"; }},
      {"nextafter", [](const Text& x) { return "T.nextafter(" + x + ", z)"; }},
      {"isfinite", [](const Text& x) { return "T.Select(T.isfinite(" + x + "), z, T.float32(1))"; }},
      {"q_multiply_shift",
       [&](const Text& x) {
         return number("T.q_multiply_shift(" + integer("z") + ", 1 << 30, 31, " + integer(x) + " % 8)");
       }},
      {"q_multiply_shift_per_axis",
       [&](const Text& x) {
         return number("T.q_multiply_shift_per_axis(" + integer("z") + ", 1 << 30, 1, 2, " + integer(x) +
                       " % 8 + 8, True, True)");
       }},
      {"ceildiv",
       [&](const Text& x) { return number("T.ceildiv(" + integer("z") + ", T.max(1, " + integer(x) + "))"); }},
      {"index", [&](const Text& x) { return "S[T.clz(" + integer(x) + ") % 16, vi]"; }},
  };
  const Target target = ParseTarget("cpu:x86-64-v3")->variants[0];
  for (const auto& [name, outer] : families) {
    CAPTURE(name);
    int64_t counts[3] = {};
    for (int i = 0; i < 3; ++i) {
      const Result<ir::PrimFunc> function = ReadBlock(Repeated(outer, 5 * (i + 1)));
      REQUIRE_MESSAGE(function.ok(), function.status().message());
      const Result<ir::PrimFunc> lowered = Lowered(*function, target);
      REQUIRE_MESSAGE(lowered.ok(), lowered.status().message());
      counts[i] = CountOf(*lowered);
      REQUIRE(counts[i] < kManyNodes);
    }
    CHECK(counts[2] - counts[1] <= 2 * (counts[1] - counts[0]));
  }
}

TEST_CASE("lets: what their variables are is known inside of them alone") {
  const Target target = ParseTarget("cpu:x86-64-v3")->variants[0];
  for (const char* text : {
           // A condition that holds for some iterations: no loop of its own begins at a let's value.
           "T.Let(T.if_then_else(v + vi < 5, X[vi], T.float32(0)), where={v: T.Cast(\"int64\", Z[0] * 30)})",
           "T.Let(T.if_then_else(v + vi < 5, X[vi + v % 2 - v % 2], z), where={v: T.Cast(\"int64\", z * 30)})",
           // Lanes differ in the leading index, and in the value that it is made of.
           "T.Let(S[v, vi] + T.Cast(\"float32\", v), where={v: T.Cast(\"int64\", T.fabs(z) * 8) % 16})",
           "T.Let(S[v, v] * T.Let(S[w, v], where={w: v % 4}), where={v: T.Cast(\"int64\", T.fabs(z) * 8) % 16})",
           "T.Let(v * v, where={v: T.Let(v + x, where={v: z * z})})",
       }) {
    CAPTURE(text);
    const Result<ir::PrimFunc> function = ReadBlock(text);
    REQUIRE_MESSAGE(function.ok(), function.status().message());
    const Result<ir::PrimFunc> lowered = Lowered(*function, target);
    CHECK_MESSAGE(lowered.ok(), lowered.status().message());
  }
}

TEST_CASE("lets: integers wrap around when indices are made wide") {
  // The sum is less than nothing in int32, whatever loops and indices count in.
  const Result<ir::PrimFunc> function =
      ReadBlock("T.Let(T.Select(v + 1 < 0, x, z), where={v: T.Cast(\"int32\", T.fabs(z)) * 0 + 2147483647})");
  REQUIRE_MESSAGE(function.ok(), function.status().message());
  const Target target = ParseTarget("cpu:x86-64-v3")->variants[0];
  for (const ir::PrimFunc& form : {*function, schedule::testing::Narrowed(*function)}) {
    const Result<ir::PrimFunc> lowered = Lowered(form, target);
    CHECK_MESSAGE(lowered.ok(), lowered.status().message());
  }
}

}  // namespace
}  // namespace ingot::script
