// An input that is a tuple or a sequence, put together from the tensors that a command line or a tensor file names one
// by one: "x.0", "x.1", and "x.0.2" where an element is one itself. Outputs are named in the same way.
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

// What a tuple or sequence without elements is called, as an input and as an output.
inline constexpr const char* kNoElements = "()";

// "0.2" as {0, 2}; nothing where it is no such path, or names a place beyond what a sequence may hold.
std::optional<std::vector<size_t>> ParseElementPath(std::string_view text);

// A borrowed view of a host tensor for the C API.
ingot_dl_tensor ViewOf(const Tensor& tensor);

class NestedInput {
 public:
  // The element at a path, which is not set yet; an empty tensor stands for a sequence without elements.
  Status Set(const std::vector<size_t>& path, Tensor tensor);
  // Places are numbered from 0 on, and none is left out.
  Status Check() const;
  // As the C API takes it; valid as long as this is not changed.
  ingot_value View();

 private:
  Tensor tensor_;
  bool is_set_ = false;
  std::map<size_t, NestedInput> elements_;
  ingot_dl_tensor view_{};
  std::vector<ingot_value> values_;
};

}  // namespace ingot::apps
