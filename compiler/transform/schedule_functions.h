// The default schedule as a pass: with the built-in rules that the options name, or with rules of the caller.
#pragma once

#include <vector>

#include "compiler/schedule/default_schedule.h"
#include "compiler/transform/pass.h"

namespace ingot::transform {

// Returns a pass "default_schedule" that tries these rules, in this order.
Pass DefaultScheduleWith(std::vector<schedule::ScheduleRule> rules);

}  // namespace ingot::transform
