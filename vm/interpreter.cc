#include "vm/interpreter.h"

#include <bit>
#include <chrono>
#include <cstring>

#include "vm/builtins.h"
#include "vm/disassembler.h"
#include "vm/frame_words.h"
#include "vm/limits.h"
#include "vm/type_rules.h"

namespace ingot::vm {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Status Failed(std::string message) { return Status(StatusCode::kFailed, std::move(message)); }

// A scalar argument as the kernel takes it: floats as the bits of their own width.
int64_t ScalarBits(int64_t word, DataType dtype) {
  if (dtype == DataType::Float(64) || !dtype.is_floating()) return word;
  return static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(word))));
}

}  // namespace

Status Interpreter::Run(std::span<const TensorView> outputs) {
  fuel_left_ = context_.options_.fuel > 0 ? context_.options_.fuel : INT64_MAX;
  Status status = context_.profiler_ ? Loop<true>(outputs) : Loop<false>(outputs);
  if (!status.ok()) return AtPlace(std::move(status));
  for (const WriteBack& back : write_backs_) INGOT_RETURN_IF_ERROR(CopyElements(back.staged, back.original));
  return status;
}

// Puts the innermost function and operation in front of a failure's message.
Status Interpreter::AtPlace(Status status) {
  if (records_.empty()) return status;
  const Record& record = records_.back();
  const Function& function = *record.linked->function;
  // The loop leaves pc behind the instruction that failed.
  const size_t at = record.pc > 0 && record.pc <= record.linked->code.size() ? record.pc - 1 : 0;
  const uint32_t source = record.linked->code.empty() ? 0 : record.linked->code[at].source;
  std::string operation = InfoOf(function.code[source].opcode).name;
  operation += " (instruction " + std::to_string(source) + ")";
  for (const DebugNote& note : function.notes) {
    if (note.instruction <= source) operation = note.text + ", instruction " + std::to_string(source);
  }
  context_.failure_place_ = {function.name, operation};
  return std::move(status).WithContext("function \"" + function.name + "\", " + operation);
}

template <bool kProfiled>
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
    // Names the instruction for whoever looks at the record: failures, callees' returns.
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
          const int64_t begin = kProfiled ? NowNs() : 0;
          if (kernels.Call(call.function, arguments + call.first_argument, ints + call.first_int) != 0) [[unlikely]] {
            at();
            return KernelFailed(*call.kernel);
          }
          if constexpr (kProfiled) {
            context_.profiler_({linked.function,
                                op.source,
                                call.kernel,
                                begin,
                                NowNs(),
                                {ints + call.first_int, call.kernel->ints.size()}});
          }
          break;
        }
        case LinkedOp::kKernel: {
          const auto& call = *static_cast<const KernelCall*>(op.data);
          if (context_.interrupt_.load(std::memory_order_relaxed) != kNotInterrupted || --fuel_left_ < 0) [[unlikely]] {
            at();
            return Interrupted();
          }
          const int64_t begin = kProfiled ? NowNs() : 0;
          if (Status status = RunKernel(call, *activation, frame); !status.ok()) [[unlikely]] {
            at();
            return status;
          }
          if constexpr (kProfiled) {
            context_.profiler_({linked.function,
                                op.source,
                                call.kernel,
                                begin,
                                NowNs(),
                                {ints + call.first_int, call.kernel->ints.size()}});
          }
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
          const auto& in = *static_cast<const Instruction*>(op.data);
          const Instruction& source = linked.function->code[op.source];
          at();
          switch (in.opcode) {
            case Opcode::kBranch: {
              const auto target = static_cast<uint32_t>(in.scalar(frame[in.reg(0)] != 0 ? 1 : 2));
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
                const LinkedFunction& callee =
                    *context_.executable_->linked().functions[static_cast<size_t>(in.scalar(1))];
                INGOT_RETURN_IF_ERROR(EnterCallee(callee, in, source, 2));
              } else {
                INGOT_RETURN_IF_ERROR(EnterClosure(in, source));
              }
              same_frame = false;
              break;
            }
            case Opcode::kReturn:
              if (records_.size() == 1) {
                returned_ = &in.registers(0);
                returned_source_ = &source.registers(0);
                return Status();
              }
              INGOT_RETURN_IF_ERROR(Leave(in, source));
              same_frame = false;
              break;
            default: {
              Status status = Step(*record, in, source, frame, outputs);
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

Status Interpreter::Interrupted() const {
  switch (context_.interrupt_.load(std::memory_order_relaxed)) {
    case kInterruptCancelled:
      return Status(StatusCode::kCancelled, "cancelled");
    case kInterruptDeadline:
      return Status(StatusCode::kDeadlineExceeded, "the deadline has passed");
    default:
      return Status(StatusCode::kDeadlineExceeded, "the fuel is used up");
  }
}

Status Interpreter::RunKernel(const KernelCall& call, Context::Activation& activation, const int64_t* frame) {
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
    return Status(StatusCode::kBadInput, "kernel \"" + kernel.name + "\", parameter \"" + param.name + "\": axis " +
                                             std::to_string(check.axis) + " is " +
                                             std::to_string(frame[check.frame_offset]) + ", expected " +
                                             std::to_string(extent));
  }
  for (const AlignmentCheck& check : call.alignments) {
    if (reinterpret_cast<uintptr_t>(arguments[check.param]) %
            static_cast<uintptr_t>(kernel.params[check.param].alignment) ==
        0)
      continue;
    return Failed("kernel \"" + kernel.name + "\", parameter \"" + kernel.params[check.param].name +
                  "\": the tensor is not aligned to " + std::to_string(kernel.params[check.param].alignment) +
                  " bytes");
  }
  if (call.has_dynamic_workspace) {
    INGOT_ASSIGN_OR_RETURN(const int64_t bytes, kernel.workspace.Evaluate(slots));
    INGOT_RETURN_IF_ERROR(context_.ReserveWorkspace(bytes));
  }
  if (call.function == nullptr) return RunStubKernel(kernel, arguments, ints);
  context_.running_kernel_ = kernel.externals.empty() ? nullptr : &kernel;
  const int32_t code = context_.kernel_context_->Call(call.function, arguments, ints);
  context_.running_kernel_ = nullptr;
  return code == 0 ? Status() : KernelFailed(kernel);
}

Status Interpreter::KernelFailed(const Kernel& kernel) {
  const KernelFailure failure = context_.kernel_context_->TakeFailure();
  const std::string where = "kernel \"" + kernel.name + "\"";
  if (failure.code == INGOT_KERNEL_CANCELLED && context_.interrupt_.load() != kNotInterrupted) return Interrupted();
  if (failure.code == INGOT_KERNEL_ASSERT && failure.a >= 0 &&
      static_cast<uint64_t>(failure.a) < kernel.messages.size()) {
    return Failed(where + ": " + kernel.messages[static_cast<size_t>(failure.a)]);
  }
  return KernelFailureStatus(failure).WithContext(where);
}

// ---- calls

Status Interpreter::EnterCallee(const LinkedFunction& callee, const Instruction& in, const Instruction& source,
                                size_t args_operand) {
  const Record caller = records_.back();
  INGOT_RETURN_IF_ERROR(PushFrame(callee));
  Record& record = records_.back();
  int64_t* frame = FrameOf(record);
  const int64_t* caller_frame = FrameOf(caller);
  const size_t num_symbols = callee.function->signature.symbols.size();
  const RegisterList& args = in.registers(args_operand);
  const size_t first = num_symbols + callee.function->signature.params.size() - args.size();  // behind captures
  for (size_t i = 0; i < args.size(); ++i) {
    const Type& param = callee.function->registers[first + i];
    const Type& argument = caller.linked->function->registers[source.registers(args_operand)[i]];
    CopyRegister(param, frame + callee.frame.offsets[first + i], argument, caller_frame + args[i]);
  }
  if (args_operand == 2 && in.opcode == Opcode::kCallClosure) return Status();  // EnterClosure goes on
  return BindParameters(record);
}

Status Interpreter::EnterClosure(const Instruction& in, const Instruction& source) {
  const auto* closure = static_cast<const ClosureObject*>(ObjectOf(FrameOf(records_.back())[in.reg(1)]));
  const LinkedFunction& callee = *context_.executable_->linked().functions[closure->function.value];
  INGOT_RETURN_IF_ERROR(EnterCallee(callee, in, source, 2));
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
      INGOT_RETURN_IF_ERROR(Unbox(param, slot, closure->captures[i]));
    }
  }
  return BindParameters(record);
}

// Results into the caller's registers, then the frame goes.
Status Interpreter::Leave(const Instruction& in, const Instruction& source) {
  const Record callee = records_.back();
  const Record& caller = records_[records_.size() - 2];
  const int64_t* frame = FrameOf(callee);
  int64_t* caller_frame = FrameOf(caller);
  const RegisterList& results = caller.call->registers(0);
  for (size_t i = 0; i < results.size(); ++i) {
    const Type& to = caller.linked->function->registers[caller.source->registers(0)[i]];
    const Type& from = callee.linked->function->registers[source.registers(0)[i]];
    Drop(to, caller_frame + results[i]);
    CopyRegister(to, caller_frame + results[i], from, frame + in.registers(0)[i]);
  }
  PopFrame();
  return Status();
}

Status Interpreter::CallExternal(const Record& record, const Instruction& in, const Instruction& source,
                                 int64_t* frame) {
  if (context_.interrupt_.load(std::memory_order_relaxed) != kNotInterrupted || --fuel_left_ < 0) return Interrupted();
  const auto id = static_cast<size_t>(in.scalar(1));
  const External& external = context_.executable_->program().externals[id];
  const std::string where = "external function \"" + external.name + "\"";
  const Function& function = *record.linked->function;
  // Symbols as the arguments bind them, by the same rules as at a call of a function.
  std::vector<int64_t> symbols(external.signature.symbols.size(), -1);
  std::vector<Value> arguments;
  for (size_t i = 0; i < in.registers(2).size(); ++i) {
    const Type& type = function.registers[source.registers(2)[i]];
    const int64_t* slot = frame + in.registers(2)[i];
    if (type.is_tensor()) {
      INGOT_ASSIGN_OR_RETURN(TensorView view, ViewOf(type, slot));
      view.is_read_only = external.signature.params[i].type.storage != Storage::kBorrowedMut;
      INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::FromView(view, {}));
      arguments.emplace_back(std::move(tensor));
    } else {
      INGOT_ASSIGN_OR_RETURN(Value value, Box(type, slot));
      arguments.push_back(std::move(value));
    }
    const std::vector<Dim>& dims = external.signature.params[i].type.dims;
    const int64_t* extents = type.is_tensor() ? slot + kTensorHeadWords : slot;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      if (!dims[axis] || dims[axis]->is_constant() || dims[axis]->steps().size() != 1) continue;
      int64_t& symbol = symbols[static_cast<size_t>(dims[axis]->steps()[0].value)];
      if (symbol < 0) symbol = extents[axis];
    }
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (HasType(arguments[i], external.signature.params[i].type, symbols)) continue;
    return Status(StatusCode::kBadInput,
                  where + ", parameter \"" + external.signature.params[i].name + "\": expected " +
                      external.signature.params[i].type.ToString(external.signature.symbol_names()) + ", got " +
                      DescribeValue(arguments[i]));
  }
  Result<std::vector<Value>> results = context_.externals_[id]->call(arguments);
  if (!results.ok()) return std::move(results).status().WithContext(where);
  if (results->size() != external.signature.results.size()) {
    return Failed(where + ": gives " + std::to_string(results->size()) + " results, expected " +
                  std::to_string(external.signature.results.size()));
  }
  for (size_t i = 0; i < results->size(); ++i) {
    if (!HasType((*results)[i], external.signature.results[i].type, symbols)) {
      return Failed(where + ", result \"" + external.signature.results[i].name + "\": expected " +
                    external.signature.results[i].type.ToString(external.signature.symbol_names()) + ", got " +
                    DescribeValue((*results)[i]));
    }
    const Type& to = function.registers[source.registers(0)[i]];
    Drop(to, frame + in.registers(0)[i]);
    INGOT_RETURN_IF_ERROR(Unbox(to, frame + in.registers(0)[i], (*results)[i]));
  }
  return Status();
}

Status Interpreter::CallBuiltin(const Record& record, const Instruction& in, const Instruction& source,
                                int64_t* frame) {
  std::vector<Value> arguments;
  for (size_t i = 0; i < in.registers(2).size(); ++i) {
    const Type& type = record.linked->function->registers[source.registers(2)[i]];
    const int64_t* slot = frame + in.registers(2)[i];
    if (type.is_tensor()) {
      INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(type, slot));
      INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::FromView(view, {}));
      arguments.emplace_back(std::move(tensor));
    } else {
      INGOT_ASSIGN_OR_RETURN(Value value, Box(type, slot));
      arguments.push_back(std::move(value));
    }
  }
  const auto builtin = static_cast<Builtin>(in.scalar(1));
  return RunBuiltin(builtin, arguments, *context_.executable_->instance())
      .WithContext(std::string("builtin ") + FindBuiltin(static_cast<uint64_t>(builtin))->name);
}

Status Interpreter::MakeClosure(const Record& record, const Instruction& in, const Instruction& source,
                                int64_t* frame) {
  const Function& function = *record.linked->function;
  const FunctionId id(static_cast<uint32_t>(in.scalar(1)));
  const Signature& callee = context_.executable_->program().functions[id.value].signature;
  std::vector<Value> captures;
  for (size_t i = 0; i < in.registers(2).size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Value value, Box(function.registers[source.registers(2)[i]], frame + in.registers(2)[i]));
    captures.push_back(std::move(value));
  }
  const std::vector<Dim> no_symbols(callee.symbols.size());
  Type type = Type::Scalar(ValueKind::kClosure);
  for (size_t i = captures.size(); i < callee.params.size(); ++i) {
    type.elements.push_back(SubstituteSymbols(callee.params[i].type, no_symbols));
  }
  for (const NamedType& result : callee.results) type.results.push_back(SubstituteSymbols(result.type, no_symbols));
  int64_t* slot = frame + in.reg(0);
  Drop(function.registers[source.reg(0)], slot);
  *slot = WordOf(new ClosureObject(id, std::move(type), std::move(captures)));
  return Status();
}

// ---- single instructions

Status Interpreter::Step(const Record& record, const Instruction& in, const Instruction& source, int64_t* frame,
                         std::span<const TensorView> outputs) {
  const Function& function = *record.linked->function;
  const std::span<const int64_t> words(frame, static_cast<size_t>(record.linked->frame.num_words));
  const auto type_of = [&](size_t operand) -> const Type& { return function.registers[source.reg(operand)]; };
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
      const Constant& constant = context_.executable_->program().constants[static_cast<size_t>(in.scalar(1))];
      WriteTensor(frame + in.reg(0), const_cast<std::byte*>(constant.bytes.data()), nullptr, constant.dims);
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
      Drop(type_of(0), frame + in.reg(0));
      CopyRegister(type_of(0), frame + in.reg(0), type_of(1), frame + in.reg(1));
      return Status();
    }
    case Opcode::kMatch:
      return Match(type_of(0), frame + in.reg(0), type_of(1), frame + in.reg(1),
                   frame + (record.linked->frame.offsets.empty() ? 0 : record.linked->frame.offsets[0]));
    case Opcode::kLoadInt:
    case Opcode::kLoadFloat:
    case Opcode::kLoadBool:
      return Load(type_of(1), frame + in.reg(1), in.dim(2), words, frame + in.reg(0));
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
        return Status(StatusCode::kCorrupt, "a tensor of " + std::to_string(bytes) +
                                                " bytes does not fit into plan entry " + std::to_string(entry) +
                                                " of " + std::to_string(numbers.sizes[entry]));
      }
      auto* base = static_cast<std::byte*>(record.activation->arenas[function.plan.entries[entry].arena].data);
      WriteTensor(frame + in.reg(0), base + numbers.offsets[entry], nullptr, {dims, in.dims(2).size()});
      return Status();
    }
    case Opcode::kView:
      return MakeView(record, in, source, frame);
    case Opcode::kAlloc:
      return Allocate(type_of(0), in.dims(1), frame, record.linked->frame.num_words, frame + in.reg(0), nullptr);
    case Opcode::kAllocOutput: {
      const bool is_bound = records_.size() == 1 && !outputs.empty();
      const TensorView* bound = is_bound ? &outputs[static_cast<size_t>(in.scalar(1))] : nullptr;
      return Allocate(type_of(0), in.dims(2), frame, record.linked->frame.num_words, frame + in.reg(0), bound);
    }
    case Opcode::kCopy: {
      INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(type_of(1), frame + in.reg(1)));
      INGOT_ASSIGN_OR_RETURN(Ref<ingot::Storage> storage,
                             context_.devices_[type_of(0).device].pool->AllocateStorage(view.size_bytes));
      int64_t slot[kTensorHeadWords + kMaxTensorRank];
      WriteTensor(slot, storage->data(), nullptr, view.shape());
      Type to = type_of(0);
      INGOT_RETURN_IF_ERROR(CopyTensor(to, slot, type_of(1), frame + in.reg(1)));
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
      if (std::holds_alternative<std::monostate>(value)) return Failed("an optional is empty");
      Drop(type_of(0), frame + in.reg(0));
      return Unbox(type_of(0), frame + in.reg(0), value);
    }
  }
  INGOT_UNREACHABLE();
}

Status Interpreter::Allocate(const Type& type, std::span<const DimCode> dims, int64_t* frame, int64_t num_words,
                             int64_t* slot, const TensorView* bound) {
  int64_t extents[kMaxTensorRank];
  const std::span<const int64_t> words(frame, static_cast<size_t>(num_words));
  INGOT_ASSIGN_OR_RETURN(const int64_t bytes, EvaluateDims(dims, words, type.dtype, extents));
  const std::span<const int64_t> shape(extents, dims.size());
  if (bound != nullptr) {
    if (!std::equal(shape.begin(), shape.end(), bound->dims.begin(), bound->dims.begin() + bound->rank)) {
      return Status(StatusCode::kBadInput, "an output tensor is " + bound->TypeToString() + ", the result is " +
                                               ShapeToString(type.dtype, shape));
    }
    // One that cannot be written as it is gets a copy at the end.
    if (bound->is_compact && bound->IsAligned(kPlanAlignment)) {
      Drop(type, slot);
      WriteTensor(slot, bound->data, nullptr, shape);
      return Status();
    }
  }
  INGOT_ASSIGN_OR_RETURN(Ref<ingot::Storage> storage, context_.devices_[type.device].pool->AllocateStorage(bytes));
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
    return Failed("a view of " + std::to_string(bytes) + " bytes at byte " + std::to_string(offset) + " of " +
                  view.TypeToString());
  }
  if (offset % std::max(1, to.dtype.total_bits() / 8) != 0) {
    return Failed("a view at byte " + std::to_string(offset) + " is not aligned to its elements");
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
    return Failed("copies " + origin.TypeToString() + " into " + target.TypeToString());
  }
  const auto overlaps = [](const TensorView& a, const TensorView& b) {
    const auto x = reinterpret_cast<uintptr_t>(a.data), y = reinterpret_cast<uintptr_t>(b.data);
    return x < y ? y - x < static_cast<uintptr_t>(a.size_bytes) : x - y < static_cast<uintptr_t>(b.size_bytes);
  };
  if (target.size_bytes == 0 || target.data == origin.data) return Status();
  if (overlaps(target, origin)) return Failed("copies between overlapping tensors");
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

Status Interpreter::Load(const Type& type, const int64_t* slot, const DimCode& index, std::span<const int64_t> words,
                         int64_t* out) const {
  INGOT_ASSIGN_OR_RETURN(const int64_t at, index.Evaluate(words));
  INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(type, slot));
  if (at < 0 || at >= view.num_elements) {
    return Failed("loads element " + std::to_string(at) + " of " + view.TypeToString());
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

// Narrowing: dims that the declared type knows are compared, an object becomes what it is declared to be.
Status Interpreter::Match(const Type& to, int64_t* to_slot, const Type& from, const int64_t* from_slot,
                          const int64_t* symbols) {
  const std::span<const int64_t> slots(symbols, records_.back().linked->function->signature.symbols.size());
  const auto mismatch = [&](const std::string& got) {
    return Status(
        StatusCode::kBadInput,
        "expected " + to.ToString(records_.back().linked->function->signature.symbol_names()) + ", got " + got);
  };
  if (IsCountedKind(from.kind)) {
    const Value value = Ref<Object>::Share(ObjectOf(*from_slot));
    Value held = value;
    if (IsAnyObject(from) && !IsCountedKind(to.kind)) return mismatch(DescribeValue(value));
    if (!HasType(held, to, slots)) return mismatch(DescribeValue(value));
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
