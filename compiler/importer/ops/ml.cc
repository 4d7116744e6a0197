// Attributes, labels and scores of ai.onnx.ml.
#include "compiler/importer/ops/ml.h"

namespace ingot::importer {
namespace {

// As ONNX Runtime has it: scores of about 0 have no part in the sum, and stand for themselves instead of for their
// exponentials.
Result<Expr> SoftmaxOfNonZeros(const NodeImporter& node, const Expr& scores) {
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, DTypeOf(scores)));
  INGOT_ASSIGN_OR_RETURN(const Expr tiny, node.Scalar(1e-7f, DTypeOf(scores)));
  INGOT_ASSIGN_OR_RETURN(const Expr greatest,
                         node.Bind("max", {scores}, {{"axis", AttrValue::Ints({1})}, {"keepdims", true}}));
  INGOT_ASSIGN_OR_RETURN(Expr shifted, node.Bind("subtract", {scores, greatest}));
  INGOT_ASSIGN_OR_RETURN(shifted, node.Bind("exp", {shifted}));
  INGOT_ASSIGN_OR_RETURN(Expr size, node.Bind("abs", {scores}));
  INGOT_ASSIGN_OR_RETURN(const Expr counts, node.Bind("greater", {size, tiny}));
  INGOT_ASSIGN_OR_RETURN(const Expr parts, node.Bind("where", {counts, shifted, zero}));
  INGOT_ASSIGN_OR_RETURN(const Expr sum,
                         node.Bind("sum", {parts}, {{"axis", AttrValue::Ints({1})}, {"keepdims", true}}));
  INGOT_ASSIGN_OR_RETURN(const Expr below, node.Bind("subtract", {zero, greatest}));
  INGOT_ASSIGN_OR_RETURN(const Expr scale, node.Bind("exp", {below}));
  INGOT_ASSIGN_OR_RETURN(const Expr small, node.Bind("multiply", {scores, scale}));
  INGOT_ASSIGN_OR_RETURN(const Expr shares, node.Bind("where", {counts, shifted, small}));
  return node.Bind("divide", {shares, sum});
}

}  // namespace

Result<std::vector<float>> FloatsOf(const NodeImporter& node, std::string_view name) {
  const OnnxAttribute* attribute = node.FindAttr(name);
  if (attribute == nullptr) return std::vector<float>();
  if (const auto* values = std::get_if<std::vector<float>>(&attribute->value)) return *values;
  const auto* ints = std::get_if<std::vector<int64_t>>(&attribute->value);
  if (ints != nullptr && ints->empty()) return std::vector<float>();
  return node.Invalid("attribute \"" + std::string(name) + "\": expected floats");
}

Result<std::vector<double>> DoublesOf(const NodeImporter& node, const std::string& name, DataType dtype) {
  const OnnxAttribute* attribute = node.FindAttr(name + "_as_tensor");
  if (attribute == nullptr) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<float> given, FloatsOf(node, name));
    return std::vector<double>(given.begin(), given.end());
  }
  if (node.FindAttr(name) != nullptr) return node.Invalid("\"" + name + "\" is given twice");
  return TensorNumbers(node, name + "_as_tensor", dtype);
}

Result<std::vector<double>> TensorNumbers(const NodeImporter& node, const std::string& name, DataType dtype) {
  if (dtype == DataType::Float(32)) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<float> given, VectorOf<float>(node, name, dtype));
    return std::vector<double>(given.begin(), given.end());
  }
  return VectorOf<double>(node, name, dtype);
}

Result<std::vector<int64_t>> StringsOf(const NodeImporter& node, const std::string& name) {
  return VectorOf<int64_t>(node, name, kStringElement);
}

Result<std::vector<int64_t>> ClassLabels(const NodeImporter& node, std::string_view integers) {
  INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> labels, node.Ints(integers, {}));
  INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> strings, StringsOf(node, "classlabels_strings"));
  if (strings.empty()) return labels;
  if (!labels.empty()) return node.Invalid("labels that are integers and labels that are strings");
  return strings;
}

Status CheckLength(const NodeImporter& node, std::string_view name, size_t length, size_t expected) {
  if (length == expected) return Status();
  return node.Invalid("attribute \"" + std::string(name) + "\": expected " + std::to_string(expected) +
                      " elements, got " + std::to_string(length));
}

Expr FloatConstant(const std::vector<float>& values, std::vector<int64_t> dims) {
  return ConstantOf(DataType::Float(32), std::move(dims), values);
}

Expr NumberConstant(DataType dtype, const std::vector<double>& values, std::vector<int64_t> dims) {
  if (dtype == DataType::Float(64)) return ConstantOf(dtype, std::move(dims), values);
  return FloatConstant(std::vector<float>(values.begin(), values.end()), std::move(dims));
}

Result<Expr> Rows(const NodeImporter& node, size_t input, DataType dtype) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, input));
  if (dims.empty() || dims.size() > 2) {
    return node.Invalid("expected a vector or a matrix, got rank " + std::to_string(dims.size()));
  }
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), dtype));
  if (dims.size() == 2) return x;
  return node.Bind("reshape", {std::move(x), ShapeOf({ir::Int64(1), dims[0]})});
}

Result<Expr> WithColumns(const NodeImporter& node, Expr features, int64_t columns) {
  std::vector<PrimExpr> dims = DimsOf(features);
  const std::optional<int64_t> known = ir::AsConstInt(dims.back());
  if (known == columns) return features;
  if (known) {
    return node.Invalid("expected " + std::to_string(columns) + " features, got " + std::to_string(*known));
  }
  dims.back() = ir::Int64(columns);
  const DataType dtype = DTypeOf(features);
  return node.Match(std::move(features), ir::Make<ir::TensorTypeNode>(std::move(dims), dtype));
}

Result<Expr> PostTransform(const NodeImporter& node, Expr scores) {
  INGOT_ASSIGN_OR_RETURN(const std::string name, node.String("post_transform", "NONE"));
  return PostTransformNamed(node, name, std::move(scores));
}

Result<Expr> PostTransformNamed(const NodeImporter& node, const std::string& name, Expr scores) {
  if (name == "NONE") return scores;
  if (name == "LOGISTIC") return node.Bind("sigmoid", {std::move(scores)});
  if (name == "SOFTMAX") return node.Bind("nn.softmax", {std::move(scores)}, {{"axis", int64_t{1}}});
  if (name == "SOFTMAX_ZERO") return SoftmaxOfNonZeros(node, scores);
  return node.Unsupported("post_transform \"" + name + "\"");
}

Result<Expr> LabelsOf(const NodeImporter& node, const std::vector<int64_t>& labels, Expr classes) {
  const Expr table = ConstantOf(DataType::Int(64), {static_cast<int64_t>(labels.size())}, labels);
  return node.Bind("take", {table, std::move(classes)}, {{"axis", int64_t{0}}});
}

Result<Expr> BestClass(const NodeImporter& node, const Expr& scores) {
  return Apply(node, "ArgMax", {scores}, {AttributeOf<int64_t>("axis", 1), AttributeOf<int64_t>("keepdims", 0)});
}

Result<Expr> Beside(const NodeImporter& node, const Expr& a, const Expr& b) {
  return Apply(node, "Concat", {a, b}, {AttributeOf<int64_t>("axis", -1)});
}

}  // namespace ingot::importer
