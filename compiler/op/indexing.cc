// Elements at data-dependent places: take, gather_elements, gather_nd, one_hot. Indices below 0 count from the end; an
// index that is still outside of its axis reads the nearest element (one_hot: marks none), so kernels stay inside of
// their buffers whatever the data are. Scatters are in scatter.cc.
#include <algorithm>
#include <cstring>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/fold.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/indexing.h"
#include "runtime/tensor.h"

namespace ingot::op {
namespace {

Status CheckIndices(const ir::Call& call, const ir::TensorType& indices) {
  if (!indices->dtype || (indices->dtype->is_integral() && !indices->dtype->is_bool())) return Status();
  return OpError(call, "argument \"indices\": expected integers, got " + Describe(indices));
}

// The place of an index of the reference evaluation.
int64_t PlaceOf(int64_t index, int64_t extent, bool from_end = true) {
  if (from_end && index < 0) index += extent;
  return std::max<int64_t>(std::min(index, extent - 1), 0);
}

// ---- take
// The axis None stands for axis 0 of a tensor of rank 1.
Result<CallParts> NormalizeTake(CallParts parts) {
  const ir::AttrValue* axis = parts.attrs.Find("axis");
  const auto* x = ir::As<ir::TensorTypeNode>(parts.args[0]->type);
  if (axis == nullptr || !axis->is_none() || x == nullptr) return parts;
  if (x->rank != 1) return Status(StatusCode::kBadInput, "axis None needs a tensor of rank 1");
  parts.attrs = parts.attrs.With("axis", int64_t{0});
  return parts;
}

Result<ir::Type> InferTake(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType indices, TensorArg(call, 1));
  INGOT_RETURN_IF_ERROR(CheckIndices(call, indices));
  const std::string mode = call->attrs.GetString("mode");
  if (mode != "fast" && mode != "clip" && mode != "wrap")
    return OpError(call, "mode: expected \"fast\", \"clip\" or \"wrap\", got \"" + mode + "\"");
  if (x->rank < 0 || indices->rank < 0) return TensorOfRank(-1, x->dtype, x);
  INGOT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call, call->attrs.GetInt("axis"), x->rank));
  if (!x->dims || !indices->dims) return TensorOfRank(x->rank + indices->rank - 1, x->dtype, x);
  Dims dims(x->dims->begin(), x->dims->begin() + axis);
  dims.insert(dims.end(), indices->dims->begin(), indices->dims->end());
  dims.insert(dims.end(), x->dims->begin() + axis + 1, x->dims->end());
  INGOT_RETURN_IF_ERROR(CheckHasElements(call, x, static_cast<size_t>(axis), dims));
  return TensorOf(std::move(dims), x->dtype, x);
}

topi::OutOfRange OutOfRangeOf(const ir::Call& call) {
  const std::string& mode = call->attrs.GetString("mode");
  return mode == "clip"   ? topi::OutOfRange::kNearest
         : mode == "wrap" ? topi::OutOfRange::kModulo
                          : topi::OutOfRange::kFromEnd;
}

int64_t TakenPlace(int64_t index, int64_t extent, topi::OutOfRange mode) {
  if (mode != topi::OutOfRange::kModulo) return PlaceOf(index, extent, mode == topi::OutOfRange::kFromEnd);
  const int64_t rest = extent > 0 ? index % extent : 0;
  return rest < 0 ? rest + extent : rest;
}

Result<std::vector<ReferenceTensor>> ReferenceTake(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  const ReferenceTensor& indices = inputs[1];
  INGOT_ASSIGN_OR_RETURN(const int axis,
                         NormalizeAxis(call, call->attrs.GetInt("axis"), static_cast<int>(x.dims.size())));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  ReferenceTensor out = NewReference(x.dtype, dims);
  ForEachIndex(dims, [&](const Index& index, int64_t flat) {
    const Index which(index.begin() + axis, index.begin() + axis + std::ssize(indices.dims));
    Index from(index.begin(), index.begin() + axis);
    from.push_back(TakenPlace(indices.ints[static_cast<size_t>(Flatten(indices.dims, which))],
                              x.dims[static_cast<size_t>(axis)], OutOfRangeOf(call)));
    from.insert(from.end(), index.begin() + axis + std::ssize(indices.dims), index.end());
    CopyElement(x, Flatten(x.dims, from), out, flat);
  });
  return OneReference(std::move(out));
}

// Copies whole rows of bytes, since embedding tables are large.
Result<ConstantPtr> FoldTake(const ir::Call& call, std::span<const ConstantPtr> inputs) {
  const ir::ConstantData& x = *inputs[0];
  if (x.dtype().bits % 8 != 0) return OpError(call, "folding does not read " + x.dtype().ToString());
  INGOT_ASSIGN_OR_RETURN(const int axis,
                         NormalizeAxis(call, call->attrs.GetInt("axis"), static_cast<int>(x.dims().size())));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  INGOT_ASSIGN_OR_RETURN(const int64_t count, CountElements(dims));
  INGOT_ASSIGN_OR_RETURN(const int64_t size_bytes, x.dtype().SizeBytes(count));
  const ReferenceTensor indices = UnpackReference(inputs[1]->dtype(), inputs[1]->dims(), inputs[1]->bytes());
  std::vector<std::byte> bytes(static_cast<size_t>(size_bytes));
  const std::span<const int64_t> from(x.dims());
  const auto at = static_cast<size_t>(axis);
  const int64_t outer = CountOf(from.first(at));
  const int64_t row_bytes = CountOf(from.subspan(at + 1)) * (x.dtype().bits / 8);
  std::byte* to = bytes.data();
  for (int64_t i = 0; i < outer && size_bytes > 0; ++i) {
    for (int64_t index : indices.ints) {
      const int64_t row = i * from[at] + TakenPlace(index, from[at], OutOfRangeOf(call));
      std::memcpy(to, x.bytes().data() + row * row_bytes, static_cast<size_t>(row_bytes));
      to += row_bytes;
    }
  }
  return ir::ConstantData::FromBytes(x.dtype(), dims, std::move(bytes));
}

te::Tensor DefineTake(const TeArgs& args) {
  const Result<int> axis = NormalizeAxis(args.call(), args.call()->attrs.GetInt("axis"), args.input(0).rank());
  return topi::Take(args.input(0), args.input(1), *axis, OutOfRangeOf(args.call()));
}

// ---- gather_elements
Result<ir::Type> InferGatherElements(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType indices, TensorArg(call, 1));
  INGOT_RETURN_IF_ERROR(CheckIndices(call, indices));
  if (x->rank >= 0 && indices->rank >= 0 && x->rank != indices->rank) {
    return OpError(call, "expected tensors of equal rank, got " + Describe(x) + " and " + Describe(indices));
  }
  const int rank = std::max(x->rank, indices->rank);
  if (rank < 0) return TensorOfRank(-1, x->dtype, x);
  INGOT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call, call->attrs.GetInt("axis"), rank));
  if (!indices->dims) return TensorOfRank(rank, x->dtype, x);
  for (int i = 0; x->dims && i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    const auto have = ir::AsConstInt((*x->dims)[at]);
    const auto want = ir::AsConstInt((*indices->dims)[at]);
    if (i != axis && have && want && *want > *have) {
      return OpError(call, "expected indices no longer than the data besides axis " + std::to_string(axis) + ", got " +
                               Describe(x) + " and " + Describe(indices));
    }
  }
  if (x->dims) INGOT_RETURN_IF_ERROR(CheckHasElements(call, x, static_cast<size_t>(axis), *indices->dims));
  return TensorOf(*indices->dims, x->dtype, x);
}

Result<std::vector<ReferenceTensor>> ReferenceGatherElements(const ir::Call& call,
                                                             std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  const ReferenceTensor& indices = inputs[1];
  INGOT_ASSIGN_OR_RETURN(const int axis,
                         NormalizeAxis(call, call->attrs.GetInt("axis"), static_cast<int>(x.dims.size())));
  ReferenceTensor out = NewReference(x.dtype, indices.dims);
  ForEachIndex(out.dims, [&](const Index& index, int64_t flat) {
    Index from = index;
    const auto at = static_cast<size_t>(axis);
    from[at] = PlaceOf(indices.ints[static_cast<size_t>(flat)], x.dims[at]);
    CopyElement(x, Flatten(x.dims, from), out, flat);
  });
  return OneReference(std::move(out));
}

te::Tensor DefineGatherElements(const TeArgs& args) {
  const Result<int> axis = NormalizeAxis(args.call(), args.call()->attrs.GetInt("axis"), args.input(0).rank());
  return topi::GatherElements(args.input(0), args.input(1), *axis);
}

// ---- gather_nd
Result<ir::Type> InferGatherNd(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType indices, TensorArg(call, 1));
  INGOT_RETURN_IF_ERROR(CheckIndices(call, indices));
  const int64_t batch = call->attrs.GetInt("batch_dims");
  if (indices->rank == 0 || x->rank == 0) return OpError(call, "expected tensors of rank 1 or more");
  if (x->rank < 0 || !indices->dims) return TensorOfRank(-1, x->dtype, x);
  const auto depth = ir::AsConstInt(indices->dims->back());
  if (!depth) return OpError(call, "expected indices with a constant last dimension, got " + Describe(indices));
  if (batch < 0 || batch >= std::min(x->rank, indices->rank) || *depth + batch > x->rank) {
    return OpError(call,
                   "batch_dims " + std::to_string(batch) + " and " + Describe(indices) + " do not fit " + Describe(x));
  }
  const int first = static_cast<int>(batch + *depth);
  if (!x->dims) return TensorOfRank(indices->rank - 1 + x->rank - first, x->dtype, x);
  for (int64_t i = 0; i < batch; ++i) {
    const auto at = static_cast<size_t>(i);
    if (DimsDiffer((*x->dims)[at], (*indices->dims)[at])) {
      return OpError(call, "expected equal batch dimensions, got " + Describe(x) + " and " + Describe(indices));
    }
  }
  Dims dims(indices->dims->begin(), indices->dims->end() - 1);
  dims.insert(dims.end(), x->dims->begin() + first, x->dims->end());
  for (int64_t i = batch; i < first; ++i) {
    INGOT_RETURN_IF_ERROR(CheckHasElements(call, x, static_cast<size_t>(i), dims));
  }
  return TensorOf(std::move(dims), x->dtype, x);
}

Result<std::vector<ReferenceTensor>> ReferenceGatherNd(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  const ReferenceTensor& indices = inputs[1];
  const std::ptrdiff_t batch = call->attrs.GetInt("batch_dims");
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  ReferenceTensor out = NewReference(x.dtype, dims);
  const std::ptrdiff_t outer = std::ssize(indices.dims) - 1;
  ForEachIndex(dims, [&](const Index& index, int64_t flat) {
    Index from(index.begin(), index.begin() + batch);
    for (int64_t k = 0; k < indices.dims.back(); ++k) {
      Index which(index.begin(), index.begin() + outer);
      which.push_back(k);
      from.push_back(PlaceOf(indices.ints[static_cast<size_t>(Flatten(indices.dims, which))], x.dims[from.size()]));
    }
    from.insert(from.end(), index.begin() + outer, index.end());
    CopyElement(x, Flatten(x.dims, from), out, flat);
  });
  return OneReference(std::move(out));
}

te::Tensor DefineGatherNd(const TeArgs& args) {
  const int64_t batch = args.call()->attrs.GetInt("batch_dims");
  return topi::GatherNd(args.input(0), args.input(1), static_cast<int>(batch), args.out_dims());
}

// ---- one_hot
Result<ir::Type> InferOneHot(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType indices, TensorArg(call, 0));
  INGOT_RETURN_IF_ERROR(CheckIndices(call, indices));
  INGOT_ASSIGN_OR_RETURN(const ir::PrimExpr on, PrimArg(call, 1));
  INGOT_ASSIGN_OR_RETURN(const ir::PrimExpr off, PrimArg(call, 2));
  if (on->dtype != off->dtype) {
    return OpError(call, "expected values of one dtype, got " + on->dtype.ToString() + " and " + off->dtype.ToString());
  }
  const int64_t depth = call->attrs.GetInt("depth");
  if (depth < 0) return OpError(call, "depth: expected an integer >= 0, got " + std::to_string(depth));
  if (indices->rank < 0) return TensorOfRank(-1, on->dtype, indices);
  INGOT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call, call->attrs.GetInt("axis"), indices->rank + 1));
  if (!indices->dims) return TensorOfRank(indices->rank + 1, on->dtype, indices);
  Dims dims = *indices->dims;
  dims.insert(dims.begin() + axis, ir::Int64(depth));
  return TensorOf(std::move(dims), on->dtype, indices);
}

void SetScalar(ReferenceTensor& out, int64_t i, const ir::PrimExpr& value) {
  if (const auto* number = ir::As<ir::FloatImmNode>(value)) {
    SetNumber(out, i, number->value);
  } else if (out.dtype.is_floating()) {
    SetNumber(out, i, static_cast<double>(*ir::AsConstInt(value)));
  } else {
    out.ints[static_cast<size_t>(i)] = *ir::AsConstInt(value);
  }
}

Result<std::vector<ReferenceTensor>> ReferenceOneHot(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& indices = inputs[0];
  const int64_t depth = call->attrs.GetInt("depth");
  INGOT_ASSIGN_OR_RETURN(const int axis,
                         NormalizeAxis(call, call->attrs.GetInt("axis"), static_cast<int>(indices.dims.size()) + 1));
  INGOT_ASSIGN_OR_RETURN(const ir::PrimExpr on, PrimArg(call, 1));
  INGOT_ASSIGN_OR_RETURN(const ir::PrimExpr off, PrimArg(call, 2));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  ReferenceTensor out = NewReference(on->dtype, dims);
  ForEachIndex(dims, [&](const Index& index, int64_t flat) {
    Index which = index;
    which.erase(which.begin() + axis);
    const int64_t marked = indices.ints[static_cast<size_t>(Flatten(indices.dims, which))];
    const int64_t place = index[static_cast<size_t>(axis)];
    SetScalar(out, flat, place == marked || place == marked + depth ? on : off);
  });
  return OneReference(std::move(out));
}

te::Tensor DefineOneHot(const TeArgs& args) {
  const te::Tensor& indices = args.input(0);
  const int64_t depth = args.call()->attrs.GetInt("depth");
  const Result<int> axis = NormalizeAxis(args.call(), args.call()->attrs.GetInt("axis"), indices.rank() + 1);
  return te::Compute(
      args.out_dims(),
      [&](const te::Indices& out) {
        te::Indices which = out;
        which.erase(which.begin() + *axis);
        const ir::PrimExpr marked = ir::Cast(DataType::Int(64), indices(which));
        const ir::PrimExpr& place = out[static_cast<size_t>(*axis)];
        ir::PrimExpr hit = ir::Equal(place, marked);
        if (indices.dtype().is_int()) hit = ir::Or(hit, ir::Equal(place, marked + depth));
        return ir::Select(hit, args.scalar(1), args.scalar(2));
      },
      "T_one_hot");
}

}  // namespace

std::vector<OpRow> IndexingOps() {
  CaseTraits moves{.dtypes = MovedDataTypes()};
  CaseTraits axes = moves;
  axes.rank0 = false;
  std::vector<OpRow> rows;
  rows.push_back(
      {.name = "take",
       .summary = "the slices of an axis that indices name; out of range: the nearest one, or (mode \"wrap\") modulo",
       .arg_names = {"x", "indices"},
       .attrs = {{"axis", AttrType::kInt}, {"mode", AttrType::kString, "fast"}},
       .fusion = FusionClass::kInjective,
       .normalize = NormalizeTake,
       .infer = InferTake,
       .reference = ReferenceTake,
       .fold = FoldTake,
       .implementations = {TeImplementation<DefineTake>()},
       .cases = axes});
  rows.push_back({.name = "gather_elements",
                  .summary = "for each place the element of an axis that indices name there",
                  .arg_names = {"data", "indices"},
                  .attrs = {{"axis", AttrType::kInt, 0}},
                  .fusion = FusionClass::kInjective,
                  .infer = InferGatherElements,
                  .reference = ReferenceGatherElements,
                  .fold = FoldByReference,
                  .implementations = {TeImplementation<DefineGatherElements>()},
                  .cases = axes});
  rows.push_back({.name = "gather_nd",
                  .summary = "the slices at places that the last axis of indices holds",
                  .arg_names = {"data", "indices"},
                  .attrs = {{"batch_dims", AttrType::kInt, 0}},
                  .fusion = FusionClass::kInjective,
                  .infer = InferGatherNd,
                  .reference = ReferenceGatherNd,
                  .fold = FoldByReference,
                  .implementations = {TeImplementation<DefineGatherNd>()},
                  .cases = axes});
  CaseTraits one_hot;
  one_hot.non_finite = false;
  one_hot.dtypes = {DataType::Int(8), DataType::UInt(8), DataType::Int(32), DataType::Int(64)};
  rows.push_back({.name = "one_hot",
                  .summary = "a new axis with on_value at the index and off_value elsewhere",
                  .arg_names = {"indices", "on_value", "off_value"},
                  .attrs = {{"depth", AttrType::kInt, {}, true}, {"axis", AttrType::kInt, -1}},
                  .fusion = FusionClass::kInjective,
                  .infer = InferOneHot,
                  .reference = ReferenceOneHot,
                  .fold = FoldByReference,
                  .implementations = {TeImplementation<DefineOneHot>()},
                  .cases = one_hot});
  return rows;
}

}  // namespace ingot::op
