// Reads the tensor file, takes the tensors that the signature of "main" names, and evaluates the model for outputs that
// the file lacks.
#include "compiler/driver/golden.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/driver/reference_evaluation.h"
#include "formats/packed_elements.h"
#include "formats/tensor_files.h"
#include "runtime/suggest.h"

namespace ingot::driver {

namespace {

Status Bad(std::string message) { return Status(StatusCode::kBadInput, std::move(message)); }

bool Fits(const vm::Type& type, const Tensor& tensor) {
  if (!type.is_tensor() || type.dtype != tensor.dtype() || type.rank() != tensor.rank()) return false;
  for (int axis = 0; axis < type.rank(); ++axis) {
    const vm::Dim& dim = type.dims[static_cast<size_t>(axis)];
    if (dim && dim->is_constant() && dim->constant() != tensor.dim(axis)) return false;
  }
  return true;
}

// Takes the tensors that the signature names, in its order. Returns none if the file has none of them; kBadInput if it
// has only some, or one of another type.
Result<std::vector<vm::GoldenTensor>> Take(const std::vector<vm::NamedType>& declared, const char* what,
                                           const vm::Signature& signature, std::vector<formats::NamedTensor>& tensors) {
  std::vector<vm::GoldenTensor> taken;
  std::string missing;
  for (const vm::NamedType& named : declared) {
    const auto found = std::ranges::find(tensors, named.name, &formats::NamedTensor::name);
    if (found == tensors.end()) {
      missing += (missing.empty() ? "\"" : ", \"") + named.name + "\"";
      continue;
    }
    if (named.type.is_tensor()) {
      INGOT_ASSIGN_OR_RETURN(found->tensor, formats::PackIntegersAs(found->tensor, named.type.dtype));
    }
    if (!Fits(named.type, found->tensor)) {
      return Bad(std::string(what) + " \"" + named.name + "\": " + found->tensor.TypeToString() + " is not of main" +
                 signature.ToString());
    }
    INGOT_ASSIGN_OR_RETURN(Tensor compact, found->tensor.Compact());
    taken.push_back({named.name, std::move(compact)});
    tensors.erase(found);
  }
  if (!missing.empty() && !taken.empty()) return Bad(std::string("there is no ") + what + " " + missing);
  return taken;
}

// Evaluates the model by reference; an ONNX model is imported with the inputs' dims in place of its symbols.
Result<std::vector<Tensor>> Evaluate(const std::string& model, CompileOptions options,
                                     const std::vector<vm::GoldenTensor>& inputs) {
  if (!options.states.empty())
    return Status(StatusCode::kUnsupportedModel, "a model with states has no reference evaluation");
  if (model.ends_with(".onnx")) {
    options.import.input_shapes.clear();
    options.import.dims.clear();
    for (const vm::GoldenTensor& input : inputs) {
      importer::InputShape shape{input.name, {}};
      for (const int64_t dim : input.tensor.dims()) shape.dims.push_back({dim, ""});
      options.import.input_shapes.push_back(std::move(shape));
    }
  }
  INGOT_ASSIGN_OR_RETURN(const ir::IRModule module, LoadModel(model, options, {}));
  std::vector<Tensor> tensors;
  for (const vm::GoldenTensor& input : inputs) tensors.push_back(input.tensor);
  return EvaluateByReference(module, tensors);
}

Result<vm::GoldenCase> Make(const vm::Program& program, const std::string& model, const CompileOptions& options,
                            const std::string& path) {
  const vm::Function* function = program.FindFunction("main");
  if (function == nullptr) return Bad("the module has no function \"main\"");
  INGOT_ASSIGN_OR_RETURN(std::vector<formats::NamedTensor> tensors, formats::ReadTensorFile(path));
  const vm::Signature& signature = function->signature;
  vm::GoldenCase golden;
  golden.function = "main";
  INGOT_ASSIGN_OR_RETURN(golden.inputs, Take(signature.params, "input", signature, tensors));
  INGOT_ASSIGN_OR_RETURN(golden.outputs, Take(signature.results, "output", signature, tensors));
  if (golden.inputs.size() != signature.params.size()) return Bad("there are no inputs of main" + signature.ToString());
  if (!tensors.empty()) {
    std::vector<std::string_view> names;
    for (const vm::NamedType& named : signature.params) names.push_back(named.name);
    for (const vm::NamedType& named : signature.results) names.push_back(named.name);
    return Bad("\"" + tensors[0].name + "\" is neither an input nor an output" + DidYouMean(tensors[0].name, names));
  }
  if (!golden.outputs.empty()) return golden;
  golden.origin = vm::GoldenOrigin::kReference;
  Result<std::vector<Tensor>> outputs = Evaluate(model, options, golden.inputs);
  if (!outputs.ok()) {
    return std::move(outputs).status().WithContext("there are no outputs in the file, and they cannot be evaluated");
  }
  if (outputs->size() != signature.results.size()) return Bad("the reference evaluation has other results than main");
  for (size_t i = 0; i < outputs->size(); ++i) golden.outputs.push_back({signature.results[i].name, (*outputs)[i]});
  return golden;
}

}  // namespace

Result<vm::GoldenCase> MakeGoldenCase(const vm::Program& program, const std::string& model,
                                      const CompileOptions& options, const std::string& tensors,
                                      const formats::Tolerance& tolerance) {
  Result<vm::GoldenCase> golden = Make(program, model, options, tensors);
  if (!golden.ok()) return std::move(golden).status().WithContext("--golden " + tensors);
  golden->relative_tolerance = tolerance.relative;
  golden->absolute_tolerance = tolerance.absolute;
  return golden;
}

}  // namespace ingot::driver
