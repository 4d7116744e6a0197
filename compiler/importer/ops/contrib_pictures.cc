// com.microsoft's operators on pictures that converters of TensorFlow's graphs write: boxes that are cut out and resized,
// and transposed convolutions whose padding is an input.
#include <algorithm>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/contrib.h"
#include "compiler/importer/ops/families.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

// ---- CropAndResize

// The places of samples along an axis of a picture: [boxes, samples].
struct Samples {
  Expr places;
  Expr is_inside;
  Expr below, above,
      share;  // the neighbours of a place, and how far it is from the lower one; of the nearest: below alone
};

class Crops {
 public:
  Crops(const NodeImporter& node, Expr boxes, PrimExpr num_boxes, bool is_nearest)
      : node_(node), boxes_(std::move(boxes)), num_boxes_(std::move(num_boxes)), is_nearest_(is_nearest) {}

  // The box's side begins at its column `begin` and ends two further, as a part of the picture's `length`; `count` samples lie on it,
  // the first and the last one on its ends, a single one in its middle.
  Result<Samples> Along(int64_t begin, const PrimExpr& length, const PrimExpr& count) const {
    const DataType dtype = DTypeOf(boxes_);
    const PrimExpr zero = ir::Int64(0), one = ir::Int64(1), last = op::SimplifyDim(ir::Max(length - one, zero));
    INGOT_ASSIGN_OR_RETURN(const Expr first, Column(begin));
    INGOT_ASSIGN_OR_RETURN(const Expr end, Column(begin + 2));
    INGOT_ASSIGN_OR_RETURN(const Expr extent, AsNumber(last, dtype));
    INGOT_ASSIGN_OR_RETURN(const Expr steps, AsNumber(op::SimplifyDim(ir::Max(count - one, one)), dtype));
    INGOT_ASSIGN_OR_RETURN(Expr step, Bind("subtract", end, first));
    INGOT_ASSIGN_OR_RETURN(step, Bind("multiply", step, extent));
    INGOT_ASSIGN_OR_RETURN(step, Bind("divide", step, steps));
    INGOT_ASSIGN_OR_RETURN(Expr places,
                           node_.Bind("arange", {Number(zero), Number(count), Number(one)}, {{"dtype", kIndex}}));
    INGOT_ASSIGN_OR_RETURN(places, CastTo(node_, std::move(places), dtype));
    INGOT_ASSIGN_OR_RETURN(places, node_.Bind("reshape", {places, ShapeOf({one, count})}));
    INGOT_ASSIGN_OR_RETURN(places, Bind("multiply", places, step));
    INGOT_ASSIGN_OR_RETURN(const Expr offset, Bind("multiply", first, extent));
    INGOT_ASSIGN_OR_RETURN(places, Bind("add", places, offset));
    INGOT_ASSIGN_OR_RETURN(places, MiddleIfAlone(node_, std::move(places), count, first, end, extent));
    return Sampled(std::move(places), extent, last);
  }

 private:
  Result<Expr> Bind(const char* row, const Expr& a, const Expr& b) const { return node_.Bind(row, {a, b}); }
  Result<Expr> AsNumber(const PrimExpr& dim, DataType dtype) const {
    INGOT_ASSIGN_OR_RETURN(Expr number, node_.Bind("shape_to_tensor", {ShapeOf({dim})}));
    return CastTo(node_, std::move(number), dtype);
  }
  Result<Expr> Column(int64_t i) const {
    const std::vector<int64_t> axis = {1}, begin = {i}, end = {i + 1};
    return node_.Bind("strided_slice", {boxes_, PrimTuple(axis), PrimTuple(begin), PrimTuple(end)});
  }
  // A place as an element's number: what is outside of the picture reads an element at its border, and is left out.
  Result<Expr> Element(Expr place, const PrimExpr& last) const {
    INGOT_ASSIGN_OR_RETURN(place, CastTo(node_, std::move(place), kIndex));
    INGOT_ASSIGN_OR_RETURN(const Expr zero, node_.Scalar(0, kIndex));
    INGOT_ASSIGN_OR_RETURN(const Expr end, node_.Bind("shape_to_tensor", {ShapeOf({last})}));
    INGOT_ASSIGN_OR_RETURN(place, Bind("minimum", place, end));
    return Bind("maximum", place, zero);
  }
  Result<Samples> Sampled(Expr places, const Expr& extent, const PrimExpr& last) const {
    Samples samples;
    INGOT_ASSIGN_OR_RETURN(const Expr zero, node_.Scalar(0, DTypeOf(places)));
    INGOT_ASSIGN_OR_RETURN(const Expr is_behind, Bind("greater_equal", places, zero));
    INGOT_ASSIGN_OR_RETURN(const Expr is_before, Bind("less_equal", places, extent));
    INGOT_ASSIGN_OR_RETURN(samples.is_inside, Bind("logical_and", is_behind, is_before));
    // Nothing beyond the ends is turned into an integer.
    INGOT_ASSIGN_OR_RETURN(places, node_.Bind("where", {samples.is_inside, places, zero}));
    if (is_nearest_) {
      INGOT_ASSIGN_OR_RETURN(const Expr half, node_.Scalar(0.5, DTypeOf(places)));
      INGOT_ASSIGN_OR_RETURN(Expr nearest, Bind("add", places, half));
      INGOT_ASSIGN_OR_RETURN(nearest, node_.Bind("floor", {nearest}));
      INGOT_ASSIGN_OR_RETURN(samples.below, Element(std::move(nearest), last));
      return samples;
    }
    INGOT_ASSIGN_OR_RETURN(const Expr floor, node_.Bind("floor", {places}));
    INGOT_ASSIGN_OR_RETURN(const Expr ceil, node_.Bind("ceil", {places}));
    INGOT_ASSIGN_OR_RETURN(samples.share, Bind("subtract", places, floor));
    INGOT_ASSIGN_OR_RETURN(samples.below, Element(floor, last));
    INGOT_ASSIGN_OR_RETURN(samples.above, Element(ceil, last));
    samples.places = std::move(places);
    return samples;
  }

  const NodeImporter& node_;
  const Expr boxes_;  // [boxes, 4]: y1, x1, y2, x2
  const PrimExpr num_boxes_;
  const bool is_nearest_;
};

// Checks that each box is of one of so many pictures: those that are not are counted, and there may be no boxes.
Status MatchPictures(const NodeImporter& node, const Expr& pictures, const PrimExpr& count) {
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, kIndex));
  INGOT_ASSIGN_OR_RETURN(const Expr end, node.Bind("shape_to_tensor", {ShapeOf({count})}));
  INGOT_ASSIGN_OR_RETURN(const Expr is_before, node.Bind("less", {pictures, zero}));
  INGOT_ASSIGN_OR_RETURN(const Expr is_behind, node.Bind("greater_equal", {pictures, end}));
  INGOT_ASSIGN_OR_RETURN(Expr wrong, node.Bind("logical_or", {is_before, is_behind}));
  INGOT_ASSIGN_OR_RETURN(wrong, CastTo(node, std::move(wrong), kIndex));
  INGOT_ASSIGN_OR_RETURN(wrong, node.Bind("sum", {wrong}, {{"axis", AttrValue::Ints({0})}, {"keepdims", true}}));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> number, node.NameElements(std::move(wrong)));
  node.Match(ShapeOf(number), ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{ir::Int64(0)}));
  return Status();
}

// Inputs: pictures [n, channels, height, width], boxes [y1, x1, y2, x2] as parts of a picture's sides, the picture of
// each box, and the size of the results. What of a box lies outside is `extrapolation_value`.
Outputs CropAndResize(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"extrapolation_value", "mode"}));
  INGOT_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "bilinear"));
  if (mode != "bilinear" && mode != "nearest") return node.Invalid("mode is \"" + mode + "\"");
  INGOT_ASSIGN_OR_RETURN(const double outside, node.Float("extrapolation_value", 0));
  INGOT_ASSIGN_OR_RETURN(const Expr pictures, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> of_boxes, StaticRankDims(node, 1));
  if (dims.size() != 4 || of_boxes.size() != 2) return node.Invalid("expected pictures of rank 4 and boxes of rank 2");
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> size, node.DataInts(3, "the size of crops", 2));
  if (size.size() != 2) return node.Invalid("expected a height and a width of crops");
  for (const PrimExpr& length : size) {
    const auto number = ir::AsConstInt(length);
    if (number && *number < 1) return node.Invalid("a crop of length " + std::to_string(*number));
    if (number) continue;
    node.Match(ShapeOf({ir::Max(length, ir::Int64(1))}), ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{length}));
  }
  const PrimExpr &count = of_boxes[0], &channels = dims[1], &height = dims[2], &width = dims[3], one = ir::Int64(1);
  const DataType dtype = DTypeOf(pictures), step = StepType(dtype);
  INGOT_ASSIGN_OR_RETURN(Expr boxes, InputOfDims(node, 1, {count, ir::Int64(4)}));
  INGOT_ASSIGN_OR_RETURN(boxes, CastTo(node, std::move(boxes), step));
  const bool is_nearest = mode == "nearest";
  const Crops crops(node, boxes, count, is_nearest);
  INGOT_ASSIGN_OR_RETURN(const Samples rows, crops.Along(0, height, size[0]));
  INGOT_ASSIGN_OR_RETURN(const Samples columns, crops.Along(1, width, size[1]));
  const auto bind = [&](const char* row, const Expr& a, const Expr& b) { return node.Bind(row, {a, b}); };
  // Along the axes of the result [boxes, channels, rows, columns].
  const auto of_rows = [&](const Expr& x) { return node.Bind("reshape", {x, ShapeOf({count, one, size[0], one})}); };
  const auto of_columns = [&](const Expr& x) { return node.Bind("reshape", {x, ShapeOf({count, one, one, size[1]})}); };
  const auto times = [&](const Expr& x, const PrimExpr& dim) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(const Expr factor, node.Bind("shape_to_tensor", {ShapeOf({dim})}));
    return bind("multiply", x, factor);
  };
  // The place of the first element of a box's channel among all pictures.
  INGOT_ASSIGN_OR_RETURN(Expr planes, InputOfDims(node, 2, {count}));
  INGOT_ASSIGN_OR_RETURN(planes, CastTo(node, std::move(planes), kIndex));
  INGOT_RETURN_IF_ERROR(MatchPictures(node, planes, dims[0]));
  INGOT_ASSIGN_OR_RETURN(planes, node.Bind("reshape", {planes, ShapeOf({count, one, one, one})}));
  INGOT_ASSIGN_OR_RETURN(planes, times(planes, channels));
  INGOT_ASSIGN_OR_RETURN(
      Expr channel, node.Bind("arange", {Number(ir::Int64(0)), Number(channels), Number(one)}, {{"dtype", kIndex}}));
  INGOT_ASSIGN_OR_RETURN(channel, node.Bind("reshape", {channel, ShapeOf({one, channels, one, one})}));
  INGOT_ASSIGN_OR_RETURN(planes, bind("add", planes, channel));
  INGOT_ASSIGN_OR_RETURN(planes, times(planes, op::SimplifyDim(height * width)));
  INGOT_ASSIGN_OR_RETURN(const Expr elements, node.Bind("reshape", {pictures, ShapeOf({Product(dims)})}));
  const auto taken = [&](const Expr& row, const Expr& column) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(Expr place, of_rows(row));
    INGOT_ASSIGN_OR_RETURN(place, times(place, width));
    INGOT_ASSIGN_OR_RETURN(place, bind("add", planes, place));
    INGOT_ASSIGN_OR_RETURN(const Expr within, of_columns(column));
    INGOT_ASSIGN_OR_RETURN(place, bind("add", place, within));
    INGOT_ASSIGN_OR_RETURN(const Expr x, node.Bind("take", {elements, place}, {{"axis", int64_t{0}}}));
    return CastTo(node, x, step);
  };
  const auto between = [&](const Expr& a, const Expr& b, const Expr& share) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(Expr way, bind("subtract", b, a));
    INGOT_ASSIGN_OR_RETURN(way, bind("multiply", way, share));
    return bind("add", a, way);
  };
  Expr y;
  if (is_nearest) {
    INGOT_ASSIGN_OR_RETURN(y, taken(rows.below, columns.below));
  } else {
    std::vector<Expr> lines;
    INGOT_ASSIGN_OR_RETURN(const Expr across, of_columns(columns.share));
    INGOT_ASSIGN_OR_RETURN(const Expr down, of_rows(rows.share));
    for (const Expr& row : {rows.below, rows.above}) {
      INGOT_ASSIGN_OR_RETURN(const Expr left, taken(row, columns.below));
      INGOT_ASSIGN_OR_RETURN(const Expr right, taken(row, columns.above));
      INGOT_ASSIGN_OR_RETURN(lines.emplace_back(), between(left, right, across));
    }
    INGOT_ASSIGN_OR_RETURN(y, between(lines[0], lines[1], down));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr in_rows, of_rows(rows.is_inside));
  INGOT_ASSIGN_OR_RETURN(const Expr in_columns, of_columns(columns.is_inside));
  INGOT_ASSIGN_OR_RETURN(const Expr is_inside, bind("logical_and", in_rows, in_columns));
  INGOT_ASSIGN_OR_RETURN(const Expr other, node.Scalar(outside, step));
  INGOT_ASSIGN_OR_RETURN(y, node.Bind("where", {is_inside, y, other}));
  return One(CastTo(node, std::move(y), dtype));
}

// ---- ConvTransposeWithDynamicPads

// Inputs: the picture, the weights, what is cut off the beginnings and the ends of axes, and a bias.
Outputs ConvTransposeWithDynamicPads(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(
      CheckAttributes(node, {"auto_pad", "dilations", "group", "kernel_shape", "output_padding", "strides"}));
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr weight, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const Expr bias, InputOrNull(node, 3));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  Attributes attributes = node.node().attributes;
  const auto plain = [&] { return Apply(node, "ConvTranspose", {x, weight, bias}, std::move(attributes)); };
  if (!node.HasInput(2)) return One(plain());
  INGOT_ASSIGN_OR_RETURN(const std::string auto_pad, node.String("auto_pad", "NOTSET"));
  if (auto_pad != "NOTSET") return node.Unsupported("auto_pad \"" + auto_pad + "\" beside pads");
  const int64_t rank = std::ssize(in) - 2;
  if (rank < 1) return node.Invalid("expected a picture, got rank " + std::to_string(in.size()));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> pads, node.DataInts(2, "the padding", 2 * rank));
  if (std::ssize(pads) != 2 * rank) return node.Invalid("expected two figures of padding per axis");
  std::vector<int64_t> numbers;
  for (const PrimExpr& pad : pads) {
    if (const auto number = ir::AsConstInt(pad)) numbers.push_back(*number);
  }
  if (numbers.size() == pads.size()) {
    attributes.push_back(AttributeOf("pads", numbers));
    return One(plain());
  }
  INGOT_ASSIGN_OR_RETURN(const Expr whole, plain());
  std::vector<PrimExpr> dims = DimsOf(whole), axes, begins, ends;
  for (int64_t i = 0; i < rank; ++i) {
    const PrimExpr &before = pads[static_cast<size_t>(i)], &after = pads[static_cast<size_t>(i + rank)];
    PrimExpr& dim = dims[static_cast<size_t>(i + 2)];
    axes.push_back(ir::Int64(i + 2));
    begins.push_back(before);
    ends.push_back(op::SimplifyDim(dim - after));
    dim = op::SimplifyDim(dim - before - after);
  }
  INGOT_ASSIGN_OR_RETURN(const Expr cut,
                         node.Bind("strided_slice", {whole, PrimTuple(axes), PrimTuple(begins), PrimTuple(ends)}));
  return One(WithDims(node, cut, std::move(dims)));
}

constexpr OnnxOpRow kPictureRows[] = {
    {"ConvTransposeWithDynamicPads", nullptr, ConvTransposeWithDynamicPads, kMicrosoft},
    {"CropAndResize", nullptr, CropAndResize, kMicrosoft},
};

}  // namespace

std::span<const OnnxOpRow> PictureOnnxOps() { return kPictureRows; }

}  // namespace ingot::importer
