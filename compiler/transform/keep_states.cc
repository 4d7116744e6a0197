// keep_states
//   Before: the attribute "states" pairs inputs and outputs of a function by name; the function takes the old values of
//           these states and returns the new ones.
//   After:  "state_params" pairs them by number, for lowering, which makes the parameters tensors of the context and
//           stores the results there. A state of constant shape stays as it is. A state that grows along an axis, from
//           the dimension `past`, becomes a cache: a buffer of its largest shape that holds `past` elements along the
//           axis. The old value is a view of the cache; a concatenation of the old value and more becomes
//           R.kv_cache.append, which writes the new part only; any other new value is written over the whole. `past` is
//           one more parameter, R.Shape([past]), and one more result.
//   After rewrite_patterns, which cleans up the concatenations and permutations that exporters write; before any pass
//   that adds parameters.
#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "compiler/ir/visitor.h"
#include "compiler/op/infer.h"
#include "compiler/op/names.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/states.h"
#include "runtime/suggest.h"

namespace ingot::transform {

using ir::As;
using ir::AsRef;
using ir::Expr;
using ir::PrimExpr;
using ir::Var;

namespace {

Status Bad(const std::string& message) { return UnmetPrecondition(message); }

struct Growth {
  size_t axis = 0;
  ir::PrimVar symbol;  // length of the old value
  PrimExpr next;       // length of the new value
  int64_t capacity = 0;
};
struct KeptState {
  std::string name;
  size_t param = 0, result = 0;
  std::optional<Growth> growth;
  const ir::CallNode* concat = nullptr;  // the call that makes the new value of a cache
  Var cache;                             // the new parameter, then the variable of the new value
};

std::string Names(const KeptState& state, const std::string& output) { return "state " + state.name + "=" + output; }

// Returns the definition of every variable of the function's own blocks.
std::unordered_map<const ir::VarNode*, Expr> DefinitionsOf(const ir::Function& function) {
  std::unordered_map<const ir::VarNode*, Expr> definitions;
  for (const ir::BindingBlock& block : function->body->blocks) {
    for (const ir::Binding& binding : block.bindings) {
      if (!binding.is_match_cast()) definitions.emplace(binding.var.get(), binding.value);
    }
  }
  return definitions;
}

class StateKeeper : public ir::ExprMutator {
 public:
  explicit StateKeeper(const ir::Function& function) : function_(function), definitions_(DefinitionsOf(function)) {}

  Result<ir::Function> Run(const ir::AttrDict& pairs) {
    FindResults();
    for (const auto& [input, output] : pairs) {
      const std::string* name = output.get<std::string>();
      if (name == nullptr) return Bad(std::string("attribute \"") + kStatesAttr + "\": expected names of outputs");
      INGOT_RETURN_IF_ERROR(AddState(input, *name));
    }
    CountUses();
    return Rewrite();
  }

 protected:
  using ExprMutator::Mutate;

  void MutateBinding(const ir::Binding& binding) override {
    if (!std::exchange(has_begun_, true)) EmitOldValues();
    const auto appended = std::find_if(states_.begin(), states_.end(), [&](const KeptState& state) {
      return state.concat != nullptr && state.concat == As<ir::CallNode>(binding.value);
    });
    if (appended != states_.end()) {
      EmitAppends(*appended);
      Emit({binding.var, ViewOf(appended->cache, binding.var->type), nullptr, binding.span});
      return;
    }
    if (tuple_var_ != nullptr && binding.var.get() == tuple_var_) {
      Expr results = NewResults();
      const Var var = ir::Make<ir::VarNode>(binding.var->name, results->type);
      var_map_[binding.var] = var;
      Emit({var, std::move(results), nullptr, binding.span});
      return;
    }
    ExprMutator::MutateBinding(binding);
  }

 private:
  // ---- Reading the states

  void FindResults() {
    const Expr& body = function_->body->body;
    const auto* tuple = As<ir::TupleNode>(body);
    if (tuple == nullptr && As<ir::TupleTypeNode>(body->type) != nullptr && As<ir::VarNode>(body) != nullptr) {
      const auto found = definitions_.find(As<ir::VarNode>(body));
      tuple = found == definitions_.end() ? nullptr : As<ir::TupleNode>(found->second);
      if (tuple != nullptr) tuple_var_ = As<ir::VarNode>(body);
    }
    results_ = tuple == nullptr ? std::vector<Expr>{body} : tuple->fields;
  }

  Status AddState(const std::string& input, const std::string& output) {
    std::vector<std::string> inputs, outputs;
    for (size_t i = 0; i < NumInputs(); ++i) inputs.push_back(InputName(function_, i));
    for (size_t i = 0; i < results_.size(); ++i) outputs.push_back(OutputName(function_, i, results_.size()));
    const auto find = [&](const std::vector<std::string>& names, const std::string& name,
                          const char* what) -> Result<size_t> {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found != names.end()) return static_cast<size_t>(found - names.begin());
      const std::vector<std::string_view> known(names.begin(), names.end());
      return Bad("state " + input + "=" + output + ": there is no " + what + " \"" + name + "\"" +
                 DidYouMean(name, known));
    };
    KeptState state;
    state.name = input;
    INGOT_ASSIGN_OR_RETURN(state.param, find(inputs, input, "input"));
    INGOT_ASSIGN_OR_RETURN(state.result, find(outputs, output, "output"));
    for (const KeptState& other : states_) {
      if (other.param == state.param || other.result == state.result) {
        return Bad(Names(state, output) + ": it is part of another state already");
      }
    }
    const auto type = AsRef<ir::TensorTypeNode>(function_->params[state.param]->type);
    const auto result = AsRef<ir::TensorTypeNode>(results_[state.result]->type);
    if (!type || !result || !type->dims || !result->dims || type->dtype != result->dtype ||
        type->rank != result->rank) {
      return Bad(Names(state, output) + ": the input is " + op::Describe(function_->params[state.param]->type) +
                 ", the output " + op::Describe(results_[state.result]->type));
    }
    INGOT_RETURN_IF_ERROR(FindGrowth(*type->dims, *result->dims, output, state));
    if (state.growth) {
      INGOT_RETURN_IF_ERROR(AddLength(state, output));
      state.concat = FindConcat(state);
    }
    states_.push_back(std::move(state));
    return Status();
  }

  Status FindGrowth(const op::Dims& from, const op::Dims& to, const std::string& output, KeptState& state) const {
    const auto types = [&] {
      return op::Describe(function_->params[state.param]->type) + " to " + op::Describe(results_[state.result]->type);
    };
    for (size_t i = 0; i < from.size(); ++i) {
      if (op::DimsEqual(from[i], to[i])) {
        if (ir::AsConstInt(from[i])) continue;
        return Bad(Names(state, output) + ": dimension " + op::Describe(from[i]) +
                   " is symbolic and stays; a state has one size for good, so fix it, such as with --dim " +
                   op::Describe(from[i]) + "=1");
      }
      const auto symbol = AsRef<ir::PrimVarNode>(from[i]);
      if (state.growth || !symbol) {
        return Bad(Names(state, output) + ": from " + types() + "; a state keeps its type, or grows along one axis");
      }
      const arith::Interval range = AnalyzerOf(function_->attrs, ir::FreePrimVars(to[i])).Bounds(to[i]);
      if (range.max == arith::Interval::kUnboundedAbove) {
        // Of the inputs' dims: others follow from data.
        std::string unbounded = symbol->name;
        for (const Var& param : function_->params) {
          const op::Dims* dims = DimsOf(param);
          for (const ir::PrimVar& var : ir::FreePrimVars(to[i])) {
            const auto is_var = [&](const PrimExpr& dim) { return dim.get() == var.get(); };
            if (dims == nullptr || std::ranges::none_of(*dims, is_var)) continue;
            if (DimBounds(function_->attrs, var->name).second == std::numeric_limits<int64_t>::max())
              unbounded = var->name;
          }
        }
        return Bad(Names(state, output) + ": it grows along " + symbol->name +
                   " without a bound; say how far, such as " + "with --dim " + unbounded + "=0..1023");
      }
      state.growth = Growth{i, symbol, to[i], range.max};
    }
    return Status();
  }

  // All caches that grow together share one length.
  Status AddLength(const KeptState& state, const std::string& output) {
    const Growth& growth = *state.growth;
    const auto known = std::find_if(lengths_.begin(), lengths_.end(),
                                    [&](const Growth& other) { return other.symbol.same_as(growth.symbol); });
    if (known == lengths_.end()) {
      lengths_.push_back(growth);
    } else if (!op::DimsEqual(known->next, growth.next)) {
      return Bad(Names(state, output) + ": " + growth.symbol->name + " grows to " + op::Describe(growth.next) +
                 " here and to " + op::Describe(known->next) + " in another state");
    }
    return Status();
  }

  // Returns the concat((old value, parts...), axis) that computes the new value; null if it is computed otherwise.
  const ir::CallNode* FindConcat(const KeptState& state) const {
    const ir::VarNode* var = As<ir::VarNode>(results_[state.result]);
    Expr value;
    while (var != nullptr) {
      const auto found = definitions_.find(var);
      if (found == definitions_.end()) return nullptr;
      value = found->second;
      var = As<ir::VarNode>(value);
    }
    const auto call = AsRef<ir::CallNode>(value);
    if (!call || !op::IsCallOf(call, op::names::kConcat)) return nullptr;
    const auto* fields = As<ir::TupleNode>(call->args[0]);
    if (fields == nullptr || fields->fields[0].get() != function_->params[state.param].get()) return nullptr;
    const auto rank = static_cast<int64_t>(As<ir::TensorTypeNode>(call->type)->rank);
    const int64_t axis = (call->attrs.GetInt("axis") + rank) % rank;
    return axis == static_cast<int64_t>(state.growth->axis) ? call.get() : nullptr;
  }

  // Counts readers of old values, without those concatenations.
  void CountUses() {
    const auto use = [&](const Var& var) { ++uses_[var.get()]; };
    for (const ir::BindingBlock& block : function_->body->blocks) {
      for (const ir::Binding& binding : block.bindings) {
        const bool is_append = std::any_of(states_.begin(), states_.end(), [&](const KeptState& state) {
          return state.concat != nullptr && state.concat == As<ir::CallNode>(binding.value);
        });
        if (!is_append) {
          ForEachUse(binding.value, use);
          continue;
        }
        const auto& fields = As<ir::TupleNode>(As<ir::CallNode>(binding.value)->args[0])->fields;
        for (size_t i = 1; i < fields.size(); ++i) ForEachUse(fields[i], use);
      }
    }
    ForEachUse(function_->body->body, use);
  }

  size_t NumInputs() const {
    const ir::AttrValue* count = function_->attrs.Find("num_input");
    const size_t all = function_->params.size();
    return count == nullptr ? all : std::min(all, static_cast<size_t>(*count->get<int64_t>()));
  }

  // ---- Rewriting the function

  static Expr CallOp(std::string_view name, std::vector<Expr> args, ir::Attrs attrs = {}) {
    Result<ir::Call> call = op::MakeCall(name, std::move(args), std::move(attrs));
    INGOT_CHECK(call.ok(), "a cache's types agree");
    return *std::move(call);
  }
  static Expr ViewOf(const Var& cache, const ir::Type& type) {
    return CallOp(op::names::kViewOfCache,
                  {cache, ir::Make<ir::ShapeExprNode>(*ir::Downcast<ir::TensorTypeNode>(type)->dims)});
  }

  // Emits views of the caches as the old values, in front of everything else.
  void EmitOldValues() {
    for (const KeptState& state : states_) {
      const Var& param = function_->params[state.param];
      if (!state.growth || uses_[param.get()] == 0) continue;
      const Var view = ir::Make<ir::VarNode>(param->name + "_filled", param->type);
      Emit({view, ViewOf(state.cache, param->type), nullptr, {}});
      var_map_[param] = view;
    }
  }

  Var EmitAppend(const KeptState& state, const Expr& part, const PrimExpr& position) {
    const Expr call = CallOp(op::names::kAppendToCache, {state.cache, part, ir::Make<ir::PrimValueNode>(position)},
                             {{"axis", static_cast<int64_t>(state.growth->axis)}});
    const Var cache = ir::Make<ir::VarNode>(function_->params[state.param]->name + "_cache", call->type);
    Emit({cache, call, nullptr, {}});
    return cache;
  }

  void EmitAppends(KeptState& state) {
    const auto& fields = As<ir::TupleNode>(state.concat->args[0])->fields;
    PrimExpr position = state.growth->symbol;
    for (size_t i = 1; i < fields.size(); ++i) {
      const Expr part = MutateExpr(fields[i]);
      state.cache = EmitAppend(state, part, position);
      position = op::SimplifyDim(position + (*As<ir::TensorTypeNode>(part->type)->dims)[state.growth->axis]);
    }
  }

  // Returns all results, among them the states' new values, then the lengths. New values that are no concatenation are
  // written here, behind all readers of the old ones.
  Expr NewResults() {
    std::vector<Expr> fields;
    std::vector<ir::Type> types;
    for (const Expr& result : results_) fields.push_back(MutateExpr(result));
    for (KeptState& state : states_) {
      if (!state.growth) continue;
      if (state.concat == nullptr) state.cache = EmitAppend(state, fields[state.result], ir::Int64(0));
      fields[state.result] = state.cache;
    }
    for (const Growth& length : lengths_) {
      fields.push_back(ir::Make<ir::ShapeExprNode>(std::vector<PrimExpr>{length.next}));
    }
    for (const Expr& field : fields) types.push_back(field->type);
    if (fields.size() == 1) return fields[0];
    return ir::Make<ir::TupleNode>(std::move(fields), ir::Make<ir::TupleTypeNode>(std::move(types)));
  }

  Result<ir::Function> Rewrite() {
    const size_t num_inputs = NumInputs(), num_results = results_.size();
    ir::AttrList input_names, output_names;
    for (size_t i = 0; i < num_inputs; ++i) input_names.emplace_back(InputName(function_, i));
    for (size_t i = 0; i < num_results; ++i) output_names.emplace_back(OutputName(function_, i, num_results));
    std::vector<Var> params = function_->params;
    for (KeptState& state : states_) {
      if (!state.growth) continue;
      const Var& old = function_->params[state.param];
      const auto type = ir::Downcast<ir::TensorTypeNode>(old->type);
      op::Dims dims = *type->dims;
      dims[state.growth->axis] = ir::Int64(state.growth->capacity);
      state.cache = ir::Make<ir::VarNode>(old->name, op::TensorOf(dims, type->dtype, type));
      params[state.param] = state.cache;
    }
    for (size_t i = 0; i < lengths_.size(); ++i) {
      const ir::PrimVar& symbol = lengths_[i].symbol;
      params.insert(
          params.begin() + static_cast<ptrdiff_t>(num_inputs + i),
          ir::Make<ir::VarNode>(symbol->name + "_length", ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{symbol})));
      input_names.emplace_back(FreshName(symbol->name, input_names));
      output_names.emplace_back(input_names.back());
    }

    ir::FunctionNode kept = *MutateFunction(function_);
    if (tuple_var_ == nullptr) {
      ir::BindingBlock block;
      block.is_dataflow = true;
      current_block_ = &block;
      if (!std::exchange(has_begun_, true)) EmitOldValues();
      Expr results = NewResults();
      current_block_ = nullptr;
      std::vector<ir::BindingBlock> blocks = kept.body->blocks;
      if (!block.bindings.empty()) blocks.push_back(std::move(block));
      kept.body = ir::Make<ir::SeqExprNode>(std::move(blocks), results, results->type);
    } else {
      kept.body = ir::Make<ir::SeqExprNode>(kept.body->blocks, kept.body->body, kept.body->body->type);
    }
    kept.params = std::move(params);
    kept.result_type = kept.body->type;
    std::vector<StateParam> states;
    for (const KeptState& state : states_) {
      StateParam& out = states.emplace_back(StateParam{state.param, state.result, std::nullopt});
      if (state.growth) out.growth = StateParam::Growth{static_cast<int64_t>(state.growth->axis), LengthOf(state)};
    }
    for (size_t i = 0; i < lengths_.size(); ++i) {
      states.push_back({num_inputs + i, num_results + i, std::nullopt});
    }
    kept.attrs = kept.attrs.Without(kStatesAttr)
                     .With(kStateParamsAttr, StateParamsAttr(states))
                     .With("input_names", std::move(input_names))
                     .With("output_names", std::move(output_names));
    if (kept.attrs.Find("num_input") != nullptr) {
      kept.attrs = kept.attrs.With("num_input", static_cast<int64_t>(num_inputs + lengths_.size()));
    }
    return ir::Function(ir::Make<ir::FunctionNode>(std::move(kept)));
  }

  size_t LengthOf(const KeptState& state) const {
    size_t i = 0;
    while (!lengths_[i].symbol.same_as(state.growth->symbol)) ++i;
    return NumInputs() + i;
  }

  static std::string FreshName(const std::string& name, const ir::AttrList& taken) {
    std::string fresh = name;
    for (int i = 1; std::any_of(taken.begin(), taken.end(),
                                [&](const ir::AttrValue& v) { return *v.get<std::string>() == fresh; });
         ++i) {
      fresh = name + std::to_string(i);
    }
    return fresh;
  }

  const ir::Function& function_;
  const std::unordered_map<const ir::VarNode*, Expr> definitions_;
  std::vector<Expr> results_;
  const ir::VarNode* tuple_var_ = nullptr;  // the variable of the tuple of results
  std::vector<KeptState> states_;
  std::vector<Growth> lengths_;  // one per symbol
  std::unordered_map<const ir::VarNode*, int> uses_;
  bool has_begun_ = false;
};

}  // namespace

Result<ir::IRModule> KeepStates(ir::IRModule module, PassContext&) {
  return MapFunctions(
      std::move(module), [](const ir::GlobalVar&, const ir::Function& function) -> Result<ir::Function> {
        const ir::AttrValue* attr = function->attrs.Find(kStatesAttr);
        if (attr == nullptr) return function;
        const auto* pairs = attr->get<ir::AttrDict>();
        if (pairs == nullptr) {
          return Bad(std::string("attribute \"") + kStatesAttr + "\": expected a dict of names of inputs and outputs");
        }
        return StateKeeper(function).Run(*pairs);
      });
}

}  // namespace ingot::transform
