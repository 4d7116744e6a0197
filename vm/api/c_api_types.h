// The structs behind the C API's opaque types, and how its functions report failures. Shared by the files that
// implement ingot.h alone. No exception of C++ leaves a Guard.
#pragma once

#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "ingot/ingot.h"
#include "runtime/caught_status.h"
#include "vm/run/context.h"
#include "vm/run/executable.h"

struct ingot_status {
  ingot::StatusCode code;
  std::string message;
  std::string function;
  std::string location;
};

struct ingot_instance {
  ingot_instance_options options;
  std::shared_ptr<ingot::vm::Instance> instance;
};

struct ingot_type {
  const ingot::vm::Type* type;
  std::string text;
  std::vector<std::string> dims;
  std::vector<std::unique_ptr<ingot_type>> elements;
};

struct ingot_function {
  const ingot::vm::Function* function;
  std::string signature;
  std::vector<std::unique_ptr<ingot_type>> inputs;
  std::vector<std::unique_ptr<ingot_type>> outputs;
};

// The handles live as long as the executable or one of its contexts.
using FunctionHandles = std::vector<std::unique_ptr<ingot_function>>;

struct ingot_golden_cases;  // vm/api/c_api_golden.cc

// Keeps the runtime's instance alive; contexts keep the runtime's executable alive.
struct ingot_executable {
  std::shared_ptr<const ingot::vm::Executable> executable;
  std::shared_ptr<const FunctionHandles> functions;  // the exported ones
  std::unique_ptr<ingot_golden_cases> golden;        // read when they are first asked for
  std::mutex golden_mutex;
  ingot_executable();
  ~ingot_executable();
};

struct ingot_context {
  std::unique_ptr<ingot::vm::Context> context;
  std::shared_ptr<const FunctionHandles> functions;  // which calls name
  // For ingot_invoke_into: kept, so that warm calls allocate nothing.
  std::vector<ingot::TensorView> inputs;
  std::vector<ingot::TensorView> outputs;
  // For ingot_context_set_input, ingot_context_run and ingot_context_get_output.
  const ingot_function* function = nullptr;
  std::vector<std::optional<ingot::vm::Value>> set_inputs;
  std::vector<ingot::vm::Value> results;
  // The asynchronous invocation that has the context, until it is waited for.
  ingot_task* task = nullptr;
};

namespace ingot::capi {

// Makes a status for the caller: null for success, never null for a failure, even without memory for the message.
ingot_status* ToStatus(Status status, const vm::FailurePlace* place = nullptr);

// Runs a function that gives a Status, and reports it; running out of memory in it is a status too.
ingot_status* GuardClosure(Status (*call)(void* closure), void* closure);
template <typename Function>
ingot_status* Guard(Function function) {
  return GuardClosure([](void* closure) { return (*static_cast<Function*>(closure))(); }, &function);
}

inline Status NullArgument(const char* name) {
  return Status(StatusCode::kInvalidArgument, {"the argument \"", name, "\" is NULL"});
}

// First of all in functions that give a pointer by its address: it is null after every failure.
template <typename T>
void GiveNull(T** out) {
  if (out != nullptr) *out = nullptr;
}

// Fails unless there is a context and no invocation uses it: neither an asynchronous one, nor one whose external
// function makes this call.
Status CheckIdle(const ingot_context* context);
// The same, and fails unless the function belongs to the context's executable. Begins a call: an earlier one's place of
// failure is forgotten.
Status CheckCall(const ingot_context* context, const ingot_function* function);

// Guard for calls: a failure carries the place where it happened.
template <typename Function>
ingot_status* GuardCall(ingot_context* context, const ingot_function* function, Function call) {
  try {
    Status status = CheckCall(context, function);
    if (!status.ok()) return ToStatus(std::move(status));
    status = call();
    if (status.ok()) return nullptr;
    return ToStatus(std::move(status), &context->context->failure_place());
  } catch (...) {
    return ToStatus(CaughtStatus());
  }
}

// Converts the arguments of a call; tensors are borrowed.
Result<std::vector<vm::Value>> ToValues(const ingot_value* arguments, size_t num_arguments);
// Converts results, all of them or none, and fails unless they fill the room. `invoked`: the context of the invocation
// that gave them just now, which has failed without them.
Status FromValues(std::span<const vm::Value> values, const std::shared_ptr<const void>& keep, ingot_value* out,
                  size_t room, vm::Context* invoked = nullptr);
// Fails unless the number of results is the function's.
Status CheckResultCount(const ingot_function* function, const ingot_value* results, size_t num_results);
Status ViewTensors(const ingot_dl_tensor* const* tensors, size_t count, const char* what,
                   std::vector<TensorView>* views);

// Copies an options struct of this or an older version of the header, which begins with its size; fields that an older
// one lacks keep the defaults.
Status CopyOptionBytes(const void* given, void* defaults, size_t size_bytes);
template <typename T>
Result<T> CopyOptions(const T* given, T defaults) {
  INGOT_RETURN_IF_ERROR(CopyOptionBytes(given, &defaults, sizeof(T)));
  return defaults;
}

}  // namespace ingot::capi
