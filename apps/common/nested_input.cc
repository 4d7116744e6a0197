// A tree of elements by position, and the C API's value made of it.
#include "apps/common/nested_input.h"

#include <charconv>
#include <utility>

namespace ingot::apps {

std::optional<std::vector<size_t>> ParseElementPath(std::string_view text) {
  constexpr size_t kMaxDepth = 16, kMaxPlace = 1 << 16;
  std::vector<size_t> path;
  while (true) {
    size_t place = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), place);
    if (error != std::errc() || place >= kMaxPlace || path.size() == kMaxDepth) return std::nullopt;
    path.push_back(place);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) return path;
    if (!text.starts_with('.')) return std::nullopt;
    text.remove_prefix(1);
  }
}

ingot_dl_tensor ViewOf(const Tensor& t) {
  ingot_dl_tensor view{};
  view.data = t.data();
  view.device = {INGOT_DL_CPU, 0};
  view.ndim = t.rank();
  view.dtype = {static_cast<uint8_t>(t.dtype().code), t.dtype().bits, t.dtype().lanes};
  view.shape = const_cast<int64_t*>(t.dims().data());
  view.strides = const_cast<int64_t*>(t.strides().data());
  return view;
}

Status NestedInput::Set(const std::vector<size_t>& path, Tensor tensor) {
  NestedInput* part = this;
  for (size_t place : path) {
    if (part->is_set_) break;
    part = &part->elements_[place];
  }
  if (part->is_set_ || !part->elements_.empty()) {
    return Status(StatusCode::kInvalidArgument, "given twice, or given whole and by its elements");
  }
  part->is_set_ = true;
  part->tensor_ = std::move(tensor);
  return Status();
}

Status NestedInput::Check() const {
  size_t expected = 0;
  for (const auto& [place, element] : elements_) {
    if (place != expected) {
      return Status(StatusCode::kInvalidArgument,
                    "element " + std::to_string(expected) + " is missing before element " + std::to_string(place));
    }
    INGOT_RETURN_IF_ERROR(element.Check());
    ++expected;
  }
  return Status();
}

ingot_value NestedInput::View() {
  ingot_value value{};
  if (tensor_) {
    view_ = ViewOf(tensor_);
    value.kind = INGOT_KIND_TENSOR;
    value.as.tensor = &view_;
    return value;
  }
  values_.clear();
  for (auto& [place, element] : elements_) values_.push_back(element.View());
  value.kind = INGOT_KIND_TUPLE;
  value.as.tuple.elements = values_.data();
  value.as.tuple.count = values_.size();
  return value;
}

}  // namespace ingot::apps
