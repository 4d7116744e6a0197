// The builders of scalar expressions (they match operands, fold constants and apply identities such as x + 0), the
// table of intrinsics made of intrinsics.def, and the special members of the nodes.
#include "compiler/ir/prim_expr.h"

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "compiler/ir/float_format.h"
#include "compiler/ir/int_math.h"
#include "compiler/ir/stmt.h"

namespace ingot::ir {

INGOT_DEFINE_NODE(PrimExprNode);
INGOT_DEFINE_NODE(IterVarNode);
#define INGOT_PRIM_NODE(enumerator, Node) INGOT_DEFINE_NODE(Node);
#include "compiler/ir/nodes.def"

namespace {

enum class OpClass : uint8_t { kArithmetic, kComparison, kLogical };

OpClass ClassOf(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul:
    case BinaryOp::kDiv:
    case BinaryOp::kTruncMod:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      return OpClass::kArithmetic;
    case BinaryOp::kEQ:
    case BinaryOp::kNE:
    case BinaryOp::kLT:
    case BinaryOp::kLE:
    case BinaryOp::kGT:
    case BinaryOp::kGE:
      return OpClass::kComparison;
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
      return OpClass::kLogical;
  }
  INGOT_UNREACHABLE("BinaryOp");
}

bool FitsIn(DataType dtype, int64_t value) { return WrapInt(dtype, value) == value; }

bool IsUInt64(DataType dtype) { return dtype.is_uint() && dtype.bits == 64; }

template <typename T>
bool Compare(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::kEQ:
      return a == b;
    case BinaryOp::kNE:
      return a != b;
    case BinaryOp::kLT:
      return a < b;
    case BinaryOp::kLE:
      return a <= b;
    case BinaryOp::kGT:
      return a > b;
    case BinaryOp::kGE:
      return a >= b;
    default:
      INGOT_UNREACHABLE("comparison");
  }
}

// Nothing where the value does not fit, or the operation is left to run time (division by zero, uint64).
std::optional<int64_t> FoldInts(BinaryOp op, int64_t a, int64_t b) {
  switch (op) {
    case BinaryOp::kAdd:
      return CheckedAdd(a, b);
    case BinaryOp::kSub:
      return CheckedSub(a, b);
    case BinaryOp::kMul:
      return CheckedMul(a, b);
    case BinaryOp::kDiv:
      return CheckedTruncDiv(a, b);
    case BinaryOp::kTruncMod:
      return CheckedTruncMod(a, b);
    case BinaryOp::kFloorDiv:
      return CheckedFloorDiv(a, b);
    case BinaryOp::kFloorMod:
      return CheckedFloorMod(a, b);
    case BinaryOp::kMin:
      return a < b ? a : b;
    case BinaryOp::kMax:
      return a < b ? b : a;
    case BinaryOp::kAnd:
      return a != 0 && b != 0;
    case BinaryOp::kOr:
      return a != 0 || b != 0;
    case BinaryOp::kEQ:
    case BinaryOp::kNE:
    case BinaryOp::kLT:
    case BinaryOp::kLE:
    case BinaryOp::kGT:
    case BinaryOp::kGE:
      return Compare(op, a, b);
  }
  INGOT_UNREACHABLE("BinaryOp");
}

std::optional<double> FoldFloats(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return a / b;
    default:
      return std::nullopt;
  }
}

PrimExpr FoldConstants(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
  const auto* ia = As<IntImmNode>(a);
  const auto* ib = As<IntImmNode>(b);
  if (ia != nullptr && ib != nullptr && !IsUInt64(a->dtype)) {
    const std::optional<int64_t> value = FoldInts(op, ia->value, ib->value);
    const DataType dtype = ClassOf(op) == OpClass::kArithmetic ? a->dtype : DataType::Bool();
    if (value.has_value() && FitsIn(dtype, *value)) return IntImm(dtype, *value);
    return nullptr;
  }
  const auto* fa = As<FloatImmNode>(a);
  const auto* fb = As<FloatImmNode>(b);
  if (fa == nullptr || fb == nullptr) return nullptr;
  if (ClassOf(op) == OpClass::kComparison) return BoolImm(Compare(op, fa->value, fb->value));
  const std::optional<double> value = FoldFloats(op, fa->value, fb->value);
  return value.has_value() ? FloatImm(a->dtype, *value) : PrimExpr();
}

// Laws with a constant on one side that hold for every value of the other.
PrimExpr FoldIdentity(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
  const auto* fb = As<FloatImmNode>(b);
  const bool integral = a->dtype.is_integral();
  switch (op) {
    case BinaryOp::kAdd:
      if (IsConstInt(b, 0)) return a;
      if (IsConstInt(a, 0)) return b;
      break;
    case BinaryOp::kSub:
      if (IsConstInt(b, 0)) return a;
      if (integral && a.same_as(b)) return MakeConst(a->dtype, 0);
      break;
    case BinaryOp::kMul: {
      const auto* fa = As<FloatImmNode>(a);
      if (IsConstInt(b, 1) || IsConstInt(a, 0) || (fb != nullptr && fb->value == 1.0)) return a;
      if (IsConstInt(a, 1) || IsConstInt(b, 0) || (fa != nullptr && fa->value == 1.0)) return b;
      break;
    }
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv:
      if (IsConstInt(b, 1) || (op == BinaryOp::kDiv && fb != nullptr && fb->value == 1.0)) return a;
      break;
    case BinaryOp::kTruncMod:
    case BinaryOp::kFloorMod:
      if (IsConstInt(b, 1)) return MakeConst(a->dtype, 0);
      break;
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      if (a.same_as(b)) return a;
      break;
    case BinaryOp::kAnd:
      if (IsConstInt(a, 0) || IsConstInt(b, 1)) return a;
      if (IsConstInt(b, 0) || IsConstInt(a, 1)) return b;
      break;
    case BinaryOp::kOr:
      if (IsConstInt(a, 1) || IsConstInt(b, 0)) return a;
      if (IsConstInt(b, 1) || IsConstInt(a, 0)) return b;
      break;
    case BinaryOp::kEQ:
    case BinaryOp::kNE:
    case BinaryOp::kLT:
    case BinaryOp::kLE:
    case BinaryOp::kGT:
    case BinaryOp::kGE:
      break;
  }
  return nullptr;
}

// The constant inside a broadcast, or the expression itself.
const PrimExpr& Unbroadcast(const PrimExpr& expr) {
  const auto* broadcast = As<BroadcastNode>(expr);
  return broadcast == nullptr ? expr : broadcast->value;
}

// Brings both operands to one dtype: an integer constant takes the other's element type, a scalar the other's lanes.
void MatchOperands(PrimExpr& a, PrimExpr& b) {
  INGOT_CHECK(a.get() != nullptr && b.get() != nullptr, "a null operand");
  if (a->dtype == b->dtype) return;
  if (a->dtype.element_of() != b->dtype.element_of()) {
    const auto* ia = As<IntImmNode>(a);
    const auto* ib = As<IntImmNode>(b);
    const bool widen_a = ia != nullptr && (ib == nullptr || a->dtype.bits < b->dtype.bits);
    if (widen_a) {
      a = IntImm(b->dtype.element_of(), ia->value);
    } else if (ib != nullptr) {
      b = IntImm(a->dtype.element_of(), ib->value);
    } else {
      const std::string detail = "operands of dtypes " + a->dtype.ToString() + " and " + b->dtype.ToString();
      CheckFailed(__FILE__, __LINE__, "operand dtypes are equal", detail.c_str());
    }
  }
  if (a->dtype.lanes == 1 && b->dtype.lanes != 1) a = Make<BroadcastNode>(a, b->dtype.lanes);
  if (b->dtype.lanes == 1 && a->dtype.lanes != 1) b = Make<BroadcastNode>(b, a->dtype.lanes);
  INGOT_CHECK(a->dtype == b->dtype, "operands of different lanes");
}

PrimExpr WithLanes(PrimExpr scalar, int lanes) {
  return lanes == 1 ? scalar : PrimExpr(Make<BroadcastNode>(std::move(scalar), lanes));
}

using ResultDtype = IntrinsicRow::Result;
constexpr std::array kIntrinsics = {
#define INGOT_INTRINSIC(id, name, arity, result, traits, expansion, operations) \
  IntrinsicRow{Intrinsic::k##id,                                                \
               name,                                                            \
               arity,                                                           \
               ResultDtype::k##result,                                          \
               IntrinsicRow::Traits::k##traits,                                 \
               IntrinsicRow::Expansion::k##expansion},
#include "compiler/ir/intrinsics.def"
};

}  // namespace

BinaryNode::BinaryNode(BinaryOp o, PrimExpr x, PrimExpr y)
    : PrimExprNode(kKind, ClassOf(o) == OpClass::kArithmetic ? x->dtype : DataType::Bool(x->dtype.lanes)),
      op(o),
      a(std::move(x)),
      b(std::move(y)) {}

BufferLoadNode::BufferLoadNode(Buffer b, std::vector<PrimExpr> i)
    : PrimExprNode(kKind, b->dtype), buffer(std::move(b)), indices(std::move(i)) {
  if (!indices.empty()) dtype = dtype.with_lanes(dtype.lanes * indices.back()->dtype.lanes);
}

const IntrinsicRow& GetIntrinsicRow(Intrinsic id) { return kIntrinsics.at(static_cast<size_t>(id)); }

const IntrinsicRow* FindIntrinsic(std::string_view name) {
  for (const IntrinsicRow& row : kIntrinsics) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

PrimExpr IntImm(DataType dtype, int64_t value) {
  const DataType element = dtype.element_of();
  if (element.is_floating()) return WithLanes(FloatImm(element, static_cast<double>(value)), dtype.lanes);
  return WithLanes(Make<IntImmNode>(element, value), dtype.lanes);
}
PrimExpr Int64(int64_t value) { return IntImm(DataType::Int(64), value); }
PrimExpr Int32(int64_t value) { return IntImm(DataType::Int(32), value); }
PrimExpr BoolImm(bool value) { return IntImm(DataType::Bool(), value ? 1 : 0); }
PrimExpr FloatImm(DataType dtype, double value) {
  const DataType element = dtype.element_of();
  return WithLanes(Make<FloatImmNode>(element, RoundToFloat(element, value)), dtype.lanes);
}
PrimExpr StringImm(std::string value) { return Make<StringImmNode>(std::move(value)); }
PrimVar MakePrimVar(std::string name, DataType dtype) { return Make<PrimVarNode>(std::move(name), dtype); }

PrimExpr MakeConst(DataType dtype, double value) {
  return dtype.is_floating() ? FloatImm(dtype, value) : IntImm(dtype, static_cast<int64_t>(value));
}

PrimExpr MinValue(DataType dtype) {
  if (dtype.is_floating()) return FloatImm(dtype, -LargestFinite(dtype.element_of()));
  if (!dtype.is_int()) return IntImm(dtype, 0);
  return IntImm(dtype, std::numeric_limits<int64_t>::min() >> (64 - dtype.bits));
}

PrimExpr MaxValue(DataType dtype) {
  if (dtype.is_floating()) return FloatImm(dtype, LargestFinite(dtype.element_of()));
  if (dtype.is_bool()) return IntImm(dtype, 1);
  if (dtype.is_int()) return IntImm(dtype, std::numeric_limits<int64_t>::max() >> (64 - dtype.bits));
  return IntImm(dtype, static_cast<int64_t>(std::numeric_limits<uint64_t>::max() >> (64 - dtype.bits)));
}

PrimExpr MakeBinary(BinaryOp op, PrimExpr a, PrimExpr b) {
  MatchOperands(a, b);
  if (ClassOf(op) == OpClass::kLogical)
    INGOT_CHECK(a->dtype.is_bool(), "a logical operator on values that are no bool");
  const PrimExpr& sa = Unbroadcast(a);
  const PrimExpr& sb = Unbroadcast(b);
  const int lanes = a->dtype.lanes;
  if (sa->dtype == sb->dtype) {
    if (PrimExpr folded = FoldConstants(op, sa, sb)) return WithLanes(std::move(folded), lanes);
  }
  if (lanes == 1) {
    if (PrimExpr folded = FoldIdentity(op, a, b)) return folded;
  } else if (const PrimExpr folded = FoldIdentity(op, sa, sb)) {
    return folded.same_as(sa) ? a : folded.same_as(sb) ? b : WithLanes(folded, folded->dtype.lanes == 1 ? lanes : 1);
  }
  return Make<BinaryNode>(op, std::move(a), std::move(b));
}

PrimExpr Cast(DataType dtype, PrimExpr value) {
  if (dtype == value->dtype) return value;
  if (value->dtype.lanes == 1 && dtype.lanes != 1) {
    return Make<BroadcastNode>(Cast(dtype.element_of(), std::move(value)), dtype.lanes);
  }
  INGOT_CHECK(dtype.lanes == value->dtype.lanes, "a cast that changes lanes");
  if (const auto* broadcast = As<BroadcastNode>(value)) {
    return Make<BroadcastNode>(Cast(dtype.element_of(), broadcast->value), dtype.lanes);
  }
  if (const auto* i = As<IntImmNode>(value); i != nullptr && !dtype.is_handle()) {
    if (!dtype.is_floating()) return IntImm(dtype, WrapInt(dtype, i->value));
    return FloatImm(dtype, IsUInt64(value->dtype) ? static_cast<double>(static_cast<uint64_t>(i->value))
                                                  : static_cast<double>(i->value));
  }
  if (const auto* f = As<FloatImmNode>(value)) {
    if (dtype.is_floating()) return FloatImm(dtype, f->value);
    if (dtype.is_bool()) return BoolImm(f->value != 0);
    // Doubles of at most 2^53 in magnitude convert exactly; what does not fit is left to run time.
    const double whole = std::trunc(f->value);
    if (std::fabs(whole) <= 9007199254740992.0 && FitsIn(dtype, static_cast<int64_t>(whole))) {
      return IntImm(dtype, static_cast<int64_t>(whole));
    }
  }
  return Make<CastNode>(dtype, std::move(value));
}

PrimExpr Select(PrimExpr condition, PrimExpr true_value, PrimExpr false_value) {
  MatchOperands(true_value, false_value);
  if (const auto known = AsConstInt(condition)) return *known != 0 ? true_value : false_value;
  return Make<SelectNode>(std::move(condition), std::move(true_value), std::move(false_value));
}

PrimExpr IfThenElse(PrimExpr condition, PrimExpr true_value, PrimExpr false_value) {
  MatchOperands(true_value, false_value);
  if (const auto known = AsConstInt(condition)) return *known != 0 ? true_value : false_value;
  return CallIntrinsic(Intrinsic::kIfThenElse, {std::move(condition), std::move(true_value), std::move(false_value)});
}

PrimExpr CallIntrinsic(Intrinsic op, std::vector<PrimExpr> args) {
  const IntrinsicRow& row = GetIntrinsicRow(op);
  INGOT_CHECK(row.arity == static_cast<int>(args.size()), row.name);
  DataType dtype;
  switch (row.result) {
    case ResultDtype::kSameAsFirst:
      dtype = args[0]->dtype;
      break;
    case ResultDtype::kSameAsSecond:
      dtype = args[1]->dtype;
      break;
    case ResultDtype::kBoolLanes:
      dtype = DataType::Bool(args[0]->dtype.lanes);
      break;
    case ResultDtype::kGiven:
      INGOT_UNREACHABLE("this intrinsic's dtype is given: Make<PrimCallNode>");
  }
  return Make<PrimCallNode>(dtype, op, std::move(args));
}

PrimExpr Not(PrimExpr a) {
  if (const auto known = AsConstInt(a)) return BoolImm(*known == 0);
  if (const auto* inner = As<NotNode>(a)) return inner->a;
  return Make<NotNode>(std::move(a));
}

PrimExpr FloorDiv(PrimExpr a, PrimExpr b) { return MakeBinary(BinaryOp::kFloorDiv, std::move(a), std::move(b)); }
PrimExpr FloorMod(PrimExpr a, PrimExpr b) { return MakeBinary(BinaryOp::kFloorMod, std::move(a), std::move(b)); }
PrimExpr Min(PrimExpr a, PrimExpr b) { return MakeBinary(BinaryOp::kMin, std::move(a), std::move(b)); }
PrimExpr Max(PrimExpr a, PrimExpr b) { return MakeBinary(BinaryOp::kMax, std::move(a), std::move(b)); }
PrimExpr operator+(PrimExpr a, PrimExpr b) { return MakeBinary(BinaryOp::kAdd, std::move(a), std::move(b)); }
PrimExpr operator-(PrimExpr a, PrimExpr b) { return MakeBinary(BinaryOp::kSub, std::move(a), std::move(b)); }
PrimExpr operator*(PrimExpr a, PrimExpr b) { return MakeBinary(BinaryOp::kMul, std::move(a), std::move(b)); }
PrimExpr operator/(PrimExpr a, PrimExpr b) { return MakeBinary(BinaryOp::kDiv, std::move(a), std::move(b)); }
PrimExpr operator<(PrimExpr a, PrimExpr b) { return MakeBinary(BinaryOp::kLT, std::move(a), std::move(b)); }
PrimExpr operator<=(PrimExpr a, PrimExpr b) { return MakeBinary(BinaryOp::kLE, std::move(a), std::move(b)); }
PrimExpr operator>(PrimExpr a, PrimExpr b) { return MakeBinary(BinaryOp::kGT, std::move(a), std::move(b)); }
PrimExpr operator>=(PrimExpr a, PrimExpr b) { return MakeBinary(BinaryOp::kGE, std::move(a), std::move(b)); }
PrimExpr Equal(PrimExpr a, PrimExpr b) { return MakeBinary(BinaryOp::kEQ, std::move(a), std::move(b)); }
PrimExpr NotEqual(PrimExpr a, PrimExpr b) { return MakeBinary(BinaryOp::kNE, std::move(a), std::move(b)); }
PrimExpr And(PrimExpr a, PrimExpr b) { return MakeBinary(BinaryOp::kAnd, std::move(a), std::move(b)); }
PrimExpr Or(PrimExpr a, PrimExpr b) { return MakeBinary(BinaryOp::kOr, std::move(a), std::move(b)); }

std::optional<int64_t> AsConstInt(const PrimExpr& expr) {
  const auto* node = As<IntImmNode>(expr);
  return node == nullptr ? std::nullopt : std::optional(node->value);
}
bool IsConstInt(const PrimExpr& expr, int64_t value) { return AsConstInt(expr) == value; }

}  // namespace ingot::ir

template class std::vector<ingot::ir::PrimExpr>;
template class std::vector<ingot::ir::PrimVar>;
template class std::vector<ingot::ir::IterVar>;
