#include "runtime/kernel_context.h"

#include <doctest/doctest.h>

#include <memory>

#include "runtime/thread_pool.h"

namespace ingot {
namespace {

struct Fixture {
  std::unique_ptr<ThreadPool> pool = ThreadPool::Create(3).value();
  std::atomic<int32_t> cancel{0};
  KernelContext context{pool.get(), &cancel};
};

// ints: number of tasks, first failing task (every later one fails too).
int32_t FailingLoop(const IngotKernelContext* ctx, void* const*, const int64_t* ints) {
  return ctx->parallel_for(
      ctx,
      [](const IngotKernelContext* task_ctx, void* closure, int64_t task) -> int32_t {
        const int64_t first = static_cast<const int64_t*>(closure)[1];
        return task < first ? 0 : task_ctx->fail(task_ctx, 100 + static_cast<int32_t>(task), task, first);
      },
      const_cast<int64_t*>(ints), ints[0]);
}

TEST_CASE("the context says what it offers") {
  Fixture f;
  f.context.set_workspace(&f, 128);
  const IngotKernelContext* abi = f.context.abi();
  CHECK(abi->struct_size == sizeof(IngotKernelContext));
  CHECK(abi->num_threads == 3);
  CHECK(abi->workspace == &f);
  CHECK(abi->workspace_size == 128);
  CHECK(*abi->cancel == 0);
  f.cancel = 1;
  CHECK(*abi->cancel == 1);
}

TEST_CASE("the lowest failing task's record is kept, in parallel and serially") {
  Fixture f;
  KernelContext serial(nullptr, &f.cancel);
  for (KernelContext* context : {&f.context, &serial}) {
    for (int round = 0; round < 100; ++round) {
      const int64_t ints[] = {50, 9};
      REQUIRE(context->Call(FailingLoop, nullptr, ints) == 109);
      const KernelFailure failure = context->TakeFailure();
      CHECK(failure.code == 109);
      CHECK(failure.a == 9);
      CHECK(failure.b == 9);
    }
    const int64_t fine[] = {50, 50};
    CHECK(context->Call(FailingLoop, nullptr, fine) == 0);
    CHECK(context->TakeFailure().code == 0);
  }
}

TEST_CASE("a nested loop reports through the task that ran it") {
  Fixture f;
  const auto outer = [](const IngotKernelContext* ctx, void* const*, const int64_t*) -> int32_t {
    return ctx->parallel_for(
        ctx,
        [](const IngotKernelContext* task_ctx, void*, int64_t task) -> int32_t {
          const int64_t ints[] = {10, task >= 4 ? task : 10};
          return FailingLoop(task_ctx, nullptr, ints);
        },
        nullptr, 8);
  };
  REQUIRE(f.context.Call(outer, nullptr, nullptr) == 104);
  CHECK(f.context.TakeFailure().a == 4);
}

TEST_CASE("a code without fail() has no values, even after one with") {
  Fixture f;
  const int64_t ints[] = {1, 0};
  CHECK(f.context.Call(FailingLoop, nullptr, ints) == 100);
  const auto bare = [](const IngotKernelContext*, void* const*, const int64_t*) -> int32_t { return 55; };
  CHECK(f.context.Call(bare, nullptr, nullptr) == 55);
  const KernelFailure failure = f.context.TakeFailure();
  CHECK(failure.code == 55);
  CHECK(failure.a == 0);
  CHECK(KernelFailureStatus(failure).message() == "code 55 (0, 0)");
}

TEST_CASE("external functions get their index, and are refused while unbound") {
  Fixture f;
  const auto kernel = [](const IngotKernelContext* ctx, void* const* buffers, const int64_t* ints) -> int32_t {
    return ctx->call_external(ctx, 3, buffers, ints);
  };
  CHECK(f.context.Call(kernel, nullptr, nullptr) == INGOT_KERNEL_UNBOUND);
  CHECK(KernelFailureStatus(f.context.TakeFailure()).message() == "external function 3 is not bound");
  int seen = 0;
  f.context.set_external(
      [](void* user_data, const IngotKernelContext*, int32_t index, void* const*, const int64_t* ints) -> int32_t {
        *static_cast<int*>(user_data) = index;
        return static_cast<int32_t>(ints[0]);
      },
      &seen);
  const int64_t ints[] = {0};
  CHECK(f.context.Call(kernel, nullptr, ints) == 0);
  CHECK(seen == 3);
}

TEST_CASE("failures become statuses") {
  CHECK(KernelFailureStatus({INGOT_KERNEL_CANCELLED, 0, 0}).code() == StatusCode::kCancelled);
  CHECK(KernelFailureStatus({INGOT_KERNEL_ASSERT, 2, 7}).message() == "assertion 2 failed (7)");
  CHECK(KernelFailureStatus({INGOT_KERNEL_DIV_BY_ZERO, 7, 0}).message() == "integer division of 7 by zero");
}

}  // namespace
}  // namespace ingot
