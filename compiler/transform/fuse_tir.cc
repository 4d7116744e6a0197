// fuse_tir
//   Before: private "Primitive" functions hold groups of call_tir (fuse_ops), extents of the result as their last
//           parameter where no tensor has them.
//   After:  each of them is one PrimFunc, and its callers call_tir it: the blocks of the members follow each other, and
//           values between them are in buffers that the root block allocates. Nothing is inlined here; schedules do
//           that.
//   After fuse_ops. The next dead code elimination removes members whose functions are unused now.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"

namespace ingot::transform {

using ir::As;
using ir::AsRef;
using ir::Buffer;
using ir::Expr;
using ir::PrimExpr;
using ir::Stmt;

namespace {

// Copies a statement with new loop and iteration variables and new buffers, so that one function can be a member twice.
// Parameters and symbols that are mapped before keep their replacement.
class Copier : public ir::StmtMutator {
 public:
  // Names of blocks are unique in the fused function.
  explicit Copier(std::unordered_set<std::string>& block_names) : block_names_(block_names) {}

  void Map(const Buffer& from, const Buffer& to) { buffers_[from] = to; }
  // Binds the symbols of a parameter's shape to the caller's dims.
  void MapShape(const Buffer& param, const std::vector<PrimExpr>& dims) {
    for (size_t i = 0; i < param->shape.size(); ++i) {
      const ir::PrimVar symbol = AsRef<ir::PrimVarNode>(param->shape[i]);
      if (symbol.get() != nullptr) vars_.emplace(symbol, dims[i]);
    }
  }
  std::vector<Buffer> CopyBuffers(const std::vector<Buffer>& buffers) {
    std::vector<Buffer> copies;
    for (const Buffer& buffer : buffers) copies.push_back(CopyBuffer(buffer));
    return copies;
  }
  std::vector<PrimExpr> MutateAll(const std::vector<PrimExpr>& exprs) {
    std::vector<PrimExpr> result;
    for (const PrimExpr& expr : exprs) result.push_back(MutatePrim(expr));
    return result;
  }

 protected:
  using ir::StmtMutator::Mutate;
  Buffer MutateBuffer(const Buffer& buffer) override {
    const auto it = buffers_.find(buffer);
    return it == buffers_.end() ? buffer : it->second;
  }
  PrimExpr Mutate(const ir::PrimVar& var) override {
    const auto it = vars_.find(var);
    return it == vars_.end() ? PrimExpr(var) : it->second;
  }
  PrimExpr Mutate(const ir::Ref<ir::LetNode>& let) override {
    const PrimExpr value = MutatePrim(let->value);
    const ir::PrimVar var = CopyVar(let->var);
    return ir::Make<ir::LetNode>(var, value, MutatePrim(let->body));
  }
  Stmt Mutate(const ir::Ref<ir::ForNode>& loop) override {
    ir::ForNode copy = *loop;
    copy.min = MutatePrim(loop->min);
    copy.extent = MutatePrim(loop->extent);
    copy.var = CopyVar(loop->var);
    copy.body = MutateStmt(loop->body);
    return ir::Make<ir::ForNode>(std::move(copy));
  }
  Stmt Mutate(const ir::Block& block) override {
    ir::BlockNode copy = *block;
    for (int suffix = 1; !block_names_.insert(copy.name).second; ++suffix) {
      copy.name = block->name + "_" + std::to_string(suffix);
    }
    for (ir::IterVar& iter : copy.iter_vars) {
      ir::IterVarNode fresh = *iter;
      fresh.domain = {MutatePrim(iter->domain.min), MutatePrim(iter->domain.extent)};
      fresh.var = CopyVar(iter->var);
      iter = ir::Make<ir::IterVarNode>(std::move(fresh));
    }
    copy.alloc_buffers = CopyBuffers(block->alloc_buffers);
    for (ir::MatchBufferRegion& match : copy.match_buffers) {
      match.source = MutateRegion(match.source);
      match.buffer = CopyBuffer(match.buffer);
    }
    for (ir::BufferRegion& region : copy.reads) region = MutateRegion(region);
    for (ir::BufferRegion& region : copy.writes) region = MutateRegion(region);
    if (copy.init.get() != nullptr) copy.init = MutateStmt(copy.init);
    copy.body = MutateStmt(copy.body);
    return ir::Make<ir::BlockNode>(std::move(copy));
  }

 private:
  ir::PrimVar CopyVar(const ir::PrimVar& var) {
    const ir::PrimVar copy = ir::MakePrimVar(var->name, var->dtype);
    vars_[var] = copy;
    return copy;
  }
  Buffer CopyBuffer(const Buffer& buffer) {
    ir::BufferNode copy(buffer->name, buffer->dtype, MutateAll(buffer->shape), buffer->scope);
    copy.strides = MutateAll(buffer->strides);
    if (buffer->elem_offset.get() != nullptr) copy.elem_offset = MutatePrim(buffer->elem_offset);
    copy.alignment = buffer->alignment;
    return buffers_[buffer] = ir::Make<ir::BufferNode>(std::move(copy));
  }

  std::unordered_set<std::string>& block_names_;
  ir::PrimVarMap vars_;
  ir::BufferMap buffers_;
};

Buffer BufferOf(const std::string& name, const ir::Type& type) {
  const auto* tensor = As<ir::TensorTypeNode>(type);
  return ir::MakeBuffer(name, *tensor->dtype, *tensor->dims);
}

// Returns the tensor function that a member of a group calls; null if such a call cannot be merged.
ir::PrimFunc MemberFunction(const ir::IRModule& module, const ir::Binding& binding) {
  const std::optional<CallTir> call = AsCallTir(binding.value);
  if (!call || call->tir_vars != nullptr || call->results.size() != 1 || binding.is_match_cast()) return nullptr;
  const ir::PrimFunc function = module.FindPrimFunc(call->callee->name);
  if (function == nullptr || function->params.size() != call->args.size() + 1) return nullptr;
  const auto* root = As<ir::BlockRealizeNode>(function->body);
  if (root == nullptr || !root->block->iter_vars.empty() || root->block->init != nullptr) return nullptr;
  const bool takes_tensors =
      std::ranges::all_of(function->params, [](const ir::PrimFuncParam& param) { return param.buffer != nullptr; });
  const bool gives_tensor = HasKnownShape(call->results[0]);
  const bool takes_variables = std::ranges::all_of(
      call->args, [](const Expr& arg) { return As<ir::VarNode>(arg) != nullptr && HasKnownShape(arg->type); });
  return takes_tensors && takes_variables && gives_tensor ? function : nullptr;
}

// Whether the parameter is a shape of symbols that are dims of the group's result.
bool IsExtents(const ir::Type& param, const ir::Type& result) {
  const auto* shape = As<ir::ShapeTypeNode>(param);
  if (shape == nullptr || !shape->dims || !HasKnownShape(result)) return false;
  const auto& dims = *As<ir::TensorTypeNode>(result)->dims;
  return std::ranges::all_of(*shape->dims, [&](const PrimExpr& extent) {
    return AsRef<ir::PrimVarNode>(extent) != nullptr &&
           std::ranges::any_of(dims, [&](const PrimExpr& dim) { return dim.same_as(extent); });
  });
}

// Whether a function is a group of fuse_ops: private, tensors and perhaps extents in, one dataflow block of calls, the
// last one is the result.
bool IsGroup(const ir::IRModule& module, const ir::Function& group) {
  if (!group->is_private || group->body->blocks.size() != 1 || !group->body->blocks[0].is_dataflow) return false;
  for (const ir::Var& param : group->params) {
    const bool is_last = &param == &group->params.back();
    if (!HasKnownShape(param->type) && !(is_last && IsExtents(param->type, group->body->type))) return false;
  }
  const std::vector<ir::Binding>& bindings = group->body->blocks[0].bindings;
  for (const ir::Binding& binding : bindings) {
    const bool is_last = &binding == &bindings.back();
    if (MemberFunction(module, binding) == nullptr || binding.var->is_dataflow == is_last) return false;
  }
  return !bindings.empty() && As<ir::VarNode>(group->body->body) == bindings.back().var.get();
}

ir::PrimFunc MergeGroup(const ir::IRModule& module, const ir::Function& group) {
  std::unordered_map<ir::Var, Buffer, ir::RefHash, ir::RefSame> buffers;
  std::vector<ir::PrimFuncParam> params;
  const auto add_param = [&params](const Buffer& buffer) {
    params.push_back({ir::MakePrimVar(buffer->name + "_handle", DataType::Handle()), buffer});
  };
  for (const ir::Var& param : group->params) {
    if (As<ir::TensorTypeNode>(param->type) == nullptr) continue;  // extents: the result's buffer has them
    const Buffer buffer = buffers[param] = BufferOf(param->name, param->type);
    add_param(buffer);
  }
  std::unordered_set<std::string> block_names = {"root"};
  std::vector<Buffer> allocated;
  std::vector<Stmt> stmts;
  for (const ir::Binding& binding : group->body->blocks[0].bindings) {
    const CallTir call = *AsCallTir(binding.value);
    const ir::PrimFunc function = MemberFunction(module, binding);
    const bool is_result = !binding.var->is_dataflow;
    const std::string& inner_name = function->params.back().buffer->name;
    const Buffer result = buffers[binding.var] =
        BufferOf(is_result ? inner_name : inner_name + "_intermediate", binding.var->type);
    Copier copier(block_names);
    for (size_t i = 0; i < function->params.size(); ++i) {
      const Buffer& actual = i < call.args.size() ? buffers.at(AsRef<ir::VarNode>(call.args[i])) : result;
      copier.Map(function->params[i].buffer, actual);
      copier.MapShape(function->params[i].buffer, actual->shape);
    }
    const ir::Block root = ir::Downcast<ir::BlockRealizeNode>(function->body)->block;
    const std::vector<Buffer> inner = copier.CopyBuffers(root->alloc_buffers);
    allocated.insert(allocated.end(), inner.begin(), inner.end());
    stmts.push_back(copier.MutateStmt(root->body));
    if (is_result) {
      add_param(result);
    } else {
      allocated.push_back(result);
    }
  }
  ir::BlockNode root("root", {}, {}, {}, ir::MakeSeq(std::move(stmts)));
  root.alloc_buffers = std::move(allocated);
  const Stmt body = ir::Make<ir::BlockRealizeNode>(std::vector<PrimExpr>{}, ir::BoolImm(true),
                                                   ir::Make<ir::BlockNode>(std::move(root)));
  return ir::Make<ir::PrimFuncNode>(std::move(params), body, /*priv=*/true, ir::Attrs{{"tirx.noalias", true}});
}

// Makes calls of merged groups call_tir.
class CallRewriter : public ir::ExprMutator {
 public:
  explicit CallRewriter(const std::unordered_set<const ir::GlobalVarNode*>& merged) : merged_(merged) {}

 protected:
  using ir::ExprMutator::Mutate;
  Expr Mutate(const ir::Call& call) override {
    const ir::GlobalVar callee = AsRef<ir::GlobalVarNode>(call->callee);
    if (callee == nullptr || !merged_.contains(callee.get())) return call;
    std::vector<Expr> tensors = call->args;
    std::erase_if(tensors, [](const Expr& arg) { return As<ir::ShapeExprNode>(arg) != nullptr; });
    ir::CallNode rewritten = *op::MakeCallTIR(callee, std::move(tensors), {call->type});
    rewritten.span = call->span;
    return ir::Make<ir::CallNode>(std::move(rewritten));
  }

 private:
  const std::unordered_set<const ir::GlobalVarNode*>& merged_;
};

}  // namespace

Result<ir::IRModule> FuseTir(ir::IRModule module, PassContext&) {
  std::unordered_set<const ir::GlobalVarNode*> merged;
  const std::vector<ir::IRModule::Entry> entries = module.functions();
  for (const ir::IRModule::Entry& entry : entries) {
    const ir::Function function = AsRef<ir::FunctionNode>(entry.function);
    if (function == nullptr || function->attrs.Find(kPrimitiveAttr) == nullptr) continue;
    if (!IsGroup(module, function)) {
      return UnmetPrecondition("function \"" + entry.var->name +
                               "\" is marked as Primitive, and is no private group of call_tir as fuse_ops makes it");
    }
    module.Set(entry.var, MergeGroup(module, function));
    merged.insert(entry.var.get());
  }
  return MapFunctions(std::move(module),
                      [&](const ir::GlobalVar&, const ir::Function& function) -> Result<ir::Function> {
                        return CallRewriter(merged).MutateFunction(function);
                      });
}

}  // namespace ingot::transform
