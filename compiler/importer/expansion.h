// How deep the importer is inside of functions and graphs of nodes, which functions it expands, and how many nodes the
// expansion has added. Functions that call others twice grow exponentially, so both are limited, the nodes by the size of
// the file; and so are the constants that operators make of a few numbers, such as windows and grids.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "compiler/importer/onnx_model.h"
#include "compiler/ir/expr.h"
#include "runtime/status.h"

namespace ingot::importer {

class Expansion {
 public:
  // While it lives, the walk is one level deeper. function: the one that is expanded; null for the graph of a node.
  class Level {
   public:
    Level(Expansion& expansion, const OnnxFunction* function) : expansion_(expansion) {
      expansion_.levels_.push_back(function);
    }
    ~Level() { expansion_.levels_.pop_back(); }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Expansion& expansion_;
  };

  explicit Expansion(size_t file_bytes)
      : max_nodes_(std::min(kFreeNodes + kNodesPerByte * static_cast<int64_t>(file_bytes), kMaxNodes)),
        max_constant_bytes_(kFreeConstantBytes + kConstantBytesPerByte * static_cast<int64_t>(file_bytes)) {}

  bool is_outermost() const { return levels_.empty(); }
  bool IsExpanding(const OnnxFunction& function) const {
    return std::ranges::find(levels_, &function) != levels_.end();
  }
  // Adds the nodes that take the place of a node; unsupported if a limit is exceeded.
  Status Add(const std::string& label, size_t num_nodes) {
    num_nodes_ += static_cast<int64_t>(num_nodes);
    if (levels_.size() <= kMaxLevels && num_nodes_ <= max_nodes_) return Status();
    return Status(StatusCode::kUnsupportedModel, "node \"" + label + "\": functions and branches that nest more than " +
                                                     std::to_string(kMaxLevels) + " deep, or expand to more than " +
                                                     std::to_string(max_nodes_) + " nodes");
  }

  // Adds the constants that the file does not hold, which have no name, among the operands of a node's bindings and its
  // outputs; unsupported if all together are larger than the file's size allows.
  Status AddConstants(const std::string& label, std::span<const ir::Binding> bindings,
                      std::span<const ir::Expr> outputs) {
    for (const ir::Binding& binding : bindings) {
      const auto* call = ir::As<ir::CallNode>(binding.value);
      for (size_t i = 0; call != nullptr && i < call->args.size(); ++i) AddConstant(call->args[i]);
    }
    for (const ir::Expr& output : outputs) AddConstant(output);
    if (constant_bytes_ <= max_constant_bytes_) return Status();
    return Status(StatusCode::kUnsupportedModel, "node \"" + label +
                                                     "\": constants that operators make take more than " +
                                                     std::to_string(max_constant_bytes_) + " bytes");
  }

 private:
  void AddConstant(const ir::Expr& expr) {
    const auto* constant = ir::As<ir::ConstantNode>(expr);
    if (constant == nullptr || !constant->name.empty() || !constants_.insert(constant->data).second) return;
    constant_bytes_ += static_cast<int64_t>(constant->data->bytes().size());
  }

  static constexpr size_t kMaxLevels = 50;
  // An amount for every file and one for each of its bytes, of which a call of a function takes some ten, up to a cap.
  static constexpr int64_t kFreeNodes = 100'000;
  static constexpr int64_t kNodesPerByte = 16;
  static constexpr int64_t kMaxNodes = 1'000'000;

  static constexpr int64_t kFreeConstantBytes = int64_t{256} << 20;
  static constexpr int64_t kConstantBytesPerByte = 64;

  const int64_t max_nodes_, max_constant_bytes_;
  int64_t constant_bytes_ = 0;
  std::unordered_set<std::shared_ptr<const ir::ConstantData>> constants_;
  std::vector<const OnnxFunction*> levels_;
  int64_t num_nodes_ = 0;
};

}  // namespace ingot::importer
