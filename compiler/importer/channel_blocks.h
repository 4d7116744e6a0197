// How many channels lie beside each other in the tensors of com.microsoft.nchwc. ONNX Runtime's optimiser writes such
// operators for the CPU that it runs on and does not say the number, which the weights' order depends on.
#pragma once

#include <cstdint>
#include <string_view>

#include "compiler/importer/onnx_model.h"

namespace ingot::importer {

inline constexpr std::string_view kChannelBlocks = "com.microsoft.nchwc";
// The attribute by which the walk tells an importer of that domain the number.
inline constexpr const char* kChannelBlockAttr = "channel_block";

// Returns 8 or 16: what numbers of channels and shapes in the graph and in the model's functions say, and where these fit both, what ONNX Runtime
// has on this machine.
int64_t ChannelBlockOf(const OnnxModel& model);

}  // namespace ingot::importer
