// quantised_products
//   Before: normal form; constants not folded, so that quantised weights are bytes still.
//   After:  a product of dequantised bytes,  ((a - za) * sa) ((b - zb) * sb)  with scales that are numbers, is the
//           product of the bytes without their zero points in int32, times sa * sb: matrices by matmul_integer,
//           convolutions of int16 with int32 sums. What quantises the result follows as before, and joins its kernel.
//   3 x 3 windows that move by 1, too: Winograd's algorithm takes a quarter of their products in float32, which takes
//   no less time than pairs of int16 do without instructions for bytes, and four times the memory of the weights.
//   Before folding, which would make floats of the weights.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "compiler/op/blocked.h"
#include "compiler/op/infer.h"
#include "compiler/op/names.h"
#include "compiler/op/reference.h"
#include "compiler/transform/byte_convolutions.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/rewrite.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;

namespace {

constexpr std::string_view kConv = "nn.conv2d";
const DataType kFloat = DataType::Float(32);

bool IsByte(DataType dtype) { return dtype.is_integral() && !dtype.is_bool() && dtype.bits == 8; }

// (bytes - zero) * scale; both parameters broadcast to the bytes. A zero that is null is 0.
struct Dequantised {
  Expr bytes, zero, scale;
  bool is_constant = false;  // whether the bytes are
};

// Returns the constant that an expression is, also by way of reshaping and permuting; null otherwise.
const ir::ConstantNode* ConstantOf(const RewriteContext& context, const Expr& expr) {
  if (const auto* constant = As<ir::ConstantNode>(context.Resolve(expr))) return constant;
  const ir::Call call = context.ResolveCall(expr);
  const bool moves = call && (op::IsCallOf(call, op::names::kReshape) || op::IsCallOf(call, op::names::kPermuteDims));
  return moves ? ConstantOf(context, call->args[0]) : nullptr;
}

// Whether these are numbers that neither overflow nor vanish when two of them and a sum of products are multiplied.
bool AreScales(const RewriteContext& context, const Expr& expr) {
  const ir::ConstantNode* constant = ConstantOf(context, expr);
  if (constant == nullptr || constant->data->dtype() != kFloat) return false;
  const op::ReferenceTensor values = op::UnpackReference(kFloat, constant->data->dims(), constant->data->bytes());
  for (int64_t i = 0; i < constant->data->num_elements(); ++i) {
    const double value = std::abs(op::GetNumber(values, i));
    if (!(value >= 0x1p-40 && value <= 0x1p40)) return false;
  }
  return true;
}

// Returns the operand of a conversion to float32 from bytes; null otherwise.
Expr BytesOf(const RewriteContext& context, const Expr& expr) {
  const ir::Call call = context.ResolveCall(expr);
  if (!call || !op::IsCallOf(call, op::names::kAstype)) return nullptr;
  const auto *from = As<ir::TensorTypeNode>(call->args[0]->type), *to = As<ir::TensorTypeNode>(call->type);
  const bool fits = from != nullptr && from->dims && from->dtype && IsByte(*from->dtype) && to->dtype == kFloat;
  return fits ? call->args[0] : nullptr;
}

std::optional<Dequantised> DequantisedOf(RewriteContext& context, const Expr& expr) {
  const ir::Call call = context.ResolveCall(expr);
  if (!call) return std::nullopt;
  if (op::IsCallOf(call, op::names::kPermuteDims)) {
    std::optional<Dequantised> inner = DequantisedOf(context, call->args[0]);
    if (!inner) return std::nullopt;
    const size_t rank = DimsOf(inner->bytes)->size();
    for (Expr* part : {&inner->bytes, &inner->zero, &inner->scale}) {
      if (!*part || DimsOf(*part)->empty()) continue;
      if (DimsOf(*part)->size() != rank) return std::nullopt;
      *part = context.Bind("permute_dims", {*part}, call->attrs);
    }
    return inner;
  }
  if (!op::IsCallOf(call, op::names::kMultiply)) return std::nullopt;
  Dequantised result{.scale = call->args[1]};
  Expr whole = call->args[0];
  const ir::Call difference = context.ResolveCall(whole);
  if (difference && op::IsCallOf(difference, op::names::kSubtract)) {
    whole = difference->args[0];
    result.zero = BytesOf(context, difference->args[1]);
    if (!result.zero) return std::nullopt;
  }
  result.bytes = BytesOf(context, whole);
  if (!result.bytes || !AreScales(context, result.scale)) return std::nullopt;
  result.is_constant = ConstantOf(context, result.bytes) != nullptr;
  const auto dtype = As<ir::TensorTypeNode>(result.bytes->type)->dtype;
  const bool fits = !result.zero || As<ir::TensorTypeNode>(result.zero->type)->dtype == dtype;
  return fits ? std::optional(result) : std::nullopt;
}

bool IsOneNumber(const Expr& expr) {
  const op::Dims* dims = DimsOf(expr);
  return dims != nullptr && std::ranges::all_of(*dims, [](const ir::PrimExpr& dim) { return ir::IsConstInt(dim, 1); });
}

// Whether all elements along the axes but `own` share a parameter of a tensor of this rank; own < 0: all axes.
bool VariesAlongOnly(const Expr& param, size_t rank, int own) {
  if (!param) return true;
  const op::Dims* dims = DimsOf(param);
  if (dims == nullptr || dims->size() > rank) return false;
  for (size_t i = 0; i < dims->size(); ++i) {
    const auto axis = static_cast<int>(rank - dims->size() + i);
    if (axis != own && !ir::IsConstInt((*dims)[i], 1)) return false;
  }
  return true;
}

Expr ZeroOr(const Expr& zero, const Expr& bytes) {
  return zero ? zero : NumberConstant(0, *As<ir::TensorTypeNode>(bytes->type)->dtype);
}

// sums * (a scale * b scale), in float32.
Expr Scaled(RewriteContext& context, const Expr& sums, const Expr& a_scale, const Expr& b_scale) {
  const Expr factor = context.Bind("multiply", {a_scale, b_scale});
  const Expr wide = context.Bind("astype", {sums}, {{"dtype", kFloat}});
  return context.Call("multiply", {wide, factor});
}

// int32 holds the sum of so many products of bytes without their zero points.
constexpr int64_t kMostTerms = std::numeric_limits<int32_t>::max() / (255 * 255);

bool IsFloatOrOpen(const ir::Call& call) {
  const std::optional<DataType> dtype = op::DataTypeAttr(call, "out_dtype");
  return !dtype || *dtype == kFloat;
}

Expr RewriteMatmul(const Match& match, RewriteContext& context) {
  const ir::Call call = match.GetCall("product");
  const op::Dims* dims = DimsOf(call->args[1]);
  if (dims == nullptr || dims->size() != 2 || !IsFloatOrOpen(call)) return nullptr;
  const std::optional<int64_t> terms = ir::AsConstInt((*dims)[0]);
  if (!terms || *terms > kMostTerms) return nullptr;
  const auto b = DequantisedOf(context, call->args[1]);
  if (!b || !b->is_constant) return nullptr;
  const auto a = DequantisedOf(context, call->args[0]);
  if (!a || !IsOneNumber(a->scale) || (a->zero && !IsOneNumber(a->zero))) return nullptr;
  if (!VariesAlongOnly(b->scale, 2, 1) || !VariesAlongOnly(b->zero, 2, 1)) return nullptr;
  const Expr sums =
      context.Bind("matmul_integer", {a->bytes, b->bytes, ZeroOr(a->zero, a->bytes), ZeroOr(b->zero, b->bytes)});
  return Scaled(context, sums, a->scale, b->scale);
}

// Whether it is over channels in blocks that bytes are fast.
bool FillsBlocks(const ir::Call& call, const op::Dims& weight) {
  const bool is_plain =
      call->attrs.GetString("data_layout") == "NCHW" && call->attrs.GetString("kernel_layout") == "OIHW";
  const std::optional<int64_t> outputs = ir::AsConstInt(weight[0]), width = ir::AsConstInt(weight[1]);
  const int64_t groups = call->attrs.GetInt("groups");
  return is_plain && outputs && width && op::WordsPay(groups, *width, *outputs / groups);
}

// bytes - zero, which int16 holds.
Expr WithoutZero(RewriteContext& context, const Dequantised& x) {
  const ir::Attrs narrow{{"dtype", DataType::Int(16)}};
  const Expr bytes = context.Bind("astype", {x.bytes}, narrow);
  return x.zero ? context.Bind("subtract", {bytes, context.Bind("astype", {x.zero}, narrow)}) : bytes;
}

Expr RewriteConv(const Match& match, RewriteContext& context) {
  const ir::Call call = match.GetCall("product");
  const op::Dims* dims = DimsOf(call->args[1]);
  if (dims == nullptr || !IsFloatOrOpen(call) || !FillsBlocks(call, *dims)) return nullptr;
  int64_t terms = 1;
  for (size_t i = 1; i < dims->size(); ++i) {
    const std::optional<int64_t> extent = ir::AsConstInt((*dims)[i]);
    if (!extent || *extent > kMostTerms) return nullptr;
    terms *= *extent;
    if (terms > kMostTerms) return nullptr;
  }
  const auto weight = DequantisedOf(context, call->args[1]);
  if (!weight || !weight->is_constant) return nullptr;
  const auto x = DequantisedOf(context, call->args[0]);
  if (!x || !IsOneNumber(x->scale) || (x->zero && !IsOneNumber(x->zero))) return nullptr;
  if (!VariesAlongOnly(weight->scale, 4, 0) || !VariesAlongOnly(weight->zero, 4, 0)) return nullptr;
  Expr scale = weight->scale;
  if (DimsOf(scale)->size() == 4) {
    const op::Dims per_output = {DimsOf(scale)->front(), ir::Int64(1), ir::Int64(1)};
    scale = context.AsArgument(ReshapeTo(context, scale, per_output));
  }
  const Expr sums = context.Bind(kConv, {WithoutZero(context, *x), WithoutZero(context, *weight)},
                                 call->attrs.With("out_dtype", DataType::Int(32)));
  return Scaled(context, sums, x->scale, scale);
}

}  // namespace

std::vector<RewriteRow> QuantisedRewrites() {
  return {{RewriteId::kQuantisedMatmul, Op(op::names::kMatmul, {Any("a"), Any("b")}).As("product"), RewriteMatmul},
          {RewriteId::kQuantisedConv, Op(kConv, {Any("x"), Any("weight")}).As("product"), RewriteConv}};
}

Result<ir::IRModule> RewriteQuantisedProducts(ir::IRModule module, PassContext& context) {
  return RewriteModule(std::move(module), QuantisedRewrites(), context.options.rewrites,
                       context.rewrites);
}

}  // namespace ingot::transform
