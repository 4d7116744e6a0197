#include "compiler/driver/compile.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <sstream>

#include "compiler/driver/write.h"
#include "compiler/ir/structural.h"
#include "compiler/kernels/show_kernels.h"
#include "compiler/memory/passes.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "compiler/transform/pass.h"
#include "formats/tensor_files.h"
#include "tests/compiler/round_trip.h"
#include "tests/golden.h"
#include "tests/vm/round_trip.h"
#include "vm/program/program_codec.h"
#include "vm/run/context.h"
#include "vm/run/executable.h"
#include "vm/verify/verifier.h"

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
    CHECK(num_passes == 1 + num_graph_passes + std::ssize(memory::MemoryPasses()));
    const Result<ir::IRModule> optimized = OptimizeModule(*loaded, options, {});
    REQUIRE(optimized.ok());
    for (const Target& target : options.target.variants) {
      const Result<ir::IRModule> scheduled = kernels::ScheduleModule(*optimized, target);
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
  // The MLP of hand-written functions; the elements of its weights count up, so that misplaced ones show.
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

// Normally distributed numbers. Every seventh is large, so that products of two overflow.
Tensor DrawInput(std::vector<int64_t> dims) {
  Tensor tensor = Tensor::Allocate(DataType::Float(32), std::move(dims)).value();
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  auto* elements = static_cast<float*>(tensor.data());
  for (int64_t i = 0; i < tensor.view().num_elements; ++i) elements[i] = normal(random) * (i % 7 == 6 ? 1e20F : 1.0F);
  return tensor;
}

TEST_CASE("strict math gives the bits of a compilation without optimisations, where the default may give others") {
  struct Case {
    const char* name;
    std::vector<int64_t> dims;
    std::string result;
    std::string body;
  };
  const std::string kernel =
      "w = R.multiply(R.broadcast_to(R.const(0.3, F), R.shape([32, 32, 3, 3])), R.const(0.7, F))\n";
  const Case cases[] = {
      {"a product and a sum", {9, 7}, "(9, 7)", "y = R.add(R.multiply(x, R.const(1.37, F)), R.const(0.11, F))\n"},
      {"two products", {9, 7}, "(9, 7)", "y = R.subtract(R.multiply(x, x), R.multiply(x, R.const(1.1, F)))\n"},
      {"a sum of products",
       {9, 7},
       "(9, 1)",
       "p = R.multiply(x, R.const(1.37, F))\ny = R.sum(R.multiply(p, x), axis=[1], keepdims=True)\n"},
      {"a product behind a view",
       {9, 7},
       "(63,)",
       "p = R.reshape(R.multiply(x, x), R.shape([63]))\ny = R.subtract(p, R.const(0.3, F))\n"},
      {"a power", {9, 7}, "(9, 7)", "y = R.power(x, R.const(3.0, F))\n"},
      {"an activation",
       {9, 7},
       "(9, 7)",
       "e = R.erf(R.divide(x, R.const(1.4142135, F)))\n"
       "y = R.multiply(R.multiply(x, R.const(0.5, F)), R.add(e, R.const(1.0, F)))\n"},
      {"a normalisation",
       {9, 7},
       "(9, 7)",
       "d = R.subtract(x, R.mean(x, axis=[-1], keepdims=True))\n"
       "s = R.mean(R.multiply(d, d), axis=[-1], keepdims=True)\n"
       "y = R.divide(d, R.sqrt(R.add(s, R.const(0.001, F))))\n"},
      {"a batch norm",
       {1, 32, 16, 16},
       "(1, 32, 16, 16)",
       kernel + "p = R.broadcast_to(R.const(1.7, F), R.shape([32]))\n"
                "c = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])\n"
                "n = R.nn.batch_norm(c, p, p, p, p, axis=1, epsilon=0.001, training=False)\ny = R.nn.relu(n[0])\n"},
      {"convolutions",
       {1, 32, 16, 16},
       "(1, 32, 16, 16)",
       kernel + "c = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])\ny = R.nn.conv2d(c, w, padding=[1, 1, 1, 1])\n"},
      {"a product with a matrix",
       {9, 40},
       "(9, 50)",
       "w = R.broadcast_to(R.const(0.3, F), R.shape([40, 50]))\n"
       "y = R.multiply(R.add(R.matmul(x, w), R.const(0.7, F)), R.const(1.3, F))\n"},
  };
  int num_others = 0;  // cases to which the default gives other bits
  for (const Case& c : cases) {
    CAPTURE(c.name);
    std::string dims, text = "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((";
    for (int64_t dim : c.dims) dims += std::to_string(dim) + ", ";
    text += dims + "), dtype=F)) -> R.Tensor(" + c.result + ", dtype=F):\n        with R.dataflow():\n";
    std::istringstream lines(c.body);
    for (std::string line; std::getline(lines, line);) text += "            " + line + "\n";
    text += "            R.output(y)\n        return y\n";
    for (size_t at = 0; (at = text.find("F)", at)) != std::string::npos;) text.replace(at, 1, "\"float32\"");
    Result<ir::IRModule> module = script::ParseModule(text, "case.py");
    REQUIRE_MESSAGE(module.ok(), module.status().message());
    module = PrepareModule(*std::move(module));
    REQUIRE_MESSAGE(module.ok(), module.status().message());
    const Tensor input = DrawInput(c.dims);
    const auto bytes_by = [&](int opt_level, bool strict) {
      CompileOptions options = DefaultOptions();
      options.opt_level = opt_level;
      options.pass_options.rewrites.strict_math = strict;
      const Result<vm::Program> program = CompileModule(*module, options, {});
      REQUIRE_MESSAGE(program.ok(), program.status().message());
      CHECK((program->metadata.contains("math") && program->metadata.at("math") == "strict") == strict);
      const Tensor result = RunMain(*program, input);
      return std::vector<uint8_t>(result.bytes().begin(), result.bytes().end());
    };
    const std::vector<uint8_t> plain = bytes_by(0, false);
    CHECK(bytes_by(2, true) == plain);
    CHECK(bytes_by(3, true) == plain);
    CHECK(bytes_by(0, true) == plain);
    num_others += bytes_by(2, false) != plain ? 1 : 0;
  }
  CHECK(num_others >= 6);
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
