// The list is joined from the tables that the importers use; nothing is imported here. Its words are op_forms.def's.
#include "compiler/importer/op_list.h"

#include <algorithm>

#include "compiler/importer/onnx.h"
#include "compiler/importer/onnx_ops.h"
#include "compiler/importer/report_builder.h"
#include "compiler/importer/sequences.h"
#include "compiler/importer/shape_evaluation.h"

namespace ingot::importer {

std::span<const std::string_view> ControlFlowOps() {
  static constexpr std::string_view kOps[] = {"If", "Loop", "Scan", "SequenceMap", "ai.onnx.preview.FlexAttention"};
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

std::span<const OpForms> AllOpForms() {
  static constexpr OpForms kForms[] = {
#define INGOT_OP_FORMS(name, introduced, types, limits) {name, introduced, types, limits},
#include "compiler/importer/op_forms.def"
#undef INGOT_OP_FORMS
  };
  return kForms;
}

const OpForms* FindOpForms(std::string_view name) {
  const auto found = std::ranges::find(AllOpForms(), name, &OpForms::name);
  return found == AllOpForms().end() ? nullptr : &*found;
}

std::string_view ElementTypeWords() {
  return "floats: float16 bfloat16 float32 float64\n"
         "integers: int8 int16 int32 int64 uint8 uint16 uint32 uint64\n"
         "float8: float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz float8e8m0\n"
         "packed: int2 uint2 int4 uint4 float4e2m1\n";
}

std::string TakenVersions(const OpForms& forms) {
  constexpr int64_t kMaxMlVersion = 5;
  const auto range = [](int64_t first, int64_t last) {
    return first == last ? std::to_string(first) : std::to_string(first) + " to " + std::to_string(last);
  };
  if (forms.name.starts_with("ai.onnx.ml.")) return range(forms.introduced, kMaxMlVersion);
  if (forms.name.find('.') != std::string_view::npos) return range(forms.introduced, forms.introduced);
  const int64_t first = forms.introduced < kMinOpset ? FirstOpsetOf(forms.name) : forms.introduced;
  return range(first, kMaxOpset);
}

}  // namespace ingot::importer
