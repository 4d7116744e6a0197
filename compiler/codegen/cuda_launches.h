// LaunchesOf: a lowered function for CUDA as launches of the device. Blocks of a grid cannot wait for each other, so
// every nest of thread-bound loops that stands outermost is a launch of its own; they run in order. Private to code
// generation.
//
// Around the nests stand allocations of workspace, Seqs, and Ifs and Asserts over the integer arguments alone, which
// every launch inside of them repeats, and serial loops over such arguments, one around a nest at most: the launches inside
// run in every round, one after the other. In a nest every store to memory that threads share is inside of all its thread
// axes of more than one iteration, or every thread would run it; the extents are over the integer arguments.
//
// Where a nest has several loops over the threads of a block, or such a loop in a serial one, what the threads wrote in
// one all of them read in the next: all threads wait for each other behind each but the last one, unless another one
// follows at once that neither stores what others accessed since they waited, nor loads what others stored. So what is
// stored is read inside of such loops alone, blocks touch elements of their own, and local memory is used in one loop. A
// function of another form, or of more threads than devices have, is refused with what stands in the way.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_set>
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
  bool has_barriers = false;                             // several outermost loops over threads of a block, or repeated
  // Of a launch in a loop of rounds: its variable, which the body mentions, how often it runs, and the launch's number among
  // those of the loop. Null: it runs once.
  ir::PrimVar round;
  ir::PrimExpr rounds;
  int64_t number_in_round = 0;
  // The variables of those behind which all threads of the block wait for each other.
  std::unordered_set<const ir::PrimVarNode*> waits;
};

Result<std::vector<CudaLaunch>> LaunchesOf(const ir::PrimFunc& lowered);

}  // namespace ingot::codegen
