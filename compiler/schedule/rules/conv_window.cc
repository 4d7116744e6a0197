#include "compiler/schedule/rules/conv_window.h"

#include <algorithm>
#include <vector>

namespace ingot::schedule {

using namespace ir;  // NOLINT

bool IsVolume(const BlockSite& site) { return StoreOf(site).indices.size() == kVolumeRank; }

int IterAlong(const BlockSite& site, int dimension) {
  const bool is_volume = IsVolume(site);
  if (dimension == kD) return is_volume ? IterOfDimension(site, 1) : -1;
  const auto iter_of = [&](int d) { return IterOfDimension(site, d == kN ? 0 : d + (is_volume ? 1 : 0)); };
  const int x = iter_of(kX);
  const bool is_column = x >= 0 && ConstantExtent(*site.block().iter_vars[x]) == 1;
  if (is_column && (dimension == kY || dimension == kX)) dimension = dimension == kY ? kX : kY;
  return iter_of(dimension);
}

std::optional<int64_t> ConstantOf(const BlockSite& site, int dimension) {
  const int iter = IterAlong(site, dimension);
  return iter < 0 ? std::optional<int64_t>(1) : ConstantExtent(*site.block().iter_vars[iter]);
}

int64_t ExtentOf(const BlockSite& site, int dimension) { return ConstantOf(site, dimension).value_or(1); }

int64_t LikelyExtent(const BlockSite& site, int dimension) {
  if (dimension == kD) return ConstantOf(site, dimension).value_or(kLikelyDepth);
  const bool is_flat = dimension == kX && ConstantOf(site, kY) == 1;
  return ConstantOf(site, dimension).value_or(is_flat ? kLikelyExtent * kLikelyExtent : kLikelyExtent);
}

ConvWindow AnalyzeWindow(const BlockSite& site) {
  ConvWindow window;
  const int x = IterAlong(site, kX), o = IterAlong(site, kO), v = IterAlong(site, kV);
  std::vector<const BufferNode*> seen;  // a pair of neighbours is two loads of one buffer
  for (const LoadUse& load : LoadsOf(site)) {
    if (std::ranges::find(seen, load.load->buffer.get()) != seen.end()) continue;
    seen.push_back(load.load->buffer.get());
    int64_t bytes = load.load->dtype.bits / 8;
    for (const PrimExpr& extent : load.load->buffer->shape) bytes *= AsConstInt(extent).value_or(1);
    if (!load.uses[x]) {
      window.weight_bytes += bytes;
      continue;
    }
    for (const int dimension : {kY, kX, kD}) {
      if (!ConstantOf(site, dimension)) bytes *= LikelyExtent(site, dimension);
    }
    window.broadcasts |= !load.uses[v];
    if (!load.uses[v] && load.uses[o]) {  // this dimension holds every group's channels (blocks)
      const auto channels = AsConstInt(load.load->buffer->shape[IsVolume(site) ? 2 : 1]);
      const int64_t own = ConstantExtent(*site.block().iter_vars[ReduceIters(site)[0]]).value_or(0);
      if (channels && own > 0 && *channels % own == 0) window.groups = *channels / own;
    }
    const int64_t images = std::max<int64_t>(ExtentOf(site, kN), 1);
    window.input_bytes += bytes / images / (load.uses[v] ? std::max<int64_t>(ExtentOf(site, kO), 1) : 1);
  }
  if (ExtentOf(site, kO) % window.groups != 0) window.groups = 1;
  window.input_bytes /= window.groups;
  window.weight_bytes /= window.groups;
  if (IsVolume(site)) {  // the window's depth is its first axis, behind the channels where these are summed
    const std::vector<int> reduce = ReduceIters(site);
    window.is_of_volume = true;
    window.planes = std::max<int64_t>(LikelyExtent(site, kD), 1);
    window.taps_of_depth = ConstantExtent(*site.block().iter_vars[reduce[window.broadcasts ? 1 : 0]]).value_or(1);
  }
  return window;
}

}  // namespace ingot::schedule
