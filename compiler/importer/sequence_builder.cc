// The calls of R.sequence.* and what is known of their results.
#include "compiler/importer/sequence_builder.h"

#include <utility>

#include "compiler/importer/build.h"

namespace ingot::importer {

using ir::Expr;
using ir::PrimExpr;
using ir::PrimVar;

// Returns a constant place in a list, counted from the end if negative; nothing if it is not constant or outside.
std::optional<size_t> ConstantPlace(const PrimExpr& place, size_t length) {
  const auto constant = ir::AsConstInt(place);
  const auto end = static_cast<int64_t>(length);
  if (!constant || *constant < -end || *constant >= end) return std::nullopt;
  return static_cast<size_t>(*constant < 0 ? *constant + end : *constant);
}

const ObjectInfo* SequenceBuilder::ObjectOf(const Expr& expr) const {
  const auto found = objects_.find(expr);
  return found == objects_.end() ? nullptr : &found->second;
}

Result<const ObjectInfo*> SequenceBuilder::InputOf(const NodeImporter& node, size_t i) const {
  INGOT_ASSIGN_OR_RETURN(const Expr input, node.Input(i));
  const ObjectInfo* info = ObjectOf(input);
  if (info == nullptr || info->is_optional) return node.Invalid("input " + std::to_string(i) + ": expected a sequence");
  return info;
}

Result<Expr> SequenceBuilder::Make(std::vector<Expr> elements, ObjectInfo info, const ir::Span& span) {
  INGOT_ASSIGN_OR_RETURN(Expr sequence, builder_.BindCall("sequence.construct", elements, {}, span));
  info.elements = std::move(elements);
  Describe(sequence, std::move(info));
  return sequence;
}

Result<Expr> SequenceBuilder::AsOptional(const Expr& value, const ir::Span& span) {
  const ObjectInfo& sequence = *ObjectOf(value);
  return Make({value}, {true, true, sequence.dtype, sequence.rank}, span);
}

Result<Expr> SequenceBuilder::InsertAt(const Expr& sequence, const Expr& value, const PrimExpr& place,
                                       const ir::Span& span) {
  ObjectInfo info = *ObjectOf(sequence);
  INGOT_RETURN_IF_ERROR(info.Add(value));
  INGOT_ASSIGN_OR_RETURN(Expr longer, builder_.BindCall("sequence.insert", {sequence, value, Number(place)}, {}, span));
  Describe(longer, std::move(info));
  return longer;
}

Result<Expr> SequenceBuilder::ElementAt(const Expr& sequence, const PrimExpr& place, const OnnxValueInfo* declared,
                                        const ir::Span& span) {
  const ObjectInfo info = *ObjectOf(sequence);
  if (info.elements) {
    if (const std::optional<size_t> known = ConstantPlace(place, info.elements->size()))
      return (*info.elements)[*known];
  }
  if (info.holds_sequence) {
    INGOT_ASSIGN_OR_RETURN(Expr element, builder_.BindCall("sequence.at", {sequence, Number(place)}, {}, span));
    Describe(element, ObjectInfo{false, false, info.dtype, info.rank});
    return element;
  }
  const bool says_rank = declared != nullptr && declared->is_tensor && declared->dims;
  const int rank = info.rank < 0 && says_rank ? static_cast<int>(declared->dims->size()) : info.rank;
  const std::optional<DataType> dtype = info.dtype || declared == nullptr ? info.dtype : declared->dtype;
  if (!dtype || rank < 0)
    return Status(StatusCode::kUnsupportedModel, "an element of a sequence whose tensors have unlike or unknown ranks");
  INGOT_ASSIGN_OR_RETURN(const Expr element, builder_.BindCall("sequence.at", {sequence, Number(place)},
                                                               {{"dtype", *dtype}, {"ndim", int64_t{rank}}}, span));
  const std::vector<PrimExpr> unknown(static_cast<size_t>(rank), ir::Int64(0));
  return builder_.WithNewSymbols(element, unknown, LooseDims(unknown.size(), true), *dtype, "element", span);
}

Result<PrimExpr> SequenceBuilder::LengthOf(const Expr& sequence, const ir::Span& span) {
  if (const ObjectInfo& info = *ObjectOf(sequence); info.elements) return ir::Int64(std::ssize(*info.elements));
  INGOT_ASSIGN_OR_RETURN(const Expr shape, builder_.BindCall("sequence.length", {sequence}, {}, span));
  const PrimVar length = ir::MakePrimVar("length");
  analyzer_.Bind(length, arith::Interval{0, INT64_MAX});
  builder_.Match(shape, ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{length}), "length", span);
  return PrimExpr(length);
}

}  // namespace ingot::importer
