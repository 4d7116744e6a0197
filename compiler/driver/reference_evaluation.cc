// A walk over the bindings of "main", with a table from variables to values. Each call goes to its operator's reference
// evaluation.
#include "compiler/driver/reference_evaluation.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "compiler/op/reference.h"
#include "compiler/op/registry.h"
#include "runtime/small_float.h"

namespace ingot::driver {

namespace {

using ir::As;
using ir::Expr;
using op::ReferenceTensor;

struct Value {
  ReferenceTensor tensor;     // or
  std::vector<Value> fields;  // of a tuple
  bool is_tuple = false;
};

Status Unsupported(const std::string& what) {
  return Status(StatusCode::kUnsupportedModel, "there is no reference evaluation of " + what);
}

void RoundToDataType(ReferenceTensor& tensor) {
  if (!tensor.dtype.is_floating() || tensor.dtype.bits > 32) return;
  for (double& element : tensor.floats) element = DecodeFloat(tensor.dtype, EncodeFloat(tensor.dtype, element));
}

class Evaluation {
 public:
  explicit Evaluation(Rounding rounding) : rounding_(rounding) {}

  void Bind(const ir::Var& var, Value value) { values_[var.get()] = std::move(value); }

  Result<Value> Run(const ir::SeqExprNode& seq) {
    for (const ir::BindingBlock& block : seq.blocks) {
      for (const ir::Binding& binding : block.bindings) {
        // A shape is read by the calls that use it, not bound as a value.
        if (As<ir::ShapeExprNode>(binding.value) != nullptr) continue;
        Result<Value> value = Evaluate(binding.value);
        if (!value.ok()) return std::move(value).status().WithContext("\"" + binding.var->name + "\"");
        values_[binding.var.get()] = *std::move(value);
      }
    }
    return Evaluate(seq.body);
  }

 private:
  Result<Value> Evaluate(const Expr& expr) {
    if (const auto* var = As<ir::VarNode>(expr)) {
      const auto found = values_.find(var);
      if (found == values_.end()) return Unsupported("the value \"" + var->name + "\", which is no tensor");
      return found->second;
    }
    if (const auto* constant = As<ir::ConstantNode>(expr)) {
      const ir::ConstantData& data = *constant->data;
      return Value{op::UnpackReference(data.dtype(), data.dims(), data.bytes()), {}, false};
    }
    if (const auto* tuple = As<ir::TupleNode>(expr)) {
      Value value{{}, {}, true};
      for (const Expr& field : tuple->fields) {
        INGOT_ASSIGN_OR_RETURN(Value part, Evaluate(field));
        value.fields.push_back(std::move(part));
      }
      return value;
    }
    if (const auto* item = As<ir::TupleGetItemNode>(expr)) {
      INGOT_ASSIGN_OR_RETURN(Value tuple, Evaluate(item->tuple));
      if (item->index >= std::ssize(tuple.fields)) return Unsupported("a field of what is no tuple");
      return std::move(tuple.fields[static_cast<size_t>(item->index)]);
    }
    if (const auto* branch = As<ir::IfNode>(expr)) {
      INGOT_ASSIGN_OR_RETURN(const Value condition, Evaluate(branch->condition));
      if (condition.tensor.ints.size() != 1) return Unsupported("a condition that is no tensor of one bool");
      return Run(condition.tensor.ints[0] != 0 ? *branch->then_branch : *branch->else_branch);
    }
    if (const ir::Call call = ir::AsRef<ir::CallNode>(expr)) return EvaluateCall(call);
    return Unsupported("what it is");
  }

  Result<Value> EvaluateCall(const ir::Call& call) {
    const op::OpRow* row = op::RowOf(call);
    if (row == nullptr) return Unsupported("a call of a function");
    if (row->reference == nullptr) return Unsupported(row->name);
    std::vector<ReferenceTensor> inputs;
    for (const Expr& input : op::InputTensors(call)) {
      INGOT_ASSIGN_OR_RETURN(Value value, Evaluate(input));
      inputs.push_back(std::move(value.tensor));
    }
    INGOT_ASSIGN_OR_RETURN(std::vector<ReferenceTensor> results, row->reference(call, inputs));
    if (rounding_ == Rounding::kEveryOperator) {
      for (ReferenceTensor& result : results) RoundToDataType(result);
    }
    if (As<ir::TupleTypeNode>(call->type) == nullptr && results.size() == 1)
      return Value{std::move(results[0]), {}, false};
    Value tuple{{}, {}, true};
    for (ReferenceTensor& result : results) tuple.fields.push_back({std::move(result), {}, false});
    return tuple;
  }

  const Rounding rounding_;
  std::unordered_map<const ir::VarNode*, Value> values_;
};

Status Flatten(Value& value, std::vector<Tensor>& out) {
  for (Value& field : value.fields) INGOT_RETURN_IF_ERROR(Flatten(field, out));
  if (value.is_tuple) return Status();
  INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::FromShared(value.tensor.dtype, value.tensor.dims,
                                                           SharedBytes::Own(op::PackReference(value.tensor))));
  out.push_back(std::move(tensor));
  return Status();
}

}  // namespace

Result<std::vector<Tensor>> EvaluateByReference(const ir::IRModule& module, std::span<const Tensor> inputs,
                                                Rounding rounding) {
  const ir::Function function = module.FindFunction("main");
  if (function == nullptr || function->params.size() != inputs.size()) {
    return Status(StatusCode::kInvalidArgument, "the module has no function \"main\" of these inputs");
  }
  Evaluation evaluation(rounding);
  for (size_t i = 0; i < inputs.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(const Tensor compact, inputs[i].Compact());
    const std::vector<int64_t> dims(compact.dims().begin(), compact.dims().end());
    evaluation.Bind(function->params[i],
                    {op::UnpackReference(compact.dtype(), dims, std::as_bytes(compact.bytes())), {}, false});
  }
  INGOT_ASSIGN_OR_RETURN(Value result, evaluation.Run(*function->body));
  std::vector<Tensor> tensors;
  INGOT_RETURN_IF_ERROR(Flatten(result, tensors));
  return tensors;
}

}  // namespace ingot::driver
