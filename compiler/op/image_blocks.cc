// Sums of overlapping blocks: the transpose of taking all blocks of an image apart (ONNX's Col2Im, PyTorch's fold).
#include "compiler/op/image_blocks.h"

#include <functional>
#include <numeric>
#include <string>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/nn.h"
#include "runtime/tensor.h"

namespace ingot::op {
namespace {

// The attributes of a call: a block of each axis, and how blocks lie in the padded image.
struct Blocks {
  std::vector<int64_t> block;
  topi::Window window;

  size_t rank() const { return block.size(); }
  int64_t elements() const {
    return std::accumulate(block.begin(), block.end(), int64_t{1}, std::multiplies<int64_t>());
  }
  // How many blocks lie along an axis of this length.
  ir::PrimExpr CountOf(const ir::PrimExpr& length, size_t axis) const {
    const int64_t reach = (block[axis] - 1) * window.dilation[axis] + 1;
    const ir::PrimExpr room = length + (window.padding[axis] + window.padding[rank() + axis] - reach);
    const ir::PrimExpr steps = ir::FloorDiv(room, ir::Int64(window.strides[axis])) + 1;
    return SimplifyDim(ir::Max(steps, ir::Int64(0)));
  }
};

Result<Blocks> ReadBlocks(const ir::Call& call) {
  Blocks blocks{call->attrs.GetInts("block"),
                {call->attrs.GetInts("strides"), call->attrs.GetInts("padding"), call->attrs.GetInts("dilation")}};
  const size_t rank = blocks.rank();
  topi::Window& window = blocks.window;
  if (window.strides.empty()) window.strides.assign(rank, 1);
  if (window.dilation.empty()) window.dilation.assign(rank, 1);
  if (window.padding.empty()) window.padding.assign(2 * rank, 0);
  if (rank == 0 || rank + 2 > kMaxRank || window.strides.size() != rank || window.dilation.size() != rank ||
      window.padding.size() != 2 * rank) {
    return OpError(call, "expected a block of one to " + std::to_string(kMaxRank - 2) +
                             " axes, a stride and a dilation for each, and padding at both of its ends");
  }
  constexpr int64_t kMost = 1 << 20;
  int64_t elements = 1;
  for (size_t i = 0; i < rank; ++i) {
    const auto is_size = [](int64_t v) { return v >= 1 && v <= kMost; };
    const auto is_pad = [](int64_t v) { return v >= 0 && v <= kMost; };
    if (!is_size(blocks.block[i]) || !is_size(window.strides[i]) || !is_size(window.dilation[i]) ||
        !is_pad(window.padding[i]) || !is_pad(window.padding[rank + i])) {
      return OpError(call, "a block, a stride or a dilation below 1 or above 2^20, or padding below 0");
    }
    elements *= blocks.block[i];
    if (elements > kMost) return OpError(call, "a block of more than 2^20 elements");
  }
  return blocks;
}

Result<ir::Type> InferFold(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType data, TensorArg(call, 0));
  int rank = -1;
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> size, ShapeArg(call, 1, &rank));
  INGOT_ASSIGN_OR_RETURN(const Blocks blocks, ReadBlocks(call));
  if (rank >= 0 && rank != static_cast<int>(blocks.rank())) {
    return OpError(call, "expected a size and a block of one rank");
  }
  if (data->dtype && (data->dtype->is_bool() || !(data->dtype->is_floating() || data->dtype->is_integral()))) {
    return OpError(call, "expected numbers, got " + Describe(data));
  }
  if (data->rank >= 0 && data->rank != 3) return OpError(call, "expected a rank of 3, got " + Describe(data));
  if (!data->dims || !size) return TensorOfRank(static_cast<int>(blocks.rank()) + 2, data->dtype, data);
  const Dims& in = *data->dims;
  const auto rows = ir::AsConstInt(in[1]);
  if (rows && *rows % blocks.elements() != 0) {
    return OpError(call,
                   "expected channels of " + std::to_string(blocks.elements()) + " rows each, got " + Describe(data));
  }
  Dims out = {in[0], SimplifyDim(ir::FloorDiv(in[1], ir::Int64(blocks.elements())))};
  ir::PrimExpr count = ir::Int64(1);
  for (size_t i = 0; i < blocks.rank(); ++i) {
    const ir::PrimExpr along = blocks.CountOf((*size)[i], i);
    if (ir::IsConstInt(along, 0)) return OpError(call, "a block that is longer than the padded image");
    count = SimplifyDim(count * along);
    out.push_back((*size)[i]);
  }
  if (DimsDiffer(in[2], count)) {
    return OpError(call, "expected " + Describe(count) + " blocks, got " + Describe(data));
  }
  return TensorOf(std::move(out), data->dtype, data);
}

te::Tensor DefineFold(const TeArgs& args) {
  const Blocks blocks = *ReadBlocks(args.call());
  const Dims& shape = args.out_dims();
  topi::Shape taps, counts;
  for (size_t i = 0; i < blocks.rank(); ++i) {
    taps.push_back(ir::Int64(blocks.block[i]));
    counts.push_back(blocks.CountOf(shape[2 + i], i));
  }
  return topi::Fold(args.input(0), taps, counts, blocks.window, shape);
}

Result<std::vector<ReferenceTensor>> ReferenceFold(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const Blocks blocks, ReadBlocks(call));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  ReferenceTensor out = NewReference(inputs[0].dtype, dims);
  const int64_t elements = blocks.elements(), count = inputs[0].dims[2];
  const size_t rank = blocks.rank();
  std::vector<int64_t> along;
  for (size_t i = 0; i < rank; ++i) along.push_back(*ir::AsConstInt(blocks.CountOf(ir::Int64(dims[2 + i]), i)));
  std::vector<double> sums(static_cast<size_t>(CountOf(dims)), 0);
  for (int64_t row = 0; row < dims[0] * inputs[0].dims[1]; ++row) {
    for (int64_t at = 0; at < count; ++at) {
      int64_t tap = row % elements, block = at, weight = 1, place = 0;
      bool is_inside = true;
      for (size_t i = rank; i-- > 0;) {
        const int64_t first = block % along[i] * blocks.window.strides[i] - blocks.window.padding[i];
        const int64_t position = first + tap % blocks.block[i] * blocks.window.dilation[i];
        is_inside = is_inside && position >= 0 && position < dims[2 + i];
        place += position * weight;
        weight *= dims[2 + i];
        block /= along[i];
        tap /= blocks.block[i];
      }
      if (is_inside) {
        sums[static_cast<size_t>(row / elements * weight + place)] += GetNumber(inputs[0], row * count + at);
      }
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) SetNumber(out, static_cast<int64_t>(i), sums[i]);
  return std::vector<ReferenceTensor>{std::move(out)};
}

double FoldCost(const ir::Call& call, const Target&) {
  return EstimateElements(call->type) + EstimateElements(call->args[0]->type);
}

}  // namespace

std::optional<Dims> FoldCounts(const ir::Call& call, const Dims& size) {
  const Result<Blocks> blocks = ReadBlocks(call);
  if (!blocks.ok() || blocks->rank() != size.size()) return std::nullopt;
  Dims counts;
  for (size_t i = 0; i < size.size(); ++i) counts.push_back(blocks->CountOf(size[i], i));
  return counts;
}

std::vector<OpRow> ImageBlockOps() {
  OpRow row{.name = "nn.fold",
            .summary = "sums of overlapping blocks: data [n, channels * block, blocks] as images of this size",
            .arg_names = {"data", "size"},
            .attrs = {{"block", AttrType::kInts, {}, true},
                      {"strides", AttrType::kInts, ir::AttrValue::Ints({})},
                      {"padding", AttrType::kInts, ir::AttrValue::Ints({})},
                      {"dilation", AttrType::kInts, ir::AttrValue::Ints({})}},
            .fusion = FusionClass::kOutFusible,
            .infer = InferFold,
            .reference = ReferenceFold,
            .implementations = {{"direct", Always, FoldCost, {}, Build<DefineFold>}},
            .cases = {.rank0 = false}};
  row.cases.dtypes = FloatDataTypes();
  row.cases.dtypes.push_back(DataType::Int(32));
  return {std::move(row)};
}

}  // namespace ingot::op
