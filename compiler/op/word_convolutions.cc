// Convolutions of integers over channels in blocks, which convert_layout makes of nn.conv2d over int16. Weights hold
// several neighbouring input channels in each word, as the data does in memory, so that kernels multiply all of them by
// one instruction: nn.conv2d_pairs two of 16 bits (topi::PairProduct), nn.conv2d_bytes four bytes (T.dot_bytes). Blocks
// of the result are 16 channels, those of the data as many as the weights have words for. Types and values are those of
// nn.conv2d over the same weights one by one; what lies around an image of bytes is a number that is given.
#include <string>
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

constexpr int64_t kBlockOfChannels = 16;
constexpr size_t kWeightRank = 6, kWords = 4, kEdge = 2;
constexpr int kPair = 2, kQuad = 4;  // input channels in a word
const DataType kFactor = DataType::Int(16), kProduct = DataType::Int(32), kDataByte = DataType::UInt(8);

template <int kPerWord>
DataType DataOf() {
  return kPerWord == kPair ? kFactor : kDataByte;
}

// The input channels of a block of the data; 0: not of whole words, or of too many.
template <int kPerWord>
int64_t InputBlock(const Dims& weight) {
  const auto words = ir::AsConstInt(weight[kWords]);
  return words && *words >= 1 && *words <= kBlockOfChannels / kPerWord ? *words * kPerWord : 0;
}

// The call of nn.conv2d over variables of int16, whose weights are [output blocks, input blocks, h, w, b, 16] with data
// in blocks of b.
template <int kPerWord>
Result<ir::Call> SingleProducts(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType data, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType weight, TensorArg(call, 1));
  const auto error = [&](const std::string& expected) {
    return OpError(call, "expected " + expected + ", got " + Describe(data) + " and " + Describe(weight));
  };
  if ((data->dtype && data->dtype != DataOf<kPerWord>()) || (weight->dtype && weight->dtype != kProduct)) {
    return error("data of " + DataOf<kPerWord>().ToString() + " and weights in words (int32)");
  }
  if (!data->dims || !weight->dims || weight->dims->size() != kWeightRank) {
    return error("data of rank 5 and weights of rank 6, both of known dims");
  }
  Dims dims = *weight->dims;
  const int64_t block = InputBlock<kPerWord>(dims);
  if (block == 0) return error("weights of at most 16 input channels, " + std::to_string(kPerWord) + " in each word");
  dims[kWords] = ir::Int64(block);
  const ir::Expr x = ir::Make<ir::VarNode>("x", TensorOf(*data->dims, kFactor, data));
  const ir::Expr w = ir::Make<ir::VarNode>("w", TensorOf(std::move(dims), kFactor, weight));
  const std::string count = std::to_string(block);
  const ir::Attrs attrs = call->attrs.With("data_layout", "NCHW" + count + "c")
                              .With("kernel_layout", "OIHW" + count + "i16o")
                              .With("out_layout", "NCHW16c")
                              .With("out_dtype", kProduct);
  return MakeCall("nn.conv2d", {x, w}, attrs);
}

template <int kPerWord>
Result<ir::Type> InferWords(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::Call single, SingleProducts<kPerWord>(call));
  if (kPerWord != kQuad) return single->type;
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType edge, TensorArg(call, kEdge));
  if (edge->rank > 0 || (edge->dtype && edge->dtype != kDataByte)) {
    return OpError(call, "expected one number of uint8 around the data, got " + Describe(edge));
  }
  return single->type;
}

// The weights, one in each element.
template <int kPerWord>
ReferenceTensor WeightsOf(const ReferenceTensor& words) {
  std::vector<int64_t> dims = words.dims;
  dims[kWords] *= kPerWord;
  ReferenceTensor weight = NewReference(kFactor, dims);
  constexpr int kBits = 32 / kPerWord;
  ForEachIndex(dims, [&](const Index& at, int64_t flat) {
    Index word = at;
    word[kWords] /= kPerWord;
    const int64_t shifted =
        words.ints[static_cast<size_t>(Flatten(words.dims, word))] >> (at[kWords] % kPerWord * kBits);
    weight.ints[static_cast<size_t>(flat)] =
        kPerWord == kPair ? int64_t{static_cast<int16_t>(shifted)} : int64_t{static_cast<int8_t>(shifted)};
  });
  return weight;
}

Result<std::vector<ReferenceTensor>> ReferencePairs(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const ir::Call single, SingleProducts<kPair>(call));
  return FindOp("nn.conv2d")->reference(single, std::vector<ReferenceTensor>{inputs[0], WeightsOf<kPair>(inputs[1])});
}

// A window without what lies around the image, which is subtracted from all of it, plus that times the window's weights.
Result<std::vector<ReferenceTensor>> ReferenceBytes(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const ir::Call single, SingleProducts<kQuad>(call));
  const ReferenceTensor weight = WeightsOf<kQuad>(inputs[1]);
  const int64_t edge = inputs[kEdge].ints[0];
  ReferenceTensor data = NewReference(kFactor, inputs[0].dims);
  for (size_t i = 0; i < data.ints.size(); ++i) data.ints[i] = inputs[0].ints[i] - edge;
  INGOT_ASSIGN_OR_RETURN(std::vector<ReferenceTensor> results,
                         FindOp("nn.conv2d")->reference(single, std::vector<ReferenceTensor>{data, weight}));
  std::vector<int64_t> sums(static_cast<size_t>(weight.dims[0] * kBlockOfChannels));
  ForEachIndex(weight.dims, [&](const Index& at, int64_t flat) {
    sums[static_cast<size_t>(at[0] * kBlockOfChannels + at[5])] += weight.ints[static_cast<size_t>(flat)];
  });
  ForEachIndex(results[0].dims, [&](const Index& at, int64_t flat) {
    results[0].ints[static_cast<size_t>(flat)] += edge * sums[static_cast<size_t>(at[1] * kBlockOfChannels + at[4])];
  });
  return results;
}

double WordsCost(const ir::Call& call, const Target&) {
  const Dims& weight = *ir::As<ir::TensorTypeNode>(call->args[1]->type)->dims;
  const WindowExtents window{
      .results = EstimateElements(call->type),
      .inputs = EstimateElements(call->args[0]->type),
      .taps = EstimateElements(TensorOf(Dims(weight.begin() + 1, weight.end() - 1), kProduct, nullptr))};
  return BlockedConvCost(window);
}

template <int kPerWord>
te::Tensor DefineWords(const TeArgs& args) {
  const ir::Attrs attrs = (*SingleProducts<kPerWord>(args.call()))->attrs;  // one value per axis
  const topi::BlockedWindow window{attrs.GetInts("strides"), attrs.GetInts("padding"), attrs.GetInts("dilation")};
  const ir::PrimExpr edge = kPerWord == kQuad ? args.input(kEdge)(te::Indices()) : ir::MakeConst(kFactor, 0);
  return topi::BlockedConv(args.input(0), args.input(1), window, attrs.GetInt("groups"), args.out_dims(), edge);
}

template <int kPerWord>
OpRow RowOfWords(const char* name, const char* summary) {
  const auto each = [](size_t count, int64_t value) { return ir::AttrValue::Ints(std::vector<int64_t>(count, value)); };
  OpRow row{.name = name,
            .summary = summary,
            .arg_names = {"data", "weight"},
            .attrs = {{"strides", AttrType::kInts, each(2, 1)},
                      {"padding", AttrType::kInts, each(4, 0)},
                      {"dilation", AttrType::kInts, each(2, 1)},
                      {"groups", AttrType::kInt, 1}},
            .infer = InferWords<kPerWord>,
            .reference = kPerWord == kPair ? ReferencePairs : ReferenceBytes,
            .implementations = {{"direct", Always, WordsCost, {}, Build<DefineWords<kPerWord>>}},
            .cases = {.rank0 = false, .non_finite = false, .dtypes = {DataOf<kPerWord>()}}};
  if (kPerWord == kQuad) row.arg_names.push_back("edge");
  return row;
}

}  // namespace

std::vector<OpRow> WordConvolutionOps() {
  return {RowOfWords<kPair>("nn.conv2d_pairs",
                            "nn.conv2d of int16 in int32: data NCHW16c, weights OIHW8i16o of two input channels each"),
          RowOfWords<kQuad>("nn.conv2d_bytes",
                            "nn.conv2d of uint8 by int8 in int32, `edge` around the data: data NCHW16c or in smaller "
                            "blocks, weights OIHW4i16o of four input channels each")};
}

}  // namespace ingot::op
