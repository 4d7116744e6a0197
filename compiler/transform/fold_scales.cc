// fold_scales
//   Before: normal form, before legalising; a batch norm is a multiplication and an addition of constants.
//   After:  where the only reader of a convolution, or of a convolution plus a bias, multiplies it by a weight per
//           output channel, the convolution's own weights (and the bias) are multiplied instead; two biases that follow
//           each other are one. The products depend on weights only, so that lift_params evaluates them.
//   Before dead code elimination, which removes what is left behind, and before convert_layout.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>

#include "compiler/ir/float_format.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/blocked.h"
#include "compiler/op/infer.h"
#include "compiler/op/names.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/weight_bindings.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;
using op::Dims;

namespace {

// Whether dims are one element, or one for each channel of a tensor [N, C, ...] of this rank.
bool HasChannelsAlone(const Dims& dims, size_t rank) {
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool is_channel = i + rank == dims.size() + 1;
    if (!is_channel && !ir::IsConstInt(dims[i], 1)) return false;
  }
  return dims.size() <= rank;
}

// The operands of a product or sum with a weight.
struct Operands {
  Expr value, weight;
};

class Folder {
 public:
  Folder(const ir::Function& function, bool keep, PassContext& context)
      : weights_(function, keep), keeps_(keep), context_(context) {
    for (const ir::Binding& binding : weights_.bindings()) made_.emplace(binding.var.get(), binding.value);
    const auto count = [&](const ir::Var& var) { ++uses_[var.get()]; };
    for (const ir::BindingBlock& block : function->body->blocks) {
      for (const ir::Binding& binding : block.bindings) ForEachUse(binding.value, count);
    }
    ForEachUse(function->body->body, count);
  }

  Result<ir::Function> Fold(const ir::Function& function) {
    return MapDataflowBlocks(function, [&](std::vector<ir::Binding>& bindings) -> Result<bool> {
      bindings_.clear();
      definitions_.clear();
      for (const ir::Binding& binding : bindings) INGOT_RETURN_IF_ERROR(FoldBinding(binding));
      bindings = std::move(bindings_);
      return changed_;
    });
  }

 private:
  Status FoldBinding(const ir::Binding& binding) {
    if (!binding.is_match_cast() && !weights_.Contains(binding.var)) {
      if (const std::optional<Operands> product = AsOperation(binding.value, op::names::kMultiply)) {
        INGOT_ASSIGN_OR_RETURN(const bool done, FoldScale(binding, *product));
        if (done) return Status();
      }
      if (const std::optional<Operands> sum = AsOperation(binding.value, op::names::kAdd)) {
        INGOT_ASSIGN_OR_RETURN(const bool done, JoinBiases(binding, *sum));
        if (done) return Status();
      }
    }
    definitions_[binding.var.get()] = binding.value;
    bindings_.push_back(binding);
    return Status();
  }

  // (convolution [+ bias]) * scale
  Result<bool> FoldScale(const ir::Binding& binding, const Operands& product) {
    const std::optional<Operands> sum = AsOperation(DefinitionOf(product.value), op::names::kAdd);
    const ir::Call convolution = AsConvolution(DefinitionOf(sum ? sum->value : product.value));
    if (convolution == nullptr || !HasWideRange(convolution->type)) return false;
    if (!IsTame(product.weight, convolution->args[1]) || (sum && !IsTame(product.weight, sum->weight))) return false;
    if (!context_.Apply(RewriteId::kFoldScale, *As<ir::CallNode>(binding.value), binding.span)) return false;
    const Dims& kernel = *TypedDimsOf(convolution->args[1]);
    Dims column(kernel.size(), ir::Int64(1));
    if (!op::DimsEqual(op::ProductOf(*TypedDimsOf(product.weight)), ir::Int64(1))) column[0] = kernel[0];
    INGOT_ASSIGN_OR_RETURN(const Expr scale,
                           Emit("reshape", {product.weight, ir::Make<ir::ShapeExprNode>(std::move(column))}));
    INGOT_ASSIGN_OR_RETURN(const Expr weight, Emit("multiply", {convolution->args[1], scale}));
    INGOT_ASSIGN_OR_RETURN(const ir::Call scaled, op::MakeCall(op::RowOf(convolution)->name,
                                                               {convolution->args[0], weight}, convolution->attrs));
    changed_ = true;
    if (!sum) {
      Push(binding.var, scaled, convolution->span);
      return true;
    }
    INGOT_ASSIGN_OR_RETURN(const Expr bias, Emit("multiply", {sum->weight, product.weight}));
    const ir::Var var = ir::Make<ir::VarNode>(binding.var->name, scaled->type, /*dataflow=*/true);
    uses_[var.get()] = 1;
    Push(var, scaled, convolution->span);
    INGOT_ASSIGN_OR_RETURN(const ir::Call result, op::MakeCall("add", {var, bias}));
    Push(binding.var, result, binding.span);
    return true;
  }

  // (convolution + bias) + bias
  Result<bool> JoinBiases(const ir::Binding& binding, const Operands& sum) {
    const std::optional<Operands> inner = AsOperation(DefinitionOf(sum.value), op::names::kAdd);
    if (!inner || AsConvolution(DefinitionOf(inner->value)) == nullptr) return false;
    if (!IsSmall(inner->weight) || !IsSmall(sum.weight)) return false;
    if (!context_.Apply(RewriteId::kJoinBiases, *As<ir::CallNode>(binding.value), binding.span)) return false;
    INGOT_ASSIGN_OR_RETURN(const Expr bias, Emit("add", {inner->weight, sum.weight}));
    INGOT_ASSIGN_OR_RETURN(const ir::Call result, op::MakeCall("add", {inner->value, bias}));
    changed_ = true;
    Push(binding.var, result, binding.span);
    return true;
  }

  // Returns the operands if the value is a call of this operator on a variable and a weight per channel, in either
  // order.
  std::optional<Operands> AsOperation(const Expr& value, std::string_view name) const {
    const auto* call = value != nullptr ? As<ir::CallNode>(value) : nullptr;
    if (call == nullptr || !op::IsCallOf(*call, name)) return std::nullopt;
    const Dims* out = TypedDimsOf(value);
    for (size_t i : {0, 1}) {
      const Expr& weight = call->args[i];
      const Dims* dims = TypedDimsOf(weight);
      if (out == nullptr || dims == nullptr || !IsWeight(weight) || !HasChannelsAlone(*dims, out->size())) continue;
      return Operands{call->args[1 - i], weight};
    }
    return std::nullopt;
  }
  // Returns the call if the value is a convolution by a weight in the canonical layout, output channels first.
  ir::Call AsConvolution(const Expr& value) const {
    const ir::Call call = value != nullptr ? ir::AsRef<ir::CallNode>(value) : nullptr;
    const op::OpRow* row = call != nullptr ? op::RowOf(call) : nullptr;
    if (row == nullptr || call->args.size() != 2 || !IsWeight(call->args[1]) || TypedDimsOf(call->args[1]) == nullptr) {
      return nullptr;
    }
    const std::vector<op::LayoutName> names = op::LayoutNames(*row);
    if (names.size() != 3 || names[1].canonical[0] != 'O') return nullptr;
    for (const op::LayoutName& name : names) {
      if (call->attrs.GetString(name.attr) != name.canonical) return nullptr;
    }
    const bool same_dtype =
        As<ir::TensorTypeNode>(call->args[1]->type)->dtype == As<ir::TensorTypeNode>(call->type)->dtype;
    return same_dtype ? call : nullptr;
  }

  // Whether the dtype has at least the exponent range of float32. Then ordinary sums are far from an overflow, which a
  // later scale below 1 would have hidden.
  static bool HasWideRange(const ir::Type& type) {
    const DataType dtype = *As<ir::TensorTypeNode>(type)->dtype;
    return dtype.is_floating() && ir::FloatFormatOf(dtype).exponent_bits >= 8;
  }
  static double SmallestNormal(DataType dtype) { return std::ldexp(1.0, 1 - ir::FloatFormatOf(dtype).bias); }
  // Whether the bias is small enough that adding it first loses no digits of the convolution that a second bias would
  // keep. False for weights that may be replaced, since their elements are unknown.
  bool IsSmall(const Expr& bias) const {
    const std::optional<Magnitudes> sizes = keeps_ ? std::nullopt : MagnitudesOf(bias);
    if (!sizes) return false;
    const DataType dtype = *As<ir::TensorTypeNode>(bias->type)->dtype;
    return dtype.is_floating() && sizes->greatest <= std::ldexp(1.0, ir::FloatFormatOf(dtype).mantissa_bits / 2);
  }
  // Whether products with the scale are far from an overflow, so are sums that the scale reduces, and no product loses
  // digits below the normal numbers. True for weights that may be replaced: their elements are unknown, and the
  // contract of the rewrite bounds them.
  bool IsTame(const Expr& scale, const Expr& weight) const {
    if (keeps_) return true;
    const double limit = std::ldexp(1.0, 24);
    const std::optional<Magnitudes> scales = MagnitudesOf(scale), weights = MagnitudesOf(weight);
    if (!scales || !weights || !scales->least || scales->greatest > limit) return false;
    const DataType dtype = *As<ir::TensorTypeNode>(weight->type)->dtype;
    const bool are_normal = weights->least && *scales->least * *weights->least >= SmallestNormal(dtype);
    if (*scales->least < 1 / limit && !are_normal) return false;
    return weights->greatest <= ir::LargestFinite(dtype) / limit / std::max(scales->greatest, 1.0);
  }

  // Bounds of a weight's elements: no magnitude is above `greatest`, and none except 0 is below `least`.
  struct Magnitudes {
    double greatest = 0;
    std::optional<double> least;  // absent: unknown
  };
  static constexpr int kMaxDepth = 32;  // of calls that compute a weight
  // Returns nothing if an element is not finite, or the elements are not known.
  std::optional<Magnitudes> MagnitudesOf(const Expr& weight, int depth = 0) const {
    if (const auto* constant = As<ir::ConstantNode>(weight)) return MagnitudesOf(*constant->data);
    const auto made = made_.find(As<ir::VarNode>(weight));
    return made == made_.end() || depth == kMaxDepth ? std::nullopt : MagnitudesOfCall(made->second, depth + 1);
  }
  // Returns the bounds of a weight that is computed from weights; nothing if the operator is another.
  std::optional<Magnitudes> MagnitudesOfCall(const Expr& value, int depth) const {
    const auto* call = As<ir::CallNode>(value);
    if (call == nullptr) return std::nullopt;
    const auto is = [call](std::string_view name) { return op::IsCallOf(*call, name); };
    if (is(op::names::kReshape) || is(op::names::kBroadcastTo)) return MagnitudesOf(call->args[0], depth);
    if (!is(op::names::kAdd) && !is(op::names::kMultiply)) return std::nullopt;
    const std::optional<Magnitudes> a = MagnitudesOf(call->args[0], depth), b = MagnitudesOf(call->args[1], depth);
    if (!a || !b) return std::nullopt;
    if (is(op::names::kAdd)) return Magnitudes{a->greatest + b->greatest, std::nullopt};
    Magnitudes product{a->greatest * b->greatest, std::nullopt};
    if (a->least && b->least) product.least = *a->least * *b->least;
    return product;
  }
  static std::optional<Magnitudes> MagnitudesOf(const ir::ConstantData& data) {
    const DataType dtype = data.dtype();
    if (!dtype.is_floating() || dtype.bits < 8 || dtype.bits > 64) return std::nullopt;
    const auto width = static_cast<size_t>(dtype.bits / 8);
    Magnitudes sizes{0, std::numeric_limits<double>::infinity()};
    for (std::span<const std::byte> rest = data.bytes(); rest.size() >= width; rest = rest.subspan(width)) {
      uint64_t bits = 0;
      std::memcpy(&bits, rest.data(), width);
      const double x = ir::DecodeFloat(dtype, bits);
      if (!std::isfinite(x)) return std::nullopt;
      sizes.greatest = std::max(sizes.greatest, std::fabs(x));
      if (x != 0) sizes.least = std::min(*sizes.least, std::fabs(x));
    }
    return sizes;
  }

  bool IsWeight(const Expr& x) const {
    const auto* var = As<ir::VarNode>(x);
    return weights_.IsWeight(x) || (var != nullptr && made_.contains(var));
  }
  // Returns the value of a variable with exactly one reader; null otherwise.
  Expr DefinitionOf(const Expr& x) const {
    const auto* var = As<ir::VarNode>(x);
    if (var == nullptr || !var->is_dataflow) return nullptr;
    const auto uses = uses_.find(var);
    const auto found = definitions_.find(var);
    return found != definitions_.end() && uses != uses_.end() && uses->second == 1 ? found->second : nullptr;
  }

  void Push(const ir::Var& var, const Expr& value, const ir::Span& span) {
    definitions_[var.get()] = value;
    bindings_.push_back({var, value, nullptr, span});
  }
  // Binds a call on weights to a new variable, which is a weight too.
  Result<Expr> Emit(const char* name, std::vector<Expr> args) {
    INGOT_ASSIGN_OR_RETURN(const ir::Call call, op::MakeCall(name, std::move(args)));
    const ir::Var var = ir::Make<ir::VarNode>("lv", call->type, /*dataflow=*/true);
    bindings_.push_back({var, call, nullptr, {}});
    made_.emplace(var.get(), call);
    return Expr(var);
  }

  WeightBindings weights_;
  const bool keeps_;  // whether weights may be replaced
  PassContext& context_;
  std::unordered_map<const ir::VarNode*, int64_t> uses_;
  std::unordered_map<const ir::VarNode*, Expr> definitions_;
  std::unordered_map<const ir::VarNode*, Expr> made_;  // weights that are no constants: what computes them
  std::vector<ir::Binding> bindings_;
  bool changed_ = false;
};

}  // namespace

Result<ir::IRModule> FoldScales(ir::IRModule module, PassContext& context) {
  return MapFunctions(std::move(module), [&](const ir::GlobalVar&, const ir::Function& function) {
    return Folder(function, context.options.keep_prepare && !function->is_private, context).Fold(function);
  });
}

}  // namespace ingot::transform
