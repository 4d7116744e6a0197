// Scalar and vector expressions: one ExprCode class per kind of node, and the translation to them. Arithmetic wraps and
// rounds as compiled kernels do.
#include <cmath>
#include <limits>

#include "compiler/interp/code.h"
#include "compiler/ir/float_format.h"
#include "compiler/ir/int_math.h"

namespace ingot::interp {
namespace {

// The exact remainder, with the sign of the divisor.
double FloorModulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

using ir::BinaryOp;
using ir::Intrinsic;

class ConstantCode : public ExprCode {
 public:
  explicit ConstantCode(Cell value) : value_(value) {}
  Cell Eval(Machine&, int) const override { return value_; }

 private:
  Cell value_;
};

class VarCode : public ExprCode {
 public:
  explicit VarCode(int slot) : slot_(slot) {}
  Cell Eval(Machine& machine, int lane) const override { return machine.lane_slot(slot_, lane); }

 private:
  int slot_;
};

// Operands in double are exact; one rounding to the dtype makes +, -, *, / and sqrt correctly rounded in that dtype,
// since double has more than twice the digits of every smaller format (Figueroa 1995).
class FloatBinaryCode : public ExprCode {
 public:
  FloatBinaryCode(BinaryOp op, DataType dtype, ExprPtr a, ExprPtr b)
      : op_(op), dtype_(dtype), a_(std::move(a)), b_(std::move(b)) {}
  Cell Eval(Machine& machine, int lane) const override {
    const double a = a_->Eval(machine, lane).f;
    const double b = b_->Eval(machine, lane).f;
    switch (op_) {
      case BinaryOp::kAdd:
        return Rounded(a + b);
      case BinaryOp::kSub:
        return Rounded(a - b);
      case BinaryOp::kMul:
        return Rounded(a * b);
      case BinaryOp::kDiv:
        return Rounded(a / b);
      case BinaryOp::kTruncMod:
        return Rounded(std::fmod(a, b));
      case BinaryOp::kFloorDiv:
        return Rounded(std::floor(a / b));
      case BinaryOp::kFloorMod:
        return Rounded(FloorModulo(a, b));
      // A NaN on either side gives NaN, as in the operator table.
      case BinaryOp::kMin:
        return FloatCell(std::isnan(a) || a < b ? a : b);
      case BinaryOp::kMax:
        return FloatCell(std::isnan(a) || a > b ? a : b);
      case BinaryOp::kEQ:
        return IntCell(a == b);
      case BinaryOp::kNE:
        return IntCell(a != b);
      case BinaryOp::kLT:
        return IntCell(a < b);
      case BinaryOp::kLE:
        return IntCell(a <= b);
      case BinaryOp::kGT:
        return IntCell(a > b);
      case BinaryOp::kGE:
        return IntCell(a >= b);
      case BinaryOp::kAnd:
      case BinaryOp::kOr:
        break;
    }
    INGOT_UNREACHABLE("a logical operation on floats");
  }

 private:
  Cell Rounded(double value) const { return FloatCell(ir::RoundToFloat(dtype_, value)); }
  BinaryOp op_;
  DataType dtype_;  // of the operands
  ExprPtr a_, b_;
};

// Sums, differences and products wrap around, as in the compiled code.
class IntBinaryCode : public ExprCode {
 public:
  IntBinaryCode(BinaryOp op, DataType dtype, ExprPtr a, ExprPtr b)
      : op_(op), dtype_(dtype), is_uint64_(dtype.is_uint() && dtype.bits == 64), a_(std::move(a)), b_(std::move(b)) {}
  Cell Eval(Machine& machine, int lane) const override {
    const int64_t a = a_->Eval(machine, lane).i;
    const int64_t b = b_->Eval(machine, lane).i;
    const auto ua = static_cast<uint64_t>(a);
    const auto ub = static_cast<uint64_t>(b);
    const bool less = is_uint64_ ? ua < ub : a < b;
    switch (op_) {
      case BinaryOp::kAdd:
        return Wrapped(ua + ub);
      case BinaryOp::kSub:
        return Wrapped(ua - ub);
      case BinaryOp::kMul:
        return Wrapped(ua * ub);
      case BinaryOp::kDiv:
      case BinaryOp::kTruncMod:
      case BinaryOp::kFloorDiv:
      case BinaryOp::kFloorMod:
        return Divide(machine, a, b);
      case BinaryOp::kMin:
        return IntCell(less ? a : b);
      case BinaryOp::kMax:
        return IntCell(less ? b : a);
      case BinaryOp::kEQ:
        return IntCell(a == b);
      case BinaryOp::kNE:
        return IntCell(a != b);
      case BinaryOp::kLT:
        return IntCell(less);
      case BinaryOp::kLE:
        return IntCell(less || a == b);
      case BinaryOp::kGT:
        return IntCell(!less && a != b);
      case BinaryOp::kGE:
        return IntCell(!less);
      case BinaryOp::kAnd:
        return IntCell(a != 0 && b != 0);
      case BinaryOp::kOr:
        return IntCell(a != 0 || b != 0);
    }
    INGOT_UNREACHABLE("BinaryOp");
  }

 private:
  Cell Wrapped(uint64_t value) const { return IntCell(ir::WrapInt(dtype_, static_cast<int64_t>(value))); }
  Cell Divide(Machine& machine, int64_t a, int64_t b) const {
    if (b == 0) {
      machine.Fail("an integer division of " + std::to_string(a) + " by zero");
      return IntCell(0);
    }
    if (is_uint64_) {
      const auto ua = static_cast<uint64_t>(a);
      const auto ub = static_cast<uint64_t>(b);
      const bool is_quotient = op_ == BinaryOp::kDiv || op_ == BinaryOp::kFloorDiv;
      return IntCell(static_cast<int64_t>(is_quotient ? ua / ub : ua % ub));
    }
    std::optional<int64_t> result;
    if (op_ == BinaryOp::kDiv) result = ir::CheckedTruncDiv(a, b);
    if (op_ == BinaryOp::kTruncMod) result = ir::CheckedTruncMod(a, b);
    if (op_ == BinaryOp::kFloorDiv) result = ir::CheckedFloorDiv(a, b);
    if (op_ == BinaryOp::kFloorMod) result = ir::CheckedFloorMod(a, b);
    if (!result.has_value()) machine.Fail("an integer division that overflows");
    return Wrapped(static_cast<uint64_t>(result.value_or(0)));
  }
  BinaryOp op_;
  DataType dtype_;  // of the operands
  bool is_uint64_;
  ExprPtr a_, b_;
};

class NotCode : public ExprCode {
 public:
  explicit NotCode(ExprPtr a) : a_(std::move(a)) {}
  Cell Eval(Machine& machine, int lane) const override { return IntCell(a_->Eval(machine, lane).i == 0); }

 private:
  ExprPtr a_;
};

class ChooseCode : public ExprCode {
 public:
  ChooseCode(bool lazy, bool scalar_condition, ExprPtr c, ExprPtr t, ExprPtr f)
      : lazy_(lazy), scalar_condition_(scalar_condition), c_(std::move(c)), t_(std::move(t)), f_(std::move(f)) {}
  Cell Eval(Machine& machine, int lane) const override {
    const bool condition = c_->Eval(machine, scalar_condition_ ? 0 : lane).i != 0;
    if (lazy_) return (condition ? t_ : f_)->Eval(machine, lane);
    const Cell t = t_->Eval(machine, lane);
    const Cell f = f_->Eval(machine, lane);
    return condition ? t : f;
  }

 private:
  bool lazy_, scalar_condition_;
  ExprPtr c_, t_, f_;
};

// Integers wrap. Floats become integers by rounding towards zero, clamped to the integer's range; NaN becomes 0.
Cell CastCell(DataType from, DataType to, Cell value) {
  const bool from_uint64 = from.is_uint() && from.bits == 64;
  if (to.is_floating()) {
    if (from.is_floating()) return FloatCell(ir::RoundToFloat(to, value.f));
    // Integers are converted to float32 directly, which rounds once; through double it could round twice.
    if (to.code == TypeCode::kFloat && to.bits == 32) {
      return FloatCell(from_uint64 ? static_cast<float>(static_cast<uint64_t>(value.i)) : static_cast<float>(value.i));
    }
    return FloatCell(ir::RoundToFloat(
        to, from_uint64 ? static_cast<double>(static_cast<uint64_t>(value.i)) : static_cast<double>(value.i)));
  }
  if (!from.is_floating()) return IntCell(ir::WrapInt(to, value.i));
  if (to.is_bool()) return IntCell(value.f != 0);
  if (std::isnan(value.f)) return IntCell(0);
  const double whole = std::trunc(value.f);
  const double limit = std::ldexp(1.0, to.is_int() ? to.bits - 1 : to.bits);
  const double low = to.is_int() ? -limit : 0;
  if (whole < low) return IntCell(to.is_int() ? *ir::AsConstInt(ir::MinValue(to)) : 0);
  if (whole >= limit) return IntCell(*ir::AsConstInt(ir::MaxValue(to)));
  return IntCell(whole >= 0 ? static_cast<int64_t>(static_cast<uint64_t>(whole)) : static_cast<int64_t>(whole));
}

class CastCode : public ExprCode {
 public:
  CastCode(DataType from, DataType to, ExprPtr value) : from_(from), to_(to), value_(std::move(value)) {}
  Cell Eval(Machine& machine, int lane) const override { return CastCell(from_, to_, value_->Eval(machine, lane)); }

 private:
  DataType from_, to_;
  ExprPtr value_;
};

class ReinterpretCode : public ExprCode {
 public:
  ReinterpretCode(DataType from, DataType to, ExprPtr value) : from_(from), to_(to), value_(std::move(value)) {}
  Cell Eval(Machine& machine, int lane) const override {
    return CellFromBits(to_, CellToBits(from_, value_->Eval(machine, lane)));
  }

 private:
  DataType from_, to_;
  ExprPtr value_;
};

class LoadCode : public ExprCode {
 public:
  LoadCode(ir::Buffer buffer, int view, std::vector<ExprPtr> indices)
      : buffer_(std::move(buffer)), view_(view), indices_(std::move(indices)) {}
  Cell Eval(Machine& machine, int lane) const override {
    int64_t few[8];
    std::vector<int64_t> many;
    int64_t* values = few;
    if (indices_.size() > 8) {
      many.resize(indices_.size());
      values = many.data();
    }
    for (size_t d = 0; d < indices_.size(); ++d) {
      values[d] = indices_[d]->Eval(machine, d + 1 == indices_.size() ? lane : 0).i;
    }
    if (machine.failed) return IntCell(0);
    return machine.Read(*buffer_, view_, {values, indices_.size()});
  }

 private:
  ir::Buffer buffer_;
  int view_;
  std::vector<ExprPtr> indices_;
};

class RampCode : public ExprCode {
 public:
  RampCode(DataType dtype, ExprPtr base, ExprPtr stride)
      : dtype_(dtype), base_(std::move(base)), stride_(std::move(stride)) {}
  Cell Eval(Machine& machine, int lane) const override {
    if (dtype_.is_floating()) {
      const double step = ir::RoundToFloat(dtype_, stride_->Eval(machine, 0).f * lane);
      return FloatCell(ir::RoundToFloat(dtype_, base_->Eval(machine, 0).f + step));
    }
    const auto base = static_cast<uint64_t>(base_->Eval(machine, 0).i);
    const auto stride = static_cast<uint64_t>(stride_->Eval(machine, 0).i);
    return IntCell(ir::WrapInt(dtype_, static_cast<int64_t>(base + stride * static_cast<uint64_t>(lane))));
  }

 private:
  DataType dtype_;
  ExprPtr base_, stride_;
};

class BroadcastCode : public ExprCode {
 public:
  explicit BroadcastCode(ExprPtr value) : value_(std::move(value)) {}
  Cell Eval(Machine& machine, int) const override { return value_->Eval(machine, 0); }

 private:
  ExprPtr value_;
};

class ShuffleCode : public ExprCode {
 public:
  struct Source {
    size_t vector;
    int lane;
  };
  ShuffleCode(std::vector<ExprPtr> vectors, std::vector<Source> sources)
      : vectors_(std::move(vectors)), sources_(std::move(sources)) {}
  Cell Eval(Machine& machine, int lane) const override {
    const Source& source = sources_[static_cast<size_t>(lane)];
    return vectors_[source.vector]->Eval(machine, source.lane);
  }

 private:
  std::vector<ExprPtr> vectors_;
  std::vector<Source> sources_;
};

// A scalar is evaluated in front of the body. Of a vector those lanes are that the body asks for, once each, so that
// lets in the values of lets cost no power of the lanes; whether a lane is there stands behind the lanes.
class LetCode : public ExprCode {
 public:
  LetCode(int slot, int lanes, ExprPtr value, ExprPtr body)
      : slot_(slot), lanes_(lanes), value_(std::move(value)), body_(std::move(body)) {}
  Cell Eval(Machine& machine, int lane) const override {
    if (lanes_ == 1) {
      machine.lane_slot(slot_, 0) = value_->Eval(machine, 0);
    } else {
      for (int l = 0; l < lanes_; ++l) machine.lane_slot(slot_, lanes_ + l) = IntCell(0);
    }
    return body_->Eval(machine, lane);
  }

 private:
  int slot_, lanes_;
  ExprPtr value_, body_;
};

class LetLaneCode : public ExprCode {
 public:
  LetLaneCode(int slot, int lanes, const ExprCode* value) : slot_(slot), lanes_(lanes), value_(value) {}
  Cell Eval(Machine& machine, int lane) const override {
    if (machine.lane_slot(slot_, lanes_ + lane).i == 0) {
      const Cell value = value_->Eval(machine, lane);
      machine.lane_slot(slot_, lane) = value;
      machine.lane_slot(slot_, lanes_ + lane) = IntCell(1);
    }
    return machine.lane_slot(slot_, lane);
  }

 private:
  int slot_, lanes_;
  const ExprCode* value_;  // the let's
};

// Halves are combined until one lane is left.
class VectorReduceCode : public ExprCode {
 public:
  VectorReduceCode(BinaryOp op, DataType dtype, ExprPtr vector) : op_(op), dtype_(dtype), vector_(std::move(vector)) {}
  Cell Eval(Machine& machine, int) const override {
    std::vector<Cell> lanes(dtype_.lanes);
    for (size_t l = 0; l < lanes.size(); ++l) lanes[l] = vector_->Eval(machine, static_cast<int>(l));
    for (size_t n = lanes.size(); n > 1; n = (n + 1) / 2) {
      const size_t half = (n + 1) / 2;
      for (size_t l = 0; l + half < n; ++l) lanes[l] = Combine(machine, lanes[l], lanes[l + half]);
    }
    return lanes[0];
  }

 private:
  Cell Combine(Machine& machine, Cell a, Cell b) const {
    const DataType scalar = dtype_.element_of();
    auto x = std::make_unique<ConstantCode>(a);
    auto y = std::make_unique<ConstantCode>(b);
    if (scalar.is_floating()) return FloatBinaryCode(op_, scalar, std::move(x), std::move(y)).Eval(machine, 0);
    return IntBinaryCode(op_, scalar, std::move(x), std::move(y)).Eval(machine, 0);
  }
  BinaryOp op_;
  DataType dtype_;  // of the vector
  ExprPtr vector_;
};

double FloatFunction(Intrinsic op, double x, double y) {
  switch (op) {
    case Intrinsic::kExp:
      return std::exp(x);
    case Intrinsic::kExp2:
      return std::exp2(x);
    case Intrinsic::kLog:
      return std::log(x);
    case Intrinsic::kLog2:
      return std::log2(x);
    case Intrinsic::kLog1p:
      return std::log1p(x);
    case Intrinsic::kSqrt:
      return std::sqrt(x);
    case Intrinsic::kRsqrt:
      return 1 / std::sqrt(x);
    case Intrinsic::kSin:
      return std::sin(x);
    case Intrinsic::kCos:
      return std::cos(x);
    case Intrinsic::kTan:
      return std::tan(x);
    case Intrinsic::kTanh:
      return std::tanh(x);
    case Intrinsic::kAsin:
      return std::asin(x);
    case Intrinsic::kAcos:
      return std::acos(x);
    case Intrinsic::kAtan:
      return std::atan(x);
    case Intrinsic::kSinh:
      return std::sinh(x);
    case Intrinsic::kCosh:
      return std::cosh(x);
    case Intrinsic::kAsinh:
      return std::asinh(x);
    case Intrinsic::kAcosh:
      return std::acosh(x);
    case Intrinsic::kAtanh:
      return std::atanh(x);
    case Intrinsic::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Intrinsic::kErf:
      return std::erf(x);
    case Intrinsic::kPow:
      return std::pow(x, y);
    case Intrinsic::kFabs:
    case Intrinsic::kAbs:
      return std::fabs(x);
    case Intrinsic::kFloor:
      return std::floor(x);
    case Intrinsic::kCeil:
      return std::ceil(x);
    case Intrinsic::kTrunc:
      return std::trunc(x);
    case Intrinsic::kRound:
      return std::round(x);
    case Intrinsic::kNearbyInt:
      return std::nearbyint(x);
    case Intrinsic::kFmod:
      return std::fmod(x, y);
    default:
      INGOT_UNREACHABLE("no function of floats");
  }
}

// Functions of floats are computed in double and rounded once.
class FloatCallCode : public ExprCode {
 public:
  FloatCallCode(Intrinsic op, DataType dtype, std::vector<ExprPtr> args)
      : op_(op), dtype_(dtype), args_(std::move(args)) {}
  Cell Eval(Machine& machine, int lane) const override {
    const double x = args_[0]->Eval(machine, lane).f;
    const double y = args_.size() > 1 ? args_[1]->Eval(machine, lane).f : 0;
    if (op_ == Intrinsic::kIsNan) return IntCell(std::isnan(x));
    if (op_ == Intrinsic::kIsInf) return IntCell(std::isinf(x));
    if (op_ == Intrinsic::kFma) {
      const double z = args_[2]->Eval(machine, lane).f;
      if (dtype_.code == TypeCode::kFloat && dtype_.bits == 32) {
        return FloatCell(std::fmaf(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)));
      }
      return FloatCell(ir::RoundToFloat(dtype_, std::fma(x, y, z)));
    }
    return FloatCell(ir::RoundToFloat(dtype_, FloatFunction(op_, x, y)));
  }

 private:
  Intrinsic op_;
  DataType dtype_;
  std::vector<ExprPtr> args_;
};

class IntCallCode : public ExprCode {
 public:
  IntCallCode(Intrinsic op, DataType dtype, std::vector<ExprPtr> args)
      : op_(op), dtype_(dtype), args_(std::move(args)) {}
  Cell Eval(Machine& machine, int lane) const override {
    const int64_t x = args_[0]->Eval(machine, lane).i;
    const int64_t y = args_.size() > 1 ? args_[1]->Eval(machine, lane).i : 0;
    const int64_t z = args_.size() > 2 ? args_[2]->Eval(machine, lane).i : 0;
    return IntCell(ir::WrapInt(dtype_, Compute(machine, x, y, z)));
  }

 private:
  int64_t Compute(Machine& machine, int64_t x, int64_t y, int64_t z) const {
    switch (op_) {
      case Intrinsic::kAbs:
        return x < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(x)) : x;
      case Intrinsic::kBitwiseAnd:
        return x & y;
      case Intrinsic::kBitwiseOr:
        return x | y;
      case Intrinsic::kBitwiseXor:
        return x ^ y;
      case Intrinsic::kBitwiseNot:
        return ~x;
      case Intrinsic::kShiftLeft:
      case Intrinsic::kShiftRight:
        if (y < 0 || y >= dtype_.bits) {
          machine.Fail("a shift of " + dtype_.ToString() + " by " + std::to_string(y) + " bits");
          return 0;
        }
        if (op_ == Intrinsic::kShiftLeft) return static_cast<int64_t>(static_cast<uint64_t>(x) << y);
        return dtype_.is_int() ? x >> y : static_cast<int64_t>(static_cast<uint64_t>(x) >> y);
      case Intrinsic::kDotBytes: {
        int64_t sum = 0;
        for (int shift = 0; shift < 32; shift += 8) {
          sum += int64_t{static_cast<uint8_t>(x >> shift)} * static_cast<int8_t>(y >> shift);
        }
        return sum;
      }
      case Intrinsic::kFma:
        return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y) + static_cast<uint64_t>(z));
      default:
        INGOT_UNREACHABLE("no function of integers");
    }
  }
  Intrinsic op_;
  DataType dtype_;  // one lane
  std::vector<ExprPtr> args_;
};

class ExternalCode : public ExprCode {
 public:
  ExternalCode(std::string name, std::vector<ExprPtr> args) : name_(std::move(name)), args_(std::move(args)) {}
  Cell Eval(Machine& machine, int) const override {
    std::vector<int64_t> ints;
    for (const ExprPtr& arg : args_) ints.push_back(arg->Eval(machine, 0).i);
    if (machine.failed) return IntCell(0);
    if (!machine.options.external) {
      machine.Fail("a call of the external function " + name_ + ", and none is given");
      return IntCell(0);
    }
    const Status status = machine.options.external(name_, ints);
    if (!status.ok()) machine.Fail(status.code(), name_ + ": " + status.message());
    return IntCell(0);
  }

 private:
  std::string name_;
  std::vector<ExprPtr> args_;
};

}  // namespace

std::vector<ExprPtr> Translator::TranslateAll(const std::vector<ir::PrimExpr>& exprs) {
  std::vector<ExprPtr> result;
  for (const ir::PrimExpr& expr : exprs) result.push_back(Translate(expr));
  return result;
}

ExprPtr Translator::Translate(const ir::PrimExpr& expr) {
  switch (expr->kind) {
    case ir::PrimKind::kIntImm:
      return std::make_unique<ConstantCode>(IntCell(static_cast<const ir::IntImmNode&>(*expr).value));
    case ir::PrimKind::kFloatImm:
      return std::make_unique<ConstantCode>(FloatCell(static_cast<const ir::FloatImmNode&>(*expr).value));
    case ir::PrimKind::kStringImm:
      Fail("a string as a value");
      return nullptr;
    case ir::PrimKind::kPrimVar: {
      const auto& node = static_cast<const ir::PrimVarNode&>(*expr);
      const auto it = slots_.find(&node);
      const auto vector = let_vectors_.find(expr.get());
      if (vector != let_vectors_.end()) {
        return std::make_unique<LetLaneCode>(it->second, expr->dtype.lanes, vector->second);
      }
      if (it != slots_.end()) return std::make_unique<VarCode>(it->second);
      Fail("variable " + node.name + " has no value here (pointers are not interpreted)");
      return nullptr;
    }
    case ir::PrimKind::kBinary:
      return TranslateBinary(static_cast<const ir::BinaryNode&>(*expr));
    case ir::PrimKind::kNot:
      return std::make_unique<NotCode>(Translate(static_cast<const ir::NotNode&>(*expr).a));
    case ir::PrimKind::kSelect: {
      const auto& node = static_cast<const ir::SelectNode&>(*expr);
      return std::make_unique<ChooseCode>(false, node.condition->dtype.is_scalar(), Translate(node.condition),
                                          Translate(node.true_value), Translate(node.false_value));
    }
    case ir::PrimKind::kCast: {
      const auto& node = static_cast<const ir::CastNode&>(*expr);
      return std::make_unique<CastCode>(node.value->dtype.element_of(), node.dtype.element_of(), Translate(node.value));
    }
    case ir::PrimKind::kBufferLoad: {
      const auto& node = static_cast<const ir::BufferLoadNode&>(*expr);
      return std::make_unique<LoadCode>(node.buffer, ViewOf(node.buffer), TranslateAll(node.indices));
    }
    case ir::PrimKind::kRamp: {
      const auto& node = static_cast<const ir::RampNode&>(*expr);
      return std::make_unique<RampCode>(node.dtype.element_of(), Translate(node.base), Translate(node.stride));
    }
    case ir::PrimKind::kBroadcast:
      return std::make_unique<BroadcastCode>(Translate(static_cast<const ir::BroadcastNode&>(*expr).value));
    case ir::PrimKind::kShuffle: {
      const auto& node = static_cast<const ir::ShuffleNode&>(*expr);
      std::vector<ShuffleCode::Source> lanes;
      for (size_t v = 0; v < node.vectors.size(); ++v) {
        for (int l = 0; l < node.vectors[v]->dtype.lanes; ++l) lanes.push_back({v, l});
      }
      std::vector<ShuffleCode::Source> sources;
      for (const int64_t index : node.indices) {
        if (index < 0 || index >= static_cast<int64_t>(lanes.size())) {
          Fail("a shuffle of lane " + std::to_string(index) + " of " + std::to_string(lanes.size()));
          return nullptr;
        }
        sources.push_back(lanes[static_cast<size_t>(index)]);
      }
      return std::make_unique<ShuffleCode>(TranslateAll(node.vectors), std::move(sources));
    }
    case ir::PrimKind::kLet: {
      const auto& node = static_cast<const ir::LetNode&>(*expr);
      ExprPtr value = Translate(node.value);
      const int slot = DefineVar(node.var), lanes = node.var->dtype.lanes;
      if (lanes > 1) {
        num_slots_ += lanes;
        let_vectors_[node.var.get()] = value.get();
      }
      return std::make_unique<LetCode>(slot, lanes, std::move(value), Translate(node.body));
    }
    case ir::PrimKind::kPrimCall:
      return TranslateCall(static_cast<const ir::PrimCallNode&>(*expr));
    case ir::PrimKind::kReduce:
    case ir::PrimKind::kProducerLoad:
      Fail("a tensor expression in a prim function");
      return nullptr;
  }
  INGOT_UNREACHABLE("PrimKind");
}

ExprPtr Translator::TranslateBinary(const ir::BinaryNode& node) {
  const DataType operands = node.a->dtype.element_of();
  ExprPtr a = Translate(node.a);
  ExprPtr b = Translate(node.b);
  if (operands.is_floating()) return std::make_unique<FloatBinaryCode>(node.op, operands, std::move(a), std::move(b));
  return std::make_unique<IntBinaryCode>(node.op, operands, std::move(a), std::move(b));
}

ExprPtr Translator::TranslateCall(const ir::PrimCallNode& node) {
  if (node.op == Intrinsic::kCallExtern || node.op == Intrinsic::kCallPacked) {
    const auto* name = node.args.empty() ? nullptr : ir::As<ir::StringImmNode>(node.args[0]);
    if (name == nullptr) {
      Fail("an external call without a name");
      return nullptr;
    }
    std::vector<ExprPtr> args;
    for (size_t i = 1; i < node.args.size(); ++i) {
      if (!node.args[i]->dtype.is_integral()) Fail("an argument of an external call that is no integer");
      args.push_back(Translate(node.args[i]));
    }
    return std::make_unique<ExternalCode>(name->value, std::move(args));
  }
  const DataType from = node.args.at(0)->dtype;
  const DataType element = from.element_of();
  switch (node.op) {
    case Intrinsic::kIfThenElse:
      return std::make_unique<ChooseCode>(true, from.is_scalar(), Translate(node.args[0]), Translate(node.args[1]),
                                          Translate(node.args[2]));
    case Intrinsic::kLikely:
      return Translate(node.args[0]);
    case Intrinsic::kReinterpret:
      if (from.lanes != node.dtype.lanes || from.bits != node.dtype.bits) {
        Fail("a reinterpretation of " + from.ToString() + " as " + node.dtype.ToString());
        return nullptr;
      }
      return std::make_unique<ReinterpretCode>(element, node.dtype.element_of(), Translate(node.args[0]));
    case Intrinsic::kVectorReduceAdd:
      return std::make_unique<VectorReduceCode>(BinaryOp::kAdd, from, Translate(node.args[0]));
    case Intrinsic::kVectorReduceMax:
      return std::make_unique<VectorReduceCode>(BinaryOp::kMax, from, Translate(node.args[0]));
    case Intrinsic::kVectorReduceMin:
      return std::make_unique<VectorReduceCode>(BinaryOp::kMin, from, Translate(node.args[0]));
    case Intrinsic::kShiftLeft:
    case Intrinsic::kShiftRight:
    case Intrinsic::kBitwiseAnd:
    case Intrinsic::kBitwiseOr:
    case Intrinsic::kBitwiseXor:
    case Intrinsic::kBitwiseNot:
      if (element.is_floating()) {
        Fail("a bit operation on " + element.ToString());
        return nullptr;
      }
      return std::make_unique<IntCallCode>(node.op, element, TranslateAll(node.args));
    case Intrinsic::kDotBytes:
      if (element != DataType::Int(32)) {
        Fail("T.dot_bytes of " + element.ToString());
        return nullptr;
      }
      return std::make_unique<IntCallCode>(node.op, element, TranslateAll(node.args));
    case Intrinsic::kAbs:
    case Intrinsic::kFma:
      if (!element.is_floating()) return std::make_unique<IntCallCode>(node.op, element, TranslateAll(node.args));
      break;
    default:
      if (!element.is_floating()) {
        Fail(std::string("T.") + ir::GetIntrinsicRow(node.op).name + " of " + element.ToString());
        return nullptr;
      }
      break;
  }
  return std::make_unique<FloatCallCode>(node.op, element, TranslateAll(node.args));
}

}  // namespace ingot::interp
