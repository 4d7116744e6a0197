// The warm path of a call: from the context through a frame into a function and out again, and from one function of the
// program into another. A part of vm/run/context.h and vm/run/interpreter.h, in one file and compiled for speed, so that
// functions which are called once per invocation are inlined; the failures are marked cold.
#include <algorithm>
#include <new>

#include "vm/program/limits.h"
#include "vm/run/call_failures.h"
#include "vm/run/context.h"
#include "vm/run/frame_words.h"
#include "vm/run/interpreter.h"

namespace ingot::vm {

bool Overlap(const TensorView& a, const TensorView& b) {
  if (a.num_elements == 0 || b.num_elements == 0) return false;
  const auto x = reinterpret_cast<uintptr_t>(a.data), y = reinterpret_cast<uintptr_t>(b.data);
  const TensorView& lower = x < y ? a : b;
  const int64_t span = lower.is_compact ? lower.size_bytes : lower.SpanBytes();
  return (x < y ? y - x : x - y) < static_cast<uintptr_t>(span);
}

namespace {

bool IsAligned(const void* data, int64_t power_of_two) {
  return (reinterpret_cast<uintptr_t>(data) & static_cast<uintptr_t>(power_of_two - 1)) == 0;
}

// Whether both are the same tensor in the same memory.
bool IsSame(const TensorView& a, const TensorView& b) {
  return a.data == b.data && a.dtype == b.dtype && a.rank == b.rank && a.dims == b.dims && a.strides == b.strides;
}

// The registers that take the results of a call of a function or of a closure.
template <typename Register>
IdList<Register> ResultsOf(const BasicInstruction<Register>& call) {
  return call.opcode == Opcode::kCallFunction ? call.template As<op::CallFunction>().results()
                                              : call.template As<op::CallClosure>().results();
}

}  // namespace

// ---- activations

Result<Context::Activation*> Context::Acquire(const LinkedFunction& linked, const int64_t* symbols) {
  Activation* activation = nullptr;
  for (const auto& candidate : activations_[linked.id]) {
    if (!candidate->in_use) {
      activation = candidate.get();
      break;
    }
  }
  if (activation == nullptr) {
    auto fresh = std::make_unique<Activation>();
    fresh->linked = &linked;
    fresh->arguments.resize(linked.num_arguments);
    fresh->ints.resize(linked.num_ints);
    fresh->arenas.resize(linked.function->plan.arenas.size());
    fresh->symbols.reserve(linked.function->signature.symbols.size());
    activation = activations_[linked.id].emplace_back(std::move(fresh)).get();
  }
  const size_t num_symbols = linked.function->signature.symbols.size();
  const bool is_warm =
      activation->prepared && std::equal(activation->symbols.begin(), activation->symbols.end(), symbols);
  if (!is_warm) {
    activation->prepared = false;
    INGOT_RETURN_IF_ERROR(Prepare(*activation, symbols));
    activation->symbols.assign(symbols, symbols + num_symbols);
    activation->prepared = true;
  }
  activation->in_use = true;
  return activation;
}

// ---- frames

[[gnu::always_inline]] inline Status Interpreter::PushFrame(const LinkedFunction& linked) {
  const int64_t base = records_.empty() ? 0 : records_.back().base + records_.back().linked->frame.num_words;
  const int64_t end = base + linked.frame.num_words;
  if (static_cast<int64_t>(records_.size()) >= kMaxCallDepth) {
    return CallsTooDeep(linked);
  }
  if (end > kMaxStackWords) {
    return FramesTooLarge(linked, records_.size() + 1);
  }
  std::vector<int64_t>& stack = context_.stack_;
  if (end > static_cast<int64_t>(stack.size())) [[unlikely]]
    stack.resize(static_cast<size_t>(std::max(end, std::min(2 * end, kMaxStackWords))));
  int64_t* frame = stack.data() + base;
  for (uint32_t offset : linked.counted) frame[offset] = 0;
  for (uint32_t offset : linked.tensor_owners) frame[offset] = 0;
  records_.push_back({&linked, base});
  return Status();
}

[[gnu::always_inline]] inline void Interpreter::PopFrame() {
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

inline void Interpreter::Unwind() {
  while (!records_.empty()) PopFrame();
  write_backs_.clear();
  copies_.clear();
  returned_ = {};
  returned_source_ = {};
}

// ---- parameters

// Applies the rules that bind symbols, or those that compare.
template <bool kBinds>
Status Interpreter::ApplyRules(const LinkedFunction& linked, int64_t* frame) const {
  const Signature& signature = linked.function->signature;
  for (size_t p = 0; p < linked.parameters.size(); ++p) {
    const std::vector<DimRule>& rules = linked.parameters[p].dims;
    const int64_t* const extents = ExtentsOf(linked, frame, p);
    for (size_t axis = 0; axis < rules.size(); ++axis) {
      const DimRule& rule = rules[axis];
      if (rule.kind == DimRule::Kind::kAny || (rule.kind == DimRule::Kind::kBind) != kBinds) continue;
      const int64_t extent = extents[axis];
      int64_t expected = rule.value;
      if constexpr (kBinds) {
        const Symbol& symbol = signature.symbols[static_cast<size_t>(rule.value)];
        frame[rule.value] = extent;  // symbols are the first words of a frame
        if (extent >= symbol.min && extent <= symbol.max) continue;
      } else if (rule.kind == DimRule::Kind::kCompare) {
        INGOT_ASSIGN_OR_RETURN(expected, rule.code.Evaluate({frame, signature.symbols.size()}));
      }
      if (kBinds || expected != extent) return DimMismatch(linked, frame, p, axis, extent, expected);
    }
  }
  return Status();
}

Status Interpreter::BindStates(const LinkedFunction& linked, int64_t* frame) const {
  const Signature& signature = linked.function->signature;
  for (size_t i = 0; i < signature.symbols.size(); ++i) {
    const Symbol& symbol = signature.symbols[i];
    if (!symbol.state) continue;
    const int64_t value = *static_cast<const int64_t*>(context_.states_[symbol.state->value].data());
    frame[i] = value;
    if (value >= symbol.min && value <= symbol.max) continue;
    return StateOutsideOfRange(*linked.function, symbol, context_.executable_->program().states[symbol.state->value],
                               value);
  }
  return Status();
}

[[gnu::always_inline]] inline Status Interpreter::BindParameters(Record& record) {
  const LinkedFunction& linked = *record.linked;
  int64_t* frame = FrameOf(record);
  const bool has_symbols = !linked.function->signature.symbols.empty();
  if (has_symbols && !context_.states_.empty()) INGOT_RETURN_IF_ERROR(BindStates(linked, frame));
  // Dims that are lone symbols are bound first; then the other dims are compared.
  if (has_symbols) INGOT_RETURN_IF_ERROR(ApplyRules<true>(linked, frame));
  if (!linked.parameters.empty()) INGOT_RETURN_IF_ERROR(ApplyRules<false>(linked, frame));
  if (!linked.counted.empty()) INGOT_RETURN_IF_ERROR(CheckObjects(linked, frame));
  if (!linked.needs_activation) return Status();
  Result<Context::Activation*> activation = context_.Acquire(linked, frame);
  if (!activation.ok()) [[unlikely]]
    return InFunction(std::move(activation).status(), *linked.function);
  record.activation = *activation;
  return Status();
}

Status Interpreter::StageTensor(const LinkedFunction& linked, size_t parameter, const TensorView& view, int64_t* slot) {
  const Type& type = linked.function->signature.params[parameter].type;
  const DeviceId device = context_.devices_[type.device].device->id();
  const bool is_reachable = IsReachable(view.device, device);
  const bool is_taken = view.dtype == type.dtype && view.rank == type.rank() && is_reachable && view.is_compact &&
                        IsAligned(view.data, linked.parameters[parameter].alignment) &&
                        !(view.is_read_only && type.storage == Storage::kBorrowedMut);
  if (!is_taken) return StageCopy(linked, parameter, view, is_reachable, slot);
  WriteTensor(slot, view.data, nullptr, view.shape());
  return Status();
}

// ---- tensors that the caller owns

[[gnu::always_inline]] inline Status Interpreter::EnterTensors(const LinkedFunction& linked,
                                                               std::span<const TensorView> inputs,
                                                               std::span<const TensorView> outputs) {
  const Function& function = *linked.function;
  const Signature& signature = function.signature;
  if (inputs.size() != signature.params.size() || outputs.size() != signature.results.size()) {
    return WrongCounts(function, inputs.size(), outputs.size());
  }
  INGOT_RETURN_IF_ERROR(PushFrame(linked));
  Record& record = records_.back();
  int64_t* frame = FrameOf(record);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!signature.params[i].type.is_tensor()) return ParameterMismatch(function, i, "a tensor");
    int64_t* const slot = frame + linked.frame.offsets[signature.symbols.size() + i];
    INGOT_RETURN_IF_ERROR(StageTensor(linked, i, inputs[i], slot));
  }
  INGOT_RETURN_IF_ERROR(BindParameters(record));
  if (!inputs.empty()) INGOT_RETURN_IF_ERROR(CheckWrittenParameters(linked, frame));
  return outputs.empty() ? Status() : CheckOutputs(linked, inputs, outputs);
}

Status Interpreter::CheckOutputs(const LinkedFunction& linked, std::span<const TensorView> inputs,
                                 std::span<const TensorView> outputs) {
  const Function& function = *linked.function;
  const std::span<const int64_t> symbols(FrameOf(records_.back()), function.signature.symbols.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Type& type = function.signature.results[i].type;
    const TensorView& view = outputs[i];
    bool agrees = type.is_tensor() && view.dtype == type.dtype && view.rank == type.rank();
    for (size_t axis = 0; agrees && axis < type.dims.size(); ++axis) {
      if (!type.dims[axis]) continue;
      INGOT_ASSIGN_OR_RETURN(const int64_t expected, type.dims[axis]->Evaluate(symbols));
      agrees = view.dims[axis] == expected;
    }
    if (!agrees) {
      return OutputMismatch(function, i, symbols, view);
    }
    if (view.is_read_only) return OutputRefused(function, i, "the tensor is read-only");
    if (!view.device.is_host_accessible()) return OutputElsewhere(function, i, view);
    for (size_t p = 0; p < inputs.size(); ++p) {
      if (!Overlap(view, inputs[p])) continue;
      const SharedOutput pair{static_cast<uint32_t>(i), static_cast<uint32_t>(p)};
      if (std::ranges::find(linked.shared_outputs, pair) != linked.shared_outputs.end() && IsSame(view, inputs[p])) {
        continue;
      }
      return OutputOverlaps(function, i, p);
    }
    for (size_t k = 0; k < i; ++k) {
      if (Overlap(view, outputs[k])) return OutputRefused(function, i, "the tensor overlaps another output");
    }
  }
  return Status();
}

Status Interpreter::CopyResults(std::span<const TensorView> outputs) {
  const Record& record = records_.back();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int64_t* slot = FrameOf(record) + returned_[i];
    if (PointerOf(slot[0]) == outputs[i].data && OwnerOf(slot) == nullptr) continue;  // written in place
    const Type& type = record.linked->function->TypeOf(returned_source_[i]);
    INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(type, slot));
    if (!std::equal(view.shape().begin(), view.shape().end(), outputs[i].shape().begin(), outputs[i].shape().end())) {
      return ResultMismatch(*record.linked->function, i, view, outputs[i]);
    }
    if (OwnerOf(slot) != nullptr) {
      copies_.push_back({view, outputs[i]});
    } else {  // in another output, which may be written before this is read
      INGOT_RETURN_IF_ERROR(StageResult(view, type, outputs[i]));
    }
  }
  for (const Copy& copy : copies_) INGOT_RETURN_IF_ERROR(CopyElements(copy.from, copy.to));
  return Status();
}

// ---- values

Status Interpreter::Enter(const LinkedFunction& linked, std::span<const Value> arguments) {
  const Function& function = *linked.function;
  if (arguments.size() != function.signature.params.size()) {
    return WrongArgumentCount(function, arguments.size());
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

// ---- calls

Status Interpreter::EnterCallee(const LinkedFunction& callee, IdList<FrameOffset> args,
                                IdList<RegisterId> source_args) {
  const Record caller = records_.back();
  INGOT_RETURN_IF_ERROR(PushFrame(callee));
  Record& record = records_.back();
  int64_t* frame = FrameOf(record);
  const int64_t* caller_frame = FrameOf(caller);
  const size_t num_symbols = callee.function->signature.symbols.size();
  const size_t first = num_symbols + callee.function->signature.params.size() - args.size();  // behind captures
  for (size_t i = 0; i < args.size(); ++i) {
    const Type& param = callee.function->registers[first + i];
    const Type& argument = caller.linked->function->TypeOf(source_args[i]);
    CopyRegister(param, frame + callee.frame.offsets[first + i], argument, caller_frame + args[i]);
  }
  return Status();
}

Status Interpreter::EnterFunction(const op::CallFunction<FrameOffset>& in, const op::CallFunction<>& source) {
  const LinkedFunction& callee = *context_.executable_->linked().functions[in.function().value];
  INGOT_RETURN_IF_ERROR(EnterCallee(callee, in.args(), source.args()));
  return Begun(BindParameters(records_.back()));
}

// Removes the callee's frame after a failure to begin its call, so that the failure is reported in the caller.
Status Interpreter::Begun(Status status) {
  if (!status.ok()) PopFrame();
  return status;
}

Status Interpreter::EnterClosure(const op::CallClosure<FrameOffset>& in, const op::CallClosure<>& source) {
  const auto* closure = static_cast<const ClosureObject*>(ObjectOf(FrameOf(records_.back())[in.closure()]));
  if (closure->program != &context_.executable_->program()) return ForeignClosure();
  const LinkedFunction& callee = *context_.executable_->linked().functions[closure->function.value];
  INGOT_RETURN_IF_ERROR(EnterCallee(callee, in.args(), source.args()));
  Record& record = records_.back();
  int64_t* frame = FrameOf(record);
  const size_t num_symbols = callee.function->signature.symbols.size();
  for (size_t i = 0; i < closure->captures.size(); ++i) {
    const Type& param = callee.function->registers[num_symbols + i];
    int64_t* slot = frame + callee.frame.offsets[num_symbols + i];
    if (param.is_tensor()) {  // borrowed: the closure's register keeps it alive
      const Tensor& tensor = std::get<Tensor>(closure->captures[i]);
      WriteTensor(slot, tensor.data(), nullptr, tensor.dims());
    } else {
      INGOT_RETURN_IF_ERROR(Begun(Unbox(param, slot, closure->captures[i])));
    }
  }
  return Begun(BindParameters(record));
}

// Copies the results into the caller's registers and removes the frame.
Status Interpreter::Leave(IdList<FrameOffset> values, IdList<RegisterId> source_values) {
  const Record callee = records_.back();
  const Record& caller = records_[records_.size() - 2];
  const int64_t* frame = FrameOf(callee);
  int64_t* caller_frame = FrameOf(caller);
  const IdList<FrameOffset> results = ResultsOf(*caller.call);
  const IdList<RegisterId> source_results = ResultsOf(*caller.source);
  for (size_t i = 0; i < results.size(); ++i) {
    const Type& to = caller.linked->function->TypeOf(source_results[i]);
    const Type& from = callee.linked->function->TypeOf(source_values[i]);
    Drop(to, caller_frame + results[i]);
    CopyRegister(to, caller_frame + results[i], from, frame + values[i]);
  }
  PopFrame();
  return Status();
}

// ---- invocations

inline Status Context::Start(const std::atomic<bool>* cancelled) {
  if (running_) return RunsAlready();
  running_ = true;
  failure_place_.function.clear();
  failure_place_.operation.clear();
  if (cancelled == nullptr) {
    interrupt_.store(kNotInterrupted, std::memory_order_relaxed);
  } else {
    // The canceller sets the flag and then calls Cancel. Either this load sees the flag, or Cancel comes after this
    // store: all four accesses are sequentially consistent.
    interrupt_.store(kNotInterrupted);
    if (cancelled->load()) interrupt_.store(kInterruptCancelled);
  }
  if (deadline_seconds_ <= 0) return Status();
  const auto duration =
      std::chrono::duration_cast<DeadlineTimer::Clock::duration>(std::chrono::duration<double>(deadline_seconds_));
  Status status = executable_->instance()->timer().Arm(&interrupt_, DeadlineTimer::Clock::now() + duration);
  is_armed_ = status.ok();
  running_ = status.ok();
  return status;
}

inline Status Context::Stop(Status status) {
  if (std::exchange(is_armed_, false)) executable_->instance()->timer().Disarm(&interrupt_);
  staging_.clear();
  running_ = false;
  return status.ok() ? Status() : InFile(std::move(status), *executable_);
}

// An out-of-memory status, with the place where it happened if there is memory for that text.
[[gnu::cold]] Status Context::OutOfMemoryInCall() {
  try {
    return interpreter_->AtPlace(Status::OutOfMemory("out of memory"));
  } catch (const std::bad_alloc&) {
    return Status::OutOfMemory();
  }
}

// Runs the body of an invocation and unwinds all frames. std::bad_alloc, the only exception of the VM's code, becomes a
// status.
template <typename Body>
Status Context::Guarded(Body body) {
  Status status;
  try {
    status = body();
  } catch (const std::bad_alloc&) {
    status = OutOfMemoryInCall();
  }
  interpreter_->Unwind();
  return Stop(std::move(status));
}

Result<std::vector<Value>> Context::Invoke(const Function& function, std::span<const Value> arguments,
                                           const std::atomic<bool>* cancelled) {
  INGOT_RETURN_IF_ERROR(Start(cancelled));
  const auto index = static_cast<size_t>(&function - executable_->program().functions.data());
  const LinkedFunction& linked = *executable_->linked().functions[index];
  std::vector<Value> results;
  INGOT_RETURN_IF_ERROR(Guarded([&]() -> Status {
    INGOT_RETURN_IF_ERROR(interpreter_->Enter(linked, arguments));
    INGOT_RETURN_IF_ERROR(interpreter_->Run({}));
    return interpreter_->TakeResults(&results);
  }));
  return results;
}

Status Context::InvokeInto(const Function& function, std::span<const TensorView> inputs,
                           std::span<const TensorView> outputs, const std::atomic<bool>* cancelled) {
  INGOT_RETURN_IF_ERROR(Start(cancelled));
  const auto index = static_cast<size_t>(&function - executable_->program().functions.data());
  const LinkedFunction& linked = *executable_->linked().functions[index];
  return Guarded([&]() -> Status {
    INGOT_RETURN_IF_ERROR(interpreter_->EnterTensors(linked, inputs, outputs));
    INGOT_RETURN_IF_ERROR(interpreter_->Run(outputs));
    return outputs.empty() ? Status() : interpreter_->CopyResults(outputs);
  });
}

}  // namespace ingot::vm
