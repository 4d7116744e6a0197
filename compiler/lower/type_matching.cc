// Comparisons of types and dims that are left to the program, and moves into registers of wanted types.
#include "compiler/lower/type_matching.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/visitor.h"
#include "compiler/lower/vm_types.h"
#include "vm/program/builtins.h"
#include "vm/verify/type_rules.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

Result<Value> TypeMatching::Matched(const Value& source, const Type& wanted_type, const Span& span, const Named& what) {
  if (wanted_type->kind == TypeKind::kObject) return source;  // every value is an object
  if (const auto* tuple = As<TupleTypeNode>(wanted_type); tuple != nullptr && !source.reg) {
    if (source.fields.size() == tuple->fields.size()) return MatchedFields(source, *tuple, span, what);
  }
  const vm::RegisterId src = Materialise(source, builder_);
  vm::Type type = builder_.type(src);
  const vm::Storage storage = vm::IsAnyObject(type) ? vm::Storage::kOwned : type.storage;
  INGOT_ASSIGN_OR_RETURN(vm::Type wanted, scope_.RegisterType(wanted_type, storage, span));
  vm::Type loose = wanted;
  for (vm::Dim& dim : loose.dims) dim.reset();
  if (!vm::IsAnyObject(type) && !vm::IsAnyObject(wanted) && !vm::IsAssignable(loose, type)) {
    if (const auto* tuple = As<TupleTypeNode>(wanted_type);
        tuple != nullptr && type.kind == vm::ValueKind::kTuple && type.elements.size() == tuple->fields.size()) {
      return MatchedFields(source, *tuple, span, what);
    }
    // The comparison fails whenever it is reached; the code behind it never runs.
    const std::vector<std::string> names = signature_.symbol_names();
    vm::Type shown = wanted;
    shown.storage = type.storage = vm::Storage::kOwned;  // storage is not printed
    builder_.Fail("match_cast of \"" + what.name + "\"" + what.field + ": expected " + shown.ToString(names) +
                  ", got " + type.ToString(names));
    return Value{builder_.AddRegister(std::move(wanted)), {}};
  }
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId dst, Narrowed(src, wanted, span));
  return dst == src ? source : Value{dst, {}};
}

// Matches the fields one after the other, each under a name of its own.
Result<Value> TypeMatching::MatchedFields(const Value& source, const TupleTypeNode& wanted, const Span& span,
                                          const Named& what) {
  Value matched;
  const std::vector<Value> fields = FieldsOf(source, builder_);
  for (size_t i = 0; i < fields.size(); ++i) {
    const Named field{what.name, what.field + ", element " + std::to_string(i)};
    builder_.Note(field.name + field.field);
    INGOT_ASSIGN_OR_RETURN(Value value, Matched(fields[i], wanted.fields[i], span, field));
    matched.fields.push_back(std::move(value));
  }
  builder_.Note(what.name + what.field);
  return matched;
}

// Binds variables that stand alone as dims. What the VM does not compare by itself (dims that are no formulas over the
// signature's symbols) becomes a pending comparison.
void TypeMatching::BindDims(const Type& type, const Value& value, const std::string& what) {
  if (const auto* tuple = As<TupleTypeNode>(type)) {
    const std::vector<PrimVar> free = FreePrimVars(type);
    if (std::ranges::all_of(free, [&](const PrimVar& var) { return scope_.IsSymbol(var); })) return;
    const std::vector<Value> fields = FieldsOf(value, builder_);
    for (size_t i = 0; i < fields.size(); ++i) {
      BindDims(tuple->fields.at(i), fields[i], what + ", element " + std::to_string(i));
    }
    return;
  }
  // If `expr` is a variable without a value, gives it the value of the register, and returns whether it did.
  const auto binds = [&](const PrimExpr& expr, const auto& make_register) {
    const PrimVar var = AsRef<PrimVarNode>(expr);
    if (!var || scope_.IsBound(var)) return false;
    scope_.BindInt(var, make_register());
    return true;
  };
  if (const auto* prim = As<PrimTypeNode>(type); prim != nullptr && prim->value != nullptr) {
    if (!binds(prim->value, [&] { return *value.reg; })) pending_.push_back({prim->value, *value.reg, -1, what});
    return;
  }
  const std::vector<PrimExpr>* dims = nullptr;
  if (const auto* tensor = As<TensorTypeNode>(type); tensor != nullptr && tensor->dims) dims = &*tensor->dims;
  if (const auto* shape = As<ShapeTypeNode>(type); shape != nullptr && shape->dims) dims = &*shape->dims;
  for (int64_t i = 0; dims != nullptr && i < std::ssize(*dims); ++i) {
    const PrimExpr& dim = (*dims)[static_cast<size_t>(i)];
    if (binds(dim, [&] { return ExtentOf(*value.reg, i, builder_); }) || scope_.HasFormula(dim)) continue;
    pending_.push_back({dim, *value.reg, i, what + ": dimension " + std::to_string(i)});
  }
}

Status TypeMatching::CompareDims() {
  for (const PendingDim& dim : std::exchange(pending_, {})) {
    INGOT_ASSIGN_OR_RETURN(const vm::RegisterId expected, scope_.IntRegister(dim.expected));
    const vm::RegisterId actual = dim.axis < 0 ? dim.value : ExtentOf(dim.value, dim.axis, builder_);
    const vm::RegisterId equal = builder_.AddRegister(vm::Type::Bool());
    builder_.Test(equal, DimCode::Binary(DimOp::kEq, DimCode::Slot(actual.value), DimCode::Slot(expected.value)));
    const vm::LabelId matches = builder_.NewLabel(), differs = builder_.NewLabel();
    builder_.Branch(equal, matches, differs);
    builder_.Bind(differs);
    const vm::RegisterId message = builder_.AddRegister(vm::Type::String());
    builder_.ConstString(message, dim.what + ": expected {}, got {}");
    builder_.CallBuiltin({}, vm::Builtin::kAssert, {equal, message, expected, actual}, 0);
    builder_.Bind(matches);
  }
  return Status();
}

Result<vm::RegisterId> TypeMatching::Narrowed(vm::RegisterId src, const vm::Type& wanted, const Span& span) {
  const vm::Type type = builder_.type(src);
  if (vm::IsAssignable(wanted, type)) return src;
  if (vm::IsAnyObject(wanted)) {
    const vm::RegisterId dst = builder_.AddRegister(vm::Type(wanted));
    builder_.Move(dst, Owned(src, builder_));
    return dst;
  }
  vm::Type loose = wanted;
  for (vm::Dim& dim : loose.dims) dim.reset();
  const bool is_possible = vm::IsAnyObject(type) ? !wanted.is_tensor() || wanted.storage == vm::Storage::kOwned
                                                 : vm::IsAssignable(loose, type);
  if (!is_possible) {
    return Unsupported(span, "a value of type " + type.ToString() + " where " + wanted.ToString() + " is expected");
  }
  const vm::RegisterId dst = builder_.AddRegister(vm::Type(wanted));
  builder_.Match(dst, src);
  plan_entries_.Follow(dst, src);
  return dst;
}

Result<Value> TypeMatching::MakeTarget(const Type& type, const Span& span) {
  if (const TupleTypeNode* tuple = As<TupleTypeNode>(type)) {
    Value target;
    for (const Type& field : tuple->fields) {
      INGOT_ASSIGN_OR_RETURN(Value value, MakeTarget(field, span));
      target.fields.push_back(std::move(value));
    }
    return target;
  }
  INGOT_ASSIGN_OR_RETURN(vm::Type lowered, scope_.RegisterType(type, vm::Storage::kOwned, span));
  return Value{builder_.AddRegister(std::move(lowered)), {}};
}

Status TypeMatching::Store(const Value& target, const Value& value) {
  if (target.reg) {
    const vm::RegisterId reg = Materialise(value, builder_);
    return Assign(*target.reg, reg);
  }
  const std::vector<Value> fields = FieldsOf(value, builder_);
  INGOT_CHECK(fields.size() == target.fields.size(), "a tuple has as many fields as its type says");
  for (size_t i = 0; i < fields.size(); ++i) INGOT_RETURN_IF_ERROR(Store(target.fields[i], fields[i]));
  return Status();
}

Status TypeMatching::Assign(vm::RegisterId to, vm::RegisterId from) {
  const vm::Type wanted = builder_.type(to);
  const vm::Type type = builder_.type(from);
  if (type.is_tensor() && type.storage != wanted.storage) {
    vm::Type copied = type;
    copied.storage = vm::Storage::kOwned;
    if (vm::IsAssignable(wanted, copied)) {
      builder_.Copy(to, from, 0);
      return Status();
    }
    from = Copied(from, builder_);
  }
  if (vm::IsAssignable(wanted, builder_.type(from))) {
    builder_.Move(to, from);
    return Status();
  }
  // Dims whose equality no formula proves are compared when the program runs.
  INGOT_ASSIGN_OR_RETURN(from, Narrowed(from, wanted, Span()));
  builder_.Move(to, from);
  return Status();
}

}  // namespace ingot::lower
