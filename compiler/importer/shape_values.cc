#include "compiler/importer/shape_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>

#include "compiler/importer/onnx_ops.h"
#include "compiler/op/registry.h"
#include "runtime/small_float.h"

namespace ingot::importer {

using ir::PrimExpr;

namespace {

using Outputs = std::optional<std::vector<ShapeValue>>;
using Dims = std::vector<int64_t>;

constexpr int64_t kMaxElements = 1024;
// Of a value with symbols among its elements: each is a branch of the function that materialises it.
constexpr int64_t kMaxSymbolicElements = 64;
// Nodes of one expression: what fits into a file's dimension code.
constexpr int kMaxExprNodes = 60;

// Counts the nodes of an expression, up to a limit.
int CountNodes(const PrimExpr& expr, int limit) {
  if (limit <= 0) return 1;
  int count = 1;
  const auto add = [&](const PrimExpr& part) { count += CountNodes(part, limit - count); };
  if (const auto* binary = ir::As<ir::BinaryNode>(expr)) {
    add(binary->a);
    add(binary->b);
  } else if (const auto* select = ir::As<ir::SelectNode>(expr)) {
    add(select->condition);
    add(select->true_value);
    add(select->false_value);
  } else if (const auto* negated = ir::As<ir::NotNode>(expr)) {
    add(negated->a);
  } else if (const auto* cast = ir::As<ir::CastNode>(expr)) {
    add(cast->value);
  }
  return count;
}

bool IsConstant(const PrimExpr& expr) {
  return expr->kind == ir::PrimKind::kIntImm || expr->kind == ir::PrimKind::kFloatImm;
}

// Nothing when there are too many elements, or a dimension is negative.
std::optional<int64_t> CountOf(const Dims& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (dim < 0 || dim > kMaxElements) return std::nullopt;
    count *= dim;
    if (count > kMaxElements) return std::nullopt;
  }
  return count;
}

std::optional<int64_t> Axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

Dims StridesOf(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

// Calls fn(index) for every index in row-major order.
template <typename Fn>
void ForEachIndex(const Dims& dims, const Fn& fn) {
  if (std::ranges::find(dims, 0) != dims.end()) return;
  Dims index(dims.size(), 0);
  while (true) {
    fn(index);
    size_t axis = dims.size();
    while (axis > 0 && ++index[axis - 1] == dims[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

// The elements of x that `place` names for every index of a result of these dims.
template <typename Fn>
std::optional<ShapeValue> Take(const ShapeValue& x, Dims dims, const Fn& place) {
  if (!CountOf(dims).has_value()) return std::nullopt;
  ShapeValue out{x.dtype, std::move(dims), {}};
  ForEachIndex(out.dims, [&](const Dims& index) { out.elements.push_back(x.elements[place(index)]); });
  return out;
}

std::optional<Dims> Broadcast(const Dims& a, const Dims& b) {
  Dims out(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i + a.size() < out.size() ? 1 : a[i + a.size() - out.size()];
    const int64_t y = i + b.size() < out.size() ? 1 : b[i + b.size() - out.size()];
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[i] = x == 1 ? y : x;
  }
  return out;
}

std::optional<ShapeValue> BroadcastTo(const ShapeValue& x, const Dims& dims) {
  const Dims strides = StridesOf(x.dims);
  return Take(x, dims, [&](const Dims& index) {
    int64_t at = 0;
    for (size_t i = 0; i < x.dims.size(); ++i) {
      if (x.dims[i] != 1) at += index[i + index.size() - x.dims.size()] * strides[i];
    }
    return at;
  });
}

double NumberOf(const PrimExpr& constant) {
  if (const auto* number = ir::As<ir::FloatImmNode>(constant)) return number->value;
  return static_cast<double>(*ir::AsConstInt(constant));
}

// A float of the dtype; a whole number becomes an integer, so that it can meet symbols.
PrimExpr FloatOf(DataType dtype, double value) {
  if (dtype == DataType::Float(32)) value = static_cast<double>(static_cast<float>(value));
  constexpr double kExact = 9007199254740992.0;  // 2^53
  const bool is_whole = std::trunc(value) == value && std::abs(value) < kExact && !(value == 0 && std::signbit(value));
  return is_whole ? ir::Int64(static_cast<int64_t>(value)) : ir::FloatImm(dtype, value);
}

// One node that may be evaluated: its inputs (null where left out), and what its attributes say.
class Evaluation {
 public:
  Evaluation(const NodeImporter& node, arith::Analyzer& analyzer) : node_(node), analyzer_(analyzer) {
    for (size_t i = 0; i < node.num_inputs(); ++i) inputs_.push_back(node.Known(i));
  }

  size_t num_inputs() const { return inputs_.size(); }
  bool Has(size_t i) const { return i < inputs_.size() && inputs_[i].has_value(); }
  const ShapeValue& in(size_t i) const { return *inputs_[i]; }
  const NodeImporter& node() const { return node_; }

  std::optional<int64_t> Int(std::string_view name, int64_t default_value) const {
    const Result<int64_t> value = node_.Int(name, default_value);
    return value.ok() ? std::optional(*value) : std::nullopt;
  }
  std::optional<Dims> Ints(std::string_view name) const {
    Result<Dims> value = node_.Ints(name, {});
    return value.ok() ? std::optional(*std::move(value)) : std::nullopt;
  }
  // The constant integers of input i.
  std::optional<Dims> ConstantInts(size_t i) const {
    if (!Has(i) || !in(i).is_integer() || in(i).dims.size() > 1) return std::nullopt;
    Dims values;
    for (const PrimExpr& element : in(i).elements) {
      const int64_t* value = ir::AsConstInt(element);
      if (value == nullptr) return std::nullopt;
      values.push_back(*value);
    }
    return values;
  }
  // The axes of an operator that takes them as an attribute or as an input.
  std::optional<Dims> Axes() const { return num_inputs() > 1 && Has(1) ? ConstantInts(1) : Ints("axes"); }

  // A result's element: simplified, and within its dtype.
  std::optional<PrimExpr> Finish(DataType dtype, PrimExpr element) const {
    if (!IsConstant(element)) {
      element = analyzer_.Simplify(element);
      if (element->dtype.is_bool() && !IsConstant(element)) {
        if (analyzer_.Prove(element))
          element = ir::BoolImm(true);
        else if (analyzer_.Prove(ir::Not(element)))
          element = ir::BoolImm(false);
      }
    }
    const int64_t* value = ir::AsConstInt(element);
    if (dtype == DataType::Int(32) && value != nullptr &&
        (*value < std::numeric_limits<int32_t>::min() || *value > std::numeric_limits<int32_t>::max())) {
      return std::nullopt;
    }
    if (CountNodes(element, kMaxExprNodes) >= kMaxExprNodes) return std::nullopt;
    return element;
  }
  bool ProveNonNegative(const PrimExpr& expr) const { return analyzer_.ProveLessEqual(ir::Int64(0), expr); }
  PrimExpr Simplify(const PrimExpr& expr) const { return analyzer_.Simplify(expr); }

 private:
  const NodeImporter& node_;
  arith::Analyzer& analyzer_;
  std::vector<std::optional<ShapeValue>> inputs_;
};

Outputs One(std::optional<ShapeValue> value) {
  if (!value.has_value()) return std::nullopt;
  return std::vector<ShapeValue>{*std::move(value)};
}

// ---- element by element

using Element = std::optional<PrimExpr>;
// Floats are constant here, or whole numbers.
using UnaryFn = Element (*)(const Evaluation& e, DataType dtype, const PrimExpr& x);
using BinaryFn = Element (*)(const Evaluation& e, DataType dtype, const PrimExpr& x, const PrimExpr& y);

template <const auto& fn>
Outputs Unary(const Evaluation& e) {
  if (!e.Has(0)) return std::nullopt;
  ShapeValue out{e.in(0).dtype, e.in(0).dims, {}};
  for (const PrimExpr& x : e.in(0).elements) {
    Element element = fn(e, out.dtype, x);
    if (element.has_value()) element = e.Finish(out.dtype, *element);
    if (!element.has_value()) return std::nullopt;
    out.elements.push_back(*std::move(element));
  }
  return One(std::move(out));
}

std::optional<ShapeValue> ApplyBinary(const Evaluation& e, const BinaryFn& fn, const ShapeValue& a, const ShapeValue& b,
                                      std::optional<DataType> dtype = std::nullopt) {
  const std::optional<Dims> dims = Broadcast(a.dims, b.dims);
  if (!dims.has_value() || a.dtype != b.dtype) return std::nullopt;
  const std::optional<ShapeValue> x = BroadcastTo(a, *dims), y = BroadcastTo(b, *dims);
  if (!x.has_value() || !y.has_value()) return std::nullopt;
  ShapeValue out{dtype.value_or(a.dtype), *dims, {}};
  for (size_t i = 0; i < x->elements.size(); ++i) {
    Element element = fn(e, a.dtype, x->elements[i], y->elements[i]);
    if (element.has_value()) element = e.Finish(out.dtype, *element);
    if (!element.has_value()) return std::nullopt;
    out.elements.push_back(*std::move(element));
  }
  return out;
}

// One of two inputs, or a chain of several.
template <const auto& fn>
Outputs Arithmetic(const Evaluation& e) {
  if (!e.Has(0) || e.in(0).dtype.is_bool()) return std::nullopt;
  std::optional<ShapeValue> result = e.in(0);
  for (size_t i = 1; i < e.num_inputs() && result.has_value(); ++i) {
    if (!e.Has(i)) return std::nullopt;
    result = ApplyBinary(e, fn, *result, e.in(i));
  }
  return One(std::move(result));
}
template <const auto& fn>
Outputs Comparison(const Evaluation& e) {
  if (!e.Has(0) || !e.Has(1)) return std::nullopt;
  return One(ApplyBinary(e, fn, e.in(0), e.in(1), DataType::Bool()));
}

bool BothWhole(const PrimExpr& x, const PrimExpr& y) {
  return x->kind != ir::PrimKind::kFloatImm && y->kind != ir::PrimKind::kFloatImm;
}
bool BothConstant(const PrimExpr& x, const PrimExpr& y) { return IsConstant(x) && IsConstant(y); }

// Sums and products of whole numbers are whole; of floats they are rounded, so both must be constants.
template <ir::BinaryOp op>
Element Ring(const Evaluation&, DataType dtype, const PrimExpr& x, const PrimExpr& y) {
  if (dtype.is_floating() && BothConstant(x, y)) {
    const double a = NumberOf(x), b = NumberOf(y);
    return FloatOf(dtype, op == ir::BinaryOp::kAdd ? a + b : op == ir::BinaryOp::kSub ? a - b : a * b);
  }
  if (!BothWhole(x, y)) return std::nullopt;
  return ir::MakeBinary(op, x, y);
}
template <ir::BinaryOp op>
Element Extremum(const Evaluation&, DataType dtype, const PrimExpr& x, const PrimExpr& y) {
  if (BothWhole(x, y)) return op == ir::BinaryOp::kMin ? ir::Min(x, y) : ir::Max(x, y);
  if (!BothConstant(x, y)) return std::nullopt;
  const double a = NumberOf(x), b = NumberOf(y);
  if (std::isnan(a) || std::isnan(b)) return std::nullopt;
  return FloatOf(dtype, op == ir::BinaryOp::kMin ? std::min(a, b) : std::max(a, b));
}
// Integers round towards zero.
Element Divide(const Evaluation& e, DataType dtype, const PrimExpr& x, const PrimExpr& y) {
  if (dtype.is_floating() && BothConstant(x, y)) return FloatOf(dtype, NumberOf(x) / NumberOf(y));
  if (!BothWhole(x, y) || ir::IsConstInt(y, 0)) return std::nullopt;
  if (dtype.is_floating()) {  // exact, or not known
    if (!ir::IsConstInt(e.Simplify(ir::FloorMod(x, y)), 0)) return std::nullopt;
    return ir::FloorDiv(x, y);
  }
  if (BothConstant(x, y)) {
    const int64_t a = *ir::AsConstInt(x), b = *ir::AsConstInt(y);
    if (b == -1 && a == std::numeric_limits<int64_t>::min()) return std::nullopt;
    return ir::Int64(a / b);
  }
  if (!e.ProveNonNegative(x) || !e.ProveNonNegative(y)) return std::nullopt;
  return ir::FloorDiv(x, y);
}
Element Modulo(const Evaluation& e, DataType dtype, const PrimExpr& x, const PrimExpr& y) {
  if (dtype.is_floating() || ir::IsConstInt(y, 0)) return std::nullopt;
  const std::optional<int64_t> fmod = e.Int("fmod", 0);
  if (fmod != 0 && (!e.ProveNonNegative(x) || !e.ProveNonNegative(y))) return std::nullopt;
  if (ir::IsConstInt(y, -1)) return ir::Int64(0);
  return ir::FloorMod(x, y);
}
Element Power(const Evaluation&, DataType dtype, const PrimExpr& x, const PrimExpr& y) {
  if (!dtype.is_floating() || !BothConstant(x, y)) return std::nullopt;
  return FloatOf(dtype, std::pow(NumberOf(x), NumberOf(y)));
}
template <ir::BinaryOp op>
Element Compare(const Evaluation&, DataType dtype, const PrimExpr& x, const PrimExpr& y) {
  if (dtype.is_bool() && op != ir::BinaryOp::kEQ) return std::nullopt;
  if (BothWhole(x, y) && x->dtype == y->dtype) return ir::MakeBinary(op, x, y);
  if (!BothConstant(x, y)) return std::nullopt;
  const double a = NumberOf(x), b = NumberOf(y);
  const bool less = a < b, equal = a == b;
  if (op == ir::BinaryOp::kEQ) return ir::BoolImm(equal);
  if (op == ir::BinaryOp::kLT || op == ir::BinaryOp::kLE)
    return ir::BoolImm(less || (op == ir::BinaryOp::kLE && equal));
  return ir::BoolImm(a > b || (op == ir::BinaryOp::kGE && equal));
}
enum class Gate { kAnd, kOr, kXor };
template <Gate gate>
Element Logic(const Evaluation&, DataType dtype, const PrimExpr& x, const PrimExpr& y) {
  if (!dtype.is_bool()) return std::nullopt;
  if (gate == Gate::kXor) return ir::NotEqual(x, y);
  return gate == Gate::kAnd ? ir::And(x, y) : ir::Or(x, y);
}

Element Negate(const Evaluation&, DataType dtype, const PrimExpr& x) {
  if (dtype.is_bool()) return std::nullopt;
  if (dtype.is_floating() && IsConstant(x)) return FloatOf(dtype, -NumberOf(x));  // of 0 too: -0
  return ir::Int64(0) - x;
}
Element Absolute(const Evaluation& e, DataType dtype, const PrimExpr& x) {
  if (dtype.is_bool()) return std::nullopt;
  if (x->kind == ir::PrimKind::kFloatImm) return FloatOf(dtype, std::abs(NumberOf(x)));
  if (e.ProveNonNegative(x)) return x;
  return ir::Max(x, ir::Int64(0) - x);
}
Element Invert(const Evaluation&, DataType dtype, const PrimExpr& x) {
  if (!dtype.is_bool()) return std::nullopt;
  return ir::Not(x);
}
// Whole numbers stay as they are; others must be constants.
template <double (*round)(double)>
Element Round(const Evaluation&, DataType dtype, const PrimExpr& x) {
  if (!dtype.is_floating()) return std::nullopt;
  return x->kind == ir::PrimKind::kFloatImm ? FloatOf(dtype, round(NumberOf(x))) : x;
}
double FloorOf(double x) { return std::floor(x); }
double CeilOf(double x) { return std::ceil(x); }
double RoundOf(double x) { return std::nearbyint(x); }
Element SquareRoot(const Evaluation&, DataType dtype, const PrimExpr& x) {
  if (!dtype.is_floating() || !IsConstant(x)) return std::nullopt;
  return FloatOf(dtype, std::sqrt(NumberOf(x)));
}
Element Reciprocal(const Evaluation&, DataType dtype, const PrimExpr& x) {
  if (!dtype.is_floating() || !IsConstant(x)) return std::nullopt;
  return FloatOf(dtype, 1 / NumberOf(x));
}

constexpr UnaryFn kNegate = Negate, kAbsolute = Absolute, kInvert = Invert, kFloor = Round<FloorOf>,
                  kCeil = Round<CeilOf>, kRound = Round<RoundOf>, kSquareRoot = SquareRoot, kReciprocal = Reciprocal;
constexpr BinaryFn kAdd = Ring<ir::BinaryOp::kAdd>, kSubtract = Ring<ir::BinaryOp::kSub>,
                   kMultiply = Ring<ir::BinaryOp::kMul>, kMinimum = Extremum<ir::BinaryOp::kMin>,
                   kMaximum = Extremum<ir::BinaryOp::kMax>, kDivide = Divide, kModulo = Modulo, kPower = Power,
                   kEqual = Compare<ir::BinaryOp::kEQ>, kLess = Compare<ir::BinaryOp::kLT>,
                   kLessEqual = Compare<ir::BinaryOp::kLE>, kGreater = Compare<ir::BinaryOp::kGT>,
                   kGreaterEqual = Compare<ir::BinaryOp::kGE>, kAnd = Logic<Gate::kAnd>, kOr = Logic<Gate::kOr>,
                   kXor = Logic<Gate::kXor>;

Outputs Identity(const Evaluation& e) {
  if (!e.Has(0)) return std::nullopt;
  return One(e.in(0));
}

Outputs Cast(const Evaluation& e) {
  const std::optional<int64_t> to = e.Int("to", 0);
  if (!e.Has(0) || !to.has_value()) return std::nullopt;
  const Result<DataType> dtype = OnnxDataType(*to);
  if (!dtype.ok()) return std::nullopt;
  ShapeValue out{*dtype, e.in(0).dims, {}};
  for (const PrimExpr& x : e.in(0).elements) {
    PrimExpr element = x;
    if (dtype->is_bool()) {
      if (!x->dtype.is_bool()) {
        element = x->kind == ir::PrimKind::kFloatImm ? ir::BoolImm(NumberOf(x) != 0) : ir::NotEqual(x, ir::Int64(0));
      }
    } else if (x->dtype.is_bool()) {
      element = IsConstant(x) ? ir::Int64(*ir::AsConstInt(x)) : ir::Select(x, ir::Int64(1), ir::Int64(0));
    } else if (x->kind == ir::PrimKind::kFloatImm) {
      if (dtype->is_floating()) {
        element = FloatOf(*dtype, NumberOf(x));
      } else {
        const double value = std::trunc(NumberOf(x));
        if (!(std::abs(value) < 9e18)) return std::nullopt;
        element = ir::Int64(static_cast<int64_t>(value));
      }
    } else if (dtype->is_floating() && IsConstant(x)) {
      element = FloatOf(*dtype, NumberOf(x));
    }
    const Element finished = e.Finish(*dtype, std::move(element));
    if (!finished.has_value()) return std::nullopt;
    out.elements.push_back(*finished);
  }
  return One(std::move(out));
}

Outputs Where(const Evaluation& e) {
  if (!e.Has(0) || !e.Has(1) || !e.Has(2) || !e.in(0).dtype.is_bool() || e.in(1).dtype != e.in(2).dtype) {
    return std::nullopt;
  }
  const std::optional<Dims> values = Broadcast(e.in(1).dims, e.in(2).dims);
  const std::optional<Dims> dims = values.has_value() ? Broadcast(*values, e.in(0).dims) : std::nullopt;
  if (!dims.has_value()) return std::nullopt;
  const std::optional<ShapeValue> c = BroadcastTo(e.in(0), *dims), x = BroadcastTo(e.in(1), *dims),
                                  y = BroadcastTo(e.in(2), *dims);
  if (!c.has_value() || !x.has_value() || !y.has_value()) return std::nullopt;
  ShapeValue out{e.in(1).dtype, *dims, {}};
  for (size_t i = 0; i < c->elements.size(); ++i) {
    const PrimExpr &condition = c->elements[i], &a = x->elements[i], &b = y->elements[i];
    if (const int64_t* chosen = ir::AsConstInt(condition)) {
      out.elements.push_back(*chosen != 0 ? a : b);
      continue;
    }
    if (!BothWhole(a, b)) return std::nullopt;
    const Element element = e.Finish(out.dtype, ir::Select(condition, a, b));
    if (!element.has_value()) return std::nullopt;
    out.elements.push_back(*element);
  }
  return One(std::move(out));
}

// ---- from types

std::optional<std::vector<PrimExpr>> DimsOfInput(const Evaluation& e) {
  const auto* type = ir::As<ir::TensorTypeNode>(e.node().TypeOf(0));
  if (type == nullptr) return std::nullopt;
  return type->dims;
}

// From opset 15 on a part of the shape.
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

// ---- the same elements elsewhere

Outputs Gather(const Evaluation& e) {
  const std::optional<int64_t> given = e.Int("axis", 0);
  if (!e.Has(0) || !e.Has(1) || !e.in(1).is_integer() || !given.has_value()) return std::nullopt;
  const ShapeValue& x = e.in(0);
  const std::optional<int64_t> axis = Axis(*given, std::ssize(x.dims));
  if (!axis.has_value()) return std::nullopt;
  Dims places;
  for (const PrimExpr& element : e.in(1).elements) {
    const int64_t* value = ir::AsConstInt(element);
    const std::optional<int64_t> place = value != nullptr ? Axis(*value, x.dims[*axis]) : std::nullopt;
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
    const int64_t first = bound((*starts)[i]), last = bound((*ends)[i]);
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
  // Row-major: for each place before the axis, the rest of every input.
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

// ---- made from nothing

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

// The ends may be symbols as long as the number of elements is none.
Outputs Range(const Evaluation& e) {
  if (!e.Has(0) || !e.Has(1) || !e.Has(2) || !e.in(0).is_integer()) return std::nullopt;
  for (size_t i = 0; i < 3; ++i) {
    if (e.in(i).elements.size() != 1 || e.in(i).dtype != e.in(0).dtype) return std::nullopt;
  }
  const PrimExpr& start = e.in(0).elements[0];
  const int64_t* step = ir::AsConstInt(e.in(2).elements[0]);
  const PrimExpr distance = e.Simplify(e.in(1).elements[0] - start);
  const int64_t* length = ir::AsConstInt(distance);
  if (step == nullptr || length == nullptr || *step == 0 || *step == std::numeric_limits<int64_t>::min() ||
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

// ---- reductions of integers

template <const auto& fn>
Outputs Reduce(const Evaluation& e) {
  const std::optional<int64_t> keep = e.Int("keepdims", 1), noop = e.Int("noop_with_empty_axes", 0);
  const std::optional<Dims> axes = e.Axes();
  if (!e.Has(0) || !e.in(0).is_integer() || !axes.has_value() || !keep.has_value() || !noop.has_value()) {
    return std::nullopt;
  }
  const ShapeValue& x = e.in(0);
  std::vector<bool> reduced(x.dims.size(), axes->empty() && *noop == 0);
  for (int64_t axis : *axes) {
    const std::optional<int64_t> at = Axis(axis, std::ssize(x.dims));
    if (!at.has_value()) return std::nullopt;
    reduced[*at] = true;
  }
  Dims kept = x.dims, dims;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (reduced[i]) kept[i] = 1;
    if (!reduced[i] || *keep != 0) dims.push_back(kept[i]);
  }
  if (x.elements.empty()) return std::nullopt;
  const Dims strides = StridesOf(kept);
  ShapeValue out{x.dtype, std::move(dims), {}};
  out.elements.resize(*CountOf(kept));
  size_t next = 0;
  bool known = true;
  ForEachIndex(x.dims, [&](const Dims& index) {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i) at += reduced[i] ? 0 : index[i] * strides[i];
    const PrimExpr& element = x.elements[next++];
    PrimExpr& sum = out.elements[at];
    if (sum == nullptr) {
      sum = element;
      return;
    }
    Element combined = fn(e, x.dtype, sum, element);
    if (combined.has_value()) combined = e.Finish(x.dtype, *combined);
    known &= combined.has_value();
    if (combined.has_value()) sum = *combined;
  });
  return known ? One(std::move(out)) : std::nullopt;
}

struct Row {
  std::string_view op_type;
  Outputs (*evaluate)(const Evaluation& e);
  bool of_type = false;  // looks at its first input's type, not at its elements
};
constexpr Row kRows[] = {
    {"Abs", Unary<kAbsolute>},
    {"Add", Arithmetic<kAdd>},
    {"And", Comparison<kAnd>},
    {"Cast", Cast},
    {"Ceil", Unary<kCeil>},
    {"Concat", Concat},
    {"ConstantOfShape", ConstantOfShape},
    {"Div", Arithmetic<kDivide>},
    {"Equal", Comparison<kEqual>},
    {"Expand", Expand},
    {"Flatten", Flatten},
    {"Floor", Unary<kFloor>},
    {"Gather", Gather},
    {"Greater", Comparison<kGreater>},
    {"GreaterOrEqual", Comparison<kGreaterEqual>},
    {"Identity", Identity},
    {"Less", Comparison<kLess>},
    {"LessOrEqual", Comparison<kLessEqual>},
    {"Max", Arithmetic<kMaximum>},
    {"Min", Arithmetic<kMinimum>},
    {"Mod", Arithmetic<kModulo>},
    {"Mul", Arithmetic<kMultiply>},
    {"Neg", Unary<kNegate>},
    {"Not", Unary<kInvert>},
    {"Or", Comparison<kOr>},
    {"Pow", Arithmetic<kPower>},
    {"Range", Range},
    {"Reciprocal", Unary<kReciprocal>},
    {"ReduceMax", Reduce<kMaximum>},
    {"ReduceMin", Reduce<kMinimum>},
    {"ReduceProd", Reduce<kMultiply>},
    {"ReduceSum", Reduce<kAdd>},
    {"Reshape", Reshape},
    {"Round", Unary<kRound>},
    {"Shape", Shape, true},
    {"Size", Size, true},
    {"Slice", Slice},
    {"Split", Split},
    {"Sqrt", Unary<kSquareRoot>},
    {"Squeeze", Squeeze},
    {"Sub", Arithmetic<kSubtract>},
    {"Sum", Arithmetic<kAdd>},
    {"Tile", Tile},
    {"Transpose", Transpose},
    {"Unsqueeze", Unsqueeze},
    {"Where", Where},
    {"Xor", Comparison<kXor>},
};

// What arithmetic is done on; other dtypes are only read.
bool IsKept(DataType t) {
  return t == DataType::Int(64) || t == DataType::Int(32) || t.is_bool() || t == DataType::Float(32) ||
         t == DataType::Float(64);
}
// Whether a result may be kept: small, and without symbols where no input has any (the arithmetic overflowed).
bool IsKept(const ShapeValue& value, bool symbols) {
  if (!IsKept(value.dtype)) return false;
  if (value.is_constant()) return true;
  return symbols && std::ssize(value.elements) <= kMaxSymbolicElements;
}

// The elements of a constant as bytes of its dtype.
template <typename T>
void Store(const std::vector<PrimExpr>& elements, std::vector<std::byte>& bytes) {
  bytes.resize(elements.size() * sizeof(T));
  for (size_t i = 0; i < elements.size(); ++i) {
    const int64_t* integer = ir::AsConstInt(elements[i]);
    const T value = integer != nullptr ? static_cast<T>(*integer) : static_cast<T>(NumberOf(elements[i]));
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

template <typename T>
T Load(const ir::ConstantData& data, size_t i) {
  T value;
  std::memcpy(&value, data.bytes().data() + i * sizeof(T), sizeof(T));
  return value;
}
PrimExpr LoadElement(const ir::ConstantData& data, size_t i) {
  const DataType t = data.dtype();
  if (t.is_bool()) return ir::BoolImm(Load<uint8_t>(data, i) != 0);
  if (t == DataType::Int(64) || t == DataType::UInt(64)) return ir::Int64(Load<int64_t>(data, i));
  if (t == DataType::Int(32)) return ir::Int64(Load<int32_t>(data, i));
  if (t == DataType::UInt(32)) return ir::Int64(Load<uint32_t>(data, i));
  if (t == DataType::Int(16)) return ir::Int64(Load<int16_t>(data, i));
  if (t == DataType::UInt(16)) return ir::Int64(Load<uint16_t>(data, i));
  if (t == DataType::Int(8)) return ir::Int64(Load<int8_t>(data, i));
  if (t == DataType::UInt(8)) return ir::Int64(Load<uint8_t>(data, i));
  if (t == DataType::Float(64)) return FloatOf(t, Load<double>(data, i));
  if (t == DataType::Float(32)) return FloatOf(t, static_cast<double>(Load<float>(data, i)));
  return FloatOf(t, DecodeFloat(t, Load<uint16_t>(data, i)));
}

}  // namespace

bool ShapeValue::is_constant() const { return std::ranges::all_of(elements, IsConstant); }

ir::Type ShapeValue::Type() const {
  std::vector<PrimExpr> exprs;
  for (int64_t dim : dims) exprs.push_back(ir::Int64(dim));
  return ir::Make<ir::TensorTypeNode>(std::move(exprs), dtype);
}

bool IsSmallConstant(const ir::ConstantData& data) {
  const DataType t = data.dtype();
  const bool is_word = t.is_scalar() && (t.bits == 8 || t.bits == 16 || t.bits == 32 || t.bits == 64);
  const bool is_readable = t.is_bool() || (is_word && (t.is_integral() || (t.is_floating() && t.bits >= 16)));
  return is_readable && data.num_elements() <= kMaxElements;
}

ShapeValue KnownConstant(const ir::ConstantData& data) {
  ShapeValue value{data.dtype(), data.dims(), {}};
  for (size_t i = 0; i < static_cast<size_t>(data.num_elements()); ++i) value.elements.push_back(LoadElement(data, i));
  return value;
}

std::optional<std::vector<ShapeValue>> EvaluateShapeValues(const NodeImporter& node, arith::Analyzer& analyzer) {
  const auto* row = std::ranges::lower_bound(kRows, std::string_view(node.node().op_type), {}, &Row::op_type);
  if (row == std::end(kRows) || row->op_type != node.node().op_type) return std::nullopt;
  // Arithmetic on float constants is data, not shapes: an integer or a truth value must take part.
  bool from_shapes = row->of_type, symbols = row->of_type;
  for (size_t i = 0; i < node.num_inputs() && !row->of_type; ++i) {
    if (!node.HasInput(i)) continue;
    if (!node.MayBeKnown(i)) return std::nullopt;
    const auto* type = ir::As<ir::TensorTypeNode>(node.TypeOf(i));
    if (type == nullptr || !type->dtype.has_value() || !IsKept(*type->dtype)) return std::nullopt;
    from_shapes |= node.IsFromShapes(i) || !type->dtype->is_floating();
    symbols |= node.IsFromShapes(i);
  }
  if (!from_shapes) return std::nullopt;
  Outputs outputs = row->evaluate(Evaluation(node, analyzer));
  if (!outputs.has_value()) return std::nullopt;
  for (const ShapeValue& output : *outputs) {
    if (!IsKept(output, symbols)) return std::nullopt;
  }
  return outputs;
}

Result<ir::Expr> Materialise(const ShapeValue& value, std::vector<ir::Binding>& bindings, const ir::Span& span) {
  if (value.is_constant()) {
    std::vector<std::byte> bytes;
    if (value.dtype == DataType::Int(64)) Store<int64_t>(value.elements, bytes);
    if (value.dtype == DataType::Int(32)) Store<int32_t>(value.elements, bytes);
    if (value.dtype.is_bool()) Store<uint8_t>(value.elements, bytes);
    if (value.dtype == DataType::Float(32)) Store<float>(value.elements, bytes);
    if (value.dtype == DataType::Float(64)) Store<double>(value.elements, bytes);
    return ir::Expr(ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(value.dtype, value.dims, std::move(bytes))));
  }
  std::vector<PrimExpr> elements;
  for (const PrimExpr& element : value.elements) {
    if (element->kind == ir::PrimKind::kFloatImm) {
      return Status(StatusCode::kUnsupportedModel, "a tensor of dimensions and fractions");
    }
    elements.push_back(element->dtype.is_bool() ? ir::Select(element, ir::Int64(1), ir::Int64(0)) : element);
  }
  ir::Expr result;
  const auto bind = [&](std::string_view row, std::vector<ir::Expr> args, ir::Attrs attrs) -> Status {
    INGOT_ASSIGN_OR_RETURN(const ir::Call call, op::MakeCall(row, std::move(args), std::move(attrs)));
    ir::CallNode with_span = *call;
    with_span.span = span;
    const ir::Var var = ir::Make<ir::VarNode>(std::string(row), call->type, /*dataflow=*/true);
    bindings.push_back({var, ir::Make<ir::CallNode>(std::move(with_span)), nullptr, span});
    result = var;
    return Status();
  };
  const ir::Expr shape = ir::Make<ir::ShapeExprNode>(std::move(elements));
  INGOT_RETURN_IF_ERROR(bind("shape_to_tensor", {shape}, {}));
  if (value.dims.size() != 1) {
    std::vector<PrimExpr> dims;
    for (int64_t dim : value.dims) dims.push_back(ir::Int64(dim));
    INGOT_RETURN_IF_ERROR(bind("reshape", {result, ir::Make<ir::ShapeExprNode>(std::move(dims))}, {}));
  }
  if (value.dtype != DataType::Int(64)) INGOT_RETURN_IF_ERROR(bind("astype", {result}, {{"dtype", value.dtype}}));
  return result;
}

}  // namespace ingot::importer
