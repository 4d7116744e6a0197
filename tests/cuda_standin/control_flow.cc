// Immediate post-dominators of the basic blocks, by the iterative algorithm of Cooper, Harvey and Kennedy on the
// reversed graph, whose root is the end of the function.
#include <algorithm>

#include "tests/cuda_standin/program.h"

namespace ingot::ptx {
namespace {

bool EndsBlock(const Instruction& instruction) {
  return instruction.flow == Flow::kBranch || instruction.flow == Flow::kIndexedBranch ||
         instruction.flow == Flow::kReturn || instruction.flow == Flow::kExit;
}

// The instructions that may follow.
std::vector<int32_t> Successors(const Instruction& instruction, int32_t index, int32_t end) {
  std::vector<int32_t> next;
  switch (instruction.flow) {
    case Flow::kBranch:
      next.push_back(instruction.target);
      break;
    case Flow::kIndexedBranch:
      return instruction.targets;
    case Flow::kReturn:
    case Flow::kExit:
      next.push_back(end);
      break;
    default:
      return {index + 1};
  }
  if (instruction.guard != 0) next.push_back(index + 1);
  return next;
}

}  // namespace

void FindReconvergence(Program& program) {
  const auto end = static_cast<int32_t>(program.instructions.size());
  std::vector<int32_t> starts = {0};
  for (int32_t i = 0; i < end; ++i) {
    const Instruction& instruction = program.instructions[static_cast<size_t>(i)];
    if (!EndsBlock(instruction)) continue;
    starts.push_back(i + 1);
    for (const int32_t next : Successors(instruction, i, end)) starts.push_back(next);
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  if (starts.back() == end) starts.pop_back();
  const size_t exit = starts.size();
  const auto block_of = [&](int32_t instruction) {
    if (instruction >= end) return exit;
    return static_cast<size_t>(std::upper_bound(starts.begin(), starts.end(), instruction) - starts.begin()) - 1;
  };
  std::vector<std::vector<size_t>> successors(exit), predecessors(exit + 1);
  for (size_t block = 0; block < exit; ++block) {
    const int32_t last = (block + 1 < exit ? starts[block + 1] : end) - 1;
    for (const int32_t next : Successors(program.instructions[static_cast<size_t>(last)], last, end)) {
      successors[block].push_back(block_of(next));
      predecessors[block_of(next)].push_back(block);
    }
  }
  // Post-order of the reversed graph from the exit.
  std::vector<size_t> order, next_child(exit + 1, 0), stack = {exit};
  std::vector<size_t> number(exit + 1, SIZE_MAX);
  std::vector<bool> seen(exit + 1, false);
  seen[exit] = true;
  while (!stack.empty()) {
    const size_t block = stack.back();
    if (next_child[block] < predecessors[block].size()) {
      const size_t child = predecessors[block][next_child[block]++];
      if (!seen[child]) seen[child] = true, stack.push_back(child);
    } else {
      number[block] = order.size();
      order.push_back(block);
      stack.pop_back();
    }
  }
  std::vector<size_t> dominator(exit + 1, SIZE_MAX);
  dominator[exit] = exit;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = order.size(); i-- > 0;) {
      const size_t block = order[i];
      if (block == exit) continue;
      size_t meet = SIZE_MAX;
      for (const size_t next : successors[block]) {
        if (dominator[next] == SIZE_MAX) continue;
        if (meet == SIZE_MAX) {
          meet = next;
          continue;
        }
        for (size_t other = next; meet != other;) {
          while (number[meet] < number[other]) meet = dominator[meet];
          while (number[other] < number[meet]) other = dominator[other];
        }
      }
      if (meet != dominator[block]) dominator[block] = meet, changed = true;
    }
  }
  for (int32_t i = 0; i < end; ++i) {
    Instruction& instruction = program.instructions[static_cast<size_t>(i)];
    if (instruction.flow != Flow::kBranch && instruction.flow != Flow::kIndexedBranch) continue;
    const size_t meet = dominator[block_of(i)];
    // A block that never reaches the end (an endless loop) meets at the end.
    instruction.reconverge = meet == SIZE_MAX || meet == exit ? end : starts[meet];
  }
  program.block_starts = std::move(starts);
}

}  // namespace ingot::ptx
