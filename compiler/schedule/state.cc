// Finds blocks and loops in the function and replaces statements. The primitives' rules are not here.
#include "compiler/schedule/state.h"

#include <algorithm>

#include "compiler/schedule/widen_indices.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

// Walks from the root through loops, conditions and sequences down to leaf blocks, with the loops around them.
class SiteCollector : public StmtVisitor {
 public:
  std::vector<BlockSite> blocks;
  std::vector<LoopSite> loops;

  void VisitStmt(const Stmt& stmt) override {
    if (auto realize = AsRef<BlockRealizeNode>(stmt)) {
      blocks.push_back({realize, stack_});
      return;  // statements inside of a leaf block are not visited
    }
    if (auto loop = AsRef<ForNode>(stmt)) {
      loops.push_back({loop, stack_});
      stack_.push_back(loop);
      VisitStmt(loop->body);
      stack_.pop_back();
      return;
    }
    StmtVisitor::VisitStmt(stmt);
  }
  void VisitPrim(const PrimExpr&) override {}

 private:
  std::vector<For> stack_;
};

class Replacer : public StmtMutator {
 public:
  Replacer(const StmtNode* old, Stmt replacement) : old_(old), replacement_(std::move(replacement)) {}

  Stmt MutateStmt(const Stmt& stmt) override {
    if (stmt.get() == old_) return replacement_ ? replacement_ : MakeSeq({});
    if (const auto* seq = As<SeqNode>(stmt)) {
      std::vector<Stmt> stmts;
      bool changed = false;
      for (const Stmt& child : seq->stmts) {
        Stmt mutated = MutateStmt(child);
        changed |= !mutated.same_as(child);
        if (!IsEmpty(mutated)) stmts.push_back(std::move(mutated));
      }
      return changed ? MakeSeq(std::move(stmts)) : stmt;
    }
    Stmt result = StmtMutator::MutateStmt(stmt);
    const auto* loop = As<ForNode>(result);
    return loop != nullptr && !result.same_as(stmt) && IsEmpty(loop->body) ? MakeSeq({}) : result;
  }
  PrimExpr MutatePrim(const PrimExpr& expr) override { return expr; }

 private:
  static bool IsEmpty(const Stmt& stmt) {
    const auto* evaluate = As<EvaluateNode>(stmt);
    return evaluate != nullptr && AsConstInt(evaluate->value);
  }
  const StmtNode* old_;
  Stmt replacement_;
};

class VarFinder : public PrimVisitor {
 public:
  explicit VarFinder(const std::vector<PrimVar>& vars) : vars_(vars) {}
  bool found = false;

 protected:
  using PrimVisitor::Visit;
  void Visit(const PrimVarNode& node) override {
    for (const PrimVar& var : vars_) found |= var.get() == &node;
  }

 private:
  const std::vector<PrimVar>& vars_;
};

std::string LoopText(const ForNode& loop) {
  const auto extent = AsConstInt(loop.extent);
  const auto* symbol = As<PrimVarNode>(loop.extent);
  return loop.var->name + " (" +
         (extent              ? std::to_string(*extent)
          : symbol != nullptr ? symbol->name
                              : std::string("symbolic")) +
         ")";
}

bool Mentions(const std::vector<BufferRegion>& regions, const Buffer& buffer) {
  return std::any_of(regions.begin(), regions.end(),
                     [&](const BufferRegion& region) { return region.buffer.same_as(buffer); });
}

// Whether every iteration variable is bound to a loop of its own of the same range, and every loop binds one of them;
// extents of 1 do not count.
bool BindsOneToOne(const BlockSite& site, arith::Analyzer& analyzer) {
  std::unordered_set<const PrimVarNode*> used;
  for (size_t i = 0; i < site.block().iter_vars.size(); ++i) {
    const Range& domain = site.block().iter_vars[i]->domain;
    if (IsConstInt(domain.extent, 1)) continue;
    const auto* var = As<PrimVarNode>(site.realize->iter_values[i]);
    if (var == nullptr || !used.insert(var).second) return false;
    const auto loop =
        std::find_if(site.loops.begin(), site.loops.end(), [&](const For& l) { return l->var.get() == var; });
    if (loop == site.loops.end() || !analyzer.ProveEqual((*loop)->min, domain.min) ||
        !analyzer.ProveEqual((*loop)->extent, domain.extent)) {
      return false;
    }
  }
  return std::all_of(site.loops.begin(), site.loops.end(),
                     [&](const For& loop) { return used.count(loop->var.get()) == 1 || IsConstInt(loop->extent, 1); });
}

bool IsLeaf(const BlockNode& block) {
  return ScheduleState::BlocksIn(block.body).empty() && block.match_buffers.empty() && block.alloc_buffers.empty();
}

}  // namespace

Result<ScheduleState> ScheduleState::Create(PrimFunc function, std::vector<TensorIntrin> intrinsics) {
  const auto* realize = As<BlockRealizeNode>(function->body);
  if (realize == nullptr || !realize->block->iter_vars.empty() || realize->block->init) {
    return Status(StatusCode::kInvalidArgument, "a schedule needs a function whose body is a root block");
  }
  std::optional<PrimFunc> wide = WidenIndices(function);
  if (!wide) {
    return Status(StatusCode::kInvalidArgument,
                  "a schedule counts in int64: a dimension is computed from a scalar parameter of another dtype; "
                  "declare it as T.int64");
  }
  ScheduleState state;
  state.function_ = *std::move(wide);
  state.intrinsics_ = std::move(intrinsics);
  std::unordered_set<std::string> names;
  arith::Analyzer analyzer;
  for (const BlockSite& site : state.Blocks()) {
    BlockSite renamed = site;
    if (names.count(site.block().name) != 0) {
      BlockNode block = site.block();
      for (int n = 1; names.count(block.name) != 0; ++n) block.name = site.block().name + "_" + std::to_string(n);
      BlockRealizeNode copy = *site.realize;
      copy.block = Make<BlockNode>(std::move(block));
      renamed.realize = Make<BlockRealizeNode>(std::move(copy));
      state.Replace(site.realize, renamed.realize);
    }
    names.insert(renamed.block().name);
    const bool alone = renamed.loops.empty() || BlocksIn(renamed.loops.front()).size() == 1;
    if (!alone || !BindsOneToOne(renamed, analyzer) || !IsTrue(site.realize->predicate) || !IsLeaf(renamed.block())) {
      state.irregular_.insert(renamed.block().name);
    }
  }
  return state;
}

const BlockNode& ScheduleState::root() const { return *As<BlockRealizeNode>(function_->body)->block; }

std::vector<BlockSite> ScheduleState::BlocksIn(const Stmt& stmt) {
  SiteCollector collector;
  collector.VisitStmt(stmt);
  return std::move(collector.blocks);
}

Result<BlockSite> ScheduleState::FindBlock(std::string_view name) const {
  std::string known;
  for (BlockSite& site : Blocks()) {
    if (site.block().name == name) return std::move(site);
    known += (known.empty() ? "" : ", ") + site.block().name;
  }
  return Status(StatusCode::kNotFound, "no block \"" + std::string(name) + "\"; the function has " + known);
}

Result<LoopSite> ScheduleState::FindLoop(const PrimVar& var) const {
  SiteCollector collector;
  collector.VisitStmt(body());
  for (LoopSite& site : collector.loops) {
    if (site.loop->var.same_as(var)) return std::move(site);
  }
  return Status(StatusCode::kNotFound, "loop " + var->name + " is gone: a later primitive replaced it");
}

TensorIntrin ScheduleState::FindIntrinsic(std::string_view name) const {
  for (const TensorIntrin& intrin : intrinsics_) {
    if (intrin->name == name) return intrin;
  }
  return FindBuiltinIntrin(name);
}

std::optional<BlockSite> ScheduleState::OnlyWriter(const Buffer& buffer) const {
  std::optional<BlockSite> writer;
  for (BlockSite& site : Blocks()) {
    if (!WritesTo(site.block(), buffer)) continue;
    if (writer) return std::nullopt;
    writer = std::move(site);
  }
  return writer;
}

std::vector<BlockSite> ScheduleState::Readers(const Buffer& buffer) const {
  std::vector<BlockSite> sites = Blocks();
  std::erase_if(sites, [&](const BlockSite& site) { return !ReadsFrom(site.block(), buffer); });
  return sites;
}

bool ScheduleState::IsAllocated(const Buffer& buffer) const {
  return std::any_of(root().alloc_buffers.begin(), root().alloc_buffers.end(),
                     [&](const Buffer& b) { return b.same_as(buffer); });
}

void ScheduleState::SetRoot(BlockNode root) {
  BlockRealizeNode realize = *As<BlockRealizeNode>(function_->body);
  realize.block = Make<BlockNode>(std::move(root));
  PrimFuncNode function = *function_;
  function.body = Make<BlockRealizeNode>(std::move(realize));
  function_ = Make<PrimFuncNode>(std::move(function));
}

void ScheduleState::SetBody(Stmt new_body) {
  BlockNode copy = root();
  copy.body = std::move(new_body);
  SetRoot(std::move(copy));
}

void ScheduleState::Replace(const Stmt& old, Stmt replacement) {
  SetBody(Replacer(old.get(), std::move(replacement)).MutateStmt(body()));
}

void ScheduleState::ReplaceBuffer(const Buffer& old, const Buffer& replacement) {
  BlockNode copy = root();
  copy.body = Substitute(copy.body, {}, {{old, replacement}});
  for (Buffer& buffer : copy.alloc_buffers) {
    if (buffer.same_as(old)) buffer = replacement;
  }
  SetRoot(std::move(copy));
}

void ScheduleState::AddBuffer(Buffer buffer) {
  BlockNode copy = root();
  copy.alloc_buffers.push_back(std::move(buffer));
  SetRoot(std::move(copy));
}

void ScheduleState::RemoveBuffer(const Buffer& buffer) {
  BlockNode copy = root();
  std::erase_if(copy.alloc_buffers, [&](const Buffer& b) { return b.same_as(buffer); });
  SetRoot(std::move(copy));
}

std::string ScheduleState::FreshBlockName(const std::string& hint) const {
  std::unordered_set<std::string> names;
  for (const BlockSite& site : Blocks()) names.insert(site.block().name);
  std::string name = hint;
  for (int n = 1; names.count(name) != 0; ++n) name = hint + "_" + std::to_string(n);
  return name;
}

std::string ScheduleState::FreshBufferName(const std::string& hint) const {
  std::unordered_set<std::string> names;
  for (const Buffer& buffer : root().alloc_buffers) names.insert(buffer->name);
  for (const PrimFuncParam& param : function_->params) {
    if (param.buffer) names.insert(param.buffer->name);
  }
  std::string name = hint;
  for (int n = 1; names.count(name) != 0; ++n) name = hint + "_" + std::to_string(n);
  return name;
}

arith::Analyzer ScheduleState::MakeAnalyzer(const std::vector<For>& loops) {
  arith::Analyzer analyzer;
  for (const For& loop : loops) analyzer.Bind(loop->var, Range{loop->min, loop->extent});
  return analyzer;
}

bool UsesVar(const PrimExpr& expr, const PrimVar& var) { return UsesAnyVar(expr, {var}); }

bool UsesAnyVar(const PrimExpr& expr, const std::vector<PrimVar>& vars) {
  VarFinder finder(vars);
  finder.VisitPrim(expr);
  return finder.found;
}

bool IsTrue(const PrimExpr& condition) { return IsConstInt(condition, 1); }

bool WritesTo(const BlockNode& block, const Buffer& buffer) { return Mentions(block.writes, buffer); }
bool ReadsFrom(const BlockNode& block, const Buffer& buffer) { return Mentions(block.reads, buffer); }

PrimExpr Both(PrimExpr a, PrimExpr b) {
  if (IsTrue(a)) return b;
  if (IsTrue(b)) return a;
  return And(std::move(a), std::move(b));
}

std::string Describe(const BlockSite& site) {
  std::string text = "block \"" + site.block().name + "\"";
  for (size_t i = 0; i < site.loops.size(); ++i) text += (i == 0 ? " under loops " : ", ") + LoopText(*site.loops[i]);
  return text;
}

std::string Describe(const LoopSite& site) {
  std::string text = "loop " + LoopText(*site.loop);
  const std::vector<BlockSite> blocks = ScheduleState::BlocksIn(site.loop->body);
  for (size_t i = 0; i < blocks.size(); ++i) {
    text += (i == 0 ? " around block \"" : "\", \"") + blocks[i].block().name;
  }
  return blocks.empty() ? text : text + "\"";
}

Status Refuse(const std::string& primitive, const std::string& place, const std::string& what) {
  return Status(StatusCode::kInvalidArgument, primitive + ": " + place + ": " + what);
}

}  // namespace ingot::schedule
