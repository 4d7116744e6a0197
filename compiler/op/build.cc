// Makes placeholders for a call's tensors, with the PrimFunc's own symbolic variables in place of the call's, runs the
// definition over them and gives the result a PrimFunc's form. Below: costs that implementations share.
#include "compiler/op/build.h"

#include <algorithm>
#include <cmath>

#include "compiler/ir/verify_prim_func.h"

namespace ingot::op {

Status TeArgs::FindOutputs() {
  std::vector<ir::Type> results = {call_->type};
  if (const auto* tuple = ir::As<ir::TupleTypeNode>(call_->type)) results = tuple->fields;
  for (const ir::Type& result : results) {
    const ir::TensorType type = ir::AsRef<ir::TensorTypeNode>(result);
    if (type == nullptr || !type->dims || !type->dtype) {
      return OpError(call_, "the result needs a known shape and dtype, got " + Describe(call_->type));
    }
    outputs_.push_back(type);
  }
  return Status();
}

Result<TeArgs> TeArgs::Over(const ir::Call& call, std::vector<te::Tensor> inputs) {
  TeArgs args(call);
  INGOT_RETURN_IF_ERROR(args.FindOutputs());
  args.inputs_ = std::move(inputs);
  args.scalars_ = UnboundShapeVars(call);
  return args;
}

Result<TeArgs> TeArgs::Make(const ir::Call& call) {
  TeArgs args(call);
  const auto own = [&](const ir::PrimExpr& expr) {
    for (const ir::PrimVar& var : ir::FreePrimVars(expr)) {
      if (!args.own_.contains(var)) args.own_.emplace(var, ir::MakePrimVar(var->name, var->dtype));
    }
    return ir::Substitute(expr, args.own_);
  };
  INGOT_RETURN_IF_ERROR(args.FindOutputs());
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
  for (const ir::TensorType& type : args.outputs_) {
    for (const ir::PrimExpr& dim : *type->dims) own(dim);
  }
  for (const ir::PrimVar& var : UnboundShapeVars(call)) {
    args.scalars_.push_back(ir::Downcast<ir::PrimVarNode>(own(var)));
  }
  return args;
}

Dims TeArgs::out_dims(size_t i) const {
  Dims dims;
  for (const ir::PrimExpr& dim : *outputs_.at(i)->dims) dims.push_back(Own(dim));
  return dims;
}

DataType TeArgs::out_dtype(size_t i) const { return *outputs_.at(i)->dtype; }

ir::PrimExpr TeArgs::scalar(size_t i) const {
  Result<ir::PrimExpr> value = PrimArg(call_, i);
  INGOT_CHECK(value.ok(), "type inference accepted the scalar");
  return Own(*value);
}

Result<ir::PrimFunc> BuildManyFromTe(const ir::Call& call,
                                     const std::function<std::vector<te::Tensor>(const TeArgs&)>& define) {
  INGOT_ASSIGN_OR_RETURN(const TeArgs args, TeArgs::Make(call));
  std::vector<te::Tensor> tensors = args.inputs();
  std::vector<te::Tensor> results = define(args);
  INGOT_CHECK(results.size() == args.num_outputs(), "a definition that computes another number of results");
  for (te::Tensor& result : results) {
    INGOT_CHECK(!result->operation->is_placeholder(), "an operator that computes nothing");
    tensors.push_back(std::move(result));
  }
  return te::CreatePrimFunc(tensors, args.scalars());
}

Result<ir::PrimFunc> BuildFromTe(const ir::Call& call, const std::function<te::Tensor(const TeArgs&)>& define) {
  return BuildManyFromTe(call, [&](const TeArgs& args) { return std::vector<te::Tensor>{define(args)}; });
}

Result<ir::PrimFunc> OfFusionClass(const ir::PrimFunc& function, FusionClass fusion) {
  ir::PrimFuncNode copy = *function;
  copy.attrs = copy.attrs.With("op_pattern", static_cast<int64_t>(fusion));
  return ir::Make<ir::PrimFuncNode>(std::move(copy));
}

Result<ir::PrimFunc> BuildFromStatements(
    const ir::Call& call,
    const std::function<Statements(const TeArgs& args, const Buffers& inputs, const Buffers& outputs)>& define,
    const std::vector<std::string>& output_names) {
  INGOT_ASSIGN_OR_RETURN(const TeArgs args, TeArgs::Make(call));
  Buffers inputs;
  Buffers outputs;
  std::vector<ir::PrimFuncParam> params;
  for (const te::Tensor& input : args.inputs()) {
    inputs.push_back(ir::MakeBuffer(input->name, input->dtype, input->shape));
    params.push_back({inputs.back()->data, inputs.back()});
  }
  for (size_t i = 0; i < args.num_outputs(); ++i) {
    const std::string name = i < output_names.size() ? output_names[i] : "out";
    outputs.push_back(ir::MakeBuffer(name, args.out_dtype(i), args.out_dims(i)));
    params.push_back({outputs.back()->data, outputs.back()});
  }
  for (const ir::PrimVar& scalar : args.scalars()) params.push_back({scalar, nullptr});
  Statements statements = define(args, inputs, outputs);
  ir::BlockNode root("root", {}, {}, {}, ir::MakeSeq(std::move(statements.nests)));
  root.alloc_buffers = std::move(statements.workspace);
  const ir::Stmt body = ir::Make<ir::BlockRealizeNode>(std::vector<ir::PrimExpr>{}, ir::BoolImm(true),
                                                       ir::Make<ir::BlockNode>(std::move(root)));
  const ir::PrimFunc function =
      ir::Make<ir::PrimFuncNode>(std::move(params), body, false, ir::Attrs{{"tirx.noalias", ir::AttrValue(true)}});
  const Status status = ir::VerifyPrimFunc(function);
  if (!status.ok()) CheckFailed(__FILE__, __LINE__, "the statements make a valid function", status.message().c_str());
  return function;
}

bool Always(const ir::Call&, const Target&) { return true; }

double EstimateElements(const ir::Type& type) {
  double count = 1;
  if (const auto* tuple = ir::As<ir::TupleTypeNode>(type)) {
    count = 0;
    for (const ir::Type& field : tuple->fields) count += EstimateElements(field);
    return count;
  }
  const auto* tensor = ir::As<ir::TensorTypeNode>(type);
  if (tensor == nullptr || !tensor->dims) return count;
  for (const ir::PrimExpr& dim : *tensor->dims) {
    if (const auto value = ir::AsConstInt(dim)) count *= static_cast<double>(*value);
  }
  return count;
}

double InputElements(const ir::Call& call, const Target&) { return EstimateElements(call->args[0]->type); }

double SortCost(const ir::Call& call, const Target&) {
  const double elements = EstimateElements(call->args[0]->type);
  return elements * std::max(1.0, std::log2(elements));
}

double ElementsOfResult(const ir::Call& call, const Target&) { return EstimateElements(call->type); }

}  // namespace ingot::op
