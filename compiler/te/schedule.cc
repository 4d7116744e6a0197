// Recording what stages are told, and replaying it on a TensorIR schedule.
#include "compiler/te/schedule.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/schedule/default_schedule.h"
#include "compiler/te/stages.h"

namespace ingot::te {

using ir::IterVar;
using ir::Make;
using ir::PrimExpr;
using schedule::BlockRV;
using schedule::LoopRV;

namespace {

IterVar DerivedAxis(std::string name, ir::IterType type, PrimExpr extent) {
  const ir::PrimVar var = ir::MakePrimVar(std::move(name), extent->dtype);
  return Make<ir::IterVarNode>(ir::Range{ir::IntImm(var->dtype, 0), std::move(extent)}, var, type);
}

PrimExpr CeilDiv(const PrimExpr& extent, int64_t divisor) {
  return ir::FloorDiv(extent + (divisor - 1), ir::IntImm(extent->dtype, divisor));
}

}  // namespace

const std::vector<IterVar>& AxesOf(const Tensor& tensor) { return tensor->operation->axes; }

std::vector<IterVar> ReduceAxesOf(const Tensor& tensor) {
  const auto& bodies = tensor->operation->bodies;
  const auto* reduce = bodies.empty() ? nullptr : ir::As<ir::ReduceNode>(bodies[0]);
  return reduce != nullptr ? reduce->axes : std::vector<IterVar>{};
}

IterVar ThreadAxis(std::string tag) {
  const ir::PrimVar var = ir::MakePrimVar(tag);
  return Make<ir::IterVarNode>(ir::Range{ir::Int64(0), ir::Int64(1)}, var, ir::IterType::kThread, std::move(tag));
}

std::pair<IterVar, IterVar> Stage::Split(const IterVar& axis, int64_t factor) {
  INGOT_CHECK(factor >= 1, "a factor of at least 1");
  const std::string& name = axis->var->name;
  IterVar outer = DerivedAxis(name + "_outer", axis->type, CeilDiv(axis->domain.extent, factor));
  IterVar inner = DerivedAxis(name + "_inner", axis->type, ir::IntImm(axis->var->dtype, factor));
  steps_.push_back({Step::kSplit, {axis}, {outer, inner}, factor, {}});
  return {outer, inner};
}

std::pair<IterVar, IterVar> Stage::SplitIntoParts(const IterVar& axis, int64_t parts) {
  INGOT_CHECK(parts >= 1, "one part at least");
  const std::string& name = axis->var->name;
  IterVar outer = DerivedAxis(name + "_outer", axis->type, ir::IntImm(axis->var->dtype, parts));
  IterVar inner = DerivedAxis(name + "_inner", axis->type, CeilDiv(axis->domain.extent, parts));
  steps_.push_back({Step::kSplitIntoParts, {axis}, {outer, inner}, parts, {}});
  return {outer, inner};
}

IterVar Stage::Fuse(const IterVar& outer, const IterVar& inner) {
  IterVar fused = DerivedAxis(outer->var->name + "_" + inner->var->name + "_fused", outer->type,
                              outer->domain.extent * inner->domain.extent);
  steps_.push_back({Step::kFuse, {outer, inner}, {fused}, 0, {}});
  return fused;
}

void Stage::Reorder(std::vector<IterVar> order) { steps_.push_back({Step::kReorder, std::move(order), {}, 0, {}}); }

Stage::Tiles Stage::Tile(const IterVar& x, const IterVar& y, int64_t x_factor, int64_t y_factor) {
  const auto [x_outer, x_inner] = Split(x, x_factor);
  const auto [y_outer, y_inner] = Split(y, y_factor);
  Reorder({x_outer, y_outer, x_inner, y_inner});
  return {x_outer, y_outer, x_inner, y_inner};
}

void Stage::ComputeAt(const Stage& consumer, const IterVar& axis) { place_ = At{consumer.operation_, axis}; }

Stage& Schedule::operator[](const Tensor& tensor) {
  const auto it = std::find_if(stages_.begin(), stages_.end(), [&](const std::unique_ptr<Stage>& stage) {
    return stage->operation_.same_as(tensor->operation);
  });
  INGOT_CHECK(it != stages_.end(), "a tensor that the schedule's outputs are computed from");
  return **it;
}

Schedule::Schedule(std::span<const Tensor> outputs) {
  for (NamedStage& stage : StagesOf(outputs)) {
    if (!stage.operation->is_placeholder()) stages_.emplace_back(new Stage(std::move(stage.operation)));
  }
}

// One Apply: which loop each axis is now, and which block each stage.
class StageApplier {
 public:
  explicit StageApplier(schedule::Schedule& schedule) : s_(schedule) {}

  Status Run(const std::vector<const Stage*>& stages, const std::vector<std::string>& blocks) {
    for (size_t i = 0; i < stages.size(); ++i) {
      if (std::holds_alternative<Stage::Inline>(stages[i]->place_)) s_.ComputeInline(s_.GetBlock(blocks[i]));
    }
    INGOT_RETURN_IF_ERROR(s_.status());
    for (size_t i = stages.size(); i-- > 0;) {
      if (std::holds_alternative<Stage::Inline>(stages[i]->place_)) continue;
      INGOT_RETURN_IF_ERROR(PlaceAndShape(*stages[i], blocks[i]));
    }
    // Kinds come last: blocks move under plain loops alone.
    for (const Stage* stage : stages) {
      if (std::holds_alternative<Stage::Inline>(stage->place_)) continue;
      for (const Stage::Step& step : stage->steps_) INGOT_RETURN_IF_ERROR(SetKind(*stage, step));
    }
    return Status();
  }

 private:
  Status Refuse(const Stage& stage, const std::string& what) const {
    return Status(StatusCode::kInvalidArgument, "stage \"" + stage.operation_->name + "\": " + what);
  }

  Result<LoopRV> LoopOf(const Stage& stage, const IterVar& axis) const {
    const auto it = loops_.find(axis);
    if (it != loops_.end()) return it->second;
    return Refuse(stage,
                  "axis " + axis->var->name + " is no loop: it was split, fused or inlined, or is another stage's");
  }

  Status PlaceAndShape(const Stage& stage, const std::string& name) {
    const BlockRV block = s_.GetBlock(name);
    INGOT_RETURN_IF_ERROR(s_.status());
    if (const auto* at = std::get_if<Stage::At>(&stage.place_)) {
      INGOT_ASSIGN_OR_RETURN(const LoopRV target, LoopOf(stage, at->axis));
      s_.ComputeAt(block, target);
      INGOT_RETURN_IF_ERROR(s_.status());
    }
    std::vector<IterVar> axes = stage.operation_->axes;
    const auto* reduce = ir::As<ir::ReduceNode>(stage.operation_->bodies[0]);
    if (reduce != nullptr) axes.insert(axes.end(), reduce->axes.begin(), reduce->axes.end());
    const std::vector<LoopRV> around = s_.GetLoops(block);
    INGOT_RETURN_IF_ERROR(s_.status());
    INGOT_CHECK(around.size() >= axes.size(), "a loop for every axis");
    for (size_t i = 0; i < axes.size(); ++i) loops_[axes[i]] = around[around.size() - axes.size() + i];
    for (const Stage::Step& step : stage.steps_) INGOT_RETURN_IF_ERROR(Shape(stage, step));
    return Status();
  }

  Status Shape(const Stage& stage, const Stage::Step& step) {
    const bool shapes = step.kind == Stage::Step::kSplit || step.kind == Stage::Step::kSplitIntoParts ||
                        step.kind == Stage::Step::kFuse || step.kind == Stage::Step::kReorder;
    if (!shapes) return Status();
    std::vector<LoopRV> inputs;
    for (const IterVar& axis : step.inputs) {
      INGOT_ASSIGN_OR_RETURN(const LoopRV loop, LoopOf(stage, axis));
      inputs.push_back(loop);
    }
    std::vector<LoopRV> made;
    if (step.kind == Stage::Step::kReorder) {
      s_.Reorder(inputs);
    } else if (step.kind == Stage::Step::kFuse) {
      made = {s_.Fuse(inputs)};
    } else if (step.kind == Stage::Step::kSplit) {
      made = s_.Split(inputs[0], {schedule::kRest, step.number});
    } else {
      made = s_.Split(inputs[0], {step.number, schedule::kRest});
    }
    INGOT_RETURN_IF_ERROR(s_.status());
    if (made.empty()) return Status();
    for (const IterVar& axis : step.inputs) loops_.erase(axis);
    for (size_t i = 0; i < made.size(); ++i) loops_[step.outputs[i]] = made[i];
    return Status();
  }

  Status SetKind(const Stage& stage, const Stage::Step& step) {
    switch (step.kind) {
      case Stage::Step::kSplit:
      case Stage::Step::kSplitIntoParts:
      case Stage::Step::kFuse:
      case Stage::Step::kReorder:
        return Status();
      case Stage::Step::kParallel:
      case Stage::Step::kVectorize:
      case Stage::Step::kUnroll:
      case Stage::Step::kBind:
        break;
    }
    INGOT_ASSIGN_OR_RETURN(const LoopRV loop, LoopOf(stage, step.inputs[0]));
    if (step.kind == Stage::Step::kParallel) s_.Parallel(loop);
    if (step.kind == Stage::Step::kVectorize) s_.Vectorize(loop);
    if (step.kind == Stage::Step::kUnroll) s_.Unroll(loop);
    if (step.kind == Stage::Step::kBind) s_.Bind(loop, step.thread_tag);
    return s_.status();
  }

  schedule::Schedule& s_;
  std::unordered_map<IterVar, LoopRV, ir::RefHash, ir::RefSame> loops_;
};

Result<schedule::Schedule> Schedule::Apply(std::span<const Tensor> args, std::vector<ir::PrimVar> scalars) const {
  INGOT_ASSIGN_OR_RETURN(schedule::Schedule scheduled,
                         schedule::Schedule::Create(CreatePrimFunc(args, std::move(scalars))));
  std::vector<const Stage*> stages;
  std::vector<std::string> blocks;
  for (const NamedStage& named : StagesOf(args)) {
    for (const std::unique_ptr<Stage>& stage : stages_) {
      if (!stage->operation_.same_as(named.operation)) continue;
      stages.push_back(stage.get());
      blocks.push_back(named.block);
    }
  }
  INGOT_RETURN_IF_ERROR(StageApplier(scheduled).Run(stages, blocks));
  return scheduled;
}

Result<ir::PrimFunc> Schedule::Lower(std::initializer_list<Tensor> args, std::vector<ir::PrimVar> scalars) const {
  INGOT_ASSIGN_OR_RETURN(const schedule::Schedule scheduled, Apply(args, std::move(scalars)));
  return schedule::MarkScheduled(scheduled.function());
}

}  // namespace ingot::te
