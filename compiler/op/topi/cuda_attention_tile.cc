// Which tile a block of threads takes.
#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/op/topi/cuda_attention.h"
#include "compiler/target/cuda.h"

namespace ingot::op::topi {

namespace {

constexpr int64_t kChunkBytes = 16;
// Accumulators that a thread has of results, at most.
constexpr int64_t kMostResults = 64, kMostWideResults = 128;
// Blocks of threads that fill a GPU.
constexpr int64_t kBlocksThatFill = 128;
// Splits of a tile's keys, at most, and the tiles of keys that one has at least.
constexpr int64_t kMostSplits = 16, kLeastTilesOfSplit = 2;
// Threads of squares; of matrix instructions: rows and columns of one, lanes of a row.
constexpr int64_t kSquareThreads = 128, kSquareColumns = 8;
constexpr int64_t kMatrixRows = 16, kMatrixNeighbours = 2, kMostWarps = 4;

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

int64_t SharedBytes(const CudaAttentionTile& tile, DataType dtype) {
  const int64_t elements = tile.rows * (tile.RowLength(tile.depth, dtype) + tile.ExponentialsLength()) +
                           tile.keys * (tile.RowLength(tile.depth, dtype) + tile.RowLength(tile.value_depth, dtype));
  return elements * dtype.bits / 8 + tile.rows * tile.row_threads * 4;
}

}  // namespace

std::optional<CudaAttentionTile> ChooseCudaAttentionTile(const AttentionConfig& config, DataType dtype,
                                                         int64_t likely_queries) {
  const bool is_narrow = dtype == DataType::Float(16) || dtype == DataType::Bfloat16();
  if (!is_narrow && dtype != DataType::Float(32)) return std::nullopt;
  const int64_t depth = *ir::AsConstInt(config.depth), value_depth = *ir::AsConstInt(config.value_depth);
  CudaAttentionTile tile;
  tile.multiplies_by_warps = is_narrow;
  tile.row_threads = is_narrow ? kCudaMatrixLanes : kSquareColumns;
  tile.key_lanes = is_narrow ? kMatrixNeighbours : 1;
  tile.value_lanes = is_narrow ? kMatrixNeighbours : kCudaSquareChunk;
  tile.depth = RoundUp(depth, is_narrow ? kMatrixRows : kCudaSquareChunk);
  tile.value_depth = RoundUp(value_depth, tile.row_threads * tile.value_lanes);
  tile.keys = std::max(tile.depth, tile.value_depth) > 128 && !is_narrow ? 16 : 32;
  if (is_narrow && tile.value_depth <= 64) tile.keys *= 2;
  // The largest tile of queries of which there are enough to fill a GPU, down to one that they fill.
  const auto queries = ir::AsConstInt(config.num_queries);
  const auto batch = ir::AsConstInt(config.batch), heads = ir::AsConstInt(config.num_heads);
  const auto set_size = [&](int64_t warps, int64_t own_rows) {
    tile.threads = warps * kCudaWarpThreads;
    tile.own_rows = own_rows;
    tile.rows = own_rows * tile.threads / tile.row_threads;
  };
  std::vector<std::pair<int64_t, int64_t>> sizes;  // warps and own rows, the largest first
  const int64_t of_row = tile.value_depth / tile.row_threads;
  if (is_narrow) {
    for (const int64_t rows : {4, 2}) {
      if (rows * of_row <= kMostWideResults) sizes.emplace_back(kMostWarps, rows);
    }
    if (sizes.empty()) {
      if (2 * of_row > kMostWideResults) return std::nullopt;
      sizes.emplace_back(kMostWarps, 2);
    }
    sizes.insert(sizes.end(), {{2, 2}, {1, 2}});
  } else {
    for (const int64_t rows : {8, 4, 2, 1}) {
      if (rows * of_row <= kMostResults) sizes.emplace_back(kSquareThreads / kCudaWarpThreads, rows);
    }
    if (sizes.empty()) return std::nullopt;
  }
  int64_t blocks = 1;
  for (const auto& [warps, own_rows] : sizes) {
    set_size(warps, own_rows);
    const int64_t tiles = (queries.value_or(likely_queries) + tile.rows - 1) / tile.rows;
    blocks = tiles * batch.value_or(1) * heads.value_or(1);
    if (blocks >= kBlocksThatFill) break;
  }
  // Where they fill no GPU, several share the keys; of an unknown number of queries only if it is likely to be small.
  if (blocks < kBlocksThatFill && (queries || likely_queries <= tile.rows)) {
    const auto keys = ir::AsConstInt(config.num_keys);
    const int64_t tiles_of_keys = keys ? (*keys + tile.keys - 1) / tile.keys : kMostSplits * kLeastTilesOfSplit;
    tile.splits = std::min(2 * kBlocksThatFill / blocks, tiles_of_keys / kLeastTilesOfSplit);
    tile.splits = std::clamp<int64_t>(tile.splits, 1, kMostSplits);
  }
  return SharedBytes(tile, dtype) <= kCudaMostSharedBytes ? std::optional(tile) : std::nullopt;
}

}  // namespace ingot::op::topi
