// Tensors: dense n-dimensional arrays on a device. Three layers:
//   TensorView  a plain description: data pointer, dtype, dims, strides, device. Owns nothing, allocates nothing; what
//               kernels and the VM's warm path look at.
//   Storage     reference-counted memory: pointer, size, device and how to give it back.
//   Tensor      a reference-counted handle: a view and the storage that keeps its data alive. Copying shares; every
//               view of a tensor (reshaped, sliced, permuted) shares its storage.
// Every function that makes a view checks it: rank <= 8, dims >= 0, sizes that fit 64 bits, strides >= 0, known dtype
// and device. Strides count elements. No arithmetic on the elements happens here; copying and filling are for host
// memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "runtime/data_type.h"
#include "runtime/device_id.h"
#include "runtime/ref.h"
#include "runtime/shared_bytes.h"
#include "runtime/status.h"

namespace ingot {

inline constexpr int kMaxRank = 8;
// Alignment in bytes of all memory that Ingot allocates, and what kernels may assume unless a descriptor says less.
inline constexpr int64_t kTensorAlignment = 64;

// "float32[2, 3]".
std::string ShapeToString(DataType dtype, std::span<const int64_t> dims);
// The product of the dims. Refuses a rank above kMaxRank, negative dims, and dims whose non-zero ones multiply to more
// than 64 bits hold, even where another dim is zero: so the order of dims does not matter.
Result<int64_t> CountElements(std::span<const int64_t> dims);

struct TensorView {
  void* data = nullptr;  // of the first element; null only without elements
  DataType dtype;
  DeviceId device;
  int32_t rank = 0;
  bool is_compact = true;  // row-major without gaps; then num_elements elements lie in size_bytes bytes
  bool is_read_only = false;
  int64_t num_elements = 1;
  int64_t size_bytes = 0;                   // of the elements when packed (not the span of a strided view)
  std::array<int64_t, kMaxRank> dims{};     // [0, rank)
  std::array<int64_t, kMaxRank> strides{};  // [0, rank), in elements; filled for compact tensors too

  // The checked way to make one; a null strides pointer means compact, row-major. Messages name what was expected.
  static Result<TensorView> Make(void* data, DataType dtype, std::span<const int64_t> dims, const int64_t* strides,
                                 DeviceId device);

  std::span<const int64_t> shape() const { return {dims.data(), static_cast<size_t>(rank)}; }
  bool IsAligned(int64_t alignment) const { return reinterpret_cast<uintptr_t>(data) % alignment == 0; }
  // Bytes from data to the end of the last element; what a strided view may touch.
  int64_t SpanBytes() const;
  // "float32[2, 3]".
  std::string TypeToString() const { return ShapeToString(dtype, shape()); }
};

// Copies the elements of `from` in row-major order to `to`; both are host-accessible, have equal dtype and dims, and
// do not overlap. Sub-byte elements must be compact.
Status CopyElements(const TensorView& from, const TensorView& to);

class Storage : public RefCounted {
 public:
  // Gives data back; called exactly once, also when `Wrap` fails.
  using Deleter = void (*)(void* context, void* data, int64_t size_bytes);

  // Host memory, uninitialised, kTensorAlignment-aligned. An out-of-memory status tells the size.
  static Result<Ref<Storage>> AllocateHost(int64_t size_bytes);
  // Takes over (or, with a null deleter, borrows) memory.
  static Result<Ref<Storage>> Wrap(void* data, int64_t size_bytes, DeviceId device, Deleter deleter, void* context);
  static void Destroy(Storage* storage);

  void* data() const { return data_; }
  int64_t size_bytes() const { return size_bytes_; }
  DeviceId device() const { return device_; }

 private:
  Storage() = default;
  ~Storage() = default;
  void* data_ = nullptr;
  int64_t size_bytes_ = 0;
  DeviceId device_;
  Deleter deleter_ = nullptr;
  void* context_ = nullptr;
};

class Tensor {
 public:
  Tensor() = default;  // no tensor
  // Uninitialised host memory.
  static Result<Tensor> Allocate(DataType dtype, std::span<const int64_t> dims);
  // A copy of packed elements; the byte count must be exact.
  static Result<Tensor> FromBytes(DataType dtype, std::span<const int64_t> dims, std::span<const uint8_t> bytes);
  // A read-only tensor over packed elements that are shared, not copied; the byte count must be exact. They may lie at
  // any address: look at view().IsAligned() where it matters.
  static Result<Tensor> FromShared(DataType dtype, std::span<const int64_t> dims, SharedBytes bytes);
  // A tensor in a storage, from byte_offset on; refuses what does not fit into it. Null strides mean compact.
  static Result<Tensor> InStorage(Ref<Storage> storage, DataType dtype, std::span<const int64_t> dims,
                                  int64_t byte_offset = 0, const int64_t* strides = nullptr);
  // A checked view and what keeps its data alive (none for borrowed data).
  static Result<Tensor> FromView(const TensorView& view, Ref<Storage> storage);

  explicit operator bool() const { return static_cast<bool>(rep_); }
  const TensorView& view() const { return rep_->view; }
  const Ref<Storage>& storage() const { return rep_->storage; }
  void* data() const { return rep_->view.data; }
  DataType dtype() const { return rep_->view.dtype; }
  DeviceId device() const { return rep_->view.device; }
  int rank() const { return rep_->view.rank; }
  std::span<const int64_t> dims() const { return rep_->view.shape(); }
  int64_t dim(int axis) const { return rep_->view.dims[axis]; }
  std::span<const int64_t> strides() const { return {rep_->view.strides.data(), static_cast<size_t>(rank())}; }
  int64_t num_elements() const { return rep_->view.num_elements; }
  int64_t size_bytes() const { return rep_->view.size_bytes; }
  bool is_compact() const { return rep_->view.is_compact; }
  bool is_read_only() const { return rep_->view.is_read_only; }
  // Distance of the first element from the start of the storage; 0 for borrowed data.
  int64_t byte_offset() const;
  // The packed elements of a compact host tensor.
  std::span<const uint8_t> bytes() const;
  std::span<uint8_t> mutable_bytes() const;
  std::string TypeToString() const { return rep_->view.TypeToString(); }

  // Views, sharing the storage. Each refuses what it cannot express without a copy.
  Result<Tensor> Reshape(std::span<const int64_t> dims) const;       // compact; equal number of elements
  Result<Tensor> Slice(int axis, int64_t begin, int64_t end) const;  // [begin, end) of one axis
  Result<Tensor> Permute(std::span<const int> axes) const;           // axis i of the result is axes[i]
  Result<Tensor> AsReadOnly() const;
  // This tensor when compact, otherwise a compact copy in host memory.
  Result<Tensor> Compact() const;
  // Elements of host tensors, for tests and tools: T must be as wide as the dtype.
  template <typename T>
  std::span<const T> Elements() const {
    INGOT_CHECK(is_compact() && sizeof(T) * 8 == static_cast<size_t>(dtype().total_bits()));
    return {static_cast<const T*>(data()), static_cast<size_t>(num_elements())};
  }
  template <typename T>
  std::span<T> MutableElements() const {
    INGOT_CHECK(is_compact() && !is_read_only() && sizeof(T) * 8 == static_cast<size_t>(dtype().total_bits()));
    return {static_cast<T*>(data()), static_cast<size_t>(num_elements())};
  }

 private:
  struct Rep : RefCounted {
    TensorView view;
    Ref<Storage> storage;
    static void Destroy(Rep* rep) { delete rep; }
  };
  Ref<Rep> rep_;
};

}  // namespace ingot
