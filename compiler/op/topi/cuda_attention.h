// The fused kernel of attention for CUDA, as statements; cuda_attention.cc describes it.
#pragma once

#include <optional>

#include "compiler/op/topi/attention.h"

namespace ingot::op::topi {

inline constexpr int64_t kCudaAttentionChunkBytes = 16;  // that are copied at once
inline constexpr int64_t kCudaSquareChunk = 4;           // elements of a row that squares take at once
inline constexpr int64_t kCudaMatrixLanes = 4;           // that have a row of a matrix

// What a block of threads takes at once, and how its threads share it.
struct CudaAttentionTile {
  bool multiplies_by_warps = false;  // matrix instructions, for operands of 16 bits
  int64_t threads = 0;
  int64_t rows = 0, keys = 0;              // queries and keys of a tile
  int64_t depth = 0, value_depth = 0;      // with padding
  int64_t row_threads = 0;                 // that have a row together
  int64_t own_rows = 0;                    // of a thread
  int64_t key_lanes = 1, value_lanes = 1;  // neighbours that a thread has
  int64_t splits = 1;                      // blocks of threads that share the keys of a tile of queries
  // Distances of rows in shared memory, which begin in other banks.
  int64_t RowLength(int64_t elements, DataType dtype) const {
    return elements + kCudaAttentionChunkBytes * 8 / dtype.bits;
  }
  int64_t ExponentialsLength() const { return multiplies_by_warps ? keys : keys + 8; }
  int64_t own_keys() const { return keys / (row_threads * key_lanes); }             // groups of neighbours
  int64_t own_values() const { return value_depth / (row_threads * value_lanes); }  // groups of neighbours
};

// For so many queries, where their number is not known; nothing where no tile of these operands (all of one dtype) fits a block's memory, or they are of another dtype than
// float32, float16 and bfloat16. Depths are constant.
std::optional<CudaAttentionTile> ChooseCudaAttentionTile(const AttentionConfig& config, DataType dtype,
                                                         int64_t likely_queries = 512);

// exp(x) of what is at most 0. Powers of 2 are an instruction, and the error of the product, |x| * 2^-24 of the result, is
// less than 2^-24 of the row's greatest exponential, which is 1.
PrimExpr CudaExp(const PrimExpr& x);

// A launch before the tiles: poison[head, part] := 0, or NaN where a value of this part of the head's keys is not finite,
// or where hidden keys show and a key is not.
inline constexpr int64_t kCudaSearches = 16;
ir::Stmt SearchCudaOperands(const std::vector<ir::Buffer>& inputs, const AttentionConfig& config,
                            const ir::Buffer& poison);
// A launch behind them, if the condition holds: results of splits, [tile, split, row, element], become those of queries.
// rows[tile, split, row] are the greatest score, the sum of exponentials and, if queries may be masked, the greatest mask.
inline constexpr int64_t kCudaSplitNumbers = 3;
ir::Stmt JoinCudaSplits(const ir::Buffer& results, const ir::Buffer& rows, const ir::Buffer& out,
                        const AttentionConfig& config, const CudaAttentionTile& tile, bool has_bias,
                        const PrimExpr& condition);

// The statements, bound to threads.
std::vector<ir::Stmt> CudaAttention(const std::vector<ir::Buffer>& inputs, const ir::Buffer& out,
                                    const AttentionConfig& config);

}  // namespace ingot::op::topi
