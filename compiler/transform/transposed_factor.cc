// mark_transpositions
//   Before: tensor computations are call_tir.
//   After:  functions that transpose what a product may read in place have the attribute "ingot.joins_products".
//   Before fuse_ops. Without it, products and transpositions are functions of their own, as TVM has them.
#include "compiler/transform/transposed_factor.h"

#include <optional>
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

// Which axis of the result is the tensor's last one, if the function only moves the tensor's elements: 0 is the last one
// and 1 the one before it; nothing: it does something else, or it is another one.
std::optional<int> PlaceOfLastAxis(const ir::PrimFunc& permutation) {
  Accesses accesses;
  accesses.VisitStmt(permutation->body);
  if (permutation->params.size() != 2 || accesses.blocks.size() != 1) return std::nullopt;
  const auto& store = *As<ir::BufferStoreNode>(accesses.blocks[0]->body);
  const auto* load = As<ir::BufferLoadNode>(store.value);
  const size_t rank = store.indices.size();
  if (load == nullptr || rank < 2 || load->indices.size() != rank) return std::nullopt;
  for (const ir::PrimExpr& index : load->indices) {
    const ir::IterVarNode* iter = IterOf(*accesses.blocks[0], index);
    if (iter == nullptr || iter->type != ir::IterType::kSpatial) return std::nullopt;
  }
  for (int place = 0; place < 2; ++place) {
    if (load->indices.back().same_as(store.indices[rank - 1 - static_cast<size_t>(place)])) return place;
  }
  return std::nullopt;
}

// What the attribute says.
constexpr int64_t kRightFactor = 1, kAnyFactor = 2;

}  // namespace

bool MayJoinProduct(const ir::PrimFunc& permutation, const ir::PrimFunc& product, size_t param) {
  const ir::AttrValue* joins = permutation->attrs.Find(kJoinsProductsAttr);
  const int64_t* joined = joins != nullptr ? joins->get<int64_t>() : nullptr;
  if (joined == nullptr) return false;
  Accesses accesses;
  accesses.VisitStmt(product->body);
  const ir::BufferLoadNode* factor = nullptr;
  for (const ir::BufferLoadNode* load : accesses.loads) {
    if (!load->buffer.same_as(product->params[param].buffer)) continue;
    if (factor != nullptr) return false;
    factor = load;
  }
  if (factor == nullptr || factor->indices.size() < 2) return false;
  // The product's block is the only one, or casts of its sums follow it.
  if (accesses.blocks.empty() || (accesses.blocks.size() > 1 && *joined != kAnyFactor)) return false;
  const ir::BlockNode& block = *accesses.blocks[0];
  const auto& store = *As<ir::BufferStoreNode>(block.body);
  if (store.indices.empty()) return false;
  const ir::IterVarNode* outer = IterOf(block, factor->indices[factor->indices.size() - 2]);
  const ir::IterVarNode* inner = IterOf(block, factor->indices.back());
  if (outer == nullptr || inner == nullptr) return false;
  if (*joined == kAnyFactor) {
    return (outer->type == ir::IterType::kReduce) != (inner->type == ir::IterType::kReduce);
  }
  const bool is_known = ir::AsConstInt(outer->domain.extent) || ir::AsConstInt(inner->domain.extent);
  return is_known && outer->type == ir::IterType::kReduce && inner->var.get() == store.indices.back().get();
}

Result<ir::IRModule> MarkTranspositions(ir::IRModule module, PassContext& context) {
  const bool takes_any = context.options.target.kind == Target::Kind::kCuda;
  const std::vector<ir::IRModule::Entry> entries = module.functions();
  for (const ir::IRModule::Entry& entry : entries) {
    const ir::PrimFunc function = ir::AsRef<ir::PrimFuncNode>(entry.function);
    const std::optional<int> place = function != nullptr ? PlaceOfLastAxis(function) : std::nullopt;
    if (!place || (*place == 0 && !takes_any)) continue;
    ir::PrimFuncNode copy = *function;
    copy.attrs = copy.attrs.With(kJoinsProductsAttr, takes_any ? kAnyFactor : kRightFactor);
    module.Set(entry.var, ir::Make<ir::PrimFuncNode>(std::move(copy)));
  }
  return module;
}

}  // namespace ingot::transform
