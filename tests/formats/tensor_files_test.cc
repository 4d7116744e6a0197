// The seeds in tests/formats/data were written by NumPy 2.4 and safetensors.
#include "formats/tensor_files.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <functional>
#include <numeric>

#include "formats/byte_reader.h"
#include "formats/byte_writer.h"
#include "formats/file.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/packed_elements.h"
#include "formats/safetensors.h"
#include "formats/tensor_print.h"
#include "formats/zip.h"
#include "runtime/float4.h"
#include "tests/golden.h"

namespace ingot::formats {
namespace {

using Buffer = std::vector<std::byte>;
using Dims = std::vector<int64_t>;

std::string DataPath(const std::string& name) { return golden::TestDirectory() + "/formats/data/" + name; }

Buffer Bytes(const std::string& name) {
  const SharedBytes bytes = MapFile(DataPath(name)).value();
  return {bytes.bytes.begin(), bytes.bytes.end()};
}

std::string Text(const std::string& name, const std::string& key = {}) {
  const Tensor tensor = ReadTensor(DataPath(name), key).value();
  return tensor.TypeToString() + " " + TensorToText(tensor).value();
}

Buffer Written(Status (*write)(std::span<const NamedTensor>, const ByteSink&), std::span<const NamedTensor> tensors) {
  Buffer buffer;
  CHECK(write(tensors, [&](std::span<const std::byte> bytes) {
          buffer.insert(buffer.end(), bytes.begin(), bytes.end());
          return Status();
        }).ok());
  return buffer;
}

Tensor Iota(DataType dtype, Dims dims) {
  const Tensor tensor = Tensor::Allocate(dtype, dims).value();
  auto bytes = tensor.mutable_bytes();
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  return tensor;
}

// An .npy file of version 1 with this header text and so many bytes of data.
Buffer Npy(std::string_view header, size_t data_bytes, int major = 1) {
  ByteWriter writer;
  writer.Bytes(AsBytes("\x93NUMPY"));
  writer.U8(static_cast<uint8_t>(major));
  writer.U8(0);
  if (major == 1) {
    writer.U16(static_cast<uint16_t>(header.size()));
  } else {
    writer.U32(static_cast<uint32_t>(header.size()));
  }
  writer.Bytes(AsBytes(header));
  writer.Zeros(data_bytes);
  return writer.Take();
}

std::string NpyError(std::string_view header, size_t data_bytes = 0) {
  const Status status = ReadNpy(SharedBytes::Own(Npy(header, data_bytes))).status();
  CHECK(status.code() == StatusCode::kBadInput);
  return status.message();
}

TEST_CASE("NumPy's files are read, whatever their order") {
  CHECK(Text("c_order.npy") == "float32[2, 3] [[0. 1. 2.]\n [3. 4. 5.]]");
  CHECK(Text("fortran.npy") == Text("c_order.npy"));
  CHECK(Text("big_endian.npy") == Text("c_order.npy"));
  const Tensor swapped = ReadTensor(DataPath("big_endian_fortran.npy")).value();
  CHECK(swapped.TypeToString() == "int16[2, 3, 4]");
  for (int i = 0; i < 24; ++i) CHECK(swapped.Elements<int16_t>()[i] == i);
  CHECK(Text("scalar.npy") == "float64[] 2.5");
  CHECK(Text("empty.npy") == "int64[0, 3] []");
  CHECK(Text("bool.npy") == "bool[3] [ True False  True]");
  CHECK(Text("stored.npz", "image") == Text("c_order.npy"));
  CHECK(Text("deflated.npz", "label") == "int64[2] [3 4]");
  CHECK(Text("descriptors.npz") == Text("c_order.npy"));
  CHECK(Text("small.safetensors", "b") == "int64[3] [1 2 3]");
  CHECK(ReadTensorFile(DataPath("c_order.npy")).value()[0].name == "c_order");
  CHECK(ReadTensorFile(DataPath("stored.npz")).value()[1].name == "label");
  CHECK(ReadTensorFile(DataPath("c_order.npy")).value()[0].tensor.is_read_only());
}

TEST_CASE("what is written is what numpy.save writes") {
  for (const char* name : {"c_order.npy", "scalar.npy", "empty.npy", "bool.npy"}) {
    CAPTURE(std::string(name));
    const auto tensors = ReadTensorFile(DataPath(name)).value();
    CHECK(Written(WriteNpyFile, tensors) == Bytes(name));
  }
}

TEST_CASE("every format gives back what it was given, strided tensors too") {
  const Tensor wide = Iota(DataType::Float(64), {4, 3});
  const std::vector<NamedTensor> tensors = {{"bytes", Iota(DataType::Int(8), {5})},
                                            {"columns", wide.Slice(1, 1, 3).value()},
                                            {"none", Iota(DataType::Int(32), {0, 2})},
                                            {"half \"quoted\"", Iota(DataType::Float(16), {2})}};
  for (const TensorFileFormat& format : TensorFileFormats()) {
    CAPTURE(std::string(format.extension));
    const std::span<const NamedTensor> given = std::span(tensors).first(format.has_names ? tensors.size() : 1);
    const Buffer bytes = Written(format.write, given);
    CHECK(bytes == Written(format.write, given));
    const auto read = format.read(SharedBytes::Own(bytes), nullptr).value();
    REQUIRE(read.size() == given.size());
    for (const NamedTensor& original : given) {
      const auto found = std::find_if(
          read.begin(), read.end(), [&](const NamedTensor& r) { return !format.has_names || r.name == original.name; });
      REQUIRE(found != read.end());
      CHECK(found->tensor.TypeToString() == original.tensor.TypeToString());
      const Tensor compact = original.tensor.Compact().value();
      CHECK(std::equal(compact.bytes().begin(), compact.bytes().end(), found->tensor.bytes().begin(),
                       found->tensor.bytes().end()));
    }
  }
}

TEST_CASE("files are found by extension and written whole") {
  const std::string base = "/tmp/ingot-tensor-files-test-" + std::to_string(getpid());
  const std::vector<NamedTensor> tensors = {{"a", Iota(DataType::Int(8), {5})}, {"b", Iota(DataType::Int(8), {2})}};
  REQUIRE(WriteTensorFile(base + ".npz", tensors).ok());
  CHECK(ReadTensor(base + ".npz", "b").value().dim(0) == 2);
  unlink((base + ".npz").c_str());
  CHECK(WriteTensorFile(base + ".npy", tensors).message() ==
        base + ".npy: an .npy file holds one tensor, got 2; .npz holds many");
  CHECK(access((base + ".npy").c_str(), F_OK) != 0);
  CHECK(WriteTensorFile(base + ".txt", tensors).message() ==
        base + ".txt: unknown kind of tensor file, expected .npy, .npz, .safetensors");
  const std::vector<NamedTensor> twice = {tensors[0], tensors[0]};
  CHECK_FALSE(WriteTensorFile(base + ".npz", twice).ok());
  CHECK_FALSE(WriteTensorFile(base + ".safetensors", twice).ok());
  const std::vector<NamedTensor> small = {{"x", Iota(DataType::Bfloat16(), {2})}};
  CHECK(WriteTensorFile(base + ".npy", small).message() ==
        base + ".npy: bfloat16[2]: .npy has no such dtype; .safetensors may");
  CHECK(ReadTensorFile(DataPath("object.npy")).status().message() ==
        DataPath("object.npy") + ": dtype '|O': object arrays are pickled Python code and are never loaded");
}

TEST_CASE("npy headers are read as Python does") {
  const auto type = [](std::string_view header, size_t data_bytes, int major = 1) {
    return ReadNpy(SharedBytes::Own(Npy(header, data_bytes, major))).value().TypeToString();
  };
  CHECK(type("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8) == "float32[2]");
  CHECK(type("{\"shape\":(2, 3), \"fortran_order\":True,\"descr\":\"|u1\"}", 6) == "uint8[2, 3]");
  CHECK(type("{'descr': '=c8', 'fortran_order': False, 'shape': ()}  \n", 8, 2) == "complex64[]");
  CHECK(type("{'descr': '<f4', 'fortran_order': False, 'shape': (2,3,)}", 24, 3) == "float32[2, 3]");
}

TEST_CASE("an .npy that claims more than it has is refused before anything is allocated") {
  const std::string claim = "{'descr': '<f4', 'fortran_order': False, 'shape': (8589934592,), }";
  CHECK(Npy(claim, 4).size() == 80);
  CHECK(NpyError(claim, 4) == "float32[8589934592] needs 34359738368 bytes, the file has 4 after the header");
  CHECK(NpyError("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }") ==
        "float32[4294967296, 4294967296]: the number of elements overflows 64 bits");
  CHECK(NpyError("{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693951,), }")
            .find("more than 2^63 bytes") != std::string::npos);
  CHECK(NpyError("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 8).find("the file has 8") !=
        std::string::npos);
}

TEST_CASE("dtypes that cannot be expressed are refused by name") {
  const auto error = [](const std::string& descr) {
    return NpyError("{'descr': " + descr + ", 'fortran_order': False, 'shape': (1,)}", 1);
  };
  CHECK(error("'|O'").find("pickled Python code") != std::string::npos);
  CHECK(error("'<U3'").find("strings") != std::string::npos);
  CHECK(error("'|S3'").find("strings") != std::string::npos);
  CHECK(error("'<V2'").find(".safetensors") != std::string::npos);
  CHECK(error("'<M8[ns]'").find("times") != std::string::npos);
  CHECK(error("[('x', '<f4')]").find("structured") != std::string::npos);
  for (const char* descr :
       {"''", "'<'", "'<f'", "'<f3'", "'<f4x'", "'<f-4'", "'<f99999999999'", "'<i16'", "4", "True"}) {
    CAPTURE(std::string(descr));
    error(descr);
  }
}

TEST_CASE("malformed npy headers are refused") {
  for (const char* header :
       {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': ()}", "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': ()} x",
        "{'descr': '<f4' 'fortran_order': False, 'shape': ()}",
        "{'descr': '<f\n4', 'fortran_order': False, 'shape': ()}", "{'descr"}) {
    CAPTURE(std::string(header));
    NpyError(header, 4);
  }
  Buffer versions = Npy("{}", 0);
  versions[6] = std::byte{4};
  CHECK(ReadNpy(SharedBytes::Own(versions)).status().message() == "npy version 4.0, expected 1.0 to 3.0");
  // The limit on the header's length comes before its bytes are looked for.
  ByteWriter huge;
  huge.Bytes(AsBytes("\x93NUMPY"));
  huge.U16(2);
  huge.U32(0xffffffff);
  CHECK(ReadNpy(SharedBytes::Own(huge.Take())).status().message() ==
        "npy header of 4294967295 bytes, expected at most 65536");
}

// safetensors with this header and so many bytes of data.
Buffer Safetensors(std::string_view header, size_t data_bytes) {
  ByteWriter writer;
  writer.U64(header.size());
  writer.Bytes(AsBytes(header));
  writer.Zeros(data_bytes);
  return writer.Take();
}

TEST_CASE("safetensors headers are read as specified") {
  const auto read = [](std::string_view header, size_t data_bytes) {
    return ReadSafetensors(SharedBytes::Own(Safetensors(header, data_bytes)), nullptr).value();
  };
  CHECK(read("{}", 0).empty());
  CHECK(read(R"({"__metadata__":{"format":"pt"}})", 0).empty());
  CHECK(read(R"({"x":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}}   )", 2)[0].tensor.TypeToString() ==
        "bfloat16[]");
  const auto two = read(
      R"({"b":{"shape":[2],"data_offsets":[4,6],"dtype":"I8"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      6);
  CHECK(two[0].name == "b");
  CHECK(two[1].tensor.TypeToString() == "float32[1]");
}

TEST_CASE("malformed safetensors are refused") {
  struct Case {
    const char* header;
    size_t data_bytes;
    const char* message;
  };
  const Case cases[] = {
      {"", 0, "does not start with '{'"},
      {"[]", 0, "does not start with '{'"},
      {"{", 0, "no JSON"},
      {"{} x", 0, "no JSON"},
      {R"({"x":1})", 0, "\"x\": unexpected a number"},
      {R"({"x":null})", 0, "unexpected null"},
      {R"({"x":[1]})", 0, "unexpected a list"},
      {R"({"x":{}})", 0, "needs dtype, shape and two data_offsets"},
      {R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "two data_offsets"},
      {R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})", 4, "more than two"},
      {R"({"x":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4, "unexpected a list"},
      {R"({"x":{"dtype":"F32","shape":{"a":1},"data_offsets":[0,4]}})", 4, "unexpected an object"},
      {R"({"x":{"dtype":["F32"],"shape":[1],"data_offsets":[0,4]}})", 4, "unexpected a list"},
      {R"({"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "negative"},
      {R"({"x":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, "no 64-bit integer"},
      {R"({"x":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4, "63 bits"},
      {R"({"x":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4, "rank 8"},
      {R"({"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", 4, "overflows"},
      {R"({"x":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}})", 4, "unsupported dtype \"F99\""},
      {R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "expected 8 bytes, got 4"},
      {R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"extra":1}})", 4, "the field \"extra\""},
      {R"({"x":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, "\"dtype\" twice"},
      {R"({"x":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}})",
       2, "\"x\" twice"},
      {R"({"x":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}})",
       2, "overlap"},
      {R"({"x":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}})", 2, "gap"},
      {R"({"x":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 2, "cover 1 of 2"},
      {R"({"x":{"dtype":"I8","shape":[1],"data_offsets":[0,3]}})", 2, "cover 3 of 2"},
      {R"({"x":{"dtype":"I8","shape":[1],"data_offsets":[1,0]}})", 1, "gap"},
      {R"({"__metadata__":{"a":{"b":"c"}}})", 0, "unexpected an object"},
      {R"({"__metadata__":"x"})", 0, "unexpected a string"},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.header));
    const Status status = ReadSafetensors(SharedBytes::Own(Safetensors(c.header, c.data_bytes)), nullptr).status();
    CHECK(status.code() == StatusCode::kBadInput);
    CHECK_MESSAGE(status.message().find(c.message) != std::string::npos, status.message());
  }
  std::string deep = "{\"x\":";
  deep.append(100000, '[');
  CHECK_FALSE(ReadSafetensors(SharedBytes::Own(Safetensors(deep, 0)), nullptr).ok());
  const std::string entry = '"' + std::string(100'000, 'n') + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  const Status twice =
      ReadSafetensors(SharedBytes::Own(Safetensors("{" + entry + "," + entry + "}", 0)), nullptr).status();
  CHECK(twice.message().size() < 300);
  ByteWriter huge;
  huge.U64(~uint64_t{0});
  CHECK_FALSE(ReadSafetensors(SharedBytes::Own(huge.Take()), nullptr).ok());
}

// Offsets of a zip with one entry, from the seed's own records.
uint64_t FindSignature(const Buffer& bytes, const char* signature) {
  const std::string_view text = AsText(bytes);
  const size_t at = text.find(std::string_view(signature, 4));
  REQUIRE(at != std::string_view::npos);
  return at;
}

TEST_CASE("zip files that lie are refused by name") {
  struct Case {
    const char* message;
    std::function<void(Buffer&, uint64_t local, uint64_t central, uint64_t end)> damage;
  };
  const auto put16 = [](Buffer& b, uint64_t at, uint16_t value) {
    b[at] = static_cast<std::byte>(value);
    b[at + 1] = static_cast<std::byte>(value >> 8);
  };
  const Case cases[] = {
      {"is encrypted", [&](Buffer& b, uint64_t, uint64_t c, uint64_t) { put16(b, c + 8, 1); }},
      {"compression method 12", [&](Buffer& b, uint64_t, uint64_t c, uint64_t) { put16(b, c + 10, 12); }},
      {"wrong checksum", [&](Buffer& b, uint64_t, uint64_t c, uint64_t) { b[c + 16] ^= std::byte{1}; }},
      {"cannot decompress to", [&](Buffer& b, uint64_t, uint64_t c, uint64_t) { b[c + 27] = std::byte{0x70}; }},
      {"deflate data is damaged", [&](Buffer& b, uint64_t, uint64_t c, uint64_t) { b[c + 24] ^= std::byte{1}; }},
      {"reaches beyond", [&](Buffer& b, uint64_t, uint64_t c, uint64_t) { b[c + 22] = std::byte{0x10}; }},
      {"no local header", [&](Buffer& b, uint64_t, uint64_t c, uint64_t) { b[c + 42] = std::byte{1}; }},
      {"says something else", [&](Buffer& b, uint64_t l, uint64_t, uint64_t) { b[l + 30] = std::byte{'x'}; }},
      {"several disks", [&](Buffer& b, uint64_t, uint64_t, uint64_t e) { put16(b, e + 4, 1); }},
      {"several disks", [&](Buffer& b, uint64_t, uint64_t, uint64_t e) { put16(b, e + 8, 2); }},
      {"no end record", [&](Buffer& b, uint64_t, uint64_t, uint64_t e) { put16(b, e + 20, 1); }},
      {"no zip64 locator", [&](Buffer& b, uint64_t, uint64_t, uint64_t e) { put16(b, e + 10, 0xffff); }},
      {"a directory of 9 entries",
       [&](Buffer& b, uint64_t, uint64_t, uint64_t e) {
         put16(b, e + 8, 9);
         put16(b, e + 10, 9);
       }},
      {"is no .npy",
       [&](Buffer& b, uint64_t l, uint64_t c, uint64_t) {
         b[l + 30 + 6] = std::byte{'x'};
         b[c + 46 + 6] = std::byte{'x'};
       }},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.message));
    Buffer bytes = Bytes("descriptors.npz");
    c.damage(bytes, FindSignature(bytes, "PK\3\4"), FindSignature(bytes, "PK\1\2"), FindSignature(bytes, "PK\5\6"));
    const Status status = ReadNpz(SharedBytes::Own(std::move(bytes)), nullptr).status();
    CHECK(status.code() == StatusCode::kBadInput);
    CHECK_MESSAGE(status.message().find(c.message) != std::string::npos, status.message());
  }
}

TEST_CASE("duplicate and overlapping zip entries are refused, and decompression is bounded") {
  Buffer twice;
  ZipWriter writer([&](std::span<const std::byte> bytes) {
    twice.insert(twice.end(), bytes.begin(), bytes.end());
    return Status();
  });
  const std::span<const std::byte> pieces[] = {AsBytes("contents")};
  REQUIRE(writer.Add("a", pieces).ok());
  REQUIRE(writer.Add("b", pieces).ok());
  REQUIRE(writer.Finish().ok());
  const ZipReader zip = ZipReader::Open(SharedBytes::Own(twice)).value();
  CHECK(AsText(zip.Read(*zip.Find("b")).value().bytes) == "contents");
  CHECK(zip.Find("c") == nullptr);

  const uint64_t first = FindSignature(twice, "PK\1\2");
  const uint64_t second = first + 46 + 1;
  Buffer overlapping = twice;
  for (int i = 0; i < 4; ++i) overlapping[second + 42 + i] = overlapping[first + 42 + i];
  overlapping[second + 46] = std::byte{'a'};
  CHECK(ZipReader::Open(SharedBytes::Own(overlapping)).status().message() == "zip: two entries \"a\"");
  Buffer same = twice;
  same[30] = same[first + 46] = std::byte{'b'};
  CHECK(ZipReader::Open(SharedBytes::Own(same)).status().message() == "zip: two entries \"b\"");

  ZipLimits limits;
  limits.max_decompressed_bytes = 0;
  const ZipReader deflated = ZipReader::Open(SharedBytes::Own(Bytes("deflated.npz"))).value();
  for (const ZipEntry& entry : deflated.entries()) {
    CHECK(entry.is_deflated);
    limits.max_decompressed_bytes += entry.size;  // all entries share the limit
  }
  CHECK(ZipReader::Open(SharedBytes::Own(Bytes("deflated.npz")), limits).ok());
  --limits.max_decompressed_bytes;
  const Status over = ZipReader::Open(SharedBytes::Own(Bytes("deflated.npz")), limits).status();
  CHECK(over.message().ends_with(std::to_string(limits.max_decompressed_bytes) + " for all together"));
  limits = ZipLimits();
  limits.max_entries = 1;
  CHECK_FALSE(ZipReader::Open(SharedBytes::Own(twice), limits).ok());
}

TEST_CASE("a zip64 directory is read and written") {
  Buffer bytes;
  ZipWriter writer([&](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return Status();
  });
  constexpr int kEntries = 65536;  // more than 16 bits count
  for (int i = 0; i < kEntries; ++i) REQUIRE(writer.Add(std::to_string(i), {}).ok());
  REQUIRE(writer.Finish().ok());
  const ZipReader zip = ZipReader::Open(SharedBytes::Own(std::move(bytes))).value();
  CHECK(zip.entries().size() == kEntries);
  CHECK(zip.entries().back().name == "65535");
}

TEST_CASE("every truncation and every changed byte of the seeds is refused or read, never worse") {
  for (const char* name : {"c_order.npy", "big_endian_fortran.npy", "bool.npy", "object.npy", "stored.npz",
                           "deflated.npz", "descriptors.npz", "small.safetensors"}) {
    CAPTURE(std::string(name));
    const Buffer seed = Bytes(name);
    const TensorFileFormat* format = FindTensorFileFormat(name);
    REQUIRE(format != nullptr);
    const auto read = [&](Buffer bytes) {
      const Result<std::vector<NamedTensor>> tensors = format->read(SharedBytes::Own(std::move(bytes)), nullptr);
      if (!tensors.ok()) {
        CHECK(tensors.status().code() == StatusCode::kBadInput);
        return false;
      }
      // Touches every byte.
      for (const NamedTensor& named : *tensors) {
        const auto data = named.tensor.bytes();
        (void)std::accumulate(data.begin(), data.end(), 0);
      }
      return true;
    };
    for (size_t size = 0; size < seed.size(); ++size) {
      CHECK_FALSE(read(Buffer(seed.begin(), seed.begin() + static_cast<ptrdiff_t>(size))));
    }
    for (size_t i = 0; i < seed.size(); ++i) {
      for (int value = 0; value < 10; ++value) {
        Buffer mutant = seed;
        mutant[i] = value == 8 ? std::byte{0} : value == 9 ? std::byte{0xff} : mutant[i] ^ std::byte(1 << value);
        read(std::move(mutant));
      }
    }
  }
}

TEST_CASE("integers of less than a byte take one in files, and are packed again where their dtype is asked for") {
  for (const DataType dtype : {DataType::Int(2), DataType::UInt(2), DataType::Int(4), DataType::UInt(4)}) {
    CAPTURE(dtype.ToString());
    const std::vector<uint8_t> packed = {0xE4, 0x1B, 0x02};
    const Tensor tensor = Tensor::FromBytes(dtype, Dims{dtype.bits == 2 ? 9 : 5}, packed).value();
    const Tensor bytes = UnpackIntegers(tensor).value();
    CHECK(bytes.dtype() == DataType(dtype.code, 8));
    CHECK(TensorToText(bytes).value() == TensorToText(tensor).value());
    const Tensor again = PackIntegersAs(bytes, dtype).value();
    REQUIRE(again.dtype() == dtype);
    CHECK(std::equal(packed.begin(), packed.end(), again.bytes().begin()));
    CHECK(PackIntegersAs(bytes, DataType(dtype.code, 8)).value().dtype().bits == 8);
  }
  const int8_t numbers[] = {-8, 7, 8};
  const Tensor wide =
      Tensor::FromBytes(DataType::Int(8), Dims{3}, {reinterpret_cast<const uint8_t*>(numbers), 3}).value();
  CHECK(PackIntegersAs(wide, DataType::Int(4)).status().message() == "element 2 of int8[3] is 8, which is no int4");
  CHECK(PackIntegersAs(wide, DataType::UInt(4)).value().dtype() == DataType::Int(8));  // of another signedness
}

TEST_CASE("safetensors hold float4 packed, an odd count too") {
  const std::vector<uint8_t> packed = {0x21, 0xF7, 0x03};
  const NamedTensor named{"x", Tensor::FromBytes(kFloat4E2M1FN, Dims{5}, packed).value()};
  Buffer file = Written(WriteSafetensors, {&named, 1});
  const std::vector<NamedTensor> read = ReadSafetensors(SharedBytes::Own(std::move(file)), nullptr).value();
  REQUIRE(read.size() == 1);
  CHECK(read[0].tensor.TypeToString() == "float4_e2m1fn[5]");
  CHECK(std::equal(packed.begin(), packed.end(), read[0].tensor.bytes().begin()));
}

}  // namespace
}  // namespace ingot::formats
