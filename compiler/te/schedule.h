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
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/schedule/schedule.h"
#include "compiler/te/tensor.h"

namespace ingot::te {

// The axes of a computed tensor's stage, and of its reduction (none where it has none).
const std::vector<ir::IterVar>& AxesOf(const Tensor& tensor);
std::vector<ir::IterVar> ReduceAxesOf(const Tensor& tensor);
// An axis of threads for Bind: "blockIdx.x", "threadIdx.y", ...
ir::IterVar ThreadAxis(std::string tag);

// One operation's part of a schedule. Axes are those of the operation and those that Split, Fuse and Tile make; each is
// a loop until it is split or fused.
class Stage {
 public:
  struct Tiles {
    ir::IterVar x_outer, y_outer, x_inner, y_inner;
  };

  // Into loops of (about) extent / factor times factor iterations, and of parts times the rest.
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
  // Where the stage is computed: under an axis of another stage that reads it, in place of what it is read by, or in a
  // nest of its own (as from the start). The last of these calls counts.
  void ComputeAt(const Stage& consumer, const ir::IterVar& axis);
  void ComputeInline() { place_ = Inline{}; }
  void ComputeRoot() { place_ = Root{}; }

  const Operation& operation() const { return operation_; }

 private:
  friend class Schedule;
  friend class StageApplier;
  struct Root {};
  struct Inline {};
  struct At {
    Operation consumer;
    ir::IterVar axis;
  };
  struct Step {
    enum Kind : uint8_t { kSplit, kSplitIntoParts, kFuse, kReorder, kParallel, kVectorize, kUnroll, kBind } kind;
    std::vector<ir::IterVar> inputs, outputs;
    int64_t number;
    std::string thread_tag;
  };
  explicit Stage(Operation operation) : operation_(std::move(operation)) {}

  Operation operation_;
  std::vector<Step> steps_;
  std::variant<Root, Inline, At> place_;
};

class Schedule {
 public:
  // Of everything that the outputs are computed from.
  explicit Schedule(std::span<const Tensor> outputs);

  // The stage of a computed tensor that the outputs need (INGOT_CHECKed).
  Stage& operator[](const Tensor& tensor);

  // The function over args (as CreatePrimFunc), with everything done that the stages were told. The result can be
  // scheduled further, and its trace replayed.
  Result<schedule::Schedule> Apply(std::span<const Tensor> args, std::vector<ir::PrimVar> scalars = {}) const;
  Result<schedule::Schedule> Apply(std::initializer_list<Tensor> args, std::vector<ir::PrimVar> scalars = {}) const {
    return Apply(std::span<const Tensor>(args.begin(), args.size()), std::move(scalars));
  }
  // The same, marked as scheduled, so that the compiler takes it as it is.
  Result<ir::PrimFunc> Lower(std::initializer_list<Tensor> args, std::vector<ir::PrimVar> scalars = {}) const;

 private:
  std::vector<std::unique_ptr<Stage>> stages_;  // producers before consumers
};

inline Schedule CreateSchedule(std::initializer_list<Tensor> outputs) {
  return Schedule(std::span<const Tensor>(outputs.begin(), outputs.size()));
}

}  // namespace ingot::te
