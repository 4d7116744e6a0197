// Before: a function of blocks, scheduled or not. After: no block is left. Iteration variables are replaced by the
// values that they were bound to; initialisations are under the condition "every reduction variable has its first
// value", predicates are Ifs, buffers of blocks are Allocate statements in place of the block, with the alignment of
// rows that their writers asked for (storage_align); every loop starts at 0; loops and indices are int64; a sum that skips
// zeros (te/annotations.h) stands under the condition of what it adds. It comes first, because all later passes work on
// loops.
#include "compiler/ir/jam.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/device_loops.h"
#include "compiler/schedule/region.h"
#include "compiler/target/cuda.h"
#include "compiler/te/annotations.h"
#include "compiler/transform/tensor/passes.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

// Accesses of a view (T.match_buffer inside a block) become accesses of its source.
class ViewReplacer : public StmtMutator {
 public:
  explicit ViewReplacer(const MatchBufferRegion& view) : view_(view) {}

 protected:
  using StmtMutator::Mutate;
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    const PrimExpr mutated = StmtMutator::Mutate(load);
    const auto* node = As<BufferLoadNode>(mutated);
    if (!node->buffer.same_as(view_.buffer)) return mutated;
    return Make<BufferLoadNode>(view_.source.buffer, Shift(node->indices));
  }
  Stmt Mutate(const Ref<BufferStoreNode>& store) override {
    const Stmt mutated = StmtMutator::Mutate(store);
    const auto* node = As<BufferStoreNode>(mutated);
    if (!node->buffer.same_as(view_.buffer)) return mutated;
    return Make<BufferStoreNode>(view_.source.buffer, node->value, Shift(node->indices));
  }

 private:
  std::vector<PrimExpr> Shift(std::vector<PrimExpr> indices) const {
    for (size_t i = 0; i < indices.size(); ++i) indices[i] = view_.source.region[i].min + indices[i];
    return indices;
  }
  const MatchBufferRegion& view_;
};

class BlockLowerer : public StmtMutator {
 public:
  Status status;
  explicit BlockLowerer(const Target& target)
      : has_threads_(target.kind == Target::Kind::kCuda), has_amx_(target.has_amx()) {}

 protected:
  using StmtMutator::Mutate;

  Stmt Mutate(const Ref<BlockRealizeNode>& realize) override {
    const BlockNode& block = *realize->block;
    NoteAlignment(block);
    PrimVarMap bindings;
    PrimExpr first = BoolImm(true);  // the first iteration of the reduction
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      const IterVarNode& iter = *block.iter_vars[i];
      bindings.emplace(iter.var, realize->iter_values[i]);
      if (iter.type != IterType::kReduce || IsConstInt(iter.domain.extent, 1)) continue;
      first = And(first, Equal(realize->iter_values[i], iter.domain.min));
    }
    Stmt body = MutateStmt(block.body);
    if (block.annotations.Find(te::kSkipsZeros) != nullptr) body = SkipZeros(body);
    if (block.init) {
      Stmt init = MutateStmt(block.init);
      if (!IsConstInt(first, 1)) init = Make<IfStmtNode>(first, std::move(init), nullptr);
      // `first` is over loop variables already; substituting iteration variables leaves it as it is.
      body = MakeSeq({std::move(init), std::move(body)});
    }
    for (const MatchBufferRegion& view : block.match_buffers) body = ReplaceView(view, body);
    body = Substitute(body, bindings);
    if (!IsConstInt(realize->predicate, 1)) body = Make<IfStmtNode>(realize->predicate, std::move(body), nullptr);
    for (size_t i = block.alloc_buffers.size(); i-- > 0;) {
      const auto align = row_align_.find(block.alloc_buffers[i]);
      Attrs annotations;
      if (align != row_align_.end()) annotations = Attrs{{schedule::kBufferDimAlign, align->second}};
      body = Make<AllocateNode>(block.alloc_buffers[i], std::move(body), std::move(annotations));
    }
    return body;
  }

  Stmt Mutate(const Ref<ForNode>& loop) override {
    if (loop->for_kind == ForKind::kThreadBinding && !has_threads_) {
      return Fail(loop, "loop " + loop->var->name + " is bound to " + loop->thread_tag + ", which a CPU does not have");
    }
    ForNode copy = *loop;
    copy.body = MutateStmt(loop->body);
    const AttrValue* across = loop->annotations.Find(kCudaCrossThreads);
    if (!has_threads_) {
      const AttrValue* jam = loop->annotations.Find(kJamRegisterBits);
      const AttrValue* product = has_amx_ ? loop->annotations.Find(schedule::kAmxProduct) : nullptr;
      copy.annotations = jam != nullptr       ? Attrs{{kJamRegisterBits, *jam}}
                         : product != nullptr ? Attrs{{schedule::kAmxProduct, *product}}
                                              : Attrs{};
    } else if (!schedule::IsDeviceLoop(*loop)) {
      copy.annotations = across != nullptr ? Attrs{{kCudaCrossThreads, *across}} : Attrs{};
    }
    const DataType dtype = loop->var->dtype;
    if (!IsConstInt(loop->min, 0) || dtype != DataType::Int(64)) {
      copy.var = MakePrimVar(loop->var->name);
      copy.min = Int64(0);
      copy.extent = Wide(loop->extent);
      copy.body = Substitute(copy.body, {{loop->var, loop->min + Cast(dtype, PrimExpr(copy.var))}});
    }
    return Make<ForNode>(std::move(copy));
  }
  Stmt Mutate(const Ref<BufferStoreNode>& store) override {
    BufferStoreNode copy = *Downcast<BufferStoreNode>(StmtMutator::Mutate(store));
    for (PrimExpr& index : copy.indices) index = Wide(index);
    return Make<BufferStoreNode>(std::move(copy));
  }
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    BufferLoadNode copy = *Downcast<BufferLoadNode>(StmtMutator::Mutate(load));
    for (PrimExpr& index : copy.indices) index = Wide(index);
    return Make<BufferLoadNode>(std::move(copy));
  }

  Stmt Mutate(const Ref<AttrStmtNode>& attr) override {
    if (attr->key.starts_with("pragma_")) return MutateStmt(attr->body);  // a hint, which is dropped
    return Fail(attr, "the attribute " + attr->key + " has no meaning");
  }

 private:
  // s = s + if_then_else(condition, x, 0) as a statement under the condition.
  static Stmt SkipZeros(const Stmt& body) {
    const auto* store = As<BufferStoreNode>(body);
    const auto* sum = store != nullptr ? As<BinaryNode>(store->value) : nullptr;
    if (sum == nullptr || sum->op != BinaryOp::kAdd) return body;
    const auto* term = As<PrimCallNode>(sum->b);
    if (As<BufferLoadNode>(sum->a) == nullptr || term == nullptr || term->op != Intrinsic::kIfThenElse) return body;
    BufferStoreNode copy = *store;
    copy.value = sum->a + term->args[1];
    return Make<IfStmtNode>(term->args[0], Make<BufferStoreNode>(std::move(copy)), nullptr);
  }
  // Returns the same number as int64.
  static PrimExpr Wide(const PrimExpr& expr) {
    if (const auto value = AsConstInt(expr)) return expr->dtype.is_scalar() ? Int64(*value) : expr;
    const DataType wide = DataType::Int(64).with_lanes(expr->dtype.lanes);
    return expr->dtype == wide ? expr : Cast(wide, expr);
  }

  // Reads [[output, axis, factor, offset], ...] and notes [factor, offset] for the rows of each output.
  void NoteAlignment(const BlockNode& block) {
    const AttrValue* aligns = block.annotations.Find(schedule::kBufferDimAlign);
    const auto* list = aligns != nullptr ? aligns->get<AttrList>() : nullptr;
    if (list == nullptr) return;
    for (const AttrValue& entry : *list) {
      const auto* numbers = entry.get<AttrList>();
      if (numbers == nullptr || numbers->size() != 4) continue;
      const int64_t* output = numbers->at(0).get<int64_t>();
      const int64_t* factor = numbers->at(2).get<int64_t>();
      const int64_t* offset = numbers->at(3).get<int64_t>();
      if (output == nullptr || *output < 0 || *output >= static_cast<int64_t>(block.writes.size())) continue;
      if (factor == nullptr || offset == nullptr || *factor < 1 || *offset < 0 || *offset >= *factor) continue;
      row_align_[block.writes[static_cast<size_t>(*output)].buffer] = AttrList{numbers->at(2), numbers->at(3)};
    }
  }

  const bool has_threads_, has_amx_;
  std::unordered_map<Buffer, AttrList, RefHash, RefSame> row_align_;

  Stmt ReplaceView(const MatchBufferRegion& view, const Stmt& body) {
    if (view.buffer->shape.size() != view.source.region.size()) {
      return Fail(body, "buffer " + view.buffer->name + " matches a region of another rank");
    }
    return ViewReplacer(view).MutateStmt(body);
  }
  Stmt Fail(const Stmt& stmt, const std::string& what) {
    if (status.ok()) status = Status(StatusCode::kUnsupportedModel, stmt->span.ToString() + ": " + what);
    return stmt;
  }
};

}  // namespace

Result<PrimFunc> LowerBlocks(const PrimFunc& function, const Target& target) {
  BlockLowerer lowerer(target);
  Stmt body = lowerer.MutateStmt(function->body);
  INGOT_RETURN_IF_ERROR(lowerer.status);
  return WithBody(function, std::move(body));
}

}  // namespace ingot::transform
