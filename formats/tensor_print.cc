// How NumPy chooses a form for floats: every element is rounded to its shortest text, at most `precision` digits after
// the point. If the largest magnitude is at least 1e8 (fewer for narrow types), the smallest below 1e-4, or their ratio
// above 1000, all are in scientific form with equally many digits; otherwise they are positional and padded on both
// sides of the point. Only the elements that are shown decide.
#include "formats/tensor_print.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "formats/element.h"
#include "runtime/small_float.h"

namespace ingot::formats {
namespace {

// Decimal digits that a type always keeps: numpy.finfo's precision.
int DecimalDigits(DataType dtype) {
  return dtype.bits == 64 ? 15 : dtype == DataType::Float(32) ? 6 : dtype == DataType::Float(16) ? 3 : 2;
}

// Digits of a printed float, split at the point: "-12" and "5", with the exponent's sign and digits in scientific form.
struct FloatText {
  std::string whole;
  std::string fraction;
  std::string exponent;  // "+05"; empty in positional form
};

std::string Format(const char* format, int precision, double value) {
  char buffer[512];  // 1e308 has 309 digits
  const int size = std::snprintf(buffer, sizeof(buffer), format, precision, value);
  return std::string(buffer, static_cast<size_t>(std::clamp<int>(size, 0, sizeof(buffer) - 1)));
}

// Digits after the first one in the shortest scientific text that reads back to the same element.
int ShortestDigits(DataType dtype, double value) {
  // Found by trying, because std::to_chars brings 100 KB of tables into every program that prints.
  const int enough = dtype.bits == 64 ? 16 : 8;
  const auto reads_back = [&](const std::string& text) {
    if (dtype.bits == 64) return std::strtod(text.c_str(), nullptr) == value;
    if (dtype.bits == 32) return std::strtof(text.c_str(), nullptr) == static_cast<float>(value);
    return EncodeFloat(dtype, std::strtod(text.c_str(), nullptr)) == EncodeFloat(dtype, value);
  };
  for (int digits = 0; digits < enough; ++digits) {
    if (reads_back(Format("%.*e", digits, value))) return digits;
  }
  return enough;
}

FloatText Split(const std::string& text) {
  FloatText split;
  const size_t e = text.find('e');
  if (e != std::string::npos) split.exponent = text.substr(e + 1);
  const std::string mantissa = text.substr(0, e);
  const size_t point = mantissa.find('.');
  split.whole = mantissa.substr(0, point);
  if (point != std::string::npos) split.fraction = mantissa.substr(point + 1);
  return split;
}

void TrimZeros(std::string* digits) { digits->erase(digits->find_last_not_of('0') + 1); }

FloatText Scientific(DataType dtype, double value, int precision) {
  FloatText text = Split(Format("%.*e", std::min(ShortestDigits(dtype, value), precision), value));
  TrimZeros(&text.fraction);
  return text;
}

FloatText Positional(DataType dtype, double value, int precision) {
  // Shortest digits after the point: those of the scientific form, shifted by its exponent.
  const int digits = ShortestDigits(dtype, value);
  const int exponent = std::atoi(Split(Format("%.*e", digits, value)).exponent.c_str());
  FloatText text = Split(Format("%.*f", std::clamp(digits - exponent, 0, precision), value));
  TrimZeros(&text.fraction);
  return text;
}

// Turns elements into texts of a common width, decided by all elements that are shown.
class ElementFormat {
 public:
  ElementFormat(const TensorView& tensor, std::span<const int64_t> shown, const TensorPrintOptions& options)
      : tensor_(tensor), precision_(options.precision) {
    if (tensor.dtype.is_floating()) {
      ChooseFloatForm(shown);
    } else {
      for (const int64_t index : shown) {
        width_ = std::max(width_, ElementToText(tensor.dtype, ElementBits(tensor, index)).size());
      }
      // NumPy pads True to the width of False even where no False is shown.
      if (tensor.dtype.is_bool()) width_ = 5;
    }
  }

  std::string operator()(int64_t index) const {
    const uint64_t bits = ElementBits(tensor_, index);
    if (!tensor_.dtype.is_floating()) return PadLeft(ElementToText(tensor_.dtype, bits), width_);
    const double value = DecodeFloat(tensor_.dtype, bits);
    if (!std::isfinite(value)) return PadLeft(ElementToText(tensor_.dtype, bits), left_ + right_ + 1);
    if (is_scientific_) {
      const FloatText text = Split(Format("%.*e", static_cast<int>(digits_), value));
      // %e gives at least two digits of exponent, as NumPy does.
      return PadLeft(text.whole, left_) + "." + text.fraction + "e" + text.exponent[0] +
             std::string(exponent_ - std::min(exponent_, text.exponent.size() - 1), '0') + text.exponent.substr(1);
    }
    const FloatText text = Positional(tensor_.dtype, value, precision_);
    return PadLeft(text.whole, left_) + "." + text.fraction + std::string(right_ - text.fraction.size(), ' ');
  }

 private:
  static std::string PadLeft(const std::string& text, size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
  }

  void ChooseFloatForm(std::span<const int64_t> shown) {
    const DataType dtype = tensor_.dtype;
    std::vector<double> finite;
    double largest = 0, smallest = HUGE_VAL;
    for (const int64_t index : shown) {
      const double value = DecodeFloat(dtype, ElementBits(tensor_, index));
      if (!std::isfinite(value)) continue;
      finite.push_back(value);
      if (value != 0) {
        largest = std::max(largest, std::fabs(value));
        smallest = std::min(smallest, std::fabs(value));
      }
    }
    is_scientific_ = largest > 0 && (largest >= std::pow(10.0, std::min(8, DecimalDigits(dtype))) ||
                                     smallest < 0.0001 || largest / smallest > 1000.0);
    for (const double value : finite) {
      const FloatText text =
          is_scientific_ ? Scientific(dtype, value, precision_) : Positional(dtype, value, precision_);
      left_ = std::max(left_, text.whole.size());
      digits_ = std::max(digits_, text.fraction.size());
      if (is_scientific_) exponent_ = std::max(exponent_, text.exponent.size() - 1);
    }
    right_ = is_scientific_ ? digits_ + exponent_ + 2 : digits_;
    for (const int64_t index : shown) {
      const uint64_t bits = ElementBits(tensor_, index);
      if (std::isfinite(DecodeFloat(dtype, bits))) continue;
      const size_t size = ElementToText(dtype, bits).size();
      left_ = std::max(left_, size - std::min(size, right_ + 1));
    }
  }

  const TensorView& tensor_;
  int precision_;
  size_t width_ = 0;  // of elements that are not floating
  bool is_scientific_ = false;
  size_t left_ = 0;      // characters before the point
  size_t right_ = 0;     // characters after it
  size_t digits_ = 0;    // digits after it
  size_t exponent_ = 0;  // digits of the exponent
};

class Printer {
 public:
  Printer(const TensorView& tensor, const TensorPrintOptions& options)
      : tensor_(tensor),
        options_(options),
        is_shortened_(tensor.num_elements > options.threshold),
        edge_items_(options.edge_items) {
    while (is_shortened_ && edge_items_ > 0 && CountShown() > options.most_shown) --edge_items_;
  }

  std::string Run() {
    std::vector<int64_t> shown;
    CollectShown(0, 0, &shown);
    const ElementFormat format(tensor_, shown, options_);
    format_ = &format;
    Axis(0, 0);
    return std::move(out_);
  }

 private:
  int64_t CountShown() const {
    int64_t count = 1;
    for (const int64_t size : tensor_.shape()) count *= std::min(size, int64_t{2} * edge_items_);
    return count;
  }

  // Calls visit(i) for the indices of an axis that are shown, and visit(-1) for the gap.
  template <typename Visit>
  void ForShown(int axis, Visit visit) const {
    const int64_t size = tensor_.dims[axis];
    const bool has_gap = is_shortened_ && size > int64_t{2} * edge_items_;
    for (int64_t i = 0; i < size; ++i) {
      if (has_gap && i == edge_items_) {
        visit(-1);
        i = size - edge_items_;
      }
      if (i < size) visit(i);
    }
  }

  void CollectShown(int axis, int64_t base, std::vector<int64_t>* shown) const {
    if (axis == tensor_.rank) {
      shown->push_back(base);
      return;
    }
    ForShown(axis, [&](int64_t i) {
      if (i >= 0) CollectShown(axis + 1, base + i * tensor_.strides[axis], shown);
    });
  }

  // Prints one bracket; every line inside starts below the character after it.
  void Axis(int axis, int64_t base) {
    const auto indent = static_cast<size_t>(axis) + 1;
    out_ += '[';
    if (axis + 1 == tensor_.rank) {
      Row(axis, base, indent);
    } else {
      bool is_first = true;
      ForShown(axis, [&](int64_t i) {
        if (!is_first) {
          out_.append(static_cast<size_t>(tensor_.rank - axis - 1), '\n');
          out_.append(indent, ' ');
        }
        is_first = false;
        if (i < 0) {
          out_ += "...";
        } else {
          Axis(axis + 1, base + i * tensor_.strides[axis]);
        }
      });
    }
    out_ += ']';
  }

  // The elements of the last axis, wrapped where a line would grow too long for itself and the brackets.
  void Row(int axis, int64_t base, size_t indent) {
    const auto width = static_cast<size_t>(std::max(options_.line_width - tensor_.rank, 1));
    size_t column = indent;
    bool is_first = true;
    ForShown(axis, [&](int64_t i) {
      const std::string word = i < 0 ? "..." : (*format_)(base + i * tensor_.strides[axis]);
      const size_t separator = is_first ? 0 : 1;
      if (!is_first && column + separator + word.size() > width) {
        out_.erase(out_.find_last_not_of(' ') + 1);
        out_ += '\n' + std::string(indent, ' ');
        column = indent;
      } else {
        out_.append(separator, ' ');
        column += separator;
      }
      out_ += word;
      column += word.size();
      is_first = false;
    });
  }

  const TensorView& tensor_;
  const TensorPrintOptions& options_;
  const bool is_shortened_;
  int edge_items_;
  const ElementFormat* format_ = nullptr;
  std::string out_;
};

}  // namespace

std::string ElementToText(DataType dtype, uint64_t bits) {
  if (dtype.is_bool()) return (bits & 0xff) != 0 ? "True" : "False";
  if (dtype.is_uint()) return std::to_string(bits);
  if (dtype.is_int()) return std::to_string(SignExtend(bits, dtype.bits));
  const double value = DecodeFloat(dtype, bits);
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // As Python's repr for float64, scientific from 1e16 on and below 1e-4; narrower types switch earlier.
  const double magnitude = std::fabs(value);
  const double limit = dtype.bits == 64 ? 1e16 : std::pow(10.0, DecimalDigits(dtype));
  const bool is_scientific = magnitude >= limit || (magnitude != 0 && magnitude < 1e-4);
  constexpr int kAllDigits = 400;
  const FloatText text = is_scientific ? Scientific(dtype, value, kAllDigits) : Positional(dtype, value, kAllDigits);
  if (is_scientific) {
    return text.whole + (text.fraction.empty() ? "" : "." + text.fraction) + "e" + text.exponent;
  }
  return text.whole + "." + (text.fraction.empty() ? "0" : text.fraction);
}

Result<std::string> TensorToText(const Tensor& tensor, const TensorPrintOptions& options) {
  if (!IsNumeric(tensor.dtype())) {
    return Status(StatusCode::kInvalidArgument, "cannot print elements of type " + tensor.dtype().ToString());
  }
  INGOT_ASSIGN_OR_RETURN(const Tensor compact, tensor.Compact());
  if (compact.num_elements() == 0) return std::string("[]");
  if (compact.rank() == 0) return ElementToText(compact.dtype(), ElementBits(compact.view(), 0));
  return Printer(compact.view(), options).Run();
}

}  // namespace ingot::formats
