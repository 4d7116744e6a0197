// One formula per way, in the order of the header.
#include "compiler/op/window_cost.h"

#include <cmath>

namespace ingot::op {
namespace {

constexpr double kLanes = 16;
constexpr double kMultiplyAdd = 2;

// The elements of the vectors that cover a row, and of `more`, per element of the row, which may be empty.
double PerElement(double row, double more) { return row > 0 ? (std::ceil(row / kLanes) * kLanes + more) / row : 1; }

// Loading each element of the data once.
double ReadCost(const WindowExtents& window) { return 6 * window.inputs; }

}  // namespace

// Vectors lie along rows; a stride makes their loads gather.
double PlainConvCost(const WindowExtents& window) {
  const double rate = window.is_strided ? 1.25 : 1.05;
  return kMultiplyAdd * rate * window.results * window.taps * PerElement(window.row, 0);
}

double BlockedConvCost(const WindowExtents& window) { return kMultiplyAdd * window.results * window.taps; }

double BlockedFirstConvCost(const WindowExtents& window) {
  return window.results * (kMultiplyAdd * 1.05 * window.taps + 8);
}

// Vectors lie along a row, each row has a start and an end, and a stride doubles the loads.
double PlainChannelwiseCost(const WindowExtents& window) {
  constexpr double kPerRow = 6, kPerTap = 4, kStrided = 1.8;
  const double waste = PerElement(window.row, kPerRow) * (window.is_strided ? kStrided : 1);
  return kPerTap * waste * window.results * window.taps + ReadCost(window);
}

double BlockedChannelwiseCost(const WindowExtents& window) {
  return 3 * window.results * window.taps + ReadCost(window);
}

double WinogradTransformCost(double elements) { return 32 * elements; }

double LayoutConversionCost(double elements) {
  constexpr double kPerCall = 64 << 10;
  return kPerCall + 10 * elements;
}

}  // namespace ingot::op
