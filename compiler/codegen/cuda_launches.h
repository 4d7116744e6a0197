// LaunchesOf: a lowered function for CUDA as launches of the device. Blocks of a grid cannot wait for each other, so
// every nest of thread-bound loops that stands outermost is a launch of its own; they run in order. Private to code
// generation.
//
// Around the nests stand allocations of workspace, Seqs, and Ifs and Asserts over the integer arguments alone, which
// every launch inside of them repeats. In a nest every store to memory that threads share is inside of all its thread
// axes of more than one iteration, or every thread would run it; what is stored is accessed in one loop of each axis
// alone, since threads cannot wait for each other yet; the extents are over the integer arguments. A function of another
// form, or of more threads than devices have, is refused with what stands in the way.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/stmt.h"
#include "runtime/status.h"

namespace ingot::codegen {

// blockIdx.x, .y, .z, threadIdx.x, .y, .z.
inline constexpr std::array<std::string_view, 6> kThreadAxes = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z",
                                                                "threadIdx.x", "threadIdx.y", "threadIdx.z"};

struct CudaLaunch {
  ir::Stmt body;                                         // one nest, and what stands around it
  std::array<ir::PrimExpr, kThreadAxes.size()> extents;  // 1 where the nest does not have the axis
};

Result<std::vector<CudaLaunch>> LaunchesOf(const ir::PrimFunc& lowered);

}  // namespace ingot::codegen
