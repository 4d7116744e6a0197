// Types that are compared when the program runs: match_cast, and what a call's check of its arguments leaves. A part of
// compiler/lower/function_lowering.h.
#include <algorithm>
#include <utility>

#include "compiler/ir/visitor.h"
#include "compiler/lower/function_lowering.h"
#include "compiler/lower/vm_types.h"
#include "vm/verify/type_rules.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

bool IsAny(const vm::Type& type) { return vm::IsAnyObject(type); }

}  // namespace

Status FunctionLowering::LowerMatchCast(const Binding& binding) {
  INGOT_ASSIGN_OR_RETURN(const Value source, LowerValue(binding.value));
  INGOT_ASSIGN_OR_RETURN(const Value value, Matched(source, binding.match_cast, binding.span, {binding.var->name, ""}));
  values_[binding.var.get()] = value;
  std::vector<PendingDim> pending;
  BindDims(binding.match_cast, value, "match_cast of \"" + binding.var->name + "\"", pending);
  return CompareDims(pending);
}

Result<FunctionLowering::Value> FunctionLowering::Matched(const Value& source, const Type& wanted_type,
                                                          const Span& span, const Named& what) {
  if (wanted_type->kind == TypeKind::kObject) return source;  // every value is an object
  if (const auto* tuple = As<TupleTypeNode>(wanted_type); tuple != nullptr && !source.reg) {
    if (source.fields.size() == tuple->fields.size()) return MatchedFields(source, *tuple, span, what);
  }
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId src, Materialise(source));
  vm::Type type = builder_->type(src);
  const vm::Storage storage = IsAny(type) ? vm::Storage::kOwned : type.storage;
  INGOT_ASSIGN_OR_RETURN(vm::Type wanted, LowerType(wanted_type, symbols_, storage, span));
  vm::Type loose = wanted;
  for (vm::Dim& dim : loose.dims) dim.reset();
  if (!IsAny(type) && !IsAny(wanted) && !vm::IsAssignable(loose, type)) {
    if (const auto* tuple = As<TupleTypeNode>(wanted_type);
        tuple != nullptr && type.kind == vm::ValueKind::kTuple && type.elements.size() == tuple->fields.size()) {
      return MatchedFields(source, *tuple, span, what);
    }
    // The comparison fails whenever it is reached; the code behind it never runs.
    const std::vector<std::string> names = program_.signature(*program_.FindFunction(name_)).symbol_names();
    vm::Type shown = wanted;
    shown.storage = type.storage = vm::Storage::kOwned;  // storage is not printed
    builder_->Fail("match_cast of \"" + what.name + "\"" + what.field + ": expected " + shown.ToString(names) +
                   ", got " + type.ToString(names));
    return Value{builder_->AddRegister(std::move(wanted)), {}};
  }
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId dst, Narrowed(src, wanted, span));
  return dst == src ? source : Value{dst, {}};
}

// Matches the fields one after the other, each under a name of its own.
Result<FunctionLowering::Value> FunctionLowering::MatchedFields(const Value& source, const TupleTypeNode& wanted,
                                                                const Span& span, const Named& what) {
  Value matched;
  const std::vector<Value> fields = FieldsOf(source);
  for (size_t i = 0; i < fields.size(); ++i) {
    const Named field{what.name, what.field + ", element " + std::to_string(i)};
    builder_->Note(field.name + field.field);
    INGOT_ASSIGN_OR_RETURN(Value value, Matched(fields[i], wanted.fields[i], span, field));
    matched.fields.push_back(std::move(value));
  }
  builder_->Note(what.name + what.field);
  return matched;
}

Status FunctionLowering::BindParameterDims() {
  std::vector<PendingDim> pending;
  for (size_t i = 0; i < NumInputs(*function_); ++i) {
    const Var& param = function_->params[i];
    BindDims(param->type, values_[param.get()], "parameter \"" + param->name + "\"", pending);
  }
  return CompareDims(pending);
}

// Binds variables that stand alone as dims. What the VM does not compare by itself (dims that are no formulas over the
// signature's symbols) is added to `pending`, to be compared.
void FunctionLowering::BindDims(const Type& type, const Value& value, const std::string& what,
                                std::vector<PendingDim>& pending) {
  if (const auto* tuple = As<TupleTypeNode>(type)) {
    const std::vector<PrimVar> free = FreePrimVars(type);
    const bool is_plain = std::all_of(free.begin(), free.end(), [&](const PrimVar& var) {
      return std::any_of(symbols_.begin(), symbols_.end(), [&](const PrimVar& v) { return v.same_as(var); });
    });
    if (is_plain) return;
    const std::vector<Value> fields = FieldsOf(value);
    for (size_t i = 0; i < fields.size(); ++i) {
      BindDims(tuple->fields.at(i), fields[i], what + ", element " + std::to_string(i), pending);
    }
    return;
  }
  // If `expr` is a variable without a value, gives it the value of the register, and returns whether it did.
  const auto binds = [&](const PrimExpr& expr, const auto& make_register) {
    const PrimVar var = AsRef<PrimVarNode>(expr);
    if (!var || int_registers_.contains(var)) return false;
    BindInt(var, make_register());
    return true;
  };
  if (const auto* prim = As<PrimTypeNode>(type); prim != nullptr && prim->value != nullptr) {
    if (!binds(prim->value, [&] { return *value.reg; })) pending.push_back({prim->value, *value.reg, -1, what});
    return;
  }
  const std::vector<PrimExpr>* dims = nullptr;
  if (const auto* tensor = As<TensorTypeNode>(type); tensor != nullptr && tensor->dims) dims = &*tensor->dims;
  if (const auto* shape = As<ShapeTypeNode>(type); shape != nullptr && shape->dims) dims = &*shape->dims;
  for (int64_t i = 0; dims != nullptr && i < std::ssize(*dims); ++i) {
    const PrimExpr& dim = (*dims)[static_cast<size_t>(i)];
    if (binds(dim, [&] { return ExtentOf(*value.reg, i); }) || TypeDim(dim, symbols_)) continue;
    pending.push_back({dim, *value.reg, i, what + ": dimension " + std::to_string(i)});
  }
}

vm::RegisterId FunctionLowering::ExtentOf(vm::RegisterId value, int64_t axis) {
  const vm::RegisterId extent = builder_->AddRegister(vm::Type::Int());
  if (builder_->type(value).is_tensor()) {
    builder_->TensorDim(extent, value, axis);
  } else {
    builder_->ShapeDim(extent, value, axis);
  }
  return extent;
}

Status FunctionLowering::CompareDims(const std::vector<PendingDim>& pending) {
  for (const PendingDim& dim : pending) {
    INGOT_ASSIGN_OR_RETURN(const vm::RegisterId expected, IntRegister(dim.expected));
    const vm::RegisterId actual = dim.axis < 0 ? dim.value : ExtentOf(dim.value, dim.axis);
    const vm::RegisterId equal = builder_->AddRegister(vm::Type::Bool());
    builder_->Test(equal, DimCode::Binary(DimOp::kEq, DimCode::Slot(actual.value), DimCode::Slot(expected.value)));
    const vm::LabelId matches = builder_->NewLabel(), differs = builder_->NewLabel();
    builder_->Branch(equal, matches, differs);
    builder_->Bind(differs);
    const vm::RegisterId message = builder_->AddRegister(vm::Type::String());
    builder_->ConstString(message, dim.what + ": expected {}, got {}");
    builder_->CallBuiltin({}, vm::Builtin::kAssert, {equal, message, expected, actual}, 0);
    builder_->Bind(matches);
  }
  return Status();
}

Result<vm::RegisterId> FunctionLowering::Narrowed(vm::RegisterId src, const vm::Type& wanted, const Span& span) {
  const vm::Type type = builder_->type(src);
  if (vm::IsAssignable(wanted, type)) return src;
  if (IsAny(wanted)) {
    const vm::RegisterId dst = builder_->AddRegister(vm::Type(wanted));
    builder_->Move(dst, Owned(src));
    return dst;
  }
  vm::Type loose = wanted;
  for (vm::Dim& dim : loose.dims) dim.reset();
  const bool is_possible =
      IsAny(type) ? !wanted.is_tensor() || wanted.storage == vm::Storage::kOwned : vm::IsAssignable(loose, type);
  if (!is_possible) {
    return Unsupported(span, "a value of type " + type.ToString() + " where " + wanted.ToString() + " is expected");
  }
  const vm::RegisterId dst = builder_->AddRegister(vm::Type(wanted));
  builder_->Match(dst, src);
  FollowEntry(dst, src);
  return dst;
}

}  // namespace ingot::lower
