// The exit codes of all tools and of packed programs.
#pragma once

#include "runtime/status.h"

namespace ingot::apps {

enum ExitCode : int {
  kExitOk = 0,
  kExitDiffers = 1,  // a comparison or self-test failed
  kExitUsage = 2,
  kExitBadInput = 3,
  kExitCorrupt = 4,  // or unsupported
  kExitNotTrusted = 5,
  kExitOutOfMemory = 6,
  kExitDeadline = 7,
  kExitUnsupportedModel = 8,
  kExitInterrupted = 130,
};
// The exit code with which a tool reports a failure of this code.
int ExitCodeOf(StatusCode code);

}  // namespace ingot::apps
