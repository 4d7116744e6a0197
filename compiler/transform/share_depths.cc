// share_depths
//   Before: tensor functions of constant dims.
//   After:  functions for CPUs that differ only in the number of steps of a sum's outer axis, such as convolutions over
//           blocks of channels, are one. This number, the depth, is a symbol of the function, which its arguments bind.
//           Inside of the axis is one of constant extent, where the steps are that schedules unroll, so the loop over a
//           depth that is no constant is as fast. Schedules depend on sizes: functions are shared whose depths lie
//           between the same powers of two, and an attribute says the greatest of these depths, for which the schedule
//           is made (schedule/likely_sizes.h).
//   Last, because everything before it asks for constant dims. A network of 120 convolutions so has some ten kernels.
#include "compiler/transform/share_depths.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/schedule/likely_sizes.h"
#include "compiler/transform/graph_util.h"

namespace ingot::transform {

namespace {

using ir::As;
using ir::Buffer;
using ir::Expr;
using ir::PrimExpr;
using ir::PrimVarNode;

// The outer axis of a sum: the block's variable for it, the loop's, and how many steps it has.
struct OuterAxis {
  const ir::IterVarNode* iter;
  const PrimVarNode* loop;
  int64_t depth;
};

// Finds the first block that sums over several axes, the innermost one of constant extent.
class AxisFinder : public ir::StmtVisitor {
 public:
  std::optional<OuterAxis> found;

 protected:
  using StmtVisitor::Visit;
  void Visit(const ir::BlockRealizeNode& realize) override {
    constexpr int64_t kLeastStepsInside = 8;
    const std::vector<ir::IterVar>& iters = realize.block->iter_vars;
    std::vector<size_t> sums;
    for (size_t i = 0; i < iters.size(); ++i) {
      if (iters[i]->type == ir::IterType::kReduce) sums.push_back(i);
    }
    if (!found && sums.size() > 1 && realize.block->init) {
      const ir::IterVarNode& outer = *iters[sums.front()];
      const auto depth = ir::AsConstInt(outer.domain.extent), steps = ir::AsConstInt(iters[sums.back()]->domain.extent);
      const auto* loop = As<PrimVarNode>(realize.iter_values[sums.front()]);
      const bool fits = depth && *depth > 1 && steps && *steps >= kLeastStepsInside && loop != nullptr;
      if (fits && ir::IsConstInt(outer.domain.min, 0)) found = OuterAxis{&outer, loop, *depth};
    }
    StmtVisitor::Visit(realize);
  }
};

// Finds the dims that the axis runs through, and whether nothing else has to do with it: its loop's variable is the
// block's, which is an index of parameters that are read, at the same place wherever they are read.
class AxisUses : public ir::StmtVisitor {
 public:
  AxisUses(const ir::PrimFunc& function, const OuterAxis& axis) : axis_(axis) {
    for (const ir::PrimFuncParam& param : function->params) {
      const bool is_plain = param.buffer && param.buffer->strides.empty() && !param.buffer->elem_offset;
      if (is_plain) params_.emplace(param.buffer.get(), std::nullopt);
    }
    VisitStmt(function->body);
  }
  // For each buffer the dim.
  std::vector<std::pair<const ir::BufferNode*, size_t>> Dims() const {
    std::vector<std::pair<const ir::BufferNode*, size_t>> dims;
    if (!fits_ || num_loops_ != 1) return dims;
    for (const auto& [buffer, dim] : params_) {
      if (dim && *dim != kNone) dims.push_back({buffer, *dim});
    }
    return dims;
  }

 protected:
  using StmtVisitor::Visit;
  void Visit(const PrimVarNode& var) override { fits_ &= &var != axis_.loop && &var != axis_.iter->var.get(); }
  void Visit(const ir::ForNode& loop) override {
    if (loop.var.get() == axis_.loop) {
      ++num_loops_;
      fits_ &= ir::IsConstInt(loop.min, 0) && ir::IsConstInt(loop.extent, axis_.depth) &&
               loop.for_kind == ir::ForKind::kSerial;
    }
    StmtVisitor::Visit(loop);
  }
  void Visit(const ir::BlockRealizeNode& realize) override {
    for (size_t i = 0; i < realize.iter_values.size(); ++i) {
      const bool is_axis = realize.block->iter_vars[i].get() == axis_.iter;
      if (!is_axis) VisitPrim(realize.iter_values[i]);
    }
    VisitPrim(realize.predicate);
    Visit(*realize.block);
  }
  void Visit(const ir::BlockNode& block) override {
    for (const std::vector<ir::BufferRegion>* regions : {&block.reads, &block.writes}) {
      for (const ir::BufferRegion& region : *regions) VisitRegion(region);
    }
    fits_ &= block.match_buffers.empty();
    if (block.init) VisitStmt(block.init);
    VisitStmt(block.body);
  }
  void Visit(const ir::BufferLoadNode& load) override { VisitAccess(load.buffer, load.indices); }
  void Visit(const ir::BufferStoreNode& store) override {
    for (const PrimExpr& index : store.indices) VisitPrim(index);
    VisitPrim(store.value);
    fits_ &= !IsAlongAxis(store.buffer);
    if (const auto found = params_.find(store.buffer.get()); found != params_.end()) found->second = kNone;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  bool IsAlongAxis(const Buffer& buffer) const {
    const auto found = params_.find(buffer.get());
    return found != params_.end() && found->second.value_or(kNone) != kNone;
  }
  void VisitRegion(const ir::BufferRegion& region) {
    std::vector<PrimExpr> first;
    bool is_element = true;
    for (const ir::Range& range : region.region) {
      first.push_back(range.min);
      is_element &= ir::IsConstInt(range.extent, 1);
    }
    if (is_element && params_.contains(region.buffer.get())) return VisitAccess(region.buffer, first);
    for (const PrimExpr& index : first) VisitPrim(index);
    for (const ir::Range& range : region.region) VisitPrim(range.extent);
    fits_ &= !IsAlongAxis(region.buffer);
    if (const auto found = params_.find(region.buffer.get()); found != params_.end()) found->second = kNone;
  }
  void VisitAccess(const Buffer& buffer, const std::vector<PrimExpr>& indices) {
    size_t dim = kNone;
    for (size_t d = 0; d < indices.size(); ++d) {
      const bool is_axis = indices[d].get() == axis_.iter->var.get();
      if (is_axis && dim == kNone && ir::IsConstInt(buffer->shape[d], axis_.depth)) {
        dim = d;
      } else {
        VisitPrim(indices[d]);
      }
    }
    const auto found = params_.find(buffer.get());
    if (found == params_.end()) {
      fits_ &= dim == kNone;
    } else {
      fits_ &= !found->second || found->second == dim;
      found->second = dim;
    }
  }

  const OuterAxis axis_;
  std::unordered_map<const ir::BufferNode*, std::optional<size_t>> params_;  // and the dim along the axis, once known
  int num_loops_ = 0;
  bool fits_ = true;
};

// Puts a symbol in the place of the depth.
class DepthNamer : public ir::StmtMutator {
 public:
  DepthNamer(const OuterAxis& axis, PrimExpr depth) : axis_(axis), depth_(std::move(depth)) {}
  std::unordered_map<const ir::BufferNode*, Buffer> buffers;

  Buffer MutateBuffer(const Buffer& buffer) override {
    const auto found = buffers.find(buffer.get());
    return found != buffers.end() ? found->second : buffer;
  }

 protected:
  using StmtMutator::Mutate;
  ir::Stmt Mutate(const ir::Ref<ir::ForNode>& loop) override {
    const ir::Stmt mutated = StmtMutator::Mutate(loop);
    if (loop->var.get() != axis_.loop) return mutated;
    ir::ForNode copy = *As<ir::ForNode>(mutated);
    copy.extent = depth_;
    return ir::Make<ir::ForNode>(std::move(copy));
  }
  ir::Stmt Mutate(const ir::Block& block) override {
    ir::BlockNode copy = *As<ir::BlockNode>(StmtMutator::Mutate(block));
    for (ir::IterVar& iter : copy.iter_vars) {
      if (iter->var.get() != axis_.iter->var.get()) continue;
      ir::IterVarNode named = *iter;
      named.domain.extent = depth_;
      iter = ir::Make<ir::IterVarNode>(std::move(named));
    }
    return ir::Make<ir::BlockNode>(std::move(copy));
  }

 private:
  const OuterAxis axis_;
  const PrimExpr depth_;
};

struct DepthForm {
  ir::PrimFunc function;  // with a symbol for the depth
  int64_t depth;
};

std::optional<DepthForm> WithDepthAsSymbol(const ir::PrimFunc& function) {
  if (!function->is_private || schedule::IsScheduled(function) || !ir::FreePrimVars(function).empty()) {
    return std::nullopt;
  }
  AxisFinder axis;
  axis.VisitStmt(function->body);
  if (!axis.found) return std::nullopt;
  const auto dims = AxisUses(function, *axis.found).Dims();
  if (dims.empty()) return std::nullopt;
  const ir::PrimVar depth = ir::MakePrimVar("depth", axis.found->iter->domain.extent->dtype);
  DepthNamer namer(*axis.found, depth);
  for (const auto& [buffer, dim] : dims) {
    ir::BufferNode copy = *buffer;
    copy.shape[dim] = depth;
    namer.buffers.emplace(buffer, ir::Make<ir::BufferNode>(std::move(copy)));
  }
  ir::PrimFuncNode copy = *function;
  for (ir::PrimFuncParam& param : copy.params) {
    if (param.buffer) param.buffer = namer.MutateBuffer(param.buffer);
  }
  copy.body = namer.MutateStmt(copy.body);
  return DepthForm{ir::Make<ir::PrimFuncNode>(std::move(copy)), axis.found->depth};
}

// Functions that are equal but for the depth.
struct DepthGroup {
  ir::PrimFunc function;
  int64_t greatest_depth;
  std::vector<ir::GlobalVar> members;
};

class CalleeReplacer : public ir::ExprMutator {
 public:
  std::unordered_map<const ir::GlobalVarNode*, ir::GlobalVar> callees;

 protected:
  using ExprMutator::Mutate;
  Expr Mutate(const ir::GlobalVar& var) override {
    const auto found = callees.find(var.get());
    return found != callees.end() ? Expr(found->second) : Expr(var);
  }
};

}  // namespace

Result<ir::IRModule> ShareDepths(ir::IRModule module, PassContext& context) {
  if (context.options.target.kind != Target::Kind::kCpu) return module;
  std::vector<DepthGroup> groups;
  std::map<std::pair<uint64_t, int>, std::vector<size_t>> by_form;  // hash and power of two -> groups
  for (const ir::IRModule::Entry& entry : module.functions()) {
    const ir::PrimFunc function = ir::AsRef<ir::PrimFuncNode>(entry.function);
    const std::optional<DepthForm> form = function == nullptr ? std::nullopt : WithDepthAsSymbol(function);
    if (!form) continue;
    const int power = std::bit_width(static_cast<uint64_t>(form->depth) - 1);
    std::vector<size_t>& candidates = by_form[{ir::StructuralHash(Expr(form->function)), power}];
    const auto same = std::ranges::find_if(candidates, [&](size_t group) {
      return ir::StructuralEqual(Expr(groups[group].function), Expr(form->function));
    });
    if (same == candidates.end()) {
      candidates.push_back(groups.size());
      groups.push_back({form->function, form->depth, {entry.var}});
    } else {
      groups[*same].greatest_depth = std::max(groups[*same].greatest_depth, form->depth);
      groups[*same].members.push_back(entry.var);
    }
  }
  CalleeReplacer replacer;
  for (const DepthGroup& group : groups) {
    if (group.members.size() < 2) continue;
    ir::PrimFuncNode shared = *group.function;
    shared.attrs = shared.attrs.With(schedule::kLikelySizesAttr, ir::AttrValue::Ints({group.greatest_depth}));
    module.Set(group.members.front(), ir::Make<ir::PrimFuncNode>(std::move(shared)));
    for (size_t i = 1; i < group.members.size(); ++i) {
      replacer.callees.emplace(group.members[i].get(), group.members.front());
      module.Remove(group.members[i]);
    }
  }
  if (replacer.callees.empty()) return module;
  return MapFunctions(std::move(module),
                      [&](const ir::GlobalVar&, const ir::Function& function) -> Result<ir::Function> {
                        return replacer.MutateFunction(function);
                      });
}

}  // namespace ingot::transform
