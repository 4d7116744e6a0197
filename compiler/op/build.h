// What the rows' implementations are written with: the arguments of a call as placeholders of a tensor expression, and
// the PrimFunc over them. A PrimFunc has symbolic variables of its own, one for each of the call's.
#pragma once

#include <functional>
#include <vector>

#include "compiler/ir/visitor.h"
#include "compiler/op/infer.h"
#include "compiler/op/registry.h"
#include "compiler/te/tensor.h"

namespace ingot::op {

class TeArgs {
 public:
  // Every input is a tensor of known shape and dtype, or a status says which one is not.
  static Result<TeArgs> Make(const ir::Call& call);

  const ir::Call& call() const { return call_; }
  const std::vector<te::Tensor>& inputs() const { return inputs_; }
  const te::Tensor& input(size_t i) const { return inputs_.at(i); }
  // The result's dims and dtype, in the PrimFunc's variables.
  Dims out_dims() const;
  DataType out_dtype() const;
  // Argument i of the call, a scalar, in the PrimFunc's variables.
  ir::PrimExpr scalar(size_t i) const;
  // The PrimFunc's own variables for UnboundShapeVars, in order.
  const std::vector<ir::PrimVar>& scalars() const { return scalars_; }

 private:
  explicit TeArgs(ir::Call call) : call_(std::move(call)) {}
  ir::Call call_;
  ir::PrimVarMap own_;
  std::vector<te::Tensor> inputs_;
  std::vector<ir::PrimVar> scalars_;
};

// The PrimFunc of the tensor that define(args) computes.
Result<ir::PrimFunc> BuildFromTe(const ir::Call& call, const std::function<te::Tensor(const TeArgs&)>& define);

// An Implementation that always applies and whose cost is an operation per element of the result. define is a plain
// function.
template <te::Tensor (*define)(const TeArgs&)>
Result<ir::PrimFunc> Build(const ir::Call& call, const Target&) {
  return BuildFromTe(call, define);
}
double ElementsOfResult(const ir::Call& call, const Target& target);
bool Always(const ir::Call& call, const Target& target);
template <te::Tensor (*define)(const TeArgs&)>
Implementation TeImplementation(const char* name = "te") {
  return {name, Always, ElementsOfResult, {}, Build<define>};
}

// The number of elements that a type has; symbolic dims count as 1.
double EstimateElements(const ir::Type& type);

}  // namespace ingot::op
