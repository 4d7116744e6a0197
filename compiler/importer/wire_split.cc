// A reader of the protobuf wire format that knows three field numbers; everything else is copied as it is.
#include "compiler/importer/wire_split.h"

#include <cstdint>
#include <limits>

#include "formats/byte_reader.h"

namespace ingot::importer {
namespace {

// Smaller tensors stay in the model.
constexpr size_t kMinRawBytes = 4096;
// ModelProto.graph, GraphProto.initializer, TensorProto.raw_data.
constexpr uint64_t kGraph = 7, kInitializer = 5, kRawData = 9;
constexpr uint64_t kVarintType = 0, kFixed64Type = 1, kLengthType = 2, kFixed32Type = 5;

struct Field {
  uint64_t number = 0;
  bool has_length = false;
  std::span<const std::byte> whole;  // the tag included
  std::span<const std::byte> value;  // the contents of a length-delimited field
};

Result<Field> NextField(formats::ByteReader& reader) {
  const uint64_t begin = reader.offset();
  INGOT_ASSIGN_OR_RETURN(const uint64_t tag, reader.VarintUpTo(std::numeric_limits<uint32_t>::max()));
  Field field;
  field.number = tag >> 3;
  const uint64_t type = tag & 7;
  if (type == kVarintType) {
    INGOT_RETURN_IF_ERROR(reader.Varint().status());
  } else if (type == kFixed64Type || type == kFixed32Type) {
    INGOT_RETURN_IF_ERROR(reader.Skip(type == kFixed64Type ? 8 : 4));
  } else if (type == kLengthType) {
    INGOT_ASSIGN_OR_RETURN(const uint64_t size, reader.VarintUpTo(reader.remaining()));
    INGOT_ASSIGN_OR_RETURN(field.value, reader.Bytes(size));
    field.has_length = true;
  } else {
    return reader.Error("a group");
  }
  INGOT_ASSIGN_OR_RETURN(field.whole, reader.Slice(begin, reader.offset() - begin));
  return field;
}

void Append(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}
void AppendVarint(std::vector<std::byte>& out, uint64_t value) {
  for (; value > 0x7F; value >>= 7) out.push_back(static_cast<std::byte>((value & 0x7F) | 0x80));
  out.push_back(static_cast<std::byte>(value));
}

// Returns nothing if the tensor's bytes are in another field or file, few, or given twice.
Result<std::optional<WireTensor>> SplitTensor(std::span<const std::byte> message) {
  std::optional<WireTensor> tensor;
  std::vector<std::byte> rest;
  formats::ByteReader reader(message, "initializer");
  while (!reader.at_end()) {
    INGOT_ASSIGN_OR_RETURN(const Field field, NextField(reader));
    if (field.number != kRawData || !field.has_length) {
      if (field.whole.size() > kMinRawBytes) return std::optional<WireTensor>();  // a typed field
      Append(rest, field.whole);
    } else if (field.value.size() < kMinRawBytes || tensor.has_value()) {
      return std::optional<WireTensor>();
    } else {
      tensor.emplace();
      tensor->raw = field.value;
    }
  }
  if (tensor.has_value()) tensor->message = std::move(rest);
  return tensor;
}

Result<std::vector<std::byte>> SplitGraph(std::span<const std::byte> graph, WireSplit& split) {
  std::vector<std::byte> rest;
  formats::ByteReader reader(graph, "graph");
  while (!reader.at_end()) {
    INGOT_ASSIGN_OR_RETURN(const Field field, NextField(reader));
    if (field.number == kInitializer && field.has_length && field.value.size() >= kMinRawBytes) {
      INGOT_ASSIGN_OR_RETURN(std::optional<WireTensor> tensor, SplitTensor(field.value));
      if (tensor.has_value()) {
        split.initializers.push_back(*std::move(tensor));
        continue;
      }
    }
    Append(rest, field.whole);
  }
  return rest;
}

Result<WireSplit> SplitModel(std::span<const std::byte> file) {
  WireSplit split;
  formats::ByteReader reader(file, "model");
  while (!reader.at_end()) {
    INGOT_ASSIGN_OR_RETURN(const Field field, NextField(reader));
    if (field.number != kGraph || !field.has_length) {
      Append(split.rest, field.whole);
      continue;
    }
    INGOT_ASSIGN_OR_RETURN(const std::vector<std::byte> graph, SplitGraph(field.value, split));
    AppendVarint(split.rest, kGraph << 3 | kLengthType);
    AppendVarint(split.rest, graph.size());
    Append(split.rest, graph);
  }
  return split;
}

}  // namespace

std::optional<WireSplit> SplitInitializers(std::span<const std::byte> file) {
  Result<WireSplit> split = SplitModel(file);
  if (!split.ok()) return std::nullopt;
  return *std::move(split);
}

}  // namespace ingot::importer
