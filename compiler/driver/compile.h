// The driver: a model file in, an executable (or one of the text forms on the way) out. It strings the stages together:
// import or parse, canonical text, graph passes, destination passing and memory planning, schedules and kernels per CPU
// feature set, bytecode. vm-compile only parses options for it.
//
// The bytes of the executable depend on the module's canonical text, the constants and the options below alone: not on
// paths, threads, time or the machine (unless a target says "native").
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/importer/onnx.h"
#include "compiler/ir/module.h"
#include "compiler/lower/kernels.h"
#include "compiler/target/target.h"
#include "compiler/transform/pass.h"
#include "runtime/status.h"
#include "vm/program.h"

namespace ingot::driver {

struct CompileOptions {
  TargetFamily target;              // from ParseTarget
  std::string target_text = "cpu";  // as the user wrote it, for the metadata
  importer::ImportOptions import;   // --input-shape, --dim
  // --state: an input and an output of "main" that are one state of the context, by name.
  std::vector<std::pair<std::string, std::string>> states;
  std::string params_path;     // tensors bound to parameters of "main", or a model's inputs, by name
  std::string softmax_output;  // a result of "main" that becomes probabilities; empty: none
  int opt_level = 2;
  // What packs weights stays in the file and runs where the file is loaded, and the weights can be replaced there;
  // passes see noise in their place (driver/stand_in_weights.h).
  bool keep_prepare = false;
  int threads = 1;  // for schedules and code generation
  // The weights of an ONNX model become parameters of "main" behind its inputs (before params_path binds any of them).
  bool keep_params_in_input = false;
  std::string detached_params_path;  // where those weights are written, by name (.npz, .safetensors); empty: nowhere
  // The graph passes, in order; absent: the pipeline "default". Passes over buffers and code generation follow.
  std::optional<std::vector<transform::Pass>> passes;
  transform::PassOptions pass_options;  // of single passes; target, opt_level and keep_prepare are those above
  std::vector<transform::PassInstrument*> instruments;  // borrowed; what passes give is always verified
};

// "past_k=present_k", as --state says it.
Result<std::pair<std::string, std::string>> ParseState(const std::string& text);

// What a caller may watch. All may be empty.
struct CompileObserver {
  std::function<void(std::string_view note)> log, detail;  // what users should know; what explains the result
  std::function<void(std::string_view step, int64_t done, int64_t total)> progress;
  // After the import ("import") and every pass over the whole module; weights that may be replaced are the model's.
  std::function<Status(std::string_view pass, const ir::IRModule& module)> after_pass;
  // What the graph passes rewrote, once they are done.
  std::function<void(const transform::RewriteLog& rewrites)> rewritten;
  // Seconds of every stage and pass, in order.
  std::function<void(std::string_view stage, double seconds)> time;
};

// Reads model.onnx or module.py by its extension, binds --params, infers types, and brings the module into the form
// that its own text has (names, order): compiling the printed text gives the same bytes.
Result<ir::IRModule> LoadModel(const std::string& path, const CompileOptions& options, const CompileObserver& observer);

// What LoadModel does with a module once it is read: types inferred, A-normal form, the form of its own text, verified.
// For modules that a builder made.
Result<ir::IRModule> PrepareModule(ir::IRModule module);

// Which operators of an ONNX model are not supported; nothing is compiled.
Result<importer::SupportReport> CheckModel(const std::string& path, const CompileOptions& options);

// The graph passes: operators become tensor functions, fused; what --emit=tir shows once it is scheduled.
Result<ir::IRModule> OptimizeModule(ir::IRModule module, const CompileOptions& options,
                                    const CompileObserver& observer);

// Every pass over the whole module: the graph passes, then those that CompileModule runs over buffers.
std::vector<transform::Pass> AllPasses();

// The whole way from a loaded module to an executable in memory.
Result<vm::Program> CompileModule(const ir::IRModule& loaded, const CompileOptions& options,
                                  const CompileObserver& observer);

}  // namespace ingot::driver
