// The operator library for people who write tensor expressions. Two ways in, to the same definitions that the operator
// table compiles models with:
//
//   - any operator of the table by its name, with its attributes, defaults and type inference:
//       topi::Apply("nn.conv2d", {data, weight}, {{"padding", ir::AttrValue::Ints({1, 1})}})
//     Its name, arguments and attributes are those of R.NAME in TVMScript; vm-compile --list-ops lists them;
//   - the definitions themselves, as functions of tensors, in the headers below.
//
// Results are unscheduled stages: te::CreatePrimFunc or te::CreateSchedule takes them with stages of one's own.
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "compiler/op/topi/elementwise.h"    // Map, BroadcastMap, CastTo, Full
#include "compiler/op/topi/indexing.h"       // Take, GatherElements, GatherNd
#include "compiler/op/topi/nn.h"             // Matmul, Conv, ConvTranspose, MaxPool, AvgPool
#include "compiler/op/topi/normalization.h"  // Normalize, GroupNorm, RmsNorm
#include "compiler/op/topi/reduction.h"      // Reduce, Mean, Variance, Softmax, LogSoftmax
#include "compiler/op/topi/resize.h"         // Resize, GridSample
#include "compiler/op/topi/transform.h"      // Reshape, Transpose, Concatenate, StridedSlice, Pad
#include "runtime/status.h"

namespace ingot::op::topi {

// One argument: a tensor, several tensors (for concat and the like), or a value that is no tensor (ShapeExpr,
// PrimValue).
using Argument = std::variant<te::Tensor, std::vector<te::Tensor>, ir::Expr>;

// The operator's results. Fails as a call in a graph would: an unknown name or attribute, shapes or dtypes that do not
// fit; and for an operator whose only implementations are statements (sorts, scatters, scans).
Result<std::vector<te::Tensor>> ApplyMany(std::string_view name, const std::vector<Argument>& arguments,
                                          ir::Attrs attrs = {});
// The same for an operator with one result.
Result<te::Tensor> Apply(std::string_view name, const std::vector<Argument>& arguments, ir::Attrs attrs = {});

}  // namespace ingot::op::topi
