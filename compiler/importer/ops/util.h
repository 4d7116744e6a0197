// Helpers for the importers of several families.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "compiler/importer/onnx_ops.h"
#include "compiler/ir/type.h"
#include "compiler/op/registry.h"

namespace ingot::importer {

using ir::AttrValue;
using ir::Expr;
using ir::PrimExpr;

using Outputs = Result<std::vector<Expr>>;

inline constexpr DataType kIndex = DataType::Int(64);  // of places and lengths

// Returns an input's dims; unsupported if its rank is not known.
Result<std::vector<PrimExpr>> StaticRankDims(const NodeImporter& node, size_t input);
// Returns x in this dtype; x itself if it has it.
Result<Expr> CastTo(const NodeImporter& node, Expr x, DataType dtype);
// The dtype for the steps of an operator that is several of the table's: float32 for floats of fewer bits, whose sums
// of squares, say, would be infinite where the root of them is not; the same dtype otherwise.
DataType StepType(DataType dtype);
// The dims and the dtype of a tensor, both of which must be known.
const std::vector<PrimExpr>& DimsOf(const Expr& x);
DataType DTypeOf(const Expr& x);
// Returns a constant of these elements, of which the dtype is that of T.
template <typename T>
Expr ConstantOf(DataType dtype, std::vector<int64_t> dims, const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(dtype, std::move(dims), std::move(bytes)));
}
Expr ShapeOf(std::vector<PrimExpr> dims);
// Returns numbers as a tuple, the form of a slice's bounds.
Expr PrimTuple(const std::vector<PrimExpr>& values);
Expr PrimTuple(const std::vector<int64_t>& values);
PrimExpr Product(std::span<const PrimExpr> dims);
// Normalises an axis, which counts from the end if negative; kBadInput if it is out of range. `end_allowed`: the rank
// itself is allowed, too.
Result<int64_t> NormaliseAxis(const NodeImporter& node, int64_t axis, int64_t rank, bool end_allowed = false);
// Returns the axis of an input's dims that an attribute gives, normalised.
Result<int64_t> AxisOf(const NodeImporter& node, const char* name, int64_t default_value, size_t input = 0);
Outputs One(Result<Expr> value);
// Returns the fields of a call with several results.
Outputs Fields(Result<Expr> call);
// The tensor with these dims, which are compared at run time where nothing proves them.
Expr WithDims(const NodeImporter& node, Expr x, std::vector<PrimExpr> dims);
// The tensor such that it never enlarges what has these dims by broadcasting with it: as it is where that is proved,
// otherwise broadcast to them, which compares its own dims at run time.
Result<Expr> BroadcastInto(const NodeImporter& node, Expr x, const std::vector<PrimExpr>& dims);
// An input of these dims, which are compared at run time where nothing proves them; bad input if they are others.
Result<Expr> InputOfDims(const NodeImporter& node, size_t input, std::vector<PrimExpr> dims);
// An input of one number for each channel, which nothing else than [channels] is: a list of one number is none, either.
Result<Expr> PerChannel(const NodeImporter& node, size_t input, const PrimExpr& channels);
// An input of one number, which may be a list of it.
Result<Expr> OneNumber(const NodeImporter& node, size_t input);
// A scale or a zero point of matrices of these dims, such that it broadcasts to them: one number, a number for each
// column (each row if `by_row`), or that for each matrix apart, of the dims of which the other axis is 1.
Result<Expr> OfMatrix(const NodeImporter& node, size_t input, std::vector<PrimExpr> dims, bool by_row = false);
Result<Expr> ReshapeTo(const NodeImporter& node, Expr x, std::vector<PrimExpr> dims);
Result<Expr> Permuted(const NodeImporter& node, Expr x, const std::vector<int64_t>& axes);
// Both halves of the last axis; run time compares that there are two where nothing proves it.
Result<std::pair<Expr, Expr>> Halves(const NodeImporter& node, const Expr& x);
// Returns the numbers from 0 up to this count, of int64, with these dims.
Result<Expr> CountedUp(const NodeImporter& node, const PrimExpr& count, std::vector<PrimExpr> dims);
// Returns `count` places along an axis whose last place is `extent`, but where there is one place alone, the middle of the
// region between `start` and `end`, which are parts of the axis.
Result<Expr> MiddleIfAlone(const NodeImporter& node, Expr places, const PrimExpr& count, const Expr& start,
                           const Expr& end, const Expr& extent);
// Returns where the elements of frames stand that begin each `step` elements: i * step + j, of int64 [frames, length].
Result<Expr> FramePlaces(const NodeImporter& node, const PrimExpr& frames, const PrimExpr& step,
                         const PrimExpr& length);
// Returns a constant of integers below 8 bits as one of 8 bits, which kernels support; anything else as it is.
Result<Expr> Unpacked(Expr x);
// Converts as ONNX's Cast does: values outside of an eight-bit float's range become its largest number, unless
// `saturate` is 0.
Result<Expr> ConvertTo(const NodeImporter& node, Expr x, DataType dtype);
// Returns the axes of an operator that takes them as an attribute before opset 13 and as an input since.
Result<std::vector<int64_t>> AxesOf(const NodeImporter& node);

}  // namespace ingot::importer
