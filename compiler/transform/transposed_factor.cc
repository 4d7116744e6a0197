// mark_transpositions
//   Before: tensor computations are call_tir.
//   After:  functions that transpose what a product may read in place have the attribute "ingot.joins_products".
//   Before fuse_ops. Without it, products and transpositions are functions of their own, as TVM has them.
#include "compiler/transform/transposed_factor.h"

#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/ir/visitor.h"

namespace ingot::transform {

using ir::As;

namespace {

// The blocks that store, and all loads of a function.
struct Accesses : ir::StmtVisitor {
  using ir::StmtVisitor::Visit;
  void Visit(const ir::BlockNode& block) override {
    if (As<ir::BufferStoreNode>(block.body) != nullptr) blocks.push_back(&block);
    ir::StmtVisitor::Visit(block);
  }
  void Visit(const ir::BufferLoadNode& load) override {
    loads.push_back(&load);
    ir::StmtVisitor::Visit(load);
  }
  std::vector<const ir::BlockNode*> blocks;
  std::vector<const ir::BufferLoadNode*> loads;
};

// The iteration variable that an index is, or null.
const ir::IterVarNode* IterOf(const ir::BlockNode& block, const ir::PrimExpr& index) {
  for (const ir::IterVar& iter : block.iter_vars) {
    if (iter->var.get() == index.get()) return iter.get();
  }
  return nullptr;
}

// Whether the function only moves a tensor's elements, and its last two axes are y, x where the tensor's last one is y.
bool MovesLastAxisInward(const ir::PrimFunc& permutation) {
  Accesses accesses;
  accesses.VisitStmt(permutation->body);
  if (permutation->params.size() != 2 || accesses.blocks.size() != 1) return false;
  const auto& store = *As<ir::BufferStoreNode>(accesses.blocks[0]->body);
  const auto* load = As<ir::BufferLoadNode>(store.value);
  const size_t rank = store.indices.size();
  if (load == nullptr || rank < 2 || load->indices.size() != rank) return false;
  for (const ir::PrimExpr& index : load->indices) {
    const ir::IterVarNode* iter = IterOf(*accesses.blocks[0], index);
    if (iter == nullptr || iter->type != ir::IterType::kSpatial) return false;
  }
  return load->indices.back().same_as(store.indices[rank - 2]);
}

}  // namespace

bool TransposesRightFactor(const ir::PrimFunc& permutation, const ir::PrimFunc& product, size_t param) {
  if (permutation->attrs.Find(kJoinsProductsAttr) == nullptr) return false;
  Accesses accesses;
  accesses.VisitStmt(product->body);
  if (accesses.blocks.size() != 1) return false;
  const ir::BlockNode& block = *accesses.blocks[0];
  const auto& store = *As<ir::BufferStoreNode>(block.body);
  const ir::BufferLoadNode* factor = nullptr;
  for (const ir::BufferLoadNode* load : accesses.loads) {
    if (!load->buffer.same_as(product->params[param].buffer)) continue;
    if (factor != nullptr) return false;
    factor = load;
  }
  if (factor == nullptr || factor->indices.size() < 2 || store.indices.empty()) return false;
  const ir::IterVarNode* depth = IterOf(block, factor->indices[factor->indices.size() - 2]);
  const ir::IterVarNode* column = IterOf(block, factor->indices.back());
  if (depth == nullptr || column == nullptr || depth->type != ir::IterType::kReduce) return false;
  const bool is_known = ir::AsConstInt(depth->domain.extent) || ir::AsConstInt(column->domain.extent);
  return is_known && column->var.get() == store.indices.back().get();
}

Result<ir::IRModule> MarkTranspositions(ir::IRModule module, PassContext&) {
  const std::vector<ir::IRModule::Entry> entries = module.functions();
  for (const ir::IRModule::Entry& entry : entries) {
    const ir::PrimFunc function = ir::AsRef<ir::PrimFuncNode>(entry.function);
    if (function == nullptr || !MovesLastAxisInward(function)) continue;
    ir::PrimFuncNode copy = *function;
    copy.attrs = copy.attrs.With(kJoinsProductsAttr, int64_t{1});
    module.Set(entry.var, ir::Make<ir::PrimFuncNode>(std::move(copy)));
  }
  return module;
}

}  // namespace ingot::transform
