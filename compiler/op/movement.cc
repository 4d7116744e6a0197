// Elements moved by rules that the call states (split, tile, repeat, flip, tril, triu, reverse_sequence), and tensors
// that follow from their own indices (arange, eye).
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/fold.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/indexing.h"
#include "compiler/op/topi/transform.h"

namespace ingot::op {
namespace {

using ir::PrimExpr;

int RankOf(const ReferenceTensor& tensor) { return static_cast<int>(tensor.dims.size()); }

// ---- split: at given places of an axis, or into equal parts, of which the last ones may be shorter.
Result<int> SplitAxis(const ir::Call& call, int rank) { return NormalizeAxis(call, call->attrs.GetInt("axis"), rank); }

// The first place of each part, and the end of the axis.
Result<std::vector<PrimExpr>> SplitPlaces(const ir::Call& call, const PrimExpr& extent) {
  const ir::AttrValue& how = *call->attrs.Find("indices_or_sections");
  std::vector<PrimExpr> places = {ir::Int64(0)};
  if (const auto* sections = how.get<int64_t>()) {
    if (*sections < 1) return OpError(call, "expected at least one section, got " + std::to_string(*sections));
    const PrimExpr part = SimplifyDim(ir::FloorDiv(extent + (*sections - 1), ir::Int64(*sections)));
    const bool even = DimsEqual(part * *sections, extent);
    for (int64_t i = 1; i < *sections; ++i) {
      places.push_back(SimplifyDim(even ? part * i : ir::Min(part * i, extent)));
    }
  } else if (const auto* indices = how.get<ir::AttrList>()) {
    for (const ir::AttrValue& index : *indices) {
      const auto* place = index.get<int64_t>();
      if (place == nullptr || *place < 0) return OpError(call, "expected places >= 0 to split at");
      places.push_back(SimplifyDim(ir::Max(ir::Min(ir::Int64(*place), extent), places.back())));
    }
  } else {
    return OpError(call, "indices_or_sections: expected an integer or a list of them");
  }
  places.push_back(extent);
  return places;
}

Result<ir::Type> InferSplit(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  if (!x->dims) return OpError(call, "expected a tensor of known shape, got " + Describe(x));
  INGOT_ASSIGN_OR_RETURN(const int axis, SplitAxis(call, x->rank));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> places, SplitPlaces(call, (*x->dims)[static_cast<size_t>(axis)]));
  std::vector<ir::Type> parts;
  for (size_t i = 0; i + 1 < places.size(); ++i) {
    Dims dims = *x->dims;
    dims[static_cast<size_t>(axis)] = SimplifyDim(places[i + 1] - places[i]);
    parts.push_back(TensorOf(std::move(dims), x->dtype, x));
  }
  return ir::Type(ir::Make<ir::TupleTypeNode>(std::move(parts)));
}

Result<std::vector<ReferenceTensor>> ReferenceSplit(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  INGOT_ASSIGN_OR_RETURN(const int axis, SplitAxis(call, RankOf(x)));
  const auto at = static_cast<size_t>(axis);
  std::vector<ReferenceTensor> parts;
  int64_t start = 0;
  for (const ir::Type& type : ir::As<ir::TupleTypeNode>(call->type)->fields) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, type));
    ReferenceTensor part = NewReference(x.dtype, dims);
    ForEachIndex(dims, [&](const Index& index, int64_t flat) {
      Index from = index;
      from[at] += start;
      CopyElement(x, Flatten(x.dims, from), part, flat);
    });
    start += dims[at];
    parts.push_back(std::move(part));
  }
  return parts;
}

std::vector<te::Tensor> DefineSplit(const TeArgs& args) {
  const te::Tensor& x = args.input(0);
  const auto at = static_cast<size_t>(*SplitAxis(args.call(), x.rank()));
  const Result<std::vector<PrimExpr>> places = SplitPlaces(args.call(), x.shape()[at]);
  std::vector<te::Tensor> parts;
  for (size_t i = 0; i < args.num_outputs(); ++i) {
    parts.push_back(te::Compute(
        args.out_dims(i),
        [&](const te::Indices& out) {
          te::Indices index = out;
          index[at] = index[at] + (*places)[i];
          return x(index);
        },
        "T_split_" + std::to_string(i)));
  }
  return parts;
}

// ---- tile: the whole tensor, repeats times along each axis.
// The repeats and the dims, the shorter list filled up with 1s in front.
template <typename Dim>
void AlignTile(std::vector<int64_t>& repeats, std::vector<Dim>& dims, const Dim& one) {
  while (repeats.size() < dims.size()) repeats.insert(repeats.begin(), 1);
  while (dims.size() < repeats.size()) dims.insert(dims.begin(), one);
}

Result<ir::Type> InferTile(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  std::vector<int64_t> repeats = call->attrs.GetInts("repeats");
  if (std::ranges::any_of(repeats, [](int64_t n) { return n < 0; })) return OpError(call, "expected repeats >= 0");
  if (!x->dims)
    return TensorOfRank(x->rank < 0 ? -1 : std::max(x->rank, static_cast<int>(repeats.size())), x->dtype, x);
  Dims dims = *x->dims;
  AlignTile(repeats, dims, ir::Int64(1));
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = SimplifyDim(dims[i] * repeats[i]);
  return TensorOf(std::move(dims), x->dtype, x);
}

Result<std::vector<ReferenceTensor>> ReferenceTile(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  ReferenceTensor x = inputs[0];
  std::vector<int64_t> repeats = call->attrs.GetInts("repeats");
  AlignTile(repeats, x.dims, int64_t{1});
  std::vector<int64_t> dims = x.dims;
  for (size_t i = 0; i < dims.size(); ++i) dims[i] *= repeats[i];
  ReferenceTensor out = NewReference(x.dtype, dims);
  ForEachIndex(dims, [&](const Index& index, int64_t flat) {
    Index from = index;
    for (size_t i = 0; i < from.size(); ++i) from[i] %= x.dims[i];
    CopyElement(x, Flatten(x.dims, from), out, flat);
  });
  return OneReference(std::move(out));
}

te::Tensor DefineTile(const TeArgs& args) {
  const te::Tensor& x = args.input(0);
  return te::Compute(
      args.out_dims(),
      [&](const te::Indices& out) {
        te::Indices index;
        const size_t extra = out.size() - x.shape().size();
        for (size_t i = 0; i < x.shape().size(); ++i) {
          const bool once = DimsEqual(args.out_dims()[extra + i], x.shape()[i]);
          index.push_back(once ? out[extra + i] : ir::FloorMod(out[extra + i], x.shape()[i]));
        }
        return x(index);
      },
      "T_tile");
}

// ---- repeat: each element several times in a row; axis None: of the flattened tensor.
Result<ir::Type> InferRepeat(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  const int64_t repeats = call->attrs.GetInt("repeats");
  if (repeats < 0) return OpError(call, "expected repeats >= 0, got " + std::to_string(repeats));
  const std::optional<std::vector<int64_t>> axis = IntsAttr(call, "axis");
  if (!x->dims) return TensorOfRank(axis ? x->rank : 1, x->dtype, x);
  if (!axis) return TensorOf({SimplifyDim(ProductOf(*x->dims) * repeats)}, x->dtype, x);
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> axes, NormalizeAxes(call, axis, x->rank));
  Dims dims = *x->dims;
  for (int place : axes) dims[static_cast<size_t>(place)] = SimplifyDim(dims[static_cast<size_t>(place)] * repeats);
  return TensorOf(std::move(dims), x->dtype, x);
}

Result<std::vector<ReferenceTensor>> ReferenceRepeat(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  const int64_t repeats = call->attrs.GetInt("repeats");
  const std::optional<std::vector<int64_t>> axis = IntsAttr(call, "axis");
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> axes,
                         NormalizeAxes(call, axis ? axis : std::vector<int64_t>{}, RankOf(x)));
  ReferenceTensor out = NewReference(x.dtype, dims);
  ForEachIndex(dims, [&](const Index& index, int64_t flat) {
    Index from = index;
    for (int place : axes) from[static_cast<size_t>(place)] /= repeats;
    CopyElement(x, axis ? Flatten(x.dims, from) : flat / repeats, out, flat);
  });
  return OneReference(std::move(out));
}

te::Tensor DefineRepeat(const TeArgs& args) {
  const int64_t repeats = args.call()->attrs.GetInt("repeats");
  const std::optional<std::vector<int64_t>> axis = IntsAttr(args.call(), "axis");
  const te::Tensor x = axis ? args.input(0) : topi::Reshape(args.input(0), {ProductOf(args.input(0).shape())});
  const Result<std::vector<int>> axes = NormalizeAxes(args.call(), axis ? axis : std::vector<int64_t>{0}, x.rank());
  return te::Compute(
      args.out_dims(),
      [&](const te::Indices& out) {
        te::Indices index = out;
        for (int place : *axes) {
          PrimExpr& i = index[static_cast<size_t>(place)];
          i = ir::FloorDiv(i, ir::Int64(std::max<int64_t>(repeats, 1)));
        }
        return x(index);
      },
      "T_repeat");
}

// ---- flip
Result<ir::Type> InferFlip(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  if (x->rank >= 0) INGOT_RETURN_IF_ERROR(NormalizeAxis(call, call->attrs.GetInt("axis"), x->rank).status());
  return ir::Type(x);
}

Result<std::vector<ReferenceTensor>> ReferenceFlip(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  INGOT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call, call->attrs.GetInt("axis"), RankOf(x)));
  const auto at = static_cast<size_t>(axis);
  ReferenceTensor out = NewReference(x.dtype, x.dims);
  ForEachIndex(x.dims, [&](const Index& index, int64_t flat) {
    Index from = index;
    from[at] = x.dims[at] - 1 - index[at];
    CopyElement(x, Flatten(x.dims, from), out, flat);
  });
  return OneReference(std::move(out));
}

te::Tensor DefineFlip(const TeArgs& args) {
  const te::Tensor& x = args.input(0);
  const auto at = static_cast<size_t>(*NormalizeAxis(args.call(), args.call()->attrs.GetInt("axis"), x.rank()));
  return te::Compute(
      x.shape(),
      [&](const te::Indices& out) {
        te::Indices index = out;
        index[at] = x.shape()[at] - 1 - out[at];
        return x(index);
      },
      "T_flip");
}

// ---- reverse_sequence: the first seq_lengths[b] elements of seq_axis backwards, for each b of batch_axis.
struct SequenceAxes {
  size_t seq, batch;
};
Result<SequenceAxes> SequenceAxesOf(const ir::Call& call, int rank) {
  INGOT_ASSIGN_OR_RETURN(const int seq, NormalizeAxis(call, call->attrs.GetInt("seq_axis"), rank));
  INGOT_ASSIGN_OR_RETURN(const int batch, NormalizeAxis(call, call->attrs.GetInt("batch_axis"), rank));
  if (seq == batch) return OpError(call, "expected two axes, got " + std::to_string(seq) + " twice");
  return SequenceAxes{static_cast<size_t>(seq), static_cast<size_t>(batch)};
}

Result<ir::Type> InferReverseSequence(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType lengths, TensorArg(call, 1));
  if (lengths->dtype && (!lengths->dtype->is_integral() || lengths->dtype->is_bool())) {
    return OpError(call, "argument \"seq_lengths\": expected integers, got " + Describe(lengths));
  }
  if (x->rank < 0) return ir::Type(x);
  INGOT_ASSIGN_OR_RETURN(const SequenceAxes axes, SequenceAxesOf(call, x->rank));
  const bool differ =
      x->dims && lengths->dims && lengths->rank == 1 && DimsDiffer((*x->dims)[axes.batch], (*lengths->dims)[0]);
  if ((lengths->rank >= 0 && lengths->rank != 1) || differ) {
    return OpError(call, "expected one length for each of the batch, got " + Describe(lengths) + " for " + Describe(x));
  }
  return ir::Type(x);
}

Result<std::vector<ReferenceTensor>> ReferenceReverseSequence(const ir::Call& call,
                                                              std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  INGOT_ASSIGN_OR_RETURN(const SequenceAxes axes, SequenceAxesOf(call, RankOf(x)));
  ReferenceTensor out = NewReference(x.dtype, x.dims);
  ForEachIndex(x.dims, [&](const Index& index, int64_t flat) {
    Index from = index;
    const int64_t length =
        std::clamp<int64_t>(inputs[1].ints[static_cast<size_t>(index[axes.batch])], 0, x.dims[axes.seq]);
    if (index[axes.seq] < length) from[axes.seq] = length - 1 - index[axes.seq];
    CopyElement(x, Flatten(x.dims, from), out, flat);
  });
  return OneReference(std::move(out));
}

te::Tensor DefineReverseSequence(const TeArgs& args) {
  const te::Tensor& x = args.input(0);
  const te::Tensor& lengths = args.input(1);
  const Result<SequenceAxes> axes = SequenceAxesOf(args.call(), x.rank());
  return te::Compute(
      x.shape(),
      [&](const te::Indices& out) {
        te::Indices index = out;
        const PrimExpr& place = out[axes->seq];
        const PrimExpr batch = topi::Limit(out[axes->batch], x.shape()[axes->batch], lengths.shape()[0]);
        const std::vector<int> limited = batch.same_as(out[axes->batch]) ? std::vector<int>{} : std::vector<int>{0};
        PrimExpr length = ir::Cast(DataType::Int(64), topi::ReadUnlessEmpty(lengths, {batch}, limited));
        length = ir::Min(length, x.shape()[axes->seq]);
        index[axes->seq] = ir::Select(place < length, length - 1 - place, place);
        return x(index);
      },
      "T_reverse_sequence");
}

// ---- tril, triu: 0 above, or below, the k-th diagonal of the last two axes.
template <bool upper>
Result<ir::Type> InferTriangle(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  INGOT_RETURN_IF_ERROR(PrimArg(call, 1).status());
  if (x->rank >= 0 && x->rank < 2) return OpError(call, "expected a rank of 2 or more, got " + Describe(x));
  return ir::Type(x);
}

Result<int64_t> ConstantScalar(const ir::Call& call, size_t i) {
  INGOT_ASSIGN_OR_RETURN(const PrimExpr value, PrimArg(call, i));
  const auto constant = ir::AsConstInt(value);
  return constant ? Result<int64_t>(*constant) : OpError(call, "expected a constant, got " + Describe(value));
}

template <bool upper>
Result<std::vector<ReferenceTensor>> ReferenceTriangle(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const int64_t k, ConstantScalar(call, 1));
  ReferenceTensor out = NewReference(inputs[0].dtype, inputs[0].dims);
  const size_t rank = out.dims.size();
  ForEachIndex(out.dims, [&](const Index& index, int64_t flat) {
    const int64_t diagonal = index[rank - 1] - index[rank - 2];
    if (upper ? diagonal >= k : diagonal <= k) CopyElement(inputs[0], flat, out, flat);
  });
  return OneReference(std::move(out));
}

PrimExpr Zero(DataType dtype) { return dtype.is_bool() ? ir::BoolImm(false) : ir::MakeConst(dtype, 0); }
PrimExpr OneOf(DataType dtype) { return dtype.is_bool() ? ir::BoolImm(true) : ir::MakeConst(dtype, 1); }

template <bool upper>
te::Tensor DefineTriangle(const TeArgs& args) {
  const te::Tensor& x = args.input(0);
  // A diagonal beyond all elements, so near that a row's number can be added.
  const PrimExpr far = ir::Int64(int64_t{1} << 62), none = ir::Int64(-(int64_t{1} << 62));
  const PrimExpr k = ir::Max(ir::Min(args.scalar(1), far), none);
  return te::Compute(
      x.shape(),
      [&](const te::Indices& out) {
        const PrimExpr& row = out[out.size() - 2];
        const PrimExpr& column = out.back();
        const PrimExpr kept = upper ? row + k <= column : column <= row + k;
        return ir::Select(kept, x(out), Zero(x.dtype()));
      },
      upper ? "T_triu" : "T_tril");
}

// ---- arange: start, start + step, ... before end.
bool IsFloat(const PrimExpr& value) { return value->dtype.is_floating(); }
double NumberOf(const PrimExpr& value) {
  const auto* number = ir::As<ir::FloatImmNode>(value);
  return number != nullptr ? number->value : static_cast<double>(*ir::AsConstInt(value));
}

constexpr uint64_t kMostSteps = std::numeric_limits<int64_t>::max();

// The numbers low, low + stride, ... below high. In uint64 the distance does not wrap around.
uint64_t StepsBetween(int64_t low, int64_t high, uint64_t stride) {
  if (low >= high) return 0;
  return (static_cast<uint64_t>(high) - static_cast<uint64_t>(low) - 1) / stride + 1;
}
// The same over a distance; what is added to it does not make it overflow.
PrimExpr StepsBetween(const PrimExpr& distance, uint64_t stride) {
  constexpr uint64_t kFarStride = uint64_t{1} << 60;
  PrimExpr count;
  if (stride > kMostSteps) {
    count = ir::Min(distance, ir::Int64(1));
  } else if (const PrimExpr by = ir::Int64(static_cast<int64_t>(stride)); stride > kFarStride) {
    count = ir::FloorDiv(distance - 1, by) + 1;
  } else {
    count = SimplifyDim(ir::FloorDiv(distance + static_cast<int64_t>(stride - 1), by));
  }
  return SimplifyDim(ir::Max(SimplifyDim(count), ir::Int64(0)));
}

Result<ir::Type> InferArange(const ir::Call& call) {
  Dims values;
  bool constant = true;
  bool floats = false;
  for (size_t i = 0; i < 3; ++i) {
    INGOT_ASSIGN_OR_RETURN(PrimExpr value, PrimArg(call, i));
    floats |= IsFloat(value);
    if (!IsFloat(value)) value = ir::Cast(DataType::Int(64), value);
    constant &= ir::AsConstInt(value) || ir::As<ir::FloatImmNode>(value) != nullptr;
    values.push_back(std::move(value));
  }
  const std::optional<DataType> dtype = DataTypeAttr(call, "dtype");
  if (floats) {
    if (!constant) return OpError(call, "expected constants or integers");
    if (NumberOf(values[2]) == 0) return OpError(call, "expected a step other than 0");
    const double count = std::ceil((NumberOf(values[1]) - NumberOf(values[0])) / NumberOf(values[2]));
    if (!(count < 9e15)) return OpError(call, "too many elements");
    return TensorOf({ir::Int64(static_cast<int64_t>(std::max(count, 0.0)))}, dtype, nullptr);
  }
  const auto step = ir::AsConstInt(values[2]);
  if (!step || *step == 0) return OpError(call, "expected a constant step other than 0");
  const PrimExpr &low = *step > 0 ? values[0] : values[1], &high = *step > 0 ? values[1] : values[0];
  const uint64_t stride = *step > 0 ? static_cast<uint64_t>(*step) : -static_cast<uint64_t>(*step);
  if (constant) {
    const uint64_t count = StepsBetween(*ir::AsConstInt(low), *ir::AsConstInt(high), stride);
    if (count > kMostSteps) return OpError(call, "too many elements");
    return TensorOf({ir::Int64(static_cast<int64_t>(count))}, dtype, nullptr);
  }
  return TensorOf({StepsBetween(high - low, stride)}, dtype, nullptr);
}

Result<std::vector<ReferenceTensor>> ReferenceArange(const ir::Call& call, std::span<const ReferenceTensor>) {
  INGOT_ASSIGN_OR_RETURN(const PrimExpr start, PrimArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const PrimExpr step, PrimArg(call, 2));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  ReferenceTensor out = NewReference(*DataTypeAttr(call, "dtype"), dims);
  for (int64_t i = 0; i < dims[0]; ++i) {
    if (IsFloat(start) || IsFloat(step) || out.dtype.is_floating()) {
      SetNumber(out, i, NumberOf(start) + static_cast<double>(i) * NumberOf(step));
    } else {
      const uint64_t steps = static_cast<uint64_t>(i) * static_cast<uint64_t>(*ir::AsConstInt(step));
      out.ints[static_cast<size_t>(i)] = static_cast<int64_t>(static_cast<uint64_t>(*ir::AsConstInt(start)) + steps);
    }
  }
  return OneReference(std::move(out));
}

te::Tensor DefineArange(const TeArgs& args) {
  const DataType dtype = args.out_dtype();
  const PrimExpr start = args.scalar(0);
  const PrimExpr step = args.scalar(2);
  return te::Compute(
      args.out_dims(),
      [&](const te::Indices& out) {
        if (!IsFloat(start) && !IsFloat(step)) {
          const DataType index = DataType::Int(64);
          return ir::Cast(dtype, out[0] * ir::Cast(index, step) + ir::Cast(index, start));
        }
        const DataType wide = DataType::Float(64);
        return ir::Cast(dtype, ir::Cast(wide, out[0]) * ir::Cast(wide, step) + ir::Cast(wide, start));
      },
      "T_arange");
}

// ---- eye: n rows, m columns, 1 on the k-th diagonal.
Result<ir::Type> InferEye(const ir::Call& call) {
  Dims dims;
  for (size_t i : {0, 1}) {
    INGOT_ASSIGN_OR_RETURN(const PrimExpr dim, PrimArg(call, i));
    const auto value = ir::AsConstInt(dim);
    if (IsFloat(dim) || (value && *value < 0)) return OpError(call, "expected sizes >= 0, got " + Describe(dim));
    dims.push_back(dim);
  }
  INGOT_RETURN_IF_ERROR(PrimArg(call, 2).status());
  return TensorOf(std::move(dims), DataTypeAttr(call, "dtype"), nullptr);
}

Result<std::vector<ReferenceTensor>> ReferenceEye(const ir::Call& call, std::span<const ReferenceTensor>) {
  INGOT_ASSIGN_OR_RETURN(const int64_t k, ConstantScalar(call, 2));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  ReferenceTensor out = NewReference(*DataTypeAttr(call, "dtype"), dims);
  ForEachIndex(dims, [&](const Index& index, int64_t flat) { SetNumber(out, flat, index[1] - index[0] == k ? 1 : 0); });
  return OneReference(std::move(out));
}

te::Tensor DefineEye(const TeArgs& args) {
  const DataType dtype = args.out_dtype();
  return te::Compute(
      args.out_dims(),
      [&](const te::Indices& out) {
        return ir::Select(ir::Equal(out[0] + args.scalar(2), out[1]), OneOf(dtype), Zero(dtype));
      },
      "T_eye");
}

template <bool upper>
OpRow TriangleRow(const char* name, const char* summary, CaseTraits cases) {
  cases.rank0 = false;
  return {.name = name,
          .summary = summary,
          .arg_names = {"x", "k"},
          .fusion = FusionClass::kInjective,  // which elements are 0 depends on their places
          .infer = InferTriangle<upper>,
          .reference = ReferenceTriangle<upper>,
          .fold = FoldByReference,
          .implementations = {TeImplementation<DefineTriangle<upper>>()},
          .cases = std::move(cases)};
}

}  // namespace

std::vector<OpRow> MovementOps() {
  const CaseTraits moves{.dtypes = MovedDataTypes()};
  CaseTraits axes = moves;
  axes.rank0 = false;
  CaseTraits made = moves;
  made.rank0 = made.non_finite = false;
  made.dtypes = {DataType::Float(32), DataType::Float(16), DataType::Int(32), DataType::Int(64)};
  std::vector<OpRow> rows;
  rows.push_back({.name = "split",
                  .summary = "the parts of an axis, cut at places or into equal sections",
                  .arg_names = {"x"},
                  .attrs = {{"indices_or_sections", AttrType::kAny, {}, true}, {"axis", AttrType::kInt, 0}},
                  .fusion = FusionClass::kInjective,
                  .infer = InferSplit,
                  .reference = ReferenceSplit,
                  .implementations = {{"te", Always, ElementsOfResult, {}, BuildMany<DefineSplit>}},
                  .cases = axes});
  rows.push_back({.name = "tile",
                  .summary = "the whole tensor several times along each axis",
                  .arg_names = {"x"},
                  .attrs = {{"repeats", AttrType::kInts, {}, true}},
                  .fusion = FusionClass::kInjective,
                  .infer = InferTile,
                  .reference = ReferenceTile,
                  .fold = FoldByReference,
                  .implementations = {TeImplementation<DefineTile>()},
                  .cases = moves});
  rows.push_back({.name = "repeat",
                  .summary = "each element several times in a row along an axis, or of the flattened tensor",
                  .arg_names = {"x"},
                  .attrs = {{"repeats", AttrType::kInt, {}, true}, {"axis", AttrType::kInts}},
                  .fusion = FusionClass::kInjective,
                  .infer = InferRepeat,
                  .reference = ReferenceRepeat,
                  .fold = FoldByReference,
                  .implementations = {TeImplementation<DefineRepeat>()},
                  .cases = moves});
  rows.push_back({.name = "flip",
                  .summary = "an axis backwards",
                  .arg_names = {"data"},
                  .attrs = {{"axis", AttrType::kInt, {}, true}},
                  .fusion = FusionClass::kInjective,
                  .infer = InferFlip,
                  .reference = ReferenceFlip,
                  .fold = FoldByReference,
                  .implementations = {TeImplementation<DefineFlip>()},
                  .cases = axes});
  rows.push_back({.name = "reverse_sequence",
                  .summary = "the beginning of seq_axis backwards, as long as seq_lengths says for each of the batch",
                  .arg_names = {"data", "seq_lengths"},
                  .attrs = {{"seq_axis", AttrType::kInt, 1}, {"batch_axis", AttrType::kInt, 0}},
                  .fusion = FusionClass::kInjective,
                  .infer = InferReverseSequence,
                  .reference = ReferenceReverseSequence,
                  .fold = FoldByReference,
                  .implementations = {TeImplementation<DefineReverseSequence>()},
                  .cases = axes});
  rows.push_back(TriangleRow<false>("tril", "0 above the k-th diagonal of the last two axes", axes));
  rows.push_back(TriangleRow<true>("triu", "0 below the k-th diagonal of the last two axes", axes));
  rows.push_back({.name = "arange",
                  .summary = "start, start + step, ... before end",
                  .arg_names = {"start", "end", "step"},
                  .attrs = {{"dtype", AttrType::kDataType, {}, true}},
                  .fusion = FusionClass::kInjective,
                  .infer = InferArange,
                  .reference = ReferenceArange,
                  .fold = FoldByReference,
                  .implementations = {TeImplementation<DefineArange>()},
                  .cases = made});
  rows.push_back({.name = "eye",
                  .summary = "n rows and m columns, 1 on the k-th diagonal, 0 elsewhere",
                  .arg_names = {"n", "m", "k"},
                  .attrs = {{"dtype", AttrType::kDataType, {}, true}},
                  .fusion = FusionClass::kInjective,
                  .infer = InferEye,
                  .reference = ReferenceEye,
                  .fold = FoldByReference,
                  .implementations = {TeImplementation<DefineEye>()},
                  .cases = made});
  return rows;
}

}  // namespace ingot::op
