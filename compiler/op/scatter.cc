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

size_t AxisOfScatter(const TeArgs& args, const Buffer& out) {
  const int rank = static_cast<int>(out->shape.size());
  return static_cast<size_t>(*NormalizeAxis(args.call(), args.call()->attrs.GetInt("axis"), rank));
}

PrimExpr ElementsFit(const Buffers& inputs, const Buffer& out, size_t axis) {
  PrimExpr fit = ir::BoolImm(true);
  for (size_t i = 0; i < out->shape.size(); ++i) {
    fit = ir::And(fit, SameExtent(inputs[1]->shape[i], inputs[2]->shape[i]));
    if (i != axis) fit = ir::And(fit, LessEqual(inputs[1]->shape[i], out->shape[i]));
  }
  return fit;
}

// The update at this place of the indices.
Stmt ScatterElement(const TeArgs& args, const Buffers& inputs, const Buffer& out, size_t axis, const Places& i) {
  return AtPlace(Load(inputs[1], i), out->shape[axis], [&](const PrimExpr& place) {
    Places to = i;
    to[axis] = place;
    return Store(out, Combined(*CombineOf(args.call()), Load(out, to), Load(inputs[2], i)), to);
  });
}

Statements DefineScatterElements(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const Buffer& out = outputs[0];
  const size_t axis = AxisOfScatter(args, out);
  const Stmt scatter = SpatialNest("scatter", {}, [&](const Places&) {
    return Assert(ElementsFit(inputs, out, axis), kShapesMessage,
                  Loops(inputs[1]->shape, [&](const Places& i) { return ScatterElement(args, inputs, out, axis, i); }));
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

// A loop along which elements lie side by side: in vectors, and what is left over.
Stmt LoopInVectors(const PrimExpr& extent, int64_t lanes, const std::function<Stmt(const PrimExpr&)>& body) {
  const auto vector = [&](int64_t width, const PrimExpr& first) {
    const ir::PrimVar lane = ir::MakePrimVar("lane");
    return Stmt(ir::Make<ir::ForNode>(lane, ir::Int64(0), ir::Int64(width), ir::ForKind::kVectorized,
                                      body(first + PrimExpr(lane))));
  };
  const auto known = ir::AsConstInt(extent);
  if (known && *known < 2) return Loop(extent, body);
  if (known && *known <= lanes) return vector(*known, ir::Int64(0));
  const PrimExpr whole = known ? ir::Int64(*known / lanes * lanes) : ir::FloorDiv(extent, ir::Int64(lanes)) * lanes;
  std::vector<Stmt> parts = {Loop(known ? ir::Int64(*known / lanes) : ir::FloorDiv(extent, ir::Int64(lanes)),
                                  [&](const PrimExpr& i) { return vector(lanes, i * lanes); })};
  if (!known) {
    parts.push_back(Loop(extent - whole, [&](const PrimExpr& i) { return body(whole + i); }));
  } else if (*known % lanes == 1) {
    parts.push_back(body(whole));
  } else if (*known % lanes != 0) {
    parts.push_back(vector(*known % lanes, whole));
  }
  return ir::MakeSeq(std::move(parts));
}

template <bool has_vectors>
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
    const auto combine = [&](const Places& j) {
      Places to = places;
      to.insert(to.end(), j.begin(), j.end());
      Places from = i;
      from.insert(from.end(), j.begin(), j.end());
      return Store(out, Combined(*CombineOf(args.call()), Load(out, to), Load(updates, from)), to);
    };
    if constexpr (!has_vectors) return Loops(rest, combine);
    return Loops(Dims(rest.begin(), rest.end() - 1), [&](const Places& outer_places) {
      constexpr int64_t kVectorBits = 512;
      return LoopInVectors(rest.back(), kVectorBits / std::max<int64_t>(out->dtype.bits, 8), [&](const PrimExpr& last) {
        Places j = outer_places;
        j.push_back(last);
        return combine(j);
      });
    });
  };
  const Stmt scatter = SpatialNest("scatter", {}, [&](const Places&) {
    return Assert(fit, kShapesMessage, Loops(outer, [&](const Places& i) { return at_places(i, {}); }));
  });
  return std::vector<Stmt>{CopyNest(inputs[0], out), scatter};
}

// ---- for the many threads of a GPU

// Updates that come one after the other, each of a slice of the result.
struct UpdateList {
  Dims dims;     // of the places of updates
  Dims extents;  // of the places of slices
  Dims slice;
  // Where an update goes along axis k of `extents`: as an index that is given, which is checked, or as a place.
  struct Target {
    PrimExpr index;
    bool is_given;
  };
  std::function<Target(const Places& i, size_t k)> target;
  PrimExpr fit;  // whether the shapes fit each other
};

// Updates are sorted by where they go, stably: those of one slice follow each other, in their order. Of those that replace
// each other the last one stays. The others are combined by the thread that has the first of them: one by one up to a
// whole part of the sorted list, then by parts that go to the same slice as a whole, which are combined before.
class SortedScatter {
 public:
  SortedScatter(const UpdateList& list, Combine how, const Buffer& updates, const Buffer& out)
      : list_(list), how_(how), updates_(updates), out_(out), count_(ir::Int64(1)) {
    for (const PrimExpr& dim : list.dims) count_ = count_ * dim;
    count_ = SimplifyDim(count_);
    targets_ = ir::MakeBuffer("targets", DataType::Int(64), {count_});
    sorted_ = SortOnCuda(targets_);
  }

  Statements Define(const Buffer& data) const {
    std::vector<Stmt> nests = {CopyNest(data, out_), Assert(list_.fit, kShapesMessage, FindTargets())};
    nests.insert(nests.end(), sorted_.nests.begin(), sorted_.nests.end());
    Buffers workspace = sorted_.workspace;
    workspace.push_back(targets_);
    if (how_ == Combine::kUpdate) {
      nests.push_back(Assert(list_.fit, kShapesMessage, KeepLast()));
      return {std::move(nests), std::move(workspace)};
    }
    Buffers parts;
    for (int level = 1; level <= kLevels; ++level) {
      Dims dims = {NumParts(level)};
      dims.insert(dims.end(), list_.slice.begin(), list_.slice.end());
      parts.push_back(ir::MakeBuffer("parts" + std::to_string(level), out_->dtype, dims));
      nests.push_back(Assert(list_.fit, kShapesMessage, CombineParts(level, parts)));
    }
    nests.push_back(Assert(list_.fit, kShapesMessage, CombineAll(parts)));
    workspace.insert(workspace.end(), parts.begin(), parts.end());
    return {std::move(nests), std::move(workspace)};
  }

 private:
  // Updates of a part, or parts of one of the next level.
  static constexpr int64_t kPart = 32;
  static constexpr int kLevels = 3;
  static int64_t SizeOf(int level) { return level == 0 ? 1 : kPart * SizeOf(level - 1); }
  // Whole ones; one at least, since no buffer of a workspace is empty.
  PrimExpr NumParts(int level) const {
    return SimplifyDim(ir::FloorDiv(count_, ir::Int64(SizeOf(level))) + ir::Int64(1));
  }

  static Places Unfolded(PrimExpr flat, const Dims& extents, const Places& slice) {
    Places places(extents.size());
    for (size_t k = extents.size(); k-- > 0;) {
      places[k] = k == 0 ? flat : ir::FloorMod(flat, extents[k]);
      flat = ir::FloorDiv(flat, extents[k]);
    }
    places.insert(places.end(), slice.begin(), slice.end());
    return places;
  }
  // Of the i-th update in sorted order.
  PrimExpr Update(const PrimExpr& i, const Places& slice) const {
    return Load(updates_, Unfolded(sorted_.place(i), list_.dims, slice));
  }
  static Places InParts(const PrimExpr& part, const Places& slice) {
    Places places = {part};
    places.insert(places.end(), slice.begin(), slice.end());
    return places;
  }
  Stmt OverSlices(const PrimExpr& extent, const std::function<Stmt(const PrimExpr&, const Places&)>& body) const {
    Dims dims = {extent};
    dims.insert(dims.end(), list_.slice.begin(), list_.slice.end());
    return OverElements(dims, [&](const Places& at) { return body(at[0], Places(at.begin() + 1, at.end())); });
  }

  Stmt FindTargets() const {
    return OverElements(list_.dims, [&](const Places& i) {
      PrimExpr target = ir::Int64(0), is_inside = ir::BoolImm(true), flat = ir::Int64(0);
      for (size_t k = 0; k < list_.extents.size(); ++k) {
        const UpdateList::Target given = list_.target(i, k);
        const PrimExpr& extent = list_.extents[k];
        PrimExpr place = given.index;
        if (given.is_given) {
          place = ir::Select(given.index < ir::Int64(0), given.index + extent, given.index);
          is_inside = ir::And(is_inside, ir::And(ir::Int64(0) <= place, place < extent));
        }
        target = target * extent + place;
      }
      for (size_t k = 0; k < list_.dims.size(); ++k) flat = flat * list_.dims[k] + i[k];
      return Let("is_inside", ir::Cast(DataType::Int(64), is_inside), [&](const PrimExpr& inside) {
        const PrimExpr is_legal = ir::Equal(inside, ir::Int64(1));
        const Stmt nothing = ir::Make<ir::EvaluateNode>(ir::Int64(0));
        return ir::MakeSeq({Store(targets_, ir::Select(is_legal, target, ir::Int64(0)), {flat}),
                            Assert(is_legal, kIndexMessage, nothing)});
      });
    });
  }
  Stmt KeepLast() const {
    return OverSlices(count_, [&](const PrimExpr& i, const Places& slice) {
      return Let("target", sorted_.element(i), [&](const PrimExpr& target) {
        const PrimExpr next = sorted_.element(ir::Min(i + 1, count_ - 1));
        const PrimExpr is_last = ir::Or(i + 1 >= count_, ir::Not(ir::Equal(target, next)));
        return If(is_last, Store(out_, Update(i, slice), Unfolded(target, list_.extents, slice)));
      });
    });
  }
  // Parts that go to one slice, from those of the level below; what others hold is not used.
  Stmt CombineParts(int level, const Buffers& parts) const {
    const Buffer& to = parts[static_cast<size_t>(level - 1)];
    const PrimExpr whole = ir::FloorDiv(count_, ir::Int64(SizeOf(level)));
    return OverSlices(SimplifyDim(whole), [&](const PrimExpr& part, const Places& slice) {
      const PrimExpr first = part * SizeOf(level), last = first + (SizeOf(level) - 1);
      const auto of_below = [&](const PrimExpr& i) {
        const PrimExpr below = part * kPart + i;
        return level == 1 ? Update(below, slice) : Load(parts[static_cast<size_t>(level - 2)], InParts(below, slice));
      };
      const Places at = InParts(part, slice);
      const Stmt rest = Loop(ir::Int64(kPart - 1), [&](const PrimExpr& i) {
        return Store(to, Combined(how_, Load(to, at), of_below(i + 1)), at);
      });
      return If(ir::Equal(sorted_.element(first), sorted_.element(last)),
                ir::MakeSeq({Store(to, of_below(ir::Int64(0)), at), rest}));
    });
  }
  Stmt CombineAll(const Buffers& parts) const {
    const Buffer next = ir::MakeBuffer("next", DataType::Int(64), {ir::Int64(1)}, "local");
    const Places first = {ir::Int64(0)};
    return OverSlices(count_, [&](const PrimExpr& i, const Places& slice) {
      return Let("target", sorted_.element(i), [&](const PrimExpr& target) {
        const PrimExpr at_next = Load(next, first);
        const Places to = Unfolded(target, list_.extents, slice);
        const auto goes_there = [&](const PrimExpr& to_last) {
          return ir::And(to_last < count_, ir::Equal(sorted_.element(ir::Min(to_last, count_ - 1)), target));
        };
        const auto add = [&](const PrimExpr& value, int64_t updates) {
          return ir::MakeSeq(
              {Store(out_, Combined(how_, Load(out_, to), value), to), Store(next, at_next + updates, first)});
        };
        Stmt step = add(Update(at_next, slice), 1);
        for (int level = 1; level <= kLevels; ++level) {
          const int64_t size = SizeOf(level);
          const PrimExpr is_whole = ir::And(ir::Equal(ir::FloorMod(at_next, ir::Int64(size)), ir::Int64(0)),
                                            goes_there(at_next + (size - 1)));
          const PrimExpr part =
              Load(parts[static_cast<size_t>(level - 1)], InParts(ir::FloorDiv(at_next, ir::Int64(size)), slice));
          step = Stmt(ir::Make<ir::IfStmtNode>(is_whole, add(part, size), step));
        }
        const Stmt all = ir::MakeSeq({Store(next, i, first), While(goes_there(at_next), step)});
        const PrimExpr before = sorted_.element(ir::Max(i - 1, ir::Int64(0)));
        const PrimExpr is_first = ir::Or(i <= ir::Int64(0), ir::Not(ir::Equal(target, before)));
        return If(is_first, Stmt(ir::Make<ir::AllocateNode>(next, all)));
      });
    });
  }

  const UpdateList& list_;
  Combine how_;
  Buffer updates_, out_;
  PrimExpr count_;
  Buffer targets_;
  SortedVector sorted_;
};

Statements DefineScatterNdOnCuda(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const Buffer &indices = inputs[1], &updates = inputs[2], &out = outputs[0];
  const auto depth = static_cast<std::ptrdiff_t>(*ir::AsConstInt(indices->shape.back()));
  UpdateList list{.dims = Dims(indices->shape.begin(), indices->shape.end() - 1),
                  .extents = Dims(out->shape.begin(), out->shape.begin() + depth),
                  .slice = Dims(out->shape.begin() + depth, out->shape.end()),
                  .target =
                      [&](const Places& i, size_t k) {
                        Places which = i;
                        which.push_back(ir::Int64(static_cast<int64_t>(k)));
                        return UpdateList::Target{ir::Cast(DataType::Int(64), Load(indices, which)), true};
                      },
                  .fit = ir::BoolImm(true)};
  for (size_t i = 0; i < updates->shape.size(); ++i) {
    const PrimExpr& extent = i < list.dims.size() ? list.dims[i] : list.slice[i - list.dims.size()];
    list.fit = ir::And(list.fit, SameExtent(updates->shape[i], extent));
  }
  return SortedScatter(list, *CombineOf(args.call()), updates, out).Define(inputs[0]);
}

Statements DefineScatterElementsOnCuda(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const Buffer &indices = inputs[1], &out = outputs[0];
  const size_t axis = AxisOfScatter(args, out);
  const UpdateList list{.dims = indices->shape,
                        .extents = out->shape,
                        .slice = {},
                        .target =
                            [&](const Places& i, size_t k) {
                              if (k != axis) return UpdateList::Target{i[k], false};
                              return UpdateList::Target{ir::Cast(DataType::Int(64), Load(indices, i)), true};
                            },
                        .fit = ElementsFit(inputs, out, axis)};
  return SortedScatter(list, *CombineOf(args.call()), inputs[2], out).Define(inputs[0]);
}

// Lines along the axis have nothing to do with each other: a thread for each, which takes its updates in order, and reads
// some of them before it stores the first of these.
Statements DefineScatterLinesOnCuda(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const Buffer& indices = inputs[1];
  const Buffer& out = outputs[0];
  const size_t axis = AxisOfScatter(args, out);
  const PrimExpr& count = indices->shape[axis];
  const auto update = [&](const Places& to, const PrimExpr& index, const PrimExpr& value) {
    return AtPlace(index, out->shape[axis], [&](const PrimExpr& place) {
      const Places at = At(to, axis, place);
      return Store(out, Combined(*CombineOf(args.call()), Load(out, at), value), at);
    });
  };
  const Stmt scatter = OverElements(Others(indices->shape, axis), [&](const Places& line) {
    constexpr int64_t kAtOnce = 8;
    const auto element = [&](const Buffer& of, const PrimExpr& k) { return Load(of, At(line, axis, k)); };
    const std::function<Stmt(const PrimExpr&, Places)> read = [&](const PrimExpr& first, Places values) -> Stmt {
      const auto number = std::ssize(values);
      if (number < 2 * kAtOnce) {
        const Buffer& from = number % 2 == 0 ? indices : inputs[2];
        return Let(number % 2 == 0 ? "given" : "update", element(from, first + number / 2), [&](const PrimExpr& value) {
          Places more = values;
          more.push_back(value);
          return read(first, std::move(more));
        });
      }
      std::vector<Stmt> stores;
      for (size_t k = 0; k < values.size(); k += 2) stores.push_back(update(line, values[k], values[k + 1]));
      return ir::MakeSeq(std::move(stores));
    };
    const PrimExpr whole = ir::FloorDiv(count, ir::Int64(kAtOnce));
    const Stmt most = Loop(whole, [&](const PrimExpr& k) { return read(k * kAtOnce, {}); });
    const Stmt rest = Loop(ir::FloorMod(count, ir::Int64(kAtOnce)), [&](const PrimExpr& k) {
      const PrimExpr at = whole * kAtOnce + k;
      return update(line, element(indices, at), element(inputs[2], at));
    });
    return ir::MakeSeq({most, rest});
  });
  return std::vector<Stmt>{CopyNest(inputs[0], out), Assert(ElementsFit(inputs, out, axis), kShapesMessage, scatter)};
}

// Of a few updates each waits for the one before it.
constexpr int64_t kFewUpdates = 32;

// The product of the dims, if it is known and an int64.
std::optional<int64_t> KnownCount(std::span<const PrimExpr> dims) {
  int64_t count = 1;
  for (const PrimExpr& dim : dims) {
    const std::optional<int64_t> extent = ir::AsConstInt(dim);
    if (!extent || __builtin_mul_overflow(count, *extent, &count)) return std::nullopt;
  }
  return count;
}

bool IsScatterOnCuda(const ir::Call& call, const Target& target) {
  const Result<ir::TensorType> data = TensorArg(call, 0), indices = TensorArg(call, 1);
  return target.kind == Target::Kind::kCuda && data.ok() && (*data)->dtype && (*data)->dtype->bits >= 8 &&
         indices.ok() && (*indices)->dims;
}

bool SortsSlices(const ir::Call& call, const Target& target) {
  if (!IsScatterOnCuda(call, target)) return false;
  const Dims& dims = *(*TensorArg(call, 1))->dims;
  const auto depth = ir::AsConstInt(dims.back());
  return depth && *depth >= 1 && KnownCount(std::span(dims).first(dims.size() - 1)).value_or(INT64_MAX) > kFewUpdates;
}

// Lines that are enough to keep a GPU busy, or whose updates are few.
bool HasManyLines(const ir::Call& call, const Target& target) {
  constexpr int64_t kManyLines = 4096;
  if (!IsScatterOnCuda(call, target)) return false;
  const Dims& dims = *(*TensorArg(call, 1))->dims;
  const Result<int> axis = AxisOf(call, static_cast<int>(dims.size()));
  if (!axis.ok()) return false;
  const auto along = static_cast<size_t>(*axis);
  return KnownCount(Others(dims, along)).value_or(0) >= kManyLines ||
         ir::AsConstInt(dims[along]).value_or(INT64_MAX) <= kFewUpdates;
}

bool SortsElements(const ir::Call& call, const Target& target) {
  return IsScatterOnCuda(call, target) && !HasManyLines(call, target);
}

// Slices whose elements a CPU moves in vectors.
bool HasRows(const ir::Call& call, const Target& target) {
  const Result<ir::TensorType> data = TensorArg(call, 0), indices = TensorArg(call, 1);
  if (target.kind == Target::Kind::kCuda || !data.ok() || !indices.ok() || !(*indices)->dims) return false;
  const auto depth = ir::AsConstInt((*indices)->dims->back());
  return (*data)->dtype && (*data)->dtype->bits >= 8 && depth && *depth < (*data)->rank;
}

double ScatterCost(const ir::Call& call, const Target&) {
  return EstimateElements(call->type) + EstimateElements(call->args[2]->type);
}
double RowScatterCost(const ir::Call& call, const Target& target) { return ScatterCost(call, target) / 2; }
double CudaScatterCost(const ir::Call& call, const Target& target) { return ScatterCost(call, target) / 2; }

}  // namespace

std::vector<OpRow> ScatterOps() {
  const CaseTraits cases{.rank0 = false, .dtypes = MovedDataTypes()};
  std::vector<OpRow> rows;
  rows.push_back(
      {.name = "scatter_elements",
       .summary = "the data with each update at the place of an axis that indices name",
       .arg_names = {"data", "indices", "updates"},
       .attrs = {{"axis", AttrType::kInt, 0}, {"reduction", AttrType::kString, "update"}},
       .infer = InferScatterElements,
       .reference = ReferenceScatterElements,
       .fold = FoldExact,
       .implementations =
           {{"direct", Always, ScatterCost, {}, BuildStatements<DefineScatterElements>},
            {"cuda_lines", HasManyLines, CudaScatterCost, {}, BuildStatements<DefineScatterLinesOnCuda>},
            {"cuda_sorted", SortsElements, CudaScatterCost, {}, BuildStatements<DefineScatterElementsOnCuda>}},
       .cases = cases});
  rows.push_back(
      {.name = "scatter_nd",
       .summary = "the data with each slice of updates at the place that the last axis of indices holds",
       .arg_names = {"data", "indices", "updates"},
       .attrs = {{"reduction", AttrType::kString, "update"}},
       .infer = InferScatterNd,
       .reference = ReferenceScatterNd,
       .fold = FoldExact,
       .implementations = {{"direct", Always, ScatterCost, {}, BuildStatements<DefineScatterNd<false>>},
                           {"rows", HasRows, RowScatterCost, {}, BuildStatements<DefineScatterNd<true>>},
                           {"cuda_sorted", SortsSlices, CudaScatterCost, {}, BuildStatements<DefineScatterNdOnCuda>}},
       .cases = cases});
  return rows;
}

}  // namespace ingot::op
