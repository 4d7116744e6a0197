// What the evaluation of shape arithmetic (shape_values.h) uses: one node's known inputs, walks over small tensors of
// expressions element by element, and the two tables of operators, which shape_values.cc joins.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/importer/onnx_ops.h"
#include "compiler/importer/shape_conditions.h"
#include "compiler/importer/shape_values.h"

namespace ingot::importer::shapes {

using ir::PrimExpr;
using Outputs = std::optional<std::vector<ShapeValue>>;
using Dims = std::vector<int64_t>;
using Element = std::optional<PrimExpr>;  // of a result; nothing: unknown

constexpr int64_t kMaxElements = 1024;

bool IsConstant(const PrimExpr& expr);
// Returns nothing if there are too many elements, or a dimension is negative.
std::optional<int64_t> CountOf(const Dims& dims);
std::optional<int64_t> Axis(int64_t axis, int64_t rank);
Dims StridesOf(const Dims& dims);

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

// Returns a tensor of these dims whose element at each index is the element of x that `place` gives for that index.
template <typename Fn>
std::optional<ShapeValue> Take(const ShapeValue& x, Dims dims, const Fn& place) {
  if (!CountOf(dims).has_value()) return std::nullopt;
  ShapeValue out{x.dtype, std::move(dims), {}};
  ForEachIndex(out.dims, [&](const Dims& index) { out.elements.push_back(x.elements[place(index)]); });
  return out;
}

std::optional<Dims> Broadcast(const Dims& a, const Dims& b);
std::optional<ShapeValue> BroadcastTo(const ShapeValue& x, const Dims& dims);
// The value of a constant of a floating dtype, or of an integer that a double holds.
double NumberOf(const PrimExpr& constant);
// Returns a float of the dtype; an integral value becomes an integer, so that it can be combined with symbols. Integers
// are rounded once.
PrimExpr FloatOf(DataType dtype, double value);
PrimExpr FloatOfInteger(DataType dtype, int64_t value);

// One node that may be evaluated: its inputs (null if left out), and its attributes.
class Evaluation {
 public:
  // The conditions of the inputs, and those of the results, are added to `conditions`.
  Evaluation(const NodeImporter& node, arith::Analyzer& analyzer, Conditions& conditions);

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
  // Returns the constant integers of input i.
  std::optional<Dims> ConstantInts(size_t i) const {
    if (!Has(i) || !in(i).is_integer() || in(i).dims.size() > 1) return std::nullopt;
    Dims values;
    for (const PrimExpr& element : in(i).elements) {
      const auto value = ir::AsConstInt(element);
      if (!value) return std::nullopt;
      values.push_back(*value);
    }
    return values;
  }
  // Returns the axes of an operator that takes them as an attribute or as an input.
  std::optional<Dims> Axes() const { return num_inputs() > 1 && Has(1) ? ConstantInts(1) : Ints("axes"); }

  // Returns a result's element, simplified. Returns nothing if it is not known to be a number of the dtype, or is too
  // long.
  std::optional<PrimExpr> Finish(DataType dtype, PrimExpr element) const;
  bool ProveNonNegative(const PrimExpr& expr) const { return analyzer_.ProveLessEqual(ir::Int64(0), expr); }
  // Whether both stay within int64. Sums and products wrap around as those of tensors do; whatever compares or divides
  // asks first.
  bool Fit(const PrimExpr& x, const PrimExpr& y) const { return conditions_.Fits(x) && conditions_.Fits(y); }
  Conditions& conditions() const { return conditions_; }
  PrimExpr Simplify(const PrimExpr& expr) const { return analyzer_.Simplify(expr); }

 private:
  const NodeImporter& node_;
  arith::Analyzer& analyzer_;
  Conditions& conditions_;
  std::vector<std::optional<ShapeValue>> inputs_;
};

Outputs One(std::optional<ShapeValue> value);

struct Row {
  std::string_view op_type;
  Outputs (*evaluate)(const Evaluation& e);
  bool of_type = false;  // reads its first input's type, not its elements
};
// Both ordered by name.
std::span<const Row> Arithmetic();    // element by element, and reductions (shape_arithmetic.cc)
std::span<const Row> DataMovement();  // Shape and Size, moved elements, new values (shape_data_movement.cc)

}  // namespace ingot::importer::shapes
