// Makes the calls of a composed operator one after the other. The first one that fails ends the composition: what is
// made of its result is nothing, and Take gives the error.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/op/fold.h"
#include "compiler/op/registry.h"
#include "compiler/script/composite_operators.h"

namespace ingot::script {

class CompositeMaker {
 public:
  explicit CompositeMaker(const BindValue& bind) : bind_(bind) {}

  ir::Expr operator()(std::string_view op, std::vector<ir::Expr> args, ir::Attrs attrs = {}) {
    for (const ir::Expr& arg : args) {
      if (arg == nullptr) return Fail("an argument is missing");
    }
    if (!status_.ok()) return nullptr;
    Result<ir::Call> made = op::MakeCall(op, std::move(args), std::move(attrs));
    if (made.ok()) return bind_(*std::move(made));
    status_ = std::move(made).status();
    return nullptr;
  }
  std::nullptr_t Fail(std::string message) {
    if (status_.ok()) status_ = Status(StatusCode::kUnsupportedModel, std::move(message));
    return nullptr;
  }
  Result<ir::Expr> Take(ir::Expr value) {
    if (!status_.ok()) return status_;
    return value;
  }

  // Known dimensions and the dtype of a tensor; empty after a failure.
  std::vector<ir::PrimExpr> Dims(const ir::Expr& x) {
    const auto* tensor = x == nullptr ? nullptr : ir::As<ir::TensorTypeNode>(x->type);
    if (tensor != nullptr && tensor->dims) return *tensor->dims;
    Fail("expected a tensor of known dimensions");
    return {};
  }
  DataType DType(const ir::Expr& x) {
    const auto* tensor = x == nullptr ? nullptr : ir::As<ir::TensorTypeNode>(x->type);
    if (tensor != nullptr && tensor->dtype) return *tensor->dtype;
    Fail("expected a tensor of known dtype");
    return DataType::Float(32);
  }
  int64_t Constant(const ir::PrimExpr& dim, const char* what) {
    const std::optional<int64_t> value = dim == nullptr ? std::nullopt : ir::AsConstInt(dim);
    if (!value) Fail(std::string(what) + ": expected a number, not a symbolic dimension");
    return value.value_or(1);
  }
  int64_t Axis(int64_t axis, size_t rank) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) Fail("axis: out of range");
    return axis < 0 || axis >= static_cast<int64_t>(rank) ? 0 : axis;
  }

  static ir::Expr Shape(std::vector<ir::PrimExpr> dims) { return ir::Make<ir::ShapeExprNode>(std::move(dims)); }
  static ir::Expr Prim(ir::PrimExpr value) { return ir::Make<ir::PrimValueNode>(std::move(value)); }
  static ir::Expr Number(double value, DataType dtype) { return op::NumberConstant(value, dtype); }
  static ir::Expr Tuple(std::vector<ir::Expr> fields) {
    std::vector<ir::Type> types;
    for (const ir::Expr& field : fields) {
      if (field == nullptr) return nullptr;
      types.push_back(field->type);
    }
    return ir::Make<ir::TupleNode>(std::move(fields), ir::Make<ir::TupleTypeNode>(std::move(types)));
  }

  // Short forms of frequent calls.
  ir::Expr Reshape(const ir::Expr& x, std::vector<ir::PrimExpr> dims) {
    return (*this)("reshape", {x, Shape(std::move(dims))});
  }
  ir::Expr Broadcast(const ir::Expr& x, std::vector<ir::PrimExpr> dims) {
    return (*this)("broadcast_to", {x, Shape(std::move(dims))});
  }
  ir::Expr Cast(const ir::Expr& x, DataType dtype) {
    return DType(x) == dtype ? x : (*this)("astype", {x}, {{"dtype", dtype}});
  }
  ir::Expr Permute(const ir::Expr& x, const std::vector<int64_t>& axes) {
    return (*this)("permute_dims", {x}, {{"axes", ir::AttrValue::Ints(axes)}});
  }
  ir::Expr Expand(const ir::Expr& x, const std::vector<int64_t>& axes) {
    return (*this)("expand_dims", {x}, {{"axis", ir::AttrValue::Ints(axes)}});
  }
  ir::Expr Sum(const ir::Expr& x, const std::vector<int64_t>& axes, bool keepdims = false) {
    return (*this)("sum", {x}, {{"axis", ir::AttrValue::Ints(axes)}, {"keepdims", keepdims}});
  }
  ir::Expr SumAll(const ir::Expr& x) { return (*this)("sum", {x}); }
  ir::Expr Zeros(std::vector<ir::PrimExpr> dims, DataType dtype) {
    return (*this)("zeros", {Shape(std::move(dims))}, {{"dtype", dtype}});
  }
  // begin, begin + step, ... before end, in float32 or int64
  ir::Expr Range(ir::PrimExpr begin, ir::PrimExpr end, ir::PrimExpr step, DataType dtype) {
    return (*this)("arange", {Prim(std::move(begin)), Prim(std::move(end)), Prim(std::move(step))}, {{"dtype", dtype}});
  }
  // x[begin:end] of one axis.
  ir::Expr Slice(const ir::Expr& x, int64_t axis, ir::PrimExpr begin, ir::PrimExpr end) {
    const auto one = [](ir::PrimExpr value) { return Tuple({Prim(std::move(value))}); };
    return (*this)("strided_slice", {x, one(ir::Int64(axis)), one(std::move(begin)), one(std::move(end))});
  }

 private:
  const BindValue& bind_;
  Status status_;
};

}  // namespace ingot::script
