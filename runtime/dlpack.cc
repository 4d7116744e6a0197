// Checks of DLPack tensors and conversions in both directions. An imported tensor becomes a Storage whose deleter calls
// the managed tensor's; an exported one holds a Tensor, which its deleter drops.
#include "runtime/dlpack.h"

#include <limits>
#include <new>
#include <utility>

#include "runtime/tensor_view.h"

namespace ingot {
namespace {

// This file is compiled for speed; the refusals are marked cold.
[[gnu::cold]] Status Refuse(Text message) {
  return Status(StatusCode::kBadInput, {"DLPack tensor: ", std::move(message)});
}

// Names of DLPack's type codes past ours, for the refusal.
const char* LaterTypeName(uint8_t code) {
  switch (code) {
    case 15:
      return " (float6_e2m3fn)";
    case 16:
      return " (float6_e3m2fn)";
  }
  return "";
}

[[gnu::cold]] Status RefuseRank(int rank) { return Refuse({"rank ", rank, ", expected 0 to ", kMaxRank}); }

[[gnu::cold]] Status RefuseDataType(const ingot_dl_data_type& dtype) {
  return Refuse({"unsupported data type: code ", dtype.code, LaterTypeName(dtype.code), ", ", dtype.bits, " bits, ",
                 dtype.lanes, " lanes"});
}

[[gnu::cold]] Status RefuseOffset(uint64_t byte_offset) {
  return Refuse({"byte offset ", byte_offset, " lies beyond the address space"});
}

[[gnu::cold]] Status RefuseVersion(uint32_t major, uint32_t minor) {
  return Refuse({"version ", major, ".", minor, ", expected ", INGOT_DL_MAJOR_VERSION, ".x"});
}

[[gnu::cold]] Status RefuseReadOnly(const Tensor& tensor) {
  return Status(StatusCode::kInvalidArgument, {"read-only ", tensor.TypeToString(),
                                               " cannot be exported as a legacy DLPack tensor, which has no "
                                               "read-only flag; export a versioned one or a copy"});
}

template <typename Managed>
void CallDeleter(Managed* managed) {
  if (managed->deleter != nullptr) managed->deleter(managed);
}

template <typename Managed>
void DeleteManaged(void* managed, void*, int64_t) {
  CallDeleter(static_cast<Managed*>(managed));
}

template <typename Managed>
Result<Tensor> Import(Managed* managed, bool is_read_only) {
  Result<TensorView> view = ViewFromDLTensor(managed->dl_tensor);
  if (!view.ok()) {
    CallDeleter(managed);
    return std::move(view).status();
  }
  view->is_read_only = is_read_only;
  INGOT_ASSIGN_OR_RETURN(Ref<Storage> storage,
                         Storage::Wrap(view->data, view->SpanBytes(), view->device, DeleteManaged<Managed>, managed));
  return Tensor::FromView(*view, std::move(storage));
}

// The memory that an exported tensor points to; its deleter frees it.
template <typename Managed>
struct Exported {
  Managed managed{};
  Tensor tensor;
  std::array<int64_t, kMaxRank> shape{};
  std::array<int64_t, kMaxRank> strides{};
};

template <typename Managed>
Result<Managed*> Export(const Tensor& tensor) {
  auto* exported = new (std::nothrow) Exported<Managed>();
  if (exported == nullptr) return Status::OutOfMemory();
  const TensorView& view = tensor.view();
  exported->tensor = tensor;
  exported->shape = view.dims;
  exported->strides = view.strides;
  ingot_dl_tensor& out = exported->managed.dl_tensor;
  out.data = view.data;
  out.device = {static_cast<int32_t>(view.device.kind), view.device.index};
  out.ndim = view.rank;
  out.dtype = {static_cast<uint8_t>(view.dtype.code), view.dtype.bits, view.dtype.lanes};
  out.shape = exported->shape.data();
  out.strides = exported->strides.data();
  exported->managed.manager_ctx = exported;
  exported->managed.deleter = [](Managed* self) { delete static_cast<Exported<Managed>*>(self->manager_ctx); };
  return &exported->managed;
}

}  // namespace

Status AssignFromDLTensor(const ingot_dl_tensor& tensor, TensorView& view) {
  if (tensor.ndim < 0 || tensor.ndim > kMaxRank) return RefuseRank(tensor.ndim);
  if (tensor.ndim > 0 && tensor.shape == nullptr) return Refuse("no shape");
  const DataType dtype(static_cast<TypeCode>(tensor.dtype.code), tensor.dtype.bits, tensor.dtype.lanes);
  const auto address = reinterpret_cast<uintptr_t>(tensor.data);
  if (tensor.byte_offset > std::numeric_limits<uintptr_t>::max() - address) return RefuseOffset(tensor.byte_offset);
  void* data = tensor.data == nullptr ? nullptr : static_cast<uint8_t*>(tensor.data) + tensor.byte_offset;
  const DeviceId device{static_cast<DeviceKind>(tensor.device.device_type), tensor.device.device_id};
  const Status status = AssignView(view, data, dtype, {tensor.shape, static_cast<size_t>(tensor.ndim)},
                                   tensor.ndim > 0 ? tensor.strides : nullptr, device);
  if (status.ok()) return Status();
  return dtype.IsKnown() ? Refuse(status.message()) : RefuseDataType(tensor.dtype);
}

Result<TensorView> ViewFromDLTensor(const ingot_dl_tensor& tensor) {
  Result<TensorView> view{TensorView()};
  if (Status status = AssignFromDLTensor(tensor, *view); !status.ok()) view = std::move(status);
  return view;
}

Result<Tensor> BorrowDLTensor(const ingot_dl_tensor& tensor) {
  INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewFromDLTensor(tensor));
  return Tensor::FromView(view, Ref<Storage>());
}

Result<Tensor> ImportDLPack(ingot_dl_managed_tensor* managed) { return Import(managed, /*is_read_only=*/false); }

Result<Tensor> ImportDLPack(ingot_dl_managed_tensor_versioned* managed) {
  // Version, deleter and flags lie at the same place in every version; nothing else may be read before the check.
  Status refusal;
  if (managed->version.major != INGOT_DL_MAJOR_VERSION) {
    refusal = RefuseVersion(managed->version.major, managed->version.minor);
  } else if ((managed->flags & INGOT_DL_FLAG_SUBBYTE_PADDED) != 0 && managed->dl_tensor.dtype.bits < 8) {
    refusal = Refuse("sub-byte elements padded to bytes are not supported; packed ones are");
  }
  if (!refusal.ok()) {
    CallDeleter(managed);
    return refusal;
  }
  return Import(managed, (managed->flags & INGOT_DL_FLAG_READ_ONLY) != 0);
}

Result<ingot_dl_managed_tensor*> ExportDLPack(const Tensor& tensor) {
  if (tensor.is_read_only()) return RefuseReadOnly(tensor);
  return Export<ingot_dl_managed_tensor>(tensor);
}

Result<ingot_dl_managed_tensor_versioned*> ExportDLPackVersioned(const Tensor& tensor) {
  INGOT_ASSIGN_OR_RETURN(ingot_dl_managed_tensor_versioned * managed,
                         Export<ingot_dl_managed_tensor_versioned>(tensor));
  managed->version = {INGOT_DL_MAJOR_VERSION, INGOT_DL_MINOR_VERSION};
  managed->flags = tensor.is_read_only() ? INGOT_DL_FLAG_READ_ONLY : 0;
  return managed;
}

}  // namespace ingot
