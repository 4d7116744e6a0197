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
  FunctionVerifier(const Program& program, const Function& function, const CheckSet& checks, int64_t& work_left)
      : program_(program),
        function_(function),
        checks_(checks),
        work_left_(work_left),
        symbols_(function.signature.symbol_names()) {}

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
  const Type& TypeOf(RegisterId id) const { return function_.TypeOf(id); }
  std::string Show(const Type& type) const { return type.ToString(symbols_); }
  static std::string Name(RegisterId id) { return StrCat({"r", id.value}); }

  // ---- frame and plan

  Verdict VerifyFrame() const {
    const auto fail = [&](Check check, Text what) { return Verdict::Fail(checks_, check, what); };
    const Signature& signature = function_.signature;
    if (static_cast<int64_t>(function_.registers.size()) > kMaxRegisters) {
      return fail(Check::kFrameSize, {function_.registers.size(), " registers are too many"});
    }
    bool head_agrees = function_.registers.size() >= signature.symbols.size() + signature.params.size();
    for (size_t i = 0; head_agrees && i < signature.symbols.size(); ++i)
      head_agrees = function_.registers[i] == Type::Int();
    for (size_t i = 0; head_agrees && i < signature.params.size(); ++i) {
      head_agrees = function_.registers[signature.symbols.size() + i] == signature.params[i].type;
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
      Verdict verdict;
      ForEachRegister(function_.code[at_], [&](RegisterId id, bool) {
        if (verdict.passed()) verdict = VerifyTouch(id);
      });
      INGOT_RETURN_UNLESS_PASSED(std::move(verdict));
    }
    return Verdict();
  }

  Verdict VerifyTouch(RegisterId id) const {
    const uint32_t index = entry_of_[id.value];
    if (index == kNoEntry) return Verdict();
    const PlanEntry& entry = function_.plan.entries[index];
    if (at_ >= entry.first && at_ <= entry.last) return Verdict();
    return Fail(Check::kPlanLiveRange, {Name(id), " is touched outside the live range of plan entry ", index});
  }

  // A register of storage arena belongs to one plan entry for the whole function.
  Verdict SetEntry(RegisterId id, uint32_t entry) {
    uint32_t& known = entry_of_[id.value];
    if (entry == kNoEntry || (known != kNoEntry && known != entry)) {
      return Fail(Check::kPlanLiveRange, {Name(id), " would belong to no plan entry, or to two"});
    }
    known = entry;
    return Verdict();
  }

  // ---- the type pass

  // Checks that the declared type of a written register takes the produced type.
  Verdict Produce(RegisterId id, const Type& produced, Check check = Check::kDefinedType) const {
    if (IsAssignable(TypeOf(id), produced)) return Verdict();
    return Fail(check, {"register ", Name(id), " is ", Show(TypeOf(id)), ", but gets ", Show(produced)});
  }

  std::vector<Dim> DimsOverSymbols(const std::vector<DimCode>& codes) const {
    std::vector<Dim> dims;
    for (const DimCode& code : codes) dims.push_back(facts_->OverSymbols(code));
    return dims;
  }

  // The same for a tensor with this storage, the declared device and dtype, and the instruction's dims.
  Verdict ProduceTensor(RegisterId id, Storage storage, const std::vector<DimCode>& dims) const {
    return Produce(id, Type::Tensor(TypeOf(id).dtype, DimsOverSymbols(dims), storage, TypeOf(id).device));
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
        return VerifyKernelCall(in.As<op::CallKernel>());
      case Opcode::kCallBuiltin:
        return VerifyBuiltinCall(in.As<op::CallBuiltin>());
      case Opcode::kCallFunction: {
        const auto call = in.As<op::CallFunction>();
        return VerifyCall(program_.functions[call.function().value].signature, call.args(), call.results());
      }
      case Opcode::kCallExternal: {
        const auto call = in.As<op::CallExternal>();
        return VerifyCall(program_.externals[call.external().value].signature, call.args(), call.results());
      }
      case Opcode::kCallClosure:
        return VerifyClosureCall(in.As<op::CallClosure>());
      case Opcode::kMakeClosure:
        return VerifyMakeClosure(in.As<op::MakeClosure>());
      case Opcode::kReturn:
        return VerifyReturn(in.As<op::Return>().values());
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
        const auto made = in.As<op::ConstTensor>();
        const Constant& constant = program_.constants[made.constant().value];
        const uint8_t device = TypeOf(made.dst()).device;
        if (device != 0 && program_.devices[device].kind != kCudaDevice) {
          return Fail(Check::kDeviceId, "a constant on a device that has none");
        }
        return Produce(made.dst(), Type::Tensor(constant.dtype, {constant.dims.begin(), constant.dims.end()},
                                                Storage::kConstant, device));
      }
      case Opcode::kState: {
        const auto made = in.As<op::State>();
        const State& state = program_.states[made.state().value];
        return Produce(made.dst(), Type::Tensor(state.dtype, {state.dims.begin(), state.dims.end()},
                                                Storage::kBorrowedMut, state.device));
      }
      case Opcode::kMove: {
        const auto move = in.As<op::Move>();
        const Type& from = TypeOf(move.src());
        if (IsAnyObject(TypeOf(move.dst())) && !IsCountedKind(from.kind)) return VerifyEscape(move.src());
        INGOT_RETURN_UNLESS_PASSED(Produce(move.dst(), from));
        return FollowArena(move.dst(), move.src());
      }
      case Opcode::kMatch: {
        const auto match = in.As<op::Match>();
        INGOT_RETURN_UNLESS_PASSED(VerifyMatch(match.dst(), match.src()));
        return FollowArena(match.dst(), match.src());
      }
      case Opcode::kLoadInt:
        return VerifyLoad(in.As<op::LoadInt>().tensor(), "an integer of 64 bits at most",
                          [](DataType t) { return t.is_integral() && t.bits >= 8; });
      case Opcode::kLoadFloat:
        return VerifyLoad(in.As<op::LoadFloat>().tensor(), "float32 or float64",
                          [](DataType t) { return t == DataType::Float(32) || t == DataType::Float(64); });
      case Opcode::kLoadBool:
        return VerifyLoad(in.As<op::LoadBool>().tensor(), "bool", [](DataType t) { return t == DataType::Bool(); });
      case Opcode::kTensorDim:
        return VerifyAxis(in.As<op::TensorDim>().axis(), TypeOf(in.As<op::TensorDim>().tensor()));
      case Opcode::kShapeDim:
        return VerifyAxis(in.As<op::ShapeDim>().axis(), TypeOf(in.As<op::ShapeDim>().shape()));
      case Opcode::kPlanView:
        return VerifyPlanView(in.As<op::PlanView>());
      case Opcode::kView:
        return VerifyView(in.As<op::View>());
      case Opcode::kAlloc:
        return ProduceTensor(in.As<op::Alloc>().dst(), Storage::kOwned, in.As<op::Alloc>().dims());
      case Opcode::kAllocOutput:
        return VerifyAllocOutput(in.As<op::AllocOutput>());
      case Opcode::kCopy: {
        const auto copy = in.As<op::Copy>();
        Type produced = TypeOf(copy.src());
        produced.storage = Storage::kOwned;
        produced.device = TypeOf(copy.dst()).device;
        return Produce(copy.dst(), produced);
      }
      case Opcode::kCopyInto: {
        const auto copy = in.As<op::CopyInto>();
        const Type& to = TypeOf(copy.dst());
        const Type& from = TypeOf(copy.src());
        if (!IsWritable(to.storage)) return Fail(Check::kWritable, {Name(copy.dst()), " is ", Show(to)});
        if (to.dtype != from.dtype || to.rank() != from.rank()) {
          return Fail(Check::kDefinedType, {Show(from), " is copied into ", Show(to)});
        }
        return Verdict();
      }
      case Opcode::kShape:
        return Produce(in.As<op::Shape>().dst(), Type::Shape(DimsOverSymbols(in.As<op::Shape>().dims())));
      case Opcode::kSync: {
        const int64_t device = in.As<op::Sync>().device();
        if (device >= 0 && static_cast<uint64_t>(device) < program_.devices.size()) return Verdict();
        return Fail(Check::kDeviceId, {"device ", device, " of ", program_.devices.size()});
      }
      case Opcode::kTuple:
        return VerifyTuple(in.As<op::Tuple>());
      case Opcode::kTupleGet: {
        const auto get = in.As<op::TupleGet>();
        const Type& tuple = TypeOf(get.tuple());
        if (get.index() < 0 || static_cast<uint64_t>(get.index()) >= tuple.elements.size()) {
          return Fail(Check::kAxisRange, {"element ", get.index(), " of ", Show(tuple)});
        }
        return Produce(get.dst(), tuple.elements[static_cast<size_t>(get.index())]);
      }
      case Opcode::kSome: {
        const auto some = in.As<op::Some>();
        INGOT_RETURN_UNLESS_PASSED(VerifyEscape(some.value()));
        return Produce(some.dst(), Type::Optional(TypeOf(some.value())));
      }
      case Opcode::kUnwrap:
        return Produce(in.As<op::Unwrap>().dst(), TypeOf(in.As<op::Unwrap>().value()).elements[0]);
    }
    return Fail(Check::kKnownOpcode, "has no rule");
  }

  Verdict VerifyAxis(int64_t axis, const Type& of) const {
    if (axis >= 0 && axis < of.rank()) return Verdict();
    return Fail(Check::kAxisRange, {"axis ", axis, " of ", Show(of)});
  }

  Verdict VerifyAllocOutput(const op::AllocOutput<>& in) const {
    const auto& results = function_.signature.results;
    if (in.result() < 0 || static_cast<uint64_t>(in.result()) >= results.size()) {
      return Fail(Check::kAxisRange, {"result ", in.result(), " of ", results.size()});
    }
    INGOT_RETURN_UNLESS_PASSED(ProduceTensor(in.dst(), Storage::kOwned, in.dims()));
    const Type& result = results[static_cast<size_t>(in.result())].type;
    if (IsAssignable(result, TypeOf(in.dst()))) return Verdict();
    return Fail(Check::kDefinedType, {"the result is ", Show(result), ", the register ", Show(TypeOf(in.dst()))});
  }

  // Compared one by one: a tuple's own type would copy as many as there are operands.
  Verdict VerifyTuple(const op::Tuple<>& in) const {
    const Type& tuple = TypeOf(in.dst());
    if (in.elements().size() != tuple.elements.size()) {
      return Fail(Check::kDefinedType,
                  {"register ", Name(in.dst()), " is ", Show(tuple), ", but gets ", in.elements().size(), " elements"});
    }
    for (size_t i = 0; i < tuple.elements.size(); ++i) {
      const RegisterId element = in.elements()[i];
      INGOT_RETURN_UNLESS_PASSED(VerifyEscape(element));
      if (IsAssignable(tuple.elements[i], TypeOf(element))) continue;
      return Fail(Check::kDefinedType, {"register ", Name(in.dst()), " is ", Show(tuple), ", but element ", i, " gets ",
                                        Show(TypeOf(element))});
    }
    return Verdict();
  }

  // A register that becomes a second name of an arena tensor belongs to the same plan entry.
  Verdict FollowArena(RegisterId to, RegisterId from) {
    const Type& type = TypeOf(to);
    if (!type.is_tensor() || type.storage != Storage::kArena) return Verdict();
    return SetEntry(to, entry_of_[from.value]);
  }

  Verdict VerifyEscape(RegisterId id) const {
    const Type& type = TypeOf(id);
    if (!type.is_tensor() || type.storage == Storage::kOwned) return Verdict();
    return Fail(Check::kEscape, {Name(id), " is ", Show(type), " and would outlive its memory"});
  }

  // Narrowing: an object of class "any" to a type that is no tensor or an owned one, or a type to itself with more
  // known dims.
  Verdict VerifyMatch(RegisterId to, RegisterId from) const {
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
  Verdict VerifyLoad(RegisterId id, const char* wanted, Predicate fits) const {
    const Type& tensor = TypeOf(id);
    if (fits(tensor.dtype) && tensor.dtype.is_scalar() && program_.devices[tensor.device].kind == "cpu")
      return Verdict();
    return Fail(Check::kLoadType, {Name(id), " is ", Show(tensor), ", expected ", wanted, " on the host"});
  }

  Verdict VerifyPlanView(const op::PlanView<>& in) {
    const uint32_t entry_index = in.entry().value;
    const PlanEntry& entry = function_.plan.entries[entry_index];
    INGOT_RETURN_UNLESS_PASSED(ProduceTensor(in.dst(), Storage::kArena, in.dims()));
    if (TypeOf(in.dst()).device != function_.plan.arenas[entry.arena].device) {
      return Fail(Check::kDefinedType, "the arena is on another device than the register");
    }
    INGOT_RETURN_UNLESS_PASSED(SetEntry(in.dst(), entry_index));
    const Type view = Type::Tensor(TypeOf(in.dst()).dtype, DimsOverSymbols(in.dims()));
    // Dims and size of formulas are compared when they have values.
    if (!view.has_constant_dims() || !entry.size.is_constant()) return Verdict();
    const int64_t bytes = KnownBytes(view);
    if (bytes >= 0 && bytes <= entry.size.constant()) return Verdict();
    return Fail(Check::kPlanViewSize, {Show(view), " does not fit into ", entry.size.constant(), " bytes"});
  }

  Verdict VerifyView(const op::View<>& in) {
    const Type& source = TypeOf(in.src());
    if (TypeOf(in.dst()).device != source.device) return Fail(Check::kDefinedType, "a view on another device");
    INGOT_RETURN_UNLESS_PASSED(ProduceTensor(in.dst(), source.storage, in.dims()));
    INGOT_RETURN_UNLESS_PASSED(FollowArena(in.dst(), in.src()));
    const Type view = Type::Tensor(TypeOf(in.dst()).dtype, DimsOverSymbols(in.dims()));
    const Dim offset = facts_->OverSymbols(in.offset_bytes());
    if (!view.has_constant_dims() || !source.has_constant_dims() || !offset || !offset->is_constant()) return Verdict();
    const int64_t bytes = KnownBytes(view), source_bytes = KnownBytes(source), at = offset->constant();
    if (bytes >= 0 && at >= 0 && at <= source_bytes && bytes <= source_bytes - at) return Verdict();
    return Fail(Check::kViewBounds, {Show(view), " at byte ", at, " of ", Show(source)});
  }

  Verdict VerifyReturn(IdList<RegisterId> values) const {
    const auto& results = function_.signature.results;
    if (values.size() != results.size()) {
      return Fail(Check::kCallArity, {"returns ", values.size(), " of ", results.size(), " results"});
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const Type& type = TypeOf(values[i]);
      if (!IsAssignable(results[i].type, type)) {
        return Fail(Check::kReturnTypes,
                    {"result \"", results[i].name, "\" is ", Show(results[i].type), ", but gets ", Show(type)});
      }
    }
    return Verdict();
  }

  // ---- calls

  // A call takes few bytes, whatever the callee's formulas are: each of their steps counts as much as `kWorkPerStep`
  // instructions do in the analysis of flow.
  static constexpr int64_t kWorkPerStep = 128;
  Verdict Charge(int64_t steps) const {
    work_left_ -= kWorkPerStep * steps;
    return work_left_ >= 0 ? Verdict() : Fail(Check::kFlowWork, "the functions together are too complex");
  }
  static int64_t StepsOf(const Type& type) {
    int64_t steps = 1;
    for (const Dim& dim : type.dims) steps += dim ? static_cast<int64_t>(dim->steps().size()) : 0;
    for (const Type& element : type.elements) steps += StepsOf(element);
    for (const Type& result : type.results) steps += StepsOf(result);
    return steps;
  }
  Verdict ChargeCall(const Signature& callee) const {
    int64_t steps = 0;
    for (const NamedType& param : callee.params) steps += StepsOf(param.type);
    for (const NamedType& result : callee.results) steps += StepsOf(result.type);
    return Charge(steps);
  }

  Verdict VerifyArity(size_t params, size_t args, size_t results, size_t taken) const {
    if (params == args && results == taken) return Verdict();
    return Fail(Check::kCallArity, {"the callee takes ", params, " and gives ", results, ", the call passes ", args,
                                    " and takes ", taken});
  }

  Verdict VerifyArguments(const std::vector<const Type*>& params, IdList<RegisterId> args) const {
    for (size_t i = 0; i < args.size(); ++i) {
      if (IsPassable(*params[i], TypeOf(args[i]))) continue;
      return Fail(Check::kCallTypes,
                  {"argument ", i, ": expected ", params[i]->ToString(), ", got ", Show(TypeOf(args[i]))});
    }
    return Verdict();
  }

  Verdict VerifyResults(const std::vector<Type>& produced, IdList<RegisterId> results) const {
    for (size_t i = 0; i < results.size(); ++i) {
      INGOT_RETURN_UNLESS_PASSED(Produce(results[i], produced[i], Check::kCallTypes));
    }
    return Verdict();
  }

  Verdict VerifyCall(const Signature& callee, IdList<RegisterId> args, IdList<RegisterId> results) const {
    INGOT_RETURN_UNLESS_PASSED(VerifyArity(callee.params.size(), args.size(), callee.results.size(), results.size()));
    INGOT_RETURN_UNLESS_PASSED(ChargeCall(callee));
    std::vector<const Type*> params, arguments;
    for (const NamedType& param : callee.params) params.push_back(&param.type);
    for (const RegisterId id : args) arguments.push_back(&TypeOf(id));
    INGOT_RETURN_UNLESS_PASSED(VerifyArguments(params, args));
    const std::vector<Dim> symbols = BindSymbols(callee, arguments);
    std::vector<Type> produced;
    for (const NamedType& result : callee.results) produced.push_back(SubstituteSymbols(result.type, symbols));
    return VerifyResults(produced, results);
  }

  Verdict VerifyClosureCall(const op::CallClosure<>& in) const {
    const Type& closure = TypeOf(in.closure());
    INGOT_RETURN_UNLESS_PASSED(
        VerifyArity(closure.elements.size(), in.args().size(), closure.results.size(), in.results().size()));
    INGOT_RETURN_UNLESS_PASSED(Charge(StepsOf(closure)));
    std::vector<const Type*> params;
    for (const Type& param : closure.elements) params.push_back(&param);
    INGOT_RETURN_UNLESS_PASSED(VerifyArguments(params, in.args()));
    return VerifyResults(closure.results, in.results());
  }

  Verdict VerifyMakeClosure(const op::MakeClosure<>& in) const {
    const Signature& callee = program_.functions[in.function().value].signature;
    const IdList<RegisterId> captures = in.captures();
    if (captures.size() > callee.params.size()) return Fail(Check::kCallArity, "more captures than parameters");
    INGOT_RETURN_UNLESS_PASSED(ChargeCall(callee));
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
    return Produce(in.dst(), produced);
  }

  Verdict VerifyKernelCall(const op::CallKernel<>& in) const {
    const Kernel& kernel = program_.kernels[in.kernel().value];
    const IdList<RegisterId> buffers = in.buffers(), ints = in.ints();
    if (buffers.size() != kernel.params.size() || ints.size() != kernel.ints.size()) {
      return Fail(Check::kCallArity, {"kernel \"", kernel.name, "\" takes ", kernel.params.size(), " tensors and ",
                                      kernel.ints.size(), " integers"});
    }
    int64_t steps = static_cast<int64_t>(buffers.size() * buffers.size() / 8);  // pairs that may not share memory
    for (const KernelParam& param : kernel.params) {
      for (const DimCode& extent : param.extents) steps += static_cast<int64_t>(extent.steps().size());
    }
    INGOT_RETURN_UNLESS_PASSED(Charge(steps));
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
  bool MayShare(RegisterId a, RegisterId b) const {
    if (a == b) return true;
    const auto root = [&](RegisterId id) {
      const uint32_t entry = entry_of_[id.value];
      if (entry == kNoEntry) return kNoEntry;
      const auto& alias_of = function_.plan.entries[entry].alias_of;
      return alias_of ? alias_of->value : entry;
    };
    return root(a) != kNoEntry && root(a) == root(b);
  }

  Verdict VerifyKernelAlias(const Kernel& kernel, IdList<RegisterId> buffers, size_t out) const {
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (i == out || !MayShare(buffers[i], buffers[out]) || kernel.params[out].in_place == i) continue;
      return Fail(Check::kKernelAlias, {"kernel \"", kernel.name, "\": parameters \"", kernel.params[i].name,
                                        "\" and \"", kernel.params[out].name, "\" share memory"});
    }
    return Verdict();
  }

  Verdict VerifyBuiltinCall(const op::CallBuiltin<>& in) const {
    const BuiltinInfo& builtin = InfoOf(in.builtin());
    const IdList<RegisterId> results = in.results(), args = in.args();
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
  int64_t& work_left_;
  const std::vector<std::string> symbols_;
  const FunctionFacts* facts_ = nullptr;
  std::vector<uint32_t> entry_of_;  // registers of storage arena -> plan entry
  size_t at_ = 0;
};

}  // namespace

Verdict VerifyFunction(const Program& program, const Function& function, const CheckSet& checks, int64_t& work_left) {
  return FunctionVerifier(program, function, checks, work_left).Run();
}

}  // namespace ingot::vm
