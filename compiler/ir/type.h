// Types of graph expressions (Relax's "struct info"): Object, Prim, Shape, Tensor, Tuple and Callable. Shapes are
// symbolic: a dimension is an integer PrimExpr. What is unknown is absent, never guessed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/node.h"
#include "compiler/ir/prim_expr.h"

namespace ingot::ir {

enum class TypeKind : uint8_t {
#define INGOT_TYPE_NODE(enumerator, Node) enumerator,
#include "compiler/ir/nodes.def"
};

struct TypeNode : Node {
  INGOT_NODE_MEMBERS(TypeNode);
  TypeKind kind;

 protected:
  explicit TypeNode(TypeKind k) : kind(k) {}
};
using Type = Ref<TypeNode>;

struct ObjectTypeNode : TypeNode {
  static constexpr TypeKind kKind = TypeKind::kObject;
  INGOT_NODE_MEMBERS(ObjectTypeNode);
  ObjectTypeNode() : TypeNode(kKind) {}
  static constexpr void Fields(auto&& walk) { walk(); }
};
// A scalar; with a value when it is known as an expression (R.Prim(value="n")).
struct PrimTypeNode : TypeNode {
  static constexpr TypeKind kKind = TypeKind::kPrim;
  INGOT_NODE_MEMBERS(PrimTypeNode);
  DataType dtype;
  PrimExpr value;  // null: unknown
  explicit PrimTypeNode(DataType t) : TypeNode(kKind), dtype(t) {}
  explicit PrimTypeNode(PrimExpr v) : TypeNode(kKind), dtype(v->dtype), value(std::move(v)) {}
  static constexpr void Fields(auto&& walk) { walk(&PrimTypeNode::dtype, Optional(&PrimTypeNode::value)); }
};
struct ShapeTypeNode : TypeNode {
  static constexpr TypeKind kKind = TypeKind::kShape;
  INGOT_NODE_MEMBERS(ShapeTypeNode);
  int rank;                                   // -1: unknown
  std::optional<std::vector<PrimExpr>> dims;  // absent: only the rank is known
  explicit ShapeTypeNode(int r) : TypeNode(kKind), rank(r) {}
  explicit ShapeTypeNode(std::vector<PrimExpr> d)
      : TypeNode(kKind), rank(static_cast<int>(d.size())), dims(std::move(d)) {}
  static constexpr void Fields(auto&& walk) { walk(&ShapeTypeNode::rank, &ShapeTypeNode::dims); }
};
struct TensorTypeNode : TypeNode {
  static constexpr TypeKind kKind = TypeKind::kTensor;
  INGOT_NODE_MEMBERS(TensorTypeNode);
  std::optional<DataType> dtype;              // absent: unknown
  int rank;                                   // -1: unknown
  std::optional<std::vector<PrimExpr>> dims;  // absent: only the rank is known
  std::string virtual_device;                 // "cuda:0" and the like; empty: the module's default
  TensorTypeNode(std::vector<PrimExpr> d, std::optional<DataType> t, std::string vdevice = "")
      : TypeNode(kKind),
        dtype(t),
        rank(static_cast<int>(d.size())),
        dims(std::move(d)),
        virtual_device(std::move(vdevice)) {}
  TensorTypeNode(int r, std::optional<DataType> t, std::string vdevice = "")
      : TypeNode(kKind), dtype(t), rank(r), virtual_device(std::move(vdevice)) {}
  static constexpr void Fields(auto&& walk) {
    walk(&TensorTypeNode::dtype, &TensorTypeNode::virtual_device, &TensorTypeNode::rank, &TensorTypeNode::dims);
  }
};
using TensorType = Ref<TensorTypeNode>;
struct TupleTypeNode : TypeNode {
  static constexpr TypeKind kKind = TypeKind::kTuple;
  INGOT_NODE_MEMBERS(TupleTypeNode);
  std::vector<Type> fields;
  explicit TupleTypeNode(std::vector<Type> f) : TypeNode(kKind), fields(std::move(f)) {}
  static constexpr void Fields(auto&& walk) { walk(&TupleTypeNode::fields); }
};
struct CallableTypeNode : TypeNode {
  static constexpr TypeKind kKind = TypeKind::kCallable;
  INGOT_NODE_MEMBERS(CallableTypeNode);
  std::optional<std::vector<Type>> params;  // absent: any
  Type result;
  bool is_pure;
  CallableTypeNode(std::optional<std::vector<Type>> p, Type r, bool pure)
      : TypeNode(kKind), params(std::move(p)), result(std::move(r)), is_pure(pure) {}
  static constexpr void Fields(auto&& walk) {
    walk(BindsSymbols(&CallableTypeNode::params), &CallableTypeNode::is_pure, &CallableTypeNode::result);
  }
};

}  // namespace ingot::ir

// Compiled in one file instead of wherever they are used.
extern template class std::vector<ingot::ir::Type>;
