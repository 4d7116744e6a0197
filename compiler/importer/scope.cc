// Scopes: how each kind is opened, and how a name is found from the inside out.
#include "compiler/importer/scope.h"

#include <algorithm>

#include "compiler/importer/onnx.h"
#include "compiler/importer/packed_values.h"

namespace ingot::importer {

Status Scope::DefineInitializers(const OnnxGraph& graph) {
  for (const auto& [name, data] : graph.initializers) {
    INGOT_ASSIGN_OR_RETURN(ImportedValue value, ValueOfConstant(data, name));
    INGOT_RETURN_IF_ERROR(Define(name, std::move(value)));
  }
  return Status();
}

void Scope::NotePacked(const OnnxGraph& graph) {
  for (const auto* list : {&graph.inputs, &graph.values, &graph.outputs}) {
    for (const OnnxValueInfo& info : *list) {
      if (info.is_tensor && info.dtype && IsHeldOtherwise(*info.dtype)) {
        declared_packed_.emplace(info.name, *info.dtype);
      }
    }
  }
}

Status Scope::OpenMain(const OnnxGraph& graph, int64_t opset) {
  opset_ = opset;
  NotePacked(graph);
  for (const OnnxValueInfo& info : graph.values) declared_.emplace(info.name, &info);
  for (const OnnxValueInfo& info : graph.outputs) {
    declared_.emplace(info.name, &info);
    results_.insert(info.name);
  }
  return DefineInitializers(graph);
}

Status Scope::OpenFunction(const OnnxFunction& function, const OnnxNode& call, const std::string& label,
                           const std::vector<ImportedValue*>& inputs, const Scope& caller) {
  prefix_ = label + "/";
  opset_ = caller.opset_;
  for (const auto& [domain, version] : function.opsets) {
    if (domain.empty() && version >= kMinOpset && version <= kMaxOpset) opset_ = version;
  }
  attributes_ = call.attributes;
  attributes_.insert(attributes_.end(), function.defaults.begin(), function.defaults.end());
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    if (i >= inputs.size() || inputs[i] == nullptr) {
      left_out_.insert(function.inputs[i]);
    } else {
      INGOT_RETURN_IF_ERROR(Define(function.inputs[i], *inputs[i]));
    }
  }
  return Status();
}

Status Scope::OpenGraph(const OnnxGraph& graph, const std::string& label, Scope& outer, bool has_bindings) {
  outer_ = &outer;
  has_bindings_ = has_bindings;
  prefix_ = label + "/";
  opset_ = outer.opset_;
  NotePacked(graph);
  for (const OnnxValueInfo& info : graph.values) declared_.emplace(info.name, &info);
  return DefineInitializers(graph);
}

ImportedValue* Scope::Find(const std::string& name) {
  if (const auto found = values_.find(name); found != values_.end()) return &found->second;
  if (const auto found = captured_.find(name); found != captured_.end()) return &found->second;
  ImportedValue* value = outer_ == nullptr ? nullptr : outer_->Find(name);
  if (value == nullptr || !has_bindings_ || value->expr != nullptr || !value->known) return value;
  return &captured_.emplace(name, *value).first->second;  // it gets a binding of its own in this scope
}

bool Scope::IsLeftOut(const std::string& name) const {
  return name.empty() || left_out_.contains(name) || (outer_ != nullptr && outer_->IsLeftOut(name));
}

const OnnxValueInfo* Scope::Declared(const std::string& name) const {
  const auto found = declared_.find(name);
  return found == declared_.end() ? nullptr : found->second;
}

Status Scope::Define(const std::string& name, ImportedValue value) {
  if (const auto found = declared_packed_.find(name); found != declared_packed_.end() && !value.packed) {
    const auto* type = value.type == nullptr ? nullptr : ir::As<ir::TensorTypeNode>(value.type);
    if (type != nullptr && type->dtype == HeldDataType(found->second)) value.packed = found->second;
  }
  if (values_.emplace(name, std::move(value)).second) return Status();
  return Status(StatusCode::kBadInput, "the value \"" + name + "\" is defined twice");
}

Status Scope::Define(const std::string& name, ir::Expr expr) {
  ir::Type type = expr->type;
  return Define(name, ImportedValue{.expr = std::move(expr), .type = std::move(type), .known = std::nullopt});
}

std::string Scope::LabelOf(const OnnxNode& node, size_t index) const {
  return prefix_ + (node.name.empty() ? "#" + std::to_string(index) : node.name);
}

const OnnxAttribute* Scope::CallAttribute(const std::string& name) const {
  const auto found = std::ranges::find(attributes_, name, &OnnxAttribute::name);
  if (found != attributes_.end()) return &*found;
  return outer_ == nullptr ? nullptr : outer_->CallAttribute(name);
}

}  // namespace ingot::importer
