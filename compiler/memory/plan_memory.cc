// Liveness of a function's allocations, in-place outputs, and the rewrite to tensors in an arena. Offsets are computed
// in place_tensors.cc.
#include "compiler/memory/plan_memory.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/ir/visitor.h"
#include "compiler/memory/tail_calls.h"
#include "compiler/op/dim_size.h"
#include "compiler/op/names.h"
#include "compiler/op/registry.h"
#include "compiler/transform/signature.h"
#include "compiler/transform/states.h"
#include "runtime/dim_code.h"

namespace ingot::memory {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

// Bounds of symbols may be far above the values in use (such as the number of positions in a model's table). Calls
// should not pay for such a peak.
constexpr int64_t kMaxBoundedPeakBytes = int64_t{1} << 30;

// Whether a dim is a formula that no formula of a file can hold, though its parts may be shared. The arithmetic on very
// many such sizes would take long, and find no place for them.
bool HasLongDim(const Var& tensor) {
  constexpr int kMostNodes = 4 * DimCode::kMaxSteps;
  const auto* type = As<TensorTypeNode>(tensor->type);
  return std::ranges::any_of(*type->dims, [](const PrimExpr& dim) { return op::IsLongerThan(dim, kMostNodes); });
}

std::vector<PrimVar> SymbolsOf(const Function& function) {
  return transform::SignatureSymbols(std::span(function->params.data(), transform::NumInputs(*function)));
}

// Finds what a function allocates, where each tensor is used last, and which outputs lie in their inputs' memory. The
// bindings of branches are numbered one branch after the other, as they stand in bytecode, so that tensors of different
// branches may share memory.
class Liveness {
 public:
  Liveness(const IRModule& module, std::string_view name, const Function& function,
           const std::vector<transform::StateParam>& states)
      : module_(module),
        symbols_(SymbolsOf(function)),
        is_entry_(!function->is_private),
        tail_calls_(FindTailCalls(name, function)) {
    for (const transform::StateParam& state : states) kept_.push_back(state.result);
    VisitBody(*function->body);
    for (size_t tensor : stays_) tensors_[tensor].last = index_;
    ShareInPlace();
  }

  struct Tensor {
    Var var;
    int64_t first, last;
    bool leaves = false;              // returned, in a tuple, captured: it must be reference-counted
    std::optional<size_t> lies_in{};  // the tensor in whose memory this one lies
  };
  const std::vector<Tensor>& tensors() const { return tensors_; }
  // The variable that an output becomes another name of; null: the output keeps its allocation.
  const VarNode* in_place(const VarNode* output) const {
    const auto found = in_place_.find(output);
    return found == in_place_.end() ? nullptr : found->second;
  }

 private:
  static constexpr size_t kNoBase = SIZE_MAX;
  struct KernelCall {
    const CallNode* call;
    int64_t index;
  };

  // Visits the function's body. Its results may be bound as a tuple before the body returns that variable.
  void VisitBody(const SeqExprNode& body) {
    const VarNode* result = As<VarNode>(body.body);
    for (const BindingBlock& block : body.blocks) {
      for (const Binding& binding : block.bindings) {
        if (binding.var.get() == result && As<TupleNode>(binding.value) != nullptr) {
          Leave(binding.value);
          result = nullptr;
        } else {
          VisitBinding(binding);
        }
        ++index_;
      }
    }
    if (result != nullptr || As<VarNode>(body.body) == nullptr) Leave(body.body);
  }
  // Visits a branch. Its result outlives it.
  void VisitSeq(const SeqExprNode& seq) {
    for (const BindingBlock& block : seq.blocks) {
      for (const Binding& binding : block.bindings) {
        VisitBinding(binding);
        ++index_;
      }
    }
    Escape(seq.body);
  }

  void VisitBinding(const Binding& binding) {
    if (const IfNode* branch = As<IfNode>(binding.value)) {
      Use(branch->condition);
      VisitSeq(*branch->then_branch);
      return VisitSeq(*branch->else_branch);
    }
    // The next turn of the loop keeps the arguments.
    if (tail_calls_.Contains(binding.value)) return Escape(binding.value);
    if (const CallNode* call = As<CallNode>(binding.value)) {
      const op::OpRow* row = op::RowOf(Ref<CallNode>(call));
      if (op::IsCallOf(*call, op::names::kAllocTensor)) {
        base_[binding.var.get()] = tensors_.size();
        outputs_.insert(binding.var.get());
        tensors_.push_back({binding.var, index_, index_});
        return;
      }
      for (const Expr& arg : call->args) Use(arg);
      if (op::IsCallOf(*call, op::names::kMakeClosure)) Escape(call->args.at(1));
      if (op::IsCallOf(*call, op::names::kSequenceConstruct) || op::IsCallOf(*call, op::names::kSequenceInsert)) {
        Escape(binding.value);
      }
      const bool shows_argument =
          row != nullptr && (ViewedVar(binding.value) != nullptr || row->effect == op::Effect::kWritesInPlace);
      if (shows_argument) Alias(binding.var, call->args.at(0));
      if (const VarNode* viewed = ViewedVar(binding.value)) MayBeOutput(binding, viewed);
      if (As<GlobalVarNode>(call->callee) != nullptr) calls_.push_back({call, index_});
      return;
    }
    if (const VarNode* source = As<VarNode>(binding.value)) {
      Use(binding.value);
      Alias(binding.var, binding.value);
      MayBeOutput(binding, source);
      return;
    }
    if (const TupleGetItemNode* item = As<TupleGetItemNode>(binding.value)) {
      Use(item->tuple);
      return;
    }
    Escape(binding.value);  // tuples, functions: what they mention must be counted
  }

  // Visits the function's results. A tensor that becomes a state's new value is copied at the very end and need not be
  // counted, but lives until then; so does a tensor that an entry point's result shows without being allocated as that
  // result (OutputTensors::Allocate).
  void Leave(const Expr& results) {
    const TupleNode* tuple = As<TupleNode>(results);
    const std::vector<Expr> fields = tuple == nullptr ? std::vector<Expr>{results} : tuple->fields;
    for (size_t i = 0; i < fields.size(); ++i) {
      const VarNode* var = As<VarNode>(fields[i]);
      const bool is_state = std::find(kept_.begin(), kept_.end(), i) != kept_.end();
      if (var == nullptr || !(is_state || (is_entry_ && !outputs_.contains(var)))) {
        Escape(fields[i]);
      } else if (auto it = base_.find(var); it != base_.end()) {
        stays_.push_back(it->second);
      }
    }
  }

  // Notes another name of a tensor that may be allocated as a result, if the dims of that name are known by then.
  void MayBeOutput(const Binding& binding, const VarNode* source) {
    const auto* type = As<TensorTypeNode>(binding.var->type);
    if (!outputs_.contains(source) || binding.is_match_cast() || type == nullptr || !type->dims) return;
    const bool is_known = std::ranges::all_of(*type->dims, [&](const PrimExpr& dim) {
      return std::ranges::all_of(FreePrimVars(dim), [&](const PrimVar& var) {
        return std::ranges::any_of(symbols_, [&](const PrimVar& symbol) { return symbol.same_as(var); });
      });
    });
    if (is_known || As<VarNode>(binding.value) != nullptr) outputs_.insert(binding.var.get());
  }

  // In program order, so that chains of element-wise kernels work in one buffer.
  void ShareInPlace() {
    for (const KernelCall& kernel_call : calls_) {
      const CallNode& call = *kernel_call.call;
      const std::string& name = As<GlobalVarNode>(call.callee)->name;
      const PrimFunc prim = module_.FindPrimFunc(name);
      if (!prim) continue;
      const Result<codegen::KernelDescription>& described = Describe(name, prim);
      if (!described.ok()) continue;  // reported when kernels are made
      const std::vector<vm::KernelParam>& params = described->kernel.params;
      for (size_t out = 0; out < params.size() && out < call.args.size(); ++out) {
        if (params[out].in_place) TryShare(call, *params[out].in_place, out, kernel_call.index);
      }
    }
  }

  const Result<codegen::KernelDescription>& Describe(const std::string& name, const PrimFunc& prim) {
    auto found = descriptions_.find(prim.get());
    if (found == descriptions_.end()) {
      found = descriptions_.emplace(prim.get(), codegen::DescribeKernel(name, prim)).first;
    }
    return found->second;
  }

  void TryShare(const CallNode& call, size_t in, size_t out, int64_t index) {
    const VarNode* from = As<VarNode>(call.args[in]);
    const VarNode* to = As<VarNode>(call.args[out]);
    const size_t from_base = BaseOf(from), to_base = BaseOf(to);
    if (from_base == kNoBase || to_base == kNoBase) return;
    Tensor& kept = tensors_[from_base];
    Tensor& gone = tensors_[to_base];
    if (kept.leaves || gone.leaves || gone.var.get() != to || kept.last != index || &kept == &gone) return;
    const auto* kept_type = As<TensorTypeNode>(kept.var->type);
    const auto* gone_type = As<TensorTypeNode>(gone.var->type);
    if (HasLongDim(kept.var) || HasLongDim(gone.var)) return;
    arith::Analyzer analyzer;
    if (!analyzer.ProveEqual(AlignedSizeBytes(*kept_type->dims, *kept_type->dtype),
                             AlignedSizeBytes(*gone_type->dims, *gone_type->dtype))) {
      return;
    }
    for (size_t i = 0; i < call.args.size(); ++i) {
      if (i != in && BaseOf(As<VarNode>(call.args[i])) == from_base) return;
    }
    kept.last = gone.last;
    in_place_.emplace(to, from);
    gone.lies_in = from_base;
  }

  // Returns the tensor in whose memory a variable's elements lie, after all sharing so far; kNoBase for no tensor.
  size_t BaseOf(const VarNode* var) {
    const auto found = base_.find(var);
    if (found == base_.end()) return kNoBase;
    size_t& base = found->second;
    while (tensors_[base].lies_in) base = *tensors_[base].lies_in;
    return base;
  }

  void Use(const Expr& expr) {
    if (const VarNode* var = As<VarNode>(expr)) {
      if (auto it = base_.find(var); it != base_.end()) tensors_[it->second].last = index_;
    } else if (const TupleNode* tuple = As<TupleNode>(expr)) {
      for (const Expr& field : tuple->fields) Use(field);
    }
  }
  void Alias(const Var& var, const Expr& source) {
    const VarNode* base = As<VarNode>(source);
    if (base == nullptr) return;
    if (auto it = base_.find(base); it != base_.end()) base_[var.get()] = it->second;
  }
  void Escape(const Expr& expr) {
    struct Marker : ExprVisitor {
      explicit Marker(Liveness& l) : liveness(l) {}
      using ExprVisitor::Visit;
      void Visit(const VarNode& var) override {
        if (auto it = liveness.base_.find(&var); it != liveness.base_.end()) {
          liveness.tensors_[it->second].leaves = true;
        }
      }
      Liveness& liveness;
    };
    Marker(*this).VisitExpr(expr);
  }

  const IRModule& module_;
  const std::vector<PrimVar> symbols_;  // of the signature
  const bool is_entry_;
  const TailCalls tail_calls_;
  std::vector<size_t> kept_;                    // results that are states
  std::vector<size_t> stays_;                   // tensors that are copied when the function ends
  std::unordered_set<const VarNode*> outputs_;  // names of tensors that may be made as results
  int64_t index_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<KernelCall> calls_;
  std::unordered_map<const VarNode*, size_t> base_;              // a variable -> the tensor whose memory it shows
  std::unordered_map<const VarNode*, const VarNode*> in_place_;  // an output -> the input whose memory it takes
  std::unordered_map<const PrimFuncNode*, Result<codegen::KernelDescription>> descriptions_;
};

struct Plan {
  std::vector<PlannedTensor> tensors;
  Placement placement;
};

class PlanRewriter : public ExprMutator {
 public:
  PlanRewriter(const Liveness& liveness, const std::vector<size_t>& planned, const Plan& plan)
      : liveness_(liveness), plan_(plan) {
    for (size_t i = 0; i < planned.size(); ++i) {
      if (plan.placement.offsets[i]) index_of_[liveness.tensors()[planned[i]].var.get()] = i;
    }
  }

 protected:
  using ExprMutator::Mutate;
  void MutateBinding(const Binding& binding) override {
    if (!storage_) {
      auto type = Make<ObjectTypeNode>();
      storage_ = Make<VarNode>("storage", type);
      Emit({storage_,
            Make<CallNode>(op::GetOp(op::names::kAllocStorage),
                           std::vector<Expr>{Make<ShapeExprNode>(std::vector<PrimExpr>{plan_.placement.peak}),
                                             Make<PrimValueNode>(Int64(0)), Make<StringValueNode>("global"),
                                             Make<DataTypeValueNode>(DataType::UInt(8))},
                           Attrs{}, std::vector<Type>{}, type),
            nullptr, Span{}});
    }
    if (const VarNode* input = liveness_.in_place(binding.var.get())) {
      // A second name instead of a substitution: failures and profiles show the names of results.
      Emit({binding.var, MutateExpr(Var(input)), nullptr, binding.span});
      return;
    }
    auto it = index_of_.find(binding.var.get());
    if (it == index_of_.end()) return ExprMutator::MutateBinding(binding);
    const CallNode* call = As<CallNode>(binding.value);
    const PrimExpr& offset = plan_.placement.offsets[it->second];
    // Where bounds made a number of a size, lowering takes that number and computes none of its own.
    const std::vector<PrimExpr>& dims = *As<TensorTypeNode>(call->type)->dims;
    const bool is_symbolic =
        !std::ranges::all_of(dims, [](const PrimExpr& dim) { return AsConstInt(dim).has_value(); });
    AttrValue bytes;
    if (const auto number = AsConstInt(plan_.tensors[it->second].size_bytes); number && is_symbolic) bytes = *number;
    auto placed = CallNode(op::GetOp(op::names::kAllocTensorInStorage),
                           {storage_, Make<PrimValueNode>(offset), call->args[0], call->args[1]},
                           {{"bytes", std::move(bytes)}}, {}, call->type);
    placed.span = call->span;
    Emit({binding.var, Make<CallNode>(std::move(placed)), nullptr, binding.span});
  }

 private:
  const Liveness& liveness_;
  const Plan& plan_;
  std::unordered_map<const VarNode*, size_t> index_of_;
  Var storage_;
};

}  // namespace

const VarNode* ViewedVar(const Expr& value) {
  const CallNode* call = As<CallNode>(value);
  const op::OpRow* row = call == nullptr ? nullptr : op::RowOf(Ref<CallNode>(call));
  const bool is_view = row != nullptr && (row->is_view || op::IsCallOf(*call, op::names::kMemoryBitcast));
  return is_view ? As<VarNode>(call->args.at(0)) : nullptr;
}

Result<IRModule> PlanMemory(IRModule module, transform::PassContext&) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const IRModule::Entry& entry : entries) {
    Function function = AsRef<FunctionNode>(entry.function);
    if (!function) continue;
    INGOT_ASSIGN_OR_RETURN(const std::vector<transform::StateParam> states, transform::StateParamsOf(function));
    const Liveness liveness(module, entry.var->name, function, states);
    const std::vector<PrimVar> symbols = SymbolsOf(function);
    // The arena's size is computed when the function is called, so a size that depends on a value computed later has no
    // place in it.
    const auto is_known_at_entry = [&](const PrimExpr& size) {
      const std::vector<PrimVar> free = FreePrimVars(size);
      return std::ranges::all_of(free, [&](const PrimVar& var) {
        return std::ranges::any_of(symbols, [&](const PrimVar& symbol) { return symbol.same_as(var); });
      });
    };
    std::vector<size_t> planned;
    for (size_t i = 0; i < liveness.tensors().size(); ++i) {
      const Liveness::Tensor& tensor = liveness.tensors()[i];
      if (tensor.leaves || liveness.in_place(tensor.var.get()) != nullptr || HasLongDim(tensor.var)) continue;
      const auto type = Downcast<TensorTypeNode>(tensor.var->type);
      if (is_known_at_entry(AlignedSizeBytes(*type->dims, *type->dtype))) planned.push_back(i);
    }
    if (planned.empty()) continue;
    const auto sized = [&](const Attrs& bounds) {
      std::vector<PlannedTensor> tensors;
      for (size_t i : planned) {
        const Liveness::Tensor& tensor = liveness.tensors()[i];
        const auto type = Downcast<TensorTypeNode>(tensor.var->type);
        tensors.push_back(MakePlanned(*type->dims, *type->dtype, bounds, tensor.first, tensor.last));
      }
      return tensors;
    };
    const Plan plan = [&] {
      std::vector<PlannedTensor> bounded = sized(function->attrs);
      const auto is_number = [](const PlannedTensor& tensor) { return AsConstInt(tensor.size_bytes).has_value(); };
      if (std::ranges::all_of(bounded, is_number)) {
        Placement numbers = PlaceTensors(bounded);
        if (*AsConstInt(numbers.peak) <= kMaxBoundedPeakBytes) return Plan{std::move(bounded), std::move(numbers)};
      }
      std::vector<PlannedTensor> unbounded = sized({});
      Placement placement = PlaceTensors(unbounded);
      return Plan{std::move(unbounded), std::move(placement)};
    }();
    PlanRewriter rewriter(liveness, planned, plan);
    module.Set(entry.var, rewriter.MutateFunction(function));
  }
  return module;
}

}  // namespace ingot::memory
