// Evaluation of one node by the row of its operator, the conversion from and to constants, and the limits that keep
// such values small.
#include "compiler/importer/shape_values.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "compiler/importer/onnx_ops.h"
#include "compiler/importer/shape_conditions.h"
#include "compiler/importer/shape_evaluation.h"
#include "compiler/importer/symbols.h"
#include "compiler/op/registry.h"
#include "runtime/small_float.h"

namespace ingot::importer {

using ir::PrimExpr;
using shapes::FloatOf;
using shapes::IsConstant;
using shapes::kMaxElements;

namespace {

// For a value with symbols among its elements: each element is a branch of the function that materialises it.
constexpr int64_t kMaxSymbolicElements = 64;

const shapes::Row* FindRow(std::string_view op_type) {
  for (const std::span<const shapes::Row> rows : {shapes::Arithmetic(), shapes::DataMovement()}) {
    const auto row = std::ranges::lower_bound(rows, op_type, {}, &shapes::Row::op_type);
    if (row != rows.end() && row->op_type == op_type) return &*row;
  }
  return nullptr;
}

// Dtypes of results; others are only read.
bool IsKept(DataType t) {
  return t == DataType::Int(64) || t == DataType::Int(32) || t.is_bool() || t == DataType::Float(32) ||
         t == DataType::Float(64);
}
// Whether a result may be kept: it is constant, or it is small and an input has symbols, too (if no input has any, the
// arithmetic overflowed).
bool IsKept(const ShapeValue& value, bool symbols) {
  if (!IsKept(value.dtype)) return false;
  if (value.is_constant()) return true;
  return symbols && std::ssize(value.elements) <= kMaxSymbolicElements;
}

// Stores the elements of a constant as bytes of its dtype.
template <typename T>
void Store(const std::vector<PrimExpr>& elements, std::vector<std::byte>& bytes) {
  bytes.resize(elements.size() * sizeof(T));
  for (size_t i = 0; i < elements.size(); ++i) {
    const auto integer = ir::AsConstInt(elements[i]);
    const T value = integer ? static_cast<T>(*integer) : static_cast<T>(shapes::NumberOf(elements[i]));
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

template <typename T>
T Load(const ir::ConstantData& data, size_t i) {
  T value;
  std::memcpy(&value, data.bytes().data() + i * sizeof(T), sizeof(T));
  return value;
}
PrimExpr LoadElement(const ir::ConstantData& data, size_t i) {
  const DataType t = data.dtype();
  if (t.is_bool()) return ir::BoolImm(Load<uint8_t>(data, i) != 0);
  if (t == DataType::Int(64) || t == DataType::UInt(64)) return ir::Int64(Load<int64_t>(data, i));
  if (t == DataType::Int(32)) return ir::Int64(Load<int32_t>(data, i));
  if (t == DataType::UInt(32)) return ir::Int64(Load<uint32_t>(data, i));
  if (t == DataType::Int(16)) return ir::Int64(Load<int16_t>(data, i));
  if (t == DataType::UInt(16)) return ir::Int64(Load<uint16_t>(data, i));
  if (t == DataType::Int(8)) return ir::Int64(Load<int8_t>(data, i));
  if (t == DataType::UInt(8)) return ir::Int64(Load<uint8_t>(data, i));
  if (t == DataType::Float(64)) return FloatOf(t, Load<double>(data, i));
  if (t == DataType::Float(32)) return FloatOf(t, static_cast<double>(Load<float>(data, i)));
  return FloatOf(t, DecodeFloat(t, Load<uint16_t>(data, i)));
}

}  // namespace

bool ShapeValue::is_constant() const { return std::ranges::all_of(elements, IsConstant); }

ir::Type ShapeValue::Type() const {
  std::vector<PrimExpr> exprs;
  for (int64_t dim : dims) exprs.push_back(ir::Int64(dim));
  return ir::Make<ir::TensorTypeNode>(std::move(exprs), dtype);
}

bool IsShapeOperator(std::string_view op_type) { return FindRow(op_type) != nullptr; }

bool IsSmallConstant(const ir::ConstantData& data) {
  const DataType t = data.dtype();
  const bool is_word = t.is_scalar() && (t.bits == 8 || t.bits == 16 || t.bits == 32 || t.bits == 64);
  bool is_readable = t.is_bool() || (is_word && (t.is_integral() || (t.is_floating() && t.bits >= 16)));
  is_readable = is_readable && data.num_elements() <= kMaxElements;
  for (size_t i = 0; is_readable && t == DataType::UInt(64) && i < static_cast<size_t>(data.num_elements()); ++i) {
    is_readable = Load<int64_t>(data, i) >= 0;  // others are no int64
  }
  return is_readable;
}

ShapeValue KnownConstant(const ir::ConstantData& data) {
  ShapeValue value{data.dtype(), data.dims(), {}};
  for (size_t i = 0; i < static_cast<size_t>(data.num_elements()); ++i) value.elements.push_back(LoadElement(data, i));
  return value;
}

std::optional<std::vector<ShapeValue>> EvaluateShapeValues(const NodeImporter& node, Symbols& named) {
  const shapes::Row* row = FindRow(node.node().op_type);
  if (row == nullptr) return std::nullopt;
  // Arithmetic on float constants is data, not shapes: an integer or a truth value must be among the inputs.
  bool from_shapes = row->of_type, symbols = row->of_type;
  for (size_t i = 0; i < node.num_inputs() && !row->of_type; ++i) {
    if (!node.HasInput(i)) continue;
    if (!node.MayBeKnown(i)) return std::nullopt;
    const auto* type = ir::As<ir::TensorTypeNode>(node.TypeOf(i));
    if (type == nullptr || !type->dtype.has_value() || !IsKept(*type->dtype)) return std::nullopt;
    from_shapes |= node.IsFromShapes(i) || !type->dtype->is_floating();
    symbols |= node.IsFromShapes(i);
  }
  if (!from_shapes) return std::nullopt;
  arith::Analyzer& analyzer = named.analyzer();
  shapes::Conditions conditions(
      analyzer, [&named](const ir::PrimVar& symbol, int64_t most) { return named.LimitDim(symbol, most); });
  for (size_t i = 0; i < node.num_inputs() && !row->of_type; ++i) {
    const std::optional<ShapeValue> input = node.IsFromShapes(i) ? node.Formula(i) : std::nullopt;
    if (!input) continue;
    for (const PrimExpr& condition : input->conditions) {
      if (!conditions.Add(condition)) return std::nullopt;
    }
    if (input->loses_zero_sign) conditions.LoseZeroSign();
  }
  shapes::Outputs outputs = row->evaluate(shapes::Evaluation(node, analyzer, conditions));
  if (!outputs.has_value()) return std::nullopt;
  for (ShapeValue& output : *outputs) {
    if (!IsKept(output, symbols)) return std::nullopt;
    output.conditions = conditions.list();
    output.loses_zero_sign = output.dtype.is_floating() && conditions.loses_zero_sign();
  }
  return outputs;
}

Result<ir::Expr> Materialise(const ShapeValue& value, std::vector<ir::Binding>& bindings, const ir::Span& span) {
  if (value.is_constant()) {
    std::vector<std::byte> bytes;
    if (value.dtype == DataType::Int(64)) Store<int64_t>(value.elements, bytes);
    if (value.dtype == DataType::Int(32)) Store<int32_t>(value.elements, bytes);
    if (value.dtype.is_bool()) Store<uint8_t>(value.elements, bytes);
    if (value.dtype == DataType::Float(32)) Store<float>(value.elements, bytes);
    if (value.dtype == DataType::Float(64)) Store<double>(value.elements, bytes);
    return ir::Expr(ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(value.dtype, value.dims, std::move(bytes))));
  }
  INGOT_CHECK(value.is_exact(), "a tensor of a formula that may differ from it");
  std::vector<PrimExpr> elements;
  for (const PrimExpr& element : value.elements) {
    if (element->kind == ir::PrimKind::kFloatImm) {
      return Status(StatusCode::kUnsupportedModel, "a tensor of dimensions and fractions");
    }
    elements.push_back(element->dtype.is_bool() ? ir::Select(element, ir::Int64(1), ir::Int64(0)) : element);
  }
  ir::Expr result;
  const auto bind = [&](std::string_view row, std::vector<ir::Expr> args, ir::Attrs attrs) -> Status {
    INGOT_ASSIGN_OR_RETURN(const ir::Call call, op::MakeCall(row, std::move(args), std::move(attrs)));
    ir::CallNode with_span = *call;
    with_span.span = span;
    const ir::Var var = ir::Make<ir::VarNode>(std::string(row), call->type, /*dataflow=*/true);
    bindings.push_back({var, ir::Make<ir::CallNode>(std::move(with_span)), nullptr, span});
    result = var;
    return Status();
  };
  const ir::Expr shape = ir::Make<ir::ShapeExprNode>(std::move(elements));
  INGOT_RETURN_IF_ERROR(bind("shape_to_tensor", {shape}, {}));
  if (value.dims.size() != 1) {
    std::vector<PrimExpr> dims;
    for (int64_t dim : value.dims) dims.push_back(ir::Int64(dim));
    INGOT_RETURN_IF_ERROR(bind("reshape", {result, ir::Make<ir::ShapeExprNode>(std::move(dims))}, {}));
  }
  if (value.dtype != DataType::Int(64)) INGOT_RETURN_IF_ERROR(bind("astype", {result}, {{"dtype", value.dtype}}));
  return result;
}

}  // namespace ingot::importer
