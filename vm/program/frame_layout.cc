// Registers lie in a frame one after the other, in the order of their numbers.
#include "vm/program/frame_layout.h"

namespace ingot::vm {

int64_t RegisterWords(const Type& type) {
  if (type.kind == ValueKind::kTensor) return kTensorHeadWords + type.rank();
  if (type.kind == ValueKind::kShape) return type.rank();
  return 1;
}

FrameLayout LayOutFrame(const std::vector<Type>& registers) {
  FrameLayout layout;
  layout.offsets.reserve(registers.size());
  for (const Type& type : registers) {
    layout.offsets.push_back(static_cast<uint32_t>(layout.num_words));
    layout.num_words += RegisterWords(type);
  }
  return layout;
}

}  // namespace ingot::vm
