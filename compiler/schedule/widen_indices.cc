// Widener rewrites statements and index expressions to int64; data-dependent values keep their dtype and their wrapping
// arithmetic, and are cast where an index needs them.
#include "compiler/schedule/widen_indices.h"

#include <unordered_set>

#include "compiler/ir/visitor.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr DataType kWide = DataType::Int(64);

bool IsNarrow(DataType dtype) { return dtype.is_integral() && dtype.element_of() != kWide; }

bool IsNarrow(const BufferNode& buffer) {
  const auto any = [](const std::vector<PrimExpr>& exprs) {
    for (const PrimExpr& expr : exprs) {
      if (IsNarrow(expr->dtype)) return true;
    }
    return false;
  };
  return any(buffer.shape) || any(buffer.strides) || (buffer.elem_offset && IsNarrow(buffer.elem_offset->dtype));
}

class NarrowFinder : public StmtVisitor {
 public:
  bool found = false;

 protected:
  using StmtVisitor::Visit;
  void Visit(const ForNode& loop) override {
    found |= IsNarrow(loop.var->dtype);
    StmtVisitor::Visit(loop);
  }
  void Visit(const AllocateNode& allocate) override {
    found |= IsNarrow(*allocate.buffer);
    StmtVisitor::Visit(allocate);
  }
  void Visit(const BlockNode& block) override {
    for (const IterVar& iter : block.iter_vars) found |= IsNarrow(iter->var->dtype);
    for (const Buffer& buffer : block.alloc_buffers) found |= IsNarrow(*buffer);
    for (const MatchBufferRegion& match : block.match_buffers) found |= IsNarrow(*match.buffer);
    StmtVisitor::Visit(block);
  }
};

// Finds loads, calls, lets and their variables: an expression without them is a count, whose arithmetic does not wrap
// around.
class DataFinder : public PrimVisitor {
 public:
  using Variables = std::unordered_set<const PrimVarNode*>;
  explicit DataFinder(const Variables& lets) : lets_(lets) {}
  bool found = false;

 protected:
  using PrimVisitor::Visit;
  void Visit(const BufferLoadNode&) override { found = true; }
  void Visit(const PrimCallNode&) override { found = true; }
  void Visit(const LetNode&) override { found = true; }
  void Visit(const PrimVarNode& var) override { found |= lets_.contains(&var); }

 private:
  const Variables& lets_;
};

bool IsComparison(BinaryOp op) {
  return op == BinaryOp::kEQ || op == BinaryOp::kNE || op == BinaryOp::kLT || op == BinaryOp::kLE ||
         op == BinaryOp::kGT || op == BinaryOp::kGE;
}

class Widener : public StmtMutator {
 public:
  // Replaces a symbolic variable by one of int64.
  void Replace(const PrimVar& var) {
    if (IsNarrow(var->dtype)) wide_.try_emplace(var, MakePrimVar(var->name));
  }

  PrimExpr Wide(const PrimExpr& expr) {
    if (!IsNarrow(expr->dtype)) return MutatePrim(expr);
    if (const auto* number = As<IntImmNode>(expr)) return Int64(number->value);
    if (const auto* ramp = As<RampNode>(expr)) {
      return Make<RampNode>(Wide(ramp->base), Wide(ramp->stride), ramp->lanes);
    }
    if (const auto* broadcast = As<BroadcastNode>(expr)) {
      return Make<BroadcastNode>(Wide(broadcast->value), broadcast->lanes);
    }
    if (const auto var = AsRef<PrimVarNode>(expr)) {
      const auto it = wide_.find(var);
      return it == wide_.end() ? Cast(kWide, expr) : it->second;
    }
    if (const auto* binary = As<BinaryNode>(expr); binary != nullptr && IsCount(expr)) {
      return MakeBinary(binary->op, Wide(binary->a), Wide(binary->b));
    }
    return Cast(kWide.with_lanes(expr->dtype.lanes), MutatePrim(expr));
  }

  Buffer MutateBuffer(const Buffer& buffer) override {
    if (!IsNarrow(*buffer)) return buffer;
    Buffer& known = buffers_[buffer];
    if (known) return known;
    BufferNode copy = *buffer;
    for (PrimExpr& dim : copy.shape) dim = Wide(dim);
    for (PrimExpr& stride : copy.strides) stride = Wide(stride);
    if (copy.elem_offset) copy.elem_offset = Wide(copy.elem_offset);
    known = Make<BufferNode>(std::move(copy));
    return known;
  }

 protected:
  using StmtMutator::Mutate;
  PrimExpr Mutate(const Ref<PrimVarNode>& var) override {
    const auto it = wide_.find(var);
    return it == wide_.end() ? PrimExpr(var) : Cast(var->dtype, it->second);
  }
  PrimExpr Mutate(const Ref<CastNode>& cast) override {
    const bool widens = cast->dtype.element_of() == kWide && IsNarrow(cast->value->dtype) && IsCount(cast->value);
    return widens ? Wide(cast->value) : StmtMutator::Mutate(cast);
  }
  PrimExpr Mutate(const Ref<BinaryNode>& binary) override {
    if (IsComparison(binary->op) && IsNarrow(binary->a->dtype) && IsCount(binary)) {
      return MakeBinary(binary->op, Wide(binary->a), Wide(binary->b));
    }
    return StmtMutator::Mutate(binary);
  }
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    return Make<BufferLoadNode>(MutateBuffer(load->buffer), AllWide(load->indices));
  }
  Stmt Mutate(const Ref<BufferStoreNode>& store) override {
    BufferStoreNode copy = *store;
    copy.buffer = MutateBuffer(store->buffer);
    copy.value = MutatePrim(store->value);
    copy.indices = AllWide(store->indices);
    return Make<BufferStoreNode>(std::move(copy));
  }
  PrimExpr Mutate(const Ref<LetNode>& let) override {
    lets_.insert(let->var.get());
    return StmtMutator::Mutate(let);
  }
  Stmt Mutate(const Ref<LetStmtNode>& let) override {
    lets_.insert(let->var.get());
    return StmtMutator::Mutate(let);
  }
  Stmt Mutate(const Ref<ForNode>& loop) override {
    ForNode copy = *loop;
    copy.min = Wide(loop->min);
    copy.extent = Wide(loop->extent);
    copy.var = Fresh(loop->var);
    copy.body = MutateStmt(loop->body);
    return Make<ForNode>(std::move(copy));
  }
  Stmt Mutate(const Ref<BlockRealizeNode>& realize) override {
    BlockRealizeNode copy = *realize;
    copy.iter_values = AllWide(realize->iter_values);
    copy.predicate = MutatePrim(realize->predicate);
    copy.block = Downcast<BlockNode>(MutateStmt(realize->block));
    return Make<BlockRealizeNode>(std::move(copy));
  }
  Stmt Mutate(const Ref<BlockNode>& block) override {
    BlockNode copy = *block;
    for (IterVar& iter : copy.iter_vars) {
      const Range domain = Wide(iter->domain);
      iter = Make<IterVarNode>(domain, Fresh(iter->var), iter->type, iter->thread_tag);
    }
    for (Buffer& buffer : copy.alloc_buffers) buffer = MutateBuffer(buffer);
    for (MatchBufferRegion& match : copy.match_buffers) {
      match = {MutateBuffer(match.buffer), Wide(match.source)};
    }
    for (std::vector<BufferRegion>* regions : {&copy.reads, &copy.writes}) {
      for (BufferRegion& region : *regions) region = Wide(region);
    }
    if (block->init) copy.init = MutateStmt(block->init);
    copy.body = MutateStmt(block->body);
    return Make<BlockNode>(std::move(copy));
  }

 private:
  bool IsCount(const PrimExpr& expr) const {
    DataFinder finder(lets_);
    finder.VisitPrim(expr);
    return !finder.found;
  }
  Range Wide(const Range& range) { return {Wide(range.min), Wide(range.extent)}; }
  BufferRegion Wide(const BufferRegion& region) {
    BufferRegion result{MutateBuffer(region.buffer), {}};
    for (const Range& range : region.region) result.region.push_back(Wide(range));
    return result;
  }
  std::vector<PrimExpr> AllWide(std::vector<PrimExpr> exprs) {
    for (PrimExpr& expr : exprs) expr = Wide(expr);
    return exprs;
  }
  PrimVar Fresh(const PrimVar& var) {
    Replace(var);
    const auto it = wide_.find(var);
    return it == wide_.end() ? var : it->second;
  }

  std::unordered_map<PrimVar, PrimVar, RefHash, RefSame> wide_;
  DataFinder::Variables lets_;
  BufferMap buffers_;
};

}  // namespace

std::optional<PrimFunc> WidenIndices(const PrimFunc& function) {
  NarrowFinder finder;
  for (const PrimFuncParam& param : function->params) finder.found |= param.buffer && IsNarrow(*param.buffer);
  finder.VisitStmt(function->body);
  if (!finder.found) return function;
  Widener widener;
  PrimFuncNode copy = *function;
  for (const PrimFuncParam& param : function->params) {
    if (!param.buffer) continue;
    std::vector<PrimExpr> numbers = param.buffer->shape;
    numbers.insert(numbers.end(), param.buffer->strides.begin(), param.buffer->strides.end());
    if (param.buffer->elem_offset) numbers.push_back(param.buffer->elem_offset);
    for (const PrimExpr& number : numbers) {
      for (const PrimVar& var : FreePrimVars(number)) {
        for (const PrimFuncParam& scalar : function->params) {
          if (!scalar.buffer && scalar.var.same_as(var) && IsNarrow(var->dtype)) return std::nullopt;
        }
        widener.Replace(var);
      }
    }
  }
  for (PrimFuncParam& param : copy.params) {
    if (param.buffer) param.buffer = widener.MutateBuffer(param.buffer);
  }
  copy.body = widener.MutateStmt(function->body);
  return Make<PrimFuncNode>(std::move(copy));
}

PrimExpr WidenIndex(const PrimExpr& expr) {
  Widener widener;
  for (const PrimVar& var : FreePrimVars(expr)) widener.Replace(var);
  return widener.Wide(expr);
}

}  // namespace ingot::schedule
