// Small tensors whose elements follow from shapes: the Shape/Gather/Concat/Range/Where chains by which exported models
// compute the target of a Reshape or the length of a mask. Such a value is kept element by element, as expressions over
// the graph's symbols, beside (or instead of) the calls that would compute it at run time; so shapes stay symbolic at
// import, type inference sees them, and chains of constants are constants.
//   in:  a node whose inputs are known, with its attributes (NodeImporter);
//   out: the elements of its outputs, or nothing if they are not known: then the node is imported as any other, and
//        reports its own errors.
// A value that an operator needs as a tensor is materialised: as a constant, or as R.shape_to_tensor of its elements. One
// that is not exact is computed by tensor operators, too, and its elements are read as shapes alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/ir/expr.h"
#include "runtime/data_type.h"
#include "runtime/status.h"

namespace ingot::importer {

class NodeImporter;
class Symbols;

struct ShapeValue {
  DataType dtype;  // int32, int64, bool, float32 or float64
  std::vector<int64_t> dims;
  // Row-major. Integers are int64 expressions and truth values bool ones. Floats are FloatImm; those known to be
  // integral may be int64 expressions.
  std::vector<ir::PrimExpr> elements;
  // The tensor has these elements where all of these hold (shape_conditions.h), but for the sign of zeros, if it is lost.
  std::vector<ir::PrimExpr> conditions = {};
  bool loses_zero_sign = false;

  bool is_exact() const { return conditions.empty() && !loses_zero_sign; }
  bool is_integer() const { return dtype == DataType::Int(64) || dtype == DataType::Int(32); }
  bool is_constant() const;  // whether every element is a constant
  ir::Type Type() const;
};

// Returns the values of a node's outputs, or nothing if they are not known. The symbols' analyzer knows the bounds of the
// graph's symbols; a dim may get a bound, for an int32 of it.
std::optional<std::vector<ShapeValue>> EvaluateShapeValues(const NodeImporter& node, Symbols& symbols);

// Whether the operator can be evaluated if its inputs are known.
bool IsShapeOperator(std::string_view op_type);

// Whether a constant may be read element by element when a node asks: it is small, and of a dtype that a ShapeValue
// has.
bool IsSmallConstant(const ir::ConstantData& data);
ShapeValue KnownConstant(const ir::ConstantData& data);

// Returns an exact value as a tensor: a constant, or calls that are appended to bindings.
Result<ir::Expr> Materialise(const ShapeValue& value, std::vector<ir::Binding>& bindings, const ir::Span& span);

}  // namespace ingot::importer
