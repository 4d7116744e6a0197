// softmax(Q K^T * scale + mask) V is one operator, which reads and writes any order of its axes: permutations around it
// become its layouts, a constant mask that is causal becomes an attribute.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/rewrite.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;
using Dims = std::vector<ir::PrimExpr>;

namespace {

// Masks add this or less where nothing is to be seen.
constexpr double kHidden = -1e30;
// Older exporters put this in place of a score that is not to be seen.
constexpr double kHiddenScore = -1e4;

// What is added to a score that is replaced by `hidden`: so far below it that the sum is the same for every score, as
// it is where they are replaced. So a query that sees no key gives the mean of all values. None where a sum in float32
// is not (float16's least is -65504).
std::optional<double> AddedWhereHidden(double hidden, DataType dtype) {
  if (hidden > kHiddenScore) return std::nullopt;
  if (std::isinf(hidden)) return hidden;
  if (dtype == DataType::Float(16)) return std::nullopt;
  return -0x1p100;
}

// Scores are softmaxed along their last axis.
bool IsLastAxis(const ir::Call& softmax) {
  const auto* type = As<ir::TensorTypeNode>(softmax->args[0]->type);
  const int64_t axis = softmax->attrs.GetInt("axis");
  return type != nullptr && type->rank > 0 && (axis == -1 || axis == type->rank - 1);
}

// x of x * number and x / number, where the number goes into the scale.
Expr PeelScale(RewriteContext& context, Expr x, double& scale) {
  const Pattern product = Product(Any("x"), Number("c"));
  const Pattern quotient = Op("divide", {Any("x"), Number("c")});
  while (true) {
    if (const auto match = MatchPattern(product, x, context.definitions())) {
      scale *= match->GetNumber("c");
      x = match->Get("x");
    } else if (const auto divided = MatchPattern(quotient, x, context.definitions())) {
      scale /= divided->GetNumber("c");
      x = divided->Get("x");
    } else {
      return x;
    }
  }
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

// Operands [heads, sequence, depth] get a batch of 1.
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
  // The mask broadcasts to the scores, not the other way round.
  if (bias && !SameType(match.Get("biased")->type, scores->type)) return nullptr;
  const Expr keeps = match.Find("keeps"), hides = match.Find("hides");
  if (keeps || hides) {
    // Scores that are replaced: a mask that is added has the same effect.
    if (!SameType((keeps ? keeps : hides)->type, scores->type)) return nullptr;
    const DataType dtype = *As<ir::TensorTypeNode>(scores->type)->dtype;
    const std::optional<double> added = AddedWhereHidden(match.GetNumber("hidden"), dtype);
    if (!added) return nullptr;
    const Expr hidden = NumberConstant(*added, dtype);
    const Expr seen = NumberConstant(0, dtype);
    bias = context.Bind("where", {match.Get("condition"), keeps ? seen : hidden, keeps ? hidden : seen});
    if (!bias) return nullptr;
  }
  scores = PeelScale(context, scores, scale);
  const ir::Call product = context.ResolveCall(scores);
  if (!product || op::RowOf(product) != op::FindOp("matmul")) return nullptr;
  const Expr query = PeelScale(context, product->args[0], scale);
  const Expr key = PeelScale(context, product->args[1], scale);
  const Expr value = match.Get("value");
  for (const Expr& operand : {query, key, value}) {
    const Dims* dims = DimsOf(operand);
    if (dims == nullptr || (dims->size() != 4 && dims->size() != 3)) return nullptr;
    if (dims->size() != DimsOf(query)->size()) return nullptr;
  }
  // Batches broadcast in products, not here.
  const size_t num_batch_dims = DimsOf(query)->size() - 2;
  for (const Expr& operand : {key, value}) {
    for (size_t i = 0; i < num_batch_dims; ++i) {
      if (!op::DimsEqual((*DimsOf(operand))[i], (*DimsOf(query))[i])) return nullptr;
    }
  }
  std::vector<Expr> args = {WithBatch(context, query), WithBatch(context, key), WithBatch(context, value)};
  if (bias) args.push_back(bias);
  ir::Attrs attrs = {{"scale", scale}, {"layouts", LayoutsAttr({"BNSH", "BNHS", "BNSH", "BNSH"})}};
  if (num_batch_dims == 2) return context.Call("nn.attention", std::move(args), std::move(attrs));
  const Expr attention = context.Bind("nn.attention", std::move(args), std::move(attrs));
  return attention ? ReshapeTo(context, attention, *DimsOf(root)) : nullptr;
}

// The permutation of an operand becomes its layout.
Expr AbsorbOperandPermute(const Match& match, RewriteContext& context) {
  const ir::Call attention = match.GetCall("attention");
  std::array<std::string, 4> layouts = LayoutsOf(attention);
  std::vector<Expr> args = attention->args;
  bool changed = false;
  for (size_t i = 0; i < 3; ++i) {
    const ir::Call permute = context.ResolveCall(args[i]);
    if (!permute || op::RowOf(permute) != op::FindOp("permute_dims")) continue;
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

// The permutation of the result as well.
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

// x where operand shows each head of x several times, one after the other, as a view of a broadcast; null otherwise.
Expr Repeated(RewriteContext& context, const Expr& operand, size_t head_axis) {
  const auto view_of = [&](const Expr& expr) {
    const ir::Call call = context.ResolveCall(expr);
    return call && op::RowOf(call)->is_view ? call : nullptr;
  };
  const ir::Call joined = view_of(operand);
  const ir::Call broadcast = joined ? context.ResolveCall(joined->args[0]) : nullptr;
  if (!broadcast || op::RowOf(broadcast) != op::FindOp("broadcast_to")) return nullptr;
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

// Keys and values of grouped heads, which attention repeats by itself.
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

// A constant mask: none at all, or the causal one.
Expr KnownBias(const Match& match, RewriteContext& context) {
  const ir::Call attention = match.GetCall("attention");
  const auto& data = *As<ir::ConstantNode>(attention->args[3])->data;
  const std::vector<Expr> args(attention->args.begin(), attention->args.begin() + 3);
  if (IsFilledWith(attention->args[3], 0)) return context.Call("nn.attention", args, attention->attrs);
  if (!attention->attrs.Find("causal_mask")->is_none() || data.dims().size() < 2) return nullptr;
  const int64_t queries = data.dims()[data.dims().size() - 2];
  const int64_t keys = data.dims().back();
  if (queries * keys != data.num_elements()) return nullptr;  // another mask for each head
  const std::array<std::string, 4> layouts = LayoutsOf(attention);
  const Dims& query_dims = *DimsOf(args[0]);
  const Dims& key_dims = *DimsOf(args[1]);
  if (!ir::IsConstInt(query_dims[layouts[0].find('S')], queries) ||
      !ir::IsConstInt(key_dims[layouts[1].find('S')], keys)) {
    return nullptr;
  }
  const op::ReferenceTensor bias = op::UnpackReference(data.dtype(), {queries, keys}, data.bytes());
  for (const auto& [name, offset] : {std::pair("TopLeft", int64_t{0}), std::pair("BottomRight", keys - queries)}) {
    bool holds = offset >= 0;  // else a query sees nothing, and what the softmax makes of that differs
    for (int64_t q = 0; q < queries && holds; ++q) {
      for (int64_t k = 0; k < keys && holds; ++k) {
        const double element = bias.floats[static_cast<size_t>(q * keys + k)];
        holds = k <= q + offset ? element == 0 : element <= kHidden;
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
  return {
      {"attention", "softmax(query key^T * scale + bias) value", AttentionPattern(), MakeAttention},
      {"permute_attention", "permuted operands of attention", attention, AbsorbOperandPermute},
      {"attention_permute", "a permuted result of attention", Op("permute_dims", {attention}).As("permute"),
       AbsorbResultPermute},
      {"repeated_heads", "keys and values of grouped heads that are repeated before attention", attention,
       AbsorbRepeatedHeads},
      {"known_mask", "a constant mask that is zero or causal",
       Op("nn.attention", {Any(), Any(), Any(), Constant("bias")}).As("attention"), KnownBias},
  };
}

}  // namespace ingot::transform
