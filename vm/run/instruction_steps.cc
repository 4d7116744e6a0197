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

Status Interpreter::Step(const Record& record, const FrameInstruction& in, const Instruction& source, int64_t* frame,
                         std::span<const TensorView> outputs) {
  const Function& function = *record.linked->function;
  const std::span<const int64_t> words(frame, static_cast<size_t>(record.linked->frame.num_words));
  const auto type_of = [&](RegisterId id) -> const Type& { return function.TypeOf(id); };
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
      return CallBuiltin(record, in.As<op::CallBuiltin>(), source.As<op::CallBuiltin>(), frame);
    case Opcode::kMakeClosure:
      return MakeClosure(record, in.As<op::MakeClosure>(), source.As<op::MakeClosure>(), frame);
    case Opcode::kCallExternal:
      return CallExternal(record, in.As<op::CallExternal>(), source.As<op::CallExternal>(), frame);
    case Opcode::kFail:
      return Failed(in.As<op::Fail>().message());
    case Opcode::kConstInt:
      frame[in.As<op::ConstInt>().dst()] = in.As<op::ConstInt>().value();
      return Status();
    case Opcode::kConstFloat:
      frame[in.As<op::ConstFloat>().dst()] = std::bit_cast<int64_t>(in.As<op::ConstFloat>().value());
      return Status();
    case Opcode::kConstBool:
      frame[in.As<op::ConstBool>().dst()] = in.As<op::ConstBool>().value() ? 1 : 0;
      return Status();
    case Opcode::kConstDType:
      frame[in.As<op::ConstDType>().dst()] = PackDataType(in.As<op::ConstDType>().value());
      return Status();
    case Opcode::kConstString: {
      const auto at = in.As<op::ConstString>();
      const auto ids = source.As<op::ConstString>();
      Drop(type_of(ids.dst()), frame + at.dst());
      frame[at.dst()] = WordOf(new StringObject(at.value()));
      return Status();
    }
    case Opcode::kConstTensor: {
      const auto at = in.As<op::ConstTensor>();
      const uint32_t id = at.constant().value;
      const Executable& executable = *context_.executable_;
      WriteTensor(frame + at.dst(), const_cast<std::byte*>(executable.ConstantData(id)), nullptr,
                  executable.program().constants[id].dims);
      return Status();
    }
    case Opcode::kState: {
      const auto at = in.As<op::State>();
      const Tensor& state = context_.states_[at.state().value];
      WriteTensor(frame + at.dst(), state.data(), nullptr, state.dims());
      return Status();
    }
    case Opcode::kDim: {
      const auto at = in.As<op::Dim>();
      INGOT_ASSIGN_OR_RETURN(frame[at.dst()], at.value().Evaluate(words));
      return Status();
    }
    case Opcode::kTest: {
      const auto at = in.As<op::Test>();
      INGOT_ASSIGN_OR_RETURN(const int64_t value, at.value().Evaluate(words));
      frame[at.dst()] = value != 0 ? 1 : 0;
      return Status();
    }
    case Opcode::kMove: {
      const auto at = in.As<op::Move>();
      const auto ids = source.As<op::Move>();
      if (at.dst() == at.src()) return Status();
      if (IsAnyObject(type_of(ids.dst())) && !IsCountedKind(type_of(ids.src()).kind)) {
        INGOT_ASSIGN_OR_RETURN(const Value value, Box(type_of(ids.src()), frame + at.src()));
        Drop(type_of(ids.dst()), frame + at.dst());
        return Unbox(type_of(ids.dst()), frame + at.dst(), value);
      }
      Drop(type_of(ids.dst()), frame + at.dst());
      CopyRegister(type_of(ids.dst()), frame + at.dst(), type_of(ids.src()), frame + at.src());
      return Status();
    }
    case Opcode::kMatch:
      return Match(record, in.As<op::Match>(), source.As<op::Match>(), frame);
    case Opcode::kLoadInt: {
      const auto at = in.As<op::LoadInt>();
      return Load(record, frame + at.dst(), source.As<op::LoadInt>().tensor(), frame + at.tensor(), at.index(), frame);
    }
    case Opcode::kLoadFloat: {
      const auto at = in.As<op::LoadFloat>();
      return Load(record, frame + at.dst(), source.As<op::LoadFloat>().tensor(), frame + at.tensor(), at.index(),
                  frame);
    }
    case Opcode::kLoadBool: {
      const auto at = in.As<op::LoadBool>();
      return Load(record, frame + at.dst(), source.As<op::LoadBool>().tensor(), frame + at.tensor(), at.index(), frame);
    }
    case Opcode::kTensorDim: {
      const auto at = in.As<op::TensorDim>();
      frame[at.dst()] = frame[at.tensor() + kTensorHeadWords + at.axis()];
      return Status();
    }
    case Opcode::kShapeDim: {
      const auto at = in.As<op::ShapeDim>();
      frame[at.dst()] = frame[at.shape() + at.axis()];
      return Status();
    }
    case Opcode::kPlanView: {
      const auto at = in.As<op::PlanView>();
      const auto ids = source.As<op::PlanView>();
      int64_t dims[kMaxTensorRank];
      INGOT_ASSIGN_OR_RETURN(const int64_t bytes, EvaluateDims(at.dims(), words, type_of(ids.dst()).dtype, dims));
      const uint32_t entry = at.entry().value;
      const PlanNumbers& numbers = record.activation->numbers;
      if (bytes > numbers.sizes[entry]) {
        return Status(StatusCode::kCorrupt, {"a tensor of ", bytes, " bytes does not fit into plan entry ", entry,
                                             " of ", numbers.sizes[entry]});
      }
      auto* base = static_cast<std::byte*>(record.activation->arenas[function.plan.entries[entry].arena].data);
      WriteTensor(frame + at.dst(), base + numbers.offsets[entry], nullptr, {dims, at.dims().size()});
      return Status();
    }
    case Opcode::kView:
      return MakeView(record, in.As<op::View>(), source.As<op::View>(), frame);
    case Opcode::kAlloc: {
      const auto at = in.As<op::Alloc>();
      const auto ids = source.As<op::Alloc>();
      return Allocate(type_of(ids.dst()), at.dims(), frame, record.linked->frame.num_words, frame + at.dst(), nullptr,
                      is_zeroed());
    }
    case Opcode::kAllocOutput: {
      const auto at = in.As<op::AllocOutput>();
      const auto ids = source.As<op::AllocOutput>();
      const bool is_bound = records_.size() == 1 && !outputs.empty();
      const TensorView* bound = is_bound ? &outputs[static_cast<size_t>(at.result())] : nullptr;
      Status status = Allocate(type_of(ids.dst()), at.dims(), frame, record.linked->frame.num_words, frame + at.dst(),
                               bound, is_zeroed());
      if (status.ok()) return status;
      const NamedType& result = function.signature.results[static_cast<size_t>(at.result())];
      return std::move(status).WithContext({"output \"", result.name, "\""});
    }
    case Opcode::kCopy: {
      const auto at = in.As<op::Copy>();
      const auto ids = source.As<op::Copy>();
      INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(type_of(ids.src()), frame + at.src()));
      INGOT_ASSIGN_OR_RETURN(Ref<ingot::Storage> storage,
                             context_.devices_[type_of(ids.dst()).device].pool->AllocateStorage(view.size_bytes));
      int64_t slot[kTensorHeadWords + kMaxTensorRank];
      WriteTensor(slot, storage->data(), nullptr, view.shape());
      INGOT_RETURN_IF_ERROR(CopyTensor(type_of(ids.dst()), slot, type_of(ids.src()), frame + at.src()));
      Drop(type_of(ids.dst()), frame + at.dst());
      void* data = storage->data();
      WriteTensor(frame + at.dst(), data, storage.Detach(), view.shape());
      return Status();
    }
    case Opcode::kCopyInto: {
      const auto at = in.As<op::CopyInto>();
      const auto ids = source.As<op::CopyInto>();
      return CopyTensor(type_of(ids.dst()), frame + at.dst(), type_of(ids.src()), frame + at.src());
    }
    case Opcode::kRelease: {
      const auto at = in.As<op::Release>();
      const auto ids = source.As<op::Release>();
      Drop(type_of(ids.value()), frame + at.value());
      return Status();
    }
    case Opcode::kShape: {
      const auto at = in.As<op::Shape>();
      int64_t dims[kMaxTensorRank];
      for (size_t i = 0; i < at.dims().size(); ++i) {
        INGOT_ASSIGN_OR_RETURN(dims[i], at.dims()[i].Evaluate(words));
      }
      std::copy(dims, dims + at.dims().size(), frame + at.dst());
      return Status();
    }
    case Opcode::kSync:
      return context_.devices_[static_cast<size_t>(in.As<op::Sync>().device())].device->Synchronize({});
    case Opcode::kTuple: {
      const auto at = in.As<op::Tuple>();
      const auto ids = source.As<op::Tuple>();
      std::vector<Value> elements;
      for (size_t i = 0; i < at.elements().size(); ++i) {
        INGOT_ASSIGN_OR_RETURN(Value value, Box(type_of(ids.elements()[i]), frame + at.elements()[i]));
        elements.push_back(std::move(value));
      }
      Drop(type_of(ids.dst()), frame + at.dst());
      frame[at.dst()] = WordOf(new TupleObject(ValueKind::kTuple, std::move(elements)));
      return Status();
    }
    case Opcode::kTupleGet: {
      const auto at = in.As<op::TupleGet>();
      const auto ids = source.As<op::TupleGet>();
      const auto* tuple = static_cast<const TupleObject*>(ObjectOf(frame[at.tuple()]));
      const Value value = tuple->elements[static_cast<size_t>(at.index())];
      Drop(type_of(ids.dst()), frame + at.dst());
      return Unbox(type_of(ids.dst()), frame + at.dst(), value);
    }
    case Opcode::kSome: {
      const auto at = in.As<op::Some>();
      const auto ids = source.As<op::Some>();
      INGOT_ASSIGN_OR_RETURN(Value value, Box(type_of(ids.value()), frame + at.value()));
      Drop(type_of(ids.dst()), frame + at.dst());
      frame[at.dst()] = WordOf(new TupleObject(ValueKind::kOptional, {std::move(value)}));
      return Status();
    }
    case Opcode::kNone: {
      const auto at = in.As<op::None>();
      const auto ids = source.As<op::None>();
      Drop(type_of(ids.dst()), frame + at.dst());
      frame[at.dst()] = WordOf(new TupleObject(ValueKind::kOptional, {Value()}));
      return Status();
    }
    case Opcode::kIsSome: {
      const auto at = in.As<op::IsSome>();
      const auto* optional = static_cast<const TupleObject*>(ObjectOf(frame[at.value()]));
      frame[at.dst()] = std::holds_alternative<std::monostate>(optional->elements[0]) ? 0 : 1;
      return Status();
    }
    case Opcode::kUnwrap: {
      const auto at = in.As<op::Unwrap>();
      const auto ids = source.As<op::Unwrap>();
      const Value value = static_cast<const TupleObject*>(ObjectOf(frame[at.value()]))->elements[0];
      if (std::holds_alternative<std::monostate>(value))
        return Failed({DescribeRegister(function, ids.value()), ": the optional is empty"});
      Drop(type_of(ids.dst()), frame + at.dst());
      return Unbox(type_of(ids.dst()), frame + at.dst(), value);
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

Status Interpreter::MakeView(const Record& record, const op::View<FrameOffset>& in, const op::View<>& source,
                             int64_t* frame) {
  const Function& function = *record.linked->function;
  const std::span<const int64_t> words(frame, static_cast<size_t>(record.linked->frame.num_words));
  const Type& to = function.TypeOf(source.dst());
  const Type& from = function.TypeOf(source.src());
  const int64_t* from_slot = frame + in.src();
  int64_t dims[kMaxTensorRank];
  INGOT_ASSIGN_OR_RETURN(const int64_t bytes, EvaluateDims(in.dims(), words, to.dtype, dims));
  INGOT_ASSIGN_OR_RETURN(const int64_t offset, in.offset_bytes().Evaluate(words));
  INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(from, from_slot));
  if (offset < 0 || offset > view.size_bytes || bytes > view.size_bytes - offset) {
    return Failed({"a view of ", bytes, " bytes at byte ", offset, " of ", DescribeRegister(function, source.src()),
                   ", ", view.TypeToString()});
  }
  if (offset % std::max(1, to.dtype.total_bits() / 8) != 0) {
    return Failed({"a view at byte ", offset, " is not aligned to its elements"});
  }
  auto* owner = OwnerOf(from_slot);
  if (owner != nullptr) owner->Retain();
  auto* data = static_cast<std::byte*>(view.data) + offset;
  Drop(to, frame + in.dst());
  WriteTensor(frame + in.dst(), data, owner, {dims, in.dims().size()});
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

Status Interpreter::Load(const Record& record, int64_t* out, RegisterId source, const int64_t* tensor,
                         const DimCode& index, const int64_t* frame) const {
  const Function& function = *record.linked->function;
  const Type& type = function.TypeOf(source);
  const std::span<const int64_t> words(frame, static_cast<size_t>(record.linked->frame.num_words));
  INGOT_ASSIGN_OR_RETURN(const int64_t at, index.Evaluate(words));
  INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(type, tensor));
  if (at < 0 || at >= view.num_elements) {
    return Failed({"loads element ", at, " of ", DescribeRegister(function, source), ", ", view.TypeToString()});
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
Status Interpreter::Match(const Record& record, const op::Match<FrameOffset>& in, const op::Match<>& source,
                          int64_t* frame) {
  const Function& function = *record.linked->function;
  const Type& to = function.TypeOf(source.dst());
  const Type& from = function.TypeOf(source.src());
  int64_t* const to_slot = frame + in.dst();
  const int64_t* const from_slot = frame + in.src();
  const std::span<const int64_t> slots(frame, function.signature.symbols.size());  // symbols are a frame's first words
  const auto mismatch = [&](Text got) {
    return Status(StatusCode::kBadInput, {DescribeRegister(function, source.src()), ": expected ",
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
