// Each axis is resized apart: elements near the places of the result are taken, and added with their weights.
#include "compiler/importer/ops/resize_region.h"

#include <algorithm>

#include "compiler/importer/build.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

const DataType kPlaceOfRegion = DataType::Float(32);  // as ONNX Runtime computes places

class RegionResize {
 public:
  RegionResize(const NodeImporter& node, Expr region, int64_t num_axes, const RegionOptions& options)
      : node_(node), region_(std::move(region)), num_axes_(num_axes), options_(options) {}

  // Resizes x along an axis from its own length to this one; `i`: the axis' place in the region.
  Result<Expr> Along(const Expr& x, int64_t axis, const PrimExpr& length, int64_t i) {
    const PrimExpr zero = ir::Int64(0), one = ir::Int64(1);
    const PrimExpr own = DimsOf(x)[static_cast<size_t>(axis)], last = op::SimplifyDim(ir::Max(own - one, zero));
    INGOT_ASSIGN_OR_RETURN(const Expr extent, Number32(last));
    INGOT_ASSIGN_OR_RETURN(const Expr places, PlacesOf(length, extent, i));
    INGOT_RETURN_IF_ERROR(NoteOutside(places, extent, axis, length, std::ssize(DimsOf(x))));
    INGOT_ASSIGN_OR_RETURN(const Expr first, FirstOf(places));
    if (options_.method == "nearest") return Taken(x, first, 0, last, axis);
    INGOT_ASSIGN_OR_RETURN(const Expr share, Bind("subtract", places, first));
    const bool is_cubic = options_.method == "cubic";
    std::vector<Expr> weights;
    Expr total;
    for (int64_t offset = is_cubic ? -1 : 0; offset <= (is_cubic ? 2 : 1); ++offset) {
      INGOT_ASSIGN_OR_RETURN(Expr weight, is_cubic ? CubicWeight(share, offset) : LinearWeight(share, offset));
      if (is_cubic && options_.exclude_outside) {
        INGOT_ASSIGN_OR_RETURN(weight, WithoutOutside(weight, first, offset, extent));
        if (total == nullptr) {
          total = weight;
        } else {
          INGOT_ASSIGN_OR_RETURN(total, Bind("add", total, weight));
        }
      }
      weights.push_back(std::move(weight));
    }
    std::vector<PrimExpr> along(DimsOf(x).size(), one);
    along[static_cast<size_t>(axis)] = length;
    Expr sum;
    for (size_t tap = 0; tap < weights.size(); ++tap) {
      Expr weight = weights[tap];
      if (total != nullptr) {
        INGOT_ASSIGN_OR_RETURN(weight, Bind("divide", weight, total));
      }
      INGOT_ASSIGN_OR_RETURN(weight, CastTo(node_, std::move(weight), DTypeOf(x)));
      INGOT_ASSIGN_OR_RETURN(weight, node_.Bind("reshape", {weight, ShapeOf(along)}));
      const int64_t offset = static_cast<int64_t>(tap) - (is_cubic ? 1 : 0);
      INGOT_ASSIGN_OR_RETURN(Expr term, Taken(x, first, offset, last, axis));
      INGOT_ASSIGN_OR_RETURN(term, Bind("multiply", term, weight));
      if (sum == nullptr) {
        sum = std::move(term);
      } else {
        INGOT_ASSIGN_OR_RETURN(sum, Bind("add", sum, term));
      }
    }
    return sum;
  }

  // What lies inside of all axes so far: elements outside become the value for these.
  Result<Expr> WithOutside(const Expr& x) const {
    if (is_inside_ == nullptr) return x;
    INGOT_ASSIGN_OR_RETURN(const Expr value, node_.Scalar(options_.outside, DTypeOf(x)));
    return node_.Bind("where", {is_inside_, x, value});
  }

 private:
  Result<Expr> Bind(const char* row, const Expr& a, const Expr& b) const { return node_.Bind(row, {a, b}); }
  Result<Expr> Number32(const PrimExpr& dim) const {
    INGOT_ASSIGN_OR_RETURN(Expr number, node_.Bind("shape_to_tensor", {ShapeOf({dim})}));
    return CastTo(node_, std::move(number), kPlaceOfRegion);
  }
  // The beginning or the end of the region along an axis, [1].
  Result<Expr> Border(int64_t i) const {
    const std::vector<int64_t> axis = {0}, begin = {i}, end = {i + 1};
    return node_.Bind("strided_slice", {region_, PrimTuple(axis), PrimTuple(begin), PrimTuple(end)});
  }
  // start * (n - 1) + i * (end - start) * (n - 1) / (m - 1); of a single place the middle.
  Result<Expr> PlacesOf(const PrimExpr& length, const Expr& extent, int64_t i) const {
    const PrimExpr zero = ir::Int64(0), one = ir::Int64(1);
    INGOT_ASSIGN_OR_RETURN(const Expr start, Border(i));
    INGOT_ASSIGN_OR_RETURN(const Expr end, Border(i + num_axes_));
    INGOT_ASSIGN_OR_RETURN(const Expr side, Bind("subtract", end, start));
    INGOT_ASSIGN_OR_RETURN(Expr places,
                           node_.Bind("arange", {Number(zero), Number(length), Number(one)}, {{"dtype", kIndex}}));
    INGOT_ASSIGN_OR_RETURN(places, CastTo(node_, std::move(places), kPlaceOfRegion));
    INGOT_ASSIGN_OR_RETURN(places, Bind("multiply", places, side));
    INGOT_ASSIGN_OR_RETURN(places, Bind("multiply", places, extent));
    INGOT_ASSIGN_OR_RETURN(const Expr steps, Number32(op::SimplifyDim(ir::Max(length - one, one))));
    INGOT_ASSIGN_OR_RETURN(places, Bind("divide", places, steps));
    INGOT_ASSIGN_OR_RETURN(const Expr offset, Bind("multiply", start, extent));
    INGOT_ASSIGN_OR_RETURN(places, Bind("add", places, offset));
    return MiddleIfAlone(node_, std::move(places), length, start, end, extent);
  }
  Status NoteOutside(const Expr& places, const Expr& extent, int64_t axis, const PrimExpr& length, int64_t rank) {
    INGOT_ASSIGN_OR_RETURN(const Expr zero, node_.Scalar(0, kPlaceOfRegion));
    INGOT_ASSIGN_OR_RETURN(const Expr is_behind, Bind("greater_equal", places, zero));
    INGOT_ASSIGN_OR_RETURN(const Expr is_before, Bind("less_equal", places, extent));
    INGOT_ASSIGN_OR_RETURN(Expr is_inside, Bind("logical_and", is_behind, is_before));
    std::vector<PrimExpr> along(static_cast<size_t>(rank), ir::Int64(1));
    along[static_cast<size_t>(axis)] = length;
    INGOT_ASSIGN_OR_RETURN(is_inside, node_.Bind("reshape", {is_inside, ShapeOf(along)}));
    if (is_inside_ == nullptr) {
      is_inside_ = std::move(is_inside);
    } else {
      INGOT_ASSIGN_OR_RETURN(is_inside_, Bind("logical_and", is_inside_, is_inside));
    }
    return Status();
  }
  // The whole numbers from which the elements of places are counted: the nearest ones, or those below.
  Result<Expr> FirstOf(const Expr& places) const {
    if (options_.method != "nearest" || options_.rounding == "floor") return node_.Bind("floor", {places});
    if (options_.rounding == "ceil") return node_.Bind("ceil", {places});
    INGOT_ASSIGN_OR_RETURN(const Expr half, node_.Scalar(0.5, kPlaceOfRegion));
    const bool goes_down = options_.rounding == "round_prefer_floor";
    INGOT_ASSIGN_OR_RETURN(const Expr moved, Bind(goes_down ? "subtract" : "add", places, half));
    return node_.Bind(goes_down ? "ceil" : "floor", {moved});
  }
  // The elements of x at the whole numbers, or so many behind, those at the border where there are none.
  Result<Expr> Taken(const Expr& x, const Expr& whole, int64_t offset, const PrimExpr& last, int64_t axis) const {
    INGOT_ASSIGN_OR_RETURN(const Expr low, node_.Scalar(0, kPlaceOfRegion));
    INGOT_ASSIGN_OR_RETURN(const Expr high, Number32(last));
    Expr place = whole;
    if (offset != 0) {
      INGOT_ASSIGN_OR_RETURN(const Expr distance, node_.Scalar(offset, kPlaceOfRegion));
      INGOT_ASSIGN_OR_RETURN(place, Bind("add", place, distance));
    }
    INGOT_ASSIGN_OR_RETURN(place, Bind("minimum", place, high));
    INGOT_ASSIGN_OR_RETURN(place, Bind("maximum", place, low));
    INGOT_ASSIGN_OR_RETURN(place, CastTo(node_, std::move(place), kIndex));
    return node_.Bind("take", {x, place}, {{"axis", axis}});
  }
  Result<Expr> LinearWeight(const Expr& share, int64_t offset) const {
    if (offset == 1) return share;
    INGOT_ASSIGN_OR_RETURN(const Expr one, node_.Scalar(1, kPlaceOfRegion));
    return Bind("subtract", one, share);
  }
  // Keys' cubic convolution (1981) at the distance |share - offset|, by Horner's rule.
  Result<Expr> CubicWeight(const Expr& share, int64_t offset) const {
    const double a = options_.cubic_alpha;
    const bool is_near = offset == 0 || offset == 1;
    const std::vector<double> factors =
        is_near ? std::vector<double>{a + 2, -(a + 3), 0, 1} : std::vector<double>{a, -5 * a, 8 * a, -4 * a};
    INGOT_ASSIGN_OR_RETURN(const Expr place, node_.Scalar(offset, kPlaceOfRegion));
    INGOT_ASSIGN_OR_RETURN(Expr distance, Bind("subtract", share, place));
    INGOT_ASSIGN_OR_RETURN(distance, node_.Bind("abs", {distance}));
    Expr sum;
    for (const double factor : factors) {
      INGOT_ASSIGN_OR_RETURN(const Expr number, node_.Scalar(factor, kPlaceOfRegion));
      if (sum == nullptr) {
        sum = number;
        continue;
      }
      INGOT_ASSIGN_OR_RETURN(sum, Bind("multiply", sum, distance));
      INGOT_ASSIGN_OR_RETURN(sum, Bind("add", sum, number));
    }
    return sum;
  }
  Result<Expr> WithoutOutside(const Expr& weight, const Expr& first, int64_t offset, const Expr& extent) const {
    INGOT_ASSIGN_OR_RETURN(const Expr distance, node_.Scalar(offset, kPlaceOfRegion));
    INGOT_ASSIGN_OR_RETURN(const Expr place, Bind("add", first, distance));
    INGOT_ASSIGN_OR_RETURN(const Expr zero, node_.Scalar(0, kPlaceOfRegion));
    INGOT_ASSIGN_OR_RETURN(const Expr is_behind, Bind("greater_equal", place, zero));
    INGOT_ASSIGN_OR_RETURN(const Expr is_before, Bind("less_equal", place, extent));
    INGOT_ASSIGN_OR_RETURN(const Expr is_inside, Bind("logical_and", is_behind, is_before));
    return node_.Bind("where", {is_inside, weight, zero});
  }

  const NodeImporter& node_;
  const Expr region_;
  const int64_t num_axes_;
  const RegionOptions& options_;
  Expr is_inside_;  // null: no axis was resized
};

}  // namespace

Result<Expr> ResizeRegion(const NodeImporter& node, const std::vector<int64_t>& axes, const std::vector<PrimExpr>& dims,
                          Expr region, const std::vector<int64_t>& region_axes, const RegionOptions& options) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  const bool is_floating = type->dtype->is_floating();
  if (!is_floating && options.method != "nearest") {
    return node.Unsupported("integers between the places of a region that data give");
  }
  const int64_t count = std::ssize(region_axes);
  INGOT_ASSIGN_OR_RETURN(region, CastTo(node, std::move(region), kPlaceOfRegion));
  region = WithDims(node, std::move(region), {ir::Int64(2 * count)});
  if (is_floating) {
    INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), StepType(*type->dtype)));
  }
  RegionResize resize(node, std::move(region), count, options);
  for (const int64_t axis : axes) {
    const auto place = std::ranges::find(region_axes, axis) - region_axes.begin();
    INGOT_ASSIGN_OR_RETURN(x, resize.Along(x, axis, dims[static_cast<size_t>(axis)], place));
  }
  INGOT_ASSIGN_OR_RETURN(x, resize.WithOutside(x));
  return CastTo(node, std::move(x), *type->dtype);
}

}  // namespace ingot::importer
