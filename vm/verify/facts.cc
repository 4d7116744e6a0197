// Substitution over the postfix steps of dimension code, and one pass over a function that finds the int registers
// which are written once.
#include "vm/verify/facts.h"

#include <algorithm>

namespace ingot::vm {

bool HasJumps(const Function& function) {
  return std::ranges::any_of(function.code,
                             [](const Instruction& in) { return InfoOf(in.opcode).flow == Flow::kJump; });
}

FunctionFacts::FunctionFacts(const Function& function) : known_(function.registers.size()) {
  const size_t num_symbols = function.signature.symbols.size();
  const size_t num_fixed = num_symbols + function.signature.params.size();
  for (size_t i = 0; i < num_symbols; ++i) known_[i] = DimCode::Slot(static_cast<int64_t>(i));
  // Parameters count as written once by the caller.
  std::vector<uint8_t> writes(function.registers.size(), 0);
  for (size_t i = 0; i < num_fixed; ++i) writes[i] = 1;
  for (const Instruction& instruction : function.code) {
    ForEachRegister(instruction, [&](RegisterId id, bool is_written) {
      if (is_written && writes[id.value] < 2) ++writes[id.value];
    });
  }
  // A register written once has, wherever it may be read, the value of that write; a read before it is refused.
  const auto know = [&](RegisterId written, auto value) {
    if (writes[written.value] == 1) known_[written.value] = value();
  };
  for (const Instruction& instruction : function.code) {
    if (instruction.opcode == Opcode::kConstInt) {
      const auto in = instruction.As<op::ConstInt>();
      know(in.dst(), [&] { return DimCode(in.value()); });
    } else if (instruction.opcode == Opcode::kDim) {
      const auto in = instruction.As<op::Dim>();
      know(in.dst(), [&] { return OverSymbols(in.value()); });
    }
  }
}

std::vector<std::vector<Dim>> KnownExtents(const Kernel& kernel, IdList<RegisterId> ints, const FunctionFacts& facts) {
  std::vector<Dim> arguments;
  arguments.reserve(ints.size());
  for (const RegisterId id : ints) arguments.push_back(facts.known(id));
  std::vector<std::vector<Dim>> extents;
  extents.reserve(kernel.params.size());
  for (const KernelParam& param : kernel.params) {
    std::vector<Dim>& dims = extents.emplace_back();
    for (const DimCode& extent : param.extents) dims.push_back(extent.Substitute(arguments));
  }
  return extents;
}

}  // namespace ingot::vm
