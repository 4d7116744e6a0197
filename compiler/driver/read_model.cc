// Reads a model or a text, each with the tensors beside it; detaches and binds weights; stores states; and brings the
// module into the form that its own text has, in which it is compiled.
#include "compiler/driver/read_model.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "compiler/driver/add_softmax.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "compiler/script/side_file.h"
#include "compiler/transform/params.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/states.h"
#include "formats/file.h"
#include "formats/tensor_files.h"

namespace ingot::driver {

namespace {

Result<ir::IRModule> ReadScript(const std::string& path, const CompileOptions& options) {
  if (!options.import.input_shapes.empty() || !options.import.dims.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "--input-shape and --dim are for ONNX models; a module states its own shapes");
  }
  INGOT_ASSIGN_OR_RETURN(SharedBytes bytes, formats::MapFile(path));
  script::ConstantStore constants;
  const std::string side_file = script::SideFilePath(path);
  std::error_code error;
  if (std::filesystem::status(side_file, error).type() != std::filesystem::file_type::not_found) {
    INGOT_ASSIGN_OR_RETURN(constants, script::ReadSideFile(side_file));
  }
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return script::ParseModule(std::move(text), path, &constants);
}

// The tensors of a file as constants, without a copy.
Result<std::vector<transform::NamedConstant>> ReadConstants(const std::string& path) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<formats::NamedTensor> tensors, formats::ReadTensorFile(path));
  std::vector<transform::NamedConstant> constants;
  for (const formats::NamedTensor& named : tensors) {
    INGOT_ASSIGN_OR_RETURN(const Tensor tensor, named.tensor.Compact());
    constants.push_back({named.name, transform::ConstantOf(tensor)});
  }
  return constants;
}

// Adds to the import's options what depends on files: where external data is, and the inputs that --params binds.
Result<importer::ImportOptions> ImportOptionsFor(const std::string& path, const CompileOptions& options) {
  importer::ImportOptions import = options.import;
  import.directory = std::filesystem::path(path).parent_path().string();
  if (import.directory.empty()) import.directory = ".";
  if (options.params_path.empty() || options.keep_params_in_input) return import;
  INGOT_ASSIGN_OR_RETURN(std::vector<transform::NamedConstant> constants, ReadConstants(options.params_path));
  for (transform::NamedConstant& constant : constants) {
    import.constants.emplace_back(std::move(constant.name), std::move(constant.data));
  }
  return import;
}

Result<ir::IRModule> ReadOnnx(const std::string& path, const CompileOptions& options) {
  INGOT_ASSIGN_OR_RETURN(SharedBytes bytes, formats::MapFile(path));
  INGOT_ASSIGN_OR_RETURN(const importer::ImportOptions import, ImportOptionsFor(path, options));
  INGOT_ASSIGN_OR_RETURN(importer::ImportResult imported, importer::ImportOnnx(bytes, path, import));
  return std::move(imported.module);
}

// Turns the model's weights into parameters, and writes them where the options say.
Result<ir::IRModule> DetachWeights(ir::IRModule module, const CompileOptions& options) {
  INGOT_ASSIGN_OR_RETURN(transform::DetachedParams detached, transform::DetachParams(std::move(module), "main"));
  if (options.detached_params_path.empty()) return std::move(detached.module);
  std::vector<formats::NamedTensor> tensors;
  for (const transform::NamedConstant& param : detached.params) {
    INGOT_ASSIGN_OR_RETURN(Tensor tensor, transform::TensorOf(*param.data));
    tensors.push_back({param.name, std::move(tensor)});
  }
  INGOT_RETURN_IF_ERROR(formats::WriteTensorFile(options.detached_params_path, tensors, *options.calls));
  return std::move(detached.module);
}

// Turns the parameters of main that the file names into constants.
Result<ir::IRModule> BindFromFile(ir::IRModule module, const std::string& path) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<transform::NamedConstant> constants, ReadConstants(path));
  Result<ir::IRModule> bound = transform::BindParams(std::move(module), "main", constants);
  if (!bound.ok()) return std::move(bound).status().WithContext(path);
  return bound;
}

// Stores --state as the attribute that keep_states reads; that pass checks the names, since it knows the results.
Result<ir::IRModule> WithStates(ir::IRModule module, const std::vector<std::pair<std::string, std::string>>& states) {
  const ir::Function main_function = module.FindFunction("main");
  if (!main_function) return Status(StatusCode::kInvalidArgument, "--state: the module has no function \"main\"");
  ir::AttrDict pairs;
  if (const ir::AttrValue* attr = main_function->attrs.Find(transform::kStatesAttr)) {
    if (const auto* known = attr->get<ir::AttrDict>()) pairs = *known;
  }
  for (const auto& [input, output] : states) {
    if (std::ranges::find(pairs, input, &std::pair<std::string, ir::AttrValue>::first) != pairs.end()) {
      return Status(StatusCode::kInvalidArgument, "--state: \"" + input + "\" is part of another state already");
    }
    pairs.emplace_back(input, output);
  }
  ir::FunctionNode kept = *main_function;
  kept.attrs = kept.attrs.With(transform::kStatesAttr, std::move(pairs));
  module.Set(module.FindGlobalVar("main"), ir::Make<ir::FunctionNode>(std::move(kept)));
  return module;
}

// Returns the module as its own text would be read: variables named as printed, constants shared by content.
Result<ir::IRModule> Canonical(const ir::IRModule& module) {
  script::ConstantStore constants;
  const std::string text = script::PrintModule(module, {}, &constants);
  return script::ParseModule(text, "module.py", &constants);
}

}  // namespace

Result<ir::IRModule> InferTypes(ir::IRModule module) {
  transform::PassContext context;
  INGOT_ASSIGN_OR_RETURN(module, transform::Normalize(std::move(module), context));
  return Canonical(module);
}

Result<ir::IRModule> ReadModel(const std::string& path, const CompileOptions& options) {
  const std::string extension = std::filesystem::path(path).extension();
  Result<ir::IRModule> read =
      Status(StatusCode::kInvalidArgument, path + ": expected a model as .onnx, or a module as .py (TVMScript)");
  if (extension == ".onnx") read = ReadOnnx(path, options);
  if (extension == ".py") read = ReadScript(path, options);
  INGOT_ASSIGN_OR_RETURN(ir::IRModule module, std::move(read));
  if (options.keep_params_in_input) {
    INGOT_ASSIGN_OR_RETURN(module, DetachWeights(std::move(module), options));
  }
  if (!options.params_path.empty() && (extension != ".onnx" || options.keep_params_in_input)) {
    INGOT_ASSIGN_OR_RETURN(module, BindFromFile(std::move(module), options.params_path));
  }
  if (!options.states.empty()) {
    INGOT_ASSIGN_OR_RETURN(module, WithStates(std::move(module), options.states));
  }
  INGOT_ASSIGN_OR_RETURN(module, InferTypes(std::move(module)));
  if (!options.softmax_output.empty()) {
    INGOT_ASSIGN_OR_RETURN(module, AddSoftmax(std::move(module), options.softmax_output));
    INGOT_ASSIGN_OR_RETURN(module, InferTypes(std::move(module)));
  }
  return module;
}

Result<importer::SupportReport> CheckModel(const std::string& path, const CompileOptions& options) {
  INGOT_ASSIGN_OR_RETURN(SharedBytes bytes, formats::MapFile(path));
  INGOT_ASSIGN_OR_RETURN(const importer::ImportOptions import, ImportOptionsFor(path, options));
  return importer::CheckOnnx(bytes, path, import);
}

Result<std::pair<std::string, std::string>> ParseState(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    return Status(StatusCode::kInvalidArgument,
                  "--state \"" + text + "\": expected INPUT=OUTPUT, such as past_k=present_k");
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

}  // namespace ingot::driver
