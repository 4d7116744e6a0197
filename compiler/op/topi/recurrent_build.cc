// Activations as ONNX defines them, and the loops around them.
#include "compiler/op/topi/recurrent_build.h"

#include "compiler/op/build.h"

namespace ingot::op::topi {

using namespace ir;  // NOLINT: this file is about IR nodes

Stmt LoopOver(const char* name, PrimExpr extent, ForKind kind, const BodyFn& body) {
  PrimVar var = MakePrimVar(name);
  Stmt inside = body(var);
  return Make<ForNode>(std::move(var), Int64(0), std::move(extent), kind, std::move(inside));
}
Stmt SerialLoop(const char* name, PrimExpr extent, const BodyFn& body) {
  return LoopOver(name, std::move(extent), ForKind::kSerial, body);
}
Stmt UnrolledLoop(const char* name, int64_t extent, const BodyFn& body) {
  return LoopOver(name, Int64(extent), ForKind::kUnrolled, body);
}
Stmt ThreadLoop(const char* axis, PrimExpr extent, const BodyFn& body) {
  PrimVar var = MakePrimVar(axis[0] == 'b' ? "block" : "t");
  Stmt inside = body(var);
  return Make<ForNode>(std::move(var), Int64(0), std::move(extent), ForKind::kThreadBinding, std::move(inside), axis);
}
PrimExpr LoadAt(const Buffer& buffer, std::vector<PrimExpr> indices) {
  return Make<BufferLoadNode>(buffer, std::move(indices));
}
Stmt StoreAt(const Buffer& buffer, std::vector<PrimExpr> indices, PrimExpr value) {
  return Make<BufferStoreNode>(buffer, ir::Cast(buffer->dtype, std::move(value)), std::move(indices));
}
PrimExpr Call(Intrinsic op, PrimExpr x) { return CallIntrinsic(op, {std::move(x)}); }

PrimExpr Apply(const ActivationFunction& f, const PrimExpr& x) {
  const auto number = [&](double value) { return MakeConst(x->dtype, value); };
  const PrimExpr zero = number(0), one = number(1);
  switch (f.kind) {
    case Activation::kRelu:
      return Max(x, zero);
    case Activation::kTanh:
      return Call(Intrinsic::kTanh, x);
    case Activation::kSigmoid:
      return Call(Intrinsic::kSigmoid, x);
    case Activation::kAffine:
      return number(f.alpha) * x + number(f.beta);
    case Activation::kLeakyRelu:
      return Select(x < zero, number(f.alpha) * x, x);
    case Activation::kThresholdedRelu:
      return Select(x > number(f.alpha), x, zero);
    case Activation::kScaledTanh:
      return number(f.alpha) * Call(Intrinsic::kTanh, number(f.beta) * x);
    case Activation::kHardSigmoid:
      return Min(Max(number(f.alpha) * x + number(f.beta), zero), one);
    case Activation::kElu:
      return Select(x < zero, number(f.alpha) * (Call(Intrinsic::kExp, x) - one), x);
    case Activation::kSoftsign:
      return x / (one + Call(Intrinsic::kFabs, x));
    case Activation::kSoftplus:  // without overflow
      return Max(x, zero) + Call(Intrinsic::kLog1p, Call(Intrinsic::kExp, zero - Call(Intrinsic::kFabs, x)));
  }
  INGOT_UNREACHABLE();
}

}  // namespace ingot::op::topi
