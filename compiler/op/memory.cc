// Buffers, from destination passing on: where tensors that kernels write come from. Lowering turns these operators
// into plan entries and allocations; they compute no tensor elements.
#include "compiler/op/families.h"
#include "compiler/op/infer.h"

namespace ingot::op {
namespace {

// A tensor of the shape and dtype that the call names at these arguments.
Result<ir::Type> TensorOfArgs(const ir::Call& call, size_t shape, size_t dtype) {
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> dims, ShapeArg(call, shape));
  const auto* type = ir::As<ir::DataTypeValueNode>(call->args[dtype]);
  if (!dims) return OpError(call, "expected a shape with known dims");
  if (type == nullptr) return OpError(call, "expected a dtype, such as R.dtype(\"float32\")");
  return ir::Type(ir::Make<ir::TensorTypeNode>(*dims, type->value));
}

Result<ir::Type> InferAllocTensor(const ir::Call& call) {
  INGOT_RETURN_IF_ERROR(PrimArg(call, 2).status());
  return TensorOfArgs(call, 0, 1);
}

Result<ir::Type> InferAllocStorage(const ir::Call& call) {
  INGOT_RETURN_IF_ERROR(ShapeArg(call, 0).status());
  INGOT_RETURN_IF_ERROR(PrimArg(call, 1).status());
  return ir::Type(ir::Make<ir::ObjectTypeNode>());
}

Result<ir::Type> InferPlacedTensor(const ir::Call& call) {
  INGOT_RETURN_IF_ERROR(PrimArg(call, 1).status());
  return TensorOfArgs(call, 2, 3);
}

Result<ir::Type> InferWriteRow(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType buffer, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType row, TensorArg(call, 1));
  INGOT_RETURN_IF_ERROR(PrimArg(call, 2).status());
  bool fits = buffer->dtype == row->dtype && buffer->rank == row->rank + 1 && buffer->dims && row->dims;
  for (size_t i = 0; fits && i < row->dims->size(); ++i) fits = !DimsDiffer((*buffer->dims)[i + 1], (*row->dims)[i]);
  if (fits) return call->args[0]->type;
  return OpError(call, Describe(call->args[1]->type) + " is no row of " + Describe(call->args[0]->type));
}

}  // namespace

std::vector<OpRow> MemoryOps() {
  std::vector<OpRow> rows;
  rows.push_back({.name = "builtin.alloc_tensor",
                  .summary = "a new tensor, its elements not initialised",
                  .arg_names = {"shape", "dtype", "runtime_device_index"},
                  .effect = Effect::kEffect,
                  .is_primitive = true,
                  .infer = InferAllocTensor});
  rows.push_back({.name = "memory.alloc_storage",
                  .summary = "the arena of a function: so many bytes",
                  .arg_names = {"size", "virtual_device_index", "storage_scope", "dtype"},
                  .effect = Effect::kEffect,
                  .is_primitive = true,
                  .infer = InferAllocStorage});
  rows.push_back({.name = "memory.alloc_tensor",
                  .summary = "a tensor at an offset in bytes of an arena",
                  .arg_names = {"storage", "offset", "shape", "dtype"},
                  // The room that the tensor has, where bounds of its symbols make that a number; else its own size.
                  .attrs = {{"bytes", AttrType::kInt, {}}},
                  .effect = Effect::kEffect,
                  .is_primitive = true,
                  .infer = InferPlacedTensor});
  rows.push_back(
      {.name = "memory.write_row",
       .summary = "a tensor with one row along its first axis replaced, in its own memory where nobody else reads it",
       .arg_names = {"buffer", "row", "index"},
       .effect = Effect::kWritesInPlace,
       .is_primitive = true,
       .infer = InferWriteRow});
  return rows;
}

}  // namespace ingot::op
