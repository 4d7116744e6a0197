// Any bytes as a tensor file of one format. What is read is written and read again, to equal tensors.
#pragma once

#include <algorithm>

#include "formats/tensor_files.h"
#include "tests/fuzz_targets/target.h"

namespace ingot::fuzz {

inline void TryTensorFile(const char* path, const SharedBytes& bytes) {
  const formats::TensorFileFormat* format = formats::FindTensorFileFormat(path);
  const auto tensors = format->read(bytes, nullptr);
  const std::string key = "x";
  (void)format->read(bytes, &key);
  if (!tensors.ok() || tensors->empty()) return;
  std::vector<std::byte> written;
  const Status status = format->write(*tensors, [&](std::span<const std::byte> piece) {
    written.insert(written.end(), piece.begin(), piece.end());
    return Status();
  });
  if (!status.ok()) return;  // such as names that the format does not take
  const auto again = format->read(SharedBytes::Own(std::move(written)), nullptr);
  INGOT_CHECK(again.ok(), again.status().message().c_str());
  INGOT_CHECK(again->size() == tensors->size());
  for (const formats::NamedTensor& before : *tensors) {
    const auto after = std::ranges::find(*again, before.name, &formats::NamedTensor::name);
    INGOT_CHECK(after != again->end(), before.name.c_str());
    INGOT_CHECK(std::ranges::equal(before.tensor.dims(), after->tensor.dims()));
    INGOT_CHECK(before.tensor.dtype() == after->tensor.dtype());
    INGOT_CHECK(std::ranges::equal(before.tensor.bytes(), after->tensor.bytes()));
  }
}

}  // namespace ingot::fuzz
