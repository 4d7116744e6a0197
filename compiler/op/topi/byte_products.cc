// Words of bytes, and products of them.
#include "compiler/op/topi/byte_products.h"

#include <utility>

#include "compiler/op/broadcast.h"
#include "compiler/op/infer.h"
#include "compiler/op/topi/nn.h"
#include "compiler/op/topi/reduction.h"

namespace ingot::op::topi {
namespace {

const DataType kInt32 = DataType::Int(32);

// x minus its zero point, which broadcasts to it.
te::Tensor WithoutZeroPoint(const te::Tensor& x, const te::Tensor& zero) {
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        te::Indices at;
        for (size_t d = 0; d < zero.shape().size(); ++d) {
          const size_t own = i.size() - zero.shape().size() + d;
          at.push_back(BroadcastIndex(zero.shape()[d], x.shape()[own], i[own]));
        }
        return ir::Cast(kInt32, x(i)) - ir::Cast(kInt32, zero(at));
      },
      "centred");
}

}  // namespace

te::Tensor PackBytes(const te::Tensor& x, bool flip) {
  Shape shape = x.shape();
  const int bits = x.dtype().bits;
  const int64_t per_word = ElementsPerWord(x.dtype());
  shape.back() = SimplifyDim(ir::FloorDiv(shape.back(), ir::Int64(per_word)));
  return te::Compute(
      shape,
      [&](const te::Indices& i) {
        PrimExpr word;
        for (int64_t k = 0; k < per_word; ++k) {
          te::Indices at = i;
          at.back() = i.back() * per_word + k;
          // A signed byte is widened through its unsigned form, so that its sign does not reach the bytes above.
          PrimExpr byte = ir::Cast(kInt32, ir::Cast(DataType::UInt(bits), x(at)));
          if (flip) byte = ir::CallIntrinsic(ir::Intrinsic::kBitwiseXor, {byte, ir::MakeConst(kInt32, 128)});
          if (k > 0) {
            byte = ir::CallIntrinsic(ir::Intrinsic::kShiftLeft,
                                     {byte, ir::MakeConst(kInt32, static_cast<double>(bits * k))});
          }
          word = word == nullptr ? byte : ir::CallIntrinsic(ir::Intrinsic::kBitwiseOr, {word, byte});
        }
        return word;
      },
      "packed_bytes");
}

te::Tensor MatmulBytes(const te::Tensor& x, const te::Tensor& panels, int64_t units) {
  Shape shape = x.shape();
  shape.back() = ir::Int64(units);
  const ir::IterVar k = te::ReduceAxis(x.shape().back(), "k");
  const PrimExpr& columns = panels.shape()[2];
  return te::Compute(
      shape,
      [&](const te::Indices& out) {
        te::Indices left = out;
        left.back() = k->var;
        const PrimExpr weight = panels(ir::FloorDiv(out.back(), columns), k->var, ir::FloorMod(out.back(), columns));
        return ReduceOver(Reducer::kSum, ir::CallIntrinsic(ir::Intrinsic::kDotBytes, {x(left), weight}), {k});
      },
      "matmul");
}

bool IsPanelProduct(const ir::PrimCallNode& dot) {
  const auto* panels = ir::As<ir::BufferLoadNode>(dot.args[1]);
  if (panels == nullptr || panels->indices.size() != 3) return false;
  const auto is = [](const PrimExpr& index, ir::BinaryOp op) {
    const auto* binary = ir::As<ir::BinaryNode>(index);
    return binary != nullptr && binary->op == op;
  };
  return is(panels->indices[0], ir::BinaryOp::kFloorDiv) && is(panels->indices[2], ir::BinaryOp::kFloorMod);
}

PrimExpr PairProduct(const PrimExpr& low, const PrimExpr& high, const PrimExpr& word) {
  const PrimExpr half = ir::MakeConst(word->dtype, 16);
  const PrimExpr upper = ir::CallIntrinsic(ir::Intrinsic::kShiftRight, {word, half});
  const PrimExpr lower =
      ir::CallIntrinsic(ir::Intrinsic::kShiftRight, {ir::CallIntrinsic(ir::Intrinsic::kShiftLeft, {word, half}), half});
  return ir::Cast(word->dtype, low) * lower + ir::Cast(word->dtype, high) * upper;
}

bool IsPairProduct(const PrimExpr& expr) {
  const auto is_shift = [](const PrimExpr& x) {
    const auto* call = ir::As<ir::PrimCallNode>(x);
    return call != nullptr && call->op == ir::Intrinsic::kShiftRight && ir::IsConstInt(call->args[1], 16);
  };
  const auto is_product = [&](const PrimExpr& x) {
    const auto* product = ir::As<ir::BinaryNode>(x);
    return product != nullptr && product->op == ir::BinaryOp::kMul && (is_shift(product->a) || is_shift(product->b));
  };
  const auto* sum = ir::As<ir::BinaryNode>(expr);
  return sum != nullptr && sum->op == ir::BinaryOp::kAdd && is_product(sum->a) && is_product(sum->b);
}

PrimExpr WordOfBytes(const std::vector<PrimExpr>& bytes) {
  PrimExpr word;
  for (size_t k = 0; k < bytes.size(); ++k) {
    const PrimExpr byte = ir::Cast(kInt32, bytes[k]);
    if (k == 0) {
      word = byte;
      continue;
    }
    const PrimExpr shifted =
        ir::CallIntrinsic(ir::Intrinsic::kShiftLeft, {byte, ir::MakeConst(kInt32, static_cast<double>(8 * k))});
    word = ir::CallIntrinsic(ir::Intrinsic::kBitwiseOr, {word, shifted});
  }
  return word;
}

te::Tensor MatmulInteger(const te::Tensor& a, const te::Tensor& b, const te::Tensor& a_zero, const te::Tensor& b_zero) {
  return Matmul(WithoutZeroPoint(a, a_zero), WithoutZeroPoint(b, b_zero), kInt32);
}

}  // namespace ingot::op::topi
