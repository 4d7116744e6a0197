// Primitives that move a block under another block's loop. There the moved block computes the hull of the
// elements that its consumers read (compute_at) or its producers wrote (reverse_compute_at) in one iteration.
#include <algorithm>

#include "compiler/ir/condition.h"
#include "compiler/schedule/primitives.h"
#include "compiler/schedule/region.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// The loops between `outer` and a block inside of it, as variables to relax.
std::vector<InnerVar> InnerVarsOf(const BlockSite& below) {
  std::vector<InnerVar> vars;
  for (const For& loop : below.loops) vars.push_back({loop->var, loop->min, loop->extent});
  return vars;
}

// The hull of the regions of `buffer` that the given blocks read (or write), over variables outside of the loop's body.
std::optional<BufferRegion> TouchedBelow(const std::vector<BlockSite>& below, const Buffer& buffer, bool writes,
                                         arith::Analyzer& analyzer) {
  std::optional<BufferRegion> hull;
  for (const BlockSite& site : below) {
    for (const BufferRegion& region : writes ? site.block().writes : site.block().reads) {
      if (!region.buffer.same_as(buffer)) continue;
      BufferRegion relaxed = RelaxRegion(BindRegion(region, *site.realize), InnerVarsOf(site), analyzer);
      hull = hull ? UnionRegion(*hull, relaxed, analyzer) : relaxed;
    }
  }
  return hull;
}

// The position of the iteration variable that the dimension's range consists of; -1 where it is something else.
int PlainIterVar(const BlockNode& block, const Range& range) {
  if (!IsConstInt(range.extent, 1)) return -1;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    if (range.min.get() == block.iter_vars[i]->var.get()) return static_cast<int>(i);
  }
  return -1;
}

class LazyReadFinder : public StmtVisitor {
 public:
  bool found = false;

 protected:
  using StmtVisitor::Visit;
  void Visit(const PrimCallNode& call) override {
    found |= call.op == Intrinsic::kIfThenElse;
    StmtVisitor::Visit(call);
  }
  void Visit(const IfStmtNode&) override { found = true; }
};

bool ReadsLazily(const BlockSite& site) {
  LazyReadFinder finder;
  finder.VisitStmt(site.block().body);
  return finder.found;
}

// The domain of one iteration variable of the moved block within one iteration of the target loop; absent: the whole
// domain.
struct Subdomain {
  std::optional<Range> range;
  bool clamp = false;  // the range may leave the variable's domain
};

// Loops over the subdomains around the block, one per iteration variable even where its extent is 1, so that a trace
// that names them fits every shape.
Stmt MakeNest(const BlockNode& block, const std::vector<Subdomain>& domains, arith::Analyzer& analyzer) {
  BlockRealizeNode realize({}, BoolImm(true), Make<BlockNode>(block));
  std::vector<LoopVar> vars;
  std::vector<PrimExpr> extents;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const IterVarNode& iter = *block.iter_vars[i];
    const Range range = domains[i].range.value_or(iter.domain);
    vars.push_back(MakePrimVar("ax" + std::to_string(vars.size()), iter.var->dtype));
    extents.push_back(range.extent);
    realize.iter_values.push_back(analyzer.Simplify(range.min + PrimExpr(vars.back())));
    if (!domains[i].range || !domains[i].clamp) continue;
    const PrimExpr& value = realize.iter_values.back();
    const PrimExpr end = iter.domain.min + iter.domain.extent;
    analyzer.Bind(vars.back(), Range{IntImm(iter.var->dtype, 0), extents.back()});
    if (!analyzer.ProveLessEqual(iter.domain.min, value)) {
      realize.predicate = Both(realize.predicate, iter.domain.min <= value);
    }
    if (!analyzer.ProveLess(value, end)) realize.predicate = Both(realize.predicate, value < end);
  }
  return Nest(vars, extents, Make<BlockRealizeNode>(std::move(realize)));
}

// Puts statements at the start or the end of the loop's body.
void Attach(ScheduleState& state, const LoopVar& loop, Stmt nest, bool at_start) {
  const Result<LoopSite> site = state.FindLoop(loop);
  INGOT_CHECK(site.ok(), "the target loop vanished");
  ForNode copy = *site->loop;
  copy.body = at_start ? MakeSeq({std::move(nest), copy.body}) : MakeSeq({copy.body, std::move(nest)});
  state.Replace(site->loop, Make<ForNode>(std::move(copy)));
}

// Whether this part of the predicate only says that an iteration variable is below the end of its domain.
bool EndsAtDomain(const BlockRealizeNode& realize, const PrimExpr& part, arith::Analyzer& analyzer) {
  if (IsTrue(part)) return true;
  const auto* binary = As<BinaryNode>(part);
  if (binary == nullptr || binary->op != BinaryOp::kLT) return false;
  for (size_t i = 0; i < realize.iter_values.size(); ++i) {
    const Range& domain = realize.block->iter_vars[i]->domain;
    const PrimExpr left = domain.min + domain.extent - realize.iter_values[i];
    if (analyzer.ProveEqual(binary->b - binary->a, left)) return true;
  }
  return false;
}

// Whether the places that the block reads in dimension d of a buffer may lie beyond it, since not every instance reads.
// A predicate that ends other iteration variables at their domains leaves out no place of this dimension.
bool MayReadBeyond(const BlockSite& site, const Buffer& buffer, size_t d, arith::Analyzer& analyzer) {
  if (ReadsLazily(site)) return true;
  const PrimExpr& predicate = site.realize->predicate;
  if (IsTrue(predicate)) return false;
  const std::vector<PrimExpr> parts = ConjunctsOf(predicate);
  if (!std::ranges::all_of(parts, [&](const PrimExpr& part) { return EndsAtDomain(*site.realize, part, analyzer); })) {
    return true;
  }
  const auto shares_loop = [&](const PrimExpr& index) {
    return std::ranges::any_of(
        site.loops, [&](const For& loop) { return UsesVar(index, loop->var) && UsesVar(predicate, loop->var); });
  };
  for (const BufferRegion& region : site.block().reads) {
    if (!region.buffer.same_as(buffer)) continue;
    const Range range = BindRegion(region, *site.realize).region[d];
    if (shares_loop(range.min) || shares_loop(range.extent)) return true;
  }
  return false;
}

bool Contains(const std::vector<BlockSite>& sites, const BlockSite& site) {
  return std::any_of(sites.begin(), sites.end(), [&](const BlockSite& s) { return s.realize.same_as(site.realize); });
}

Status CheckMovable(const ScheduleState& state, const char* primitive, const BlockSite& site, const LoopSite& target) {
  if (!state.IsRegular(site.block().name)) return Refuse(primitive, Describe(site), "its bindings are not simple");
  if (Contains(ScheduleState::BlocksIn(target.loop->body), site)) {
    return Refuse(primitive, Describe(site), "it stands under loop " + target.loop->var->name + " already");
  }
  if (target.loop->for_kind == ForKind::kVectorized || target.loop->for_kind == ForKind::kUnrolled) {
    return Refuse(primitive, Describe(site), "loop " + target.loop->var->name + " is vectorized or unrolled");
  }
  for (const For& loop : site.loops) {
    if (loop->for_kind != ForKind::kSerial) {
      return Refuse(primitive, Describe(site), "its own loops have kinds; move blocks first");
    }
  }
  for (const IterVar& iter : site.block().iter_vars) {
    if (iter->type != IterType::kSpatial && iter->type != IterType::kReduce) {
      return Refuse(primitive, Describe(site), "iteration " + iter->var->name + " is ordered");
    }
  }
  return Status();
}

}  // namespace

Status ComputeAt(ScheduleState& state, const BlockName& name, const LoopVar& loop) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  INGOT_ASSIGN_OR_RETURN(const LoopSite target, state.FindLoop(loop));
  INGOT_RETURN_IF_ERROR(CheckMovable(state, "compute_at", site, target));
  const BlockNode& block = site.block();
  const std::vector<BlockSite> below = ScheduleState::BlocksIn(target.loop->body);
  std::vector<For> around = target.outer;
  around.push_back(target.loop);
  arith::Analyzer analyzer = ScheduleState::MakeAnalyzer(around);

  std::vector<Subdomain> domains(block.iter_vars.size());
  for (const BufferRegion& write : block.writes) {
    if (!state.IsAllocated(write.buffer)) {
      return Refuse("compute_at", Describe(site), "it writes the parameter " + write.buffer->name);
    }
    const std::optional<BlockSite> writer = state.OnlyWriter(write.buffer);
    if (!writer || !writer->realize.same_as(site.realize)) {
      return Refuse("compute_at", Describe(site), "other blocks write " + write.buffer->name + " too");
    }
    const std::vector<BlockSite> readers = state.Readers(write.buffer);
    std::vector<bool> clamp(write.region.size(), false);
    for (const BlockSite& reader : readers) {
      if (reader.realize.same_as(site.realize)) continue;  // an update in place
      if (!Contains(below, reader)) {
        return Refuse("compute_at", Describe(site),
                      "block \"" + reader.block().name + "\" reads it outside of loop " + loop->name);
      }
      for (size_t d = 0; d < clamp.size(); ++d) clamp[d] = clamp[d] || MayReadBeyond(reader, write.buffer, d, analyzer);
    }
    const std::optional<BufferRegion> needed = TouchedBelow(below, write.buffer, false, analyzer);
    if (!needed) return Refuse("compute_at", Describe(site), "nothing reads " + write.buffer->name);
    for (size_t d = 0; d < write.region.size(); ++d) {
      const int iter = PlainIterVar(block, write.region[d]);
      if (iter < 0) continue;  // the variables of this index keep their whole domains
      Subdomain& domain = domains[iter];
      const Range& range = needed->region[d];
      // A range that covers the whole domain is replaced by the domain; so is one from its start on that is not known
      // to be shorter: the hull of parts of symbolic lengths is longer than they are, and a long formula.
      const Range& all = block.iter_vars[iter]->domain;
      const bool is_from_start = analyzer.ProveLessEqual(range.min, all.min);
      if (is_from_start && (analyzer.ProveLessEqual(all.min + all.extent, range.min + range.extent) ||
                            (!AsConstInt(range.extent) && !analyzer.ProveLess(range.extent, all.extent)))) {
        domain = {all, false};
        continue;
      }
      // Where two writes need different parts of one variable's domain, it is the whole domain.
      const bool agrees = !domain.range || (analyzer.ProveEqual(domain.range->min, range.min) &&
                                            analyzer.ProveEqual(domain.range->extent, range.extent));
      domain = agrees ? Subdomain{range, domain.clamp || clamp[d]} : Subdomain{all, false};
    }
  }
  for (const BufferRegion& read : block.reads) {
    for (const BlockSite& writer : below) {
      if (WritesTo(writer.block(), read.buffer)) {
        return Refuse("compute_at", Describe(site),
                      "block \"" + writer.block().name + "\" under loop " + loop->name + " writes its input " +
                          read.buffer->name);
      }
    }
  }
  Stmt nest = MakeNest(block, domains, analyzer);
  state.Replace(site.realize, nullptr);
  Attach(state, loop, std::move(nest), true);
  state.MarkRecomputed(name);
  return Status();
}

Status ReverseComputeAt(ScheduleState& state, const BlockName& name, const LoopVar& loop) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  INGOT_ASSIGN_OR_RETURN(const LoopSite target, state.FindLoop(loop));
  INGOT_RETURN_IF_ERROR(CheckMovable(state, "reverse_compute_at", site, target));
  const BlockNode& block = site.block();
  const std::vector<BlockSite> below = ScheduleState::BlocksIn(target.loop->body);
  std::vector<For> around = target.outer;
  around.push_back(target.loop);
  arith::Analyzer analyzer = ScheduleState::MakeAnalyzer(around);
  if (block.init) return Refuse("reverse_compute_at", Describe(site), "it is a reduction");

  std::vector<Subdomain> domains(block.iter_vars.size());
  bool has_producer = false;
  for (const BufferRegion& read : block.reads) {
    const std::optional<BufferRegion> produced = TouchedBelow(below, read.buffer, true, analyzer);
    if (!produced) continue;
    has_producer = true;
    bool clamp = false;
    for (const BlockSite& producer : state.Blocks()) {
      if (!WritesTo(producer.block(), read.buffer)) continue;
      if (!Contains(below, producer)) {
        return Refuse("reverse_compute_at", Describe(site),
                      "block \"" + producer.block().name + "\" writes " + read.buffer->name + " elsewhere");
      }
      for (const For& outer : around) {
        if (!BindsOnly(*producer.realize, outer->var, IterType::kSpatial)) {
          return Refuse("reverse_compute_at", Describe(site),
                        "loop " + outer->var->name + " reduces in block \"" + producer.block().name +
                            "\", whose result is not complete there");
        }
        if (!Binds(*producer.realize, outer->var, IterType::kSpatial) && !IsConstInt(outer->extent, 1)) {
          return Refuse("reverse_compute_at", Describe(site),
                        "block \"" + producer.block().name + "\" is repeated by loop " + outer->var->name);
        }
      }
      clamp |= !IsTrue(producer.realize->predicate);
      const std::vector<PrimExpr> parts = ConjunctsOf(producer.realize->predicate);
      if (!std::all_of(parts.begin(), parts.end(),
                       [&](const PrimExpr& part) { return EndsAtDomain(*producer.realize, part, analyzer); })) {
        return Refuse("reverse_compute_at", Describe(site),
                      "block \"" + producer.block().name + "\" leaves out more than what is beyond its domain");
      }
    }
    for (size_t d = 0; d < read.region.size(); ++d) {
      const int iter = PlainIterVar(block, read.region[d]);
      if (iter < 0) {
        if (IsConstInt(read.buffer->shape[d], 1)) continue;
        return Refuse("reverse_compute_at", Describe(site),
                      "dimension " + std::to_string(d) + " of " + read.buffer->name + " is not read at one variable");
      }
      if (domains[iter].range) {
        return Refuse("reverse_compute_at", Describe(site),
                      "iteration " + block.iter_vars[iter]->var->name + " reads two places of what the loop makes");
      }
      // The block may need less than the loop makes (when it removes padding): then it gets a predicate. It must not
      // need more, since no iteration of the loop would compute that.
      const IterVar& var = block.iter_vars[iter];
      const PrimExpr end = var->domain.min + var->domain.extent;
      if (!analyzer.ProveLessEqual(end, read.buffer->shape[d])) {
        return Refuse("reverse_compute_at", Describe(site),
                      "iteration " + var->var->name + " runs for more than there is of " + read.buffer->name);
      }
      const bool needs_less = !analyzer.ProveEqual(var->domain.extent, read.buffer->shape[d]);
      domains[iter] = {produced->region[d], clamp || needs_less};
    }
  }
  if (!has_producer) return Refuse("reverse_compute_at", Describe(site), "nothing it reads is written there");
  // Every instance must run once and read elements that exist. That holds when the hull of what one iteration produces
  // has no other elements; a producer's instances are distinct (the state's invariant), so counting them proves it.
  for (const BlockSite& producer : below) {
    const bool writes_input = std::any_of(block.reads.begin(), block.reads.end(), [&](const BufferRegion& read) {
      return WritesTo(producer.block(), read.buffer);
    });
    if (!writes_input) continue;
    PrimExpr instances = Int64(1), points = Int64(1);
    for (const For& inner : producer.loops) {
      if (Binds(*producer.realize, inner->var, IterType::kSpatial)) instances = instances * inner->extent;
    }
    for (const BufferRegion& write : producer.block().writes) {
      const BufferRegion part = RelaxRegion(BindRegion(write, *producer.realize), InnerVarsOf(producer), analyzer);
      points = Int64(1);
      for (const Range& range : part.region) points = points * range.extent;
      if (!analyzer.ProveEqual(instances, points) || state.IsRecomputed(producer.block().name)) {
        return Refuse("reverse_compute_at", Describe(site),
                      "what one iteration of loop " + loop->name + " produces is not a box of its own");
      }
    }
  }
  // The block's consumers must come after the loop.
  for (const BufferRegion& write : block.writes) {
    for (const BlockSite& reader : state.Readers(write.buffer)) {
      if (Contains(below, reader)) {
        return Refuse("reverse_compute_at", Describe(site),
                      "block \"" + reader.block().name + "\" under the loop reads what it writes");
      }
    }
  }
  // The block's other inputs must be written before the loop.
  bool seen_target = false;
  for (const BlockSite& other : state.Blocks()) {
    seen_target |= Contains(below, other);
    if (!seen_target || Contains(below, other)) continue;
    for (const BufferRegion& read : block.reads) {
      if (WritesTo(other.block(), read.buffer)) {
        return Refuse("reverse_compute_at", Describe(site),
                      "block \"" + other.block().name + "\" after the loop writes its input " + read.buffer->name);
      }
    }
  }
  Stmt nest = MakeNest(block, domains, analyzer);
  state.Replace(site.realize, nullptr);
  Attach(state, loop, std::move(nest), false);
  return Status();
}

Result<BlockName> RecomputeFor(ScheduleState& state, const BlockName& producer_name,
                               const std::vector<BlockName>& consumers) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite producer, state.FindBlock(producer_name));
  if (consumers.empty()) return Refuse("recompute_for", Describe(producer), "no consumer is given");
  if (producer.block().writes.size() != 1 || !state.IsAllocated(producer.block().writes[0].buffer)) {
    return Refuse("recompute_for", Describe(producer), "it does not write one intermediate buffer");
  }
  const Buffer& buffer = producer.block().writes[0].buffer;
  const std::optional<BlockSite> writer = state.OnlyWriter(buffer);
  for (const BlockName& name : consumers) {
    INGOT_ASSIGN_OR_RETURN(const BlockSite consumer, state.FindBlock(name));
    if (!writer || !ReadsFrom(consumer.block(), buffer)) {
      return Refuse("recompute_for", Describe(producer), "it is not the only source of what " + name + " reads");
    }
  }
  if (HoldsLoops(producer.block())) return Refuse("recompute_for", Describe(producer), "it holds loops of its own");
  const BlockName& consumer_name = consumers.front();
  if (!state.IsRegular(producer_name))
    return Refuse("recompute_for", Describe(producer), "its bindings are not simple");
  for (const BufferRegion& read : producer.block().reads) {
    if (read.buffer.same_as(buffer)) return Refuse("recompute_for", Describe(producer), "it updates its own result");
    for (const BlockSite& other : ScheduleState::BlocksIn(OutermostStatement(producer))) {
      if (WritesTo(other.block(), read.buffer)) {
        return Refuse("recompute_for", Describe(producer),
                      "its input " + read.buffer->name + " is made under its loops");
      }
    }
  }
  BufferNode copy = *buffer;
  copy.name = state.FreshBufferName(buffer->name + "_for_" + consumer_name);
  copy.data = MakePrimVar(copy.name, DataType::Handle());
  const Buffer fresh = Make<BufferNode>(std::move(copy));

  BlockNode block = producer.block();
  PrimVarMap map;
  for (IterVar& iter : block.iter_vars) {
    PrimVar var = MakePrimVar(iter->var->name, iter->var->dtype);
    map.emplace(iter->var, var);
    iter = Make<IterVarNode>(iter->domain, var, iter->type, iter->thread_tag);
  }
  const BufferMap buffers{{buffer, fresh}};
  block.body = Substitute(block.body, map, buffers);
  if (block.init) block.init = Substitute(block.init, map, buffers);
  for (std::vector<BufferRegion>* regions : {&block.reads, &block.writes}) {
    for (BufferRegion& region : *regions) {
      if (region.buffer.same_as(buffer)) region.buffer = fresh;
      for (Range& range : region.region) range = {Substitute(range.min, map), Substitute(range.extent, map)};
    }
  }
  block.name = state.FreshBlockName(producer_name + "_for_" + consumer_name);
  const BlockName name = block.name;
  arith::Analyzer analyzer;
  Stmt nest = MakeNest(block, std::vector<Subdomain>(block.iter_vars.size()), analyzer);

  for (const BlockName& consumer : consumers) {
    INGOT_ASSIGN_OR_RETURN(const BlockSite reader, state.FindBlock(consumer));
    BlockNode reader_block = reader.block();
    reader_block.body = Substitute(reader_block.body, {}, buffers);
    for (BufferRegion& region : reader_block.reads) {
      if (region.buffer.same_as(buffer)) region.buffer = fresh;
    }
    BlockRealizeNode realize = *reader.realize;
    realize.block = Make<BlockNode>(std::move(reader_block));
    state.Replace(reader.realize, Make<BlockRealizeNode>(std::move(realize)));
  }
  // The copy stands before the outermost statement that holds the original: its inputs are complete there, and the
  // consumers come later.
  const Result<BlockSite> original = state.FindBlock(producer_name);
  INGOT_CHECK(original.ok(), "the producer vanished");
  const Stmt place = OutermostStatement(*original);
  state.Replace(place, MakeSeq({std::move(nest), place}));
  state.AddBuffer(fresh);
  return name;
}

}  // namespace ingot::schedule
