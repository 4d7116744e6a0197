// decompose_reduction (the initialisation becomes a block of its own) and rfactor (partial results).
#include <algorithm>

#include "compiler/arith/block_util.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/structural.h"
#include "compiler/schedule/primitives.h"
#include "compiler/schedule/region.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// The position of a loop among those around the block, or nothing.
std::optional<size_t> LoopPosition(const BlockSite& site, const LoopVar& loop) {
  for (size_t i = 0; i < site.loops.size(); ++i) {
    if (site.loops[i]->var.same_as(loop)) return i;
  }
  return std::nullopt;
}

bool IsLoadOf(const PrimExpr& expr, const BufferStoreNode& store) {
  const auto* load = As<BufferLoadNode>(expr);
  if (load == nullptr || !load->buffer.same_as(store.buffer)) return false;
  for (size_t i = 0; i < store.indices.size(); ++i) {
    if (!StructuralEqual(load->indices[i], store.indices[i])) return false;
  }
  return true;
}

}  // namespace

namespace {
bool IsNumber(const PrimExpr& expr, int number) {
  if (const auto* value = As<FloatImmNode>(expr)) return value->value == number;
  return IsConstInt(expr, number);
}
}  // namespace

std::optional<Reduction> MatchReduction(const BlockNode& block) {
  const auto* update = As<BufferStoreNode>(block.body);
  const auto* init = As<BufferStoreNode>(block.init);
  if (update == nullptr || init == nullptr || !init->buffer.same_as(update->buffer)) return std::nullopt;
  const auto* binary = As<BinaryNode>(update->value);
  if (binary == nullptr) return std::nullopt;
  const bool associative = binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kMul ||
                           binary->op == BinaryOp::kMin || binary->op == BinaryOp::kMax;
  if (!associative || (init->value->kind != PrimKind::kFloatImm && init->value->kind != PrimKind::kIntImm)) {
    return std::nullopt;
  }
  // Each part of a reduction starts with the init: it must be what the operator leaves as it is, or gives once.
  if (binary->op == BinaryOp::kAdd && !IsNumber(init->value, 0)) return std::nullopt;
  if (binary->op == BinaryOp::kMul && !IsNumber(init->value, 1)) return std::nullopt;
  if (IsLoadOf(binary->a, *update)) return Reduction{update, binary->op, binary->b, init->value};
  if (IsLoadOf(binary->b, *update)) return Reduction{update, binary->op, binary->a, init->value};
  return std::nullopt;
}

namespace {
bool ListFactors(const PrimExpr& expr, std::vector<const BufferLoadNode*>& factors) {
  if (const auto* load = As<BufferLoadNode>(expr)) {
    factors.push_back(load);
    return true;
  }
  if (const auto* cast = As<CastNode>(expr)) return ListFactors(cast->value, factors);
  const auto* product = As<BinaryNode>(expr);
  return product != nullptr && product->op == BinaryOp::kMul && ListFactors(product->a, factors) &&
         ListFactors(product->b, factors);
}
}  // namespace

std::optional<std::vector<const BufferLoadNode*>> FactorsOfProduct(const PrimExpr& expr) {
  std::vector<const BufferLoadNode*> factors;
  if (!ListFactors(expr, factors)) return std::nullopt;
  return factors;
}

namespace {

// Whether no other block writes the block's result, for example a tail that was partitioned off.
bool IsOnlyWriter(const ScheduleState& state, const BlockSite& site) {
  return std::all_of(site.block().writes.begin(), site.block().writes.end(),
                     [&](const BufferRegion& write) { return state.OnlyWriter(write.buffer).has_value(); });
}

std::vector<BufferRegion> Substituted(const std::vector<BufferRegion>& regions, const PrimVarMap& map) {
  std::vector<BufferRegion> result = regions;
  for (BufferRegion& region : result) {
    for (Range& range : region.region) range = {Substitute(range.min, map), Substitute(range.extent, map)};
  }
  return result;
}

}  // namespace

Result<BlockName> DecomposeReduction(ScheduleState& state, const BlockName& name, const LoopVar& loop) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  const BlockNode& block = site.block();
  if (!block.init) return Refuse("decompose_reduction", Describe(site), "it has no initialisation");
  if (!state.IsRegular(name)) return Refuse("decompose_reduction", Describe(site), "its bindings are not simple");
  if (!IsOnlyWriter(state, site)) {
    return Refuse("decompose_reduction", Describe(site), "another block holds a part of the reduction");
  }
  const std::optional<size_t> position = LoopPosition(site, loop);
  if (!position) return Refuse("decompose_reduction", Describe(site), "loop " + loop->name + " is not around it");
  for (size_t i = 0; i < *position; ++i) {
    if (!Binds(*site.realize, site.loops[i]->var, IterType::kReduce)) continue;
    return Refuse("decompose_reduction", Describe(site),
                  "loop " + site.loops[i]->var->name + " outside of " + loop->name + " is a reduction loop");
  }
  // Copies of the spatial loops inside, with their kinds, run the initialisation; the reduction's loops are at their
  // first values there.
  PrimVarMap loop_map;
  std::vector<For> loops;
  for (size_t i = *position; i < site.loops.size(); ++i) {
    const For& old = site.loops[i];
    if (Binds(*site.realize, old->var, IterType::kSpatial)) {
      if (Binds(*site.realize, old->var, IterType::kReduce)) {
        return Refuse("decompose_reduction", Describe(site),
                      "loop " + old->var->name + " is both spatial and a reduction");
      }
      ForNode copy = *old;
      copy.var = MakePrimVar(old->var->name + "_init", old->var->dtype);
      loop_map.emplace(old->var, copy.var);
      loops.push_back(Make<ForNode>(std::move(copy)));
    } else {
      if (!Binds(*site.realize, old->var, IterType::kReduce) && !IsConstInt(old->extent, 1)) {
        return Refuse("decompose_reduction", Describe(site),
                      "loop " + old->var->name + " repeats the reduction, each time from its initialisation");
      }
      loop_map.emplace(old->var, old->min);
    }
  }
  PrimVarMap iter_map;
  BlockNode init(state.FreshBlockName(name + "_init"), {}, {}, {}, nullptr);
  // What the predicate says of the reduction's loops alone is how much is summed, which may be nothing: the
  // initialisation runs all the same.
  PrimExpr predicate = BoolImm(true);
  for (const PrimExpr& conjunct : ConjunctsOf(site.realize->predicate)) {
    const std::vector<PrimVar> vars = FreePrimVars(conjunct);
    const auto is_reduced = [&](const PrimVar& var) { return Binds(*site.realize, var, IterType::kReduce); };
    const auto is_spatial = [&](const PrimVar& var) { return Binds(*site.realize, var, IterType::kSpatial); };
    if (std::ranges::any_of(vars, is_reduced) && std::ranges::none_of(vars, is_spatial)) continue;
    predicate = Both(predicate, conjunct);
  }
  BlockRealizeNode realize({}, Substitute(predicate, loop_map), nullptr);
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const IterVarNode& iter = *block.iter_vars[i];
    if (iter.type != IterType::kSpatial) continue;
    PrimVar var = MakePrimVar(iter.var->name, iter.var->dtype);
    iter_map.emplace(iter.var, var);
    init.iter_vars.push_back(Make<IterVarNode>(iter.domain, var, iter.type));
    realize.iter_values.push_back(Substitute(site.realize->iter_values[i], loop_map));
  }
  init.body = Substitute(block.init, iter_map);
  init.writes = Substituted(block.writes, iter_map);
  const BlockName init_name = init.name;
  realize.block = Make<BlockNode>(std::move(init));
  Stmt nest = Make<BlockRealizeNode>(std::move(realize));
  for (size_t i = loops.size(); i-- > 0;) {
    ForNode copy = *loops[i];
    copy.body = std::move(nest);
    nest = Make<ForNode>(std::move(copy));
  }
  const std::vector<For> outer(site.loops.begin(), site.loops.begin() + static_cast<std::ptrdiff_t>(*position));
  nest = SimplifyBindings(nest, outer);

  BlockNode update = block;
  update.init = nullptr;
  arith::ReadWriteRegions regions = arith::GetBlockReadWriteRegions(update.body);
  update.reads = std::move(regions.reads);
  BlockRealizeNode update_realize = *site.realize;
  update_realize.block = Make<BlockNode>(std::move(update));
  const For& target = site.loops[*position];
  state.Replace(site.realize, Make<BlockRealizeNode>(std::move(update_realize)));
  INGOT_ASSIGN_OR_RETURN(const LoopSite current, state.FindLoop(target->var));
  state.Replace(current.loop, MakeSeq({std::move(nest), current.loop}));
  if (state.IsRecomputed(name)) state.MarkRecomputed(init_name);
  return init_name;
}

Result<BlockName> RFactor(ScheduleState& state, const LoopVar& loop) {
  INGOT_ASSIGN_OR_RETURN(const LoopSite place, state.FindLoop(loop));
  const std::vector<BlockSite> inside = ScheduleState::BlocksIn(place.loop->body);
  if (inside.size() != 1) return Refuse("rfactor", Describe(place), "there must be a single block inside");
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(inside[0].block().name));
  const BlockNode& block = site.block();
  const std::optional<Reduction> reduction = MatchReduction(block);
  if (!reduction) return Refuse("rfactor", Describe(site), "it is no reduction by +, *, min or max");
  if (!state.IsRegular(block.name) || ScheduleState::BlocksIn(site.loops.front()).size() != 1) {
    return Refuse("rfactor", Describe(site), "it must have a nest of its own, with simple bindings");
  }
  if (!IsOnlyWriter(state, site)) {
    return Refuse("rfactor", Describe(site), "another block holds a part of the reduction");
  }
  if (!BindsOnly(*site.realize, loop, IterType::kReduce)) {
    return Refuse("rfactor", Describe(site), "loop " + loop->name + " is not a reduction loop");
  }
  for (const For& around : site.loops) {
    if (around->for_kind != ForKind::kSerial) return Refuse("rfactor", Describe(site), "its loops have kinds already");
  }
  const Buffer& out = reduction->update->buffer;
  std::vector<PrimExpr> shape = out->shape;
  shape.push_back(place.loop->extent);
  const Buffer partial = MakeBuffer(state.FreshBufferName(out->name + "_rf"), out->dtype, std::move(shape));

  // The partial block has the same spatial variables, the loop as another spatial one, and a reduction variable for
  // every other reduction loop.
  BlockNode rf(state.FreshBlockName(block.name + "_rf"), {}, {}, {}, nullptr);
  BlockRealizeNode rf_realize({}, BoolImm(true), nullptr);
  PrimVarMap iter_map, loop_map;
  const auto add = [&](Range domain, const std::string& name, IterType type, PrimExpr value) {
    PrimVar var = MakePrimVar(name, domain.extent->dtype);
    rf.iter_vars.push_back(Make<IterVarNode>(std::move(domain), var, type));
    rf_realize.iter_values.push_back(std::move(value));
    return var;
  };
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const IterVarNode& iter = *block.iter_vars[i];
    if (iter.type == IterType::kReduce) continue;
    iter_map.emplace(iter.var, add(iter.domain, iter.var->name, iter.type, site.realize->iter_values[i]));
  }
  const PrimVar part = add({place.loop->min, place.loop->extent}, "v" + loop->name, IterType::kSpatial, loop);
  loop_map.emplace(loop, part);
  for (const For& around : site.loops) {
    if (around->var.same_as(loop) || !Binds(*site.realize, around->var, IterType::kReduce)) continue;
    if (!BindsOnly(*site.realize, around->var, IterType::kReduce)) {
      return Refuse("rfactor", Describe(site), "loop " + around->var->name + " is both spatial and a reduction");
    }
    loop_map.emplace(around->var,
                     add({around->min, around->extent}, "v" + around->var->name, IterType::kReduce, around->var));
  }
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    if (block.iter_vars[i]->type != IterType::kReduce) continue;
    iter_map.emplace(block.iter_vars[i]->var, Substitute(site.realize->iter_values[i], loop_map));
  }
  std::vector<PrimExpr> rf_indices;
  for (const PrimExpr& index : reduction->update->indices) rf_indices.push_back(Substitute(index, iter_map));
  rf_indices.push_back(part);
  PrimExpr source = Substitute(reduction->source, iter_map);
  if (!IsTrue(site.realize->predicate)) {
    const PrimExpr predicate = Substitute(site.realize->predicate, loop_map);
    for (const For& around : site.loops) {
      if (UsesVar(predicate, around->var)) {
        return Refuse("rfactor", Describe(site), "its predicate is about a spatial loop");
      }
    }
    source = IfThenElse(predicate, std::move(source), reduction->identity);
  }
  rf.body = Make<BufferStoreNode>(
      partial, MakeBinary(reduction->op, Make<BufferLoadNode>(partial, rf_indices), std::move(source)), rf_indices);
  rf.init = Make<BufferStoreNode>(partial, reduction->identity, rf_indices);
  arith::ReadWriteRegions regions = arith::GetBlockReadWriteRegions(rf.body, rf.init);
  rf.reads = std::move(regions.reads);
  rf.writes = std::move(regions.writes);
  const BlockName rf_name = rf.name;
  rf_realize.block = Make<BlockNode>(std::move(rf));

  // The final block reduces over the loop's values, for the whole spatial domain.
  BlockNode last(block.name, {}, {}, {}, nullptr);
  BlockRealizeNode last_realize({}, BoolImm(true), nullptr);
  std::vector<LoopVar> loops;
  std::vector<PrimExpr> extents;
  PrimVarMap last_map;
  for (const IterVar& iter : block.iter_vars) {
    if (iter->type == IterType::kReduce) continue;
    PrimVar var = MakePrimVar(iter->var->name, iter->var->dtype);
    last_map.emplace(iter->var, var);
    last.iter_vars.push_back(Make<IterVarNode>(iter->domain, var, iter->type));
    loops.push_back(MakePrimVar("ax" + std::to_string(loops.size()), iter->var->dtype));
    extents.push_back(iter->domain.extent);
    last_realize.iter_values.push_back(iter->domain.min + PrimExpr(loops.back()));
  }
  const PrimVar last_part = MakePrimVar(part->name, part->dtype);
  last.iter_vars.push_back(Make<IterVarNode>(Range{place.loop->min, place.loop->extent}, last_part, IterType::kReduce));
  loops.push_back(MakePrimVar(loop->name, loop->dtype));
  extents.push_back(place.loop->extent);
  last_realize.iter_values.push_back(loops.back());
  std::vector<PrimExpr> indices;
  for (const PrimExpr& index : reduction->update->indices) indices.push_back(Substitute(index, last_map));
  std::vector<PrimExpr> part_indices = indices;
  part_indices.push_back(last_part);
  last.body = Make<BufferStoreNode>(
      out, MakeBinary(reduction->op, Make<BufferLoadNode>(out, indices), Make<BufferLoadNode>(partial, part_indices)),
      indices);
  last.init = Make<BufferStoreNode>(out, reduction->identity, indices);
  regions = arith::GetBlockReadWriteRegions(last.body, last.init);
  last.reads = std::move(regions.reads);
  last.writes = std::move(regions.writes);
  last_realize.block = Make<BlockNode>(std::move(last));

  state.Replace(site.realize, Make<BlockRealizeNode>(std::move(rf_realize)));
  INGOT_ASSIGN_OR_RETURN(const LoopSite outermost, state.FindLoop(site.loops.front()->var));
  state.Replace(outermost.loop,
                MakeSeq({outermost.loop, Nest(loops, extents, Make<BlockRealizeNode>(std::move(last_realize)))}));
  state.AddBuffer(partial);
  return rf_name;
}

}  // namespace ingot::schedule
