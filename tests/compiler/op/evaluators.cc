// The ways of evaluating a call that the differential tests compare with the operator's reference evaluation.
#include <algorithm>
#include <optional>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/interp/interpreter.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/fold.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/transform/tensor/lowered.h"
#include "tests/compiler/codegen/jit.h"
#include "tests/compiler/op/cases.h"

namespace ingot::op {
namespace {

using Dims64 = std::vector<int64_t>;

// ---- Folding: the host routines.
bool Folds(const ir::Call& call) {
  const OpRow* row = RowOf(call);
  return row->fold != nullptr && (row->prepare == nullptr || row->prepare(call).ok());
}

Result<std::vector<ReferenceTensor>> Fold(const ir::Call& call, std::span<const ReferenceTensor> inputs,
                                          std::span<const Dims64> out_dims) {
  std::vector<ConstantPtr> constants;
  for (const ReferenceTensor& input : inputs) {
    constants.push_back(ir::ConstantData::FromBytes(input.dtype, input.dims, PackReference(input)));
  }
  INGOT_ASSIGN_OR_RETURN(const ConstantPtr result, RowOf(call)->fold(call, constants));
  if (result->dims() != out_dims[0]) return Status(StatusCode::kFailed, "folding gives other dims than the reference");
  return std::vector<ReferenceTensor>{UnpackReference(result->dtype(), result->dims(), result->bytes())};
}

// ---- Each implementation's tensor function, unscheduled. All implementations that take the call have to agree.
bool HasImplementation(const ir::Call& call) {
  const Target target;
  for (const Implementation& implementation : RowOf(call)->implementations) {
    if (implementation.predicate(call, target)) return true;
  }
  return false;
}

using Bytes = codegen::testing::Tensor<std::byte>;
struct KernelArguments {
  std::vector<ReferenceTensor> tensors;  // inputs, then the results
  std::vector<Bytes> bytes;              // theirs
  size_t num_inputs;
};
using RunFunction = Status (*)(const ir::PrimFunc& function, KernelArguments& arguments);

std::vector<ir::Type> ResultTypes(const ir::Call& call) {
  if (const auto* tuple = ir::As<ir::TupleTypeNode>(call->type)) return tuple->fields;
  return {call->type};
}

// Builds one tensor function for the call and runs it.
template <RunFunction run>
Result<std::vector<ReferenceTensor>> RunOne(const Builder& build, const ir::Call& call,
                                            std::span<const ReferenceTensor> inputs, std::span<const Dims64> out_dims) {
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
template <RunFunction run>
Result<std::vector<ReferenceTensor>> RunCountAndFill(const Implementation& implementation, const ir::Call& call,
                                                     std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const ir::Call count, CountCall(call));
  INGOT_ASSIGN_OR_RETURN(const std::vector<ReferenceTensor> counted,
                         RunOne<run>(implementation.count, count, inputs, DimsWith(count, {})));
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
  return RunOne<run>(implementation.build, fill, all, DimsWith(fill, values));
}

template <RunFunction run>
Result<std::vector<ReferenceTensor>> RunImplementations(const ir::Call& call, std::span<const ReferenceTensor> inputs,
                                                        std::span<const Dims64> out_dims) {
  const Target target;
  std::vector<ReferenceTensor> results;
  for (const Implementation& implementation : RowOf(call)->implementations) {
    if (!implementation.predicate(call, target)) continue;
    const bool counts = RowOf(call)->extents.count > 0;
    INGOT_ASSIGN_OR_RETURN(const std::vector<ReferenceTensor> computed,
                           counts ? RunCountAndFill<run>(implementation, call, inputs)
                                  : RunOne<run>(implementation.build, call, inputs, out_dims));
    results.insert(results.end(), computed.begin(), computed.end());
  }
  return results;
}

// Runs the kernel again with each output in the memory of the input that its descriptor lets the output share, where
// both have the same size. Memory planning relies on it.
Status RunInPlace(codegen::testing::Kernel& kernel, std::vector<Bytes> bytes, std::vector<void*> buffers,
                  const std::vector<int64_t>& ints, const KernelArguments& arguments) {
  const std::vector<vm::KernelParam>& params = kernel.description.kernel.params;
  std::vector<std::pair<size_t, size_t>> shared;  // an output, the input
  for (size_t i = 0; i < bytes.size(); ++i) buffers[i] = bytes[i].data();
  for (size_t out = arguments.num_inputs; out < params.size(); ++out) {
    if (!params[out].in_place || bytes[out].size() != bytes[*params[out].in_place].size()) continue;
    shared.emplace_back(out, *params[out].in_place);
    buffers[out] = buffers[*params[out].in_place];
  }
  if (shared.empty()) return Status();
  if (kernel.Run(buffers, ints) != 0) return Status(StatusCode::kFailed, "the kernel failed in place");
  for (const auto& [out, in] : shared) {
    if (bytes[in] != arguments.bytes[out]) return Status(StatusCode::kFailed, "in place the kernel computes others");
  }
  return Status();
}

Status RunCompiled(const ir::PrimFunc& function, KernelArguments& arguments) {
  const Target target = codegen::testing::TargetNamed("x86-64-v3");
  INGOT_ASSIGN_OR_RETURN(const ir::PrimFunc lowered, transform::LowerPrimFunc(function, target));
  codegen::CodegenOptions options;
  options.opt_level = 0;
  codegen::testing::Kernel kernel(lowered, target, options);
  std::vector<void*> buffers;
  for (Bytes& bytes : arguments.bytes) buffers.push_back(bytes.data());
  // Symbolic dims take their values from the tensors.
  std::vector<int64_t> ints;
  for (const ir::PrimVar& var : codegen::KernelIntArguments(lowered)) {
    std::optional<int64_t> value;
    for (size_t i = 0; i < lowered->params.size(); ++i) {
      const std::vector<ir::PrimExpr>& shape = lowered->params[i].buffer->shape;
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis].get() == var.get()) value = arguments.tensors[i].dims[axis];
      }
    }
    if (!value) return Status(StatusCode::kFailed, "no tensor binds the variable " + var->name);
    ints.push_back(*value);
  }
  const std::vector<Bytes> before = arguments.bytes;
  if (kernel.Run(buffers, ints) != 0) return Status(StatusCode::kFailed, "the kernel failed");
  for (size_t i = 0; i < arguments.num_inputs; ++i) {
    if (arguments.bytes[i] != before[i]) return Status(StatusCode::kFailed, "the kernel writes into an input");
  }
  return RunInPlace(kernel, before, buffers, ints, arguments);
}

Status RunInterpreted(const ir::PrimFunc& function, KernelArguments& arguments) {
  std::vector<interp::HostBuffer> buffers;
  for (size_t i = 0; i < arguments.tensors.size(); ++i) {
    const ReferenceTensor& tensor = arguments.tensors[i];
    buffers.push_back({tensor.dtype, tensor.dims, arguments.bytes[i], i < arguments.num_inputs});
  }
  return interp::Interpret(function, buffers);
}

const Evaluator kEvaluators[] = {
    {"fold", Folds, Fold},
    {"interpreted definition", HasImplementation, RunImplementations<RunInterpreted>},
    {"compiled definition", HasImplementation, RunImplementations<RunCompiled>},
};

}  // namespace

std::span<const Evaluator> Evaluators() { return kEvaluators; }

}  // namespace ingot::op
