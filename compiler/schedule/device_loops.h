// Annotations of loops that become instructions of their own on CUDA, or on CPUs. A rule writes them, lowering keeps them and leaves
// the loops as they are, code generation (codegen/cuda_tiles.h) makes what they ask for or says why it cannot. The loops
// mean what they say without them, which is how the interpreter runs them.
#pragma once

#include "compiler/ir/stmt.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {

// Of tensor functions: products of float32 that are added up may round their factors to tf32 (11 bits, ties away from
// zero). The function means what it says without it (transform/permit_tf32).
inline constexpr const char* kTf32Attr = "ingot.tf32";

// The nest, in a loop over threads, adds products of elements of two shared tiles to sums that the thread keeps: matrix
// instructions of its warp, which round factors of float32 to tf32.
inline constexpr const char* kWarpProduct = kCudaWarpProduct;
// The same by matrix instructions of four warps, which run on their own until they are waited for (wgmma): the nest of an
// iteration of kPipelineStages. The tiles have rows of 128 bytes, whose 16-byte parts code generation swaps.
inline constexpr const char* kGroupProduct = "cuda_group_product";
// The loop copies 16 bytes that lie next to each other to shared memory: one access.
inline constexpr const char* kChunkCopy = kCudaChunkCopy;
// Its value where rows are those of a panel, of few chunks, so that threads next to each other copy several of them.
inline constexpr int64_t kIsOfPanel = 3;
// Each iteration of the loop copies tiles to shared memory and then uses them: so many iterations' tiles are there or on
// their way at once.
inline constexpr const char* kPipelineStages = "cuda_pipeline_stages";
// The loop over threads ends when the copies that are on their way have arrived (kCudaIsAwaited).
inline constexpr const char* kAwaitCopies = kCudaAwaitCopies;

// On a CPU with AMX: the nest, of loops over rows, columns and summands, adds products of words of bytes to sums. The
// forms that become tile instructions are those of codegen/amx_products.h.
inline constexpr const char* kAmxProduct = "amx_product";
// What a tile has at most; sums are in four of them.
inline constexpr int64_t kAmxRows = 16, kAmxColumns = 16, kAmxWords = 16, kAmxSums = 4;

inline bool IsAmxProduct(const ir::ForNode& loop) { return loop.annotations.Find(kAmxProduct) != nullptr; }

// Of a GPU.
inline bool IsDeviceLoop(const ir::ForNode& loop) {
  return loop.annotations.Find(kWarpProduct) != nullptr || loop.annotations.Find(kGroupProduct) != nullptr ||
         loop.annotations.Find(kChunkCopy) != nullptr || loop.annotations.Find(kPipelineStages) != nullptr ||
         loop.annotations.Find(kAwaitCopies) != nullptr;
}

}  // namespace ingot::schedule
