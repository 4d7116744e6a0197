// Base64, TVM's tensor format and its JSON object graph, each by a small reader that checks every place and size.
#include "compiler/script/tvm_metadata.h"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "formats/byte_reader.h"
#include "runtime/suggest.h"

namespace ingot::script {
namespace {

using Json = nlohmann::json;

// The number that TVM's runtime writes in front of a tensor's bytes.
constexpr uint64_t kTensorMagic = 0xDD5E40F096B4A13F;

Status Bad(std::string message) { return Status(StatusCode::kBadInput, std::move(message)); }

// RFC 4648, section 4, with padding.
Result<std::vector<std::byte>> DecodeBase64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto bad = [] { return Bad("a tensor of the metadata is not in base64"); };
  size_t size = text.size();
  if (size % 4 != 0) return bad();
  while (size > 0 && text.size() - size < 2 && text[size - 1] == '=') --size;
  std::array<int8_t, 256> values;
  values.fill(-1);
  for (size_t i = 0; i < kDigits.size(); ++i) values[static_cast<uint8_t>(kDigits[i])] = static_cast<int8_t>(i);
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char digit : text.substr(0, size)) {
    const int8_t value = values[static_cast<uint8_t>(digit)];
    if (value < 0) return bad();
    bits = bits << 6 | static_cast<uint32_t>(value);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes.push_back(static_cast<std::byte>(bits >> num_bits & 0xFF));
  }
  return bytes;
}

// Layout: magic, reserved, device (type, id), rank, dtype (code, bits, lanes), dims, size in bytes, elements.
Result<std::shared_ptr<const ir::ConstantData>> DecodeTensor(std::string_view text) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, DecodeBase64(text));
  formats::ByteReader reader(bytes, "a tensor of the metadata", StatusCode::kBadInput);
  INGOT_ASSIGN_OR_RETURN(const uint64_t magic, reader.U64());
  if (magic != kTensorMagic) return reader.Error("these are no bytes of a tensor");
  INGOT_RETURN_IF_ERROR(reader.Skip(16));
  INGOT_ASSIGN_OR_RETURN(const uint32_t rank, reader.U32());
  INGOT_ASSIGN_OR_RETURN(const uint8_t code, reader.U8());
  INGOT_ASSIGN_OR_RETURN(const uint8_t bits, reader.U8());
  INGOT_ASSIGN_OR_RETURN(const uint16_t lanes, reader.U16());
  DataType dtype(static_cast<TypeCode>(code), bits, lanes);
  if (dtype == DataType::UInt(1)) dtype = DataType::Bool();  // before DLPack had one
  if (!dtype.is_scalar() || dtype.is_handle() || !dtype.IsKnown()) return reader.Error("the dtype is unknown");
  if (rank > reader.remaining() / sizeof(int64_t)) return reader.Error("the dimensions are cut off");
  std::vector<int64_t> dims;
  int64_t count = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    INGOT_ASSIGN_OR_RETURN(dims.emplace_back(), reader.I64());
    if (dims[i] < 0 || __builtin_mul_overflow(count, dims[i], &count)) return reader.Error("a dimension is too large");
  }
  INGOT_ASSIGN_OR_RETURN(const uint64_t size_bytes, reader.U64());
  INGOT_ASSIGN_OR_RETURN(const int64_t expected, dtype.SizeBytes(count));
  if (size_bytes != static_cast<uint64_t>(expected) || reader.remaining() != size_bytes) {
    return reader.Error("expected " + std::to_string(expected) + " bytes of elements, got " +
                        std::to_string(reader.remaining()));
  }
  INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> elements, reader.Bytes(size_bytes));
  return ir::ConstantData::FromBytes(dtype, std::move(dims), {elements.begin(), elements.end()});
}

const Json* Member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

// Returns a number, or a number that is written as a string of digits.
std::optional<size_t> AsPlace(const Json* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned()) return value->get<size_t>();
  const auto* text = value->get_ptr<const std::string*>();
  if (text == nullptr) return std::nullopt;
  size_t place = 0;
  const auto read = std::from_chars(text->data(), text->data() + text->size(), place);
  if (read.ec != std::errc() || read.ptr != text->data() + text->size()) return std::nullopt;
  return place;
}

// The nodes of a document in either layout. A node is known by its index; an index out of range gives nothing.
class ObjectGraph {
 public:
  explicit ObjectGraph(const Json& document)
      : nodes_(Member(document, "nodes")),
        tensors_(Member(document, "b64ndarrays")),
        is_old_(Member(document, "root") != nullptr),
        root_(AsPlace(Member(document, is_old_ ? "root" : "root_index"))) {}

  std::optional<size_t> root() const { return root_; }
  std::string TypeOf(size_t node) const {
    const auto* type = Text(Part(node, is_old_ ? "type_key" : "type"));
    return type == nullptr ? "" : *type;
  }
  std::optional<std::vector<size_t>> ListOf(size_t node) const {
    const Json* data = Part(node, "data");
    if (data == nullptr || !data->is_array()) return std::nullopt;
    std::vector<size_t> places;
    for (const Json& item : *data) {
      const std::optional<size_t> place = AsPlace(&item);
      if (!place) return std::nullopt;
      places.push_back(*place);
    }
    return places;
  }
  // Returns the keys of a map from strings, and the indices of their values.
  std::optional<std::vector<std::pair<std::string, size_t>>> MapOf(size_t node) const {
    std::optional<std::vector<size_t>> places = ListOf(node);
    if (!places) return std::nullopt;
    std::vector<std::pair<std::string, size_t>> entries;
    if (is_old_) {
      const Json* keys = Part(node, "keys");
      if (keys == nullptr || !keys->is_array() || keys->size() != places->size()) return std::nullopt;
      for (size_t i = 0; i < places->size(); ++i) {
        const std::string* key = Text(&(*keys)[i]);
        if (key == nullptr) return std::nullopt;
        entries.emplace_back(*key, (*places)[i]);
      }
      return entries;
    }
    if (places->size() % 2 != 0) return std::nullopt;
    for (size_t i = 0; i < places->size(); i += 2) {
      const std::string* key = Text(Part((*places)[i], "data"));
      if (key == nullptr) return std::nullopt;
      entries.emplace_back(*key, (*places)[i + 1]);
    }
    return entries;
  }
  // Returns the text of the tensor that a constant holds; null if there is none.
  const std::string* TensorOf(size_t constant) const {
    const Json* fields = Part(constant, is_old_ ? "attrs" : "data");
    if (fields == nullptr) return nullptr;
    std::optional<size_t> place;
    for (const char* name : {"value", "data"}) {  // 0.27's name for the field, the older one
      if (!place) place = AsPlace(Member(*fields, name));
    }
    if (!place) return nullptr;
    if (!is_old_) return Text(Part(*place, "data"));
    const bool is_there = tensors_ != nullptr && tensors_->is_array() && *place < tensors_->size();
    return is_there ? Text(&(*tensors_)[*place]) : nullptr;
  }

 private:
  static const std::string* Text(const Json* value) {
    return value == nullptr ? nullptr : value->get_ptr<const std::string*>();
  }
  const Json* Part(size_t node, const char* name) const {
    if (nodes_ == nullptr || !nodes_->is_array() || node >= nodes_->size()) return nullptr;
    return Member((*nodes_)[node], name);
  }

  const Json *nodes_, *tensors_;
  bool is_old_;
  std::optional<size_t> root_;
};

}  // namespace

Result<TvmMetadata> TvmMetadata::Parse(std::string_view json) {
  const auto no_map = [] { return Bad("expected a map from types to lists of objects, as TVM's save_json writes it"); };
  const Json document = Json::parse(json.begin(), json.end(), nullptr, false);
  if (document.is_discarded()) return Bad("the metadata is no JSON");
  const ObjectGraph graph(document);
  if (!graph.root()) return no_map();
  const auto lists = graph.MapOf(*graph.root());
  if (!lists) return no_map();
  TvmMetadata metadata;
  std::unordered_map<size_t, std::shared_ptr<const ir::ConstantData>> decoded;
  for (const auto& [key, list] : *lists) {
    const std::optional<std::vector<size_t>> places = graph.ListOf(list);
    if (!places) return no_map();
    std::vector<Entry>& entries = metadata.lists_[key];
    for (const size_t place : *places) {
      Entry& entry = entries.emplace_back(Entry{graph.TypeOf(place), nullptr});
      if (entry.type != "ir.GenericConst" && entry.type != "relax.expr.Constant") continue;
      const std::string* text = graph.TensorOf(place);
      if (text == nullptr) return Bad("a constant of the metadata has no tensor");
      std::shared_ptr<const ir::ConstantData>& data = decoded[place];
      if (data == nullptr) {
        INGOT_ASSIGN_OR_RETURN(data, DecodeTensor(*text));
      }
      entry.data = data;
    }
  }
  return metadata;
}

Result<std::shared_ptr<const ir::ConstantData>> TvmMetadata::Find(std::string_view type, int64_t index) const {
  const auto list = lists_.find(type);
  if (list == lists_.end()) {
    std::vector<std::string_view> known;
    for (const auto& [name, entries] : lists_) known.push_back(name);
    return Status(StatusCode::kNotFound, "the metadata has no \"" + std::string(type) + "\"" + DidYouMean(type, known));
  }
  const std::vector<Entry>& entries = list->second;
  if (index < 0 || index >= std::ssize(entries)) {
    return Status(StatusCode::kNotFound, "the metadata has " + std::to_string(entries.size()) + " of \"" +
                                             std::string(type) + "\", there is no " + std::to_string(index));
  }
  const Entry& entry = entries[static_cast<size_t>(index)];
  if (entry.data != nullptr) return entry.data;
  return Status(StatusCode::kUnsupportedModel,
                "this is a \"" + entry.type + "\"; of the metadata's objects, constants alone are supported");
}

}  // namespace ingot::script
