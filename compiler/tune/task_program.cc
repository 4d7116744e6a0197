// By the stages of the compiler behind the graph passes.
#include "compiler/tune/task_program.h"

#include <cstdio>
#include <utility>

#include "compiler/kernels/kernel_set.h"
#include "compiler/lower/bytecode.h"
#include "formats/hash.h"
#include "vm/program/program_codec.h"

namespace ingot::tune {

Result<MeasuredProgram> KernelProgram(const Task& task, const Target& target, int opt_level,
                                      const schedule::Chosen& chosen) {
  ir::PrimFunc function = task.function;
  if (task.apply) {  // scheduled here, since the compiler does not know how
    INGOT_ASSIGN_OR_RETURN(schedule::ScheduledFunction scheduled, task.apply(target, chosen));
    function = std::move(scheduled.function);
  }
  ir::PrimFuncNode exported = *function;
  exported.is_private = false;
  ir::IRModule module;
  module.Add("kernel", ir::Make<ir::PrimFuncNode>(std::move(exported)));
  kernels::KernelOptions options{opt_level, 1, nullptr, nullptr};
  options.chosen = [&](const ir::PrimFunc&, const Target&) -> Result<schedule::Chosen> {
    return task.apply ? schedule::Chosen() : chosen;
  };
  const TargetFamily family{target.kind, {target}, {}};
  INGOT_ASSIGN_OR_RETURN(kernels::KernelSet set, kernels::CompileKernelSet(module, family, options));
  INGOT_ASSIGN_OR_RETURN(vm::Program program, lower::LowerToBytecode(module, std::move(set.kernels)));
  program.images = std::move(set.images);
  INGOT_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, vm::EncodeProgram(program));
  return MeasuredProgram{SharedBytes::Own(std::move(bytes)), "kernel"};
}

Result<std::vector<MeasuredInput>> KernelInputs(const Task& task) {
  INGOT_ASSIGN_OR_RETURN(const codegen::KernelDescription description,
                         codegen::DescribeKernel("kernel", task.function));
  std::vector<MeasuredInput> inputs;
  for (const vm::KernelParam& param : description.kernel.params) {
    MeasuredInput input;
    for (const DimCode& extent : param.extents) {
      INGOT_ASSIGN_OR_RETURN(const int64_t dim, extent.Evaluate({}));
      input.dims.push_back(dim);
    }
    input.spec = param.role == vm::ParamRole::kIn && param.dtype.is_floating() ? "rand" : "zeros";
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::string ProgramHash(const MeasuredProgram& program) {
  char text[24];
  const std::span<const std::byte> bytes(program.executable.data(), program.executable.size());
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(formats::Hash(bytes)));
  return text;
}

}  // namespace ingot::tune
