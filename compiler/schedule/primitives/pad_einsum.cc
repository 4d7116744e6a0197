// pad_einsum: extends the ranges of a sum of products to multiples that tiles divide. Inputs are copied into buffers
// that are padded with zeros, the result is computed in a padded buffer, and its elements without the padding are
// copied back.
#include <algorithm>

#include "compiler/arith/block_util.h"
#include "compiler/ir/structural.h"
#include "compiler/schedule/primitives.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr const char* kName = "pad_einsum";

bool IsZero(const PrimExpr& expr) {
  const auto* value = As<FloatImmNode>(expr);
  return value != nullptr ? value->value == 0 : IsConstInt(expr, 0);
}

// An index of a panel: the quotient or the remainder of an iteration variable by a number.
struct PanelIndex {
  PrimVar var;
  int64_t width;
  bool is_quotient;
};
std::optional<PanelIndex> PanelIndexOf(const PrimExpr& index) {
  const auto* binary = As<BinaryNode>(index);
  if (binary == nullptr || (binary->op != BinaryOp::kFloorDiv && binary->op != BinaryOp::kFloorMod)) return {};
  const auto var = AsRef<PrimVarNode>(binary->a);
  const auto width = AsConstInt(binary->b);
  if (!var || !width || *width < 1) return {};
  return PanelIndex{var, *width, binary->op == BinaryOp::kFloorDiv};
}

class Padder {
 public:
  Padder(ScheduleState& state, const BlockSite& site) : state_(state), site_(site), block_(site.block()) {}

  Status Run(const std::vector<int64_t>& multiples) {
    INGOT_RETURN_IF_ERROR(Check(multiples));
    for (const BufferLoadNode* factor : factors_) {
      INGOT_RETURN_IF_ERROR(CheckIndices(factor->buffer, factor->indices, &multiples));
    }
    const Buffer& out = reduction_->update->buffer;
    INGOT_RETURN_IF_ERROR(CheckIndices(out, reduction_->update->indices, nullptr));
    for (size_t d = 0; d < out->shape.size(); ++d) {
      if (IterOf(reduction_->update->indices[d]) != nullptr || IsConstInt(out->shape[d], 1)) continue;
      return No("it writes a part of " + out->name + " alone");
    }
    std::vector<Stmt> before, after;
    for (const BufferLoadNode* factor : factors_) {
      if (!IsPadded(factor->indices) || fresh_.count(factor->buffer) != 0) continue;
      const Buffer padded = Padded(factor->buffer, factor->indices);
      before.push_back(Copy(factor->buffer, padded, factor->indices, true));
    }
    if (IsPadded(reduction_->update->indices)) {
      after.push_back(Copy(Padded(out, reduction_->update->indices), out, reduction_->update->indices, false));
    }
    std::vector<Stmt> all = std::move(before);
    all.push_back(NewNest());
    all.insert(all.end(), after.begin(), after.end());
    state_.Replace(site_.loops.front(), MakeSeq(std::move(all)));
    for (const Buffer& buffer : allocated_) state_.AddBuffer(buffer);
    return Status();
  }

 private:
  Status No(const std::string& what) const { return Refuse(kName, Describe(site_), what); }

  Status Check(const std::vector<int64_t>& multiples) {
    if (multiples.size() != block_.iter_vars.size()) {
      return No("give one multiple for each of its " + std::to_string(block_.iter_vars.size()) + " iterations");
    }
    if (std::any_of(multiples.begin(), multiples.end(), [](int64_t m) { return m < 1; })) {
      return No("multiples must be at least 1");
    }
    reduction_ = MatchReduction(block_);
    if (!reduction_ || reduction_->op != BinaryOp::kAdd || !IsZero(reduction_->identity) ||
        !FactorsOfProduct(reduction_->source)) {
      return No("it is no sum of products of elements, started at 0");
    }
    factors_ = *FactorsOfProduct(reduction_->source);
    if (!state_.IsRegular(block_.name) || state_.IsRecomputed(block_.name) || !IsTrue(site_.realize->predicate) ||
        site_.loops.size() != block_.iter_vars.size() || ScheduleState::BlocksIn(site_.loops.front()).size() != 1) {
      return No("its loops were changed already; pad first");
    }
    for (size_t i = 0; i < block_.iter_vars.size(); ++i) {
      const IterVarNode& iter = *block_.iter_vars[i];
      const auto loop = std::find_if(site_.loops.begin(), site_.loops.end(), [&](const For& candidate) {
        return candidate->var.get() == site_.realize->iter_values[i].get();
      });
      if (loop == site_.loops.end() || (*loop)->for_kind != ForKind::kSerial || !IsConstInt(iter.domain.min, 0)) {
        return No("its loops were changed already; pad first");
      }
      arith::Analyzer analyzer;
      const PrimExpr m = IntImm(iter.var->dtype, multiples[i]);
      const PrimExpr extent = iter.domain.extent;
      PrimExpr padded = analyzer.Simplify(FloorDiv(extent + (multiples[i] - 1), m) * m);
      if (analyzer.ProveEqual(padded, extent)) continue;
      if (iter.type == IterType::kReduce && !EveryFactorUses(iter.var)) {
        return No("padding iteration " + iter.var->name +
                  " needs zeros in every factor, and one does not depend on it");
      }
      extents_.emplace(iter.var, std::move(padded));
    }
    if (extents_.empty()) return No("nothing is to be padded: every extent is a multiple already");
    return Status();
  }

  bool EveryFactorUses(const PrimVar& var) const {
    return std::all_of(factors_.begin(), factors_.end(), [&](const BufferLoadNode* factor) {
      return std::any_of(factor->indices.begin(), factor->indices.end(),
                         [&](const PrimExpr& index) { return index.get() == var.get(); });
    });
  }

  const IterVarNode* IterOf(const PrimExpr& index) const {
    for (const IterVar& iter : block_.iter_vars) {
      if (index.get() == iter->var.get()) return iter.get();
    }
    return nullptr;
  }

  // Checks that each index is one iteration variable or a constant, or, where `multiples` are given, says where in
  // panels as wide as their multiple or a divisor of it, and that all loads of a buffer have equal indices.
  Status CheckIndices(const Buffer& buffer, const std::vector<PrimExpr>& indices,
                      const std::vector<int64_t>* multiples) {
    const auto is_of_panels = [&](const PrimExpr& index) {
      const std::optional<PanelIndex> panel = PanelIndexOf(index);
      if (multiples == nullptr || !panel) return false;
      for (size_t i = 0; i < block_.iter_vars.size(); ++i) {
        const IterVarNode& iter = *block_.iter_vars[i];
        if (iter.var.same_as(panel->var)) {
          return iter.type == IterType::kSpatial && (*multiples)[i] % panel->width == 0;
        }
      }
      return false;
    };
    for (const PrimExpr& index : indices) {
      if (IterOf(index) == nullptr && !AsConstInt(index) && !is_of_panels(index)) {
        return No(buffer->name + " is not indexed by iteration variables alone");
      }
    }
    const auto [it, is_new] = accesses_.emplace(buffer, indices);
    for (size_t d = 0; !is_new && d < indices.size(); ++d) {
      const bool same = it->second[d].same_as(indices[d]) || StructuralEqual(it->second[d], indices[d]);
      if (!same) return No(buffer->name + " is read at two places");
    }
    return Status();
  }

  bool IsPadded(const std::vector<PrimExpr>& indices) const {
    return std::any_of(indices.begin(), indices.end(), [&](const PrimExpr& index) {
      const auto var = AsRef<PrimVarNode>(index);
      return (var && extents_.count(var) != 0) || PaddedPanels(index);
    });
  }
  // The number of panels that a quotient counts after the padding; nothing for another index, or where nothing changes.
  std::optional<PrimExpr> PaddedPanels(const PrimExpr& index) const {
    const std::optional<PanelIndex> panel = PanelIndexOf(index);
    if (!panel || !panel->is_quotient || extents_.count(panel->var) == 0) return {};
    arith::Analyzer analyzer;
    return analyzer.Simplify(FloorDiv(extents_.at(panel->var), IntImm(panel->var->dtype, panel->width)));
  }

  Buffer Padded(const Buffer& buffer, const std::vector<PrimExpr>& indices) {
    std::vector<PrimExpr> shape = buffer->shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      const auto var = AsRef<PrimVarNode>(indices[d]);
      if (var && extents_.count(var) != 0) shape[d] = extents_.at(var);
      if (const std::optional<PrimExpr> panels = PaddedPanels(indices[d])) shape[d] = *panels;
    }
    std::string name = state_.FreshBufferName(buffer->name + "_pad");
    while (std::any_of(allocated_.begin(), allocated_.end(), [&](const Buffer& b) { return b->name == name; })) {
      name += "_";
    }
    const Buffer fresh = MakeBuffer(std::move(name), buffer->dtype, std::move(shape));
    fresh_.emplace(buffer, fresh);
    allocated_.push_back(fresh);
    return fresh;
  }

  // to[v] = from[v]: over the padded shape with zeros outside of `from` (fills), or over the shape without padding.
  Stmt Copy(const Buffer& from, const Buffer& to, const std::vector<PrimExpr>& indices, bool fills) {
    std::vector<LoopVar> loops;
    std::vector<PrimExpr> values, extents, at;
    BlockNode block(state_.FreshBlockName(to->name), {}, {}, {}, nullptr);
    PrimExpr inside = BoolImm(true);
    for (size_t d = 0; d < indices.size(); ++d) {
      const IterVarNode* iter = IterOf(indices[d]);
      if (iter != nullptr && fills && extents_.count(iter->var) == 0) iter = nullptr;
      const DataType dtype = to->shape[d]->dtype;
      const PrimExpr extent = iter != nullptr && !fills ? iter->domain.extent : to->shape[d];
      loops.push_back(MakePrimVar("ax" + std::to_string(d), dtype));
      const PrimVar var = MakePrimVar("v" + std::to_string(d), dtype);
      block.iter_vars.push_back(Make<IterVarNode>(Range{IntImm(dtype, 0), extent}, var, IterType::kSpatial));
      values.push_back(loops.back());
      extents.push_back(extent);
      at.push_back(var);
      if (iter != nullptr && fills) inside = Both(inside, PrimExpr(var) < iter->domain.extent);
      if (fills && PaddedPanels(indices[d])) inside = Both(inside, PrimExpr(var) < from->shape[d]);
    }
    PrimExpr value = Make<BufferLoadNode>(from, at);
    if (fills) value = IfThenElse(inside, value, MakeConst(from->dtype, 0));
    block.body = Make<BufferStoreNode>(to, std::move(value), at);
    arith::ReadWriteRegions regions = arith::GetBlockReadWriteRegions(block.body);
    block.reads = std::move(regions.reads);
    block.writes = std::move(regions.writes);
    return Nest(loops, extents, Make<BlockRealizeNode>(std::move(values), BoolImm(true), Make<BlockNode>(block)));
  }

  Stmt NewNest() const {
    BlockNode block = block_;
    block.body = Substitute(block.body, {}, fresh_);
    block.init = Substitute(block.init, {}, fresh_);
    for (std::vector<BufferRegion>* regions : {&block.reads, &block.writes}) {
      for (BufferRegion& region : *regions) {
        if (const auto it = fresh_.find(region.buffer); it != fresh_.end()) region.buffer = it->second;
      }
    }
    PrimVarMap loop_extents;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      IterVar& iter = block.iter_vars[i];
      const auto it = extents_.find(iter->var);
      if (it == extents_.end()) continue;
      loop_extents.emplace(AsRef<PrimVarNode>(site_.realize->iter_values[i]), it->second);
      iter = Make<IterVarNode>(Range{iter->domain.min, it->second}, iter->var, iter->type);
    }
    BlockRealizeNode realize = *site_.realize;
    realize.block = Make<BlockNode>(std::move(block));
    Stmt stmt = Make<BlockRealizeNode>(std::move(realize));
    for (size_t i = site_.loops.size(); i-- > 0;) {
      ForNode loop = *site_.loops[i];
      if (const auto it = loop_extents.find(loop.var); it != loop_extents.end()) loop.extent = it->second;
      loop.body = std::move(stmt);
      stmt = Make<ForNode>(std::move(loop));
    }
    return stmt;
  }

  ScheduleState& state_;
  const BlockSite& site_;
  const BlockNode& block_;
  std::optional<Reduction> reduction_;
  std::vector<const BufferLoadNode*> factors_;
  PrimVarMap extents_;  // of padded iteration variables
  std::unordered_map<Buffer, std::vector<PrimExpr>, RefHash, RefSame> accesses_;
  BufferMap fresh_;
  std::vector<Buffer> allocated_;
};

}  // namespace

Status PadEinsum(ScheduleState& state, const BlockName& name, const std::vector<int64_t>& multiples) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  if (site.loops.empty()) return Refuse(kName, Describe(site), "it has no loops");
  return Padder(state, site).Run(multiples);
}

}  // namespace ingot::schedule
