// The builtins' routines: they take their arguments apart and call runtime/host_ops.h.
#include "vm/builtins.h"

#include <algorithm>

#include "runtime/host_ops.h"
#include "vm/interpreter.h"
#include "vm/value_text.h"

namespace ingot::vm {
namespace {

using Arguments = std::span<const Value>;

const TensorView& TensorAt(Arguments arguments, size_t i) { return std::get<Tensor>(arguments[i]).view(); }
std::span<const int64_t> ShapeAt(Arguments arguments, size_t i) { return std::get<ShapeValue>(arguments[i]).extents; }
const std::string& TextAt(Arguments arguments, size_t i) {
  return static_cast<const StringObject*>(std::get<Ref<Object>>(arguments[i]).get())->text;
}

Status BuiltinPrint(Arguments a, Instance& instance) {
  instance.Log(FormatValues(TextAt(a, 0), a.subspan(1)));
  return Status();
}
Status BuiltinAssert(Arguments a, Instance&) {
  return std::get<bool>(a[0]) ? Status() : Status(StatusCode::kFailed, FormatValues(TextAt(a, 1), a.subspan(2)));
}
Status BuiltinPermute(Arguments a, Instance&) { return host::Permute(TensorAt(a, 1), ShapeAt(a, 2), TensorAt(a, 0)); }
Status BuiltinPad(Arguments a, Instance&) {
  return host::Pad(TensorAt(a, 1), ShapeAt(a, 2), std::get<double>(a[3]), TensorAt(a, 0));
}
Status BuiltinSlice(Arguments a, Instance&) {
  return host::Slice(TensorAt(a, 1), ShapeAt(a, 2), ShapeAt(a, 3), TensorAt(a, 0));
}
Status BuiltinConcat(Arguments a, Instance&) {
  std::vector<TensorView> inputs;
  for (size_t i = 2; i < a.size(); ++i) inputs.push_back(TensorAt(a, i));
  return host::Concat(inputs, std::get<int64_t>(a[1]), TensorAt(a, 0));
}
Status BuiltinReshape(Arguments a, Instance&) { return host::Reshape(TensorAt(a, 1), TensorAt(a, 0)); }
Status BuiltinCast(Arguments a, Instance&) { return host::Cast(TensorAt(a, 1), TensorAt(a, 0)); }
Status Binary(host::BinaryOp op, Arguments a) {
  return host::Binary(op, TensorAt(a, 1), TensorAt(a, 2), TensorAt(a, 0));
}
Status BuiltinAdd(Arguments a, Instance&) { return Binary(host::BinaryOp::kAdd, a); }
Status BuiltinSub(Arguments a, Instance&) { return Binary(host::BinaryOp::kSub, a); }
Status BuiltinMul(Arguments a, Instance&) { return Binary(host::BinaryOp::kMul, a); }
Status BuiltinDiv(Arguments a, Instance&) { return Binary(host::BinaryOp::kDiv, a); }
Status BuiltinMinimum(Arguments a, Instance&) { return Binary(host::BinaryOp::kMin, a); }
Status BuiltinMaximum(Arguments a, Instance&) { return Binary(host::BinaryOp::kMax, a); }
Status BuiltinSqrt(Arguments a, Instance&) { return host::Sqrt(TensorAt(a, 1), TensorAt(a, 0)); }
Status BuiltinMatMul(Arguments a, Instance&) { return host::MatMul(TensorAt(a, 1), TensorAt(a, 2), TensorAt(a, 0)); }
Status BuiltinQuantize(Arguments a, Instance&) {
  return host::Quantize(TensorAt(a, 1), TensorAt(a, 2), TensorAt(a, 3), std::get<int64_t>(a[4]), TensorAt(a, 0));
}
Status BuiltinBroadcastTo(Arguments a, Instance&) { return host::BroadcastTo(TensorAt(a, 1), TensorAt(a, 0)); }
Status BuiltinCacheAppend(Arguments a, Instance&) {
  return host::Insert(TensorAt(a, 1), std::get<int64_t>(a[2]), std::get<int64_t>(a[3]), TensorAt(a, 0));
}
Status BuiltinStoreInt(Arguments a, Instance&) {
  const TensorView& out = TensorAt(a, 0);
  if (out.dtype != DataType::Int(64)) {
    return Status(StatusCode::kBadInput, "expected int64, got " + out.TypeToString());
  }
  std::fill_n(static_cast<int64_t*>(out.data), out.num_elements, std::get<int64_t>(a[1]));
  return Status();
}
Status BuiltinNegate(Arguments a, Instance&) { return host::Negate(TensorAt(a, 1), TensorAt(a, 0)); }

}  // namespace

Status RunBuiltin(Builtin builtin, std::span<const Value> arguments, Instance& instance) {
  switch (builtin) {
#define INGOT_BUILTIN(number, Name, text, semantics, ...) \
  case Builtin::k##Name:                                  \
    return Builtin##Name(arguments, instance);
#include "vm/builtins.def"
  }
  INGOT_UNREACHABLE();
}

}  // namespace ingot::vm
