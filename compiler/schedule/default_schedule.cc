// The table of rules and the loop that asks them. Order matters: stages are inlined first, the rules for reductions
// also schedule their element-wise consumers, remaining element-wise stages come last. A block that no rule takes keeps
// its loops; on CUDA, lowering binds them (transform/tensor/bind_threads).
#include "compiler/schedule/default_schedule.h"

#include <algorithm>
#include <array>

#include "compiler/schedule/likely_sizes.h"
#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/schedule/widen_indices.h"

namespace ingot::schedule {
namespace {

constexpr std::array kRules = {
    ScheduleRule{"inline", "a stage that costs nothing, or feeds element-wise stages alone, goes into its readers",
                 MatchesInline, ApplyInline},
    ScheduleRule{"phases", "element-wise by cases of an index: the cases unrolled, vectors along the last axis",
                 MatchesPhases, ApplyPhases},
    ScheduleRule{"conv", "a window over channels in blocks: register tiles of columns, strips with their padding",
                 MatchesConv, ApplyConv},
    ScheduleRule{"gemm", "a matrix product: panels of columns, blocks and tiles of rows, packing, fused write-back",
                 MatchesGemm, ApplyGemm},
    ScheduleRule{"tile", "a reduction along whose result's last axis an input lies: register tiles, fused write-back",
                 MatchesTile, ApplyTile},
    ScheduleRule{"rows", "reductions of rows and what depends on them: all stages row by row", MatchesRows, ApplyRows},
    ScheduleRule{"gathers", "element-wise at places from a table: the rows that it reads computed first",
                 MatchesGathers, ApplyGathers},
    ScheduleRule{"transpose", "element-wise along another axis than it is stored: squares through registers",
                 MatchesTranspose, ApplyTranspose},
    ScheduleRule{"interleave", "element-wise from the quotients of places: vectors for each rest", MatchesInterleave,
                 ApplyInterleave},
    ScheduleRule{"elementwise", "vectors along the last axes that are contiguous everywhere", MatchesElementwise,
                 ApplyElementwise},
};

constexpr std::array kCudaRules = {
    kRules[0],
    ScheduleRule{"cuda_wgmma",
                 "a large matrix product of 16-bit floats on sm_90a: matrix instructions of four warps, left running",
                 MatchesCudaWgmma, ApplyCudaWgmma},
    ScheduleRule{"cuda_mma_rows",
                 "a matrix product of 16-bit floats of any number of rows: versions for few and for many",
                 MatchesCudaMmaRows, ApplyCudaMmaRows},
    ScheduleRule{"cuda_mma",
                 "a matrix product of 16-bit floats: tiles in shared memory, copied ahead, matrix instructions",
                 MatchesCudaMma, ApplyCudaMma},
    ScheduleRule{"cuda_matmul", "a matrix product: tiles of both factors in shared memory, sums in registers",
                 MatchesCudaMatmul, ApplyCudaMatmul},
    ScheduleRule{"cuda_vector_product",
                 "a matrix times a few vectors: rows of the matrix spread over a block of threads",
                 MatchesCudaVectorProduct, ApplyCudaVectorProduct},
    ScheduleRule{"cuda_rows",
                 "reductions of rows and what depends on them: threads for each row, all stages in one launch",
                 MatchesCudaRows, ApplyCudaRows},
    ScheduleRule{"cuda_strips",
                 "reductions of the same columns and what depends on them: all stages in one launch, strip by strip",
                 MatchesCudaStrips, ApplyCudaStrips},
    ScheduleRule{"cuda_columns",
                 "reductions over axes that are not the last: threads side by side along the last one, rows of them",
                 MatchesCudaColumns, ApplyCudaColumns},
    ScheduleRule{"cuda_reduction", "long reductions of few elements: a block of threads for each element",
                 MatchesCudaReduction, ApplyCudaReduction},
    ScheduleRule{"cuda_windows",
                 "short reductions of many elements: a thread for each, padding in place, fused write-back",
                 MatchesCudaWindows, ApplyCudaWindows},
    ScheduleRule{"cuda_transpose",
                 "element-wise along another axis than it is stored: tiles through shared memory",
                 MatchesCudaTranspose, ApplyCudaTranspose},
    ScheduleRule{"cuda_threads", "the independent iterations as the threads of a grid, the others within a thread",
                 MatchesCudaThreads, ApplyCudaThreads},
};

// The last answer of each rule to each block.
class Answers {
 public:
  void Set(const ScheduleRule& rule, const BlockName& block, Match<> match, std::string refusal = "") {
    RuleAnswer answer{rule.name, block, std::move(match), std::move(refusal)};
    const auto found = std::ranges::find_if(
        answers_, [&](const RuleAnswer& old) { return old.rule == answer.rule && old.block == block; });
    if (found != answers_.end()) {
      *found = std::move(answer);
    } else {
      answers_.push_back(std::move(answer));
    }
  }
  std::vector<RuleAnswer> Take() { return std::move(answers_); }

 private:
  std::vector<RuleAnswer> answers_;
};

// The first block, in order, that no rule has handled and this rule takes.
std::optional<BlockSite> FindMatch(const ScheduleState& state, const ScheduleRule& rule, const Target& target,
                                   const std::vector<BlockName>& handled, Answers& answers) {
  for (BlockSite& site : state.Blocks()) {
    const BlockName& name = site.block().name;
    if (std::find(handled.begin(), handled.end(), name) != handled.end()) continue;
    const Match<> match = rule.matches(state, site, target);
    answers.Set(rule, name, match);
    if (match) return std::move(site);
  }
  return std::nullopt;
}

// The blocks that a rule made.
std::vector<BlockName> NewBlocks(const ScheduleState& before, const ScheduleState& after) {
  std::vector<BlockName> names;
  const std::vector<BlockSite> old = before.Blocks();
  for (const BlockSite& site : after.Blocks()) {
    const BlockName& name = site.block().name;
    if (std::none_of(old.begin(), old.end(), [&](const BlockSite& o) { return o.block().name == name; })) {
      names.push_back(name);
    }
  }
  return names;
}

// Initialises the result of a reduction that may have no iteration before its loops, so that an empty sum is 0. What
// initialises it belongs to the rule that scheduled the reduction.
void StartEmptyReductions(Schedule& schedule, std::vector<Application>& applications) {
  for (const BlockSite& site : schedule.state().Blocks()) {
    const LoopVar loop = LoopOfEmptyReduction(site);
    if (!loop) continue;
    Schedule attempt = schedule;
    const BlockRV block = attempt.GetBlock(site.block().name);
    for (const LoopRV candidate : attempt.GetLoops(block)) {
      if (!attempt.Loop(candidate).loop->var.same_as(loop)) continue;
      attempt.DecomposeReduction(block, candidate);
      break;
    }
    if (!attempt.status().ok()) continue;
    for (Application& of : applications) {
      if (std::ranges::find(of.blocks, site.block().name) == of.blocks.end()) continue;
      for (BlockName& made : NewBlocks(schedule.state(), attempt.state())) of.blocks.push_back(std::move(made));
    }
    schedule = std::move(attempt);
  }
}

// Each number that was given has to be one that a rule took, for a schedule that was not refused.
Status CheckChosen(const Chosen& chosen, const ScheduledFunction& scheduled, const std::string& why_not) {
  for (const auto& [name, value] : chosen) {
    if (std::ranges::find(scheduled.choices, name, &Choice::name) != scheduled.choices.end()) continue;
    return Status(StatusCode::kInvalidArgument, "choice " + name + "=" + std::to_string(value) + ": " +
                                                    (why_not.empty() ? "no rule asks for it" : why_not));
  }
  return Status();
}

}  // namespace

// The attribute is 1 or True, as TVM writes it.
bool IsScheduled(const ir::PrimFunc& function) {
  const ir::AttrValue* mark = function->attrs.Find(kIsScheduledAttr);
  if (mark == nullptr) return false;
  const bool* flag = mark->get<bool>();
  const int64_t* number = mark->get<int64_t>();
  return (flag != nullptr && *flag) || (number != nullptr && *number != 0);
}

ir::PrimFunc MarkScheduled(const ir::PrimFunc& function) {
  ir::PrimFuncNode marked = *function;
  marked.attrs = marked.attrs.With(kIsScheduledAttr, true);
  return ir::Make<ir::PrimFuncNode>(std::move(marked));
}

std::span<const ScheduleRule> DefaultRules(Target::Kind kind) {
  if (kind == Target::Kind::kCuda) return kCudaRules;
  return kRules;
}

Result<ScheduledFunction> ApplyDefaultSchedule(const ir::PrimFunc& function, const Target& target,
                                               const Chosen& chosen) {
  return ApplySchedule(function, target, DefaultRules(target.kind), chosen);
}

Result<ScheduledFunction> ApplySchedule(const ir::PrimFunc& function, const Target& target,
                                        std::span<const ScheduleRule> rules, const Chosen& chosen) {
  if (const std::optional<ir::PrimFunc> likely = AtLikelySizes(function)) {
    INGOT_ASSIGN_OR_RETURN(ScheduledFunction scheduled, ApplySchedule(*likely, target, rules, chosen));
    const std::optional<ir::PrimFunc> wide = WidenIndices(function);
    Result<Schedule> replayed = Replay(scheduled.trace, wide.value_or(function));
    if (replayed.ok()) {
      scheduled.function = replayed->function();
      scheduled.trace = replayed->trace();
      return scheduled;
    }
  }
  ScheduledFunction result;
  result.function = function;
  const auto runs_as_it_is = [&](const char* why) -> Result<ScheduledFunction> {
    INGOT_RETURN_IF_ERROR(CheckChosen(chosen, result, why));
    result.left_alone = why;
    return result;
  };
  if (IsScheduled(function)) return runs_as_it_is("it is marked as scheduled");
  const auto* root = ir::As<ir::BlockRealizeNode>(function->body);
  if (root == nullptr || !root->block->iter_vars.empty() || root->block->init) {
    return runs_as_it_is("its statements are not in blocks");
  }
  const std::optional<ir::PrimFunc> wide = WidenIndices(function);
  if (!wide) return runs_as_it_is("a parameter of a narrower dtype than int64 gives a dimension");
  INGOT_ASSIGN_OR_RETURN(Schedule schedule, Schedule::Create(*wide));
  schedule.SetChosen(chosen);
  std::string refusal;  // the last one
  std::vector<BlockName> handled;
  Answers answers;
  for (const ScheduleRule& rule : rules) {
    std::vector<BlockName> seen = handled;  // and the blocks on which this rule failed
    while (const std::optional<BlockSite> site = FindMatch(schedule.state(), rule, target, seen, answers)) {
      const BlockName& name = site->block().name;
      Schedule attempt = schedule;
      std::vector<BlockName> done = rule.apply(attempt, *site, target);
      seen.push_back(name);
      if (!attempt.status().ok()) {
        refusal = attempt.status().message();
        answers.Set(rule, name, Taken{}, refusal);
        continue;
      }
      for (BlockName& made : NewBlocks(schedule.state(), attempt.state())) done.push_back(std::move(made));
      schedule = std::move(attempt);
      handled.insert(handled.end(), done.begin(), done.end());
      seen.insert(seen.end(), done.begin(), done.end());
      result.rules.push_back(std::string(rule.name) + "(" + name + ")");
      result.applications.push_back({rule.name, name, std::move(done)});
    }
  }
  result.answers = answers.Take();
  StartEmptyReductions(schedule, result.applications);
  result.function = schedule.function();
  result.trace = schedule.trace();
  result.choices = schedule.choices();
  INGOT_RETURN_IF_ERROR(CheckChosen(chosen, result, refusal));
  return result;
}

}  // namespace ingot::schedule
