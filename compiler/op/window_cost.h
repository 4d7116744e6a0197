// What convolutions and pools cost, by layout, so that the ways to compute them and conversions between layouts can be
// compared. The unit is a multiplication or an addition at the rate of a dense convolution over channels in blocks (112
// per nanosecond on one core with AVX-512). The numbers are fitted to single kernels of 7 x 7 to 224 x 224 results.
#pragma once

#include "compiler/ir/expr.h"

namespace ingot::op {

// The sizes of a convolution's or a pool's call.
struct WindowExtents {
  double results = 0;  // elements
  double inputs = 0;   // elements of the data
  double taps = 0;     // multiply-adds, or comparisons, per element of the result
  double row = 1;      // elements that stand side by side in memory: the result's last spatial axis, or the whole image
  bool is_strided = false;
};

// Convolutions that broadcast weights or data: channels are summed.
double PlainConvCost(const WindowExtents& window);
double BlockedConvCost(const WindowExtents& window);
double BlockedFirstConvCost(const WindowExtents& window);  // from plain data of few channels
// Windows in which no channels are summed: depthwise convolutions and pools.
double PlainChannelwiseCost(const WindowExtents& window);
double BlockedChannelwiseCost(const WindowExtents& window);

// Winograd's transformations of an image's elements, before and after the products.
double WinogradTransformCost(double elements);

// A conversion of an image between plain and blocks.
double LayoutConversionCost(double elements);

}  // namespace ingot::op
