// Tensor expressions of convolution and pooling over channels in blocks: data [n, channel blocks, h, w, block] of images
// and [n, d, channel blocks, h, w, block] of volumes, each of whose planes is an image; or [n, channels, h, w] and
// [n, channels, d, h, w] where each channel is used alone. The last axis of every result is the block, so that schedules
// find their vectors there. Padding is a stage of its own. Shapes of results are given.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/op/topi/elementwise.h"

namespace ingot::op::topi {

// Two or three spatial axes; padding is what lies before each of them, then behind each.
struct BlockedWindow {
  std::vector<int64_t> strides, padding, dilation;
};
// weight [output blocks, input blocks per group, taps, input block, output block]: every input channel of the group;
// weight [output blocks, input channels, taps, output block]: over data without blocks every channel, else (depthwise,
// one input channel) the output's own one. Data of int16 is summed in int32; weights in int32 then hold two input
// channels in each word (PairProduct): [output blocks, input blocks per group, taps, input block / 2, output block].
// Floats of 16 bits are summed in float32. Data of uint8 is summed in int32, too, by such weights of four signed bytes in each word (T.dot_bytes). `edge` lies
// around the data.
te::Tensor BlockedConv(const te::Tensor& data, const te::Tensor& weight, const BlockedWindow& window, int64_t groups,
                       Shape shape, const PrimExpr& edge);
te::Tensor BlockedMaxPool(const te::Tensor& data, const std::vector<int64_t>& pool_size, const BlockedWindow& window,
                          Shape shape);
te::Tensor BlockedAvgPool(const te::Tensor& data, const std::vector<int64_t>& pool_size, const BlockedWindow& window,
                          Shape shape, bool count_include_pad);

}  // namespace ingot::op::topi
