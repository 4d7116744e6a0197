// One walk down to the nests, which keeps what stands around them, and one walk through each nest.
#include "compiler/codegen/cuda_launches.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>

#include "compiler/codegen/cuda_warp_memory.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/target/cuda.h"
#include "compiler/transform/tensor/passes.h"

namespace ingot::codegen {
namespace {

using namespace ir;  // NOLINT

constexpr size_t kFirstOfBlock = 3;  // of the axes, the first one of the threads of a block

// The axes of a nest, whether its stores are inside of them, and whether its threads need not wait for each other.
class NestReader : public StmtVisitor {
 public:
  std::array<PrimExpr, kThreadAxes.size()> extents;
  std::string error;
  bool has_barriers = false;

  // Reads the axes first, since a store has to be inside of those that come after it, too.
  void Read(const Stmt& nest) {
    VisitStmt(nest);
    checks_stores_ = true;
    if (error.empty()) VisitStmt(nest);
    for (const auto& [data, uses] : uses_) {
      if (uses.is_stored && uses.is_read_outside) {
        Fail("\"" + uses.name + "\" is stored to in loops of threads and read outside of them");
      }
      if (!uses.is_stored || !uses.differ) continue;
      Fail("\"" + uses.name + "\" is accessed in several loops of " + (uses.is_local ? "threads" : "blocks") +
           ", which " + (uses.is_local ? "have memory of their own in each" : "would have to wait for each other"));
    }
    has_barriers = HasBlockThreads() && (thread_loops_ > 1 || is_repeated_);
  }

 protected:
  using StmtVisitor::Visit;
  void Visit(const ForNode& loop) override {
    if (loop.for_kind != ForKind::kThreadBinding) {
      ++serial_depth_;
      StmtVisitor::Visit(loop);
      --serial_depth_;
      return;
    }
    const auto found = std::ranges::find(kThreadAxes, loop.thread_tag);
    const auto axis = static_cast<size_t>(found - kThreadAxes.begin());
    if (axis == kThreadAxes.size()) return Fail("kernels do not have the thread axis \"" + loop.thread_tag + "\"");
    if (inside_[axis] != nullptr) return Fail(loop.thread_tag + " stands inside of itself");
    if (extents[axis] && !StructuralEqual(extents[axis], loop.extent)) {
      return Fail(loop.thread_tag + " has two extents");
    }
    if (axis >= kFirstOfBlock && !checks_stores_) {
      is_nested_ |= IsInThreads();
      thread_loops_ += IsInThreads() ? 0 : 1;
      is_repeated_ |= !IsInThreads() && serial_depth_ > 0;
    }
    extents[axis] = loop.extent;
    inside_[axis] = &loop;
    StmtVisitor::Visit(loop);
    inside_[axis] = nullptr;
  }
  void Visit(const WhileNode& loop) override {
    ++serial_depth_;
    StmtVisitor::Visit(loop);
    --serial_depth_;
  }
  void Visit(const IfStmtNode& guard) override {
    VisitPrim(guard.condition);
    VisitUnder(guard.condition, [&] { VisitStmt(guard.then_case); });
    if (guard.else_case) VisitStmt(guard.else_case);
  }
  void Visit(const PrimCallNode& call) override {
    if (call.op != Intrinsic::kIfThenElse) return StmtVisitor::Visit(call);
    VisitPrim(call.args[0]);
    VisitUnder(call.args[0], [&] { VisitPrim(call.args[1]); });
    VisitPrim(call.args[2]);
  }
  void Visit(const BufferStoreNode& store) override {
    StmtVisitor::Visit(store);
    if (!checks_stores_) return;
    Use(*store.buffer, /*is_stored=*/true);
    CheckThread(*store.buffer, store.indices);
    if (store.buffer->scope == "local" || store.buffer->scope == "thread") return;
    for (size_t axis = 0; axis < kThreadAxes.size(); ++axis) {
      if (inside_[axis] != nullptr || !HasThreads(axis)) continue;
      Fail("a store to \"" + store.buffer->name + "\" is outside of " + std::string(kThreadAxes[axis]));
    }
  }
  void Visit(const BufferLoadNode& load) override {
    StmtVisitor::Visit(load);
    if (!checks_stores_) return;
    Use(*load.buffer, /*is_stored=*/false);
    CheckThread(*load.buffer, load.indices);
  }

 private:
  using Loops = std::array<const ForNode*, kThreadAxes.size()>;  // null: outside of the axis's loops
  // The accesses of a buffer. Two loops over an axis are two times at which threads are somewhere in them.
  struct Uses {
    std::string name;
    Loops loops;
    bool is_local = false, is_stored = false, differ = false, is_read_outside = false;
  };

  void Fail(std::string message) {
    if (error.empty()) error = std::move(message);
  }
  bool HasThreads(size_t axis) const { return extents[axis] && !IsConstInt(extents[axis], 1); }
  bool HasBlockThreads() const {
    for (size_t axis = kFirstOfBlock; axis < extents.size(); ++axis) {
      if (HasThreads(axis)) return true;
    }
    return false;
  }
  bool IsInThreads() const {
    return std::any_of(inside_.begin() + kFirstOfBlock, inside_.end(),
                       [](const ForNode* loop) { return loop != nullptr; });
  }
  // Whether conditions around let the first thread alone pass.
  bool IsOfFirst(const PrimVar& thread) const {
    for (const PrimExpr& condition : conditions_) {
      for (const PrimExpr& part : ConjunctsOf(condition)) {
        const auto* binary = As<BinaryNode>(part);
        if (binary == nullptr || binary->a.get() != thread.get()) continue;
        if (binary->op == BinaryOp::kLT && IsConstInt(binary->b, 1)) return true;
        if (binary->op == BinaryOp::kEQ && IsConstInt(binary->b, 0)) return true;
      }
    }
    return false;
  }
  void VisitUnder(const PrimExpr& condition, const auto& visit) {
    conditions_.push_back(condition);
    visit();
    conditions_.pop_back();
  }
  // What a thread keeps from loop to loop is its own.
  void CheckThread(const BufferNode& buffer, const std::vector<PrimExpr>& indices) {
    if (buffer.scope != "thread") return;
    const ForNode* loop = inside_[kFirstOfBlock];
    if (loop != nullptr && !indices.empty() && indices[0].get() == loop->var.get()) return;
    if (loop != nullptr && !indices.empty() && IsConstInt(indices[0], 0) && IsOfFirst(loop->var)) return;
    Fail("\"" + buffer.name + "\" is of each thread, and accessed at another index than the thread's");
  }
  // Threads of a block wait for each other behind the outermost loops over them, blocks do not, and a thread's memory
  // begins anew in each loop.
  void Use(const BufferNode& buffer, bool is_stored) {
    const bool is_local = buffer.scope == "local";
    Loops loops{};
    for (size_t axis = 0; axis < loops.size(); ++axis) {
      if (HasThreads(axis) && (axis < kFirstOfBlock || is_local || is_nested_)) loops[axis] = inside_[axis];
    }
    Uses& uses = uses_.try_emplace(buffer.data.get(), Uses{buffer.name, loops, is_local}).first->second;
    uses.is_stored |= is_stored;
    uses.differ |= uses.loops != loops;
    uses.is_read_outside |= !is_stored && HasBlockThreads() && !IsInThreads();
  }

  Loops inside_{};
  std::unordered_map<const PrimVarNode*, Uses> uses_;
  bool checks_stores_ = false;
  int serial_depth_ = 0;
  int thread_loops_ = 0;              // over threads of a block, inside of no other one
  std::vector<PrimExpr> conditions_;  // around the access
  bool is_repeated_ = false;          // one of them is in a serial loop
  bool is_nested_ = false;            // loops over them are inside of others, as those of two axes are
};

// Finds the loops over threads of a block behind which all threads have to wait: those that are not followed at once by
// another one that may run at the same time, since it stores nothing that others accessed since they waited, and loads
// nothing that others stored. In front of any branch, too, threads of a warp that may have parted come together, so that
// none goes around a loop alone and meets a barrier there. Behind the last loop nobody waits.
class WaitFinder {
 public:
  std::unordered_set<const PrimVarNode*> waits;

  void Find(const Stmt& stmt, bool is_last) {
    std::vector<Stmt> parts;
    ListParts(stmt, parts);
    AccessLister since;  // all threads waited
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool ends = i + 1 == parts.size();
      const auto* loop = As<ForNode>(parts[i]);
      if (!IsOverThreads(parts[i])) {
        FindBelow(parts[i], is_last && ends);
        continue;
      }
      since.VisitStmt(loop->body);
      if (since.loaded.empty() && since.stored.empty() && !MayPart(loop->body)) continue;  // it has only a thread's own
      if (ends ? is_last : IsOverThreads(parts[i + 1]) && !Meet(since, *As<ForNode>(parts[i + 1]))) continue;
      waits.insert(loop->var.get());
      since = {};
    }
  }

 private:
  using Buffers = std::unordered_set<const PrimVarNode*>;
  // The buffers that several threads may access.
  struct AccessLister : StmtVisitor {
    Buffers loaded, stored;
    using StmtVisitor::Visit;
    void Visit(const BufferLoadNode& load) override {
      if (IsShared(*load.buffer)) loaded.insert(load.buffer->data.get());
      StmtVisitor::Visit(load);
    }
    void Visit(const BufferStoreNode& store) override {
      if (IsShared(*store.buffer)) stored.insert(store.buffer->data.get());
      StmtVisitor::Visit(store);
    }
    static bool IsShared(const BufferNode& buffer) { return buffer.scope == "shared" || buffer.scope == "global"; }
  };

  // Whether threads may go different ways.
  static bool MayPart(const Stmt& stmt) {
    struct Finder : StmtVisitor {
      bool found = false;
      using StmtVisitor::Visit;
      void Visit(const ForNode& loop) override {
        found |= !AsConstInt(loop.extent);
        StmtVisitor::Visit(loop);
      }
      void Visit(const WhileNode&) override { found = true; }
      void Visit(const IfStmtNode&) override { found = true; }
      void Visit(const AssertStmtNode&) override { found = true; }
      void Visit(const PrimCallNode&) override { found = true; }
    } finder;
    finder.VisitStmt(stmt);
    return finder.found;
  }
  static bool IsOverThreads(const Stmt& stmt) {
    const auto* loop = As<ForNode>(stmt);
    return loop != nullptr && loop->thread_tag.starts_with("threadIdx");
  }
  // The statements that follow each other without a branch between them.
  static void ListParts(const Stmt& stmt, std::vector<Stmt>& parts) {
    if (const auto* seq = As<SeqNode>(stmt)) {
      for (const Stmt& part : seq->stmts) ListParts(part, parts);
    } else if (const auto* allocate = As<AllocateNode>(stmt)) {
      ListParts(allocate->body, parts);
    } else if (const auto* let = As<LetStmtNode>(stmt)) {
      ListParts(let->body, parts);
    } else {
      parts.push_back(stmt);
    }
  }
  void FindBelow(const Stmt& stmt, bool is_last) {
    if (const auto* loop = As<ForNode>(stmt)) {
      Find(loop->body, is_last && loop->for_kind == ForKind::kThreadBinding);
    } else if (const auto* repeated = As<WhileNode>(stmt)) {
      Find(repeated->body, false);
    } else if (const auto* assertion = As<AssertStmtNode>(stmt)) {
      Find(assertion->body, is_last);
    } else if (const auto* guard = As<IfStmtNode>(stmt)) {
      Find(guard->then_case, is_last);
      if (guard->else_case) Find(guard->else_case, is_last);
    }
  }
  static bool Meet(const AccessLister& since, const ForNode& next) {
    AccessLister own;
    own.VisitStmt(next.body);
    const auto meet = [](const Buffers& a, const Buffers& b) {
      return std::ranges::any_of(a, [&](const PrimVarNode* buffer) { return b.contains(buffer); });
    };
    return meet(own.stored, since.stored) || meet(own.stored, since.loaded) || meet(own.loaded, since.stored);
  }
};

// Why no device launches threads of these extents, as far as these are known; empty: they may.
std::string SizeError(const std::array<PrimExpr, kThreadAxes.size()>& extents) {
  constexpr std::array<int64_t, kThreadAxes.size()> kMost = {
      std::numeric_limits<int32_t>::max(), 65535, 65535, kCudaMaxBlockThreads, kCudaMaxBlockThreads, 64};
  int64_t threads = 1;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    const int64_t extent = AsConstInt(extents[axis]).value_or(1);
    if (extent > kMost[axis]) {
      return std::string(kThreadAxes[axis]) + " has " + std::to_string(extent) + " iterations; at most " +
             std::to_string(kMost[axis]) + " can be launched";
    }
    if (axis >= kFirstOfBlock) threads *= extent;
  }
  if (threads <= kCudaMaxBlockThreads) return "";
  return "a block has " + std::to_string(threads) + " threads; at most " + std::to_string(kCudaMaxBlockThreads) +
         " can be launched";
}

// Buffers that each thread keeps become local ones, without the thread's index.
class ThreadIndexRemover : public StmtMutator {
 protected:
  using StmtMutator::Mutate;
  Stmt Mutate(const Ref<AllocateNode>& allocate) override {
    if (allocate->buffer->scope != "thread") return StmtMutator::Mutate(allocate);
    BufferNode copy = *allocate->buffer;
    copy.scope = "local";
    copy.shape.erase(copy.shape.begin());
    const Buffer local = Make<BufferNode>(std::move(copy));
    locals_.emplace(allocate->buffer, local);
    return Make<AllocateNode>(local, MutateStmt(allocate->body), allocate->annotations);
  }
  Stmt Mutate(const Ref<BufferStoreNode>& store) override {
    const Stmt mutated = StmtMutator::Mutate(store);
    const auto* node = As<BufferStoreNode>(mutated);
    const auto found = locals_.find(node->buffer);
    if (found == locals_.end()) return mutated;
    return Make<BufferStoreNode>(found->second, node->value, WithoutFirst(node->indices));
  }
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    const PrimExpr mutated = StmtMutator::Mutate(load);
    const auto* node = As<BufferLoadNode>(mutated);
    const auto found = locals_.find(node->buffer);
    if (found == locals_.end()) return mutated;
    return Make<BufferLoadNode>(found->second, WithoutFirst(node->indices));
  }

 private:
  static std::vector<PrimExpr> WithoutFirst(const std::vector<PrimExpr>& indices) {
    return {indices.begin() + 1, indices.end()};
  }
  BufferMap locals_;
};

class Splitter {
 public:
  std::vector<CudaLaunch> launches;
  std::string error;

  void Split(const Stmt& stmt) {
    if (!error.empty() || transform::IsEmptyStmt(stmt)) return;
    if (const auto* seq = As<SeqNode>(stmt)) {
      for (const Stmt& part : seq->stmts) Split(part);
    } else if (const auto* allocate = As<AllocateNode>(stmt)) {
      Around([node = *allocate](Stmt body) { return Make<AllocateNode>(node.buffer, std::move(body)); },
             allocate->body);
    } else if (const auto* assertion = As<AssertStmtNode>(stmt)) {
      CheckHost(assertion->condition);
      Around(
          [node = *assertion](Stmt body) mutable {
            node.body = std::move(body);
            return Make<AssertStmtNode>(node);
          },
          assertion->body);
    } else if (const auto* guard = As<IfStmtNode>(stmt)) {
      CheckHost(guard->condition);
      const auto under = [](PrimExpr condition) {
        return [condition](Stmt body) { return Make<IfStmtNode>(condition, std::move(body), nullptr); };
      };
      Around(under(guard->condition), guard->then_case);
      if (guard->else_case) Around(under(Not(guard->condition)), guard->else_case);
    } else if (const auto* loop = As<ForNode>(stmt); loop != nullptr && loop->for_kind == ForKind::kSerial) {
      SplitRounds(*loop);
    } else {
      AddLaunch(stmt);
    }
  }

 private:
  using Wrapper = std::function<Stmt(Stmt)>;

  void Around(Wrapper wrapper, const Stmt& body) {
    around_.push_back(std::move(wrapper));
    Split(body);
    around_.pop_back();
  }
  void SplitRounds(const ForNode& loop) {
    if (rounds_ != nullptr) {
      error = "a loop of launches stands inside of another one";
    } else if (ReadsMemory(loop.extent) || !IsConstInt(loop.min, 0)) {
      error = "how often its launches run depends on elements";
    }
    if (!error.empty()) return;
    rounds_ = &loop;
    number_in_round_ = 0;
    Split(loop.body);
    rounds_ = nullptr;
  }
  void CheckHost(const PrimExpr& condition) {
    if (ReadsMemory(condition) && error.empty()) error = "a condition around its threads depends on elements";
  }
  void AddLaunch(const Stmt& nest) {
    const auto* loop = As<ForNode>(nest);
    if (loop == nullptr || loop->for_kind != ForKind::kThreadBinding) {
      error = "a part of it is bound to no threads";
      return;
    }
    NestReader reader;
    reader.Read(nest);
    if (!reader.error.empty()) {
      error = reader.error;
      return;
    }
    CudaLaunch launch{nest, std::move(reader.extents), reader.has_barriers, {}};
    if (launch.has_barriers) {
      WaitFinder finder;
      finder.Find(nest, /*is_last=*/true);
      launch.waits = std::move(finder.waits);
    }
    if (rounds_ != nullptr) {
      launch.round = rounds_->var;
      launch.rounds = rounds_->extent;
      launch.number_in_round = number_in_round_++;
    }
    for (PrimExpr& extent : launch.extents) extent = extent ? extent : Int64(1);
    error = SizeError(launch.extents);
    if (!error.empty()) return;
    Result<Stmt> kept = KeepInFragments(ThreadIndexRemover().MutateStmt(launch.body));
    if (!kept.ok()) {
      error = kept.status().message();
      return;
    }
    launch.body = *std::move(kept);
    for (size_t i = around_.size(); i-- > 0;) launch.body = around_[i](std::move(launch.body));
    launches.push_back(std::move(launch));
  }

  std::vector<Wrapper> around_;  // from the outside to the inside
  const ForNode* rounds_ = nullptr;
  int64_t number_in_round_ = 0;
};

}  // namespace

Result<std::vector<CudaLaunch>> LaunchesOf(const PrimFunc& lowered) {
  Splitter splitter;
  splitter.Split(lowered->body);
  if (!splitter.error.empty()) return Status(StatusCode::kUnsupportedModel, splitter.error);
  return std::move(splitter.launches);
}

}  // namespace ingot::codegen
