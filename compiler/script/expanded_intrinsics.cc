// The expansions, one function each, and their table.
#include "compiler/script/expanded_intrinsics.h"

#include <numbers>

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

using Operands = std::vector<PrimExpr>;

PrimExpr Number(const PrimExpr& like, double value) { return FloatImm(like->dtype, value); }
PrimExpr Apply(Intrinsic op, PrimExpr x) { return CallIntrinsic(op, {std::move(x)}); }
PrimExpr Reinterpreted(DataType dtype, PrimExpr x) {
  return Make<PrimCallNode>(dtype, Intrinsic::kReinterpret, Operands{std::move(x)});
}

// What the body makes of the value, which it may mention often: of operands that are such expansions themselves, copies
// would double with each of them. Numbers and variables are their own names.
template <typename Body>
PrimExpr With(const char* name, PrimExpr value, const Body& body) {
  if (As<PrimVarNode>(value) != nullptr || As<IntImmNode>(value) != nullptr || As<FloatImmNode>(value) != nullptr) {
    return body(value);
  }
  const PrimVar var = MakePrimVar(name, value->dtype);
  return Make<LetNode>(var, std::move(value), body(PrimExpr(var)));
}
// The same of two values.
template <typename Body>
PrimExpr With(const char* name, PrimExpr value, const char* other_name, PrimExpr other, const Body& body) {
  return With(name, std::move(value), [&](const PrimExpr& a) {
    return With(other_name, std::move(other), [&](const PrimExpr& b) { return body(a, b); });
  });
}

// True below zero, for -0, and for a NaN with the sign bit set.
PrimExpr HasSign(const PrimExpr& x) {
  const DataType bits = DataType::Int(x->dtype.bits);
  return Reinterpreted(bits, x) < IntImm(bits, 0);
}

PrimExpr CopySign(const Operands& x) {
  return With("magnitude", Apply(Intrinsic::kFabs, x[0]), [&](const PrimExpr& magnitude) {
    return Select(HasSign(x[1]), magnitude * Number(magnitude, -1.0), magnitude);
  });
}

// The angle of the point (right, up), neither of which is negative. The values are C's if one is 0 or infinite.
PrimExpr AngleInQuadrant(const PrimExpr& up, const PrimExpr& right) {
  const PrimExpr zero = Number(up, 0.0);
  const PrimExpr at_origin = And(Equal(up, zero), Equal(right, zero));
  const PrimExpr far = And(Apply(Intrinsic::kIsInf, up), Apply(Intrinsic::kIsInf, right));
  return Apply(Intrinsic::kAtan, Select(far, Number(up, 1.0), Select(at_origin, zero, up / right)));
}

// The angle of the point (|x|, |y|), mirrored into the quadrant of (x, y).
PrimExpr Atan2(const Operands& operands) {
  return With("y", operands[0], "x", operands[1], [](const PrimExpr& y, const PrimExpr& x) {
    const PrimExpr angle = With("up", Apply(Intrinsic::kFabs, y), "right", Apply(Intrinsic::kFabs, x), AngleInQuadrant);
    return With("angle", angle, [&](const PrimExpr& a) {
      return CopySign({Select(HasSign(x), Number(x, std::numbers::pi) - a, a), y});
    });
  });
}

PrimExpr Hypot(const Operands& x) {
  const auto length = [](const PrimExpr& longer, const PrimExpr& shorter) {
    const PrimExpr is_plain = Or(Equal(longer, Number(longer, 0.0)), Apply(Intrinsic::kIsInf, longer));
    const auto scaled = [&](const PrimExpr& ratio) {
      return longer * Apply(Intrinsic::kSqrt, Number(longer, 1.0) + ratio * ratio);
    };
    return Select(is_plain, longer, With("ratio", shorter / longer, scaled));
  };
  return With(
      "a", Apply(Intrinsic::kFabs, x[0]), "b", Apply(Intrinsic::kFabs, x[1]),
      [&](const PrimExpr& a, const PrimExpr& b) { return With("longer", Max(a, b), "shorter", Min(a, b), length); });
}

// Two steps, so that the power of two itself does not overflow.
PrimExpr LdExp(const Operands& x) {
  return With("exponent", x[1], [&](const PrimExpr& exponent) {
    const PrimExpr floor = Apply(Intrinsic::kFloor, exponent * Number(exponent, 0.5));
    return With("half", floor, [&](const PrimExpr& half) {
      return x[0] * Apply(Intrinsic::kExp2, half) * Apply(Intrinsic::kExp2, exponent - half);
    });
  });
}

// The neighbour of x in the direction of y: the bits of a float are in the order of its magnitude.
PrimExpr NextAfter(const Operands& operands) {
  return With("x", operands[0], "y", operands[1], [](const PrimExpr& x, const PrimExpr& y) {
    const DataType bits = DataType::Int(x->dtype.bits);
    const PrimExpr zero = Number(x, 0.0), pattern = Reinterpreted(bits, x), one = IntImm(bits, 1);
    const PrimExpr is_upwards = x < y;
    const PrimExpr is_away = Equal(is_upwards, x > zero);
    const PrimExpr moved = Reinterpreted(x->dtype, Select(is_away, pattern + one, pattern - one));
    const PrimExpr from_zero = CopySign({Reinterpreted(x->dtype, one), y});
    const PrimExpr is_nan = Or(Apply(Intrinsic::kIsNan, x), Apply(Intrinsic::kIsNan, y));
    return Select(is_nan, x + y, Select(Equal(x, y), y, Select(Equal(x, zero), from_zero, moved)));
  });
}

// The number divided by 2^count, rounded half up; the count may be 0.
PrimExpr RoundedShift(const PrimExpr& number, PrimExpr count) {
  return With("count", std::move(count), [&](const PrimExpr& by) {
    const PrimExpr power = CallIntrinsic(Intrinsic::kShiftLeft, {Int64(1), by});
    const PrimExpr half = CallIntrinsic(Intrinsic::kShiftRight, {power, Int64(1)});
    return CallIntrinsic(Intrinsic::kShiftRight, {number + half, by});
  });
}

// x * y / 2^q, rounded half up, and shifted left by s, or right where s is negative.
PrimExpr QMultiplyShift(const Operands& x) {
  const DataType wide = DataType::Int(64);
  return With("shift", Cast(wide, x[3]), [&](const PrimExpr& s) {
    const PrimExpr zero = Int64(0), left = Max(s, zero), right = Max(zero - s, zero) + Cast(wide, x[2]);
    const PrimExpr product = CallIntrinsic(Intrinsic::kShiftLeft, {Cast(wide, x[0]), left}) * Cast(wide, x[1]);
    return Cast(x[0]->dtype, RoundedShift(product, right));
  });
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

PrimExpr IsFinite(const Operands& operands) {
  return With("x", operands[0],
              [](const PrimExpr& x) { return Not(Or(Apply(Intrinsic::kIsNan, x), Apply(Intrinsic::kIsInf, x))); });
}

PrimExpr Log10(const Operands& x) { return Apply(Intrinsic::kLog, x[0]) * Number(x[0], std::numbers::log10e); }

PrimExpr ShiftedRight(const PrimExpr& value, int count) {
  return CallIntrinsic(Intrinsic::kShiftRight, {value, IntImm(value->dtype, count)});
}

// Adds neighbours: bits, pairs, nibbles. A multiplication then adds all bytes up in the highest one.
PrimExpr PopCount(const Operands& x) {
  const int bits = x[0]->dtype.bits;
  const DataType dtype = DataType::UInt(bits);
  const auto every_byte = [&](int64_t byte) {
    int64_t value = 0;
    for (int i = 0; i < bits; i += 8) value = value * 256 + byte;
    return IntImm(dtype, value);
  };
  const auto neighbours = [&](PrimExpr counts, int shift, int64_t byte) {
    return With("counts", std::move(counts), [&](const PrimExpr& value) {
      const auto masked = [&](const PrimExpr& part) {
        return CallIntrinsic(Intrinsic::kBitwiseAnd, {part, every_byte(byte)});
      };
      return masked(value) + masked(ShiftedRight(value, shift));
    });
  };
  const PrimExpr nibbles = neighbours(neighbours(Cast(dtype, x[0]), 1, 0x55), 2, 0x33);
  const PrimExpr bytes = neighbours(nibbles, 4, 0x0f);
  const PrimExpr sum = bits == 8 ? bytes : bytes * every_byte(0x01);
  return Cast(x[0]->dtype, ShiftedRight(sum, bits - 8));
}

// The bits below the highest one are set, and those that are not are counted.
PrimExpr CountLeadingZeros(const Operands& x) {
  const int bits = x[0]->dtype.bits;
  PrimExpr value = Cast(DataType::UInt(bits), x[0]);
  for (int shift = 1; shift < bits; shift *= 2) {
    value = With("bits", value, [&](const PrimExpr& upper) {
      return CallIntrinsic(Intrinsic::kBitwiseOr, {upper, ShiftedRight(upper, shift)});
    });
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
