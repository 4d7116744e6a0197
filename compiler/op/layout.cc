// Parses layout names, and converts dims and indices between the logical order of axes and the order in memory.
#include "compiler/op/layout.h"

#include <algorithm>
#include <cctype>

namespace ingot::op {

std::optional<Layout> Layout::Parse(std::string_view name, std::string_view canonical) {
  constexpr int64_t kMaxInner = 1 << 16;
  Layout layout;
  layout.blocks_.assign(canonical.size(), 1);
  std::vector<bool> seen(canonical.size());
  int64_t number = 0;
  for (const char c : name) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      number = number * 10 + (c - '0');
      if (number == 0 || number > kMaxInner) return std::nullopt;
      continue;
    }
    const bool is_inner = number > 0;
    const size_t logical =
        canonical.find(is_inner ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c);
    if (logical == std::string_view::npos || (is_inner && std::isupper(static_cast<unsigned char>(c)) != 0)) {
      return std::nullopt;
    }
    if (is_inner ? layout.blocks_[logical] != 1 : seen[logical]) return std::nullopt;
    if (is_inner) {
      layout.blocks_[logical] = number;
    } else {
      seen[logical] = true;
    }
    layout.axes_.push_back({logical, number});
    number = 0;
  }
  if (number != 0 || !std::ranges::all_of(seen, [](bool s) { return s; })) return std::nullopt;
  return layout;
}

Dims Layout::Logical(const Dims& physical) const {
  Dims logical(blocks_.size(), ir::Int64(1));
  for (size_t i = 0; i < axes_.size(); ++i) {
    ir::PrimExpr& dim = logical[axes_[i].logical];
    dim = SimplifyDim(dim * physical[i]);
  }
  return logical;
}

Dims Layout::Physical(const Dims& logical) const {
  Dims physical;
  for (const Axis& axis : axes_) {
    const ir::PrimExpr& dim = logical[axis.logical];
    const int64_t block = blocks_[axis.logical];
    if (axis.inner != 0) {
      physical.push_back(ir::Int64(axis.inner));
    } else {
      physical.push_back(block == 1 ? dim : SimplifyDim(ir::FloorDiv(dim, ir::Int64(block))));
    }
  }
  return physical;
}

std::vector<int64_t> Layout::Logical(const std::vector<int64_t>& physical) const {
  return Logical(physical, /*is_index=*/false);
}

std::vector<int64_t> Layout::Logical(const std::vector<int64_t>& physical, bool is_index) const {
  std::vector<int64_t> logical(blocks_.size(), 0);
  for (size_t i = 0; i < axes_.size(); ++i) {
    const Axis& axis = axes_[i];
    if (axis.inner == 0) logical[axis.logical] += physical[i] * blocks_[axis.logical];
    if (axis.inner != 0 && is_index) logical[axis.logical] += physical[i];
  }
  return logical;
}

Index Layout::PhysicalIndex(const Index& logical) const {
  Index physical;
  for (const Axis& axis : axes_) {
    const int64_t index = logical[axis.logical];
    physical.push_back(axis.inner != 0 ? index % axis.inner : index / blocks_[axis.logical]);
  }
  return physical;
}

Result<Layout> LayoutAttr(const ir::Call& call, const char* attr, std::string_view canonical) {
  const std::string& name = call->attrs.GetString(attr);
  std::optional<Layout> layout = Layout::Parse(name, canonical);
  if (layout) return *std::move(layout);
  return OpError(call, std::string(attr) + ": expected a permutation of \"" + std::string(canonical) +
                           "\", with blocks as in \"NCHW16c\" or without, got \"" + name + "\"");
}

}  // namespace ingot::op
