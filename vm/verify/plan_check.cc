// Overlap is found by a sweep over the roots in the order in which their lives begin. Those that are alive are kept
// sorted by offset; they are disjoint, so that a new one has to be compared with its two neighbours only. Aliases take
// no part: they lie inside their root in memory and in time.
#include "vm/verify/plan_check.h"

#include <algorithm>
#include <map>
#include <queue>

#include "vm/program/limits.h"

namespace ingot::vm {
namespace {

std::string EntryName(size_t index) { return StrCat({"plan entry ", index}); }

Verdict CheckBounds(const MemoryPlan& plan, const PlanNumbers& numbers, const CheckSet& checks) {
  for (size_t i = 0; i < plan.arenas.size(); ++i) {
    const int64_t size = numbers.arena_sizes[i];
    if (size < 0 || size > kMaxArenaBytes) {
      return Verdict::Fail(checks, Check::kPlanBounds, {"arena ", i, ": a size of ", size, " bytes"});
    }
  }
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    const int64_t offset = numbers.offsets[i], size = numbers.sizes[i];
    const int64_t arena = numbers.arena_sizes[plan.entries[i].arena];
    if (offset < 0 || offset % kPlanAlignment != 0 || size < 0 || offset > arena || size > arena - offset) {
      return Verdict::Fail(
          checks, Check::kPlanBounds,
          {EntryName(i), ": offset ", offset, " and size ", size, " in an arena of ", arena, " bytes"});
    }
  }
  return Verdict();
}

Verdict CheckAliases(const MemoryPlan& plan, const PlanNumbers& numbers, const CheckSet& checks) {
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    const PlanEntry& entry = plan.entries[i];
    if (!entry.alias_of) continue;
    const size_t r = entry.alias_of->value;
    const PlanEntry& root = plan.entries[r];
    const bool inside = numbers.offsets[i] >= numbers.offsets[r] &&
                        numbers.sizes[i] <= numbers.sizes[r] - (numbers.offsets[i] - numbers.offsets[r]) &&
                        entry.first >= root.first && entry.last <= root.last;
    if (!inside) {
      return Verdict::Fail(checks, Check::kPlanOverlap,
                           {EntryName(i), " is an alias of entry ", r, " but not inside it"});
    }
  }
  return Verdict();
}

Verdict CheckOverlaps(const MemoryPlan& plan, const PlanNumbers& numbers, const CheckSet& checks) {
  std::vector<uint32_t> roots;
  for (uint32_t i = 0; i < plan.entries.size(); ++i) {
    if (!plan.entries[i].alias_of && numbers.sizes[i] > 0) roots.push_back(i);
  }
  std::sort(roots.begin(), roots.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(plan.entries[a].first, a) < std::pair(plan.entries[b].first, b);
  });
  using Alive = std::map<int64_t, uint32_t>;  // offset -> entry
  std::vector<Alive> alive(plan.arenas.size());
  std::priority_queue<std::pair<uint32_t, uint32_t>, std::vector<std::pair<uint32_t, uint32_t>>, std::greater<>> ends;
  for (uint32_t i : roots) {
    while (!ends.empty() && ends.top().first < plan.entries[i].first) {
      const uint32_t gone = ends.top().second;
      alive[plan.entries[gone].arena].erase(numbers.offsets[gone]);
      ends.pop();
    }
    Alive& map = alive[plan.entries[i].arena];
    const auto next = map.lower_bound(numbers.offsets[i]);
    int64_t other = -1;
    if (next != map.end() && next->first < numbers.offsets[i] + numbers.sizes[i]) other = next->second;
    if (next != map.begin()) {
      const uint32_t previous = std::prev(next)->second;
      if (numbers.offsets[previous] + numbers.sizes[previous] > numbers.offsets[i]) other = previous;
    }
    if (other >= 0) {
      return Verdict::Fail(checks, Check::kPlanOverlap,
                           {"plan entries ", other, " and ", i, " overlap while both live"});
    }
    map.emplace(numbers.offsets[i], i);
    ends.emplace(plan.entries[i].last, i);
  }
  return Verdict();
}

}  // namespace

bool IsConstantPlan(const MemoryPlan& plan) {
  return std::all_of(plan.arenas.begin(), plan.arenas.end(), [](const Arena& a) { return a.size.is_constant(); }) &&
         std::all_of(plan.entries.begin(), plan.entries.end(),
                     [](const PlanEntry& e) { return e.offset.is_constant() && e.size.is_constant(); });
}

Result<PlanNumbers> EvaluatePlan(const MemoryPlan& plan, std::span<const int64_t> symbols) {
  PlanNumbers numbers;
  for (const Arena& arena : plan.arenas) {
    INGOT_ASSIGN_OR_RETURN(const int64_t size, arena.size.Evaluate(symbols));
    numbers.arena_sizes.push_back(size);
  }
  for (const PlanEntry& entry : plan.entries) {
    INGOT_ASSIGN_OR_RETURN(const int64_t offset, entry.offset.Evaluate(symbols));
    INGOT_ASSIGN_OR_RETURN(const int64_t size, entry.size.Evaluate(symbols));
    numbers.offsets.push_back(offset);
    numbers.sizes.push_back(size);
  }
  return numbers;
}

Verdict CheckPlanNumbers(const MemoryPlan& plan, const PlanNumbers& numbers, const CheckSet& checks) {
  INGOT_RETURN_UNLESS_PASSED(CheckBounds(plan, numbers, checks));
  INGOT_RETURN_UNLESS_PASSED(CheckAliases(plan, numbers, checks));
  return CheckOverlaps(plan, numbers, checks);
}

}  // namespace ingot::vm
