// Pairwise coupling: class probabilities out of the probabilities of pairs of classes, as support vector machines and
// other classifiers of pairs give them.
#include <algorithm>
#include <cmath>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/statements.h"

namespace ingot::op {
namespace {

// ---- pairwise_coupling: the second method of Wu, Lin and Weng, "Probability Estimates for Multi-class Classification
// by Pairwise Coupling" (2004), as libsvm iterates it. r[i, j] is the probability of class i where i or j is the
// class. p minimises p' Q p with the sum 1; Q[i, j] is -r[j, i] r[i, j], and Q[i, i] the sum of r[j, i]^2 over j != i.
// The diagonal of r has no part. A row ends when no (Q p)[i] is farther than 0.005 / classes from p' Q p, or after
// kMaxSteps; a row with NaN keeps the equal probabilities that it begins with, because no comparison of NaN is true.
constexpr int64_t kMaxSteps = 100;

double Tolerance(int64_t classes) { return 0.005 / static_cast<double>(classes); }

Result<ir::Type> InferPairwiseCoupling(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType type, TensorArg(call, 0));
  if (type->dtype && *type->dtype != DataType::Float(32)) {
    return OpError(call, "expected float32, got " + Describe(type));
  }
  if (!type->dims) return TensorOfRank(2, DataType::Float(32), type);
  const Dims& dims = *type->dims;
  if (dims.size() != 3) return OpError(call, "expected [rows, classes, classes], got " + Describe(type));
  const std::optional<int64_t> classes = ir::AsConstInt(dims[1]);
  if (!classes || *classes < 1 || ir::AsConstInt(dims[2]) != classes) {
    return OpError(call, "expected a constant number of classes twice, got " + Describe(type));
  }
  return TensorOf({dims[0], dims[1]}, DataType::Float(32), type);
}

// One row of the reference evaluation.
class Coupling {
 public:
  Coupling(const ReferenceTensor& r, int64_t row) : r_(r), row_(row), classes_(r.dims[1]) {
    p_.assign(Size(), 1.0 / static_cast<double>(classes_));
    product_.assign(Size(), 0);
  }
  const std::vector<double>& Solve() {
    for (int64_t step = 0; step < kMaxSteps && Measure() >= Tolerance(classes_); ++step) Improve();
    return p_;
  }

 private:
  size_t Size() const { return static_cast<size_t>(classes_); }
  double R(size_t i, size_t j) const {
    return GetNumber(r_, (row_ * classes_ + static_cast<int64_t>(i)) * classes_ + static_cast<int64_t>(j));
  }
  double Q(size_t i, size_t j) const {
    if (i != j) return -R(j, i) * R(i, j);
    double sum = 0;
    for (size_t k = 0; k < Size(); ++k) sum += k == i ? 0 : R(k, i) * R(k, i);
    return sum;
  }
  // Computes Q p and p' Q p; returns the greatest distance of the one from the other.
  double Measure() {
    total_ = 0;
    for (size_t i = 0; i < Size(); ++i) {
      product_[i] = 0;
      for (size_t j = 0; j < Size(); ++j) product_[i] += Q(i, j) * p_[j];
      total_ += p_[i] * product_[i];
    }
    double greatest = 0;
    for (const double product : product_) {
      const double distance = std::abs(product - total_);
      if (distance > greatest) greatest = distance;
    }
    return greatest;
  }
  void Improve() {
    for (size_t i = 0; i < Size(); ++i) {
      const double own = Q(i, i), step = (total_ - product_[i]) / own, scale = 1 + step;
      p_[i] += step;
      total_ = (total_ + step * (step * own + 2 * product_[i])) / scale / scale;
      for (size_t j = 0; j < Size(); ++j) {
        product_[j] = (product_[j] + step * Q(i, j)) / scale;
        p_[j] /= scale;
      }
    }
  }

  const ReferenceTensor& r_;
  int64_t row_, classes_;
  std::vector<double> p_, product_;
  double total_ = 0;
};

Result<std::vector<ReferenceTensor>> ReferencePairwiseCoupling(const ir::Call&,
                                                               std::span<const ReferenceTensor> inputs) {
  const std::vector<int64_t> dims = {inputs[0].dims[0], inputs[0].dims[1]};
  ReferenceTensor out = NewReference(DataType::Float(32), dims);
  for (int64_t row = 0; row < dims[0]; ++row) {
    Coupling coupling(inputs[0], row);
    const std::vector<double>& p = coupling.Solve();
    for (size_t i = 0; i < p.size(); ++i) SetNumber(out, row * dims[1] + static_cast<int64_t>(i), p[i]);
  }
  return OneReference(std::move(out));
}

// The statements of one row. Everything is computed in float64, so that a row ends after the steps of the reference.
struct CouplingBuffers {
  CouplingBuffers(const Buffer& r, const PrimExpr& row, const PrimExpr& classes)
      : classes(classes), r([r, row](const PrimExpr& i, const PrimExpr& j) {
          return ir::Cast(DataType::Float(64), Load(r, {row, i, j}));
        }) {}

  const DataType wide = DataType::Float(64);
  const Places first = {ir::Int64(0)};
  PrimExpr classes;
  std::function<PrimExpr(const PrimExpr&, const PrimExpr&)> r;

  PrimExpr Number(double value) const { return ir::FloatImm(wide, value); }
  PrimExpr Q(const Buffer& diagonal, const PrimExpr& i, const PrimExpr& j) const {
    return ir::Select(ir::Equal(i, j), Load(diagonal, {i}), Number(0) - r(j, i) * r(i, j));
  }
};

struct CouplingLocals {
  Buffer p, product, diagonal, total, distance, step;
};

Stmt BeginCoupling(const CouplingBuffers& b, const CouplingLocals& local, int64_t classes) {
  return Loops({b.classes}, [&](const Places& at) {
    const PrimExpr i = at[0];
    const Stmt sum = Loop(b.classes, [&](const PrimExpr& j) {
      const PrimExpr term = ir::Select(ir::Equal(i, j), b.Number(0), b.r(j, i) * b.r(j, i));
      return Store(local.diagonal, Load(local.diagonal, {i}) + term, {i});
    });
    return ir::MakeSeq({Store(local.p, b.Number(1.0 / static_cast<double>(classes)), {i}),
                        Store(local.diagonal, b.Number(0), {i}), sum});
  });
}

Stmt MeasureCoupling(const CouplingBuffers& b, const CouplingLocals& local) {
  const Stmt products = Loop(b.classes, [&](const PrimExpr& i) {
    const Stmt sum = Loop(b.classes, [&](const PrimExpr& j) {
      const PrimExpr term = b.Q(local.diagonal, i, j) * Load(local.p, {j});
      return Store(local.product, Load(local.product, {i}) + term, {i});
    });
    const PrimExpr share = Load(local.p, {i}) * Load(local.product, {i});
    return ir::MakeSeq(
        {Store(local.product, b.Number(0), {i}), sum, Store(local.total, Load(local.total, b.first) + share, b.first)});
  });
  const Stmt greatest = Loop(b.classes, [&](const PrimExpr& i) {
    return Let("difference", Load(local.product, {i}) - Load(local.total, b.first), [&](const PrimExpr& difference) {
      const PrimExpr size = ir::Select(difference < b.Number(0), b.Number(0) - difference, difference);
      const PrimExpr before = Load(local.distance, b.first);
      return Store(local.distance, ir::Select(size > before, size, before), b.first);
    });
  });
  return ir::MakeSeq(
      {Store(local.total, b.Number(0), b.first), products, Store(local.distance, b.Number(0), b.first), greatest});
}

Stmt ImproveCoupling(const CouplingBuffers& b, const CouplingLocals& local) {
  return Loop(b.classes, [&](const PrimExpr& i) {
    const PrimExpr product = Load(local.product, {i}), total = Load(local.total, b.first);
    return Let("change", (total - product) / Load(local.diagonal, {i}), [&](const PrimExpr& change) {
      return Let("scale", b.Number(1) + change, [&](const PrimExpr& scale) {
        const PrimExpr grown = total + change * (change * Load(local.diagonal, {i}) + b.Number(2) * product);
        const Stmt rest = Loop(b.classes, [&](const PrimExpr& j) {
          const PrimExpr next = Load(local.product, {j}) + change * b.Q(local.diagonal, i, j);
          return ir::MakeSeq(
              {Store(local.product, next / scale, {j}), Store(local.p, Load(local.p, {j}) / scale, {j})});
        });
        return ir::MakeSeq({Store(local.p, Load(local.p, {i}) + change, {i}),
                            Store(local.total, grown / scale / scale, b.first), rest});
      });
    });
  });
}

Statements DefinePairwiseCoupling(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const PrimExpr rows = outputs[0]->shape[0], extent = outputs[0]->shape[1], one = ir::Int64(1);
  const int64_t classes = *ir::AsConstInt(args.out_dims()[1]);
  const DataType wide = DataType::Float(64);
  const auto local_of = [](const char* name, DataType dtype, const PrimExpr& size) {
    return ir::MakeBuffer(name, dtype, {size}, "local");
  };
  const CouplingLocals local = {local_of("p", wide, extent),        local_of("product", wide, extent),
                                local_of("diagonal", wide, extent), local_of("total", wide, one),
                                local_of("distance", wide, one),    local_of("step", DataType::Int(64), one)};
  const Stmt nest = SpatialNest(
      "pairwise_coupling", {rows},
      [&](const Places& row) {
        const CouplingBuffers b(inputs[0], row[0], extent);
        const PrimExpr step = Load(local.step, b.first);
        const PrimExpr going =
            ir::And(step < ir::Int64(kMaxSteps), Load(local.distance, b.first) >= b.Number(Tolerance(classes)));
        const Stmt next =
            ir::MakeSeq({ImproveCoupling(b, local), MeasureCoupling(b, local), Store(local.step, step + one, b.first)});
        const Stmt result = Loop(extent, [&](const PrimExpr& i) {
          return Store(outputs[0], ir::Cast(outputs[0]->dtype, Load(local.p, {i})), {row[0], i});
        });
        return ir::MakeSeq({BeginCoupling(b, local, classes), Store(local.step, ir::Int64(0), b.first),
                            MeasureCoupling(b, local), While(going, next), result});
      },
      {local.p, local.product, local.diagonal, local.total, local.distance, local.step});
  return {{nest}};
}

double CouplingCost(const ir::Call& call, const Target&) {
  const auto* type = ir::As<ir::TensorTypeNode>(call->args[0]->type);
  return EstimateElements(call->args[0]->type) * static_cast<double>(ir::AsConstInt((*type->dims)[1]).value_or(1));
}

}  // namespace

std::vector<OpRow> CouplingOps() {
  std::vector<OpRow> rows;
  rows.push_back(
      {.name = "pairwise_coupling",
       .summary = "the probabilities of classes out of those of class i beside class j alone, data[.., i, j]",
       .arg_names = {"data"},
       .infer = InferPairwiseCoupling,
       .reference = ReferencePairwiseCoupling,
       .implementations = {{"iterate", Always, CouplingCost, {}, BuildStatements<DefinePairwiseCoupling>}},
       .cases = {.rank0 = false, .dtypes = {DataType::Float(32)}}});
  return rows;
}

}  // namespace ingot::op
