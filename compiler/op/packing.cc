// The table of packed weights, and the rewriting of each operator in it.
#include "compiler/op/packing.h"

#include "compiler/op/infer.h"

namespace ingot::op {
namespace {

// matmul(x, w[K, N]) becomes matmul_packed(x, panels[ceil(N / 16), K, 16]): a tile reads consecutive cache lines, and
// every column of a panel at once. A matrix of one panel is one already.
Result<ir::Expr> PackMatmul(const ir::Call& call, const EmitCall& emit) {
  const auto* x = ir::As<ir::TensorTypeNode>(call->args[0]->type);
  const auto* w = ir::As<ir::TensorTypeNode>(call->args[1]->type);
  if (x == nullptr || !x->dims || w == nullptr || !w->dims || w->rank != 2) return ir::Expr();
  if (!w->dtype || !w->dtype->is_floating() || x->dtype != w->dtype) return ir::Expr();
  const auto k = ir::AsConstInt((*w->dims)[0]);
  const auto n = ir::AsConstInt((*w->dims)[1]);
  if (!k || !n || *k < 1 || *n <= kPanelColumns) return ir::Expr();
  const int64_t panels = (*n + kPanelColumns - 1) / kPanelColumns;
  ir::Expr packed = call->args[1];
  if (const int64_t missing = panels * kPanelColumns - *n; missing != 0) {
    INGOT_ASSIGN_OR_RETURN(packed, emit("nn.pad", {packed}, {{"pad_width", ir::AttrValue::Ints({0, 0, 0, missing})}}));
  }
  const ir::Expr shape = ir::Make<ir::ShapeExprNode>(Dims{ir::Int64(*k), ir::Int64(panels), ir::Int64(kPanelColumns)});
  INGOT_ASSIGN_OR_RETURN(packed, emit("reshape", {packed, shape}, {}));
  INGOT_ASSIGN_OR_RETURN(packed, emit("permute_dims", {packed}, {{"axes", ir::AttrValue::Ints({1, 0, 2})}}));
  ir::Attrs attrs{{"units", *n}};
  if (const std::optional<DataType> dtype = DataTypeAttr(call, "out_dtype")) attrs = attrs.With("out_dtype", *dtype);
  INGOT_ASSIGN_OR_RETURN(ir::Call result, MakeCall("matmul_packed", {call->args[0], packed}, std::move(attrs)));
  return ir::Expr(result);
}

constexpr PackingRow kPackings[] = {
    {"matmul", 1, PackMatmul},
};

}  // namespace

const PackingRow* FindPacking(const OpRow& row) {
  for (const PackingRow& packing : kPackings) {
    if (std::string_view(packing.op) == row.name) return &packing;
  }
  return nullptr;
}

}  // namespace ingot::op
