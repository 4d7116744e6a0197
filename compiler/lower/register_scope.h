// The registers that a program point may read without computing anything again: those of constants, of integer formulas
// and of symbolic variables. Owns these three maps, and knows the signature's symbols, over which types of registers
// are formulas.
//
// What a branch computes does not exist on other paths: leaving a scope forgets what was added since it was entered.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/lower/program_lowering.h"
#include "runtime/status.h"
#include "vm/program/program_builder.h"

namespace ingot::lower {

class RegisterScope {
 public:
  // symbols: of the signature; each has a register from the beginning.
  RegisterScope(ProgramLowering& program, vm::FunctionBuilder& builder, std::vector<ir::PrimVar> symbols);

  // How far the maps are filled.
  struct Mark {
    size_t constants, dims, ints;
  };
  Mark Enter() const { return {constant_keys_.size(), dim_keys_.size(), int_keys_.size()}; }
  void Leave(const Mark& mark);

  // The register of a constant of the program, which is added to the program if no equal one is there.
  vm::RegisterId ConstantRegister(const ir::ConstantNode& constant);
  void BindInt(const ir::PrimVar& var, vm::RegisterId reg);
  bool IsBound(const ir::PrimVar& var) const { return int_registers_.contains(var); }
  // A register that holds the value of an integer expression.
  Result<vm::RegisterId> IntRegister(const ir::PrimExpr& expr);
  // The expression as a formula over registers; the parts of one that is too long for a formula are computed into
  // registers first. Errors: it mentions a variable that has none.
  Result<DimCode> Dim(const ir::PrimExpr& dim);
  Result<std::vector<DimCode>> Dims(const std::vector<ir::PrimExpr>& dims);

  // Types of registers: as LowerType and TypeDims (vm_types.h), over the signature's symbols.
  Result<vm::Type> RegisterType(const ir::Type& type, vm::Storage storage, const ir::Span& span) const;
  std::vector<vm::Dim> RegisterDims(const std::vector<ir::PrimExpr>& dims) const;
  // Whether the type of a register can say this dim.
  bool HasFormula(const ir::PrimExpr& dim) const;
  bool IsSymbol(const ir::PrimVar& var) const;

 private:
  class PartsInRegisters;

  ProgramLowering& program_;
  vm::FunctionBuilder& builder_;
  const std::vector<ir::PrimVar> symbols_;
  std::unordered_map<uint32_t, vm::RegisterId> constant_registers_;  // by constant
  std::unordered_map<std::string, vm::RegisterId> dim_registers_;    // by the formula's text
  std::unordered_map<ir::PrimVar, vm::RegisterId, ir::RefHash, ir::RefSame> int_registers_;
  std::vector<ir::PrimVar> slot_vars_;  // by register: its symbolic variable, null where it holds none
  // Keys of the maps above in order of addition.
  std::vector<uint32_t> constant_keys_;
  std::vector<std::string> dim_keys_;
  std::vector<ir::PrimVar> int_keys_;
};

}  // namespace ingot::lower
