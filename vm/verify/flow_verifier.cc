// Splits the code into basic blocks and joins bit sets at their entries by intersection until nothing changes.
#include "vm/verify/flow_verifier.h"

#include <algorithm>
#include <deque>

#include "vm/program/limits.h"

namespace ingot::vm {
namespace {

class FlowVerifier {
 public:
  FlowVerifier(const Function& function, const CheckSet& checks, int64_t& work_left)
      : function_(function), checks_(checks), work_left_(work_left) {}

  Verdict Run() {
    FindBlocks();
    words_ = (function_.registers.size() + 63) / 64;
    const auto num_blocks = static_cast<int64_t>(leaders_.size());
    if (static_cast<int64_t>(words_) * 64 > kMaxFlowBits / num_blocks) {
      return Verdict::Fail(checks_, Check::kFlowWork,
                           {num_blocks, " blocks of ", function_.registers.size(), " registers are too many"});
    }
    entry_bits_.assign(leaders_.size() * words_, 0);
    reached_ = std::vector<bool>(leaders_.size());
    queued_ = std::vector<bool>(leaders_.size());
    std::vector<uint64_t> bits(words_, 0);
    const size_t num_given = function_.signature.symbols.size() + function_.signature.params.size();
    for (size_t i = 0; i < num_given; ++i) bits[i / 64] |= uint64_t{1} << (i % 64);
    Enter(0, bits);
    int64_t visits_left = num_blocks * kMaxFlowVisitsPerBlock;
    while (!worklist_.empty()) {
      if (visits_left-- == 0) {
        return Verdict::Fail(checks_, Check::kFlowWork, "the control flow does not settle");
      }
      const uint32_t block = worklist_.front();
      worklist_.pop_front();
      queued_[block] = false;
      const size_t end = block + 1 < leaders_.size() ? leaders_[block + 1] : function_.code.size();
      work_left_ -= static_cast<int64_t>(4 * words_ + (end - leaders_[block]));
      if (work_left_ < 0) return Verdict::Fail(checks_, Check::kFlowWork, "the functions together are too complex");
      INGOT_RETURN_UNLESS_PASSED(Visit(block));
    }
    return Verdict();
  }

 private:
  void FindBlocks() {
    const size_t n = function_.code.size();
    std::vector<bool> leads(n, false);
    leads[0] = true;
    for (size_t i = 0; i < n; ++i) {
      const Instruction& instruction = function_.code[i];
      ForEachLabel(instruction, [&](uint32_t target) { leads[target] = true; });
      if (InfoOf(instruction.opcode).flow != Flow::kNext && i + 1 < n) leads[i + 1] = true;
    }
    block_of_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      if (leads[i]) leaders_.push_back(static_cast<uint32_t>(i));
      block_of_[i] = static_cast<uint32_t>(leaders_.size() - 1);
    }
  }

  // Intersects the bits with those at the entry of the block that begins with this instruction.
  void Enter(size_t instruction, const std::vector<uint64_t>& bits) {
    const uint32_t block = block_of_[instruction];
    uint64_t* entry = entry_bits_.data() + block * words_;
    bool changed = !reached_[block];
    // Of bits that no way has reached yet, all are set, so that the intersection is what comes first.
    const uint64_t unreached = changed ? ~uint64_t{0} : 0;
    for (size_t w = 0; w < words_; ++w) {
      const uint64_t joined = (entry[w] | unreached) & bits[w];
      changed |= joined != entry[w];
      entry[w] = joined;
    }
    reached_[block] = true;
    if (changed && !queued_[block]) {
      queued_[block] = true;
      worklist_.push_back(block);
    }
  }

  Verdict Visit(uint32_t block) {
    const uint64_t* entry = entry_bits_.data() + block * words_;
    std::vector<uint64_t> bits(entry, entry + words_);
    const size_t end = block + 1 < leaders_.size() ? leaders_[block + 1] : function_.code.size();
    for (size_t i = leaders_[block]; i < end; ++i) INGOT_RETURN_UNLESS_PASSED(Step(i, bits));
    const Instruction& last = function_.code[end - 1];
    ForEachLabel(last, [&](uint32_t target) { Enter(target, bits); });
    if (InfoOf(last.opcode).flow == Flow::kNext) Enter(end, bits);
    return Verdict();
  }

  Verdict Step(size_t index, std::vector<uint64_t>& bits) {
    const Instruction& instruction = function_.code[index];
    const auto has = [&](uint64_t r) { return (bits[r / 64] >> (r % 64) & 1) != 0; };
    const auto unwritten = [&](uint64_t r) {
      return Verdict::Fail(checks_, Check::kWrittenBeforeRead,
                           {"instruction ", index, " (", InfoOf(instruction.opcode).name, "): register r", r,
                            " is not written on every path, or released"});
    };
    for (const auto& [spec, value] : instruction.operands()) {
      switch (spec.kind) {
        case OperandKind::kUse: {
          const auto r = static_cast<uint64_t>(std::get<int64_t>(value));
          if (!has(r)) return unwritten(r);
          break;
        }
        case OperandKind::kUseList:
          for (uint32_t r : std::get<RegisterList>(value)) {
            if (!has(r)) return unwritten(r);
          }
          break;
        case OperandKind::kDim:
          for (const DimStep& step : std::get<DimCode>(value).steps()) {
            if (step.op == DimOp::kSlot && !has(step.value)) return unwritten(step.value);
          }
          break;
        case OperandKind::kDimList:
          for (const DimCode& code : std::get<std::vector<DimCode>>(value)) {
            for (const DimStep& step : code.steps()) {
              if (step.op == DimOp::kSlot && !has(step.value)) return unwritten(step.value);
            }
          }
          break;
        case OperandKind::kDef:
        case OperandKind::kDefList:
        case OperandKind::kInt:
        case OperandKind::kFloat:
        case OperandKind::kBool:
        case OperandKind::kText:
        case OperandKind::kDType:
        case OperandKind::kLabel:
        case OperandKind::kKernel:
        case OperandKind::kBuiltin:
        case OperandKind::kFunction:
        case OperandKind::kExternal:
        case OperandKind::kConstant:
        case OperandKind::kState:
        case OperandKind::kPlanEntry:
        case OperandKind::kStream:
          break;
      }
    }
    const bool drops = InfoOf(instruction.opcode).uses == Uses::kDrop;
    ForEachRegister(instruction, [&](RegisterId id, bool is_written) {
      const uint64_t bit = uint64_t{1} << (id.value % 64);
      if (is_written) bits[id.value / 64] |= bit;
      if (!is_written && drops) bits[id.value / 64] &= ~bit;
    });
    return Verdict();
  }

  const Function& function_;
  const CheckSet& checks_;
  int64_t& work_left_;
  std::vector<uint32_t> leaders_;   // first instructions of the blocks
  std::vector<uint32_t> block_of_;  // per instruction
  size_t words_ = 0;
  std::vector<uint64_t> entry_bits_;  // per block
  std::vector<bool> reached_;
  std::vector<bool> queued_;
  std::deque<uint32_t> worklist_;
};

}  // namespace

Verdict VerifyFlow(const Function& function, const CheckSet& checks, int64_t& work_left) {
  return FlowVerifier(function, checks, work_left).Run();
}

}  // namespace ingot::vm
