// The calls that can be computed over channels in blocks of 16, and what that costs: windows (convolutions and pools),
// which name the layouts of their implementations, and calls that take whatever layout their inputs have.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/layout.h"
#include "compiler/op/registry.h"
#include "compiler/transform/pass.h"
#include "compiler/transform/weight_bindings.h"

namespace ingot::transform {

enum class BlockedCall : uint8_t {
  kNone,              // plain tensors only
  kWindow,            // has WindowChoices
  kElementwise,       // of images of one shape, scalars and values per channel
  kSameAttributes,    // takes blocks with the same attributes: concatenations of channels, reductions over all places
  kFromChannelsLast,  // a permutation [N, H, W, C] -> [N, C, H, W] of whole blocks
  kToChannelsLast,    // and back
};

// A window's call by one implementation. Costs are the implementation's, in operations, without conversions.
struct WindowChoice {
  const op::Implementation* implementation = nullptr;
  std::vector<op::Layout> layouts;  // of the arguments in order, then of the result
  ir::Attrs attrs;                  // the call's in these layouts
  double cost = 0;
  int64_t narrow_group = 0;             // width of groups that share blocks; 0: no groups share
  std::optional<double> winograd_cost;  // of a dense convolution that Winograd's can compute
  bool is_winograd = false;             // it does

  bool takes_blocks() const { return layouts.front().IsBlocked(); }
  bool makes_blocks() const { return layouts.back().IsBlocked(); }
};

// Of a function: an integer that its images' heights and widths count as where they are symbols; without it kLikelyImage.
inline constexpr const char* kLikelyImageAttr = "likely_image";
inline constexpr int64_t kLikelyImage = 224;
// Whether a parameter of these dims, [N, C, ..], has so few channels that it is a picture and no layer's result.
bool IsImage(const op::Dims& dims);

class BlockedCalls {
 public:
  // For the calls of a function. Weights and the context are borrowed; tuning may choose otherwise than the costs
  // (PassContext::Choose) between blocks and plain images, Winograd's convolution and the direct one of each size, and
  // groups that share blocks or do not.
  BlockedCalls(const ir::Function& function, const WeightBindings& weights, PassContext& context);

  BlockedCall KindOf(const ir::Binding& binding) const;
  // The ways to compute a window's call.
  std::vector<WindowChoice> WindowChoices(const ir::Call& call) const;
  // Whether a window's call costs least by Winograd's convolution, at its likely sizes.
  bool PrefersWinograd(const ir::Call& call) const;
  // What a conversion of an image of these dims between plain and blocks costs.
  double ConversionCost(const op::Dims& dims) const;

 private:
  std::optional<WindowChoice> Consider(const ir::Call& call, const op::Implementation& implementation) const;
  std::vector<WindowChoice> PossibleChoices(const ir::Call& call) const;
  bool FillGroups(const ir::Call& call, WindowChoice& choice) const;
  std::optional<double> WinogradCost(const ir::Call& call, const WindowChoice& choice) const;
  bool IsWorthWinograd(const ir::Call& call) const;
  bool IsCheaperByWinograd(const ir::Call& call, std::vector<WindowChoice>& choices) const;
  void ChooseLayout(std::vector<WindowChoice>& choices) const;
  void ChooseWinograd(const ir::Call& call, std::vector<WindowChoice>& choices) const;
  bool TakesBlocks(const ir::Call& call) const;
  // Returns the image's dims with a height and a width that are not known replaced by likely ones.
  op::Dims LikelyDims(op::Dims dims) const;

  const WeightBindings& weights_;
  PassContext& context_;
  const PassOptions& options_;
  Target target_;
  ir::PrimVarMap likely_;    // of symbols in the function's parameters
  std::string likely_name_;  // by which choices are told apart where a network has a copy for each size: "@80"
};

// Whether the dims are those of one value, or of one value per channel of an image or a volume: [1 or N, C, 1, 1] or
// [C, 1, 1] of images.
bool IsScalar(const op::Dims& dims);
bool IsPerChannel(const op::Dims& dims, const op::Dims& image);

// Returns an element-wise call's value where the fillings of its arguments are these: the values in the channels that fill
// up the last block; nothing if it is not known.
std::optional<double> ElementwiseFilling(const ir::Call& call,
                                         const std::function<std::optional<double>(const ir::Expr&)>& filling_of);

// Returns the attributes with the axes of an image or a volume of this rank as those of its blocked form.
ir::Attrs AxesInBlocks(ir::Attrs attrs, size_t rank);

// Returns the arguments with each tensor among them, and in tuples among them, replaced.
Result<std::vector<ir::Expr>> MapTensors(std::vector<ir::Expr> args,
                                         const std::function<Result<ir::Expr>(const ir::Expr&)>& map);

}  // namespace ingot::transform
