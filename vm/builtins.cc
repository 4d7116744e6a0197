// The builtins' routines: they take their arguments apart and call runtime/host_ops.h.
#include "vm/builtins.h"

#include <algorithm>
#include <bit>

#include "runtime/host_ops.h"
#include "vm/builtin_call.h"
#include "vm/frame_words.h"
#include "vm/interpreter.h"
#include "vm/value_text.h"

namespace ingot::vm {

void BuiltinCall::Clear() {
  types_.clear();
  slots_.clear();
  views_.clear();
}

void BuiltinCall::AddTensor(const Type& type, const int64_t* slot, const TensorView& view) {
  types_.push_back(&type);
  slots_.push_back(slot);
  views_.push_back(view);
}

void BuiltinCall::Add(const Type& type, const int64_t* slot) { AddTensor(type, slot, TensorView()); }

double BuiltinCall::number(size_t i) const { return std::bit_cast<double>(*slots_[i]); }

const std::string& BuiltinCall::text(size_t i) const {
  return static_cast<const StringObject*>(ObjectOf(*slots_[i]))->text;
}

Result<std::string> BuiltinCall::Format(size_t i) const {
  std::vector<Value> values;
  for (size_t k = i + 1; k < types_.size(); ++k) {
    if (types_[k]->is_tensor()) {
      INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::FromView(views_[k], {}));
      values.emplace_back(std::move(tensor));
    } else {
      values.push_back(Interpreter::BoxWords(*types_[k], slots_[k]));
    }
  }
  return FormatValues(text(i), values);
}

namespace {

using Call = const BuiltinCall&;

Status BuiltinPrint(Call a, Instance& instance) {
  INGOT_ASSIGN_OR_RETURN(const std::string text, a.Format(0));
  instance.Log(text);
  return Status();
}
Status BuiltinAssert(Call a, Instance&) {
  if (a.flag(0)) return Status();
  INGOT_ASSIGN_OR_RETURN(std::string text, a.Format(1));
  return Status(StatusCode::kFailed, std::move(text));
}
Status BuiltinPermute(Call a, Instance&) { return host::Permute(a.tensor(1), a.shape(2), a.tensor(0)); }
Status BuiltinPad(Call a, Instance&) { return host::Pad(a.tensor(1), a.shape(2), a.number(3), a.tensor(0)); }
Status BuiltinSlice(Call a, Instance&) { return host::Slice(a.tensor(1), a.shape(2), a.shape(3), a.tensor(0)); }
Status BuiltinConcat(Call a, Instance&) { return host::Concat(a.tensors_from(2), a.integer(1), a.tensor(0)); }
Status BuiltinReshape(Call a, Instance&) { return host::Reshape(a.tensor(1), a.tensor(0)); }
Status BuiltinCast(Call a, Instance&) { return host::Cast(a.tensor(1), a.tensor(0)); }
Status Binary(host::BinaryOp op, Call a) { return host::Binary(op, a.tensor(1), a.tensor(2), a.tensor(0)); }
Status BuiltinAdd(Call a, Instance&) { return Binary(host::BinaryOp::kAdd, a); }
Status BuiltinSub(Call a, Instance&) { return Binary(host::BinaryOp::kSub, a); }
Status BuiltinMul(Call a, Instance&) { return Binary(host::BinaryOp::kMul, a); }
Status BuiltinDiv(Call a, Instance&) { return Binary(host::BinaryOp::kDiv, a); }
Status BuiltinMinimum(Call a, Instance&) { return Binary(host::BinaryOp::kMin, a); }
Status BuiltinMaximum(Call a, Instance&) { return Binary(host::BinaryOp::kMax, a); }
Status BuiltinSqrt(Call a, Instance&) { return host::Sqrt(a.tensor(1), a.tensor(0)); }
Status BuiltinMatMul(Call a, Instance&) { return host::MatMul(a.tensor(1), a.tensor(2), a.tensor(0)); }
Status BuiltinQuantize(Call a, Instance&) {
  return host::Quantize(a.tensor(1), a.tensor(2), a.tensor(3), a.integer(4), a.tensor(0));
}
Status BuiltinBroadcastTo(Call a, Instance&) { return host::BroadcastTo(a.tensor(1), a.tensor(0)); }
Status BuiltinCacheAppend(Call a, Instance&) {
  return host::Insert(a.tensor(1), a.integer(2), a.integer(3), a.tensor(0));
}
Status BuiltinStoreInt(Call a, Instance&) {
  const TensorView& out = a.tensor(0);
  if (out.dtype != DataType::Int(64)) {
    return Status(StatusCode::kBadInput, "expected int64, got " + out.TypeToString());
  }
  std::fill_n(static_cast<int64_t*>(out.data), out.num_elements, a.integer(1));
  return Status();
}
Status BuiltinNegate(Call a, Instance&) { return host::Negate(a.tensor(1), a.tensor(0)); }

}  // namespace

Status RunBuiltin(Builtin builtin, const BuiltinCall& call, Instance& instance) {
  switch (builtin) {
#define INGOT_BUILTIN(number, Name, text, semantics, ...) \
  case Builtin::k##Name:                                  \
    return Builtin##Name(call, instance);
#include "vm/builtins.def"
  }
  INGOT_UNREACHABLE();
}

}  // namespace ingot::vm
