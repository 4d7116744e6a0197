#include "compiler/driver/compile.h"

#include <doctest/doctest.h>

#include "compiler/ir/structural.h"
#include "compiler/lower/pipeline.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "compiler/transform/pass.h"
#include "tests/golden.h"
#include "vm/assembler.h"
#include "vm/disassembler.h"
#include "vm/program_codec.h"
#include "vm/verifier.h"

namespace ingot::driver {
namespace {

CompileOptions DefaultOptions() {
  CompileOptions options;
  options.target = ParseTarget("cpu").value();
  return options;
}

std::string ModelPath(const char* name) { return golden::TestDirectory() + "/data/" + name; }

// Prints, parses and compares; the message names the first difference.
void CheckReadsBack(std::string_view pass, const ir::IRModule& module) {
  CAPTURE(pass);
  script::ConstantStore constants;
  const std::string text = script::PrintModule(module, {}, &constants);
  const Result<ir::IRModule> again = script::ParseModule(text, "printed.py", &constants);
  if (!again.ok()) FAIL_CHECK(again.status().message() << "\n" << text);
  if (!again.ok()) return;
  if (!ir::StructuralEqual(module, *again)) FAIL_CHECK(ir::ExplainDifference(module, *again) << "\n" << text);
  CHECK(script::PrintModule(*again, {}, &constants) == text);
}

TEST_CASE("the text after every pass reads back structurally equal") {
  for (const char* model : {"digits.onnx", "mlp.py"}) {
    CAPTURE(model);
    const CompileOptions options = DefaultOptions();
    int num_passes = 0;
    CompileObserver observer;
    observer.after_pass = [&](std::string_view pass, const ir::IRModule& module) {
      ++num_passes;
      CheckReadsBack(pass, module);
      return Status();
    };
    const Result<ir::IRModule> loaded = LoadModel(ModelPath(model), options, observer);
    REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
    const Result<vm::Program> program = CompileModule(*loaded, options, observer);
    REQUIRE_MESSAGE(program.ok(), program.status().message());
    CHECK(num_passes == 1 + std::ssize(transform::Pipeline()) + std::ssize(lower::LoweringPipeline()));
    const Result<ir::IRModule> optimized = OptimizeModule(*loaded, options, {});
    REQUIRE(optimized.ok());
    for (const Target& target : options.target.variants) {
      const Result<ir::IRModule> scheduled = lower::ScheduleModule(*optimized, target);
      REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
      CheckReadsBack("schedule for " + target.name, *scheduled);
    }
  }
}

TEST_CASE("what is compiled verifies, and its disassembly assembles to the same bytes") {
  const CompileOptions options = DefaultOptions();
  const Result<ir::IRModule> loaded = LoadModel(ModelPath("digits.onnx"), options, {});
  REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
  for (int opt_level : {0, 1, 2, 3}) {
    CAPTURE(opt_level);
    CompileOptions with_level = options;
    with_level.opt_level = opt_level;
    const Result<vm::Program> program = CompileModule(*loaded, with_level, {});
    REQUIRE_MESSAGE(program.ok(), program.status().message());
    const Status verified = vm::Verify(*program);
    CHECK_MESSAGE(verified.ok(), verified.message());
    const Result<vm::Program> again = vm::Assemble(vm::Disassemble(*program));
    REQUIRE_MESSAGE(again.ok(), again.status().message());
    CHECK(vm::EncodeProgram(*again).value() == vm::EncodeProgram(*program).value());
  }
}

TEST_CASE("the number of threads does not change the bytes") {
  CompileOptions options = DefaultOptions();
  const Result<ir::IRModule> loaded = LoadModel(ModelPath("digits.onnx"), options, {});
  REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
  const std::vector<std::byte> one = vm::EncodeProgram(CompileModule(*loaded, options, {}).value()).value();
  options.threads = 3;
  CHECK(vm::EncodeProgram(CompileModule(*loaded, options, {}).value()).value() == one);
}

TEST_CASE("wrong models and options say what is wrong") {
  CompileOptions options = DefaultOptions();
  CHECK(LoadModel("nothing.onnx", options, {}).status().code() == StatusCode::kIo);
  CHECK(LoadModel("model.txt", options, {}).status().code() == StatusCode::kInvalidArgument);
  options.params_path = ModelPath("digits_test.npz");
  CHECK(LoadModel(ModelPath("mlp.py"), options, {}).status().message().find("\"image\" is no parameter of \"main\"") !=
        std::string::npos);
}

}  // namespace
}  // namespace ingot::driver
