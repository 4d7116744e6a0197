// The routines of the builtins, most of which unpack their arguments and call runtime/host_ops.h, and their dispatch by
// number.
#include "vm/program/builtins.h"

#include <algorithm>
#include <bit>

#include "runtime/host_ops.h"
#include "vm/run/builtin_call.h"
#include "vm/run/frame_words.h"
#include "vm/run/register_values.h"
#include "vm/run/value_text.h"
#include "vm/verify/type_rules.h"

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

Value BuiltinCall::value(size_t i) const { return BoxWords(*types_[i], slots_[i]); }

TupleObject* BuiltinCall::tuple(size_t i) const {
  auto* const tuple = dynamic_cast<TupleObject*>(ObjectOf(*slots_[i]));
  return tuple != nullptr && tuple->kind() == ValueKind::kTuple ? tuple : nullptr;
}

bool BuiltinCall::IsConsumed(size_t i) const {
  return slots_[i] == result_slot_ && std::ranges::count(slots_, result_slot_) == 1 && tuple(i)->is_unique();
}

bool BuiltinCall::WritesApart(const BuiltinInfo& row) const {
  const std::span<const BuiltinArgument> roles = row.arguments.subspan(row.num_results());
  for (size_t out = 0; out < roles.size() && IsWritten(roles[out].role); ++out) {
    const auto overlaps = [&](const TensorView& view) { return Overlap(views_[out], view); };
    for (size_t i = 0; i < types_.size(); ++i) {
      if (i == out) continue;
      if (types_[i]->is_tensor() && overlaps(views_[i])) return false;
      const TupleObject* const sequence = IsCountedKind(types_[i]->kind) ? tuple(i) : nullptr;
      if (sequence == nullptr) continue;
      for (const Value& element : sequence->elements()) {
        const auto* tensor = std::get_if<Tensor>(&element);
        if (tensor != nullptr && *tensor && overlaps(tensor->view())) return false;
      }
    }
  }
  return true;
}

double BuiltinCall::number(size_t i) const { return std::bit_cast<double>(*slots_[i]); }

const std::string& BuiltinCall::text(size_t i) const {
  return static_cast<const StringObject*>(ObjectOf(*slots_[i]))->text;
}

std::string BuiltinCall::Format(size_t i) const {
  const std::string& format = text(i);
  std::string out;
  size_t next = i + 1;
  for (size_t at = 0; (at < format.size() || next < types_.size()) && out.size() <= kMostTextBytes;) {
    if (next < types_.size() && (at >= format.size() || format.compare(at, 2, "{}") == 0)) {
      out += types_[next]->is_tensor() ? TensorText(views_[next]) : ValueText(value(next));
      ++next;
      at += 2;
    } else {
      out += format[at++];
    }
  }
  if (out.size() <= kMostTextBytes) return out;
  size_t end = kMostTextBytes;
  while (end > 0 && (out[end] & 0xc0) == 0x80) --end;  // in the middle of a character
  out.resize(end);
  return out + "...";
}

namespace {

using Call = BuiltinCall&;  // its arguments; the routine sets the result

Status BuiltinPrint(Call a, Instance& instance) {
  instance.Log(a.Format(0));
  return Status();
}
Status BuiltinAssert(Call a, Instance&) {
  if (a.flag(0)) return Status();
  return Status(StatusCode::kFailed, a.Format(1));
}
Status BuiltinPermute(Call a, Instance&) { return host::Permute(a.tensor(1), a.shape(2), a.tensor(0), a.poll()); }
Status BuiltinPad(Call a, Instance&) { return host::Pad(a.tensor(1), a.shape(2), a.number(3), a.tensor(0), a.poll()); }
Status BuiltinSlice(Call a, Instance&) {
  return host::Slice(a.tensor(1), a.shape(2), a.shape(3), a.tensor(0), a.poll());
}
Status BuiltinConcat(Call a, Instance&) { return host::Concat(a.tensors_from(2), a.integer(1), a.tensor(0), a.poll()); }
Status BuiltinReshape(Call a, Instance&) { return host::Reshape(a.tensor(1), a.tensor(0), a.poll()); }
Status BuiltinCast(Call a, Instance&) { return host::Cast(a.tensor(1), a.tensor(0), a.poll()); }
Status Binary(host::BinaryOp op, Call a) { return host::Binary(op, a.tensor(1), a.tensor(2), a.tensor(0), a.poll()); }
Status BuiltinAdd(Call a, Instance&) { return Binary(host::BinaryOp::kAdd, a); }
Status BuiltinSub(Call a, Instance&) { return Binary(host::BinaryOp::kSub, a); }
Status BuiltinMul(Call a, Instance&) { return Binary(host::BinaryOp::kMul, a); }
Status BuiltinDiv(Call a, Instance&) { return Binary(host::BinaryOp::kDiv, a); }
Status BuiltinMinimum(Call a, Instance&) { return Binary(host::BinaryOp::kMin, a); }
Status BuiltinMaximum(Call a, Instance&) { return Binary(host::BinaryOp::kMax, a); }
Status BuiltinSqrt(Call a, Instance&) { return host::Sqrt(a.tensor(1), a.tensor(0), a.poll()); }
Status BuiltinMatMul(Call a, Instance&) { return host::MatMul(a.tensor(1), a.tensor(2), a.tensor(0), a.poll()); }
Status BuiltinQuantize(Call a, Instance&) {
  return host::Quantize(a.tensor(1), a.tensor(2), a.tensor(3), a.integer(4), a.tensor(0), a.poll());
}
Status BuiltinBroadcastTo(Call a, Instance&) { return host::BroadcastTo(a.tensor(1), a.tensor(0), a.poll()); }
Status BuiltinCacheAppend(Call a, Instance&) {
  return host::Insert(a.tensor(1), a.integer(2), a.integer(3), a.tensor(0), a.poll());
}
Status BuiltinStoreInt(Call a, Instance&) {
  const TensorView& out = a.tensor(0);
  if (out.dtype != DataType::Int(64)) {
    return Status(StatusCode::kBadInput, {"expected int64, got ", out.TypeToString()});
  }
  int64_t value = a.integer(1);
  INGOT_ASSIGN_OR_RETURN(const TensorView scalar, TensorView::Make(&value, out.dtype, {}, nullptr, out.device));
  return host::BroadcastTo(scalar, out, a.poll());
}
Status BuiltinNegate(Call a, Instance&) { return host::Negate(a.tensor(1), a.tensor(0), a.poll()); }

// ---- Sequences

// The elements of argument i, owned by its register; an error when it is no sequence.
Result<const std::vector<Value>*> ElementsAt(Call a, size_t i) {
  if (TupleObject* const tuple = a.tuple(i)) return &tuple->elements();
  return Status(StatusCode::kBadInput, {"expected a sequence, got ", DescribeValue(a.value(i))});
}

// The index at which `count` elements of a sequence of this length begin; negative positions count from the end.
Result<size_t> PlaceIn(size_t length, int64_t position, int64_t count) {
  const auto end = static_cast<int64_t>(length);
  const int64_t place = position < 0 && position >= -end ? position + end : position;
  if (place >= 0 && count >= 0 && place <= end && count <= end - place) return static_cast<size_t>(place);
  return Status(StatusCode::kBadInput,
                {"place ", position, " of a sequence of ", length, length == 1 ? " element" : " elements"});
}

// Bounds the memory that a loop which doubles a sequence may take.
constexpr int64_t kMaxSequenceLength = 1 << 16;

Status BuiltinSequenceSplice(Call a, Instance&) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<Value>* const old, ElementsAt(a, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<Value>* replacement, ElementsAt(a, 3));
  const int64_t count = a.integer(2);
  INGOT_ASSIGN_OR_RETURN(const size_t place, PlaceIn(old->size(), a.integer(1), count));
  if (old->size() + replacement->size() > static_cast<size_t>(kMaxSequenceLength)) {
    return Status(StatusCode::kFailed, {"a sequence has at most ", kMaxSequenceLength, " elements"});
  }
  if (a.IsConsumed(0)) {  // it grows where it is: a loop that appends copies nothing
    a.tuple(0)->Splice(place, static_cast<size_t>(count), *replacement);
    a.set_result(Ref<Object>::Share(a.tuple(0)));
    return Status();
  }
  std::vector<Value> elements(old->begin(), old->begin() + static_cast<std::ptrdiff_t>(place));
  elements.insert(elements.end(), replacement->begin(), replacement->end());
  elements.insert(elements.end(), old->begin() + static_cast<std::ptrdiff_t>(place) + count, old->end());
  a.set_result(Ref<Object>::Adopt(new TupleObject(&a.pool(), ValueKind::kTuple, std::move(elements))));
  return Status();
}
Status BuiltinSequenceAt(Call a, Instance&) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<Value>* elements, ElementsAt(a, 0));
  INGOT_ASSIGN_OR_RETURN(const size_t place, PlaceIn(elements->size(), a.integer(1), 1));
  a.set_result((*elements)[place]);
  return Status();
}
Status BuiltinSequenceLength(Call a, Instance&) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<Value>* elements, ElementsAt(a, 0));
  a.set_result(static_cast<int64_t>(elements->size()));
  return Status();
}

// Views of the tensors of the sequence that is argument i. Arguments i + 1 and i + 2 are the axis and whether it is a
// new one: then the views have an axis of extent 1 there.
Result<std::vector<TensorView>> TensorsAt(Call a, size_t i) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<Value>* elements, ElementsAt(a, i));
  const int64_t axis = a.integer(i + 1), added = a.flag(i + 2) ? 1 : 0;
  std::vector<TensorView> views;
  for (const Value& element : *elements) {
    const auto* tensor = std::get_if<Tensor>(&element);
    if (tensor == nullptr || axis < 0 || axis >= tensor->rank() + added || tensor->rank() + added > kMaxRank) {
      return Status(StatusCode::kBadInput, {"axis ", axis, " of ", DescribeValue(element)});
    }
    std::vector<int64_t> dims(tensor->dims().begin(), tensor->dims().end());
    std::vector<int64_t> strides(tensor->strides().begin(), tensor->strides().end());
    if (added != 0) {
      dims.insert(dims.begin() + axis, 1);
      strides.insert(strides.begin() + axis, 1);
    }
    const int64_t* const gaps = tensor->is_compact() ? nullptr : strides.data();
    INGOT_ASSIGN_OR_RETURN(views.emplace_back(),
                           TensorView::Make(tensor->data(), tensor->dtype(), dims, gaps, tensor->device()));
  }
  if (views.empty()) return Status(StatusCode::kBadInput, "a sequence without elements");
  return views;
}

// Computes the dims of the concatenation from the first tensor, and the sum of the extents along the axis; whether the
// other dims agree is checked by the concatenation itself.
Status BuiltinSequenceConcatDims(Call a, Instance&) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<TensorView> views, TensorsAt(a, 0));
  std::vector<int64_t> dims(views[0].shape().begin(), views[0].shape().end());
  const auto axis = static_cast<size_t>(a.integer(1));
  dims[axis] = 0;
  for (const TensorView& view : views) {
    const bool fits = view.rank == views[0].rank && !__builtin_add_overflow(dims[axis], view.dims[axis], &dims[axis]);
    if (!fits) return Status(StatusCode::kBadInput, {view.TypeToString(), " beside ", views[0].TypeToString()});
  }
  a.set_result(ShapeValue{std::move(dims)});
  return Status();
}
Status BuiltinSequenceConcat(Call a, Instance&) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<TensorView> views, TensorsAt(a, 1));
  return host::Concat(views, a.integer(2), a.tensor(0), a.poll());
}

}  // namespace

Status RunBuiltin(Builtin builtin, BuiltinCall& call, Instance& instance) {
  switch (builtin) {
#define INGOT_BUILTIN(number, Name, text, semantics, ...) \
  case Builtin::k##Name:                                  \
    return Builtin##Name(call, instance);
#include "vm/program/builtins.def"
  }
  INGOT_UNREACHABLE();
}

}  // namespace ingot::vm
