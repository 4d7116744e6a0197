// The table of ONNX operators, joined from its families (ops/). The semantics are those of ONNX's operator
// documentation (docs/Operators.md, Changelog.md), for opsets 7 and later; those of other domains are what ONNX Runtime
// documents and computes.
#include "compiler/importer/onnx_ops.h"

#include <algorithm>

#include "compiler/importer/implied_dims.h"
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/util.h"
#include "runtime/check.h"

namespace ingot::importer {
namespace {

constexpr std::span<const OnnxOpRow> (*kFamilies[])() = {
    ActivationOnnxOps,     //
    AttentionOnnxOps,      //
    BlocksOnnxOps,         //
    ChannelBlockOnnxOps,   //
    ColumnOnnxOps,         //
    CompositeOnnxOps,      //
    ConvolutionOnnxOps,    //
    DeformableOnnxOps,     //
    DiffusionOnnxOps,      //
    DynamicShapeOnnxOps,   //
    EarlyOnnxOps,          //
    EinsumOnnxOps,         //
    ElementwiseOnnxOps,    //
    ExpertOnnxOps,         //
    FormOnnxOps,           //
    FusedOnnxOps,          //
    GateOnnxOps,           //
    GroupOnnxOps,          //
    HeadsOnnxOps,          //
    IndexingOnnxOps,       //
    LinearOnnxOps,         //
    LossOnnxOps,           //
    MlEncoderOnnxOps,      //
    MlFeatureOnnxOps,      //
    MlLinearOnnxOps,       //
    NgramOnnxOps,          //
    NormalizationOnnxOps,  //
    PaddingOnnxOps,        //
    PartOnnxOps,           //
    PictureOnnxOps,        //
    QLinearOnnxOps,        //
    QuantizationOnnxOps,   //
    RandomOnnxOps,         //
    RecurrentOnnxOps,      //
    ReductionOnnxOps,      //
    ResizeOnnxOps,         //
    ScoreOnnxOps,          //
    SignalOnnxOps,         //
    StreamingOnnxOps,      //
    StringOnnxOps,         //
    SvmOnnxOps,            //
    TrainingOnnxOps,       //
    TransformOnnxOps,      //
    TreeOnnxOps,           //
    VisionOnnxOps,         //
};

std::pair<std::string_view, std::string_view> KeyOf(const OnnxOpRow& row) { return {row.domain, row.op_type}; }

const std::vector<OnnxOpRow>& Rows() {
  static const std::vector<OnnxOpRow> rows = [] {
    std::vector<OnnxOpRow> all;
    for (const auto family : kFamilies) {
      const std::span<const OnnxOpRow> rows_of = family();
      all.insert(all.end(), rows_of.begin(), rows_of.end());
    }
    std::ranges::sort(all, {}, KeyOf);
    INGOT_CHECK(std::ranges::adjacent_find(all, {}, KeyOf) == all.end(), "two rows for one operator");
    return all;
  }();
  return rows;
}

}  // namespace

std::span<const OnnxOpRow> OnnxOps() { return Rows(); }

const OnnxOpRow* FindOnnxOp(std::string_view op_type, std::string_view domain) {
  const std::pair key(domain, op_type);
  const auto row = std::ranges::lower_bound(Rows(), key, {}, KeyOf);
  return row != Rows().end() && KeyOf(*row) == key ? &*row : nullptr;
}

Outputs ImportOnnxNode(const OnnxOpRow& row, const NodeImporter& node) {
  if (row.import != nullptr) {
    INGOT_ASSIGN_OR_RETURN(ImpliedInputs inputs, ImpliedInputs::Of(row.op_type, row.domain, node));
    return row.import(node.For(node.node(), node.opset(), inputs.pointers()));
  }
  std::vector<Expr> args;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr arg, node.Input(i));
    args.push_back(std::move(arg));
  }
  return One(node.Call(row.row, std::move(args)));
}

}  // namespace ingot::importer
