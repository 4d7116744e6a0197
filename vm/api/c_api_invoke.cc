// The C API, the warm way to call: tensors that the caller owns, in and out. This file is compiled for speed; the
// failures are marked cold.
#include "runtime/tensor_view.h"
#include "vm/api/c_api_types.h"

namespace ingot::capi {
namespace {

[[gnu::cold]] Status InUse() {
  return Status(StatusCode::kInvalidArgument,
                "the context is in use: an asynchronous invocation was started and not waited for");
}

[[gnu::cold]] Status Runs() {
  return Status(StatusCode::kInvalidArgument, "the context runs: this is a call from inside of its invocation");
}

[[gnu::cold]] Status ForeignFunction() {
  return Status(StatusCode::kInvalidArgument, "the function belongs to another executable than the context");
}

[[gnu::cold]] Status AtIndex(Status status, const char* what, size_t index) {
  return std::move(status).WithContext({what, " ", index});
}

}  // namespace

Status CheckIdle(const ingot_context* context) {
  if (context == nullptr) return NullArgument("context");
  if (context->task != nullptr) return InUse();
  return context->context->is_running() ? Runs() : Status();
}

Status CheckCall(const ingot_context* context, const ingot_function* function) {
  INGOT_RETURN_IF_ERROR(CheckIdle(context));
  if (function == nullptr) return NullArgument("function");
  const auto& functions = context->context->opened().program().functions;
  const auto address = reinterpret_cast<uintptr_t>(function->function);
  const auto begin = reinterpret_cast<uintptr_t>(functions.data());
  const auto end = reinterpret_cast<uintptr_t>(functions.data() + functions.size());
  if (address < begin || address >= end) return ForeignFunction();
  context->context->ForgetFailurePlace();
  return Status();
}

Status ViewTensors(const ingot_dl_tensor* const* tensors, size_t count, const char* what,
                   std::vector<TensorView>* views) {
  if (tensors == nullptr && count > 0) return NullArgument(what);
  views->resize(count);  // what is there is overwritten
  for (size_t i = 0; i < count; ++i) {
    if (tensors[i] == nullptr) return NullArgument(what);
    Status status = AssignFromDLTensor(*tensors[i], (*views)[i]);
    if (!status.ok()) return AtIndex(std::move(status), what, i);
  }
  return Status();
}

}  // namespace ingot::capi

using namespace ingot;        // NOLINT: this file implements a C header
using namespace ingot::capi;  // NOLINT

extern "C" {

ingot_status* ingot_invoke_into(ingot_context* context, const ingot_function* function,
                                const ingot_dl_tensor* const* inputs, size_t num_inputs,
                                ingot_dl_tensor* const* outputs, size_t num_outputs) {
  return GuardCall(context, function, [&]() -> Status {
    if (num_inputs > 0) INGOT_RETURN_IF_ERROR(ViewTensors(inputs, num_inputs, "input", &context->inputs));
    if (num_outputs > 0) INGOT_RETURN_IF_ERROR(ViewTensors(outputs, num_outputs, "output", &context->outputs));
    return context->context->InvokeInto(*function->function, {context->inputs.data(), num_inputs},
                                        {context->outputs.data(), num_outputs});
  });
}

}  // extern "C"
