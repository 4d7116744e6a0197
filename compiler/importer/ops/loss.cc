// Losses over classes: negative log likelihood and softmax cross entropy, as calls of arithmetic operators. The score
// of the target class is selected by comparing the target with every class, so that no index can be out of bounds.
#include "compiler/importer/ops/families.h"

#include "compiler/importer/build.h"
#include "compiler/importer/ops/util.h"

namespace ingot::importer {
namespace {

// Returns 0, 1, ... of shape [1, count, 1, ...] of this rank.
Result<Expr> Classes(const NodeImporter& node, const PrimExpr& count, size_t rank, DataType dtype) {
  INGOT_ASSIGN_OR_RETURN(
      const Expr classes,
      node.Bind("arange", {Number(ir::Int64(0)), Number(count), Number(ir::Int64(1))}, {{"dtype", dtype}}));
  std::vector<PrimExpr> dims(rank, ir::Int64(1));
  dims[1] = count;
  return node.Bind("reshape", {classes, ShapeOf(dims)});
}

// Returns the loss of log likelihoods [n, classes, ...] (bound) for the target at input 1 and the weights at input 2.
Outputs Loss(const NodeImporter& node, const Expr& likelihood) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* target_type, node.InputType(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(const std::string reduction, node.String("reduction", "mean"));
  if (dims.size() < 2) return node.Invalid("expected a rank of 2 or more, got " + std::to_string(dims.size()));
  const DataType dtype = *type->dtype;
  std::vector<PrimExpr> places = dims;
  places.erase(places.begin() + 1);
  INGOT_ASSIGN_OR_RETURN(const Expr target, InputOfDims(node, 1, places));

  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, dtype));
  INGOT_ASSIGN_OR_RETURN(const Expr classes, Classes(node, dims[1], dims.size(), *target_type->dtype));
  INGOT_ASSIGN_OR_RETURN(const Expr wanted, node.Bind("expand_dims", {target}, {{"axis", AttrValue::Ints({1})}}));
  INGOT_ASSIGN_OR_RETURN(Expr chosen, node.Bind("equal", {wanted, classes}));
  INGOT_ASSIGN_OR_RETURN(const int64_t ignored, node.Int("ignore_index", 0));
  const bool is_target = *target_type->dtype != DataType::Int(32) || static_cast<int32_t>(ignored) == ignored;
  const bool ignores = node.HasAttr("ignore_index") && is_target;
  if (ignores) {
    INGOT_ASSIGN_OR_RETURN(const Expr index, node.Scalar(ignored, *target_type->dtype));
    INGOT_ASSIGN_OR_RETURN(const Expr counts, node.Bind("not_equal", {wanted, index}));
    INGOT_ASSIGN_OR_RETURN(chosen, node.Bind("logical_and", {chosen, counts}));
  }
  const ir::Attrs over_classes = {{"axis", AttrValue::Ints({1})}};
  // The weight of each place: that of its class, 1 without weights, 0 where the target is ignored.
  Expr weight;
  if (node.HasInput(2) || ignores) {
    Expr weights;
    if (node.HasInput(2)) {
      INGOT_ASSIGN_OR_RETURN(weights, PerChannel(node, 2, dims[1]));
      std::vector<PrimExpr> spread(dims.size(), ir::Int64(1));
      spread[1] = dims[1];
      INGOT_ASSIGN_OR_RETURN(weights, node.Bind("reshape", {weights, ShapeOf(spread)}));
    } else {
      INGOT_ASSIGN_OR_RETURN(weights, node.Scalar(1, dtype));
    }
    INGOT_ASSIGN_OR_RETURN(weight, node.Bind("where", {chosen, weights, zero}));
    INGOT_ASSIGN_OR_RETURN(weight, node.Bind("sum", {weight}, over_classes));
  }
  INGOT_ASSIGN_OR_RETURN(Expr loss, node.Bind("where", {chosen, likelihood, zero}));
  INGOT_ASSIGN_OR_RETURN(loss, node.Bind("sum", {loss}, over_classes));
  if (weight != nullptr) {
    INGOT_ASSIGN_OR_RETURN(loss, node.Bind("multiply", {loss, weight}));
  }
  if (reduction == "none") return One(node.Call("negative", {loss}));
  INGOT_ASSIGN_OR_RETURN(loss, node.Bind("negative", {loss}));
  if (reduction == "sum") return One(node.Call("sum", {loss}));
  if (reduction != "mean") return node.Invalid("reduction is \"" + reduction + "\"");
  if (weight == nullptr) return One(node.Call("mean", {loss}));
  INGOT_ASSIGN_OR_RETURN(loss, node.Bind("sum", {loss}));
  INGOT_ASSIGN_OR_RETURN(weight, node.Bind("sum", {weight}));
  return One(node.Call("divide", {loss, weight}));
}

Outputs NegativeLogLikelihoodLoss(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  return Loss(node, x);
}

// The second output is the logarithm of the softmax.
Outputs SoftmaxCrossEntropyLoss(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr likelihood, node.Bind("nn.log_softmax", {x}, {{"axis", int64_t{1}}}));
  INGOT_ASSIGN_OR_RETURN(std::vector<Expr> outputs, Loss(node, likelihood));
  if (node.node().outputs.size() > 1) outputs.push_back(likelihood);
  return outputs;
}

constexpr OnnxOpRow kLossRows[] = {
    {"NegativeLogLikelihoodLoss", nullptr, NegativeLogLikelihoodLoss},
    {"SoftmaxCrossEntropyLoss", nullptr, SoftmaxCrossEntropyLoss},
};

}  // namespace

std::span<const OnnxOpRow> LossOnnxOps() { return kLossRows; }

}  // namespace ingot::importer
