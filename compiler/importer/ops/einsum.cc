// Einsum: an equation that is a batched matrix product after permuting and reshaping becomes one; others are R.einsum.
#include "compiler/op/einsum.h"

#include <algorithm>

#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

using Labels = std::vector<int>;

bool Contains(const Labels& labels, int label) { return std::ranges::find(labels, label) != labels.end(); }

bool HasRepeats(Labels labels) {
  std::ranges::sort(labels);
  return std::ranges::adjacent_find(labels) != labels.end();
}

struct LabelledOperand {
  Expr value;
  Labels labels;
  std::vector<PrimExpr> dims;

  const PrimExpr& DimOf(int label) const {
    return dims[static_cast<size_t>(std::ranges::find(labels, label) - labels.begin())];
  }
  std::vector<PrimExpr> DimsOf(const Labels& wanted) const {
    std::vector<PrimExpr> result;
    for (int label : wanted) result.push_back(DimOf(label));
    return result;
  }
};

Labels Joined(std::initializer_list<Labels> lists) {
  Labels all;
  for (const Labels& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// Permutes a value with axes `from` to the order of `to`.
Result<Expr> Reordered(const NodeImporter& node, Expr value, const Labels& from, const Labels& to) {
  if (from == to) return value;
  std::vector<int64_t> axes;
  for (int label : to) axes.push_back(std::ranges::find(from, label) - from.begin());
  return node.Bind("permute_dims", {std::move(value)}, {{"axes", AttrValue::Ints(axes)}});
}
Result<Expr> Shaped(const NodeImporter& node, Expr value, std::vector<PrimExpr> dims) {
  return node.Bind("reshape", {std::move(value), ShapeOf(std::move(dims))});
}

// The axes of two operands by their role in a product.
struct Product2 {
  Labels batch, rows, columns, inner;
};
// Returns nothing if it is no product: a diagonal, a sum over one operand alone, an axis of 1 that is broadcast.
std::optional<Product2> AsProduct(const LabelledOperand& a, const LabelledOperand& b, const Labels& output) {
  if (HasRepeats(a.labels) || HasRepeats(b.labels)) return std::nullopt;
  Product2 product;
  for (int label : output) {
    const bool in_a = Contains(a.labels, label), in_b = Contains(b.labels, label);
    (in_a && in_b ? product.batch : in_a ? product.rows : product.columns).push_back(label);
  }
  for (int label : a.labels) {
    if (Contains(output, label)) continue;
    if (!Contains(b.labels, label)) return std::nullopt;
    product.inner.push_back(label);
  }
  const bool sums_b_alone =
      std::ranges::any_of(b.labels, [&](int label) { return !Contains(output, label) && !Contains(a.labels, label); });
  if (sums_b_alone || product.inner.empty()) return std::nullopt;
  for (const Labels* shared : {&product.batch, &product.inner}) {
    for (int label : *shared) {
      if (!op::DimsEqual(a.DimOf(label), b.DimOf(label))) return std::nullopt;
    }
  }
  return product;
}

Outputs MatrixProduct(const NodeImporter& node, LabelledOperand a, LabelledOperand b, const Product2& p,
                      const Labels& output) {
  const std::vector<PrimExpr> batch = a.DimsOf(p.batch), rows = a.DimsOf(p.rows), columns = b.DimsOf(p.columns);
  const PrimExpr inner = Product(a.DimsOf(p.inner));
  INGOT_ASSIGN_OR_RETURN(Expr left, Reordered(node, a.value, a.labels, Joined({p.batch, p.rows, p.inner})));
  INGOT_ASSIGN_OR_RETURN(Expr right, Reordered(node, b.value, b.labels, Joined({p.batch, p.inner, p.columns})));
  const auto matrix = [&](const PrimExpr& height, const PrimExpr& width) {
    std::vector<PrimExpr> dims = batch;
    dims.insert(dims.end(), {height, width});
    return dims;
  };
  INGOT_ASSIGN_OR_RETURN(left, Shaped(node, std::move(left), matrix(Product(rows), inner)));
  INGOT_ASSIGN_OR_RETURN(right, Shaped(node, std::move(right), matrix(inner, Product(columns))));
  INGOT_ASSIGN_OR_RETURN(Expr result, node.Bind("matmul", {left, right}));
  std::vector<PrimExpr> dims = batch;
  dims.insert(dims.end(), rows.begin(), rows.end());
  dims.insert(dims.end(), columns.begin(), columns.end());
  INGOT_ASSIGN_OR_RETURN(result, Shaped(node, std::move(result), std::move(dims)));
  return One(Reordered(node, std::move(result), Joined({p.batch, p.rows, p.columns}), output));
}

Outputs Einsum(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::string equation, node.String("equation", ""));
  std::vector<LabelledOperand> operands;
  std::vector<int> ranks;
  std::vector<Expr> fields;
  std::vector<ir::Type> types;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    LabelledOperand& operand = operands.emplace_back();
    INGOT_ASSIGN_OR_RETURN(operand.value, node.Input(i));
    INGOT_ASSIGN_OR_RETURN(operand.dims, StaticRankDims(node, i));
    ranks.push_back(static_cast<int>(operand.dims.size()));
    fields.push_back(operand.value);
    types.push_back(operand.value->type);
  }
  Result<op::EinsumLabels> labels = op::ParseEinsum(equation, ranks);
  if (!labels.ok()) return node.Invalid(labels.status().message());
  for (size_t i = 0; i < operands.size(); ++i) operands[i].labels = labels->inputs[i];
  if (operands.size() == 2) {
    const std::optional<Product2> product = AsProduct(operands[0], operands[1], labels->output);
    if (product) return MatrixProduct(node, operands[0], operands[1], *product, labels->output);
  }
  const Expr tuple = ir::Make<ir::TupleNode>(std::move(fields), ir::Make<ir::TupleTypeNode>(std::move(types)));
  return One(node.Call("einsum", {tuple}, {{"subscripts", equation}}));
}

constexpr OnnxOpRow kEinsumRows[] = {
    {"Einsum", nullptr, Einsum},
};

}  // namespace

std::span<const OnnxOpRow> EinsumOnnxOps() { return kEinsumRows; }

}  // namespace ingot::importer
