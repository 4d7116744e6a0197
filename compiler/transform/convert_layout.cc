// convert_layout
//   Before: operators are not legalised; images are NCHW.
//   After:  where an operator has a cheaper implementation over channels in blocks (NCHW16c), its call names these
//           layouts; element-wise operators, and other operators with a blocked implementation, follow their inputs.
//           Tensors are converted where a region of such calls begins and ends, and nowhere else. Channels are padded
//           with zeros to whole blocks; weights are laid out by operators that lift_params evaluates.
//   After the simplifications, which would find fewer equal calls behind it; before lift_params, for the weights.
//
// Bindings are processed in order. Each variable has the forms (blocked_forms.h) that were asked for: plain, blocked
// and flat. A 1 x 1 convolution computes the flat form: its tiles then need not end with each row. The plain form of a
// binding that is computed in blocks is made, under its own variable, only when it is asked for; so no dead conversions
// are ever made.
//
// A permutation to or from channels last (NHWC) is merged with a conversion, since both only move elements: the
// channels of a block are adjacent in either form.
//
// Channels beyond the logical ones (the filling) hold what the operators compute from zeros. It never reaches a result,
// since weights are zero there and plain forms leave it out, provided that it is finite (0 * inf is not zero). The
// value is followed through element-wise operators by their reference evaluations, and an operator that would make it
// infinite stays plain.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "compiler/ir/visitor.h"
#include "compiler/op/blocked.h"
#include "compiler/op/infer.h"
#include "compiler/op/layout.h"
#include "compiler/op/names.h"
#include "compiler/op/topi/winograd.h"
#include "compiler/transform/blocked_forms.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/weight_bindings.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;
using op::Dims;
using op::Layout;

namespace {

// The costs of a conversion, in the operations that implementations count: per element, and per call.
constexpr double kConversionCost = 8, kConversionCall = 16 << 10;

double Elements(const Dims& dims) {
  double count = 1;
  for (const ir::PrimExpr& dim : dims) {
    if (const auto value = ir::AsConstInt(dim)) count *= static_cast<double>(*value);
  }
  return count;
}

// The extent that a dim is likely to have: a symbol that of a usual image inside of a network, a formula what it is of
// usual images' sizes.
int64_t LikelyExtent(const ir::PrimExpr& dim) {
  constexpr int64_t kInside = 56, kOfImage = 224;
  if (ir::AsRef<ir::PrimVarNode>(dim) != nullptr) return kInside;
  ir::PrimVarMap sizes;
  for (const ir::PrimVar& symbol : ir::FreePrimVars(dim)) sizes.emplace(symbol, ir::Int64(kOfImage));
  return ir::AsConstInt(op::SimplifyDim(ir::Substitute(dim, sizes))).value_or(kInside);
}

// An image in which a height and a width that are not known are likely ones.
Dims LikelyDims(Dims dims) {
  for (size_t d = 2; d < dims.size(); ++d) dims[d] = ir::Int64(std::max<int64_t>(LikelyExtent(dims[d]), 1));
  return dims;
}

bool IsScalar(const Dims& dims) {
  return std::ranges::all_of(dims, [](const ir::PrimExpr& dim) { return ir::IsConstInt(dim, 1); });
}

class LayoutConverter {
 public:
  LayoutConverter(const ir::Function& function, bool keep, const Target& target, PassContext& context)
      : weights_(function, keep), target_(target), context_(context) {}

  Result<ir::Function> Convert(const ir::Function& function) {
    return MapDataflowBlocks(function, [&](std::vector<ir::Binding>& bindings) -> Result<bool> {
      forms_ = BlockedForms();
      for (const ir::Binding& binding : bindings) INGOT_RETURN_IF_ERROR(ConvertBinding(binding));
      for (const ir::Binding& binding : bindings) {
        if (!binding.var->is_dataflow) INGOT_RETURN_IF_ERROR(forms_.MakePlain(binding.var));
      }
      bindings = std::move(forms_.bindings);
      return changed_;
    });
  }

 private:
  // ---- Bindings
  Status ConvertBinding(const ir::Binding& binding) {
    const ir::Call call = ir::AsRef<ir::CallNode>(binding.value);
    const op::OpRow* row = call != nullptr ? op::RowOf(call) : nullptr;
    bool done = false;
    const bool is_weight = weights_.Contains(binding.var);
    if (row != nullptr && !is_weight && !binding.is_match_cast() && TypedDimsOf(call) != nullptr) {
      if (op::IsCallOf(call, op::names::kPermuteDims)) {
        INGOT_ASSIGN_OR_RETURN(done, ConvertPermutation(binding, call));
      } else if (!op::LayoutNames(*row).empty()) {
        INGOT_ASSIGN_OR_RETURN(done, ConvertWindow(binding, call, *row));
      } else if (row->fusion <= op::FusionClass::kBroadcast && !row->is_view) {
        INGOT_ASSIGN_OR_RETURN(done, ConvertElementwise(binding, call, *row));
      } else {
        INGOT_ASSIGN_OR_RETURN(done, ConvertFollower(binding, call, *row));
      }
    }
    changed_ |= done;
    if (done) return Status();
    Status status;
    ForEachUse(binding.value, [&](const ir::Var& used) {
      if (status.ok()) status = forms_.MakePlain(used);
    });
    forms_.bindings.push_back(binding);
    return status;
  }

  // ---- Operators whose calls name layouts: the cheapest implementation, conversions included.
  struct Candidate {
    const op::Implementation* implementation = nullptr;
    std::vector<Layout> layouts;
    ir::Attrs attrs;
    double cost = 0;
    int64_t narrow_group = 0;  // width of groups that share blocks; 0: no groups share
  };

  Result<bool> ConvertWindow(const ir::Binding& binding, const ir::Call& call, const op::OpRow& row) {
    const std::vector<op::LayoutName> names = op::LayoutNames(row);
    for (const op::LayoutName& name : names) {
      if (call->attrs.GetString(name.attr) != name.canonical) return false;  // a layout was chosen by hand
    }
    for (const Expr& arg : call->args) {
      if (TypedDimsOf(arg) == nullptr) return false;
    }
    Candidate best;
    for (const op::Implementation& implementation : row.implementations) {
      const std::optional<Candidate> candidate = Consider(call, implementation, names);
      if (candidate && (best.implementation == nullptr || candidate->cost < best.cost)) best = *candidate;
    }
    if (best.implementation == nullptr || !best.layouts.back().IsBlocked()) return false;
    if (!context_.Apply(RewriteId::kBlockedLayout, *call, binding.span)) return false;
    if (best.narrow_group > 0) context_.rewrites.Count(RewriteId::kDenseGroups, *call, binding.span);
    if (PaysWinograd(call, best) && context_.Apply(RewriteId::kWinograd, *call, binding.span)) {
      INGOT_RETURN_IF_ERROR(ConvertWinograd(binding, call));
      return true;
    }
    // Converts the arguments to their layouts.
    const bool is_flat = IsOneTap(call) && best.layouts[0].IsBlocked();
    std::vector<Expr> args;
    for (size_t i = 0; i < call->args.size(); ++i) {
      if (i > 0) {
        Expr weight = call->args[i];
        if (best.narrow_group > 0) {
          INGOT_ASSIGN_OR_RETURN(weight, SpreadGroups(weight, best.narrow_group));
        }
        INGOT_ASSIGN_OR_RETURN(weight, forms_.LayOut(weight, best.layouts[i]));
        args.push_back(weight);
      } else if (best.layouts[0].IsBlocked()) {
        INGOT_ASSIGN_OR_RETURN(const Expr data, forms_.Get(call->args[0], is_flat ? Form::kFlat : Form::kBlocked));
        args.push_back(data);
      } else {
        INGOT_RETURN_IF_ERROR(forms_.MakePlain(call->args[0]));
        args.push_back(call->args[0]);
      }
    }
    INGOT_ASSIGN_OR_RETURN(const Expr result, forms_.Emit(row.name, std::move(args), best.attrs, binding));
    // The filling of a pool's result is between that of its input and the padding's value.
    const std::optional<double> filling = call->args.size() > 1 ? 0.0 : forms_.FillingOf(call->args[0]);
    forms_.Define(binding.var, result, is_flat ? Form::kFlat : Form::kBlocked,
                  filling == 0.0 ? filling : std::optional<double>());
    return true;
  }

  // Returns the call with one implementation; nothing if the implementation does not support it.
  std::optional<Candidate> Consider(const ir::Call& call, const op::Implementation& implementation,
                                    const std::vector<op::LayoutName>& names) const {
    if (implementation.layouts.size() != names.size()) return std::nullopt;
    Candidate candidate;
    candidate.implementation = &implementation;
    candidate.attrs = call->attrs;
    std::vector<Expr> args = call->args;
    double conversions = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      std::optional<Layout> parsed = Layout::Parse(implementation.layouts[i], names[i].canonical);
      if (!parsed) return std::nullopt;
      candidate.layouts.push_back(*std::move(parsed));
    }
    if (!FillGroups(call, candidate)) return std::nullopt;
    for (size_t i = 0; i < names.size(); ++i) {
      const Layout& layout = candidate.layouts[i];
      candidate.attrs = candidate.attrs.With(names[i].attr, implementation.layouts[i]);
      if (i == args.size()) continue;
      Dims dims = *TypedDimsOf(args[i]);
      if (i == 1 && candidate.narrow_group > 0) dims[1] = ir::Int64(kBlock);
      for (size_t d = 0; d < dims.size(); ++d) {
        if (layout.Block(d) != 1 && !ir::AsConstInt(dims[d])) return std::nullopt;
      }
      if (i > 0 && layout.IsBlocked() && !weights_.IsWeight(args[i])) return std::nullopt;
      if (i == 0) dims = LikelyDims(std::move(dims));
      if (i == 0 && layout.IsBlocked() != forms_.FormOf(args[0]).has_value()) {
        conversions += kConversionCall + kConversionCost * Elements(dims);
      }
      const auto type = ir::Downcast<ir::TensorTypeNode>(args[i]->type);
      args[i] = ir::Make<ir::VarNode>("x", op::TensorOf(layout.Physical(Filled(dims, layout)), type->dtype, type));
    }
    const Result<ir::Call> laid_out = op::MakeCall(op::RowOf(call)->name, std::move(args), candidate.attrs);
    if (!laid_out.ok() || !implementation.predicate(*laid_out, target_)) return std::nullopt;
    candidate.cost = implementation.cost(*laid_out, target_) + conversions;
    return candidate;
  }

  // Depthwise groups (one per channel) stay so when channels are padded. Groups that are narrower than a block and have
  // as many outputs as inputs share blocks: the channels of a block become one dense group, whose weights between
  // different groups are zero. Other groups must be whole blocks.
  bool FillGroups(const ir::Call& call, Candidate& candidate) const {
    if (candidate.attrs.Find("groups") == nullptr || !candidate.layouts.back().IsBlocked()) return true;
    const int64_t groups = candidate.attrs.GetInt("groups");
    if (groups == 1) return true;
    const Dims& data = *TypedDimsOf(call->args[0]);
    const Dims& weight = *TypedDimsOf(call->args[1]);
    const std::optional<int64_t> channels = Channels(data),
                                 outputs = Channels({weight[1], weight[0], weight[2], weight[3]});
    if (!channels || !outputs) return false;
    if (groups == *channels && groups == *outputs) {
      candidate.attrs = candidate.attrs.With("groups", (groups + kBlock - 1) / kBlock * kBlock);
      return true;
    }
    const int64_t width = *channels / groups;
    if (width % kBlock == 0 && *outputs / groups % kBlock == 0) return true;
    if (*channels != *outputs || kBlock % width != 0 || candidate.layouts[1].Block(1) != kBlock) return false;
    if (!IsPermitted(RewriteId::kDenseGroups, context_.options.rewrites)) return false;
    candidate.narrow_group = width;
    candidate.attrs = candidate.attrs.With("groups", (*channels + kBlock - 1) / kBlock);
    return true;
  }

  // Weights [O, width, h, w] of narrow groups -> [O, 16, h, w], zero between the groups of a block.
  Result<Expr> SpreadGroups(const Expr& weight, int64_t width) {
    const Dims dims = *TypedDimsOf(weight);
    const int64_t outputs = *ir::AsConstInt(dims[0]), blocks = (outputs + kBlock - 1) / kBlock;
    Expr value = weight;
    if (outputs % kBlock != 0) {
      const std::vector<int64_t> pad = {0, blocks * kBlock - outputs, 0, 0, 0, 0, 0, 0};
      INGOT_ASSIGN_OR_RETURN(value, forms_.Emit("nn.pad", {value}, {{"pad_width", ir::AttrValue::Ints(pad)}}));
    }
    const std::vector<Expr> copies(static_cast<size_t>(kBlock / width), value);
    const std::vector<ir::Type> types(copies.size(), value->type);
    const Expr tuple = ir::Make<ir::TupleNode>(copies, ir::Make<ir::TupleTypeNode>(types));
    INGOT_ASSIGN_OR_RETURN(value, forms_.Emit("concat", {tuple}, {{"axis", int64_t{1}}}));
    std::vector<float> mask;
    for (int64_t o = 0; o < kBlock; ++o) {
      for (int64_t i = 0; i < kBlock; ++i) mask.push_back(o / width == i / width ? 1.0f : 0.0f);
    }
    const Expr same_group = ConstantOf(mask, {1, kBlock, kBlock, 1, 1});
    const ir::PrimExpr block = ir::Int64(kBlock);
    INGOT_ASSIGN_OR_RETURN(value, forms_.Reshape(value, {ir::Int64(blocks), block, block, dims[2], dims[3]}));
    INGOT_ASSIGN_OR_RETURN(value, forms_.Emit("multiply", {value, same_group}, {}));
    return forms_.Reshape(value, {ir::Int64(blocks * kBlock), block, dims[2], dims[3]});
  }

  // A 1 x 1 convolution without strides and padding.
  static bool IsOneTap(const ir::Call& call) {
    if (call->args.size() < 2) return false;
    const Dims& weight = *TypedDimsOf(call->args[1]);
    const auto all = [&](const char* attr, int64_t value) {
      return std::ranges::all_of(call->attrs.GetInts(attr), [&](int64_t x) { return x == value; });
    };
    return ir::IsConstInt(weight[2], 1) && ir::IsConstInt(weight[3], 1) && all("strides", 1) && all("padding", 0);
  }

  // ---- Winograd's convolution (op/topi/winograd.h): a quarter of the multiplications of a 3 x 3 window, for two
  // passes over memory and four times the weights.
  bool PaysWinograd(const ir::Call& call, const Candidate& best) const {
    constexpr int64_t kFewestTiles = 9, kFewestChannels = 32;
    constexpr double kLeastUse = 0.55;  // of the positions that tiles cover
    if (!best.layouts[0].IsBlocked() || call->args.size() != 2) return false;
    const Dims& in = *TypedDimsOf(call->args[0]);
    const Dims& out = *TypedDimsOf(call);
    const Dims& weight = *TypedDimsOf(call->args[1]);
    const auto all_one = [&](const char* attr) {
      return std::ranges::all_of(call->attrs.GetInts(attr), [](int64_t x) { return x == 1; });
    };
    if (!ir::IsConstInt(weight[2], 3) || !ir::IsConstInt(weight[3], 3) || call->attrs.GetInt("groups") != 1 ||
        !all_one("strides") || !all_one("dilation")) {
      return false;
    }
    const int64_t height = LikelyExtent(out[2]), width = LikelyExtent(out[3]);
    const int64_t tiles = TilesOf(height) * TilesOf(width),
                  covered = tiles * op::topi::kWinogradTile * op::topi::kWinogradTile;
    return tiles >= kFewestTiles && static_cast<double>(height * width) >= kLeastUse * static_cast<double>(covered) &&
           Channels(in).value_or(0) >= kFewestChannels && Channels(out).value_or(0) >= kFewestChannels;
  }
  static int64_t TilesOf(int64_t extent) { return (extent + op::topi::kWinogradTile - 1) / op::topi::kWinogradTile; }

  Status ConvertWinograd(const ir::Binding& binding, const ir::Call& call) {
    constexpr int64_t kPlaces = op::topi::kWinogradPlaces, kAll = kPlaces * kPlaces;
    INGOT_ASSIGN_OR_RETURN(const Expr weight, WinogradWeight(call->args[1]));
    INGOT_ASSIGN_OR_RETURN(const Expr data, forms_.Get(call->args[0], Form::kBlocked));
    INGOT_ASSIGN_OR_RETURN(const Expr tiles, forms_.Emit("nn.winograd_input", {data},
                                                         {{"padding", *call->attrs.Find("padding")}}, binding));
    const Dims t = *TypedDimsOf(tiles);
    const ir::PrimExpr count = op::SimplifyDim(t[4] * t[5]);
    const Dims flat = {t[0], op::SimplifyDim(t[3] * kAll), ir::Int64(1), count, t[6]};
    INGOT_ASSIGN_OR_RETURN(const Expr places, forms_.Reshape(tiles, flat));
    INGOT_ASSIGN_OR_RETURN(const Expr products, forms_.Emit("nn.conv2d", {places, weight},
                                                            {{"groups", kAll},
                                                             {"data_layout", kBlockedLayout},
                                                             {"kernel_layout", "OIHW16i16o"},
                                                             {"out_layout", kBlockedLayout}},
                                                            binding));
    const Dims& out = *TypedDimsOf(call);
    const ir::PrimExpr blocks = ir::Int64((*Channels(out) + kBlock - 1) / kBlock);
    INGOT_ASSIGN_OR_RETURN(
        const Expr result_tiles,
        forms_.Reshape(products, {t[0], ir::Int64(kPlaces), ir::Int64(kPlaces), blocks, t[4], t[5], t[6]}));
    const Expr size = ir::Make<ir::ShapeExprNode>(std::vector<ir::PrimExpr>{out[2], out[3]});
    INGOT_ASSIGN_OR_RETURN(const Expr result, forms_.Emit("nn.winograd_output", {result_tiles, size}, {}, binding));
    forms_.Define(binding.var, result, Form::kBlocked, 0.0);
    return Status();
  }

  // Weights [O, I, 3, 3] -> G g G^T of each kernel g, as [36 * O / 16, I / 16, 1, 1, 16, 16].
  Result<Expr> WinogradWeight(const Expr& weight) {
    constexpr int64_t kPlaces = op::topi::kWinogradPlaces, kAll = kPlaces * kPlaces, kTaps = 9;
    std::vector<float> both;  // [9, 36]: both factors of the transform in one matrix
    for (int64_t tap = 0; tap < kTaps; ++tap) {
      for (int64_t place = 0; place < kAll; ++place) {
        both.push_back(static_cast<float>(op::topi::kWinogradKernel[place / kPlaces][tap / 3] *
                                          op::topi::kWinogradKernel[place % kPlaces][tap % 3]));
      }
    }
    const Layout layout = *Layout::Parse("OIHW16i16o", "OIHW");
    INGOT_ASSIGN_OR_RETURN(const Expr laid_out, forms_.LayOut(weight, layout));
    const Dims dims = *TypedDimsOf(laid_out);  // [O / 16, I / 16, 3, 3, 16, 16]
    INGOT_ASSIGN_OR_RETURN(
        Expr value, forms_.Emit("permute_dims", {laid_out}, {{"axes", ir::AttrValue::Ints({0, 1, 4, 5, 2, 3})}}));
    const ir::PrimExpr kernels = op::SimplifyDim(dims[0] * dims[1] * (kBlock * kBlock));
    INGOT_ASSIGN_OR_RETURN(value, forms_.Reshape(value, {kernels, ir::Int64(kTaps)}));
    INGOT_ASSIGN_OR_RETURN(value, forms_.Emit("matmul", {value, ConstantOf(both, {kTaps, kAll})}, {}));
    INGOT_ASSIGN_OR_RETURN(value, forms_.Emit("permute_dims", {value}, {{"axes", ir::AttrValue::Ints({1, 0})}}));
    const ir::PrimExpr one = ir::Int64(1), block = ir::Int64(kBlock);
    return forms_.Reshape(value, {op::SimplifyDim(dims[0] * kAll), dims[1], one, one, block, block});
  }

  static Expr ConstantOf(const std::vector<float>& values, std::vector<int64_t> dims) {
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return ir::Make<ir::ConstantNode>(
        ir::ConstantData::FromBytes(DataType::Float(32), std::move(dims), std::move(bytes)));
  }

  // ---- Element-wise operators follow their inputs.
  Result<bool> ConvertElementwise(const ir::Binding& binding, const ir::Call& call, const op::OpRow& row) {
    const Dims& out = *TypedDimsOf(call);
    if (!Channels(out)) return false;
    for (const op::AttrSpec& spec : row.attrs) {
      if (std::string_view(spec.name).starts_with("ax")) return false;  // the attribute names axes
    }
    std::optional<Form> form;
    for (const Expr& arg : call->args) {
      if (As<ir::PrimValueNode>(arg) != nullptr) continue;
      const Dims* dims = TypedDimsOf(arg);
      if (dims == nullptr) return false;
      const bool is_whole = EqualDims(*dims, out);
      if (!is_whole && !IsScalar(*dims) && !IsPerChannel(*dims, out)) return false;
      if (is_whole && !form) form = forms_.FormOf(arg);
    }
    if (!form) return false;
    const std::optional<double> filling = FillingOf(*call, row);
    if (*Channels(out) % kBlock != 0 && (!filling || !std::isfinite(*filling))) return false;
    std::vector<Expr> args = call->args;
    for (Expr& arg : args) {
      if (As<ir::PrimValueNode>(arg) != nullptr) continue;
      const Dims& dims = *TypedDimsOf(arg);
      if (EqualDims(dims, out)) {
        INGOT_ASSIGN_OR_RETURN(arg, forms_.Get(arg, *form));
      } else if (IsScalar(dims)) {
        INGOT_RETURN_IF_ERROR(forms_.MakePlain(arg));
      } else {
        INGOT_ASSIGN_OR_RETURN(arg, forms_.GetPerChannel(arg));
      }
    }
    INGOT_ASSIGN_OR_RETURN(const Expr result, forms_.Emit(row.name, std::move(args), call->attrs, binding));
    forms_.Define(binding.var, result, *form, filling);
    return true;
  }

  // [1 or N, C, 1, 1], or [C, 1, 1].
  static bool IsPerChannel(const Dims& dims, const Dims& out) {
    if (dims.size() != 3 && dims.size() != 4) return false;
    const size_t c = dims.size() - 3;
    return op::DimsEqual(dims[c], out[1]) && ir::IsConstInt(dims[c + 1], 1) && ir::IsConstInt(dims[c + 2], 1);
  }
  // Evaluates an element-wise call on the fillings of its inputs.
  std::optional<double> FillingOf(const ir::CallNode& call, const op::OpRow& row) const {
    if (row.reference == nullptr) return std::nullopt;
    std::vector<Expr> args = call.args;
    std::vector<op::ReferenceTensor> inputs;
    for (Expr& arg : args) {
      if (As<ir::PrimValueNode>(arg) != nullptr) continue;
      const std::optional<double> filling = IsScalar(*TypedDimsOf(arg)) ? ScalarOf(arg) : forms_.FillingOf(arg);
      if (!filling) return std::nullopt;
      const auto type = ir::Downcast<ir::TensorTypeNode>(arg->type);
      arg = ir::Make<ir::VarNode>("x", op::TensorOf({ir::Int64(1)}, type->dtype, type));
      inputs.push_back(op::NewReference(*type->dtype, {1}));
      op::SetNumber(inputs.back(), 0, *filling);
    }
    const Result<ir::Call> one = op::MakeCall(row.name, std::move(args), call.attrs);
    if (!one.ok()) return std::nullopt;
    const Result<std::vector<op::ReferenceTensor>> value = row.reference(*one, inputs);
    if (!value.ok() || value->size() != 1) return std::nullopt;
    return op::GetNumber((*value)[0], 0);
  }
  static std::optional<double> ScalarOf(const Expr& x) {
    const auto* constant = As<ir::ConstantNode>(x);
    if (constant == nullptr || constant->data->dtype() != DataType::Float(32)) return std::nullopt;
    float value = 0;
    std::memcpy(&value, constant->data->bytes().data(), sizeof value);
    return value;
  }

  // ---- Permutations to and from channels last.
  Result<bool> ConvertPermutation(const ir::Binding& binding, const ir::Call& call) {
    const Expr& x = call->args[0];
    const Dims* dims = TypedDimsOf(x);
    const auto is = [&](const std::vector<int64_t>& axes) {
      return call->attrs.Find("axes")->is_none() ? false : call->attrs.GetInts("axes") == axes;
    };
    if (dims == nullptr || dims->size() != 4) return false;
    if (is({0, 3, 1, 2})) {
      const std::optional<int64_t> channels = Channels(*TypedDimsOf(call));
      if (!channels || *channels % kBlock != 0) return false;
      INGOT_RETURN_IF_ERROR(forms_.MakePlain(x));
      forms_.DefineChannelsLast(binding.var, x);
      return true;
    }
    if (!is({0, 2, 3, 1}) || forms_.HasPlain(x) || !forms_.FormOf(x) || *Channels(*dims) % kBlock != 0) return false;
    INGOT_ASSIGN_OR_RETURN(const Expr blocked, forms_.Get(x, Form::kBlocked));
    INGOT_ASSIGN_OR_RETURN(const Expr permuted,
                           forms_.Emit("permute_dims", {blocked}, {{"axes", ir::AttrValue::Ints({0, 2, 3, 1, 4})}}));
    INGOT_ASSIGN_OR_RETURN(const ir::Call reshape,
                           op::MakeCall("reshape", {permuted, ir::Make<ir::ShapeExprNode>(*TypedDimsOf(call))}));
    forms_.bindings.push_back({binding.var, reshape, nullptr, binding.span});
    return true;
  }

  // ---- Other operators that take blocks with the same attributes: concatenation of channels, reductions over H and W.
  Result<bool> ConvertFollower(const ir::Binding& binding, const ir::Call& call, const op::OpRow& row) {
    const std::vector<Expr> inputs = op::InputTensors(call);
    if (inputs.empty() || TypedDimsOf(call)->size() != 4) return false;
    bool any_blocked = false;
    for (const Expr& input : inputs) {
      const Dims* dims = TypedDimsOf(input);
      if (dims == nullptr || !Channels(*dims)) return false;
      // otherwise a block would hold channels of two inputs
      if (inputs.size() > 1 && *Channels(*dims) % kBlock != 0) return false;
      any_blocked |= forms_.FormOf(input).has_value();
    }
    if (!any_blocked) return false;
    const auto takes_blocks = [&](const op::Implementation& implementation) {
      return !implementation.layouts.empty() &&
             std::ranges::all_of(implementation.layouts,
                                 [](const std::string& name) { return name == kBlockedLayout; });
    };
    const auto implementation = std::ranges::find_if(row.implementations, takes_blocks);
    if (implementation == row.implementations.end()) return false;
    const Layout layout = *Layout::Parse(kBlockedLayout, kPlainLayout);
    const auto trial = [&](const Expr& x) -> Result<Expr> {
      const auto type = ir::Downcast<ir::TensorTypeNode>(x->type);
      const Dims dims = layout.Physical(Filled(*type->dims, layout));
      return Expr(ir::Make<ir::VarNode>("x", op::TensorOf(dims, type->dtype, type)));
    };
    INGOT_ASSIGN_OR_RETURN(std::vector<Expr> args, MapTensors(call->args, trial));
    const ir::Attrs attrs = AxesFromFront(call->attrs);
    const Result<ir::Call> laid_out = op::MakeCall(row.name, std::move(args), attrs);
    if (!laid_out.ok() || !implementation->predicate(*laid_out, target_)) return false;
    const Dims expected = layout.Physical(Filled(*TypedDimsOf(call), layout));
    if (!EqualDims(*TypedDimsOf(*laid_out), expected)) return false;
    INGOT_ASSIGN_OR_RETURN(args, MapTensors(call->args, [&](const Expr& x) { return forms_.Get(x, Form::kBlocked); }));
    INGOT_ASSIGN_OR_RETURN(const Expr result, forms_.Emit(row.name, std::move(args), attrs, binding));
    const std::optional<double> filling = forms_.FillingOf(inputs[0]);
    forms_.Define(binding.var, result, Form::kBlocked, filling == 0.0 ? filling : std::optional<double>());
    return true;
  }

  // Axes 0 to 3 are the same in blocks; axes counted from the end are not.
  static ir::Attrs AxesFromFront(ir::Attrs attrs) {
    const ir::AttrValue* axis = attrs.Find("axis");
    const auto from_front = [](int64_t a) { return a < 0 ? a + 4 : a; };
    if (axis == nullptr || axis->is_none()) return attrs;
    if (const int64_t* one = axis->get<int64_t>()) return attrs.With("axis", from_front(*one));
    std::vector<int64_t> axes = attrs.GetInts("axis");
    for (int64_t& a : axes) a = from_front(a);
    return attrs.With("axis", ir::AttrValue::Ints(axes));
  }

  static Result<std::vector<Expr>> MapTensors(std::vector<Expr> args,
                                              const std::function<Result<Expr>(const Expr&)>& map) {
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

  WeightBindings weights_;
  const Target& target_;
  PassContext& context_;
  BlockedForms forms_;  // forms of the current block's variables
  bool changed_ = false;
};

}  // namespace

Result<ir::IRModule> ConvertLayout(ir::IRModule module, PassContext& context) {
  // All variants share the layouts, so the least demanding variant decides.
  const Target default_target;
  const std::vector<Target>& variants = context.options.target.variants;
  const Target& target = variants.empty() ? default_target : variants.front();
  return MapFunctions(std::move(module), [&](const ir::GlobalVar&, const ir::Function& function) {
    return LayoutConverter(function, context.options.keep_prepare && !function->is_private, target, context)
        .Convert(function);
  });
}

}  // namespace ingot::transform
