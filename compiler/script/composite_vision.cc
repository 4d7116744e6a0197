// Composed operators of images and detection: samples at a grid, resized volumes, regions of interest, boxes.
#include <algorithm>
#include <limits>

#include "compiler/script/composite_maker.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

// The axes of a layout's spatial letters; false: another one than the channels in front or at the end.
bool ReadLayout(CompositeMaker& m, const std::string& layout, bool* channels_last) {
  *channels_last = layout == "NHWC" || layout == "NDHWC";
  if (*channels_last || layout == "NCHW" || layout == "NCDHW") return true;
  m.Fail("layout: \"" + layout + "\" is not supported");
  return false;
}

Expr ChannelsFirst(CompositeMaker& m, const Expr& x, bool is_last) {
  if (!is_last) return x;
  const auto rank = static_cast<int64_t>(m.Dims(x).size());
  std::vector<int64_t> order{0, rank - 1};
  for (int64_t i = 1; i + 1 < rank; ++i) order.push_back(i);
  return m.Permute(x, order);
}
Expr ChannelsLast(CompositeMaker& m, const Expr& x, bool is_last) {
  if (!is_last) return x;
  const auto rank = static_cast<int64_t>(m.Dims(x).size());
  std::vector<int64_t> order{0};
  for (int64_t i = 2; i < rank; ++i) order.push_back(i);
  order.push_back(1);
  return m.Permute(x, order);
}

// TVM has the coordinates of the grid along its second axis, the operator here along the last one.
Result<Expr> ComposeGridSample(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  bool is_last = false;
  if (!ReadLayout(m, attrs.GetString("layout"), &is_last)) return m.Take(nullptr);
  const auto rank = static_cast<int64_t>(m.Dims(args[1]).size());
  std::vector<int64_t> order{0};
  for (int64_t i = 2; i < rank; ++i) order.push_back(i);
  order.push_back(1);
  const std::string& method = attrs.GetString("method");
  const std::string name = method == "bilinear" ? "linear" : method == "bicubic" ? "cubic" : method;
  const Expr sampled = m("image.grid_sample", {ChannelsFirst(m, args[0], is_last), m.Permute(args[1], order)},
                         {{"method", name},
                          {"padding_mode", *attrs.Find("padding_mode")},
                          {"align_corners", *attrs.Find("align_corners")}});
  return m.Take(ChannelsLast(m, sampled, is_last));
}

// The places that an affine map gives to the elements of an image, -1 to 1 along each axis.
Result<Expr> ComposeAffineGrid(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const std::vector<PrimExpr> dims = m.Dims(args[0]);
  const auto* size = As<ShapeTypeNode>(args[1]->type);
  if (dims.size() != 3 || size == nullptr || !size->dims || size->dims->size() != 2) {
    return m.Take(m.Fail("expected maps of two rows, and a size of two dimensions"));
  }
  const DataType dtype = m.DType(args[0]);
  const PrimExpr height = (*size->dims)[0], width = (*size->dims)[1];
  const auto places = [&](const PrimExpr& count) {
    const double n = static_cast<double>(m.Constant(count, "size"));
    const bool corners = attrs.GetBool("align_corners");
    const double step = corners ? (n > 1 ? 2.0 / (n - 1) : 0.0) : 2.0 / n, first = corners ? -1.0 : 1.0 / n - 1.0;
    const Expr index = m.Cast(m.Range(Int64(0), count, Int64(1), DataType::Int(64)), dtype);
    return m("add", {m("multiply", {index, m.Number(step, dtype)}), m.Number(first, dtype)});
  };
  const std::vector<PrimExpr> image{height, width}, row{Int64(1), height * width};
  const Expr x = m.Reshape(m.Broadcast(places(width), image), row);
  const Expr y = m.Reshape(m.Broadcast(m.Expand(places(height), {1}), image), row);
  const Expr ones = m("ones", {m.Shape(row)}, {{"dtype", dtype}});
  const Expr all = CompositeMaker::Tuple({x, y, ones});
  if (all == nullptr) return m.Take(nullptr);
  const Expr mapped = m("matmul", {args[0], m("concat", {all}, {{"axis", 0}})});
  return m.Take(m.Reshape(mapped, {dims[0], Int64(2), height, width}));
}

Result<Expr> ComposeResize3d(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const std::string& layout = attrs.GetString("layout");
  const bool is_last = layout == "NDHWC";
  if (!is_last && layout != "NCDHW") return m.Take(m.Fail("layout: \"" + layout + "\" is not supported"));
  std::vector<PrimExpr> dims = m.Dims(args[0]);
  const auto* size = As<ShapeTypeNode>(args[1]->type);
  if (dims.size() != 5 || size == nullptr || !size->dims || size->dims->size() != 3) {
    return m.Take(m.Fail("expected a volume, and a size of three dimensions"));
  }
  for (size_t i = 0; i < 3; ++i) dims[(is_last ? 1 : 2) + i] = (*size->dims)[i];
  const std::string& method = attrs.GetString("method");
  const std::string& mode = attrs.GetString("coordinate_transformation_mode");
  if (mode == "tf_crop_and_resize") m.Fail("a region of interest, as tf_crop_and_resize has it");
  const bool nearest = method == "nearest_neighbor";
  std::string rounding = attrs.GetString("rounding_method");
  if (!nearest || rounding.empty()) rounding = "round_prefer_floor";
  if (rounding == "round") m.Fail("rounding_method: halves to even, as \"round\" has them; use \"round_prefer_floor\"");
  const Expr resized = m("image.resize", {args[0], m.Shape(dims)},
                         {{"method", nearest ? "nearest" : method},
                          {"coordinate_transformation_mode", mode},
                          {"rounding_method", rounding},
                          {"cubic_alpha", *attrs.Find("cubic_alpha")},
                          {"cubic_exclude", attrs.GetInt("cubic_exclude") != 0},
                          {"extrapolation_value", *attrs.Find("extrapolation_value")}});
  const AttrValue& dtype = *attrs.Find("out_dtype");
  return m.Take(dtype.is_none() ? resized : m.Cast(resized, *dtype.get<DataType>()));
}

// ---- Regions of interest: [batch, x1, y1, x2, y2]

std::vector<int64_t> PooledSize(CompositeMaker& m, const Attrs& attrs) {
  std::vector<int64_t> size;
  const AttrValue& given = *attrs.Find("pooled_size");
  if (const auto* one = given.get<int64_t>()) size = {*one, *one};
  if (const auto* list = given.get<AttrList>()) {
    for (const AttrValue& item : *list) size.push_back(item.get<int64_t>() == nullptr ? 0 : *item.get<int64_t>());
  }
  if (size.size() == 2 && size[0] > 0 && size[1] > 0) return size;
  m.Fail("pooled_size: expected one or two sizes");
  return {1, 1};
}

Result<Expr> ComposeRoiAlign(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  bool is_last = false;
  if (!ReadLayout(m, attrs.GetString("layout"), &is_last)) return m.Take(nullptr);
  const Expr batch = m.Cast(m.Reshape(m.Slice(args[1], 1, Int64(0), Int64(1)), {Int64(-1)}), DataType::Int(64));
  // TVM's aligned boxes may be shorter than one element, as here, but they are not moved by half of one; and its
  // greatest place is the interpolated one.
  Expr boxes = m.Slice(args[1], 1, Int64(1), Int64(5));
  const bool aligned = attrs.GetBool("aligned");
  if (aligned) {
    const DataType dtype = m.DType(args[1]);
    boxes = m("multiply", {boxes, m.Number(*attrs.Find("spatial_scale")->get<double>(), dtype)});
    boxes = m("add", {boxes, m.Number(0.5, dtype)});
  }
  const AttrValue scale = aligned ? AttrValue(1.0) : *attrs.Find("spatial_scale");
  const std::string& mode = attrs.GetString("mode");
  const int64_t samples = std::max<int64_t>(attrs.GetInt("sample_ratio"), 0);
  const Expr pooled = m("vision.roi_align", {ChannelsFirst(m, args[0], is_last), boxes, batch},
                        {{"pooled_size", AttrValue::Ints(PooledSize(m, attrs))},
                         {"spatial_scale", scale},
                         {"sample_ratio", samples},
                         {"aligned", aligned},
                         {"mode", mode == "max" ? "max_place" : mode}});
  return m.Take(ChannelsLast(m, pooled, is_last));
}

// The greatest element of each bin: first along the rows that belong to it, then along the columns.
Result<Expr> ComposeRoiPool(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  if (attrs.GetString("layout") != "NCHW") m.Fail("layout: expected \"NCHW\"");
  const std::vector<int64_t> pooled = PooledSize(m, attrs);
  const std::vector<PrimExpr> dims = m.Dims(args[0]);
  if (dims.size() != 4) return m.Take(m.Fail("expected images"));
  const DataType dtype = m.DType(args[1]), image_dtype = m.DType(args[0]);
  const auto number = [&](double value) { return m.Number(value, dtype); };
  const auto column = [&](int64_t i) { return m.Slice(args[1], 1, Int64(i), Int64(i + 1)); };  // [boxes, 1]
  const auto place = [&](int64_t i) {
    const Expr scaled = m("multiply", {column(i), number(*attrs.Find("spatial_scale")->get<double>())});
    return m("floor", {m("add", {scaled, number(0.5)})});
  };
  // Which elements of an axis are in which bin, [boxes, bins, elements].
  const auto members = [&](int64_t first, int64_t last, const PrimExpr& extent, int64_t bins) {
    const Expr start = place(first);
    const Expr length = m("maximum", {m("add", {m("subtract", {place(last), start}), number(1)}), number(1)});
    const Expr bin = m("divide", {length, number(static_cast<double>(bins))});
    const Expr index = m.Cast(m.Range(Int64(0), Int64(bins), Int64(1), DataType::Int(64)), dtype);
    const Expr begin = m("add", {m("floor", {m("multiply", {index, bin})}), start});
    const Expr next = m("add", {index, number(1)});
    const Expr end = m("add", {m("ceil", {m("multiply", {next, bin})}), start});
    const Expr element = m.Cast(m.Range(Int64(0), extent, Int64(1), DataType::Int(64)), dtype);
    const Expr behind = m("greater_equal", {element, m.Expand(begin, {2})});
    return m("logical_and", {behind, m("less", {element, m.Expand(end, {2})})});
  };
  const Expr batch = m.Cast(m.Reshape(column(0), {Int64(-1)}), DataType::Int(64));
  const Expr rows = members(2, 4, dims[2], pooled[0]), columns = members(1, 3, dims[3], pooled[1]);
  const Expr images = m("take", {args[0], batch}, {{"axis", 0}});  // [boxes, C, H, W]
  const Expr least = m.Number(-std::numeric_limits<double>::infinity(), image_dtype);
  const Expr in_rows = m("where", {m.Expand(rows, {1, 4}), m.Expand(images, {2}), least});
  const Expr by_row = m("max", {in_rows}, {{"axis", AttrList{3}}});  // [boxes, C, bins, W]
  const Expr in_columns = m("where", {m.Expand(columns, {1, 2}), m.Expand(by_row, {3}), least});
  const Expr greatest = m("max", {in_columns}, {{"axis", AttrList{4}}});
  const auto any = [&](const Expr& mask) {
    return m("max", {m.Cast(mask, DataType::Int(32))}, {{"axis", AttrList{2}}});
  };
  const Expr filled = m("multiply", {m.Expand(any(rows), {2}), m.Expand(any(columns), {1})});  // [boxes, bins, bins]
  const Expr is_empty = m("equal", {m.Expand(filled, {1}), m.Number(0, DataType::Int(32))});
  return m.Take(m("where", {is_empty, m.Number(0, image_dtype), greatest}));
}

// ---- Boxes

// The boxes above the threshold come first, in their order; the rest is -1.
Result<Expr> ComposeValidCounts(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const std::vector<PrimExpr> dims = m.Dims(args[0]);
  if (dims.size() != 3) return m.Take(m.Fail("expected boxes of three dimensions"));
  const DataType dtype = m.DType(args[0]), whole = DataType::Int(32);
  const AttrValue& given = *attrs.Find("score_threshold");
  const double threshold = given.get<double>() != nullptr    ? *given.get<double>()
                           : given.get<int64_t>() != nullptr ? static_cast<double>(*given.get<int64_t>())
                                                             : 0.0;
  const auto column = [&](int64_t i) {
    return m("squeeze", {m.Slice(args[0], 2, Int64(i), Int64(i + 1))}, {{"axis", AttrList{2}}});
  };
  Expr valid = m("greater", {column(attrs.GetInt("score_index")), m.Number(threshold, dtype)});
  if (attrs.GetInt("id_index") >= 0) {
    valid = m("logical_and", {valid, m("greater_equal", {column(attrs.GetInt("id_index")), m.Number(0, dtype)})});
  }
  const Expr counts = m.Sum(m.Cast(valid, whole), {1});
  const Expr order = m("argsort", {m.Cast(m("logical_not", {valid}), whole)}, {{"axis", 1}, {"dtype", whole}});
  const Expr wide = m.Broadcast(m.Expand(m.Cast(order, DataType::Int(64)), {2}), dims);
  const Expr sorted = m("gather_elements", {args[0], wide}, {{"axis", 1}});
  const Expr index = m.Range(Int64(0), dims[1], Int64(1), whole);
  const Expr is_valid = m("less", {index, m.Expand(counts, {1})});  // [batch, boxes]
  const Expr boxes = m("where", {m.Expand(is_valid, {2}), sorted, m.Number(-1, dtype)});
  return m.Take(CompositeMaker::Tuple({counts, boxes, m("where", {is_valid, order, m.Number(-1, whole)})}));
}

// Boxes (top, left, bottom, right) of encoded centres and sizes beside anchors (left, top, right, bottom).
Result<Expr> ComposeMultibox(const CompositeArgs& args, const Attrs& attrs, const BindValue& bind) {
  CompositeMaker m(bind);
  const std::vector<PrimExpr> dims = m.Dims(args[0]);
  const auto* list = attrs.Find("variances")->get<AttrList>();
  if (dims.size() != 3 || list == nullptr || list->size() != 4) {
    return m.Take(m.Fail("expected scores of three dimensions, and four variances"));
  }
  const DataType dtype = m.DType(args[0]);
  const auto number = [&](double value) { return m.Number(value, dtype); };
  const auto variance = [&](size_t i) {
    const AttrValue& item = (*list)[i];
    if (const auto* whole = item.get<int64_t>()) return number(static_cast<double>(*whole));
    return number(item.get<double>() == nullptr ? 1.0 : *item.get<double>());
  };
  const Expr encoded = m.Reshape(args[1], {dims[0], dims[2], Int64(4)});
  const auto part = [&](const Expr& x, int64_t i) { return m.Slice(x, 2, Int64(i), Int64(i + 1)); };
  Expr edges[4];
  for (int64_t axis = 0; axis < 2; ++axis) {  // x, then y
    const Expr low = part(args[2], axis), high = part(args[2], axis + 2);
    const Expr size = m("subtract", {high, low}), middle = m("multiply", {m("add", {low, high}), number(0.5)});
    const Expr moved = m("multiply", {m("multiply", {part(encoded, axis), variance(static_cast<size_t>(axis))}), size});
    const Expr centre = m("add", {moved, middle});
    const Expr grown = m("exp", {m("multiply", {part(encoded, axis + 2), variance(static_cast<size_t>(axis + 2))})});
    const Expr half = m("multiply", {m("multiply", {grown, number(0.5)}), size});
    edges[1 - axis] = m("subtract", {centre, half});
    edges[3 - axis] = m("add", {centre, half});
  }
  const Expr all = CompositeMaker::Tuple({edges[0], edges[1], edges[2], edges[3]});
  if (all == nullptr) return m.Take(nullptr);
  Expr boxes = m("concat", {all}, {{"axis", 2}});
  if (attrs.GetBool("clip")) boxes = m("maximum", {m("minimum", {boxes, number(1)}), number(0)});
  Expr scores = attrs.GetBool("apply_softmax") ? m("nn.softmax", {args[0]}, {{"axis", 1}}) : args[0];
  const Expr above = m("greater_equal", {scores, number(*attrs.Find("threshold")->get<double>())});
  scores = m("where", {above, scores, number(0)});
  if (!attrs.GetBool("keep_background")) {
    const Expr index = m.Reshape(m.Range(Int64(0), dims[1], Int64(1), DataType::Int(64)), {dims[1], Int64(1)});
    scores = m("where", {m("equal", {index, m.Number(0, DataType::Int(64))}), number(0), scores});
  }
  return m.Take(CompositeMaker::Tuple({boxes, scores}));
}

}  // namespace

const std::vector<CompositeOperator>& VisionComposites() {
  const AttrValue ones = AttrList{1.0, 1.0, 1.0, 1.0};
  static const std::vector<CompositeOperator> kOperators = {
      {"image.affine_grid", {"data", "size"}, {{"align_corners", true}}, ComposeAffineGrid},
      {"image.grid_sample",
       {"data", "grid"},
       {{"method", "bilinear"}, {"layout", "NCHW"}, {"padding_mode", "zeros"}, {"align_corners", false}},
       ComposeGridSample,
       0,
       "layout"},
      {"image.resize3d",
       {"data", "size"},
       {{"roi", {}},
        {"layout", "NCDHW"},
        {"method", "linear"},
        {"coordinate_transformation_mode", "half_pixel"},
        {"rounding_method", ""},
        {"cubic_alpha", -0.75},
        {"cubic_exclude", 0},
        {"extrapolation_value", 0.0},
        {"out_dtype", {}, true}},
       ComposeResize3d},
      {"vision.get_valid_counts",
       {"data"},
       {{"score_threshold", {}}, {"id_index", 0}, {"score_index", 1}},
       ComposeValidCounts},
      {"vision.multibox_transform_loc",
       {"cls_pred", "loc_pred", "anchor"},
       {{"clip", false}, {"threshold", 0.0}, {"variances", ones}, {"keep_background", true}, {"apply_softmax", true}},
       ComposeMultibox},
      {"vision.roi_align",
       {"data", "rois"},
       {{"pooled_size", {}},
        {"spatial_scale", 1.0},
        {"sample_ratio", -1},
        {"aligned", false},
        {"layout", "NCHW"},
        {"mode", "avg"}},
       ComposeRoiAlign,
       0,
       "layout"},
      {"vision.roi_pool",
       {"data", "rois"},
       {{"pooled_size", {}}, {"spatial_scale", 1.0}, {"layout", "NCHW"}},
       ComposeRoiPool},
  };
  return kOperators;
}

}  // namespace ingot::script
