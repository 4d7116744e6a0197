// Kernels of this process for tests of the VM: found by name instead of in an image.
#pragma once

#include <string>

#include "runtime/kernel_abi.h"

namespace ingot::test {

//   add16(a, b, c)         c := a + b, 16 floats
//   add_n(a, b, c; n)      c := a + b, n floats
//   scale_n(a, b; n, s)    b := a * s, n floats; s is a float32's bits
//   row_sums(a, b; n, m)   b[i] := sum over j of a[i, j], n x m floats, one task a row
//   fail_assert()          fails its first assertion
//   fail_task()            of 8 tasks those from number 3 on fail with code 77
//   spin()                 runs until it is cancelled
IngotKernelFn FindTestKernel(const std::string& name);

}  // namespace ingot::test
