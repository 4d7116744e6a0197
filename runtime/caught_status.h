// What an exception is as a Status: for the places where code that may throw, the embedder's and libraries', is called.
#pragma once

#include "runtime/status.h"

namespace ingot {

// The exception that is being handled, as a failure: running out of memory, or what it says. The end of a cancelled
// thread, which is none, is thrown on.
Status CaughtStatus();

}  // namespace ingot
