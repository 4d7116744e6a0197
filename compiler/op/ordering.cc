// Along one axis, in its order: argmax, argmin, cumsum, cumprod, sort, argsort, topk. NaN counts as greater than every
// number in sort, argsort and topk. argmax and argmin, like ONNX Runtime, walk from the first element and move to an
// element that compares as better: a NaN in the first place is kept, others are skipped. Of equal elements the first
// one goes first (argmax and argmin may ask for the last one).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/op/build.h"
#include "compiler/op/cuda_ordering.h"
#include "compiler/op/families.h"
#include "compiler/op/fold.h"
#include "compiler/op/infer.h"
#include "compiler/op/merge_sort.h"
#include "compiler/op/place_heap.h"
#include "compiler/op/radix_sort.h"
#include "compiler/op/reference.h"
#include "compiler/op/statements.h"
#include "compiler/op/topi/reduction.h"

namespace ingot::op {

size_t ArgAxisOf(const TeArgs& args) { return static_cast<size_t>(*AxisOf(args.call(), args.input(0).rank())); }

Dims Others(const Dims& dims, size_t axis) {
  Dims others = dims;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(axis));
  return others;
}
Places At(Places row, size_t axis, const PrimExpr& i) {
  row.insert(row.begin() + static_cast<std::ptrdiff_t>(axis), i);
  return row;
}

SortKind SortKindOf(const ir::Call& call) {
  if (call->attrs.Find("ret_type") == nullptr) {
    const bool indices = call->attrs.Find("dtype") != nullptr;
    return {!indices, indices, call->attrs.GetBool("descending")};
  }
  const std::string results = call->attrs.GetString("ret_type");
  return {results != "indices", results != "values", call->attrs.GetBool("largest")};
}

PrimExpr HasElements(const PrimExpr& count, const PrimExpr& extent) {
  return DimsEqual(count, extent) ? ir::BoolImm(true) : count <= extent;
}

namespace {

// Calls fn(the flat places of one row along the axis) for every row.
void ForEachRow(std::span<const int64_t> dims, size_t axis,
                const std::function<void(const std::vector<int64_t>&)>& fn) {
  std::vector<int64_t> others(dims.begin(), dims.end());
  others[axis] = 1;
  ForEachIndex(others, [&](const Index& index, int64_t) {
    std::vector<int64_t> places;
    Index at = index;
    for (at[axis] = 0; at[axis] < dims[axis]; ++at[axis]) places.push_back(Flatten(dims, at));
    fn(places);
  });
}

// ---- argmax, argmin
Result<ir::Type> InferArg(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  const bool keepdims = call->attrs.GetBool("keepdims");
  const std::optional<std::vector<int64_t>> axis = IntsAttr(call, "axis");
  if (axis && axis->size() != 1) return OpError(call, "expected one axis, got " + std::to_string(axis->size()));
  if (!axis && x->rank >= 0 && x->rank != 1) {
    return OpError(call, "axis None needs a tensor of rank 1, got " + Describe(x));
  }
  if (x->rank < 0) return TensorOfRank(-1, kIndexDtype, x);
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> axes, NormalizeAxes(call, axis, x->rank));
  if (!x->dims) return TensorOfRank(keepdims ? x->rank : x->rank - 1, kIndexDtype, x);
  Dims dims = *x->dims;
  const auto at = static_cast<size_t>(axes[0]);
  dims[at] = ir::Int64(1);
  INGOT_RETURN_IF_ERROR(CheckHasElements(call, x, at, dims));
  if (!keepdims) dims.erase(dims.begin() + axes[0]);
  return TensorOf(std::move(dims), kIndexDtype, x);
}

size_t ArgAxis(const ir::Call& call, int rank) {
  return static_cast<size_t>((*NormalizeAxes(call, IntsAttr(call, "axis"), rank))[0]);
}

template <bool greatest>
Result<std::vector<ReferenceTensor>> ReferenceArg(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  const bool last = call->attrs.GetBool("select_last_index");
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  ReferenceTensor out = NewReference(kIndexDtype, dims);
  size_t row = 0;
  ForEachRow(x.dims, ArgAxis(call, static_cast<int>(x.dims.size())), [&](const std::vector<int64_t>& places) {
    const auto is_nan = [&](size_t i) { return x.dtype.is_floating() && std::isnan(GetNumber(x, places[i])); };
    size_t best = 0;
    for (size_t i = 1; i < places.size(); ++i) {
      if (is_nan(best) || is_nan(i)) continue;
      const bool better =
          greatest ? IsLessElement(x, places[best], places[i]) : IsLessElement(x, places[i], places[best]);
      const bool worse =
          greatest ? IsLessElement(x, places[i], places[best]) : IsLessElement(x, places[best], places[i]);
      if (better || (last && !worse)) best = i;
    }
    out.ints[row++] = static_cast<int64_t>(best);
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

// Two plain reductions, which schedules run in vectors along any axis: the best element that is no NaN, and the
// smallest rank of those equal to it. A rank is the place k, or -k where the last one is asked for; a NaN in the first
// place ranks before all others.
template <bool greatest>
te::Tensor DefineArg(const TeArgs& args) {
  const te::Tensor& x = args.input(0);
  const size_t axis = ArgAxis(args.call(), x.rank());
  const std::vector<int> axes = {static_cast<int>(axis)};
  const bool keepdims = args.call()->attrs.GetBool("keepdims");
  const bool last = args.call()->attrs.GetBool("select_last_index");
  const DataType dtype = x.dtype().is_bool() ? DataType::UInt(8) : x.dtype();
  const topi::Reducer reducer = greatest ? topi::Reducer::kMax : topi::Reducer::kMin;
  const auto number = [&](const PrimExpr& element) {
    const PrimExpr value = ir::Cast(dtype, element);
    if (!dtype.is_floating()) return value;
    return ir::Select(IsNan(value), topi::Identity(reducer, dtype), value);
  };
  const auto value_of = [&](const PrimExpr& element, const te::Indices&) { return number(element); };
  const te::Tensor best = topi::Reduce(reducer, x, axes, keepdims, value_of, "best");
  // Ranks are as narrow as the extent allows.
  const auto extent = ir::AsConstInt(x.shape()[axis]);
  const DataType rank_dtype = extent && *extent <= INT32_MAX ? DataType::Int(32) : kIndexDtype;
  const PrimExpr none = ir::MaxValue(rank_dtype), before_all = ir::MinValue(rank_dtype);
  const auto rank_of = [&](const PrimExpr& element, const te::Indices& index) {
    te::Indices row = index;
    if (keepdims) {
      row[axis] = ir::Int64(0);
    } else {
      row.erase(row.begin() + static_cast<std::ptrdiff_t>(axis));
    }
    const PrimExpr place = ir::Cast(rank_dtype, index[axis]);
    const PrimExpr rank = last ? ir::MakeConst(rank_dtype, 0) - place : place;
    const PrimExpr ranked = ir::Select(ir::Equal(ir::Cast(dtype, element), best(row)), rank, none);
    if (!dtype.is_floating()) return ranked;
    const PrimExpr is_kept = ir::And(ir::Equal(place, ir::MakeConst(rank_dtype, 0)), IsNan(element));
    return ir::Select(is_kept, before_all, ranked);
  };
  const te::Tensor rank = topi::Reduce(topi::Reducer::kMin, x, axes, keepdims, rank_of, "rank");
  return te::Compute(
      args.out_dims(),
      [&](const te::Indices& out) {
        const PrimExpr found = rank(out), zero = ir::MakeConst(rank_dtype, 0);
        const PrimExpr place = last ? zero - found : found;
        return ir::Cast(kIndexDtype,
                        dtype.is_floating() ? ir::Select(ir::Equal(found, before_all), zero, place) : place);
      },
      greatest ? "T_argmax" : "T_argmin");
}

// ---- cumsum, cumprod
Result<ir::Type> InferScan(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  const std::optional<DataType> given = DataTypeAttr(call, "dtype");
  const std::optional<DataType> dtype = given ? given : x->dtype;
  if (dtype && dtype->is_bool()) return OpError(call, "expected numbers, got " + Describe(x));
  if (x->rank >= 0) INGOT_RETURN_IF_ERROR(AxisOf(call, x->rank).status());
  return x->dims ? TensorOf(*x->dims, dtype, x) : TensorOfRank(x->rank, dtype, x);
}

template <bool product>
Result<std::vector<ReferenceTensor>> ReferenceScan(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  const bool exclusive = call->attrs.GetBool("exclusive");
  INGOT_ASSIGN_OR_RETURN(const int axis, AxisOf(call, static_cast<int>(x.dims.size())));
  ReferenceTensor out = NewReference(*ir::As<ir::TensorTypeNode>(call->type)->dtype, x.dims);
  ForEachRow(x.dims, static_cast<size_t>(axis), [&](const std::vector<int64_t>& places) {
    double total = product ? 1 : 0;
    for (int64_t place : places) {
      if (exclusive) SetNumber(out, place, total);
      total = product ? total * GetNumber(x, place) : total + GetNumber(x, place);
      if (!exclusive) SetNumber(out, place, total);
    }
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

template <bool product>
Statements DefineScan(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const Buffer& x = inputs[0];
  const Buffer& out = outputs[0];
  const size_t axis = ArgAxisOf(args);
  const bool exclusive = args.call()->attrs.GetBool("exclusive");
  // Narrow floats add up in float32.
  const DataType wide = out->dtype.is_floating() && out->dtype.bits < 32 ? DataType::Float(32) : out->dtype;
  const Buffer total = ir::MakeBuffer("total", wide, {ir::Int64(1)}, "local");
  const Places first = {ir::Int64(0)};
  const Stmt scan = SpatialNest(
      "scan", Others(x->shape, axis),
      [&](const Places& row) {
        const Stmt start = Store(total, ir::MakeConst(wide, product ? 1 : 0), first);
        const Stmt steps = Loop(x->shape[axis], [&](const PrimExpr& i) {
          const Places at = At(row, axis, i);
          const PrimExpr element = ir::Cast(wide, Load(x, at));
          const Stmt add = Store(total, product ? Load(total, first) * element : Load(total, first) + element, first);
          const Stmt write = Store(out, ir::Cast(out->dtype, Load(total, first)), at);
          return ir::MakeSeq(exclusive ? std::vector<Stmt>{write, add} : std::vector<Stmt>{add, write});
        });
        return ir::MakeSeq({start, steps});
      },
      {total});
  return std::vector<Stmt>{scan};
}

// ---- sort, argsort, topk
Result<DataType> IndexDataType(const ir::Call& call) {
  const std::optional<DataType> dtype = DataTypeAttr(call, "dtype");
  if (dtype && dtype->is_int() && dtype->bits >= 32) return *dtype;
  return OpError(call, "dtype: expected int32 or int64");
}

Result<ir::Type> InferSort(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  if (x->rank >= 0) INGOT_RETURN_IF_ERROR(AxisOf(call, x->rank).status());
  return ir::Type(x);
}

Result<ir::Type> InferArgsort(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::Type type, InferSort(call));
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, IndexDataType(call));
  const ir::TensorType x = ir::AsRef<ir::TensorTypeNode>(type);
  return x->dims ? TensorOf(*x->dims, dtype, x) : TensorOfRank(x->rank, dtype, x);
}

Result<ir::Type> InferTopk(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, IndexDataType(call));
  const int64_t k = call->attrs.GetInt("k");
  if (k < 0) return OpError(call, "k: expected an integer >= 0, got " + std::to_string(k));
  ir::Type values = TensorOfRank(x->rank, x->dtype, x);
  ir::Type indices = TensorOfRank(x->rank, dtype, x);
  if (x->rank >= 0) {
    INGOT_ASSIGN_OR_RETURN(const int axis, AxisOf(call, x->rank));
    if (x->dims) {
      Dims dims = *x->dims;
      PrimExpr& extent = dims[static_cast<size_t>(axis)];
      const auto count = ir::AsConstInt(extent);
      if (count && *count < k) {
        return OpError(call, "k: expected at most " + std::to_string(*count) + ", got " + std::to_string(k));
      }
      extent = ir::Int64(k);
      values = TensorOf(dims, x->dtype, x);
      indices = TensorOf(std::move(dims), dtype, x);
    }
  }
  const std::string results = call->attrs.GetString("ret_type");
  if (results == "values") return values;
  if (results == "indices") return indices;
  if (results == "both") return ir::Type(ir::Make<ir::TupleTypeNode>(std::vector<ir::Type>{values, indices}));
  return OpError(call, "ret_type: expected \"both\", \"values\" or \"indices\", got \"" + results + "\"");
}

Result<std::vector<ReferenceTensor>> ReferenceSort(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  const SortKind kind = SortKindOf(call);
  INGOT_ASSIGN_OR_RETURN(const int axis, AxisOf(call, static_cast<int>(x.dims.size())));
  std::vector<ir::Type> types = {call->type};
  if (const auto* tuple = ir::As<ir::TupleTypeNode>(call->type)) types = tuple->fields;
  std::vector<ReferenceTensor> results;
  for (const ir::Type& type : types) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, type));
    results.push_back(NewReference(*ir::As<ir::TensorTypeNode>(type)->dtype, dims));
  }
  std::vector<std::vector<int64_t>> to;
  ForEachRow(results[0].dims, static_cast<size_t>(axis),
             [&](const std::vector<int64_t>& places) { to.push_back(places); });
  size_t row = 0;
  ForEachRow(x.dims, static_cast<size_t>(axis), [&](const std::vector<int64_t>& places) {
    std::vector<size_t> order(places.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return kind.descending ? IsLessElement(x, places[b], places[a]) : IsLessElement(x, places[a], places[b]);
    });
    const std::vector<int64_t>& targets = to[row++];
    for (size_t i = 0; i < targets.size(); ++i) {
      if (kind.values) CopyElement(x, places[order[i]], results.front(), targets[i]);
      if (kind.indices) results.back().ints[static_cast<size_t>(targets[i])] = static_cast<int64_t>(order[i]);
    }
  });
  return results;
}

// The statements that sort one row: `element` is the element at a place; `write` stores the results, given the place of
// the element that comes i-th.
using Sorted = std::function<PrimExpr(const PrimExpr& i)>;
using SortOfRow =
    std::function<Stmt(const RadixSort::Elements& element, const std::function<Stmt(const Sorted&)>& write)>;

Statements DefineSortOfRows(const TeArgs& args, const Buffers& inputs, const Buffers& outputs,
                            std::vector<Buffer> local, const SortOfRow& sort) {
  const Buffer& x = inputs[0];
  const size_t axis = ArgAxisOf(args);
  const SortKind kind = SortKindOf(args.call());
  const PrimExpr& count = outputs[0]->shape[axis];
  const auto sort_row = [&](const Places& row) {
    const auto element = [&](const PrimExpr& i) { return Load(x, At(row, axis, i)); };
    const auto write = [&](const Sorted& sorted) {
      return Loop(count, [&](const PrimExpr& i) {
        return Let("from", sorted(i), [&](const PrimExpr& from) {
          std::vector<Stmt> stores;
          if (kind.values) stores.push_back(Store(outputs.front(), element(from), At(row, axis, i)));
          if (kind.indices) {
            const Buffer& out = outputs.back();
            stores.push_back(Store(out, ir::Cast(out->dtype, from), At(row, axis, i)));
          }
          return ir::MakeSeq(std::move(stores));
        });
      });
    };
    return Assert(HasElements(count, x->shape[axis]), "top-k of fewer than k elements", sort(element, write));
  };
  return std::vector<Stmt>{SpatialNest("sort", Others(x->shape, axis), sort_row, std::move(local))};
}

Stmt SortByMerges(const MergeSort& sort, const RadixSort::Elements& element, bool descending) {
  return sort.Sort({[&](const PrimExpr& a, const PrimExpr& b) {
    return descending ? IsLess(element(a), element(b)) : IsLess(element(b), element(a));
  }});
}

Statements DefineSort(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const MergeSort sort(inputs[0]->shape[ArgAxisOf(args)]);
  const bool descending = SortKindOf(args.call()).descending;
  return DefineSortOfRows(
      args, inputs, outputs, {sort.state(), sort.order()}, [&](const auto& element, const auto& write) {
        return ir::MakeSeq(
            {SortByMerges(sort, element, descending), write([&](const PrimExpr& i) { return sort.Sorted(i); })});
      });
}

// The elements of a row along the axis; nothing: a symbol, or not known.
std::optional<int64_t> ExtentOfRow(const ir::Call& call) {
  const Result<ir::TensorType> x = TensorArg(call, 0);
  if (!x.ok() || !(*x)->dims) return std::nullopt;
  const Result<int> axis = AxisOf(call, (*x)->rank);
  return axis.ok() ? ir::AsConstInt((*(*x)->dims)[static_cast<size_t>(*axis)]) : std::nullopt;
}

// Rows of at least so many elements are sorted by their digits.
constexpr int64_t kDigitsPay = 96;

bool SortsByDigits(const ir::Call& call, const Target& target) {
  if (target.kind == Target::Kind::kCuda) return false;
  const auto extent = ExtentOfRow(call);
  return !extent || (*extent >= kDigitsPay && *extent <= RadixSort::kMaxElements);
}

Statements DefineSortByDigits(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const Buffer& x = inputs[0];
  const PrimExpr& n = x->shape[ArgAxisOf(args)];
  const bool descending = SortKindOf(args.call()).descending;
  const RadixSort sort(n, x->dtype, descending);
  const auto by_digits = [&](const auto& element, const auto& write) {
    return ir::MakeSeq({sort.Sort(element), write([&](const PrimExpr& i) { return sort.Sorted(i); })});
  };
  if (ir::AsConstInt(n)) return DefineSortOfRows(args, inputs, outputs, sort.local(), by_digits);
  // Short rows are merged, and those whose places do not fit.
  const MergeSort merge(n, sort.words());
  std::vector<Buffer> local = sort.local();
  local.push_back(merge.state());
  return DefineSortOfRows(args, inputs, outputs, std::move(local), [&](const auto& element, const auto& write) {
    const Stmt merged = ir::MakeSeq(
        {SortByMerges(merge, element, descending), write([&](const PrimExpr& i) { return merge.Sorted(i); })});
    const PrimExpr pays = ir::And(ir::Int64(kDigitsPay) <= n, n <= ir::Int64(RadixSort::kMaxElements));
    return ir::Make<ir::IfStmtNode>(pays, by_digits(element, write), merged);
  });
}

// Of a row's elements, one in so many.
constexpr int64_t kSortPays = 4;

// Whether the k places of a row fit the local buffers of a kernel, and are few enough of it that no sort is faster.
bool FitsHeap(const ir::Call& call, const Target& target) {
  const Result<ir::TensorType> x = TensorArg(call, 0);
  const int64_t k = call->attrs.GetInt("k");
  if (!x.ok() || !(*x)->dtype || k < 1 || k > target.max_stack_bytes) return false;
  const auto extent = ExtentOfRow(call);
  if (extent && k > *extent / kSortPays && SortsByDigits(call, target)) return false;
  return PlaceHeap::LocalBytes(k, *(*x)->dtype) <= target.max_stack_bytes / 2;
}

Statements DefineTopkByHeap(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const Buffer& x = inputs[0];
  const size_t axis = ArgAxisOf(args);
  const SortKind kind = SortKindOf(args.call());
  const int64_t k = args.call()->attrs.GetInt("k");
  const PlaceHeap heap(k, x->dtype, kind.descending);
  const Stmt nest = SpatialNest(
      "top", Others(x->shape, axis),
      [&](const Places& row) {
        const auto element = [&](const PrimExpr& i) { return Load(x, At(row, axis, i)); };
        const auto write = [&](const PrimExpr& i, const PrimExpr& from) {
          return Let("from", from, [&](const PrimExpr& place) {
            std::vector<Stmt> stores;
            if (kind.values) stores.push_back(Store(outputs.front(), element(place), At(row, axis, i)));
            if (kind.indices) {
              stores.push_back(Store(outputs.back(), ir::Cast(outputs.back()->dtype, place), At(row, axis, i)));
            }
            return ir::MakeSeq(std::move(stores));
          });
        };
        const Stmt steps = ir::MakeSeq({heap.Select(x->shape[axis], element), heap.Drain(write)});
        const PrimExpr enough = HasElements(ir::Int64(k), x->shape[axis]);
        return Assert(enough, "top-k of fewer than k elements", steps);
      },
      heap.local());
  return std::vector<Stmt>{nest};
}

template <bool greatest>
OpRow ArgRow(const char* name, const char* summary, const CaseTraits& cases) {
  return {.name = name,
          .summary = summary,
          .arg_names = {"x"},
          .attrs = {{"axis", AttrType::kInts},
                    {"keepdims", AttrType::kBool, false},
                    {"select_last_index", AttrType::kBool, false}},
          .infer = InferArg,
          .reference = ReferenceArg<greatest>,
          .fold = FoldExact,
          .implementations = {{"direct", Always, InputElements, {}, Build<DefineArg<greatest>>}},
          .cases = cases};
}

template <bool product>
OpRow ScanRow(const char* name, const char* summary, const CaseTraits& cases) {
  OpRow row{.name = name,
            .summary = summary,
            .arg_names = {"data"},
            .attrs = {{"axis", AttrType::kInt, {}, true},
                      {"dtype", AttrType::kDataType},
                      {"exclusive", AttrType::kBool, false}},
            .infer = InferScan,
            .reference = ReferenceScan<product>,
            .implementations = {{"direct", Always, InputElements, {}, BuildStatements<DefineScan<product>>}},
            .cases = cases};
  if (!product) row.implementations.push_back(CudaSums());
  row.cases.dtypes = {DataType::Float(32), DataType::Float(64), DataType::Float(16), DataType::Bfloat16(),
                      DataType::Int(8),    DataType::Int(32),   DataType::Int(64),   DataType::UInt(8)};
  return row;
}

OpRow SortRow(const char* name, const char* summary, std::vector<AttrSpec> attrs,
              Result<ir::Type> (*infer)(const ir::Call& call), const CaseTraits& cases) {
  return {.name = name,
          .summary = summary,
          .arg_names = {"data"},
          .attrs = std::move(attrs),
          .infer = infer,
          .reference = ReferenceSort,
          .implementations = {{"digits", SortsByDigits, InputElements, {}, BuildStatements<DefineSortByDigits>},
                              {"merge", Always, SortCost, {}, BuildStatements<DefineSort>},
                              CudaSort()},
          .cases = cases};
}

}  // namespace

std::vector<OpRow> OrderingOps() {
  const CaseTraits cases{.rank0 = false, .dtypes = MovedDataTypes()};
  const AttrSpec axis = {"axis", AttrType::kInt, -1};
  const AttrSpec descending = {"descending", AttrType::kBool, false};
  const AttrSpec dtype = {"dtype", AttrType::kDataType, DataType::Int(32)};
  std::vector<OpRow> rows;
  rows.push_back(ArgRow<true>("argmax", "the place of the greatest element along an axis", cases));
  rows.push_back(ArgRow<false>("argmin", "the place of the least element along an axis", cases));
  rows.push_back(ScanRow<false>("cumsum", "the sums of the elements so far along an axis", cases));
  rows.push_back(ScanRow<true>("cumprod", "the products of the elements so far along an axis", cases));
  rows.push_back(SortRow("sort", "the elements of an axis in order", {axis, descending}, InferSort, cases));
  rows.push_back(SortRow("argsort", "the places of the elements of an axis in order", {axis, descending, dtype},
                         InferArgsort, cases));
  rows.push_back(SortRow("topk", "the k greatest or least elements of an axis in order, and their places",
                         {{"k", AttrType::kInt, 1},
                          axis,
                          {"ret_type", AttrType::kString, "both"},
                          {"largest", AttrType::kBool, true},
                          dtype},
                         InferTopk, cases));
  std::vector<Implementation>& topk = rows.back().implementations;
  topk.insert(topk.begin(), {"heap", FitsHeap, InputElements, {}, BuildStatements<DefineTopkByHeap>});
  topk.insert(topk.begin(), CudaTopk());
  return rows;
}

}  // namespace ingot::op
