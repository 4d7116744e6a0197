// BuiltinCall: the arguments of one call of a builtin, as its routine takes them, in the order of the builtin's row;
// the routine stores its result here. Arguments stay in the frame's registers and tensors are described by views, so
// that a warm call allocates nothing: the interpreter keeps one BuiltinCall and fills it anew. Values are made of
// arguments only where they are printed or kept.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/host_ops.h"
#include "runtime/tensor.h"
#include "vm/program/builtins.h"
#include "vm/run/instance.h"
#include "vm/run/value.h"

namespace ingot::vm {

class BuiltinCall {
 public:
  // Routines that run long are stopped by `poll`; objects that they make are counted by `pool`.
  BuiltinCall(host::Poll poll, MemoryPool& pool) : poll_(poll), pool_(pool) {}
  host::Poll poll() const { return poll_; }
  MemoryPool& pool() const { return pool_; }
  void Clear();
  // The register that the result goes to; null: there is none.
  void SetResultSlot(const int64_t* slot) { result_slot_ = slot; }
  // Adds a tensor register and the view of its memory. Both outlive the call.
  void AddTensor(const Type& type, const int64_t* slot, const TensorView& view);
  void Add(const Type& type, const int64_t* slot);

  const TensorView& tensor(size_t i) const { return views_[i]; }
  std::span<const TensorView> tensors_from(size_t i) const { return std::span(views_).subspan(i); }
  std::span<const int64_t> shape(size_t i) const { return {slots_[i], types_[i]->dims.size()}; }
  int64_t integer(size_t i) const { return *slots_[i]; }
  double number(size_t i) const;
  bool flag(size_t i) const { return *slots_[i] != 0; }
  const std::string& text(size_t i) const;
  Value value(size_t i) const;  // of an argument that is not a tensor
  // The tuple that is the argument; null where it is another object.
  TupleObject* tuple(size_t i) const;
  // True when nothing but this argument refers to the tuple and the result goes to the same register: then the routine
  // may change the tuple in place and return it.
  bool IsConsumed(size_t i) const;
  // True when no tensor that the routine writes shares memory with another argument, or with a tensor in a sequence.
  bool WritesApart(const BuiltinInfo& row) const;
  // The result, of builtins that have one.
  void set_result(Value value) { result_ = std::move(value); }
  Value TakeResult() { return std::exchange(result_, Value()); }
  // The text of argument i, with each "{}" replaced by the next of the arguments that follow it; those that are left
  // over stand at its end. What is too long ends with "...".
  std::string Format(size_t i) const;

 private:
  host::Poll poll_;
  MemoryPool& pool_;
  std::vector<const Type*> types_;
  std::vector<const int64_t*> slots_;
  std::vector<TensorView> views_;  // one per argument; meaningful for tensors only
  Value result_;
  const int64_t* result_slot_ = nullptr;
};

// Runs a builtin's routine.
Status RunBuiltin(Builtin builtin, BuiltinCall& call, Instance& instance);

}  // namespace ingot::vm
