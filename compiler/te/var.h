// Symbolic variables of tensor expressions: dimensions, and (as CreatePrimFunc's scalars) numbers given to a function.
#pragma once

#include <string>
#include <utility>

#include "compiler/ir/prim_expr.h"

namespace ingot::te {

inline ir::PrimVar Var(std::string name, DataType dtype = DataType::Int(64)) {
  return ir::MakePrimVar(std::move(name), dtype);
}

}  // namespace ingot::te
