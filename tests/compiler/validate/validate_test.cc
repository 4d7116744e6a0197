// The validation of passes as they run. It accepts correct compilations of the tests' models and texts, and names
// passes that change a result, by a wrong rewrite, a wrong shape, or a difference in a single adversarial number.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/builder/block_builder.h"
#include "compiler/driver/compile.h"
#include "compiler/importer/onnx.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/registry.h"
#include "compiler/script/parser.h"
#include "compiler/transform/passes.h"
#include "compiler/validate/arena_tenants.h"
#include "compiler/validate/evaluate.h"
#include "compiler/validate/validate_passes.h"
#include "tests/golden.h"

namespace ingot::validate {
namespace {

driver::CompileOptions Options() {
  driver::CompileOptions options;
  options.target_text = "cpu:x86-64-v3";
  options.target = ParseTarget(options.target_text).value();
  return options;
}

ValidateOptions Budget() {
  ValidateOptions options;
  options.target = Options().target;
  options.max_steps = 1 << 18;
  options.max_total_steps = 1 << 22;
  return options;
}

// Compiles with every step validated.
Status Validate(const ir::IRModule& module, ValidatePasses& validation, std::vector<transform::Pass> extra = {}) {
  driver::CompileOptions options = Options();
  options.instruments = {&validation};
  if (!extra.empty()) {
    options.passes = transform::FindPipeline("default").value();
    options.passes->insert(options.passes->begin() + 1, extra.begin(), extra.end());
  }
  INGOT_ASSIGN_OR_RETURN(const vm::Program program, driver::CompileModule(module, options, {}));
  return validation.CheckProgram(program, options.target);
}

// The modules of golden texts that a whole compilation takes.
std::vector<std::pair<std::string, ir::IRModule>> GoldenModules() {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"lower", "memory", "transform"}) {
    for (const auto& file : std::filesystem::directory_iterator(golden::TestDirectory() + "/golden/" + folder)) {
      const std::string name = file.path().filename();
      if (file.path().extension() == ".txt" && !name.starts_with("bad-")) paths.push_back(file.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::pair<std::string, ir::IRModule>> modules;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    std::string input = text.str();
    input = input.substr(0, input.find("\n# EXPECT") + 1);
    input = input.substr(std::min(input.find('\n'), input.size()));
    Result<ir::IRModule> module = script::ParseModule(std::move(input), path.filename().string());
    if (module.ok()) module = driver::PrepareModule(*std::move(module));
    if (module.ok() && driver::CompileModule(*module, Options(), {}).ok()) {
      modules.emplace_back(path.filename().string(), *std::move(module));
    }
  }
  return modules;
}

TEST_CASE("validation: no pass, schedule or kernel changes a result of the golden texts") {
  int num_modules = 0, num_validated = 0;
  for (const auto& [name, module] : GoldenModules()) {
    CAPTURE(name);
    ValidatePasses validation(Budget());
    const Status status = Validate(module, validation);
    CHECK_MESSAGE(status.ok(), status.message());
    ++num_modules;
    num_validated += validation.num_compared() > 0 ? 1 : 0;
    if (validation.num_compared() == 0) MESSAGE(name << ": " << validation.notes().front());
  }
  CHECK(num_modules >= 60);
  CHECK(num_validated * 10 >= num_modules * 8);
}

ir::Expr Number(float value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return ir::Make<ir::ConstantNode>(
      ir::ConstantData::FromBytes(DataType::Float(32), {}, std::vector<std::byte>(bytes.begin(), bytes.end())));
}

// main(x) = (x + 0.1) * 3 - x
ir::IRModule Small() {
  builder::BlockBuilder b;
  const ir::Var x = builder::TensorVar("x", {ir::MakePrimVar("n"), ir::Int64(3)});
  b.Function("main", {x}, [&]() -> ir::Expr {
    ir::Var out;
    b.Dataflow([&] {
      const ir::Expr shifted = b.Call("add", {x, Number(0.1F)});
      const ir::Expr scaled = b.Call("multiply", {shifted, Number(3.0F)});
      out = b.EmitOutput(b.Call("subtract", {scaled, x}));
    });
    return out;
  });
  return driver::PrepareModule(b.Finish().value()).value();
}

// Replaces the calls of one operator.
class Replace : public ir::ExprMutator {
 public:
  using Make = std::function<ir::Expr(const ir::Call& call)>;
  Replace(const char* name, Make make) : row_(op::FindOp(name)), make_(std::move(make)) {}

 protected:
  using ir::ExprMutator::Mutate;
  ir::Expr Mutate(const ir::Ref<ir::CallNode>& call) override {
    const ir::Expr mutated = ExprMutator::Mutate(call);
    return op::RowOf(call) == row_ ? make_(ir::AsRef<ir::CallNode>(mutated)) : mutated;
  }

 private:
  const op::OpRow* row_;
  Make make_;
};

transform::Pass ReplacingPass(const char* name, Replace::Make make) {
  return {"wrong", "", 0, [=](ir::IRModule module, transform::PassContext&) -> Result<ir::IRModule> {
            Replace replace(name, make);
            const ir::GlobalVar var = module.FindGlobalVar("main");
            module.Set(var, replace.MutateFunction(module.FindFunction("main")));
            return module;
          }};
}

TEST_CASE("validation names the pass that changes a result") {
  struct {
    const char* op;
    Replace::Make make;
    const char* expected;
  } const cases[] = {
      // An operator for another.
      {"subtract", [](const ir::Call& call) { return *op::MakeCall("add", call->args); }, "the results change"},
      // Rounds otherwise: x * 3 -> x / (1 / 3).
      {"multiply",
       [](const ir::Call& call) -> ir::Expr {
         return *op::MakeCall("divide", {call->args[0], Number(1.0F / 3.0F)});
       },
       "the results change"},
  };
  {
    ValidatePasses validation(Budget());
    REQUIRE(Validate(Small(), validation).ok());
    CHECK(validation.num_trials() >= 20);
    CHECK(validation.num_compared() >= 100);
  }
  for (const auto& row : cases) {
    ValidatePasses validation(Budget());
    const std::string message =
        Validate(Small(), validation, {ReplacingPass(row.op, row.make), *transform::FindPass("normalize")}).message();
    CAPTURE(message);
    CHECK(message.starts_with("wrong: validation: "));
    CHECK(message.find(row.expected) != std::string::npos);
  }
}

// main(x) = flip(flip(x)) + flip(x), the three tensors at these offsets of one arena. All elements are 0, so that no
// result shows which memory was read.
Status RunPlan(const std::string& first, const std::string& second, const std::string& sum) {
  const auto place = [](const std::string& name, const std::string& offset) {
    return "        " + name + " = R.memory.alloc_tensor(storage, R.prim_value(" + offset +
           "), R.shape([4]), R.dtype(\"float32\"))\n";
  };
  const std::string text = R"(
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def flip(x: T.Buffer((T.int64(4),), "float32"), y: T.Buffer((T.int64(4),), "float32")):
        for i in range(T.int64(4)):
            with T.sblock("flip"):
                vi = T.axis.spatial(T.int64(4), i)
                y[vi] = x[T.int64(3) - vi]

    @T.prim_func(private=True, s_tir=True)
    def add(x: T.Buffer((T.int64(4),), "float32"), y: T.Buffer((T.int64(4),), "float32"), z: T.Buffer((T.int64(4),), "float32")):
        for i in range(T.int64(4)):
            with T.sblock("add"):
                vi = T.axis.spatial(T.int64(4), i)
                z[vi] = x[vi] + y[vi]

    @R.function(pure=False)
    def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
        cls = Module
        storage = R.memory.alloc_storage(R.shape([256]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
)" + place("a", first) + "        _: R.Tuple = cls.flip(x, a)\n" +
                           place("b", second) + "        _1: R.Tuple = cls.flip(a, b)\n" + place("c", sum) +
                           "        _2: R.Tuple = cls.add(a, b, c)\n        return c\n";
  INGOT_ASSIGN_OR_RETURN(const ir::IRModule module, script::ParseModule(text, "plan.py"));
  Evaluator evaluator({Options().target.variants[0], 1 << 10, 1 << 10, 1 << 10});
  const Value zeros = Value::Of(*NewTensor(DataType::Float(32), {4}));
  return evaluator.Run(module, std::span(&zeros, 1)).status();
}

TEST_CASE("validation finds tensors that a memory plan lets overwrite each other, whatever their elements are") {
  CHECK(RunPlan("0", "64", "128").message() == "");
  CHECK(RunPlan("64", "0", "16").message() == "");
  CHECK(RunPlan("0", "64", "0").message() == "");  // the sum may lie in the memory of its first operand
  for (const char* offset : {"0", "4", "12"}) {
    CAPTURE(offset);
    CHECK(RunPlan("0", offset, "128").message().find("\"y\" lies in the memory of \"x\"") != std::string::npos);
  }
  CHECK(RunPlan("0", "64", "4").message().find("\"z\" lies in the memory of \"x\"") != std::string::npos);
  CHECK(RunPlan("0", "64", "64").message().find("\"z\" lies in the memory of \"y\"") != std::string::npos);
  ArenaTenants tenants;
  HostTensor arena = *NewTensor(DataType::UInt(8), {256}), whole = arena, part = arena;
  tenants.AddArena(arena);
  whole.tenant = tenants.NewTenant();
  part.tenant = tenants.NewTenant();
  part.offset = 64;
  part.size_bytes = 8;
  CHECK(tenants.Reads(whole, "whole").ok());
  tenants.Writes(whole);
  CHECK(tenants.Reads(whole, "whole").ok());
  tenants.Writes(part);
  CHECK(tenants.Reads(part, "part").ok());
  CHECK(tenants.Reads(whole, "whole").message() == "\"whole\" is read from memory that another tensor was written to");
  tenants.Writes(whole);
  CHECK(tenants.Reads(whole, "whole").ok());
  CHECK_FALSE(tenants.Reads(part, "part").ok());
}

TEST_CASE("validation says what it does not evaluate") {
  ValidateOptions options = Budget();
  options.max_steps = 10;
  ValidatePasses validation(options);
  REQUIRE(Validate(Small(), validation).ok());
  const std::vector<std::string> notes = validation.notes();
  CHECK(std::ranges::any_of(notes, [](const std::string& note) {
    return note.starts_with("nothing is evaluated with n=17: ") && note.find("more than 10 steps") != std::string::npos;
  }));
}

TEST_CASE("validation: no pass, schedule or kernel changes a result of the ONNX models") {
  std::vector<std::filesystem::path> paths;
  for (const auto& file : std::filesystem::directory_iterator(golden::TestDirectory() + "/data/onnx")) {
    const std::string name = file.path().filename();
    if (name.ends_with(".onnx") && !name.starts_with("bad-")) paths.push_back(file.path());
  }
  std::sort(paths.begin(), paths.end());
  int num_validated = 0;
  for (const std::filesystem::path& path : paths) {
    CAPTURE(path.string());
    driver::CompileOptions options = Options();
    // The mask is as long as both others: the validator does not evaluate operands that may repeat, which are views.
    if (path.filename() == "dims.onnx") {
      options.import.input_shapes = {importer::ParseInputShape("mask=past + now").value()};
    }
    const Result<ir::IRModule> module = driver::LoadModel(path, options, {});
    if (!module.ok()) continue;  // one that wants options; the importer's tests load it
    ValidatePasses validation(Budget());
    const Status status = Validate(*module, validation);
    CHECK_MESSAGE(status.ok(), status.message());
    num_validated += validation.num_compared() > 0 ? 1 : 0;
    if (validation.num_compared() == 0) MESSAGE(path.filename() << ": " << validation.notes().front());
  }
  CHECK(num_validated >= 35);
}

}  // namespace
}  // namespace ingot::validate
