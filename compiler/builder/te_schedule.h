// Schedules of tensor expressions by stages, the way of te.create_schedule: each stage (an operation) is told how its
// loops run and where it is computed, in any order of calls. Nothing happens until Apply, which makes the function and
// gives the calls to a TensorIR schedule (compiler/schedule), consumers first: their loops, then the producers under
// them. What TensorIR finds illegal, Apply refuses with its message.
//
//   te::Schedule s = te::CreateSchedule({c});
//   const auto [i_outer, i_inner] = s[c].Split(te::AxesOf(c)[0], 4);
//   s[c].Parallel(i_outer);
//   s[c].Vectorize(i_inner);
//   Result<schedule::Schedule> scheduled = s.Apply({a, b, c});
//
// CacheRead, CacheWrite and RFactor make stages of their own, with axes of their own. Apply makes them first. Calls on
// a stage before such a call apply to what the stage is afterwards (the copy out of CacheWrite), except the splits of
// reduction axes that an RFactor needs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/schedule/schedule.h"
#include "compiler/te/tensor.h"
#include "compiler/te/var.h"

namespace ingot::te {

// The axes of a computed tensor's stage, and of its reduction (none where it has none).
const std::vector<ir::IterVar>& AxesOf(const Tensor& tensor);
std::vector<ir::IterVar> ReduceAxesOf(const Tensor& tensor);
// An axis of threads for Bind: "blockIdx.x", "threadIdx.y", ...
ir::IterVar ThreadAxis(std::string tag);

// One operation's part of a schedule. Axes are its own, and those that Split, Fuse and Tile make; each is a loop until
// it is split or fused.
class Stage {
 public:
  struct Tiles {
    ir::IterVar x_outer, y_outer, x_inner, y_inner;
  };

  // The stage's axes as it is now; for a stage of an operation, those of AxesOf and ReduceAxesOf.
  const std::vector<ir::IterVar>& Axes() const { return axes_; }
  const std::vector<ir::IterVar>& ReduceAxes() const { return reduce_axes_; }
  const std::string& name() const { return name_; }

  // Split makes loops of ceil(extent / factor) and factor iterations; SplitIntoParts of parts and ceil(extent / parts)
  // iterations.
  std::pair<ir::IterVar, ir::IterVar> Split(const ir::IterVar& axis, int64_t factor);
  std::pair<ir::IterVar, ir::IterVar> SplitIntoParts(const ir::IterVar& axis, int64_t parts);
  ir::IterVar Fuse(const ir::IterVar& outer, const ir::IterVar& inner);
  void Reorder(std::vector<ir::IterVar> order);
  Tiles Tile(const ir::IterVar& x, const ir::IterVar& y, int64_t x_factor, int64_t y_factor);
  void Parallel(const ir::IterVar& axis) { steps_.push_back({Step::kParallel, {axis}, {}, 0, {}}); }
  void Vectorize(const ir::IterVar& axis) { steps_.push_back({Step::kVectorize, {axis}, {}, 0, {}}); }
  void Unroll(const ir::IterVar& axis) { steps_.push_back({Step::kUnroll, {axis}, {}, 0, {}}); }
  void Bind(const ir::IterVar& axis, const ir::IterVar& thread) {
    steps_.push_back({Step::kBind, {axis}, {}, 0, thread->thread_tag});
  }
  // The place where the stage is computed: under an axis of another stage that reads it, inlined into its readers, or
  // in a nest of its own (the default). The last of these calls counts.
  void ComputeAt(const Stage& consumer, const ir::IterVar& axis);
  void ComputeInline() { place_ = Inline{}; }
  void ComputeRoot() { place_ = Root{}; }

 private:
  friend class Schedule;
  friend class StageApplier;
  struct Root {};
  struct Inline {};
  struct At {
    const Stage* consumer;
    ir::IterVar axis;
  };
  struct Step {
    enum Kind : uint8_t { kSplit, kSplitIntoParts, kFuse, kReorder, kParallel, kVectorize, kUnroll, kBind } kind;
    std::vector<ir::IterVar> inputs, outputs;
    int64_t number;
    std::string thread_tag;
  };
  explicit Stage(Operation operation);
  Stage(std::string name, std::vector<ir::IterVar> axes, std::vector<ir::IterVar> reduce_axes)
      : name_(std::move(name)), axes_(std::move(axes)), reduce_axes_(std::move(reduce_axes)) {}

  // The reduction axes after the steps so far.
  std::vector<ir::IterVar> ReduceLeaves() const;

  std::string name_;
  Operation operation_;  // null: a stage that the schedule made
  std::vector<ir::IterVar> axes_, reduce_axes_;
  std::vector<Step> steps_;
  size_t first_step_ = 0;  // earlier steps made the loops of an RFactor
  std::variant<Root, Inline, At> place_;
};

class Schedule {
 public:
  // A schedule of all stages from which the outputs are computed.
  explicit Schedule(std::span<const Tensor> outputs);

  // The stage of a computed tensor that the outputs need (INGOT_CHECKed).
  Stage& operator[](const Tensor& tensor);

  using Readers = std::vector<std::reference_wrapper<const Stage>>;
  // A copy of a tensor, or of what a stage makes, in memory of the scope ("global", "local"), for these stages (one at
  // least), which read it instead. Its axes are the tensor's dimensions.
  Stage& CacheRead(const Tensor& tensor, std::string scope, Readers readers);
  Stage& CacheRead(const Stage& source, std::string scope, Readers readers);
  // The stage that computes the tensor into memory of the scope, with the axes that it had; the tensor's own stage is a
  // copy from there, over the same dimensions.
  Stage& CacheWrite(const Tensor& tensor, std::string scope);
  // The stage that makes partial results for each value of a reduction axis (or of one that it was split into). Its
  // axes are the tensor's and, last, this one; it reduces over the others. The tensor's own stage is left with a
  // reduction over this one, in its ReduceAxes().
  Stage& RFactor(const Tensor& tensor, const ir::IterVar& axis);

  // The function over args (as CreatePrimFunc), scheduled as the stages say. The result can be scheduled further, and
  // its trace replayed. What TensorIR's primitives refuse is an error.
  Result<schedule::Schedule> Apply(std::span<const Tensor> args, std::vector<ir::PrimVar> scalars = {}) const;
  Result<schedule::Schedule> Apply(std::initializer_list<Tensor> args, std::vector<ir::PrimVar> scalars = {}) const {
    return Apply(std::span<const Tensor>(args.begin(), args.size()), std::move(scalars));
  }
  // The same, marked as scheduled, so that the compiler takes it as it is.
  Result<ir::PrimFunc> Lower(std::initializer_list<Tensor> args, std::vector<ir::PrimVar> scalars = {}) const;

 private:
  // One CacheRead, CacheWrite or RFactor, in the order of the calls.
  struct Rewrite {
    enum Kind : uint8_t { kCacheRead, kCacheWrite, kRFactor } kind;
    const Stage* made;
    const Stage* subject;  // source, or the tensor's own stage; null: a placeholder
    Tensor placeholder;
    std::string scope;
    std::vector<const Stage*> readers;
    // For RFactor: the axis and the other reduction axes; the axes that the stage reduced over, and its steps on them.
    ir::IterVar axis;
    std::vector<ir::IterVar> others, reduce_axes;
    size_t first_step = 0, end_step = 0;
  };
  friend class StageApplier;
  Stage& Insert(const Stage& before, Stage stage);
  Stage& MakeCopy(Rewrite rewrite, std::string name, const std::vector<ir::PrimExpr>& shape, const Readers& readers);

  std::vector<std::unique_ptr<Stage>> stages_;  // producers before consumers
  std::vector<Rewrite> rewrites_;
};

inline Schedule CreateSchedule(std::initializer_list<Tensor> outputs) {
  return Schedule(std::span<const Tensor>(outputs.begin(), outputs.size()));
}

}  // namespace ingot::te
