// Keys and values that a cache holds as numbers of few bits: com.microsoft's GroupQueryAttention writes them so, and sees
// what it wrote, the new ones too.
#include <string>
#include <utility>
#include <vector>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/contrib_attention.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

const DataType kByte = DataType::UInt(8);

// Numbers of four bits as floats, and the other way round: a byte has two of them, the first one in its low bits, each 8
// above the number.
constexpr double kMiddle = 8;

Result<Expr> PackedFours(const NodeImporter& node, Expr x) {
  std::vector<PrimExpr> dims = DimsOf(x);
  const int64_t rank = std::ssize(dims);
  dims.back() = op::SimplifyDim(ir::FloorDiv(dims.back(), ir::Int64(2)));
  std::vector<PrimExpr> pairs = dims;
  pairs.push_back(ir::Int64(2));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf(pairs)}));
  std::vector<Expr> halves;
  for (int64_t i : {0, 1}) {
    const std::vector<int64_t> axis = {rank}, begin = {i}, end = {i + 1};
    INGOT_ASSIGN_OR_RETURN(Expr half,
                           node.Bind("strided_slice", {x, PrimTuple(axis), PrimTuple(begin), PrimTuple(end)}));
    INGOT_ASSIGN_OR_RETURN(half, node.Bind("reshape", {half, ShapeOf(dims)}));
    halves.push_back(std::move(half));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr places, node.Scalar(4, kByte));
  INGOT_ASSIGN_OR_RETURN(const Expr high, node.Bind("left_shift", {halves[1], places}));
  return node.Bind("bitwise_or", {halves[0], high});
}

}  // namespace

Result<CacheOfBytes> ReadCacheOfBytes(const NodeImporter& node, const char* kind, size_t scale, int64_t heads,
                                      const PrimExpr& depth) {
  INGOT_ASSIGN_OR_RETURN(const std::string how, node.String(kind, "NONE"));
  INGOT_ASSIGN_OR_RETURN(const int64_t bits, node.Int("kv_cache_bit_width", 0));
  if (how == "NONE") return CacheOfBytes();
  if (how != "PER_TENSOR" && how != "PER_CHANNEL") return node.Invalid(std::string(kind) + " is \"" + how + "\"");
  if (bits != 4 && bits != 8) return node.Invalid("kv_cache_bit_width is " + std::to_string(bits));
  if (!node.HasInput(scale)) return node.Invalid(std::string(kind) + " without a scale");
  const PrimExpr one = ir::Int64(1);
  const PrimExpr of_heads = how == "PER_TENSOR" ? one : ir::Int64(heads), of_depth = how == "PER_TENSOR" ? one : depth;
  INGOT_ASSIGN_OR_RETURN(Expr factor, node.Input(scale));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, scale));
  if (op::DimsDiffer(Product(dims), op::SimplifyDim(of_heads * of_depth))) {
    return node.Invalid("the scale of " + std::string(kind) + " is not of this kind");
  }
  INGOT_ASSIGN_OR_RETURN(factor, CastTo(node, std::move(factor), kExact));
  INGOT_ASSIGN_OR_RETURN(factor, node.Bind("reshape", {factor, ShapeOf({one, of_heads, one, of_depth})}));
  return CacheOfBytes{bits, std::move(factor)};
}

Result<Expr> CacheOfBytes::Read(const NodeImporter& node, Expr x, DataType dtype) const {
  const DataType held = bits == 8 ? DataType::Int(8) : kByte;
  if (DTypeOf(x) != held) {
    return node.Unsupported("a cache of " + DTypeOf(x).ToString() + " for numbers of " + std::to_string(bits) +
                            " bits");
  }
  if (bits == 4) {
    INGOT_ASSIGN_OR_RETURN(x, UnpackedBits(node, x, 4));
  }
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), kExact));
  if (bits == 4) {
    INGOT_ASSIGN_OR_RETURN(const Expr middle, node.Scalar(kMiddle, kExact));
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("subtract", {x, middle}));
  }
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("multiply", {x, scale}));
  return CastTo(node, std::move(x), dtype);
}

Result<Expr> CacheOfBytes::Write(const NodeImporter& node, Expr x) const {
  const double high = bits == 8 ? 127 : 7, low = -high - 1;
  const auto bound = [](double value) { return Number(ir::FloatImm(kExact, value)); };
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), kExact));
  // A scale of 0 writes numbers as they are.
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, kExact));
  INGOT_ASSIGN_OR_RETURN(const Expr one, node.Scalar(1, kExact));
  INGOT_ASSIGN_OR_RETURN(const Expr is_zero, node.Bind("equal", {scale, zero}));
  INGOT_ASSIGN_OR_RETURN(const Expr divisor, node.Bind("where", {is_zero, one, scale}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("divide", {x, divisor}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("round", {x}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("clip", {x, bound(low), bound(high)}));
  if (bits == 8) return CastTo(node, std::move(x), DataType::Int(8));
  if (const auto depth = ir::AsConstInt(DimsOf(x).back()); !depth || *depth % 2 != 0) {
    return node.Unsupported("numbers of four bits of heads whose depth is not even");
  }
  INGOT_ASSIGN_OR_RETURN(const Expr middle, node.Scalar(kMiddle, kExact));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("add", {x, middle}));
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), kByte));
  return PackedFours(node, std::move(x));
}

}  // namespace ingot::importer
