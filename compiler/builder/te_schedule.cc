// Records the calls on stages as steps and rewrites; Apply makes the function and replays them on a TensorIR schedule.
#include "compiler/builder/te_schedule.h"

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
using schedule::LoopRVs;

namespace {

IterVar DerivedAxis(std::string name, ir::IterType type, PrimExpr extent) {
  const ir::PrimVar var = ir::MakePrimVar(std::move(name), extent->dtype);
  return Make<ir::IterVarNode>(ir::Range{ir::IntImm(var->dtype, 0), std::move(extent)}, var, type);
}

IterVar Again(const IterVar& axis) { return DerivedAxis(axis->var->name, axis->type, axis->domain.extent); }

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

void Stage::ComputeAt(const Stage& consumer, const IterVar& axis) { place_ = At{&consumer, axis}; }

Stage::Stage(Operation operation) : name_(operation->name), operation_(std::move(operation)), axes_(operation_->axes) {
  const auto* reduce = ir::As<ir::ReduceNode>(operation_->bodies[0]);
  if (reduce != nullptr) reduce_axes_ = reduce->axes;
}

std::vector<IterVar> Stage::ReduceLeaves() const {
  std::vector<IterVar> leaves = reduce_axes_;
  for (size_t i = first_step_; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (step.outputs.empty()) continue;
    const auto is_input = [&](const IterVar& leaf) {
      return std::any_of(step.inputs.begin(), step.inputs.end(), [&](const IterVar& v) { return v.same_as(leaf); });
    };
    const size_t before = leaves.size();
    std::erase_if(leaves, is_input);
    if (leaves.size() != before) leaves.insert(leaves.end(), step.outputs.begin(), step.outputs.end());
  }
  return leaves;
}

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

Stage& Schedule::Insert(const Stage& before, Stage stage) {
  const auto at = std::find_if(stages_.begin(), stages_.end(),
                               [&](const std::unique_ptr<Stage>& other) { return other.get() == &before; });
  INGOT_CHECK(at != stages_.end(), "a stage of this schedule");
  return **stages_.insert(at, std::make_unique<Stage>(std::move(stage)));
}

Stage& Schedule::MakeCopy(Rewrite rewrite, std::string name, const std::vector<PrimExpr>& shape,
                          const Readers& readers) {
  INGOT_CHECK(!readers.empty(), "one reader at least");
  std::vector<IterVar> axes;
  for (size_t d = 0; d < shape.size(); ++d) {
    axes.push_back(DerivedAxis("ax" + std::to_string(d), ir::IterType::kSpatial, shape[d]));
  }
  for (const Stage& reader : readers) rewrite.readers.push_back(&reader);
  const auto first = std::find_if(stages_.begin(), stages_.end(), [&](const std::unique_ptr<Stage>& stage) {
    return std::find(rewrite.readers.begin(), rewrite.readers.end(), stage.get()) != rewrite.readers.end();
  });
  INGOT_CHECK(first != stages_.end(), "a reader of this schedule");
  name += "_" + rewrite.scope;
  Stage& made = Insert(**first, Stage(std::move(name), std::move(axes), {}));
  rewrite.made = &made;
  rewrites_.push_back(std::move(rewrite));
  return made;
}

Stage& Schedule::CacheRead(const Tensor& tensor, std::string scope, Readers readers) {
  Rewrite rewrite{Rewrite::kCacheRead, nullptr, nullptr, {}, std::move(scope), {}, {}, {}, {}, 0, 0};
  if (!tensor->operation->is_placeholder()) {
    rewrite.subject = &(*this)[tensor];
  } else {
    rewrite.placeholder = tensor;
  }
  return MakeCopy(std::move(rewrite), tensor->name, tensor->shape, readers);
}

Stage& Schedule::CacheRead(const Stage& source, std::string scope, Readers readers) {
  std::vector<PrimExpr> shape;
  for (const IterVar& axis : source.axes_) shape.push_back(axis->domain.extent);
  Rewrite rewrite{Rewrite::kCacheRead, nullptr, &source, {}, std::move(scope), {}, {}, {}, {}, 0, 0};
  return MakeCopy(std::move(rewrite), source.name_, shape, readers);
}

Stage& Schedule::CacheWrite(const Tensor& tensor, std::string scope) {
  Stage& stage = (*this)[tensor];
  std::vector<IterVar> axes, reduce_axes;
  for (const IterVar& axis : stage.axes_) axes.push_back(Again(axis));
  for (const IterVar& axis : stage.reduce_axes_) reduce_axes.push_back(Again(axis));
  Stage& made = Insert(stage, Stage(stage.name_ + "_" + scope, std::move(axes), std::move(reduce_axes)));
  stage.reduce_axes_.clear();
  rewrites_.push_back({Rewrite::kCacheWrite, &made, &stage, {}, std::move(scope), {}, {}, {}, {}, 0, 0});
  return made;
}

Stage& Schedule::RFactor(const Tensor& tensor, const IterVar& axis) {
  Stage& stage = (*this)[tensor];
  Rewrite rewrite{Rewrite::kRFactor,  nullptr, &stage, {}, {}, {}, axis, {}, stage.reduce_axes_, stage.first_step_,
                  stage.steps_.size()};
  std::vector<IterVar> axes, reduce_axes;
  for (const IterVar& spatial : stage.axes_) axes.push_back(Again(spatial));
  axes.push_back(DerivedAxis(axis->var->name, ir::IterType::kSpatial, axis->domain.extent));
  for (const IterVar& leaf : stage.ReduceLeaves()) {
    if (leaf.same_as(axis)) continue;
    rewrite.others.push_back(leaf);
    reduce_axes.push_back(Again(leaf));
  }
  Stage& made = Insert(stage, Stage(stage.name_ + "_rf", std::move(axes), std::move(reduce_axes)));
  stage.reduce_axes_ = {Again(axis)};
  stage.first_step_ = stage.steps_.size();
  rewrite.made = &made;
  rewrites_.push_back(std::move(rewrite));
  return made;
}

// The state of one Apply: which loop each axis is now, and which block each stage.
class StageApplier {
 public:
  StageApplier(schedule::Schedule& schedule, std::span<const Tensor> args) : s_(schedule), args_(args) {}

  Status Run(const Schedule& schedule) {
    for (const NamedStage& named : StagesOf(args_)) {
      for (const std::unique_ptr<Stage>& stage : schedule.stages_) {
        if (stage->operation_.same_as(named.operation)) blocks_[stage.get()] = named.block;
      }
    }
    for (const Schedule::Rewrite& rewrite : schedule.rewrites_) INGOT_RETURN_IF_ERROR(Apply(rewrite));
    std::vector<const Stage*> stages;  // the stages that the arguments need
    for (const std::unique_ptr<Stage>& stage : schedule.stages_) {
      if (blocks_.count(stage.get()) != 0) stages.push_back(stage.get());
    }
    for (const Stage* stage : stages) {
      if (IsInline(*stage)) s_.ComputeInline(s_.GetBlock(blocks_.at(stage)));
    }
    INGOT_RETURN_IF_ERROR(s_.status());
    for (size_t i = stages.size(); i-- > 0;) {
      if (!IsInline(*stages[i])) INGOT_RETURN_IF_ERROR(PlaceAndShape(*stages[i]));
    }
    // The kinds of loops are set last, since blocks can be moved under serial loops only.
    for (const Stage* stage : stages) {
      if (IsInline(*stage)) continue;
      for (size_t i = stage->first_step_; i < stage->steps_.size(); ++i) {
        INGOT_RETURN_IF_ERROR(SetKind(*stage, stage->steps_[i]));
      }
    }
    return Status();
  }

 private:
  static bool ShapesLoops(const Stage::Step& step) {
    return step.kind == Stage::Step::kSplit || step.kind == Stage::Step::kSplitIntoParts ||
           step.kind == Stage::Step::kFuse || step.kind == Stage::Step::kReorder;
  }
  static bool IsInline(const Stage& stage) { return std::holds_alternative<Stage::Inline>(stage.place_); }

  Status Refuse(const Stage& stage, const std::string& what) const {
    return Status(StatusCode::kInvalidArgument, "stage \"" + stage.name_ + "\": " + what);
  }

  Result<LoopRV> LoopOf(const Stage& stage, const IterVar& axis) const {
    const auto it = loops_.find(axis);
    if (it != loops_.end()) return it->second;
    return Refuse(stage,
                  "axis " + axis->var->name + " is no loop: it was split, fused or inlined, or is another stage's");
  }
  Result<std::string> BlockOf(const Stage& stage) const {
    const auto it = blocks_.find(&stage);
    if (it != blocks_.end()) return it->second;
    return Refuse(stage, "the function's arguments do not need it");
  }

  Status Apply(const Schedule::Rewrite& rewrite) {
    std::string block;
    if (rewrite.subject != nullptr) {
      INGOT_ASSIGN_OR_RETURN(block, BlockOf(*rewrite.subject));
    }
    switch (rewrite.kind) {
      case Schedule::Rewrite::kCacheRead:
        return ApplyCacheRead(rewrite, block);
      case Schedule::Rewrite::kCacheWrite: {
        // The block that computes keeps its name.
        const BlockRV copy = s_.CacheWrite(s_.GetBlock(block), 0, rewrite.scope);
        blocks_[rewrite.made] = block;
        blocks_[rewrite.subject] = s_.Block(copy).block().name;
        return s_.status();
      }
      case Schedule::Rewrite::kRFactor:
        return ApplyRFactor(rewrite, block);
    }
    INGOT_UNREACHABLE("Rewrite::Kind");
  }

  Status ApplyCacheRead(const Schedule::Rewrite& rewrite, const std::string& source) {
    ir::Buffer buffer;
    if (rewrite.subject != nullptr) {
      const BlockRV made = s_.GetBlock(source);
      INGOT_RETURN_IF_ERROR(s_.status());
      buffer = s_.Block(made).block().writes[0].buffer;
    } else {
      for (size_t i = 0; i < args_.size(); ++i) {
        if (args_[i].same_as(rewrite.placeholder)) buffer = s_.function()->params[i].buffer;
      }
    }
    std::vector<BlockRV> readers;
    for (const Stage* reader : rewrite.readers) {
      INGOT_ASSIGN_OR_RETURN(const std::string name, BlockOf(*reader));
      readers.push_back(s_.GetBlock(name));
    }
    INGOT_RETURN_IF_ERROR(s_.status());
    const std::vector<ir::BufferRegion> reads = s_.Block(readers[0]).block().reads;
    const auto read = std::find_if(reads.begin(), reads.end(),
                                   [&](const ir::BufferRegion& region) { return region.buffer.same_as(buffer); });
    if (read == reads.end()) {
      return Refuse(*rewrite.made, "stage \"" + rewrite.readers[0]->name_ + "\" does not read what is copied");
    }
    const BlockRV copy =
        s_.CacheRead(readers[0], read - reads.begin(), rewrite.scope, {readers.begin() + 1, readers.end()});
    blocks_[rewrite.made] = s_.Block(copy).block().name;
    return s_.status();
  }

  Status ApplyRFactor(const Schedule::Rewrite& rewrite, const std::string& name) {
    const Stage& stage = *rewrite.subject;
    const BlockRV block = s_.GetBlock(name);
    std::vector<IterVar> axes = stage.axes_;
    axes.insert(axes.end(), rewrite.reduce_axes.begin(), rewrite.reduce_axes.end());
    INGOT_RETURN_IF_ERROR(NameLoops(block, axes));
    for (size_t i = rewrite.first_step; i < rewrite.end_step; ++i) {
      const Stage::Step& step = stage.steps_[i];
      for (const IterVar& axis : step.inputs) {
        if (ShapesLoops(step) && axis->type == ir::IterType::kReduce) continue;
        return Refuse(
            stage, "before rfactor, reduction axes alone are split, and nothing else is done; here " + axis->var->name);
      }
      INGOT_RETURN_IF_ERROR(Shape(stage, step));
    }
    std::vector<LoopRV> order;
    INGOT_ASSIGN_OR_RETURN(const LoopRV factor, LoopOf(stage, rewrite.axis));
    order.push_back(factor);
    for (const IterVar& other : rewrite.others) {
      INGOT_ASSIGN_OR_RETURN(const LoopRV loop, LoopOf(stage, other));
      order.push_back(loop);
    }
    if (order.size() > 1) s_.Reorder(order);  // in the order of the partial stage's axes
    const BlockRV partial = s_.RFactor(factor);
    loops_.clear();
    blocks_[rewrite.made] = s_.Block(partial).block().name;
    return s_.status();
  }

  // Says that the innermost loops around the block are these axes.
  Status NameLoops(BlockRV block, const std::vector<IterVar>& axes) {
    const LoopRVs around = s_.GetLoops(block);
    INGOT_RETURN_IF_ERROR(s_.status());
    INGOT_CHECK(around.size() >= axes.size(), "a loop for every axis");
    for (size_t i = 0; i < axes.size(); ++i) loops_[axes[i]] = around[around.size() - axes.size() + i];
    return Status();
  }

  Status PlaceAndShape(const Stage& stage) {
    const BlockRV block = s_.GetBlock(blocks_.at(&stage));
    INGOT_RETURN_IF_ERROR(s_.status());
    if (const auto* at = std::get_if<Stage::At>(&stage.place_)) {
      INGOT_ASSIGN_OR_RETURN(const LoopRV target, LoopOf(stage, at->axis));
      s_.ComputeAt(block, target);
      INGOT_RETURN_IF_ERROR(s_.status());
    }
    std::vector<IterVar> axes = stage.axes_;
    axes.insert(axes.end(), stage.reduce_axes_.begin(), stage.reduce_axes_.end());
    INGOT_RETURN_IF_ERROR(NameLoops(block, axes));
    for (size_t i = stage.first_step_; i < stage.steps_.size(); ++i) {
      INGOT_RETURN_IF_ERROR(Shape(stage, stage.steps_[i]));
    }
    return Status();
  }

  Status Shape(const Stage& stage, const Stage::Step& step) {
    if (!ShapesLoops(step)) return Status();
    std::vector<LoopRV> inputs;
    for (const IterVar& axis : step.inputs) {
      INGOT_ASSIGN_OR_RETURN(const LoopRV loop, LoopOf(stage, axis));
      inputs.push_back(loop);
    }
    LoopRVs made;
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
  const std::span<const Tensor> args_;
  std::unordered_map<IterVar, LoopRV, ir::RefHash, ir::RefSame> loops_;
  std::unordered_map<const Stage*, std::string> blocks_;
};

Result<schedule::Schedule> Schedule::Apply(std::span<const Tensor> args, std::vector<ir::PrimVar> scalars) const {
  INGOT_ASSIGN_OR_RETURN(schedule::Schedule scheduled,
                         schedule::Schedule::Create(CreatePrimFunc(args, std::move(scalars))));
  INGOT_RETURN_IF_ERROR(StageApplier(scheduled, args).Run(*this));
  return scheduled;
}

Result<ir::PrimFunc> Schedule::Lower(std::initializer_list<Tensor> args, std::vector<ir::PrimVar> scalars) const {
  INGOT_ASSIGN_OR_RETURN(const schedule::Schedule scheduled, Apply(args, std::move(scalars)));
  return schedule::MarkScheduled(scheduled.function());
}

}  // namespace ingot::te
