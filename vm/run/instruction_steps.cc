// Handlers of the instructions that stay in their frame: constants, arithmetic, tensors, shapes, tuples, optionals. A
// part of vm/run/interpreter.h; the loop is in vm/run/interpreter.cc, calls are in vm/run/warm_call.cc and vm/run/outside_calls.cc.
#include <algorithm>
#include <bit>
#include <cstring>

#include "vm/program/limits.h"
#include "vm/run/frame_words.h"
#include "vm/run/interpreter.h"
#include "vm/verify/failure_text.h"
#include "vm/verify/type_rules.h"

namespace ingot::vm {
namespace {

Status Failed(Text message) { return Status(StatusCode::kFailed, message); }

}  // namespace

Status Interpreter::Step(const Record& record, const Instruction& in, const Instruction& source, int64_t* frame,
                         std::span<const TensorView> outputs) {
  const Function& function = *record.linked->function;
  const std::span<const int64_t> words(frame, static_cast<size_t>(record.linked->frame.num_words));
  const auto type_of = [&](size_t operand) -> const Type& { return function.registers[source.reg(operand)]; };
  const auto name_of = [&](size_t operand) { return DescribeRegister(function, source.reg(operand)); };
  const auto is_zeroed = [&] { return record.linked->zeroes[static_cast<size_t>(&source - function.code.data())]; };
  switch (in.opcode) {
    case Opcode::kCallKernel:
    case Opcode::kCallFunction:
    case Opcode::kCallClosure:
    case Opcode::kReturn:
    case Opcode::kJump:
    case Opcode::kBranch:
      break;  // the loop's own
    case Opcode::kCallBuiltin:
      return CallBuiltin(record, in, source, frame);
    case Opcode::kMakeClosure:
      return MakeClosure(record, in, source, frame);
    case Opcode::kCallExternal:
      return CallExternal(record, in, source, frame);
    case Opcode::kFail:
      return Failed(in.text(0));
    case Opcode::kConstInt:
    case Opcode::kConstFloat:
    case Opcode::kConstBool:
    case Opcode::kConstDType:
      frame[in.reg(0)] = in.scalar(1);
      return Status();
    case Opcode::kConstString:
      Drop(type_of(0), frame + in.reg(0));
      frame[in.reg(0)] = WordOf(new StringObject(in.text(1)));
      return Status();
    case Opcode::kConstTensor: {
      const auto id = static_cast<size_t>(in.scalar(1));
      const Executable& executable = *context_.executable_;
      WriteTensor(frame + in.reg(0), const_cast<std::byte*>(executable.ConstantData(id)), nullptr,
                  executable.program().constants[id].dims);
      return Status();
    }
    case Opcode::kState: {
      const Tensor& state = context_.states_[static_cast<size_t>(in.scalar(1))];
      WriteTensor(frame + in.reg(0), state.data(), nullptr, state.dims());
      return Status();
    }
    case Opcode::kDim: {
      INGOT_ASSIGN_OR_RETURN(frame[in.reg(0)], in.dim(1).Evaluate(words));
      return Status();
    }
    case Opcode::kTest: {
      INGOT_ASSIGN_OR_RETURN(const int64_t value, in.dim(1).Evaluate(words));
      frame[in.reg(0)] = value != 0 ? 1 : 0;
      return Status();
    }
    case Opcode::kMove: {
      if (in.reg(0) == in.reg(1)) return Status();
      if (IsAnyObject(type_of(0)) && !IsCountedKind(type_of(1).kind)) {
        INGOT_ASSIGN_OR_RETURN(const Value value, Box(type_of(1), frame + in.reg(1)));
        Drop(type_of(0), frame + in.reg(0));
        return Unbox(type_of(0), frame + in.reg(0), value);
      }
      Drop(type_of(0), frame + in.reg(0));
      CopyRegister(type_of(0), frame + in.reg(0), type_of(1), frame + in.reg(1));
      return Status();
    }
    case Opcode::kMatch:
      return Match(record, in, source, frame);
    case Opcode::kLoadInt:
    case Opcode::kLoadFloat:
    case Opcode::kLoadBool:
      return Load(record, in, source, frame);
    case Opcode::kTensorDim:
      frame[in.reg(0)] = frame[in.reg(1) + kTensorHeadWords + in.scalar(2)];
      return Status();
    case Opcode::kShapeDim:
      frame[in.reg(0)] = frame[in.reg(1) + in.scalar(2)];
      return Status();
    case Opcode::kPlanView: {
      int64_t dims[kMaxTensorRank];
      INGOT_ASSIGN_OR_RETURN(const int64_t bytes, EvaluateDims(in.dims(2), words, type_of(0).dtype, dims));
      const auto entry = static_cast<size_t>(in.scalar(1));
      const PlanNumbers& numbers = record.activation->numbers;
      if (bytes > numbers.sizes[entry]) {
        return Status(StatusCode::kCorrupt, {"a tensor of ", bytes, " bytes does not fit into plan entry ", entry,
                                             " of ", numbers.sizes[entry]});
      }
      auto* base = static_cast<std::byte*>(record.activation->arenas[function.plan.entries[entry].arena].data);
      WriteTensor(frame + in.reg(0), base + numbers.offsets[entry], nullptr, {dims, in.dims(2).size()});
      return Status();
    }
    case Opcode::kView:
      return MakeView(record, in, source, frame);
    case Opcode::kAlloc:
      return Allocate(type_of(0), in.dims(1), frame, record.linked->frame.num_words, frame + in.reg(0), nullptr,
                      is_zeroed());
    case Opcode::kAllocOutput: {
      const bool is_bound = records_.size() == 1 && !outputs.empty();
      const TensorView* bound = is_bound ? &outputs[static_cast<size_t>(in.scalar(1))] : nullptr;
      Status status = Allocate(type_of(0), in.dims(2), frame, record.linked->frame.num_words, frame + in.reg(0), bound,
                               is_zeroed());
      if (status.ok()) return status;
      const NamedType& result = function.signature.results[static_cast<size_t>(in.scalar(1))];
      return std::move(status).WithContext({"output \"", result.name, "\""});
    }
    case Opcode::kCopy: {
      INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(type_of(1), frame + in.reg(1)));
      INGOT_ASSIGN_OR_RETURN(Ref<ingot::Storage> storage,
                             context_.devices_[type_of(0).device].pool->AllocateStorage(view.size_bytes));
      int64_t slot[kTensorHeadWords + kMaxTensorRank];
      WriteTensor(slot, storage->data(), nullptr, view.shape());
      INGOT_RETURN_IF_ERROR(CopyTensor(type_of(0), slot, type_of(1), frame + in.reg(1)));
      Drop(type_of(0), frame + in.reg(0));
      void* data = storage->data();
      WriteTensor(frame + in.reg(0), data, storage.Detach(), view.shape());
      return Status();
    }
    case Opcode::kCopyInto:
      return CopyTensor(type_of(0), frame + in.reg(0), type_of(1), frame + in.reg(1));
    case Opcode::kRelease:
      Drop(type_of(0), frame + in.reg(0));
      return Status();
    case Opcode::kShape: {
      int64_t dims[kMaxTensorRank];
      for (size_t i = 0; i < in.dims(1).size(); ++i) {
        INGOT_ASSIGN_OR_RETURN(dims[i], in.dims(1)[i].Evaluate(words));
      }
      std::copy(dims, dims + in.dims(1).size(), frame + in.reg(0));
      return Status();
    }
    case Opcode::kSync:
      return context_.devices_[static_cast<size_t>(in.scalar(0))].device->Synchronize({});
    case Opcode::kTuple: {
      std::vector<Value> elements;
      for (size_t i = 0; i < in.registers(1).size(); ++i) {
        INGOT_ASSIGN_OR_RETURN(Value value,
                               Box(function.registers[source.registers(1)[i]], frame + in.registers(1)[i]));
        elements.push_back(std::move(value));
      }
      Drop(type_of(0), frame + in.reg(0));
      frame[in.reg(0)] = WordOf(new TupleObject(ValueKind::kTuple, std::move(elements)));
      return Status();
    }
    case Opcode::kTupleGet: {
      const auto* tuple = static_cast<const TupleObject*>(ObjectOf(frame[in.reg(1)]));
      const Value value = tuple->elements[static_cast<size_t>(in.scalar(2))];
      Drop(type_of(0), frame + in.reg(0));
      return Unbox(type_of(0), frame + in.reg(0), value);
    }
    case Opcode::kSome: {
      INGOT_ASSIGN_OR_RETURN(Value value, Box(type_of(1), frame + in.reg(1)));
      Drop(type_of(0), frame + in.reg(0));
      frame[in.reg(0)] = WordOf(new TupleObject(ValueKind::kOptional, {std::move(value)}));
      return Status();
    }
    case Opcode::kNone:
      Drop(type_of(0), frame + in.reg(0));
      frame[in.reg(0)] = WordOf(new TupleObject(ValueKind::kOptional, {Value()}));
      return Status();
    case Opcode::kIsSome: {
      const auto* optional = static_cast<const TupleObject*>(ObjectOf(frame[in.reg(1)]));
      frame[in.reg(0)] = std::holds_alternative<std::monostate>(optional->elements[0]) ? 0 : 1;
      return Status();
    }
    case Opcode::kUnwrap: {
      const Value value = static_cast<const TupleObject*>(ObjectOf(frame[in.reg(1)]))->elements[0];
      if (std::holds_alternative<std::monostate>(value)) return Failed({name_of(1), ": the optional is empty"});
      Drop(type_of(0), frame + in.reg(0));
      return Unbox(type_of(0), frame + in.reg(0), value);
    }
  }
  INGOT_UNREACHABLE();
}

Status Interpreter::Allocate(const Type& type, std::span<const DimCode> dims, int64_t* frame, int64_t num_words,
                             int64_t* slot, const TensorView* bound, bool is_zeroed) {
  int64_t extents[kMaxTensorRank];
  const std::span<const int64_t> words(frame, static_cast<size_t>(num_words));
  INGOT_ASSIGN_OR_RETURN(const int64_t bytes, EvaluateDims(dims, words, type.dtype, extents));
  const std::span<const int64_t> shape(extents, dims.size());
  if (bound != nullptr) {
    if (!std::equal(shape.begin(), shape.end(), bound->dims.begin(), bound->dims.begin() + bound->rank)) {
      return Status(StatusCode::kBadInput,
                    {"expected ", ShapeToString(type.dtype, shape), ", got a tensor ", bound->TypeToString()});
    }
    // An output that is strided or not aligned is copied to at the end.
    if (bound->is_compact && bound->IsAligned(kPlanAlignment)) {
      Drop(type, slot);
      WriteTensor(slot, bound->data, nullptr, shape);
      return Status();
    }
  }
  INGOT_ASSIGN_OR_RETURN(Ref<ingot::Storage> storage, context_.devices_[type.device].pool->AllocateStorage(bytes));
  if (is_zeroed) INGOT_RETURN_IF_ERROR(context_.ZeroMemory(type.device, storage->data(), bytes));
  Drop(type, slot);
  void* data = storage->data();
  WriteTensor(slot, data, storage.Detach(), shape);
  return Status();
}

Status Interpreter::MakeView(const Record& record, const Instruction& in, const Instruction& source, int64_t* frame) {
  const Function& function = *record.linked->function;
  const std::span<const int64_t> words(frame, static_cast<size_t>(record.linked->frame.num_words));
  const Type& to = function.registers[source.reg(0)];
  const Type& from = function.registers[source.reg(1)];
  const int64_t* from_slot = frame + in.reg(1);
  int64_t dims[kMaxTensorRank];
  INGOT_ASSIGN_OR_RETURN(const int64_t bytes, EvaluateDims(in.dims(3), words, to.dtype, dims));
  INGOT_ASSIGN_OR_RETURN(const int64_t offset, in.dim(2).Evaluate(words));
  INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(from, from_slot));
  if (offset < 0 || offset > view.size_bytes || bytes > view.size_bytes - offset) {
    return Failed({"a view of ", bytes, " bytes at byte ", offset, " of ", DescribeRegister(function, source.reg(1)),
                   ", ", view.TypeToString()});
  }
  if (offset % std::max(1, to.dtype.total_bits() / 8) != 0) {
    return Failed({"a view at byte ", offset, " is not aligned to its elements"});
  }
  auto* owner = OwnerOf(from_slot);
  if (owner != nullptr) owner->Retain();
  auto* data = static_cast<std::byte*>(view.data) + offset;
  Drop(to, frame + in.reg(0));
  WriteTensor(frame + in.reg(0), data, owner, {dims, in.dims(3).size()});
  return Status();
}

Status Interpreter::CopyTensor(const Type& to, const int64_t* to_slot, const Type& from, const int64_t* from_slot) {
  INGOT_ASSIGN_OR_RETURN(const TensorView target, ViewOf(to, to_slot));
  INGOT_ASSIGN_OR_RETURN(const TensorView origin, ViewOf(from, from_slot));
  if (!std::equal(target.shape().begin(), target.shape().end(), origin.shape().begin(), origin.shape().end())) {
    return Failed({"copies ", origin.TypeToString(), " into ", target.TypeToString()});
  }
  if (target.size_bytes == 0 || target.data == origin.data) return Status();
  if (Overlap(target, origin)) return Failed("copies between overlapping tensors");
  const auto size = target.size_bytes;
  Device& target_device = *context_.devices_[to.device].device;
  Device& origin_device = *context_.devices_[from.device].device;
  const bool to_host = target_device.id().is_host_accessible(), from_host = origin_device.id().is_host_accessible();
  if (to_host && from_host) {
    std::memcpy(target.data, origin.data, static_cast<size_t>(size));
    return Status();
  }
  if (from_host) return target_device.CopyFromHost(target.data, origin.data, size, {});
  if (to_host) {
    INGOT_RETURN_IF_ERROR(origin_device.CopyToHost(target.data, origin.data, size, {}));
    return origin_device.Synchronize({});
  }
  if (to.device == from.device) return target_device.CopyWithin(target.data, origin.data, size, {});
  return Failed("copies between two devices that are not the host");
}

Status Interpreter::Load(const Record& record, const Instruction& in, const Instruction& source, int64_t* frame) const {
  const Function& function = *record.linked->function;
  const Type& type = function.registers[source.reg(1)];
  int64_t* const out = frame + in.reg(0);
  const std::span<const int64_t> words(frame, static_cast<size_t>(record.linked->frame.num_words));
  INGOT_ASSIGN_OR_RETURN(const int64_t at, in.dim(2).Evaluate(words));
  INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(type, frame + in.reg(1)));
  if (at < 0 || at >= view.num_elements) {
    return Failed({"loads element ", at, " of ", DescribeRegister(function, source.reg(1)), ", ", view.TypeToString()});
  }
  const int width = type.dtype.bits / 8;
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(view.data) + at * width, static_cast<size_t>(width));
  if (type.dtype == DataType::Float(32)) {
    *out = std::bit_cast<int64_t>(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
  } else if (type.dtype.is_bool()) {
    *out = bits != 0 ? 1 : 0;
  } else if (type.dtype.is_int() && width < 8) {
    const int shift = 64 - 8 * width;
    *out = static_cast<int64_t>(bits << shift) >> shift;
  } else {
    *out = static_cast<int64_t>(bits);
  }
  return Status();
}

// Narrowing: known dims of the declared type are compared, and an object is unpacked into a register of its type.
Status Interpreter::Match(const Record& record, const Instruction& in, const Instruction& source, int64_t* frame) {
  const Function& function = *record.linked->function;
  const Type& to = function.registers[source.reg(0)];
  const Type& from = function.registers[source.reg(1)];
  int64_t* const to_slot = frame + in.reg(0);
  const int64_t* const from_slot = frame + in.reg(1);
  const std::span<const int64_t> slots(frame, function.signature.symbols.size());  // symbols are a frame's first words
  const auto mismatch = [&](Text got) {
    return Status(StatusCode::kBadInput, {DescribeRegister(function, source.reg(1)), ": expected ",
                                          DescribeExpected(to, function.signature, slots), ", got ", got});
  };
  if (IsCountedKind(from.kind)) {
    INGOT_ASSIGN_OR_RETURN(const Value value, Box(from, from_slot));
    if (!HasType(value, to, slots, context_.device_ids_)) return mismatch(DescribeValue(value));
    Drop(to, to_slot);
    return Unbox(to, to_slot, value);
  }
  const int64_t* extents = from.is_tensor() ? from_slot + kTensorHeadWords : from_slot;
  for (size_t i = 0; i < to.dims.size(); ++i) {
    if (!to.dims[i]) continue;
    INGOT_ASSIGN_OR_RETURN(const int64_t expected, to.dims[i]->Evaluate(slots));
    if (expected != extents[i]) return mismatch(ShapeToString(from.dtype, {extents, to.dims.size()}));
  }
  if (to_slot == from_slot) return Status();
  Drop(to, to_slot);
  CopyRegister(to, to_slot, from, from_slot);
  return Status();
}

}  // namespace ingot::vm
