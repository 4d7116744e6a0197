// Structural equality and hash. Two trees are equal when they differ in nothing but names of variables and spans:
// bound variables correspond one to one in order of definition; free variables are equal only when they are the same
// node, unless map_free_vars lets them correspond too. Constants compare by content, buffers by definition.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/ir/expr.h"
#include "compiler/ir/module.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/type.h"

namespace ingot::ir {

bool StructuralEqual(const PrimExpr& a, const PrimExpr& b, bool map_free_vars = false);
bool StructuralEqual(const Stmt& a, const Stmt& b, bool map_free_vars = false);
bool StructuralEqual(const Type& a, const Type& b, bool map_free_vars = false);
bool StructuralEqual(const Expr& a, const Expr& b, bool map_free_vars = false);
bool StructuralEqual(const IRModule& a, const IRModule& b);
// The first place where two modules differ, as text ("main: binding lv3: ..."), empty when equal.
std::string ExplainDifference(const IRModule& a, const IRModule& b);

uint64_t StructuralHash(const PrimExpr& expr, bool map_free_vars = false);
uint64_t StructuralHash(const Stmt& stmt, bool map_free_vars = false);
uint64_t StructuralHash(const Type& type, bool map_free_vars = false);
uint64_t StructuralHash(const Expr& expr, bool map_free_vars = false);
// For tables within one process: free variables count by their identity, so that equal names do not collide.
uint64_t IdentityHash(const PrimExpr& expr);
// Version of the structural hash: part of tuning keys; it changes whenever equal inputs could hash differently from
// before.
inline constexpr int kStructuralHashVersion = 1;

}  // namespace ingot::ir
