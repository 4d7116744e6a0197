// Handlers of the instructions that stay in their frame. Kernel calls, jumps, calls of functions and returns are the
// loop's (interpreter.cc).
#include "vm/run/instruction_steps.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "vm/program/limits.h"
#include "vm/run/frame_words.h"
#include "vm/run/register_values.h"
#include "vm/verify/failure_text.h"
#include "vm/verify/type_rules.h"

namespace ingot::vm {
namespace {

Status Failed(Text message) { return Status(StatusCode::kFailed, message); }

}  // namespace

Status InstructionSteps::Run(const CallRecord& record, const FrameInstruction& in, const Instruction& source,
                             int64_t* frame) {
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
      return outside_calls_.CallBuiltin(record, in.As<op::CallBuiltin>(), source.As<op::CallBuiltin>(), frame);
    case Opcode::kMakeClosure:
      return MakeClosure(record, in.As<op::MakeClosure>(), source.As<op::MakeClosure>(), frame);
    case Opcode::kCallExternal:
      return outside_calls_.CallExternal(record, in.As<op::CallExternal>(), source.As<op::CallExternal>(), frame);
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
      frame[at.dst()] = WordOf(new StringObject(&devices_.pool(0), at.value()));
      return Status();
    }
    case Opcode::kConstTensor: {
      const auto at = in.As<op::ConstTensor>();
      const uint32_t id = at.constant().value;
      const uint8_t device = type_of(source.As<op::ConstTensor>().dst()).device;
      WriteTensor(frame + at.dst(), ConstantOn(executable_, devices_, device, id), nullptr,
                  executable_.program().constants[id].dims);
      return Status();
    }
    case Opcode::kState: {
      const auto at = in.As<op::State>();
      const Tensor& state = states_[at.state().value];
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
        INGOT_ASSIGN_OR_RETURN(const Value value, Box(devices_, type_of(ids.src()), frame + at.src()));
        Drop(type_of(ids.dst()), frame + at.dst());
        return Unbox(devices_, type_of(ids.dst()), frame + at.dst(), value);
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
      return Allocate(type_of(ids.dst()), at.dims(), words, frame + at.dst(), nullptr, is_zeroed());
    }
    case Opcode::kAllocOutput: {
      const auto at = in.As<op::AllocOutput>();
      const auto ids = source.As<op::AllocOutput>();
      const auto result = static_cast<size_t>(at.result());
      const TensorView* bound = frames_.depth() == 1 ? results_.output(result) : nullptr;
      Status status = Allocate(type_of(ids.dst()), at.dims(), words, frame + at.dst(), bound, is_zeroed());
      if (status.ok()) return status;
      return std::move(status).WithContext({"output \"", function.signature.results[result].name, "\""});
    }
    case Opcode::kCopy: {
      const auto at = in.As<op::Copy>();
      const auto ids = source.As<op::Copy>();
      return Copy(type_of(ids.dst()), frame + at.dst(), type_of(ids.src()), frame + at.src());
    }
    case Opcode::kCopyInto: {
      const auto at = in.As<op::CopyInto>();
      const auto ids = source.As<op::CopyInto>();
      return CopyInto(type_of(ids.dst()), frame + at.dst(), type_of(ids.src()), frame + at.src());
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
      if (DeviceCode* const code = devices_.code(); code != nullptr) return code->Wait();
      return devices_.device(static_cast<size_t>(in.As<op::Sync>().device())).Synchronize({});
    case Opcode::kTuple: {
      const auto at = in.As<op::Tuple>();
      const auto ids = source.As<op::Tuple>();
      std::vector<Value> elements;
      for (size_t i = 0; i < at.elements().size(); ++i) {
        INGOT_ASSIGN_OR_RETURN(Value value, Box(devices_, type_of(ids.elements()[i]), frame + at.elements()[i]));
        elements.push_back(std::move(value));
      }
      Drop(type_of(ids.dst()), frame + at.dst());
      frame[at.dst()] = WordOf(new TupleObject(&devices_.pool(0), ValueKind::kTuple, std::move(elements)));
      return Status();
    }
    case Opcode::kTupleGet: {
      const auto at = in.As<op::TupleGet>();
      const auto ids = source.As<op::TupleGet>();
      const auto* tuple = static_cast<const TupleObject*>(ObjectOf(frame[at.tuple()]));
      const Value value = tuple->elements()[static_cast<size_t>(at.index())];
      Drop(type_of(ids.dst()), frame + at.dst());
      return Unbox(devices_, type_of(ids.dst()), frame + at.dst(), value);
    }
    case Opcode::kSome: {
      const auto at = in.As<op::Some>();
      const auto ids = source.As<op::Some>();
      INGOT_ASSIGN_OR_RETURN(Value value, Box(devices_, type_of(ids.value()), frame + at.value()));
      Drop(type_of(ids.dst()), frame + at.dst());
      frame[at.dst()] = WordOf(new TupleObject(&devices_.pool(0), ValueKind::kOptional, {std::move(value)}));
      return Status();
    }
    case Opcode::kNone: {
      const auto at = in.As<op::None>();
      const auto ids = source.As<op::None>();
      Drop(type_of(ids.dst()), frame + at.dst());
      frame[at.dst()] = WordOf(new TupleObject(&devices_.pool(0), ValueKind::kOptional, {Value()}));
      return Status();
    }
    case Opcode::kIsSome: {
      const auto at = in.As<op::IsSome>();
      const auto* optional = static_cast<const TupleObject*>(ObjectOf(frame[at.value()]));
      frame[at.dst()] = std::holds_alternative<std::monostate>(optional->elements()[0]) ? 0 : 1;
      return Status();
    }
    case Opcode::kUnwrap: {
      const auto at = in.As<op::Unwrap>();
      const auto ids = source.As<op::Unwrap>();
      const Value value = static_cast<const TupleObject*>(ObjectOf(frame[at.value()]))->elements()[0];
      if (std::holds_alternative<std::monostate>(value))
        return Failed({DescribeRegister(function, ids.value()), ": the optional is empty"});
      Drop(type_of(ids.dst()), frame + at.dst());
      return Unbox(devices_, type_of(ids.dst()), frame + at.dst(), value);
    }
  }
  INGOT_UNREACHABLE();
}

Status InstructionSteps::Allocate(const Type& type, std::span<const DimCode> dims, std::span<const int64_t> words,
                                  int64_t* slot, const TensorView* bound, bool is_zeroed) {
  int64_t extents[kMaxTensorRank];
  INGOT_ASSIGN_OR_RETURN(const int64_t bytes, EvaluateDims(dims, words, type.dtype, extents));
  const std::span<const int64_t> shape(extents, dims.size());
  if (bound != nullptr) {
    if (!std::equal(shape.begin(), shape.end(), bound->dims.begin(), bound->dims.begin() + bound->rank)) {
      return Status(StatusCode::kBadInput,
                    {"expected ", ShapeToString(type.dtype, shape), ", got a tensor ", bound->TypeToString()});
    }
    // An output that is strided or not aligned, or elsewhere than the result, is copied to at the end.
    const bool is_there = Devices::kHaveCode ? IsReachable(bound->device, devices_.id(type.device)) : type.device == 0;
    if (is_there && bound->is_compact && bound->IsAligned(kPlanAlignment)) {
      Drop(type, slot);
      WriteTensor(slot, bound->data, nullptr, shape);
      return Status();
    }
  }
  INGOT_ASSIGN_OR_RETURN(Ref<ingot::Storage> storage, devices_.pool(type.device).AllocateStorage(bytes));
  if (is_zeroed) INGOT_RETURN_IF_ERROR(devices_.ZeroMemory(type.device, storage->data(), bytes));
  Drop(type, slot);
  void* data = storage->data();
  WriteTensor(slot, data, storage.Detach(), shape);
  return Status();
}

Status InstructionSteps::MakeView(const CallRecord& record, const op::View<FrameOffset>& in, const op::View<>& source,
                                  int64_t* frame) {
  const Function& function = *record.linked->function;
  const std::span<const int64_t> words(frame, static_cast<size_t>(record.linked->frame.num_words));
  const Type& to = function.TypeOf(source.dst());
  const Type& from = function.TypeOf(source.src());
  const int64_t* from_slot = frame + in.src();
  int64_t dims[kMaxTensorRank];
  INGOT_ASSIGN_OR_RETURN(const int64_t bytes, EvaluateDims(in.dims(), words, to.dtype, dims));
  INGOT_ASSIGN_OR_RETURN(const int64_t offset, in.offset_bytes().Evaluate(words));
  INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(devices_, from, from_slot));
  if (offset < 0 || offset > view.size_bytes || bytes > view.size_bytes - offset) {
    return Failed({"a view of ", bytes, " bytes at byte ", offset, " of ", DescribeRegister(function, source.src()),
                   ", ", view.TypeToString()});
  }
  auto* data = static_cast<std::byte*>(view.data) + offset;
  // What is viewed may be a view itself, which begins inside of one of these elements.
  if (offset % std::max(1, to.dtype.total_bits() / 8) != 0 ||
      reinterpret_cast<uintptr_t>(data) % std::max(1, to.dtype.bits / 8) != 0) {
    return Failed({"a view at byte ", offset, " is not aligned to its elements"});
  }
  auto* owner = OwnerOf(from_slot);
  if (owner != nullptr) owner->Retain();
  Drop(to, frame + in.dst());
  WriteTensor(frame + in.dst(), data, owner, {dims, in.dims().size()});
  return Status();
}

Status InstructionSteps::Copy(const Type& to, int64_t* to_slot, const Type& from, const int64_t* from_slot) {
  INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(devices_, from, from_slot));
  INGOT_ASSIGN_OR_RETURN(Ref<ingot::Storage> storage, devices_.pool(to.device).AllocateStorage(view.size_bytes));
  void* const data = storage->data();
  int64_t fresh[kTensorHeadWords + kMaxTensorRank];
  WriteTensor(fresh, data, nullptr, view.shape());
  INGOT_RETURN_IF_ERROR(CopyInto(to, fresh, from, from_slot));
  Drop(to, to_slot);
  WriteTensor(to_slot, data, storage.Detach(), view.shape());
  return Status();
}

Status InstructionSteps::CopyInto(const Type& to, const int64_t* to_slot, const Type& from, const int64_t* from_slot) {
  INGOT_ASSIGN_OR_RETURN(const TensorView target, ViewOf(devices_, to, to_slot));
  INGOT_ASSIGN_OR_RETURN(const TensorView origin, ViewOf(devices_, from, from_slot));
  if (!std::equal(target.shape().begin(), target.shape().end(), origin.shape().begin(), origin.shape().end())) {
    return Failed({"copies ", origin.TypeToString(), " into ", target.TypeToString()});
  }
  if (target.size_bytes == 0 || target.data == origin.data) return Status();
  if (Overlap(target, origin)) return Failed("copies between overlapping tensors");
  const auto size = target.size_bytes;
  Device& target_device = devices_.device(to.device);
  Device& origin_device = devices_.device(from.device);
  const bool to_host = target_device.id().is_host_accessible(), from_host = origin_device.id().is_host_accessible();
  if (to_host && from_host) {
    constexpr int64_t kPiece = 1 << 24;  // bytes
    for (int64_t at = 0; at < size; at += kPiece) {
      if (limits_.is_interrupted()) return limits_.Failure();
      std::memcpy(static_cast<std::byte*>(target.data) + at, static_cast<const std::byte*>(origin.data) + at,
                  static_cast<size_t>(std::min(kPiece, size - at)));
    }
    return Status();
  }
  if (from_host) return target_device.CopyFromHost(target.data, origin.data, size, {});
  if (to_host) {
    if (devices_.code() != nullptr) INGOT_RETURN_IF_ERROR(devices_.code()->Wait());
    INGOT_RETURN_IF_ERROR(origin_device.CopyToHost(target.data, origin.data, size, {}));
    return origin_device.Synchronize({});
  }
  if (to.device == from.device) return target_device.CopyWithin(target.data, origin.data, size, {});
  return Failed("copies between two devices that are not the host");
}

Status InstructionSteps::Load(const CallRecord& record, int64_t* out, RegisterId source, const int64_t* tensor,
                              const DimCode& index, const int64_t* frame) const {
  const Function& function = *record.linked->function;
  const Type& type = function.TypeOf(source);
  const std::span<const int64_t> words(frame, static_cast<size_t>(record.linked->frame.num_words));
  INGOT_ASSIGN_OR_RETURN(const int64_t at, index.Evaluate(words));
  INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(devices_, type, tensor));
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
Status InstructionSteps::Match(const CallRecord& record, const op::Match<FrameOffset>& in, const op::Match<>& source,
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
    INGOT_ASSIGN_OR_RETURN(const Value value, Box(devices_, from, from_slot));
    if (!HasType(value, to, slots, devices_.ids())) return mismatch(DescribeValue(value));
    Drop(to, to_slot);
    return Unbox(devices_, to, to_slot, value);
  }
  const int64_t* extents = from.is_tensor() ? from_slot + kTensorHeadWords : from_slot;
  for (size_t i = 0; i < to.dims.size(); ++i) {
    if (!to.dims[i]) continue;
    INGOT_ASSIGN_OR_RETURN(const int64_t expected, to.dims[i]->Evaluate(slots));
    if (expected == extents[i]) continue;
    if (from.is_tensor()) return mismatch(ShapeToString(from.dtype, {extents, to.dims.size()}));
    const Signature& signature = function.signature;
    return Status(StatusCode::kBadInput, {DescribeRegister(function, source.src()), ": dimension ", i, " is ",
                                          DescribeDim(from.dims[i], extents[i], signature, slots), ", expected ",
                                          DescribeDim(to.dims[i], expected, signature, slots)});
  }
  if (to_slot == from_slot) return Status();
  Drop(to, to_slot);
  CopyRegister(to, to_slot, from, from_slot);
  return Status();
}

Status InstructionSteps::MakeClosure(const CallRecord& record, const op::MakeClosure<FrameOffset>& in,
                                     const op::MakeClosure<>& source, int64_t* frame) {
  const Function& function = *record.linked->function;
  const FunctionId id = in.function();
  const Signature& callee = executable_.program().functions[id.value].signature;
  std::vector<Value> captures;
  for (size_t i = 0; i < in.captures().size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Value value, Box(devices_, function.TypeOf(source.captures()[i]), frame + in.captures()[i]));
    captures.push_back(std::move(value));
  }
  const std::vector<Dim> no_symbols(callee.symbols.size());
  Type type = Type::Scalar(ValueKind::kClosure);
  for (size_t i = captures.size(); i < callee.params.size(); ++i) {
    type.elements.push_back(SubstituteSymbols(callee.params[i].type, no_symbols));
  }
  for (const NamedType& result : callee.results) type.results.push_back(SubstituteSymbols(result.type, no_symbols));
  int64_t* slot = frame + in.dst();
  Drop(function.TypeOf(source.dst()), slot);
  *slot = WordOf(new ClosureObject(&devices_.pool(0), executable_.program(), id, std::move(type), std::move(captures)));
  return Status();
}

}  // namespace ingot::vm
