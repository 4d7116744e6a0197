// What a stage says about itself to schedules and lowering, as attributes that become annotations of its block.
#pragma once

namespace ingot::te {

// A sum of if_then_else(condition, x, 0), started at 0: where the condition fails nothing is added, and nothing is done.
inline constexpr const char* kSkipsZeros = "skips_zeros";

// A stage that costs little, and that a reduction reads many times: it is computed once, not by each of its readers.
inline constexpr const char* kIsKept = "is_kept";

}  // namespace ingot::te
