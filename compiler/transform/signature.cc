// Reads the attribute that lift_params leaves on a function, and searches the types of parameters for variables.
#include "compiler/transform/signature.h"

#include <algorithm>

#include "compiler/ir/visitor.h"
#include "compiler/transform/graph_util.h"

namespace ingot::transform {

namespace {

// The dims that a call compares and binds: those of a tensor or shape, not those inside a tuple.
const std::vector<ir::PrimExpr>* OwnDims(const ir::Type& type) {
  if (const auto* tensor = ir::As<ir::TensorTypeNode>(type)) return tensor->dims ? &*tensor->dims : nullptr;
  if (const auto* shape = ir::As<ir::ShapeTypeNode>(type)) return shape->dims ? &*shape->dims : nullptr;
  return nullptr;
}

}  // namespace

size_t NumInputs(const ir::FunctionNode& function) {
  const ir::AttrValue* count = function.attrs.Find("num_input");
  if (function.attrs.Find(kPackedByAttr) == nullptr || count == nullptr) return function.params.size();
  return static_cast<size_t>(*count->get<int64_t>());
}

std::vector<ir::PrimVar> SignatureSymbols(std::span<const ir::Var> params) {
  const auto add = [](std::vector<ir::PrimVar>& list, const ir::PrimVar& var) {
    const auto same = [&](const ir::PrimVar& v) { return v.same_as(var); };
    if (std::none_of(list.begin(), list.end(), same)) list.push_back(var);
  };
  std::vector<ir::PrimVar> mentioned, bound;
  for (const ir::Var& param : params) {
    const std::vector<ir::PrimExpr>* dims = OwnDims(param->type);
    if (dims == nullptr) continue;
    for (const ir::PrimVar& var : ir::FreePrimVars(param->type)) add(mentioned, var);
    for (const ir::PrimExpr& dim : *dims) {
      if (const ir::PrimVar var = ir::AsRef<ir::PrimVarNode>(dim)) add(bound, var);
    }
  }
  std::erase_if(mentioned, [&](const ir::PrimVar& var) {
    return std::none_of(bound.begin(), bound.end(), [&](const ir::PrimVar& v) { return v.same_as(var); });
  });
  return mentioned;
}

}  // namespace ingot::transform
