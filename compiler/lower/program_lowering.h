// What the functions of a program share while they are lowered: ids of functions, kernels and externals, states,
// signatures, and constants shared by content. All signatures are known before any body is lowered, since functions may
// call each other recursively.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/ir/module.h"
#include "compiler/transform/states.h"
#include "runtime/status.h"
#include "vm/program/program.h"

namespace ingot::lower {

// A parameter and a result of a function that hold a state of the context. A length is a shape of one dimension in the
// function and an integer in the context.
struct KeptState {
  transform::StateParam of;
  vm::StateId id;
};

class ProgramLowering {
 public:
  ProgramLowering(const ir::IRModule& module, std::vector<codegen::KernelDescription> kernels);

  // Declares the signature of every function, and the externals that kernels and functions call.
  Status Declare();

  const ir::IRModule& module() const { return module_; }
  vm::Program& program() { return program_; }

  const vm::KernelId* FindKernel(const std::string& name) const;
  // Null for a private PrimFunc, which has no VM function.
  const vm::FunctionId* FindFunction(const std::string& name) const;
  const vm::Signature& signature(vm::FunctionId id) const { return signatures_[id.value]; }  // closure entries' too
  // The states of a function, which its signature leaves out. Empty for most functions.
  const std::vector<KeptState>& states(const std::string& name) const;
  // An error when the function has states: nothing calls it but the embedding program.
  Status RefuseStates(const ir::Span& span, const std::string& name) const;
  // How many of a function's last parameters closures capture. In bytecode these come first.
  size_t NumCaptured(const std::string& name) const;
  // The function that a closure of `name` over this many values calls. An entry point keeps the order of its
  // parameters, so its closures call an extra function that takes the captured values first.
  vm::FunctionId ClosureTarget(const std::string& name, size_t num_captured) const;
  // Lowers these extra functions; they follow the functions of the module.
  std::vector<vm::Function> LowerClosureEntries() const;
  const vm::ExternalId* FindExternal(const std::string& name) const;

  vm::ConstantId AddConstant(const ir::ConstantNode& constant);
  // Adds a constant that a function of the program computes when the executable is loaded.
  vm::ConstantId AddPreparedConstant(vm::Constant constant);

 private:
  Status FindCaptures();
  Status DeclareExternals();
  // Unites what several calls say of one external function.
  Status AddExternal(const std::string& name, vm::Signature signature, uint32_t effects, const ir::Span& span);
  // States of a function, lengths first, since caches refer to them (program_states.cc).
  Result<std::vector<KeptState>> FindStates(const ir::Function& function);
  Result<vm::State> LengthState(const ir::Var& param, const std::string& name) const;
  Result<vm::State> TensorState(const ir::Var& param, const std::string& name) const;
  // Returns the state of this name; functions that keep a state of the same name and type share it.
  Result<vm::StateId> AddState(const vm::State& state);
  Result<vm::Signature> SignatureOf(const std::string& name, const ir::Function& function) const;

  const ir::IRModule& module_;
  vm::Program program_;
  std::vector<codegen::KernelDescription> kernels_;
  std::vector<vm::Signature> signatures_;
  std::unordered_map<std::string, std::vector<KeptState>> states_;
  std::unordered_map<std::string, size_t> num_captured_;
  struct ClosureEntry {
    std::string name;  // of the entry point
    size_t num_captured;
  };
  std::vector<ClosureEntry> closure_entries_;
  std::unordered_map<std::string, vm::KernelId> kernel_ids_;
  std::unordered_map<std::string, vm::FunctionId> function_ids_;
  std::unordered_map<std::string, vm::ExternalId> external_ids_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> constants_by_hash_;
  std::vector<std::shared_ptr<const ir::ConstantData>> constant_data_;
};

// Null when this parameter, or this result, is no state.
const KeptState* StateOfParam(const std::vector<KeptState>& states, size_t param);
const KeptState* StateOfResult(const std::vector<KeptState>& states, size_t result);

}  // namespace ingot::lower
