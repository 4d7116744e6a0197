// Helpers with which operators' type inference is written: typed access to a call's arguments and attributes with
// errors that name the operator, and arithmetic on symbolic dims. Nothing here is about a particular operator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/type.h"
#include "runtime/status.h"

namespace ingot::op {

using Dims = std::vector<ir::PrimExpr>;

// The dtype of positions and counts in results.
inline constexpr DataType kIndexDtype = DataType::Int(64);

// bad_input "NAME: message", with the place in the source when it is known.
Status OpError(const ir::Call& call, const std::string& message);
// "float32[n, 4]", "float32 of rank 2", "tuple(...)" and the like, for messages.
std::string Describe(const ir::Type& type);
std::string Describe(const ir::PrimExpr& expr);

// An error when it is known that elements are read along an axis that has none. Where either is unknown, it is compared
// when the program runs (HasElements of assumed_dims.cc).
Status CheckHasElements(const ir::Call& call, const ir::TensorType& x, size_t axis, const Dims& result);

// Argument i as a tensor type.
Result<ir::TensorType> TensorArg(const ir::Call& call, size_t i);
// Argument i, a tuple of tensors (or one tensor alone), as tensor types.
Result<std::vector<ir::TensorType>> TensorTupleArg(const ir::Call& call, size_t i);
// Argument i as a shape: the dims of a ShapeExpr, or of a value whose type says them; nothing when unknown.
Result<std::optional<Dims>> ShapeArg(const ir::Call& call, size_t i, int* rank = nullptr);
// Argument i as a tuple of constant integers.
Result<std::vector<int64_t>> IntTupleArg(const ir::Call& call, size_t i);
// The same with scalar expressions, all int64.
Result<std::vector<ir::PrimExpr>> PrimTupleArg(const ir::Call& call, size_t i);
// Argument i as a scalar expression (R.prim_value).
Result<ir::PrimExpr> PrimArg(const ir::Call& call, size_t i);
bool HasArg(const ir::Call& call, size_t i);

// Attributes that may be None.
std::optional<DataType> DataTypeAttr(const ir::Call& call, const char* name);
std::optional<std::vector<int64_t>> IntsAttr(const ir::Call& call, const char* name);

// axis in [0, rank), counted from the end when negative.
Result<int> NormalizeAxis(const ir::Call& call, int64_t axis, int rank);
// The attribute "axis" of a call likewise.
Result<int> AxisOf(const ir::Call& call, int rank);
// The same for several axes, each named once; None means all of them.
Result<std::vector<int>> NormalizeAxes(const ir::Call& call, const std::optional<std::vector<int64_t>>& axes, int rank);

// Proofs without assumptions; false means not proved.
bool DimsEqual(const ir::PrimExpr& a, const ir::PrimExpr& b);
bool DimsDiffer(const ir::PrimExpr& a, const ir::PrimExpr& b);  // proved to differ
ir::PrimExpr SimplifyDim(const ir::PrimExpr& dim);
ir::PrimExpr ProductOf(const Dims& dims);
// NumPy's broadcasting of two shapes: an error where constant dims differ and neither is 1, else always dims (where
// nothing is proved about symbols, the formula of BroadcastDim).
Result<std::optional<Dims>> BroadcastDims(const ir::Call& call, const Dims& a, const Dims& b);
// The common dtype of two tensors: an error where they differ, nothing where one is unknown.
Result<std::optional<DataType>> CommonDataType(const ir::Call& call, const ir::TensorType& a, const ir::TensorType& b);

// A tensor type like `like` (virtual device) with other dims or dtype.
ir::Type TensorOf(Dims dims, std::optional<DataType> dtype, const ir::TensorType& like);
ir::Type TensorOfRank(int rank, std::optional<DataType> dtype, const ir::TensorType& like);

// The dims of a type that is a single tensor with constant dims; an error for other types.
Result<std::vector<int64_t>> ConstantDims(const ir::Call& call, const ir::Type& type);

}  // namespace ingot::op
