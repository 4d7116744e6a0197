// Splits the weights off an ONNX file: walks the protobuf wire format of ModelProto and GraphProto, and gives the model
// without its large initialisers, and each of those as its message without the raw bytes and the raw bytes where they
// lie in the file. So weights are mapped rather than copied by the parser, and a file may exceed the 2 GiB that
// protobuf holds. Tensors are not interpreted here.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace ingot::importer {

struct WireTensor {
  std::vector<std::byte> message;  // a TensorProto without raw_data
  std::span<const std::byte> raw;  // of the file
};
struct WireSplit {
  std::vector<std::byte> rest;  // a ModelProto without the initialisers below
  std::vector<WireTensor> initializers;
};

// Nothing when the bytes are not what a writer of protobuf makes; protobuf itself then tells what is wrong.
std::optional<WireSplit> SplitInitializers(std::span<const std::byte> file);

}  // namespace ingot::importer
