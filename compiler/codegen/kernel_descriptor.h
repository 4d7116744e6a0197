// DescribeKernel: the normative interface of a kernel, computed from its PrimFunc before scheduling, so that every
// variant of the kernel shares it: roles, extents and alignment of the tensors, the integer arguments and their order,
// assertions, external functions, effects, and a cost estimate. Variants, offsets and the workspace formula come
// later, from CompileKernels (AddVariant in codegen.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/expr.h"
#include "runtime/status.h"
#include "vm/program/program.h"

namespace ingot::codegen {

struct KernelDescription {
  vm::Kernel kernel;                   // no variants, externals and workspace yet
  std::vector<std::string> externals;  // names of external functions, by the index that call_external gets
};

// A buffer that the function writes is an output. One that it reads before it writes is in-out, which the attribute
// "ingot.in_out" says: a list of indices among its buffer parameters (set for call_tir_inplace). An output may share an
// input's memory (KernelParam::in_place) if each of its elements depends on no other element of that input.
Result<KernelDescription> DescribeKernel(std::string name, const ir::PrimFunc& function);

// The integer arguments in order: symbolic variables by first occurrence in the buffers' shapes, strides and offsets,
// then scalar parameters. A variable that is also a scalar parameter appears among the scalars only.
std::vector<ir::PrimVar> KernelIntArguments(const ir::PrimFunc& function);

}  // namespace ingot::codegen
