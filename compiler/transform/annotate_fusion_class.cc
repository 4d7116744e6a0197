// annotate_fusion_class
//   Before: every tensor computation is a call_tir.
//   After:  every PrimFunc has the attribute "op_pattern", the number of its op::FusionClass, found by analysis of what
//           its blocks read and write (TVM's AnnotateTIROpPattern makes the same distinctions). An attribute that is
//           there already is kept.
//   Before fuse_ops, which reads it. The class comes from analysis rather than from the operator table, so that
//   hand-written functions and those of later passes count alike.
//
// A function has the class of its most rigid block. For a block that stores out[v0, v1, ...] at its own variables:
//   elementwise  every load reads at (v0, v1, ...), or some do and the rest are broadcast
//   broadcast    every load reads at some of the variables in their order, or at constants
//   injective    every load reads at expressions of its data-parallel variables alone
//   out-fusible  a reduction of products (matmul, convolution, products of bytes), one over moving windows (pooling), or a reduction with
//                an elementwise block after it that computes the result (softmax)
//   reduction    any other reduction
//   opaque       everything else, and a function that is no sequence of blocks
#include <algorithm>
#include <unordered_set>
#include <vector>

#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/fusion_class.h"
#include "compiler/transform/passes.h"

namespace ingot::transform {

using ir::As;
using ir::PrimExpr;
using op::FusionClass;

namespace {

using VarSet = std::unordered_set<const ir::PrimVarNode*>;

bool SameIndices(const std::vector<PrimExpr>& a, const std::vector<PrimExpr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const PrimExpr& x, const PrimExpr& y) { return ir::StructuralEqual(x, y); });
}

// Whether the indices are some of the store's variables in their order; constants in between are axes of extent one.
bool IsBroadcastRead(const std::vector<PrimExpr>& load, const std::vector<PrimExpr>& store) {
  size_t next = 0;
  for (const PrimExpr& index : load) {
    if (ir::AsConstInt(index)) continue;
    while (next < store.size() && !store[next].same_as(index)) ++next;
    if (next == store.size()) return false;
    ++next;
  }
  return true;
}

bool UsesOnly(const PrimExpr& expr, const VarSet& allowed) {
  const std::vector<ir::PrimVar> vars = ir::FreePrimVars(expr);
  return std::all_of(vars.begin(), vars.end(), [&](const ir::PrimVar& var) { return allowed.contains(var.get()); });
}

// Collects the loads of an expression, and notes whether it holds anything that must not be moved.
class LoadCollector : public ir::PrimVisitor {
 public:
  std::vector<const ir::BufferLoadNode*> loads;
  bool has_effect = false;

 protected:
  using ir::PrimVisitor::Visit;
  void Visit(const ir::BufferLoadNode& load) override {
    loads.push_back(&load);
    ir::PrimVisitor::Visit(load);
  }
  void Visit(const ir::PrimCallNode& call) override {
    has_effect |= ir::GetIntrinsicRow(call.op).traits != ir::IntrinsicRow::kPure;
    ir::PrimVisitor::Visit(call);
  }
};

bool IsLoadOf(const PrimExpr& expr, const ir::BufferStoreNode& store) {
  const auto* load = As<ir::BufferLoadNode>(expr);
  return load != nullptr && load->buffer.same_as(store.buffer) && SameIndices(load->indices, store.indices);
}

// a * b, T.dot_bytes(a, b), or a sum of such, casts ignored.
bool IsProduct(PrimExpr value) {
  while (const auto* cast = As<ir::CastNode>(value)) value = cast->value;
  const auto* binary = As<ir::BinaryNode>(value);
  const auto* call = As<ir::PrimCallNode>(value);
  if (binary == nullptr) return call != nullptr && call->op == ir::Intrinsic::kDotBytes;
  return binary->op == ir::BinaryOp::kMul ||
         (binary->op == ir::BinaryOp::kAdd && IsProduct(binary->a) && IsProduct(binary->b));
}

// C[...] = C[...] + products.
bool IsSumOfProducts(const ir::BufferStoreNode& store) {
  const auto* sum = As<ir::BinaryNode>(store.value);
  if (sum == nullptr || sum->op != ir::BinaryOp::kAdd) return false;
  const PrimExpr* term = IsLoadOf(sum->a, store) ? &sum->b : IsLoadOf(sum->b, store) ? &sum->a : nullptr;
  return term != nullptr && IsProduct(*term);
}

class Classifier : public ir::StmtVisitor {
 public:
  explicit Classifier(const ir::PrimFunc& function) {
    for (const ir::PrimFuncParam& param : function->params) {
      if (param.buffer.get() != nullptr) parameters_.insert(param.buffer.get());
    }
    const auto* root = As<ir::BlockRealizeNode>(function->body);
    if (root == nullptr || !root->block->iter_vars.empty()) {
      Raise(FusionClass::kOpaque);
      return;
    }
    VisitStmt(root->block->body);
    if (!has_block_) Raise(FusionClass::kOpaque);
  }
  FusionClass result() const { return result_; }

 protected:
  using ir::StmtVisitor::Visit;
  // Between the blocks only plain loops are supported.
  void Visit(const ir::BufferStoreNode&) override { Raise(FusionClass::kOpaque); }
  void Visit(const ir::EvaluateNode&) override { Raise(FusionClass::kOpaque); }
  void Visit(const ir::IfStmtNode&) override { Raise(FusionClass::kOpaque); }
  void Visit(const ir::WhileNode&) override { Raise(FusionClass::kOpaque); }
  void Visit(const ir::LetStmtNode&) override { Raise(FusionClass::kOpaque); }
  void Visit(const ir::AssertStmtNode&) override { Raise(FusionClass::kOpaque); }
  void Visit(const ir::AllocateNode&) override { Raise(FusionClass::kOpaque); }
  void Visit(const ir::AttrStmtNode&) override { Raise(FusionClass::kOpaque); }
  void Visit(const ir::ForNode& loop) override {
    if (loop.for_kind != ir::ForKind::kSerial) Raise(FusionClass::kOpaque);  // the function is scheduled already
    VisitStmt(loop.body);
  }
  void Visit(const ir::BlockRealizeNode& realize) override {
    has_block_ = true;
    const FusionClass block = OfBlock(*realize.block);
    // A reduction whose result the last block broadcasts over its inputs again, as softmax does.
    if (result_ == FusionClass::kReduction && block <= FusionClass::kInjective && WritesParameter(*realize.block)) {
      Raise(FusionClass::kOutFusible);
    } else {
      Raise(block);
    }
  }

 private:
  void Raise(FusionClass to) { result_ = std::max(result_, to); }
  bool WritesParameter(const ir::BlockNode& block) const {
    return std::any_of(block.writes.begin(), block.writes.end(),
                       [&](const ir::BufferRegion& region) { return parameters_.contains(region.buffer.get()); });
  }

  static FusionClass OfBlock(const ir::BlockNode& block) {
    const auto* store = As<ir::BufferStoreNode>(block.body);
    if (store == nullptr || !block.match_buffers.empty() || !block.alloc_buffers.empty()) return FusionClass::kOpaque;
    VarSet spatial, all;
    bool has_reduction = false;
    for (const ir::IterVar& iter : block.iter_vars) {
      all.insert(iter->var.get());
      if (iter->type == ir::IterType::kSpatial) {
        spatial.insert(iter->var.get());
      } else if (iter->type == ir::IterType::kReduce) {
        has_reduction = true;
      } else {
        return FusionClass::kOpaque;
      }
    }
    for (const PrimExpr& index : store->indices) {
      const auto* var = As<ir::PrimVarNode>(index);
      if (!ir::AsConstInt(index) && (var == nullptr || !spatial.contains(var))) return FusionClass::kOpaque;
    }
    LoadCollector collector;
    collector.VisitPrim(store->value);
    if (collector.has_effect) return FusionClass::kOpaque;
    if (has_reduction) return OfReduction(block, *store, collector.loads, all);
    return OfMap(*store, collector.loads, spatial);
  }

  static FusionClass OfMap(const ir::BufferStoreNode& store, const std::vector<const ir::BufferLoadNode*>& loads,
                           const VarSet& spatial) {
    bool has_elementwise = false;
    FusionClass result = FusionClass::kElementwise;
    for (const ir::BufferLoadNode* load : loads) {
      if (load->buffer.same_as(store.buffer)) return FusionClass::kOpaque;
      if (SameIndices(load->indices, store.indices)) {
        has_elementwise = true;
      } else if (IsBroadcastRead(load->indices, store.indices)) {
        result = std::max(result, FusionClass::kBroadcast);
      } else if (std::all_of(load->indices.begin(), load->indices.end(),
                             [&](const PrimExpr& index) { return UsesOnly(index, spatial); })) {
        result = std::max(result, FusionClass::kInjective);
      } else {
        return FusionClass::kOpaque;
      }
    }
    return result == FusionClass::kBroadcast && has_elementwise ? FusionClass::kElementwise : result;
  }

  static FusionClass OfReduction(const ir::BlockNode& block, const ir::BufferStoreNode& store,
                                 const std::vector<const ir::BufferLoadNode*>& loads, const VarSet& all) {
    if (block.init.get() == nullptr) return FusionClass::kOpaque;
    if (IsSumOfProducts(store)) return FusionClass::kOutFusible;
    bool reads_itself = false, has_window = false;
    for (const ir::BufferLoadNode* load : loads) {
      if (load->buffer.same_as(store.buffer)) {
        if (!SameIndices(load->indices, store.indices)) return FusionClass::kOpaque;
        reads_itself = true;
        continue;
      }
      for (const PrimExpr& index : load->indices) {
        if (!UsesOnly(index, all)) return FusionClass::kOpaque;
        has_window |= As<ir::PrimVarNode>(index) == nullptr && !ir::AsConstInt(index);
      }
    }
    if (!reads_itself) return FusionClass::kOpaque;
    return has_window ? FusionClass::kOutFusible : FusionClass::kReduction;
  }

  std::unordered_set<const ir::BufferNode*> parameters_;
  FusionClass result_ = FusionClass::kElementwise;
  bool has_block_ = false;
};

}  // namespace

FusionClass ClassifyFusion(const ir::PrimFunc& function) { return Classifier(function).result(); }

FusionClass FusionClassOf(const ir::PrimFunc& function) {
  const ir::AttrValue* attribute = function->attrs.Find(kOpPatternAttr);
  const int64_t* number = attribute == nullptr ? nullptr : attribute->get<int64_t>();
  if (number == nullptr) return FusionClass::kOpaque;
  for (FusionClass known : {FusionClass::kElementwise, FusionClass::kBroadcast, FusionClass::kInjective,
                            FusionClass::kReduction, FusionClass::kOutFusible}) {
    if (*number == static_cast<int64_t>(known)) return known;
  }
  return FusionClass::kOpaque;
}

Result<ir::IRModule> AnnotateFusionClass(ir::IRModule module, PassContext&) {
  const std::vector<ir::IRModule::Entry> entries = module.functions();
  for (const ir::IRModule::Entry& entry : entries) {
    const ir::PrimFunc function = ir::AsRef<ir::PrimFuncNode>(entry.function);
    if (function == nullptr || function->attrs.Find(kOpPatternAttr) != nullptr) continue;
    ir::PrimFuncNode copy = *function;
    copy.attrs = copy.attrs.With(kOpPatternAttr, static_cast<int64_t>(ClassifyFusion(function)));
    module.Set(entry.var, ir::Make<ir::PrimFuncNode>(std::move(copy)));
  }
  return module;
}

}  // namespace ingot::transform
