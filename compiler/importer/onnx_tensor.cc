// One table says which DataType each ONNX dtype is. Reading is a chain of cases: external data, raw bytes (split off or
// not), a typed field (shared if it has the dtype's layout, else narrowed); sparse tensors are made dense.
#include "compiler/importer/onnx_tensor.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>
#include <string_view>

#include "runtime/float4.h"
#include "runtime/tensor.h"
#include "runtime/utf8.h"

namespace ingot::importer {
namespace {

// Size limit of a sparse tensor that is made dense.
constexpr int64_t kMaxDenseBytes = int64_t{1} << 30;
// Bytes of a dense tensor for each that its sparse form takes: one value of float32 in 800.
constexpr int64_t kDensePerByte = 256;

// TensorProto.DataType (onnx.proto of ONNX 1.23). The packed sub-byte types store the first element in the low bits, as
// ConstantData does.
constexpr int64_t kStringNumber = 8;
struct OnnxTypeRow {
  int64_t number;
  DataType dtype;
};
constexpr OnnxTypeRow kTypes[] = {
    {1, DataType::Float(32)},
    {2, DataType::UInt(8)},
    {3, DataType::Int(8)},
    {4, DataType::UInt(16)},
    {5, DataType::Int(16)},
    {6, DataType::Int(32)},
    {7, DataType::Int(64)},
    {9, DataType::Bool()},
    {10, DataType::Float(16)},
    {11, DataType::Float(64)},
    {12, DataType::UInt(32)},
    {13, DataType::UInt(64)},
    {16, DataType::Bfloat16()},
    {17, DataType(TypeCode::kFloat8E4M3FN, 8)},
    {18, DataType(TypeCode::kFloat8E4M3FNUZ, 8)},
    {19, DataType(TypeCode::kFloat8E5M2, 8)},
    {20, DataType(TypeCode::kFloat8E5M2FNUZ, 8)},
    {21, DataType::UInt(4)},
    {22, DataType::Int(4)},
    {23, kFloat4E2M1FN},
    {24, DataType(TypeCode::kFloat8E8M0FNU, 8)},
    {25, DataType::UInt(2)},
    {26, DataType::Int(2)},
};

std::optional<DataType> FindType(int64_t number) {
  for (const OnnxTypeRow& row : kTypes) {
    if (row.number == number) return row.dtype;
  }
  return std::nullopt;
}

Status BadTensor(const std::string& what, const std::string& message) {
  return Status(StatusCode::kBadInput, "tensor " + what + ": " + message);
}

// Returns the elements of a typed field as packed bytes: shared if they already are (a repeated field is contiguous and
// the host little-endian), narrowed to Narrow otherwise.
template <typename Field>
SharedBytes ShareField(const Field& field, const std::shared_ptr<const void>& owner) {
  return {owner, std::as_bytes(std::span(field.data(), static_cast<size_t>(field.size())))};
}
template <typename Narrow, typename Field>
SharedBytes NarrowField(const Field& field) {
  std::vector<std::byte> bytes(static_cast<size_t>(field.size()) * sizeof(Narrow));
  for (int i = 0; i < field.size(); ++i) {
    const Narrow value = static_cast<Narrow>(field.Get(i));
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(Narrow), &value, sizeof(Narrow));
  }
  return SharedBytes::Own(std::move(bytes));
}

// Returns the bytes from the typed field that onnx.proto prescribes for the dtype.
SharedBytes TypedField(const onnx::TensorProto& tensor, DataType dtype, const std::shared_ptr<const void>& owner) {
  if (dtype == DataType::Float(32)) return ShareField(tensor.float_data(), owner);
  if (dtype == DataType::Float(64)) return ShareField(tensor.double_data(), owner);
  if (dtype == DataType::Int(64)) return ShareField(tensor.int64_data(), owner);
  if (dtype == DataType::UInt(64)) return ShareField(tensor.uint64_data(), owner);
  if (dtype == DataType::UInt(32)) return NarrowField<uint32_t>(tensor.uint64_data());
  if (dtype == DataType::Int(32)) return ShareField(tensor.int32_data(), owner);
  if (dtype.bits == 16) return NarrowField<uint16_t>(tensor.int32_data());
  return NarrowField<uint8_t>(tensor.int32_data());  // 8-bit values, and packed ones of 2 and 4 bits
}

std::optional<int64_t> ParseOffset(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

struct TensorShape {
  DataType dtype;
  std::vector<int64_t> dims;
  int64_t size_bytes = 0;
};
Result<TensorShape> ReadShape(const onnx::TensorProto& tensor, const std::string& what) {
  const bool is_string = tensor.data_type() == kStringNumber;
  Result<DataType> type = is_string ? Result<DataType>(kStringElement) : OnnxDataType(tensor.data_type());
  if (!type.ok()) return std::move(type).status().WithContext("tensor " + what);
  TensorShape shape{*type, {tensor.dims().begin(), tensor.dims().end()}};
  Result<int64_t> count = CountElements(shape.dims);
  if (!count.ok()) return BadTensor(what, count.status().message());
  Result<int64_t> size = shape.dtype.SizeBytes(*count);
  if (!size.ok()) return BadTensor(what, size.status().message());
  shape.size_bytes = *size;
  return shape;
}

}  // namespace

Result<ConstantDataPtr> StringTable::ConstantOf(std::vector<std::string> texts, std::vector<int64_t> dims,
                                                const std::string& what) {
  std::vector<std::byte> bytes(texts.size() * sizeof(int64_t));
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!IsUtf8(texts[i])) {
      return Status(StatusCode::kUnsupportedModel, what + ": a string that is no UTF-8 text");
    }
    const auto [place, is_new] = places_.emplace(texts[i], std::ssize(strings_));
    if (is_new) strings_.push_back(std::move(texts[i]));
    std::memcpy(bytes.data() + i * sizeof(int64_t), &place->second, sizeof(int64_t));
  }
  return ir::ConstantData::FromBytes(kStringElement, std::move(dims), std::move(bytes));
}

Result<DataType> OnnxDataType(int64_t number) {
  const std::optional<DataType> dtype = FindType(number);
  if (dtype.has_value()) return *dtype;
  return Status(StatusCode::kUnsupportedModel, "ONNX data type " + std::to_string(number) +
                                                   (number == kStringNumber ? " (string)" : "") + " is not supported");
}

std::optional<DataType> FindOnnxDataType(int64_t number) {
  return number == kStringNumber ? kStringElement : FindType(number);
}

Result<SharedBytes> TensorSource::External(const onnx::TensorProto& tensor, int64_t size_bytes,
                                           const std::string& what) {
  std::string location;
  int64_t offset = 0, length = size_bytes;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() != "offset" && entry.key() != "length") continue;
    const std::optional<int64_t> value = ParseOffset(entry.value());
    if (!value.has_value()) return BadTensor(what, "its external " + entry.key() + " is \"" + entry.value() + "\"");
    (entry.key() == "offset" ? offset : length) = *value;
  }
  if (directory_.empty()) {
    return Status(StatusCode::kUnsupportedModel,
                  "tensor " + what + ": its data is in the file \"" + location + "\", and the model is no file itself");
  }
  if (length != size_bytes) {
    return BadTensor(what, "expected " + std::to_string(size_bytes) + " bytes of external data, got length " +
                               std::to_string(length));
  }
  auto found = files_.find(location);
  if (found == files_.end()) {
    Result<std::shared_ptr<const formats::InputFile>> file = formats::InputFile::OpenBeneath(directory_, location);
    if (!file.ok()) return std::move(file).status().WithContext("tensor " + what + ": external data");
    found = files_.emplace(location, formats::InputFile::Share(*std::move(file))).first;
  }
  const SharedBytes& file = found->second;
  const auto available = static_cast<int64_t>(file.size());
  if (offset > available || length > available - offset) {
    return BadTensor(what, "its external data [" + std::to_string(offset) + ", +" + std::to_string(length) +
                               ") lies outside of \"" + location + "\", which has " + std::to_string(available) +
                               " bytes");
  }
  return SharedBytes(file.owner, file.bytes.subspan(static_cast<size_t>(offset), static_cast<size_t>(length)));
}

Result<ConstantDataPtr> TensorSource::Read(const onnx::TensorProto& tensor, const std::shared_ptr<const void>& owner,
                                           const std::string& what, const SharedBytes* raw) {
  if (tensor.has_segment()) return BadTensor(what, "segments are not part of the format any more");
  INGOT_ASSIGN_OR_RETURN(TensorShape shape, ReadShape(tensor, what));
  if (shape.dtype == kStringElement) {
    if (tensor.string_data_size() != shape.size_bytes / 8) {
      return BadTensor(what, "expected " + std::to_string(shape.size_bytes / 8) + " strings, got " +
                                 std::to_string(tensor.string_data_size()));
    }
    return strings_->Constant(tensor.string_data(), std::move(shape.dims), "tensor " + what);
  }
  SharedBytes data;
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    INGOT_ASSIGN_OR_RETURN(data, External(tensor, shape.size_bytes, what));
  } else if (raw != nullptr) {
    data = *raw;
  } else if (tensor.has_raw_data()) {
    data = SharedBytes(owner, std::as_bytes(std::span(tensor.raw_data())));
  } else {
    data = TypedField(tensor, shape.dtype, owner);
  }
  if (data.size() != static_cast<size_t>(shape.size_bytes)) {
    return BadTensor(what, "expected " + std::to_string(shape.size_bytes) + " bytes for " +
                               ShapeToString(shape.dtype, shape.dims) + ", got " + std::to_string(data.size()));
  }
  return ConstantDataPtr(
      std::make_shared<const ir::ConstantData>(shape.dtype, std::move(shape.dims), data.bytes, std::move(data.owner)));
}

// Reads non-zero values with their places: one row-major place each, or one index per dimension.
Result<ConstantDataPtr> TensorSource::ReadSparse(const onnx::SparseTensorProto& sparse,
                                                 const std::shared_ptr<const void>& owner, const std::string& what) {
  INGOT_ASSIGN_OR_RETURN(const ConstantDataPtr values, Read(sparse.values(), owner, what, nullptr));
  INGOT_ASSIGN_OR_RETURN(const ConstantDataPtr indices, Read(sparse.indices(), owner, what, nullptr));
  std::vector<int64_t> dims(sparse.dims().begin(), sparse.dims().end());
  Result<int64_t> count = CountElements(dims);
  if (!count.ok()) return BadTensor(what, count.status().message());
  INGOT_ASSIGN_OR_RETURN(const int64_t size_bytes, values->dtype().SizeBytes(*count));
  // What a few bytes of the file say is bounded for all of its tensors together.
  const auto written = static_cast<int64_t>(values->bytes().size() + indices->bytes().size());
  const int64_t excess = std::max(size_bytes - kDensePerByte * written, int64_t{0});
  if (values->dtype().bits % 8 != 0 || size_bytes > kMaxDenseBytes || excess > dense_left_) {
    return Status(StatusCode::kUnsupportedModel, "tensor " + what + ": sparse, and " +
                                                     ShapeToString(values->dtype(), dims) + " is too large when dense");
  }
  dense_left_ -= excess;
  const int64_t num_values = values->num_elements();
  const bool is_linear = indices->dims() == std::vector<int64_t>{num_values};
  const bool is_wide = indices->dims() == std::vector<int64_t>{num_values, std::ssize(dims)};
  if (indices->dtype() != DataType::Int(64) || values->dims().size() != 1 || (!is_linear && !is_wide)) {
    return BadTensor(what, "sparse, and its indices do not fit its values");
  }
  const auto index_at = [&](int64_t i) {
    int64_t value = 0;
    std::memcpy(&value, indices->bytes().data() + static_cast<size_t>(i) * sizeof(value), sizeof(value));
    return value;
  };
  const auto width = static_cast<size_t>(values->dtype().bits / 8);
  std::vector<std::byte> dense(static_cast<size_t>(size_bytes));
  if (values->dtype() == kStringElement) {  // an element that is not there is zero, or the empty string
    constexpr std::string_view kEmpty[] = {""};
    INGOT_ASSIGN_OR_RETURN(const ConstantDataPtr empty, strings_->Constant(std::span(kEmpty), {}, "tensor " + what));
    for (auto at = dense.begin(); at != dense.end(); at += static_cast<ptrdiff_t>(width)) {
      std::ranges::copy(empty->bytes(), at);
    }
  }
  for (int64_t i = 0; i < num_values; ++i) {
    int64_t place = is_linear ? index_at(i) : 0;
    for (size_t axis = 0; !is_linear && axis < dims.size(); ++axis) {
      const int64_t index = index_at(i * std::ssize(dims) + static_cast<int64_t>(axis));
      if (index < 0 || index >= dims[axis]) return BadTensor(what, "sparse, with an index outside of it");
      place = place * dims[axis] + index;
    }
    if (place < 0 || place >= *count) return BadTensor(what, "sparse, with an index outside of it");
    std::memcpy(dense.data() + static_cast<size_t>(place) * width,
                values->bytes().data() + static_cast<size_t>(i) * width, width);
  }
  return ir::ConstantData::FromBytes(values->dtype(), std::move(dims), std::move(dense));
}

}  // namespace ingot::importer
