// Kernels of this process for tests of the VM: found by name instead of in an image.
#pragma once

#include <string>

#include "runtime/kernel_abi.h"

namespace ingot::test {

//   add16(a, b, c)         c := a + b, 16 floats
//   add_n(a, b, c; n)      c := a + b, n floats
//   scale_n(a, b; n, s)    b := a * s, n floats; s is a float32's bits
//   fail_assert()          fails its first assertion
//   spin()                 runs until it is cancelled
IngotKernelFn FindTestKernel(const std::string& name);

}  // namespace ingot::test
