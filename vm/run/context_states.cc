// States, which a context keeps between invocations. They are created with the context, and reset, read and replaced by
// callers; the functions of the executable read and write them by instructions. A part of vm/run/context.h.
//
// A state that grows is a buffer of its full capacity. Callers see it with the dims that its length state gives, and
// read and write tensors of these dims.
#include <algorithm>
#include <cstring>

#include "runtime/suggest.h"
#include "vm/run/context.h"

namespace ingot::vm {
namespace {

// A view of the tensor's first elements along each axis, as many as dims says. Allocates nothing.
Result<TensorView> FirstElements(const TensorView& whole, std::span<const int64_t> dims) {
  return TensorView::Make(whole.data, whole.dtype, dims, whole.strides.data(), whole.device);
}

}  // namespace

Status Context::CreateStates() {
  for (const State& state : executable_->program().states) {
    int64_t count = 1;
    for (int64_t dim : state.dims) count *= dim;  // the verifier proved that this does not overflow
    INGOT_ASSIGN_OR_RETURN(const int64_t bytes, state.dtype.SizeBytes(count));
    Result<Ref<ingot::Storage>> storage = devices_.pool(state.device).AllocateStorage(bytes);
    if (!storage.ok()) return std::move(storage).status().WithContext({"state \"", state.name, "\""});
    INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::InStorage(*std::move(storage), state.dtype, state.dims));
    states_.push_back(std::move(tensor));
    INGOT_RETURN_IF_ERROR(ResetState(StateId(static_cast<uint32_t>(states_.size() - 1))));
  }
  for (const State& state : executable_->program().states) {
    if (state.growth) lengths_.emplace_back(static_cast<int64_t*>(states_[state.growth->length.value].data()), 0);
  }
  return Status();
}

Status Context::ResetState(StateId id) {
  const State& state = executable_->program().states[id.value];
  const Tensor& tensor = states_[id.value];
  Device& device = devices_.device(state.device);
  if (tensor.size_bytes() == 0) return Status();
  if (state.initial) {
    const Constant& initial = executable_->program().constants[state.initial->value];
    return device.CopyFromHost(tensor.data(), initial.bytes.data(), tensor.size_bytes(), {});
  }
  return devices_.ZeroMemory(state.device, tensor.data(), tensor.size_bytes());
}

// Fails during an invocation: an external function may not change the states that the running invocation reads.
Status Context::CheckNotRunning() const {
  if (!running_) return Status();
  return Status(StatusCode::kInvalidArgument, "the context is running; its states are in use");
}

Status Context::ResetStates() {
  INGOT_RETURN_IF_ERROR(CheckNotRunning());
  const std::vector<State>& states = executable_->program().states;
  for (uint32_t i = 0; i < states_.size(); ++i) {
    // The elements of a cache have no meaning once its length is reset, so only an initial value is written.
    if (!states[i].growth || states[i].initial) INGOT_RETURN_IF_ERROR(ResetState(StateId(i)));
  }
  return Status();
}

std::vector<int64_t> Context::StateDims(StateId id) const {
  const State& state = executable_->program().states[id.value];
  std::vector<int64_t> dims = state.dims;
  if (state.growth) {
    const int64_t length = *static_cast<const int64_t*>(states_[state.growth->length.value].data());
    int64_t& dim = dims[state.growth->axis];
    dim = std::clamp<int64_t>(length, 0, dim);  // the length state may hold any number
  }
  return dims;
}

Result<Tensor> Context::CopyState(StateId id) const {
  const State& state = executable_->program().states[id.value];
  const std::vector<int64_t> dims = StateDims(id);
  INGOT_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(state.dtype, dims));
  if (copy.size_bytes() == 0) return copy;
  const Device& device = devices_.device(state.device);
  if (device.id().is_host_accessible()) {
    INGOT_ASSIGN_OR_RETURN(const TensorView view, FirstElements(states_[id.value].view(), dims));
    INGOT_RETURN_IF_ERROR(CopyElements(view, copy.view()));
    return copy;
  }
  INGOT_ASSIGN_OR_RETURN(const Tensor whole, Tensor::Allocate(state.dtype, state.dims));
  INGOT_RETURN_IF_ERROR(
      devices_.device(state.device).CopyToHost(whole.data(), states_[id.value].data(), whole.size_bytes(), {}));
  INGOT_RETURN_IF_ERROR(devices_.device(state.device).Synchronize({}));
  INGOT_ASSIGN_OR_RETURN(const TensorView view, FirstElements(whole.view(), dims));
  INGOT_RETURN_IF_ERROR(CopyElements(view, copy.view()));
  return copy;
}

Status Context::CheckStateValue(StateId id, const TensorView& value, const std::vector<int64_t>& dims) const {
  const State& state = executable_->program().states[id.value];
  if (value.dtype == state.dtype && std::ranges::equal(value.shape(), dims) && value.device.is_host_accessible()) {
    return Status();
  }
  return Status(StatusCode::kBadInput, {executable_->name(), ": state \"", state.name, "\": expected ",
                                        ShapeToString(state.dtype, dims), ", got ", value.TypeToString()});
}

// Host memory for the largest of the states that the host does not reach.
std::vector<std::byte> Context::StagingMemory() const {
  int64_t bytes = 0;
  for (const Tensor& state : states_) {
    if (!state.view().device.is_host_accessible()) bytes = std::max(bytes, state.size_bytes());
  }
  return std::vector<std::byte>(static_cast<size_t>(bytes));
}

// Takes no memory, so that states that are set together are all written.
Status Context::WriteState(StateId id, const TensorView& value, std::byte* staging) {
  if (value.num_elements == 0) return Status();
  const Tensor& state = states_[id.value];
  TensorView whole = state.view();
  const bool is_reached = whole.device.is_host_accessible();
  if (!is_reached) {
    std::memset(staging, 0, static_cast<size_t>(state.size_bytes()));
    whole.data = staging;
    whole.device = DeviceId();
  }
  INGOT_ASSIGN_OR_RETURN(const TensorView view, FirstElements(whole, value.shape()));
  INGOT_RETURN_IF_ERROR(CopyElements(value, view));
  if (is_reached) return Status();
  Device& device = devices_.device(executable_->program().states[id.value].device);
  INGOT_RETURN_IF_ERROR(device.CopyFromHost(state.data(), staging, state.size_bytes(), {}));
  return device.Synchronize({});
}

Status Context::SetState(StateId id, const TensorView& value) {
  INGOT_RETURN_IF_ERROR(CheckNotRunning());
  INGOT_RETURN_IF_ERROR(CheckStateValue(id, value, StateDims(id)));
  return WriteState(id, value, StagingMemory().data());
}

Status Context::SetStates(const std::map<std::string, TensorView>& values) {
  const std::vector<State>& states = executable_->program().states;
  const auto fail = [&](Text what) { return Status(StatusCode::kBadInput, {executable_->name(), ": ", what}); };
  INGOT_RETURN_IF_ERROR(CheckNotRunning());
  std::vector<std::string_view> names;
  for (const State& state : states) names.push_back(state.name);
  for (const auto& [name, value] : values) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return fail({"there is no state \"", name, "\"", DidYouMean(name, names)});
    }
  }
  // Everything is checked before anything is written; the lengths are those that come with the values.
  for (uint32_t i = 0; i < states.size(); ++i) {
    const auto found = values.find(states[i].name);
    if (found == values.end()) return fail({"the state \"", states[i].name, "\" is missing"});
    std::vector<int64_t> dims = states[i].dims;
    if (states[i].growth) {
      const auto length = values.find(states[states[i].growth->length.value].name);
      if (length == values.end()) continue;  // reported in its own turn
      INGOT_RETURN_IF_ERROR(CheckStateValue(states[i].growth->length, length->second, {}));
      int64_t filled = 0;
      std::memcpy(&filled, length->second.data, sizeof filled);  // the caller's memory may have any alignment
      int64_t& dim = dims[states[i].growth->axis];
      if (filled < 0 || filled > dim) {
        return fail({"state \"", states[i].name, "\" holds ", dim, " at most, not ", filled});
      }
      dim = filled;
    }
    INGOT_RETURN_IF_ERROR(CheckStateValue(StateId(i), found->second, dims));
  }
  std::vector<std::byte> staging = StagingMemory();
  for (uint32_t i = 0; i < states.size(); ++i) {
    INGOT_RETURN_IF_ERROR(WriteState(StateId(i), values.at(states[i].name), staging.data()));
  }
  return Status();
}

}  // namespace ingot::vm
