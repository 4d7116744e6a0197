// The default schedule as a pass: with the built-in rules that the options name, or with rules of the caller's own.
#pragma once

#include <vector>

#include "compiler/schedule/default_schedule.h"
#include "compiler/transform/pass.h"

namespace ingot::transform {

// A pass "default_schedule" that asks these rules, in this order.
Pass DefaultScheduleWith(std::vector<schedule::ScheduleRule> rules);

}  // namespace ingot::transform
