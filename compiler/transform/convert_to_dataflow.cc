// convert_to_dataflow
//   Before: normal form; computations may be in plain blocks.
//   After:  straight-line computations without effects are in dataflow blocks, and a value that no other part of the
//           function uses is a dataflow variable. A block has at least two bindings.
//   After lambda_lift, whose calls are straight-line, and before everything that works on dataflow blocks only, such as
//   fusion.
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"

namespace ingot::transform {

using ir::As;
using ir::Binding;
using ir::Expr;

namespace {

using Uses = std::unordered_map<const ir::VarNode*, int64_t>;

class DataflowConverter : public ir::ExprMutator {
 public:
  DataflowConverter(const ir::IRModule& module, const ir::Function& function) : module_(module) {
    ForEachUse(function->body, [this](const ir::Var& var) { ++uses_[var.get()]; });
  }

 protected:
  using ir::ExprMutator::Mutate;
  Expr Mutate(const ir::SeqExpr& seq) override {
    ir::BindingBlock* const outer = current_block_;
    std::vector<ir::BindingBlock> blocks;
    const auto emit = [&](std::span<const Binding> bindings, bool is_dataflow, bool is_new) {
      const bool joins = !is_dataflow && !blocks.empty() && !blocks.back().is_dataflow;
      if (!joins) blocks.emplace_back().is_dataflow = is_dataflow;
      ir::BindingBlock block = std::move(blocks.back());
      current_block_ = &block;
      const Uses inside = is_new ? UsesOf(bindings) : Uses();
      for (const Binding& binding : bindings) {
        const auto used = inside.find(binding.var.get());
        if (used != inside.end() && used->second == uses_.at(binding.var.get())) {
          EmitDataflow(binding);
        } else {
          MutateBinding(binding);
        }
      }
      blocks.back() = std::move(block);
    };
    for (const ir::BindingBlock& block : seq->blocks) {
      const std::span<const Binding> bindings(block.bindings);
      if (block.is_dataflow) {
        emit(bindings, true, false);
        continue;
      }
      for (size_t begin = 0; begin < bindings.size();) {
        size_t end = begin;
        while (end < bindings.size() && IsPlain(bindings[end])) ++end;
        const bool converts = end - begin >= 2;
        if (!converts) end = begin + 1;
        emit(bindings.subspan(begin, end - begin), converts, converts);
        begin = end;
      }
    }
    current_block_ = outer;
    ir::SeqExprNode copy = *seq;
    copy.blocks = std::move(blocks);
    copy.body = MutateExpr(seq->body);
    return ir::Make<ir::SeqExprNode>(std::move(copy));
  }

 private:
  bool IsPlain(const Binding& binding) const {
    return As<ir::IfNode>(binding.value) == nullptr && As<ir::FunctionNode>(binding.value) == nullptr &&
           EffectOf(module_, binding.value) != op::Effect::kEffect;
  }
  static Uses UsesOf(std::span<const Binding> bindings) {
    Uses uses;
    for (const Binding& binding : bindings) {
      ForEachUse(binding.value, [&](const ir::Var& var) { ++uses[var.get()]; });
    }
    return uses;
  }
  void EmitDataflow(const Binding& binding) {
    const Expr value = MutateExpr(binding.value);
    ir::VarNode copy = *binding.var;
    copy.is_dataflow = true;
    const ir::Var var = ir::Make<ir::VarNode>(std::move(copy));
    var_map_[binding.var] = var;
    Emit({var, value, binding.match_cast, binding.span});
  }

  const ir::IRModule& module_;
  Uses uses_;
};

// Whether the function has something to convert; only then is it rebuilt.
bool HasPlainBlocks(const ir::Function& function) {
  struct Finder : ir::ExprVisitor {
    bool found = false;
    void VisitBlock(const ir::BindingBlock& block) override {
      found |= !block.is_dataflow && block.bindings.size() >= 2;
      ir::ExprVisitor::VisitBlock(block);
    }
  } finder;
  finder.VisitExpr(function->body);
  return finder.found;
}

}  // namespace

Result<ir::IRModule> ConvertToDataflow(ir::IRModule module, PassContext&) {
  const ir::IRModule original = module;
  return MapFunctions(std::move(module),
                      [&](const ir::GlobalVar&, const ir::Function& function) -> Result<ir::Function> {
                        if (!HasPlainBlocks(function)) return function;
                        return DataflowConverter(original, function).MutateFunction(function);
                      });
}

}  // namespace ingot::transform
