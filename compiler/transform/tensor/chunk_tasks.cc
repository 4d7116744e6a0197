// Before: an iteration of a parallel loop may be as much work as symbols say, from a few operations to millions. After:
// where it is, a task runs several iterations in turn, as many as make the task worth its start at the sizes of the
// call, and a loop that is too little work for several threads is one task.
//
//   for i in parallel(E): body     =>     let worth = iterations that cost kMinParallelCost
//                                         let chunk = max(1, E if E < worth else (worth + 3) // 4)
//                                         for task in parallel((E + chunk - 1) // chunk):
//                                           for i in range(min(chunk, E - task * chunk)):
//                                             body, with task * chunk + i in place of i
//
// What an iteration costs is taken for a multiple of what it stores where it stores most: kMinParallelCost is divided by
// the extents of the loops around that, one by one and rounding up, so that nothing overflows. Loops whose work constants
// say were cut by the rules that made them (schedule/rules/analysis.h). Buffers have their places by now: those of a task
// keep one for each iteration.
#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/rules/analysis.h"
#include "compiler/transform/tensor/passes.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

// How often the store that writes most in a parallel loop's body runs, and what all of them do together.
class WorkFinder : public StmtVisitor {
 public:
  explicit WorkFinder(const PrimVar& var) { defined_.insert(var.get()); }

  std::vector<PrimExpr> extents;  // of the loops around that store that are no constants
  // Elementary operations for each time that those loops run the store, where every such extent is the likely one.
  int64_t Operations() const {
    return static_cast<int64_t>(std::clamp<double>(all_ / rounds_, 1, schedule::kMinParallelCost));
  }

  void VisitPrim(const PrimExpr& expr) override {
    constexpr int kCostOfCall = 10;  // exp and the like
    if (As<PrimVarNode>(expr) == nullptr && As<IntImmNode>(expr) == nullptr) {
      all_ += times_ * expr->dtype.lanes * (As<PrimCallNode>(expr) != nullptr ? kCostOfCall : 1);
    }
    StmtVisitor::VisitPrim(expr);
  }

 protected:
  using StmtVisitor::Visit;
  void Visit(const BufferStoreNode& store) override {
    StmtVisitor::Visit(store);
    const double elements = times_ * store.value->dtype.lanes;
    if (elements <= most_) return;
    most_ = elements;
    rounds_ = around_rounds_;
    extents = around_;
  }
  void Visit(const ForNode& loop) override {
    const double outside = times_, outside_rounds = around_rounds_;
    const size_t depth = around_.size();
    const auto extent = AsConstInt(loop.extent);
    const int64_t likely = extent.value_or(std::min(analyzer_.Bounds(loop.extent).max, schedule::kLikelyExtent));
    times_ *= static_cast<double>(std::max<int64_t>(likely, 1));
    // What changes inside of the task cannot be asked before it starts.
    if (!extent && !MentionsAny(loop.extent, defined_) && !ReadsMemory(loop.extent) &&
        !MayDivideByZero(loop.extent, analyzer_)) {
      around_.push_back(loop.extent);
      around_rounds_ *= static_cast<double>(std::max<int64_t>(likely, 1));
    }
    defined_.insert(loop.var.get());
    StmtVisitor::Visit(loop);
    times_ = outside, around_rounds_ = outside_rounds;
    around_.resize(depth);
  }
  void Visit(const WhileNode& loop) override {
    const double outside = std::exchange(times_, times_ * schedule::kLikelyExtent);
    StmtVisitor::Visit(loop);
    times_ = outside;
  }
  void VisitDefinition(const PrimVar& var) override { defined_.insert(var.get()); }

 private:
  arith::Analyzer analyzer_;
  std::unordered_set<const PrimVarNode*> defined_;  // in the task
  std::vector<PrimExpr> around_;
  double around_rounds_ = 1, rounds_ = 1;  // of around_ and of extents, where all are likely
  double times_ = 1, most_ = 0, all_ = 0;
};

class TaskChunker : public StmtMutator {
 protected:
  using StmtMutator::Mutate;
  Stmt Mutate(const Ref<ForNode>& loop) override {
    if (loop->for_kind != ForKind::kParallel) return StmtMutator::Mutate(loop);
    WorkFinder finder(loop->var);
    finder.VisitStmt(loop->body);
    const bool is_one_task = IsConstInt(loop->extent, 1) || !IsConstInt(loop->min, 0);
    if (finder.extents.empty() || is_one_task || loop->var->dtype != DataType::Int(64)) return loop;
    return Chunked(*loop, finder);
  }

 private:
  static PrimExpr CeilDiv(const PrimExpr& a, const PrimExpr& b) { return FloorDiv(a + b - Int64(1), b); }

  static Stmt Chunked(const ForNode& loop, const WorkFinder& work) {
    PrimExpr enough = Int64((schedule::kMinParallelCost - 1) / work.Operations() + 1);
    for (const PrimExpr& extent : work.extents) {
      if (!IsConstInt(enough, 1)) enough = CeilDiv(enough, Max(extent, Int64(1)));
    }
    constexpr int64_t kFewestTasks = schedule::kMinParallelCost / schedule::kMinTaskCost;
    const PrimVar worth = MakePrimVar(loop.var->name + "_worth", DataType::Int(64));
    const PrimVar chunk = MakePrimVar(loop.var->name + "_chunk", DataType::Int(64));
    const PrimVar task = MakePrimVar(loop.var->name + "_task", DataType::Int(64));
    const PrimExpr first = PrimExpr(task) * chunk;
    Stmt body = Substitute(loop.body, {{loop.var, first + PrimExpr(loop.var)}});
    body = Make<ForNode>(loop.var, Int64(0), Min(chunk, loop.extent - first), ForKind::kSerial, std::move(body));
    ForNode tasks = loop;
    tasks.var = task;
    tasks.extent = CeilDiv(loop.extent, chunk);
    tasks.body = std::move(body);
    const PrimExpr size = Select(loop.extent < PrimExpr(worth), loop.extent, CeilDiv(worth, Int64(kFewestTasks)));
    Stmt result = Make<LetStmtNode>(chunk, Max(size, Int64(1)), Make<ForNode>(std::move(tasks)));
    return Make<LetStmtNode>(worth, enough, std::move(result));
  }
};

}  // namespace

Result<PrimFunc> ChunkTasks(const PrimFunc& function, const Target&) {
  return WithBody(function, TaskChunker().MutateStmt(function->body));
}

}  // namespace ingot::transform
