// The printer: IR to text. One canonical form in TVM 0.27's TVMScript dialect; ParseModule (parser.h) reads it back to
// a structurally equal module. Constants of more than kMaxInlineElements elements go to a ConstantStore and are written
// in the text as metadata["HASH"].
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/module.h"
#include "compiler/script/constant_store.h"

namespace ingot::script {

struct PrintOptions {
  bool golden = false;  // values that change without a change of meaning (hashes) print as <hash>
  bool spans = false;   // names of source operations as trailing comments, so that the debug map survives the text
};

// Prints a module. Large constants are added to the store unless it is null.
std::string PrintModule(const ir::IRModule& module, const PrintOptions& options = {}, ConstantStore* store = nullptr);
// Prints one function of either level, with its decorator and the declarations that it needs.
std::string PrintFunction(std::string_view name, const ir::Expr& function, const PrintOptions& options = {});

// Prints fragments for messages; free variables are printed by their hints.
std::string PrintExpr(const ir::Expr& expr);
std::string PrintExpr(const ir::PrimExpr& expr);
std::string PrintStmt(const ir::Stmt& stmt);
std::string PrintType(const ir::Type& type);
std::string PrintAttr(const ir::AttrValue& value);

}  // namespace ingot::script
