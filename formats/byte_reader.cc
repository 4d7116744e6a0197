// The checks behind ByteReader: LEB128 varints in their shortest form, counts that fit the bytes that are left, and
// slices whose bounds are compared by subtraction.
#include "formats/byte_reader.h"

namespace ingot::formats {

Status ByteReader::Error(Text message) const { return Status(code_, {what_, ", offset ", offset_, ": ", message}); }

Status ByteReader::Short(uint64_t wanted) const {
  return Error({"expected ", wanted, " more bytes, got ", remaining()});
}

Result<uint16_t> ByteReader::U16BigEndian() {
  INGOT_ASSIGN_OR_RETURN(const uint16_t swapped, U16());
  return static_cast<uint16_t>(swapped << 8 | swapped >> 8);
}

Result<uint64_t> ByteReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    INGOT_ASSIGN_OR_RETURN(const uint8_t byte, U8());
    const uint64_t bits = byte & 0x7f;
    if (shift == 63 && bits > 1) return Error("a varint beyond 64 bits");
    value |= bits << shift;
    if ((byte & 0x80) == 0) {
      if (byte == 0 && shift > 0) return Error("a varint with a superfluous byte");
      return value;
    }
    if (shift == 63) return Error("a varint beyond 64 bits");
  }
}

Result<int64_t> ByteReader::SignedVarint() {
  INGOT_ASSIGN_OR_RETURN(const uint64_t bits, Varint());
  return FromZigzag(bits);
}

Result<uint64_t> ByteReader::VarintUpTo(uint64_t max) {
  INGOT_ASSIGN_OR_RETURN(const uint64_t value, Varint());
  if (value > max) return Error({"value ", value, ", expected at most ", max});
  return value;
}

Result<uint64_t> ByteReader::Count(uint64_t item_bytes) {
  INGOT_ASSIGN_OR_RETURN(const uint64_t count, Varint());
  if (count > remaining() / item_bytes) {
    return Error({"a count of ", count, " with ", remaining(), " bytes left"});
  }
  return count;
}

Result<std::span<const std::byte>> ByteReader::Bytes(uint64_t size) {
  if (size > remaining()) return Short(size);
  const std::span<const std::byte> bytes = bytes_.subspan(offset_, size);
  offset_ += size;
  return bytes;
}

Result<std::string_view> ByteReader::String() {
  INGOT_ASSIGN_OR_RETURN(const uint64_t size, Varint());
  INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, Bytes(size));
  return AsText(bytes);
}

Result<std::span<const std::byte>> ByteReader::Slice(uint64_t offset, uint64_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) {
    return Status(code_, {what_, ": ", size, " bytes at offset ", offset, " of ", bytes_.size()});
  }
  return bytes_.subspan(offset, size);
}

Status ByteReader::Seek(uint64_t offset) {
  if (offset > bytes_.size()) return Error({"seek to offset ", offset, " of ", bytes_.size()});
  offset_ = offset;
  return Status();
}

Status ByteReader::ExpectEnd() const {
  if (at_end()) return Status();
  return Error({remaining(), " bytes left over"});
}

}  // namespace ingot::formats
