// The schedule tells which rule made which blocks; the scheduled loops around a block tell how it runs; the lowered
// function tells what it costs.
#include "compiler/kernels/explain_kernels.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/ir/visitor.h"
#include "compiler/kernels/kernel_sources.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/schedule/device_loops.h"
#include "compiler/transform/tensor/lowered.h"

namespace ingot::kernels {

namespace {

// How the stores of each block run, by the name of the innermost block around them ("": none).
struct BlockLoops {
  double stores = 0;
  int lanes = 1;
  bool is_parallel = false;
};

class LoopSurvey : public ir::StmtVisitor {
 public:
  explicit LoopSurvey(const Target& target) : target_(target) {}
  std::map<std::string, BlockLoops> blocks;

 protected:
  using ir::StmtVisitor::Visit;
  void Visit(const ir::ForNode& loop) override {
    const int64_t extent = LikelyValue(loop.extent);
    const State outer = state_;
    state_.times *= static_cast<double>(std::max<int64_t>(extent, 0));
    const bool in_threads = loop.for_kind == ir::ForKind::kThreadBinding;
    state_.is_parallel |= in_threads || loop.for_kind == ir::ForKind::kParallel;
    if (loop.for_kind == ir::ForKind::kVectorized) state_.lanes *= extent;
    if (schedule::IsAmxProduct(loop)) state_.lanes *= schedule::kAmxColumns;
    VisitStmt(loop.body);
    state_ = outer;
  }
  void Visit(const ir::BlockNode& block) override {
    const std::string outer = std::exchange(block_, block.name);
    VisitStmt(block.body);
    block_ = outer;
  }
  void Visit(const ir::BufferStoreNode& store) override {
    BlockLoops& of = blocks[block_];
    of.stores += state_.times;
    const int64_t own = std::max<int64_t>(store.value->dtype.lanes, 1);
    const int64_t width = std::max(target_.vector_lanes(std::max<int>(store.buffer->dtype.bits, 8)), 1);
    of.lanes = std::max(of.lanes, static_cast<int>(std::clamp<int64_t>(state_.lanes * own, 1, width)));
    of.is_parallel |= state_.is_parallel;
  }

 private:
  struct State {
    double times = 1;
    int64_t lanes = 1;
    bool is_parallel = false;
  };
  const Target& target_;
  State state_;
  std::string block_;
};

void AddLoops(const std::map<std::string, BlockLoops>& blocks, const std::string& name, ScheduledPart& part) {
  const auto found = blocks.find(name);
  if (found == blocks.end()) return;
  part.stores += found->second.stores;
  part.lanes = std::max(part.lanes, found->second.lanes);
  part.is_parallel |= found->second.is_parallel;
}

// The rules that did not schedule the block; the layout of the one that did.
void AddAnswers(const schedule::ScheduledFunction& scheduled, ScheduledPart& part) {
  for (const schedule::RuleAnswer& answer : scheduled.answers) {
    if (answer.block != part.block) continue;
    if (answer.is_scheduled()) {
      part.layout = answer.match->layout;
    } else {
      part.declined.push_back(
          {answer.rule, answer.why_not(), !answer.match && answer.match.declined().is_of_other_kind});
    }
  }
}

std::vector<ScheduledPart> PartsOf(const schedule::ScheduledFunction& scheduled, const Target& target) {
  LoopSurvey survey(target);
  survey.VisitStmt(scheduled.function->body);
  std::vector<ScheduledPart> parts;
  for (const schedule::Application& application : scheduled.applications) {
    ScheduledPart part;
    part.rule = application.rule;
    part.block = application.block;
    AddAnswers(scheduled, part);
    std::vector<std::string> blocks = application.blocks;
    std::ranges::sort(blocks);
    blocks.erase(std::ranges::unique(blocks).begin(), blocks.end());
    for (const std::string& block : blocks) {
      AddLoops(survey.blocks, block, part);
      survey.blocks.erase(block);
    }
    parts.push_back(std::move(part));
  }
  for (const auto& [name, loops] : survey.blocks) {  // what no rule took
    ScheduledPart part;
    part.block = name;
    part.layout = "plain";
    AddAnswers(scheduled, part);
    AddLoops(survey.blocks, name, part);
    parts.push_back(std::move(part));
  }
  return parts;
}

// 0 where the formula overflows.
double LikelyAmount(const DimCode& formula, std::span<const int64_t> sizes) {
  const Result<int64_t> amount = formula.Evaluate(sizes);
  return amount.ok() ? static_cast<double>(*amount) : 0;
}

Result<KernelExplanation> ExplainKernel(const NamedPrimFunc& named, const Target& target) {
  KernelExplanation kernel;
  kernel.name = named.name;
  kernel.target = target.name;
  INGOT_ASSIGN_OR_RETURN(const codegen::KernelDescription description,
                         codegen::DescribeKernel(named.name, named.function));
  const std::vector<int64_t> sizes(description.kernel.ints.size(), kLikelySize);
  kernel.is_symbolic = !sizes.empty();
  kernel.flops = LikelyAmount(description.kernel.flops, sizes);
  kernel.bytes = LikelyAmount(description.kernel.bytes, sizes);
  INGOT_ASSIGN_OR_RETURN(const schedule::ScheduledFunction scheduled,
                         schedule::ApplyDefaultSchedule(named.function, target));
  if (scheduled.left_alone != nullptr) kernel.left_alone = scheduled.left_alone;
  kernel.parts = PartsOf(scheduled, target);
  INGOT_ASSIGN_OR_RETURN(const ir::PrimFunc lowered, transform::LowerPrimFunc(scheduled.function, target));
  if (target.kind == Target::Kind::kCpu) kernel.predicted = PredictCost(lowered, target, kernel.bytes);
  return kernel;
}

// "12.3 M"
std::string Amount(double value) {
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T"};
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %s", value, kUnits[unit]);
  return text;
}

std::string PartText(const ScheduledPart& part) {
  std::string line = "  " + part.block + ": " + (part.rule.empty() ? "no rule" : "rule " + part.rule);
  if (part.stores <= 0) {
    line += ", inlined\n";
  } else {
    line += ", " + part.layout + ", " + (part.lanes > 1 ? "vectors of " + std::to_string(part.lanes) : "no vectors") +
            (part.is_parallel ? ", parallel" : ", serial") + ", " + Amount(part.stores) + "stores\n";
  }
  std::vector<std::pair<std::string, std::string>> reasons;  // rules that say the same, and what they say
  for (const DeclinedRule& declined : part.declined) {
    if (declined.is_of_other_kind) continue;
    const auto same = std::ranges::find(reasons, declined.why, &std::pair<std::string, std::string>::second);
    if (same != reasons.end()) {
      same->first += ", " + declined.rule;
    } else {
      reasons.emplace_back(declined.rule, declined.why);
    }
  }
  for (const auto& [rules, why] : reasons) line += "    not " + rules + ": " + why + "\n";
  return line;
}

}  // namespace

Result<std::vector<KernelExplanation>> ExplainKernels(const ir::IRModule& module, const Target& target) {
  std::vector<KernelExplanation> kernels;
  for (const NamedPrimFunc& named : PrimFuncsOf(module)) {
    Result<KernelExplanation> kernel = ExplainKernel(named, target);
    if (!kernel.ok()) return std::move(kernel).status().WithContext("kernel \"" + named.name + "\"");
    kernels.push_back(*std::move(kernel));
  }
  return kernels;
}

std::string ExplanationText(const std::vector<KernelExplanation>& kernels) {
  std::string text;
  for (const KernelExplanation& kernel : kernels) {
    text += "kernel " + kernel.name + " for " + kernel.target + ": " + Amount(kernel.flops) + "FLOP, " +
            Amount(kernel.bytes) + "bytes";
    if (kernel.is_symbolic) text += " where each symbol is " + std::to_string(kLikelySize);
    if (kernel.predicted) {
      const PredictedCost& cost = *kernel.predicted;
      char rates[128];
      std::snprintf(rates, sizeof rates, "; predicted %.4g us, %.3g GFLOP/s, %.3g GB/s%s", cost.nanoseconds * 1e-3,
                    kernel.flops / cost.nanoseconds, kernel.bytes / cost.nanoseconds,
                    cost.is_bound_by_memory ? ", bound by memory" : "");
      text += rates;
    }
    text += '\n';
    if (!kernel.left_alone.empty()) text += "  as it is: " + kernel.left_alone + "\n";
    for (const ScheduledPart& part : kernel.parts) text += PartText(part);
  }
  return text;
}

}  // namespace ingot::kernels
