// split_by_size
//   Before: normal form with dataflow blocks; no layout is chosen.
//   After:  a function of pictures of free height and width, some of whose convolutions cost least by Winograd's where
//           pictures are large and directly where they are small, asks for the picture's size and calls one of two private
//           copies. Each has the size that its choices are made for (kLikelyImageAttr); both are right for any.
//           Where bounds say that all pictures are small, or large, it is such a function itself.
//   Weights that both copies read alike are in the file once.
//
// Winograd's weights are four times as many: where an image has few tiles, reading them takes longer than all
// multiplications that they save. No one choice is good for both.
//
// join_sizes
//   Before: operators are tensor functions, which are fused.
//   After:  what the copies hold stands in the branches of the function that asks for the size, and nothing calls them.
//           So it has one arena, results are written where the caller wants them, and bounds of dims hold for its plan.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/op/infer.h"
#include "compiler/transform/blocked_calls.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/params.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/states.h"
#include "compiler/transform/symbols.h"
#include "compiler/transform/weight_bindings.h"

namespace ingot::transform {

using ir::Expr;
using ir::PrimVar;

namespace {

// Small pictures have so many pixels at most, and likely so wide a side.
constexpr int64_t kMostOfSmall = 112 * 112, kLikelySmallImage = 80;

// A picture's height and width, of which one at least is a symbol; nothing: no parameter is one.
std::optional<ir::PrimExpr> PixelsOf(const ir::Function& function) {
  for (const ir::Var& param : function->params) {
    const op::Dims* dims = TypedDimsOf(param);
    if (dims == nullptr || dims->size() != 4 || !IsImage(*dims)) continue;
    const ir::PrimExpr pixels = (*dims)[2] * (*dims)[3];
    if (!ir::FreePrimVars(pixels).empty()) return pixels;
  }
  return std::nullopt;
}

// Whether callers know the result's type by the arguments'.
bool IsResultKnown(const ir::Function& function) {
  std::vector<PrimVar> bound;
  SymbolVisitor visitor([&](const PrimVar& var, bool binds) {
    if (binds) bound.push_back(var);
  });
  for (const ir::Var& param : function->params) visitor.VisitParam(param);
  return std::ranges::all_of(ir::FreePrimVars(function->result_type), [&](const PrimVar& var) {
    return std::ranges::any_of(bound, [&](const PrimVar& b) { return b.same_as(var); });
  });
}

ir::Function ForLikelyImage(const ir::Function& function, int64_t likely) {
  ir::FunctionNode made = *function;
  made.attrs = made.attrs.With(kLikelyImageAttr, likely);
  return ir::Make<ir::FunctionNode>(std::move(made));
}

ir::Function CopyForLikelyImage(const ir::Function& function, int64_t likely) {
  ir::FunctionNode copy = *CopyFresh(function);
  copy.is_private = true;
  copy.attrs = {};
  return ForLikelyImage(ir::Make<ir::FunctionNode>(std::move(copy)), likely);
}

// Whether a convolution is computed otherwise in one copy than in the other.
bool DiffersBySize(const ir::Function& function, PassContext& context) {
  const WeightBindings weights(function, /*keep=*/false);
  const BlockedCalls of_small(ForLikelyImage(function, kLikelySmallImage), weights, context);
  const BlockedCalls of_large(function, weights, context);
  for (const ir::BindingBlock& block : function->body->blocks) {
    for (const ir::Binding& binding : block.bindings) {
      if (of_large.KindOf(binding) != BlockedCall::kWindow) continue;
      const ir::Call call = ir::Downcast<ir::CallNode>(binding.value);
      if (of_large.PrefersWinograd(call) != of_small.PrefersWinograd(call)) return true;
    }
  }
  return false;
}

class Splitter {
 public:
  Splitter(ir::IRModule module, PassContext& context) : module_(std::move(module)), context_(context) {}

  ir::IRModule Run() && {
    const auto entries = module_.functions();
    for (const auto& [name, value] : entries) {
      const ir::Function function = ir::AsRef<ir::FunctionNode>(value);
      if (function == nullptr || !MaySplit(function)) continue;
      const ir::PrimExpr pixels = *PixelsOf(function);
      const arith::Interval range = AnalyzerOf(function->attrs, ir::FreePrimVars(pixels)).Bounds(pixels);
      if (range.max <= kMostOfSmall) {
        module_.Set(name, ForLikelyImage(function, kLikelySmallImage));
      } else if (range.min <= kMostOfSmall) {
        Split(name, function);
      }
    }
    return std::move(module_);
  }

 private:
  bool MaySplit(const ir::Function& function) {
    return !function->is_private && function->is_pure && function->attrs.Find(kStateParamsAttr) == nullptr &&
           function->attrs.Find(kStatesAttr) == nullptr && HasOnlyInputs(function) && PixelsOf(function) &&
           IsResultKnown(function) && DiffersBySize(function, context_);
  }

  // Weights among the parameters are prepared for one function.
  static bool HasOnlyInputs(const ir::Function& function) {
    return NumInput(*function) == static_cast<int64_t>(function->params.size());
  }

  void Split(const ir::GlobalVar& name, const ir::Function& function) {
    const auto call = [&](const char* suffix, int64_t likely) {
      const ir::GlobalVar copy = ir::Make<ir::GlobalVarNode>(module_.FreshName(name->name + suffix), name->type);
      module_.Set(copy, CopyForLikelyImage(function, likely));
      const std::vector<Expr> args(function->params.begin(), function->params.end());
      const ir::Call call =
          ir::Make<ir::CallNode>(copy, args, ir::Attrs{}, std::vector<ir::Type>{}, function->result_type);
      return Sequence(call);
    };
    const ir::SeqExpr small = call("_small", kLikelySmallImage), large = call("_large", kLikelyImage);
    const Expr is_small = ir::Make<ir::PrimValueNode>(*PixelsOf(function) <= ir::Int64(kMostOfSmall));
    ir::FunctionNode chooser = *function;
    chooser.body = Sequence(ir::Make<ir::IfNode>(is_small, small, large, function->result_type));
    module_.Set(name, ir::Make<ir::FunctionNode>(std::move(chooser)));
  }

  static ir::SeqExpr Sequence(const Expr& value) {
    const ir::Var result = ir::Make<ir::VarNode>("result", value->type);
    return ir::Make<ir::SeqExprNode>(std::vector<ir::BindingBlock>{{{{result, value, nullptr, {}}}}}, result,
                                     result->type);
  }

  ir::IRModule module_;
  PassContext& context_;
};

// Puts the bodies of copies in the place of their calls.
class Joiner : public ir::ExprMutator {
 public:
  explicit Joiner(const ir::IRModule& module) : module_(module) {}

 protected:
  using ir::ExprMutator::Mutate;
  Expr Mutate(const ir::SeqExpr& seq) override {
    const ir::SeqExpr body = BodyOfCopy(*seq);
    return body != nullptr ? body : ir::ExprMutator::Mutate(seq);
  }

 private:
  // Of a sequence that is the call of a copy; null: it is another one.
  ir::SeqExpr BodyOfCopy(const ir::SeqExprNode& seq) {
    if (seq.blocks.size() != 1 || seq.blocks[0].bindings.size() != 1) return nullptr;
    const ir::Binding& binding = seq.blocks[0].bindings[0];
    const auto* call = ir::As<ir::CallNode>(binding.value);
    const ir::GlobalVar callee = call == nullptr ? nullptr : ir::AsRef<ir::GlobalVarNode>(call->callee);
    const ir::Function copy = callee == nullptr ? nullptr : module_.FindFunction(callee->name);
    if (copy == nullptr || !IsCopy(*copy) || binding.is_match_cast() ||
        ir::As<ir::VarNode>(seq.body) != binding.var.get()) {
      return nullptr;
    }
    std::vector<ir::Var> args;
    for (const Expr& arg : call->args) {
      const ir::Var var = ir::AsRef<ir::VarNode>(arg);
      if (var == nullptr) return nullptr;
      args.push_back(var);
    }
    return BodyFor(copy, args);
  }
  static bool IsCopy(const ir::FunctionNode& function) {
    return function.is_private && function.attrs.Find(kLikelyImageAttr) != nullptr &&
           function.attrs.Find(kPackedByAttr) == nullptr;
  }

  const ir::IRModule& module_;
};

}  // namespace

Result<ir::IRModule> JoinSizes(ir::IRModule module, PassContext&) {
  const auto entries = module.functions();
  const ir::IRModule original = module;
  Joiner joiner(original);
  for (const auto& [name, value] : entries) {
    const ir::Function function = ir::AsRef<ir::FunctionNode>(value);
    if (function != nullptr && !function->is_private) module.Set(name, joiner.MutateFunction(function));
  }
  return module;
}

Result<ir::IRModule> SplitBySize(ir::IRModule module, PassContext& context) {
  const PassOptions& options = context.options;
  // Weights that stay replaceable belong to one function.
  if (options.keep_prepare || !IsPermitted(RewriteId::kWinograd, options.rewrites)) return module;
  return Splitter(std::move(module), context).Run();
}

}  // namespace ingot::transform
