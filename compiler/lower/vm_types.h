// Converts types of graph values to types of the VM's registers, parameters and results. A dim is a formula over the
// signature's symbols; a dim that has no such formula is unknown to the VM and is compared when the program runs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/ir/expr.h"
#include "runtime/status.h"
#include "vm/program/type.h"

namespace ingot::lower {

// Returns kUnsupportedModel with the place in the source, if it is known.
Status Unsupported(const ir::Span& span, const std::string& what);

// Gives symbols unique names, and bounds from the function's attributes.
std::vector<vm::Symbol> NameSymbols(std::span<const ir::PrimVar> symbols, const ir::Attrs& attrs);

// The dim as a formula in which variable i is symbol i; unknown if the dim mentions anything else.
vm::Dim TypeDim(const ir::PrimExpr& dim, std::span<const ir::PrimVar> symbols);
std::vector<vm::Dim> TypeDims(const std::vector<ir::PrimExpr>& dims, std::span<const ir::PrimVar> symbols);

// storage: of a tensor; tensors in tuples are owned. Functions become closures, whose types know constant dims alone.
// Errors: kUnsupportedModel for a scalar type that the VM lacks, or a value without a type.
Result<vm::Type> LowerType(const ir::Type& type, std::span<const ir::PrimVar> symbols, vm::Storage storage,
                           const ir::Span& span);

// The types of the results: a tuple is returned field by field.
std::vector<ir::Type> ResultTypes(const ir::Type& type);

}  // namespace ingot::lower
