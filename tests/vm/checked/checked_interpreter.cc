// One method per opcode or group of opcodes. A method returns false when the run ends; why is in run_.
#include "tests/vm/checked/checked_interpreter.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/text.h"
#include "vm/program/builtins.h"

namespace ingot::vm::checked {
namespace {

constexpr int64_t kMaxSteps = 2000;
constexpr int kMaxDepth = 24;
constexpr int64_t kMaxBytes = 1 << 16;  // of one tensor; what is larger is left to the virtual machine

bool IsObject(ValueKind kind) {
  return kind == ValueKind::kString || kind == ValueKind::kTuple || kind == ValueKind::kOptional ||
         kind == ValueKind::kClosure || kind == ValueKind::kObject;
}

// What a match compares when it finds a closure: may a closure of type `from` be called as one of type `to`?
bool ActsAs(const Type& to, const Type& from) {
  if (to.kind == ValueKind::kObject && to.class_name == "any") return IsObject(from.kind);
  if (to.kind != from.kind || to.class_name != from.class_name || to.dims.size() != from.dims.size()) return false;
  for (size_t i = 0; i < to.dims.size(); ++i) {
    if (to.dims[i] && to.dims[i] != from.dims[i]) return false;
  }
  if (to.is_tensor() && (to.dtype != from.dtype || to.storage != from.storage || to.device != from.device))
    return false;
  if (to.elements.size() != from.elements.size() || to.results.size() != from.results.size()) return false;
  const bool is_closure = to.kind == ValueKind::kClosure;
  for (size_t i = 0; i < to.elements.size(); ++i) {
    if (!(is_closure ? ActsAs(from.elements[i], to.elements[i]) : ActsAs(to.elements[i], from.elements[i])))
      return false;
  }
  for (size_t i = 0; i < to.results.size(); ++i) {
    if (!ActsAs(to.results[i], from.results[i])) return false;
  }
  return true;
}

// Dims that depend on symbols are unknown outside of the function that has them.
Type WithoutSymbols(Type type) {
  for (Dim& dim : type.dims) {
    if (dim && !dim->is_constant()) dim.reset();
  }
  for (Type& element : type.elements) element = WithoutSymbols(std::move(element));
  for (Type& result : type.results) result = WithoutSymbols(std::move(result));
  return type;
}

// What a closure is beyond the register that it was made in: its function without the first parameters.
Type TypeOfClosure(const Signature& signature, size_t num_captures) {
  Type type = Type::Scalar(ValueKind::kClosure);
  for (size_t i = num_captures; i < signature.params.size(); ++i) {
    type.elements.push_back(WithoutSymbols(signature.params[i].type));
  }
  for (const NamedType& result : signature.results) type.results.push_back(WithoutSymbols(result.type));
  return type;
}

struct CheckedFrame {
  const Function* function = nullptr;
  uint32_t id = 0;
  uint32_t pc = 0;
  std::vector<CheckedValue> registers;
  std::vector<int64_t> symbols;
  std::vector<std::shared_ptr<Memory>> arenas;
  std::vector<int64_t> offsets, sizes;  // of plan entries
};

class CheckedInterpreter {
 public:
  CheckedInterpreter(const Program& program, const std::vector<std::vector<uint32_t>>& zeroed, std::vector<bool>& ran)
      : program_(program), zeroed_(zeroed), ran_(ran) {
    for (const Constant& constant : program.constants) {
      auto memory = std::make_shared<Memory>(Storage::kConstant, static_cast<int64_t>(constant.bytes.size()),
                                             ByteState::kWritten);
      if (constant.bytes.size() > 0) std::memcpy(memory->bytes.data(), constant.bytes.data(), constant.bytes.size());
      constants_.push_back(std::move(memory));
    }
    for (const State& state : program.states) {
      CheckedTensor shape;
      shape.dtype = state.dtype;
      shape.dims = state.dims;
      auto memory = std::make_shared<Memory>(Storage::kBorrowedMut, shape.size_bytes(), ByteState::kWritten);
      if (state.initial) memory->bytes = constants_[state.initial->value]->bytes;
      states_.push_back(std::move(memory));
    }
  }

  CheckedRun Run(FunctionId function, const std::vector<CheckedValue>& arguments) {
    std::vector<CheckedValue> results;
    if (Call(function, arguments, results)) {
      run_.end = CheckedRun::End::kReturned;
      run_.results = std::move(results);
    }
    return std::move(run_);
  }

 private:
  // ---- ends of the run

  bool End(CheckedRun::End end, Text message) {
    run_.end = end;
    run_.message = StrCat({message});
    if (frame_ == nullptr) return false;
    const auto& code = frame_->function->code;
    const char* opcode = frame_->pc < code.size() ? InfoOf(code[frame_->pc].opcode).name : "no instruction";
    run_.message = StrCat(
        {"function \"", frame_->function->name, "\", instruction ", frame_->pc, " (", opcode, "): ", run_.message});
    return false;
  }
  bool Disagree(Text message) { return End(CheckedRun::End::kDisagreement, message); }
  bool Fail(Text message) { return End(CheckedRun::End::kFailed, message); }
  bool Stop(Text message) { return End(CheckedRun::End::kStopped, message); }

  // ---- what values promise

  bool DimsFit(const std::vector<int64_t>& dims, const std::vector<Dim>& declared) const {
    if (dims.size() != declared.size()) return false;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (!declared[i]) continue;
      const Result<int64_t> wanted = declared[i]->Evaluate(frame_->symbols);
      if (!wanted.ok() || *wanted != dims[i]) return false;
    }
    return true;
  }

  // Whether the value is what the type says, dims and storages included. A closure is looked at when it is called.
  bool Fits(const CheckedValue& value, const Type& type, bool with_storage = true) const {
    if (!value.is_present) return false;
    if (type.kind == ValueKind::kObject && type.class_name == "any") {
      return value.kind != ValueKind::kTensor || value.tensor.storage == Storage::kOwned;
    }
    if (value.kind != type.kind) return false;
    switch (type.kind) {
      case ValueKind::kTensor:
        return value.tensor.dtype == type.dtype && value.tensor.device == type.device &&
               (!with_storage || value.tensor.storage == type.storage) && DimsFit(value.tensor.dims, type.dims);
      case ValueKind::kShape:
        return DimsFit(value.extents, type.dims);
      case ValueKind::kTuple:
        if (value.elements->size() != type.elements.size()) return false;
        for (size_t i = 0; i < type.elements.size(); ++i) {
          if (!Fits((*value.elements)[i], type.elements[i])) return false;
        }
        return true;
      case ValueKind::kOptional:
        return value.elements->empty() || Fits((*value.elements)[0], type.elements[0]);
      case ValueKind::kClosure: {
        const Signature& callee = program_.functions[value.function.value].signature;
        return callee.params.size() == value.elements->size() + type.elements.size() &&
               callee.results.size() == type.results.size();
      }
      default:
        return true;
    }
  }

  bool Write(RegisterId id, CheckedValue value) {
    if (id.value >= frame_->registers.size()) return Disagree({"writes r", id.value, " of ", frame_->registers.size()});
    if (id.value < frame_->symbols.size()) return Disagree("a symbol is written");
    const Type& type = frame_->function->TypeOf(id);
    if (!Fits(value, type)) {
      return Disagree({"r", id.value, " is declared ", type.ToString(), " and gets a ", ValueKindName(value.kind),
                       " that is none"});
    }
    frame_->registers[id.value] = std::move(value);
    return true;
  }

  // The register's value, which is there, of the declared type, and in memory that lives.
  const CheckedValue* Read(RegisterId id) {
    if (id.value >= frame_->registers.size()) {
      Disagree({"reads r", id.value, " of ", frame_->registers.size()});
      return nullptr;
    }
    const CheckedValue& value = frame_->registers[id.value];
    if (!value.is_present) {
      Disagree({"r", id.value, " is read before it is written, or after its release"});
      return nullptr;
    }
    if (value.kind == ValueKind::kTensor && !Touch(id, value.tensor)) return nullptr;
    return &value;
  }
  const CheckedValue* Read(RegisterId id, ValueKind kind) {
    const CheckedValue* value = Read(id);
    if (value == nullptr || value->kind == kind) return value;
    Disagree({"r", id.value, " is used as ", ValueKindName(kind), " and is ", ValueKindName(value->kind)});
    return nullptr;
  }
  bool Touch(RegisterId id, const CheckedTensor& tensor) {
    if (!tensor.memory->is_alive) return Disagree({"r", id.value, " lies in an arena whose call has ended"});
    if (tensor.offset < 0 || tensor.size_bytes() < 0 ||
        tensor.offset + tensor.size_bytes() > static_cast<int64_t>(tensor.memory->bytes.size())) {
      return Disagree({"r", id.value, " reaches beyond its memory"});
    }
    if (tensor.entry < 0) return true;
    const PlanEntry& entry = frame_->function->plan.entries[static_cast<size_t>(tensor.entry)];
    if (frame_->pc >= entry.first && frame_->pc <= entry.last) return true;
    return Disagree({"r", id.value, " is touched outside of the live range of plan entry ", tensor.entry});
  }

  bool ReadBytes(const CheckedTensor& tensor, const char* who) {
    for (int64_t i = 0; i < tensor.size_bytes(); ++i) {
      const ByteState state = tensor.memory->states[static_cast<size_t>(tensor.offset + i)];
      if (state == ByteState::kUnwritten) return Disagree({who, " reads byte ", i, ", which nobody wrote"});
      if (state == ByteState::kStale) run_.is_comparable = false;
    }
    return true;
  }
  bool WriteBytes(const CheckedTensor& tensor, const uint8_t* bytes, const char* who) {
    if (!tensor.is_writable)
      return Disagree({who, " writes a ", StorageName(tensor.storage), " tensor that is read only"});
    for (int64_t i = 0; i < tensor.size_bytes(); ++i) {
      const auto at = static_cast<size_t>(tensor.offset + i);
      tensor.memory->bytes[at] = bytes[i];
      tensor.memory->states[at] = ByteState::kWritten;
    }
    return true;
  }
  // Everything that leaves a function outlives it and was written.
  bool CheckOutlives(const CheckedValue& value, bool is_returned) {
    if (value.kind == ValueKind::kTensor) {
      const CheckedTensor& tensor = value.tensor;
      if (tensor.storage != Storage::kOwned || tensor.memory->origin != Storage::kOwned) {
        return Disagree({"a tensor of storage ", StorageName(tensor.memory->origin), " would outlive its memory"});
      }
      return !is_returned || ReadBytes(tensor, "return");
    }
    if (!value.elements) return true;
    for (const CheckedValue& element : *value.elements) {
      // A closure borrows its captured tensors; they are owned all the same.
      if (element.kind == ValueKind::kTensor && element.tensor.memory->origin != Storage::kOwned) {
        return Disagree("a value holds a tensor that is not owned");
      }
      if (element.kind != ValueKind::kTensor && !CheckOutlives(element, is_returned)) return false;
      if (element.kind == ValueKind::kTensor && is_returned && !ReadBytes(element.tensor, "return")) return false;
    }
    return true;
  }

  // ---- formulas

  bool Evaluate(const DimCode& code, int64_t& out) {
    std::vector<int64_t> slots(frame_->registers.size(), 0);
    for (const DimStep& step : code.steps()) {
      if (step.op != DimOp::kSlot) continue;
      const CheckedValue* value = Read(RegisterId(static_cast<uint32_t>(step.value)), ValueKind::kInt);
      if (value == nullptr) return false;
      slots[static_cast<size_t>(step.value)] = value->number;
    }
    const Result<int64_t> result = code.Evaluate(slots);
    if (!result.ok()) return Fail("a formula overflows or divides by zero");
    out = *result;
    return true;
  }
  bool Extents(const std::vector<DimCode>& codes, DataType dtype, std::vector<int64_t>& dims) {
    int64_t bytes = std::max(1, dtype.bits * dtype.lanes / 8);
    for (const DimCode& code : codes) {
      if (!Evaluate(code, dims.emplace_back())) return false;
      if (dims.back() < 0) return Fail("a negative dim");
    }
    if (std::count(dims.begin(), dims.end(), 0) > 0) return true;
    for (const int64_t dim : dims) {
      if (__builtin_mul_overflow(bytes, dim, &bytes) || bytes > kMaxBytes) return Stop("a large tensor");
    }
    return true;
  }

  // ---- calls

  bool IsZeroed() const {
    const std::vector<uint32_t>& list = zeroed_[frame_->id];
    return std::find(list.begin(), list.end(), frame_->pc) != list.end();
  }

  bool BindSymbols(const Signature& signature, const std::vector<CheckedValue>& arguments) {
    std::vector<bool> is_bound(signature.symbols.size(), false);
    for (size_t i = 0; i < is_bound.size(); ++i) {
      if (!signature.symbols[i].state) continue;
      std::memcpy(&frame_->symbols[i], states_[signature.symbols[i].state->value]->bytes.data(), sizeof(int64_t));
      is_bound[i] = true;
    }
    for (size_t p = 0; p < arguments.size(); ++p) {
      const std::vector<int64_t>& dims =
          arguments[p].kind == ValueKind::kTensor ? arguments[p].tensor.dims : arguments[p].extents;
      const std::vector<Dim>& declared = signature.params[p].type.dims;
      for (size_t i = 0; i < declared.size() && i < dims.size(); ++i) {
        if (!declared[i] || declared[i]->steps().size() != 1 || declared[i]->is_constant()) continue;
        const auto symbol = static_cast<size_t>(declared[i]->steps()[0].value);
        if (!is_bound[symbol]) frame_->symbols[symbol] = dims[i];
        is_bound[symbol] = true;
      }
    }
    for (size_t i = 0; i < signature.symbols.size(); ++i) {
      const int64_t value = frame_->symbols[i];
      if (value < signature.symbols[i].min || value > signature.symbols[i].max)
        return Fail("a symbol out of its range");
      frame_->registers[i] = CheckedValue::Number(ValueKind::kInt, value);
    }
    return true;
  }

  // Whether the value differs from the type in dims alone, which calls compare when they are made.
  bool DiffersInDims(const CheckedValue& value, const Type& type) const {
    Type loose = type;
    const auto loosen = [](auto&& self, Type& t) -> void {
      for (Dim& dim : t.dims) dim.reset();
      for (Type& element : t.elements) self(self, element);
    };
    loosen(loosen, loose);
    return Fits(value, loose, false);
  }

  bool PlaceArguments(const Signature& signature, const std::vector<CheckedValue>& arguments) {
    if (arguments.size() != signature.params.size()) {
      if (depth_ == 1) return Fail("another number of arguments from outside");
      return Disagree("a call passes another number of arguments");
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!DiffersInDims(arguments[i], signature.params[i].type)) {
        if (depth_ == 1) return Fail("an argument from outside of another type");
        return Disagree({"parameter ", i, " is ", signature.params[i].type.ToString(), " and gets a ",
                         ValueKindName(arguments[i].kind), " that is none"});
      }
    }
    if (!BindSymbols(signature, arguments)) return false;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Type& type = signature.params[i].type;
      CheckedValue value = arguments[i];
      if (value.kind == ValueKind::kTensor && type.is_tensor()) {
        if (type.storage == Storage::kBorrowedMut && !value.tensor.is_writable) {
          if (depth_ == 1) return Stop("an argument from outside that is written");
          return Disagree({"parameter ", i, " is written and gets a tensor that is read only"});
        }
        value.tensor.storage = type.storage;
        value.tensor.is_writable = type.storage == Storage::kBorrowedMut;
        value.tensor.entry = -1;
      }
      if (!Fits(value, type)) return Fail({"parameter ", i, " has other dims"});
      frame_->registers[signature.symbols.size() + i] = std::move(value);
    }
    return true;
  }

  bool OpenPlan() {
    const MemoryPlan& plan = frame_->function->plan;
    const auto number = [&](const DimCode& code, int64_t& out) {
      const Result<int64_t> value = code.Evaluate(frame_->symbols);
      out = value.ok() ? *value : -1;
      if (out >= 0 && out <= kMaxBytes) return true;
      return code.is_constant() && out < 0 ? Disagree("the memory plan has a negative size") : Stop("a large plan");
    };
    bool is_stale = false;
    for (const uint32_t at : zeroed_[frame_->id]) {
      is_stale |= InfoOf(frame_->function->code[at].opcode).result == ResultMemory::kArena;
    }
    bool is_constant = true;
    for (const Arena& arena : plan.arenas) {
      int64_t size = 0;
      if (!number(arena.size, size)) return false;
      is_constant &= arena.size.is_constant();
      frame_->arenas.push_back(
          std::make_shared<Memory>(Storage::kArena, size, is_stale ? ByteState::kStale : ByteState::kUnwritten));
    }
    const auto refuse = [&](Text what) { return is_constant ? Disagree(what) : Fail(what); };
    for (const PlanEntry& entry : plan.entries) {
      if (!number(entry.offset, frame_->offsets.emplace_back())) return false;
      if (!number(entry.size, frame_->sizes.emplace_back())) return false;
      is_constant &= entry.offset.is_constant() && entry.size.is_constant();
    }
    for (size_t i = 0; i < plan.entries.size(); ++i) {
      const PlanEntry& a = plan.entries[i];
      const int64_t begin = frame_->offsets[i], end = begin + frame_->sizes[i];
      if (end > static_cast<int64_t>(frame_->arenas[a.arena]->bytes.size()) || begin % 64 != 0) {
        return refuse({"plan entry ", i, " reaches beyond its arena, or is not aligned"});
      }
      if (a.alias_of) {
        const size_t root = a.alias_of->value;
        const PlanEntry& r = plan.entries[root];
        if (a.first < r.first || a.last > r.last || begin < frame_->offsets[root] ||
            end > frame_->offsets[root] + frame_->sizes[root]) {
          return refuse({"plan entry ", i, " is an alias that lies or lives outside of its root"});
        }
        continue;
      }
      for (size_t k = 0; k < i; ++k) {
        const PlanEntry& b = plan.entries[k];
        const bool lives = a.first <= b.last && b.first <= a.last;
        const bool meets = begin < frame_->offsets[k] + frame_->sizes[k] && frame_->offsets[k] < end;
        if (b.alias_of || a.arena != b.arena || !lives || !meets) continue;
        return refuse({"plan entries ", k, " and ", i, " live at once and overlap"});
      }
    }
    return true;
  }

  bool Call(FunctionId id, const std::vector<CheckedValue>& arguments, std::vector<CheckedValue>& results) {
    if (depth_ >= kMaxDepth) return Stop("deep calls");
    if (id.value >= program_.functions.size()) return Disagree("a function that does not exist");
    ++depth_;
    CheckedFrame frame;
    frame.function = &program_.functions[id.value];
    frame.id = id.value;
    frame.registers.resize(frame.function->registers.size());
    frame.symbols.assign(frame.function->signature.symbols.size(), 0);
    CheckedFrame* const caller = std::exchange(frame_, &frame);
    const bool returned = PlaceArguments(frame.function->signature, arguments) && OpenPlan() && RunCode(results);
    for (const auto& arena : frame.arenas) arena->is_alive = false;
    frame_ = caller;
    --depth_;
    return returned;
  }

  bool Gather(IdList<RegisterId> ids, std::vector<CheckedValue>& values) {
    for (const RegisterId id : ids) {
      const CheckedValue* value = Read(id);
      if (value == nullptr) return false;
      values.push_back(*value);
    }
    return true;
  }
  bool Scatter(IdList<RegisterId> ids, std::vector<CheckedValue>& values) {
    if (ids.size() != values.size()) return Disagree({"takes ", ids.size(), " of ", values.size(), " results"});
    for (size_t i = 0; i < ids.size(); ++i) {
      if (!Write(ids[i], std::move(values[i]))) return false;
    }
    return true;
  }

  bool RunCode(std::vector<CheckedValue>& results) {
    const std::vector<Instruction>& code = frame_->function->code;
    while (true) {
      if (frame_->pc >= code.size()) return Disagree("the code goes on behind its end");
      if (++steps_ > kMaxSteps) return Stop("many steps");
      const Instruction& in = code[frame_->pc];
      ran_[static_cast<size_t>(in.opcode)] = true;
      uint32_t next = frame_->pc + 1;
      if (in.opcode == Opcode::kReturn) return Return(in.As<op::Return>().values(), results);
      if (!Step(in, next)) return false;
      frame_->pc = next;
    }
  }

  bool Return(IdList<RegisterId> values, std::vector<CheckedValue>& results) {
    const auto& declared = frame_->function->signature.results;
    if (values.size() != declared.size()) return Disagree({"returns ", values.size(), " of ", declared.size()});
    if (!Gather(values, results)) return false;
    for (size_t i = 0; i < results.size(); ++i) {
      if (!Fits(results[i], declared[i].type)) {
        return Disagree({"result ", i, " is declared ", declared[i].type.ToString(), " and gets another value"});
      }
      if (!CheckOutlives(results[i], true)) return false;
    }
    return true;
  }

  bool CallClosure(const op::CallClosure<>& in) {
    const CheckedValue* closure = Read(in.closure(), ValueKind::kClosure);
    if (closure == nullptr) return false;
    std::vector<CheckedValue> arguments = *closure->elements, results;
    const FunctionId function = closure->function;
    return Gather(in.args(), arguments) && Call(function, arguments, results) && Scatter(in.results(), results);
  }

  bool CallExternal(const op::CallExternal<>& in) {
    if (in.external().value >= program_.externals.size()) return Disagree("an external that does not exist");
    const Signature& signature = program_.externals[in.external().value].signature;
    std::vector<CheckedValue> arguments, results;
    if (!Gather(in.args(), arguments)) return false;
    if (arguments.size() != signature.params.size()) return Disagree("an external gets another number of arguments");
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!DiffersInDims(arguments[i], signature.params[i].type)) return Disagree({"external, argument ", i});
    }
    for (const NamedType& result : signature.results) {
      if (result.type.kind != ValueKind::kInt) return Stop("an external's result");
      results.push_back(CheckedValue::Number(ValueKind::kInt, 7));
    }
    return Scatter(in.results(), results);
  }

  bool CallKernel(const op::CallKernel<>& in) {
    if (in.kernel().value >= program_.kernels.size()) return Disagree("a kernel that does not exist");
    const Kernel& kernel = program_.kernels[in.kernel().value];
    const IdList<RegisterId> buffers = in.buffers(), ints = in.ints();
    if (buffers.size() != kernel.params.size() || ints.size() != kernel.ints.size()) return Disagree("kernel arity");
    std::vector<int64_t> numbers;
    for (size_t i = 0; i < ints.size(); ++i) {
      if (kernel.ints[i].dtype != DataType::Int(64)) return Stop("an argument that is no int64");
      const CheckedValue* value = Read(ints[i], ValueKind::kInt);
      if (value == nullptr) return false;
      numbers.push_back(value->number);
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (!CheckKernelBuffer(kernel, i, buffers, numbers)) return false;
    }
    uint64_t hash = 0xcbf29ce484222325;
    const auto mix = [&](uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3; };
    for (const char c : kernel.name) mix(static_cast<uint8_t>(c));
    for (size_t i = 0; i < buffers.size(); ++i) {
      const CheckedTensor& tensor = frame_->registers[buffers[i].value].tensor;
      if (kernel.params[i].role == ParamRole::kOut) continue;
      if (!ReadBytes(tensor, "the kernel")) return false;
      for (int64_t k = 0; k < tensor.size_bytes(); ++k)
        mix(tensor.memory->bytes[static_cast<size_t>(tensor.offset + k)]);
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
      const CheckedTensor& tensor = frame_->registers[buffers[i].value].tensor;
      if (kernel.params[i].role == ParamRole::kIn) continue;
      const std::vector<uint8_t> bytes(static_cast<size_t>(tensor.size_bytes()), static_cast<uint8_t>(hash >> 32 & 63));
      if (!WriteBytes(tensor, bytes.data(), "the kernel")) return false;
    }
    return true;
  }

  bool CheckKernelBuffer(const Kernel& kernel, size_t i, IdList<RegisterId> buffers, const std::vector<int64_t>& ints) {
    const KernelParam& param = kernel.params[i];
    const CheckedValue* value = Read(buffers[i], ValueKind::kTensor);
    if (value == nullptr) return false;
    const CheckedTensor& tensor = value->tensor;
    if (tensor.dtype != param.dtype || tensor.dims.size() != param.extents.size() || tensor.device != kernel.device) {
      return Disagree({"kernel parameter ", i, " gets a tensor of another dtype, rank or device"});
    }
    const Type& declared = frame_->function->TypeOf(buffers[i]);
    for (size_t axis = 0; axis < param.extents.size(); ++axis) {
      const Result<int64_t> extent = param.extents[axis].Evaluate(ints);
      if (extent.ok() && *extent == tensor.dims[axis]) continue;
      const bool is_proved =
          param.extents[axis].is_constant() && declared.dims[axis] && declared.dims[axis]->is_constant();
      return is_proved ? Disagree({"kernel parameter ", i, " has another extent"}) : Fail("a kernel's extent differs");
    }
    if (tensor.offset % param.alignment != 0) return Fail("a kernel's argument is not aligned");
    if (param.role == ParamRole::kIn) return true;
    for (size_t k = 0; k < buffers.size(); ++k) {
      const CheckedTensor& other = frame_->registers[buffers[k].value].tensor;
      if (k == i || param.in_place == k || other.memory != tensor.memory) continue;
      const bool meets =
          tensor.offset < other.offset + other.size_bytes() && other.offset < tensor.offset + tensor.size_bytes();
      const bool is_known = buffers[k] == buffers[i] || (tensor.entry >= 0 && other.entry >= 0);
      if (meets && is_known) return Disagree({"kernel parameters ", k, " and ", i, " share memory"});
    }
    return true;
  }

  // ---- builtins

  bool CallBuiltin(const op::CallBuiltin<>& in) {
    const BuiltinInfo* const found = FindBuiltin(static_cast<uint64_t>(in.builtin()));
    if (found == nullptr) return Disagree("a builtin that does not exist");
    const BuiltinInfo& row = *found;
    const IdList<RegisterId> ids = in.args();
    const std::span<const BuiltinArgument> params = row.arguments.subspan(row.num_results());
    const bool has_rest = params.back().role == ArgumentRole::kRest;
    if (in.results().size() != row.num_results() || ids.size() < params.size() - (has_rest ? 1 : 0) ||
        (!has_rest && ids.size() > params.size())) {
      return Disagree("a builtin gets another number of arguments");
    }
    std::vector<CheckedValue> args;
    if (!Gather(ids, args)) return false;
    for (size_t i = 0; i < args.size(); ++i) {
      const BuiltinArgument& param = params[std::min(i, params.size() - 1)];
      const bool is_any = param.accepts == Accepts::kAny || param.accepts == Accepts::kObject;
      if (!is_any && static_cast<int>(param.accepts) != static_cast<int>(args[i].kind)) {
        return Disagree({"builtin argument ", i, " is no ", param.name});
      }
      if (args[i].kind != ValueKind::kTensor) continue;
      if (IsWritten(param.role) && !args[i].tensor.is_writable) return Disagree("a builtin writes what is read only");
      if (param.role != ArgumentRole::kOut && !ReadBytes(args[i].tensor, "the builtin")) return false;
    }
    std::vector<CheckedValue> results;
    if (!RunBuiltin(in.builtin(), args, results)) return false;
    // Kind and dims of what a sequence holds are compared when it is read.
    for (size_t i = 0; i < results.size(); ++i) {
      if (in.results()[i].value >= frame_->registers.size()) return Disagree("a register beyond the frame");
      const Type& type = frame_->function->TypeOf(in.results()[i]);
      if (row.arguments[i].accepts == Accepts::kAny && !Fits(results[i], type, false))
        return Fail("another kind or dims");
      if (type.ToString().find("fn(") != std::string::npos) return Stop("a closure in a sequence");
    }
    return Scatter(in.results(), results);
  }

  bool RunBuiltin(Builtin builtin, const std::vector<CheckedValue>& args, std::vector<CheckedValue>& results) {
    switch (builtin) {
      case Builtin::kPrint:
        return true;
      case Builtin::kAssert:
        return args[0].number != 0 || Fail("an assertion");
      case Builtin::kStoreInt: {
        const CheckedTensor& out = args[0].tensor;
        if (out.dtype != DataType::Int(64)) return Fail("store_int into another dtype");
        std::vector<uint8_t> bytes(static_cast<size_t>(out.size_bytes()));
        for (size_t at = 0; at < bytes.size(); at += sizeof(int64_t)) {
          std::memcpy(bytes.data() + at, &args[1].number, sizeof(int64_t));
        }
        return WriteBytes(out, bytes.data(), "store_int");
      }
      case Builtin::kReshape: {
        const CheckedTensor& out = args[0].tensor;
        const CheckedTensor& from = args[1].tensor;
        if (out.dtype != from.dtype || out.size_bytes() != from.size_bytes()) return Fail("reshape");
        if (out.memory == from.memory) return Stop("reshape in place");
        return WriteBytes(out, from.memory->bytes.data() + from.offset, "reshape");
      }
      case Builtin::kSequenceLength:
      case Builtin::kSequenceAt: {
        if (args[0].kind != ValueKind::kTuple) return Fail("no sequence");
        const std::vector<CheckedValue>& elements = *args[0].elements;
        const auto length = static_cast<int64_t>(elements.size());
        if (builtin == Builtin::kSequenceLength) {
          results.push_back(CheckedValue::Number(ValueKind::kInt, length));
          return true;
        }
        const int64_t place = args[1].number < 0 ? args[1].number + length : args[1].number;
        if (place < 0 || place >= length) return Fail("a place of a sequence");
        results.push_back(elements[static_cast<size_t>(place)]);
        return true;
      }
      default:
        return Stop("a builtin that is not modelled");
    }
  }

  // ---- single opcodes

  bool Step(const Instruction& in, uint32_t& next);
  bool StepValue(const Instruction& in);
  bool StepTensor(const Instruction& in);

  bool Load(RegisterId dst, RegisterId from, const DimCode& index, ValueKind kind) {
    const CheckedValue* value = Read(from, ValueKind::kTensor);
    int64_t at = 0;
    if (value == nullptr || !Evaluate(index, at)) return false;
    const CheckedTensor& tensor = value->tensor;
    const int64_t width = tensor.dtype.bits / 8;
    const bool fits = tensor.dtype.lanes == 1 && width > 0 &&
                      (kind == ValueKind::kInt     ? tensor.dtype.is_integral()
                       : kind == ValueKind::kFloat ? tensor.dtype.is_floating() && width >= 4
                                                   : tensor.dtype == DataType::Bool());
    if (!fits) return Disagree("an element of another dtype is loaded");
    if (at < 0 || at * width >= tensor.size_bytes()) return Fail("an index beyond the tensor");
    if (!ReadBytes(tensor, "the load")) return false;
    const uint8_t* const bytes = tensor.memory->bytes.data() + tensor.offset + at * width;
    CheckedValue out = CheckedValue::Of(kind);
    if (kind == ValueKind::kFloat && width == 4) {
      float real = 0;
      std::memcpy(&real, bytes, 4);
      out.real = real;
    } else if (kind == ValueKind::kFloat) {
      std::memcpy(&out.real, bytes, 8);
    } else if (kind == ValueKind::kBool) {
      out.number = bytes[0] != 0 ? 1 : 0;
    } else if (tensor.dtype == DataType::Int(64)) {
      std::memcpy(&out.number, bytes, 8);
    } else {
      return Stop("a narrow integer");
    }
    return Write(dst, std::move(out));
  }

  bool MakeTensor(RegisterId dst, std::shared_ptr<Memory> memory, int64_t offset, std::vector<int64_t> dims,
                  Storage storage, bool is_writable, int64_t entry = -1) {
    CheckedValue value = CheckedValue::Of(ValueKind::kTensor);
    if (dst.value >= frame_->registers.size()) return Disagree("a register beyond the frame");
    const Type& type = frame_->function->TypeOf(dst);
    value.tensor = {std::move(memory), offset, type.dtype, std::move(dims), storage, type.device, is_writable, entry};
    return Write(dst, std::move(value));
  }
  DataType DeclaredDType(RegisterId id) const {
    return id.value < frame_->registers.size() ? frame_->function->TypeOf(id).dtype : DataType();
  }

  bool Alloc(RegisterId dst, const std::vector<DimCode>& codes) {
    std::vector<int64_t> dims;
    if (!Extents(codes, DeclaredDType(dst), dims)) return false;
    CheckedTensor shape;
    shape.dtype = DeclaredDType(dst);
    shape.dims = dims;
    const ByteState state = IsZeroed() ? ByteState::kWritten : ByteState::kUnwritten;
    return MakeTensor(dst, std::make_shared<Memory>(Storage::kOwned, shape.size_bytes(), state), 0, dims,
                      Storage::kOwned, true);
  }

  bool View(const op::View<>& in) {
    const CheckedValue* value = Read(in.src(), ValueKind::kTensor);
    if (value == nullptr) return false;
    const CheckedTensor from = value->tensor;
    std::vector<int64_t> dims;
    int64_t offset = 0;
    if (!Extents(in.dims(), DeclaredDType(in.dst()), dims) || !Evaluate(in.offset_bytes(), offset)) return false;
    CheckedTensor shape;
    shape.dtype = DeclaredDType(in.dst());
    shape.dims = dims;
    if (offset < 0 || offset > from.size_bytes() || shape.size_bytes() > from.size_bytes() - offset) {
      return Fail("a view beyond its tensor");
    }
    if ((from.offset + offset) % std::max(1, shape.dtype.bits / 8) != 0) return Fail("a view that is not aligned");
    return MakeTensor(in.dst(), from.memory, from.offset + offset, dims, from.storage, from.is_writable, from.entry);
  }

  bool PlanView(const op::PlanView<>& in) {
    const size_t entry = in.entry().value;
    if (entry >= frame_->sizes.size()) return Disagree("a plan entry that does not exist");
    std::vector<int64_t> dims;
    if (!Extents(in.dims(), DeclaredDType(in.dst()), dims)) return false;
    CheckedTensor shape;
    shape.dtype = DeclaredDType(in.dst());
    shape.dims = dims;
    if (shape.size_bytes() > frame_->sizes[entry]) {
      const bool is_known = frame_->function->plan.entries[entry].size.is_constant() &&
                            frame_->function->TypeOf(in.dst()).has_constant_dims();
      return is_known ? Disagree("a view that is larger than its plan entry") : Fail("a view larger than its entry");
    }
    const uint32_t arena = frame_->function->plan.entries[entry].arena;
    if (!MakeTensor(in.dst(), frame_->arenas[arena], frame_->offsets[entry], dims, Storage::kArena, true,
                    static_cast<int64_t>(entry))) {
      return false;
    }
    return Touch(in.dst(), frame_->registers[in.dst().value].tensor);
  }

  bool CopyElements(RegisterId dst, RegisterId src) {
    const CheckedValue* from = Read(src, ValueKind::kTensor);
    const CheckedValue* to = from == nullptr ? nullptr : Read(dst, ValueKind::kTensor);
    if (to == nullptr) return false;
    if (to->tensor.dtype != from->tensor.dtype) return Disagree("elements of another dtype are copied");
    if (to->tensor.dims != from->tensor.dims) return Fail("copy_into with other dims");
    if (!ReadBytes(from->tensor, "the copy")) return false;
    const uint8_t* const begin = from->tensor.memory->bytes.data() + from->tensor.offset;
    const std::vector<uint8_t> bytes(begin, begin + from->tensor.size_bytes());
    return WriteBytes(to->tensor, bytes.data(), "the copy");
  }

  const Program& program_;
  const std::vector<std::vector<uint32_t>>& zeroed_;
  std::vector<bool>& ran_;
  std::vector<std::shared_ptr<Memory>> constants_, states_;
  CheckedFrame* frame_ = nullptr;
  CheckedRun run_;
  int64_t steps_ = 0;
  int depth_ = 0;
};

// Control and calls; the rest is in StepValue and StepTensor.
bool CheckedInterpreter::Step(const Instruction& in, uint32_t& next) {
  switch (in.opcode) {
    case Opcode::kCallKernel:
      return CallKernel(in.As<op::CallKernel>());
    case Opcode::kCallBuiltin:
      return CallBuiltin(in.As<op::CallBuiltin>());
    case Opcode::kCallFunction: {
      const auto call = in.As<op::CallFunction>();
      std::vector<CheckedValue> arguments, results;
      return Gather(call.args(), arguments) && Call(call.function(), arguments, results) &&
             Scatter(call.results(), results);
    }
    case Opcode::kCallClosure:
      return CallClosure(in.As<op::CallClosure>());
    case Opcode::kCallExternal:
      return CallExternal(in.As<op::CallExternal>());
    case Opcode::kJump:
      next = in.As<op::Jump>().target().value;
      return true;
    case Opcode::kBranch: {
      const auto branch = in.As<op::Branch>();
      const CheckedValue* condition = Read(branch.condition(), ValueKind::kBool);
      if (condition == nullptr) return false;
      next = (condition->number != 0 ? branch.then_target() : branch.else_target()).value;
      return true;
    }
    case Opcode::kFail:
      return Fail("fail");
    case Opcode::kRelease: {
      if (Read(in.As<op::Release>().value()) == nullptr) return false;
      frame_->registers[in.As<op::Release>().value().value] = CheckedValue();
      return true;
    }
    default:
      return InfoOf(in.opcode).result == ResultMemory::kNone || InfoOf(in.opcode).result == ResultMemory::kHolder ||
                     in.opcode == Opcode::kMove || in.opcode == Opcode::kMatch
                 ? StepValue(in)
                 : StepTensor(in);
  }
}

bool CheckedInterpreter::StepValue(const Instruction& in) {
  switch (in.opcode) {
    case Opcode::kConstInt: {
      const auto at = in.As<op::ConstInt>();
      return Write(at.dst(), CheckedValue::Number(ValueKind::kInt, at.value()));
    }
    case Opcode::kConstFloat: {
      CheckedValue value = CheckedValue::Of(ValueKind::kFloat);
      value.real = in.As<op::ConstFloat>().value();
      return Write(in.As<op::ConstFloat>().dst(), std::move(value));
    }
    case Opcode::kConstBool: {
      const auto at = in.As<op::ConstBool>();
      return Write(at.dst(), CheckedValue::Number(ValueKind::kBool, at.value() ? 1 : 0));
    }
    case Opcode::kConstString: {
      CheckedValue value = CheckedValue::Of(ValueKind::kString);
      value.text = in.As<op::ConstString>().value();
      return Write(in.As<op::ConstString>().dst(), std::move(value));
    }
    case Opcode::kConstDType: {
      CheckedValue value = CheckedValue::Of(ValueKind::kDataType);
      value.dtype = in.As<op::ConstDType>().value();
      return Write(in.As<op::ConstDType>().dst(), std::move(value));
    }
    case Opcode::kDim: {
      int64_t number = 0;
      return Evaluate(in.As<op::Dim>().value(), number) &&
             Write(in.As<op::Dim>().dst(), CheckedValue::Number(ValueKind::kInt, number));
    }
    case Opcode::kTest: {
      int64_t number = 0;
      return Evaluate(in.As<op::Test>().value(), number) &&
             Write(in.As<op::Test>().dst(), CheckedValue::Number(ValueKind::kBool, number != 0 ? 1 : 0));
    }
    case Opcode::kMove: {
      const CheckedValue* value = Read(in.As<op::Move>().src());
      return value != nullptr && Write(in.As<op::Move>().dst(), CheckedValue(*value));
    }
    case Opcode::kMatch: {
      const auto match = in.As<op::Match>();
      const CheckedValue* value = Read(match.src());
      if (value == nullptr) return false;
      if (match.dst().value >= frame_->registers.size()) return Disagree("a register beyond the frame");
      const Type& type = frame_->function->TypeOf(match.dst());
      const bool is_closure = value->kind == ValueKind::kClosure && type.kind == ValueKind::kClosure;
      if (is_closure ? !ActsAs(type, *value->closure) : !Fits(*value, type)) return Fail("no match");
      if (!is_closure && value->elements && type.ToString().find("fn(") != std::string::npos)
        return Stop("a nested closure");
      return Write(match.dst(), CheckedValue(*value));
    }
    case Opcode::kLoadInt: {
      const auto at = in.As<op::LoadInt>();
      return Load(at.dst(), at.tensor(), at.index(), ValueKind::kInt);
    }
    case Opcode::kLoadFloat: {
      const auto at = in.As<op::LoadFloat>();
      return Load(at.dst(), at.tensor(), at.index(), ValueKind::kFloat);
    }
    case Opcode::kLoadBool: {
      const auto at = in.As<op::LoadBool>();
      return Load(at.dst(), at.tensor(), at.index(), ValueKind::kBool);
    }
    case Opcode::kTensorDim:
    case Opcode::kShapeDim: {
      const bool is_tensor = in.opcode == Opcode::kTensorDim;
      const RegisterId src = is_tensor ? in.As<op::TensorDim>().tensor() : in.As<op::ShapeDim>().shape();
      const RegisterId dst = is_tensor ? in.As<op::TensorDim>().dst() : in.As<op::ShapeDim>().dst();
      const int64_t axis = is_tensor ? in.As<op::TensorDim>().axis() : in.As<op::ShapeDim>().axis();
      const CheckedValue* value = Read(src, is_tensor ? ValueKind::kTensor : ValueKind::kShape);
      if (value == nullptr) return false;
      const std::vector<int64_t>& dims = is_tensor ? value->tensor.dims : value->extents;
      if (axis < 0 || axis >= static_cast<int64_t>(dims.size())) return Disagree("an axis that does not exist");
      return Write(dst, CheckedValue::Number(ValueKind::kInt, dims[static_cast<size_t>(axis)]));
    }
    case Opcode::kCopyInto:
      return CopyElements(in.As<op::CopyInto>().dst(), in.As<op::CopyInto>().src());
    case Opcode::kShape: {
      CheckedValue value = CheckedValue::Of(ValueKind::kShape);
      for (const DimCode& code : in.As<op::Shape>().dims()) {
        if (!Evaluate(code, value.extents.emplace_back())) return false;
      }
      return Write(in.As<op::Shape>().dst(), std::move(value));
    }
    case Opcode::kSync: {
      const int64_t device = in.As<op::Sync>().device();
      return (device >= 0 && device < static_cast<int64_t>(program_.devices.size())) || Disagree("an unknown device");
    }
    case Opcode::kTuple:
    case Opcode::kMakeClosure: {
      const bool is_tuple = in.opcode == Opcode::kTuple;
      std::vector<CheckedValue> elements;
      if (!Gather(is_tuple ? in.As<op::Tuple>().elements() : in.As<op::MakeClosure>().captures(), elements))
        return false;
      const RegisterId dst = is_tuple ? in.As<op::Tuple>().dst() : in.As<op::MakeClosure>().dst();
      CheckedValue value =
          CheckedValue::Holder(is_tuple ? ValueKind::kTuple : ValueKind::kClosure, std::move(elements));
      if (!CheckOutlives(value, false)) return false;
      if (!is_tuple) {
        value.function = in.As<op::MakeClosure>().function();
        if (value.function.value >= program_.functions.size()) return Disagree("a function that does not exist");
        value.closure = std::make_shared<const Type>(
            TypeOfClosure(program_.functions[value.function.value].signature, value.elements->size()));
      }
      return Write(dst, std::move(value));
    }
    case Opcode::kTupleGet: {
      const auto get = in.As<op::TupleGet>();
      const CheckedValue* value = Read(get.tuple(), ValueKind::kTuple);
      if (value == nullptr) return false;
      if (get.index() < 0 || get.index() >= static_cast<int64_t>(value->elements->size()))
        return Disagree("a tuple index");
      return Write(get.dst(), CheckedValue((*value->elements)[static_cast<size_t>(get.index())]));
    }
    case Opcode::kSome: {
      const CheckedValue* value = Read(in.As<op::Some>().value());
      if (value == nullptr) return false;
      CheckedValue some = CheckedValue::Holder(ValueKind::kOptional, {*value});
      return CheckOutlives(some, false) && Write(in.As<op::Some>().dst(), std::move(some));
    }
    case Opcode::kNone:
      return Write(in.As<op::None>().dst(), CheckedValue::Holder(ValueKind::kOptional, {}));
    case Opcode::kIsSome: {
      const CheckedValue* value = Read(in.As<op::IsSome>().value(), ValueKind::kOptional);
      return value != nullptr &&
             Write(in.As<op::IsSome>().dst(), CheckedValue::Number(ValueKind::kBool, value->elements->empty() ? 0 : 1));
    }
    case Opcode::kUnwrap: {
      const CheckedValue* value = Read(in.As<op::Unwrap>().value(), ValueKind::kOptional);
      if (value == nullptr) return false;
      if (value->elements->empty()) return Fail("an empty optional");
      return Write(in.As<op::Unwrap>().dst(), CheckedValue((*value->elements)[0]));
    }
    default:
      return Disagree("an opcode that the checked interpreter does not know");
  }
}

bool CheckedInterpreter::StepTensor(const Instruction& in) {
  switch (in.opcode) {
    case Opcode::kConstTensor: {
      const auto at = in.As<op::ConstTensor>();
      if (at.constant().value >= constants_.size()) return Disagree("a constant that does not exist");
      const Constant& constant = program_.constants[at.constant().value];
      if (constant.dtype != DeclaredDType(at.dst())) return Disagree("a constant of another dtype");
      return MakeTensor(at.dst(), constants_[at.constant().value], 0, constant.dims, Storage::kConstant, false);
    }
    case Opcode::kState: {
      const auto at = in.As<op::State>();
      if (at.state().value >= states_.size()) return Disagree("a state that does not exist");
      const State& state = program_.states[at.state().value];
      if (state.dtype != DeclaredDType(at.dst())) return Disagree("a state of another dtype");
      return MakeTensor(at.dst(), states_[at.state().value], 0, state.dims, Storage::kBorrowedMut, true);
    }
    case Opcode::kPlanView:
      return PlanView(in.As<op::PlanView>());
    case Opcode::kView:
      return View(in.As<op::View>());
    case Opcode::kAlloc:
      return Alloc(in.As<op::Alloc>().dst(), in.As<op::Alloc>().dims());
    case Opcode::kAllocOutput:
      return Alloc(in.As<op::AllocOutput>().dst(), in.As<op::AllocOutput>().dims());
    case Opcode::kCopy: {
      const auto copy = in.As<op::Copy>();
      const CheckedValue* value = Read(copy.src(), ValueKind::kTensor);
      if (value == nullptr) return false;
      if (value->tensor.dtype != DeclaredDType(copy.dst())) return Disagree("a copy of another dtype");
      if (!ReadBytes(value->tensor, "the copy")) return false;
      const CheckedTensor from = value->tensor;
      auto memory = std::make_shared<Memory>(Storage::kOwned, from.size_bytes(), ByteState::kWritten);
      std::copy_n(from.memory->bytes.begin() + from.offset, from.size_bytes(), memory->bytes.begin());
      return MakeTensor(copy.dst(), memory, 0, from.dims, Storage::kOwned, true);
    }
    default:
      return Disagree("an opcode that the checked interpreter does not know");
  }
}

}  // namespace

CheckedRun RunChecked(const Program& program, FunctionId function, const std::vector<CheckedValue>& arguments,
                      const std::vector<std::vector<uint32_t>>& zeroed, std::vector<bool>& ran) {
  return CheckedInterpreter(program, zeroed, ran).Run(function, arguments);
}

}  // namespace ingot::vm::checked
