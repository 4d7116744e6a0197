// The solver: an iteration of a store's loops for the element that a load reads.
#include "compiler/transform/tensor/stored_before.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "compiler/ir/condition.h"
#include "compiler/ir/structural.h"
#include "compiler/transform/tensor/reads.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

// An index of the store and the place that it must have.
struct Equation {
  PrimExpr index, place;
};

class Solver {
 public:
  Solver(std::vector<OwnLoop> loops, std::vector<Equation> equations, arith::Analyzer& analyzer)
      : loops_(std::move(loops)), equations_(std::move(equations)), analyzer_(analyzer) {}

  // An iteration, if there is one by form; whether it is in the loops and stores there is to be verified.
  std::optional<PrimVarMap> Solve() {
    while (!equations_.empty()) {
      const auto next = std::ranges::min_element(equations_, {},
                                                 [&](const Equation& equation) { return UnknownsOf(equation).size(); });
      if (!Use(*next)) return std::nullopt;
      equations_.erase(next);
    }
    for (const OwnLoop& loop : loops_) {  // any of the iterations
      if (!solved_.contains(loop.var)) solved_.emplace(loop.var, Substitute(loop.min, solved_));
    }
    return solved_;
  }

 private:
  std::vector<PrimVar> UnknownsOf(const Equation& equation) const {
    std::vector<PrimVar> vars;
    for (const PrimVar& var : FreePrimVars(equation.index)) {
      const bool is_own = std::ranges::any_of(loops_, [&](const OwnLoop& loop) { return loop.var.same_as(var); });
      if (is_own && !solved_.contains(var)) vars.push_back(var);
    }
    return vars;
  }

  // Solves one equation for what is unknown in it: the digits of a number, from the highest on.
  bool Use(const Equation& equation) {
    const std::vector<PrimVar> vars = UnknownsOf(equation);
    if (vars.empty()) return true;
    const PrimExpr index = Substitute(equation.index, solved_);
    const std::optional<arith::LinearForm> form = arith::DetectLinear(index, vars, analyzer_);
    if (!form) return false;
    struct Term {
      const OwnLoop* loop;
      int64_t factor;
    };
    std::vector<Term> terms;
    PrimExpr rest = equation.place - form->constant;
    for (size_t i = 0; i < vars.size(); ++i) {
      const auto factor = AsConstInt(form->coefficients[i]);
      if (!factor || *factor == 0 || (*factor < 0 && vars.size() > 1)) return false;
      const auto loop = std::ranges::find_if(loops_, [&](const OwnLoop& own) { return own.var.same_as(vars[i]); });
      terms.push_back({&*loop, *factor});
      rest = rest - Substitute(loop->min, solved_) * *factor;
    }
    std::ranges::sort(terms, [](const Term& a, const Term& b) { return a.factor > b.factor; });
    rest = analyzer_.Simplify(rest);
    for (const Term& term : terms) {
      const PrimExpr factor = IntImm(rest->dtype, std::abs(term.factor));
      const PrimExpr steps = analyzer_.Simplify(FloorDiv(term.factor < 0 ? rest * -1 : rest, factor));
      solved_.emplace(term.loop->var, analyzer_.Simplify(Substitute(term.loop->min, solved_) + steps));
      rest = analyzer_.Simplify(FloorMod(rest, factor));
    }
    return true;
  }

  std::vector<OwnLoop> loops_;
  std::vector<Equation> equations_;
  arith::Analyzer& analyzer_;
  PrimVarMap solved_;
};

// The numbers by which expressions divide a variable, quotients of it included, in rising order; nothing if one of them
// does not divide the next.
std::vector<int64_t> DivisorsOf(const PrimVar& var, const std::vector<PrimExpr>& exprs) {
  struct Finder : PrimVisitor {
    explicit Finder(const PrimVar& v) : var(v) {}
    using PrimVisitor::Visit;
    void Visit(const BinaryNode& node) override {
      PrimVisitor::Visit(node);
      const auto divisor = AsConstInt(node.b);
      const bool divides = node.op == BinaryOp::kFloorDiv || node.op == BinaryOp::kFloorMod;
      if (!divides || !divisor || *divisor <= 1) return;
      if (node.a.same_as(var)) divisors.push_back(*divisor);
      const auto* quotient = As<BinaryNode>(node.a);
      if (quotient == nullptr || quotient->op != BinaryOp::kFloorDiv || !quotient->a.same_as(var)) return;
      const auto first = AsConstInt(quotient->b);
      int64_t product = 0;
      if (first && !__builtin_mul_overflow(*first, *divisor, &product)) divisors.push_back(product);
    }
    const PrimVar& var;
    std::vector<int64_t> divisors;
  } finder(var);
  for (const PrimExpr& expr : exprs) finder.VisitPrim(expr);
  std::vector<int64_t>& divisors = finder.divisors;
  std::ranges::sort(divisors);
  divisors.erase(std::ranges::unique(divisors).begin(), divisors.end());
  for (size_t i = 1; i < divisors.size(); ++i) {
    if (divisors[i] % divisors[i - 1] != 0) return {};
  }
  return divisors;
}

// How many entries two paths share.
size_t SharedBy(const BufferAccess& a, const BufferAccess& b) {
  size_t n = 0;
  while (n < a.path.size() && n < b.path.size() && a.path[n].same_as(b.path[n])) ++n;
  return n;
}

// Whether the expression has a value where both accesses are: it reads no elements and has no lets around the store alone.
bool IsKnown(const PrimExpr& expr, const BufferAccess& store, size_t shared) {
  if (ReadsMemory(expr)) return false;
  std::unordered_set<const PrimVarNode*> lets;
  for (size_t i = shared; i < store.path.size(); ++i) {
    if (const auto* let = As<LetStmtNode>(store.path[i])) lets.insert(let->var.get());
  }
  return lets.empty() || !MentionsAny(expr, lets);
}

}  // namespace

std::vector<PrimExpr> GuardsOn(const std::vector<Stmt>& path, size_t from) {
  std::vector<PrimExpr> guards;
  for (size_t i = from; i + 1 < path.size(); ++i) {
    const auto* guard = As<IfStmtNode>(path[i]);
    if (guard == nullptr) continue;
    const bool is_then = guard->then_case.same_as(path[i + 1]);
    for (PrimExpr& part : ConjunctsOf(is_then ? guard->condition : Not(guard->condition))) {
      guards.push_back(std::move(part));
    }
  }
  return guards;
}

bool StoredBefore::IsOfWritten(const PrimExpr& expr) const { return ReadsAnyOf(expr, written_); }

// What holds where the load is.
void StoredBefore::LearnFrom(const BufferAccess& load) {
  analyzer_ = around_;
  places_.clear();
  data_guards_.clear();
  in_known_loops_ = true;
  for (size_t i = prefix_; i + 1 < load.path.size(); ++i) {
    if (const auto* loop = As<ForNode>(load.path[i])) {
      in_known_loops_ &= !IsOfWritten(loop->min) && !IsOfWritten(loop->extent);
      analyzer_.Bind(loop->var, Range{loop->min, loop->extent});
      if (!AsConstInt(loop->extent)) analyzer_.Assume(IntImm(loop->extent->dtype, 1) <= loop->extent);
    } else if (const auto* let = As<LetStmtNode>(load.path[i])) {
      analyzer_.BindLet(let->var, let->value);
    }
  }
  std::vector<PrimExpr> guards = GuardsOn(load.path, prefix_ - 1);
  for (const PrimExpr& chosen : load.chosen) {
    for (PrimExpr& part : ConjunctsOf(chosen)) guards.push_back(std::move(part));
  }
  for (const PrimExpr& guard : guards) {
    if (ReadsMemory(guard)) {
      if (!IsOfWritten(guard)) data_guards_.push_back(guard);
    } else if (guard->dtype.is_scalar()) {
      analyzer_.Assume(guard);
    }
  }
  for (size_t d = 0; d < load.indices.size(); ++d) {
    const PrimExpr& index = load.indices[d];
    if (ReadsMemory(index)) {
      const PrimVar anywhere = MakePrimVar("anywhere", index->dtype);
      analyzer_.Bind(anywhere, Range{IntImm(index->dtype, 0), buffer_->shape[d]});
      places_.push_back(anywhere);
      continue;
    }
    places_.push_back(index);
    if (AsConstInt(index)) continue;
    analyzer_.Assume(IntImm(index->dtype, 0) <= index);
    analyzer_.Assume(index < buffer_->shape[d]);
  }
}

bool StoredBefore::Holds(size_t load) {
  LearnFrom(accesses_[load]);
  if (!in_known_loops_) return false;
  for (size_t store = load; store-- > 0;) {
    if (accesses_[store].is_store && IsStoredBy(accesses_[store], accesses_[load])) return true;
  }
  return false;
}

bool StoredBefore::IsStoredBy(const BufferAccess& store, const BufferAccess& load) {
  const size_t shared = SharedBy(store, load);
  if (Stores(store, shared, places_)) return true;
  // Once more with the load's own variables as the sums of their digits.
  PrimVarMap sums;
  std::vector<OwnLoop> digits;
  for (size_t i = shared; i + 1 < load.path.size(); ++i) {
    const auto* loop = As<ForNode>(load.path[i]);
    if (loop != nullptr) SplitIntoDigits({loop->var, loop->min, loop->extent}, places_, sums, digits);
  }
  if (sums.empty()) return false;
  std::vector<PrimExpr> places;
  for (const PrimExpr& place : places_) places.push_back(analyzer_.Simplify(Substitute(place, sums)));
  return Stores(store, shared, places);
}

// A variable whose quotients and remainders are used counts as the sum of its digits. Returns whether it is one.
bool StoredBefore::SplitIntoDigits(const OwnLoop& loop, const std::vector<PrimExpr>& exprs, PrimVarMap& sums,
                                   std::vector<OwnLoop>& digits) {
  const std::vector<int64_t> divisors = IsConstInt(loop.min, 0) ? DivisorsOf(loop.var, exprs) : std::vector<int64_t>();
  if (divisors.empty()) return false;
  const DataType dtype = loop.var->dtype;
  PrimExpr sum;
  for (size_t i = 0; i <= divisors.size(); ++i) {
    const int64_t unit = i == 0 ? 1 : divisors[i - 1];
    const PrimExpr end = i < divisors.size() ? IntImm(dtype, divisors[i] / unit)
                                             : FloorDiv(loop.extent + (unit - 1), IntImm(dtype, unit));
    digits.push_back({MakePrimVar("digit", dtype), IntImm(dtype, 0), end});
    analyzer_.Bind(digits.back().var, Range{digits.back().min, end});
    const PrimExpr part = PrimExpr(digits.back().var) * unit;
    sum = sum ? sum + part : part;
  }
  sums.emplace(loop.var, sum);
  return true;
}

// Whether an iteration of the store's own loops stores at these places.
bool StoredBefore::Stores(const BufferAccess& store, size_t shared, const std::vector<PrimExpr>& places) {
  std::vector<OwnLoop> loops;
  for (size_t i = shared; i < store.path.size(); ++i) {
    if (const auto* loop = As<ForNode>(store.path[i])) {
      if (IsOfWritten(loop->min) || IsOfWritten(loop->extent)) return false;  // another number where the load is
      loops.push_back({loop->var, loop->min, loop->extent});
    }
    if (As<WhileNode>(store.path[i]) != nullptr) return false;  // which may have no iteration
  }
  // Of an If whose other branch holds the load, the condition is the store's own.
  const std::vector<PrimExpr> guards = GuardsOn(store.path, shared - 1);
  std::vector<PrimExpr> exprs = store.indices;
  exprs.insert(exprs.end(), guards.begin(), guards.end());
  PrimVarMap sums;
  std::vector<OwnLoop> digits;
  for (const OwnLoop& loop : loops) {
    if (!SplitIntoDigits(loop, exprs, sums, digits)) digits.push_back(loop);
  }
  std::vector<Equation> equations;
  for (size_t d = 0; d < store.indices.size(); ++d) {
    if (!IsKnown(store.indices[d], store, shared)) return false;
    equations.push_back({analyzer_.Simplify(Substitute(store.indices[d], sums)), places[d]});
  }
  std::optional<PrimVarMap> iteration = Solver(digits, equations, analyzer_).Solve();
  if (!iteration) return false;
  // Where the digits of a variable are in their ranges, an index in digits is the store's own.
  const bool are_digits = std::ranges::all_of(digits, [&](const OwnLoop& digit) {
    const PrimExpr& value = iteration->at(digit.var);
    return analyzer_.ProveLessEqual(digit.min, value) && analyzer_.ProveLess(value, digit.min + digit.extent);
  });
  for (const auto& [var, sum] : sums) iteration->insert_or_assign(var, Substitute(sum, *iteration));
  const auto at = [&](const PrimExpr& expr) { return Substitute(expr, *iteration); };
  for (size_t d = 0; d < store.indices.size(); ++d) {
    const bool is_place = analyzer_.ProveEqual(at(store.indices[d]), places[d]) ||
                          (are_digits && analyzer_.ProveEqual(at(equations[d].index), places[d]));
    if (!is_place) return false;
  }
  for (const OwnLoop& loop : loops) {
    const PrimExpr value = iteration->at(loop.var), begin = at(loop.min);
    if (!analyzer_.ProveLessEqual(begin, value) || !analyzer_.ProveLess(value, begin + at(loop.extent))) return false;
  }
  for (const PrimExpr& guard : guards) {
    const PrimExpr part = at(guard);
    const auto is_part = [&](const PrimExpr& other) { return StructuralEqual(part, other); };
    const bool holds = ReadsMemory(guard) ? std::ranges::any_of(data_guards_, is_part)
                                          : IsKnown(guard, store, shared) && analyzer_.Prove(part);
    if (!holds) return false;
  }
  return true;
}

}  // namespace ingot::transform
