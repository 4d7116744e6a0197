// Which calls take blocks, and what they cost there, by the implementations' own predicates and costs.
#include "compiler/transform/blocked_calls.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/ir/float_format.h"
#include "compiler/op/blocked.h"
#include "compiler/op/infer.h"
#include "compiler/op/names.h"
#include "compiler/op/topi/winograd.h"
#include "compiler/op/window_cost.h"
#include "compiler/transform/blocked_forms.h"
#include "compiler/transform/graph_util.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;
using op::Dims;
using op::Layout;

namespace {

// The heights and widths that are likely where symbols stand for them: of a parameter with few channels, which is an
// image, and of others; and the depth of a volume.
constexpr int64_t kChannelsOfImage = 4, kLikelyInside = 56, kLikelyDepth = 8;

// How tuning may choose "layout".
constexpr int64_t kAllPlain = 0, kByCost = 1, kAllBlocks = 2;

// The sizes of a convolution's data and weights, and its padding: "1x64x56x56:64x64x3x3:1x1x1x1".
std::string SizesOf(const ir::Call& call) {
  std::string text;
  for (size_t arg = 0; arg < 2; ++arg) {
    for (const ir::PrimExpr& dim : *TypedDimsOf(call->args[arg])) text += op::Describe(dim) + "x";
    text.back() = ':';
  }
  for (const int64_t pad : call->attrs.GetInts("padding")) text += std::to_string(pad) + "x";
  text.pop_back();
  return text;
}

double Elements(const Dims& dims) {
  double count = 1;
  for (const ir::PrimExpr& dim : dims) {
    if (const auto value = ir::AsConstInt(dim)) count *= static_cast<double>(*value);
  }
  return count;
}

int64_t TilesOf(int64_t extent) { return (extent + op::topi::kWinogradTile - 1) / op::topi::kWinogradTile; }

bool IsPermutation(const ir::Call& call, const std::vector<int64_t>& axes) {
  return !call->attrs.Find("axes")->is_none() && call->attrs.GetInts("axes") == axes;
}

std::optional<double> ScalarOf(const Expr& x) {
  const auto* constant = As<ir::ConstantNode>(x);
  if (constant == nullptr) return std::nullopt;
  const auto of = [&]<typename T>(T value) {
    std::memcpy(&value, constant->data->bytes().data(), sizeof value);
    return std::optional<double>(value);
  };
  const DataType dtype = constant->data->dtype();
  if (dtype == DataType::Float(32)) return of(float{});
  if (dtype == DataType::Int(8)) return of(int8_t{});
  if (dtype == DataType::UInt(8)) return of(uint8_t{});
  if (dtype == DataType::Int(16)) return of(int16_t{});
  if (dtype == DataType::Int(32)) return of(int32_t{});
  return std::nullopt;
}

// Of an image and the scalars, values per channel and images of the same shape that it is computed from.
bool IsElementwise(const ir::Call& call) {
  const Dims& out = *TypedDimsOf(call);
  if (!Channels(out)) return false;
  for (const op::AttrSpec& spec : op::RowOf(call)->attrs) {
    if (std::string_view(spec.name).starts_with("ax")) return false;  // the attribute names axes
  }
  bool any_whole = false;
  for (const Expr& arg : call->args) {
    if (As<ir::PrimValueNode>(arg) != nullptr) continue;
    const Dims* dims = TypedDimsOf(arg);
    if (dims == nullptr) return false;
    const bool is_whole = EqualDims(*dims, out);
    if (!is_whole && !IsScalar(*dims) && !IsPerChannel(*dims, out)) return false;
    any_whole |= is_whole;
  }
  return any_whole;
}

}  // namespace

bool IsScalar(const Dims& dims) {
  return std::ranges::all_of(dims, [](const ir::PrimExpr& dim) { return ir::IsConstInt(dim, 1); });
}

bool IsPerChannel(const Dims& dims, const Dims& image) {
  if (dims.size() != image.size() - 1 && dims.size() != image.size()) return false;
  const auto channels = dims.end() - static_cast<std::ptrdiff_t>(image.size() - 1);
  return op::DimsEqual(*channels, image[1]) &&
         std::all_of(channels + 1, dims.end(), [](const ir::PrimExpr& dim) { return ir::IsConstInt(dim, 1); });
}

ir::Attrs AxesInBlocks(ir::Attrs attrs, size_t rank) {
  const ir::AttrValue* axis = attrs.Find("axis");
  const Layout layout = BlockedLayout(rank);
  const auto in_blocks = [&](int64_t a) -> int64_t {
    const int64_t logical = a < 0 ? a + static_cast<int64_t>(rank) : a;
    for (size_t i = 0; i < layout.axes().size(); ++i) {
      if (static_cast<int64_t>(layout.axes()[i].logical) == logical) return static_cast<int64_t>(i);
    }
    return logical;
  };
  if (axis == nullptr || axis->is_none()) return attrs;
  if (const int64_t* one = axis->get<int64_t>()) return attrs.With("axis", in_blocks(*one));
  std::vector<int64_t> axes = attrs.GetInts("axis");
  for (int64_t& a : axes) a = in_blocks(a);
  return attrs.With("axis", ir::AttrValue::Ints(axes));
}

Result<std::vector<Expr>> MapTensors(std::vector<Expr> args, const std::function<Result<Expr>(const Expr&)>& map) {
  for (Expr& arg : args) {
    if (As<ir::TensorTypeNode>(arg->type) != nullptr) {
      INGOT_ASSIGN_OR_RETURN(arg, map(arg));
      continue;
    }
    const auto* tuple = As<ir::TupleNode>(arg);
    if (tuple == nullptr) continue;
    std::vector<Expr> fields = tuple->fields;
    std::vector<ir::Type> types;
    for (Expr& field : fields) {
      if (As<ir::TensorTypeNode>(field->type) != nullptr) {
        INGOT_ASSIGN_OR_RETURN(field, map(field));
      }
      types.push_back(field->type);
    }
    arg = ir::Make<ir::TupleNode>(std::move(fields), ir::Make<ir::TupleTypeNode>(std::move(types)));
  }
  return args;
}

std::optional<double> ElementwiseFilling(const ir::Call& call,
                                         const std::function<std::optional<double>(const Expr&)>& filling_of) {
  const op::OpRow& row = *op::RowOf(call);
  if (row.reference == nullptr) return std::nullopt;
  std::vector<Expr> args = call->args;
  std::vector<op::ReferenceTensor> inputs;
  for (Expr& arg : args) {
    if (As<ir::PrimValueNode>(arg) != nullptr) continue;
    const std::optional<double> filling = IsScalar(*TypedDimsOf(arg)) ? ScalarOf(arg) : filling_of(arg);
    if (!filling) return std::nullopt;
    const auto type = ir::Downcast<ir::TensorTypeNode>(arg->type);
    arg = ir::Make<ir::VarNode>("x", op::TensorOf({ir::Int64(1)}, type->dtype, type));
    inputs.push_back(op::NewReference(*type->dtype, {1}));
    op::SetNumber(inputs.back(), 0, *filling);
  }
  if (row.divides && inputs.back().dtype.is_integral() && op::GetNumber(inputs.back(), 0) == 0) return std::nullopt;
  const Result<ir::Call> one = op::MakeCall(row.name, std::move(args), call->attrs);
  if (!one.ok()) return std::nullopt;
  const Result<std::vector<op::ReferenceTensor>> value = row.reference(*one, inputs);
  if (!value.ok() || value->size() != 1) return std::nullopt;
  const double number = op::GetNumber((*value)[0], 0);
  const DataType dtype = (*value)[0].dtype;
  if (!dtype.is_floating()) return number;
  // The reference computes in double precision; near the greatest number, a kernel may get infinity.
  if (!std::isfinite(ir::RoundToFloat(dtype, 2 * number))) return std::nullopt;
  return ir::RoundToFloat(dtype, number);
}

bool IsImage(const Dims& dims) { return Channels(dims).value_or(kBlock) <= kChannelsOfImage; }

BlockedCalls::BlockedCalls(const ir::Function& function, const WeightBindings& weights, PassContext& context)
    : weights_(weights), context_(context), options_(context.options) {
  const ir::AttrValue* attr = function->attrs.Find(kLikelyImageAttr);
  const auto* given = attr == nullptr ? nullptr : attr->get<int64_t>();
  const int64_t likely_image = given != nullptr && *given > 0 ? *given : kLikelyImage;
  if (given != nullptr) likely_name_ = "@" + std::to_string(likely_image);
  for (const ir::Var& param : function->params) {
    const Dims* dims = TypedDimsOf(param);
    if (dims == nullptr || (dims->size() != kImageRank && dims->size() != kVolumeRank)) continue;
    const bool is_image = IsImage(*dims);
    for (size_t d = 2; d < dims->size(); ++d) {
      const bool is_depth = dims->size() - d > 2;
      for (const ir::PrimVar& symbol : ir::FreePrimVars((*dims)[d])) {
        likely_.emplace(symbol, ir::Int64(is_depth ? kLikelyDepth : is_image ? likely_image : kLikelyInside));
      }
    }
  }
  // All variants share the layouts, so the least demanding variant decides.
  if (!options_.target.variants.empty()) target_ = options_.target.variants.front();
}

BlockedCall BlockedCalls::KindOf(const ir::Binding& binding) const {
  const ir::Call call = ir::AsRef<ir::CallNode>(binding.value);
  const op::OpRow* row = call != nullptr ? op::RowOf(call) : nullptr;
  if (row == nullptr || weights_.Contains(binding.var) || binding.is_match_cast() || TypedDimsOf(call) == nullptr) {
    return BlockedCall::kNone;
  }
  if (op::IsCallOf(call, op::names::kPermuteDims)) {
    const Dims* dims = TypedDimsOf(call->args[0]);
    if (dims == nullptr || dims->size() != 4) return BlockedCall::kNone;
    const auto has_whole_blocks = [](const Dims& image) { return Channels(image).value_or(1) % kBlock == 0; };
    if (IsPermutation(call, {0, 3, 1, 2}) && has_whole_blocks(*TypedDimsOf(call))) {
      return BlockedCall::kFromChannelsLast;
    }
    return IsPermutation(call, {0, 2, 3, 1}) && has_whole_blocks(*dims) ? BlockedCall::kToChannelsLast
                                                                        : BlockedCall::kNone;
  }
  if (!op::LayoutNames(*row).empty()) return BlockedCall::kWindow;
  if (row->fusion <= op::FusionClass::kBroadcast && !row->is_view) {
    return IsElementwise(call) ? BlockedCall::kElementwise : BlockedCall::kNone;
  }
  return TakesBlocks(call) ? BlockedCall::kSameAttributes : BlockedCall::kNone;
}

// ---- Costs of symbolic sizes
Dims BlockedCalls::LikelyDims(Dims dims) const {
  for (size_t d = 2; d < dims.size(); ++d) {
    ir::PrimVarMap values = likely_;
    const int64_t likely = dims.size() - d > 2 ? kLikelyDepth : kLikelyInside;
    for (const ir::PrimVar& symbol : ir::FreePrimVars(dims[d])) values.emplace(symbol, ir::Int64(likely));
    const auto extent = ir::AsConstInt(op::SimplifyDim(ir::Substitute(dims[d], values)));
    dims[d] = ir::Int64(std::max<int64_t>(extent.value_or(likely), 1));
  }
  return dims;
}

double BlockedCalls::ConversionCost(const Dims& dims) const {
  const Dims likely = LikelyDims(Filled(dims, BlockedLayout(dims.size())));
  // A single position's channels are in order in either form.
  if (IsPoint(likely) && *Channels(dims) % kBlock == 0) return 0;
  return op::LayoutConversionCost(Elements(likely));
}

// ---- Windows
std::vector<WindowChoice> BlockedCalls::WindowChoices(const ir::Call& call) const {
  std::vector<WindowChoice> choices = PossibleChoices(call);
  if (std::ranges::any_of(choices, &WindowChoice::makes_blocks)) ChooseLayout(choices);
  ChooseWinograd(call, choices);
  return choices;
}

std::vector<WindowChoice> BlockedCalls::PossibleChoices(const ir::Call& call) const {
  const op::OpRow& row = *op::RowOf(call);
  for (const op::LayoutName& name : op::LayoutNames(row)) {
    if (call->attrs.GetString(name.attr) != name.canonical) return {};  // a layout was chosen by hand
  }
  for (const Expr& arg : call->args) {
    if (TypedDimsOf(arg) == nullptr) return {};
  }
  std::vector<WindowChoice> choices;
  for (const op::Implementation& implementation : row.implementations) {
    if (std::optional<WindowChoice> choice = Consider(call, implementation)) choices.push_back(*std::move(choice));
  }
  return choices;
}

bool BlockedCalls::PrefersWinograd(const ir::Call& call) const {
  std::vector<WindowChoice> choices = PossibleChoices(call);
  return IsCheaperByWinograd(call, choices);
}

// Sets what Winograd's convolution costs in place of each choice that it can take the place of.
bool BlockedCalls::IsCheaperByWinograd(const ir::Call& call, std::vector<WindowChoice>& choices) const {
  bool is_cheaper = false;
  for (WindowChoice& choice : choices) {
    choice.winograd_cost = WinogradCost(call, choice);
    is_cheaper |= choice.winograd_cost && IsWorthWinograd(call) && *choice.winograd_cost < choice.cost;
  }
  return is_cheaper;
}

void BlockedCalls::ChooseLayout(std::vector<WindowChoice>& choices) const {
  if (std::ranges::any_of(choices, [](const WindowChoice& choice) { return choice.narrow_group > 0; }) &&
      context_.Choose("dense_groups", 1, {0, 1}) == 0) {
    std::erase_if(choices, [](const WindowChoice& choice) { return choice.narrow_group > 0; });
  }
  const int64_t layout = context_.Choose("layout", kByCost, {kAllPlain, kByCost, kAllBlocks});
  if (layout == kAllPlain) std::erase_if(choices, &WindowChoice::makes_blocks);
  if (layout != kAllBlocks) return;
  constexpr double kNeverCheaper = 1e3;
  for (WindowChoice& choice : choices) {
    if (!choice.makes_blocks()) choice.cost *= kNeverCheaper;
  }
}

void BlockedCalls::ChooseWinograd(const ir::Call& call, std::vector<WindowChoice>& choices) const {
  const bool is_cheaper = IsCheaperByWinograd(call, choices);
  if (std::ranges::none_of(choices, [](const WindowChoice& choice) { return choice.winograd_cost.has_value(); }))
    return;
  const int64_t chosen = context_.Choose("winograd:" + SizesOf(call) + likely_name_, is_cheaper ? 1 : 0, {0, 1});
  for (WindowChoice& choice : choices) {
    if (chosen == 0 || !choice.winograd_cost) continue;
    if (is_cheaper && *choice.winograd_cost >= choice.cost) continue;  // the usual choice
    choice.cost = *choice.winograd_cost;
    choice.is_winograd = true;
  }
}

// Returns the call with one implementation; nothing if the implementation does not support it.
std::optional<WindowChoice> BlockedCalls::Consider(const ir::Call& call,
                                                   const op::Implementation& implementation) const {
  const std::vector<op::LayoutName> names = op::LayoutNames(*op::RowOf(call));
  if (implementation.layouts.size() != names.size()) return std::nullopt;
  WindowChoice choice;
  choice.implementation = &implementation;
  choice.attrs = call->attrs;
  for (size_t i = 0; i < names.size(); ++i) {
    std::optional<Layout> parsed = Layout::Parse(implementation.layouts[i], names[i].canonical);
    if (!parsed) return std::nullopt;
    choice.layouts.push_back(*std::move(parsed));
  }
  // Blocks of channels are vectors of a CPU; on a GPU threads lie along the image.
  const bool has_blocks = std::ranges::any_of(choice.layouts, [](const Layout& layout) { return layout.IsBlocked(); });
  if (has_blocks && target_.kind == Target::Kind::kCuda) return std::nullopt;
  if (choice.takes_blocks() && !Channels(*TypedDimsOf(call->args[0]))) return std::nullopt;
  if (choice.makes_blocks() && !Channels(*TypedDimsOf(call))) return std::nullopt;
  if (choice.makes_blocks() && !IsPermitted(RewriteId::kBlockedLayout, options_.rewrites)) return std::nullopt;
  if (!FillGroups(call, choice)) return std::nullopt;
  std::vector<Expr> args = call->args;
  for (size_t i = 0; i < names.size(); ++i) {
    const Layout& layout = choice.layouts[i];
    choice.attrs = choice.attrs.With(names[i].attr, implementation.layouts[i]);
    if (i == args.size()) continue;
    Dims dims = *TypedDimsOf(args[i]);
    if (i == 1 && choice.narrow_group > 0) dims[1] = ir::Int64(kBlock);
    for (size_t d = 0; d < dims.size(); ++d) {
      if (layout.Block(d) != 1 && !ir::AsConstInt(dims[d])) return std::nullopt;
    }
    if (i > 0 && layout.IsBlocked() && !weights_.IsWeight(args[i])) return std::nullopt;
    if (i == 0) dims = LikelyDims(std::move(dims));
    const auto type = ir::Downcast<ir::TensorTypeNode>(args[i]->type);
    args[i] = ir::Make<ir::VarNode>("x", op::TensorOf(layout.Physical(Filled(dims, layout)), type->dtype, type));
  }
  const Result<ir::Call> laid_out = op::MakeCall(op::RowOf(call)->name, std::move(args), choice.attrs);
  if (!laid_out.ok() || !implementation.predicate(*laid_out, target_)) return std::nullopt;
  choice.cost = implementation.cost(*laid_out, target_);
  return choice;
}

// Depthwise groups (one per channel) stay so when channels are padded. Groups that are narrower than a block and have
// as many outputs as inputs share blocks: the channels of a block become one dense group, whose weights between
// different groups are zero. Other groups must be whole blocks.
bool BlockedCalls::FillGroups(const ir::Call& call, WindowChoice& choice) const {
  if (choice.attrs.Find("groups") == nullptr || !choice.layouts.back().IsBlocked()) return true;
  const int64_t groups = choice.attrs.GetInt("groups");
  if (groups == 1) return true;
  const Dims& data = *TypedDimsOf(call->args[0]);
  const Dims& weight = *TypedDimsOf(call->args[1]);
  Dims by_outputs = weight;
  std::swap(by_outputs[0], by_outputs[1]);
  const std::optional<int64_t> channels = Channels(data), outputs = Channels(by_outputs);
  if (!channels || !outputs) return false;
  if (groups == *channels && groups == *outputs) {
    choice.attrs = choice.attrs.With("groups", (groups + kBlock - 1) / kBlock * kBlock);
    return true;
  }
  const int64_t width = *channels / groups;
  if (width % kBlock == 0 && *outputs / groups % kBlock == 0) return true;
  if (*channels != *outputs || kBlock % width != 0 || choice.layouts[1].Block(1) != kBlock) return false;
  if (!IsPermitted(RewriteId::kDenseGroups, options_.rewrites)) return false;
  choice.narrow_group = width;
  choice.attrs = choice.attrs.With("groups", (*channels + kBlock - 1) / kBlock);
  return true;
}

// Whether an image has so many tiles that they outweigh the weights.
bool BlockedCalls::IsWorthWinograd(const ir::Call& call) const {
  constexpr int64_t kFewestTiles = 9;
  const Dims out = LikelyDims(*TypedDimsOf(call));
  return TilesOf(*ir::AsConstInt(out[2])) * TilesOf(*ir::AsConstInt(out[3])) >= kFewestTiles;
}

// Winograd's convolution (op/topi/winograd.h): a quarter of the multiplications of a 3 x 3 window, for two passes over
// memory and four times the weights, in float32. Returns what it costs, given that of the dense one, where it can be used.
std::optional<double> BlockedCalls::WinogradCost(const ir::Call& call, const WindowChoice& choice) const {
  if (!choice.takes_blocks() || call->args.size() != 2) return std::nullopt;
  if (TypedDimsOf(call)->size() != kImageRank) return std::nullopt;
  // A call that names its result's dtype asks for sums of the products themselves: of integers they are exact.
  if (!call->attrs.Find("out_dtype")->is_none()) return std::nullopt;
  if (!IsPermitted(RewriteId::kWinograd, options_.rewrites)) return std::nullopt;
  const std::optional<DataType> dtype = As<ir::TensorTypeNode>(call->type)->dtype;
  if (!dtype || !dtype->is_floating() || dtype->bits > 32) return std::nullopt;
  const Dims& weight = *TypedDimsOf(call->args[1]);
  const auto all_one = [&](const char* attr) {
    return std::ranges::all_of(call->attrs.GetInts(attr), [](int64_t x) { return x == 1; });
  };
  if (!ir::IsConstInt(weight[2], 3) || !ir::IsConstInt(weight[3], 3) || call->attrs.GetInt("groups") != 1 ||
      !all_one("strides") || !all_one("dilation")) {
    return std::nullopt;
  }
  const Layout layout = *Layout::Parse(kBlockedLayout, kPlainLayout);
  const Dims in = LikelyDims(Filled(*TypedDimsOf(call->args[0]), layout)),
             out = LikelyDims(Filled(*TypedDimsOf(call), layout));
  const int64_t height = *ir::AsConstInt(out[2]), width = *ir::AsConstInt(out[3]);
  const int64_t tiles = TilesOf(height) * TilesOf(width);
  const double covered = static_cast<double>(tiles * op::topi::kWinogradTile * op::topi::kWinogradTile) /
                         static_cast<double>(height * width);
  return choice.cost * covered / 4 + op::WinogradTransformCost((Elements(in) + Elements(out)) * covered);
}

// ---- Calls with the same attributes
bool BlockedCalls::TakesBlocks(const ir::Call& call) const {
  const op::OpRow& row = *op::RowOf(call);
  const std::vector<Expr> inputs = op::InputTensors(call);
  const size_t rank = TypedDimsOf(call)->size();
  if (inputs.empty() || (rank != kImageRank && rank != kVolumeRank)) return false;
  for (const Expr& input : inputs) {
    const Dims* dims = TypedDimsOf(input);
    if (dims == nullptr || dims->size() != rank || !Channels(*dims)) return false;
    // otherwise a block would hold channels of two inputs
    if (inputs.size() > 1 && *Channels(*dims) % kBlock != 0) return false;
  }
  const auto all_blocked = [&](const op::Implementation& implementation) {
    return !implementation.layouts.empty() && std::ranges::all_of(implementation.layouts, [&](const std::string& name) {
      return name == BlockedLayoutName(rank);
    });
  };
  const auto implementation = std::ranges::find_if(row.implementations, all_blocked);
  if (implementation == row.implementations.end()) return false;
  const Layout layout = BlockedLayout(rank);
  const auto trial = [&](const Expr& x) -> Result<Expr> {
    const auto type = ir::Downcast<ir::TensorTypeNode>(x->type);
    const Dims dims = layout.Physical(Filled(*type->dims, layout));
    return Expr(ir::Make<ir::VarNode>("x", op::TensorOf(dims, type->dtype, type)));
  };
  Result<std::vector<Expr>> args = MapTensors(call->args, trial);
  if (!args.ok()) return false;
  const Result<ir::Call> laid_out =
      op::MakeCall(row.name, *std::move(args), AxesInBlocks(call->attrs, TypedDimsOf(call)->size()));
  if (!laid_out.ok() || !implementation->predicate(*laid_out, target_)) return false;
  return EqualDims(*TypedDimsOf(*laid_out), layout.Physical(Filled(*TypedDimsOf(call), layout)));
}

}  // namespace ingot::transform
