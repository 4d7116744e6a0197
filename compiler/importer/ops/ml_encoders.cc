// Encoders of labels and categories, numbers or strings: each element is looked up in a list of keys.
#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/ml.h"

namespace ingot::importer {
namespace {

struct LabelList {
  Expr elements;  // a constant of rank 1; null if the node has none
  bool are_strings = false;
};

LabelList LabelsIn(const std::vector<int64_t>& elements, bool are_strings) {
  return {ConstantOf(DataType::Int(64), {std::ssize(elements)}, elements), are_strings};
}

// LabelList of an attribute, a list or a tensor.
Result<LabelList> LabelsNamed(const NodeImporter& node, const std::string& prefix) {
  std::vector<LabelList> found;
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> strings, StringsOf(node, prefix + "_strings"));
  if (!strings.empty()) found.push_back(LabelsIn(strings, true));
  if (node.HasAttr(prefix + "_int64s")) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> ints, node.Ints(prefix + "_int64s", {}));
    if (!ints.empty()) found.push_back(LabelsIn(ints, false));
  }
  if (node.HasAttr(prefix + "_floats")) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<float> floats, FloatsOf(node, prefix + "_floats"));
    if (!floats.empty()) found.push_back({FloatConstant(floats, {std::ssize(floats)})});
  }
  if (const OnnxAttribute* tensor = node.FindAttr(prefix + "_tensor")) {
    const auto* data = std::get_if<ConstantDataPtr>(&tensor->value);
    if (data == nullptr || (*data)->dims().size() != 1) {
      return node.Unsupported("the attribute \"" + tensor->name + "\" that is no vector");
    }
    INGOT_ASSIGN_OR_RETURN(const Expr elements, Unpacked(ir::Make<ir::ConstantNode>(*data)));
    found.push_back({elements, (*data)->dtype() == kStringElement});
  }
  if (found.size() > 1) return node.Invalid("more than one list of " + prefix);
  return found.empty() ? LabelList() : found[0];
}

// What stands for a key that is not in the list, of rank 0.
Result<Expr> DefaultOf(const NodeImporter& node, const LabelList& values) {
  const DataType dtype = DTypeOf(values.elements), file = values.are_strings ? kStringElement : dtype;
  const OnnxAttribute* tensor = node.FindAttr("default_tensor");
  if (tensor == nullptr && values.are_strings) tensor = node.FindAttr("default_string");
  if (tensor != nullptr || values.are_strings) {
    const auto* data = tensor == nullptr ? nullptr : std::get_if<ConstantDataPtr>(&tensor->value);
    if (data == nullptr || (*data)->num_elements() != 1 || (*data)->dtype() != file) {
      return node.Invalid("the default: expected one element as the values are");
    }
    const std::span<const std::byte> bytes = (*data)->bytes();
    return Expr(ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(dtype, {}, {bytes.begin(), bytes.end()})));
  }
  if (dtype.is_floating()) {
    INGOT_ASSIGN_OR_RETURN(const double value, node.Float("default_float", -0.0));
    return node.Scalar(value, dtype);
  }
  INGOT_ASSIGN_OR_RETURN(const int64_t value, node.Int("default_int64", -1));
  return CastTo(node, ConstantOf<int64_t>(DataType::Int(64), {}, {value}), dtype);
}

// Whether each element [...] of x is each of the keys [count]: [..., count]. A NaN is like a NaN.
Result<Expr> IsKey(const NodeImporter& node, const Expr& x, const Expr& keys) {
  const auto axis = static_cast<int64_t>(DimsOf(x).size());
  INGOT_ASSIGN_OR_RETURN(const Expr wide, node.Bind("expand_dims", {x}, {{"axis", AttrValue::Ints({axis})}}));
  INGOT_ASSIGN_OR_RETURN(const Expr is_equal, node.Bind("equal", {wide, keys}));
  if (!DTypeOf(keys).is_floating()) return is_equal;
  INGOT_ASSIGN_OR_RETURN(const Expr x_is_nan, node.Bind("isnan", {wide}));
  INGOT_ASSIGN_OR_RETURN(const Expr key_is_nan, node.Bind("isnan", {keys}));
  INGOT_ASSIGN_OR_RETURN(const Expr are_nan, node.Bind("logical_and", {x_is_nan, key_is_nan}));
  return node.Bind("logical_or", {is_equal, are_nan});
}

// The value of the key that each element is.
Outputs LookUp(const NodeImporter& node, const LabelList& keys, const LabelList& values) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  if (keys.elements == nullptr || values.elements == nullptr) return node.Invalid("expected keys and values");
  const std::optional<int64_t> count = ir::AsConstInt(DimsOf(keys.elements)[0]);
  if (count != ir::AsConstInt(DimsOf(values.elements)[0])) return node.Invalid("expected as many values as keys");
  if (keys.are_strings != (node.PackedType(0) == kStringElement)) {
    return node.Invalid(keys.are_strings ? "keys of strings for an input of numbers"
                                         : "keys of numbers for an input of strings");
  }
  if (DTypeOf(x) != DTypeOf(keys.elements)) {
    return node.Invalid("keys of " + DTypeOf(keys.elements).ToString() + " for an input of " + DTypeOf(x).ToString());
  }
  INGOT_ASSIGN_OR_RETURN(const Expr otherwise, DefaultOf(node, values));
  if (count == 0) return One(node.Call("full", {ShapeOf(dims), otherwise}));
  const auto axis = static_cast<int64_t>(dims.size());
  INGOT_ASSIGN_OR_RETURN(Expr is_key, IsKey(node, x, keys.elements));
  INGOT_ASSIGN_OR_RETURN(is_key, CastTo(node, is_key, DataType::Int(32)));
  INGOT_ASSIGN_OR_RETURN(Expr is_known, node.Bind("max", {is_key}, {{"axis", AttrValue::Ints({axis})}}));
  INGOT_ASSIGN_OR_RETURN(is_known, CastTo(node, is_known, DataType::Bool()));
  INGOT_ASSIGN_OR_RETURN(
      const Expr place,
      Apply(node, "ArgMax", {is_key}, {AttributeOf<int64_t>("axis", axis), AttributeOf<int64_t>("keepdims", 0)}));
  INGOT_ASSIGN_OR_RETURN(const Expr value, node.Bind("take", {values.elements, place}, {{"axis", int64_t{0}}}));
  return One(node.Call("where", {is_known, value, otherwise}));
}

// Strings to these integers, or integers to strings: what the input is decides. Of equal keys the last one counts, as
// in ONNX Runtime.
Outputs LookUpEitherWay(const NodeImporter& node, std::vector<int64_t> strings, std::vector<int64_t> integers) {
  std::ranges::reverse(strings);
  std::ranges::reverse(integers);
  const LabelList texts = LabelsIn(strings, true), numbers = LabelsIn(integers, false);
  return node.PackedType(0) == kStringElement ? LookUp(node, texts, numbers) : LookUp(node, numbers, texts);
}

Outputs LabelEncoder(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> classes, StringsOf(node, "classes_strings"));
  if (!classes.empty()) {  // the first version: a string's number is its place
    std::vector<int64_t> places(classes.size());
    std::iota(places.begin(), places.end(), int64_t{0});
    return LookUpEitherWay(node, classes, std::move(places));
  }
  INGOT_ASSIGN_OR_RETURN(const LabelList keys, LabelsNamed(node, "keys"));
  INGOT_ASSIGN_OR_RETURN(const LabelList values, LabelsNamed(node, "values"));
  return LookUp(node, keys, values);
}

Outputs CategoryMapper(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> strings, StringsOf(node, "cats_strings"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> integers, node.Ints("cats_int64s", {}));
  return LookUpEitherWay(node, strings, integers);
}

// Fails when the program runs unless all elements are true.
Status DemandAll(const NodeImporter& node, const Expr& condition) {
  INGOT_ASSIGN_OR_RETURN(Expr is_false, node.Bind("logical_not", {condition}));
  INGOT_ASSIGN_OR_RETURN(is_false, CastTo(node, is_false, DataType::Int(64)));
  INGOT_ASSIGN_OR_RETURN(Expr count, node.Bind("sum", {is_false}));
  INGOT_ASSIGN_OR_RETURN(count, node.Bind("reshape", {count, ShapeOf({ir::Int64(1)})}));
  INGOT_ASSIGN_OR_RETURN(const Expr unknown, node.Bind("tensor_to_shape", {count}));
  node.Match(unknown, ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{ir::Int64(0)}));
  return Status();
}

// A column of 1 for each category that an element is; where `zeros` is 0, each element must be one.
Outputs OneHotEncoder(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> categories, node.Ints("cats_int64s", {}));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> strings, StringsOf(node, "cats_strings"));
  const bool is_text = node.PackedType(0) == kStringElement;
  if (is_text != !strings.empty() || (is_text && !categories.empty())) {
    return node.Invalid(is_text ? "strings, and categories of numbers" : "numbers, and categories of strings");
  }
  if (is_text) categories = strings;
  INGOT_ASSIGN_OR_RETURN(const int64_t zeros, node.Int("zeros", 1));
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  if (categories.empty()) return node.Invalid("expected categories");
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), DataType::Int(64)));  // a fraction has no part, as in C
  const Expr keys = ConstantOf(DataType::Int(64), {std::ssize(categories)}, categories);
  INGOT_ASSIGN_OR_RETURN(const Expr is_key, IsKey(node, x, keys));
  INGOT_ASSIGN_OR_RETURN(const Expr columns, CastTo(node, is_key, DataType::Float(32)));
  if (zeros == 0) {
    const auto axis = static_cast<int64_t>(dims.size());
    INGOT_ASSIGN_OR_RETURN(Expr is_known, node.Bind("max", {columns}, {{"axis", AttrValue::Ints({axis})}}));
    INGOT_ASSIGN_OR_RETURN(is_known, CastTo(node, is_known, DataType::Bool()));
    INGOT_RETURN_IF_ERROR(DemandAll(node, is_known));
  }
  return One(columns);
}

constexpr OnnxOpRow kEncoderRows[] = {
    {"CategoryMapper", nullptr, CategoryMapper, kMachineLearning},
    {"LabelEncoder", nullptr, LabelEncoder, kMachineLearning},
    {"OneHotEncoder", nullptr, OneHotEncoder, kMachineLearning},
};

}  // namespace

std::span<const OnnxOpRow> MlEncoderOnnxOps() { return kEncoderRows; }

}  // namespace ingot::importer
