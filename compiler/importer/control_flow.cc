// If, Loop and Scan: nodes that hold graphs. A part of compiler/importer/graph_importer.h.
//
// An If whose condition is known is its branch; any other one becomes an R.if. Loop and Scan become loops (loops.cc);
// they differ in where the number of trips comes from, and in what a trip takes and gives.
#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "compiler/importer/build.h"
#include "compiler/importer/graph_importer.h"
#include "compiler/importer/op_list.h"
#include "compiler/importer/ops/util.h"
#include "compiler/importer/shape_values.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/infer.h"
#include "compiler/op/registry.h"
#include "runtime/tensor.h"

namespace ingot::importer {

using ir::PrimExpr;
using ir::PrimVar;
using ir::Type;

namespace {

// Returns the element of a value that is known to be one integer or truth value; null otherwise.
const PrimExpr* OneElement(const ImportedValue& value) {
  return value.known && value.known->elements.size() == 1 ? &value.known->elements[0] : nullptr;
}

}  // namespace

// ---- Graphs inside of nodes

Result<const OnnxGraph*> GraphImporter::GraphOf(const NodeImporter& importer, const char* attribute_name) {
  const OnnxAttribute* attribute = importer.FindAttr(attribute_name);
  const auto* graph = attribute == nullptr ? nullptr : std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute->value);
  if (graph == nullptr) {
    return Status(StatusCode::kBadInput, std::string("expected a graph as the attribute \"") + attribute_name + "\"");
  }
  return graph->get();
}

Status GraphImporter::OpenGraph(const OnnxGraph& graph, const std::string& label, Scope& outer, Scope& inner) {
  inner.outer = &outer;
  inner.prefix = label + "/";
  inner.opset = outer.opset;
  inner.attributes = outer.attributes;
  for (const OnnxValueInfo& info : graph.values) inner.declared.emplace(info.name, &info);
  for (const auto& [name, data] : graph.initializers) {
    INGOT_RETURN_IF_ERROR(Define(inner, name, ir::Make<ir::ConstantNode>(data, name)));
  }
  return Status();
}

Status GraphImporter::ImportGraph(const OnnxGraph& graph, const std::string& label, Scope& inner) {
  ++nesting_;
  INGOT_RETURN_IF_ERROR(Enter(label, graph.nodes));
  INGOT_RETURN_IF_ERROR(ImportNodes(graph.nodes, inner));
  --nesting_;
  return Status();
}

Result<std::vector<Expr>> GraphImporter::ResultsOf(const OnnxGraph& graph, const std::string& label, Scope& inner) {
  std::vector<Expr> results;
  for (const OnnxValueInfo& info : graph.outputs) {
    ImportedValue* value = inner.Find(info.name);
    if (value == nullptr) {
      return Status(StatusCode::kBadInput,
                    "node \"" + label + "\": its result \"" + info.name + "\" is not made by any node");
    }
    if (value->stand_in) return std::vector<Expr>();
    if (value->expr == nullptr) {
      INGOT_ASSIGN_OR_RETURN(value->expr, Materialise(*value->known, bindings_, SpanOf(label)));
    }
    if (KnownTensor(value->expr->type) == nullptr && ObjectOf(value->expr) == nullptr) {
      return Status(StatusCode::kUnsupportedModel, "its result \"" + info.name + "\" has an unknown shape");
    }
    results.push_back(value->expr);
  }
  return results;
}

Result<Expr> GraphImporter::BindCall(std::string_view row, std::vector<Expr> args, ir::Attrs attrs,
                                     const ir::Span& span) {
  INGOT_ASSIGN_OR_RETURN(const ir::Call call, op::MakeCall(row, std::move(args), std::move(attrs)));
  ir::CallNode with_span = *call;
  with_span.span = span;
  return BindExpr(ir::Make<ir::CallNode>(std::move(with_span)), std::string(row), span);
}

Expr GraphImporter::BindExpr(Expr value, const std::string& name, const ir::Span& span) {
  const ir::Var var = ir::Make<ir::VarNode>(name, value->type, /*dataflow=*/true);
  bindings_.push_back({var, std::move(value), nullptr, span});
  return var;
}

Expr GraphImporter::MatchType(Expr value, Type type, const std::string& name, const ir::Span& span) {
  const ir::Var var = ir::Make<ir::VarNode>(name, type, /*dataflow=*/true);
  bindings_.push_back({var, std::move(value), std::move(type), span});
  return var;
}

// Returns the same value with new symbols for the loose dims.
Expr GraphImporter::WithNewSymbols(const Expr& value, const std::vector<PrimExpr>& dims, const LooseDims& loose,
                                   DataType dtype, const std::string& name, const ir::Span& span) {
  std::vector<PrimExpr> matched = dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (loose[i]) matched[i] = ir::MakePrimVar(name + "_dim_" + std::to_string(i));
  }
  return MatchType(value, TensorType(std::move(matched), dtype), name, span);
}

bool GraphImporter::IsControlFlow(std::string_view op_type) {
  const std::span<const std::string_view> ops = ControlFlowOps();
  return std::find(ops.begin(), ops.end(), op_type) != ops.end();
}

Status GraphImporter::ImportControlFlow(const OnnxNode& node, const std::string& label, const NodeImporter& importer,
                                        Scope& scope) {
  const size_t num_reported = report_.unsupported.size(), nesting = nesting_;
  Result<std::vector<Expr>> results = node.op_type == "If"     ? ImportIf(label, importer, scope)
                                      : node.op_type == "Loop" ? ImportLoop(label, importer, scope)
                                      : node.op_type == "Scan" ? ImportScan(label, importer, scope)
                                                               : ImportSequenceMap(label, importer, scope);
  nesting_ = nesting;
  if (!results.ok()) {
    if (results.status().code() != StatusCode::kUnsupportedModel) {
      return Status(results.status().code(),
                    "node \"" + label + "\" (" + node.op_type + "): " + results.status().message());
    }
    ReportUnsupported(node, label, {}, results.status().message());
  }
  // A node inside was reported as unsupported, or a result is a stand-in.
  if (!results.ok() || report_.unsupported.size() != num_reported || results->empty()) {
    return DefineStandIns(node, scope);
  }
  return BindOutputs(node, *results, SpanOf(label), scope);
}

// ---- If

Result<std::vector<Expr>> GraphImporter::ImportIf(const std::string& label, const NodeImporter& importer,
                                                  Scope& scope) {
  INGOT_ASSIGN_OR_RETURN(const OnnxGraph* then_graph, GraphOf(importer, "then_branch"));
  INGOT_ASSIGN_OR_RETURN(const OnnxGraph* else_graph, GraphOf(importer, "else_branch"));
  const ir::Span span = SpanOf(label);
  Expr condition;
  const std::optional<ShapeValue> known = importer.Known(0);
  if (known && known->elements.size() == 1 && known->dtype.is_bool()) {
    condition = Number(known->elements[0]);
  } else {
    INGOT_ASSIGN_OR_RETURN(condition, importer.Input(0));
  }
  struct Branch {
    std::vector<ir::Binding> bindings;
    std::vector<Expr> results;
  };
  const auto import_branch = [&](const OnnxGraph& graph) -> Result<Branch> {
    std::vector<ir::Binding> outer = std::exchange(bindings_, {});
    Scope inner;
    inner.has_bindings = true;
    INGOT_RETURN_IF_ERROR(OpenGraph(graph, label, scope, inner));
    INGOT_RETURN_IF_ERROR(ImportGraph(graph, label, inner));
    INGOT_ASSIGN_OR_RETURN(std::vector<Expr> results, ResultsOf(graph, label, inner));
    return Branch{std::exchange(bindings_, std::move(outer)), std::move(results)};
  };
  INGOT_ASSIGN_OR_RETURN(Branch yes, import_branch(*then_graph));
  INGOT_ASSIGN_OR_RETURN(Branch no, import_branch(*else_graph));
  if (yes.results.empty() || no.results.empty()) return std::vector<Expr>();
  if (yes.results.size() != no.results.size()) return importer.Invalid("its branches give unlike numbers of results");
  std::vector<Type> types;
  std::vector<LooseDims> loose;
  for (size_t i = 0; i < yes.results.size(); ++i) {
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
  const auto sequence = [&](Branch branch) {
    Expr result = is_single ? branch.results[0] : TupleOf(std::move(branch.results));
    return Sequence(std::move(branch.bindings), std::move(result));
  };
  const Type type = is_single ? types[0] : Type(ir::Make<ir::TupleTypeNode>(types));
  ir::SeqExpr then_branch = sequence(std::move(yes)), else_branch = sequence(std::move(no));
  ir::IfNode branch(condition, std::move(then_branch), std::move(else_branch), type);
  branch.span = span;
  const Expr chosen = BindExpr(ir::Make<ir::IfNode>(std::move(branch)), "chosen", span);
  std::vector<Expr> results;
  for (size_t i = 0; i < types.size(); ++i) {
    Expr result = is_single ? chosen
                            : BindExpr(ir::Make<ir::TupleGetItemNode>(chosen, static_cast<int64_t>(i), types[i]),
                                       "chosen_" + std::to_string(i), span);
    const auto* tensor = KnownTensor(then_results[i]->type);
    if (tensor == nullptr) {
      ObjectInfo info = *ObjectOf(then_results[i]);
      INGOT_RETURN_IF_ERROR(info.Join(*ObjectOf(else_results[i])));
      objects_.emplace(result, std::move(info));
    }
    if (std::ranges::find(loose[i], true) != loose[i].end()) {
      result = WithNewSymbols(result, *tensor->dims, loose[i], *tensor->dtype, Identifier(then_graph->outputs[i].name),
                              span);
    }
    results.push_back(std::move(result));
  }
  return results;
}

// ---- Loop

// Returns one integer or truth value as an expression. If shapes do not decide it, it is read when the program runs.
Result<PrimExpr> GraphImporter::ReadInteger(Expr tensor, const std::string& name, const ir::Span& span) {
  INGOT_ASSIGN_OR_RETURN(tensor, BindCall("astype", {tensor}, {{"dtype", DataType::Int(64)}}, span));
  INGOT_ASSIGN_OR_RETURN(tensor, BindCall("reshape", {tensor, ShapeOf({ir::Int64(1)})}, {}, span));
  INGOT_ASSIGN_OR_RETURN(const Expr shape, BindCall("tensor_to_shape", {tensor}, {}, span));
  const PrimVar var = ir::MakePrimVar(name);
  MatchType(shape, ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{var}), name, span);
  return PrimExpr(var);
}

Result<std::vector<Expr>> GraphImporter::ImportLoop(const std::string& label, const NodeImporter& importer,
                                                    Scope& scope) {
  INGOT_ASSIGN_OR_RETURN(const OnnxGraph* graph, GraphOf(importer, "body"));
  const ir::Span span = SpanOf(label);
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
    INGOT_ASSIGN_OR_RETURN(condition, BindCall("reshape", {condition, ShapeOf({})}, {}, span));
    plan.condition = condition;
  }
  Expr limit;  // the number of trips as a tensor
  if (importer.HasInput(0)) {
    const std::optional<ShapeValue> trips = importer.Known(0);
    if (trips && trips->elements.size() == 1) {
      plan.trips = ir::Max(trips->elements[0], ir::Int64(0));
      if (const auto count = ir::AsConstInt(trips->elements[0])) plan.trips = ir::Int64(std::max<int64_t>(*count, 0));
    } else {
      INGOT_ASSIGN_OR_RETURN(limit, importer.Input(0));
      INGOT_ASSIGN_OR_RETURN(limit, BindCall("nn.relu", {limit}, {}, span));
      INGOT_ASSIGN_OR_RETURN(plan.trips, ReadInteger(limit, "trips", span));
    }
  }
  bool keeps_condition = false;  // the body returns the condition that it was given
  // Whether the body takes a carried value as an optional and returns it as a sequence.
  std::vector<bool> gives_sequence(num_carried, false);
  plan.turn = [&](const PrimVar& i, const Expr& holds, const std::vector<Expr>& carried) -> Result<Turn> {
    Scope inner;
    inner.has_bindings = true;
    INGOT_RETURN_IF_ERROR(OpenGraph(*graph, label, scope, inner));
    const auto shape_of = [](const OnnxValueInfo& info) {
      return std::vector<int64_t>(info.dims ? info.dims->size() : 0, 1);
    };
    ShapeValue index{DataType::Int(64), shape_of(graph->inputs[0]), {i}};
    const Type index_type = index.Type();
    INGOT_RETURN_IF_ERROR(
        Define(inner, graph->inputs[0].name, {.expr = nullptr, .type = index_type, .known = std::move(index)}));
    if (holds) {
      Expr value = holds;
      if (graph->inputs[1].dims && !graph->inputs[1].dims->empty()) {
        INGOT_ASSIGN_OR_RETURN(value, BindCall("reshape", {holds, ShapeOf({ir::Int64(1)})}, {}, span));
      }
      INGOT_RETURN_IF_ERROR(Define(inner, graph->inputs[1].name, value));
    } else {
      ShapeValue yes{DataType::Bool(), shape_of(graph->inputs[1]), {ir::BoolImm(true)}};
      const Type type = yes.Type();
      INGOT_RETURN_IF_ERROR(
          Define(inner, graph->inputs[1].name, {.expr = nullptr, .type = type, .known = std::move(yes)}));
    }
    for (size_t k = 0; k < num_carried; ++k) {
      INGOT_RETURN_IF_ERROR(Define(inner, graph->inputs[k + 2].name, carried[k]));
    }
    const size_t num_reported = report_.unsupported.size();
    INGOT_RETURN_IF_ERROR(ImportGraph(*graph, label, inner));
    Turn turn;
    const ImportedValue* goes_on = inner.Find(graph->outputs[0].name);
    const PrimExpr* constant = goes_on == nullptr ? nullptr : OneElement(*goes_on);
    const std::optional<int64_t> truth = constant == nullptr ? std::nullopt : ir::AsConstInt(*constant);
    const bool is_kept = goes_on != nullptr && holds && goes_on->expr.same_as(holds);
    keeps_condition = is_kept || (truth && *truth != 0);
    INGOT_ASSIGN_OR_RETURN(std::vector<Expr> results, ResultsOf(*graph, label, inner));
    turn.is_imported = !results.empty() && report_.unsupported.size() == num_reported;
    if (!turn.is_imported) return turn;
    if (!keeps_condition) {
      INGOT_ASSIGN_OR_RETURN(turn.condition, BindCall("reshape", {results[0], ShapeOf({})}, {}, span));
    } else if (holds) {
      turn.condition = holds;
    }
    for (size_t k = 0; k < num_carried; ++k) {
      const Expr& result = results[k + 1];
      const ObjectInfo *before = ObjectOf(carried[k]), *after = ObjectOf(result);
      if (before != nullptr && after != nullptr) {
        gives_sequence[k] = before->is_optional && !after->is_optional;
        INGOT_ASSIGN_OR_RETURN(Expr held, gives_sequence[k] ? AsOptional(result, span) : result);
        turn.carried.push_back(std::move(held));
      } else {
        turn.carried.push_back(after != nullptr ? result
                                                : AsDeclared(result, carried[k]->type, graph->outputs[k + 1], span));
      }
    }
    turn.rows.assign(results.begin() + static_cast<std::ptrdiff_t>(num_carried) + 1, results.end());
    for (size_t k = 0; k < turn.rows.size(); ++k) {
      turn.rows[k] = AsDeclared(turn.rows[k], nullptr, graph->outputs[num_carried + 1 + k], span);
    }
    return turn;
  };
  if (condition && plan.trips) {
    // A condition that the body does not change decides before the first trip whether there are any trips.
    INGOT_RETURN_IF_ERROR(TryLoopBody(plan));
    if (keeps_condition) {
      INGOT_ASSIGN_OR_RETURN(const PrimExpr begins_at_all, ReadInteger(condition, "begins", span));
      plan.trips = plan.trips * begins_at_all;
      plan.condition = nullptr;
    }
  }
  INGOT_ASSIGN_OR_RETURN(std::vector<Expr> values, BuildLoop(std::move(plan)));
  for (size_t k = 0; k < num_carried && !values.empty(); ++k) {
    if (!gives_sequence[k]) continue;
    INGOT_ASSIGN_OR_RETURN(values[k], ElementAt(values[k], ir::Int64(0), nullptr, span));
  }
  return values;
}

// If the file declares constant dims which are not proved (to be those that the value had before, or to be constants at
// all), the declared dims are checked when the program runs.
Expr GraphImporter::AsDeclared(const Expr& value, const Type& before, const OnnxValueInfo& info, const ir::Span& span) {
  const auto* tensor = KnownTensor(value->type);
  if (tensor == nullptr || !info.dims || info.dims->size() != tensor->dims->size()) return value;
  const auto* wanted = before == nullptr ? nullptr : KnownTensor(before);
  std::vector<PrimExpr> dims = *tensor->dims;
  bool is_changed = false;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const std::optional<int64_t>& declared = (*info.dims)[axis].value;
    if (!declared || ir::AsConstInt(dims[axis])) continue;
    const std::optional<int64_t> had = wanted == nullptr ? std::nullopt : ir::AsConstInt((*wanted->dims)[axis]);
    if (wanted != nullptr && (!had || *had != *declared)) continue;
    dims[axis] = ir::Int64(*declared);
    is_changed = true;
  }
  if (!is_changed) return value;
  return MatchType(value, TensorType(std::move(dims), *tensor->dtype), Identifier(info.name), span);
}

// ---- Scan

// Returns the slice of a tensor at a place along one axis, without that axis.
Result<Expr> GraphImporter::SliceAt(const Expr& tensor, const PrimExpr& place, int64_t axis, const ir::Span& span) {
  INGOT_ASSIGN_OR_RETURN(Expr index, BindCall("shape_to_tensor", {ShapeOf({place})}, {}, span));
  INGOT_ASSIGN_OR_RETURN(index, BindCall("reshape", {index, ShapeOf({})}, {}, span));
  return BindCall("take", {tensor, index}, {{"axis", axis}}, span);
}

Result<std::vector<Expr>> GraphImporter::ImportScan(const std::string& label, const NodeImporter& importer,
                                                    Scope& scope) {
  INGOT_ASSIGN_OR_RETURN(const OnnxGraph* graph, GraphOf(importer, "body"));
  const ir::Span span = SpanOf(label);
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
  const auto scan = [&](std::vector<Expr> states, const std::vector<Expr>& sequences) -> Result<std::vector<Expr>> {
    LoopPlan plan;
    plan.label = label;
    plan.initial = std::move(states);
    for (int64_t direction : out_directions) plan.is_row_reversed.push_back(direction != 0);
    for (size_t k = 0; k < num_scans; ++k) {
      const auto* tensor = KnownTensor(sequences[k]->type);
      if (axes[k] < 0) axes[k] += tensor->rank;
      if (axes[k] < 0 || axes[k] >= tensor->rank) return importer.Invalid("an axis that its input does not have");
      if (!plan.trips) plan.trips = (*tensor->dims)[static_cast<size_t>(axes[k])];
    }
    plan.turn = [&](const PrimVar& i, const Expr&, const std::vector<Expr>& carried) -> Result<Turn> {
      Scope inner;
      inner.has_bindings = true;
      INGOT_RETURN_IF_ERROR(OpenGraph(*graph, label, scope, inner));
      for (size_t k = 0; k < num_carried; ++k) {
        INGOT_RETURN_IF_ERROR(Define(inner, graph->inputs[k].name, carried[k]));
      }
      for (size_t k = 0; k < num_scans; ++k) {
        const PrimExpr& length = (*KnownTensor(sequences[k]->type)->dims)[static_cast<size_t>(axes[k])];
        const PrimExpr place = directions[k] != 0 ? length - 1 - PrimExpr(i) : PrimExpr(i);
        INGOT_ASSIGN_OR_RETURN(Expr slice, SliceAt(sequences[k], place, axes[k], span));
        INGOT_RETURN_IF_ERROR(Define(inner, graph->inputs[num_carried + k].name, std::move(slice)));
      }
      const size_t num_reported = report_.unsupported.size();
      INGOT_RETURN_IF_ERROR(ImportGraph(*graph, label, inner));
      INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> results, ResultsOf(*graph, label, inner));
      Turn turn;
      turn.is_imported = !results.empty() && report_.unsupported.size() == num_reported;
      if (!turn.is_imported) return turn;
      turn.carried.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(num_carried));
      turn.rows.assign(results.begin() + static_cast<std::ptrdiff_t>(num_carried), results.end());
      return turn;
    };
    INGOT_ASSIGN_OR_RETURN(std::vector<Expr> values, BuildLoop(plan));
    for (size_t k = 0; k < num_rows && !values.empty(); ++k) {
      Expr& value = values[num_carried + k];
      const int rank = KnownTensor(value->type)->rank;
      const int64_t axis = out_axes[k] < 0 ? out_axes[k] + rank : out_axes[k];
      if (axis < 0 || axis >= rank) return importer.Invalid("an axis that its output does not have");
      if (axis == 0) continue;
      std::vector<int64_t> permutation;
      for (int64_t a = 1; a < rank; ++a) permutation.push_back(a);
      permutation.insert(permutation.begin() + axis, 0);
      INGOT_ASSIGN_OR_RETURN(value,
                             BindCall("permute_dims", {value}, {{"axes", ir::AttrValue::Ints(permutation)}}, span));
    }
    return values;
  };
  if (!is_batched) return scan(std::move(initial), scanned);
  LoopPlan batch;
  batch.label = label;
  batch.is_row_reversed.assign(num_carried + num_rows, false);
  const std::vector<Expr>& any = scanned.empty() ? initial : scanned;
  batch.trips = KnownTensor(any[0]->type)->dims->at(0);
  batch.turn = [&](const PrimVar& b, const Expr&, const std::vector<Expr>&) -> Result<Turn> {
    std::vector<Expr> states, sequences;
    for (const Expr& state : initial) {
      INGOT_ASSIGN_OR_RETURN(Expr slice, SliceAt(state, b, 0, span));
      states.push_back(std::move(slice));
    }
    for (const Expr& sequence : scanned) {
      INGOT_ASSIGN_OR_RETURN(Expr slice, SliceAt(sequence, b, 0, span));
      sequences.push_back(std::move(slice));
    }
    Turn turn;
    INGOT_ASSIGN_OR_RETURN(turn.rows, scan(std::move(states), sequences));
    turn.is_imported = !turn.rows.empty();
    return turn;
  };
  return BuildLoop(std::move(batch));
}

}  // namespace ingot::importer
