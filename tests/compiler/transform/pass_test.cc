// The graph passes: golden texts (tests/golden/transform), and behaviour that a text cannot show.
#include "compiler/transform/pass.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "compiler/importer/onnx.h"
#include "compiler/ir/structural.h"
#include "compiler/op/registry.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "compiler/transform/instruments.h"
#include "compiler/transform/pass_options.h"
#include "formats/file.h"
#include "tests/golden.h"

namespace ingot::transform {
namespace {

// The module after the named passes, or after a pipeline (its name); notes of the log come first, as comments.
// Options: those of pass_options.h, target=NAME in place of one CPU without instructions for bytes, fast_math=GROUP,...
Result<std::string> RunNamed(ir::IRModule module, std::istringstream words) {
  std::string names, option;
  words >> names;
  PassContext context;
  INGOT_ASSIGN_OR_RETURN(context.options.target, ParseTarget("cpu:x86-64-v3"));
  constexpr std::string_view kTarget = "target=", kFastMath = "fast_math=";
  while (words >> option) {
    if (option.starts_with(kFastMath)) {
      context.options.rewrites.fast_math = SplitList(option.substr(kFastMath.size()));
      continue;
    }
    if (!option.starts_with(kTarget)) {
      INGOT_RETURN_IF_ERROR(SetPassOption(option, context.options));
      continue;
    }
    INGOT_ASSIGN_OR_RETURN(context.options.target, ParseTarget(option.substr(kTarget.size())));
  }
  Result<std::vector<Pass>> passes = FindPipeline(names);
  if (!passes.ok()) {
    std::vector<std::string> list;
    std::istringstream items(names);
    for (std::string name; std::getline(items, name, ',');) list.push_back(name);
    passes = FindPasses(list);
  }
  if (!passes.ok()) return passes.status();
  std::string notes;
  context.log = [&notes](std::string_view note) { notes += "# " + std::string(note) + "\n"; };
  context.detail = [&notes](std::string_view note) { notes += "# (" + std::string(note) + ")\n"; };
  VerifyPasses verify;
  context.instruments = {&verify};
  INGOT_ASSIGN_OR_RETURN(module, RunPasses(std::move(module), *passes, context));
  return notes + script::PrintModule(module, {.golden = true});
}

// pass NAMES [OPTIONS]: on the input.
Result<std::string> RunOnText(const golden::Case& golden) {
  INGOT_ASSIGN_OR_RETURN(ir::IRModule module, script::ParseModule(golden.input, "input.py"));
  return RunNamed(std::move(module), std::istringstream(golden.arguments));
}

// pass_model FILE NAMES [OPTIONS]: on an ONNX model of tests/data.
Result<std::string> RunOnModel(const golden::Case& golden) {
  std::istringstream words(golden.arguments);
  std::string file;
  words >> file;
  INGOT_ASSIGN_OR_RETURN(const SharedBytes bytes, formats::MapFile(golden::TestDirectory() + "/data/" + file));
  INGOT_ASSIGN_OR_RETURN(importer::ImportResult imported, importer::ImportOnnx(bytes, file));
  return RunNamed(std::move(imported.module), std::move(words));
}

// explain NAMES [strict_math] [fast_math=GROUP,...]: what the named passes, or a pipeline, rewrite of the input.
Result<std::string> Explain(const golden::Case& golden) {
  INGOT_ASSIGN_OR_RETURN(ir::IRModule module, script::ParseModule(golden.input, "input.py"));
  std::istringstream words(golden.arguments);
  std::string names, word;
  words >> names;
  PassContext context;
  INGOT_ASSIGN_OR_RETURN(context.options.target, ParseTarget("cpu:x86-64-v3"));
  constexpr std::string_view kFastMath = "fast_math=";
  while (words >> word) {
    if (word == "strict_math") context.options.rewrites.strict_math = true;
    if (word.starts_with(kFastMath)) context.options.rewrites.fast_math = SplitList(word.substr(kFastMath.size()));
  }
  Result<std::vector<Pass>> passes = FindPipeline(names);
  if (!passes.ok()) passes = FindPasses(SplitList(names));
  if (!passes.ok()) return passes.status();
  INGOT_RETURN_IF_ERROR(RunPasses(std::move(module), *passes, context).status());
  return context.rewrites.Explain();
}

// list_rewrites
Result<std::string> ListRewrites(const golden::Case&) { return RewriteTableText(); }

TEST_CASE("graph passes: golden") {
  static constexpr golden::Directive kDirectives[] = {
      {"pass", RunOnText}, {"pass_model", RunOnModel}, {"explain", Explain}, {"list_rewrites", ListRewrites}};
  golden::RunArea("transform", kDirectives);
}

// The passes that golden texts of a folder are about: the last one of each, and the one before those that only tidy up.
void CollectTested(const std::string& folder, std::set<std::string>& tested) {
  for (const auto& file : std::filesystem::directory_iterator(golden::TestDirectory() + "/golden/" + folder)) {
    std::ifstream text(file.path());
    std::string hash, run, directive, names;
    text >> hash >> run >> directive >> names;
    if (directive != "pass" && directive != "memory") continue;
    for (bool tidies = true; tidies && !names.empty();) {
      const size_t comma = names.rfind(',');
      const std::string last = names.substr(comma + 1);  // npos + 1 is 0
      tested.insert(last);
      tidies = last.starts_with("eliminate_dead_code") || last == "merge_after_rewrites";
      names.resize(comma == std::string::npos ? 0 : comma);
    }
  }
}

TEST_CASE("every pass has a golden text") {
  std::set<std::string> tested;
  CollectTested("transform", tested);
  CollectTested("memory", tested);
  for (const Pass& pass : driver::AllPasses()) CHECK_MESSAGE(tested.contains(pass.name), pass.name);
}

Result<ir::IRModule> RunDefault(ir::IRModule module) {
  PassContext context;
  INGOT_ASSIGN_OR_RETURN(context.options.target, ParseTarget("cpu:x86-64-v3"));
  VerifyPasses verify;
  context.instruments = {&verify};
  INGOT_ASSIGN_OR_RETURN(const std::vector<Pass> passes, FindPipeline("default"));
  return RunPasses(std::move(module), passes, context);
}

// main(x) = relu(sin(relu(...))), `length` calls.
ir::IRModule Chain(int length) {
  const ir::Type type =
      ir::Make<ir::TensorTypeNode>(std::vector<ir::PrimExpr>{ir::MakePrimVar("n"), ir::Int64(4)}, DataType::Float(32));
  const ir::Var input = ir::Make<ir::VarNode>("x", type);
  ir::BindingBlock block;
  block.is_dataflow = true;
  ir::Expr value = input;
  for (int i = 0; i < length; ++i) {
    Result<ir::Call> call = op::MakeCall(i % 2 == 0 ? "nn.relu" : "sin", {value});
    REQUIRE(call.ok());
    const ir::Var var = ir::Make<ir::VarNode>("lv", (*call)->type, /*dataflow=*/i + 1 < length);
    block.bindings.push_back({var, *call, nullptr, {}});
    value = var;
  }
  const ir::SeqExpr body = ir::Make<ir::SeqExprNode>(std::vector<ir::BindingBlock>{std::move(block)}, value);
  ir::IRModule module;
  module.Add("main", ir::Make<ir::FunctionNode>(std::vector<ir::Var>{input}, body, type));
  return module;
}

TEST_CASE("a chain of 100,000 bindings goes through every pass") {
  constexpr int kLength = 100'000;
  Result<ir::IRModule> result = RunDefault(Chain(kLength));
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  // The chain becomes groups of 64 calls, which are equal except for the last one.
  CHECK(result->FindFunction("main")->body->blocks.at(0).bindings.size() == kLength / 64 + 1);
  CHECK(result->functions().size() == 3);
}

TEST_CASE("normalize gives nested and untyped expressions names and types") {
  const ir::Type type =
      ir::Make<ir::TensorTypeNode>(std::vector<ir::PrimExpr>{ir::MakePrimVar("n"), ir::Int64(4)}, DataType::Float(32));
  const ir::Var x = ir::Make<ir::VarNode>("x", type);
  const auto call = [](const char* op, std::vector<ir::Expr> args) {
    return ir::Make<ir::CallNode>(op::GetOp(op), std::move(args));
  };
  const ir::Expr inner = call("nn.relu", {x});
  const ir::Var result = ir::Make<ir::VarNode>("y", nullptr);
  ir::BindingBlock block;
  block.bindings.push_back({result, call("add", {inner, call("exp", {inner})}), nullptr, {}});
  const ir::SeqExpr body = ir::Make<ir::SeqExprNode>(std::vector<ir::BindingBlock>{block}, call("sqrt", {result}));
  ir::IRModule module;
  module.Add("main", ir::Make<ir::FunctionNode>(std::vector<ir::Var>{x}, body, nullptr));
  PassContext context;
  Result<ir::IRModule> normal = RunPasses(module, std::span(FindPass("normalize"), 1), context);
  REQUIRE_MESSAGE(normal.ok(), normal.status().message());
  CHECK(script::PrintModule(*normal).find(R"(
        lv: R.Tensor((n, 4), dtype="float32") = R.nn.relu(x)
        lv1: R.Tensor((n, 4), dtype="float32") = R.nn.relu(x)
        lv2: R.Tensor((n, 4), dtype="float32") = R.exp(lv1)
        y: R.Tensor((n, 4), dtype="float32") = R.add(lv, lv2)
        gv: R.Tensor((n, 4), dtype="float32") = R.sqrt(y)
        return gv)") != std::string::npos);
  // An annotation that the value contradicts.
  const ir::Var wrong = ir::Make<ir::VarNode>(
      "w", ir::Make<ir::TensorTypeNode>(std::vector<ir::PrimExpr>{ir::Int64(4)}, DataType::Float(32)));
  block.bindings = {{wrong, call("nn.relu", {x}), nullptr, {}}};
  module = ir::IRModule();
  module.Add("main", ir::Make<ir::FunctionNode>(std::vector<ir::Var>{x},
                                                ir::Make<ir::SeqExprNode>(std::vector<ir::BindingBlock>{block}, wrong),
                                                nullptr));
  normal = RunPasses(module, std::span(FindPass("normalize"), 1), context);
  REQUIRE(!normal.ok());
  CHECK(normal.status().message() ==
        "normalize: function \"main\": binding \"w\": its annotation contradicts the type of its value");
}

TEST_CASE("a module that a pass is given is not changed") {
  const ir::IRModule module = Chain(8);
  const std::string before = script::PrintModule(module);
  REQUIRE(RunDefault(module).ok());
  CHECK(script::PrintModule(module) == before);
}

}  // namespace
}  // namespace ingot::transform
