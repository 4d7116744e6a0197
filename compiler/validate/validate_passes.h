// ValidatePasses: every pass over the whole module judged as it runs. An instrument that evaluates the module before
// and after each pass (evaluate.h) on drawn inputs (draw.h) and several values of its symbols, and stops at the first
// pass that changes a result, by name; CheckProgram does the same with schedules, tensor passes, compiled kernels and
// the finished program.
//
//     validate::ValidatePasses validation(options);
//     compile.instruments = {&validation};
//     INGOT_ASSIGN_OR_RETURN(program, driver::CompileModule(module, compile, observer));
//     INGOT_RETURN_IF_ERROR(validation.CheckProgram(program, compile.target));
//     for (const std::string& note : validation.notes()) ...
//
// What is not evaluated, because it is too large or the evaluator does not know it, becomes a note; nothing is left out
// silently.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/transform/pass.h"
#include "compiler/validate/compare.h"
#include "compiler/validate/draw.h"
#include "compiler/validate/evaluate.h"
#include "vm/program/program.h"

namespace ingot::validate {

struct ValidateOptions {
  TargetFamily target;                  // decides by its first variant which implementation of an operator runs
  uint64_t seed = 1;                    // of the drawn elements
  int64_t max_steps = 4 << 20;          // statements that one evaluation may interpret
  int64_t max_total_steps = 64 << 20;   // of all evaluations of one module, which limits the number of draws
  int64_t max_tensor_bytes = 64 << 20;  // of one tensor
  int64_t max_cached_bytes = 256 << 20;
  // validate every step of schedules and tensor passes; else only if a function's last step differs
  bool each_step = false;
};

class ValidatePasses : public transform::PassInstrument {
 public:
  explicit ValidatePasses(ValidateOptions options);

  Status BeforePass(const transform::Pass& pass, const ir::IRModule& module) override;
  void Rewritten(const transform::Pass& pass, transform::Exactness loosest) override;
  Status AfterPass(const transform::Pass& pass, const ir::IRModule& module, double seconds) override;

  // Call it after the last pass: judges each tensor function that the module calls (scheduled, lowered, compiled), and
  // the program.
  Status CheckProgram(const vm::Program& program, const TargetFamily& family);

  // Says in sentences what was compared and what was not.
  std::vector<std::string> notes() const;
  int num_trials() const { return static_cast<int>(trials_.size()); }
  int num_compared() const { return num_compared_; }

 private:
  struct Trial {
    std::string text;  // of its inputs, for messages
    DrawKind kind;
    std::vector<Value> inputs;
    std::vector<HostTensor> results;  // of the last module that was evaluated
    Exactness pending;                // of the passes since then
  };
  struct SeenCall {
    KernelCall call;
    DrawKind kind;  // of the inputs of "main"
  };
  // Draws inputs that fit the module.
  void Start(const ir::IRModule& module);
  Status Compare(const transform::Pass& pass, const ir::IRModule& module);
  Status RunProgram(const vm::Program& program);
  void Note(std::string note);

  ValidateOptions options_;
  Evaluator evaluator_;
  std::vector<Trial> trials_;
  std::vector<SeenCall> calls_;                 // of the last evaluated module that calls tensor functions
  std::vector<ir::IRModule::Entry> functions_;  // of that module
  std::vector<ir::IRModule::Entry> last_;       // of the module before the pass that runs
  transform::Exactness loosest_ = transform::Exactness::kBitwise;  // of what the pass that runs applied
  bool has_started_ = false;
  int num_compared_ = 0, num_kernels_ = 0, num_programs_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace ingot::validate
