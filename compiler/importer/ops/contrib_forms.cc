// com.microsoft's operators that ONNX's own domain has, too: what ONNX Runtime's quantiser writes for models of opsets
// that lack 4 and 16 bits, older names, and distances of rows. They are imported as ONNX's own.
#include "compiler/importer/ops/contrib.h"
#include "compiler/importer/ops/families.h"

namespace ingot::importer {
namespace {

// An operator of the same name, inputs and attributes, as this opset has it.
template <const auto& kOp, int64_t opset = kLatestOpset>
Outputs SameForm(const NodeImporter& node) {
  std::vector<Expr> in;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr input, InputOrNull(node, i));
    in.push_back(std::move(input));
  }
  return One(Apply(node, kOp, in, node.node().attributes, opset));
}
constexpr char kQuantize[] = "QuantizeLinear";
constexpr char kDequantize[] = "DequantizeLinear";
constexpr char kGatherNd[] = "GatherND";
constexpr char kGridSample[] = "GridSample";
constexpr char kTrilu[] = "Trilu";

// Distances between the rows of A [m, k] and those of B [n, k], as ONNX Runtime computes them: |a|^2 + |b|^2 - 2 a b,
// and 0 where rounding makes less of it.
Outputs CDist(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"metric"}));
  INGOT_ASSIGN_OR_RETURN(const std::string metric, node.String("metric", "sqeuclidean"));
  if (metric != "sqeuclidean" && metric != "euclidean") return node.Unsupported("metric \"" + metric + "\"");
  std::vector<Expr> rows, squares;
  for (size_t i : {0, 1}) {
    INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(i));
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, i));
    if (dims.size() != 2) return node.Invalid("expected matrices, got rank " + std::to_string(dims.size()));
    INGOT_ASSIGN_OR_RETURN(Expr square, node.Bind("multiply", {x, x}));
    INGOT_ASSIGN_OR_RETURN(square, node.Bind("sum", {square}, {{"axis", AttrValue::Ints({1})}, {"keepdims", i == 0}}));
    rows.push_back(std::move(x));
    squares.push_back(std::move(square));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr turned, node.Bind("permute_dims", {rows[1]}, {{"axes", AttrValue::Ints({1, 0})}}));
  INGOT_ASSIGN_OR_RETURN(Expr product, node.Bind("matmul", {rows[0], turned}));
  INGOT_ASSIGN_OR_RETURN(const Expr two, node.Scalar(2, DTypeOf(product)));
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, DTypeOf(product)));
  INGOT_ASSIGN_OR_RETURN(product, node.Bind("multiply", {product, two}));
  INGOT_ASSIGN_OR_RETURN(const Expr sum, node.Bind("add", {squares[0], squares[1]}));
  INGOT_ASSIGN_OR_RETURN(Expr distance, node.Bind("subtract", {sum, product}));
  INGOT_ASSIGN_OR_RETURN(distance, node.Bind("maximum", {distance, zero}));
  if (metric == "sqeuclidean") return One(std::move(distance));
  return One(node.Call("sqrt", {distance}));
}

constexpr OnnxOpRow kFormRows[] = {
    {"CDist", nullptr, CDist, kMicrosoft},
    {"DequantizeLinear", nullptr, SameForm<kDequantize>, kMicrosoft},
    {"GatherND", nullptr, SameForm<kGatherNd>, kMicrosoft},
    {"GridSample", nullptr, SameForm<kGridSample, 16>, kMicrosoft},
    {"QuantizeLinear", nullptr, SameForm<kQuantize>, kMicrosoft},
    {"Trilu", nullptr, SameForm<kTrilu>, kMicrosoft},
};

}  // namespace

std::span<const OnnxOpRow> FormOnnxOps() { return kFormRows; }

}  // namespace ingot::importer
