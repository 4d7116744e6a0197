// Parses a specification without touching files, then makes its tensor: from element text, from a file, or from a
// generator whose random numbers are the same on every machine.
#include "formats/tensor_spec.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "formats/element.h"
#include "formats/file.h"
#include "formats/tensor_files.h"
#include "runtime/small_float.h"

namespace ingot::formats {
namespace {

struct TensorType {
  DataType dtype;
  std::vector<int64_t> dims;
};

// A parsed specification; no file was read.
struct TensorSpec {
  enum class Source : uint8_t { kElements, kRawFile, kTensorFile, kRandom, kRandomIntegers, kZeros, kOnes };
  Source source = Source::kZeros;
  std::optional<TensorType> type;
  std::string elements;  // kElements: their text
  std::string path;      // kRawFile, kTensorFile
  std::string key;       // kTensorFile; empty: the file's only tensor
  int64_t low = 0;       // kRandomIntegers: [low, high)
  int64_t high = 0;
};

Status BadSpec(std::string message) { return Status(StatusCode::kBadInput, std::move(message)); }

// Parses an element, a number of any kind that fits the dtype, and returns its bits.
Result<uint64_t> ParseElement(DataType dtype, std::string_view text) {
  const auto refuse = [&] { return BadSpec("\"" + std::string(text.substr(0, 40)) + "\" is no " + dtype.ToString()); };
  const char* end = text.data() + text.size();
  if (dtype.is_bool()) {
    if (text == "1" || text == "true" || text == "True") return uint64_t{1};
    if (text == "0" || text == "false" || text == "False") return uint64_t{0};
    return refuse();
  }
  if (dtype.is_int()) {
    int64_t value = 0;
    const auto [parsed, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || parsed != end || SignExtend(static_cast<uint64_t>(value), dtype.bits) != value) {
      return refuse();
    }
    return static_cast<uint64_t>(value);
  }
  if (dtype.is_uint()) {
    uint64_t value = 0;
    const auto [parsed, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || parsed != end || (dtype.bits < 64 && value >> dtype.bits != 0)) return refuse();
    return value;
  }
  double value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  // float32 is read as such: through a double it would be rounded twice.
  if (dtype == DataType::Float(32)) {
    float narrow = 0;
    const auto [parsed, error] = std::from_chars(text.data(), end, narrow);
    if (error != std::errc() || parsed != end) return refuse();
    value = narrow;
  } else {
    const auto [parsed, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || parsed != end) return refuse();
  }
  return EncodeFloat(dtype, value);
}

// The same numbers on every machine: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  // In [0, 1), a multiple of 2^-mantissa_bits.
  double Unit(int mantissa_bits) {
    return std::ldexp(static_cast<double>(Next() >> (64 - mantissa_bits)), -mantissa_bits);
  }
  // In [0, bound), bound > 0: the high half of a product, whose bias is below 2^-64 * bound.
  uint64_t Below(uint64_t bound) { return static_cast<uint64_t>(static_cast<unsigned __int128>(Next()) * bound >> 64); }

 private:
  uint64_t state_;
};

// The bits of a whole number in a dtype, or nothing when it does not fit.
std::optional<uint64_t> IntegerBits(DataType dtype, int64_t value) {
  if (dtype.is_bool()) {
    if (value != 0 && value != 1) return std::nullopt;
    return static_cast<uint64_t>(value);
  }
  if (dtype.is_floating()) return EncodeFloat(dtype, static_cast<double>(value));
  const auto bits = static_cast<uint64_t>(value);
  if (dtype.is_int() && SignExtend(bits, dtype.bits) != value) return std::nullopt;
  if (dtype.is_uint() && (value < 0 || (dtype.bits < 64 && bits >> dtype.bits != 0))) return std::nullopt;
  return bits;
}

// The bound below which random integers are drawn: 10, or the number of non-negative values of a narrower type.
uint64_t RandomBound(DataType dtype) {
  if (dtype.is_bool()) return 2;
  const int value_bits = dtype.is_int() ? dtype.bits - 1 : dtype.bits;
  return value_bits < 4 ? uint64_t{1} << value_bits : 10;
}

// The bits after the point that a random float gets: as many as the type keeps of a number below one.
int MantissaBits(DataType dtype) {
  if (dtype.bits == 64) return 53;
  if (dtype == DataType::Float(32)) return 24;
  if (dtype == DataType::Float(16)) return 11;
  return dtype.bits == 16 ? 8 : 2;
}

// "lo,hi".
Result<std::pair<int64_t, int64_t>> ParseBounds(std::string_view text) {
  int64_t low = 0, high = 0;
  const char* end = text.data() + text.size();
  const auto [after_low, low_error] = std::from_chars(text.data(), end, low);
  bool is_fine = low_error == std::errc() && after_low != end && *after_low == ',';
  if (is_fine) {
    const auto [after_high, high_error] = std::from_chars(after_low + 1, end, high);
    is_fine = high_error == std::errc() && after_high == end && low < high;
  }
  if (!is_fine) return BadSpec("expected randint:LOW,HIGH with LOW < HIGH");
  return std::pair(low, high);
}

// Splits PATH:KEY at the colon behind the extension of a format whose tensors have names.
void SplitKey(std::string_view text, TensorSpec* spec) {
  spec->path = text;
  for (const TensorFileFormat& format : TensorFileFormats()) {
    if (!format.has_names) continue;
    const std::string marker = std::string(format.extension) + ":";
    const size_t at = text.find(marker);
    if (at == std::string_view::npos) continue;
    spec->path = text.substr(0, at + marker.size() - 1);
    spec->key = text.substr(at + marker.size());
  }
}

// Parses the generators rand, randint, zeros and ones. Returns false when the text is none of them.
Result<bool> ParseGenerator(std::string_view text, TensorSpec* spec) {
  constexpr std::string_view kRandint = "randint:";
  if (text == "rand") {
    spec->source = TensorSpec::Source::kRandom;
  } else if (text == "zeros") {
    spec->source = TensorSpec::Source::kZeros;
  } else if (text == "ones") {
    spec->source = TensorSpec::Source::kOnes;
  } else if (text.starts_with(kRandint)) {
    INGOT_ASSIGN_OR_RETURN(std::tie(spec->low, spec->high), ParseBounds(text.substr(kRandint.size())));
    spec->source = TensorSpec::Source::kRandomIntegers;
  } else {
    return false;
  }
  return true;
}

Result<Tensor> FromElements(const TensorType& type, std::string_view text) {
  constexpr std::string_view kSeparators = " ,\t\n[]";
  std::vector<uint64_t> values;
  for (size_t at = text.find_first_not_of(kSeparators); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    INGOT_ASSIGN_OR_RETURN(const uint64_t bits, ParseElement(type.dtype, text.substr(at, end - at)));
    values.push_back(bits);
    at = text.find_first_not_of(kSeparators, end);
  }
  INGOT_ASSIGN_OR_RETURN(const int64_t count, CountElements(type.dims));
  if (values.size() != 1 && static_cast<int64_t>(values.size()) != count) {
    return BadSpec(ShapeToString(type.dtype, type.dims) + " has " + std::to_string(count) + " elements, got " +
                   std::to_string(values.size()));
  }
  INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type.dtype, type.dims));
  const bool fills = values.size() == 1;
  for (int64_t i = 0; i < count; ++i) SetElementBits(tensor.view(), i, values[fills ? 0 : static_cast<size_t>(i)]);
  return tensor;
}

template <typename Generate>
Result<Tensor> Generated(const TensorType& type, Generate generate) {
  INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type.dtype, type.dims));
  if (tensor.size_bytes() > 0) std::memset(tensor.data(), 0, static_cast<size_t>(tensor.size_bytes()));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) SetElementBits(tensor.view(), i, generate());
  return tensor;
}

// "4x3xf32", "f32", "4xfloat32".
Result<TensorType> ParseTensorType(std::string_view text) {
  const std::string_view whole = text;
  TensorType type;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    int64_t dim = 0;
    const char* end = text.data() + text.size();
    const auto [parsed, error] = std::from_chars(text.data(), end, dim);
    if (error != std::errc() || parsed == end || *parsed != 'x') {
      return BadSpec("type \"" + std::string(whole.substr(0, 80)) +
                     "\": expected dimensions and a dtype, such as 4x8xf32");
    }
    type.dims.push_back(dim);
    text.remove_prefix(static_cast<size_t>(parsed + 1 - text.data()));
  }
  INGOT_RETURN_IF_ERROR(CountElements(type.dims).status());
  struct ShortName {
    std::string_view name, full;
  };
  constexpr ShortName kPrefixes[] = {{"bf", "bfloat"}, {"f", "float"}, {"ui", "uint"},
                                     {"u", "uint"},    {"si", "int"},  {"i", "int"}};
  if (text == "i1") text = "bool";
  for (const ShortName& prefix : kPrefixes) {
    if (!text.starts_with(prefix.name) || text.size() == prefix.name.size()) continue;
    if (text[prefix.name.size()] < '0' || text[prefix.name.size()] > '9') continue;
    Result<DataType> dtype = DataType::Parse(std::string(prefix.full) + std::string(text.substr(prefix.name.size())));
    if (!dtype.ok()) return BadSpec(dtype.status().message());
    type.dtype = *dtype;
    return type;
  }
  const Result<DataType> dtype = DataType::Parse(text);
  if (!dtype.ok()) return BadSpec(dtype.status().message());
  type.dtype = *dtype;
  return type;
}

Result<TensorSpec> ParseSpec(std::string_view text) {
  TensorSpec spec;
  const auto fail = [&](const Status& status) {
    return BadSpec("\"" + std::string(text.substr(0, 80)) + "\": " + status.message());
  };
  if (text.starts_with('@')) {
    spec.source = TensorSpec::Source::kTensorFile;
    SplitKey(text.substr(1), &spec);
    return spec;
  }
  const size_t equals = text.find('=');
  Result<bool> generator = ParseGenerator(equals == std::string_view::npos ? text : text.substr(equals + 1), &spec);
  if (!generator.ok()) return fail(generator.status());
  if (equals == std::string_view::npos) {
    if (*generator) return spec;
    return fail(
        BadSpec("expected TYPE=ELEMENTS (4xf32=1 2 3 4), TYPE=@FILE, @FILE, @FILE:KEY, rand, randint:LOW,HIGH, "
                "zeros or ones"));
  }
  Result<TensorType> type = ParseTensorType(text.substr(0, equals));
  if (!type.ok()) return fail(type.status());
  if (!IsNumeric(type->dtype))
    return fail(BadSpec("elements of type " + type->dtype.ToString() + " cannot be written"));
  spec.type = *std::move(type);
  if (*generator) return spec;
  const std::string_view value = text.substr(equals + 1);
  if (value.starts_with('@')) {
    spec.source = TensorSpec::Source::kRawFile;
    spec.path = value.substr(1);
  } else {
    spec.source = TensorSpec::Source::kElements;
    spec.elements = value;
  }
  return spec;
}

// The tensor of a spec whose type is known.
Result<Tensor> Make(const TensorSpec& spec, const TensorType& made, uint64_t seed) {
  using Source = TensorSpec::Source;
  const DataType dtype = made.dtype;
  if (!IsNumeric(dtype)) return BadSpec("elements of type " + dtype.ToString() + " cannot be made up");
  Random random(seed);
  switch (spec.source) {
    case Source::kTensorFile:
      break;
    case Source::kElements:
      return FromElements(made, spec.elements);
    case Source::kRawFile: {
      INGOT_ASSIGN_OR_RETURN(SharedBytes bytes, MapFile(spec.path));
      Result<Tensor> tensor = Tensor::FromShared(dtype, made.dims, std::move(bytes));
      if (!tensor.ok() && tensor.status().code() == StatusCode::kInvalidArgument) {
        return BadSpec(spec.path + ": " + tensor.status().message());
      }
      return tensor;
    }
    case Source::kZeros:
      return Generated(made, [&] { return IntegerBits(dtype, 0).value_or(0); });
    case Source::kOnes:
      if (!IntegerBits(dtype, 1)) return BadSpec("1 does not fit " + dtype.ToString());
      return Generated(made, [&] { return *IntegerBits(dtype, 1); });
    case Source::kRandom:
      if (dtype.is_floating()) {
        const int bits = MantissaBits(dtype);
        return Generated(made, [&] { return EncodeFloat(dtype, 2 * random.Unit(bits) - 1); });
      }
      return Generated(made, [&] { return random.Below(RandomBound(dtype)); });
    case Source::kRandomIntegers: {
      for (const int64_t bound : {spec.low, spec.high - 1}) {
        if (!IntegerBits(dtype, bound)) {
          return BadSpec("randint:" + std::to_string(spec.low) + "," + std::to_string(spec.high) + ": " +
                         std::to_string(bound) + " does not fit " + dtype.ToString());
        }
      }
      const uint64_t count = static_cast<uint64_t>(spec.high) - static_cast<uint64_t>(spec.low);
      return Generated(made, [&] {
        const auto value = static_cast<int64_t>(static_cast<uint64_t>(spec.low) + random.Below(count));
        return *IntegerBits(dtype, value);
      });
    }
  }
  INGOT_UNREACHABLE("a source without a case");
}

}  // namespace

Result<Tensor> MakeTensorFromSpec(std::string_view spec, const ExpectedTensor* expected, uint64_t seed) {
  INGOT_ASSIGN_OR_RETURN(const TensorSpec parsed, ParseSpec(spec));
  if (parsed.source == TensorSpec::Source::kTensorFile) return ReadTensor(parsed.path, parsed.key);
  if (parsed.type.has_value()) return Make(parsed, *parsed.type, seed);
  if (expected == nullptr) {
    return BadSpec("\"" + std::string(spec.substr(0, 80)) +
                   "\": the type is not known here: state one, as in 4xf32=rand");
  }
  return Make(parsed, TensorType{expected->dtype, {expected->dims.begin(), expected->dims.end()}}, seed);
}

}  // namespace ingot::formats
