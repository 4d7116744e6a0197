// Element-wise operators of one tensor: one row of kUnary each (name, domain, float64 and int64 reference, scalar
// expression), from which the operator's row is made. Below: clip, leakyrelu, astype and where, which take more.
#include <cmath>
#include <limits>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/fold.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/elementwise.h"

namespace ingot::op {
namespace {

using ir::CallIntrinsic;
using ir::Intrinsic;
using ir::MakeConst;
using ir::PrimExpr;

const DataType kF16 = DataType::Float(16);
const DataType kF32 = DataType::Float(32);
const DataType kF64 = DataType::Float(64);
const DataType kI8 = DataType::Int(8);
const DataType kI32 = DataType::Int(32);
const DataType kI64 = DataType::Int(64);
const DataType kU8 = DataType::UInt(8);
const DataType kBool = DataType::Bool();

enum class Domain : uint8_t { kFloats, kNumbers, kBools };

struct Unary {
  const char* name;
  const char* summary;
  Domain domain;
  double (*of_float)(double);
  int64_t (*of_int)(int64_t);  // null: floats alone
  PrimExpr (*expr)(PrimExpr);  // of the element, any dtype of the domain
  bool returns_bool = false;
  SignBit sign_bit = SignBit::kUnknown;
};

int64_t Same(int64_t x) { return x; }
PrimExpr Constant(const PrimExpr& like, double value) { return MakeConst(like->dtype, value); }
template <Intrinsic op>
PrimExpr Intrin(PrimExpr x) {
  return CallIntrinsic(op, {std::move(x)});
}
// Rounding leaves integers as they are.
template <Intrinsic op>
PrimExpr RoundIntrin(PrimExpr x) {
  return x->dtype.is_floating() ? CallIntrinsic(op, {x}) : x;
}
double NormalCdf(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }

const Unary kUnary[] = {
    {"abs", "|x|", Domain::kNumbers, [](double x) { return std::fabs(x); }, [](int64_t x) { return x < 0 ? -x : x; },
     Intrin<Intrinsic::kAbs>, false, SignBit::kClear},
    {"acos", "the arc cosine, in radians", Domain::kFloats, [](double x) { return std::acos(x); }, nullptr,
     Intrin<Intrinsic::kAcos>},
    {"acosh", "the inverse hyperbolic cosine", Domain::kFloats, [](double x) { return std::acosh(x); }, nullptr,
     Intrin<Intrinsic::kAcosh>},
    {"asin", "the arc sine, in radians", Domain::kFloats, [](double x) { return std::asin(x); }, nullptr,
     Intrin<Intrinsic::kAsin>},
    {"asinh", "the inverse hyperbolic sine", Domain::kFloats, [](double x) { return std::asinh(x); }, nullptr,
     Intrin<Intrinsic::kAsinh>},
    {"atan", "the arc tangent, in radians", Domain::kFloats, [](double x) { return std::atan(x); }, nullptr,
     Intrin<Intrinsic::kAtan>},
    {"atanh", "the inverse hyperbolic tangent", Domain::kFloats, [](double x) { return std::atanh(x); }, nullptr,
     Intrin<Intrinsic::kAtanh>},
    {"bitwise_not", "~x", Domain::kNumbers, nullptr, [](int64_t x) { return ~x; }, Intrin<Intrinsic::kBitwiseNot>},
    {"ceil", "the least integer >= x", Domain::kNumbers, [](double x) { return std::ceil(x); }, Same,
     RoundIntrin<Intrinsic::kCeil>},
    {"cos", "cos(x), x in radians", Domain::kFloats, [](double x) { return std::cos(x); }, nullptr,
     Intrin<Intrinsic::kCos>},
    {"cosh", "the hyperbolic cosine", Domain::kFloats, [](double x) { return std::cosh(x); }, nullptr,
     Intrin<Intrinsic::kCosh>},
    {"erf", "the error function", Domain::kFloats, [](double x) { return std::erf(x); }, nullptr,
     Intrin<Intrinsic::kErf>},
    {"exp", "e to the power of x", Domain::kFloats, [](double x) { return std::exp(x); }, nullptr,
     Intrin<Intrinsic::kExp>, false, SignBit::kClear},
    {"floor", "the greatest integer <= x", Domain::kNumbers, [](double x) { return std::floor(x); }, Same,
     RoundIntrin<Intrinsic::kFloor>},
    {"isfinite", "x is neither infinite nor NaN", Domain::kFloats,
     [](double x) { return std::isfinite(x) ? 1.0 : 0.0; }, nullptr,
     [](PrimExpr x) {
       return ir::And(ir::Not(CallIntrinsic(Intrinsic::kIsNan, {x})), ir::Not(CallIntrinsic(Intrinsic::kIsInf, {x})));
     },
     true},
    {"isinf", "x is infinite", Domain::kFloats, [](double x) { return std::isinf(x) ? 1.0 : 0.0; }, nullptr,
     Intrin<Intrinsic::kIsInf>, true},
    {"isnan", "x is NaN", Domain::kFloats, [](double x) { return std::isnan(x) ? 1.0 : 0.0; }, nullptr,
     Intrin<Intrinsic::kIsNan>, true},
    {"log", "the natural logarithm", Domain::kFloats, [](double x) { return std::log(x); }, nullptr,
     Intrin<Intrinsic::kLog>},
    {"logical_not", "not x", Domain::kBools, nullptr, [](int64_t x) { return int64_t{x == 0}; },
     [](PrimExpr x) { return ir::Not(x); }},
    {"negative", "-x", Domain::kNumbers, [](double x) { return -x; }, [](int64_t x) { return -x; },
     // Not 0 - x, which is +0 for +0.
     [](PrimExpr x) { return x->dtype.is_floating() ? x * Constant(x, -1) : Constant(x, 0) - x; }},
    {"nn.gelu", "x times the normal distribution function of x", Domain::kFloats,
     [](double x) { return x * NormalCdf(x); }, nullptr,
     [](PrimExpr x) {
       const PrimExpr scaled = x * Constant(x, std::sqrt(0.5));
       return x * (Constant(x, 0.5) + CallIntrinsic(Intrinsic::kErf, {scaled}) * Constant(x, 0.5));
     }},
    {"nn.gelu_tanh", "gelu approximated by tanh", Domain::kFloats,
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))); },
     nullptr,
     [](PrimExpr x) {
       const PrimExpr inner =
           Constant(x, std::sqrt(2 / std::acos(-1.0))) * x * (Constant(x, 1) + Constant(x, 0.044715) * x * x);
       return Constant(x, 0.5) * x * (Constant(x, 1) + CallIntrinsic(Intrinsic::kTanh, {inner}));
     }},
    {"nn.relu", "max(x, 0)", Domain::kNumbers, [](double x) { return x < 0 ? 0 : x; },
     [](int64_t x) { return x < 0 ? 0 : x; }, [](PrimExpr x) { return ir::Max(x, Constant(x, 0)); }},
    {"nn.silu", "x * sigmoid(x)", Domain::kFloats, [](double x) { return x / (1 + std::exp(-x)); }, nullptr,
     [](PrimExpr x) { return x * CallIntrinsic(Intrinsic::kSigmoid, {x}); }},
    {"round", "the nearest integer, halves to even", Domain::kNumbers, [](double x) { return std::nearbyint(x); }, Same,
     RoundIntrin<Intrinsic::kNearbyInt>},
    {"rsqrt", "1 / sqrt(x)", Domain::kFloats, [](double x) { return 1 / std::sqrt(x); }, nullptr,
     [](PrimExpr x) { return Constant(x, 1) / CallIntrinsic(Intrinsic::kSqrt, {x}); }, false, SignBit::kOfFirst},
    {"sigmoid", "1 / (1 + exp(-x))", Domain::kFloats, [](double x) { return 1 / (1 + std::exp(-x)); }, nullptr,
     Intrin<Intrinsic::kSigmoid>, false, SignBit::kClear},
    {"sign", "-1, 0 or 1", Domain::kNumbers,
     [](double x) {
       return std::isnan(x) ? x : x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0;
     },
     [](int64_t x) { return int64_t{x > 0} - int64_t{x < 0}; },
     [](PrimExpr x) {
       const PrimExpr zero = Constant(x, 0);
       if (x->dtype.is_uint()) return ir::Select(x > zero, Constant(x, 1), zero);
       const PrimExpr sign = ir::Select(x > zero, Constant(x, 1), ir::Select(x < zero, Constant(x, -1), zero));
       return x->dtype.is_floating() ? ir::Select(CallIntrinsic(Intrinsic::kIsNan, {x}), x, sign) : sign;
     }},
    {"sin", "sin(x), x in radians", Domain::kFloats, [](double x) { return std::sin(x); }, nullptr,
     Intrin<Intrinsic::kSin>},
    {"sinh", "the hyperbolic sine", Domain::kFloats, [](double x) { return std::sinh(x); }, nullptr,
     Intrin<Intrinsic::kSinh>},
    {"sqrt", "the square root", Domain::kFloats, [](double x) { return std::sqrt(x); }, nullptr,
     Intrin<Intrinsic::kSqrt>, false, SignBit::kOfFirst},
    {"square", "x * x", Domain::kNumbers, [](double x) { return x * x; }, [](int64_t x) { return x * x; },
     [](PrimExpr x) { return x * x; }, false, SignBit::kClear},
    {"tan", "tan(x), x in radians", Domain::kFloats, [](double x) { return std::tan(x); }, nullptr,
     Intrin<Intrinsic::kTan>},
    {"tanh", "the hyperbolic tangent", Domain::kFloats, [](double x) { return std::tanh(x); }, nullptr,
     Intrin<Intrinsic::kTanh>},
    {"trunc", "x without its fraction", Domain::kNumbers, [](double x) { return std::trunc(x); }, Same,
     RoundIntrin<Intrinsic::kTrunc>},
};

const Unary& UnaryOf(const ir::Call& call) {
  const std::string_view name = RowOf(call)->name;
  for (const Unary& unary : kUnary) {
    if (name == unary.name) return unary;
  }
  INGOT_UNREACHABLE("no unary operator");
}

Result<ir::Type> InferUnary(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  const Unary& unary = UnaryOf(call);
  if (x->dtype) {
    const bool fits = unary.domain == Domain::kBools ? x->dtype->is_bool()
                      : x->dtype->is_floating()      ? unary.of_float != nullptr
                                                     : x->dtype->is_integral() && unary.of_int != nullptr;
    if (!fits) {
      const char* expected = unary.domain == Domain::kBools ? "bool"
                             : unary.of_float == nullptr    ? "an integer"
                             : unary.of_int == nullptr      ? "a float"
                                                            : "a number";
      return OpError(call, std::string("argument \"x\": expected ") + expected + ", got " + Describe(x));
    }
  }
  if (!unary.returns_bool) return ir::Type(x);
  if (x->dims) return TensorOf(*x->dims, DataType::Bool(), x);
  return TensorOfRank(x->rank, DataType::Bool(), x);
}

Result<std::vector<ReferenceTensor>> ReferenceUnary(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const Unary& unary = UnaryOf(call);
  const ReferenceTensor& x = inputs[0];
  ReferenceTensor out = NewReference(unary.returns_bool ? DataType::Bool() : x.dtype, x.dims);
  for (int64_t i = 0; i < CountOf(x.dims); ++i) {
    const auto at = static_cast<size_t>(i);
    if (x.dtype.is_floating()) {
      SetNumber(out, i, unary.of_float(x.floats[at]));
    } else {
      out.ints[at] = unary.of_int(x.ints[at]);
    }
  }
  return std::vector<ReferenceTensor>{std::move(out)};
}

Result<PrepareCall> PrepareNegative(const ir::Call&) { return PrepareCall{"negate", {InputIndex{0}}}; }
Result<PrepareCall> PrepareSqrt(const ir::Call&) { return PrepareCall{"sqrt", {InputIndex{0}}}; }

// 1 / sqrt(x): two routines one after the other, as a kept prepare would spell it.
Result<ConstantPtr> FoldRsqrt(const ir::Call& call, std::span<const ConstantPtr> inputs) {
  INGOT_ASSIGN_OR_RETURN(const ConstantPtr root, RunHostRoutine(call, {"sqrt", {InputIndex{0}}}, inputs));
  INGOT_ASSIGN_OR_RETURN(const ConstantPtr one, FilledConstant(call, 1.0));
  return RunHostRoutine(call, {"div", {InputIndex{0}, InputIndex{1}}}, std::vector<ConstantPtr>{one, root});
}

// Functions of several steps round sixteen-bit floats once.
te::Tensor DefineUnary(const TeArgs& args) {
  const DataType dtype = args.out_dtype();
  return topi::Map(args.input(0),
                   [&](PrimExpr x) { return ir::Cast(dtype, UnaryOf(args.call()).expr(topi::Wide(std::move(x)))); });
}

OpRow UnaryRow(const Unary& unary) {
  OpRow row{.name = unary.name, .summary = unary.summary, .arg_names = {"x"}, .fusion = FusionClass::kElementwise};
  row.sign_bit = unary.sign_bit;
  row.infer = InferUnary;
  row.reference = ReferenceUnary;
  row.implementations = {TeImplementation<DefineUnary>()};
  if (unary.domain == Domain::kBools) {
    row.cases.dtypes = {kBool};
  } else {
    if (unary.of_float != nullptr) row.cases.dtypes = {kF32, kF64, kF16, DataType::Bfloat16()};
    if (unary.of_int != nullptr) row.cases.dtypes.push_back(kI32);
  }
  row.cases.non_finite = unary.of_float != nullptr;
  const std::string_view name = unary.name;
  if (name == "negative") row.prepare = PrepareNegative;
  if (name == "sqrt") row.prepare = PrepareSqrt;
  if (row.prepare != nullptr) row.fold = FoldByPrepare;
  if (name == "rsqrt") row.fold = FoldRsqrt;
  // Operators that integers have, too (signs, rounding to integers, squares), are exact or rounded once, so that the
  // reference gives the kernel's bits.
  if (row.fold == nullptr && unary.of_int != nullptr) row.fold = FoldExact;
  return row;
}

// ---- clip, leakyrelu
Result<ir::Type> InferClip(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  for (size_t i : {1, 2}) INGOT_RETURN_IF_ERROR(PrimArg(call, i).status());
  if (x->dtype && x->dtype->is_bool()) return OpError(call, "argument \"x\": expected a number, got " + Describe(x));
  return ir::Type(x);
}

// A constant scalar argument as a number.
Result<double> ConstantArg(const ir::Call& call, size_t i) {
  INGOT_ASSIGN_OR_RETURN(const PrimExpr value, PrimArg(call, i));
  if (const auto* number = ir::As<ir::IntImmNode>(value)) return static_cast<double>(number->value);
  if (const auto* number = ir::As<ir::FloatImmNode>(value)) return number->value;
  return OpError(call, "expected a constant scalar, got " + Describe(value));
}

Result<std::vector<ReferenceTensor>> ReferenceClip(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const double low, ConstantArg(call, 1));
  INGOT_ASSIGN_OR_RETURN(const double high, ConstantArg(call, 2));
  ReferenceTensor out = inputs[0];
  for (int64_t i = 0; i < CountOf(out.dims); ++i) {
    const double x = GetNumber(out, i);
    const double raised = x < low ? low : x;
    SetNumber(out, i, raised > high ? high : raised);
  }
  return std::vector<ReferenceTensor>{std::move(out)};
}

// The reference has every number as a double, which holds no long integers.
Result<ConstantPtr> FoldClip(const ir::Call& call, std::span<const ConstantPtr> inputs) {
  const DataType dtype = inputs[0]->dtype();
  if (dtype.is_integral() && dtype.bits > 32) return OpError(call, "there is no host routine for long integers");
  return FoldByReference(call, inputs);
}

te::Tensor DefineClip(const TeArgs& args) {
  const DataType dtype = args.out_dtype();
  const PrimExpr low = ir::Cast(dtype, args.scalar(1));
  const PrimExpr high = ir::Cast(dtype, args.scalar(2));
  return topi::Map(args.input(0), [&](PrimExpr x) { return ir::Min(ir::Max(std::move(x), low), high); });
}

Result<ir::Type> InferFloats(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  if (x->dtype && !x->dtype->is_floating()) return OpError(call, "expected a float, got " + Describe(x));
  return ir::Type(x);
}

Result<std::vector<ReferenceTensor>> ReferenceLeakyRelu(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const double alpha = call->attrs.GetFloat("alpha");
  ReferenceTensor out = inputs[0];
  for (double& x : out.floats) x = x < 0 ? x * alpha : x;
  return std::vector<ReferenceTensor>{std::move(out)};
}

te::Tensor DefineLeakyRelu(const TeArgs& args) {
  const double alpha = args.call()->attrs.GetFloat("alpha");
  return topi::Map(args.input(0),
                   [&](PrimExpr x) { return ir::Select(x < Constant(x, 0), x * Constant(x, alpha), x); });
}

// ---- astype
Result<ir::Type> InferAstype(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  const std::optional<DataType> dtype = DataTypeAttr(call, "dtype");
  if (x->dims) return TensorOf(*x->dims, dtype, x);
  return TensorOfRank(x->rank, dtype, x);
}

Result<std::vector<ReferenceTensor>> ReferenceAstype(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  ReferenceTensor out = NewReference(*DataTypeAttr(call, "dtype"), x.dims);
  for (int64_t i = 0; i < CountOf(x.dims); ++i) {
    if (x.dtype.is_floating() || out.dtype.is_floating() || out.dtype.is_bool()) {
      SetNumber(out, i, GetNumber(x, i));
    } else {  // integers keep their low bits
      const int shift = 64 - out.dtype.bits;
      const auto bits = static_cast<uint64_t>(x.ints[static_cast<size_t>(i)]) << shift;
      out.ints[static_cast<size_t>(i)] =
          out.dtype.is_int() ? static_cast<int64_t>(bits) >> shift : static_cast<int64_t>(bits >> shift);
    }
  }
  return std::vector<ReferenceTensor>{std::move(out)};
}

te::Tensor DefineAstype(const TeArgs& args) {
  const DataType dtype = args.out_dtype();
  return topi::Map(args.input(0), [&](PrimExpr x) {
    if (dtype.is_bool() && !x->dtype.is_bool()) return ir::NotEqual(x, Constant(x, 0));
    return ir::Cast(dtype, x);
  });
}

Result<PrepareCall> PrepareAstype(const ir::Call&) { return PrepareCall{"cast", {InputIndex{0}}}; }

// ---- where
Result<ir::Type> InferWhere(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType condition, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType a, TensorArg(call, 1));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType b, TensorArg(call, 2));
  if (condition->dtype && !condition->dtype->is_bool()) {
    return OpError(call, "argument \"condition\": expected bool, got " + Describe(condition));
  }
  INGOT_ASSIGN_OR_RETURN(const std::optional<DataType> dtype, CommonDataType(call, a, b));
  if (condition->dims && a->dims && b->dims) {
    INGOT_ASSIGN_OR_RETURN(std::optional<Dims> dims, BroadcastDims(call, *a->dims, *b->dims));
    if (dims) {
      INGOT_ASSIGN_OR_RETURN(dims, BroadcastDims(call, *condition->dims, *dims));
    }
    if (dims) return TensorOf(*dims, dtype, a);
  }
  const bool ranks = condition->rank >= 0 && a->rank >= 0 && b->rank >= 0;
  return TensorOfRank(ranks ? std::max({condition->rank, a->rank, b->rank}) : -1, dtype, a);
}

Result<std::vector<ReferenceTensor>> ReferenceWhere(const ir::Call&, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& condition = inputs[0];
  ReferenceTensor out = NewReference(
      inputs[1].dtype, BroadcastReferenceDims(condition.dims, BroadcastReferenceDims(inputs[1].dims, inputs[2].dims)));
  ForEachIndex(out.dims, [&](const Index& index, int64_t flat) {
    const int64_t at = FlattenBroadcast(condition.dims, index);
    const ReferenceTensor& chosen = inputs[condition.ints[static_cast<size_t>(at)] != 0 ? 1 : 2];
    CopyElement(chosen, FlattenBroadcast(chosen.dims, index), out, flat);
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

te::Tensor DefineWhere(const TeArgs& args) {
  return topi::BroadcastMap(
      args.inputs(), args.out_dims(), [](const std::vector<PrimExpr>& e) { return ir::Select(e[0], e[1], e[2]); },
      "T_where");
}

}  // namespace

std::vector<OpRow> ElementwiseOps() {
  std::vector<OpRow> rows;
  for (const Unary& unary : kUnary) rows.push_back(UnaryRow(unary));
  rows.push_back({.name = "clip",
                  .summary = "x raised to min, then lowered to max",
                  .arg_names = {"x", "min", "max"},
                  .fusion = FusionClass::kElementwise,
                  .infer = InferClip,
                  .reference = ReferenceClip,
                  .fold = FoldClip,
                  .implementations = {TeImplementation<DefineClip>()},
                  .cases = {.dtypes = {kF32, kF64, kI32}}});
  rows.push_back({.name = "nn.leakyrelu",
                  .summary = "x, or alpha * x where negative",
                  .arg_names = {"data"},
                  .attrs = {{"alpha", AttrType::kFloat, 0.01}},
                  .fusion = FusionClass::kElementwise,
                  .infer = InferFloats,
                  .reference = ReferenceLeakyRelu,
                  .implementations = {TeImplementation<DefineLeakyRelu>()},
                  .cases = {.dtypes = {kF32, kF64}}});
  rows.push_back({.name = "astype",
                  .summary = "x converted; floats to integers truncate",
                  .arg_names = {"x"},
                  .attrs = {{"dtype", AttrType::kDataType, {}, true}},
                  .fusion = FusionClass::kElementwise,
                  .infer = InferAstype,
                  .reference = ReferenceAstype,
                  .fold = FoldByPrepare,
                  .prepare = PrepareAstype,
                  .implementations = {TeImplementation<DefineAstype>()},
                  .cases = {.dtypes = {kF16, kF32, kF64, kI8, kI32, kI64, kU8, kBool}}});
  rows.push_back({.name = "where",
                  .summary = "x1 where condition holds, else x2",
                  .arg_names = {"condition", "x1", "x2"},
                  .fusion = FusionClass::kBroadcast,
                  .infer = InferWhere,
                  .reference = ReferenceWhere,
                  .fold = FoldByReference,
                  .implementations = {TeImplementation<DefineWhere>()},
                  .cases = {.broadcast = true, .dtypes = {kBool}}});
  return rows;
}

}  // namespace ingot::op
