// The element-wise consumers of a reduction's result, which run in its write-back.
#pragma once

#include <vector>

#include "compiler/schedule/schedule.h"

namespace ingot::schedule {

// Finds the chain of consumers of the result that can run in its write-back: injective blocks that read the result at
// the place they write. Inlines all but the last one and returns the last one; void where there is none. Adds their
// names to handled.
BlockRV InlineEpilogue(Schedule& schedule, BlockRV reduction, std::vector<BlockName>& handled);

// Puts the result into scope local and returns the block that writes it back: the last of these consumers, or a copy.
BlockRV WriteBack(Schedule& schedule, BlockRV reduction, std::vector<BlockName>& handled);

}  // namespace ingot::schedule
