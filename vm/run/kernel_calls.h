// KernelCalls: calls of kernels: arguments gathered from a frame, the checks that every call needs, the workspace,
// failures, and external functions that kernels call.
#pragma once

#include <cstdint>

#include "runtime/kernel_context.h"
#include "vm/link/linked_program.h"
#include "vm/run/activations.h"
#include "vm/run/call_environment.h"

namespace ingot::vm {

class KernelCalls {
 public:
  explicit KernelCalls(const CallEnvironment& environment);
  ~KernelCalls();
  KernelCalls(const KernelCalls&) = delete;
  KernelCalls& operator=(const KernelCalls&) = delete;

  // Makes the workspace at least this large.
  Status ReserveWorkspace(int64_t bytes);
  // For calls that need no preparation: the loop makes them itself.
  KernelContext& context() { return context_; }
  Status Run(const KernelCall& call, Activation& activation, const int64_t* frame) {
    INGOT_RETURN_IF_ERROR(Prepare(call, activation, frame));
    return Launch(call, activation);
  }
  // Gathers arguments from the frame, and makes the checks that each call needs.
  Status Prepare(const KernelCall& call, Activation& activation, const int64_t* frame);
  Status Launch(const KernelCall& call, const Activation& activation);
  // What the kernel's last call, which failed, reported.
  [[gnu::cold]] Status Failure(const Kernel& kernel);

 private:
  static int32_t CallRawExternal(void* self, const IngotKernelContext* ctx, int32_t index, void* const* buffers,
                                 const int64_t* ints);

  const Devices& devices_;
  const Externals& externals_;
  const CallLimits& limits_;
  KernelContext context_;
  void* workspace_ = nullptr;  // on device 0
  int64_t workspace_bytes_ = 0;
  const Kernel* running_ = nullptr;  // while it may call externals
};

}  // namespace ingot::vm
