// Composed operators that move elements: indexing by several tensors, slices that are replaced, layouts.
#include <algorithm>

#include "compiler/script/composite_maker.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

// The fields of a tuple, or the one tensor.
std::vector<Expr> FieldsOf(CompositeMaker& m, const Expr& value, const BindValue& bind) {
  const auto* types = As<TupleTypeNode>(value->type);
  if (types == nullptr) return {value};
  if (const auto* written = As<TupleNode>(value)) return written->fields;
  std::vector<Expr> fields;
  for (size_t i = 0; i < types->fields.size(); ++i) {
    fields.push_back(bind(Make<TupleGetItemNode>(value, static_cast<int64_t>(i), types->fields[i])));
  }
  if (fields.empty()) m.Fail("expected tensors, got none");
  return fields;
}

// The indices broadcast together, as the last axis of one tensor.
struct Places {
  Expr indices;
  std::vector<PrimExpr> dims;  // of each of them
  size_t count = 0;
};
Places StackIndices(CompositeMaker& m, const Expr& tuple, const BindValue& bind) {
  const std::vector<Expr> fields = FieldsOf(m, tuple, bind);
  Places places;
  places.count = fields.size();
  for (const Expr& field : fields) {
    const std::vector<PrimExpr> dims = m.Dims(field);
    if (dims.size() > places.dims.size()) {
      places.dims.insert(places.dims.begin(), dims.size() - places.dims.size(), Int64(1));
    }
    for (size_t i = 0; i < dims.size(); ++i) {
      PrimExpr& at = places.dims[places.dims.size() - dims.size() + i];
      if (IsConstInt(at, 1)) at = dims[i];
    }
  }
  std::vector<Expr> columns;
  for (const Expr& field : fields) {
    const Expr wide = m.Broadcast(m.Cast(field, DataType::Int(64)), places.dims);
    columns.push_back(m.Expand(wide, {-1}));
  }
  const Expr all = CompositeMaker::Tuple(columns);
  places.indices = all == nullptr ? Expr() : m("concat", {all}, {{"axis", -1}});
  return places;
}

Result<Expr> ComposeIndexTensor(const CompositeArgs& args, const Attrs&, const BindValue& bind) {
  CompositeMaker m(bind);
  return m.Take(m("gather_nd", {args[0], StackIndices(m, args[1], bind).indices}));
}

Result<Expr> ComposeIndexPut(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const Places places = StackIndices(m, args[1], bind);
  std::vector<PrimExpr> dims = places.dims;
  const std::vector<PrimExpr> data = m.Dims(args[0]);
  for (size_t i = places.count; i < data.size(); ++i) dims.push_back(data[i]);
  const Expr values = m.Broadcast(args[2], dims);
  return m.Take(m("scatter_nd", {args[0], places.indices, values},
                  {{"reduction", attrs.GetBool("accumulate") ? "add" : "update"}}));
}

// The order of axes with one in front, and the order that undoes it.
std::pair<std::vector<int64_t>, std::vector<int64_t>> InFront(int64_t axis, size_t rank) {
  std::vector<int64_t> order{axis}, back(rank);
  for (int64_t i = 0; i < static_cast<int64_t>(rank); ++i) {
    if (i != axis) order.push_back(i);
  }
  for (size_t i = 0; i < rank; ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return {order, back};
}

Result<Expr> ComposeSliceScatter(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const size_t rank = m.Dims(args[0]).size();
  const int64_t axis = m.Axis(attrs.GetInt("axis"), rank);
  for (size_t i = 2; i < 5; ++i) {
    if (As<PrimValueNode>(args[i]) == nullptr) return m.Take(m.Fail("expected start, end and step as numbers"));
  }
  const auto [order, back] = InFront(axis, rank);
  const Expr places = m("arange", {args[2], args[3], args[4]}, {{"dtype", DataType::Int(64)}});
  const Expr written = m("scatter_nd", {m.Permute(args[0], order), m.Expand(places, {-1}), m.Permute(args[1], order)});
  return m.Take(m.Permute(written, back));
}

Result<Expr> ComposeMeshgrid(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const std::vector<Expr> fields = FieldsOf(m, args[0], bind);
  const bool swapped = attrs.GetString("indexing") == "xy" && fields.size() > 1;
  std::vector<PrimExpr> dims;
  for (const Expr& field : fields) {
    const std::vector<PrimExpr> own = m.Dims(field);
    dims.push_back(own.empty() ? Int64(1) : own[0]);
  }
  if (swapped) std::swap(dims[0], dims[1]);
  std::vector<Expr> grids;
  for (size_t i = 0; i < fields.size(); ++i) {
    const size_t at = swapped && i < 2 ? 1 - i : i;
    std::vector<PrimExpr> shape(fields.size(), Int64(1));
    shape[at] = dims[at];
    grids.push_back(m.Broadcast(m.Reshape(fields[i], shape), dims));
  }
  return m.Take(CompositeMaker::Tuple(grids));
}

Result<Expr> ComposeBatchFlatten(const CompositeArgs& args, const Attrs&, const BindValue& bind) {
  CompositeMaker m(bind);
  const std::vector<PrimExpr> dims = m.Dims(args[0]);
  if (dims.empty()) return m.Take(m.Fail("expected a batch"));
  PrimExpr rest = Int64(1);
  for (size_t i = 1; i < dims.size(); ++i) rest = rest * dims[i];
  return m.Take(m.Reshape(args[0], {dims[0], rest}));
}

// [.., C r r, H, W] to [.., C, H r, W r]
Result<Expr> ComposePixelShuffle(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const int64_t factor = attrs.GetInt("upscale_factor");
  const std::vector<PrimExpr> dims = m.Dims(args[0]);
  if (dims.size() < 3 || factor < 1) return m.Take(m.Fail("expected an image and a factor of at least 1"));
  const size_t lead = dims.size() - 3;
  const PrimExpr r = Int64(factor), channels = FloorDiv(dims[lead], Int64(factor * factor));
  std::vector<PrimExpr> apart(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(lead)), joined = apart;
  apart.insert(apart.end(), {channels, r, r, dims[lead + 1], dims[lead + 2]});
  joined.insert(joined.end(), {channels, dims[lead + 1] * r, dims[lead + 2] * r});
  std::vector<int64_t> order;
  const auto first = static_cast<int64_t>(lead);
  for (int64_t i = 0; i <= first; ++i) order.push_back(i);
  order.insert(order.end(), {first + 3, first + 1, first + 4, first + 2});
  return m.Take(m.Reshape(m.Permute(m.Reshape(args[0], apart), order), joined));
}

Result<Expr> ComposeWrapParam(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  return m.Take(m.Cast(args[0], *attrs.Find("dtype")->get<DataType>()));
}

// ---- What TVM asks of a tensor at run time, and its type says: tensors are compact

Result<Expr> ComposeRank(const CompositeArgs& args, const Attrs&, const BindValue&) {
  const auto* tensor = As<TensorTypeNode>(args[0]->type);
  if (tensor != nullptr && tensor->rank >= 0) return CompositeMaker::Prim(IntImm(DataType::Int(32), tensor->rank));
  return Status(StatusCode::kUnsupportedModel, "expected a tensor of known rank");
}

template <int part>
Result<Expr> ComposeDataType(const CompositeArgs& args, const Attrs&, const BindValue& bind) {
  CompositeMaker m(bind);
  const DataType dtype = m.DType(args[0]);
  const int64_t value = part == 0 ? static_cast<int64_t>(dtype.code) : part == 1 ? dtype.bits : dtype.lanes;
  const DataType type = part == 2 ? DataType::UInt(16) : DataType::UInt(8);
  return m.Take(CompositeMaker::Prim(IntImm(type, value)));
}

template <bool is_stride>
Result<Expr> ComposeExtent(const CompositeArgs& args, const Attrs&, const BindValue& bind) {
  CompositeMaker m(bind);
  const std::vector<PrimExpr> dims = m.Dims(args[0]);
  const auto* prim = As<PrimValueNode>(args[1]);
  const std::optional<int64_t> axis = prim == nullptr ? std::nullopt : AsConstInt(prim->value);
  if (!axis || *axis < 0 || *axis >= std::ssize(dims)) {
    return m.Take(m.Fail("expected an axis of the tensor, as a number"));
  }
  if (!is_stride) return m.Take(CompositeMaker::Prim(dims[static_cast<size_t>(*axis)]));
  PrimExpr stride = Int64(1);
  for (size_t i = static_cast<size_t>(*axis) + 1; i < dims.size(); ++i) stride = stride * dims[i];
  return m.Take(CompositeMaker::Prim(stride));
}

Result<Expr> ComposeOffset(const CompositeArgs&, const Attrs&, const BindValue&) {
  return CompositeMaker::Prim(Int64(0));
}

}  // namespace

const std::vector<CompositeOperator>& IndexingComposites() {
  static const std::vector<CompositeOperator> kOperators = {
      {"index_put", {"data", "indices", "values"}, {{"accumulate", false}}, ComposeIndexPut},
      {"index_tensor", {"data", "indices"}, {}, ComposeIndexTensor},
      {"inspect.tensor_byte_offset", {"x"}, {}, ComposeOffset},
      {"inspect.tensor_dtype_bits", {"x"}, {}, ComposeDataType<1>},
      {"inspect.tensor_dtype_code", {"x"}, {}, ComposeDataType<0>},
      {"inspect.tensor_dtype_lanes", {"x"}, {}, ComposeDataType<2>},
      {"inspect.tensor_elem_offset", {"x"}, {}, ComposeOffset},
      {"inspect.tensor_ndim", {"x"}, {}, ComposeRank},
      {"inspect.tensor_shape_i", {"x", "axis"}, {}, ComposeExtent<false>},
      {"inspect.tensor_stride_i", {"x", "axis"}, {}, ComposeExtent<true>},
      {"meshgrid", {"tensors"}, {{"indexing", "ij"}}, ComposeMeshgrid},
      {"nn.batch_flatten", {"data"}, {}, ComposeBatchFlatten},
      {"nn.pixel_shuffle", {"data"}, {{"upscale_factor", 1}}, ComposePixelShuffle},
      {"slice_scatter", {"input_tensor", "src", "start", "end", "step"}, {{"axis", 0}}, ComposeSliceScatter},
      {"wrap_param", {"data"}, {{"dtype", DataType::Float(32), true}}, ComposeWrapParam},
  };
  return kOperators;
}

}  // namespace ingot::script
