// KernelContext: the VM's side of kernel_abi.h. It owns the IngotKernelContext that kernels are called with, runs
// their parallel loops on the pool, and keeps what they reported through fail(). One per VM context; single-threaded
// like it (its loops are not).
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "runtime/kernel_abi.h"
#include "runtime/status.h"

namespace ingot {

class ThreadPool;

struct KernelFailure {
  int32_t code = 0;  // what the kernel returned; 0: it did not fail
  int64_t a = 0;     // as given to fail(); 0 when the kernel returned a code without calling it
  int64_t b = 0;
};

// The failure as a status: cancelled, or failed with the code and both values.
Status KernelFailureStatus(const KernelFailure& failure);

class KernelContext {
 public:
  // Calls an external function: `user_data` as given, the rest as in kernel_abi.h.
  using ExternalFn = int32_t (*)(void* user_data, const IngotKernelContext* ctx, int32_t index, void* const* buffers,
                                 const int64_t* ints);

  // A null pool runs loops serially. The flag is what kernels see as `cancel`.
  KernelContext(ThreadPool* pool, const std::atomic<int32_t>* cancel);
  KernelContext(const KernelContext&) = delete;
  KernelContext& operator=(const KernelContext&) = delete;

  void set_workspace(void* data, int64_t size_bytes) {
    root_.abi.workspace = data;
    root_.abi.workspace_size = size_bytes;
  }
  void set_external(ExternalFn function, void* user_data) {
    external_ = function;
    external_user_data_ = user_data;
  }
  const IngotKernelContext* abi() const { return &root_.abi; }

  // Calls the kernel; on a result other than 0, TakeFailure() says more.
  int32_t Call(IngotKernelFn kernel, void* const* buffers, const int64_t* ints) {
    const int32_t code = kernel(&root_.abi, buffers, ints);
    if (code != 0) [[unlikely]]
      NoteResult(code);
    return code;
  }
  // The last failure, once.
  KernelFailure TakeFailure() { return std::exchange(root_.failure, KernelFailure()); }

 private:
  // Every context that kernel code sees is the first member of one of these: the root, or a task's copy of it, so
  // that fail() can tell which task it was called in.
  struct Scope {
    IngotKernelContext abi;
    KernelFailure failure;
  };
  struct Loop;

  static Scope* ScopeOf(const IngotKernelContext* ctx);
  static int32_t ParallelFor(const IngotKernelContext* ctx, IngotTaskFn body, void* closure, int64_t num_tasks);
  static int32_t Fail(const IngotKernelContext* ctx, int32_t code, int64_t a, int64_t b);
  static int32_t CallExternal(const IngotKernelContext* ctx, int32_t index, void* const* buffers, const int64_t* ints);
  static int32_t RunTask(void* loop, int64_t task);
  // Records the code that a kernel or task returned, unless fail() has recorded a failure of this code already.
  static void NoteCode(Scope* scope, int32_t code);
  void NoteResult(int32_t code) { NoteCode(&root_, code); }

  Scope root_{};
  ThreadPool* pool_;
  ExternalFn external_ = nullptr;
  void* external_user_data_ = nullptr;
};

}  // namespace ingot
