// Layouts by name, as Relax writes them. Upper-case letters are the axes of a tensor in their order in memory: "NCHW",
// "NHWC". A number and a lower-case letter is an inner part of that axis, which the upper-case letter then counts in
// blocks: in "NCHW16c" channel 35 is element 3 of block 2. Layouts say how a tensor is stored, never what it means: the
// logical dims and indices are those of the canonical order of letters.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/op/infer.h"
#include "compiler/op/reference.h"

namespace ingot::op {

class Layout {
 public:
  struct Axis {
    size_t logical;     // its letter's place in the canonical order
    int64_t inner = 0;  // elements of an inner part; 0: the whole axis, or the count of its blocks
  };
  // Nothing when the name does not hold each of the canonical letters (and no others) once, with at most one inner part
  // each.
  static std::optional<Layout> Parse(std::string_view name, std::string_view canonical);

  size_t rank() const { return axes_.size(); }
  const std::vector<Axis>& axes() const { return axes_; }
  // The elements of the logical axis's inner part, 1 without one.
  int64_t Block(size_t logical) const { return blocks_[logical]; }
  bool IsBlocked() const { return axes_.size() > blocks_.size(); }

  // Physical dims -> logical ones, and back; extents of blocked axes are multiples of their blocks.
  Dims Logical(const Dims& physical) const;
  Dims Physical(const Dims& logical) const;
  std::vector<int64_t> Logical(const std::vector<int64_t>& physical) const;
  Index PhysicalIndex(const Index& logical) const;
  Index LogicalIndex(const Index& physical) const { return Logical(physical, /*is_index=*/true); }

 private:
  std::vector<int64_t> Logical(const std::vector<int64_t>& physical, bool is_index) const;

  std::vector<Axis> axes_;
  std::vector<int64_t> blocks_;  // by logical axis
};

// The layout that an attribute of the call names.
Result<Layout> LayoutAttr(const ir::Call& call, const char* attr, std::string_view canonical);

}  // namespace ingot::op
