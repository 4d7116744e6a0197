// Lowered tensor functions: what compiler/codegen takes. LowerPrimFunc turns a scheduled PrimFunc (blocks, vectorized
// and unrolled loops, predicates) into this smaller language through the passes of TensorPipeline(), one file each.
// Nothing here chooses a schedule, and nothing here depends on the machine beyond the target record.
//
// A lowered PrimFunc keeps its parameters, attributes and meaning, and holds only:
//
//   For            min is 0; the extent is any int64 expression over variables in scope and may be 0. Kinds:
//                    serial    in order;
//                    parallel  iterations in any order, at once. No parallel loop is inside of another one (nested ones
//                              were fused), but several may follow each other, and one may be inside of serial loops,
//                              Lets, Ifs and Allocates. Iterations write disjoint elements of every buffer that lives
//                              outside of the loop. Its extent is the number of tasks: the schedule chose the grain, so
//                              a task is worth a fork-join, and an extent of 1 runs on the caller.
//                  No vectorized or unrolled loop, and a thread-bound one for CUDA alone: codegen/cuda_launches.h says
//                  which. Annotations are empty but for the one of schedule/device_loops.h that a serial loop for CUDA may
//                  have.
//   Allocate       buffer.scope "global": workspace, 64-byte aligned, extents constant or over the function's symbolic
//                              variables alone; never inside a loop, If, Let or parallel loop: all of them stand
//                              outermost, before any other statement, so the workspace is one formula;
//                  buffer.scope "local": stack or registers, constant extents, anywhere (inside a parallel loop: one
//                              per task); all of them together hold at most Target::max_stack_bytes. An accumulator
//                              tile is one of these whose every index is constant: promote it to registers;
//                  buffer.scope "shared": on CUDA alone, the memory that the threads of a block share, constant extents,
//                              inside of the block's loops and outside of those over its threads.
//                  buffer.scope "thread": on CUDA alone, what each thread of a block keeps from one loop over the threads
//                              to the next, constant extents, at the same place; the first index of each access is the
//                              variable of the loop over threadIdx.x around it, and the first extent is that loop's;
//                  Contents start undefined. Buffers are compact row-major without elem_offset.
//   BufferStore,   one index per dimension, int64 (dtype of the index may carry lanes). Parameters' buffers may have
//   BufferLoad     strides and elem_offset (in elements): address = data + elem_offset + sum(index * stride).
//                  Scalar access: every index is scalar.
//                  Vector access: the last index alone has lanes (n); the value is dtype x n. With a last index
//                  Ramp(base, 1, n) and a last stride of 1 it is one contiguous load or store of n elements (natural
//                  alignment of the element only); every other last index is a gather or scatter of n addresses (lanes
//                  of a store are distinct addresses). n is any number >= 2: usually the target's vector width, its
//                  multiple or a tail below it.
//   If, Assert,    conditions are scalar bool. A condition may depend on any variable in scope; hot loops have none
//   While          (tails were partitioned off). An If alone may have a condition per lane: then it holds nothing but
//                  stores of as many lanes, and those touch memory, in their loads too, only where it is true.
//   LetStmt, Let   each variable is bound once in the whole function.
//   Attr           "warp_reduce" on CUDA alone (WarpReduce), around the store of a scalar: all lanes of a warp are there,
//                  and each stores what the values of its group of lanes give together.
//   Evaluate       a PrimCall with an effect. Evaluate(0) only as a whole empty body.
//   Seq            never nested directly, never of one.
//
// and expressions of every PrimKind but Reduce and ProducerLoad, where
//   - operands of Binary, Select, Cast, ... have equal lanes (scalars are broadcast explicitly); Select's condition is
//     bool of the same lanes;
//   - if_then_else has a scalar condition (its values may be vectors) or one per lane. It evaluates the chosen side
//     alone, lane by lane: the other side may hold an out-of-bounds load. Padding is read in this way. With a condition
//     per lane, the value for false is safe to evaluate everywhere;
//   - accesses may go to a view: a buffer of one dimension with the data variable of a compact one, whose elements it
//     numbers in order;
//   - Shuffle concatenates the lanes of its vectors or scalars; it appears where lanes were computed one by one;
//   - index arithmetic is int64 and does not overflow for legal shapes.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "compiler/ir/expr.h"
#include "compiler/target/target.h"
#include "runtime/status.h"

namespace ingot::transform {

// A pass of the tensor level: on one function, for one target. Order and reasons are in tensor_pipeline.cc.
struct TensorPassRow {
  const char* name;
  const char* summary;
  Result<ir::PrimFunc> (*run)(const ir::PrimFunc& function, const Target& target);
};
std::span<const TensorPassRow> TensorPipeline();
const TensorPassRow* FindTensorPass(std::string_view name);

// Called after each pass, for --print-after. May be null.
using AfterTensorPass = Status (*)(void* context, const TensorPassRow& pass, const ir::PrimFunc& function);

// Runs the pipeline and VerifyLowered. A function that is lowered already is returned as it is.
Result<ir::PrimFunc> LowerPrimFunc(const ir::PrimFunc& function, const Target& target, AfterTensorPass after = nullptr,
                                   void* context = nullptr);

// The value of an attribute kCudaWarpReduce: an ir::BinaryOp, and which lanes are a group: of so many neighbours (2, 4, ..
// 32) those that are a multiple of `step` (1, 2, ..) apart.
struct WarpReduce {
  ir::BinaryOp op;
  int64_t lanes, step = 1;

  ir::AttrValue AsAttr() const { return ir::AttrValue::Ints({static_cast<int64_t>(op), lanes, step}); }
  static std::optional<WarpReduce> Of(const ir::AttrStmtNode& attribute);
};

// Checks the rules above; the message names the function, the statement and the violated rule.
Status VerifyLowered(const ir::PrimFunc& function, const Target& target);

}  // namespace ingot::transform
