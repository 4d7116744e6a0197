// Helpers with which operators' implementations are written: the arguments of a call as placeholders of a tensor
// expression, and the PrimFunc over them. A PrimFunc has symbolic variables of its own, one for each of the call's.
#pragma once

#include <functional>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/infer.h"
#include "compiler/op/registry.h"
#include "compiler/te/tensor.h"

namespace ingot::op {

// The inputs, results and scalars of a call, as its definition sees them.
class TeArgs {
 public:
  // A placeholder for each of InputTensors. An error unless every input and result has a known shape and dtype.
  static Result<TeArgs> Make(const ir::Call& call);
  // The same over tensors of a larger expression, one for each of InputTensors, in their symbolic variables.
  static Result<TeArgs> Over(const ir::Call& call, std::vector<te::Tensor> inputs);

  const ir::Call& call() const { return call_; }
  const std::vector<te::Tensor>& inputs() const { return inputs_; }
  const te::Tensor& input(size_t i) const { return inputs_.at(i); }
  // A result's dims and dtype, in the PrimFunc's variables; several results are the fields of a tuple.
  size_t num_outputs() const { return outputs_.size(); }
  Dims out_dims(size_t i = 0) const;
  DataType out_dtype(size_t i = 0) const;
  // Argument i of the call, a scalar, in the PrimFunc's variables.
  ir::PrimExpr scalar(size_t i) const;
  // An expression over the call's symbolic variables in the PrimFunc's.
  ir::PrimExpr Own(const ir::PrimExpr& expr) const { return ir::Substitute(expr, own_); }
  // The PrimFunc's own variables in place of UnboundShapeVars, in order.
  const std::vector<ir::PrimVar>& scalars() const { return scalars_; }

 private:
  explicit TeArgs(ir::Call call) : call_(std::move(call)) {}
  Status FindOutputs();
  ir::Call call_;
  ir::PrimVarMap own_;
  std::vector<te::Tensor> inputs_;
  std::vector<ir::TensorType> outputs_;
  std::vector<ir::PrimVar> scalars_;
};

// The PrimFunc of the tensor that define(args) computes, or of several.
Result<ir::PrimFunc> BuildFromTe(const ir::Call& call, const std::function<te::Tensor(const TeArgs&)>& define);
Result<ir::PrimFunc> BuildManyFromTe(const ir::Call& call,
                                     const std::function<std::vector<te::Tensor>(const TeArgs&)>& define);
// The PrimFunc of the statements of define(args, inputs, outputs), for operators that no tensor expression
// describes: scans, scatters, sorts. Outputs have the names given, or "out".
using Buffers = std::vector<ir::Buffer>;
struct Statements {
  std::vector<ir::Stmt> nests;                         // in order
  Buffers workspace;                                   // that they share
  Statements(std::vector<ir::Stmt> n, Buffers w = {})  // NOLINT: implicit on purpose
      : nests(std::move(n)), workspace(std::move(w)) {}
};
Result<ir::PrimFunc> BuildFromStatements(
    const ir::Call& call,
    const std::function<Statements(const TeArgs& args, const Buffers& inputs, const Buffers& outputs)>& define,
    const std::vector<std::string>& output_names = {});

// An Implementation that always applies and whose cost is an operation per element of the result. define is a plain
// function.
template <te::Tensor (*define)(const TeArgs&)>
inline constexpr Builder Build = {
    [](const ir::Call& call, const Target&) { return BuildFromTe(call, define); },
    [](const TeArgs& args) { return std::vector<te::Tensor>{define(args)}; },
};
// The same, fused by a class other than that of its formula.
Result<ir::PrimFunc> OfFusionClass(const ir::PrimFunc& function, FusionClass fusion);
template <FusionClass fusion, te::Tensor (*define)(const TeArgs&)>
inline constexpr Builder BuildAs = {[](const ir::Call& call, const Target&) -> Result<ir::PrimFunc> {
  INGOT_ASSIGN_OR_RETURN(const ir::PrimFunc function, BuildFromTe(call, define));
  return OfFusionClass(function, fusion);
}};
template <std::vector<te::Tensor> (*define)(const TeArgs&)>
inline constexpr Builder BuildMany = {
    [](const ir::Call& call, const Target&) { return BuildManyFromTe(call, define); },
    define,
};
template <Statements (*define)(const TeArgs&, const Buffers&, const Buffers&)>
inline constexpr Builder BuildStatements = {
    [](const ir::Call& call, const Target&) { return BuildFromStatements(call, define); },
};
double ElementsOfResult(const ir::Call& call, const Target& target);
bool Always(const ir::Call& call, const Target& target);
template <te::Tensor (*define)(const TeArgs&)>
Implementation TeImplementation(const char* name = "te") {
  return {name, Always, ElementsOfResult, {}, Build<define>};
}

// The number of elements of a tensor type, or of all fields of a tuple; symbolic dims count as 1.
double EstimateElements(const ir::Type& type);
// Costs of implementations: the elements n of the first argument, and those of sorting them, n log2(n).
double InputElements(const ir::Call& call, const Target& target);
double SortCost(const ir::Call& call, const Target& target);

}  // namespace ingot::op
