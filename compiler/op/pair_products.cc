// Convolution of 16-bit integers over channels in blocks of 16: nn.conv2d_pairs, which convert_layout makes of
// nn.conv2d over int16. Weights hold two neighbouring input channels in each word, as the data does in memory, so that
// kernels multiply pairs (topi::PairProduct). Types and values are those of nn.conv2d over the same weights one by one.
#include <utility>

#include "compiler/op/blocked.h"
#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/blocked.h"
#include "compiler/op/window_cost.h"

namespace ingot::op {
namespace {

constexpr int64_t kPairBlock = 16;
constexpr size_t kWeightRank = 6, kPairs = 4;
const DataType kFactor = DataType::Int(16), kProduct = DataType::Int(32);

// The call of nn.conv2d over variables, whose weights are int16 [output blocks, input blocks, h, w, 16, 16].
Result<ir::Call> SingleProducts(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType data, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType weight, TensorArg(call, 1));
  const auto error = [&](const std::string& expected) {
    return OpError(call, "expected " + expected + ", got " + Describe(data) + " and " + Describe(weight));
  };
  if ((data->dtype && data->dtype != kFactor) || (weight->dtype && weight->dtype != kProduct)) {
    return error("data of int16 and weights in words (int32)");
  }
  if (!data->dims || !weight->dims || weight->dims->size() != kWeightRank) {
    return error("data of rank 5 and weights of rank 6, both of known dims");
  }
  Dims dims = *weight->dims;
  if (DimsDiffer(dims[kPairs], ir::Int64(kPairBlock / 2))) return error("weights of eight pairs of input channels");
  dims[kPairs] = ir::Int64(kPairBlock);
  const ir::Expr x = ir::Make<ir::VarNode>("x", TensorOf(*data->dims, kFactor, data));
  const ir::Expr w = ir::Make<ir::VarNode>("w", TensorOf(std::move(dims), kFactor, weight));
  const ir::Attrs attrs = call->attrs.With("data_layout", "NCHW16c")
                              .With("kernel_layout", "OIHW16i16o")
                              .With("out_layout", "NCHW16c")
                              .With("out_dtype", kProduct);
  return MakeCall("nn.conv2d", {x, w}, attrs);
}

Result<ir::Type> InferPairs(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::Call single, SingleProducts(call));
  return single->type;
}

Result<std::vector<ReferenceTensor>> ReferencePairs(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const ir::Call single, SingleProducts(call));
  std::vector<int64_t> dims = inputs[1].dims;
  dims[kPairs] = kPairBlock;
  ReferenceTensor weight = NewReference(kFactor, dims);
  ForEachIndex(dims, [&](const Index& at, int64_t flat) {
    Index word = at;
    word[kPairs] /= 2;
    const int64_t value = inputs[1].ints[static_cast<size_t>(Flatten(inputs[1].dims, word))];
    weight.ints[static_cast<size_t>(flat)] = static_cast<int16_t>(at[kPairs] % 2 == 0 ? value : value >> 16);
  });
  return FindOp("nn.conv2d")->reference(single, std::vector<ReferenceTensor>{inputs[0], std::move(weight)});
}

double PairsCost(const ir::Call& call, const Target&) {
  const Dims& weight = *ir::As<ir::TensorTypeNode>(call->args[1]->type)->dims;
  const WindowExtents window{
      .results = EstimateElements(call->type),
      .inputs = EstimateElements(call->args[0]->type),
      .taps = EstimateElements(TensorOf(Dims(weight.begin() + 1, weight.end() - 1), kProduct, nullptr))};
  return BlockedConvCost(window);
}

te::Tensor DefinePairs(const TeArgs& args) {
  const ir::Attrs attrs = (*SingleProducts(args.call()))->attrs;  // one value per axis
  const topi::BlockedWindow window{attrs.GetInts("strides"), attrs.GetInts("padding"), attrs.GetInts("dilation")};
  return topi::BlockedConv2d(args.input(0), args.input(1), window, attrs.GetInt("groups"), args.out_dims());
}

}  // namespace

std::vector<OpRow> PairProductOps() {
  const auto each = [](size_t count, int64_t value) { return ir::AttrValue::Ints(std::vector<int64_t>(count, value)); };
  return {{.name = "nn.conv2d_pairs",
           .summary = "nn.conv2d of int16 in int32: data NCHW16c, weights OIHW8i16o of two input channels each",
           .arg_names = {"data", "weight"},
           .attrs = {{"strides", AttrType::kInts, each(2, 1)},
                     {"padding", AttrType::kInts, each(4, 0)},
                     {"dilation", AttrType::kInts, each(2, 1)},
                     {"groups", AttrType::kInt, 1}},
           .infer = InferPairs,
           .reference = ReferencePairs,
           .implementations = {{"direct", Always, PairsCost, {}, Build<DefinePairs>}},
           .cases = {.rank0 = false, .non_finite = false, .dtypes = {kFactor}}}};
}

}  // namespace ingot::op
