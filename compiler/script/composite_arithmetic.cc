// Composed operators that compute elements: arithmetic, sums that undo broadcasting, pools of any size, statistics.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "compiler/arith/analyzer.h"
#include "compiler/script/composite_maker.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

// The angle of the point (x, y) in all four quadrants, out of the slope's; C's values where a coordinate is 0 or
// infinite.
Result<Expr> ComposeAtan2(const CompositeArgs& args, const Attrs&, const BindValue& bind) {
  CompositeMaker m(bind);
  const DataType dtype = m.DType(args[0]);
  const auto number = [&](double value) { return m.Number(value, dtype); };
  const Expr up = m("abs", {args[0]}), right = m("abs", {args[1]});
  const Expr at_origin = m("logical_and", {m("equal", {up, number(0)}), m("equal", {right, number(0)})});
  const Expr far = m("logical_and", {m("isinf", {up}), m("isinf", {right})});
  const Expr slope = m("where", {far, number(1), m("where", {at_origin, number(0), m("divide", {up, right})})});
  const Expr angle = m("atan", {slope});
  // The sign of a zero is that of its reciprocal.
  const auto is_negative = [&](const Expr& x) {
    const Expr from_below = m("less", {m("divide", {number(1), x}), number(0)});
    return m("logical_or", {m("less", {x, number(0)}), m("logical_and", {m("equal", {x, number(0)}), from_below})});
  };
  const Expr mirrored = m("where", {is_negative(args[1]), m("subtract", {number(std::numbers::pi), angle}), angle});
  return m.Take(m("where", {is_negative(args[0]), m("negative", {mirrored}), mirrored}));
}

Result<Expr> ComposeLogAddExp(const CompositeArgs& args, const Attrs&, const BindValue& bind) {
  CompositeMaker m(bind);
  const Expr greatest = m("maximum", {args[0], args[1]});
  const auto below = [&](const Expr& x) { return m("exp", {m("subtract", {x, greatest})}); };
  const Expr sum = m("add", {greatest, m("log", {m("add", {below(args[0]), below(args[1])})})});
  return m.Take(m("where", {m("isinf", {greatest}), greatest, sum}));
}

Result<Expr> ComposeFma(const CompositeArgs& args, const Attrs&, const BindValue& bind) {
  CompositeMaker m(bind);
  return m.Take(m("add", {m("multiply", {args[0], args[1]}), args[2]}));
}

Result<Expr> ComposeOuter(const CompositeArgs& args, const Attrs&, const BindValue& bind) {
  CompositeMaker m(bind);
  return m.Take(m("multiply", {m.Expand(args[0], {1}), args[1]}));
}

double PrimNumber(CompositeMaker& m, const Expr& value) {
  const auto* prim = As<PrimValueNode>(value);
  if (prim != nullptr) {
    if (const auto whole = AsConstInt(prim->value)) return static_cast<double>(*whole);
    if (const auto* broken = As<FloatImmNode>(prim->value)) return broken->value;
  }
  m.Fail("expected a number");
  return 0;
}

// alpha - beta * cos(2 pi i / n)
Result<Expr> ComposeHammingWindow(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const DataType dtype = *attrs.Find("dtype")->get<DataType>();
  const double size = PrimNumber(m, args[0]), periodic = PrimNumber(m, args[1]);
  const double alpha = PrimNumber(m, args[2]), beta = PrimNumber(m, args[3]);
  const double steps = periodic != 0 ? size : size - 1;
  if (size < 1) m.Fail("window_size: expected at least 1");
  if (size == 1) return m.Take(m("ones", {m.Shape({Int64(1)})}, {{"dtype", dtype}}));
  const Expr places = m.Cast(m.Range(Int64(0), Int64(static_cast<int64_t>(size)), Int64(1), DataType::Int(64)), dtype);
  const Expr angle = m("multiply", {places, m.Number(2 * std::numbers::pi / steps, dtype)});
  const Expr wave = m("multiply", {m("cos", {angle}), m.Number(beta, dtype)});
  return m.Take(m("subtract", {m.Number(alpha, dtype), wave}));
}

Result<Expr> ComposeEyeLike(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const std::vector<PrimExpr> dims = m.Dims(args[0]);
  if (dims.size() != 2) return m.Take(m.Fail("expected a matrix"));
  const AttrValue* dtype = attrs.Find("dtype");
  const Expr k = args[1] != nullptr ? args[1] : m.Prim(Int64(0));
  return m.Take(m("eye", {m.Prim(dims[0]), m.Prim(dims[1]), k},
                  {{"dtype", dtype->is_none() ? AttrValue(m.DType(args[0])) : *dtype}}));
}

Result<Expr> ComposeSize(const CompositeArgs& args, const Attrs&, const BindValue& bind) {
  CompositeMaker m(bind);
  PrimExpr size = Int64(1);
  for (const PrimExpr& dim : m.Dims(args[0])) size = size * dim;
  return m.Take(m.Reshape(m("shape_to_tensor", {m.Shape({size})}), {}));
}

// Sums over the axes that broadcasting to x would add or stretch.
Result<Expr> CollapseSum(const Expr& x, const std::vector<PrimExpr>& target, CompositeMaker& m) {
  const std::vector<PrimExpr> dims = m.Dims(x);
  if (target.size() > dims.size()) return m.Take(m.Fail("expected a shape that broadcasts to the tensor's"));
  arith::Analyzer analyzer;
  std::vector<int64_t> axes;
  const size_t added = dims.size() - target.size();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i < added || (IsConstInt(target[i - added], 1) && !IsConstInt(dims[i], 1))) {
      axes.push_back(static_cast<int64_t>(i));
    } else if (!analyzer.ProveEqual(dims[i], target[i - added])) {
      m.Fail("expected a shape that broadcasts to the tensor's");
    }
  }
  if (axes.empty()) return m.Take(x);
  return m.Take(m.Reshape(m.Sum(x, axes), target));
}
Result<Expr> ComposeCollapseTo(const CompositeArgs& args, const Attrs&, const BindValue& bind) {
  CompositeMaker m(bind);
  const auto* shape = As<ShapeTypeNode>(args[1]->type);
  if (shape == nullptr || !shape->dims) return m.Take(m.Fail("expected a known shape"));
  return CollapseSum(args[0], *shape->dims, m);
}
Result<Expr> ComposeCollapseLike(const CompositeArgs& args, const Attrs&, const BindValue& bind) {
  CompositeMaker m(bind);
  const std::vector<PrimExpr> target = m.Dims(args[1]);
  return CollapseSum(args[0], target, m);
}

Result<Expr> ComposeIdentity(const CompositeArgs& args, const Attrs&, const BindValue&) { return args[0]; }

// As inference has it: nothing is dropped.
Result<Expr> ComposeDropout(const CompositeArgs& args, const Attrs&, const BindValue& bind) {
  CompositeMaker m(bind);
  const Expr kept = m("ones", {m.Shape(m.Dims(args[0]))}, {{"dtype", m.DType(args[0])}});
  return m.Take(m.Tuple({args[0], kept}));
}

Result<Expr> ComposeAttentionBias(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  if (!attrs.Find("window_size")->is_none()) m.Fail("window_size is not supported, only None");
  CompositeArgs operands{args[0], args[1], args[2]};
  if (args[3] != nullptr) operands.push_back(args[3]);
  return m.Take(m("nn.attention", operands,
                  {{"scale", *attrs.Find("scale")}, {"causal_mask", *attrs.Find("causal_mask")}}));
}

// ---- Pools whose windows cover an axis in parts of nearly the same size

// An axis of this length as the means of `out` windows: window i goes from floor(i * in / out) to before
// ceil((i + 1) * in / out).
Expr MeansOfWindows(CompositeMaker& m, const Expr& x, int64_t axis, int64_t in, int64_t out) {
  const DataType whole = DataType::Int(64), dtype = m.DType(x);
  const DataType wide = dtype == DataType::Float(64) ? dtype : DataType::Float(32);
  const auto number = [&](int64_t value) { return m.Number(static_cast<double>(value), whole); };
  const Expr window = m.Range(Int64(0), Int64(out), Int64(1), whole);
  const Expr begins = m("floor_divide", {m("multiply", {window, number(in)}), number(out)});
  const Expr next = m("multiply", {m("add", {window, number(1)}), number(in)});
  const Expr ends = m("floor_divide", {m("add", {next, number(out - 1)}), number(out)});
  const Expr lengths = m.Expand(m("subtract", {ends, begins}), {1});
  const int64_t longest = in % out == 0 ? in / out : std::min(in, in / out + 2);
  const Expr is_inside = m("less", {m.Range(Int64(0), Int64(longest), Int64(1), whole), lengths});
  const Expr share = m("divide", {m.Number(1, wide), m.Cast(lengths, wide)});
  const Expr weights = m("where", {is_inside, share, m.Number(0, wide)});
  return m("window_sum", {x, weights, begins}, {{"axis", axis}});
}

Result<Expr> ComposeAdaptivePool(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const std::vector<PrimExpr> dims = m.Dims(args[0]);
  const std::string& layout = attrs.GetString("layout");
  const AttrValue& out_layout = *attrs.Find("out_layout");
  if (!out_layout.is_none() && out_layout != *attrs.Find("layout")) m.Fail("another out_layout than layout");
  if (layout.size() != dims.size()) return m.Take(m.Fail("expected an image of layout " + layout));
  std::vector<int64_t> axes;
  for (size_t i = 0; i < layout.size(); ++i) {
    if (layout[i] == 'D' || layout[i] == 'H' || layout[i] == 'W') axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.size() + 2 != layout.size()) return m.Take(m.Fail("layout: \"" + layout + "\" is not supported"));
  std::vector<int64_t> out;
  const AttrValue& given = *attrs.Find("output_size");
  if (given.is_none()) return m.Take(args[0]);  // every window is an element
  if (const auto* sizes = given.get<AttrList>()) {
    for (const AttrValue& size : *sizes) out.push_back(size.get<int64_t>() == nullptr ? 0 : *size.get<int64_t>());
  } else if (const auto* size = given.get<int64_t>()) {
    out = {*size};
  }
  if (out.size() == 1) out.assign(axes.size(), out[0]);
  if (out.size() != axes.size() || std::ranges::any_of(out, [](int64_t size) { return size < 1; })) {
    return m.Take(m.Fail("output_size: expected a size, or one per axis"));
  }
  if (std::ranges::all_of(out, [](int64_t size) { return size == 1; })) {
    return m.Take(m("mean", {args[0]}, {{"axis", AttrValue::Ints(axes)}, {"keepdims", true}}));
  }
  // Windows of one size where the sizes divide; pools have their channels in front.
  std::vector<int64_t> window;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t in = m.Constant(dims[static_cast<size_t>(axes[i])], "output_size other than 1");
    if (in < 1) m.Fail("output_size: expected elements to take the means of");
    if (in % out[i] == 0) window.push_back(in / out[i]);
  }
  if (window.size() == axes.size() && layout[1] == 'C') {
    return m.Take(m("nn.avg_pool" + std::to_string(axes.size()) + "d", {args[0]},
                    {{"pool_size", AttrValue::Ints(window)},
                     {"strides", AttrValue::Ints(window)},
                     {"layout", *attrs.Find("layout")}}));
  }
  Expr x = args[0];
  for (size_t i = 0; i < axes.size(); ++i) {
    x = MeansOfWindows(m, x, axes[i], *AsConstInt(dims[static_cast<size_t>(axes[i])]), out[i]);
  }
  return m.Take(x);
}

// ---- Statistics

Result<Expr> ComposeMedian(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const AttrValue& axis = *attrs.Find("axis");
  const bool keepdims = attrs.GetBool("keepdims");
  const std::vector<PrimExpr> dims = m.Dims(args[0]);
  std::vector<int64_t> axes;
  if (const auto* list = axis.get<AttrList>()) {
    for (const AttrValue& item : *list) axes.push_back(item.get<int64_t>() == nullptr ? 0 : *item.get<int64_t>());
  } else if (const auto* one = axis.get<int64_t>()) {
    axes = {*one};
  }
  if (!axis.is_none() && axes.size() != 1) return m.Take(m.Fail("axis: expected one axis, or None"));
  const bool whole = axis.is_none();
  const Expr x = whole ? m.Reshape(args[0], {Int64(-1)}) : args[0];
  const int64_t at = whole ? 0 : m.Axis(axes[0], dims.size());
  const std::vector<PrimExpr> sorted_dims = m.Dims(x);
  if (sorted_dims.empty()) return m.Take(m.Fail("expected a tensor with an axis"));
  const PrimExpr middle = FloorDiv(sorted_dims[static_cast<size_t>(at)] - 1, Int64(2));
  const auto pick = [&](const Expr& list) {
    Expr value = m.Slice(list, at, middle, middle + 1);
    if (!keepdims) return m("squeeze", {value}, {{"axis", AttrList{at}}});
    if (whole) value = m.Reshape(value, std::vector<PrimExpr>(dims.size(), Int64(1)));
    return value;
  };
  const Expr values = pick(m("sort", {x}, {{"axis", at}}));
  if (whole) return m.Take(values);
  return m.Take(m.Tuple({values, pick(m("argsort", {x}, {{"axis", at}, {"dtype", DataType::Int(64)}}))}));
}

// How many boundaries come before x.
Result<Expr> ComposeBucketize(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const Expr x = m.Expand(args[0], {-1});
  const Expr before = m(attrs.GetBool("right") ? "less_equal" : "less", {args[1], x});
  const DataType dtype = attrs.GetBool("out_int32") ? DataType::Int(32) : DataType::Int(64);
  return m.Take(m.Sum(m.Cast(before, dtype), {-1}));
}

// The first place whose cumulated probability is above the sample.
Result<Expr> ComposeMultinomial(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const DataType dtype = *attrs.Find("dtype")->get<DataType>();
  const std::vector<PrimExpr> dims = m.Dims(args[0]);
  if (dims.size() != 2) return m.Take(m.Fail("expected probabilities of two dimensions"));
  const Expr sums = m("cumsum", {args[0]}, {{"axis", 1}});
  const Expr rows = m("take", {sums, m.Reshape(args[2], {Int64(-1)})}, {{"axis", 0}});
  const Expr below = m.Cast(m("less_equal", {rows, args[1]}), dtype);
  const Expr place = m.Sum(below, {1}, true);
  const Expr last = m.Number(static_cast<double>(m.Constant(dims[1], "the number of classes") - 1), dtype);
  return m.Take(m("minimum", {place, last}));
}

}  // namespace

const std::vector<CompositeOperator>& ArithmeticComposites() {
  static const std::vector<CompositeAttr> kPool1 = {{"output_size", {}}, {"layout", "NCW"}, {"out_layout", {}}};
  static const std::vector<CompositeAttr> kPool2 = {{"output_size", {}}, {"layout", "NCHW"}, {"out_layout", {}}};
  static const std::vector<CompositeAttr> kPool3 = {{"output_size", {}}, {"layout", "NCDHW"}, {"out_layout", {}}};
  static const std::vector<CompositeOperator> kOperators = {
      {"atan2", {"x1", "x2"}, {}, ComposeAtan2},
      {"bucketize", {"input_tensor", "boundaries"}, {{"out_int32", false}, {"right", false}}, ComposeBucketize},
      {"builtin.stop_lift_params", {"x"}, {}, ComposeIdentity},
      {"collapse_sum_like", {"data", "collapse_target"}, {}, ComposeCollapseLike},
      {"collapse_sum_to", {"data", "shape"}, {}, ComposeCollapseTo},
      {"ewise_fma", {"x1", "x2", "x3"}, {}, ComposeFma},
      {"eye_like", {"x", "k"}, {{"dtype", {}, true}}, ComposeEyeLike, 1},
      {"grad.end_checkpoint", {"input"}, {}, ComposeIdentity},
      {"grad.no_grad", {"input"}, {}, ComposeIdentity},
      {"grad.start_checkpoint", {"input"}, {}, ComposeIdentity},
      {"hamming_window",
       {"window_size", "periodic", "alpha", "beta"},
       {{"dtype", DataType::Float(32), true}},
       ComposeHammingWindow},
      {"log_add_exp", {"x1", "x2"}, {}, ComposeLogAddExp},
      {"median", {"x"}, {{"axis", {}}, {"keepdims", false}}, ComposeMedian},
      {"multinomial_from_uniform",
       {"prob", "uniform_sample", "sample_indices"},
       {{"dtype", DataType::Int(64), true}},
       ComposeMultinomial},
      {"nn.adaptive_avg_pool1d", {"data"}, kPool1, ComposeAdaptivePool},
      {"nn.adaptive_avg_pool2d", {"data"}, kPool2, ComposeAdaptivePool},
      {"nn.adaptive_avg_pool3d", {"data"}, kPool3, ComposeAdaptivePool},
      {"nn.attention_bias",
       {"query", "key", "value", "bias"},
       {{"scale", {}}, {"causal_mask", {}}, {"window_size", {}}},
       ComposeAttentionBias,
       1},
      {"nn.dropout", {"data"}, {{"rate", 0.5}}, ComposeDropout},
      {"outer", {"x1", "x2"}, {}, ComposeOuter},
      {"size", {"data"}, {}, ComposeSize},
  };
  return kOperators;
}

}  // namespace ingot::script
