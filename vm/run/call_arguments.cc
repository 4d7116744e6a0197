// The way of arguments into a frame. This file is compiled for speed; what a warm call of tensors does not need is
// marked cold.
#include "vm/run/call_arguments.h"

#include <algorithm>

#include "vm/program/limits.h"
#include "vm/run/call_failures.h"
#include "vm/run/frame_words.h"
#include "vm/run/register_values.h"
#include "vm/verify/type_rules.h"

namespace ingot::vm {
namespace {

bool IsAligned(const void* data, int64_t power_of_two) {
  return (reinterpret_cast<uintptr_t>(data) & static_cast<uintptr_t>(power_of_two - 1)) == 0;
}

// The dims of a parameter that is a tensor or a shape.
const int64_t* ExtentsOf(const LinkedFunction& linked, const int64_t* frame, size_t parameter) {
  const Signature& signature = linked.function->signature;
  const int64_t* slot = frame + linked.frame.offsets[signature.symbols.size() + parameter];
  return signature.params[parameter].type.is_tensor() ? slot + kTensorHeadWords : slot;
}

}  // namespace

// ---- arguments from outside

[[gnu::cold]] Status CallArguments::Place(const LinkedFunction& linked, int64_t* frame,
                                          std::span<const Value> arguments) {
  const size_t num_symbols = linked.function->signature.symbols.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    INGOT_RETURN_IF_ERROR(PlaceValue(linked, i, arguments[i], frame + linked.frame.offsets[num_symbols + i]));
  }
  return Status();
}

Status CallArguments::Place(const LinkedFunction& linked, int64_t* frame, std::span<const TensorView> arguments) {
  const Signature& signature = linked.function->signature;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!signature.params[i].type.is_tensor()) return ParameterMismatch(*linked.function, i, "a tensor");
    int64_t* const slot = frame + linked.frame.offsets[signature.symbols.size() + i];
    INGOT_RETURN_IF_ERROR(PlaceTensor(linked, i, arguments[i], slot));
  }
  return Status();
}

[[gnu::cold]] Status CallArguments::PlaceValue(const LinkedFunction& linked, size_t parameter, const Value& value,
                                               int64_t* slot) {
  const Type& type = linked.function->signature.params[parameter].type;
  if (type.is_tensor()) {
    const auto* tensor = std::get_if<Tensor>(&value);
    if (tensor == nullptr || !*tensor) return ParameterMismatch(*linked.function, parameter, DescribeValue(value));
    return PlaceTensor(linked, parameter, tensor->view(), slot);
  }
  // Dims are left out here; they are compared once the symbols are bound.
  Type loose = type;
  const std::vector<Dim> unknown(linked.function->signature.symbols.size());
  loose = SubstituteSymbols(loose, unknown);
  if (type.kind == ValueKind::kShape) loose.dims = std::vector<Dim>(type.dims.size());
  if (!HasType(value, loose, {}, devices_.ids()))
    return ParameterMismatch(*linked.function, parameter, DescribeValue(value));
  return Unbox(devices_, type, slot, value);
}

Status CallArguments::PlaceTensor(const LinkedFunction& linked, size_t parameter, const TensorView& view,
                                  int64_t* slot) {
  const Type& type = linked.function->signature.params[parameter].type;
  const DeviceId device = devices_.id(type.device);
  const bool is_reachable = IsReachable(view.device, device);
  const bool is_taken = view.dtype == type.dtype && view.rank == type.rank() && is_reachable && view.is_compact &&
                        IsAligned(view.data, linked.parameters[parameter].alignment) &&
                        !(view.is_read_only && type.storage == Storage::kBorrowedMut);
  if (!is_taken) return PlaceCopy(linked, parameter, view, is_reachable, slot);
  WriteTensor(slot, view.data, nullptr, view.shape());
  return Status();
}

// Copies an argument that fits its parameter but is strided or not aligned; every other mismatch is a failure.
[[gnu::cold]] Status CallArguments::PlaceCopy(const LinkedFunction& linked, size_t parameter, const TensorView& view,
                                              bool is_reachable, int64_t* slot) {
  const NamedType& param = linked.function->signature.params[parameter];
  const Type& type = param.type;
  const bool is_written = type.storage == Storage::kBorrowedMut;
  std::string got;
  if (view.dtype != type.dtype || view.rank != type.rank()) {
    got = view.TypeToString();
  } else if (!is_reachable && !devices_.copies_tensors()) {
    got = StrCat({view.TypeToString(), " on ", view.device.ToString()});
    if (Devices::kHaveCode) StrAppend(got, {", and the parameter is on ", devices_.id(type.device).ToString()});
  } else if (is_written && view.is_read_only) {
    got = "a read-only tensor";
  }
  if (!got.empty()) return ParameterMismatch(*linked.function, parameter, got);
  Result<Tensor> copy = CopyToOwned(devices_, view, type.device, /*may_be_later=*/!is_written);
  if (!copy.ok()) {
    return std::move(copy).status().WithContext(
        {"function \"", linked.function->name, "\", a compact copy of parameter \"", param.name, "\""});
  }
  Tensor staged = *std::move(copy);
  WriteTensor(slot, staged.data(), nullptr, view.shape());
  if (is_written) write_backs_.push_back({staged.view(), view});
  staged_.push_back(std::move(staged));
  return Status();
}

Status CallArguments::CheckWritten(const LinkedFunction& linked, const int64_t* frame) const {
  const Function& function = *linked.function;
  const std::vector<NamedType>& params = function.signature.params;
  const auto view_of = [&](size_t i) {
    return ViewOf(devices_, params[i].type, frame + linked.frame.offsets[function.signature.symbols.size() + i]);
  };
  for (size_t i = 0; i < params.size(); ++i) {
    if (!params[i].type.is_tensor() || params[i].type.storage != Storage::kBorrowedMut) continue;
    INGOT_ASSIGN_OR_RETURN(const TensorView written, view_of(i));
    for (size_t k = 0; k < params.size(); ++k) {
      if (k == i || !params[k].type.is_tensor()) continue;
      INGOT_ASSIGN_OR_RETURN(const TensorView other, view_of(k));
      if (Overlap(written, other))
        return ParameterMismatch(function, i, StrCat({"a tensor that overlaps parameter \"", params[k].name, "\""}));
    }
  }
  return Status();
}

Status CallArguments::WriteBack() const {
  for (const Copy& back : write_backs_) INGOT_RETURN_IF_ERROR(devices_.CopyTensor(back.from, back.to));
  return write_backs_.empty() ? Status() : devices_.WaitForCopies();
}

// ---- symbols and dims

// Applies the rules that bind symbols, or those that compare.
template <bool kBinds>
Status CallArguments::ApplyRules(const LinkedFunction& linked, int64_t* frame) const {
  const Signature& signature = linked.function->signature;
  for (size_t p = 0; p < linked.parameters.size(); ++p) {
    const std::vector<DimRule>& rules = linked.parameters[p].dims;
    const int64_t* const extents = ExtentsOf(linked, frame, p);
    for (size_t axis = 0; axis < rules.size(); ++axis) {
      const DimRule& rule = rules[axis];
      if (rule.kind == DimRule::Kind::kAny || (rule.kind == DimRule::Kind::kBind) != kBinds) continue;
      const int64_t extent = extents[axis];
      int64_t expected = rule.value;
      if constexpr (kBinds) {
        const Symbol& symbol = signature.symbols[static_cast<size_t>(rule.value)];
        frame[rule.value] = extent;  // symbols are the first words of a frame
        if (extent >= symbol.min && extent <= std::min(symbol.max, kMaxBoundDim)) continue;
      } else if (rule.kind == DimRule::Kind::kCompare) {
        INGOT_ASSIGN_OR_RETURN(expected, rule.code.Evaluate({frame, signature.symbols.size()}));
      }
      if (kBinds || expected != extent) return DimMismatch(linked, p, extents, axis, expected);
    }
  }
  return Status();
}
template Status CallArguments::ApplyRules<true>(const LinkedFunction&, int64_t*) const;
template Status CallArguments::ApplyRules<false>(const LinkedFunction&, int64_t*) const;

Status CallArguments::BindStates(const LinkedFunction& linked, int64_t* frame) const {
  const Signature& signature = linked.function->signature;
  for (size_t i = 0; i < signature.symbols.size(); ++i) {
    const Symbol& symbol = signature.symbols[i];
    if (!symbol.state) continue;
    const int64_t value = *static_cast<const int64_t*>(states_[symbol.state->value].data());
    frame[i] = value;
    if (value >= symbol.min && value <= symbol.max) continue;
    return StateOutsideOfRange(*linked.function, symbol, executable_.program().states[symbol.state->value], value);
  }
  return Status();
}

// Checks tuples and optionals against their types, with the dims of their elements, now that the symbols are bound.
[[gnu::cold]] Status CallArguments::CheckObjects(const LinkedFunction& linked, const int64_t* frame) const {
  const Signature& signature = linked.function->signature;
  const size_t num_symbols = signature.symbols.size();
  for (size_t p = 0; p < signature.params.size(); ++p) {
    const Type& type = signature.params[p].type;
    if (type.kind != ValueKind::kTuple && type.kind != ValueKind::kOptional) continue;
    const Value value = Ref<Object>::Share(ObjectOf(frame[linked.frame.offsets[num_symbols + p]]));
    if (!HasType(value, type, {frame, num_symbols}, devices_.ids()))
      return ParameterMismatch(*linked.function, p, DescribeValue(value));
  }
  return Status();
}

}  // namespace ingot::vm
