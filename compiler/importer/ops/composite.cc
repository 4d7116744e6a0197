// Operators that ONNX defines by a function of others, and small ones that are one operator with other attributes,
// written as calls. ONNX's own function bodies are data of its library, which is not needed to run the compiler.
#include "compiler/importer/ops/families.h"

#include <algorithm>
#include <cmath>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

Result<DataType> DtypeOf(const NodeImporter& node, size_t input) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(input));
  return *type->dtype;
}

// ---- conversions and comparisons

Outputs CastLike(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, node.ElementType(1));
  return One(ConvertTo(node, std::move(x), dtype));
}

Outputs IsInf(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, DtypeOf(node, 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t positive, node.Int("detect_positive", 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t negative, node.Int("detect_negative", 1));
  if (positive != 0 && negative != 0) return One(node.Call("isinf", {x}));
  INGOT_ASSIGN_OR_RETURN(Expr zero, node.Scalar(0, dtype));
  INGOT_ASSIGN_OR_RETURN(Expr infinite, node.Bind("isinf", {x}));
  if (positive == 0 && negative == 0) {
    INGOT_ASSIGN_OR_RETURN(Expr finite, node.Bind("logical_not", {infinite}));
    return One(node.Call("logical_and", {infinite, finite}));
  }
  INGOT_ASSIGN_OR_RETURN(Expr sign, node.Bind(positive != 0 ? "greater" : "less", {x, zero}));
  return One(node.Call("logical_and", {infinite, sign}));
}

// ---- arithmetic

Outputs Mod(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr y, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const int64_t fmod, node.Int("fmod", 0));
  return One(node.Call(fmod != 0 ? "mod" : "floor_mod", {x, y}));
}

Outputs BitShift(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr y, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::string direction, node.String("direction", ""));
  if (direction != "LEFT" && direction != "RIGHT") return node.Invalid("direction is \"" + direction + "\"");
  return One(node.Call(direction == "LEFT" ? "left_shift" : "right_shift", {x, y}));
}

// The sum of all inputs in the dtype of steps.
Result<Expr> SumOfInputs(const NodeImporter& node, DataType dtype) {
  INGOT_ASSIGN_OR_RETURN(Expr sum, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(sum, CastTo(node, std::move(sum), dtype));
  for (size_t i = 1; i < node.num_inputs(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr next, node.Input(i));
    INGOT_ASSIGN_OR_RETURN(next, CastTo(node, std::move(next), dtype));
    INGOT_ASSIGN_OR_RETURN(sum, node.Bind("add", {sum, next}));
  }
  return sum;
}

Outputs Sum(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, DtypeOf(node, 0));
  const bool has_steps = node.num_inputs() > 2;
  INGOT_ASSIGN_OR_RETURN(const Expr sum, SumOfInputs(node, has_steps ? StepType(dtype) : dtype));
  return One(CastTo(node, sum, dtype));
}

Outputs Mean(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, DtypeOf(node, 0));
  INGOT_ASSIGN_OR_RETURN(const Expr sum, SumOfInputs(node, StepType(dtype)));
  INGOT_ASSIGN_OR_RETURN(const Expr count, node.Scalar(static_cast<int64_t>(node.num_inputs()), StepType(dtype)));
  INGOT_ASSIGN_OR_RETURN(const Expr mean, node.Bind("divide", {sum, count}));
  return One(CastTo(node, mean, dtype));
}

// Splits in halves along an axis, and multiplies one half by the swish of the other.
Outputs SwiGlu(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr gate, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const DataType own, DtypeOf(node, 0));
  const DataType dtype = StepType(own);
  INGOT_ASSIGN_OR_RETURN(gate, CastTo(node, std::move(gate), dtype));
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), dtype));
  INGOT_ASSIGN_OR_RETURN(const double alpha, node.Float("alpha", 1));
  INGOT_ASSIGN_OR_RETURN(Expr scale, node.Scalar(alpha, dtype));
  INGOT_ASSIGN_OR_RETURN(Expr scaled, node.Bind("multiply", {gate, scale}));
  INGOT_ASSIGN_OR_RETURN(scaled, node.Bind("sigmoid", {scaled}));
  INGOT_ASSIGN_OR_RETURN(scaled, node.Bind("multiply", {gate, scaled}));
  INGOT_ASSIGN_OR_RETURN(const Expr product, node.Bind("multiply", {scaled, x}));
  return One(CastTo(node, product, own));
}

// ---- blocks of space and depth

struct BlockDims {
  PrimExpr n, c, h, w;
  int64_t block = 1;
};
Result<BlockDims> ReadBlocks(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t block, node.Int("blocksize", 0));
  if (in.size() != 4) return node.Invalid("expected a rank of 4, got " + std::to_string(in.size()));
  if (block < 1 || block > 65536) return node.Invalid("blocksize is " + std::to_string(block));
  return BlockDims{in[0], in[1], in[2], in[3], block};
}

// Returns x with the dims that it has if its blocks are whole; dims that are not proved are compared at run time.
Result<Expr> WholeBlocks(const NodeImporter& node, Expr x, std::vector<PrimExpr> dims) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  bool is_proved = true;
  for (size_t i = 0; i < dims.size(); ++i) {
    dims[i] = op::SimplifyDim(dims[i]);
    if (op::DimsDiffer(dims[i], in[i])) return node.Invalid("depth, height or width is no multiple of the block");
    is_proved &= op::DimsEqual(dims[i], in[i]);
  }
  if (is_proved) return x;
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, DtypeOf(node, 0));
  return node.Match(std::move(x), ir::Make<ir::TensorTypeNode>(std::move(dims), dtype));
}

Outputs DepthToSpace(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const BlockDims d, ReadBlocks(node));
  INGOT_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "DCR"));
  if (mode != "DCR" && mode != "CRD") return node.Invalid("mode is \"" + mode + "\"");
  const PrimExpr b = ir::Int64(d.block), depth = op::SimplifyDim(ir::FloorDiv(d.c, ir::Int64(d.block * d.block)));
  INGOT_ASSIGN_OR_RETURN(x, WholeBlocks(node, std::move(x), {d.n, depth * (d.block * d.block), d.h, d.w}));
  const bool depth_last = mode == "DCR";
  const std::vector<PrimExpr> split = depth_last ? std::vector<PrimExpr>{d.n, b, b, depth, d.h, d.w}
                                                 : std::vector<PrimExpr>{d.n, depth, b, b, d.h, d.w};
  const std::vector<int64_t> order =
      depth_last ? std::vector<int64_t>{0, 3, 4, 1, 5, 2} : std::vector<int64_t>{0, 1, 4, 2, 5, 3};
  INGOT_ASSIGN_OR_RETURN(Expr blocks, node.Bind("reshape", {x, ShapeOf(split)}));
  INGOT_ASSIGN_OR_RETURN(blocks, node.Bind("permute_dims", {blocks}, {{"axes", AttrValue::Ints(order)}}));
  return One(ReshapeTo(node, blocks, {d.n, depth, op::SimplifyDim(d.h * d.block), op::SimplifyDim(d.w * d.block)}));
}

// The places within a block come before the channels (DCR), or, from opset 28 on, behind them if the mode is CRD.
Outputs SpaceToDepth(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const BlockDims d, ReadBlocks(node));
  INGOT_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "DCR"));
  if (mode != "DCR" && mode != "CRD") return node.Invalid("mode is \"" + mode + "\"");
  const PrimExpr b = ir::Int64(d.block);
  const PrimExpr h = op::SimplifyDim(ir::FloorDiv(d.h, b)), w = op::SimplifyDim(ir::FloorDiv(d.w, b));
  INGOT_ASSIGN_OR_RETURN(x, WholeBlocks(node, std::move(x), {d.n, d.c, h * d.block, w * d.block}));
  const std::vector<int64_t> order =
      mode == "DCR" ? std::vector<int64_t>{0, 3, 5, 1, 2, 4} : std::vector<int64_t>{0, 1, 3, 5, 2, 4};
  INGOT_ASSIGN_OR_RETURN(Expr blocks, node.Bind("reshape", {x, ShapeOf({d.n, d.c, h, b, w, b})}));
  INGOT_ASSIGN_OR_RETURN(blocks, node.Bind("permute_dims", {blocks}, {{"axes", AttrValue::Ints(order)}}));
  return One(ReshapeTo(node, blocks, {d.n, op::SimplifyDim(d.c * (d.block * d.block)), h, w}));
}

// ---- constants

// Ones on a diagonal: where the column is the row + k.
Outputs EyeLike(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const DataType own, DtypeOf(node, 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t number, node.Int("dtype", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t k, node.Int("k", 0));
  DataType dtype = own;
  if (number != 0) {
    INGOT_ASSIGN_OR_RETURN(dtype, OnnxDataType(number));
  }
  if (in.size() != 2) return node.Invalid("expected a rank of 2, got " + std::to_string(in.size()));
  constexpr int64_t kFar = int64_t{1} << 60;  // outside of every matrix, and far from overflow
  const PrimExpr first = ir::Int64(std::clamp(k, -kFar, kFar)), zero = ir::Int64(0), one = ir::Int64(1);
  const auto range = [&](const PrimExpr& begin, const PrimExpr& count, bool is_column) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(const Expr numbers,
                           node.Bind("arange", {Number(begin), Number(op::SimplifyDim(begin + count)), Number(one)},
                                     {{"dtype", DataType::Int(64)}}));
    return node.Bind("reshape", {numbers, ShapeOf(is_column ? std::vector{count, one} : std::vector{one, count})});
  };
  INGOT_ASSIGN_OR_RETURN(const Expr rows, range(first, in[0], true));
  INGOT_ASSIGN_OR_RETURN(const Expr columns, range(zero, in[1], false));
  INGOT_ASSIGN_OR_RETURN(const Expr is_one, node.Bind("equal", {rows, columns}));
  return One(CastTo(node, is_one, dtype));
}

// One value for all elements, float32 zero by default.
Outputs ConstantOfShape(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> dims, node.DataInts(0, "the shape"));
  Expr value = ConstantOf<float>(DataType::Float(32), {}, {0});
  if (const OnnxAttribute* attribute = node.FindAttr("value")) {
    const auto* tensor = std::get_if<ConstantDataPtr>(&attribute->value);
    if (tensor == nullptr || (*tensor)->num_elements() != 1)
      return node.Invalid("value: expected a tensor of one element");
    const std::span<const std::byte> bytes = (*tensor)->bytes();
    value =
        ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes((*tensor)->dtype(), {}, {bytes.begin(), bytes.end()}));
    INGOT_ASSIGN_OR_RETURN(value, Unpacked(std::move(value)));
  }
  return One(node.Call("full", {ShapeOf(std::move(dims)), value}));
}

// Window functions: a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N).
struct WindowCoefficients {
  double a0, a1, a2;
};
constexpr WindowCoefficients kHann = {0.5, 0.5, 0};
constexpr WindowCoefficients kHamming = {25.0 / 46.0, 21.0 / 46.0, 0};
constexpr WindowCoefficients kBlackman = {0.42, 0.5, 0.08};

// A window of a length that only run time knows, computed in float64 as the constant ones are.
Outputs WindowOfSize(const NodeImporter& node, const WindowCoefficients& of, const PrimExpr& size, bool is_periodic,
                     DataType dtype) {
  const DataType wide = DataType::Float(64);
  const PrimExpr zero = ir::Int64(0), one = ir::Int64(1);
  const PrimExpr steps = is_periodic ? size : op::SimplifyDim(ir::Max(size - one, zero));
  INGOT_ASSIGN_OR_RETURN(Expr period, node.Bind("shape_to_tensor", {ShapeOf({steps})}));
  INGOT_ASSIGN_OR_RETURN(period, node.Bind("astype", {period}, {{"dtype", wide}}));
  INGOT_ASSIGN_OR_RETURN(
      Expr angle, node.Bind("arange", {Number(zero), Number(size), Number(one)}, {{"dtype", DataType::Int(64)}}));
  INGOT_ASSIGN_OR_RETURN(angle, node.Bind("astype", {angle}, {{"dtype", wide}}));
  const auto number = [&](double value) { return ConstantOf<double>(wide, {}, {value}); };
  INGOT_ASSIGN_OR_RETURN(angle, node.Bind("multiply", {angle, number(2 * 3.14159265358979323846)}));
  INGOT_ASSIGN_OR_RETURN(angle, node.Bind("divide", {angle, period}));
  INGOT_ASSIGN_OR_RETURN(const Expr twice, node.Bind("multiply", {angle, number(2)}));
  INGOT_ASSIGN_OR_RETURN(Expr first, node.Bind("cos", {angle}));
  INGOT_ASSIGN_OR_RETURN(first, node.Bind("multiply", {first, number(of.a1)}));
  INGOT_ASSIGN_OR_RETURN(Expr second, node.Bind("cos", {twice}));
  INGOT_ASSIGN_OR_RETURN(second, node.Bind("multiply", {second, number(of.a2)}));
  INGOT_ASSIGN_OR_RETURN(Expr window, node.Bind("subtract", {number(of.a0), first}));
  INGOT_ASSIGN_OR_RETURN(window, node.Bind("add", {window, second}));
  return One(CastTo(node, window, dtype));
}

template <const auto& kCoefficients>
Outputs CosineWindow(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const int64_t number, node.Int("output_datatype", 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t periodic, node.Int("periodic", 1));
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, OnnxDataType(number));
  if (!node.IsConstant(0)) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> sizes, node.DataInts(0, "the size", 1));
    if (sizes.size() != 1) return node.Invalid("the size is no length of a window");
    return WindowOfSize(node, kCoefficients, sizes[0], periodic != 0, dtype);
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> size, node.ConstantInts(0, "the size"));
  constexpr int64_t kMaxSize = int64_t{1} << 24;
  if (size.size() != 1 || size[0] < 0 || size[0] > kMaxSize) return node.Invalid("the size is no length of a window");
  // A symmetric window of one element divides zero by zero, in the specification's function, too.
  const double period = static_cast<double>(periodic != 0 ? size[0] : size[0] - 1);
  std::vector<double> values;
  for (int64_t i = 0; i < size[0]; ++i) {
    const double angle = 2 * 3.14159265358979323846 * static_cast<double>(i) / period;
    values.push_back(kCoefficients.a0 - kCoefficients.a1 * std::cos(angle) + kCoefficients.a2 * std::cos(2 * angle));
  }
  return One(CastTo(node, ConstantOf<double>(DataType::Float(64), {size[0]}, values), dtype));
}

constexpr OnnxOpRow kCompositeRows[] = {
    {"BitShift", nullptr, BitShift},
    {"BitwiseAnd", "bitwise_and"},
    {"BitwiseOr", "bitwise_or"},
    {"BitwiseXor", "bitwise_xor"},
    {"BlackmanWindow", nullptr, CosineWindow<kBlackman>},
    {"CastLike", nullptr, CastLike},
    {"ConstantOfShape", nullptr, ConstantOfShape},
    {"DepthToSpace", nullptr, DepthToSpace},
    {"EyeLike", nullptr, EyeLike},
    {"HammingWindow", nullptr, CosineWindow<kHamming>},
    {"HannWindow", nullptr, CosineWindow<kHann>},
    {"IsInf", nullptr, IsInf},
    {"Mean", nullptr, Mean},
    {"Mod", nullptr, Mod},
    {"SpaceToDepth", nullptr, SpaceToDepth},
    {"Sum", nullptr, Sum},
    {"SwiGLU", nullptr, SwiGlu},
};

}  // namespace

std::span<const OnnxOpRow> CompositeOnnxOps() { return kCompositeRows; }

}  // namespace ingot::importer
