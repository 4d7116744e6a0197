// Elements to data-dependent places: scatter_elements, scatter_nd. The result is a copy of the data with updates
// written or combined one after the other, in their row-major order. An index below 0 counts from the end; one that is
// still outside makes the kernel fail, so nothing is written outside of a buffer.
#include <algorithm>
#include <cmath>
#include <optional>

#include "compiler/arith/analyzer.h"
#include "compiler/op/build.h"
#include "compiler/op/cuda_ordering.h"
#include "compiler/op/families.h"
#include "compiler/op/fold.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/statements.h"

namespace ingot::op {
namespace {

constexpr char kShapesMessage[] = "the shapes of a scatter's data, indices and updates do not fit each other";
constexpr char kIndexMessage[] = "an index of a scatter lies outside of the axis";

enum class Combine : uint8_t { kUpdate, kAdd, kMul, kMax, kMin };
std::optional<Combine> CombineOf(const ir::Call& call) {
  const std::string name = call->attrs.GetString("reduction");
  if (name == "update") return Combine::kUpdate;
  if (name == "add") return Combine::kAdd;
  if (name == "mul") return Combine::kMul;
  if (name == "max") return Combine::kMax;
  if (name == "min") return Combine::kMin;
  return std::nullopt;
}

PrimExpr Combined(Combine how, const PrimExpr& old, const PrimExpr& update) {
  switch (how) {
    case Combine::kUpdate:
      return update;
    case Combine::kAdd:
      return old + update;
    case Combine::kMul:
      return old * update;
    case Combine::kMax:
      return ir::Max(old, update);
    case Combine::kMin:
      return ir::Min(old, update);
  }
  INGOT_UNREACHABLE();
}

template <typename Number>
Number CombineNumbers(Combine how, Number old, Number update) {
  const bool keeps_nan = std::isnan(static_cast<double>(old));
  switch (how) {
    case Combine::kUpdate:
      return update;
    case Combine::kAdd:
      return old + update;
    case Combine::kMul:
      return old * update;
    case Combine::kMax:
      return keeps_nan || old > update ? old : update;
    case Combine::kMin:
      return keeps_nan || old < update ? old : update;
  }
  INGOT_UNREACHABLE();
}

void CombineElement(Combine how, const ReferenceTensor& updates, int64_t from, ReferenceTensor& out, int64_t to) {
  if (out.dtype.is_floating()) {
    SetNumber(out, to, CombineNumbers(how, GetNumber(out, to), GetNumber(updates, from)));
  } else {
    int64_t& element = out.ints[static_cast<size_t>(to)];
    element = CombineNumbers(how, element, updates.ints[static_cast<size_t>(from)]);
  }
}

// Combines every update with the element that target(index of the update, its flat place) names, in row-major order.
// An index below 0 counts from the end; one outside of the data is an error.
Result<std::vector<ReferenceTensor>> ReferenceScatter(
    const ir::Call& call, std::span<const ReferenceTensor> inputs,
    const std::function<Index(const Index& index, int64_t flat)>& target) {
  ReferenceTensor out = inputs[0];
  const ReferenceTensor& updates = inputs[2];
  const Combine how = *CombineOf(call);
  bool is_inside = true;
  ForEachIndex(updates.dims, [&](const Index& index, int64_t flat) {
    Index to = target(index, flat);
    for (size_t i = 0; i < to.size(); ++i) {
      if (to[i] < 0) to[i] += out.dims[i];
      if (to[i] < 0 || to[i] >= out.dims[i]) {
        is_inside = false;
        return;
      }
    }
    CombineElement(how, updates, flat, out, Flatten(out.dims, to));
  });
  if (!is_inside) return OpError(call, kIndexMessage);
  return std::vector<ReferenceTensor>{std::move(out)};
}

// The arguments' types, checked as both operators need it.
struct ScatterTypes {
  ir::TensorType data, indices, updates;
};
Result<ScatterTypes> CheckScatter(const ir::Call& call) {
  ScatterTypes types;
  INGOT_ASSIGN_OR_RETURN(types.data, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(types.indices, TensorArg(call, 1));
  INGOT_ASSIGN_OR_RETURN(types.updates, TensorArg(call, 2));
  const std::optional<DataType> index = types.indices->dtype;
  if (index && (!index->is_integral() || index->is_bool())) {
    return OpError(call, "argument \"indices\": expected integers, got " + Describe(types.indices));
  }
  INGOT_ASSIGN_OR_RETURN(const std::optional<DataType> dtype, CommonDataType(call, types.data, types.updates));
  const std::optional<Combine> how = CombineOf(call);
  if (!how) {
    return OpError(call, "reduction: expected \"update\", \"add\", \"mul\", \"max\" or \"min\", got \"" +
                             call->attrs.GetString("reduction") + "\"");
  }
  if (dtype && dtype->is_bool() && *how != Combine::kUpdate) {
    return OpError(call, "bool has no " + call->attrs.GetString("reduction"));
  }
  return types;
}

// Conditions under which shapes fit, for the kernel to check; true where they are proved.
PrimExpr LessEqual(const PrimExpr& a, const PrimExpr& b) {
  return arith::Analyzer().ProveLessEqual(a, b) ? ir::BoolImm(true) : a <= b;
}
PrimExpr SameExtent(const PrimExpr& a, const PrimExpr& b) {
  return DimsEqual(a, b) ? ir::BoolImm(true) : ir::Equal(a, b);
}

// body(place) with the index as a place of an axis of this extent.
Stmt AtPlace(const PrimExpr& index, const PrimExpr& extent, const std::function<Stmt(const PrimExpr&)>& body) {
  PrimExpr wide = ir::Cast(DataType::Int(64), index);
  return Let("index", std::move(wide), [&](const PrimExpr& given) {
    const PrimExpr from_start = ir::Select(given < ir::Int64(0), given + extent, given);
    return Let("place", from_start, [&](const PrimExpr& place) {
      return Assert(ir::And(ir::Int64(0) <= place, place < extent), kIndexMessage, body(place));
    });
  });
}

Stmt CopyNest(const Buffer& from, const Buffer& to) {
  return SpatialNest("copy", from->shape, [&](const Places& i) { return Store(to, Load(from, i), i); });
}

// ---- scatter_elements: out[i, but indices[i] along axis] from updates[i].
Result<ir::Type> InferScatterElements(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ScatterTypes types, CheckScatter(call));
  const auto& [data, indices, updates] = types;
  const int rank = std::max({data->rank, indices->rank, updates->rank});
  for (const ir::TensorType& tensor : {data, indices, updates}) {
    if (tensor->rank >= 0 && tensor->rank != rank) {
      return OpError(call, "expected tensors of equal rank, got " + Describe(data) + ", " + Describe(indices) +
                               " and " + Describe(updates));
    }
  }
  if (rank < 0) return ir::Type(data);
  INGOT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call, call->attrs.GetInt("axis"), rank));
  for (int i = 0; data->dims && indices->dims && updates->dims && i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    const PrimExpr& count = (*indices->dims)[at];
    const bool too_long = i != axis && arith::Analyzer().ProveLess((*data->dims)[at], count);
    if (too_long || DimsDiffer(count, (*updates->dims)[at])) {
      return OpError(call, "axis " + std::to_string(i) + " of " + Describe(indices) + " and " + Describe(updates) +
                               " does not fit " + Describe(data));
    }
  }
  return ir::Type(data);
}

Result<std::vector<ReferenceTensor>> ReferenceScatterElements(const ir::Call& call,
                                                              std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const int axis,
                         NormalizeAxis(call, call->attrs.GetInt("axis"), static_cast<int>(inputs[0].dims.size())));
  return ReferenceScatter(call, inputs, [&](const Index& index, int64_t flat) {
    Index to = index;
    to[static_cast<size_t>(axis)] = inputs[1].ints[static_cast<size_t>(flat)];
    return to;
  });
}

Statements DefineScatterElements(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const Buffer& indices = inputs[1];
  const Buffer& out = outputs[0];
  const int rank = static_cast<int>(out->shape.size());
  const auto at = static_cast<size_t>(*NormalizeAxis(args.call(), args.call()->attrs.GetInt("axis"), rank));
  PrimExpr fit = ir::BoolImm(true);
  for (size_t i = 0; i < out->shape.size(); ++i) {
    fit = ir::And(fit, SameExtent(indices->shape[i], inputs[2]->shape[i]));
    if (i != at) fit = ir::And(fit, LessEqual(indices->shape[i], out->shape[i]));
  }
  const Stmt scatter = SpatialNest("scatter", {}, [&](const Places&) {
    return Assert(fit, kShapesMessage, Loops(indices->shape, [&](const Places& i) {
                    return AtPlace(Load(indices, i), out->shape[at], [&](const PrimExpr& place) {
                      Places to = i;
                      to[at] = place;
                      return Store(out, Combined(*CombineOf(args.call()), Load(out, to), Load(inputs[2], i)), to);
                    });
                  }));
  });
  return std::vector<Stmt>{CopyNest(inputs[0], out), scatter};
}

// ---- scatter_nd: out[indices[i..], rest..] from updates[i.., rest..]; the last axis of indices holds places.
Result<ir::Type> InferScatterNd(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ScatterTypes types, CheckScatter(call));
  const auto& [data, indices, updates] = types;
  if (data->rank < 0 || !indices->dims) return ir::Type(data);
  if (data->rank == 0 || indices->rank == 0) return OpError(call, "expected tensors of rank 1 or more");
  const auto depth = ir::AsConstInt(indices->dims->back());
  if (!depth) return OpError(call, "expected indices with a constant last dimension, got " + Describe(indices));
  const bool fits = *depth <= data->rank &&
                    (updates->rank < 0 || updates->rank == indices->rank - 1 + data->rank - static_cast<int>(*depth));
  bool differ = false;
  for (int i = 0; fits && data->dims && updates->dims && i < updates->rank; ++i) {
    const int outer = indices->rank - 1;
    const PrimExpr& expected =
        i < outer ? (*indices->dims)[static_cast<size_t>(i)] : (*data->dims)[static_cast<size_t>(i - outer + *depth)];
    differ |= DimsDiffer(expected, (*updates->dims)[static_cast<size_t>(i)]);
  }
  if (fits && !differ) return ir::Type(data);
  return OpError(call, Describe(indices) + " and " + Describe(updates) + " do not fit " + Describe(data));
}

Result<std::vector<ReferenceTensor>> ReferenceScatterNd(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& indices = inputs[1];
  const std::ptrdiff_t outer = std::ssize(indices.dims) - 1;
  return ReferenceScatter(call, inputs, [&](const Index& index, int64_t) {
    Index to;
    for (int64_t k = 0; k < indices.dims.back(); ++k) {
      Index which(index.begin(), index.begin() + outer);
      which.push_back(k);
      to.push_back(indices.ints[static_cast<size_t>(Flatten(indices.dims, which))]);
    }
    to.insert(to.end(), index.begin() + outer, index.end());
    return to;
  });
}

Statements DefineScatterNd(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const Buffer& indices = inputs[1];
  const Buffer& updates = inputs[2];
  const Buffer& out = outputs[0];
  const auto depth = static_cast<size_t>(*ir::AsConstInt(indices->shape.back()));
  const Dims outer(indices->shape.begin(), indices->shape.end() - 1);
  const Dims rest(out->shape.begin() + static_cast<std::ptrdiff_t>(depth), out->shape.end());
  PrimExpr fit = ir::BoolImm(true);
  for (size_t i = 0; i < updates->shape.size(); ++i) {
    fit = ir::And(fit, SameExtent(updates->shape[i], i < outer.size() ? outer[i] : rest[i - outer.size()]));
  }
  // One nested check per indexed axis; inside of them the slice is combined.
  std::function<Stmt(const Places&, Places)> at_places = [&](const Places& i, Places places) -> Stmt {
    if (places.size() < depth) {
      Places which = i;
      which.push_back(ir::Int64(static_cast<int64_t>(places.size())));
      return AtPlace(Load(indices, which), out->shape[places.size()], [&](const PrimExpr& place) {
        Places more = places;
        more.push_back(place);
        return at_places(i, std::move(more));
      });
    }
    return Loops(rest, [&](const Places& j) {
      Places to = places;
      to.insert(to.end(), j.begin(), j.end());
      Places from = i;
      from.insert(from.end(), j.begin(), j.end());
      return Store(out, Combined(*CombineOf(args.call()), Load(out, to), Load(updates, from)), to);
    });
  };
  const Stmt scatter = SpatialNest("scatter", {}, [&](const Places&) {
    return Assert(fit, kShapesMessage, Loops(outer, [&](const Places& i) { return at_places(i, {}); }));
  });
  return std::vector<Stmt>{CopyNest(inputs[0], out), scatter};
}

// For the many threads of a GPU the updates are sorted by where they go, stably: those of one place follow each other, in
// their order, and the thread that has the first of them combines them. Of those that replace each other the last one stays.
Statements DefineScatterNdOnCuda(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const Buffer &indices = inputs[1], &updates = inputs[2], &out = outputs[0];
  const Combine how = *CombineOf(args.call());
  const auto depth = static_cast<size_t>(*ir::AsConstInt(indices->shape.back()));
  const Dims outer(indices->shape.begin(), indices->shape.end() - 1);
  const Dims rest(out->shape.begin() + static_cast<std::ptrdiff_t>(depth), out->shape.end());
  PrimExpr fit = ir::BoolImm(true), count = ir::Int64(1);
  for (size_t i = 0; i < updates->shape.size(); ++i) {
    fit = ir::And(fit, SameExtent(updates->shape[i], i < outer.size() ? outer[i] : rest[i - outer.size()]));
  }
  for (const PrimExpr& dim : outer) count = count * dim;
  count = SimplifyDim(count);
  const Buffer targets = ir::MakeBuffer("targets", DataType::Int(64), {count});
  const Stmt find = OverElements(outer, [&](const Places& i) {
    PrimExpr target = ir::Int64(0), is_inside = ir::BoolImm(true), flat = ir::Int64(0);
    for (size_t k = 0; k < depth; ++k) {
      Places which = i;
      which.push_back(ir::Int64(static_cast<int64_t>(k)));
      const PrimExpr given = ir::Cast(DataType::Int(64), Load(indices, which)), &extent = out->shape[k];
      const PrimExpr place = ir::Select(given < ir::Int64(0), given + extent, given);
      is_inside = ir::And(is_inside, ir::And(ir::Int64(0) <= place, place < extent));
      target = target * extent + place;
    }
    for (size_t k = 0; k < outer.size(); ++k) flat = flat * outer[k] + i[k];
    return Let("is_inside", ir::Cast(DataType::Int(64), is_inside), [&](const PrimExpr& inside) {
      const PrimExpr is_legal = ir::Equal(inside, ir::Int64(1));
      const Stmt nothing = ir::Make<ir::EvaluateNode>(ir::Int64(0));
      return ir::MakeSeq({Store(targets, ir::Select(is_legal, target, ir::Int64(0)), {flat}),
                          Assert(is_legal, kIndexMessage, nothing)});
    });
  });
  const SortedVector sorted = SortOnCuda(targets);
  Dims dims = {count};
  dims.insert(dims.end(), rest.begin(), rest.end());
  const Buffer next = ir::MakeBuffer("next", DataType::Int(64), {ir::Int64(1)}, "local");
  const Stmt scatter = OverElements(dims, [&](const Places& at) {
    const PrimExpr& i = at[0];
    const Places slice(at.begin() + 1, at.end()), first = {ir::Int64(0)};
    const auto unfolded = [&](PrimExpr flat, const Dims& extents, size_t number) {
      Places places(number);
      for (size_t k = number; k-- > 0;) {
        places[k] = k == 0 ? flat : ir::FloorMod(flat, extents[k]);
        flat = ir::FloorDiv(flat, extents[k]);
      }
      places.insert(places.end(), slice.begin(), slice.end());
      return places;
    };
    return Let("target", sorted.element(i), [&](const PrimExpr& target) {
      const Places to = unfolded(target, out->shape, depth);
      const auto update = [&](const PrimExpr& place) { return Load(updates, unfolded(place, outer, outer.size())); };
      const auto is_other = [&](const PrimExpr& end, const PrimExpr& neighbour, const PrimExpr& kept) {
        return ir::Or(end, ir::Not(ir::Equal(sorted.element(kept), sorted.element(neighbour))));
      };
      if (how == Combine::kUpdate) {
        const PrimExpr is_last = is_other(i + 1 >= count, ir::Min(i + 1, count - 1), i);
        return If(is_last, Store(out, update(sorted.place(i)), to));
      }
      const PrimExpr is_first = is_other(i <= ir::Int64(0), ir::Max(i - 1, ir::Int64(0)), i);
      const PrimExpr at_next = Load(next, first);
      const PrimExpr goes_on =
          ir::And(at_next < count, ir::Equal(sorted.element(ir::Min(at_next, count - 1)), sorted.element(i)));
      const Stmt add = ir::MakeSeq({Store(out, Combined(how, Load(out, to), update(sorted.place(at_next))), to),
                                    Store(next, at_next + 1, first)});
      const Stmt all = ir::MakeSeq({Store(next, i, first), While(goes_on, add)});
      return If(is_first, Stmt(ir::Make<ir::AllocateNode>(next, all)));
    });
  });
  std::vector<Stmt> nests = {CopyNest(inputs[0], out), Assert(fit, kShapesMessage, find)};
  nests.insert(nests.end(), sorted.nests.begin(), sorted.nests.end());
  nests.push_back(Assert(fit, kShapesMessage, scatter));
  Buffers workspace = sorted.workspace;
  workspace.push_back(targets);
  return {std::move(nests), std::move(workspace)};
}

// Of a few updates each waits for the one before it.
bool SortsUpdates(const ir::Call& call, const Target& target) {
  constexpr int64_t kFewUpdates = 32;
  const Result<ir::TensorType> indices = TensorArg(call, 1);
  if (target.kind != Target::Kind::kCuda || !indices.ok() || !(*indices)->dims) return false;
  const auto depth = ir::AsConstInt((*indices)->dims->back());
  const Result<ir::TensorType> data = TensorArg(call, 0);
  if (!depth || *depth < 1 || !data.ok() || !(*data)->dtype || (*data)->dtype->bits < 8) return false;
  int64_t count = 1;
  for (size_t i = 0; i + 1 < (*indices)->dims->size(); ++i) {
    const auto extent = ir::AsConstInt((*indices)->dims->at(i));
    if (!extent) return true;
    if (__builtin_mul_overflow(count, *extent, &count)) return false;
  }
  return count > kFewUpdates;
}

double ScatterCost(const ir::Call& call, const Target&) {
  return EstimateElements(call->type) + EstimateElements(call->args[2]->type);
}
double SortedScatterCost(const ir::Call& call, const Target& target) { return ScatterCost(call, target) / 2; }

}  // namespace

std::vector<OpRow> ScatterOps() {
  const CaseTraits cases{.rank0 = false, .dtypes = MovedDataTypes()};
  std::vector<OpRow> rows;
  rows.push_back({.name = "scatter_elements",
                  .summary = "the data with each update at the place of an axis that indices name",
                  .arg_names = {"data", "indices", "updates"},
                  .attrs = {{"axis", AttrType::kInt, 0}, {"reduction", AttrType::kString, "update"}},
                  .infer = InferScatterElements,
                  .reference = ReferenceScatterElements,
                  .fold = FoldExact,
                  .implementations = {{"direct", Always, ScatterCost, {}, BuildStatements<DefineScatterElements>}},
                  .cases = cases});
  rows.push_back({.name = "scatter_nd",
                  .summary = "the data with each slice of updates at the place that the last axis of indices holds",
                  .arg_names = {"data", "indices", "updates"},
                  .attrs = {{"reduction", AttrType::kString, "update"}},
                  .infer = InferScatterNd,
                  .reference = ReferenceScatterNd,
                  .fold = FoldExact,
                  .implementations =
                      {{"direct", Always, ScatterCost, {}, BuildStatements<DefineScatterNd>},
                       {"cuda_sorted", SortsUpdates, SortedScatterCost, {}, BuildStatements<DefineScatterNdOnCuda>}},
                  .cases = cases});
  return rows;
}

}  // namespace ingot::op
