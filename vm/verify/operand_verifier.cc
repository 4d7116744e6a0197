// One pass over the code, with a case per operand kind.
#include "vm/verify/operand_verifier.h"

#include "vm/program/builtins.h"

namespace ingot::vm {
namespace {

class OperandVerifier {
 public:
  OperandVerifier(const Program& program, const Function& function, const CheckSet& checks)
      : program_(program), function_(function), checks_(checks) {}

  Verdict Run() {
    for (index_ = 0; index_ < function_.code.size(); ++index_) {
      const Instruction& instruction = function_.code[index_];
      const size_t num_operands = InfoOf(instruction.opcode).operands.size();
      if (instruction.operands().size() != num_operands) {
        return Fail(Check::kOperandForm, {"takes ", num_operands, " operands"});
      }
      for (const auto& [spec, value] : instruction.operands()) {
        INGOT_RETURN_UNLESS_PASSED(VerifyOperand(spec, value));
      }
    }
    --index_;
    if (InfoOf(function_.code.back().opcode).flow == Flow::kNext) {
      return Fail(Check::kFallOff, "the code goes on behind its last instruction");
    }
    return Verdict();
  }

 private:
  Verdict Fail(Check check, Text what) const {
    return Verdict::Fail(checks_, check, {InstructionName(function_, index_), ": ", what});
  }

  // Which alternative of Operand an operand kind uses.
  static size_t FormOf(OperandKind kind) {
    switch (kind) {
      case OperandKind::kDefList:
      case OperandKind::kUseList:
        return 1;
      case OperandKind::kDim:
        return 2;
      case OperandKind::kDimList:
        return 3;
      case OperandKind::kText:
        return 4;
      case OperandKind::kDef:
      case OperandKind::kUse:
      case OperandKind::kInt:
      case OperandKind::kFloat:
      case OperandKind::kBool:
      case OperandKind::kDType:
      case OperandKind::kLabel:
      case OperandKind::kKernel:
      case OperandKind::kBuiltin:
      case OperandKind::kFunction:
      case OperandKind::kExternal:
      case OperandKind::kConstant:
      case OperandKind::kState:
      case OperandKind::kPlanEntry:
      case OperandKind::kStream:
        return 0;
    }
    return 0;
  }

  Verdict VerifyOperand(const OperandSpec& spec, const Operand& operand) {
    if (operand.index() != FormOf(spec.kind)) return Fail(Check::kOperandForm, {spec.name, " has another form"});
    const auto id = [&](const char* what, size_t count) {
      const int64_t value = std::get<int64_t>(operand);
      if (value >= 0 && static_cast<uint64_t>(value) < count) return Verdict();
      return Fail(Check::kIdRange, {what, " ", value, " of ", count});
    };
    switch (spec.kind) {
      case OperandKind::kDef:
      case OperandKind::kUse:
        return VerifyRegister(spec, std::get<int64_t>(operand), spec.kind == OperandKind::kDef);
      case OperandKind::kDefList:
      case OperandKind::kUseList:
        for (uint32_t index : std::get<RegisterList>(operand)) {
          INGOT_RETURN_UNLESS_PASSED(VerifyRegister(spec, index, spec.kind == OperandKind::kDefList));
        }
        return Verdict();
      case OperandKind::kInt:
      case OperandKind::kFloat:
      case OperandKind::kText:
        return Verdict();
      case OperandKind::kBool:
        if (std::get<int64_t>(operand) >> 1 != 0) return Fail(Check::kOperandForm, "a truth value is 0 or 1");
        return Verdict();
      case OperandKind::kDType: {
        const int64_t packed = std::get<int64_t>(operand);
        const DataType dtype = UnpackDataType(packed);
        if (PackDataType(dtype) != packed || !dtype.IsKnown())
          return Fail(Check::kKnownDataType, "an unknown element type");
        return Verdict();
      }
      case OperandKind::kDim:
        return VerifyFormula(std::get<DimCode>(operand));
      case OperandKind::kDimList:
        if (std::get<std::vector<DimCode>>(operand).size() > 8) return Fail(Check::kTensorRank, "a rank above 8");
        for (const DimCode& code : std::get<std::vector<DimCode>>(operand)) {
          INGOT_RETURN_UNLESS_PASSED(VerifyFormula(code));
        }
        return Verdict();
      case OperandKind::kLabel: {
        const int64_t target = std::get<int64_t>(operand);
        if (target >= 0 && static_cast<uint64_t>(target) < function_.code.size()) return Verdict();
        return Fail(Check::kLabelTarget, {"jumps to ", target, " of ", function_.code.size(), " instructions"});
      }
      case OperandKind::kKernel:
        return id("kernel", program_.kernels.size());
      case OperandKind::kFunction:
        return id("function", program_.functions.size());
      case OperandKind::kExternal:
        return id("external", program_.externals.size());
      case OperandKind::kConstant:
        return id("constant", program_.constants.size());
      case OperandKind::kState:
        return id("state", program_.states.size());
      case OperandKind::kPlanEntry:
        return id("plan entry", function_.plan.entries.size());
      case OperandKind::kBuiltin:
        if (FindBuiltin(static_cast<uint64_t>(std::get<int64_t>(operand))) != nullptr) return Verdict();
        return Fail(Check::kIdRange, {"unknown builtin ", std::get<int64_t>(operand)});
      case OperandKind::kStream:
        if (std::get<int64_t>(operand) == 0) return Verdict();
        return Fail(Check::kStreamZero, {"stream ", std::get<int64_t>(operand), " is not supported"});
    }
    return Fail(Check::kOperandForm, "an unknown operand kind");
  }

  Verdict VerifyRegister(const OperandSpec& spec, int64_t index, bool is_def) const {
    if (index < 0 || static_cast<uint64_t>(index) >= function_.registers.size()) {
      return Fail(Check::kRegisterRange, {spec.name, ": register r", index, " of ", function_.registers.size()});
    }
    const ValueKind kind = function_.registers[static_cast<size_t>(index)].kind;
    const bool is_scalar = kind == ValueKind::kInt || kind == ValueKind::kFloat || kind == ValueKind::kBool;
    const bool good = spec.accepts == Accepts::kAny || (spec.accepts == Accepts::kScalar && is_scalar) ||
                      static_cast<int>(spec.accepts) == static_cast<int>(kind);
    if (!good) {
      return Fail(Check::kRegisterKind, {spec.name, ": register r", index, " is of kind ", ValueKindName(kind)});
    }
    if (is_def && static_cast<uint64_t>(index) < function_.signature.symbols.size()) {
      return Fail(Check::kSymbolWrite, {"symbol r", index, " is written"});
    }
    return Verdict();
  }

  Verdict VerifyFormula(const DimCode& code) const {
    for (const DimStep& step : code.steps()) {
      if (step.op != DimOp::kSlot) continue;
      if (step.value < 0 || static_cast<uint64_t>(step.value) >= function_.registers.size() ||
          function_.registers[static_cast<size_t>(step.value)].kind != ValueKind::kInt) {
        return Fail(Check::kDimSlots, {"a formula names r", step.value, ", which is no int register"});
      }
    }
    return Verdict();
  }

  const Program& program_;
  const Function& function_;
  const CheckSet& checks_;
  size_t index_ = 0;
};

}  // namespace

std::string InstructionName(const Function& function, size_t index) {
  return StrCat({"instruction ", index, " (", InfoOf(function.code[index].opcode).name, ")"});
}

Verdict VerifyOperands(const Program& program, const Function& function, const CheckSet& checks) {
  return OperandVerifier(program, function, checks).Run();
}

}  // namespace ingot::vm
