// Shapes as values: operators that read types, that move elements to other places, and that make new values.
#include <cmath>
#include <limits>
#include <numeric>

#include "compiler/importer/shape_evaluation.h"

namespace ingot::importer::shapes {
namespace {

// ---- from types

std::optional<std::vector<PrimExpr>> DimsOfInput(const Evaluation& e) {
  const auto* type = ir::As<ir::TensorTypeNode>(e.node().TypeOf(0));
  if (type == nullptr) return std::nullopt;
  return type->dims;
}

// From opset 15 on the result may be a part of the shape.
Outputs Shape(const Evaluation& e) {
  const std::optional<std::vector<PrimExpr>> dims = DimsOfInput(e);
  if (!dims.has_value()) return std::nullopt;
  const auto rank = static_cast<int64_t>(dims->size());
  const std::optional<int64_t> start = e.Int("start", 0), end = e.Int("end", rank);
  if (!start.has_value() || !end.has_value()) return std::nullopt;
  const auto bound = [rank](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t first = bound(*start), last = std::max(bound(*end), first);
  return One(ShapeValue{DataType::Int(64), {last - first}, {dims->begin() + first, dims->begin() + last}});
}

Outputs Size(const Evaluation& e) {
  const std::optional<std::vector<PrimExpr>> dims = DimsOfInput(e);
  if (!dims.has_value()) return std::nullopt;
  PrimExpr count = ir::Int64(1);
  for (const PrimExpr& dim : *dims) count = count * dim;
  const Element element = e.Finish(DataType::Int(64), count);
  if (!element.has_value()) return std::nullopt;
  return One(ShapeValue{DataType::Int(64), {}, {*element}});
}

// ---- moved elements

Outputs Gather(const Evaluation& e) {
  const std::optional<int64_t> given = e.Int("axis", 0);
  if (!e.Has(0) || !e.Has(1) || !e.in(1).is_integer() || !given.has_value()) return std::nullopt;
  const ShapeValue& x = e.in(0);
  const std::optional<int64_t> axis = Axis(*given, std::ssize(x.dims));
  if (!axis.has_value()) return std::nullopt;
  Dims places;
  for (const PrimExpr& element : e.in(1).elements) {
    const auto value = ir::AsConstInt(element);
    const std::optional<int64_t> place = value ? Axis(*value, x.dims[*axis]) : std::nullopt;
    if (!place.has_value()) return std::nullopt;
    places.push_back(*place);
  }
  Dims dims(x.dims.begin(), x.dims.begin() + *axis);
  dims.insert(dims.end(), e.in(1).dims.begin(), e.in(1).dims.end());
  dims.insert(dims.end(), x.dims.begin() + *axis + 1, x.dims.end());
  const Dims strides = StridesOf(x.dims), index_strides = StridesOf(e.in(1).dims);
  const size_t width = e.in(1).dims.size();
  return One(Take(x, std::move(dims), [&](const Dims& index) {
    int64_t at = 0, which = 0;
    for (size_t i = 0; i < index.size(); ++i) {
      const auto before = static_cast<size_t>(*axis);
      if (i < before)
        at += index[i] * strides[i];
      else if (i < before + width)
        which += index[i] * index_strides[i - before];
      else
        at += index[i] * strides[i - width + 1];
    }
    return at + places[which] * strides[*axis];
  }));
}

// Bounds are attributes until opset 9 and inputs from 10 on.
Outputs Slice(const Evaluation& e) {
  if (!e.Has(0)) return std::nullopt;
  const ShapeValue& x = e.in(0);
  const bool as_inputs = e.num_inputs() > 1;
  const std::optional<Dims> starts = as_inputs ? e.ConstantInts(1) : e.Ints("starts");
  const std::optional<Dims> ends = as_inputs ? e.ConstantInts(2) : e.Ints("ends");
  if (!starts.has_value() || !ends.has_value() || starts->size() != ends->size()) return std::nullopt;
  std::optional<Dims> axes = Dims(starts->size()), steps = Dims(starts->size(), 1);
  std::iota(axes->begin(), axes->end(), 0);
  if (as_inputs ? e.node().HasInput(3) : e.node().HasAttr("axes"))
    axes = as_inputs ? e.ConstantInts(3) : e.Ints("axes");
  if (e.node().HasInput(4)) steps = e.ConstantInts(4);
  if (!axes.has_value() || !steps.has_value() || axes->size() != starts->size() || steps->size() != starts->size()) {
    return std::nullopt;
  }
  Dims dims = x.dims, firsts(dims.size(), 0), strides(dims.size(), 1);
  for (size_t i = 0; i < starts->size(); ++i) {
    const std::optional<int64_t> axis = Axis((*axes)[i], std::ssize(dims));
    const int64_t step = (*steps)[i];
    if (!axis.has_value() || step == 0 || step == std::numeric_limits<int64_t>::min()) return std::nullopt;
    const int64_t size = x.dims[*axis];
    const auto bound = [&](int64_t at) {
      if (at < 0) at += size;
      return step > 0 ? std::clamp<int64_t>(at, 0, size) : std::clamp<int64_t>(at, -1, size - 1);
    };
    // A start before the first element becomes the first element, in both directions.
    const int64_t start = (*starts)[i] < -size ? -size : (*starts)[i];
    const int64_t first = bound(start), last = bound((*ends)[i]);
    const int64_t length = step > 0 ? last - first : first - last;
    const int64_t stride = step > 0 ? step : -step;
    firsts[*axis] = first;
    strides[*axis] = step;
    dims[*axis] = length <= 0 ? 0 : 1 + (length - 1) / stride;
  }
  const Dims from = StridesOf(x.dims);
  return One(Take(x, std::move(dims), [&](const Dims& index) {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i) at += (firsts[i] + index[i] * strides[i]) * from[i];
    return at;
  }));
}

Outputs Concat(const Evaluation& e) {
  const std::optional<int64_t> given = e.Int("axis", 0);
  if (!e.Has(0) || !given.has_value()) return std::nullopt;
  const std::optional<int64_t> axis = Axis(*given, std::ssize(e.in(0).dims));
  if (!axis.has_value()) return std::nullopt;
  Dims dims = e.in(0).dims;
  dims[*axis] = 0;
  for (size_t i = 0; i < e.num_inputs(); ++i) {
    if (!e.Has(i) || e.in(i).dtype != e.in(0).dtype || e.in(i).dims.size() != dims.size()) return std::nullopt;
    for (size_t k = 0; k < dims.size(); ++k) {
      if (static_cast<int64_t>(k) != *axis && e.in(i).dims[k] != dims[k]) return std::nullopt;
    }
    dims[*axis] += e.in(i).dims[*axis];
  }
  if (!CountOf(dims).has_value()) return std::nullopt;
  // Row-major: for each place before the axis, the remaining elements of every input follow each other.
  const int64_t rows = std::accumulate(dims.begin(), dims.begin() + *axis, int64_t{1}, std::multiplies<>());
  ShapeValue out{e.in(0).dtype, std::move(dims), {}};
  for (int64_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < e.num_inputs(); ++i) {
      const std::vector<PrimExpr>& from = e.in(i).elements;
      const auto width = static_cast<int64_t>(from.size()) / rows;
      out.elements.insert(out.elements.end(), from.begin() + row * width, from.begin() + (row + 1) * width);
    }
  }
  return One(std::move(out));
}

std::optional<ShapeValue> WithDims(const ShapeValue& x, Dims dims) {
  const std::optional<int64_t> count = CountOf(dims);
  if (count != std::ssize(x.elements)) return std::nullopt;
  return ShapeValue{x.dtype, std::move(dims), x.elements};
}

Outputs Squeeze(const Evaluation& e) {
  if (!e.Has(0)) return std::nullopt;
  const std::optional<Dims> axes = e.Axes();
  if (!axes.has_value()) return std::nullopt;
  const Dims& in = e.in(0).dims;
  std::vector<bool> drop(in.size(), axes->empty());
  for (int64_t axis : *axes) {
    const std::optional<int64_t> at = Axis(axis, std::ssize(in));
    if (!at.has_value() || in[*at] != 1) return std::nullopt;
    drop[*at] = true;
  }
  Dims dims;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!drop[i] || in[i] != 1) dims.push_back(in[i]);
  }
  return One(WithDims(e.in(0), std::move(dims)));
}

Outputs Unsqueeze(const Evaluation& e) {
  if (!e.Has(0)) return std::nullopt;
  const std::optional<Dims> axes = e.Axes();
  if (!axes.has_value()) return std::nullopt;
  const auto rank = static_cast<int64_t>(e.in(0).dims.size() + axes->size());
  std::vector<bool> added(rank);
  for (int64_t axis : *axes) {
    const std::optional<int64_t> at = Axis(axis, rank);
    if (!at.has_value() || added[*at]) return std::nullopt;
    added[*at] = true;
  }
  Dims dims;
  for (size_t i = 0, from = 0; i < added.size(); ++i) dims.push_back(added[i] ? 1 : e.in(0).dims[from++]);
  return One(WithDims(e.in(0), std::move(dims)));
}

Outputs Reshape(const Evaluation& e) {
  if (!e.Has(0) || !e.Has(1)) return std::nullopt;
  std::optional<Dims> dims = e.ConstantInts(1);
  const std::optional<int64_t> allow_zero = e.Int("allowzero", 0);
  if (!dims.has_value() || !allow_zero.has_value()) return std::nullopt;
  int64_t others = 1;
  size_t rest = dims->size();
  for (size_t i = 0; i < dims->size(); ++i) {
    int64_t& dim = (*dims)[i];
    if (dim == 0 && *allow_zero == 0) {
      if (i >= e.in(0).dims.size()) return std::nullopt;
      dim = e.in(0).dims[i];
    }
    if (dim == -1 && rest == dims->size()) {
      rest = i;
    } else if (dim < 0 || dim > kMaxElements || (others *= dim) > kMaxElements) {
      return std::nullopt;
    }
  }
  if (rest < dims->size()) {
    if (others == 0) return std::nullopt;
    (*dims)[rest] = std::ssize(e.in(0).elements) / others;
  }
  return One(WithDims(e.in(0), *std::move(dims)));
}

Outputs Flatten(const Evaluation& e) {
  const std::optional<int64_t> axis = e.Int("axis", 1);
  if (!e.Has(0) || !axis.has_value()) return std::nullopt;
  const Dims& in = e.in(0).dims;
  const auto rank = static_cast<int64_t>(in.size());
  const int64_t at = *axis < 0 ? *axis + rank : *axis;
  if (at < 0 || at > rank) return std::nullopt;
  Dims dims = {1, 1};
  for (int64_t i = 0; i < rank; ++i) dims[i < at ? 0 : 1] *= in[i];
  return One(WithDims(e.in(0), std::move(dims)));
}

Outputs Expand(const Evaluation& e) {
  const std::optional<Dims> shape = e.ConstantInts(1);
  if (!e.Has(0) || !shape.has_value() || !CountOf(*shape).has_value()) return std::nullopt;
  const std::optional<Dims> dims = Broadcast(e.in(0).dims, *shape);
  return dims.has_value() ? One(BroadcastTo(e.in(0), *dims)) : std::nullopt;
}

Outputs Tile(const Evaluation& e) {
  const std::optional<Dims> repeats = e.ConstantInts(1);
  if (!e.Has(0) || !repeats.has_value() || repeats->size() != e.in(0).dims.size()) return std::nullopt;
  const ShapeValue& x = e.in(0);
  Dims dims = x.dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    if ((*repeats)[i] < 0 || (*repeats)[i] > kMaxElements) return std::nullopt;
    dims[i] *= (*repeats)[i];
  }
  const Dims strides = StridesOf(x.dims);
  return One(Take(x, std::move(dims), [&](const Dims& index) {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i) at += index[i] % x.dims[i] * strides[i];
    return at;
  }));
}

Outputs Transpose(const Evaluation& e) {
  if (!e.Has(0)) return std::nullopt;
  const ShapeValue& x = e.in(0);
  std::optional<Dims> order = e.Ints("perm");
  if (!order.has_value()) return std::nullopt;
  if (!e.node().HasAttr("perm")) {
    order->resize(x.dims.size());
    std::iota(order->rbegin(), order->rend(), 0);
  }
  Dims sorted = *order;
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return std::nullopt;
  }
  if (sorted.size() != x.dims.size()) return std::nullopt;
  Dims dims;
  for (int64_t axis : *order) dims.push_back(x.dims[axis]);
  const Dims strides = StridesOf(x.dims);
  return One(Take(x, std::move(dims), [&](const Dims& index) {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i) at += index[i] * strides[(*order)[i]];
    return at;
  }));
}

// The lengths of the parts are an attribute until opset 12 and an input from 13 on; without them the parts are equal.
Outputs Split(const Evaluation& e) {
  const std::optional<int64_t> given = e.Int("axis", 0);
  if (!e.Has(0) || !given.has_value()) return std::nullopt;
  const ShapeValue& x = e.in(0);
  const std::optional<int64_t> axis = Axis(*given, std::ssize(x.dims));
  const size_t parts = e.node().node().outputs.size();
  if (!axis.has_value() || parts == 0 || parts > static_cast<size_t>(kMaxElements)) return std::nullopt;
  std::optional<Dims> lengths = e.node().HasInput(1) ? e.ConstantInts(1) : e.Ints("split");
  if (!lengths.has_value()) return std::nullopt;
  const int64_t size = x.dims[*axis];
  if (lengths->empty()) {
    const int64_t each = (size + static_cast<int64_t>(parts) - 1) / static_cast<int64_t>(parts);
    for (int64_t left = size; lengths->size() < parts; left -= lengths->back())
      lengths->push_back(std::min(each, left));
  }
  if (lengths->size() != parts) return std::nullopt;
  std::vector<ShapeValue> outputs;
  const Dims strides = StridesOf(x.dims);
  int64_t begin = 0;
  for (int64_t length : *lengths) {
    if (length < 0 || length > size - begin) return std::nullopt;
    Dims dims = x.dims;
    dims[*axis] = length;
    std::optional<ShapeValue> part = Take(x, std::move(dims), [&](const Dims& index) {
      int64_t at = begin * strides[*axis];
      for (size_t i = 0; i < index.size(); ++i) at += index[i] * strides[i];
      return at;
    });
    if (!part.has_value()) return std::nullopt;
    outputs.push_back(*std::move(part));
    begin += length;
  }
  if (begin != size) return std::nullopt;
  return outputs;
}

// ---- new values

Outputs ConstantOfShape(const Evaluation& e) {
  const std::optional<Dims> dims = e.ConstantInts(0);
  if (!dims.has_value()) return std::nullopt;
  const std::optional<int64_t> count = CountOf(*dims);
  if (!count.has_value()) return std::nullopt;
  ShapeValue out{DataType::Float(32), *dims, {}};
  PrimExpr value = ir::Int64(0);
  if (const OnnxAttribute* attribute = e.node().FindAttr("value")) {
    const auto* tensor = std::get_if<ConstantDataPtr>(&attribute->value);
    if (tensor == nullptr || (*tensor)->num_elements() != 1 || !IsSmallConstant(**tensor)) return std::nullopt;
    ShapeValue known = KnownConstant(**tensor);
    out.dtype = known.dtype;
    value = std::move(known.elements[0]);
  }
  if (out.dtype.is_floating()) return std::nullopt;  // data, not a shape
  out.elements.assign(static_cast<size_t>(*count), value);
  return One(std::move(out));
}

// The ends may be symbols if the number of elements is a constant.
Outputs Range(const Evaluation& e) {
  if (!e.Has(0) || !e.Has(1) || !e.Has(2) || !e.in(0).is_integer()) return std::nullopt;
  for (size_t i = 0; i < 3; ++i) {
    if (e.in(i).elements.size() != 1 || e.in(i).dtype != e.in(0).dtype) return std::nullopt;
  }
  const PrimExpr& start = e.in(0).elements[0];
  const auto step = ir::AsConstInt(e.in(2).elements[0]);
  if (!e.Fit(start, e.in(1).elements[0])) return std::nullopt;
  const PrimExpr distance = e.Simplify(e.in(1).elements[0] - start);
  const auto length = ir::AsConstInt(distance);
  if (!step || !length || *step == 0 || *step == std::numeric_limits<int64_t>::min() ||
      *length == std::numeric_limits<int64_t>::min()) {
    return std::nullopt;
  }
  const int64_t forwards = *step > 0 ? *length : -*length, stride = *step > 0 ? *step : -*step;
  const int64_t count = forwards <= 0 ? 0 : 1 + (forwards - 1) / stride;
  if (count > kMaxElements) return std::nullopt;
  ShapeValue out{e.in(0).dtype, {count}, {}};
  for (int64_t i = 0; i < count; ++i) {
    const Element element = e.Finish(out.dtype, start + i * *step);
    if (!element.has_value()) return std::nullopt;
    out.elements.push_back(*element);
  }
  return One(std::move(out));
}

constexpr Row kDataMovementRows[] = {
    {"Concat", Concat},       {"ConstantOfShape", ConstantOfShape},
    {"Expand", Expand},       {"Flatten", Flatten},
    {"Gather", Gather},       {"Range", Range},
    {"Reshape", Reshape},     {"Shape", Shape, true},
    {"Size", Size, true},     {"Slice", Slice},
    {"Split", Split},         {"Squeeze", Squeeze},
    {"Tile", Tile},           {"Transpose", Transpose},
    {"Unsqueeze", Unsqueeze},
};

}  // namespace

std::span<const Row> DataMovement() { return kDataMovementRows; }

}  // namespace ingot::importer::shapes
