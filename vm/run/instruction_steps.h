// InstructionSteps: runs one instruction that stays in its frame: constants, arithmetic, tensors, shapes, tuples,
// optionals, and calls out of the program.
#pragma once

#include <span>

#include "vm/run/call_environment.h"
#include "vm/run/call_results.h"
#include "vm/run/frame_stack.h"
#include "vm/run/outside_calls.h"

namespace ingot::vm {

class InstructionSteps {
 public:
  InstructionSteps(const CallEnvironment& environment, const FrameStack& frames, const CallResults& results)
      : executable_(environment.executable),
        devices_(environment.devices),
        states_(environment.states),
        limits_(environment.limits),
        frames_(frames),
        results_(results),
        outside_calls_(environment) {}

  Status Run(const CallRecord& record, const FrameInstruction& in, const Instruction& source, int64_t* frame);

 private:
  Status Allocate(const Type& type, std::span<const DimCode> dims, std::span<const int64_t> words, int64_t* slot,
                  const TensorView* bound, bool is_zeroed);
  Status MakeView(const CallRecord& record, const op::View<FrameOffset>& in, const op::View<>& source, int64_t* frame);
  Status Copy(const Type& to, int64_t* to_slot, const Type& from, const int64_t* from_slot);
  Status CopyInto(const Type& to, const int64_t* to_slot, const Type& from, const int64_t* from_slot);
  // Stores the element at `index` of `tensor`, whose register is `source`.
  Status Load(const CallRecord& record, int64_t* out, RegisterId source, const int64_t* tensor, const DimCode& index,
              const int64_t* frame) const;
  Status Match(const CallRecord& record, const op::Match<FrameOffset>& in, const op::Match<>& source, int64_t* frame);
  Status MakeClosure(const CallRecord& record, const op::MakeClosure<FrameOffset>& in, const op::MakeClosure<>& source,
                     int64_t* frame);

  const Executable& executable_;
  const Devices& devices_;
  const std::vector<Tensor>& states_;
  const CallLimits& limits_;
  const FrameStack& frames_;
  const CallResults& results_;
  OutsideCalls outside_calls_;
};

}  // namespace ingot::vm
