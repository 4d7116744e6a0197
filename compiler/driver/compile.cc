// The stages of a compilation, each as one short function: read a model or text, bind and detach parameters,
// canonicalise, run passes (PassRun: options, verifier, observers), and at the end CompileModule, which calls them down
// to a program.
#include "compiler/driver/compile.h"

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "compiler/driver/add_softmax.h"
#include "compiler/driver/stand_in_weights.h"
#include "compiler/lower/bytecode.h"
#include "compiler/memory/passes.h"
#include "compiler/op/verifier.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "compiler/script/side_file.h"
#include "compiler/transform/instruments.h"
#include "compiler/transform/params.h"
#include "compiler/transform/pass.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/states.h"
#include "formats/file.h"
#include "formats/tensor_files.h"
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
  INGOT_RETURN_IF_ERROR(formats::WriteTensorFile(options.detached_params_path, tensors));
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

// Types every expression and brings the module into A-normal form, then into the form of its own text.
Result<ir::IRModule> InferTypes(ir::IRModule module) {
  transform::PassContext context;
  INGOT_ASSIGN_OR_RETURN(module, transform::Normalize(std::move(module), context));
  return Canonical(module);
}

// Runs passes as the options say, verified and observed.
class PassRun {
 public:
  PassRun(const CompileOptions& options, const CompileObserver& observer)
      : observe_([&observer](const transform::Pass& pass, const ir::IRModule& module, double seconds) -> Status {
          if (observer.time) observer.time(pass.name, seconds);
          return observer.after_pass ? observer.after_pass(pass.name, module) : Status();
        }) {
    context_.options = options.pass_options;
    context_.options.opt_level = options.opt_level;
    context_.options.target = options.target;
    context_.options.keep_prepare = options.keep_prepare;
    context_.log = observer.log;
    context_.detail = observer.detail;
    context_.instruments = options.instruments;
    context_.instruments.insert(context_.instruments.end(), {&verify_, &observe_});
  }
  PassRun(const PassRun&) = delete;
  PassRun& operator=(const PassRun&) = delete;

  Result<ir::IRModule> Run(ir::IRModule module, std::span<const transform::Pass> passes) {
    return transform::RunPasses(std::move(module), passes, context_);
  }
  const transform::RewriteLog& rewrites() const { return context_.rewrites; }

 private:
  transform::VerifyPasses verify_;
  transform::CallAfterPasses observe_;
  transform::PassContext context_;
};

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

Result<std::pair<std::string, std::string>> ParseState(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    return Status(StatusCode::kInvalidArgument,
                  "--state \"" + text + "\": expected INPUT=OUTPUT, such as past_k=present_k");
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

Result<ir::IRModule> PrepareModule(ir::IRModule module) {
  INGOT_ASSIGN_OR_RETURN(module, InferTypes(std::move(module)));
  INGOT_RETURN_IF_ERROR(op::VerifyModule(module));
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
  INGOT_RETURN_IF_ERROR(op::VerifyModule(module).WithContext(path));
  if (observer.time) observer.time("import", SecondsSince(start));
  if (observer.after_pass) INGOT_RETURN_IF_ERROR(observer.after_pass("import", module));
  return module;
}

Result<ir::IRModule> OptimizeModule(ir::IRModule module, const CompileOptions& options,
                                    const CompileObserver& observer) {
  PassRun run(options, observer);
  INGOT_ASSIGN_OR_RETURN(const std::vector<transform::Pass> default_passes, transform::FindPipeline("default"));
  INGOT_ASSIGN_OR_RETURN(module, run.Run(std::move(module), options.passes ? *options.passes : default_passes));
  if (observer.rewritten) observer.rewritten(run.rewrites());
  return module;
}

std::vector<transform::Pass> AllPasses() {
  const auto graph = transform::GraphPasses();
  const auto lowering = memory::MemoryPasses();
  std::vector<transform::Pass> passes(graph.begin(), graph.end());
  passes.insert(passes.end(), lowering.begin(), lowering.end());
  return passes;
}

Result<vm::Program> CompileModule(const ir::IRModule& loaded, const CompileOptions& options,
                                  const CompileObserver& observer) {
  script::ConstantStore constants;
  const std::string text = script::PrintModule(loaded, {}, &constants);
  StandInWeights stand_ins;
  CompileObserver shown = observer;
  if (options.keep_prepare && observer.after_pass) {
    shown.after_pass = [&](std::string_view pass, const ir::IRModule& module) {
      return observer.after_pass(pass, stand_ins.Reveal(module));
    };
  }
  INGOT_ASSIGN_OR_RETURN(ir::IRModule module,
                         OptimizeModule(options.keep_prepare ? stand_ins.Hide(loaded) : loaded, options, shown));
  INGOT_ASSIGN_OR_RETURN(module, PassRun(options, shown).Run(std::move(module), memory::MemoryPasses()));

  Clock::time_point start = Clock::now();
  kernels::KernelOptions kernel_options{options.opt_level, options.threads, observer.progress};
  INGOT_ASSIGN_OR_RETURN(kernels::KernelSet kernel_set,
                         kernels::CompileKernelSet(module, options.target, kernel_options));
  if (observer.time) observer.time("kernels", SecondsSince(start));

  start = Clock::now();
  INGOT_ASSIGN_OR_RETURN(vm::Program program, lower::LowerToBytecode(module, std::move(kernel_set.kernels)));
  stand_ins.Restore(program);
  program.images = std::move(kernel_set.images);
  program.metadata["producer"] = std::string("ingot ") + kVersion;
  program.metadata["source_hash"] = Hex(XXH3_64bits(text.data(), text.size()));
  program.metadata["opt_level"] = std::to_string(options.opt_level);
  program.metadata["target"] = options.target_text;
  const transform::RewritePermissions& math = options.pass_options.rewrites;
  if (math.strict_math) program.metadata["math"] = "strict";
  for (const std::string& group : math.fast_math) {
    std::string& text = program.metadata["math"];
    text += (text.empty() ? "fast: " : ", ") + group;
  }
  if (observer.time) observer.time("bytecode", SecondsSince(start));
  return program;
}

}  // namespace ingot::driver
