// Linear models: products with constant matrices.
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/ml.h"

namespace ingot::importer {
namespace {

// x [n, columns] times the transposed rows [count, columns].
Result<Expr> TimesRows(const NodeImporter& node, const Expr& x, const std::vector<float>& rows, int64_t columns) {
  const auto count = static_cast<int64_t>(rows.size()) / columns;
  INGOT_ASSIGN_OR_RETURN(const Expr turned, node.Bind("permute_dims", {FloatConstant(rows, {count, columns})},
                                                      {{"axes", AttrValue::Ints({1, 0})}}));
  return node.Bind("matmul", {x, turned});
}

// coefficients * x + intercepts, [n, count].
Result<Expr> LinearScores(const NodeImporter& node, int64_t count) {
  INGOT_ASSIGN_OR_RETURN(Expr x, Rows(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> coefficients, FloatsOf(node, "coefficients"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> intercepts, FloatsOf(node, "intercepts"));
  const auto size = static_cast<int64_t>(coefficients.size());
  if (count < 1 || size < 1 || size % count != 0) {
    return node.Invalid("attribute \"coefficients\": " + std::to_string(size) + " elements for " +
                        std::to_string(count) + " scores");
  }
  const int64_t columns = size / count;
  INGOT_ASSIGN_OR_RETURN(x, WithColumns(node, std::move(x), columns));
  INGOT_ASSIGN_OR_RETURN(Expr scores, TimesRows(node, x, coefficients, columns));
  if (intercepts.empty()) return scores;
  INGOT_RETURN_IF_ERROR(CheckLength(node, "intercepts", intercepts.size(), static_cast<size_t>(count)));
  return node.Bind("add", {scores, FloatConstant(intercepts, {count})});
}

Outputs LinearRegressor(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const int64_t targets, node.Int("targets", 1));
  INGOT_ASSIGN_OR_RETURN(Expr scores, LinearScores(node, targets));
  return One(PostTransform(node, std::move(scores)));
}

Outputs LinearClassifier(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> labels, ClassLabels(node, "classlabels_ints"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> coefficients, FloatsOf(node, "coefficients"));
  INGOT_ASSIGN_OR_RETURN(const Expr x, Rows(node, 0));
  if (labels.size() == 1 || ir::AsConstInt(DimsOf(x)[1]) == std::ssize(coefficients)) {
    return node.Unsupported("the coefficients of one class");
  }
  INGOT_ASSIGN_OR_RETURN(Expr scores, LinearScores(node, std::ssize(labels)));
  INGOT_ASSIGN_OR_RETURN(const Expr best, BestClass(node, scores));
  INGOT_ASSIGN_OR_RETURN(const Expr label, LabelsOf(node, labels, best));
  INGOT_ASSIGN_OR_RETURN(scores, PostTransform(node, std::move(scores)));
  return std::vector<Expr>{label, scores};
}

constexpr OnnxOpRow kMlLinearRows[] = {
    {"LinearClassifier", nullptr, LinearClassifier, kMachineLearning},
    {"LinearRegressor", nullptr, LinearRegressor, kMachineLearning},
};

}  // namespace

std::span<const OnnxOpRow> MlLinearOnnxOps() { return kMlLinearRows; }

}  // namespace ingot::importer
