// Convolution and pooling over tensors whose channels lie in blocks of 16 (NCHW16c; NDCHW16c of volumes): the implementations that these
// operators list, and type inference and reference evaluation of calls that name such a layout. convert_layout decides
// which calls get one.
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
// The operator's layout attributes (their names end in "layout") in the order of its tensors, the result last.
std::vector<LayoutName> LayoutNames(const OpRow& row);

// Whether some layout that the call names has blocks.
bool HasBlocks(const ir::Call& call);
// The type of such a call, by `infer` of the same call in canonical layouts. An error when a tensor's blocks have
// another size than the layout's, or the result's channels do not fill their blocks.
Result<ir::Type> InferBlocked(const ir::Call& call, Result<ir::Type> (*infer)(const ir::Call& call));
// The values of such a call: `reference` evaluates it over arguments in canonical layouts, and the result is laid out
// as the call says.
Result<std::vector<ReferenceTensor>> ReferenceBlocked(
    const ir::Call& call, std::span<const ReferenceTensor> inputs, Result<ir::Type> (*infer)(const ir::Call& call),
    Result<std::vector<ReferenceTensor>> (*reference)(const ir::Call& call, std::span<const ReferenceTensor> inputs));

// Dense and grouped convolution over NCHW16c with weights OIHW16i16o, depthwise convolution over NCHW16c with weights
// OIHW16o, and convolution of few input channels in NCHW with weights OIHW16o; with three spatial axes the same with a
// depth, NDCHW16c, OIDHW16i16o and so on.
std::vector<Implementation> BlockedConv(size_t spatial);
// Whether bytes take less time over channels in blocks, several in each word, than as floats: of groups of so many input
// and output channels. Groups that do not fill their blocks are filled up with zeros.
bool WordsPay(int64_t groups, int64_t width, int64_t outputs);
// As many channels as fill blocks.
int64_t FilledChannels(int64_t channels);
Implementation BlockedMaxPool(size_t spatial);
Implementation BlockedAvgPool(size_t spatial);

}  // namespace ingot::op
