/* The kernel ABI: the one interface between compiled kernels and the VM. It is part of the file format: structs only
 * grow at their end, and struct_size says how much of the context is there.
 *
 *   int32_t kernel(const IngotKernelContext* ctx, void* const* buffers, const int64_t* ints);
 *
 * buffers[i] is the first byte of the i-th tensor parameter, in the order of the kernel descriptor (inputs, outputs:
 * destination passing; the kernel allocates nothing). ints are the integer arguments: the function's free symbolic
 * variables by first occurrence, then scalars, floats as bit patterns of their own width. The kernel returns 0, or what
 * fail() or a callback returned. It does not unwind, uses at most 64 KiB of stack and leaves MXCSR as it was. C11 and
 * C++. */
#ifndef INGOT_RUNTIME_KERNEL_ABI_H_
#define INGOT_RUNTIME_KERNEL_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct IngotKernelContext IngotKernelContext;

/* One task of a parallel loop; task is in [0, num_tasks). Returns 0 or a failure code. */
typedef int32_t (*IngotTaskFn)(const IngotKernelContext* ctx, void* closure, int64_t task);

struct IngotKernelContext {
  uint32_t struct_size; /* bytes of this struct as the VM knows it */
  uint32_t num_threads; /* threads that parallel_for may use, >= 1; results must not depend on it */
  void* runtime;        /* the VM's own; kernels pass it through */
  /* Runs body(ctx, closure, t) for every t in [0, num_tasks), in any order, on any thread, and waits. Of several
   * failing tasks the lowest one's code is returned. A nested call runs serially. */
  int32_t (*parallel_for)(const IngotKernelContext* ctx, IngotTaskFn body, void* closure, int64_t num_tasks);
  void* workspace;        /* as large as the descriptor's workspace formula says, 64-byte aligned; else null */
  int64_t workspace_size; /* bytes */
  /* Records a failure (code > 0; a and b are shown in the message) and returns the code to return. */
  int32_t (*fail)(const IngotKernelContext* ctx, int32_t code, int64_t a, int64_t b);
  const volatile int32_t* cancel; /* non-zero: the caller wants to stop; long kernels look at it now and then */
  /* Calls the external function that the descriptor lists at this index; its tensors as raw pointers, its ints. */
  int32_t (*call_external)(const IngotKernelContext* ctx, int32_t index, void* const* buffers, const int64_t* ints);
};

typedef int32_t (*IngotKernelFn)(const IngotKernelContext* ctx, void* const* buffers, const int64_t* ints);

/* Failure codes that generated code itself uses with fail(). */
enum {
  INGOT_KERNEL_OK = 0,
  INGOT_KERNEL_ASSERT = 1,      /* an assertion of the function: a = its number in the descriptor's messages */
  INGOT_KERNEL_CANCELLED = 2,   /* the cancel flag was seen */
  INGOT_KERNEL_DIV_BY_ZERO = 3, /* an integer division by zero: a = the dividend */
  INGOT_KERNEL_UNBOUND = 4,     /* an external function that nobody bound: a = its index */
};

#ifdef __cplusplus
}
#endif
#endif
