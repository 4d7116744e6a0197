// BuiltinCall: the arguments of one call of a builtin, in the order of its row (without its result, which the routine
// sets here), as the routines take them. They lie in the frame's registers; tensors are described by views, so that a
// warm call allocates nothing: whoever makes calls keeps one of these and fills it anew. Values are made of arguments
// only where they are shown to people, or kept.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/host_ops.h"
#include "runtime/tensor.h"
#include "vm/builtins.h"
#include "vm/instance.h"
#include "vm/value.h"

namespace ingot::vm {

class BuiltinCall {
 public:
  // `poll` stops the routines that run long.
  explicit BuiltinCall(host::Poll poll) : poll_(poll) {}
  host::Poll poll() const { return poll_; }
  void Clear();
  // The register that the result goes to; null: there is none.
  void SetResultSlot(const int64_t* slot) { result_slot_ = slot; }
  // A tensor register; the view is of its memory. Both outlive the call.
  void AddTensor(const Type& type, const int64_t* slot, const TensorView& view);
  void Add(const Type& type, const int64_t* slot);

  const TensorView& tensor(size_t i) const { return views_[i]; }
  std::span<const TensorView> tensors_from(size_t i) const { return std::span(views_).subspan(i); }
  std::span<const int64_t> shape(size_t i) const { return {slots_[i], types_[i]->dims.size()}; }
  int64_t integer(size_t i) const { return *slots_[i]; }
  double number(size_t i) const;
  bool flag(size_t i) const { return *slots_[i] != 0; }
  const std::string& text(size_t i) const;
  Value value(size_t i) const;  // of what is no tensor
  // Of an argument that is a tuple; null where it is another object.
  TupleObject* tuple(size_t i) const;
  // Of a tuple: the result takes its register, and nothing else refers to it, so that it may become the result.
  bool IsConsumed(size_t i) const;
  // No tensor that the routine writes shares memory with another argument, or with a tensor in a sequence.
  bool WritesApart(const BuiltinInfo& row) const;
  // What the call gives, where the row has a result.
  void set_result(Value value) { result_ = std::move(value); }
  Value TakeResult() { return std::exchange(result_, Value()); }
  // The text of argument i with its places filled by the arguments that follow.
  Result<std::string> Format(size_t i) const;

 private:
  host::Poll poll_;
  std::vector<const Type*> types_;
  std::vector<const int64_t*> slots_;
  std::vector<TensorView> views_;  // as many; of a tensor alone it has a meaning
  Value result_;
  const int64_t* result_slot_ = nullptr;
};

// Runs a builtin's routine.
Status RunBuiltin(Builtin builtin, BuiltinCall& call, Instance& instance);

}  // namespace ingot::vm
