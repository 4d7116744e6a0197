// What the importers of com.microsoft's operators share. Most of these are operators of ONNX's own domain with other
// operands, or several of them joined, and are imported as such.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/importer/ops/util.h"

namespace ingot::importer {

using Attributes = std::vector<OnnxAttribute>;

template <typename T>
OnnxAttribute AttributeOf(std::string name, T value) {
  OnnxAttribute attribute;
  attribute.name = std::move(name);
  attribute.value = std::move(value);
  return attribute;
}
// Returns those attributes of the node that it has.
Attributes Copied(const NodeImporter& node, std::initializer_list<std::string_view> names);

// Unsupported if the node has an attribute of another name.
Status CheckAttributes(const NodeImporter& node, std::initializer_list<std::string_view> known);
// Unsupported if the node has this input; `what` says which one that is.
Status RefuseInput(const NodeImporter& node, size_t input, const char* what);
// Unsupported if the node names this output.
Status RefuseOutput(const NodeImporter& node, size_t output, const char* what);
// Whether the node names this output.
bool WantsOutput(const NodeImporter& node, size_t output);
// Returns an input, or null if it is left out.
Result<Expr> InputOrNull(const NodeImporter& node, size_t input);

// Imports an operator of ONNX's own domain (or of com.microsoft, if that has none) in the node's place, of these inputs (null: left out). Apply returns its
// first output, ApplyAll as many as there are names; all are bound.
constexpr int64_t kLatestOpset = 23;
Result<std::vector<Expr>> ApplyAll(const NodeImporter& node, std::string_view op_type, const std::vector<Expr>& inputs,
                                   Attributes attributes, std::vector<std::string> outputs,
                                   int64_t opset = kLatestOpset);
Result<Expr> Apply(const NodeImporter& node, std::string_view op_type, const std::vector<Expr>& inputs,
                   Attributes attributes = {}, int64_t opset = kLatestOpset);

// Returns bytes as numbers of 2, 4 or 8 bits, the lowest bits first: the last axis becomes 8 / bits times as long.
Result<Expr> UnpackedBits(const NodeImporter& node, const Expr& bytes, int64_t bits);

// Imports a DynamicQuantizeLSTM whose recurrence is a product of bytes; nothing where its weights are no signed bytes
// known at import.
std::optional<Outputs> LstmOfBytes(const NodeImporter& node);

}  // namespace ingot::importer
