// Binding of outputs: a new variable where one is needed, and no binding for an alias.
#include "compiler/importer/node_outputs.h"

#include <algorithm>
#include <utility>

#include "compiler/importer/packed_values.h"
#include "compiler/importer/report_builder.h"
#include "compiler/op/packed_elements.h"

namespace ingot::importer {

using ir::Expr;

Status NodeOutputs::DefineKnown(const OnnxNode& node, std::vector<ShapeValue> outputs, bool stand_in, Scope& scope) {
  for (size_t i = 0; i < std::min(node.outputs.size(), outputs.size()); ++i) {
    if (node.outputs[i].empty()) continue;
    ir::Type type = outputs[i].Type();
    INGOT_RETURN_IF_ERROR(
        scope.Define(node.outputs[i],
                     {.expr = nullptr, .type = std::move(type), .known = std::move(outputs[i]), .stand_in = stand_in}));
  }
  return Status();
}

void NodeOutputs::NoteFormulas(const OnnxNode& node, std::vector<ShapeValue> outputs, Scope& scope) {
  for (size_t i = 0; i < std::min(node.outputs.size(), outputs.size()); ++i) {
    ImportedValue* value = node.outputs[i].empty() ? nullptr : scope.Find(node.outputs[i]);
    if (value != nullptr && value->expr != nullptr && !value->stand_in) value->known = std::move(outputs[i]);
  }
}

Status NodeOutputs::DefineStandIns(const OnnxNode& node, Scope& scope, const std::vector<Expr>& outputs) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string& name = node.outputs[i];
    if (name.empty()) continue;
    ir::Type type = i < outputs.size() ? outputs[i]->type : nullptr;
    const OnnxValueInfo* declared = scope.Declared(name);
    if (type == nullptr && declared != nullptr) type = symbols_.DeclaredType(*declared);
    ImportedValue value{.expr = nullptr, .type = type, .known = std::nullopt, .stand_in = true};
    if (type != nullptr) value.expr = ir::Make<ir::VarNode>(Identifier(name), type);
    INGOT_RETURN_IF_ERROR(scope.Define(name, std::move(value)));
  }
  return Status();
}

Status NodeOutputs::BindAll(const OnnxNode& node, const std::vector<Expr>& outputs, const ir::Span& span, Scope& scope,
                            const std::vector<std::optional<DataType>>& packed) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= outputs.size()) {
      return Status(StatusCode::kBadInput, NodePrefix(node, *span.operation) + "it has no output " + std::to_string(i));
    }
    ImportedValue value{.expr = outputs[i], .type = outputs[i]->type};
    if (i < packed.size()) value.packed = packed[i];
    INGOT_RETURN_IF_ERROR(Bind(node.outputs[i], std::move(value), span, scope));
  }
  return Status();
}

Status NodeOutputs::Bind(const std::string& name, ImportedValue value, const ir::Span& span, Scope& scope) {
  const bool is_result = scope.IsResult(name);
  const auto* var = ir::As<ir::VarNode>(value.expr);
  // An alias needs no binding, except for a result: a dataflow variable cannot leave its block.
  const bool is_alias = value.stand_in || value.expr == nullptr || ir::As<ir::ConstantNode>(value.expr) != nullptr ||
                        (var != nullptr && !(is_result && var->is_dataflow));
  if (!is_alias) {
    const ir::Var bound = ir::Make<ir::VarNode>(Identifier(name), value.type, /*dataflow=*/!is_result);
    builder_.BindTo(bound, value.expr, span);
    if (const ObjectInfo* object = sequences_.ObjectOf(value.expr)) sequences_.Describe(bound, *object);
    value.expr = bound;
  }
  return scope.Define(name, std::move(value));
}

Status NodeOutputs::Take(const std::vector<std::string>& names, Scope& inner, const OnnxNode& node,
                         const std::string& label, Scope& scope) {
  if (node.outputs.size() > names.size()) {
    return Status(StatusCode::kBadInput, NodePrefix(node, label) + "it has no output " + std::to_string(names.size()));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    const ImportedValue* value = inner.Find(names[i]);
    if (!value) {
      return Status(StatusCode::kBadInput,
                    NodePrefix(node, label) + "its result \"" + names[i] + "\" is not made by any node");
    }
    INGOT_RETURN_IF_ERROR(Bind(node.outputs[i], *value, builder_.SpanOf(label), scope));
  }
  return Status();
}

Status NodeOutputs::MaterialiseResults(const OnnxGraph& graph, Scope& scope) {
  for (const OnnxValueInfo& info : graph.outputs) {
    ImportedValue* found = scope.Find(info.name);
    if (found == nullptr || !found->known.has_value() || found->stand_in || !found->known->is_exact()) continue;
    ImportedValue& value = *found;
    const ir::Span span = builder_.SpanOf(info.name);
    if (value.expr == nullptr) {
      INGOT_ASSIGN_OR_RETURN(value.expr, Materialise(*value.known, builder_.bindings(), span));
    }
    if (ir::As<ir::VarNode>(value.expr) == nullptr) continue;
    const ir::Var bound = ir::Make<ir::VarNode>(Identifier(info.name), value.type);
    builder_.BindTo(bound, value.expr, span);
    value.expr = bound;
  }
  return Status();
}

Status NodeOutputs::PackResults(const OnnxGraph& graph, Scope& scope) {
  for (const OnnxValueInfo& info : graph.outputs) {
    ImportedValue* value = scope.Find(info.name);
    if (value == nullptr || value->stand_in || value->expr == nullptr || !value->packed ||
        value->packed == kStringElement) {
      continue;
    }
    const ir::Span span = builder_.SpanOf(info.name);
    INGOT_ASSIGN_OR_RETURN(const Expr packed, PackElements(builder_, value->expr, *value->packed, span));
    const ir::Var bound = ir::Make<ir::VarNode>(Identifier(info.name), packed->type);
    builder_.BindTo(bound, packed, span);
    *value = {.expr = bound, .type = bound->type};
  }
  return Status();
}

}  // namespace ingot::importer
