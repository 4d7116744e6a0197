// The default schedules: which rule takes which function, and that the scheduled and the lowered function compute what
// the original does, for both register files.
#include "compiler/schedule/default_schedule.h"

#include <fstream>
#include <set>
#include <sstream>

#include "compiler/ir/verify_prim_func.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/infer.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "compiler/te/tensor.h"
#include "compiler/transform/tensor/lowered.h"
#include "doctest/doctest.h"
#include "tests/compiler/schedule/functions.h"
#include "tests/compiler/schedule/narrowed.h"
#include "tests/golden.h"

namespace ingot::schedule {
namespace {

using testing::AllCases;
using testing::Case;

std::vector<Target> BothTargets() { return ParseTarget("cpu")->variants; }

// What a case computes on random inputs of each of its shapes.
class Expected {
 public:
  explicit Expected(const Case& c) : case_(c) {
    for (size_t i = 0; i < c.shapes.size(); ++i) {
      auto result = testing::RunOnRandom(c.function, c.shapes[i], c.num_outputs, i, false);
      REQUIRE_MESSAGE(result.ok(), c.name << ": " << result.status().message());
      results_.push_back(*std::move(result));
    }
  }
  void CheckEqual(const ir::PrimFunc& changed, bool check_races, const char* what) const {
    for (size_t i = 0; i < case_.shapes.size(); ++i) {
      const auto got = testing::RunOnRandom(changed, case_.shapes[i], case_.num_outputs, i, check_races);
      INFO(case_.name, ", shapes ", i, ", ", what, "\n", script::PrintFunction("f", changed));
      REQUIRE_MESSAGE(got.ok(), got.status().message());
      CHECK(testing::Compare(results_[i], *got) == "");
    }
  }

 private:
  const Case& case_;
  std::vector<std::vector<std::vector<float>>> results_;
};

void CheckScheduledAndLowered(const Case& c, const Expected& expected, const Target& target) {
  CAPTURE(c.name);
  CAPTURE(target.name);
  const Result<ScheduledFunction> scheduled = ApplyDefaultSchedule(c.function, target);
  REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
  const Status verified = ir::VerifyPrimFunc(scheduled->function);
  CHECK_MESSAGE(verified.ok(), verified.message());
  expected.CheckEqual(scheduled->function, false, "scheduled");
  const Result<ir::PrimFunc> lowered = transform::LowerPrimFunc(scheduled->function, target);
  REQUIRE_MESSAGE(lowered.ok(), lowered.status().message());
  const Status lowered_verified = ir::VerifyPrimFunc(*lowered);
  CHECK_MESSAGE(lowered_verified.ok(), lowered_verified.message());
  expected.CheckEqual(*lowered, true, "lowered");
}

TEST_CASE("default schedule: scheduled and lowered functions compute the same") {
  for (const Case& c : AllCases()) {
    const Expected expected(c);
    for (const Target& target : BothTargets()) CheckScheduledAndLowered(c, expected, target);
  }
}

TEST_CASE("default schedule: rows that the second-level cache does not hold are added in strips") {
  const auto product = [](int64_t depth, int64_t columns) {
    return Case{"a vector times a matrix",
                testing::Dense(ir::Int64(1), ir::Int64(depth), ir::Int64(columns), true),
                1,
                {{{1, depth}, {depth, columns}, {columns}, {1, columns}}}};
  };
  for (const Target& target : BothTargets()) {
    Target small = target;
    small.l2_bytes = 4096;
    for (const auto& [depth, columns] : {std::pair<int64_t, int64_t>(8, 2048), {15, 2500}, {6, 3079}}) {
      const Case c = product(depth, columns);
      const Result<ScheduledFunction> scheduled = ApplyDefaultSchedule(c.function, small);
      REQUIRE(scheduled.ok());
      CHECK(scheduled->trace.ToString().find("multiple=1024") != std::string::npos);
      CheckScheduledAndLowered(c, Expected(c), small);
    }
    const Result<ScheduledFunction> held = ApplyDefaultSchedule(product(8, 2048).function, target);
    REQUIRE(held.ok());
    CHECK(held->trace.ToString().find("multiple=1024") == std::string::npos);
  }
}

TEST_CASE("default schedule: a function that counts in int32 is scheduled like the one that counts in int64") {
  const std::vector<Target> targets = BothTargets();
  for (const Case& c : AllCases()) {
    CAPTURE(c.name);
    const ir::PrimFunc narrow = testing::Narrowed(c.function);
    REQUIRE(script::PrintFunction("f", narrow).find("T.int64") == std::string::npos);
    std::vector<ir::PrimFunc> scheduled_for;
    for (const Target& target : targets) {
      CAPTURE(target.name);
      const Result<ScheduledFunction> scheduled = ApplyDefaultSchedule(narrow, target);
      REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
      const Result<ScheduledFunction> wide = ApplyDefaultSchedule(c.function, target);
      REQUIRE(wide.ok());
      CHECK(scheduled->trace.ToString() == wide->trace.ToString());
      const Status verified = ir::VerifyPrimFunc(scheduled->function);
      CHECK_MESSAGE(verified.ok(), verified.message());
      scheduled_for.push_back(scheduled->function);
    }
    // Equal traces: what one target's schedule does to the integers, the other's does, too.
    const Expected expected(c);
    expected.CheckEqual(scheduled_for[0], false, "scheduled");
    const Result<ir::PrimFunc> plain = transform::LowerPrimFunc(narrow, targets[0]);
    REQUIRE_MESSAGE(plain.ok(), plain.status().message());
    expected.CheckEqual(*plain, true, "lowered");
  }
}

// A regression: loop_partition met int32 loop variables beside int64 ones.
TEST_CASE("default schedule: symbolic int32 dimensions, and one that a parameter gives") {
  constexpr std::string_view kProduct = R"(
@T.prim_func(private=True, s_tir=True)
def product(PARAMS):
    A = T.match_buffer(a, (m, k), "float32")
    B = T.match_buffer(b, (k, n), "float32")
    C = T.match_buffer(c, (m, n), "float32")
    for i, j, l in T.grid(m, n, k):
        with T.sblock("C"):
            vi, vj, vl = T.axis.remap("SSR", [i, j, l])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vl] * B[vl, vj]
)";
  const auto read = [&](std::string_view params, std::string_view head) {
    std::string text(kProduct);
    text.replace(text.find("PARAMS"), 6, params);
    text.insert(text.find("    A ="), head);
    const Result<ir::IRModule> module = script::ParseModule(text, "product.py");
    REQUIRE_MESSAGE(module.ok(), module.status().message());
    return module->FindPrimFunc("product");
  };
  const Target v3 = BothTargets()[0];
  const Case symbolic{"symbolic",
                      read("a: T.handle, b: T.handle, c: T.handle", "    m, n, k = T.int32(), T.int32(), T.int32()\n"),
                      1,
                      {{{13, 5}, {5, 35}, {13, 35}}, {{6, 8}, {8, 16}, {6, 16}}}};
  const Result<ScheduledFunction> scheduled = ApplyDefaultSchedule(symbolic.function, v3);
  REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
  CHECK_FALSE(scheduled->rules.empty());
  Expected(symbolic).CheckEqual(scheduled->function, false, "scheduled");
  // Callers pass m themselves, so it keeps its dtype int32, and the function stays unscheduled.
  const ir::PrimFunc given =
      read("a: T.handle, b: T.handle, c: T.handle, m: T.int32", "    n, k = T.int32(), T.int32()\n");
  const Result<ScheduledFunction> kept = ApplyDefaultSchedule(given, v3);
  REQUIRE_MESSAGE(kept.ok(), kept.status().message());
  CHECK(kept->rules.empty());
  CHECK(kept->function.same_as(given));
  CHECK(Schedule::Create(given).status().message().find("declare it as T.int64") != std::string::npos);
}

TEST_CASE("default schedule: functions without a schedule lower as they are") {
  for (const Case& c : AllCases()) {
    CAPTURE(c.name);
    const Result<ir::PrimFunc> lowered = transform::LowerPrimFunc(c.function, BothTargets()[0]);
    REQUIRE_MESSAGE(lowered.ok(), lowered.status().message());
    Expected(c).CheckEqual(*lowered, true, "lowered");
  }
}

// The rows of a symbolic height come in strips, whose last one is shorter: that is the extent of the strip's loop, and
// no condition inside of the reduction.
TEST_CASE("default schedule: no condition stands in the reduction of a convolution of symbolic height and width") {
  std::ifstream file(golden::TestDirectory() + "/golden/schedule/default-conv-symbolic-x86-64-v3-trace.txt");
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string text = stream.str();
  const size_t begin = text.find('\n') + 1;
  const Result<ir::IRModule> module = script::ParseModule(text.substr(begin, text.find("# EXPECT") - begin), "conv.py");
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  struct Finder : ir::StmtVisitor {
    using ir::StmtVisitor::Visit;
    void Visit(const ir::IfStmtNode& node) override {
      ++depth;
      ir::StmtVisitor::Visit(node);
      --depth;
    }
    void Visit(const ir::BufferStoreNode& store) override {
      const auto* sum = ir::As<ir::BinaryNode>(store.value);
      const auto* old = sum != nullptr ? ir::As<ir::BufferLoadNode>(sum->a) : nullptr;
      if (old == nullptr || !old->buffer.same_as(store.buffer)) return;
      ++sums;
      guarded += depth > 0 ? 1 : 0;
    }
    int depth = 0, sums = 0, guarded = 0;
  };
  for (const Target& target : BothTargets()) {
    const ir::PrimFunc function = module->FindPrimFunc(module->functions()[0].var->name);
    const Result<ScheduledFunction> scheduled = ApplyDefaultSchedule(function, target);
    REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
    const Result<ir::PrimFunc> lowered = transform::LowerPrimFunc(scheduled->function, target);
    REQUIRE_MESSAGE(lowered.ok(), lowered.status().message());
    Finder finder;
    finder.VisitStmt((*lowered)->body);
    CHECK(finder.sums > 1);
    CHECK(finder.guarded == 0);
  }
}

TEST_CASE("default schedule: each kind of function gets its rule") {
  const Target v3 = BothTargets()[0];
  const auto rules = [&](const ir::PrimFunc& function) {
    const Result<ScheduledFunction> scheduled = ApplyDefaultSchedule(function, v3);
    REQUIRE(scheduled.ok());
    std::string text;
    for (const std::string& rule : scheduled->rules) text += rule + " ";
    return text;
  };
  using ir::Int64;
  CHECK(rules(testing::Dense(testing::N(), Int64(20), Int64(40), true)) == "inline(add) gemm(matmul) ");
  CHECK(rules(testing::Dense(Int64(1), Int64(20), Int64(40), false)) == "tile(matmul) ");
  CHECK(rules(testing::Conv(testing::N(), 2, 8, 7, 3, 1, 1)) == "tile(conv) elementwise(pad) ");
  CHECK(rules(testing::MaxPool(testing::N(), 3, 8)) == "tile(pool) ");
  CHECK(rules(testing::Softmax(testing::N(), Int64(10))) == "rows(max) ");
  CHECK(rules(testing::RowSum(testing::N(), Int64(50))) == "rows(sum) ");
  CHECK(rules(testing::TransposeInner(testing::N(), Int64(32), Int64(64))) == "transpose(transpose_add) ");
  CHECK(rules(testing::MeanOfPixels(Int64(6), Int64(7), Int64(7))) == "rows(sum) ");
  CHECK(rules(testing::ConcatRelu(Int64(2), testing::N(), Int64(1), Int64(3))) == "inline(concat) elementwise(relu) ");
  CHECK(rules(testing::ElementwiseChain(testing::N(), Int64(100))) == "inline(mul) inline(add) elementwise(tanh) ");
  CHECK(rules(testing::GatherPixels(Int64(8), Int64(5), testing::N())) == "elementwise(place) elementwise(gather) ");
}

TEST_CASE("default schedule: loops through places that are loaded are fused like those through other places") {
  const ir::PrimFunc function = testing::GatherPixels(testing::N(), ir::MakePrimVar("h"), ir::MakePrimVar("w"));
  const Result<ScheduledFunction> scheduled = ApplyDefaultSchedule(function, BothTargets()[0]);
  REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
  const std::string text = script::PrintFunction("f", scheduled->function);
  CHECK(text.find("i1_i2_fused") != std::string::npos);
}

TEST_CASE("default schedule: a convolution of one column gets the register tiles of one row") {
  struct Unrolled : ir::StmtVisitor {
    using ir::StmtVisitor::Visit;
    void Visit(const ir::ForNode& node) override {
      if (node.for_kind == ir::ForKind::kUnrolled) extents.insert(ir::AsConstInt(node.extent).value_or(-1));
      ir::StmtVisitor::Visit(node);
    }
    std::multiset<int64_t> extents;
  };
  for (const Target& target : BothTargets()) {
    Unrolled row, column;
    for (const bool is_column : {false, true}) {
      const ir::PrimFunc function = testing::BlockedConv(is_column ? 50 : 1, is_column ? 1 : 50);
      const Result<ScheduledFunction> scheduled = ApplyDefaultSchedule(function, target);
      REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
      CHECK(scheduled->rules == std::vector<std::string>{"conv(conv)"});
      (is_column ? column : row).VisitStmt(scheduled->function->body);
    }
    CHECK(*row.extents.rbegin() > 4);
    CHECK(row.extents == column.extents);
  }
}

TEST_CASE("default schedule: one row of one image is divided among tasks, also where their number is symbolic") {
  struct Parallel : ir::StmtVisitor {
    using ir::StmtVisitor::Visit;
    explicit Parallel(ir::PrimVarMap sizes) : sizes(std::move(sizes)) {}
    void Visit(const ir::ForNode& node) override {
      if (node.for_kind == ir::ForKind::kParallel) {
        most = std::max(most, ir::AsConstInt(op::SimplifyDim(ir::Substitute(node.extent, sizes))).value_or(0));
      }
      ir::StmtVisitor::Visit(node);
    }
    ir::PrimVarMap sizes;
    int64_t most = 0;  // iterations of a parallel loop
  };
  const ir::PrimVar n = ir::MakePrimVar("n"), w = ir::MakePrimVar("w");
  const DataType f32 = DataType::Float(32);
  for (const Target& target : BothTargets()) {
    for (const ir::PrimExpr& batch : {ir::PrimExpr(ir::Int64(1)), ir::PrimExpr(n)}) {
      for (const ir::PrimExpr& width : {ir::PrimExpr(ir::Int64(540)), ir::PrimExpr(w)}) {
        for (const int64_t outputs : {64, 113, 117}) {
          CAPTURE(outputs);
          const te::Tensor x = te::Placeholder({batch, ir::Int64(343), ir::Int64(1), width}, f32, "X");
          const te::Tensor k = te::Placeholder({ir::Int64(outputs), ir::Int64(343)}, f32, "W");
          const ir::IterVar c = te::ReduceAxis(ir::Int64(343), "c");
          const te::Tensor y = te::Compute(
              {batch, ir::Int64(outputs), ir::Int64(1), width},
              [&](const te::Indices& i) { return te::Sum(x(i[0], c->var, i[2], i[3]) * k(i[1], c->var), {c}); },
              "conv");
          const Result<ScheduledFunction> scheduled = ApplyDefaultSchedule(te::CreatePrimFunc({x, k, y}), target);
          REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
          ir::PrimVarMap sizes;
          for (const ir::PrimVar& symbol : ir::FreePrimVars(scheduled->function)) {
            sizes.emplace(symbol, ir::Int64(symbol->name == "n" ? 1 : 540));
          }
          Parallel parallel(sizes);
          parallel.VisitStmt(scheduled->function->body);
          CHECK(parallel.most >= 2);
        }
      }
    }
  }
}

TEST_CASE("trace: replay on another shape gives what the rule would have done, and computes the same") {
  const Target v3 = BothTargets()[0];
  using ir::Int64;
  const Result<ScheduledFunction> origin =
      ApplyDefaultSchedule(testing::Dense(Int64(13), Int64(8), Int64(40), true), v3);
  REQUIRE(origin.ok());
  for (int64_t m : {12, 14, 25}) {
    CAPTURE(m);
    Case other{"replayed", testing::Dense(Int64(m), Int64(9), Int64(40), true), 1, {{{m, 9}, {9, 40}, {40}, {m, 40}}}};
    const Result<Schedule> replayed = Replay(origin->trace, other.function);
    REQUIRE_MESSAGE(replayed.ok(), replayed.status().message());
    CHECK(replayed->trace().ToString() == origin->trace.ToString());
    Expected(other).CheckEqual(replayed->function(), false, "replayed");
    const Result<ir::PrimFunc> lowered = transform::LowerPrimFunc(replayed->function(), v3);
    REQUIRE_MESSAGE(lowered.ok(), lowered.status().message());
    Expected(other).CheckEqual(*lowered, true, "lowered");
  }
}

TEST_CASE("trace: replay where other rows are left over than in the recorded function") {
  const Target v3 = BothTargets()[0];
  using ir::Int64;
  const auto dense = [](int64_t m) { return testing::Dense(Int64(m), Int64(9), Int64(64), true); };
  const std::vector<int64_t> rows{5, 12, 17, 36, 37, 65};
  for (int64_t from : rows) {
    const Result<ScheduledFunction> origin = ApplyDefaultSchedule(dense(from), v3);
    REQUIRE(origin.ok());
    for (int64_t m : rows) {
      CAPTURE(from);
      CAPTURE(m);
      CAPTURE(origin->trace.ToString());
      Case other{"replayed", dense(m), 1, {{{m, 9}, {9, 64}, {64}, {m, 64}}}};
      const Result<Schedule> replayed = Replay(origin->trace, other.function);
      REQUIRE_MESSAGE(replayed.ok(), replayed.status().message());
      Expected(other).CheckEqual(replayed->function(), false, "replayed");
    }
  }
}

TEST_CASE("default schedule: what each rule said to a block, refused primitives among it") {
  const auto refuses = [](Schedule& s, const BlockSite& site, const Target&) -> std::vector<BlockName> {
    s.Vectorize(s.GetLoops(s.GetBlock(site.block().name))[0]);  // of a loop around another one
    return {site.block().name};
  };
  const auto takes = [](const ScheduleState&, const BlockSite&, const Target&) { return Match<>(Taken{}); };
  const auto declines = [](const ScheduleState&, const BlockSite&, const Target&) {
    return Match<>(Declined{"it is not this rule's day"});
  };
  const ScheduleRule rules[] = {{"tries", "", takes, refuses}, {"rests", "", declines, refuses}, DefaultRules().back()};
  const ir::PrimFunc add = testing::ElementwiseChain(ir::Int64(5), ir::Int64(100));
  const Result<ScheduledFunction> scheduled = ApplySchedule(add, BothTargets()[0], rules);
  REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
  REQUIRE_FALSE(scheduled->applications.empty());
  CHECK(scheduled->left_alone == nullptr);
  for (const Application& application : scheduled->applications) {
    CHECK(application.rule == std::string("elementwise"));
    std::vector<std::string> said;
    for (const RuleAnswer& answer : scheduled->answers) {
      if (answer.block == application.block) said.push_back(answer.rule + (": " + answer.why_not()));
    }
    REQUIRE(said.size() == 3);
    CHECK(said[0].starts_with("tries: vectorize: "));
    CHECK(said[1] == "rests: it is not this rule's day");
    CHECK(said[2] == "elementwise: ");
  }
  const Result<ScheduledFunction> again = ApplySchedule(MarkScheduled(add), BothTargets()[0], rules);
  REQUIRE(again.ok());
  CHECK(again->left_alone == std::string("it is marked as scheduled"));
}

TEST_CASE("trace: replay where other columns are left over than in the recorded function") {
  const Target v3 = BothTargets()[0];
  using ir::Int64;
  const auto dense = [](int64_t n) { return testing::Dense(Int64(13), Int64(9), Int64(n), true); };
  const std::vector<int64_t> columns{7, 16, 24, 40, 64, 67, 200};
  for (int64_t from : columns) {
    const Result<ScheduledFunction> origin = ApplyDefaultSchedule(dense(from), v3);
    REQUIRE(origin.ok());
    for (int64_t n : columns) {
      CAPTURE(from);
      CAPTURE(n);
      CAPTURE(origin->trace.ToString());
      Case other{"replayed", dense(n), 1, {{{13, 9}, {9, n}, {n}, {13, n}}}};
      const Result<Schedule> replayed = Replay(origin->trace, other.function);
      REQUIRE_MESSAGE(replayed.ok(), replayed.status().message());
      Expected(other).CheckEqual(replayed->function(), false, "replayed");
    }
  }
}

TEST_CASE("trace: a function that it does not fit is refused by the instruction") {
  const Target v3 = BothTargets()[0];
  const Result<ScheduledFunction> origin =
      ApplyDefaultSchedule(testing::Dense(ir::Int64(13), ir::Int64(9), ir::Int64(40), true), v3);
  REQUIRE(origin.ok());
  const Result<Schedule> replayed = Replay(origin->trace, testing::Transpose(ir::Int64(6), ir::Int64(5)));
  REQUIRE_FALSE(replayed.ok());
  CAPTURE(replayed.status().message());
  CHECK(replayed.status().message().starts_with("instruction 0 of the trace, "));
}

}  // namespace
}  // namespace ingot::schedule
