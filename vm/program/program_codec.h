// Programs as files and back: every table of a Program in the sections of a container. formats/README.md, chapter
// "The program's sections", is the normative description of the bytes. Encoding is deterministic: equal programs give
// equal bytes. Constants and images are neither copied on the way out (the writer borrows them) nor, where they are
// stored raw, on the way in.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/container.h"
#include "formats/container_writer.h"
#include "vm/program/checks.h"
#include "vm/program/program.h"

namespace ingot::vm {

struct EncodeOptions {
  formats::Codec constants_codec = formats::Codec::kNone;  // of constant data; raw can be mapped
  int zstd_level = 9;
  bool debug_map = true;
};

// The sections of a program, ready to be written. It borrows the program's constants and images.
class EncodedProgram {
 public:
  static Result<EncodedProgram> Encode(const Program& program, const EncodeOptions& options = {});
  const formats::ContainerWriter& container() const { return *container_; }
  // For further sections (golden cases, signatures) and for the file itself.
  formats::ContainerWriter& container() { return *container_; }

 private:
  std::vector<std::unique_ptr<std::vector<std::byte>>> buffers_;  // what the container's pieces point to
  std::unique_ptr<formats::ContainerWriter> container_;
};

// The whole file in memory, or written atomically.
Result<std::vector<std::byte>> EncodeProgram(const Program& program, const EncodeOptions& options = {});
Status WriteProgram(const Program& program, const std::string& path, const EncodeOptions& options = {});

// The tables as they stand in the file: well formed, but not verified (vm/verify/verifier.h). Kernel images and raw
// constants share the container's bytes. A failed check is corrupt, and ends with the check's name in brackets.
Result<Program> DecodeProgram(const formats::Container& container, const CheckSet& checks = CheckSet::All());
// The same, but constants have sizes and no elements: their bytes are addresses that cannot be read. For tools that
// show a file without reading or decompressing its weights.
Result<Program> DecodeProgramWithoutWeights(const formats::Container& container);
// DecodeProgram for a caller who has limited the heap for the file already (vm/program/reading_heap.h), as both others do.
Result<Program> DecodeInHeap(const formats::Container& container);

}  // namespace ingot::vm
