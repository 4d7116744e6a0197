// An input that is a tuple or a sequence, put together from tensors that a command line or a tensor file names one by
// one: "x.0", "x.1", and "x.0.2" where an element is a tuple or sequence itself. Outputs are named in the same way.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/ingot.h"
#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::apps {

// The text of a tuple or sequence without elements, as an input and as an output.
inline constexpr const char* kNoElements = "()";

// Parses "0.2" to {0, 2}. Returns nothing when the text is no such path, or a position is beyond the longest sequence.
std::optional<std::vector<size_t>> ParseElementPath(std::string_view text);

// A borrowed view of a host tensor for the C API.
ingot_dl_tensor ViewOf(const Tensor& tensor);

class NestedInput {
 public:
  // Sets the element at a path, which must not be set yet; an empty tensor stands for a sequence without elements.
  Status Set(const std::vector<size_t>& path, Tensor tensor);
  // Fails unless the positions of the elements are 0, 1, ... without a gap, at every level.
  Status Check() const;
  // The input as a value of the C API; valid as long as this object is not changed.
  ingot_value View();

 private:
  Tensor tensor_;
  bool is_set_ = false;
  std::map<size_t, NestedInput> elements_;
  ingot_dl_tensor view_{};
  std::vector<ingot_value> values_;
};

}  // namespace ingot::apps
