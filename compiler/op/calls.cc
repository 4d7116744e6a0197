// Calls of functions that are no operators: tensor functions in destination-passing style, functions of the embedding
// program; and shape_of. Lowering handles these operators itself; they compute no tensor elements.
#include "compiler/op/families.h"
#include "compiler/op/infer.h"

namespace ingot::op {
namespace {

// out_ty: one type, or several as a tuple.
Result<ir::Type> OutType(const ir::Call& call) {
  if (call->type_args.empty()) return OpError(call, "expected out_ty");
  if (call->type_args.size() == 1) return call->type_args[0];
  return ir::Type(ir::Make<ir::TupleTypeNode>(call->type_args));
}

Status CheckInputTuple(const ir::Call& call) {
  const auto* inputs = ir::As<ir::TupleTypeNode>(call->args[1]->type);
  if (inputs == nullptr) return OpError(call, "expected a tuple of arguments, got " + Describe(call->args[1]->type));
  return Status();
}

Result<ir::Type> InferCallTIR(const ir::Call& call) {
  const auto* function = ir::As<ir::GlobalVarNode>(call->args[0]);
  if (function == nullptr) return OpError(call, "expected a tensor function of the module as the first argument");
  INGOT_RETURN_IF_ERROR(CheckInputTuple(call));
  if (HasArg(call, 2)) INGOT_RETURN_IF_ERROR(ShapeArg(call, 2).status());
  for (const ir::Type& type : call->type_args) {
    if (ir::As<ir::TensorTypeNode>(type) == nullptr && ir::As<ir::TupleTypeNode>(type) == nullptr) {
      return OpError(call, "out_ty: expected tensors, got " + Describe(type));
    }
  }
  return OutType(call);
}

Result<ir::Type> InferCallTIRInplace(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::Type type, InferCallTIR(call));
  const auto* inputs = ir::As<ir::TupleTypeNode>(call->args[1]->type);
  const auto* outputs = ir::As<ir::TupleTypeNode>(type);
  const size_t num_outputs = outputs != nullptr ? outputs->fields.size() : 1;
  const std::vector<int64_t> indices = call->attrs.GetInts("inplace_indices");
  if (indices.size() != num_outputs) {
    return OpError(call, "inplace_indices: expected one per output (" + std::to_string(num_outputs) + "), got " +
                             std::to_string(indices.size()));
  }
  for (int64_t index : indices) {
    if (index < -1 || index >= std::ssize(inputs->fields)) {
      return OpError(call, "inplace_indices: expected the place of an argument, or -1, got " + std::to_string(index));
    }
  }
  return type;
}

Result<ir::Type> InferCallDpsPacked(const ir::Call& call) {
  if (ir::As<ir::ExternFuncNode>(call->args[0]) == nullptr) {
    return OpError(call, "expected an external function as the first argument");
  }
  INGOT_RETURN_IF_ERROR(CheckInputTuple(call));
  return OutType(call);
}

Result<ir::Type> InferCallPurePacked(const ir::Call& call) {
  if (ir::As<ir::ExternFuncNode>(call->args[0]) == nullptr) {
    return OpError(call, "expected an external function as the first argument");
  }
  if (call->type_args.empty()) return ir::Type(ir::Make<ir::ObjectTypeNode>());
  return OutType(call);
}

Result<ir::Type> InferShapeOf(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  if (x->dims) return ir::Type(ir::Make<ir::ShapeTypeNode>(*x->dims));
  return ir::Type(ir::Make<ir::ShapeTypeNode>(x->rank));
}

}  // namespace

std::vector<OpRow> CallOps() {
  std::vector<OpRow> rows;
  rows.push_back({.name = "call_tir",
                  .summary = "a tensor function of the module, its outputs allocated by the caller",
                  .arg_names = {"gvar", "args", "tir_vars"},
                  .num_optional_args = 1,
                  .is_primitive = true,
                  .infer = InferCallTIR});
  rows.push_back({.name = "call_tir_inplace",
                  .summary = "call_tir that writes some outputs into its arguments",
                  .arg_names = {"gvar", "args", "tir_vars"},
                  .num_optional_args = 1,
                  .attrs = {{"inplace_indices", AttrType::kInts, {}, true}},
                  .effect = Effect::kWritesInPlace,
                  .is_primitive = true,
                  .infer = InferCallTIRInplace});
  rows.push_back({.name = "call_dps_packed",
                  .summary = "a function of the embedding program that fills tensors of the caller",
                  .arg_names = {"func", "args"},
                  .is_primitive = true,
                  .infer = InferCallDpsPacked});
  rows.push_back({.name = "call_pure_packed",
                  .summary = "a function of the embedding program without effects",
                  .arg_names = {"func", "values"},
                  .num_optional_args = 1,
                  .variadic = true,
                  .is_primitive = true,
                  .infer = InferCallPurePacked});
  rows.push_back({.name = "shape_of",
                  .summary = "the shape of a tensor",
                  .arg_names = {"x"},
                  .is_primitive = true,
                  .infer = InferShapeOf});
  return rows;
}

}  // namespace ingot::op
