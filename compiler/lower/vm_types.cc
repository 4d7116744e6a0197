// The switch over the kinds of types, as free functions, since signatures and registers need them.
#include "compiler/lower/vm_types.h"

#include <algorithm>
#include <utility>

#include "compiler/codegen/dim_code_lowering.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/states.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

Result<std::vector<vm::Type>> LowerTypes(const std::vector<Type>& types, std::span<const PrimVar> symbols,
                                         vm::Storage storage, const Span& span) {
  std::vector<vm::Type> result;
  for (const Type& type : types) {
    INGOT_ASSIGN_OR_RETURN(vm::Type lowered, LowerType(type, symbols, storage, span));
    result.push_back(std::move(lowered));
  }
  return result;
}

}  // namespace

Status Unsupported(const Span& span, const std::string& what) {
  return Status(StatusCode::kUnsupportedModel, (span.is_known() ? span.ToString() + ": " : std::string()) + what);
}

std::vector<vm::Symbol> NameSymbols(std::span<const PrimVar> symbols, const Attrs& attrs) {
  std::vector<vm::Symbol> result;
  for (const PrimVar& var : symbols) {
    std::string unique = var->name;
    const auto is_taken = [&](const vm::Symbol& symbol) { return symbol.name == unique; };
    for (int i = 1; std::any_of(result.begin(), result.end(), is_taken); ++i) unique = var->name + std::to_string(i);
    const auto [min, max] = transform::DimBounds(attrs, var->name);
    result.push_back({unique, min, max});
  }
  return result;
}

vm::Dim TypeDim(const PrimExpr& dim, std::span<const PrimVar> symbols) {
  Result<DimCode> code = codegen::LowerToDimCode(dim, symbols);
  return code.ok() ? vm::Dim(std::move(code).value()) : std::nullopt;
}

std::vector<vm::Dim> TypeDims(const std::vector<PrimExpr>& dims, std::span<const PrimVar> symbols) {
  std::vector<vm::Dim> result;
  for (const PrimExpr& dim : dims) result.push_back(TypeDim(dim, symbols));
  return result;
}

Result<vm::Type> LowerType(const Type& type, std::span<const PrimVar> symbols, vm::Storage storage, const Span& span) {
  if (type == nullptr) return Unsupported(span, "a value without a type");
  switch (type->kind) {
    case TypeKind::kObject:
      return vm::Type::Object("any");
    case TypeKind::kPrim: {
      const DataType dtype = Downcast<PrimTypeNode>(type)->dtype;
      if (dtype.is_bool()) return vm::Type::Bool();
      if (dtype.is_integral()) return vm::Type::Int();
      if (dtype.is_floating()) return vm::Type::Float();
      return Unsupported(span, "a scalar of type " + dtype.ToString());
    }
    case TypeKind::kShape: {
      auto shape = Downcast<ShapeTypeNode>(type);
      if (shape->rank < 0) return vm::Type::Object("any");
      if (!shape->dims) return vm::Type::Shape(std::vector<vm::Dim>(static_cast<size_t>(shape->rank)));
      return vm::Type::Shape(TypeDims(*shape->dims, symbols));
    }
    case TypeKind::kTensor: {
      auto tensor = Downcast<TensorTypeNode>(type);
      if (tensor->rank < 0 || !tensor->dtype) return vm::Type::Object("any");
      if (!tensor->dims) {
        return vm::Type::Tensor(*tensor->dtype, std::vector<vm::Dim>(static_cast<size_t>(tensor->rank)), storage);
      }
      return vm::Type::Tensor(*tensor->dtype, TypeDims(*tensor->dims, symbols), storage);
    }
    case TypeKind::kTuple: {
      INGOT_ASSIGN_OR_RETURN(std::vector<vm::Type> elements,
                             LowerTypes(Downcast<TupleTypeNode>(type)->fields, symbols, vm::Storage::kOwned, span));
      return vm::Type::Tuple(std::move(elements));
    }
    case TypeKind::kCallable: {
      auto callable = Downcast<CallableTypeNode>(type);
      if (!callable->params || callable->result == nullptr) return vm::Type::Object("any");
      INGOT_ASSIGN_OR_RETURN(std::vector<vm::Type> params,
                             LowerTypes(*callable->params, {}, vm::Storage::kBorrowed, span));
      INGOT_ASSIGN_OR_RETURN(std::vector<vm::Type> results,
                             LowerTypes(ResultTypes(callable->result), {}, vm::Storage::kOwned, span));
      return vm::Type::Closure(std::move(params), std::move(results));
    }
  }
  INGOT_UNREACHABLE();
}

std::vector<Type> ResultTypes(const Type& type) {
  const TupleTypeNode* tuple = As<TupleTypeNode>(type);
  return tuple == nullptr ? std::vector<Type>{type} : tuple->fields;
}

}  // namespace ingot::lower
