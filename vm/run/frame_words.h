// Conversion between the words of a frame (vm/program/frame_layout.h says where they lie) and the pointers in them.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/dim_code.h"
#include "runtime/tensor.h"
#include "vm/program/frame_layout.h"
#include "vm/run/value.h"

namespace ingot::vm {

inline void* PointerOf(int64_t word) { return reinterpret_cast<void*>(static_cast<intptr_t>(word)); }
inline int64_t WordOf(const void* pointer) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(pointer)); }
// A derived object is converted to Object* before its address is stored, so that ObjectOf gives the same object.
inline int64_t WordOf(Object* object) { return WordOf(static_cast<const void*>(object)); }
inline Object* ObjectOf(int64_t word) { return static_cast<Object*>(PointerOf(word)); }
inline ingot::Storage* OwnerOf(const int64_t* tensor_slot) {
  return static_cast<ingot::Storage*>(PointerOf(tensor_slot[1]));
}

// Takes over one reference to the owner.
inline void WriteTensor(int64_t* slot, const void* data, ingot::Storage* owner, std::span<const int64_t> dims) {
  slot[0] = WordOf(data);
  slot[1] = WordOf(static_cast<const void*>(owner));
  for (size_t i = 0; i < dims.size(); ++i) slot[kTensorHeadWords + i] = dims[i];
}

// Evaluates a tensor's dims into out and returns its size in bytes; refuses negative dims and overflow.
Result<int64_t> EvaluateDims(std::span<const DimCode> dims, std::span<const int64_t> words, DataType dtype,
                             int64_t* out);

// Whether the two tensors' spans of memory have bytes in common.
bool Overlap(const TensorView& a, const TensorView& b);

}  // namespace ingot::vm
