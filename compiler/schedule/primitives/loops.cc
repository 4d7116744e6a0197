// Primitives that change loops and nothing else: split, fuse, reorder, partition.
#include <algorithm>
#include <unordered_map>

#include "compiler/arith/block_util.h"
#include "compiler/arith/linear_bound.h"
#include "compiler/ir/condition.h"
#include "compiler/schedule/primitives.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// Simplifies the bindings and predicate of each leaf block under the ranges of the loops around it, and adds a
// predicate if one is given.
class BindingSimplifier : public StmtMutator {
 public:
  BindingSimplifier(arith::Analyzer analyzer, PrimExpr predicate)
      : analyzer_(std::move(analyzer)), predicate_(std::move(predicate)) {}

 protected:
  using StmtMutator::Mutate;
  Stmt Mutate(const Ref<ForNode>& loop) override {
    analyzer_.Bind(loop->var, Range{loop->min, loop->extent});
    return StmtMutator::Mutate(loop);
  }
  Stmt Mutate(const Ref<BlockRealizeNode>& realize) override {
    BlockRealizeNode copy = *realize;
    for (PrimExpr& value : copy.iter_values) value = analyzer_.Simplify(value);
    if (predicate_) copy.predicate = Both(copy.predicate, predicate_);
    copy.predicate = analyzer_.Simplify(copy.predicate);
    return Make<BlockRealizeNode>(std::move(copy));
  }

 private:
  arith::Analyzer analyzer_;
  PrimExpr predicate_;
};

// extent / divisor where the division is proved to be exact, else nothing.
std::optional<PrimExpr> DivideExactly(const PrimExpr& extent, const PrimExpr& symbolic, arith::Analyzer& analyzer) {
  const PrimExpr quotient = analyzer.Simplify(FloorDiv(extent, symbolic));
  if (!analyzer.ProveEqual(quotient * symbolic, extent)) return std::nullopt;
  return quotient;
}
std::optional<PrimExpr> DivideExactly(const PrimExpr& extent, int64_t divisor, arith::Analyzer& analyzer) {
  if (const auto constant = AsConstInt(extent)) {
    if (*constant % divisor != 0) return std::nullopt;
    return IntImm(extent->dtype, *constant / divisor);
  }
  if (divisor == 1) return extent;
  if (const auto* product = As<BinaryNode>(extent); product != nullptr && product->op == BinaryOp::kMul) {
    const auto factor = AsConstInt(product->b);
    if (factor && *factor % divisor == 0) return product->a * (*factor / divisor);
  }
  if (!analyzer.ProveDivisible(extent, divisor)) return std::nullopt;
  return analyzer.Simplify(FloorDiv(extent, IntImm(extent->dtype, divisor)));
}

Status CheckPlainLoop(const ScheduleState& state, const char* primitive, const LoopSite& site) {
  if (site.loop->for_kind != ForKind::kSerial) {
    return Refuse(primitive, Describe(site),
                  "the loop is no longer serial; restructure before parallel, vectorize and "
                  "unroll");
  }
  if (!IsConstInt(site.loop->min, 0)) return Refuse(primitive, Describe(site), "the loop does not start at 0");
  for (const BlockSite& block : ScheduleState::BlocksIn(site.loop->body)) {
    if (state.IsRegular(block.block().name)) continue;
    return Refuse(primitive, Describe(site), "block \"" + block.block().name + "\" has bindings that are not simple");
  }
  return Status();
}

Stmt WithBody(const For& loop, Stmt body) {
  ForNode copy = *loop;
  copy.body = std::move(body);
  return Make<ForNode>(std::move(copy));
}

}  // namespace

Stmt SimplifyBindings(const Stmt& stmt, const std::vector<For>& outer, PrimExpr extra_predicate) {
  return BindingSimplifier(ScheduleState::MakeAnalyzer(outer), std::move(extra_predicate)).MutateStmt(stmt);
}

Stmt Nest(const std::vector<LoopVar>& vars, const std::vector<PrimExpr>& extents, Stmt body) {
  for (size_t i = vars.size(); i-- > 0;) {
    body = Make<ForNode>(vars[i], IntImm(vars[i]->dtype, 0), extents[i], ForKind::kSerial, std::move(body));
  }
  return body;
}

Result<std::vector<LoopVar>> Split(ScheduleState& state, const LoopVar& var,
                                   const std::vector<std::optional<PrimExpr>>& given) {
  INGOT_ASSIGN_OR_RETURN(const LoopSite site, state.FindLoop(var));
  INGOT_RETURN_IF_ERROR(CheckPlainLoop(state, "split", site));
  const DataType dtype = var->dtype;
  std::vector<std::optional<PrimExpr>> factors;
  int64_t constant = 1;
  PrimExpr product = IntImm(dtype, 1);
  int absent = 0;
  for (const std::optional<PrimExpr>& factor : given) {
    factors.push_back(factor ? std::optional<PrimExpr>(Cast(dtype, *factor)) : std::nullopt);
    absent += factor ? 0 : 1;
    if (!factor) continue;
    const auto value = AsConstInt(*factor);
    if (value && *value < 1) return Refuse("split", Describe(site), "factors must be at least 1");
    if (value && __builtin_mul_overflow(constant, *value, &constant)) {
      return Refuse("split", Describe(site), "the factors' product overflows");
    }
    product = product * *factors.back();
  }
  if (factors.empty() || absent > 1) return Refuse("split", Describe(site), "give factors, all but one at most");
  const PrimExpr& extent = site.loop->extent;
  arith::Analyzer analyzer = ScheduleState::MakeAnalyzer(site.outer);
  product = analyzer.Simplify(product);
  const bool is_constant = AsConstInt(product).has_value();
  const std::optional<PrimExpr> quotient =
      is_constant ? DivideExactly(extent, constant, analyzer) : DivideExactly(extent, product, analyzer);
  const bool exact = absent == 1 ? quotient.has_value() : analyzer.ProveEqual(extent, product);
  if (!exact && !is_constant && !analyzer.ProveLessEqual(IntImm(dtype, 1), product)) {
    return Refuse("split", Describe(site), "a symbolic factor may be 0, and does not divide the extent for certain");
  }
  if (absent == 0 && !exact && !analyzer.ProveLessEqual(extent, product)) {
    return Refuse("split", Describe(site),
                  "the factors' product " + (is_constant ? std::to_string(constant) + " " : std::string()) +
                      "may be below the extent");
  }
  std::vector<LoopVar> vars;
  std::vector<PrimExpr> extents;
  PrimExpr index = IntImm(dtype, 0);
  for (size_t i = 0; i < factors.size(); ++i) {
    vars.push_back(MakePrimVar(var->name + "_" + std::to_string(i), dtype));
    if (factors[i]) {
      extents.push_back(*factors[i]);
    } else {
      extents.push_back(quotient ? *quotient : analyzer.Simplify(FloorDiv(extent + (product - 1), product)));
    }
    index = index * extents.back() + vars.back();
  }
  Stmt body = Substitute(site.loop->body, {{var, index}});
  body = Nest(vars, extents, std::move(body));
  state.Replace(site.loop, SimplifyBindings(body, site.outer, exact ? nullptr : index < extent));
  return vars;
}

Result<LoopVar> Fuse(ScheduleState& state, const std::vector<LoopVar>& vars) {
  if (vars.empty()) return Status(StatusCode::kInvalidArgument, "fuse: no loops given");
  INGOT_ASSIGN_OR_RETURN(const LoopSite first, state.FindLoop(vars[0]));
  std::vector<For> nest{first.loop};
  for (size_t i = 1; i < vars.size(); ++i) {
    For next = AsRef<ForNode>(nest.back()->body);
    if (!next || !next->var.same_as(vars[i])) {
      return Refuse("fuse", Describe(first),
                    "loop " + vars[i]->name + " does not stand directly inside " + nest.back()->var->name);
    }
    if (UsesAnyVar(next->extent, vars)) {
      return Refuse("fuse", Describe(first), "the extent of " + vars[i]->name + " depends on a loop outside of it");
    }
    nest.push_back(std::move(next));
  }
  std::string name;
  PrimExpr extent = IntImm(vars[0]->dtype, 1);
  for (const For& loop : nest) {
    INGOT_RETURN_IF_ERROR(CheckPlainLoop(state, "fuse", {loop, {}}));
    name += (name.empty() ? "" : "_") + loop->var->name;
    extent = extent * loop->extent;
  }
  if (nest.size() > 1) name += "_fused";
  arith::Analyzer analyzer = ScheduleState::MakeAnalyzer(first.outer);
  extent = analyzer.Simplify(extent);
  LoopVar fused = MakePrimVar(name, vars[0]->dtype);
  PrimVarMap map;
  PrimExpr rest = fused;
  size_t first_long = 0;  // loops of one iteration are at 0 and take no part in the division
  while (first_long + 1 < nest.size() && IsConstInt(nest[first_long]->extent, 1)) ++first_long;
  for (size_t i = nest.size(); i-- > 0;) {
    if (i < first_long || (i > first_long && IsConstInt(nest[i]->extent, 1))) {
      map.emplace(vars[i], IntImm(vars[i]->dtype, 0));
    } else if (i == first_long) {
      map.emplace(vars[i], rest);
    } else {
      map.emplace(vars[i], FloorMod(rest, nest[i]->extent));
      rest = FloorDiv(rest, nest[i]->extent);
    }
  }
  Stmt loop = Nest({fused}, {extent}, Substitute(nest.back()->body, map));
  state.Replace(first.loop, SimplifyBindings(loop, first.outer));
  return fused;
}

Status Reorder(ScheduleState& state, const std::vector<LoopVar>& order) {
  std::vector<LoopSite> sites;
  for (const LoopVar& var : order) {
    INGOT_ASSIGN_OR_RETURN(LoopSite site, state.FindLoop(var));
    INGOT_RETURN_IF_ERROR(CheckPlainLoop(state, "reorder", site));
    sites.push_back(std::move(site));
  }
  if (sites.size() < 2) return Status();
  const auto [top, bottom] = std::minmax_element(
      sites.begin(), sites.end(), [](const LoopSite& a, const LoopSite& b) { return a.outer.size() < b.outer.size(); });
  // The loops from the outermost to the innermost of the given ones, which must be nested directly.
  std::vector<For> chain{top->loop};
  while (!chain.back().same_as(bottom->loop)) {
    For next = AsRef<ForNode>(chain.back()->body);
    if (!next) return Refuse("reorder", Describe(*top), "the loops are not one perfect nest");
    chain.push_back(std::move(next));
  }
  std::vector<size_t> slots;
  for (size_t i = 0; i < chain.size(); ++i) {
    if (std::any_of(order.begin(), order.end(), [&](const LoopVar& v) { return v.same_as(chain[i]->var); })) {
      slots.push_back(i);
    }
  }
  if (slots.size() != order.size()) return Refuse("reorder", Describe(*top), "the loops are not one perfect nest");
  const std::vector<BlockSite> blocks = ScheduleState::BlocksIn(chain.back()->body);
  if (blocks.size() != 1) return Refuse("reorder", Describe(*top), "there must be a single block inside");
  for (const IterVar& iter : blocks[0].block().iter_vars) {
    if (iter->type != IterType::kSpatial && iter->type != IterType::kReduce) {
      return Refuse("reorder", Describe(blocks[0]), "iteration " + iter->var->name + " is ordered");
    }
  }
  // The initialisation runs at the reduction's first values: they must still come first for each element.
  for (const For& loop : chain) {
    if (blocks[0].block().init && Binds(*blocks[0].realize, loop->var, IterType::kSpatial) &&
        Binds(*blocks[0].realize, loop->var, IterType::kReduce)) {
      return Refuse("reorder", Describe(*top), "loop " + loop->var->name + " is both spatial and a reduction");
    }
  }
  std::vector<For> reordered = chain;
  for (size_t i = 0; i < slots.size(); ++i) {
    reordered[slots[i]] = std::find_if(sites.begin(), sites.end(), [&](const LoopSite& site) {
                            return site.loop->var.same_as(order[i]);
                          })->loop;
  }
  for (const For& loop : chain) {
    for (const For& other : chain) {
      if (UsesVar(loop->extent, other->var)) {
        return Refuse("reorder", Describe(*top),
                      "the extent of " + loop->var->name + " depends on " + other->var->name);
      }
    }
  }
  Stmt body = chain.back()->body;
  for (size_t i = reordered.size(); i-- > 0;) body = WithBody(reordered[i], std::move(body));
  state.Replace(chain.front(), std::move(body));
  return Status();
}

namespace {

// Copies a loop's body for the remaining iterations: blocks get new names, loops and iteration variables are new, and
// buffers that live inside are replaced by the given copies.
class TailCopier : public StmtMutator {
 public:
  TailCopier(ScheduleState& state, BufferMap buffers) : state_(state), buffers_(std::move(buffers)) {}

 protected:
  using StmtMutator::Mutate;
  Buffer MutateBuffer(const Buffer& buffer) override {
    const auto it = buffers_.find(buffer);
    return it == buffers_.end() ? buffer : it->second;
  }
  PrimExpr Mutate(const Ref<PrimVarNode>& var) override {
    const auto it = vars_.find(var);
    return it == vars_.end() ? PrimExpr(var) : it->second;
  }
  Stmt Mutate(const Ref<ForNode>& loop) override {
    LoopVar var = MakePrimVar(loop->var->name, loop->var->dtype);
    vars_.emplace(loop->var, var);
    ForNode copy = *AsRef<ForNode>(StmtMutator::Mutate(loop));
    copy.var = var;
    return Make<ForNode>(std::move(copy));
  }
  // An allocation in a tensorized block gets a buffer of its own.
  Stmt Mutate(const Ref<AllocateNode>& allocate) override {
    BufferNode copy = *allocate->buffer;
    copy.data = MakePrimVar(copy.name, DataType::Handle());
    const Buffer fresh = Make<BufferNode>(std::move(copy));
    buffers_.emplace(allocate->buffer, fresh);
    return Make<AllocateNode>(fresh, MutateStmt(allocate->body), allocate->annotations);
  }
  Stmt Mutate(const Ref<BlockRealizeNode>& realize) override {
    BlockRealizeNode copy = *AsRef<BlockRealizeNode>(StmtMutator::Mutate(realize));
    BlockNode block = *copy.block;
    PrimVarMap fresh;
    for (IterVar& iter : block.iter_vars) {
      PrimVar var = MakePrimVar(iter->var->name, iter->var->dtype);
      fresh.emplace(iter->var, var);
      iter = Make<IterVarNode>(iter->domain, var, iter->type, iter->thread_tag);
    }
    block.body = Substitute(block.body, fresh);
    if (block.init) block.init = Substitute(block.init, fresh);
    for (std::vector<BufferRegion>* regions : {&block.reads, &block.writes}) {
      for (BufferRegion& region : *regions) {
        for (Range& range : region.region) range = {Substitute(range.min, fresh), Substitute(range.extent, fresh)};
      }
    }
    const bool recomputed = state_.IsRecomputed(block.name);
    block.name = state_.FreshBlockName(block.name + "_tail");
    if (recomputed) state_.MarkRecomputed(block.name);
    copy.block = Make<BlockNode>(std::move(block));
    return Make<BlockRealizeNode>(std::move(copy));
  }

 private:
  ScheduleState& state_;
  BufferMap buffers_;
  PrimVarMap vars_;
};

}  // namespace

namespace {

// Whether iterations depend on each other through the buffer, because the loop reduces into it.
bool IsCarried(const LoopSite& site, const Buffer& buffer) {
  const std::vector<BlockSite> inside = ScheduleState::BlocksIn(site.loop->body);
  return std::any_of(inside.begin(), inside.end(), [&](const BlockSite& block) {
    return WritesTo(block.block(), buffer) && Binds(*block.realize, site.loop->var, IterType::kReduce);
  });
}

// The loop in two parts, over [0, main_extent) and the rest.
LoopParts CutInTwo(ScheduleState& state, const LoopSite& site, const PrimExpr& main_extent,
                   const PrimExpr& tail_extent) {
  const LoopVar& var = site.loop->var;
  BufferMap copies;
  for (const Buffer& buffer : state.root().alloc_buffers) {
    if (!LivesInside(state, buffer, site.loop) || IsCarried(site, buffer)) continue;
    BufferNode copy = *buffer;
    copy.name = state.FreshBufferName(buffer->name + "_tail");
    copy.data = MakePrimVar(copy.name, DataType::Handle());
    copies.emplace(buffer, Make<BufferNode>(std::move(copy)));
  }
  LoopVar tail_var = MakePrimVar(var->name + "_tail", var->dtype);
  Stmt tail_body = TailCopier(state, copies).MutateStmt(site.loop->body);
  tail_body = Substitute(tail_body, {{var, main_extent + PrimExpr(tail_var)}});
  ForNode main = *site.loop;
  main.extent = main_extent;
  ForNode tail = *site.loop;
  tail.var = tail_var;
  tail.extent = tail_extent;
  tail.body = std::move(tail_body);
  Stmt both = MakeSeq({SimplifyBindings(Make<ForNode>(std::move(main)), site.outer),
                       SimplifyBindings(Make<ForNode>(std::move(tail)), site.outer)});
  for (const Buffer& buffer : std::vector<Buffer>(state.root().alloc_buffers)) {
    if (const auto it = copies.find(buffer); it != copies.end()) state.AddBuffer(it->second);
  }
  state.Replace(site.loop, std::move(both));
  return LoopParts{var, tail_var};
}

}  // namespace

Result<LoopParts> LoopPartition(ScheduleState& state, const LoopVar& var, int64_t multiple) {
  INGOT_ASSIGN_OR_RETURN(const LoopSite site, state.FindLoop(var));
  INGOT_RETURN_IF_ERROR(CheckPlainLoop(state, "loop_partition", site));
  if (multiple < 1) return Refuse("loop_partition", Describe(site), "the multiple must be at least 1");
  arith::Analyzer analyzer = ScheduleState::MakeAnalyzer(site.outer);
  const PrimExpr& extent = site.loop->extent;
  const PrimExpr width = IntImm(var->dtype, multiple);
  if (DivideExactly(extent, multiple, analyzer)) return LoopParts{var, std::nullopt};
  if (analyzer.ProveLess(extent, width)) return LoopParts{std::nullopt, var};
  return CutInTwo(state, site, analyzer.Simplify(FloorDiv(extent, width)) * multiple,
                  analyzer.Simplify(FloorMod(extent, width)));
}

Result<LoopParts> PartitionAt(ScheduleState& state, const LoopVar& var, const std::optional<PrimExpr>& point) {
  INGOT_ASSIGN_OR_RETURN(const LoopSite site, state.FindLoop(var));
  INGOT_RETURN_IF_ERROR(CheckPlainLoop(state, "partition_at", site));
  if (!point) return Refuse("partition_at", Describe(site), "there is no place to cut at");
  arith::Analyzer analyzer = ScheduleState::MakeAnalyzer(site.outer);
  const PrimExpr& extent = site.loop->extent;
  const PrimExpr zero = IntImm(var->dtype, 0);
  const PrimExpr main = analyzer.Simplify(Max(Min(Cast(var->dtype, *point), extent), zero));
  if (analyzer.ProveEqual(main, extent)) return LoopParts{var, std::nullopt};
  if (analyzer.ProveEqual(main, zero)) return LoopParts{std::nullopt, var};
  return CutInTwo(state, site, main, analyzer.Simplify(extent - main));
}

namespace {

// A comparison that holds from a value of the variable on (holds_after), or below it.
struct Threshold {
  const PrimExprNode* comparison;
  PrimExpr place;
  bool holds_after;
};

// Lists the comparisons in conditions of if_then_else that use the given iteration variable and no other one of the
// block, nor one that the block's body defines.
class ThresholdLister : public StmtVisitor {
 public:
  ThresholdLister(const BlockNode& block, const PrimVar& var, arith::Analyzer& analyzer)
      : block_(block), var_(var), analyzer_(analyzer) {}
  std::vector<Threshold> thresholds;

 protected:
  using StmtVisitor::Visit;
  void Visit(const PrimCallNode& call) override {
    if (call.op == Intrinsic::kIfThenElse) {
      for (const PrimExpr& part : ConjunctsOf(call.args[0])) Add(part);
    }
    StmtVisitor::Visit(call);
  }

 private:
  void VisitDefinition(const PrimVar& var) override { defined_.insert(var.get()); }
  void Add(const PrimExpr& condition) {
    if (MentionsAny(condition, defined_)) return;
    const std::optional<arith::LinearBound> bound = arith::BoundOf(condition, var_, analyzer_);
    if (!bound) return;
    for (const IterVar& iter : block_.iter_vars) {
      if (UsesVar(bound->rest, iter->var)) return;
    }
    thresholds.push_back({condition.get(), analyzer_.Simplify(bound->Place()), bound->holds_after()});
  }
  const BlockNode& block_;
  const PrimVar& var_;
  arith::Analyzer& analyzer_;
  std::unordered_set<const PrimVarNode*> defined_;
};

class ComparisonDecider : public StmtMutator {
 public:
  std::unordered_map<const PrimExprNode*, bool> values;
  PrimExpr MutatePrim(const PrimExpr& expr) override {
    const auto it = values.find(expr.get());
    return it != values.end() ? BoolImm(it->second) : StmtMutator::MutatePrim(expr);
  }
};

constexpr size_t kMaxConditionParts = 64;

}  // namespace

Result<std::vector<std::optional<LoopVar>>> PartitionByConditions(ScheduleState& state, const LoopVar& var) {
  constexpr const char* kName = "partition_by_conditions";
  INGOT_ASSIGN_OR_RETURN(const LoopSite site, state.FindLoop(var));
  INGOT_RETURN_IF_ERROR(CheckPlainLoop(state, kName, site));
  const std::vector<BlockSite> inside = ScheduleState::BlocksIn(site.loop->body);
  if (inside.size() != 1) return Refuse(kName, Describe(site), "there must be a single block inside");
  const BlockRealizeNode& realize = *inside[0].realize;
  const BlockNode& block = *realize.block;
  PrimVar iter;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    if (realize.iter_values[i].get() == var.get()) iter = block.iter_vars[i]->var;
  }
  if (!iter || block.init || !BindsOnly(realize, var, IterType::kSpatial)) {
    return Refuse(kName, Describe(site), "the loop is not one iteration variable of a block without a reduction");
  }
  arith::Analyzer analyzer = ScheduleState::MakeAnalyzer(site.outer);
  ThresholdLister lister(block, iter, analyzer);
  lister.VisitStmt(block.body);
  // The different thresholds in ascending order, limited to the loop's range.
  const PrimExpr& extent = site.loop->extent;
  std::vector<PrimExpr> places;
  for (const Threshold& threshold : lister.thresholds) {
    const PrimExpr place = analyzer.Simplify(Max(Min(threshold.place, extent), IntImm(extent->dtype, 0)));
    size_t at = 0;
    bool known = false;
    for (; at < places.size() && !known; ++at) {
      known = analyzer.ProveEqual(places[at], place);
      if (known || analyzer.ProveLessEqual(place, places[at])) break;
      if (!analyzer.ProveLessEqual(places[at], place)) {
        return Refuse(kName, Describe(site), "the order of its conditions' bounds is not known");
      }
    }
    if (!known) places.insert(places.begin() + static_cast<std::ptrdiff_t>(at), place);
  }
  if (places.size() >= kMaxConditionParts) return Refuse(kName, Describe(site), "it has too many conditions");
  places.push_back(extent);
  std::vector<std::optional<LoopVar>> loops;
  std::vector<Stmt> parts;
  PrimExpr begin = IntImm(extent->dtype, 0);
  for (const PrimExpr& end : places) {
    loops.emplace_back();
    const PrimExpr length = analyzer.Simplify(end - begin);
    if (analyzer.ProveLessEqual(length, IntImm(extent->dtype, 0))) continue;
    ComparisonDecider decider;
    for (const Threshold& threshold : lister.thresholds) {
      if (analyzer.ProveLessEqual(threshold.place, begin)) {
        decider.values.emplace(threshold.comparison, threshold.holds_after);
      } else if (analyzer.ProveLessEqual(end, threshold.place)) {
        decider.values.emplace(threshold.comparison, !threshold.holds_after);
      }
    }
    const bool is_first = parts.empty();
    BlockNode decided = block;
    if (!is_first) decided.name += std::to_string(parts.size());
    decided.body = decider.MutateStmt(block.body);
    arith::ReadWriteRegions regions = arith::GetBlockReadWriteRegions(decided.body);
    decided.reads = std::move(regions.reads);
    BlockRealizeNode copy = realize;
    copy.block = Make<BlockNode>(std::move(decided));
    Stmt body = Make<BlockRealizeNode>(std::move(copy));
    for (size_t i = inside[0].loops.size(); i-- > 0;) body = WithBody(inside[0].loops[i], std::move(body));
    LoopVar part_var = is_first ? var : MakePrimVar(var->name + "_" + std::to_string(parts.size()), var->dtype);
    if (!is_first) body = TailCopier(state, {}).MutateStmt(body);
    body = Substitute(body, {{var, begin + PrimExpr(part_var)}});
    ForNode part = *site.loop;
    part.var = part_var;
    part.extent = length;
    part.body = std::move(body);
    parts.push_back(SimplifyBindings(Make<ForNode>(std::move(part)), site.outer));
    loops.back() = part_var;
    begin = end;
  }
  state.Replace(site.loop, MakeSeq(std::move(parts)));
  return loops;
}

Result<LoopVar> AddUnitLoop(ScheduleState& state, const BlockName& name) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  LoopVar var = MakePrimVar("u");
  state.Replace(site.realize, Nest({var}, {Int64(1)}, site.realize));
  return var;
}

}  // namespace ingot::schedule
