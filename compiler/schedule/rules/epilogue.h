// The element-wise consumers of a reduction's result, which run in its write-back.
#pragma once

#include <vector>

#include "compiler/schedule/schedule.h"

namespace ingot::schedule {

// The consumers of the result that can run in the write-back: injective blocks that read it at the place they write,
// one after the other up to the last one. Inlines all but the last one, and returns that; void where there is none.
// Their names are added to handled.
BlockRV InlineEpilogue(Schedule& schedule, BlockRV reduction, std::vector<BlockName>& handled);

// The block that writes the result back, for a result in scope local: the last consumer, or a plain copy.
BlockRV WriteBack(Schedule& schedule, BlockRV reduction, std::vector<BlockName>& handled);

}  // namespace ingot::schedule
