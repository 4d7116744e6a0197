// Lowering to bytecode: each graph function becomes a VM function, each exported PrimFunc a VM function that calls its
// kernel. In: a module after memory planning, and the kernels of its PrimFuncs (same names). Out: a vm::Program with
// functions, memory plans, constants and debug notes; images are added by the driver.
//
// Symbolic dimensions are the signature's symbols; other dimensions are DimCodes over them. Constants of equal content
// are stored once and never copied. What leaves a function is reference-counted memory: an entry point computes a
// result straight into the caller's tensor, and copies a parameter or constant that it returns. Branches are jumps, and
// self tail calls are jumps backwards (tail_calls.h); functions as values are closures over their last parameters. If
// kernels say that they run on device 1, that is a GPU, and place_on_device.h says what lies there.
#pragma once

#include <vector>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/ir/module.h"
#include "runtime/status.h"
#include "vm/program/program.h"

namespace ingot::lower {

// Function attributes that lowering reads: "input_names" and "output_names" (lists: the names that the signature
// shows), and TVM's "tir_var_lower_bound"/"tir_var_upper_bound" (dict: name of a symbolic dimension -> bound).

Result<vm::Program> LowerToBytecode(const ir::IRModule& module, std::vector<codegen::KernelDescription> kernels);

}  // namespace ingot::lower
