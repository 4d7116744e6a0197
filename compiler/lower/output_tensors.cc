// The search for allocations behind results, and the instructions that allocate results.
#include "compiler/lower/output_tensors.h"

#include <utility>

#include "compiler/lower/vm_types.h"
#include "compiler/memory/plan_memory.h"
#include "compiler/memory/tail_calls.h"
#include "vm/verify/type_rules.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

OutputTensors::OutputTensors(const FunctionNode& function, const std::vector<KeptState>& states,
                             const vm::Signature& signature, RegisterScope& scope, vm::FunctionBuilder& builder)
    : signature_(signature), scope_(scope), builder_(builder) {
  int64_t next = 0;
  for (size_t i = 0; i < ResultTypes(function.body->body->type).size(); ++i) {
    result_index_.push_back(StateOfResult(states, i) == nullptr ? next++ : -1);
  }
}

void OutputTensors::FindAllocations(const SeqExprNode& seq) {
  if (const Binding* last = memory::TailBinding(seq)) {
    if (const IfNode* branch = As<IfNode>(last->value)) {
      FindAllocations(*branch->then_branch);
      FindAllocations(*branch->else_branch);
      return;
    }
  }
  struct Name {
    const VarNode* of;
    bool is_view;
  };
  std::unordered_map<const VarNode*, Name> names;
  for (const BindingBlock& block : seq.blocks) {
    for (const Binding& binding : block.bindings) {
      if (binding.is_match_cast()) continue;
      const VarNode* const viewed = memory::ViewedVar(binding.value);
      if (const VarNode* source = viewed != nullptr ? viewed : As<VarNode>(binding.value)) {
        names[binding.var.get()] = {source, viewed != nullptr};
      }
    }
  }
  const TupleNode* tuple = As<TupleNode>(seq.body);
  if (tuple == nullptr && As<VarNode>(seq.body) != nullptr && As<TupleTypeNode>(seq.body->type) != nullptr) {
    for (const BindingBlock& block : seq.blocks) {
      for (const Binding& binding : block.bindings) {
        if (binding.var.get() == As<VarNode>(seq.body)) tuple = As<TupleNode>(binding.value);
      }
    }
  }
  const std::vector<Expr> results = tuple == nullptr ? std::vector<Expr>{seq.body} : tuple->fields;
  for (size_t i = 0; i < results.size(); ++i) {
    const VarNode* var = As<VarNode>(results[i]);
    bool is_view = false;
    for (auto name = names.find(var); name != names.end(); name = names.find(var)) {
      is_view |= name->second.is_view;
      var = name->second.of;
    }
    if (var == nullptr || i >= result_index_.size() || result_index_[i] < 0) continue;
    output_of_.emplace(var, Output{result_index_[i], is_view ? As<TensorTypeNode>(results[i]->type) : nullptr});
  }
}

Result<std::optional<vm::RegisterId>> OutputTensors::Allocate(const VarNode* allocation, const vm::Type& type,
                                                              const std::vector<DimCode>& dims) {
  const auto output = output_of_.find(allocation);
  if (output == output_of_.end()) return std::optional<vm::RegisterId>();
  const auto& [index, viewed_as] = output->second;
  vm::Type made = type;
  std::vector<DimCode> made_dims = dims;
  if (viewed_as != nullptr) {
    if (!viewed_as->dims || *viewed_as->dtype != type.dtype) return std::optional<vm::RegisterId>();
    made.dims = scope_.RegisterDims(*viewed_as->dims);
    Result<std::vector<DimCode>> known = scope_.Dims(*viewed_as->dims);
    if (!known.ok()) return std::optional<vm::RegisterId>();  // some dims are computed later
    made_dims = *std::move(known);
  }
  if (!vm::IsAssignable(signature_.results.at(static_cast<size_t>(index)).type, made))
    return std::optional<vm::RegisterId>();
  const vm::RegisterId dst = builder_.AddRegister(std::move(made));
  builder_.AllocOutput(dst, index, std::move(made_dims));
  allocated_as_[dst.value] = index;
  return std::optional(dst);
}

bool OutputTensors::IsAllocatedAs(vm::RegisterId reg, int64_t index) const {
  const auto made = allocated_as_.find(reg.value);
  return made != allocated_as_.end() && made->second == index;
}

std::optional<vm::RegisterId> OutputTensors::WholeOf(vm::RegisterId reg) const {
  const auto whole = whole_of_.find(reg.value);
  return whole == whole_of_.end() ? std::nullopt : std::optional(whole->second);
}

vm::RegisterId OutputTensors::CopyTo(vm::RegisterId src, int64_t index) {
  vm::Type type = builder_.type(src);
  type.storage = vm::Storage::kOwned;
  std::vector<DimCode> dims;
  for (size_t axis = 0; axis < type.dims.size(); ++axis) {
    if (type.dims[axis]) {
      dims.push_back(*type.dims[axis]);
      continue;
    }
    const vm::RegisterId dim = builder_.AddRegister(vm::Type::Int());
    builder_.TensorDim(dim, src, static_cast<int64_t>(axis));
    dims.push_back(DimCode::Slot(dim.value));
  }
  const vm::RegisterId dst = builder_.AddRegister(std::move(type));
  builder_.AllocOutput(dst, index, std::move(dims));
  builder_.CopyInto(dst, src, 0);
  return dst;
}

}  // namespace ingot::lower
