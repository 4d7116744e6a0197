// transform_layout: changes where the elements of an intermediate lie in memory. Its shape, accesses and regions follow
// the index map; loops do not change.
#include "compiler/ir/visitor.h"
#include "compiler/schedule/primitives.h"
#include "compiler/schedule/region.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// Rewrites accesses of one buffer to accesses of another at the indices that the map gives.
class LayoutRewriter : public StmtMutator {
 public:
  LayoutRewriter(Buffer from, Buffer to, const IndexMap& map) : from_(std::move(from)), to_(std::move(to)), map_(map) {}

 protected:
  using StmtMutator::Mutate;
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    const PrimExpr mutated = StmtMutator::Mutate(load);
    const auto* node = As<BufferLoadNode>(mutated);
    if (!node->buffer.same_as(from_)) return mutated;
    return Make<BufferLoadNode>(to_, MapIndices(map_, node->indices, analyzer_));
  }
  Stmt Mutate(const Ref<BufferStoreNode>& store) override {
    const Stmt mutated = StmtMutator::Mutate(store);
    const auto* node = As<BufferStoreNode>(mutated);
    if (!node->buffer.same_as(from_)) return mutated;
    return Make<BufferStoreNode>(to_, node->value, MapIndices(map_, node->indices, analyzer_));
  }
  Stmt Mutate(const Ref<BlockNode>& block) override {
    for (const IterVar& iter : block->iter_vars) analyzer_.Bind(iter->var, iter->domain);
    BlockNode copy = *AsRef<BlockNode>(StmtMutator::Mutate(block));
    for (std::vector<BufferRegion>* regions : {&copy.reads, &copy.writes}) {
      for (BufferRegion& region : *regions) {
        if (region.buffer.same_as(from_)) region = {to_, MapRegion(map_, region.region, to_->shape, analyzer_)};
      }
    }
    return Make<BlockNode>(std::move(copy));
  }

 private:
  Buffer from_, to_;
  const IndexMap& map_;
  arith::Analyzer analyzer_;
};

// Whether storage_align has set the distance of the buffer's rows.
bool HasSpreadRows(const ScheduleState& state, const Buffer& buffer) {
  for (const BlockSite& site : state.Blocks()) {
    if (WritesTo(site.block(), buffer) && site.block().annotations.Find(kBufferDimAlign) != nullptr) return true;
  }
  return false;
}

}  // namespace

Status TransformLayout(ScheduleState& state, const BlockName& name, int64_t write_index, const IndexMap& map) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  if (write_index < 0 || write_index >= static_cast<int64_t>(site.block().writes.size())) {
    return Refuse("transform_layout", Describe(site), "it has no output " + std::to_string(write_index));
  }
  const Buffer buffer = site.block().writes[write_index].buffer;
  if (!state.IsAllocated(buffer)) {
    return Refuse("transform_layout", Describe(site), buffer->name + " is a parameter");
  }
  if (buffer->shape.size() != map.to.size() && HasSpreadRows(state, buffer)) {
    return Refuse("transform_layout", Describe(site), "storage_align has fixed the dimensions of " + buffer->name);
  }
  Result<std::vector<PrimExpr>> shape = MapShape(map, buffer->shape);
  if (!shape.ok()) {
    return Refuse("transform_layout", Describe(site),
                  "the new layout of " + buffer->name + ": " + std::string(shape.status().message()));
  }
  BufferNode copy = *buffer;
  copy.shape = std::move(*shape);
  copy.data = MakePrimVar(buffer->data->name, DataType::Handle());
  const Buffer fresh = Make<BufferNode>(std::move(copy));
  state.SetBody(LayoutRewriter(buffer, fresh, map).MutateStmt(state.body()));
  state.ReplaceBuffer(buffer, fresh);
  return Status();
}

}  // namespace ingot::schedule
