// fit_windows
//   Before: normal form; constants not folded.
//   After:  a convolution whose first or last taps along an axis see padding alone, wherever its window lies, has fewer
//           taps (a dilation that is longer than the image leaves one of three). Groups of channels of int16 that fill no
//           blocks of 16 are filled up with zeros, and what they compute is left out of the result.
//   Before folding, which evaluates the parts of weights; behind quantised_products, which makes convolutions of int16.
#include <algorithm>
#include <optional>

#include "compiler/op/blocked.h"
#include "compiler/op/infer.h"
#include "compiler/op/names.h"
#include "compiler/transform/blocked_forms.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/rewrite.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;
using op::Dims;

namespace {

// Whether the data is [N, C, spatial...] and the weights are [O, I, spatial...].
bool IsPlain(const ir::Call& call) {
  const auto is_default = [&](const char* attr) {
    for (const op::AttrSpec& spec : op::RowOf(call)->attrs) {
      if (std::string_view(spec.name) != attr) continue;
      return call->attrs.GetString(attr) == *spec.default_value.get<std::string>();
    }
    return false;
  };
  return is_default("data_layout") && is_default("kernel_layout") &&
         call->attrs.GetString("out_layout") == call->attrs.GetString("data_layout");
}

// ---- Taps that see padding alone
// The taps [first, last] of an axis that see an element at some place of the window, and the padding that they need.
struct SeenTaps {
  int64_t first, last, before, behind;
};

// Of an axis whose taps are all seen, or none, nothing.
std::optional<SeenTaps> SeenTapsOf(int64_t in, int64_t out, int64_t taps, int64_t stride, int64_t dilation,
                                   int64_t padding) {
  if (in < 1 || out < 1 || taps < 2) return std::nullopt;
  const int64_t last_place = (out - 1) * stride;
  // A tap ends before the data where its last place does, and begins behind it where its first place does. Windows do
  // not begin behind the first element, nor end before the last place that they reached.
  const auto sees_nothing = [&](int64_t tap) {
    return last_place + tap * dilation < padding || tap * dilation - padding >= in;
  };
  SeenTaps seen{0, taps - 1, padding, 0};
  while (seen.first < seen.last && sees_nothing(seen.first) && seen.before >= dilation) {
    ++seen.first;
    seen.before -= dilation;
  }
  const auto missing = [&] { return last_place + (seen.last - seen.first) * dilation + 1 - in - seen.before; };
  while (seen.last > seen.first && sees_nothing(seen.last)) {
    --seen.last;
    if (missing() > -stride) continue;
    ++seen.last;  // there would be room for another window
    break;
  }
  if (seen.first == 0 && seen.last == taps - 1) return std::nullopt;
  seen.behind = std::max<int64_t>(missing(), 0);
  return seen;
}

Expr CutTaps(const Match& match, RewriteContext& context) {
  const ir::Call conv = match.GetCall("conv");
  const Dims *in = DimsOf(conv->args[0]), *weight = DimsOf(conv->args[1]), *out = DimsOf(conv);
  if (!IsPlain(conv) || in == nullptr || weight == nullptr || out == nullptr) return nullptr;
  const std::vector<int64_t> strides = conv->attrs.GetInts("strides"), dilation = conv->attrs.GetInts("dilation");
  std::vector<int64_t> padding = conv->attrs.GetInts("padding"), axes, begin, end;
  const size_t rank = strides.size();
  for (size_t i = 0; i < rank; ++i) {
    const auto extent = ir::AsConstInt((*in)[2 + i]), places = ir::AsConstInt((*out)[2 + i]),
               taps = ir::AsConstInt((*weight)[2 + i]);
    if (!extent || !places || !taps) continue;
    const auto seen = SeenTapsOf(*extent, *places, *taps, strides[i], dilation[i], padding[i]);
    if (!seen) continue;
    axes.push_back(static_cast<int64_t>(2 + i));
    begin.push_back(seen->first);
    end.push_back(seen->last + 1);
    padding[i] = seen->before;
    padding[rank + i] = seen->behind;
  }
  if (axes.empty()) return nullptr;
  const Expr part = context.Bind("strided_slice", {conv->args[1], IntTuple(axes), IntTuple(begin), IntTuple(end)});
  return context.Call(op::RowOf(conv)->name, {conv->args[0], part},
                      conv->attrs.With("padding", ir::AttrValue::Ints(padding)));
}

// ---- Groups that fill no blocks
// Whether an expression is computed from constants alone.
bool IsOfConstants(const RewriteContext& context, const Expr& expr, int depth = 8) {
  const Expr value = context.Resolve(expr);
  if (As<ir::CallNode>(value) == nullptr) return As<ir::VarNode>(value) == nullptr;
  const ir::Call call = context.ResolveCall(value);
  if (!call || depth == 0) return false;
  return std::ranges::all_of(call->args, [&](const Expr& arg) { return IsOfConstants(context, arg, depth - 1); });
}

// x with axis `at`, of `groups` times `width` channels, filled up with zeros to `filled` channels in each group.
Expr FillGroups(RewriteContext& context, const Expr& x, int64_t groups, int64_t width, int64_t filled, size_t at) {
  Dims cut = *DimsOf(x), whole = cut;
  cut[at] = ir::Int64(width);
  cut.insert(cut.begin() + static_cast<int64_t>(at), ir::Int64(groups));
  whole[at] = ir::Int64(groups * filled);
  std::vector<int64_t> pad(2 * cut.size(), 0);
  pad[2 * (at + 1) + 1] = filled - width;
  const Expr parts = context.AsArgument(ReshapeTo(context, x, cut));
  const Expr padded = context.Bind("nn.pad", {parts}, {{"pad_width", ir::AttrValue::Ints(pad)}});
  return padded ? context.AsArgument(ReshapeTo(context, padded, whole)) : nullptr;
}

// The data with filled groups: bytes are filled before they are widened and lose their zero point, so that convert_layout
// finds them. What the filled channels hold then has no part, since their weights are zero.
Expr FillData(RewriteContext& context, const Expr& x, int64_t groups, int64_t width, int64_t filled) {
  const ir::Call call = context.ResolveCall(x);
  if (call && op::IsCallOf(call, op::names::kAstype)) {
    const Expr bytes = FillGroups(context, call->args[0], groups, width, filled, 1);
    return bytes ? context.Bind("astype", {bytes}, call->attrs) : nullptr;
  }
  const Dims* zero = call && op::IsCallOf(call, op::names::kSubtract) ? DimsOf(call->args[1]) : nullptr;
  const auto is_one = [](const ir::PrimExpr& dim) { return ir::IsConstInt(dim, 1); };
  if (zero != nullptr && std::ranges::all_of(*zero, is_one) && DimsOf(call->args[0])->size() == DimsOf(x)->size()) {
    const Expr bytes = FillData(context, call->args[0], groups, width, filled);
    return bytes ? context.Bind("subtract", {bytes, call->args[1]}) : nullptr;
  }
  return FillGroups(context, x, groups, width, filled, 1);
}

Expr FillConvolution(const Match& match, RewriteContext& context) {
  const ir::Call conv = match.GetCall("conv");
  const Dims *in = DimsOf(conv->args[0]), *weight = DimsOf(conv->args[1]), *out = DimsOf(conv);
  const int64_t groups = conv->attrs.GetInt("groups");
  if (groups < 2 || !IsPlain(conv) || in == nullptr || weight == nullptr || out == nullptr) return nullptr;
  if (As<ir::TensorTypeNode>(conv->args[1]->type)->dtype != DataType::Int(16)) return nullptr;
  const auto outputs = ir::AsConstInt((*weight)[0]), width = ir::AsConstInt((*weight)[1]);
  if (!outputs || !width || *width < 1 || *outputs < groups || !IsOfConstants(context, conv->args[1])) return nullptr;
  const int64_t results = *outputs / groups;
  const int64_t filled_width = op::FilledChannels(*width), filled_results = op::FilledChannels(results);
  const bool is_filled = filled_width == *width && filled_results == results;
  const bool shares_blocks = results == *width && filled_width % *width == 0;  // convert_layout joins such groups
  if (is_filled || shares_blocks || !op::WordsPay(groups, *width, results)) return nullptr;
  const Expr data = FillData(context, conv->args[0], groups, *width, filled_width);
  Expr kernel = FillGroups(context, conv->args[1], groups, results, filled_results, 0);
  if (!data || !kernel) return nullptr;
  if (filled_width != *width) {
    kernel = context.Bind("nn.pad", {kernel},
                          {{"pad_width", ir::AttrValue::Ints({0, 0, 0, filled_width - *width, 0, 0, 0, 0})}});
  }
  const Expr sums = context.Bind(op::RowOf(conv)->name, {data, kernel}, conv->attrs);
  if (!sums || filled_results == results) return sums;
  const Dims filled = *DimsOf(sums);
  const Dims cut = {filled[0], ir::Int64(groups), ir::Int64(filled_results), filled[2], filled[3]};
  const Expr parts = context.AsArgument(ReshapeTo(context, sums, cut));
  const Expr own = context.Bind("strided_slice", {parts, IntTuple({2}), IntTuple({0}), IntTuple({results})});
  return own ? ReshapeTo(context, own, *out) : nullptr;
}

// On GPUs integers are not multiplied in words, and there are no blocks to fill.
std::vector<RewriteRow> WindowRewrites(const TargetFamily& target) {
  const auto conv = [](const char* name) { return Op(name, {Any(), Any()}).As("conv"); };
  const Pattern any = OneOf({conv("nn.conv1d"), conv("nn.conv2d"), conv("nn.conv3d")});
  std::vector<RewriteRow> rows = {{RewriteId::kCutTaps, any, CutTaps}};
  if (target.kind != Target::Kind::kCuda) {
    rows.push_back({RewriteId::kFillGroups, conv("nn.conv2d"), FillConvolution});
  }
  return rows;
}

}  // namespace

Result<ir::IRModule> FitWindows(ir::IRModule module, PassContext& context) {
  return RewriteModule(std::move(module), WindowRewrites(context.options.target), context.options.rewrites,
                       context.rewrites);
}

}  // namespace ingot::transform
