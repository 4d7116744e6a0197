// The operators of sequences and optional values, SequenceMap aside, which is a loop (control_flow.h). Each one becomes
// calls of R.sequence.* by SequenceBuilder, which owns what is known of the values; this class owns the table of names.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/importer/loop_builder.h"
#include "compiler/importer/onnx_ops.h"
#include "compiler/importer/sequence_builder.h"

namespace ingot::importer {

class SequenceImporter {
 public:
  SequenceImporter(BindingBuilder& builder, SequenceBuilder& sequences, LoopBuilder& loops, arith::Analyzer& analyzer)
      : builder_(builder), sequences_(sequences), loops_(loops), analyzer_(analyzer) {}

  struct Row;
  static std::vector<std::string_view> Operators();
  // Returns null for an unknown name.
  static const Row* Find(std::string_view op_type);
  // Returns the node's output.
  Result<ImportedValue> Import(const Row& row, const NodeImporter& node);

 private:
  static std::span<const Row> Rows();

  Result<ImportedValue> SequenceConstruct(const NodeImporter& node);
  Result<ImportedValue> SequenceEmpty(const NodeImporter& node);
  Result<ImportedValue> SequenceInsert(const NodeImporter& node);
  Result<ImportedValue> SequenceErase(const NodeImporter& node);
  Result<ImportedValue> SequenceAt(const NodeImporter& node);
  Result<ImportedValue> SequenceLength(const NodeImporter& node);
  Result<ImportedValue> ConcatFromSequence(const NodeImporter& node);
  Result<ImportedValue> SplitToSequence(const NodeImporter& node);
  Result<ImportedValue> Optional(const NodeImporter& node);
  Result<ImportedValue> OptionalHasElement(const NodeImporter& node);
  Result<ImportedValue> OptionalGetElement(const NodeImporter& node);

  Result<ir::Expr> Piece(const ir::Expr& tensor, int64_t axis, const ir::PrimExpr& begin, const ir::PrimExpr& end,
                         bool keeps_axis, const ir::Span& span);

  BindingBuilder& builder_;
  SequenceBuilder& sequences_;
  LoopBuilder& loops_;
  arith::Analyzer& analyzer_;
};

}  // namespace ingot::importer
