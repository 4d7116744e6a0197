// The bits of a float, sign apart, grow with its magnitude: those of numbers below 0 are turned over.
#include "compiler/op/element_order.h"

#include <vector>

#include "compiler/op/statements.h"

namespace ingot::op {
namespace {

using ir::Intrinsic;

PrimExpr Reinterpreted(DataType dtype, const PrimExpr& x) {
  return ir::Make<ir::PrimCallNode>(dtype, Intrinsic::kReinterpret, std::vector<PrimExpr>{x});
}

PrimExpr Xor(const PrimExpr& a, const PrimExpr& b) { return ir::CallIntrinsic(Intrinsic::kBitwiseXor, {a, b}); }

}  // namespace

DataType OrderDataType(DataType dtype) {
  const bool is_narrow = dtype.bits < 32 || (dtype.bits == 32 && !dtype.is_uint());
  return DataType::Int(is_narrow ? 32 : 64);
}

PrimExpr ComparableOf(const PrimExpr& element) {
  const DataType dtype = element->dtype;
  if (dtype.is_bool()) return ir::Cast(DataType::Int(32), element);
  return dtype.is_floating() && dtype.bits < 32 ? ir::Cast(DataType::Float(32), element) : element;
}

PrimExpr OrderOf(const PrimExpr& element) {
  const PrimExpr x = ComparableOf(element);
  const DataType dtype = x->dtype, order = OrderDataType(dtype);
  if (!dtype.is_floating()) {
    if (dtype.is_uint() && dtype.bits == 64) return Xor(Reinterpreted(order, x), ir::MinValue(order));
    return ir::Cast(order, x);
  }
  const PrimExpr zero = ir::MakeConst(dtype, 0), greatest = ir::MaxValue(order);
  const PrimExpr bits = Reinterpreted(order, ir::Select(ir::Equal(x, zero), zero, x));
  const PrimExpr signs = ir::CallIntrinsic(Intrinsic::kShiftRight, {bits, ir::IntImm(order, order.bits - 1)});
  const PrimExpr flips = ir::CallIntrinsic(Intrinsic::kBitwiseAnd, {signs, greatest});
  return ir::Select(IsNan(x), greatest, Xor(bits, flips));
}

}  // namespace ingot::op
