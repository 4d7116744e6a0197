// What the importers of ai.onnx.ml share: attributes, labels and what becomes of scores. The semantics are those of
// ONNX's Operators-ml.md; where it leaves something open, what ONNX Runtime computes.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/importer/ops/contrib.h"
#include "compiler/importer/ops/util.h"

namespace ingot::importer {

// The domain of what scikit-learn's converters write.
inline constexpr std::string_view kMachineLearning = "ai.onnx.ml";

// Returns the numbers of an attribute, none if it is left out.
Result<std::vector<float>> FloatsOf(const NodeImporter& node, std::string_view name);
// Returns the numbers of an attribute, or of the tensor NAME_as_tensor, whose dtype must then be this one.
Result<std::vector<double>> DoublesOf(const NodeImporter& node, const std::string& name, DataType dtype);
// Returns an attribute that is a tensor of rank 1 in this dtype, of which the elements are T; none if it is left out.
template <typename T>
Result<std::vector<T>> VectorOf(const NodeImporter& node, const std::string& name, DataType dtype) {
  const OnnxAttribute* attribute = node.FindAttr(name);
  if (attribute == nullptr) return std::vector<T>();
  const auto* data = std::get_if<ConstantDataPtr>(&attribute->value);
  if (data == nullptr || (*data)->dims().size() != 1) {
    return node.Invalid("attribute \"" + name + "\": expected a tensor of rank 1");
  }
  if ((*data)->dtype() != dtype) {
    return node.Unsupported("the attribute \"" + name + "\" of " + (*data)->dtype().ToString());
  }
  const std::span<const std::byte> bytes = (*data)->bytes();
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}
// Returns such a tensor of float32 or float64.
Result<std::vector<double>> TensorNumbers(const NodeImporter& node, const std::string& name, DataType dtype);
// Returns the strings of an attribute as their places in the model's table, none if it is left out.
Result<std::vector<int64_t>> StringsOf(const NodeImporter& node, const std::string& name);
// Returns the labels of a classifier: the integers of one attribute or classlabels_strings, of which only one may have
// elements.
Result<std::vector<int64_t>> ClassLabels(const NodeImporter& node, std::string_view integers);
// An error unless the attribute has as many elements as it must have.
Status CheckLength(const NodeImporter& node, std::string_view name, size_t length, size_t expected);
Expr FloatConstant(const std::vector<float>& values, std::vector<int64_t> dims);
// Returns a constant of float32 or float64.
Expr NumberConstant(DataType dtype, const std::vector<double>& values, std::vector<int64_t> dims);
// Returns an input in this dtype, of rank 2, in which a vector is one row.
Result<Expr> Rows(const NodeImporter& node, size_t input, DataType dtype = DataType::Float(32));
// Returns features, rank 1 or more, whose last dim must be this long; one that only run time knows is compared there.
Result<Expr> WithColumns(const NodeImporter& node, Expr features, int64_t columns);

// What an attribute post_transform, or the transform of this name, makes of scores [n, classes].
Result<Expr> PostTransform(const NodeImporter& node, Expr scores);
Result<Expr> PostTransformNamed(const NodeImporter& node, const std::string& name, Expr scores);
// Returns the labels of classes, int64 [n]: these of ClassLabels, by indices of classes.
Result<Expr> LabelsOf(const NodeImporter& node, const std::vector<int64_t>& labels, Expr classes);
// Returns the place of the greatest score of each row, int64 [n].
Result<Expr> BestClass(const NodeImporter& node, const Expr& scores);
// Returns a value beside another along the last axis.
Result<Expr> Beside(const NodeImporter& node, const Expr& a, const Expr& b);

}  // namespace ingot::importer
