// Operations on values as operators' calls, the tree of modules with their parameters, and the export of methods.
#include "compiler/builder/nn.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/op/registry.h"
#include "runtime/suggest.h"

namespace ingot::nn {

ir::Var Graph::VariableOf(const Parameter& parameter) const {
  const auto it = variables_.find(&parameter);
  INGOT_CHECK(it != variables_.end(), "a parameter of a module that is not exported");
  return it->second;
}

// ---- values

std::vector<ir::PrimExpr> Value::dims() const {
  const auto* type = ir::As<ir::TensorTypeNode>(expr_->type);
  return type != nullptr && type->dims ? *type->dims : std::vector<ir::PrimExpr>();
}
DataType Value::dtype() const {
  const auto* type = ir::As<ir::TensorTypeNode>(expr_->type);
  return type != nullptr && type->dtype ? *type->dtype : DataType::Float(32);
}

Value Apply(std::string_view op, std::span<const Value> inputs, ir::Attrs attrs) {
  INGOT_CHECK(!inputs.empty(), "the values say which function is built");
  std::vector<ir::Expr> args;
  for (const Value& input : inputs) args.push_back(input.expr());
  Graph& graph = inputs[0].graph();
  const std::string name(op.substr(op.rfind('.') + 1));  // npos + 1 is 0
  return Value(&graph, graph.builder().EmitOp(op, std::move(args), std::move(attrs), name));
}

Value operator+(const Value& a, const Value& b) { return Apply("add", {a, b}); }
Value operator-(const Value& a, const Value& b) { return Apply("subtract", {a, b}); }
Value operator*(const Value& a, const Value& b) { return Apply("multiply", {a, b}); }
Value operator/(const Value& a, const Value& b) { return Apply("divide", {a, b}); }
Value MatMul(const Value& a, const Value& b) { return Apply("matmul", {a, b}); }
Value PermuteDims(const Value& x, std::optional<std::vector<int64_t>> axes) {
  return Apply("permute_dims", {x}, axes ? ir::Attrs{{"axes", ir::AttrValue::Ints(*axes)}} : ir::Attrs{});
}
Value Reshape(const Value& x, std::vector<ir::PrimExpr> dims) {
  builder::BlockBuilder& builder = x.graph().builder();
  const ir::Expr shape = ir::Make<ir::ShapeExprNode>(std::move(dims));
  return Value(&x.graph(), builder.EmitOp("reshape", {x.expr(), shape}, {}, "reshape"));
}
Value Relu(const Value& x) { return Apply("nn.relu", {x}); }
Value Gelu(const Value& x) { return Apply("nn.gelu", {x}); }
Value Silu(const Value& x) { return Apply("nn.silu", {x}); }
Value Softmax(const Value& x, int64_t axis) { return Apply("nn.softmax", {x}, {{"axis", axis}}); }

// ---- modules

Status Parameter::SetData(const Tensor& data) {
  if (data.dtype() != dtype_ || !std::ranges::equal(data.dims(), dims_)) {
    return Status(StatusCode::kBadInput, "expected " + ShapeToString(dtype_, dims_) + ", got " + data.TypeToString());
  }
  INGOT_ASSIGN_OR_RETURN(data_, data.Compact());
  return Status();
}

Parameter& Module::AddParameter(std::string name, std::vector<int64_t> dims, DataType dtype) {
  members_.push_back({std::move(name), std::make_unique<Parameter>(std::move(dims), dtype), nullptr});
  return *members_.back().parameter;
}

std::vector<Module::NamedParameter> Module::NamedParameters() const {
  std::vector<NamedParameter> parameters;
  for (const Member& member : members_) {
    if (member.parameter != nullptr) {
      parameters.push_back({member.name, member.parameter.get()});
      continue;
    }
    for (NamedParameter& inner : member.child->NamedParameters()) {
      parameters.push_back({member.name + "." + inner.name, inner.parameter});
    }
  }
  return parameters;
}

Status Module::LoadParameters(std::span<const std::pair<std::string, Tensor>> tensors) {
  const std::vector<NamedParameter> parameters = NamedParameters();
  std::vector<std::string_view> names;
  for (const NamedParameter& parameter : parameters) names.push_back(parameter.name);
  for (const auto& [name, tensor] : tensors) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      return Status(StatusCode::kNotFound, "the module has no parameter \"" + name + "\"" + DidYouMean(name, names));
    }
    Parameter& parameter = *parameters[static_cast<size_t>(found - names.begin())].parameter;
    INGOT_RETURN_IF_ERROR(parameter.SetData(tensor).WithContext("parameter \"" + name + "\""));
  }
  return Status();
}

// ---- export

namespace {

ir::Expr ResultOf(builder::BlockBuilder& builder, const std::vector<Value>& results) {
  std::vector<ir::Expr> outputs;
  for (const Value& result : results) {
    outputs.push_back(builder.EmitOutput(result.expr(), results.size() == 1 ? "gv" : "out"));
  }
  if (outputs.size() == 1) return outputs[0];
  return ir::Make<ir::TupleNode>(std::move(outputs));
}

void ExportMethod(builder::BlockBuilder& builder, const Method& method,
                  const std::vector<Module::NamedParameter>& parameters,
                  const std::vector<ExportedParameter>& exported) {
  Graph graph(builder);
  std::vector<ir::Var> params;
  std::vector<Value> inputs;
  for (const InputSpec& input : method.inputs) {
    params.push_back(builder::TensorVar(input.name, input.dims, input.dtype));
    inputs.emplace_back(&graph, params.back());
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    std::vector<ir::PrimExpr> dims;
    for (const int64_t dim : exported[i].dims) dims.push_back(ir::Int64(dim));
    params.push_back(builder::TensorVar(exported[i].variable, std::move(dims), exported[i].dtype));
    graph.Bind(*parameters[i].parameter, params.back());
  }
  builder::FunctionOptions options;
  options.attrs = {{"num_input", static_cast<int64_t>(inputs.size())}};
  const auto body = [&]() -> ir::Expr {
    ir::Expr result;
    builder.Dataflow([&] { result = ResultOf(builder, method.forward(inputs)); });
    return result;
  };
  builder.Function(method.name, std::move(params), body, std::move(options));
}

}  // namespace

Result<Exported> Export(const Module& module, std::span<const Method> methods) {
  const std::vector<Module::NamedParameter> parameters = module.NamedParameters();
  Exported exported;
  std::unordered_set<std::string> taken;
  for (const Module::NamedParameter& parameter : parameters) {
    std::string variable = parameter.name;
    std::ranges::replace(variable, '.', '_');
    if (!taken.insert(variable).second) {
      return Status(StatusCode::kInvalidArgument, "two parameters have the name \"" + variable + "\"");
    }
    const Parameter& p = *parameter.parameter;
    exported.parameters.push_back({parameter.name, std::move(variable), p.dims(), p.dtype(), p.data()});
  }
  builder::BlockBuilder builder;
  for (const Method& method : methods) ExportMethod(builder, method, parameters, exported.parameters);
  INGOT_ASSIGN_OR_RETURN(exported.module, builder.Finish());
  return exported;
}

Result<Exported> Export(const Layer& layer, const InputSpec& input, const std::string& name) {
  const auto forward = [&layer](std::span<const Value> inputs) { return std::vector{layer.Forward(inputs[0])}; };
  const Method method{name, {input}, forward};
  return Export(layer, std::span(&method, 1));
}

std::vector<transform::NamedConstant> Exported::Constants() const {
  std::vector<transform::NamedConstant> constants;
  for (const ExportedParameter& parameter : parameters) {
    if (parameter.data) constants.push_back({parameter.variable, transform::ConstantOf(parameter.data)});
  }
  return constants;
}

}  // namespace ingot::nn
