#include "compiler/op/assumed_dims.h"

#include <map>
#include <string_view>

#include "compiler/op/einsum.h"
#include "compiler/op/infer.h"
#include "compiler/op/registry.h"

namespace ingot::op {
namespace {

using Operands = std::vector<const ir::TensorTypeNode*>;
using Pairs = std::vector<AssumedEqual>;

size_t AxisOf(const ir::Call& call, const char* name, int rank) {
  const int64_t axis = call->attrs.GetInt(name);
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

Pairs Matmul(const ir::Call&, const Operands& operands) {
  const auto rows = static_cast<size_t>(std::max(operands[1]->rank - 2, 0));
  return {{{0, static_cast<size_t>(operands[0]->rank) - 1}, {1, rows}}};
}

// All dims but that of the axis.
Pairs Concat(const ir::Call& call, const Operands& operands) {
  const auto rank = static_cast<size_t>(operands[0]->rank);
  const size_t axis = AxisOf(call, "axis", operands[0]->rank);
  Pairs pairs;
  for (size_t i = 1; i < operands.size(); ++i) {
    for (size_t at = 0; at < rank; ++at) {
      if (at != axis) pairs.push_back({{0, at}, {i, at}});
    }
  }
  return pairs;
}

// Those of one label; one of 1 is stretched.
Pairs Einsum(const ir::Call& call, const Operands& operands) {
  std::vector<int> ranks;
  for (const auto* operand : operands) ranks.push_back(operand->rank);
  const Result<EinsumLabels> labels = ParseEinsum(call->attrs.GetString("subscripts"), ranks);
  Pairs pairs;
  if (!labels.ok()) return pairs;
  std::map<int, OperandDim> first;
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t axis = 0; axis < labels->inputs[i].size(); ++axis) {
      if (ir::IsConstInt((*operands[i]->dims)[axis], 1)) continue;
      const auto [at, is_new] = first.try_emplace(labels->inputs[i][axis], OperandDim{i, axis});
      if (!is_new) pairs.push_back({at->second, {i, axis}});
    }
  }
  return pairs;
}

// Operands from the second on have one element for each place along an axis of the first.
Pairs PerChannel(const ir::Call& call, const Operands& operands, const char* attr) {
  const size_t axis = AxisOf(call, attr, operands[0]->rank);
  Pairs pairs;
  for (size_t i = 1; i < operands.size(); ++i) pairs.push_back({{0, axis}, {i, 0}});
  return pairs;
}
Pairs PerAxis(const ir::Call& call, const Operands& operands) { return PerChannel(call, operands, "axis"); }
Pairs PerChannelAxis(const ir::Call& call, const Operands& operands) {
  return PerChannel(call, operands, "channel_axis");
}

// Scale and shift have the dims of the normalised axes.
Pairs PerAxes(const ir::Call& call, const Operands& operands) {
  const std::vector<int64_t> axes = call->attrs.GetInts("axes");
  Pairs pairs;
  for (size_t i = 1; i < operands.size(); ++i) {
    for (size_t k = 0; k < axes.size(); ++k) {
      pairs.push_back({{0, static_cast<size_t>(axes[k] < 0 ? axes[k] + operands[0]->rank : axes[k])}, {i, k}});
    }
  }
  return pairs;
}

// Channels; layouts of blocks come later than symbols of a model.
Pairs Channels(const ir::Call& call, int64_t factor) {
  const size_t in = call->attrs.GetString("data_layout").find('C');
  const size_t kernel = call->attrs.GetString("kernel_layout").find('I');
  if (in == std::string::npos || kernel == std::string::npos) return {};
  return {{{0, in}, {1, kernel}, factor}};
}
Pairs Convolution(const ir::Call& call, const Operands&) { return Channels(call, call->attrs.GetInt("groups")); }
Pairs TransposedConvolution(const ir::Call& call, const Operands&) { return Channels(call, 1); }

Pairs ReverseSequence(const ir::Call& call, const Operands& operands) {
  return {{{0, AxisOf(call, "batch_axis", operands[0]->rank)}, {1, 0}}};
}

Pairs GatherNd(const ir::Call& call, const Operands&) {
  Pairs pairs;
  for (size_t i = 0; i < static_cast<size_t>(call->attrs.GetInt("batch_dims")); ++i) pairs.push_back({{0, i}, {1, i}});
  return pairs;
}

// States are [directions, batch, hidden] beside gates of [steps, batch, ...], lengths, behind them, are [batch].
template <size_t num_states>
Pairs Recurrent(const ir::Call&, const Operands& operands) {
  Pairs pairs;
  for (size_t i = 2; i < operands.size(); ++i) {
    const bool is_state = i < 2 + num_states;
    const bool is_lengths = !is_state && operands[i]->dtype && operands[i]->dtype->is_integral();
    if (is_state || is_lengths) pairs.push_back({{0, 1}, {i, is_state ? size_t{1} : size_t{0}}});
  }
  return pairs;
}

Pairs RoiAlign(const ir::Call&, const Operands&) { return {{{1, 0}, {2, 0}}}; }

Pairs NonMaximumSuppression(const ir::Call&, const Operands&) { return {{{0, 0}, {1, 0}}, {{0, 1}, {1, 2}}}; }

constexpr struct {
  std::string_view row;
  Pairs (*pairs)(const ir::Call&, const Operands&);
} kRows[] = {
    {"concat", Concat},
    {"einsum", Einsum},
    {"gather_nd", GatherNd},
    {"matmul", Matmul},
    {"nn.batch_norm", PerAxis},
    {"nn.conv1d", Convolution},
    {"nn.conv1d_transpose", TransposedConvolution},
    {"nn.conv2d", Convolution},
    {"nn.conv2d_transpose", TransposedConvolution},
    {"nn.conv3d", Convolution},
    {"nn.conv3d_transpose", TransposedConvolution},
    {"nn.group_norm", PerChannelAxis},
    {"nn.gru", Recurrent<1>},
    {"nn.instance_norm", PerChannelAxis},
    {"nn.layer_norm", PerAxes},
    {"nn.lstm", Recurrent<2>},
    {"nn.prelu", PerAxis},
    {"nn.rms_norm", PerAxes},
    {"nn.rnn", Recurrent<1>},
    {"reverse_sequence", ReverseSequence},
    {"vision.all_class_non_max_suppression", NonMaximumSuppression},
    {"vision.roi_align", RoiAlign},
};

}  // namespace

std::vector<ir::Expr> OperandsOf(const std::vector<ir::Expr>& args) {
  const auto* tuple = args.size() == 1 ? ir::As<ir::TupleNode>(args[0]) : nullptr;
  return tuple != nullptr ? tuple->fields : args;
}

std::vector<AssumedEqual> AssumedEqualDims(const ir::Call& call) {
  const OpRow* row = RowOf(call);
  for (const auto& [name, pairs] : kRows) {
    if (row == nullptr || row->name != name) continue;
    Operands operands;
    for (const ir::Expr& operand : OperandsOf(call->args)) {
      const auto* type = operand ? ir::As<ir::TensorTypeNode>(operand->type) : nullptr;
      if (type == nullptr || !type->dims) return {};
      operands.push_back(type);
    }
    return pairs(call, operands);
  }
  return {};
}

}  // namespace ingot::op
