// A transformation is a combination by a matrix's row along x of combinations along y; the index of the row is compared
// with constants, and zeros of the matrix cost nothing.
#include "compiler/op/topi/winograd.h"

#include <functional>

#include "compiler/op/infer.h"
#include "compiler/op/topi/transform.h"

namespace ingot::op::topi {
namespace {

// The sum of the row's coefficients times the elements; zero coefficients are left out.
template <size_t n>
PrimExpr Combine(const std::array<double, n>& row, DataType dtype, const std::function<PrimExpr(int64_t)>& element) {
  PrimExpr sum;
  for (size_t i = 0; i < n; ++i) {
    if (row[i] == 0) continue;
    const PrimExpr value = element(static_cast<int64_t>(i));
    const PrimExpr term = row[i] == 1 ? value : value * ir::MakeConst(dtype, row[i]);
    sum = sum == nullptr ? term : sum + term;
  }
  return sum;
}

// The combination by the matrix's row number `index`.
template <size_t n, size_t rows>
PrimExpr CombineByRow(const std::array<std::array<double, n>, rows>& matrix, const PrimExpr& index, DataType dtype,
                      const std::function<PrimExpr(int64_t)>& element) {
  PrimExpr value = Combine(matrix[rows - 1], dtype, element);
  for (size_t r = rows - 1; r-- > 0;) {
    value =
        ir::IfThenElse(ir::Equal(index, ir::Int64(static_cast<int64_t>(r))), Combine(matrix[r], dtype, element), value);
  }
  return value;
}

}  // namespace

PrimExpr WinogradTiles(const PrimExpr& extent) {
  return ir::FloorDiv(extent + (kWinogradTile - 1), ir::Int64(kWinogradTile));
}

te::Tensor WinogradInput(const te::Tensor& data, const std::vector<int64_t>& padding, Shape shape, DataType dtype) {
  std::vector<int64_t> before(5, 0);
  Shape padded_shape = data.shape();
  for (size_t i = 0; i < 2; ++i) {
    before[2 + i] = padding[i];
    padded_shape[2 + i] = SimplifyDim(shape[4 + i] * kWinogradTile + (kWinogradPlaces - kWinogradTile));
  }
  const DataType wide = WideType(data.dtype());
  const te::Tensor padded = Pad(data, before, std::move(padded_shape), ir::MakeConst(data.dtype(), 0), "pad_temp");
  return te::Compute(std::move(shape),
                     [&](const te::Indices& i) {
                       const PrimExpr value = CombineByRow(kWinogradInput, i[2], wide, [&](int64_t x) {
                         return CombineByRow(kWinogradInput, i[1], wide, [&](int64_t y) {
                           return Wide(padded(i[0], i[3], i[4] * kWinogradTile + y, i[5] * kWinogradTile + x, i[6]));
                         });
                       });
                       return ir::Cast(dtype, value);
                     },
                     "winograd_input", {"nn", "ey", "ex", "oo", "ty", "tx", "vv"});
}

te::Tensor WinogradOutput(const te::Tensor& data, Shape shape, DataType dtype) {
  const PrimExpr tile = ir::Int64(kWinogradTile);
  const DataType wide = WideType(data.dtype());
  return te::Compute(std::move(shape),
                     [&](const te::Indices& i) {
                       const PrimExpr value =
                           CombineByRow(kWinogradOutput, ir::FloorMod(i[3], tile), wide, [&](int64_t x) {
                             return CombineByRow(kWinogradOutput, ir::FloorMod(i[2], tile), wide, [&](int64_t y) {
                               return Wide(data(i[0], ir::Int64(y), ir::Int64(x), i[1], ir::FloorDiv(i[2], tile),
                                                ir::FloorDiv(i[3], tile), i[4]));
                             });
                           });
                       return ir::Cast(dtype, value);
                     },
                     "winograd_output", {"nn", "oo", "yy", "xx", "vv"});
}

}  // namespace ingot::op::topi
