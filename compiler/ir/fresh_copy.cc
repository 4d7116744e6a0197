// One mutator with a map of the variables and buffers that were made anew.
#include "compiler/ir/fresh_copy.h"

#include "compiler/ir/field_walk.h"
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
  PrimVar DefineVar(const PrimVar& var) override {
    PrimVar fresh = MakePrimVar(var->name, var->dtype);
    map_[var] = fresh;
    return fresh;
  }
  Buffer DefineBuffer(const Buffer& buffer) override {
    BufferNode copy = MutateFields(*this, *buffer).value_or(*buffer);
    copy.data = DefineVar(copy.data);
    return buffers_[buffer] = Make<BufferNode>(std::move(copy));
  }

 private:
  PrimVarMap map_;
  BufferMap buffers_;
};

}  // namespace

Stmt CopyFresh(const Stmt& stmt) { return Freshener().MutateStmt(stmt); }
PrimExpr CopyFresh(const PrimExpr& expr) { return Freshener().MutatePrim(expr); }

}  // namespace ingot::ir
