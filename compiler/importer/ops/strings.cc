// Operators of strings, which are places in the list of those that the model knows: words are compared, and none is made.
#include "compiler/importer/build.h"
#include "compiler/importer/ops/contrib.h"
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/ml.h"
#include "compiler/importer/packed_values.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

// The words of a row without those that are to be left out; one empty word, if none is left.
Outputs StringNormalizer(const NodeImporter& node) {
  if (!TakesStrings(node)) return node.Invalid("expected strings");
  INGOT_ASSIGN_OR_RETURN(const std::string change, node.String("case_change_action", "NONE"));
  INGOT_ASSIGN_OR_RETURN(const int64_t is_case_sensitive, node.Int("is_case_sensitive", 0));
  if (change != "NONE" && change != "LOWER" && change != "UPPER") {
    return node.Invalid("case_change_action is \"" + change + "\"");
  }
  INGOT_RETURN_IF_ERROR(node.String("locale", "").status());  // by which cases are changed
  if (change != "NONE") return node.Unsupported("strings of another case");
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  const PrimExpr one = ir::Int64(1);
  const bool is_row = in.size() == 2;
  if ((in.size() != 1 && !is_row) || (is_row && op::DimsDiffer(in[0], one))) {
    return node.Invalid("expected a list of strings, or one row of them");
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> stopwords, StringsOf(node, "stopwords"));
  const PrimExpr count = in.back();
  INGOT_ASSIGN_OR_RETURN(const Expr words, ReshapeTo(node, is_row ? WithDims(node, x, {one, count}) : x, {count}));
  const auto as_given = [&](Expr list) -> Outputs {
    if (!is_row) return One(std::move(list));
    const PrimExpr length = DimsOf(list)[0];
    return One(ReshapeTo(node, std::move(list), {one, length}));
  };
  if (stopwords.empty()) return as_given(node.BindValue(words, "words"));
  if (is_case_sensitive == 0) return node.Unsupported("strings that are compared without their case");
  const Expr list = node.BindValue(words, "words");
  INGOT_ASSIGN_OR_RETURN(const Expr apart, node.Bind("reshape", {list, ShapeOf({count, one})}));
  const Expr left_out = ConstantOf(DataType::Int(64), {std::ssize(stopwords)}, stopwords);
  INGOT_ASSIGN_OR_RETURN(Expr matches, node.Bind("equal", {apart, left_out}));
  INGOT_ASSIGN_OR_RETURN(matches, CastTo(node, std::move(matches), DataType::Int(32)));
  INGOT_ASSIGN_OR_RETURN(matches, node.Bind("sum", {matches}, {{"axis", AttrValue::Ints({1})}, {"keepdims", false}}));
  INGOT_ASSIGN_OR_RETURN(const Expr none, node.Scalar(0, DataType::Int(32)));
  INGOT_ASSIGN_OR_RETURN(const Expr stays, node.Bind("equal", {matches, none}));
  INGOT_ASSIGN_OR_RETURN(const Expr kept, Apply(node, "Compress", {list, stays}, {AttributeOf("axis", int64_t{0})}));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> empty, StringsOf(node, "default_string"));
  const Expr last = ConstantOf(DataType::Int(64), {std::ssize(empty)}, empty);
  INGOT_ASSIGN_OR_RETURN(const Expr joined, node.Bind("concat", {TupleOf({kept, last})}, {{"axis", int64_t{0}}}));
  const PrimExpr length = op::SimplifyDim(ir::Max(DimsOf(kept)[0], one));
  const std::vector<PrimExpr> axis = {ir::Int64(0)}, begin = axis, end = {length};
  INGOT_ASSIGN_OR_RETURN(Expr result,
                         node.Bind("strided_slice", {joined, PrimTuple(axis), PrimTuple(begin), PrimTuple(end)}));
  return as_given(WithDims(node, std::move(result), {length}));
}

constexpr OnnxOpRow kStringRows[] = {
    {"StringNormalizer", nullptr, StringNormalizer},
};

}  // namespace

std::span<const OnnxOpRow> StringOnnxOps() { return kStringRows; }

}  // namespace ingot::importer
