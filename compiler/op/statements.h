// Helpers with which definitions made of statements are written (BuildFromStatements): loops, one block around what
// they hold, loads, stores and named values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/op/infer.h"

namespace ingot::op {

using ir::Buffer;
using ir::PrimExpr;
using ir::Stmt;
using Places = std::vector<PrimExpr>;

// The same zero-based loops as a nest around a block with one spatial variable each: iterations may run in any order.
// `local` are buffers that every iteration has for itself; those of scope "local" have a constant shape.
Stmt SpatialNest(const std::string& name, const Dims& dims, const std::function<Stmt(const Places&)>& body,
                 std::vector<Buffer> local = {});
// Loops in order, without a block: for the body of one.
Stmt Loops(const Dims& dims, const std::function<Stmt(const Places&)>& body);
Stmt Loop(const PrimExpr& extent, const std::function<Stmt(const PrimExpr&)>& body);
Stmt While(PrimExpr condition, Stmt body);
Stmt If(PrimExpr condition, Stmt then_case);
// body(value) with the value under a name, computed once.
Stmt Let(const std::string& name, PrimExpr value, const std::function<Stmt(const PrimExpr&)>& body);
Stmt Assert(PrimExpr condition, std::string message, Stmt body);
// Whether x is NaN, which integers never are.
PrimExpr IsNan(const PrimExpr& x);
// ComparesLess is the dtype's own comparison, false where one side is NaN; IsLess is the order of sorting, in which NaN
// is the greatest.
PrimExpr ComparesLess(const PrimExpr& a, const PrimExpr& b);
PrimExpr IsLess(const PrimExpr& a, const PrimExpr& b);
PrimExpr Load(const Buffer& buffer, Places places);
Stmt Store(const Buffer& buffer, PrimExpr value, Places places);

}  // namespace ingot::op
