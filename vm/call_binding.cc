// The borders of functions: arguments from outside, symbols, results, and how registers and values become one
// another. A part of vm/interpreter.h.
#include <algorithm>
#include <bit>
#include <cstring>

#include "vm/failure_text.h"
#include "vm/frame_words.h"
#include "vm/interpreter.h"
#include "vm/limits.h"
#include "vm/type_rules.h"

namespace ingot::vm {

bool Overlap(const TensorView& a, const TensorView& b) {
  if (a.num_elements == 0 || b.num_elements == 0) return false;
  const auto x = reinterpret_cast<uintptr_t>(a.data), y = reinterpret_cast<uintptr_t>(b.data);
  return x < y ? y - x < static_cast<uintptr_t>(a.SpanBytes()) : x - y < static_cast<uintptr_t>(b.SpanBytes());
}

namespace {

// The same elements in the same memory.
bool IsSame(const TensorView& a, const TensorView& b) {
  return a.data == b.data && a.dtype == b.dtype && a.rank == b.rank && a.dims == b.dims && a.strides == b.strides;
}

Status OutsideOfRange(const Function& function, const Symbol& symbol, const std::string& where, int64_t value) {
  return Status(StatusCode::kBadInput, "function \"" + function.name + "\", " + where + ": " + symbol.name + " is " +
                                           std::to_string(value) + ", expected " + std::to_string(symbol.min) + ".." +
                                           std::to_string(symbol.max));
}

}  // namespace

Result<int64_t> EvaluateDims(std::span<const DimCode> dims, std::span<const int64_t> words, DataType dtype,
                             int64_t* out) {
  for (size_t i = 0; i < dims.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(out[i], dims[i].Evaluate(words));
  }
  INGOT_ASSIGN_OR_RETURN(const int64_t count, CountElements({out, dims.size()}));
  return dtype.SizeBytes(count);
}

// ---- frames

Status Interpreter::PushFrame(const LinkedFunction& linked) {
  const int64_t base = records_.empty() ? 0 : records_.back().base + records_.back().linked->frame.num_words;
  const int64_t end = base + linked.frame.num_words;
  if (static_cast<int64_t>(records_.size()) >= kMaxCallDepth) {
    return Status(StatusCode::kFailed, "calls nest too deep: more than " + std::to_string(kMaxCallDepth) +
                                           ", at function \"" + linked.function->name + "\"");
  }
  if (end > kMaxStackWords) {
    return Status(StatusCode::kFailed, "calls nest too deep: the frames of " + std::to_string(records_.size() + 1) +
                                           " take more than " + std::to_string(kMaxStackWords * 8) +
                                           " bytes, at function \"" + linked.function->name + "\"");
  }
  std::vector<int64_t>& stack = context_.stack_;
  if (end > static_cast<int64_t>(stack.size()))
    stack.resize(static_cast<size_t>(std::max(end, std::min(2 * end, kMaxStackWords))));
  int64_t* frame = stack.data() + base;
  for (uint32_t offset : linked.counted) frame[offset] = 0;
  for (uint32_t offset : linked.tensor_owners) frame[offset] = 0;
  records_.push_back({&linked, base});
  return Status();
}

void Interpreter::PopFrame() {
  const Record& record = records_.back();
  int64_t* frame = FrameOf(record);
  for (uint32_t offset : record.linked->counted) {
    if (frame[offset] != 0) Ref<Object>::Adopt(ObjectOf(frame[offset]));
  }
  for (uint32_t offset : record.linked->tensor_owners) {
    if (frame[offset] != 0) Ref<ingot::Storage>::Adopt(static_cast<ingot::Storage*>(PointerOf(frame[offset])));
  }
  if (record.activation != nullptr) record.activation->in_use = false;
  records_.pop_back();
}

void Interpreter::Unwind() {
  while (!records_.empty()) PopFrame();
  write_backs_.clear();
  returned_ = nullptr;
  returned_source_ = nullptr;
}

Status Interpreter::ParameterMismatch(const Function& function, size_t parameter, const std::string& got) const {
  const NamedType& param = function.signature.params[parameter];
  Type shown = param.type;
  shown.storage = Storage::kOwned;  // which is not printed
  return Status(StatusCode::kBadInput, "function \"" + function.name + "\", parameter \"" + param.name +
                                           "\": expected " + shown.ToString(function.signature.symbol_names()) +
                                           ", got " + got);
}

Status Interpreter::EvaluateRule(const LinkedFunction& linked, int64_t* frame, size_t parameter, size_t axis,
                                 int64_t extent) const {
  const Function& function = *linked.function;
  const DimRule& rule = linked.parameters[parameter].dims[axis];
  const size_t num_symbols = function.signature.symbols.size();
  int64_t expected = extent;
  switch (rule.kind) {
    case DimRule::Kind::kAny:
      return Status();
    case DimRule::Kind::kConstant:
      expected = rule.value;
      break;
    case DimRule::Kind::kBind: {
      const Symbol& symbol = function.signature.symbols[static_cast<size_t>(rule.value)];
      frame[rule.value] = extent;  // symbols are the first words of a frame
      if (extent >= symbol.min && extent <= symbol.max) return Status();
      return OutsideOfRange(function, symbol, "parameter \"" + function.signature.params[parameter].name + "\"",
                            extent);
    }
    case DimRule::Kind::kCompare: {
      INGOT_ASSIGN_OR_RETURN(expected, rule.code.Evaluate({frame, num_symbols}));
      break;
    }
  }
  if (expected == extent) return Status();
  const Type& type = function.signature.params[parameter].type;
  const int64_t* slot = frame + linked.frame.offsets[num_symbols + parameter];
  const std::span<const int64_t> extents(slot + (type.is_tensor() ? kTensorHeadWords : 0), type.dims.size());
  std::string got = ShapeToString(type.dtype, extents);
  if (type.kind == ValueKind::kShape) got = DescribeValue(ShapeValue{{extents.begin(), extents.end()}});
  if (rule.kind == DimRule::Kind::kCompare) {
    got += " (axis " + std::to_string(axis) + " should be " + std::to_string(expected) + ")";
  }
  return ParameterMismatch(function, parameter, got);
}

Status Interpreter::BindParameters(Record& record) {
  const LinkedFunction& linked = *record.linked;
  const Signature& signature = linked.function->signature;
  const size_t num_symbols = signature.symbols.size();
  int64_t* frame = FrameOf(record);
  for (size_t i = 0; i < num_symbols; ++i) {
    const Symbol& symbol = signature.symbols[i];
    if (!symbol.state) continue;
    const int64_t value = *static_cast<const int64_t*>(context_.states_[symbol.state->value].data());
    frame[i] = value;
    if (value >= symbol.min && value <= symbol.max) continue;
    const std::string& state = context_.executable_->program().states[symbol.state->value].name;
    return OutsideOfRange(*linked.function, symbol, "state \"" + state + "\"", value);
  }
  // Lone symbols first, then what is compared with them.
  for (const bool binds : {true, false}) {
    if (binds && num_symbols == 0) continue;
    for (size_t p = 0; p < linked.parameters.size(); ++p) {
      const Type& type = signature.params[p].type;
      const int64_t* extents =
          frame + linked.frame.offsets[num_symbols + p] + (type.is_tensor() ? kTensorHeadWords : 0);
      for (size_t axis = 0; axis < linked.parameters[p].dims.size(); ++axis) {
        if ((linked.parameters[p].dims[axis].kind == DimRule::Kind::kBind) != binds) continue;
        INGOT_RETURN_IF_ERROR(EvaluateRule(linked, frame, p, axis, extents[axis]));
      }
    }
  }
  for (size_t p = 0; p < signature.params.size(); ++p) {
    const Type& type = signature.params[p].type;
    if (type.kind != ValueKind::kTuple && type.kind != ValueKind::kOptional) continue;
    const Value value = Ref<Object>::Share(ObjectOf(frame[linked.frame.offsets[num_symbols + p]]));
    if (!HasType(value, type, {frame, num_symbols}))
      return ParameterMismatch(*linked.function, p, DescribeValue(value));
  }
  if (linked.needs_activation) {
    Result<Context::Activation*> activation = context_.Acquire(linked, frame);
    if (!activation.ok())
      return std::move(activation).status().WithContext("function \"" + linked.function->name + "\"");
    record.activation = *activation;
  }
  return Status();
}

// ---- arguments from outside

Status Interpreter::StageTensor(const LinkedFunction& linked, size_t parameter, const TensorView& view, int64_t* slot) {
  const Type& type = linked.function->signature.params[parameter].type;
  if (view.dtype != type.dtype || view.rank != type.rank())
    return ParameterMismatch(*linked.function, parameter, view.TypeToString());
  const DeviceId device = context_.devices_[type.device].device->id();
  const bool reachable = view.device == device || (device.is_host_accessible() && view.device.is_host_accessible());
  if (!reachable)
    return ParameterMismatch(*linked.function, parameter, view.TypeToString() + " on " + view.device.ToString());
  const bool is_written = type.storage == Storage::kBorrowedMut;
  if (is_written && view.is_read_only) return ParameterMismatch(*linked.function, parameter, "a read-only tensor");
  if (view.is_compact && view.IsAligned(linked.parameters[parameter].alignment)) {
    WriteTensor(slot, view.data, nullptr, view.shape());
    return Status();
  }
  Result<Tensor> copy = CopyToOwned(view, type.device);
  if (!copy.ok()) {
    return std::move(copy).status().WithContext("function \"" + linked.function->name +
                                                "\", a compact copy of parameter \"" +
                                                linked.function->signature.params[parameter].name + "\"");
  }
  Tensor staged = *std::move(copy);
  WriteTensor(slot, staged.data(), nullptr, view.shape());
  if (is_written) write_backs_.push_back({staged.view(), view});
  context_.staging_.push_back(std::move(staged));
  return Status();
}

// What a function writes may not be what it reads: native code relies on it.
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
        return ParameterMismatch(function, i, "a tensor that overlaps parameter \"" + params[k].name + "\"");
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
  // All but the dims, which are compared once the symbols are bound.
  Type loose = type;
  const std::vector<Dim> unknown(linked.function->signature.symbols.size());
  loose = SubstituteSymbols(loose, unknown);
  if (type.kind == ValueKind::kShape) loose.dims.assign(type.dims.size(), std::nullopt);
  if (!HasType(value, loose, {})) return ParameterMismatch(*linked.function, parameter, DescribeValue(value));
  return Unbox(type, slot, value);
}

Status Interpreter::Enter(const LinkedFunction& linked, std::span<const Value> arguments) {
  const Function& function = *linked.function;
  if (arguments.size() != function.signature.params.size()) {
    return Status(StatusCode::kInvalidArgument, "function \"" + function.name + "\" takes " +
                                                    std::to_string(function.signature.params.size()) +
                                                    " arguments, got " + std::to_string(arguments.size()) + "; it is " +
                                                    function.name + function.signature.ToString());
  }
  INGOT_RETURN_IF_ERROR(PushFrame(linked));
  Record& record = records_.back();
  int64_t* frame = FrameOf(record);
  const size_t num_symbols = function.signature.symbols.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    INGOT_RETURN_IF_ERROR(PlaceArgument(linked, i, arguments[i], frame + linked.frame.offsets[num_symbols + i]));
  }
  INGOT_RETURN_IF_ERROR(BindParameters(record));
  return CheckWrittenParameters(linked, frame);
}

Status Interpreter::EnterTensors(const LinkedFunction& linked, std::span<const TensorView> inputs,
                                 std::span<const TensorView> outputs) {
  const Function& function = *linked.function;
  const Signature& signature = function.signature;
  if (inputs.size() != signature.params.size() || outputs.size() != signature.results.size()) {
    return Status(StatusCode::kInvalidArgument,
                  "function \"" + function.name + "\" takes " + std::to_string(signature.params.size()) +
                      " inputs and " + std::to_string(signature.results.size()) + " outputs, got " +
                      std::to_string(inputs.size()) + " and " + std::to_string(outputs.size()) + "; it is " +
                      function.name + signature.ToString());
  }
  INGOT_RETURN_IF_ERROR(PushFrame(linked));
  Record& record = records_.back();
  int64_t* frame = FrameOf(record);
  const size_t num_symbols = signature.symbols.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!signature.params[i].type.is_tensor()) return ParameterMismatch(function, i, "a tensor");
    INGOT_RETURN_IF_ERROR(StageTensor(linked, i, inputs[i], frame + linked.frame.offsets[num_symbols + i]));
  }
  INGOT_RETURN_IF_ERROR(BindParameters(record));
  INGOT_RETURN_IF_ERROR(CheckWrittenParameters(linked, frame));
  return CheckOutputs(linked, inputs, outputs);
}

Status Interpreter::CheckOutputs(const LinkedFunction& linked, std::span<const TensorView> inputs,
                                 std::span<const TensorView> outputs) {
  const Function& function = *linked.function;
  const auto fail = [&](size_t i, const std::string& what) {
    return Status(StatusCode::kBadInput,
                  "function \"" + function.name + "\", output \"" + function.signature.results[i].name + "\": " + what);
  };
  const std::span<const int64_t> symbols(FrameOf(records_.back()), function.signature.symbols.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Type& type = function.signature.results[i].type;
    const TensorView& view = outputs[i];
    bool agrees = type.is_tensor() && view.dtype == type.dtype && view.rank == type.rank();
    for (int axis = 0; agrees && axis < view.rank; ++axis) {
      if (!type.dims[static_cast<size_t>(axis)]) continue;
      INGOT_ASSIGN_OR_RETURN(const int64_t expected, type.dims[static_cast<size_t>(axis)]->Evaluate(symbols));
      agrees = view.dims[static_cast<size_t>(axis)] == expected;
    }
    if (!agrees) {
      return fail(i,
                  "expected " + DescribeExpected(type, function.signature, symbols) + ", got " + view.TypeToString());
    }
    if (view.is_read_only) return fail(i, "the tensor is read-only");
    if (!view.device.is_host_accessible()) return fail(i, "the tensor is on " + view.device.ToString());
    for (size_t p = 0; p < inputs.size(); ++p) {
      if (!Overlap(view, inputs[p])) continue;
      const SharedOutput pair{static_cast<uint32_t>(i), static_cast<uint32_t>(p)};
      if (std::ranges::find(linked.shared_outputs, pair) != linked.shared_outputs.end() && IsSame(view, inputs[p])) {
        continue;
      }
      return fail(i, "the tensor overlaps input \"" + function.signature.params[p].name + "\"");
    }
    for (size_t k = 0; k < i; ++k) {
      if (Overlap(view, outputs[k])) return fail(i, "the tensor overlaps another output");
    }
  }
  return Status();
}

// ---- results

Status Interpreter::TakeResults(std::vector<Value>* results) {
  const Record& record = records_.back();
  for (size_t i = 0; i < returned_->size(); ++i) {
    const Type& type = record.linked->function->registers[(*returned_source_)[i]];
    INGOT_ASSIGN_OR_RETURN(Value value, Box(type, FrameOf(record) + (*returned_)[i]));
    results->push_back(std::move(value));
  }
  return Status();
}

Status Interpreter::CopyResults(std::span<const TensorView> outputs) {
  const Record& record = records_.back();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int64_t* slot = FrameOf(record) + (*returned_)[i];
    if (PointerOf(slot[0]) == outputs[i].data && OwnerOf(slot) == nullptr) continue;  // written in place
    INGOT_ASSIGN_OR_RETURN(const TensorView view,
                           ViewOf(record.linked->function->registers[(*returned_source_)[i]], slot));
    if (!std::equal(view.shape().begin(), view.shape().end(), outputs[i].shape().begin(), outputs[i].shape().end())) {
      return Status(StatusCode::kBadInput, "function \"" + record.linked->function->name + "\", output \"" +
                                               record.linked->function->signature.results[i].name +
                                               "\": the result is " + view.TypeToString() + ", got " +
                                               outputs[i].TypeToString());
    }
    INGOT_RETURN_IF_ERROR(CopyElements(view, outputs[i]));
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
    return Status(StatusCode::kBadInput, "a tensor on " + view.device.ToString() + " would have to be copied");
  }
  INGOT_ASSIGN_OR_RETURN(Ref<ingot::Storage> storage, context_.devices_[device].pool->AllocateStorage(view.size_bytes));
  INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::InStorage(std::move(storage), view.dtype, view.shape()));
  INGOT_RETURN_IF_ERROR(CopyElements(view, tensor.view()));
  return tensor;
}

// Tensors from outside may have any form, or nobody who keeps them.
Result<Tensor> Interpreter::Kept(const Tensor& tensor, uint8_t device) {
  if (tensor.storage() && tensor.is_compact() && tensor.view().IsAligned(kPlanAlignment)) return tensor;
  return CopyToOwned(tensor.view(), device);
}

Result<Value> Interpreter::Box(const Type& type, const int64_t* slot) {
  if (!type.is_tensor()) return BoxWords(type, slot);
  ingot::Storage* owner = OwnerOf(slot);
  if (owner == nullptr) {  // the caller's output: a value may outlive it
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
