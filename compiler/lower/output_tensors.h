// The tensors that a function returns. A result that the function computes is allocated as the caller's output where
// its allocation is found, so that it is not copied; any other is copied into such an output. Owns what is known of
// results: which allocation becomes which, which register holds which, and which registers show the memory of one.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/lower/program_lowering.h"
#include "compiler/lower/register_scope.h"
#include "runtime/status.h"
#include "vm/program/program_builder.h"

namespace ingot::lower {

class OutputTensors {
 public:
  OutputTensors(const ir::FunctionNode& function, const std::vector<KeptState>& states, const vm::Signature& signature,
                RegisterScope& scope, vm::FunctionBuilder& builder);

  // Results of the body, states among them.
  size_t num_results() const { return result_index_.size(); }
  // The index of a result of the body in the signature; -1: it is a state.
  int64_t IndexOf(size_t result) const { return result_index_[result]; }

  // Finds the allocation behind each result, where there is one, before any of them is lowered.
  void FindAllocations(const ir::SeqExprNode& seq);
  // If this allocation is behind a result, emits the allocation of that result's memory and returns its register.
  // Returns nothing if it is behind none, or if that result's dims are not known yet.
  Result<std::optional<vm::RegisterId>> Allocate(const ir::VarNode* allocation, const vm::Type& type,
                                                 const std::vector<DimCode>& dims);
  bool IsAllocatedAs(vm::RegisterId reg, int64_t index) const;
  // Copies the elements of a parameter, a constant, a view, or a tensor that is returned twice into the result's own
  // tensor.
  vm::RegisterId CopyTo(vm::RegisterId src, int64_t index);

  // Records that reg is a view of the result in `whole`.
  void AddView(vm::RegisterId reg, vm::RegisterId whole) { whole_of_.emplace(reg.value, whole); }
  // The result that a register is recorded as a view of, if any.
  std::optional<vm::RegisterId> WholeOf(vm::RegisterId reg) const;

 private:
  // The result that an allocation becomes, and that result's own type where it is a view of the allocation.
  struct Output {
    int64_t index;
    const ir::TensorTypeNode* viewed_as;  // null: the result is the allocation itself
  };

  const vm::Signature& signature_;
  RegisterScope& scope_;
  vm::FunctionBuilder& builder_;
  std::vector<int64_t> result_index_;
  std::unordered_map<const ir::VarNode*, Output> output_of_;  // by allocation
  std::unordered_map<uint32_t, int64_t> allocated_as_;        // register -> index of the result
  std::unordered_map<uint32_t, vm::RegisterId> whole_of_;     // register of a view -> the result's register
};

}  // namespace ingot::lower
