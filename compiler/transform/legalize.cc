// One mutator for all functions of the module, since calls of an operator with equal attributes and types share the
// tensor functions that were built first. op::CheapestImplementation chooses the implementation.
#include "compiler/transform/legalize.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/ir/structural.h"
#include "compiler/ir/verify_prim_func.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/build.h"
#include "compiler/op/infer.h"
#include "compiler/op/narrow_calls.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"

namespace ingot::transform {
namespace {

using ir::Call;
using ir::Expr;

// A call of tensors in whose place formulas of dims, such as (h + 1) // 2 where no argument has the dim h, are symbols
// of their own: its function then need not be given h, and equal calls at other sizes share it.
class SymbolsForFormulas {
 public:
  // The call itself where it would not be the same of tensors of any dims.
  Call Generalised(const Call& call) {
    if (op::UnboundShapeVars(call).empty()) return call;
    for (const Expr& arg : call->args) CollectSymbols(arg->type);
    std::vector<Expr> args = call->args;
    for (Expr& arg : args) {
      if (!Generalise(arg)) return call;
    }
    const Result<Call> general = op::MakeCall(op::RowOf(call)->name, std::move(args), call->attrs);
    if (!general.ok() || !op::UnboundShapeVars(*general).empty()) return call;
    return IsOriginal((*general)->type, call->type) ? *general : call;
  }

 private:
  void CollectSymbols(const ir::Type& type) {
    if (const auto* tuple = ir::As<ir::TupleTypeNode>(type)) {
      for (const ir::Type& field : tuple->fields) CollectSymbols(field);
    }
    const auto* tensor = ir::As<ir::TensorTypeNode>(type);
    if (tensor == nullptr || !tensor->dims) return;
    for (const ir::PrimExpr& dim : *tensor->dims) {
      if (const ir::PrimVar symbol = ir::AsRef<ir::PrimVarNode>(dim)) bound_.insert(symbol);
    }
  }
  template <typename Node>
  bool IsBound(const Node& node) const {
    return std::ranges::all_of(ir::FreePrimVars(node), [&](const ir::PrimVar& var) { return bound_.contains(var); });
  }

  // Puts a variable in the place of an argument that is a tensor, or a tuple of tensors; false where symbols stand in
  // another argument.
  bool Generalise(Expr& arg) {
    if (const auto* tuple = ir::As<ir::TupleNode>(arg)) {
      std::vector<Expr> fields = tuple->fields;
      std::vector<ir::Type> types;
      for (Expr& field : fields) {
        if (!Generalise(field)) return false;
        types.push_back(field->type);
      }
      arg = ir::Make<ir::TupleNode>(std::move(fields), ir::Make<ir::TupleTypeNode>(std::move(types)));
      return true;
    }
    const auto* tensor = ir::As<ir::TensorTypeNode>(arg->type);
    if (tensor == nullptr) return IsFreeOfSymbols(arg);
    if (IsBound(arg->type)) return true;
    ir::TensorTypeNode copy = *tensor;
    for (ir::PrimExpr& dim : *copy.dims) dim = SymbolOf(dim);
    arg = ir::Make<ir::VarNode>("x", ir::Make<ir::TensorTypeNode>(std::move(copy)));
    return true;
  }
  static bool IsFreeOfSymbols(const Expr& arg) {
    if (const auto* shape = ir::As<ir::ShapeExprNode>(arg)) {
      return std::ranges::all_of(shape->dims, [](const ir::PrimExpr& dim) { return ir::FreePrimVars(dim).empty(); });
    }
    const auto* value = ir::As<ir::PrimValueNode>(arg);
    return value == nullptr || ir::FreePrimVars(value->value).empty();
  }

  ir::PrimExpr SymbolOf(const ir::PrimExpr& dim) {
    if (IsBound(dim)) return dim;
    for (const auto& [formula, symbol] : symbols_) {
      if (op::DimsEqual(formula, dim)) return symbol;
    }
    const ir::PrimVar symbol = ir::MakePrimVar("d" + std::to_string(symbols_.size()), dim->dtype);
    symbols_.push_back({dim, symbol});
    formulas_.emplace(symbol, dim);
    return symbol;
  }

  bool IsOriginal(const ir::Type& general, const ir::Type& original) const {
    const auto* tuple = ir::As<ir::TupleTypeNode>(general);
    if (const auto* other = ir::As<ir::TupleTypeNode>(original); tuple != nullptr && other != nullptr) {
      return std::ranges::equal(tuple->fields, other->fields,
                                [&](const ir::Type& a, const ir::Type& b) { return IsOriginal(a, b); });
    }
    const auto* a = ir::As<ir::TensorTypeNode>(general);
    const auto* b = ir::As<ir::TensorTypeNode>(original);
    if (a == nullptr || b == nullptr || !a->dims || !b->dims || a->dtype != b->dtype) return false;
    return std::ranges::equal(*a->dims, *b->dims, [&](const ir::PrimExpr& x, const ir::PrimExpr& y) {
      return op::DimsEqual(op::SimplifyDim(ir::Substitute(x, formulas_)), y);
    });
  }

  std::unordered_set<ir::PrimVar, ir::RefHash, ir::RefSame> bound_;  // symbols that are whole dims of arguments
  std::vector<std::pair<ir::PrimExpr, ir::PrimVar>> symbols_;
  ir::PrimVarMap formulas_;
};

class Legalizer : public ir::ExprMutator {
 public:
  Legalizer(ir::IRModule& module, const Target& target) : target_(target), shared_(module) {}

  const std::vector<std::string>& problems() const { return problems_; }

 protected:
  using ir::ExprMutator::Mutate;
  Expr Mutate(const ir::Ref<ir::CallNode>& original) override {
    const Expr mutated = ExprMutator::Mutate(original);
    const Call call = ir::AsRef<ir::CallNode>(mutated);
    const op::OpRow* row = call != nullptr ? op::RowOf(call) : nullptr;
    if (row == nullptr || row->is_view || row->is_primitive) return mutated;
    if (row->extents.count != 0) return CountAndFill(call, *row);
    const Result<Call> narrow = op::NarrowCall(OpenTuples(call), [&](const Call& part) {
      return EmitValue(LegalizeCall(part, *op::RowOf(part)), op::RowOf(part)->name);
    });
    return narrow.ok() ? LegalizeCall(*narrow, *row) : Problem(call, narrow.status());
  }
  // A tuple of very many results is not built: accesses to its fields become the fields themselves.
  void MutateBinding(const ir::Binding& binding) override {
    const auto* call = ir::As<ir::CallNode>(binding.value);
    const bool is_wide = call != nullptr && !binding.is_match_cast() && call->type &&
                         ResultTypes(ir::Ref<ir::CallNode>(call)).size() > op::kMaxTensorsOfCall;
    if (!is_wide) return ExprMutator::MutateBinding(binding);
    ir::Binding legalised = binding;
    legalised.value = MutateExpr(binding.value);
    // A tuple that leaves its dataflow block stays a variable.
    const bool is_made =
        ir::As<ir::TupleNode>(legalised.value) == nullptr || (current_block_->is_dataflow && !binding.var->is_dataflow);
    if (is_made) return ExprMutator::MutateBinding(legalised);
    var_map_[binding.var] = legalised.value;
  }
  Expr Mutate(const ir::Ref<ir::TupleGetItemNode>& item) override {
    const Expr tuple = MutateExpr(item->tuple);
    if (const auto* made = ir::As<ir::TupleNode>(tuple)) return made->fields.at(static_cast<size_t>(item->index));
    return ExprMutator::Mutate(item);
  }

 private:
  // Replaces an argument that is a variable holding a tuple by the tuple of its fields, so that each is a tensor
  // argument.
  Call OpenTuples(const Call& call) {
    ir::CallNode opened = *call;
    bool changed = false;
    for (Expr& arg : opened.args) {
      const auto* type = ir::As<ir::TupleTypeNode>(arg->type);
      if (type == nullptr || ir::As<ir::TupleNode>(arg) != nullptr) continue;
      std::vector<Expr> fields;
      for (size_t i = 0; i < type->fields.size(); ++i) {
        const auto index = static_cast<int64_t>(i);
        fields.push_back(EmitValue(ir::Make<ir::TupleGetItemNode>(arg, index, type->fields[i]), "field"));
      }
      arg = ir::Make<ir::TupleNode>(std::move(fields), arg->type);
      changed = true;
    }
    return changed ? ir::Make<ir::CallNode>(std::move(opened)) : call;
  }

  // counts: the call is a CountCall, which computes the extents of a dynamic output shape.
  Expr LegalizeCall(const Call& call, const op::OpRow& row, bool counts = false) {
    // Predicates and costs read the arguments' dims, so shapes are checked first.
    if (!HasKnownShapes(call)) return Problem(call, "needs arguments and results of known shape and dtype");
    const Call general = counts ? call : SymbolsForFormulas().Generalised(call);
    const std::vector<ir::GlobalVar> functions = FunctionsFor(general, row, counts);
    if (functions.empty()) return call;
    if (functions.size() > 1) return CallEach(call, functions);
    std::vector<ir::PrimExpr> shape_vars;
    for (const ir::PrimVar& shape_var : op::UnboundShapeVars(general)) shape_vars.push_back(shape_var);
    return CallOf(call, functions[0], OutTypes(call), std::move(shape_vars));
  }

  static Expr CallOf(const Call& call, const ir::GlobalVar& function, std::vector<ir::Type> types,
                     std::vector<ir::PrimExpr> shape_vars = {}) {
    ir::CallNode result = *op::MakeCallTIR(function, op::InputTensors(call), std::move(types), std::move(shape_vars));
    result.span = call->span;
    return ir::Make<ir::CallNode>(std::move(result));
  }

  // Calls several functions, each for as many results as a call may have, and returns the tuple of all results.
  Expr CallEach(const Call& call, const std::vector<ir::GlobalVar>& functions) {
    const std::vector<ir::Type> types = ResultTypes(call);
    std::vector<Expr> fields;
    for (const ir::GlobalVar& function : functions) {
      const auto begin = types.begin() + std::ssize(fields);
      const auto count = std::min<std::ptrdiff_t>(op::kMaxTensorsOfCall, types.end() - begin);
      const Expr part = EmitValue(CallOf(call, function, {begin, begin + count}), function->name);
      for (std::ptrdiff_t i = 0; i < count; ++i) {
        const Expr field = count == 1 ? part : Expr(ir::Make<ir::TupleGetItemNode>(part, i, *(begin + i)));
        fields.push_back(count == 1 ? part : EmitValue(field, "field"));
      }
    }
    return ir::Make<ir::TupleNode>(std::move(fields), call->type);
  }

  // Lowers an operator with a dynamic output shape: count, bind the extents to symbols, fill:
  //   counted = R.call_tir(cls.nonzero_count, (x,), out_ty=...)
  //   shape = R.tensor_to_shape(extents)
  //   _ = R.match_cast(shape, R.Shape([n]))
  //   R.call_tir(cls.nonzero, (x, carried), out_ty=R.Tensor((2, n), ...))
  Expr CountAndFill(const Call& call, const op::OpRow& row) {
    const Result<Call> count = op::CountCall(call);
    if (!count.ok()) return Problem(call, count.status());
    const Expr counted = EmitValue(LegalizeCall(*count, row, /*counts=*/true), "counted");
    std::vector<Expr> fields = {counted};
    if (const auto* tuple = ir::As<ir::TupleTypeNode>(counted->type)) {
      fields.clear();
      for (size_t i = 0; i < tuple->fields.size(); ++i) {
        const auto index = static_cast<int64_t>(i);
        fields.push_back(EmitValue(ir::Make<ir::TupleGetItemNode>(counted, index, tuple->fields[i]),
                                   i == 0 ? "extents" : "carried"));
      }
    }
    const Result<Call> to_shape = op::MakeCall("tensor_to_shape", {fields[0]});
    if (!to_shape.ok()) return Problem(call, to_shape.status());
    const Expr shape = EmitValue(*to_shape, "shape");
    std::vector<ir::PrimExpr> extents;
    for (int i = 0; i < row.extents.count; ++i) extents.push_back(ir::MakePrimVar("n"));
    const ir::Type matched = ir::Make<ir::ShapeTypeNode>(extents);
    Emit({ir::Make<ir::VarNode>("_", matched, ir::As<ir::VarNode>(shape)->is_dataflow), shape, matched, call->span});
    const Result<Call> fill = op::FillCall(call, {fields.begin() + 1, fields.end()}, extents);
    return fill.ok() ? LegalizeCall(*fill, row) : Problem(call, fill.status());
  }

  // Returns the tensor functions of a call: one unless its results are very many, none after a problem. Calls of one
  // operator with equal attributes and types share them, so that a model of 100,000 equal calls builds them once.
  std::vector<ir::GlobalVar> FunctionsFor(const Call& call, const op::OpRow& row, bool counts) {
    std::vector<ir::Type> types;
    for (const Expr& arg : call->args) types.push_back(arg->type);
    types.push_back(call->type);
    const ir::Type signature = ir::Make<ir::TupleTypeNode>(std::move(types));
    std::vector<Seen>& seen = seen_[&row][ir::StructuralHash(signature, /*map_free_vars=*/true)];
    for (const Seen& other : seen) {
      if (other.counts == counts && other.call->attrs.items() == call->attrs.items() &&
          SameKinds(other.call->args, call->args) &&
          ir::StructuralEqual(other.signature, signature, /*map_free_vars=*/true)) {
        return other.functions;
      }
    }
    std::vector<ir::GlobalVar> functions;
    const ir::PrimFunc whole = BuildFunction(call, counts);
    if (whole == nullptr) return functions;
    for (const ir::PrimFunc& function : FunctionsOfResults(whole, ResultTypes(call).size())) {
      functions.push_back(Share(function, row, counts ? "_count" : ""));
    }
    seen.push_back({call, signature, counts, functions});
    return functions;
  }

  // Returns the function itself; or, if it has very many results and each is computed by one statement of its own, one
  // function for each run of kMaxTensorsOfCall results.
  static std::vector<ir::PrimFunc> FunctionsOfResults(const ir::PrimFunc& function, size_t num_results) {
    const auto* root = ir::As<ir::BlockRealizeNode>(function->body);
    const auto* seq = root == nullptr ? nullptr : ir::As<ir::SeqNode>(root->block->body);
    if (num_results <= op::kMaxTensorsOfCall || seq == nullptr || seq->stmts.size() != num_results ||
        !root->block->alloc_buffers.empty() || num_results > function->params.size()) {
      return {function};
    }
    const size_t num_inputs = function->params.size() - num_results;
    std::vector<ir::PrimFunc> functions;
    for (size_t begin = 0; begin < num_results; begin += op::kMaxTensorsOfCall) {
      const size_t end = std::min(begin + op::kMaxTensorsOfCall, num_results);
      ir::PrimFuncNode part = *function;
      part.params.resize(num_inputs);
      std::vector<ir::Stmt> stmts;
      for (size_t i = begin; i < end; ++i) {
        part.params.push_back(function->params[num_inputs + i]);
        stmts.push_back(seq->stmts[i]);
      }
      ir::BlockNode block = *root->block;
      block.body = ir::MakeSeq(std::move(stmts));
      ir::BlockRealizeNode realize = *root;
      realize.block = ir::Make<ir::BlockNode>(std::move(block));
      part.body = ir::Make<ir::BlockRealizeNode>(std::move(realize));
      functions.push_back(ir::Make<ir::PrimFuncNode>(std::move(part)));
      // Verification fails if a statement reads or writes another function's result; then the function is not split.
      if (!ir::VerifyPrimFunc(functions.back()).ok()) return {function};
    }
    return functions;
  }

  // Compares what types do not say about arguments: which are constants, and the values of strings and dtypes.
  static bool SameKinds(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i]->kind != b[i]->kind) return false;
      const auto* fields = ir::As<ir::TupleNode>(a[i]);
      if (fields != nullptr && !SameKinds(fields->fields, ir::As<ir::TupleNode>(b[i])->fields)) return false;
      const bool is_text = a[i]->kind == ir::ExprKind::kStringValue || a[i]->kind == ir::ExprKind::kDataTypeValue;
      if (is_text && !ir::StructuralEqual(a[i], b[i])) return false;
    }
    return true;
  }

  // Whether every result is a tensor without elements.
  static bool MakesNothing(const Call& call) {
    return std::ranges::all_of(ResultTypes(call), [](const ir::Type& type) {
      const auto& dims = *ir::As<ir::TensorTypeNode>(type)->dims;
      return std::ranges::any_of(dims, [](const ir::PrimExpr& dim) { return ir::IsConstInt(dim, 0); });
    });
  }
  static op::Statements NoStatements(const op::TeArgs&, const op::Buffers&, const op::Buffers&) {
    return std::vector<ir::Stmt>{};
  }

  ir::PrimFunc BuildFunction(const Call& call, bool counts) {
    const op::Implementation* best = op::CheapestImplementation(call, target_);
    if (best == nullptr) {
      Problem(call, "no implementation for target \"" + target_.name + "\" takes this call");
      return nullptr;
    }
    Result<ir::PrimFunc> function = !counts && MakesNothing(call) ? op::BuildFromStatements(call, NoStatements)
                                                                  : (counts ? best->count : best->build)(call, target_);
    if (function.ok()) return *std::move(function);
    problems_.push_back(function.status().message());
    return nullptr;
  }

  // Returns the types of the results: one tensor, or the fields of a tuple.
  static std::vector<ir::Type> ResultTypes(const Call& call) {
    if (const auto* tuple = ir::As<ir::TupleTypeNode>(call->type)) return tuple->fields;
    return {call->type};
  }

  // Returns call_tir's out_ty: several results are a list, a tuple of one field stays a tuple.
  static std::vector<ir::Type> OutTypes(const Call& call) {
    std::vector<ir::Type> types = ResultTypes(call);
    return types.size() == 1 ? std::vector<ir::Type>{call->type} : types;
  }

  static bool HasKnownShapes(const Call& call) {
    std::vector<ir::Type> types = ResultTypes(call);
    for (const Expr& input : op::InputTensors(call)) types.push_back(input->type);
    for (const ir::Type& type : types) {
      const auto* tensor = ir::As<ir::TensorTypeNode>(type);
      if (tensor == nullptr || !tensor->dims || !tensor->dtype) return false;
    }
    return true;
  }

  Expr Problem(const Call& call, const std::string& what) {
    std::string types;
    for (const Expr& input : op::InputTensors(call)) types += (types.empty() ? "" : ", ") + op::Describe(input->type);
    problems_.push_back(op::OpError(call, what + " (" + types + " to " + op::Describe(call->type) + ")").message());
    return call;
  }
  Expr Problem(const Call& call, const Status& status) {
    problems_.push_back(status.message());
    return call;
  }

  // Returns the function of the module that equals this one, and adds it if there is none. Names come from the
  // operator: "conv2d" for nn.conv2d.
  ir::GlobalVar Share(ir::PrimFunc function, const op::OpRow& row, std::string_view suffix) {
    ir::PrimFuncNode owned = *function;
    owned.is_private = true;
    function = ir::Make<ir::PrimFuncNode>(std::move(owned));
    std::string_view name = row.name;
    name = row.function_name != nullptr ? row.function_name : name.substr(name.rfind('.') + 1);  // npos + 1 is 0
    return shared_.Add(function, std::string(name) + std::string(suffix));
  }

  struct Seen {
    Call call;
    ir::Type signature;  // types of the arguments and the result
    bool counts;
    std::vector<ir::GlobalVar> functions;
  };

  const Target& target_;
  std::unordered_map<const op::OpRow*, std::unordered_map<uint64_t, std::vector<Seen>>> seen_;
  SharedFunctions shared_;
  std::vector<std::string> problems_;
};

}  // namespace

Result<ir::IRModule> Legalize(ir::IRModule module, PassContext& context) {
  // All variants share the layouts, so the least demanding variant decides.
  const Target default_target;  // for options that name no target
  const std::vector<Target>& variants = context.options.target.variants;
  const Target& target = variants.empty() ? default_target : variants.front();
  const std::vector<ir::IRModule::Entry> entries = module.functions();
  Legalizer legalizer(module, target);
  for (const ir::IRModule::Entry& entry : entries) {
    const ir::Function function = ir::AsRef<ir::FunctionNode>(entry.function);
    // Functions that prepare weights are run by host routines, operator by operator.
    if (function == nullptr || function->attrs.Find(kPrepareAttr) != nullptr) continue;
    module.Set(entry.var, legalizer.MutateFunction(function));
  }
  if (legalizer.problems().empty()) return module;
  std::string message = "unsupported operator calls:";
  for (const std::string& problem : legalizer.problems()) message += "\n  " + problem;
  return Status(StatusCode::kUnsupportedModel, std::move(message));
}

}  // namespace ingot::transform
