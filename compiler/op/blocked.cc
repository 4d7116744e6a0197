// A call with blocked layouts is inferred and evaluated as the same call in canonical layouts. Below: the predicates,
// costs and tensor expressions of the implementations.
#include "compiler/op/blocked.h"

#include <algorithm>

#include "compiler/op/build.h"
#include "compiler/op/topi/blocked.h"
#include "compiler/op/window_cost.h"

namespace ingot::op {
namespace {

// Layouts by the number of spatial axes. A volume is planes, each of which is an image in blocks.
constexpr const char* kBlockedData[] = {"", "", "NCHW16c", "NDCHW16c"};
constexpr const char* kPlainData[] = {"", "", "NCHW", "NCDHW"};
constexpr const char* kDenseKernel[] = {"", "", "OIHW16i16o", "OIDHW16i16o"};
constexpr const char* kOutputKernel[] = {"", "", "OIHW16o", "OIDHW16o"};  // of one input channel, or few of them
constexpr int64_t kBlock = 16;

// An operator's first layout attribute is the data's, the last one the result's, one between them the kernel's.
Result<std::vector<Layout>> BlockedLayoutsOf(const ir::Call& call) {
  std::vector<Layout> layouts;
  for (const LayoutName& name : LayoutNames(*RowOf(call))) {
    INGOT_ASSIGN_OR_RETURN(Layout layout, LayoutAttr(call, name.attr, name.canonical));
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

// The same call over variables in canonical layouts; its type is not inferred.
Result<ir::Call> CanonicalCall(const ir::Call& call, const std::vector<Layout>& layouts) {
  ir::CallNode canonical = *call;
  canonical.type = nullptr;
  const std::vector<LayoutName> names = LayoutNames(*RowOf(call));
  for (size_t i = 0; i + 1 < layouts.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(const ir::TensorType type, TensorArg(call, i));
    const std::string what = "argument " + std::to_string(i) + ": ";
    if (type->rank >= 0 && type->rank != static_cast<int>(layouts[i].rank())) {
      return OpError(
          call, what + "expected a tensor of rank " + std::to_string(layouts[i].rank()) + ", got " + Describe(type));
    }
    if (!type->dims) {
      canonical.args[i] = ir::Make<ir::VarNode>(
          "x", TensorOfRank(static_cast<int>(std::string_view(names[i].canonical).size()), type->dtype, type));
      continue;
    }
    for (size_t d = 0; d < layouts[i].rank(); ++d) {
      const int64_t inner = layouts[i].axes()[d].inner;
      if (inner == 0 || DimsEqual((*type->dims)[d], ir::Int64(inner))) continue;
      return OpError(call, what + "expected blocks of " + std::to_string(inner) + ", got " + Describe(type));
    }
    canonical.args[i] = ir::Make<ir::VarNode>("x", TensorOf(layouts[i].Logical(*type->dims), type->dtype, type));
  }
  for (const LayoutName& name : names) {
    canonical.attrs = canonical.attrs.With(name.attr, name.canonical);
  }
  return ir::Make<ir::CallNode>(std::move(canonical));
}

ReferenceTensor Rearrange(const ReferenceTensor& from, std::vector<int64_t> dims, const Layout& layout, bool pack) {
  ReferenceTensor to = NewReference(from.dtype, std::move(dims));
  ForEachIndex(to.dims, [&](const Index& index, int64_t flat) {
    const Index other = pack ? layout.LogicalIndex(index) : layout.PhysicalIndex(index);
    CopyElement(from, Flatten(from.dims, other), to, flat);
  });
  return to;
}

// ---- Implementations
const ir::TensorTypeNode& TypeOf(const ir::Expr& expr) { return *ir::As<ir::TensorTypeNode>(expr->type); }

bool HasLayouts(const ir::Call& call, std::initializer_list<const char*> layouts) {
  auto expected = layouts.begin();
  for (const LayoutName& name : LayoutNames(*RowOf(call))) {
    if (expected == layouts.end() || call->attrs.GetString(name.attr) != *expected++) return false;
  }
  return true;
}

bool IsConstant(const Dims& dims) {
  return std::ranges::all_of(dims, [](const ir::PrimExpr& dim) { return ir::AsConstInt(dim).has_value(); });
}
// Dim d of the call's kernel, which must be constant.
int64_t KernelDim(const ir::Call& call, size_t d) { return *ir::AsConstInt((*TypeOf(call->args[1]).dims)[d]); }

bool IsFloat32(const ir::Call& call) {
  const DataType f32 = DataType::Float(32);
  return std::ranges::all_of(InputTensors(call), [&](const ir::Expr& x) { return TypeOf(x).dtype == f32; }) &&
         *ir::As<ir::TensorTypeNode>(call->type)->dtype == f32;
}

// Floats of 16 bits are summed and compared in float32.
bool IsFloatOf32Or16(const ir::Call& call) {
  const std::optional<DataType> dtype = TypeOf(call->args[0]).dtype;
  if (dtype != DataType::Float(16) && dtype != DataType::Bfloat16()) return IsFloat32(call);
  return std::ranges::all_of(InputTensors(call), [&](const ir::Expr& x) { return TypeOf(x).dtype == dtype; }) &&
         ir::As<ir::TensorTypeNode>(call->type)->dtype == dtype;
}

size_t SpatialAxesOf(const ir::Call& call) { return call->attrs.GetInts("strides").size(); }

// Spatial axes may be symbolic; the kernel's dims are constants.
bool HasConstantKernel(const ir::Call& call) {
  const auto* type = ir::As<ir::TensorTypeNode>(call->type);
  const bool has_kernel = call->args.size() < 2 || IsConstant(*TypeOf(call->args[1]).dims);
  return has_kernel && type->dims && type->dims->size() == SpatialAxesOf(call) + 3;
}

bool IsDense(const ir::Call& call, const Target&) {
  const size_t spatial = SpatialAxesOf(call);
  if (!HasLayouts(call, {kBlockedData[spatial], kDenseKernel[spatial], kBlockedData[spatial]})) return false;
  return IsFloatOf32Or16(call) && HasConstantKernel(call) && KernelDim(call, 0) % call->attrs.GetInt("groups") == 0;
}
// Integers of 16 bits, summed in 32: convert_layout makes these nn.conv2d_pairs.
bool IsDenseOfInt16(const ir::Call& call, const Target&) {
  if (!HasLayouts(call, {"NCHW16c", "OIHW16i16o", "NCHW16c"})) return false;
  for (const ir::Expr& x : InputTensors(call)) {
    if (TypeOf(x).dtype != DataType::Int(16)) return false;
  }
  return *ir::As<ir::TensorTypeNode>(call->type)->dtype == DataType::Int(32) && HasConstantKernel(call) &&
         KernelDim(call, 0) % call->attrs.GetInt("groups") == 0;
}
// Few input channels, without blocks: each is broadcast to the vectors of output channels.
bool IsFirst(const ir::Call& call, const Target&) {
  constexpr int64_t kFewChannels = 8;
  const size_t spatial = SpatialAxesOf(call);
  if (!HasLayouts(call, {kPlainData[spatial], kOutputKernel[spatial], kBlockedData[spatial]})) return false;
  return IsFloatOf32Or16(call) && HasConstantKernel(call) && call->attrs.GetInt("groups") == 1 &&
         KernelDim(call, 1) <= kFewChannels;
}
bool IsDepthwise(const ir::Call& call, const Target&) {
  const size_t spatial = SpatialAxesOf(call);
  if (!HasLayouts(call, {kBlockedData[spatial], kOutputKernel[spatial], kBlockedData[spatial]})) return false;
  return IsFloatOf32Or16(call) && HasConstantKernel(call) && KernelDim(call, 1) == 1 &&
         call->attrs.GetInt("groups") == KernelDim(call, 0) * kBlock;
}
bool IsPool(const ir::Call& call, const Target&) {
  const size_t spatial = SpatialAxesOf(call);
  return HasLayouts(call, {kBlockedData[spatial], kBlockedData[spatial]}) && HasConstantKernel(call) &&
         IsFloatOf32Or16(call);
}

WindowExtents BlockedExtents(const ir::Call& call, double taps) {
  return {.results = EstimateElements(call->type), .inputs = EstimateElements(call->args[0]->type), .taps = taps};
}
// The kernel's elements per element of the result: all of its dims but the first one and the last one.
double KernelTaps(const ir::Call& call) {
  double taps = 1;
  for (size_t d = 1; d + 1 < TypeOf(call->args[1]).dims->size(); ++d) taps *= static_cast<double>(KernelDim(call, d));
  return taps;
}
double DenseCost(const ir::Call& call, const Target&) {
  return BlockedConvCost(BlockedExtents(call, KernelTaps(call)));
}
// Two products take one instruction.
double DenseCostOfInt16(const ir::Call& call, const Target& target) { return DenseCost(call, target) / 2; }
double FirstCost(const ir::Call& call, const Target&) {
  return BlockedFirstConvCost(BlockedExtents(call, KernelTaps(call)));
}
double DepthwiseCost(const ir::Call& call, const Target&) {
  return BlockedChannelwiseCost(BlockedExtents(call, KernelTaps(call)));
}
double BlockedPoolCost(const ir::Call& call, const Target&) {
  double taps = 1;
  for (const int64_t extent : call->attrs.GetInts("pool_size")) taps *= static_cast<double>(extent);
  return BlockedChannelwiseCost(BlockedExtents(call, taps));
}

topi::BlockedWindow BlockedWindowOf(const ir::Call& call) {
  return {call->attrs.GetInts("strides"), call->attrs.GetInts("padding"), call->attrs.GetInts("dilation")};
}

te::Tensor DefineBlockedConv(const TeArgs& args) {
  return topi::BlockedConv(args.input(0), args.input(1), BlockedWindowOf(args.call()),
                           args.call()->attrs.GetInt("groups"), args.out_dims(),
                           ir::MakeConst(args.input(0).dtype(), 0));
}
te::Tensor DefineMaxPool(const TeArgs& args) {
  return topi::BlockedMaxPool(args.input(0), args.call()->attrs.GetInts("pool_size"), BlockedWindowOf(args.call()),
                              args.out_dims());
}
te::Tensor DefineAvgPool(const TeArgs& args) {
  return topi::BlockedAvgPool(args.input(0), args.call()->attrs.GetInts("pool_size"), BlockedWindowOf(args.call()),
                              args.out_dims(), args.call()->attrs.GetBool("count_include_pad"));
}

}  // namespace

std::vector<LayoutName> LayoutNames(const OpRow& row) {
  std::vector<LayoutName> names;
  for (const AttrSpec& spec : row.attrs) {
    const std::string_view name = spec.name;
    if (!name.ends_with("layout")) continue;
    // The result's default is the data's.
    const std::string* canonical = spec.default_value.get<std::string>();
    names.push_back({spec.name, canonical != nullptr ? canonical->c_str() : names.at(0).canonical});
  }
  return names;
}

bool HasBlocks(const ir::Call& call) {
  const auto is_blocked = [&](const LayoutName& name) {
    const std::string& layout = call->attrs.GetString(name.attr);
    return std::ranges::any_of(layout, [](char c) { return c >= '0' && c <= '9'; });
  };
  return std::ranges::any_of(LayoutNames(*RowOf(call)), is_blocked);
}

Result<ir::Type> InferBlocked(const ir::Call& call, Result<ir::Type> (*infer)(const ir::Call& call)) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<Layout> layouts, BlockedLayoutsOf(call));
  INGOT_ASSIGN_OR_RETURN(const ir::Call canonical, CanonicalCall(call, layouts));
  INGOT_ASSIGN_OR_RETURN(const ir::Type result, infer(canonical));
  const auto type = ir::Downcast<ir::TensorTypeNode>(result);
  const Layout& layout = layouts.back();
  if (!type->dims) return TensorOfRank(static_cast<int>(layout.rank()), type->dtype, type);
  for (size_t i = 0; i < type->dims->size(); ++i) {
    const ir::PrimExpr& dim = (*type->dims)[i];
    if (DimsEqual(SimplifyDim(ir::FloorMod(dim, ir::Int64(layout.Block(i)))), ir::Int64(0))) continue;
    return OpError(call, "expected a result of whole blocks, got " + Describe(result));
  }
  return TensorOf(layout.Physical(*type->dims), type->dtype, type);
}

Result<std::vector<ReferenceTensor>> ReferenceBlocked(
    const ir::Call& call, std::span<const ReferenceTensor> inputs, Result<ir::Type> (*infer)(const ir::Call& call),
    Result<std::vector<ReferenceTensor>> (*reference)(const ir::Call& call, std::span<const ReferenceTensor> inputs)) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<Layout> layouts, BlockedLayoutsOf(call));
  INGOT_ASSIGN_OR_RETURN(const ir::Call untyped, CanonicalCall(call, layouts));
  ir::CallNode canonical = *untyped;
  INGOT_ASSIGN_OR_RETURN(canonical.type, infer(untyped));
  std::vector<ReferenceTensor> plain;
  for (size_t i = 0; i < inputs.size(); ++i) {
    plain.push_back(Rearrange(inputs[i], layouts[i].Logical(inputs[i].dims), layouts[i], /*pack=*/false));
  }
  INGOT_ASSIGN_OR_RETURN(std::vector<ReferenceTensor> results,
                         reference(ir::Make<ir::CallNode>(std::move(canonical)), plain));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  results[0] = Rearrange(results[0], dims, layouts.back(), /*pack=*/true);
  return results;
}

int64_t FilledChannels(int64_t channels) { return (channels + kBlock - 1) / kBlock * kBlock; }

bool WordsPay(int64_t groups, int64_t width, int64_t outputs) {
  // A word of four bytes is multiplied as fast as one float, so that so many products by zeros cost nothing.
  constexpr int64_t kFewestChannels = 3, kProductsPerWord = 4;
  if (groups == 1) return width >= kFewestChannels;
  if (width < 2) return false;
  if (width == outputs && kBlock % width == 0) return true;  // groups share blocks
  return FilledChannels(width) * FilledChannels(outputs) < kProductsPerWord * width * outputs;
}

std::vector<Implementation> BlockedConv(size_t spatial) {
  const char* data = kBlockedData[spatial];
  std::vector<Implementation> result = {
      {"blocked", IsDense, DenseCost, {data, kDenseKernel[spatial], data}, Build<DefineBlockedConv>}};
  if (spatial == 2) {
    result.push_back(
        {"blocked_int16", IsDenseOfInt16, DenseCostOfInt16, {data, "OIHW16i16o", data}, Build<DefineBlockedConv>});
  }
  result.push_back({"blocked_depthwise",
                    IsDepthwise,
                    DepthwiseCost,
                    {data, kOutputKernel[spatial], data},
                    Build<DefineBlockedConv>});
  result.push_back({"blocked_first",
                    IsFirst,
                    FirstCost,
                    {kPlainData[spatial], kOutputKernel[spatial], data},
                    Build<DefineBlockedConv>});
  return result;
}

Implementation BlockedMaxPool(size_t spatial) {
  return {"blocked", IsPool, BlockedPoolCost, {kBlockedData[spatial], kBlockedData[spatial]}, Build<DefineMaxPool>};
}
Implementation BlockedAvgPool(size_t spatial) {
  return {"blocked", IsPool, BlockedPoolCost, {kBlockedData[spatial], kBlockedData[spatial]}, Build<DefineAvgPool>};
}

}  // namespace ingot::op
