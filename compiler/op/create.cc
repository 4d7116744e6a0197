// Tensors from shapes and scalars: zeros, ones, full.
#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/fold.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/elementwise.h"

namespace ingot::op {
namespace {

Result<ir::Type> InferFilled(const ir::Call& call, std::optional<DataType> dtype) {
  int rank = -1;
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> dims, ShapeArg(call, 0, &rank));
  if (dims) return TensorOf(*dims, dtype, nullptr);
  return TensorOfRank(rank, dtype, nullptr);
}

Result<ir::Type> InferConstant(const ir::Call& call) { return InferFilled(call, DataTypeAttr(call, "dtype")); }

Result<ir::Type> InferFull(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType value, TensorArg(call, 1));
  if (value->rank > 0)
    return OpError(call, "argument \"fill_value\": expected a scalar tensor, got " + Describe(value));
  const std::optional<DataType> dtype = DataTypeAttr(call, "dtype");
  if (dtype && value->dtype && *dtype != *value->dtype) {
    return OpError(call, "expected a fill_value of " + dtype->ToString() + ", got " + Describe(value));
  }
  return InferFilled(call, dtype ? dtype : value->dtype);
}

Result<ReferenceTensor> NewResult(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> dims, ConstantDims(call, call->type));
  return NewReference(*ir::As<ir::TensorTypeNode>(call->type)->dtype, std::move(dims));
}

template <int value>
Result<std::vector<ReferenceTensor>> ReferenceConstant(const ir::Call& call, std::span<const ReferenceTensor>) {
  INGOT_ASSIGN_OR_RETURN(ReferenceTensor out, NewResult(call));
  for (int64_t i = 0; i < CountOf(out.dims); ++i) SetNumber(out, i, value);
  return std::vector<ReferenceTensor>{std::move(out)};
}

Result<std::vector<ReferenceTensor>> ReferenceFull(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(ReferenceTensor out, NewResult(call));
  for (int64_t i = 0; i < CountOf(out.dims); ++i) CopyElement(inputs[0], 0, out, i);
  return std::vector<ReferenceTensor>{std::move(out)};
}

template <int value>
Result<ConstantPtr> FoldConstant(const ir::Call& call, std::span<const ConstantPtr>) {
  return FilledConstant(call, value);
}

template <int value>
te::Tensor DefineConstant(const TeArgs& args) {
  const DataType dtype = args.out_dtype();
  return topi::Full(args.out_dims(), dtype.is_bool() ? ir::BoolImm(value != 0) : ir::MakeConst(dtype, value));
}

te::Tensor DefineFull(const TeArgs& args) { return topi::BroadcastTo(args.input(0), args.out_dims()); }

Result<PrepareCall> PrepareFull(const ir::Call&) { return PrepareCall{"broadcast_to", {InputIndex{0}}}; }

}  // namespace

std::vector<OpRow> CreateOps() {
  const CaseTraits cases{.non_finite = false, .dtypes = {DataType::Float(32), DataType::Int(64), DataType::Bool()}};
  const std::vector<AttrSpec> dtype = {{"dtype", AttrType::kDataType, {}, true}};
  std::vector<OpRow> rows;
  rows.push_back({.name = "zeros",
                  .summary = "a tensor of zeros",
                  .arg_names = {"shape"},
                  .attrs = dtype,
                  .fusion = FusionClass::kElementwise,
                  .infer = InferConstant,
                  .reference = ReferenceConstant<0>,
                  .fold = FoldConstant<0>,
                  .implementations = {TeImplementation<DefineConstant<0>>()},
                  .cases = cases});
  rows.push_back({.name = "ones",
                  .summary = "a tensor of ones",
                  .arg_names = {"shape"},
                  .attrs = dtype,
                  .fusion = FusionClass::kElementwise,
                  .infer = InferConstant,
                  .reference = ReferenceConstant<1>,
                  .fold = FoldConstant<1>,
                  .implementations = {TeImplementation<DefineConstant<1>>()},
                  .cases = cases});
  rows.push_back({.name = "full",
                  .summary = "a tensor of one value",
                  .arg_names = {"shape", "fill_value"},
                  .attrs = {{"dtype", AttrType::kDataType}},
                  .fusion = FusionClass::kBroadcast,
                  .infer = InferFull,
                  .reference = ReferenceFull,
                  .fold = FoldByPrepare,
                  .prepare = PrepareFull,
                  .implementations = {TeImplementation<DefineFull>()},
                  .cases = cases});
  return rows;
}

}  // namespace ingot::op
