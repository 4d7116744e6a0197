// The default pipeline of LLVM's new pass manager with its vectorisers and loop unrolling off, and the shorter one of
// kernels for CPUs, as text for LLVM's parser of pipelines.
#include "compiler/codegen/optimizer.h"

#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Passes/OptimizationLevel.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Target/TargetMachine.h>

#include <span>
#include <string>

#include "runtime/check.h"

namespace ingot::codegen {
namespace {

#define INGOT_COMBINE "instcombine<no-verify-fixpoint>"
#define INGOT_SIMPLIFY_FLOW "simplifycfg<switch-range-to-icmp>"

// What the default pipeline of level 3 does to the functions of a kernel, in its order. It leaves out passes over calls,
// over global variables and for vectorisers, of which kernels have none, and repetitions that changed no instruction
// in the kernels of whole networks. Whoever changes the list compares the kernels' machine code before and after.
constexpr const char* kFirstPasses[] = {"sroa<modify-cfg>", "early-cse"};
// Between the two: "ipsccp".
constexpr const char* kKernelPasses[] = {
    INGOT_COMBINE,
    INGOT_SIMPLIFY_FLOW,
    "early-cse<memssa>",
    "jump-threading",
    "correlated-propagation",
    INGOT_COMBINE,
    "tailcallelim",  // marks calls of the runtime, which end a function
    "reassociate",
    "loop-mssa(loop-instsimplify,loop-simplifycfg,licm<no-allowspeculation>,loop-rotate<header-duplication>,"
    "licm<allowspeculation>,simple-loop-unswitch<nontrivial>)",
    INGOT_SIMPLIFY_FLOW,
    INGOT_COMBINE,
    "loop(loop-idiom,indvars,simple-loop-unswitch<nontrivial>,loop-deletion)",
    "gvn",
    "adce",  // removes vectors that loops carry and nothing uses
    INGOT_COMBINE,
    "jump-threading",
    "correlated-propagation",
    "memcpyopt",
    "dse",
    "loop-mssa(licm<allowspeculation>)",
    "simplifycfg<switch-range-to-icmp;hoist-common-insts;sink-common-insts>",
    INGOT_COMBINE,
    "loop(loop-rotate<header-duplication>,loop-deletion)",
    "simplifycfg<forward-switch-cond;switch-range-to-icmp;switch-to-lookup;no-keep-loops;hoist-common-insts;"
    "sink-common-insts>",
    "infer-alignment",
    "div-rem-pairs",
};

#undef INGOT_COMBINE
#undef INGOT_SIMPLIFY_FLOW

std::string OfFunctions(std::span<const char* const> passes) {
  std::string text;
  for (const char* pass : passes) text += (text.empty() ? "function<eager-inv>(" : ",") + std::string(pass);
  return text + ")";
}

// Analyses are made when a pass asks for them; they last as long as this object.
class Optimizer {
 public:
  explicit Optimizer(llvm::TargetMachine& machine) : builder_(&machine, Tuning()) {
    builder_.registerModuleAnalyses(modules_);
    builder_.registerCGSCCAnalyses(components_);
    builder_.registerFunctionAnalyses(functions_);
    builder_.registerLoopAnalyses(loops_);
    builder_.crossRegisterProxies(loops_, functions_, components_, modules_);
  }
  llvm::PassBuilder& builder() { return builder_; }
  void Run(llvm::ModulePassManager passes, llvm::Module& module) { passes.run(module, modules_); }

 private:
  static llvm::PipelineTuningOptions Tuning() {
    llvm::PipelineTuningOptions tuning;
    tuning.LoopVectorization = false;
    tuning.SLPVectorization = false;
    tuning.LoopInterleaving = false;
    tuning.LoopUnrolling = false;
    return tuning;
  }

  llvm::PassBuilder builder_;
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager components_;
  llvm::ModuleAnalysisManager modules_;
};

}  // namespace

void OptimizeModule(llvm::Module& module, llvm::TargetMachine& machine, int level) {
  if (level == 0) return;
  Optimizer optimizer(machine);
  const llvm::OptimizationLevel llvm_level = level == 1   ? llvm::OptimizationLevel::O1
                                             : level == 2 ? llvm::OptimizationLevel::O2
                                                          : llvm::OptimizationLevel::O3;
  optimizer.Run(optimizer.builder().buildPerModuleDefaultPipeline(llvm_level), module);
}

void OptimizeKernel(llvm::Module& module, llvm::TargetMachine& machine, int level) {
  if (level < 3) return OptimizeModule(module, machine, level);
  Optimizer optimizer(machine);
  llvm::ModulePassManager passes;
  llvm::Error error = optimizer.builder().parsePassPipeline(
      passes, OfFunctions(kFirstPasses) + ",ipsccp," + OfFunctions(kKernelPasses));
  INGOT_CHECK(!error, llvm::toString(std::move(error)).c_str());
  optimizer.Run(std::move(passes), module);
}

}  // namespace ingot::codegen
