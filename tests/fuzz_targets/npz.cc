// Any bytes as a file npz.
#include "tests/fuzz_targets/tensor_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ingot::fuzz::TryTensorFile("x.npz", ingot::fuzz::SharedCopyOf(data, size));
  return 0;
}
