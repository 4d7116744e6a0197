// The expansions, one function each, and their table.
#include "compiler/script/expanded_intrinsics.h"

#include <numbers>

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

using Operands = std::vector<PrimExpr>;

PrimExpr Number(const PrimExpr& like, double value) { return FloatImm(like->dtype, value); }
PrimExpr Apply(Intrinsic op, PrimExpr x) { return CallIntrinsic(op, {std::move(x)}); }

// True below zero, for -0, and for a NaN with the sign bit set.
PrimExpr HasSign(const PrimExpr& x) {
  const DataType bits = DataType::Int(x->dtype.bits);
  return Make<PrimCallNode>(bits, Intrinsic::kReinterpret, Operands{x}) < IntImm(bits, 0);
}

PrimExpr CopySign(const Operands& x) {
  const PrimExpr magnitude = Apply(Intrinsic::kFabs, x[0]);
  return Select(HasSign(x[1]), magnitude * Number(x[0], -1.0), magnitude);
}

// The angle of the point (|x|, |y|), mirrored into the quadrant of (x, y); the values are C's if a coordinate is 0 or
// infinite.
PrimExpr Atan2(const Operands& x) {
  const PrimExpr up = Apply(Intrinsic::kFabs, x[0]), right = Apply(Intrinsic::kFabs, x[1]), zero = Number(x[0], 0.0);
  const PrimExpr at_origin = And(Equal(up, zero), Equal(right, zero));
  const PrimExpr far = And(Apply(Intrinsic::kIsInf, up), Apply(Intrinsic::kIsInf, right));
  const PrimExpr slope = Select(far, Number(x[0], 1.0), Select(at_origin, zero, up / right));
  const PrimExpr angle = Apply(Intrinsic::kAtan, slope);
  return CopySign({Select(HasSign(x[1]), Number(x[0], std::numbers::pi) - angle, angle), x[0]});
}

PrimExpr Hypot(const Operands& x) {
  const PrimExpr a = Apply(Intrinsic::kFabs, x[0]), b = Apply(Intrinsic::kFabs, x[1]);
  const PrimExpr longer = Max(a, b), ratio = Min(a, b) / longer;
  const PrimExpr is_plain = Or(Equal(longer, Number(a, 0.0)), Apply(Intrinsic::kIsInf, longer));
  return Select(is_plain, longer, longer * Apply(Intrinsic::kSqrt, Number(a, 1.0) + ratio * ratio));
}

// Two steps, so that the power of two itself does not overflow.
PrimExpr LdExp(const Operands& x) {
  const PrimExpr half = Apply(Intrinsic::kFloor, x[1] * Number(x[1], 0.5));
  return x[0] * Apply(Intrinsic::kExp2, half) * Apply(Intrinsic::kExp2, x[1] - half);
}

// The neighbour of x in the direction of y: the bits of a float are in the order of its magnitude.
PrimExpr NextAfter(const Operands& x) {
  const DataType bits = DataType::Int(x[0]->dtype.bits);
  const PrimExpr zero = Number(x[0], 0.0);
  const auto as = [](DataType dtype, PrimExpr value) -> PrimExpr {
    return Make<PrimCallNode>(dtype, Intrinsic::kReinterpret, Operands{std::move(value)});
  };
  const PrimExpr pattern = as(bits, x[0]), one = IntImm(bits, 1);
  const PrimExpr away = Equal(x[0]<x[1], x[0]> zero);
  const PrimExpr moved = as(x[0]->dtype, Select(away, pattern + one, pattern - one));
  const PrimExpr from_zero = CopySign({as(x[0]->dtype, one), x[1]});
  const PrimExpr is_nan = Or(Apply(Intrinsic::kIsNan, x[0]), Apply(Intrinsic::kIsNan, x[1]));
  return Select(is_nan, x[0] + x[1], Select(Equal(x[0], x[1]), x[1], Select(Equal(x[0], zero), from_zero, moved)));
}

// The number divided by 2^count, rounded half up; the count may be 0.
PrimExpr RoundedShift(const PrimExpr& number, const PrimExpr& count) {
  const PrimExpr power = CallIntrinsic(Intrinsic::kShiftLeft, {Int64(1), count});
  const PrimExpr half = CallIntrinsic(Intrinsic::kShiftRight, {power, Int64(1)});
  return CallIntrinsic(Intrinsic::kShiftRight, {number + half, count});
}

// x * y / 2^q, rounded half up, and shifted left by s, or right where s is negative.
PrimExpr QMultiplyShift(const Operands& x) {
  const DataType wide = DataType::Int(64);
  const PrimExpr zero = Int64(0), s = Cast(wide, x[3]);
  const PrimExpr left = Max(s, zero), right = Max(zero - s, zero) + Cast(wide, x[2]);
  const PrimExpr product = CallIntrinsic(Intrinsic::kShiftLeft, {Cast(wide, x[0]), left}) * Cast(wide, x[1]);
  return Cast(x[0]->dtype, RoundedShift(product, right));
}

// The same with the shifts to the left and to the right apart, and whether each is wanted.
PrimExpr QMultiplyShiftPerAxis(const Operands& x) {
  const DataType wide = DataType::Int(64);
  const PrimExpr zero = Int64(0), value = Cast(wide, x[0]);
  const PrimExpr left = Select(Cast(DataType::Bool(), x[5]), Cast(wide, x[2]), zero);
  const PrimExpr right = Select(Cast(DataType::Bool(), x[6]), Cast(wide, x[3]), zero) + Cast(wide, x[4]);
  const PrimExpr product = CallIntrinsic(Intrinsic::kShiftLeft, {value, left}) * Cast(wide, x[1]);
  return Cast(x[0]->dtype, RoundedShift(product, right));
}

PrimExpr Exp10(const Operands& x) { return CallIntrinsic(Intrinsic::kPow, {Number(x[0], 10.0), x[0]}); }

PrimExpr IsFinite(const Operands& x) { return Not(Or(Apply(Intrinsic::kIsNan, x[0]), Apply(Intrinsic::kIsInf, x[0]))); }

PrimExpr Log10(const Operands& x) { return Apply(Intrinsic::kLog, x[0]) * Number(x[0], std::numbers::log10e); }

// Adds neighbours: bits, pairs, nibbles. A multiplication then adds all bytes up in the highest one.
PrimExpr PopCount(const Operands& x) {
  const int bits = x[0]->dtype.bits;
  const DataType dtype = DataType::UInt(bits);
  const auto every_byte = [&](int64_t byte) {
    int64_t value = 0;
    for (int i = 0; i < bits; i += 8) value = value * 256 + byte;
    return IntImm(dtype, value);
  };
  const auto masked = [&](const PrimExpr& value, int shift, int64_t byte) {
    const PrimExpr shifted = shift == 0 ? value : CallIntrinsic(Intrinsic::kShiftRight, {value, IntImm(dtype, shift)});
    return CallIntrinsic(Intrinsic::kBitwiseAnd, {shifted, every_byte(byte)});
  };
  const PrimExpr value = Cast(dtype, x[0]);
  const PrimExpr pairs = masked(value, 0, 0x55) + masked(value, 1, 0x55);
  const PrimExpr nibbles = masked(pairs, 0, 0x33) + masked(pairs, 2, 0x33);
  const PrimExpr bytes = masked(nibbles, 0, 0x0f) + masked(nibbles, 4, 0x0f);
  const PrimExpr sum = bits == 8 ? bytes : bytes * every_byte(0x01);
  return Cast(x[0]->dtype, CallIntrinsic(Intrinsic::kShiftRight, {sum, IntImm(dtype, bits - 8)}));
}

// The bits below the highest one are set, and those that are not are counted.
PrimExpr CountLeadingZeros(const Operands& x) {
  const int bits = x[0]->dtype.bits;
  const DataType dtype = DataType::UInt(bits);
  PrimExpr value = Cast(dtype, x[0]);
  for (int shift = 1; shift < bits; shift *= 2) {
    const PrimExpr shifted = CallIntrinsic(Intrinsic::kShiftRight, {value, IntImm(dtype, shift)});
    value = CallIntrinsic(Intrinsic::kBitwiseOr, {value, shifted});
  }
  return Cast(x[0]->dtype, PopCount({CallIntrinsic(Intrinsic::kBitwiseNot, {value})}));
}

constexpr ExpandedIntrinsic kExpanded[] = {
    {"atan2", 2, false, Atan2},
    {"clz", 1, true, CountLeadingZeros},
    {"copysign", 2, false, CopySign},
    {"exp10", 1, false, Exp10},
    {"hypot", 2, false, Hypot},
    {"isfinite", 1, false, IsFinite},
    {"ldexp", 2, false, LdExp},
    {"log10", 1, false, Log10},
    {"nextafter", 2, false, NextAfter},
    {"popcount", 1, true, PopCount},
    {"q_multiply_shift", 4, true, QMultiplyShift},
    {"q_multiply_shift_per_axis", 7, true, QMultiplyShiftPerAxis},
};

}  // namespace

std::span<const ExpandedIntrinsic> ExpandedIntrinsics() { return kExpanded; }

}  // namespace ingot::script
