// Makes the events of instructions, and looks for the one that makes a NaN.
#include "vm/run/observers.h"

#include <algorithm>
#include <chrono>

#include "vm/program/builtins.h"
#include "vm/run/frame_words.h"
#include "vm/run/register_values.h"
#include "vm/verify/failure_text.h"

namespace ingot::vm {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t EvaluateOrZero(const DimCode& code, std::span<const int64_t> slots) {
  const Result<int64_t> value = code.Evaluate(slots);
  return value.ok() ? *value : 0;
}

const FrameInstruction& InstructionOf(const LinkedInstruction& op) {
  return *static_cast<const FrameInstruction*>(op.data);
}
const KernelCall& KernelCallOf(const LinkedInstruction& op) { return *static_cast<const KernelCall*>(op.data); }
// Whether a call of a builtin or of an external function has results.
bool HasResults(const FrameInstruction& in) {
  return in.opcode == Opcode::kCallBuiltin ? !in.As<op::CallBuiltin>().results().empty()
                                           : !in.As<op::CallExternal>().results().empty();
}
bool IsKernel(const LinkedInstruction& op) { return op.op != LinkedOp::kInstruction; }

const char* KindName(EventKind kind) {
  switch (kind) {
    case EventKind::kKernel:
      return "kernel";
    case EventKind::kBuiltin:
      return "builtin";
    case EventKind::kExternal:
      return "external function";
    case EventKind::kOther:
      return "instruction";
  }
  INGOT_UNREACHABLE();
}

std::string NameOf(const Event& event) { return StrCat({KindName(event.kind), " \"", event.name, "\""}); }
// Whether it is a kernel, builtin or external function.
bool IsRoutine(const Event& event) { return event.kind != EventKind::kOther; }

Status StoppedAt(const Event& event) {
  return Status(StatusCode::kCancelled, {NameOf(event), ": stopped by the instrument"});
}

// Of a tensor on a device, a copy on the host is checked; `failure` tells where that cannot be made.
FiniteReport CheckAnywhere(const Devices& devices, const TensorView& view, Status& failure) {
  if (view.device.is_host_accessible()) return CheckFinite(view);
  if constexpr (Devices::kHaveCode) {
    const Result<Tensor> copy = Tensor::Allocate(view.dtype, view.shape());
    failure = copy.ok() ? devices.CopyTensor(view, copy->view()) : copy.status();
    if (failure.ok()) return CheckFinite(copy->view());
  }
  return {};
}

Finiteness WorstInput(const Devices& devices, std::span<const EventArgument> arguments, Status& failure) {
  Finiteness worst = Finiteness::kFinite;
  for (const EventArgument& argument : arguments) {
    if (argument.role == ParamRole::kOut) continue;
    worst = std::max(worst, CheckAnywhere(devices, argument.view, failure).worst);
    if (Devices::kHaveCode && !failure.ok()) break;
  }
  return worst;
}

bool WritesItsInputs(std::span<const EventArgument> arguments) {
  for (const EventArgument& out : arguments) {
    if (out.role == ParamRole::kIn) continue;
    for (const EventArgument& in : arguments) {
      if (in.role != ParamRole::kOut && Overlap(out.view, in.view)) return true;
    }
  }
  return false;
}

// Fails when an output is worse than every input was. Inputs that the instruction cannot have changed are checked only
// when an output is not finite, since weights are large.
Status CheckOutputsFinite(const Devices& devices, const Event& event, std::span<const EventArgument> arguments,
                          std::optional<Finiteness> inputs) {
  Status failure;
  for (const EventArgument& argument : arguments) {
    if (argument.role == ParamRole::kIn) continue;
    const FiniteReport report = CheckAnywhere(devices, argument.view, failure);
    if (Devices::kHaveCode && !failure.ok()) return failure;
    if (report.worst == Finiteness::kFinite) continue;
    if (!inputs) inputs = WorstInput(devices, arguments, failure);
    if (Devices::kHaveCode && !failure.ok()) return failure;
    if (report.worst <= *inputs) continue;
    return Status(StatusCode::kFailed, {NameOf(event), ", output \"", argument.name,
                                        "\": ", DescribeElement(argument.view, report), ", its inputs have none"});
  }
  return Status();
}

}  // namespace

Event Observers::Describe(const LinkedInstruction& op, const CallRecord& record) const {
  Event event;
  event.function = record.linked->function;
  event.instruction = op.source;
  event.operation = SourceOperation(*event.function, op.source);
  if (IsKernel(op)) {
    const KernelCall& call = KernelCallOf(op);
    const std::span<const int64_t> ints(record.activation->ints.data() + call.first_int, call.kernel->ints.size());
    event.kind = EventKind::kKernel;
    event.name = call.kernel->name.c_str();
    event.flops = EvaluateOrZero(call.kernel->flops, ints);
    event.bytes = EvaluateOrZero(call.kernel->bytes, ints);
    return event;
  }
  const FrameInstruction& in = InstructionOf(op);
  event.name = InfoOf(in.opcode).name;
  if (in.opcode == Opcode::kCallBuiltin) {
    event.kind = EventKind::kBuiltin;
    event.name = InfoOf(in.As<op::CallBuiltin>().builtin()).name;
  } else if (in.opcode == Opcode::kCallExternal) {
    const ExternalId id = in.As<op::CallExternal>().external();
    event.kind = EventKind::kExternal;
    event.name = program_.externals[id.value].name.c_str();
  }
  return event;
}

Result<std::vector<EventArgument>> Observers::ArgumentsOf(EventPhase phase, const LinkedInstruction& op,
                                                          const CallRecord& record, const int64_t* frame) const {
  std::vector<EventArgument> arguments;
  if (IsKernel(op)) {
    const KernelCall& call = KernelCallOf(op);
    const std::span<const int64_t> ints(record.activation->ints.data() + call.first_int, call.kernel->ints.size());
    const DeviceId device = devices_.id(call.kernel->device);
    for (size_t i = 0; i < call.kernel->params.size(); ++i) {
      const KernelParam& param = call.kernel->params[i];
      int64_t dims[kMaxRank];
      for (size_t axis = 0; axis < param.extents.size(); ++axis) {
        INGOT_ASSIGN_OR_RETURN(dims[axis], param.extents[axis].Evaluate(ints));
      }
      void* const data = record.activation->arguments[call.first_argument + i];
      INGOT_ASSIGN_OR_RETURN(TensorView view,
                             TensorView::Make(data, param.dtype, {dims, param.extents.size()}, nullptr, device));
      arguments.push_back({param.name.c_str(), param.role, view});
    }
    return arguments;
  }
  const FrameInstruction& in = InstructionOf(op);
  const Function& function = *record.linked->function;
  const Instruction& source = function.code[op.source];
  const auto add = [&](const char* name, ParamRole role, RegisterId id, FrameOffset offset) -> Status {
    const Type& type = function.TypeOf(id);
    if (!type.is_tensor()) return Status();
    INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(devices_, type, frame + offset));
    arguments.push_back({name, role, view});
    return Status();
  };
  if (in.opcode == Opcode::kCallBuiltin) {
    const auto call = in.As<op::CallBuiltin>();
    const IdList<RegisterId> registers = source.As<op::CallBuiltin>().args();
    const BuiltinInfo& builtin = InfoOf(call.builtin());
    const std::span<const BuiltinArgument> row = builtin.arguments.subspan(builtin.num_results());
    for (size_t i = 0; i < call.args().size(); ++i) {
      const BuiltinArgument& described = row[std::min(i, row.size() - 1)];
      const ParamRole role = described.role == ArgumentRole::kOut ? ParamRole::kOut : ParamRole::kIn;
      INGOT_RETURN_IF_ERROR(add(described.name, role, registers[i], call.args()[i]));
    }
  } else if (in.opcode == Opcode::kCallExternal) {
    const auto call = in.As<op::CallExternal>();
    const auto registers = source.As<op::CallExternal>();
    const Signature& signature = program_.externals[call.external().value].signature;
    const bool is_before = phase == EventPhase::kBefore;
    const IdList<FrameOffset> offsets = is_before ? call.args() : call.results();
    const IdList<RegisterId> ids = is_before ? registers.args() : registers.results();
    const std::vector<NamedType>& named = is_before ? signature.params : signature.results;
    const ParamRole role = is_before ? ParamRole::kIn : ParamRole::kOut;
    for (size_t i = 0; i < named.size(); ++i) {
      INGOT_RETURN_IF_ERROR(add(named[i].name.c_str(), role, ids[i], offsets[i]));
    }
  } else if (phase == EventPhase::kAfter && in.opcode == Opcode::kCopy) {
    // Read once, written once.
    INGOT_RETURN_IF_ERROR(add("dst", ParamRole::kInOut, source.As<op::Copy>().dst(), in.As<op::Copy>().dst()));
  } else if (phase == EventPhase::kAfter && in.opcode == Opcode::kCopyInto) {
    INGOT_RETURN_IF_ERROR(add("dst", ParamRole::kInOut, source.As<op::CopyInto>().dst(), in.As<op::CopyInto>().dst()));
  }
  return arguments;
}

Result<bool> Observers::Before(const LinkedInstruction& op, const CallRecord& record, const int64_t* frame) {
  event_ = Describe(op, record);
  arguments_.clear();
  inputs_.reset();
  decision_ = Decision::kRun;
  if (IsRoutine(event_) && (instrument_ || checks_finite_)) {
    INGOT_ASSIGN_OR_RETURN(arguments_, ArgumentsOf(EventPhase::kBefore, op, record, frame));
    if (checks_finite_ && (event_.kind == EventKind::kExternal || WritesItsInputs(arguments_))) {
      Status failure;
      inputs_ = WorstInput(devices_, arguments_, failure);
      if (Devices::kHaveCode && !failure.ok()) return failure;
    }
    if (instrument_) decision_ = instrument_(EventPhase::kBefore, event_, arguments_);
    if (decision_ == Decision::kStop) return StoppedAt(event_);
    if (decision_ == Decision::kSkip && !IsKernel(op) && HasResults(InstructionOf(op))) {
      return Status(StatusCode::kInvalidArgument, {NameOf(event_), ": it has results, so it cannot be skipped"});
    }
  }
  duration_ns_.reset();
  event_.begin_ns = NowNs();
  return decision_ == Decision::kRun;
}

Status Observers::After(const LinkedInstruction& op, const CallRecord& record, const int64_t* frame) {
  event_.end_ns = duration_ns_ ? event_.begin_ns + *duration_ns_ : NowNs();
  if (!IsKernel(op)) {  // a kernel's arguments are still those from before
    INGOT_ASSIGN_OR_RETURN(arguments_, ArgumentsOf(EventPhase::kAfter, op, record, frame));
    for (const EventArgument& argument : arguments_)
      event_.bytes += argument.view.size_bytes * (argument.role == ParamRole::kInOut ? 2 : 1);
  }
  if (profiler_) profiler_(event_);
  if (!IsRoutine(event_)) return Status();
  if (instrument_ && instrument_(EventPhase::kAfter, event_, arguments_) == Decision::kStop) return StoppedAt(event_);
  return checks_finite_ && decision_ == Decision::kRun ? CheckOutputsFinite(devices_, event_, arguments_, inputs_)
                                                       : Status();
}

Status Observers::CheckParameters(const LinkedFunction& linked, const int64_t* frame) const {
  if (!checks_finite_) return Status();
  const Function& function = *linked.function;
  const size_t num_symbols = function.signature.symbols.size();
  for (size_t i = 0; i < function.signature.params.size(); ++i) {
    const Type& type = function.signature.params[i].type;
    if (!type.is_tensor() || type.storage == Storage::kBorrowedMut) continue;
    INGOT_ASSIGN_OR_RETURN(const TensorView view,
                           ViewOf(devices_, type, frame + linked.frame.offsets[num_symbols + i]));
    Status failure;
    const FiniteReport report = CheckAnywhere(devices_, view, failure);
    if (Devices::kHaveCode && !failure.ok()) return failure;
    if (report.worst != Finiteness::kHasNaN) continue;
    return Status(StatusCode::kBadInput, {"function \"", function.name, "\", parameter \"",
                                          function.signature.params[i].name, "\": ", DescribeElement(view, report)});
  }
  return Status();
}

}  // namespace ingot::vm
