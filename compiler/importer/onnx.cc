// The graph importer: walks the nodes once, in order, and keeps the value of each ONNX name. Functions of the model,
// and branches whose condition is known, are expanded where they are called. A node that cannot be imported is noted,
// and its outputs become stand-ins of the type that the file declares for them (or of none), so that the walk goes on
// and finds every other such node; a stand-in never reaches a module, since none is made then.
#include "compiler/importer/onnx.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "compiler/importer/graph_importer.h"
#include "compiler/importer/shape_values.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/registry.h"
#include "runtime/suggest.h"
#include "runtime/tensor.h"

namespace ingot::importer {

using ir::Expr;
using ir::PrimExpr;

namespace {

std::string DimText(const PrimExpr& dim) {
  if (const auto value = ir::AsConstInt(dim)) return std::to_string(*value);
  if (const auto* var = ir::As<ir::PrimVarNode>(dim)) return var->name;
  return "?";
}

// Prints a type such as "float32[batch, 3]", as far as it is known.
std::string TypeText(const ir::Type& type) {
  const auto* tensor = ir::As<ir::TensorTypeNode>(type);
  if (type->kind == ir::TypeKind::kObject) return "a sequence or an optional value";
  if (tensor == nullptr) return "?";
  std::string text = tensor->dtype.has_value() ? tensor->dtype->ToString() : "?";
  if (!tensor->dims.has_value()) return text + "[...]";
  text += "[";
  for (size_t i = 0; i < tensor->dims->size(); ++i) text += (i == 0 ? "" : ", ") + DimText((*tensor->dims)[i]);
  return text + "]";
}

// Replaces dataflow variables by ordinary ones.
class PlainVariables : public ir::ExprMutator {
 protected:
  void MutateBinding(const ir::Binding& binding) override {
    ir::Binding plain = binding;
    plain.value = MutateExpr(binding.value);
    if (binding.var->is_dataflow) {
      plain.var = ir::Make<ir::VarNode>(binding.var->name, binding.var->type);
      var_map_[binding.var] = plain.var;
    }
    Emit(std::move(plain));
  }
};

// How deep functions and branches may be expanded inside of each other.
constexpr size_t kMaxNesting = 50;
constexpr int64_t kMaxExpandedNodes = 1'000'000;

}  // namespace

Status GraphImporter::Run() {
  INGOT_RETURN_IF_ERROR(CheckOpset());
  INGOT_RETURN_IF_ERROR(symbols_.Configure(options_));
  graph_.opset = report_.opset;
  for (const auto& [name, data] : model_.graph.initializers) {
    INGOT_RETURN_IF_ERROR(Define(graph_, name, ir::Make<ir::ConstantNode>(data, name)));
  }
  INGOT_RETURN_IF_ERROR(BindConstants());
  INGOT_RETURN_IF_ERROR(ImportInputs());
  symbols_.BindBounds(analyzer_);
  for (const OnnxValueInfo& info : model_.graph.values) graph_.declared.emplace(info.name, &info);
  for (const OnnxValueInfo& info : model_.graph.outputs) {
    graph_.declared.emplace(info.name, &info);
    output_names_.insert(info.name);
  }
  INGOT_RETURN_IF_ERROR(ImportNodes(model_.graph.nodes, graph_));
  INGOT_RETURN_IF_ERROR(MaterialiseResults());
  CountOperators();
  return Status();
}

Status GraphImporter::CheckOpset() {
  report_.producer = model_.producer;
  for (const auto& [domain, version] : model_.opsets) {
    if (domain.empty()) report_.opset = version;
  }
  if (report_.opset >= kMinOpset && report_.opset <= kMaxOpset) return Status();
  // A model without operators of ONNX's own domain needs no version of it.
  const auto is_own = [](const OnnxNode& node) { return node.domain.empty(); };
  if (report_.opset == 0 && std::ranges::none_of(model_.graph.nodes, is_own)) return Status();
  if (report_.opset == 0) return Status(StatusCode::kBadInput, "the model names no version of ONNX's operator set");
  return Status(StatusCode::kUnsupportedModel, "opset " + std::to_string(report_.opset) + " is not supported; " +
                                                   std::to_string(kMinOpset) + " to " + std::to_string(kMaxOpset) +
                                                   " are");
}

// Binds inputs to the constants that the options give.
Status GraphImporter::BindConstants() {
  std::vector<std::string_view> names;
  for (const OnnxValueInfo& info : model_.graph.inputs) names.push_back(info.name);
  for (const auto& [name, data] : options_.constants) {
    const auto input = std::ranges::find(model_.graph.inputs, name, &OnnxValueInfo::name);
    if (input == model_.graph.inputs.end()) {
      return Status(StatusCode::kInvalidArgument,
                    "--params: there is no input \"" + name + "\"" + DidYouMean(name, names));
    }
    const std::vector<OnnxDim> dims = input->dims.value_or(std::vector<OnnxDim>());
    bool fits = input->dtype == data->dtype() && (!input->dims.has_value() || dims.size() == data->dims().size());
    for (size_t i = 0; fits && i < dims.size(); ++i) fits = dims[i].value.value_or(data->dims()[i]) == data->dims()[i];
    if (!fits) {
      return Status(StatusCode::kInvalidArgument, "--params: \"" + name + "\" does not fit its input: got " +
                                                      ShapeToString(data->dtype(), data->dims()));
    }
    const Expr constant = ir::Make<ir::ConstantNode>(data, name);
    graph_.values.insert_or_assign(name, ImportedValue{.expr = constant, .type = constant->type});
  }
  return Status();
}

Status GraphImporter::ImportInputs() {
  // Up to IR version 3 initialisers are listed as inputs too; they are no parameters.
  std::vector<const OnnxValueInfo*> inputs;
  std::vector<std::string_view> names;
  std::unordered_set<std::string> lone_dims;
  for (const OnnxValueInfo& info : model_.graph.inputs) {
    if (graph_.values.contains(info.name)) continue;
    inputs.push_back(&info);
    names.push_back(info.name);
    for (const OnnxDim& dim : info.dims.value_or(std::vector<OnnxDim>())) {
      if (!dim.value.has_value() && Identifier(dim.param) == dim.param) lone_dims.insert(dim.param);
    }
  }
  symbols_.Announce(std::move(lone_dims));
  std::unordered_map<std::string_view, const InputShape*> shapes;
  for (const InputShape& shape : options_.input_shapes) {
    const auto found = std::find(names.begin(), names.end(), shape.input);
    if (found == names.end()) {
      return Status(StatusCode::kInvalidArgument,
                    "--input-shape: there is no input \"" + shape.input + "\"" + DidYouMean(shape.input, names));
    }
    if (!shapes.emplace(shape.input, &shape).second) {
      return Status(StatusCode::kInvalidArgument, "--input-shape names \"" + shape.input + "\" twice");
    }
    const std::optional<std::vector<OnnxDim>>& dims = inputs[found - names.begin()]->dims;
    for (size_t i = 0; dims.has_value() && i < std::min(dims->size(), shape.dims.size()); ++i) {
      const InputShape::Dim& dim = shape.dims[i];
      if ((*dims)[i].param.empty() || (!dim.value.has_value() && dim.symbol.empty())) continue;
      INGOT_RETURN_IF_ERROR(symbols_.Replace((*dims)[i].param, dim));
    }
  }
  std::unordered_set<std::string> taken;
  for (const OnnxValueInfo* info : inputs) {
    const auto shape = shapes.find(info->name);
    INGOT_ASSIGN_OR_RETURN(const ir::Type type, InputType(*info, shape == shapes.end() ? nullptr : shape->second));
    std::string name = Identifier(info->name);
    while (!taken.insert(name).second) name += "_";
    params_.push_back(ir::Make<ir::VarNode>(name, type));
    input_names_.push_back(info->name);
    if (type->kind == ir::TypeKind::kObject) objects_[params_.back()] = ObjectInfo::Declared(*info);
    INGOT_RETURN_IF_ERROR(Define(graph_, info->name, params_.back()));
  }
  return symbols_.CheckAllUsed();
}

Result<ir::Type> GraphImporter::InputType(const OnnxValueInfo& info, const InputShape* override_shape) {
  const std::string where = "input \"" + info.name + "\"";
  const bool is_object = info.is_sequence || info.is_optional;
  if (!info.is_tensor && !is_object) {
    return Status(StatusCode::kUnsupportedModel,
                  where + " is no tensor and no sequence of tensors, which is not supported");
  }
  if (!info.dtype.has_value()) {
    return Status(StatusCode::kUnsupportedModel, where + " has a data type that is not supported");
  }
  if (is_object) {
    if (override_shape == nullptr) return ir::Type(ir::Make<ir::ObjectTypeNode>());
    return Status(StatusCode::kInvalidArgument, "--input-shape: " + where + " is no tensor");
  }
  if (!info.dims.has_value() && override_shape == nullptr) {
    return Status(StatusCode::kUnsupportedModel,
                  where + " has no shape; give one with --input-shape " + info.name + "=...");
  }
  const size_t rank = info.dims.has_value() ? info.dims->size() : override_shape->dims.size();
  if (rank > static_cast<size_t>(kMaxRank))
    return Status(StatusCode::kUnsupportedModel, where + " has rank " + std::to_string(rank) + "; 8 is the limit");
  if (override_shape != nullptr && override_shape->dims.size() != rank) {
    return Status(StatusCode::kInvalidArgument, "--input-shape: " + where + " has rank " + std::to_string(rank) +
                                                    ", got " + std::to_string(override_shape->dims.size()) +
                                                    " dimensions");
  }
  std::vector<PrimExpr> dims;
  for (size_t i = 0; i < rank; ++i) {
    const OnnxDim declared = info.dims.has_value() ? (*info.dims)[i] : OnnxDim{};
    const InputShape::Dim given = override_shape == nullptr ? InputShape::Dim{} : override_shape->dims[i];
    if (declared.value.has_value()) {
      const bool differs = given.value.has_value() ? given.value != declared.value : !given.symbol.empty();
      if (differs) {
        return Status(StatusCode::kInvalidArgument, "--input-shape: dimension " + std::to_string(i) + " of " + where +
                                                        " is fixed to " + std::to_string(*declared.value) +
                                                        " by the model");
      }
      dims.push_back(ir::Int64(*declared.value));
    } else if (!declared.param.empty()) {
      dims.push_back(symbols_.Named(declared.param));
    } else if (given.value.has_value()) {
      dims.push_back(ir::Int64(*given.value));
    } else if (!given.symbol.empty()) {
      dims.push_back(symbols_.Named(given.symbol));
    } else {
      dims.push_back(symbols_.Fresh(Identifier(info.name) + "_dim_" + std::to_string(i)));
    }
  }
  return ir::Type(ir::Make<ir::TensorTypeNode>(std::move(dims), *info.dtype));
}

// The type that the file declares for an intermediate value, for stand-ins.
Result<ir::Type> GraphImporter::DeclaredType(const OnnxValueInfo& info) {
  if (info.is_sequence || info.is_optional) return ir::Type(ir::Make<ir::ObjectTypeNode>());
  if (!info.is_tensor || !info.dims.has_value()) return ir::Type();
  std::vector<PrimExpr> dims;
  for (size_t i = 0; i < info.dims->size(); ++i) {
    const OnnxDim& dim = (*info.dims)[i];
    if (dim.value.has_value()) {
      dims.push_back(ir::Int64(*dim.value));
    } else {
      dims.push_back(dim.param.empty() ? ir::MakePrimVar("d") : symbols_.Named(dim.param));
    }
  }
  return ir::Type(ir::Make<ir::TensorTypeNode>(std::move(dims), info.dtype));
}

Status GraphImporter::ImportNodes(const std::vector<OnnxNode>& nodes, Scope& scope) {
  for (size_t i = 0; i < nodes.size(); ++i) INGOT_RETURN_IF_ERROR(ImportNode(nodes[i], i, scope));
  return Status();
}

// Inside a function, attributes may refer to those of the call; an attribute that the call lacks is left out.
Status GraphImporter::ImportNode(const OnnxNode& node, size_t index, Scope& scope) {
  const std::string label = scope.prefix + (node.name.empty() ? "#" + std::to_string(index) : node.name);
  const auto refers = [](const OnnxAttribute& attribute) { return !attribute.reference.empty(); };
  if (std::ranges::none_of(node.attributes, refers)) return ImportResolved(node, label, scope);
  OnnxNode resolved = node;
  std::erase_if(resolved.attributes, refers);
  for (const OnnxAttribute& attribute : node.attributes) {
    if (!refers(attribute) || scope.attributes == nullptr) continue;
    const auto given = std::ranges::find(*scope.attributes, attribute.reference, &OnnxAttribute::name);
    if (given != scope.attributes->end()) resolved.attributes.push_back({attribute.name, given->value, {}});
  }
  return ImportResolved(resolved, label, scope);
}

Status GraphImporter::ImportResolved(const OnnxNode& node, const std::string& label, Scope& scope) {
  std::vector<ImportedValue*> inputs;
  bool has_stand_in = false, has_unknown = false;
  for (const std::string& name : node.inputs) {
    ImportedValue* value = name.empty() ? nullptr : scope.Find(name);
    if (!value && !scope.IsLeftOut(name)) {
      return Status(StatusCode::kBadInput, "node \"" + label + "\" (" + node.op_type + "): its input \"" + name +
                                               "\" is not defined before it");
    }
    has_stand_in |= value && value->stand_in;
    has_unknown |= value && value->type == nullptr;
    inputs.push_back(value);
  }
  const ir::Span span = SpanOf(label);
  const NodeImporter importer(node, scope.opset, inputs, span, bindings_, nesting_ == 0 ? &implied_bounds_ : nullptr);
  if (node.domain.empty() && !has_unknown) {
    std::optional<std::vector<ShapeValue>> known = EvaluateShapeValues(importer, analyzer_);
    if (known.has_value()) return DefineKnown(node, *std::move(known), has_stand_in, scope);
  }
  const OnnxOpRow* row = node.domain.empty() ? FindOnnxOp(node.op_type) : nullptr;
  if (row == nullptr) {
    if (const SequenceRow* sequence = node.domain.empty() ? FindSequenceOperator(node.op_type) : nullptr) {
      return ImportSequenceOperator(*sequence, node, label, importer, inputs, scope);
    }
    if (const OnnxFunction* function = FindFunction(node)) return ImportFunction(*function, node, label, inputs, scope);
    if (node.domain.empty() && IsControlFlow(node.op_type)) {
      if (has_unknown) return DefineStandIns(node, scope);
      const std::optional<ShapeValue> condition = node.op_type == "If" ? importer.Known(0) : std::nullopt;
      const std::optional<int64_t> chosen =
          condition && condition->elements.size() == 1 ? ir::AsConstInt(condition->elements[0]) : std::nullopt;
      if (chosen) return ImportKnownBranch(node, label, importer, *chosen != 0, scope);
      return ImportControlFlow(node, label, importer, scope);
    }
    // A shape operator is not reported if an input is unknown: the operator is supported, it only cannot be evaluated.
    const bool is_behind = has_unknown && node.domain.empty() && IsShapeOperator(node.op_type);
    if (!is_behind) ReportUnsupported(node, label, inputs, "no operator of this name is known");
    return DefineStandIns(node, scope);
  }
  if (has_unknown) return DefineStandIns(node, scope);
  Result<std::vector<Expr>> outputs = ImportOnnxNode(*row, importer);
  if (outputs.ok()) {
    return has_stand_in ? DefineStandIns(node, scope, *outputs) : BindOutputs(node, *outputs, span, scope);
  }
  if (outputs.status().code() == StatusCode::kUnsupportedModel) {
    ReportUnsupported(node, label, inputs, outputs.status().message());
    return DefineStandIns(node, scope);
  }
  if (has_stand_in) return DefineStandIns(node, scope);  // the declared type may be the cause
  return Status(StatusCode::kBadInput, "node \"" + label + "\" (" + node.op_type + "): " + outputs.status().message());
}

// Counts the nodes that expansion adds: functions that call others twice grow exponentially.
Status GraphImporter::Enter(const std::string& label, const std::vector<OnnxNode>& nodes) {
  expanded_nodes_ += std::ssize(nodes);
  if (nesting_ <= kMaxNesting && expanded_nodes_ <= kMaxExpandedNodes) return Status();
  return Status(StatusCode::kUnsupportedModel, "node \"" + label + "\": functions and branches that nest more than " +
                                                   std::to_string(kMaxNesting) + " deep, or expand to more than " +
                                                   std::to_string(kMaxExpandedNodes) + " nodes");
}

// Makes the results of an expanded body the node's outputs.
Status GraphImporter::TakeOutputs(const std::vector<std::string>& names, Scope& inner, const OnnxNode& node,
                                  const std::string& label, Scope& scope) {
  if (node.outputs.size() > names.size()) {
    return Status(StatusCode::kBadInput,
                  "node \"" + label + "\" (" + node.op_type + "): it has no output " + std::to_string(names.size()));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    const ImportedValue* value = inner.Find(names[i]);
    if (!value) {
      return Status(StatusCode::kBadInput, "node \"" + label + "\" (" + node.op_type + "): its result \"" + names[i] +
                                               "\" is not made by any node");
    }
    INGOT_RETURN_IF_ERROR(BindOutput(node.outputs[i], *value, SpanOf(label), scope));
  }
  return Status();
}

// Imports the branch of an If whose condition follows from shapes and constants in place of the If.
Status GraphImporter::ImportKnownBranch(const OnnxNode& node, const std::string& label, const NodeImporter& importer,
                                        bool condition, Scope& scope) {
  Result<const OnnxGraph*> graph = GraphOf(importer, condition ? "then_branch" : "else_branch");
  if (!graph.ok()) return std::move(graph).status().WithContext("node \"" + label + "\" (If)");
  const OnnxGraph& branch = **graph;
  Scope inner;
  INGOT_RETURN_IF_ERROR(OpenGraph(branch, label, scope, inner));
  INGOT_RETURN_IF_ERROR(ImportGraph(branch, label, inner));
  std::vector<std::string> names;
  for (const OnnxValueInfo& info : branch.outputs) names.push_back(info.name);
  return TakeOutputs(names, inner, node, label, scope);
}

const OnnxFunction* GraphImporter::FindFunction(const OnnxNode& node) const {
  for (const OnnxFunction& function : model_.functions) {
    if (function.name == node.op_type && function.domain == node.domain && function.overload == node.overload) {
      return &function;
    }
  }
  return nullptr;
}

Status GraphImporter::ImportFunction(const OnnxFunction& function, const OnnxNode& node, const std::string& label,
                                     const std::vector<ImportedValue*>& inputs, Scope& scope) {
  const std::string where = "node \"" + label + "\" (" + node.op_type + "): ";
  if (std::ranges::find(active_functions_, &function) != active_functions_.end()) {
    return Status(StatusCode::kBadInput, where + "the function calls itself");
  }
  if (inputs.size() > function.inputs.size()) {
    return Status(StatusCode::kBadInput, where + "the function takes " + std::to_string(function.inputs.size()) +
                                             " inputs, got " + std::to_string(inputs.size()));
  }
  Scope inner;
  inner.prefix = label + "/";
  inner.opset = scope.opset;
  for (const auto& [domain, version] : function.opsets) {
    if (domain.empty() && version >= kMinOpset && version <= kMaxOpset) inner.opset = version;
  }
  std::vector<OnnxAttribute> attributes = node.attributes;
  attributes.insert(attributes.end(), function.defaults.begin(), function.defaults.end());
  inner.attributes = &attributes;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    if (i >= inputs.size() || inputs[i] == nullptr) {
      inner.left_out.insert(function.inputs[i]);
    } else {
      INGOT_RETURN_IF_ERROR(Define(inner, function.inputs[i], *inputs[i]));
    }
  }
  active_functions_.push_back(&function);
  ++nesting_;
  INGOT_RETURN_IF_ERROR(Enter(label, function.nodes));
  INGOT_RETURN_IF_ERROR(ImportNodes(function.nodes, inner));
  --nesting_;
  active_functions_.pop_back();
  return TakeOutputs(function.outputs, inner, node, label, scope);
}

Status GraphImporter::DefineKnown(const OnnxNode& node, std::vector<ShapeValue> outputs, bool stand_in, Scope& scope) {
  for (size_t i = 0; i < std::min(node.outputs.size(), outputs.size()); ++i) {
    if (node.outputs[i].empty()) continue;
    ir::Type type = outputs[i].Type();
    INGOT_RETURN_IF_ERROR(
        Define(scope, node.outputs[i],
               {.expr = nullptr, .type = std::move(type), .known = std::move(outputs[i]), .stand_in = stand_in}));
  }
  return Status();
}

void GraphImporter::ReportUnsupported(const OnnxNode& node, const std::string& label,
                                      const std::vector<ImportedValue*>& inputs, std::string reason) {
  UnsupportedOperator& entry = report_.unsupported.emplace_back();
  entry.op_type = node.op_type;
  entry.domain = node.domain;
  entry.node = label;
  for (const auto& [domain, version] : model_.opsets) {
    if (domain == node.domain) entry.opset = version;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) {
      entry.inputs.push_back("none");
    } else {
      entry.inputs.push_back(inputs[i]->type == nullptr ? "?" : TypeText(inputs[i]->type));
    }
  }
  entry.reason = std::move(reason);
}

// Gives stand-ins the types of the given outputs, or the declared ones.
Status GraphImporter::DefineStandIns(const OnnxNode& node, Scope& scope, const std::vector<Expr>& outputs) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string& name = node.outputs[i];
    if (name.empty()) continue;
    ir::Type type = i < outputs.size() ? outputs[i]->type : nullptr;
    const auto declared = scope.declared.find(name);
    if (type == nullptr && declared != scope.declared.end()) {
      INGOT_ASSIGN_OR_RETURN(type, DeclaredType(*declared->second));
    }
    ImportedValue value{.expr = nullptr, .type = type, .known = std::nullopt, .stand_in = true};
    if (type != nullptr) value.expr = ir::Make<ir::VarNode>(Identifier(name), type);
    INGOT_RETURN_IF_ERROR(Define(scope, name, std::move(value)));
  }
  return Status();
}

Status GraphImporter::BindOutputs(const OnnxNode& node, const std::vector<Expr>& outputs, const ir::Span& span,
                                  Scope& scope) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= outputs.size()) {
      return Status(StatusCode::kBadInput,
                    "node \"" + *span.operation + "\" (" + node.op_type + "): it has no output " + std::to_string(i));
    }
    INGOT_RETURN_IF_ERROR(BindOutput(node.outputs[i], {.expr = outputs[i], .type = outputs[i]->type}, span, scope));
  }
  return Status();
}

Status GraphImporter::BindOutput(const std::string& name, ImportedValue value, const ir::Span& span, Scope& scope) {
  const bool is_result = &scope == &graph_ && output_names_.contains(name);
  const auto* var = ir::As<ir::VarNode>(value.expr);
  // An alias needs no binding, except for a result: a dataflow variable cannot leave its block.
  const bool is_alias = value.stand_in || value.expr == nullptr || ir::As<ir::ConstantNode>(value.expr) != nullptr ||
                        (var != nullptr && !(is_result && var->is_dataflow));
  if (!is_alias) {
    const ir::Var bound = ir::Make<ir::VarNode>(Identifier(name), value.type, /*dataflow=*/!is_result);
    bindings_.push_back({bound, value.expr, nullptr, span});
    if (const auto object = objects_.find(value.expr); object != objects_.end()) {
      ObjectInfo info = object->second;
      objects_.emplace(bound, std::move(info));
    }
    value.expr = bound;
  }
  return Define(scope, name, std::move(value));
}

// Makes a tensor of each result that is known by its elements, bound under its name.
Status GraphImporter::MaterialiseResults() {
  for (const OnnxValueInfo& info : model_.graph.outputs) {
    const auto found = graph_.values.find(info.name);
    if (found == graph_.values.end() || !found->second.known.has_value() || found->second.stand_in) continue;
    ImportedValue& value = found->second;
    const ir::Span span = SpanOf(info.name);
    if (value.expr == nullptr) {
      INGOT_ASSIGN_OR_RETURN(value.expr, Materialise(*value.known, bindings_, span));
    }
    if (ir::As<ir::VarNode>(value.expr) == nullptr) continue;
    const ir::Var bound = ir::Make<ir::VarNode>(Identifier(info.name), value.type);
    bindings_.push_back({bound, value.expr, nullptr, span});
    value.expr = bound;
  }
  return Status();
}

void GraphImporter::CountOperators() {
  std::map<std::pair<std::string, std::string>, int64_t> counts;
  for (const OnnxNode& node : model_.graph.nodes) ++counts[{node.op_type, node.domain}];
  for (const auto& [key, count] : counts) report_.operators.push_back({key.first, key.second, count});
}

Result<ir::IRModule> GraphImporter::Module() {
  std::vector<Expr> results;
  std::vector<ir::Type> types;
  ir::AttrList inputs(input_names_.begin(), input_names_.end()), outputs;
  for (const OnnxValueInfo& info : model_.graph.outputs) {
    const auto value = graph_.values.find(info.name);
    if (value == graph_.values.end()) {
      return Status(StatusCode::kBadInput, "the output \"" + info.name + "\" is not made by any node");
    }
    const Expr& expr = value->second.expr;
    const auto* type = ir::As<ir::TensorTypeNode>(expr->type);
    if (info.dtype.has_value() && type != nullptr && type->dtype.has_value() && *type->dtype != *info.dtype) {
      return Status(StatusCode::kBadInput, "the output \"" + info.name + "\" is declared as " + info.dtype->ToString() +
                                               ", but its node gives " + TypeText(expr->type));
    }
    results.push_back(expr);
    types.push_back(expr->type);
    outputs.push_back(info.name);
  }
  if (results.empty()) return Status(StatusCode::kBadInput, "the graph has no outputs");
  const ir::Type result_type = types.size() == 1 ? types[0] : ir::Type(ir::Make<ir::TupleTypeNode>(types));
  const Expr result = results.size() == 1 ? results[0] : Expr(ir::Make<ir::TupleNode>(results, result_type));
  // Branches and loops are not allowed in dataflow blocks, and they use values around them.
  const bool is_straight = std::ranges::none_of(bindings_, [](const ir::Binding& binding) {
    return ir::As<ir::IfNode>(binding.value) != nullptr || ir::As<ir::FunctionNode>(binding.value) != nullptr;
  });
  std::vector<ir::BindingBlock> blocks;
  if (!bindings_.empty()) blocks.push_back({std::move(bindings_), is_straight});
  ir::SeqExpr body = ir::Make<ir::SeqExprNode>(std::move(blocks), result, result_type);
  if (!is_straight) body = ir::Downcast<ir::SeqExprNode>(PlainVariables().MutateExpr(body));
  ir::Attrs attrs = {{"num_input", static_cast<int64_t>(params_.size())},
                     {"input_names", std::move(inputs)},
                     {"output_names", std::move(outputs)}};
  ir::IRModule module;
  module.Add("main", ir::Make<ir::FunctionNode>(params_, body, result_type, /*pure=*/true, /*priv=*/false,
                                                symbols_.WithBounds(std::move(attrs), implied_bounds_)));
  return module;
}

namespace {

Status UnsupportedError(const SupportReport& report) {
  constexpr size_t kMaxListed = 100;
  const size_t count = report.unsupported.size();
  std::string message =
      count == 1 ? "1 operator is not supported:" : std::to_string(count) + " operators are not supported:";
  for (size_t i = 0; i < std::min(count, kMaxListed); ++i) message += "\n  " + report.unsupported[i].ToString();
  if (count > kMaxListed) message += "\n  ... and " + std::to_string(count - kMaxListed) + " more";
  return Status(StatusCode::kUnsupportedModel, std::move(message));
}

}  // namespace

std::string UnsupportedOperator::ToString() const {
  std::string text = domain.empty() ? op_type : domain + "." + op_type;
  text += " (node \"" + node + "\", opset " + std::to_string(opset) + ", inputs: ";
  for (size_t i = 0; i < inputs.size(); ++i) text += (i == 0 ? "" : ", ") + inputs[i];
  if (inputs.empty()) text += "none";
  return text + "): " + reason;
}

Result<ImportResult> ImportOnnx(const SharedBytes& file, const std::string& name, const ImportOptions& options) {
  Result<OnnxModel> model = ParseOnnxModel(file, options.directory);
  if (!model.ok()) return std::move(model).status().WithContext(name);
  GraphImporter importer(*model, name, options);
  Status status = importer.Run();
  if (!status.ok()) return std::move(status).WithContext(name);
  if (!importer.report().unsupported.empty()) return UnsupportedError(importer.report()).WithContext(name);
  Result<ir::IRModule> module = importer.Module();
  if (!module.ok()) return std::move(module).status().WithContext(name);
  return ImportResult{*std::move(module), std::move(importer.report())};
}

Result<SupportReport> CheckOnnx(const SharedBytes& file, const std::string& name, const ImportOptions& options) {
  Result<OnnxModel> model = ParseOnnxModel(file, options.directory);
  if (!model.ok()) return std::move(model).status().WithContext(name);
  GraphImporter importer(*model, name, options);
  Status status = importer.Run();
  if (!status.ok()) return std::move(status).WithContext(name);
  return std::move(importer.report());
}

}  // namespace ingot::importer
