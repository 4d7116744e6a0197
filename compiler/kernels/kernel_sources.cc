// One function runs the stages for one tensor function; threads take the functions in turn.
#include "compiler/kernels/kernel_sources.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "compiler/codegen/run_on_threads.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/transform/tensor/lowered.h"

namespace ingot::kernels {

Status ForEachOnThreads(size_t count, int num_threads, const std::function<Status(size_t)>& body) {
  std::vector<Status> statuses(count);
  std::atomic<size_t> next{0};
  codegen::RunOnThreads(std::min(count, static_cast<size_t>(std::max(num_threads, 1))), [&] {
    for (size_t i = next++; i < count; i = next++) statuses[i] = body(i);
  });
  for (Status& status : statuses) INGOT_RETURN_IF_ERROR(std::move(status));
  return Status();
}

namespace {

Result<codegen::KernelSource> SourceOf(const NamedPrimFunc& named, const Target& target,
                                       const schedule::Chosen& chosen) {
  // Before the schedule, so that the kernels of all target records have one interface.
  INGOT_ASSIGN_OR_RETURN(codegen::KernelDescription description, codegen::DescribeKernel(named.name, named.function));
  INGOT_ASSIGN_OR_RETURN(const schedule::ScheduledFunction scheduled,
                         schedule::ApplyDefaultSchedule(named.function, target, chosen));
  INGOT_ASSIGN_OR_RETURN(ir::PrimFunc lowered, transform::LowerPrimFunc(scheduled.function, target));
  return codegen::KernelSource{named.name, std::move(lowered), std::move(description)};
}

}  // namespace

codegen::CodegenOptions CodegenOptionsOf(const KernelOptions& options) {
  codegen::CodegenOptions result;
  result.opt_level = options.opt_level == 0 ? 0 : 3;
  result.num_threads = options.num_threads;
  return result;
}

std::vector<NamedPrimFunc> PrimFuncsOf(const ir::IRModule& module) {
  std::vector<NamedPrimFunc> result;
  for (const ir::IRModule::Entry& entry : module.functions()) {
    if (ir::PrimFunc prim = ir::AsRef<ir::PrimFuncNode>(entry.function))
      result.push_back({entry.var->name, std::move(prim)});
  }
  return result;
}

// The function with its buffers named by their places, so that models share kernels whatever their tensors are called.
ir::PrimFunc WithParamsByPlace(const ir::PrimFunc& function) {
  ir::PrimFuncNode copy = *function;
  ir::BufferMap renamed;
  for (size_t i = 0; i < copy.params.size(); ++i) {
    ir::Buffer& buffer = copy.params[i].buffer;
    if (!buffer) continue;
    ir::BufferNode other = *buffer;
    other.name = "param" + std::to_string(i);
    buffer = renamed[buffer] = ir::Make<ir::BufferNode>(std::move(other));
  }
  copy.body = ir::Substitute(copy.body, {}, renamed);
  return ir::Make<ir::PrimFuncNode>(std::move(copy));
}

Result<codegen::KernelSource> MakeSource(const NamedPrimFunc& function, const Target& target,
                                         const schedule::Chosen& chosen) {
  Result<codegen::KernelSource> source = SourceOf(function, target, chosen);
  if (source.ok()) return source;
  return std::move(source).status().WithContext("prim function \"" + function.name + "\", target " + target.name);
}

Result<std::vector<codegen::KernelSource>> MakeSources(const std::vector<NamedPrimFunc>& functions,
                                                       const Target& target, const KernelOptions& options) {
  std::vector<codegen::KernelSource> sources(functions.size());
  INGOT_RETURN_IF_ERROR(ForEachOnThreads(functions.size(), options.num_threads, [&](size_t i) -> Status {
    INGOT_ASSIGN_OR_RETURN(sources[i], MakeSource(functions[i], target));
    return Status();
  }));
  return sources;
}

}  // namespace ingot::kernels
