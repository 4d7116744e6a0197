// Measures a candidate in this process, by the C API, as in any program that embeds the virtual machine. A crash, a
// hang or a lack of memory is the process's: worker.h runs this in a process of its own.
#pragma once

#include "compiler/tune/measure/candidate.h"

namespace ingot::tune {

// Loads the candidate, calls it once, compares, and times it. Never kCrashed, kHung or kLostRunner.
Measurement EvaluateCandidate(const Candidate& candidate);

// The largest cache of this machine in bytes; 0 where the system does not tell.
int64_t LastLevelCacheBytes();

}  // namespace ingot::tune
