// Support vector machines. The kernels between rows and support vectors are a matrix product, or a sum of squares, and
// what they add to the scores is a product with a constant matrix in float64. Where the specification leaves the
// classes' order, votes and probabilities open, it is as ONNX Runtime, and so libsvm, has it.
#include <algorithm>
#include <numeric>

#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/ml.h"

namespace ingot::importer {
namespace {

const DataType kSingle = DataType::Float(32);
const DataType kWide = DataType::Float(64);

struct SvmKernel {
  std::string type;
  double gamma = 0, offset = 0, degree = 0;
};
Result<SvmKernel> ReadKernel(const NodeImporter& node) {
  SvmKernel kernel;
  INGOT_ASSIGN_OR_RETURN(kernel.type, node.String("kernel_type", "LINEAR"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> params, FloatsOf(node, "kernel_params"));
  if (kernel.type == "LINEAR") return kernel;
  if (kernel.type != "POLY" && kernel.type != "RBF" && kernel.type != "SIGMOID") {
    return node.Invalid("kernel_type is \"" + kernel.type + "\"");
  }
  INGOT_RETURN_IF_ERROR(CheckLength(node, "kernel_params", params.size(), 3));
  kernel.gamma = params[0], kernel.offset = params[1], kernel.degree = params[2];
  return kernel;
}

Result<Expr> TimesScalar(const NodeImporter& node, const Expr& x, double factor) {
  INGOT_ASSIGN_OR_RETURN(const Expr scalar, node.Scalar(factor, DTypeOf(x)));
  return node.Bind("multiply", {x, scalar});
}

// x [n, columns] times the transposed rows [count, columns], float32.
Result<Expr> Dots(const NodeImporter& node, const Expr& x, const std::vector<float>& rows, int64_t columns) {
  const Expr vectors = FloatConstant(rows, {std::ssize(rows) / columns, columns});
  INGOT_ASSIGN_OR_RETURN(const Expr turned, node.Bind("permute_dims", {vectors}, {{"axes", AttrValue::Ints({1, 0})}}));
  return node.Bind("matmul", {x, turned});
}

// exp(-gamma |x - vector|^2). The differences are squared themselves: a difference of two large squares is not exact,
// and of two infinite ones NaN.
Result<Expr> RadialKernel(const NodeImporter& node, const Expr& x, const std::vector<float>& vectors, int64_t columns,
                          double gamma) {
  INGOT_ASSIGN_OR_RETURN(const Expr rows,
                         node.Bind("reshape", {x, ShapeOf({DimsOf(x)[0], ir::Int64(1), DimsOf(x)[1]})}));
  const Expr others = FloatConstant(vectors, {std::ssize(vectors) / columns, columns});
  INGOT_ASSIGN_OR_RETURN(const Expr differences, node.Bind("subtract", {rows, others}));
  INGOT_ASSIGN_OR_RETURN(const Expr squares, node.Bind("multiply", {differences, differences}));
  INGOT_ASSIGN_OR_RETURN(const Expr sums, node.Bind("sum", {squares}, {{"axis", AttrValue::Ints({2})}}));
  INGOT_ASSIGN_OR_RETURN(const Expr scaled, TimesScalar(node, sums, -gamma));
  return node.Bind("exp", {scaled});
}

// The kernels [n, vectors] of rows x [n, columns] and support vectors.
Result<Expr> KernelsOf(const NodeImporter& node, const SvmKernel& kernel, const Expr& x,
                       const std::vector<float>& vectors, int64_t columns) {
  if (kernel.type == "RBF") return RadialKernel(node, x, vectors, columns, kernel.gamma);
  INGOT_ASSIGN_OR_RETURN(Expr dots, Dots(node, x, vectors, columns));
  if (kernel.type == "LINEAR") return dots;
  INGOT_ASSIGN_OR_RETURN(dots, TimesScalar(node, dots, kernel.gamma));
  INGOT_ASSIGN_OR_RETURN(const Expr offset, node.Scalar(kernel.offset, kSingle));
  INGOT_ASSIGN_OR_RETURN(dots, node.Bind("add", {dots, offset}));
  if (kernel.type == "SIGMOID") return node.Bind("tanh", {dots});
  if (kernel.degree != 2 && kernel.degree != 3) {
    INGOT_ASSIGN_OR_RETURN(const Expr degree, node.Scalar(kernel.degree, kSingle));
    return node.Bind("power", {dots, degree});
  }
  INGOT_ASSIGN_OR_RETURN(const Expr square, node.Bind("multiply", {dots, dots}));
  return kernel.degree == 2 ? square : node.Bind("multiply", {square, dots});
}

// kernels [n, vectors] times weights [vectors, count] plus rho, float32; the sums are float64.
Result<Expr> WeightedSums(const NodeImporter& node, const Expr& kernels, const std::vector<double>& weights,
                          const std::vector<float>& rho) {
  const auto count = std::ssize(rho);
  INGOT_ASSIGN_OR_RETURN(const Expr wide, CastTo(node, kernels, kWide));
  const Expr matrix = ConstantOf(kWide, {std::ssize(weights) / count, count}, weights);
  INGOT_ASSIGN_OR_RETURN(Expr sums, node.Bind("matmul", {wide, matrix}));
  const std::vector<double> offsets(rho.begin(), rho.end());
  INGOT_ASSIGN_OR_RETURN(sums, node.Bind("add", {sums, ConstantOf(kWide, {count}, offsets)}));
  return CastTo(node, sums, kSingle);
}

// The support vectors and the features of each; `count` is at least 1.
struct SupportVectors {
  std::vector<float> values;
  int64_t columns = 0;
};
Result<SupportVectors> ReadVectors(const NodeImporter& node, int64_t count) {
  SupportVectors vectors;
  INGOT_ASSIGN_OR_RETURN(vectors.values, FloatsOf(node, "support_vectors"));
  const auto size = std::ssize(vectors.values);
  if (size < count || size % count != 0) {
    return node.Invalid("attribute \"support_vectors\": " + std::to_string(size) + " elements for " +
                        std::to_string(count) + " vectors");
  }
  vectors.columns = size / count;
  return vectors;
}

// One class of what is like the training data, 1, and what is not, -1.
Result<Expr> InOrOut(const NodeImporter& node, const Expr& score) {
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, kSingle));
  INGOT_ASSIGN_OR_RETURN(const Expr one, node.Scalar(1, kSingle));
  INGOT_ASSIGN_OR_RETURN(const Expr minus_one, node.Scalar(-1, kSingle));
  INGOT_ASSIGN_OR_RETURN(const Expr is_in, node.Bind("greater", {score, zero}));
  return node.Bind("where", {is_in, one, minus_one});
}

Outputs SvmRegressor(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::string post, node.String("post_transform", "NONE"));
  if (post != "NONE") return node.Unsupported("post_transform \"" + post + "\"");
  INGOT_ASSIGN_OR_RETURN(SvmKernel kernel, ReadKernel(node));
  INGOT_ASSIGN_OR_RETURN(const int64_t count, node.Int("n_supports", 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> coefficients, FloatsOf(node, "coefficients"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> rho, FloatsOf(node, "rho"));
  INGOT_ASSIGN_OR_RETURN(const int64_t one_class, node.Int("one_class", 0));
  INGOT_RETURN_IF_ERROR(CheckLength(node, "rho", rho.size(), 1));
  if (count < 0) return node.Invalid("n_supports is " + std::to_string(count));
  if (coefficients.empty()) return node.Invalid("attribute \"coefficients\": expected elements");
  INGOT_ASSIGN_OR_RETURN(Expr x, Rows(node, 0));
  Expr score;
  if (count > 0) {
    INGOT_RETURN_IF_ERROR(CheckLength(node, "coefficients", coefficients.size(), static_cast<size_t>(count)));
    INGOT_ASSIGN_OR_RETURN(const SupportVectors vectors, ReadVectors(node, count));
    INGOT_ASSIGN_OR_RETURN(x, WithColumns(node, std::move(x), vectors.columns));
    INGOT_ASSIGN_OR_RETURN(const Expr kernels, KernelsOf(node, kernel, x, vectors.values, vectors.columns));
    INGOT_ASSIGN_OR_RETURN(score, WeightedSums(node, kernels, {coefficients.begin(), coefficients.end()}, rho));
  } else {
    INGOT_ASSIGN_OR_RETURN(x, WithColumns(node, std::move(x), std::ssize(coefficients)));
    INGOT_ASSIGN_OR_RETURN(score, WeightedSums(node, x, {coefficients.begin(), coefficients.end()}, rho));
  }
  if (one_class == 0) return One(std::move(score));
  return One(InOrOut(node, score));
}

// The pairs (i, j) of classes, i < j, in the order of their scores.
std::vector<std::pair<int64_t, int64_t>> PairsOf(int64_t classes) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j) pairs.emplace_back(i, j);
  }
  return pairs;
}

// The score [n, pairs] of each pair of classes: above 0 for the first one. The coefficients [classes - 1, vectors]
// of a vector of class i stand for each other class j in the row j, or j - 1 if j > i.
Result<Expr> PairScores(const NodeImporter& node, const std::vector<int64_t>& counts) {
  const auto classes = std::ssize(counts);
  const auto pairs = PairsOf(classes);
  INGOT_ASSIGN_OR_RETURN(const SvmKernel kernel, ReadKernel(node));
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> coefficients, FloatsOf(node, "coefficients"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> rho, FloatsOf(node, "rho"));
  constexpr int64_t kMostVectors = int64_t{1} << 32;
  int64_t count = 0;
  for (const int64_t own : counts) {
    if (own < 0 || own > kMostVectors) return node.Invalid("attribute \"vectors_per_class\": " + std::to_string(own));
    count += own;
  }
  constexpr int64_t kMostWeights = int64_t{1} << 26;
  if (count > kMostWeights / std::ssize(pairs)) return node.Unsupported("more than 2^26 weights of pairs of classes");
  INGOT_RETURN_IF_ERROR(CheckLength(node, "rho", rho.size(), pairs.size()));
  INGOT_RETURN_IF_ERROR(
      CheckLength(node, "coefficients", coefficients.size(), static_cast<size_t>((classes - 1) * count)));
  INGOT_ASSIGN_OR_RETURN(const SupportVectors vectors, ReadVectors(node, count));
  std::vector<int64_t> begins(counts.size(), 0);
  std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), int64_t{0});
  std::vector<double> weights(static_cast<size_t>(count) * pairs.size(), 0);
  for (size_t pair = 0; pair < pairs.size(); ++pair) {
    const auto [i, j] = pairs[pair];
    const auto copy = [&, pair = pair](int64_t own, int64_t row) {
      for (int64_t k = 0; k < counts[static_cast<size_t>(own)]; ++k) {
        const int64_t vector = begins[static_cast<size_t>(own)] + k;
        weights[static_cast<size_t>(vector) * pairs.size() + pair] =
            coefficients[static_cast<size_t>(row * count + vector)];
      }
    };
    copy(i, j - 1);
    copy(j, i);
  }
  INGOT_ASSIGN_OR_RETURN(Expr x, Rows(node, 0));
  INGOT_ASSIGN_OR_RETURN(x, WithColumns(node, std::move(x), vectors.columns));
  INGOT_ASSIGN_OR_RETURN(const Expr kernels, KernelsOf(node, kernel, x, vectors.values, vectors.columns));
  return WeightedSums(node, kernels, weights, rho);
}

// The class with most votes of pairs, int64 [n]; the first one of equals.
Result<Expr> MostVotes(const NodeImporter& node, const Expr& scores, int64_t classes) {
  const auto pairs = PairsOf(classes);
  std::vector<float> change(pairs.size() * static_cast<size_t>(classes), 0), seconds(static_cast<size_t>(classes), 0);
  for (size_t pair = 0; pair < pairs.size(); ++pair) {
    const auto [i, j] = pairs[pair];
    change[pair * static_cast<size_t>(classes) + static_cast<size_t>(i)] = 1;
    change[pair * static_cast<size_t>(classes) + static_cast<size_t>(j)] = -1;
    seconds[static_cast<size_t>(j)] += 1;
  }
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, kSingle));
  INGOT_ASSIGN_OR_RETURN(Expr is_first, node.Bind("greater", {scores, zero}));
  INGOT_ASSIGN_OR_RETURN(is_first, CastTo(node, is_first, kSingle));
  INGOT_ASSIGN_OR_RETURN(Expr votes,
                         node.Bind("matmul", {is_first, FloatConstant(change, {std::ssize(pairs), classes})}));
  INGOT_ASSIGN_OR_RETURN(votes, node.Bind("add", {votes, FloatConstant(seconds, {classes})}));
  return BestClass(node, votes);
}

// The probabilities [n, classes]: Platt's sigmoid of each pair's score, and pairwise coupling.
Result<Expr> Probabilities(const NodeImporter& node, const Expr& scores, const std::vector<float>& a,
                           const std::vector<float>& b, int64_t classes) {
  const auto pairs = PairsOf(classes);
  const auto count = std::ssize(pairs);
  INGOT_ASSIGN_OR_RETURN(Expr p, node.Bind("multiply", {scores, FloatConstant(a, {count})}));
  INGOT_ASSIGN_OR_RETURN(p, node.Bind("add", {p, FloatConstant(b, {count})}));
  INGOT_ASSIGN_OR_RETURN(p, node.Bind("negative", {p}));
  INGOT_ASSIGN_OR_RETURN(p, node.Bind("sigmoid", {p}));
  INGOT_ASSIGN_OR_RETURN(const Expr least, node.Scalar(1e-7f, kSingle));
  INGOT_ASSIGN_OR_RETURN(const Expr one, node.Scalar(1, kSingle));
  INGOT_ASSIGN_OR_RETURN(const Expr greatest, node.Scalar(1 - 1e-7f, kSingle));
  INGOT_ASSIGN_OR_RETURN(p, node.Bind("maximum", {p, least}));
  INGOT_ASSIGN_OR_RETURN(p, node.Bind("minimum", {p, greatest}));
  INGOT_ASSIGN_OR_RETURN(const Expr other, node.Bind("subtract", {one, p}));
  INGOT_ASSIGN_OR_RETURN(const Expr both, Beside(node, p, other));
  std::vector<int64_t> places(static_cast<size_t>(classes * classes), 0);  // the diagonal has no part in what follows
  for (int64_t pair = 0; pair < count; ++pair) {
    const auto [i, j] = pairs[static_cast<size_t>(pair)];
    places[static_cast<size_t>(i * classes + j)] = pair;
    places[static_cast<size_t>(j * classes + i)] = count + pair;
  }
  const Expr table = ConstantOf(DataType::Int(64), {classes * classes}, places);
  INGOT_ASSIGN_OR_RETURN(Expr square, node.Bind("take", {both, table}, {{"axis", int64_t{1}}}));
  const PrimExpr extent = ir::Int64(classes);
  INGOT_ASSIGN_OR_RETURN(square, node.Bind("reshape", {square, ShapeOf({DimsOf(scores)[0], extent, extent})}));
  return node.Bind("pairwise_coupling", {square});
}

// Without support vectors each class has coefficients of its own, and all share the first rho.
Outputs LinearSvm(const NodeImporter& node, const std::vector<int64_t>& labels) {
  if (labels.size() < 3) return node.Unsupported("less than three classes without support vectors");
  if (node.HasAttr("prob_a")) return node.Unsupported("prob_a without support vectors");
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> coefficients, FloatsOf(node, "coefficients"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> rho, FloatsOf(node, "rho"));
  const auto classes = std::ssize(labels);
  if (coefficients.empty() || coefficients.size() % labels.size() != 0 || rho.empty()) {
    return node.Invalid("coefficients or rho do not fit " + std::to_string(classes) + " classes");
  }
  const int64_t columns = std::ssize(coefficients) / classes;
  INGOT_ASSIGN_OR_RETURN(Expr x, Rows(node, 0));
  INGOT_ASSIGN_OR_RETURN(x, WithColumns(node, std::move(x), columns));
  INGOT_ASSIGN_OR_RETURN(const Expr dots, Dots(node, x, coefficients, columns));
  INGOT_ASSIGN_OR_RETURN(Expr scores, node.Bind("add", {dots, FloatConstant({rho[0]}, {})}));
  INGOT_ASSIGN_OR_RETURN(const Expr best, BestClass(node, scores));
  INGOT_ASSIGN_OR_RETURN(const Expr label, LabelsOf(node, labels, best));
  INGOT_ASSIGN_OR_RETURN(scores, PostTransform(node, std::move(scores)));
  return std::vector<Expr>{label, scores};
}

Outputs SvmClassifier(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> labels, ClassLabels(node, "classlabels_ints"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, node.Ints("vectors_per_class", {}));
  const auto classes = std::ssize(labels);
  constexpr int64_t kMostClasses = 1024;
  if (classes < 2) return node.Unsupported("less than two classes");
  if (classes > kMostClasses) return node.Unsupported("more than 1024 classes");
  if (std::ranges::all_of(counts, [](int64_t n) { return n == 0; })) return LinearSvm(node, labels);
  INGOT_RETURN_IF_ERROR(CheckLength(node, "vectors_per_class", counts.size(), labels.size()));
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> a, FloatsOf(node, "prob_a"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> b, FloatsOf(node, "prob_b"));
  INGOT_ASSIGN_OR_RETURN(const std::string post, node.String("post_transform", "NONE"));
  if (post != "NONE" && a.empty()) {
    return node.Unsupported("post_transform \"" + post + "\" of the scores of pairs of classes");
  }
  INGOT_ASSIGN_OR_RETURN(const Expr scores, PairScores(node, counts));
  INGOT_ASSIGN_OR_RETURN(const Expr best, MostVotes(node, scores, classes));
  INGOT_ASSIGN_OR_RETURN(const Expr label, LabelsOf(node, labels, best));
  if (a.empty() && b.empty()) {
    if (classes > 2) return std::vector<Expr>{label, scores};
    INGOT_ASSIGN_OR_RETURN(const Expr below, node.Bind("negative", {scores}));
    INGOT_ASSIGN_OR_RETURN(const Expr both, Beside(node, below, scores));
    return std::vector<Expr>{label, both};
  }
  const size_t pairs = PairsOf(classes).size();
  INGOT_RETURN_IF_ERROR(CheckLength(node, "prob_a", a.size(), pairs));
  INGOT_RETURN_IF_ERROR(CheckLength(node, "prob_b", b.size(), pairs));
  INGOT_ASSIGN_OR_RETURN(Expr probabilities, Probabilities(node, scores, a, b, classes));
  INGOT_ASSIGN_OR_RETURN(probabilities, PostTransform(node, std::move(probabilities)));
  return std::vector<Expr>{label, probabilities};
}

constexpr OnnxOpRow kSvmRows[] = {
    {"SVMClassifier", nullptr, SvmClassifier, kMachineLearning},
    {"SVMRegressor", nullptr, SvmRegressor, kMachineLearning},
};

}  // namespace

std::span<const OnnxOpRow> SvmOnnxOps() { return kSvmRows; }

}  // namespace ingot::importer
