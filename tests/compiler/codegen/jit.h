// Runs compiled kernels in the test process: builds lowered functions by hand, compiles them, maps the image (pages are
// written, then made executable, never both) and calls the entry.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "runtime/kernel_abi.h"
#include "runtime/kernel_context.h"

namespace ingot::codegen::testing {

// Kernels assume that tensors are 64-byte aligned.
template <typename T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <typename U>
  AlignedAllocator(const AlignedAllocator<U>&) {}  // NOLINT: implicit on purpose
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64))); }
  void deallocate(T* p, size_t) { ::operator delete(p, std::align_val_t(64)); }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};
template <typename T>
using Tensor = std::vector<T, AlignedAllocator<T>>;

Target TargetNamed(const std::string& name);  // "x86-64-v3", ...
bool HostRuns(const Target& target);

class LoadedImage {
 public:
  explicit LoadedImage(std::span<const std::byte> elf);
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;
  ~LoadedImage();
  IngotKernelFn Entry(uint64_t offset) const;

 private:
  void* base_;
  size_t size_;
};

// One compiled and loaded function; an error of compilation aborts.
class Kernel {
 public:
  explicit Kernel(const ir::PrimFunc& lowered, const Target& target = TargetNamed("x86-64-v3"),
                  const CodegenOptions& options = {});
  // Buffers in parameter order; the workspace is allocated as the formula says.
  int32_t Run(std::vector<void*> buffers, std::vector<int64_t> ints = {}, ThreadPool* pool = nullptr);

  KernelDescription description;
  CompiledKernel compiled;
  size_t image_bytes = 0;
  KernelFailure failure;           // of the last run
  std::atomic<int32_t> cancel{0};  // what the kernel sees
  KernelContext::ExternalFn external = nullptr;
  void* external_user_data = nullptr;

 private:
  std::unique_ptr<LoadedImage> image_;
  IngotKernelFn entry_ = nullptr;
};

KernelSource Source(std::string name, const ir::PrimFunc& lowered);

// A parameter list of buffers (and scalars before them), and the function around a body.
ir::PrimFuncParam BufferParam(const ir::Buffer& buffer);
ir::PrimFunc Function(std::vector<ir::Buffer> buffers, ir::Stmt body, std::vector<ir::PrimVar> scalars = {});
ir::Stmt Store(const ir::Buffer& buffer, ir::PrimExpr value, std::vector<ir::PrimExpr> indices);
ir::PrimExpr Load(const ir::Buffer& buffer, std::vector<ir::PrimExpr> indices);
ir::PrimExpr Ramp(ir::PrimExpr base, int lanes);  // base itself for one lane
ir::PrimExpr Broadcast(ir::PrimExpr value, int lanes);
// for (i = 0; i < extent; ++i) body(i)
ir::Stmt Loop(ir::PrimExpr extent, const std::function<ir::Stmt(ir::PrimExpr)>& body,
              ir::ForKind kind = ir::ForKind::kSerial);
// out[i] = f(in0[i], in1[i], ...) over n elements in vectors of lanes, with a scalar tail.
ir::PrimFunc Elementwise(const std::vector<DataType>& inputs, DataType output, int64_t n, int lanes,
                         const std::function<ir::PrimExpr(const std::vector<ir::PrimExpr>&)>& f);

// C[M, N] = A[M, K] B[K, N] with a register tile of rows x (columns vectors), as the default schedules write it; M and
// N are multiples of the tile.
ir::PrimFunc TiledGemm(int64_t m, int64_t n, int64_t k, int rows, int columns, int lanes, bool parallel);

}  // namespace ingot::codegen::testing
