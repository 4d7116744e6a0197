// for r in R: for t in T: out[r] = out[r] op value(r, t)   becomes, for R * T threads of which each has one value:
//
//   for thread:  own = value(r, t)                            kCudaWarpReduce: all lanes get what the warp's values give
//                the first lane of a warp:  warps[thread / 32] = own
//   for thread:  the first of an element:  out[r] = warps[..] op warps[..] op ...
//
// Where an element has one warp, its first lane stores the result at once. Every warp belongs to one element, so that all
// of its lanes exchange. Lowering places `own` in a register, `warps` in shared memory, and has the threads wait between
// both loops (place_buffers, codegen/cuda_launches).
#include "compiler/transform/tensor/cross_threads.h"

#include <bit>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/target/cuda.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

struct CrossReduction {
  std::vector<const ForNode*> rows;  // over elements, outermost first
  const ForNode* loop = nullptr;     // over the values of one
  const BufferStoreNode* update = nullptr;
  BinaryOp op = BinaryOp::kAdd;
  PrimExpr value;
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
  const auto* loop = As<ForNode>(stmt);
  for (; loop != nullptr && loop->annotations.Find(kCudaCrossThreads) == nullptr; loop = As<ForNode>(loop->body)) {
    const auto extent = AsConstInt(loop->extent);
    if (!extent || loop->for_kind != ForKind::kSerial) return {};
    elements *= *extent;
    match.rows.push_back(loop);
  }
  if (loop == nullptr || loop->for_kind != ForKind::kSerial) return {};
  const int64_t values = AsConstInt(loop->extent).value_or(0);
  const bool is_whole_warps = values >= kCudaWarpThreads && std::has_single_bit(static_cast<uint64_t>(values));
  if (!is_whole_warps || elements * values != threads) return {};
  match.loop = loop;
  // What begins with the first iteration: each thread begins with its own value instead.
  const auto* seq = As<SeqNode>(loop->body);
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
  return match;
}

Stmt OverThreads(const PrimVar& thread, int64_t threads, Stmt body) {
  return Make<ForNode>(thread, Int64(0), Int64(threads), ForKind::kThreadBinding, std::move(body), "threadIdx.x");
}

Stmt StoreIf(const PrimExpr& condition, const Buffer& buffer, PrimExpr value, std::vector<PrimExpr> indices) {
  return Make<IfStmtNode>(condition, Make<BufferStoreNode>(buffer, std::move(value), std::move(indices)), nullptr);
}

}  // namespace

std::optional<Stmt> ReduceAcrossThreads(const Stmt& stmt, int64_t threads) {
  const std::optional<CrossReduction> match = MatchCrossReduction(stmt, threads);
  if (!match) return {};
  const int64_t values = *AsConstInt(match->loop->extent), warps_of_element = values / kCudaWarpThreads;
  // The place of a thread's value.
  arith::Analyzer analyzer;
  const auto at = [&](const PrimVar& thread, const PrimExpr& expr) {
    analyzer.Bind(thread, Range{Int64(0), Int64(threads)});
    PrimVarMap places{{match->loop->var, analyzer.Simplify(FloorMod(PrimExpr(thread), Int64(values)))}};
    PrimExpr rest = analyzer.Simplify(FloorDiv(PrimExpr(thread), Int64(values)));
    for (size_t i = match->rows.size(); i-- > 0;) {
      const PrimExpr& extent = match->rows[i]->extent;
      places.emplace(match->rows[i]->var, analyzer.Simplify(FloorMod(rest, extent)));
      rest = analyzer.Simplify(FloorDiv(rest, extent));
    }
    return analyzer.Simplify(Substitute(expr, places));
  };
  const auto element = [&](const PrimVar& thread) {
    std::vector<PrimExpr> indices = match->update->indices;
    for (PrimExpr& index : indices) index = at(thread, index);
    return indices;
  };
  const Buffer& out = match->update->buffer;
  const DataType dtype = out->dtype;
  const Buffer own = MakeBuffer(out->name + "_own", dtype, {Int64(threads)}, "local");
  const PrimVar thread = MakePrimVar("t");
  const PrimExpr own_value = Make<BufferLoadNode>(own, std::vector<PrimExpr>{thread});
  Stmt set_own = Make<BufferStoreNode>(own, at(thread, match->value), std::vector<PrimExpr>{thread});
  std::vector<Stmt> steps{
      Make<AttrStmtNode>(nullptr, kCudaWarpReduce, AttrValue(static_cast<int64_t>(match->op)), std::move(set_own))};
  if (warps_of_element == 1) {
    const PrimExpr is_first = Equal(FloorMod(PrimExpr(thread), Int64(values)), Int64(0));
    steps.push_back(StoreIf(is_first, out, own_value, element(thread)));
    return Make<AllocateNode>(own, OverThreads(thread, threads, MakeSeq(std::move(steps))));
  }
  const Buffer warps = MakeBuffer(out->name + "_warps", dtype, {Int64(threads / kCudaWarpThreads)}, "shared");
  steps.push_back(StoreIf(Equal(FloorMod(PrimExpr(thread), Int64(kCudaWarpThreads)), Int64(0)), warps, own_value,
                          {FloorDiv(PrimExpr(thread), Int64(kCudaWarpThreads))}));
  const PrimVar reader = MakePrimVar("t");
  PrimExpr all;
  for (int64_t warp = 0; warp < warps_of_element; ++warp) {
    const PrimExpr place = FloorDiv(PrimExpr(reader), Int64(kCudaWarpThreads)) + warp;
    PrimExpr part = Make<BufferLoadNode>(warps, std::vector<PrimExpr>{place});
    all = all ? MakeBinary(match->op, std::move(all), std::move(part)) : std::move(part);
  }
  const Stmt last = StoreIf(Equal(FloorMod(PrimExpr(reader), Int64(values)), Int64(0)), out, all, element(reader));
  Stmt both = MakeSeq({OverThreads(thread, threads, MakeSeq(std::move(steps))), OverThreads(reader, threads, last)});
  return Make<AllocateNode>(own, Make<AllocateNode>(warps, std::move(both)));
}

}  // namespace ingot::transform
