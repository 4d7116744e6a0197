// Tensor expressions: a tensor is a placeholder, or what an index expression computes from other tensors. Operator
// definitions are written with them; CreatePrimFunc turns a graph of tensors into the unscheduled PrimFunc (one block
// per stage). Shapes may be symbolic. Nothing here schedules or inlines.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/attrs.h"
#include "compiler/ir/expr.h"
#include "compiler/ir/prim_expr.h"

namespace ingot::te {

// An operation computes tensors. Placeholders have neither axes nor bodies. Several bodies (all of one shape) are the
// results of one reduction by a custom combiner over several values, such as arg-max.
struct OperationNode : ir::Node {
  std::string name;                  // of the stage: the block's name
  std::vector<ir::IterVar> axes;     // spatial: one per dimension
  std::vector<ir::PrimExpr> bodies;  // one per result; a ReduceNode must be a whole body
  ir::Attrs attrs;                   // become the block's annotations
  bool is_placeholder() const { return bodies.empty(); }
};
using Operation = ir::Ref<OperationNode>;

struct TensorNode : ir::Node {
  std::string name;
  DataType dtype;
  std::vector<ir::PrimExpr> shape;
  Operation operation;  // the producer
  int value_index;      // which of its results
  TensorNode(std::string n, DataType t, std::vector<ir::PrimExpr> s, Operation o, int index)
      : name(std::move(n)), dtype(t), shape(std::move(s)), operation(std::move(o)), value_index(index) {}
};

class Tensor : public ir::Ref<TensorNode> {
 public:
  using ir::Ref<TensorNode>::Ref;
  Tensor() = default;
  Tensor(ir::Ref<TensorNode> ref) : ir::Ref<TensorNode>(std::move(ref)) {}  // NOLINT: implicit on purpose
  int rank() const { return static_cast<int>(get()->shape.size()); }
  const std::vector<ir::PrimExpr>& shape() const { return get()->shape; }
  DataType dtype() const { return get()->dtype; }
  // The element at one index per dimension (INGOT_CHECKed).
  ir::PrimExpr operator()(std::vector<ir::PrimExpr> indices) const;
  template <typename... Indices>
  requires(sizeof...(Indices) > 0 && (std::is_convertible_v<Indices, ir::PrimExpr> && ...)) ir::PrimExpr operator()(
      const Indices&... indices) const {
    return (*this)(std::vector<ir::PrimExpr>{ir::PrimExpr(indices)...});
  }
};

Tensor Placeholder(std::vector<ir::PrimExpr> shape, DataType dtype, std::string name);

// The indices of the element that is computed, as expressions.
using Indices = std::vector<ir::PrimExpr>;
using ComputeFn = std::function<ir::PrimExpr(const Indices&)>;
// shape[i] = fn(i). Axes are named axis_names, or i0, i1, ... when fewer are given.
Tensor Compute(std::vector<ir::PrimExpr> shape, const ComputeFn& fn, std::string name = "compute",
               std::vector<std::string> axis_names = {}, ir::Attrs attrs = {});
// Several results of equal shape from one stage; fn returns the values of one multi-value Reduce, in order.
std::vector<Tensor> ComputeMany(std::vector<ir::PrimExpr> shape,
                                const std::function<std::vector<ir::PrimExpr>(const Indices&)>& fn,
                                std::string name = "compute", std::vector<std::string> axis_names = {},
                                ir::Attrs attrs = {});

// Reduction over [min, min + extent); use axis->var in the source expression.
ir::IterVar ReduceAxis(ir::Range domain, std::string name);
ir::IterVar ReduceAxis(ir::PrimExpr extent, std::string name);
// A reduction must be the whole body of a Compute. The identity is 0, 1, or the least or greatest value of the dtype
// (for floats the lowest or greatest finite one, as in TVM).
ir::PrimExpr Sum(ir::PrimExpr source, std::vector<ir::IterVar> axes);
ir::PrimExpr Prod(ir::PrimExpr source, std::vector<ir::IterVar> axes);
ir::PrimExpr ReduceMax(ir::PrimExpr source, std::vector<ir::IterVar> axes);
ir::PrimExpr ReduceMin(ir::PrimExpr source, std::vector<ir::IterVar> axes);
// Any commutative combiner over one or several values: combine(lhs, rhs) gives the new values, identity(dtypes) the
// first ones. One result per source.
using CombineFn = std::function<std::vector<ir::PrimExpr>(const Indices& lhs, const Indices& rhs)>;
std::vector<ir::PrimExpr> Reduce(std::vector<ir::PrimExpr> sources, std::vector<ir::IterVar> axes,
                                 const CombineFn& combine, std::vector<ir::PrimExpr> identity);

// The function over args in order (placeholders and results; results last by convention): a root block with one loop
// nest and block per stage, in order of dependence; intermediates are allocated in the root. Symbolic variables that
// are not by themselves a dimension of a buffer must be among scalars, which become scalar parameters after the
// buffers. An output that is a placeholder is a broken invariant.
ir::PrimFunc CreatePrimFunc(std::span<const Tensor> args, std::vector<ir::PrimVar> scalars = {});
inline ir::PrimFunc CreatePrimFunc(std::initializer_list<Tensor> args, std::vector<ir::PrimVar> scalars = {}) {
  return CreatePrimFunc(std::span<const Tensor>(args.begin(), args.size()), std::move(scalars));
}

}  // namespace ingot::te
