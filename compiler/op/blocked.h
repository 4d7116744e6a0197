// Convolution and pooling over tensors whose channels lie in blocks of 16 (NCHW16c): the implementations that their
// rows list, and what the rows' inference and reference evaluation do when a call names such a layout. Which calls get
// one is decided by convert_layout.
#pragma once

#include <span>
#include <vector>

#include "compiler/op/layout.h"
#include "compiler/op/registry.h"

namespace ingot::op {

// An attribute of a call that names a tensor's layout, and the canonical order of its letters.
struct LayoutName {
  const char* attr;
  const char* canonical;
};
// The attributes of a row in order of its tensors, the result last: those whose names end in "layout".
std::vector<LayoutName> LayoutNames(const OpRow& row);

// Some layout that the call names has blocks.
bool HasBlocks(const ir::Call& call);
// The type of such a call, from the inference of the same call in canonical layouts; channels must fill their blocks.
Result<ir::Type> InferBlocked(const ir::Call& call, Result<ir::Type> (*infer)(const ir::Call& call));
// Its values: arguments in canonical layouts, evaluated, and the result laid out.
Result<std::vector<ReferenceTensor>> ReferenceBlocked(
    const ir::Call& call, std::span<const ReferenceTensor> inputs, Result<ir::Type> (*infer)(const ir::Call& call),
    Result<std::vector<ReferenceTensor>> (*reference)(const ir::Call& call, std::span<const ReferenceTensor> inputs));

// Dense and grouped ones over NCHW16c with weights OIHW16i16o; depthwise ones with weights OIHW16o; few input channels
// in NCHW with weights OIHW16o.
std::vector<Implementation> BlockedConv2d();
Implementation BlockedMaxPool2d();
Implementation BlockedAvgPool2d();

}  // namespace ingot::op
