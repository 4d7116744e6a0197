// tensorize: replaces a nest of loops that computes what an intrinsic describes by the intrinsic's implementation.
//
// The nest's block is seen as blocks of blocks (inner_nest.h), whose outer variables are the o's. Then the description is
// matched with the body: both are walked together, with the nest's loops in place of the description's iteration
// variables. Each buffer D of the description, accessed at d where the body accesses a buffer X at x, is the box of X that
// starts at x - d; that place may depend on the o's only. The implementation, with its buffers replaced by these boxes, is
// the new block's body.
#include <algorithm>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/fresh_copy.h"
#include "compiler/schedule/primitives.h"
#include "compiler/schedule/primitives/inner_nest.h"
#include "compiler/schedule/region.h"
#include "compiler/schedule/tensor_intrin.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr const char* kTensorize = "tensorize";

// Where a buffer of the intrinsic lies in the actual buffer, whose last dimensions are the intrinsic's.
struct Box {
  Buffer actual;
  std::vector<PrimExpr> base;  // one per dimension of the actual buffer
};
using Boxes = std::unordered_map<const BufferNode*, Box>;

// base + index, where the index may be a vector.
PrimExpr Shifted(const PrimExpr& base, const PrimExpr& index) {
  if (index->dtype.is_scalar()) return base + index;
  if (const auto* ramp = As<RampNode>(index)) return Make<RampNode>(base + ramp->base, ramp->stride, ramp->lanes);
  return Make<BinaryNode>(BinaryOp::kAdd, Make<BroadcastNode>(base, index->dtype.lanes), index);
}

std::vector<PrimExpr> InBox(const Box& box, const std::vector<PrimExpr>& indices) {
  std::vector<PrimExpr> result = box.base;
  const size_t first = result.size() - indices.size();
  for (size_t i = 0; i < indices.size(); ++i) result[first + i] = Shifted(result[first + i], indices[i]);
  return result;
}

// Walks a description and a body together and collects the boxes; false where they differ.
class Matcher {
 public:
  // vars: from the description's iteration variables and symbols to the nest's loops and extents.
  Matcher(const PrimVarMap& vars, const std::vector<PrimVar>& inner, arith::Analyzer& analyzer)
      : vars_(vars), inner_(inner), analyzer_(analyzer) {}

  Boxes boxes;

  bool Match(const Stmt& described, const Stmt& actual) {
    const auto *a = As<SeqNode>(described), *b = As<SeqNode>(actual);
    if (a != nullptr || b != nullptr) {
      if (a == nullptr || b == nullptr || a->stmts.size() != b->stmts.size()) return false;
      for (size_t i = 0; i < a->stmts.size(); ++i) {
        if (!Match(a->stmts[i], b->stmts[i])) return false;
      }
      return true;
    }
    const auto *x = As<BufferStoreNode>(described), *y = As<BufferStoreNode>(actual);
    return x != nullptr && y != nullptr && MatchAccess(x->buffer, x->indices, y->buffer, y->indices) &&
           Match(x->value, y->value);
  }

 private:
  bool MatchAccess(const Buffer& described, const std::vector<PrimExpr>& d, const Buffer& actual,
                   const std::vector<PrimExpr>& x) {
    if (described->dtype != actual->dtype || x.size() < d.size()) return false;
    Box box{actual, x};
    const size_t first = x.size() - d.size();
    for (size_t i = 0; i < x.size(); ++i) {
      if (i >= first) box.base[i] = analyzer_.Simplify(x[i] - Substitute(d[i - first], vars_));
      if (UsesAnyVar(box.base[i], inner_)) return false;
    }
    const auto [it, is_new] = boxes.emplace(described.get(), box);
    if (is_new) return true;
    if (!it->second.actual.same_as(actual)) return false;
    for (size_t i = 0; i < x.size(); ++i) {
      if (!analyzer_.ProveEqual(it->second.base[i], box.base[i])) return false;
    }
    return true;
  }

  bool MatchAll(const std::vector<PrimExpr>& a, const std::vector<PrimExpr>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!Match(a[i], b[i])) return false;
    }
    return true;
  }

  bool MatchBinary(const BinaryNode& a, const BinaryNode& b) {
    if (a.op != b.op) return false;
    const Boxes before = boxes;
    if (Match(a.a, b.a) && Match(a.b, b.b)) return true;
    boxes = before;
    const bool commutes =
        a.op == BinaryOp::kAdd || a.op == BinaryOp::kMul || a.op == BinaryOp::kMin || a.op == BinaryOp::kMax;
    return commutes && Match(a.a, b.b) && Match(a.b, b.a);
  }

  bool Match(const PrimExpr& a, const PrimExpr& b) {
    if (a->dtype != b->dtype) return false;
    if (a->kind != b->kind || a->kind == PrimKind::kPrimVar) {
      return a->dtype.is_int() && a->dtype.is_scalar() && analyzer_.ProveEqual(Substitute(a, vars_), b);
    }
    switch (a->kind) {
      case PrimKind::kIntImm:
        return static_cast<const IntImmNode&>(*a).value == static_cast<const IntImmNode&>(*b).value;
      case PrimKind::kFloatImm:
        return static_cast<const FloatImmNode&>(*a).value == static_cast<const FloatImmNode&>(*b).value;
      case PrimKind::kBinary:
        return MatchBinary(static_cast<const BinaryNode&>(*a), static_cast<const BinaryNode&>(*b));
      case PrimKind::kNot:
        return Match(static_cast<const NotNode&>(*a).a, static_cast<const NotNode&>(*b).a);
      case PrimKind::kCast:
        return Match(static_cast<const CastNode&>(*a).value, static_cast<const CastNode&>(*b).value);
      case PrimKind::kSelect: {
        const auto &x = static_cast<const SelectNode&>(*a), &y = static_cast<const SelectNode&>(*b);
        return Match(x.condition, y.condition) && Match(x.true_value, y.true_value) &&
               Match(x.false_value, y.false_value);
      }
      case PrimKind::kPrimCall: {
        const auto &x = static_cast<const PrimCallNode&>(*a), &y = static_cast<const PrimCallNode&>(*b);
        return x.op == y.op && MatchAll(x.args, y.args);
      }
      case PrimKind::kBufferLoad: {
        const auto &x = static_cast<const BufferLoadNode&>(*a), &y = static_cast<const BufferLoadNode&>(*b);
        return MatchAccess(x.buffer, x.indices, y.buffer, y.indices);
      }
      case PrimKind::kPrimVar:
      case PrimKind::kStringImm:
      case PrimKind::kRamp:
      case PrimKind::kBroadcast:
      case PrimKind::kShuffle:
      case PrimKind::kLet:
      case PrimKind::kReduce:
      case PrimKind::kProducerLoad:
        return false;
    }
    INGOT_UNREACHABLE("PrimKind");
  }

  const PrimVarMap& vars_;
  const std::vector<PrimVar>& inner_;
  arith::Analyzer& analyzer_;
};

// Rewrites the implementation to the actual buffers.
class Instantiator : public StmtMutator {
 public:
  Instantiator(const Boxes& boxes, const PrimVarMap& symbols) : boxes_(boxes), symbols_(symbols) {}

 protected:
  using StmtMutator::Mutate;
  PrimExpr Mutate(const Ref<PrimVarNode>& var) override {
    const auto it = symbols_.find(var);
    return it == symbols_.end() ? PrimExpr(var) : it->second;
  }
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    const PrimExpr mutated = StmtMutator::Mutate(load);
    const auto* node = As<BufferLoadNode>(mutated);
    const auto it = boxes_.find(node->buffer.get());
    if (it == boxes_.end()) return mutated;
    return Make<BufferLoadNode>(it->second.actual, InBox(it->second, node->indices));
  }
  Stmt Mutate(const Ref<BufferStoreNode>& store) override {
    const Stmt mutated = StmtMutator::Mutate(store);
    const auto* node = As<BufferStoreNode>(mutated);
    const auto it = boxes_.find(node->buffer.get());
    if (it == boxes_.end()) return mutated;
    return Make<BufferStoreNode>(it->second.actual, node->value, InBox(it->second, node->indices));
  }

 private:
  const Boxes& boxes_;
  const PrimVarMap& symbols_;
};

class Tensorizer {
 public:
  Tensorizer(ScheduleState& state, const LoopSite& place, TensorIntrin intrin)
      : state_(state), place_(place), intrin_(std::move(intrin)) {}

  Status Run() {
    INGOT_ASSIGN_OR_RETURN(nest_, FindInnerNest(state_, place_, kTensorize));
    INGOT_ASSIGN_OR_RETURN(described_, FindDescribedBlock(intrin_->description));
    INGOT_RETURN_IF_ERROR(MatchLoops());
    INGOT_RETURN_IF_ERROR(CheckTypes());
    INGOT_RETURN_IF_ERROR(MatchBodies());
    state_.Replace(place_.loop, NewBlock());
    return Status();
  }

 private:
  Status No(const std::string& what) const { return Refuse(kTensorize, Describe(place_), what); }
  std::string Named() const { return "intrinsic \"" + intrin_->name + "\""; }

  Status MatchLoops() {
    if (nest_.loops.size() != described_.loops.size()) {
      return No(Named() + " has " + std::to_string(described_.loops.size()) + " loops, the nest " +
                std::to_string(nest_.loops.size()));
    }
    const BlockNode& block = *described_.realize->block;
    for (size_t i = 0; i < nest_.loops.size(); ++i) {
      vars_.emplace(block.iter_vars[i]->var, nest_.loops[i]->var);
      const PrimExpr& expected = described_.loops[i]->extent;
      const PrimExpr& extent = nest_.loops[i]->extent;
      if (const auto symbol = AsRef<PrimVarNode>(expected)) {
        if (UsesAnyVar(extent, nest_.vars))
          return No("the extent of " + nest_.loops[i]->var->name + " depends on the nest");
        const auto [it, is_new] = vars_.emplace(symbol, extent);
        if (!is_new && !nest_.analyzer.ProveEqual(it->second, extent)) {
          return No(Named() + " has one extent " + symbol->name + ", the nest several");
        }
      } else if (!nest_.analyzer.ProveEqual(expected, extent)) {
        const auto constant = AsConstInt(expected);
        return No("loop " + nest_.loops[i]->var->name + " of the nest should have the extent " +
                  (constant ? std::to_string(*constant) : "of the description") + " of " + Named());
      }
    }
    return Status();
  }

  Status CheckTypes() const {
    for (size_t v = 0; v < nest_.iterations.size(); ++v) {
      const IterVarNode& iter = *nest_.realize->block->iter_vars[v];
      for (size_t i = 0; i < nest_.loops.size(); ++i) {
        const bool is_bound =
            UsesVar(nest_.realize->iter_values[v], nest_.vars[i]) && !IsConstInt(nest_.loops[i]->extent, 1);
        if (!is_bound || described_.realize->block->iter_vars[i]->type == iter.type) continue;
        return No("iteration " + iter.var->name + " is of another type in " + Named());
      }
    }
    return Status();
  }

  Status MatchBodies() {
    const BlockNode& block = *nest_.realize->block;
    const BlockNode& expected = *described_.realize->block;
    if (static_cast<bool>(block.init) != static_cast<bool>(expected.init)) {
      return No(block.init ? Named() + " has no initialisation: use decompose_reduction first"
                           : Named() + " starts with an initialisation, which the block has not");
    }
    for (size_t i = 0; i < nest_.iterations.size(); ++i) {
      const IterVarNode& outer = *nest_.iterations[i].outer;
      if (!block.init || outer.type != IterType::kReduce || IsConstInt(outer.domain.extent, 1)) continue;
      return No("the reduction over " + block.iter_vars[i]->var->name + " goes on outside of the nest");
    }
    const PrimVarMap values = nest_.Values();
    Matcher matcher(vars_, nest_.vars, nest_.analyzer);
    const bool matches = matcher.Match(expected.body, Substitute(block.body, values)) &&
                         (!block.init || matcher.Match(expected.init, Substitute(block.init, values)));
    if (!matches) return No("block \"" + block.name + "\" does not compute what " + Named() + " describes");
    boxes_ = std::move(matcher.boxes);
    // The implementation may store results before it has read all inputs.
    for (const BufferRegion& write : expected.writes) {
      const Box& written = boxes_.at(write.buffer.get());
      for (const auto& [described, box] : boxes_) {
        if (described == write.buffer.get() || !box.actual.same_as(written.actual)) continue;
        return No(box.actual->name + " is both an input and a result");
      }
    }
    for (const PrimFuncParam& param : intrin_->description->params) {
      if (boxes_.count(param.buffer.get()) == 0) return No(Named() + " does not use its buffer " + param.buffer->name);
    }
    return Status();
  }

  std::vector<BufferRegion> Regions(const std::vector<BufferRegion>& described) const {
    const std::vector<InnerVar> inner = nest_.InnerVars();
    std::vector<BufferRegion> regions;
    arith::Analyzer analyzer = nest_.analyzer;
    for (const BufferRegion& region : described) {
      BufferRegion renamed{region.buffer, {}};
      for (const Range& range : region.region) {
        renamed.region.push_back({Substitute(range.min, vars_), Substitute(range.extent, vars_)});
      }
      renamed = RelaxRegion(renamed, inner, analyzer);
      const Box& box = boxes_.at(region.buffer.get());
      BufferRegion actual{box.actual, {}};
      const size_t first = box.base.size() - renamed.region.size();
      for (size_t d = 0; d < box.base.size(); ++d) {
        Range range{box.base[d], IntImm(box.base[d]->dtype, 1)};
        if (d >= first) {
          const Range& part = renamed.region[d - first];
          range = {analyzer.Simplify(box.base[d] + part.min), part.extent};
        }
        actual.region.push_back(std::move(range));
      }
      regions.push_back(std::move(actual));
    }
    return regions;
  }

  Stmt NewBlock() const {
    const BlockNode& old = *nest_.realize->block;
    Boxes boxes;
    PrimVarMap symbols;
    for (size_t i = 0; i < intrin_->description->params.size(); ++i) {
      const Buffer& described = intrin_->description->params[i].buffer;
      const Buffer& implemented = intrin_->implementation->params[i].buffer;
      boxes.emplace(implemented.get(), boxes_.at(described.get()));
      for (size_t d = 0; d < described->shape.size(); ++d) {
        const auto from = AsRef<PrimVarNode>(implemented->shape[d]);
        if (from) symbols.emplace(from, vars_.at(AsRef<PrimVarNode>(described->shape[d])));
      }
    }
    const BlockNode& root = *As<BlockRealizeNode>(intrin_->implementation->body)->block;
    Stmt body = Instantiator(boxes, symbols).MutateStmt(root.body);
    for (size_t i = root.alloc_buffers.size(); i-- > 0;) {
      body = Make<AllocateNode>(root.alloc_buffers[i], std::move(body));
    }
    const BlockNode& described = *described_.realize->block;
    BlockNode block(old.name, {}, Regions(described.reads), Regions(described.writes), ir::CopyFresh(body));
    block.annotations = old.annotations.With(kTensorized, intrin_->name);
    BlockRealizeNode realize({}, BoolImm(true), nullptr);
    for (const SplitIteration& part : nest_.iterations) {
      block.iter_vars.push_back(part.outer);
      realize.iter_values.push_back(part.binding);
    }
    realize.block = Make<BlockNode>(std::move(block));
    return Make<BlockRealizeNode>(std::move(realize));
  }

  ScheduleState& state_;
  const LoopSite& place_;
  TensorIntrin intrin_;
  DescribedBlock described_;
  InnerNest nest_;
  PrimVarMap vars_;  // from variables of the description to loops of the nest and extents
  Boxes boxes_;
};

}  // namespace

bool HoldsLoops(const BlockNode& block) {
  return block.annotations.Find(kTensorized) != nullptr || !ScheduleState::BlocksIn(block.body).empty();
}

Status Tensorize(ScheduleState& state, const LoopVar& loop, const std::string& intrinsic) {
  INGOT_ASSIGN_OR_RETURN(const LoopSite place, state.FindLoop(loop));
  const TensorIntrin intrin = state.FindIntrinsic(intrinsic);
  if (!intrin) return Refuse(kTensorize, Describe(place), "no intrinsic \"" + intrinsic + "\" is registered");
  return Tensorizer(state, place, intrin).Run();
}

}  // namespace ingot::schedule
