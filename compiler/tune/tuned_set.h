// The schedules of a model's kernels that are not the default ones: choices by task.
#pragma once

#include <map>
#include <string>

#include "compiler/schedule/choices.h"

namespace ingot::tune {

using TunedSet = std::map<std::string, schedule::Chosen>;  // by TaskKey

}  // namespace ingot::tune
