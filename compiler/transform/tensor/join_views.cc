// Before: several buffers may refer to the memory of one allocation: its own, and views of one dimension that share its
// data variable. After: every allocation is accessed as one buffer: if there are views, the allocation has one
// dimension, too, and all accesses are to its elements. It comes before buffers are placed, which shrinks each buffer
// to its accesses. Parameters keep their views, since their memory is fixed.
#include "compiler/transform/tensor/join_views.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "compiler/ir/visitor.h"
#include "compiler/transform/tensor/passes.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

class AccessedBuffers : public StmtVisitor {
 public:
  std::unordered_map<PrimVar, std::vector<Buffer>, RefHash, RefSame> by_data;
  std::vector<Buffer> allocated;

 protected:
  using StmtVisitor::Visit;
  void Visit(const BufferLoadNode& load) override {
    Add(load.buffer);
    StmtVisitor::Visit(load);
  }
  void Visit(const BufferStoreNode& store) override {
    Add(store.buffer);
    StmtVisitor::Visit(store);
  }
  void Visit(const AllocateNode& allocate) override {
    allocated.push_back(allocate.buffer);
    Add(allocate.buffer);
    StmtVisitor::Visit(allocate);
  }

 private:
  void Add(const Buffer& buffer) {
    std::vector<Buffer>& known = by_data[buffer->data];
    if (std::none_of(known.begin(), known.end(), [&](const Buffer& k) { return k.same_as(buffer); }))
      known.push_back(buffer);
  }
};

// The one dimension of an allocation, and the strides of its dimensions there.
struct Flat {
  Buffer buffer;
  std::vector<PrimExpr> strides;
};

Flat Flatten(const BufferNode& buffer) {
  Flat flat{nullptr, buffer.strides};
  if (flat.strides.empty()) {
    flat.strides.assign(buffer.shape.size(), Int64(1));
    for (size_t d = buffer.shape.size(); d-- > 1;) flat.strides[d - 1] = flat.strides[d] * buffer.shape[d];
  }
  PrimExpr size = Int64(1);
  for (size_t d = 0; d < buffer.shape.size(); ++d) size = size + (buffer.shape[d] - 1) * flat.strides[d];
  BufferNode copy = buffer;
  copy.shape = {std::move(size)};
  copy.strides.clear();
  flat.buffer = Make<BufferNode>(std::move(copy));
  return flat;
}

class ViewJoiner : public StmtMutator {
 public:
  explicit ViewJoiner(const AccessedBuffers& accessed) {
    for (const Buffer& buffer : accessed.allocated) {
      if (accessed.by_data.at(buffer->data).size() > 1) flat_.emplace(buffer->data, Flatten(*buffer));
    }
  }
  bool empty() const { return flat_.empty(); }

 protected:
  using StmtMutator::Mutate;
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    const PrimExpr mutated = StmtMutator::Mutate(load);
    const auto* node = As<BufferLoadNode>(mutated);
    const auto flat = flat_.find(node->buffer->data);
    if (flat == flat_.end()) return mutated;
    return Make<BufferLoadNode>(flat->second.buffer, Indices(flat->second, *node->buffer, node->indices));
  }
  Stmt Mutate(const Ref<BufferStoreNode>& store) override {
    const Stmt mutated = StmtMutator::Mutate(store);
    const auto* node = As<BufferStoreNode>(mutated);
    const auto flat = flat_.find(node->buffer->data);
    if (flat == flat_.end()) return mutated;
    BufferStoreNode copy = *node;
    copy.indices = Indices(flat->second, *node->buffer, node->indices);
    copy.buffer = flat->second.buffer;
    return Make<BufferStoreNode>(std::move(copy));
  }
  Stmt Mutate(const Ref<AllocateNode>& allocate) override {
    const auto flat = flat_.find(allocate->buffer->data);
    if (flat == flat_.end()) return StmtMutator::Mutate(allocate);
    // The alignment of rows no longer matters, since views determine the place of every element.
    return Make<AllocateNode>(flat->second.buffer, MutateStmt(allocate->body));
  }

 private:
  // A view has one compact dimension; a buffer with more dimensions is the allocation itself.
  static std::vector<PrimExpr> Indices(const Flat& flat, const BufferNode& buffer,
                                       const std::vector<PrimExpr>& indices) {
    if (buffer.shape.size() == 1 && buffer.strides.empty()) return indices;
    PrimExpr index = Int64(0);
    for (size_t d = 0; d < indices.size(); ++d) {
      const auto* ramp = As<RampNode>(indices[d]);
      if (ramp == nullptr) {
        index = index + indices[d] * flat.strides[d];
      } else {
        index = Make<RampNode>(index + ramp->base * flat.strides[d], ramp->stride * flat.strides[d], ramp->lanes);
      }
    }
    return {std::move(index)};
  }

  std::unordered_map<PrimVar, Flat, RefHash, RefSame> flat_;
};

}  // namespace

Result<PrimFunc> JoinViews(const PrimFunc& function, const Target&) {
  AccessedBuffers accessed;
  accessed.VisitStmt(function->body);
  ViewJoiner joiner(accessed);
  return joiner.empty() ? function : WithBody(function, joiner.MutateStmt(function->body));
}

}  // namespace ingot::transform
