// One step of the optimizers of ai.onnx.preview.training, for any number of tensors: Adagrad, Adam and Momentum.
#include <cmath>
#include <string>

#include "compiler/importer/ops/contrib.h"
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/util.h"

namespace ingot::importer {
namespace {

constexpr std::string_view kTraining = "ai.onnx.preview.training";
constexpr DataType kRate = DataType::Float(64);

// Expressions of tensors and numbers; after the first error nothing is called any more.
class Formula {
 public:
  explicit Formula(const NodeImporter& node) : node_(node) {}

  Expr Of(const char* row, std::vector<Expr> args) {
    if (!status_.ok()) return nullptr;
    return Take(node_.Bind(row, std::move(args)));
  }
  Expr Number(double value, DataType dtype) {
    if (!status_.ok()) return nullptr;
    return Take(node_.Scalar(value, dtype));
  }
  Expr Cast(const Expr& x, DataType dtype) {
    if (!status_.ok()) return nullptr;
    return Take(CastTo(node_, x, dtype));
  }
  Expr Add(const Expr& a, const Expr& b) { return Of("add", {a, b}); }
  Expr Sub(const Expr& a, const Expr& b) { return Of("subtract", {a, b}); }
  Expr Mul(const Expr& a, const Expr& b) { return Of("multiply", {a, b}); }
  Expr Div(const Expr& a, const Expr& b) { return Of("divide", {a, b}); }
  // x times a number; x itself for 1.
  Expr Scaled(const Expr& x, double factor) {
    if (factor == 1 || !status_.ok()) return x;
    return Mul(x, Number(factor, DTypeOf(x)));
  }
  const Status& status() const { return status_; }

 private:
  Expr Take(Result<Expr> made) {
    if (made.ok()) return *std::move(made);
    status_ = made.status();
    return nullptr;
  }
  const NodeImporter& node_;
  Status status_;
};

// The inputs: the learning rate, the number of steps before this one, and so many lists of equally many tensors.
struct Step {
  Expr rate, count;  // float64 and int64, of rank 0
  std::vector<std::vector<Expr>> lists;
};

Result<Step> ReadStep(const NodeImporter& node, size_t num_lists) {
  const size_t num_tensors = node.num_inputs() < 2 ? 0 : (node.num_inputs() - 2) / num_lists;
  if (num_tensors == 0 || node.num_inputs() != 2 + num_tensors * num_lists) {
    return node.Invalid("expected a rate, a count and " + std::to_string(num_lists) + " equally long lists of tensors");
  }
  Step step;
  INGOT_ASSIGN_OR_RETURN(Expr rate, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr count, node.Input(1));
  if (!DTypeOf(rate).is_floating() || DTypeOf(count) != DataType::Int(64)) {
    return node.Invalid("expected a rate of floats and a count of int64");
  }
  INGOT_ASSIGN_OR_RETURN(rate, CastTo(node, rate, kRate));
  INGOT_ASSIGN_OR_RETURN(step.rate, node.Bind("reshape", {rate, ShapeOf({})}));
  INGOT_ASSIGN_OR_RETURN(step.count, node.Bind("reshape", {count, ShapeOf({})}));
  for (size_t list = 0; list < num_lists; ++list) {
    std::vector<Expr>& tensors = step.lists.emplace_back();
    for (size_t i = 0; i < num_tensors; ++i) {
      const size_t input = 2 + list * num_tensors + i;
      if (!node.HasInput(input)) return node.Invalid("a tensor is left out");
      INGOT_ASSIGN_OR_RETURN(Expr tensor, node.Input(input));
      INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 2 + i));
      INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(2 + i));
      if (!type->dtype->is_floating() || DTypeOf(tensor) != *type->dtype) {
        return node.Invalid("expected tensors of one floating dtype");
      }
      if (DimsOf(tensor).size() != dims.size()) return node.Invalid("tensors of unlike ranks");
      tensors.push_back(WithDims(node, std::move(tensor), dims));
    }
  }
  return step;
}

// The gradient with that of norm_coefficient / 2 * |x|^2.
Result<double> Norm(const NodeImporter& node) { return node.Float("norm_coefficient", 0); }
Expr Regularised(Formula& f, const Expr& x, const Expr& gradient, double norm) {
  return norm == 0 ? gradient : f.Add(f.Scaled(x, norm), gradient);
}

// Outputs are all first results, then all second ones, ...
Outputs InLists(const Formula& f, const std::vector<std::vector<Expr>>& results) {
  INGOT_RETURN_IF_ERROR(f.status());
  std::vector<Expr> outputs;
  for (size_t k = 0; k < results[0].size(); ++k) {
    for (const std::vector<Expr>& of_tensor : results) outputs.push_back(of_tensor[k]);
  }
  return outputs;
}

Outputs Adagrad(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"decay_factor", "epsilon", "norm_coefficient"}));
  INGOT_ASSIGN_OR_RETURN(const Step step, ReadStep(node, 3));
  INGOT_ASSIGN_OR_RETURN(const double norm, Norm(node));
  INGOT_ASSIGN_OR_RETURN(const double decay, node.Float("decay_factor", 0));
  INGOT_ASSIGN_OR_RETURN(const double epsilon, node.Float("epsilon", 1e-6f));
  Formula f(node);
  const Expr slowed = f.Add(f.Number(1, kRate), f.Scaled(f.Cast(step.count, kRate), decay));
  const Expr rate = f.Div(step.rate, slowed);
  std::vector<std::vector<Expr>> results;
  for (size_t i = 0; i < step.lists[0].size() && f.status().ok(); ++i) {
    const Expr &x = step.lists[0][i], &squares = step.lists[2][i];
    const DataType dtype = DTypeOf(x);
    const Expr gradient = Regularised(f, x, step.lists[1][i], norm);
    const Expr sum = f.Add(squares, f.Mul(gradient, gradient));
    const Expr root = f.Add(f.Of("sqrt", {sum}), f.Number(epsilon, dtype));
    results.push_back({f.Sub(x, f.Div(f.Mul(f.Cast(rate, dtype), gradient), root)), sum});
  }
  return InLists(f, results);
}

// The rate of Adam's step: with the corrections for averages that began at 0, unless the step is the first.
Expr CorrectedRate(Formula& f, const Step& step, const Expr& is_later, double alpha, double beta) {
  const Expr one = f.Number(1, kRate), count = f.Cast(step.count, kRate);
  const auto missing = [&](double factor) { return f.Sub(one, f.Of("power", {f.Number(factor, kRate), count})); };
  const Expr corrected = f.Div(f.Mul(step.rate, f.Of("sqrt", {missing(beta)})), missing(alpha));
  return f.Of("where", {is_later, corrected, step.rate});
}

Outputs Adam(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(
      CheckAttributes(node, {"alpha", "beta", "epsilon", "norm_coefficient", "norm_coefficient_post"}));
  INGOT_ASSIGN_OR_RETURN(const Step step, ReadStep(node, 4));
  INGOT_ASSIGN_OR_RETURN(const double norm, Norm(node));
  INGOT_ASSIGN_OR_RETURN(const double norm_after, node.Float("norm_coefficient_post", 0));
  INGOT_ASSIGN_OR_RETURN(const double alpha, node.Float("alpha", 0.9f));
  INGOT_ASSIGN_OR_RETURN(const double beta, node.Float("beta", 0.999f));
  INGOT_ASSIGN_OR_RETURN(const double epsilon, node.Float("epsilon", 1e-6f));
  Formula f(node);
  const Expr is_later = f.Of("greater", {step.count, f.Number(0, DataType::Int(64))});
  const Expr rate = CorrectedRate(f, step, is_later, alpha, beta);
  std::vector<std::vector<Expr>> results;
  for (size_t i = 0; i < step.lists[0].size() && f.status().ok(); ++i) {
    const Expr& x = step.lists[0][i];
    const DataType dtype = DTypeOf(x);
    const Expr gradient = Regularised(f, x, step.lists[1][i], norm);
    const Expr mean = f.Add(f.Scaled(step.lists[2][i], alpha), f.Scaled(gradient, 1 - alpha));
    const Expr squares = f.Add(f.Scaled(step.lists[3][i], beta), f.Scaled(f.Mul(gradient, gradient), 1 - beta));
    const Expr root = f.Add(f.Of("sqrt", {squares}), f.Number(epsilon, dtype));
    const Expr moved = f.Sub(x, f.Mul(f.Cast(rate, dtype), f.Div(mean, root)));
    results.push_back({f.Scaled(moved, 1 - norm_after), mean, squares});
  }
  return InLists(f, results);
}

Outputs Momentum(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"alpha", "beta", "mode", "norm_coefficient"}));
  INGOT_ASSIGN_OR_RETURN(const Step step, ReadStep(node, 3));
  INGOT_ASSIGN_OR_RETURN(const double norm, Norm(node));
  INGOT_ASSIGN_OR_RETURN(const double alpha, node.Float("alpha", 0));
  INGOT_ASSIGN_OR_RETURN(const double beta, node.Float("beta", 0));
  INGOT_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", ""));
  if (!node.HasAttr("alpha") || !node.HasAttr("beta") || !node.HasAttr("norm_coefficient")) {
    return node.Invalid("expected the attributes alpha, beta and norm_coefficient");
  }
  if (mode != "standard" && mode != "nesterov") return node.Invalid("mode is \"" + mode + "\"");
  Formula f(node);
  const Expr is_later = f.Of("greater", {step.count, f.Number(0, DataType::Int(64))});
  const Expr share = f.Of("where", {is_later, f.Number(beta, kRate), f.Number(1, kRate)});
  std::vector<std::vector<Expr>> results;
  for (size_t i = 0; i < step.lists[0].size() && f.status().ok(); ++i) {
    const Expr& x = step.lists[0][i];
    const DataType dtype = DTypeOf(x);
    const Expr gradient = Regularised(f, x, step.lists[1][i], norm);
    const Expr momentum = f.Add(f.Scaled(step.lists[2][i], alpha), f.Mul(f.Cast(share, dtype), gradient));
    const Expr way = mode == "nesterov" ? f.Add(gradient, f.Scaled(momentum, alpha)) : momentum;
    results.push_back({f.Sub(x, f.Mul(f.Cast(step.rate, dtype), way)), momentum});
  }
  return InLists(f, results);
}

constexpr OnnxOpRow kTrainingRows[] = {
    {"Adagrad", nullptr, Adagrad, kTraining},
    {"Adam", nullptr, Adam, kTraining},
    {"Momentum", nullptr, Momentum, kTraining},
};

}  // namespace

std::span<const OnnxOpRow> TrainingOnnxOps() { return kTrainingRows; }

}  // namespace ingot::importer
