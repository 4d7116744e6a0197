// Functions as values, shapes that tensors hold, sequences, messages and assertions: operators that lowering turns into
// instructions of the VM. They compute no tensor elements.
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/sequence.h"

namespace ingot::op {
namespace {

ir::Type Nothing() { return ir::Make<ir::TupleTypeNode>(std::vector<ir::Type>{}); }

// The closure's type: the function's without the last parameters, which the captured values are bound to.
Result<ir::Type> InferMakeClosure(const ir::Call& call) {
  if (ir::As<ir::GlobalVarNode>(call->args[0]) == nullptr) {
    return OpError(call, "expected a function of the module as the first argument");
  }
  const auto* captures = ir::As<ir::TupleTypeNode>(call->args[1]->type);
  if (captures == nullptr) return OpError(call, "expected a tuple of captured values");
  const auto* function = ir::As<ir::CallableTypeNode>(call->args[0]->type);
  if (function == nullptr || !function->params) return ir::Type(ir::Make<ir::ObjectTypeNode>());
  if (function->params->size() < captures->fields.size()) {
    return OpError(call, "captures " + std::to_string(captures->fields.size()) + " values, and the function has " +
                             std::to_string(function->params->size()) + " parameters");
  }
  std::vector<ir::Type> params(function->params->begin(),
                               function->params->end() - static_cast<std::ptrdiff_t>(captures->fields.size()));
  return ir::Type(ir::Make<ir::CallableTypeNode>(std::move(params), function->result, function->is_pure));
}

Result<ir::Type> InferInvokeClosure(const ir::Call& call) {
  if (ir::As<ir::TupleTypeNode>(call->args[1]->type) == nullptr) return OpError(call, "expected a tuple of arguments");
  if (call->type_args.size() == 1) return call->type_args[0];
  if (!call->type_args.empty()) return ir::Type(ir::Make<ir::TupleTypeNode>(call->type_args));
  const auto* function = ir::As<ir::CallableTypeNode>(call->args[0]->type);
  if (function != nullptr && function->result != nullptr) return function->result;
  return ir::Type(ir::Make<ir::ObjectTypeNode>());
}

Result<ir::Type> InferTensorToShape(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  const std::optional<int64_t> rank = x->dims && x->rank == 1 ? ir::AsConstInt((*x->dims)[0]) : std::nullopt;
  if (!rank || !x->dtype || !x->dtype->is_integral()) {
    return OpError(call, "expected a vector of integers of constant length, got " + Describe(call->args[0]->type));
  }
  return ir::Type(ir::Make<ir::ShapeTypeNode>(static_cast<int>(*rank)));
}

Result<ir::Type> InferPrint(const ir::Call&) { return Nothing(); }

Result<ir::Type> InferAssert(const ir::Call& call) {
  const ir::Type& type = call->args[0]->type;
  const auto* tensor = ir::As<ir::TensorTypeNode>(type);
  const auto* prim = ir::As<ir::PrimTypeNode>(type);
  const bool is_truth = (tensor != nullptr && tensor->dtype == DataType::Bool() && tensor->rank == 0) ||
                        (prim != nullptr && prim->dtype.is_bool());
  if (is_truth) return Nothing();
  return OpError(call, "expected a truth value as the condition, got " + Describe(type));
}

}  // namespace

std::vector<OpRow> ControlOps() {
  std::vector<OpRow> rows = SequenceOps();
  rows.push_back({.name = "assert_op",
                  .summary = "fails with a message unless its condition holds",
                  .arg_names = {"condition", "format_args"},
                  .num_optional_args = 1,
                  .variadic = true,
                  .attrs = {{"format", AttrType::kString, ir::AttrValue(std::string("Assertion Failed"))}},
                  .effect = Effect::kEffect,
                  .is_primitive = true,
                  .infer = InferAssert});
  rows.push_back({.name = "invoke_closure",
                  .summary = "calls a function that is a value",
                  .arg_names = {"closure", "args"},
                  .effect = Effect::kEffect,
                  .is_primitive = true,
                  .infer = InferInvokeClosure});
  rows.push_back({.name = "invoke_pure_closure",
                  .summary = "calls a function that is a value and has no effects",
                  .arg_names = {"closure", "args"},
                  .is_primitive = true,
                  .infer = InferInvokeClosure});
  rows.push_back({.name = "make_closure",
                  .summary = "a function of the module with its last parameters bound",
                  .arg_names = {"func", "args"},
                  .is_primitive = true,
                  .infer = InferMakeClosure});
  rows.push_back({.name = "print",
                  .summary = "logs values in a format's places {}",
                  .arg_names = {"values"},
                  .num_optional_args = 1,
                  .variadic = true,
                  .attrs = {{"format", AttrType::kString, ir::AttrValue(std::string(""))}},
                  .effect = Effect::kEffect,
                  .is_primitive = true,
                  .infer = InferPrint});
  rows.push_back({.name = "tensor_to_shape",
                  .summary = "the shape whose extents are the elements of a vector",
                  .arg_names = {"t"},
                  .is_primitive = true,
                  .infer = InferTensorToShape});
  return rows;
}

}  // namespace ingot::op
