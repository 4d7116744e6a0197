// Rules after a refused primitive: every instruction of every rule's trace is refused in turn, and the rule runs to its
// end on the inert handles that it gets from then on.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "compiler/schedule/default_schedule.h"
#include "compiler/schedule/widen_indices.h"
#include "compiler/script/parser.h"
#include "doctest/doctest.h"
#include "tests/compiler/schedule/functions.h"
#include "tests/golden.h"

namespace ingot::schedule {
namespace {

struct NamedFunction {
  std::string name;
  ir::PrimFunc function;
};

ir::PrimFunc FunctionOf(const std::string& text) {
  const Result<ir::IRModule> module = script::ParseModule(text, "input.py");
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  return module->FindPrimFunc(module->functions()[0].var->name);
}

// A product deep enough that its sums are cut into blocks, with a weight in panels.
constexpr const char* kDeepProduct = R"(from tvm.script import tirx as T

@T.prim_func
def deep(A: T.Buffer((13, 65536), "float32"), B: T.Buffer((4, 65536, 16), "float32"), C: T.Buffer((13, 64), "float32")):
    with T.sblock("root"):
        for i, j, k in T.grid(13, 64, 65536):
            with T.sblock("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(A[vi, vk], B[vj // 16, vk, vj % 16])
                T.writes(C[vi, vj])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj // 16, vk, vj % 16]
)";

// A product of 16-bit floats with tiles for all of a GPU.
constexpr const char* kLargeProduct = R"(from tvm.script import tirx as T

@T.prim_func
def large(A: T.Buffer((2040, 200), "float16"), B: T.Buffer((200, 2048), "float16"), C: T.Buffer((2040, 2048), "float32")):
    with T.sblock("root"):
        for i, j, k in T.grid(2040, 2048, 200):
            with T.sblock("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(A[vi, vk], B[vk, vj])
                T.writes(C[vi, vj])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vk, vj])
)";

// What the other tests of schedules use, the inputs of the goldens of default schedules among it.
std::vector<NamedFunction> Functions() {
  std::vector<NamedFunction> functions{{"deep product", FunctionOf(kDeepProduct)},
                                       {"large product", FunctionOf(kLargeProduct)}};
  for (const testing::Case& c : testing::AllCases()) functions.push_back({c.name, c.function});
  for (const auto& file : std::filesystem::directory_iterator(golden::TestDirectory() + "/golden/schedule")) {
    const std::string name = file.path().filename().string();
    if (!name.starts_with("default-")) continue;
    std::stringstream text;
    text << std::ifstream(file.path()).rdbuf();
    const size_t begin = text.str().find('\n') + 1;
    functions.push_back({name, FunctionOf(text.str().substr(begin, text.str().find("# EXPECT") - begin))});
  }
  return functions;
}

std::vector<BlockName> BlocksOf(const Schedule& s) {
  std::vector<BlockName> names;
  for (const BlockSite& site : s.state().Blocks()) names.push_back(site.block().name);
  return names;
}

bool Contains(const std::vector<BlockName>& names, const BlockName& name) {
  return std::ranges::find(names, name) != names.end();
}

// Applies the rule to the block once for each of its instructions, which is refused, and then as it is.
Schedule ApplyWithRefusals(const Schedule& s, const ScheduleRule& rule, const BlockSite& site, const Target& target,
                           std::vector<BlockName>& handled) {
  Schedule whole = s;
  for (const BlockName& name : rule.apply(whole, site, target)) handled.push_back(name);
  for (size_t k = s.trace().instructions.size(); k < whole.trace().instructions.size(); ++k) {
    Schedule attempt = s;
    attempt.RefuseInstruction(k);
    rule.apply(attempt, site, target);
    INFO(rule.name, ", instruction ", k, " of\n", whole.trace().ToString());
    CHECK(attempt.trace().instructions.size() <= k);
    CHECK(!attempt.status().ok());
  }
  return whole;
}

TEST_CASE("rules: each runs to its end whichever of its primitives is refused") {
  for (const char* target_name : {"cpu", "cuda:sm_90a"}) {
    std::set<std::string> applied, all;
    const TargetFamily family = *ParseTarget(target_name);
    const Target& target = family.variants[0];
    const std::span<const ScheduleRule> rules = DefaultRules(target.kind);
    for (const ScheduleRule& rule : rules) all.insert(rule.name);
    for (const NamedFunction& f : Functions()) {
      CAPTURE(f.name);
      Schedule s = Schedule::Create(*WidenIndices(f.function)).value();
      std::vector<BlockName> handled;
      for (const ScheduleRule& rule : rules) {
        for (const BlockName& name : BlocksOf(s)) {
          const Result<BlockSite> site = s.state().FindBlock(name);
          if (!site.ok() || Contains(handled, name) || !rule.matches(s.state(), *site, target)) continue;
          const std::vector<BlockName> before = BlocksOf(s);
          Schedule whole = ApplyWithRefusals(s, rule, *site, target, handled);
          if (!whole.status().ok()) continue;
          s = std::move(whole);
          applied.insert(rule.name);
          for (const BlockName& made : BlocksOf(s)) {
            if (!Contains(before, made)) handled.push_back(made);
          }
        }
      }
    }
    std::string missing;
    for (const std::string& name : all) missing += applied.contains(name) ? "" : name + " ";
    CHECK(missing == "");
  }
}

TEST_CASE("schedule: handles after a refusal are inert") {
  using ir::Int64;
  Schedule s = Schedule::Create(testing::RowSum(Int64(4), Int64(8))).value();
  const BlockRV sum = s.GetBlock("sum");
  s.RefuseInstruction(1);
  const LoopRVs loops = s.GetLoops(sum);
  CHECK(!s.status().ok());
  CHECK(loops.empty());
  CHECK(s.IsVoid(loops[7]));
  CHECK(s.IsVoid(loops.front()));
  CHECK(s.IsVoid(loops.back()));
  CHECK(s.Block(sum).block().name == "sum");
  CHECK(ir::IsConstInt(s.Loop(loops[0]).loop->extent, 1));
  const BlockRV copy = s.CacheRead(sum, 0, "local");
  CHECK(s.IsVoid(copy));
  CHECK(s.Block(copy).block().name.empty());
  CHECK(s.Block(copy).block().iter_vars.empty());
  CHECK(s.Int(s.SampleCategorical({2, 4}, 1)) == 1);
  const Schedule::Parts parts = s.LoopPartition(loops[0], 2);
  CHECK(s.IsVoid(parts.main));
  CHECK(s.IsVoid(parts.tail));
  CHECK(s.trace().instructions.size() == 1);
}

}  // namespace
}  // namespace ingot::schedule
