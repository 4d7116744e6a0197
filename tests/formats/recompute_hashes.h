// Makes a container's hashes true again after its bytes were changed, so that a test reaches what lies behind them.
#pragma once

#include <cstddef>
#include <span>

namespace ingot::test {

// As far as the table can be read; without a whole header nothing happens.
void RecomputeContainerHashes(std::span<std::byte> container);

}  // namespace ingot::test
