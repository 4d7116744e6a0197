// Groups a module's tensor functions by structure, and counts the calls of each.
#include "compiler/tune/task.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/kernels/kernel_sources.h"
#include "compiler/kernels/predict_cost.h"
#include "compiler/script/constant_store.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/tensor/lowered.h"
#include "formats/byte_reader.h"
#include "formats/hash.h"

namespace ingot::tune {
namespace {

// How often graph functions name each function, and which arguments of its calls are constants.
class CallCounter : public ir::ExprVisitor {
 public:
  std::map<std::string, int64_t> calls;
  std::map<std::string, std::set<size_t>> weights;

  void VisitBinding(const ir::Binding& binding) override {
    ir::ExprVisitor::VisitBinding(binding);
    if (IsConstant(binding.value)) constants_.insert(binding.var.get());
    if (const std::optional<transform::CallTir> call = transform::AsCallTir(binding.value)) {
      for (size_t i = 0; i < call->args.size(); ++i) {
        if (IsConstant(call->args[i])) weights[call->callee->name].insert(i);
      }
    }
  }

 protected:
  using ir::ExprVisitor::Visit;
  void Visit(const ir::GlobalVarNode& var) override { ++calls[var.name]; }

 private:
  bool IsConstant(const ir::Expr& value) const {
    if (ir::As<ir::ConstantNode>(value) != nullptr) return true;
    const auto* var = ir::As<ir::VarNode>(value);
    return var != nullptr && constants_.contains(var);
  }

  std::unordered_set<const ir::VarNode*> constants_;
};

// The mean of a formula over a kernel's integer arguments at these sizes; of no sizes, at likely ones.
double AmountAt(const DimCode& formula, const std::vector<vm::KernelInt>& ints, std::span<const Sizes> sizes) {
  static const std::vector<Sizes> kLikely(1);
  if (sizes.empty()) sizes = kLikely;
  double sum = 0, weights = 0;
  for (const Sizes& one : sizes) {
    std::vector<int64_t> values;
    for (const vm::KernelInt& argument : ints) {
      const auto found = one.values.find(argument.name);
      values.push_back(found == one.values.end() ? kernels::kLikelySize : found->second);
    }
    const Result<int64_t> amount = formula.Evaluate(values);
    sum += one.weight * (amount.ok() ? static_cast<double>(*amount) : 0);
    weights += one.weight;
  }
  return sum / weights;
}

}  // namespace

Result<schedule::ScheduledFunction> Task::Scheduled(const Target& target, const schedule::Chosen& chosen) const {
  return apply ? apply(target, chosen) : schedule::ApplyDefaultSchedule(function, target, chosen);
}

double Task::num_schedules() const {
  double schedules = 1;
  for (const schedule::Choice& choice : choices) schedules *= static_cast<double>(choice.candidates.size());
  return schedules;
}

namespace {

void CoolWeights(const std::set<size_t>& weights, Task& task) {
  for (const size_t weight : weights) {
    if (weight < task.warm.size()) task.warm[weight] = false;
  }
}

}  // namespace

Result<Task> Described(Task task, const Target& target, std::span<const Sizes> sizes) {
  INGOT_ASSIGN_OR_RETURN(const codegen::KernelDescription description,
                         codegen::DescribeKernel(task.names[0], task.function));
  const std::vector<vm::KernelInt>& ints = description.kernel.ints;
  task.is_symbolic = !ints.empty();
  task.flops = AmountAt(description.kernel.flops, ints, sizes);
  task.bytes = AmountAt(description.kernel.bytes, ints, sizes);
  INGOT_ASSIGN_OR_RETURN(schedule::ScheduledFunction scheduled, task.Scheduled(target, {}));
  INGOT_ASSIGN_OR_RETURN(const ir::PrimFunc lowered, transform::LowerPrimFunc(scheduled.function, target));
  task.predicted_seconds = kernels::PredictCost(lowered, target, task.bytes).nanoseconds * 1e-9;
  for (schedule::Choice& choice : scheduled.choices) {
    if (choice.candidates.size() > 1) task.choices.push_back(std::move(choice));
  }
  return task;
}

std::string TaskKey(const ir::PrimFunc& function) {
  char text[40];
  std::snprintf(text, sizeof text, "%d-%016llx", ir::kStructuralHashVersion,
                static_cast<unsigned long long>(ir::StructuralHash(ir::Expr(function), true)));
  return text;
}

std::string ModelKey(const ir::IRModule& module, int opt_level) {
  script::ConstantStore constants;
  const std::string printed = script::PrintModule(module, {}, &constants) + "-O" + std::to_string(opt_level);
  char text[40];
  std::snprintf(text, sizeof text, "1-%016llx",
                static_cast<unsigned long long>(formats::Hash(formats::AsBytes(printed))));
  return text;
}

std::string TaskText(const ir::PrimFunc& function) { return script::PrintFunction("kernel", function); }

Result<ir::PrimFunc> ParseTaskText(const std::string& text) {
  // Its symbols are declared before it, as those of a module are.
  const size_t begin = text.starts_with('@') ? 0 : text.find("\n@") + 1;
  std::string indented = "    ";
  for (const char c : text.substr(begin)) {
    indented += c;
    if (c == '\n') indented += "    ";
  }
  INGOT_ASSIGN_OR_RETURN(
      const ir::IRModule module,
      script::ParseModule(text.substr(0, begin) + "@I.ir_module\nclass Module:\n" + indented + "\n", "tuning record"));
  for (const ir::IRModule::Entry& entry : module.functions()) {
    if (ir::PrimFunc function = ir::AsRef<ir::PrimFuncNode>(entry.function)) return function;
  }
  return Status(StatusCode::kBadInput, "its function is no tensor function");
}

double RooflineSeconds(const Task& task, const Target& target) {
  constexpr double kHertz = 3e9, kBytesPerSecond = 12e9;
  const double flops_per_second = 2.0 * target.vector_lanes(32) * target.fma_ports * kHertz;
  return std::max(task.flops / flops_per_second, task.bytes / kBytesPerSecond);
}

Result<std::vector<Task>> TasksOf(const ir::IRModule& module, const Target& target, std::span<const Sizes> sizes) {
  CallCounter counter;
  for (const ir::IRModule::Entry& entry : module.functions()) {
    if (ir::As<ir::FunctionNode>(entry.function) != nullptr) counter.VisitExpr(entry.function);
  }
  std::vector<Task> tasks;
  for (const kernels::NamedPrimFunc& named : kernels::PrimFuncsOf(module)) {
    const auto calls = counter.calls.find(named.name);
    const int64_t weight = calls == counter.calls.end() ? 0 : calls->second;
    const ir::PrimFunc by_place = kernels::WithParamsByPlace(named.function);
    const std::string key = TaskKey(by_place);
    const auto same = std::ranges::find_if(tasks, [&](const Task& task) {
      return task.key == key && ir::StructuralEqual(ir::Expr(task.function), ir::Expr(by_place), true);
    });
    if (same != tasks.end()) {
      same->names.push_back(named.name);
      same->weight += weight;
      CoolWeights(counter.weights[named.name], *same);
      continue;
    }
    Task found;
    found.key = key;
    found.names = {named.name};
    found.function = by_place;
    found.weight = weight;
    found.warm.assign(static_cast<size_t>(std::ranges::count_if(
                          by_place->params, [](const ir::PrimFuncParam& param) { return param.buffer != nullptr; })),
                      true);
    CoolWeights(counter.weights[named.name], found);
    Result<Task> task = Described(std::move(found), target, sizes);
    if (!task.ok()) return std::move(task).status().WithContext("prim function \"" + named.name + "\"");
    tasks.push_back(*std::move(task));
  }
  return tasks;
}

}  // namespace ingot::tune
