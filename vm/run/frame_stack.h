// FrameStack: the functions that run, outermost first, each with its frame: words on one stack of the context, so that
// calls of the program do not recurse on the C stack. It bounds how deep they nest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "vm/link/linked_program.h"
#include "vm/program/limits.h"
#include "vm/run/activations.h"
#include "vm/run/call_failures.h"
#include "vm/run/frame_words.h"

namespace ingot::vm {

// One call of a function that has not returned.
struct CallRecord {
  const LinkedFunction* linked;
  int64_t base;  // of the frame, in words of the stack
  Activation* activation = nullptr;
  uint32_t pc = 0;                         // where to go on, in linked code
  const FrameInstruction* call = nullptr;  // that made the callee's record; takes its results
  const Instruction* source = nullptr;     // the same with registers
};

class FrameStack {
 public:
  // Frames count against the pool's bound.
  explicit FrameStack(MemoryPool& pool) : memory_(&pool) {}
  bool empty() const { return records_.empty(); }
  size_t depth() const { return records_.size(); }
  CallRecord& top() { return records_.back(); }
  // The function that called the top one.
  CallRecord& caller() { return records_[records_.size() - 2]; }
  // Pushing moves frames and records.
  int64_t* FrameOf(const CallRecord& record) { return words_.data() + record.base; }

  // Pushes a frame whose registers hold no references.
  Status Push(const LinkedFunction& linked);
  // Drops the references that the top frame's registers hold, and gives its activation back.
  void Pop();
  void Clear() {
    while (!empty()) Pop();
  }
  // Puts the innermost function and operation in front of a failure's message, then who called: the nearest callers
  // and the outermost one. The innermost goes to `innermost`, too.
  [[gnu::cold]] Status AtPlace(Status status, FailurePlace& innermost) const;

 private:
  // Makes room for one more record and so many words.
  [[gnu::cold]] void Grow(size_t num_words);

  CountedMemory memory_;  // of what follows
  std::vector<CallRecord> records_;
  std::vector<int64_t> words_;
};

[[gnu::always_inline]] inline Status FrameStack::Push(const LinkedFunction& linked) {
  const int64_t base = records_.empty() ? 0 : records_.back().base + records_.back().linked->frame.num_words;
  const int64_t end = base + linked.frame.num_words;
  if (static_cast<int64_t>(records_.size()) >= kMaxCallDepth) return CallsTooDeep(linked);
  if (end > kMaxStackWords) return FramesTooLarge(linked, records_.size() + 1);
  if (end > static_cast<int64_t>(words_.size()) || records_.size() == records_.capacity()) [[unlikely]]
    Grow(static_cast<size_t>(end));
  int64_t* frame = words_.data() + base;
  for (uint32_t offset : linked.counted) frame[offset] = 0;
  for (uint32_t offset : linked.tensor_owners) frame[offset] = 0;
  records_.push_back({&linked, base});
  return Status();
}

[[gnu::always_inline]] inline void FrameStack::Pop() {
  const CallRecord& record = records_.back();
  int64_t* frame = FrameOf(record);
  for (uint32_t offset : record.linked->counted) {
    if (frame[offset] != 0) Ref<Object>::Adopt(ObjectOf(frame[offset]));
  }
  for (uint32_t offset : record.linked->tensor_owners) {
    if (frame[offset] != 0) Ref<ingot::Storage>::Adopt(static_cast<ingot::Storage*>(PointerOf(frame[offset])));
  }
  if (record.activation != nullptr) record.activation->in_use = false;
  records_.pop_back();
}

}  // namespace ingot::vm
