// The ways of evaluating a call that the differential tests compare with the operator's reference evaluation.
#include <algorithm>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/interp/interpreter.h"
#include "compiler/op/fold.h"
#include "compiler/op/reference.h"
#include "compiler/transform/tensor/lowered.h"
#include "tests/compiler/codegen/jit.h"
#include "tests/compiler/op/cases.h"
#include "tests/compiler/op/run_implementations.h"

namespace ingot::op {
namespace {

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

// ---- Each implementation's tensor function, unscheduled.
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
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> ints, IntsOf(lowered, arguments));
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

Result<std::vector<ReferenceTensor>> Compiled(const ir::Call& call, std::span<const ReferenceTensor> inputs,
                                              std::span<const Dims64> out_dims) {
  return RunImplementations(call, inputs, out_dims, RunCompiled);
}
Result<std::vector<ReferenceTensor>> Interpreted(const ir::Call& call, std::span<const ReferenceTensor> inputs,
                                                 std::span<const Dims64> out_dims) {
  return RunImplementations(call, inputs, out_dims, RunInterpreted);
}

const Evaluator kEvaluators[] = {
    {"fold", Folds, Fold},
    {"interpreted definition", HasImplementation, Interpreted},
    {"compiled definition", HasImplementation, Compiled},
};

}  // namespace

std::span<const Evaluator> Evaluators() { return kEvaluators; }

}  // namespace ingot::op
