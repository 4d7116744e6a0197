// The interpreter's loop over linked code, and kernel calls. This file is compiled for speed; the failures are marked
// cold.
#include "vm/run/interpreter.h"

#include <bit>

#include "vm/run/frame_words.h"
#include "vm/verify/failure_text.h"

namespace ingot::vm {
namespace {

[[gnu::cold]] Status FailedCall(Text message) { return Status(StatusCode::kFailed, message); }

[[gnu::cold]] Status ExtentDiffers(const Kernel& kernel, const ExtentCheck& check, int64_t got, int64_t expected) {
  return Status(StatusCode::kBadInput, {"kernel \"", kernel.name, "\", parameter \"", kernel.params[check.param].name,
                                        "\": axis ", check.axis, " is ", got, ", expected ", expected});
}

[[gnu::cold]] Status NotAligned(const Kernel& kernel, const KernelParam& param) {
  return FailedCall({"kernel \"", kernel.name, "\", parameter \"", param.name, "\": the tensor is not aligned to ",
                     param.alignment, " bytes"});
}

// A scalar argument as the kernel takes it: floats as the bits of their own width.
int64_t ScalarBits(int64_t word, DataType dtype) {
  if (dtype == DataType::Float(64) || !dtype.is_floating()) return word;
  return static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(word))));
}

}  // namespace

Status Interpreter::Run(std::span<const TensorView> outputs) {
  fuel_left_ = context_.options_.fuel > 0 ? context_.options_.fuel : INT64_MAX;
  const bool is_observed = context_.profiler_ || context_.instrument_ || context_.checks_finite_;
  if (context_.checks_finite_) INGOT_RETURN_IF_ERROR(CheckParametersFinite());
  Status status = is_observed ? Loop<true>(outputs) : Loop<false>(outputs);
  if (!status.ok()) return AtPlace(std::move(status));
  for (const Copy& back : write_backs_) INGOT_RETURN_IF_ERROR(CopyElements(back.from, back.to));
  return Status();
}

// Names the operation that a function is executing, for messages.
[[gnu::cold]] std::string Interpreter::OperationAt(const Record& record) {
  // The loop leaves pc behind the instruction that runs.
  const size_t at = record.pc > 0 && record.pc <= record.linked->code.size() ? record.pc - 1 : 0;
  const uint32_t source = record.linked->code.empty() ? 0 : record.linked->code[at].source;
  return DescribeInstruction(*record.linked->function, source);
}

// Puts the innermost function and operation in front of a failure's message, then who called: the nearest callers and
// the outermost one.
[[gnu::cold]] Status Interpreter::AtPlace(Status status) {
  constexpr size_t kNearest = 3;
  if (records_.empty()) return status;
  const Record& record = records_.back();
  const std::string operation = OperationAt(record);
  context_.failure_place_ = {record.linked->function->name, operation};
  std::string place = StrCat({"function \"", record.linked->function->name, "\", ", operation});
  const size_t callers = records_.size() - 1;
  for (size_t i = 0; i < callers; ++i) {
    if (i == kNearest && callers > kNearest + 1) {
      StrAppend(place, {" <- ", callers - kNearest - 1, " more calls"});
      i = callers - 1;
    }
    const Record& caller = records_[callers - 1 - i];
    StrAppend(place, {" <- \"", caller.linked->function->name, "\", ", OperationAt(caller)});
  }
  return std::move(status).WithContext(place);
}

template <bool kObserved>
Status Interpreter::Loop(std::span<const TensorView> outputs) {
  KernelContext& kernels = *context_.kernel_context_;
  for (;;) {  // once per change of frame
    Record* record = &records_.back();
    const LinkedFunction& linked = *record->linked;
    const LinkedInstruction* const code = linked.code.data();
    const LinkedInstruction* pc = code + record->pc;
    int64_t* const frame = FrameOf(*record);
    Context::Activation* const activation = record->activation;
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
          if (context_.interrupt_.load(std::memory_order_relaxed) != kNotInterrupted || --fuel_left_ < 0) [[unlikely]] {
            at();
            return Interrupted();
          }
          if constexpr (kObserved) {
            at();
            INGOT_RETURN_IF_ERROR(StepObserved(op, *record, frame, outputs));
            break;
          }
          if (kernels.Call(call.function, arguments + call.first_argument, ints + call.first_int) != 0) [[unlikely]] {
            at();
            return KernelFailed(*call.kernel);
          }
          break;
        }
        case LinkedOp::kKernel: {
          const auto& call = *static_cast<const KernelCall*>(op.data);
          if (context_.interrupt_.load(std::memory_order_relaxed) != kNotInterrupted || --fuel_left_ < 0) [[unlikely]] {
            at();
            return Interrupted();
          }
          if constexpr (kObserved) {
            at();
            INGOT_RETURN_IF_ERROR(StepObserved(op, *record, frame, outputs));
            break;
          }
          at();
          INGOT_RETURN_IF_ERROR(RunKernel(call, *activation, frame));
          break;
        }
        case LinkedOp::kJump:
          pc = code + op.target;
          break;
        case LinkedOp::kJumpBack:
          if (context_.interrupt_.load(std::memory_order_relaxed) != kNotInterrupted || --fuel_left_ < 0) [[unlikely]] {
            at();
            return Interrupted();
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
              if (is_back &&
                  (context_.interrupt_.load(std::memory_order_relaxed) != kNotInterrupted || --fuel_left_ < 0)) {
                return Interrupted();
              }
              pc = code + target;
              break;
            }
            case Opcode::kCallFunction:
            case Opcode::kCallClosure: {
              if (context_.interrupt_.load(std::memory_order_relaxed) != kNotInterrupted || --fuel_left_ < 0)
                return Interrupted();
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
              if (records_.size() == 1) {
                returned_ = in.As<op::Return>().values();
                returned_source_ = source.As<op::Return>().values();
                return Status();
              }
              INGOT_RETURN_IF_ERROR(Leave(in.As<op::Return>().values(), source.As<op::Return>().values()));
              same_frame = false;
              break;
            default: {
              Status status =
                  kObserved ? StepObserved(op, *record, frame, outputs) : Step(*record, in, source, frame, outputs);
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

[[gnu::cold]] Status Interpreter::Interrupted() const {
  switch (context_.interrupt_.load(std::memory_order_relaxed)) {
    case kInterruptCancelled:
      return Status(StatusCode::kCancelled, "cancelled");
    case kInterruptDeadline:
      return Status(StatusCode::kDeadlineExceeded, "the deadline has passed");
    default:
      return Status(StatusCode::kDeadlineExceeded,
                    {"the fuel of ", context_.options_.fuel, " calls and back edges is used up"});
  }
}

Status Interpreter::RunKernel(const KernelCall& call, Context::Activation& activation, const int64_t* frame) {
  INGOT_RETURN_IF_ERROR(PrepareKernel(call, activation, frame));
  return LaunchKernel(call, activation);
}

// Gathers arguments from the frame, and makes the checks that each call needs.
Status Interpreter::PrepareKernel(const KernelCall& call, Context::Activation& activation, const int64_t* frame) {
  const Kernel& kernel = *call.kernel;
  for (const PointerGather& gather : call.pointers)
    activation.arguments[gather.index] = PointerOf(frame[gather.frame_offset]);
  for (const IntGather& gather : call.ints)
    activation.ints[gather.index] = ScalarBits(frame[gather.frame_offset], gather.dtype);
  void* const* arguments = activation.arguments.data() + call.first_argument;
  const int64_t* ints = activation.ints.data() + call.first_int;
  const std::span<const int64_t> slots(ints, kernel.ints.size());
  for (const ExtentCheck& check : call.extents) {
    const KernelParam& param = kernel.params[check.param];
    INGOT_ASSIGN_OR_RETURN(const int64_t extent, param.extents[check.axis].Evaluate(slots));
    if (frame[check.frame_offset] == extent) continue;
    return ExtentDiffers(kernel, check, frame[check.frame_offset], extent);
  }
  for (const AlignmentCheck& check : call.alignments) {
    if (reinterpret_cast<uintptr_t>(arguments[check.param]) %
            static_cast<uintptr_t>(kernel.params[check.param].alignment) ==
        0)
      continue;
    return NotAligned(kernel, kernel.params[check.param]);
  }
  if (call.has_dynamic_workspace) {
    INGOT_ASSIGN_OR_RETURN(const int64_t bytes, kernel.workspace.Evaluate(slots));
    INGOT_RETURN_IF_ERROR(context_.ReserveWorkspace(bytes));
  }
  return Status();
}

Status Interpreter::LaunchKernel(const KernelCall& call, const Context::Activation& activation) {
  const Kernel& kernel = *call.kernel;
  void* const* arguments = activation.arguments.data() + call.first_argument;
  const int64_t* ints = activation.ints.data() + call.first_int;
  if (call.function == nullptr) {
    Status status = RunStubKernel(kernel, arguments, ints, {&context_.interrupt_});
    return status.code() == StatusCode::kCancelled ? Interrupted() : status;
  }
  context_.running_kernel_ = kernel.externals.empty() ? nullptr : &kernel;
  const int32_t code = context_.kernel_context_->Call(call.function, arguments, ints);
  context_.running_kernel_ = nullptr;
  return code == 0 ? Status() : KernelFailed(kernel);
}

[[gnu::cold]] Status Interpreter::KernelFailed(const Kernel& kernel) {
  const KernelFailure failure = context_.kernel_context_->TakeFailure();
  const std::string where = StrCat({"kernel \"", kernel.name, "\""});
  if (failure.code == INGOT_KERNEL_CANCELLED && context_.interrupt_.load() != kNotInterrupted) return Interrupted();
  if (failure.code == INGOT_KERNEL_ASSERT && failure.a >= 0 &&
      static_cast<uint64_t>(failure.a) < kernel.messages.size()) {
    return FailedCall({where, ": ", kernel.messages[static_cast<size_t>(failure.a)]});
  }
  return KernelFailureStatus(failure).WithContext(where);
}

}  // namespace ingot::vm
