// Importing one operator as others: the name map is asked for them again.
#include "compiler/importer/ops/contrib.h"

#include <algorithm>

#include "compiler/importer/ops/families.h"
#include "runtime/check.h"

namespace ingot::importer {

Attributes Copied(const NodeImporter& node, std::initializer_list<std::string_view> names) {
  Attributes copies;
  for (const std::string_view name : names) {
    if (const OnnxAttribute* attribute = node.FindAttr(name)) copies.push_back(*attribute);
  }
  return copies;
}

Status CheckAttributes(const NodeImporter& node, std::initializer_list<std::string_view> known) {
  for (const OnnxAttribute& attribute : node.node().attributes) {
    if (std::ranges::find(known, attribute.name) == known.end()) {
      return node.Unsupported("the attribute \"" + attribute.name + "\"");
    }
  }
  return Status();
}

Status RefuseInput(const NodeImporter& node, size_t input, const char* what) {
  return node.HasInput(input) ? node.Unsupported(std::string("the input ") + what) : Status();
}

bool WantsOutput(const NodeImporter& node, size_t output) {
  const std::vector<std::string>& names = node.node().outputs;
  return names.size() > output && !names[output].empty();
}

Status RefuseOutput(const NodeImporter& node, size_t output, const char* what) {
  return WantsOutput(node, output) ? node.Unsupported(std::string("the output ") + what) : Status();
}

Result<Expr> InputOrNull(const NodeImporter& node, size_t input) {
  return node.HasInput(input) ? node.Input(input) : Result<Expr>(Expr());
}

Result<std::vector<Expr>> ApplyAll(const NodeImporter& node, std::string_view op_type, const std::vector<Expr>& inputs,
                                   Attributes attributes, std::vector<std::string> outputs, int64_t opset) {
  const OnnxOpRow* row = FindOnnxOp(op_type);
  if (row == nullptr) row = FindOnnxOp(op_type, kMicrosoft);
  INGOT_CHECK(row != nullptr, "an operator that the name map lacks");
  OnnxNode part;
  part.op_type = op_type;
  part.name = node.node().name;
  part.inputs.resize(inputs.size());
  part.outputs = std::move(outputs);
  part.attributes = std::move(attributes);
  std::vector<ImportedValue> values(inputs.size());
  std::vector<ImportedValue*> given(inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    values[i] = {.expr = inputs[i], .type = inputs[i]->type};
    given[i] = &values[i];
  }
  INGOT_ASSIGN_OR_RETURN(std::vector<Expr> results, ImportOnnxNode(*row, node.For(part, opset, std::move(given))));
  results.resize(std::min(results.size(), part.outputs.size()));
  for (Expr& result : results) {
    const bool is_bound = ir::As<ir::VarNode>(result) != nullptr || ir::As<ir::ConstantNode>(result) != nullptr;
    if (!is_bound) result = node.BindValue(std::move(result), "part");
  }
  return results;
}

Result<Expr> Apply(const NodeImporter& node, std::string_view op_type, const std::vector<Expr>& inputs,
                   Attributes attributes, int64_t opset) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> results,
                         ApplyAll(node, op_type, inputs, std::move(attributes), {"y"}, opset));
  return results.at(0);
}

}  // namespace ingot::importer
