// A minimum cut. Each call has a node, which is on the source's side if the call makes blocks; a window that can make
// blocks from a plain image as well as from blocks has a second one for its input. A call's node pays for the window on
// either side; an image whose maker and users are on different sides pays for one conversion, however many users it has.
#include "compiler/transform/layout_plan.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "compiler/op/registry.h"
#include "compiler/transform/blocked_forms.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/minimum_cut.h"

namespace ingot::transform {

using ir::Expr;
using op::Dims;

namespace {

constexpr size_t kPlain = MinimumCut::kSink, kBlocks = MinimumCut::kSource;
constexpr double kNever = MinimumCut::kNever;

class LayoutPlanner {
 public:
  LayoutPlanner(const std::vector<ir::Binding>& bindings, const BlockedCalls& calls, const WeightBindings& weights)
      : bindings_(bindings), calls_(calls), weights_(weights) {}

  std::vector<PlannedCall> Plan() {
    for (const ir::Binding& binding : bindings_) AddCall(binding);
    for (const ir::Binding& binding : bindings_) {
      if (!binding.var->is_dataflow) AddUse(binding.var, kPlain);  // what leaves the block is plain
    }
    for (const Image& image : images_) AddConversions(image);
    const std::vector<bool> sides = cut_.Solve();
    std::vector<PlannedCall> plan;
    for (const Node& node : nodes_) {
      PlannedCall call{node.kind, node.output != kPlain && sides[node.output], {}};
      if (call.kind == BlockedCall::kWindow) {
        const bool takes_blocks = node.input != kPlain && sides[node.input];
        call.window = *Cheapest(node.choices, takes_blocks, call.makes_blocks);
      }
      plan.push_back(std::move(call));
    }
    return plan;
  }

 private:
  struct Node {
    BlockedCall kind = BlockedCall::kNone;
    size_t input = kPlain, output = kPlain;
    std::vector<WindowChoice> choices;
  };
  struct Image {
    size_t maker = kPlain;
    double conversion = 0;
    std::vector<size_t> users;
  };

  static const WindowChoice* Cheapest(const std::vector<WindowChoice>& choices, bool takes_blocks, bool makes_blocks) {
    const WindowChoice* best = nullptr;
    for (const WindowChoice& choice : choices) {
      if (choice.takes_blocks() != takes_blocks || choice.makes_blocks() != makes_blocks) continue;
      if (best == nullptr || choice.cost < best->cost) best = &choice;
    }
    return best;
  }

  void AddCall(const ir::Binding& binding) {
    Node node;
    node.kind = calls_.KindOf(binding);
    const ir::Call call = ir::AsRef<ir::CallNode>(binding.value);
    const bool stays_plain = node.kind == BlockedCall::kElementwise && !FillsBlocks(binding.var, call);
    const bool is_pool = node.kind == BlockedCall::kWindow && call->args.size() == 1;
    if (is_pool || node.kind == BlockedCall::kSameAttributes) KeepFilling(binding.var, call);
    if (node.kind == BlockedCall::kWindow) {
      AddWindow(call, node);
    } else if (node.kind != BlockedCall::kNone && node.kind != BlockedCall::kToChannelsLast && !stays_plain) {
      node.output = cut_.AddNode();
      if (node.kind != BlockedCall::kFromChannelsLast) node.input = node.output;
    }
    // A permutation to channels last takes either form.
    if (node.kind != BlockedCall::kToChannelsLast) {
      ForEachUse(binding.value, [&](const ir::Var& used) {
        const Dims* dims = node.kind == BlockedCall::kElementwise ? TypedDimsOf(used) : nullptr;
        AddUse(used, dims != nullptr && IsScalar(*dims) ? kPlain : node.input);
        if (node.kind == BlockedCall::kElementwise && !weights_.Contains(used)) AddJoin(ImageOf(used), node.input);
      });
    }
    if (!weights_.Contains(binding.var)) ImageOf(binding.var).maker = node.output;
    nodes_.push_back(std::move(node));
  }

  std::optional<double> FillingOf(const Expr& x) const {
    const auto found = fillings_.find(x.get());
    return found == fillings_.end() ? std::optional<double>(0.0) : found->second;
  }
  // Of a pool or a reduction: what is computed from zeros is zero, and nothing else is known.
  void KeepFilling(const ir::Var& var, const ir::Call& call) {
    if (FillingOf(op::InputTensors(call)[0]) != 0.0) fillings_.emplace(var.get(), std::nullopt);
  }

  // Whether the channels that fill up the last block are finite behind an element-wise call, if all images so far are
  // in blocks.
  bool FillsBlocks(const ir::Var& var, const ir::Call& call) {
    if (*Channels(*TypedDimsOf(var)) % kBlock == 0) return true;
    const std::optional<double> filling = ElementwiseFilling(call, [&](const Expr& x) { return FillingOf(x); });
    if (!filling || !std::isfinite(*filling)) return false;
    fillings_.emplace(var.get(), filling);
    return true;
  }

  void AddWindow(const ir::Call& call, Node& node) {
    node.choices = calls_.WindowChoices(call);
    const WindowChoice* plain = Cheapest(node.choices, false, false);
    const WindowChoice* first = Cheapest(node.choices, false, true);
    const WindowChoice* blocked = Cheapest(node.choices, true, true);
    if (plain == nullptr) node.kind = BlockedCall::kNone;  // a layout was chosen by hand
    if (plain == nullptr || (first == nullptr && blocked == nullptr)) return;
    node.output = cut_.AddNode();
    cut_.AddEdge(kBlocks, node.output, plain->cost);
    if (first == nullptr) {
      node.input = node.output;
      cut_.AddEdge(node.output, kPlain, blocked->cost);
      return;
    }
    cut_.AddEdge(node.output, kPlain, first->cost);
    if (blocked == nullptr) return;
    node.input = cut_.AddNode();
    cut_.AddEdge(node.input, node.output, kNever);  // no implementation makes a plain image from blocks
    const double more = blocked->cost - first->cost;
    if (more > 0) cut_.AddEdge(node.input, kPlain, more);
    if (more < 0) cut_.AddEdge(kBlocks, node.input, -more);
  }

  Image& ImageOf(const ir::Var& var) {
    const auto [found, is_new] = index_of_.try_emplace(var.get(), images_.size());
    if (is_new) {
      const Dims* dims = TypedDimsOf(var);
      const bool is_image = dims != nullptr && Channels(*dims);
      images_.push_back({.conversion = is_image ? calls_.ConversionCost(*dims) : 0});
    }
    return images_[found->second];
  }

  void AddUse(const ir::Var& var, size_t user) {
    if (!weights_.Contains(var)) ImageOf(var).users.push_back(user);
  }

  // Of equally cheap plans, one in which element-wise calls have the form of their inputs: they join the kernels that
  // make these.
  void AddJoin(const Image& image, size_t user) {
    constexpr double kSmallPart = 1.0 / 16;
    if (image.conversion == 0 || image.maker == user) return;
    if (image.maker != kPlain) cut_.AddEdge(image.maker, user, kSmallPart * image.conversion);
    cut_.AddEdge(user, image.maker, kSmallPart * image.conversion);
  }

  void AddConversions(const Image& image) {
    std::vector<size_t> users = image.users;
    std::erase(users, image.maker);
    if (image.conversion == 0 || users.empty()) return;
    const size_t to_blocks = cut_.AddNode(), to_plain = cut_.AddNode();
    cut_.AddEdge(to_blocks, image.maker, image.conversion);
    if (image.maker != kPlain) cut_.AddEdge(image.maker, to_plain, image.conversion);
    for (const size_t user : users) {
      if (user != kPlain) cut_.AddEdge(user, to_blocks, kNever);
      cut_.AddEdge(to_plain, user, kNever);
    }
  }

  const std::vector<ir::Binding>& bindings_;
  const BlockedCalls& calls_;
  const WeightBindings& weights_;
  MinimumCut cut_;
  std::vector<Node> nodes_;    // of the bindings
  std::vector<Image> images_;  // by first occurrence
  std::unordered_map<const ir::VarNode*, size_t> index_of_;
  std::unordered_map<const ir::ExprNode*, std::optional<double>> fillings_;  // of results; others have 0
};

}  // namespace

std::vector<PlannedCall> PlanLayouts(const std::vector<ir::Binding>& bindings, const BlockedCalls& calls,
                                     const WeightBindings& weights) {
  return LayoutPlanner(bindings, calls, weights).Plan();
}

}  // namespace ingot::transform
