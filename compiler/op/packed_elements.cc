// Conversions between packed elements, elements of a byte, and bits. Several elements share a byte, the first one in
// the lowest bits; what is left of the last byte is 0.
#include "compiler/op/packed_elements.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/ir/float_format.h"
#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/fold.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/elementwise.h"
#include "runtime/float4.h"

namespace ingot::op {
namespace {

using ir::Intrinsic;
using ir::PrimExpr;

const DataType kByte = DataType::UInt(8);
const DataType kWord = DataType::Int(32);
const DataType kE4M3 = DataType(TypeCode::kFloat8E4M3FN, 8);

PrimExpr WordOf(int64_t value) { return ir::IntImm(kWord, value); }
PrimExpr BitAnd(PrimExpr x, int64_t mask) {
  return ir::CallIntrinsic(Intrinsic::kBitwiseAnd, {std::move(x), WordOf(mask)});
}
PrimExpr BitOr(PrimExpr x, PrimExpr y) {
  return ir::CallIntrinsic(Intrinsic::kBitwiseOr, {std::move(x), std::move(y)});
}
PrimExpr Left(PrimExpr x, PrimExpr bits) {
  return ir::CallIntrinsic(Intrinsic::kShiftLeft, {std::move(x), std::move(bits)});
}
PrimExpr Right(PrimExpr x, PrimExpr bits) {
  return ir::CallIntrinsic(Intrinsic::kShiftRight, {std::move(x), std::move(bits)});
}
PrimExpr BitsAs(DataType dtype, PrimExpr x) {
  return ir::Make<ir::PrimCallNode>(dtype, Intrinsic::kReinterpret, std::vector<PrimExpr>{std::move(x)});
}

int64_t MaskOf(DataType packed) { return (int64_t{1} << packed.bits) - 1; }
int64_t PerByte(DataType packed) { return 8 / packed.bits; }

// The low bits of an int32 as a number of the packed integer dtype.
PrimExpr KeepBits(PrimExpr word, DataType packed) {
  if (!packed.is_int()) return ir::Cast(kByte, BitAnd(std::move(word), MaskOf(packed)));
  const PrimExpr unused = WordOf(32 - packed.bits);
  return ir::Cast(DataType::Int(8), Right(Left(std::move(word), unused), unused));
}

Result<DataType> PackedAttr(const ir::Call& call) {
  const std::optional<DataType> dtype = DataTypeAttr(call, "dtype");
  if (dtype && IsPackedElement(*dtype)) return *dtype;
  return OpError(call, "expected a dtype of less than a byte, got " + (dtype ? dtype->ToString() : "None"));
}

Result<ir::Type> WithSameDims(const ir::TensorType& x, DataType dtype) {
  if (x->dims) return TensorOf(*x->dims, dtype, x);
  return TensorOfRank(x->rank, dtype, x);
}

// ---- narrow
Result<ir::Type> InferNarrow(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, PackedAttr(call));
  return WithSameDims(x, ByteDataType(dtype));
}

constexpr double kWordLimit = 2147483648.0;  // 2^31

Result<std::vector<ReferenceTensor>> ReferenceNarrow(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, PackedAttr(call));
  ReferenceTensor out = NewReference(ByteDataType(dtype), x.dims);
  for (int64_t i = 0; i < CountOf(x.dims); ++i) {
    const auto at = static_cast<size_t>(i);
    if (dtype.is_floating()) {
      out.floats[at] = ir::RoundToFloat(dtype, GetNumber(x, i));
    } else if (x.dtype.is_floating()) {
      const double number = std::trunc(x.floats[at]);
      const bool fits = std::fabs(number) < kWordLimit;
      out.ints[at] = ir::WrapInt(dtype, fits ? static_cast<int64_t>(number) : 0);
    } else {
      out.ints[at] = ir::WrapInt(dtype, x.ints[at]);
    }
  }
  return OneReference(std::move(out));
}

// The nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6, and the sign: a multiple of the step that numbers of the size have.
PrimExpr RoundToFloat4(PrimExpr x) {
  const auto number = [&](double value) { return ir::FloatImm(x->dtype, value); };
  const PrimExpr size = ir::CallIntrinsic(Intrinsic::kFabs, {x});
  const auto by_size = [&](double small, double middle, double large) {
    return ir::Select(size < number(2), number(small), ir::Select(size < number(4), number(middle), number(large)));
  };
  const PrimExpr steps = ir::CallIntrinsic(Intrinsic::kNearbyInt, {x * by_size(2, 1, 0.5)});
  const PrimExpr rounded = steps * by_size(0.5, 1, 2);
  const PrimExpr bounded = ir::Select(size < number(6), rounded, ir::Select(x < number(0), number(-6), number(6)));
  return ir::Select(ir::CallIntrinsic(Intrinsic::kIsNan, {x}), number(-0.0), bounded);
}

te::Tensor DefineNarrow(const TeArgs& args) {
  const DataType dtype = *DataTypeAttr(args.call(), "dtype");
  return topi::Map(args.input(0), [&](PrimExpr x) {
    if (x->dtype.is_floating() ? x->dtype.bits < 32 : dtype.is_floating()) x = ir::Cast(DataType::Float(32), x);
    if (dtype.is_floating()) return ir::Cast(kE4M3, RoundToFloat4(x));
    if (x->dtype.is_floating()) {
      const PrimExpr size = ir::CallIntrinsic(Intrinsic::kFabs, {x});
      x = ir::Select(size < ir::FloatImm(x->dtype, kWordLimit), x, ir::FloatImm(x->dtype, 0));
    }
    return KeepBits(ir::Cast(kWord, x), dtype);
  });
}

// ---- pack_bits
Result<ir::Type> InferPackBits(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, PackedAttr(call));
  if ((x->dtype && *x->dtype != ByteDataType(dtype)) || x->rank == 0) {
    return OpError(call, "expected " + ByteDataType(dtype).ToString() + " of rank 1 or more, got " + Describe(x));
  }
  if (!x->dims) return TensorOfRank(x->rank, kByte, x);
  Dims dims = *x->dims;
  const int64_t count = PerByte(dtype);
  dims.back() = SimplifyDim(ir::FloorDiv(dims.back() + ir::Int64(count - 1), ir::Int64(count)));
  return TensorOf(std::move(dims), kByte, x);
}

Result<std::vector<ReferenceTensor>> ReferencePackBits(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, PackedAttr(call));
  std::vector<int64_t> dims = x.dims;
  dims.back() = (dims.back() + PerByte(dtype) - 1) / PerByte(dtype);
  ReferenceTensor out = NewReference(kByte, dims);
  ForEachIndex(x.dims, [&](const Index& index, int64_t flat) {
    const auto at = static_cast<size_t>(flat);
    const int64_t code =
        dtype.is_floating() ? static_cast<int64_t>(ir::EncodeFloat(dtype, x.floats[at])) : x.ints[at];
    Index place = index;
    place.back() /= PerByte(dtype);
    out.ints[static_cast<size_t>(Flatten(dims, place))] |= (code & MaskOf(dtype))
                                                           << (index.back() % PerByte(dtype) * dtype.bits);
  });
  return OneReference(std::move(out));
}

// The code of a number of float8_e4m3fn that float4 has: its smallest one is subnormal, and each other one differs by
// six in the exponent.
PrimExpr Float4Code(const PrimExpr& number) {
  const PrimExpr code = ir::Cast(kWord, BitsAs(kByte, number));
  const PrimExpr magnitude = BitAnd(code, 0x7F);
  const PrimExpr normal = Right(magnitude, WordOf(2)) - WordOf(12);
  const PrimExpr small = ir::Select(magnitude < WordOf(0x30), WordOf(0), WordOf(1));
  return BitOr(ir::Select(magnitude < WordOf(0x38), small, normal), BitAnd(Right(code, WordOf(4)), 8));
}

te::Tensor DefinePackBits(const TeArgs& args) {
  const te::Tensor& x = args.input(0);
  const DataType dtype = *DataTypeAttr(args.call(), "dtype");
  const int64_t count = PerByte(dtype);
  return te::Compute(
      args.out_dims(),
      [&](const te::Indices& index) {
        PrimExpr byte;
        for (int64_t i = 0; i < count; ++i) {
          te::Indices place = index;
          place.back() = place.back() * ir::Int64(count) + ir::Int64(i);
          const PrimExpr is_inside = place.back() < x.shape().back();
          const PrimExpr element = x(place);
          PrimExpr code = dtype.is_floating() ? Float4Code(element) : BitAnd(ir::Cast(kWord, element), MaskOf(dtype));
          if (i > 0) code = ir::IfThenElse(is_inside, Left(code, WordOf(i * dtype.bits)), WordOf(0));
          byte = i == 0 ? code : BitOr(byte, code);
        }
        return ir::Cast(kByte, byte);
      },
      "pack_bits");
}

// ---- unpack_bits
Result<ir::Type> InferUnpackBits(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, PackedAttr(call));
  if ((x->dtype && *x->dtype != kByte) || x->rank == 0) {
    return OpError(call, "expected uint8 of rank 1 or more, got " + Describe(x));
  }
  int rank = -1;
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> dims, ShapeArg(call, 1, &rank));
  if (x->rank >= 0 && rank >= 0 && x->rank != rank) return OpError(call, "expected a shape of the rank of x");
  if (!dims) return TensorOfRank(std::max(rank, x->rank), ByteDataType(dtype), x);
  if (x->dims) {
    bool fits = true;
    for (size_t i = 0; i + 1 < dims->size(); ++i) fits &= !DimsDiffer((*dims)[i], (*x->dims)[i]);
    const auto elements = ir::AsConstInt(dims->back()), bytes = ir::AsConstInt(x->dims->back());
    fits &= !elements || !bytes || *elements <= *bytes * PerByte(dtype);
    if (!fits) return OpError(call, "expected bytes for " + Describe(dims->back()) + " elements, got " + Describe(x));
  }
  return TensorOf(*dims, ByteDataType(dtype), x);
}

Result<std::vector<ReferenceTensor>> ReferenceUnpackBits(const ir::Call& call,
                                                         std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, PackedAttr(call));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  ReferenceTensor out = NewReference(ByteDataType(dtype), dims);
  ForEachIndex(dims, [&](const Index& index, int64_t flat) {
    Index place = index;
    place.back() /= PerByte(dtype);
    const int64_t byte = x.ints[static_cast<size_t>(Flatten(x.dims, place))];
    const int64_t code = byte >> (index.back() % PerByte(dtype) * dtype.bits) & MaskOf(dtype);
    if (dtype.is_floating()) {
      out.floats[static_cast<size_t>(flat)] = ir::DecodeFloat(dtype, static_cast<uint64_t>(code));
    } else {
      out.ints[static_cast<size_t>(flat)] = ir::WrapInt(dtype, code);
    }
  });
  return OneReference(std::move(out));
}

// The number that a code (an int32) of float4 stands for, in float8_e4m3fn.
PrimExpr Float4Number(const PrimExpr& code) {
  const PrimExpr magnitude = BitAnd(code, 7);
  const PrimExpr normal = Left(magnitude + WordOf(12), WordOf(2));
  const PrimExpr small = ir::Select(ir::Equal(magnitude, WordOf(0)), WordOf(0), WordOf(0x30));
  const PrimExpr bits = BitOr(ir::Select(magnitude < WordOf(2), small, normal), Left(BitAnd(code, 8), WordOf(4)));
  return BitsAs(kE4M3, ir::Cast(kByte, bits));
}

te::Tensor DefineUnpackBits(const TeArgs& args) {
  const te::Tensor& x = args.input(0);
  const DataType dtype = *DataTypeAttr(args.call(), "dtype");
  const PrimExpr count = ir::Int64(PerByte(dtype));
  return te::Compute(
      args.out_dims(),
      [&](const te::Indices& index) {
        te::Indices place = index;
        place.back() = ir::FloorDiv(index.back(), count);
        const PrimExpr shift = ir::Cast(kWord, ir::FloorMod(index.back(), count)) * WordOf(dtype.bits);
        const PrimExpr word = Right(ir::Cast(kWord, x(place)), shift);
        return dtype.is_floating() ? Float4Number(BitAnd(word, MaskOf(dtype))) : KeepBits(word, dtype);
      },
      "unpack_bits");
}

// ---- bitcast
Result<ir::Type> InferBitcast(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  const std::optional<DataType> dtype = DataTypeAttr(call, "dtype");
  if (!dtype || dtype->bits < 8 || (x->dtype && x->dtype->bits != dtype->bits)) {
    return OpError(call, "expected a dtype as wide as that of " + Describe(x));
  }
  return WithSameDims(x, *dtype);
}

Result<std::vector<ReferenceTensor>> ReferenceBitcast(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const DataType dtype = *DataTypeAttr(call, "dtype");
  ReferenceTensor out = UnpackReference(dtype, inputs[0].dims, PackReference(inputs[0]));
  for (int64_t& truth : out.ints) {
    if (dtype.is_bool()) truth = truth != 0 ? 1 : 0;
  }
  return OneReference(std::move(out));
}

te::Tensor DefineBitcast(const TeArgs& args) {
  return topi::Map(args.input(0), [&](PrimExpr x) {
    return x->dtype == args.out_dtype() ? x : BitsAs(args.out_dtype(), std::move(x));
  });
}

// ---- memory.bitcast
std::optional<int64_t> KnownBytes(const Dims& dims, DataType dtype) {
  const auto count = ir::AsConstInt(ProductOf(dims));
  if (!count) return std::nullopt;
  const Result<int64_t> bytes = dtype.SizeBytes(*count);
  return bytes.ok() ? std::optional(*bytes) : std::nullopt;
}

Result<ir::Type> InferMemoryBitcast(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> dims, ShapeArg(call, 1));
  const auto* dtype = ir::As<ir::DataTypeValueNode>(call->args[2]);
  if (!dims) return OpError(call, "expected a shape with known dims");
  if (dtype == nullptr) return OpError(call, "expected a dtype, such as R.dtype(\"uint8\")");
  // Kernels rely on the alignment of elements, and a tensor that a caller gave has that of its own dtype.
  if (x->dtype && dtype->value.bits > std::max<int>(x->dtype->bits, 8)) {
    return OpError(call, "expected elements that are no wider than those of " + Describe(x));
  }
  if (x->dims && x->dtype) {
    const std::optional<int64_t> own = KnownBytes(*x->dims, *x->dtype), other = KnownBytes(*dims, dtype->value);
    if (own && other && *own != *other) return OpError(call, "expected the bytes of " + Describe(x));
  }
  return TensorOf(*dims, dtype->value, x);
}

Result<std::vector<ReferenceTensor>> ReferenceMemoryBitcast(const ir::Call& call,
                                                            std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> dims, ConstantDims(call, call->type));
  const DataType dtype = *ir::As<ir::TensorTypeNode>(call->type)->dtype;
  return OneReference(UnpackReference(dtype, std::move(dims), PackReference(inputs[0])));
}

}  // namespace

bool IsPackedElement(DataType dtype) {
  const bool is_integer = dtype.is_integral() && (dtype.bits == 2 || dtype.bits == 4);
  return dtype.is_scalar() && (is_integer || dtype == kFloat4E2M1FN);
}

DataType ByteDataType(DataType packed) {
  return packed.is_floating() ? kE4M3 : packed.is_int() ? DataType::Int(8) : kByte;
}

std::vector<OpRow> PackedElementOps() {
  const std::vector<AttrSpec> dtype = {{"dtype", AttrType::kDataType, {}, true}};
  std::vector<OpRow> rows;
  rows.push_back({.name = "bitcast",
                  .summary = "the bits of each element as an element of another dtype of the same width",
                  .arg_names = {"x"},
                  .attrs = dtype,
                  .fusion = FusionClass::kElementwise,
                  .infer = InferBitcast,
                  .reference = ReferenceBitcast,
                  .implementations = {TeImplementation<DefineBitcast>()},
                  .cases = {.non_finite = false,
                            .dtypes = {DataType::Float(32), DataType::Float(16), DataType::Float(64),
                                       DataType::Bfloat16(), DataType::Int(32), DataType::UInt(8), DataType::Bool()}}});
  rows.push_back({.name = "memory.bitcast",
                  .summary = "the same bytes as elements of another dtype, under other dims",
                  .arg_names = {"x", "shape", "dtype"},
                  .is_primitive = true,
                  .infer = InferMemoryBitcast,
                  .reference = ReferenceMemoryBitcast});
  rows.push_back({.name = "narrow",
                  .summary = "x converted to a dtype of less than a byte, each element in a byte: integers truncate and "
                             "keep their low bits, floats round to even and saturate",
                  .arg_names = {"x"},
                  .attrs = dtype,
                  .fusion = FusionClass::kElementwise,
                  .infer = InferNarrow,
                  .reference = ReferenceNarrow,
                  .fold = FoldByReference,
                  .implementations = {TeImplementation<DefineNarrow>()},
                  .cases = {.dtypes = {DataType::Float(16), DataType::Bfloat16(), DataType::Float(32),
                                       DataType::Float(64), DataType::Int(8), DataType::Int(32), DataType::Int(64),
                                       DataType::UInt(8), DataType::Bool()}}});
  rows.push_back({.name = "pack_bits",
                  .summary = "elements of less than a byte, each in a byte, packed along the last axis",
                  .arg_names = {"x"},
                  .attrs = dtype,
                  .fusion = FusionClass::kOpaque,  // an element of the result holds several
                  .infer = InferPackBits,
                  .reference = ReferencePackBits,
                  .fold = FoldByReference,
                  .implementations = {TeImplementation<DefinePackBits>()},
                  .cases = {.rank0 = false,
                            .non_finite = false,
                            .dtypes = {DataType::Int(8), DataType::UInt(8), DataType(TypeCode::kFloat8E4M3FN, 8)}}});
  rows.push_back({.name = "unpack_bits",
                  .summary = "the elements of less than a byte that bytes hold along the last axis, each in a byte",
                  .arg_names = {"x", "shape"},
                  .attrs = dtype,
                  .fusion = FusionClass::kInjective,
                  .infer = InferUnpackBits,
                  .reference = ReferenceUnpackBits,
                  .fold = FoldByReference,
                  .implementations = {TeImplementation<DefineUnpackBits>()},
                  .cases = {.rank0 = false, .non_finite = false, .dtypes = {DataType::UInt(8)}}});
  return rows;
}

}  // namespace ingot::op
