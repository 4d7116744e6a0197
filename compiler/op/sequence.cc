// Sequences: lists of tensors whose length, and the dims of whose elements, are known when the program runs; R.Object
// to the type system, a tuple to the VM. A sequence is never changed: inserting or erasing gives another sequence,
// which shares its elements with the first. A call that takes a tensor out names its dtype and rank, which the VM
// compares; positions count from the end when negative. Lowering turns these operators into calls of builtins; only
// sequence.concat computes a tensor.
#include "compiler/op/sequence.h"

#include "compiler/op/infer.h"
#include "runtime/tensor.h"

namespace ingot::op {
namespace {

ir::Type Sequence() { return ir::Make<ir::ObjectTypeNode>(); }

Status CheckSequence(const ir::Call& call) {
  const ir::Type& type = call->args[0]->type;
  if (type->kind == ir::TypeKind::kObject || type->kind == ir::TypeKind::kTuple) return Status();
  return OpError(call, "expected a sequence, got " + Describe(type));
}

Status CheckElement(const ir::Call& call, const ir::Expr& value) {
  if (value->type->kind == ir::TypeKind::kTensor || value->type->kind == ir::TypeKind::kObject) return Status();
  return OpError(call, "expected tensors or sequences as elements, got " + Describe(value->type));
}

Result<ir::Type> InferConstruct(const ir::Call& call) {
  for (const ir::Expr& value : call->args) INGOT_RETURN_IF_ERROR(CheckElement(call, value));
  return Sequence();
}

Result<ir::Type> InferInsert(const ir::Call& call) {
  INGOT_RETURN_IF_ERROR(CheckSequence(call));
  INGOT_RETURN_IF_ERROR(CheckElement(call, call->args[1]));
  INGOT_RETURN_IF_ERROR(PrimArg(call, 2).status());
  return Sequence();
}

Result<ir::Type> InferErase(const ir::Call& call) {
  INGOT_RETURN_IF_ERROR(CheckSequence(call));
  INGOT_RETURN_IF_ERROR(PrimArg(call, 1).status());
  return Sequence();
}

Result<ir::Type> InferAt(const ir::Call& call) {
  INGOT_RETURN_IF_ERROR(CheckSequence(call));
  INGOT_RETURN_IF_ERROR(PrimArg(call, 1).status());
  const std::optional<DataType> dtype = DataTypeAttr(call, "dtype");
  if (!dtype) return Sequence();
  const int64_t rank = call->attrs.GetInt("ndim");
  if (rank < 0 || rank > kMaxRank) return OpError(call, "expected the rank of a tensor as ndim");
  return ir::Type(ir::Make<ir::TensorTypeNode>(static_cast<int>(rank), *dtype));
}

Result<ir::Type> InferLength(const ir::Call& call) {
  INGOT_RETURN_IF_ERROR(CheckSequence(call));
  return ir::Type(ir::Make<ir::ShapeTypeNode>(1));
}

Result<ir::Type> InferConcatShape(const ir::Call& call) {
  INGOT_RETURN_IF_ERROR(CheckSequence(call));
  const int64_t rank = call->attrs.GetInt("ndim"), axis = call->attrs.GetInt("axis");
  if (rank < 1 || rank > kMaxRank || axis < 0 || axis >= rank) return OpError(call, "expected 0 <= axis < ndim");
  return ir::Type(ir::Make<ir::ShapeTypeNode>(static_cast<int>(rank)));
}

Result<ir::Type> InferSequenceConcat(const ir::Call& call) {
  INGOT_RETURN_IF_ERROR(CheckSequence(call));
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> dims, ShapeArg(call, 1));
  if (!dims) return OpError(call, "expected a shape with known dims");
  const int64_t axis = call->attrs.GetInt("axis");
  if (axis < 0 || axis >= std::ssize(*dims)) return OpError(call, "expected 0 <= axis < rank");
  return ir::Type(ir::Make<ir::TensorTypeNode>(*dims, DataTypeAttr(call, "dtype")));
}

}  // namespace

std::vector<OpRow> SequenceOps() {
  const AttrSpec axis{"axis", AttrType::kInt, ir::AttrValue(0)};
  const AttrSpec new_axis{"new_axis", AttrType::kBool, ir::AttrValue(false)};
  const AttrSpec rank{"ndim", AttrType::kInt, {}, true};
  std::vector<OpRow> rows;
  rows.push_back({.name = "sequence.at",
                  .summary = "the element at a position: a tensor of this dtype and rank, or a sequence",
                  .arg_names = {"sequence", "position"},
                  .attrs = {{"dtype", AttrType::kDataType}, {"ndim", AttrType::kInt, ir::AttrValue(-1)}},
                  .is_primitive = true,
                  .infer = InferAt});
  rows.push_back({.name = "sequence.concat",
                  .summary = "the tensors one after the other along an axis, a new one or one that they have",
                  .arg_names = {"sequence", "shape"},
                  .attrs = {axis, new_axis, {"dtype", AttrType::kDataType, {}, true}},
                  .is_primitive = true,
                  .infer = InferSequenceConcat});
  rows.push_back({.name = "sequence.concat_shape",
                  .summary = "the shape of what sequence.concat gives",
                  .arg_names = {"sequence"},
                  .attrs = {axis, new_axis, rank},
                  .is_primitive = true,
                  .infer = InferConcatShape});
  rows.push_back({.name = "sequence.construct",
                  .summary = "the sequence of these values",
                  .arg_names = {"values"},
                  .num_optional_args = 1,
                  .variadic = true,
                  .is_primitive = true,
                  .infer = InferConstruct});
  rows.push_back({.name = "sequence.erase",
                  .summary = "the sequence without the element at a position",
                  .arg_names = {"sequence", "position"},
                  .is_primitive = true,
                  .infer = InferErase});
  rows.push_back({.name = "sequence.insert",
                  .summary = "the sequence with a value put in before a position",
                  .arg_names = {"sequence", "value", "position"},
                  .is_primitive = true,
                  .infer = InferInsert});
  rows.push_back({.name = "sequence.length",
                  .summary = "the number of elements, as a shape of one extent",
                  .arg_names = {"sequence"},
                  .is_primitive = true,
                  .infer = InferLength});
  return rows;
}

}  // namespace ingot::op
