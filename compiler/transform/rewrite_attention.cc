// softmax(Q K^T * scale + mask) V becomes one operator, which reads and writes its axes in any order: permutations
// around it become its layouts, a constant causal mask becomes an attribute.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "compiler/op/infer.h"
#include "compiler/op/names.h"
#include "compiler/op/reference.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/rewrite.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;
using Dims = std::vector<ir::PrimExpr>;

namespace {

// Masks add this number or a smaller one to hidden scores, or replace them by it.
constexpr double kHidden = -1e30;

// Scores are softmaxed along their last axis.
bool IsLastAxis(const ir::Call& softmax) {
  const auto* type = As<ir::TensorTypeNode>(softmax->args[0]->type);
  const int64_t axis = softmax->attrs.GetInt("axis");
  return type != nullptr && type->rank > 0 && (axis == -1 || axis == type->rank - 1);
}

// Whether a factor may become part of the scale: the product with it must not have overflowed (that overflow would
// disappear), and the joined scale must not be too small.
bool CanPeel(double factor, double scale) {
  constexpr double kLeast = 0x1p-30;
  return std::fabs(factor) <= 1 && std::fabs(factor * scale) >= kLeast;
}

// Returns x of x * number and x / number, and moves the number into the scale.
Expr PeelScale(RewriteContext& context, Expr x, double& scale) {
  const Pattern product = Product(Any("x"), Number("c"));
  const Pattern quotient = Op("divide", {Any("x"), Number("c")});
  while (true) {
    auto match = MatchPattern(product, x, context.definitions());
    const bool multiplies = match.has_value();
    if (!multiplies) match = MatchPattern(quotient, x, context.definitions());
    if (!match) return x;
    const double factor = multiplies ? match->GetNumber("c") : 1 / match->GetNumber("c");
    if (!CanPeel(factor, scale)) return x;
    scale *= factor;
    x = match->Get("x");
  }
}
// Peels the factor of the scores themselves. The operator applies the scale at the same place, behind the products, so
// a single factor may have any size.
Expr PeelScoreScale(RewriteContext& context, const Expr& scores, double& scale) {
  const Expr peeled = PeelScale(context, scores, scale);
  const Pattern product = Product(Any("x"), Number("c"));
  const auto match = scale == 1 ? MatchPattern(product, peeled, context.definitions()) : std::nullopt;
  if (!match || !std::isfinite(match->GetNumber("c"))) return peeled;
  scale = match->GetNumber("c");
  return match->Get("x");
}

ir::AttrValue LayoutsAttr(const std::array<std::string, 4>& layouts) {
  return ir::AttrList(layouts.begin(), layouts.end());
}
std::array<std::string, 4> LayoutsOf(const ir::Call& attention) {
  std::array<std::string, 4> layouts;
  layouts.fill("BSNH");
  const ir::AttrValue* attr = attention->attrs.Find("layouts");
  if (attr->is_none()) return layouts;
  const ir::AttrList& list = *attr->get<ir::AttrList>();
  for (size_t i = 0; i < layouts.size(); ++i) layouts[i] = *list[i].get<std::string>();
  return layouts;
}

// Adds a batch of 1 to operands [heads, sequence, depth].
Expr WithBatch(RewriteContext& context, const Expr& x) {
  Dims dims = *DimsOf(x);
  if (dims.size() == 4) return x;
  dims.insert(dims.begin(), ir::Int64(1));
  return context.AsArgument(ReshapeTo(context, x, dims));
}

Expr MakeAttention(const Match& match, RewriteContext& context) {
  const ir::Call root = match.GetCall("root");
  double scale = 1;
  Expr scores = match.Get("scores"), bias = match.Find("bias");
  if (DimsOf(root) == nullptr || DimsOf(scores) == nullptr) return nullptr;
  // The mask is broadcast to the scores, and not the other way round.
  if (bias && !SameType(match.Get("biased")->type, scores->type)) return nullptr;
  const Expr keeps = match.Find("keeps"), hides = match.Find("hides");
  ir::Attrs attrs = {{"layouts", LayoutsAttr({"BNSH", "BNHS", "BNSH", "BNSH"})}, {"stepwise", true}};
  if (keeps || hides) {
    // Scores that are replaced stay hidden, whatever their values are.
    if (!SameType((keeps ? keeps : hides)->type, scores->type)) return nullptr;
    const double hidden = match.GetNumber("hidden");
    if (std::isnan(hidden) || hidden == std::numeric_limits<double>::infinity()) return nullptr;
    bias = match.Get("condition");
    if (hides) bias = context.Bind("logical_not", {bias});
    attrs = attrs.With("hidden", hidden);
  }
  scores = PeelScoreScale(context, scores, scale);
  const ir::Call product = context.ResolveCall(scores);
  if (!product || !op::IsCallOf(product, op::names::kMatmul)) return nullptr;
  // 16-bit operands may need their scale to stay in range.
  const bool is_narrow = As<ir::TensorTypeNode>(root->type)->dtype->bits < 32;
  const Expr query = is_narrow ? product->args[0] : PeelScale(context, product->args[0], scale);
  const Expr key = is_narrow ? product->args[1] : PeelScale(context, product->args[1], scale);
  const Expr value = match.Get("value");
  for (const Expr& operand : {query, key, value}) {
    const Dims* dims = DimsOf(operand);
    if (dims == nullptr || (dims->size() != 4 && dims->size() != 3)) return nullptr;
    if (dims->size() != DimsOf(query)->size()) return nullptr;
  }
  // Products broadcast their batches; attention does not.
  const size_t num_batch_dims = DimsOf(query)->size() - 2;
  for (const Expr& operand : {key, value}) {
    for (size_t i = 0; i < num_batch_dims; ++i) {
      if (!op::DimsEqual((*DimsOf(operand))[i], (*DimsOf(query))[i])) return nullptr;
    }
  }
  std::vector<Expr> args = {WithBatch(context, query), WithBatch(context, key), WithBatch(context, value)};
  if (bias) args.push_back(bias);
  attrs = attrs.With("scale", scale);
  if (num_batch_dims == 2) return context.Call("nn.attention", std::move(args), std::move(attrs));
  const Expr attention = context.Bind("nn.attention", std::move(args), std::move(attrs));
  return attention ? ReshapeTo(context, attention, *DimsOf(root)) : nullptr;
}

// Makes the permutation of an operand part of its layout.
Expr AbsorbOperandPermute(const Match& match, RewriteContext& context) {
  const ir::Call attention = match.GetCall("attention");
  std::array<std::string, 4> layouts = LayoutsOf(attention);
  std::vector<Expr> args = attention->args;
  bool changed = false;
  for (size_t i = 0; i < 3; ++i) {
    const ir::Call permute = context.ResolveCall(args[i]);
    if (!permute || !op::IsCallOf(permute, op::names::kPermuteDims)) continue;
    const std::optional<std::vector<int64_t>> axes = op::IntsAttr(permute, "axes");
    std::string layout = layouts[i];
    for (size_t to = 0; to < 4; ++to) {
      const int64_t from = axes ? ((*axes)[to] + 4) % 4 : static_cast<int64_t>(3 - to);
      layout[static_cast<size_t>(from)] = layouts[i][to];
    }
    layouts[i] = layout;
    args[i] = permute->args[0];
    changed = true;
  }
  if (!changed) return nullptr;
  return context.Call("nn.attention", std::move(args), attention->attrs.With("layouts", LayoutsAttr(layouts)));
}

// Makes the permutation of the result part of its layout.
Expr AbsorbResultPermute(const Match& match, RewriteContext& context) {
  const ir::Call attention = match.GetCall("attention"), permute = match.GetCall("permute");
  std::array<std::string, 4> layouts = LayoutsOf(attention);
  const std::optional<std::vector<int64_t>> axes = op::IntsAttr(permute, "axes");
  const std::string old = layouts[3];
  for (size_t to = 0; to < 4; ++to) {
    const int64_t from = axes ? ((*axes)[to] + 4) % 4 : static_cast<int64_t>(3 - to);
    layouts[3][to] = old[static_cast<size_t>(from)];
  }
  return context.Call("nn.attention", attention->args, attention->attrs.With("layouts", LayoutsAttr(layouts)));
}

// Returns x if the operand is a view of a broadcast that repeats each head of x several times in a row; null otherwise.
Expr Repeated(RewriteContext& context, const Expr& operand, size_t head_axis) {
  const auto view_of = [&](const Expr& expr) {
    const ir::Call call = context.ResolveCall(expr);
    return call && op::RowOf(call)->is_view ? call : nullptr;
  };
  const ir::Call joined = view_of(operand);
  const ir::Call broadcast = joined ? context.ResolveCall(joined->args[0]) : nullptr;
  if (!broadcast || !op::IsCallOf(broadcast, op::names::kBroadcastTo)) return nullptr;
  const ir::Call split = view_of(broadcast->args[0]);
  if (!split || DimsOf(split->args[0]) == nullptr || DimsOf(split->args[0])->size() != 4) return nullptr;
  Dims dims = *DimsOf(split->args[0]), one = dims, many = dims, all = dims;
  const auto heads = ir::AsConstInt(dims[head_axis]);
  const auto shown = ir::AsConstInt((*DimsOf(operand))[head_axis]);
  if (!heads || !shown || *heads == 0 || *shown % *heads != 0) return nullptr;
  const auto behind_heads = static_cast<ptrdiff_t>(head_axis) + 1;
  one.insert(one.begin() + behind_heads, ir::Int64(1));
  many.insert(many.begin() + behind_heads, ir::Int64(*shown / *heads));
  all[head_axis] = ir::Int64(*shown);
  const bool repeats =
      EqualDims(*DimsOf(split), one) && EqualDims(*DimsOf(broadcast), many) && EqualDims(*DimsOf(operand), all);
  return repeats ? split->args[0] : nullptr;
}

// Removes the repetition of keys and values of grouped heads: attention repeats them itself.
Expr AbsorbRepeatedHeads(const Match& match, RewriteContext& context) {
  const ir::Call attention = match.GetCall("attention");
  const std::array<std::string, 4> layouts = LayoutsOf(attention);
  std::vector<Expr> args = attention->args;
  for (size_t i : {1, 2}) {
    args[i] = Repeated(context, args[i], layouts[i].find('N'));
    if (!args[i]) return nullptr;
  }
  return context.Call("nn.attention", std::move(args), attention->attrs);
}

// Removes a constant mask of zeros.
Expr ZeroMask(const Match& match, RewriteContext& context) {
  const ir::Call attention = match.GetCall("attention");
  const Expr bias = attention->args[3];
  const bool is_bool = As<ir::ConstantNode>(bias)->data->dtype().is_bool();
  const bool is_zero = is_bool ? IsFilledWith(bias, 1) : IsFilledWith(bias, 0.0) || IsFilledWith(bias, -0.0);
  if (!is_zero) return nullptr;
  const std::vector<Expr> args(attention->args.begin(), attention->args.begin() + 3);
  return context.Call("nn.attention", args, attention->attrs.With("hidden", ir::AttrValue()));
}

// Makes a constant causal mask an attribute.
Expr CausalMask(const Match& match, RewriteContext& context) {
  const ir::Call attention = match.GetCall("attention");
  const auto& data = *As<ir::ConstantNode>(attention->args[3])->data;
  const std::vector<Expr> args(attention->args.begin(), attention->args.begin() + 3);
  if (!attention->attrs.Find("causal_mask")->is_none() || data.dims().size() < 2) return nullptr;
  const bool is_bool = data.dtype().is_bool();
  const ir::AttrValue* number = attention->attrs.Find("hidden");
  if (is_bool && !number->is_none() && attention->attrs.GetFloat("hidden") > kHidden) return nullptr;
  const int64_t queries = data.dims()[data.dims().size() - 2];
  const int64_t keys = data.dims().back();
  if (queries * keys != data.num_elements()) return nullptr;  // the masks of heads differ
  const std::array<std::string, 4> layouts = LayoutsOf(attention);
  const Dims& query_dims = *DimsOf(args[0]);
  const Dims& key_dims = *DimsOf(args[1]);
  if (!ir::IsConstInt(query_dims[layouts[0].find('S')], queries) ||
      !ir::IsConstInt(key_dims[layouts[1].find('S')], keys)) {
    return nullptr;
  }
  const op::ReferenceTensor bias = op::UnpackReference(data.dtype(), {queries, keys}, data.bytes());
  for (const auto& [name, offset] : {std::pair("TopLeft", int64_t{0}), std::pair("BottomRight", keys - queries)}) {
    bool holds = offset >= 0;  // otherwise a query sees no key, and the softmax of such a row differs
    for (int64_t q = 0; q < queries && holds; ++q) {
      for (int64_t k = 0; k < keys && holds; ++k) {
        const double element = op::GetNumber(bias, q * keys + k);
        const bool is_seen = is_bool ? element != 0 : element == 0, is_hidden = is_bool ? !is_seen : element <= kHidden;
        holds = k <= q + offset ? is_seen : is_hidden;
      }
    }
    if (holds) return context.Call("nn.attention", args, attention->attrs.With("causal_mask", name));
  }
  return nullptr;
}

Pattern AttentionPattern() {
  const Pattern product = Op("matmul", {Any(), Any()});
  const Pattern scores =
      OneOf({product, Product(product, Number("factor")), Op("divide", {product, Number("factor")})}).As("scores");
  const Pattern masked = OneOf({
      scores,
      Sum(scores, Any("bias")).As("biased"),
      Op("where", {Any("condition"), scores, Number("hidden")}).As("keeps"),
      Op("where", {Any("condition"), Number("hidden"), scores}).As("hides"),
  });
  return Op("matmul", {Op("nn.softmax", {masked}).Where(IsLastAxis), Any("value")}).As("root");
}

}  // namespace

std::vector<RewriteRow> AttentionRewrites() {
  const Pattern attention =
      OneOf({Op("nn.attention", {Any(), Any(), Any()}), Op("nn.attention", {Any(), Any(), Any(), Any()})})
          .As("attention");
  const Pattern masked = Op("nn.attention", {Any(), Any(), Any(), Constant("bias")}).As("attention");
  return {
      {RewriteId::kAttention, AttentionPattern(), MakeAttention},
      {RewriteId::kPermuteAttention, attention, AbsorbOperandPermute},
      {RewriteId::kAttentionPermute, Op("permute_dims", {attention}).As("permute"), AbsorbResultPermute},
      {RewriteId::kRepeatedHeads, attention, AbsorbRepeatedHeads},
      {RewriteId::kZeroMask, masked, ZeroMask},
      {RewriteId::kCausalMask, masked, CausalMask},
  };
}

}  // namespace ingot::transform
