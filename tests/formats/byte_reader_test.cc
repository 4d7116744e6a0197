#include "formats/byte_reader.h"

#include <doctest/doctest.h>

#include <vector>

#include "formats/byte_writer.h"

namespace ingot::formats {
namespace {

std::vector<std::byte> Bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST_CASE("what is written is read") {
  ByteWriter writer;
  writer.U8(1);
  writer.U16(0x2345);
  writer.U32(0x89abcdef);
  writer.U64(0xfedcba9876543210);
  writer.I64(INT64_MIN);
  const uint64_t varints[] = {0, 1, 127, 128, 300, uint64_t{1} << 62, ~uint64_t{0}};
  for (const uint64_t value : varints) writer.Varint(value);
  const int64_t signed_varints[] = {0, -1, 1, INT64_MIN, INT64_MAX};
  for (const int64_t value : signed_varints) writer.SignedVarint(value);
  writer.String("text");
  writer.AlignTo(8);
  CHECK(writer.size() % 8 == 0);

  ByteReader reader(writer.bytes(), "test");
  CHECK(reader.U8().value() == 1);
  CHECK(reader.U16().value() == 0x2345);
  CHECK(reader.U32().value() == 0x89abcdef);
  CHECK(reader.U64().value() == 0xfedcba9876543210);
  CHECK(reader.I64().value() == INT64_MIN);
  for (const uint64_t value : varints) CHECK(reader.Varint().value() == value);
  for (const int64_t value : signed_varints) CHECK(reader.SignedVarint().value() == value);
  CHECK(reader.String().value() == "text");
  CHECK_FALSE(reader.ExpectEnd().ok());
  CHECK(reader.Skip(reader.remaining()).ok());
  CHECK(reader.ExpectEnd().ok());
}

TEST_CASE("every read past the end is refused, with its place, and moves nothing") {
  const std::vector<std::byte> bytes = Bytes({1, 2, 3});
  ByteReader reader(bytes, "header");
  REQUIRE(reader.Skip(1).ok());
  CHECK(reader.U32().status().message() == "header, offset 1: expected 4 more bytes, got 2");
  CHECK(reader.U64().status().code() == StatusCode::kCorrupt);
  CHECK_FALSE(reader.Bytes(~uint64_t{0}).ok());
  CHECK(reader.U16().value() == 0x0302);
  CHECK_FALSE(reader.U8().ok());
  CHECK_FALSE(reader.Seek(4).ok());
  CHECK(reader.Seek(3).ok());
  CHECK_FALSE(reader.Slice(1, ~uint64_t{0}).ok());
  CHECK_FALSE(reader.Slice(~uint64_t{0}, 1).ok());
  CHECK(reader.Slice(3, 0).ok());
}

TEST_CASE("varints have one encoding and 64 bits") {
  const auto refused = [](std::vector<std::byte> bytes) { return !ByteReader(bytes, "v").Varint().ok(); };
  CHECK(refused(Bytes({0x80, 0x00})));
  CHECK(refused(Bytes({0xff})));
  CHECK(refused(Bytes({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02})));
  CHECK(refused(Bytes({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0x00})));
  CHECK_FALSE(refused(Bytes({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})));
}

TEST_CASE("counts and lengths are checked against what is left") {
  const std::vector<std::byte> bytes = Bytes({3, 0, 0, 0, 0});
  CHECK(ByteReader(bytes, "c").Count(1).value() == 3);
  CHECK_FALSE(ByteReader(bytes, "c").Count(2).ok());
  CHECK_FALSE(ByteReader(bytes, "c").VarintUpTo(2).ok());
  const std::vector<std::byte> huge = Bytes({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0});
  CHECK_FALSE(ByteReader(huge, "c").Count(1).ok());
  CHECK_FALSE(ByteReader(huge, "c").Count(~uint64_t{0}).ok());
  CHECK_FALSE(ByteReader(huge, "c").String().ok());
}

TEST_CASE("the reader's status code is its maker's") {
  CHECK(ByteReader({}, "x.npy", StatusCode::kBadInput).U8().status().code() == StatusCode::kBadInput);
}

}  // namespace
}  // namespace ingot::formats
