// Before: buffers are allocated anywhere, as large as the whole tensor that they hold. After: each has its place and
// its least size, as lowered.h promises:
//   local   constant size, around the innermost statement that holds all accesses (one per iteration of the loops
//           around it), as large as the hull of the accessed elements. Accumulator tiles become local;
//   shared  on CUDA, of constant size, in a block's loop: it is private to the block, and loops over threads that follow
//           each other access it;
//   thread  on CUDA, in a block's loop, a local buffer of which each thread of the block accesses elements of its own, in
//           loops that follow each other: the thread's number becomes the first index;
//   warp    on CUDA, in a block's loop, as it was declared: the lanes of each warp have its part of the rows;
//   global  outermost, over the function's symbolic variables alone. A buffer that is private to an iteration of a
//           parallel loop, to a thread or to a block gets the loops' variables as its first indices.
// An Allocate that asks for aligned rows gets rows that much longer.
//
// A buffer may shrink to the elements that one iteration accesses only if no iteration reads values of another one.
// That holds if each load is proved to read what one store has stored before it in the same iteration (stored_before.h);
// otherwise the buffer keeps its full size, outside of all loops, or inside of the parallel and thread-bound ones that its
// Allocate stands in: each of their iterations has its own.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/device_loops.h"
#include "compiler/schedule/region.h"
#include "compiler/target/cuda.h"
#include "compiler/transform/tensor/passes.h"
#include "compiler/transform/tensor/range_mutator.h"
#include "compiler/transform/tensor/stored_before.h"

namespace ingot::transform {

using namespace ir;  // NOLINT
using schedule::InnerVar;

namespace {

// A buffer that is private to a parallel task and was declared global becomes local below this size.
constexpr int64_t kSmallTaskBufferBytes = 16 << 10;
constexpr int64_t kSharedAlignment = 16;  // of each variable

bool IsIndependent(const ForNode& loop) {
  return loop.for_kind == ForKind::kParallel || loop.for_kind == ForKind::kThreadBinding;
}
bool IsThreadOfBlock(const ForNode& loop) {
  return loop.for_kind == ForKind::kThreadBinding && loop.thread_tag.starts_with("threadIdx");
}

using Access = BufferAccess;
struct Allocation {
  Buffer buffer;
  std::vector<Access> accesses;            // in order of execution
  std::vector<PrimVar> owners;             // variables of the independent loops around the Allocate
  int64_t row_factor = 1, row_offset = 0;  // row lengths are congruent to row_offset modulo row_factor
};

// Removes the Allocate statements and lists every access of their buffers.
class Collector : public StmtMutator {
 public:
  std::vector<Allocation> allocations;

 protected:
  using StmtMutator::Mutate;
  Stmt Mutate(const Ref<AllocateNode>& allocate) override {
    Allocation allocation{allocate->buffer, {}};
    if (const AttrValue* align = allocate->annotations.Find(schedule::kBufferDimAlign)) {
      allocation.row_factor = *align->get<AttrList>()->at(0).get<int64_t>();
      allocation.row_offset = *align->get<AttrList>()->at(1).get<int64_t>();
    }
    allocation.owners = owners_;
    allocations.push_back(std::move(allocation));
    return MutateStmt(allocate->body);
  }
  Stmt Mutate(const Ref<ForNode>& loop) override {
    if (!IsIndependent(*loop)) return StmtMutator::Mutate(loop);
    owners_.push_back(loop->var);
    Stmt mutated = StmtMutator::Mutate(loop);
    owners_.pop_back();
    return mutated;
  }

 private:
  std::vector<PrimVar> owners_;
};
class AccessLister : public StmtVisitor {
 public:
  explicit AccessLister(std::vector<Allocation>& allocations) : allocations_(allocations) {}
  std::unordered_set<const PrimVarNode*> written;  // data variables of buffers with stores
  bool has_pipeline = false;
  void VisitStmt(const Stmt& stmt) override {
    path_.push_back(stmt);
    StmtVisitor::VisitStmt(stmt);
    path_.pop_back();
  }

 protected:
  using StmtVisitor::Visit;
  void Visit(const ForNode& loop) override {
    has_pipeline |= loop.annotations.Find(schedule::kPipelineStages) != nullptr;
    StmtVisitor::Visit(loop);
  }
  void Visit(const BufferLoadNode& load) override {
    StmtVisitor::Visit(load);
    Add(load.buffer, load.indices, false);
  }
  void Visit(const BufferStoreNode& store) override {
    StmtVisitor::Visit(store);
    Add(store.buffer, store.indices, true);
  }
  void Visit(const SelectNode& select) override {
    VisitPrim(select.condition);
    VisitChosen(select.condition, select.true_value);
    VisitChosen(Not(select.condition), select.false_value);
  }
  void Visit(const PrimCallNode& call) override {
    if (call.op != Intrinsic::kIfThenElse) return StmtVisitor::Visit(call);
    VisitPrim(call.args[0]);
    VisitChosen(call.args[0], call.args[1]);
    VisitChosen(Not(call.args[0]), call.args[2]);
  }

 private:
  void VisitChosen(const PrimExpr& condition, const PrimExpr& value) {
    chosen_.push_back(condition);
    VisitPrim(value);
    chosen_.pop_back();
  }
  void Add(const Buffer& buffer, const std::vector<PrimExpr>& indices, bool is_store) {
    if (is_store) written.insert(buffer->data.get());
    for (Allocation& allocation : allocations_) {
      if (allocation.buffer.same_as(buffer)) allocation.accesses.push_back({is_store, indices, path_, chosen_});
    }
  }
  std::vector<Allocation>& allocations_;
  std::vector<Stmt> path_;
  std::vector<PrimExpr> chosen_;
};

// Where a buffer is allocated, and how its indices change.
struct Placement {
  Buffer old, fresh;
  Stmt around;                  // the statement that the Allocate wraps; null: the whole body
  std::vector<PrimExpr> first;  // offsets that are subtracted from the indices
  std::vector<PrimVar> tasks;   // become the first indices
  PrimVar thread;               // of scope "thread": in `first`, the variable of the loop over threads around an access
};

bool Uses(const PrimExpr& expr, const PrimVar& var) {
  for (const PrimVar& used : FreePrimVars(expr)) {
    if (used.same_as(var)) return true;
  }
  return false;
}

class Placer {
 public:
  Placer(const Target& target, Stmt body, const AccessLister& lister)
      : target_(target), body_(std::move(body)), written_(lister.written), has_pipeline_(lister.has_pipeline) {}

  Result<Placement> Place(const Allocation& allocation) {
    buffer_ = allocation.buffer;
    const Privacy privacy = FindPlace(allocation);
    const bool is_private = privacy != Privacy::kNone;
    const std::vector<Range> whole = WholeBuffer();
    std::vector<Range> box = privacy == Privacy::kWritten ? Hull(allocation) : whole;
    // A local buffer keeps its declared size if the size of the accessed part varies (a last, shorter block).
    for (size_t d = 0; d < box.size(); ++d) {
      if (buffer_->scope == "local" && !AsConstInt(box[d].extent)) box[d] = whole[d];
    }
    AlignRows(allocation, box);
    std::vector<const ForNode*> independent;
    for (const ForNode* loop : loops_) {
      if (IsIndependent(*loop)) independent.push_back(loop);
    }
    const bool is_shared = IsSharedByThreads(allocation);

    const std::optional<int64_t> bytes = ConstantBytes(box);
    // Threads of another axis around the place would be in one memory.
    const bool is_of_blocks = std::ranges::none_of(loops_, [](const ForNode* loop) { return IsThreadOfBlock(*loop); });
    const auto aligned = [](int64_t size) {
      return (size + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
    };
    if (is_shared && privacy == Privacy::kWritten && is_of_blocks && buffer_->scope == "local") {
      if (std::optional<Placement> parts = PlaceParts(allocation)) return *std::move(parts);
    }
    if (buffer_->scope == "warp" && is_shared && is_private && is_of_blocks && !independent.empty()) {
      return Finish(whole, "warp", place_, {});
    }
    if (is_shared && is_private && is_of_blocks && !independent.empty() && bytes &&
        aligned(*bytes) <= MostSharedBytes() - shared_bytes_[independent.front()]) {
      shared_bytes_[independent.front()] += aligned(*bytes);
      return Finish(box, "shared", place_, {});
    }
    const bool wants_local = !is_shared && (buffer_->scope == "local" || (!independent.empty() && is_private));
    const int64_t limit = buffer_->scope == "local" ? target_.max_stack_bytes : kSmallTaskBufferBytes;
    if (wants_local && bytes && *bytes <= limit && *bytes <= target_.max_stack_bytes - stack_bytes_) {
      stack_bytes_ += *bytes;
      return Finish(box, "local", is_private ? place_ : nullptr, {});
    }
    std::vector<Range> outer = box;
    for (size_t d = 0; d < box.size(); ++d) {
      const bool depends = std::any_of(loops_.begin(), loops_.end(),
                                       [&](const ForNode* loop) { return Uses(box[d].extent, loop->var); });
      if (depends) outer[d] = whole[d];
    }
    AlignRows(allocation, outer);
    if (independent.empty() || !is_private) return Finish(outer, "global", nullptr, {});
    std::vector<PrimVar> tasks;
    std::vector<PrimExpr> extents;
    for (const ForNode* parallel : independent) {
      tasks.push_back(parallel->var);
      extents.push_back(parallel->extent);
      for (const ForNode* loop : loops_) {
        if (!Uses(parallel->extent, loop->var)) continue;
        return Status(StatusCode::kInvalidArgument, "buffer " + buffer_->name + " is private to tasks of loop " +
                                                        parallel->var->name + ", whose number changes between loops");
      }
    }
    Placement placement = Finish(outer, "global", nullptr, std::move(tasks));
    BufferNode copy = *placement.fresh;
    copy.shape.insert(copy.shape.begin(), extents.begin(), extents.end());
    placement.fresh = Make<BufferNode>(std::move(copy));
    return placement;
  }

 private:
  // A block asks for more memory only for buffers that are declared to be there; the stages of a pipeline ask themselves.
  int64_t MostSharedBytes() const {
    return buffer_->scope == "shared" && !has_pipeline_ ? kCudaMostSharedBytes : kCudaUsualSharedBytes;
  }

  void AlignRows(const Allocation& allocation, std::vector<Range>& box) {
    if (allocation.row_factor == 1 || box.empty()) return;
    PrimExpr& length = box.back().extent;
    const PrimExpr rest = IntImm(length->dtype, allocation.row_offset) - length;
    length = analyzer_.Simplify(length + FloorMod(rest, IntImm(length->dtype, allocation.row_factor)));
  }

  // The buffer as parts of the threads of a block: every access is in a loop over threadIdx.x, these loops have one
  // extent, and no two threads access the same element. Nothing where this is not so, or the parts are too large.
  std::optional<Placement> PlaceParts(const Allocation& allocation) {
    const PrimVar thread = MakePrimVar("t");
    std::optional<BufferRegion> part;
    std::optional<int64_t> threads;
    for (const Access& access : allocation.accesses) {
      std::vector<InnerVar> inner;
      PrimVar own;
      for (size_t i = prefix_; i < access.path.size(); ++i) {
        const auto* loop = As<ForNode>(access.path[i]);
        if (loop == nullptr) continue;
        if (!IsThreadOfBlock(*loop)) {
          inner.push_back({loop->var, loop->min, loop->extent});
          continue;
        }
        const auto extent = AsConstInt(loop->extent);
        if (own || loop->thread_tag != "threadIdx.x" || !extent || threads.value_or(*extent) != *extent) return {};
        if (*extent == 1) return {};  // its variable will be 0, which tells of no thread
        own = loop->var;
        threads = extent;
      }
      if (!own) return {};
      analyzer_.Bind(thread, Range{Int64(0), Int64(*threads)});
      for (const InnerVar& var : inner) analyzer_.Bind(var.var, Range{var.min, var.extent});
      BufferRegion point{buffer_, {}};
      for (const PrimExpr& index : access.indices) {
        if (IsUnknown(index, access)) return {};
        point.region.push_back({Substitute(index, {{own, PrimExpr(thread)}}), IntImm(index->dtype, 1)});
      }
      BufferRegion region = schedule::RelaxRegion(point, inner, analyzer_);
      part = part ? schedule::UnionRegion(*part, region, analyzer_) : region;
    }
    if (!part || !AreDisjoint(part->region, thread, *threads)) return {};
    for (const Range& range : part->region) {
      if (UsesInnerLoops(range, allocation)) return {};
    }
    const std::optional<int64_t> bytes = ConstantBytes(part->region);
    if (!bytes || *bytes > target_.max_stack_bytes - stack_bytes_) return {};
    stack_bytes_ += *bytes;
    Placement placement = Finish(part->region, "thread", place_, {});
    BufferNode copy = *placement.fresh;
    copy.shape.insert(copy.shape.begin(), Int64(*threads));
    placement.fresh = Make<BufferNode>(std::move(copy));
    placement.thread = thread;
    return placement;
  }
  // Whether the boxes that a region is for the numbers of threads have no element in common. The numbers are tried out.
  bool AreDisjoint(const std::vector<Range>& region, const PrimVar& thread, int64_t threads) {
    std::vector<std::vector<int64_t>> starts;  // by thread, compared with the first one's
    std::vector<int64_t> extents;
    for (const Range& range : region) {
      const auto extent = AsConstInt(range.extent);
      if (!extent) return false;
      extents.push_back(*extent);
    }
    const auto at = [&](const Range& range, int64_t t) { return Substitute(range.min, {{thread, Int64(t)}}); };
    for (int64_t t = 0; t < threads; ++t) {
      std::vector<int64_t>& start = starts.emplace_back();
      for (const Range& range : region) {
        const auto distance = AsConstInt(analyzer_.Simplify(at(range, t) - at(range, 0)));
        if (!distance) return false;
        start.push_back(*distance);
      }
      for (int64_t other = 0; other < t; ++other) {
        bool apart = false;
        for (size_t d = 0; d < extents.size(); ++d) {
          apart |= std::abs(start[d] - starts[static_cast<size_t>(other)][d]) >= extents[d];
        }
        if (!apart) return false;
      }
    }
    return true;
  }

  // How a buffer belongs to an iteration of the loops around a place: not at all, because its Allocate stands there, or
  // because the iteration writes all that it reads.
  enum class Privacy : uint8_t { kNone, kDeclared, kWritten };

  // Finds the innermost statement that holds all accesses, and the loops around it. Where the buffer is not private to an
  // iteration there, it may be to one of an independent loop around.
  Privacy FindPlace(const Allocation& allocation) {
    const std::vector<Stmt>& path = allocation.accesses.front().path;
    size_t common = path.size();
    for (const Access& access : allocation.accesses) {
      size_t n = 0;
      while (n < common && n < access.path.size() && access.path[n].same_as(path[n])) ++n;
      common = n;
    }
    SetPlace(path, common);
    if (!loops_.empty() && IsPrivate(allocation)) return Privacy::kWritten;
    for (size_t prefix = common; prefix > 0; --prefix) {
      const auto* loop = As<ForNode>(path[prefix - 1]);
      if (loop == nullptr || !IsIndependent(*loop)) continue;
      SetPlace(path, prefix);
      if (IsPrivate(allocation)) return Privacy::kWritten;
      if (IsDeclaredInside(allocation)) return Privacy::kDeclared;
    }
    SetPlace(path, common);
    return Privacy::kNone;
  }
  void SetPlace(const std::vector<Stmt>& path, size_t prefix) {
    loops_.clear();
    prefix_ = prefix;
    for (size_t i = 0; i < prefix; ++i) {
      if (const auto* loop = As<ForNode>(path[i])) loops_.push_back(loop);
    }
    place_ = path[prefix - 1];
    below_.reset();
    analyzer_ = arith::Analyzer();
    for (const ForNode* loop : loops_) analyzer_.Bind(loop->var, Range{loop->min, loop->extent});
  }
  // Whether the Allocate stands inside of all independent loops around the place.
  bool IsDeclaredInside(const Allocation& allocation) const {
    return std::ranges::all_of(loops_, [&](const ForNode* loop) {
      const auto is_var = [&](const PrimVar& owner) { return owner.same_as(loop->var); };
      return !IsIndependent(*loop) || std::ranges::any_of(allocation.owners, is_var);
    });
  }
  // Whether loops over the threads of a block, below the place, access the buffer.
  bool IsSharedByThreads(const Allocation& allocation) const {
    return std::ranges::any_of(allocation.accesses, [&](const Access& access) {
      return std::any_of(access.path.begin() + static_cast<std::ptrdiff_t>(prefix_), access.path.end(),
                         [](const Stmt& stmt) {
                           const auto* loop = As<ForNode>(stmt);
                           return loop != nullptr && IsThreadOfBlock(*loop);
                         });
    });
  }

  // The loops below the place, of which an If around the access may run the first iterations alone.
  std::vector<InnerVar> InnerVars(const Access& access) const {
    std::vector<InnerVar> vars;
    for (size_t i = prefix_; i < access.path.size(); ++i) {
      if (const auto* loop = As<ForNode>(access.path[i])) vars.push_back({loop->var, loop->min, loop->extent});
    }
    for (const PrimExpr& part : GuardsOn(access.path, prefix_)) {
      const auto* below = As<BinaryNode>(part);
      if (below == nullptr || below->op != BinaryOp::kLT) continue;
      for (InnerVar& var : vars) {
        const auto end = AsConstInt(below->b), extent = AsConstInt(var.extent);
        const bool is_bound = below->a.get() == var.var.get() && IsConstInt(var.min, 0) && end && *end > 0;
        if (is_bound && extent && *end < *extent) var.extent = IntImm(var.var->dtype, *end);
      }
    }
    return vars;
  }

  std::vector<const LetStmtNode*> InnerLets(const Access& access) const {
    std::vector<const LetStmtNode*> lets;
    for (size_t i = prefix_; i < access.path.size(); ++i) {
      if (const auto* let = As<LetStmtNode>(access.path[i])) lets.push_back(let);
    }
    return lets;
  }
  // Whether the index is not known at the place: it depends on elements, or on a let below.
  bool IsUnknown(const PrimExpr& index, const Access& access) const {
    if (ReadsMemory(index)) return true;
    std::unordered_set<const PrimVarNode*> lets;
    for (const LetStmtNode* let : InnerLets(access)) lets.insert(let->var.get());
    return MentionsAny(index, lets);
  }

  // What an access touches while the loops below the place run.
  BufferRegion Touched(const Access& access) {
    const std::vector<InnerVar> inner = InnerVars(access);
    BufferRegion point{buffer_, {}};
    for (size_t d = 0; d < access.indices.size(); ++d) {
      const PrimExpr& index = access.indices[d];
      point.region.push_back(IsUnknown(index, access) ? Range{Int64(0), buffer_->shape[d]}
                                                      : Range{index, IntImm(index->dtype, 1)});
    }
    for (const InnerVar& var : inner) analyzer_.Bind(var.var, Range{var.min, var.extent});
    for (const LetStmtNode* let : InnerLets(access)) analyzer_.BindLet(let->var, let->value);
    return schedule::RelaxRegion(point, inner, analyzer_);
  }

  // Returns the bounding box of the accesses.
  std::vector<Range> Hull(const Allocation& allocation) {
    BufferRegion hull = Touched(allocation.accesses[0]);
    for (size_t i = 1; i < allocation.accesses.size(); ++i) {
      hull = schedule::UnionRegion(hull, Touched(allocation.accesses[i]), analyzer_);
    }
    for (size_t d = 0; d < hull.region.size(); ++d) {
      const auto extent = AsConstInt(hull.region[d].extent);
      const auto whole = AsConstInt(buffer_->shape[d]);
      const bool larger = (extent && whole && *extent >= *whole) || IsWholeDim(hull.region[d], d);
      if (larger || UsesInnerLoops(hull.region[d], allocation)) hull.region[d] = {Int64(0), buffer_->shape[d]};
    }
    return hull.region;
  }
  bool IsWholeDim(const Range& range, size_t d) {
    return analyzer_.ProveLessEqual(range.min, Int64(0)) &&
           analyzer_.ProveLessEqual(buffer_->shape[d], range.min + range.extent);
  }
  // Whether a bound still depends on a let or a loop inside of the place (an extent that depends on another loop).
  bool UsesInnerLoops(const Range& range, const Allocation& allocation) {
    if (AsConstInt(range.min) && AsConstInt(range.extent)) return false;
    if (!below_) {
      below_.emplace();
      for (const Access& access : allocation.accesses) {
        for (size_t i = prefix_; i < access.path.size(); ++i) {
          if (const auto* loop = As<ForNode>(access.path[i])) below_->insert(loop->var.get());
          if (const auto* let = As<LetStmtNode>(access.path[i])) below_->insert(let->var.get());
        }
      }
    }
    return MentionsAny(range.min, *below_) || MentionsAny(range.extent, *below_);
  }

  // Whether an iteration of the loops around the place writes all that it reads: each load what a store before it has
  // written.
  bool IsPrivate(const Allocation& allocation) {
    const std::vector<Access>& accesses = allocation.accesses;
    if (!accesses.front().is_store) return false;
    StoredBefore stored(buffer_, accesses, prefix_, analyzer_, written_);
    for (size_t i = 0; i < accesses.size(); ++i) {
      if (!accesses[i].is_store && !stored.Holds(i)) return false;
    }
    return true;
  }

  std::vector<Range> WholeBuffer() const {
    std::vector<Range> whole;
    for (const PrimExpr& extent : buffer_->shape) whole.push_back({IntImm(extent->dtype, 0), extent});
    return whole;
  }
  std::optional<int64_t> ConstantBytes(const std::vector<Range>& box) const {
    int64_t elements = 1;
    for (const Range& range : box) {
      const auto extent = AsConstInt(range.extent);
      if (!extent || __builtin_mul_overflow(elements, *extent, &elements)) return std::nullopt;
    }
    const Result<int64_t> bytes = buffer_->dtype.SizeBytes(elements);
    return bytes.ok() ? std::optional<int64_t>(*bytes) : std::nullopt;
  }
  Placement Finish(const std::vector<Range>& box, const std::string& scope, Stmt around,
                   std::vector<PrimVar> tasks) const {
    BufferNode copy = *buffer_;
    copy.scope = scope;
    copy.shape.clear();
    Placement placement{buffer_, nullptr, std::move(around), {}, std::move(tasks)};
    for (const Range& range : box) {
      copy.shape.push_back(range.extent);
      placement.first.push_back(range.min);
    }
    copy.data = MakePrimVar(buffer_->name, DataType::Handle());
    placement.fresh = Make<BufferNode>(std::move(copy));
    return placement;
  }

  const Target& target_;
  Stmt body_;
  const std::unordered_set<const PrimVarNode*>& written_;
  const bool has_pipeline_;
  Buffer buffer_;
  Stmt place_;
  size_t prefix_ = 0;                  // number of path entries that all accesses share
  std::vector<const ForNode*> loops_;  // around the place, outermost first
  arith::Analyzer analyzer_;
  // Variables of loops and lets around accesses, below the present place:
  std::optional<std::unordered_set<const PrimVarNode*>> below_;
  int64_t stack_bytes_ = 0;
  std::map<const ForNode*, int64_t> shared_bytes_;  // by the outermost loop over blocks: each is a launch of its own
};

class Rewriter : public RangeMutator {
 public:
  explicit Rewriter(const std::vector<Placement>& placements) : placements_(placements) {}

  Stmt MutateStmt(const Stmt& stmt) override {
    Stmt result = StmtMutator::MutateStmt(stmt);
    for (size_t i = placements_.size(); i-- > 0;) {
      const Placement& placement = placements_[i];
      if (!placement.around || !placement.around.same_as(stmt)) continue;
      if (const auto* loop = As<ForNode>(result)) {  // one allocation per iteration
        ForNode copy = *loop;
        copy.body = Make<AllocateNode>(placement.fresh, copy.body);
        result = Make<ForNode>(std::move(copy));
      } else {
        result = Make<AllocateNode>(placement.fresh, std::move(result));
      }
    }
    return result;
  }

 protected:
  using RangeMutator::Mutate;
  Stmt Mutate(const Ref<ForNode>& loop) override {
    if (!IsThreadOfBlock(*loop)) return RangeMutator::Mutate(loop);
    const PrimVar outside = std::exchange(thread_, loop->var);
    Stmt mutated = RangeMutator::Mutate(loop);
    thread_ = outside;
    return mutated;
  }
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    const PrimExpr mutated = StmtMutator::Mutate(load);
    const auto* node = As<BufferLoadNode>(mutated);
    const Placement* placement = Find(node->buffer);
    if (placement == nullptr) return mutated;
    return Make<BufferLoadNode>(placement->fresh, Shift(*placement, node->indices));
  }
  Stmt Mutate(const Ref<BufferStoreNode>& store) override {
    const Stmt mutated = StmtMutator::Mutate(store);
    const auto* node = As<BufferStoreNode>(mutated);
    const Placement* placement = Find(node->buffer);
    if (placement == nullptr) return mutated;
    return Make<BufferStoreNode>(placement->fresh, node->value, Shift(*placement, node->indices));
  }

 private:
  const Placement* Find(const Buffer& buffer) const {
    for (const Placement& placement : placements_) {
      if (placement.old.same_as(buffer)) return &placement;
    }
    return nullptr;
  }
  std::vector<PrimExpr> Shift(const Placement& placement, std::vector<PrimExpr> indices) {
    for (size_t i = 0; i < indices.size(); ++i) {
      PrimExpr first = placement.first[i];
      if (placement.thread) first = Substitute(first, {{placement.thread, PrimExpr(thread_)}});
      if (!IsConstInt(first, 0)) indices[i] = analyzer_.Simplify(indices[i] - first);
    }
    if (placement.thread) indices.insert(indices.begin(), PrimExpr(thread_));
    indices.insert(indices.begin(), placement.tasks.begin(), placement.tasks.end());
    return indices;
  }
  const std::vector<Placement>& placements_;
  PrimVar thread_;  // of the loop over the threads of a block that is around
};

}  // namespace

Result<PrimFunc> PlaceBuffers(const PrimFunc& function, const Target& target) {
  Collector collector;
  Stmt body = collector.MutateStmt(function->body);
  AccessLister lister(collector.allocations);
  lister.VisitStmt(body);
  std::vector<Placement> placements;
  Placer placer(target, body, lister);
  for (const Allocation& allocation : collector.allocations) {
    if (allocation.accesses.empty()) continue;
    const std::string& scope = allocation.buffer->scope;
    const bool is_known = scope == "global" || scope == "local" || scope == "shared" || scope == "warp";
    if (target.kind == Target::Kind::kCuda && !is_known) {
      return Status(StatusCode::kUnsupportedModel, "buffer " + allocation.buffer->name + " lies in \"" + scope +
                                                       "\", which has no lowering for CUDA yet");
    }
    INGOT_ASSIGN_OR_RETURN(Placement placement, placer.Place(allocation));
    placements.push_back(std::move(placement));
  }
  body = Rewriter(placements).MutateStmt(body);
  for (size_t i = placements.size(); i-- > 0;) {
    if (!placements[i].around) body = Make<AllocateNode>(placements[i].fresh, std::move(body));
  }
  return WithBody(function, std::move(body));
}

}  // namespace ingot::transform
