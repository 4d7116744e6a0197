// Registers hold references to tensors and objects; values share them.
#include "vm/run/register_values.h"

#include <algorithm>
#include <bit>

#include "vm/program/limits.h"
#include "vm/run/frame_words.h"
#include "vm/verify/type_rules.h"

namespace ingot::vm {

void Drop(const Type& type, int64_t* slot) {
  if (type.is_tensor()) {
    if (type.storage != Storage::kOwned || slot[1] == 0) return;
    Ref<ingot::Storage>::Adopt(OwnerOf(slot));
    slot[1] = 0;
  } else if (IsCountedKind(type.kind) && slot[0] != 0) {
    Ref<Object>::Adopt(ObjectOf(slot[0]));
    slot[0] = 0;
  }
}

void CopyRegister(const Type& to, int64_t* to_slot, const Type& from, const int64_t* from_slot) {
  std::copy(from_slot, from_slot + RegisterWords(from), to_slot);
  if (to.is_tensor()) {
    if (to.storage != Storage::kOwned) {
      to_slot[1] = 0;  // borrowed: the register it comes from keeps it alive
    } else if (ingot::Storage* owner = OwnerOf(to_slot)) {
      owner->Retain();
    }
  } else if (IsCountedKind(to.kind) && to_slot[0] != 0) {
    ObjectOf(to_slot[0])->Retain();
  }
}

Result<TensorView> ViewOf(const Devices& devices, const Type& type, const int64_t* slot) {
  Result<TensorView> view = TensorView::Make(
      PointerOf(slot[0]), type.dtype, {slot + kTensorHeadWords, type.dims.size()}, nullptr, devices.id(type.device));
  if (view.ok()) view->is_read_only = !IsWritable(type.storage);
  return view;
}

Result<Tensor> CopyToOwned(const Devices& devices, const TensorView& view, uint8_t device, bool may_be_later) {
  if (!Devices::kHaveCode && !view.device.is_host_accessible()) {
    return Status(StatusCode::kBadInput, {"a tensor on ", view.device.ToString(), " would have to be copied"});
  }
  INGOT_ASSIGN_OR_RETURN(Ref<ingot::Storage> storage, devices.pool(device).AllocateStorage(view.size_bytes));
  INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::InStorage(std::move(storage), view.dtype, view.shape()));
  INGOT_RETURN_IF_ERROR(devices.CopyTensor(view, tensor.view(), may_be_later));
  return tensor;
}

namespace {

// The tensor itself where it has a storage and is writable, compact and aligned; otherwise an owned copy.
Result<Tensor> KeptTensor(const Devices& devices, const Tensor& tensor, uint8_t device) {
  const bool is_ours = tensor.storage() && !tensor.view().is_read_only;  // registers of storage owned are writable
  if (is_ours && tensor.is_compact() && tensor.view().IsAligned(kPlanAlignment)) return tensor;
  return CopyToOwned(devices, tensor.view(), device);
}

}  // namespace

Result<Value> Box(const Devices& devices, const Type& type, const int64_t* slot) {
  if (!type.is_tensor()) return BoxWords(type, slot);
  ingot::Storage* owner = OwnerOf(slot);
  if (owner == nullptr) {  // memory of the caller's output, which the value may outlive
    INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(devices, type, slot));
    INGOT_ASSIGN_OR_RETURN(Tensor copy, CopyToOwned(devices, view, type.device));
    return Value(std::move(copy));
  }
  const int64_t offset = static_cast<std::byte*>(PointerOf(slot[0])) - static_cast<std::byte*>(owner->data());
  INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::InStorage(Ref<ingot::Storage>::Share(owner), type.dtype,
                                                          {slot + kTensorHeadWords, type.dims.size()}, offset));
  return Value(std::move(tensor));
}

Value BoxWords(const Type& type, const int64_t* slot) {
  switch (type.kind) {
    case ValueKind::kInt:
      return Value(slot[0]);
    case ValueKind::kFloat:
      return Value(std::bit_cast<double>(slot[0]));
    case ValueKind::kBool:
      return Value(slot[0] != 0);
    case ValueKind::kDataType:
      return Value(UnpackDataType(slot[0]));
    case ValueKind::kShape:
      return Value(ShapeValue{{slot, slot + type.dims.size()}});
    case ValueKind::kString:
    case ValueKind::kTuple:
    case ValueKind::kOptional:
    case ValueKind::kClosure:
      return Value(Ref<Object>::Share(ObjectOf(slot[0])));
    case ValueKind::kObject: {
      const auto* box = dynamic_cast<const BoxObject*>(ObjectOf(slot[0]));
      return box != nullptr ? box->value : Value(Ref<Object>::Share(ObjectOf(slot[0])));
    }
    case ValueKind::kTensor:
      break;
  }
  INGOT_UNREACHABLE();
}

Status Unbox(const Devices& devices, const Type& type, int64_t* slot, const Value& value) {
  switch (type.kind) {
    case ValueKind::kInt:
      slot[0] = std::get<int64_t>(value);
      return Status();
    case ValueKind::kFloat:
      slot[0] = std::bit_cast<int64_t>(std::get<double>(value));
      return Status();
    case ValueKind::kBool:
      slot[0] = std::get<bool>(value) ? 1 : 0;
      return Status();
    case ValueKind::kDataType:
      slot[0] = PackDataType(std::get<DataType>(value));
      return Status();
    case ValueKind::kShape: {
      const std::vector<int64_t>& extents = std::get<ShapeValue>(value).extents;
      std::copy(extents.begin(), extents.end(), slot);
      return Status();
    }
    case ValueKind::kTensor: {
      INGOT_ASSIGN_OR_RETURN(const Tensor tensor, KeptTensor(devices, std::get<Tensor>(value), type.device));
      Ref<ingot::Storage> owner = tensor.storage();
      WriteTensor(slot, tensor.data(), owner.Detach(), tensor.dims());
      return Status();
    }
    case ValueKind::kString:
    case ValueKind::kTuple:
    case ValueKind::kOptional:
    case ValueKind::kClosure:
    case ValueKind::kObject: {
      Ref<Object> object;
      if (const auto* counted = std::get_if<Ref<Object>>(&value)) {
        object = *counted;
      } else if (const auto* tensor = std::get_if<Tensor>(&value)) {
        INGOT_ASSIGN_OR_RETURN(Tensor kept, KeptTensor(devices, *tensor, 0));
        object = Ref<Object>::Adopt(new BoxObject(&devices.pool(0), std::move(kept)));
      } else {
        object = Ref<Object>::Adopt(new BoxObject(&devices.pool(0), value));
      }
      slot[0] = WordOf(static_cast<const void*>(object.Detach()));
      return Status();
    }
  }
  INGOT_UNREACHABLE();
}

}  // namespace ingot::vm
