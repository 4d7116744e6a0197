// Golden cases: calls of a program's functions with the results they should have, in a section of their own
// (formats/README.md). In and out: tensors by name; decoded ones share the file's bytes. No case is run
// here, and the section is not read when a file is opened.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/container.h"
#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::vm {

// The origin of the expected outputs: the user's file, or the reference evaluation; never compiled kernels.
enum class GoldenOrigin : uint8_t { kFile = 0, kReference = 1 };
const char* GoldenOriginName(GoldenOrigin origin);  // "file", "reference"

struct GoldenTensor {
  std::string name;
  Tensor tensor;  // host memory, compact
};

struct GoldenCase {
  std::string function;
  GoldenOrigin origin = GoldenOrigin::kFile;
  double relative_tolerance = 0;
  double absolute_tolerance = 0;
  std::vector<GoldenTensor> inputs;
  std::vector<GoldenTensor> outputs;
};

std::vector<std::byte> EncodeGoldenCases(std::span<const GoldenCase> cases);
// Returns no cases where the file has no such section; corrupt where the section is not as formats/README.md describes.
Result<std::vector<GoldenCase>> DecodeGoldenCases(const formats::Container& container);

}  // namespace ingot::vm
