#include "compiler/lower/plan_memory.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/codegen/dim_code_lowering.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/program_lowering.h"
#include "compiler/lower/tail_calls.h"
#include "compiler/lower/vm_types.h"
#include "compiler/op/registry.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

constexpr int64_t kAlignment = 64;

// Value of a size for an ordering that prefers large tensors: symbols count as 64.
double TypicalValue(const PrimExpr& expr) {
  if (const int64_t* value = AsConstInt(expr)) return static_cast<double>(*value);
  PrimVarMap typical;
  for (const PrimVar& var : FreePrimVars(expr)) typical[var] = Int64(64);
  arith::Analyzer analyzer;
  const PrimExpr value = analyzer.Simplify(Substitute(expr, typical));
  const int64_t* constant = AsConstInt(value);
  return constant == nullptr ? 0.0 : static_cast<double>(*constant);
}

// Placement of tensors whose sizes are all constants: plain integers, the same algorithm.
std::pair<std::vector<int64_t>, int64_t> PlaceConstants(const std::vector<PlannedTensor>& tensors,
                                                        const std::vector<size_t>& order) {
  std::vector<int64_t> offsets(tensors.size(), 0);
  std::vector<size_t> placed;  // ordered by offset
  int64_t peak = 0;
  for (size_t i : order) {
    const int64_t size = *AsConstInt(tensors[i].size_bytes);
    int64_t offset = 0;
    for (size_t j : placed) {
      if (tensors[j].last < tensors[i].first || tensors[i].last < tensors[j].first) continue;
      if (offset + size <= offsets[j]) break;  // the gap before j is wide enough
      offset = std::max(offset, offsets[j] + *AsConstInt(tensors[j].size_bytes));
    }
    offsets[i] = offset;
    peak = std::max(peak, offset + size);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), i, [&](size_t a, size_t b) { return offsets[a] < offsets[b]; }),
        i);
  }
  return {std::move(offsets), peak};
}

// A formula of the file has a limited number of steps.
bool FitsFormula(const PrimExpr& expr) {
  const std::vector<PrimVar> vars = FreePrimVars(expr);
  return codegen::LowerToDimCode(expr, vars).ok();
}

// What no formula can place (many unlike symbols) has a null offset: it stays an allocation of its own.
Placement PlaceSymbolic(const std::vector<PlannedTensor>& tensors, const std::vector<size_t>& order) {
  arith::Analyzer analyzer;
  Placement result{std::vector<PrimExpr>(tensors.size()), Int64(0)};
  std::vector<size_t> placed;
  for (size_t i : order) {
    const PrimExpr& size = tensors[i].size_bytes;
    std::vector<size_t> neighbours;
    for (size_t j : placed) {
      if (tensors[j].last >= tensors[i].first && tensors[i].last >= tensors[j].first) neighbours.push_back(j);
    }
    auto end_of = [&](size_t j) { return analyzer.Simplify(result.offsets[j] + tensors[j].size_bytes); };
    auto is_free = [&](const PrimExpr& offset) {
      const PrimExpr end = offset + size;
      return std::all_of(neighbours.begin(), neighbours.end(), [&](size_t j) {
        return analyzer.ProveLessEqual(end, result.offsets[j]) || analyzer.ProveLessEqual(end_of(j), offset);
      });
    };
    std::vector<PrimExpr> candidates{Int64(0)};
    for (size_t j : neighbours) candidates.push_back(end_of(j));
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const PrimExpr& a, const PrimExpr& b) { return TypicalValue(a) < TypicalValue(b); });
    PrimExpr offset = result.peak;  // free whatever the values are
    for (const PrimExpr& candidate : candidates) {
      if (is_free(candidate)) {
        offset = candidate;
        break;
      }
    }
    const PrimExpr end = analyzer.Simplify(offset + size);
    PrimExpr peak = result.peak;
    if (analyzer.ProveLessEqual(peak, end)) {
      peak = end;
    } else if (!analyzer.ProveLessEqual(end, peak)) {
      peak = analyzer.Simplify(Max(peak, end));
    }
    if (!FitsFormula(offset) || !FitsFormula(peak)) continue;
    result.offsets[i] = offset;
    result.peak = peak;
    placed.push_back(i);
  }
  return result;
}

// What a function allocates and where each tensor is used last. Branches stand one after the other, as they do in
// bytecode, so that what lives in one of them alone may share memory with what lives in the other.
class Liveness {
 public:
  Liveness(std::string_view name, const Function& function) : tail_calls_(FindTailCalls(name, function)) {
    VisitSeq(*function->body);
  }

  struct Tensor {
    Var var;
    int64_t first, last;
    bool leaves = false;  // returned, tupled, captured: it must be counted
  };
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  // What a sequence gives outlives it: a function's result, or a branch's value.
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
    // The next turn of a loop keeps its arguments.
    if (tail_calls_.Contains(binding.value)) return Escape(binding.value);
    if (const CallNode* call = As<CallNode>(binding.value)) {
      const op::OpRow* row = op::RowOf(Ref<CallNode>(call));
      if (row == op::FindOp("builtin.alloc_tensor")) {
        base_[binding.var.get()] = tensors_.size();
        tensors_.push_back({binding.var, index_, index_});
        return;
      }
      for (const Expr& arg : call->args) Use(arg);
      if (row == op::FindOp("make_closure")) Escape(call->args.at(1));
      const bool shows_argument = row != nullptr && (row->is_view || row->effect == op::Effect::kWritesInPlace);
      if (shows_argument) Alias(binding.var, call->args.at(0));
      return;
    }
    if (As<VarNode>(binding.value) != nullptr) {
      Use(binding.value);
      Alias(binding.var, binding.value);
      return;
    }
    if (const TupleGetItemNode* item = As<TupleGetItemNode>(binding.value)) {
      Use(item->tuple);
      return;
    }
    Escape(binding.value);  // tuples, functions: whatever they mention is counted
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

  const TailCalls tail_calls_;
  int64_t index_ = 0;
  std::vector<Tensor> tensors_;
  std::unordered_map<const VarNode*, size_t> base_;  // a variable -> the tensor whose memory it shows
};

class Rewriter : public ExprMutator {
 public:
  Rewriter(const std::vector<Liveness::Tensor>& tensors, const std::vector<size_t>& planned, const Placement& placement)
      : placement_(placement) {
    for (size_t i = 0; i < planned.size(); ++i) {
      if (placement.offsets[i]) index_of_[tensors[planned[i]].var.get()] = i;
    }
  }

 protected:
  using ExprMutator::Mutate;
  void MutateBinding(const Binding& binding) override {
    if (!storage_) {
      auto type = Make<ObjectTypeNode>();
      storage_ = Make<VarNode>("storage", type);
      Emit({storage_,
            Make<CallNode>(op::GetOp("memory.alloc_storage"),
                           std::vector<Expr>{Make<ShapeExprNode>(std::vector<PrimExpr>{placement_.peak}),
                                             Make<PrimValueNode>(Int64(0)), Make<StringValueNode>("global"),
                                             Make<DataTypeValueNode>(DataType::UInt(8))},
                           Attrs{}, std::vector<Type>{}, type),
            nullptr, Span{}});
    }
    auto it = index_of_.find(binding.var.get());
    if (it == index_of_.end()) return ExprMutator::MutateBinding(binding);
    const CallNode* call = As<CallNode>(binding.value);
    auto placed =
        CallNode(op::GetOp("memory.alloc_tensor"),
                 {storage_, Make<PrimValueNode>(placement_.offsets[it->second]), call->args[0], call->args[1]}, {}, {},
                 call->type);
    placed.span = call->span;
    Emit({binding.var, Make<CallNode>(std::move(placed)), nullptr, binding.span});
  }

 private:
  const Placement& placement_;
  std::unordered_map<const VarNode*, size_t> index_of_;
  Var storage_;
};

}  // namespace

PrimExpr AlignedSizeBytes(const std::vector<PrimExpr>& dims, DataType dtype) {
  PrimExpr elements = Int64(1);
  for (const PrimExpr& dim : dims) elements = elements * dim;
  const PrimExpr bits = elements * dtype.total_bits();
  const PrimExpr bytes =
      dtype.total_bits() % 8 == 0 ? elements * (dtype.total_bits() / 8) : FloorDiv(bits + 7, Int64(8));
  arith::Analyzer analyzer;
  const PrimExpr simple = analyzer.Simplify(bytes);
  const std::vector<PrimVar> vars = FreePrimVars(simple);
  if (vars.empty()) return analyzer.Simplify(FloorDiv(simple + (kAlignment - 1), Int64(kAlignment)) * kAlignment);
  auto round_up = [](int64_t value) { return (value + kAlignment - 1) / kAlignment * kAlignment; };
  if (std::optional<arith::LinearForm> form = arith::DetectLinear(simple, vars)) {
    bool all_constant = AsConstInt(form->constant) != nullptr && *AsConstInt(form->constant) >= 0;
    for (const PrimExpr& c : form->coefficients) all_constant &= AsConstInt(c) != nullptr && *AsConstInt(c) >= 0;
    if (all_constant) {
      PrimExpr rounded = Int64(round_up(*AsConstInt(form->constant)));
      for (size_t i = 0; i < vars.size(); ++i) {
        rounded = rounded + PrimExpr(vars[i]) * round_up(*AsConstInt(form->coefficients[i]));
      }
      return analyzer.Simplify(rounded);
    }
  }
  return analyzer.Simplify(FloorDiv(simple + (kAlignment - 1), Int64(kAlignment)) * kAlignment);
}

Placement PlaceTensors(const std::vector<PlannedTensor>& tensors) {
  std::vector<double> typical;
  bool all_constant = true;
  for (const PlannedTensor& tensor : tensors) {
    typical.push_back(TypicalValue(tensor.size_bytes));
    all_constant &= AsConstInt(tensor.size_bytes) != nullptr;
  }
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return typical[a] > typical[b]; });
  if (!all_constant) return PlaceSymbolic(tensors, order);
  auto [offsets, peak] = PlaceConstants(tensors, order);
  Placement result{{}, Int64(peak)};
  for (int64_t offset : offsets) result.offsets.push_back(Int64(offset));
  return result;
}

Result<IRModule> PlanMemory(IRModule module, transform::PassContext&) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const IRModule::Entry& entry : entries) {
    Function function = AsRef<FunctionNode>(entry.function);
    if (!function) continue;
    const Liveness liveness(entry.var->name, function);
    const std::vector<PrimVar> symbols = SignatureSymbols(std::span(function->params.data(), NumInputs(*function)));
    // The arena's size is known when the function is called: what depends on a value that is computed later has none.
    const auto is_known_at_entry = [&](const PrimExpr& size) {
      const std::vector<PrimVar> free = FreePrimVars(size);
      return std::ranges::all_of(free, [&](const PrimVar& var) {
        return std::ranges::any_of(symbols, [&](const PrimVar& symbol) { return symbol.same_as(var); });
      });
    };
    std::vector<size_t> planned;
    std::vector<PlannedTensor> tensors;
    for (size_t i = 0; i < liveness.tensors().size(); ++i) {
      const Liveness::Tensor& tensor = liveness.tensors()[i];
      if (tensor.leaves) continue;
      const auto type = Downcast<TensorTypeNode>(tensor.var->type);
      PrimExpr size = AlignedSizeBytes(*type->dims, *type->dtype);
      if (!is_known_at_entry(size)) continue;
      planned.push_back(i);
      tensors.push_back({std::move(size), tensor.first, tensor.last});
    }
    if (planned.empty()) continue;
    const Placement placement = PlaceTensors(tensors);
    Rewriter rewriter(liveness.tensors(), planned, placement);
    module.Set(entry.var, rewriter.MutateFunction(function));
  }
  return module;
}

}  // namespace ingot::lower
