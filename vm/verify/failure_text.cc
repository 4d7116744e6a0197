// Looks instructions up in the debug map, and names registers and types in the terms of the signature.
#include "vm/verify/failure_text.h"

#include <algorithm>
#include <set>

namespace ingot::vm {
namespace {

void CollectSymbols(const Type& type, std::set<int64_t>& found) {
  for (const Dim& dim : type.dims) {
    if (!dim) continue;
    for (const DimStep& step : dim->steps()) {
      if (step.op == DimOp::kSlot) found.insert(step.value);
    }
  }
  for (const Type& element : type.elements) CollectSymbols(element, found);
}

}  // namespace

const char* SourceOperation(const Function& function, uint32_t instruction) {
  const auto behind = std::upper_bound(function.notes.begin(), function.notes.end(), instruction,
                                       [](uint32_t at, const DebugNote& note) { return at < note.instruction; });
  return behind == function.notes.begin() ? "" : std::prev(behind)->text.c_str();
}

std::string DescribeInstruction(const Function& function, uint32_t instruction) {
  const std::string number = StrCat({"instruction ", instruction});
  const std::string operation = SourceOperation(function, instruction);
  if (!operation.empty()) return StrCat({operation, ", ", number});
  return StrCat({InfoOf(function.code[instruction].opcode).name, " (", number, ")"});
}

std::string DescribeRegister(const Function& function, RegisterId id) {
  const uint32_t index = id.value;
  const std::vector<Symbol>& symbols = function.signature.symbols;
  const std::vector<NamedType>& params = function.signature.params;
  if (index < symbols.size()) return StrCat({"symbol \"", symbols[index].name, "\""});
  if (index - symbols.size() < params.size())
    return StrCat({"parameter \"", params[index - symbols.size()].name, "\""});
  return StrCat({"r", index});
}

std::string DescribeExpected(const Type& type, const Signature& signature, std::span<const int64_t> symbols) {
  Type shown = type;
  if (shown.is_tensor()) shown.storage = Storage::kOwned;  // which is not printed
  std::string text = shown.ToString(signature.symbol_names());
  std::set<int64_t> named;
  CollectSymbols(type, named);
  const char* separator = " with ";
  for (const int64_t symbol : named) {
    StrAppend(text, {separator, signature.symbols[static_cast<size_t>(symbol)].name, " = ",
                     symbols[static_cast<size_t>(symbol)]});
    separator = ", ";
  }
  return text;
}

std::string DescribeDim(const Dim& dim, int64_t value, const Signature& signature, std::span<const int64_t> symbols) {
  const std::string number = std::to_string(value);
  if (!dim || dim->is_constant()) return number;
  std::span<const DimStep> steps = dim->steps();
  const bool is_choice = steps.back().op == DimOp::kSelect;
  if (!is_choice) return StrCat({dim->ToString(signature.symbol_names()), " = ", number});
  while (steps.back().op == DimOp::kSelect) steps = steps.first(steps.size() - 1);
  const auto slot = static_cast<size_t>(steps.back().value);
  if (steps.back().op != DimOp::kSlot || symbols[slot] != value) return number;
  return StrCat({signature.symbols[slot].name, " = ", number});
}

}  // namespace ingot::vm
