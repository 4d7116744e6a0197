// Tasks: what there is to tune of a model for one CPU. One per different kernel: tensor functions of equal structure
// are one task, whose weight is how often one run of the model calls them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/target/target.h"
#include "compiler/tune/sizes.h"
#include "runtime/status.h"

namespace ingot::tune {

struct Task {
  std::string key;                 // of the function (TaskKey), and ":" and the name of a template (template.h)
  std::vector<std::string> names;  // of the tensor functions, in the order of the module
  ir::PrimFunc function;           // unscheduled; of a model's, with its buffers named by their places
  // The schedule that choices give; null: the default rules' (Scheduled asks the right one).
  std::function<Result<schedule::ScheduledFunction>(const Target& target, const schedule::Chosen& chosen)> apply;
  // Calls that graph functions spell out. A loop counts once, each branch counts.
  int64_t weight = 0;
  double flops = 0, bytes = 0;  // of a call; of several sizes, the mean
  bool is_symbolic = false;     // sizes depend on symbols; those without sizes count as kernels::kLikelySize
  int threads = 0;  // that it is measured with; of one, tasks of parallel loops are not chosen; 0: not known yet
  double predicted_seconds = 0;  // of the default schedule, by kernels/predict_cost
  // By the buffers of the function's parameters: whether no call gives a weight there, so that another kernel has just
  // written what is read. Empty: none is such.
  std::vector<bool> warm;
  std::vector<schedule::Choice> choices;  // that the default schedule makes; empty: there is nothing to tune

  double num_schedules() const;  // how many there are if choices were independent; 1: nothing is chosen
  Result<schedule::ScheduledFunction> Scheduled(const Target& target, const schedule::Chosen& chosen) const;
};

// "1-0123456789abcdef": the version of the structural hash, and the hash, in which names do not count.
std::string TaskKey(const ir::PrimFunc& function);
// The same for the text of a whole module behind the graph passes, in which names and weights count, and for how its
// kernels are optimised.
std::string ModelKey(const ir::IRModule& module, int opt_level);
// The function as text, which reads back as a function of the same structure.
std::string TaskText(const ir::PrimFunc& function);
Result<ir::PrimFunc> ParseTaskText(const std::string& text);

// The task with what follows from its function: FLOPs, bytes, the predicted time, choices.
Result<Task> Described(Task task, const Target& target, std::span<const Sizes> sizes = {});

// The larger of the task's FLOPs at the arithmetic peak of one core in float32 and of its bytes at 12 GB/s, at a
// nominal clock of 3 GHz: an estimate of what no schedule goes far below, of kernels whose tensors lie in memory.
double RooflineSeconds(const Task& task, const Target& target);

// The tasks of a module behind the graph passes, in its order.
Result<std::vector<Task>> TasksOf(const ir::IRModule& module, const Target& target, std::span<const Sizes> sizes = {});

}  // namespace ingot::tune
