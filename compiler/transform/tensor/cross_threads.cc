// for r in R: for t in T: out[r] = out[r] op value(r, t)   becomes, for R * T threads of which each has one value:
//
//   for thread:  own = value(r, t)                            kCudaWarpReduce: all lanes get what their group's values give
//                the first lane of an element:  out[r] = own
//
// where T are lanes of a warp, or a warp. Where an element has several warps, they exchange through shared memory:
//
//   for thread:  own = value(r, t)
//                the first lane of a warp:  warps[thread / 32] = own
//   for thread:  all = warps[.. thread % (T / 32)]            reduced by groups of so many lanes
//                the first lane of an element:  out[r] = all
//
// By default thread / T is the element and thread % T the value (reductions of rows). Where the note is
// kCudaNeighbouringElements, thread % R is the element and thread / R the value (of columns): a group is of lanes R apart,
// and what warps exchange has a part of R elements for each warp, or for each value where R fills warps.
//
// Every group of lanes belongs to one element, so that all of its lanes exchange. Lowering places `own` and `all` in
// registers, `warps` in shared memory, and has the threads wait between both loops (place_buffers, codegen/cuda_launches).
// Loops over threads that come later and read the element of their own group have it in a register: out[r] there becomes
// own, or all, and where nobody else reads `out`, nobody stores it.
#include "compiler/transform/tensor/cross_threads.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/target/cuda.h"
#include "compiler/transform/tensor/lowered.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

struct CrossReduction {
  std::vector<const ForNode*> rows;  // over elements, outermost first
  const ForNode* loop = nullptr;     // over the values of one
  const BufferStoreNode* update = nullptr;
  BinaryOp op = BinaryOp::kAdd;
  PrimExpr value, start;
  bool elements_are_neighbours = false;
  std::vector<PrimExpr> guards;  // of elements, where the last block has fewer
};

bool IsSameElement(const PrimExpr& expr, const BufferStoreNode& store) {
  const auto* load = As<BufferLoadNode>(expr);
  if (load == nullptr || !load->buffer.same_as(store.buffer)) return false;
  for (size_t d = 0; d < store.indices.size(); ++d) {
    if (!StructuralEqual(load->indices[d], store.indices[d])) return false;
  }
  return true;
}

std::optional<CrossReduction> MatchCrossReduction(const Stmt& stmt, int64_t threads) {
  CrossReduction match;
  int64_t elements = 1;
  // What stands in conditions that no thread's place in its element decides.
  const auto below_guards = [&](const Stmt* body) {
    for (const auto* guard = As<IfStmtNode>(*body); guard != nullptr && !guard->else_case;
         guard = As<IfStmtNode>(*body)) {
      if (ReadsMemory(guard->condition)) break;
      match.guards.push_back(guard->condition);
      body = &guard->then_case;
    }
    return *body;
  };
  const auto* loop = As<ForNode>(stmt);
  for (; loop != nullptr && loop->annotations.Find(kCudaCrossThreads) == nullptr;
       loop = As<ForNode>(below_guards(&loop->body))) {
    const auto extent = AsConstInt(loop->extent);
    if (!extent || loop->for_kind != ForKind::kSerial) return {};
    elements *= *extent;
    match.rows.push_back(loop);
  }
  if (loop == nullptr || loop->for_kind != ForKind::kSerial) return {};
  const int64_t values = AsConstInt(loop->extent).value_or(0);
  const bool is_power = values > 1 && std::has_single_bit(static_cast<uint64_t>(values));
  if (!is_power || elements * values != threads || threads % kCudaWarpThreads != 0) return {};
  match.loop = loop;
  const int64_t* note = loop->annotations.Find(kCudaCrossThreads)->get<int64_t>();
  match.elements_are_neighbours = note != nullptr && *note == kCudaNeighbouringElements;
  const bool is_group = elements >= kCudaWarpThreads || std::has_single_bit(static_cast<uint64_t>(elements));
  if (match.elements_are_neighbours && !is_group) return {};
  // What begins with the first iteration: each thread begins with its own value instead.
  const Stmt body = below_guards(&loop->body);
  for (const PrimExpr& guard : match.guards) {
    if (MentionsAny(guard, {loop->var.get()})) return {};
  }
  const auto* seq = As<SeqNode>(body);
  if (seq == nullptr || seq->stmts.size() != 2) return {};
  const auto* first = As<IfStmtNode>(seq->stmts[0]);
  match.update = As<BufferStoreNode>(seq->stmts[1]);
  if (first == nullptr || first->else_case || match.update == nullptr) return {};
  const auto* is_first = As<BinaryNode>(first->condition);
  const auto* start = As<BufferStoreNode>(first->then_case);
  if (is_first == nullptr || is_first->op != BinaryOp::kEQ || is_first->a.get() != loop->var.get() ||
      !IsConstInt(is_first->b, 0) || start == nullptr || !start->buffer.same_as(match.update->buffer)) {
    return {};
  }
  const auto* combined = As<BinaryNode>(match.update->value);
  if (combined == nullptr || !IsSameElement(combined->a, *match.update)) return {};
  match.op = combined->op;
  match.value = combined->b;
  match.start = start->value;
  return match;
}

Stmt OverThreads(const PrimVar& thread, int64_t threads, Stmt body) {
  return Make<ForNode>(thread, Int64(0), Int64(threads), ForKind::kThreadBinding, std::move(body), "threadIdx.x");
}

Stmt StoreIf(const PrimExpr& condition, const Buffer& buffer, PrimExpr value, std::vector<PrimExpr> indices) {
  return Make<IfStmtNode>(condition, Make<BufferStoreNode>(buffer, std::move(value), std::move(indices)), nullptr);
}

}  // namespace

std::optional<CrossThreads> ReduceAcrossThreads(const Stmt& stmt, int64_t threads) {
  const std::optional<CrossReduction> match = MatchCrossReduction(stmt, threads);
  if (!match) return {};
  const int64_t values = *AsConstInt(match->loop->extent), elements = threads / values;
  // The place of a thread's value: neighbours are values of an element, or elements.
  const bool is_across = match->elements_are_neighbours;
  arith::Analyzer analyzer;
  const auto at = [&](const PrimVar& thread, const PrimExpr& expr) {
    analyzer.Bind(thread, Range{Int64(0), Int64(threads)});
    const PrimExpr high = FloorDiv(PrimExpr(thread), Int64(is_across ? elements : values));
    const PrimExpr low = FloorMod(PrimExpr(thread), Int64(is_across ? elements : values));
    PrimVarMap places{{match->loop->var, analyzer.Simplify(is_across ? high : low)}};
    PrimExpr rest = analyzer.Simplify(is_across ? low : high);
    for (size_t i = match->rows.size(); i-- > 0;) {
      const PrimExpr& extent = match->rows[i]->extent;
      places.emplace(match->rows[i]->var, analyzer.Simplify(FloorMod(rest, extent)));
      rest = analyzer.Simplify(FloorDiv(rest, extent));
    }
    return analyzer.Simplify(Substitute(expr, places));
  };
  const Buffer& out = match->update->buffer;
  const DataType dtype = out->dtype;
  const auto store = [](const Buffer& kept, const PrimVar& thread, PrimExpr value) -> Stmt {
    return Make<BufferStoreNode>(kept, std::move(value), std::vector<PrimExpr>{thread});
  };
  // What a group of lanes gives.
  const auto reduce = [&](const Buffer& kept, const PrimVar& thread, PrimExpr value, int64_t lanes,
                          int64_t step) -> Stmt {
    return Make<AttrStmtNode>(nullptr, kCudaWarpReduce, WarpReduce{match->op, lanes, step}.AsAttr(),
                              store(kept, thread, std::move(value)));
  };
  const auto own_of = [](const Buffer& kept, const PrimVar& thread) {
    return Make<BufferLoadNode>(kept, std::vector<PrimExpr>{thread});
  };
  PrimExpr is_there;  // the element, for a thread of the loops over rows
  for (const PrimExpr& guard : match->guards) is_there = is_there ? And(is_there, guard) : guard;
  const Buffer own = MakeBuffer(out->name + "_own", dtype, {Int64(threads)}, "local");
  const PrimVar thread = MakePrimVar("t");
  CrossThreads made;
  made.out = out;
  made.kept = own;
  made.thread = thread;
  const PrimExpr value = is_there ? IfThenElse(is_there, match->value, match->start) : match->value;
  // The lanes of a warp that have values of the same element, and the elements of a warp.
  const int64_t step = is_across ? elements : 1;
  const bool has_groups = step < kCudaWarpThreads;
  const int64_t lanes = std::min<int64_t>(step * values, kCudaWarpThreads);
  const int64_t parts = has_groups ? step * values / lanes : values;  // of an element
  std::vector<Stmt> steps{has_groups ? reduce(own, thread, at(thread, value), lanes, step)
                                     : store(own, thread, at(thread, value))};
  if (parts > 1) {
    const Buffer shared = MakeBuffer(out->name + "_warps", dtype, {Int64(parts * elements)}, "shared");
    const auto number = [](const PrimVar& t) { return PrimExpr(t); };
    // The parts of an element lie one after the other, or those of all elements do.
    PrimExpr is_first, place = number(thread);
    if (has_groups) {
      const PrimExpr lane = FloorMod(number(thread), Int64(kCudaWarpThreads));
      const PrimExpr warp = FloorDiv(number(thread), Int64(kCudaWarpThreads));
      is_first = lane < Int64(step);
      place = is_across ? warp * elements + lane : warp;
    }
    steps.push_back(is_first ? StoreIf(is_first, shared, own_of(own, thread), {place})
                             : Make<BufferStoreNode>(shared, own_of(own, thread), std::vector<PrimExpr>{place}));
    made.stmt = OverThreads(thread, threads, MakeSeq(std::move(steps)));
    made.buffers = {own, shared};
    made.kept = MakeBuffer(out->name + "_all", dtype, {Int64(threads)}, "local");
    made.thread = MakePrimVar("t");
    const PrimExpr t = number(made.thread);
    // So many lanes share the parts; each combines its own before they exchange.
    const int64_t sharers = has_groups ? std::min(parts, kCudaWarpThreads / step) : 1;
    const PrimExpr sharer = FloorMod(FloorDiv(t, Int64(step)), Int64(sharers));
    PrimExpr all;
    for (int64_t part = 0; part < parts; part += sharers) {
      const PrimExpr number_of_part = sharers > 1 ? sharer + part : Int64(part);
      const PrimExpr element = is_across ? FloorMod(t, Int64(elements)) : FloorDiv(t, Int64(values));
      const PrimExpr from = is_across ? number_of_part * elements + element : element * parts + number_of_part;
      PrimExpr loaded = Make<BufferLoadNode>(shared, std::vector<PrimExpr>{from});
      all = all ? MakeBinary(match->op, std::move(all), std::move(loaded)) : std::move(loaded);
    }
    steps = {sharers > 1 ? reduce(made.kept, made.thread, std::move(all), sharers * step, step)
                         : store(made.kept, made.thread, std::move(all))};
  }
  made.buffers.push_back(made.kept);
  for (const PrimExpr& index : match->update->indices) made.indices.push_back(at(made.thread, index));
  PrimExpr is_first = is_across ? PrimExpr(made.thread) < Int64(elements)
                                : Equal(FloorMod(PrimExpr(made.thread), Int64(values)), Int64(0));
  if (is_there) is_first = And(is_first, at(made.thread, is_there));
  steps.push_back(StoreIf(is_first, out, own_of(made.kept, made.thread), made.indices));
  Stmt last = OverThreads(made.thread, threads, MakeSeq(std::move(steps)));
  made.stmt = made.stmt ? MakeSeq({made.stmt, std::move(last)}) : std::move(last);
  return made;
}

namespace {

// Reads what threads keep in the place of elements.
class ElementKeeper : public StmtMutator {
 public:
  ElementKeeper(const std::vector<CrossThreads>& made, int64_t threads) : made_(made), threads_(threads) {
    for (size_t i = 0; i < made.size(); ++i) seen_.push_back(false);
  }

 protected:
  using StmtMutator::Mutate;
  Stmt Mutate(const Ref<ForNode>& loop) override {
    if (loop->thread_tag != "threadIdx.x") return StmtMutator::Mutate(loop);
    const PrimVar outside = std::exchange(thread_, loop->var);
    analyzer_.Bind(loop->var, Range{Int64(0), Int64(threads_)});
    Stmt mutated = StmtMutator::Mutate(loop);
    thread_ = outside;
    for (size_t i = 0; i < made_.size(); ++i) seen_[i] = seen_[i] || loop->var.same_as(made_[i].thread);
    return mutated;
  }
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    for (size_t i = 0; i < made_.size(); ++i) {
      if (!made_[i].out.same_as(load->buffer) || !seen_[i] || !thread_) continue;
      bool is_own = true;
      for (size_t d = 0; d < load->indices.size(); ++d) {
        const PrimExpr index = Substitute(made_[i].indices[d], {{made_[i].thread, PrimExpr(thread_)}});
        is_own &= IsConstInt(analyzer_.Simplify(load->indices[d] - index), 0);
      }
      if (is_own) return Make<BufferLoadNode>(made_[i].kept, std::vector<PrimExpr>{thread_});
    }
    return StmtMutator::Mutate(load);
  }

 private:
  const std::vector<CrossThreads>& made_;
  const int64_t threads_;
  std::vector<bool> seen_;  // the loop in which threads get what they keep
  PrimVar thread_;
  arith::Analyzer analyzer_;
};

// How often buffers are stored and loaded.
struct AccessCounter : StmtVisitor {
  std::unordered_map<const BufferNode*, int64_t> stores, loads;
  using StmtVisitor::Visit;
  void Visit(const BufferStoreNode& store) override {
    ++stores[store.buffer.get()];
    StmtVisitor::Visit(store);
  }
  void Visit(const BufferLoadNode& load) override {
    ++loads[load.buffer.get()];
    StmtVisitor::Visit(load);
  }
};

// Leaves out the stores of some buffers, which are those of an If that holds nothing else.
class StoreRemover : public StmtMutator {
 public:
  explicit StoreRemover(std::vector<Buffer> buffers) : buffers_(std::move(buffers)) {}

 protected:
  using StmtMutator::Mutate;
  Stmt Mutate(const Ref<SeqNode>& seq) override {
    std::vector<Stmt> kept;
    for (const Stmt& stmt : seq->stmts) {
      const auto* guard = As<IfStmtNode>(stmt);
      const auto* store = guard != nullptr ? As<BufferStoreNode>(guard->then_case) : nullptr;
      const bool goes = store != nullptr && std::ranges::any_of(buffers_, [&](const Buffer& buffer) {
                          return buffer.same_as(store->buffer);
                        });
      if (!goes) kept.push_back(MutateStmt(stmt));
    }
    return MakeSeq(std::move(kept));
  }

 private:
  const std::vector<Buffer> buffers_;
};

}  // namespace

Stmt KeepElements(Stmt seq, const std::vector<CrossThreads>& made, int64_t threads) {
  AccessCounter count;
  count.VisitStmt(seq);
  std::vector<CrossThreads> of_one_store;
  for (const CrossThreads& of : made) {
    if (count.stores[of.out.get()] == 1) of_one_store.push_back(of);
  }
  seq = ElementKeeper(of_one_store, threads).MutateStmt(seq);
  for (const CrossThreads& of : made) {
    for (const Buffer& buffer : of.buffers) seq = Make<AllocateNode>(buffer, seq);
  }
  return seq;
}

Stmt DropUnreadElements(const Stmt& body, const std::vector<Buffer>& elements) {
  AccessCounter count;
  count.VisitStmt(body);
  std::vector<Buffer> unread;
  for (const Buffer& buffer : elements) {
    if (count.loads[buffer.get()] == 0) unread.push_back(buffer);
  }
  return unread.empty() ? body : StoreRemover(std::move(unread)).MutateStmt(body);
}

}  // namespace ingot::transform
