// Channels are filled up to whole blocks, pictures of fewer channels than a block stay as they are, and a view that
// splits the channels has the number as its last dim: the first of these that fits one number alone decides.
#include "compiler/importer/channel_blocks.h"

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace ingot::importer {
namespace {

constexpr int64_t kNarrowBlock = 8, kWideBlock = 16;

bool IsBlocked(const OnnxNode& node) { return node.domain == kChannelBlocks; }

int64_t IntOf(const OnnxNode& node, std::string_view name, int64_t default_value) {
  for (const OnnxAttribute& attribute : node.attributes) {
    const auto* value = attribute.name == name ? std::get_if<int64_t>(&attribute.value) : nullptr;
    if (value != nullptr) return *value;
  }
  return default_value;
}

class BlockFinder {
 public:
  // Returns nothing if the graph and those inside of its nodes fit both numbers.
  std::optional<int64_t> Find(const OnnxGraph& graph) {
    for (const auto& [name, data] : graph.initializers) constants_[name] = data.get();
    return Find(graph.nodes);
  }
  std::optional<int64_t> Find(const std::vector<OnnxNode>& nodes) {
    for (const OnnxNode& node : nodes) {
      NoteConstant(node);
      for (const std::string& output : node.outputs) {
        if (IsBlocked(node) && node.op_type != "ReorderOutput") makers_[output] = &node;
      }
      if (const std::optional<int64_t> block = Of(node)) return block;
      for (const OnnxAttribute& attribute : node.attributes) {
        const auto* inner = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute.value);
        const std::optional<int64_t> block = inner == nullptr ? std::nullopt : Find(**inner);
        if (block) return block;
      }
    }
    return std::nullopt;
  }

 private:
  void NoteConstant(const OnnxNode& node) {
    if (!node.domain.empty() || node.op_type != "Constant" || node.outputs.size() != 1) return;
    for (const OnnxAttribute& attribute : node.attributes) {
      const auto* data = std::get_if<ConstantDataPtr>(&attribute.value);
      if (data != nullptr && attribute.name == "value") constants_[node.outputs[0]] = data->get();
    }
  }
  const ir::ConstantData* ConstantInput(const OnnxNode& node, size_t i) const {
    const auto found = i < node.inputs.size() ? constants_.find(node.inputs[i]) : constants_.end();
    return found == constants_.end() ? nullptr : found->second;
  }
  const OnnxNode* MakerOf(const OnnxNode& node, size_t i) const {
    const auto found = i < node.inputs.size() ? makers_.find(node.inputs[i]) : makers_.end();
    return found == makers_.end() ? nullptr : found->second;
  }
  const std::vector<int64_t>* WeightDims(const OnnxNode* conv) const {
    const bool is_conv = conv != nullptr && IsBlocked(*conv) && conv->op_type == "Conv";
    const ir::ConstantData* weight = is_conv ? ConstantInput(*conv, 1) : nullptr;
    return weight != nullptr && weight->dims().size() == 4 ? &weight->dims() : nullptr;
  }

  std::optional<int64_t> Of(const OnnxNode& node) const {
    if (IsBlocked(node) && node.op_type == "Conv") return OfConv(node);
    const OnnxNode* maker = MakerOf(node, 0);
    if (maker == nullptr) return std::nullopt;
    if (IsBlocked(node) && node.op_type == "ReorderOutput") {
      const std::vector<int64_t>* dims = WeightDims(maker);
      const bool fills = dims != nullptr && (*dims)[0] - IntOf(node, "channels", (*dims)[0]) >= kNarrowBlock;
      return fills ? std::optional(kWideBlock) : std::nullopt;
    }
    if (!node.domain.empty() || node.op_type != "Reshape") return std::nullopt;
    const ir::ConstantData* shape = ConstantInput(node, 1);
    if (shape == nullptr || shape->dtype() != DataType::Int(64) || shape->num_elements() != 5) return std::nullopt;
    std::array<int64_t, 5> dims = {};
    std::memcpy(dims.data(), shape->bytes().data(), sizeof(dims));
    const bool splits =
        dims[0] == 0 && dims[2] == 0 && dims[3] == 0 && (dims[4] == kNarrowBlock || dims[4] == kWideBlock);
    return splits ? std::optional(dims[4]) : std::nullopt;
  }

  std::optional<int64_t> OfConv(const OnnxNode& node) const {
    const std::vector<int64_t>* dims = WeightDims(&node);
    if (dims == nullptr) return std::nullopt;
    const auto is_odd = [](int64_t channels) { return channels % kWideBlock == kNarrowBlock; };
    const int64_t out = (*dims)[0], in = (*dims)[1], group = IntOf(node, "group", 1);
    if (is_odd(out)) return kNarrowBlock;
    if (group > 1) return in > 1 && (is_odd(in) || is_odd(out / group)) ? std::optional(kNarrowBlock) : std::nullopt;
    if (in < kNarrowBlock) return std::nullopt;
    if (in < kWideBlock) return in == kNarrowBlock && MakerOf(node, 0) != nullptr ? kNarrowBlock : kWideBlock;
    return is_odd(in) ? std::optional(kNarrowBlock) : std::nullopt;
  }

  std::unordered_map<std::string, const ir::ConstantData*> constants_;
  std::unordered_map<std::string, const OnnxNode*> makers_;  // of what lies in blocks
};

int64_t BlockOfThisMachine() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") ? kWideBlock : kNarrowBlock;
#else
  return kWideBlock;
#endif
}

}  // namespace

int64_t ChannelBlockOf(const OnnxModel& model) {
  if (const std::optional<int64_t> block = BlockFinder().Find(model.graph)) return *block;
  for (const OnnxFunction& function : model.functions) {
    if (const std::optional<int64_t> block = BlockFinder().Find(function.nodes)) return *block;
  }
  return BlockOfThisMachine();
}

}  // namespace ingot::importer
