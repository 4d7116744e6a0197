// The same elements at other places or under other dims: reshape, flatten, permute_dims, expand_dims, squeeze,
// broadcast_to, concat, strided_slice, nn.pad.
#include <algorithm>
#include <numeric>

#include "compiler/arith/analyzer.h"
#include "compiler/op/build.h"
#include "compiler/op/dim_size.h"
#include "compiler/op/families.h"
#include "compiler/op/fold.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/transform.h"

namespace ingot::op {
namespace {

// ---- reshape, flatten, expand_dims, squeeze: equal elements in equal order.
// At most one dim may be -1: it becomes the quotient of the numbers of elements.
Result<CallParts> NormalizeReshape(CallParts parts) {
  const auto* shape = ir::As<ir::ShapeExprNode>(parts.args[1]);
  const auto* x = ir::As<ir::TensorTypeNode>(parts.args[0]->type);
  if (shape == nullptr) return parts;
  Dims dims = shape->dims;
  const auto rest = std::ranges::find_if(dims, [](const ir::PrimExpr& dim) { return ir::IsConstInt(dim, -1); });
  if (rest == dims.end()) return parts;
  if (x == nullptr || !x->dims) return Status(StatusCode::kBadInput, "a -1 needs an input of known shape");
  // Dims that occur on both sides are left out of the quotient, where a sum would not cancel.
  Dims given = *x->dims, others;
  for (const ir::PrimExpr& dim : dims) {
    if (ir::IsConstInt(dim, 0)) return Status(StatusCode::kBadInput, "a -1 beside a 0 has no value");
    if (ir::IsConstInt(dim, -1)) continue;
    const auto same = std::ranges::find_if(given, [&](const ir::PrimExpr& own) { return DimsEqual(own, dim); });
    if (same == given.end()) {
      others.push_back(dim);
    } else {
      given.erase(same);
    }
  }
  *rest = SimplifyDim(ir::FloorDiv(ProductOf(given), ProductOf(others)));
  parts.args[1] = ir::Make<ir::ShapeExprNode>(std::move(dims));
  return parts;
}

Result<ir::Type> InferReshape(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  int rank = -1;
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> dims, ShapeArg(call, 1, &rank));
  if (!dims) return TensorOfRank(rank, x->dtype, x);
  for (const ir::PrimExpr& dim : *dims) {
    const auto value = ir::AsConstInt(dim);
    if (value && *value < 0) return OpError(call, "expected dims >= 0, or one -1, got " + Describe(dim));
  }
  if (x->dims && DimsDiffer(ProductOf(*x->dims), ProductOf(*dims))) {
    return OpError(call, "expected " + Describe(ProductOf(*x->dims)) + " elements as in " + Describe(x) + ", got " +
                             Describe(call->args[1]->type));
  }
  return TensorOf(*dims, x->dtype, x);
}

Result<ir::Type> InferFlatten(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  if (!x->dims) return TensorOfRank(1, x->dtype, x);
  return TensorOf({ProductOf(*x->dims)}, x->dtype, x);
}

Result<ir::Type> InferExpandDims(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  const std::vector<int64_t> axes = call->attrs.GetInts("axis");
  if (x->rank < 0) return TensorOfRank(-1, x->dtype, x);
  const int rank = x->rank + static_cast<int>(axes.size());
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> places, NormalizeAxes(call, axes, rank));
  if (!x->dims) return TensorOfRank(rank, x->dtype, x);
  Dims dims(static_cast<size_t>(rank));
  for (int place : places) dims[static_cast<size_t>(place)] = ir::Int64(1);
  auto next = x->dims->begin();
  for (ir::PrimExpr& dim : dims) {
    if (dim == nullptr) dim = *next++;
  }
  return TensorOf(std::move(dims), x->dtype, x);
}

Result<ir::Type> InferSqueeze(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  const std::optional<std::vector<int64_t>> axes = IntsAttr(call, "axis");
  if (x->rank < 0) return TensorOfRank(-1, x->dtype, x);
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> places, NormalizeAxes(call, axes, x->rank));
  if (!x->dims) return TensorOfRank(axes ? x->rank - static_cast<int>(places.size()) : -1, x->dtype, x);
  Dims dims;
  for (int axis = 0; axis < x->rank; ++axis) {
    const ir::PrimExpr& dim = (*x->dims)[static_cast<size_t>(axis)];
    const bool named = axes && std::ranges::find(places, axis) != places.end();
    if (named && ir::AsConstInt(dim) && !ir::IsConstInt(dim, 1)) {
      return OpError(call, "expected axis " + std::to_string(axis) + " to be 1, got " + Describe(x));
    }
    // Without names only axes that are known to be 1 are removed; that a symbolic dim is not 1 is assumed
    // (assumed_dims.h).
    if (!named && (axes || !ir::IsConstInt(dim, 1))) dims.push_back(dim);
  }
  return TensorOf(std::move(dims), x->dtype, x);
}

Result<std::vector<ReferenceTensor>> ReferenceView(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  ReferenceTensor out = inputs[0];
  INGOT_ASSIGN_OR_RETURN(out.dims, ConstantDims(call, call->type));
  return OneReference(std::move(out));
}
te::Tensor DefineView(const TeArgs& args) { return topi::Reshape(args.input(0), args.out_dims()); }

Result<PrepareCall> PrepareView(const ir::Call&) { return PrepareCall{"reshape", {InputIndex{0}}}; }

// ---- permute_dims
Result<std::vector<int>> Permutation(const ir::Call& call, int rank) {
  const std::optional<std::vector<int64_t>> axes = IntsAttr(call, "axes");
  INGOT_ASSIGN_OR_RETURN(std::vector<int> order, NormalizeAxes(call, axes, rank));
  if (!axes) std::ranges::reverse(order);
  if (static_cast<int>(order.size()) == rank) return order;
  return OpError(call, "axes: expected " + std::to_string(rank) + ", got " + std::to_string(order.size()));
}

Result<ir::Type> InferPermuteDims(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  if (x->rank < 0) return TensorOfRank(-1, x->dtype, x);
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> order, Permutation(call, x->rank));
  if (!x->dims) return TensorOfRank(x->rank, x->dtype, x);
  Dims dims;
  for (int axis : order) dims.push_back((*x->dims)[static_cast<size_t>(axis)]);
  return TensorOf(std::move(dims), x->dtype, x);
}

Result<std::vector<ReferenceTensor>> ReferencePermuteDims(const ir::Call& call,
                                                          std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> order, Permutation(call, static_cast<int>(x.dims.size())));
  std::vector<int64_t> dims;
  for (int axis : order) dims.push_back(x.dims[static_cast<size_t>(axis)]);
  ReferenceTensor out = NewReference(x.dtype, dims);
  ForEachIndex(dims, [&](const Index& index, int64_t flat) {
    Index from(index.size());
    for (size_t i = 0; i < order.size(); ++i) from[static_cast<size_t>(order[i])] = index[i];
    CopyElement(x, Flatten(x.dims, from), out, flat);
  });
  return OneReference(std::move(out));
}

te::Tensor DefinePermuteDims(const TeArgs& args) {
  const Result<std::vector<int>> order = Permutation(args.call(), args.input(0).rank());
  return topi::Transpose(args.input(0), *order);
}

Result<PrepareCall> PreparePermuteDims(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> order, Permutation(call, x->rank));
  return PrepareCall{"permute", {InputIndex{0}, std::vector<int64_t>(order.begin(), order.end())}};
}

// ---- broadcast_to
Result<ir::Type> InferBroadcastTo(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  int rank = -1;
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> dims, ShapeArg(call, 1, &rank));
  if (!dims) return TensorOfRank(rank, x->dtype, x);
  bool fits = x->rank <= static_cast<int>(dims->size());
  for (size_t i = 0; fits && x->dims && i < x->dims->size(); ++i) {
    const ir::PrimExpr& from = (*x->dims)[i];
    fits = !DimsDiffer(from, ir::Int64(1)) || !DimsDiffer(from, (*dims)[dims->size() - x->dims->size() + i]);
  }
  if (fits) return TensorOf(*dims, x->dtype, x);
  return OpError(call, Describe(x) + " does not broadcast to " + Describe(call->args[1]->type));
}

Result<std::vector<ReferenceTensor>> ReferenceBroadcastTo(const ir::Call& call,
                                                          std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  ReferenceTensor out = NewReference(x.dtype, dims);
  ForEachIndex(dims,
               [&](const Index& index, int64_t flat) { CopyElement(x, FlattenBroadcast(x.dims, index), out, flat); });
  return OneReference(std::move(out));
}

te::Tensor DefineBroadcastTo(const TeArgs& args) { return topi::BroadcastTo(args.input(0), args.out_dims()); }

Result<PrepareCall> PrepareBroadcastTo(const ir::Call&) { return PrepareCall{"broadcast_to", {InputIndex{0}}}; }

// ---- concat
Result<ir::Type> InferConcat(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<ir::TensorType> tensors, TensorTupleArg(call, 0));
  if (tensors.empty()) return OpError(call, "expected at least one tensor");
  const ir::TensorType& first = tensors[0];
  std::optional<DataType> dtype = first->dtype;
  int rank = first->rank;
  bool known = true;
  for (const ir::TensorType& tensor : tensors) {
    INGOT_ASSIGN_OR_RETURN(dtype, CommonDataType(call, first, tensor));
    if (rank >= 0 && tensor->rank >= 0 && rank != tensor->rank) {
      return OpError(call, "expected tensors of equal rank, got " + Describe(first) + " and " + Describe(tensor));
    }
    rank = std::max(rank, tensor->rank);
    known = known && tensor->dims.has_value();
  }
  if (rank < 0) return TensorOfRank(rank, dtype, first);
  INGOT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call, call->attrs.GetInt("axis"), rank));
  if (!known) return TensorOfRank(rank, dtype, first);
  Dims dims = *first->dims;
  for (size_t i = 1; i < tensors.size(); ++i) {
    for (int j = 0; j < rank; ++j) {
      const auto at = static_cast<size_t>(j);
      const ir::PrimExpr& dim = (*tensors[i]->dims)[at];
      if (j == axis) {
        dims[at] = dims[at] + dim;
        if (i % 64 != 0) continue;  // the sum of very many inputs would be too deep a formula
        dims[at] = SimplifyDim(dims[at]);
        if (IsLongerThan(dims[at], kMaxDimNodes)) return TensorOf(std::move(dims), dtype, first);  // is refused
      } else if (DimsDiffer(dims[at], dim)) {
        return OpError(call, "expected equal dims besides axis " + std::to_string(axis) + ", got " + Describe(first) +
                                 " and " + Describe(tensors[i]));
      }
    }
  }
  dims[static_cast<size_t>(axis)] = SimplifyDim(dims[static_cast<size_t>(axis)]);
  return TensorOf(std::move(dims), dtype, first);
}

Result<std::vector<ReferenceTensor>> ReferenceConcat(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const int rank = static_cast<int>(inputs[0].dims.size());
  INGOT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call, call->attrs.GetInt("axis"), rank));
  const auto at = static_cast<size_t>(axis);
  std::vector<int64_t> dims = inputs[0].dims;
  for (const ReferenceTensor& input : inputs.subspan(1)) dims[at] += input.dims[at];
  ReferenceTensor out = NewReference(inputs[0].dtype, dims);
  int64_t position = 0;
  for (const ReferenceTensor& input : inputs) {
    ForEachIndex(input.dims, [&](const Index& index, int64_t flat) {
      Index to = index;
      to[at] += position;
      CopyElement(input, flat, out, Flatten(dims, to));
    });
    position += input.dims[at];
  }
  return OneReference(std::move(out));
}

te::Tensor DefineConcat(const TeArgs& args) {
  const Result<int> axis = NormalizeAxis(args.call(), args.call()->attrs.GetInt("axis"), args.input(0).rank());
  return topi::Concatenate(args.inputs(), *axis);
}

// A concatenation of images (NCHW16c) or volumes (NDCHW16c) with blocked channels along the blocks.
bool IsOfChannelBlocks(const ir::Call& call, const Target&) {
  const auto* type = ir::As<ir::TensorTypeNode>(call->type);
  if (type == nullptr || (type->rank != 5 && type->rank != 6)) return false;
  const int64_t axis = call->attrs.GetInt("axis");
  return axis == type->rank - 4 || axis == -4;
}

Result<PrepareCall> PrepareConcat(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<ir::TensorType> tensors, TensorTupleArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call, call->attrs.GetInt("axis"), tensors[0]->rank));
  PrepareCall prepare{"concat", {int64_t{axis}}};
  for (size_t i = 0; i < tensors.size(); ++i) prepare.arguments.push_back(InputIndex{i});
  return prepare;
}

// ---- strided_slice: NumPy's x[begin:end:stride] for each of axes; bounds may be symbolic.
struct SliceAxis {
  int axis;
  ir::PrimExpr begin, end;
  int64_t stride;
};
Result<std::vector<SliceAxis>> SliceAxes(const ir::Call& call, int rank) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, IntTupleArg(call, 1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<ir::PrimExpr> begin, PrimTupleArg(call, 2));
  INGOT_ASSIGN_OR_RETURN(const std::vector<ir::PrimExpr> end, PrimTupleArg(call, 3));
  std::vector<int64_t> strides(axes.size(), 1);
  if (HasArg(call, 4)) {
    INGOT_ASSIGN_OR_RETURN(strides, IntTupleArg(call, 4));
  }
  if (begin.size() != axes.size() || end.size() != axes.size() || strides.size() != axes.size()) {
    return OpError(call, "expected one begin, end and stride for each of " + std::to_string(axes.size()) + " axes");
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> places, NormalizeAxes(call, axes, rank));
  std::vector<SliceAxis> slices;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (strides[i] == 0) return OpError(call, "expected strides other than 0");
    // Beyond every extent all strides take one element; within 62 bits, sums of theirs and an extent do not overflow.
    constexpr int64_t kFar = int64_t{1} << 62;
    slices.push_back({places[i], begin[i], end[i], std::clamp(strides[i], -kFar, kFar)});
  }
  return slices;
}

// A bound as NumPy reads it: from the end when negative, then limited to what a walk in this direction can use.
ir::PrimExpr SliceBound(const ir::PrimExpr& bound, const ir::PrimExpr& extent, bool forwards) {
  const ir::PrimExpr zero = ir::Int64(0);
  const ir::PrimExpr low = ir::Int64(forwards ? 0 : -1);
  const ir::PrimExpr high = forwards ? extent : extent - 1;
  arith::Analyzer analyzer;
  if (analyzer.ProveLessEqual(zero, bound)) return ir::Min(bound, high);
  // A negative bound, counted from the end, is below the extent in any case.
  if (analyzer.ProveLess(bound, zero)) return ir::Max(extent + bound, low);
  return ir::Max(ir::Min(ir::Select(bound < zero, extent + bound, bound), high), low);
}

struct SliceRange {
  ir::PrimExpr begin, count;
};
SliceRange RangeOf(const SliceAxis& slice, const ir::PrimExpr& extent) {
  const bool forwards = slice.stride > 0;
  const ir::PrimExpr begin = SimplifyDim(SliceBound(slice.begin, extent, forwards));
  const ir::PrimExpr end = SliceBound(slice.end, extent, forwards);
  const ir::PrimExpr length = forwards ? end - begin : begin - end;
  const int64_t step = forwards ? slice.stride : -slice.stride;
  ir::PrimExpr count = SimplifyDim(ir::FloorDiv(length + (step - 1), ir::Int64(step)));
  const bool from_start = ir::IsConstInt(slice.begin, 0) && forwards;
  if (!from_start || !arith::Analyzer().ProveLessEqual(ir::Int64(0), slice.end)) {
    count = SimplifyDim(ir::Max(count, ir::Int64(0)));
  }
  return {begin, count};
}

Result<ir::Type> InferStridedSlice(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  if (x->rank < 0) return TensorOfRank(-1, x->dtype, x);
  INGOT_ASSIGN_OR_RETURN(const std::vector<SliceAxis> slices, SliceAxes(call, x->rank));
  if (!x->dims) return TensorOfRank(x->rank, x->dtype, x);
  Dims dims = *x->dims;
  for (const SliceAxis& slice : slices) {
    const auto at = static_cast<size_t>(slice.axis);
    dims[at] = RangeOf(slice, dims[at]).count;
  }
  return TensorOf(std::move(dims), x->dtype, x);
}

// The start and the step of each axis in the data.
struct Walk {
  std::vector<int64_t> starts, steps;
};
Result<Walk> WalkOf(const ir::Call& call, std::span<const int64_t> dims) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<SliceAxis> slices, SliceAxes(call, static_cast<int>(dims.size())));
  Walk walk{std::vector<int64_t>(dims.size(), 0), std::vector<int64_t>(dims.size(), 1)};
  for (const SliceAxis& slice : slices) {
    const auto at = static_cast<size_t>(slice.axis);
    const SliceRange range = RangeOf(slice, ir::Int64(dims[at]));
    const auto start = ir::AsConstInt(range.begin);
    if (!start) return OpError(call, "expected constant bounds, got " + Describe(range.begin));
    walk.starts[at] = *start;
    walk.steps[at] = slice.stride;
  }
  return walk;
}

Result<std::vector<ReferenceTensor>> ReferenceStridedSlice(const ir::Call& call,
                                                           std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  INGOT_ASSIGN_OR_RETURN(const Walk walk, WalkOf(call, x.dims));
  ReferenceTensor out = NewReference(x.dtype, dims);
  ForEachIndex(dims, [&](const Index& index, int64_t flat) {
    Index from = index;
    for (size_t i = 0; i < from.size(); ++i) from[i] = walk.starts[i] + index[i] * walk.steps[i];
    CopyElement(x, Flatten(x.dims, from), out, flat);
  });
  return OneReference(std::move(out));
}

te::Tensor DefineStridedSlice(const TeArgs& args) {
  const te::Tensor& x = args.input(0);
  const Result<std::vector<SliceAxis>> slices = SliceAxes(args.call(), x.rank());
  Dims begin(x.shape().size(), ir::Int64(0));
  std::vector<int64_t> strides(x.shape().size(), 1);
  for (const SliceAxis& slice : *slices) {
    const auto at = static_cast<size_t>(slice.axis);
    const SliceAxis own{slice.axis, args.Own(slice.begin), args.Own(slice.end), slice.stride};
    begin[at] = RangeOf(own, x.shape()[at]).begin;
    strides[at] = slice.stride;
  }
  return topi::StridedSlice(x, begin, strides, args.out_dims());
}

Result<PrepareCall> PrepareStridedSlice(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->args[0]->type));
  INGOT_ASSIGN_OR_RETURN(Walk walk, WalkOf(call, dims));
  return PrepareCall{"slice", {InputIndex{0}, std::move(walk.starts), std::move(walk.steps)}};
}

// ---- nn.pad: pad_width is [before, after] of each axis in turn.
std::optional<topi::PadMode> PadModeOf(std::string_view name) {
  if (name == "constant") return topi::PadMode::kConstant;
  if (name == "reflect") return topi::PadMode::kReflect;
  if (name == "replicate") return topi::PadMode::kReplicate;
  if (name == "circular") return topi::PadMode::kCircular;
  return std::nullopt;
}

Result<ir::Type> InferPad(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  const std::vector<int64_t> width = call->attrs.GetInts("pad_width");
  if (x->rank >= 0 && std::ssize(width) != int64_t{2} * x->rank) {
    return OpError(call, "pad_width: expected " + std::to_string(2 * x->rank) + " integers, two per axis, got " +
                             std::to_string(width.size()));
  }
  if (std::ranges::any_of(width, [](int64_t w) { return w < 0; })) {
    return OpError(call, "pad_width: expected integers >= 0");
  }
  const std::string mode = call->attrs.GetString("pad_mode");
  if (!PadModeOf(mode)) {
    return OpError(call,
                   "pad_mode: expected \"constant\", \"reflect\", \"replicate\" or \"circular\", got \"" + mode + "\"");
  }
  if (!x->dims) return TensorOfRank(x->rank, x->dtype, x);
  Dims dims = *x->dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t added = width[2 * i] + width[2 * i + 1];
    if (mode != "constant" && added > 0 && ir::IsConstInt(dims[i], 0)) {
      return OpError(call, "axis " + std::to_string(i) + " of " + Describe(x) + " has no elements to repeat");
    }
    dims[i] = SimplifyDim(dims[i] + added);
  }
  return TensorOf(std::move(dims), x->dtype, x);
}

// The place of the axis from which a place of the padded axis is read; -1: it is the constant.
int64_t PaddedPlace(int64_t place, int64_t extent, topi::PadMode mode) {
  switch (mode) {
    case topi::PadMode::kConstant:
      return place >= 0 && place < extent ? place : -1;
    case topi::PadMode::kReplicate:
      return std::clamp<int64_t>(place, 0, extent - 1);
    case topi::PadMode::kCircular:
      return (place % extent + extent) % extent;
    case topi::PadMode::kReflect:
      while (extent > 1 && (place < 0 || place >= extent)) place = place < 0 ? -place : 2 * (extent - 1) - place;
      return extent > 1 ? place : 0;
  }
  INGOT_UNREACHABLE();
}

Result<std::vector<ReferenceTensor>> ReferencePad(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  const std::vector<int64_t> width = call->attrs.GetInts("pad_width");
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  ReferenceTensor out = NewReference(x.dtype, dims);
  const topi::PadMode mode = *PadModeOf(call->attrs.GetString("pad_mode"));
  ForEachIndex(dims, [&](const Index& index, int64_t flat) {
    Index from = index;
    for (size_t i = 0; i < from.size(); ++i) from[i] = PaddedPlace(index[i] - width[2 * i], x.dims[i], mode);
    if (std::ranges::find(from, -1) == from.end()) {
      CopyElement(x, Flatten(x.dims, from), out, flat);
    } else {
      SetNumber(out, flat, call->attrs.GetFloat("pad_value"));
    }
  });
  return OneReference(std::move(out));
}

te::Tensor DefinePad(const TeArgs& args) {
  const std::vector<int64_t> width = args.call()->attrs.GetInts("pad_width");
  std::vector<int64_t> before;
  std::vector<int64_t> after;
  for (size_t i = 0; i < width.size(); i += 2) {
    before.push_back(width[i]);
    after.push_back(width[i + 1]);
  }
  const double value = args.call()->attrs.GetFloat("pad_value");
  const DataType dtype = args.out_dtype();
  const topi::PadMode mode = *PadModeOf(args.call()->attrs.GetString("pad_mode"));
  if (mode != topi::PadMode::kConstant) return topi::PadByRepeating(args.input(0), before, after, mode);
  return topi::Pad(args.input(0), before, after,
                   dtype.is_bool() ? ir::BoolImm(value != 0) : ir::MakeConst(dtype, value));
}

Result<ConstantPtr> FoldPad(const ir::Call& call, std::span<const ConstantPtr> inputs) {
  return call->attrs.GetString("pad_mode") == "constant" ? FoldByPrepare(call, inputs) : FoldByReference(call, inputs);
}

Result<PrepareCall> PreparePad(const ir::Call& call) {
  const std::string mode = call->attrs.GetString("pad_mode");
  if (mode != "constant") return OpError(call, "no host routine pads by mode \"" + mode + "\"");
  const std::vector<int64_t> width = call->attrs.GetInts("pad_width");
  std::vector<int64_t> before;
  for (size_t i = 0; i < width.size(); i += 2) before.push_back(width[i]);
  return PrepareCall{"pad", {InputIndex{0}, std::move(before), call->attrs.GetFloat("pad_value")}};
}

}  // namespace

std::vector<OpRow> TransformOps() {
  const CaseTraits moves{.dtypes = MovedDataTypes()};
  CaseTraits axes = moves;
  axes.rank0 = false;
  std::vector<OpRow> rows;
  rows.push_back({.name = "reshape",
                  .summary = "the same elements under other dims",
                  .arg_names = {"x", "shape"},
                  .fusion = FusionClass::kInjective,
                  .is_view = true,
                  .sign_bit = SignBit::kOfFirst,
                  .normalize = NormalizeReshape,
                  .infer = InferReshape,
                  .reference = ReferenceView,
                  .fold = FoldByPrepare,
                  .prepare = PrepareView,
                  .implementations = {TeImplementation<DefineView>()},
                  .cases = moves});
  rows.push_back({.name = "flatten",
                  .summary = "the same elements under one dim",
                  .arg_names = {"x"},
                  .fusion = FusionClass::kInjective,
                  .is_view = true,
                  .infer = InferFlatten,
                  .reference = ReferenceView,
                  .fold = FoldByPrepare,
                  .prepare = PrepareView,
                  .implementations = {TeImplementation<DefineView>()},
                  .cases = moves});
  rows.push_back({.name = "expand_dims",
                  .summary = "new dims of 1 at the given places of the result",
                  .arg_names = {"x"},
                  .attrs = {{"axis", AttrType::kInts, {}, true}},
                  .fusion = FusionClass::kBroadcast,
                  .is_view = true,
                  .sign_bit = SignBit::kOfFirst,
                  .infer = InferExpandDims,
                  .reference = ReferenceView,
                  .fold = FoldByPrepare,
                  .prepare = PrepareView,
                  .implementations = {TeImplementation<DefineView>()},
                  .cases = moves});
  rows.push_back({.name = "squeeze",
                  .summary = "without the given dims of 1, or all of them",
                  .arg_names = {"x"},
                  .attrs = {{"axis", AttrType::kInts}},
                  .fusion = FusionClass::kBroadcast,
                  .is_view = true,
                  .sign_bit = SignBit::kOfFirst,
                  .infer = InferSqueeze,
                  .reference = ReferenceView,
                  .fold = FoldByPrepare,
                  .prepare = PrepareView,
                  .implementations = {TeImplementation<DefineView>()},
                  .cases = moves});
  rows.push_back({.name = "permute_dims",
                  .summary = "axis i of the result is axis axes[i]; None reverses them",
                  .arg_names = {"x"},
                  .attrs = {{"axes", AttrType::kInts}},
                  .fusion = FusionClass::kInjective,
                  .sign_bit = SignBit::kOfFirst,
                  .infer = InferPermuteDims,
                  .reference = ReferencePermuteDims,
                  .fold = FoldByPrepare,
                  .prepare = PreparePermuteDims,
                  .implementations = {TeImplementation<DefinePermuteDims>()},
                  .function_name = "transpose",
                  .cases = moves});
  rows.push_back({.name = "broadcast_to",
                  .summary = "repeated along dims of 1 and new dims",
                  .arg_names = {"x", "shape"},
                  .fusion = FusionClass::kBroadcast,
                  .infer = InferBroadcastTo,
                  .reference = ReferenceBroadcastTo,
                  .fold = FoldByPrepare,
                  .prepare = PrepareBroadcastTo,
                  .implementations = {TeImplementation<DefineBroadcastTo>()},
                  .cases = moves});
  rows.push_back(
      {.name = "concat",
       .summary = "tensors one after the other along an axis",
       .arg_names = {"tensors"},
       .attrs = {{"axis", AttrType::kInt, 0}},
       .fusion = FusionClass::kInjective,
       .infer = InferConcat,
       .reference = ReferenceConcat,
       .fold = FoldByPrepare,
       .prepare = PrepareConcat,
       .implementations =
           {TeImplementation<DefineConcat>(),
            {"blocked", IsOfChannelBlocks, ElementsOfResult, {"NCHW16c", "NCHW16c"}, Build<DefineConcat>},
            {"blocked_3d", IsOfChannelBlocks, ElementsOfResult, {"NDCHW16c", "NDCHW16c"}, Build<DefineConcat>}},
       .cases = axes});
  rows.push_back({.name = "strided_slice",
                  .summary = "x[begin:end:stride] of the given axes",
                  .arg_names = {"x", "axes", "begin", "end", "strides"},
                  .num_optional_args = 1,
                  .attrs = {{"assume_inbound", AttrType::kBool, false}},
                  .fusion = FusionClass::kInjective,
                  .infer = InferStridedSlice,
                  .reference = ReferenceStridedSlice,
                  .fold = FoldByPrepare,
                  .prepare = PrepareStridedSlice,
                  .implementations = {TeImplementation<DefineStridedSlice>()},
                  .cases = axes});
  rows.push_back({.name = "nn.pad",
                  .summary = "surrounded by a value, or by its own elements",
                  .arg_names = {"data"},
                  .attrs = {{"pad_width", AttrType::kInts, {}, true},
                            {"pad_value", AttrType::kFloat, 0.0},
                            {"pad_mode", AttrType::kString, "constant"}},
                  .fusion = FusionClass::kInjective,
                  .infer = InferPad,
                  .reference = ReferencePad,
                  .fold = FoldPad,
                  .prepare = PreparePad,
                  .implementations = {TeImplementation<DefinePad>()},
                  .cases = moves});
  return rows;
}

}  // namespace ingot::op
