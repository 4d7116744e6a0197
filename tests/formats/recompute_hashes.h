// Makes a container's hashes true again after its bytes were changed, so that a test reaches what lies behind them.
#pragma once

#include <cstddef>
#include <span>

namespace ingot::test {

// Recomputes the hashes of all entries that can be read; does nothing when the header is incomplete.
void RecomputeContainerHashes(std::span<std::byte> container);

}  // namespace ingot::test
