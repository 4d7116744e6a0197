// Shapes as tensors: shape_to_tensor, which gives dimensions computed at compile time to arithmetic on tensors at run
// time. The elements of its shape are expressions over the function's symbols; the kernel takes the symbols as
// scalars.
#include <cstring>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"

namespace ingot::op {
namespace {

Result<ir::Type> InferShapeToTensor(const ir::Call& call) {
  int rank = -1;
  INGOT_RETURN_IF_ERROR(ShapeArg(call, 0, &rank).status());
  if (rank < 0) return TensorOfRank(1, DataType::Int(64), nullptr);
  return TensorOf({ir::Int64(rank)}, DataType::Int(64), nullptr);
}

Result<std::vector<int64_t>> ConstantElements(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> dims, ShapeArg(call, 0));
  std::vector<int64_t> elements;
  for (const ir::PrimExpr& dim : dims ? *dims : Dims()) {
    const auto value = ir::AsConstInt(dim);
    if (!value) return OpError(call, "expected constants, got " + Describe(dim));
    elements.push_back(*value);
  }
  return elements;
}

Result<std::vector<ReferenceTensor>> ReferenceShapeToTensor(const ir::Call& call, std::span<const ReferenceTensor>) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> elements, ConstantElements(call));
  ReferenceTensor out = NewReference(DataType::Int(64), {std::ssize(elements)});
  out.ints = elements;
  return std::vector<ReferenceTensor>{std::move(out)};
}

Result<std::shared_ptr<const ir::ConstantData>> FoldShapeToTensor(
    const ir::Call& call, std::span<const std::shared_ptr<const ir::ConstantData>>) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> elements, ConstantElements(call));
  std::vector<std::byte> bytes(elements.size() * sizeof(int64_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
  return ir::ConstantData::FromBytes(DataType::Int(64), {std::ssize(elements)}, std::move(bytes));
}

// Element i, chosen among elements [begin, end) by nested comparisons that halve the range.
ir::PrimExpr Choose(const Dims& elements, size_t begin, size_t end, const ir::PrimExpr& i) {
  if (end - begin == 1) return elements[begin];
  const size_t middle = begin + (end - begin) / 2;
  return ir::Select(i < ir::Int64(static_cast<int64_t>(middle)), Choose(elements, begin, middle, i),
                    Choose(elements, middle, end, i));
}

te::Tensor DefineShapeToTensor(const TeArgs& args) {
  const Result<std::optional<Dims>> shape = ShapeArg(args.call(), 0);
  INGOT_CHECK(shape.ok() && shape->has_value(), "type inference knew the shape");
  Dims elements;
  for (const ir::PrimExpr& dim : **shape) elements.push_back(args.Own(dim));
  return te::Compute(
      args.out_dims(),
      [&](const te::Indices& i) {
        return elements.empty() ? ir::Int64(0) : Choose(elements, 0, elements.size(), i[0]);
      },
      "shape_to_tensor");
}

}  // namespace

std::vector<OpRow> ShapeOps() {
  std::vector<OpRow> rows;
  rows.push_back({.name = "shape_to_tensor",
                  .summary = "a shape as a tensor of int64",
                  .arg_names = {"input"},
                  .fusion = FusionClass::kInjective,
                  .infer = InferShapeToTensor,
                  .reference = ReferenceShapeToTensor,
                  .fold = FoldShapeToTensor,
                  .implementations = {TeImplementation<DefineShapeToTensor>()},
                  .cases = {.rank0 = false, .non_finite = false, .dtypes = {DataType::Int(64)}}});
  return rows;
}

}  // namespace ingot::op
