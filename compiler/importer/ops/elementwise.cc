// Element-wise operators, and those without work: identity, constants, casts.
#include "compiler/importer/ops/families.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/importer/ops/util.h"
#include "compiler/ir/float_format.h"
#include "compiler/op/packed_elements.h"

namespace ingot::importer {
namespace {

Outputs Identity(const NodeImporter& node) { return One(node.Input(0)); }

// Max and Min of any number of inputs, combined one after the other.
template <const auto& kRow>
Outputs Chain(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr result, node.Input(0));
  for (size_t i = 1; i < node.num_inputs(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr next, node.Input(i));
    const bool is_last = i + 1 == node.num_inputs();
    INGOT_ASSIGN_OR_RETURN(result, is_last ? node.Call(kRow, {result, next}) : node.Bind(kRow, {result, next}));
  }
  return std::vector<Expr>{std::move(result)};
}
constexpr char kMaximum[] = "maximum";
constexpr char kMinimum[] = "minimum";
constexpr char kLess[] = "less";
constexpr char kGreater[] = "greater";

// Whether a float of this dtype holds all numbers of another dtype.
bool Holds(DataType wide, DataType dtype) {
  if (dtype.is_floating()) return wide == dtype || wide.bits > dtype.bits;
  const int exact_bits = wide.bits == 64 ? 53 : wide.bits == 32 ? 24 : 8;
  return dtype.bits <= exact_bits;
}

// Whether the input is a constant of small whole numbers, which every float holds.
bool IsSmallWhole(const NodeImporter& node, size_t input) {
  constexpr int64_t kSmall = 128;
  if (!node.IsConstant(input)) return false;
  const ShapeValue value = *node.Known(input);
  return std::ranges::all_of(value.elements, [](const ir::PrimExpr& element) {
    const auto number = ir::AsConstInt(element);
    return number && *number >= -kSmall && *number <= kSmall;
  });
}

// Integers to the power of integers. An exponent that the base's dtype does not hold is replaced by one with the same
// effect: one of 126 or 127, or their negatives, is as odd as it, and 1, -1 and 0 have the same power; others have none
// that the dtype holds, or a fraction.
Outputs PowOfIntegers(const NodeImporter& node, Expr base, Expr exponent) {
  const DataType dtype = DTypeOf(base), given = DTypeOf(exponent);
  const bool has_negatives = given.is_int();
  const DataType work = dtype.is_uint() && has_negatives ? DataType::Int(64) : dtype;
  const bool is_narrow = given.bits < work.bits || (given.bits == work.bits && given.is_int() == work.is_int());
  if (!is_narrow) {
    constexpr double kFarEnough = 126;
    INGOT_ASSIGN_OR_RETURN(const Expr one, node.Scalar(1, given));
    INGOT_ASSIGN_OR_RETURN(const Expr odd, node.Bind("bitwise_and", {exponent, one}));
    INGOT_ASSIGN_OR_RETURN(const Expr most, node.Scalar(kFarEnough, given));
    INGOT_ASSIGN_OR_RETURN(const Expr far, node.Bind("add", {most, odd}));
    INGOT_ASSIGN_OR_RETURN(const Expr exceeds, node.Bind(kGreater, {exponent, far}));
    Expr limited;
    INGOT_ASSIGN_OR_RETURN(limited, node.Bind("where", {exceeds, far, exponent}));
    if (has_negatives) {
      INGOT_ASSIGN_OR_RETURN(const Expr least, node.Bind("negative", {far}));
      INGOT_ASSIGN_OR_RETURN(const Expr is_below, node.Bind(kLess, {limited, least}));
      INGOT_ASSIGN_OR_RETURN(limited, node.Bind("where", {is_below, least, limited}));
    }
    exponent = std::move(limited);
  }
  INGOT_ASSIGN_OR_RETURN(base, CastTo(node, base, work));
  INGOT_ASSIGN_OR_RETURN(exponent, CastTo(node, exponent, work));
  if (work == dtype) return One(node.Call("power", {base, exponent}));
  INGOT_ASSIGN_OR_RETURN(base, node.Bind("power", {base, exponent}));
  return One(CastTo(node, base, dtype));
}

// The exponent may have another dtype; the result has the base's. Powers with floats are computed in a dtype that holds
// the exponent, those of integers to floats in float64.
Outputs Pow(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr base, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr exponent, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* base_type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* exponent_type, node.InputType(1));
  const DataType dtype = *base_type->dtype, given = *exponent_type->dtype;
  if (dtype == given) return One(node.Call("power", {base, exponent}));
  if (!dtype.is_floating() && !given.is_floating()) return PowOfIntegers(node, std::move(base), std::move(exponent));
  DataType wide = dtype.is_floating() ? dtype : DataType::Float(64);
  if (!IsSmallWhole(node, 1)) {
    if (!Holds(wide, given)) wide = DataType::Float(32);
    if (!Holds(wide, given)) wide = DataType::Float(64);
  }
  INGOT_ASSIGN_OR_RETURN(base, CastTo(node, base, wide));
  INGOT_ASSIGN_OR_RETURN(exponent, CastTo(node, exponent, wide));
  if (wide == dtype) return One(node.Call("power", {base, exponent}));
  INGOT_ASSIGN_OR_RETURN(base, node.Bind("power", {base, exponent}));
  return One(CastTo(node, base, dtype));
}

Outputs Gelu(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::string approximate, node.String("approximate", "none"));
  if (approximate == "none") return One(node.Call("nn.gelu", {x}));
  if (approximate == "tanh") return One(node.Call("nn.gelu_tanh", {x}));
  return node.Invalid("approximate is \"" + approximate + "\"");
}

Outputs LeakyRelu(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const double alpha, node.Float("alpha", 0.01f));
  return One(node.Call("nn.leakyrelu", {x}, {{"alpha", alpha}}));
}

// Bounds that are computed, or bounds of integers: where(x < low, low, x), then where(high < x, high, x), as ONNX
// defines it, so that the upper bound wins if the bounds cross, and a NaN bound has no effect.
Outputs ClipByTensors(const NodeImporter& node, Expr x) {
  Expr low, high;
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(low, node.Input(1));
  }
  if (node.HasInput(2)) {
    INGOT_ASSIGN_OR_RETURN(high, node.Input(2));
  }
  const DataType dtype = DTypeOf(x);
  const bool has_nan = dtype.is_floating();
  for (Expr* bound : {&low, &high}) {
    if (*bound != nullptr || !has_nan) continue;
    const double greatest = ir::LargestFinite(dtype);
    INGOT_ASSIGN_OR_RETURN(*bound, node.Scalar(bound == &low ? -greatest : greatest, dtype));
  }
  const auto limit = [&](const char* row, const Expr& bound) -> Result<Expr> {
    if (!has_nan) return node.Bind(row == kLess ? kMaximum : kMinimum, {x, bound});
    INGOT_ASSIGN_OR_RETURN(const Expr exceeds, node.Bind(row, {x, bound}));
    return node.Bind("where", {exceeds, bound, x});
  };
  if (low != nullptr) {
    INGOT_ASSIGN_OR_RETURN(x, limit(kLess, low));
  }
  if (high != nullptr) {
    INGOT_ASSIGN_OR_RETURN(x, limit(kGreater, high));
  }
  return std::vector<Expr>{std::move(x)};
}

// Bounds are attributes until opset 10 and inputs from 11 on. One that is left out is the greatest finite number, so that
// infinities are clipped: a float32's as attribute, the dtype's as input.
Outputs Clip(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  const auto is_constant = [&](size_t i) { return !node.HasInput(i) || node.IsConstant(i); };
  if (!type->dtype->is_floating() || !is_constant(1) || !is_constant(2)) return ClipByTensors(node, std::move(x));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double greatest = ir::LargestFinite(node.opset() < 11 ? DataType::Float(32) : *type->dtype);
  INGOT_ASSIGN_OR_RETURN(double low, node.Float("min", -greatest));
  INGOT_ASSIGN_OR_RETURN(double high, node.Float("max", greatest));
  INGOT_ASSIGN_OR_RETURN(low, node.ConstantNumber(1, "the lower bound", low));
  INGOT_ASSIGN_OR_RETURN(high, node.ConstantNumber(2, "the upper bound", high));
  if (std::isnan(low)) low = -kInfinity;  // a NaN bound has no effect
  if (std::isnan(high)) high = kInfinity;
  return One(node.Call("clip", {x, ir::Make<ir::PrimValueNode>(ir::FloatImm(*type->dtype, low)),
                                ir::Make<ir::PrimValueNode>(ir::FloatImm(*type->dtype, high))}));
}

Outputs Cast(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const int64_t to, node.Int("to", 0));
  if (node.PackedType(0) == kStringElement) return One(x);  // to strings
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, OnnxDataType(to));
  return One(ConvertTo(node, std::move(x), dtype));
}

// The bits of each element as an element of another dtype of the same width. Those of less than a byte are packed and
// unpacked again.
Outputs BitCast(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const DataType from, node.ElementType(0));
  INGOT_ASSIGN_OR_RETURN(const int64_t number, node.Int("to", 0));
  INGOT_ASSIGN_OR_RETURN(const DataType to, OnnxDataType(number));
  if (from.bits != to.bits) return node.Invalid(from.ToString() + " is not as wide as " + to.ToString());
  if (from == to) return One(x);
  if (!op::IsPackedElement(from)) return One(node.Call("bitcast", {x}, {{"dtype", to}}));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  const Expr flat = ShapeOf({Product(dims)});
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, flat}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("pack_bits", {x}, {{"dtype", from}}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("unpack_bits", {x, flat}, {{"dtype", to}}));
  return One(ReshapeTo(node, std::move(x), dims));
}

Outputs Constant(const NodeImporter& node) {
  const auto make = [&node](DataType dtype, std::vector<int64_t> dims, const void* data, size_t size) -> Outputs {
    std::vector<std::byte> bytes(size);
    if (size > 0) std::memcpy(bytes.data(), data, size);
    const std::string name = node.node().outputs.empty() ? "" : node.node().outputs[0];
    return std::vector<Expr>{
        ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(dtype, std::move(dims), std::move(bytes)), name)};
  };
  const OnnxAttribute* tensor = nullptr;
  for (const char* name : {"value", "sparse_value", "value_string", "value_strings"}) {
    if (tensor == nullptr) tensor = node.FindAttr(name);
  }
  if (tensor != nullptr) {
    const auto* data = std::get_if<ConstantDataPtr>(&tensor->value);
    if (data == nullptr) return node.Invalid("attribute \"" + tensor->name + "\": expected a tensor");
    return One(Unpacked(ir::Make<ir::ConstantNode>(*data, node.node().outputs.empty() ? "" : node.node().outputs[0])));
  }
  if (node.HasAttr("value_int")) {
    INGOT_ASSIGN_OR_RETURN(const int64_t value, node.Int("value_int", 0));
    return make(DataType::Int(64), {}, &value, sizeof(value));
  }
  if (node.HasAttr("value_float")) {
    INGOT_ASSIGN_OR_RETURN(const double wide, node.Float("value_float", 0));
    const float value = static_cast<float>(wide);
    return make(DataType::Float(32), {}, &value, sizeof(value));
  }
  if (node.HasAttr("value_ints")) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> values, node.Ints("value_ints", {}));
    return make(DataType::Int(64), {static_cast<int64_t>(values.size())}, values.data(), values.size() * 8);
  }
  if (const OnnxAttribute* floats = node.FindAttr("value_floats")) {
    const auto* values = std::get_if<std::vector<float>>(&floats->value);
    if (values == nullptr) return node.Invalid("attribute \"value_floats\": expected floats");
    return make(DataType::Float(32), {static_cast<int64_t>(values->size())}, values->data(), values->size() * 4);
  }
  return node.Unsupported("a Constant that is no tensor of numbers");
}

constexpr OnnxOpRow kElementwiseRows[] = {
    {"Abs", "abs"},
    {"Add", "add"},
    {"And", "logical_and"},
    {"BitCast", nullptr, BitCast},
    {"BitwiseNot", "bitwise_not"},
    {"Cast", nullptr, Cast},
    {"Ceil", "ceil"},
    {"Clip", nullptr, Clip},
    {"Constant", nullptr, Constant},
    {"Cos", "cos"},
    {"Div", "divide"},
    {"Equal", "equal"},
    {"Erf", "erf"},
    {"Exp", "exp"},
    {"Floor", "floor"},
    {"Gelu", nullptr, Gelu},
    {"Greater", "greater"},
    {"GreaterOrEqual", "greater_equal"},
    {"Identity", nullptr, Identity},
    {"IsNaN", "isnan"},
    {"LeakyRelu", nullptr, LeakyRelu},
    {"Less", "less"},
    {"LessOrEqual", "less_equal"},
    {"Log", "log"},
    {"Max", nullptr, Chain<kMaximum>},
    {"Min", nullptr, Chain<kMinimum>},
    {"Mul", "multiply"},
    {"Neg", "negative"},
    {"Not", "logical_not"},
    {"Or", "logical_or"},
    {"Pow", nullptr, Pow},
    {"Relu", "nn.relu"},
    {"Round", "round"},
    {"Sigmoid", "sigmoid"},
    {"Sign", "sign"},
    {"Sin", "sin"},
    {"Sqrt", "sqrt"},
    {"Sub", "subtract"},
    {"Tan", "tan"},
    {"Tanh", "tanh"},
    {"Where", "where"},
    {"Xor", "logical_xor"},
};

}  // namespace

std::span<const OnnxOpRow> ElementwiseOnnxOps() { return kElementwiseRows; }

}  // namespace ingot::importer
