// Types of graph values as types of the VM's registers, parameters and results, and the symbols of a signature. A dim
// is a formula over the signature's symbols; what no formula over them says is unknown to the VM, and compared when
// the program runs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/ir/expr.h"
#include "runtime/status.h"
#include "vm/type.h"

namespace ingot::lower {

// kUnsupportedModel with the place in the source, where it is known.
Status Unsupported(const ir::Span& span, const std::string& what);

// The variables that these parameters bind when they are called: lone dims of tensors and shapes, by first occurrence.
std::vector<ir::PrimVar> SignatureSymbols(std::span<const ir::Var> params);
// Unique names, and bounds as the function's attributes say.
std::vector<vm::Symbol> NameSymbols(std::span<const ir::PrimVar> symbols, const ir::Attrs& attrs);

// Variable i is symbol i; unknown when the dim mentions anything else.
vm::Dim TypeDim(const ir::PrimExpr& dim, std::span<const ir::PrimVar> symbols);
std::vector<vm::Dim> TypeDims(const std::vector<ir::PrimExpr>& dims, std::span<const ir::PrimVar> symbols);

// storage: of a tensor; those in tuples are owned. Functions become closures, whose types know constant dims alone.
Result<vm::Type> LowerType(const ir::Type& type, std::span<const ir::PrimVar> symbols, vm::Storage storage,
                           const ir::Span& span);

// A tuple is returned field by field.
std::vector<ir::Type> ResultTypes(const ir::Type& type);

}  // namespace ingot::lower
