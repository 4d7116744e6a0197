// Invocations: what surrounds a run of the interpreter. This file is compiled for speed.
#include "vm/run/call_failures.h"
#include "vm/run/context.h"
#include "vm/run/interpreter.h"

namespace ingot::vm {

inline Status Context::Start(const std::atomic<bool>* cancelled) {
  if (running_) return RunsAlready();
  ForgetFailurePlace();
  INGOT_RETURN_IF_ERROR(limits_.Start(cancelled));
  for (auto& [length, before] : lengths_) before = *length;
  running_ = true;
  return Status();
}

inline Status Context::Stop(Status status) {
  limits_.Stop();
  running_ = false;
  if (status.ok()) return Status();
  RestoreLengths();
  return InFile(std::move(status), *executable_);
}

inline const LinkedFunction& Context::LinkedOf(const Function& function) const {
  auto index = static_cast<size_t>(&function - opened().program().functions.data());
#ifdef INGOT_CUDA
  if (opened_ != nullptr) index = functions_[index];
#endif
  return *executable_->linked().functions[index];
}

Result<std::vector<Value>> Context::Invoke(const Function& function, std::span<const Value> arguments,
                                           const std::atomic<bool>* cancelled) {
  INGOT_RETURN_IF_ERROR(Start(cancelled));
  std::vector<Value> results;
  INGOT_RETURN_IF_ERROR(Stop(interpreter_->Invoke(LinkedOf(function), arguments, &results)));
  return results;
}

Status Context::InvokeInto(const Function& function, std::span<const TensorView> inputs,
                           std::span<const TensorView> outputs, const std::atomic<bool>* cancelled) {
  INGOT_RETURN_IF_ERROR(Start(cancelled));
  return Stop(interpreter_->InvokeInto(LinkedOf(function), inputs, outputs));
}

}  // namespace ingot::vm
