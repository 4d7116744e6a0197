// Operators of the table applied to tensors: a call over variables is made for type inference and attributes, and the
// definition of its cheapest implementation is applied to the tensors.
#include "compiler/op/topi/topi.h"

#include "compiler/op/build.h"

namespace ingot::op::topi {

namespace {

// Variables that stand for tensors in a call, with the tensors.
struct Operands {
  std::vector<te::Tensor> tensors;

  ir::Expr Add(const te::Tensor& tensor) {
    tensors.push_back(tensor);
    return ir::Make<ir::VarNode>(tensor->name, ir::Make<ir::TensorTypeNode>(tensor->shape, tensor->dtype));
  }
  ir::Expr Add(const Argument& argument) {
    if (const auto* tensor = std::get_if<te::Tensor>(&argument)) return Add(*tensor);
    if (const auto* other = std::get_if<ir::Expr>(&argument)) return *other;
    std::vector<ir::Expr> fields;
    std::vector<ir::Type> types;
    for (const te::Tensor& tensor : std::get<std::vector<te::Tensor>>(argument)) {
      fields.push_back(Add(tensor));
      types.push_back(fields.back()->type);
    }
    return ir::Make<ir::TupleNode>(std::move(fields), ir::Make<ir::TupleTypeNode>(std::move(types)));
  }
};

}  // namespace

Result<std::vector<te::Tensor>> ApplyMany(std::string_view name, const std::vector<Argument>& arguments,
                                          ir::Attrs attrs) {
  Operands operands;
  std::vector<ir::Expr> args;
  for (const Argument& argument : arguments) args.push_back(operands.Add(argument));
  INGOT_ASSIGN_OR_RETURN(const ir::Call call, MakeCall(name, std::move(args), std::move(attrs)));
  // Definitions do not depend on the target, so the cheapest one that applies for a default target is taken.
  const Implementation* best = CheapestImplementation(call, Target(), /*of_tensors=*/true);
  if (best == nullptr) {
    return Status(StatusCode::kUnsupportedModel,
                  "operator " + std::string(name) + " has no definition as a tensor expression for these arguments");
  }
  INGOT_ASSIGN_OR_RETURN(const TeArgs te_args, TeArgs::Over(call, std::move(operands.tensors)));
  return best->build.tensors(te_args);
}

Result<te::Tensor> Apply(std::string_view name, const std::vector<Argument>& arguments, ir::Attrs attrs) {
  INGOT_ASSIGN_OR_RETURN(std::vector<te::Tensor> results, ApplyMany(name, arguments, std::move(attrs)));
  if (results.size() == 1) return std::move(results[0]);
  return Status(StatusCode::kInvalidArgument,
                "operator " + std::string(name) + " has " + std::to_string(results.size()) + " results: use ApplyMany");
}

}  // namespace ingot::op::topi
