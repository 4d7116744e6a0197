// Operators with dynamic output shapes (the number of elements is data-dependent): nonzero, unique,
// all_class_non_max_suppression. Each consists of a function that counts and one that fills (DataExtents, registry.h);
// tensors that counting computes are carried over to filling, which need not search again.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "compiler/op/build.h"
#include "compiler/op/counter.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/merge_sort.h"
#include "compiler/op/reference.h"
#include "compiler/op/statements.h"
#include "compiler/op/suppression.h"

namespace ingot::op {
namespace {

ir::Type IndexTensor(Dims dims) { return TensorOf(std::move(dims), kIndexDtype, nullptr); }
Result<ir::TensorType> KnownTensorArg(const ir::Call& call, size_t i) {
  INGOT_ASSIGN_OR_RETURN(ir::TensorType type, TensorArg(call, i));
  if (!type->dims || !type->dtype) return OpError(call, "expected an argument of known shape, got " + Describe(type));
  return type;
}

// Replaces the count of each row by the sum of the counts before it, which is the row's start in the result;
// extents[0] := the sum of all.
Stmt StartsOfRows(const Buffer& counts, const Buffer& extents) {
  const Counter total("total");
  return SpatialNest(
      "starts", {},
      [&](const Places&) {
        const Stmt rows = Loops(counts->shape, [&](const Places& row) {
          return Let("count", Load(counts, row), [&](const PrimExpr& count) {
            return ir::MakeSeq({Store(counts, total.value(), row), total.Add(count)});
          });
        });
        return ir::MakeSeq({total.Set(ir::Int64(0)), rows, Store(extents, total.value(), {ir::Int64(0)})});
      },
      {total.buffer()});
}

// ---- nonzero. A row is a slice along the last axis. The start of each row in the result is carried over, so that rows
// are filled in parallel.
Result<ir::Type> InferNonzero(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  return TensorOfRank(2, kIndexDtype, x);
}
Result<ir::Type> NonzeroOfExtents(const ir::Call& call, const Dims& extents) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, KnownTensorArg(call, 0));
  return TensorOf({ir::Int64(x->rank), extents[0]}, kIndexDtype, x);
}
Dims RowsOf(const Dims& dims) {
  if (dims.size() <= 1) return {ir::Int64(1)};
  return {dims.begin(), dims.end() - 1};
}
Result<std::vector<ir::Type>> CarriedByNonzero(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, KnownTensorArg(call, 0));
  return std::vector<ir::Type>{IndexTensor(RowsOf(*x->dims))};
}

// body(the place of an element, whether it is not zero) for each element of a row.
Stmt EachOfRow(const Buffer& x, const Places& row, const std::function<Stmt(const Places&, PrimExpr)>& body) {
  const size_t rank = x->shape.size();
  return Loop(rank == 0 ? ir::Int64(1) : x->shape.back(), [&](const PrimExpr& i) {
    Places at = rank <= 1 ? Places() : row;
    if (rank > 0) at.push_back(i);
    const PrimExpr element = Load(x, at);
    const bool is_bool = x->dtype.is_bool();
    return body(at, is_bool ? element : ir::NotEqual(element, ir::MakeConst(x->dtype, 0)));
  });
}

Statements CountNonzero(const TeArgs&, const Buffers& inputs, const Buffers& outputs) {
  const Buffer& starts = outputs[1];
  const Counter count("count");
  const Stmt rows =
      SpatialNest("count", starts->shape,
                  [&](const Places& row) {
                    const Stmt steps = EachOfRow(inputs[0], row, [&](const Places&, PrimExpr is_hit) {
                      return count.Add(ir::Cast(kIndexDtype, std::move(is_hit)));
                    });
                    return ir::MakeSeq({count.Set(ir::Int64(0)), steps, Store(starts, count.value(), row)});
                  },
                  {count.buffer()});
  return std::vector<Stmt>{rows, StartsOfRows(starts, outputs[0])};
}

Statements FillNonzero(const TeArgs&, const Buffers& inputs, const Buffers& outputs) {
  const Buffer& starts = inputs[1];
  const Counter next("next");
  const Stmt rows = SpatialNest(
      "fill", starts->shape,
      [&](const Places& row) {
        const Stmt steps = EachOfRow(inputs[0], row, [&](const Places& at, PrimExpr is_hit) {
          std::vector<Stmt> stores;
          for (size_t axis = 0; axis < at.size(); ++axis) {
            stores.push_back(Store(outputs[0], at[axis], {ir::Int64(static_cast<int64_t>(axis)), next.value()}));
          }
          stores.push_back(next.Add(ir::Int64(1)));
          return If(std::move(is_hit), ir::MakeSeq(std::move(stores)));
        });
        return ir::MakeSeq({next.Set(Load(starts, row)), steps});
      },
      {next.buffer()});
  return std::vector<Stmt>{rows};
}

Result<std::vector<ReferenceTensor>> ReferenceNonzero(const ir::Call&, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  int64_t count = 0;
  std::vector<std::vector<int64_t>> places(x.dims.size());  // by axis
  ForEachIndex(x.dims, [&](const Index& index, int64_t flat) {
    if (GetNumber(x, flat) == 0) return;
    ++count;
    for (size_t axis = 0; axis < index.size(); ++axis) places[axis].push_back(index[axis]);
  });
  ReferenceTensor out = NewReference(kIndexDtype, {std::ssize(x.dims), count});
  out.ints.clear();
  for (const std::vector<int64_t>& along : places) out.ints.insert(out.ints.end(), along.begin(), along.end());
  return std::vector<ReferenceTensor>{std::move(out)};
}

// ---- unique: of elements, or of the slices along an axis in lexicographic order. NaN counts as equal to NaN and
// greater than every number. Carried over: for each unique slice, by its number, its first place and how often it
// occurs; for each place, the number of its slice.
struct UniqueOptions {
  bool sorted, index, inverse, counts;
  std::optional<int> axis;  // absent: elements are compared
  size_t NumResults() const { return 1 + size_t{index} + size_t{inverse} + size_t{counts}; }
};
constexpr size_t kUniqueAxis = 5;  // its place among the arguments

Result<bool> FlagArg(const ir::Call& call, size_t i) {
  INGOT_ASSIGN_OR_RETURN(const PrimExpr value, PrimArg(call, i));
  const auto flag = ir::AsConstInt(value);
  if (!flag) return OpError(call, "expected a constant truth value, got " + Describe(value));
  return *flag != 0;
}

Result<UniqueOptions> UniqueOptionsOf(const ir::Call& call, int rank) {
  UniqueOptions options{};
  INGOT_ASSIGN_OR_RETURN(options.sorted, FlagArg(call, 1));
  INGOT_ASSIGN_OR_RETURN(options.index, FlagArg(call, 2));
  INGOT_ASSIGN_OR_RETURN(options.inverse, FlagArg(call, 3));
  INGOT_ASSIGN_OR_RETURN(options.counts, FlagArg(call, 4));
  // In a FillCall the carried tensors follow the call's own arguments, so this one may be such a tensor.
  if (!HasArg(call, kUniqueAxis) || ir::As<ir::PrimValueNode>(call->args[kUniqueAxis]) == nullptr) return options;
  INGOT_ASSIGN_OR_RETURN(const PrimExpr value, PrimArg(call, kUniqueAxis));
  const auto axis = ir::AsConstInt(value);
  if (!axis) return OpError(call, "expected a constant axis, got " + Describe(value));
  if (rank >= 0) {
    INGOT_ASSIGN_OR_RETURN(options.axis, NormalizeAxis(call, *axis, rank));
  } else {
    options.axis = 0;  // which one changes nothing while the rank is unknown
  }
  return options;
}
UniqueOptions UniqueOptionsOf(const TeArgs& args) { return *UniqueOptionsOf(args.call(), args.input(0).rank()); }

// The number of slices that are compared.
PrimExpr NumSlices(const Dims& dims, const std::optional<int>& axis) {
  return axis ? dims[static_cast<size_t>(*axis)] : ProductOf(dims);
}

ir::Type UniqueResults(const UniqueOptions& options, ir::Type values, const ir::Type& per_unique,
                       const ir::Type& per_place) {
  std::vector<ir::Type> types = {std::move(values)};
  if (options.index) types.push_back(per_unique);
  if (options.inverse) types.push_back(per_place);
  if (options.counts) types.push_back(per_unique);
  return types.size() == 1 ? types[0] : ir::Type(ir::Make<ir::TupleTypeNode>(std::move(types)));
}

Result<ir::Type> InferUnique(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const UniqueOptions options, UniqueOptionsOf(call, x->rank));
  const ir::Type per_place =
      x->dims ? IndexTensor({NumSlices(*x->dims, options.axis)}) : TensorOfRank(1, kIndexDtype, x);
  return UniqueResults(options, TensorOfRank(options.axis ? x->rank : 1, x->dtype, x), TensorOfRank(1, kIndexDtype, x),
                       per_place);
}
Result<ir::Type> UniqueOfExtents(const ir::Call& call, const Dims& extents) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, KnownTensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const UniqueOptions options, UniqueOptionsOf(call, x->rank));
  Dims dims = {extents[0]};
  if (options.axis) {
    dims = *x->dims;
    dims[static_cast<size_t>(*options.axis)] = extents[0];
  }
  return UniqueResults(options, TensorOf(std::move(dims), x->dtype, x), IndexTensor({extents[0]}),
                       IndexTensor({NumSlices(*x->dims, options.axis)}));
}
Result<std::vector<ir::Type>> CarriedByUnique(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, KnownTensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const UniqueOptions options, UniqueOptionsOf(call, x->rank));
  return std::vector<ir::Type>(3, IndexTensor({NumSlices(*x->dims, options.axis)}));
}

// The place of element `flat` of a slice, in row-major order of the other axes. Without an axis a slice is one element.
Places PlaceInSlice(const Dims& dims, const std::optional<int>& axis, const PrimExpr& slice, PrimExpr flat) {
  Places places(dims.size());
  if (!axis) flat = slice;
  for (size_t i = dims.size(); i-- > 0;) {
    if (axis && static_cast<size_t>(*axis) == i) {
      places[i] = slice;
      continue;
    }
    places[i] = ir::FloorMod(flat, dims[i]);
    flat = ir::FloorDiv(flat, dims[i]);
  }
  return places;
}

// Slices compared: sign is -1, 0 or 1 as slice a is less than, equal to or greater than slice b.
class SliceOrder {
 public:
  SliceOrder(const Buffer& x, std::optional<int> axis) : x_(x), axis_(axis), sign_("sign"), element_("element") {
    Dims others = x->shape;
    if (axis_) others.erase(others.begin() + *axis_);
    length_ = axis_ ? ProductOf(others) : ir::Int64(1);
  }
  std::vector<Buffer> state() const { return {sign_.buffer(), element_.buffer()}; }
  PrimExpr sign() const { return sign_.value(); }

  Stmt Compare(const PrimExpr& a, const PrimExpr& b) const {
    const PrimExpr going = ir::And(ir::Equal(sign_.value(), ir::Int64(0)), element_.value() < length_);
    const PrimExpr x = Load(x_, PlaceInSlice(x_->shape, axis_, a, element_.value()));
    const PrimExpr y = Load(x_, PlaceInSlice(x_->shape, axis_, b, element_.value()));
    const PrimExpr sign = ir::Select(IsLess(x, y), ir::Int64(-1), ir::Select(IsLess(y, x), ir::Int64(1), ir::Int64(0)));
    return ir::MakeSeq({sign_.Set(ir::Int64(0)), element_.Set(ir::Int64(0)),
                        While(going, ir::MakeSeq({sign_.Set(sign), element_.Add(ir::Int64(1))}))});
  }

 private:
  Buffer x_;
  std::optional<int> axis_;
  PrimExpr length_;
  Counter sign_, element_;
};

// Sorts the slices and numbers the runs of equal ones. For results in the order of first places it numbers them again.
Statements CountUnique(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const UniqueOptions options = UniqueOptionsOf(args);
  const Buffer& extents = outputs[0];
  const Buffer& firsts = outputs[1];
  const Buffer& counts = outputs[2];
  const Buffer& numbers = outputs[3];
  const PrimExpr n = firsts->shape[0];
  const SliceOrder order(inputs[0], options.axis);
  const MergeSort sort(n);
  const Counter unique("unique");
  const Buffer renumbered = ir::MakeBuffer("renumbered", kIndexDtype, {n});
  std::vector<Buffer> local = order.state();
  local.insert(local.end(), {sort.state(), unique.buffer()});
  const PrimExpr zero = ir::Int64(0), one = ir::Int64(1);

  const auto number_runs = [&](const PrimExpr& i) {
    return Let("place", sort.Sorted(i), [&](const PrimExpr& place) {
      const Stmt compare = ir::Make<ir::IfStmtNode>(
          i < one, order.Compare(place, place),
          Let(
              "before", sort.Sorted(ir::Max(i - 1, zero)), [&](const PrimExpr& b) { return order.Compare(place, b); }));
      const Stmt begin =
          ir::MakeSeq({Store(firsts, place, {unique.value()}), Store(counts, zero, {unique.value()}), unique.Add(one)});
      const Stmt if_new = If(ir::Or(i < one, ir::NotEqual(order.sign(), zero)), begin);
      return ir::MakeSeq(
          {compare, if_new, Let("number", unique.value() - 1, [&](const PrimExpr& number) {
             return ir::MakeSeq({Store(numbers, number, {place}), Store(counts, Load(counts, {number}) + 1, {number})});
           })});
    });
  };
  // Walks the places in order: the first place of a slice gives it its new number (renumber); then firsts and counts
  // are made again by the new numbers (recount).
  const auto renumber = [&](const PrimExpr& place) {
    return Let("number", Load(numbers, {place}), [&](const PrimExpr& number) {
      const Stmt next = ir::MakeSeq({Store(renumbered, unique.value(), {number}), unique.Add(one)});
      return ir::MakeSeq(
          {If(ir::Equal(Load(firsts, {number}), place), next), Store(numbers, Load(renumbered, {number}), {place})});
    });
  };
  const auto recount = [&](const PrimExpr& place) {
    return Let("number", Load(numbers, {place}), [&](const PrimExpr& number) {
      const Stmt begin = ir::MakeSeq({Store(firsts, place, {number}), Store(counts, zero, {number}), unique.Add(one)});
      return ir::MakeSeq(
          {If(ir::Equal(number, unique.value()), begin), Store(counts, Load(counts, {number}) + 1, {number})});
    });
  };
  const Stmt nest = SpatialNest(
      "unique", {},
      [&](const Places&) {
        const MergeSort::Comparison comparison{
            [&](const PrimExpr&, const PrimExpr&) { return zero < order.sign(); },
            [&](const PrimExpr& a, const PrimExpr& b) { return order.Compare(a, b); }};
        std::vector<Stmt> steps = {sort.Sort(comparison), unique.Set(zero), Loop(n, number_runs)};
        if (!options.sorted) {
          steps.insert(steps.end(), {unique.Set(zero), Loop(n, renumber), unique.Set(zero), Loop(n, recount)});
        }
        steps.push_back(Store(extents, unique.value(), {zero}));
        // Tensors that are carried over are written to their ends.
        steps.push_back(Loop(n - unique.value(), [&](const PrimExpr& i) {
          return ir::MakeSeq({Store(firsts, zero, {unique.value() + i}), Store(counts, zero, {unique.value() + i})});
        }));
        return ir::MakeSeq(std::move(steps));
      },
      std::move(local));
  std::vector<Buffer> workspace = {sort.order()};
  if (!options.sorted) workspace.push_back(renumbered);
  return {std::vector<Stmt>{nest}, std::move(workspace)};
}

Statements FillUnique(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const UniqueOptions options = UniqueOptionsOf(args);
  const Buffer& x = inputs[0];
  const Buffer &firsts = inputs[1], &counts = inputs[2], &numbers = inputs[3];
  const auto copy = [](const char* name, const Buffer& from, const Buffer& to) {
    return SpatialNest(name, to->shape, [&](const Places& i) { return Store(to, Load(from, i), i); });
  };
  std::vector<Stmt> nests = {SpatialNest("values", outputs[0]->shape, [&](const Places& i) {
    Places from = i;
    if (options.axis) {
      PrimExpr& along = from[static_cast<size_t>(*options.axis)];
      along = Load(firsts, {along});
    } else {
      from = PlaceInSlice(x->shape, std::nullopt, Load(firsts, i), ir::Int64(0));
    }
    return Store(outputs[0], Load(x, from), i);
  })};
  size_t next = 1;
  if (options.index) nests.push_back(copy("indices", firsts, outputs[next++]));
  if (options.inverse) nests.push_back(copy("inverse", numbers, outputs[next++]));
  if (options.counts) nests.push_back(copy("counts", counts, outputs[next++]));
  return nests;
}

Result<std::vector<ReferenceTensor>> ReferenceUnique(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  INGOT_ASSIGN_OR_RETURN(const UniqueOptions options, UniqueOptionsOf(call, static_cast<int>(x.dims.size())));
  const size_t axis = static_cast<size_t>(options.axis.value_or(0));
  const int64_t num_slices = options.axis ? x.dims[axis] : CountOf(x.dims);
  std::vector<std::vector<int64_t>> slices(static_cast<size_t>(num_slices));  // flat places of each one's elements
  ForEachIndex(x.dims, [&](const Index& index, int64_t flat) {
    slices[static_cast<size_t>(options.axis ? index[axis] : flat)].push_back(flat);
  });
  const auto is_less = [&](int64_t i, int64_t j) { return IsLessElement(x, i, j); };
  const auto slice_less = [&](size_t a, size_t b) {
    return std::ranges::lexicographical_compare(slices[a], slices[b], is_less);
  };
  // Sorted, equal slices lie side by side, and the first one in front.
  std::vector<size_t> order(slices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, slice_less);
  std::vector<size_t> firsts, first_of(slices.size());  // of the unique slices, and of each slice
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || slice_less(order[i - 1], order[i])) firsts.push_back(order[i]);
    first_of[order[i]] = firsts.back();
  }
  if (!options.sorted) std::ranges::sort(firsts);
  std::vector<int64_t> dims = x.dims;
  if (options.axis) {
    dims[axis] = std::ssize(firsts);
  } else {
    dims = {std::ssize(firsts)};
  }
  ReferenceTensor values = NewReference(x.dtype, dims);
  ForEachIndex(dims, [&](const Index& index, int64_t flat) {
    Index from = index;
    const size_t first = firsts[static_cast<size_t>(index[options.axis ? axis : 0])];
    if (options.axis) from[axis] = static_cast<int64_t>(first);
    CopyElement(x, options.axis ? Flatten(x.dims, from) : static_cast<int64_t>(first), values, flat);
  });
  ReferenceTensor index = NewReference(kIndexDtype, {std::ssize(firsts)});
  ReferenceTensor inverse = NewReference(kIndexDtype, {num_slices});
  ReferenceTensor counts = index;
  std::vector<int64_t> number_of(slices.size());  // of the first ones
  for (size_t i = 0; i < firsts.size(); ++i) {
    index.ints[i] = static_cast<int64_t>(firsts[i]);
    number_of[firsts[i]] = static_cast<int64_t>(i);
  }
  for (size_t i = 0; i < slices.size(); ++i) {
    inverse.ints[i] = number_of[first_of[i]];
    ++counts.ints[static_cast<size_t>(inverse.ints[i])];
  }
  std::vector<ReferenceTensor> results = {std::move(values)};
  if (options.index) results.push_back(std::move(index));
  if (options.inverse) results.push_back(std::move(inverse));
  if (options.counts) results.push_back(std::move(counts));
  return results;
}

// ---- all_class_non_max_suppression: for each batch and class, boxes by falling score, each kept unless it overlaps
// one that was kept. Carried over: the kept boxes of each class, their number, and where they start in the result.
// Candidates are the boxes with a score above the threshold; all, NaN last, where the threshold has no elements.
enum BoxArg : size_t { kBoxes, kScores, kMaxBoxes, kIouThreshold, kScoreThreshold };

bool HaveNoElements(const Dims& dims) { return DimsEqual(ProductOf(dims), ir::Int64(0)); }

Result<ir::Type> CheckBoxes(const ir::Call& call, const PrimExpr* total) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType boxes, TensorArg(call, kBoxes));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType scores, TensorArg(call, kScores));
  for (const ir::TensorType& tensor : {boxes, scores}) {
    if (tensor->rank >= 0 && tensor->rank != 3) return OpError(call, "expected rank 3, got " + Describe(tensor));
    if (tensor->dtype && !tensor->dtype->is_floating())
      return OpError(call, "expected floats, got " + Describe(tensor));
  }
  if (boxes->dims && scores->dims) {
    const bool fits = !DimsDiffer((*boxes->dims)[0], (*scores->dims)[0]) &&
                      !DimsDiffer((*boxes->dims)[1], (*scores->dims)[2]) &&
                      !DimsDiffer((*boxes->dims)[2], ir::Int64(4));
    if (!fits) return OpError(call, Describe(scores) + " does not fit boxes " + Describe(boxes));
  }
  for (size_t i : {kMaxBoxes, kIouThreshold, kScoreThreshold}) {
    INGOT_ASSIGN_OR_RETURN(const ir::TensorType number, TensorArg(call, i));
    if (number->dims && !(i == kScoreThreshold && HaveNoElements(*number->dims)) &&
        DimsDiffer(ProductOf(*number->dims), ir::Int64(1))) {
      return OpError(call, "expected one number, got " + Describe(number));
    }
    if (number->dtype && number->dtype->is_floating() == (i == kMaxBoxes)) {
      return OpError(call, "expected an integer and two floats, got " + Describe(number));
    }
  }
  if (call->attrs.GetString("output_format") != "onnx") {
    return OpError(call, "output_format: expected \"onnx\", got \"" + call->attrs.GetString("output_format") + "\"");
  }
  const ir::Type places = total == nullptr ? TensorOfRank(2, kIndexDtype, boxes) : IndexTensor({*total, ir::Int64(3)});
  return ir::Type(ir::Make<ir::TupleTypeNode>(std::vector<ir::Type>{places, IndexTensor({ir::Int64(1)})}));
}
Result<ir::Type> InferBoxes(const ir::Call& call) { return CheckBoxes(call, nullptr); }
Result<ir::Type> BoxesOfExtents(const ir::Call& call, const Dims& extents) { return CheckBoxes(call, &extents[0]); }
Result<std::vector<ir::Type>> CarriedByBoxes(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType scores, KnownTensorArg(call, kScores));
  const Dims rows = RowsOf(*scores->dims);
  return std::vector<ir::Type>{IndexTensor(*scores->dims), IndexTensor(rows), IndexTensor(rows)};
}

PrimExpr OneNumber(const Buffer& buffer) { return Load(buffer, Places(buffer->shape.size(), ir::Int64(0))); }

Statements CountBoxes(const TeArgs&, const Buffers& inputs, const Buffers& outputs) {
  const Buffer &boxes = inputs[kBoxes], &scores = inputs[kScores];
  const Buffer &kept = outputs[1], &counts = outputs[2], &starts = outputs[3];
  const PrimExpr n = scores->shape[2];
  const DataType wide = scores->dtype.bits == 64 ? scores->dtype : DataType::Float(32);
  const PrimExpr iou = ir::Cast(wide, OneNumber(inputs[kIouThreshold]));
  const bool takes_all = HaveNoElements(inputs[kScoreThreshold]->shape);
  const PrimExpr most = ir::Cast(kIndexDtype, OneNumber(inputs[kMaxBoxes]));
  const KeptBoxes rivals(n, wide);
  const Counter count("count"), other("other"), overlaps("overlaps");
  const PrimExpr zero = ir::Int64(0), one = ir::Int64(1);
  const CandidateHeap candidates(n);
  std::vector<Buffer> local = {count.buffer(), other.buffer(), overlaps.buffer()};
  std::ranges::copy(rivals.buffers(), std::back_inserter(local));
  std::ranges::copy(candidates.buffers(), std::back_inserter(local));
  const auto suppress = [&](const Places& row) {
    const auto score = [&](const PrimExpr& box) { return ir::Cast(wide, Load(scores, {row[0], row[1], box})); };
    const auto is_before = [&](const PrimExpr& a, const PrimExpr& b) {
      const PrimExpr precedes = ir::Or(score(b) < score(a), ir::And(ir::Equal(score(a), score(b)), a < b));
      if (!takes_all) return precedes;
      const PrimExpr is_by_nan = ir::And(IsNan(score(b)), ir::Or(ir::Not(IsNan(score(a))), a < b));
      return ir::Or(precedes, is_by_nan);
    };
    const auto is_candidate = [&](const PrimExpr& box) {
      if (takes_all) return ir::BoolImm(true);
      return ir::Cast(wide, OneNumber(inputs[kScoreThreshold])) < score(box);
    };
    const auto try_box = [&](const PrimExpr& box) {
      return rivals.NumbersOf(boxes, row[0], box, [&](const Places& numbers) {
        const Stmt compare =
            ir::MakeSeq({rivals.Compare(numbers, other.value(), count.value(), iou),
                         overlaps.Set(ir::Cast(kIndexDtype, rivals.hit())), other.Add(ir::Int64(KeptBoxes::kAtOnce))});
        const PrimExpr going = ir::And(ir::Equal(overlaps.value(), zero), other.value() < count.value());
        const Stmt keep = ir::MakeSeq(
            {rivals.Keep(numbers, count.value()), Store(kept, box, {row[0], row[1], count.value()}), count.Add(one)});
        return ir::MakeSeq(
            {overlaps.Set(zero), other.Set(zero), While(going, compare), If(ir::Equal(overlaps.value(), zero), keep)});
      });
    };
    const PrimExpr are_wanted = ir::And(zero < candidates.size(), count.value() < most);
    return ir::MakeSeq({candidates.Fill(is_candidate, is_before), rivals.Clear(), count.Set(zero),
                        While(are_wanted, candidates.Take(is_before, try_box)), Store(counts, count.value(), row),
                        Store(starts, count.value(), row),
                        Loop(n - count.value(), [&](const PrimExpr& i) {  // unused places are 0
                          return Store(kept, zero, {row[0], row[1], count.value() + i});
                        })});
  };
  const Stmt rows = SpatialNest("suppress", counts->shape, suppress, local);
  return std::vector<Stmt>{rows, StartsOfRows(starts, outputs[0])};
}

Statements FillBoxes(const TeArgs&, const Buffers& inputs, const Buffers& outputs) {
  const Buffer &kept = inputs[kScoreThreshold + 1], &counts = inputs[kScoreThreshold + 2],
               &starts = inputs[kScoreThreshold + 3];
  const Buffer& out = outputs[0];
  const Stmt rows = SpatialNest("fill", counts->shape, [&](const Places& row) {
    return Loop(Load(counts, row), [&](const PrimExpr& i) {
      return Let("at", Load(starts, row) + i, [&](const PrimExpr& at) {
        return ir::MakeSeq({Store(out, row[0], {at, ir::Int64(0)}), Store(out, row[1], {at, ir::Int64(1)}),
                            Store(out, Load(kept, {row[0], row[1], i}), {at, ir::Int64(2)})});
      });
    });
  });
  const Stmt total =
      SpatialNest("total", {}, [&](const Places&) { return Store(outputs[1], out->shape[0], {ir::Int64(0)}); });
  return std::vector<Stmt>{rows, total};
}

Result<std::vector<ReferenceTensor>> ReferenceBoxes(const ir::Call&, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor &boxes = inputs[kBoxes], &scores = inputs[kScores];
  const auto most = static_cast<size_t>(std::max<int64_t>(inputs[kMaxBoxes].ints[0], 0));
  const double iou = GetNumber(inputs[kIouThreshold], 0);
  const bool takes_all = inputs[kScoreThreshold].floats.empty();
  const double least_score = takes_all ? 0 : GetNumber(inputs[kScoreThreshold], 0);
  const int64_t n = scores.dims[2];
  std::vector<int64_t> places;
  const auto overlap = [&](int64_t batch, int64_t a, int64_t b) {
    double common = 1, area_a = 1, area_b = 1;
    for (int64_t axis : {0, 1}) {
      const auto side = [&](int64_t box, int64_t end) {
        return GetNumber(boxes, (batch * n + box) * 4 + axis + 2 * end);
      };
      const auto [a_low, a_high] = std::minmax({side(a, 0), side(a, 1)});
      const auto [b_low, b_high] = std::minmax({side(b, 0), side(b, 1)});
      common *= std::max(0.0, std::min(a_high, b_high) - std::max(a_low, b_low));
      area_a *= a_high - a_low;
      area_b *= b_high - b_low;
    }
    return area_a > 0 && area_b > 0 ? common / (area_a + area_b - common) : 0.0;
  };
  for (int64_t batch = 0; batch < scores.dims[0]; ++batch) {
    for (int64_t cls = 0; cls < scores.dims[1]; ++cls) {
      const auto score = [&](int64_t box) { return GetNumber(scores, (batch * scores.dims[1] + cls) * n + box); };
      std::vector<int64_t> order(static_cast<size_t>(n));
      std::iota(order.begin(), order.end(), int64_t{0});
      std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
        return score(a) > score(b) || (std::isnan(score(b)) && !std::isnan(score(a)));
      });
      std::vector<int64_t> kept;
      for (int64_t box : order) {
        if (kept.size() >= most || !(takes_all || score(box) > least_score)) continue;
        if (std::ranges::any_of(kept, [&](int64_t k) { return overlap(batch, box, k) > iou; })) continue;
        kept.push_back(box);
        places.insert(places.end(), {batch, cls, box});
      }
    }
  }
  ReferenceTensor out = NewReference(kIndexDtype, {std::ssize(places) / 3, 3});
  out.ints = std::move(places);
  ReferenceTensor total = NewReference(kIndexDtype, {1});
  total.ints[0] = out.dims[0];
  return std::vector<ReferenceTensor>{std::move(out), std::move(total)};
}

double BoxesCost(const ir::Call& call, const Target& target) {
  return EstimateElements(call->args[kScores]->type) + SortCost(call, target);
}

template <Statements (*count)(const TeArgs&, const Buffers&, const Buffers&),
          Statements (*fill)(const TeArgs&, const Buffers&, const Buffers&)>
Implementation CountAndFill(double (*cost)(const ir::Call& call, const Target& target)) {
  return {"count and fill", Always, cost, {}, BuildStatements<fill>, BuildStatements<count>};
}

}  // namespace

std::vector<OpRow> DynamicShapeOps() {
  std::vector<OpRow> rows;
  rows.push_back({.name = "nonzero",
                  .summary = "the places of the elements that are not zero, one row per axis",
                  .arg_names = {"x"},
                  .infer = InferNonzero,
                  .extents = {1, NonzeroOfExtents, CarriedByNonzero},
                  .reference = ReferenceNonzero,
                  .implementations = {CountAndFill<CountNonzero, FillNonzero>(InputElements)},
                  .cases = {.dtypes = MovedDataTypes()}});
  rows.push_back({.name = "unique",
                  .summary = "the different elements, or slices along an axis; where they come first, which one stands "
                             "at each place, how often each comes",
                  .arg_names = {"x", "sorted", "return_index", "return_inverse", "return_counts", "axis"},
                  .num_optional_args = 1,
                  .infer = InferUnique,
                  .extents = {1, UniqueOfExtents, CarriedByUnique},
                  .reference = ReferenceUnique,
                  .implementations = {CountAndFill<CountUnique, FillUnique>(SortCost)},
                  .cases = {.dtypes = MovedDataTypes()}});
  rows.push_back({.name = "vision.all_class_non_max_suppression",
                  .summary = "the boxes of each class that overlap no better one; their number",
                  .arg_names = {"boxes", "scores", "max_output_boxes_per_class", "iou_threshold", "score_threshold"},
                  .attrs = {{"output_format", AttrType::kString, "onnx"}},
                  .infer = InferBoxes,
                  .extents = {1, BoxesOfExtents, CarriedByBoxes},
                  .reference = ReferenceBoxes,
                  .implementations = {CountAndFill<CountBoxes, FillBoxes>(BoxesCost)},
                  .cases = {.rank0 = false,
                            .non_finite = false,
                            .dtypes = {DataType::Float(32), DataType::Float(64), DataType::Float(16)}}});
  return rows;
}

}  // namespace ingot::op
