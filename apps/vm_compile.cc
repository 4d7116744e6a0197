// vm-compile: compiles a model (ONNX, or a module as TVMScript) to one executable, or prints one of the text forms on
// the way. Parses options, calls compiler/driver, and writes the result.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <thread>

#include "apps/common/process.h"
#include "apps/common/tool.h"
#include "compiler/codegen/codegen.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/external_weights.h"
#include "compiler/driver/golden.h"
#include "compiler/driver/read_model.h"
#include "compiler/driver/write.h"
#include "compiler/importer/op_list.h"
#include "compiler/kernels/explain_kernels.h"
#include "compiler/kernels/kernel_cache.h"
#include "compiler/kernels/show_kernels.h"
#include "compiler/op/registry.h"
#include "compiler/script/printer.h"
#include "compiler/script/side_file.h"
#include "compiler/target/join_targets.h"
#include "compiler/transform/pass.h"
#include "compiler/transform/pass_options.h"
#include "compiler/validate/validate_passes.h"
#include "formats/file.h"
#include "runtime/suggest.h"
#include "runtime/utf8.h"
#include "vm/program/program_codec.h"
#include "vm/text/disassembler.h"

namespace ingot::apps {
namespace {

constexpr const char* kExamples =
    "  vm-compile model.onnx -o model.ingot\n"
    "  vm-compile model.onnx --dim batch=1..64 --input-shape image=batch,3,224,224 -o model.ingot\n"
    "  vm-compile decoder.onnx --state past_k=present_k --dim past=0..1023 -o decoder.ingot\n"
    "  vm-compile module.py --params weights.npz -o model.ingot\n"
    "  vm-compile model.onnx --external-weights weights.safetensors -o model.ingot\n"
    "  vm-compile model.onnx --target cpu --target cpu:aarch64 -o model.ingot     # one set of weights for both\n"
    "  vm-compile model.onnx --golden case.npz --sign model.key --compress=zstd:3 -o model.ingot\n"
    "  vm-compile model.onnx --emit=relax -o model.py     # the module as text; weights beside it\n"
    "  vm-compile model.onnx --emit=asm --kernel fused_matmul_add     # one kernel as assembly, llvm, tir or schedule\n"
    "  vm-compile model.onnx --emit=program -o model      # a program that needs nothing: ./model image.npy\n"
    "  vm-compile model.onnx --emit=object -o model.o     # and model.h, to link into an application\n"
    "  vm-compile model.onnx --pipeline=zero --emit=schedule    # passes by name; --passes for a list of one's own\n"
    "  vm-compile model.onnx --print-after=fuse_ops -o model.ingot";

constexpr std::string_view kKernelForms[] = {"tir", "schedule", "llvm", "asm", "ptx"};  // of --emit, for --kernel

struct Options {
  std::string model, output, params, emit_params, pipeline, emit = "executable", dump_dir, compress = "none", labels,
                                                            launcher, softmax, external_weights, sign, fast_math, cache,
                                                            tuning_db, ptxas;
  std::vector<std::string> golden, targets, input_shapes, dims, states, print_after, kernels, passes, disabled_passes,
      pass_options;
  formats::Tolerance golden_tolerance{1e-4, 1e-5};
  int opt_level = 2, threads = 0;
  int cache_megabytes = static_cast<int>(kernels::CacheDirectory::kDefaultMaxBytes >> 20);
  bool keep_prepare = false, keep_params = false, time_passes = false, validate = false, verbose = false, check = false,
       list_ops = false, list_passes = false, list_pipelines = false, list_rewrites = false, list_targets = false,
       strict_math = false, explain = false, no_cache = false;
};

// Writes a text form to -o, or to stdout.
Status WriteText(const std::string& path, const std::string& text, formats::FileCalls& calls) {
  if (path.empty() || path == "-") {
    std::cout << text;
    return Status();
  }
  return formats::WriteFileAtomically(path, std::as_bytes(std::span(text)), calls);
}

std::string CacheText(const kernels::CacheFigures& figures) {
  std::string text = "objects of kernels: " + std::to_string(figures.hits) + " from the cache, " +
                     std::to_string(figures.misses) + " compiled, " + std::to_string(figures.stored) + " kept";
  if (figures.damaged > 0) text += ", " + std::to_string(figures.damaged) + " entries unusable";
  if (figures.evicted > 0) text += ", " + std::to_string(figures.evicted) + " evicted";
  return text;
}

// The forms of --emit that hold an executable.
std::optional<driver::FileKind> FileKindOf(std::string_view emit) {
  if (emit == "executable") return driver::FileKind::kExecutable;
  if (emit == "program") return driver::FileKind::kProgram;
  if (emit == "object") return driver::FileKind::kObject;
  if (emit == "shared") return driver::FileKind::kShared;
  return std::nullopt;
}

Json ExplanationJson(const kernels::KernelExplanation& kernel) {
  Json parts = Json::Array();
  for (const kernels::ScheduledPart& part : kernel.parts) {
    Json declined = Json::Array();
    for (const kernels::DeclinedRule& rule : part.declined) {
      declined.push_back({{"rule", rule.rule}, {"why", rule.why}, {"other_kind", rule.is_of_other_kind}});
    }
    parts.push_back({{"block", part.block},
                     {"rule", part.rule},
                     {"layout", part.layout},
                     {"lanes", part.lanes},
                     {"parallel", part.is_parallel},
                     {"stores", part.stores},
                     {"serial_scalar", part.is_serial_scalar()},
                     {"declined", std::move(declined)}});
  }
  Json json = {{"name", kernel.name},
               {"target", kernel.target},
               {"left_alone", kernel.left_alone},
               {"symbolic", kernel.is_symbolic},
               {"flops", kernel.flops},
               {"bytes", kernel.bytes}};
  if (kernel.predicted) {
    const kernels::PredictedCost& cost = *kernel.predicted;
    json["lanes"] = cost.lanes;
    json["parallel_share"] = cost.parallel;
    json["predicted_ns"] = cost.nanoseconds;
    json["predicted_gflops"] = kernel.flops / cost.nanoseconds;
    json["predicted_gbytes"] = kernel.bytes / cost.nanoseconds;
    json["bound"] = cost.is_bound_by_memory ? "memory" : "core";
  }
  json["parts"] = std::move(parts);
  return json;
}

// Where kernels are cached: --no-cache and --cache decide, then the environment variable, then there is a default.
std::optional<kernels::KernelCacheOptions> CacheOf(const Options& options) {
  const char* variable = std::getenv("INGOT_CACHE");
  kernels::KernelCacheOptions cache{options.cache, int64_t{options.cache_megabytes} << 20};
  if (cache.directory.empty() && variable != nullptr) cache.directory = variable;
  if (options.no_cache || (options.cache.empty() && cache.directory == "off")) return std::nullopt;
  return cache;
}

class Compilation {
 public:
  Compilation(Tool& tool, const Options& options) : tool_(tool), options_(options) {}

  Result<int> Run() {
    if (options_.list_ops || options_.list_passes || options_.list_pipelines || options_.list_rewrites ||
        options_.list_targets) {
      return List();
    }
    if (options_.model.empty()) return Status(StatusCode::kInvalidArgument, "no MODEL was given");
    INGOT_RETURN_IF_ERROR(Prepare());
    if (options_.check) return Check();
    INGOT_ASSIGN_OR_RETURN(ir::IRModule module, driver::LoadModel(options_.model, compile_, observer_));
    const bool emits_kernels =
        std::find(std::begin(kKernelForms), std::end(kKernelForms), options_.emit) != std::end(kKernelForms);
    if (!options_.kernels.empty() && !emits_kernels) {
      return Status(StatusCode::kInvalidArgument, "--kernel chooses what --emit=tir, schedule, llvm or asm shows");
    }
    if (!options_.tuning_db.empty() && (emits_kernels || options_.emit == "relax")) {
      return Status(StatusCode::kInvalidArgument, "--tuning-db: --emit=" + options_.emit + " shows default schedules");
    }
    if (options_.emit == "relax") return EmitModule(module);
    const std::optional<driver::FileKind> file_kind = FileKindOf(options_.emit);
    if (file_kind || options_.emit == "bytecode") {
      if (file_kind && options_.output.empty()) {
        return Status(StatusCode::kInvalidArgument, "no -o OUT was given for --emit=" + options_.emit);
      }
      if (gpu_ && !file_kind) {
        return Status(StatusCode::kInvalidArgument, "--emit=bytecode shows the program for one kind of device");
      }
      std::optional<vm::Program> for_gpu;
      if (gpu_) {
        if (!options_.external_weights.empty()) {
          return Status(StatusCode::kInvalidArgument, "--external-weights is for files with one kind of device");
        }
        INGOT_ASSIGN_OR_RETURN(for_gpu, CompileForGpu(module));
      }
      INGOT_ASSIGN_OR_RETURN(vm::Program program, Compile(module));
      INGOT_RETURN_IF_ERROR(AddLabels(program));
      if (!options_.external_weights.empty()) {
        if (!file_kind)
          return Status(StatusCode::kInvalidArgument, "--external-weights goes with a file, not with text");
        INGOT_RETURN_IF_ERROR(
            driver::MoveWeightsToFile(program, options_.external_weights, options_.output, tool_.files()));
      }
      if (file_kind) {
        INGOT_RETURN_IF_ERROR(WriteProgram(program, for_gpu ? &*for_gpu : nullptr, *file_kind));
      } else {
        INGOT_RETURN_IF_ERROR(WriteText(options_.output, vm::Disassemble(program), tool_.files()));
      }
      return Report();
    }
    if (gpu_) {
      return Status(StatusCode::kInvalidArgument, "--emit=" + options_.emit + " shows kernels for one kind of device");
    }
    INGOT_ASSIGN_OR_RETURN(module, driver::OptimizeModule(std::move(module), compile_, observer_));
    return EmitKernels(std::move(module));
  }

 private:
  Status Prepare() {
    std::vector<std::string> for_cpu, for_gpu;
    for (const std::string& target : options_.targets) {
      (target.starts_with("cuda:") ? for_gpu : for_cpu).push_back(target);
    }
    if (for_cpu.empty()) std::swap(for_cpu, for_gpu);  // one program, whatever it is for
    if (!for_cpu.empty()) {
      INGOT_ASSIGN_OR_RETURN(compile_.target_text, JoinTargets(for_cpu));
    }
    if (!for_gpu.empty()) {
      INGOT_ASSIGN_OR_RETURN(std::string text, JoinTargets(for_gpu));
      INGOT_ASSIGN_OR_RETURN(TargetFamily family, ParseTarget(text));
      gpu_.emplace(std::move(text), std::move(family));
    }
    INGOT_ASSIGN_OR_RETURN(compile_.target, ParseTarget(compile_.target_text));
    for (const std::string& text : options_.input_shapes) {
      INGOT_ASSIGN_OR_RETURN(importer::InputShape shape, importer::ParseInputShape(text));
      compile_.import.input_shapes.push_back(std::move(shape));
    }
    for (const std::string& text : options_.dims) {
      INGOT_ASSIGN_OR_RETURN(importer::DimRange range, importer::ParseDimRange(text));
      compile_.import.dims.push_back(std::move(range));
    }
    for (const std::string& text : options_.states) {
      INGOT_ASSIGN_OR_RETURN(auto state, driver::ParseState(text));
      compile_.states.push_back(std::move(state));
    }
    compile_.params_path = options_.params;
    compile_.softmax_output = options_.softmax;
    compile_.opt_level = options_.opt_level;
    compile_.keep_prepare = options_.keep_prepare || !options_.external_weights.empty();
    compile_.keep_params_in_input = options_.keep_params || !options_.emit_params.empty();
    compile_.cache = CacheOf(options_);
    compile_.tuning_db_path = options_.tuning_db;
    compile_.ptxas = options_.ptxas;
    compile_.calls = &tool_.files();
    compile_.detached_params_path = options_.emit_params;
    INGOT_RETURN_IF_ERROR(PreparePasses());
    compile_.threads =
        options_.threads > 0 ? options_.threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    std::vector<std::string_view> known{"all", "import"};
    const std::vector<transform::Pass> passes = driver::AllPasses();
    for (const transform::Pass& pass : passes) known.push_back(pass.name);
    for (const std::string& name : options_.print_after) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      return Status(StatusCode::kInvalidArgument,
                    "--print-after: there is no pass \"" + name + "\"" + DidYouMean(name, known));
    }
    observer_.log = [this](std::string_view note) { tool_.Note(note); };
    if (options_.verbose) observer_.detail = observer_.log;
    observer_.progress = [this](std::string_view step, int64_t done, int64_t total) {
      tool_.Progress(step, done, total);
    };
    observer_.after_pass = [this](std::string_view pass, const ir::IRModule& module) {
      if (options_.explain) last_module_ = module;
      return AfterPass(pass, module);
    };
    observer_.rewritten = [this](const transform::RewriteLog& rewrites) { rewrites_ = rewrites; };
    observer_.cached = [this](const kernels::CacheFigures& figures) { cached_ = figures; };
    observer_.time = [this](std::string_view stage, double seconds) { times_.emplace_back(stage, seconds); };
    return Status();
  }

  Status PreparePasses() {
    if (!options_.pipeline.empty() && !options_.passes.empty()) {
      return Status(StatusCode::kInvalidArgument, "--pipeline and --passes: choose one");
    }
    if (!options_.pipeline.empty()) {
      INGOT_ASSIGN_OR_RETURN(compile_.passes, transform::FindPipeline(options_.pipeline));
    }
    if (!options_.passes.empty()) {
      INGOT_ASSIGN_OR_RETURN(compile_.passes, transform::FindPasses(options_.passes));
    }
    INGOT_RETURN_IF_ERROR(transform::FindPasses(options_.disabled_passes).status().WithContext("--disable-pass"));
    compile_.pass_options.disabled_passes = options_.disabled_passes;
    compile_.pass_options.rewrites = {options_.strict_math, transform::SplitList(options_.fast_math)};
    INGOT_RETURN_IF_ERROR(transform::CheckPermissions(compile_.pass_options.rewrites).WithContext("--fast-math"));
    for (const std::string& assignment : options_.pass_options) {
      INGOT_RETURN_IF_ERROR(transform::SetPassOption(assignment, compile_.pass_options).WithContext("--pass-option"));
    }
    compile_.keep_prepare |= compile_.pass_options.keep_prepare;
    return Status();
  }

  // The same functions for the second kind of device.
  Result<vm::Program> CompileForGpu(const ir::IRModule& module) {
    driver::CompileOptions for_cpu = compile_;
    std::tie(compile_.target_text, compile_.target) = *gpu_;
    Result<vm::Program> program = Compile(module);
    compile_ = std::move(for_cpu);
    return program;
  }

  // Compiles the module. With --validate every step is checked as it runs, and notes say what was checked.
  Result<vm::Program> Compile(const ir::IRModule& module) {
    const char* variable = std::getenv("INGOT_VALIDATE");
    const bool is_asked = options_.validate || (variable != nullptr && std::string_view(variable) == "1");
    if (!is_asked) return driver::CompileModule(module, compile_, observer_);
    validate::ValidateOptions validate_options;
    validate_options.target = compile_.target;
    validate::ValidatePasses validation(std::move(validate_options));
    compile_.instruments.push_back(&validation);
    Result<vm::Program> program = driver::CompileModule(module, compile_, observer_);
    compile_.instruments.pop_back();
    if (program.ok()) INGOT_RETURN_IF_ERROR(validation.CheckProgram(*program, compile_.target));
    for (const std::string& note : validation.notes()) tool_.Note("validation: " + note);
    return program;
  }

  Status AfterPass(std::string_view pass, const ir::IRModule& module) {
    const auto& wanted = options_.print_after;
    const bool prints = std::find(wanted.begin(), wanted.end(), pass) != wanted.end() ||
                        std::find(wanted.begin(), wanted.end(), "all") != wanted.end();
    if (!prints && options_.dump_dir.empty()) return Status();
    script::ConstantStore constants;
    const std::string text = script::PrintModule(module, {}, &constants);
    if (prints) std::cerr << "# after " << pass << "\n" << text << "\n";
    if (options_.dump_dir.empty()) return Status();
    std::error_code error;
    std::filesystem::create_directories(options_.dump_dir, error);
    char number[8];
    std::snprintf(number, sizeof number, "%02d_", dumped_++);
    const std::string path = options_.dump_dir + "/" + number + std::string(pass) + ".py";
    INGOT_RETURN_IF_ERROR(WriteText(path, text, formats::FileCalls::System()));
    return constants.constants().empty() ? Status() : script::WriteSideFile(script::SideFilePath(path), constants);
  }

  // All kernels, or those that --kernel names, for the first variant of the target.
  Result<int> EmitKernels(ir::IRModule module) {
    const Target& target = compile_.target.variants.front();
    if (!options_.kernels.empty()) {
      INGOT_ASSIGN_OR_RETURN(module, kernels::SelectKernels(module, options_.kernels));
    }
    if (options_.emit == "tir") {
      INGOT_ASSIGN_OR_RETURN(ir::IRModule scheduled, kernels::ScheduleModule(module, target));
      return EmitModule(scheduled);
    }
    if (options_.emit == "ptx" && target.kind != Target::Kind::kCuda) {
      return Status(StatusCode::kInvalidArgument, "--emit=ptx is for targets such as cuda:sm_80");
    }
    std::string text;
    if (options_.emit == "schedule") {
      INGOT_ASSIGN_OR_RETURN(text, kernels::EmitSchedules(module, target));
    } else {
      const auto kind = options_.emit == "llvm" ? kernels::AssemblyKind::kLlvm : kernels::AssemblyKind::kAssembly;
      const kernels::KernelOptions kernel_options{compile_.opt_level, compile_.threads, nullptr};
      INGOT_ASSIGN_OR_RETURN(text, kernels::EmitAssembly(module, target, kind, kernel_options));
    }
    INGOT_RETURN_IF_ERROR(WriteText(options_.output, text, tool_.files()));
    return Report();
  }

  Result<int> EmitModule(const ir::IRModule& module) {
    script::ConstantStore constants;
    INGOT_RETURN_IF_ERROR(WriteText(options_.output, script::PrintModule(module, {}, &constants), tool_.files()));
    if (!constants.constants().empty() && !options_.output.empty() && options_.output != "-") {
      INGOT_RETURN_IF_ERROR(script::WriteSideFile(script::SideFilePath(options_.output), constants, tool_.files()));
    }
    return Report();
  }

  Status AddLabels(vm::Program& program) const {
    if (options_.labels.empty()) return Status();
    INGOT_ASSIGN_OR_RETURN(const SharedBytes text, formats::MapFile(options_.labels));
    std::string labels(reinterpret_cast<const char*>(text.data()), text.size());
    if (!IsUtf8(labels)) return Status(StatusCode::kBadInput, options_.labels + ": the labels are no UTF-8 text");
    program.metadata["labels"] = std::move(labels);
    return Status();
  }

  Status WriteProgram(const vm::Program& program, const vm::Program* for_gpu, driver::FileKind kind) const {
    driver::WriteOptions write;
    write.kind = kind;
    write.for_gpu = for_gpu;
    INGOT_ASSIGN_OR_RETURN(write.encoding, driver::ParseCompression(options_.compress));
    const bool is_for_cpu = compile_.target.kind == Target::Kind::kCpu;
    INGOT_ASSIGN_OR_RETURN(const TargetFamily host, ParseTarget("cpu"));  // whose launcher drives GPUs
    const std::string& triple = (is_for_cpu ? compile_.target : host).variants.front().triple;
    write.architecture = triple.substr(0, triple.find('-'));
    write.launcher = options_.launcher;
    write.calls = &tool_.files();
    write.secret_key = options_.sign;
    for (const std::string& path : options_.golden) {
      INGOT_ASSIGN_OR_RETURN(vm::GoldenCase golden, driver::MakeGoldenCase(program, options_.model, compile_, path,
                                                                           options_.golden_tolerance));
      write.golden_cases.push_back(std::move(golden));
    }
    return driver::WriteProgramAs(program, options_.output, write);
  }

  Result<int> Check() {
    INGOT_ASSIGN_OR_RETURN(const importer::SupportReport report, driver::CheckModel(options_.model, compile_));
    if (tool_.wants_json()) {
      Json unsupported = Json::Array();
      for (const auto& op : report.unsupported) {
        unsupported.push_back(
            {{"op", op.op_type}, {"node", op.node}, {"opset", op.opset}, {"inputs", op.inputs}, {"reason", op.reason}});
      }
      Json operators = Json::Object();
      for (const auto& op : report.operators) operators[op.op_type] = op.count;
      INGOT_RETURN_IF_ERROR(
          tool_.WriteJson(1, {{"opset", report.opset}, {"operators", operators}, {"unsupported", unsupported}}));
    } else {
      for (const auto& op : report.operators) std::cout << op.op_type << " x " << op.count << "\n";
      for (const auto& op : report.unsupported) std::cout << "unsupported: " << op.ToString() << "\n";
      if (report.unsupported.empty()) std::cout << "all operators are supported\n";
    }
    return report.unsupported.empty() ? int{kExitOk} : int{kExitUnsupportedModel};
  }

  Result<int> List() {
    if (options_.list_ops) {
      for (const op::OpRow* row : op::AllOps()) std::cout << row->name << "  " << row->summary << "\n";
      std::cout << "\nwords for element types\n" << importer::ElementTypeWords();
      std::cout << "\noperators of ONNX that are imported\noperator | versions | element types | limits\n";
      for (const importer::OpForms& forms : importer::AllOpForms()) {
        std::cout << forms.name << " | " << importer::TakenVersions(forms) << " | " << forms.types << " | "
                  << forms.limits << "\n";
      }
    }
    if (options_.list_passes) {
      for (const transform::Pass& pass : driver::AllPasses()) {
        std::cout << pass.name << " (-O" << pass.min_opt_level << ")  " << pass.summary << "\n";
      }
      std::cout << "\noptions of passes, for --pass-option\n";
      for (const transform::PassOptionRow& row : transform::PassOptionTable()) {
        const std::string value = transform::PassOptionText(row, {});
        std::cout << row.name << "=" << (value.empty() ? "..." : value) << "  " << row.summary << "\n";
      }
    }
    if (options_.list_pipelines) {
      for (const transform::PipelineRow& row : transform::Pipelines()) {
        std::cout << row.name << "  " << row.summary << "\n";
        for (const std::string& pass : row.passes) std::cout << "  " << pass << "\n";
      }
    }
    if (options_.list_rewrites) std::cout << transform::RewriteTableText();
    if (options_.list_targets) {
      for (const std::string& name : ListTargets()) std::cout << name << "\n";
    }
    return int{kExitOk};
  }

  Result<int> Report() {
    std::vector<kernels::KernelExplanation> explained;
    if (options_.explain) {
      for (const Target& target : compile_.target.variants) {
        INGOT_ASSIGN_OR_RETURN(std::vector<kernels::KernelExplanation> of_target,
                               kernels::ExplainKernels(last_module_, target));
        std::ranges::move(of_target, std::back_inserter(explained));
      }
      if (!tool_.wants_json()) std::cerr << rewrites_.Explain() << kernels::ExplanationText(explained);
    }
    if (options_.time_passes) {
      double total = 0;
      for (const auto& [stage, seconds] : times_) total += seconds;
      for (const auto& [stage, seconds] : times_) {
        std::fprintf(stderr, "%9.3f ms  %5.1f%%  %s\n", seconds * 1e3, total > 0 ? seconds / total * 100 : 0,
                     stage.c_str());
      }
      std::fprintf(stderr, "%9.3f ms  total\n", total * 1e3);
      if (cached_) std::cerr << CacheText(*cached_) << "\n";
    }
    if (tool_.wants_json()) {
      Json stages = Json::Array();
      for (const auto& [stage, seconds] : times_) stages.push_back({{"stage", stage}, {"seconds", seconds}});
      Json report = {{"model", options_.model}, {"output", options_.output}, {"stages", stages}};
      if (cached_) {
        report["cache"] = {{"hits", cached_->hits},
                           {"misses", cached_->misses},
                           {"damaged", cached_->damaged},
                           {"stored", cached_->stored},
                           {"evicted", cached_->evicted}};
      }
      if (options_.explain) {
        Json applied = Json::Array();
        for (const transform::RewriteLog::Applied& one : rewrites_.applied()) {
          const transform::Rewrite& rewrite = transform::GetRewrite(one.id);
          applied.push_back({{"rewrite", rewrite.name},
                             {"class", transform::ExactnessName(rewrite.exactness)},
                             {"operation", one.operation},
                             {"place", one.place}});
        }
        report["rewrites"] = std::move(applied);
        Json kernels = Json::Array();
        for (const kernels::KernelExplanation& kernel : explained) kernels.push_back(ExplanationJson(kernel));
        report["kernels"] = std::move(kernels);
      }
      INGOT_RETURN_IF_ERROR(tool_.WriteJson(1, std::move(report)));
    }
    return int{kExitOk};
  }

  Tool& tool_;
  const Options& options_;
  driver::CompileOptions compile_;
  std::optional<std::pair<std::string, TargetFamily>> gpu_;  // beside that of compile_, which is for the CPU
  driver::CompileObserver observer_;
  std::vector<std::pair<std::string, double>> times_;
  std::optional<kernels::CacheFigures> cached_;
  transform::RewriteLog rewrites_;
  ir::IRModule last_module_;  // after the last pass, for --explain
  int dumped_ = 0;
};

}  // namespace
}  // namespace ingot::apps

int main(int argc, char** argv) {
  using namespace ingot::apps;  // NOLINT: the tool's own names
  PrepareProcess("vm-compile");
  ingot::codegen::OnOutOfMemory(ExitOutOfMemory);
  Tool tool("vm-compile", "Compiles a model into one executable file.", kExamples);
  Options options;
  CommandLine& line = tool.command_line();
  line.Add("MODEL", options.model, "model.onnx, or module.py (TVMScript)");
  line.Add("-o,--output", options.output, "Where the result goes (text forms: default stdout)").Type("FILE");
  line.Add("--target", options.targets,
           "cpu[:native|:x86-64-v3,x86-64-v4|:aarch64|...] (--list-targets); or cuda:sm_80,sm_90; several make one "
           "file for all")
      .OneEach();
  line.Add("--input-shape", options.input_shapes, "NAME=DIM,DIM,...: fix or name an input's dimensions").OneEach();
  line.Add("--dim", options.dims, "NAME=VALUE or NAME=MIN..MAX: fix or bound a symbolic dimension").OneEach();
  line.Add("--state", options.states,
           "INPUT=OUTPUT: one state that the context keeps between calls; one that grows needs --dim NAME=MIN..MAX")
      .OneEach();
  line.Add("--params", options.params,
           "Bind parameters of a module, or inputs of an ONNX model, by name (.npz, .safetensors)")
      .Type("FILE");
  line.AddFlag("--keep-params-in-input", options.keep_params,
               "The weights of an ONNX model become inputs behind its own");
  line.Add("--emit-params", options.emit_params,
           "Write those weights by name (.npz, .safetensors); implies --keep-params-in-input")
      .Type("FILE");
  line.Add("-O", options.opt_level, "Optimisation level").Between(0, 3).ShowDefault();
  line.AddFlag("--keep-prepare", options.keep_prepare,
               "Keep the weights as they are in the file and pack them when it is loaded; they can be replaced there");
  line.Add("--external-weights", options.external_weights,
           "Keep the weights in this .safetensors, in or beneath OUT's folder; implies --keep-prepare")
      .Type("FILE");
  line.Add("--threads", options.threads, "Threads for compiling (default: all; the result is the same)");
  line.Add("--ptxas", options.ptxas,
           "Of targets cuda: keep kernels also as machine code, which NVIDIA's assembler (a path, or a name in PATH) "
           "makes, "
           "so that no driver compiles them when the file is loaded")
      .Type("PROGRAM");
  line.Add("--tuning-db", options.tuning_db,
           "Take the schedules that these records, which vm-tune wrote, say are faster for this model")
      .Type("FILE");
  line.Add("--cache", options.cache,
           "Keep compiled kernels in this folder, which is the user's alone, for the next compilation; the file is the "
           "same (default: $INGOT_CACHE, $XDG_CACHE_HOME/ingot or ~/.cache/ingot)")
      .Type("DIR");
  line.Add("--cache-size", options.cache_megabytes, "The folder's bound in MiB, beyond which old kernels go")
      .Between(1, 1 << 20)
      .ShowDefault();
  line.AddFlag("--no-cache", options.no_cache, "Compile every kernel anew (INGOT_CACHE=off means the same)");
  line.Add("--emit", options.emit, "What to write")
      .OneOf(
          {"executable", "program", "object", "shared", "relax", "tir", "schedule", "llvm", "asm", "ptx", "bytecode"})
      .ShowDefault();
  line.Add("--pipeline", options.pipeline, "Graph passes by the pipeline's name (default: default)").Type("NAME");
  line.Add("--passes", options.passes, "Graph passes in this order, in place of a pipeline")
      .Type("PASS,...")
      .SplitAt(',')
      .OneEach();
  line.Add("--disable-pass", options.disabled_passes, "Leave out this graph pass").Type("PASS").OneEach();
  line.Add("--pass-option", options.pass_options, "Configure a pass (--list-passes shows what there is)")
      .Type("PASS.OPTION=VALUE")
      .OneEach();
  line.Add("--kernel", options.kernels, "Show these kernels alone (with --emit=tir, schedule, llvm or asm)")
      .Type("NAME")
      .OneEach();
  line.Add("--print-after", options.print_after, "Print the module to stderr after this pass, or all")
      .Type("PASS")
      .OneEach();
  line.Add("--dump-dir", options.dump_dir, "Write the module after every pass into this folder").Type("DIR");
  line.AddFlag("--verbose", options.verbose, "Print also what passes left undone, and why");
  line.AddFlag("--validate", options.validate,
               "Evaluate the module before and after every pass on drawn inputs, and stop at the first that changes a "
               "result (the environment variable INGOT_VALIDATE=1 means the same)");
  line.AddFlag("--strict-math", options.strict_math,
               "Apply only rewrites that keep the bits of results (--list-rewrites: bitwise)");
  line.AddFlag("--fast-math{all}", options.fast_math,
               "Apply also rewrites that may overflow, lose signs of zeros, ... (--list-rewrites: by_permission); "
               "=GROUP,... for some");
  line.AddFlag("--explain", options.explain,
               "Print which rewrites were applied, and per kernel: schedule rules and what kept others away, layout, "
               "vectors, threads, predicted rate (of CPUs)");
  line.AddFlag("--time-passes", options.time_passes, "Print how long every stage took");
  line.AddFlag("--check", options.check, "Only report which operators are not supported");
  line.Add("--compress", options.compress, "Sections of the executable: none or zstd:LEVEL").ShowDefault();
  line.Add("--golden", options.golden,
           "Keep a call for --self-test: inputs by name, and outputs (without any: evaluated by reference)")
      .Type("FILE")
      .OneEach();
  line.Add("--golden-rtol", options.golden_tolerance.relative, "Relative tolerance of --golden").ShowDefault();
  line.Add("--golden-atol", options.golden_tolerance.absolute, "Absolute tolerance of --golden").ShowDefault();
  line.Add("--sign", options.sign, "Sign the file with this secret key (vm-inspect --make-key makes one)").Type("KEY");
  line.Add("--labels", options.labels, "Names of classes, one a line, to keep in the executable").Type("FILE");
  line.Add("--softmax", options.softmax, "Turn this output's scores into probabilities").Type("OUTPUT");
  line.Add("--launcher", options.launcher, "Of --emit=program: its front part (default: the one installed)")
      .Type("FILE");
  line.AddFlag("--list-ops", options.list_ops, "List the operators, and those of ONNX");
  line.AddFlag("--list-passes", options.list_passes, "List the passes, and their options");
  line.AddFlag("--list-pipelines", options.list_pipelines, "List the pipelines and their passes");
  line.AddFlag("--list-rewrites", options.list_rewrites, "List the rewrites: exactness class, what they do, contract");
  line.AddFlag("--list-targets", options.list_targets, "List the targets");
  return tool.Run(argc, argv, [&] { return Compilation(tool, options).Run(); });
}
