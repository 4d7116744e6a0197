// image.resize_weights: the windows of an antialiased resize (antialias.h) of lengths and scales that run time alone
// knows; the importer makes constants of others. `window_sum` takes them.
#include "compiler/op/antialias.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/statements.h"

namespace ingot::op {
namespace {

struct AntialiasCall {
  ir::PrimExpr in, out, taps;
  AntialiasScale scale;
  AntialiasFilter filter;
};

constexpr std::pair<std::string_view, AntialiasPlaces> kAntialiasModes[] = {
    {"half_pixel", AntialiasPlaces::kHalfPixel},
    {"pytorch_half_pixel", AntialiasPlaces::kPytorchHalfPixel},
    {"half_pixel_symmetric", AntialiasPlaces::kHalfPixelSymmetric},
    {"asymmetric", AntialiasPlaces::kAsymmetric},
    {"align_corners", AntialiasPlaces::kAlignCorners}};

// How far from a window's place elements have a weight where the data is not stretched.
double Reach(const AntialiasFilter& filter) { return filter.is_linear ? 1 : 2; }

Result<AntialiasCall> ReadAntialias(const ir::Call& call) {
  AntialiasCall a{};
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> lengths, ShapeArg(call, 0));
  if (!lengths || lengths->size() != 3) {
    return OpError(call, "expected the lengths of the data, of the result, and of the longest window");
  }
  a.in = (*lengths)[0];
  a.out = (*lengths)[1];
  a.taps = (*lengths)[2];
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> ratios, ShapeArg(call, 1));
  if (!ratios || ratios->size() % 2 != 0) return OpError(call, "expected pairs of lengths");
  a.scale.ratios = *ratios;
  a.scale.number = call->attrs.GetFloat("scale");
  if (ratios->empty() && !(a.scale.number > 0 && std::isfinite(a.scale.number))) {
    return OpError(call, "scale: expected a positive number, got " + std::to_string(a.scale.number));
  }
  const std::string& policy = call->attrs.GetString("policy");
  if (policy != "not_larger" && policy != "not_smaller") {
    return OpError(call, "policy: expected \"not_larger\" or \"not_smaller\", got \"" + policy + "\"");
  }
  a.scale.takes_greatest = policy == "not_smaller";
  const std::string& method = call->attrs.GetString("method");
  if (method != "linear" && method != "cubic") {
    return OpError(call, "method: expected \"linear\" or \"cubic\", got \"" + method + "\"");
  }
  const std::string& places = call->attrs.GetString("coordinate_transformation_mode");
  const auto found = FindAntialiasPlaces(places);
  if (!found) return OpError(call, "coordinate_transformation_mode: no antialias with \"" + places + "\"");
  a.filter = {method == "linear", call->attrs.GetFloat("cubic_alpha"), call->attrs.GetBool("cubic_exclude"), *found};
  return a;
}

Result<ir::Type> InferAntialias(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const AntialiasCall a, ReadAntialias(call));
  return ir::Type(ir::Make<ir::TupleTypeNode>(
      std::vector<ir::Type>{ir::Make<ir::TensorTypeNode>(Dims{a.out, a.taps}, DataType::Float(32)),
                            ir::Make<ir::TensorTypeNode>(Dims{a.out}, DataType::Int(64))}));
}

double AntialiasPlaceOf(AntialiasPlaces places, double i, double in, double out, double scale) {
  const double scaled = in * scale, half_pixel = (i + 0.5) / scale - 0.5;
  switch (places) {
    case AntialiasPlaces::kHalfPixel:
      return half_pixel;
    case AntialiasPlaces::kPytorchHalfPixel:
      return out > 1 ? half_pixel : 0;
    case AntialiasPlaces::kHalfPixelSymmetric:
      return in / 2 * (1 - out / scaled) + half_pixel;
    case AntialiasPlaces::kAsymmetric:
      return i / scale;
    case AntialiasPlaces::kAlignCorners:
      return scaled == 1 ? 0 : i * (in - 1) / (scaled - 1);
  }
  INGOT_UNREACHABLE();
}

// The kernel at a distance.
double AntialiasWeight(const AntialiasFilter& filter, double x) {
  const double a = filter.alpha;
  if (filter.is_linear) return std::max(1 - x, 0.0);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

Result<std::vector<ReferenceTensor>> ReferenceAntialias(const ir::Call& call, std::span<const ReferenceTensor>) {
  INGOT_ASSIGN_OR_RETURN(const AntialiasCall a, ReadAntialias(call));
  const auto constant = [](const ir::PrimExpr& x) { return ir::AsConstInt(x).value_or(0); };
  const int64_t in = constant(a.in), out = constant(a.out), taps = constant(a.taps);
  double scale = a.scale.number;
  const std::vector<ir::PrimExpr>& ratios = a.scale.ratios;
  for (size_t i = 0; i < ratios.size(); i += 2) {
    const double own = static_cast<double>(constant(ratios[i])) / static_cast<double>(constant(ratios[i + 1]));
    if (i == 0 || (a.scale.takes_greatest ? own > scale : own < scale)) scale = own;
  }
  const AntialiasWindows windows = MakeAntialiasWindows(a.filter, scale, in, out, taps);
  ReferenceTensor weights = NewReference(DataType::Float(32), {out, taps});
  ReferenceTensor begins = NewReference(DataType::Int(64), {out});
  for (int64_t k = 0; k < out * taps; ++k) SetNumber(weights, k, windows.weights[static_cast<size_t>(k)]);
  begins.ints = windows.begins;
  return std::vector<ReferenceTensor>{std::move(weights), std::move(begins)};
}

// ---- The kernel

const DataType kWide = DataType::Float(64);
ir::PrimExpr Real(double value) { return ir::FloatImm(kWide, value); }
ir::PrimExpr AsWide(const ir::PrimExpr& x) { return ir::Cast(kWide, x); }
ir::PrimExpr Rounded(ir::Intrinsic how, const ir::PrimExpr& x) {
  return ir::Cast(DataType::Int(64), ir::CallIntrinsic(how, {x}));
}

ir::PrimExpr ScaleOf(const AntialiasScale& a, const TeArgs& args) {
  ir::PrimExpr scale;
  for (size_t i = 0; i < a.ratios.size(); i += 2) {
    const ir::PrimExpr own = AsWide(args.Own(a.ratios[i])) / AsWide(args.Own(a.ratios[i + 1]));
    scale = scale == nullptr ? own : a.takes_greatest ? ir::Max(scale, own) : ir::Min(scale, own);
  }
  return scale == nullptr ? Real(a.number) : scale;
}

ir::PrimExpr PlaceIn(AntialiasPlaces places, const ir::PrimExpr& i, const ir::PrimExpr& in, const ir::PrimExpr& out,
                     const ir::PrimExpr& scale) {
  const ir::PrimExpr scaled = AsWide(in) * scale, half_pixel = (AsWide(i) + Real(0.5)) / scale - Real(0.5);
  switch (places) {
    case AntialiasPlaces::kHalfPixel:
      return half_pixel;
    case AntialiasPlaces::kPytorchHalfPixel:
      return ir::Select(ir::Int64(1) < out, half_pixel, Real(0));
    case AntialiasPlaces::kHalfPixelSymmetric:
      return AsWide(in) * Real(0.5) * (Real(1) - AsWide(out) / scaled) + half_pixel;
    case AntialiasPlaces::kAsymmetric:
      return AsWide(i) / scale;
    case AntialiasPlaces::kAlignCorners:
      return ir::Select(ir::Equal(scaled, Real(1)), Real(0), AsWide(i) * AsWide(in - 1) / (scaled - Real(1)));
  }
  INGOT_UNREACHABLE();
}

ir::PrimExpr WeightAt(const AntialiasFilter& a, const ir::PrimExpr& x) {
  if (a.is_linear) return ir::Max(Real(1) - x, Real(0));
  const ir::PrimExpr near = ((Real(a.alpha + 2) * x - Real(a.alpha + 3)) * x) * x + Real(1);
  const ir::PrimExpr far = ((Real(a.alpha) * x - Real(5 * a.alpha)) * x + Real(8 * a.alpha)) * x - Real(4 * a.alpha);
  return ir::Select(x <= Real(1), near, ir::Select(x < Real(2), far, Real(0)));
}

// As MakeAntialiasWindows has it. Outputs: weights, begins.
Statements DefineAntialias(const TeArgs& args, const Buffers&, const Buffers& outputs) {
  const AntialiasCall a = *ReadAntialias(args.call());
  const ir::PrimExpr in = args.Own(a.in), out = outputs[0]->shape[0], taps = outputs[0]->shape[1];
  const ir::PrimExpr zero = ir::Int64(0), scale = ScaleOf(a.scale, args), shrink = ir::Min(scale, Real(1));
  const auto inside = [&](const ir::PrimExpr& k) { return ir::Max(ir::Min(k, in - 1), zero); };
  const Buffer sum = ir::MakeBuffer("sum", kWide, {ir::Int64(1)}, "local");
  const auto window = [&](const ir::PrimExpr& i, const ir::PrimExpr& place) {
    const ir::PrimExpr support = Real(Reach(a.filter)) / shrink;
    const auto add = [&](const ir::PrimExpr& k) {
      const ir::PrimExpr x = ir::CallIntrinsic(ir::Intrinsic::kFabs, {AsWide(k) - place}) * shrink;
      const Stmt one = Let("weight", WeightAt(a.filter, x), [&](const ir::PrimExpr& weight) {
        const ir::PrimExpr slot = ir::Max(ir::Min(inside(k) - Load(outputs[1], {i}), taps - 1), zero);
        return Let("slot", slot, [&](const ir::PrimExpr& t) {
          const ir::PrimExpr more = AsWide(Load(outputs[0], {i, t})) + weight;
          return ir::MakeSeq({Store(outputs[0], ir::Cast(DataType::Float(32), more), {i, t}),
                              Store(sum, Load(sum, {zero}) + weight, {zero})});
        });
      });
      return a.filter.exclude_outside ? If(ir::And(k >= zero, k < in), one) : one;
    };
    return Let("first", Rounded(ir::Intrinsic::kFloor, place - support) + 1, [&](const ir::PrimExpr& first) {
      const ir::PrimExpr count = Rounded(ir::Intrinsic::kCeil, place + support) - first;
      return ir::MakeSeq({Store(outputs[1], inside(first), {i}),
                          Loop(count, [&](const ir::PrimExpr& tap) { return add(first + tap); })});
    });
  };
  const Stmt nest = SpatialNest("antialias_windows", {out},
                                [&](const Places& at) {
                                  const ir::PrimExpr& i = at[0];
                                  const Stmt clear = Loop(taps, [&](const ir::PrimExpr& t) {
                                    return Store(outputs[0], ir::FloatImm(DataType::Float(32), 0), {i, t});
                                  });
                                  const Stmt fill = Let("place", PlaceIn(a.filter.places, i, in, out, scale),
                                                        [&](const ir::PrimExpr& place) { return window(i, place); });
                                  const Stmt divide = Loop(taps, [&](const ir::PrimExpr& t) {
                                    const ir::PrimExpr share = AsWide(Load(outputs[0], {i, t})) / Load(sum, {zero});
                                    return Store(outputs[0], ir::Cast(DataType::Float(32), share), {i, t});
                                  });
                                  const ir::PrimExpr is_filled = ir::And(zero < in, zero < taps);
                                  return ir::MakeSeq({Store(sum, Real(0), {zero}), Store(outputs[1], zero, {i}), clear,
                                                      If(is_filled, ir::MakeSeq({fill, divide}))});
                                },
                                {sum});
  return {{nest}};
}

double AntialiasCost(const ir::Call& call, const Target&) { return EstimateElements(call->type); }

}  // namespace

std::optional<AntialiasPlaces> FindAntialiasPlaces(std::string_view mode) {
  const auto* found = std::ranges::find(kAntialiasModes, mode, [](const auto& row) { return row.first; });
  return found == std::end(kAntialiasModes) ? std::nullopt : std::optional(found->second);
}

ir::PrimExpr AntialiasTaps(const AntialiasFilter& filter, const AntialiasScale& scale, const ir::PrimExpr& in) {
  constexpr double kMost = int64_t{1} << 40;
  // The elements between place - support and place + support, and one for what rounds.
  const auto reach = static_cast<int64_t>(2 * Reach(filter));
  ir::PrimExpr span;
  for (size_t i = 0; i < scale.ratios.size(); i += 2) {
    const ir::PrimExpr own = ir::FloorDiv(scale.ratios[i + 1] * reach, ir::Max(scale.ratios[i], ir::Int64(1)));
    span = span == nullptr ? own : scale.takes_greatest ? ir::Min(span, own) : ir::Max(span, own);
  }
  if (span == nullptr) {
    span = ir::Int64(static_cast<int64_t>(std::min(static_cast<double>(reach) / std::min(scale.number, 1.0), kMost)));
  }
  const ir::PrimExpr taps = ir::Max(span, ir::Int64(reach)) + int64_t{2};
  return SimplifyDim(ir::Min(taps, ir::Max(in, ir::Int64(1))));
}

AntialiasWindows MakeAntialiasWindows(const AntialiasFilter& filter, double scale, int64_t in, int64_t out,
                                      int64_t taps) {
  AntialiasWindows windows{std::vector<double>(static_cast<size_t>(out * taps)),
                           std::vector<int64_t>(static_cast<size_t>(out))};
  const double shrink = std::min(scale, 1.0), support = Reach(filter) / shrink;
  for (int64_t i = 0; i < out && in > 0 && taps > 0; ++i) {
    const double place = AntialiasPlaceOf(filter.places, static_cast<double>(i), static_cast<double>(in),
                                          static_cast<double>(out), scale);
    const std::span<double> window = std::span(windows.weights).subspan(static_cast<size_t>(i * taps));
    const int64_t first = static_cast<int64_t>(std::floor(place - support)) + 1;
    const auto end = static_cast<int64_t>(std::ceil(place + support));
    const int64_t begin = std::clamp<int64_t>(first, 0, in - 1);
    windows.begins[static_cast<size_t>(i)] = begin;
    double sum = 0;
    for (int64_t k = first; k < end; ++k) {
      if (filter.exclude_outside && (k < 0 || k >= in)) continue;
      const double weight = AntialiasWeight(filter, std::fabs(static_cast<double>(k) - place) * shrink);
      window[static_cast<size_t>(std::min(std::clamp<int64_t>(k, 0, in - 1) - begin, taps - 1))] += weight;
      sum += weight;
    }
    for (double& weight : window.first(static_cast<size_t>(taps))) weight /= sum;
  }
  return windows;
}

std::vector<OpRow> AntialiasOps() {
  return {
      {.name = "image.resize_weights",
       .summary =
           "weights [out, taps] and begins [out] of an antialiased resize's windows, of lengths that run time may know",
       .arg_names = {"lengths", "ratios"},
       .attrs = {{"scale", AttrType::kFloat, 0.0},
                 {"policy", AttrType::kString, "not_larger"},
                 {"method", AttrType::kString, "linear"},
                 {"coordinate_transformation_mode", AttrType::kString, "half_pixel"},
                 {"cubic_alpha", AttrType::kFloat, -0.75},
                 {"cubic_exclude", AttrType::kBool, false}},
       .infer = InferAntialias,
       .reference = ReferenceAntialias,
       .implementations = {{"taps", Always, AntialiasCost, {}, BuildStatements<DefineAntialias>}},
       .cases = {.rank0 = false, .non_finite = false, .dtypes = {DataType::Float(32)}}}};
}

}  // namespace ingot::op
