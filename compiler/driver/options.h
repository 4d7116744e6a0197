// What a caller may say of a compilation and watch of it. vm-compile and the C API parse their own options into these.
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
#include "compiler/kernels/kernel_cache.h"
#include "compiler/target/target.h"
#include "compiler/transform/pass.h"
#include "compiler/tune/tuned_set.h"
#include "formats/file.h"
#include "runtime/status.h"

namespace ingot::driver {

struct CompileOptions {
  TargetFamily target;  // from ParseTarget
  // Kernels are for these CPUs alone, where graph passes decide for all of the target's; absent: for all of them.
  std::optional<TargetFamily> kernels_for;
  std::string target_text = "cpu";  // as the user wrote it, for the metadata
  importer::ImportOptions import;   // --input-shape, --dim
  // --state: pairs of an input and an output of "main" that are one state of the context, by name.
  std::vector<std::pair<std::string, std::string>> states;
  std::string params_path;     // tensors bound to parameters of "main", or a model's inputs, by name
  std::string softmax_output;  // a result of "main" that becomes probabilities; empty: none
  int opt_level = 2;
  // The functions that pack weights stay in the file and run when it is loaded, and the weights can be replaced there;
  // passes see noise in place of their elements (driver/stand_in_weights.h).
  bool keep_prepare = false;
  int threads = 1;  // for schedules and code generation
  // Compiled kernels are taken from there and kept there (kernels/kernel_cache.h); absent: nowhere. The executable is
  // the same. What is wrong with the cache is a note, never a failure.
  std::optional<kernels::KernelCacheOptions> cache;
  std::string tuning_db_path;  // records of tuning, whose best schedules are taken (tuned_schedules.h); empty: none
  std::string ptxas;           // NVIDIA's assembler: kernels for CUDA are kept as cubins, too; empty: as PTX alone
  const tune::TunedSet* tuned = nullptr;  // borrowed; these schedules are taken instead; null: those of the records
  // The weights of an ONNX model become parameters of "main" behind its inputs (before params_path binds any of them).
  bool keep_params_in_input = false;
  formats::FileCalls* calls = &formats::FileCalls::System();  // borrowed; write that file
  std::string detached_params_path;  // where those weights are written, by name (.npz, .safetensors); empty: nowhere
  // The graph passes, in order; absent: the pipeline "default". Passes over buffers and code generation follow.
  std::optional<std::vector<transform::Pass>> passes;
  transform::PassOptions pass_options;  // options of single passes; target, opt_level and keep_prepare are those above
  std::vector<transform::PassInstrument*> instruments;  // borrowed; the results of passes are always verified
};

// Callbacks for what a caller may watch. All may be empty.
struct CompileObserver {
  std::function<void(std::string_view note)> log, detail;  // notes for users; notes that explain the result
  std::function<void(std::string_view step, int64_t done, int64_t total)> progress;
  // Called after the import ("import") and after every pass over the whole module; replaceable weights are shown with
  // the model's elements.
  std::function<Status(std::string_view pass, const ir::IRModule& module)> after_pass;
  // Called with the rewrites of the graph passes after the last of them.
  std::function<void(const transform::RewriteLog& rewrites)> rewritten;
  // Called after the graph passes with what they chose and tuning may choose otherwise.
  std::function<void(const std::vector<transform::GraphChoice>& choices)> chosen;
  // Called once with what the cache did, where there is one.
  std::function<void(const kernels::CacheFigures& figures)> cached;
  // Called with the seconds of every stage and pass, in order.
  std::function<void(std::string_view stage, double seconds)> time;
};

}  // namespace ingot::driver
