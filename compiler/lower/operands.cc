// One case per kind of leaf, and the registers that callers ask for.
#include "compiler/lower/operands.h"

#include <algorithm>
#include <utility>

#include "compiler/lower/vm_types.h"
#include "vm/verify/type_rules.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

const Value& Operands::ValueOf(const VarNode* var) const {
  const auto it = values_.find(var);
  INGOT_CHECK(it != values_.end(), "a variable is defined before its use");
  return it->second;
}

Result<Value> Operands::Lower(const Expr& expr) {
  switch (expr->kind) {
    case ExprKind::kVar:
      return ValueOf(As<VarNode>(expr));
    case ExprKind::kConstant:
      return Value{scope_.ConstantRegister(*As<ConstantNode>(expr)), {}};
    case ExprKind::kTuple: {
      Value value;
      for (const Expr& field : As<TupleNode>(expr)->fields) {
        INGOT_ASSIGN_OR_RETURN(Value lowered, Lower(field));
        value.fields.push_back(std::move(lowered));
      }
      return value;
    }
    case ExprKind::kShapeExpr: {
      const auto& dims = As<ShapeExprNode>(expr)->dims;
      INGOT_ASSIGN_OR_RETURN(std::vector<DimCode> codes, scope_.Dims(dims));
      const vm::RegisterId dst = builder_.AddRegister(vm::Type::Shape(scope_.RegisterDims(dims)));
      builder_.Shape(dst, std::move(codes));
      return Value{dst, {}};
    }
    case ExprKind::kPrimValue:
      return LowerPrimValue(As<PrimValueNode>(expr)->value);
    case ExprKind::kStringValue: {
      const vm::RegisterId dst = builder_.AddRegister(vm::Type::String());
      builder_.ConstString(dst, As<StringValueNode>(expr)->value);
      return Value{dst, {}};
    }
    case ExprKind::kDataTypeValue: {
      const vm::RegisterId dst = builder_.AddRegister(vm::Type::DType());
      builder_.ConstDType(dst, As<DataTypeValueNode>(expr)->value);
      return Value{dst, {}};
    }
    case ExprKind::kTupleGetItem:
      return LowerField(*As<TupleGetItemNode>(expr));
    case ExprKind::kGlobalVar:
      return MakeClosure(As<GlobalVarNode>(expr)->name, {}, expr->span);
    case ExprKind::kCall:  // calls and branches are bound to variables
    case ExprKind::kIf:
    case ExprKind::kOp:
    case ExprKind::kExternFunc:
    case ExprKind::kSeqExpr:
    case ExprKind::kFunction:
    case ExprKind::kPrimFunc:
      break;
  }
  return Unsupported(expr->span, "operators and external functions as values cannot be lowered to bytecode");
}

Result<Value> Operands::LowerPrimValue(const PrimExpr& value) {
  if (const FloatImmNode* imm = As<FloatImmNode>(value)) {
    const vm::RegisterId dst = builder_.AddRegister(vm::Type::Float());
    builder_.ConstFloat(dst, imm->value);
    return Value{dst, {}};
  }
  if (value->dtype.is_bool()) {
    INGOT_ASSIGN_OR_RETURN(DimCode code, scope_.Dim(value));
    const vm::RegisterId dst = builder_.AddRegister(vm::Type::Bool());
    builder_.Test(dst, std::move(code));
    return Value{dst, {}};
  }
  INGOT_ASSIGN_OR_RETURN(vm::RegisterId reg, scope_.IntRegister(value));
  return Value{reg, {}};
}

Result<Value> Operands::LowerField(const TupleGetItemNode& item) {
  INGOT_ASSIGN_OR_RETURN(Value tuple, Lower(item.tuple));
  const auto index = static_cast<size_t>(item.index);
  if (!tuple.reg) return tuple.fields.at(index);
  const vm::Type& type = builder_.type(*tuple.reg);
  if (index >= type.elements.size()) return Unsupported(item.span, "an element of what is not known to be a tuple");
  const vm::RegisterId dst = builder_.AddRegister(vm::Type(type.elements[index]));
  builder_.TupleGet(dst, *tuple.reg, item.index);
  return Value{dst, {}};
}

Result<vm::RegisterId> Operands::Register(const Expr& expr) {
  INGOT_ASSIGN_OR_RETURN(Value value, Lower(expr));
  return Materialise(value, builder_);
}

Result<std::vector<vm::RegisterId>> Operands::Registers(const std::vector<Expr>& exprs) {
  std::vector<vm::RegisterId> registers;
  for (const Expr& expr : exprs) {
    INGOT_ASSIGN_OR_RETURN(vm::RegisterId reg, Register(expr));
    registers.push_back(reg);
  }
  return registers;
}

Result<vm::RegisterId> Operands::Condition(const Expr& expr) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId value, Register(expr));
  const vm::Type& type = builder_.type(value);
  if (type.kind == vm::ValueKind::kBool) return value;
  const bool is_element = type.is_tensor() && std::all_of(type.dims.begin(), type.dims.end(), [](const vm::Dim& dim) {
                            return dim && dim->is_constant() && dim->constant() == 1;
                          });
  vm::RegisterId number = value;
  if (is_element && type.dtype == DataType::Bool()) {
    const vm::RegisterId condition = builder_.AddRegister(vm::Type::Bool());
    builder_.LoadBool(condition, value, DimCode(0));
    return condition;
  }
  if (is_element && type.dtype.is_integral() && type.dtype.is_scalar() && type.dtype.bits >= 8) {
    number = builder_.AddRegister(vm::Type::Int());
    builder_.LoadInt(number, value, DimCode(0));
  } else if (type.kind != vm::ValueKind::kInt) {
    return Unsupported(expr->span, "a condition that is no truth value and no integer");
  }
  const vm::RegisterId condition = builder_.AddRegister(vm::Type::Bool());
  builder_.Test(condition, DimCode::Binary(DimOp::kNe, DimCode::Slot(number.value), DimCode(0)));
  return condition;
}

Result<Value> Operands::MakeClosure(const std::string& name, std::vector<vm::RegisterId> captures, const Span& span) {
  if (program_.FindFunction(name) == nullptr || program_.module().FindFunction(name) == nullptr) {
    return Unsupported(span, "the tensor function \"" + name + "\" as a value");
  }
  INGOT_RETURN_IF_ERROR(program_.RefuseStates(span, name));
  const vm::FunctionId callee = program_.ClosureTarget(name, captures.size());
  const vm::Signature& signature = program_.signature(callee);
  const std::vector<vm::Dim> unknown(signature.symbols.size());
  vm::Type type = vm::Type::Closure({}, {});
  for (size_t i = captures.size(); i < signature.params.size(); ++i) {
    type.elements.push_back(vm::SubstituteSymbols(signature.params[i].type, unknown));
  }
  for (const vm::NamedType& result : signature.results) {
    type.results.push_back(vm::SubstituteSymbols(result.type, unknown));
  }
  const vm::RegisterId dst = builder_.AddRegister(std::move(type));
  builder_.MakeClosure(dst, callee, std::move(captures));
  return Value{dst, {}};
}

}  // namespace ingot::lower
