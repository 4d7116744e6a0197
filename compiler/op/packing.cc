// The table of packed weights, and the rewriting of each operator in it.
#include "compiler/op/packing.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "compiler/op/fold.h"
#include "compiler/op/infer.h"
#include "compiler/op/topi/byte_products.h"

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

// The rewriting of one matmul_integer. With bytes a', b' and zero points za', zb' moved by 128 where a factor has the
// other sign (a' is unsigned, b' signed):
//
//   sum over k of (a' - za') (b' - zb') = a' b' - za' (sum over k of b') - zb' (sum over k of a' - K za')
//
// in int32, which wraps. What a zero point that is known to be 0 contributes is left out.
class IntegerProduct {
 public:
  IntegerProduct(const ir::Call& call, const EmitCall& emit) : call_(call), emit_(emit) {}

  // Null where the form does not fit.
  Result<ir::Expr> Pack() {
    const auto* a = ir::As<ir::TensorTypeNode>(call_->args[0]->type);
    const auto* b = ir::As<ir::TensorTypeNode>(call_->args[1]->type);
    if (a == nullptr || !a->dims || !a->dtype || b == nullptr || !b->dims || !b->dtype || b->rank != 2) {
      return ir::Expr();
    }
    const auto k = ir::AsConstInt((*b->dims)[0]), n = ir::AsConstInt((*b->dims)[1]);
    if (!k || !n || *k < 1 || *n < 1) return ir::Expr();
    const bool flip_a = a->dtype->is_int(), flip_b = b->dtype->is_uint();
    INGOT_ASSIGN_OR_RETURN(const ir::Expr left, Words(call_->args[0], *k, flip_a));
    INGOT_ASSIGN_OR_RETURN(const ir::Expr panels, Panels(*k, *n, flip_b));
    const ir::Attrs units{{"units", *n}};
    INGOT_ASSIGN_OR_RETURN(const ir::Call product, MakeCall("matmul_bytes", {left, panels}, units));
    std::vector<ir::Expr> corrections;
    INGOT_ASSIGN_OR_RETURN(const ir::Expr a_zero, ZeroPoint(2, flip_a ? 128 : 0));
    if (a_zero != nullptr) {
      INGOT_ASSIGN_OR_RETURN(const ir::Expr ones, Ones((*k + topi::kBytesPerWord - 1) / topi::kBytesPerWord));
      INGOT_ASSIGN_OR_RETURN(const ir::Expr sums, emit_("matmul_bytes", {ones, panels}, units));
      INGOT_ASSIGN_OR_RETURN(ir::Expr correction, emit_("multiply", {a_zero, sums}, {}));
      corrections.push_back(std::move(correction));
    }
    INGOT_ASSIGN_OR_RETURN(const ir::Expr b_zero, ZeroPoint(3, flip_b ? -128 : 0));
    if (b_zero != nullptr) {
      INGOT_ASSIGN_OR_RETURN(ir::Expr sums, emit_("astype", {call_->args[0]}, {{"dtype", kInt32}}));
      const bool is_vector = a->rank == 1;
      INGOT_ASSIGN_OR_RETURN(sums,
                             emit_("sum", {sums}, {{"axis", ir::AttrValue::Ints({-1})}, {"keepdims", !is_vector}}));
      // sum of a' - K za' is the sum of a - K za.
      INGOT_ASSIGN_OR_RETURN(const ir::Expr zero, ZeroPoint(2, 0));
      if (zero != nullptr) {
        INGOT_ASSIGN_OR_RETURN(const ir::Expr all, emit_("multiply", {zero, Number(*k)}, {}));
        INGOT_ASSIGN_OR_RETURN(sums, emit_("subtract", {sums, all}, {}));
      }
      INGOT_ASSIGN_OR_RETURN(ir::Expr correction, emit_("multiply", {b_zero, sums}, {}));
      corrections.push_back(std::move(correction));
    }
    if (corrections.empty()) return ir::Expr(product);
    INGOT_ASSIGN_OR_RETURN(ir::Expr result, emit_("matmul_bytes", product->args, units));
    if (corrections.size() == 2) {
      INGOT_ASSIGN_OR_RETURN(result, emit_("subtract", {result, corrections[0]}, {}));
    }
    INGOT_ASSIGN_OR_RETURN(ir::Call last, MakeCall("subtract", {result, corrections.back()}));
    // A zero point of symbolic or further axes may leave the result's dims open.
    return HasSameDims(last->type, call_->type) ? ir::Expr(last) : ir::Expr();
  }

 private:
  const DataType kInt32 = DataType::Int(32);

  static bool HasSameDims(const ir::Type& a, const ir::Type& b) {
    const auto *x = ir::As<ir::TensorTypeNode>(a), *y = ir::As<ir::TensorTypeNode>(b);
    return x != nullptr && y != nullptr && x->dims && y->dims &&
           std::ranges::equal(*x->dims, *y->dims,
                              [](const ir::PrimExpr& p, const ir::PrimExpr& q) { return DimsEqual(p, q); });
  }

  static ir::Expr Number(int64_t value) { return NumberConstant(static_cast<double>(value), DataType::Int(32)); }
  // As many words of ones.
  static Result<ir::Expr> Ones(int64_t words) {
    std::vector<std::byte> bytes(static_cast<size_t>(words * topi::kBytesPerWord), std::byte{1});
    return ir::Expr(
        ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(DataType::Int(32), {words}, std::move(bytes))));
  }

  // x[.., k] in words, the last one filled up with zeros (after flipping).
  Result<ir::Expr> Words(ir::Expr x, int64_t k, bool flip) {
    if (const int64_t missing = -k & (topi::kBytesPerWord - 1); missing != 0) {
      std::vector<int64_t> width(static_cast<size_t>(ir::As<ir::TensorTypeNode>(x->type)->rank) * 2);
      width.back() = missing;
      const bool is_int = ir::As<ir::TensorTypeNode>(x->type)->dtype->is_int();
      INGOT_ASSIGN_OR_RETURN(
          x, emit_("nn.pad", {x},
                   {{"pad_width", ir::AttrValue::Ints(width)}, {"pad_value", flip ? (is_int ? -128.0 : 128.0) : 0.0}}));
    }
    return emit_("pack_bytes", {x}, {{"flip", flip}});
  }

  // The right factor, [k, n], as panels[ceil(n / c), words of k, c].
  Result<ir::Expr> Panels(int64_t k, int64_t n, bool flip) {
    const int64_t columns = std::min(n, kPanelColumns), panels = (n + columns - 1) / columns;
    const int64_t words = (k + topi::kBytesPerWord - 1) / topi::kBytesPerWord;
    INGOT_ASSIGN_OR_RETURN(ir::Expr b,
                           emit_("permute_dims", {call_->args[1]}, {{"axes", ir::AttrValue::Ints({1, 0})}}));
    INGOT_ASSIGN_OR_RETURN(b, Words(b, k, flip));
    if (const int64_t missing = panels * columns - n; missing != 0) {
      INGOT_ASSIGN_OR_RETURN(b, emit_("nn.pad", {b}, {{"pad_width", ir::AttrValue::Ints({0, missing, 0, 0})}}));
    }
    const ir::Expr shape = ir::Make<ir::ShapeExprNode>(Dims{ir::Int64(panels), ir::Int64(columns), ir::Int64(words)});
    INGOT_ASSIGN_OR_RETURN(b, emit_("reshape", {b, shape}, {}));
    return emit_("permute_dims", {b}, {{"axes", ir::AttrValue::Ints({0, 2, 1})}});
  }

  // Argument i in int32, moved; null where it is known to be 0 then.
  Result<ir::Expr> ZeroPoint(size_t i, int64_t moved) {
    const ir::Expr& zero = call_->args[i];
    if (const auto* constant = ir::As<ir::ConstantNode>(zero)) {
      const bool is_signed = constant->data->dtype().is_int();
      const auto is_zero = [&](std::byte byte) {
        const auto value = static_cast<uint8_t>(byte);
        return (is_signed ? int64_t{static_cast<int8_t>(value)} : int64_t{value}) + moved == 0;
      };
      if (std::ranges::all_of(constant->data->bytes(), is_zero)) return ir::Expr();
    }
    INGOT_ASSIGN_OR_RETURN(ir::Expr wide, emit_("astype", {zero}, {{"dtype", kInt32}}));
    if (moved == 0) return wide;
    return emit_("add", {wide, Number(moved)}, {});
  }

  const ir::Call& call_;
  const EmitCall& emit_;
};

Result<ir::Expr> PackMatmulInteger(const ir::Call& call, const EmitCall& emit) {
  return IntegerProduct(call, emit).Pack();
}

// conv(x, w[O, I, taps...]) becomes one over w[taps..., I, O]: threads along the output channels read elements next to each
// other, and what is read of x for neighbours in the sum is one channel after the other behind one tap. Depthwise weights
// are few.
Result<ir::Expr> PackConv(const ir::Call& call, const EmitCall& emit) {
  const auto* w = ir::As<ir::TensorTypeNode>(call->args[1]->type);
  if (w == nullptr || !w->dims || w->rank < 3) return ir::Expr();
  const std::string& layout = call->attrs.GetString("kernel_layout");
  if (!layout.starts_with("OI") || ir::IsConstInt((*w->dims)[1], 1)) return ir::Expr();
  if (!std::ranges::all_of(*w->dims, [](const ir::PrimExpr& dim) { return ir::AsConstInt(dim).has_value(); })) {
    return ir::Expr();
  }
  std::vector<int64_t> axes;
  for (int64_t axis = 2; axis < w->rank; ++axis) axes.push_back(axis);
  axes.insert(axes.end(), {1, 0});
  INGOT_ASSIGN_OR_RETURN(ir::Expr packed, emit("permute_dims", {call->args[1]}, {{"axes", ir::AttrValue::Ints(axes)}}));
  const ir::Attrs attrs = call->attrs.With("kernel_layout", layout.substr(2) + "IO");
  INGOT_ASSIGN_OR_RETURN(ir::Call result, MakeCall(RowOf(call)->name, {call->args[0], packed}, attrs));
  return ir::Expr(result);
}

constexpr PackingRow kPackings[] = {
    {"matmul", 1, false, PackMatmul},
    {"matmul_integer", 1, true, PackMatmulInteger},
    {"nn.conv1d", 1, false, PackConv, /*is_of_gpus=*/true},
    {"nn.conv2d", 1, false, PackConv, /*is_of_gpus=*/true},
    {"nn.conv3d", 1, false, PackConv, /*is_of_gpus=*/true},
};

}  // namespace

const PackingRow* FindPacking(const OpRow& row) {
  for (const PackingRow& packing : kPackings) {
    if (std::string_view(packing.op) == row.name) return &packing;
  }
  return nullptr;
}

}  // namespace ingot::op
