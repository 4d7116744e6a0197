// The rows of the sequence operators: how each one is made of the calls of SequenceBuilder, and of what the graph says.
#include "compiler/importer/sequences.h"

#include <algorithm>
#include <utility>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/util.h"

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

}  // namespace

// Returns the slices of a tensor from `begin` to `end` along an axis; a single slice may lose the axis.
Result<Expr> SequenceImporter::Piece(const Expr& tensor, int64_t axis, const PrimExpr& begin, const PrimExpr& end,
                                     bool keeps_axis, const ir::Span& span) {
  const auto numbers = [](const PrimExpr& value) { return TupleOf({Number(value)}); };
  INGOT_ASSIGN_OR_RETURN(
      Expr piece,
      builder_.BindCall("strided_slice", {tensor, numbers(ir::Int64(axis)), numbers(begin), numbers(end)}, {}, span));
  if (keeps_axis) return piece;
  return builder_.BindCall("squeeze", {piece}, {{"axis", AttrValue::Ints({axis})}}, span);
}

// ---- Sequences

Result<ImportedValue> SequenceImporter::SequenceConstruct(const NodeImporter& node) {
  ObjectInfo info;
  std::vector<Expr> elements;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr element, node.Input(i));
    INGOT_RETURN_IF_ERROR(info.Add(element));
    elements.push_back(std::move(element));
  }
  return ValueOf(sequences_.Make(std::move(elements), std::move(info), node.span()));
}

Result<ImportedValue> SequenceImporter::SequenceEmpty(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const int64_t number, node.Int("dtype", 1));
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, OnnxDataType(number));
  return ValueOf(sequences_.Make({}, {false, false, dtype}, node.span()));
}

Result<ImportedValue> SequenceImporter::SequenceInsert(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const ObjectInfo* known, sequences_.InputOf(node, 0));
  INGOT_ASSIGN_OR_RETURN(const Expr sequence, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr value, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(PrimExpr place, sequences_.LengthOf(sequence, node.span()));
  const bool at_end = !node.HasInput(2);
  if (!at_end) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> given, node.DataPlaces(2, "the position"));
    if (given.size() != 1) return node.Invalid("expected one position");
    place = given[0];
  }
  known = sequences_.ObjectOf(sequence);  // LengthOf may have moved it
  const std::optional<size_t> before = !known->elements ? std::nullopt
                                       : at_end         ? known->elements->size()
                                                        : ConstantPlace(place, known->elements->size());
  if (!before) return ValueOf(sequences_.InsertAt(sequence, value, place, node.span()));
  ObjectInfo info = *known;
  std::vector<Expr> elements = *info.elements;
  INGOT_RETURN_IF_ERROR(info.Add(value));
  elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(*before), value);
  return ValueOf(sequences_.Make(std::move(elements), std::move(info), node.span()));
}

Result<ImportedValue> SequenceImporter::SequenceErase(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const ObjectInfo* known, sequences_.InputOf(node, 0));
  ObjectInfo info = *known;
  INGOT_ASSIGN_OR_RETURN(const Expr sequence, node.Input(0));
  std::vector<PrimExpr> place{ir::Int64(-1)};
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(place, node.DataPlaces(1, "the position"));
  }
  if (place.size() != 1) return node.Invalid("expected one position");
  if (info.elements) {
    if (const std::optional<size_t> gone = ConstantPlace(place[0], info.elements->size())) {
      std::vector<Expr> elements = *std::move(info.elements);
      elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(*gone));
      return ValueOf(sequences_.Make(std::move(elements), std::move(info), node.span()));
    }
  }
  info.elements.reset();
  INGOT_ASSIGN_OR_RETURN(const Expr shorter,
                         builder_.BindCall("sequence.erase", {sequence, Number(place[0])}, {}, node.span()));
  sequences_.Describe(shorter, std::move(info));
  return ValueOf(shorter);
}

Result<ImportedValue> SequenceImporter::SequenceAt(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(sequences_.InputOf(node, 0).status());
  INGOT_ASSIGN_OR_RETURN(const Expr sequence, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> place, node.DataPlaces(1, "the position"));
  if (place.size() != 1) return node.Invalid("expected one position");
  return ValueOf(sequences_.ElementAt(sequence, place[0], nullptr, node.span()));
}

Result<ImportedValue> SequenceImporter::SequenceLength(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(sequences_.InputOf(node, 0).status());
  INGOT_ASSIGN_OR_RETURN(const Expr sequence, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(PrimExpr length, sequences_.LengthOf(sequence, node.span()));
  return ValueOf(DataType::Int(64), std::move(length));
}

Result<ImportedValue> SequenceImporter::ConcatFromSequence(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const ObjectInfo* known, sequences_.InputOf(node, 0));
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
      INGOT_ASSIGN_OR_RETURN(
          part, builder_.BindCall("expand_dims", {part}, {{"axis", AttrValue::Ints({axis})}}, node.span()));
    }
    INGOT_ASSIGN_OR_RETURN(Expr joined, node.Bind("concat", {TupleOf(std::move(parts))}, {{"axis", axis}}));
    return ValueOf(std::move(joined));
  }
  const ir::Attrs attrs{{"axis", axis}, {"new_axis", is_new != 0}};
  INGOT_ASSIGN_OR_RETURN(const Expr shape, builder_.BindCall("sequence.concat_shape", {sequence},
                                                             attrs.With("ndim", int64_t{rank}), node.span()));
  std::vector<PrimExpr> dims;
  for (int i = 0; i < rank; ++i) dims.push_back(ir::MakePrimVar("joined_dim_" + std::to_string(i)));
  builder_.Match(shape, ir::Make<ir::ShapeTypeNode>(dims), "joined_shape", node.span());
  return ValueOf(
      builder_.BindCall("sequence.concat", {sequence, ShapeOf(dims)}, attrs.With("dtype", *info.dtype), node.span()));
}

// Splits into pieces of one length (the last one may be shorter), into pieces of given lengths, or into slices of
// length 1.
Result<ImportedValue> SequenceImporter::SplitToSequence(const NodeImporter& node) {
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
      builder_.Match(ShapeOf({begin}), ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{extent}), "whole",
                     node.span());
      return ValueOf(sequences_.Make(std::move(pieces), std::move(info), node.span()));
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
    return ValueOf(sequences_.Make(std::move(pieces), std::move(info), node.span()));
  }
  LoopPlan plan;
  plan.label = *node.span().operation;
  plan.trips = count;
  INGOT_ASSIGN_OR_RETURN(Expr empty, sequences_.Make({}, std::move(info), node.span()));
  plan.initial.push_back(std::move(empty));
  plan.turn = [&](const PrimVar& i, const Expr&, const std::vector<Expr>& carried) -> Result<LoopTurn> {
    INGOT_ASSIGN_OR_RETURN(const Expr piece, piece_at(i));
    INGOT_ASSIGN_OR_RETURN(Expr longer, sequences_.InsertAt(carried[0], piece, i, node.span()));
    LoopTurn turn;
    turn.carried.push_back(std::move(longer));
    return turn;
  };
  INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> results, loops_.Build(std::move(plan)));
  return ValueOf(results.at(0));
}

// ---- Optional values

Result<ImportedValue> SequenceImporter::Optional(const NodeImporter& node) {
  if (!node.HasInput(0)) return ValueOf(sequences_.Make({}, {.is_optional = true}, node.span()));
  INGOT_ASSIGN_OR_RETURN(const Expr value, node.Input(0));
  if (const ObjectInfo* held = sequences_.ObjectOf(value)) {
    if (held->is_optional) return node.Unsupported("an optional value in another one");
    return ValueOf(sequences_.AsOptional(value, node.span()));
  }
  ObjectInfo info{.is_optional = true};
  INGOT_RETURN_IF_ERROR(info.Add(value));
  return ValueOf(sequences_.Make({value}, std::move(info), node.span()));
}

Result<ImportedValue> SequenceImporter::OptionalHasElement(const NodeImporter& node) {
  if (!node.HasInput(0)) return ValueOf(DataType::Bool(), ir::BoolImm(false));
  const ObjectInfo* info = nullptr;
  Expr value;
  if (IsObject(node.TypeOf(0))) {
    INGOT_ASSIGN_OR_RETURN(value, node.Input(0));
    info = sequences_.ObjectOf(value);
  }
  if (info == nullptr || !info->is_optional) return ValueOf(DataType::Bool(), ir::BoolImm(true));
  INGOT_ASSIGN_OR_RETURN(const PrimExpr length, sequences_.LengthOf(value, node.span()));
  if (const auto known = ir::AsConstInt(length)) return ValueOf(DataType::Bool(), ir::BoolImm(*known > 0));
  return ValueOf(DataType::Bool(), length > ir::Int64(0));
}

Result<ImportedValue> SequenceImporter::OptionalGetElement(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr value, node.Input(0));
  const ObjectInfo* info = sequences_.ObjectOf(value);
  if (info == nullptr || !info->is_optional) return ValueOf(value);
  return ValueOf(sequences_.ElementAt(value, ir::Int64(0), nullptr, node.span()));
}

// ---- The table

struct SequenceImporter::Row {
  std::string_view op_type;
  Result<ImportedValue> (SequenceImporter::*import)(const NodeImporter& node);
};

std::span<const SequenceImporter::Row> SequenceImporter::Rows() {
  static constexpr Row kRows[] = {
      {"ConcatFromSequence", &SequenceImporter::ConcatFromSequence},
      {"Optional", &SequenceImporter::Optional},
      {"OptionalGetElement", &SequenceImporter::OptionalGetElement},
      {"OptionalHasElement", &SequenceImporter::OptionalHasElement},
      {"SequenceAt", &SequenceImporter::SequenceAt},
      {"SequenceConstruct", &SequenceImporter::SequenceConstruct},
      {"SequenceEmpty", &SequenceImporter::SequenceEmpty},
      {"SequenceErase", &SequenceImporter::SequenceErase},
      {"SequenceInsert", &SequenceImporter::SequenceInsert},
      {"SequenceLength", &SequenceImporter::SequenceLength},
      {"SplitToSequence", &SequenceImporter::SplitToSequence},
  };
  return kRows;
}

std::vector<std::string_view> SequenceImporter::Operators() {
  std::vector<std::string_view> names;
  for (const Row& row : Rows()) names.push_back(row.op_type);
  return names;
}

const SequenceImporter::Row* SequenceImporter::Find(std::string_view op_type) {
  const std::span<const Row> rows = Rows();
  const auto row = std::ranges::find(rows, op_type, &Row::op_type);
  return row == rows.end() ? nullptr : &*row;
}

Result<ImportedValue> SequenceImporter::Import(const Row& row, const NodeImporter& node) {
  return (this->*row.import)(node);
}

}  // namespace ingot::importer
