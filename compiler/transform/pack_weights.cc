// pack_weights
//   Before: normal form, before legalising.
//   After:  a call whose weight a kernel reads in a layout of its own (op/packing.h) is a call over the packed weight,
//           and the packing is bindings that depend on weights only. A weight that two calls of a block read is packed
//           once.
//   Right before lift_params, which evaluates the packing. A weight is left as it is if its packed form would exceed
//   the budget, for one result or for all of them.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/packing.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/weight_bindings.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;

namespace {

// The part of lift_params' budget that is left.
class Budget {
 public:
  explicit Budget(const PassOptions& options) : options_(options), operations_(options.fold_max_operations) {}

  bool Take(const ir::Type& type) {
    const auto* tensor = As<ir::TensorTypeNode>(type);
    if (tensor == nullptr || !tensor->dims || !tensor->dtype) return false;
    int64_t elements = 1;
    for (const ir::PrimExpr& dim : *tensor->dims) {
      const auto value = ir::AsConstInt(dim);
      if (!value || __builtin_mul_overflow(elements, *value, &elements)) return false;
    }
    const Result<int64_t> bytes = tensor->dtype->SizeBytes(elements);
    // Padding and permuting write and read each element, reshaping does so at worst; the rest is a margin for the
    // padding.
    constexpr int64_t kOperationsPerElement = 8;
    const bool is_large = !bytes.ok() || *bytes > options_.fold_max_bytes - options_.fold_max_bytes / 16;
    if (is_large && (!bytes.ok() || !IsPaddedLittle(*tensor->dims))) return false;
    if (elements > operations_ / kOperationsPerElement) return false;
    operations_ -= elements * kOperationsPerElement;
    return true;
  }

 private:
  // Whether panels of up to 16 rows or columns add at most a sixteenth: then constants are folded whatever their size.
  static bool IsPaddedLittle(const op::Dims& dims) {
    constexpr int64_t kLong = 16 * 16;
    return dims.size() >= 2 && *ir::AsConstInt(dims.back()) >= kLong && *ir::AsConstInt(dims[dims.size() - 2]) >= kLong;
  }

  const PassOptions& options_;
  int64_t operations_;
};

class Packer : public ir::ExprMutator {
 public:
  Packer(const ir::Function& function, Budget& budget, PassContext& context, const std::string& name)
      : keeps_(context.options.keep_prepare && !function->is_private),
        weights_(function, keeps_),
        budget_(budget),
        context_(context),
        name_(name) {}

  Status status;

 protected:
  using ir::ExprMutator::Mutate;
  Expr Mutate(const ir::Ref<ir::CallNode>& call) override {
    const op::OpRow* row = op::RowOf(call);
    const op::PackingRow* packing = row != nullptr ? op::FindPacking(*row) : nullptr;
    const bool is_prepared = current_block_ != nullptr && (!keeps_ || (depth_ == 1 && current_block_->is_dataflow));
    const bool is_for_target =
        packing != nullptr && (!packing->is_of_gpus || context_.options.target.kind == Target::Kind::kCuda);
    if (!is_for_target || !is_prepared || !IsPermitted(RewriteId::kPackWeights, context_.options.rewrites) ||
        !CanPack(*call, *packing) || context_.Choose("pack_weights", 1, {0, 1}) == 0) {
      return ir::ExprMutator::Mutate(call);
    }
    const Result<Expr> packed = packing->pack(call, [&](std::string_view op, std::vector<Expr> args, ir::Attrs attrs) {
      return Emit(op, std::move(args), std::move(attrs));
    });
    if (!packed.ok()) {
      status = packed.status();
      return call;
    }
    if (*packed == nullptr) return call;
    context_.rewrites.Count(RewriteId::kPackWeights, *call, call->span);
    ir::CallNode result = *As<ir::CallNode>(*packed);
    result.span = call->span;
    return ir::ExprMutator::Mutate(ir::Make<ir::CallNode>(std::move(result)));
  }
  Expr Mutate(const ir::Ref<ir::SeqExprNode>& seq) override {
    ++depth_;
    Expr result = ir::ExprMutator::Mutate(seq);
    --depth_;
    return result;
  }

 private:
  // Whether some argument is no weight, and the one to pack is a weight that the budget allows, or none where the row
  // takes that.
  bool CanPack(const ir::CallNode& call, const op::PackingRow& row) {
    bool all = true;
    for (const Expr& arg : call.args) all = all && weights_.IsWeight(arg);
    if (all || row.weight >= call.args.size()) return false;
    if (!weights_.IsWeight(call.args[row.weight])) return row.packs_any;
    if (budget_.Take(call.args[row.weight]->type)) return true;
    if (context_.log)
      context_.log("pack_weights: " + name_ + ": left a weight unpacked: it is over the folding budget");
    return false;
  }

  Result<Expr> Emit(std::string_view op, std::vector<Expr> args, ir::Attrs attrs) {
    const std::vector<ir::Binding>& bindings = current_block_->bindings;
    for (const Made& made : made_) {
      const bool is_here = made.index < bindings.size() && bindings[made.index].var.same_as(made.var);
      if (is_here && made.op == op && SameArguments(made.args, args) && made.attrs.items() == attrs.items()) {
        return Expr(made.var);
      }
    }
    Made made{std::string(op), args, attrs, bindings.size(), nullptr};
    INGOT_ASSIGN_OR_RETURN(const ir::Call call, op::MakeCall(op, std::move(args), std::move(attrs)));
    made.var = EmitValue(call, "packed");
    made_.push_back(made);
    return Expr(made.var);
  }

  static bool SameArguments(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    return std::ranges::equal(a, b, [](const Expr& x, const Expr& y) {
      const bool are_shapes = As<ir::ShapeExprNode>(x) != nullptr && As<ir::ShapeExprNode>(y) != nullptr;
      return x.same_as(y) || (are_shapes && ir::StructuralEqual(x, y));
    });
  }

  // A binding that packing added.
  struct Made {
    std::string op;
    std::vector<Expr> args;
    ir::Attrs attrs;
    size_t index;  // index in its block
    ir::Var var;
  };
  const bool keeps_;
  const WeightBindings weights_;
  Budget& budget_;
  PassContext& context_;
  const std::string& name_;
  std::vector<Made> made_;
  int depth_ = 0;  // nesting of sequences: a `prepare` that stays has bindings of the function's own blocks only
};

}  // namespace

Result<ir::IRModule> PackWeights(ir::IRModule module, PassContext& context) {
  Budget budget(context.options);
  return MapFunctions(std::move(module),
                      [&](const ir::GlobalVar& var, const ir::Function& function) -> Result<ir::Function> {
                        if (function->attrs.Find(kPrepareAttr) != nullptr) return function;
                        Packer packer(function, budget, context, var->name);
                        ir::Function packed = packer.MutateFunction(function);
                        if (!packer.status.ok()) return packer.status;
                        return packed;
                      });
}

}  // namespace ingot::transform
