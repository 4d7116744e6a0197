// fuse_iters and fuse_einsum: fewer iteration variables. Those of a block come in groups, each of which becomes one
// variable that counts through them, the last one fastest. A variable may be given to two groups as its quotient and its
// remainder by a number, as output channels are group and place in the group.
//
// fuse_einsum makes a sum of products one of matrices: batch and places of a convolution are the columns, its input
// channels and taps the sum. Factors are copied to where the new variables say, with zeros beyond the ranges, which run to
// whole multiples; the result is copied back from a buffer over the new variables. What a factor's indices are does not
// matter, since they are only evaluated in the copy.
#include <algorithm>

#include "compiler/arith/block_util.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/primitives.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr const char* kFuseEinsum = "fuse_einsum";
constexpr const char* kFuseIters = "fuse_iters";

// A variable of the block, or its quotient or remainder by a number.
struct EinsumDigit {
  const IterVarNode* iter;
  int64_t part;  // 0: the variable; d: its quotient by d; -d: its remainder by d
  PrimVar var;
  PrimExpr extent;
};
struct EinsumGroup {
  std::vector<EinsumDigit> digits;
  IterType type = IterType::kSpatial;
  PrimExpr extent, padded;  // without and with the padding
  bool is_padded = false;

  std::string Name() const {
    std::string name;
    for (const EinsumDigit& digit : digits) name += (name.empty() ? "" : "_") + digit.iter->var->name;
    return name;
  }
};

// The groups of a block's iteration variables.
class IterFuser {
 protected:
  IterFuser(const char* primitive, ScheduleState& state, const BlockSite& site)
      : primitive_(primitive), state_(state), site_(site), block_(site.block()) {}

  Status No(const std::string& what) const { return Refuse(primitive_, Describe(site_), what); }

  // The block has a nest of its own, with a loop for each variable; those of one place may have none, and so may loops of
  // one iteration have no variable.
  Status CheckLoops() const {
    constexpr const char* kChanged = "its loops were changed already; fuse first";
    if (!state_.IsRegular(block_.name) || state_.IsRecomputed(block_.name) || !IsTrue(site_.realize->predicate) ||
        ScheduleState::BlocksIn(site_.loops.front()).size() != 1) {
      return No(kChanged);
    }
    size_t bound = 0;
    for (size_t i = 0; i < block_.iter_vars.size(); ++i) {
      const Range& domain = block_.iter_vars[i]->domain;
      const PrimExpr& value = site_.realize->iter_values[i];
      const auto loop = std::find_if(site_.loops.begin(), site_.loops.end(),
                                     [&](const For& candidate) { return candidate->var.get() == value.get(); });
      if (loop != site_.loops.end() && (*loop)->for_kind == ForKind::kSerial && IsConstInt(domain.min, 0)) {
        ++bound;
      } else if (!IsConstInt(domain.extent, 1) || !IsConstInt(value, 0)) {
        return No(kChanged);
      }
    }
    const auto is_unit = [](const For& loop) { return IsConstInt(loop->extent, 1); };
    const auto units = static_cast<size_t>(std::ranges::count_if(site_.loops, is_unit));
    if (site_.loops.size() > bound + units) return No(kChanged);
    return Status();
  }

  Status ReadGroups(const std::vector<int64_t>& iters, const std::vector<int64_t>& parts,
                    const std::vector<int64_t>& sizes, const std::vector<int64_t>& multiples) {
    int64_t total = 0;
    for (const int64_t size : sizes) {
      if (size < 1 || size > static_cast<int64_t>(iters.size()) - total) return No("groups and iterations differ");
      total += size;
    }
    if (total != static_cast<int64_t>(iters.size()) || parts.size() != iters.size()) {
      return No("groups and iterations differ");
    }
    if (multiples.size() != sizes.size() || std::ranges::any_of(multiples, [](int64_t m) { return m < 1; })) {
      return No("give one multiple of at least 1 for each group");
    }
    arith::Analyzer analyzer;
    size_t at = 0;
    for (size_t g = 0; g < sizes.size(); ++g) {
      EinsumGroup group;
      group.extent = Int64(1);
      for (int64_t i = 0; i < sizes[g]; ++i, ++at) {
        if (iters[at] < 0 || iters[at] >= static_cast<int64_t>(block_.iter_vars.size())) {
          return No("it has no iteration " + std::to_string(iters[at]));
        }
        const IterVarNode& iter = *block_.iter_vars[static_cast<size_t>(iters[at])];
        EinsumDigit digit{&iter, parts[at], MakePrimVar(iter.var->name), iter.domain.extent};
        if (digit.part > 0) digit.extent = analyzer.Simplify(FloorDiv(iter.domain.extent, Int64(digit.part)));
        if (digit.part < 0) digit.extent = Int64(-digit.part);
        if (i == 0) group.type = iter.type;
        if (iter.type != group.type) return No("a group is of results and of summands");
        group.extent = group.extent * digit.extent;
        group.digits.push_back(std::move(digit));
      }
      group.extent = analyzer.Simplify(group.extent);
      group.padded =
          analyzer.Simplify(FloorDiv(group.extent + (multiples[g] - 1), Int64(multiples[g])) * Int64(multiples[g]));
      group.is_padded = !analyzer.ProveEqual(group.extent, group.padded);
      groups_.push_back(std::move(group));
    }
    return CheckComplete();
  }

  // Each variable is there once, or as its quotient and its remainder by a number that divides its range.
  Status CheckComplete() {
    arith::Analyzer analyzer;
    for (const IterVar& iter : block_.iter_vars) {
      std::vector<const EinsumDigit*> of;
      for (const EinsumGroup& group : groups_) {
        for (const EinsumDigit& digit : group.digits) {
          if (digit.iter == iter.get()) of.push_back(&digit);
        }
      }
      if (of.size() == 1 && of[0]->part == 0) {
        values_.emplace(iter->var, of[0]->var);
        continue;
      }
      if (of.size() == 2 && of[0]->part < of[1]->part) std::swap(of[0], of[1]);
      const bool is_cut = of.size() == 2 && of[0]->part > 0 && of[1]->part == -of[0]->part &&
                          analyzer.ProveDivisible(iter->domain.extent, of[0]->part);
      if (!is_cut) return No("iteration " + iter->var->name + " is not in one group, nor cut by a divisor into two");
      values_.emplace(iter->var, PrimExpr(of[0]->var) * of[0]->part + PrimExpr(of[1]->var));
    }
    return Status();
  }

  // The values of a group's digits, from its variable.
  static void SetDigits(const EinsumGroup& group, const PrimVar& var, PrimVarMap& values) {
    PrimExpr rest = var;
    size_t first = 0;  // the first that has more than one value
    while (first + 1 < group.digits.size() && IsConstInt(group.digits[first].extent, 1)) ++first;
    for (size_t i = group.digits.size(); i-- > 0;) {
      const EinsumDigit& digit = group.digits[i];
      if (i < first || IsConstInt(digit.extent, 1)) {
        values.emplace(digit.var, Int64(0));
      } else if (i == first) {
        values.emplace(digit.var, rest);
      } else {
        values.emplace(digit.var, FloorMod(rest, digit.extent));
        rest = FloorDiv(rest, digit.extent);
      }
    }
  }

  // The value of a group's variable, from those of the block or from what the map has for them.
  static PrimExpr PlaceOf(const EinsumGroup& group, const PrimVarMap& map = {}) {
    PrimExpr place = Int64(0);
    for (const EinsumDigit& digit : group.digits) {
      const auto mapped = map.find(digit.iter->var);
      const PrimExpr var = mapped != map.end() ? mapped->second : digit.iter->var;
      const PrimExpr value = digit.part > 0   ? FloorDiv(var, Int64(digit.part))
                             : digit.part < 0 ? FloorMod(var, Int64(-digit.part))
                                              : var;
      place = place * digit.extent + value;
    }
    return place;
  }
  // A block of one store around which are loops over the variables.
  Stmt NestOf(BlockNode block, const std::vector<std::string>& loop_names) const {
    std::vector<LoopVar> loops;
    std::vector<PrimExpr> values, extents;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      loops.push_back(MakePrimVar(loop_names[i]));
      values.push_back(loops.back());
      extents.push_back(block.iter_vars[i]->domain.extent);
    }
    arith::ReadWriteRegions regions = arith::GetBlockReadWriteRegions(block.body, block.init);
    block.reads = std::move(regions.reads);
    block.writes = std::move(regions.writes);
    return Nest(loops, extents, Make<BlockRealizeNode>(std::move(values), BoolImm(true), Make<BlockNode>(block)));
  }

  const char* primitive_;
  ScheduleState& state_;
  const BlockSite& site_;
  const BlockNode& block_;
  std::vector<EinsumGroup> groups_;
  PrimVarMap values_;  // of the block's variables, by their digits
};

class EinsumFuser : IterFuser {
 public:
  EinsumFuser(ScheduleState& state, const BlockSite& site) : IterFuser(kFuseEinsum, state, site) {}

  Status Run(const std::vector<int64_t>& iters, const std::vector<int64_t>& parts, const std::vector<int64_t>& sizes,
             const std::vector<int64_t>& multiples) {
    INGOT_RETURN_IF_ERROR(Check());
    INGOT_RETURN_IF_ERROR(ReadGroups(iters, parts, sizes, multiples));
    std::vector<Stmt> all;
    std::vector<PrimExpr> loads;
    for (size_t g = 0; g < groups_.size(); ++g) vars_.push_back(MakePrimVar("v" + groups_[g].Name()));
    for (const BufferLoadNode* factor : *factors_) {
      INGOT_RETURN_IF_ERROR(AddFactor(*factor, all, loads));
    }
    const Buffer out = NewBuffer(reduction_->update->buffer, Spatial());
    size_t next = 0;
    all.push_back(NewNest(out, WithLoads(reduction_->source, loads, next)));
    all.push_back(CopyBack(out));
    state_.Replace(site_.loops.front(), MakeSeq(std::move(all)));
    for (const Buffer& buffer : allocated_) state_.AddBuffer(buffer);
    return Status();
  }

 private:
  Status Check() {
    reduction_ = MatchReduction(block_);
    if (reduction_ && reduction_->op == BinaryOp::kAdd) factors_ = FactorsOfProduct(reduction_->source);
    if (!factors_) return No("it is no sum of products of elements, started at 0");
    INGOT_RETURN_IF_ERROR(CheckLoops());
    // Each instance has an element of its own.
    std::vector<const PrimExprNode*> stored;
    for (const PrimExpr& index : reduction_->update->indices) {
      const bool is_new = std::ranges::find(stored, index.get()) == stored.end();
      if (!IsConstInt(index, 0) && (IterOf(index) == nullptr || !is_new)) {
        return No("its result is not at iteration variables, each once");
      }
      stored.push_back(index.get());
    }
    for (const IterVar& iter : block_.iter_vars) {
      const bool is_stored = std::ranges::find(stored, iter->var.get()) != stored.end();
      if (iter->type == IterType::kSpatial && !is_stored && !IsConstInt(iter->domain.extent, 1)) {
        return No("its result is the same for all of iteration " + iter->var->name);
      }
    }
    return Status();
  }

  const IterVarNode* IterOf(const PrimExpr& index) const {
    for (const IterVar& iter : block_.iter_vars) {
      if (index.get() == iter->var.get()) return iter.get();
    }
    return nullptr;
  }

  std::vector<size_t> Spatial() const {
    std::vector<size_t> spatial;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].type == IterType::kSpatial) spatial.push_back(g);
    }
    return spatial;
  }
  std::vector<PrimExpr> VarsOf(const std::vector<size_t>& groups) const {
    std::vector<PrimExpr> vars;
    for (const size_t g : groups) vars.push_back(vars_[g]);
    return vars;
  }
  Buffer NewBuffer(const Buffer& from, const std::vector<size_t>& groups) {
    std::vector<PrimExpr> shape;
    for (const size_t g : groups) shape.push_back(groups_[g].padded);
    std::string name = state_.FreshBufferName(from->name + "_matrix");
    while (std::ranges::any_of(allocated_, [&](const Buffer& buffer) { return buffer->name == name; })) name += "_";
    allocated_.push_back(MakeBuffer(std::move(name), from->dtype, std::move(shape)));
    return allocated_.back();
  }
  // The copy of a factor over the groups that say where it is read.
  Status AddFactor(const BufferLoadNode& factor, std::vector<Stmt>& copies, std::vector<PrimExpr>& loads) {
    arith::Analyzer analyzer;
    for (const EinsumGroup& group : groups_) {
      for (const EinsumDigit& digit : group.digits) analyzer.Bind(digit.var, Range{Int64(0), digit.extent});
    }
    std::vector<PrimExpr> at;
    for (const PrimExpr& index : factor.indices) at.push_back(analyzer.Simplify(Substitute(index, values_)));
    std::vector<size_t> used;
    PrimVarMap digits;
    PrimExpr inside = BoolImm(true);
    BlockNode block("", {}, {}, {}, nullptr);
    std::vector<std::string> names;
    std::vector<PrimExpr> places;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const EinsumGroup& group = groups_[g];
      const bool uses = std::ranges::any_of(group.digits, [&](const EinsumDigit& digit) {
        return std::ranges::any_of(at, [&](const PrimExpr& index) { return UsesVar(index, digit.var); });
      });
      if (!uses && group.is_padded && group.type == IterType::kReduce) {
        return No("padding its sum needs zeros in every factor, and " + factor.buffer->name + " has none");
      }
      if (!uses) continue;
      used.push_back(g);
      const PrimVar var = MakePrimVar("v" + std::to_string(places.size()));
      block.iter_vars.push_back(Make<IterVarNode>(Range{Int64(0), group.padded}, var, IterType::kSpatial));
      names.push_back("ax" + std::to_string(places.size()));
      places.push_back(var);
      SetDigits(group, var, digits);
      if (group.is_padded) inside = Both(inside, PrimExpr(var) < group.extent);
    }
    if (used.empty()) return No(factor.buffer->name + " is read at one place");
    arith::Analyzer of_copy;
    for (const IterVar& iter : block.iter_vars) of_copy.Bind(iter->var, iter->domain);
    for (PrimExpr& index : at) index = of_copy.Simplify(Substitute(index, digits));
    const Buffer copy = NewBuffer(factor.buffer, used);
    PrimExpr value = Make<BufferLoadNode>(factor.buffer, at);
    if (!IsTrue(inside)) value = IfThenElse(inside, value, MakeConst(factor.buffer->dtype, 0));
    block.name = state_.FreshBlockName(copy->name);
    block.body = Make<BufferStoreNode>(copy, std::move(value), places);
    copies.push_back(NestOf(std::move(block), names));
    loads.push_back(Make<BufferLoadNode>(copy, VarsOf(used)));
    return Status();
  }

  // The product of other loads, in their order.
  static PrimExpr WithLoads(const PrimExpr& expr, const std::vector<PrimExpr>& loads, size_t& next) {
    if (As<BufferLoadNode>(expr) != nullptr) return loads[next++];
    if (const auto* cast = As<CastNode>(expr)) return Cast(cast->dtype, WithLoads(cast->value, loads, next));
    const auto* product = As<BinaryNode>(expr);
    PrimExpr a = WithLoads(product->a, loads, next);
    return MakeBinary(product->op, std::move(a), WithLoads(product->b, loads, next));
  }

  Stmt NewNest(const Buffer& out, const PrimExpr& source) const {
    BlockNode block(block_.name, {}, {}, {}, nullptr);
    std::vector<std::string> names;
    for (size_t g = 0; g < groups_.size(); ++g) {
      block.iter_vars.push_back(Make<IterVarNode>(Range{Int64(0), groups_[g].padded}, vars_[g], groups_[g].type));
      names.push_back(groups_[g].Name());
    }
    const std::vector<PrimExpr> at = VarsOf(Spatial());
    block.body = Make<BufferStoreNode>(out, MakeBinary(BinaryOp::kAdd, Make<BufferLoadNode>(out, at), source), at);
    block.init = Make<BufferStoreNode>(out, reduction_->identity, at);
    return NestOf(std::move(block), names);
  }

  Stmt CopyBack(const Buffer& matrix) const {
    const BufferStoreNode& update = *reduction_->update;
    BlockNode block(state_.FreshBlockName(update.buffer->name), {}, {}, {}, nullptr);
    std::vector<std::string> names;
    PrimVarMap fresh;
    for (const IterVar& iter : block_.iter_vars) {
      if (iter->type != IterType::kSpatial) continue;
      const PrimVar var = MakePrimVar("v" + std::to_string(names.size()));
      fresh.emplace(iter->var, var);
      block.iter_vars.push_back(Make<IterVarNode>(iter->domain, var, IterType::kSpatial));
      names.push_back("ax" + std::to_string(names.size()));
    }
    std::vector<PrimExpr> from, to;
    for (const size_t g : Spatial()) {
      arith::Analyzer analyzer;
      for (const IterVar& iter : block.iter_vars) analyzer.Bind(iter->var, iter->domain);
      from.push_back(groups_[g].digits.size() == 1 && groups_[g].digits[0].part == 0
                         ? PrimExpr(fresh.at(groups_[g].digits[0].iter->var))
                         : analyzer.Simplify(PlaceOf(groups_[g], fresh)));
    }
    for (const PrimExpr& index : update.indices) to.push_back(Substitute(index, fresh));
    block.body = Make<BufferStoreNode>(update.buffer, Make<BufferLoadNode>(matrix, from), to);
    return NestOf(std::move(block), names);
  }

  std::optional<Reduction> reduction_;
  std::optional<std::vector<const BufferLoadNode*>> factors_;
  std::vector<PrimVar> vars_;  // of the new block, one per group
  std::vector<Buffer> allocated_;
};

// Of a block of one store, or of one reduction.
class StoreFuser : IterFuser, StmtMutator {
 public:
  StoreFuser(ScheduleState& state, const BlockSite& site) : IterFuser(kFuseIters, state, site) {}

  Status Run(const std::vector<int64_t>& iters, const std::vector<int64_t>& parts, const std::vector<int64_t>& sizes) {
    INGOT_RETURN_IF_ERROR(CheckLoops());
    const auto* store = As<BufferStoreNode>(block_.body);
    const bool is_spatial =
        std::ranges::all_of(block_.iter_vars, [](const IterVar& iter) { return iter->type == IterType::kSpatial; });
    if (store == nullptr || ((block_.init || !is_spatial) && !MatchReduction(block_))) {
      return No("its body is no plain store, and no reduction by +, *, min or max");
    }
    INGOT_RETURN_IF_ERROR(ReadGroups(iters, parts, sizes, std::vector<int64_t>(sizes.size(), 1)));
    BlockNode block(block_.name, {}, {}, {}, nullptr);
    std::vector<std::string> names;
    PrimVarMap digits;
    for (const IterVar& iter : block_.iter_vars) of_old_.Bind(iter->var, iter->domain);
    for (const EinsumGroup& group : groups_) {
      const PrimVar var = MakePrimVar("v" + group.Name());
      block.iter_vars.push_back(Make<IterVarNode>(Range{Int64(0), group.extent}, var, group.type));
      of_new_.Bind(var, block.iter_vars.back()->domain);
      names.push_back(group.Name());
      SetDigits(group, var, digits);
      places_.push_back({var, PlaceOf(group)});
    }
    for (const auto& [var, value] : values_) new_values_.emplace(var, Substitute(value, digits));
    block.body = Substitute(MutateStmt(block_.body), new_values_);
    if (block_.init) block.init = Substitute(MutateStmt(block_.init), new_values_);
    state_.Replace(site_.loops.front(), NestOf(std::move(block), names));
    return Status();
  }

 protected:
  using StmtMutator::Mutate;
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    BufferLoadNode copy = *AsRef<BufferLoadNode>(StmtMutator::Mutate(load));
    for (PrimExpr& index : copy.indices) index = NewIndex(index);
    return Make<BufferLoadNode>(std::move(copy));
  }
  Stmt Mutate(const Ref<BufferStoreNode>& store) override {
    BufferStoreNode copy = *AsRef<BufferStoreNode>(StmtMutator::Mutate(store));
    for (PrimExpr& index : copy.indices) index = NewIndex(index);
    return Make<BufferStoreNode>(std::move(copy));
  }

 private:
  // What counts through a group as its variable does is the variable; with symbolic extents that cannot be seen from its
  // digits.
  PrimExpr NewIndex(const PrimExpr& index) {
    for (const auto& [var, place] : places_) {
      if (!AsConstInt(index) && of_old_.ProveEqual(index, place)) return var;
    }
    return of_new_.Simplify(Substitute(index, new_values_));
  }

  arith::Analyzer of_old_, of_new_;
  std::vector<std::pair<PrimVar, PrimExpr>> places_;  // of the groups
  PrimVarMap new_values_;                             // of the block's variables, by the groups'
};

}  // namespace

Status FuseIters(ScheduleState& state, const BlockName& name, const std::vector<int64_t>& iters,
                 const std::vector<int64_t>& parts, const std::vector<int64_t>& sizes) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  if (site.loops.empty()) return Refuse(kFuseIters, Describe(site), "it has no loops");
  return StoreFuser(state, site).Run(iters, parts, sizes);
}

Status FuseEinsum(ScheduleState& state, const BlockName& name, const std::vector<int64_t>& iters,
                  const std::vector<int64_t>& parts, const std::vector<int64_t>& sizes,
                  const std::vector<int64_t>& multiples) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  if (site.loops.empty()) return Refuse(kFuseEinsum, Describe(site), "it has no loops");
  return EinsumFuser(state, site).Run(iters, parts, sizes, multiples);
}

}  // namespace ingot::schedule
