// Tensor intrinsics: pairs of tensor functions, a description of what is computed and its implementation. tensorize
// matches the description with a nest of loops and replaces the nest by the implementation. An intrinsic is registered
// with a schedule (Schedule::Create); the micro-kernels below need no registration.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/stmt.h"
#include "runtime/status.h"

namespace ingot::schedule {

struct TensorIntrinNode : ir::Node {
  std::string name;
  // One nest of loops around one block whose iteration variables are the loops; the block holds only stores. An extent
  // is a constant, or a symbolic variable: then the intrinsic takes any.
  ir::PrimFunc description;
  // The same buffer parameters; its root block may allocate, and holds loops and statements without blocks.
  ir::PrimFunc implementation;
};
using TensorIntrin = ir::Ref<TensorIntrinNode>;

// Checks the conditions above; an error says which of the two functions breaks one.
Result<TensorIntrin> MakeTensorIntrin(std::string name, ir::PrimFunc description, ir::PrimFunc implementation);

// The parts of a description.
struct DescribedBlock {
  std::vector<ir::Ref<ir::ForNode>> loops;  // outermost first
  ir::Ref<ir::BlockRealizeNode> realize;
};
Result<DescribedBlock> FindDescribedBlock(const ir::PrimFunc& description);

// Micro-kernels of matrix products, C[rows, columns] += A[rows, k] B[k, columns] in float32 with any k: the rows x
// columns results stay in registers, as vectors of `lanes` floats, while k runs.
//   gemm_f32_ROWSx16_v8    ROWS = 1..6     two vectors a row in 16 registers (AVX2)
//   gemm_f32_ROWSx32_v16   ROWS = 1..14    two vectors a row in 32 registers (AVX-512)
// Those with _init at the end of the name start the sum at 0 themselves: for blocks that still have their
// initialisation.
TensorIntrin GemmMicroKernel(int64_t rows, int64_t columns, int64_t lanes, bool starts);
// Null where no such name is known.
TensorIntrin FindBuiltinIntrin(std::string_view name);

}  // namespace ingot::schedule
