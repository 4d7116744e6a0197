// Col2Im: sums of overlapping blocks. Each element of the image is a sum of the elements of those blocks that cover it;
// where they lie is known when the model is imported, and a place of zero stands for blocks that do not cover it.
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

// One spatial axis: blocks of `block` elements, `dilation` apart, begin every `stride` elements of the padded image.
struct ColumnAxis {
  int64_t image, block, stride, dilation, pad_begin, count;
};

Result<std::vector<ColumnAxis>> ReadAxes(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> image, node.ConstantInts(1, "the image's shape"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> block, node.ConstantInts(2, "the block's shape"));
  const size_t rank = image.size();
  const auto count = static_cast<int64_t>(rank);
  if (rank == 0 || block.size() != rank) return node.Invalid("expected an image and a block of one rank");
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> strides,
                         node.Ints("strides", std::vector<int64_t>(rank, 1), count));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dilations,
                         node.Ints("dilations", std::vector<int64_t>(rank, 1), count));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> pads,
                         node.Ints("pads", std::vector<int64_t>(2 * rank, 0), 2 * count));
  constexpr int64_t kLimit = 1 << 20;
  const auto is_size = [](int64_t v) { return v >= 1 && v <= kLimit; };
  const auto is_pad = [](int64_t v) { return v >= 0 && v <= kLimit; };
  std::vector<ColumnAxis> axes;
  for (size_t i = 0; i < rank; ++i) {
    if (!is_size(image[i]) || !is_size(block[i]) || !is_size(strides[i]) || !is_size(dilations[i]) ||
        !is_pad(pads[i]) || !is_pad(pads[rank + i])) {
      return node.Invalid("sizes, strides or dilations are below 1, or pads below 0");
    }
    const int64_t room = image[i] + pads[i] + pads[rank + i] - dilations[i] * (block[i] - 1) - 1;
    if (room < 0) return node.Invalid("the block is longer than the padded image");
    axes.push_back({image[i], block[i], strides[i], dilations[i], pads[i], room / strides[i] + 1});
  }
  return axes;
}

int64_t ProductOf(const std::vector<ColumnAxis>& axes, int64_t ColumnAxis::*member, int64_t limit) {
  int64_t product = 1;
  for (const ColumnAxis& axis : axes) product = product > limit ? product : product * (axis.*member);
  return product;
}

// Where the element of the image at `pixel` lies in [block, count], if the element `in_block` of a block covers it;
// else behind all of them.
int64_t PlaceOf(const std::vector<ColumnAxis>& axes, int64_t pixel, int64_t in_block, int64_t num_blocks,
                int64_t none) {
  const int64_t row = in_block;
  int64_t column = 0, weight = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    const ColumnAxis& axis = axes[i];
    const int64_t at = pixel % axis.image + axis.pad_begin - in_block % axis.block * axis.dilation;
    if (at < 0 || at % axis.stride != 0 || at / axis.stride >= axis.count) return none;
    column += at / axis.stride * weight;
    weight *= axis.count;
    pixel /= axis.image;
    in_block /= axis.block;
  }
  return row * num_blocks + column;
}

// x [n, channels * block elements, blocks] becomes [n, channels, image...].
Outputs Col2Im(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<ColumnAxis> axes, ReadAxes(node));
  if (in.size() != 3) return node.Invalid("expected a rank of 3, got " + std::to_string(in.size()));
  constexpr int64_t kMostPlaces = int64_t{1} << 24;
  const int64_t pixels = ProductOf(axes, &ColumnAxis::image, kMostPlaces);
  const int64_t block = ProductOf(axes, &ColumnAxis::block, kMostPlaces);
  const int64_t count = ProductOf(axes, &ColumnAxis::count, kMostPlaces);
  if (pixels > kMostPlaces / block || count > kMostPlaces / block) {
    return node.Unsupported("an image and blocks of more than 2^24 pairs of elements");
  }
  const std::optional<int64_t> rows = ir::AsConstInt(in[1]);
  if (!rows) return node.Unsupported("a symbolic number of channels");
  if (*rows % block != 0) return node.Invalid("channels are no multiple of the block's elements");
  x = WithDims(node, x, {in[0], in[1], ir::Int64(count)});
  const PrimExpr channels = ir::Int64(*rows / block);
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf({in[0], channels, ir::Int64(block * count)})}));
  INGOT_ASSIGN_OR_RETURN(const Expr zeros,
                         node.Bind("zeros", {ShapeOf({in[0], channels, ir::Int64(1)})}, {{"dtype", DTypeOf(x)}}));
  const Expr parts = ir::Make<ir::TupleNode>(std::vector<Expr>{x, zeros},
                                             ir::Make<ir::TupleTypeNode>(std::vector<ir::Type>{x->type, zeros->type}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("concat", {parts}, {{"axis", int64_t{2}}}));
  std::vector<int64_t> places;
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    for (int64_t k = 0; k < block; ++k) places.push_back(PlaceOf(axes, pixel, k, count, block * count));
  }
  const Expr table = ConstantOf(DataType::Int(64), {pixels, block}, places);
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("take", {x, table}, {{"axis", int64_t{2}}}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("sum", {x}, {{"axis", AttrValue::Ints({3})}}));
  std::vector<PrimExpr> out = {in[0], channels};
  for (const ColumnAxis& axis : axes) out.push_back(ir::Int64(axis.image));
  return One(ReshapeTo(node, x, std::move(out)));
}

constexpr OnnxOpRow kColumnRows[] = {
    {"Col2Im", nullptr, Col2Im},
};

}  // namespace

std::span<const OnnxOpRow> ColumnOnnxOps() { return kColumnRows; }

}  // namespace ingot::importer
