// convert_layout
//   Before: operators are not legalised; images are NCHW.
//   After:  where regions of a dataflow block are cheaper over channels in blocks (NCHW16c), conversions at their
//           borders included, the calls of windows name these layouts, and element-wise operators and others with a
//           blocked implementation take them (layout_plan.h). Channels are padded with zeros to whole blocks; weights
//           are laid out by operators that lift_params evaluates.
//   After the simplifications, which would find fewer equal calls behind it; before lift_params, for the weights.
//
// Bindings are processed in order. Each variable has the forms (blocked_forms.h) that were asked for: plain, blocked
// and flat. A 1 x 1 convolution computes the flat form, or the plain one viewed as one row: its tiles then need not end
// with each row. The plain form of a
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

#include "compiler/ir/visitor.h"
#include "compiler/op/fold.h"
#include "compiler/op/infer.h"
#include "compiler/op/layout.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/winograd.h"
#include "compiler/transform/blocked_calls.h"
#include "compiler/transform/blocked_forms.h"
#include "compiler/transform/byte_convolutions.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/layout_plan.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/weight_bindings.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;
using op::Dims;
using op::Layout;

namespace {

class LayoutConverter {
 public:
  LayoutConverter(const ir::Function& function, bool keep, PassContext& context)
      : weights_(function, keep), calls_(function, weights_, context), context_(context) {}

  Result<ir::Function> Convert(const ir::Function& function) {
    return MapDataflowBlocks(function, [&](std::vector<ir::Binding>& bindings) -> Result<bool> {
      forms_ = BlockedForms();
      definitions_.clear();  // a block's dataflow variables are not seen behind it
      for (const ir::Binding& binding : bindings) definitions_.emplace(binding.var, binding.value);
      const std::vector<PlannedCall> plan = PlanLayouts(bindings, calls_, weights_);
      for (size_t i = 0; i < bindings.size(); ++i) INGOT_RETURN_IF_ERROR(ConvertBinding(bindings[i], plan[i]));
      for (const ir::Binding& binding : bindings) {
        if (!binding.var->is_dataflow) INGOT_RETURN_IF_ERROR(forms_.MakePlain(binding.var));
      }
      bindings = std::move(forms_.bindings);
      return changed_;
    });
  }

  bool leaves_dead_code() const { return leaves_dead_code_; }

 private:
  // ---- Bindings
  Status ConvertBinding(const ir::Binding& binding, const PlannedCall& plan) {
    INGOT_ASSIGN_OR_RETURN(const bool done, ConvertCall(binding, plan));
    changed_ |= done;
    if (done) return Status();
    Status status;
    ForEachUse(binding.value, [&](const ir::Var& used) {
      if (status.ok()) status = forms_.MakePlain(used);
    });
    forms_.bindings.push_back(binding);
    return status;
  }

  // Returns whether bindings for the call were added.
  Result<bool> ConvertCall(const ir::Binding& binding, const PlannedCall& plan) {
    const ir::Call call = ir::AsRef<ir::CallNode>(binding.value);
    if (plan.kind == BlockedCall::kFromChannelsLast) {
      INGOT_RETURN_IF_ERROR(forms_.MakePlain(call->args[0]));
      forms_.DefineChannelsLast(binding.var, call->args[0]);
      return true;
    }
    if (plan.kind == BlockedCall::kToChannelsLast) return ConvertToChannelsLast(binding, call);
    if (!plan.makes_blocks) return ConvertToRow(binding, call, plan);
    if (plan.kind == BlockedCall::kWindow) return ConvertWindow(binding, call, plan.window);
    if (plan.kind == BlockedCall::kElementwise) return ConvertElementwise(binding, call);
    INGOT_RETURN_IF_ERROR(ConvertSameAttributes(binding, call));
    return true;
  }

  // ---- Plain images as one row
  // A 1 x 1 convolution, and element-wise operators behind it, over [N, C, 1, H * W]: vectors need not end with each row
  // of the image.
  Result<bool> ConvertToRow(const ir::Binding& binding, const ir::Call& call, const PlannedCall& plan) {
    std::vector<Expr> args = call != nullptr ? call->args : std::vector<Expr>();
    if (plan.kind == BlockedCall::kWindow && IsOneTap(call) && HasRows(call)) {
      INGOT_RETURN_IF_ERROR(forms_.MakePlain(args[1]));
      INGOT_ASSIGN_OR_RETURN(args[0], forms_.GetRow(args[0]));
    } else if (plan.kind == BlockedCall::kElementwise &&
               std::ranges::any_of(args, [&](const Expr& arg) { return forms_.IsRow(arg); })) {
      for (Expr& arg : args) {
        if (As<ir::PrimValueNode>(arg) != nullptr) continue;
        if (EqualDims(*TypedDimsOf(arg), *TypedDimsOf(call))) {
          INGOT_ASSIGN_OR_RETURN(arg, forms_.GetRow(arg));
        } else {
          INGOT_RETURN_IF_ERROR(forms_.MakePlain(arg));
        }
      }
    } else {
      return false;
    }
    INGOT_ASSIGN_OR_RETURN(const Expr result,
                           forms_.Emit(op::RowOf(call)->name, std::move(args), call->attrs, binding));
    forms_.DefineRow(binding.var, result);
    return true;
  }
  // Whether the result has the data's rows, and more than one.
  static bool HasRows(const ir::Call& call) {
    if (TypedDimsOf(call)->size() != kImageRank) return false;
    const Dims& in = *TypedDimsOf(call->args[0]);
    const Dims& out = *TypedDimsOf(call);
    const auto is_same = [&](size_t d) { return op::DimsEqual(in[d], out[d]) && !ir::IsConstInt(out[d], 1); };
    return is_same(2) && is_same(3);
  }

  // ---- Operators whose calls name layouts
  Result<bool> ConvertWindow(const ir::Binding& binding, const ir::Call& call, const WindowChoice& best) {
    if (!context_.Apply(RewriteId::kBlockedLayout, *call, binding.span)) return false;
    if (best.narrow_group > 0) context_.rewrites.Count(RewriteId::kDenseGroups, *call, binding.span);
    if (best.is_winograd && context_.Apply(RewriteId::kWinograd, *call, binding.span)) {
      INGOT_RETURN_IF_ERROR(ConvertWinograd(binding, call));
      return true;
    }
    const bool are_words = call->args.size() > 1 && IsInt16(call->args[1]);
    if (are_words) {
      const auto bytes = AsByteConvolution(call, definitions_, context_.options.target);
      if (bytes) return ConvertBytes(binding, call, best, *bytes);
    }
    const std::optional<int64_t> few = are_words ? FewChannels(call, call->args[0], kPairsPerWord) : std::nullopt;
    // Converts the arguments to their layouts.
    const bool is_flat = IsOneTap(call) && best.takes_blocks() && !few;
    std::vector<Expr> args;
    for (size_t i = 0; i < call->args.size(); ++i) {
      if (few) {
        INGOT_ASSIGN_OR_RETURN(const Expr laid_out, LayOutFew(call->args[i], *few, i > 0));
        args.push_back(laid_out);
      } else if (i > 0) {
        INGOT_ASSIGN_OR_RETURN(const Expr weight, LayOutWeight(call->args[i], best));
        args.push_back(weight);
      } else if (best.takes_blocks()) {
        INGOT_ASSIGN_OR_RETURN(const Expr data, forms_.Get(call->args[0], is_flat ? Form::kFlat : Form::kBlocked));
        args.push_back(data);
      } else {
        INGOT_RETURN_IF_ERROR(forms_.MakePlain(call->args[0]));
        args.push_back(call->args[0]);
      }
    }
    if (are_words) {
      INGOT_ASSIGN_OR_RETURN(args[1], WordsOfChannels(args[1], kPairsPerWord));
    }
    INGOT_ASSIGN_OR_RETURN(const Expr result,
                           are_words ? forms_.Emit("nn.conv2d_pairs", std::move(args), WindowOf(best.attrs), binding)
                                     : forms_.Emit(op::RowOf(call)->name, std::move(args), best.attrs, binding));
    // The filling of a pool's result is between that of its input and the padding's value.
    const std::optional<double> filling = call->args.size() > 1 ? 0.0 : forms_.FillingOf(call->args[0]);
    forms_.Define(binding.var, result, is_flat ? Form::kFlat : Form::kBlocked,
                  filling == 0.0 ? filling : std::optional<double>());
    return true;
  }

  static bool IsInt16(const Expr& x) { return As<ir::TensorTypeNode>(x->type)->dtype == DataType::Int(16); }
  static ir::Attrs WindowOf(const ir::Attrs& attrs) {
    ir::Attrs window;
    for (const char* name : {"strides", "padding", "dilation", "groups"}) window = window.With(name, *attrs.Find(name));
    return window;
  }

  Result<Expr> LayOutWeight(Expr weight, const WindowChoice& best) {
    if (best.narrow_group > 0) {
      INGOT_ASSIGN_OR_RETURN(weight, SpreadGroups(weight, best.narrow_group));
    }
    return forms_.LayOut(weight, best.layouts[1]);
  }

  // Weights [O / 16, I / b, h, w, b, 16] of int16 -> [O / 16, I / b, h, w, b / count, 16], `count` input channels in
  // each word: two of 16 bits, or four bytes.
  Result<Expr> WordsOfChannels(Expr weight, int64_t count) {
    Dims dims = *TypedDimsOf(weight);
    const ir::PrimExpr words = ir::Int64(*ir::AsConstInt(dims[4]) / count), block = ir::Int64(kBlock);
    if (count == kBytesPerWord) {
      INGOT_ASSIGN_OR_RETURN(weight, forms_.Emit("astype", {weight}, {{"dtype", DataType::Int(8)}}));
    }
    INGOT_ASSIGN_OR_RETURN(
        weight, forms_.Reshape(weight, {dims[0], dims[1], dims[2], dims[3], words, ir::Int64(count), block}));
    INGOT_ASSIGN_OR_RETURN(
        weight, forms_.Emit("permute_dims", {weight}, {{"axes", ir::AttrValue::Ints({0, 1, 2, 3, 4, 6, 5})}}));
    INGOT_ASSIGN_OR_RETURN(weight, forms_.Emit("pack_bytes", {weight}, {}));
    dims[4] = words;
    return forms_.Reshape(weight, dims);
  }

  // ---- Convolutions of bytes
  // With bytes b' and their zero point z', both moved by 128 where they are signed, the sum of (b - z) w over a window is
  // that of b' w less z' times the sum of the weights, if z' lies around the image.
  Result<bool> ConvertBytes(const ir::Binding& binding, const ir::Call& call, const WindowChoice& best,
                            const ByteConvolution& conv) {
    const std::optional<int64_t> few = FewChannels(call, conv.bytes, kBytesPerWord);
    const Form form = IsOneTap(call) && !few ? Form::kFlat : Form::kBlocked;
    const bool is_signed = As<ir::TensorTypeNode>(conv.bytes->type)->dtype->is_int();
    const int64_t moved = is_signed ? 128 : 0;
    INGOT_ASSIGN_OR_RETURN(Expr data, few ? LayOutFew(conv.bytes, *few, false) : forms_.Get(conv.bytes, form));
    if (is_signed) {
      INGOT_ASSIGN_OR_RETURN(data, Unsigned(data));
    }
    INGOT_ASSIGN_OR_RETURN(Expr words, few ? LayOutFew(call->args[1], *few, true) : LayOutWeight(call->args[1], best));
    INGOT_ASSIGN_OR_RETURN(words, WordsOfChannels(words, kBytesPerWord));
    const int64_t outputs = static_cast<int64_t>(conv.weight_sums.size()), blocks = (outputs + kBlock - 1) / kBlock;
    op::ReferenceTensor sums = op::NewReference(DataType::Int(32), {1, blocks, 1, 1, kBlock});
    std::ranges::copy(conv.weight_sums, sums.ints.begin());
    const std::optional<double> number = conv.zero == nullptr ? std::optional<double>(0) : AsNumber(conv.zero);
    Expr edge, correction;
    if (number) {
      const auto zero = static_cast<int64_t>(*number) + moved;
      edge = op::NumberConstant(static_cast<double>(zero), DataType::UInt(8));
      for (int64_t& sum : sums.ints) sum *= zero;
      if (zero != 0) correction = ConstantOf(sums);
    } else {
      INGOT_ASSIGN_OR_RETURN(edge, forms_.Reshape(conv.zero, {}));
      INGOT_ASSIGN_OR_RETURN(Expr wide, forms_.Emit("astype", {edge}, {{"dtype", DataType::Int(32)}}));
      if (is_signed) {
        INGOT_ASSIGN_OR_RETURN(wide, forms_.Emit("add", {wide, op::NumberConstant(128, DataType::Int(32))}, {}));
      }
      INGOT_ASSIGN_OR_RETURN(edge, forms_.Emit("astype", {wide}, {{"dtype", DataType::UInt(8)}}));
      INGOT_ASSIGN_OR_RETURN(correction, forms_.Emit("multiply", {wide, ConstantOf(sums)}, {}));
    }
    INGOT_ASSIGN_OR_RETURN(Expr result,
                           forms_.Emit("nn.conv2d_bytes", {data, words, edge}, WindowOf(best.attrs), binding));
    if (correction != nullptr) {
      INGOT_ASSIGN_OR_RETURN(result, forms_.Emit("subtract", {result, correction}, {}, binding));
    }
    forms_.Define(binding.var, result, form, 0.0);
    leaves_dead_code_ = true;  // what made int16 of the bytes
    return true;
  }

  // ---- Few channels, as of an image, are one block of as many words as they fill.
  static constexpr int64_t kPairsPerWord = 2, kBytesPerWord = 4;
  // The channels of that block; nothing where blocks of 16 have no empty words, or hold the data already.
  std::optional<int64_t> FewChannels(const ir::Call& call, const Expr& data, int64_t per_word) const {
    const auto channels = ir::AsConstInt((*TypedDimsOf(call->args[1]))[1]);
    if (!channels || *channels > kBlock - per_word || call->attrs.GetInt("groups") != 1) return std::nullopt;
    if (!forms_.HasPlain(data)) return std::nullopt;
    return (*channels + per_word - 1) / per_word * per_word;
  }
  // Data, or weights for it, with one block of channels.
  Result<Expr> LayOutFew(const Expr& x, int64_t channels, bool is_weight) {
    const std::string block = std::to_string(channels);
    if (is_weight) return forms_.LayOut(x, *Layout::Parse("OIHW" + block + "i16o", "OIHW"));
    INGOT_RETURN_IF_ERROR(forms_.MakePlain(x));
    return forms_.LayOut(x, *Layout::Parse(kPlainLayout + block + "c", kPlainLayout));
  }

  // x + 128, of signed bytes.
  Result<Expr> Unsigned(Expr x) {
    INGOT_ASSIGN_OR_RETURN(x, forms_.Emit("astype", {x}, {{"dtype", DataType::Int(16)}}));
    INGOT_ASSIGN_OR_RETURN(x, forms_.Emit("add", {x, op::NumberConstant(128, DataType::Int(16))}, {}));
    return forms_.Emit("astype", {x}, {{"dtype", DataType::UInt(8)}});
  }

  static Expr ConstantOf(const op::ReferenceTensor& tensor) {
    return ir::Make<ir::ConstantNode>(
        ir::ConstantData::FromBytes(tensor.dtype, tensor.dims, op::PackReference(tensor)));
  }

  // Weights [O, width, taps] of narrow groups -> [O, 16, taps], zero between the groups of a block.
  Result<Expr> SpreadGroups(const Expr& weight, int64_t width) {
    const Dims dims = *TypedDimsOf(weight);
    const int64_t outputs = *ir::AsConstInt(dims[0]), blocks = (outputs + kBlock - 1) / kBlock;
    Expr value = weight;
    if (outputs % kBlock != 0) {
      std::vector<int64_t> pad(2 * dims.size(), 0);
      pad[1] = blocks * kBlock - outputs;
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
    std::vector<int64_t> mask_dims(dims.size() + 1, 1);
    mask_dims[1] = mask_dims[2] = kBlock;
    Expr same_group = ConstantOf(mask, mask_dims);
    if (const DataType dtype = *As<ir::TensorTypeNode>(weight->type)->dtype; dtype != DataType::Float(32)) {
      INGOT_ASSIGN_OR_RETURN(same_group, forms_.Emit("astype", {same_group}, {{"dtype", dtype}}));
    }
    Dims by_block = {ir::Int64(blocks), ir::Int64(kBlock), ir::Int64(kBlock)};
    Dims spread = {ir::Int64(blocks * kBlock), ir::Int64(kBlock)};
    for (Dims* to : {&by_block, &spread}) to->insert(to->end(), dims.begin() + 2, dims.end());
    INGOT_ASSIGN_OR_RETURN(value, forms_.Reshape(value, by_block));
    INGOT_ASSIGN_OR_RETURN(value, forms_.Emit("multiply", {value, same_group}, {}));
    return forms_.Reshape(value, spread);
  }

  // A 1 x 1 convolution of images, or of planes one behind the other, without strides and padding.
  static bool IsOneTap(const ir::Call& call) {
    if (call->args.size() < 2) return false;
    const Dims& weight = *TypedDimsOf(call->args[1]);
    if (weight.size() != kImageRank && weight.size() != kVolumeRank) return false;
    const size_t spatial = weight.size() - 2;
    const std::vector<int64_t> strides = call->attrs.GetInts("strides"), padding = call->attrs.GetInts("padding");
    for (size_t i = spatial - 2; i < spatial; ++i) {
      if (!ir::IsConstInt(weight[2 + i], 1) || strides[i] != 1) return false;
      if (padding[i] != 0 || padding[spatial + i] != 0) return false;
    }
    return true;
  }

  // ---- Winograd's convolution (op/topi/winograd.h)
  // Between an image of narrower floats and its result everything is float32: both transformations have sums of terms
  // that are larger than their differences, by which roundings to 16 bits would grow.
  Status ConvertWinograd(const ir::Binding& binding, const ir::Call& call) {
    constexpr int64_t kPlaces = op::topi::kWinogradPlaces, kAll = kPlaces * kPlaces;
    const DataType dtype = *As<ir::TensorTypeNode>(call->type)->dtype;
    Expr kernels = call->args[1];
    ir::Attrs input_attrs = {{"padding", *call->attrs.Find("padding")}}, output_attrs;
    if (dtype != DataType::Float(32)) {
      INGOT_ASSIGN_OR_RETURN(kernels, forms_.Emit("astype", {kernels}, {{"dtype", DataType::Float(32)}}));
      input_attrs = input_attrs.With("out_dtype", DataType::Float(32));
      output_attrs = {{"out_dtype", dtype}};
    }
    INGOT_ASSIGN_OR_RETURN(const Expr weight, WinogradWeight(kernels));
    INGOT_ASSIGN_OR_RETURN(const Expr data, forms_.Get(call->args[0], Form::kBlocked));
    INGOT_ASSIGN_OR_RETURN(const Expr tiles, forms_.Emit("nn.winograd_input", {data}, input_attrs, binding));
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
    INGOT_ASSIGN_OR_RETURN(const Expr result,
                           forms_.Emit("nn.winograd_output", {result_tiles, size}, output_attrs, binding));
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

  // ---- Element-wise operators
  // Does nothing if the channels beyond the logical ones would not be finite.
  Result<bool> ConvertElementwise(const ir::Binding& binding, const ir::Call& call) {
    const op::OpRow& row = *op::RowOf(call);
    const Dims& out = *TypedDimsOf(call);
    const std::optional<double> filling = ElementwiseFilling(call, [&](const Expr& x) { return forms_.FillingOf(x); });
    if (*Channels(out) % kBlock != 0 && (!filling || !std::isfinite(*filling))) return false;
    Form form = Form::kBlocked;
    for (const Expr& arg : call->args) {
      if (As<ir::PrimValueNode>(arg) != nullptr || !EqualDims(*TypedDimsOf(arg), out)) continue;
      if (const std::optional<Form> made = forms_.FormOf(arg)) {
        form = *made;
        break;
      }
    }
    std::vector<Expr> args = call->args;
    for (Expr& arg : args) {
      if (As<ir::PrimValueNode>(arg) != nullptr) continue;
      const Dims& dims = *TypedDimsOf(arg);
      if (EqualDims(dims, out)) {
        INGOT_ASSIGN_OR_RETURN(arg, forms_.Get(arg, form));
      } else if (IsScalar(dims)) {
        INGOT_RETURN_IF_ERROR(forms_.MakePlain(arg));
      } else {
        INGOT_ASSIGN_OR_RETURN(arg, forms_.GetPerChannel(arg, out.size()));
      }
    }
    INGOT_ASSIGN_OR_RETURN(const Expr result, forms_.Emit(row.name, std::move(args), call->attrs, binding));
    forms_.Define(binding.var, result, form, filling);
    return true;
  }

  // ---- Permutations to channels last, of blocks
  Result<bool> ConvertToChannelsLast(const ir::Binding& binding, const ir::Call& call) {
    const Expr& x = call->args[0];
    if (forms_.HasPlain(x) || !forms_.FormOf(x)) return false;
    INGOT_ASSIGN_OR_RETURN(const Expr blocked, forms_.Get(x, Form::kBlocked));
    INGOT_ASSIGN_OR_RETURN(const Expr permuted,
                           forms_.Emit("permute_dims", {blocked}, {{"axes", ir::AttrValue::Ints({0, 2, 3, 1, 4})}}));
    INGOT_ASSIGN_OR_RETURN(const ir::Call reshape,
                           op::MakeCall("reshape", {permuted, ir::Make<ir::ShapeExprNode>(*TypedDimsOf(call))}));
    forms_.bindings.push_back({binding.var, reshape, nullptr, binding.span});
    return true;
  }

  // ---- Operators that take blocks with the same attributes
  Status ConvertSameAttributes(const ir::Binding& binding, const ir::Call& call) {
    INGOT_ASSIGN_OR_RETURN(std::vector<Expr> args,
                           MapTensors(call->args, [&](const Expr& x) { return forms_.Get(x, Form::kBlocked); }));
    INGOT_ASSIGN_OR_RETURN(const Expr result,
                           forms_.Emit(op::RowOf(call)->name, std::move(args),
                                       AxesInBlocks(call->attrs, TypedDimsOf(call)->size()), binding));
    const std::optional<double> filling = forms_.FillingOf(op::InputTensors(call)[0]);
    forms_.Define(binding.var, result, Form::kBlocked, filling == 0.0 ? filling : std::optional<double>());
    return Status();
  }

  WeightBindings weights_;
  BlockedCalls calls_;
  PassContext& context_;
  BlockedForms forms_;  // forms of the current block's variables
  Definitions definitions_;
  bool changed_ = false, leaves_dead_code_ = false;
};

}  // namespace

Result<ir::IRModule> ConvertLayout(ir::IRModule module, PassContext& context) {
  bool leaves_dead_code = false;
  Result<ir::IRModule> result =
      MapFunctions(std::move(module), [&](const ir::GlobalVar&, const ir::Function& function) {
        LayoutConverter converter(function, context.options.keep_prepare && !function->is_private, context);
        Result<ir::Function> converted = converter.Convert(function);
        leaves_dead_code |= converter.leaves_dead_code();
        return converted;
      });
  return result.ok() && leaves_dead_code ? EliminateDeadCode(*std::move(result), context) : std::move(result);
}

}  // namespace ingot::transform
