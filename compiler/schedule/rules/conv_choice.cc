#include "compiler/schedule/rules/conv_choice.h"

#include <algorithm>

namespace ingot::schedule {

// ---- Register tiles
double CyclesOfTile(int64_t columns, const TileChoice& tile, int64_t vectors, double cycles_per_weight,
                    const Target& target) {
  constexpr double kLoadsPerCycle = 2, kLatency = 4;
  const auto accumulators = static_cast<double>(columns * tile.rows * tile.blocks * vectors);
  const auto loads = static_cast<double>(columns * tile.rows + tile.blocks * vectors);
  // Weights come from beyond the first-level cache and are loaded once per tile.
  const double weights = static_cast<double>(tile.blocks * vectors) * cycles_per_weight;
  return std::max({accumulators / target.fma_ports, loads / kLoadsPerCycle, kLatency}) + weights;
}

int64_t NarrowerTile(int64_t columns) {
  constexpr int64_t kFewColumns = 4;
  return columns > kFewColumns ? (columns + 1) / 2 : columns - 1;
}

namespace {

// Cycles of a row of `width` columns per block of o and step of the reduction: in tiles of nearly equal width.
double CyclesOfRow(int64_t width, const TileChoice& tile, int64_t vectors, double cycles_per_weight,
                   const Target& target) {
  const int64_t tiles = (width + tile.columns - 1) / tile.columns;
  double cycles = 0;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t columns = width / tiles + (i < width % tiles ? 1 : 0);
    cycles += CyclesOfTile(columns, tile, vectors, cycles_per_weight, target);
  }
  return cycles / static_cast<double>(tile.blocks * tile.rows);
}

// The same of a volume's symbolic width, over the widths that it may have: in full tiles, and ever narrower ones
// (CutRow). The planes of a volume are smaller than images.
double CyclesOfSymbolicRow(const TileChoice& tile, int64_t vectors, double cycles_per_weight, const Target& target) {
  constexpr int64_t kWidest = kLikelyExtent / 2, kNarrowest = kWidest / 8;
  double cycles = 0;
  for (int64_t width = kWidest; width >= kNarrowest; width /= 2) {
    double of_row = 0;
    for (int64_t rest = width, columns = tile.columns; rest > 0; columns = NarrowerTile(columns)) {
      const auto tiles = static_cast<double>(rest / columns);
      of_row += tiles * CyclesOfTile(columns, tile, vectors, cycles_per_weight, target);
      rest %= columns;
    }
    cycles += of_row / static_cast<double>(width * tile.blocks);
  }
  return cycles;
}

}  // namespace

TileChoice ChooseTile(std::optional<int64_t> width, std::optional<int64_t> rows, int64_t blocks_of_o, int64_t vectors,
                      const ConvWindow& window, const Target& target) {
  // A volume's weights that leave the second-level cache are read from beyond it once, or for each tile where those of a
  // tile do. (Cores of one feature level have caches that differ by a factor of two.) An image's count as if they stayed
  // there: otherwise ResNet-18 of free sizes took 1.3 times as long.
  constexpr double kFromSecondLevel = 0.25, kOnceFromBeyond = 1, kFromBeyond = 4;
  const auto cycles_per_weight = [&](int64_t blocks) {
    if (!window.is_of_volume || window.weight_bytes <= target.l2_bytes) return kFromSecondLevel;
    return window.weight_bytes / blocks_of_o * blocks <= 2 * target.l2_bytes ? kOnceFromBeyond : kFromBeyond;
  };
  const int64_t widest = std::max<int64_t>(width.value_or(target.num_vector_registers), 1);
  TileChoice best;
  double best_cycles = 0;
  for (int64_t blocks = 1; blocks <= blocks_of_o && blocks * vectors + 2 <= target.num_vector_registers; ++blocks) {
    if (blocks_of_o % blocks != 0 || (blocks > 1 && !window.broadcasts)) continue;
    const int64_t most = (target.num_vector_registers - blocks * vectors - 1) / (blocks * vectors);
    if (most < 1) continue;
    const int64_t most_rows = width && rows && window.broadcasts && most >= widest ? most / widest : 1;
    for (int64_t at_once = 1; at_once <= most_rows; ++at_once) {
      if (at_once > 1 && *rows % at_once != 0) continue;
      const TileChoice tile{std::min(most, widest), blocks, at_once};
      const double of_weight = cycles_per_weight(blocks);
      const double cycles = width ? CyclesOfRow(*width, tile, vectors, of_weight, target)
                                  : CyclesOfSymbolicRow(tile, vectors, of_weight, target);
      if (blocks * at_once > 1 && cycles >= best_cycles) continue;
      best = tile;
      best_cycles = cycles;
    }
  }
  return best;
}

// ---- Strips
std::vector<int64_t> Divisors(int64_t n) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= n; ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return divisors;
}

namespace {

// The planes of the input, as a part of all of them, that so many planes of the result read.
double PartOfPlanes(const ConvWindow& window, int64_t planes) {
  const auto all = static_cast<double>(window.planes);
  return std::min(1.0, static_cast<double>(planes + window.taps_of_depth - 1) / all);
}

}  // namespace

Strip ChooseStrip(int64_t rows, int64_t planes, int64_t blocks, const ConvWindow& window, const Target& target) {
  constexpr int64_t kMostRows = 1 << 16;  // with more rows no divisors are searched
  if (rows > kMostRows || rows < 1 || planes > kMostRows || planes < 1) return {std::max<int64_t>(rows, 1), 1};
  Strip best;
  double best_traffic = 0;
  const auto consider = [&](Strip strip) {
    const int64_t strips = rows / strip.rows * (planes / strip.planes);
    const bool weights_stay = window.weight_bytes <= target.l2_bytes / 4;
    const double input = static_cast<double>(window.input_bytes) * PartOfPlanes(window, strip.planes);
    const bool input_stays = input / static_cast<double>(rows / strip.rows) <= static_cast<double>(target.l2_bytes / 2);
    const double traffic =
        static_cast<double>(window.weight_bytes) * static_cast<double>(weights_stay ? 1 : strips) +
        input * static_cast<double>(planes / strip.planes) * static_cast<double>(input_stays ? 1 : blocks);
    if (strip.rows * strip.planes > 1 && traffic > best_traffic) return;
    best = strip;
    best_traffic = traffic;
  };
  for (const int64_t strip : Divisors(rows)) consider({strip, 1});
  for (const int64_t strip : Divisors(planes)) {
    if (strip > 1) consider({rows, strip});
  }
  return best;
}

int64_t ChooseShortStrip(int64_t rows, const ConvWindow& window, const Target& target) {
  constexpr int64_t kMostRows = 1 << 16;
  if (rows > kMostRows || rows < 1) return std::max<int64_t>(rows, 1);
  const auto bytes = static_cast<int64_t>(static_cast<double>(window.input_bytes) * PartOfPlanes(window, 1));
  int64_t best = 1;
  for (int64_t strip : Divisors(rows)) {
    if (bytes / (rows / strip) <= target.l1_bytes / 2) best = strip;
  }
  return best;
}

int64_t ChooseParts(int64_t blocks, int64_t tasks, int64_t cost) {
  constexpr int64_t kEnoughTasks = 16;
  const int64_t wanted = std::min(kEnoughTasks, cost / kMinTaskCost);
  if (cost < kMinParallelCost || tasks >= wanted) return 1;
  for (int64_t parts : Divisors(blocks)) {
    if (parts * tasks >= wanted) return parts;
  }
  return blocks;
}

}  // namespace ingot::schedule
