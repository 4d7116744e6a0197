// The module level of the printer: prints each function by the printer of its level, and then the head from what the
// functions used.
#include "compiler/script/printer.h"

#include <set>

#include "compiler/script/graph_printer.h"
#include "compiler/script/literals.h"
#include "compiler/script/stmt_printer.h"

namespace ingot::script {
namespace {

// What the functions require at the head of the text.
struct Head {
  std::set<std::string> declarations;  // n = TypeVar("n"), by name
  bool uses_graph_level = false, uses_tensor_level = false;

  void Declare(PrimPrinter& printer, const std::vector<ir::PrimVar>& symbols) {
    for (const ir::PrimVar& symbol : symbols) {
      const std::string& name = *printer.names().Find(symbol.get());
      const bool usual = symbol->dtype == DataType::Int(64);
      declarations.insert(name +
                          (usual ? " = TypeVar(" + Quote(name) + ")" : " = T." + symbol->dtype.ToString() + "()"));
    }
  }
  std::string Text(bool is_module) const {
    std::string text;
    if (!declarations.empty()) text += "# from typing import TypeVar\n";
    if (is_module) text += "# from tvm.script import ir as I\n";
    if (uses_tensor_level) text += "# from tvm.script import tirx as T\n";
    if (uses_graph_level) text += "# from tvm.script import relax as R\n";
    text += '\n';
    for (const std::string& line : declarations) text += line + '\n';
    return text;
  }
};

std::string FunctionText(std::string_view name, const ir::Expr& function, const PrintOptions& options,
                         ConstantStore* store, int indent, Head& head) {
  if (const auto* prim_func = ir::As<ir::PrimFuncNode>(function)) {
    StmtPrinter printer(indent);
    printer.Function(name, *prim_func);
    head.uses_tensor_level = true;
    head.Declare(printer, printer.symbols());
    return printer.Take();
  }
  const auto* graph_function = ir::As<ir::FunctionNode>(function);
  INGOT_CHECK(graph_function != nullptr, "a module holds functions alone");
  GraphPrinter printer(options, store, indent);
  printer.Function(name, *graph_function);
  head.uses_graph_level = true;
  head.Declare(printer, printer.signature_symbols());
  return printer.Take();
}

}  // namespace

std::string PrintModule(const ir::IRModule& module, const PrintOptions& options, ConstantStore* store) {
  Head head;
  std::string body = "@I.ir_module\nclass Module:\n";
  bool is_first = true;
  if (!module.attrs().empty()) {
    PrimPrinter printer(PrimPrinter::Dialect::kTensor);
    body += "    I.module_attrs(" + printer.Dict(module.attrs().items()) + ")\n";
    is_first = false;
  }
  for (const ir::IRModule::Entry& entry : module.functions()) {
    if (!is_first) body += '\n';
    is_first = false;
    body += FunctionText(entry.var->name, entry.function, options, store, 1, head);
  }
  if (is_first) body += "    pass\n";
  return head.Text(true) + body;
}

std::string PrintFunction(std::string_view name, const ir::Expr& function, const PrintOptions& options) {
  Head head;
  const std::string body = FunctionText(name, function, options, nullptr, 0, head);
  return head.Text(false) + body;
}

std::string PrintExpr(const ir::Expr& expr) { return GraphPrinter({}, nullptr).Value(expr); }
std::string PrintExpr(const ir::PrimExpr& expr) { return PrimPrinter(PrimPrinter::Dialect::kGraph).Expr(expr); }
std::string PrintStmt(const ir::Stmt& stmt) {
  StmtPrinter printer;
  printer.Suite(stmt);
  return printer.Take();
}
std::string PrintType(const ir::Type& type) { return PrimPrinter(PrimPrinter::Dialect::kGraph).Type(type); }
std::string PrintAttr(const ir::AttrValue& value) { return PrimPrinter(PrimPrinter::Dialect::kGraph).Attr(value); }

}  // namespace ingot::script
