// The header is read by events (SAX), so that depth, duplicates and types are checked while it is parsed; then the data
// offsets are checked to cover the data without gap or overlap. The writer sorts tensors by alignment.
#include "formats/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "formats/byte_reader.h"
#include "formats/byte_writer.h"
#include "runtime/float4.h"
#include "runtime/utf8.h"

namespace ingot::formats {
namespace {

// As in the reference implementation.
constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
constexpr uint64_t kDataAlignment = 64;  // of the writer: what readers that map the file like best
constexpr const char* kMetadataKey = "__metadata__";

Status BadSafetensors(std::string message) { return Status(StatusCode::kBadInput, std::move(message)); }

struct DtypeName {
  const char* name;
  DataType dtype;
};
constexpr DtypeName kDtypes[] = {
    {"BOOL", DataType::Bool()},
    {"I8", DataType::Int(8)},
    {"I16", DataType::Int(16)},
    {"I32", DataType::Int(32)},
    {"I64", DataType::Int(64)},
    {"U8", DataType::UInt(8)},
    {"U16", DataType::UInt(16)},
    {"U32", DataType::UInt(32)},
    {"U64", DataType::UInt(64)},
    {"F16", DataType::Float(16)},
    {"BF16", DataType::Bfloat16()},
    {"F32", DataType::Float(32)},
    {"F64", DataType::Float(64)},
    {"C64", {TypeCode::kComplex, 64}},
    {"F8_E4M3", {TypeCode::kFloat8E4M3FN, 8}},
    {"F8_E5M2", {TypeCode::kFloat8E5M2, 8}},
    {"F8_E8M0", {TypeCode::kFloat8E8M0FNU, 8}},
    {"F8_E4M3FNUZ", {TypeCode::kFloat8E4M3FNUZ, 8}},
    {"F8_E5M2FNUZ", {TypeCode::kFloat8E5M2FNUZ, 8}},
    {"F4", kFloat4E2M1FN},
};

struct Entry {
  std::string name;
  std::string dtype_name;
  std::vector<int64_t> dims;
  std::vector<uint64_t> offsets;  // begin and end in the data
  bool has_dtype = false, has_dims = false, has_offsets = false;
};

// Takes the header's events, so that depth, duplicates and types are checked while it is read and no document is
// built. Expected: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}.
class HeaderHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<Entry> entries;
  std::string error;

  bool null() override { return Fail("null"); }
  bool boolean(bool) override { return Fail("a boolean"); }
  bool number_integer(number_integer_t) override { return Fail("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return Fail("a number that is no 64-bit integer"); }
  bool binary(binary_t&) override { return Fail("binary data"); }
  bool number_unsigned(number_unsigned_t value) override {
    if (!in_list_) return Fail("a number");
    if (field_ == "shape") {
      if (value > static_cast<uint64_t>(INT64_MAX) || entries.back().dims.size() >= kMaxRank) {
        return FailWith("a shape beyond rank " + std::to_string(kMaxRank) + " or 63 bits");
      }
      entries.back().dims.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (entries.back().offsets.size() == 2) return FailWith("more than two data_offsets");
    entries.back().offsets.push_back(value);
    return true;
  }
  bool string(string_t& value) override {
    if (in_metadata_ && depth_ == 2) return true;
    if (depth_ != 2 || in_list_ || field_ != "dtype") return Fail("a string");
    entries.back().dtype_name = value;
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_ >= 2 || in_list_) return Fail("an object");
    ++depth_;
    return true;
  }
  bool end_object() override {
    if (--depth_ == 1) {
      if (!in_metadata_) {
        const Entry& entry = entries.back();
        if (!entry.has_dtype || !entry.has_dims || entry.offsets.size() != 2) {
          return FailWith("needs dtype, shape and two data_offsets");
        }
      }
      in_metadata_ = false;
    }
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ == 1) {
      if (!names_.insert(value).second) return FailWith("the name \"" + value.substr(0, 80) + "\" twice");
      in_metadata_ = value == kMetadataKey;
      if (!in_metadata_) entries.push_back({value, {}, {}, {}});
      return true;
    }
    if (in_metadata_) return true;
    field_ = value;
    Entry& entry = entries.back();
    bool* seen = value == "dtype"          ? &entry.has_dtype
                 : value == "shape"        ? &entry.has_dims
                 : value == "data_offsets" ? &entry.has_offsets
                                           : nullptr;
    if (seen == nullptr) return FailWith("the field \"" + value.substr(0, 80) + "\"");
    if (*seen) return FailWith("the field \"" + value.substr(0, 80) + "\" twice");
    *seen = true;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ != 2 || in_metadata_ || in_list_ || field_ == "dtype") return Fail("a list");
    in_list_ = true;
    return true;
  }
  bool end_array() override {
    in_list_ = false;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    if (error.empty()) error = "no JSON at byte " + std::to_string(position);
    return false;
  }

 private:
  bool Fail(const char* what) { return FailWith(std::string("unexpected ") + what); }
  bool FailWith(const std::string& what) {
    error = (entries.empty() ? "" : "tensor \"" + entries.back().name.substr(0, 80) + "\": ") + what;
    return false;
  }

  int depth_ = 0;
  bool in_list_ = false;
  bool in_metadata_ = false;
  std::string field_;
  std::set<std::string> names_;
};

struct Layout {
  std::vector<Entry> entries;
  std::span<const std::byte> data;
};

Result<Layout> ReadHeader(const SharedBytes& bytes) {
  ByteReader reader(bytes.bytes, "safetensors", StatusCode::kBadInput);
  INGOT_ASSIGN_OR_RETURN(const uint64_t header_bytes, reader.U64());
  if (header_bytes > kMaxSafetensorsHeaderBytes) {
    return BadSafetensors("safetensors header of " + std::to_string(header_bytes) + " bytes, expected at most " +
                          std::to_string(kMaxSafetensorsHeaderBytes));
  }
  INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> header, reader.Bytes(header_bytes));
  const std::string_view text = AsText(header);
  if (!text.starts_with('{')) return BadSafetensors("safetensors header does not start with '{'");
  HeaderHandler handler;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &handler)) {
    return BadSafetensors("safetensors header: " + handler.error);
  }
  INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> data, reader.Bytes(reader.remaining()));
  return Layout{std::move(handler.entries), data};
}

Result<Tensor> MakeTensor(const Entry& entry, const SharedBytes& file, std::span<const std::byte> data) {
  const auto* row = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                 [&](const DtypeName& r) { return entry.dtype_name == r.name; });
  if (row == std::end(kDtypes)) return BadSafetensors("unsupported dtype \"" + entry.dtype_name.substr(0, 40) + "\"");
  const uint64_t begin = entry.offsets[0], end = entry.offsets[1];
  if (begin > end || end > data.size()) {
    return BadSafetensors("data_offsets [" + std::to_string(begin) + ", " + std::to_string(end) + "] of " +
                          std::to_string(data.size()) + " bytes of data");
  }
  Result<Tensor> tensor =
      Tensor::FromShared(row->dtype, entry.dims, SharedBytes(file.owner, data.subspan(begin, end - begin)));
  if (!tensor.ok() && tensor.status().code() == StatusCode::kInvalidArgument)
    return BadSafetensors(tensor.status().message());
  return tensor;
}

// The tensors' ranges must cover the data without gap or overlap.
Status CheckCoverage(std::span<const Entry> entries, uint64_t data_bytes) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const Entry& entry : entries) ranges.emplace_back(entry.offsets[0], entry.offsets[1]);
  std::sort(ranges.begin(), ranges.end());
  uint64_t covered = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != covered || end < begin) {
      return BadSafetensors("the tensors' data_offsets overlap or leave a gap at byte " +
                            std::to_string(std::min(begin, covered)));
    }
    covered = end;
  }
  if (covered != data_bytes) {
    return BadSafetensors("the tensors cover " + std::to_string(covered) + " of " + std::to_string(data_bytes) +
                          " bytes of data");
  }
  return Status();
}

}  // namespace

Result<std::vector<NamedTensor>> ReadSafetensors(const SharedBytes& bytes, const std::string* key) {
  INGOT_ASSIGN_OR_RETURN(const Layout layout, ReadHeader(bytes));
  INGOT_RETURN_IF_ERROR(CheckCoverage(layout.entries, layout.data.size()));
  std::vector<NamedTensor> tensors;
  for (const Entry& entry : layout.entries) {
    if (key != nullptr && entry.name != *key) continue;
    Result<Tensor> tensor = MakeTensor(entry, bytes, layout.data);
    if (!tensor.ok()) return std::move(tensor).status().WithContext("\"" + entry.name.substr(0, 80) + "\"");
    tensors.push_back({entry.name, *std::move(tensor)});
  }
  if (key != nullptr && tensors.empty()) {
    std::vector<std::string> names;
    for (const Entry& entry : layout.entries) names.push_back(entry.name);
    return NoSuchTensor(*key, names);
  }
  return tensors;
}

bool SafetensorsHolds(DataType dtype) {
  return std::any_of(std::begin(kDtypes), std::end(kDtypes), [&](const DtypeName& row) { return row.dtype == dtype; });
}

Status WriteSafetensors(std::span<const NamedTensor> tensors, const ByteSink& sink) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto rank = [&](size_t i) {
    const Tensor& tensor = tensors[i].tensor;
    return std::pair(tensor.size_bytes() % static_cast<int64_t>(kDataAlignment) != 0, -int{tensor.dtype().bits});
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  uint64_t offset = 0;
  for (const size_t i : order) {
    const NamedTensor& named = tensors[i];
    const auto* row = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                   [&](const DtypeName& r) { return named.tensor.dtype() == r.dtype; });
    if (row == std::end(kDtypes)) {
      return BadSafetensors("\"" + named.name + "\": safetensors has no dtype " + named.tensor.dtype().ToString());
    }
    if (named.name.empty() || named.name == kMetadataKey || header.contains(named.name) || !IsUtf8(named.name)) {
      return BadSafetensors("tensors in a safetensors file need distinct names in UTF-8, got \"" + named.name + "\"");
    }
    const auto size = static_cast<uint64_t>(named.tensor.size_bytes());
    const std::vector<int64_t> dims(named.tensor.dims().begin(), named.tensor.dims().end());
    header[named.name] = {{"dtype", row->name}, {"shape", dims}, {"data_offsets", {offset, offset + size}}};
    offset += size;
  }
  std::string text = header.dump();  // throws on text that is not UTF-8; the names were checked
  const uint64_t header_bytes = sizeof(uint64_t) + text.size();
  text.append((kDataAlignment - header_bytes % kDataAlignment) % kDataAlignment, ' ');
  ByteWriter length;
  length.U64(text.size());
  INGOT_RETURN_IF_ERROR(sink(length.bytes()));
  INGOT_RETURN_IF_ERROR(sink(AsBytes(text)));
  for (const size_t i : order) {
    INGOT_ASSIGN_OR_RETURN(const Tensor compact, tensors[i].tensor.Compact());
    INGOT_RETURN_IF_ERROR(sink(std::as_bytes(compact.bytes())));
  }
  return Status();
}

}  // namespace ingot::formats
