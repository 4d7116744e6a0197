// The fused kernel of attention for CUDA, as statements; cuda_attention.cc describes it.
#pragma once

#include <optional>

#include "compiler/op/topi/attention.h"

namespace ingot::op::topi {

inline constexpr int64_t kCudaAttentionChunkBytes = 16;  // that are copied at once

// What a block of threads takes at once, and how its threads share it.
struct CudaAttentionTile {
  bool multiplies_by_warps = false;  // matrix instructions, for operands of 16 bits
  int64_t threads = 0;
  int64_t rows = 0, keys = 0;              // queries and keys of a tile
  int64_t depth = 0, value_depth = 0;      // with padding
  int64_t row_threads = 0;                 // that have a row together
  int64_t own_rows = 0;                    // of a thread
  int64_t key_lanes = 1, value_lanes = 1;  // neighbours that a thread has
  // Distances of rows in shared memory, which begin in other banks.
  int64_t RowLength(int64_t elements, DataType dtype) const {
    return elements + kCudaAttentionChunkBytes * 8 / dtype.bits;
  }
  int64_t ExponentialsLength() const { return keys + 8; }
  int64_t own_keys() const { return keys / (row_threads * key_lanes); }             // groups of neighbours
  int64_t own_values() const { return value_depth / (row_threads * value_lanes); }  // groups of neighbours
};

// Nothing where no tile of these operands (all of one dtype) fits a block's memory, or they are of another dtype than
// float32, float16 and bfloat16. Depths are constant.
std::optional<CudaAttentionTile> ChooseCudaAttentionTile(const AttentionConfig& config, DataType dtype);

// The statements, bound to threads.
std::vector<ir::Stmt> CudaAttention(const std::vector<ir::Buffer>& inputs, const ir::Buffer& out,
                                    const AttentionConfig& config);

}  // namespace ingot::op::topi
