// Determinants of square matrices [batch, n, n]: the product of the pivots of Gaussian elimination, whose sign each
// exchange of rows turns.
//
// The kernel is a PrimFunc that is built scheduled. Each matrix is copied into a workspace, whose rows are whole
// vectors long; a step subtracts a multiple of the pivot's row from each row below it, from the vector of the pivot's
// column on. (What that leaves left of the diagonal is not read any more.)
#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/statements.h"

namespace ingot::op {
namespace {

Result<ir::Type> InferDeterminant(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  if (x->rank >= 0 && x->rank != 3) return OpError(call, "expected matrices of rank 3, got " + Describe(x));
  if (x->dtype && *x->dtype != DataType::Float(32) && *x->dtype != DataType::Float(64)) {
    return OpError(call, "expected float32 or float64, got " + Describe(x));
  }
  if (!x->dims) return TensorOfRank(1, x->dtype, x);
  if (DimsDiffer((*x->dims)[1], (*x->dims)[2])) return OpError(call, "expected square matrices, got " + Describe(x));
  return TensorOf({(*x->dims)[0]}, x->dtype, x);
}

double DeterminantOf(std::vector<double> a, size_t n) {
  double product = 1;
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i) {
      if (std::fabs(a[i * n + k]) > std::fabs(a[pivot * n + k])) pivot = i;
    }
    if (pivot != k) {
      for (size_t j = 0; j < n; ++j) std::swap(a[k * n + j], a[pivot * n + j]);
      product = -product;
    }
    product *= a[k * n + k];
    for (size_t i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] == 0 ? 0 : a[i * n + k] / a[k * n + k];
      for (size_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return product;
}

Result<std::vector<ReferenceTensor>> ReferenceDeterminant(const ir::Call&, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  ReferenceTensor out = NewReference(x.dtype, {x.dims[0]});
  const int64_t size = x.dims[1] * x.dims[2];
  for (int64_t b = 0; b < x.dims[0]; ++b) {
    std::vector<double> matrix;
    for (int64_t i = 0; i < size; ++i) matrix.push_back(GetNumber(x, b * size + i));
    SetNumber(out, b, DeterminantOf(std::move(matrix), static_cast<size_t>(x.dims[1])));
  }
  return OneReference(std::move(out));
}

// ---- The kernel

using ir::ForKind;
using ir::Int64;

// The elimination of one matrix after the other.
class Elimination {
 public:
  Elimination(const Buffer& x, const Buffer& out)
      : x_(x),
        out_(out),
        dtype_(x->dtype),
        lanes_(kVectorBytes / (x->dtype.bits / 8)),
        batch_(x->shape[0]),
        n_(x->shape[1]),
        vectors_(SimplifyDim(ir::FloorDiv(n_ + (lanes_ - 1), Int64(lanes_)))),
        rows_(ir::MakeBuffer("rows", dtype_, {batch_, n_, SimplifyDim(vectors_ * lanes_)})),
        product_(ir::MakeBuffer("product", dtype_, {Int64(1)}, "local")),
        pivot_(ir::MakeBuffer("pivot", DataType::Int(64), {Int64(1)}, "local")) {}

  Stmt Run() const {
    const auto size = ir::AsConstInt(n_), count = ir::AsConstInt(batch_);
    const bool is_small = size && count && *count * *size * *size * *size < kTaskElements;
    const ir::PrimVar b = ir::MakePrimVar("b");
    Stmt matrix = ir::Make<ir::AllocateNode>(product_, ir::Make<ir::AllocateNode>(pivot_, Matrix(b)));
    Stmt all = ir::Make<ir::ForNode>(b, Int64(0), batch_, is_small ? ForKind::kSerial : ForKind::kParallel,
                                     std::move(matrix));
    return ir::Make<ir::AllocateNode>(rows_, std::move(all));
  }

 private:
  static constexpr int64_t kVectorBytes = 32;
  static constexpr int64_t kTaskElements = int64_t{1} << 17;
  using OfVector = std::function<Stmt(const PrimExpr& column)>;

  static Stmt From(const PrimExpr& begin, const PrimExpr& end, const std::function<Stmt(const PrimExpr&)>& body) {
    return Loop(SimplifyDim(end - begin), [&](const PrimExpr& i) { return body(begin + i); });
  }
  // The columns from that of a vector's number on.
  Stmt Vectors(const PrimExpr& first, const OfVector& body) const {
    return From(first, vectors_, [&](const PrimExpr& vector) {
      const ir::PrimVar l = ir::MakePrimVar("l");
      return Stmt(ir::Make<ir::ForNode>(l, Int64(0), Int64(lanes_), ForKind::kVectorized, body(vector * lanes_ + l)));
    });
  }
  PrimExpr Zero() const { return ir::MakeConst(dtype_, 0); }

  Stmt Matrix(const PrimExpr& b) const {
    const PrimExpr zero = Int64(0);
    const Stmt clear = Loop(n_, [&](const PrimExpr& i) {
      return Vectors(ir::Max(vectors_ - 1, zero), [&](const PrimExpr& j) { return Store(rows_, Zero(), {b, i, j}); });
    });
    const Stmt copy = Loops({n_, n_}, [&](const Places& at) {
      return Store(rows_, Load(x_, {b, at[0], at[1]}), {b, at[0], at[1]});
    });
    const Stmt steps = Loop(n_, [&](const PrimExpr& k) {
      return ir::MakeSeq({FindPivot(b, k), Exchange(b, k), Multiply(b, k), Eliminate(b, k)});
    });
    return ir::MakeSeq({clear, copy, Store(product_, ir::MakeConst(dtype_, 1), {zero}), steps,
                        Store(out_, Load(product_, {zero}), {b})});
  }
  Stmt FindPivot(const PrimExpr& b, const PrimExpr& k) const {
    const PrimExpr zero = Int64(0);
    const auto size = [&](const PrimExpr& i) {
      return ir::CallIntrinsic(ir::Intrinsic::kFabs, {Load(rows_, {b, i, k})});
    };
    const Stmt search = From(k + 1, n_, [&](const PrimExpr& i) {
      return If(size(Load(pivot_, {zero})) < size(i), Store(pivot_, i, {zero}));
    });
    return ir::MakeSeq({Store(pivot_, k, {zero}), search});
  }
  Stmt Exchange(const PrimExpr& b, const PrimExpr& k) const {
    const PrimExpr zero = Int64(0), pivot = Load(pivot_, {zero});
    const Stmt rows = From(k, n_, [&](const PrimExpr& j) {
      return Let("upper", Load(rows_, {b, k, j}), [&](const PrimExpr& upper) {
        return ir::MakeSeq({Store(rows_, Load(rows_, {b, pivot, j}), {b, k, j}), Store(rows_, upper, {b, pivot, j})});
      });
    });
    const Stmt turn = Store(product_, Zero() - Load(product_, {zero}), {zero});
    return If(ir::Not(ir::Equal(pivot, k)), ir::MakeSeq({rows, turn}));
  }
  Stmt Multiply(const PrimExpr& b, const PrimExpr& k) const {
    const PrimExpr zero = Int64(0);
    return Store(product_, Load(product_, {zero}) * Load(rows_, {b, k, k}), {zero});
  }
  Stmt Eliminate(const PrimExpr& b, const PrimExpr& k) const {
    return From(k + 1, n_, [&](const PrimExpr& i) {
      const PrimExpr below = Load(rows_, {b, i, k});
      const PrimExpr factor = ir::Select(ir::Equal(below, Zero()), Zero(), below / Load(rows_, {b, k, k}));
      return Let("factor", Zero() - factor, [&](const PrimExpr& minus) {
        return Vectors(ir::FloorDiv(k + 1, Int64(lanes_)), [&](const PrimExpr& j) {
          const PrimExpr rest =
              ir::CallIntrinsic(ir::Intrinsic::kFma, {minus, Load(rows_, {b, k, j}), Load(rows_, {b, i, j})});
          return Store(rows_, rest, {b, i, j});
        });
      });
    });
  }

  const Buffer x_, out_;
  const DataType dtype_;
  const int64_t lanes_;
  const PrimExpr batch_, n_, vectors_;
  const Buffer rows_, product_, pivot_;
};

Statements DefineDeterminant(const TeArgs&, const Buffers& inputs, const Buffers& outputs) {
  return {{Elimination(inputs[0], outputs[0]).Run()}};
}

double DeterminantCost(const ir::Call& call, const Target&) {
  const auto* type = ir::As<ir::TensorTypeNode>(call->args[0]->type);
  return EstimateElements(call->args[0]->type) * static_cast<double>(ir::AsConstInt((*type->dims)[1]).value_or(1));
}

}  // namespace

std::vector<OpRow> DeterminantOps() {
  return {{.name = "linalg.det",
           .summary = "determinants of square matrices [batch, n, n]",
           .arg_names = {"data"},
           .infer = InferDeterminant,
           .reference = ReferenceDeterminant,
           .implementations = {{"eliminate", Always, DeterminantCost, {}, BuildStatements<DefineDeterminant>}},
           .cases = {.rank0 = false, .dtypes = {DataType::Float(32), DataType::Float(64)}}}};
}

}  // namespace ingot::op
