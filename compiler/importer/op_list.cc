// The list is joined from the tables that the importers use; nothing is imported here.
#include "compiler/importer/op_list.h"

#include <algorithm>

#include "compiler/importer/onnx_ops.h"
#include "compiler/importer/sequences.h"
#include "compiler/importer/shape_evaluation.h"

namespace ingot::importer {

std::span<const std::string_view> ControlFlowOps() {
  static constexpr std::string_view kOps[] = {"If", "Loop", "Scan", "SequenceMap",
                                               "ai.onnx.preview.FlexAttention"};
  return kOps;
}

std::vector<std::string> ImportedOps() {
  std::vector<std::string> names(ControlFlowOps().begin(), ControlFlowOps().end());
  for (const OnnxOpRow& row : OnnxOps()) {
    names.push_back(row.domain.empty() ? std::string(row.op_type)
                                       : std::string(row.domain) + "." + std::string(row.op_type));
  }
  for (const std::string_view name : SequenceImporter::Operators()) names.emplace_back(name);
  for (const shapes::Row& row : shapes::DataMovement()) {
    if (row.of_type && FindOnnxOp(row.op_type) == nullptr) names.emplace_back(row.op_type);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ingot::importer
