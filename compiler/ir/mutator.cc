// Dispatch and the default methods of the mutators of both levels: they rebuild the nodes below which something changed
// and return the very same node elsewhere.
#include <iterator>

#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"

namespace ingot::ir {
namespace {

// The mutated list, and whether any element became another node.
template <typename T, typename F>
std::pair<std::vector<T>, bool> MutateAll(const std::vector<T>& items, F&& mutate) {
  std::vector<T> result;
  result.reserve(items.size());
  bool changed = false;
  for (const T& item : items) {
    result.push_back(mutate(item));
    changed |= !result.back().same_as(item);
  }
  return {std::move(result), changed};
}

bool SameRange(const Range& a, const Range& b) { return a.min.same_as(b.min) && a.extent.same_as(b.extent); }

bool SameRegion(const BufferRegion& a, const BufferRegion& b) {
  if (!a.buffer.same_as(b.buffer)) return false;
  for (size_t i = 0; i < a.region.size(); ++i) {
    if (!SameRange(a.region[i], b.region[i])) return false;
  }
  return true;
}

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

// ---- Scalar expressions. Rebuilding goes through the folding builders.

PrimExpr PrimMutator::MutatePrim(const PrimExpr& expr) {
  switch (expr->kind) {
    case PrimKind::kIntImm:
      return Mutate(Downcast<IntImmNode>(expr));
    case PrimKind::kFloatImm:
      return Mutate(Downcast<FloatImmNode>(expr));
    case PrimKind::kStringImm:
      return Mutate(Downcast<StringImmNode>(expr));
    case PrimKind::kPrimVar:
      return Mutate(Downcast<PrimVarNode>(expr));
    case PrimKind::kBinary:
      return Mutate(Downcast<BinaryNode>(expr));
    case PrimKind::kNot:
      return Mutate(Downcast<NotNode>(expr));
    case PrimKind::kSelect:
      return Mutate(Downcast<SelectNode>(expr));
    case PrimKind::kCast:
      return Mutate(Downcast<CastNode>(expr));
    case PrimKind::kBufferLoad:
      return Mutate(Downcast<BufferLoadNode>(expr));
    case PrimKind::kRamp:
      return Mutate(Downcast<RampNode>(expr));
    case PrimKind::kBroadcast:
      return Mutate(Downcast<BroadcastNode>(expr));
    case PrimKind::kShuffle:
      return Mutate(Downcast<ShuffleNode>(expr));
    case PrimKind::kLet:
      return Mutate(Downcast<LetNode>(expr));
    case PrimKind::kPrimCall:
      return Mutate(Downcast<PrimCallNode>(expr));
    case PrimKind::kReduce:
      return Mutate(Downcast<ReduceNode>(expr));
    case PrimKind::kProducerLoad:
      return Mutate(Downcast<ProducerLoadNode>(expr));
  }
  INGOT_UNREACHABLE("PrimKind");
}

PrimExpr PrimMutator::Mutate(const Ref<IntImmNode>& node) { return node; }
PrimExpr PrimMutator::Mutate(const Ref<FloatImmNode>& node) { return node; }
PrimExpr PrimMutator::Mutate(const Ref<StringImmNode>& node) { return node; }
PrimExpr PrimMutator::Mutate(const Ref<PrimVarNode>& node) { return node; }
PrimExpr PrimMutator::Mutate(const Ref<BinaryNode>& node) {
  PrimExpr a = MutatePrim(node->a);
  PrimExpr b = MutatePrim(node->b);
  if (a.same_as(node->a) && b.same_as(node->b)) return node;
  return MakeBinary(node->op, std::move(a), std::move(b));
}
PrimExpr PrimMutator::Mutate(const Ref<NotNode>& node) {
  PrimExpr a = MutatePrim(node->a);
  return a.same_as(node->a) ? PrimExpr(node) : Not(std::move(a));
}
PrimExpr PrimMutator::Mutate(const Ref<SelectNode>& node) {
  PrimExpr condition = MutatePrim(node->condition);
  PrimExpr true_value = MutatePrim(node->true_value);
  PrimExpr false_value = MutatePrim(node->false_value);
  if (condition.same_as(node->condition) && true_value.same_as(node->true_value) &&
      false_value.same_as(node->false_value)) {
    return node;
  }
  return Select(std::move(condition), std::move(true_value), std::move(false_value));
}
PrimExpr PrimMutator::Mutate(const Ref<CastNode>& node) {
  PrimExpr value = MutatePrim(node->value);
  if (value.same_as(node->value)) return node;
  const DataType dtype = node->dtype.with_lanes(value->dtype.lanes);
  return Cast(dtype, std::move(value));
}
PrimExpr PrimMutator::Mutate(const Ref<BufferLoadNode>& node) {
  Buffer buffer = MutateBuffer(node->buffer);
  auto [indices, changed] = MutateAll(node->indices, [this](const PrimExpr& e) { return MutatePrim(e); });
  if (!changed && buffer.same_as(node->buffer)) return node;
  return Make<BufferLoadNode>(std::move(buffer), std::move(indices));
}
PrimExpr PrimMutator::Mutate(const Ref<RampNode>& node) {
  PrimExpr base = MutatePrim(node->base);
  PrimExpr stride = MutatePrim(node->stride);
  if (base.same_as(node->base) && stride.same_as(node->stride)) return node;
  return Make<RampNode>(std::move(base), std::move(stride), node->lanes);
}
PrimExpr PrimMutator::Mutate(const Ref<BroadcastNode>& node) {
  PrimExpr value = MutatePrim(node->value);
  return value.same_as(node->value) ? PrimExpr(node) : Make<BroadcastNode>(std::move(value), node->lanes);
}
PrimExpr PrimMutator::Mutate(const Ref<ShuffleNode>& node) {
  auto [vectors, changed] = MutateAll(node->vectors, [this](const PrimExpr& e) { return MutatePrim(e); });
  return changed ? Make<ShuffleNode>(std::move(vectors), node->indices) : PrimExpr(node);
}
PrimExpr PrimMutator::Mutate(const Ref<LetNode>& node) {
  PrimExpr value = MutatePrim(node->value);
  PrimExpr body = MutatePrim(node->body);
  if (value.same_as(node->value) && body.same_as(node->body)) return node;
  return Make<LetNode>(node->var, std::move(value), std::move(body));
}
PrimExpr PrimMutator::Mutate(const Ref<PrimCallNode>& node) {
  auto [args, changed] = MutateAll(node->args, [this](const PrimExpr& e) { return MutatePrim(e); });
  if (!changed) return node;
  if (node->op == Intrinsic::kIfThenElse) return IfThenElse(args[0], args[1], args[2]);
  if (GetIntrinsicRow(node->op).result != IntrinsicRow::kGiven) return CallIntrinsic(node->op, std::move(args));
  return Make<PrimCallNode>(node->dtype, node->op, std::move(args));
}
PrimExpr PrimMutator::Mutate(const Ref<ReduceNode>& node) {
  const auto mutate = [this](const PrimExpr& e) { return MutatePrim(e); };
  auto [axes, axes_changed] = MutateAll(node->axes, [&](const IterVar& axis) {
    const Range domain{mutate(axis->domain.min), mutate(axis->domain.extent)};
    if (SameRange(domain, axis->domain)) return axis;
    return Make<IterVarNode>(domain, axis->var, axis->type, axis->thread_tag);
  });
  auto [init, init_changed] = MutateAll(node->init, mutate);
  PrimExpr condition = mutate(node->condition);
  auto [source, source_changed] = MutateAll(node->source, mutate);
  if (!axes_changed && !init_changed && !source_changed && condition.same_as(node->condition)) return node;
  return Make<ReduceNode>(node->combiner, std::move(source), std::move(axes), std::move(condition), node->value_index,
                          std::move(init));
}
PrimExpr PrimMutator::Mutate(const Ref<ProducerLoadNode>& node) {
  auto [indices, changed] = MutateAll(node->indices, [this](const PrimExpr& e) { return MutatePrim(e); });
  return changed ? Make<ProducerLoadNode>(node->dtype, node->producer, std::move(indices)) : PrimExpr(node);
}

// ---- Statements. A copy of the node keeps its span.

Stmt StmtMutator::MutateStmt(const Stmt& stmt) {
  switch (stmt->kind) {
    case StmtKind::kBufferStore:
      return Mutate(Downcast<BufferStoreNode>(stmt));
    case StmtKind::kEvaluate:
      return Mutate(Downcast<EvaluateNode>(stmt));
    case StmtKind::kSeq:
      return Mutate(Downcast<SeqNode>(stmt));
    case StmtKind::kIf:
      return Mutate(Downcast<IfStmtNode>(stmt));
    case StmtKind::kFor:
      return Mutate(Downcast<ForNode>(stmt));
    case StmtKind::kWhile:
      return Mutate(Downcast<WhileNode>(stmt));
    case StmtKind::kLet:
      return Mutate(Downcast<LetStmtNode>(stmt));
    case StmtKind::kAssert:
      return Mutate(Downcast<AssertStmtNode>(stmt));
    case StmtKind::kAllocate:
      return Mutate(Downcast<AllocateNode>(stmt));
    case StmtKind::kAttr:
      return Mutate(Downcast<AttrStmtNode>(stmt));
    case StmtKind::kBlock:
      return Mutate(Downcast<BlockNode>(stmt));
    case StmtKind::kBlockRealize:
      return Mutate(Downcast<BlockRealizeNode>(stmt));
  }
  INGOT_UNREACHABLE("StmtKind");
}

BufferRegion StmtMutator::MutateRegion(const BufferRegion& region) {
  BufferRegion result{MutateBuffer(region.buffer), {}};
  for (const Range& range : region.region) result.region.push_back({MutatePrim(range.min), MutatePrim(range.extent)});
  return result;
}

Stmt StmtMutator::Mutate(const Ref<BufferStoreNode>& node) {
  Buffer buffer = MutateBuffer(node->buffer);
  PrimExpr value = MutatePrim(node->value);
  auto [indices, changed] = MutateAll(node->indices, [this](const PrimExpr& e) { return MutatePrim(e); });
  if (!changed && buffer.same_as(node->buffer) && value.same_as(node->value)) return node;
  BufferStoreNode copy(*node);
  copy.buffer = std::move(buffer);
  copy.value = std::move(value);
  copy.indices = std::move(indices);
  return Make<BufferStoreNode>(std::move(copy));
}
Stmt StmtMutator::Mutate(const Ref<EvaluateNode>& node) {
  PrimExpr value = MutatePrim(node->value);
  if (value.same_as(node->value)) return node;
  EvaluateNode copy(*node);
  copy.value = std::move(value);
  return Make<EvaluateNode>(std::move(copy));
}
Stmt StmtMutator::Mutate(const Ref<SeqNode>& node) {
  auto [stmts, changed] = MutateAll(node->stmts, [this](const Stmt& stmt) { return MutateStmt(stmt); });
  return changed ? MakeSeq(std::move(stmts)) : Stmt(node);
}
Stmt StmtMutator::Mutate(const Ref<IfStmtNode>& node) {
  IfStmtNode copy(*node);
  copy.condition = MutatePrim(node->condition);
  copy.then_case = MutateStmt(node->then_case);
  if (node->else_case) copy.else_case = MutateStmt(node->else_case);
  if (copy.condition.same_as(node->condition) && copy.then_case.same_as(node->then_case) &&
      copy.else_case.same_as(node->else_case)) {
    return node;
  }
  return Make<IfStmtNode>(std::move(copy));
}
Stmt StmtMutator::Mutate(const Ref<ForNode>& node) {
  PrimExpr min = MutatePrim(node->min);
  PrimExpr extent = MutatePrim(node->extent);
  Stmt body = MutateStmt(node->body);
  if (min.same_as(node->min) && extent.same_as(node->extent) && body.same_as(node->body)) return node;
  ForNode copy(*node);
  copy.min = std::move(min);
  copy.extent = std::move(extent);
  copy.body = std::move(body);
  return Make<ForNode>(std::move(copy));
}
Stmt StmtMutator::Mutate(const Ref<WhileNode>& node) {
  PrimExpr condition = MutatePrim(node->condition);
  Stmt body = MutateStmt(node->body);
  if (condition.same_as(node->condition) && body.same_as(node->body)) return node;
  WhileNode copy(*node);
  copy.condition = std::move(condition);
  copy.body = std::move(body);
  return Make<WhileNode>(std::move(copy));
}
Stmt StmtMutator::Mutate(const Ref<LetStmtNode>& node) {
  PrimExpr value = MutatePrim(node->value);
  Stmt body = MutateStmt(node->body);
  if (value.same_as(node->value) && body.same_as(node->body)) return node;
  LetStmtNode copy(*node);
  copy.value = std::move(value);
  copy.body = std::move(body);
  return Make<LetStmtNode>(std::move(copy));
}
Stmt StmtMutator::Mutate(const Ref<AssertStmtNode>& node) {
  PrimExpr condition = MutatePrim(node->condition);
  Stmt body = MutateStmt(node->body);
  if (condition.same_as(node->condition) && body.same_as(node->body)) return node;
  AssertStmtNode copy(*node);
  copy.condition = std::move(condition);
  copy.body = std::move(body);
  return Make<AssertStmtNode>(std::move(copy));
}
Stmt StmtMutator::Mutate(const Ref<AllocateNode>& node) {
  Buffer buffer = MutateBuffer(node->buffer);
  Stmt body = MutateStmt(node->body);
  if (buffer.same_as(node->buffer) && body.same_as(node->body)) return node;
  AllocateNode copy(*node);
  copy.buffer = std::move(buffer);
  copy.body = std::move(body);
  return Make<AllocateNode>(std::move(copy));
}
Stmt StmtMutator::Mutate(const Ref<AttrStmtNode>& node) {
  const auto* old_value = node->value.get<PrimExpr>();
  PrimExpr value = old_value == nullptr ? nullptr : MutatePrim(*old_value);
  Stmt body = MutateStmt(node->body);
  if (body.same_as(node->body) && (old_value == nullptr || value.same_as(*old_value))) return node;
  AttrStmtNode copy(*node);
  if (old_value != nullptr) copy.value = AttrValue(std::move(value));
  copy.body = std::move(body);
  return Make<AttrStmtNode>(std::move(copy));
}
Stmt StmtMutator::Mutate(const Ref<BlockNode>& node) {
  BlockNode copy(*node);
  bool changed = false;
  for (IterVar& iter : copy.iter_vars) {
    const Range domain{MutatePrim(iter->domain.min), MutatePrim(iter->domain.extent)};
    if (SameRange(domain, iter->domain)) continue;
    iter = Make<IterVarNode>(domain, iter->var, iter->type, iter->thread_tag);
    changed = true;
  }
  for (Buffer& buffer : copy.alloc_buffers) {
    Buffer mutated = MutateBuffer(buffer);
    changed |= !mutated.same_as(buffer);
    buffer = std::move(mutated);
  }
  for (MatchBufferRegion& match : copy.match_buffers) {
    MatchBufferRegion mutated{MutateBuffer(match.buffer), MutateRegion(match.source)};
    changed |= !mutated.buffer.same_as(match.buffer) || !SameRegion(mutated.source, match.source);
    match = std::move(mutated);
  }
  for (auto* regions : {&copy.reads, &copy.writes}) {
    for (BufferRegion& region : *regions) {
      BufferRegion mutated = MutateRegion(region);
      changed |= !SameRegion(mutated, region);
      region = std::move(mutated);
    }
  }
  if (node->init) copy.init = MutateStmt(node->init);
  copy.body = MutateStmt(node->body);
  if (!changed && copy.init.same_as(node->init) && copy.body.same_as(node->body)) return node;
  return Make<BlockNode>(std::move(copy));
}
Stmt StmtMutator::Mutate(const Ref<BlockRealizeNode>& node) {
  auto [values, changed] = MutateAll(node->iter_values, [this](const PrimExpr& e) { return MutatePrim(e); });
  PrimExpr predicate = MutatePrim(node->predicate);
  const Stmt block = MutateStmt(node->block);
  if (!changed && predicate.same_as(node->predicate) && block.get() == node->block.get()) return node;
  BlockRealizeNode copy(*node);
  copy.iter_values = std::move(values);
  copy.predicate = std::move(predicate);
  copy.block = Downcast<BlockNode>(block);
  return Make<BlockRealizeNode>(std::move(copy));
}

// ---- Graph level.

Expr ExprMutator::MutateExpr(const Expr& expr) {
  switch (expr->kind) {
    case ExprKind::kVar:
      return Mutate(Downcast<VarNode>(expr));
    case ExprKind::kConstant:
      return Mutate(Downcast<ConstantNode>(expr));
    case ExprKind::kCall:
      return Mutate(Downcast<CallNode>(expr));
    case ExprKind::kTuple:
      return Mutate(Downcast<TupleNode>(expr));
    case ExprKind::kTupleGetItem:
      return Mutate(Downcast<TupleGetItemNode>(expr));
    case ExprKind::kIf:
      return Mutate(Downcast<IfNode>(expr));
    case ExprKind::kShapeExpr:
      return Mutate(Downcast<ShapeExprNode>(expr));
    case ExprKind::kPrimValue:
      return Mutate(Downcast<PrimValueNode>(expr));
    case ExprKind::kStringValue:
      return Mutate(Downcast<StringValueNode>(expr));
    case ExprKind::kDataTypeValue:
      return Mutate(Downcast<DataTypeValueNode>(expr));
    case ExprKind::kOp:
      return Mutate(Downcast<OpNode>(expr));
    case ExprKind::kGlobalVar:
      return Mutate(Downcast<GlobalVarNode>(expr));
    case ExprKind::kExternFunc:
      return Mutate(Downcast<ExternFuncNode>(expr));
    case ExprKind::kSeqExpr:
      return Mutate(Downcast<SeqExprNode>(expr));
    case ExprKind::kFunction:
      return Mutate(Downcast<FunctionNode>(expr));
    case ExprKind::kPrimFunc:
      return Mutate(Downcast<PrimFuncNode>(expr));
  }
  INGOT_UNREACHABLE("ExprKind");
}

Function ExprMutator::MutateFunction(const Function& function) {
  const Expr body = MutateExpr(function->body);
  if (body.get() == function->body.get()) return function;
  FunctionNode copy(*function);
  copy.body = Downcast<SeqExprNode>(body);
  return Make<FunctionNode>(std::move(copy));
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

Expr ExprMutator::Mutate(const Ref<VarNode>& node) {
  const auto it = var_map_.find(node);
  return it == var_map_.end() ? Expr(node) : it->second;
}
Expr ExprMutator::Mutate(const Ref<ConstantNode>& node) { return node; }
Expr ExprMutator::Mutate(const Ref<CallNode>& node) {
  Expr callee = MutateExpr(node->callee);
  auto [args, changed] = MutateAll(node->args, [this](const Expr& arg) { return MutateExpr(arg); });
  if (!changed && callee.same_as(node->callee)) return node;
  CallNode copy(*node);
  copy.callee = std::move(callee);
  copy.args = std::move(args);
  return Make<CallNode>(std::move(copy));
}
Expr ExprMutator::Mutate(const Ref<TupleNode>& node) {
  auto [fields, changed] = MutateAll(node->fields, [this](const Expr& field) { return MutateExpr(field); });
  if (!changed) return node;
  TupleNode copy(*node);
  std::vector<Type> types;
  for (const Expr& field : fields) types.push_back(field->type);
  copy.fields = std::move(fields);
  if (node->type) copy.type = Make<TupleTypeNode>(std::move(types));
  return Make<TupleNode>(std::move(copy));
}
Expr ExprMutator::Mutate(const Ref<TupleGetItemNode>& node) {
  Expr tuple = MutateExpr(node->tuple);
  if (tuple.same_as(node->tuple)) return node;
  TupleGetItemNode copy(*node);
  const auto* type = As<TupleTypeNode>(tuple->type);
  if (type != nullptr && static_cast<size_t>(node->index) < type->fields.size()) copy.type = type->fields[node->index];
  copy.tuple = std::move(tuple);
  return Make<TupleGetItemNode>(std::move(copy));
}
Expr ExprMutator::Mutate(const Ref<IfNode>& node) {
  Expr condition = MutateExpr(node->condition);
  const Expr then_branch = MutateExpr(node->then_branch);
  const Expr else_branch = MutateExpr(node->else_branch);
  if (condition.same_as(node->condition) && then_branch.get() == node->then_branch.get() &&
      else_branch.get() == node->else_branch.get()) {
    return node;
  }
  IfNode copy(*node);
  copy.condition = std::move(condition);
  copy.then_branch = Downcast<SeqExprNode>(then_branch);
  copy.else_branch = Downcast<SeqExprNode>(else_branch);
  return Make<IfNode>(std::move(copy));
}
Expr ExprMutator::Mutate(const Ref<ShapeExprNode>& node) { return node; }
Expr ExprMutator::Mutate(const Ref<PrimValueNode>& node) { return node; }
Expr ExprMutator::Mutate(const Ref<StringValueNode>& node) { return node; }
Expr ExprMutator::Mutate(const Ref<DataTypeValueNode>& node) { return node; }
Expr ExprMutator::Mutate(const Ref<OpNode>& node) { return node; }
Expr ExprMutator::Mutate(const Ref<GlobalVarNode>& node) { return node; }
Expr ExprMutator::Mutate(const Ref<ExternFuncNode>& node) { return node; }
Expr ExprMutator::Mutate(const Ref<SeqExprNode>& node) {
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
Expr ExprMutator::Mutate(const Ref<FunctionNode>& node) { return MutateFunction(node); }
Expr ExprMutator::Mutate(const Ref<PrimFuncNode>& node) { return node; }

}  // namespace ingot::ir
