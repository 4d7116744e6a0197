// Walks the tail positions of a function's body and compares the types of arguments and parameters.
#include "compiler/memory/tail_calls.h"

#include "compiler/op/infer.h"
#include "compiler/transform/graph_util.h"

namespace ingot::memory {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

bool SameDims(const std::optional<std::vector<PrimExpr>>& param, const std::optional<std::vector<PrimExpr>>& argument) {
  if (!param) return true;
  if (!argument || argument->size() != param->size()) return false;
  for (size_t i = 0; i < param->size(); ++i) {
    if (!op::DimsEqual((*param)[i], (*argument)[i])) return false;
  }
  return true;
}

// Whether a register of the parameter's type takes the argument for the same values of the symbols.
bool TakesSameType(const Type& param, const Type& argument) {
  if (argument == nullptr || param->kind != argument->kind) return false;
  switch (param->kind) {
    case TypeKind::kObject:
    case TypeKind::kPrim:
    case TypeKind::kCallable:
      return true;
    case TypeKind::kShape:
      return SameDims(Downcast<ShapeTypeNode>(param)->dims, Downcast<ShapeTypeNode>(argument)->dims);
    case TypeKind::kTensor:
      return SameDims(Downcast<TensorTypeNode>(param)->dims, Downcast<TensorTypeNode>(argument)->dims);
    case TypeKind::kTuple: {
      const auto& params = Downcast<TupleTypeNode>(param)->fields;
      const auto& arguments = Downcast<TupleTypeNode>(argument)->fields;
      if (params.size() != arguments.size()) return false;
      for (size_t i = 0; i < params.size(); ++i) {
        if (!TakesSameType(params[i], arguments[i])) return false;
      }
      return true;
    }
  }
  INGOT_UNREACHABLE("TypeKind");
}

class Finder {
 public:
  Finder(std::string_view name, const FunctionNode& function) : name_(name), function_(function) {
    found_.is_carried.resize(function.params.size(), false);
  }

  TailCalls Run() {
    Visit(*function_.body);
    return std::move(found_);
  }

 private:
  void Visit(const SeqExprNode& seq) {
    const Binding* last = TailBinding(seq);
    if (last == nullptr) return;
    if (const IfNode* branch = As<IfNode>(last->value)) {
      Visit(*branch->then_branch);
      Visit(*branch->else_branch);
    } else if (const CallNode* call = As<CallNode>(last->value)) {
      VisitCall(*call);
    }
  }

  void VisitCall(const CallNode& call) {
    const GlobalVarNode* callee = As<GlobalVarNode>(call.callee);
    if (callee == nullptr || callee->name != name_ || call.args.size() != function_.params.size()) return;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const bool is_same = call.args[i].same_as(function_.params[i]);
      if (!is_same && !TakesSameType(function_.params[i]->type, call.args[i]->type)) return;
    }
    for (size_t i = 0; i < call.args.size(); ++i) {
      if (!call.args[i].same_as(function_.params[i])) found_.is_carried[i] = true;
    }
    found_.calls.insert(&call);
  }

  const std::string_view name_;
  const FunctionNode& function_;
  TailCalls found_;
};

}  // namespace

bool TailCalls::Contains(const Expr& value) const {
  const CallNode* call = As<CallNode>(value);
  return call != nullptr && calls.contains(call);
}

const Binding* TailBinding(const SeqExprNode& seq) {
  if (seq.blocks.empty() || seq.blocks.back().bindings.empty()) return nullptr;
  const Binding& last = seq.blocks.back().bindings.back();
  return last.var.get() == seq.body.get() && !last.is_match_cast() ? &last : nullptr;
}

TailCalls FindTailCalls(std::string_view name, const Function& function) {
  // A function whose weights are prepared has parameters that no call passes.
  if (function->attrs.Find(transform::kPackedByAttr) != nullptr) {
    return {{}, std::vector<bool>(function->params.size(), false)};
  }
  return Finder(name, *function).Run();
}

}  // namespace ingot::memory
