// If becomes an R.if. Loop, Scan and SequenceMap become loops (loop_builder.h); they differ in where the number of
// trips comes from, and in what a trip takes and gives.
#include "compiler/importer/control_flow.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "compiler/importer/build.h"
#include "compiler/importer/implied_dims.h"
#include "compiler/importer/op_list.h"
#include "compiler/importer/ops/flex_attention.h"
#include "compiler/importer/ops/util.h"
#include "compiler/importer/shape_values.h"
#include "compiler/importer/symbols.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/infer.h"
#include "compiler/op/registry.h"
#include "runtime/tensor.h"

namespace ingot::importer {

using ir::PrimExpr;
using ir::PrimVar;
using ir::Type;

namespace {

// Returns the names that the graph's nodes and results read, those of graphs inside of its nodes too.
std::unordered_set<std::string> NamesReadIn(const OnnxGraph& graph) {
  std::unordered_set<std::string> names;
  for (const OnnxValueInfo& info : graph.outputs) names.insert(info.name);
  for (const OnnxNode& node : graph.nodes) {
    names.insert(node.inputs.begin(), node.inputs.end());
    for (const OnnxAttribute& attribute : node.attributes) {
      if (const auto* inner = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute.value)) {
        names.merge(NamesReadIn(**inner));
      }
    }
  }
  return names;
}

// Returns the element of a value that is known to be one integer or truth value; null otherwise.
const PrimExpr* OneElement(const ImportedValue& value) {
  return value.known && value.known->is_exact() && value.known->elements.size() == 1 ? &value.known->elements[0]
                                                                                     : nullptr;
}

}  // namespace

// ---- Graphs inside of nodes

Result<const OnnxGraph*> GraphAttribute(const NodeImporter& node, const char* name) {
  const OnnxAttribute* attribute = node.FindAttr(name);
  const auto* graph = attribute == nullptr ? nullptr : std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute->value);
  if (graph == nullptr) {
    return Status(StatusCode::kBadInput, std::string("expected a graph as the attribute \"") + name + "\"");
  }
  return graph->get();
}

Result<std::vector<Expr>> ControlFlowImporter::ImportBody(const OnnxGraph& graph, const std::string& label,
                                                          Scope& inner) {
  INGOT_RETURN_IF_ERROR(bodies_.ImportBody(graph, label, inner));
  return ResultsOf(graph.outputs, label, inner);
}

Result<std::vector<Expr>> ControlFlowImporter::ResultsOf(const std::vector<OnnxValueInfo>& outputs,
                                                         const std::string& label, Scope& inner,
                                                         bool may_have_any_rank) {
  std::vector<Expr> results;
  for (const OnnxValueInfo& info : outputs) {
    ImportedValue* value = inner.Find(info.name);
    if (value == nullptr) {
      return Status(StatusCode::kBadInput,
                    "node \"" + label + "\": its result \"" + info.name + "\" is not made by any node");
    }
    if (value->stand_in) return std::vector<Expr>();
    if (value->expr == nullptr) {
      INGOT_ASSIGN_OR_RETURN(value->expr, Materialise(*value->known, builder_.bindings(), builder_.SpanOf(label)));
    }
    const bool is_tensor = may_have_any_rank ? ir::As<ir::TensorTypeNode>(value->expr->type) != nullptr
                                             : KnownTensor(value->expr->type) != nullptr;
    if (!is_tensor && sequences_.ObjectOf(value->expr) == nullptr) {
      return Status(StatusCode::kUnsupportedModel, "its result \"" + info.name + "\" has an unknown shape");
    }
    results.push_back(value->expr);
  }
  return results;
}

Result<std::vector<Expr>> ControlFlowImporter::ImportTrip(const OnnxGraph& graph, const std::string& label,
                                                          Scope& inner) {
  const size_t num_reported = report_.num_unsupported();
  INGOT_ASSIGN_OR_RETURN(std::vector<Expr> results, ImportBody(graph, label, inner));
  if (report_.num_unsupported() != num_reported) results.clear();
  return results;
}

bool ControlFlowImporter::Takes(const OnnxNode& node) {
  const std::string name = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
  return std::ranges::find(ControlFlowOps(), name) != ControlFlowOps().end();
}

Result<std::vector<Expr>> ControlFlowImporter::Import(const NodeImporter& node, Scope& scope) {
  const std::string &op_type = node.node().op_type, &label = *node.span().operation;
  if (op_type == "If") return ImportIf(label, node, scope);
  if (op_type == "Loop") return ImportLoop(label, node, scope);
  if (op_type == "FlexAttention") {
    INGOT_ASSIGN_OR_RETURN(ImpliedInputs inputs, ImpliedInputs::Of(op_type, node.node().domain, node));
    return ImportFlexAttention(label, node.For(node.node(), node.opset(), inputs.pointers()), scope);
  }
  return op_type == "Scan" ? ImportScan(label, node, scope) : ImportSequenceMap(label, node, scope);
}

// ---- If

namespace {

// Whether both are tensors of equal element types, and their ranks are not known to be equal.
bool HaveUnlikeRanks(const Type& a, const Type& b) {
  const auto *x = ir::As<ir::TensorTypeNode>(a), *y = ir::As<ir::TensorTypeNode>(b);
  return x != nullptr && y != nullptr && x->dtype && x->dtype == y->dtype && (x->rank != y->rank || x->rank < 0);
}

}  // namespace

Result<std::vector<Expr>> ControlFlowImporter::ImportIf(const std::string& label, const NodeImporter& importer,
                                                        Scope& scope) {
  INGOT_ASSIGN_OR_RETURN(const OnnxGraph* then_graph, GraphAttribute(importer, "then_branch"));
  INGOT_ASSIGN_OR_RETURN(const OnnxGraph* else_graph, GraphAttribute(importer, "else_branch"));
  const auto import_branch = [&](const OnnxGraph& graph) -> Result<ImportedBranch> {
    BindingBuilder::Nested nested(builder_);
    Scope inner;
    INGOT_RETURN_IF_ERROR(inner.OpenGraph(graph, label, scope, /*has_bindings=*/true));
    INGOT_ASSIGN_OR_RETURN(std::vector<Expr> results, ImportBody(graph, label, inner));
    return ImportedBranch{nested.Take(), std::move(results)};
  };
  INGOT_ASSIGN_OR_RETURN(ImportedBranch yes, import_branch(*then_graph));
  INGOT_ASSIGN_OR_RETURN(ImportedBranch no, import_branch(*else_graph));
  INGOT_ASSIGN_OR_RETURN(const Expr condition, Condition(importer));
  return Join(importer, condition, std::move(yes), std::move(no), then_graph->outputs);
}

Result<Expr> ControlFlowImporter::Condition(const NodeImporter& node) {
  const std::optional<ShapeValue> known = node.Known(0);
  if (known && known->elements.size() == 1 && known->dtype.is_bool()) return Number(known->elements[0]);
  return node.Input(0);
}

Result<std::vector<Expr>> ControlFlowImporter::Join(const NodeImporter& importer, const Expr& condition,
                                                    ImportedBranch yes, ImportedBranch no,
                                                    const std::vector<OnnxValueInfo>& outputs,
                                                    bool may_differ_in_rank) {
  const ir::Span span = importer.span();
  if (yes.results.empty() || no.results.empty()) return std::vector<Expr>();
  if (yes.results.size() != no.results.size()) return importer.Invalid("its branches give unlike numbers of results");
  std::vector<Type> types;
  std::vector<LooseDims> loose;
  for (size_t i = 0; i < yes.results.size(); ++i) {
    if (may_differ_in_rank && HaveUnlikeRanks(yes.results[i]->type, no.results[i]->type)) {
      const auto* tensor = ir::As<ir::TensorTypeNode>(yes.results[i]->type);
      types.push_back(ir::Make<ir::TensorTypeNode>(-1, *tensor->dtype));
      loose.emplace_back();
      continue;
    }
    const auto branches = {&yes, &no};
    for (ImportedBranch* branch : branches) {
      if (!HaveUnlikeRanks(yes.results[i]->type, no.results[i]->type)) break;
      BindingBuilder::Nested nested(builder_, std::move(branch->bindings));
      INGOT_ASSIGN_OR_RETURN(branch->results[i], builder_.WithDeclaredRank(branch->results[i], outputs[i], span));
      branch->bindings = nested.Take();
    }
    const auto *a = KnownTensor(yes.results[i]->type), *b = KnownTensor(no.results[i]->type);
    if (a == nullptr && b == nullptr) {
      types.push_back(yes.results[i]->type);
      loose.emplace_back();
      continue;
    }
    if (a == nullptr || b == nullptr) return importer.Unsupported("its branches give a tensor and what is none");
    if (*a->dtype != *b->dtype) return importer.Invalid("its branches give tensors of unlike types");
    if (a->rank != b->rank) {
      return importer.Unsupported("its branches give tensors of rank " + std::to_string(a->rank) + " and " +
                                  std::to_string(b->rank));
    }
    LooseDims& differs = loose.emplace_back();
    for (int k = 0; k < a->rank; ++k) {
      differs.push_back(!op::DimsEqual((*a->dims)[static_cast<size_t>(k)], (*b->dims)[static_cast<size_t>(k)]));
    }
    const bool is_loose = std::ranges::find(differs, true) != differs.end();
    types.push_back(is_loose ? Type(ir::Make<ir::TensorTypeNode>(a->rank, *a->dtype)) : yes.results[i]->type);
  }
  const bool is_single = types.size() == 1;
  const std::vector<Expr> then_results = yes.results, else_results = no.results;
  const auto sequence = [&](ImportedBranch branch) {
    Expr result = is_single ? branch.results[0] : TupleOf(std::move(branch.results));
    return Sequence(std::move(branch.bindings), std::move(result));
  };
  const Type type = is_single ? types[0] : Type(ir::Make<ir::TupleTypeNode>(types));
  ir::SeqExpr then_branch = sequence(std::move(yes)), else_branch = sequence(std::move(no));
  ir::IfNode branch(condition, std::move(then_branch), std::move(else_branch), type);
  branch.span = span;
  const Expr chosen = builder_.Bind(ir::Make<ir::IfNode>(std::move(branch)), "chosen", span);
  std::vector<Expr> results;
  for (size_t i = 0; i < types.size(); ++i) {
    Expr result = is_single ? chosen
                            : builder_.Bind(ir::Make<ir::TupleGetItemNode>(chosen, static_cast<int64_t>(i), types[i]),
                                            "chosen_" + std::to_string(i), span);
    const auto* tensor = ir::As<ir::TensorTypeNode>(then_results[i]->type);
    if (tensor == nullptr) {
      ObjectInfo info = *sequences_.ObjectOf(then_results[i]);
      INGOT_RETURN_IF_ERROR(info.Join(*sequences_.ObjectOf(else_results[i])));
      sequences_.Describe(result, std::move(info));
    }
    if (std::ranges::find(loose[i], true) != loose[i].end()) {
      result =
          builder_.WithNewSymbols(result, *tensor->dims, loose[i], *tensor->dtype, Identifier(outputs[i].name), span);
    }
    results.push_back(std::move(result));
  }
  return results;
}

// ---- Loop

Result<std::vector<Expr>> ControlFlowImporter::ImportLoop(const std::string& label, const NodeImporter& importer,
                                                          Scope& scope) {
  INGOT_ASSIGN_OR_RETURN(const OnnxGraph* graph, GraphAttribute(importer, "body"));
  const ir::Span span = builder_.SpanOf(label);
  LoopPlan plan;
  plan.label = label;
  for (size_t k = 2; k < importer.num_inputs(); ++k) {
    INGOT_ASSIGN_OR_RETURN(Expr initial, importer.Input(k));
    plan.initial.push_back(std::move(initial));
  }
  const size_t num_carried = plan.initial.size();
  if (graph->inputs.size() != num_carried + 2 || graph->outputs.size() < num_carried + 1) {
    return importer.Invalid("its body has " + std::to_string(graph->inputs.size()) + " inputs and " +
                            std::to_string(graph->outputs.size()) + " outputs, beside " + std::to_string(num_carried) +
                            " carried values");
  }
  const std::unordered_set<std::string> read = NamesReadIn(*graph);
  for (size_t k = 0; k < num_carried; ++k) plan.is_read.push_back(read.contains(graph->inputs[k + 2].name));
  plan.is_row_reversed.assign(graph->outputs.size() - num_carried - 1, false);
  // The condition before the first trip, if it is known.
  const std::optional<ShapeValue> known = importer.Known(1);
  const std::optional<int64_t> begins =
      known && known->elements.size() == 1 ? ir::AsConstInt(known->elements[0]) : std::nullopt;
  const bool always = !importer.HasInput(1) || (begins && *begins != 0);
  Expr condition;
  if (!always) {
    INGOT_ASSIGN_OR_RETURN(condition, importer.Input(1));
    if (KnownTensor(condition->type) == nullptr) return std::vector<Expr>();
    INGOT_ASSIGN_OR_RETURN(condition, builder_.BindCall("reshape", {condition, ShapeOf({})}, {}, span));
    plan.condition = condition;
  }
  Expr limit;  // the number of trips as a tensor
  if (importer.HasInput(0)) {
    const std::optional<ShapeValue> trips = importer.CheckedFormula(0);
    if (trips && trips->elements.size() == 1) {
      plan.trips = ir::Max(trips->elements[0], ir::Int64(0));
      if (const auto count = ir::AsConstInt(trips->elements[0])) plan.trips = ir::Int64(std::max<int64_t>(*count, 0));
    } else {
      INGOT_ASSIGN_OR_RETURN(limit, importer.Input(0));
      INGOT_ASSIGN_OR_RETURN(limit, builder_.BindCall("nn.relu", {limit}, {}, span));
      INGOT_ASSIGN_OR_RETURN(plan.trips, builder_.ReadInteger(limit, "trips", span));
    }
  }
  bool keeps_condition = false;  // the body returns the condition that it was given
  // Whether the body takes a carried value as an optional and returns it as a sequence.
  std::vector<bool> gives_sequence(num_carried, false);
  plan.turn = [&](const PrimVar& i, const Expr& holds, const std::vector<Expr>& carried) -> Result<LoopTurn> {
    Scope inner;
    INGOT_RETURN_IF_ERROR(inner.OpenGraph(*graph, label, scope, /*has_bindings=*/true));
    const auto shape_of = [](const OnnxValueInfo& info) {
      return std::vector<int64_t>(info.dims ? info.dims->size() : 0, 1);
    };
    ShapeValue index{DataType::Int(64), shape_of(graph->inputs[0]), {i}};
    const Type index_type = index.Type();
    INGOT_RETURN_IF_ERROR(
        inner.Define(graph->inputs[0].name, {.expr = nullptr, .type = index_type, .known = std::move(index)}));
    if (holds) {
      Expr value = holds;
      if (graph->inputs[1].dims && !graph->inputs[1].dims->empty()) {
        INGOT_ASSIGN_OR_RETURN(value, builder_.BindCall("reshape", {holds, ShapeOf({ir::Int64(1)})}, {}, span));
      }
      INGOT_RETURN_IF_ERROR(inner.Define(graph->inputs[1].name, value));
    } else {
      ShapeValue yes{DataType::Bool(), shape_of(graph->inputs[1]), {ir::BoolImm(true)}};
      const Type type = yes.Type();
      INGOT_RETURN_IF_ERROR(
          inner.Define(graph->inputs[1].name, {.expr = nullptr, .type = type, .known = std::move(yes)}));
    }
    for (size_t k = 0; k < num_carried; ++k) {
      INGOT_RETURN_IF_ERROR(inner.Define(graph->inputs[k + 2].name, carried[k]));
    }
    INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> results, ImportTrip(*graph, label, inner));
    const ImportedValue* goes_on = inner.Find(graph->outputs[0].name);
    const PrimExpr* constant = goes_on == nullptr ? nullptr : OneElement(*goes_on);
    const std::optional<int64_t> truth = constant == nullptr ? std::nullopt : ir::AsConstInt(*constant);
    const bool is_kept = goes_on != nullptr && holds && goes_on->expr.same_as(holds);
    keeps_condition = is_kept || (truth && *truth != 0);
    LoopTurn turn;
    turn.is_imported = !results.empty();
    if (!turn.is_imported) return turn;
    if (!keeps_condition) {
      INGOT_ASSIGN_OR_RETURN(turn.condition, builder_.BindCall("reshape", {results[0], ShapeOf({})}, {}, span));
    } else if (holds) {
      turn.condition = holds;
    }
    for (size_t k = 0; k < num_carried; ++k) {
      const Expr& result = results[k + 1];
      const ObjectInfo *before = sequences_.ObjectOf(carried[k]), *after = sequences_.ObjectOf(result);
      if (before != nullptr && after != nullptr) {
        gives_sequence[k] = before->is_optional && !after->is_optional;
        INGOT_ASSIGN_OR_RETURN(Expr held, gives_sequence[k] ? sequences_.AsOptional(result, span) : result);
        turn.carried.push_back(std::move(held));
      } else if (after != nullptr) {
        turn.carried.push_back(result);
      } else {
        const OnnxValueInfo& info = graph->outputs[k + 1];
        const auto* tensor = KnownTensor(carried[k]->type);
        const bool has_declared_rank = tensor != nullptr && info.dims && std::ssize(*info.dims) == tensor->rank;
        INGOT_ASSIGN_OR_RETURN(
            Expr next, has_declared_rank ? builder_.WithDeclaredRank(result, info, span) : Result<Expr>(result));
        turn.carried.push_back(builder_.AsDeclared(next, carried[k]->type, info, span));
      }
    }
    turn.rows.assign(results.begin() + static_cast<std::ptrdiff_t>(num_carried) + 1, results.end());
    for (size_t k = 0; k < turn.rows.size(); ++k) {
      turn.rows[k] = builder_.AsDeclared(turn.rows[k], nullptr, graph->outputs[num_carried + 1 + k], span);
    }
    return turn;
  };
  if (condition && plan.trips) {
    // A condition that the body does not change decides before the first trip whether there are any trips.
    INGOT_RETURN_IF_ERROR(loops_.TryBody(plan));
    if (keeps_condition) {
      INGOT_ASSIGN_OR_RETURN(const PrimExpr begins_at_all, builder_.ReadInteger(condition, "begins", span));
      plan.trips = plan.trips * begins_at_all;
      plan.condition = nullptr;
    }
  }
  INGOT_ASSIGN_OR_RETURN(std::vector<Expr> values, loops_.Build(std::move(plan)));
  for (size_t k = 0; k < num_carried && !values.empty(); ++k) {
    if (!gives_sequence[k]) continue;
    INGOT_ASSIGN_OR_RETURN(values[k], sequences_.ElementAt(values[k], ir::Int64(0), nullptr, span));
  }
  return values;
}

// ---- Scan

Result<std::vector<Expr>> ControlFlowImporter::ImportScan(const std::string& label, const NodeImporter& importer,
                                                          Scope& scope) {
  INGOT_ASSIGN_OR_RETURN(const OnnxGraph* graph, GraphAttribute(importer, "body"));
  const ir::Span span = builder_.SpanOf(label);
  // Up to opset 8 the first input holds the lengths, and all others have a batch axis in front.
  const bool is_batched = importer.opset() < 9;
  const size_t begin = is_batched ? 1 : 0;
  if (is_batched && importer.HasInput(0)) return importer.Unsupported("lengths of its own for each sequence");
  INGOT_ASSIGN_OR_RETURN(const int64_t given_scans, importer.Int("num_scan_inputs", -1));
  const auto num_inputs = static_cast<int64_t>(importer.num_inputs() - std::min(begin, importer.num_inputs()));
  if (given_scans < 1 || given_scans > num_inputs || std::ssize(graph->inputs) != num_inputs) {
    return importer.Invalid("num_scan_inputs is " + std::to_string(given_scans) + " beside " +
                            std::to_string(num_inputs) + " inputs");
  }
  const auto num_scans = static_cast<size_t>(given_scans);
  const size_t num_carried = static_cast<size_t>(num_inputs) - num_scans;
  if (graph->outputs.size() < num_carried) return importer.Invalid("its body gives fewer results than it carries");
  const size_t num_rows = graph->outputs.size() - num_carried;
  std::vector<Expr> initial, scanned;
  for (size_t k = 0; k < static_cast<size_t>(num_inputs); ++k) {
    INGOT_RETURN_IF_ERROR(importer.InputType(begin + k).status());
    INGOT_ASSIGN_OR_RETURN(Expr input, importer.Input(begin + k));
    (k < num_carried ? initial : scanned).push_back(std::move(input));
  }
  const auto zeros = [](size_t count) { return std::vector<int64_t>(count, 0); };
  const char* directions_name = is_batched ? "directions" : "scan_input_directions";
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> directions,
                         importer.Ints(directions_name, zeros(num_scans), given_scans));
  INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> axes, importer.Ints("scan_input_axes", zeros(num_scans), given_scans));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> out_directions,
                         importer.Ints("scan_output_directions", zeros(num_rows), static_cast<int64_t>(num_rows)));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> out_axes,
                         importer.Ints("scan_output_axes", zeros(num_rows), static_cast<int64_t>(num_rows)));
  // Scans one sequence: takes the states, then the scanned inputs.
  const auto scan = [&](std::vector<Expr> states, std::vector<Expr> sequences) -> Result<std::vector<Expr>> {
    LoopPlan plan;
    plan.label = label;
    plan.initial = std::move(states);
    plan.keeps_shapes = true;
    for (int64_t direction : out_directions) plan.is_row_reversed.push_back(direction != 0);
    for (size_t k = 0; k < num_scans; ++k) {
      const auto* tensor = KnownTensor(sequences[k]->type);
      if (axes[k] < 0) axes[k] += tensor->rank;
      if (axes[k] < 0 || axes[k] >= tensor->rank) return importer.Invalid("an axis that its input does not have");
      std::vector<PrimExpr> dims = *tensor->dims;
      PrimExpr& length = dims[static_cast<size_t>(axes[k])];
      if (!plan.trips) plan.trips = length;
      if (op::DimsDiffer(length, plan.trips)) return importer.Invalid("its scanned inputs have unlike lengths");
      if (op::DimsEqual(length, plan.trips)) continue;
      length = plan.trips;  // checked when the program runs
      sequences[k] =
          builder_.Match(sequences[k], ir::Make<ir::TensorTypeNode>(std::move(dims), tensor->dtype), "scanned", span);
    }
    plan.turn = [&](const PrimVar& i, const Expr&, const std::vector<Expr>& carried) -> Result<LoopTurn> {
      Scope inner;
      INGOT_RETURN_IF_ERROR(inner.OpenGraph(*graph, label, scope, /*has_bindings=*/true));
      for (size_t k = 0; k < num_carried; ++k) {
        INGOT_RETURN_IF_ERROR(inner.Define(graph->inputs[k].name, carried[k]));
      }
      for (size_t k = 0; k < num_scans; ++k) {
        const PrimExpr& length = (*KnownTensor(sequences[k]->type)->dims)[static_cast<size_t>(axes[k])];
        const PrimExpr place = directions[k] != 0 ? length - 1 - PrimExpr(i) : PrimExpr(i);
        INGOT_ASSIGN_OR_RETURN(Expr slice, builder_.SliceAt(sequences[k], place, axes[k], span));
        INGOT_RETURN_IF_ERROR(inner.Define(graph->inputs[num_carried + k].name, std::move(slice)));
      }
      INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> results, ImportTrip(*graph, label, inner));
      LoopTurn turn;
      turn.is_imported = !results.empty();
      if (!turn.is_imported) return turn;
      turn.carried.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(num_carried));
      turn.rows.assign(results.begin() + static_cast<std::ptrdiff_t>(num_carried), results.end());
      return turn;
    };
    INGOT_ASSIGN_OR_RETURN(std::vector<Expr> values, loops_.Build(plan));
    for (size_t k = 0; k < num_rows && !values.empty(); ++k) {
      Expr& value = values[num_carried + k];
      const int rank = KnownTensor(value->type)->rank;
      const int64_t axis = out_axes[k] < 0 ? out_axes[k] + rank : out_axes[k];
      if (axis < 0 || axis >= rank) return importer.Invalid("an axis that its output does not have");
      if (axis == 0) continue;
      std::vector<int64_t> permutation;
      for (int64_t a = 1; a < rank; ++a) permutation.push_back(a);
      permutation.insert(permutation.begin() + axis, 0);
      INGOT_ASSIGN_OR_RETURN(
          value, builder_.BindCall("permute_dims", {value}, {{"axes", ir::AttrValue::Ints(permutation)}}, span));
    }
    return values;
  };
  if (!is_batched) return scan(std::move(initial), scanned);
  LoopPlan batch;
  batch.label = label;
  batch.is_row_reversed.assign(num_carried + num_rows, false);
  const std::vector<Expr>& any = scanned.empty() ? initial : scanned;
  batch.trips = KnownTensor(any[0]->type)->dims->at(0);
  batch.turn = [&](const PrimVar& b, const Expr&, const std::vector<Expr>&) -> Result<LoopTurn> {
    std::vector<Expr> states, sequences;
    for (const Expr& state : initial) {
      INGOT_ASSIGN_OR_RETURN(Expr slice, builder_.SliceAt(state, b, 0, span));
      states.push_back(std::move(slice));
    }
    for (const Expr& sequence : scanned) {
      INGOT_ASSIGN_OR_RETURN(Expr slice, builder_.SliceAt(sequence, b, 0, span));
      sequences.push_back(std::move(slice));
    }
    LoopTurn turn;
    INGOT_ASSIGN_OR_RETURN(turn.rows, scan(std::move(states), sequences));
    turn.is_imported = !turn.rows.empty();
    return turn;
  };
  return loops_.Build(std::move(batch));
}

// ---- SequenceMap

// Builds a loop over the elements of the first input; other sequences are indexed along with it, and tensors are the
// same in every trip.
Result<std::vector<Expr>> ControlFlowImporter::ImportSequenceMap(const std::string& label, const NodeImporter& node,
                                                                 Scope& scope) {
  INGOT_ASSIGN_OR_RETURN(const OnnxGraph* graph, GraphAttribute(node, "body"));
  const ir::Span span = builder_.SpanOf(label);
  INGOT_RETURN_IF_ERROR(sequences_.InputOf(node, 0).status());
  std::vector<Expr> inputs;
  for (size_t k = 0; k < node.num_inputs(); ++k) {
    INGOT_ASSIGN_OR_RETURN(Expr input, node.Input(k));
    inputs.push_back(std::move(input));
  }
  if (graph->inputs.size() != inputs.size()) {
    return node.Invalid("its body has " + std::to_string(graph->inputs.size()) + " inputs, beside " +
                        std::to_string(inputs.size()));
  }
  LoopPlan plan;
  plan.label = label;
  INGOT_ASSIGN_OR_RETURN(plan.trips, sequences_.LengthOf(inputs[0], span));
  for (size_t k = 0; k < graph->outputs.size(); ++k) {
    INGOT_ASSIGN_OR_RETURN(Expr empty, sequences_.Make({}, {}, span));
    plan.initial.push_back(std::move(empty));
  }
  plan.turn = [&](const PrimVar& i, const Expr&, const std::vector<Expr>& carried) -> Result<LoopTurn> {
    Scope inner;
    INGOT_RETURN_IF_ERROR(inner.OpenGraph(*graph, label, scope, /*has_bindings=*/true));
    for (size_t k = 0; k < inputs.size(); ++k) {
      Expr element = inputs[k];
      if (sequences_.ObjectOf(element) != nullptr) {
        INGOT_ASSIGN_OR_RETURN(element, sequences_.ElementAt(element, i, &graph->inputs[k], span));
      }
      INGOT_RETURN_IF_ERROR(inner.Define(graph->inputs[k].name, std::move(element)));
    }
    INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> results, ImportTrip(*graph, label, inner));
    LoopTurn turn;
    turn.is_imported = !results.empty();
    for (size_t k = 0; k < results.size() && turn.is_imported; ++k) {
      INGOT_ASSIGN_OR_RETURN(Expr longer, sequences_.InsertAt(carried[k], results[k], i, span));
      turn.carried.push_back(std::move(longer));
    }
    return turn;
  };
  return loops_.Build(std::move(plan));
}

// ---- FlexAttention

// Its graphs run in the node's place, once each: one changes the scores, the other one their softmax.
Result<std::vector<Expr>> ControlFlowImporter::ImportFlexAttention(const std::string& label, const NodeImporter& node,
                                                                   Scope& scope) {
  INGOT_ASSIGN_OR_RETURN(const FlexAttention attention, ReadFlexAttention(node));
  if (!node.HasAttr("score_mod") && !node.HasAttr("prob_mod")) {
    INGOT_ASSIGN_OR_RETURN(Expr y, PlainFlexAttention(node, attention));
    return std::vector<Expr>{std::move(y)};
  }
  const auto modify = [&](const char* name, const Expr& x) -> Result<Expr> {
    if (!node.HasAttr(name)) return x;
    INGOT_ASSIGN_OR_RETURN(const OnnxGraph* graph, GraphAttribute(node, name));
    if (graph->inputs.size() != 1 || graph->outputs.size() != 1) {
      return node.Invalid(std::string(name) + " has not one input and one output");
    }
    Scope inner;
    INGOT_RETURN_IF_ERROR(inner.OpenGraph(*graph, label, scope, /*has_bindings=*/false));
    INGOT_RETURN_IF_ERROR(inner.Define(graph->inputs[0].name, x));
    INGOT_ASSIGN_OR_RETURN(std::vector<Expr> results, ImportTrip(*graph, label, inner));
    if (results.empty()) return Expr();
    return CheckedModification(node, name, x, std::move(results[0]));
  };
  INGOT_ASSIGN_OR_RETURN(Expr x, FlexScores(node, attention));
  INGOT_ASSIGN_OR_RETURN(x, modify("score_mod", x));
  if (x == nullptr) return std::vector<Expr>();
  INGOT_ASSIGN_OR_RETURN(x, FlexShares(node, x));
  INGOT_ASSIGN_OR_RETURN(x, modify("prob_mod", x));
  if (x == nullptr) return std::vector<Expr>();
  INGOT_ASSIGN_OR_RETURN(x, FlexResult(node, attention, std::move(x)));
  return std::vector<Expr>{std::move(x)};
}

}  // namespace ingot::importer
