// Operators that are asked for by name outside of op/, where no trait of a row says what is meant: one constant each,
// so that a name that no row has does not compile or fails the test of this list (tests/compiler/op/names_test.cc), and
// does not become a comparison that never holds.
#pragma once

#include <array>
#include <string_view>

#include "compiler/op/registry.h"

namespace ingot::op {

// Columns: the constant names::kName, the row's name.
#define INGOT_OPERATOR_NAMES(X)                   \
  X(Add, "add")                                   \
  X(AllocStorage, "memory.alloc_storage")         \
  X(AllocTensor, "builtin.alloc_tensor")          \
  X(AllocTensorInStorage, "memory.alloc_tensor")  \
  X(AppendToCache, "kv_cache.append")             \
  X(Assert, "assert_op")                          \
  X(Astype, "astype")                             \
  X(BatchNorm, "nn.batch_norm")                   \
  X(BroadcastTo, "broadcast_to")                  \
  X(CallDpsPacked, "call_dps_packed")             \
  X(CallPurePacked, "call_pure_packed")           \
  X(CallTir, "call_tir")                          \
  X(CallTirInplace, "call_tir_inplace")           \
  X(Concat, "concat")                             \
  X(InvokeClosure, "invoke_closure")              \
  X(InvokePureClosure, "invoke_pure_closure")     \
  X(MakeClosure, "make_closure")                  \
  X(Matmul, "matmul")                             \
  X(MemoryBitcast, "memory.bitcast")              \
  X(Multiply, "multiply")                         \
  X(PermuteDims, "permute_dims")                  \
  X(Print, "print")                               \
  X(Reshape, "reshape")                           \
  X(SequenceAt, "sequence.at")                    \
  X(SequenceConcat, "sequence.concat")            \
  X(SequenceConcatShape, "sequence.concat_shape") \
  X(SequenceConstruct, "sequence.construct")      \
  X(SequenceErase, "sequence.erase")              \
  X(SequenceInsert, "sequence.insert")            \
  X(SequenceLength, "sequence.length")            \
  X(ShapeOf, "shape_of")                          \
  X(Subtract, "subtract")                         \
  X(TensorToShape, "tensor_to_shape")             \
  X(ViewOfCache, "kv_cache.view")                 \
  X(WriteRow, "memory.write_row")

namespace names {
#define INGOT_NAME(Name, text) inline constexpr std::string_view k##Name = text;
INGOT_OPERATOR_NAMES(INGOT_NAME)
#undef INGOT_NAME

#define INGOT_NAME(Name, text) k##Name,
inline constexpr std::array kAll = {INGOT_OPERATOR_NAMES(INGOT_NAME)};
#undef INGOT_NAME
}  // namespace names

// Whether the operator of the call has this name. INGOT_CHECKs that some row has it.
inline bool IsCallOf(const ir::Call& call, std::string_view name) { return call->callee.get() == GetOp(name).get(); }
inline bool IsCallOf(const ir::CallNode& call, std::string_view name) { return call.callee.get() == GetOp(name).get(); }

}  // namespace ingot::op
