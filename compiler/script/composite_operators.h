// Operators of TVM's graph functions that are several operators here, or one with other attributes. In: the operator's
// name, its arguments as values and its attributes by name. Out: the value that is the result; values below it are
// bound by the caller. Operators that are not in the list are left to the operator table. composite_operators.cc has
// general ones, and the look-up; composite_arithmetic.cc, composite_indexing.cc, composite_training.cc and
// composite_vision.cc have one family each.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "compiler/ir/expr.h"
#include "runtime/status.h"

namespace ingot::script {

struct CompositeAttr {
  std::string_view name;
  ir::AttrValue value;  // the default; a given value must have its type, unless the default is None
  bool is_dtype = false;
};

// Binds a value to a variable and returns the variable.
using BindValue = std::function<ir::Expr(ir::Expr)>;
using CompositeArgs = std::vector<ir::Expr>;
using ComposeFn = Result<ir::Expr> (*)(const CompositeArgs& args, const ir::Attrs& attrs,
                                       const BindValue& bind);

struct CompositeOperator {
  std::string_view name;  // without "R."
  std::vector<std::string_view> args;
  std::vector<CompositeAttr> attrs;  // in TVM's order; `compose` gets a value for each
  ComposeFn compose;
  size_t num_optional = 0;  // the last arguments may be absent; then they are null
  // An operator of the table has this name, too: TVM's is known by this attribute, which it always states.
  std::string_view known_by = "";
};

// Returns null for an operator that is not composed.
const CompositeOperator* FindComposite(std::string_view name);

const std::vector<CompositeOperator>& ArithmeticComposites();
const std::vector<CompositeOperator>& IndexingComposites();
const std::vector<CompositeOperator>& TrainingComposites();
const std::vector<CompositeOperator>& VisionComposites();

}  // namespace ingot::script
