// A transform of n = n1 * n2 numbers x[j1 * n2 + j2] is n2 transforms of n1 numbers, a rotation of each result, and n1
// transforms of n2 numbers, which give the bins k1 + n1 * k2. One of a large prime length is a convolution, which takes
// transforms of a convenient length.
#include "compiler/importer/ops/fourier.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <utility>
#include <vector>

#include "compiler/importer/build.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

using Complex = std::complex<double>;

constexpr int64_t kShortTransform = 128;  // a product with one matrix
constexpr int64_t kLargestPrime = 256;    // beyond, a convolution is less work

// exp(sign * 2 pi i * numerator / denominator)
Complex Root(int64_t numerator, int64_t denominator, int sign) {
  const double turn = static_cast<double>(numerator % denominator) / static_cast<double>(denominator);
  return std::polar(1.0, sign * 2 * std::numbers::pi * turn);
}

int64_t SmallestFactor(int64_t n) {
  for (int64_t factor = 2; factor * factor <= n; ++factor) {
    if (n % factor == 0) return factor;
  }
  return n;
}
// The factor of n that is closest to its square root from below.
int64_t MiddleFactor(int64_t n) {
  auto factor = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % factor != 0) --factor;
  return factor;
}
// The least number of this form 2^a * 3^b that is not below n.
int64_t ConvenientLength(int64_t n) {
  int64_t best = int64_t{1} << 62;
  for (int64_t threes = 1; threes < 3 * n; threes *= 3) {
    int64_t length = threes;
    while (length < n) length *= 2;
    best = std::min(best, length);
  }
  return best;
}

// The transform on the compiler's side, of a length without large prime factors.
std::vector<Complex> TransformHere(const std::vector<Complex>& x, int sign) {
  const auto n = static_cast<int64_t>(x.size());
  const int64_t first = n == 1 ? 1 : SmallestFactor(n), rest = n == 1 ? 1 : n / first;
  if (n == 1) return x;
  std::vector<std::vector<Complex>> parts;
  for (int64_t j1 = 0; j1 < first; ++j1) {  // x[j1 + first * j2]
    std::vector<Complex> part;
    for (int64_t j2 = 0; j2 < rest; ++j2) part.push_back(x[static_cast<size_t>(j1 + first * j2)]);
    parts.push_back(TransformHere(part, sign));
  }
  std::vector<Complex> result(x.size());
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t j1 = 0; j1 < first; ++j1) {
      const Complex part = parts[static_cast<size_t>(j1)][static_cast<size_t>(k % rest)];
      result[static_cast<size_t>(k)] += part * Root(j1 * k, n, sign);
    }
  }
  return result;
}

class Fourier {
 public:
  Fourier(const NodeImporter& node, DataType dtype, int sign) : node_(node), dtype_(dtype), sign_(sign) {}

  // All bins of x [batch, components, n].
  Result<Expr> Transform(Expr x, int64_t n) const {
    if (n <= kShortTransform) return Short(std::move(x), n, n);
    const int64_t factor = MiddleFactor(n);
    if (factor > 1) return Split(std::move(x), factor, n / factor);
    return n <= kLargestPrime ? Short(std::move(x), n, n) : Convolution(std::move(x), n);
  }

  // One product of [batch, components * n] with [components * n, 2 * bins].
  Result<Expr> Short(Expr x, int64_t n, int64_t bins) const {
    const std::vector<PrimExpr> in = DimsOf(x);
    const int64_t parts = Parts(x);
    std::vector<double> values(static_cast<size_t>(parts * n * 2 * bins));
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t k = 0; k < bins; ++k) {
        const Complex root = Root(j * k, n, sign_);
        const auto set = [&](int64_t from, int64_t to, double value) {
          values[static_cast<size_t>((from * n + j) * 2 * bins + to * bins + k)] = value;
        };
        set(0, 0, root.real());
        set(0, 1, root.imag());
        if (parts == 1) continue;
        set(1, 0, -root.imag());
        set(1, 1, root.real());
      }
    }
    INGOT_ASSIGN_OR_RETURN(x, node_.Bind("reshape", {x, ShapeOf({in[0], ir::Int64(parts * n)})}));
    INGOT_ASSIGN_OR_RETURN(x, node_.Bind("matmul", {x, Table({parts * n, 2 * bins}, values)}));
    return node_.Bind("reshape", {x, ShapeOf({in[0], ir::Int64(2), ir::Int64(bins)})});
  }

 private:
  // A complex number as two tensors; no imaginary part: it is 0.
  struct Pair {
    Expr real, imaginary;
  };

  static int64_t Parts(const Expr& x) { return *ir::AsConstInt(DimsOf(x)[1]); }

  Expr Table(std::vector<int64_t> dims, const std::vector<double>& values) const {
    if (dtype_ == DataType::Float(64)) return ConstantOf(dtype_, std::move(dims), values);
    return ConstantOf(dtype_, std::move(dims), std::vector<float>(values.begin(), values.end()));
  }
  Pair Tables(const std::vector<int64_t>& dims, const std::vector<Complex>& values) const {
    std::vector<double> real, imaginary;
    for (const Complex& value : values) {
      real.push_back(value.real());
      imaginary.push_back(value.imag());
    }
    return {Table(dims, real), Table(dims, imaginary)};
  }

  Result<Expr> Slice(const Expr& x, int64_t axis, int64_t begin, int64_t end) const {
    const auto list = [](int64_t number) { return TupleOf({Number(ir::Int64(number))}); };
    return node_.Bind("strided_slice", {x, list(axis), list(begin), list(end)});
  }
  Result<Expr> Join(const Pair& x, int64_t axis) const {
    return node_.Bind("concat", {TupleOf({x.real, x.imaginary})}, {{"axis", axis}});
  }
  // The product of complex numbers.
  Result<Pair> Multiply(const Pair& a, const Pair& b) const {
    Pair y;
    INGOT_ASSIGN_OR_RETURN(y.real, node_.Bind("multiply", {a.real, b.real}));
    INGOT_ASSIGN_OR_RETURN(y.imaginary, node_.Bind("multiply", {a.real, b.imaginary}));
    if (a.imaginary == nullptr) return y;
    INGOT_ASSIGN_OR_RETURN(const Expr second, node_.Bind("multiply", {a.imaginary, b.imaginary}));
    INGOT_ASSIGN_OR_RETURN(const Expr third, node_.Bind("multiply", {a.imaginary, b.real}));
    INGOT_ASSIGN_OR_RETURN(y.real, node_.Bind("subtract", {y.real, second}));
    INGOT_ASSIGN_OR_RETURN(y.imaginary, node_.Bind("add", {y.imaginary, third}));
    return y;
  }
  // The components along axis 1, which goes.
  Result<Pair> Components(const Expr& x) const {
    std::vector<PrimExpr> dims = DimsOf(x);
    const int64_t parts = Parts(x);
    dims.erase(dims.begin() + 1);
    Pair y;
    INGOT_ASSIGN_OR_RETURN(y.real, Slice(x, 1, 0, 1));
    INGOT_ASSIGN_OR_RETURN(y.real, node_.Bind("reshape", {y.real, ShapeOf(dims)}));
    if (parts == 1) return y;
    INGOT_ASSIGN_OR_RETURN(y.imaginary, Slice(x, 1, 1, 2));
    INGOT_ASSIGN_OR_RETURN(y.imaginary, node_.Bind("reshape", {y.imaginary, ShapeOf(dims)}));
    return y;
  }

  Result<Expr> Split(Expr x, int64_t n1, int64_t n2) const {
    const PrimExpr batch = DimsOf(x)[0];
    const int64_t parts = Parts(x), n = n1 * n2;
    // [2 * n1, n1] times [batch, parts, n1, n2]: cosines, then sines, of the columns
    std::vector<double> columns(static_cast<size_t>(2 * n1 * n1));
    for (int64_t k = 0; k < n1; ++k) {
      for (int64_t j = 0; j < n1; ++j) {
        const Complex root = Root(j * k, n1, sign_);
        columns[static_cast<size_t>(k * n1 + j)] = root.real();
        columns[static_cast<size_t>((n1 + k) * n1 + j)] = root.imag();
      }
    }
    const PrimExpr first = ir::Int64(n1), second = ir::Int64(n2), two = ir::Int64(2);
    INGOT_ASSIGN_OR_RETURN(x, node_.Bind("reshape", {x, ShapeOf({batch, ir::Int64(parts), first, second})}));
    INGOT_ASSIGN_OR_RETURN(x, node_.Bind("matmul", {Table({2 * n1, n1}, columns), x}));
    INGOT_ASSIGN_OR_RETURN(const Pair products, Components(x));  // of the real part, of the imaginary part
    const auto half = [&](const Expr& product, int64_t which) {
      return Slice(product, 1, which * n1, (which + 1) * n1);
    };
    Pair y;
    INGOT_ASSIGN_OR_RETURN(y.real, half(products.real, 0));
    INGOT_ASSIGN_OR_RETURN(y.imaginary, half(products.real, 1));
    if (parts == 2) {
      INGOT_ASSIGN_OR_RETURN(const Expr cosines, half(products.imaginary, 0));
      INGOT_ASSIGN_OR_RETURN(const Expr sines, half(products.imaginary, 1));
      INGOT_ASSIGN_OR_RETURN(y.real, node_.Bind("subtract", {y.real, sines}));
      INGOT_ASSIGN_OR_RETURN(y.imaginary, node_.Bind("add", {y.imaginary, cosines}));
    }
    std::vector<Complex> rotations;
    for (int64_t k1 = 0; k1 < n1; ++k1) {
      for (int64_t j2 = 0; j2 < n2; ++j2) rotations.push_back(Root(k1 * j2, n, sign_));
    }
    INGOT_ASSIGN_OR_RETURN(y, Multiply(y, Tables({n1, n2}, rotations)));
    // [batch * n1, 2, n2]
    const PrimExpr rows = op::SimplifyDim(batch * n1);
    INGOT_ASSIGN_OR_RETURN(y.real, node_.Bind("reshape", {y.real, ShapeOf({rows, ir::Int64(1), second})}));
    INGOT_ASSIGN_OR_RETURN(y.imaginary, node_.Bind("reshape", {y.imaginary, ShapeOf({rows, ir::Int64(1), second})}));
    INGOT_ASSIGN_OR_RETURN(x, Join(y, 1));
    INGOT_ASSIGN_OR_RETURN(x, Transform(std::move(x), n2));
    INGOT_ASSIGN_OR_RETURN(x, node_.Bind("reshape", {x, ShapeOf({batch, first, two, second})}));
    INGOT_ASSIGN_OR_RETURN(x, node_.Bind("permute_dims", {x}, {{"axes", AttrValue::Ints({0, 2, 3, 1})}}));
    return node_.Bind("reshape", {x, ShapeOf({batch, two, ir::Int64(n)})});
  }

  // j * k = (j^2 + k^2 - (k - j)^2) / 2: the bins are a convolution of rotated numbers with rotations.
  Result<Expr> Convolution(Expr x, int64_t n) const {
    const int64_t length = ConvenientLength(2 * n - 1);
    std::vector<Complex> chirp, filter(static_cast<size_t>(length));
    for (int64_t j = 0; j < n; ++j) {
      chirp.push_back(Root(j * j % (2 * n), 2 * n, sign_));
      filter[static_cast<size_t>(j)] = filter[static_cast<size_t>((length - j) % length)] = std::conj(chirp.back());
    }
    filter = TransformHere(filter, sign_);
    for (Complex& value : filter) value /= static_cast<double>(length);  // of the transform back
    INGOT_ASSIGN_OR_RETURN(Pair y, Components(x));
    INGOT_ASSIGN_OR_RETURN(y, Multiply(y, Tables({n}, chirp)));
    INGOT_ASSIGN_OR_RETURN(x, Joined(y, n));
    INGOT_ASSIGN_OR_RETURN(x, WithLength(node_, std::move(x), ir::Int64(length)));
    INGOT_ASSIGN_OR_RETURN(x, Transform(std::move(x), length));
    INGOT_ASSIGN_OR_RETURN(y, Components(x));
    INGOT_ASSIGN_OR_RETURN(y, Multiply(y, Tables({length}, filter)));
    INGOT_ASSIGN_OR_RETURN(x, Joined(y, length));
    INGOT_ASSIGN_OR_RETURN(x, Fourier(node_, dtype_, -sign_).Transform(std::move(x), length));
    INGOT_ASSIGN_OR_RETURN(x, Slice(x, 2, 0, n));
    INGOT_ASSIGN_OR_RETURN(y, Components(x));
    INGOT_ASSIGN_OR_RETURN(y, Multiply(y, Tables({n}, chirp)));
    return Joined(y, n);
  }
  // [batch, n] twice as [batch, 2, n].
  Result<Expr> Joined(Pair y, int64_t n) const {
    const std::vector<PrimExpr> dims = {DimsOf(y.real)[0], ir::Int64(1), ir::Int64(n)};
    INGOT_ASSIGN_OR_RETURN(y.real, node_.Bind("reshape", {y.real, ShapeOf(dims)}));
    INGOT_ASSIGN_OR_RETURN(y.imaginary, node_.Bind("reshape", {y.imaginary, ShapeOf(dims)}));
    return Join(y, 1);
  }

  const NodeImporter& node_;
  const DataType dtype_;
  const int sign_;
};

// Of a length that only run time knows: products with matrices that are computed then, length x bins.
Result<Expr> TransformBySymbols(const NodeImporter& node, const Expr& x, const PrimExpr& length, const PrimExpr& bins,
                                int sign) {
  const DataType index = DataType::Int(64), exact = DataType::Float(64), dtype = DTypeOf(x);
  const PrimExpr zero = ir::Int64(0), one = ir::Int64(1);
  const auto bind = [&](const char* row, const Expr& a, const Expr& b) { return node.Bind(row, {a, b}); };
  const auto numbers = [&](const PrimExpr& count, std::vector<PrimExpr> dims) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(const Expr range,
                           node.Bind("arange", {Number(zero), Number(count), Number(one)}, {{"dtype", index}}));
    return node.Bind("reshape", {range, ShapeOf(std::move(dims))});
  };
  INGOT_ASSIGN_OR_RETURN(const Expr rows, numbers(length, {length, one}));
  INGOT_ASSIGN_OR_RETURN(const Expr columns, numbers(bins, {one, bins}));
  INGOT_ASSIGN_OR_RETURN(const Expr whole, node.Bind("shape_to_tensor", {ShapeOf({length})}));
  INGOT_ASSIGN_OR_RETURN(Expr turns, bind("multiply", rows, columns));
  INGOT_ASSIGN_OR_RETURN(turns, bind("floor_mod", turns, whole));  // so that angles are as exact for all
  INGOT_ASSIGN_OR_RETURN(Expr angle, CastTo(node, turns, exact));
  INGOT_ASSIGN_OR_RETURN(const Expr per_turn, CastTo(node, whole, exact));
  INGOT_ASSIGN_OR_RETURN(angle, bind("multiply", angle, ConstantOf<double>(exact, {}, {sign * 2 * std::numbers::pi})));
  INGOT_ASSIGN_OR_RETURN(angle, bind("divide", angle, per_turn));
  INGOT_ASSIGN_OR_RETURN(Expr cosines, node.Bind("cos", {angle}));
  INGOT_ASSIGN_OR_RETURN(cosines, CastTo(node, cosines, dtype));
  INGOT_ASSIGN_OR_RETURN(Expr sines, node.Bind("sin", {angle}));
  INGOT_ASSIGN_OR_RETURN(sines, CastTo(node, sines, dtype));
  const PrimExpr batch = DimsOf(x)[0];
  const auto component = [&](int64_t which) -> Result<Expr> {
    const std::vector<int64_t> axis{1}, begin{which}, end{which + 1};
    INGOT_ASSIGN_OR_RETURN(const Expr part,
                           node.Bind("strided_slice", {x, PrimTuple(axis), PrimTuple(begin), PrimTuple(end)}));
    return node.Bind("reshape", {part, ShapeOf({batch, length})});
  };
  INGOT_ASSIGN_OR_RETURN(const Expr real, component(0));
  INGOT_ASSIGN_OR_RETURN(Expr result_real, bind("matmul", real, cosines));
  INGOT_ASSIGN_OR_RETURN(Expr result_imaginary, bind("matmul", real, sines));
  if (ir::IsConstInt(DimsOf(x)[1], 2)) {
    INGOT_ASSIGN_OR_RETURN(const Expr imaginary, component(1));
    INGOT_ASSIGN_OR_RETURN(const Expr turned, bind("matmul", imaginary, sines));
    INGOT_ASSIGN_OR_RETURN(result_real, bind("subtract", result_real, turned));
    INGOT_ASSIGN_OR_RETURN(const Expr kept, bind("matmul", imaginary, cosines));
    INGOT_ASSIGN_OR_RETURN(result_imaginary, bind("add", result_imaginary, kept));
  }
  INGOT_ASSIGN_OR_RETURN(result_real, node.Bind("reshape", {result_real, ShapeOf({batch, one, bins})}));
  INGOT_ASSIGN_OR_RETURN(result_imaginary, node.Bind("reshape", {result_imaginary, ShapeOf({batch, one, bins})}));
  return node.Bind("concat", {TupleOf({result_real, result_imaginary})}, {{"axis", int64_t{1}}});
}

}  // namespace

Result<Expr> LastSlice(const NodeImporter& node, const Expr& x, const PrimExpr& begin, const PrimExpr& end) {
  const auto list = [](const PrimExpr& number) { return TupleOf({Number(number)}); };
  const PrimExpr axis = ir::Int64(std::ssize(DimsOf(x)) - 1);
  return node.Bind("strided_slice", {x, list(axis), list(begin), list(end)});
}

Result<Expr> WithLength(const NodeImporter& node, Expr x, const PrimExpr& length) {
  std::vector<PrimExpr> dims = DimsOf(x);
  const PrimExpr rows = dims.back();
  if (op::DimsEqual(rows, length)) return x;
  const auto have = ir::AsConstInt(rows), want = ir::AsConstInt(length);
  if (!have || !want || *have < *want) {
    dims.back() = op::SimplifyDim(ir::Max(length - rows, ir::Int64(0)));
    INGOT_ASSIGN_OR_RETURN(const Expr zeros, node.Bind("zeros", {ShapeOf(dims)}, {{"dtype", DTypeOf(x)}}));
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("concat", {TupleOf({x, zeros})}, {{"axis", std::ssize(dims) - 1}}));
  }
  if (have && want && *have < *want) return x;
  INGOT_ASSIGN_OR_RETURN(x, LastSlice(node, x, ir::Int64(0), length));
  dims.back() = length;
  return WithDims(node, std::move(x), std::move(dims));
}

Result<Expr> FourierTransform(const NodeImporter& node, Expr x, const PrimExpr& length, const PrimExpr& bins,
                              int sign) {
  const auto known = ir::AsConstInt(length), wanted = ir::AsConstInt(bins);
  if (!known || !wanted) return TransformBySymbols(node, x, length, bins, sign);
  const Fourier fourier(node, DTypeOf(x), sign);
  if (*known <= kShortTransform) return fourier.Short(std::move(x), *known, *wanted);
  INGOT_ASSIGN_OR_RETURN(x, fourier.Transform(std::move(x), *known));
  return *wanted == *known ? Result<Expr>(std::move(x)) : LastSlice(node, x, ir::Int64(0), bins);
}

}  // namespace ingot::importer
