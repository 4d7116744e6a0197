// Follows the registers that show an input's or an output's memory through straight-line code, and compares the last
// instruction that mentions the input with the first that mentions the output.
#include "vm/verify/shared_outputs.h"

#include <algorithm>
#include <optional>

#include "vm/verify/facts.h"

namespace ingot::vm {
namespace {

// The registers that show one tensor's memory, and the first and the last instruction that mention one of them.
struct Family {
  std::vector<uint64_t> members;  // a bit for each register
  bool is_whole = true;           // every member begins at the tensor's first byte
  std::optional<uint32_t> first, last;

  bool Has(RegisterId id) const { return (members[id.value / 64] >> (id.value % 64) & 1) != 0; }
  void Add(RegisterId id) { members[id.value / 64] |= uint64_t{1} << (id.value % 64); }
  void Mention(uint32_t pc) {
    if (!first) first = pc;
    last = pc;
  }
};

class Finder {
 public:
  Finder(const Program& program, const Function& function) : program_(program), function_(function) {}

  std::vector<SharedOutput> Run() {
    std::vector<SharedOutput> pairs;
    if (HasJumps(function_) || IsTooMuch()) return pairs;
    const Signature& signature = function_.signature;
    std::vector<std::optional<Family>> params;
    for (size_t p = 0; p < signature.params.size(); ++p) {
      const Type& type = signature.params[p].type;
      std::optional<Family>& family = params.emplace_back();
      if (type.is_tensor() && type.storage == Storage::kBorrowed) {
        family = Follow(RegisterId(static_cast<uint32_t>(signature.symbols.size() + p)), 0);
      }
    }
    for (uint32_t r = 0; r < signature.results.size(); ++r) {
      const std::optional<uint32_t> made = MadeAt(r);
      if (work_left_ < 0) break;
      if (!made) continue;
      const Family output = Follow(ResultOf(function_.code[*made]), *made + 1);
      for (uint32_t p = 0; p < params.size(); ++p) {
        if (params[p] && IsReadBeforeWritten(*params[p], output)) pairs.push_back({r, p});
      }
    }
    if (work_left_ < 0) pairs.clear();
    return pairs;
  }

 private:
  // The largest of models stay far below these bounds.
  bool IsTooMuch() const {
    constexpr uint64_t kMaxPairs = 1 << 17, kMaxWords = 1 << 18, kMaxWork = 1 << 27;
    const uint64_t inputs = function_.signature.params.size(), pairs = inputs * function_.signature.results.size();
    return pairs > kMaxPairs || inputs * NumWords() > kMaxWords || pairs * NumWords() > kMaxWork;
  }
  size_t NumWords() const { return function_.registers.size() / 64 + 1; }

  // The one instruction that makes this output.
  std::optional<uint32_t> MadeAt(uint32_t result) {
    std::optional<uint32_t> made;
    work_left_ -= static_cast<int64_t>(function_.code.size());
    for (uint32_t pc = 0; pc < function_.code.size(); ++pc) {
      const Instruction& in = function_.code[pc];
      if (in.opcode != Opcode::kAllocOutput || in.As<op::AllocOutput>().result() != result) continue;
      if (made) return std::nullopt;
      made = pc;
    }
    return made;
  }

  // Whether the result of this alias may begin behind the first byte of the tensor of which it is another name.
  static bool MayBeginLater(const Instruction& in) {
    if (in.opcode != Opcode::kView) return false;
    const DimCode& offset = in.As<op::View>().offset_bytes();
    return !offset.is_constant() || offset.constant() != 0;
  }

  Family Follow(RegisterId root, uint32_t from) {
    Family family;
    family.members.resize(NumWords());
    family.Add(root);
    for (uint32_t pc = from; pc < function_.code.size() && --work_left_ >= 0; ++pc) {
      const Instruction& in = function_.code[pc];
      const OpcodeInfo& info = InfoOf(in.opcode);
      if (info.result == ResultMemory::kAlias && family.Has(AliasedBy(in))) {
        family.Add(ResultOf(in));
        family.is_whole = family.is_whole && !MayBeginLater(in);
        continue;
      }
      if (info.uses != Uses::kContents) continue;
      ForEachRegister(in, [&](RegisterId id, bool) {
        --work_left_;
        if (family.Has(id)) family.Mention(pc);
      });
    }
    return family;
  }

  // Every mention of the input counts as a read, every mention of the output as a write.
  bool IsReadBeforeWritten(const Family& input, const Family& output) const {
    for (size_t i = 0; i < input.members.size(); ++i) {
      if ((input.members[i] & output.members[i]) != 0) return false;  // a register that shows either
    }
    if (!input.last || !output.first || *input.last < *output.first) return true;
    return *input.last == *output.first && input.is_whole && output.is_whole &&
           IsDeclared(function_.code[*input.last], input, output);
  }

  bool IsDeclared(const Instruction& in, const Family& input, const Family& output) const {
    if (in.opcode != Opcode::kCallKernel) return false;
    const auto call = in.As<op::CallKernel>();
    const std::vector<KernelParam>& params = program_.kernels[call.kernel().value].params;
    const IdList<RegisterId> buffers = call.buffers();
    for (size_t out = 0; out < buffers.size(); ++out) {
      if (!output.Has(buffers[out])) continue;
      for (size_t i = 0; i < buffers.size(); ++i) {
        if (!input.Has(buffers[i])) continue;
        if (params[out].in_place != i || params[out].extents != params[i].extents) return false;
      }
    }
    return true;
  }

  const Program& program_;
  const Function& function_;
  int64_t work_left_ = int64_t{1} << 27;  // instructions and registers that are looked at
};

}  // namespace

std::vector<SharedOutput> FindSharedOutputs(const Program& program, const Function& function) {
  return Finder(program, function).Run();
}

}  // namespace ingot::vm
