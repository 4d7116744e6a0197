// The printer: IR to text. One canonical form in TVM 0.27's TVMScript dialect; ParseModule (parser.h) reads it back to
// a structurally equal module. Constants of more than kMaxInlineElements elements go to a ConstantStore and stand in
// the text as metadata["HASH"].
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/module.h"
#include "compiler/script/constant_store.h"

namespace ingot::script {

struct PrintOptions {
  bool golden = false;  // hashes and the like, which change without a change of meaning, print as <hash>
  bool spans = false;   // names of source operations as trailing comments, so that the debug map survives the text
};

// Large constants are added to store unless it is null.
std::string PrintModule(const ir::IRModule& module, const PrintOptions& options = {}, ConstantStore* store = nullptr);
// One function of either level, with its decorator. A module of one function where nothing else is known.
std::string PrintFunction(std::string_view name, const ir::Expr& function, const PrintOptions& options = {});

// For messages: fragments, with their free variables by hint.
std::string PrintExpr(const ir::Expr& expr);
std::string PrintExpr(const ir::PrimExpr& expr);
std::string PrintStmt(const ir::Stmt& stmt);
std::string PrintType(const ir::Type& type);
std::string PrintAttr(const ir::AttrValue& value);

}  // namespace ingot::script
