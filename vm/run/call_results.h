// CallResults: the way of an invocation's results out of the outermost frame: into tensors that the caller gave, which
// the function writes itself where it can, or as values.
#pragma once

#include <span>
#include <vector>

#include "vm/link/linked_program.h"
#include "vm/run/devices.h"
#include "vm/run/value.h"

namespace ingot::vm {

class CallResults {
 public:
  explicit CallResults(const Devices& devices) : devices_(devices) {}

  // Takes the caller's tensors for all results of the function, which outlive the invocation. Their dims are those of
  // the bound symbols; they overlap neither each other nor an input, but as the function declares it.
  Status SetOutputs(const LinkedFunction& linked, const int64_t* frame, std::span<const TensorView> inputs,
                    std::span<const TensorView> outputs);
  // The caller's tensor for a result; null: it gave none.
  const TensorView* output(size_t result) const { return outputs_.empty() ? nullptr : &outputs_[result]; }

  // What the outermost function returns, as frame offsets and as registers.
  void SetReturned(IdList<FrameOffset> offsets, IdList<RegisterId> registers) {
    offsets_ = offsets;
    registers_ = registers;
  }
  // The results, from the outermost frame after its return.
  Status Take(const LinkedFunction& linked, const int64_t* frame, std::vector<Value>* results) const;
  // Copies results that the function did not write into the caller's tensors itself.
  Status CopyToOutputs(const LinkedFunction& linked, const int64_t* frame);
  void Clear() {
    outputs_ = {};
    offsets_ = {};
    registers_ = {};
    copies_.clear();
    staged_.clear();
  }

 private:
  Status BringToHost(Value& value) const;
  struct Copy {
    TensorView from;
    TensorView to;
  };
  Status StageCopy(const TensorView& view, const Type& type, const TensorView& output);

  const Devices& devices_;
  std::span<const TensorView> outputs_;
  IdList<FrameOffset> offsets_;
  IdList<RegisterId> registers_;
  std::vector<Copy> copies_;    // to be made into outputs
  std::vector<Tensor> staged_;  // results that stand in other outputs
};

}  // namespace ingot::vm
