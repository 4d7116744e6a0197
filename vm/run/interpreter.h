// Interpreter: runs linked code: the loop, and calls from one function of the program into another. It relies on what
// the verifier proved. What is left to check (dims that were not known, arithmetic, indexes, memory, the depth of
// calls, cancelling and fuel) is checked by its parts:
//   FrameStack        the frames of the functions that run
//   Activations       arenas and argument arrays
//   CallArguments     the way of arguments into a frame
//   CallResults       the way of results out of the outermost frame
//   KernelCalls       kernels, their workspace and failures
//   InstructionSteps  an instruction that stays in its frame; OutsideCalls: builtins and external functions
//   Observers         profiler, instrument, the search for NaN
#pragma once

#include <span>
#include <vector>

#include "vm/run/activations.h"
#include "vm/run/call_arguments.h"
#include "vm/run/call_environment.h"
#include "vm/run/call_results.h"
#include "vm/run/frame_stack.h"
#include "vm/run/instruction_steps.h"
#include "vm/run/kernel_calls.h"
#include "vm/run/observers.h"

namespace ingot::vm {

class Interpreter {
 public:
  explicit Interpreter(const CallEnvironment& environment);

  // One invocation, under limits that were started. Whatever its outcome, no frames are left.
  Status Invoke(const LinkedFunction& linked, std::span<const Value> arguments, std::vector<Value>* results);
  // `outputs` is empty, or has a tensor for each result.
  Status InvokeInto(const LinkedFunction& linked, std::span<const TensorView> inputs,
                    std::span<const TensorView> outputs);

  KernelCalls& kernels() { return kernels_; }
  Observers& observers() { return observers_; }

 private:
  template <typename Body>
  Status Guarded(Body body);
  Status CaughtInCall();
  // Runs the outermost function, whose arguments are in its frame.
  Status Run();
  template <bool kObserved>
  Status Loop();
  Status StepObserved(const LinkedInstruction& op, const CallRecord& record, int64_t* frame);

  // Calls within the program.
  // Binds the arguments in the record's frame and gets its activation.
  Status Begin(CallRecord& record);
  // Pushes the callee's frame with these arguments in its last parameters.
  Status PushCallee(const LinkedFunction& callee, IdList<FrameOffset> args, IdList<RegisterId> source_args);
  // Removes the callee's frame after a failure to begin its call, so that the failure is reported in the caller.
  Status PopOnFailure(Status status);
  Status EnterFunction(const op::CallFunction<FrameOffset>& in, const op::CallFunction<>& source);
  Status EnterClosure(const op::CallClosure<FrameOffset>& in, const op::CallClosure<>& source);
  // Copies the results into the caller's registers and removes the frame.
  void Leave(IdList<FrameOffset> values, IdList<RegisterId> source_values);

  const CallEnvironment environment_;
  FrameStack frames_;
  Activations activations_;
  CallArguments arguments_;
  CallResults results_;
  KernelCalls kernels_;
  InstructionSteps steps_;
  Observers observers_;
};

}  // namespace ingot::vm
