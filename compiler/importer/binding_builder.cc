// Calls, type checks and new symbols that the importer binds for loops, branches and sequences.
#include "compiler/importer/binding_builder.h"

#include <algorithm>
#include <optional>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/util.h"
#include "compiler/importer/symbols.h"
#include "compiler/op/infer.h"
#include "compiler/op/registry.h"

namespace ingot::importer {

using ir::PrimVar;
using ir::Type;

namespace {

// Nodes of a dim's expression from which on it gets a symbol.
constexpr int kLongDim = 8;

}  // namespace

Result<Expr> BindingBuilder::BindCall(std::string_view row, std::vector<Expr> args, ir::Attrs attrs,
                                      const ir::Span& span) {
  INGOT_ASSIGN_OR_RETURN(const ir::Call call, op::MakeCall(row, std::move(args), std::move(attrs)));
  ir::CallNode with_span = *call;
  with_span.span = span;
  return Bind(ir::Make<ir::CallNode>(std::move(with_span)), std::string(row), span);
}

Expr BindingBuilder::Bind(Expr value, const std::string& name, const ir::Span& span) {
  const ir::Var var = ir::Make<ir::VarNode>(name, value->type, /*dataflow=*/true);
  bindings_.push_back({var, std::move(value), nullptr, span});
  return var;
}

void BindingBuilder::BindTo(ir::Var var, Expr value, const ir::Span& span) {
  bindings_.push_back({std::move(var), std::move(value), nullptr, span});
}

Expr BindingBuilder::Match(Expr value, Type type, const std::string& name, const ir::Span& span) {
  const ir::Var var = ir::Make<ir::VarNode>(name, type, /*dataflow=*/true);
  bindings_.push_back({var, std::move(value), std::move(type), span});
  return var;
}

Expr BindingBuilder::WithNewSymbols(const Expr& value, const std::vector<PrimExpr>& dims, const LooseDims& loose,
                                    DataType dtype, const std::string& name, const ir::Span& span) {
  std::vector<PrimExpr> matched = dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (loose[i]) matched[i] = ir::MakePrimVar(name + "_dim_" + std::to_string(i));
  }
  return Match(value, TensorType(std::move(matched), dtype), name, span);
}

Expr BindingBuilder::WithShortDims(const Expr& value, const std::string& name, const ir::Span& span) {
  const auto* tensor = KnownTensor(value->type);
  if (tensor == nullptr) return value;
  std::vector<PrimExpr> dims = *tensor->dims;
  bool is_changed = false;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (CountNodes(dims[axis], kLongDim) < kLongDim) continue;
    auto named =
        std::ranges::find_if(named_dims_, [&](const auto& row) { return op::DimsEqual(row.first, dims[axis]); });
    if (named == named_dims_.end()) {
      named = named_dims_.insert(named, {dims[axis], ir::MakePrimVar(name + "_dim_" + std::to_string(axis))});
    }
    dims[axis] = named->second;
    is_changed = true;
  }
  if (!is_changed) return value;
  return Match(Bind(value, name, span), TensorType(std::move(dims), *tensor->dtype), name, span);
}

Result<PrimExpr> BindingBuilder::ReadInteger(Expr tensor, const std::string& name, const ir::Span& span) {
  INGOT_ASSIGN_OR_RETURN(tensor, BindCall("astype", {tensor}, {{"dtype", DataType::Int(64)}}, span));
  INGOT_ASSIGN_OR_RETURN(tensor, BindCall("reshape", {tensor, ShapeOf({ir::Int64(1)})}, {}, span));
  INGOT_ASSIGN_OR_RETURN(const Expr shape, BindCall("tensor_to_shape", {tensor}, {}, span));
  const PrimVar var = ir::MakePrimVar(name);
  Match(shape, ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{var}), name, span);
  return PrimExpr(var);
}

Expr BindingBuilder::AsDeclared(const Expr& value, const Type& before, const OnnxValueInfo& info,
                                const ir::Span& span) {
  const auto* tensor = KnownTensor(value->type);
  if (tensor == nullptr || !info.dims || info.dims->size() != tensor->dims->size()) return value;
  const auto* wanted = before == nullptr ? nullptr : KnownTensor(before);
  std::vector<PrimExpr> dims = *tensor->dims;
  bool is_changed = false;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const std::optional<int64_t>& declared = (*info.dims)[axis].value;
    if (!declared || ir::AsConstInt(dims[axis])) continue;
    const std::optional<int64_t> had = wanted == nullptr ? std::nullopt : ir::AsConstInt((*wanted->dims)[axis]);
    if (wanted != nullptr && (!had || *had != *declared)) continue;
    dims[axis] = ir::Int64(*declared);
    is_changed = true;
  }
  if (!is_changed) return value;
  return Match(value, TensorType(std::move(dims), *tensor->dtype), Identifier(info.name), span);
}

Result<Expr> BindingBuilder::WithDeclaredRank(const Expr& value, const OnnxValueInfo& info, const ir::Span& span) {
  const auto* tensor = KnownTensor(value->type);
  if (tensor == nullptr || !info.dims || info.dims->size() == tensor->dims->size()) return value;
  if (!std::ranges::all_of(*tensor->dims, [](const PrimExpr& dim) { return ir::IsConstInt(dim, 1); })) return value;
  return BindCall("reshape", {value, ShapeOf(std::vector<PrimExpr>(info.dims->size(), ir::Int64(1)))}, {}, span);
}

Result<Expr> BindingBuilder::SliceAt(const Expr& tensor, const PrimExpr& place, int64_t axis, const ir::Span& span) {
  INGOT_ASSIGN_OR_RETURN(Expr index, BindCall("shape_to_tensor", {ShapeOf({place})}, {}, span));
  INGOT_ASSIGN_OR_RETURN(index, BindCall("reshape", {index, ShapeOf({})}, {}, span));
  return BindCall("take", {tensor, index}, {{"axis", axis}}, span);
}

}  // namespace ingot::importer
