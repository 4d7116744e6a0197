// Dispatch and the default methods of the mutators of both levels, made of the list of kinds (nodes.def) and of the
// nodes' lists of fields: they rebuild the nodes below which something changed and return the very same node elsewhere.
// What is particular to a kind is how a changed node of it is built again.
#include <iterator>

#include "compiler/ir/field_walk.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"

namespace ingot::ir {
namespace {

// ---- A node that changed, built again.

template <HasFields T>
consteval bool HasOperands() {
  bool result = false;
  ForEachField<T>([&result](auto field) {
    using F = std::remove_reference_t<decltype(std::declval<T>().*field.member)>;
    result = result || std::is_same_v<F, PrimExpr> || std::is_same_v<F, std::vector<PrimExpr>> ||
             std::is_same_v<F, Buffer> || std::is_same_v<F, std::vector<IterVar>>;
  });
  return result;
}

// Scalar expressions go through the folding builders or their constructors, since the dtype follows from the operands.
template <typename T>
PrimExpr RebuiltPrim(T) {
  static_assert(!HasOperands<T>(), "RebuiltPrim says how a scalar expression is built of new operands");
  INGOT_UNREACHABLE("a changed node without operands");
}
PrimExpr RebuiltPrim(BinaryNode node) { return MakeBinary(node.op, std::move(node.a), std::move(node.b)); }
PrimExpr RebuiltPrim(NotNode node) { return Not(std::move(node.a)); }
PrimExpr RebuiltPrim(SelectNode node) {
  return Select(std::move(node.condition), std::move(node.true_value), std::move(node.false_value));
}
PrimExpr RebuiltPrim(CastNode node) {
  const DataType dtype = node.dtype.with_lanes(node.value->dtype.lanes);
  return Cast(dtype, std::move(node.value));
}
PrimExpr RebuiltPrim(BufferLoadNode node) {
  return Make<BufferLoadNode>(std::move(node.buffer), std::move(node.indices));
}
PrimExpr RebuiltPrim(RampNode node) { return Make<RampNode>(std::move(node.base), std::move(node.stride), node.lanes); }
PrimExpr RebuiltPrim(BroadcastNode node) { return Make<BroadcastNode>(std::move(node.value), node.lanes); }
PrimExpr RebuiltPrim(ShuffleNode node) { return Make<ShuffleNode>(std::move(node.vectors), std::move(node.indices)); }
PrimExpr RebuiltPrim(LetNode node) {
  return Make<LetNode>(std::move(node.var), std::move(node.value), std::move(node.body));
}
PrimExpr RebuiltPrim(PrimCallNode node) {
  if (node.op == Intrinsic::kIfThenElse) return IfThenElse(node.args[0], node.args[1], node.args[2]);
  if (GetIntrinsicRow(node.op).result != IntrinsicRow::kGiven) return CallIntrinsic(node.op, std::move(node.args));
  return Make<PrimCallNode>(node.dtype, node.op, std::move(node.args));
}
PrimExpr RebuiltPrim(ReduceNode node) {
  return Make<ReduceNode>(std::move(node.combiner), std::move(node.source), std::move(node.axes),
                          std::move(node.condition), node.value_index, std::move(node.init));
}
PrimExpr RebuiltPrim(ProducerLoadNode node) {
  return Make<ProducerLoadNode>(node.dtype, std::move(node.producer), std::move(node.indices));
}

// Statements keep their spans.
template <typename T>
Stmt RebuiltStmt(T node) {
  return Make<T>(std::move(node));
}
Stmt RebuiltStmt(SeqNode node) { return MakeSeq(std::move(node.stmts)); }

// Graph expressions keep spans and types; the types of tuples and of their elements follow the operands.
template <typename T>
Expr RebuiltExpr(T node) {
  return Make<T>(std::move(node));
}
Expr RebuiltExpr(TupleNode node) {
  std::vector<Type> types;
  for (const Expr& field : node.fields) types.push_back(field->type);
  if (node.type) node.type = Make<TupleTypeNode>(std::move(types));
  return Make<TupleNode>(std::move(node));
}
Expr RebuiltExpr(TupleGetItemNode node) {
  const auto* type = As<TupleTypeNode>(node.tuple->type);
  if (type != nullptr && static_cast<size_t>(node.index) < type->fields.size()) node.type = type->fields[node.index];
  return Make<TupleGetItemNode>(std::move(node));
}

// ---- Blocks of bindings.

bool SameBindings(const BindingBlock& a, const BindingBlock& b) {
  if (a.is_dataflow != b.is_dataflow || a.bindings.size() != b.bindings.size()) return false;
  for (size_t i = 0; i < a.bindings.size(); ++i) {
    const Binding& x = a.bindings[i];
    const Binding& y = b.bindings[i];
    if (!x.var.same_as(y.var) || !x.value.same_as(y.value) || !x.match_cast.same_as(y.match_cast)) return false;
  }
  return true;
}

// Consecutive blocks that are not dataflow blocks are joined, since the printed text has no boundary between them.
void AppendBlock(std::vector<BindingBlock>& blocks, BindingBlock block) {
  if (block.bindings.empty()) return;
  if (block.is_dataflow || blocks.empty() || blocks.back().is_dataflow) return blocks.push_back(std::move(block));
  std::vector<Binding>& last = blocks.back().bindings;
  last.insert(last.end(), std::make_move_iterator(block.bindings.begin()),
              std::make_move_iterator(block.bindings.end()));
}

}  // namespace

// ---- Tensor level.

PrimExpr PrimMutator::MutatePrim(const PrimExpr& expr) {
  return Dispatch(*expr, [this](const auto& node) { return Mutate(Ref(&node)); });
}
#define INGOT_PRIM_NODE(enumerator, Node)                               \
  PrimExpr PrimMutator::Mutate(const Ref<Node>& node) {                 \
    std::optional<Node> changed = MutateFields(*this, *node);           \
    return changed ? RebuiltPrim(std::move(*changed)) : PrimExpr(node); \
  }
#include "compiler/ir/nodes.def"

Stmt StmtMutator::MutateStmt(const Stmt& stmt) {
  return Dispatch(*stmt, [this](const auto& node) { return Mutate(Ref(&node)); });
}
#define INGOT_STMT_NODE(enumerator, Node)                           \
  Stmt StmtMutator::Mutate(const Ref<Node>& node) {                 \
    std::optional<Node> changed = MutateFields(*this, *node);       \
    return changed ? RebuiltStmt(std::move(*changed)) : Stmt(node); \
  }
#include "compiler/ir/nodes.def"

BufferRegion StmtMutator::MutateRegion(const BufferRegion& region) {
  return MutateFields(*this, region).value_or(region);
}

// ---- Graph level.

Expr ExprMutator::MutateExpr(const Expr& expr) {
  return Dispatch(*expr, [this](const auto& node) { return Mutate(Ref(&node)); });
}

Function ExprMutator::MutateFunction(const Function& function) {
  std::optional<FunctionNode> changed = MutateFields(*this, *function);
  return changed ? Make<FunctionNode>(std::move(*changed)) : function;
}

void ExprMutator::MutateBinding(const Binding& binding) {
  Binding result = binding;
  result.value = MutateExpr(binding.value);
  // A match_cast keeps its type; a plain binding's variable has the type of its value.
  const Type& type = result.value->type;
  if (!binding.is_match_cast() && !result.value.same_as(binding.value) && type && !type.same_as(binding.var->type) &&
      (!binding.var->type || !StructuralEqual(type, binding.var->type))) {
    VarNode copy(*binding.var);
    copy.type = type;
    result.var = Make<VarNode>(std::move(copy));
    var_map_[binding.var] = result.var;
  }
  Emit(std::move(result));
}

Var ExprMutator::EmitValue(Expr value, const std::string& hint) {
  Var var = Make<VarNode>(hint, value->type, current_block_->is_dataflow);
  Emit(Binding{var, std::move(value), nullptr, {}});
  return var;
}

template <typename T>
Expr ExprMutator::MutateDefault(const Ref<T>& node) {
  std::optional<T> changed = MutateFields(*this, *node);
  return changed ? RebuiltExpr(std::move(*changed)) : Expr(node);
}
template <>
Expr ExprMutator::MutateDefault(const Ref<VarNode>& node) {
  const auto it = var_map_.find(node);
  return it == var_map_.end() ? Expr(node) : it->second;
}
// Bindings go one by one through MutateBinding, which may emit any number of them.
template <>
Expr ExprMutator::MutateDefault(const Ref<SeqExprNode>& node) {
  BindingBlock* const outer = current_block_;
  std::vector<BindingBlock> blocks;
  bool changed = false;
  for (const BindingBlock& block : node->blocks) {
    BindingBlock result;
    result.is_dataflow = block.is_dataflow;
    result.bindings.reserve(block.bindings.size());
    current_block_ = &result;
    for (const Binding& binding : block.bindings) MutateBinding(binding);
    changed |= !SameBindings(result, block);
    AppendBlock(blocks, std::move(result));
  }
  BindingBlock tail;  // what a mutation of the body emits
  current_block_ = &tail;
  Expr body = MutateExpr(node->body);
  current_block_ = outer;
  AppendBlock(blocks, std::move(tail));
  if (!changed && body.same_as(node->body) && blocks.size() == node->blocks.size()) return node;
  SeqExprNode copy(*node);
  copy.blocks = std::move(blocks);
  copy.type = body->type;
  copy.body = std::move(body);
  return Make<SeqExprNode>(std::move(copy));
}

#define INGOT_EXPR_NODE(enumerator, Node) \
  Expr ExprMutator::Mutate(const Ref<Node>& node) { return MutateDefault(node); }
#include "compiler/ir/nodes.def"

}  // namespace ingot::ir
