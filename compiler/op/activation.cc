// Activation functions with parameters, and those of several steps: one row of kActivations each (name, attributes,
// float64 reference, scalar expression), from which the operator's row is made. Expressions are written for float32 and
// wider; sixteen-bit floats are widened first. Below: prelu, which takes a tensor of slopes.
#include <algorithm>
#include <cmath>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/elementwise.h"

namespace ingot::op {
namespace {

using ir::CallIntrinsic;
using ir::Intrinsic;
using ir::PrimExpr;

PrimExpr C(const PrimExpr& like, double value) { return ir::MakeConst(like->dtype, value); }
PrimExpr Exp(PrimExpr x) { return CallIntrinsic(Intrinsic::kExp, {std::move(x)}); }

// exp(x) - 1 without cancellation: 2 t / (1 - t) with t = tanh(x / 2).
PrimExpr Expm1(const PrimExpr& x) {
  const PrimExpr t = CallIntrinsic(Intrinsic::kTanh, {x * C(x, 0.5)});
  return C(x, 2) * t / (C(x, 1) - t);
}
PrimExpr Clamp01(const PrimExpr& x) { return ir::Max(ir::Min(x, C(x, 1)), C(x, 0)); }

double Clamp01(double x) { return std::isnan(x) ? x : std::clamp(x, 0.0, 1.0); }
double Softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

struct ActivationOp {
  const char* name;
  const char* summary;
  std::vector<AttrSpec> attrs;
  double (*reference)(double x, const ir::Attrs& attrs);
  PrimExpr (*expr)(const PrimExpr& x, const ir::Attrs& attrs);
};

const std::vector<ActivationOp>& Activations() {
  static const std::vector<ActivationOp> rows = {
      {"nn.celu",
       "max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))",
       {{"alpha", AttrType::kFloat, 1.0}},
       [](double x, const ir::Attrs& a) {
         return x > 0 || std::isnan(x) ? x : a.GetFloat("alpha") * std::expm1(x / a.GetFloat("alpha"));
       },
       [](const PrimExpr& x, const ir::Attrs& a) {
         const double alpha = a.GetFloat("alpha");
         return ir::Select(x > C(x, 0), x, C(x, alpha) * Expm1(x * C(x, 1 / alpha)));
       }},
      {"nn.elu",
       "x, or alpha * (exp(x) - 1) where negative",
       {{"alpha", AttrType::kFloat, 1.0}},
       [](double x, const ir::Attrs& a) { return x > 0 || std::isnan(x) ? x : a.GetFloat("alpha") * std::expm1(x); },
       [](const PrimExpr& x, const ir::Attrs& a) {
         return ir::Select(x > C(x, 0), x, C(x, a.GetFloat("alpha")) * Expm1(x));
       }},
      {"nn.hard_sigmoid",
       "alpha * x + beta limited to [0, 1]",
       {{"alpha", AttrType::kFloat, 0.2}, {"beta", AttrType::kFloat, 0.5}},
       [](double x, const ir::Attrs& a) { return Clamp01(a.GetFloat("alpha") * x + a.GetFloat("beta")); },
       [](const PrimExpr& x, const ir::Attrs& a) {
         return Clamp01(x * C(x, a.GetFloat("alpha")) + C(x, a.GetFloat("beta")));
       }},
      {"nn.hard_swish",
       "x times x / 6 + 1 / 2 limited to [0, 1]",
       {},
       [](double x, const ir::Attrs&) { return x * Clamp01(x / 6 + 0.5); },
       [](const PrimExpr& x, const ir::Attrs&) { return x * Clamp01(x * C(x, 1.0 / 6) + C(x, 0.5)); }},
      {"nn.mish",
       "x * tanh(log(1 + exp(x)))",
       {},
       [](double x, const ir::Attrs&) { return x * std::tanh(Softplus(x)); },
       // tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2); from 40 on it is 1.
       [](const PrimExpr& x, const ir::Attrs&) {
         const PrimExpr e = Exp(ir::Min(x, C(x, 40)));
         const PrimExpr n = e * (e + C(x, 2));
         return x * (n / (n + C(x, 2)));
       }},
      {"nn.selu",
       "scale * x, or scale * alpha * (exp(x) - 1) where negative",
       {{"alpha", AttrType::kFloat, 1.6732632423543772}, {"scale", AttrType::kFloat, 1.0507009873554805}},
       [](double x, const ir::Attrs& a) {
         return a.GetFloat("scale") * (x > 0 || std::isnan(x) ? x : a.GetFloat("alpha") * std::expm1(x));
       },
       [](const PrimExpr& x, const ir::Attrs& a) {
         return C(x, a.GetFloat("scale")) * ir::Select(x > C(x, 0), x, C(x, a.GetFloat("alpha")) * Expm1(x));
       }},
      {"nn.shrink",
       "x moved towards 0 by bias, or 0 where |x| <= lambd",
       {{"lambd", AttrType::kFloat, 0.5}, {"bias", AttrType::kFloat, 0.0}},
       [](double x, const ir::Attrs& a) {
         const double lambd = a.GetFloat("lambd");
         return x > lambd ? x - a.GetFloat("bias") : x < -lambd ? x + a.GetFloat("bias") : 0.0;
       },
       [](const PrimExpr& x, const ir::Attrs& a) {
         const PrimExpr lambd = C(x, a.GetFloat("lambd"));
         const PrimExpr bias = C(x, a.GetFloat("bias"));
         return ir::Select(x > lambd, x - bias, ir::Select(x < C(x, -a.GetFloat("lambd")), x + bias, C(x, 0)));
       }},
      {"nn.softplus",
       "log(1 + exp(beta * x)) / beta; x where beta * x > threshold",
       {{"beta", AttrType::kFloat, 1.0}, {"threshold", AttrType::kFloat, 20.0}},
       [](double x, const ir::Attrs& a) {
         const double scaled = x * a.GetFloat("beta");
         return scaled > a.GetFloat("threshold") ? x : Softplus(scaled) / a.GetFloat("beta");
       },
       [](const PrimExpr& x, const ir::Attrs& a) {
         const double beta = a.GetFloat("beta");
         const PrimExpr scaled = beta == 1 ? x : x * C(x, beta);
         const PrimExpr soft = CallIntrinsic(Intrinsic::kLog1p, {Exp(scaled)}) * C(x, 1 / beta);
         return ir::Select(scaled > C(x, a.GetFloat("threshold")), x, soft);
       }},
      {"nn.softsign",
       "x / (1 + |x|)",
       {},
       [](double x, const ir::Attrs&) { return x / (1 + std::fabs(x)); },
       [](const PrimExpr& x, const ir::Attrs&) { return x / (C(x, 1) + CallIntrinsic(Intrinsic::kFabs, {x})); }},
      {"nn.thresholded_relu",
       "x, or 0 where not above alpha",
       {{"alpha", AttrType::kFloat, 1.0}},
       [](double x, const ir::Attrs& a) { return x > a.GetFloat("alpha") ? x : 0.0; },
       [](const PrimExpr& x, const ir::Attrs& a) { return ir::Select(x > C(x, a.GetFloat("alpha")), x, C(x, 0)); }},
  };
  return rows;
}

const ActivationOp& ActivationOf(const ir::Call& call) {
  const std::string_view name = RowOf(call)->name;
  for (const ActivationOp& activation : Activations()) {
    if (name == activation.name) return activation;
  }
  INGOT_UNREACHABLE("no activation function");
}

Result<ir::Type> InferActivation(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  if (x->dtype && !x->dtype->is_floating()) return OpError(call, "expected a float, got " + Describe(x));
  return ir::Type(x);
}

Result<std::vector<ReferenceTensor>> ReferenceActivation(const ir::Call& call,
                                                         std::span<const ReferenceTensor> inputs) {
  ReferenceTensor out = inputs[0];
  for (int64_t i = 0; i < CountOf(out.dims); ++i) {
    SetNumber(out, i, ActivationOf(call).reference(GetNumber(out, i), call->attrs));
  }
  return std::vector<ReferenceTensor>{std::move(out)};
}

te::Tensor DefineActivation(const TeArgs& args) {
  const DataType dtype = args.out_dtype();
  return topi::Map(args.input(0), [&](PrimExpr x) {
    return ir::Cast(dtype, ActivationOf(args.call()).expr(topi::Wide(std::move(x)), args.call()->attrs));
  });
}

// ---- prelu: a slope per index along one axis.
Result<ir::Type> InferPrelu(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType slope, TensorArg(call, 1));
  INGOT_RETURN_IF_ERROR(CommonDataType(call, x, slope).status());
  if (x->dtype && !x->dtype->is_floating()) return OpError(call, "expected floats, got " + Describe(x));
  bool fits = slope->rank < 0 || slope->rank == 1;
  if (x->rank >= 0) {
    INGOT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call, call->attrs.GetInt("axis"), x->rank));
    fits = fits && (!x->dims || !slope->dims || !DimsDiffer((*slope->dims)[0], (*x->dims)[static_cast<size_t>(axis)]));
  }
  if (!fits)
    return OpError(call, "expected a slope per index of the axis, got " + Describe(x) + " and " + Describe(slope));
  return ir::Type(x);
}

Result<std::vector<ReferenceTensor>> ReferencePrelu(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  ReferenceTensor out = inputs[0];
  INGOT_ASSIGN_OR_RETURN(const int axis,
                         NormalizeAxis(call, call->attrs.GetInt("axis"), static_cast<int>(out.dims.size())));
  ForEachIndex(out.dims, [&](const Index& index, int64_t flat) {
    const double x = GetNumber(out, flat);
    if (x < 0) SetNumber(out, flat, x * GetNumber(inputs[1], index[static_cast<size_t>(axis)]));
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

te::Tensor DefinePrelu(const TeArgs& args) {
  const te::Tensor& x = args.input(0);
  const Result<int> axis = NormalizeAxis(args.call(), args.call()->attrs.GetInt("axis"), x.rank());
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        const PrimExpr e = x(i);
        return ir::Select(e < C(e, 0), e * args.input(1)(i[static_cast<size_t>(*axis)]), e);
      },
      "T_prelu");
}

}  // namespace

std::vector<OpRow> ActivationOps() {
  std::vector<OpRow> rows;
  for (const ActivationOp& activation : Activations()) {
    rows.push_back({.name = activation.name,
                    .summary = activation.summary,
                    .arg_names = {"x"},
                    .attrs = activation.attrs,
                    .fusion = FusionClass::kElementwise,
                    .infer = InferActivation,
                    .reference = ReferenceActivation,
                    .implementations = {TeImplementation<DefineActivation>()}});
  }
  rows.push_back({.name = "nn.prelu",
                  .summary = "x, or x times the slope of its place along an axis where negative",
                  .arg_names = {"data", "alpha"},
                  .attrs = {{"axis", AttrType::kInt, 1}},
                  .fusion = FusionClass::kInjective,  // slopes stand along an axis that is named
                  .infer = InferPrelu,
                  .reference = ReferencePrelu,
                  .implementations = {TeImplementation<DefinePrelu>()},
                  .cases = {.rank0 = false, .broadcast = true}});
  for (OpRow& row : rows) row.cases.dtypes = FloatDataTypes();
  return rows;
}

}  // namespace ingot::op
