// Col2Im: sums of overlapping blocks. The image's shape may be data; the block's decides what a channel is.
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"
#include "runtime/tensor.h"

namespace ingot::importer {
namespace {

// x [n, channels * block elements, blocks] becomes [n, channels, image...].
Outputs Col2Im(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  if (in.size() != 3) return node.Invalid("expected a rank of 3, got " + std::to_string(in.size()));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> block, node.ConstantInts(2, "the block's shape"));
  const size_t rank = block.size();
  const auto count = static_cast<int64_t>(rank);
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> image, node.DataInts(1, "the image's shape", count));
  if (rank == 0 || image.size() != rank) return node.Invalid("expected an image and a block of one rank");
  if (rank + 2 > kMaxRank) return node.Unsupported("a block of " + std::to_string(rank) + " axes");
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> strides,
                         node.Ints("strides", std::vector<int64_t>(rank, 1), count));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dilations,
                         node.Ints("dilations", std::vector<int64_t>(rank, 1), count));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> pads,
                         node.Ints("pads", std::vector<int64_t>(2 * rank, 0), 2 * count));
  for (const PrimExpr& length : image) {
    if (const auto constant = ir::AsConstInt(length); constant && *constant < 1) {
      return node.Invalid("an image of length " + std::to_string(*constant));
    }
  }
  return One(node.Call("nn.fold", {x, ShapeOf(image)},
                       {{"block", AttrValue::Ints(block)},
                        {"strides", AttrValue::Ints(strides)},
                        {"padding", AttrValue::Ints(pads)},
                        {"dilation", AttrValue::Ints(dilations)}}));
}

constexpr OnnxOpRow kColumnRows[] = {
    {"Col2Im", nullptr, Col2Im},
};

}  // namespace

std::span<const OnnxOpRow> ColumnOnnxOps() { return kColumnRows; }

}  // namespace ingot::importer
