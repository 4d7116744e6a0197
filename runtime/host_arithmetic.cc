// Arithmetic on elements, in blocks of double or int64 (host_elements.h). For +, -, *, / and sqrt of floats up to 32
// bits a result that is rounded to double and then to float is the correctly rounded float (double has more than twice
// float's digits), so that computing in double gives float32's own results; small floats round once more, when stored.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>

#include "runtime/host_elements.h"
#include "runtime/host_ops.h"

namespace ingot::host {
namespace {

constexpr int64_t kBlock = 256;  // elements
template <typename Number>
using Block = std::array<Number, kBlock>;

// Calls use(offset, count) for the elements of a compact tensor, a block at a time, until it is stopped.
template <typename Use>
void ForEachBlock(Poll poll, int64_t num_elements, Use use) {
  for (int64_t at = 0; at < num_elements && !poll.is_stopped(); at += kBlock) {
    use(at, std::min(kBlock, num_elements - at));
  }
}
// The status of a routine at its end: cancelled when it was stopped, with only a part of its result written.
Status Ended(Poll poll) { return poll.is_stopped() ? Stopped() : Status(); }

// Results of floats that are not double are rounded to float32 before anything else happens to them.
void RoundResults(DataType dtype, double* values, int64_t count) {
  if (dtype.bits == 64) return;
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(values[i]);
}

const char* NameOf(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "add";
    case BinaryOp::kSub:
      return "sub";
    case BinaryOp::kMul:
      return "mul";
    case BinaryOp::kDiv:
      return "div";
    case BinaryOp::kMin:
      return "minimum";
    case BinaryOp::kMax:
      return "maximum";
  }
  INGOT_UNREACHABLE();
}

double Compute(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return a / b;
    case BinaryOp::kMin:
      return std::isnan(a) || a < b ? a : b;
    case BinaryOp::kMax:
      return std::isnan(a) || a > b ? a : b;
  }
  INGOT_UNREACHABLE();
}

// Computes in unsigned 64 bits, so that wrapping around is defined; storing keeps the low bits. Where the sign matters,
// T says how the operands are read: int64_t, or uint64_t for uint64.
template <typename T>
int64_t Compute(BinaryOp op, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  switch (op) {
    case BinaryOp::kAdd:
      return static_cast<int64_t>(x + y);
    case BinaryOp::kSub:
      return static_cast<int64_t>(x - y);
    case BinaryOp::kMul:
      return static_cast<int64_t>(x * y);
    case BinaryOp::kDiv:
      if (b == 0) return 0;
      if (std::is_signed_v<T> && b == -1) return static_cast<int64_t>(0 - x);
      return static_cast<int64_t>(static_cast<T>(a) / static_cast<T>(b));
    case BinaryOp::kMin:
      return static_cast<T>(a) < static_cast<T>(b) ? a : b;
    case BinaryOp::kMax:
      return static_cast<T>(a) > static_cast<T>(b) ? a : b;
  }
  INGOT_UNREACHABLE();
}

void Compute(BinaryOp op, DataType dtype, const double* a, const double* b, double* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = Compute(op, a[i], b[i]);
  RoundResults(dtype, to, count);
}
void Compute(BinaryOp op, DataType dtype, const int64_t* a, const int64_t* b, int64_t* to, int64_t count) {
  const bool is_uint64 = !dtype.is_int() && dtype.bits == 64;
  for (int64_t i = 0; i < count; ++i) {
    to[i] = is_uint64 ? Compute<uint64_t>(op, a[i], b[i]) : Compute<int64_t>(op, a[i], b[i]);
  }
}

// The loop nest over a result: its dims, and the strides with which two inputs are read along. Neighbouring axes are
// joined where both inputs can be read across them with one stride, so that rows are as long as possible.
struct Walk {
  int rank = 0;
  Strides dims{};
  std::array<Strides, 2> strides{};
};

Walk JoinAxes(const TensorView& out, const Strides& a, const Strides& b) {
  Walk walk;
  for (int axis = 0; axis < out.rank; ++axis) {
    const int64_t extent = out.dims[axis];
    if (extent == 1) continue;
    const int last = walk.rank - 1;
    if (last >= 0 && walk.strides[0][last] == a[axis] * extent && walk.strides[1][last] == b[axis] * extent) {
      walk.dims[last] *= extent;
      walk.strides[0][last] = a[axis];
      walk.strides[1][last] = b[axis];
      continue;
    }
    walk.dims[walk.rank] = extent;
    walk.strides[0][walk.rank] = a[axis];
    walk.strides[1][walk.rank] = b[axis];
    ++walk.rank;
  }
  if (walk.rank == 0) walk.dims[walk.rank++] = 1;
  return walk;
}

// Calls row(offsets of the two inputs) for every row of the walk, in order.
template <typename Row>
void ForEachRow(Poll poll, const Walk& walk, Row row) {
  std::array<int64_t, 2> offsets{};
  std::array<int64_t, kMaxRank> index{};
  for (;;) {
    if (poll.is_stopped()) return;
    row(offsets);
    int axis = walk.rank - 2;
    for (; axis >= 0; --axis) {
      for (size_t i = 0; i < 2; ++i) offsets[i] += walk.strides[i][axis];
      if (++index[axis] < walk.dims[axis]) break;
      for (size_t i = 0; i < 2; ++i) offsets[i] -= walk.strides[i][axis] * walk.dims[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

template <typename Number>
void BinaryRows(Poll poll, BinaryOp op, const TensorView& a, const TensorView& b, const TensorView& out,
                const Walk& walk) {
  Block<Number> x, y, z;
  const int64_t row_length = walk.dims[walk.rank - 1];
  const int64_t a_step = walk.strides[0][walk.rank - 1];
  const int64_t b_step = walk.strides[1][walk.rank - 1];
  int64_t to = 0;
  ForEachRow(poll, walk, [&](const std::array<int64_t, 2>& from) {
    ForEachBlock(poll, row_length, [&](int64_t at, int64_t count) {
      Load(a, from[0] + at * a_step, a_step, count, x.data());
      Load(b, from[1] + at * b_step, b_step, count, y.data());
      Compute(op, out.dtype, x.data(), y.data(), z.data(), count);
      Store(out, to, count, z.data());
      to += count;
    });
  });
}

// Loads elements of a matrix, converted to the type in which the product is accumulated.
template <typename Sum>
void LoadFactors(const TensorView& tensor, int64_t offset, int64_t count, Sum* to) {
  using Number = std::conditional_t<std::is_floating_point_v<Sum>, double, int64_t>;
  if constexpr (std::is_same_v<Sum, Number>) {
    Load(tensor, offset, 1, count, to);
  } else {
    Block<Number> numbers;
    Load(tensor, offset, 1, count, numbers.data());
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Sum>(numbers[i]);
  }
}

template <typename Sum>
void StoreSums(const TensorView& tensor, int64_t offset, int64_t count, const Sum* from) {
  using Number = std::conditional_t<std::is_floating_point_v<Sum>, double, int64_t>;
  Block<Number> numbers;
  for (int64_t i = 0; i < count; ++i) numbers[i] = static_cast<Number>(from[i]);
  Store(tensor, offset, count, numbers.data());
}

struct MatrixSizes {
  int64_t m, n, k;
};

// One matrix of a product. A block of one row of the result at a time accumulates a[m, k] * b[k, :] for ascending k.
template <typename Sum>
void MatrixProduct(Poll poll, const TensorView& a, int64_t a_offset, const TensorView& b, int64_t b_offset,
                   const TensorView& c, int64_t c_offset, MatrixSizes sizes) {
  Block<Sum> factors, row, sums;
  const auto* floats =
      std::is_same_v<Sum, float> && b.dtype == DataType::Float(32) ? static_cast<const Sum*>(b.data) : nullptr;
  for (int64_t i = 0; i < sizes.m && !poll.is_stopped(); ++i) {
    ForEachBlock(poll, sizes.n, [&](int64_t column, int64_t columns) {
      sums.fill(0);
      ForEachBlock(poll, sizes.k, [&](int64_t at, int64_t count) {
        LoadFactors(a, a_offset + i * sizes.k + at, count, factors.data());
        for (int64_t l = 0; l < count; ++l) {
          const int64_t from = b_offset + (at + l) * sizes.n + column;
          if (floats == nullptr) LoadFactors(b, from, columns, row.data());
          const Sum* values = floats == nullptr ? row.data() : floats + from;
          for (int64_t j = 0; j < columns; ++j) sums[j] += factors[l] * values[j];
        }
      });
      StoreSums(c, c_offset + i * sizes.n + column, columns, sums.data());
    });
  }
}

}  // namespace

Status Cast(const TensorView& in, const TensorView& out, Poll poll) {
  INGOT_RETURN_IF_ERROR(CheckHost("cast", in));
  INGOT_RETURN_IF_ERROR(CheckResult("cast", out));
  INGOT_RETURN_IF_ERROR(CheckDims("cast", in.shape(), out));
  if (in.dtype == out.dtype) return Reshape(in, out, poll);
  Block<double> floats;
  Block<int64_t> integers;
  const bool is_uint64 = !in.dtype.is_int() && in.dtype.bits == 64;
  const bool rounds_to_float = out.dtype.code == TypeCode::kFloat && out.dtype.bits == 32;
  ForEachBlock(poll, in.num_elements, [&](int64_t at, int64_t count) {
    if (in.dtype.is_floating()) {
      Load(in, at, 1, count, floats.data());
      if (out.dtype.is_floating()) return Store(out, at, count, floats.data());
      for (int64_t i = 0; i < count; ++i) integers[i] = ToInteger(out.dtype, floats[i]);
      return Store(out, at, count, integers.data());
    }
    Load(in, at, 1, count, integers.data());
    if (!out.dtype.is_floating()) return Store(out, at, count, integers.data());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t value = integers[i];
      if (rounds_to_float) {  // at once, not through double
        floats[i] = is_uint64 ? static_cast<float>(static_cast<uint64_t>(value)) : static_cast<float>(value);
      } else {
        floats[i] = is_uint64 ? static_cast<double>(static_cast<uint64_t>(value)) : static_cast<double>(value);
      }
    }
    Store(out, at, count, floats.data());
  });
  return Ended(poll);
}

Status Binary(BinaryOp op, const TensorView& a, const TensorView& b, const TensorView& out, Poll poll) {
  const char* name = NameOf(op);
  INGOT_RETURN_IF_ERROR(CheckHost(name, a));
  INGOT_RETURN_IF_ERROR(CheckHost(name, b));
  INGOT_RETURN_IF_ERROR(CheckResult(name, out));
  INGOT_RETURN_IF_ERROR(CheckSameType(name, a, b));
  INGOT_RETURN_IF_ERROR(CheckSameType(name, a, out));
  if (a.dtype.is_bool()) return Bad(name, "expected numbers, got bool");
  INGOT_ASSIGN_OR_RETURN(const Strides a_strides, BroadcastStrides(name, a, out));
  INGOT_ASSIGN_OR_RETURN(const Strides b_strides, BroadcastStrides(name, b, out));
  for (int axis = 0; axis < out.rank; ++axis) {
    const int a_axis = axis - (out.rank - a.rank);
    const int b_axis = axis - (out.rank - b.rank);
    if ((a_axis < 0 || a.dims[a_axis] != out.dims[axis]) && (b_axis < 0 || b.dims[b_axis] != out.dims[axis])) {
      return Bad(name, {a.TypeToString(), " and ", b.TypeToString(), " do not broadcast to ", out.TypeToString()});
    }
  }
  if (out.num_elements == 0) return Status();
  const Walk walk = JoinAxes(out, a_strides, b_strides);
  if (out.dtype.is_floating()) {
    BinaryRows<double>(poll, op, a, b, out, walk);
  } else {
    BinaryRows<int64_t>(poll, op, a, b, out, walk);
  }
  return Ended(poll);
}

Status Sqrt(const TensorView& in, const TensorView& out, Poll poll) {
  INGOT_RETURN_IF_ERROR(CheckHost("sqrt", in));
  INGOT_RETURN_IF_ERROR(CheckResult("sqrt", out));
  INGOT_RETURN_IF_ERROR(CheckSameType("sqrt", in, out));
  INGOT_RETURN_IF_ERROR(CheckDims("sqrt", in.shape(), out));
  if (!in.dtype.is_floating()) return Bad("sqrt", {"expected floats, got ", in.TypeToString()});
  Block<double> values;
  ForEachBlock(poll, in.num_elements, [&](int64_t at, int64_t count) {
    Load(in, at, 1, count, values.data());
    for (int64_t i = 0; i < count; ++i) values[i] = std::sqrt(values[i]);
    RoundResults(in.dtype, values.data(), count);
    Store(out, at, count, values.data());
  });
  return Ended(poll);
}

Status Negate(const TensorView& in, const TensorView& out, Poll poll) {
  INGOT_RETURN_IF_ERROR(CheckHost("negate", in));
  INGOT_RETURN_IF_ERROR(CheckResult("negate", out));
  INGOT_RETURN_IF_ERROR(CheckSameType("negate", in, out));
  INGOT_RETURN_IF_ERROR(CheckDims("negate", in.shape(), out));
  if (in.dtype.is_bool()) return Bad("negate", "expected numbers, got bool");
  Block<double> floats;
  Block<int64_t> integers;
  ForEachBlock(poll, in.num_elements, [&](int64_t at, int64_t count) {
    if (in.dtype.is_floating()) {
      Load(in, at, 1, count, floats.data());
      for (int64_t i = 0; i < count; ++i) floats[i] = -floats[i];
      return Store(out, at, count, floats.data());
    }
    Load(in, at, 1, count, integers.data());
    for (int64_t i = 0; i < count; ++i) integers[i] = static_cast<int64_t>(0 - static_cast<uint64_t>(integers[i]));
    Store(out, at, count, integers.data());
  });
  return Ended(poll);
}

Status MatMul(const TensorView& a, const TensorView& b, const TensorView& out, Poll poll) {
  INGOT_RETURN_IF_ERROR(CheckHost("matmul", a));
  INGOT_RETURN_IF_ERROR(CheckHost("matmul", b));
  INGOT_RETURN_IF_ERROR(CheckResult("matmul", out));
  INGOT_RETURN_IF_ERROR(CheckSameType("matmul", a, b));
  if (a.dtype.is_bool() || a.dtype.is_floating() != out.dtype.is_floating() || out.dtype.is_bool()) {
    return Bad("matmul", {"no product of ", a.TypeToString(), " and ", b.TypeToString(), " in ", out.dtype.ToString()});
  }
  const int rank = std::max(a.rank, b.rank);
  bool fits = a.rank >= 2 && b.rank >= 2 && out.rank == rank && a.dims[a.rank - 1] == b.dims[b.rank - 2] &&
              out.dims[rank - 2] == a.dims[a.rank - 2] && out.dims[rank - 1] == b.dims[b.rank - 1];
  Walk batches;  // the batch axes, with one row that stands for a whole matrix
  batches.rank = rank - 1;
  for (int axis = 0; fits && axis < rank - 2; ++axis) {
    const int a_axis = axis - (rank - a.rank);
    const int b_axis = axis - (rank - b.rank);
    const int64_t a_extent = a_axis < 0 ? 1 : a.dims[a_axis];
    const int64_t b_extent = b_axis < 0 ? 1 : b.dims[b_axis];
    fits = (a_extent == b_extent || a_extent == 1 || b_extent == 1) &&
           out.dims[axis] == (a_extent == 1 ? b_extent : a_extent);
    batches.dims[axis] = out.dims[axis];
    batches.strides[0][axis] = a_extent == 1 ? 0 : a.strides[a_axis];
    batches.strides[1][axis] = b_extent == 1 ? 0 : b.strides[b_axis];
  }
  if (!fits) {
    return Bad("matmul", {a.TypeToString(), " times ", b.TypeToString(), " is no ", out.TypeToString()});
  }
  if (out.num_elements == 0) return Status();
  const MatrixSizes sizes{out.dims[rank - 2], out.dims[rank - 1], a.dims[a.rank - 1]};
  int64_t to = 0;
  ForEachRow(poll, batches, [&](const std::array<int64_t, 2>& from) {
    if (!out.dtype.is_floating()) {
      MatrixProduct<uint64_t>(poll, a, from[0], b, from[1], out, to, sizes);
    } else if (out.dtype.bits == 64) {
      MatrixProduct<double>(poll, a, from[0], b, from[1], out, to, sizes);
    } else {
      MatrixProduct<float>(poll, a, from[0], b, from[1], out, to, sizes);
    }
    to += sizes.m * sizes.n;
  });
  return Ended(poll);
}

Status Quantize(const TensorView& in, const TensorView& scale, const TensorView& zero_point, int64_t axis,
                const TensorView& out, Poll poll) {
  for (const TensorView* tensor : {&in, &scale, &zero_point}) {
    INGOT_RETURN_IF_ERROR(CheckHost("quantize", *tensor));
  }
  INGOT_RETURN_IF_ERROR(CheckResult("quantize", out));
  INGOT_RETURN_IF_ERROR(CheckDims("quantize", in.shape(), out));
  if (!in.dtype.is_floating() || !out.dtype.is_integral() || scale.dtype != DataType::Float(32) ||
      zero_point.dtype != out.dtype) {
    return Bad("quantize", {"expected a float to an integer by a float32 scale and a zero point of the integer, got ",
                            in.TypeToString(), " to ", out.TypeToString(), " by ", scale.TypeToString(), " and ",
                            zero_point.TypeToString()});
  }
  const bool has_axis = axis >= 0 && axis < in.rank;
  for (const TensorView* tensor : {&scale, &zero_point}) {
    if (tensor->rank == 0 || (has_axis && tensor->rank == 1 && tensor->dims[0] == in.dims[axis])) continue;
    return Bad("quantize", {"expected a scalar or one value per slice of axis ", axis, " of ", in.TypeToString(),
                            ", got ", tensor->TypeToString()});
  }
  int64_t low = 0;
  int64_t high = 0;
  IntegerRange(out.dtype, low, high);
  const int64_t inner = has_axis ? in.strides[axis] : 1;
  const int64_t extent = has_axis ? in.dims[axis] : 1;
  const auto* scales = static_cast<const float*>(scale.data);
  Block<double> floats;
  Block<int64_t> integers;
  ForEachBlock(poll, in.num_elements, [&](int64_t at, int64_t count) {
    Load(in, at, 1, count, floats.data());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t slice = (at + i) / inner % extent;
      int64_t zero = 0;
      Load(zero_point, zero_point.rank == 0 ? 0 : slice, 1, 1, &zero);
      // float32 division like the kernels'; half to even, then exact in double up to 2^53.
      const float quotient = static_cast<float>(floats[i]) / scales[scale.rank == 0 ? 0 : slice];
      const double rounded = std::isnan(quotient) ? 0.0 : static_cast<double>(std::nearbyint(quotient));
      integers[i] = SaturatingTruncate(rounded + static_cast<double>(zero), low, high);
    }
    Store(out, at, count, integers.data());
  });
  return Ended(poll);
}

}  // namespace ingot::host
