// The signature of an exported PrimFunc comes from its parameters and its kernel's descriptor; the body of the function
// is one kernel call.
#include "compiler/lower/prim_entry.h"

#include <algorithm>
#include <utility>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/lower/vm_types.h"
#include "vm/program/program_builder.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

vm::Signature SignatureOfPrimEntry(const vm::Kernel& kernel, const PrimFunc& prim) {
  std::vector<PrimVar> symbols;
  for (const PrimVar& var : codegen::KernelIntArguments(prim)) {
    const bool is_scalar = std::any_of(prim->params.begin(), prim->params.end(),
                                       [&](const PrimFuncParam& p) { return !p.buffer && p.var.same_as(var); });
    if (!is_scalar) symbols.push_back(var);
  }
  vm::Signature signature;
  signature.symbols = NameSymbols(symbols, prim->attrs);
  size_t next_buffer = 0;
  for (const PrimFuncParam& param : prim->params) {
    if (!param.buffer) {
      const bool is_float = param.var->dtype.is_floating();
      signature.params.push_back({param.var->name, is_float ? vm::Type::Float() : vm::Type::Int()});
      continue;
    }
    const vm::Storage storage =
        kernel.params.at(next_buffer++).role == vm::ParamRole::kIn ? vm::Storage::kBorrowed : vm::Storage::kBorrowedMut;
    signature.params.push_back(
        {param.buffer->name, vm::Type::Tensor(param.buffer->dtype, TypeDims(param.buffer->shape, symbols), storage)});
  }
  return signature;
}

vm::Function LowerPrimEntry(const std::string& name, vm::KernelId kernel, vm::Signature signature,
                            const PrimFunc& prim) {
  const size_t num_symbols = signature.symbols.size();
  vm::FunctionBuilder builder(name, std::move(signature));
  std::vector<vm::RegisterId> tensors, ints;
  for (size_t i = 0; i < num_symbols; ++i) ints.push_back(builder.symbol(i));
  for (size_t i = 0; i < prim->params.size(); ++i) {
    (prim->params[i].buffer ? tensors : ints).push_back(builder.param(i));
  }
  builder.Note(name);
  builder.CallKernel(kernel, std::move(tensors), std::move(ints), 0);
  builder.Return({});
  return std::move(builder).Finish();
}

}  // namespace ingot::lower
