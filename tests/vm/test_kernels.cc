#include "tests/vm/test_kernels.h"

#include <bit>
#include <cstdint>

namespace ingot::test {
namespace {

int32_t AddN(const IngotKernelContext*, void* const* buffers, const int64_t* ints) {
  const auto* a = static_cast<const float*>(buffers[0]);
  const auto* b = static_cast<const float*>(buffers[1]);
  auto* c = static_cast<float*>(buffers[2]);
  for (int64_t i = 0; i < ints[0]; ++i) c[i] = a[i] + b[i];
  return 0;
}

int32_t Add16(const IngotKernelContext* ctx, void* const* buffers, const int64_t*) {
  const int64_t n = 16;
  return AddN(ctx, buffers, &n);
}

int32_t ScaleN(const IngotKernelContext*, void* const* buffers, const int64_t* ints) {
  const auto* a = static_cast<const float*>(buffers[0]);
  auto* b = static_cast<float*>(buffers[1]);
  const float scale = std::bit_cast<float>(static_cast<uint32_t>(ints[1]));
  for (int64_t i = 0; i < ints[0]; ++i) b[i] = a[i] * scale;
  return 0;
}

int32_t FailAssert(const IngotKernelContext* ctx, void* const*, const int64_t*) {
  return ctx->fail(ctx, INGOT_KERNEL_ASSERT, 0, 0);
}

// One task a row; a row's elements are added in order.
int32_t RowSums(const IngotKernelContext* ctx, void* const* buffers, const int64_t* ints) {
  struct Loop {
    const float* a;
    float* b;
    int64_t columns;
  } loop{static_cast<const float*>(buffers[0]), static_cast<float*>(buffers[1]), ints[1]};
  const auto row = [](const IngotKernelContext*, void* closure, int64_t task) -> int32_t {
    const Loop& l = *static_cast<const Loop*>(closure);
    float sum = 0;
    for (int64_t i = 0; i < l.columns; ++i) sum += l.a[task * l.columns + i];
    l.b[task] = sum;
    return 0;
  };
  return ctx->parallel_for(ctx, row, &loop, ints[0]);
}

int32_t FailTask(const IngotKernelContext* ctx, void* const*, const int64_t*) {
  const auto task = [](const IngotKernelContext* inner, void*, int64_t t) -> int32_t {
    return t < 3 ? 0 : inner->fail(inner, 77, t, 0);
  };
  return ctx->parallel_for(ctx, task, nullptr, 8);
}

int32_t Spin(const IngotKernelContext* ctx, void* const*, const int64_t*) {
  while (__atomic_load_n(ctx->cancel, __ATOMIC_RELAXED) == 0) {
  }
  return ctx->fail(ctx, INGOT_KERNEL_CANCELLED, 0, 0);
}

}  // namespace

IngotKernelFn FindTestKernel(const std::string& name) {
  struct Row {
    const char* name;
    IngotKernelFn function;
  };
  constexpr Row kRows[] = {
      {"add16", Add16},        {"add_n", AddN}, {"scale_n", ScaleN}, {"row_sums", RowSums}, {"fail_assert", FailAssert},
      {"fail_task", FailTask}, {"spin", Spin},
  };
  for (const Row& row : kRows) {
    if (name == row.name) return row.function;
  }
  return nullptr;
}

}  // namespace ingot::test
