// Operators of TVM's graph functions that are several rows of the operator table here, or one with other words. What
// goes in: the operator's name, its arguments as values and its attributes by name; what comes out: the call that gives
// the result, values below it bound by the caller. Names that are not in this list are no concern of this file.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "compiler/ir/expr.h"
#include "runtime/status.h"

namespace ingot::script {

struct CompositeAttr {
  std::string_view name;
  ir::AttrValue value;  // where the text says none; another one has its type, where it is not None
  bool is_dtype = false;
};

// Binds a value to a variable.
using BindValue = std::function<ir::Expr(ir::Expr)>;
using ComposeFn = Result<ir::Call> (*)(const std::vector<ir::Expr>& args, const ir::Attrs& attrs,
                                       const BindValue& bind);

struct CompositeOperator {
  std::string_view name;  // without "R."
  std::vector<std::string_view> args;
  std::vector<CompositeAttr> attrs;  // in TVM's order, each of them set in what `compose` gets
  ComposeFn compose;
};

// Null for an operator that is not composed.
const CompositeOperator* FindComposite(std::string_view name);

}  // namespace ingot::script
