// Deformable convolution (Dai et al., 2017; with a mask, Zhu et al., 2018): each tap of each window reads the data at its
// place plus an offset, between elements, and zeros outside.
//
//   columns [N, C, taps, results] = mask * grid_sample(data, places + offsets)
//   result                        = weight * columns, group by group
#include "compiler/importer/build.h"
#include "compiler/importer/ops/convolution.h"
#include "compiler/importer/ops/families.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

using PrimDims = std::vector<PrimExpr>;

// Places are computed in float64: the grid's coordinates from -1 to 1 lose nothing then.
constexpr DataType kPlace = DataType::Float(64);

struct Deformable {
  ConvCall conv;
  PrimDims spatial, out;        // extents of the data's and the result's spatial axes
  std::vector<int64_t> kernel;  // extents of the window
  int64_t taps = 1, groups = 1, offset_groups = 1;
  PrimExpr channels, outputs;
  size_t rank() const { return kernel.size(); }
};

bool IsNoMultiple(const PrimExpr& dim, int64_t count) {
  const auto number = ir::AsConstInt(dim);
  return number && *number % count != 0;
}
// One of `count` equal parts of a dim. That they are equal is compared by the reshape that takes them apart.
PrimExpr PartOf(const PrimExpr& dim, int64_t count) { return op::SimplifyDim(ir::FloorDiv(dim, ir::Int64(count))); }

Result<Deformable> ReadDeformable(const NodeImporter& node) {
  Deformable d;
  INGOT_ASSIGN_OR_RETURN(d.conv, ReadConv(node, 0, 1));
  INGOT_ASSIGN_OR_RETURN(d.groups, node.Int("group", 1));
  INGOT_ASSIGN_OR_RETURN(d.offset_groups, node.Int("offset_group", 1));
  d.channels = d.conv.data[1];
  d.outputs = d.conv.weight[0];
  if (d.groups < 1 || IsNoMultiple(d.channels, d.groups) || IsNoMultiple(d.outputs, d.groups)) {
    return node.Invalid("channels are not a multiple of group");
  }
  if (d.offset_groups < 1 || IsNoMultiple(d.channels, d.offset_groups)) {
    return node.Invalid("channels are not a multiple of offset_group");
  }
  const std::vector<int64_t> strides = d.conv.attrs.GetInts("strides"), padding = d.conv.attrs.GetInts("padding"),
                             dilation = d.conv.attrs.GetInts("dilation");
  const size_t rank = d.conv.data.size() - 2;
  for (size_t a = 0; a < rank; ++a) {
    d.kernel.push_back(*ir::AsConstInt(d.conv.weight[2 + a]));
    d.taps *= d.kernel.back();
    d.spatial.push_back(d.conv.data[2 + a]);
    const int64_t reach = (d.kernel[a] - 1) * dilation[a] + 1;
    const PrimExpr slack = d.spatial[a] + (padding[a] + padding[rank + a] - reach);
    d.out.push_back(op::SimplifyDim(ir::FloorDiv(slack, ir::Int64(strides[a])) + 1));
  }
  return d;
}

PrimDims Joined(std::initializer_list<PrimExpr> first, const PrimDims& rest) {
  PrimDims dims = first;
  dims.insert(dims.end(), rest.begin(), rest.end());
  return dims;
}

// The coordinate from -1 to 1 along an axis of the data, [N, offset groups, taps, out..., 1].
Result<Expr> Coordinate(const NodeImporter& node, const Deformable& d, const Expr& offsets, size_t axis) {
  const std::vector<int64_t> strides = d.conv.attrs.GetInts("strides"), padding = d.conv.attrs.GetInts("padding"),
                             dilation = d.conv.attrs.GetInts("dilation");
  const PrimExpr one = ir::Int64(1), groups = ir::Int64(d.offset_groups), taps = ir::Int64(d.taps);
  // offsets [N, offset groups, taps, axes, out...]
  const auto at = static_cast<int64_t>(axis);
  INGOT_ASSIGN_OR_RETURN(Expr place, node.Bind("strided_slice", {offsets, PrimTuple(std::vector<int64_t>{3}),
                                                                 PrimTuple(std::vector<int64_t>{at}),
                                                                 PrimTuple(std::vector<int64_t>{at + 1})}));
  const PrimDims dims = Joined({d.conv.data[0], groups, taps}, d.out);
  INGOT_ASSIGN_OR_RETURN(place, ReshapeTo(node, place, dims));
  // The window's first place along the axis, and the tap's distance from it.
  int64_t inner = 1;
  for (size_t a = axis + 1; a < d.rank(); ++a) inner *= d.kernel[a];
  std::vector<double> distances;
  for (int64_t tap = 0; tap < d.taps; ++tap) {
    distances.push_back(static_cast<double>(tap / inner % d.kernel[axis] * dilation[axis] - padding[axis]));
  }
  std::vector<int64_t> of_taps(dims.size(), 1);
  of_taps[2] = d.taps;
  INGOT_ASSIGN_OR_RETURN(place, node.Bind("add", {place, ConstantOf(kPlace, of_taps, distances)}));
  INGOT_ASSIGN_OR_RETURN(Expr first, node.Bind("arange", {Number(ir::Int64(0)), Number(d.out[axis]), Number(one)},
                                               {{"dtype", DataType::Int(64)}}));
  INGOT_ASSIGN_OR_RETURN(first, CastTo(node, first, kPlace));
  INGOT_ASSIGN_OR_RETURN(const Expr stride, node.Scalar(strides[axis], kPlace));
  INGOT_ASSIGN_OR_RETURN(first, node.Bind("multiply", {first, stride}));
  PrimDims of_first(dims.size(), one);
  of_first[3 + axis] = d.out[axis];
  INGOT_ASSIGN_OR_RETURN(first, ReshapeTo(node, first, of_first));
  INGOT_ASSIGN_OR_RETURN(place, node.Bind("add", {place, first}));
  // (2 place + 1) / extent - 1
  INGOT_ASSIGN_OR_RETURN(Expr extent, node.Bind("shape_to_tensor", {ShapeOf({d.spatial[axis]})}));
  INGOT_ASSIGN_OR_RETURN(extent, CastTo(node, extent, kPlace));
  INGOT_ASSIGN_OR_RETURN(const Expr two, node.Scalar(2, kPlace));
  INGOT_ASSIGN_OR_RETURN(const Expr unit, node.Scalar(1, kPlace));
  INGOT_ASSIGN_OR_RETURN(place, node.Bind("multiply", {place, two}));
  INGOT_ASSIGN_OR_RETURN(place, node.Bind("add", {place, unit}));
  INGOT_ASSIGN_OR_RETURN(place, node.Bind("divide", {place, extent}));
  INGOT_ASSIGN_OR_RETURN(place, node.Bind("subtract", {place, unit}));
  PrimDims last = dims;
  last.push_back(one);
  return ReshapeTo(node, place, last);
}

Outputs DeformConv(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr data, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr weight, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(Expr offsets, node.Input(2));
  INGOT_ASSIGN_OR_RETURN(const Deformable d, ReadDeformable(node));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> given, StaticRankDims(node, 2));
  const PrimExpr& batch = d.conv.data[0];
  const PrimExpr groups = ir::Int64(d.offset_groups), taps = ir::Int64(d.taps);
  const auto rank = static_cast<int64_t>(d.rank());
  std::vector<PrimExpr> of_weight = d.conv.weight;
  of_weight[1] = PartOf(d.channels, d.groups);
  if (op::DimsDiffer(of_weight[1], d.conv.weight[1])) return node.Invalid("weights of other channels than the data's");
  weight = WithDims(node, std::move(weight), std::move(of_weight));
  if (given.size() != d.conv.data.size()) return node.Invalid("offsets of another rank than the data's");
  offsets = WithDims(node, offsets, Joined({batch, ir::Int64(d.offset_groups * d.taps * rank)}, d.out));
  INGOT_ASSIGN_OR_RETURN(offsets, CastTo(node, offsets, kPlace));
  INGOT_ASSIGN_OR_RETURN(offsets, ReshapeTo(node, offsets, Joined({batch, groups, taps, ir::Int64(rank)}, d.out)));
  std::vector<Expr> coordinates;  // a grid has the last axis of the data first
  for (size_t axis = d.rank(); axis-- > 0;) {
    INGOT_ASSIGN_OR_RETURN(coordinates.emplace_back(), Coordinate(node, d, offsets, axis));
  }
  INGOT_ASSIGN_OR_RETURN(Expr grid, node.Bind("concat", {TupleOf(coordinates)}, {{"axis", 3 + rank}}));
  // One sample per group of offsets; taps stand before the first axis of the result.
  const PrimExpr samples = op::SimplifyDim(batch * d.offset_groups);
  PrimDims places = d.out;
  places[0] = op::SimplifyDim(places[0] * d.taps);
  PrimDims grid_dims = Joined({samples}, places);
  grid_dims.push_back(ir::Int64(rank));
  INGOT_ASSIGN_OR_RETURN(grid, ReshapeTo(node, grid, grid_dims));
  const PrimExpr in_group = PartOf(d.channels, d.offset_groups);
  INGOT_ASSIGN_OR_RETURN(data, ReshapeTo(node, data, Joined({samples, in_group}, d.spatial)));
  INGOT_ASSIGN_OR_RETURN(Expr columns,
                         node.Bind("image.grid_sample", {data, grid},
                                   {{"method", "linear"}, {"padding_mode", "zeros"}, {"align_corners", false}}));
  if (node.HasInput(4)) {
    INGOT_ASSIGN_OR_RETURN(Expr mask, node.Input(4));
    mask = WithDims(node, mask, Joined({batch, ir::Int64(d.offset_groups * d.taps)}, d.out));
    INGOT_ASSIGN_OR_RETURN(mask, ReshapeTo(node, mask, Joined({samples, ir::Int64(1)}, places)));
    INGOT_ASSIGN_OR_RETURN(columns, node.Bind("multiply", {columns, mask}));
  }
  // [N, groups, channels of a group * taps, results]
  const PrimExpr results = Product(d.out), conv_groups = ir::Int64(d.groups);
  const PrimExpr depth = op::SimplifyDim(PartOf(d.channels, d.groups) * d.taps);
  INGOT_ASSIGN_OR_RETURN(columns, ReshapeTo(node, columns, {batch, conv_groups, depth, results}));
  INGOT_ASSIGN_OR_RETURN(weight,
                         ReshapeTo(node, weight, {ir::Int64(1), conv_groups, PartOf(d.outputs, d.groups), depth}));
  INGOT_ASSIGN_OR_RETURN(Expr y, node.Bind("matmul", {weight, columns}));
  INGOT_ASSIGN_OR_RETURN(y, ReshapeTo(node, y, Joined({batch, d.outputs}, d.out)));
  if (!node.HasInput(3)) return std::vector<Expr>{std::move(y)};
  INGOT_ASSIGN_OR_RETURN(Expr bias, node.Input(3));
  PrimDims of_bias(d.conv.data.size(), ir::Int64(1));
  of_bias[1] = d.outputs;
  INGOT_ASSIGN_OR_RETURN(bias, ReshapeTo(node, bias, of_bias));
  return One(node.Call("add", {y, bias}));
}

constexpr OnnxOpRow kDeformableRows[] = {{"DeformConv", nullptr, DeformConv}};

}  // namespace

std::span<const OnnxOpRow> DeformableOnnxOps() { return kDeformableRows; }

}  // namespace ingot::importer
