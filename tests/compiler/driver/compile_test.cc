#include "compiler/driver/compile.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "compiler/driver/write.h"
#include "compiler/ir/structural.h"
#include "compiler/lower/pipeline.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "compiler/transform/pass.h"
#include "formats/tensor_files.h"
#include "tests/compiler/round_trip.h"
#include "tests/golden.h"
#include "tests/vm/round_trip.h"
#include "vm/context.h"
#include "vm/executable.h"
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

TEST_CASE("the text after every pass reads back structurally equal") {
  for (const char* model : {"digits.onnx", "mlp.py", "onnx/control_flow.onnx"}) {
    CAPTURE(model);
    const CompileOptions options = DefaultOptions();
    int num_passes = 0;
    CompileObserver observer;
    observer.after_pass = [&](std::string_view pass, const ir::IRModule& module) {
      ++num_passes;
      const std::string difference = script::testing::ReadBackDifference(module);
      CHECK_MESSAGE(difference.empty(), pass << ": " << difference);
      return Status();
    };
    const Result<ir::IRModule> loaded = LoadModel(ModelPath(model), options, observer);
    REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
    const Result<vm::Program> program = CompileModule(*loaded, options, observer);
    REQUIRE_MESSAGE(program.ok(), program.status().message());
    const std::ptrdiff_t num_graph_passes = std::ssize(transform::FindPipeline("default").value());
    CHECK(num_passes == 1 + num_graph_passes + std::ssize(lower::LoweringPipeline()));
    const Result<ir::IRModule> optimized = OptimizeModule(*loaded, options, {});
    REQUIRE(optimized.ok());
    for (const Target& target : options.target.variants) {
      const Result<ir::IRModule> scheduled = lower::ScheduleModule(*optimized, target);
      REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
      const std::string difference = script::testing::ReadBackDifference(*scheduled);
      CHECK_MESSAGE(difference.empty(), "schedule for " << target.name << ": " << difference);
    }
  }
}

TEST_CASE("what is compiled verifies, and its disassembly assembles to the same bytes") {
  const CompileOptions options = DefaultOptions();
  for (const char* model : {"digits.onnx", "onnx/control_flow.onnx"}) {
    CAPTURE(model);
    const Result<ir::IRModule> loaded = LoadModel(ModelPath(model), options, {});
    REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
    for (int opt_level : {0, 1, 2, 3}) {
      CAPTURE(opt_level);
      CompileOptions with_level = options;
      with_level.opt_level = opt_level;
      const Result<vm::Program> program = CompileModule(*loaded, with_level, {});
      REQUIRE_MESSAGE(program.ok(), program.status().message());
      const Status verified = vm::Verify(*program);
      CHECK_MESSAGE(verified.ok(), verified.message());
      test::CheckRoundTrip(*program);
    }
  }
}

// The first result of main, from a file that was written and read back.
Tensor RunMain(const vm::Program& program, const Tensor& input) {
  const auto executable =
      vm::Executable::OpenMemory(vm::Instance::Create().value(), SharedBytes::Own(vm::EncodeProgram(program).value()),
                                 "model", {vm::Trust::kFile});
  REQUIRE_MESSAGE(executable.ok(), executable.status().message());
  const auto context = vm::Context::Create(*executable);
  REQUIRE_MESSAGE(context.ok(), context.status().message());
  const std::vector<vm::Value> arguments{input};
  const auto results = (*context)->Invoke(*(*executable)->Find("main").value(), arguments);
  REQUIRE_MESSAGE(results.ok(), results.status().message());
  return std::get<Tensor>(results->at(0));
}

TEST_CASE("a kept prepare gives bitwise the same results, from the weights as they are") {
  CompileOptions options = DefaultOptions();
  options.target = ParseTarget("cpu:native").value();
  // The MLP of hand-written functions, its weights counted up: every element is another one.
  const std::string weights = golden::TestDirectory() + "/kept_prepare_test.npz";
  std::vector<formats::NamedTensor> named;
  for (const auto& [name, dims] : std::vector<std::pair<std::string, std::vector<int64_t>>>{
           {"w0", {256, 784}}, {"b0", {256}}, {"w1", {10, 256}}, {"b1", {10}}}) {
    Tensor tensor = Tensor::Allocate(DataType::Float(32), dims).value();
    auto* elements = static_cast<float*>(tensor.data());
    for (int64_t i = 0; i < tensor.view().num_elements; ++i) elements[i] = static_cast<float>(i % 1009) * 1e-3F - 0.5F;
    named.push_back({name, std::move(tensor)});
  }
  REQUIRE(formats::WriteTensorFile(weights, named).ok());
  struct Case {
    const char* model;
    std::string params;
    std::vector<int64_t> input;
    int num_prepared;
  };
  for (const Case& c : {Case{"digits.onnx", "", {3, 1, 8, 8}, 1}, Case{"mlp.py", weights, {1, 784}, 1}}) {
    CAPTURE(c.model);
    options.params_path = c.params;
    const Result<ir::IRModule> loaded = LoadModel(ModelPath(c.model), options, {});
    REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
    options.keep_prepare = false;
    const Result<vm::Program> folded = CompileModule(*loaded, options, {});
    options.keep_prepare = true;
    const Result<vm::Program> kept = CompileModule(*loaded, options, {});
    REQUIRE_MESSAGE(folded.ok(), folded.status().message());
    REQUIRE_MESSAGE(kept.ok(), kept.status().message());
    CHECK(folded->FindFunction("prepare") == nullptr);
    REQUIRE(kept->FindFunction("prepare") != nullptr);
    CHECK_FALSE(kept->FindFunction("prepare")->exported);
    CHECK(kept->FindFunction("main")->signature == folded->FindFunction("main")->signature);
    CHECK(std::count_if(kept->constants.begin(), kept->constants.end(), [](const vm::Constant& constant) {
            return constant.prepared_by.has_value();
          }) >= c.num_prepared);
    test::CheckRoundTrip(*kept);

    Tensor input = Tensor::Allocate(DataType::Float(32), c.input).value();
    auto* elements = static_cast<float*>(input.data());
    for (int64_t i = 0; i < input.view().num_elements; ++i) elements[i] = static_cast<float>(i * 7 % 31) / 31;
    const Tensor expected = RunMain(*folded, input), result = RunMain(*kept, input);
    CHECK(std::ranges::equal(result.bytes(), expected.bytes()));
    CHECK(std::ranges::any_of(result.bytes(), [](uint8_t byte) { return byte != 0; }));
  }
  std::filesystem::remove(weights);
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

TEST_CASE("executables for other devices than the CPU are packed behind the launcher that can load drivers") {
  vm::Program program;
  CHECK(LauncherName(program, "x86_64") == "launcher-x86_64");
  program.devices.push_back({"cuda", 0});
  CHECK(LauncherName(program, "x86_64") == "launcher-x86_64-dynamic");
}

}  // namespace
}  // namespace ingot::driver
