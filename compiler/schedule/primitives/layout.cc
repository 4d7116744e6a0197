// The order in which an intermediate's dimensions lie in memory.
#include <algorithm>

#include "compiler/ir/visitor.h"
#include "compiler/schedule/primitives.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// Accesses of one buffer become accesses of another, whose dimension i is the old one's axes[i].
class LayoutRewriter : public StmtMutator {
 public:
  LayoutRewriter(Buffer from, Buffer to, const std::vector<int64_t>& axes)
      : from_(std::move(from)), to_(std::move(to)), axes_(axes) {}

 protected:
  using StmtMutator::Mutate;
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    const PrimExpr mutated = StmtMutator::Mutate(load);
    const auto* node = As<BufferLoadNode>(mutated);
    if (!node->buffer.same_as(from_)) return mutated;
    return Make<BufferLoadNode>(to_, Permuted(node->indices));
  }
  Stmt Mutate(const Ref<BufferStoreNode>& store) override {
    const Stmt mutated = StmtMutator::Mutate(store);
    const auto* node = As<BufferStoreNode>(mutated);
    if (!node->buffer.same_as(from_)) return mutated;
    return Make<BufferStoreNode>(to_, node->value, Permuted(node->indices));
  }
  Stmt Mutate(const Ref<BlockNode>& block) override {
    BlockNode copy = *AsRef<BlockNode>(StmtMutator::Mutate(block));
    for (std::vector<BufferRegion>* regions : {&copy.reads, &copy.writes}) {
      for (BufferRegion& region : *regions) {
        if (region.buffer.same_as(from_)) region = {to_, Permuted(region.region)};
      }
    }
    return Make<BlockNode>(std::move(copy));
  }

 private:
  template <typename T>
  std::vector<T> Permuted(const std::vector<T>& old) const {
    std::vector<T> result;
    for (int64_t axis : axes_) result.push_back(old[static_cast<size_t>(axis)]);
    return result;
  }
  Buffer from_, to_;
  const std::vector<int64_t>& axes_;
};

}  // namespace

Status TransformLayout(ScheduleState& state, const BlockName& name, int64_t write_index,
                       const std::vector<int64_t>& axes) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  if (write_index < 0 || write_index >= static_cast<int64_t>(site.block().writes.size())) {
    return Refuse("transform_layout", Describe(site), "it has no output " + std::to_string(write_index));
  }
  const Buffer buffer = site.block().writes[write_index].buffer;
  if (!state.IsAllocated(buffer)) {
    return Refuse("transform_layout", Describe(site), buffer->name + " is a parameter");
  }
  std::vector<int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  bool permutes = sorted.size() == buffer->shape.size();
  for (size_t i = 0; permutes && i < sorted.size(); ++i) permutes = sorted[i] == static_cast<int64_t>(i);
  if (!permutes) {
    return Refuse("transform_layout", Describe(site), "the axes are no permutation of those of " + buffer->name);
  }
  BufferNode copy = *buffer;
  for (size_t i = 0; i < axes.size(); ++i) copy.shape[i] = buffer->shape[static_cast<size_t>(axes[i])];
  copy.data = MakePrimVar(buffer->data->name, DataType::Handle());
  const Buffer fresh = Make<BufferNode>(std::move(copy));
  state.SetBody(LayoutRewriter(buffer, fresh, axes).MutateStmt(state.body()));
  state.ReplaceBuffer(buffer, fresh);
  return Status();
}

}  // namespace ingot::schedule
