// Every pass takes every legal module, in any order and repeatedly, or names the precondition that is not met: random
// orders over all modules that the golden texts hold. And they keep the meaning: the module after random passes
// compiles and gives the results of the original.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "compiler/op/verifier.h"
#include "compiler/script/parser.h"
#include "compiler/transform/instruments.h"
#include "compiler/transform/passes.h"
#include "tests/compiler/jit_module.h"
#include "tests/compiler/round_trip.h"
#include "tests/golden.h"

namespace ingot::transform {
namespace {

struct Named {
  std::string path;
  ir::IRModule module;
};

// The modules of golden texts that parse, are typed and verify, in the order of their paths.
std::vector<Named> LegalModules() {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"lower", "memory", "script", "transform"}) {
    const std::string root = golden::TestDirectory() + "/golden/" + folder;
    for (const auto& file : std::filesystem::recursive_directory_iterator(root)) {
      if (file.path().extension() == ".txt") paths.push_back(file.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Named> modules;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    std::string input = text.str();
    input = input.substr(0, input.find("\n# EXPECT") + 1);
    input = input.substr(std::min(input.find('\n'), input.size()));
    Result<ir::IRModule> module = script::ParseModule(std::move(input), path.filename().string());
    if (!module.ok()) continue;
    PassContext context;
    module = Normalize(*std::move(module), context);
    if (!module.ok() || !op::VerifyModule(*module).ok()) continue;
    modules.push_back({path.lexically_relative(golden::TestDirectory()).string(), *std::move(module)});
  }
  return modules;
}

void CheckReadsBack(const ir::IRModule& module) {
  const std::string difference = script::testing::ReadBackDifference(module);
  CHECK_MESSAGE(difference.empty(), difference);
}

// Runs the passes one by one, each on the result of the last one that succeeded; counts by name how often a pass
// succeeded and how often it refused by naming a precondition.
struct Counts {
  int done = 0, refused = 0;
};
ir::IRModule RunAny(ir::IRModule module, const std::vector<Pass>& passes, std::map<std::string, Counts>& counts) {
  PassContext context;
  context.options.target = ParseTarget("cpu:x86-64-v3").value();
  VerifyPasses verify;
  context.instruments = {&verify};
  std::string order;
  for (const Pass& pass : passes) {
    order += pass.name + " ";
    CAPTURE(order);
    Result<ir::IRModule> result = RunPasses(module, std::span(&pass, 1), context);
    if (result.ok()) {
      ++counts[pass.name].done;
      module = *std::move(result);
      continue;
    }
    ++counts[pass.name].refused;
    const std::string message = result.status().message();
    const bool says_why = message.find("unmet precondition: ") != std::string::npos ||
                          result.status().code() == StatusCode::kUnsupportedModel;
    CHECK_MESSAGE(says_why, message);
    CHECK_MESSAGE(message.starts_with(pass.name), message);
  }
  return module;
}

std::vector<Pass> RandomPasses(std::span<const Pass> from, size_t count, std::mt19937& random) {
  std::vector<Pass> passes;
  for (size_t i = 0; i < count; ++i) passes.push_back(from[random() % from.size()]);
  return passes;
}

TEST_CASE("passes take every legal module in any order, or say what is missing") {
  const std::vector<Pass> all = driver::AllPasses();
  std::mt19937 random(5);
  std::map<std::string, Counts> counts;
  const std::vector<Named> modules = LegalModules();
  CHECK(modules.size() >= 80);
  for (const Named& named : modules) {
    CAPTURE(named.path);
    // Each pass on the module as it is, twice; then orders by chance.
    for (const Pass& pass : all) RunAny(named.module, {pass, pass}, counts);
    for (int round = 0; round < 3; ++round) {
      CheckReadsBack(RunAny(named.module, RandomPasses(all, 10, random), counts));
    }
  }
  for (const Pass& pass : all) {
    MESSAGE(pass.name << ": ran " << counts[pass.name].done << ", refused " << counts[pass.name].refused);
    CHECK_MESSAGE(counts[pass.name].done > 0, pass.name);
  }
}

// Inputs that suit most functions; nothing when a parameter is not a tensor of floats or integers.
std::optional<std::vector<Tensor>> InputsFor(const vm::Function& function) {
  std::vector<Tensor> inputs;
  const std::vector<int64_t> symbols(function.signature.symbols.size(), 4);
  for (const vm::NamedType& param : function.signature.params) {
    if (!param.type.is_tensor()) return std::nullopt;
    std::vector<int64_t> dims;
    for (const vm::Dim& dim : param.type.dims) {
      const Result<int64_t> extent = dim ? dim->Evaluate(symbols) : Result<int64_t>(4);
      if (!extent.ok()) return std::nullopt;
      dims.push_back(*extent);
    }
    Result<Tensor> tensor = Tensor::Allocate(param.type.dtype, dims);
    if (!tensor.ok() || tensor->num_elements() > 1 << 20) return std::nullopt;
    if (param.type.dtype == DataType::Float(32)) {
      int64_t i = 0;
      for (float& element : tensor->MutableElements<float>()) {
        element = 0.25F + static_cast<float>(i++ * 13 % 37) / 32;
      }
    } else {
      std::ranges::fill(tensor->mutable_bytes(), uint8_t{0});
    }
    inputs.push_back(*std::move(tensor));
  }
  return inputs;
}

void CheckClose(const Tensor& got, const Tensor& expected) {
  REQUIRE(got.TypeToString() == expected.TypeToString());
  if (got.dtype() != DataType::Float(32)) {
    CHECK(std::ranges::equal(got.bytes(), expected.bytes()));
    return;
  }
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    const float a = got.Elements<float>()[i], b = expected.Elements<float>()[i];
    const bool close = a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-4F * std::abs(b) + 1e-5F;
    if (!close) FAIL_CHECK("element " << i << ": " << a << ", expected " << b);
    if (!close) return;
  }
}

TEST_CASE("passes in any order keep the results") {
  const std::span<const Pass> all = GraphPasses();
  std::mt19937 random(6);
  std::map<std::string, Counts> counts;
  driver::JitOptions options;
  options.instance = vm::Instance::Create({.num_threads = 1}).value();
  int num_compared = 0;
  for (const Named& named : LegalModules()) {
    CAPTURE(named.path);
    const auto plain = test::CompileJit(named.module, options);
    if (!plain.ok()) continue;  // externals, operators without kernels
    const Result<const vm::Function*> main_function = (*plain)->executable().Find("main");
    if (!main_function.ok()) continue;
    const std::optional<std::vector<Tensor>> inputs = InputsFor(**main_function);
    if (!inputs) continue;
    const auto expected = (*plain)->Call("main", *inputs);
    if (!expected.ok()) continue;  // extents that do not fit each other
    const ir::IRModule changed = RunAny(named.module, RandomPasses(all, 8, random), counts);
    const auto jit = test::CompileJit(changed, options);
    if (!jit.ok()) FAIL_CHECK(jit.status().message() << "\n" << script::PrintModule(changed));
    if (!jit.ok()) continue;
    const auto got = (*jit)->Call("main", *inputs);
    if (!got.ok()) FAIL_CHECK(got.status().message());
    if (!got.ok()) continue;
    REQUIRE(got->size() == expected->size());
    for (size_t i = 0; i < got->size(); ++i) CheckClose((*got)[i], (*expected)[i]);
    ++num_compared;
  }
  MESSAGE("compared " << num_compared << " modules");
  CHECK(num_compared >= 40);
}

}  // namespace
}  // namespace ingot::transform
