// Durations on command lines.
#pragma once

#include <string>

#include "runtime/status.h"

namespace ingot::apps {

// "50us", "200ms", "3s", "30m" or "2h", in seconds.
Result<double> ParseDuration(const std::string& text);

}  // namespace ingot::apps
