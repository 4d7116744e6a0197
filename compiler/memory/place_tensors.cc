// Greedy placement, once for constant sizes (integers) and once for symbolic ones (formulas that are compared by
// proof); the former tries several orders, the latter bounds the sizes that are rounded up (RoundedSizes).
#include "compiler/memory/place_tensors.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/codegen/dim_code_lowering.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/states.h"
#include "vm/program/limits.h"

namespace ingot::memory {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

constexpr int64_t kAlignment = 64;

int64_t RoundUp(int64_t value) { return (value + kAlignment - 1) / kAlignment * kAlignment; }

// Evaluates a size with 64 for every symbol, to order tensors by size.
double TypicalValue(const PrimExpr& expr) {
  if (const auto value = AsConstInt(expr)) return static_cast<double>(*value);
  PrimVarMap typical;
  for (const PrimVar& var : FreePrimVars(expr)) typical[var] = Int64(64);
  arith::Analyzer analyzer;
  const PrimExpr value = analyzer.Simplify(Substitute(expr, typical));
  const auto constant = AsConstInt(value);
  return constant ? static_cast<double>(*constant) : 0.0;
}

// The size with each coefficient of its linear form rounded up to 64 bytes; nothing if the size is not linear with
// constant coefficients >= 0. `waste` is the largest fraction that rounding adds to a coefficient.
struct RoundedByCoefficients {
  PrimExpr bytes;
  double waste = 0;
};
std::optional<RoundedByCoefficients> RoundCoefficients(const PrimExpr& bytes) {
  const std::vector<PrimVar> vars = FreePrimVars(bytes);
  const std::optional<arith::LinearForm> form = arith::DetectLinear(bytes, vars);
  if (!form) return std::nullopt;
  RoundedByCoefficients rounded{Int64(0)};
  const auto add = [&](const PrimExpr& coefficient, const PrimExpr& factor) {
    const auto value = AsConstInt(coefficient);
    if (!value || *value < 0) return false;
    const int64_t up = RoundUp(*value);
    if (up > *value)
      rounded.waste = std::max(rounded.waste, static_cast<double>(up - *value) / static_cast<double>(*value));
    rounded.bytes = rounded.bytes + factor * up;
    return true;
  };
  if (!add(form->constant, Int64(1))) return std::nullopt;
  for (size_t i = 0; i < vars.size(); ++i) {
    if (!add(form->coefficients[i], vars[i])) return std::nullopt;
  }
  arith::Analyzer analyzer;
  rounded.bytes = analyzer.Simplify(rounded.bytes);
  return rounded;
}

// The tensors that were placed, indexed by their live ranges, so that a search for overlaps costs about as much as
// there are results. It is a segment tree over time: each tensor is listed at the nodes that cover its interval;
// another list orders the tensors by the beginning of their intervals.
class LiveTensors {
 public:
  explicit LiveTensors(const std::vector<PlannedTensor>& tensors) : tensors_(tensors) {
    int64_t end = 1;
    for (const PlannedTensor& tensor : tensors) end = std::max(end, tensor.last + 1);
    while (num_leaves_ < end) num_leaves_ *= 2;
    covering_.resize(static_cast<size_t>(2 * num_leaves_));
  }

  void Add(size_t tensor) {
    const auto number = num_placed_++;
    int64_t low = tensors_[tensor].first + num_leaves_, high = tensors_[tensor].last + num_leaves_ + 1;
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) covering_[static_cast<size_t>(low++)].push_back({number, tensor});
      if (high % 2 == 1) covering_[static_cast<size_t>(--high)].push_back({number, tensor});
    }
    by_begin_.insert({tensors_[tensor].first, {number, tensor}});
  }

  // Returns the placed tensors that are alive at the same time as this one at some point, in the order of addition.
  std::vector<size_t> Overlapping(const PlannedTensor& tensor) const {
    std::vector<std::pair<size_t, size_t>> found;
    for (int64_t node = tensor.first + num_leaves_; node > 0; node /= 2) {
      const auto& here = covering_[static_cast<size_t>(node)];
      found.insert(found.end(), here.begin(), here.end());
    }
    for (auto it = by_begin_.upper_bound(tensor.first); it != by_begin_.end() && it->first <= tensor.last; ++it) {
      found.push_back(it->second);
    }
    std::sort(found.begin(), found.end());
    std::vector<size_t> result;
    for (const auto& [number, other] : found) result.push_back(other);
    return result;
  }

 private:
  const std::vector<PlannedTensor>& tensors_;
  int64_t num_leaves_ = 1;
  size_t num_placed_ = 0;
  std::vector<std::vector<std::pair<size_t, size_t>>> covering_;  // by node: (number, tensor)
  std::multimap<int64_t, std::pair<size_t, size_t>> by_begin_;    // (number, tensor)
};

// Places tensors whose sizes are all constants: the same algorithm on integers.
std::pair<std::vector<int64_t>, int64_t> PlaceConstants(const std::vector<PlannedTensor>& tensors,
                                                        const std::vector<size_t>& order) {
  std::vector<int64_t> offsets(tensors.size(), 0);
  LiveTensors placed(tensors);
  int64_t peak = 0;
  for (size_t i : order) {
    const int64_t size = *AsConstInt(tensors[i].size_bytes);
    std::vector<size_t> neighbours = placed.Overlapping(tensors[i]);
    std::stable_sort(neighbours.begin(), neighbours.end(), [&](size_t a, size_t b) { return offsets[a] < offsets[b]; });
    int64_t offset = 0;
    for (size_t j : neighbours) {
      if (offset + size <= offsets[j]) break;  // the gap before j is wide enough
      offset = std::max(offset, offsets[j] + *AsConstInt(tensors[j].size_bytes));
    }
    offsets[i] = offset;
    peak = std::max(peak, offset + size);
    placed.Add(i);
  }
  return {std::move(offsets), peak};
}

// Whether the expression can be a formula of the file, whose number of steps is limited.
bool FitsFormula(const PrimExpr& expr) {
  const std::vector<PrimVar> vars = FreePrimVars(expr);
  return codegen::LowerToDimCode(expr, vars).ok();
}

// Represents sizes that are rounded up as a whole by variables, and proves inequalities from what is known of them.
class RoundedSizes {
 public:
  // Returns the variable for such a size, and any other size unchanged.
  PrimExpr Add(const PlannedTensor& tensor) {
    if (!tensor.unrounded_bytes) return tensor.size_bytes;
    const PrimExpr unrounded = analyzer_.Simplify(tensor.unrounded_bytes);
    const auto [begin, end] = by_hash_.equal_range(IdentityHash(unrounded));
    for (auto it = begin; it != end; ++it) {
      if (StructuralEqual(sizes_.at(it->second).unrounded, unrounded)) return it->second;
    }
    const PrimVar var = MakePrimVar("size" + std::to_string(sizes_.size()));
    const std::optional<RoundedByCoefficients> upper = RoundCoefficients(unrounded);
    sizes_[var] = {unrounded, upper ? upper->bytes : nullptr};
    by_hash_.emplace(IdentityHash(unrounded), var);
    formulas_[var] = tensor.size_bytes;
    return var;
  }

  // Replaces the variables by their formulas in the symbols.
  PrimExpr Formula(const PrimExpr& expr) { return analyzer_.Simplify(Substitute(expr, formulas_)); }

  bool ProveLessEqual(const PrimExpr& a, const PrimExpr& b) {
    if (analyzer_.ProveLessEqual(a, b)) return true;
    if (sizes_.empty()) return false;
    const PrimExpr rest = analyzer_.Simplify(b - a);
    std::vector<PrimVar> vars = FreePrimVars(rest);
    std::erase_if(vars, [&](const PrimVar& var) { return !sizes_.contains(var); });
    const std::optional<arith::LinearForm> difference = arith::DetectLinear(rest, vars);
    if (!difference) return false;
    std::vector<const Size*> sizes;
    for (const PrimVar& var : vars) sizes.push_back(&sizes_.at(var));
    std::vector<int64_t> counts;
    for (const PrimExpr& coefficient : difference->coefficients) {
      const auto count = AsConstInt(coefficient);
      if (!count) return false;
      counts.push_back(*count);
    }
    // The difference is a sum of counts[i] * size i. Where size i <= size j is known, a negative count i and a positive
    // count j cancel each other as far as they go: -size i + size j >= 0.
    for (size_t i = 0; i < counts.size(); ++i) {
      for (size_t j = 0; j < counts.size() && counts[i] < 0; ++j) {
        if (counts[j] <= 0 || !analyzer_.ProveLessEqual(sizes[i]->unrounded, sizes[j]->unrounded)) continue;
        const int64_t both = std::min(-counts[i], counts[j]);
        counts[i] += both;
        counts[j] -= both;
      }
    }
    PrimExpr least = difference->constant;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) continue;
      const PrimExpr& bound = counts[i] > 0 ? sizes[i]->unrounded : sizes[i]->upper;
      if (!bound) return false;
      least = least + bound * counts[i];
    }
    return analyzer_.ProveLessEqual(Int64(0), least);
  }

  PrimExpr Simplify(const PrimExpr& expr) { return analyzer_.Simplify(expr); }

 private:
  struct Size {
    PrimExpr unrounded;
    PrimExpr upper;  // null: no bound is known
  };
  std::unordered_map<PrimVar, Size, RefHash, RefSame> sizes_;
  std::unordered_multimap<uint64_t, PrimVar> by_hash_;  // of the unrounded sizes
  PrimVarMap formulas_;
  arith::Analyzer analyzer_;
};

// All sizes as multiples of one variable. Then all offsets are multiples of it, too, and are found as for constants.
// Without this, many tensors of one symbolic shape would take a proof for each three of them.
struct Multiples {
  PrimVar unit;
  std::vector<int64_t> counts;
};
std::optional<Multiples> MultiplesOfOne(const std::vector<PrimExpr>& sizes) {
  Multiples multiples;
  for (const PrimExpr& size : sizes) {
    const std::vector<PrimVar> vars = FreePrimVars(size);
    if (vars.size() != 1 || (multiples.unit && multiples.unit.get() != vars[0].get())) return std::nullopt;
    multiples.unit = vars[0];
    const std::optional<arith::LinearForm> form = arith::DetectLinear(size, vars);
    const auto count = form ? AsConstInt(form->coefficients[0]) : std::nullopt;
    if (!count || *count < 0 || !IsConstInt(form->constant, 0)) return std::nullopt;
    multiples.counts.push_back(*count);
  }
  return multiples;
}

std::optional<Placement> PlaceMultiples(std::vector<PlannedTensor> tensors, const std::vector<size_t>& order,
                                        const std::vector<PrimExpr>& sizes, RoundedSizes& rounded) {
  const std::optional<Multiples> multiples = MultiplesOfOne(sizes);
  if (!multiples) return std::nullopt;
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].size_bytes = Int64(multiples->counts[i]);
  const auto [places, peak] = PlaceConstants(tensors, order);
  Placement result;
  for (int64_t place : places) result.offsets.push_back(rounded.Formula(multiples->unit * place));
  result.peak = rounded.Formula(multiples->unit * peak);
  const bool fits = FitsFormula(result.peak) && std::ranges::all_of(result.offsets, FitsFormula);
  return fits ? std::optional(std::move(result)) : std::nullopt;
}

// Places tensors of symbolic sizes. A tensor that no formula can place (many unlike symbols) gets a null offset and
// stays an allocation of its own.
class SymbolicPlacer {
 public:
  SymbolicPlacer(const std::vector<PlannedTensor>& tensors, const std::vector<PrimExpr>& sizes, RoundedSizes& rounded)
      : tensors_(tensors), sizes_(sizes), rounded_(rounded), placed_(tensors), places_(tensors.size()) {
    for (const PrimExpr& size : sizes) typical_sizes_.push_back(TypicalValue(rounded.Formula(size)));
    result_.offsets.resize(tensors.size());
  }

  Placement Run(const std::vector<size_t>& order) {
    for (size_t i : order) Place(i);
    return std::move(result_);
  }

 private:
  struct PlaceOfTensor {
    PrimExpr offset, end;
    double typical_offset = 0, typical_end = 0;
  };
  // With very many tensors alive at once, a tensor for which so many proofs found no place goes to the arena's end.
  static constexpr int kMaxProofs = 256;

  void Place(size_t i) {
    if (!FitsFormula(rounded_.Formula(sizes_[i]))) return;  // nor does the peak then
    const PrimExpr offset = FreeOffset(i);
    const PrimExpr end = rounded_.Simplify(offset + sizes_[i]);
    PrimExpr higher = peak_;
    if (rounded_.ProveLessEqual(peak_, end)) {
      higher = end;
    } else if (!rounded_.ProveLessEqual(end, peak_)) {
      higher = rounded_.Simplify(Max(peak_, end));
    }
    const PrimExpr formula = rounded_.Formula(offset), peak_formula = rounded_.Formula(higher);
    if (!FitsFormula(formula) || !FitsFormula(peak_formula)) return;
    const double typical = TypicalValue(formula);
    places_[i] = {offset, end, typical, typical + typical_sizes_[i]};
    peak_ = higher;
    result_.offsets[i] = formula;
    result_.peak = peak_formula;
    placed_.Add(i);
  }

  // The lowest of 0 and the ends of the tensors alive at the same time that is proved to be free; otherwise the end of
  // the arena, which is free for all values of the symbols.
  PrimExpr FreeOffset(size_t i) {
    const std::vector<size_t> neighbours = placed_.Overlapping(tensors_[i]);
    std::vector<std::pair<double, PrimExpr>> candidates{{0, Int64(0)}};
    for (size_t j : neighbours) candidates.emplace_back(places_[j].typical_end, places_[j].end);
    const auto is_lower = [](const auto& a, const auto& b) { return a.first < b.first; };
    std::stable_sort(candidates.begin(), candidates.end(), is_lower);
    std::vector<std::pair<double, double>> ranges;
    for (size_t j : neighbours) ranges.emplace_back(places_[j].typical_offset, places_[j].typical_end);
    std::sort(ranges.begin(), ranges.end());
    int proofs_left = kMaxProofs;
    // Where tensors overlap for typical values, the place is not free, and no proof is needed. `reached` is where the
    // tensors end that begin below the candidate's end.
    double reached = 0;
    size_t next = 0;
    for (const auto& [typical, candidate] : candidates) {
      for (; next < ranges.size() && ranges[next].first < typical + typical_sizes_[i]; ++next) {
        reached = std::max(reached, ranges[next].second);
      }
      if (reached > typical) continue;
      if (StructuralEqual(candidate, peak_)) return candidate;
      if (IsFree(candidate, sizes_[i], typical + typical_sizes_[i], neighbours, proofs_left)) return candidate;
      if (proofs_left <= 0) break;
    }
    return peak_;
  }

  bool IsFree(const PrimExpr& offset, const PrimExpr& size, double typical_end, const std::vector<size_t>& neighbours,
              int& proofs_left) {
    const PrimExpr end = offset + size;
    return std::ranges::all_of(neighbours, [&](size_t j) {
      if (proofs_left-- <= 0) return false;
      const bool is_below = typical_end <= places_[j].typical_offset;
      return is_below ? rounded_.ProveLessEqual(end, places_[j].offset)
                      : rounded_.ProveLessEqual(places_[j].end, offset);
    });
  }

  const std::vector<PlannedTensor>& tensors_;
  const std::vector<PrimExpr>& sizes_;
  RoundedSizes& rounded_;
  LiveTensors placed_;
  std::vector<PlaceOfTensor> places_;
  std::vector<double> typical_sizes_;
  PrimExpr peak_ = Int64(0);
  Placement result_{{}, Int64(0)};
};

Placement PlaceSymbolic(const std::vector<PlannedTensor>& tensors, const std::vector<size_t>& order) {
  RoundedSizes rounded;
  std::vector<PrimExpr> sizes;
  for (const PlannedTensor& tensor : tensors) sizes.push_back(rounded.Add(tensor));
  if (const std::optional<Placement> placement = PlaceMultiples(tensors, order, sizes, rounded)) return *placement;
  return SymbolicPlacer(tensors, sizes, rounded).Run(order);
}

// Returns the tensors with every size rounded coefficient by coefficient, where that is possible.
std::vector<PlannedTensor> WithLinearSizes(std::vector<PlannedTensor> tensors) {
  for (PlannedTensor& tensor : tensors) {
    if (!tensor.unrounded_bytes) continue;
    if (const auto rounded = RoundCoefficients(tensor.unrounded_bytes)) {
      tensor.size_bytes = rounded->bytes;
      tensor.unrounded_bytes = nullptr;
    }
  }
  return tensors;
}

bool IsBetter(const Placement& a, const Placement& b) {
  const auto missing = [](const Placement& placement) {
    return std::ranges::count_if(placement.offsets, [](const PrimExpr& offset) { return !offset; });
  };
  if (missing(a) != missing(b)) return missing(a) < missing(b);
  return TypicalValue(a.peak) < TypicalValue(b.peak);
}

}  // namespace

PrimExpr SizeBytes(const std::vector<PrimExpr>& dims, DataType dtype) {
  PrimExpr elements = Int64(1);
  for (const PrimExpr& dim : dims) elements = elements * dim;
  const int64_t bits = dtype.total_bits();
  arith::Analyzer analyzer;
  return analyzer.Simplify(bits % 8 == 0 ? elements * (bits / 8) : FloorDiv(elements * bits + 7, Int64(8)));
}

PlannedTensor MakePlanned(const std::vector<PrimExpr>& dims, DataType dtype, const Attrs& attrs, int64_t first,
                          int64_t last) {
  constexpr double kLittleWaste = 1.0 / 16;
  const PrimExpr bytes = SizeBytes(dims, dtype);
  const std::vector<PrimVar> vars = FreePrimVars(bytes);
  // That a dim is an int32, which a model may assume, is no plan.
  const auto is_planned = [&](const PrimVar& var) { return transform::DimBounds(attrs, var->name).second < INT32_MAX; };
  if (!vars.empty() && !attrs.empty() && std::ranges::all_of(vars, is_planned)) {
    const arith::Interval range = transform::AnalyzerOf(attrs, vars).Bounds(bytes);
    if (range.max <= vm::kMaxArenaBytes) return {Int64(RoundUp(std::max<int64_t>(range.max, 0))), first, last};
  }
  if (!vars.empty()) {
    const std::optional<RoundedByCoefficients> rounded = RoundCoefficients(bytes);
    if (rounded && rounded->waste <= kLittleWaste) return {rounded->bytes, first, last};
  }
  arith::Analyzer analyzer;
  PlannedTensor tensor{analyzer.Simplify(FloorDiv(bytes + (kAlignment - 1), Int64(kAlignment)) * kAlignment), first,
                       last};
  if (!vars.empty()) tensor.unrounded_bytes = bytes;
  return tensor;
}

PrimExpr AlignedSizeBytes(const std::vector<PrimExpr>& dims, DataType dtype, const Attrs& attrs) {
  return MakePlanned(dims, dtype, attrs, 0, 0).size_bytes;
}

Placement PlaceTensors(const std::vector<PlannedTensor>& tensors) {
  std::vector<double> typical;
  bool all_constant = true;
  for (const PlannedTensor& tensor : tensors) {
    typical.push_back(TypicalValue(tensor.size_bytes));
    all_constant &= AsConstInt(tensor.size_bytes).has_value();
  }
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return typical[a] > typical[b]; });
  if (!all_constant) {
    Placement placement = PlaceSymbolic(tensors, order);
    const bool has_rounded =
        std::ranges::any_of(tensors, [](const PlannedTensor& t) { return bool(t.unrounded_bytes); });
    if (!has_rounded) return placement;
    Placement linear = PlaceSymbolic(WithLinearSizes(tensors), order);
    return IsBetter(linear, placement) ? linear : placement;
  }
  // No order is best for all: large tensors first wins most often; sometimes tensors of large size times lifetime
  // first, or the program's order, is better.
  const auto occupied = [&](size_t i) {
    return typical[i] * static_cast<double>(tensors[i].last - tensors[i].first + 1);
  };
  std::vector<size_t> by_occupied = order, by_begin = order;
  std::stable_sort(by_occupied.begin(), by_occupied.end(),
                   [&](size_t a, size_t b) { return occupied(a) > occupied(b); });
  std::stable_sort(by_begin.begin(), by_begin.end(),
                   [&](size_t a, size_t b) { return tensors[a].first < tensors[b].first; });
  auto best = PlaceConstants(tensors, order);
  for (const std::vector<size_t>& other : {by_occupied, by_begin}) {
    auto placed = PlaceConstants(tensors, other);
    if (placed.second < best.second) best = std::move(placed);
  }
  Placement result{{}, Int64(best.second)};
  for (int64_t offset : best.first) result.offsets.push_back(Int64(offset));
  return result;
}

}  // namespace ingot::memory
