// The walk over nodes. Functions of the model, and branches whose condition is known, are expanded where they are
// called. A node that cannot be imported is noted, and its outputs become stand-ins, so that the walk goes on and finds
// every other such node.
#include "compiler/importer/graph_importer.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "compiler/importer/build.h"
#include "compiler/importer/channel_blocks.h"
#include "compiler/importer/implied_dims.h"
#include "compiler/importer/ops/util.h"
#include "compiler/importer/packed_values.h"
#include "compiler/importer/shape_values.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/infer.h"
#include "compiler/op/packed_elements.h"

namespace ingot::importer {

using ir::Expr;

namespace {

// Replaces dataflow variables by ordinary ones.
class PlainVariables : public ir::ExprMutator {
 protected:
  void MutateBinding(const ir::Binding& binding) override {
    ir::Binding plain = binding;
    plain.value = MutateExpr(binding.value);
    if (binding.var->is_dataflow) {
      plain.var = ir::Make<ir::VarNode>(binding.var->name, binding.var->type);
      var_map_[binding.var] = plain.var;
    }
    Emit(std::move(plain));
  }
};

// Names of results. Nothing keeps a graph from listing an output again; the second name is its own, as files of tensors
// and whoever asks by name need it.
class ResultNames {
 public:
  explicit ResultNames(const OnnxGraph& graph) {
    for (const OnnxValueInfo& info : graph.outputs) listed_.insert(info.name);
  }
  std::string NameOf(const std::string& listed) {
    if (given_.insert(listed).second) return listed;
    std::string name;
    do {
      name = listed + "_" + std::to_string(++times_[listed]);
    } while (listed_.contains(name));
    return name;
  }

 private:
  std::set<std::string> listed_, given_;
  std::map<std::string, int> times_;
};

}  // namespace

Status GraphImporter::Run() {
  INGOT_RETURN_IF_ERROR(report_.ReadOpset());
  INGOT_RETURN_IF_ERROR(symbols_.Configure(options_));
  INGOT_RETURN_IF_ERROR(graph_.OpenMain(model_.graph, report_.report().opset));
  INGOT_RETURN_IF_ERROR(inputs_.BindConstants(model_.graph, graph_));
  INGOT_RETURN_IF_ERROR(inputs_.MakeParameters(model_.graph, graph_, sequences_));
  INGOT_RETURN_IF_ERROR(UnpackParameters());
  INGOT_RETURN_IF_ERROR(ImportNodes(model_.graph.nodes, &model_.graph.outputs, graph_));
  INGOT_RETURN_IF_ERROR(outputs_.MaterialiseResults(model_.graph, graph_));
  if (report_.report().unsupported.empty()) INGOT_RETURN_IF_ERROR(outputs_.PackResults(model_.graph, graph_));
  report_.CountOperators();
  return Status();
}

// What the nodes see of parameters whose elements take less than a byte.
Status GraphImporter::UnpackParameters() {
  for (size_t i = 0; i < inputs_.params().size(); ++i) {
    const ir::Var& param = inputs_.params()[i];
    const auto* type = KnownTensor(param->type);
    if (type == nullptr || !op::IsPackedElement(*type->dtype)) continue;
    const std::string& name = inputs_.names()[i];
    INGOT_ASSIGN_OR_RETURN(const Expr elements, UnpackElements(builder_, param, builder_.SpanOf(name)));
    graph_.Set(name, {.expr = elements, .type = elements->type, .packed = *type->dtype});
  }
  return Status();
}

Status GraphImporter::ImportNodes(std::span<const OnnxNode> nodes, const std::vector<OnnxValueInfo>* outputs,
                                  Scope& scope) {
  const Rest outer = rest_;
  const bool ends_model =
      outputs != nullptr && (outputs == &model_.graph.outputs || (outputs == outer.outputs && outer.ends_model));
  rest_ = {nodes, outputs, ends_model};
  Status status;
  for (size_t i = 0; i < nodes.size() && status.ok() && !rest_.is_done; ++i) {
    rest_.nodes = nodes.subspan(i + 1);
    status = ImportNode(nodes[i], scope.LabelOf(nodes[i], i), scope);
  }
  rest_ = outer;
  return status;
}

Status GraphImporter::ImportBody(const OnnxGraph& graph, const std::string& label, Scope& scope) {
  const Expansion::Level level(expansion_, nullptr);
  INGOT_RETURN_IF_ERROR(expansion_.Add(label, graph.nodes.size()));
  return ImportNodes(graph.nodes, &graph.outputs, scope);
}

// Inside a function, attributes may refer to those of the call; an attribute that the call lacks is left out. What
// lies in blocks of channels gets their width as an attribute.
Status GraphImporter::ImportNode(const OnnxNode& node, const std::string& label, Scope& scope) {
  const auto refers = [](const OnnxAttribute& attribute) { return !attribute.reference.empty(); };
  const bool lies_in_blocks = node.domain == kChannelBlocks;
  if (std::ranges::none_of(node.attributes, refers) && !lies_in_blocks) return ImportResolved(node, label, scope);
  OnnxNode resolved = node;
  std::erase_if(resolved.attributes, refers);
  if (lies_in_blocks) {
    if (std::ranges::any_of(node.attributes, [](const auto& own) { return own.name == kChannelBlockAttr; })) {
      return Status(StatusCode::kUnsupportedModel, NodePrefix(node, label) + "attribute \"" + kChannelBlockAttr + "\"");
    }
    if (!channel_block_) channel_block_ = ChannelBlockOf(model_);
    resolved.attributes.insert(resolved.attributes.begin(), {kChannelBlockAttr, *channel_block_, {}});
  }
  for (const OnnxAttribute& attribute : node.attributes) {
    const OnnxAttribute* given = refers(attribute) ? scope.CallAttribute(attribute.reference) : nullptr;
    if (given != nullptr) resolved.attributes.push_back({attribute.name, given->value, {}});
  }
  return ImportResolved(resolved, label, scope);
}

Status GraphImporter::ImportResolved(const OnnxNode& node, const std::string& label, Scope& scope) {
  Inputs inputs;
  for (const std::string& name : node.inputs) {
    ImportedValue* value = name.empty() ? nullptr : scope.Find(name);
    if (!value && !scope.IsLeftOut(name)) {
      return Status(StatusCode::kBadInput,
                    NodePrefix(node, label) + "its input \"" + name + "\" is not defined before it");
    }
    inputs.has_stand_in |= value && value->stand_in;
    inputs.has_unknown |= value && value->type == nullptr;
    inputs.values.push_back(value);
  }
  const NodeImporter importer(node, scope.opset(), inputs.values, builder_.SpanOf(label), builder_.bindings(),
                              expansion_.is_outermost() ? &symbols_.implied_bounds() : nullptr);
  if (!node.domain.empty()) {
    const OnnxOpRow* row = FindFunction(node) == nullptr ? FindOnnxOp(node.op_type, node.domain) : nullptr;
    return row != nullptr ? ImportOperator(*row, importer, inputs, scope) : ImportOther(importer, inputs, scope);
  }
  const bool has_strings = TakesStrings(importer);  // which are no numbers to compute with
  std::optional<std::vector<ShapeValue>> known;
  if (!inputs.has_unknown && (!has_strings || node.op_type == "Shape" || node.op_type == "Size")) {
    known = EvaluateShapeValues(importer, symbols_);
  }
  if (known && (inputs.has_stand_in || std::ranges::all_of(*known, &ShapeValue::is_exact))) {
    return outputs_.DefineKnown(node, *std::move(known), inputs.has_stand_in, scope);
  }
  INGOT_RETURN_IF_ERROR(ImportTensors(importer, inputs, scope));
  if (known) outputs_.NoteFormulas(node, *std::move(known), scope);
  return Status();
}

Status GraphImporter::ImportTensors(const NodeImporter& importer, const Inputs& inputs, Scope& scope) {
  const OnnxNode& node = importer.node();
  if (node.op_type == "Squeeze" && !inputs.has_unknown && !inputs.has_stand_in) {
    INGOT_ASSIGN_OR_RETURN(const bool is_imported, ImportSqueeze(importer, scope));
    if (is_imported) return Status();
  }
  if (const OnnxOpRow* row = FindOnnxOp(node.op_type)) return ImportOperator(*row, importer, inputs, scope);
  if (const SequenceImporter::Row* row = SequenceImporter::Find(node.op_type)) {
    return ImportSequenceOperator(*row, importer, inputs, scope);
  }
  return ImportOther(importer, inputs, scope);
}

namespace {

// A node's inputs, those that have values with symbols for long formulas among their dims.
class ShortInputs {
 public:
  ShortInputs(BindingBuilder& builder, const NodeImporter& importer, const std::vector<ImportedValue*>& inputs)
      : shortened_(inputs.size()), values_(inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == nullptr || inputs[i]->expr == nullptr || inputs[i]->stand_in) continue;
      shortened_[i] = *inputs[i];
      shortened_[i].expr =
          builder.WithShortDims(inputs[i]->expr, Identifier(importer.node().inputs[i]), importer.span());
      shortened_[i].type = shortened_[i].expr->type;
      values_[i] = &shortened_[i];
    }
  }
  ShortInputs(const ShortInputs&) = delete;
  ShortInputs& operator=(const ShortInputs&) = delete;

  const std::vector<ImportedValue*>& values() const { return values_; }  // as long as this lives

 private:
  std::vector<ImportedValue> shortened_;
  std::vector<ImportedValue*> values_;
};

}  // namespace

Result<std::vector<Expr>> GraphImporter::ShortenDims(const OnnxOpRow& row, const NodeImporter& importer,
                                                     const Inputs& inputs, std::vector<Expr> outputs,
                                                     size_t num_bindings) {
  constexpr int kTooLong = 24;        // nodes: a broadcast of two such dims just fits into a file's dimension code
  constexpr int kTooLongInside = 48;  // of what the node's calls make on the way: such a dim itself just fits
  const auto is_long = [](const ir::Type& type, int limit) {
    const auto* tensor = KnownTensor(type);
    return tensor != nullptr &&
           std::ranges::any_of(*tensor->dims, [&](const ir::PrimExpr& dim) { return CountNodes(dim, limit) >= limit; });
  };
  const bool fits =
      std::ranges::none_of(outputs, [&](const Expr& output) { return is_long(output->type, kTooLong); }) &&
      std::none_of(builder_.bindings().begin() + static_cast<std::ptrdiff_t>(num_bindings), builder_.bindings().end(),
                   [&](const ir::Binding& binding) { return is_long(binding.var->type, kTooLongInside); });
  if (fits) return outputs;
  // What the attempt has materialised goes with its bindings.
  const std::span discarded = std::span(builder_.bindings()).subspan(num_bindings);
  for (ImportedValue* value : inputs.values) {
    const bool is_discarded = value != nullptr && std::ranges::any_of(discarded, [&](const ir::Binding& binding) {
                                return ir::As<ir::VarNode>(value->expr) == binding.var.get();
                              });
    if (is_discarded) value->expr = nullptr;
  }
  builder_.bindings().resize(num_bindings);
  const ShortInputs shortened(builder_, importer, inputs.values);
  const NodeImporter again(importer.node(), importer.opset(), shortened.values(), importer.span(), builder_.bindings(),
                           expansion_.is_outermost() ? &symbols_.implied_bounds() : nullptr);
  return ImportByRow(row, again);
}

Result<std::vector<Expr>> GraphImporter::ImportByRow(const OnnxOpRow& row, const NodeImporter& importer) {
  if (!AxesChoice::Takes(importer)) return ImportOnnxNode(row, importer);
  INGOT_ASSIGN_OR_RETURN(ImpliedInputs implied, ImpliedInputs::Of(row.op_type, row.domain, importer));
  const NodeImporter node = importer.For(importer.node(), importer.opset(), implied.pointers());
  return axes_choice_.Import(row, node, implied.pointers());
}

Status GraphImporter::ImportOperator(const OnnxOpRow& row, const NodeImporter& importer, const Inputs& inputs,
                                     Scope& scope) {
  const OnnxNode& node = importer.node();
  if (inputs.has_unknown) return outputs_.DefineStandIns(node, scope);
  const size_t num_bindings = builder_.bindings().size();
  if (const Status packed = CheckPackedInputs(importer); !packed.ok()) return Fail(importer, inputs, packed, scope);
  Result<std::vector<Expr>> outputs = ImportByRow(row, importer);
  if (outputs.ok()) outputs = ShortenDims(row, importer, inputs, *std::move(outputs), num_bindings);
  if (outputs.ok() && inputs.has_stand_in) return outputs_.DefineStandIns(node, scope, *outputs);
  if (outputs.ok()) {
    std::vector<std::optional<DataType>> packed;
    for (const Expr& output : *outputs) {
      INGOT_ASSIGN_OR_RETURN(const std::optional<DataType> dtype, PackedOutput(importer, output));
      packed.push_back(dtype);
    }
    INGOT_RETURN_IF_ERROR(outputs_.BindAll(node, *outputs, importer.span(), scope, packed));
    return expansion_.AddConstants(*importer.span().operation, std::span(builder_.bindings()).subspan(num_bindings),
                                   *outputs);
  }
  if (outputs.status().code() != StatusCode::kUnsupportedModel && inputs.has_stand_in) {
    return outputs_.DefineStandIns(node, scope);  // the declared type may be the cause
  }
  return Fail(importer, inputs, outputs.status(), scope);
}

Status GraphImporter::ImportSequenceOperator(const SequenceImporter::Row& row, const NodeImporter& importer,
                                             const Inputs& inputs, Scope& scope) {
  const OnnxNode& node = importer.node();
  if (inputs.has_stand_in) return outputs_.DefineStandIns(node, scope);
  if (const Status packed = CheckPackedInputs(importer); !packed.ok()) return Fail(importer, inputs, packed, scope);
  // Parts of a tensor have its dims' formulas in theirs, and nothing tells beforehand how long they become.
  const ShortInputs shortened(builder_, importer, inputs.values);
  const NodeImporter of_short(node, importer.opset(), shortened.values(), importer.span(), builder_.bindings(),
                              expansion_.is_outermost() ? &symbols_.implied_bounds() : nullptr);
  Result<ImportedValue> output = sequence_operators_.Import(row, of_short);
  if (!output.ok()) return Fail(importer, inputs, output.status(), scope);
  if (node.outputs.empty() || node.outputs[0].empty()) return Status();
  return outputs_.Bind(node.outputs[0], *std::move(output), importer.span(), scope);
}

// Imports a call of a function, a node that holds graphs, or a node of an unknown name.
Status GraphImporter::ImportOther(const NodeImporter& importer, const Inputs& inputs, Scope& scope) {
  const OnnxNode& node = importer.node();
  if (const OnnxFunction* function = FindFunction(node)) return ImportFunction(*function, importer, inputs, scope);
  if (ControlFlowImporter::Takes(node)) {
    if (inputs.has_unknown) return outputs_.DefineStandIns(node, scope);
    const std::optional<ShapeValue> condition = node.op_type == "If" ? importer.Known(0) : std::nullopt;
    const std::optional<int64_t> chosen =
        condition && condition->elements.size() == 1 ? ir::AsConstInt(condition->elements[0]) : std::nullopt;
    return chosen ? ImportKnownBranch(importer, *chosen != 0, scope) : ImportControlFlow(importer, scope);
  }
  // A shape operator is not reported if an input is unknown: the operator is supported, it only cannot be evaluated.
  const bool is_behind = inputs.has_unknown && node.domain.empty() && IsShapeOperator(node.op_type);
  if (is_behind) return outputs_.DefineStandIns(node, scope);
  return Fail(importer, inputs, importer.Unsupported("no operator of this name is known"), scope);
}

// Imports the branch of an If whose condition follows from shapes and constants in place of the If.
Status GraphImporter::ImportKnownBranch(const NodeImporter& importer, bool condition, Scope& scope) {
  const std::string& label = *importer.span().operation;
  Result<const OnnxGraph*> graph = GraphAttribute(importer, condition ? "then_branch" : "else_branch");
  if (!graph.ok()) return std::move(graph).status().WithContext("node \"" + label + "\" (If)");
  const OnnxGraph& branch = **graph;
  Scope inner;
  INGOT_RETURN_IF_ERROR(inner.OpenGraph(branch, label, scope, /*has_bindings=*/false));
  {
    const Expansion::Level level(expansion_, nullptr);
    INGOT_RETURN_IF_ERROR(expansion_.Add(label, branch.nodes.size()));
    INGOT_RETURN_IF_ERROR(ImportNodes(branch.nodes, nullptr, inner));
  }
  std::vector<std::string> names;
  for (const OnnxValueInfo& info : branch.outputs) names.push_back(info.name);
  return outputs_.Take(names, inner, importer.node(), label, scope);
}

Status GraphImporter::ImportControlFlow(const NodeImporter& importer, Scope& scope) {
  const OnnxNode& node = importer.node();
  const size_t num_reported = report_.num_unsupported();
  Result<std::vector<Expr>> results = control_flow_.Import(importer, scope);
  if (!results.ok() && results.status().code() == StatusCode::kUnsupportedModel && node.op_type == "If") {
    report_.KeepUnsupported(num_reported);
    INGOT_ASSIGN_OR_RETURN(const Expr condition, control_flow_.Condition(importer));
    const auto way = [&](bool holds, Scope& inner) { return ImportKnownBranch(importer, holds, inner); };
    INGOT_ASSIGN_OR_RETURN(const bool is_imported, ImportWithRest(importer, condition, way, scope));
    if (is_imported) return Status();
  }
  if (!results.ok()) {
    const Status& status = results.status();
    if (status.code() == StatusCode::kUnsupportedModel) return Fail(importer, {}, status, scope);
    return Status(status.code(), NodePrefix(node, *importer.span().operation) + status.message());
  }
  // A node inside was reported as unsupported, or a result is a stand-in.
  if (report_.num_unsupported() != num_reported || results->empty()) return outputs_.DefineStandIns(node, scope);
  // The graphs inside declare what their results are, of which loops and branches know no more than the bytes.
  const bool is_branch = node.op_type == "If";
  Result<const OnnxGraph*> graph = GraphAttribute(importer, is_branch ? "then_branch" : "body");
  std::vector<std::optional<DataType>> packed(results->size());
  for (size_t i = 0; graph.ok() && i < packed.size(); ++i) {
    const size_t place = i + (node.op_type == "Loop" ? 1 : 0);
    if (place < (*graph)->outputs.size()) packed[i] = PackedDeclared((*graph)->outputs[place], *(*results)[i]);
  }
  return outputs_.BindAll(node, *results, importer.span(), scope, packed);
}

// Imports a node in one way and the nodes behind it; an error if that cannot be, as where a node takes no tensor of the
// rank that this way gives.
Result<ImportedBranch> GraphImporter::TryWay(const NodeImporter& importer, bool condition, const ImportWay& way,
                                             const Rest& rest, Scope& scope) {
  const std::string& label = *importer.span().operation;
  const size_t num_reported = report_.num_unsupported();
  const BindingBuilder::Nested nested(builder_);
  const Expansion::Level level(expansion_, nullptr);
  INGOT_RETURN_IF_ERROR(expansion_.Add(label, rest.nodes.size()));
  Scope inner;
  INGOT_RETURN_IF_ERROR(inner.OpenGraph(OnnxGraph(), label, scope, /*has_bindings=*/true));
  const Rest outer = std::exchange(rest_, rest);
  Status status = way(condition, inner);
  if (status.ok() && !rest_.is_done) status = ImportNodes(rest.nodes, rest.outputs, inner);
  rest_ = outer;
  INGOT_RETURN_IF_ERROR(status);
  ImportedBranch branch;
  if (rest.outputs != nullptr) {
    INGOT_ASSIGN_OR_RETURN(branch.results, control_flow_.ResultsOf(*rest.outputs, label, inner, rest.ends_model));
  }
  if (report_.num_unsupported() != num_reported) return importer.Unsupported("a node that is not supported");
  branch.bindings = std::move(builder_.bindings());
  return branch;
}

Result<bool> GraphImporter::ImportWithRest(const NodeImporter& importer, const Expr& condition, const ImportWay& way,
                                           Scope& scope) {
  const size_t num_reported = report_.num_unsupported();
  // Results that stand before the node are no results of the rest.
  std::vector<OnnxValueInfo> outputs;
  Rest rest = rest_;
  if (rest.outputs != nullptr) {
    std::ranges::copy_if(*rest.outputs, std::back_inserter(outputs),
                         [&](const OnnxValueInfo& info) { return scope.Find(info.name) == nullptr; });
    rest.outputs = &outputs;
  }
  Result<ImportedBranch> yes = TryWay(importer, true, way, rest, scope);
  report_.KeepUnsupported(num_reported);
  Result<ImportedBranch> no = TryWay(importer, false, way, rest, scope);
  report_.KeepUnsupported(num_reported);
  if (yes.ok() == no.ok()) {
    if (!yes.ok() || rest.outputs == nullptr) return false;
    Result<std::vector<Expr>> results =
        control_flow_.Join(importer, condition, *std::move(yes), *std::move(no), outputs, rest.ends_model);
    if (!results.ok()) return false;
    for (size_t i = 0; i < results->size(); ++i) {
      const Expr& result = (*results)[i];
      INGOT_RETURN_IF_ERROR(
          outputs_.Bind(outputs[i].name, {.expr = result, .type = result->type}, importer.span(), scope));
    }
    rest_.is_done = true;
    return true;
  }
  // Only one way gives what the nodes behind it take: that the condition chooses it is checked when the model runs.
  const auto* number = ir::As<ir::PrimValueNode>(condition);
  ir::PrimExpr chosen;
  if (number != nullptr) {
    chosen = number->value;
  } else {
    INGOT_ASSIGN_OR_RETURN(chosen, builder_.ReadInteger(condition, "condition", importer.span()));
  }
  if (chosen->dtype.is_bool()) chosen = ir::Select(chosen, ir::Int64(1), ir::Int64(0));
  builder_.Match(ShapeOf({chosen}), ir::Make<ir::ShapeTypeNode>(std::vector<ir::PrimExpr>{ir::Int64(yes.ok() ? 1 : 0)}),
                 "chosen", importer.span());
  INGOT_RETURN_IF_ERROR(way(yes.ok(), scope));
  return true;
}

std::optional<bool> GraphImporter::IsOne(const ir::PrimExpr& dim) {
  for (const auto& [known, is_one] : is_one_) {
    if (op::DimsEqual(known, dim)) return is_one;
  }
  const std::optional<int64_t> truth = ir::AsConstInt(symbols_.analyzer().Simplify(ir::Equal(dim, ir::Int64(1))));
  return truth ? std::optional<bool>(*truth != 0) : std::nullopt;
}

Result<bool> GraphImporter::ImportSqueeze(const NodeImporter& importer, Scope& scope) {
  constexpr size_t kMaxSymbols = 3;  // each doubles the nodes behind
  const OnnxNode& node = importer.node();
  const ImportedValue* const value = importer.num_inputs() == 1 ? scope.Find(node.inputs[0]) : nullptr;
  const auto* input = value == nullptr ? nullptr : KnownTensor(value->type);
  if (input == nullptr || importer.FindAttr("axes") != nullptr) return false;
  const std::string& label = *importer.span().operation;
  std::vector<int64_t> axes;
  bool is_constant = true;
  for (int axis = 0; axis < input->rank; ++axis) {
    const ir::PrimExpr dim = (*input->dims)[static_cast<size_t>(axis)];
    is_constant = is_constant && ir::AsConstInt(dim).has_value();
    const std::optional<bool> is_one = IsOne(dim);
    if (is_one && *is_one) axes.push_back(axis);
    if (is_one) continue;
    if (is_one_.size() == kMaxSymbols) return false;
    const size_t num_known = is_one_.size();
    const Expr condition = Number(ir::Equal(dim, ir::Int64(1)));
    return ImportWithRest(
        importer, condition,
        [&](bool holds, Scope& inner) {
          is_one_.emplace_back(dim, holds);
          const Status status = ImportResolved(node, label, inner);
          is_one_.resize(num_known);
          return status;
        },
        scope);
  }
  if (is_constant) return false;
  INGOT_ASSIGN_OR_RETURN(Expr squeezed, importer.Input(0));
  if (!axes.empty()) {
    INGOT_ASSIGN_OR_RETURN(squeezed, importer.Call("squeeze", {squeezed}, {{"axis", ir::AttrValue::Ints(axes)}}));
  }
  INGOT_RETURN_IF_ERROR(outputs_.BindAll(node, {squeezed}, importer.span(), scope));
  return true;
}

const OnnxFunction* GraphImporter::FindFunction(const OnnxNode& node) const {
  for (const OnnxFunction& function : model_.functions) {
    if (function.name == node.op_type && function.domain == node.domain && function.overload == node.overload) {
      return &function;
    }
  }
  return nullptr;
}

Status GraphImporter::ImportFunction(const OnnxFunction& function, const NodeImporter& importer, const Inputs& inputs,
                                     Scope& scope) {
  const OnnxNode& node = importer.node();
  const std::string& label = *importer.span().operation;
  if (expansion_.IsExpanding(function)) {
    return Status(StatusCode::kBadInput, NodePrefix(node, label) + "the function calls itself");
  }
  if (inputs.values.size() > function.inputs.size()) {
    return Status(StatusCode::kBadInput, NodePrefix(node, label) + "the function takes " +
                                             std::to_string(function.inputs.size()) + " inputs, got " +
                                             std::to_string(inputs.values.size()));
  }
  Scope inner;
  INGOT_RETURN_IF_ERROR(inner.OpenFunction(function, node, label, inputs.values, scope));
  {
    const Expansion::Level level(expansion_, &function);
    INGOT_RETURN_IF_ERROR(expansion_.Add(label, function.nodes.size()));
    INGOT_RETURN_IF_ERROR(ImportNodes(function.nodes, nullptr, inner));
  }
  return outputs_.Take(function.outputs, inner, node, label, scope);
}

// Reports a node that is not supported and goes on with stand-ins; any other error ends the import.
Status GraphImporter::Fail(const NodeImporter& importer, const Inputs& inputs, const Status& status, Scope& scope) {
  const OnnxNode& node = importer.node();
  const std::string& label = *importer.span().operation;
  if (status.code() != StatusCode::kUnsupportedModel) {
    return Status(StatusCode::kBadInput, NodePrefix(node, label) + status.message());
  }
  report_.AddUnsupported(node, label, inputs.values, status.message());
  return outputs_.DefineStandIns(node, scope);
}

Result<ir::IRModule> GraphImporter::Module() {
  std::vector<Expr> results;
  std::vector<ir::Type> types;
  ir::AttrList inputs(inputs_.names().begin(), inputs_.names().end()), outputs, string_tensors;
  ResultNames names(model_.graph);
  for (const std::string& name : inputs_.names()) {
    if (graph_.Find(name)->packed == kStringElement) string_tensors.emplace_back(name);
  }
  for (const OnnxValueInfo& info : model_.graph.outputs) {
    const ImportedValue* value = graph_.Find(info.name);
    if (value == nullptr) {
      return Status(StatusCode::kBadInput, "the output \"" + info.name + "\" is not made by any node");
    }
    const Expr& expr = value->expr;
    const auto* type = ir::As<ir::TensorTypeNode>(expr->type);
    const bool is_string = value->packed == kStringElement;
    const bool is_declared = info.dtype.has_value() && type != nullptr && type->dtype.has_value();
    const bool is_text = info.dtype == kStringElement;
    if (is_declared && (is_text != is_string || (!is_text && *type->dtype != *info.dtype))) {
      const auto name = [](bool strings, const std::string& other) { return strings ? std::string("strings") : other; };
      return Status(StatusCode::kBadInput, "the output \"" + info.name + "\" is declared as " +
                                               name(is_text, info.dtype->ToString()) + ", but its node gives " +
                                               name(is_string, TypeText(expr->type)));
    }
    if (is_string) string_tensors.emplace_back(info.name);
    results.push_back(expr);
    types.push_back(expr->type);
    outputs.push_back(names.NameOf(info.name));
  }
  if (results.empty()) return Status(StatusCode::kBadInput, "the graph has no outputs");
  const ir::Type result_type = types.size() == 1 ? types[0] : ir::Type(ir::Make<ir::TupleTypeNode>(types));
  const Expr result = results.size() == 1 ? results[0] : Expr(ir::Make<ir::TupleNode>(results, result_type));
  // Branches and loops are not allowed in dataflow blocks, and they use values around them.
  std::vector<ir::Binding>& bindings = builder_.bindings();
  const bool is_straight = std::ranges::none_of(bindings, [](const ir::Binding& binding) {
    return ir::As<ir::IfNode>(binding.value) != nullptr || ir::As<ir::FunctionNode>(binding.value) != nullptr;
  });
  std::vector<ir::BindingBlock> blocks;
  if (!bindings.empty()) blocks.push_back({std::move(bindings), is_straight});
  ir::SeqExpr body = ir::Make<ir::SeqExprNode>(std::move(blocks), result, result_type);
  if (!is_straight) body = ir::Downcast<ir::SeqExprNode>(PlainVariables().MutateExpr(body));
  ir::Attrs attrs = {{"num_input", static_cast<int64_t>(inputs_.params().size())},
                     {"input_names", std::move(inputs)},
                     {"output_names", std::move(outputs)}};
  if (!string_tensors.empty()) {
    attrs = attrs.With(kStringTensorsAttr, std::move(string_tensors))
                .With(kStringsAttr, ir::AttrList(model_.strings.begin(), model_.strings.end()));
  }
  ir::IRModule module;
  module.Add("main", ir::Make<ir::FunctionNode>(inputs_.params(), body, result_type, /*pure=*/true, /*priv=*/false,
                                                symbols_.WithBounds(std::move(attrs))));
  return module;
}

}  // namespace ingot::importer
