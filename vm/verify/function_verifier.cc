// The type pass goes over the code once, in order. For every opcode it states the type of what is written as a
// function of the types of what is read, and requires that the written register's declared type takes it; declared
// types never change, so no order of execution can break what is proved here. Dims are compared as formulas over the
// symbols. Where one is unknown, a register must declare it as unknown, and instructions that need it compare it when
// they run (the linker keeps exactly those checks, see vm/facts.h).
#include "vm/verify/function_verifier.h"

#include <algorithm>

#include "vm/program/builtins.h"
#include "vm/program/frame_layout.h"
#include "vm/program/limits.h"
#include "vm/verify/facts.h"
#include "vm/verify/operand_verifier.h"
#include "vm/verify/plan_check.h"
#include "vm/verify/type_rules.h"

namespace ingot::vm {
namespace {

constexpr uint32_t kNoEntry = UINT32_MAX;

class FunctionVerifier {
 public:
  FunctionVerifier(const Program& program, const Function& function, const CheckSet& checks)
      : program_(program), function_(function), checks_(checks), symbols_(function.signature.symbol_names()) {}

  Verdict Run() {
    INGOT_RETURN_UNLESS_PASSED(VerifyFrame());
    INGOT_RETURN_UNLESS_PASSED(VerifyOperands(program_, function_, checks_));
    INGOT_RETURN_UNLESS_PASSED(VerifyPlan());
    INGOT_RETURN_UNLESS_PASSED(VerifyNotes());
    const FunctionFacts facts(function_);
    facts_ = &facts;
    entry_of_.assign(function_.registers.size(), kNoEntry);
    for (at_ = 0; at_ < function_.code.size(); ++at_) INGOT_RETURN_UNLESS_PASSED(VerifyInstruction());
    return VerifyLiveRanges();
  }

 private:
  Verdict Fail(Check check, Text what) const {
    return Verdict::Fail(checks_, check, {InstructionName(function_, at_), ": ", what});
  }
  const Type& TypeOf(uint32_t index) const { return function_.registers[index]; }
  std::string Show(const Type& type) const { return type.ToString(symbols_); }
  static std::string Name(uint32_t index) { return StrCat({"r", index}); }

  // ---- frame and plan

  Verdict VerifyFrame() const {
    const auto fail = [&](Check check, Text what) { return Verdict::Fail(checks_, check, what); };
    const Signature& signature = function_.signature;
    if (static_cast<int64_t>(function_.registers.size()) > kMaxRegisters) {
      return fail(Check::kFrameSize, {function_.registers.size(), " registers are too many"});
    }
    bool head_agrees = function_.registers.size() >= signature.symbols.size() + signature.params.size();
    for (size_t i = 0; head_agrees && i < signature.symbols.size(); ++i) head_agrees = TypeOf(i) == Type::Int();
    for (size_t i = 0; head_agrees && i < signature.params.size(); ++i) {
      head_agrees = TypeOf(signature.symbols.size() + i) == signature.params[i].type;
    }
    if (!head_agrees) return fail(Check::kFrameHead, "the first registers are not the signature's");
    for (size_t i = 0; i < function_.registers.size(); ++i) {
      INGOT_RETURN_UNLESS_PASSED(VerifyType(function_.registers[i], TypePlace::kRegister,
                                            static_cast<int64_t>(signature.symbols.size()), program_, checks_)
                                     .WithContext({"register r", i}));
    }
    const FrameLayout layout = LayOutFrame(function_.registers);
    if (layout.num_words > kMaxFrameWords) return fail(Check::kFrameSize, "the frame is too large");
    if (function_.code.empty()) return fail(Check::kFallOff, "there is no code");
    return Verdict();
  }

  Verdict VerifyPlan() const {
    const MemoryPlan& plan = function_.plan;
    const auto num_symbols = static_cast<int64_t>(function_.signature.symbols.size());
    const auto fail = [&](Check check, Text what) { return Verdict::Fail(checks_, check, what); };
    const auto slots = [&](const DimCode& code) { return code.num_slots() <= num_symbols; };
    std::vector<bool> has_arena(program_.devices.size(), false);
    for (const Arena& arena : plan.arenas) {
      if (arena.device >= program_.devices.size() || has_arena[arena.device]) {
        return fail(Check::kPlanForm,
                    {"an arena on device ", arena.device, ", which does not exist or has one already"});
      }
      has_arena[arena.device] = true;
      if (!slots(arena.size)) return fail(Check::kDimSlots, "an arena's size names a symbol that does not exist");
    }
    for (size_t i = 0; i < plan.entries.size(); ++i) {
      const PlanEntry& entry = plan.entries[i];
      const std::string name = StrCat({"plan entry ", i, ": "});
      if (entry.arena >= plan.arenas.size()) return fail(Check::kPlanForm, {name, "its arena does not exist"});
      if (entry.first > entry.last || entry.last >= function_.code.size()) {
        return fail(Check::kPlanForm, {name, "its live range is none of this code"});
      }
      if (entry.alias_of) {
        const uint32_t root = entry.alias_of->value;
        if (root >= i || plan.entries[root].alias_of || plan.entries[root].arena != entry.arena) {
          return fail(Check::kPlanForm, {name, "entry ", root, " is no earlier root of its arena"});
        }
      }
      if (!slots(entry.offset) || !slots(entry.size)) {
        return fail(Check::kDimSlots, {name, "a formula names a symbol that does not exist"});
      }
    }
    if (!IsConstantPlan(plan)) return Verdict();
    const Result<PlanNumbers> numbers = EvaluatePlan(plan, {});
    if (!numbers.ok()) return fail(Check::kPlanBounds, numbers.status().message());
    return CheckPlanNumbers(plan, *numbers, checks_);
  }

  Verdict VerifyNotes() const {
    for (size_t i = 0; i < function_.notes.size(); ++i) {
      const uint32_t at = function_.notes[i].instruction;
      if (at >= function_.code.size() || (i > 0 && at <= function_.notes[i - 1].instruction)) {
        return Verdict::Fail(checks_, Check::kDebugNotes, {"debug note ", i, " is out of order"});
      }
    }
    return Verdict();
  }

  Verdict VerifyLiveRanges() {
    for (at_ = 0; at_ < function_.code.size(); ++at_) {
      const Instruction& instruction = function_.code[at_];
      const std::span<const OperandSpec> specs = InfoOf(instruction.opcode).operands;
      for (size_t k = 0; k < specs.size(); ++k) {
        if (specs[k].kind == OperandKind::kDef || specs[k].kind == OperandKind::kUse) {
          INGOT_RETURN_UNLESS_PASSED(VerifyTouch(instruction.reg(k)));
        } else if (specs[k].kind == OperandKind::kUseList || specs[k].kind == OperandKind::kDefList) {
          for (uint32_t index : instruction.registers(k)) INGOT_RETURN_UNLESS_PASSED(VerifyTouch(index));
        }
      }
    }
    return Verdict();
  }

  Verdict VerifyTouch(uint32_t index) const {
    if (entry_of_[index] == kNoEntry) return Verdict();
    const PlanEntry& entry = function_.plan.entries[entry_of_[index]];
    if (at_ >= entry.first && at_ <= entry.last) return Verdict();
    return Fail(Check::kPlanLiveRange,
                {Name(index), " is touched outside the live range of plan entry ", entry_of_[index]});
  }

  // A register of storage arena belongs to one plan entry for the whole function.
  Verdict SetEntry(uint32_t index, uint32_t entry) {
    if (entry == kNoEntry || (entry_of_[index] != kNoEntry && entry_of_[index] != entry)) {
      return Fail(Check::kPlanLiveRange, {Name(index), " would belong to no plan entry, or to two"});
    }
    entry_of_[index] = entry;
    return Verdict();
  }

  // ---- the type pass

  // Checks that the declared type of a written register takes the produced type.
  Verdict Produce(uint32_t index, const Type& produced, Check check = Check::kDefinedType) const {
    if (IsAssignable(TypeOf(index), produced)) return Verdict();
    return Fail(check, {"register ", Name(index), " is ", Show(TypeOf(index)), ", but gets ", Show(produced)});
  }

  std::vector<Dim> DimsOverSymbols(const std::vector<DimCode>& codes) const {
    std::vector<Dim> dims;
    for (const DimCode& code : codes) dims.push_back(facts_->OverSymbols(code));
    return dims;
  }

  // The same for a tensor with this storage, the declared device and dtype, and the instruction's dims.
  Verdict ProduceTensor(uint32_t index, Storage storage, const std::vector<DimCode>& dims) const {
    return Produce(index, Type::Tensor(TypeOf(index).dtype, DimsOverSymbols(dims), storage, TypeOf(index).device));
  }

  // Bytes of a tensor type with constant dims; -1 when they are not known, or do not fit.
  static int64_t KnownBytes(const Type& type) {
    int64_t count = 1;
    for (const Dim& dim : type.dims) {
      if (!dim || !dim->is_constant() || dim->constant() < 0) return -1;
      if (__builtin_mul_overflow(count, dim->constant(), &count)) return -1;
    }
    const Result<int64_t> bytes = type.dtype.SizeBytes(count);
    return bytes.ok() ? *bytes : -1;
  }

  Verdict VerifyInstruction() {
    const Instruction& in = function_.code[at_];
    switch (in.opcode) {
      case Opcode::kCallKernel:
        return VerifyKernelCall(in);
      case Opcode::kCallBuiltin:
        return VerifyBuiltinCall(in);
      case Opcode::kCallFunction: {
        const Function& callee = program_.functions[static_cast<size_t>(in.scalar(1))];
        return VerifyCall(callee.signature, in.registers(2), in.registers(0));
      }
      case Opcode::kCallExternal: {
        const External& callee = program_.externals[static_cast<size_t>(in.scalar(1))];
        return VerifyCall(callee.signature, in.registers(2), in.registers(0));
      }
      case Opcode::kCallClosure:
        return VerifyClosureCall(in);
      case Opcode::kMakeClosure:
        return VerifyMakeClosure(in);
      case Opcode::kReturn:
        return VerifyReturn(in);
      case Opcode::kJump:
      case Opcode::kBranch:
      case Opcode::kFail:
      case Opcode::kRelease:
        return Verdict();
      case Opcode::kConstInt:
      case Opcode::kConstFloat:
      case Opcode::kConstBool:
      case Opcode::kConstString:
      case Opcode::kConstDType:
      case Opcode::kDim:
      case Opcode::kTest:
      case Opcode::kIsSome:
      case Opcode::kNone:
        return Verdict();  // the register's kind says it all
      case Opcode::kConstTensor: {
        const Constant& constant = program_.constants[static_cast<size_t>(in.scalar(1))];
        return Produce(in.reg(0),
                       Type::Tensor(constant.dtype, {constant.dims.begin(), constant.dims.end()}, Storage::kConstant));
      }
      case Opcode::kState: {
        const State& state = program_.states[static_cast<size_t>(in.scalar(1))];
        return Produce(in.reg(0), Type::Tensor(state.dtype, {state.dims.begin(), state.dims.end()},
                                               Storage::kBorrowedMut, state.device));
      }
      case Opcode::kMove:
        if (IsAnyObject(TypeOf(in.reg(0))) && !IsCountedKind(TypeOf(in.reg(1)).kind)) return VerifyEscape(in.reg(1));
        INGOT_RETURN_UNLESS_PASSED(Produce(in.reg(0), TypeOf(in.reg(1))));
        return FollowArena(in.reg(0), in.reg(1));
      case Opcode::kMatch:
        INGOT_RETURN_UNLESS_PASSED(VerifyMatch(in.reg(0), in.reg(1)));
        return FollowArena(in.reg(0), in.reg(1));
      case Opcode::kLoadInt:
        return VerifyLoad(in, "an integer of 64 bits at most",
                          [](DataType t) { return t.is_integral() && t.bits >= 8; });
      case Opcode::kLoadFloat:
        return VerifyLoad(in, "float32 or float64",
                          [](DataType t) { return t == DataType::Float(32) || t == DataType::Float(64); });
      case Opcode::kLoadBool:
        return VerifyLoad(in, "bool", [](DataType t) { return t == DataType::Bool(); });
      case Opcode::kTensorDim:
      case Opcode::kShapeDim:
        if (in.scalar(2) >= 0 && in.scalar(2) < TypeOf(in.reg(1)).rank()) return Verdict();
        return Fail(Check::kAxisRange, {"axis ", in.scalar(2), " of ", Show(TypeOf(in.reg(1)))});
      case Opcode::kPlanView:
        return VerifyPlanView(in);
      case Opcode::kView:
        return VerifyView(in);
      case Opcode::kAlloc:
        return ProduceTensor(in.reg(0), Storage::kOwned, in.dims(1));
      case Opcode::kAllocOutput: {
        const auto& results = function_.signature.results;
        if (in.scalar(1) < 0 || static_cast<uint64_t>(in.scalar(1)) >= results.size()) {
          return Fail(Check::kAxisRange, {"result ", in.scalar(1), " of ", results.size()});
        }
        INGOT_RETURN_UNLESS_PASSED(ProduceTensor(in.reg(0), Storage::kOwned, in.dims(2)));
        const Type& result = results[static_cast<size_t>(in.scalar(1))].type;
        if (!IsAssignable(result, TypeOf(in.reg(0)))) {
          return Fail(Check::kDefinedType,
                      {"the result is ", Show(result), ", the register ", Show(TypeOf(in.reg(0)))});
        }
        return Verdict();
      }
      case Opcode::kCopy: {
        Type produced = TypeOf(in.reg(1));
        produced.storage = Storage::kOwned;
        produced.device = TypeOf(in.reg(0)).device;
        return Produce(in.reg(0), produced);
      }
      case Opcode::kCopyInto: {
        const Type& to = TypeOf(in.reg(0));
        const Type& from = TypeOf(in.reg(1));
        if (!IsWritable(to.storage)) return Fail(Check::kWritable, {Name(in.reg(0)), " is ", Show(to)});
        if (to.dtype != from.dtype || to.rank() != from.rank()) {
          return Fail(Check::kDefinedType, {Show(from), " is copied into ", Show(to)});
        }
        return Verdict();
      }
      case Opcode::kShape:
        return Produce(in.reg(0), Type::Shape(DimsOverSymbols(in.dims(1))));
      case Opcode::kSync:
        if (in.scalar(0) >= 0 && static_cast<uint64_t>(in.scalar(0)) < program_.devices.size()) return Verdict();
        return Fail(Check::kDeviceId, {"device ", in.scalar(0), " of ", program_.devices.size()});
      case Opcode::kTuple: {
        // Compared one by one: a tuple's own type would copy as many as there are operands.
        const Type& tuple = TypeOf(in.reg(0));
        if (in.registers(1).size() != tuple.elements.size()) {
          return Fail(Check::kDefinedType, {"register ", Name(in.reg(0)), " is ", Show(tuple), ", but gets ",
                                            in.registers(1).size(), " elements"});
        }
        for (size_t i = 0; i < tuple.elements.size(); ++i) {
          const uint32_t index = in.registers(1)[i];
          INGOT_RETURN_UNLESS_PASSED(VerifyEscape(index));
          if (IsAssignable(tuple.elements[i], TypeOf(index))) continue;
          return Fail(Check::kDefinedType, {"register ", Name(in.reg(0)), " is ", Show(tuple), ", but element ", i,
                                            " gets ", Show(TypeOf(index))});
        }
        return Verdict();
      }
      case Opcode::kTupleGet: {
        const Type& tuple = TypeOf(in.reg(1));
        if (in.scalar(2) < 0 || static_cast<uint64_t>(in.scalar(2)) >= tuple.elements.size()) {
          return Fail(Check::kAxisRange, {"element ", in.scalar(2), " of ", Show(tuple)});
        }
        return Produce(in.reg(0), tuple.elements[static_cast<size_t>(in.scalar(2))]);
      }
      case Opcode::kSome:
        INGOT_RETURN_UNLESS_PASSED(VerifyEscape(in.reg(1)));
        return Produce(in.reg(0), Type::Optional(TypeOf(in.reg(1))));
      case Opcode::kUnwrap:
        return Produce(in.reg(0), TypeOf(in.reg(1)).elements[0]);
    }
    return Fail(Check::kKnownOpcode, "has no rule");
  }

  // A register that becomes a second name of an arena tensor belongs to the same plan entry.
  Verdict FollowArena(uint32_t to, uint32_t from) {
    const Type& type = TypeOf(to);
    if (!type.is_tensor() || type.storage != Storage::kArena) return Verdict();
    return SetEntry(to, entry_of_[from]);
  }

  Verdict VerifyEscape(uint32_t index) const {
    const Type& type = TypeOf(index);
    if (!type.is_tensor() || type.storage == Storage::kOwned) return Verdict();
    return Fail(Check::kEscape, {Name(index), " is ", Show(type), " and would outlive its memory"});
  }

  // Narrowing: an object of class "any" to a type that is no tensor or an owned one, or a type to itself with more
  // known dims.
  Verdict VerifyMatch(uint32_t to, uint32_t from) const {
    const Type& wanted = TypeOf(to);
    if (IsAnyObject(TypeOf(from))) {
      if (!wanted.is_tensor() || wanted.storage == Storage::kOwned) return Verdict();
      return Fail(Check::kEscape, "an object holds owned tensors alone");
    }
    Type loose = wanted;
    for (Dim& dim : loose.dims) dim.reset();
    if (IsAssignable(loose, TypeOf(from))) return Verdict();
    return Fail(Check::kDefinedType, {Show(TypeOf(from)), " can never be ", Show(wanted)});
  }

  template <typename Predicate>
  Verdict VerifyLoad(const Instruction& in, const char* wanted, Predicate fits) const {
    const Type& tensor = TypeOf(in.reg(1));
    if (fits(tensor.dtype) && tensor.dtype.is_scalar() && program_.devices[tensor.device].kind == "cpu")
      return Verdict();
    return Fail(Check::kLoadType, {Name(in.reg(1)), " is ", Show(tensor), ", expected ", wanted, " on the host"});
  }

  Verdict VerifyPlanView(const Instruction& in) {
    const auto entry_index = static_cast<uint32_t>(in.scalar(1));
    const PlanEntry& entry = function_.plan.entries[entry_index];
    INGOT_RETURN_UNLESS_PASSED(ProduceTensor(in.reg(0), Storage::kArena, in.dims(2)));
    if (TypeOf(in.reg(0)).device != function_.plan.arenas[entry.arena].device) {
      return Fail(Check::kDefinedType, "the arena is on another device than the register");
    }
    INGOT_RETURN_UNLESS_PASSED(SetEntry(in.reg(0), entry_index));
    const Type view = Type::Tensor(TypeOf(in.reg(0)).dtype, DimsOverSymbols(in.dims(2)));
    // Dims and size of formulas are compared when they have values.
    if (!view.has_constant_dims() || !entry.size.is_constant()) return Verdict();
    const int64_t bytes = KnownBytes(view);
    if (bytes >= 0 && bytes <= entry.size.constant()) return Verdict();
    return Fail(Check::kPlanViewSize, {Show(view), " does not fit into ", entry.size.constant(), " bytes"});
  }

  Verdict VerifyView(const Instruction& in) {
    const Type& source = TypeOf(in.reg(1));
    if (TypeOf(in.reg(0)).device != source.device) return Fail(Check::kDefinedType, "a view on another device");
    INGOT_RETURN_UNLESS_PASSED(ProduceTensor(in.reg(0), source.storage, in.dims(3)));
    INGOT_RETURN_UNLESS_PASSED(FollowArena(in.reg(0), in.reg(1)));
    const Type view = Type::Tensor(TypeOf(in.reg(0)).dtype, DimsOverSymbols(in.dims(3)));
    const Dim offset = facts_->OverSymbols(in.dim(2));
    if (!view.has_constant_dims() || !source.has_constant_dims() || !offset || !offset->is_constant()) return Verdict();
    const int64_t bytes = KnownBytes(view), source_bytes = KnownBytes(source), at = offset->constant();
    if (bytes >= 0 && at >= 0 && at <= source_bytes && bytes <= source_bytes - at) return Verdict();
    return Fail(Check::kViewBounds, {Show(view), " at byte ", at, " of ", Show(source)});
  }

  Verdict VerifyReturn(const Instruction& in) const {
    const auto& results = function_.signature.results;
    if (in.registers(0).size() != results.size()) {
      return Fail(Check::kCallArity, {"returns ", in.registers(0).size(), " of ", results.size(), " results"});
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const Type& type = TypeOf(in.registers(0)[i]);
      if (!IsAssignable(results[i].type, type)) {
        return Fail(Check::kReturnTypes,
                    {"result \"", results[i].name, "\" is ", Show(results[i].type), ", but gets ", Show(type)});
      }
    }
    return Verdict();
  }

  // ---- calls

  Verdict VerifyArity(size_t params, size_t args, size_t results, size_t taken) const {
    if (params == args && results == taken) return Verdict();
    return Fail(Check::kCallArity, {"the callee takes ", params, " and gives ", results, ", the call passes ", args,
                                    " and takes ", taken});
  }

  Verdict VerifyArguments(const std::vector<const Type*>& params, const RegisterList& args) const {
    for (size_t i = 0; i < args.size(); ++i) {
      if (IsPassable(*params[i], TypeOf(args[i]))) continue;
      return Fail(Check::kCallTypes,
                  {"argument ", i, ": expected ", params[i]->ToString(), ", got ", Show(TypeOf(args[i]))});
    }
    return Verdict();
  }

  Verdict VerifyResults(const std::vector<Type>& produced, const RegisterList& results) const {
    for (size_t i = 0; i < results.size(); ++i) {
      INGOT_RETURN_UNLESS_PASSED(Produce(results[i], produced[i], Check::kCallTypes));
    }
    return Verdict();
  }

  Verdict VerifyCall(const Signature& callee, const RegisterList& args, const RegisterList& results) const {
    INGOT_RETURN_UNLESS_PASSED(VerifyArity(callee.params.size(), args.size(), callee.results.size(), results.size()));
    std::vector<const Type*> params, arguments;
    for (const NamedType& param : callee.params) params.push_back(&param.type);
    for (uint32_t index : args) arguments.push_back(&TypeOf(index));
    INGOT_RETURN_UNLESS_PASSED(VerifyArguments(params, args));
    const std::vector<Dim> symbols = BindSymbols(callee, arguments);
    std::vector<Type> produced;
    for (const NamedType& result : callee.results) produced.push_back(SubstituteSymbols(result.type, symbols));
    return VerifyResults(produced, results);
  }

  Verdict VerifyClosureCall(const Instruction& in) const {
    const Type& closure = TypeOf(in.reg(1));
    INGOT_RETURN_UNLESS_PASSED(
        VerifyArity(closure.elements.size(), in.registers(2).size(), closure.results.size(), in.registers(0).size()));
    std::vector<const Type*> params;
    for (const Type& param : closure.elements) params.push_back(&param);
    INGOT_RETURN_UNLESS_PASSED(VerifyArguments(params, in.registers(2)));
    return VerifyResults(closure.results, in.registers(0));
  }

  Verdict VerifyMakeClosure(const Instruction& in) const {
    const Signature& callee = program_.functions[static_cast<size_t>(in.scalar(1))].signature;
    const RegisterList& captures = in.registers(2);
    if (captures.size() > callee.params.size()) return Fail(Check::kCallArity, "more captures than parameters");
    std::vector<const Type*> params;
    for (size_t i = 0; i < captures.size(); ++i) {
      INGOT_RETURN_UNLESS_PASSED(VerifyEscape(captures[i]));
      const Type& param = callee.params[i].type;
      // A captured tensor may be shared with other values.
      if (param.is_tensor() && param.storage == Storage::kBorrowedMut) {
        return Fail(Check::kWritable, {"parameter \"", callee.params[i].name, "\" is written and cannot be captured"});
      }
      params.push_back(&param);
    }
    INGOT_RETURN_UNLESS_PASSED(VerifyArguments(params, captures));
    const std::vector<Dim> no_symbols(callee.symbols.size());
    Type produced = Type::Scalar(ValueKind::kClosure);
    for (size_t i = captures.size(); i < callee.params.size(); ++i) {
      produced.elements.push_back(SubstituteSymbols(callee.params[i].type, no_symbols));
    }
    for (const NamedType& result : callee.results)
      produced.results.push_back(SubstituteSymbols(result.type, no_symbols));
    return Produce(in.reg(0), produced);
  }

  Verdict VerifyKernelCall(const Instruction& in) const {
    const Kernel& kernel = program_.kernels[static_cast<size_t>(in.scalar(0))];
    const RegisterList& buffers = in.registers(1);
    const RegisterList& ints = in.registers(2);
    if (buffers.size() != kernel.params.size() || ints.size() != kernel.ints.size()) {
      return Fail(Check::kCallArity, {"kernel \"", kernel.name, "\" takes ", kernel.params.size(), " tensors and ",
                                      kernel.ints.size(), " integers"});
    }
    for (size_t i = 0; i < ints.size(); ++i) {
      const DataType dtype = kernel.ints[i].dtype;
      const ValueKind wanted = dtype.is_bool()       ? ValueKind::kBool
                               : dtype.is_floating() ? ValueKind::kFloat
                                                     : ValueKind::kInt;
      if (TypeOf(ints[i]).kind == wanted) continue;
      return Fail(Check::kKernelInts, {"integer argument ", i, " is ", dtype.ToString()});
    }
    const std::vector<std::vector<Dim>> extents = KnownExtents(kernel, ints, *facts_);
    for (size_t i = 0; i < buffers.size(); ++i) {
      const KernelParam& param = kernel.params[i];
      const Type& type = TypeOf(buffers[i]);
      const Type wanted = Type::Tensor(param.dtype, extents[i], type.storage, kernel.device);
      // IsPassable accepts dims that are not constants; the call compares them.
      if (!IsPassable(wanted, type)) {
        return Fail(Check::kKernelOperands, {"kernel \"", kernel.name, "\", parameter \"", param.name, "\": expected ",
                                             Show(wanted), ", got ", Show(type)});
      }
      if (param.role == ParamRole::kIn) continue;
      if (!IsWritable(type.storage)) {
        return Fail(Check::kWritable,
                    {"kernel \"", kernel.name, "\" writes ", Name(buffers[i]), ", which is ", Show(type)});
      }
      INGOT_RETURN_UNLESS_PASSED(VerifyKernelAlias(kernel, buffers, i));
    }
    return Verdict();
  }

  // Registers that certainly or possibly share memory: the same register, or arena tensors of the same plan root.
  bool MayShare(uint32_t a, uint32_t b) const {
    if (a == b) return true;
    const auto root = [&](uint32_t index) {
      const uint32_t entry = entry_of_[index];
      if (entry == kNoEntry) return kNoEntry;
      const auto& alias_of = function_.plan.entries[entry].alias_of;
      return alias_of ? alias_of->value : entry;
    };
    return root(a) != kNoEntry && root(a) == root(b);
  }

  Verdict VerifyKernelAlias(const Kernel& kernel, const RegisterList& buffers, size_t out) const {
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (i == out || !MayShare(buffers[i], buffers[out]) || kernel.params[out].in_place == i) continue;
      return Fail(Check::kKernelAlias, {"kernel \"", kernel.name, "\": parameters \"", kernel.params[i].name,
                                        "\" and \"", kernel.params[out].name, "\" share memory"});
    }
    return Verdict();
  }

  Verdict VerifyBuiltinCall(const Instruction& in) const {
    const BuiltinInfo& builtin = *FindBuiltin(static_cast<uint64_t>(in.scalar(1)));
    const RegisterList &results = in.registers(0), &args = in.registers(2);
    const size_t num_results = builtin.num_results();
    const std::span<const BuiltinArgument> row = builtin.arguments.subspan(num_results);
    const bool has_rest = row.back().role == ArgumentRole::kRest;
    const size_t fixed = row.size() - (has_rest ? 1 : 0);
    if (results.size() != num_results || args.size() < fixed || (!has_rest && args.size() > fixed)) {
      return Fail(Check::kCallArity,
                  {"builtin ", builtin.name, " takes ", fixed, has_rest ? " or more" : "", " arguments and gives ",
                   num_results == 0 ? Text("nothing") : Text({num_results, " results"})});
    }
    const auto is_of_kind = [](const BuiltinArgument& argument, const Type& type) {
      return argument.accepts == Accepts::kAny || static_cast<int>(argument.accepts) == static_cast<int>(type.kind);
    };
    for (size_t i = 0; i < num_results; ++i) {
      const Type& type = TypeOf(results[i]);
      const bool is_any = builtin.arguments[i].accepts != Accepts::kObject || IsAnyObject(type);
      const bool is_owned = !type.is_tensor() || type.storage == Storage::kOwned;
      if (is_any && is_owned && is_of_kind(builtin.arguments[i], type)) continue;
      return Fail(Check::kCallTypes,
                  {"builtin ", builtin.name, ", result \"", builtin.arguments[i].name, "\": into ", Show(type)});
    }
    for (size_t i = 0; i < args.size(); ++i) {
      const BuiltinArgument& argument = row[std::min(i, row.size() - 1)];
      const Type& type = TypeOf(args[i]);
      const bool is_object = argument.accepts == Accepts::kObject;
      const bool right_kind = is_object ? IsCountedKind(type.kind) : is_of_kind(argument, type);
      if (!right_kind || (type.is_tensor() && program_.devices[type.device].kind != "cpu")) {
        return Fail(Check::kCallTypes,
                    {"builtin ", builtin.name, ", argument \"", argument.name, "\": got ", Show(type)});
      }
      if (IsWritten(argument.role) && !IsWritable(type.storage)) {
        return Fail(Check::kWritable, {"builtin ", builtin.name, " writes ", Name(args[i]), ", which is ", Show(type)});
      }
      for (size_t k = 0; k < std::min(i, fixed); ++k) {
        if (!IsWritten(row[k].role) || !type.is_tensor() || !MayShare(args[i], args[k])) continue;
        return Fail(Check::kKernelAlias, {"builtin ", builtin.name, ": its output is an input too"});
      }
    }
    return Verdict();
  }

  const Program& program_;
  const Function& function_;
  const CheckSet& checks_;
  const std::vector<std::string> symbols_;
  const FunctionFacts* facts_ = nullptr;
  std::vector<uint32_t> entry_of_;  // registers of storage arena -> plan entry
  size_t at_ = 0;
};

}  // namespace

Verdict VerifyFunction(const Program& program, const Function& function, const CheckSet& checks) {
  return FunctionVerifier(program, function, checks).Run();
}

}  // namespace ingot::vm
