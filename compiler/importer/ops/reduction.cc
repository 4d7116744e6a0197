// Reductions over axes.
#include "compiler/importer/ops/families.h"

#include "compiler/importer/ops/util.h"

namespace ingot::importer {
namespace {

// Axes are an attribute, or an input from opset 18 on (ReduceSum: 13). Without any, all of them, or none with
// noop_with_empty_axes.
template <const auto& kRow>
Outputs Reduce(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, AxesOf(node));
  INGOT_ASSIGN_OR_RETURN(const int64_t keep, node.Int("keepdims", 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t noop, node.Int("noop_with_empty_axes", 0));
  if (axes.empty() && noop != 0) return std::vector<Expr>{std::move(x)};
  const AttrValue axis = axes.empty() ? AttrValue() : AttrValue::Ints(axes);
  return One(node.Call(kRow, {x}, {{"axis", axis}, {"keepdims", keep != 0}}));
}
constexpr char kMax[] = "max";
constexpr char kMean[] = "mean";
constexpr char kMin[] = "min";
constexpr char kProd[] = "prod";
constexpr char kSum[] = "sum";

Outputs GlobalAveragePool(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  if (in.size() < 3) return node.Invalid("expected a rank of 3 or more, got " + std::to_string(in.size()));
  std::vector<int64_t> axes;
  for (size_t i = 2; i < in.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return One(node.Call("mean", {x}, {{"axis", AttrValue::Ints(axes)}, {"keepdims", true}}));
}

constexpr OnnxOpRow kRows[] = {
    {"GlobalAveragePool", nullptr, GlobalAveragePool},
    {"ReduceMax", nullptr, Reduce<kMax>},
    {"ReduceMean", nullptr, Reduce<kMean>},
    {"ReduceMin", nullptr, Reduce<kMin>},
    {"ReduceProd", nullptr, Reduce<kProd>},
    {"ReduceSum", nullptr, Reduce<kSum>},
};

}  // namespace

std::span<const OnnxOpRow> ReductionOnnxOps() { return kRows; }

}  // namespace ingot::importer
