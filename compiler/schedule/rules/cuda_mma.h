// What a block that sums products of floats is for the rules that give it to matrix instructions: a product of
// matrices, of which each factor has k or its own side as its last axis.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "compiler/schedule/match.h"
#include "compiler/schedule/schedule.h"

namespace ingot::schedule {

// Whether there are matrix instructions for factors of it.
bool IsMmaDtype(const DataType& dtype);

// The positions of the iteration variables of rows (of the first factor), columns (of the second one) and the sum, and
// the factors' positions among the block's reads.
struct MmaProduct {
  int m = -1, n = -1, k = -1;
  int64_t a_read = -1, b_read = -1;
  DataType dtype = DataType::Float(32);  // of the factors
};

// The dimension of a factor whose index is the number of a panel, the quotient of the iteration variable, and the width of
// these panels; a width of 0: the factor lies in none.
struct MmaPanels {
  size_t dimension = 0;
  int64_t width = 0;
};
MmaPanels MmaPanelsOf(const ir::BufferRegion& factor, const ir::PrimVar& side);

// In float32, of float16, bfloat16 or float32. A factor may lie in panels. cuda_mma.cc
Match<MmaProduct> FindMmaProduct(const BlockSite& site);

// Pads rows, columns and k to multiples of these (pad_einsum); returns the blocks that copy factors and results.
std::set<BlockName> PadMmaProduct(Schedule& schedule, BlockRV product, const MmaProduct& axes,
                                  const std::array<int64_t, 3>& multiples);

// The loops around a block below `around` by the iteration variables of which they are (-1: none), and all others.
struct MmaLoops {
  std::vector<LoopRV> batch;
  LoopRV m, n, k;
};
MmaLoops MmaLoopsOf(Schedule& schedule, BlockRV block, LoopRV around, int m, int n, int k = -1);

// The loops over the tiles of a product, and those over the rows and columns of one, for each of which the product is
// computed.
struct MmaTiles {
  LoopRV rows, columns, own_rows, own_columns;
};
MmaTiles CutMmaTiles(Schedule& schedule, BlockRV product, const MmaLoops& loops, int64_t rows, int64_t columns);

// Gives so many parts of the sum to different blocks. Schedules the sum of the parts with the consumers, of which `out` is
// the last one, a thread for each element, and returns the block that writes the parts. `reduction` and `product` are of
// a part then, the dimensions of whose result have one more before them.
BlockRV SplitMmaSum(Schedule& schedule, BlockRV& reduction, MmaProduct& product, int64_t parts, BlockRV out,
                    std::vector<BlockName>& handled);

// Of the loops of a copy, the last of which is over columns that come from panels of this width: panel by panel, in the
// order of memory.
std::vector<LoopRV> InPanels(Schedule& schedule, std::vector<LoopRV> loops, int64_t width);

// The summands of a tile: a row of 128 bytes, which are a line of memory and of shared memory; or half of it, or two.
inline constexpr int64_t kMmaDepthBytes = 128;
// Tiles by cuda_mma or, by groups of four warps, by cuda_wgmma. `depth` is in bytes.
struct MmaForm {
  bool by_groups = false;
  int64_t rows = 64, columns = 64, depth = kMmaDepthBytes, stages = 4;
  int64_t parts = 1;  // of the sum, which different blocks have
  int64_t panel = 0;  // the width of the panels that columns come from; 0: none
  bool operator==(const MmaForm&) const = default;
};
// Of a product: what its tiles depend on.
struct MmaSizes {
  int64_t batch = 1, rows = 1, columns = 1, summands = 1;
  int64_t element_bytes = 2;
  bool allows_groups = false, allows_parts = true;
  bool has_whole_tiles = false;  // of columns, where single warps multiply them
};
// cuda_mma_forms.cc. What a product is likely to take on a GPU, to compare forms; the form that takes the least.
double MmaMicroseconds(const MmaSizes& sizes, const MmaForm& form);
MmaForm ChooseMmaForm(const MmaSizes& sizes);
// Forms for all numbers of rows, by how many they are for at most; nothing: the last one, for all others.
struct MmaVersion {
  MmaForm form;
  std::optional<int64_t> most_rows;
};
std::vector<MmaVersion> ChooseMmaVersions(MmaSizes sizes);

// Schedules a product of matrices that fuse_einsum made of whole tiles, with its copies of factors, in tiles of the form.
// The last two loops around `out`, which writes the result, are those of rows and columns.
void BuildMmaTiles(Schedule& schedule, BlockRV product, BlockRV out, const MmaForm& form,
                   std::vector<BlockName>& handled);
void BuildWgmmaTiles(Schedule& schedule, BlockRV product, BlockRV out, const MmaForm& form,
                     std::vector<BlockName>& handled);

// What a thread does by itself: its loops are unrolled, the innermost one vectorized if that is asked for.
void UnrollOwnLoops(Schedule& schedule, const std::vector<LoopRV>& own, bool vectorizes);

}  // namespace ingot::schedule
