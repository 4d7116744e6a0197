// com.microsoft's weights of few bits, quantised in blocks: products with them, and rows gathered from them. The numbers
// are unpacked by arithmetic on bytes, which folds for constants.
#include <optional>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/contrib.h"
#include "compiler/importer/ops/families.h"
#include "compiler/op/infer.h"

namespace ingot::importer {

Result<Expr> UnpackedBits(const NodeImporter& node, const Expr& bytes, int64_t bits) {
  const DataType uint8 = DataType::UInt(8);
  if (bits == 8) return bytes;
  std::vector<PrimExpr> dims = DimsOf(bytes);
  dims.push_back(ir::Int64(1));
  INGOT_ASSIGN_OR_RETURN(const Expr apart, node.Bind("reshape", {bytes, ShapeOf(dims)}));
  INGOT_ASSIGN_OR_RETURN(const Expr mask, node.Scalar((1 << bits) - 1, uint8));
  std::vector<Expr> parts;
  for (int64_t shift = 0; shift < 8; shift += bits) {
    INGOT_ASSIGN_OR_RETURN(const Expr places, node.Scalar(shift, uint8));
    INGOT_ASSIGN_OR_RETURN(Expr part, node.Bind("right_shift", {apart, places}));
    INGOT_ASSIGN_OR_RETURN(part, node.Bind("bitwise_and", {part, mask}));
    parts.push_back(std::move(part));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr joined,
                         node.Bind("concat", {TupleOf(std::move(parts))}, {{"axis", std::ssize(dims) - 1}}));
  dims.pop_back();
  dims.back() = op::SimplifyDim(dims.back() * (8 / bits));
  return node.Bind("reshape", {joined, ShapeOf(dims)});
}

namespace {

// The shape of MatMulNBits's weights: rows [N, K], of which each is a number of blocks.
struct BlockedRows {
  int64_t bits, block, columns, rows, blocks;
};
Result<BlockedRows> ReadBlockedRows(const NodeImporter& node) {
  BlockedRows shape;
  INGOT_ASSIGN_OR_RETURN(shape.bits, node.Int("bits", 4));
  INGOT_ASSIGN_OR_RETURN(shape.block, node.Int("block_size", 0));
  INGOT_ASSIGN_OR_RETURN(shape.columns, node.Int("K", 0));
  INGOT_ASSIGN_OR_RETURN(shape.rows, node.Int("N", 0));
  constexpr int64_t kMost = int64_t{1} << 31;
  if (shape.bits != 2 && shape.bits != 4 && shape.bits != 8) {
    return node.Unsupported("numbers of " + std::to_string(shape.bits) + " bits");
  }
  const bool fits = shape.block >= 8 && shape.block <= kMost && shape.columns > 0 && shape.columns <= kMost &&
                    shape.rows > 0 && shape.rows <= kMost;
  if (!fits) return node.Invalid("K, N or block_size is no length");
  shape.blocks = (shape.columns + shape.block - 1) / shape.block;
  return shape;
}

// Returns an input of one number per block as [N, blocks, 1] of floats: packed like the weights if it is of bytes.
Result<Expr> PerBlock(const NodeImporter& node, size_t input, const BlockedRows& shape, DataType dtype) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(input));
  INGOT_RETURN_IF_ERROR(StaticRankDims(node, input).status());
  const PrimExpr rows = ir::Int64(shape.rows), blocks = ir::Int64(shape.blocks), one = ir::Int64(1);
  if (DTypeOf(x) == DataType::UInt(8)) {
    const int64_t bytes = (shape.blocks * shape.bits + 7) / 8;
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf({rows, ir::Int64(bytes)})}));
    INGOT_ASSIGN_OR_RETURN(x, UnpackedBits(node, x, shape.bits));
    const std::vector<int64_t> axis = {1}, begin = {0}, end = {shape.blocks};
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("strided_slice", {x, PrimTuple(axis), PrimTuple(begin), PrimTuple(end)}));
  }
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), dtype));
  return node.Bind("reshape", {x, ShapeOf({rows, blocks, one})});
}

// The first columns of a matrix.
Result<Expr> FirstColumns(const NodeImporter& node, Expr x, int64_t columns) {
  if (ir::IsConstInt(DimsOf(x)[1], columns)) return x;
  const std::vector<int64_t> axis = {1}, begin = {0}, end = {columns};
  return node.Bind("strided_slice", {x, PrimTuple(axis), PrimTuple(begin), PrimTuple(end)});
}

// Numbers [N, blocks, 1] as [N, K], by the block to which input 4 says that a column belongs.
Result<Expr> ByColumn(const NodeImporter& node, const Expr& x, const BlockedRows& shape) {
  INGOT_ASSIGN_OR_RETURN(Expr blocks, node.Input(4));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(4));
  const bool is_list = type->dtype->is_integral() && type->rank == 1;
  if (!is_list || ir::AsConstInt((*type->dims)[0]).value_or(shape.columns) < shape.columns) {
    return node.Invalid("g_idx: expected K integers");
  }
  if (!ir::IsConstInt((*type->dims)[0], shape.columns)) {
    const std::vector<int64_t> axis = {0}, begin = {0}, end = {shape.columns};
    INGOT_ASSIGN_OR_RETURN(blocks,
                           node.Bind("strided_slice", {blocks, PrimTuple(axis), PrimTuple(begin), PrimTuple(end)}));
    blocks = WithDims(node, std::move(blocks), {ir::Int64(shape.columns)});
  }
  INGOT_ASSIGN_OR_RETURN(const Expr rows,
                         node.Bind("reshape", {x, ShapeOf({ir::Int64(shape.rows), ir::Int64(shape.blocks)})}));
  return node.Bind("take", {rows, blocks}, {{"axis", int64_t{1}}});
}

// Inputs: A, the packed rows of B transposed, their scales, their zero points (or half of the range), the block of each
// column (or as many columns in a row as block_size says), and a bias.
Outputs MatMulNBits(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"K", "N", "accuracy_level", "bits", "block_size", "weight_prepacked"}));
  INGOT_ASSIGN_OR_RETURN(const int64_t prepacked, node.Int("weight_prepacked", 0));
  if (prepacked != 0) return node.Unsupported("weights that are packed for a device");
  INGOT_ASSIGN_OR_RETURN(const BlockedRows shape, ReadBlockedRows(node));
  INGOT_ASSIGN_OR_RETURN(const Expr a, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(Expr b, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> packed, StaticRankDims(node, 1));
  const PrimExpr rows = ir::Int64(shape.rows);
  const int64_t bytes = shape.blocks * shape.block * shape.bits / 8;
  if (DTypeOf(b) != DataType::UInt(8) || op::DimsDiffer(Product(packed), ir::Int64(shape.rows * bytes))) {
    return node.Invalid("the weights are not as long as K and N say");
  }
  INGOT_ASSIGN_OR_RETURN(b, node.Bind("reshape", {b, ShapeOf({rows, ir::Int64(bytes)})}));
  INGOT_ASSIGN_OR_RETURN(b, UnpackedBits(node, b, shape.bits));
  const bool by_column = node.HasInput(4);
  if (by_column) {
    INGOT_ASSIGN_OR_RETURN(b, FirstColumns(node, std::move(b), shape.columns));
  } else {
    INGOT_ASSIGN_OR_RETURN(b,
                           node.Bind("reshape", {b, ShapeOf({rows, ir::Int64(shape.blocks), ir::Int64(shape.block)})}));
  }
  INGOT_ASSIGN_OR_RETURN(b, CastTo(node, std::move(b), *type->dtype));
  // Of each element; as many as blocks, unless an input says to which block a column belongs.
  const auto of_blocks = [&](size_t input) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(const Expr x, PerBlock(node, input, shape, *type->dtype));
    return by_column ? ByColumn(node, x, shape) : Result<Expr>(x);
  };
  Expr zero;
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(zero, of_blocks(3));
  } else {
    INGOT_ASSIGN_OR_RETURN(zero, node.Scalar(1 << (shape.bits - 1), *type->dtype));
  }
  INGOT_ASSIGN_OR_RETURN(b, node.Bind("subtract", {b, zero}));
  INGOT_ASSIGN_OR_RETURN(const Expr scale, of_blocks(2));
  INGOT_ASSIGN_OR_RETURN(b, node.Bind("multiply", {b, scale}));
  if (!by_column) {
    INGOT_ASSIGN_OR_RETURN(b, node.Bind("reshape", {b, ShapeOf({rows, ir::Int64(shape.blocks * shape.block)})}));
    INGOT_ASSIGN_OR_RETURN(b, FirstColumns(node, std::move(b), shape.columns));
  }
  INGOT_ASSIGN_OR_RETURN(b, node.Bind("permute_dims", {b}, {{"axes", AttrValue::Ints({1, 0})}}));
  INGOT_ASSIGN_OR_RETURN(const Expr product, node.Bind("matmul", {a, b}));
  if (!node.HasInput(5)) return One(product);
  INGOT_ASSIGN_OR_RETURN(const Expr bias, PerChannel(node, 5, rows));
  return One(node.Call("add", {product, bias}));
}

// Numbers of 4 bits, which are no bytes, gathered along one axis; blocks lie along another one.
Outputs GatherNumbers(const NodeImporter& node, Expr data, int64_t gather, int64_t quantised, int64_t block) {
  if (block < 16) return node.Invalid("block_size is " + std::to_string(block));
  if (gather == quantised) return node.Unsupported("blocks along the axis that is gathered");
  const auto length = ir::AsConstInt(DimsOf(data)[static_cast<size_t>(quantised)]);
  if (!length) return node.Unsupported("an axis of blocks of unknown length");
  INGOT_ASSIGN_OR_RETURN(const Expr places, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> many, StaticRankDims(node, 1));
  const int64_t axis = quantised < gather ? quantised : quantised + std::ssize(many) - 1;
  std::vector<int64_t> of_element;
  for (int64_t i = 0; i < *length; ++i) of_element.push_back(i / block);
  const Expr blocks = ConstantOf(DataType::Int(64), {*length}, of_element);
  const auto taken = [&](Expr x) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(x, Unpacked(std::move(x)));
    return node.Bind("take", {x, places}, {{"axis", gather}});
  };
  const auto per_block = [&](size_t input) -> Result<Expr> {
    std::vector<PrimExpr> dims = DimsOf(data);
    dims[static_cast<size_t>(quantised)] = ir::Int64((*length + block - 1) / block);
    INGOT_ASSIGN_OR_RETURN(Expr x, InputOfDims(node, input, std::move(dims)));
    INGOT_ASSIGN_OR_RETURN(x, taken(std::move(x)));
    return node.Bind("take", {x, blocks}, {{"axis", axis}});
  };
  INGOT_ASSIGN_OR_RETURN(const Expr scale, per_block(2));
  INGOT_ASSIGN_OR_RETURN(Expr y, taken(data));
  INGOT_ASSIGN_OR_RETURN(y, CastTo(node, std::move(y), DTypeOf(scale)));
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(Expr zero, per_block(3));
    INGOT_ASSIGN_OR_RETURN(zero, CastTo(node, std::move(zero), DTypeOf(scale)));
    INGOT_ASSIGN_OR_RETURN(y, node.Bind("subtract", {y, zero}));
  }
  return One(node.Call("multiply", {y, scale}));
}

// Rows of a table of which each is a number of blocks. Inputs: the table, the places, the scales, and the zero points
// (or half of the range of packed bytes).
Outputs GatherBlockQuantized(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"bits", "block_size", "gather_axis", "quantize_axis"}));
  INGOT_ASSIGN_OR_RETURN(const int64_t block, node.Int("block_size", 128));
  INGOT_ASSIGN_OR_RETURN(const int64_t bits, node.Int("bits", 4));
  INGOT_ASSIGN_OR_RETURN(int64_t gather, node.Int("gather_axis", 0));
  INGOT_ASSIGN_OR_RETURN(int64_t quantised, node.Int("quantize_axis", 1));
  INGOT_ASSIGN_OR_RETURN(Expr data, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  const int64_t rank = std::ssize(dims);
  INGOT_ASSIGN_OR_RETURN(quantised, NormaliseAxis(node, quantised, rank));
  INGOT_ASSIGN_OR_RETURN(gather, NormaliseAxis(node, gather, rank));
  if (const std::optional<DataType> packed = node.PackedType(0)) {
    if (packed->bits != 4 || packed->is_floating()) return node.Unsupported("a table of " + packed->ToString());
    return GatherNumbers(node, std::move(data), gather, quantised, block);
  }
  const bool is_bytes = DTypeOf(data) == DataType::UInt(8);
  if (!is_bytes) return node.Invalid("a table of " + DTypeOf(data).ToString());
  if (gather != 0 || quantised != rank - 1 || rank < 2) {
    return node.Unsupported("packed bytes that are not gathered by rows, or whose blocks are not those of rows");
  }
  if (bits != 4 && bits != 8) return node.Unsupported("numbers of " + std::to_string(bits) + " bits");
  if (block < 16) return node.Invalid("block_size is " + std::to_string(block));
  INGOT_ASSIGN_OR_RETURN(const Expr places, node.Input(1));
  // Of the table, and of the scales and zero points of its rows.
  const auto rows = [&](size_t input) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, input));
    std::vector<PrimExpr> wanted = dims;
    if (own.empty()) return node.Invalid("a table without rows");
    wanted.back() = own.back();
    INGOT_ASSIGN_OR_RETURN(const Expr table, InputOfDims(node, input, std::move(wanted)));
    return node.Bind("take", {table, places}, {{"axis", int64_t{0}}});
  };
  INGOT_ASSIGN_OR_RETURN(data, rows(0));
  INGOT_ASSIGN_OR_RETURN(data, UnpackedBits(node, data, bits));
  INGOT_ASSIGN_OR_RETURN(const Expr scale, rows(2));
  const DataType dtype = DTypeOf(scale);
  INGOT_ASSIGN_OR_RETURN(data, CastTo(node, std::move(data), dtype));
  const std::vector<PrimExpr> whole = DimsOf(data);
  std::vector<PrimExpr> blocked = DimsOf(scale), apart = blocked;
  if (blocked.empty() || op::DimsDiffer(blocked.back() * block, whole.back())) {
    return node.Unsupported("blocks of " + std::to_string(block) + " that do not divide their axis");
  }
  std::vector<PrimExpr> joined = blocked;
  joined.back() = op::SimplifyDim(blocked.back() * block);
  data = WithDims(node, std::move(data), std::move(joined));
  apart.push_back(ir::Int64(block));
  blocked.push_back(ir::Int64(1));
  INGOT_ASSIGN_OR_RETURN(data, node.Bind("reshape", {data, ShapeOf(apart)}));
  Expr zero;
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(zero, rows(3));
    INGOT_ASSIGN_OR_RETURN(zero, UnpackedBits(node, zero, bits));
    const std::vector<int64_t> axis = {std::ssize(blocked) - 2}, begin = {0};
    INGOT_ASSIGN_OR_RETURN(zero,
                           node.Bind("strided_slice", {zero, PrimTuple(axis), PrimTuple(begin),
                                                       PrimTuple(std::vector<PrimExpr>{blocked[blocked.size() - 2]})}));
    INGOT_ASSIGN_OR_RETURN(zero, CastTo(node, std::move(zero), dtype));
    INGOT_ASSIGN_OR_RETURN(zero, node.Bind("reshape", {zero, ShapeOf(blocked)}));
  } else {
    INGOT_ASSIGN_OR_RETURN(zero, node.Scalar(1 << (bits - 1), dtype));
  }
  INGOT_ASSIGN_OR_RETURN(data, node.Bind("subtract", {data, zero}));
  INGOT_ASSIGN_OR_RETURN(const Expr factor, node.Bind("reshape", {scale, ShapeOf(blocked)}));
  INGOT_ASSIGN_OR_RETURN(data, node.Bind("multiply", {data, factor}));
  return One(ReshapeTo(node, std::move(data), whole));
}

// The numbers for which a code of four bits stands, over the greatest one: floats of a sign and three bits, and those
// that cut the normal distribution into parts of one weight.
constexpr float kFloatCodes[] = {0,     0.0052083333f,  0.6666667f,  1,  0.33333334f,  0.5f,  0.16666667f,  0.25f,
                                 -0.0f, -0.0052083333f, -0.6666667f, -1, -0.33333334f, -0.5f, -0.16666667f, -0.25f};
constexpr float kNormalCodes[] = {
    -1,         -0.6961928f, -0.52507305f, -0.3949175f, -0.28444138f, -0.18477343f, -0.091050036f, 0,
    0.0795803f, 0.1609302f,  0.2461123f,   0.33791524f, 0.44070983f,  0.562617f,    0.72295684f,   1};

// Inputs: A, the codes of B [N, K] as they lie, two in a byte, the first in its high bits, and the greatest number of
// each block of them. B is transposed, unless transB is 0.
Outputs MatMulBnb4(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"K", "N", "block_size", "quant_type", "training_mode", "transB"}));
  INGOT_ASSIGN_OR_RETURN(const int64_t kind, node.Int("quant_type", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t is_transposed, node.Int("transB", 1));
  if (kind != 0 && kind != 1) return node.Unsupported("quant_type " + std::to_string(kind));
  INGOT_ASSIGN_OR_RETURN(const BlockedRows shape, ReadBlockedRows(node));
  INGOT_ASSIGN_OR_RETURN(const Expr a, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(Expr b, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> packed, StaticRankDims(node, 1));
  INGOT_ASSIGN_OR_RETURN(Expr scale, node.Input(2));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> of_scale, StaticRankDims(node, 2));
  if (shape.block < 16 || shape.block > 256 || (shape.block & (shape.block - 1)) != 0) {
    return node.Invalid("block_size is no power of two from 16 to 256");
  }
  const int64_t count = shape.rows * shape.columns, blocks = (count + shape.block - 1) / shape.block;
  const int64_t bytes = (count + 1) / 2;
  if (op::DimsDiffer(Product(packed), ir::Int64(bytes)) || op::DimsDiffer(Product(of_scale), ir::Int64(blocks))) {
    return node.Invalid("the weights or their scales are not as many as K, N and block_size say");
  }
  INGOT_ASSIGN_OR_RETURN(b, node.Bind("reshape", {b, ShapeOf({ir::Int64(bytes), ir::Int64(1)})}));
  INGOT_ASSIGN_OR_RETURN(b, UnpackedBits(node, b, 4));
  INGOT_ASSIGN_OR_RETURN(b, node.Bind("flip", {b}, {{"axis", int64_t{1}}}));
  INGOT_ASSIGN_OR_RETURN(b, node.Bind("reshape", {b, ShapeOf({ir::Int64(2 * bytes)})}));
  if (const int64_t missing = blocks * shape.block - 2 * bytes; missing > 0) {
    const std::vector<int64_t> widths = {0, missing};
    INGOT_ASSIGN_OR_RETURN(
        b, node.Bind("nn.pad", {b},
                     {{"pad_width", AttrValue::Ints(widths)}, {"pad_value", 0.0}, {"pad_mode", "constant"}}));
  }
  INGOT_ASSIGN_OR_RETURN(b, CastTo(node, std::move(b), DataType::Int(32)));
  const auto& codes = kind == 0 ? kFloatCodes : kNormalCodes;
  const Expr numbers = ConstantOf(DataType::Float(32), {16}, std::vector<float>(std::begin(codes), std::end(codes)));
  INGOT_ASSIGN_OR_RETURN(const Expr table, CastTo(node, numbers, *type->dtype));
  INGOT_ASSIGN_OR_RETURN(b, node.Bind("take", {table, b}, {{"axis", int64_t{0}}}));
  INGOT_ASSIGN_OR_RETURN(b, node.Bind("reshape", {b, ShapeOf({ir::Int64(blocks), ir::Int64(shape.block)})}));
  INGOT_ASSIGN_OR_RETURN(scale, node.Bind("reshape", {scale, ShapeOf({ir::Int64(blocks), ir::Int64(1)})}));
  INGOT_ASSIGN_OR_RETURN(b, node.Bind("multiply", {b, scale}));
  if (blocks * shape.block != count) {
    INGOT_ASSIGN_OR_RETURN(b, node.Bind("reshape", {b, ShapeOf({ir::Int64(1), ir::Int64(blocks * shape.block)})}));
    INGOT_ASSIGN_OR_RETURN(b, FirstColumns(node, std::move(b), count));
  }
  INGOT_ASSIGN_OR_RETURN(b, node.Bind("reshape", {b, ShapeOf({ir::Int64(shape.rows), ir::Int64(shape.columns)})}));
  if (is_transposed != 0) {
    INGOT_ASSIGN_OR_RETURN(b, Permuted(node, std::move(b), {1, 0}));
  }
  return One(node.Call("matmul", {a, b}));
}

constexpr OnnxOpRow kBlocksRows[] = {
    {"GatherBlockQuantized", nullptr, GatherBlockQuantized, kMicrosoft},
    {"MatMulBnb4", nullptr, MatMulBnb4, kMicrosoft},
    {"MatMulNBits", nullptr, MatMulNBits, kMicrosoft},
};

}  // namespace

std::span<const OnnxOpRow> BlocksOnnxOps() { return kBlocksRows; }

}  // namespace ingot::importer
