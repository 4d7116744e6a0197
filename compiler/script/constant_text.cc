// Both directions work on bits: elements are printed one by one from the packed bytes, and read back into them, so that
// NaN patterns and sub-byte dtypes survive.
#include "compiler/script/constant_text.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/script/literals.h"
#include "runtime/small_float.h"

namespace ingot::script {
namespace {

uint64_t ReadElement(const ir::ConstantData& data, int64_t index) {
  const int bits = data.dtype().bits;
  const std::byte* bytes = data.bytes().data();
  if (bits < 8) {  // packed, the first element in the low bits
    const int64_t bit = index * bits;
    return (std::to_integer<uint64_t>(bytes[bit / 8]) >> (bit % 8)) & ((uint64_t{1} << bits) - 1);
  }
  uint64_t element = 0;
  std::memcpy(&element, bytes + index * (bits / 8), static_cast<size_t>(bits / 8));
  return element;
}

std::string ElementText(DataType dtype, uint64_t bits) {
  if (dtype.is_floating()) return FloatBitsLiteral(dtype, bits);
  if (!dtype.is_int()) return IntLiteral(dtype, static_cast<int64_t>(bits));
  const int unused = 64 - dtype.bits;
  return IntLiteral(dtype, static_cast<int64_t>(bits << unused) >> unused);
}

// Appends the elements from `index` on, with one level of brackets per remaining dimension.
void AppendElements(const ir::ConstantData& data, size_t axis, int64_t* index, std::string* text) {
  if (axis == data.dims().size()) {
    *text += ElementText(data.dtype(), ReadElement(data, (*index)++));
    return;
  }
  *text += '[';
  for (int64_t i = 0; i < data.dims()[axis]; ++i) {
    if (i > 0) *text += ", ";
    AppendElements(data, axis + 1, index, text);
  }
  *text += ']';
}

// Collects the leaves of nested lists in order, and the dims that the nesting shows.
class ElementCollector {
 public:
  explicit ElementCollector(ReadContext& context) : context_(context) {}
  bool Collect(const Syntax& syntax, size_t axis) {
    if (syntax.kind != SyntaxKind::kList && syntax.kind != SyntaxKind::kTuple) {
      if (leaf_axis_ && *leaf_axis_ != axis) return Ragged(syntax);
      leaf_axis_ = axis;
      leaves_.push_back(&syntax);
      return true;
    }
    if (leaf_axis_ && axis >= *leaf_axis_) return Ragged(syntax);
    const auto size = static_cast<int64_t>(syntax.children.size());
    if (axis == dims_.size()) dims_.push_back(size);
    if (dims_[axis] != size) return Ragged(syntax);
    for (const SyntaxPtr& child : syntax.children) {
      if (!Collect(*child, axis + 1)) return false;
    }
    return true;
  }
  const std::vector<const Syntax*>& leaves() const { return leaves_; }
  std::vector<int64_t> TakeDims() { return std::move(dims_); }

 private:
  bool Ragged(const Syntax& syntax) {
    context_.Error(syntax, "the rows of this constant differ in length");
    return false;
  }
  ReadContext& context_;
  std::vector<const Syntax*> leaves_;
  std::vector<int64_t> dims_;
  std::optional<size_t> leaf_axis_;
};

DataType UsualDtype(const Syntax& leaf) {
  if (leaf.is_name("True") || leaf.is_name("False")) return DataType::Bool();
  return AsInt(leaf) ? DataType::Int(32) : DataType::Float(32);
}

// Returns the bits of one element, or nothing after it reported an error.
std::optional<uint64_t> ReadElementBits(ReadContext& context, const Syntax& leaf, DataType dtype) {
  const auto fail = [&](const std::string& what) {
    context.Error(leaf, what);
    return std::nullopt;
  };
  const bool truth = leaf.is_name("True"), word = truth || leaf.is_name("False");
  if (dtype.is_bool()) {
    const std::optional<int64_t> number = AsInt(leaf);
    if (word) return truth ? 1 : 0;
    if (number && (*number == 0 || *number == 1)) return static_cast<uint64_t>(*number);
    return fail("expected True or False, got " + Describe(leaf));
  }
  if (dtype.is_floating()) {
    const Syntax* text_syntax = CalleeName(leaf) == "float" && leaf.children.size() == 2 ? &leaf[1] : &leaf;
    const std::optional<std::string> text = AsString(*text_syntax);
    constexpr std::string_view kBits = "bits:0x";
    if (text && text->starts_with(kBits)) {
      uint64_t bits = 0;
      const char* end = text->data() + text->size();
      const auto read = std::from_chars(text->data() + kBits.size(), end, bits, 16);
      const bool fits = dtype.bits == 64 || (bits >> dtype.bits) == 0;
      if (read.ec == std::errc() && read.ptr == end && fits) return bits;
    }
    if (text == "nan") return EncodeFloat(dtype, std::numeric_limits<double>::quiet_NaN());
    if (text == "inf") return EncodeFloat(dtype, std::numeric_limits<double>::infinity());
    if (text == "-inf") return EncodeFloat(dtype, -std::numeric_limits<double>::infinity());
    if (const auto number = AsFloat(leaf)) return EncodeFloat(dtype, *number);
    if (const auto number = AsInt(leaf)) return EncodeFloat(dtype, static_cast<double>(*number));
    return fail("expected a number, got " + Describe(leaf));
  }
  if (!dtype.is_integral()) return fail("a constant of " + dtype.ToString() + " has no literals");
  const std::optional<int64_t> number = AsInt(leaf);
  if (!number) return fail("expected an integer, got " + Describe(leaf));
  const int unused = 64 - dtype.bits;
  const bool fits = dtype.is_uint()
                        ? dtype.bits == 64 || (*number >= 0 && (*number >> dtype.bits) == 0)
                        : (static_cast<int64_t>(static_cast<uint64_t>(*number) << unused) >> unused) == *number;
  if (!fits) return fail("the number is out of the range of " + dtype.ToString());
  return static_cast<uint64_t>(*number);
}

}  // namespace

std::shared_ptr<const ir::ConstantData> ReadConstantElements(ReadContext& context, const Syntax& syntax,
                                                             std::optional<DataType> dtype) {
  ElementCollector collector(context);
  if (!collector.Collect(syntax, 0)) return nullptr;
  if (!dtype) dtype = collector.leaves().empty() ? DataType::Float(32) : UsualDtype(*collector.leaves()[0]);
  if (!dtype->is_scalar()) return context.Error(syntax, "a constant's elements are scalars");
  const auto count = static_cast<int64_t>(collector.leaves().size());
  const Result<int64_t> size = dtype->SizeBytes(count);
  if (!size.ok()) return context.Error(syntax, size.status().message());
  std::vector<std::byte> bytes(static_cast<size_t>(*size));
  for (int64_t i = 0; i < count; ++i) {
    const std::optional<uint64_t> bits = ReadElementBits(context, *collector.leaves()[static_cast<size_t>(i)], *dtype);
    if (!bits) return nullptr;
    if (dtype->bits < 8) {  // packed, the first element in the low bits
      const int64_t bit = i * dtype->bits;
      const uint64_t mask = (uint64_t{1} << dtype->bits) - 1;
      bytes[static_cast<size_t>(bit / 8)] |= static_cast<std::byte>((*bits & mask) << (bit % 8));
    } else {
      const auto width = static_cast<size_t>(dtype->bits / 8);
      std::memcpy(bytes.data() + static_cast<size_t>(i) * width, &*bits, width);
    }
  }
  return ir::ConstantData::FromBytes(*dtype, collector.TakeDims(), std::move(bytes));
}

bool HasElementText(const ir::ConstantData& data) {
  const DataType dtype = data.dtype();
  if (!dtype.is_scalar() || dtype.code == TypeCode::kHandle || dtype.code == TypeCode::kComplex) return false;
  // True and False can stand for the bytes 1 and 0 only.
  if (dtype.is_bool()) {
    for (const std::byte byte : data.bytes()) {
      if (std::to_integer<int>(byte) > 1) return false;
    }
  }
  // Brackets do not show dimensions behind a dimension of zero. Wide shapes without elements would be long.
  const auto& dims = data.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] > kMaxInlineElements || (dims[i] == 0 && i + 1 < dims.size())) return false;
  }
  return data.num_elements() <= kMaxInlineElements && (data.num_elements() > 0 || dims.size() <= 2);
}

std::string ElementText(const ir::ConstantData& data) {
  std::string text;
  int64_t index = 0;
  AppendElements(data, 0, &index, &text);
  return text;
}

}  // namespace ingot::script
