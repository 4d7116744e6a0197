// The C API, states of a context: listed, copied out, set and reset.
#include <map>

#include "runtime/dlpack.h"
#include "runtime/suggest.h"
#include "vm/api/c_api_types.h"

namespace ingot::capi {
namespace {

Result<vm::StateId> FindState(const ingot_context* context, const char* name) {
  INGOT_RETURN_IF_ERROR(CheckIdle(context));
  if (name == nullptr) return NullArgument("name");
  const std::vector<vm::State>& states = context->context->executable().program().states;
  std::vector<std::string_view> names;
  for (uint32_t i = 0; i < states.size(); ++i) {
    if (states[i].name == name) return vm::StateId(i);
    names.push_back(states[i].name);
  }
  return Status(StatusCode::kNotFound,
                {context->context->executable().name(), ": there is no state \"", name, "\"", DidYouMean(name, names)});
}

}  // namespace
}  // namespace ingot::capi

using namespace ingot;        // NOLINT: this file implements a C header
using namespace ingot::capi;  // NOLINT

extern "C" {

size_t ingot_executable_state_count(const ingot_executable* executable) {
  return executable == nullptr ? 0 : executable->executable->program().states.size();
}
const char* ingot_executable_state_name(const ingot_executable* executable, size_t index) {
  if (index >= ingot_executable_state_count(executable)) return nullptr;
  return executable->executable->program().states[index].name.c_str();
}

ingot_status* ingot_context_get_state(const ingot_context* context, const char* name,
                                      ingot_dl_managed_tensor_versioned** tensor) {
  GiveNull(tensor);
  return Guard([&]() -> Status {
    if (tensor == nullptr) return NullArgument("tensor");
    INGOT_ASSIGN_OR_RETURN(const vm::StateId id, FindState(context, name));
    INGOT_ASSIGN_OR_RETURN(const Tensor copy, context->context->CopyState(id));
    INGOT_ASSIGN_OR_RETURN(*tensor, ExportDLPackVersioned(copy));
    return Status();
  });
}

ingot_status* ingot_context_set_state(ingot_context* context, const char* name, const ingot_dl_tensor* tensor) {
  return Guard([&]() -> Status {
    if (tensor == nullptr) return NullArgument("tensor");
    INGOT_ASSIGN_OR_RETURN(const vm::StateId id, FindState(context, name));
    INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewFromDLTensor(*tensor));
    return context->context->SetState(id, view);
  });
}

ingot_status* ingot_context_set_states(ingot_context* context, const char* const* names,
                                       const ingot_dl_tensor* const* tensors, size_t count) {
  return Guard([&]() -> Status {
    INGOT_RETURN_IF_ERROR(CheckIdle(context));
    std::map<std::string, TensorView> values;
    for (size_t i = 0; i < count; ++i) {
      if (names == nullptr || names[i] == nullptr) return NullArgument("names");
      if (tensors == nullptr || tensors[i] == nullptr) return NullArgument("tensors");
      Result<TensorView> view = ViewFromDLTensor(*tensors[i]);
      if (!view.ok()) return std::move(view).status().WithContext({"state \"", names[i], "\""});
      if (!values.emplace(names[i], *view).second) {
        return Status(StatusCode::kInvalidArgument, {"state \"", names[i], "\" is given twice"});
      }
    }
    return context->context->SetStates(values);
  });
}

ingot_status* ingot_context_reset_states(ingot_context* context) {
  return Guard([&]() -> Status {
    INGOT_RETURN_IF_ERROR(CheckIdle(context));
    return context->context->ResetStates();
  });
}

}  // extern "C"
