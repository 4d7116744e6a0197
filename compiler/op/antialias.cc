// Weights of a resize by an antialias: a matrix [in, out] of how much of element k of the data element i of the result
// takes. The kernel of the interpolation is stretched where the result is smaller. Positions outside of the data get
// the nearest element's value, or have no weight; each column adds up to 1. What run time knows alone, lengths and
// scales, makes this an operator; the importer computes constant matrices itself.
#include <algorithm>
#include <cmath>
#include <string>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/statements.h"

namespace ingot::op {
namespace {

enum class AntialiasPlaces : uint8_t { kHalfPixel, kPytorchHalfPixel, kHalfPixelSymmetric, kAsymmetric, kAlignCorners };

struct AntialiasCall {
  ir::PrimExpr in, out;
  std::vector<ir::PrimExpr> ratios;  // pairs of lengths, of whose quotients the scale is the least or the greatest
  double scale;                      // without ratios
  bool takes_greatest, is_linear, exclude_outside;
  AntialiasPlaces places;
  double alpha;
};

Result<AntialiasCall> ReadAntialias(const ir::Call& call) {
  AntialiasCall a{};
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> lengths, ShapeArg(call, 0));
  if (!lengths || lengths->size() != 2) return OpError(call, "expected the lengths of the data and of the result");
  a.in = (*lengths)[0];
  a.out = (*lengths)[1];
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> ratios, ShapeArg(call, 1));
  if (!ratios || ratios->size() % 2 != 0) return OpError(call, "expected pairs of lengths");
  a.ratios = *ratios;
  a.scale = call->attrs.GetFloat("scale");
  if (a.ratios.empty() && !(a.scale > 0 && std::isfinite(a.scale))) {
    return OpError(call, "scale: expected a positive number, got " + std::to_string(a.scale));
  }
  const std::string& policy = call->attrs.GetString("policy");
  if (policy != "not_larger" && policy != "not_smaller") {
    return OpError(call, "policy: expected \"not_larger\" or \"not_smaller\", got \"" + policy + "\"");
  }
  a.takes_greatest = policy == "not_smaller";
  const std::string& method = call->attrs.GetString("method");
  if (method != "linear" && method != "cubic") {
    return OpError(call, "method: expected \"linear\" or \"cubic\", got \"" + method + "\"");
  }
  a.is_linear = method == "linear";
  constexpr std::pair<std::string_view, AntialiasPlaces> kPlaces[] = {
      {"half_pixel", AntialiasPlaces::kHalfPixel},
      {"pytorch_half_pixel", AntialiasPlaces::kPytorchHalfPixel},
      {"half_pixel_symmetric", AntialiasPlaces::kHalfPixelSymmetric},
      {"asymmetric", AntialiasPlaces::kAsymmetric},
      {"align_corners", AntialiasPlaces::kAlignCorners}};
  const std::string& places = call->attrs.GetString("coordinate_transformation_mode");
  const auto* found = std::ranges::find(kPlaces, std::string_view(places), [](const auto& row) { return row.first; });
  if (found == std::end(kPlaces)) {
    return OpError(call, "coordinate_transformation_mode: no antialias with \"" + places + "\"");
  }
  a.places = found->second;
  a.alpha = call->attrs.GetFloat("cubic_alpha");
  a.exclude_outside = call->attrs.GetBool("cubic_exclude");
  return a;
}

Result<ir::Type> InferAntialias(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const AntialiasCall a, ReadAntialias(call));
  return ir::Type(ir::Make<ir::TensorTypeNode>(std::vector<ir::PrimExpr>{a.in, a.out}, DataType::Float(32)));
}

double AntialiasPlaceOf(const AntialiasCall& a, double i, double in, double out, double scale) {
  const double scaled = in * scale, half_pixel = (i + 0.5) / scale - 0.5;
  switch (a.places) {
    case AntialiasPlaces::kHalfPixel:
      return half_pixel;
    case AntialiasPlaces::kPytorchHalfPixel:
      return out > 1 ? half_pixel : -0.5;
    case AntialiasPlaces::kHalfPixelSymmetric:
      return in / 2 * (1 - out / scaled) + half_pixel;
    case AntialiasPlaces::kAsymmetric:
      return i / scale;
    case AntialiasPlaces::kAlignCorners:
      return scaled == 1 ? 0 : i * (in - 1) / (scaled - 1);
  }
  INGOT_UNREACHABLE();
}

Result<std::vector<ReferenceTensor>> ReferenceAntialias(const ir::Call& call, std::span<const ReferenceTensor>) {
  INGOT_ASSIGN_OR_RETURN(const AntialiasCall a, ReadAntialias(call));
  const auto constant = [](const ir::PrimExpr& x) { return ir::AsConstInt(x).value_or(0); };
  const int64_t in = constant(a.in), out = constant(a.out);
  double scale = a.scale;
  for (size_t i = 0; i < a.ratios.size(); i += 2) {
    const double own = static_cast<double>(constant(a.ratios[i])) / static_cast<double>(constant(a.ratios[i + 1]));
    if (i == 0 || (a.takes_greatest ? own > scale : own < scale)) scale = own;
  }
  ReferenceTensor weights = NewReference(DataType::Float(32), {in, out});
  const double shrink = std::min(scale, 1.0), support = (a.is_linear ? 1 : 2) / shrink;
  for (int64_t i = 0; i < out && in > 0; ++i) {
    const double place =
        AntialiasPlaceOf(a, static_cast<double>(i), static_cast<double>(in), static_cast<double>(out), scale);
    std::vector<double> column(static_cast<size_t>(in));
    double sum = 0;
    const auto last = static_cast<int64_t>(std::ceil(place + support));
    for (auto k = static_cast<int64_t>(std::floor(place - support)); k <= last; ++k) {
      if (a.exclude_outside && (k < 0 || k >= in)) continue;
      const double x = std::fabs(static_cast<double>(k) - place) * shrink;
      double weight = std::max(1 - x, 0.0);
      if (!a.is_linear) {
        weight = x <= 1   ? ((a.alpha + 2) * x - (a.alpha + 3)) * x * x + 1
                 : x < 2 ? ((a.alpha * x - 5 * a.alpha) * x + 8 * a.alpha) * x - 4 * a.alpha
                         : 0;
      }
      column[static_cast<size_t>(std::clamp<int64_t>(k, 0, in - 1))] += weight;
      sum += weight;
    }
    for (int64_t k = 0; k < in; ++k) SetNumber(weights, k * out + i, column[static_cast<size_t>(k)] / sum);
  }
  return OneReference(std::move(weights));
}

// ---- The kernel

const DataType kWide = DataType::Float(64);
ir::PrimExpr Real(double value) { return ir::FloatImm(kWide, value); }
ir::PrimExpr AsWide(const ir::PrimExpr& x) { return ir::Cast(kWide, x); }
ir::PrimExpr Rounded(ir::Intrinsic how, const ir::PrimExpr& x) {
  return ir::Cast(DataType::Int(64), ir::CallIntrinsic(how, {x}));
}

ir::PrimExpr ScaleOf(const AntialiasCall& a, const TeArgs& args) {
  ir::PrimExpr scale;
  for (size_t i = 0; i < a.ratios.size(); i += 2) {
    const ir::PrimExpr own = AsWide(args.Own(a.ratios[i])) / AsWide(args.Own(a.ratios[i + 1]));
    scale = scale == nullptr ? own : a.takes_greatest ? ir::Max(scale, own) : ir::Min(scale, own);
  }
  return scale == nullptr ? Real(a.scale) : scale;
}

ir::PrimExpr PlaceIn(const AntialiasCall& a, const ir::PrimExpr& i, const ir::PrimExpr& in, const ir::PrimExpr& out,
                     const ir::PrimExpr& scale) {
  const ir::PrimExpr scaled = AsWide(in) * scale, half_pixel = (AsWide(i) + Real(0.5)) / scale - Real(0.5);
  switch (a.places) {
    case AntialiasPlaces::kHalfPixel:
      return half_pixel;
    case AntialiasPlaces::kPytorchHalfPixel:
      return ir::Select(ir::Int64(1) < out, half_pixel, Real(-0.5));
    case AntialiasPlaces::kHalfPixelSymmetric:
      return AsWide(in) * Real(0.5) * (Real(1) - AsWide(out) / scaled) + half_pixel;
    case AntialiasPlaces::kAsymmetric:
      return AsWide(i) / scale;
    case AntialiasPlaces::kAlignCorners:
      return ir::Select(ir::Equal(scaled, Real(1)), Real(0), AsWide(i) * AsWide(in - 1) / (scaled - Real(1)));
  }
  INGOT_UNREACHABLE();
}

ir::PrimExpr WeightAt(const AntialiasCall& a, const ir::PrimExpr& x) {
  if (a.is_linear) return ir::Max(Real(1) - x, Real(0));
  const ir::PrimExpr near = ((Real(a.alpha + 2) * x - Real(a.alpha + 3)) * x) * x + Real(1);
  const ir::PrimExpr far = ((Real(a.alpha) * x - Real(5 * a.alpha)) * x + Real(8 * a.alpha)) * x - Real(4 * a.alpha);
  return ir::Select(x <= Real(1), near, ir::Select(x < Real(2), far, Real(0)));
}

Statements DefineAntialias(const TeArgs& args, const Buffers&, const Buffers& outputs) {
  const AntialiasCall a = *ReadAntialias(args.call());
  const ir::PrimExpr in = outputs[0]->shape[0], out = outputs[0]->shape[1], zero = ir::Int64(0);
  const ir::PrimExpr scale = ScaleOf(a, args), shrink = ir::Min(scale, Real(1));
  const Buffer sum = ir::MakeBuffer("sum", kWide, {ir::Int64(1)}, "local");
  const Stmt nest = SpatialNest(
      "antialias_weights", {out},
      [&](const Places& at) {
        const ir::PrimExpr i = at[0], support = Real(a.is_linear ? 1 : 2) / shrink;
        const Stmt clear = Loop(in, [&](const ir::PrimExpr& k) {
          return Store(outputs[0], ir::FloatImm(DataType::Float(32), 0), {k, i});
        });
        const Stmt add = Let("place", PlaceIn(a, i, in, out, scale), [&](const ir::PrimExpr& place) {
          return Let("first", Rounded(ir::Intrinsic::kFloor, place - support), [&](const ir::PrimExpr& first) {
            const ir::PrimExpr count = Rounded(ir::Intrinsic::kCeil, place + support) - first + 1;
            return Loop(count, [&](const ir::PrimExpr& tap) {
              const ir::PrimExpr k = first + tap;
              const ir::PrimExpr x = ir::CallIntrinsic(ir::Intrinsic::kFabs, {AsWide(k) - place}) * shrink;
              const Stmt one = Let("weight", WeightAt(a, x), [&](const ir::PrimExpr& weight) {
                return Let("row", ir::Max(ir::Min(k, in - 1), zero), [&](const ir::PrimExpr& row) {
                  const ir::PrimExpr more = AsWide(Load(outputs[0], {row, i})) + weight;
                  return ir::MakeSeq({Store(outputs[0], ir::Cast(DataType::Float(32), more), {row, i}),
                                      Store(sum, Load(sum, {zero}) + weight, {zero})});
                });
              });
              return a.exclude_outside ? If(ir::And(k >= zero, k < in), one) : one;
            });
          });
        });
        const Stmt divide = Loop(in, [&](const ir::PrimExpr& k) {
          const ir::PrimExpr share = AsWide(Load(outputs[0], {k, i})) / Load(sum, {zero});
          return Store(outputs[0], ir::Cast(DataType::Float(32), share), {k, i});
        });
        return ir::MakeSeq({Store(sum, Real(0), {zero}), clear, If(zero < in, ir::MakeSeq({add, divide}))});
      },
      {sum});
  return {{nest}};
}

double AntialiasCost(const ir::Call& call, const Target&) { return EstimateElements(call->type); }

}  // namespace

std::vector<OpRow> AntialiasOps() {
  return {{.name = "image.resize_weights",
           .summary = "the matrix [in, out] of a resize with antialias, of lengths and scales that run time may know",
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
