// The table of ONNX operators, joined from its families (ops/). The semantics are those of ONNX's operator
// documentation (docs/Operators.md, Changelog.md), for opsets 7 and later.
#include "compiler/importer/onnx_ops.h"

#include <algorithm>

#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/util.h"
#include "runtime/check.h"

namespace ingot::importer {
namespace {

constexpr std::span<const OnnxOpRow> (*kFamilies[])() = {
    ActivationOnnxOps,     //
    AttentionOnnxOps,      //
    CompositeOnnxOps,      //
    ConvolutionOnnxOps,    //
    DynamicShapeOnnxOps,   //
    EinsumOnnxOps,         //
    ElementwiseOnnxOps,    //
    IndexingOnnxOps,       //
    LinearOnnxOps,         //
    LossOnnxOps,           //
    NormalizationOnnxOps,  //
    PaddingOnnxOps,        //
    QuantizationOnnxOps,   //
    RecurrentOnnxOps,      //
    ReductionOnnxOps,      //
    ResizeOnnxOps,         //
    StreamingOnnxOps,      //
    TransformOnnxOps,      //
    VisionOnnxOps,         //
};

const std::vector<OnnxOpRow>& Rows() {
  static const std::vector<OnnxOpRow> rows = [] {
    std::vector<OnnxOpRow> all;
    for (const auto family : kFamilies) {
      const std::span<const OnnxOpRow> rows_of = family();
      all.insert(all.end(), rows_of.begin(), rows_of.end());
    }
    std::sort(all.begin(), all.end(), [](const OnnxOpRow& a, const OnnxOpRow& b) { return a.op_type < b.op_type; });
    for (size_t i = 1; i < all.size(); ++i) {
      INGOT_CHECK(all[i - 1].op_type != all[i].op_type, "two rows for one operator");
    }
    return all;
  }();
  return rows;
}

}  // namespace

std::span<const OnnxOpRow> OnnxOps() { return Rows(); }

const OnnxOpRow* FindOnnxOp(std::string_view op_type) {
  const auto row = std::lower_bound(Rows().begin(), Rows().end(), op_type,
                                    [](const OnnxOpRow& r, std::string_view name) { return r.op_type < name; });
  return row != Rows().end() && row->op_type == op_type ? &*row : nullptr;
}

Outputs ImportOnnxNode(const OnnxOpRow& row, const NodeImporter& node) {
  if (row.import != nullptr) return row.import(node);
  std::vector<Expr> args;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr arg, node.Input(i));
    args.push_back(std::move(arg));
  }
  return One(node.Call(row.row, std::move(args)));
}

}  // namespace ingot::importer
