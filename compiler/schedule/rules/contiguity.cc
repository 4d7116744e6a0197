// Each access is written as a linear form of the block's iteration variables; two variables join when the outer one's
// coefficient is the inner one's times the inner extent, in every access.
#include "compiler/schedule/rules/contiguity.h"

#include <algorithm>

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// Lists the loads, those in their indices (gathers), and the variables that are used elsewhere than in the place of one.
class AccessLister : public StmtVisitor {
 public:
  std::vector<const BufferLoadNode*> loads, inner_loads;
  std::vector<const PrimVarNode*> alone;
  int max_bits = 1;

 protected:
  using StmtVisitor::Visit;
  void Visit(const BufferLoadNode& load) override {
    loads.push_back(&load);
    max_bits = std::max(max_bits, static_cast<int>(load.buffer->dtype.bits));
    struct InnerLoads : PrimVisitor {
      std::vector<const BufferLoadNode*>* loads;
      using PrimVisitor::Visit;
      void Visit(const BufferLoadNode& inner) override {
        loads->push_back(&inner);
        PrimVisitor::Visit(inner);
      }
    } inner;
    inner.loads = &inner_loads;
    for (const PrimExpr& index : load.indices) inner.VisitPrim(index);
  }
  void Visit(const PrimVarNode& var) override { alone.push_back(&var); }
};

// An index that is loaded moves by no constant step: it is a variable of its own.
class GatherReplacer : public PrimMutator {
 protected:
  using PrimMutator::Mutate;
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override { return MakePrimVar("gathered", load->dtype); }
};

PrimExpr ElementOf(const Buffer& buffer, const std::vector<PrimExpr>& indices, arith::Analyzer& analyzer) {
  PrimExpr element = Int64(0);
  PrimExpr stride = Int64(1);
  for (size_t d = indices.size(); d-- > 0;) {
    if (!buffer->strides.empty()) stride = Cast(DataType::Int(64), buffer->strides[d]);
    element = element + Cast(DataType::Int(64), indices[d]) * stride;
    if (buffer->strides.empty()) stride = analyzer.Simplify(stride * Cast(DataType::Int(64), buffer->shape[d]));
  }
  return analyzer.Simplify(element);
}

}  // namespace

Contiguity::Contiguity(const BlockSite& site)
    : block_(site.block()), in_value_(site.block().iter_vars.size()), gathers_(site.block().iter_vars.size()) {
  for (const IterVar& iter : block_.iter_vars) analyzer_.Bind(iter->var, iter->domain);
  const BufferStoreNode& store = StoreOf(site);
  AccessLister lister;
  lister.VisitPrim(store.value);
  const auto add = [&](const BufferLoadNode* load, const Buffer& buffer, const std::vector<PrimExpr>& indices) {
    accesses_.push_back({load, ElementOf(buffer, indices, analyzer_)});
    std::vector<PrimExpr> places;
    for (const PrimExpr& index : indices) places.push_back(GatherReplacer().MutatePrim(index));
    places_.push_back(ElementOf(buffer, places, analyzer_));
  };
  add(nullptr, store.buffer, store.indices);
  for (const BufferLoadNode* load : lister.loads) add(load, load->buffer, load->indices);
  std::vector<const PrimVarNode*> gathering;  // variables that tell where an index is loaded
  for (const BufferLoadNode* load : lister.inner_loads) {
    std::vector<PrimExpr> places;
    for (const PrimExpr& index : load->indices) {
      for (const PrimVar& var : FreePrimVars(index)) gathering.push_back(var.get());
      places.push_back(GatherReplacer().MutatePrim(index));
    }
    places_.push_back(ElementOf(load->buffer, places, analyzer_));
  }
  for (size_t i = 0; i < block_.iter_vars.size(); ++i) {
    const PrimVarNode* var = block_.iter_vars[i]->var.get();
    in_value_[i] = std::ranges::find(lister.alone, var) != lister.alone.end();
    gathers_[i] = std::ranges::find(gathering, var) != gathering.end();
  }
}

bool Contiguity::Joins(int outer, int inner) {
  if (in_value_[outer] || in_value_[inner]) return false;
  const IterVarNode& a = *block_.iter_vars[outer];
  const IterVarNode& b = *block_.iter_vars[inner];
  return std::ranges::all_of(places_, [&](const PrimExpr& place) {
    const std::optional<arith::LinearForm> form = arith::DetectLinear(place, {a.var, b.var});
    return form && analyzer_.ProveEqual(form->coefficients[0],
                                        form->coefficients[1] * Cast(DataType::Int(64), b.domain.extent));
  });
}

std::vector<std::vector<int>> Contiguity::Runs(const std::vector<int>& iters) {
  std::vector<std::vector<int>> runs;
  int last = -1;  // the last variable longer than 1
  for (int iter : iters) {
    const bool is_unit = ConstantExtent(*block_.iter_vars[iter]) == 1;
    if (runs.empty() || (!is_unit && last >= 0 && !Joins(last, iter))) runs.emplace_back();
    runs.back().push_back(iter);
    if (!is_unit) last = iter;
  }
  return runs;
}

bool Contiguity::Continues(const LinearAccess& access, const std::vector<int>& outer, const std::vector<int>& inner) {
  const auto is_used_alone = [&](int iter) { return IsUsedAlone(iter); };
  if (std::ranges::any_of(outer, is_used_alone) || std::ranges::any_of(inner, is_used_alone)) return false;
  int first = inner.back();  // the outermost variable that is longer than 1
  for (size_t i = inner.size(); i-- > 0;) {
    if (ConstantExtent(*block_.iter_vars[inner[i]]) != 1) first = inner[i];
  }
  const IterVarNode& a = *block_.iter_vars[Innermost(outer)];
  const IterVarNode& b = *block_.iter_vars[first];
  const std::optional<arith::LinearForm> form = arith::DetectLinear(access.element, {a.var, b.var});
  return form &&
         analyzer_.ProveEqual(form->coefficients[0], form->coefficients[1] * Cast(DataType::Int(64), b.domain.extent));
}

std::optional<int64_t> Contiguity::Step(const LinearAccess& access, int iter) {
  const std::optional<arith::LinearForm> form = arith::DetectLinear(access.element, {block_.iter_vars[iter]->var});
  if (!form) return std::nullopt;
  const PrimExpr coefficient = analyzer_.Simplify(form->coefficients[0]);
  const auto step = AsConstInt(coefficient);
  return step ? std::optional<int64_t>(*step) : std::nullopt;
}

int Contiguity::Innermost(const std::vector<int>& run) const {
  for (size_t i = run.size(); i-- > 0;) {
    if (ConstantExtent(*block_.iter_vars[run[i]]) != 1) return run[i];
  }
  return run.back();
}

VectorShape ChooseVectors(const BlockSite& site, const Target& target) {
  const BufferStoreNode& store = StoreOf(site);
  AccessLister lister;
  lister.VisitPrim(store.value);
  int bits = std::max(lister.max_bits, static_cast<int>(store.buffer->dtype.bits));
  const int64_t cost = CostOfInstance(site);
  if (!IsPlainMove(site)) bits = std::max(bits, 32);  // narrower elements are computed in 32 bits
  constexpr int64_t kLight = 8, kHeavy = 80;          // some additions; several exponentials
  return {std::max<int64_t>(target.vector_bits / std::max(bits, 8), 1), cost <= kLight ? 4 : cost <= kHeavy ? 2 : 1};
}

LoopRV VectorizeRun(Schedule& s, LoopRV loop, const VectorShape& shape) {
  if (s.IsVoid(loop)) return {};
  const auto constant = AsConstInt(s.Loop(loop).loop->extent);
  int64_t registers = shape.registers;
  if (constant) {
    const int64_t extent = *constant;
    if (extent < 2) return {};
    const int64_t whole = extent / shape.lanes;
    if (whole <= 1 && extent <= 2 * shape.lanes) {  // one vector, perhaps of an odd length
      s.Vectorize(loop);
      return {};
    }
    registers = std::min(registers, whole);
    // Fewer registers, at least half as many, where they leave no rest.
    for (int64_t fewer = registers; 2 * fewer >= registers && fewer > 0; --fewer) {
      if (extent % (shape.lanes * fewer) != 0) continue;
      registers = fewer;
      break;
    }
  }
  const int64_t width = shape.lanes * registers;
  const Schedule::Parts parts = s.LoopPartition(loop, width);
  LoopRV tiles;
  if (!s.IsVoid(parts.main)) {
    const LoopRVs loops = s.Split(parts.main, {kRest, width});
    s.Vectorize(loops[1]);
    tiles = loops[0];
  }
  if (s.IsVoid(parts.tail)) return tiles;
  if (constant) {
    VectorizeRun(s, parts.tail, {shape.lanes, registers});
  } else {
    s.Vectorize(s.Split(parts.tail, {kRest, shape.lanes})[1]);
  }
  return tiles;
}

LoopRV FuseIters(Schedule& s, const HandleList<InnerLoop>& loops, const std::vector<int>& run) {
  std::vector<LoopRV> fused;
  for (const InnerLoop& entry : loops) {
    if (std::find(run.begin(), run.end(), entry.iter) != run.end()) fused.push_back(entry.loop);
  }
  return fused.empty() ? LoopRV{} : fused.size() > 1 ? s.Fuse(fused) : fused[0];
}

}  // namespace ingot::schedule
