// What visitors and mutators do with the fields that a node lists (node.h, "Fields"): VisitFields visits the children
// of a node, MutateFields derives the node from the children that became others. For the .cc files of this folder:
// these templates are compiled once per kind of node.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"

namespace ingot::ir {

// ---- From a kind to its node: f is called with the node as what it is.

template <typename F>
decltype(auto) Dispatch(const PrimExprNode& node, F&& f) {
  switch (node.kind) {
#define INGOT_PRIM_NODE(enumerator, Node)               \
  case PrimKind::enumerator:                            \
    static_assert(Node::kKind == PrimKind::enumerator); \
    return f(static_cast<const Node&>(node));
#include "compiler/ir/nodes.def"
  }
  INGOT_UNREACHABLE("PrimKind");
}
template <typename F>
decltype(auto) Dispatch(const StmtNode& node, F&& f) {
  switch (node.kind) {
#define INGOT_STMT_NODE(enumerator, Node)               \
  case StmtKind::enumerator:                            \
    static_assert(Node::kKind == StmtKind::enumerator); \
    return f(static_cast<const Node&>(node));
#include "compiler/ir/nodes.def"
  }
  INGOT_UNREACHABLE("StmtKind");
}
template <typename F>
decltype(auto) Dispatch(const TypeNode& node, F&& f) {
  switch (node.kind) {
#define INGOT_TYPE_NODE(enumerator, Node)               \
  case TypeKind::enumerator:                            \
    static_assert(Node::kKind == TypeKind::enumerator); \
    return f(static_cast<const Node&>(node));
#include "compiler/ir/nodes.def"
  }
  INGOT_UNREACHABLE("TypeKind");
}
template <typename F>
decltype(auto) Dispatch(const ExprNode& node, F&& f) {
  switch (node.kind) {
#define INGOT_EXPR_NODE(enumerator, Node)               \
  case ExprKind::enumerator:                            \
    static_assert(Node::kKind == ExprKind::enumerator); \
    return f(static_cast<const Node&>(node));
#include "compiler/ir/nodes.def"
  }
  INGOT_UNREACHABLE("ExprKind");
}

// ---- Fields.

// Structs that list fields: nodes, and parts of nodes such as a BufferRegion.
template <typename T>
concept HasFields = requires(int walk) {
  T::Fields(walk);
};

template <typename T, typename F>
constexpr NodeField<FieldRole::kPart, T, F> AsField(F T::*member) {
  return {member};
}
template <FieldRole role, typename T, typename F>
constexpr NodeField<role, T, F> AsField(NodeField<role, T, F> field) {
  return field;
}
// Calls f with each NodeField of T, in order.
template <HasFields T, typename F>
constexpr void ForEachField(F&& f) {
  T::Fields([&f](auto... fields) { (f(AsField(fields)), ...); });
}

template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// What visitors and mutators leave out: plain data, and references to what their level has no method for.
template <typename F>
inline constexpr bool kIsLeftOut = std::is_arithmetic_v<F> || std::is_enum_v<F>;
template <typename T>
inline constexpr bool kIsLeftOut<Ref<T>> = true;
template <>
inline constexpr bool kIsLeftOut<std::string> = true;
template <>
inline constexpr bool kIsLeftOut<DataType> = true;
template <>
inline constexpr bool kIsLeftOut<Attrs> = true;
template <>
inline constexpr bool kIsLeftOut<CommReducer> = true;
template <>
inline constexpr bool kIsLeftOut<Binding> = true;
template <>
inline constexpr bool kIsLeftOut<std::shared_ptr<const ConstantData>> = true;

// ---- Visitors.

inline void VisitChild(PrimVisitor& visitor, const PrimExpr& expr) { visitor.VisitPrim(expr); }
inline void VisitChild(StmtVisitor& visitor, const Stmt& stmt) { visitor.VisitStmt(stmt); }
inline void VisitChild(StmtVisitor& visitor, const Block& block) { visitor.VisitStmt(block); }
inline void VisitChild(ExprVisitor& visitor, const Expr& expr) { visitor.VisitExpr(expr); }
inline void VisitChild(ExprVisitor& visitor, const SeqExpr& expr) { visitor.VisitExpr(expr); }
inline void VisitChild(ExprVisitor& visitor, const BindingBlock& block) { visitor.VisitBlock(block); }

template <typename Visitor, HasFields T>
void VisitFields(Visitor& visitor, const T& node);

template <typename Visitor, typename F>
void VisitField(Visitor& visitor, const F& field) {
  if constexpr (requires { VisitChild(visitor, field); }) {
    VisitChild(visitor, field);
  } else if constexpr (kIsVector<F>) {
    for (const auto& item : field) VisitField(visitor, item);
  } else if constexpr (kIsOptional<F>) {
    if (field.has_value()) VisitField(visitor, *field);
  } else if constexpr (std::is_same_v<F, AttrValue>) {
    if (const auto* expr = field.template get<PrimExpr>()) VisitField(visitor, *expr);
  } else if constexpr (HasFields<F>) {
    VisitFields(visitor, field);
  } else {
    static_assert(kIsLeftOut<F>, "a type of field that VisitField does not know");
  }
}

// Of what a node defines, variables are shown to the visitor, and domains of iteration variables are visited.
template <typename Visitor, typename F>
void VisitDefinition(Visitor& visitor, const F& field) {
  if constexpr (std::is_same_v<F, PrimVar> && std::is_base_of_v<PrimVisitor, Visitor>) {
    static_cast<PrimVisitor&>(visitor).VisitDefinition(field);
  } else if constexpr (std::is_same_v<F, IterVar>) {
    VisitFields(visitor, *field);
  } else if constexpr (kIsVector<F>) {
    for (const auto& item : field) VisitDefinition(visitor, item);
  }
}

template <typename Visitor, HasFields T>
void VisitFields(Visitor& visitor, const T& node) {
  ForEachField<T>([&](auto field) {
    const auto& value = node.*field.member;
    if constexpr (field.kRole == FieldRole::kDefines) {
      VisitDefinition(visitor, value);
    } else if constexpr (field.kRole == FieldRole::kOptional) {
      if (value) VisitField(visitor, value);
    } else if constexpr (field.kRole != FieldRole::kIdentity) {
      VisitField(visitor, value);
    }
  });
}

// ---- Mutators. A field that did not change is none: nothing is copied before something changes.

template <typename T>
std::optional<T> IfChanged(const T& old, T mutated) {
  if (mutated.same_as(old)) return std::nullopt;
  return mutated;
}
inline std::optional<PrimExpr> MutateChild(PrimMutator& mutator, const PrimExpr& expr) {
  return IfChanged(expr, mutator.MutatePrim(expr));
}
inline std::optional<Buffer> MutateChild(PrimMutator& mutator, const Buffer& buffer) {
  return IfChanged(buffer, mutator.MutateBuffer(buffer));
}
inline std::optional<Stmt> MutateChild(StmtMutator& mutator, const Stmt& stmt) {
  return IfChanged(stmt, mutator.MutateStmt(stmt));
}
inline std::optional<Block> MutateChild(StmtMutator& mutator, const Block& block) {
  return IfChanged(block, Downcast<BlockNode>(mutator.MutateStmt(block)));
}
inline std::optional<Expr> MutateChild(ExprMutator& mutator, const Expr& expr) {
  return IfChanged(expr, mutator.MutateExpr(expr));
}
inline std::optional<SeqExpr> MutateChild(ExprMutator& mutator, const SeqExpr& expr) {
  return IfChanged(expr, Downcast<SeqExprNode>(mutator.MutateExpr(expr)));
}

template <typename Mutator, HasFields T>
std::optional<T> MutateFields(Mutator& mutator, const T& node);

// The list after f, which gives an item anew or none.
template <typename T, typename F>
std::optional<std::vector<T>> MutateItems(const std::vector<T>& items, F&& f) {
  std::optional<std::vector<T>> changed;
  for (size_t i = 0; i < items.size(); ++i) {
    std::optional<T> item = f(items[i]);
    if (!item) continue;
    if (!changed) changed = items;
    (*changed)[i] = std::move(*item);
  }
  return changed;
}

template <typename Mutator, typename F>
std::optional<F> MutateField(Mutator& mutator, const F& field) {
  if constexpr (requires { MutateChild(mutator, field); }) {
    return MutateChild(mutator, field);
  } else if constexpr (kIsVector<F>) {
    return MutateItems(field, [&](const auto& item) { return MutateField(mutator, item); });
  } else if constexpr (kIsOptional<F>) {
    if (!field.has_value()) return std::nullopt;
    auto changed = MutateField(mutator, *field);
    return changed ? std::optional<F>(std::in_place, std::move(*changed)) : std::nullopt;
  } else if constexpr (std::is_same_v<F, AttrValue>) {
    const auto* expr = field.template get<PrimExpr>();
    if (expr == nullptr) return std::nullopt;
    auto changed = MutateField(mutator, *expr);
    return changed ? std::optional<F>(std::in_place, std::move(*changed)) : std::nullopt;
  } else if constexpr (HasFields<F>) {
    return MutateFields(mutator, field);
  } else {
    static_assert(kIsLeftOut<F>, "a type of field that MutateField does not know");
    return std::nullopt;
  }
}

template <typename Mutator, typename F>
std::optional<F> MutateDefinition(Mutator& mutator, const F& field) {
  if constexpr (std::is_same_v<F, IterVar>) {
    std::optional<IterVarNode> changed = MutateFields(mutator, *field);
    if (!changed) return std::nullopt;
    return Make<IterVarNode>(std::move(*changed));
  } else if constexpr (std::is_same_v<F, PrimVar> && std::is_base_of_v<PrimMutator, Mutator>) {
    return IfChanged(field, static_cast<PrimMutator&>(mutator).DefineVar(field));
  } else if constexpr (std::is_same_v<F, Buffer> && std::is_base_of_v<PrimMutator, Mutator>) {
    return IfChanged(field, static_cast<PrimMutator&>(mutator).DefineBuffer(field));
  } else if constexpr (kIsVector<F>) {
    return MutateItems(field, [&](const auto& item) { return MutateDefinition(mutator, item); });
  } else {
    return std::nullopt;
  }
}

template <typename Mutator, HasFields T>
std::optional<T> MutateFields(Mutator& mutator, const T& node) {
  std::optional<T> changed;
  ForEachField<T>([&](auto field) {
    const auto& old = node.*field.member;
    const auto update = [&](auto value) {
      if (!value) return;
      if (!changed) changed.emplace(node);
      (*changed).*field.member = std::move(*value);
    };
    if constexpr (field.kRole == FieldRole::kDefines) {
      update(MutateDefinition(mutator, old));
    } else if constexpr (field.kRole == FieldRole::kOptional) {
      if (old) update(MutateField(mutator, old));
    } else if constexpr (field.kRole != FieldRole::kIdentity) {
      update(MutateField(mutator, old));
    }
  });
  return changed;
}

}  // namespace ingot::ir
