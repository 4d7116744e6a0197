// Caches: states of a context that calls fill step by step along one axis (keys and values of attention). As values
// they are whole buffers; keep_states brings them in, and destination passing makes appending happen in place.
#include <algorithm>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"

namespace ingot::op {
namespace {

// Two tensors of known shape, equal in dtype and in every dim but those that `differs` allows.
template <typename Allowed>
Status CheckLike(const ir::Call& call, const ir::TensorType& a, const ir::TensorType& b, Allowed differs) {
  if (!a->dims || !b->dims || a->rank != b->rank || a->dtype != b->dtype) {
    return OpError(call, "expected tensors of one dtype and rank, got " + Describe(a) + " and " + Describe(b));
  }
  for (size_t i = 0; i < a->dims->size(); ++i) {
    if (!differs(i) && !DimsEqual((*a->dims)[i], (*b->dims)[i])) {
      return OpError(call, "expected equal dims, got " + Describe(a) + " and " + Describe(b));
    }
  }
  return Status();
}

Result<ir::Type> InferAppend(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType cache, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType part, TensorArg(call, 1));
  INGOT_RETURN_IF_ERROR(PrimArg(call, 2).status());
  INGOT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call, call->attrs.GetInt("axis"), cache->rank));
  INGOT_RETURN_IF_ERROR(CheckLike(call, cache, part, [&](size_t i) { return i == static_cast<size_t>(axis); }));
  return ir::Type(cache);
}

Result<ir::Type> InferView(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType cache, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> dims, ShapeArg(call, 1));
  if (!dims || !cache->dims || dims->size() != cache->dims->size()) {
    return OpError(call, "expected a shape of the cache's rank, got " + Describe(cache));
  }
  for (size_t i = 0; i < dims->size(); ++i) {
    const auto whole = ir::AsConstInt((*cache->dims)[i]);
    const auto part = ir::AsConstInt((*dims)[i]);
    if (whole && part && *part > *whole) {
      return OpError(call, "expected a part of " + Describe(cache) + ", got " + std::to_string(*part) + " of axis " +
                               std::to_string(i));
    }
  }
  return TensorOf(*dims, cache->dtype, cache);
}

Result<std::vector<ReferenceTensor>> ReferenceCacheView(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  ReferenceTensor out = NewReference(inputs[0].dtype, dims);
  ForEachIndex(dims, [&](const Index& index, int64_t flat) {
    CopyElement(inputs[0], Flatten(inputs[0].dims, index), out, flat);
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

te::Tensor DefineCacheView(const TeArgs& args) {
  const te::Tensor& cache = args.input(0);
  return te::Compute(
      args.out_dims(), [&](const te::Indices& index) { return cache(index); }, "T_cache_view");
}

}  // namespace

std::vector<OpRow> CacheOps() {
  std::vector<OpRow> rows;
  rows.push_back({.name = "kv_cache.append",
                  .summary = "the cache with a part written from a position of an axis on",
                  .arg_names = {"cache", "part", "position"},
                  .attrs = {{"axis", AttrType::kInt, {}, true}},
                  .is_primitive = true,
                  .infer = InferAppend});
  rows.push_back({.name = "kv_cache.view",
                  .summary = "the first elements of a cache: so many along each axis",
                  .arg_names = {"cache", "shape"},
                  .fusion = FusionClass::kInjective,
                  .infer = InferView,
                  .reference = ReferenceCacheView,
                  .implementations = {TeImplementation<DefineCacheView>()},
                  .cases = {.dtypes = MovedDataTypes()}});
  return rows;
}

}  // namespace ingot::op
