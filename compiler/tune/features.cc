// First what predict_cost.h counts, then the loops by their kinds, then the busiest store: the one that runs most often
// with most loads in its value. For each of the innermost loops around it: its extent, the bytes that all iterations
// from there inwards touch, the multiplications per such byte, and how accesses move from one iteration to the next.
#include "compiler/tune/features.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "compiler/ir/visitor.h"
#include "compiler/kernels/predict_cost.h"

namespace ingot::tune {

using namespace ir;  // NOLINT

namespace {

constexpr size_t kLevels = 6;    // of loops around the busiest store
constexpr int kNumForKinds = 5;  // serial, parallel, vectorized, unrolled, and all others

using Values = std::unordered_map<const PrimVarNode*, int64_t>;

float Log(double value) { return static_cast<float>(std::log2(1 + std::max(value, 0.0))); }

struct Access {
  int64_t element_bytes = 1, lanes = 1;
  std::vector<int64_t> strides;  // in elements, for each loop around it from the outermost on
};

struct BusyStore {
  double instances = 0;
  double operations = 0;
  std::vector<double> extents;  // from the outermost loop on
  std::vector<Access> accesses;
  double weight() const { return instances * static_cast<double>(accesses.size()); }
};

// Operators and loads of an expression.
class ExprCounter : public PrimVisitor {
 public:
  std::vector<const BufferLoadNode*> loads;
  double operations = 0;

 protected:
  using PrimVisitor::Visit;
  void Visit(const BufferLoadNode& load) override { loads.push_back(&load); }
  void Visit(const BinaryNode& node) override {
    if (node.dtype.is_floating()) operations += node.dtype.lanes;
    PrimVisitor::Visit(node);
  }
};

class LoopWalk : public StmtVisitor {
 public:
  double loops[kNumForKinds] = {}, log_extents[kNumForKinds] = {};
  double num_stores = 0, deepest = 0;
  BusyStore busiest;

 protected:
  using StmtVisitor::Visit;

  void Visit(const ForNode& loop) override {
    const int64_t extent = std::max<int64_t>(kernels::LikelyValue(loop.extent, values_), 1);
    const int kind = std::min(static_cast<int>(loop.for_kind), kNumForKinds - 1);
    ++loops[kind];
    log_extents[kind] += Log(static_cast<double>(extent));
    values_[loop.var.get()] = kernels::LikelyValue(loop.min, values_) + extent / 2;
    stack_.emplace_back(loop.var.get(), static_cast<double>(extent));
    deepest = std::max(deepest, static_cast<double>(stack_.size()));
    StmtVisitor::Visit(loop);
    stack_.pop_back();
  }

  void Visit(const LetStmtNode& let) override {
    if (!let.value->dtype.is_floating() && let.value->dtype.lanes == 1) {
      values_[let.var.get()] = kernels::LikelyValue(let.value, values_);
    }
    StmtVisitor::Visit(let);
  }

  void Visit(const BufferStoreNode& store) override {
    ++num_stores;
    ExprCounter counter;
    counter.VisitPrim(store.value);
    BusyStore here;
    here.instances = 1;
    for (const auto& [var, extent] : stack_) {
      here.instances *= extent;
      here.extents.push_back(extent);
    }
    here.operations = counter.operations;
    here.accesses.push_back(AccessOf(*store.buffer, store.indices));
    for (const BufferLoadNode* load : counter.loads) here.accesses.push_back(AccessOf(*load->buffer, load->indices));
    if (here.weight() > busiest.weight()) busiest = std::move(here);
  }

 private:
  // The place of an access in its buffer, of the first lane.
  int64_t PlaceOf(const BufferNode& buffer, const std::vector<PrimExpr>& indices) const {
    double place = 0;
    for (size_t i = 0; i < indices.size(); ++i) {
      const auto* ramp = As<RampNode>(indices[i]);
      const double dim = static_cast<double>(kernels::LikelyValue(buffer.shape[i], values_));
      place =
          place * dim + static_cast<double>(kernels::LikelyValue(ramp != nullptr ? ramp->base : indices[i], values_));
    }
    return static_cast<int64_t>(std::clamp(place, -1e15, 1e15));
  }

  Access AccessOf(const BufferNode& buffer, const std::vector<PrimExpr>& indices) {
    Access access;
    access.element_bytes = std::max<int64_t>(buffer.dtype.bits / 8, 1);
    access.lanes = indices.empty() ? 1 : indices.back()->dtype.lanes;
    if (indices.size() != buffer.shape.size()) return access;
    const int64_t here = PlaceOf(buffer, indices);
    for (const auto& [var, extent] : stack_) {
      ++values_[var];
      access.strides.push_back(PlaceOf(buffer, indices) - here);
      --values_[var];
    }
    return access;
  }

  Values values_;
  std::vector<std::pair<const PrimVarNode*, double>> stack_;
};

// The level-th loop from within.
void AddLevel(const BusyStore& store, size_t level, Features& features) {
  if (level >= store.extents.size()) {
    features.insert(features.end(), {0, 0, 0, 0, 0, 0});
    return;
  }
  const size_t loop = store.extents.size() - 1 - level;
  double bytes = 0, iterations = 1;
  int still = 0, next = 0, far = 0;
  for (size_t i = loop; i < store.extents.size(); ++i) iterations *= store.extents[i];
  for (const Access& access : store.accesses) {
    double elements = static_cast<double>(access.lanes);
    for (size_t i = loop; i < access.strides.size(); ++i) elements *= access.strides[i] != 0 ? store.extents[i] : 1;
    bytes += elements * static_cast<double>(access.element_bytes);
    const int64_t stride = loop < access.strides.size() ? access.strides[loop] : 0;
    ++(stride == 0 ? still : stride <= access.lanes ? next : far);
  }
  for (const double value : {store.extents[loop], bytes, 16 * store.operations * iterations / bytes}) {
    features.push_back(Log(value));
  }
  for (const int count : {still, next, far}) features.push_back(static_cast<float>(count));
}

}  // namespace

Features FeaturesOf(const PrimFunc& lowered, const Target& target, double bytes) {
  const kernels::PredictedCost cost = kernels::PredictCost(lowered, target, bytes);
  Features features{Log(cost.nanoseconds),
                    Log(cost.stores),
                    static_cast<float>(cost.stores > 0 ? cost.vector_stores / cost.stores : 0),
                    static_cast<float>(cost.lanes),
                    static_cast<float>(cost.parallel),
                    cost.is_bound_by_memory ? 1.0F : 0.0F};
  LoopWalk walk;
  walk.VisitStmt(lowered->body);
  for (int kind = 0; kind < kNumForKinds; ++kind) {
    features.push_back(static_cast<float>(walk.loops[kind]));
    features.push_back(static_cast<float>(walk.log_extents[kind]));
  }
  for (const double value : {walk.num_stores, walk.busiest.instances}) features.push_back(Log(value));
  features.push_back(static_cast<float>(walk.deepest));
  features.push_back(static_cast<float>(walk.busiest.accesses.empty() ? 0 : walk.busiest.accesses[0].lanes));
  for (size_t level = 0; level < kLevels; ++level) AddLevel(walk.busiest, level, features);
  return features;
}

}  // namespace ingot::tune
