// The callbacks that a kernel finds in its IngotKernelContext: fail, parallel_for and call_external. Each task of a
// parallel loop gets a copy of the context, so that fail() records which task it was called in.
#include "runtime/kernel_context.h"

#include <cstddef>
#include <limits>
#include <mutex>
#include <string>

#include "runtime/thread_pool.h"

namespace ingot {

static_assert(sizeof(std::atomic<int32_t>) == sizeof(int32_t) && std::atomic<int32_t>::is_always_lock_free);

// One parallel loop on the caller's stack: what its tasks need, and the record of the lowest failing one.
struct KernelContext::Loop {
  const IngotKernelContext* parent;
  IngotTaskFn body;
  void* closure;
  std::mutex mutex;
  int64_t lowest_failed = std::numeric_limits<int64_t>::max();
  KernelFailure failure;
};

Status KernelFailureStatus(const KernelFailure& failure) {
  switch (failure.code) {
    case INGOT_KERNEL_CANCELLED:
      return Status(StatusCode::kCancelled, "cancelled");
    case INGOT_KERNEL_ASSERT:
      return Status(StatusCode::kFailed, {"assertion ", failure.a, " failed (", failure.b, ")"});
    case INGOT_KERNEL_DIV_BY_ZERO:
      return Status(StatusCode::kFailed, {"integer division of ", failure.a, " by zero"});
    case INGOT_KERNEL_UNBOUND:
      return Status(StatusCode::kFailed, {"external function ", failure.a, " is not bound"});
  }
  return Status(StatusCode::kFailed, {"code ", failure.code, " (", failure.a, ", ", failure.b, ")"});
}

KernelContext::KernelContext(ThreadPool* pool, const std::atomic<int32_t>* cancel) : pool_(pool) {
  IngotKernelContext& abi = root_.abi;
  abi.struct_size = sizeof(IngotKernelContext);
  abi.num_threads = static_cast<uint32_t>(pool == nullptr ? 1 : pool->num_threads());
  abi.runtime = this;
  abi.parallel_for = ParallelFor;
  abi.fail = Fail;
  abi.cancel = reinterpret_cast<const volatile int32_t*>(cancel);
  abi.call_external = CallExternal;
}

KernelContext::Scope* KernelContext::ScopeOf(const IngotKernelContext* ctx) {
  static_assert(offsetof(Scope, abi) == 0);
  return reinterpret_cast<Scope*>(const_cast<IngotKernelContext*>(ctx));
}

void KernelContext::NoteCode(Scope* scope, int32_t code) {
  if (scope->failure.code != code) scope->failure = {code, 0, 0};
}

int32_t KernelContext::Fail(const IngotKernelContext* ctx, int32_t code, int64_t a, int64_t b) {
  ScopeOf(ctx)->failure = {code, a, b};
  return code;
}

int32_t KernelContext::CallExternal(const IngotKernelContext* ctx, int32_t index, void* const* buffers,
                                    const int64_t* ints) {
  auto* self = static_cast<KernelContext*>(ctx->runtime);
  if (self->external_ == nullptr) return Fail(ctx, INGOT_KERNEL_UNBOUND, index, 0);
  return self->external_(self->external_user_data_, ctx, index, buffers, ints);
}

int32_t KernelContext::RunTask(void* loop_pointer, int64_t task) {
  auto* loop = static_cast<Loop*>(loop_pointer);
  Scope scope{*loop->parent, {}};
  const int32_t code = loop->body(&scope.abi, loop->closure, task);
  if (code != 0) {
    NoteCode(&scope, code);
    std::lock_guard lock(loop->mutex);
    if (task < loop->lowest_failed) {
      loop->lowest_failed = task;
      loop->failure = scope.failure;
    }
  }
  return code;
}

int32_t KernelContext::ParallelFor(const IngotKernelContext* ctx, IngotTaskFn body, void* closure, int64_t num_tasks) {
  ThreadPool* pool = static_cast<KernelContext*>(ctx->runtime)->pool_;
  if (pool == nullptr || num_tasks <= 1) {
    for (int64_t task = 0; task < num_tasks; ++task) {
      const int32_t code = body(ctx, closure, task);
      if (code != 0) {
        NoteCode(ScopeOf(ctx), code);
        return code;
      }
    }
    return 0;
  }
  Loop loop{ctx, body, closure, {}, std::numeric_limits<int64_t>::max(), {}};
  const int32_t code = pool->ParallelFor(num_tasks, RunTask, &loop);
  if (code != 0) ScopeOf(ctx)->failure = loop.failure;
  return code;
}

}  // namespace ingot
