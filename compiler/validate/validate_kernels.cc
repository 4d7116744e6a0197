// Schedule, tensor passes and kernel of one function, run on the buffers of a recorded call. Only if the lowered
// function differs (or each step is asked for) are the steps between run one by one.
#include "compiler/validate/validate_kernels.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/interp/interpreter.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/transform/tensor/lowered.h"
#include "compiler/transform/tensor/passes.h"
#include "compiler/validate/compare.h"
#include "runtime/cpu_features.h"
#include "runtime/kernel_context.h"
#include "vm/program/kernel_image.h"

namespace ingot::validate {

namespace {

std::vector<HostTensor> CopyAll(std::span<const HostTensor> tensors) {
  std::vector<HostTensor> copies;
  for (const HostTensor& tensor : tensors) copies.push_back(tensor.Copy());
  return copies;
}

Status Failed(std::string message) { return Status(StatusCode::kFailed, std::move(message)); }

// Whether a vectorized loop runs over a reduction: it then has one partial sum per lane, which rounds differently and
// is no race.
class VectorizedReductions : public ir::StmtVisitor {
 public:
  static bool Any(const ir::PrimFunc& function) {
    VectorizedReductions finder;
    finder.VisitStmt(function->body);
    return finder.found_;
  }

 protected:
  using ir::StmtVisitor::Visit;
  void Visit(const ir::ForNode& loop) override {
    const bool is_vectorized = loop.for_kind == ir::ForKind::kVectorized;
    if (is_vectorized) lanes_.push_back(loop.var);
    StmtVisitor::Visit(loop);
    if (is_vectorized) lanes_.pop_back();
  }
  void Visit(const ir::BlockRealizeNode& realize) override {
    for (size_t i = 0; i < realize.iter_values.size(); ++i) {
      if (realize.block->iter_vars[i]->type == ir::IterType::kSpatial) continue;
      for (const ir::PrimVar& var : ir::FreePrimVars(realize.iter_values[i])) {
        found_ |= std::ranges::any_of(lanes_, [&](const ir::PrimVar& lane) { return lane.same_as(var); });
      }
    }
    StmtVisitor::Visit(realize);
  }

 private:
  std::vector<ir::PrimVar> lanes_;
  bool found_ = false;
};

// Runs the function on the call's buffers, and compares them with those after the call.
Status CheckFunction(ir::PrimFunc function, const KernelCall& call, const Target& target, Exactness exactness,
                     int64_t max_steps, bool check_races) {
  // Only after the first tensor pass does a function write the result of a reduction over no elements.
  INGOT_ASSIGN_OR_RETURN(function, transform::SeparateInits(function, target));
  const std::vector<HostTensor> buffers = CopyAll(call.before);
  std::vector<interp::HostBuffer> host;
  for (size_t i = 0; i < buffers.size(); ++i) {
    host.push_back({buffers[i].dtype, buffers[i].dims, buffers[i].bytes(), i < call.num_inputs});
  }
  interp::InterpretOptions options;
  options.max_steps = max_steps;
  options.check_races = check_races;
  INGOT_RETURN_IF_ERROR(interp::Interpret(function, host, call.scalars, options));
  const std::string difference = Difference(call.after, buffers, exactness);
  return difference.empty() ? Status() : Failed(difference);
}

// One step from the tensor function to the lowered one, computed when it is asked for.
struct Step {
  std::string name;
  std::function<Result<ir::PrimFunc>()> function;
};

// The steps: each prefix of the schedule's trace, the whole schedule, then the tensor passes.
std::vector<Step> StepsOf(const ir::PrimFunc& function, const schedule::ScheduledFunction& scheduled,
                          const Target& target) {
  std::vector<Step> steps;
  const std::vector<std::string> names = scheduled.trace.PrimitiveNames();
  for (size_t i = 0; i < names.size(); ++i) {
    steps.push_back({"schedule primitive " + std::to_string(i) + ", " + names[i], [&, i]() -> Result<ir::PrimFunc> {
                       schedule::Trace prefix;
                       prefix.instructions.assign(scheduled.trace.instructions.begin(),
                                                  scheduled.trace.instructions.begin() + static_cast<ptrdiff_t>(i + 1));
                       INGOT_ASSIGN_OR_RETURN(const schedule::Schedule replayed, schedule::Replay(prefix, function));
                       return replayed.function();
                     }});
  }
  steps.push_back({"the default schedule", [&]() -> Result<ir::PrimFunc> { return scheduled.function; }});
  auto current = std::make_shared<ir::PrimFunc>(scheduled.function);
  for (const transform::TensorPassRow& row : transform::TensorPipeline()) {
    steps.push_back({std::string("tensor pass ") + row.name, [&target, &row, current]() -> Result<ir::PrimFunc> {
                       INGOT_ASSIGN_OR_RETURN(*current, row.run(*current, target));
                       return *current;
                     }});
  }
  return steps;
}

// rfactor, tensorize and vectorized reductions sum in another order.
Exactness ExactnessOf(const schedule::ScheduledFunction& scheduled) {
  const std::vector<std::string> names = scheduled.trace.PrimitiveNames();
  const bool reorders = std::ranges::find(names, "rfactor") != names.end() ||
                        std::ranges::find(names, "tensorize") != names.end() ||
                        VectorizedReductions::Any(scheduled.function);
  return reorders ? Exactness::kSums : Exactness::kBitwise;
}

}  // namespace

Status CheckLowering(const std::string& name, const KernelCall& call, const Target& target, const KernelCheck& check) {
  INGOT_ASSIGN_OR_RETURN(const schedule::ScheduledFunction scheduled,
                         schedule::ApplyDefaultSchedule(call.function, target));
  INGOT_ASSIGN_OR_RETURN(const ir::PrimFunc lowered, transform::LowerPrimFunc(scheduled.function, target));
  const Exactness exactness = ExactnessOf(scheduled);
  const Status last = CheckFunction(lowered, call, target, exactness, check.max_steps, /*check_races=*/true);
  if (last.code() == StatusCode::kDeadlineExceeded || (last.ok() && !check.each_step)) return last;
  const bool sums_in_lanes = VectorizedReductions::Any(scheduled.function);
  const std::string where = "kernel \"" + name + "\" for " + target.name;
  for (const Step& step : StepsOf(call.function, scheduled, target)) {
    INGOT_ASSIGN_OR_RETURN(const ir::PrimFunc function, step.function());
    Status status = CheckFunction(function, call, target, exactness, check.max_steps, !sums_in_lanes);
    if (status.code() == StatusCode::kDeadlineExceeded) return status;
    if (status.ok()) continue;
    return Failed(where + ": " + step.name + " changes the result: " + status.message() +
                  (last.ok() ? "; the lowered function is right again" : "; after lowering: " + last.message()));
  }
  return last.ok() ? Status() : Failed(where + ": lowering changes the result: " + last.message());
}

Status CheckCompiled(const vm::Program& program, const vm::Kernel& kernel, const KernelCall& call) {
  const CpuFeatures here = CpuFeatures::Detect();
  for (const vm::KernelVariant& variant : kernel.variants) {
    const vm::KernelImage& image = program.images.at(variant.image);
    const CpuFeatures required{variant.required_features};
    if (image.arch != vm::HostArchitecture() || !here.Covers(required)) continue;
    if (required.Has(CpuFeature::kAmxTile) && !RequestAmxPermission().ok()) continue;
    if (!kernel.externals.empty()) return Status(StatusCode::kUnsupportedModel, "it calls external functions");
    // Copies into memory with exactly the alignment that the descriptor promises.
    std::vector<std::unique_ptr<void, decltype(&std::free)>> memory;
    std::vector<void*> pointers;
    const auto allocate = [&memory](size_t size) {
      memory.emplace_back(std::aligned_alloc(64, (size + 127) / 64 * 64), &std::free);
      return memory.back().get();
    };
    for (const HostTensor& tensor : call.before) {
      pointers.push_back(allocate(tensor.size_bytes));
      std::memcpy(pointers.back(), tensor.bytes().data(), tensor.size_bytes);
    }
    std::vector<int64_t> ints;
    size_t next_scalar = 0;
    for (const ir::PrimVar& var : codegen::KernelIntArguments(call.function)) {
      std::optional<int64_t> value;
      size_t buffer = 0;
      for (const ir::PrimFuncParam& param : call.function->params) {
        if (!param.buffer) {
          if (param.var.same_as(var)) value = call.scalars.at(next_scalar++);
          continue;
        }
        const std::vector<ir::PrimExpr>& shape = param.buffer->shape;
        for (size_t axis = 0; axis < shape.size() && !value; ++axis) {
          if (shape[axis].get() == var.get()) value = call.before[buffer].dims[axis];
        }
        ++buffer;
      }
      if (!value) return Status(StatusCode::kUnsupportedModel, "nothing binds \"" + var->name + "\"");
      ints.push_back(*value);
    }
    INGOT_ASSIGN_OR_RETURN(const auto loaded, vm::LoadedImage::Load(image.bytes.bytes, std::nullopt));
    INGOT_ASSIGN_OR_RETURN(const int64_t workspace, kernel.workspace.Evaluate(ints));
    const std::atomic<int32_t> cancel{0};
    KernelContext context(nullptr, &cancel);
    context.set_workspace(allocate(static_cast<size_t>(workspace)), workspace);
    const auto entry = reinterpret_cast<IngotKernelFn>(loaded->Address(variant.offset));
    const std::string where = "compiled kernel \"" + kernel.name + "\" of " + image.name;
    if (context.Call(entry, pointers.data(), ints.data()) != 0) {
      return KernelFailureStatus(context.TakeFailure()).WithContext(where);
    }
    std::vector<HostTensor> after = CopyAll(call.before);
    for (size_t i = 0; i < after.size(); ++i) std::memcpy(after[i].bytes().data(), pointers[i], after[i].size_bytes);
    const std::string difference = Difference(call.after, after, Exactness::kSums);
    if (!difference.empty()) return Failed(where + " differs from the interpreter: " + difference);
  }
  return Status();
}

}  // namespace ingot::validate
