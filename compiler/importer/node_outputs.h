// Defines the outputs of an imported node in its scope: as bound variables, as values that are known by their elements,
// or as stand-ins. A stand-in takes the place of the output of a node that is not supported; it has the type that the
// file declares, or none, and never reaches a module. The values themselves are owned by the scope.
#pragma once

#include <string>
#include <vector>

#include "compiler/importer/binding_builder.h"
#include "compiler/importer/onnx_model.h"
#include "compiler/importer/onnx_ops.h"
#include "compiler/importer/scope.h"
#include "compiler/importer/sequence_builder.h"
#include "compiler/importer/symbols.h"

namespace ingot::importer {

class NodeOutputs {
 public:
  NodeOutputs(BindingBuilder& builder, SequenceBuilder& sequences, Symbols& symbols)
      : builder_(builder), sequences_(sequences), symbols_(symbols) {}

  Status DefineKnown(const OnnxNode& node, std::vector<ShapeValue> outputs, bool stand_in, Scope& scope);
  // Gives bound outputs the formulas of their elements, which are not exact.
  void NoteFormulas(const OnnxNode& node, std::vector<ShapeValue> outputs, Scope& scope);
  // Gives stand-ins the types of the given outputs, or the declared ones.
  Status DefineStandIns(const OnnxNode& node, Scope& scope, const std::vector<ir::Expr>& outputs = {});
  // packed: the file's dtypes of outputs whose elements take less than a byte; may be shorter than the outputs.
  Status BindAll(const OnnxNode& node, const std::vector<ir::Expr>& outputs, const ir::Span& span, Scope& scope,
                 const std::vector<std::optional<DataType>>& packed = {});
  Status Bind(const std::string& name, ImportedValue value, const ir::Span& span, Scope& scope);
  // Makes the results of an expanded body the node's outputs.
  Status Take(const std::vector<std::string>& names, Scope& inner, const OnnxNode& node, const std::string& label,
              Scope& scope);
  // Makes a tensor of each result of the graph that is known by its elements, bound under its name.
  Status MaterialiseResults(const OnnxGraph& graph, Scope& scope);
  // Packs the results whose elements take less than a byte, as the file has them.
  Status PackResults(const OnnxGraph& graph, Scope& scope);

 private:
  BindingBuilder& builder_;
  SequenceBuilder& sequences_;
  Symbols& symbols_;
};

}  // namespace ingot::importer
