#include "compiler/driver/compile.h"

#include <xxhash.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "compiler/ir/structural.h"
#include "compiler/ir/verifier.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/bytecode.h"
#include "compiler/lower/pipeline.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "compiler/script/side_file.h"
#include "compiler/transform/pass.h"
#include "compiler/transform/passes.h"
#include "formats/file.h"
#include "formats/tensor_files.h"
#include "runtime/suggest.h"
#include "runtime/version.h"

namespace ingot::driver {

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Result<ir::IRModule> ReadScript(const std::string& path, const CompileOptions& options) {
  if (!options.import.input_shapes.empty() || !options.import.dims.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "--input-shape and --dim are for ONNX models; a module states its own shapes");
  }
  INGOT_ASSIGN_OR_RETURN(SharedBytes bytes, formats::MapFile(path));
  script::ConstantStore constants;
  const std::string side_file = script::SideFilePath(path);
  if (std::filesystem::exists(side_file)) {
    INGOT_ASSIGN_OR_RETURN(constants, script::ReadSideFile(side_file));
  }
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return script::ParseModule(std::move(text), path, &constants);
}

// The elements of a tensor file as a constant, without a copy.
Result<ir::Expr> ConstantOf(const formats::NamedTensor& named) {
  INGOT_ASSIGN_OR_RETURN(const Tensor tensor, named.tensor.Compact());
  auto owner = std::make_shared<const Tensor>(tensor);
  const std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  auto data = std::make_shared<const ir::ConstantData>(tensor.dtype(), dims, std::as_bytes(owner->bytes()), owner);
  return ir::Expr(ir::Make<ir::ConstantNode>(std::move(data), named.name));
}

// The options of an import that depend on files: where external data lies, and the inputs that --params binds.
Result<importer::ImportOptions> ImportOptionsFor(const std::string& path, const CompileOptions& options) {
  importer::ImportOptions import = options.import;
  import.directory = std::filesystem::path(path).parent_path().string();
  if (import.directory.empty()) import.directory = ".";
  if (options.params_path.empty()) return import;
  INGOT_ASSIGN_OR_RETURN(const std::vector<formats::NamedTensor> tensors, formats::ReadTensorFile(options.params_path));
  for (const formats::NamedTensor& named : tensors) {
    INGOT_ASSIGN_OR_RETURN(const ir::Expr constant, ConstantOf(named));
    import.constants.emplace_back(named.name, ir::Downcast<ir::ConstantNode>(constant)->data);
  }
  return import;
}

Result<ir::IRModule> ReadOnnx(const std::string& path, const CompileOptions& options) {
  INGOT_ASSIGN_OR_RETURN(SharedBytes bytes, formats::MapFile(path));
  INGOT_ASSIGN_OR_RETURN(const importer::ImportOptions import, ImportOptionsFor(path, options));
  INGOT_ASSIGN_OR_RETURN(importer::ImportResult imported, importer::ImportOnnx(bytes, path, import));
  return std::move(imported.module);
}

class ParamBinder : public ir::ExprMutator {
 public:
  void Bind(const ir::Var& var, ir::Expr value) { var_map_[var] = std::move(value); }
};

// Parameters of main that the file names become constants. Every tensor of the file must be one.
Result<ir::IRModule> BindParams(ir::IRModule module, const std::string& path) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<formats::NamedTensor> tensors, formats::ReadTensorFile(path));
  const ir::Function main_function = module.FindFunction("main");
  if (!main_function) return Status(StatusCode::kInvalidArgument, "--params: the module has no function \"main\"");
  std::vector<std::string_view> names;
  for (const ir::Var& param : main_function->params) names.push_back(param->name);
  ParamBinder binder;
  std::vector<bool> is_bound(names.size(), false);
  for (const formats::NamedTensor& named : tensors) {
    const auto found = std::find(names.begin(), names.end(), named.name);
    if (found == names.end()) {
      return Status(StatusCode::kBadInput,
                    path + ": \"" + named.name + "\" is no parameter of \"main\"" + DidYouMean(named.name, names));
    }
    const size_t i = static_cast<size_t>(found - names.begin());
    const ir::Var& param = main_function->params[i];
    INGOT_ASSIGN_OR_RETURN(ir::Expr constant, ConstantOf(named));
    if (!ir::StructuralEqual(param->type, constant->type)) {
      return Status(StatusCode::kBadInput, path + ": \"" + named.name + "\": expected " +
                                               script::PrintType(param->type) + ", got " +
                                               script::PrintType(constant->type));
    }
    binder.Bind(param, std::move(constant));
    is_bound[i] = true;
  }
  ir::FunctionNode bound = *binder.MutateFunction(main_function);
  std::vector<ir::Var> params;
  for (size_t i = 0; i < bound.params.size(); ++i) {
    if (!is_bound[i]) params.push_back(bound.params[i]);
  }
  bound.params = std::move(params);
  module.Set(module.FindGlobalVar("main"), ir::Make<ir::FunctionNode>(std::move(bound)));
  return module;
}

// The module as its own text says it: names of variables as printed, constants shared by content.
Result<ir::IRModule> Canonical(const ir::IRModule& module) {
  script::ConstantStore constants;
  const std::string text = script::PrintModule(module, {}, &constants);
  return script::ParseModule(text, "module.py", &constants);
}

// Every expression typed, in A-normal form, as its own text says it.
Result<ir::IRModule> InferTypes(ir::IRModule module) {
  transform::PassContext context;
  INGOT_ASSIGN_OR_RETURN(module, transform::Normalize(std::move(module), context));
  return Canonical(module);
}

transform::PassContext MakePassContext(const CompileOptions& options, const CompileObserver& observer) {
  transform::PassContext context;
  context.options.opt_level = options.opt_level;
  context.options.target = options.target;
  context.options.keep_prepare = options.keep_prepare;
  context.log = observer.log;
  context.after_pass = [&observer](std::string_view pass, const ir::IRModule& module, double seconds) -> Status {
    if (observer.time) observer.time(pass, seconds);
    return observer.after_pass ? observer.after_pass(pass, module) : Status();
  };
  return context;
}

std::string Hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

Result<importer::SupportReport> CheckModel(const std::string& path, const CompileOptions& options) {
  INGOT_ASSIGN_OR_RETURN(SharedBytes bytes, formats::MapFile(path));
  INGOT_ASSIGN_OR_RETURN(const importer::ImportOptions import, ImportOptionsFor(path, options));
  return importer::CheckOnnx(bytes, path, import);
}

Result<ir::IRModule> PrepareModule(ir::IRModule module) {
  INGOT_ASSIGN_OR_RETURN(module, InferTypes(std::move(module)));
  INGOT_RETURN_IF_ERROR(ir::VerifyModule(module));
  return module;
}

Result<ir::IRModule> LoadModel(const std::string& path, const CompileOptions& options,
                               const CompileObserver& observer) {
  const Clock::time_point start = Clock::now();
  const std::string extension = std::filesystem::path(path).extension();
  Result<ir::IRModule> read =
      Status(StatusCode::kInvalidArgument, path + ": expected a model as .onnx, or a module as .py (TVMScript)");
  if (extension == ".onnx") read = ReadOnnx(path, options);
  if (extension == ".py") read = ReadScript(path, options);
  INGOT_ASSIGN_OR_RETURN(ir::IRModule module, std::move(read));
  if (!options.params_path.empty() && extension != ".onnx") {
    INGOT_ASSIGN_OR_RETURN(module, BindParams(std::move(module), options.params_path));
  }
  INGOT_ASSIGN_OR_RETURN(module, InferTypes(std::move(module)));
  INGOT_RETURN_IF_ERROR(ir::VerifyModule(module).WithContext(path));
  if (observer.time) observer.time("import", SecondsSince(start));
  if (observer.after_pass) INGOT_RETURN_IF_ERROR(observer.after_pass("import", module));
  return module;
}

Result<ir::IRModule> OptimizeModule(ir::IRModule module, const CompileOptions& options,
                                    const CompileObserver& observer) {
  transform::PassContext context = MakePassContext(options, observer);
  return transform::RunPasses(std::move(module), transform::Pipeline(), context);
}

std::vector<transform::PassRow> AllPasses() {
  const auto graph = transform::Pipeline();
  const auto lowering = lower::LoweringPipeline();
  std::vector<transform::PassRow> passes(graph.begin(), graph.end());
  passes.insert(passes.end(), lowering.begin(), lowering.end());
  return passes;
}

Result<vm::Program> CompileModule(const ir::IRModule& loaded, const CompileOptions& options,
                                  const CompileObserver& observer) {
  script::ConstantStore constants;
  const std::string text = script::PrintModule(loaded, {}, &constants);
  transform::PassContext context = MakePassContext(options, observer);
  INGOT_ASSIGN_OR_RETURN(ir::IRModule module, OptimizeModule(loaded, options, observer));
  INGOT_ASSIGN_OR_RETURN(module, transform::RunPasses(std::move(module), lower::LoweringPipeline(), context));

  Clock::time_point start = Clock::now();
  lower::KernelOptions kernel_options{options.opt_level, options.threads, observer.progress};
  INGOT_ASSIGN_OR_RETURN(lower::KernelSet kernels, lower::CompileKernelSet(module, options.target, kernel_options));
  if (observer.time) observer.time("kernels", SecondsSince(start));

  start = Clock::now();
  INGOT_ASSIGN_OR_RETURN(vm::Program program, lower::LowerToBytecode(module, std::move(kernels.kernels)));
  program.images = std::move(kernels.images);
  program.metadata["producer"] = std::string("ingot ") + kVersion;
  program.metadata["source_hash"] = Hex(XXH3_64bits(text.data(), text.size()));
  program.metadata["opt_level"] = std::to_string(options.opt_level);
  program.metadata["target"] = options.target_text;
  if (observer.time) observer.time("bytecode", SecondsSince(start));
  return program;
}

}  // namespace ingot::driver
