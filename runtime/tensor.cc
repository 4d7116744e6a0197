// Storage and Tensor: allocation, sharing, views (reshape, slice, permute) and copies of strided elements. The checks
// that every view passes are in tensor_view.cc.
#include "runtime/tensor.h"

#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "runtime/host_allocator.h"

namespace ingot {
namespace {

Status Invalid(Text message) { return Status(StatusCode::kInvalidArgument, message); }

Status CheckByteCount(DataType dtype, std::span<const int64_t> dims, int64_t expected, size_t got) {
  if (static_cast<uint64_t>(expected) == got) return Status();
  return Invalid({ShapeToString(dtype, dims), ": expected ", expected, " bytes, got ", got});
}

size_t HostBytes(int64_t size_bytes) { return static_cast<size_t>(size_bytes > 0 ? size_bytes : 1); }

void FreeHost(void*, void* data, int64_t size_bytes) { FreeAligned(data, HostBytes(size_bytes), kTensorAlignment); }

}  // namespace

Status CopyElements(const TensorView& from, const TensorView& to) {
  if (!from.device.is_host_accessible() || !to.device.is_host_accessible()) {
    return Invalid(
        {"copy from ", from.device.ToString(), " to ", to.device.ToString(), ", of which one is not the host"});
  }
  if (from.dtype != to.dtype || from.rank != to.rank || from.dims != to.dims) {
    return Invalid({"copy from ", from.TypeToString(), " to ", to.TypeToString()});
  }
  if (from.num_elements == 0) return Status();
  if (from.is_compact && to.is_compact) {
    std::memcpy(to.data, from.data, static_cast<size_t>(from.size_bytes));
    return Status();
  }
  // An odometer over all axes but the trailing ones that are dense on both sides, which move as one run.
  const int64_t element_bytes = from.dtype.total_bits() / 8;
  int outer = from.rank;
  int64_t run = 1;
  while (outer > 0 && (from.dims[outer - 1] == 1 || (from.strides[outer - 1] == run && to.strides[outer - 1] == run))) {
    run *= from.dims[--outer];
  }
  std::array<int64_t, kMaxRank> index{};
  const auto* source = static_cast<const uint8_t*>(from.data);
  auto* target = static_cast<uint8_t*>(to.data);
  for (;;) {
    std::memcpy(target, source, static_cast<size_t>(run * element_bytes));
    int axis = outer - 1;
    for (; axis >= 0; --axis) {
      source += from.strides[axis] * element_bytes;
      target += to.strides[axis] * element_bytes;
      if (++index[axis] < from.dims[axis]) break;
      source -= from.dims[axis] * from.strides[axis] * element_bytes;
      target -= to.dims[axis] * to.strides[axis] * element_bytes;
      index[axis] = 0;
    }
    if (axis < 0) return Status();
  }
}

Result<Ref<Storage>> Storage::AllocateHost(int64_t size_bytes) {
  if (size_bytes < 0) return Invalid({"negative size ", size_bytes});
  void* data = AllocateAligned(HostBytes(size_bytes), kTensorAlignment);
  if (data == nullptr) {
    return Status::OutOfMemory({"out of memory: ", size_bytes, " bytes of host memory requested"});
  }
  return Wrap(data, size_bytes, DeviceId{}, FreeHost, nullptr);
}

Result<Ref<Storage>> Storage::Wrap(void* data, int64_t size_bytes, DeviceId device, Deleter deleter, void* context) {
  auto* storage = new (std::nothrow) Storage();
  if (storage == nullptr) {
    if (deleter != nullptr) deleter(context, data, size_bytes);
    return Status::OutOfMemory();
  }
  storage->data_ = data;
  storage->size_bytes_ = size_bytes;
  storage->device_ = device;
  storage->deleter_ = deleter;
  storage->context_ = context;
  return Ref<Storage>::Adopt(storage);
}

void Storage::Destroy(Storage* storage) {
  if (storage->deleter_ != nullptr) storage->deleter_(storage->context_, storage->data_, storage->size_bytes_);
  delete storage;
}

Result<Tensor> Tensor::FromView(const TensorView& view, Ref<Storage> storage) {
  auto* rep = new (std::nothrow) Rep();
  if (rep == nullptr) return Status::OutOfMemory();
  rep->view = view;
  rep->storage = std::move(storage);
  Tensor tensor;
  tensor.rep_ = Ref<Rep>::Adopt(rep);
  return tensor;
}

Result<Tensor> Tensor::Allocate(DataType dtype, std::span<const int64_t> dims) {
  INGOT_ASSIGN_OR_RETURN(const int64_t num_elements, CountElements(dims));
  INGOT_ASSIGN_OR_RETURN(const int64_t size_bytes, dtype.SizeBytes(num_elements));
  INGOT_ASSIGN_OR_RETURN(Ref<Storage> storage, Storage::AllocateHost(size_bytes));
  // Packed elements are written one by one into bytes that they share, the last of which they may not fill.
  if (dtype.total_bits() < 8 && size_bytes > 0) std::memset(storage->data(), 0, static_cast<size_t>(size_bytes));
  return InStorage(std::move(storage), dtype, dims);
}

Result<Tensor> Tensor::FromBytes(DataType dtype, std::span<const int64_t> dims, std::span<const uint8_t> bytes) {
  INGOT_ASSIGN_OR_RETURN(const int64_t num_elements, CountElements(dims));
  INGOT_ASSIGN_OR_RETURN(const int64_t size_bytes, dtype.SizeBytes(num_elements));
  INGOT_RETURN_IF_ERROR(CheckByteCount(dtype, dims, size_bytes, bytes.size()));
  INGOT_ASSIGN_OR_RETURN(Tensor tensor, Allocate(dtype, dims));
  if (size_bytes > 0) std::memcpy(tensor.data(), bytes.data(), bytes.size());
  return tensor;
}

Result<Tensor> Tensor::FromShared(DataType dtype, std::span<const int64_t> dims, SharedBytes bytes) {
  INGOT_ASSIGN_OR_RETURN(const int64_t num_elements, CountElements(dims));
  INGOT_ASSIGN_OR_RETURN(const int64_t size_bytes, dtype.SizeBytes(num_elements));
  INGOT_RETURN_IF_ERROR(CheckByteCount(dtype, dims, size_bytes, bytes.size()));
  auto* holder = new (std::nothrow) SharedBytes(std::move(bytes));
  if (holder == nullptr) return Status::OutOfMemory();
  void* data = const_cast<std::byte*>(holder->data());  // never written: the tensor is read-only
  const auto release = [](void* context, void*, int64_t) { delete static_cast<SharedBytes*>(context); };
  INGOT_ASSIGN_OR_RETURN(Ref<Storage> storage, Storage::Wrap(data, size_bytes, DeviceId{}, release, holder));
  INGOT_ASSIGN_OR_RETURN(TensorView view, TensorView::Make(data, dtype, dims, nullptr, DeviceId{}));
  view.is_read_only = true;
  return FromView(view, std::move(storage));
}

Result<Tensor> Tensor::InStorage(Ref<Storage> storage, DataType dtype, std::span<const int64_t> dims,
                                 int64_t byte_offset, const int64_t* strides) {
  if (byte_offset < 0 || byte_offset > storage->size_bytes()) {
    return Invalid({"byte offset ", byte_offset, " in a storage of ", storage->size_bytes(), " bytes"});
  }
  void* data = static_cast<uint8_t*>(storage->data()) + byte_offset;
  INGOT_ASSIGN_OR_RETURN(const TensorView view, TensorView::Make(data, dtype, dims, strides, storage->device()));
  if (view.SpanBytes() > storage->size_bytes() - byte_offset) {
    return Invalid({view.TypeToString(), " at byte ", byte_offset, " needs ", view.SpanBytes(),
                    " bytes, its storage has ", storage->size_bytes() - byte_offset});
  }
  return FromView(view, std::move(storage));
}

int64_t Tensor::byte_offset() const {
  if (!rep_->storage || rep_->view.data == nullptr) return 0;
  return static_cast<const uint8_t*>(rep_->view.data) - static_cast<const uint8_t*>(rep_->storage->data());
}

std::span<const uint8_t> Tensor::bytes() const {
  INGOT_CHECK(is_compact() && device().is_host_accessible());
  return {static_cast<const uint8_t*>(data()), static_cast<size_t>(size_bytes())};
}

std::span<uint8_t> Tensor::mutable_bytes() const {
  INGOT_CHECK(is_compact() && device().is_host_accessible() && !is_read_only());
  return {static_cast<uint8_t*>(data()), static_cast<size_t>(size_bytes())};
}

Result<Tensor> Tensor::Reshape(std::span<const int64_t> dims) const {
  if (!is_compact()) return Invalid({"a strided ", TypeToString(), " cannot be reshaped without a copy"});
  INGOT_ASSIGN_OR_RETURN(TensorView reshaped, TensorView::Make(data(), dtype(), dims, nullptr, device()));
  if (reshaped.num_elements != num_elements()) {
    return Invalid({"reshape of ", TypeToString(), " to ", reshaped.TypeToString()});
  }
  reshaped.is_read_only = is_read_only();
  return FromView(reshaped, storage());
}

Result<Tensor> Tensor::Slice(int axis, int64_t begin, int64_t end) const {
  if (axis < 0 || axis >= rank()) return Invalid({"axis ", axis, " of ", TypeToString()});
  if (begin < 0 || begin > end || end > dim(axis)) {
    return Invalid({"slice [", begin, ", ", end, ") of axis ", axis, " of ", TypeToString()});
  }
  if (dtype().total_bits() % 8 != 0) return Invalid({"a slice of the sub-byte type ", dtype().ToString()});
  std::array<int64_t, kMaxRank> sliced_dims = view().dims;
  sliced_dims[axis] = end - begin;
  // An empty slice keeps the base pointer: its begin may lie past the last element.
  const int64_t skipped = num_elements() == 0 || begin == end ? 0 : begin * view().strides[axis];
  void* first = data() == nullptr ? nullptr : static_cast<uint8_t*>(data()) + skipped * (dtype().total_bits() / 8);
  INGOT_ASSIGN_OR_RETURN(TensorView sliced, TensorView::Make(first, dtype(), {sliced_dims.data(), dims().size()},
                                                             view().strides.data(), device()));
  sliced.is_read_only = is_read_only();
  return FromView(sliced, storage());
}

Result<Tensor> Tensor::Permute(std::span<const int> axes) const {
  std::array<int64_t, kMaxRank> permuted_dims{};
  std::array<int64_t, kMaxRank> permuted_strides{};
  uint32_t seen = 0;
  bool is_permutation = axes.size() == dims().size();
  for (size_t i = 0; is_permutation && i < axes.size(); ++i) {
    is_permutation = axes[i] >= 0 && axes[i] < rank() && (seen >> axes[i] & 1) == 0;
    if (!is_permutation) break;
    seen |= 1u << axes[i];
    permuted_dims[i] = dim(axes[i]);
    permuted_strides[i] = view().strides[axes[i]];
  }
  if (!is_permutation) return Invalid({"no permutation of the axes of ", TypeToString()});
  INGOT_ASSIGN_OR_RETURN(TensorView permuted, TensorView::Make(data(), dtype(), {permuted_dims.data(), axes.size()},
                                                               permuted_strides.data(), device()));
  permuted.is_read_only = is_read_only();
  return FromView(permuted, storage());
}

Result<Tensor> Tensor::AsReadOnly() const {
  TensorView frozen = view();
  frozen.is_read_only = true;
  return FromView(frozen, storage());
}

Result<Tensor> Tensor::Compact() const {
  if (!device().is_host_accessible()) return Invalid({"a tensor on ", device().ToString(), " is not in host memory"});
  if (is_compact()) return *this;
  INGOT_ASSIGN_OR_RETURN(Tensor copy, Allocate(dtype(), dims()));
  INGOT_RETURN_IF_ERROR(CopyElements(view(), copy.view()));
  return copy;
}

}  // namespace ingot
