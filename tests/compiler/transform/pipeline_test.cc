// Pipelines by name, passes of the caller's own, opt levels, options, instruments, and schedules by a list of rules.
#include <doctest/doctest.h>

#include <sstream>

#include "compiler/builder/block_builder.h"
#include "compiler/op/registry.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "compiler/transform/instruments.h"
#include "compiler/transform/pass_options.h"
#include "compiler/transform/schedule_functions.h"
#include "tests/compiler/jit_module.h"

namespace ingot::transform {
namespace {

// main(x) = exp(x) + x
ir::IRModule Small() {
  builder::BlockBuilder b;
  const ir::Var x = builder::TensorVar("x", {ir::Int64(64)});
  b.Function("main", {x}, [&]() -> ir::Expr {
    ir::Var out;
    b.Dataflow([&] { out = b.EmitOutput(b.Call("add", {b.Call("exp", {x}), x})); });
    return out;
  });
  return b.Finish().value();
}

PassContext ContextFor(const char* target = "cpu:x86-64-v3") {
  PassContext context;
  context.options.target = ParseTarget(target).value();
  return context;
}

TEST_CASE("pipelines are found by name, and every name in them is a pass") {
  for (const PipelineRow& row : Pipelines()) {
    const auto passes = FindPipeline(row.name);
    REQUIRE_MESSAGE(passes.ok(), passes.status().message());
    CHECK(passes->size() == row.passes.size());
  }
  CHECK(FindPipeline("zeros").status().message() == "there is no pipeline \"zeros\"; did you mean \"zero\"?");
  const std::vector<std::string> names{"legalise"};
  CHECK(FindPasses(names).status().message() == "there is no pass \"legalise\"; did you mean \"legalize\"?");
}

TEST_CASE("a pass of the caller's own runs in a pipeline of the caller's own") {
  std::vector<Pass> passes = FindPipeline("zero").value();
  int calls = 0;
  passes.insert(passes.begin() + 1, {"count", "counts its calls", 2, [&calls](ir::IRModule module, PassContext&) {
                                       ++calls;
                                       return Result<ir::IRModule>(std::move(module));
                                     }});
  PassContext context = ContextFor();
  REQUIRE(RunPasses(Small(), passes, context).ok());
  CHECK(calls == 1);
  context.options.opt_level = 1;  // below the pass's level
  REQUIRE(RunPasses(Small(), passes, context).ok());
  CHECK(calls == 1);
  context.options.opt_level = 2;
  context.options.disabled_passes = {"count"};
  REQUIRE(RunPasses(Small(), passes, context).ok());
  CHECK(calls == 1);
  const std::vector<Pass> failing{
      {"mine", "", 0, [](ir::IRModule, PassContext&) -> Result<ir::IRModule> { return UnmetPrecondition("luck"); }}};
  CHECK(RunPasses(Small(), failing, context).status().message() == "mine: unmet precondition: luck");
}

TEST_CASE("a custom pipeline compiles, and gives the results of the default one") {
  driver::JitOptions options;
  const auto plain = test::CompileJit(Small(), options);
  REQUIRE_MESSAGE(plain.ok(), plain.status().message());
  const Tensor x = Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{64}).value();
  for (float& element : x.MutableElements<float>()) element = 0.5F;
  const Tensor expected = (*plain)->Call("main", {x}).value()[0];
  std::vector<std::vector<std::string>> lists{{"legalize"}, {"legalize", "default_schedule"}};
  for (const std::vector<std::string>& names : lists) {
    options.compile.passes = FindPasses(names).value();
    const auto jit = test::CompileJit(Small(), options);
    REQUIRE_MESSAGE(jit.ok(), jit.status().message());
    CHECK((*jit)->executable().program().kernels.size() == 2);  // nothing was fused
    const Tensor got = (*jit)->Call("main", {x}).value()[0];
    CHECK(got.Elements<float>()[63] == doctest::Approx(expected.Elements<float>()[63]));
  }
  options.compile.passes = std::vector<Pass>();
  const auto unlowered = test::CompileJit(Small(), options);
  CHECK_FALSE(unlowered.ok());
}

TEST_CASE("instruments time, print and verify") {
  const std::vector<Pass> passes = FindPipeline("zero").value();
  PassContext context = ContextFor();
  TimePasses times;
  std::ostringstream printed;
  PrintPasses print(printed, {"fuse_ops"});
  VerifyPasses verify;
  struct : PassInstrument {
    bool ShouldRun(const Pass& pass, const ir::IRModule&) override { return pass.name != "fuse_tir"; }
  } skip;
  context.instruments = {&times, &print, &verify, &skip};
  REQUIRE(RunPasses(Small(), passes, context).ok());
  CHECK(times.seconds().size() == passes.size() - 1);
  CHECK(times.ToString().find("%  legalize\n") != std::string::npos);
  CHECK(printed.str().starts_with("# after fuse_ops\n"));
  CHECK(printed.str().find("def fused_exp_add(") != std::string::npos);
  CHECK(printed.str().find("# after fuse_tir") == std::string::npos);
  // A pass that breaks the module.
  const std::vector<Pass> breaking{{"breaks", "", 0, [](ir::IRModule module, PassContext&) {
                                      ir::FunctionNode f = *module.FindFunction("main");
                                      f.params.clear();
                                      module.Set(module.FindGlobalVar("main"),
                                                 ir::Make<ir::FunctionNode>(std::move(f)));
                                      return Result<ir::IRModule>(std::move(module));
                                    }}};
  CHECK(RunPasses(Small(), breaking, context).status().message().starts_with("breaks: after: function main: "));
}

TEST_CASE("options are set by name") {
  PassOptions options;
  for (const PassOptionRow& row : PassOptionTable()) {
    const std::string value = std::holds_alternative<bool PassOptions::*>(row.field) ? "true" : "7";
    REQUIRE(SetPassOption(std::string(row.name) + "=" + value, options).ok());
    CHECK(PassOptionText(row, options) == value);
  }
  CHECK(SetPassOption("lift_params.keep_prepare=yes", options).message() ==
        "lift_params.keep_prepare: expected true or false, got \"yes\"");
  CHECK(SetPassOption("fuse_ops.max_group", options).message() ==
        "expected PASS.OPTION=VALUE, got \"fuse_ops.max_group\"");
}

TEST_CASE("tensor functions are scheduled by the caller's rules, in their order") {
  using schedule::BlockName;
  using schedule::BlockSite;
  const auto takes_all = [](const schedule::ScheduleState&, const schedule::BlockSite&, const Target&) {
    return schedule::Match<>(schedule::Taken{});
  };
  const schedule::ScheduleRule unroll{
      "unroll", "the innermost loop", takes_all,
      [](schedule::Schedule& s, const BlockSite& block, const Target&) -> std::vector<BlockName> {
        s.Unroll(s.GetLoops(s.GetBlock(block.block().name)).back());
        return {block.block().name};
      }};
  const schedule::ScheduleRule parallel{
      "parallel", "the outermost loop", takes_all,
      [](schedule::Schedule& s, const BlockSite& block, const Target&) -> std::vector<BlockName> {
        s.Parallel(s.GetLoops(s.GetBlock(block.block().name)).front());
        return {block.block().name};
      }};
  for (const bool unrolls : {true, false}) {
    std::vector<Pass> passes = FindPipeline("zero").value();
    passes.push_back(DefaultScheduleWith(unrolls ? std::vector{unroll, parallel} : std::vector{parallel, unroll}));
    PassContext context = ContextFor();
    const auto module = RunPasses(Small(), passes, context);
    REQUIRE_MESSAGE(module.ok(), module.status().message());
    const std::string text = script::PrintModule(*module);
    CHECK((text.find("T.unroll(") != std::string::npos) == unrolls);
    CHECK((text.find("T.parallel(") != std::string::npos) == !unrolls);
    CHECK(text.find("\"tirx.is_scheduled\": True") != std::string::npos);
  }
  PassContext without_target;
  const std::vector<std::string> names{"default_schedule"};
  CHECK(RunPasses(Small(), FindPasses(names).value(), without_target)
            .status()
            .message()
            .starts_with("default_schedule: unmet precondition: a target"));
}

}  // namespace
}  // namespace ingot::transform
