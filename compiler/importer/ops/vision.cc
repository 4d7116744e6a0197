// Operators of object detection.
#include "compiler/importer/build.h"
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/util.h"
#include "compiler/script/composite_operators.h"
#include "runtime/check.h"

namespace ingot::importer {
namespace {

// Until opset 15 boxes are not shifted by half an element.
Outputs RoiAlign(const NodeImporter& node) {
  std::vector<Expr> args;
  for (size_t i : {0, 1, 2}) {
    INGOT_ASSIGN_OR_RETURN(Expr arg, node.Input(i));
    args.push_back(std::move(arg));
  }
  const char* default_places = node.opset() < 16 ? "output_half_pixel" : "half_pixel";
  INGOT_ASSIGN_OR_RETURN(const std::string places, node.String("coordinate_transformation_mode", default_places));
  INGOT_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "avg"));
  INGOT_ASSIGN_OR_RETURN(const int64_t height, node.Int("output_height", 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t width, node.Int("output_width", 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t samples, node.Int("sampling_ratio", 0));
  INGOT_ASSIGN_OR_RETURN(const double scale, node.Float("spatial_scale", 1));
  if (places != "half_pixel" && places != "output_half_pixel") {
    return node.Invalid("coordinate_transformation_mode is \"" + places + "\"");
  }
  return One(node.Call("vision.roi_align", args,
                       {{"pooled_size", AttrValue::Ints({height, width})},
                        {"spatial_scale", scale},
                        {"sample_ratio", samples},
                        {"aligned", places == "half_pixel"},
                        {"mode", mode}}));
}

// Returns x as whole numbers, halves away from zero.
Result<Expr> RoundedAway(const NodeImporter& node, const Expr& x) {
  INGOT_ASSIGN_OR_RETURN(const Expr half, node.Scalar(0.5, DTypeOf(x)));
  INGOT_ASSIGN_OR_RETURN(const Expr whole, node.Bind("trunc", {x}));
  INGOT_ASSIGN_OR_RETURN(const Expr rest, node.Bind("subtract", {x, whole}));
  INGOT_ASSIGN_OR_RETURN(const Expr distance, node.Bind("abs", {rest}));
  INGOT_ASSIGN_OR_RETURN(const Expr is_farther, node.Bind("greater_equal", {distance, half}));
  INGOT_ASSIGN_OR_RETURN(const Expr sign, node.Bind("sign", {x}));
  INGOT_ASSIGN_OR_RETURN(const Expr next, node.Bind("add", {whole, sign}));
  return node.Bind("where", {is_farther, next, whole});
}

// The greatest element of each bin of a box [batch, x1, y1, x2, y2]: it is composed as TVM's operator is, of places
// that are whole numbers already, since TVM's rounds negative halves up.
Outputs MaxRoiPool(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr images, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr boxes, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, 1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> pooled, node.Ints("pooled_shape", {}, 2));
  INGOT_ASSIGN_OR_RETURN(const double scale, node.Float("spatial_scale", 1));
  constexpr int64_t kMostBins = 1 << 16;
  for (const int64_t bins : pooled) {
    if (bins < 1 || bins > kMostBins) return node.Invalid("pooled_shape has " + std::to_string(bins));
  }
  if (dims.size() != 4 || own.size() != 2) return node.Invalid("expected images of rank 4 and boxes of rank 2");
  const Expr rows = WithDims(node, boxes, {own[0], ir::Int64(5)});
  const auto columns = [&](int64_t begin, int64_t end) {
    const auto one = [](int64_t value) { return PrimTuple(std::vector<int64_t>{value}); };
    return node.Bind("strided_slice", {rows, one(1), one(begin), one(end)});
  };
  INGOT_ASSIGN_OR_RETURN(const Expr batch, columns(0, 1));
  INGOT_ASSIGN_OR_RETURN(Expr places, columns(1, 5));
  INGOT_ASSIGN_OR_RETURN(const Expr factor, node.Scalar(scale, DTypeOf(rows)));
  INGOT_ASSIGN_OR_RETURN(places, node.Bind("multiply", {places, factor}));
  INGOT_ASSIGN_OR_RETURN(places, RoundedAway(node, places));
  INGOT_ASSIGN_OR_RETURN(const Expr whole, node.Bind("concat", {TupleOf({batch, places})}, {{"axis", int64_t{1}}}));
  const script::CompositeOperator* composite = script::FindComposite("vision.roi_pool");
  INGOT_CHECK(composite != nullptr, "the list of composed operators lacks one");
  return One(composite->compose({images, whole},
                                {{"pooled_size", AttrValue::Ints(pooled)}, {"spatial_scale", 1.0}, {"layout", "NCHW"}},
                                [&](Expr value) { return node.BindValue(std::move(value), "part"); }));
}

constexpr OnnxOpRow kVisionRows[] = {
    {"MaxRoiPool", nullptr, MaxRoiPool},
    {"RoiAlign", nullptr, RoiAlign},
};

}  // namespace

std::span<const OnnxOpRow> VisionOnnxOps() { return kVisionRows; }

}  // namespace ingot::importer
