// fuse_ops
//   Before: tensor computations are call_tir of functions with fusion classes.
//   After:  calls that should run as one are calls of private functions with the attribute "Primitive", which hold them
//           and nothing else; equal groups share a function. Constants become arguments.
//   After legalising and classes; before fuse_tir, which turns each group into one tensor function.
//
// fusion_partition.cc decides what is grouped; only calls with one result and without tir_vars take part. Under strict
// permissions, a call whose result is a product is the last of its group: sums in the kernel would not round it.
// A transposition that mark_transpositions has marked joins the one matrix product whose right factor it makes: the
// product copies that factor into panels in any case.
#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/transform/fusion_class.h"
#include "compiler/transform/fusion_partition.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/transposed_factor.h"

namespace ingot::transform {

using ir::As;
using ir::AsRef;
using ir::Binding;
using ir::Expr;
using op::FusionClass;

namespace {

// Returns a call that may join a group, or nothing.
std::optional<CallTir> AsFusible(const ir::IRModule& module, const Binding& binding) {
  if (binding.is_match_cast()) return std::nullopt;
  std::optional<CallTir> call = AsCallTir(binding.value);
  if (!call.has_value() || call->tir_vars.get() != nullptr || call->results.size() != 1 ||
      !HasKnownShape(call->results[0])) {
    return std::nullopt;
  }
  const ir::PrimFunc function = module.FindPrimFunc(call->callee->name);
  if (function == nullptr || FusionClassOf(function) > FusionClass::kOutFusible) return std::nullopt;
  // A function that is no sequence of blocks, or is scheduled, stays as it is, whatever its annotation says.
  if (As<ir::BlockRealizeNode>(function->body) == nullptr || schedule::IsScheduled(function)) return std::nullopt;
  if (function->params.size() != call->args.size() + 1) return std::nullopt;
  for (const ir::PrimFuncParam& param : function->params) {
    if (param.buffer == nullptr) return std::nullopt;
  }
  for (const Expr& arg : call->args) {
    const bool is_leaf = As<ir::VarNode>(arg) != nullptr || As<ir::ConstantNode>(arg) != nullptr;
    if (!is_leaf || !HasKnownShape(arg->type)) return std::nullopt;
  }
  return call;
}

bool SameShape(const ir::Type& a, const ir::Type& b) {
  const auto& x = *As<ir::TensorTypeNode>(a)->dims;
  const auto& y = *As<ir::TensorTypeNode>(b)->dims;
  if (x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!ir::StructuralEqual(x[i], y[i])) return false;
  }
  return true;
}

// Whether a value that the function stores as its result is one that `matches` takes.
bool AnyResult(const ir::PrimFunc& function, const std::function<bool(const ir::PrimExpr& value)>& matches) {
  struct Finder : ir::StmtVisitor {
    using ir::StmtVisitor::Visit;
    void Visit(const ir::BufferStoreNode& store) override {
      found |= store.buffer.same_as(result) && (*matches)(store.value);
    }
    ir::Buffer result;
    const std::function<bool(const ir::PrimExpr& value)>* matches = nullptr;
    bool found = false;
  };
  Finder finder;
  finder.result = function->params.back().buffer;
  finder.matches = &matches;
  finder.VisitStmt(function->body);
  return finder.found;
}

// Whether the function's result is a product of floats that a sum in the same kernel takes unrounded
// (ExprEmitter::TryFusedMultiplyAdd). Sixteen-bit floats are rounded after every operation.
bool EndsInProduct(const ir::PrimFunc& function) {
  return AnyResult(function, [](const ir::PrimExpr& value) {
    const auto* product = As<ir::BinaryNode>(value);
    return product != nullptr && product->op == ir::BinaryOp::kMul && product->dtype.code == TypeCode::kFloat &&
           product->dtype.bits >= 32;
  });
}

// Whether the function's result shows elements of this buffer as they are, as permutations do.
bool ShowsElementOf(const ir::PrimFunc& function, const ir::Buffer& buffer) {
  return AnyResult(function, [&](const ir::PrimExpr& value) {
    const auto* load = As<ir::BufferLoadNode>(value);
    return load != nullptr && load->buffer.same_as(buffer);
  });
}

// Whether a function adds an element of this buffer to something, or subtracts it.
bool AddsElementOf(const ir::PrimFunc& function, const ir::Buffer& buffer) {
  struct Finder : ir::StmtVisitor {
    using ir::StmtVisitor::Visit;
    void Visit(const ir::BinaryNode& node) override {
      ir::StmtVisitor::Visit(node);
      if (node.op != ir::BinaryOp::kAdd && node.op != ir::BinaryOp::kSub) return;
      for (const ir::PrimExpr& operand : {node.a, node.b}) {
        const auto* load = As<ir::BufferLoadNode>(operand);
        found |= load != nullptr && load->buffer.same_as(added);
      }
    }
    ir::Buffer added;
    bool found = false;
  };
  Finder finder;
  finder.added = buffer;
  finder.VisitStmt(function->body);
  return finder.found;
}

// Returns for each binding of a block the index of its group's last binding (its own index: not grouped).
std::vector<size_t> GroupBindings(const ir::IRModule& module, const std::vector<Binding>& bindings, int32_t max_group,
                                  bool joins_products) {
  std::vector<FusionNode> nodes;
  std::vector<size_t> binding_of;
  std::unordered_map<ir::Var, int32_t, ir::RefHash, ir::RefSame> node_of;
  const auto function_of = [&](const Binding& binding) {
    return module.FindPrimFunc(AsCallTir(binding.value)->callee->name);
  };
  // Whether the node may be a transposition that nothing else would join.
  const auto transposes_alone = [&](int32_t node) {
    if (nodes[node].fusion != FusionClass::kInjective || !nodes[node].readers.empty()) return false;
    return std::ranges::none_of(AsCallTir(bindings[binding_of[node]].value)->args, [&](const Expr& arg) {
      const auto it = node_of.find(AsRef<ir::VarNode>(arg));
      return it != node_of.end() && nodes[it->second].fusion <= FusionClass::kInjective;
    });
  };
  for (size_t i = 0; i < bindings.size(); ++i) {
    const std::optional<CallTir> call = AsFusible(module, bindings[i]);
    if (!call.has_value()) {
      ForEachUse(bindings[i].value, [&](const ir::Var& used) {
        if (const auto it = node_of.find(used); it != node_of.end()) nodes[it->second].is_visible = true;
      });
      continue;
    }
    const FusionClass fusion = FusionClassOf(module.FindPrimFunc(call->callee->name));
    const auto index = static_cast<int32_t>(nodes.size());
    for (size_t a = 0; a < call->args.size(); ++a) {
      const Expr& arg = call->args[a];
      const auto it = node_of.find(AsRef<ir::VarNode>(arg));
      if (it == node_of.end()) continue;
      if (fusion == FusionClass::kOutFusible && transposes_alone(it->second) &&
          MayJoinProduct(function_of(bindings[binding_of[it->second]]), function_of(bindings[i]), a)) {
        nodes[it->second].fusion = FusionClass::kBroadcast;  // joins a reduction
        nodes[it->second].readers.push_back({index, FusionClass::kReduction});
        continue;
      }
      // The reading is element by element if the shapes are equal; otherwise the argument is broadcast, and the reader
      // is no epilogue of the function that computes it.
      const bool is_map = fusion <= FusionClass::kBroadcast;
      const bool same_shape = is_map && SameShape(arg->type, call->results[0]);
      const FusionClass reading = same_shape ? FusionClass::kElementwise : is_map ? FusionClass::kBroadcast : fusion;
      nodes[it->second].readers.push_back({index, reading});
    }
    // A variable that leaves the block is read outside.
    const bool is_visible =
        !bindings[i].var->is_dataflow || (!joins_products && EndsInProduct(module.FindPrimFunc(call->callee->name)));
    nodes.push_back({fusion, {}, is_visible, static_cast<int32_t>(call->args.size())});
    binding_of.push_back(i);
    node_of.emplace(bindings[i].var, index);
  }
  std::vector<size_t> last(bindings.size());
  for (size_t i = 0; i < last.size(); ++i) last[i] = i;
  const std::vector<int32_t> groups = PartitionFusion(nodes, max_group);
  for (size_t n = 0; n < groups.size(); ++n) last[binding_of[n]] = binding_of[groups[n]];
  return last;
}

// The function of one group, and the arguments of the call that takes its place.
struct Group {
  std::string name = "fused";
  ir::Function function;
  std::vector<Expr> args;
};

constexpr size_t kMaxNameLength = 80;

// The dims of a group's values in symbols of the group's own. A symbol that is some parameter's whole dim keeps its
// name, and formulas of such symbols stay formulas. Any other formula of a parameter's dim, such as (h + 1) // 2 without
// h, becomes a symbol; what members make of it are formulas of that. A symbol that a member's result alone has is given
// to the group as an extent.
class GroupDims {
 public:
  void AddSymbols(const ir::Type& param) {
    for (const ir::PrimExpr& dim : DimsOf(param)) {
      const ir::PrimVar symbol = AsRef<ir::PrimVarNode>(dim);
      if (symbol.get() != nullptr && !inside_.contains(symbol)) NewSymbol(symbol, symbol->name);
    }
  }

  ir::Type OfParam(const ir::Type& type) {
    std::vector<ir::PrimExpr> dims;
    for (const ir::PrimExpr& dim : DimsOf(type)) dims.push_back(OfParamDim(dim));
    return WithDims(type, std::move(dims));
  }

  // The type of what the callee makes of arguments, nothing if it is not the call's own type.
  std::optional<ir::Type> OfResult(const ir::PrimFunc& callee, const std::vector<Expr>& args, const ir::Type& own) {
    if (IsBound(own)) return ir::Substitute(own, inside_);
    ir::PrimVarMap actual;
    for (size_t i = 0; i < args.size(); ++i) {
      const std::vector<ir::PrimExpr>& shape = callee->params[i].buffer->shape;
      for (size_t d = 0; d < shape.size(); ++d) {
        const ir::PrimVar symbol = AsRef<ir::PrimVarNode>(shape[d]);
        if (symbol.get() != nullptr) actual.emplace(symbol, DimsOf(args[i]->type)[d]);
      }
    }
    std::vector<ir::PrimExpr> dims;
    for (size_t d = 0; d < DimsOf(own).size(); ++d) {
      const ir::PrimExpr& made = callee->params.back().buffer->shape[d];
      const ir::PrimVar symbol = AsRef<ir::PrimVarNode>(made);
      if (symbol != nullptr && !actual.contains(symbol)) actual.emplace(symbol, Extent(DimsOf(own)[d]));
      dims.push_back(op::SimplifyDim(ir::Substitute(made, actual)));
      if (!op::DimsEqual(op::SimplifyDim(ir::Substitute(dims.back(), outside_)), DimsOf(own)[d])) return std::nullopt;
      known_.push_back({DimsOf(own)[d], dims.back()});
    }
    return WithDims(own, std::move(dims));
  }

  // The symbols that no parameter has, and what they stand for.
  const std::vector<ir::PrimExpr>& extents() const { return extents_; }
  const ir::PrimExpr& Outside(const ir::PrimExpr& symbol) const {
    return outside_.at(ir::Downcast<ir::PrimVarNode>(symbol));
  }

 private:
  static const std::vector<ir::PrimExpr>& DimsOf(const ir::Type& type) { return *As<ir::TensorTypeNode>(type)->dims; }
  static ir::Type WithDims(const ir::Type& type, std::vector<ir::PrimExpr> dims) {
    ir::TensorTypeNode copy = *As<ir::TensorTypeNode>(type);
    copy.dims = std::move(dims);
    return ir::Make<ir::TensorTypeNode>(std::move(copy));
  }

  ir::PrimExpr NewSymbol(const ir::PrimExpr& dim, const std::string& name) {
    const ir::PrimVar symbol = ir::MakePrimVar(name, dim->dtype);
    if (const ir::PrimVar lone = AsRef<ir::PrimVarNode>(dim); lone.get() != nullptr) inside_.emplace(lone, symbol);
    outside_.emplace(symbol, dim);
    known_.push_back({dim, symbol});
    return symbol;
  }

  template <typename Node>
  bool IsBound(const Node& node) const {
    return std::ranges::all_of(ir::FreePrimVars(node), [&](const ir::PrimVar& var) { return inside_.contains(var); });
  }

  ir::PrimExpr OfParamDim(const ir::PrimExpr& dim) {
    if (IsBound(dim)) return ir::Substitute(dim, inside_);
    if (const ir::PrimExpr* known = FindKnown(dim)) return *known;
    return NewSymbol(dim, "d" + std::to_string(known_.size()));
  }
  // What a dim of a result is that the callee takes from nothing but its result.
  ir::PrimExpr Extent(const ir::PrimExpr& dim) {
    if (IsBound(dim)) return ir::Substitute(dim, inside_);
    if (const ir::PrimExpr* known = FindKnown(dim)) return *known;
    return extents_.emplace_back(NewSymbol(dim, "e" + std::to_string(known_.size())));
  }
  const ir::PrimExpr* FindKnown(const ir::PrimExpr& dim) const {
    const auto known =
        std::ranges::find_if(known_, [&](const auto& row) { return ir::StructuralEqual(row.first, dim); });
    return known == known_.end() ? nullptr : &known->second;
  }

  ir::PrimVarMap inside_;                                     // symbols that are whole dims, to the group's
  ir::PrimVarMap outside_;                                    // the group's symbols, to what they stand for
  std::vector<std::pair<ir::PrimExpr, ir::PrimExpr>> known_;  // dims outside and inside
  std::vector<ir::PrimExpr> extents_;
};

// Gives the group its extents as a last parameter, a shape. False if its result does not have each of them as a dim,
// from which fuse_tir's tensor function takes it.
bool AddExtents(const GroupDims& dims, const ir::Type& result, Group& group, std::vector<ir::Var>& params) {
  if (dims.extents().empty()) return true;
  std::vector<ir::PrimExpr> outside;
  for (const ir::PrimExpr& extent : dims.extents()) {
    const auto is_extent = [&](const ir::PrimExpr& dim) { return dim.same_as(extent); };
    if (!std::ranges::any_of(*As<ir::TensorTypeNode>(result)->dims, is_extent)) return false;
    outside.push_back(dims.Outside(extent));
  }
  params.push_back(ir::Make<ir::VarNode>("extents", ir::Make<ir::ShapeTypeNode>(dims.extents())));
  group.args.push_back(ir::Make<ir::ShapeExprNode>(std::move(outside)));
  return true;
}

// Builds a function of the members' calls. Its parameters are the values from outside, by first use. Returns nothing if
// the dims that members make do not follow from the parameters'.
std::optional<Group> BuildGroup(const ir::IRModule& module, const std::vector<const Binding*>& members) {
  std::unordered_map<Expr, Expr, ir::RefHash, ir::RefSame> inside;  // arguments -> values inside of the function
  for (const Binding* member : members) inside.emplace(member->var, nullptr);
  Group group;
  GroupDims dims;
  for (const Binding* member : members) {
    const CallTir call = *AsCallTir(member->value);
    for (const Expr& arg : call.args) {
      if (!inside.emplace(arg, nullptr).second) continue;
      group.args.push_back(arg);
      dims.AddSymbols(arg->type);
    }
  }
  std::vector<ir::Var> params;
  ir::BindingBlock block;
  block.is_dataflow = true;
  for (const Binding* member : members) {
    CallTir call = *AsCallTir(member->value);
    if (group.name.size() < kMaxNameLength) group.name += "_" + call.callee->name;
    for (Expr& arg : call.args) {
      Expr& value = inside.at(arg);
      if (value == nullptr) {
        const auto* var = As<ir::VarNode>(arg);
        const std::string name = var != nullptr ? var->name : "param_" + std::to_string(params.size());
        value = params.emplace_back(ir::Make<ir::VarNode>(name, dims.OfParam(arg->type)));
      }
      arg = value;
    }
    const std::optional<ir::Type> result =
        dims.OfResult(module.FindPrimFunc(call.callee->name), call.args, call.results[0]);
    if (!result.has_value()) return std::nullopt;
    call.results[0] = *result;
    ir::CallNode value = *op::MakeCallTIR(call.callee, call.args, call.results);
    value.span = member->value->span;
    const bool is_last = member == members.back();
    const ir::Var var = ir::Make<ir::VarNode>(member->var->name, call.results[0], /*dataflow=*/!is_last);
    inside[member->var] = var;
    block.bindings.push_back({var, ir::Make<ir::CallNode>(std::move(value)), nullptr, member->span});
  }
  const ir::Var result = block.bindings.back().var;
  if (!AddExtents(dims, result->type, group, params)) return std::nullopt;
  const ir::SeqExpr body = ir::Make<ir::SeqExprNode>(std::vector<ir::BindingBlock>{std::move(block)}, result);
  group.function = ir::Make<ir::FunctionNode>(std::move(params), body, result->type, /*pure=*/true, /*priv=*/true,
                                              ir::Attrs{{kPrimitiveAttr, int64_t{1}}});
  return group;
}

class Fuser : public ir::ExprMutator {
 public:
  Fuser(ir::IRModule module, int32_t max_group, PassContext& context)
      : module_(std::move(module)), max_group_(max_group), context_(context) {}

  ir::IRModule Run() {
    const std::vector<ir::IRModule::Entry> entries = module_.functions();
    for (const ir::IRModule::Entry& entry : entries) {
      const ir::Function function = AsRef<ir::FunctionNode>(entry.function);
      if (function == nullptr || function->attrs.Find(kPrimitiveAttr) != nullptr) continue;
      module_.Set(entry.var, MutateFunction(function));
    }
    return std::move(module_);
  }

 protected:
  Expr Mutate(const ir::SeqExpr& seq) override {
    const Expr inner = ir::ExprMutator::Mutate(seq);  // branches and local functions
    ir::SeqExprNode copy = *ir::Downcast<ir::SeqExprNode>(inner);
    for (ir::BindingBlock& block : copy.blocks) {
      if (block.is_dataflow) block.bindings = FuseBlock(std::move(block.bindings));
    }
    return ir::Make<ir::SeqExprNode>(std::move(copy));
  }

 private:
  std::vector<Binding> FuseBlock(std::vector<Binding> bindings) {
    const bool joins_products = IsPermitted(RewriteId::kFusedMultiplyAdd, context_.options.rewrites);
    const std::vector<size_t> last = GroupBindings(module_, bindings, max_group_, joins_products);
    std::vector<std::vector<const Binding*>> members(bindings.size());
    for (size_t i = 0; i < bindings.size(); ++i) members[last[i]].push_back(&bindings[i]);
    std::vector<std::optional<Binding>> fused(bindings.size());
    std::vector<bool> is_taken(bindings.size());  // whether a group's call replaces the binding
    for (size_t i = 0; i < bindings.size(); ++i) {
      if (members[i].size() < 2) continue;
      const std::optional<Group> group = BuildGroup(module_, members[i]);
      if (!group.has_value()) continue;
      LogMultiplyAdds(members[i]);
      ir::CallNode call(FunctionOf(*group), group->args, {}, {}, bindings[i].var->type);
      call.span = members[i][0]->value->span;  // the anchor is usually the first
      fused[i] = Binding{bindings[i].var, ir::Make<ir::CallNode>(std::move(call)), nullptr, members[i][0]->span};
      for (const Binding* member : members[i]) is_taken[static_cast<size_t>(member - bindings.data())] = true;
    }
    std::vector<Binding> result;
    for (size_t i = 0; i < bindings.size(); ++i) {
      if (fused[i].has_value()) {
        result.push_back(*std::move(fused[i]));
      } else if (!is_taken[i]) {
        result.push_back(bindings[i]);
      }
    }
    return result;
  }

  // Logs the calls of a group that add a product which another member computes, also behind permutations.
  void LogMultiplyAdds(const std::vector<const Binding*>& members) {
    std::unordered_set<const ir::VarNode*> products;
    for (const Binding* member : members) {
      const CallTir call = *AsCallTir(member->value);
      const ir::PrimFunc function = module_.FindPrimFunc(call.callee->name);
      bool adds = false, is_product = EndsInProduct(function);
      for (size_t i = 0; i < call.args.size(); ++i) {
        if (!products.contains(As<ir::VarNode>(call.args[i]))) continue;
        adds |= AddsElementOf(function, function->params[i].buffer);
        is_product |= ShowsElementOf(function, function->params[i].buffer);
      }
      if (adds) context_.rewrites.Count(RewriteId::kFusedMultiplyAdd, call.callee->name, member->value->span);
      if (is_product) products.insert(member->var.get());
    }
  }

  // Equal groups share a function.
  ir::GlobalVar FunctionOf(const Group& group) {
    const auto [first, last] = functions_.equal_range(ir::StructuralHash(Expr(group.function)));
    for (auto it = first; it != last; ++it) {
      if (ir::StructuralEqual(Expr(it->second.second), Expr(group.function))) return it->second.first;
    }
    const ir::GlobalVar var = module_.Add(group.name, group.function);
    functions_.emplace(ir::StructuralHash(Expr(group.function)), std::pair(var, group.function));
    return var;
  }

  ir::IRModule module_;
  const int32_t max_group_;
  PassContext& context_;
  std::unordered_multimap<uint64_t, std::pair<ir::GlobalVar, ir::Function>> functions_;
};

}  // namespace

Result<ir::IRModule> FuseOps(ir::IRModule module, PassContext& context) {
  const int64_t max_group = std::min<int64_t>(context.options.fuse_max_group, std::numeric_limits<int32_t>::max());
  return Fuser(std::move(module), static_cast<int32_t>(max_group), context).Run();
}

}  // namespace ingot::transform
