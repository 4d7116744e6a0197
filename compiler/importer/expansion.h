// How deep the importer is inside of functions and graphs of nodes, which functions it expands, and how many nodes the
// expansion has added. Functions that call others twice grow exponentially, so both are limited, the nodes by the size of
// the file.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/importer/onnx_model.h"
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
      : max_nodes_(std::min(kFreeNodes + kNodesPerByte * static_cast<int64_t>(file_bytes), kMaxNodes)) {}

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

 private:
  static constexpr size_t kMaxLevels = 50;
  // An amount for every file and one for each of its bytes, of which a call of a function takes some ten, up to a cap.
  static constexpr int64_t kFreeNodes = 100'000;
  static constexpr int64_t kNodesPerByte = 16;
  static constexpr int64_t kMaxNodes = 1'000'000;

  const int64_t max_nodes_;
  std::vector<const OnnxFunction*> levels_;
  int64_t num_nodes_ = 0;
};

}  // namespace ingot::importer
