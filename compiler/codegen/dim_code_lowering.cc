// A walk over the expression that emits the steps of DimCode. DimCode divides with rounding down only, so the
// truncating division of PrimExpr needs operands that are known not to be negative; a small sign analysis decides that.
// Simplification multiplies products of dims out, which doubles the steps with each: what is too long for that is factored.
#include "compiler/codegen/dim_code_lowering.h"

#include <string>
#include <utility>
#include <vector>

#include "compiler/arith/factor.h"

namespace ingot::codegen {
namespace {

Status Unsupported(std::string message) { return Status(StatusCode::kUnsupportedModel, std::move(message)); }

// Whether the expression cannot be negative: dimensions never are, nor are sums, products, quotients, minima and maxima
// of non-negative values.
bool IsNonNegative(const ir::PrimExpr& expr) {
  if (const auto value = ir::AsConstInt(expr)) return *value >= 0;
  if (ir::As<ir::PrimVarNode>(expr) != nullptr) return true;
  if (const auto* cast = ir::As<ir::CastNode>(expr)) return IsNonNegative(cast->value);
  const auto* binary = ir::As<ir::BinaryNode>(expr);
  if (binary == nullptr) return false;
  switch (binary->op) {
    case ir::BinaryOp::kAdd:
    case ir::BinaryOp::kMul:
    case ir::BinaryOp::kDiv:
    case ir::BinaryOp::kFloorDiv:
    case ir::BinaryOp::kMin:
      return IsNonNegative(binary->a) && IsNonNegative(binary->b);
    case ir::BinaryOp::kTruncMod:
      return IsNonNegative(binary->a);
    case ir::BinaryOp::kFloorMod:
      return IsNonNegative(binary->b);
    case ir::BinaryOp::kMax:
      return IsNonNegative(binary->a) || IsNonNegative(binary->b);
    case ir::BinaryOp::kSub:
      return false;
    case ir::BinaryOp::kEQ:
    case ir::BinaryOp::kNE:
    case ir::BinaryOp::kLT:
    case ir::BinaryOp::kLE:
    case ir::BinaryOp::kGT:
    case ir::BinaryOp::kGE:
    case ir::BinaryOp::kAnd:
    case ir::BinaryOp::kOr:
      return true;
  }
  INGOT_UNREACHABLE("BinaryOp");
}

class Lowering {
 public:
  explicit Lowering(std::span<const ir::PrimVar> slots) : slots_(slots) {}

  bool is_too_long() const { return steps_.size() > DimCode::kMaxSteps; }

  // Stops where it is too long.
  Status Lower(const ir::PrimExpr& expr) {
    if (is_too_long()) return Status();
    switch (expr->kind) {
      case ir::PrimKind::kIntImm:
        Push(DimOp::kConst, *ir::AsConstInt(expr));
        return Status();
      case ir::PrimKind::kPrimVar:
        for (size_t i = 0; i < slots_.size(); ++i) {
          if (slots_[i].get() == expr.get()) {
            Push(DimOp::kSlot, static_cast<int64_t>(i));
            return Status();
          }
        }
        return Unsupported("the symbolic variable \"" + ir::As<ir::PrimVarNode>(expr)->name +
                           "\" is bound by no argument");
      case ir::PrimKind::kBinary:
        return LowerBinary(*ir::As<ir::BinaryNode>(expr));
      case ir::PrimKind::kNot:
        INGOT_RETURN_IF_ERROR(Lower(ir::As<ir::NotNode>(expr)->a));
        Push(DimOp::kConst, 0);
        Push(DimOp::kEq);
        return Status();
      case ir::PrimKind::kSelect: {
        const auto& select = *ir::As<ir::SelectNode>(expr);
        return LowerSelect(select.condition, select.true_value, select.false_value);
      }
      case ir::PrimKind::kCast: {
        const auto& cast = *ir::As<ir::CastNode>(expr);
        const DataType from = cast.value->dtype;
        const bool keeps_value =
            cast.dtype.is_int() && (from.is_bool() || (from.is_int() && cast.dtype.bits >= from.bits));
        if (!keeps_value) {
          return Unsupported("a shape expression casts " + from.ToString() + " to " + cast.dtype.ToString() +
                             ", which may change the value");
        }
        return Lower(cast.value);
      }
      case ir::PrimKind::kPrimCall: {
        const auto& call = *ir::As<ir::PrimCallNode>(expr);
        if (call.op == ir::Intrinsic::kIfThenElse) return LowerSelect(call.args[0], call.args[1], call.args[2]);
        if (call.op == ir::Intrinsic::kLikely) return Lower(call.args[0]);
        return Unsupported(std::string("a shape expression calls T.") + ir::GetIntrinsicRow(call.op).name);
      }
      case ir::PrimKind::kFloatImm:
      case ir::PrimKind::kStringImm:
      case ir::PrimKind::kBufferLoad:
      case ir::PrimKind::kRamp:
      case ir::PrimKind::kBroadcast:
      case ir::PrimKind::kShuffle:
      case ir::PrimKind::kLet:
      case ir::PrimKind::kReduce:
      case ir::PrimKind::kProducerLoad:
        break;
    }
    return Unsupported("a shape expression holds more than integer arithmetic");
  }

  Result<DimCode> Finish() && {
    if (is_too_long()) {
      return Unsupported("a shape expression needs more than " + std::to_string(DimCode::kMaxSteps) + " steps");
    }
    return DimCode::FromSteps(std::move(steps_), static_cast<int64_t>(slots_.size()));
  }

 private:
  void Push(DimOp op, int64_t value = 0) { steps_.push_back({op, value}); }

  Status LowerSelect(const ir::PrimExpr& condition, const ir::PrimExpr& a, const ir::PrimExpr& b) {
    INGOT_RETURN_IF_ERROR(Lower(condition));
    INGOT_RETURN_IF_ERROR(Lower(a));
    INGOT_RETURN_IF_ERROR(Lower(b));
    Push(DimOp::kSelect);
    return Status();
  }

  Status LowerPair(const ir::PrimExpr& a, const ir::PrimExpr& b, DimOp op) {
    INGOT_RETURN_IF_ERROR(Lower(a));
    INGOT_RETURN_IF_ERROR(Lower(b));
    Push(op);
    return Status();
  }

  Status LowerBinary(const ir::BinaryNode& node) {
    switch (node.op) {
      case ir::BinaryOp::kAdd:
        return LowerPair(node.a, node.b, DimOp::kAdd);
      case ir::BinaryOp::kSub:
        return LowerPair(node.a, node.b, DimOp::kSub);
      case ir::BinaryOp::kMul:
        return LowerPair(node.a, node.b, DimOp::kMul);
      case ir::BinaryOp::kDiv:
      case ir::BinaryOp::kTruncMod:
        // Equal to the flooring forms for non-negative operands; DimCode has no others.
        if (!IsNonNegative(node.a) || !IsNonNegative(node.b)) {
          return Unsupported("a shape expression divides with truncation what may be negative");
        }
        return LowerPair(node.a, node.b, node.op == ir::BinaryOp::kDiv ? DimOp::kFloorDiv : DimOp::kFloorMod);
      case ir::BinaryOp::kFloorDiv:
        return LowerPair(node.a, node.b, DimOp::kFloorDiv);
      case ir::BinaryOp::kFloorMod:
        return LowerPair(node.a, node.b, DimOp::kFloorMod);
      case ir::BinaryOp::kMin:
        return LowerPair(node.a, node.b, DimOp::kMin);
      case ir::BinaryOp::kMax:
        return LowerPair(node.a, node.b, DimOp::kMax);
      case ir::BinaryOp::kEQ:
        return LowerPair(node.a, node.b, DimOp::kEq);
      case ir::BinaryOp::kNE:
        return LowerPair(node.a, node.b, DimOp::kNe);
      case ir::BinaryOp::kLT:
        return LowerPair(node.a, node.b, DimOp::kLt);
      case ir::BinaryOp::kLE:
        return LowerPair(node.a, node.b, DimOp::kLe);
      case ir::BinaryOp::kGT:
        return LowerPair(node.b, node.a, DimOp::kLt);
      case ir::BinaryOp::kGE:
        return LowerPair(node.b, node.a, DimOp::kLe);
      case ir::BinaryOp::kAnd:  // both operands are 0 or 1
        return LowerPair(node.a, node.b, DimOp::kMin);
      case ir::BinaryOp::kOr:
        return LowerPair(node.a, node.b, DimOp::kMax);
    }
    INGOT_UNREACHABLE("BinaryOp");
  }

  std::span<const ir::PrimVar> slots_;
  std::vector<DimStep> steps_;
};

}  // namespace

Result<DimCode> LowerToDimCode(const ir::PrimExpr& expr, std::span<const ir::PrimVar> slots) {
  Lowering lowering(slots);
  INGOT_RETURN_IF_ERROR(lowering.Lower(expr));
  if (!lowering.is_too_long()) return std::move(lowering).Finish();
  Lowering factored(slots);
  INGOT_RETURN_IF_ERROR(factored.Lower(arith::FactorSums(expr)));
  return std::move(factored).Finish();
}

}  // namespace ingot::codegen
