// Before: the body of a serial loop may use quotients and remainders of the loop's variable by a size that is known at
// run time, as loops that were fused do. After: such a loop is two loops, over the quotients and over the remainders,
// without a division in either: a division by a symbol takes tens of cycles, where one by a constant is a product.
//
//   for f in range(E):                      let q0 = B // N
//     ... (B + f) // N, (B + f) % N     =>  for q in range((B + E + N - 1) // N - q0):      quotient = q0 + q
//                                             let begin = max(B - quotient * N, 0)
//                                             for r in range(min(B + E - quotient * N, N) - begin):
//                                               ... quotient, begin + r
//
// It is done where the loops around never run with N <= 0. A quotient that is divided once more makes the loop over
// quotients such a loop in turn; where N divides a quotient by a number, the loop is cut by that number first. It is one of the last passes, since the other ones see more in a single loop.
#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/tensor/passes.h"
#include "compiler/transform/tensor/range_mutator.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

// A numerator less the loop's variable, and the divisor.
struct FusedPlace {
  PrimExpr base, size;
};

const BinaryNode* AsFloorDivision(const PrimExpr& expr) {
  const auto* node = As<BinaryNode>(expr);
  const bool divides = node != nullptr && (node->op == BinaryOp::kFloorDiv || node->op == BinaryOp::kFloorMod);
  return divides && node->dtype == DataType::Int(64) ? node : nullptr;
}

// The first division of the variable plus something by something that is no constant, where the loop changes neither; or
// the division by a number whose quotient is divided so.
class FusedPlaceFinder : public StmtVisitor {
 public:
  FusedPlaceFinder(const PrimVar& var, arith::Analyzer& analyzer) : var_(var), analyzer_(analyzer) {
    defined_.insert(var.get());
  }
  std::optional<FusedPlace> found;

  void VisitPrim(const PrimExpr& expr) override {
    if (found) return;
    const BinaryNode* node = AsFloorDivision(expr);
    if (node != nullptr && !AsConstInt(node->b) && IsFixed(node->b)) {
      const BinaryNode* inner = AsFloorDivision(node->a);
      const bool is_quotient = inner != nullptr && inner->op == BinaryOp::kFloorDiv && AsConstInt(inner->b);
      found = PlaceOf(*node);
      if (!found && is_quotient) found = PlaceOf(*inner);
      if (found) return;
    }
    StmtVisitor::VisitPrim(expr);
  }

 private:
  std::optional<FusedPlace> PlaceOf(const BinaryNode& division) const {
    const std::optional<arith::LinearForm> form = arith::DetectLinear(division.a, {var_}, analyzer_);
    if (!form || !IsConstInt(form->coefficients[0], 1) || !IsFixed(form->constant)) return std::nullopt;
    return FusedPlace{form->constant, division.b};
  }
  void VisitDefinition(const PrimVar& var) override { defined_.insert(var.get()); }
  bool IsFixed(const PrimExpr& expr) const { return !ReadsMemory(expr) && !MentionsAny(expr, defined_); }

  const PrimVar& var_;
  arith::Analyzer& analyzer_;
  std::unordered_set<const PrimVarNode*> defined_;
};

// Puts quotient and remainder for all divisions of one numerator by one divisor.
class DivisionReplacer : public StmtMutator {
 public:
  DivisionReplacer(const PrimVar& var, const FusedPlace& place, PrimExpr quotient, PrimExpr remainder,
                   arith::Analyzer& analyzer)
      : var_(var),
        place_(place),
        analyzer_(analyzer),
        quotient_(std::move(quotient)),
        remainder_(std::move(remainder)) {}
  bool uses_var = false;  // still

  PrimExpr MutatePrim(const PrimExpr& expr) override {
    const BinaryNode* node = AsFloorDivision(expr);
    if (node != nullptr && arith::SameExpr(node->b, place_.size)) {
      const std::optional<arith::LinearForm> form = arith::DetectLinear(node->a, {var_}, analyzer_);
      if (form && IsConstInt(form->coefficients[0], 1) && arith::SameExpr(form->constant, place_.base)) {
        return node->op == BinaryOp::kFloorDiv ? quotient_ : remainder_;
      }
    }
    uses_var |= expr.get() == var_.get();
    return StmtMutator::MutatePrim(expr);
  }

 private:
  const PrimVar& var_;
  const FusedPlace& place_;
  arith::Analyzer& analyzer_;
  const PrimExpr quotient_, remainder_;
};

class ExprReplacer : public PrimMutator {
 public:
  ExprReplacer(PrimExpr from, PrimExpr to) : from_(std::move(from)), to_(std::move(to)) {}
  PrimExpr MutatePrim(const PrimExpr& expr) override {
    return arith::SameExpr(expr, from_) ? to_ : PrimMutator::MutatePrim(expr);
  }

 private:
  const PrimExpr from_, to_;
};

class LoopUnfuser : public RangeMutator {
 protected:
  using RangeMutator::Mutate;
  Stmt Mutate(const Ref<ForNode>& loop) override {
    extents_.push_back(loop->extent);
    Stmt result = Unfused(loop);
    extents_.pop_back();
    return result;
  }

 private:
  Stmt Unfused(const Ref<ForNode>& loop) {
    if (loop->for_kind == ForKind::kSerial && loop->var->dtype == DataType::Int(64) && IsConstInt(loop->min, 0)) {
      FusedPlaceFinder finder(loop->var, analyzer_);
      finder.VisitStmt(loop->body);
      if (finder.found && IsPositiveInside(finder.found->size)) return Split(*loop, *finder.found);
    }
    return RangeMutator::Mutate(loop);
  }

  Stmt Split(const ForNode& loop, const FusedPlace& place) {
    const DataType int64 = DataType::Int(64);
    const std::string& name = loop.var->name;
    const PrimVar first = MakePrimVar(name + "_first", int64), outer = MakePrimVar(name + "_outer", int64);
    const PrimVar begin = MakePrimVar(name + "_begin", int64), inner = MakePrimVar(name + "_inner", int64);
    const PrimExpr& size = place.size;
    const PrimExpr divisor = analyzer_.ProveLess(Int64(0), size) ? size : Max(size, Int64(1));
    const PrimExpr end = analyzer_.Simplify(place.base + loop.extent);
    const bool starts_whole = IsConstInt(place.base, 0);
    const PrimExpr quotient = starts_whole ? PrimExpr(outer) : PrimExpr(first) + PrimExpr(outer);
    const PrimExpr remainder = starts_whole ? PrimExpr(inner) : PrimExpr(begin) + PrimExpr(inner);
    const PrimExpr rounds = FloorDiv(end + divisor - Int64(1), divisor);

    DivisionReplacer replacer(loop.var, place, quotient, remainder, analyzer_);
    Stmt body = replacer.MutateStmt(loop.body);
    if (replacer.uses_var) {
      body = Make<LetStmtNode>(loop.var, quotient * size + remainder - place.base, std::move(body));
    }
    const PrimExpr last = Min(end - quotient * size, size);
    body =
        Make<ForNode>(inner, Int64(0), starts_whole ? last : last - PrimExpr(begin), ForKind::kSerial, std::move(body));
    if (!starts_whole) {
      body = Make<LetStmtNode>(begin, Max(place.base - quotient * size, Int64(0)), std::move(body));
    }
    body = Make<ForNode>(outer, Int64(0), starts_whole ? rounds : rounds - PrimExpr(first), ForKind::kSerial,
                         std::move(body));
    if (!starts_whole) body = Make<LetStmtNode>(first, FloorDiv(place.base, divisor), std::move(body));
    return MutateStmt(body);
  }

  // Whether one of the loops around has no iterations unless the size is positive.
  bool IsPositiveInside(const PrimExpr& size) {
    if (analyzer_.ProveLess(Int64(0), size)) return true;
    const arith::LinearSum sum = analyzer_.Canonical(size);
    if (sum.terms.size() == 1 && sum.constant == 0 && sum.terms[0].coefficient > 0) {
      return std::ranges::all_of(sum.terms[0].factors, [&](const PrimExpr& factor) {
        return analyzer_.ProveLessEqual(Int64(0), factor) && IsEmptyWhereNotPositive(factor, factor, nullptr);
      });
    }
    return std::ranges::any_of(sum.terms, [&](const arith::LinearTerm& term) {
      if (term.coefficient != 1 || term.only_factor() == nullptr) return false;
      return IsEmptyWhereNotPositive(size, *term.only_factor(), analyzer_.Simplify(*term.only_factor() - size));
    });
  }
  // Replaces the atom by a number that is not positive, plus the rest of the sum (null: no rest).
  bool IsEmptyWhereNotPositive(const PrimExpr& size, const PrimExpr& atom, const PrimExpr& rest) {
    arith::Analyzer analyzer = analyzer_;
    const PrimVar number = MakePrimVar("not_positive", size->dtype);
    analyzer.Bind(number, arith::Interval{arith::Interval::kUnboundedBelow, 0});
    ExprReplacer replacer(atom, rest ? PrimExpr(number) + rest : PrimExpr(number));
    return std::ranges::any_of(extents_, [&](const PrimExpr& extent) {
      return analyzer.ProveLessEqual(replacer.MutatePrim(extent), Int64(0));
    });
  }

  std::vector<PrimExpr> extents_;  // of the loops around
};

}  // namespace

Result<PrimFunc> UnfuseLoops(const PrimFunc& function, const Target&) {
  return WithBody(function, LoopUnfuser().MutateStmt(function->body));
}

}  // namespace ingot::transform
