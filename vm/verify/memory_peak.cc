// Sweeps over a function's code to sum, as formulas over its symbols, the tensors that it allocates one by one; binds
// symbols to given shapes; and finds the largest tensor where the memory plan is fullest.
#include "vm/verify/memory_peak.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "runtime/suggest.h"
#include "runtime/tensor.h"
#include "vm/verify/facts.h"

namespace ingot::vm {
namespace {

bool IsZero(const DimCode& code) { return code.is_constant() && code.constant() == 0; }
DimCode Sum(const DimCode& a, const DimCode& b) {
  return IsZero(a) ? b : IsZero(b) ? a : DimCode::Binary(DimOp::kAdd, a, b);
}

// The size in bytes of a tensor of this type, as one constant times the product of its symbolic dims; unknown when a
// dim is.
Dim BytesOf(const Type& type) {
  int64_t factor = 1;
  std::optional<DimCode> symbolic;
  for (const Dim& dim : type.dims) {
    if (!dim) return std::nullopt;
    if (!dim->is_constant()) {
      symbolic = symbolic ? DimCode::Binary(DimOp::kMul, *symbolic, *dim) : *dim;
    } else if (__builtin_mul_overflow(factor, dim->constant(), &factor)) {
      return std::nullopt;
    }
  }
  const int bits = type.dtype.total_bits();
  const bool has_bytes = bits % 8 == 0;
  if (__builtin_mul_overflow(factor, has_bytes ? bits / 8 : bits, &factor)) return std::nullopt;
  DimCode size = symbolic ? DimCode::Binary(DimOp::kMul, *symbolic, DimCode(factor)) : DimCode(factor);
  if (has_bytes) return size;
  return DimCode::Binary(DimOp::kFloorDiv, DimCode::Binary(DimOp::kAdd, size, DimCode(7)), DimCode(8));
}

// The tensors that a function allocates one by one. A tensor is freed when its register is released, unless something
// else may hold its memory. In functions with jumps, where instructions do not run in their order, all tensors are
// taken to live at the same time.
class OwnTensors {
 public:
  explicit OwnTensors(const Function& function) : function_(function) {}

  void Sweep() {
    const bool is_straight = !HasJumps(function_);
    for (const Instruction& in : function_.code) {
      const OpcodeInfo& info = InfoOf(in.opcode);
      if (info.allocates()) {
        Add(ResultOf(in).value);
      } else if (info.uses == Uses::kDrop) {
        if (is_straight) ForEachRegister(in, [&](RegisterId id, bool) { Free(id.value); });
      } else if (info.result == ResultMemory::kAlias || info.result == ResultMemory::kHolder) {
        // Its memory may be held by others, so it is kept to the end, under a key that no register has.
        ForEachRegister(in, [&](RegisterId id, bool) { Keep(id.value); });
      }
    }
    Note();
  }
  const DimCode& most() const { return most_; }
  bool depends_on_data() const { return depends_on_data_; }

 private:
  void Free(uint32_t index) {
    if (!formulas_.contains(index) && !numbers_.contains(index)) return;
    Note();
    formulas_.erase(index);
    if (const auto number = numbers_.extract(index)) sum_of_numbers_ -= number.mapped();
  }
  void Add(uint32_t index) {
    Keep(index);  // what was there may still be held by others
    const Dim bytes = BytesOf(function_.registers[index]);
    int64_t sum = 0;
    if (!bytes || !bytes->fits()) {
      depends_on_data_ = true;
    } else if (!bytes->is_constant()) {
      formulas_[index] = *bytes;
    } else if (bytes->constant() < 0 || __builtin_add_overflow(sum_of_numbers_, bytes->constant(), &sum)) {
      depends_on_data_ = true;
    } else {
      sum_of_numbers_ = sum;
      numbers_[index] = bytes->constant();
    }
  }
  void Keep(uint32_t index) {
    if (auto node = formulas_.extract(index)) {
      node.key() = next_kept_--;
      formulas_.insert(std::move(node));
    }
    if (auto node = numbers_.extract(index)) {
      node.key() = next_kept_--;
      numbers_.insert(std::move(node));
    }
  }
  void Note() {
    DimCode sum;
    for (const auto& [index, bytes] : formulas_) {
      sum = Sum(sum, bytes);
      if (!sum.fits()) break;  // each adds two steps: few are summed at each release, however many there are
    }
    if (sum.fits()) sum = Sum(sum, DimCode(sum_of_numbers_));
    DimCode most = IsZero(most_) || most_ == sum ? sum : DimCode::Binary(DimOp::kMax, most_, sum);
    if (most.fits()) {
      most_ = std::move(most);
    } else {
      depends_on_data_ = true;  // the sum is too long for a formula
    }
  }

  const Function& function_;
  // The sizes of live tensors by register: formulas, and numbers with their sum.
  std::map<uint32_t, DimCode> formulas_;
  std::map<uint32_t, int64_t> numbers_;
  int64_t sum_of_numbers_ = 0;
  uint32_t next_kept_ = UINT32_MAX;
  DimCode most_;
  bool depends_on_data_ = false;
};

}  // namespace

MemoryNeeds MemoryNeedsOf(const Program& program) {
  MemoryNeeds needs;
  for (const Kernel& kernel : program.kernels) {
    if (kernel.workspace.is_constant()) {
      needs.workspace_bytes = std::max(needs.workspace_bytes, kernel.workspace.constant());
    }
  }
  for (const State& state : program.states) {
    const Result<int64_t> count = CountElements(state.dims);
    needs.state_bytes += state.dtype.SizeBytes(count.value()).value();  // the verifier bounds their sum
  }
  return needs;
}

MemoryNeeds MemoryNeedsOf(const MemoryNeeds& of_program, const Function& function) {
  MemoryNeeds needs = of_program;
  const auto add = [&](DimCode& sum, const DimCode& term) {
    DimCode grown = Sum(sum, term);
    if (grown.fits()) {
      sum = std::move(grown);
    } else {
      needs.depends_on_data = true;  // the sum is too long for a formula
    }
  };
  for (const Arena& arena : function.plan.arenas) add(needs.arenas, arena.size);
  OwnTensors own(function);
  own.Sweep();
  needs.results = own.most();
  needs.depends_on_data = needs.depends_on_data || own.depends_on_data();
  needs.calls = std::ranges::any_of(function.code,
                                    [](const Instruction& in) { return InfoOf(in.opcode).calls == Callee::kFunction; });
  return needs;
}

Result<int64_t> MemoryNeeds::Total(std::span<const int64_t> symbols) const {
  INGOT_ASSIGN_OR_RETURN(const int64_t planned, arenas.Evaluate(symbols));
  INGOT_ASSIGN_OR_RETURN(const int64_t left, results.Evaluate(symbols));
  int64_t total = planned;
  for (const int64_t part : {left, workspace_bytes, state_bytes}) {
    if (__builtin_add_overflow(total, part, &total)) {
      return Status(StatusCode::kBadInput, "the memory of these shapes does not fit into 64 bits");
    }
  }
  return total;
}

Result<std::vector<int64_t>> SymbolValues(const Signature& signature, const GivenShapes& given) {
  std::vector<std::optional<int64_t>> values(signature.symbols.size());
  const std::vector<std::string> names = signature.symbol_names();
  const std::vector<std::string_view> known(names.begin(), names.end());
  const auto bind = [&](size_t symbol, int64_t value) -> Status {
    const Symbol& row = signature.symbols[symbol];
    if (values[symbol].value_or(value) == value && value >= row.min && value <= row.max) {
      values[symbol] = value;
      return Status();
    }
    return Status(StatusCode::kBadInput, {row.name, " is ", value, ", expected ",
                                          values[symbol] ? Text(*values[symbol]) : Text({row.min, "..", row.max})});
  };
  for (const auto& [name, value] : given.symbols) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      return Status(StatusCode::kBadInput, {"there is no dimension \"", name, "\"", DidYouMean(name, known)});
    }
    INGOT_RETURN_IF_ERROR(bind(static_cast<size_t>(found - names.begin()), value));
  }
  for (const auto& [name, dims] : given.parameters) {
    std::vector<std::string_view> params;
    for (const NamedType& param : signature.params) params.push_back(param.name);
    const auto found = std::find(params.begin(), params.end(), name);
    if (found == params.end()) {
      return Status(StatusCode::kBadInput, {"there is no input \"", name, "\"", DidYouMean(name, params)});
    }
    const Type& type = signature.params[static_cast<size_t>(found - params.begin())].type;
    if (dims.size() != type.dims.size()) {
      return Status(StatusCode::kBadInput, {"input \"", name, "\" is ", type.ToString(names)});
    }
    for (size_t i = 0; i < dims.size(); ++i) {
      if (!type.dims[i] || type.dims[i]->is_constant() || type.dims[i]->steps().size() != 1) continue;
      INGOT_RETURN_IF_ERROR(
          bind(static_cast<size_t>(type.dims[i]->steps()[0].value), dims[i]).WithContext({"input \"", name, "\""}));
    }
  }
  std::vector<int64_t> bound;
  for (size_t i = 0; i < values.size(); ++i) {
    const Symbol& symbol = signature.symbols[i];
    if (!values[i] && symbol.max == INT64_MAX) {
      return Status(StatusCode::kNotFound, {"nothing says what ", symbol.name, " is"});
    }
    bound.push_back(values[i].value_or(symbol.max));
  }
  return bound;
}

std::string DominatingTensor(const Function& function, const PlanNumbers& numbers) {
  const std::vector<PlanEntry>& entries = function.plan.entries;
  // Bytes that begin and end to live at an instruction; aliases live in their roots.
  std::map<uint32_t, int64_t> change;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].alias_of) continue;
    change[entries[i].first] += numbers.sizes[i];
    change[entries[i].last + 1] -= numbers.sizes[i];
  }
  int64_t live = 0, most = -1;
  uint32_t peak = 0;
  for (const auto& [instruction, bytes] : change) {
    live += bytes;
    if (live <= most) continue;
    most = live;
    peak = instruction;
  }
  const PlanEntry* largest = nullptr;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].alias_of || entries[i].first > peak || entries[i].last < peak) continue;
    if (largest == nullptr || numbers.sizes[i] > numbers.sizes[static_cast<size_t>(largest - entries.data())]) {
      largest = &entries[i];
    }
  }
  if (largest == nullptr) return "";
  const PlanEntryId index(static_cast<uint32_t>(largest - entries.data()));
  std::string text;
  for (const DebugNote& note : function.notes) {
    if (note.instruction <= largest->first) text = StrCat({"\"", note.text, "\" "});
  }
  for (const Instruction& in : function.code) {
    if (in.opcode != Opcode::kPlanView || in.As<op::PlanView>().entry() != index) continue;
    Type type = function.TypeOf(in.As<op::PlanView>().dst());
    type.storage = Storage::kOwned;  // which is not printed
    StrAppend(text, {type.ToString(function.signature.symbol_names()), " "});
    break;
  }
  return StrCat({text, "(", numbers.sizes[index.value], " bytes)"});
}

}  // namespace ingot::vm
