// One recursive relation, Takes(), stands behind subtyping and argument passing; besides it the check of a type's form,
// and the substitution of symbols.
#include "vm/verify/type_rules.h"

#include "vm/program/limits.h"
#include "vm/verify/facts.h"

namespace ingot::vm {
namespace {

// How dims are related before the program runs. In subtyping they must be proved to be equal; the dims of an argument
// are compared when the call is made, so that only constants which can never be equal are refused here.
enum class DimRelation : uint8_t { kProved, kCompared };

bool DimsRelate(const std::vector<Dim>& to, const std::vector<Dim>& from, DimRelation relation) {
  if (to.size() != from.size()) return false;
  for (size_t i = 0; i < to.size(); ++i) {
    if (!to[i] || to[i] == from[i]) continue;
    if (relation == DimRelation::kProved) return false;
    if (from[i] && to[i]->is_constant() && from[i]->is_constant()) return false;
  }
  return true;
}

// In subtyping storages are equal. A parameter borrows memory of any storage; one that is written needs writable
// memory.
bool StorageRelates(Storage to, Storage from, DimRelation relation) {
  return relation == DimRelation::kProved ? to == from : to != Storage::kBorrowedMut || IsWritable(from);
}

template <typename Rule>
bool AllPairs(const std::vector<Type>& a, const std::vector<Type>& b, Rule rule) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!rule(a[i], b[i])) return false;
  }
  return true;
}

// The one relation. The rows of the table in formats/README.md are the cases here.
bool Takes(const Type& to, const Type& from, DimRelation dims) {
  if (IsAnyObject(to)) return IsCountedKind(from.kind);
  if (to.kind != from.kind) return false;
  const auto elements = [&](const std::vector<Type>& a, const std::vector<Type>& b, DimRelation inner) {
    return AllPairs(a, b, [&](const Type& x, const Type& y) { return Takes(x, y, inner); });
  };
  switch (to.kind) {
    case ValueKind::kInt:
    case ValueKind::kFloat:
    case ValueKind::kBool:
    case ValueKind::kString:
    case ValueKind::kDataType:
      return true;
    case ValueKind::kShape:
      return DimsRelate(to.dims, from.dims, dims);
    case ValueKind::kTensor:
      return to.dtype == from.dtype && to.device == from.device && StorageRelates(to.storage, from.storage, dims) &&
             DimsRelate(to.dims, from.dims, dims);
    case ValueKind::kTuple:
    case ValueKind::kOptional:
      return elements(to.elements, from.elements, dims);
    case ValueKind::kClosure:
      // No run-time check compares the dims in a closure's type, so they have to be proved. Parameters are
      // contravariant.
      return elements(from.elements, to.elements, DimRelation::kProved) &&
             elements(to.results, from.results, DimRelation::kProved);
    case ValueKind::kObject:
      return to.class_name == from.class_name;
  }
  return false;
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

bool IsAssignable(const Type& to, const Type& from) { return Takes(to, from, DimRelation::kProved); }
bool IsPassable(const Type& param, const Type& argument) { return Takes(param, argument, DimRelation::kCompared); }

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
    if (dim) dim = dim->Substitute(symbols);
  }
  for (Type& element : out.elements) element = SubstituteSymbols(element, symbols);
  for (Type& result : out.results) result = SubstituteSymbols(result, symbols);
  return out;
}

}  // namespace ingot::vm
