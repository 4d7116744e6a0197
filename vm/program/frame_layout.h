// Where each register of a function lies in its frame. A frame is an array of 64-bit words; a register of
//   int, float, bool, dtype     one word: the value, the float's bits, 0 or 1, PackDataType()
//   shape of rank r             r words
//   tensor of rank r            2 + r words: data pointer, owner (a reference to an ingot::Storage, or null), dims
//   anything else               one word: a reference to an Object (vm/run/value.h), or null
#pragma once

#include <cstdint>
#include <vector>

#include "vm/program/program.h"

namespace ingot::vm {

inline constexpr int kTensorHeadWords = 2;

// Where a register lies in a frame, in words from its beginning.
struct FrameOffset {
  uint32_t words = 0;
  FrameOffset() = default;
  explicit FrameOffset(uint32_t w) : words(w) {}
  operator uint32_t() const { return words; }  // frame + offset, frame[offset]
};

struct FrameLayout {
  std::vector<uint32_t> offsets;  // in words, per register
  int64_t num_words = 0;
};

int64_t RegisterWords(const Type& type);
FrameLayout LayOutFrame(const std::vector<Type>& registers);

}  // namespace ingot::vm
