// The worker's side of a runner: measures candidates that come through a descriptor, each in a process of its own,
// whose crash, hang and hunger for memory are outcomes.
#pragma once

#include "compiler/tune/measure/candidate.h"
#include "runtime/status.h"

namespace ingot::tune {

// Serves until the input ends, which is success; a broken frame is an error. No candidate outlives it. To be called in
// a process of one thread.
Status RunWorker(int input, int output);

}  // namespace ingot::tune
