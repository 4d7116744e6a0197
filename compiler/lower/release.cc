// Liveness over basic blocks, backwards: a counted register is live where some path reads it before it is written. A
// register is released in two places: inside a block, behind the instruction that uses it last; and at the beginning of
// a block that only one jump leads to, if the other path from that jump still reads the register and this one does not.
// This releases all values except those that die where paths join: they wait for the next write or the return, because
// the verifier requires that a released register was written on every path, which need not hold there.
#include "compiler/lower/release.h"

#include <algorithm>
#include <set>

#include "vm/program/builtins.h"
#include "vm/verify/facts.h"
#include "vm/verify/type_rules.h"

namespace ingot::lower {
namespace {

using vm::Opcode;

bool HoldsMemory(const vm::Type& type) {
  return type.is_tensor() ? type.storage == vm::Storage::kOwned : vm::IsCountedKind(type.kind);
}

bool EndsBlock(Opcode opcode) {
  return opcode == Opcode::kReturn || opcode == Opcode::kFail || opcode == Opcode::kJump || opcode == Opcode::kBranch;
}

// Whether the instruction can use memory that a release frees: it allocates, or it changes a sequence in place if
// nothing else refers to the sequence.
bool TakesMemory(const vm::Instruction& in) {
  switch (in.opcode) {
    case Opcode::kCallBuiltin:
      return static_cast<vm::Builtin>(in.scalar(1)) == vm::Builtin::kSequenceSplice;
    case Opcode::kAlloc:
    case Opcode::kAllocOutput:
    case Opcode::kCopy:
    case Opcode::kCallFunction:
    case Opcode::kCallClosure:
    case Opcode::kCallExternal:
    case Opcode::kCallKernel:  // its workspace may depend on symbols
      return true;
    default:
      return false;
  }
}

class Releaser {
 public:
  explicit Releaser(vm::Function& function) : function_(function), code_(function.code) {}

  void Run() {
    const size_t num_given = function_.signature.symbols.size() + function_.signature.params.size();
    for (uint32_t i = 0; i < function_.registers.size(); ++i) {
      if (i >= num_given && HoldsMemory(function_.registers[i])) counted_.insert(i);
    }
    if (counted_.empty() || code_.empty()) return;
    FindBlocks();
    FindLive();
    before_.resize(code_.size());
    behind_.resize(code_.size());
    for (size_t b = 0; b < blocks_.size(); ++b) PlaceIn(b);
    Rewrite();
  }

 private:
  using Registers = std::set<uint32_t>;
  struct Block {
    uint32_t begin, end;
    std::vector<size_t> next, previous;
    Registers live_in, live_out;
  };

  std::vector<uint32_t> LabelsOf(const vm::Instruction& in) const {
    std::vector<uint32_t> labels;
    const std::span<const vm::OperandSpec> specs = vm::InfoOf(in.opcode).operands;
    for (size_t k = 0; k < specs.size(); ++k) {
      if (specs[k].kind == vm::OperandKind::kLabel) labels.push_back(static_cast<uint32_t>(in.scalar(k)));
    }
    return labels;
  }

  void FindBlocks() {
    std::set<uint32_t> leaders{0};
    for (uint32_t pc = 0; pc < code_.size(); ++pc) {
      for (uint32_t label : LabelsOf(code_[pc])) leaders.insert(label);
      if (EndsBlock(code_[pc].opcode) && pc + 1 < code_.size()) leaders.insert(pc + 1);
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
      for (uint32_t label : LabelsOf(last)) blocks_[b].next.push_back(block_at[label]);
      if (!EndsBlock(last.opcode)) blocks_[b].next.push_back(b + 1);
      for (size_t next : blocks_[b].next) blocks_[next].previous.push_back(b);
    }
  }

  // Computes what is live before an instruction from what is live behind it.
  void StepBack(uint32_t pc, Registers& live) const {
    vm::ForEachRegister(code_[pc], [&](uint32_t index, bool is_written) {
      if (is_written) live.erase(index);
    });
    vm::ForEachRegister(code_[pc], [&](uint32_t index, bool is_written) {
      if (!is_written && counted_.contains(index)) live.insert(index);
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
    const Opcode last = code_[block.end - 1].opcode;
    bool is_of_use = last != Opcode::kReturn && last != Opcode::kFail;
    Registers live = block.live_out;
    for (uint32_t pc = block.end; pc-- > block.begin;) {
      if (is_of_use && !EndsBlock(code_[pc].opcode)) {
        vm::ForEachRegister(code_[pc], [&](uint32_t index, bool) {
          std::vector<uint32_t>& released = behind_[pc];
          const bool dies = counted_.contains(index) && !live.contains(index);
          if (dies && std::ranges::find(released, index) == released.end()) released.push_back(index);
        });
      }
      StepBack(pc, live);
      is_of_use = is_of_use || TakesMemory(code_[pc]);
    }
    if (block.previous.size() != 1 || !is_of_use) return;
    for (uint32_t index : blocks_[block.previous[0]].live_out) {
      if (!live.contains(index)) before_[block.begin].push_back(index);
    }
  }

  void Rewrite() {
    std::vector<vm::Instruction> code;
    std::vector<uint32_t> labels, positions;  // old index -> where jumps arrive, where the instruction is
    const auto release = [&](uint32_t index) { code.push_back({Opcode::kRelease, {int64_t{index}}}); };
    for (size_t pc = 0; pc < code_.size(); ++pc) {
      labels.push_back(static_cast<uint32_t>(code.size()));
      for (uint32_t index : before_[pc]) release(index);
      positions.push_back(static_cast<uint32_t>(code.size()));
      code.push_back(std::move(code_[pc]));
      for (uint32_t index : behind_[pc]) release(index);
    }
    positions.push_back(static_cast<uint32_t>(code.size()));
    for (vm::Instruction& in : code) {
      const std::span<const vm::OperandSpec> specs = vm::InfoOf(in.opcode).operands;
      for (size_t k = 0; k < specs.size(); ++k) {
        if (specs[k].kind == vm::OperandKind::kLabel)
          in.operands[k] = int64_t{labels[static_cast<size_t>(in.scalar(k))]};
      }
    }
    for (vm::DebugNote& note : function_.notes) note.instruction = positions[note.instruction];
    for (vm::PlanEntry& entry : function_.plan.entries) {
      entry.first = positions[entry.first];
      entry.last = positions[entry.last];
    }
    code_ = std::move(code);
  }

  vm::Function& function_;
  std::vector<vm::Instruction>& code_;
  Registers counted_;
  std::vector<Block> blocks_;
  std::vector<std::vector<uint32_t>> before_, behind_;  // per instruction: registers to release
};

}  // namespace

void ReleaseAtLastUse(vm::Function& function) { Releaser(function).Run(); }

}  // namespace ingot::lower
