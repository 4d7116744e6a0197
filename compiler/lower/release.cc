// Liveness over basic blocks, backwards: a counted register is live where some path reads it before it is written. A
// register is released in two places: inside a block, behind the instruction that uses it last; and at the beginning of
// a block that only one jump leads to, if the other path from that jump still reads the register and this one does not.
// This releases all values except those that die where paths join: they wait for the next write or the return, because
// the verifier requires that a released register was written on every path, which need not hold there.
#include "compiler/lower/release.h"

#include <algorithm>
#include <set>

#include "compiler/lower/insert_instructions.h"
#include "runtime/check.h"
#include "vm/program/builtins.h"
#include "vm/verify/facts.h"
#include "vm/verify/type_rules.h"

namespace ingot::lower {
namespace {

bool HoldsMemory(const vm::Type& type) {
  return type.is_tensor() ? type.storage == vm::Storage::kOwned : vm::IsCountedKind(type.kind);
}

bool EndsBlock(const vm::Instruction& in) { return vm::InfoOf(in.opcode).flow != vm::Flow::kNext; }

// Whether the instruction can use memory that a release frees: it allocates, or it changes a sequence in place if
// nothing else refers to the sequence.
bool TakesMemory(const vm::Instruction& in) {
  const vm::OpcodeInfo& info = vm::InfoOf(in.opcode);
  switch (info.calls) {
    case vm::Callee::kNothing:
      return info.allocates();
    case vm::Callee::kBuiltin:
      return in.As<vm::op::CallBuiltin>().builtin() == vm::Builtin::kSequenceSplice;
    case vm::Callee::kKernel:  // its workspace may depend on symbols
    case vm::Callee::kFunction:
    case vm::Callee::kExternal:
      return true;
  }
  INGOT_UNREACHABLE();
}

vm::Instruction Release(vm::RegisterId id) { return {vm::Opcode::kRelease, {int64_t{id.value}}}; }

class Releaser {
 public:
  Releaser(vm::Function& function, uint32_t first_register)
      : function_(function), code_(function.code), first_register_(first_register), releases_(function) {}

  void Run() {
    const size_t num_given = function_.signature.symbols.size() + function_.signature.params.size();
    for (uint32_t i = first_register_; i < function_.registers.size(); ++i) {
      if (i >= num_given && HoldsMemory(function_.registers[i])) counted_.insert(vm::RegisterId(i));
    }
    if (counted_.empty() || code_.empty()) return;
    FindBlocks();
    FindLive();
    for (size_t b = 0; b < blocks_.size(); ++b) PlaceIn(b);
    InsertInstructions(function_, std::move(releases_));
  }

 private:
  using Registers = std::set<vm::RegisterId>;
  struct Block {
    uint32_t begin, end;
    std::vector<size_t> next, previous;
    Registers live_in, live_out;
  };

  void FindBlocks() {
    std::set<uint32_t> leaders{0};
    for (uint32_t pc = 0; pc < code_.size(); ++pc) {
      vm::ForEachLabel(code_[pc], [&](uint32_t target) { leaders.insert(target); });
      if (EndsBlock(code_[pc]) && pc + 1 < code_.size()) leaders.insert(pc + 1);
    }
    std::vector<size_t> block_at(code_.size());
    for (auto leader = leaders.begin(); leader != leaders.end(); ++leader) {
      const auto behind = std::next(leader);
      block_at[*leader] = blocks_.size();
      blocks_.push_back(
          {*leader, behind == leaders.end() ? static_cast<uint32_t>(code_.size()) : *behind, {}, {}, {}, {}});
    }
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const vm::Instruction& last = code_[blocks_[b].end - 1];
      vm::ForEachLabel(last, [&](uint32_t target) { blocks_[b].next.push_back(block_at[target]); });
      if (!EndsBlock(last)) blocks_[b].next.push_back(b + 1);
      for (size_t next : blocks_[b].next) blocks_[next].previous.push_back(b);
    }
  }

  // Computes what is live before an instruction from what is live behind it.
  void StepBack(uint32_t pc, Registers& live) const {
    vm::ForEachRegister(code_[pc], [&](vm::RegisterId id, bool is_written) {
      if (is_written) live.erase(id);
    });
    vm::ForEachRegister(code_[pc], [&](vm::RegisterId id, bool is_written) {
      if (!is_written && counted_.contains(id)) live.insert(id);
    });
  }

  void FindLive() {
    std::vector<size_t> work;
    for (size_t b = 0; b < blocks_.size(); ++b) work.push_back(b);
    while (!work.empty()) {
      Block& block = blocks_[work.back()];
      work.pop_back();
      for (size_t next : block.next) block.live_out.insert(blocks_[next].live_in.begin(), blocks_[next].live_in.end());
      Registers live = block.live_out;
      for (uint32_t pc = block.end; pc-- > block.begin;) StepBack(pc, live);
      if (live == block.live_in) continue;
      block.live_in = std::move(live);
      work.insert(work.end(), block.previous.begin(), block.previous.end());
    }
  }

  void PlaceIn(size_t b) {
    const Block& block = blocks_[b];
    bool is_of_use = vm::InfoOf(code_[block.end - 1].opcode).flow != vm::Flow::kEnd;
    Registers live = block.live_out;
    for (uint32_t pc = block.end; pc-- > block.begin;) {
      if (is_of_use && !EndsBlock(code_[pc])) {
        vm::ForEachRegister(code_[pc], [&](vm::RegisterId id, bool) {
          std::vector<vm::Instruction>& released = releases_.behind[pc];
          const bool dies = counted_.contains(id) && !live.contains(id);
          if (dies && std::ranges::find(released, Release(id)) == released.end()) released.push_back(Release(id));
        });
      }
      StepBack(pc, live);
      is_of_use = is_of_use || TakesMemory(code_[pc]);
    }
    if (block.previous.size() != 1 || !is_of_use) return;
    for (const vm::RegisterId id : blocks_[block.previous[0]].live_out) {
      if (!live.contains(id)) releases_.before[block.begin].push_back(Release(id));
    }
  }

  vm::Function& function_;
  const std::vector<vm::Instruction>& code_;
  const uint32_t first_register_;
  Registers counted_;
  std::vector<Block> blocks_;
  Insertions releases_;
};

}  // namespace

void ReleaseAtLastUse(vm::Function& function, uint32_t first_register) { Releaser(function, first_register).Run(); }

}  // namespace ingot::lower
