// Before: on CUDA, a part of the function that no schedule bound (blocks of several statements, loops that were never in
// blocks) is loops of any kind. After: every part is inside of thread-bound loops, and no loop is parallel. On a CPU the
// function stays as it is. It comes before buffers are placed, since that gives each thread and each block their own.
//
// A part runs in one of three ways; the one that takes the least time by a count of its operations is chosen:
//   a grid of threads  its outermost loops have independent iterations: each is a thread, which does the rest in order;
//   a grid of blocks   the same, but each iteration is a block of threads, which share what is independent inside of it;
//   one block          the threads of a single block share what is independent inside of the part.
// Within a block, loops of independent iterations are spread over the threads, one thread does any other statement, and
// the loops, conditions and allocations around these are run by all threads alike. There, several loops over threadIdx.x
// follow each other, inside of serial loops too: code generation has the threads wait for each other behind each
// (codegen/cuda_launches). A serial loop around nests that were bound to blocks stays around their launches. What a condition or an extent around such loops reads, the part does not write. Parts of one
// block that follow each other become one. In a nest of which a schedule bound some statements to the threads of a block,
// one thread does the others, but reductions of what they have (cross_threads).
#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"
#include "compiler/target/cuda.h"
#include "compiler/transform/tensor/cross_threads.h"
#include "compiler/transform/tensor/independent_loops.h"
#include "compiler/transform/tensor/passes.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

// What a count of operations assumes: iterations of a loop of symbolic extent or of a While, threads and blocks that run
// at once, and the time for which a block's threads wait for each other.
constexpr double kUnknownExtent = 56, kThreadsAtOnce = 16384, kBlocksAtOnce = 128, kWait = 30;
constexpr int64_t kMostThreads = 8 * kCudaWarpThreads;

double ExtentOf(const ForNode& loop) {
  const auto extent = AsConstInt(loop.extent);
  return extent ? static_cast<double>(*extent) : kUnknownExtent;
}

// The operations of a statement, one after the other.
class OperationCounter : public StmtVisitor {
 public:
  static double Of(const Stmt& stmt) {
    OperationCounter counter;
    counter.VisitStmt(stmt);
    return counter.count_;
  }
  void VisitPrim(const PrimExpr& expr) override {
    ++count_;
    PrimVisitor::VisitPrim(expr);
  }

 protected:
  using StmtVisitor::Visit;
  void Visit(const ForNode& loop) override { Times(ExtentOf(loop), loop.body); }
  void Visit(const WhileNode& loop) override { Times(kUnknownExtent, loop.body); }

 private:
  void Times(double times, const Stmt& body) { count_ += 1 + times * Of(body); }
  double count_ = 0;
};

// The buffers that a statement stores to, and whether it has loops that are bound to threads.
struct StoreFinder : StmtVisitor {
  std::unordered_set<const PrimVarNode*> stored;
  bool has_threads = false;
  using StmtVisitor::Visit;
  void Visit(const BufferStoreNode& store) override {
    stored.insert(store.buffer->data.get());
    StmtVisitor::Visit(store);
  }
  void Visit(const ForNode& loop) override {
    has_threads |= loop.for_kind == ForKind::kThreadBinding;
    StmtVisitor::Visit(loop);
  }
};

class Serialiser : public StmtMutator {
 protected:
  using StmtMutator::Mutate;
  Stmt Mutate(const Ref<ForNode>& loop) override {
    const Stmt mutated = StmtMutator::Mutate(loop);
    if (loop->for_kind != ForKind::kParallel) return mutated;
    ForNode copy = *As<ForNode>(mutated);
    copy.for_kind = ForKind::kSerial;
    return Make<ForNode>(std::move(copy));
  }
};

// An extent below 0, as that of a walk over pairs of nothing, is none.
PrimExpr Iterations(const PrimExpr& extent, arith::Analyzer& analyzer) {
  return analyzer.ProveLessEqual(Int64(0), extent) ? extent : Max(extent, Int64(0));
}

// Nested loops of independent iterations, outermost first.
struct LoopChain {
  std::vector<const ForNode*> loops;
  Stmt body;
  PrimExpr extent = Int64(1);  // iterations of all of them
  double count = 1;            // the same, as likely

  // The body in the iteration of this number.
  Stmt BodyAt(const PrimExpr& number) const {
    PrimVarMap places;
    PrimExpr rest = number;
    for (size_t i = loops.size(); i-- > 0;) {
      places.emplace(loops[i]->var, i == 0 ? rest : FloorMod(rest, loops[i]->extent));
      rest = FloorDiv(rest, loops[i]->extent);
    }
    return Substitute(body, places);
  }
};

Stmt ThreadLoop(const PrimVar& var, PrimExpr extent, Stmt body, const char* axis) {
  return Make<ForNode>(var, Int64(0), std::move(extent), ForKind::kThreadBinding, std::move(body), axis);
}

Stmt ByFirstThread(Stmt stmt, int64_t threads) {
  const PrimVar thread = MakePrimVar("t");
  if (threads > 1) stmt = Make<IfStmtNode>(PrimExpr(thread) < Int64(1), std::move(stmt), nullptr);
  return ThreadLoop(thread, Int64(threads), std::move(stmt), "threadIdx.x");
}

// A block's share of a part: its statements with loops over the threads.
class BlockBody {
 public:
  // `analyzer` knows what stands around the statement.
  BlockBody(const Stmt& stmt, const arith::Analyzer& analyzer) : stmt_(stmt), analyzer_(analyzer) {
    StoreFinder finder;
    finder.VisitStmt(stmt);
    stored_ = std::move(finder.stored);
    threads_ = kMostThreads;
    const Made made = Share(stmt);
    cost_ = made.cost;
    if (!made.is_shared) most_iterations_ = 1;
  }

  double cost() const { return cost_; }
  bool is_shared() const { return most_iterations_ > 1; }
  Stmt Build() {
    threads_ = 1;
    if (is_shared()) {
      const double warps = std::ceil(most_iterations_ / static_cast<double>(kCudaWarpThreads));
      threads_ = kCudaWarpThreads * static_cast<int64_t>(std::min(warps, double{kMostThreads / kCudaWarpThreads}));
    }
    const Made made = Share(stmt_);
    return made.is_shared ? made.stmt : ByOneThread(stmt_);
  }

 private:
  // A statement for all threads; null where no part of it is shared by them.
  struct Made {
    Stmt stmt;
    double cost;
    bool is_shared = false;
  };

  Made Share(const Stmt& stmt) {
    if (const auto* seq = As<SeqNode>(stmt)) return ShareSeq(*seq);
    if (const auto* loop = As<ForNode>(stmt)) return ShareLoop(stmt, *loop);
    if (const auto* allocate = As<AllocateNode>(stmt)) {
      return Around(stmt, allocate->body, [&](Stmt body) {
        return Make<AllocateNode>(allocate->buffer, std::move(body), allocate->annotations);
      });
    }
    if (const auto* let = As<LetStmtNode>(stmt); let != nullptr && IsUniform(let->value)) {
      analyzer_.Bind(let->var, arith::Interval::Everything());
      return Around(stmt, let->body,
                    [&](Stmt body) { return Make<LetStmtNode>(let->var, let->value, std::move(body)); });
    }
    if (const auto* assertion = As<AssertStmtNode>(stmt); assertion != nullptr && IsUniform(assertion->condition)) {
      return Around(stmt, assertion->body, [&](Stmt body) {
        AssertStmtNode copy = *assertion;
        copy.body = std::move(body);
        return Make<AssertStmtNode>(std::move(copy));
      });
    }
    if (const auto* guard = As<IfStmtNode>(stmt); guard != nullptr && IsUniform(guard->condition)) {
      return ShareIf(stmt, *guard);
    }
    return {nullptr, OperationCounter::Of(stmt)};
  }

  template <typename Wrap>
  Made Around(const Stmt& stmt, const Stmt& body, const Wrap& wrap) {
    Made made = Share(body);
    if (!made.is_shared) return {nullptr, OperationCounter::Of(stmt)};
    return {wrap(std::move(made.stmt)), made.cost + 1, true};
  }
  Made ShareSeq(const SeqNode& seq) {
    Made all{nullptr, 0};
    std::vector<Stmt> parts, of_one;
    const auto flush = [&] {
      if (!of_one.empty()) parts.push_back(ByOneThread(MakeSeq(std::exchange(of_one, {}))));
    };
    for (const Stmt& stmt : seq.stmts) {
      Made made = Share(stmt);
      all.cost += made.cost;
      all.is_shared |= made.is_shared;
      if (!made.is_shared) {
        of_one.push_back(stmt);
        continue;
      }
      flush();
      parts.push_back(std::move(made.stmt));
    }
    flush();
    if (all.is_shared) all.stmt = MakeSeq(std::move(parts));
    return all;
  }
  Made ShareIf(const Stmt& stmt, const IfStmtNode& guard) {
    Made then = Share(guard.then_case);
    Made otherwise{nullptr, 0};
    if (guard.else_case) otherwise = Share(guard.else_case);
    if (!then.is_shared && !otherwise.is_shared) return {nullptr, OperationCounter::Of(stmt)};
    if (!then.is_shared) then.stmt = ByOneThread(guard.then_case);
    if (guard.else_case && !otherwise.is_shared) otherwise.stmt = ByOneThread(guard.else_case);
    return {Make<IfStmtNode>(guard.condition, then.stmt, otherwise.stmt), std::max(then.cost, otherwise.cost) + 1,
            true};
  }
  Made ShareLoop(const Stmt& stmt, const ForNode& loop) {
    if (loop.for_kind == ForKind::kThreadBinding || !IsUniform(loop.extent))
      return {nullptr, OperationCounter::Of(stmt)};
    const LoopChain chain = ChainOf(stmt, analyzer_, [&](const PrimExpr& extent) { return IsUniform(extent); });
    const double chained = chain.loops.empty() || chain.count <= 1
                               ? HUGE_VAL
                               : kWait + OperationCounter::Of(chain.body) * std::ceil(chain.count / double(threads_));
    const arith::Analyzer outside = analyzer_;
    analyzer_.Bind(loop.var, Range{loop.min, loop.extent});
    const double most = most_iterations_;
    Made inner{nullptr, HUGE_VAL};
    if (loop.for_kind == ForKind::kSerial || loop.for_kind == ForKind::kParallel) inner = Share(loop.body);
    analyzer_ = outside;
    inner.cost = inner.is_shared ? 1 + ExtentOf(loop) * inner.cost : HUGE_VAL;
    const double alone = OperationCounter::Of(stmt);
    if (std::min(chained, inner.cost) >= alone) {
      most_iterations_ = most;
      return {nullptr, alone};
    }
    if (inner.cost < chained) {
      ForNode copy = loop;
      copy.for_kind = ForKind::kSerial;
      copy.body = std::move(inner.stmt);
      return {Make<ForNode>(std::move(copy)), inner.cost, true};
    }
    most_iterations_ = std::max(most, AsConstInt(chain.extent) ? chain.count : double{kMostThreads});
    return {Spread(chain), chained, true};
  }

  // Iterations t, t + threads, t + 2 * threads, ... by thread t.
  Stmt Spread(const LoopChain& chain) const {
    const PrimVar thread = MakePrimVar("t");
    const PrimExpr extent = chain.extent;
    const auto count = AsConstInt(extent);
    if (count && *count <= threads_) {
      Stmt body = chain.BodyAt(thread);
      if (*count < threads_) body = Make<IfStmtNode>(PrimExpr(thread) < extent, std::move(body), nullptr);
      return OverThreads(thread, std::move(body));
    }
    const PrimVar round = MakePrimVar("round");
    const PrimExpr rounds = FloorDiv(extent - thread + (threads_ - 1), Int64(threads_));
    return OverThreads(thread, Make<ForNode>(round, Int64(0), rounds, ForKind::kSerial,
                                             chain.BodyAt(PrimExpr(round) * threads_ + thread)));
  }
  Stmt ByOneThread(Stmt stmt) const { return ByFirstThread(std::move(stmt), threads_); }
  Stmt OverThreads(const PrimVar& thread, Stmt body) const {
    return ThreadLoop(thread, Int64(threads_), std::move(body), "threadIdx.x");
  }

  // Whether all threads find the same value, whenever they compute it.
  bool IsUniform(const PrimExpr& expr) const {
    struct Loads : PrimVisitor {
      const std::unordered_set<const PrimVarNode*>* stored = nullptr;
      bool found = false;
      using PrimVisitor::Visit;
      void Visit(const BufferLoadNode& load) override {
        found |= stored->contains(load.buffer->data.get());
        PrimVisitor::Visit(load);
      }
    } loads;
    loads.stored = &stored_;
    loads.VisitPrim(expr);
    return !loads.found;
  }

 public:
  // The loops that stand around each other at the statement, as far as their iterations are independent and their extents
  // are taken and do not depend on the loops before them.
  static LoopChain ChainOf(const Stmt& stmt, arith::Analyzer analyzer,
                           const std::function<bool(const PrimExpr&)>& takes_extent) {
    LoopChain chain;
    chain.body = stmt;
    std::unordered_set<const PrimVarNode*> vars;
    for (const auto* loop = As<ForNode>(stmt); loop != nullptr; loop = As<ForNode>(chain.body)) {
      if (loop->for_kind == ForKind::kUnrolled || loop->for_kind == ForKind::kThreadBinding) break;
      if (MentionsAny(loop->extent, vars) || !takes_extent(loop->extent)) break;
      // The extents of inner loops are asked where outer ones may be empty, too.
      if (!chain.loops.empty() && (ReadsMemory(loop->extent) || MayDivideByZero(loop->extent, analyzer))) break;
      const PrimExpr extent = Iterations(loop->extent, analyzer);
      if (loop->for_kind == ForKind::kSerial && !IterationsAreIndependent(*loop, analyzer)) break;
      if (loop->for_kind == ForKind::kVectorized && !IterationsAreIndependent(*loop, analyzer)) break;
      analyzer.Bind(loop->var, Range{loop->min, loop->extent});
      vars.insert(loop->var.get());
      chain.loops.push_back(loop);
      chain.extent = chain.extent * extent;
      chain.body = loop->body;
      chain.count *= ExtentOf(*loop);
    }
    return chain;
  }

 private:
  const Stmt stmt_;
  arith::Analyzer analyzer_;
  std::unordered_set<const PrimVarNode*> stored_;
  int64_t threads_ = 1;
  double most_iterations_ = 1;  // of a loop that is spread over the threads
  double cost_ = 0;
};

// A nest whose schedule bound some statements to threads of a block: one thread does the others, or all would.
class OneThreadFiller {
 public:
  std::vector<Buffer> elements;  // of reductions across threads

  Stmt Fill(const Stmt& nest) {
    ThreadFinder finder;
    finder.VisitStmt(nest);
    if (finder.extent == 0) return nest;
    threads_ = finder.extent;
    return FillIn(nest);
  }

 private:
  // The extent that all loops over threadIdx.x have; 0: there are none, or other axes and extents.
  struct ThreadFinder : StmtVisitor {
    int64_t extent = 0;
    bool is_other = false;
    using StmtVisitor::Visit;
    void Visit(const ForNode& loop) override {
      if (loop.thread_tag.starts_with("threadIdx")) {
        const int64_t own = loop.thread_tag == "threadIdx.x" ? AsConstInt(loop.extent).value_or(0) : 0;
        is_other |= own == 0 || (extent != 0 && extent != own);
        extent = is_other ? 0 : own;
      }
      StmtVisitor::Visit(loop);
    }
  };
  static bool HasThreads(const Stmt& stmt) {
    ThreadFinder finder;
    finder.VisitStmt(stmt);
    return finder.extent != 0;
  }

  // Of a statement that has loops over threads.
  Stmt FillIn(const Stmt& stmt) {
    if (const auto* seq = As<SeqNode>(stmt)) return FillIn(*seq);
    if (const auto* loop = As<ForNode>(stmt)) {
      if (loop->thread_tag == "threadIdx.x") return stmt;
      ForNode copy = *loop;
      copy.body = FillIn(loop->body);
      return Make<ForNode>(std::move(copy));
    }
    if (const auto* allocate = As<AllocateNode>(stmt)) {
      return Make<AllocateNode>(allocate->buffer, FillIn(allocate->body), allocate->annotations);
    }
    if (const auto* let = As<LetStmtNode>(stmt)) return Make<LetStmtNode>(let->var, let->value, FillIn(let->body));
    return stmt;
  }
  Stmt FillIn(const SeqNode& seq) {
    std::vector<Stmt> parts, of_one;
    std::vector<CrossThreads> made;
    const auto flush = [&] {
      if (!of_one.empty()) parts.push_back(ByFirstThread(MakeSeq(std::exchange(of_one, {})), threads_));
    };
    for (const Stmt& stmt : seq.stmts) {
      std::optional<CrossThreads> across = ReduceAcrossThreads(stmt, threads_);
      if (!across && !HasThreads(stmt)) {
        of_one.push_back(stmt);
        continue;
      }
      flush();
      parts.push_back(across ? across->stmt : FillIn(stmt));
      if (!across) continue;
      elements.push_back(across->out);
      made.push_back(*std::move(across));
    }
    flush();
    return KeepElements(MakeSeq(std::move(parts)), made, threads_);
  }

  int64_t threads_ = 0;
};

class Binder {
 public:
  // The function's body.
  Stmt BindAll(const PrimFunc& function) {
    const Stmt bound = Bind(function->body);
    std::erase_if(elements_, [&](const Buffer& buffer) {
      return std::ranges::any_of(function->params,
                                 [&](const PrimFuncParam& param) { return param.buffer.same_as(buffer); });
    });
    return DropUnreadElements(bound, elements_);
  }

 private:
  // Null where no statement is left.
  Stmt Bind(const Stmt& stmt) {
    if (const auto* seq = As<SeqNode>(stmt)) return BindSeq(*seq);
    if (const auto* allocate = As<AllocateNode>(stmt)) {
      return Make<AllocateNode>(allocate->buffer, Bind(allocate->body), allocate->annotations);
    }
    if (const auto* assertion = As<AssertStmtNode>(stmt); assertion != nullptr && !ReadsMemory(assertion->condition)) {
      AssertStmtNode copy = *assertion;
      copy.body = Bind(assertion->body);
      return Make<AssertStmtNode>(std::move(copy));
    }
    if (const auto* guard = As<IfStmtNode>(stmt); guard != nullptr && !ReadsMemory(guard->condition)) {
      return Make<IfStmtNode>(guard->condition, Bind(guard->then_case),
                              guard->else_case ? Bind(guard->else_case) : guard->else_case);
    }
    if (const auto* loop = As<ForNode>(stmt); loop != nullptr && IsOfRounds(*loop)) {
      ForNode copy = *loop;
      copy.body = Bind(loop->body);
      return Make<ForNode>(std::move(copy));
    }
    if (IsBound(stmt)) {
      OneThreadFiller filler;
      Stmt filled = filler.Fill(stmt);
      elements_.insert(elements_.end(), filler.elements.begin(), filler.elements.end());
      return filled;
    }
    if (Stmt grid = OverGrid(stmt)) return grid;
    return OverOneBlock(stmt);
  }

 private:
  // Whether it is a serial loop around nests that were bound to blocks: it stays around their launches.
  static bool IsOfRounds(const ForNode& loop) {
    struct Finder : StmtVisitor {
      bool has_blocks = false;
      using StmtVisitor::Visit;
      void Visit(const ForNode& inner) override {
        has_blocks |= inner.thread_tag.starts_with("blockIdx");
        StmtVisitor::Visit(inner);
      }
    } finder;
    if (loop.for_kind != ForKind::kSerial || ReadsMemory(loop.extent)) return false;
    finder.VisitStmt(loop.body);
    return finder.has_blocks;
  }
  // Whether a schedule bound it, or it does nothing.
  static bool IsBound(const Stmt& stmt) {
    StoreFinder finder;
    finder.VisitStmt(stmt);
    return finder.has_threads || IsEmptyStmt(stmt);
  }
  Stmt BindSeq(const SeqNode& seq) {
    std::vector<Stmt> parts, of_one_block;
    const auto flush = [&] {
      if (!of_one_block.empty()) parts.push_back(OverOneBlock(MakeSeq(std::exchange(of_one_block, {}))));
    };
    for (const Stmt& stmt : seq.stmts) {
      const bool is_part = As<SeqNode>(stmt) == nullptr && As<AllocateNode>(stmt) == nullptr &&
                           As<AssertStmtNode>(stmt) == nullptr && As<IfStmtNode>(stmt) == nullptr && !IsBound(stmt);
      Stmt grid = is_part ? OverGrid(stmt) : Bind(stmt);
      if (!grid) {
        of_one_block.push_back(stmt);
        continue;
      }
      flush();
      parts.push_back(std::move(grid));
    }
    flush();
    return MakeSeq(std::move(parts));
  }

  // The part as a grid of threads or of blocks; null where one block does not take longer.
  static Stmt OverGrid(const Stmt& stmt) {
    const LoopChain chain = BlockBody::ChainOf(stmt, {}, [](const PrimExpr& extent) { return !ReadsMemory(extent); });
    if (chain.loops.empty() || chain.count <= 1) return nullptr;
    arith::Analyzer analyzer;
    for (const ForNode* loop : chain.loops) analyzer.Bind(loop->var, Range{loop->min, loop->extent});
    BlockBody block(chain.body, analyzer);
    const double serial = OperationCounter::Of(chain.body);
    const double by_threads = serial * std::ceil(chain.count / kThreadsAtOnce);
    const double by_blocks = block.is_shared() ? block.cost() * std::ceil(chain.count / kBlocksAtOnce) : HUGE_VAL;
    BlockBody one(stmt, {});
    const double by_one = one.is_shared() ? one.cost() : HUGE_VAL;
    if (by_one < std::min(by_threads, by_blocks)) return nullptr;
    const PrimVar b = MakePrimVar("b");
    if (by_blocks < by_threads) {
      LoopChain shared = chain;
      shared.body = block.Build();
      return ThreadLoop(b, chain.extent, shared.BodyAt(b), "blockIdx.x");
    }
    // Threads that have much to do are spread over more blocks.
    constexpr double kMuch = 64;
    const int64_t most = serial > kMuch ? kCudaWarpThreads : kMostThreads;
    const PrimExpr extent = chain.extent;
    const auto count = AsConstInt(extent);
    const int64_t threads = count ? std::min(*count, most) : most;
    const PrimVar t = MakePrimVar("t");
    const PrimExpr number = PrimExpr(b) * threads + t;
    Stmt body = chain.BodyAt(number);
    if (!count || *count % threads != 0) body = Make<IfStmtNode>(number < extent, std::move(body), nullptr);
    return ThreadLoop(b, FloorDiv(extent + (threads - 1), Int64(threads)),
                      ThreadLoop(t, Int64(threads), std::move(body), "threadIdx.x"), "blockIdx.x");
  }
  static Stmt OverOneBlock(const Stmt& stmt) {
    return ThreadLoop(MakePrimVar("b"), Int64(1), BlockBody(stmt, {}).Build(), "blockIdx.x");
  }

  std::vector<Buffer> elements_;  // of reductions across threads
};

}  // namespace

Result<PrimFunc> BindThreads(const PrimFunc& function, const Target& target) {
  if (target.kind != Target::Kind::kCuda) return function;
  return WithBody(function, Serialiser().MutateStmt(Binder().BindAll(function)));
}

}  // namespace ingot::transform
