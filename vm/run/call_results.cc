// Checks of the caller's outputs and copies into them. This file is compiled for speed.
#include "vm/run/call_results.h"

#include <algorithm>

#include "vm/run/call_failures.h"
#include "vm/run/frame_words.h"
#include "vm/run/register_values.h"

namespace ingot::vm {
namespace {

// Whether both are the same tensor in the same memory.
bool IsSame(const TensorView& a, const TensorView& b) {
  return a.data == b.data && a.dtype == b.dtype && a.rank == b.rank && a.dims == b.dims && a.strides == b.strides;
}

}  // namespace

Status CallResults::SetOutputs(const LinkedFunction& linked, const int64_t* frame, std::span<const TensorView> inputs,
                               std::span<const TensorView> outputs) {
  const Function& function = *linked.function;
  const std::span<const int64_t> symbols(frame, function.signature.symbols.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Type& type = function.signature.results[i].type;
    const TensorView& view = outputs[i];
    bool agrees = type.is_tensor() && view.dtype == type.dtype && view.rank == type.rank();
    for (size_t axis = 0; agrees && axis < type.dims.size(); ++axis) {
      if (!type.dims[axis]) continue;
      INGOT_ASSIGN_OR_RETURN(const int64_t expected, type.dims[axis]->Evaluate(symbols));
      agrees = view.dims[axis] == expected;
    }
    if (!agrees) return OutputMismatch(function, i, symbols, view);
    if (view.is_read_only) return OutputRefused(function, i, "the tensor is read-only");
    const bool is_taken = Devices::kHaveCode
                              ? devices_.copies_tensors() || IsReachable(view.device, devices_.id(type.device))
                              : view.device.is_host_accessible();
    if (!is_taken) return OutputElsewhere(function, i, view);
    for (size_t p = 0; p < inputs.size(); ++p) {
      if (!Overlap(view, inputs[p])) continue;
      const SharedOutput pair{static_cast<uint32_t>(i), static_cast<uint32_t>(p)};
      if (std::ranges::find(linked.shared_outputs, pair) != linked.shared_outputs.end() && IsSame(view, inputs[p])) {
        continue;
      }
      return OutputOverlaps(function, i, p);
    }
    for (size_t k = 0; k < i; ++k) {
      if (Overlap(view, outputs[k])) return OutputRefused(function, i, "the tensor overlaps another output");
    }
  }
  outputs_ = outputs;
  return Status();
}

// The tensor itself where the host reaches it, or a copy in the host's pool.
[[gnu::cold]] inline Status CallResults::BringToHost(Value& value) const {
  const Tensor& tensor = std::get<Tensor>(value);
  if (tensor.device().is_host_accessible()) return Status();
  INGOT_ASSIGN_OR_RETURN(Tensor copy, CopyToOwned(devices_, tensor.view(), 0));
  value = std::move(copy);
  return Status();
}

[[gnu::cold]] Status CallResults::Take(const LinkedFunction& linked, const int64_t* frame,
                                       std::vector<Value>* results) const {
  for (size_t i = 0; i < offsets_.size(); ++i) {
    const Type& type = linked.function->TypeOf(registers_[i]);
    INGOT_ASSIGN_OR_RETURN(Value value, Box(devices_, type, frame + offsets_[i]));
    if (devices_.copies_tensors() && type.is_tensor()) INGOT_RETURN_IF_ERROR(BringToHost(value));
    results->push_back(std::move(value));
  }
  return Status();
}

Status CallResults::CopyToOutputs(const LinkedFunction& linked, const int64_t* frame) {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const int64_t* slot = frame + offsets_[i];
    if (PointerOf(slot[0]) == outputs_[i].data && OwnerOf(slot) == nullptr) continue;  // written in place
    const Type& type = linked.function->TypeOf(registers_[i]);
    INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(devices_, type, slot));
    if (!std::ranges::equal(view.shape(), outputs_[i].shape())) {
      return ResultMismatch(*linked.function, i, view, outputs_[i]);
    }
    if (OwnerOf(slot) != nullptr) {
      copies_.push_back({view, outputs_[i]});
    } else {  // in another output, which may be written before this is read
      INGOT_RETURN_IF_ERROR(StageCopy(view, type, outputs_[i]));
    }
  }
  for (const Copy& copy : copies_) INGOT_RETURN_IF_ERROR(devices_.CopyTensor(copy.from, copy.to));
  return copies_.empty() ? Status() : devices_.WaitForCopies();
}

[[gnu::cold]] Status CallResults::StageCopy(const TensorView& view, const Type& type, const TensorView& output) {
  INGOT_ASSIGN_OR_RETURN(Tensor staged, CopyToOwned(devices_, view, type.device));
  copies_.push_back({staged.view(), output});
  staged_.push_back(std::move(staged));
  return Status();
}

}  // namespace ingot::vm
