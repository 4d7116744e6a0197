// Blocks that the rule for convolutions takes: images and volumes with channels in blocks, by the dimensions of their
// result, and what is known about the loads of their reduction. In: a block's site. Out: extents and bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/schedule/rules/analysis.h"

namespace ingot::schedule {

// Dimensions of the result; a volume's depth stands before the channels. Images that are one column wide count as one
// row: where kX is 1, kY and kX change places.
enum ConvDimension : int { kN, kO, kY, kX, kV, kD, kConvRank };
inline constexpr size_t kImageRank = 5, kVolumeRank = 6;  // of a buffer of the result

bool IsVolume(const BlockSite& site);
// The iteration variable along a dimension; -1 where there is none.
int IterAlong(const BlockSite& site, int dimension);
// The number of iterations along a dimension: 1 where there is none, nothing where it is a symbol.
std::optional<int64_t> ConstantOf(const BlockSite& site, int dimension);
int64_t ExtentOf(const BlockSite& site, int dimension);  // a symbol counts as 1
// A symbolic height or width counts as kLikelyExtent where tiles, strips and costs are chosen; so does each of the two
// in the one row of a flattened image. A depth counts as kLikelyDepth.
int64_t LikelyExtent(const BlockSite& site, int dimension);

// What AnalyzeWindow finds about the loads of the reduction.
struct ConvWindow {
  bool broadcasts = false;  // an input that moves with x is the same for all of v, and for all of o in a group
  int64_t groups = 1;       // of o
  int64_t input_bytes = 0;  // of the inputs that move with x, per image and group; per block of o where they follow v
  bool is_of_volume = false;
  int64_t planes = 1;  // of the result, for which these inputs are
  int64_t taps_of_depth = 1;
  int64_t weight_bytes = 0;  // of the inputs that do not move with x, per group
};
ConvWindow AnalyzeWindow(const BlockSite& site);

}  // namespace ingot::schedule
