// Tensor functions from the operators' rows; those of dynamic shapes count first and fill then.
#include "tests/compiler/op/run_implementations.h"

#include <algorithm>
#include <optional>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"

namespace ingot::op {
namespace {

std::vector<ir::Type> ResultTypes(const ir::Call& call) {
  if (const auto* tuple = ir::As<ir::TupleTypeNode>(call->type)) return tuple->fields;
  return {call->type};
}

// Builds one tensor function for the call and runs it.
Result<std::vector<ReferenceTensor>> RunOne(const Builder& build, const ir::Call& call,
                                            std::span<const ReferenceTensor> inputs, std::span<const Dims64> out_dims,
                                            RunFunction run) {
  INGOT_ASSIGN_OR_RETURN(const ir::PrimFunc function, build(call, Target()));
  KernelArguments arguments{{inputs.begin(), inputs.end()}, {}, inputs.size()};
  const std::vector<ir::Type> types = ResultTypes(call);
  for (size_t i = 0; i < types.size(); ++i) {
    arguments.tensors.push_back(NewReference(*ir::As<ir::TensorTypeNode>(types[i])->dtype, out_dims[i]));
  }
  for (const ReferenceTensor& tensor : arguments.tensors) {
    const std::vector<std::byte> packed = PackReference(tensor);
    arguments.bytes.emplace_back(packed.begin(), packed.end());
  }
  for (size_t i = inputs.size(); i < arguments.bytes.size(); ++i) {
    std::ranges::fill(arguments.bytes[i], std::byte{0xaa});  // what is not written shows
  }
  INGOT_RETURN_IF_ERROR(run(function, arguments));
  std::vector<ReferenceTensor> results;
  for (size_t i = inputs.size(); i < arguments.bytes.size(); ++i) {
    const ReferenceTensor& tensor = arguments.tensors[i];
    results.push_back(UnpackReference(tensor.dtype, tensor.dims, arguments.bytes[i]));
  }
  return results;
}

// The dims of the results for these values of their symbolic variables.
std::vector<Dims64> DimsWith(const ir::Call& call, const ir::PrimVarMap& values) {
  std::vector<Dims64> dims;
  for (const ir::Type& type : ResultTypes(call)) {
    dims.emplace_back();
    for (const ir::PrimExpr& dim : *ir::As<ir::TensorTypeNode>(type)->dims) {
      dims.back().push_back(*ir::AsConstInt(SimplifyDim(ir::Substitute(dim, values))));
    }
  }
  return dims;
}

// Runs the tensor function that computes the dynamic output shape, then the one that fills results of that shape.
Result<std::vector<ReferenceTensor>> RunCountAndFill(const Implementation& implementation, const ir::Call& call,
                                                     std::span<const ReferenceTensor> inputs, RunFunction run) {
  INGOT_ASSIGN_OR_RETURN(const ir::Call count, CountCall(call));
  INGOT_ASSIGN_OR_RETURN(const std::vector<ReferenceTensor> counted,
                         RunOne(implementation.count, count, inputs, DimsWith(count, {}), run));
  std::vector<ir::PrimExpr> extents;
  ir::PrimVarMap values;
  for (int64_t extent : counted[0].ints) {
    const ir::PrimVar var = ir::MakePrimVar("n");
    values[var] = ir::Int64(extent);
    extents.push_back(var);
  }
  std::vector<ir::Expr> carried;
  std::vector<ReferenceTensor> all(inputs.begin(), inputs.end());
  for (size_t i = 1; i < counted.size(); ++i) {
    carried.push_back(ir::Make<ir::VarNode>("carried", ResultTypes(count)[i]));
    all.push_back(counted[i]);
  }
  INGOT_ASSIGN_OR_RETURN(const ir::Call fill, FillCall(call, carried, extents));
  return RunOne(implementation.build, fill, all, DimsWith(fill, values), run);
}

}  // namespace

bool HasImplementation(const ir::Call& call) {
  const Target target;
  for (const Implementation& implementation : RowOf(call)->implementations) {
    if (implementation.predicate(call, target)) return true;
  }
  return false;
}

Result<std::vector<ReferenceTensor>> RunImplementations(const ir::Call& call, std::span<const ReferenceTensor> inputs,
                                                        std::span<const Dims64> out_dims, RunFunction run,
                                                        const Target& target) {
  std::vector<ReferenceTensor> results;
  for (const Implementation& implementation : RowOf(call)->implementations) {
    if (!implementation.predicate(call, Target()) && !implementation.predicate(call, target)) continue;
    const bool counts = RowOf(call)->extents.count > 0;
    INGOT_ASSIGN_OR_RETURN(const std::vector<ReferenceTensor> computed,
                           counts ? RunCountAndFill(implementation, call, inputs, run)
                                  : RunOne(implementation.build, call, inputs, out_dims, run));
    results.insert(results.end(), computed.begin(), computed.end());
  }
  return results;
}

Result<std::vector<int64_t>> IntsOf(const ir::PrimFunc& function, const KernelArguments& arguments) {
  std::vector<int64_t> ints;
  for (const ir::PrimVar& var : codegen::KernelIntArguments(function)) {
    std::optional<int64_t> value;
    for (size_t i = 0; i < function->params.size(); ++i) {
      const std::vector<ir::PrimExpr>& shape = function->params[i].buffer->shape;
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis].get() == var.get()) value = arguments.tensors[i].dims[axis];
      }
    }
    if (!value) return Status(StatusCode::kFailed, "no tensor binds the variable " + var->name);
    ints.push_back(*value);
  }
  return ints;
}

}  // namespace ingot::op
