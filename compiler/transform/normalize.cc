// normalize
//   Before: a module as a front end made it: calls may nest, types may be absent.
//   After:  A-normal form: the arguments of every call are variables or leaves (constants, shapes, tuples of such);
//           every expression and variable has its inferred type, and an annotation that contradicts it is an error.
//           What a call assumes about its operands' dims (op/assumed_dims.h) is proved, or a match_cast in front of it
//           compares them when the program runs.
//   First, since every other pass relies on it. Existing types are kept where nothing below them changed.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "compiler/ir/structural.h"
#include "compiler/ir/type_join.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/assumed_dims.h"
#include "compiler/op/registry.h"
#include "compiler/op/verifier.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"
#include "runtime/tensor.h"

namespace ingot::transform {

using ir::As;
using ir::Binding;
using ir::Expr;
using ir::Ref;
using ir::Type;

namespace {

// Returns false if the two types cannot describe the same value.
bool Compatible(const Type& annotated, const Type& inferred) {
  if (annotated->kind == ir::TypeKind::kObject || inferred->kind == ir::TypeKind::kObject) return true;
  if (annotated->kind != inferred->kind) return false;
  const auto dims_compatible = [](const auto& a, const auto& b) {
    if (a.rank >= 0 && b.rank >= 0 && a.rank != b.rank) return false;
    if (!a.dims.has_value() || !b.dims.has_value()) return true;
    for (size_t i = 0; i < a.dims->size(); ++i) {
      const auto x = ir::AsConstInt((*a.dims)[i]);
      const auto y = ir::AsConstInt((*b.dims)[i]);
      if (x && y && *x != *y) return false;
    }
    return true;
  };
  if (const auto* a = As<ir::TensorTypeNode>(annotated)) {
    const auto* b = As<ir::TensorTypeNode>(inferred);
    if (a->dtype.has_value() && b->dtype.has_value() && *a->dtype != *b->dtype) return false;
    return dims_compatible(*a, *b);
  }
  if (const auto* a = As<ir::ShapeTypeNode>(annotated)) return dims_compatible(*a, *As<ir::ShapeTypeNode>(inferred));
  if (const auto* a = As<ir::TupleTypeNode>(annotated)) {
    const auto* b = As<ir::TupleTypeNode>(inferred);
    if (a->fields.size() != b->fields.size()) return false;
    for (size_t i = 0; i < a->fields.size(); ++i) {
      if (!Compatible(a->fields[i], b->fields[i])) return false;
    }
    return true;
  }
  if (const auto* a = As<ir::PrimTypeNode>(annotated)) return a->dtype == As<ir::PrimTypeNode>(inferred)->dtype;
  return true;
}

Type TypeOf(const ir::FunctionNode& function) {
  std::vector<Type> params;
  for (const ir::Var& param : function.params) params.push_back(param->type);
  return ir::Make<ir::CallableTypeNode>(std::move(params), function.result_type, function.is_pure);
}

// The comparisons of dims that the current scopes have made, found by their hash, so that a module of very many
// comparisons takes no time for each pair of them.
class ComparedDims {
 public:
  bool Has(const op::AssumedDim& dim) const {
    const auto [begin, end] = by_hash_.equal_range(HashOf(dim));
    return std::any_of(begin, end, [&](const auto& entry) {
      return ir::StructuralEqual(dim.actual, entry.second.actual) &&
             ir::StructuralEqual(dim.expected, entry.second.expected);
    });
  }
  void Add(const op::AssumedDim& dim) { order_.push_back(by_hash_.emplace(HashOf(dim), dim)); }
  size_t size() const { return order_.size(); }
  // Forgets the latest comparisons, so that `size` are left.
  void Shrink(size_t size) {
    for (; order_.size() > size; order_.pop_back()) by_hash_.erase(order_.back());
  }

 private:
  static uint64_t HashOf(const op::AssumedDim& dim) {
    return ir::IdentityHash(dim.actual) * 31 + ir::IdentityHash(dim.expected);
  }

  using ByHash = std::unordered_multimap<uint64_t, op::AssumedDim>;
  ByHash by_hash_;
  std::vector<ByHash::iterator> order_;
};

class Normalizer : public ir::ExprMutator {
 public:
  explicit Normalizer(const ir::IRModule& module) : module_(module) {}

  Result<ir::Function> Run(const ir::Function& function) {
    const ir::Function body_normalised = MutateFunction(function);
    if (!status_.ok()) return status_;
    if (body_normalised->result_type.get() != nullptr) {
      if (!Compatible(body_normalised->result_type, body_normalised->body->type)) {
        return Status(StatusCode::kBadInput, "the declared result type contradicts the body's");
      }
      return body_normalised;
    }
    ir::FunctionNode copy = *body_normalised;
    copy.result_type = copy.body->type;
    return ir::Make<ir::FunctionNode>(std::move(copy));
  }

 protected:
  void MutateBinding(const Binding& binding) override {
    if (!status_.ok()) return;
    place_ = &binding;
    Binding result = binding;
    result.value = MutateExpr(binding.value);
    place_ = &binding;
    const auto* function = As<ir::FunctionNode>(result.value);
    const Type type = binding.is_match_cast() ? binding.match_cast
                      : function != nullptr   ? TypeOf(*function)
                                              : result.value->type;
    if (!status_.ok()) return;
    if (type == nullptr) return Fail("its type cannot be inferred");
    if (!binding.is_match_cast() && binding.var->type.get() != nullptr && !Compatible(binding.var->type, type)) {
      return Fail("its annotation contradicts the type of its value");
    }
    if (binding.var->type == nullptr || !ir::StructuralEqual(binding.var->type, type)) {
      ir::VarNode var = *binding.var;
      var.type = type;
      result.var = ir::Make<ir::VarNode>(std::move(var));
      var_map_[binding.var] = result.var;
    }
    RememberComparison(result);
    Emit(std::move(result));
  }

  Expr Mutate(const ir::Call& call) override {
    ir::CallNode copy = *call;
    bool changed = false;
    for (Expr& arg : copy.args) changed |= Replace(arg, Atom(arg));
    changed |= Replace(copy.callee, MutateExpr(copy.callee));
    if (!changed && call->type.get() != nullptr) {
      CompareDims(call);
      return call;
    }
    copy.type = nullptr;
    ir::Call untyped = ir::Make<ir::CallNode>(std::move(copy));
    Result<Type> type = op::InferCallType(module_, untyped);
    if (!type.ok()) {
      Fail(type.status().message());
      return call;
    }
    ir::CallNode typed = *untyped;
    typed.type = *type;
    ir::Call checked = ir::Make<ir::CallNode>(std::move(typed));
    CompareDims(checked);
    return checked;
  }
  Expr Mutate(const Ref<ir::TupleNode>& tuple) override {
    std::vector<Expr> fields = tuple->fields;
    bool changed = tuple->type == nullptr;
    for (Expr& field : fields) changed |= Replace(field, Atom(field));
    if (!changed) return tuple;
    std::vector<Type> types;
    for (const Expr& field : fields) types.push_back(field->type);
    ir::TupleNode copy = *tuple;
    copy.fields = std::move(fields);
    copy.type = ir::Make<ir::TupleTypeNode>(std::move(types));
    return ir::Make<ir::TupleNode>(std::move(copy));
  }
  Expr Mutate(const Ref<ir::TupleGetItemNode>& item) override {
    const Expr tuple = Atom(item->tuple);
    if (tuple.same_as(item->tuple) && item->type.get() != nullptr) return item;
    const auto* type = As<ir::TupleTypeNode>(tuple->type);
    if (type == nullptr || item->index < 0 || item->index >= static_cast<int64_t>(type->fields.size())) {
      Fail("element " + std::to_string(item->index) + " of what is no tuple of that many");
      return item;
    }
    ir::TupleGetItemNode copy = *item;
    copy.tuple = tuple;
    copy.type = type->fields[item->index];
    return ir::Make<ir::TupleGetItemNode>(std::move(copy));
  }
  Expr Mutate(const Ref<ir::IfNode>& node) override {
    ir::IfNode copy = *node;
    bool changed = node->type == nullptr;
    changed |= Replace(copy.condition, Atom(copy.condition));
    const Expr then_branch = MutateExpr(copy.then_branch), else_branch = MutateExpr(copy.else_branch);
    if (!status_.ok()) return node;
    changed |= then_branch.get() != node->then_branch.get() || else_branch.get() != node->else_branch.get();
    if (!changed) return node;
    copy.then_branch = ir::Downcast<ir::SeqExprNode>(then_branch);
    copy.else_branch = ir::Downcast<ir::SeqExprNode>(else_branch);
    copy.type = ir::JoinTypes(then_branch->type, else_branch->type);
    return ir::Make<ir::IfNode>(std::move(copy));
  }
  Expr Mutate(const ir::SeqExpr& seq) override {
    const size_t num_compared = compared_.size();
    const Expr mutated = ir::ExprMutator::Mutate(seq);
    compared_.Shrink(num_compared);  // dims compared in a branch are not compared behind it
    const auto* result = As<ir::SeqExprNode>(mutated);
    if (!status_.ok() || (op::IsLeaf(result->body) && result->type.get() != nullptr)) return mutated;
    // The result is a call: it is bound, as the last binding outside of dataflow blocks.
    ir::SeqExprNode copy = *result;
    if (!op::IsLeaf(copy.body)) {
      const ir::Var var = ir::Make<ir::VarNode>("gv", copy.body->type);
      if (copy.blocks.empty() || copy.blocks.back().is_dataflow) copy.blocks.emplace_back();
      copy.blocks.back().bindings.push_back({var, copy.body, nullptr, copy.body->span});
      copy.body = var;
    }
    copy.type = copy.body->type;
    return ir::Make<ir::SeqExprNode>(std::move(copy));
  }

 private:
  static bool Replace(Expr& slot, Expr with) {
    if (slot.same_as(with)) return false;
    slot = std::move(with);
    return true;
  }
  // Returns the expression as a leaf: any other expression is bound to a variable here.
  Expr Atom(const Expr& expr) {
    Expr value = MutateExpr(expr);
    if (!status_.ok() || op::IsLeaf(value)) return value;
    return EmitValue(std::move(value), "lv");
  }
  // Compares the dims that the call assumes to be equal, if that is not proved and was not compared before:
  //   _ = R.match_cast(R.shape([m]), R.Shape([n]))
  void CompareDims(const ir::Call& call) {
    std::vector<ir::PrimExpr> actual, expected;
    for (op::AssumedDim& dim : op::UnprovedDims(call)) {
      if (compared_.Has(dim)) continue;
      compared_.Add(dim);
      actual.push_back(std::move(dim.actual));
      expected.push_back(std::move(dim.expected));
      if (actual.size() == kMaxRank) EmitComparison(call, std::exchange(actual, {}), std::exchange(expected, {}));
    }
    if (!actual.empty()) EmitComparison(call, std::move(actual), std::move(expected));
  }
  // Emits a comparison of at most kMaxRank pairs, the limit of a shape.
  void EmitComparison(const ir::Call& call, std::vector<ir::PrimExpr> actual, std::vector<ir::PrimExpr> expected) {
    const auto* op = As<ir::OpNode>(call->callee);
    const Type matched = ir::Make<ir::ShapeTypeNode>(std::move(expected));
    const std::string& name = op->name;
    const bool is_dataflow = current_block_->is_dataflow;
    Emit({ir::Make<ir::VarNode>("dims_of_" + name.substr(name.rfind('.') + 1), matched, is_dataflow),
          ir::Make<ir::ShapeExprNode>(std::move(actual)), matched, call->span});
  }
  void RememberComparison(const Binding& binding) {
    const auto* shape = As<ir::ShapeExprNode>(binding.value);
    const auto* matched = binding.is_match_cast() ? As<ir::ShapeTypeNode>(binding.match_cast) : nullptr;
    if (shape == nullptr || matched == nullptr || !matched->dims || matched->dims->size() != shape->dims.size()) return;
    for (size_t i = 0; i < shape->dims.size(); ++i) compared_.Add({shape->dims[i], (*matched->dims)[i]});
  }

  void Fail(const std::string& message) {
    if (!status_.ok()) return;
    std::string where;
    if (place_ != nullptr) {
      if (place_->span.is_known()) where = place_->span.ToString() + ": ";
      where += "binding \"" + place_->var->name + "\": ";
    }
    status_ = Status(StatusCode::kBadInput, where + message);
  }

  const ir::IRModule& module_;
  const Binding* place_ = nullptr;
  ComparedDims compared_;
  Status status_;
};

}  // namespace

Result<ir::IRModule> Normalize(ir::IRModule module, PassContext&) {
  const ir::IRModule original = module;
  return MapFunctions(std::move(module), [&original](const ir::GlobalVar&, const ir::Function& function) {
    return Normalizer(original).Run(function);
  });
}

}  // namespace ingot::transform
