// Operators of object detection: roi_align.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/statements.h"
#include "compiler/op/topi/reduction.h"

namespace ingot::op {
namespace {

// ---- vision.roi_align: every box is cut into pooled_size bins; a bin is the mean of sample_ratio^2 places, each
// interpolated between its four neighbours, the greatest of these places (mode "max_place", as TVM has it), or the
// greatest part that a neighbour has in one of them (mode "max", as ONNX has it); a ratio of 0 stands for as many
// places along an axis as the bin is elements long, rounded up. Places beyond the image by more than one count as 0.
// (He et al. 2017; ONNX RoiAlign.)
struct RoiCall {
  std::vector<int64_t> pooled;
  int64_t samples;  // 0: by the length of the bin
  double scale;
  bool aligned;  // boxes are moved by half an element; otherwise they are at least one element long
  bool is_max;
  bool takes_parts;  // the greatest is that of the parts of places
};
Result<RoiCall> ReadRoi(const ir::Call& call) {
  RoiCall roi{call->attrs.GetInts("pooled_size"),
              call->attrs.GetInt("sample_ratio"),
              call->attrs.GetFloat("spatial_scale"),
              call->attrs.GetBool("aligned"),
              false,
              false};
  if (roi.pooled.size() != 2 || roi.pooled[0] < 1 || roi.pooled[1] < 1) {
    return OpError(call, "pooled_size: expected two positive integers");
  }
  if (roi.samples < 0) {
    return OpError(call, "sample_ratio: expected an integer >= 0, got " + std::to_string(roi.samples));
  }
  const std::string& mode = call->attrs.GetString("mode");
  if (mode != "avg" && mode != "max" && mode != "max_place") {
    return OpError(call, "mode: expected avg, max or max_place, got \"" + mode + "\"");
  }
  roi.is_max = mode != "avg";
  roi.takes_parts = mode == "max";
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
  Dims dims = {boxes[0], in[1], ir::Int64(roi.pooled[0]), ir::Int64(roi.pooled[1])};
  for (size_t axis = 0; axis < in.size(); ++axis) INGOT_RETURN_IF_ERROR(CheckHasElements(call, data, axis, dims));
  return TensorOf(std::move(dims), dtype, data);
}

Result<std::vector<ReferenceTensor>> ReferenceRoiAlign(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const RoiCall roi, ReadRoi(call));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  const ReferenceTensor& data = inputs[0];
  ReferenceTensor out = NewReference(data.dtype, dims);
  const double offset = roi.aligned ? 0.5 : 0;
  ForEachIndex(dims, [&](const Index& at, int64_t flat) {
    const int64_t image = std::clamp<int64_t>(inputs[2].ints[static_cast<size_t>(at[0])], 0, data.dims[0] - 1);
    const auto corner = [&](int64_t i) { return GetNumber(inputs[1], at[0] * 4 + i) * roi.scale - offset; };
    double sum = 0, greatest = -std::numeric_limits<double>::infinity();
    double bins[2];
    std::vector<int64_t> samples;
    for (size_t axis : {0, 1}) {  // y, x
      double length = corner(axis == 0 ? 3 : 2) - corner(axis == 0 ? 1 : 0);
      if (!roi.aligned) length = std::max(length, 1.0);
      bins[axis] = length / static_cast<double>(roi.pooled[axis]);
      const auto as_long = static_cast<int64_t>(std::ceil(bins[axis]));
      samples.push_back(roi.samples > 0 ? roi.samples : std::max<int64_t>(as_long, 0));
    }
    ForEachIndex(samples, [&](const Index& sample, int64_t) {
      int64_t low[2], high[2];
      double fraction[2];
      bool is_inside = true;
      for (size_t axis : {0, 1}) {
        double place = corner(axis == 0 ? 1 : 0) + static_cast<double>(at[2 + axis]) * bins[axis] +
                       (static_cast<double>(sample[axis]) + 0.5) * bins[axis] / static_cast<double>(samples[axis]);
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
      greatest = std::max(greatest, roi.takes_parts ? most : value);
    });
    const int64_t count = samples[0] * samples[1];
    if (count == 0) greatest = 0;
    SetNumber(out, flat, roi.is_max ? greatest : sum / static_cast<double>(std::max<int64_t>(count, 1)));
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

PrimExpr Number(DataType dtype, double value) { return ir::MakeConst(dtype, value); }

// One side of a box: where it starts, and how long one of its bins is.
struct RoiSide {
  PrimExpr start, bin;
};
RoiSide SideOf(const RoiCall& roi, size_t axis, DataType wide, const std::function<PrimExpr(int64_t column)>& box) {
  const auto corner = [&](int64_t column) {
    return ir::Cast(wide, box(column)) * Number(wide, roi.scale) - Number(wide, roi.aligned ? 0.5 : 0);
  };
  const PrimExpr start = corner(axis == 0 ? 1 : 0);
  PrimExpr length = corner(axis == 0 ? 3 : 2) - start;
  if (!roi.aligned) length = ir::Max(length, Number(wide, 1));
  return {start, length / Number(wide, static_cast<double>(roi.pooled[axis]))};
}
// Place number `sample` of `samples` of a bin. Where bins are as long as they have samples, no step rounds: a sample
// right at the edge, behind which nothing counts, is there.
PrimExpr PlaceOf(const RoiSide& side, const PrimExpr& bin, const PrimExpr& sample, const PrimExpr& samples) {
  const DataType wide = side.start->dtype;
  const PrimExpr into_bin = (ir::Cast(wide, sample) + Number(wide, 0.5)) * side.bin / ir::Cast(wide, samples);
  return side.start + ir::Cast(wide, bin) * side.bin + into_bin;
}

// What a place along one axis lies between, and how far behind the first of them; places beyond the image by more than
// one are outside.
struct Neighbours {
  PrimExpr low, high, fraction, is_inside;
};
Neighbours NeighboursOf(const PrimExpr& place, const PrimExpr& extent) {
  const DataType wide = place->dtype;
  const PrimExpr last = extent - 1;
  const PrimExpr inner = ir::Max(ir::Min(place, ir::Cast(wide, last)), Number(wide, 0));
  const PrimExpr floor = ir::CallIntrinsic(ir::Intrinsic::kFloor, {inner});
  const PrimExpr position = ir::Cast(DataType::Int(64), floor);
  return {ir::Max(ir::Min(position, last), ir::Int64(0)), ir::Max(ir::Min(position + 1, last), ir::Int64(0)),
          inner - floor, ir::And(place >= Number(wide, -1), place <= ir::Cast(wide, extent))};
}

// The image between neighbours, in float32 or wider: interpolated, or the greatest of the four parts.
PrimExpr SampleImage(const RoiCall& roi, const Dims& dims, const PrimExpr& wanted_image, const Neighbours& y,
                     const Neighbours& x, const std::function<PrimExpr(PrimExpr image, PrimExpr y, PrimExpr x)>& load) {
  const DataType wide = y.fraction->dtype;
  const PrimExpr image = ir::Max(ir::Min(ir::Cast(DataType::Int(64), wanted_image), dims[0] - 1), ir::Int64(0));
  PrimExpr value;
  for (int part = 0; part < 4; ++part) {
    const bool below = part >= 2, right = part % 2 == 1;
    const PrimExpr one = Number(wide, 1);
    const PrimExpr weight = (below ? y.fraction : one - y.fraction) * (right ? x.fraction : one - x.fraction);
    const PrimExpr term = weight * ir::Cast(wide, load(image, below ? y.high : y.low, right ? x.high : x.low));
    value = part == 0 ? term : roi.takes_parts ? ir::Max(value, term) : value + term;
  }
  return ir::Select(ir::And(y.is_inside, x.is_inside), value, Number(wide, 0));
}

// The neighbours of the samples along one axis, by box, bin and sample: the same for all channels and for the bins of
// the other axis, so that they are stages of their own. All of them are kept: what is computed of one from another is
// computed for every channel.
class RoiTables {
 public:
  RoiTables(const te::Tensor& rois, const RoiCall& roi, size_t axis, const PrimExpr& extent, DataType wide) {
    const auto table = [&](const char* name, PrimExpr Neighbours::*part) {
      return te::Compute(
          {rois.shape()[0], ir::Int64(roi.pooled[axis]), ir::Int64(roi.samples)},
          [&](const te::Indices& i) {
            const RoiSide side = SideOf(roi, axis, wide, [&](int64_t column) { return rois(i[0], ir::Int64(column)); });
            return NeighboursOf(PlaceOf(side, i[1], i[2], ir::Int64(roi.samples)), extent).*part;
          },
          name);
    };
    low_ = table("roi_low", &Neighbours::low);
    high_ = table("roi_high", &Neighbours::high);
    fraction_ = table("roi_fraction", &Neighbours::fraction);
    is_inside_ = table("roi_inside", &Neighbours::is_inside);
  }
  Neighbours operator()(const PrimExpr& box, const PrimExpr& bin, const PrimExpr& sample) const {
    return {low_(box, bin, sample), high_(box, bin, sample), fraction_(box, bin, sample), is_inside_(box, bin, sample)};
  }

 private:
  te::Tensor low_, high_, fraction_, is_inside_;
};

te::Tensor DefineRoiAlign(const TeArgs& args) {
  const RoiCall roi = *ReadRoi(args.call());
  const te::Tensor& data = args.input(0);
  const te::Tensor& batch = args.input(2);
  const DataType wide = topi::WideType(data.dtype());
  const RoiTables y(args.input(1), roi, 0, data.shape()[2], wide), x(args.input(1), roi, 1, data.shape()[3], wide);
  const std::vector<ir::IterVar> samples = {te::ReduceAxis(ir::Int64(roi.samples), "ky"),
                                            te::ReduceAxis(ir::Int64(roi.samples), "kx")};
  const te::Tensor bins = te::Compute(
      args.out_dims(),
      [&](const te::Indices& i) {
        const PrimExpr value =
            SampleImage(roi, data.shape(), batch(i[0]), y(i[0], i[2], samples[0]->var), x(i[0], i[3], samples[1]->var),
                        [&](const PrimExpr& image, const PrimExpr& row, const PrimExpr& column) {
                          return data(image, i[1], row, column);
                        });
        return topi::ReduceOver(roi.is_max ? topi::Reducer::kMax : topi::Reducer::kSum, value, samples);
      },
      "roi_align");
  const double count = static_cast<double>(roi.samples) * static_cast<double>(roi.samples);
  const auto finish = [&](PrimExpr e) { return ir::Cast(data.dtype(), roi.is_max ? e : e * Number(wide, 1 / count)); };
  return topi::Map(bins, finish, "roi_bins");
}

// The samples of a bin along an axis: how many there are, and those that may lie in the image, from `begin` on. A box
// may be far longer than the image, and samples outside are zeros.
struct BinSamples {
  PrimExpr count, begin, steps;
};
// As many samples as the bin is long, so that neighbouring ones are at least half an element apart.
Stmt WithSamples(const char* name, const RoiSide& side, const PrimExpr& bin, const PrimExpr& extent,
                 const std::function<Stmt(const BinSamples&)>& body) {
  const DataType exact = DataType::Float(64);
  const PrimExpr zero = ir::Int64(0), as_long = ir::CallIntrinsic(ir::Intrinsic::kCeil, {side.bin});
  return Let("count_" + std::string(name), ir::Max(ir::Cast(kIndexDtype, as_long), zero), [&](const PrimExpr& count) {
    // The number of the sample at a place, or so many behind; any number where there is no such place.
    const auto sample_at = [&](const PrimExpr& place, int64_t behind) {
      const PrimExpr part = (place - ir::Cast(exact, side.start)) / ir::Cast(exact, side.bin) - ir::Cast(exact, bin);
      const PrimExpr many = ir::Cast(exact, count), at = ir::Max(ir::Min(part * many, many), Number(exact, 0));
      return ir::Max(ir::Min(ir::Cast(kIndexDtype, at) + behind, count), zero);
    };
    return Let("begin_" + std::string(name), sample_at(Number(exact, -1), -2), [&](const PrimExpr& begin) {
      const PrimExpr last = sample_at(ir::Cast(exact, extent), 2), most = (extent + 4) * int64_t{3};
      return Let("steps_" + std::string(name), ir::Max(ir::Min(last - begin, most), zero), [&](const PrimExpr& steps) {
        return body({count, begin, steps});
      });
    });
  });
}

// With as many samples as the bins are long: the number of iterations is data-dependent, so these are statements.
Statements DefineAdaptiveRoiAlign(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const RoiCall roi = *ReadRoi(args.call());
  const Buffer &data = inputs[0], &rois = inputs[1], &batch = inputs[2];
  const DataType wide = topi::WideType(data->dtype);
  const Buffer total = ir::MakeBuffer("total", wide, {ir::Int64(1)}, "local");
  const Places first = {ir::Int64(0)};
  const auto pool = [&](const Places& i, const RoiSide(&sides)[2], const BinSamples& y, const BinSamples& x) {
    const Stmt samples = Loops({y.steps, x.steps}, [&](const Places& s) {
      const PrimExpr row = PlaceOf(sides[0], i[2], y.begin + s[0], y.count);
      const PrimExpr column = PlaceOf(sides[1], i[3], x.begin + s[1], x.count);
      const PrimExpr value = SampleImage(roi, data->shape, Load(batch, {i[0]}), NeighboursOf(row, data->shape[2]),
                                         NeighboursOf(column, data->shape[3]),
                                         [&](const PrimExpr& image, const PrimExpr& at_y, const PrimExpr& at_x) {
                                           return Load(data, {image, i[1], at_y, at_x});
                                         });
      const PrimExpr sum = Load(total, first);
      return Store(total, roi.is_max ? ir::Max(sum, value) : sum + value, first);
    });
    // The greatest of no samples is 0, and so are those that are left out.
    const PrimExpr zero = ir::Int64(0);
    const PrimExpr is_none = ir::Or(ir::Equal(y.count, zero), ir::Equal(x.count, zero));
    const PrimExpr has_zeros = ir::Or(is_none, ir::Or(y.steps < y.count, x.steps < x.count));
    const PrimExpr start = roi.is_max ? ir::Select(has_zeros, Number(wide, 0), ir::MinValue(wide)) : Number(wide, 0);
    const PrimExpr count = ir::Max(ir::Cast(wide, y.count) * ir::Cast(wide, x.count), Number(wide, 1));
    const PrimExpr result = roi.is_max ? Load(total, first) : Load(total, first) / count;
    return ir::MakeSeq({Store(total, start, first), samples, Store(outputs[0], ir::Cast(data->dtype, result), i)});
  };
  const Stmt nest =
      SpatialNest("roi_align", outputs[0]->shape,
                  [&](const Places& i) {
                    const auto box = [&](int64_t column) { return Load(rois, {i[0], ir::Int64(column)}); };
                    const RoiSide sides[2] = {SideOf(roi, 0, wide, box), SideOf(roi, 1, wide, box)};
                    return WithSamples("y", sides[0], i[2], data->shape[2], [&](const BinSamples& y) {
                      return WithSamples("x", sides[1], i[3], data->shape[3],
                                         [&](const BinSamples& x) { return pool(i, sides, y, x); });
                    });
                  },
                  {total});
  return std::vector<Stmt>{nest};
}

bool HasFixedSamples(const ir::Call& call, const Target&) { return call->attrs.GetInt("sample_ratio") > 0; }
bool HasAdaptiveSamples(const ir::Call& call, const Target& target) { return !HasFixedSamples(call, target); }

double RoiCost(const ir::Call& call, const Target&) {
  const auto samples = std::max(static_cast<double>(call->attrs.GetInt("sample_ratio")), 2.0);
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
       .implementations = {{"fixed", HasFixedSamples, RoiCost, {}, Build<DefineRoiAlign>},
                           {"adaptive", HasAdaptiveSamples, RoiCost, {}, BuildStatements<DefineAdaptiveRoiAlign>}},
       .cases = {.rank0 = false,
                 .non_finite = false,
                 .dtypes = {DataType::Float(32), DataType::Float(16), DataType::Bfloat16(), DataType::Float(64)}}});
  return rows;
}

}  // namespace ingot::op
