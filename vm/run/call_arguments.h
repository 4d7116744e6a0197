// CallArguments: binds a call's arguments: those from outside are compared with the parameters and stored in the frame,
// or copies of them where kernels could not work on their memory; then, as in calls within the program, dims bind the
// function's symbols and are compared.
#pragma once

#include <span>
#include <vector>

#include "vm/link/linked_program.h"
#include "vm/run/call_environment.h"
#include "vm/run/value.h"

namespace ingot::vm {

class CallArguments {
 public:
  explicit CallArguments(const CallEnvironment& environment)
      : executable_(environment.executable), devices_(environment.devices), states_(environment.states) {}

  // Stores arguments from outside, in the order of the parameters and as many, in a frame whose symbols are not bound.
  Status Place(const LinkedFunction& linked, int64_t* frame, std::span<const Value> arguments);
  Status Place(const LinkedFunction& linked, int64_t* frame, std::span<const TensorView> arguments);
  // Binds symbols to the dims of the parameters, which are in the frame, and to states, and compares the other dims.
  Status Bind(const LinkedFunction& linked, int64_t* frame) const;
  // Refuses a written parameter that overlaps another one: native code relies on it.
  Status CheckWritten(const LinkedFunction& linked, const int64_t* frame) const;

  // Copies what the function wrote into copies of arguments to the arguments themselves.
  Status WriteBack() const;
  void Clear() {
    if (Devices::kHaveCode && !staged_.empty()) devices_.ForgetCopies();
    staged_.clear();
    write_backs_.clear();
  }

 private:
  struct Copy {
    TensorView from;
    TensorView to;
  };
  Status PlaceValue(const LinkedFunction& linked, size_t parameter, const Value& value, int64_t* slot);
  Status PlaceTensor(const LinkedFunction& linked, size_t parameter, const TensorView& view, int64_t* slot);
  Status PlaceCopy(const LinkedFunction& linked, size_t parameter, const TensorView& view, bool is_reachable,
                   int64_t* slot);
  template <bool kBinds>
  Status ApplyRules(const LinkedFunction& linked, int64_t* frame) const;
  Status BindStates(const LinkedFunction& linked, int64_t* frame) const;
  Status CheckObjects(const LinkedFunction& linked, const int64_t* frame) const;

  const Executable& executable_;
  const Devices& devices_;
  const std::vector<Tensor>& states_;
  std::vector<Tensor> staged_;     // copies of arguments
  std::vector<Copy> write_backs_;  // of parameters that the function writes
};

inline Status CallArguments::Bind(const LinkedFunction& linked, int64_t* frame) const {
  const bool has_symbols = !linked.function->signature.symbols.empty();
  if (has_symbols && !states_.empty()) INGOT_RETURN_IF_ERROR(BindStates(linked, frame));
  // Dims that are lone symbols are bound first; then the other dims are compared.
  if (has_symbols) INGOT_RETURN_IF_ERROR(ApplyRules<true>(linked, frame));
  if (!linked.parameters.empty()) INGOT_RETURN_IF_ERROR(ApplyRules<false>(linked, frame));
  return linked.counted.empty() ? Status() : CheckObjects(linked, frame);
}

}  // namespace ingot::vm
