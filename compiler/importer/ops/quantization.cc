// Quantised numbers: conversion to and from them, and products of integers. All are calls of arithmetic operators:
// scaling in the dtype of the scale (float32 if dtypes differ), products in int32.
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/importer/ops/convolution.h"
#include "compiler/importer/ops/families.h"
#include "compiler/op/blocked.h"
#include "compiler/op/infer.h"
#include "compiler/op/packed_elements.h"
#include "compiler/op/reference.h"

namespace ingot::importer {
namespace {

const DataType kFloat = DataType::Float(32);
const DataType kInt32 = DataType::Int(32);

// With a sign: of those of powers of two alone no quantised numbers are made.
bool IsFloat8(DataType dtype) {
  return dtype.is_floating() && dtype.bits == 8 && dtype.code != TypeCode::kFloat8E8M0FNU;
}

// Integers of 2 to 16 bits, floats of 4 and 8 bits, and int32 to dequantise.
Status CheckQuantised(const NodeImporter& node, DataType dtype) {
  const bool is_integer = dtype.is_integral() && !dtype.is_bool() && dtype.bits >= 2 && dtype.bits <= 32;
  const bool is_known = is_integer || IsFloat8(dtype) || op::IsPackedElement(dtype);
  return is_known ? Status() : node.Unsupported("quantised numbers of " + dtype.ToString());
}

// Returns a scale or zero point (an input) such that it broadcasts to x, whose dims are given: one number, one per
// index of an axis, or one per block of indices.
Result<Expr> Parameter(const NodeImporter& node, size_t input, const std::vector<PrimExpr>& dims) {
  INGOT_ASSIGN_OR_RETURN(Expr param, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, input));
  if (own.empty() || (own.size() == 1 && ir::IsConstInt(own[0], 1))) return param;
  INGOT_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", 1));
  INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, static_cast<int64_t>(dims.size())));
  INGOT_ASSIGN_OR_RETURN(const int64_t block, node.Int("block_size", 0));
  const auto at = static_cast<size_t>(axis);
  if (block == 0) {
    if (own.size() != 1) return node.Invalid("a scale or zero point of rank " + std::to_string(own.size()));
    std::vector<PrimExpr> spread(dims.size(), ir::Int64(1));
    spread[at] = own[0];
    INGOT_ASSIGN_OR_RETURN(param, node.Bind("reshape", {param, ShapeOf(spread)}));
    spread[at] = dims[at];
    return BroadcastInto(node, std::move(param), spread);
  }
  if (block < 0 || own.size() != dims.size()) {
    return node.Invalid("a scale or zero point of rank " + std::to_string(own.size()) + " for blocks of " +
                        std::to_string(block));
  }
  std::vector<PrimExpr> blocks = own;
  blocks.insert(blocks.begin() + axis + 1, ir::Int64(1));
  INGOT_ASSIGN_OR_RETURN(param, node.Bind("reshape", {param, ShapeOf(blocks)}));
  blocks[at + 1] = ir::Int64(block);
  INGOT_ASSIGN_OR_RETURN(param, node.Bind("broadcast_to", {param, ShapeOf(blocks)}));
  if (op::DimsEqual(own[at] * block, dims[at])) return node.Bind("reshape", {param, ShapeOf(dims)});
  // The last block may be shorter than the others.
  std::vector<PrimExpr> whole = own;
  whole[at] = op::SimplifyDim(ir::FloorDiv(dims[at] + (block - 1), ir::Int64(block)) * block);
  blocks[at] = op::SimplifyDim(ir::FloorDiv(dims[at] + (block - 1), ir::Int64(block)));
  param = WithDims(node, std::move(param), blocks);
  INGOT_ASSIGN_OR_RETURN(param, node.Bind("reshape", {param, ShapeOf(whole)}));
  INGOT_ASSIGN_OR_RETURN(param, node.Bind("strided_slice", {param, PrimTuple(std::vector<int64_t>{axis}),
                                                            PrimTuple(std::vector<int64_t>{0}),
                                                            PrimTuple(std::vector<PrimExpr>{dims[at]})}));
  return BroadcastInto(node, std::move(param), dims);
}

// Returns the nearest integers (halves to even) of x plus a zero point (null: 0), clamped to the dtype's range: in
// float32.
Result<Expr> RoundInto(const NodeImporter& node, Expr x, Expr zero_point, DataType dtype) {
  INGOT_RETURN_IF_ERROR(CheckQuantised(node, dtype));
  if (dtype.bits > 16) return node.Unsupported("quantised numbers of " + dtype.ToString());
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("round", {x}));
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), kFloat));  // sums of narrow floats are not exact
  if (zero_point != nullptr) {
    INGOT_ASSIGN_OR_RETURN(zero_point, CastTo(node, std::move(zero_point), kFloat));
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("add", {x, zero_point}));
  }
  const double high = static_cast<double>((int64_t{1} << (dtype.is_int() ? dtype.bits - 1 : dtype.bits)) - 1);
  const double low = dtype.is_int() ? -high - 1 : 0;
  return node.Bind("clip", {x, ir::Make<ir::PrimValueNode>(ir::FloatImm(kFloat, low)),
                            ir::Make<ir::PrimValueNode>(ir::FloatImm(kFloat, high))});
}
Outputs RoundTo(const NodeImporter& node, Expr x, Expr zero_point, DataType dtype) {
  INGOT_ASSIGN_OR_RETURN(const Expr rounded, RoundInto(node, std::move(x), std::move(zero_point), dtype));
  const DataType held = op::IsPackedElement(dtype) ? op::ByteDataType(dtype) : dtype;
  return One(node.Call("astype", {rounded}, {{"dtype", held}}));
}

Outputs QuantizeLinear(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(Expr scale, Parameter(node, 1, dims));
  INGOT_ASSIGN_OR_RETURN(const int64_t output, node.Int("output_dtype", 0));
  DataType dtype = DataType::UInt(8);
  Expr zero_point;
  if (node.HasInput(2)) {
    INGOT_ASSIGN_OR_RETURN(zero_point, Parameter(node, 2, dims));
    INGOT_ASSIGN_OR_RETURN(dtype, node.ElementType(2));
  } else if (output != 0) {
    INGOT_ASSIGN_OR_RETURN(dtype, OnnxDataType(output));
  }
  INGOT_ASSIGN_OR_RETURN(const int64_t precision, node.Int("precision", 0));
  if (precision != 0 || DTypeOf(x) != DTypeOf(scale)) {
    DataType wide = kFloat;
    if (precision != 0) {
      INGOT_ASSIGN_OR_RETURN(wide, OnnxDataType(precision));
    }
    INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), wide));
    INGOT_ASSIGN_OR_RETURN(scale, CastTo(node, std::move(scale), wide));
  }
  INGOT_ASSIGN_OR_RETURN(Expr quotient, node.Bind("divide", {x, scale}));
  if (IsFloat8(dtype)) return One(ConvertTo(node, std::move(quotient), dtype));  // its zero point is 0
  if (dtype.is_floating()) {
    if (zero_point != nullptr) {
      INGOT_ASSIGN_OR_RETURN(zero_point, CastTo(node, std::move(zero_point), DTypeOf(quotient)));
      INGOT_ASSIGN_OR_RETURN(quotient, node.Bind("add", {quotient, zero_point}));
    }
    return One(ConvertTo(node, std::move(quotient), dtype));
  }
  return RoundTo(node, std::move(quotient), std::move(zero_point), dtype);
}

Outputs DequantizeLinear(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_RETURN_IF_ERROR(CheckQuantised(node, *ir::As<ir::TensorTypeNode>(x->type)->dtype));
  INGOT_ASSIGN_OR_RETURN(Expr scale, Parameter(node, 1, dims));
  INGOT_ASSIGN_OR_RETURN(const int64_t output, node.Int("output_dtype", 0));
  DataType dtype = *ir::As<ir::TensorTypeNode>(scale->type)->dtype;
  if (output != 0) {
    INGOT_ASSIGN_OR_RETURN(dtype, OnnxDataType(output));
  }
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), kFloat));
  if (node.HasInput(2)) {
    INGOT_ASSIGN_OR_RETURN(Expr zero_point, Parameter(node, 2, dims));
    INGOT_ASSIGN_OR_RETURN(zero_point, CastTo(node, std::move(zero_point), kFloat));
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("subtract", {x, zero_point}));
  }
  INGOT_ASSIGN_OR_RETURN(scale, CastTo(node, std::move(scale), kFloat));
  if (dtype == kFloat) return One(node.Call("multiply", {x, scale}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("multiply", {x, scale}));
  return One(node.Call("astype", {x}, {{"dtype", dtype}}));
}

// y, its scale and its zero point: the range of x, extended to contain 0, is mapped to 0 .. 255. If that range is only
// 0, the scale is 1. A range so small that its scale is 0 has the zero point 255, be it of 0 / 0: minimum(255, NaN) is
// 255 in the specification's function.
Outputs DynamicQuantizeLinear(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  const DataType uint8 = DataType::UInt(8);
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, kFloat));
  INGOT_ASSIGN_OR_RETURN(const Expr steps, node.Scalar(255, kFloat));
  INGOT_ASSIGN_OR_RETURN(Expr low, node.Bind("min", {x}));
  INGOT_ASSIGN_OR_RETURN(low, node.Bind("minimum", {low, zero}));
  INGOT_ASSIGN_OR_RETURN(Expr high, node.Bind("max", {x}));
  INGOT_ASSIGN_OR_RETURN(high, node.Bind("maximum", {high, zero}));
  INGOT_ASSIGN_OR_RETURN(const Expr range, node.Bind("subtract", {high, low}));
  INGOT_ASSIGN_OR_RETURN(const Expr one, node.Scalar(1, kFloat));
  INGOT_ASSIGN_OR_RETURN(const Expr quotient_of_range, node.Bind("divide", {range, steps}));
  INGOT_ASSIGN_OR_RETURN(const Expr is_zero, node.Bind("equal", {range, zero}));
  INGOT_ASSIGN_OR_RETURN(const Expr scale, node.Bind("where", {is_zero, one, quotient_of_range}));
  INGOT_ASSIGN_OR_RETURN(Expr start, node.Bind("subtract", {zero, low}));
  INGOT_ASSIGN_OR_RETURN(start, node.Bind("divide", {start, scale}));
  INGOT_ASSIGN_OR_RETURN(const Expr has_no_scale, node.Bind("equal", {scale, zero}));
  INGOT_ASSIGN_OR_RETURN(start, node.Bind("where", {has_no_scale, steps, start}));
  INGOT_ASSIGN_OR_RETURN(start, RoundInto(node, std::move(start), nullptr, uint8));
  INGOT_ASSIGN_OR_RETURN(const Expr zero_point, node.Bind("astype", {start}, {{"dtype", uint8}}));
  INGOT_ASSIGN_OR_RETURN(const Expr quotient, node.Bind("divide", {x, scale}));
  INGOT_ASSIGN_OR_RETURN(const Expr rounded, RoundInto(node, quotient, zero_point, uint8));
  INGOT_ASSIGN_OR_RETURN(Expr y, node.Call("astype", {rounded}, {{"dtype", uint8}}));
  return std::vector<Expr>{std::move(y), scale, zero_point};
}

// Which numbers a zero point or a scale may be: one for all, or also one for each row or column of a matrix, or for each
// output channel of a kernel.
enum class Along : uint8_t { kNone, kRows, kColumns, kOutputs };

// Returns an input such that it broadcasts to the tensor of these dims that it belongs to.
Result<Expr> Spread(const NodeImporter& node, size_t input, const std::vector<PrimExpr>& dims, Along along) {
  if (along == Along::kNone) return OneNumber(node, input);
  if (along != Along::kOutputs) return OfMatrix(node, input, dims, along == Along::kRows);
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, input));
  if (own.empty() || (own.size() == 1 && ir::IsConstInt(own[0], 1))) return node.Input(input);
  if (own.size() != 1) return node.Invalid("input " + std::to_string(input) + ": expected a number for each channel");
  INGOT_ASSIGN_OR_RETURN(Expr param, node.Input(input));
  std::vector<PrimExpr> spread(dims.size(), ir::Int64(1));
  spread[0] = own[0];
  INGOT_ASSIGN_OR_RETURN(param, node.Bind("reshape", {param, ShapeOf(spread)}));
  spread[0] = dims[0];
  return BroadcastInto(node, std::move(param), spread);
}

// Returns x, which is made of an input, minus that input's zero point, in a dtype that holds the difference.
Result<Expr> WithoutZeroPoint(const NodeImporter& node, Expr x, size_t zero_point, Along along, DataType dtype) {
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), dtype));
  if (!node.HasInput(zero_point)) return x;
  INGOT_ASSIGN_OR_RETURN(Expr zero, Spread(node, zero_point, DimsOf(x), along));
  INGOT_ASSIGN_OR_RETURN(zero, CastTo(node, std::move(zero), dtype));
  return node.Bind("subtract", {x, zero});
}
Result<Expr> WithoutZeroPoint(const NodeImporter& node, size_t input, size_t zero_point, Along along) {
  INGOT_RETURN_IF_ERROR(StaticRankDims(node, input).status());
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(input));
  return WithoutZeroPoint(node, std::move(x), zero_point, along, kInt32);
}

// Where inputs of a product are: its factors, and their zero points.
struct ProductInputs {
  size_t a, b, a_zero, b_zero;
};

// Whether the op matmul_integer takes the inputs: bytes, and zero points that are the same along the summed axis
// whatever their symbols are.
Result<bool> IsByteProduct(const NodeImporter& node, const ProductInputs& in) {
  for (const auto& [input, zero, summed] : {std::array<size_t, 3>{in.a, in.a_zero, 1}, {in.b, in.b_zero, 2}}) {
    INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(input));
    if (type->dtype != DataType::Int(8) && type->dtype != DataType::UInt(8)) return false;
    if (type->rank < 1) return false;
    if (!node.HasInput(zero)) continue;
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, zero));
    const bool is_list = dims.size() == 1 && !ir::IsConstInt(dims[0], 1);
    if (is_list && type->rank < 2) return false;
    if (!is_list && dims.size() >= summed && !ir::IsConstInt(dims[dims.size() - summed], 1)) return false;
  }
  return true;
}

// An operator and its arguments.
struct RowCall {
  std::string_view row;
  std::vector<Expr> args;
};

// Returns the call that multiplies two inputs without their zero points in int32.
Result<RowCall> ProductOfIntegers(const NodeImporter& node, const ProductInputs& in) {
  INGOT_ASSIGN_OR_RETURN(const bool is_byte_product, IsByteProduct(node, in));
  if (!is_byte_product) {
    INGOT_ASSIGN_OR_RETURN(const Expr a, WithoutZeroPoint(node, in.a, in.a_zero, Along::kRows));
    INGOT_ASSIGN_OR_RETURN(const Expr b, WithoutZeroPoint(node, in.b, in.b_zero, Along::kColumns));
    return RowCall{"matmul", {a, b}};
  }
  RowCall product{"matmul_integer", {}};
  for (size_t input : {in.a, in.b}) {
    INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(input));
    product.args.push_back(std::move(x));
  }
  for (const auto& [input, zero, along] :
       {std::tuple(in.a, in.a_zero, Along::kRows), std::tuple(in.b, in.b_zero, Along::kColumns)}) {
    INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(input));
    Result<Expr> point = node.HasInput(zero) ? Spread(node, zero, *type->dims, along) : node.Scalar(0, *type->dtype);
    INGOT_RETURN_IF_ERROR(point.status());
    product.args.push_back(*std::move(point));
  }
  return product;
}

Outputs MatMulInteger(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(RowCall product, ProductOfIntegers(node, {0, 1, 2, 3}));
  return One(node.Call(product.row, std::move(product.args)));
}

// The attributes of a window over one axis as those over two, of which the first is a single row.
ir::Attrs AttrsOfOneRow(ir::Attrs attrs) {
  for (const auto& [name, value] : {std::pair("strides", 1), {"dilation", 1}, {"padding", 0}}) {
    std::vector<int64_t> values;
    for (int64_t own : attrs.GetInts(name)) values.insert(values.end(), {value, own});
    attrs = attrs.With(name, AttrValue::Ints(values));
  }
  return attrs;
}

// How the sums of an integer convolution are computed.
enum class ConvSums : uint8_t {
  kInt32,  // of tensors in int32
  kInt16,  // of pairs of int16, in int32: many channels
  kFloat,  // in float32, in which they are exact: few channels per group
};

// Bytes without their zero points are at most 255, so that a float32 holds the sums of 258 products.
ConvSums SumsOf(const ConvCall& conv, bool are_bytes) {
  constexpr int64_t kMostExact = (int64_t{1} << 24) / (255 * 255);
  int64_t taps = 1;
  for (size_t i = 1; i < conv.weight.size(); ++i) {
    const auto extent = ir::AsConstInt(conv.weight[i]);
    if (!extent || *extent > kMostExact) {
      taps = kMostExact + 1;
      break;
    }
    taps *= std::max<int64_t>(*extent, 1);
  }
  if (!are_bytes) return ConvSums::kInt32;
  const bool is_exact = taps <= kMostExact;
  const int64_t groups = conv.attrs.GetInt("groups");
  const int64_t width = ir::AsConstInt(conv.weight[1]).value_or(0);
  const int64_t outputs = ir::AsConstInt(conv.weight[0]).value_or(0) / std::max<int64_t>(groups, 1);
  const bool words_pay = op::WordsPay(groups, width, outputs);
  return is_exact && (!words_pay || conv.data.size() == 5) ? ConvSums::kFloat : ConvSums::kInt16;
}

// Where inputs of a convolution are: its factors, and their zero points.
struct ConvInputs {
  size_t x, weight, x_zero, weight_zero;
};

// A convolution of two inputs without their zero points in int32, which may be computed as one of images: then what
// follows element by element is applied to images, too, before the axes are restored.
struct ConvSum {
  Expr product;
  size_t rank;
  std::function<Result<Expr>(Expr)> restore;
};

// A convolution over volumes as one over images: the planes that a window covers become channels, those of one group
// side by side, and each place along the depth an image.
class DepthAsChannels {
 public:
  DepthAsChannels(const NodeImporter& node, const ConvCall& conv)
      : node_(node), conv_(conv), groups_(conv.attrs.GetInt("groups")) {
    stride_ = conv.attrs.GetInts("strides")[0];
    dilation_ = conv.attrs.GetInts("dilation")[0];
    const std::vector<int64_t> padding = conv.attrs.GetInts("padding");
    before_ = padding[0];
    after_ = padding[3];
    taps_ = ir::AsConstInt(conv.weight[2]).value_or(0);
    const PrimExpr covered = conv.data[2] + (before_ + after_ - dilation_ * (taps_ - 1) - 1);
    places_ = op::SimplifyDim(ir::FloorDiv(covered, ir::Int64(stride_)) + 1);
  }

  // Whether the sizes are those that this takes.
  bool Fits() const {
    return conv_.same.empty() && taps_ > 0 && ir::AsConstInt(conv_.data[1]) && *ir::AsConstInt(conv_.data[1]) > 0;
  }

  // The attributes of the convolution over images.
  ir::Attrs Attrs() const {
    ir::Attrs attrs = conv_.attrs;
    for (const char* name : {"strides", "dilation"}) {
      std::vector<int64_t> values = attrs.GetInts(name);
      values.erase(values.begin());
      attrs = attrs.With(name, AttrValue::Ints(values));
    }
    std::vector<int64_t> padding = attrs.GetInts("padding");
    padding.erase(padding.begin() + 3);
    padding.erase(padding.begin());
    return attrs.With("padding", AttrValue::Ints(padding));
  }

  // [n, c, d, h, w] -> [n * places, taps * c, h, w], with `zero` around the data along the depth.
  Result<Expr> Images(Expr x, double zero) const {
    const std::vector<PrimExpr>& dims = conv_.data;
    if (before_ != 0 || after_ != 0) {
      INGOT_ASSIGN_OR_RETURN(x, node_.Bind("nn.pad", {x},
                                           {{"pad_width", AttrValue::Ints({0, 0, 0, 0, before_, after_, 0, 0, 0, 0})},
                                            {"pad_value", zero}}));
    }
    const PrimExpr own = ir::Int64(*ir::AsConstInt(dims[1]) / groups_);
    const auto list = [](PrimExpr value) { return PrimTuple(std::vector<PrimExpr>{std::move(value)}); };
    std::vector<Expr> planes;
    std::vector<ir::Type> types;
    for (int64_t tap = 0; tap < taps_; ++tap) {
      const PrimExpr begin = ir::Int64(tap * dilation_);
      const PrimExpr end = op::SimplifyDim(begin + (places_ - 1) * stride_ + 1);
      INGOT_ASSIGN_OR_RETURN(
          Expr plane,
          node_.Bind("strided_slice", {x, list(ir::Int64(2)), list(begin), list(end), list(ir::Int64(stride_))},
                     {{"assume_inbound", true}}));
      INGOT_ASSIGN_OR_RETURN(plane,
                             ReshapeTo(node_, plane, {dims[0], ir::Int64(groups_), own, places_, dims[3], dims[4]}));
      types.push_back(plane->type);
      planes.push_back(std::move(plane));
    }
    Expr all = planes[0];
    if (planes.size() > 1) {
      const Expr tuple = ir::Make<ir::TupleNode>(planes, ir::Make<ir::TupleTypeNode>(types));
      INGOT_ASSIGN_OR_RETURN(all, node_.Bind("concat", {tuple}, {{"axis", int64_t{2}}}));
    }
    INGOT_ASSIGN_OR_RETURN(all, Permuted(node_, all, {0, 3, 1, 2, 4, 5}));
    const PrimExpr channels = op::SimplifyDim(dims[1] * taps_);
    return ReshapeTo(node_, all, {op::SimplifyDim(dims[0] * places_), channels, dims[3], dims[4]});
  }

  // [o, c, d, h, w] -> [o, taps * c, h, w].
  Result<Expr> Weights(Expr weight) const {
    const std::vector<PrimExpr>& dims = conv_.weight;
    INGOT_ASSIGN_OR_RETURN(weight, Permuted(node_, weight, {0, 2, 1, 3, 4}));
    return ReshapeTo(node_, weight, {dims[0], op::SimplifyDim(dims[1] * taps_), dims[3], dims[4]});
  }

  // [n * places, o, h, w] -> [n, o, places, h, w].
  Result<Expr> Volume(const Expr& images) const {
    const std::vector<PrimExpr>& dims = *ir::As<ir::TensorTypeNode>(images->type)->dims;
    INGOT_ASSIGN_OR_RETURN(const Expr apart,
                           ReshapeTo(node_, images, {conv_.data[0], places_, dims[1], dims[2], dims[3]}));
    return Permuted(node_, apart, {0, 2, 1, 3, 4});
  }

 private:
  const NodeImporter& node_;
  const ConvCall& conv_;
  int64_t groups_, stride_ = 1, dilation_ = 1, before_ = 0, after_ = 0, taps_ = 0;
  PrimExpr places_;
};

// Returns the number of the dtype that an optional input is, 0 if it is not there; nothing if it is computed, a list or of
// another dtype.
Result<std::optional<double>> NumberOf(const NodeImporter& node, size_t input, DataType dtype) {
  if (!node.HasInput(input)) return std::optional<double>(0);
  INGOT_ASSIGN_OR_RETURN(const Expr value, node.Input(input));
  const auto* constant = ir::As<ir::ConstantNode>(value);
  if (constant == nullptr || constant->data->num_elements() != 1 || constant->data->dtype() != dtype) {
    return std::optional<double>();
  }
  const op::ReferenceTensor number =
      op::UnpackReference(constant->data->dtype(), constant->data->dims(), constant->data->bytes());
  return std::optional<double>(op::GetNumber(number, 0));
}

Result<ConvSum> ConvOfIntegers(const NodeImporter& node, const ConvCall& conv, const ConvInputs& in) {
  bool are_bytes = true;
  for (size_t input : {in.x, in.weight}) {
    INGOT_ASSIGN_OR_RETURN(const DataType dtype, node.ElementType(input));
    are_bytes = are_bytes && dtype.is_integral() && dtype.bits == 8;
  }
  const ConvSums sums = SumsOf(conv, are_bytes);
  const DataType factors = sums == ConvSums::kFloat ? kFloat : sums == ConvSums::kInt16 ? DataType::Int(16) : kInt32;
  ConvSum result{nullptr, conv.data.size(), {}};
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(in.x));
  INGOT_ASSIGN_OR_RETURN(Expr weight, node.Input(in.weight));
  std::string row = conv.row;
  ir::Attrs attrs = conv.attrs;
  result.restore = [&node, &conv](Expr product) { return MatchSame(node, std::move(product), conv.same); };
  const bool is_row = sums == ConvSums::kInt16 && conv.data.size() == 3;  // is an image of one row
  const ir::Attrs rows{{"axis", AttrValue::Ints({2})}};
  if (is_row) {
    row = "nn.conv2d";
    attrs = AttrsOfOneRow(attrs);
    INGOT_ASSIGN_OR_RETURN(weight, node.Bind("expand_dims", {weight}, rows));
    result.restore = [&node, &conv, rows](Expr product) -> Result<Expr> {
      INGOT_ASSIGN_OR_RETURN(product, node.Bind("squeeze", {product}, rows));
      return MatchSame(node, std::move(product), conv.same);
    };
  }
  if (is_row && conv.same.empty()) {
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("expand_dims", {x}, rows));
  }
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, node.ElementType(in.x));
  INGOT_ASSIGN_OR_RETURN(const std::optional<double> zero, NumberOf(node, in.x_zero, dtype));
  if (conv.data.size() == 5) {
    auto volume = std::make_shared<DepthAsChannels>(node, conv);
    if (sums == ConvSums::kInt16 && zero && volume->Fits()) {
      row = "nn.conv2d";
      attrs = volume->Attrs();
      INGOT_ASSIGN_OR_RETURN(x, volume->Images(std::move(x), *zero));
      INGOT_ASSIGN_OR_RETURN(weight, volume->Weights(std::move(weight)));
      result.restore = [volume](const Expr& product) { return volume->Volume(product); };
    }
  }
  INGOT_ASSIGN_OR_RETURN(x, WithoutZeroPoint(node, std::move(x), in.x_zero, Along::kNone, factors));
  INGOT_ASSIGN_OR_RETURN(weight, WithoutZeroPoint(node, std::move(weight), in.weight_zero, Along::kOutputs, factors));
  INGOT_ASSIGN_OR_RETURN(x, PadSame(node, std::move(x), conv.same));
  if (is_row && !conv.same.empty()) {
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("expand_dims", {x}, rows));
  }
  result.rank = ir::As<ir::TensorTypeNode>(x->type)->dims->size();
  INGOT_ASSIGN_OR_RETURN(
      result.product, node.Bind(row, {x, weight}, attrs.With("out_dtype", sums == ConvSums::kFloat ? kFloat : kInt32)));
  INGOT_ASSIGN_OR_RETURN(result.product, CastTo(node, std::move(result.product), kInt32));
  return result;
}

Outputs ConvInteger(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const ConvCall conv, ReadConv(node, 0, 1));
  INGOT_ASSIGN_OR_RETURN(const ConvSum sum, ConvOfIntegers(node, conv, {0, 1, 2, 3}));
  return One(sum.restore(sum.product));
}

// product * (a_scale * b_scale / y_scale) + y_zero_point, in the dtype of the zero point; all broadcast to the product.
Outputs Requantize(const NodeImporter& node, Expr product, const std::array<Expr, 3>& scales, const Expr& zero) {
  std::array<Expr, 3> wide;
  for (size_t i = 0; i < 3; ++i) {
    INGOT_ASSIGN_OR_RETURN(wide[i], CastTo(node, scales[i], kFloat));
  }
  INGOT_ASSIGN_OR_RETURN(Expr factor, node.Bind("multiply", {wide[0], wide[1]}));
  INGOT_ASSIGN_OR_RETURN(factor, node.Bind("divide", {factor, wide[2]}));
  INGOT_ASSIGN_OR_RETURN(product, CastTo(node, std::move(product), kFloat));
  INGOT_ASSIGN_OR_RETURN(product, node.Bind("multiply", {product, factor}));
  return RoundTo(node, std::move(product), zero, DTypeOf(zero));
}

// Inputs: a, its scale, its zero point, b, its scale, its zero point, the result's scale and zero point.
Outputs QLinearMatMul(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(RowCall call, ProductOfIntegers(node, {0, 3, 2, 5}));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> a, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> b, StaticRankDims(node, 3));
  INGOT_ASSIGN_OR_RETURN(Expr product, node.Bind(call.row, std::move(call.args)));
  const std::vector<PrimExpr> dims = DimsOf(product);
  INGOT_ASSIGN_OR_RETURN(Expr a_scale, Spread(node, 1, a, Along::kRows));
  INGOT_ASSIGN_OR_RETURN(Expr b_scale, Spread(node, 4, b, Along::kColumns));
  INGOT_ASSIGN_OR_RETURN(Expr y_scale, Spread(node, 6, dims, Along::kRows));
  INGOT_ASSIGN_OR_RETURN(const Expr zero, Spread(node, 7, dims, Along::kRows));
  return Requantize(node, std::move(product), {a_scale, b_scale, y_scale}, zero);
}

// Like QLinearMatMul, with x and w, and a bias in int32 of scale x_scale * w_scale; the weight's parameters are per
// output channel.
Outputs QLinearConv(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const ConvCall conv, ReadConv(node, 0, 3));
  INGOT_ASSIGN_OR_RETURN(ConvSum sum, ConvOfIntegers(node, conv, {0, 3, 2, 5}));
  Expr product = std::move(sum.product);
  std::vector<PrimExpr> outputs(sum.rank - 1, ir::Int64(1));  // dims of what is spread over the axes behind the first
  outputs[0] = conv.weight[0];
  if (node.HasInput(8)) {
    INGOT_ASSIGN_OR_RETURN(Expr bias, PerChannel(node, 8, conv.weight[0]));
    INGOT_ASSIGN_OR_RETURN(bias, node.Bind("reshape", {bias, ShapeOf(outputs)}));
    INGOT_ASSIGN_OR_RETURN(product, node.Bind("add", {product, bias}));
  }
  INGOT_ASSIGN_OR_RETURN(Expr x_scale, OneNumber(node, 1));
  INGOT_ASSIGN_OR_RETURN(Expr w_scale, Spread(node, 4, outputs, Along::kOutputs));
  INGOT_ASSIGN_OR_RETURN(Expr y_scale, OneNumber(node, 6));
  INGOT_ASSIGN_OR_RETURN(const Expr zero, OneNumber(node, 7));
  INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> results,
                         Requantize(node, std::move(product), {x_scale, w_scale, y_scale}, zero));
  return One(sum.restore(results[0]));
}

constexpr OnnxOpRow kQuantizationRows[] = {
    {"ConvInteger", nullptr, ConvInteger},
    {"DequantizeLinear", nullptr, DequantizeLinear},
    {"DynamicQuantizeLinear", nullptr, DynamicQuantizeLinear},
    {"MatMulInteger", nullptr, MatMulInteger},
    {"QLinearConv", nullptr, QLinearConv},
    {"QLinearMatMul", nullptr, QLinearMatMul},
    {"QuantizeLinear", nullptr, QuantizeLinear},
};

}  // namespace

std::span<const OnnxOpRow> QuantizationOnnxOps() { return kQuantizationRows; }

}  // namespace ingot::importer
