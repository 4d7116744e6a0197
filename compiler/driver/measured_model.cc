// Executables and inputs as runners get them.
#include "compiler/driver/measured_model.h"

#include <algorithm>
#include <utility>

#include "vm/program/program_codec.h"

namespace ingot::driver {
namespace {

Status Refuse(const std::string& why) { return Status(StatusCode::kUnsupportedModel, why); }

// Floats at random; integers are zeros, since they may be places that are read.
Result<std::vector<tune::MeasuredInput>> InputsOf(const vm::Signature& signature, const tune::Sizes& sizes) {
  std::vector<int64_t> symbols;
  for (const vm::Symbol& symbol : signature.symbols) symbols.push_back(sizes.values.at(symbol.name));
  std::vector<tune::MeasuredInput> inputs;
  for (const auto& [name, type] : signature.params) {
    if (!type.is_tensor()) return Refuse("the input \"" + name + "\" is no tensor");
    tune::MeasuredInput input;
    for (const vm::Dim& dim : type.dims) {
      if (!dim) return Refuse("the input \"" + name + "\" has a dimension that nothing tells");
      INGOT_ASSIGN_OR_RETURN(const int64_t extent, dim->Evaluate(symbols));
      input.dims.push_back(extent);
    }
    input.spec = type.dtype.is_floating() ? "rand" : "zeros";
    inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace

Result<std::vector<tune::MeasuredCase>> ModelCases(const vm::Program& program, const std::vector<tune::Sizes>& given) {
  const auto main = std::ranges::find(program.functions, std::string("main"), &vm::Function::name);
  if (main == program.functions.end()) return Refuse("the model has no function \"main\"");
  const vm::Signature& signature = main->signature;
  std::vector<tune::Sizes> all(1);
  if (!signature.symbols.empty()) all = given;
  if (all.empty()) return Refuse("its inputs have dimensions that are symbols (--sizes, or --dim to fix them)");
  std::vector<tune::MeasuredCase> cases;
  for (tune::Sizes& sizes : all) {
    for (const vm::Symbol& symbol : signature.symbols) {
      if (!sizes.values.contains(symbol.name)) return Refuse("there is no size for its symbol " + symbol.name);
    }
    INGOT_ASSIGN_OR_RETURN(std::vector<tune::MeasuredInput> inputs, InputsOf(signature, sizes));
    cases.push_back({std::move(sizes), std::move(inputs)});
  }
  return cases;
}

Result<tune::MeasuredProgram> MeasuredModel(const vm::Program& program) {
  INGOT_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, vm::EncodeProgram(program));
  return tune::MeasuredProgram{SharedBytes::Own(std::move(bytes)), "main"};
}

}  // namespace ingot::driver
