// Every new dimension's expression is taken apart into digits of the old indices, the least significant first. The map
// is one to one when the digits of each old dimension, each used once and without gaps, make up its whole extent. The
// highest digit of a constant one is rounded up.
#include "compiler/schedule/index_map.h"

#include <algorithm>

#include "compiler/ir/visitor.h"
#include "compiler/script/printer.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// The digit floor(index of the dimension / lower) mod extent.
struct Digit {
  size_t dimension;
  PrimExpr lower, extent;
};

class Decomposer {
 public:
  Decomposer(const IndexMap& map, const std::vector<PrimExpr>& shape) : map_(map), shape_(shape) {}

  Result<std::vector<Digit>> DigitsOf(const PrimExpr& expr) {
    if (IsConstInt(expr, 0)) return std::vector<Digit>{};
    if (As<PrimVarNode>(expr) != nullptr) return WholeIndex(expr);
    const auto* binary = As<BinaryNode>(expr);
    if (binary == nullptr) return Unknown(expr);
    switch (binary->op) {
      case BinaryOp::kAdd:
        return Sum(expr);
      case BinaryOp::kFloorDiv:
      case BinaryOp::kFloorMod: {
        INGOT_ASSIGN_OR_RETURN(const std::vector<Digit> digits, DigitsOf(binary->a));
        INGOT_ASSIGN_OR_RETURN(Halves halves, Cut(digits, binary->b));
        return binary->op == BinaryOp::kFloorDiv ? std::move(halves.high) : std::move(halves.low);
      }
      default:
        return Unknown(expr);
    }
  }

  PrimExpr ExtentOf(const std::vector<Digit>& digits) {
    PrimExpr product = Int64(1);
    for (const Digit& digit : digits) product = product * digit.extent;
    return analyzer_.Simplify(product);
  }

  // Checks that the digits of every old dimension make up its whole extent, each once.
  Status CheckComplete(std::vector<Digit> digits) {
    std::erase_if(digits, [](const Digit& digit) { return IsConstInt(digit.extent, 1); });
    for (size_t d = 0; d < shape_.size(); ++d) {
      PrimExpr reached = Int64(1);
      for (auto it = digits.begin(); it != digits.end();) {
        const bool next = it->dimension == d && analyzer_.ProveEqual(it->lower, reached);
        if (!next) {
          ++it;
          continue;
        }
        reached = analyzer_.Simplify(reached * it->extent);
        digits.erase(it);
        it = digits.begin();
      }
      if (!analyzer_.ProveLessEqual(shape_[d], reached)) {
        return No("the new dimensions do not hold all of dimension " + std::to_string(d));
      }
    }
    if (digits.empty()) return Status();
    return No("a part of dimension " + std::to_string(digits.front().dimension) + " is there twice");
  }

 private:
  struct Halves {
    std::vector<Digit> low, high;
  };

  static Status No(std::string what) { return Status(StatusCode::kInvalidArgument, std::move(what)); }
  static Status Unknown(const PrimExpr& expr) {
    return No(script::PrintExpr(expr) + " is no index, and no quotient, remainder or sum of indices");
  }

  Result<std::vector<Digit>> WholeIndex(const PrimExpr& expr) {
    for (size_t d = 0; d < map_.from.size(); ++d) {
      if (map_.from[d].get() == expr.get()) return std::vector<Digit>{{d, Int64(1), shape_[d]}};
    }
    return Unknown(expr);
  }

  // The digits below `factor`, and those above it.
  Result<Halves> Cut(const std::vector<Digit>& digits, const PrimExpr& factor) {
    Halves halves;
    PrimExpr product = Int64(1);
    for (size_t i = 0; i < digits.size(); ++i) {
      const Digit& digit = digits[i];
      if (!halves.high.empty() || analyzer_.ProveEqual(product, factor)) {
        halves.high.push_back(digit);
        continue;
      }
      const PrimExpr next = analyzer_.Simplify(product * digit.extent);
      const bool below = analyzer_.ProveEqual(next, factor) ||
                         (i + 1 == digits.size() && analyzer_.ProveLessEqual(next, factor)) || Divides(next, factor);
      if (below) {
        halves.low.push_back(digit);
        product = next;
        continue;
      }
      const auto done = AsConstInt(product), wanted = AsConstInt(factor);
      const bool cuts = done && wanted && *done > 0 && *wanted > 0 && *wanted % *done == 0;
      const bool divides = cuts && analyzer_.ProveDivisible(digit.extent, *wanted / *done);
      const bool may_pad = cuts && i + 1 == digits.size() && IsHighest(digit);
      if (!divides && !may_pad) {
        return No(Text(factor) + " does not divide dimension " + std::to_string(digit.dimension) + " (" +
                  Text(digit.extent) + "); a dimension of unknown length, or within others, is not padded");
      }
      const PrimExpr part = Int64(*wanted / *done);
      halves.low.push_back({digit.dimension, digit.lower, part});
      const PrimExpr rest = analyzer_.Simplify(FloorDiv(digit.extent + (*wanted / *done - 1), part));
      halves.high.push_back({digit.dimension, analyzer_.Simplify(digit.lower * part), rest});
    }
    return halves;
  }

  // Of a dimension of constant extent, the digit that has no other above it: a remainder has.
  bool IsHighest(const Digit& digit) const {
    const auto lower = AsConstInt(digit.lower), extent = AsConstInt(digit.extent);
    const auto whole = AsConstInt(shape_[digit.dimension]);
    return lower && extent && whole && *extent > 0 && *lower >= (*whole - 1) / *extent + 1;
  }

  static std::string Text(const PrimExpr& expr) {
    const auto value = AsConstInt(expr);
    return value ? std::to_string(*value) : script::PrintExpr(expr);
  }
  static bool Divides(const PrimExpr& a, const PrimExpr& b) {
    const auto x = AsConstInt(a), y = AsConstInt(b);
    return x && y && *x > 0 && *y % *x == 0;
  }

  // The digits of a sum such as a * x + b * y: one of the factors must be 1, the next one the extent of the first term,
  // and so on.
  Result<std::vector<Digit>> Sum(const PrimExpr& expr) {
    struct Term {
      std::vector<Digit> digits;
      PrimExpr factor;
    };
    std::vector<PrimExpr> pending{expr};
    std::vector<Term> terms;
    while (!pending.empty()) {
      const PrimExpr part = pending.back();
      pending.pop_back();
      const auto* binary = As<BinaryNode>(part);
      if (binary != nullptr && binary->op == BinaryOp::kAdd) {
        pending.insert(pending.end(), {binary->a, binary->b});
        continue;
      }
      PrimExpr value = part, factor = Int64(1);
      if (binary != nullptr && binary->op == BinaryOp::kMul) {
        value = UsesIndex(binary->a) ? binary->a : binary->b;
        factor = UsesIndex(binary->a) ? binary->b : binary->a;
      }
      INGOT_ASSIGN_OR_RETURN(std::vector<Digit> digits, DigitsOf(value));
      terms.push_back({std::move(digits), std::move(factor)});
    }
    std::vector<Digit> digits;
    PrimExpr product = Int64(1);
    while (!terms.empty()) {
      const auto next = std::find_if(terms.begin(), terms.end(),
                                     [&](const Term& term) { return analyzer_.ProveEqual(term.factor, product); });
      if (next == terms.end()) return No(script::PrintExpr(expr) + " leaves out places, or gives one to two elements");
      digits.insert(digits.end(), next->digits.begin(), next->digits.end());
      product = analyzer_.Simplify(product * ExtentOf(next->digits));
      terms.erase(next);
    }
    return digits;
  }

  bool UsesIndex(const PrimExpr& expr) const {
    const std::vector<PrimVar> used = FreePrimVars(expr);
    return std::any_of(used.begin(), used.end(), [&](const PrimVar& var) {
      return std::any_of(map_.from.begin(), map_.from.end(), [&](const PrimVar& v) { return v.same_as(var); });
    });
  }

  const IndexMap& map_;
  const std::vector<PrimExpr>& shape_;
  arith::Analyzer analyzer_;
};

}  // namespace

std::string IndexMap::ToString() const {
  std::string text = "lambda";
  for (size_t i = 0; i < from.size(); ++i) text += (i == 0 ? " " : ", ") + from[i]->name;
  text += ": (";
  for (size_t i = 0; i < to.size(); ++i) text += (i == 0 ? "" : ", ") + script::PrintExpr(to[i]);
  return text + (to.size() == 1 ? ",)" : ")");
}

IndexMap MakeIndexMap(int64_t rank, const IndexMapFn& fn) {
  IndexMap map;
  for (int64_t i = 0; i < rank; ++i) map.from.push_back(MakePrimVar("i" + std::to_string(i)));
  map.to = fn({map.from.begin(), map.from.end()});
  return map;
}

IndexMap PermutingMap(const std::vector<int64_t>& axes) {
  const auto rank = static_cast<int64_t>(axes.size());
  return MakeIndexMap(rank, [&](const std::vector<PrimExpr>& i) {
    std::vector<PrimExpr> to;
    for (int64_t axis : axes) to.push_back(axis >= 0 && axis < rank ? i[static_cast<size_t>(axis)] : Int64(0));
    return to;
  });
}

Result<std::vector<PrimExpr>> MapShape(const IndexMap& map, const std::vector<PrimExpr>& shape) {
  if (map.from.size() != shape.size()) {
    return Status(StatusCode::kInvalidArgument, "the map is of " + std::to_string(map.from.size()) +
                                                    " dimensions, the buffer has " + std::to_string(shape.size()));
  }
  Decomposer decomposer(map, shape);
  std::vector<PrimExpr> extents;
  std::vector<Digit> all;
  for (const PrimExpr& expr : map.to) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<Digit> digits, decomposer.DigitsOf(expr));
    extents.push_back(decomposer.ExtentOf(digits));
    all.insert(all.end(), digits.begin(), digits.end());
  }
  INGOT_RETURN_IF_ERROR(decomposer.CheckComplete(std::move(all)));
  return extents;
}

std::vector<PrimExpr> MapIndices(const IndexMap& map, const std::vector<PrimExpr>& indices, arith::Analyzer& analyzer) {
  PrimVarMap values;
  for (size_t i = 0; i < indices.size(); ++i) values.emplace(map.from[i], indices[i]);
  std::vector<PrimExpr> mapped;
  for (const PrimExpr& expr : map.to) {
    // A dimension that only moves keeps its index expression as it is.
    const auto moved = values.find(AsRef<PrimVarNode>(expr));
    mapped.push_back(moved != values.end() ? moved->second : analyzer.Simplify(Substitute(expr, values)));
  }
  return mapped;
}

std::vector<Range> MapRegion(const IndexMap& map, const std::vector<Range>& region,
                             const std::vector<PrimExpr>& new_shape, arith::Analyzer& analyzer) {
  std::vector<PrimExpr> first;
  for (const Range& range : region) first.push_back(range.min);
  const std::vector<PrimExpr> mapped = MapIndices(map, first, analyzer);
  std::vector<Range> result;
  for (size_t d = 0; d < map.to.size(); ++d) {
    const std::vector<PrimVar> used = FreePrimVars(map.to[d]);
    bool is_point = true;
    const Range* moved = nullptr;
    for (size_t i = 0; i < region.size(); ++i) {
      if (map.to[d].get() == map.from[i].get()) moved = &region[i];
      const bool uses = std::any_of(used.begin(), used.end(), [&](const PrimVar& v) { return v.same_as(map.from[i]); });
      is_point &= !uses || IsConstInt(region[i].extent, 1);
    }
    if (moved != nullptr) {
      result.push_back(*moved);
    } else {
      result.push_back(is_point ? Range{mapped[d], Int64(1)} : Range{Int64(0), new_shape[d]});
    }
  }
  return result;
}

}  // namespace ingot::schedule
