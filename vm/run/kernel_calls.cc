// Kernel calls that are prepared anew each time. This file is compiled for speed; the failures are marked cold.
#include "vm/run/kernel_calls.h"

#include <bit>

#include "vm/program/limits.h"
#include "vm/run/frame_words.h"

namespace ingot::vm {
namespace {

[[gnu::cold]] Status FailedCall(Text message) { return Status(StatusCode::kFailed, message); }

[[gnu::cold]] Status ExtentDiffers(const Kernel& kernel, const ExtentCheck& check, int64_t got, int64_t expected) {
  return Status(StatusCode::kBadInput, {"kernel \"", kernel.name, "\", parameter \"", kernel.params[check.param].name,
                                        "\": axis ", check.axis, " is ", got, ", expected ", expected});
}

[[gnu::cold]] Status NotAligned(const Kernel& kernel, const KernelParam& param) {
  return FailedCall({"kernel \"", kernel.name, "\", parameter \"", param.name, "\": the tensor is not aligned to ",
                     param.alignment, " bytes"});
}

// A scalar argument as the kernel takes it: floats as the bits of their own width.
int64_t ScalarBits(int64_t word, DataType dtype) {
  if (dtype == DataType::Float(64) || !dtype.is_floating()) return word;
  return static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(word))));
}

}  // namespace

KernelCalls::KernelCalls(const CallEnvironment& environment)
    : devices_(environment.devices),
      externals_(environment.externals),
      limits_(environment.limits),
      context_(environment.executable.instance()->pool(), environment.limits.flag()) {
  context_.set_external(&KernelCalls::CallRawExternal, this);
}

KernelCalls::~KernelCalls() {
  if (workspace_ != nullptr) devices_.pool(0).Free(workspace_, workspace_bytes_);
}

[[gnu::cold]] Status KernelCalls::ReserveWorkspace(int64_t bytes) {
  if (bytes <= workspace_bytes_) return Status();
  if (bytes > kMaxArenaBytes) return Status::OutOfMemory({"a workspace of ", bytes, " bytes"});
  // The old workspace is freed last: when there is no memory for the new one, calls that fit the old one still run.
  INGOT_ASSIGN_OR_RETURN(void* const fresh, devices_.pool(0).Allocate(bytes));
  if (workspace_ != nullptr) devices_.pool(0).Free(workspace_, workspace_bytes_);
  workspace_ = fresh;
  workspace_bytes_ = bytes;
  context_.set_workspace(workspace_, bytes);
  return Status();
}

Status KernelCalls::Prepare(const KernelCall& call, Activation& activation, const int64_t* frame) {
  const Kernel& kernel = *call.kernel;
  for (const PointerGather& gather : call.pointers)
    activation.arguments[gather.index] = PointerOf(frame[gather.frame_offset]);
  for (const IntGather& gather : call.ints)
    activation.ints[gather.index] = ScalarBits(frame[gather.frame_offset], gather.dtype);
  void* const* arguments = activation.arguments.data() + call.first_argument;
  const int64_t* ints = activation.ints.data() + call.first_int;
  const std::span<const int64_t> slots(ints, kernel.ints.size());
  for (const ExtentCheck& check : call.extents) {
    const KernelParam& param = kernel.params[check.param];
    INGOT_ASSIGN_OR_RETURN(const int64_t extent, param.extents[check.axis].Evaluate(slots));
    if (frame[check.frame_offset] == extent) continue;
    return ExtentDiffers(kernel, check, frame[check.frame_offset], extent);
  }
  for (const AlignmentCheck& check : call.alignments) {
    if (reinterpret_cast<uintptr_t>(arguments[check.param]) %
            static_cast<uintptr_t>(kernel.params[check.param].alignment) ==
        0)
      continue;
    return NotAligned(kernel, kernel.params[check.param]);
  }
  if (call.has_dynamic_workspace) {
    INGOT_ASSIGN_OR_RETURN(const int64_t bytes, kernel.workspace.Evaluate(slots));
    INGOT_RETURN_IF_ERROR(ReserveWorkspace(bytes));
  }
  return Status();
}

Status KernelCalls::Launch(const KernelCall& call, const Activation& activation) {
  const Kernel& kernel = *call.kernel;
  void* const* arguments = activation.arguments.data() + call.first_argument;
  const int64_t* ints = activation.ints.data() + call.first_int;
  if (DeviceCode* const code = devices_.code(); code != nullptr && call.is_launched) {
    Status status =
        code->Launch(kernel, {arguments, kernel.params.size()}, {ints, kernel.ints.size()}, *limits_.flag());
    return status.code() == StatusCode::kCancelled ? limits_.Failure() : status;
  }
  if (call.function == nullptr) {
    Status status = RunStubKernel(kernel, arguments, ints, {limits_.flag()});
    return status.code() == StatusCode::kCancelled ? limits_.Failure() : status;
  }
  running_ = kernel.externals.empty() ? nullptr : &kernel;
  const int32_t code = context_.Call(call.function, arguments, ints);
  running_ = nullptr;
  return code == 0 ? Status() : Failure(kernel);
}

Status KernelCalls::Failure(const Kernel& kernel) {
  const KernelFailure failure = context_.TakeFailure();
  if (failure.code == INGOT_KERNEL_CANCELLED && limits_.is_interrupted()) return limits_.Failure();
  return KernelFailed(kernel, failure);
}

int32_t KernelCalls::CallRawExternal(void* self, const IngotKernelContext* ctx, int32_t index, void* const* buffers,
                                     const int64_t* ints) {
  const auto* calls = static_cast<const KernelCalls*>(self);
  const Kernel* kernel = calls->running_;
  if (kernel == nullptr || index < 0 || static_cast<size_t>(index) >= kernel->externals.size()) {
    return ctx->fail(ctx, INGOT_KERNEL_ASSERT, -1, index);
  }
  try {
    return calls->externals_[kernel->externals[static_cast<size_t>(index)].value].call_raw(buffers, ints);
  } catch (...) {  // which kernels do not pass on
    return 1;
  }
}

}  // namespace ingot::vm
