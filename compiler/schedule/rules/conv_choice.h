// What the rule for convolutions chooses: the register tile, the strips that stay in the caches, and the parts that are
// tasks, each by a cost. In: extents, a ConvWindow and the target. Out: numbers that the nest is cut by.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/schedule/rules/conv_window.h"
#include "compiler/target/target.h"

namespace ingot::schedule {

struct TileChoice {
  int64_t columns = 1, blocks = 1;
  int64_t rows = 1;  // more than one only where a tile has all columns of a row
};

// Cycles of a tile per step of the reduction, where each vector of weights takes so many to be loaded.
double CyclesOfTile(int64_t columns, const TileChoice& tile, int64_t vectors, double cycles_per_weight,
                    const Target& target);
// The columns of the tile that a symbolic row has after one of so many: half, rounded up. A rest of three columns is
// one tile: each tile reads all weights, and narrow ones have too few multiply-adds to hide their latency.
int64_t NarrowerTile(int64_t columns);
// The tile for rows of this width, of which a strip has `rows`; nothing for a symbolic number. (Images whose width is
// symbolic give a likely one.)
TileChoice ChooseTile(std::optional<int64_t> width, std::optional<int64_t> rows, int64_t blocks_of_o, int64_t vectors,
                      const ConvWindow& window, const Target& target);

// A strip: so many rows (columns, where there is one row) of one plane, or all rows of so many planes.
struct Strip {
  int64_t rows = 1, planes = 1;
};

// Strips of `rows` rows in each of `planes` planes, so that the least traffic passes through the caches.
Strip ChooseStrip(int64_t rows, int64_t planes, int64_t blocks, const ConvWindow& window, const Target& target);
// The rows of a strip where blocks of o share nothing: a strip of one block and plane fits the first-level cache.
int64_t ChooseShortStrip(int64_t rows, const ConvWindow& window, const Target& target);

// The number of parts into which the blocks of o are divided, so that there are enough tasks.
int64_t ChooseParts(int64_t blocks, int64_t tasks, int64_t cost);

// All divisors of n, ascending.
std::vector<int64_t> Divisors(int64_t n);

}  // namespace ingot::schedule
