// What scikit-learn's pipelines do to features before and behind a model.
#include <cmath>

#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/ml.h"

namespace ingot::importer {
namespace {

// Returns numbers for each column, or one for all.
Expr PerColumn(const std::vector<float>& values) {
  if (values.size() == 1) return FloatConstant(values, {});
  return FloatConstant(values, {std::ssize(values)});
}

// Returns features that have as many columns as there are numbers, unless one number is for all.
Result<Expr> ColumnsFor(const NodeImporter& node, Expr x, const std::vector<float>& values) {
  if (values.size() == 1) return x;
  return WithColumns(node, std::move(x), std::ssize(values));
}

Result<Expr> FloatInput(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  if (dims.empty()) return node.Invalid("expected a rank of 1 or more");
  return CastTo(node, std::move(x), DataType::Float(32));
}

// (x - offset) * scale.
Outputs Scaler(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, FloatInput(node));
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> offsets, FloatsOf(node, "offset"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> scales, FloatsOf(node, "scale"));
  INGOT_RETURN_IF_ERROR(CheckLength(node, "scale", scales.size(), offsets.size()));
  INGOT_ASSIGN_OR_RETURN(x, ColumnsFor(node, std::move(x), offsets));
  INGOT_ASSIGN_OR_RETURN(const Expr shifted, node.Bind("subtract", {x, PerColumn(offsets)}));
  return One(node.Call("multiply", {shifted, PerColumn(scales)}));
}

// Divides each row by its norm; a row of the norm 0 stays as it is. The greatest element is a norm as it is, not its
// absolute value.
Outputs Normalizer(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, FloatInput(node));
  INGOT_ASSIGN_OR_RETURN(const std::string norm, node.String("norm", "MAX"));
  const ir::Attrs along = {{"axis", AttrValue::Ints({-1})}, {"keepdims", true}};
  if (DimsOf(x).size() > 2) return node.Invalid("expected a vector or a matrix");
  Expr size;
  if (norm == "MAX") {
    INGOT_ASSIGN_OR_RETURN(size, node.Bind("max", {x}, along));
  } else if (norm == "L1") {
    INGOT_ASSIGN_OR_RETURN(const Expr positive, node.Bind("abs", {x}));
    INGOT_ASSIGN_OR_RETURN(size, node.Bind("sum", {positive}, along));
  } else if (norm == "L2") {
    INGOT_ASSIGN_OR_RETURN(const Expr squares, node.Bind("multiply", {x, x}));
    INGOT_ASSIGN_OR_RETURN(const Expr sum, node.Bind("sum", {squares}, along));
    INGOT_ASSIGN_OR_RETURN(size, node.Bind("sqrt", {sum}));
  } else {
    return node.Invalid("norm is \"" + norm + "\"");
  }
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, DataType::Float(32)));
  INGOT_ASSIGN_OR_RETURN(const Expr one, node.Scalar(1, DataType::Float(32)));
  INGOT_ASSIGN_OR_RETURN(const Expr is_zero, node.Bind("equal", {size, zero}));
  INGOT_ASSIGN_OR_RETURN(const Expr divisor, node.Bind("where", {is_zero, one, size}));
  return One(node.Call("divide", {x, divisor}));
}

Outputs Binarizer(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, FloatInput(node));
  INGOT_ASSIGN_OR_RETURN(const double threshold, node.Float("threshold", 0));
  INGOT_ASSIGN_OR_RETURN(const Expr limit, node.Scalar(threshold, DataType::Float(32)));
  INGOT_ASSIGN_OR_RETURN(const Expr is_above, node.Bind("greater", {x, limit}));
  return One(CastTo(node, is_above, DataType::Float(32)));
}

// Elements that equal the replaced value (or are NaN, if that is) become those that are given.
Outputs Imputer(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  if (*type->dtype != DataType::Float(32)) return node.Unsupported("features that are not float32");
  INGOT_ASSIGN_OR_RETURN(Expr x, FloatInput(node));
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> imputed, FloatsOf(node, "imputed_value_floats"));
  INGOT_ASSIGN_OR_RETURN(const double replaced, node.Float("replaced_value_float", 0));
  INGOT_ASSIGN_OR_RETURN(x, ColumnsFor(node, std::move(x), imputed));
  Expr is_replaced;
  if (std::isnan(replaced)) {
    INGOT_ASSIGN_OR_RETURN(is_replaced, node.Bind("isnan", {x}));
  } else {
    INGOT_ASSIGN_OR_RETURN(const Expr scalar, node.Scalar(replaced, DataType::Float(32)));
    INGOT_ASSIGN_OR_RETURN(is_replaced, node.Bind("equal", {x, scalar}));
  }
  return One(node.Call("where", {is_replaced, PerColumn(imputed), x}));
}

// Columns by their numbers; a vector is one row.
Outputs ArrayFeatureExtractor(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(Expr columns, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> which, StaticRankDims(node, 1));
  if (dims.empty()) return node.Invalid("expected a rank of 1 or more");
  if (dims.size() == 1) {
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf({ir::Int64(1), dims[0]})}));
  }
  INGOT_ASSIGN_OR_RETURN(columns, node.Bind("reshape", {columns, ShapeOf({Product(which)})}));
  return One(Apply(node, "Gather", {x, columns}, {AttributeOf<int64_t>("axis", -1)}));
}

Outputs FeatureVectorizer(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths,
                         node.Ints("inputdimensions", {}, static_cast<int64_t>(node.num_inputs())));
  std::vector<Expr> parts;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr rows, Rows(node, i));
    const std::optional<int64_t> known = ir::AsConstInt(DimsOf(rows).back());
    if (known && known != lengths[i]) return node.Unsupported("inputdimensions that are not the inputs' lengths");
    INGOT_ASSIGN_OR_RETURN(rows, WithColumns(node, std::move(rows), lengths[i]));
    parts.push_back(rows);
  }
  if (parts.empty()) return node.Invalid("expected an input");
  return One(Apply(node, "Concat", parts, {AttributeOf<int64_t>("axis", -1)}));
}

// The probabilities as they are, a column for each of the labels in order: a map for each row has no tensor.
Outputs ZipMap(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> labels, ClassLabels(node, "classlabels_int64s"));
  INGOT_ASSIGN_OR_RETURN(const Expr x, Rows(node, 0));
  return One(WithColumns(node, x, std::ssize(labels)));
}

constexpr OnnxOpRow kMlFeatureRows[] = {
    {"ArrayFeatureExtractor", nullptr, ArrayFeatureExtractor, kMachineLearning},
    {"Binarizer", nullptr, Binarizer, kMachineLearning},
    {"FeatureVectorizer", nullptr, FeatureVectorizer, kMachineLearning},
    {"Imputer", nullptr, Imputer, kMachineLearning},
    {"Normalizer", nullptr, Normalizer, kMachineLearning},
    {"Scaler", nullptr, Scaler, kMachineLearning},
    {"ZipMap", nullptr, ZipMap, kMachineLearning},
};

}  // namespace

std::span<const OnnxOpRow> MlFeatureOnnxOps() { return kMlFeatureRows; }

}  // namespace ingot::importer
