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

// The elements of a constant where a function reads it. Null on a device whose code is not loaded, as when constants are
// prepared: copies from there fail.
inline std::byte* ConstantOn(const Executable& executable, const Devices& devices, uint8_t device, uint32_t constant) {
  if (Devices::kHaveCode && device != 0) {
    const DeviceCode* const code = devices.code();
    return code == nullptr ? nullptr : code->ConstantData(device, constant);
  }
  return const_cast<std::byte*>(executable.ConstantData(constant));
}

}  // namespace ingot::vm
