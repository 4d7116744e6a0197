// Loops as functions that call themselves at their end.
//     def loop(i, condition, carried..., stacked...):
//         if i < trips:
//             ...                       # the body
//             r = loop(i + 1, ...)
//         else:
//             r = (carried..., stacked...)
//         return r
// The body sees the values around it, as in ONNX; lambda lifting and lowering turn the call into a jump. Stacked values
// are written row by row into tensors with as many rows as there are trips, if that number is known before the first
// trip; if a condition ends the loop, rows are appended. If dims of a row have their values in the body alone, the first
// trip makes the tensor, and rows of other dims end the run. If dims of a carried value change from trip to trip, each
// trip gets new symbols for them; the dims that do are found by importing the body until no new ones are found. The
// common type of the tensors in a carried sequence is found in the same way.
#include "compiler/importer/loop_builder.h"

#include <algorithm>
#include <utility>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/util.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/infer.h"

namespace ingot::importer {

using ir::Expr;
using ir::PrimExpr;
using ir::PrimVar;
using ir::Type;

namespace {

// Collects the symbols that get their values inside of these bindings, and those that their checks compare with.
void CollectLocalSymbols(const std::vector<ir::Binding>& bindings, std::vector<PrimVar>& symbols) {
  for (const ir::Binding& binding : bindings) {
    if (!binding.is_match_cast()) continue;
    for (const PrimVar& var : ir::FreePrimVars(binding.match_cast)) symbols.push_back(var);
  }
}

// Collects symbols that have their values before the loop: of what it begins with, and of what is bound around it.
void CollectOuterSymbols(const std::vector<Expr>& initial, const std::vector<ir::Binding>& around,
                         std::vector<PrimVar>& symbols) {
  const auto collect = [&](const Type& type) {
    for (const PrimVar& var : ir::FreePrimVars(type)) symbols.push_back(var);
  };
  for (const Expr& value : initial) collect(value->type);
  for (const ir::Binding& binding : around) collect(binding.var->type);
}

bool Contains(const std::vector<PrimVar>& symbols, const PrimVar& var) {
  return std::ranges::any_of(symbols, [&](const PrimVar& symbol) { return symbol.same_as(var); });
}

}  // namespace

struct LoopBuilder::Body {
  PrimVar i;
  ir::Var index, condition;  // parameters; condition is null if there is none
  std::vector<ir::Var> carried;
  std::vector<Expr> carried_values;  // the carried parameters, with known dims
  std::vector<ir::Binding> bindings;
  LoopTurn turn;
};

// Imports the body once, with new symbols for the carried dims that are known to change.
Result<LoopBuilder::Body> LoopBuilder::ImportBody(const LoopPlan& plan, const std::vector<CarriedType>& types) {
  const ir::Span span = builder_.SpanOf(plan.label);
  Body body;
  body.i = ir::MakePrimVar("i");
  if (plan.trips) {
    analyzer_.Bind(body.i, ir::Range{ir::Int64(0), plan.trips});
  } else {
    analyzer_.Bind(body.i, arith::Interval{0, INT64_MAX});
  }
  body.index = ir::Make<ir::VarNode>("index", ir::Make<ir::PrimTypeNode>(PrimExpr(body.i)));
  if (plan.condition) body.condition = ir::Make<ir::VarNode>("condition", plan.condition->type);
  BindingBuilder::Nested nested(builder_);
  for (size_t k = 0; k < plan.initial.size(); ++k) {
    const auto* tensor = KnownTensor(plan.initial[k]->type);
    const std::string name = "carried_" + std::to_string(k);
    const LooseDims& loose = types[k].loose;
    if (types[k].made_rank) {
      body.carried.push_back(ir::Make<ir::VarNode>(name, ir::Make<ir::TensorTypeNode>(-1, *tensor->dtype)));
      body.carried_values.push_back(plan.initial[k]);
      continue;
    }
    if (std::ranges::find(loose, true) == loose.end()) {
      body.carried.push_back(ir::Make<ir::VarNode>(name, plan.initial[k]->type));
      body.carried_values.push_back(body.carried.back());
      if (types[k].object) sequences_.Describe(body.carried.back(), *types[k].object);
      continue;
    }
    body.carried.push_back(ir::Make<ir::VarNode>(name, ir::Make<ir::TensorTypeNode>(tensor->rank, *tensor->dtype)));
    body.carried_values.push_back(
        builder_.WithNewSymbols(body.carried.back(), *tensor->dims, loose, *tensor->dtype, name, span));
  }
  INGOT_ASSIGN_OR_RETURN(body.turn, plan.turn(body.i, body.condition, body.carried_values));
  if (plan.keeps_shapes && body.turn.is_imported) INGOT_RETURN_IF_ERROR(MatchShapes(plan, body.turn));
  body.bindings = nested.Take();
  return body;
}

Status LoopBuilder::MatchShapes(const LoopPlan& plan, LoopTurn& turn) {
  for (size_t k = 0; k < plan.initial.size(); ++k) {
    const auto *before = KnownTensor(plan.initial[k]->type), *after = KnownTensor(turn.carried[k]->type);
    if (before == nullptr || after == nullptr || before->rank != after->rank || *before->dtype != *after->dtype)
      continue;
    bool is_same = true;
    for (size_t axis = 0; axis < before->dims->size(); ++axis) {
      const PrimExpr &from = (*before->dims)[axis], &to = (*after->dims)[axis];
      is_same &= op::DimsEqual(from, to);
      const std::optional<int64_t> was = ir::AsConstInt(from), is = ir::AsConstInt(to);
      if (was && is && *was != *is) {
        return Status(StatusCode::kBadInput, "dimension " + std::to_string(axis) + " of its state " +
                                                 std::to_string(k) + " changes from " + std::to_string(*was) + " to " +
                                                 std::to_string(*is));
      }
    }
    if (is_same) continue;
    turn.carried[k] = builder_.Match(turn.carried[k], plan.initial[k]->type, "state_" + std::to_string(k),
                                     builder_.SpanOf(plan.label));
  }
  return Status();
}

// The carried types before the first trip: no dim is known to change.
Result<std::vector<LoopBuilder::CarriedType>> LoopBuilder::FirstCarriedTypes(const LoopPlan& plan) const {
  std::vector<CarriedType> types;
  for (const Expr& value : plan.initial) {
    CarriedType& type = types.emplace_back();
    if (const ObjectInfo* object = sequences_.ObjectOf(value)) {
      type.object = *object;
      type.object->elements.reset();
      continue;
    }
    const auto* tensor = KnownTensor(value->type);
    if (tensor == nullptr) return Status(StatusCode::kUnsupportedModel, "a carried value of unknown rank or type");
    type.loose.assign(static_cast<size_t>(tensor->rank), false);
  }
  return types;
}

Result<bool> LoopBuilder::Widen(const LoopPlan& plan, CarriedType& type, const Expr& in, const Expr& out,
                                size_t k) const {
  if (const ObjectInfo* object = sequences_.ObjectOf(out); object != nullptr && type.object) {
    const ObjectInfo before = *type.object;
    INGOT_RETURN_IF_ERROR(type.object->Join(*object));
    return before.rank != type.object->rank || before.dtype != type.object->dtype ||
           before.holds_sequence != type.object->holds_sequence;
  }
  const auto *from = KnownTensor(in->type), *to = KnownTensor(out->type);
  const bool are_tensors = from != nullptr && to != nullptr && *from->dtype == *to->dtype;
  const bool is_read = plan.is_read.empty() || plan.is_read[k];
  if (are_tensors && !is_read && from->rank != to->rank && type.made_rank.value_or(to->rank) == to->rank) {
    const bool is_new = !type.made_rank;
    type.made_rank = to->rank;
    return is_new;
  }
  if (!are_tensors || from->rank != to->rank) {
    return Status(StatusCode::kUnsupportedModel,
                  "the carried value " + std::to_string(k) + " changes its rank or its type");
  }
  bool is_new = false;
  for (size_t axis = 0; axis < type.loose.size(); ++axis) {
    if (type.loose[axis] || op::DimsEqual((*from->dims)[axis], (*to->dims)[axis])) continue;
    type.loose[axis] = is_new = true;
  }
  return is_new;
}

Status LoopBuilder::TryBody(const LoopPlan& plan) {
  const size_t num_reported = report_.num_unsupported();
  INGOT_ASSIGN_OR_RETURN(const std::vector<CarriedType> types, FirstCarriedTypes(plan));
  INGOT_RETURN_IF_ERROR(ImportBody(plan, types).status());
  report_.KeepUnsupported(num_reported);
  return Status();
}

Result<std::vector<Expr>> LoopBuilder::Build(LoopPlan plan) {
  const ir::Span span = builder_.SpanOf(plan.label);
  INGOT_ASSIGN_OR_RETURN(std::vector<CarriedType> types, FirstCarriedTypes(plan));
  const size_t num_reported = report_.num_unsupported();
  Body body;
  for (bool is_found = false; !is_found;) {
    INGOT_ASSIGN_OR_RETURN(body, ImportBody(plan, types));
    if (!body.turn.is_imported) return std::vector<Expr>();
    is_found = true;
    // The loop has no condition at first, but the body returns one: it decides when the loop ends.
    if (body.turn.condition && !plan.condition) {
      const std::vector<std::byte> yes{std::byte{1}};
      plan.condition = ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(DataType::Bool(), {}, yes));
      is_found = false;
    }
    for (size_t k = 0; k < plan.initial.size(); ++k) {
      INGOT_ASSIGN_OR_RETURN(const bool is_new, Widen(plan, types[k], body.carried_values[k], body.turn.carried[k], k));
      is_found &= !is_new;
    }
    if (!is_found) report_.KeepUnsupported(num_reported);
  }
  return Finish(plan, std::move(body), types, span);
}

// The function's parameters, their arguments before the first trip and after each trip, and the results after the last
// one.
struct LoopBuilder::Arguments {
  std::vector<ir::Var> params;
  std::vector<Expr> first, next, last;
  std::vector<LooseDims> loose;  // per stacked value
};

Result<std::vector<Expr>> LoopBuilder::Finish(const LoopPlan& plan, Body body, const std::vector<CarriedType>& types,
                                              const ir::Span& span) {
  if (!plan.condition && !plan.trips) return Status(StatusCode::kUnsupportedModel, "it never ends");
  Arguments arguments{{body.index}, {Number(ir::Int64(0))}, {Number(PrimExpr(body.i) + 1)}, {}};
  const auto add = [&](const ir::Var& param, const Expr& first, const Expr& next) {
    arguments.params.push_back(param);
    arguments.first.push_back(first);
    arguments.next.push_back(next);
  };
  if (plan.condition) {
    add(body.condition, plan.condition, body.turn.condition ? body.turn.condition : Expr(body.condition));
  }
  for (size_t k = 0; k < body.carried.size(); ++k) {
    add(body.carried[k], plan.initial[k], body.turn.carried[k]);
    arguments.last.push_back(body.carried[k]);
  }
  for (size_t k = 0; k < body.turn.rows.size(); ++k) {
    INGOT_RETURN_IF_ERROR(StackRow(plan, k, body, arguments, span));
  }
  const Expr results = Call(plan, std::move(body), arguments, span);
  std::vector<Expr> values;
  for (size_t k = 0; k < arguments.last.size(); ++k) {
    const std::string name = "result_" + std::to_string(k);
    Expr value = builder_.Bind(
        ir::Make<ir::TupleGetItemNode>(results, static_cast<int64_t>(k), arguments.last[k]->type), name, span);
    const bool is_row = k >= types.size();
    if (!is_row && types[k].object) {
      sequences_.Describe(value, *types[k].object);
      values.push_back(std::move(value));
      continue;
    }
    if (!is_row && types[k].made_rank) {  // a loop without trips ends the run here
      const std::vector<PrimExpr> dims(static_cast<size_t>(*types[k].made_rank), ir::Int64(0));
      const DataType dtype = *ir::As<ir::TensorTypeNode>(value->type)->dtype;
      values.push_back(builder_.WithNewSymbols(value, dims, LooseDims(dims.size(), true), dtype, name, span));
      continue;
    }
    const auto* begin = KnownTensor(arguments.first[arguments.first.size() - arguments.last.size() + k]->type);
    const LooseDims& changed = is_row ? arguments.loose[k - types.size()] : types[k].loose;
    if (std::ranges::find(changed, true) != changed.end()) {
      value = builder_.WithNewSymbols(value, *begin->dims, changed, *begin->dtype, name, span);
    }
    values.push_back(std::move(value));
  }
  return values;
}

// Which dims of the stacked value may differ from trip to trip: its length if it is not the number of trips, and the
// dims of a row that hold symbols of the body.
LooseDims LoopBuilder::LooseStackedDims(const LoopPlan& plan, const Body& body, const ir::TensorTypeNode& row) const {
  std::vector<PrimVar> local{body.i}, outer;
  CollectLocalSymbols(body.bindings, local);
  CollectOuterSymbols(plan.initial, builder_.bindings(), outer);
  LooseDims loose{plan.condition != nullptr};
  for (const PrimExpr& dim : *row.dims) {
    loose.push_back(std::ranges::any_of(
        ir::FreePrimVars(dim), [&](const PrimVar& var) { return Contains(local, var) && !Contains(outer, var); }));
  }
  return loose;
}

// Returns the rows that the trips before this one have stacked, with the dims that this trip's row has: a row of other
// dims ends the run. Where these dims are not known before the loop, the first trip makes the tensor.
Result<Expr> LoopBuilder::RowsSoFar(const LoopPlan& plan, const PrimVar& i, const ir::Var& stacked,
                                    const std::vector<PrimExpr>& dims, bool is_made_here, const ir::Span& span) {
  const DataType dtype = *ir::As<ir::TensorTypeNode>(stacked->type)->dtype;
  Expr rows = stacked;
  if (is_made_here) {
    ir::SeqExpr made;
    {
      BindingBuilder::Nested first(builder_);
      INGOT_ASSIGN_OR_RETURN(const Expr empty, builder_.BindCall("zeros", {ShapeOf(dims)}, {{"dtype", dtype}}, span));
      made = Sequence(first.Take(), empty);
    }
    ir::IfNode choice(Number(ir::Equal(i, ir::Int64(0))), made, Sequence({}, stacked), stacked->type);
    choice.span = span;
    rows = builder_.Bind(ir::Make<ir::IfNode>(std::move(choice)), stacked->name + "_so_far", span);
  }
  LooseDims length(dims.size(), false);
  length[0] = plan.condition != nullptr;
  return builder_.WithNewSymbols(rows, dims, length, dtype, stacked->name, span);
}

// Writes a row of a scanned output to its place if there are as many rows as trips; otherwise appends it.
Status LoopBuilder::StackRow(const LoopPlan& plan, size_t k, Body& body, Arguments& arguments, const ir::Span& span) {
  const bool is_exact = !plan.condition;
  const Expr& row = body.turn.rows[k];
  const auto* tensor = KnownTensor(row->type);
  if (tensor == nullptr) return Status(StatusCode::kUnsupportedModel, "a scanned output that is no tensor");
  const LooseDims loose = LooseStackedDims(plan, body, *tensor);
  std::vector<PrimExpr> dims{is_exact ? plan.trips : ir::Int64(0)};
  dims.insert(dims.end(), tensor->dims->begin(), tensor->dims->end());
  std::vector<PrimExpr> before = dims;  // of the loop
  for (size_t axis = 1; axis < dims.size(); ++axis) {
    if (loose[axis]) before[axis] = ir::Int64(0);
  }
  INGOT_ASSIGN_OR_RETURN(const Expr empty,
                         builder_.BindCall("zeros", {ShapeOf(before)}, {{"dtype", *tensor->dtype}}, span));
  const bool is_fixed = std::ranges::find(loose, true) == loose.end();
  const Type type = is_fixed ? empty->type : Type(ir::Make<ir::TensorTypeNode>(tensor->rank + 1, *tensor->dtype));
  const ir::Var stacked = ir::Make<ir::VarNode>("stacked_" + std::to_string(k), type);
  const bool is_made_here = std::find(loose.begin() + 1, loose.end(), true) != loose.end();
  BindingBuilder::Nested nested(builder_, std::move(body.bindings));
  Result<Expr> longer = Expr(stacked);
  if (!is_fixed) longer = RowsSoFar(plan, body.i, stacked, dims, is_made_here, span);
  if (longer.ok() && is_exact) {
    const PrimExpr place = plan.is_row_reversed[k] ? plan.trips - 1 - PrimExpr(body.i) : PrimExpr(body.i);
    longer = builder_.BindCall("memory.write_row", {*longer, row, Number(place)}, {}, span);
  } else if (longer.ok()) {
    const Expr rows = *longer;
    longer = builder_.BindCall("expand_dims", {row}, {{"axis", ir::AttrValue::Ints({0})}}, span);
    if (longer.ok()) longer = builder_.BindCall("concat", {TupleOf({rows, *longer})}, {{"axis", int64_t{0}}}, span);
  }
  body.bindings = nested.Take();
  INGOT_RETURN_IF_ERROR(longer.status());
  arguments.params.push_back(stacked);
  arguments.first.push_back(empty);
  arguments.next.push_back(*longer);
  arguments.last.push_back(stacked);
  arguments.loose.push_back(loose);
  return Status();
}

// Builds the function, from the inside out, and its first call.
Expr LoopBuilder::Call(const LoopPlan& plan, Body body, const Arguments& arguments, const ir::Span& span) {
  const Expr finals = TupleOf(arguments.last);
  std::vector<Type> param_types;
  for (const ir::Var& param : arguments.params) param_types.push_back(param->type);
  const ir::Var loop =
      ir::Make<ir::VarNode>("loop", ir::Make<ir::CallableTypeNode>(param_types, finals->type, /*pure=*/true));
  const auto call = [&](const std::vector<Expr>& args) {
    ir::CallNode node(loop, args, {}, {}, finals->type);
    node.span = span;
    return Expr(ir::Make<ir::CallNode>(std::move(node)));
  };
  const auto bind_last = [&](std::vector<ir::Binding> bindings, Expr value) {
    const ir::Var var = ir::Make<ir::VarNode>("results", finals->type);
    bindings.push_back({var, std::move(value), nullptr, span});
    return Sequence(std::move(bindings), var);
  };
  ir::SeqExpr sequence = bind_last(std::move(body.bindings), call(arguments.next));
  const auto guard = [&](const Expr& condition) {
    ir::IfNode branch(condition, sequence, Sequence({}, finals), finals->type);
    branch.span = span;
    sequence = bind_last({}, ir::Make<ir::IfNode>(std::move(branch)));
  };
  if (plan.condition) guard(body.condition);
  if (plan.trips) guard(Number(PrimExpr(body.i) < plan.trips));
  ir::FunctionNode function(arguments.params, sequence, finals->type);
  function.span = span;
  builder_.BindTo(loop, ir::Make<ir::FunctionNode>(std::move(function)), span);
  return builder_.Bind(call(arguments.first), "results", span);
}

}  // namespace ingot::importer
