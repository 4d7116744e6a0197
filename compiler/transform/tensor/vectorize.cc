// Before: loops of kind vectorized have a constant extent and independent iterations. After: there are none; their
// bodies work on vectors. The loop variable becomes Ramp(0, 1, n), and expressions that depend on it get n lanes:
//   - index arithmetic stays a Ramp as long as it is linear; a floordiv or floormod by a multiple of the ramp's range
//     (the row of a fused loop) is a Broadcast or a Ramp again; anything else is a vector of arbitrary indices;
//   - a load whose leading indices differ between lanes is one scalar load per lane, joined by a Shuffle (a
//     transposition reads so), and such a store a serial loop; on CUDA, so is a load at indices that are no Ramp, which
//     lanes divide together (LaneDivisions);
//   - if_then_else whose condition differs between lanes becomes a Select if both values are safe to evaluate (no
//     load, no integer division); it stays one with a condition per lane (masked loads) if its loads are vectors;
//     otherwise, and on CUDA, the lanes are computed one by one and joined by a Shuffle;
//   - an If whose condition differs between lanes stays one if it holds only stores of vectors (masked); on CUDA there
//     are vectors where all lanes fulfil it, else a serial loop;
//   - a reduction of all lanes into one element joins the lanes first, or is a serial loop where all lanes are equal;
//   - two vectorized loops around a store that loads along the outer one are a square that is transposed in registers;
//   - anything else, and anything with an effect, runs as a serial loop.
// It comes before unrolling (one body instead of many) and after partitioning, which leaves few such conditions.
#include <algorithm>
#include <bit>
#include <unordered_map>
#include <unordered_set>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/fresh_copy.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/tensor/passes.h"
#include "compiler/transform/tensor/range_mutator.h"

namespace ingot::transform {

using namespace ir;  // NOLINT
using For = Ref<ForNode>;

namespace {

class SafetyCheck : public PrimVisitor {
 public:
  bool safe = true;  // it may be evaluated where the program would not

 protected:
  using PrimVisitor::Visit;
  void Visit(const BufferLoadNode&) override { safe = false; }
  void Visit(const BinaryNode& node) override {
    const bool divides = node.op == BinaryOp::kDiv || node.op == BinaryOp::kTruncMod ||
                         node.op == BinaryOp::kFloorDiv || node.op == BinaryOp::kFloorMod;
    if (divides && !node.dtype.is_floating()) safe = false;
    PrimVisitor::Visit(node);
  }
  void Visit(const PrimCallNode& call) override {
    if (GetIntrinsicRow(call.op).traits != IntrinsicRow::kPure) safe = false;
    PrimVisitor::Visit(call);
  }
};
bool SafeToEvaluate(const PrimExpr& expr) {
  SafetyCheck check;
  check.VisitPrim(expr);
  return check.safe;
}

bool LoadsFrom(const Buffer& buffer, const PrimExpr& expr) {
  class Finder : public PrimVisitor {
   public:
    explicit Finder(const Buffer& wanted) : wanted_(wanted) {}
    bool found = false;

   protected:
    using PrimVisitor::Visit;
    void Visit(const BufferLoadNode& load) override {
      found |= load.buffer.same_as(wanted_);
      PrimVisitor::Visit(load);
    }

   private:
    const Buffer& wanted_;
  };
  Finder finder(buffer);
  finder.VisitPrim(expr);
  return finder.found;
}

// Whether a vector may be computed for some of its lanes only: its loads are vectors (masked), or of one element that
// all lanes need. Loads of lanes that are computed one by one are not guarded.
class MaskCheck : public PrimVisitor {
 public:
  bool can = true;

 protected:
  using PrimVisitor::Visit;
  void Visit(const ShuffleNode&) override { can = false; }
  void Visit(const BinaryNode& node) override {
    const bool divides = node.op == BinaryOp::kDiv || node.op == BinaryOp::kTruncMod ||
                         node.op == BinaryOp::kFloorDiv || node.op == BinaryOp::kFloorMod;
    if (divides && !node.dtype.is_floating() && !node.dtype.is_scalar()) can = false;
    PrimVisitor::Visit(node);
  }
  void Visit(const PrimCallNode& call) override {
    if (GetIntrinsicRow(call.op).traits == IntrinsicRow::kEffect) can = false;
    PrimVisitor::Visit(call);
  }
};
bool CanMask(const PrimExpr& expr) {
  MaskCheck check;
  check.VisitPrim(expr);
  return check.can;
}

PrimExpr Widen(const PrimExpr& expr, int lanes) {
  return expr->dtype.lanes == lanes ? expr : PrimExpr(Make<BroadcastNode>(expr, lanes));
}

using SymbolSet = std::unordered_set<const PrimVarNode*>;

// The places of the lanes of a vector that are computed one by one: quotients and remainders of what lanes count up are
// those of the first lane, plus one, or from 0 again, where the lane is past the next multiple. So a division by a symbol
// is made once for all lanes, not in each; one by a constant is a multiplication, which takes less. The divisor is taken to
// be no less than what lanes add; the conditions are collected.
class LaneDivisions : public PrimMutator {
 public:
  // `symbols`: what divisors may depend on.
  LaneDivisions(const PrimVar& var, int lanes, int lane, const SymbolSet& symbols, std::vector<PrimExpr>& assumed)
      : var_(var), lanes_(lanes), lane_(lane), symbols_(symbols), assumed_(assumed) {}

 protected:
  using PrimMutator::Mutate;
  PrimExpr Mutate(const Ref<BinaryNode>& node) override {
    if (node->op != BinaryOp::kFloorDiv && node->op != BinaryOp::kFloorMod) return PrimMutator::Mutate(node);
    if (node->op == BinaryOp::kFloorDiv) {
      const std::optional<Shifted> quotient = Shift(node);
      return quotient ? quotient->first + quotient->more : PrimMutator::Mutate(node);
    }
    const std::optional<Shifted> a = Shift(node->a);
    if (!a || a->most == 0 || !IsLongEnough(node->b, a->most)) return PrimMutator::Mutate(node);
    const PrimExpr place = FloorMod(a->first, node->b) + a->more;
    return Select(place >= node->b, place - node->b, place);
  }

 private:
  // A value as that of the first lane and what this one has more, which is 0 at least.
  struct Shifted {
    PrimExpr first, more;
    int64_t most = 0;  // that a lane has more
  };

  std::optional<Shifted> Shift(const PrimExpr& expr) {
    const PrimExpr nothing = IntImm(expr->dtype, 0);
    if (!MentionsAny(expr, {var_.get()})) return Shifted{expr, nothing, 0};
    if (expr.get() == var_.get()) return Shifted{nothing, IntImm(expr->dtype, lane_), lanes_ - 1};
    const auto* node = As<BinaryNode>(expr);
    if (node == nullptr || !expr->dtype.is_int()) return std::nullopt;
    const std::optional<Shifted> a = Shift(node->a);
    if (!a) return std::nullopt;
    if (node->op == BinaryOp::kAdd) {
      const std::optional<Shifted> b = Shift(node->b);
      if (!b) return std::nullopt;
      return Shifted{a->first + b->first, a->more + b->more, a->most + b->most};
    }
    if (MentionsAny(node->b, {var_.get()})) return std::nullopt;
    if (node->op == BinaryOp::kSub) return Shifted{a->first - node->b, a->more, a->most};
    if (node->op != BinaryOp::kFloorDiv || !IsLongEnough(node->b, a->most)) return std::nullopt;
    const PrimExpr is_next = FloorMod(a->first, node->b) + a->more >= node->b;
    return Shifted{FloorDiv(a->first, node->b), Cast(expr->dtype, is_next), 1};
  }
  // Whether lanes reach the next multiple at the most.
  bool IsLongEnough(const PrimExpr& divisor, int64_t most) {
    if (AsConstInt(divisor)) return false;
    const auto is_symbol = [&](const PrimVar& var) { return symbols_.contains(var.get()); };
    if (ReadsMemory(divisor) || !std::ranges::all_of(FreePrimVars(divisor), is_symbol)) return false;
    const PrimExpr condition = divisor >= IntImm(divisor->dtype, std::max<int64_t>(most, 1));
    const auto is_same = [&](const PrimExpr& known) { return StructuralEqual(known, condition); };
    if (std::ranges::none_of(assumed_, is_same)) assumed_.push_back(condition);
    return true;
  }

  const PrimVar& var_;
  int lanes_, lane_;
  const SymbolSet& symbols_;
  std::vector<PrimExpr>& assumed_;
};

// Rewrites the body of one vectorized loop, in which everything is scalar. What does not depend on the variable stays
// scalar.
class Vectorizer : public StmtMutator {
 public:
  Vectorizer(PrimVar var, int lanes, arith::Analyzer& analyzer)
      : var_(std::move(var)), lanes_(lanes), analyzer_(analyzer) {}

  bool has_masks = true;  // a device without masked accesses has two versions: of all lanes, and of one after the other

  // What the vectors take for granted of these symbols.
  const SymbolSet* symbols = nullptr;
  const std::vector<PrimExpr>& assumed() const { return assumed_; }

  // Values that are given from outside: of loads (with lanes), and of variables.
  std::unordered_map<const PrimExprNode*, PrimExpr> given;
  PrimVarMap fixed;

 protected:
  using StmtMutator::Mutate;

  PrimExpr Mutate(const Ref<PrimVarNode>& var) override {
    const auto it = fixed.find(var);
    if (it != fixed.end()) return it->second;
    const auto bound = vectors_.find(var);
    if (bound != vectors_.end()) return bound->second;
    if (!var.same_as(var_)) return var;
    return Make<RampNode>(IntImm(var->dtype, 0), IntImm(var->dtype, 1), lanes_);
  }

  PrimExpr Mutate(const Ref<BinaryNode>& node) override {
    PrimExpr a = MutatePrim(node->a), b = MutatePrim(node->b);
    if (a->dtype.is_scalar() && b->dtype.is_scalar()) return MakeBinary(node->op, std::move(a), std::move(b));
    if (std::optional<PrimExpr> ramp = RampArithmetic(node->op, a, b)) return *ramp;
    return Make<BinaryNode>(node->op, Widen(a, lanes_), Widen(b, lanes_));
  }
  PrimExpr Mutate(const Ref<NotNode>& node) override {
    PrimExpr a = MutatePrim(node->a);
    return a.same_as(node->a) ? PrimExpr(node) : Not(std::move(a));
  }
  PrimExpr Mutate(const Ref<SelectNode>& node) override {
    return SelectLanes(MutatePrim(node->condition), MutatePrim(node->true_value), MutatePrim(node->false_value));
  }
  PrimExpr Mutate(const Ref<CastNode>& node) override {
    PrimExpr value = MutatePrim(node->value);
    const DataType dtype = node->dtype.with_lanes(value->dtype.lanes);  // read before `value` is moved
    return Cast(dtype, std::move(value));
  }
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    const auto it = given.find(load.get());
    if (it != given.end()) return it->second;
    const std::optional<std::vector<PrimExpr>> indices = Indices(load->indices);
    if (indices && !has_masks && !IsAffine(*indices)) return LaneByLane(load);
    return indices ? PrimExpr(Make<BufferLoadNode>(load->buffer, *indices)) : LaneByLane(load);
  }
  // The variable of a vector has lanes, too.
  PrimExpr Mutate(const Ref<LetNode>& let) override {
    PrimExpr value = MutatePrim(let->value);
    if (value->dtype.is_scalar()) return Make<LetNode>(let->var, std::move(value), MutatePrim(let->body));
    const PrimVar vector = MakePrimVar(let->var->name, value->dtype);
    vectors_.insert_or_assign(let->var, vector);
    PrimExpr body = MutatePrim(let->body);
    vectors_.erase(let->var);
    return Make<LetNode>(vector, std::move(value), std::move(body));
  }
  PrimExpr Mutate(const Ref<PrimCallNode>& call) override {
    std::vector<PrimExpr> args;
    bool vector = false;
    for (const PrimExpr& arg : call->args) {
      args.push_back(MutatePrim(arg));
      vector |= args.back()->dtype.lanes == lanes_;
    }
    if (!vector) return Make<PrimCallNode>(call->dtype, call->op, std::move(args));
    if (call->op == Intrinsic::kIfThenElse) {
      if (args[0]->dtype.is_scalar()) {
        PrimExpr yes = Widen(args[1], lanes_), no = Widen(args[2], lanes_);
        return Make<PrimCallNode>(yes->dtype, call->op, std::vector<PrimExpr>{args[0], yes, no});
      }
      return Choose(call, args[0], args[1], args[2]);
    }
    const bool pure = GetIntrinsicRow(call->op).traits == IntrinsicRow::kPure;
    if (!pure || IsHorizontal(call->op)) return LaneByLane(call);
    for (PrimExpr& arg : args) arg = Widen(arg, lanes_);
    return Make<PrimCallNode>(call->dtype.with_lanes(lanes_), call->op, std::move(args));
  }
  Stmt Mutate(const Ref<BufferStoreNode>& store) override {
    const std::optional<std::vector<PrimExpr>> indices = Indices(store->indices);
    if (!indices) return Serial(store);
    PrimExpr value = MutatePrim(store->value);
    const bool vector_place = !indices->empty() && indices->back()->dtype.lanes == lanes_;
    if (value->dtype.lanes == lanes_ && !vector_place) {  // lanes write one element one after the other
      const std::optional<PrimExpr> joined = JoinLanes(*store);
      return joined ? Stmt(Make<BufferStoreNode>(store->buffer, *joined, *indices)) : Serial(store);
    }
    if (vector_place) {
      value = Widen(value, lanes_);
    } else if (LoadsFrom(store->buffer, value)) {  // what one lane writes, the next one reads
      return Serial(store);
    }
    return Make<BufferStoreNode>(store->buffer, std::move(value), *indices);
  }
  Stmt Mutate(const Ref<IfStmtNode>& node) override {
    PrimExpr condition = MutatePrim(node->condition);
    Stmt then_case = MutateStmt(node->then_case);
    if (!condition->dtype.is_scalar()) {
      if (node->else_case || !StoresLanes(then_case)) return Serial(node);
      if (!has_masks) return WholeOrSerial(node, condition, std::move(then_case));
      return Make<IfStmtNode>(std::move(condition), std::move(then_case), nullptr);
    }
    Stmt else_case = node->else_case ? MutateStmt(node->else_case) : nullptr;
    return Make<IfStmtNode>(std::move(condition), std::move(then_case), std::move(else_case));
  }
  Stmt Mutate(const Ref<LetStmtNode>& let) override { return Serial(let); }
  Stmt Mutate(const Ref<EvaluateNode>& node) override { return Serial(node); }
  Stmt Mutate(const Ref<WhileNode>& node) override { return Serial(node); }
  Stmt Mutate(const Ref<AssertStmtNode>& node) override { return Serial(node); }
  Stmt Mutate(const Ref<AllocateNode>& node) override { return Serial(node); }
  Stmt Mutate(const Ref<ForNode>& loop) override {
    if (!MutatePrim(loop->extent)->dtype.is_scalar()) return Serial(loop);
    return StmtMutator::Mutate(loop);
  }

 private:
  static bool IsHorizontal(Intrinsic op) {
    return op == Intrinsic::kVectorReduceAdd || op == Intrinsic::kVectorReduceMax || op == Intrinsic::kVectorReduceMin;
  }

  // Lanes may differ in the last index only; returns nothing if they differ in another one.
  std::optional<std::vector<PrimExpr>> Indices(const std::vector<PrimExpr>& indices) {
    std::vector<PrimExpr> result;
    for (size_t i = 0; i < indices.size(); ++i) {
      result.push_back(MutatePrim(indices[i]));
      if (i + 1 == indices.size() || result.back()->dtype.is_scalar()) continue;
      const auto* same = As<BroadcastNode>(result.back());
      if (same == nullptr) return std::nullopt;
      result.back() = same->value;
    }
    return result;
  }

  static bool IsAffine(const std::vector<PrimExpr>& indices) {
    return indices.empty() || indices.back()->dtype.is_scalar() || As<RampNode>(indices.back()) != nullptr ||
           As<BroadcastNode>(indices.back()) != nullptr;
  }

  std::optional<PrimExpr> RampArithmetic(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
    const auto* ra = As<RampNode>(a);
    const auto* rb = As<RampNode>(b);
    if (op == BinaryOp::kAdd || op == BinaryOp::kSub) {
      if (ra != nullptr && rb != nullptr) {
        return Ramp(MakeBinary(op, ra->base, rb->base), MakeBinary(op, ra->stride, rb->stride));
      }
      if (ra != nullptr && b->dtype.is_scalar()) return Ramp(MakeBinary(op, ra->base, b), ra->stride);
      if (rb != nullptr && a->dtype.is_scalar()) {
        const PrimExpr zero = IntImm(rb->stride->dtype, 0);
        return Ramp(MakeBinary(op, a, rb->base), MakeBinary(op, zero, rb->stride));
      }
      return std::nullopt;
    }
    if (op == BinaryOp::kMul) {
      if (ra != nullptr && b->dtype.is_scalar()) return Ramp(ra->base * b, ra->stride * b);
      if (rb != nullptr && a->dtype.is_scalar()) return Ramp(a * rb->base, a * rb->stride);
      return std::nullopt;
    }
    if ((op != BinaryOp::kFloorDiv && op != BinaryOp::kFloorMod) || ra == nullptr || !b->dtype.is_scalar() ||
        !IsConstInt(ra->stride, 1)) {
      return std::nullopt;
    }
    // All lanes are in one row of length b.
    const auto row = AsConstInt(b);
    const bool aligned = row && *row % lanes_ == 0 && analyzer_.ProveDivisible(ra->base, lanes_);
    const bool inside = aligned || analyzer_.ProveLessEqual(FloorMod(ra->base, b) + int64_t{lanes_}, b);
    if (!inside) return std::nullopt;
    if (op == BinaryOp::kFloorDiv) return Make<BroadcastNode>(FloorDiv(ra->base, b), lanes_);
    return Ramp(FloorMod(ra->base, b), ra->stride);
  }
  PrimExpr Ramp(PrimExpr base, PrimExpr stride) const {
    if (IsConstInt(stride, 0)) return Make<BroadcastNode>(std::move(base), lanes_);
    return Make<RampNode>(std::move(base), std::move(stride), lanes_);
  }

  PrimExpr SelectLanes(PrimExpr condition, PrimExpr yes, PrimExpr no) const {
    const bool vector = condition->dtype.lanes == lanes_ || yes->dtype.lanes == lanes_ || no->dtype.lanes == lanes_;
    if (!vector) return Select(std::move(condition), std::move(yes), std::move(no));
    return Make<SelectNode>(Widen(condition, lanes_), Widen(yes, lanes_), Widen(no, lanes_));
  }

  // Returns an if_then_else with a condition per lane.
  PrimExpr Choose(const Ref<PrimCallNode>& call, const PrimExpr& condition, const PrimExpr& yes, const PrimExpr& no) {
    if (SafeToEvaluate(yes) && SafeToEvaluate(no)) return SelectLanes(condition, yes, no);
    const auto masked = [&](PrimExpr mask, const PrimExpr& value, const PrimExpr& other) -> PrimExpr {
      return Make<PrimCallNode>(call->dtype.with_lanes(lanes_), Intrinsic::kIfThenElse,
                                std::vector<PrimExpr>{std::move(mask), Widen(value, lanes_), Widen(other, lanes_)});
    };
    if (!has_masks || !CanMask(yes)) return LaneByLane(call);
    if (SafeToEvaluate(no)) return masked(condition, yes, no);
    if (!CanMask(no)) return LaneByLane(call);
    return masked(condition, yes, masked(Not(condition), no, MakeConst(call->dtype, 0)));
  }
  bool StoresLanes(const Stmt& stmt) const {
    if (const auto* seq = As<SeqNode>(stmt)) {
      return std::all_of(seq->stmts.begin(), seq->stmts.end(), [&](const Stmt& s) { return StoresLanes(s); });
    }
    const auto* store = As<BufferStoreNode>(stmt);
    if (store == nullptr || store->indices.back()->dtype.lanes != lanes_) return false;
    return !has_masks || (CanMask(store->value) && CanMask(store->indices.back()));
  }
  // `out = out op lanes` with one out for all lanes, which the lanes do not read: joins the lanes first.
  std::optional<PrimExpr> JoinLanes(const BufferStoreNode& store) {
    const auto* binary = As<BinaryNode>(store.value);
    if (binary == nullptr) return std::nullopt;
    const std::optional<Intrinsic> join = binary->op == BinaryOp::kAdd   ? Intrinsic::kVectorReduceAdd
                                          : binary->op == BinaryOp::kMax ? Intrinsic::kVectorReduceMax
                                          : binary->op == BinaryOp::kMin ? std::optional(Intrinsic::kVectorReduceMin)
                                                                         : std::nullopt;
    const auto* out = As<BufferLoadNode>(binary->a);
    if (!join || out == nullptr || !out->buffer.same_as(store.buffer)) return std::nullopt;
    for (size_t d = 0; d < store.indices.size(); ++d) {
      if (!StructuralEqual(out->indices[d], store.indices[d])) return std::nullopt;
    }
    if (LoadsFrom(store.buffer, binary->b)) return std::nullopt;
    const PrimExpr rest = MutatePrim(binary->b);
    if (rest->dtype.lanes != lanes_) return std::nullopt;
    return MakeBinary(binary->op, MutatePrim(binary->a),
                      Make<PrimCallNode>(rest->dtype.element_of(), *join, std::vector<PrimExpr>{rest}));
  }

  // Under a condition that the first lanes fulfil, up to a bound: vectors where all lanes do, else one after the other.
  Stmt WholeOrSerial(const Ref<IfStmtNode>& node, const PrimExpr& condition, Stmt vectors) const {
    const auto* less = As<BinaryNode>(condition);
    const auto* ramp = less != nullptr && less->op == BinaryOp::kLT ? As<RampNode>(less->a) : nullptr;
    const auto* bound = ramp != nullptr ? As<BroadcastNode>(less->b) : nullptr;
    if (bound == nullptr || !IsConstInt(ramp->stride, 1)) return Serial(node);
    return Make<IfStmtNode>(ramp->base + int64_t{lanes_} <= bound->value, std::move(vectors), Serial(node));
  }

  // Returns the scalar expression of each lane, joined.
  PrimExpr LaneByLane(const PrimExpr& scalar) {
    std::vector<PrimExpr> values;
    std::vector<int64_t> positions;
    for (int lane = 0; lane < lanes_; ++lane) {
      PrimVarMap map = WithFixed(IntImm(var_->dtype, lane));
      for (const auto& [var, vector] : vectors_) {
        map.insert_or_assign(var, Make<ShuffleNode>(std::vector<PrimExpr>{vector}, std::vector<int64_t>{lane}));
      }
      const PrimExpr value =
          has_masks ? scalar : LaneDivisions(var_, lanes_, lane, *symbols, assumed_).MutatePrim(scalar);
      values.push_back(CopyFresh(Substitute(value, map)));
      positions.push_back(lane);
    }
    return Make<ShuffleNode>(std::move(values), std::move(positions));
  }

  Stmt Serial(const Stmt& stmt) const {
    PrimVar var = MakePrimVar(var_->name, var_->dtype);
    return Make<ForNode>(var, IntImm(var->dtype, 0), IntImm(var->dtype, lanes_), ForKind::kSerial,
                         Substitute(stmt, WithFixed(var)));
  }

  // Expressions that stay scalar get the values of fixed variables too.
  PrimVarMap WithFixed(PrimExpr value) const {
    PrimVarMap map = fixed;
    map.insert_or_assign(var_, std::move(value));
    return map;
  }

  PrimVar var_;
  int lanes_;
  arith::Analyzer& analyzer_;
  PrimVarMap vectors_;  // the vectors that variables of lets around are
  std::vector<PrimExpr> assumed_;
};

// Transposes a square of n rows of n lanes each, by shuffles of two vectors at a time: first squares within blocks of
// 128 bits, all of which one instruction interleaves at once, then whole blocks.
class SquareTransposer {
 public:
  // Intermediate values are bound to variables, in order.
  std::vector<std::pair<PrimVar, PrimExpr>> lets;

  PrimExpr Bind(PrimExpr value) {
    const PrimVar var = MakePrimVar("t" + std::to_string(lets.size()), value->dtype);
    lets.emplace_back(var, std::move(value));
    return var;
  }
  std::vector<PrimExpr> Columns(std::vector<PrimExpr> rows) {
    const auto n = static_cast<int64_t>(rows.size());
    const int64_t block = std::min<int64_t>(n, std::max<int64_t>(128 / rows[0]->dtype.bits, 1));
    const int64_t groups = n / block;
    for (int64_t group = 0; group < groups; ++group) {
      for (int64_t done = 1; done < block; done *= 2) {
        std::vector<PrimExpr> next(static_cast<size_t>(block));
        for (int64_t i = 0; i < block / 2; ++i) {
          const PrimExpr &a = rows[group * block + i], &b = rows[group * block + i + block / 2];
          next[2 * i] = Interleave(a, b, block, 0);
          next[2 * i + 1] = Interleave(a, b, block, block / 2);
        }
        std::move(next.begin(), next.end(), rows.begin() + group * block);
      }
    }
    std::vector<PrimExpr> columns;
    for (int64_t c = 0; c < n; ++c) {
      std::vector<PrimExpr> parts;  // blocks c / block of these, joined in pairs
      for (int64_t group = 0; group < groups; ++group) parts.push_back(rows[group * block + c % block]);
      int64_t width = block, position = c / block * block;
      while (parts.size() > 1) {
        std::vector<PrimExpr> joined;
        for (size_t i = 0; i < parts.size(); i += 2) {
          std::vector<int64_t> lanes;
          for (int64_t lane = 0; lane < n; ++lane) {
            lanes.push_back(position + lane % width + (lane / width % 2) * n);
          }
          joined.push_back(Bind(Make<ShuffleNode>(std::vector<PrimExpr>{parts[i], parts[i + 1]}, std::move(lanes))));
        }
        parts = std::move(joined);
        width *= 2;
        position = 0;
      }
      columns.push_back(parts[0]);
    }
    return columns;
  }

 private:
  // Within each block: a[first], b[first], a[first + 1], b[first + 1], ...
  PrimExpr Interleave(const PrimExpr& a, const PrimExpr& b, int64_t block, int64_t first) {
    std::vector<int64_t> lanes;
    for (int64_t lane = 0; lane < a->dtype.lanes; ++lane) {
      const int64_t in_block = lane % block;
      lanes.push_back(lane - in_block + first + in_block / 2 + in_block % 2 * a->dtype.lanes);
    }
    return Bind(Make<ShuffleNode>(std::vector<PrimExpr>{a, b}, std::move(lanes)));
  }
};

// Values that squares are transposed by at the most: each is a scope around all that follow, and a few squares fill the
// registers.
constexpr int64_t kMaxTransposedValues = 2048;

// for y in vectorized(n): for x in vectorized(n): a store along x of loads along y: the square is transposed in
// registers, once for loads that are alike. Returns nothing for other loops.
std::optional<Stmt> TransposeSquare(const For& outer, const For& inner, arith::Analyzer& analyzer) {
  const auto n = AsConstInt(inner->extent);
  const auto* store = As<BufferStoreNode>(inner->body);
  if (store == nullptr || !n || !AsConstInt(outer->extent) || *AsConstInt(outer->extent) != *n || *n < 2 ||
      !std::has_single_bit(static_cast<uint64_t>(*n))) {
    return std::nullopt;
  }
  const int lanes = static_cast<int>(*n);
  const auto is_run = [&](const PrimExpr& expr) {
    const auto* access = As<BufferLoadNode>(expr);
    const auto* ramp = access != nullptr ? As<RampNode>(access->indices.back()) : nullptr;
    return ramp != nullptr && IsConstInt(ramp->stride, 1);
  };
  struct Loads : PrimVisitor {
    std::vector<const BufferLoadNode*> found;
    bool by_let = false;  // an index mentions what is known inside of the value only
    using PrimVisitor::Visit;
    void Visit(const BufferLoadNode& load) override {
      found.push_back(&load);
      for (const PrimVar& var : FreePrimVars(Ref<BufferLoadNode>(&load))) by_let |= lets.contains(var.get());
    }
    void Visit(const LetNode& let) override {
      lets.insert(let.var.get());
      PrimVisitor::Visit(let);
    }
    std::unordered_set<const PrimVarNode*> lets;
  } loads;
  loads.VisitPrim(store->value);
  if (loads.by_let) return std::nullopt;
  SquareTransposer square;
  std::vector<std::pair<const BufferLoadNode*, std::vector<PrimExpr>>> columns;
  for (const BufferLoadNode* load : loads.found) {
    const PrimExpr expr = Ref<BufferLoadNode>(load);
    const auto same = std::ranges::find_if(
        columns, [&](const auto& known) { return StructuralEqual(expr, Ref<BufferLoadNode>(known.first)); });
    if (same != columns.end()) {
      std::vector<PrimExpr> shared = same->second;
      columns.emplace_back(load, std::move(shared));
      continue;
    }
    if (std::ssize(square.lets) > kMaxTransposedValues) return std::nullopt;
    PrimExpr along_x = Vectorizer(inner->var, lanes, analyzer).MutatePrim(expr);
    if (along_x->dtype.is_scalar() || is_run(along_x)) continue;
    std::vector<PrimExpr> rows;
    for (int i = 0; i < lanes; ++i) {
      Vectorizer along_y(outer->var, lanes, analyzer);
      along_y.fixed.emplace(inner->var, IntImm(inner->var->dtype, i));
      rows.push_back(along_y.MutatePrim(expr));
      if (!is_run(rows.back())) return std::nullopt;
      rows.back() = square.Bind(std::move(rows.back()));
    }
    columns.emplace_back(load, square.Columns(std::move(rows)));
  }
  if (columns.empty()) return std::nullopt;
  std::vector<Stmt> stores;
  for (int j = 0; j < lanes; ++j) {
    Vectorizer along_x(inner->var, lanes, analyzer);
    along_x.fixed.emplace(outer->var, IntImm(outer->var->dtype, j));
    for (const auto& [load, column] : columns) along_x.given.emplace(load, column[static_cast<size_t>(j)]);
    stores.push_back(along_x.MutateStmt(inner->body));
  }
  Stmt body = MakeSeq(std::move(stores));
  for (size_t i = square.lets.size(); i-- > 0;) {
    body = Make<LetStmtNode>(square.lets[i].first, square.lets[i].second, std::move(body));
  }
  return body;
}

class VectorizeLoopsMutator : public RangeMutator {
 public:
  Status status;
  VectorizeLoopsMutator(const PrimFunc& function, const Target& target)
      : has_masks_(target.kind != Target::Kind::kCuda) {
    for (const PrimFuncParam& param : function->params) {
      if (!param.buffer) {
        symbols_.insert(param.var.get());
        continue;
      }
      for (const PrimExpr& dim : param.buffer->shape) {
        for (const PrimVar& var : FreePrimVars(dim)) symbols_.insert(var.get());
      }
    }
  }

 protected:
  using RangeMutator::Mutate;
  Stmt Mutate(const Ref<ForNode>& loop) override {
    analyzer_.Bind(loop->var, Range{loop->min, loop->extent});
    if (loop->for_kind != ForKind::kVectorized) return RangeMutator::Mutate(loop);
    const auto extent = AsConstInt(loop->extent);
    if (!extent || *extent < 1) {
      status = Status(StatusCode::kInvalidArgument, "vectorize: loop " + loop->var->name + " has no constant extent");
      return loop;
    }
    if (*extent == 1) return MutateStmt(Substitute(loop->body, {{loop->var, IntImm(loop->var->dtype, 0)}}));
    if (const For inner = AsRef<ForNode>(loop->body); inner && inner->for_kind == ForKind::kVectorized) {
      analyzer_.Bind(inner->var, Range{inner->min, inner->extent});
      if (std::optional<Stmt> square = TransposeSquare(loop, inner, analyzer_)) return *square;
    }
    // Around nested vector loops and vectors in the source, and for vectors that no machine has, the loop stays a loop.
    if (*extent > kMaxLanes || HoldsVectors(loop->body)) {
      ForNode copy = *loop;
      copy.for_kind = ForKind::kSerial;
      copy.body = MutateStmt(loop->body);
      return Make<ForNode>(std::move(copy));
    }
    Vectorizer vectorizer(loop->var, static_cast<int>(*extent), analyzer_);
    vectorizer.has_masks = has_masks_;
    vectorizer.symbols = &symbols_;
    Stmt vectors = vectorizer.MutateStmt(loop->body);
    if (vectorizer.assumed().empty()) return vectors;
    PrimExpr is_so = BoolImm(true);
    for (const PrimExpr& condition : vectorizer.assumed()) is_so = And(is_so, condition);
    ForNode serial = *loop;
    serial.for_kind = ForKind::kSerial;
    return Make<IfStmtNode>(std::move(is_so), std::move(vectors), CopyFresh(Stmt(Make<ForNode>(std::move(serial)))));
  }

 private:
  const bool has_masks_;
  SymbolSet symbols_;
  static constexpr int64_t kMaxLanes = 256;  // four registers of 512 bits full of bytes

  class VectorFinder : public StmtVisitor {
   public:
    bool found = false;
    void VisitPrim(const PrimExpr& expr) override {
      found |= !expr->dtype.is_scalar();
      StmtVisitor::VisitPrim(expr);
    }

   protected:
    using StmtVisitor::Visit;
    void Visit(const ForNode& loop) override {
      found |= loop.for_kind == ForKind::kVectorized;
      StmtVisitor::Visit(loop);
    }
  };
  static bool HoldsVectors(const Stmt& stmt) {
    VectorFinder finder;
    finder.VisitStmt(stmt);
    return finder.found;
  }
};

}  // namespace

Result<PrimFunc> VectorizeLoops(const PrimFunc& function, const Target& target) {
  VectorizeLoopsMutator mutator(function, target);
  Stmt body = mutator.MutateStmt(function->body);
  INGOT_RETURN_IF_ERROR(mutator.status);
  return WithBody(function, std::move(body));
}

}  // namespace ingot::transform
