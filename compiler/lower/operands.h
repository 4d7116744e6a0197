// What instructions read: variables, constants, and small values such as shapes. Owns the values of the graph's
// variables.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/lower/program_lowering.h"
#include "compiler/lower/register_scope.h"
#include "compiler/lower/value.h"
#include "runtime/status.h"
#include "vm/program/program_builder.h"

namespace ingot::lower {

class Operands {
 public:
  Operands(const ProgramLowering& program, vm::FunctionBuilder& builder, RegisterScope& scope)
      : program_(program), builder_(builder), scope_(scope) {}

  // Sets the value of a variable, also of one that has a value already.
  void Bind(const ir::Var& var, Value value) { values_[var.get()] = std::move(value); }
  const Value& ValueOf(const ir::VarNode* var) const;

  // Lowers an operand or a result in normal form: neither a call nor a branch.
  Result<Value> Lower(const ir::Expr& expr);
  Result<vm::RegisterId> Register(const ir::Expr& expr);
  Result<std::vector<vm::RegisterId>> Registers(const std::vector<ir::Expr>& exprs);
  // Returns a bool register.
  Result<vm::RegisterId> Condition(const ir::Expr& expr);
  // Makes a closure of a function of the module over `captures`, which are its first parameters in bytecode.
  Result<Value> MakeClosure(const std::string& name, std::vector<vm::RegisterId> captures, const ir::Span& span);

 private:
  Result<Value> LowerPrimValue(const ir::PrimExpr& value);
  Result<Value> LowerField(const ir::TupleGetItemNode& item);

  const ProgramLowering& program_;
  vm::FunctionBuilder& builder_;
  RegisterScope& scope_;
  std::unordered_map<const ir::VarNode*, Value> values_;
};

}  // namespace ingot::lower
