#include "compiler/op/build.h"

namespace ingot::op {

Result<TeArgs> TeArgs::Make(const ir::Call& call) {
  TeArgs args(call);
  const auto own = [&](const ir::PrimExpr& expr) {
    for (const ir::PrimVar& var : ir::FreePrimVars(expr)) {
      if (!args.own_.contains(var)) args.own_.emplace(var, ir::MakePrimVar(var->name, var->dtype));
    }
    return ir::Substitute(expr, args.own_);
  };
  const auto type = ir::As<ir::TensorTypeNode>(call->type);
  if (type == nullptr || !type->dims || !type->dtype) {
    return OpError(call, "the result needs a known shape and dtype, got " + Describe(call->type));
  }
  const std::vector<ir::Expr> inputs = InputTensors(call);
  const OpRow* row = RowOf(call);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto* tensor = ir::As<ir::TensorTypeNode>(inputs[i]->type);
    if (!tensor->dims || !tensor->dtype) {
      return OpError(call, "every argument needs a known shape and dtype, got " + Describe(inputs[i]->type));
    }
    Dims dims;
    for (const ir::PrimExpr& dim : *tensor->dims) dims.push_back(own(dim));
    std::string name = row->arg_names.at(std::min(i, row->arg_names.size() - 1));
    if (i >= row->arg_names.size() || inputs.size() > call->args.size()) name += "_" + std::to_string(i);
    args.inputs_.push_back(te::Placeholder(std::move(dims), *tensor->dtype, std::move(name)));
  }
  for (const ir::PrimExpr& dim : *type->dims) own(dim);
  for (const ir::PrimVar& var : UnboundShapeVars(call)) {
    args.scalars_.push_back(ir::Downcast<ir::PrimVarNode>(own(var)));
  }
  return args;
}

Dims TeArgs::out_dims() const {
  Dims dims;
  for (const ir::PrimExpr& dim : *ir::As<ir::TensorTypeNode>(call_->type)->dims) {
    dims.push_back(ir::Substitute(dim, own_));
  }
  return dims;
}

DataType TeArgs::out_dtype() const { return *ir::As<ir::TensorTypeNode>(call_->type)->dtype; }

ir::PrimExpr TeArgs::scalar(size_t i) const {
  Result<ir::PrimExpr> value = PrimArg(call_, i);
  INGOT_CHECK(value.ok(), "type inference accepted the scalar");
  return ir::Substitute(*value, own_);
}

Result<ir::PrimFunc> BuildFromTe(const ir::Call& call, const std::function<te::Tensor(const TeArgs&)>& define) {
  INGOT_ASSIGN_OR_RETURN(const TeArgs args, TeArgs::Make(call));
  std::vector<te::Tensor> tensors = args.inputs();
  te::Tensor out = define(args);
  INGOT_CHECK(!out->operation->is_placeholder(), "an operator that computes nothing");
  tensors.push_back(std::move(out));
  return te::CreatePrimFunc(tensors, args.scalars());
}

bool Always(const ir::Call&, const Target&) { return true; }

double EstimateElements(const ir::Type& type) {
  double count = 1;
  const auto* tensor = ir::As<ir::TensorTypeNode>(type);
  if (tensor == nullptr || !tensor->dims) return count;
  for (const ir::PrimExpr& dim : *tensor->dims) {
    if (const int64_t* value = ir::AsConstInt(dim)) count *= static_cast<double>(*value);
  }
  return count;
}

double ElementsOfResult(const ir::Call& call, const Target&) { return EstimateElements(call->type); }

}  // namespace ingot::op
