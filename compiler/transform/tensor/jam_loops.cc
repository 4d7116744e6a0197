// Before: a loop says how many bits of registers its iterations need at once (ir/jam.h). After: where the target
// has as many, and the iterations are proved to be independent, the loop is gone and its iterations run together, so that
// what they read in common is loaded once; elsewhere it is a plain loop.
//
//   for q in range(2):                          acc_0 = alloc, acc_1 = alloc
//     acc = alloc                               acc_0 = 0; acc_1 = 0
//     acc = 0                            =>     for h in range(H):
//     for h in range(H):                          acc_0 += x[h] * y[0, h]
//       acc += x[h] * y[q, h]                     acc_1 += x[h] * y[1, h]
//     out[q] = acc                              out[0] = acc_0; out[1] = acc_1
//
// Inner loops and conditions that are the same in all iterations are entered together; any other statement stands there
// once for each iteration. It comes before buffers get their places, which iterations that follow each other may share,
// and before loops are partitioned, which would take the iterations apart.
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/ir/fresh_copy.h"
#include "compiler/ir/jam.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/tensor/independent_loops.h"
#include "compiler/transform/tensor/passes.h"
#include "compiler/transform/tensor/range_mutator.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kMostJammed = 8;

// Joins the iterations of one loop.
class Jam {
 public:
  Jam(const ForNode& loop, int64_t count) : iterations_(static_cast<size_t>(count)) {
    own_vars_.insert(loop.var.get());
    for (int64_t i = 0; i < count; ++i) {
      iterations_[static_cast<size_t>(i)].vars.emplace(loop.var, loop.min + IntImm(loop.var->dtype, i));
    }
  }

  Stmt Together(const Stmt& stmt) {
    if (const auto* seq = As<SeqNode>(stmt)) {
      std::vector<Stmt> stmts;
      for (const Stmt& each : seq->stmts) stmts.push_back(Together(each));
      return MakeSeq(std::move(stmts));
    }
    if (const auto* allocate = As<AllocateNode>(stmt)) return Allocated(*allocate);
    const auto* let = As<LetStmtNode>(stmt);
    if (let != nullptr && !ReadsMemory(let->value)) return Bound(*let);
    const auto* loop = As<ForNode>(stmt);
    const bool is_shared_loop = loop != nullptr && loop->annotations.empty() && IsShared(loop->min) &&
                                IsShared(loop->extent) &&
                                (loop->for_kind == ForKind::kSerial || loop->for_kind == ForKind::kUnrolled);
    if (is_shared_loop) {
      ForNode copy = *loop;
      copy.body = Together(loop->body);
      return Make<ForNode>(std::move(copy));
    }
    const auto* condition = As<IfStmtNode>(stmt);
    if (condition != nullptr && IsShared(condition->condition)) {
      return Make<IfStmtNode>(condition->condition, Together(condition->then_case),
                              condition->else_case ? Together(condition->else_case) : nullptr);
    }
    std::vector<Stmt> stmts;
    for (const Iteration& own : iterations_) stmts.push_back(CopyFresh(Substitute(stmt, own.vars, own.buffers)));
    return MakeSeq(std::move(stmts));
  }

 private:
  struct Iteration {
    PrimVarMap vars;
    BufferMap buffers;
  };

  // Whether the expression has one value in all iterations. (What is loaded may differ.)
  bool IsShared(const PrimExpr& expr) const { return !MentionsAny(expr, own_vars_) && !ReadsMemory(expr); }

  Stmt Allocated(const AllocateNode& allocate) {
    std::vector<Buffer> own;
    for (Iteration& iteration : iterations_) {
      BufferNode copy = *allocate.buffer;
      copy.data = MakePrimVar(allocate.buffer->data->name, allocate.buffer->data->dtype);
      for (PrimExpr& dim : copy.shape) dim = Substitute(dim, iteration.vars);
      own.push_back(Make<BufferNode>(std::move(copy)));
      iteration.buffers.emplace(allocate.buffer, own.back());
    }
    Stmt body = Together(allocate.body);
    while (!own.empty()) {
      body = Make<AllocateNode>(own.back(), std::move(body), allocate.annotations);
      own.pop_back();
    }
    return body;
  }
  Stmt Bound(const LetStmtNode& let) {
    std::vector<std::pair<PrimVar, PrimExpr>> own;
    for (Iteration& iteration : iterations_) {
      const PrimVar var = MakePrimVar(let.var->name, let.var->dtype);
      own.emplace_back(var, CopyFresh(Substitute(let.value, iteration.vars)));
      iteration.vars.emplace(let.var, var);
    }
    own_vars_.insert(let.var.get());
    Stmt body = Together(let.body);
    while (!own.empty()) {
      body = Make<LetStmtNode>(own.back().first, own.back().second, std::move(body));
      own.pop_back();
    }
    return body;
  }

  std::vector<Iteration> iterations_;
  std::unordered_set<const PrimVarNode*> own_vars_;
};

class Jammer : public RangeMutator {
 public:
  explicit Jammer(const Target& target) : register_bits_(int64_t{target.num_vector_registers} * target.vector_bits) {}

 protected:
  using RangeMutator::Mutate;
  Stmt Mutate(const Ref<ForNode>& node) override {
    const Stmt mutated = RangeMutator::Mutate(node);
    const auto* loop = As<ForNode>(mutated);
    const AttrValue* bits = loop == nullptr ? nullptr : loop->annotations.Find(kJamRegisterBits);
    if (bits == nullptr) return mutated;
    ForNode plain = *loop;
    plain.annotations = plain.annotations.Without(kJamRegisterBits);
    const auto count = AsConstInt(loop->extent);
    const bool has_registers = bits->get<int64_t>() != nullptr && *bits->get<int64_t>() <= register_bits_;
    if (!has_registers || !count || *count < 1 || *count > kMostJammed) return Make<ForNode>(std::move(plain));
    if (!IterationsAreIndependent(plain, analyzer_)) return Make<ForNode>(std::move(plain));
    return Jam(plain, *count).Together(plain.body);
  }

 private:
  const int64_t register_bits_;
};

}  // namespace

Result<PrimFunc> JamLoops(const PrimFunc& function, const Target& target) {
  return WithBody(function, Jammer(target).MutateStmt(function->body));
}

}  // namespace ingot::transform
