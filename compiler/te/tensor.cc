// Makes the nodes of the graph: operations with their axes, tensors as their results, loads, and reductions with their
// combiners and identities.
#include "compiler/te/tensor.h"

namespace ingot::te {

using ir::IterType;
using ir::IterVar;
using ir::Make;
using ir::PrimExpr;
using ir::PrimVar;

PrimExpr Tensor::operator()(std::vector<PrimExpr> indices) const {
  INGOT_CHECK(get() != nullptr && indices.size() == get()->shape.size(), "one index per dimension");
  return Make<ir::ProducerLoadNode>(get()->dtype, *this, std::move(indices));
}

Tensor Placeholder(std::vector<PrimExpr> shape, DataType dtype, std::string name) {
  OperationNode operation;
  operation.name = name;
  return Tensor(
      Make<TensorNode>(std::move(name), dtype, std::move(shape), Make<OperationNode>(std::move(operation)), 0));
}

std::vector<Tensor> ComputeMany(std::vector<PrimExpr> shape,
                                const std::function<std::vector<PrimExpr>(const Indices&)>& fn, std::string name,
                                std::vector<std::string> axis_names, ir::Attrs attrs) {
  OperationNode operation;
  operation.name = name;
  operation.attrs = std::move(attrs);
  Indices indices;
  for (size_t d = 0; d < shape.size(); ++d) {
    std::string axis_name = d < axis_names.size() ? axis_names[d] : "i" + std::to_string(d);
    const PrimVar var = ir::MakePrimVar(std::move(axis_name), shape[d]->dtype);
    operation.axes.push_back(
        Make<ir::IterVarNode>(ir::Range{ir::IntImm(shape[d]->dtype, 0), shape[d]}, var, IterType::kSpatial));
    indices.push_back(var);
  }
  operation.bodies = fn(indices);
  INGOT_CHECK(!operation.bodies.empty(), "a stage computes at least one tensor");
  const Operation made = Make<OperationNode>(std::move(operation));
  std::vector<Tensor> results;
  for (size_t i = 0; i < made->bodies.size(); ++i) {
    std::string tensor_name = made->bodies.size() == 1 ? name : name + "_v" + std::to_string(i);
    results.emplace_back(
        Make<TensorNode>(std::move(tensor_name), made->bodies[i]->dtype, shape, made, static_cast<int>(i)));
  }
  return results;
}

Tensor Compute(std::vector<PrimExpr> shape, const ComputeFn& fn, std::string name, std::vector<std::string> axis_names,
               ir::Attrs attrs) {
  return ComputeMany(
      std::move(shape), [&](const Indices& indices) { return std::vector<PrimExpr>{fn(indices)}; }, std::move(name),
      std::move(axis_names), std::move(attrs))[0];
}

IterVar ReduceAxis(ir::Range domain, std::string name) {
  const PrimVar var = ir::MakePrimVar(std::move(name), domain.extent->dtype);
  return Make<ir::IterVarNode>(std::move(domain), var, IterType::kReduce);
}
IterVar ReduceAxis(PrimExpr extent, std::string name) {
  const PrimExpr zero = ir::IntImm(extent->dtype, 0);
  return ReduceAxis(ir::Range{zero, std::move(extent)}, std::move(name));
}

std::vector<PrimExpr> Reduce(std::vector<PrimExpr> sources, std::vector<IterVar> axes, const CombineFn& combine,
                             std::vector<PrimExpr> identity) {
  INGOT_CHECK(!axes.empty() && sources.size() == identity.size(), "a reduction");
  ir::CommReducer reducer;
  Indices lhs;
  Indices rhs;
  for (size_t i = 0; i < sources.size(); ++i) {
    reducer.lhs.push_back(ir::MakePrimVar("x" + std::to_string(i), sources[i]->dtype));
    reducer.rhs.push_back(ir::MakePrimVar("y" + std::to_string(i), sources[i]->dtype));
    lhs.push_back(reducer.lhs.back());
    rhs.push_back(reducer.rhs.back());
  }
  reducer.result = combine(lhs, rhs);
  reducer.identity = std::move(identity);
  INGOT_CHECK(reducer.result.size() == sources.size(), "a combiner gives one value per source");
  std::vector<PrimExpr> results;
  for (size_t i = 0; i < sources.size(); ++i) {
    results.push_back(
        Make<ir::ReduceNode>(reducer, sources, axes, ir::BoolImm(true), static_cast<int>(i), std::vector<PrimExpr>{}));
  }
  return results;
}

namespace {
PrimExpr ReduceOne(PrimExpr source, std::vector<IterVar> axes, ir::BinaryOp op, PrimExpr identity) {
  const auto combine = [op](const Indices& lhs, const Indices& rhs) {
    return std::vector<PrimExpr>{ir::MakeBinary(op, lhs[0], rhs[0])};
  };
  return Reduce({std::move(source)}, std::move(axes), combine, {std::move(identity)})[0];
}
}  // namespace

PrimExpr Sum(PrimExpr source, std::vector<IterVar> axes) {
  const PrimExpr identity = ir::MakeConst(source->dtype, 0);
  return ReduceOne(std::move(source), std::move(axes), ir::BinaryOp::kAdd, identity);
}
PrimExpr Prod(PrimExpr source, std::vector<IterVar> axes) {
  const PrimExpr identity = ir::MakeConst(source->dtype, 1);
  return ReduceOne(std::move(source), std::move(axes), ir::BinaryOp::kMul, identity);
}
PrimExpr ReduceMax(PrimExpr source, std::vector<IterVar> axes) {
  const PrimExpr identity = ir::MinValue(source->dtype);
  return ReduceOne(std::move(source), std::move(axes), ir::BinaryOp::kMax, identity);
}
PrimExpr ReduceMin(PrimExpr source, std::vector<IterVar> axes) {
  const PrimExpr identity = ir::MaxValue(source->dtype);
  return ReduceOne(std::move(source), std::move(axes), ir::BinaryOp::kMin, identity);
}

}  // namespace ingot::te
