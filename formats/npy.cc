// The parser of .npy headers (Python dict literals), the table of dtypes that NumPy and Ingot share, and the conversion
// of big-endian and Fortran-ordered elements.
#include "formats/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "formats/byte_reader.h"
#include "formats/byte_writer.h"

namespace ingot::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are shared with the file as they are");

constexpr std::string_view kMagic("\x93NUMPY", 6);
// Real headers have around a hundred bytes; NumPy itself stops at 10000 unless told otherwise.
constexpr uint64_t kMaxHeaderBytes = 1 << 16;
constexpr uint64_t kHeaderAlignment = 64;
// numpy.save leaves room for the first dimension to grow to this many digits.
constexpr size_t kGrowthDigits = 21;

Status BadNpy(std::string message) { return Status(StatusCode::kBadInput, std::move(message)); }

// One row per dtype that both have: NumPy's kind letter and size.
struct NumpyType {
  char kind;
  int size_bytes;
  DataType dtype;
};
constexpr NumpyType kTypes[] = {
    {'b', 1, DataType::Bool()},         {'i', 1, DataType::Int(8)},           {'i', 2, DataType::Int(16)},
    {'i', 4, DataType::Int(32)},        {'i', 8, DataType::Int(64)},          {'u', 1, DataType::UInt(8)},
    {'u', 2, DataType::UInt(16)},       {'u', 4, DataType::UInt(32)},         {'u', 8, DataType::UInt(64)},
    {'f', 2, DataType::Float(16)},      {'f', 4, DataType::Float(32)},        {'f', 8, DataType::Float(64)},
    {'c', 8, {TypeCode::kComplex, 64}}, {'c', 16, {TypeCode::kComplex, 128}},
};

struct Descr {
  DataType dtype;
  bool is_big_endian = false;
};

// Why a kind of NumPy's is refused.
const char* RefusedKind(char kind) {
  switch (kind) {
    case 'O':
      return "object arrays are pickled Python code and are never loaded";
    case 'S':
    case 'a':
    case 'U':
      return "strings are not supported";
    case 'V':
      return "raw or structured elements are not supported (bfloat16 and float8 are saved so: use .safetensors)";
    case 'M':
    case 'm':
      return "times are not supported";
  }
  return "unknown";
}

Result<Descr> ParseDescr(std::string_view text) {
  const auto refuse = [&](const char* why) { return BadNpy("dtype '" + std::string(text) + "': " + why); };
  std::string_view rest = text;
  Descr descr;
  if (!rest.empty() && std::string_view("<>=|").find(rest[0]) != std::string_view::npos) {
    descr.is_big_endian = rest[0] == '>';
    rest.remove_prefix(1);
  }
  if (rest.empty()) return refuse("unknown");
  const char kind = rest[0];
  int size_bytes = 0;
  const char* end = rest.data() + rest.size();
  const auto [parsed, error] = std::from_chars(rest.data() + 1, end, size_bytes);
  if (error != std::errc() || parsed != end) return refuse(RefusedKind(kind));
  for (const NumpyType& row : kTypes) {
    if (row.kind != kind || row.size_bytes != size_bytes) continue;
    descr.dtype = row.dtype;
    return descr;
  }
  return refuse(RefusedKind(kind));
}

struct Header {
  Descr descr;
  bool is_fortran_order = false;
  std::vector<int64_t> dims;
};

// The header's text: a Python dict literal with the keys 'descr', 'fortran_order' and 'shape', in any order.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Result<Header> Run() {
    Header header;
    std::optional<Descr> descr;
    std::optional<bool> fortran_order;
    std::optional<std::vector<int64_t>> dims;
    INGOT_RETURN_IF_ERROR(Expect('{'));
    while (!Take('}')) {
      INGOT_ASSIGN_OR_RETURN(const std::string_view key, String());
      INGOT_RETURN_IF_ERROR(Expect(':'));
      if (key == "descr" && !descr) {
        if (Peek() == '[') return BadNpy("structured dtypes are not supported");
        INGOT_ASSIGN_OR_RETURN(const std::string_view text, String());
        INGOT_ASSIGN_OR_RETURN(descr, ParseDescr(text));
      } else if (key == "fortran_order" && !fortran_order) {
        INGOT_ASSIGN_OR_RETURN(fortran_order, Bool());
      } else if (key == "shape" && !dims) {
        INGOT_ASSIGN_OR_RETURN(dims, Shape());
      } else {
        return Error("unexpected key \"" + std::string(key.substr(0, 40)) + "\"");
      }
      if (Take(',')) continue;
      INGOT_RETURN_IF_ERROR(Expect('}'));
      break;
    }
    SkipSpace();
    if (at_ != text_.size()) return Error("text after the dict");
    if (!descr || !fortran_order || !dims) return Error("needs 'descr', 'fortran_order' and 'shape'");
    return Header{*descr, *fortran_order, *std::move(dims)};
  }

 private:
  Status Error(const std::string& what) const {
    return BadNpy("npy header, column " + std::to_string(at_ + 1) + ": " + what);
  }
  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  char Peek() {
    SkipSpace();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Take(char c) {
    if (Peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  Status Expect(char c) { return Take(c) ? Status() : Error(std::string("expected '") + c + "'"); }

  Result<std::string_view> String() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return Error("expected a string");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return Error("unterminated string");
    const std::string_view content = text_.substr(at_ + 1, end - at_ - 1);
    const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '\\'; };
    if (!std::all_of(content.begin(), content.end(), is_plain)) return Error("expected plain characters");
    at_ = end + 1;
    return content;
  }

  Result<bool> Bool() {
    SkipSpace();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return word == "True";
    }
    return Error("expected True or False");
  }

  Result<std::vector<int64_t>> Shape() {
    std::vector<int64_t> dims;
    INGOT_RETURN_IF_ERROR(Expect('('));
    bool ends_with_comma = false;
    while (!Take(')')) {
      if (!dims.empty() && !ends_with_comma) return Error("expected ','");
      SkipSpace();
      int64_t dim = 0;
      const char* first = text_.data() + at_;
      const auto [parsed, error] = std::from_chars(first, text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0) return Error("expected a dimension of 0 to 2^63 - 1");
      at_ += static_cast<size_t>(parsed - first);
      if (dims.size() == static_cast<size_t>(kMaxRank)) {
        return Error("more than " + std::to_string(kMaxRank) + " dimensions");
      }
      dims.push_back(dim);
      ends_with_comma = Take(',');
    }
    if (dims.size() == 1 && !ends_with_comma) return Error("expected a tuple");
    return dims;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// Reverses the bytes of every number (of both parts of complex ones) in place.
void SwapBytes(std::span<uint8_t> bytes, DataType dtype) {
  const auto width = static_cast<size_t>(dtype.code == TypeCode::kComplex ? dtype.bits / 16 : dtype.bits / 8);
  for (size_t i = 0; i < bytes.size(); i += width) std::reverse(&bytes[i], &bytes[i] + width);
}

Result<Tensor> MakeTensor(const Header& header, const SharedBytes& file, std::span<const std::byte> data) {
  const DataType dtype = header.descr.dtype;
  const bool swaps = header.descr.is_big_endian && dtype.bits > 8;
  if (!header.is_fortran_order && !swaps) {
    return Tensor::FromShared(dtype, header.dims, SharedBytes(file.owner, data));
  }
  // Fortran order is C order of the reversed dims, with the axes reversed afterwards.
  std::vector<int64_t> dims = header.dims;
  if (header.is_fortran_order) std::reverse(dims.begin(), dims.end());
  INGOT_ASSIGN_OR_RETURN(Tensor tensor,
                         Tensor::FromBytes(dtype, dims, {reinterpret_cast<const uint8_t*>(data.data()), data.size()}));
  if (swaps) SwapBytes(tensor.mutable_bytes(), dtype);
  if (!header.is_fortran_order) return tensor;
  std::vector<int> axes(dims.size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(axes.size() - 1 - i);
  INGOT_ASSIGN_OR_RETURN(const Tensor permuted, tensor.Permute(axes));
  return permuted.Compact();
}

}  // namespace

Result<Tensor> ReadNpy(const SharedBytes& bytes) {
  ByteReader reader(bytes.bytes, "npy", StatusCode::kBadInput);
  const Result<std::span<const std::byte>> magic = reader.Bytes(kMagic.size());
  if (!magic.ok() || AsText(*magic) != kMagic) return BadNpy("not an .npy file: no magic bytes at the start");
  INGOT_ASSIGN_OR_RETURN(const uint8_t major, reader.U8());
  INGOT_ASSIGN_OR_RETURN(const uint8_t minor, reader.U8());
  if (major < 1 || major > 3 || minor != 0) {
    return BadNpy("npy version " + std::to_string(major) + "." + std::to_string(minor) + ", expected 1.0 to 3.0");
  }
  uint64_t header_bytes = 0;
  if (major == 1) {
    INGOT_ASSIGN_OR_RETURN(header_bytes, reader.U16());
  } else {
    INGOT_ASSIGN_OR_RETURN(header_bytes, reader.U32());
  }
  if (header_bytes > kMaxHeaderBytes) {
    return BadNpy("npy header of " + std::to_string(header_bytes) + " bytes, expected at most " +
                  std::to_string(kMaxHeaderBytes));
  }
  INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> text, reader.Bytes(header_bytes));
  INGOT_ASSIGN_OR_RETURN(const Header header, HeaderParser(AsText(text)).Run());
  // The claimed size is compared with what is there before anything is allocated.
  const std::string type = ShapeToString(header.descr.dtype, header.dims);
  const Result<int64_t> num_elements = CountElements(header.dims);
  if (!num_elements.ok()) return BadNpy(type + ": " + num_elements.status().message());
  const Result<int64_t> size_bytes = header.descr.dtype.SizeBytes(*num_elements);
  if (!size_bytes.ok() || static_cast<uint64_t>(*size_bytes) != reader.remaining()) {
    return BadNpy(type + " needs " + (size_bytes.ok() ? std::to_string(*size_bytes) : "more than 2^63") +
                  " bytes, the file has " + std::to_string(reader.remaining()) + " after the header");
  }
  INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> data, reader.Bytes(reader.remaining()));
  return MakeTensor(header, bytes, data);
}

Result<std::vector<std::byte>> NpyHeader(const Tensor& tensor) {
  const NumpyType* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                       [&](const NumpyType& row) { return row.dtype == tensor.dtype(); });
  if (type == std::end(kTypes)) {
    return BadNpy(tensor.TypeToString() + ": .npy has no such dtype; .safetensors may");
  }
  std::string text = std::string("{'descr': '") + (type->size_bytes == 1 ? '|' : '<') + type->kind +
                     std::to_string(type->size_bytes) + "', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < tensor.rank(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(tensor.dim(i));
  }
  text += tensor.rank() == 1 ? ",), }" : "), }";
  if (tensor.rank() > 0) text.append(kGrowthDigits - std::to_string(tensor.dim(0)).size(), ' ');
  const size_t before = kMagic.size() + 4;
  const size_t unpadded = before + text.size() + 1;
  text.append((kHeaderAlignment - unpadded % kHeaderAlignment) % kHeaderAlignment, ' ');
  text += '\n';
  ByteWriter writer;
  writer.Bytes(AsBytes(kMagic));
  writer.U8(1);
  writer.U8(0);
  writer.U16(static_cast<uint16_t>(text.size()));
  writer.Bytes(AsBytes(text));
  return writer.Take();
}

Result<std::vector<NamedTensor>> ReadNpyFile(const SharedBytes& bytes, const std::string* key) {
  if (key != nullptr) return BadNpy("an .npy file holds one tensor without a name, asked for \"" + *key + "\"");
  INGOT_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy(bytes));
  std::vector<NamedTensor> tensors;
  tensors.push_back({"", std::move(tensor)});
  return tensors;
}

Status WriteNpyFile(std::span<const NamedTensor> tensors, const ByteSink& sink) {
  if (tensors.size() != 1) {
    return BadNpy("an .npy file holds one tensor, got " + std::to_string(tensors.size()) + "; .npz holds many");
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<std::byte> header, NpyHeader(tensors[0].tensor));
  INGOT_ASSIGN_OR_RETURN(const Tensor compact, tensors[0].tensor.Compact());
  INGOT_RETURN_IF_ERROR(sink(header));
  return sink(std::as_bytes(compact.bytes()));
}

}  // namespace ingot::formats
