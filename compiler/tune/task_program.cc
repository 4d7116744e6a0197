// By the stages of the compiler behind the graph passes.
#include "compiler/tune/task_program.h"

#include <algorithm>
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

namespace {

// The inputs in the order of the function's parameters, with its integer arguments by name.
Result<std::vector<MeasuredInput>> KernelInputs(const Task& task, const vm::Kernel& kernel, const Sizes& sizes) {
  std::vector<int64_t> values;
  for (const vm::KernelInt& argument : kernel.ints) values.push_back(sizes.values.at(argument.name));
  std::vector<MeasuredInput> inputs;
  auto tensor = kernel.params.begin();
  for (const ir::PrimFuncParam& param : task.function->params) {
    MeasuredInput input;
    if (!param.buffer) {
      input.spec = std::to_string(sizes.values.at(param.var->name));
      inputs.push_back(std::move(input));
      continue;
    }
    for (const DimCode& extent : tensor->extents) {
      INGOT_ASSIGN_OR_RETURN(const int64_t dim, extent.Evaluate(values));
      input.dims.push_back(dim);
    }
    input.spec = tensor->role == vm::ParamRole::kIn && tensor->dtype.is_floating() ? "rand" : "zeros";
    const auto place = static_cast<size_t>(tensor - kernel.params.begin());
    input.is_warm = tensor->role != vm::ParamRole::kOut && place < task.warm.size() && task.warm[place];
    inputs.push_back(std::move(input));
    ++tensor;
  }
  return inputs;
}

}  // namespace

Result<std::vector<MeasuredCase>> KernelCases(const Task& task, std::span<const Sizes> sizes) {
  const auto refuse = [](const std::string& why) { return Status(StatusCode::kUnsupportedModel, why); };
  INGOT_ASSIGN_OR_RETURN(const codegen::KernelDescription description,
                         codegen::DescribeKernel("kernel", task.function));
  const vm::Kernel& kernel = description.kernel;
  std::vector<Sizes> own(kernel.ints.empty() ? 1 : 0);
  if (!kernel.ints.empty() && sizes.empty()) return refuse("its sizes are symbols (--sizes)");
  for (const Sizes& given : sizes) {
    if (kernel.ints.empty()) break;
    Sizes used;
    for (const vm::KernelInt& argument : kernel.ints) {
      const auto found = given.values.find(argument.name);
      if (argument.dtype != DataType::Int(64)) return refuse("its argument " + argument.name + " is no size");
      if (found == given.values.end()) return refuse("there is no size for its symbol " + argument.name);
      used.values.insert(*found);
    }
    used.weight = given.weight;
    if (const auto same = std::ranges::find(own, used.values, &Sizes::values); same != own.end()) {
      same->weight += used.weight;
    } else {
      own.push_back(std::move(used));
    }
  }
  std::vector<MeasuredCase> cases;
  for (Sizes& used : own) {
    INGOT_ASSIGN_OR_RETURN(std::vector<MeasuredInput> inputs, KernelInputs(task, kernel, used));
    cases.push_back({std::move(used), std::move(inputs)});
  }
  return cases;
}

std::string ProgramHash(const MeasuredProgram& program) {
  char text[24];
  const std::span<const std::byte> bytes(program.executable.data(), program.executable.size());
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(formats::Hash(bytes)));
  return text;
}

}  // namespace ingot::tune
