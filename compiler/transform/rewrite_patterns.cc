// rewrite_patterns
//   Before: normal form, types; constants folded and equal computations merged, so that a value has one name.
//   After:  what exporters spelled out in small operators is one operator: normalisations, activations, attention.
//           Arithmetic that changes nothing, and views and permutations that cancel each other, are gone. Bindings that
//           became unused stay for dead code elimination, new duplicates for another merging.
//   After folding, whose results patterns read; before weights are packed and operators legalised.
//
// One walk over the bindings in order: the inputs of a value have their final form when it is matched, so patterns need
// to know the canonical spelling only. Rows are tried in the order of the table until none applies; calls that a
// rewrite adds go through the table themselves.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/fold.h"
#include "compiler/op/infer.h"
#include "compiler/op/names.h"
#include "compiler/op/reference.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/rewrite.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;

ir::Call RewriteContext::ResolveCall(const Expr& expr) const {
  const ir::Call call = ir::AsRef<ir::CallNode>(Resolve(expr));
  return call && op::RowOf(call) != nullptr ? call : nullptr;
}

Expr RewriteContext::Call(std::string_view row, std::vector<Expr> args, ir::Attrs attrs) const {
  for (const Expr& arg : args) {
    if (!arg) return nullptr;
  }
  Result<ir::Call> call = op::MakeCall(row, std::move(args), std::move(attrs));
  return call.ok() ? Expr(*call) : nullptr;
}

Expr RewriteContext::Bind(std::string_view row, std::vector<Expr> args, ir::Attrs attrs) {
  return AsArgument(Call(row, std::move(args), std::move(attrs)));
}

Expr RewriteContext::AsArgument(const Expr& expr) {
  if (!expr || As<ir::CallNode>(expr) == nullptr) return expr;
  const ir::Var var = ir::Make<ir::VarNode>("lv", expr->type, is_dataflow_);
  pending_.push_back({var, expr, nullptr, {}});
  return var;
}

bool SameType(const ir::Type& a, const ir::Type& b) {
  if (ir::StructuralEqual(a, b)) return true;
  const auto* x = As<ir::TensorTypeNode>(a);
  const auto* y = As<ir::TensorTypeNode>(b);
  return x != nullptr && y != nullptr && x->dims && y->dims && x->dtype && x->dtype == y->dtype &&
         x->virtual_device == y->virtual_device && EqualDims(*x->dims, *y->dims);
}

bool IsFilledWith(const Expr& expr, double value) {
  const auto* constant = As<ir::ConstantNode>(expr);
  if (constant == nullptr) return false;
  const ir::ConstantData& data = *constant->data;
  const size_t count = static_cast<size_t>(data.num_elements());
  // Elements of whole bytes are compared with the first one as bytes; only the first one is decoded.
  const size_t size = count > 0 ? data.bytes().size() / count : 0;
  if (size == 0 || size * count != data.bytes().size()) return false;
  for (size_t i = size; i < data.bytes().size(); ++i) {
    if (data.bytes()[i] != data.bytes()[i - size]) return false;
  }
  const op::ReferenceTensor first = op::UnpackReference(data.dtype(), {1}, data.bytes().first(size));
  const double found = op::GetNumber(first, 0);
  return found == value && (!data.dtype().is_floating() || std::signbit(found) == std::signbit(value));
}

namespace {

bool HasNoSign(const RewriteContext& context, const Expr& expr, int depth) {
  if (const auto* constant = As<ir::ConstantNode>(expr)) {
    const ir::ConstantData& data = *constant->data;
    if (data.num_elements() > 1 || data.dtype().bits < 8) return false;
    const op::ReferenceTensor tensor = op::UnpackReference(data.dtype(), data.dims(), data.bytes());
    return data.num_elements() == 0 || !std::signbit(op::GetNumber(tensor, 0));
  }
  const ir::Call call = context.ResolveCall(expr);
  if (!call || depth == 0) return false;
  const auto argument = [&](const Expr& arg) { return HasNoSign(context, arg, depth - 1); };
  switch (op::RowOf(call)->sign_bit) {
    case op::SignBit::kUnknown:
      return false;
    case op::SignBit::kClear:
      return true;
    case op::SignBit::kOfFirst:
      return argument(call->args[0]);
    case op::SignBit::kOfArguments:
      if (op::IsCallOf(call, op::names::kMultiply) && call->args[0].same_as(call->args[1])) return true;
      return std::ranges::all_of(call->args, argument);
  }
  INGOT_UNREACHABLE();
}

}  // namespace

bool HasNoSign(const RewriteContext& context, const Expr& expr) {
  constexpr int kDepth = 8;
  return HasNoSign(context, expr, kDepth);
}

Expr ReshapeTo(RewriteContext& context, const Expr& x, const std::vector<ir::PrimExpr>& dims) {
  const std::vector<ir::PrimExpr>* own = DimsOf(x);
  if (own == nullptr) return nullptr;
  if (EqualDims(*own, dims)) return x;
  return context.Call("reshape", {x, ir::Make<ir::ShapeExprNode>(dims)});
}

namespace {

// The permitted rows by the operator at their root, in their order.
class RowTable {
 public:
  RowTable(std::vector<RewriteRow> rows, const RewritePermissions& permissions) : rows_(std::move(rows)) {
    std::erase_if(rows_, [&](const RewriteRow& row) { return !IsPermitted(row.id, permissions); });
    for (size_t i = 0; i < rows_.size(); ++i) {
      const std::vector<std::string_view> roots = RootsOf(rows_[i].pattern);
      if (roots.empty()) any_.push_back(i);
      for (std::string_view root : roots) {
        std::vector<size_t>& list = by_root_[root];
        if (list.empty() || list.back() != i) list.push_back(i);
      }
    }
  }

  // Calls fn(row) for the rows that may match a call of this operator, until one returns true.
  template <typename Fn>
  bool ForEach(std::string_view root, const Fn& fn) const {
    const auto found = by_root_.find(root);
    static const std::vector<size_t> kNone;
    const std::vector<size_t>& own = found == by_root_.end() ? kNone : found->second;
    size_t i = 0, j = 0;
    while (i < own.size() || j < any_.size()) {
      const bool takes_own = j == any_.size() || (i < own.size() && own[i] < any_[j]);
      if (fn(rows_[takes_own ? own[i++] : any_[j++]])) return true;
    }
    return false;
  }

 private:
  std::vector<RewriteRow> rows_;
  std::vector<size_t> any_;
  std::unordered_map<std::string_view, std::vector<size_t>> by_root_;
};

class PatternRewriter : public ir::ExprMutator {
 public:
  PatternRewriter(const RowTable& table, const ir::Function& function, RewriteLog& log) : table_(table), log_(log) {
    NumberBlocks(function);
  }

 protected:
  void MutateBinding(const ir::Binding& binding) override {
    EnterBlock(block_of_.at(binding.var.get()));
    Expr value = MutateExpr(binding.value);
    if (binding.is_match_cast()) return Emit({binding.var, value, binding.match_cast, binding.span});
    Expr rewritten = Rewrite(value, binding.span);
    // Equal dims that are spelled differently change the variable's type; a result of the block keeps its type.
    const bool keeps_type = ir::StructuralEqual(rewritten->type, binding.var->type);
    if (keeps_type || binding.var->is_dataflow) value = std::move(rewritten);
    // The type of a local function is known from its variable only.
    if (value->type && !ir::StructuralEqual(value->type, binding.var->type)) {
      const ir::Var var = ir::Make<ir::VarNode>(binding.var->name, value->type, binding.var->is_dataflow);
      var_map_[binding.var] = var;
      return Define({var, value, nullptr, binding.span});
    }
    const auto* other = As<ir::VarNode>(value);
    const bool leaves_its_block = other != nullptr && other->is_dataflow && !binding.var->is_dataflow;
    if ((other != nullptr || As<ir::ConstantNode>(value) != nullptr) && !leaves_its_block) {
      var_map_[binding.var] = value;
      return;
    }
    Define({binding.var, value, nullptr, binding.span});
  }

 private:
  // More steps would mean that rows undo each other.
  static constexpr int kMaxSteps = 64;
  static constexpr int kMaxDepth = 8;

  void Define(ir::Binding binding) {
    const Expr& value = definitions_[binding.var] = Resolve(binding.value, definitions_);
    bool is_local = false;
    ForEachUse(value, [&](const ir::Var& used) { is_local |= used->is_dataflow; });
    if (is_local) local_.push_back(binding.var);
    Emit(std::move(binding));
  }

  void NumberBlocks(const ir::Function& function) {
    struct Numberer : ir::ExprVisitor {
      explicit Numberer(std::unordered_map<const ir::VarNode*, int>& numbers) : block_of(numbers) {}
      void VisitBlock(const ir::BindingBlock& block) override {
        const int number = ++num_blocks;
        for (const ir::Binding& binding : block.bindings) block_of.emplace(binding.var.get(), number);
        ir::ExprVisitor::VisitBlock(block);
      }
      std::unordered_map<const ir::VarNode*, int>& block_of;
      int num_blocks = 0;
    };
    Numberer(block_of_).VisitExpr(function->body);
  }

  // A dataflow variable is visible in its block only: values computed from it have no definition outside of the block.
  void EnterBlock(int block) {
    if (block == block_) return;
    block_ = block;
    for (const ir::Var& var : local_) definitions_.erase(var);
    local_.clear();
  }

  Expr Rewrite(Expr value, const ir::Span& span, int depth = 0) {
    if (depth > kMaxDepth) return value;
    for (int step = 0; step < kMaxSteps; ++step) {
      const ir::Call call = ir::AsRef<ir::CallNode>(value);
      const op::OpRow* row = call ? op::RowOf(call) : nullptr;
      if (row == nullptr || row->effect != op::Effect::kPure || row->is_primitive) return value;
      Expr next;
      table_.ForEach(row->name, [&](const RewriteRow& rewrite) {
        const std::optional<Match> match = MatchPattern(rewrite.pattern, value, definitions_);
        if (!match) return false;
        RewriteContext context(definitions_, current_block_->is_dataflow);
        const Expr result = rewrite.rewrite(*match, context);
        if (!result || !SameType(result->type, value->type) || !CanReplace(value, result)) return false;
        for (const ir::Binding& pending : context.pending()) {
          Define({pending.var, Rewrite(pending.value, span, depth + 1), nullptr, span});
        }
        next = result;
        log_.Count(rewrite.id, *call, span);
        return true;
      });
      if (!next) return value;
      value = next;
    }
    return value;
  }
  // A type that is spelled differently would change the type of the function.
  static bool CanReplace(const Expr& value, const Expr& result) {
    return ir::StructuralEqual(value->type, result->type) || As<ir::CallNode>(result) != nullptr;
  }

  const RowTable& table_;
  RewriteLog& log_;
  Definitions definitions_;
  std::unordered_map<const ir::VarNode*, int> block_of_;  // number of the block, from 1 on
  int block_ = 0;
  std::vector<ir::Var> local_;  // values defined by dataflow variables
};

}  // namespace

std::vector<RewriteRow> PatternRewrites() {
  std::vector<RewriteRow> rows;
  for (auto family : {ArithmeticRewrites, ActivationRewrites, ViewRewrites, AttentionRewrites}) {
    for (RewriteRow& row : family()) rows.push_back(std::move(row));
  }
  return rows;
}

Result<ir::IRModule> RewriteModule(ir::IRModule module, std::vector<RewriteRow> rows,
                                   const RewritePermissions& permissions, RewriteLog& log) {
  const RowTable table(std::move(rows), permissions);
  return MapFunctions(std::move(module),
                      [&](const ir::GlobalVar&, const ir::Function& function) -> Result<ir::Function> {
                        return PatternRewriter(table, function, log).MutateFunction(function);
                      });
}

Result<ir::IRModule> RewritePatterns(ir::IRModule module, PassContext& context) {
  return RewriteModule(std::move(module), PatternRewrites(), context.options.rewrites, context.rewrites);
}

}  // namespace ingot::transform
