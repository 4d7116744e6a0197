// The exit code of each status code.
#include "apps/common/exit_code.h"

namespace ingot::apps {

int ExitCodeOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return kExitOk;
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
      return kExitUsage;
    case StatusCode::kBadInput:
    case StatusCode::kIo:
      return kExitBadInput;
    case StatusCode::kCorrupt:
    case StatusCode::kUnsupportedFile:
      return kExitCorrupt;
    case StatusCode::kNotTrusted:
      return kExitNotTrusted;
    case StatusCode::kOutOfMemory:
      return kExitOutOfMemory;
    case StatusCode::kDeadlineExceeded:
      return kExitDeadline;
    case StatusCode::kUnsupportedModel:
      return kExitUnsupportedModel;
    case StatusCode::kCancelled:
      return kExitInterrupted;
    case StatusCode::kFailed:
      return kExitDiffers;
  }
  return kExitDiffers;
}

}  // namespace ingot::apps
