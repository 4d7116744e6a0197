// Finds the result of "main" by its name and wraps its expression in one call of nn.softmax.
#include "compiler/driver/add_softmax.h"

#include <string_view>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/op/registry.h"
#include "runtime/suggest.h"

namespace ingot::driver {
namespace {

// The names of the results: those that the model gives, then those that lowering to bytecode would give.
std::vector<std::string> OutputNames(const ir::Function& function, size_t num_results) {
  std::vector<std::string> names;
  if (const ir::AttrValue* given = function->attrs.Find("output_names")) {
    for (const ir::AttrValue& name : *given->get<ir::AttrList>()) names.push_back(*name.get<std::string>());
  }
  for (size_t i = names.size(); i < num_results; ++i) {
    names.push_back(num_results == 1 ? "output" : "output_" + std::to_string(i));
  }
  return names;
}

}  // namespace

Result<ir::IRModule> AddSoftmax(ir::IRModule module, const std::string& output) {
  const ir::Function main_function = module.FindFunction("main");
  if (!main_function) return Status(StatusCode::kInvalidArgument, "--softmax: the module has no function \"main\"");
  const auto* tuple = ir::As<ir::TupleNode>(main_function->body->body);
  std::vector<ir::Expr> results = tuple != nullptr ? tuple->fields : std::vector<ir::Expr>{main_function->body->body};
  const std::vector<std::string> names = OutputNames(main_function, results.size());
  size_t at = 0;
  while (at < results.size() && names[at] != output) ++at;
  if (at == results.size()) {
    const std::vector<std::string_view> known(names.begin(), names.end());
    return Status(StatusCode::kNotFound,
                  "--softmax: there is no output \"" + output + "\"" + DidYouMean(output, known));
  }
  INGOT_ASSIGN_OR_RETURN(results[at], op::MakeCall("nn.softmax", {results[at]}));
  ir::SeqExprNode body = *main_function->body;
  body.body = tuple != nullptr ? ir::Expr(ir::Make<ir::TupleNode>(std::move(results), tuple->type)) : results[0];
  ir::FunctionNode changed = *main_function;
  changed.body = ir::Make<ir::SeqExprNode>(std::move(body));
  module.Set(module.FindGlobalVar("main"), ir::Make<ir::FunctionNode>(std::move(changed)));
  return module;
}

}  // namespace ingot::driver
