// Matrix products: matmul after NumPy (batches broadcast; a vector is a row on the left, a column on the right), and
// matmul_packed, which the compiler makes of products with a weight (packing.h).
#include "compiler/op/linear.h"

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/fold.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/nn.h"

namespace ingot::op {

Result<std::optional<Dims>> MatmulDims(const ir::Call& call, const ir::TensorType& a, const ir::TensorType& b) {
  const Dims& x = *a->dims;
  const Dims& y = *b->dims;
  const ir::PrimExpr& k = x.back();
  const ir::PrimExpr& l = y.size() == 1 ? y[0] : y[y.size() - 2];
  if (DimsDiffer(k, l)) {
    return OpError(call, "expected " + Describe(k) + " rows on the right, got " + Describe(a) + " and " + Describe(b));
  }
  const Dims a_batch(x.begin(), x.end() - std::min<ptrdiff_t>(2, std::ssize(x)));
  const Dims b_batch(y.begin(), y.end() - std::min<ptrdiff_t>(2, std::ssize(y)));
  INGOT_ASSIGN_OR_RETURN(std::optional<Dims> dims, BroadcastDims(call, a_batch, b_batch));
  if (!dims) return dims;
  if (x.size() > 1) dims->push_back(x[x.size() - 2]);
  if (y.size() > 1) dims->push_back(y.back());
  return dims;
}

double MatmulCost(const ir::Call& call, const Target&) {
  const auto* a = ir::As<ir::TensorTypeNode>(call->args[0]->type);
  const ir::Type row = ir::Make<ir::TensorTypeNode>(Dims{a->dims->back()}, a->dtype);
  return 2 * EstimateElements(call->type) * EstimateElements(row);
}

namespace {

Result<ir::Type> InferMatmul(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType a, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType b, TensorArg(call, 1));
  INGOT_ASSIGN_OR_RETURN(std::optional<DataType> dtype, CommonDataType(call, a, b));
  if (dtype && !dtype->is_floating() && !dtype->is_integral()) {
    return OpError(call, "expected numbers, got " + Describe(a));
  }
  if (const std::optional<DataType> out_dtype = DataTypeAttr(call, "out_dtype")) dtype = out_dtype;
  if (a->rank == 0 || b->rank == 0) {
    return OpError(call, "expected at least one axis each, got " + Describe(a) + " and " + Describe(b));
  }
  if (!a->dims || !b->dims) {
    if (a->rank < 0 || b->rank < 0) return TensorOfRank(-1, dtype, a);
    const int vectors = (a->rank == 1 ? 1 : 0) + (b->rank == 1 ? 1 : 0);
    return TensorOfRank(std::max(std::max(a->rank, b->rank), 2) - vectors, dtype, a);
  }
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> dims, MatmulDims(call, a, b));
  return dims ? TensorOf(*dims, dtype, a) : TensorOfRank(std::max(a->rank, b->rank), dtype, a);
}

Result<std::vector<ReferenceTensor>> ReferenceMatmul(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  ReferenceTensor a = inputs[0];
  ReferenceTensor b = inputs[1];
  const bool a_vector = a.dims.size() == 1;
  const bool b_vector = b.dims.size() == 1;
  if (a_vector) a.dims.insert(a.dims.begin(), 1);
  if (b_vector) b.dims.push_back(1);
  const int64_t m = a.dims[a.dims.size() - 2];
  const int64_t k = a.dims.back();
  const int64_t n = b.dims.back();
  std::vector<int64_t> dims =
      BroadcastReferenceDims(std::span(a.dims).first(a.dims.size() - 2), std::span(b.dims).first(b.dims.size() - 2));
  const size_t batch_rank = dims.size();
  dims.push_back(m);
  dims.push_back(n);
  ReferenceTensor out = NewReference(DataTypeAttr(call, "out_dtype").value_or(a.dtype), dims);
  ForEachIndex(dims, [&](const Index& index, int64_t flat) {
    Index left(index.begin(), index.begin() + static_cast<ptrdiff_t>(batch_rank));
    Index right = left;
    left.insert(left.end(), {index[batch_rank], 0});
    right.insert(right.end(), {0, index[batch_rank + 1]});
    double sum = 0;
    int64_t exact = 0;
    for (int64_t i = 0; i < k; ++i) {
      left.back() = i;
      right[batch_rank] = i;
      const auto x = static_cast<size_t>(FlattenBroadcast(a.dims, left));
      const auto y = static_cast<size_t>(FlattenBroadcast(b.dims, right));
      if (a.dtype.is_floating()) {
        sum += a.floats[x] * b.floats[y];
      } else {
        exact += a.ints[x] * b.ints[y];
      }
    }
    if (out.dtype.is_floating()) {
      SetNumber(out, flat, a.dtype.is_floating() ? sum : static_cast<double>(exact));
    } else {
      out.ints[static_cast<size_t>(flat)] = exact;
    }
  });
  if (b_vector) out.dims.pop_back();
  if (a_vector) out.dims.erase(out.dims.begin() + static_cast<ptrdiff_t>(batch_rank));
  return std::vector<ReferenceTensor>{std::move(out)};
}

te::Tensor DefineMatmul(const TeArgs& args) { return topi::Matmul(args.input(0), args.input(1), args.out_dtype()); }

// The host routine multiplies matrices only.
Result<PrepareCall> PrepareMatmul(const ir::Call& call) {
  for (size_t i : {0, 1}) {
    INGOT_ASSIGN_OR_RETURN(const ir::TensorType tensor, TensorArg(call, i));
    if (tensor->rank < 2) return OpError(call, "a product with a vector is not prepared");
  }
  return PrepareCall{"matmul", {InputIndex{0}, InputIndex{1}}};
}

// ---- matmul_packed: the weight w[k, n] in panels of c columns: panels[n / c, k, n % c], padded to whole panels.
Result<ir::Type> InferMatmulPacked(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType panels, TensorArg(call, 1));
  INGOT_ASSIGN_OR_RETURN(std::optional<DataType> dtype, CommonDataType(call, x, panels));
  if (dtype && !dtype->is_floating()) return OpError(call, "expected floating-point numbers, got " + Describe(x));
  if (const std::optional<DataType> out_dtype = DataTypeAttr(call, "out_dtype")) dtype = out_dtype;
  const int64_t units = call->attrs.GetInt("units");
  if (x->rank == 0 || (panels->rank >= 0 && panels->rank != 3)) {
    return OpError(call, "expected x[.., k] and panels[p, k, c], got " + Describe(x) + " and " + Describe(panels));
  }
  if (!x->dims || !panels->dims) return TensorOfRank(x->rank, dtype, x);
  Dims dims = *x->dims;
  const ir::PrimExpr& columns = (*panels->dims)[2];
  const auto width = ir::AsConstInt(columns);
  if (!width || *width < 1 || units < 1) {
    return OpError(call, "expected panels of a constant width and units >= 1, got " + Describe(panels));
  }
  const ir::PrimExpr count = ir::Int64((units - 1) / *width + 1);
  if (DimsDiffer(dims.back(), (*panels->dims)[1]) || DimsDiffer(count, (*panels->dims)[0])) {
    return OpError(call, "expected " + Describe(count) + " panels of " + Describe(dims.back()) + " rows for " +
                             std::to_string(units) + " units, got " + Describe(x) + " and " + Describe(panels));
  }
  dims.back() = ir::Int64(units);
  return TensorOf(std::move(dims), dtype, x);
}

Result<std::vector<ReferenceTensor>> ReferenceMatmulPacked(const ir::Call& call,
                                                           std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  const ReferenceTensor& panels = inputs[1];
  const int64_t k = x.dims.back(), columns = panels.dims[2];
  std::vector<int64_t> dims = x.dims;
  dims.back() = call->attrs.GetInt("units");
  ReferenceTensor out = NewReference(DataTypeAttr(call, "out_dtype").value_or(x.dtype), dims);
  ForEachIndex(dims, [&](const Index& index, int64_t flat) {
    Index left = index;
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      left.back() = i;
      const Index right{index.back() / columns, i, index.back() % columns};
      sum += x.floats[static_cast<size_t>(Flatten(x.dims, left))] *
             panels.floats[static_cast<size_t>(Flatten(panels.dims, right))];
    }
    SetNumber(out, flat, sum);
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

te::Tensor DefineMatmulPacked(const TeArgs& args) {
  return topi::MatmulPacked(args.input(0), args.input(1), args.call()->attrs.GetInt("units"), args.out_dtype());
}

}  // namespace

std::vector<OpRow> LinearOps() {
  std::vector<OpRow> rows;
  rows.push_back({.name = "matmul",
                  .summary = "out[.., m, n] = sum over k of x1[.., m, k] * x2[.., k, n]",
                  .arg_names = {"x1", "x2"},
                  .attrs = {{"out_dtype", AttrType::kDataType}},
                  .fusion = FusionClass::kOutFusible,
                  .infer = InferMatmul,
                  .reference = ReferenceMatmul,
                  .fold = FoldByPrepare,
                  .prepare = PrepareMatmul,
                  .implementations = {{"direct", Always, MatmulCost, {}, Build<DefineMatmul>}},
                  .cases = {.rank0 = false,
                            .broadcast = true,
                            .dtypes = {DataType::Float(32), DataType::Float(64), DataType::Float(16),
                                       DataType::Bfloat16(), DataType::Int(32)}}});
  rows.push_back(
      {.name = "matmul_packed",
       .summary = "out[.., n] = sum over k of x[.., k] * panels[n / c, k, n % c], n < units",
       .arg_names = {"x", "panels"},
       .attrs = {{"units", AttrType::kInt, {}, true}, {"out_dtype", AttrType::kDataType}},
       .fusion = FusionClass::kOutFusible,
       .infer = InferMatmulPacked,
       .reference = ReferenceMatmulPacked,
       .implementations = {{"direct", Always, MatmulCost, {}, Build<DefineMatmulPacked>}},
       .cases = {.rank0 = false,
                 .dtypes = {DataType::Float(32), DataType::Float(64), DataType::Float(16), DataType::Bfloat16()}}});
  return rows;
}

}  // namespace ingot::op
