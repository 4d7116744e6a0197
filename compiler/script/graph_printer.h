// GraphPrinter: graph functions and graph expressions as text.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/script/constant_store.h"
#include "compiler/script/prim_printer.h"
#include "compiler/script/printer.h"
#include "compiler/script/stmt_printer.h"

namespace ingot::script {

class GraphPrinter : public PrimPrinter {
 public:
  GraphPrinter(const PrintOptions& options, ConstantStore* store, int indent = 0)
      : PrimPrinter(Dialect::kGraph), options_(options), store_(store), lines_(indent) {}
  void Function(std::string_view name, const ir::FunctionNode& function);
  std::string Value(const ir::Expr& expr);
  std::string Take() { return lines_.Take(); }
  // The symbolic variables of the signature. Variables of the body are declared in the body.
  const std::vector<ir::PrimVar>& signature_symbols() const { return signature_symbols_; }

 private:
  void Signature(std::string_view name, const ir::FunctionNode& function);
  void ParamNames(const ir::FunctionNode& function);
  void NestedFunction(const ir::Var& var, const ir::FunctionNode& function);
  void Blocks(const ir::SeqExprNode& seq);
  void Binding(const ir::Binding& binding);
  void If(const ir::Binding& binding, const ir::IfNode& node);
  void Branch(const ir::SeqExprNode& seq, const std::string& name, const ir::Type& type);
  void Assign(const std::string& name, const std::string& annotation, const std::string& value, const ir::Span& span);
  std::string VarName(const ir::VarNode& var);
  std::string Call(const ir::CallNode& call);
  std::string OpCall(const ir::CallNode& call, const ir::OpNode& op);
  std::string OutTypes(const std::vector<ir::Type>& types);
  std::string Constant(const ir::ConstantNode& constant);
  std::string ValueTuple(const std::vector<ir::Expr>& fields);

  PrintOptions options_;
  ConstantStore* store_;
  TextLines lines_;
  std::vector<ir::PrimVar> signature_symbols_;
  bool uses_module_ = false;
};

}  // namespace ingot::script
