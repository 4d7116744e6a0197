// Operators of object detection: roi_align.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/reduction.h"

namespace ingot::op {
namespace {

using ir::PrimExpr;

// ---- vision.roi_align: every box is cut into pooled_size bins; a bin is the mean (or the greatest part) of
// sample_ratio^2 places, each interpolated between its four neighbours. Places beyond the image by more than one count
// as 0. (He et al. 2017; ONNX RoiAlign.)
struct RoiCall {
  std::vector<int64_t> pooled;
  int64_t samples;
  double scale;
  bool aligned;  // boxes are moved by half an element; otherwise they are at least one element long
  bool is_max;
};
Result<RoiCall> ReadRoi(const ir::Call& call) {
  RoiCall roi{call->attrs.GetInts("pooled_size"), call->attrs.GetInt("sample_ratio"),
              call->attrs.GetFloat("spatial_scale"), call->attrs.GetBool("aligned"), false};
  if (roi.pooled.size() != 2 || roi.pooled[0] < 1 || roi.pooled[1] < 1) {
    return OpError(call, "pooled_size: expected two positive integers");
  }
  if (roi.samples < 1) {
    return OpError(call, "sample_ratio: expected a positive integer, got " + std::to_string(roi.samples));
  }
  const std::string& mode = call->attrs.GetString("mode");
  if (mode != "avg" && mode != "max") return OpError(call, "mode: expected avg or max, got \"" + mode + "\"");
  roi.is_max = mode == "max";
  return roi;
}

Result<ir::Type> InferRoiAlign(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType data, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType rois, TensorArg(call, 1));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType batch, TensorArg(call, 2));
  INGOT_ASSIGN_OR_RETURN(const RoiCall roi, ReadRoi(call));
  INGOT_ASSIGN_OR_RETURN(const std::optional<DataType> dtype, CommonDataType(call, data, rois));
  if (dtype && !dtype->is_floating()) return OpError(call, "expected floats, got " + Describe(data));
  if (batch->dtype && !(batch->dtype->is_integral() && !batch->dtype->is_bool())) {
    return OpError(call, "argument \"batch_indices\": expected integers, got " + Describe(batch));
  }
  if (!data->dims || !rois->dims || !batch->dims) return TensorOfRank(4, dtype, data);
  const Dims& in = *data->dims;
  const Dims& boxes = *rois->dims;
  if (in.size() != 4 || boxes.size() != 2 || batch->dims->size() != 1 || DimsDiffer(boxes[1], ir::Int64(4)) ||
      DimsDiffer(boxes[0], (*batch->dims)[0])) {
    return OpError(call, "expected data [n, c, h, w], rois [boxes, 4] and batch_indices [boxes], got " +
                             Describe(data) + ", " + Describe(rois) + " and " + Describe(batch));
  }
  for (const PrimExpr& dim : in) {
    if (ir::IsConstInt(dim, 0)) return OpError(call, "expected an image with elements, got " + Describe(data));
  }
  return TensorOf({boxes[0], in[1], ir::Int64(roi.pooled[0]), ir::Int64(roi.pooled[1])}, dtype, data);
}

Result<std::vector<ReferenceTensor>> ReferenceRoiAlign(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const RoiCall roi, ReadRoi(call));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  const ReferenceTensor& data = inputs[0];
  ReferenceTensor out = NewReference(data.dtype, dims);
  const double offset = roi.aligned ? 0.5 : 0;
  const auto samples = static_cast<double>(roi.samples);
  ForEachIndex(dims, [&](const Index& at, int64_t flat) {
    const int64_t image = std::clamp<int64_t>(inputs[2].ints[static_cast<size_t>(at[0])], 0, data.dims[0] - 1);
    const auto corner = [&](int64_t i) { return GetNumber(inputs[1], at[0] * 4 + i) * roi.scale - offset; };
    double sum = 0, greatest = -std::numeric_limits<double>::infinity();
    ForEachIndex(std::vector<int64_t>{roi.samples, roi.samples}, [&](const Index& sample, int64_t) {
      int64_t low[2], high[2];
      double fraction[2];
      bool is_inside = true;
      for (size_t axis : {0, 1}) {  // y, x
        double length = corner(axis == 0 ? 3 : 2) - corner(axis == 0 ? 1 : 0);
        if (!roi.aligned) length = std::max(length, 1.0);
        const double bin = length / static_cast<double>(roi.pooled[axis]);
        double place = corner(axis == 0 ? 1 : 0) + static_cast<double>(at[2 + axis]) * bin +
                       (static_cast<double>(sample[axis]) + 0.5) * bin / samples;
        const int64_t last = data.dims[2 + axis] - 1;
        is_inside = is_inside && place >= -1 && place <= static_cast<double>(last + 1);
        place = std::clamp(place, 0.0, static_cast<double>(last));
        low[axis] = static_cast<int64_t>(place);
        high[axis] = std::min(low[axis] + 1, last);
        fraction[axis] = place - static_cast<double>(low[axis]);
      }
      double value = 0, most = is_inside ? -std::numeric_limits<double>::infinity() : 0;
      for (int part = 0; part < 4 && is_inside; ++part) {
        const bool below = part >= 2, right = part % 2 == 1;
        const double weight = (below ? fraction[0] : 1 - fraction[0]) * (right ? fraction[1] : 1 - fraction[1]);
        const Index from = {image, at[1], below ? high[0] : low[0], right ? high[1] : low[1]};
        const double term = weight * GetNumber(data, Flatten(data.dims, from));
        value += term;
        most = std::max(most, term);
      }
      sum += value;
      greatest = std::max(greatest, most);
    });
    SetNumber(out, flat, roi.is_max ? greatest : sum / (samples * samples));
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

// The places of the samples along one axis: [boxes, bins, samples].
te::Tensor RoiPlaces(const te::Tensor& rois, const RoiCall& roi, size_t axis, DataType wide, std::string name) {
  const auto number = [&](double value) { return ir::MakeConst(wide, value); };
  return te::Compute(
      {rois.shape()[0], ir::Int64(roi.pooled[axis]), ir::Int64(roi.samples)},
      [&](const te::Indices& i) {
        const auto corner = [&](int64_t column) {
          return ir::Cast(wide, rois(i[0], ir::Int64(column))) * number(roi.scale) - number(roi.aligned ? 0.5 : 0);
        };
        const PrimExpr start = corner(axis == 0 ? 1 : 0);
        PrimExpr length = corner(axis == 0 ? 3 : 2) - start;
        if (!roi.aligned) length = ir::Max(length, number(1));
        const PrimExpr bin = length / number(static_cast<double>(roi.pooled[axis]));
        const PrimExpr part = (ir::Cast(wide, i[2]) + number(0.5)) / number(static_cast<double>(roi.samples));
        return start + (ir::Cast(wide, i[1]) + part) * bin;
      },
      std::move(name));
}

te::Tensor DefineRoiAlign(const TeArgs& args) {
  const RoiCall roi = *ReadRoi(args.call());
  const te::Tensor& data = args.input(0);
  const te::Tensor& batch = args.input(2);
  const DataType wide = topi::WideType(data.dtype());
  const te::Tensor places[] = {RoiPlaces(args.input(1), roi, 0, wide, "roi_y"),
                               RoiPlaces(args.input(1), roi, 1, wide, "roi_x")};
  const std::vector<ir::IterVar> samples = {te::ReduceAxis(ir::Int64(roi.samples), "ky"),
                                            te::ReduceAxis(ir::Int64(roi.samples), "kx")};
  const auto number = [&](double value) { return ir::MakeConst(wide, value); };
  const te::Tensor bins = te::Compute(
      args.out_dims(),
      [&](const te::Indices& i) {
        PrimExpr is_inside = ir::BoolImm(true);
        std::vector<PrimExpr> low, high, fraction;
        for (size_t axis : {0, 1}) {
          const PrimExpr place = places[axis](i[0], i[2 + axis], samples[axis]->var);
          const PrimExpr last = data.shape()[2 + axis] - 1;
          const PrimExpr length = ir::Cast(wide, data.shape()[2 + axis]);
          is_inside = ir::And(is_inside, ir::And(place >= number(-1), place <= length));
          const PrimExpr inner = ir::Max(ir::Min(place, ir::Cast(wide, last)), number(0));
          const PrimExpr floor = ir::CallIntrinsic(ir::Intrinsic::kFloor, {inner});
          const PrimExpr position = ir::Cast(DataType::Int(64), floor);
          low.push_back(ir::Max(ir::Min(position, last), ir::Int64(0)));
          high.push_back(ir::Max(ir::Min(position + 1, last), ir::Int64(0)));
          fraction.push_back(inner - floor);
        }
        const PrimExpr wanted = ir::Cast(DataType::Int(64), batch(i[0]));
        const PrimExpr image = ir::Max(ir::Min(wanted, data.shape()[0] - 1), ir::Int64(0));
        PrimExpr value;
        for (int part = 0; part < 4; ++part) {
          const bool below = part >= 2, right = part % 2 == 1;
          const PrimExpr weight =
              (below ? fraction[0] : number(1) - fraction[0]) * (right ? fraction[1] : number(1) - fraction[1]);
          const PrimExpr term =
              weight * ir::Cast(wide, data(image, i[1], below ? high[0] : low[0], right ? high[1] : low[1]));
          value = part == 0 ? term : roi.is_max ? ir::Max(value, term) : value + term;
        }
        const topi::Reducer reducer = roi.is_max ? topi::Reducer::kMax : topi::Reducer::kSum;
        return topi::ReduceOver(reducer, ir::Select(is_inside, value, number(0)), samples);
      },
      "roi_align");
  const double count = static_cast<double>(roi.samples) * static_cast<double>(roi.samples);
  const auto finish = [&](PrimExpr e) { return ir::Cast(data.dtype(), roi.is_max ? e : e * number(1 / count)); };
  return topi::Map(bins, finish, "roi_bins");
}

double RoiCost(const ir::Call& call, const Target&) {
  const auto samples = static_cast<double>(call->attrs.GetInt("sample_ratio"));
  return 10 * samples * samples * EstimateElements(call->type);
}

}  // namespace

std::vector<OpRow> VisionOps() {
  std::vector<OpRow> rows;
  rows.push_back(
      {.name = "vision.roi_align",
       .summary = "the image under each box [x1, y1, x2, y2], resampled to pooled_size",
       .arg_names = {"data", "rois", "batch_indices"},
       .attrs = {{"pooled_size", AttrType::kInts, {}, true},
                 {"spatial_scale", AttrType::kFloat, 1.0},
                 {"sample_ratio", AttrType::kInt, {}, true},
                 {"aligned", AttrType::kBool, false},
                 {"mode", AttrType::kString, "avg"}},
       .infer = InferRoiAlign,
       .reference = ReferenceRoiAlign,
       .implementations = {{"direct", Always, RoiCost, {}, Build<DefineRoiAlign>}},
       .cases = {.rank0 = false,
                 .non_finite = false,
                 .dtypes = {DataType::Float(32), DataType::Float(16), DataType::Bfloat16(), DataType::Float(64)}}});
  return rows;
}

}  // namespace ingot::op
