// Each helper is one or two calls of operators through NodeImporter.
#include "compiler/importer/ops/util.h"

#include <algorithm>
#include <array>

#include "compiler/arith/analyzer.h"
#include "compiler/importer/build.h"
#include "compiler/ir/float_format.h"
#include "compiler/op/infer.h"
#include "compiler/op/packed_elements.h"

namespace ingot::importer {

Result<std::vector<PrimExpr>> StaticRankDims(const NodeImporter& node, size_t input) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(input));
  return *type->dims;
}

Expr PrimTuple(const std::vector<PrimExpr>& values) {
  std::vector<Expr> fields;
  std::vector<ir::Type> types;
  for (const PrimExpr& value : values) {
    fields.push_back(ir::Make<ir::PrimValueNode>(value));
    types.push_back(fields.back()->type);
  }
  return ir::Make<ir::TupleNode>(std::move(fields), ir::Make<ir::TupleTypeNode>(std::move(types)));
}
Expr PrimTuple(const std::vector<int64_t>& values) {
  std::vector<PrimExpr> exprs;
  for (int64_t value : values) exprs.push_back(ir::Int64(value));
  return PrimTuple(exprs);
}

Result<Expr> CastTo(const NodeImporter& node, Expr x, DataType dtype) {
  const auto* type = ir::As<ir::TensorTypeNode>(x->type);
  if (type != nullptr && type->dtype == dtype) return x;
  return node.Bind("astype", {std::move(x)}, {{"dtype", dtype}});
}

DataType StepType(DataType dtype) { return dtype.is_floating() && dtype.bits < 32 ? DataType::Float(32) : dtype; }

const std::vector<PrimExpr>& DimsOf(const Expr& x) { return *ir::As<ir::TensorTypeNode>(x->type)->dims; }
DataType DTypeOf(const Expr& x) { return *ir::As<ir::TensorTypeNode>(x->type)->dtype; }

Expr ShapeOf(std::vector<PrimExpr> dims) { return ir::Make<ir::ShapeExprNode>(std::move(dims)); }

PrimExpr Product(std::span<const PrimExpr> dims) {
  PrimExpr product = ir::Int64(1);
  for (const PrimExpr& dim : dims) product = product * dim;
  return arith::Analyzer().Simplify(product);
}

Result<int64_t> NormaliseAxis(const NodeImporter& node, int64_t axis, int64_t rank, bool end_allowed) {
  const int64_t limit = end_allowed ? rank + 1 : rank;
  if (axis >= -rank && axis < limit) return axis < 0 ? axis + rank : axis;
  return node.Invalid("axis " + std::to_string(axis) + " is outside of rank " + std::to_string(rank));
}

Result<int64_t> AxisOf(const NodeImporter& node, const char* name, int64_t default_value, size_t input) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, input));
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, node.Int(name, default_value));
  return NormaliseAxis(node, axis, static_cast<int64_t>(in.size()));
}

Outputs One(Result<Expr> value) {
  if (!value.ok()) return std::move(value).status();
  return std::vector<Expr>{*std::move(value)};
}

Outputs Fields(Result<Expr> call) {
  if (!call.ok()) return std::move(call).status();
  const auto* type = ir::As<ir::TupleTypeNode>((*call)->type);
  if (type == nullptr) return std::vector<Expr>{*std::move(call)};
  std::vector<Expr> fields;
  for (size_t i = 0; i < type->fields.size(); ++i) {
    fields.push_back(ir::Make<ir::TupleGetItemNode>(*call, static_cast<int64_t>(i), type->fields[i]));
  }
  return fields;
}

Expr WithDims(const NodeImporter& node, Expr x, std::vector<PrimExpr> dims) {
  const auto* type = ir::As<ir::TensorTypeNode>(x->type);
  const bool is_proved = type->dims && std::ranges::equal(*type->dims, dims, op::DimsEqual);
  if (is_proved) return x;
  const auto dtype = type->dtype;
  return node.Match(std::move(x), ir::Make<ir::TensorTypeNode>(std::move(dims), dtype));
}

Result<Expr> BroadcastInto(const NodeImporter& node, Expr x, const std::vector<PrimExpr>& dims) {
  const std::vector<PrimExpr>& own = *ir::As<ir::TensorTypeNode>(x->type)->dims;
  bool is_proved = own.size() <= dims.size();
  for (size_t i = 1; is_proved && i <= own.size(); ++i) {
    const PrimExpr& dim = own[own.size() - i];
    is_proved = ir::IsConstInt(dim, 1) || op::DimsEqual(dim, dims[dims.size() - i]);
  }
  if (is_proved) return x;
  return node.Bind("broadcast_to", {std::move(x), ShapeOf(dims)});
}

Result<Expr> InputOfDims(const NodeImporter& node, size_t input, std::vector<PrimExpr> dims) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, input));
  if (!std::ranges::equal(own, dims, [](const PrimExpr& a, const PrimExpr& b) { return !op::DimsDiffer(a, b); })) {
    return node.Invalid("input " + std::to_string(input) + ": its dims do not fit those of the other inputs");
  }
  return WithDims(node, std::move(x), std::move(dims));
}

Result<Expr> PerChannel(const NodeImporter& node, size_t input, const PrimExpr& channels) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, input));
  if (dims.size() != 1 || op::DimsDiffer(dims[0], channels)) {
    return node.Invalid("input " + std::to_string(input) + ": expected a number for each channel");
  }
  return WithDims(node, x, {channels});
}

Result<Expr> OneNumber(const NodeImporter& node, size_t input) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, input));
  if (dims.empty()) return x;
  if (dims.size() != 1 || op::DimsDiffer(dims[0], ir::Int64(1))) {
    return node.Invalid("input " + std::to_string(input) + ": expected one number");
  }
  return WithDims(node, x, {ir::Int64(1)});
}

Result<Expr> OfMatrix(const NodeImporter& node, size_t input, std::vector<PrimExpr> dims, bool by_row) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, input));
  if (own.empty() || (own.size() == 1 && ir::IsConstInt(own[0], 1))) return x;
  if (dims.size() < 2) return OneNumber(node, input);
  const PrimExpr one = ir::Int64(1);
  dims[dims.size() - (by_row ? 1 : 2)] = one;
  const auto refused = [&] {
    return node.Invalid("input " + std::to_string(input) + ": expected one number, or one for each " +
                        (by_row ? "row" : "column"));
  };
  if (own.size() == 1) {
    const PrimExpr& count = dims[dims.size() - (by_row ? 2 : 1)];
    if (op::DimsDiffer(own[0], count) && op::DimsDiffer(own[0], one)) return refused();
    if (!by_row) return BroadcastInto(node, std::move(x), {count});
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf({own[0], one})}));
    return BroadcastInto(node, std::move(x), {count, one});
  }
  if (!std::ranges::equal(own, dims, [](const PrimExpr& a, const PrimExpr& b) { return !op::DimsDiffer(a, b); })) {
    return refused();
  }
  return WithDims(node, std::move(x), std::move(dims));
}

Result<Expr> ReshapeTo(const NodeImporter& node, Expr x, std::vector<PrimExpr> dims) {
  return node.Call("reshape", {std::move(x), ShapeOf(std::move(dims))});
}

Result<Expr> Permuted(const NodeImporter& node, Expr x, const std::vector<int64_t>& axes) {
  return node.Bind("permute_dims", {std::move(x)}, {{"axes", AttrValue::Ints(axes)}});
}

Result<std::pair<Expr, Expr>> Halves(const NodeImporter& node, const Expr& x) {
  std::vector<PrimExpr> dims = DimsOf(x);
  if (dims.empty()) return node.Invalid("there is no last axis");
  const PrimExpr half = op::SimplifyDim(ir::FloorDiv(dims.back(), ir::Int64(2))), all = op::SimplifyDim(half * 2);
  if (op::DimsDiffer(dims.back(), all)) return node.Invalid("the last axis has no two halves");
  const PrimExpr axis = ir::Int64(std::ssize(dims) - 1);
  dims.back() = all;
  const Expr whole = WithDims(node, x, std::move(dims));
  const auto part = [&](const PrimExpr& begin, const PrimExpr& end) {
    return node.Bind("strided_slice", {whole, PrimTuple(std::vector<PrimExpr>{axis}),
                                       PrimTuple(std::vector<PrimExpr>{begin}), PrimTuple(std::vector<PrimExpr>{end})});
  };
  INGOT_ASSIGN_OR_RETURN(Expr first, part(ir::Int64(0), half));
  INGOT_ASSIGN_OR_RETURN(Expr second, part(half, all));
  return std::pair(std::move(first), std::move(second));
}

Result<Expr> CountedUp(const NodeImporter& node, const PrimExpr& count, std::vector<PrimExpr> dims) {
  INGOT_ASSIGN_OR_RETURN(
      const Expr numbers,
      node.Bind("arange", {Number(ir::Int64(0)), Number(count), Number(ir::Int64(1))}, {{"dtype", kIndex}}));
  return node.Bind("reshape", {numbers, ShapeOf(std::move(dims))});
}

Result<Expr> MiddleIfAlone(const NodeImporter& node, Expr places, const PrimExpr& count, const Expr& start,
                           const Expr& end, const Expr& extent) {
  if (const auto number = ir::AsConstInt(count); number && *number != 1) return places;
  const PrimExpr zero = ir::Int64(0), one = ir::Int64(1);
  INGOT_ASSIGN_OR_RETURN(const Expr half, node.Scalar(0.5, DTypeOf(places)));
  INGOT_ASSIGN_OR_RETURN(Expr middle, node.Bind("add", {start, end}));
  INGOT_ASSIGN_OR_RETURN(middle, node.Bind("multiply", {middle, half}));
  INGOT_ASSIGN_OR_RETURN(middle, node.Bind("multiply", {middle, extent}));
  INGOT_ASSIGN_OR_RETURN(Expr is_one,
                         node.Bind("shape_to_tensor", {ShapeOf({ir::Select(ir::Equal(count, one), one, zero)})}));
  INGOT_ASSIGN_OR_RETURN(is_one, CastTo(node, std::move(is_one), DataType::Bool()));
  return node.Bind("where", {is_one, middle, places});
}

Result<Expr> FramePlaces(const NodeImporter& node, const PrimExpr& frames, const PrimExpr& step,
                         const PrimExpr& length) {
  const PrimExpr one = ir::Int64(1);
  INGOT_ASSIGN_OR_RETURN(Expr begins, CountedUp(node, frames, {frames, one}));
  INGOT_ASSIGN_OR_RETURN(const Expr stride, node.Bind("shape_to_tensor", {ShapeOf({step})}));
  INGOT_ASSIGN_OR_RETURN(begins, node.Bind("multiply", {begins, stride}));
  INGOT_ASSIGN_OR_RETURN(const Expr inside, CountedUp(node, length, {one, length}));
  return node.Bind("add", {begins, inside});
}

Result<Expr> Unpacked(Expr x) {
  const auto* constant = ir::As<ir::ConstantNode>(x);
  if (constant != nullptr && constant->data->dtype() == kStringElement) {
    const std::span<const std::byte> places = constant->data->bytes();
    return Expr(ir::Make<ir::ConstantNode>(
        ir::ConstantData::FromBytes(DataType::Int(64), constant->data->dims(), {places.begin(), places.end()}),
        constant->name));
  }
  if (constant == nullptr || !op::IsPackedElement(constant->data->dtype())) return x;
  const ir::ConstantData& packed = *constant->data;
  const DataType from = packed.dtype(), to = op::ByteDataType(from);
  std::array<std::byte, 16> byte_of{};  // by code
  for (uint64_t code = 0; code < uint64_t{1} << from.bits; ++code) {
    const uint64_t bits = from.is_floating() ? ir::EncodeFloat(to, ir::DecodeFloat(from, code))
                                             : static_cast<uint64_t>(ir::WrapInt(from, static_cast<int64_t>(code)));
    byte_of[code] = static_cast<std::byte>(bits);
  }
  std::vector<std::byte> bytes(static_cast<size_t>(packed.num_elements()));
  const size_t per_byte = 8 / from.bits;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned>(packed.bytes()[i / per_byte]);
    bytes[i] = byte_of[byte >> (i % per_byte * from.bits) & ((1u << from.bits) - 1)];
  }
  auto data = ir::ConstantData::FromBytes(to, packed.dims(), std::move(bytes));
  return Expr(ir::Make<ir::ConstantNode>(std::move(data), constant->name));
}

namespace {

// The nearest power of two of each number's size, as ONNX rounds to float8_e8m0fnu, which has nothing else: its code is
// the exponent of a float32. Smaller and larger numbers become the least and the greatest one (saturate), or NaN.
Result<Expr> ToPowersOfTwo(const NodeImporter& node, Expr x, DataType dtype) {
  const DataType word = DataType::Int(32);
  INGOT_ASSIGN_OR_RETURN(const int64_t saturate, node.Int("saturate", 1));
  INGOT_ASSIGN_OR_RETURN(const std::string mode, node.String("round_mode", "up"));
  if (mode != "up" && mode != "down" && mode != "nearest") return node.Invalid("round_mode is \"" + mode + "\"");
  const auto number = [&](int64_t value) { return node.Scalar(value, word); };
  constexpr int64_t kOne = int64_t{1} << 23;  // the bits of the least normal number, and a step of the exponent
  // What is added before the mantissa is cut off, and the greatest subnormal number that becomes 2^-127.
  const int64_t added = mode == "up" ? kOne - 1 : mode == "nearest" ? kOne / 2 : 0;
  const int64_t least = mode == "up" ? kOne / 2 : mode == "nearest" ? kOne / 2 + kOne / 4 - 1 : kOne;
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), DataType::Float(32)));
  INGOT_ASSIGN_OR_RETURN(const Expr is_nan, node.Bind("isnan", {x}));
  INGOT_ASSIGN_OR_RETURN(const Expr size, node.Bind("abs", {x}));
  INGOT_ASSIGN_OR_RETURN(const Expr bits, node.Bind("bitcast", {size}, {{"dtype", word}}));
  INGOT_ASSIGN_OR_RETURN(Expr code, number(added));
  INGOT_ASSIGN_OR_RETURN(code, node.Bind("add", {bits, code}));
  INGOT_ASSIGN_OR_RETURN(const Expr mantissa, number(23));
  INGOT_ASSIGN_OR_RETURN(code, node.Bind("right_shift", {code, mantissa}));
  INGOT_ASSIGN_OR_RETURN(Expr limit, number(least));
  INGOT_ASSIGN_OR_RETURN(Expr subnormal, node.Bind("greater", {bits, limit}));
  INGOT_ASSIGN_OR_RETURN(subnormal, CastTo(node, std::move(subnormal), word));
  INGOT_ASSIGN_OR_RETURN(limit, number(kOne));
  INGOT_ASSIGN_OR_RETURN(Expr is_below, node.Bind("less", {bits, limit}));
  INGOT_ASSIGN_OR_RETURN(code, node.Bind("where", {is_below, subnormal, code}));
  INGOT_ASSIGN_OR_RETURN(const Expr nan, number(255));
  if (saturate != 0) {
    INGOT_ASSIGN_OR_RETURN(const Expr greatest, number(254));
    INGOT_ASSIGN_OR_RETURN(code, node.Bind("minimum", {code, greatest}));
  } else {
    INGOT_ASSIGN_OR_RETURN(limit, number(kOne / 2));
    INGOT_ASSIGN_OR_RETURN(is_below, node.Bind("less", {bits, limit}));
    INGOT_ASSIGN_OR_RETURN(code, node.Bind("where", {is_below, nan, code}));
  }
  INGOT_ASSIGN_OR_RETURN(code, node.Bind("where", {is_nan, nan, code}));
  INGOT_ASSIGN_OR_RETURN(code, CastTo(node, std::move(code), DataType::UInt(8)));
  return node.Call("bitcast", {code}, {{"dtype", dtype}});
}

}  // namespace

Result<Expr> ConvertTo(const NodeImporter& node, Expr x, DataType dtype) {
  if (op::IsPackedElement(dtype)) return node.Call("narrow", {std::move(x)}, {{"dtype", dtype}});
  const auto* type = ir::As<ir::TensorTypeNode>(x->type);
  if (type == nullptr || !type->dtype) return node.Unsupported("a value of unknown type");
  if (type->dtype == dtype) return x;
  if (dtype.code == TypeCode::kFloat8E8M0FNU) return ToPowersOfTwo(node, std::move(x), dtype);
  INGOT_ASSIGN_OR_RETURN(const int64_t saturate, node.Int("saturate", 1));
  if (dtype.is_floating() && dtype.bits == 8 && saturate != 0) {
    if (!type->dtype->is_floating() || type->dtype->bits == 8) {  // which may lack the limit
      INGOT_ASSIGN_OR_RETURN(x, node.Bind("astype", {x}, {{"dtype", DataType::Float(32)}}));
    }
    const DataType from = *ir::As<ir::TensorTypeNode>(x->type)->dtype;
    const double limit = ir::LargestFinite(dtype);
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("clip", {x, ir::Make<ir::PrimValueNode>(ir::FloatImm(from, -limit)),
                                                 ir::Make<ir::PrimValueNode>(ir::FloatImm(from, limit))}));
  }
  return node.Call("astype", {x}, {{"dtype", dtype}});
}

// The axes are an attribute until opset 12 and an input from 13 on.
Result<std::vector<int64_t>> AxesOf(const NodeImporter& node) {
  if (node.HasInput(1)) return node.ConstantInts(1, "the axes");
  return node.Ints("axes", {});
}

}  // namespace ingot::importer
