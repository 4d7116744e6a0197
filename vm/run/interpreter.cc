// The loop over linked code, and calls: from outside into a function and out again, and from one function of the
// program into another. This file is compiled for speed.
#include "vm/run/interpreter.h"

#include <new>

#include "runtime/caught_status.h"
#include "vm/run/call_failures.h"
#include "vm/run/frame_words.h"
#include "vm/run/register_values.h"

namespace ingot::vm {
namespace {

// The registers that take the results of a call of a function or of a closure.
template <typename Register>
IdList<Register> ResultsOf(const BasicInstruction<Register>& call) {
  return call.opcode == Opcode::kCallFunction ? call.template As<op::CallFunction>().results()
                                              : call.template As<op::CallClosure>().results();
}

}  // namespace

Interpreter::Interpreter(const CallEnvironment& environment)
    : environment_(environment),
      frames_(environment.devices.pool(0)),
      activations_(environment),
      arguments_(environment),
      results_(environment.devices),
      kernels_(environment),
      steps_(environment, frames_, results_),
      observers_(environment) {}

// ---- invocations

// The exception that is being handled, with the place where it happened if there is memory for that text.
[[gnu::cold]] Status Interpreter::CaughtInCall() {
  Status caught = CaughtStatus();
  if (DeviceCode* const code = environment_.devices.code(); code != nullptr) static_cast<void>(code->Wait());
  try {
    return frames_.AtPlace(std::move(caught), environment_.failure_place);
  } catch (const std::bad_alloc&) {
    return Status::OutOfMemory();
  }
}

// Runs the body of an invocation and drops all frames. Exceptions become a status: std::bad_alloc is the only one of the
// VM's code, functions of the embedder have others.
template <typename Body>
Status Interpreter::Guarded(Body body) {
  Status status;
  try {
    status = body();
  } catch (...) {
    status = CaughtInCall();
  }
  frames_.Clear();
  arguments_.Clear();
  results_.Clear();
  return status;
}

Status Interpreter::Invoke(const LinkedFunction& linked, std::span<const Value> arguments,
                           std::vector<Value>* results) {
  const Function& function = *linked.function;
  return Guarded([&]() -> Status {
    if (arguments.size() != function.signature.params.size()) return WrongArgumentCount(function, arguments.size());
    INGOT_RETURN_IF_ERROR(frames_.Push(linked));
    CallRecord& record = frames_.top();
    INGOT_RETURN_IF_ERROR(arguments_.Place(linked, frames_.FrameOf(record), arguments));
    INGOT_RETURN_IF_ERROR(Begin(record));
    INGOT_RETURN_IF_ERROR(arguments_.CheckWritten(linked, frames_.FrameOf(record)));
    INGOT_RETURN_IF_ERROR(Run());
    return results_.Take(linked, frames_.FrameOf(frames_.top()), results);
  });
}

Status Interpreter::InvokeInto(const LinkedFunction& linked, std::span<const TensorView> inputs,
                               std::span<const TensorView> outputs) {
  const Signature& signature = linked.function->signature;
  return Guarded([&]() -> Status {
    if (inputs.size() != signature.params.size() || outputs.size() != signature.results.size()) {
      return WrongCounts(*linked.function, inputs.size(), outputs.size());
    }
    INGOT_RETURN_IF_ERROR(frames_.Push(linked));
    CallRecord& record = frames_.top();
    int64_t* const frame = frames_.FrameOf(record);
    if (!inputs.empty()) INGOT_RETURN_IF_ERROR(arguments_.Place(linked, frame, inputs));
    INGOT_RETURN_IF_ERROR(Begin(record));
    if (!inputs.empty()) INGOT_RETURN_IF_ERROR(arguments_.CheckWritten(linked, frame));
    if (!outputs.empty()) INGOT_RETURN_IF_ERROR(results_.SetOutputs(linked, frame, inputs, outputs));
    INGOT_RETURN_IF_ERROR(Run());
    return outputs.empty() ? Status() : results_.CopyToOutputs(linked, frames_.FrameOf(frames_.top()));
  });
}

[[gnu::always_inline]] inline Status Interpreter::Run() {
  const bool is_observed = observers_.any();
  if (is_observed) {
    INGOT_RETURN_IF_ERROR(observers_.CheckParameters(*frames_.top().linked, frames_.FrameOf(frames_.top())));
  }
  Status status = is_observed ? Loop<true>() : Loop<false>();
  if (DeviceCode* const code = environment_.devices.code(); code != nullptr) {
    Status waited = code->Wait();  // after a failure too: the next invocation does not meet it
    if (status.ok()) status = std::move(waited);
  }
  if (!status.ok()) return frames_.AtPlace(std::move(status), environment_.failure_place);
  return arguments_.WriteBack();
}

// ---- calls within the program

[[gnu::always_inline]] inline Status Interpreter::Begin(CallRecord& record) {
  const LinkedFunction& linked = *record.linked;
  int64_t* frame = frames_.FrameOf(record);
  INGOT_RETURN_IF_ERROR(arguments_.Bind(linked, frame));
  if (!linked.needs_activation) return Status();
  Result<Activation*> activation = activations_.Acquire(linked, frame);
  if (!activation.ok()) [[unlikely]]
    return InFunction(std::move(activation).status(), *linked.function);
  record.activation = *activation;
  return Status();
}

Status Interpreter::PushCallee(const LinkedFunction& callee, IdList<FrameOffset> args, IdList<RegisterId> source_args) {
  const CallRecord caller = frames_.top();
  INGOT_RETURN_IF_ERROR(frames_.Push(callee));
  int64_t* frame = frames_.FrameOf(frames_.top());
  const int64_t* caller_frame = frames_.FrameOf(caller);
  const Signature& signature = callee.function->signature;
  const size_t first = signature.symbols.size() + signature.params.size() - args.size();  // behind captures
  for (size_t i = 0; i < args.size(); ++i) {
    const Type& param = callee.function->registers[first + i];
    const Type& argument = caller.linked->function->TypeOf(source_args[i]);
    CopyRegister(param, frame + callee.frame.offsets[first + i], argument, caller_frame + args[i]);
  }
  return Status();
}

Status Interpreter::PopOnFailure(Status status) {
  if (!status.ok()) frames_.Pop();
  return status;
}

Status Interpreter::EnterFunction(const op::CallFunction<FrameOffset>& in, const op::CallFunction<>& source) {
  const LinkedFunction& callee = *environment_.executable.linked().functions[in.function().value];
  INGOT_RETURN_IF_ERROR(PushCallee(callee, in.args(), source.args()));
  return PopOnFailure(Begin(frames_.top()));
}

Status Interpreter::EnterClosure(const op::CallClosure<FrameOffset>& in, const op::CallClosure<>& source) {
  const auto* closure = static_cast<const ClosureObject*>(ObjectOf(frames_.FrameOf(frames_.top())[in.closure()]));
  if (closure->program != &environment_.executable.program()) return ForeignClosure();
  const LinkedFunction& callee = *environment_.executable.linked().functions[closure->function.value];
  INGOT_RETURN_IF_ERROR(PushCallee(callee, in.args(), source.args()));
  CallRecord& record = frames_.top();
  int64_t* frame = frames_.FrameOf(record);
  const size_t num_symbols = callee.function->signature.symbols.size();
  for (size_t i = 0; i < closure->captures().size(); ++i) {
    const Type& param = callee.function->registers[num_symbols + i];
    int64_t* slot = frame + callee.frame.offsets[num_symbols + i];
    if (param.is_tensor()) {  // borrowed: the closure's register keeps it alive
      const Tensor& tensor = std::get<Tensor>(closure->captures()[i]);
      WriteTensor(slot, tensor.data(), nullptr, tensor.dims());
    } else {
      INGOT_RETURN_IF_ERROR(PopOnFailure(Unbox(environment_.devices, param, slot, closure->captures()[i])));
    }
  }
  return PopOnFailure(Begin(record));
}

void Interpreter::Leave(IdList<FrameOffset> values, IdList<RegisterId> source_values) {
  const CallRecord callee = frames_.top();
  const CallRecord& caller = frames_.caller();
  const int64_t* frame = frames_.FrameOf(callee);
  int64_t* caller_frame = frames_.FrameOf(caller);
  const IdList<FrameOffset> results = ResultsOf(*caller.call);
  const IdList<RegisterId> source_results = ResultsOf(*caller.source);
  for (size_t i = 0; i < results.size(); ++i) {
    const Type& to = caller.linked->function->TypeOf(source_results[i]);
    const Type& from = callee.linked->function->TypeOf(source_values[i]);
    Drop(to, caller_frame + results[i]);
    CopyRegister(to, caller_frame + results[i], from, frame + values[i]);
  }
  frames_.Pop();
}

// ---- the loop

// Runs a kernel call, or an instruction that stays in its frame, and tells the observers.
Status Interpreter::StepObserved(const LinkedInstruction& op, const CallRecord& record, int64_t* frame) {
  const bool is_kernel = op.op != LinkedOp::kInstruction;
  if (op.op == LinkedOp::kKernel) {
    INGOT_RETURN_IF_ERROR(kernels_.Prepare(*static_cast<const KernelCall*>(op.data), *record.activation, frame));
  }
  INGOT_ASSIGN_OR_RETURN(const bool runs, observers_.Before(op, record, frame));
  if (runs && is_kernel) {
    const auto& call = *static_cast<const KernelCall*>(op.data);
    DeviceCode* const code = environment_.devices.code();
    const bool is_timed = code != nullptr && call.is_launched;
    if (is_timed) INGOT_RETURN_IF_ERROR(code->StartTimer(*call.kernel));
    Status launched = kernels_.Launch(call, *record.activation);
    // Observers see what has ended.
    if (is_timed) {
      const Result<int64_t> duration_ns = code->StopTimer(*call.kernel);
      if (launched.ok()) launched = duration_ns.status();
      if (launched.ok()) observers_.set_duration_ns(*duration_ns);
    }
    INGOT_RETURN_IF_ERROR(std::move(launched));
    if (code != nullptr) INGOT_RETURN_IF_ERROR(code->Wait());
  } else if (runs) {
    const Instruction& source = record.linked->function->code[op.source];
    INGOT_RETURN_IF_ERROR(steps_.Run(record, *static_cast<const FrameInstruction*>(op.data), source, frame));
  }
  return observers_.After(op, record, frame);
}

template <bool kObserved>
Status Interpreter::Loop() {
  KernelContext& kernels = kernels_.context();
  CallLimits& limits = environment_.limits;
  for (;;) {  // once per change of frame
    CallRecord* record = &frames_.top();
    const LinkedFunction& linked = *record->linked;
    const LinkedInstruction* const code = linked.code.data();
    const LinkedInstruction* pc = code + record->pc;
    int64_t* const frame = frames_.FrameOf(*record);
    Activation* const activation = record->activation;
    void** const arguments = activation != nullptr ? activation->arguments.data() : nullptr;
    const int64_t* const ints = activation != nullptr ? activation->ints.data() : nullptr;
    // Stores the position in the record, where failures and returning callees read it.
    const auto at = [&] { record->pc = static_cast<uint32_t>(pc - code); };
    bool same_frame = true;
    while (same_frame) {
      const LinkedInstruction& op = *pc++;
      switch (op.op) {
        case LinkedOp::kKernelPrepared: {
          const auto& call = *static_cast<const KernelCall*>(op.data);
          if (limits.IsReached()) [[unlikely]] {
            at();
            return limits.Failure();
          }
          if constexpr (kObserved) {
            at();
            INGOT_RETURN_IF_ERROR(StepObserved(op, *record, frame));
            break;
          }
          if (kernels.Call(call.function, arguments + call.first_argument, ints + call.first_int) != 0) [[unlikely]] {
            at();
            return kernels_.Failure(*call.kernel);
          }
          break;
        }
        case LinkedOp::kKernel: {
          const auto& call = *static_cast<const KernelCall*>(op.data);
          if (limits.IsReached()) [[unlikely]] {
            at();
            return limits.Failure();
          }
          if constexpr (kObserved) {
            at();
            INGOT_RETURN_IF_ERROR(StepObserved(op, *record, frame));
            break;
          }
          at();
          INGOT_RETURN_IF_ERROR(kernels_.Run(call, *activation, frame));
          break;
        }
        case LinkedOp::kJump:
          pc = code + op.target;
          break;
        case LinkedOp::kJumpBack:
          if (limits.IsReached()) [[unlikely]] {
            at();
            return limits.Failure();
          }
          pc = code + op.target;
          break;
        case LinkedOp::kInstruction: {
          const auto& in = *static_cast<const FrameInstruction*>(op.data);
          const Instruction& source = linked.function->code[op.source];
          at();
          switch (in.opcode) {
            case Opcode::kBranch: {
              const auto branch = in.As<op::Branch>();
              const uint32_t target =
                  frame[branch.condition()] != 0 ? branch.then_target().value : branch.else_target().value;
              const bool is_back = target < static_cast<uint32_t>(pc - code);
              if (is_back && limits.IsReached()) return limits.Failure();
              pc = code + target;
              break;
            }
            case Opcode::kCallFunction:
            case Opcode::kCallClosure: {
              if (limits.IsReached()) return limits.Failure();
              record->call = &in;
              record->source = &source;
              if (in.opcode == Opcode::kCallFunction) {
                INGOT_RETURN_IF_ERROR(EnterFunction(in.As<op::CallFunction>(), source.As<op::CallFunction>()));
              } else {
                INGOT_RETURN_IF_ERROR(EnterClosure(in.As<op::CallClosure>(), source.As<op::CallClosure>()));
              }
              same_frame = false;
              break;
            }
            case Opcode::kReturn:
              if (frames_.depth() == 1) {
                results_.SetReturned(in.As<op::Return>().values(), source.As<op::Return>().values());
                return Status();
              }
              Leave(in.As<op::Return>().values(), source.As<op::Return>().values());
              same_frame = false;
              break;
            default: {
              // One of these may copy or zero much memory, and a function may have thousands of them in a row.
              if (limits.is_interrupted()) [[unlikely]]
                return limits.Failure();
              Status status = kObserved ? StepObserved(op, *record, frame) : steps_.Run(*record, in, source, frame);
              if (!status.ok()) return status;
              break;
            }
          }
          break;
        }
      }
    }
  }
}

}  // namespace ingot::vm
