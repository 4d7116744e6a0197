// Conversion between values and registers: arguments from outside, results, and boxing. A part of vm/run/interpreter.h; the
// warm path, for tensors alone, is in vm/run/warm_call.cc.
#include <algorithm>
#include <bit>
#include <cstring>

#include "vm/program/limits.h"
#include "vm/run/call_failures.h"
#include "vm/run/frame_words.h"
#include "vm/run/interpreter.h"
#include "vm/verify/type_rules.h"

namespace ingot::vm {

Result<int64_t> EvaluateDims(std::span<const DimCode> dims, std::span<const int64_t> words, DataType dtype,
                             int64_t* out) {
  for (size_t i = 0; i < dims.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(out[i], dims[i].Evaluate(words));
  }
  INGOT_ASSIGN_OR_RETURN(const int64_t count, CountElements({out, dims.size()}));
  return dtype.SizeBytes(count);
}

Status Interpreter::ParameterMismatch(const Function& function, size_t parameter, const std::string& got) const {
  const NamedType& param = function.signature.params[parameter];
  Type shown = param.type;
  shown.storage = Storage::kOwned;  // which is not printed
  return Status(StatusCode::kBadInput, {"function \"", function.name, "\", parameter \"", param.name, "\": expected ",
                                        shown.ToString(function.signature.symbol_names()), ", got ", got});
}

Status Interpreter::DimMismatch(const LinkedFunction& linked, int64_t* frame, size_t parameter, size_t axis,
                                int64_t extent, int64_t expected) const {
  const Function& function = *linked.function;
  const DimRule& rule = linked.parameters[parameter].dims[axis];
  if (rule.kind == DimRule::Kind::kBind) {
    return ParameterOutsideOfRange(function, function.signature.symbols[static_cast<size_t>(rule.value)], parameter,
                                   extent);
  }
  const Type& type = function.signature.params[parameter].type;
  const std::span<const int64_t> extents(ExtentsOf(linked, frame, parameter), type.dims.size());
  std::string got = ShapeToString(type.dtype, extents);
  if (type.kind == ValueKind::kShape) got = DescribeValue(ShapeValue{{extents.begin(), extents.end()}});
  if (rule.kind == DimRule::Kind::kCompare) {
    StrAppend(got, {" (axis ", axis, " should be ", expected, ")"});
  }
  return ParameterMismatch(function, parameter, got);
}

// Copies an argument that fits its parameter but is strided or not aligned; every other mismatch is a failure.
Status Interpreter::StageCopy(const LinkedFunction& linked, size_t parameter, const TensorView& view, bool is_reachable,
                              int64_t* slot) {
  const NamedType& param = linked.function->signature.params[parameter];
  const Type& type = param.type;
  const bool is_written = type.storage == Storage::kBorrowedMut;
  std::string got;
  if (view.dtype != type.dtype || view.rank != type.rank()) {
    got = view.TypeToString();
  } else if (!is_reachable) {
    got = StrCat({view.TypeToString(), " on ", view.device.ToString()});
  } else if (is_written && view.is_read_only) {
    got = "a read-only tensor";
  }
  if (!got.empty()) return ParameterMismatch(*linked.function, parameter, got);
  Result<Tensor> copy = CopyToOwned(view, type.device);
  if (!copy.ok()) {
    return std::move(copy).status().WithContext(
        {"function \"", linked.function->name, "\", a compact copy of parameter \"", param.name, "\""});
  }
  Tensor staged = *std::move(copy);
  WriteTensor(slot, staged.data(), nullptr, view.shape());
  if (is_written) write_backs_.push_back({staged.view(), view});
  context_.staging_.push_back(std::move(staged));
  return Status();
}

Status Interpreter::StageResult(const TensorView& view, const Type& type, const TensorView& output) {
  INGOT_ASSIGN_OR_RETURN(Tensor staged, CopyToOwned(view, type.device));
  copies_.push_back({staged.view(), output});
  context_.staging_.push_back(std::move(staged));
  return Status();
}

// ---- arguments from outside

// Checks tuples and optionals against their types, with the dims of their elements, now that the symbols are bound.
Status Interpreter::CheckObjects(const LinkedFunction& linked, const int64_t* frame) const {
  const Signature& signature = linked.function->signature;
  const size_t num_symbols = signature.symbols.size();
  for (size_t p = 0; p < signature.params.size(); ++p) {
    const Type& type = signature.params[p].type;
    if (type.kind != ValueKind::kTuple && type.kind != ValueKind::kOptional) continue;
    const Value value = Ref<Object>::Share(ObjectOf(frame[linked.frame.offsets[num_symbols + p]]));
    if (!HasType(value, type, {frame, num_symbols}, context_.device_ids_))
      return ParameterMismatch(*linked.function, p, DescribeValue(value));
  }
  return Status();
}

// Refuses a written parameter that overlaps another one: native code relies on it.
Status Interpreter::CheckWrittenParameters(const LinkedFunction& linked, const int64_t* frame) const {
  const Function& function = *linked.function;
  const std::vector<NamedType>& params = function.signature.params;
  const auto view_of = [&](size_t i) {
    return ViewOf(params[i].type, frame + linked.frame.offsets[function.signature.symbols.size() + i]);
  };
  for (size_t i = 0; i < params.size(); ++i) {
    if (!params[i].type.is_tensor() || params[i].type.storage != Storage::kBorrowedMut) continue;
    INGOT_ASSIGN_OR_RETURN(const TensorView written, view_of(i));
    for (size_t k = 0; k < params.size(); ++k) {
      if (k == i || !params[k].type.is_tensor()) continue;
      INGOT_ASSIGN_OR_RETURN(const TensorView other, view_of(k));
      if (Overlap(written, other))
        return ParameterMismatch(function, i, StrCat({"a tensor that overlaps parameter \"", params[k].name, "\""}));
    }
  }
  return Status();
}

Status Interpreter::PlaceArgument(const LinkedFunction& linked, size_t parameter, const Value& value, int64_t* slot) {
  const Type& type = linked.function->signature.params[parameter].type;
  if (type.is_tensor()) {
    const auto* tensor = std::get_if<Tensor>(&value);
    if (tensor == nullptr || !*tensor) return ParameterMismatch(*linked.function, parameter, DescribeValue(value));
    return StageTensor(linked, parameter, tensor->view(), slot);
  }
  // Dims are left out here; they are compared once the symbols are bound.
  Type loose = type;
  const std::vector<Dim> unknown(linked.function->signature.symbols.size());
  loose = SubstituteSymbols(loose, unknown);
  if (type.kind == ValueKind::kShape) loose.dims.assign(type.dims.size(), std::nullopt);
  if (!HasType(value, loose, {}, context_.device_ids_))
    return ParameterMismatch(*linked.function, parameter, DescribeValue(value));
  return Unbox(type, slot, value);
}

// ---- results

Status Interpreter::TakeResults(std::vector<Value>* results) {
  const Record& record = records_.back();
  for (size_t i = 0; i < returned_.size(); ++i) {
    const Type& type = record.linked->function->TypeOf(returned_source_[i]);
    INGOT_ASSIGN_OR_RETURN(Value value, Box(type, FrameOf(record) + returned_[i]));
    results->push_back(std::move(value));
  }
  return Status();
}

// ---- registers and values

void Interpreter::Drop(const Type& type, int64_t* slot) const {
  if (type.is_tensor()) {
    if (type.storage != Storage::kOwned || slot[1] == 0) return;
    Ref<ingot::Storage>::Adopt(OwnerOf(slot));
    slot[1] = 0;
  } else if (IsCountedKind(type.kind) && slot[0] != 0) {
    Ref<Object>::Adopt(ObjectOf(slot[0]));
    slot[0] = 0;
  }
}

void Interpreter::CopyRegister(const Type& to, int64_t* to_slot, const Type& from, const int64_t* from_slot) const {
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

Result<TensorView> Interpreter::ViewOf(const Type& type, const int64_t* slot) const {
  Result<TensorView> view =
      TensorView::Make(PointerOf(slot[0]), type.dtype, {slot + kTensorHeadWords, type.dims.size()}, nullptr,
                       context_.devices_[type.device].device->id());
  if (view.ok()) view->is_read_only = !IsWritable(type.storage);
  return view;
}

Result<Tensor> Interpreter::CopyToOwned(const TensorView& view, uint8_t device) {
  if (!view.device.is_host_accessible()) {
    return Status(StatusCode::kBadInput, {"a tensor on ", view.device.ToString(), " would have to be copied"});
  }
  INGOT_ASSIGN_OR_RETURN(Ref<ingot::Storage> storage, context_.devices_[device].pool->AllocateStorage(view.size_bytes));
  INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::InStorage(std::move(storage), view.dtype, view.shape()));
  INGOT_RETURN_IF_ERROR(CopyElements(view, tensor.view()));
  return tensor;
}

// The tensor itself where it has a storage and is writable, compact and aligned; otherwise an owned copy.
Result<Tensor> Interpreter::Kept(const Tensor& tensor, uint8_t device) {
  const bool is_ours = tensor.storage() && !tensor.view().is_read_only;  // registers of storage owned are writable
  if (is_ours && tensor.is_compact() && tensor.view().IsAligned(kPlanAlignment)) return tensor;
  return CopyToOwned(tensor.view(), device);
}

Result<Value> Interpreter::Box(const Type& type, const int64_t* slot) {
  if (!type.is_tensor()) return BoxWords(type, slot);
  ingot::Storage* owner = OwnerOf(slot);
  if (owner == nullptr) {  // memory of the caller's output, which the value may outlive
    INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(type, slot));
    INGOT_ASSIGN_OR_RETURN(Tensor copy, CopyToOwned(view, type.device));
    return Value(std::move(copy));
  }
  const int64_t offset = static_cast<std::byte*>(PointerOf(slot[0])) - static_cast<std::byte*>(owner->data());
  INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::InStorage(Ref<ingot::Storage>::Share(owner), type.dtype,
                                                          {slot + kTensorHeadWords, type.dims.size()}, offset));
  return Value(std::move(tensor));
}

Value Interpreter::BoxWords(const Type& type, const int64_t* slot) {
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

Status Interpreter::Unbox(const Type& type, int64_t* slot, const Value& value) {
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
      INGOT_ASSIGN_OR_RETURN(const Tensor tensor, Kept(std::get<Tensor>(value), type.device));
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
        INGOT_ASSIGN_OR_RETURN(Tensor kept, Kept(*tensor, 0));
        object = Ref<Object>::Adopt(new BoxObject(std::move(kept)));
      } else {
        object = Ref<Object>::Adopt(new BoxObject(value));
      }
      slot[0] = WordOf(static_cast<const void*>(object.Detach()));
      return Status();
    }
  }
  INGOT_UNREACHABLE();
}

}  // namespace ingot::vm
