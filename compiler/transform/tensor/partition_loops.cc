// Before: conditions (a tile's predicate, the border of a padding) may depend on loop variables. After: if such a
// comparison is linear in a serial loop's variable, the loop is split into the iterations in which all comparisons hold
// for every inner iteration, without the conditions, and the iterations before and after, which keep them. If all
// comparisons certainly fail in a remaining part, they are false there, so that the predicate of a last, shorter chunk
// becomes its loop's extent. Iterations in which a comparison fails for every inner iteration, and nothing is left to do
// then, are left out. It comes before vectorisation, so that the long middle part is plain vectors, and works
// from the inside out. The parts share large local buffers, since all copies of a kernel's buffers are on the stack
// together, and what the threads of a block share.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "compiler/arith/linear_bound.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/fresh_copy.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/device_loops.h"
#include "compiler/schedule/region.h"
#include "compiler/transform/tensor/passes.h"
#include "compiler/transform/tensor/range_mutator.h"
#include "compiler/transform/tensor/reads.h"

namespace ingot::transform {

using namespace ir;  // NOLINT
using schedule::InnerVar;

namespace {

// A body with more statements is not copied for the sake of a condition. It may still lose one that fails in all
// iterations but the first ones.
constexpr int kMaxCopiedStatements = 64;
// Smaller buffers are copied with the body: they are kept in registers, which accesses from several loops would
// prevent.
constexpr int64_t kSmallBufferBytes = 4 << 10;

// Comparisons that guard an If or an if_then_else (one by one if And joins them), with the loops between. What mentions
// the variable of a let inside of the loop means nothing around it, and what the loop stores is not the same around it.
struct Guard {
  PrimExpr comparison;
  std::vector<InnerVar> inner;
  bool is_of_statement;
};
class GuardCollector : public StmtVisitor {
 public:
  std::vector<Guard> guards;
  int statements = 0;

  void Collect(const Stmt& body) {
    VisitStmt(body);
    std::erase_if(guards, [&](const Guard& guard) { return ReadsAnyOf(guard.comparison, stored_); });
  }

  void VisitStmt(const Stmt& stmt) override {
    ++statements;
    StmtVisitor::VisitStmt(stmt);
  }

 protected:
  using StmtVisitor::Visit;
  void Visit(const ForNode& loop) override {
    inner_.push_back({loop.var, loop.min, loop.extent});
    StmtVisitor::Visit(loop);
    inner_.pop_back();
  }
  void Visit(const BufferStoreNode& store) override {
    stored_.insert(store.buffer->data.get());
    StmtVisitor::Visit(store);
  }
  void Visit(const IfStmtNode& node) override {
    Add(node.condition, true);
    StmtVisitor::Visit(node);
  }
  void Visit(const PrimCallNode& call) override {
    if (call.op == Intrinsic::kIfThenElse) Add(call.args[0], false);
    StmtVisitor::Visit(call);
  }
  void Visit(const LetNode& let) override {
    lets_.insert(let.var.get());
    StmtVisitor::Visit(let);
  }
  void Visit(const LetStmtNode& let) override {
    lets_.insert(let.var.get());
    StmtVisitor::Visit(let);
  }

 private:
  void Add(const PrimExpr& condition, bool is_of_statement) {
    for (const PrimExpr& part : ConjunctsOf(condition)) {
      if (As<BinaryNode>(part) != nullptr && !MentionsAny(part, lets_))
        guards.push_back({part, inner_, is_of_statement});
    }
  }
  std::vector<InnerVar> inner_;
  std::unordered_set<const PrimVarNode*> lets_, stored_;  // stored_: data variables
};

class ComparisonReplacer : public StmtMutator {
 public:
  ComparisonReplacer(const std::unordered_set<const PrimExprNode*>& comparisons, bool value)
      : comparisons_(comparisons), value_(value) {}
  PrimExpr MutatePrim(const PrimExpr& expr) override {
    if (comparisons_.count(expr.get()) != 0) return BoolImm(value_);
    return StmtMutator::MutatePrim(expr);
  }

 protected:
  using StmtMutator::Mutate;
  Stmt Mutate(const Ref<IfStmtNode>& node) override {  // so that later passes see what it guards
    const Stmt mutated = StmtMutator::Mutate(node);
    const auto* decided = As<IfStmtNode>(mutated);
    const std::optional<int64_t> value = decided != nullptr ? AsConstInt(decided->condition) : std::nullopt;
    if (!value) return mutated;
    if (*value != 0) return decided->then_case;
    return decided->else_case ? decided->else_case : MakeSeq({});
  }

 private:
  const std::unordered_set<const PrimExprNode*>& comparisons_;
  bool value_;
};

// Moves the allocations of large local buffers, and of shared ones, out of a serial loop's body; those of inner parallel
// tasks stay.
class LargeBufferHoister : public StmtMutator {
 public:
  std::vector<Buffer> buffers;

 protected:
  using StmtMutator::Mutate;
  Stmt Mutate(const Ref<AllocateNode>& allocate) override {
    if (!IsLarge(*allocate->buffer)) return StmtMutator::Mutate(allocate);
    buffers.push_back(allocate->buffer);
    return MutateStmt(allocate->body);
  }
  Stmt Mutate(const Ref<ForNode>& loop) override {
    return loop->for_kind == ForKind::kSerial ? StmtMutator::Mutate(loop) : Stmt(loop);
  }

 private:
  static bool IsLarge(const BufferNode& buffer) {
    if (buffer.scope == "shared") return true;
    if (buffer.scope != "local") return false;
    int64_t elements = 1;
    for (const PrimExpr& extent : buffer.shape) {
      const auto constant = AsConstInt(extent);
      if (!constant || __builtin_mul_overflow(elements, *constant, &elements)) return false;
    }
    const Result<int64_t> bytes = buffer.dtype.SizeBytes(elements);
    return bytes.ok() && *bytes > kSmallBufferBytes;
  }
};

// Whether the statement stores, checks or calls anything. An empty statement evaluates a constant.
bool HasEffects(const Stmt& stmt) {
  struct Finder : StmtVisitor {
    using StmtVisitor::Visit;
    void Visit(const BufferStoreNode&) override { found = true; }
    void Visit(const EvaluateNode& node) override { found |= !AsConstInt(node.value); }
    void Visit(const AssertStmtNode&) override { found = true; }
    bool found = false;
  };
  Finder finder;
  finder.VisitStmt(stmt);
  return finder.found;
}

// Around loops over threads, each iteration is launches: how many there are is known before any element is.
bool HasThreads(const Stmt& stmt) {
  struct Finder : StmtVisitor {
    using StmtVisitor::Visit;
    void Visit(const ForNode& loop) override {
      found |= loop.for_kind == ForKind::kThreadBinding;
      StmtVisitor::Visit(loop);
    }
    bool found = false;
  };
  Finder finder;
  finder.VisitStmt(stmt);
  return finder.found;
}

// The iterations [low, high) of a loop in which a comparison holds; an absent bound is the loop's own.
struct Held {
  std::optional<PrimExpr> low, high;
  PrimExpr any;        // beyond this bound it holds for no inner iteration
  bool exact = false;  // that is the same bound
};

class LoopPartitioner : public RangeMutator {
 protected:
  using RangeMutator::Mutate;
  Stmt Mutate(const Ref<ForNode>& loop) override {
    analyzer_.Bind(loop->var, Range{loop->min, loop->extent});
    const bool was_in_threads =
        std::exchange(is_in_threads_, is_in_threads_ || loop->for_kind == ForKind::kThreadBinding);
    const Stmt mutated = StmtMutator::Mutate(loop);
    is_in_threads_ = was_in_threads;
    const auto* node = As<ForNode>(mutated);
    if (node->for_kind != ForKind::kSerial || schedule::IsDeviceLoop(*node) || schedule::IsAmxProduct(*node)) {
      return mutated;
    }
    GuardCollector collector;
    collector.Collect(node->body);
    if (!is_in_threads_ && HasThreads(node->body)) {
      std::erase_if(collector.guards, [](const Guard& guard) { return ReadsMemory(guard.comparison); });
    }
    if (collector.guards.empty()) return mutated;
    return Partition(*node, collector.guards, collector.statements <= kMaxCopiedStatements);
  }

 private:
  Stmt Partition(const ForNode& loop, const std::vector<Guard>& guards, bool may_copy) {
    std::unordered_set<const PrimExprNode*> held, kept;
    std::vector<std::optional<Held>> ranges;
    for (const Guard& guard : guards) {  // one node may guard several places, under different inner loops
      ranges.push_back(Solve(guard, loop.var));
      if (!ranges.back()) kept.insert(guard.comparison.get());
    }
    PrimExpr low = Int64(0), high = loop.extent;
    std::optional<PrimExpr> only_high;  // the common upper bound of all exact comparisons
    bool shared = true;
    for (size_t i = 0; i < guards.size(); ++i) {
      const std::optional<Held>& range = ranges[i];
      if (kept.count(guards[i].comparison.get()) != 0) continue;
      held.insert(guards[i].comparison.get());
      if (range->low) low = Max(low, *range->low);
      if (range->high) high = Min(high, *range->high);
      shared &= range->high && range->exact && (!only_high || analyzer_.ProveEqual(*only_high, *range->high));
      if (range->high) only_high = range->high;
    }
    if (held.empty()) return Make<ForNode>(loop);
    // 0 <= first <= last <= extent
    const PrimExpr first = analyzer_.Simplify(Min(low, loop.extent));
    const PrimExpr last = analyzer_.Simplify(Max(first, high));
    LargeBufferHoister hoister;
    const Stmt body = hoister.MutateStmt(loop.body);
    const Stmt middle = ComparisonReplacer(held, true).MutateStmt(body);
    const Stmt after = shared ? ComparisonReplacer(held, false).MutateStmt(body) : body;
    // In each iteration before `first` one of the lower bounds fails, in each one from `last` on one of the upper ones.
    bool nothing_before = true, nothing_behind = true;
    PrimExpr begin = Int64(0), end = loop.extent;
    for (size_t i = 0; i < guards.size(); ++i) {
      const std::optional<Held>& range = ranges[i];
      const PrimExprNode* comparison = guards[i].comparison.get();
      if (held.count(comparison) == 0 || kept.count(comparison) != 0) continue;
      const bool is_needed =
          guards[i].is_of_statement && !HasEffects(ComparisonReplacer({comparison}, false).MutateStmt(body));
      (range->low ? nothing_before : nothing_behind) &= is_needed && range->exact;
      if (is_needed && range->low) begin = Max(begin, range->any);
      if (is_needed && range->high) end = Min(end, range->any);
    }
    const bool starts_there = nothing_before || analyzer_.ProveLessEqual(first, Int64(0));
    const bool ends_there = nothing_behind || !HasEffects(after);
    if (!may_copy && !(starts_there && ends_there)) return Make<ForNode>(loop);
    begin = analyzer_.Simplify(Min(begin, first));
    end = analyzer_.Simplify(Max(end, last));
    std::vector<Stmt> parts;
    if (!starts_there) AddPart(parts, loop, body, begin, first);
    AddPart(parts, loop, middle, first, last);
    if (!ends_there) AddPart(parts, loop, after, last, end);
    Stmt whole = MakeSeq(std::move(parts));
    for (const Buffer& buffer : hoister.buffers) whole = Make<AllocateNode>(buffer, std::move(whole));
    return whole;
  }

  void AddPart(std::vector<Stmt>& parts, const ForNode& loop, const Stmt& body, const PrimExpr& begin,
               const PrimExpr& end) {
    const PrimExpr extent = analyzer_.Simplify(end - begin);
    if (analyzer_.ProveLessEqual(extent, Int64(0))) return;
    ForNode copy = loop;
    copy.var = MakePrimVar(loop.var->name, loop.var->dtype);
    copy.extent = extent;
    copy.body = CopyFresh(Substitute(body, {{loop.var, begin + PrimExpr(copy.var)}}));
    parts.push_back(Make<ForNode>(std::move(copy)));
  }

  // The comparison is difference >= 0 with difference = c * var + rest. With rest_min, the least value of rest over the
  // inner loops, it holds for all inner iterations where c * var >= -rest_min.
  std::optional<Held> Solve(const Guard& guard, const PrimVar& var) {
    const std::optional<arith::LinearBound> bound = arith::BoundOf(guard.comparison, var, analyzer_);
    if (!bound || bound->rest->dtype != DataType::Int(64)) return std::nullopt;
    const std::optional<schedule::Span1D> rest = schedule::RelaxExpr(bound->rest, guard.inner, analyzer_);
    if (!rest) return std::nullopt;
    // The extent of an inner loop may depend on other loops, also on this one.
    for (const PrimVar& used : FreePrimVars(rest->min + rest->span)) {
      const bool inner =
          std::any_of(guard.inner.begin(), guard.inner.end(), [&](const InnerVar& i) { return used.same_as(i.var); });
      if (inner || used.same_as(var)) return std::nullopt;
    }
    const bool exact = IsConstInt(rest->span, 0);
    const PrimExpr place = analyzer_.Simplify(bound->PlaceFor(rest->min));
    const PrimExpr any = exact ? place : analyzer_.Simplify(bound->PlaceFor(rest->min + rest->span));
    if (bound->holds_after()) return Held{place, std::nullopt, any, exact};
    return Held{std::nullopt, place, any, exact};
  }

  bool is_in_threads_ = false;
};

}  // namespace

Result<PrimFunc> PartitionLoops(const PrimFunc& function, const Target&) {
  return WithBody(function, LoopPartitioner().MutateStmt(function->body));
}

}  // namespace ingot::transform
