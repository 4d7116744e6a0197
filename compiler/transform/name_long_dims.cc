// name_long_dims
//   Before: parameters of tensor functions may have dims that are long formulas of symbols.
//   After:  a dim whose formula would take more than about half of the steps that a formula of the file has is a symbol,
//           which the parameter's shape binds, and so are the extents that were this formula. Callers compute its value
//           from their argument's type, in as many formulas as it takes. So is a dim with a choice, as a broadcast of unknown
//           lengths has it: no rule learns anything from it, and every size that it is part of is long. It is a symbol
//           wherever it stands. For CUDA, where a launch may have a thread for each element, the longest dims of a parameter
//           are symbols until the formula of its number of elements leaves a quarter of the steps to what the launch adds.
//   Last, because fusion compares the formulas.
#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/passes.h"
#include "runtime/dim_code.h"

namespace ingot::transform {

namespace {

using ir::Buffer;
using ir::PrimExpr;

// The number of the formula's nodes, up to one more than all steps. Each takes a step, or a few.
int NumNodes(const PrimExpr& dim) {
  struct Counter : ir::PrimVisitor {
    void VisitPrim(const PrimExpr& expr) override {
      if (++count <= DimCode::kMaxSteps) ir::PrimVisitor::VisitPrim(expr);
    }
    int count = 0;
  };
  Counter counter;
  counter.VisitPrim(dim);
  return counter.count;
}

bool IsLongDim(const PrimExpr& dim) { return NumNodes(dim) > DimCode::kMaxSteps / 2; }

// Whether a choice is part of the formula.
bool HasChoice(const PrimExpr& dim) {
  struct Finder : ir::PrimVisitor {
    void VisitPrim(const PrimExpr& expr) override {
      found |= expr->kind == ir::PrimKind::kSelect;
      if (!found) ir::PrimVisitor::VisitPrim(expr);
    }
    bool found = false;
  };
  Finder finder;
  finder.VisitPrim(dim);
  return finder.found;
}

// Replaces formulas by their symbols where they are extents: of buffers, loops and iteration variables; choices, too,
// where they are parts of other formulas.
class DimNamer : public ir::StmtMutator {
 public:
  void Name(const PrimExpr& dim) {
    if (!SymbolOr(dim).same_as(dim)) return;
    const ir::PrimVar symbol = ir::MakePrimVar("dim" + std::to_string(num_symbols_++), dim->dtype);
    symbols_.emplace(ir::IdentityHash(dim), std::pair(dim, symbol));
    has_choices_ |= HasChoice(dim);
  }
  // Names the longest dims until the formula of their product has at most so many nodes.
  void NameLongest(std::vector<PrimExpr> dims, int most) {
    for (PrimExpr& dim : dims) dim = SymbolOr(dim);
    const auto total = [&] {
      return std::accumulate(dims.begin(), dims.end(), 0,
                             [](int sum, const PrimExpr& dim) { return sum + 1 + NumNodes(dim); });
    };
    while (total() > most) {
      PrimExpr& longest = *std::ranges::max_element(dims, {}, NumNodes);
      if (NumNodes(longest) == 1) return;
      Name(longest);
      longest = SymbolOr(longest);
    }
  }
  bool empty() const { return symbols_.empty(); }

  Buffer MutateBuffer(const Buffer& buffer) override {
    const auto [it, is_new] = buffers_.try_emplace(buffer, buffer);
    if (!is_new) return it->second;
    ir::BufferNode copy = *buffer;
    bool is_changed = false;
    for (PrimExpr& dim : copy.shape) {
      PrimExpr named = SymbolOr(dim);
      if (named.same_as(dim)) named = MutatePrim(dim);
      is_changed |= !named.same_as(dim);
      dim = named;
    }
    return is_changed ? buffers_[buffer] = ir::Make<ir::BufferNode>(std::move(copy)) : buffer;
  }

 protected:
  using StmtMutator::Mutate;
  PrimExpr MutatePrim(const PrimExpr& expr) override {
    if (!has_choices_) return StmtMutator::MutatePrim(expr);
    const PrimExpr named = HasChoice(expr) ? SymbolOr(expr) : expr;
    return named.same_as(expr) ? StmtMutator::MutatePrim(expr) : named;
  }
  ir::Stmt Mutate(const ir::Ref<ir::ForNode>& loop) override {
    const ir::Stmt mutated = StmtMutator::Mutate(loop);
    const PrimExpr extent = SymbolOr(loop->extent);
    if (extent.same_as(loop->extent)) return mutated;
    ir::ForNode copy = *ir::As<ir::ForNode>(mutated);
    copy.extent = extent;
    return ir::Make<ir::ForNode>(std::move(copy));
  }
  ir::Stmt Mutate(const ir::Block& block) override {
    ir::BlockNode copy = *ir::As<ir::BlockNode>(StmtMutator::Mutate(block));
    for (ir::IterVar& iter : copy.iter_vars) {
      const PrimExpr extent = SymbolOr(iter->domain.extent);
      if (extent.same_as(iter->domain.extent)) continue;
      ir::IterVarNode named = *iter;
      named.domain.extent = extent;
      iter = ir::Make<ir::IterVarNode>(std::move(named));
    }
    return ir::Make<ir::BlockNode>(std::move(copy));
  }

 private:
  PrimExpr SymbolOr(const PrimExpr& extent) const {
    if (symbols_.empty()) return extent;
    const auto [begin, end] = symbols_.equal_range(ir::IdentityHash(extent));
    for (auto it = begin; it != end; ++it) {
      if (ir::StructuralEqual(it->second.first, extent)) return it->second.second;
    }
    return extent;
  }

  std::unordered_multimap<uint64_t, std::pair<PrimExpr, ir::PrimVar>> symbols_;  // by the formula's hash
  std::unordered_map<Buffer, Buffer, ir::RefHash, ir::RefSame> buffers_;
  size_t num_symbols_ = 0;
  bool has_choices_ = false;  // whether a formula with a choice has a symbol
};

}  // namespace

Result<ir::IRModule> NameLongDims(ir::IRModule module, PassContext& context) {
  const bool is_cuda = context.options.target.kind == Target::Kind::kCuda;
  for (const ir::IRModule::Entry& entry : std::vector(module.functions().begin(), module.functions().end())) {
    const ir::PrimFunc function = module.FindPrimFunc(entry.var->name);
    if (function == nullptr) continue;
    DimNamer namer;
    for (const ir::PrimFuncParam& param : function->params) {
      if (param.buffer == nullptr) continue;
      for (const PrimExpr& dim : param.buffer->shape) {
        if (HasChoice(dim) || IsLongDim(dim)) namer.Name(dim);
      }
      if (is_cuda) namer.NameLongest(param.buffer->shape, DimCode::kMaxSteps * 3 / 4);
    }
    if (namer.empty()) continue;
    ir::PrimFuncNode copy = *function;
    for (ir::PrimFuncParam& param : copy.params) {
      if (param.buffer != nullptr) param.buffer = namer.MutateBuffer(param.buffer);
    }
    copy.body = namer.MutateStmt(copy.body);
    module.Set(entry.var, ir::Make<ir::PrimFuncNode>(std::move(copy)));
  }
  return module;
}

}  // namespace ingot::transform
