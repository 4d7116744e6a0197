// What imported models compute, compared with ONNX Runtime: every model of tests/data/onnx that has values beside it
// (NAME.npz: "in:" inputs, "out:" outputs, made by make_models.py) is compiled and run, without optimisation and with.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "compiler/driver/compile.h"
#include "formats/tensor_compare.h"
#include "formats/tensor_files.h"
#include "tests/golden.h"
#include "tests/vm/round_trip.h"
#include "vm/run/context.h"
#include "vm/run/executable.h"

namespace ingot::importer {
namespace {

void CheckValues(const std::filesystem::path& values, int opt_level) {
  const std::string model = std::filesystem::path(values).replace_extension(".onnx").string();
  CAPTURE(model);
  CAPTURE(opt_level);
  driver::CompileOptions options;
  options.target = ParseTarget("cpu:x86-64-v3").value();
  options.opt_level = opt_level;
  const Result<ir::IRModule> loaded = driver::LoadModel(model, options, {});
  REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
  Result<vm::Program> program = driver::CompileModule(*loaded, options, {});
  REQUIRE_MESSAGE(program.ok(), program.status().message());
  test::CheckRoundTrip(*program);
  const auto executable =
      vm::Executable::FromProgram(vm::Instance::Create().value(), *std::move(program), model, {vm::Trust::kFile});
  REQUIRE_MESSAGE(executable.ok(), executable.status().message());
  const std::unique_ptr<vm::Context> context = vm::Context::Create(*executable).value();
  const vm::Function* main = (*executable)->Find("main").value();

  std::map<std::string, Tensor> tensors;
  const std::vector<formats::NamedTensor> read = formats::ReadTensorFile(values.string()).value();
  for (const formats::NamedTensor& named : read) {
    tensors.emplace(named.name, named.tensor);
  }
  std::vector<vm::Value> arguments;
  for (const vm::NamedType& param : main->signature.params) arguments.push_back(tensors.at("in:" + param.name));
  const Result<std::vector<vm::Value>> results = context->Invoke(*main, arguments);
  REQUIRE_MESSAGE(results.ok(), results.status().message());
  CHECK(arguments.size() + results->size() == tensors.size());
  for (size_t i = 0; i < results->size(); ++i) {
    const std::string& name = main->signature.results[i].name;
    CAPTURE(name);
    const Result<formats::Comparison> comparison = formats::CompareTensors(
        std::get<Tensor>((*results)[i]), tensors.at("out:" + name), {.relative = 1e-5, .absolute = 1e-6});
    REQUIRE_MESSAGE(comparison.ok(), comparison.status().message());
    CHECK_MESSAGE(comparison->equal, comparison->ToString());
  }
}

TEST_CASE("ONNX import: compiled models give ONNX Runtime's values") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(golden::TestDirectory() + "/data/onnx")) {
    if (entry.path().extension() == ".npz") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() >= 10);
  for (const std::filesystem::path& file : files) {
    for (int opt_level : {0, 2}) CheckValues(file, opt_level);
  }
}

}  // namespace
}  // namespace ingot::importer
