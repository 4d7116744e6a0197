// A program for the device cuda whose results are easily told: kernels of two launches with a workspace, a constant and a
// failure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/status.h"
#include "vm/program/program.h"

namespace ingot::vm {

// A call of the kernel computes (x[i] + kBy) * Factors()[i]; a negative one is a failure.
inline constexpr int64_t kBy = 7;
std::vector<int64_t> Factors();

// Where the caller's tensors are, of "main", which takes and gives int64[n]: on the host, and the kernel is called twice;
// on the device, and it is called once. kLoop has besides "loop", which calls it any number of times without waiting.
enum class Form { kOnHost, kOnDevice, kLoop };

// For an architecture such as "sm_80", with a device of this kind.
Result<Program> MakeProgram(const std::string& architecture, const std::string& kind = "cuda",
                            Form form = Form::kOnHost);

}  // namespace ingot::vm
