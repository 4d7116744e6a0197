// Sequences and optional values. A part of compiler/importer/graph_importer.h.
//
// Both are R.Object, made and taken apart by the operators R.sequence.*; an optional value is a sequence of at most one
// element. If the graph determines all elements of a sequence, as where an exporter splits a tensor and picks the
// parts, the element taken out is the expression that was put in, and the sequence itself is dead code. Everything else
// is decided when the program runs: a tensor that is taken out has a dtype and a rank, and new symbols for its dims.
#include <algorithm>
#include <utility>

#include "compiler/importer/build.h"
#include "compiler/importer/graph_importer.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"

namespace ingot::importer {

using ir::PrimVar;
using ir::Type;

namespace {

// A tensor is cut into up to so many pieces without a loop.
constexpr int64_t kMaxUnrolled = 64;

bool IsObject(const Type& type) { return type != nullptr && type->kind == ir::TypeKind::kObject; }

ImportedValue ValueOf(Expr expr) {
  Type type = expr->type;
  return {.expr = std::move(expr), .type = std::move(type)};
}
Result<ImportedValue> ValueOf(Result<Expr> expr) {
  if (!expr.ok()) return std::move(expr).status();
  return ValueOf(*std::move(expr));
}
ImportedValue ValueOf(DataType dtype, PrimExpr element) {
  ShapeValue value{dtype, {}, {std::move(element)}};
  Type type = value.Type();
  return {.expr = nullptr, .type = std::move(type), .known = std::move(value)};
}

// Returns a constant place in a list, counted from the end if negative; nothing if it is not constant or outside.
std::optional<size_t> ConstantPlace(const PrimExpr& place, size_t length) {
  const auto constant = ir::AsConstInt(place);
  const auto end = static_cast<int64_t>(length);
  if (!constant || *constant < -end || *constant >= end) return std::nullopt;
  return static_cast<size_t>(*constant < 0 ? *constant + end : *constant);
}

Status Unsupported(std::string reason) { return Status(StatusCode::kUnsupportedModel, std::move(reason)); }

}  // namespace

// ---- What is known of sequences and optional values

ObjectInfo ObjectInfo::Declared(const OnnxValueInfo& info) {
  const int rank = info.dims ? static_cast<int>(info.dims->size()) : kUnlike;
  return {info.is_optional, info.is_optional && info.is_sequence, info.dtype, rank};
}

Status ObjectInfo::Add(const Expr& tensor) {
  const auto* type = KnownTensor(tensor->type);
  if (type == nullptr) return Unsupported("an element of unknown rank or type");
  return Join({is_optional, holds_sequence, type->dtype, type->rank});
}

Status ObjectInfo::Join(const ObjectInfo& other) {
  if (is_optional != other.is_optional) return Unsupported("a sequence beside an optional value");
  if (dtype && other.dtype && *dtype != *other.dtype) {
    return Unsupported("tensors of " + dtype->ToString() + " and " + other.dtype->ToString() + " in one sequence");
  }
  if (!dtype) dtype = other.dtype;
  holds_sequence |= other.holds_sequence;
  if (rank == kNothing) {
    rank = other.rank;
  } else if (other.rank != kNothing && other.rank != rank) {
    rank = kUnlike;
  }
  elements.reset();
  return Status();
}

const ObjectInfo* GraphImporter::ObjectOf(const Expr& expr) const {
  const auto found = objects_.find(expr);
  return found == objects_.end() ? nullptr : &found->second;
}

Result<const ObjectInfo*> GraphImporter::SequenceInput(const NodeImporter& node, size_t i) const {
  INGOT_ASSIGN_OR_RETURN(const Expr input, node.Input(i));
  const ObjectInfo* info = ObjectOf(input);
  if (info == nullptr || info->is_optional) return node.Invalid("input " + std::to_string(i) + ": expected a sequence");
  return info;
}

// ---- Calls

Result<Expr> GraphImporter::MakeSequence(std::vector<Expr> elements, ObjectInfo info, const ir::Span& span) {
  INGOT_ASSIGN_OR_RETURN(Expr sequence, BindCall("sequence.construct", elements, {}, span));
  info.elements = std::move(elements);
  objects_.emplace(sequence, std::move(info));
  return sequence;
}

Result<Expr> GraphImporter::AsOptional(const Expr& value, const ir::Span& span) {
  const ObjectInfo& sequence = *ObjectOf(value);
  return MakeSequence({value}, {true, true, sequence.dtype, sequence.rank}, span);
}

Result<Expr> GraphImporter::InsertAt(const Expr& sequence, const Expr& value, const PrimExpr& place,
                                     const ir::Span& span) {
  ObjectInfo info = *ObjectOf(sequence);
  INGOT_RETURN_IF_ERROR(info.Add(value));
  INGOT_ASSIGN_OR_RETURN(Expr longer, BindCall("sequence.insert", {sequence, value, Number(place)}, {}, span));
  objects_.emplace(longer, std::move(info));
  return longer;
}

Result<Expr> GraphImporter::ElementAt(const Expr& sequence, const PrimExpr& place, const OnnxValueInfo* declared,
                                      const ir::Span& span) {
  const ObjectInfo info = *ObjectOf(sequence);
  if (info.elements) {
    if (const std::optional<size_t> known = ConstantPlace(place, info.elements->size()))
      return (*info.elements)[*known];
  }
  if (info.holds_sequence) {
    INGOT_ASSIGN_OR_RETURN(Expr element, BindCall("sequence.at", {sequence, Number(place)}, {}, span));
    objects_.emplace(element, ObjectInfo{false, false, info.dtype, info.rank});
    return element;
  }
  const bool says_rank = declared != nullptr && declared->is_tensor && declared->dims;
  const int rank = info.rank < 0 && says_rank ? static_cast<int>(declared->dims->size()) : info.rank;
  const std::optional<DataType> dtype = info.dtype || declared == nullptr ? info.dtype : declared->dtype;
  if (!dtype || rank < 0) return Unsupported("an element of a sequence whose tensors have unlike or unknown ranks");
  INGOT_ASSIGN_OR_RETURN(const Expr element, BindCall("sequence.at", {sequence, Number(place)},
                                                      {{"dtype", *dtype}, {"ndim", int64_t{rank}}}, span));
  const std::vector<PrimExpr> unknown(static_cast<size_t>(rank), ir::Int64(0));
  return WithNewSymbols(element, unknown, LooseDims(unknown.size(), true), *dtype, "element", span);
}

Result<PrimExpr> GraphImporter::LengthOf(const Expr& sequence, const ir::Span& span) {
  if (const ObjectInfo& info = *ObjectOf(sequence); info.elements) return ir::Int64(std::ssize(*info.elements));
  INGOT_ASSIGN_OR_RETURN(const Expr shape, BindCall("sequence.length", {sequence}, {}, span));
  const PrimVar length = ir::MakePrimVar("length");
  analyzer_.Bind(length, arith::Interval{0, INT64_MAX});
  MatchType(shape, ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{length}), "length", span);
  return PrimExpr(length);
}

// Returns the slices of a tensor from `begin` to `end` along an axis; a single slice may lose the axis.
Result<Expr> GraphImporter::Piece(const Expr& tensor, int64_t axis, const PrimExpr& begin, const PrimExpr& end,
                                  bool keeps_axis, const ir::Span& span) {
  const auto numbers = [](const PrimExpr& value) { return TupleOf({Number(value)}); };
  INGOT_ASSIGN_OR_RETURN(
      Expr piece,
      BindCall("strided_slice", {tensor, numbers(ir::Int64(axis)), numbers(begin), numbers(end)}, {}, span));
  if (keeps_axis) return piece;
  return BindCall("squeeze", {piece}, {{"axis", AttrValue::Ints({axis})}}, span);
}

// ---- Sequences

Result<ImportedValue> GraphImporter::SequenceConstruct(const NodeImporter& node) {
  ObjectInfo info;
  std::vector<Expr> elements;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr element, node.Input(i));
    INGOT_RETURN_IF_ERROR(info.Add(element));
    elements.push_back(std::move(element));
  }
  return ValueOf(MakeSequence(std::move(elements), std::move(info), node.span()));
}

Result<ImportedValue> GraphImporter::SequenceEmpty(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const int64_t number, node.Int("dtype", 1));
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, OnnxDataType(number));
  return ValueOf(MakeSequence({}, {false, false, dtype}, node.span()));
}

Result<ImportedValue> GraphImporter::SequenceInsert(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const ObjectInfo* known, SequenceInput(node, 0));
  INGOT_ASSIGN_OR_RETURN(const Expr sequence, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr value, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(PrimExpr place, LengthOf(sequence, node.span()));
  const bool at_end = !node.HasInput(2);
  if (!at_end) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> given, node.DataInts(2, "the position"));
    if (given.size() != 1) return node.Invalid("expected one position");
    place = given[0];
  }
  known = ObjectOf(sequence);  // LengthOf may have moved it
  const std::optional<size_t> before = !known->elements ? std::nullopt
                                       : at_end         ? known->elements->size()
                                                        : ConstantPlace(place, known->elements->size());
  if (!before) return ValueOf(InsertAt(sequence, value, place, node.span()));
  ObjectInfo info = *known;
  std::vector<Expr> elements = *info.elements;
  INGOT_RETURN_IF_ERROR(info.Add(value));
  elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(*before), value);
  return ValueOf(MakeSequence(std::move(elements), std::move(info), node.span()));
}

Result<ImportedValue> GraphImporter::SequenceErase(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const ObjectInfo* known, SequenceInput(node, 0));
  ObjectInfo info = *known;
  INGOT_ASSIGN_OR_RETURN(const Expr sequence, node.Input(0));
  std::vector<PrimExpr> place{ir::Int64(-1)};
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(place, node.DataInts(1, "the position"));
  }
  if (place.size() != 1) return node.Invalid("expected one position");
  if (info.elements) {
    if (const std::optional<size_t> gone = ConstantPlace(place[0], info.elements->size())) {
      std::vector<Expr> elements = *std::move(info.elements);
      elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(*gone));
      return ValueOf(MakeSequence(std::move(elements), std::move(info), node.span()));
    }
  }
  info.elements.reset();
  INGOT_ASSIGN_OR_RETURN(const Expr shorter, BindCall("sequence.erase", {sequence, Number(place[0])}, {}, node.span()));
  objects_.emplace(shorter, std::move(info));
  return ValueOf(shorter);
}

Result<ImportedValue> GraphImporter::SequenceAt(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(SequenceInput(node, 0).status());
  INGOT_ASSIGN_OR_RETURN(const Expr sequence, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> place, node.DataInts(1, "the position"));
  if (place.size() != 1) return node.Invalid("expected one position");
  return ValueOf(ElementAt(sequence, place[0], nullptr, node.span()));
}

Result<ImportedValue> GraphImporter::SequenceLength(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(SequenceInput(node, 0).status());
  INGOT_ASSIGN_OR_RETURN(const Expr sequence, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(PrimExpr length, LengthOf(sequence, node.span()));
  return ValueOf(DataType::Int(64), std::move(length));
}

Result<ImportedValue> GraphImporter::ConcatFromSequence(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const ObjectInfo* known, SequenceInput(node, 0));
  const ObjectInfo info = *known;
  INGOT_ASSIGN_OR_RETURN(const Expr sequence, node.Input(0));
  if (!node.HasAttr("axis")) return node.Invalid("attribute \"axis\" is missing");
  INGOT_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t is_new, node.Int("new_axis", 0));
  if (!info.dtype || info.rank < 0) {
    return node.Unsupported("a sequence whose tensors have unlike or unknown ranks");
  }
  const int rank = info.rank + (is_new != 0 ? 1 : 0);
  INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, rank));
  if (info.elements) {
    std::vector<Expr> parts = *info.elements;
    for (Expr& part : parts) {
      if (is_new == 0) break;
      INGOT_ASSIGN_OR_RETURN(part, BindCall("expand_dims", {part}, {{"axis", AttrValue::Ints({axis})}}, node.span()));
    }
    INGOT_ASSIGN_OR_RETURN(Expr joined, node.Bind("concat", {TupleOf(std::move(parts))}, {{"axis", axis}}));
    return ValueOf(std::move(joined));
  }
  const ir::Attrs attrs{{"axis", axis}, {"new_axis", is_new != 0}};
  INGOT_ASSIGN_OR_RETURN(const Expr shape,
                         BindCall("sequence.concat_shape", {sequence}, attrs.With("ndim", int64_t{rank}), node.span()));
  std::vector<PrimExpr> dims;
  for (int i = 0; i < rank; ++i) dims.push_back(ir::MakePrimVar("joined_dim_" + std::to_string(i)));
  MatchType(shape, ir::Make<ir::ShapeTypeNode>(dims), "joined_shape", node.span());
  return ValueOf(BindCall("sequence.concat", {sequence, ShapeOf(dims)}, attrs.With("dtype", *info.dtype), node.span()));
}

// Splits into pieces of one length (the last one may be shorter), into pieces of given lengths, or into slices of
// length 1.
Result<ImportedValue> GraphImporter::SplitToSequence(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr data, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", 0));
  INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, type->rank));
  INGOT_ASSIGN_OR_RETURN(const int64_t keepdims, node.Int("keepdims", 1));
  const bool keeps_axis = node.HasInput(1) || keepdims != 0;
  const PrimExpr& extent = (*type->dims)[static_cast<size_t>(axis)];
  ObjectInfo info{false, false, *type->dtype, type->rank - (keeps_axis ? 0 : 1)};
  std::vector<Expr> pieces;
  PrimExpr length = ir::Int64(1);
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* lengths_type, node.InputType(1));
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> lengths, node.DataInts(1, "the lengths"));
    if (lengths_type->rank == 1) {
      PrimExpr begin = ir::Int64(0);
      for (const PrimExpr& part : lengths) {
        const PrimExpr end = analyzer_.Simplify(begin + part);
        INGOT_ASSIGN_OR_RETURN(Expr piece, Piece(data, axis, begin, end, true, node.span()));
        pieces.push_back(std::move(piece));
        begin = end;
      }
      // The lengths must add up to the extent; otherwise the model fails when it runs.
      MatchType(ShapeOf({begin}), ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{extent}), "whole", node.span());
      return ValueOf(MakeSequence(std::move(pieces), std::move(info), node.span()));
    }
    length = lengths[0];
  }
  const PrimExpr count = analyzer_.Simplify(ir::FloorDiv(extent + length - 1, length));
  const auto constant = ir::AsConstInt(count);
  const auto piece_at = [&](const PrimExpr& i) {
    const PrimExpr begin = i * length;
    return Piece(data, axis, analyzer_.Simplify(begin), analyzer_.Simplify(ir::Min(begin + length, extent)), keeps_axis,
                 node.span());
  };
  if (constant && *constant <= kMaxUnrolled) {
    for (int64_t i = 0; i < *constant; ++i) {
      INGOT_ASSIGN_OR_RETURN(Expr piece, piece_at(ir::Int64(i)));
      pieces.push_back(std::move(piece));
    }
    return ValueOf(MakeSequence(std::move(pieces), std::move(info), node.span()));
  }
  LoopPlan plan;
  plan.label = *node.span().operation;
  plan.trips = count;
  INGOT_ASSIGN_OR_RETURN(Expr empty, MakeSequence({}, std::move(info), node.span()));
  plan.initial.push_back(std::move(empty));
  plan.turn = [&](const PrimVar& i, const Expr&, const std::vector<Expr>& carried) -> Result<Turn> {
    INGOT_ASSIGN_OR_RETURN(const Expr piece, piece_at(i));
    INGOT_ASSIGN_OR_RETURN(Expr longer, InsertAt(carried[0], piece, i, node.span()));
    Turn turn;
    turn.carried.push_back(std::move(longer));
    return turn;
  };
  INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> results, BuildLoop(std::move(plan)));
  return ValueOf(results.at(0));
}

// ---- Optional values

Result<ImportedValue> GraphImporter::Optional(const NodeImporter& node) {
  if (!node.HasInput(0)) return ValueOf(MakeSequence({}, {.is_optional = true}, node.span()));
  INGOT_ASSIGN_OR_RETURN(const Expr value, node.Input(0));
  if (const ObjectInfo* held = ObjectOf(value)) {
    if (held->is_optional) return node.Unsupported("an optional value in another one");
    return ValueOf(AsOptional(value, node.span()));
  }
  ObjectInfo info{.is_optional = true};
  INGOT_RETURN_IF_ERROR(info.Add(value));
  return ValueOf(MakeSequence({value}, std::move(info), node.span()));
}

Result<ImportedValue> GraphImporter::OptionalHasElement(const NodeImporter& node) {
  if (!node.HasInput(0)) return ValueOf(DataType::Bool(), ir::BoolImm(false));
  const ObjectInfo* info = nullptr;
  Expr value;
  if (IsObject(node.TypeOf(0))) {
    INGOT_ASSIGN_OR_RETURN(value, node.Input(0));
    info = ObjectOf(value);
  }
  if (info == nullptr || !info->is_optional) return ValueOf(DataType::Bool(), ir::BoolImm(true));
  INGOT_ASSIGN_OR_RETURN(const PrimExpr length, LengthOf(value, node.span()));
  if (const auto known = ir::AsConstInt(length)) return ValueOf(DataType::Bool(), ir::BoolImm(*known > 0));
  return ValueOf(DataType::Bool(), length > ir::Int64(0));
}

Result<ImportedValue> GraphImporter::OptionalGetElement(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr value, node.Input(0));
  const ObjectInfo* info = ObjectOf(value);
  if (info == nullptr || !info->is_optional) return ValueOf(value);
  return ValueOf(ElementAt(value, ir::Int64(0), nullptr, node.span()));
}

// ---- SequenceMap

// Builds a loop over the elements of the first input; other sequences are indexed along with it, and tensors are the
// same in every trip.
Result<std::vector<Expr>> GraphImporter::ImportSequenceMap(const std::string& label, const NodeImporter& node,
                                                           Scope& scope) {
  INGOT_ASSIGN_OR_RETURN(const OnnxGraph* graph, GraphOf(node, "body"));
  const ir::Span span = SpanOf(label);
  INGOT_RETURN_IF_ERROR(SequenceInput(node, 0).status());
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
  INGOT_ASSIGN_OR_RETURN(plan.trips, LengthOf(inputs[0], span));
  for (size_t k = 0; k < graph->outputs.size(); ++k) {
    INGOT_ASSIGN_OR_RETURN(Expr empty, MakeSequence({}, {}, span));
    plan.initial.push_back(std::move(empty));
  }
  plan.turn = [&](const PrimVar& i, const Expr&, const std::vector<Expr>& carried) -> Result<Turn> {
    Scope inner;
    inner.has_bindings = true;
    INGOT_RETURN_IF_ERROR(OpenGraph(*graph, label, scope, inner));
    for (size_t k = 0; k < inputs.size(); ++k) {
      Expr element = inputs[k];
      if (ObjectOf(element) != nullptr) {
        INGOT_ASSIGN_OR_RETURN(element, ElementAt(element, i, &graph->inputs[k], span));
      }
      INGOT_RETURN_IF_ERROR(Define(inner, graph->inputs[k].name, std::move(element)));
    }
    const size_t num_reported = report_.unsupported.size();
    INGOT_RETURN_IF_ERROR(ImportGraph(*graph, label, inner));
    INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> results, ResultsOf(*graph, label, inner));
    Turn turn;
    turn.is_imported = !results.empty() && report_.unsupported.size() == num_reported;
    for (size_t k = 0; k < results.size() && turn.is_imported; ++k) {
      INGOT_ASSIGN_OR_RETURN(Expr longer, InsertAt(carried[k], results[k], i, span));
      turn.carried.push_back(std::move(longer));
    }
    return turn;
  };
  return BuildLoop(std::move(plan));
}

// ---- The table

struct GraphImporter::SequenceRow {
  std::string_view op_type;
  Result<ImportedValue> (GraphImporter::*import)(const NodeImporter& node);
};

std::span<const GraphImporter::SequenceRow> GraphImporter::SequenceRows() {
  static constexpr SequenceRow kRows[] = {
      {"ConcatFromSequence", &GraphImporter::ConcatFromSequence},
      {"Optional", &GraphImporter::Optional},
      {"OptionalGetElement", &GraphImporter::OptionalGetElement},
      {"OptionalHasElement", &GraphImporter::OptionalHasElement},
      {"SequenceAt", &GraphImporter::SequenceAt},
      {"SequenceConstruct", &GraphImporter::SequenceConstruct},
      {"SequenceEmpty", &GraphImporter::SequenceEmpty},
      {"SequenceErase", &GraphImporter::SequenceErase},
      {"SequenceInsert", &GraphImporter::SequenceInsert},
      {"SequenceLength", &GraphImporter::SequenceLength},
      {"SplitToSequence", &GraphImporter::SplitToSequence},
  };
  return kRows;
}

std::vector<std::string_view> GraphImporter::SequenceOperators() {
  std::vector<std::string_view> names;
  for (const SequenceRow& row : SequenceRows()) names.push_back(row.op_type);
  return names;
}

const GraphImporter::SequenceRow* GraphImporter::FindSequenceOperator(std::string_view op_type) {
  const std::span<const SequenceRow> rows = SequenceRows();
  const auto row = std::ranges::find(rows, op_type, &SequenceRow::op_type);
  return row == rows.end() ? nullptr : &*row;
}

Status GraphImporter::ImportSequenceOperator(const SequenceRow& row, const OnnxNode& node, const std::string& label,
                                             const NodeImporter& importer, const std::vector<ImportedValue*>& inputs,
                                             Scope& scope) {
  if (std::ranges::any_of(inputs, [](const ImportedValue* value) { return value != nullptr && value->stand_in; })) {
    return DefineStandIns(node, scope);
  }
  Result<ImportedValue> output = (this->*row.import)(importer);
  if (output.ok()) {
    if (node.outputs.empty() || node.outputs[0].empty()) return Status();
    return BindOutput(node.outputs[0], *std::move(output), SpanOf(label), scope);
  }
  if (output.status().code() == StatusCode::kUnsupportedModel) {
    ReportUnsupported(node, label, inputs, output.status().message());
    return DefineStandIns(node, scope);
  }
  return Status(StatusCode::kBadInput, "node \"" + label + "\" (" + node.op_type + "): " + output.status().message());
}

}  // namespace ingot::importer
