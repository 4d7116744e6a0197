// Interpreter: runs linked code in a context. Frames are words on the context's stack, calls push a record: nothing
// recurses on the C stack. It relies on what the verifier proved and checks the rest: dims that were not known,
// arithmetic, indexes, memory, the depth of calls, cancellation and fuel.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "vm/run/builtin_call.h"
#include "vm/run/context.h"

namespace ingot::vm {

class Interpreter {
 public:
  explicit Interpreter(Context& context) : context_(context), builtin_call_({&context.interrupt_}) {}

  // An invocation calls Enter or EnterTensors, Run, TakeResults or CopyResults, and in any case Unwind.
  Status Enter(const LinkedFunction& linked, std::span<const Value> arguments);
  Status EnterTensors(const LinkedFunction& linked, std::span<const TensorView> inputs,
                      std::span<const TensorView> outputs);
  // `outputs` is empty, or has a tensor for each result of the function that was entered.
  Status Run(std::span<const TensorView> outputs);
  // Adds the place to a failure that left Run as an exception.
  Status AtPlace(Status status);
  Status TakeResults(std::vector<Value>* results);
  Status CopyResults(std::span<const TensorView> outputs);
  // Drops all frames that are left and what they hold.
  void Unwind();
  // The value in a register of any kind but a tensor.
  static Value BoxWords(const Type& type, const int64_t* slot);

 private:
  struct Record {
    const LinkedFunction* linked;
    int64_t base;  // of the frame, in words of the stack
    Context::Activation* activation = nullptr;
    uint32_t pc = 0;                         // where to go on, in linked code
    const FrameInstruction* call = nullptr;  // that made the callee's record; takes its results
    const Instruction* source = nullptr;     // the same with registers
  };

  static std::string OperationAt(const Record& record);

  // Frames.
  Status PushFrame(const LinkedFunction& linked);
  void PopFrame();
  int64_t* FrameOf(const Record& record) { return context_.stack_.data() + record.base; }
  // Binds symbols to the dims of the parameters, which are in the frame, compares the other dims, and gets an
  // activation.
  Status BindParameters(Record& record);
  // The dims of a parameter that is a tensor or a shape.
  static const int64_t* ExtentsOf(const LinkedFunction& linked, const int64_t* frame, size_t parameter) {
    const Signature& signature = linked.function->signature;
    const int64_t* slot = frame + linked.frame.offsets[signature.symbols.size() + parameter];
    return signature.params[parameter].type.is_tensor() ? slot + kTensorHeadWords : slot;
  }
  template <bool kBinds>
  Status ApplyRules(const LinkedFunction& linked, int64_t* frame) const;
  Status BindStates(const LinkedFunction& linked, int64_t* frame) const;
  Status CheckObjects(const LinkedFunction& linked, const int64_t* frame) const;
  Status DimMismatch(const LinkedFunction& linked, int64_t* frame, size_t parameter, size_t axis, int64_t extent,
                     int64_t expected) const;
  Status ParameterMismatch(const Function& function, size_t parameter, const std::string& got) const;

  // Arguments from outside.
  Status StageTensor(const LinkedFunction& linked, size_t parameter, const TensorView& view, int64_t* slot);
  Status StageCopy(const LinkedFunction& linked, size_t parameter, const TensorView& view, bool is_reachable,
                   int64_t* slot);
  Status StageResult(const TensorView& view, const Type& type, const TensorView& output);
  Status PlaceArgument(const LinkedFunction& linked, size_t parameter, const Value& value, int64_t* slot);
  Status CheckWrittenParameters(const LinkedFunction& linked, const int64_t* frame) const;
  Status CheckOutputs(const LinkedFunction& linked, std::span<const TensorView> inputs,
                      std::span<const TensorView> outputs);

  // Registers and values.
  void Drop(const Type& type, int64_t* slot) const;
  Result<Tensor> Kept(const Tensor& tensor, uint8_t device);
  Result<Value> Box(const Type& type, const int64_t* slot);
  // Stores a value in a register that holds nothing; registers of tensors must be of storage owned.
  Status Unbox(const Type& type, int64_t* slot, const Value& value);
  Result<Tensor> CopyToOwned(const TensorView& view, uint8_t device);
  Result<TensorView> ViewOf(const Type& type, const int64_t* slot) const;
  // Copies a value from one register to another of the same or a looser type.
  void CopyRegister(const Type& to, int64_t* to_slot, const Type& from, const int64_t* from_slot) const;

  // Execution.
  template <bool kObserved>
  Status Loop(std::span<const TensorView> outputs);
  Status Step(const Record& record, const FrameInstruction& in, const Instruction& source, int64_t* frame,
              std::span<const TensorView> outputs);
  Status RunKernel(const KernelCall& call, Context::Activation& activation, const int64_t* frame);
  Status PrepareKernel(const KernelCall& call, Context::Activation& activation, const int64_t* frame);
  Status LaunchKernel(const KernelCall& call, const Context::Activation& activation);
  Status KernelFailed(const Kernel& kernel);
  Status Interrupted() const;
  // Pushes the callee's frame with these arguments in its last parameters; the caller binds the symbols.
  Status EnterCallee(const LinkedFunction& callee, IdList<FrameOffset> args, IdList<RegisterId> source_args);
  Status EnterFunction(const op::CallFunction<FrameOffset>& in, const op::CallFunction<>& source);
  Status EnterClosure(const op::CallClosure<FrameOffset>& in, const op::CallClosure<>& source);
  Status Begun(Status status);
  Status Leave(IdList<FrameOffset> values, IdList<RegisterId> source_values);
  Status CallExternal(const Record& record, const op::CallExternal<FrameOffset>& in, const op::CallExternal<>& source,
                      int64_t* frame);
  Status CallBuiltin(const Record& record, const op::CallBuiltin<FrameOffset>& in, const op::CallBuiltin<>& source,
                     int64_t* frame);
  Status MakeClosure(const Record& record, const op::MakeClosure<FrameOffset>& in, const op::MakeClosure<>& source,
                     int64_t* frame);
  Status Allocate(const Type& type, std::span<const DimCode> dims, int64_t* frame, int64_t words, int64_t* slot,
                  const TensorView* bound, bool is_zeroed);
  Status MakeView(const Record& record, const op::View<FrameOffset>& in, const op::View<>& source, int64_t* frame);
  Status CopyTensor(const Type& to, const int64_t* to_slot, const Type& from, const int64_t* from_slot);
  // Stores the element at `index` of `tensor`, whose register is `source`.
  Status Load(const Record& record, int64_t* out, RegisterId source, const int64_t* tensor, const DimCode& index,
              const int64_t* frame) const;
  Status Match(const Record& record, const op::Match<FrameOffset>& in, const op::Match<>& source, int64_t* frame);

  // Observed execution (vm/run/observed_steps.cc): runs a kernel call or an instruction that stays in its
  // frame, and tells the context's observers.
  Status StepObserved(const LinkedInstruction& op, const Record& record, int64_t* frame,
                      std::span<const TensorView> outputs);
  Event DescribeEvent(const LinkedInstruction& op, const Record& record) const;
  Result<std::vector<EventArgument>> EventArguments(EventPhase phase, const LinkedInstruction& op, const Record& record,
                                                    const int64_t* frame) const;
  Status CheckParametersFinite();

  // A copy of elements to be made after the code has run.
  struct Copy {
    TensorView from;
    TensorView to;
  };
  Context& context_;
  std::vector<Record> records_;
  std::vector<Copy> write_backs_;       // staged parameters that the function writes
  std::vector<Copy> copies_;            // results that are not in the caller's outputs yet
  IdList<FrameOffset> returned_;        // of the outermost frame
  IdList<RegisterId> returned_source_;  // the same as registers
  BuiltinCall builtin_call_;            // the running one; its memory is reused
  int64_t fuel_left_ = 0;
};

}  // namespace ingot::vm
