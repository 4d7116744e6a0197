// CallEnvironment: what the parts of an interpreter use of its context. The context owns all of it and outlives them.
#pragma once

#include <vector>

#include "runtime/tensor.h"
#include "vm/run/call_failures.h"
#include "vm/run/call_limits.h"
#include "vm/run/devices.h"
#include "vm/run/executable.h"
#include "vm/run/externals.h"

namespace ingot::vm {

struct CallEnvironment {
  const Executable& executable;
  const Devices& devices;
  const Externals& externals;
  const std::vector<Tensor>& states;
  CallLimits& limits;
  FailurePlace& failure_place;  // of the last invocation
};

}  // namespace ingot::vm
