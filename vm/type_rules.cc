#include "vm/type_rules.h"

#include "vm/facts.h"
#include "vm/limits.h"

namespace ingot::vm {
namespace {

bool SameKindOfTensor(const Type& a, const Type& b) {
  return a.dtype == b.dtype && a.rank() == b.rank() && a.device == b.device;
}

bool DimsContradict(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  if (a.size() != b.size()) return true;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] && b[i] && a[i]->is_constant() && b[i]->is_constant() && *a[i] != *b[i]) return true;
  }
  return false;
}

template <typename Rule>
bool AllPairs(const std::vector<Type>& a, const std::vector<Type>& b, Rule rule) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!rule(a[i], b[i])) return false;
  }
  return true;
}

bool IsStorageAllowed(Storage storage, TypePlace place) {
  switch (place) {
    case TypePlace::kParameter:
      return storage == Storage::kBorrowed || storage == Storage::kBorrowedMut;
    case TypePlace::kResult:
    case TypePlace::kElement:
      return storage == Storage::kOwned;
    case TypePlace::kRegister:
      return true;
  }
  return false;
}

}  // namespace

Verdict VerifyType(const Type& type, TypePlace place, int64_t num_symbols, const Program& program,
                   const CheckSet& checks, int depth) {
  if (depth > kMaxTypeDepth) return Verdict::Fail(checks, Check::kTypeDepth, "types nest too deep");
  const auto form = [&](const char* what) { return Verdict::Fail(checks, Check::kTypeForm, what); };
  if (type.dims.size() > kMaxTensorRank) {
    return Verdict::Fail(checks, Check::kTensorRank, {"rank ", type.dims.size(), " is above 8"});
  }
  for (const Dim& dim : type.dims) {
    if (dim && dim->num_slots() > num_symbols) {
      return Verdict::Fail(checks, Check::kDimSlots,
                           {"a dimension names symbol ", dim->num_slots() - 1, " of ", num_symbols});
    }
  }
  const auto all = [&](const std::vector<Type>& types, TypePlace inner, int64_t symbols) {
    for (const Type& element : types) {
      INGOT_RETURN_UNLESS_PASSED(VerifyType(element, inner, symbols, program, checks, depth + 1));
    }
    return Verdict();
  };
  switch (type.kind) {
    case ValueKind::kInt:
    case ValueKind::kFloat:
    case ValueKind::kBool:
    case ValueKind::kString:
    case ValueKind::kDataType:
    case ValueKind::kShape:
      return Verdict();
    case ValueKind::kTensor:
      if (!type.dtype.IsKnown()) return Verdict::Fail(checks, Check::kKnownDataType, "an unknown element type");
      if (type.device >= program.devices.size()) {
        return Verdict::Fail(checks, Check::kDeviceId, {"device ", type.device, " of ", program.devices.size()});
      }
      if (!IsStorageAllowed(type.storage, place)) {
        return form("tensors of parameters are borrowed, those of results and elements owned");
      }
      return Verdict();
    case ValueKind::kTuple:
      return all(type.elements, TypePlace::kElement, num_symbols);
    case ValueKind::kOptional:
      if (type.elements.size() != 1) return form("an optional has one element type");
      return all(type.elements, TypePlace::kElement, num_symbols);
    case ValueKind::kClosure:
      INGOT_RETURN_UNLESS_PASSED(all(type.elements, TypePlace::kParameter, 0));
      return all(type.results, TypePlace::kResult, 0);
    case ValueKind::kObject:
      if (type.class_name.empty()) return form("an object has a class");
      return Verdict();
  }
  return form("an unknown kind");
}

bool IsAssignable(const Type& to, const Type& from) {
  if (IsAnyObject(to)) return IsCountedKind(from.kind);
  if (to.kind != from.kind) return false;
  if (to.is_tensor() && (!SameKindOfTensor(to, from) || to.storage != from.storage)) return false;
  if (to.dims.size() != from.dims.size() || to.class_name != from.class_name) return false;
  for (size_t i = 0; i < to.dims.size(); ++i) {
    if (to.dims[i] && to.dims[i] != from.dims[i]) return false;
  }
  // A closure's parameters are compared when it is called, so that all but their dims has to agree.
  const bool is_closure = to.kind == ValueKind::kClosure;
  return AllPairs(to.elements, from.elements, is_closure ? IsPassable : IsAssignable) &&
         AllPairs(to.results, from.results, IsAssignable);
}

bool IsPassable(const Type& param, const Type& argument) {
  if (IsAnyObject(param)) return IsCountedKind(argument.kind);
  if (param.kind != argument.kind) return false;
  if (param.is_tensor()) {
    if (!SameKindOfTensor(param, argument)) return false;
    if (param.storage == Storage::kBorrowedMut && !IsWritable(argument.storage)) return false;
  }
  if (DimsContradict(param.dims, argument.dims) || param.class_name != argument.class_name) return false;
  if (param.kind == ValueKind::kClosure) return IsAssignable(param, argument);
  return AllPairs(param.elements, argument.elements, IsPassable);
}

std::vector<Dim> BindSymbols(const Signature& callee, const std::vector<const Type*>& arguments) {
  std::vector<Dim> symbols(callee.symbols.size());
  for (size_t i = 0; i < callee.params.size() && i < arguments.size(); ++i) {
    const std::vector<Dim>& dims = callee.params[i].type.dims;
    for (size_t k = 0; k < dims.size() && k < arguments[i]->dims.size(); ++k) {
      if (!dims[k] || dims[k]->steps().size() != 1 || dims[k]->is_constant()) continue;
      Dim& symbol = symbols[static_cast<size_t>(dims[k]->steps()[0].value)];
      if (!symbol) symbol = arguments[i]->dims[k];
    }
  }
  return symbols;
}

Type SubstituteSymbols(const Type& type, const std::vector<Dim>& symbols) {
  Type out = type;
  for (Dim& dim : out.dims) {
    if (dim) dim = SubstituteSlots(*dim, symbols);
  }
  for (Type& element : out.elements) element = SubstituteSymbols(element, symbols);
  for (Type& result : out.results) result = SubstituteSymbols(result, symbols);
  return out;
}

}  // namespace ingot::vm
