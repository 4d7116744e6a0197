// One mutator with a map of the variables and buffers that were made anew.
#include "compiler/ir/fresh_copy.h"

#include "compiler/ir/visitor.h"

namespace ingot::ir {
namespace {

class Freshener : public StmtMutator {
 protected:
  using StmtMutator::Mutate;
  PrimExpr Mutate(const Ref<PrimVarNode>& var) override {
    const auto it = map_.find(var);
    return it == map_.end() ? PrimExpr(var) : it->second;
  }
  Buffer MutateBuffer(const Buffer& buffer) override {
    const auto it = buffers_.find(buffer);
    if (it != buffers_.end()) return it->second;
    const auto data = map_.find(buffer->data);
    if (data == map_.end()) return buffer;
    BufferNode view = *buffer;
    view.data = AsRef<PrimVarNode>(data->second);
    return buffers_[buffer] = Make<BufferNode>(std::move(view));
  }
  Stmt Mutate(const Ref<ForNode>& loop) override {
    ForNode copy = *loop;
    copy.extent = MutatePrim(loop->extent);
    copy.var = Fresh(loop->var);
    copy.body = MutateStmt(loop->body);
    return Make<ForNode>(std::move(copy));
  }
  Stmt Mutate(const Ref<LetStmtNode>& let) override {
    PrimExpr value = MutatePrim(let->value);
    PrimVar var = Fresh(let->var);
    return Make<LetStmtNode>(std::move(var), std::move(value), MutateStmt(let->body));
  }
  PrimExpr Mutate(const Ref<LetNode>& let) override {
    PrimExpr value = MutatePrim(let->value);
    PrimVar var = Fresh(let->var);
    return Make<LetNode>(std::move(var), std::move(value), MutatePrim(let->body));
  }
  Stmt Mutate(const Ref<AllocateNode>& allocate) override {
    BufferNode copy = *allocate->buffer;
    copy.data = Fresh(copy.data);
    Buffer fresh = Make<BufferNode>(std::move(copy));
    buffers_[allocate->buffer] = fresh;
    return Make<AllocateNode>(std::move(fresh), MutateStmt(allocate->body), allocate->annotations);
  }

 private:
  PrimVar Fresh(const PrimVar& var) {
    PrimVar fresh = MakePrimVar(var->name, var->dtype);
    map_[var] = fresh;
    return fresh;
  }
  PrimVarMap map_;
  BufferMap buffers_;
};

}  // namespace

Stmt CopyFresh(const Stmt& stmt) { return Freshener().MutateStmt(stmt); }

}  // namespace ingot::ir
