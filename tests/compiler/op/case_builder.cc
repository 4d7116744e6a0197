#include "tests/compiler/op/case_builder.h"

#include <cmath>

#include "compiler/op/infer.h"
#include "compiler/op/reference.h"

namespace ingot::op {

using ir::Attrs;
using ir::Expr;

ReferenceTensor Data(DataType dtype, IntList dims, uint64_t seed) {
  ReferenceTensor tensor = NewReference(dtype, std::move(dims));
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int64_t i = 0; i < CountOf(tensor.dims); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto step = static_cast<int64_t>((state >> 40) % 65) - 32;  // -32 .. 32
    SetNumber(tensor, i, dtype.is_floating() ? static_cast<double>(step) / 8 : static_cast<double>(step));
    if (dtype.is_bool()) tensor.ints[static_cast<size_t>(i)] = step & 1;
    if (dtype.is_uint()) tensor.ints[static_cast<size_t>(i)] = std::abs(step);
  }
  return tensor;
}
ReferenceTensor Of(DataType dtype, IntList dims, const std::vector<double>& values) {
  ReferenceTensor tensor = NewReference(dtype, std::move(dims));
  INGOT_CHECK(values.size() == static_cast<size_t>(CountOf(tensor.dims)));
  for (size_t i = 0; i < values.size(); ++i) {
    // Inputs are exact in their dtype.
    const double value = dtype == kF32 ? static_cast<double>(static_cast<float>(values[i])) : values[i];
    SetNumber(tensor, static_cast<int64_t>(i), value);
  }
  return tensor;
}
ReferenceTensor Specials(DataType dtype) { return Of(dtype, {8}, {kInf, -kInf, kNan, 0.0, -0.0, 1e-40, 3e38, -3e38}); }

Expr ShapeOf(const IntList& dims) {
  Dims exprs;
  for (int64_t dim : dims) exprs.push_back(ir::Int64(dim));
  return ir::Make<ir::ShapeExprNode>(std::move(exprs));
}
Expr Scalar(double value) {
  if (value == std::floor(value)) return ir::Make<ir::PrimValueNode>(ir::Int64(static_cast<int64_t>(value)));
  return ir::Make<ir::PrimValueNode>(ir::FloatImm(kF64, value));
}
Expr IntTuple(const IntList& values) {
  std::vector<Expr> fields;
  std::vector<ir::Type> types;
  for (int64_t value : values) {
    fields.push_back(ir::Make<ir::PrimValueNode>(ir::Int64(value)));
    types.push_back(fields.back()->type);
  }
  return ir::Make<ir::TupleNode>(std::move(fields), ir::Make<ir::TupleTypeNode>(std::move(types)));
}
std::vector<Expr> AsTuple(const std::vector<Expr>& inputs) {
  std::vector<ir::Type> types;
  for (const Expr& input : inputs) types.push_back(input->type);
  return {ir::Make<ir::TupleNode>(inputs, ir::Make<ir::TupleTypeNode>(std::move(types)))};
}
Arguments Then(std::vector<Expr> more) {
  return [more](const std::vector<Expr>& inputs) {
    std::vector<Expr> args = inputs;
    args.insert(args.end(), more.begin(), more.end());
    return args;
  };
}

OpCase& CaseBuilder::Add(std::string op, std::string label, std::vector<ReferenceTensor> inputs, Attrs attrs,
                         Arguments args) {
  cases.push_back({std::move(op), std::move(label), std::move(inputs), std::move(attrs), std::move(args)});
  for (const ReferenceTensor& input : cases.back().inputs) {
    if (!input.dtype.is_floating() || input.dtype.bits != 16) continue;
    cases.back().rtol = input.dtype == kBF16 ? 1e-2 : 2e-3;
    cases.back().atol = input.dtype == kBF16 ? 1e-2 : 1e-3;
  }
  return cases.back();
}

void UnaryCases(CaseBuilder& b, const OpRow& row, const Attrs& attrs, const Arguments& args) {
  for (DataType dtype : row.cases.dtypes) {
    b.Add(row.name, dtype.ToString(), {Data(dtype, {3, 5})}, attrs, args);
  }
  const DataType first = row.cases.dtypes.front();
  b.Add(row.name, "rank0", {Data(first, {})}, attrs, args);
  b.Add(row.name, "empty", {Data(first, {0, 3})}, attrs, args);
  if (row.cases.non_finite) b.Add(row.name, "specials", {Specials()}, attrs, args);
}

void MoveCases(CaseBuilder& b, const char* op, const Attrs& attrs, const IntList& dims, const Arguments& args) {
  for (DataType dtype : FindOp(op)->cases.dtypes) b.Add(op, dtype.ToString(), {Data(dtype, dims)}, attrs, args);
}

}  // namespace ingot::op
