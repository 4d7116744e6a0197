// Packing at the borders is a view of the packed tensor as bytes and one operator; inside, a table says which operators
// take such elements.
#include "compiler/importer/packed_values.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/ml.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"
#include "compiler/op/names.h"
#include "compiler/op/packed_elements.h"
#include "compiler/op/registry.h"

namespace ingot::importer {

using ir::Expr;
using ir::PrimExpr;

namespace {

// How an operator of ONNX treats such elements.
enum class Treats : uint8_t {
  kMoves,     // its outputs have elements of the first input (of the second one: kChooses)
  kChooses,   // Where
  kConverts,  // its attributes or another input say what the output is
  kLabels,    // as kConverts: an output is what LabelLists say
};
enum class Takes : uint8_t { kNone, kPacked, kStrings, kBoth };
struct PackedRow {
  std::string_view op_type;
  Treats treats;
  Takes takes;
  std::string_view domain = {};
};
constexpr PackedRow kPackedRows[] = {
    {"BitCast", Treats::kConverts, Takes::kPacked},
    {"Cast", Treats::kConverts, Takes::kBoth},  // strings to strings
    {"CastLike", Treats::kConverts, Takes::kPacked},
    {"CenterCropPad", Treats::kMoves, Takes::kPacked},
    {"Compress", Treats::kMoves, Takes::kBoth},
    {"Concat", Treats::kMoves, Takes::kBoth},
    {"Constant", Treats::kConverts, Takes::kBoth},
    {"ConstantOfShape", Treats::kConverts, Takes::kPacked},
    {"DepthToSpace", Treats::kMoves, Takes::kBoth},
    {"DequantizeLinear", Treats::kConverts, Takes::kPacked},
    {"Equal", Treats::kConverts, Takes::kStrings},
    {"Expand", Treats::kMoves, Takes::kBoth},
    {"Flatten", Treats::kMoves, Takes::kBoth},
    {"Gather", Treats::kMoves, Takes::kBoth},
    {"GatherElements", Treats::kMoves, Takes::kBoth},
    {"GatherND", Treats::kMoves, Takes::kBoth},
    {"Identity", Treats::kMoves, Takes::kBoth},
    {"Pad", Treats::kMoves, Takes::kPacked},
    {"QuantizeLinear", Treats::kConverts, Takes::kPacked},
    {"Reshape", Treats::kMoves, Takes::kBoth},
    {"ReverseSequence", Treats::kMoves, Takes::kBoth},
    {"ScatterElements", Treats::kMoves, Takes::kBoth},
    {"ScatterND", Treats::kMoves, Takes::kBoth},
    {"Shape", Treats::kConverts, Takes::kBoth},
    {"Size", Treats::kConverts, Takes::kBoth},
    {"Slice", Treats::kMoves, Takes::kBoth},
    {"SpaceToDepth", Treats::kMoves, Takes::kBoth},
    {"Split", Treats::kMoves, Takes::kBoth},
    {"Squeeze", Treats::kMoves, Takes::kBoth},
    {"StringNormalizer", Treats::kMoves, Takes::kStrings},
    {"TfIdfVectorizer", Treats::kConverts, Takes::kStrings},
    {"Tile", Treats::kMoves, Takes::kBoth},
    {"Transpose", Treats::kMoves, Takes::kBoth},
    {"Trilu", Treats::kMoves, Takes::kPacked},
    {"Unsqueeze", Treats::kMoves, Takes::kBoth},
    {"Where", Treats::kChooses, Takes::kBoth},
    {"DequantizeLinear", Treats::kConverts, Takes::kPacked, "com.microsoft"},
    {"GatherBlockQuantized", Treats::kConverts, Takes::kPacked, "com.microsoft"},
    {"QuantizeLinear", Treats::kConverts, Takes::kPacked, "com.microsoft"},
    {"ArrayFeatureExtractor", Treats::kMoves, Takes::kStrings, kMachineLearning},
    {"CategoryMapper", Treats::kLabels, Takes::kStrings, kMachineLearning},
    {"LabelEncoder", Treats::kLabels, Takes::kStrings, kMachineLearning},
    {"LinearClassifier", Treats::kLabels, Takes::kNone, kMachineLearning},
    {"OneHotEncoder", Treats::kConverts, Takes::kStrings, kMachineLearning},
    {"SVMClassifier", Treats::kLabels, Takes::kNone, kMachineLearning},
    {"TreeEnsembleClassifier", Treats::kLabels, Takes::kNone, kMachineLearning},
};

const PackedRow* FindPackedRow(const OnnxNode& node) {
  const auto row = std::ranges::find_if(kPackedRows, [&](const PackedRow& candidate) {
    return candidate.op_type == node.op_type && candidate.domain == node.domain;
  });
  return row == std::end(kPackedRows) ? nullptr : row;
}

bool IsString(const std::optional<DataType>& dtype) { return dtype == kStringElement; }

Status CheckTaken(const NodeImporter& node, const PackedRow* row, DataType packed) {
  const bool is_string = IsString(packed);
  const std::string what = is_string ? "strings" : "elements of " + packed.ToString();
  const Takes other = is_string ? Takes::kPacked : Takes::kStrings;
  if (row == nullptr || row->takes == Takes::kNone || row->takes == other) return node.Unsupported(what);
  if (row->op_type.starts_with("Scatter")) {  // which joins elements by arithmetic, or by comparing them
    INGOT_ASSIGN_OR_RETURN(const std::string reduction, node.String("reduction", "none"));
    const bool is_moved = reduction == "none" || (!is_string && (reduction == "max" || reduction == "min"));
    return is_moved ? Status() : node.Unsupported("reduction \"" + reduction + "\" of " + what);
  }
  if (!is_string || row->op_type != "Cast") return Status();
  INGOT_ASSIGN_OR_RETURN(const int64_t to, node.Int("to", 0));
  return FindOnnxDataType(to) == kStringElement ? Status() : node.Unsupported("strings as numbers");
}

// Whether an output of an encoder or a classifier has strings: its values or labels are.
bool GivesStrings(const NodeImporter& node) {
  const bool from_strings = IsString(node.PackedType(0));
  for (const std::string_view list :
       {"values_strings", "values_tensor", "classlabels_strings", "classes_strings", "cats_strings"}) {
    const OnnxAttribute* attribute = node.FindAttr(list);
    const auto* data = attribute == nullptr ? nullptr : std::get_if<ConstantDataPtr>(&attribute->value);
    const bool is_map = list == "classes_strings" || list == "cats_strings";  // to numbers, too
    if (data == nullptr || (*data)->dtype() != kStringElement || (*data)->num_elements() == 0) continue;
    if (!is_map || !from_strings) return true;
  }
  return false;
}

// Nothing for a number that stands for no supported dtype.
std::optional<DataType> DataTypeOf(int64_t number) {
  const Result<DataType> dtype = OnnxDataType(number);
  return dtype.ok() ? std::optional(*dtype) : std::nullopt;
}

}  // namespace

DataType HeldDataType(DataType file) {
  if (file == kStringElement) return DataType::Int(64);
  return op::IsPackedElement(file) ? op::ByteDataType(file) : file;
}

bool IsHeldOtherwise(DataType file) { return HeldDataType(file) != file; }

Result<ImportedValue> ValueOfConstant(ConstantDataPtr data, const std::string& name) {
  const std::optional<DataType> packed = IsHeldOtherwise(data->dtype()) ? std::optional(data->dtype()) : std::nullopt;
  Expr constant = ir::Make<ir::ConstantNode>(std::move(data), name);
  if (packed) {
    INGOT_ASSIGN_OR_RETURN(constant, Unpacked(std::move(constant)));
  }
  ir::Type type = constant->type;
  return ImportedValue{.expr = std::move(constant), .type = std::move(type), .packed = packed};
}

Result<Expr> UnpackElements(BindingBuilder& builder, const Expr& packed, const ir::Span& span) {
  const auto* type = KnownTensor(packed->type);
  const DataType dtype = *type->dtype, bytes = DataType::UInt(8);
  const PrimExpr count = Product(*type->dims);
  const int64_t per_byte = 8 / dtype.bits;
  const PrimExpr num_bytes = op::SimplifyDim(ir::FloorDiv(count + ir::Int64(per_byte - 1), ir::Int64(per_byte)));
  const Expr as_bytes = ir::Make<ir::DataTypeValueNode>(bytes);
  INGOT_ASSIGN_OR_RETURN(
      Expr x, builder.BindCall(op::names::kMemoryBitcast, {packed, ShapeOf({num_bytes}), as_bytes}, {}, span));
  INGOT_ASSIGN_OR_RETURN(x, builder.BindCall("unpack_bits", {x, ShapeOf({count})}, {{"dtype", dtype}}, span));
  if (type->rank == 1) return x;
  return builder.BindCall("reshape", {x, ShapeOf(*type->dims)}, {}, span);
}

Result<Expr> PackElements(BindingBuilder& builder, const Expr& elements, DataType packed, const ir::Span& span) {
  const auto* type = KnownTensor(elements->type);
  if (type == nullptr) return Status(StatusCode::kUnsupportedModel, "elements of less than a byte of unknown rank");
  Expr x = elements;
  if (type->rank != 1) {
    INGOT_ASSIGN_OR_RETURN(x, builder.BindCall("reshape", {x, ShapeOf({Product(*type->dims)})}, {}, span));
  }
  INGOT_ASSIGN_OR_RETURN(x, builder.BindCall("pack_bits", {x}, {{"dtype", packed}}, span));
  const Expr dtype = ir::Make<ir::DataTypeValueNode>(packed);
  return builder.BindCall(op::names::kMemoryBitcast, {x, ShapeOf(*type->dims), dtype}, {}, span);
}

Status CheckPackedInputs(const NodeImporter& node) {
  const PackedRow* row = FindPackedRow(node.node());
  std::optional<DataType> first;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    const std::optional<DataType> packed = node.PackedType(i);
    if (!packed) continue;
    INGOT_RETURN_IF_ERROR(CheckTaken(node, row, *packed));
    if (first && first != packed && row->treats != Treats::kConverts) {
      return node.Invalid("inputs of " + first->ToString() + " and " + packed->ToString());
    }
    if (!first) first = packed;
  }
  if (!IsString(first)) return Status();
  // All elements that are moved, chosen or compared together are strings then; indices and shapes are none.
  const std::string& op_type = node.node().op_type;
  const bool takes_alike = op_type == "Concat" || op_type == "Equal";
  const bool is_scatter = op_type.starts_with("Scatter");
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    const bool must = takes_alike || i == (row->treats == Treats::kChooses ? 1 : 0) ||
                      (i == 2 && (is_scatter || row->treats == Treats::kChooses));
    if (node.HasInput(i) && must != IsString(node.PackedType(i))) {
      return node.Invalid(must ? "strings beside elements that are none" : "strings where numbers are expected");
    }
  }
  return Status();
}

bool TakesStrings(const NodeImporter& node) {
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    if (IsString(node.PackedType(i))) return true;
  }
  return false;
}

Result<std::optional<DataType>> PackedOutput(const NodeImporter& node, const Expr& output) {
  const PackedRow* row = FindPackedRow(node.node());
  const auto* type = ir::As<ir::TensorTypeNode>(output->type);
  if (row == nullptr || type == nullptr || !type->dtype) return std::optional<DataType>();
  std::optional<DataType> dtype;
  const std::string& op_type = node.node().op_type;
  if (row->treats == Treats::kMoves) {
    dtype = node.PackedType(0);
  } else if (row->treats == Treats::kChooses) {
    dtype = node.PackedType(1);
  } else if (row->treats == Treats::kLabels) {
    if (GivesStrings(node)) dtype = kStringElement;
  } else if (op_type == "Cast" && TakesStrings(node)) {
    dtype = kStringElement;
  } else if (op_type == "Cast" || op_type == "BitCast") {
    INGOT_ASSIGN_OR_RETURN(const int64_t to, node.Int("to", 0));
    dtype = DataTypeOf(to);
  } else if (op_type == "CastLike") {
    dtype = node.PackedType(1);
  } else if (op_type == "QuantizeLinear") {
    INGOT_ASSIGN_OR_RETURN(const int64_t to, node.Int("output_dtype", 0));
    dtype = node.HasInput(2) ? node.PackedType(2) : DataTypeOf(to);
  } else if (op_type == "Constant" || op_type == "ConstantOfShape") {
    for (const OnnxAttribute& attribute : node.node().attributes) {
      if (const auto* data = std::get_if<ConstantDataPtr>(&attribute.value)) dtype = (*data)->dtype();
    }
  }
  if (!dtype || !IsHeldOtherwise(*dtype) || *type->dtype != HeldDataType(*dtype)) {
    return std::optional<DataType>();
  }
  return dtype;
}

std::optional<DataType> PackedDeclared(const OnnxValueInfo& info, const ir::ExprNode& value) {
  const auto* type = value.type == nullptr ? nullptr : ir::As<ir::TensorTypeNode>(value.type);
  const bool is_packed = info.is_tensor && info.dtype && IsHeldOtherwise(*info.dtype) && type != nullptr &&
                         type->dtype == HeldDataType(*info.dtype);
  return is_packed ? info.dtype : std::nullopt;
}

}  // namespace ingot::importer
