// Follows all paths from each instruction that makes memory, a run of instructions without jumps at a time, until the
// memory is written in full or anything else happens to it. The work is bounded; what exceeds the bound counts as not
// proved.
#include "vm/verify/zeroed_memory.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "runtime/check.h"
#include "vm/program/builtins.h"
#include "vm/verify/facts.h"

namespace ingot::vm {
namespace {

enum class Touch : uint8_t { kNone, kWhole, kOther };

bool MakesMemory(const Instruction& in) { return InfoOf(in.opcode).makes_raw_memory(); }

// The dims of what an instruction makes; null where it states none.
const std::vector<DimCode>* DimsOf(const Instruction& in) {
  for (const auto& [spec, value] : in.operands()) {
    if (spec.kind == OperandKind::kDimList) return &std::get<std::vector<DimCode>>(value);
  }
  return nullptr;
}

// The index of the first step of the operand whose code ends before `end`.
size_t OperandStart(std::span<const DimStep> steps, size_t end) {
  for (size_t missing = 1; missing > 0; --missing) {
    const DimOp op = steps[--end].op;
    if (op == DimOp::kConst || op == DimOp::kSlot) continue;
    missing += op == DimOp::kSelect ? 3 : 2;
  }
  return end;
}

// A number of elements as a product, in a normal form that does not depend on the order and grouping of its factors.
struct Product {
  int64_t constant = 1;
  std::vector<std::vector<std::pair<DimOp, int64_t>>> factors;
  friend bool operator==(const Product&, const Product&) = default;
};

bool Multiply(Product& product, std::span<const DimStep> steps) {
  if (steps.size() == 1 && steps[0].op == DimOp::kConst) {
    return !__builtin_mul_overflow(product.constant, steps[0].value, &product.constant);
  }
  if (steps.back().op == DimOp::kMul) {
    const size_t middle = OperandStart(steps, steps.size() - 1);
    return Multiply(product, steps.first(middle)) &&
           Multiply(product, steps.subspan(middle, steps.size() - 1 - middle));
  }
  auto& factor = product.factors.emplace_back();
  for (const DimStep& step : steps) factor.emplace_back(step.op, step.value);
  return true;
}

std::optional<Product> ProductOf(std::span<const DimCode> dims) {
  Product product;
  for (const DimCode& dim : dims) {
    if (!Multiply(product, dim.steps())) return std::nullopt;
  }
  std::ranges::sort(product.factors);
  return product;
}

class Prover {
 public:
  Prover(const Program& program, const Function& function)
      : program_(program), function_(function), run_ends_(function.code.size()), seen_by_(function.code.size()) {
    const std::vector<Instruction>& code = function.code;
    for (size_t at = code.size(); at-- > 0;) {
      const bool is_end = InfoOf(code[at].opcode).flow != Flow::kNext || at + 1 == code.size();
      run_ends_[at] = is_end ? static_cast<uint32_t>(at) : run_ends_[at + 1];
    }
    std::vector<bool> is_made(function.registers.size());
    for (const Instruction& in : code) {
      if (MakesMemory(in) || in.opcode == Opcode::kView) is_made[ResultOf(in).value] = true;
    }
    for (uint32_t at = 0; at < code.size(); ++at) {
      ForEachRegister(code[at], [&](RegisterId id, bool) {
        if (is_made[id.value]) mentions_.emplace_back(id, at);
      });
    }
    std::ranges::sort(mentions_);
    steps_left_ = kStepsPerMention * static_cast<int64_t>(code.size() + mentions_.size());
  }

  bool IsWrittenFirst(uint32_t made_at) {
    const RegisterId made = ResultOf(function_.code[made_at]);
    const std::optional<uint32_t> view_at = FindWholeView(made_at);
    return view_at ? IsWrittenFrom(*view_at + 1, {made, ResultOf(function_.code[*view_at])})
                   : IsWrittenFrom(made_at + 1, {made, made});
  }

 private:
  static constexpr int64_t kStepsPerMention = 64;  // bounds the work; beyond it nothing is proved

  // Two registers that show the same memory; they may be equal.
  using Names = std::array<RegisterId, 2>;

  // Follows all paths until the memory is written in full or released, a run of instructions without jumps at a time.
  bool IsWrittenFrom(uint32_t first, const Names& names) {
    ++round_;
    open_.assign(1, first);
    while (!open_.empty()) {
      const uint32_t begin = open_.back();
      open_.pop_back();
      if (std::exchange(seen_by_[begin], round_) == round_) continue;
      if (--steps_left_ < 0) return false;
      const uint32_t end = run_ends_[begin];
      Touch touch = Touch::kNone;
      for (uint32_t at = FindMention(begin, names); touch == Touch::kNone && at <= end;
           at = FindMention(at + 1, names)) {
        if (steps_left_ < 0) return false;
        touch = TouchOf(function_.code[at], names);
      }
      if (touch == Touch::kOther) return false;
      if (touch == Touch::kWhole) continue;
      ForEachLabel(function_.code[end], [&](uint32_t target) { open_.push_back(target); });
    }
    return true;
  }

  // The first instruction from there on that names one of the two; UINT32_MAX: none.
  uint32_t FindMention(uint32_t from, const Names& names) const {
    uint32_t found = UINT32_MAX;
    for (const RegisterId name : names) {
      const auto mention = std::ranges::lower_bound(mentions_, std::pair(name, from));
      if (mention != mentions_.end() && mention->first == name) found = std::min(found, mention->second);
    }
    return found;
  }

  // Kernels often write a result under other dims. Finds a view of the whole tensor that the next instruction makes;
  // the next one only, so that nothing can change the registers of which the dims are computed.
  std::optional<uint32_t> FindWholeView(uint32_t made_at) {
    const Instruction& made = function_.code[made_at];
    const uint32_t at = made_at + 1;  // the last instruction makes no memory
    if (function_.code[at].opcode != Opcode::kView) return std::nullopt;
    const auto view = function_.code[at].As<op::View>();
    const RegisterId whole = ResultOf(made);
    if (view.src() != whole || view.dst() == whole) return std::nullopt;
    if (!view.offset_bytes().is_constant() || view.offset_bytes().constant() != 0) return std::nullopt;
    if (function_.TypeOf(view.dst()).dtype != function_.TypeOf(whole).dtype) return std::nullopt;
    const std::vector<DimCode>* dims = DimsOf(made);
    const std::optional<Product> all = dims != nullptr ? ProductOf(*dims) : std::nullopt;
    return all && all == ProductOf(view.dims()) ? std::optional(at) : std::nullopt;
  }

  Touch TouchOf(const Instruction& in, const Names& names) {
    int64_t reads = 0, writes = 0;
    const auto is_named = [&](RegisterId mentioned) { return mentioned == names[0] || mentioned == names[1]; };
    ForEachRegister(in, [&](RegisterId mentioned, bool is_written) {
      --steps_left_;
      if (is_named(mentioned)) ++(is_written ? writes : reads);
    });
    const bool is_alone = names[0] == names[1];
    // The register is overwritten without being read: the memory is unreachable, unless it has the other name.
    if (reads == 0) return writes == 0 ? Touch::kNone : is_alone ? Touch::kWhole : Touch::kOther;
    switch (InfoOf(in.opcode).uses) {
      case Uses::kDrop:
        return is_alone ? Touch::kWhole : Touch::kOther;
      case Uses::kDims:
        return Touch::kNone;
      case Uses::kContents:
        return reads == 1 && WritesWhole(in, is_named) ? Touch::kWhole : Touch::kOther;
    }
    INGOT_UNREACHABLE();
  }

  // Whether the instruction writes all elements of its one operand for which is_named holds, and reads none of them.
  template <typename Predicate>
  bool WritesWhole(const Instruction& in, Predicate is_named) const {
    const auto place_in = [&](IdList<RegisterId> list) {
      size_t place = 0;
      while (place < list.size() && !is_named(list[place])) ++place;
      return place;
    };
    switch (in.opcode) {
      case Opcode::kCopyInto:
        return is_named(in.As<op::CopyInto>().dst());
      case Opcode::kCallKernel: {
        const auto call = in.As<op::CallKernel>();
        return program_.kernels[call.kernel().value].params[place_in(call.buffers())].role == ParamRole::kOut;
      }
      case Opcode::kCallBuiltin: {
        const auto call = in.As<op::CallBuiltin>();
        const BuiltinInfo& row = InfoOf(call.builtin());
        const size_t column = std::min(row.num_results() + place_in(call.args()), row.arguments.size() - 1);
        return row.arguments[column].role == ArgumentRole::kOut;
      }
      default:
        return false;
    }
  }

  const Program& program_;
  const Function& function_;
  std::vector<uint32_t> run_ends_;                         // by instruction: the first from there on that jumps or ends
  std::vector<std::pair<RegisterId, uint32_t>> mentions_;  // register and instruction, ascending
  std::vector<uint32_t> seen_by_;                          // by instruction: the round that began a run there last
  std::vector<uint32_t> open_;
  uint32_t round_ = 0;
  int64_t steps_left_ = 0;
};

}  // namespace

std::vector<uint32_t> FindUnproved(const Program& program, const Function& function) {
  std::vector<uint32_t> unproved;
  Prover prover(program, function);
  for (uint32_t at = 0; at < function.code.size(); ++at) {
    if (MakesMemory(function.code[at]) && !prover.IsWrittenFirst(at)) unproved.push_back(at);
  }
  return unproved;
}

}  // namespace ingot::vm
