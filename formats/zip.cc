// The records of a zip file, checked before any data is used, the inflation of entries by zlib, and the writer. Field
// names and layouts: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.
#include "formats/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <set>

#include "formats/byte_reader.h"
#include "formats/byte_writer.h"

namespace ingot::formats {
namespace {

constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocator64Signature = 0x07064b50;
constexpr uint64_t kLocalBytes = 30;
constexpr uint64_t kCentralBytes = 46;
constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kLocator64Bytes = 20;
constexpr uint64_t kEnd64Bytes = 56;
constexpr uint64_t kMaxCommentBytes = 65535;
constexpr uint16_t kExtra64 = 0x0001;
constexpr uint16_t kFlagEncrypted = 1;
constexpr uint16_t kFlagDescriptor = 8;
constexpr uint16_t kFlagUtf8 = 1 << 11;
constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
constexpr uint16_t kVersion64 = 45;
constexpr uint16_t kVersionPlain = 20;
constexpr uint16_t kDate1980 = 1 << 5 | 1;  // January 1st, 1980
constexpr uint32_t kMax32 = 0xffffffff;
constexpr uint16_t kMax16 = 0xffff;
// Deflate reaches 1032:1 (258 bytes from two bits); what claims more is no deflate stream.
constexpr uint64_t kMaxDeflateRatio = 1032;

Status BadZip(std::string message) { return Status(StatusCode::kBadInput, "zip: " + std::move(message)); }

struct Directory {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t num_entries = 0;
};

// The end record is the last one whose comment reaches exactly to the end of the file.
Result<uint64_t> FindEnd(std::span<const std::byte> file) {
  if (file.size() < kEndBytes) return BadZip("no end record: too short");
  const uint64_t last = file.size() - kEndBytes;
  const uint64_t first = last - std::min(last, kMaxCommentBytes);
  for (uint64_t at = last;; --at) {
    ByteReader reader(file.subspan(at), "zip end record", StatusCode::kBadInput);
    INGOT_ASSIGN_OR_RETURN(const uint32_t signature, reader.U32());
    if (signature == kEndSignature) {
      INGOT_RETURN_IF_ERROR(reader.Skip(16));
      INGOT_ASSIGN_OR_RETURN(const uint16_t comment, reader.U16());
      if (comment == reader.remaining()) return at;
    }
    if (at == first) return BadZip("no end record");
  }
}

Result<Directory> ReadEnd64(std::span<const std::byte> file, uint64_t end) {
  if (end < kLocator64Bytes) return BadZip("no zip64 locator");
  ByteReader locator(file.subspan(end - kLocator64Bytes), "zip64 locator", StatusCode::kBadInput);
  INGOT_ASSIGN_OR_RETURN(const uint32_t locator_signature, locator.U32());
  if (locator_signature != kLocator64Signature) return BadZip("no zip64 locator");
  INGOT_RETURN_IF_ERROR(locator.Skip(4));
  INGOT_ASSIGN_OR_RETURN(const uint64_t offset, locator.U64());
  ByteReader reader(file, "zip64 end record", StatusCode::kBadInput);
  INGOT_RETURN_IF_ERROR(reader.Seek(offset));
  INGOT_ASSIGN_OR_RETURN(const uint32_t signature, reader.U32());
  if (signature != kEnd64Signature) return reader.Error("no zip64 end record");
  INGOT_RETURN_IF_ERROR(reader.Skip(8 + 2 + 2));  // its size, versions
  INGOT_ASSIGN_OR_RETURN(const uint32_t disk, reader.U32());
  INGOT_ASSIGN_OR_RETURN(const uint32_t directory_disk, reader.U32());
  INGOT_ASSIGN_OR_RETURN(const uint64_t entries_here, reader.U64());
  Directory directory;
  INGOT_ASSIGN_OR_RETURN(directory.num_entries, reader.U64());
  INGOT_ASSIGN_OR_RETURN(directory.size, reader.U64());
  INGOT_ASSIGN_OR_RETURN(directory.offset, reader.U64());
  if (disk != 0 || directory_disk != 0 || entries_here != directory.num_entries) return BadZip("spans several disks");
  return directory;
}

Result<Directory> ReadEnd(std::span<const std::byte> file) {
  INGOT_ASSIGN_OR_RETURN(const uint64_t end, FindEnd(file));
  ByteReader reader(file.subspan(end), "zip end record", StatusCode::kBadInput);
  INGOT_RETURN_IF_ERROR(reader.Skip(4));
  INGOT_ASSIGN_OR_RETURN(const uint16_t disk, reader.U16());
  INGOT_ASSIGN_OR_RETURN(const uint16_t directory_disk, reader.U16());
  INGOT_ASSIGN_OR_RETURN(const uint16_t entries_here, reader.U16());
  INGOT_ASSIGN_OR_RETURN(const uint16_t num_entries, reader.U16());
  INGOT_ASSIGN_OR_RETURN(const uint32_t size, reader.U32());
  INGOT_ASSIGN_OR_RETURN(const uint32_t offset, reader.U32());
  if (num_entries == kMax16 || size == kMax32 || offset == kMax32) return ReadEnd64(file, end);
  if (disk != 0 || directory_disk != 0 || entries_here != num_entries) return BadZip("spans several disks");
  return Directory{offset, size, num_entries};
}

// Replaces the fields that are all ones by the values of the zip64 extra field, which come in this order.
Status ApplyExtra64(std::span<const std::byte> extra, uint64_t* size, uint64_t* data_size, uint64_t* offset) {
  std::vector<uint64_t*> wanted;
  for (uint64_t* field : {size, data_size, offset}) {
    if (field != nullptr && *field == kMax32) wanted.push_back(field);
  }
  if (wanted.empty()) return Status();
  ByteReader reader(extra, "zip extra field", StatusCode::kBadInput);
  while (reader.remaining() >= 4) {
    INGOT_ASSIGN_OR_RETURN(const uint16_t id, reader.U16());
    INGOT_ASSIGN_OR_RETURN(const uint16_t bytes, reader.U16());
    INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> content, reader.Bytes(bytes));
    if (id != kExtra64) continue;
    ByteReader values(content, "zip64 extra field", StatusCode::kBadInput);
    for (uint64_t* field : wanted) {
      INGOT_ASSIGN_OR_RETURN(*field, values.U64());
    }
    return Status();
  }
  return BadZip("no zip64 extra field for a size of all ones");
}

struct CentralRecord {
  ZipEntry entry;
  uint16_t method = 0;
  uint64_t local_offset = 0;
};

Result<CentralRecord> ReadCentral(ByteReader& reader, const ZipLimits& limits) {
  CentralRecord record;
  ZipEntry& entry = record.entry;
  INGOT_ASSIGN_OR_RETURN(const uint32_t signature, reader.U32());
  if (signature != kCentralSignature) return reader.Error("no directory entry");
  INGOT_RETURN_IF_ERROR(reader.Skip(4));  // versions
  INGOT_ASSIGN_OR_RETURN(const uint16_t flags, reader.U16());
  INGOT_ASSIGN_OR_RETURN(record.method, reader.U16());
  INGOT_RETURN_IF_ERROR(reader.Skip(4));  // time and date
  INGOT_ASSIGN_OR_RETURN(entry.crc32, reader.U32());
  INGOT_ASSIGN_OR_RETURN(entry.data_size, reader.U32());
  INGOT_ASSIGN_OR_RETURN(entry.size, reader.U32());
  INGOT_ASSIGN_OR_RETURN(const uint16_t name_bytes, reader.U16());
  INGOT_ASSIGN_OR_RETURN(const uint16_t extra_bytes, reader.U16());
  INGOT_ASSIGN_OR_RETURN(const uint16_t comment_bytes, reader.U16());
  INGOT_ASSIGN_OR_RETURN(const uint16_t disk, reader.U16());
  INGOT_RETURN_IF_ERROR(reader.Skip(6));  // attributes
  INGOT_ASSIGN_OR_RETURN(record.local_offset, reader.U32());
  if (name_bytes > limits.max_name_bytes) return reader.Error("a name of " + std::to_string(name_bytes) + " bytes");
  INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> name, reader.Bytes(name_bytes));
  entry.name = AsText(name);
  INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> extra, reader.Bytes(extra_bytes));
  INGOT_RETURN_IF_ERROR(reader.Skip(comment_bytes));
  INGOT_RETURN_IF_ERROR(ApplyExtra64(extra, &entry.size, &entry.data_size, &record.local_offset));
  if ((flags & kFlagEncrypted) != 0) return BadZip("entry \"" + entry.name + "\" is encrypted");
  if (disk != 0) return BadZip("spans several disks");
  if (record.method != kStored && record.method != kDeflated) {
    return BadZip("entry \"" + entry.name + "\" uses compression method " + std::to_string(record.method) +
                  ", expected 0 (stored) or 8 (deflate)");
  }
  entry.is_deflated = record.method == kDeflated;
  return record;
}

// Checks the local header against the directory and finds the data behind it.
Status LocateData(std::span<const std::byte> file, uint64_t directory_offset, CentralRecord* record) {
  ZipEntry& entry = record->entry;
  const auto fail = [&](const char* what) { return BadZip("entry \"" + entry.name + "\": " + what); };
  ByteReader reader(file.first(directory_offset), "zip local header", StatusCode::kBadInput);
  INGOT_RETURN_IF_ERROR(reader.Seek(record->local_offset));
  INGOT_ASSIGN_OR_RETURN(const uint32_t signature, reader.U32());
  if (signature != kLocalSignature) return fail("no local header where the directory says");
  INGOT_RETURN_IF_ERROR(reader.Skip(2));
  INGOT_ASSIGN_OR_RETURN(const uint16_t flags, reader.U16());
  INGOT_ASSIGN_OR_RETURN(const uint16_t method, reader.U16());
  INGOT_RETURN_IF_ERROR(reader.Skip(4));
  INGOT_ASSIGN_OR_RETURN(const uint32_t crc32, reader.U32());
  uint64_t data_size = 0, size = 0;
  INGOT_ASSIGN_OR_RETURN(data_size, reader.U32());
  INGOT_ASSIGN_OR_RETURN(size, reader.U32());
  INGOT_ASSIGN_OR_RETURN(const uint16_t name_bytes, reader.U16());
  INGOT_ASSIGN_OR_RETURN(const uint16_t extra_bytes, reader.U16());
  INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> name, reader.Bytes(name_bytes));
  INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> extra, reader.Bytes(extra_bytes));
  INGOT_RETURN_IF_ERROR(ApplyExtra64(extra, &size, &data_size, nullptr));
  if (AsText(name) != entry.name || method != record->method) return fail("its local header says something else");
  // With a data descriptor the sizes follow the data, and are zero here.
  const bool has_descriptor = (flags & kFlagDescriptor) != 0;
  if (!has_descriptor && (data_size != entry.data_size || size != entry.size || crc32 != entry.crc32)) {
    return fail("its local header says other sizes");
  }
  entry.data_offset = reader.offset();
  if (entry.data_size > reader.remaining()) return fail("its data reaches beyond the file's");
  return Status();
}

// `left` is what entries may decompress to behind those before.
Status CheckSizes(const ZipEntry& entry, const ZipLimits& limits, uint64_t& left) {
  const auto fail = [&](const std::string& what) { return BadZip("entry \"" + entry.name + "\": " + what); };
  if (!entry.is_deflated && entry.size != entry.data_size) return fail("stored, but with two sizes");
  if (entry.is_deflated && entry.size / kMaxDeflateRatio > entry.data_size) {
    return fail(std::to_string(entry.data_size) + " bytes cannot decompress to " + std::to_string(entry.size));
  }
  if (!entry.is_deflated) return Status();
  if (entry.size > left) {
    return fail("decompresses to " + std::to_string(entry.size) + " bytes, the limit is " +
                std::to_string(limits.max_decompressed_bytes) + " for all together");
  }
  left -= entry.size;
  return Status();
}

Status CheckDistinct(std::span<const CentralRecord> records) {
  std::set<std::string_view> names;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;  // local header to end of data
  for (const CentralRecord& record : records) {
    if (!names.insert(record.entry.name).second) return BadZip("two entries \"" + record.entry.name + "\"");
    ranges.emplace_back(record.local_offset, record.entry.data_offset + record.entry.data_size);
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) return BadZip("entries overlap");
  }
  return Status();
}

uint32_t Crc32(uint32_t crc, std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Exactly `size` bytes from a raw deflate stream that ends with its last input byte.
Result<std::vector<std::byte>> Inflate(std::span<const std::byte> data, uint64_t size) {
  std::vector<std::byte> content;
  try {
    content.resize(size);
  } catch (const std::exception&) {
    return Status::OutOfMemory("out of memory: " + std::to_string(size) + " bytes requested to decompress into");
  }
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return Status::OutOfMemory();
  constexpr uint64_t kChunk = std::numeric_limits<uInt>::max();
  uint64_t taken = 0, made = 0;
  std::byte overflow{};  // takes the byte too many of a stream that is longer than it says
  int code = Z_OK;
  while (code == Z_OK) {
    if (stream.avail_in == 0) {
      const uint64_t part = std::min<uint64_t>(data.size() - taken, kChunk);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(data.data())) + taken;
      stream.avail_in = static_cast<uInt>(part);
      taken += part;
    }
    const uint64_t room = std::min<uint64_t>(size - made, kChunk);
    const bool is_full = room == 0;
    stream.next_out = reinterpret_cast<Bytef*>(is_full ? &overflow : content.data() + made);
    stream.avail_out = is_full ? 1 : static_cast<uInt>(room);
    const uInt before = stream.avail_out;
    code = inflate(&stream, Z_NO_FLUSH);
    const uint64_t produced = before - stream.avail_out;
    if (is_full && produced > 0) code = Z_DATA_ERROR;
    if (!is_full) made += produced;
  }
  const bool is_fine = code == Z_STREAM_END && made == size && stream.avail_in == 0 && taken == data.size();
  inflateEnd(&stream);
  if (!is_fine) return BadZip("its deflate data is damaged");
  return content;
}

}  // namespace

Result<ZipReader> ZipReader::Open(SharedBytes bytes, const ZipLimits& limits) {
  const std::span<const std::byte> file = bytes.bytes;
  INGOT_ASSIGN_OR_RETURN(const Directory directory, ReadEnd(file));
  if (directory.num_entries > limits.max_entries) {
    return BadZip(std::to_string(directory.num_entries) + " entries, the limit is " +
                  std::to_string(limits.max_entries));
  }
  ByteReader whole(file, "zip directory", StatusCode::kBadInput);
  INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> records_bytes, whole.Slice(directory.offset, directory.size));
  if (directory.num_entries > records_bytes.size() / kCentralBytes) {
    return BadZip("a directory of " + std::to_string(directory.num_entries) + " entries in " +
                  std::to_string(records_bytes.size()) + " bytes");
  }
  ByteReader reader(records_bytes, "zip directory", StatusCode::kBadInput);
  std::vector<CentralRecord> records;
  records.reserve(directory.num_entries);
  uint64_t left = limits.max_decompressed_bytes;
  for (uint64_t i = 0; i < directory.num_entries; ++i) {
    INGOT_ASSIGN_OR_RETURN(CentralRecord record, ReadCentral(reader, limits));
    INGOT_RETURN_IF_ERROR(CheckSizes(record.entry, limits, left));
    INGOT_RETURN_IF_ERROR(LocateData(file, directory.offset, &record));
    records.push_back(std::move(record));
  }
  INGOT_RETURN_IF_ERROR(reader.ExpectEnd());
  INGOT_RETURN_IF_ERROR(CheckDistinct(records));
  ZipReader zip;
  zip.bytes_ = std::move(bytes);
  for (CentralRecord& record : records) zip.entries_.push_back(std::move(record.entry));
  return zip;
}

const ZipEntry* ZipReader::Find(std::string_view name) const {
  for (const ZipEntry& entry : entries_) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

Result<SharedBytes> ZipReader::Read(const ZipEntry& entry) const {
  SharedBytes content(bytes_.owner, bytes_.bytes.subspan(entry.data_offset, entry.data_size));
  if (entry.is_deflated) {
    Result<std::vector<std::byte>> inflated = Inflate(content.bytes, entry.size);
    if (!inflated.ok()) return std::move(inflated).status().WithContext("entry \"" + entry.name + "\"");
    content = SharedBytes::Own(*std::move(inflated));
  }
  if (Crc32(0, content.bytes) != entry.crc32) return BadZip("entry \"" + entry.name + "\": wrong checksum");
  return content;
}

Status ZipWriter::Write(std::span<const std::byte> bytes) {
  offset_ += bytes.size();
  return sink_(bytes);
}

Status ZipWriter::Add(const std::string& name, std::span<const std::span<const std::byte>> pieces) {
  Written written{name, 0, 0, offset_};
  for (const std::span<const std::byte> piece : pieces) {
    written.crc32 = Crc32(written.crc32, piece);
    written.size += piece.size();
  }
  const bool is_64 = written.size >= kMax32;
  ByteWriter header;
  header.U32(kLocalSignature);
  header.U16(is_64 ? kVersion64 : kVersionPlain);
  header.U16(kFlagUtf8);
  header.U16(kStored);
  header.U16(0);
  header.U16(kDate1980);
  header.U32(written.crc32);
  header.U32(is_64 ? kMax32 : static_cast<uint32_t>(written.size));
  header.U32(is_64 ? kMax32 : static_cast<uint32_t>(written.size));
  header.U16(static_cast<uint16_t>(name.size()));
  header.U16(is_64 ? 20 : 0);
  header.Bytes(AsBytes(name));
  if (is_64) {
    header.U16(kExtra64);
    header.U16(16);
    header.U64(written.size);
    header.U64(written.size);
  }
  INGOT_RETURN_IF_ERROR(Write(header.bytes()));
  for (const std::span<const std::byte> piece : pieces) INGOT_RETURN_IF_ERROR(Write(piece));
  written_.push_back(std::move(written));
  return Status();
}

Status ZipWriter::Finish() {
  const uint64_t start = offset_;
  ByteWriter directory;
  for (const Written& entry : written_) {
    const bool size_64 = entry.size >= kMax32;
    const bool offset_64 = entry.offset >= kMax32;
    const bool is_64 = size_64 || offset_64;
    directory.U32(kCentralSignature);
    directory.U16(is_64 ? kVersion64 : kVersionPlain);
    directory.U16(is_64 ? kVersion64 : kVersionPlain);
    directory.U16(kFlagUtf8);
    directory.U16(kStored);
    directory.U16(0);
    directory.U16(kDate1980);
    directory.U32(entry.crc32);
    directory.U32(size_64 ? kMax32 : static_cast<uint32_t>(entry.size));
    directory.U32(size_64 ? kMax32 : static_cast<uint32_t>(entry.size));
    directory.U16(static_cast<uint16_t>(entry.name.size()));
    directory.U16(is_64 ? static_cast<uint16_t>(4 + (size_64 ? 16 : 0) + (offset_64 ? 8 : 0)) : 0);
    directory.Zeros(2 + 2 + 2 + 4);  // comment, disk, attributes
    directory.U32(offset_64 ? kMax32 : static_cast<uint32_t>(entry.offset));
    directory.Bytes(AsBytes(entry.name));
    if (!is_64) continue;
    directory.U16(kExtra64);
    directory.U16(static_cast<uint16_t>((size_64 ? 16 : 0) + (offset_64 ? 8 : 0)));
    if (size_64) {
      directory.U64(entry.size);
      directory.U64(entry.size);
    }
    if (offset_64) directory.U64(entry.offset);
  }
  const uint64_t directory_bytes = directory.size();
  const uint64_t count = written_.size();
  if (count >= kMax16 || start >= kMax32 || directory_bytes >= kMax32) {
    const uint64_t end_64 = start + directory_bytes;
    directory.U32(kEnd64Signature);
    directory.U64(kEnd64Bytes - 12);
    directory.U16(kVersion64);
    directory.U16(kVersion64);
    directory.U32(0);
    directory.U32(0);
    directory.U64(count);
    directory.U64(count);
    directory.U64(directory_bytes);
    directory.U64(start);
    directory.U32(kLocator64Signature);
    directory.U32(0);
    directory.U64(end_64);
    directory.U32(1);
  }
  directory.U32(kEndSignature);
  directory.U32(0);  // disks
  directory.U16(static_cast<uint16_t>(std::min<uint64_t>(count, kMax16)));
  directory.U16(static_cast<uint16_t>(std::min<uint64_t>(count, kMax16)));
  directory.U32(static_cast<uint32_t>(std::min<uint64_t>(directory_bytes, kMax32)));
  directory.U32(static_cast<uint32_t>(std::min<uint64_t>(start, kMax32)));
  directory.U16(0);
  return Write(directory.bytes());
}

}  // namespace ingot::formats
