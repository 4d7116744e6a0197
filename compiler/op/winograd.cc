// The transformations around the products of Winograd's convolution (op/topi/winograd.h) over channels in blocks of 16.
// convert_layout makes these calls where they pay.
#include "compiler/op/topi/winograd.h"
#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/reference.h"

namespace ingot::op {
namespace {

constexpr int64_t kTile = topi::kWinogradTile, kPlaces = topi::kWinogradPlaces;

Result<Dims> KnownDims(const ir::Call& call, size_t rank) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType data, TensorArg(call, 0));
  if (!data->dims || data->dims->size() != rank || (data->dtype && !data->dtype->is_floating())) {
    return OpError(call, "expected floats of rank " + std::to_string(rank) + " and known dims, got " + Describe(data));
  }
  return *data->dims;
}
Result<std::optional<DataType>> ResultDataType(const ir::Call& call) {
  if (const std::optional<DataType> out_dtype = DataTypeAttr(call, "out_dtype")) return out_dtype;
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType data, TensorArg(call, 0));
  return data->dtype;
}

// Both transformations: a result is the sum over the places (y, x) of a tile of weight(result, y, x) times the element
// that from(result, y, x) names; outside of the data are zeros.
Result<std::vector<ReferenceTensor>> ReferenceTransform(
    const ir::Call& call, const ReferenceTensor& data,
    const std::function<double(const Index& at, int64_t y, int64_t x)>& weight,
    const std::function<Index(const Index& at, int64_t y, int64_t x)>& from) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  const auto is_inside = [&](const Index& index) {
    for (size_t i = 0; i < index.size(); ++i) {
      if (index[i] < 0 || index[i] >= data.dims[i]) return false;
    }
    return true;
  };
  ReferenceTensor out = NewReference(DataTypeAttr(call, "out_dtype").value_or(data.dtype), dims);
  ForEachIndex(dims, [&](const Index& at, int64_t flat) {
    double sum = 0;
    for (int64_t y = 0; y < kPlaces; ++y) {
      for (int64_t x = 0; x < kPlaces; ++x) {
        const Index index = from(at, y, x);
        if (is_inside(index)) sum += weight(at, y, x) * GetNumber(data, Flatten(data.dims, index));
      }
    }
    SetNumber(out, flat, sum);
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

Result<ir::Type> InferInput(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const Dims in, KnownDims(call, 5));
  const std::vector<int64_t> padding = call->attrs.GetInts("padding");
  if (padding.size() != 4) return OpError(call, "padding: expected four integers");
  Dims out = {in[0], ir::Int64(kPlaces), ir::Int64(kPlaces), in[1], nullptr, nullptr, in[4]};
  for (size_t i = 0; i < 2; ++i) {
    const ir::PrimExpr results = SimplifyDim(in[2 + i] + (padding[i] + padding[2 + i] - (kPlaces - kTile)));
    if (padding[i] < 0 || padding[2 + i] < 0 || ir::AsConstInt(results).value_or(0) < 0) {
      return OpError(call,
                     "expected data of at least 2 x 2 elements with its padding, got " + Describe(call->args[0]->type));
    }
    out[4 + i] = SimplifyDim(topi::WinogradTiles(results));
  }
  INGOT_ASSIGN_OR_RETURN(const std::optional<DataType> dtype, ResultDataType(call));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType data, TensorArg(call, 0));
  return TensorOf(std::move(out), dtype, data);
}

Result<std::vector<ReferenceTensor>> ReferenceInput(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const std::vector<int64_t> padding = call->attrs.GetInts("padding");
  return ReferenceTransform(
      call, inputs[0],
      [](const Index& at, int64_t y, int64_t x) {
        return topi::kWinogradInput[at[1]][y] * topi::kWinogradInput[at[2]][x];
      },
      [&](const Index& at, int64_t y, int64_t x) {
        return Index{at[0], at[3], at[4] * kTile + y - padding[0], at[5] * kTile + x - padding[1], at[6]};
      });
}

te::Tensor DefineInput(const TeArgs& args) {
  return topi::WinogradInput(args.input(0), args.call()->attrs.GetInts("padding"), args.out_dims(), args.out_dtype());
}
Result<ir::Type> InferOutput(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const Dims in, KnownDims(call, 7));
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> size, ShapeArg(call, 1));
  if (!size || size->size() != 2 || !ir::IsConstInt(in[1], kPlaces) || !ir::IsConstInt(in[2], kPlaces)) {
    return OpError(call, "expected 6 x 6 places and a size of two extents, got " + Describe(call->args[0]->type));
  }
  for (size_t i = 0; i < 2; ++i) {
    const auto tiles = ir::AsConstInt(in[4 + i]), extent = ir::AsConstInt((*size)[i]);
    if (tiles && extent && *extent > *tiles * kTile) {
      return OpError(call, "expected a size that the tiles cover, got " + Describe(call->args[0]->type));
    }
  }
  INGOT_ASSIGN_OR_RETURN(const std::optional<DataType> dtype, ResultDataType(call));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType data, TensorArg(call, 0));
  return TensorOf({in[0], in[3], (*size)[0], (*size)[1], in[6]}, dtype, data);
}

Result<std::vector<ReferenceTensor>> ReferenceOutput(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  return ReferenceTransform(
      call, inputs[0],
      [](const Index& at, int64_t y, int64_t x) {
        return topi::kWinogradOutput[at[2] % kTile][y] * topi::kWinogradOutput[at[3] % kTile][x];
      },
      [](const Index& at, int64_t y, int64_t x) {
        return Index{at[0], y, x, at[1], at[2] / kTile, at[3] / kTile, at[4]};
      });
}

te::Tensor DefineOutput(const TeArgs& args) {
  return topi::WinogradOutput(args.input(0), args.out_dims(), args.out_dtype());
}

}  // namespace

std::vector<OpRow> WinogradOps() {
  const CaseTraits cases{
      .rank0 = false, .non_finite = false, .dtypes = {DataType::Float(32), DataType::Float(16), DataType::Bfloat16()}};
  const AttrSpec out_dtype = {"out_dtype", AttrType::kDataType};
  std::vector<OpRow> rows;
  rows.push_back({.name = "nn.winograd_input",
                  .summary = "overlapping tiles of an image in blocks of channels, as Winograd's products take them",
                  .arg_names = {"data"},
                  .attrs = {{"padding", AttrType::kInts, ir::AttrValue::Ints({0, 0, 0, 0})}, out_dtype},
                  .fusion = FusionClass::kOpaque,
                  .infer = InferInput,
                  .reference = ReferenceInput,
                  // It reads each element several times: no producer is computed in its place.
                  .implementations = {{"te", Always, ElementsOfResult, {}, BuildAs<FusionClass::kOpaque, DefineInput>}},
                  .cases = cases});
  rows.push_back(
      {.name = "nn.winograd_output",
       .summary = "an image in blocks of channels from the tiles of Winograd's products",
       .arg_names = {"data", "size"},
       .attrs = {out_dtype},
       .fusion = FusionClass::kOutFusible,
       .infer = InferOutput,
       .reference = ReferenceOutput,
       // Its tiles are written as a whole: no other order of the result's elements is computed from them.
       .implementations = {{"te", Always, ElementsOfResult, {}, BuildAs<FusionClass::kOutFusible, DefineOutput>}},
       .cases = cases});
  return rows;
}

}  // namespace ingot::op
