// What is known about a function's integers before it runs: registers whose value is, in every activation, one
// formula over the symbols. The verifier proves extents with it, and the linker drops the checks that are proved: both
// ask here, so that they cannot disagree. Works on functions whose operands have been checked for form and range.
#pragma once

#include <optional>
#include <vector>

#include "vm/program/program.h"

namespace ingot::vm {

// Whether instructions may run in another order than that in which they stand, or not at all.
bool HasJumps(const Function& function);

class FunctionFacts {
 public:
  explicit FunctionFacts(const Function& function);

  // The formula of an int register over the symbols; unknown unless its only write says so.
  const Dim& known(RegisterId id) const { return known_[id.value]; }
  // A formula over registers, as one over symbols.
  Dim OverSymbols(const DimCode& over_registers) const { return over_registers.Substitute(known_); }

 private:
  std::vector<Dim> known_;
};

// What is known about a kernel call: each parameter's extents over the caller's symbols.
std::vector<std::vector<Dim>> KnownExtents(const Kernel& kernel, IdList<RegisterId> ints, const FunctionFacts& facts);

}  // namespace ingot::vm
