// Splits the weights off an ONNX file: walks the protobuf wire format of ModelProto and GraphProto. Returns the model
// without its large initialisers, and for each of those its message without the raw bytes, and the raw bytes as a span
// of the file. So weights are mapped rather than copied by the parser, and a file may exceed the 2 GiB that protobuf
// supports. Tensors are not interpreted here.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace ingot::importer {

struct WireTensor {
  std::vector<std::byte> message;  // a TensorProto without raw_data
  std::span<const std::byte> raw;  // a part of the file
};
struct WireSplit {
  std::vector<std::byte> rest;  // a ModelProto without the initialisers below
  std::vector<WireTensor> initializers;
};

// Returns nothing if the bytes are not well-formed; protobuf then reports the error.
std::optional<WireSplit> SplitInitializers(std::span<const std::byte> file);

}  // namespace ingot::importer
