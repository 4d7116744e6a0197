// What the importers of several families use.
#pragma once

#include <string>
#include <vector>

#include "compiler/importer/onnx_ops.h"
#include "compiler/ir/type.h"
#include "compiler/op/registry.h"

namespace ingot::importer {

using ir::AttrValue;
using ir::Expr;
using ir::PrimExpr;

using Outputs = Result<std::vector<Expr>>;

// An input's dims; unsupported when its rank is not known.
Result<std::vector<PrimExpr>> StaticRankDims(const NodeImporter& node, size_t input);
// x as this dtype; x itself when it has it.
Result<Expr> CastTo(const NodeImporter& node, Expr x, DataType dtype);
// The dims and the dtype of a tensor of which both are known.
const std::vector<PrimExpr>& DimsOf(const Expr& x);
DataType DTypeOf(const Expr& x);
Expr ShapeOf(std::vector<PrimExpr> dims);
// Numbers as a tuple, as the bounds of a slice are given.
Expr PrimTuple(const std::vector<PrimExpr>& values);
Expr PrimTuple(const std::vector<int64_t>& values);
PrimExpr Product(std::span<const PrimExpr> dims);
// Axes count from the end when negative; `end_allowed`: the rank itself is one too.
Result<int64_t> NormaliseAxis(const NodeImporter& node, int64_t axis, int64_t rank, bool end_allowed = false);
Outputs One(Result<Expr> value);
// The fields of a call with several results.
Outputs Fields(Result<Expr> call);
Result<Expr> ReshapeTo(const NodeImporter& node, Expr x, std::vector<PrimExpr> dims);
// A constant of integers of less than a byte as one of eight bits, which kernels know; all else as it is.
Result<Expr> Unpacked(Expr x);
// Converted as ONNX's Cast does: unless `saturate` is 0, what lies outside of an eight-bit float is its nearest number.
Result<Expr> ConvertTo(const NodeImporter& node, Expr x, DataType dtype);
// The axes of an operator that takes them as an attribute before opset 13 and as an input since.
Result<std::vector<int64_t>> AxesOf(const NodeImporter& node);

}  // namespace ingot::importer
