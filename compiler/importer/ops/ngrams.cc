// TfIdfVectorizer of numbers and strings: how often each n-gram of a list comes in a row, as comparisons of slices with
// the list.
#include <algorithm>

#include "compiler/importer/ops/contrib.h"
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/ml.h"

namespace ingot::importer {
namespace {

struct NgramAttributes {
  int64_t shortest, longest, skips;
  std::string mode;
  std::vector<int64_t> pool, begins, columns;  // begins: of the n-grams of each length in the pool
  std::vector<float> weights;                  // one per n-gram, or none
  int64_t width = 0;                           // of the result
};

// How many n-grams of the length n (1 or more) the pool holds.
int64_t CountOf(const NgramAttributes& a, int64_t n) {
  const auto at = static_cast<size_t>(n - 1);
  if (at >= a.begins.size()) return 0;
  const int64_t end = at + 1 < a.begins.size() ? a.begins[at + 1] : std::ssize(a.pool);
  return (end - a.begins[at]) / n;
}

Result<NgramAttributes> ReadNgrams(const NodeImporter& node) {
  NgramAttributes a;
  INGOT_ASSIGN_OR_RETURN(a.shortest, node.Int("min_gram_length", 0));
  INGOT_ASSIGN_OR_RETURN(a.longest, node.Int("max_gram_length", 0));
  INGOT_ASSIGN_OR_RETURN(a.skips, node.Int("max_skip_count", 0));
  INGOT_ASSIGN_OR_RETURN(a.mode, node.String("mode", ""));
  INGOT_ASSIGN_OR_RETURN(a.pool, node.Ints("pool_int64s", {}));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> strings, StringsOf(node, "pool_strings"));
  const bool is_text = node.PackedType(0) == kStringElement;
  if (is_text != !strings.empty() || (is_text && !a.pool.empty())) {
    return node.Invalid(is_text ? "strings, and a pool of numbers" : "numbers, and a pool of strings");
  }
  if (is_text) a.pool = strings;
  INGOT_ASSIGN_OR_RETURN(a.begins, node.Ints("ngram_counts", {}));
  INGOT_ASSIGN_OR_RETURN(a.columns, node.Ints("ngram_indexes", {}));
  INGOT_ASSIGN_OR_RETURN(a.weights, FloatsOf(node, "weights"));
  if (a.mode != "TF" && a.mode != "IDF" && a.mode != "TFIDF") return node.Invalid("mode is \"" + a.mode + "\"");
  constexpr int64_t kLongest = 64;
  if (a.shortest < 1 || a.longest < a.shortest || a.skips < 0) return node.Invalid("lengths of n-grams or skips");
  if (a.longest > kLongest || a.skips > kLongest) return node.Unsupported("n-grams or skips longer than 64");
  if (a.begins.empty() || a.longest > std::ssize(a.begins)) {
    return node.Invalid("ngram_counts has no n-grams of the length " + std::to_string(a.longest));
  }
  int64_t total = 0;
  for (size_t i = 0; i < a.begins.size(); ++i) {
    const int64_t end = i + 1 < a.begins.size() ? a.begins[i + 1] : std::ssize(a.pool);
    const auto n = static_cast<int64_t>(i) + 1;
    if (a.begins[i] < 0 || end < a.begins[i] || end > std::ssize(a.pool) || (end - a.begins[i]) % n != 0) {
      return node.Invalid("ngram_counts does not cut the pool into n-grams");
    }
    total += CountOf(a, n);
  }
  INGOT_RETURN_IF_ERROR(CheckLength(node, "ngram_indexes", a.columns.size(), static_cast<size_t>(total)));
  if (!a.weights.empty()) INGOT_RETURN_IF_ERROR(CheckLength(node, "weights", a.weights.size(), a.columns.size()));
  std::vector<int64_t> sorted = a.columns;
  std::ranges::sort(sorted);
  if (sorted.empty() || a.begins[0] != 0) return node.Invalid("expected n-grams in the pool from its begin on");
  if (std::ranges::adjacent_find(sorted) != sorted.end()) return node.Unsupported("two n-grams of one column");
  constexpr int64_t kWidest = 1 << 24;
  if (sorted.front() < 0 || sorted.back() >= kWidest) return node.Invalid("ngram_indexes are out of range");
  a.width = sorted.back() + 1;
  return a;
}

// How often each n-gram of this length comes in the rows x [rows, length] with `distance` from element to element:
// float32 [rows, n-grams]. The rows are long enough for one.
Result<Expr> CountNgrams(const NodeImporter& node, const Expr& x, const NgramAttributes& a, int64_t n,
                         int64_t distance) {
  const int64_t length = *ir::AsConstInt(DimsOf(x)[1]), windows = length - (n - 1) * distance, count = CountOf(a, n);
  const int64_t begin = a.begins[static_cast<size_t>(n - 1)];
  const auto list = [](int64_t v) { return PrimTuple({ir::Int64(v)}); };
  Expr matches;
  for (int64_t k = 0; k < n; ++k) {
    std::vector<int64_t> elements;
    for (int64_t i = 0; i < count; ++i) elements.push_back(a.pool[static_cast<size_t>(begin + i * n + k)]);
    INGOT_ASSIGN_OR_RETURN(Expr part,
                           node.Bind("strided_slice", {x, list(1), list(k * distance), list(k * distance + windows)}));
    INGOT_ASSIGN_OR_RETURN(part, node.Bind("expand_dims", {part}, {{"axis", AttrValue::Ints({2})}}));
    INGOT_ASSIGN_OR_RETURN(const Expr is_equal,
                           node.Bind("equal", {part, ConstantOf(DataType::Int(64), {count}, elements)}));
    if (matches == nullptr) {
      matches = is_equal;
    } else {
      INGOT_ASSIGN_OR_RETURN(matches, node.Bind("logical_and", {matches, is_equal}));
    }
  }
  INGOT_ASSIGN_OR_RETURN(matches, CastTo(node, matches, DataType::Float(32)));
  return node.Bind("sum", {matches}, {{"axis", AttrValue::Ints({1})}});
}

// The counts [rows, n-grams] of all n-grams of this length, skips included; a single element has none.
Result<Expr> CountOfLength(const NodeImporter& node, const Expr& x, const NgramAttributes& a, int64_t n) {
  const int64_t length = *ir::AsConstInt(DimsOf(x)[1]);
  Expr counts;
  for (int64_t skip = 0; skip <= (n == 1 ? 0 : a.skips); ++skip) {
    if ((n - 1) * (skip + 1) >= length) break;
    INGOT_ASSIGN_OR_RETURN(const Expr more, CountNgrams(node, x, a, n, skip + 1));
    if (counts == nullptr) {
      counts = more;
    } else {
      INGOT_ASSIGN_OR_RETURN(counts, node.Bind("add", {counts, more}));
    }
  }
  if (counts != nullptr) return counts;
  return node.Bind("zeros", {ShapeOf({DimsOf(x)[0], ir::Int64(CountOf(a, n))})}, {{"dtype", DataType::Float(32)}});
}

// Weights the counts [rows, n-grams] of those with these numbers in the pool.
Result<Expr> Weighted(const NodeImporter& node, Expr counts, const NgramAttributes& a,
                      const std::vector<int64_t>& which) {
  if (a.mode == "IDF") {
    INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, DataType::Float(32)));
    INGOT_ASSIGN_OR_RETURN(const Expr is_there, node.Bind("greater", {counts, zero}));
    INGOT_ASSIGN_OR_RETURN(counts, CastTo(node, is_there, DataType::Float(32)));
  }
  if (a.mode == "TF" || a.weights.empty()) return counts;
  std::vector<float> weights;
  for (const int64_t i : which) weights.push_back(a.weights[static_cast<size_t>(i)]);
  return node.Bind("multiply", {counts, FloatConstant(weights, {std::ssize(weights)})});
}

Outputs TfIdfVectorizer(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const NgramAttributes a, ReadNgrams(node));
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  const std::vector<PrimExpr> dims = DimsOf(x);
  if (dims.empty() || dims.size() > 2) return node.Invalid("expected a rank of 1 or 2");
  if (!ir::AsConstInt(dims.back())) return node.Unsupported("rows of a symbolic length");
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), DataType::Int(64)));
  const PrimExpr rows = dims.size() == 2 ? dims[0] : ir::Int64(1);
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf({rows, dims.back()})}));
  std::vector<int64_t> which;
  Expr all;
  int64_t first = 0;
  for (int64_t n = 1; n <= std::ssize(a.begins); first += CountOf(a, n), ++n) {
    if (n < a.shortest || n > a.longest || CountOf(a, n) == 0) continue;
    INGOT_ASSIGN_OR_RETURN(const Expr counts, CountOfLength(node, x, a, n));
    for (int64_t i = 0; i < CountOf(a, n); ++i) which.push_back(first + i);
    if (all == nullptr) {
      all = counts;
    } else {
      INGOT_ASSIGN_OR_RETURN(all, Apply(node, "Concat", {all, counts}, {AttributeOf<int64_t>("axis", 1)}));
    }
  }
  INGOT_ASSIGN_OR_RETURN(Expr result,
                         node.Bind("zeros", {ShapeOf({rows, ir::Int64(1)})}, {{"dtype", DataType::Float(32)}}));
  if (all != nullptr) {  // the zeros stand for columns without an n-gram that counts
    INGOT_ASSIGN_OR_RETURN(all, Weighted(node, all, a, which));
    INGOT_ASSIGN_OR_RETURN(result, Apply(node, "Concat", {result, all}, {AttributeOf<int64_t>("axis", 1)}));
  }
  std::vector<int64_t> places(static_cast<size_t>(a.width), 0);
  for (size_t i = 0; i < which.size(); ++i) {
    places[static_cast<size_t>(a.columns[static_cast<size_t>(which[i])])] = static_cast<int64_t>(i) + 1;
  }
  INGOT_ASSIGN_OR_RETURN(
      result, node.Bind("take", {result, ConstantOf(DataType::Int(64), {a.width}, places)}, {{"axis", int64_t{1}}}));
  if (dims.size() == 2) return One(std::move(result));
  return One(ReshapeTo(node, result, {ir::Int64(a.width)}));
}

constexpr OnnxOpRow kNgramRows[] = {
    {"TfIdfVectorizer", nullptr, TfIdfVectorizer},
};

}  // namespace

std::span<const OnnxOpRow> NgramOnnxOps() { return kNgramRows; }

}  // namespace ingot::importer
