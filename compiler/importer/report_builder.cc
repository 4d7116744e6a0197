// The support report: what is noted of the model and of each node that is not supported, and its texts.
#include "compiler/importer/report_builder.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

namespace ingot::importer {

using ir::PrimExpr;

namespace {

std::string DimText(const PrimExpr& dim) {
  if (const auto value = ir::AsConstInt(dim)) return std::to_string(*value);
  if (const auto* var = ir::As<ir::PrimVarNode>(dim)) return var->name;
  return "?";
}

}  // namespace

std::string TypeText(const ir::Type& type) {
  const auto* tensor = ir::As<ir::TensorTypeNode>(type);
  if (type->kind == ir::TypeKind::kObject) return "a sequence or an optional value";
  if (tensor == nullptr) return "?";
  std::string text = tensor->dtype.has_value() ? tensor->dtype->ToString() : "?";
  if (!tensor->dims.has_value()) return text + "[...]";
  text += "[";
  for (size_t i = 0; i < tensor->dims->size(); ++i) text += (i == 0 ? "" : ", ") + DimText((*tensor->dims)[i]);
  return text + "]";
}

std::string NodePrefix(const OnnxNode& node, const std::string& label) {
  return "node \"" + label + "\" (" + node.op_type + "): ";
}

namespace {

// What operators whose meaning did not change until opset 7 have meant since an earlier one, by ONNX's list of changes.
struct UnchangedSince {
  int64_t opset;
  std::string_view operators;  // each behind a space and before one
};
constexpr UnchangedSince kUnchanged[] = {
    {1,
     " ArgMax ArgMin Constant Conv ConvTranspose DepthToSpace Flatten Gather GlobalAveragePool GlobalMaxPool Hardmax "
     "Identity If LRN LogSoftmax Loop LpNormalization MatMul MaxPool MaxRoiPool Not RandomNormal RandomNormalLike "
     "RandomUniform "
     "RandomUniformLike ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
     "ReduceSum ReduceSumSquare Shape Size Slice Softmax Softplus Softsign SpaceToDepth Squeeze TopK Transpose "
     "Unsqueeze "},
    {2, " LpPool Pad Split "},
    {4, " Concat "},
    {5, " Reshape "},
    {6,
     " Abs Cast Ceil Clip Elu Exp Floor HardSigmoid InstanceNormalization LeakyRelu Log Max Mean Min Neg Reciprocal "
     "Relu Selu Sigmoid Sqrt Sum Tanh Tile "},
};

}  // namespace

int64_t FirstOpsetOf(std::string_view op_type) {
  const std::string word = " " + std::string(op_type) + " ";
  const auto found = std::ranges::find_if(
      kUnchanged, [&](const UnchangedSince& row) { return row.operators.find(word) != std::string_view::npos; });
  return found == std::end(kUnchanged) ? kMinOpset : found->opset;
}

namespace {

// Returns an operator of the graph, or of a graph inside of it, that means something else there than in opset 7; none
// if there is none.
std::optional<std::string> OlderOperator(const OnnxGraph& graph, int64_t opset) {
  for (const OnnxNode& node : graph.nodes) {
    if (node.domain.empty() && FirstOpsetOf(node.op_type) > opset) return node.op_type;
    for (const OnnxAttribute& attribute : node.attributes) {
      const auto* inner = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute.value);
      if (inner == nullptr) continue;
      if (std::optional<std::string> older = OlderOperator(**inner, opset)) return older;
    }
  }
  return std::nullopt;
}

}  // namespace

Status ReportBuilder::ReadOpset() {
  report_.producer = model_.producer;
  for (const auto& [domain, version] : model_.opsets) {
    if (domain.empty()) report_.opset = version;
  }
  if (report_.opset >= kMinOpset && report_.opset <= kMaxOpset) return Status();
  // A model without operators of ONNX's own domain needs no version of it.
  const auto is_own = [](const OnnxNode& node) { return node.domain.empty(); };
  if (report_.opset == 0 && std::ranges::none_of(model_.graph.nodes, is_own)) return Status();
  if (report_.opset == 0) return Status(StatusCode::kBadInput, "the model names no version of ONNX's operator set");
  const int64_t opset = report_.opset;
  if (opset >= 1 && opset < kMinOpset) {
    const std::optional<std::string> older = OlderOperator(model_.graph, opset);
    report_.opset = kMinOpset;
    if (!older) return Status();
    return Status(StatusCode::kUnsupportedModel, "opset " + std::to_string(opset) + " is not supported with " + *older +
                                                     "; " + std::to_string(kMinOpset) + " to " +
                                                     std::to_string(kMaxOpset) + " are");
  }
  return Status(StatusCode::kUnsupportedModel, "opset " + std::to_string(opset) + " is not supported; " +
                                                   std::to_string(kMinOpset) + " to " + std::to_string(kMaxOpset) +
                                                   " are");
}

void ReportBuilder::CountOperators() {
  std::map<std::pair<std::string, std::string>, int64_t> counts;
  for (const OnnxNode& node : model_.graph.nodes) ++counts[{node.op_type, node.domain}];
  for (const auto& [key, count] : counts) report_.operators.push_back({key.first, key.second, count});
}

void ReportBuilder::AddUnsupported(const OnnxNode& node, const std::string& label,
                                   const std::vector<ImportedValue*>& inputs, std::string reason) {
  UnsupportedOperator& entry = report_.unsupported.emplace_back();
  entry.op_type = node.op_type;
  entry.domain = node.domain;
  entry.node = label;
  for (const auto& [domain, version] : model_.opsets) {
    if (domain == node.domain) entry.opset = version;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) {
      entry.inputs.push_back("none");
    } else {
      entry.inputs.push_back(inputs[i]->type == nullptr ? "?" : TypeText(inputs[i]->type));
    }
  }
  entry.reason = std::move(reason);
}

Status UnsupportedError(const SupportReport& report) {
  constexpr size_t kMaxListed = 100;
  const size_t count = report.unsupported.size();
  std::string message =
      count == 1 ? "1 operator is not supported:" : std::to_string(count) + " operators are not supported:";
  for (size_t i = 0; i < std::min(count, kMaxListed); ++i) message += "\n  " + report.unsupported[i].ToString();
  if (count > kMaxListed) message += "\n  ... and " + std::to_string(count - kMaxListed) + " more";
  return Status(StatusCode::kUnsupportedModel, std::move(message));
}

std::string UnsupportedOperator::ToString() const {
  std::string text = domain.empty() ? op_type : domain + "." + op_type;
  text += " (node \"" + node + "\", opset " + std::to_string(opset) + ", inputs: ";
  for (size_t i = 0; i < inputs.size(); ++i) text += (i == 0 ? "" : ", ") + inputs[i];
  if (inputs.empty()) text += "none";
  return text + "): " + reason;
}

}  // namespace ingot::importer
