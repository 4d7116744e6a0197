// Small builders for branches and loops of ONNX: tuples, sequences of bindings, shapes, and tensor types.
#pragma once

#include <utility>
#include <vector>

#include "compiler/ir/expr.h"

namespace ingot::importer {

inline ir::Type TupleTypeOf(const std::vector<ir::Expr>& fields) {
  std::vector<ir::Type> types;
  for (const ir::Expr& field : fields) types.push_back(field->type);
  return ir::Make<ir::TupleTypeNode>(std::move(types));
}
inline ir::Expr TupleOf(std::vector<ir::Expr> fields) {
  ir::Type type = TupleTypeOf(fields);
  return ir::Make<ir::TupleNode>(std::move(fields), std::move(type));
}
inline ir::SeqExpr Sequence(std::vector<ir::Binding> bindings, ir::Expr result) {
  std::vector<ir::BindingBlock> blocks;
  if (!bindings.empty()) blocks.push_back({std::move(bindings), /*is_dataflow=*/false});
  ir::Type type = result->type;
  return ir::Make<ir::SeqExprNode>(std::move(blocks), std::move(result), std::move(type));
}

// The type as a tensor type; null if it is none, or if rank, dims or dtype are not known.
inline const ir::TensorTypeNode* KnownTensor(const ir::Type& type) {
  const auto* tensor = type == nullptr ? nullptr : ir::As<ir::TensorTypeNode>(type);
  return tensor != nullptr && tensor->dims && tensor->dtype ? tensor : nullptr;
}
inline ir::Type TensorType(std::vector<ir::PrimExpr> dims, DataType dtype) {
  return ir::Make<ir::TensorTypeNode>(std::move(dims), dtype);
}

inline ir::Expr Number(ir::PrimExpr value) { return ir::Make<ir::PrimValueNode>(std::move(value)); }

}  // namespace ingot::importer
