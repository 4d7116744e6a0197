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

constexpr ExpandedIntrinsic kExpanded[] = {
    {"atan2", 2, false, Atan2},       {"copysign", 2, false, CopySign}, {"exp10", 1, false, Exp10},
    {"isfinite", 1, false, IsFinite}, {"log10", 1, false, Log10},       {"popcount", 1, true, PopCount},
};

}  // namespace

std::span<const ExpandedIntrinsic> ExpandedIntrinsics() { return kExpanded; }

}  // namespace ingot::script
