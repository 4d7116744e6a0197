// mlp: one multi-layer perceptron, 784-256-10 with ReLU, in three forms: an ONNX model, a C++ class of nn layers, and a
// module of call_tir as text. Each goes through the same passes to the same functions; with equal parameters they give
// equal results. Everything is compiled and called in this process.
//
//   mlp MODEL.onnx MODULE.py PARAMS.npz RESULTS.npz
//
// PARAMS.npz holds the input x and the parameters fc1_weight, fc1_bias, fc2_weight, fc2_bias. The results of each form
// go to RESULTS.npz: its name as the parameters are inputs, NAME_bound as they are constants. Prints the functions of
// each form after legalising and after the pipeline "zero", and how many calls main makes.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "compiler/builder/layers.h"
#include "compiler/driver/jit.h"
#include "compiler/transform/params.h"
#include "formats/tensor_files.h"

namespace {

using namespace ingot;  // NOLINT: an example's own names

[[noreturn]] void Die(const Status& status) {
  std::fprintf(stderr, "mlp: error: %s\n", status.message().c_str());
  std::exit(1);
}
template <typename T>
T Take(Result<T> result) {
  if (!result.ok()) Die(result.status());
  return *std::move(result);
}

struct Mlp : nn::Layer {
  nn::Linear& fc1 = Add<nn::Linear>("fc1", 784, 256);
  nn::Linear& fc2 = Add<nn::Linear>("fc2", 256, 10);
  nn::Value Forward(const nn::Value& x) const override { return fc2.Forward(nn::Relu(fc1.Forward(x))); }
};

constexpr const char* kParameters[] = {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"};

ir::IRModule RunPasses(ir::IRModule module, const std::vector<transform::Pass>& passes) {
  driver::CompileOptions options;
  options.target = Take(ParseTarget("cpu"));
  options.passes = passes;
  return Take(driver::OptimizeModule(std::move(module), options, {}));
}

// "transpose(op_pattern=2)" for annotated functions.
void PrintFunctions(const char* form, const char* when, const ir::IRModule& module) {
  std::vector<std::string> names;
  for (const ir::IRModule::Entry& entry : module) {
    names.push_back(entry.var->name);
    const ir::PrimFunc function = module.FindPrimFunc(entry.var->name);
    const ir::AttrValue* pattern = function == nullptr ? nullptr : function->attrs.Find("op_pattern");
    if (pattern != nullptr) names.back() += "(op_pattern=" + std::to_string(*pattern->get<int64_t>()) + ")";
  }
  std::sort(names.begin(), names.end());
  std::printf("%s after %s:", form, when);
  for (const std::string& name : names) std::printf(" %s", name.c_str());
  std::printf("\n");
}

size_t CountCalls(const ir::IRModule& module) {
  size_t count = 0;
  for (const ir::BindingBlock& block : module.FindFunction("main")->body->blocks) count += block.bindings.size();
  return count;
}

Tensor Call(const ir::IRModule& module, const std::vector<Tensor>& inputs) {
  const auto jit = Take(driver::JitModule::Compile(module));
  return Take(jit->Call("main", inputs)).at(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: mlp MODEL.onnx MODULE.py PARAMS.npz RESULTS.npz\n");
    return 2;
  }
  std::vector<Tensor> inputs{Take(formats::ReadTensor(argv[3], "x"))};
  std::vector<transform::NamedConstant> constants;
  for (const char* name : kParameters) {
    inputs.push_back(Take(formats::ReadTensor(argv[3], name)));
    constants.push_back({name, transform::ConstantOf(inputs.back())});
  }

  driver::CompileOptions keep_params;
  keep_params.keep_params_in_input = true;
  struct Form {
    const char* name;
    ir::IRModule module;
  };
  const Form forms[] = {
      {"onnx", Take(driver::LoadModel(argv[1], keep_params, {}))},
      {"nn", Take(nn::Export(Mlp(), {"x", {ir::Int64(1), ir::Int64(784)}}, "main")).module},
      {"script", Take(driver::LoadModel(argv[2], {}, {}))},
  };
  std::vector<formats::NamedTensor> results;
  for (const auto& [name, module] : forms) {
    const ir::IRModule typed = Take(driver::PrepareModule(module));
    const std::vector<std::string> legalize{"legalize"};
    PrintFunctions(name, "legalize", RunPasses(typed, Take(transform::FindPasses(legalize))));
    const std::vector<transform::Pass> zero = Take(transform::FindPipeline("zero"));
    const ir::IRModule fused = RunPasses(typed, zero);
    PrintFunctions(name, "zero", fused);
    std::printf("%s main after zero: %zu calls\n", name, CountCalls(fused));
    results.push_back({name, Call(typed, inputs)});

    const ir::IRModule bound = Take(transform::BindParams(typed, "main", constants));
    const ir::IRModule folded = RunPasses(bound, zero);
    PrintFunctions(name, "zero, parameters bound", folded);
    std::printf("%s main after zero, parameters bound: %zu calls\n", name, CountCalls(folded));
    results.push_back({std::string(name) + "_bound", Call(folded, {inputs[0]})});
  }
  if (const Status written = formats::WriteTensorFile(argv[4], results); !written.ok()) Die(written);
  return 0;
}
