// One short function per composed operator, which checks attributes and makes calls through op::MakeCall, and the table
// that gives each its name, attributes and defaults.
#include "compiler/script/composite_operators.h"

#include <algorithm>

#include "compiler/op/registry.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

Status Refused(std::string message) { return Status(StatusCode::kUnsupportedModel, std::move(message)); }

Result<Expr> AsValue(Result<Call> call) {
  if (!call.ok()) return std::move(call).status();
  return Expr(*std::move(call));
}

// The dimensions of a tensor, which must be known.
Result<std::vector<PrimExpr>> DimsOf(const Expr& x) {
  const auto* tensor = As<TensorTypeNode>(x->type);
  if (tensor == nullptr || !tensor->dims) return Refused("expected a tensor of known dimensions");
  return *tensor->dims;
}

Result<DataType> DTypeOf(const Expr& x) {
  const auto* tensor = As<TensorTypeNode>(x->type);
  if (tensor == nullptr || !tensor->dtype) return Refused("expected a tensor of known dtype");
  return *tensor->dtype;
}

// The axes of height and width.
Result<std::vector<int64_t>> SpatialAxes(const Attrs& attrs) {
  const std::string& layout = attrs.GetString("layout");
  if (layout == "NCHW") return std::vector<int64_t>{2, 3};
  if (layout == "NHWC") return std::vector<int64_t>{1, 2};
  return Refused("layout: expected \"NCHW\" or \"NHWC\", got \"" + layout + "\"");
}

// ---- x_like

Result<Expr> ShapeOf(const Expr& x) {
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> dims, DimsOf(x));
  return Expr(Make<ShapeExprNode>(std::move(dims)));
}

Result<AttrValue> DTypeLike(const Expr& x, const Attrs& attrs) {
  if (const AttrValue* dtype = attrs.Find("dtype"); !dtype->is_none()) return *dtype;
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, DTypeOf(x));
  return AttrValue(dtype);
}

template <const char* row>
Result<Expr> ComposeLike(const std::vector<Expr>& args, const Attrs& attrs, const BindValue& bind) {
  INGOT_ASSIGN_OR_RETURN(Expr shape, ShapeOf(args[0]));
  INGOT_ASSIGN_OR_RETURN(AttrValue dtype, DTypeLike(args[0], attrs));
  std::vector<Expr> inputs{std::move(shape)};
  for (size_t i = 1; i < args.size(); ++i) {  // the value that fills it
    const auto* fill = As<TensorTypeNode>(args[i]->type);
    const DataType* wanted = dtype.get<DataType>();
    if (fill == nullptr || !fill->dtype || wanted == nullptr || *fill->dtype == *wanted) {
      inputs.push_back(args[i]);
      continue;
    }
    INGOT_ASSIGN_OR_RETURN(const Call cast, op::MakeCall("astype", {args[i]}, {{"dtype", *wanted}}));
    inputs.push_back(bind(cast));
  }
  return AsValue(op::MakeCall(row, std::move(inputs), {{"dtype", std::move(dtype)}}));
}

// ---- stack: each operand gets a new axis, along which they are concatenated

Result<Expr> ComposeStack(const std::vector<Expr>& args, const Attrs& attrs, const BindValue& bind) {
  const auto* tuple = As<TupleTypeNode>(args[0]->type);
  if (tuple == nullptr) return Refused("expected a tuple of tensors");
  const auto* written = As<TupleNode>(args[0]);
  const AttrValue axis = attrs.GetInt("axis");
  std::vector<Expr> fields;
  std::vector<Type> types;
  for (size_t i = 0; i < tuple->fields.size(); ++i) {
    const Expr field = written != nullptr
                           ? written->fields[i]
                           : bind(Make<TupleGetItemNode>(args[0], static_cast<int64_t>(i), tuple->fields[i]));
    INGOT_ASSIGN_OR_RETURN(const Call wider, op::MakeCall("expand_dims", {field}, {{"axis", AttrList{axis}}}));
    fields.push_back(bind(wider));
    types.push_back(wider->type);
  }
  const Expr all = Make<TupleNode>(std::move(fields), Make<TupleTypeNode>(std::move(types)));
  return AsValue(op::MakeCall("concat", {all}, {{"axis", axis}}));
}

// ---- std: the square root of the variance

Result<Expr> ComposeStd(const std::vector<Expr>& args, const Attrs& attrs, const BindValue& bind) {
  INGOT_ASSIGN_OR_RETURN(
      const Call variance,
      op::MakeCall("variance", {args[0]}, {{"axis", *attrs.Find("axis")}, {"keepdims", *attrs.Find("keepdims")}}));
  return AsValue(op::MakeCall("sqrt", {bind(variance)}));
}

// ---- image.resize2d

// Whether an output position may be half-way between two input elements. "round" takes halves to even, which no
// operator here does; without halves it is rounding to the nearest.
bool HasHalves(const std::vector<PrimExpr>& in, const std::vector<PrimExpr>& out, const std::string& mode) {
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].same_as(out[i])) continue;
    const std::optional<int64_t> from = AsConstInt(in[i]), to = AsConstInt(out[i]);
    if (mode != "half_pixel" || !from || !to || *from < 1 || *to % *from != 0) return true;
  }
  return false;
}

Result<Expr> ComposeResize(const std::vector<Expr>& args, const Attrs& attrs, const BindValue& bind) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, DimsOf(args[0]));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, SpatialAxes(attrs));
  if (dims.size() != 4) return Refused("expected an image of four dimensions");
  const std::string& method = attrs.GetString("method");
  const std::string& mode = attrs.GetString("coordinate_transformation_mode");
  if (mode == "tf_crop_and_resize") return Refused("a region of interest, as tf_crop_and_resize has it");
  const auto* size = As<ShapeExprNode>(args[1]);
  if (size == nullptr || size->dims.size() != 2) return Refused("size: expected R.shape([height, width])");
  std::vector<PrimExpr> out = dims;
  for (size_t i = 0; i < 2; ++i) out[static_cast<size_t>(axes[i])] = size->dims[i];
  std::string rounding = attrs.GetString("rounding_method");
  const bool nearest = method == "nearest_neighbor";
  if (!nearest || rounding.empty()) rounding = "round_prefer_floor";  // other methods do not read it
  if (rounding == "round") {
    if (HasHalves(dims, out, mode)) {
      return Refused("rounding_method: halves to even, as \"round\" has them; use \"round_prefer_floor\"");
    }
    rounding = "round_prefer_floor";
  }
  const Result<Call> resized =
      op::MakeCall("image.resize", {args[0], Make<ShapeExprNode>(std::move(out))},
                      {{"method", nearest ? "nearest" : method},
                       {"coordinate_transformation_mode", mode},
                       {"rounding_method", std::move(rounding)},
                       {"cubic_alpha", *attrs.Find("cubic_alpha")},
                       {"cubic_exclude", attrs.GetInt("cubic_exclude") != 0},
                       {"extrapolation_value", *attrs.Find("extrapolation_value")}});
  const AttrValue& dtype = *attrs.Find("out_dtype");
  if (dtype.is_none() || !resized.ok()) return AsValue(resized);
  return AsValue(op::MakeCall("astype", {bind(*resized)}, {{"dtype", dtype}}));
}

// ---- quantize and dequantize: scales and zero points are one for the whole tensor, or one per position along an axis

// Reshapes the values, one per position along the axis, so that they broadcast with the data.
Result<Expr> AlongAxis(const Expr& values, const Expr& data, const Attrs& attrs, const BindValue& bind) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, DimsOf(values));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> data_dims, DimsOf(data));
  if (dims.empty()) return values;
  const auto rank = std::ssize(data_dims);
  const int64_t axis = attrs.GetInt("axis") < 0 ? attrs.GetInt("axis") + rank : attrs.GetInt("axis");
  if (axis < 0 || axis >= rank) return Refused("axis: expected one of " + std::to_string(rank) + " dimensions");
  if (dims.size() != 1) return Refused("expected scales and zero points of one dimension, or none");
  if (axis + 1 == rank) return values;
  std::vector<PrimExpr> shape(data_dims.size(), Int64(1));
  shape[static_cast<size_t>(axis)] = dims[0];
  INGOT_ASSIGN_OR_RETURN(const Call placed, op::MakeCall("reshape", {values, Make<ShapeExprNode>(std::move(shape))}));
  return bind(placed);
}

// round(data / scale) + zero in the data's dtype, clipped to the range of the output dtype.
Result<Expr> ComposeQuantize(const std::vector<Expr>& args, const Attrs& attrs, const BindValue& bind) {
  INGOT_ASSIGN_OR_RETURN(const DataType in, DTypeOf(args[0]));
  const DataType out = *attrs.Find("out_dtype")->get<DataType>();
  if (!out.is_integral() || out.bits > 16) return Refused("out_dtype: expected integers of 16 bits at most");
  INGOT_ASSIGN_OR_RETURN(const Expr scale, AlongAxis(args[1], args[0], attrs, bind));
  INGOT_ASSIGN_OR_RETURN(const Expr zero, AlongAxis(args[2], args[0], attrs, bind));
  INGOT_ASSIGN_OR_RETURN(const Call scaled, op::MakeCall("divide", {args[0], scale}));
  INGOT_ASSIGN_OR_RETURN(const Call rounded, op::MakeCall("round", {bind(scaled)}));
  INGOT_ASSIGN_OR_RETURN(const Call offset, op::MakeCall("astype", {zero}, {{"dtype", in}}));
  INGOT_ASSIGN_OR_RETURN(const Call moved, op::MakeCall("add", {bind(rounded), bind(offset)}));
  const auto limit = [](const PrimExpr& value) {
    return Expr(Make<PrimValueNode>(FloatImm(DataType::Float(32), static_cast<double>(*AsConstInt(value)))));
  };
  INGOT_ASSIGN_OR_RETURN(const Call clipped,
                         op::MakeCall("clip", {bind(moved), limit(MinValue(out)), limit(MaxValue(out))}));
  return AsValue(op::MakeCall("astype", {bind(clipped)}, {{"dtype", out}}));
}

// (data - zero) * scale, with the difference in int32.
Result<Expr> ComposeDequantize(const std::vector<Expr>& args, const Attrs& attrs, const BindValue& bind) {
  INGOT_ASSIGN_OR_RETURN(const DataType in, DTypeOf(args[0]));
  if (!in.is_integral()) return Refused("expected integers, got " + in.ToString());
  const DataType out = *attrs.Find("out_dtype")->get<DataType>();
  INGOT_ASSIGN_OR_RETURN(const Expr scale, AlongAxis(args[1], args[0], attrs, bind));
  INGOT_ASSIGN_OR_RETURN(const Expr zero, AlongAxis(args[2], args[0], attrs, bind));
  const auto cast = [&](const Expr& x, DataType dtype) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(const Call call, op::MakeCall("astype", {x}, {{"dtype", dtype}}));
    return bind(call);
  };
  INGOT_ASSIGN_OR_RETURN(const Expr data, cast(args[0], DataType::Int(32)));
  INGOT_ASSIGN_OR_RETURN(const Expr offset, cast(zero, DataType::Int(32)));
  INGOT_ASSIGN_OR_RETURN(const Call difference, op::MakeCall("subtract", {data, offset}));
  INGOT_ASSIGN_OR_RETURN(const Expr wide, cast(bind(difference), DataType::Float(32)));
  INGOT_ASSIGN_OR_RETURN(const Expr factor, cast(scale, DataType::Float(32)));
  INGOT_ASSIGN_OR_RETURN(const Call product, op::MakeCall("multiply", {wide, factor}));
  if (out == DataType::Float(32)) return Expr(product);
  return AsValue(op::MakeCall("astype", {bind(product)}, {{"dtype", out}}));
}

constexpr char kZeros[] = "zeros", kOnes[] = "ones", kFull[] = "full";

}  // namespace

const CompositeOperator* FindComposite(std::string_view name) {
  static const std::vector<CompositeOperator> kOperators = {
      {"dequantize",
       {"data", "scale", "zero_point"},
       {{"out_dtype", DataType::Float(32), true}, {"axis", -1}},
       ComposeDequantize},
      {"full_like", {"x", "fill_value"}, {{"dtype", {}, true}}, ComposeLike<kFull>},
      {"image.resize2d",
       {"data", "size"},
       {{"roi", {}},
        {"layout", "NCHW"},
        {"method", "linear"},
        {"coordinate_transformation_mode", "half_pixel"},
        {"rounding_method", "round"},
        {"cubic_alpha", -0.75},
        {"cubic_exclude", 0},
        {"extrapolation_value", 0.0},
        {"out_dtype", {}, true}},
       ComposeResize},
      {"ones_like", {"x"}, {{"dtype", {}, true}}, ComposeLike<kOnes>},
      {"quantize",
       {"data", "scale", "zero_point"},
       {{"out_dtype", DataType::Int(8), true}, {"axis", -1}},
       ComposeQuantize},
      {"stack", {"tensors"}, {{"axis", 0}}, ComposeStack},
      {"std", {"x"}, {{"axis", {}}, {"keepdims", false}}, ComposeStd},
      {"zeros_like", {"x"}, {{"dtype", {}, true}}, ComposeLike<kZeros>},
  };
  for (const std::vector<CompositeOperator>* rows : {&kOperators, &ArithmeticComposites(), &IndexingComposites(),
                                                     &TrainingComposites(), &VisionComposites()}) {
    const auto row = std::ranges::find(*rows, name, &CompositeOperator::name);
    if (row != rows->end()) return &*row;
  }
  return nullptr;
}

}  // namespace ingot::script
