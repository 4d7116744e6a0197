// Packing at the borders is a view of the packed tensor as bytes and one operator; inside, a table says which operators
// take such elements.
#include "compiler/importer/packed_values.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"
#include "compiler/op/names.h"
#include "compiler/op/packed_elements.h"
#include "compiler/op/registry.h"

namespace ingot::importer {

using ir::Expr;
using ir::PrimExpr;

namespace {

// How an operator of ONNX treats elements of less than a byte.
enum class Treats : uint8_t {
  kMoves,     // its outputs have elements of the first input (of the second one: kChooses)
  kChooses,   // Where
  kConverts,  // its attributes or another input say what the output is
};
struct PackedRow {
  std::string_view op_type;
  Treats treats;
};
constexpr PackedRow kPackedRows[] = {
    {"BitCast", Treats::kConverts},         {"Cast", Treats::kConverts},
    {"CastLike", Treats::kConverts},        {"CenterCropPad", Treats::kMoves},
    {"Compress", Treats::kMoves},           {"Concat", Treats::kMoves},
    {"Constant", Treats::kConverts},        {"ConstantOfShape", Treats::kConverts},
    {"DepthToSpace", Treats::kMoves},       {"DequantizeLinear", Treats::kConverts},
    {"Expand", Treats::kMoves},             {"Flatten", Treats::kMoves},
    {"Gather", Treats::kMoves},             {"GatherElements", Treats::kMoves},
    {"GatherND", Treats::kMoves},           {"Identity", Treats::kMoves},
    {"Pad", Treats::kMoves},                {"QuantizeLinear", Treats::kConverts},
    {"Reshape", Treats::kMoves},            {"ReverseSequence", Treats::kMoves},
    {"ScatterElements", Treats::kMoves},    {"ScatterND", Treats::kMoves},
    {"Shape", Treats::kConverts},           {"Size", Treats::kConverts},
    {"Slice", Treats::kMoves},              {"SpaceToDepth", Treats::kMoves},
    {"Split", Treats::kMoves},              {"Squeeze", Treats::kMoves},
    {"Tile", Treats::kMoves},               {"Transpose", Treats::kMoves},
    {"Trilu", Treats::kMoves},              {"Unsqueeze", Treats::kMoves},
    {"Where", Treats::kChooses},
};

const PackedRow* FindPackedRow(const OnnxNode& node) {
  const auto row = node.domain.empty() ? std::ranges::find(kPackedRows, node.op_type, &PackedRow::op_type) : std::end(kPackedRows);
  return row == std::end(kPackedRows) ? nullptr : row;
}

// Nothing for a number that stands for no supported dtype.
std::optional<DataType> DataTypeOf(int64_t number) {
  const Result<DataType> dtype = OnnxDataType(number);
  return dtype.ok() ? std::optional(*dtype) : std::nullopt;
}

std::optional<DataType> IfPacked(DataType dtype) {
  return op::IsPackedElement(dtype) ? std::optional(dtype) : std::nullopt;
}

}  // namespace

Result<ImportedValue> ValueOfConstant(ConstantDataPtr data, const std::string& name) {
  const std::optional<DataType> packed = IfPacked(data->dtype());
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
    if (row == nullptr) return node.Unsupported("elements of " + packed->ToString());
    if (first && first != packed && row->treats != Treats::kConverts) {
      return node.Invalid("inputs of " + first->ToString() + " and " + packed->ToString());
    }
    if (!first) first = packed;
  }
  return Status();
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
  } else if (op_type == "Cast" || op_type == "BitCast") {
    INGOT_ASSIGN_OR_RETURN(const int64_t to, node.Int("to", 0));
    dtype = DataTypeOf(to);
  } else if (op_type == "CastLike") {
    dtype = node.PackedType(1);
  } else if (op_type == "QuantizeLinear") {
    INGOT_ASSIGN_OR_RETURN(const int64_t to, node.Int("output_dtype", 0));
    dtype = node.HasInput(2) ? node.PackedType(2) : DataTypeOf(to);
  } else if (op_type == "Constant" || op_type == "ConstantOfShape") {
    const OnnxAttribute* value = node.FindAttr("value");
    const auto* data = value == nullptr ? nullptr : std::get_if<ConstantDataPtr>(&value->value);
    if (data != nullptr) dtype = (*data)->dtype();
  }
  if (!dtype || !op::IsPackedElement(*dtype) || *type->dtype != op::ByteDataType(*dtype)) {
    return std::optional<DataType>();
  }
  return dtype;
}

std::optional<DataType> PackedDeclared(const OnnxValueInfo& info, const ir::ExprNode& value) {
  const auto* type = value.type == nullptr ? nullptr : ir::As<ir::TensorTypeNode>(value.type);
  const bool is_packed = info.is_tensor && info.dtype && op::IsPackedElement(*info.dtype) && type != nullptr &&
                         type->dtype == op::ByteDataType(*info.dtype);
  return is_packed ? info.dtype : std::nullopt;
}

}  // namespace ingot::importer
