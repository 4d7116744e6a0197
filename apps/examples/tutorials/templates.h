// Two templates as one writes them for AutoTVM: a function, and a schedule of it with knobs, which is naive loops where
// all of them are at their defaults.
#pragma once

#include <cstdint>

#include "compiler/tune/template.h"

namespace tutorial {

inline constexpr int64_t kChannels = 64, kWindow = 3;

// "matmul": size x size matrices.
ingot::tune::Template ProductTemplate(int64_t size);
// "conv2d": kChannels of size x size to as many, windows of kWindow.
ingot::tune::Template ConvolutionTemplate(int64_t size);

}  // namespace tutorial
