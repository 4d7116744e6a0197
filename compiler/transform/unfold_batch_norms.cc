// unfold_batch_norms
//   Before: normal form; batch normalisations are calls of their operator.
//   After:  a call at inference whose parameters are weights is x * factor + shift, with
//             factor = gamma / sqrt(variance + epsilon),  shift = beta - mean * factor
//           computed from weights only, so that they fold, and fold_scales moves them into a convolution before.
//   First, since constants are folded next. A call with computed statistics, or one of training, stays.
#include "compiler/ir/visitor.h"
#include "compiler/op/infer.h"
#include "compiler/op/names.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/rewrite.h"
#include "compiler/transform/weight_bindings.h"

namespace ingot::transform {
namespace {

using ir::Expr;

class Unfolder : public ir::ExprMutator {
 public:
  Unfolder(const ir::Function& function, bool keep, PassContext& context)
      : weights_(function, keep), context_(context) {}

  Result<ir::Function> Run(const ir::Function& function) {
    ir::Function result = MutateFunction(function);
    INGOT_RETURN_IF_ERROR(std::move(status_));
    return result;
  }

 protected:
  using ir::ExprMutator::Mutate;

  void MutateBinding(const ir::Binding& binding) override {
    const ir::Call call = binding.is_match_cast() ? nullptr : ir::AsRef<ir::CallNode>(binding.value);
    if (call == nullptr || !IsFoldable(call) || !context_.Apply(RewriteId::kUnfoldBatchNorm, *call, binding.span)) {
      return ir::ExprMutator::MutateBinding(binding);
    }
    span_ = call->span;
    Result<Expr> out = Unfold(call);
    if (!out.ok()) {
      if (status_.ok()) status_ = std::move(out).status();
      return;
    }
    // The tuple is not built: accesses to its fields become the fields themselves.
    std::vector<Expr> fields = {*std::move(out), MutateExpr(call->args[3]), MutateExpr(call->args[4])};
    var_map_[binding.var] = ir::Make<ir::TupleNode>(std::move(fields), call->type);
  }

  Expr Mutate(const ir::Ref<ir::TupleGetItemNode>& item) override {
    const Expr tuple = MutateExpr(item->tuple);
    if (const auto* made = ir::As<ir::TupleNode>(tuple)) return made->fields.at(static_cast<size_t>(item->index));
    return ir::ExprMutator::Mutate(item);
  }

 private:
  bool IsFoldable(const ir::Call& call) const {
    if (!op::IsCallOf(call, op::names::kBatchNorm) || call->attrs.GetBool("training")) return false;
    const auto* x = ir::As<ir::TensorTypeNode>(call->args[0]->type);
    bool all = x != nullptr && x->dims.has_value();
    for (size_t i = 1; all && i < call->args.size(); ++i) {
      const auto* type = ir::As<ir::TensorTypeNode>(call->args[i]->type);
      all = weights_.IsWeight(call->args[i]) && type->dims && type->dtype == x->dtype;
    }
    return all;
  }

  Result<Expr> Unfold(const ir::Call& call) {
    const auto* x = ir::As<ir::TensorTypeNode>(call->args[0]->type);
    std::vector<Expr> args;
    for (const Expr& arg : call->args) args.push_back(MutateExpr(arg));
    const Expr &gamma = args[1], &beta = args[2], &mean = args[3], &variance = args[4];
    const Expr epsilon = NumberConstant(call->attrs.GetFloat("epsilon"), *x->dtype);
    INGOT_ASSIGN_OR_RETURN(Expr deviation, Bind("add", {variance, epsilon}));
    INGOT_ASSIGN_OR_RETURN(deviation, Bind("sqrt", {deviation}));
    const Expr scale = call->attrs.GetBool("scale") ? gamma : NumberConstant(1, *x->dtype);
    INGOT_ASSIGN_OR_RETURN(Expr factor, Bind("divide", {scale, deviation}));
    INGOT_ASSIGN_OR_RETURN(Expr shift, Bind("multiply", {mean, factor}));
    if (call->attrs.GetBool("center")) {
      INGOT_ASSIGN_OR_RETURN(shift, Bind("subtract", {beta, shift}));
    } else {
      INGOT_ASSIGN_OR_RETURN(shift, Bind("negative", {shift}));
    }
    INGOT_ASSIGN_OR_RETURN(const int axis, op::NormalizeAxis(call, call->attrs.GetInt("axis"), x->rank));
    std::vector<ir::PrimExpr> channel_dims(static_cast<size_t>(x->rank - axis), ir::Int64(1));
    channel_dims[0] = (*x->dims)[static_cast<size_t>(axis)];
    const Expr dims = ir::Make<ir::ShapeExprNode>(std::move(channel_dims));
    INGOT_ASSIGN_OR_RETURN(factor, Bind("reshape", {factor, dims}));
    INGOT_ASSIGN_OR_RETURN(shift, Bind("reshape", {shift, dims}));
    INGOT_ASSIGN_OR_RETURN(const Expr scaled, Bind("multiply", {args[0], factor}));
    return Bind("add", {scaled, shift});
  }

  Result<Expr> Bind(const char* row, std::vector<Expr> args) {
    INGOT_ASSIGN_OR_RETURN(const ir::Call call, op::MakeCall(row, std::move(args)));
    ir::CallNode with_span = *call;
    with_span.span = span_;
    return Expr(EmitValue(ir::Make<ir::CallNode>(std::move(with_span)), row));
  }

  WeightBindings weights_;
  PassContext& context_;
  ir::Span span_;
  Status status_;
};

}  // namespace

Result<ir::IRModule> UnfoldBatchNorms(ir::IRModule module, PassContext& context) {
  return MapFunctions(std::move(module), [&](const ir::GlobalVar&, const ir::Function& function) {
    return Unfolder(function, context.options.keep_prepare && !function->is_private, context).Run(function);
  });
}

}  // namespace ingot::transform
