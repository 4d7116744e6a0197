// Runs each implementation of an operator's call: builds its tensor functions and gives them and packed tensors to a
// way of running them. All implementations that take the call have to agree.
#pragma once

#include <span>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/op/registry.h"
#include "runtime/status.h"
#include "tests/compiler/codegen/jit.h"

namespace ingot::op {

using Dims64 = std::vector<int64_t>;
using Bytes = codegen::testing::Tensor<std::byte>;
struct KernelArguments {
  std::vector<ReferenceTensor> tensors;  // inputs, then the results
  std::vector<Bytes> bytes;              // theirs
  size_t num_inputs;
};
using RunFunction = Status (*)(const ir::PrimFunc& function, KernelArguments& arguments);

bool HasImplementation(const ir::Call& call);
// The results of each implementation, one after the other: those for CPUs, and those for the target alone.
Result<std::vector<ReferenceTensor>> RunImplementations(const ir::Call& call, std::span<const ReferenceTensor> inputs,
                                                        std::span<const Dims64> out_dims, RunFunction run,
                                                        const Target& target = {});
// The values of the function's integer arguments: symbolic dims take theirs from the tensors.
Result<std::vector<int64_t>> IntsOf(const ir::PrimFunc& function, const KernelArguments& arguments);

}  // namespace ingot::op
