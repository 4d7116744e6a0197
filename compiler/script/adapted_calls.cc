// Calls of operators that both have, with arguments or attributes that TVM's takes and the one here does not: each is
// brought into the form here by calls around it. A part of GraphReader (graph_reader.h).
#include <algorithm>
#include <limits>

#include "compiler/op/fold.h"
#include "compiler/op/registry.h"
#include "compiler/script/composite_maker.h"
#include "compiler/script/graph_reader.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

const AttrValue* Given(const AttrDict& attrs, std::string_view name) {
  const auto found = std::ranges::find_if(attrs, [&](const auto& item) { return item.first == name; });
  return found == attrs.end() ? nullptr : &found->second;
}
void Put(AttrDict& attrs, const std::string& name, AttrValue value) {
  const auto found = std::ranges::find_if(attrs, [&](const auto& item) { return item.first == name; });
  if (found != attrs.end()) {
    found->second = std::move(value);
  } else {
    attrs.emplace_back(name, std::move(value));
  }
}
bool IsNoneOrAbsent(const AttrDict& attrs, std::string_view name) {
  const AttrValue* value = Given(attrs, name);
  return value == nullptr || value->is_none();
}
bool IsOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::string GraphReader::AdaptCall(const Syntax& call, const std::string& name, std::vector<Expr>& values,
                                   AttrDict& attrs, Builder& builder) {
  if (values.empty() || values[0] == nullptr) return name;
  const BindValue bind = [&](Expr value) { return Leaf(std::move(value), call.place, builder); };
  CompositeMaker m(bind);
  const auto done = [&](const std::string& row) -> std::string {
    const Result<Expr> status = m.Take(values[0]);
    if (status.ok()) return row;
    context_.Error(call, "R." + name + ": " + status.status().message());
    return "";
  };
  const auto* first = As<TensorTypeNode>(values[0]->type);
  const int rank = first == nullptr ? -1 : first->rank;
  if (IsOf(name, {"argmax", "argmin", "cumsum", "cumprod"}) && IsNoneOrAbsent(attrs, "axis") && rank > 1) {
    values[0] = m.Reshape(values[0], {Int64(-1)});
    Put(attrs, "axis", 0);
    return done(name);
  }
  if (IsOf(name, {"bitwise_and", "bitwise_or", "bitwise_xor"}) && first != nullptr && first->dtype &&
      first->dtype->is_bool()) {
    return "logical_" + name.substr(8);
  }
  if (name == "concat" && Given(attrs, "axis") != nullptr && Given(attrs, "axis")->is_none()) {
    const auto* types = As<TupleTypeNode>(values[0]->type);
    if (types == nullptr) return name;
    std::vector<Expr> flat;
    for (size_t i = 0; i < types->fields.size(); ++i) {
      const auto* written = As<TupleNode>(values[0]);
      const Expr field = written != nullptr
                             ? written->fields[i]
                             : bind(Make<TupleGetItemNode>(values[0], static_cast<int64_t>(i), types->fields[i]));
      flat.push_back(m.Reshape(field, {Int64(-1)}));
    }
    if (Expr all = CompositeMaker::Tuple(std::move(flat)); all != nullptr) values[0] = std::move(all);
    Put(attrs, "axis", 0);
    return done(name);
  }
  if (name == "full" && values.size() > 1) {
    const auto* fill = As<TensorTypeNode>(values[1]->type);
    const AttrValue* dtype = Given(attrs, "dtype");
    const DataType* wanted = dtype == nullptr ? nullptr : dtype->get<DataType>();
    if (fill != nullptr && fill->dtype && wanted != nullptr && *fill->dtype != *wanted) {
      values[1] = m.Cast(values[1], *wanted);
    }
    return done(name);
  }
  if (name == "nn.prelu" && values.size() > 1 && rank > 0) {
    const std::vector<PrimExpr> slope = m.Dims(values[1]), dims = m.Dims(values[0]);
    const AttrValue* given = Given(attrs, "axis");
    const int64_t* number = given == nullptr ? nullptr : given->get<int64_t>();
    const int64_t axis = m.Axis(number == nullptr ? 1 : *number, dims.size());
    const bool is_one = slope.size() == 1 && IsConstInt(slope[0], 1);
    if (is_one && !dims.empty() && !IsConstInt(dims[static_cast<size_t>(axis)], 1)) {
      values[1] = m.Broadcast(values[1], {dims[static_cast<size_t>(axis)]});
    }
    return done(name);
  }
  const AttrValue* mode = name == "take" ? Given(attrs, "mode") : nullptr;
  const std::string* mode_text = mode == nullptr ? nullptr : mode->get<std::string>();
  if (mode_text != nullptr && *mode_text == "nan" && values.size() > 1) {  // NaN where there is no such element
    std::vector<PrimExpr> own = m.Dims(values[1]);
    const AttrValue* given = Given(attrs, "axis");
    const int64_t* number = given == nullptr ? nullptr : given->get<int64_t>();
    const Expr data = number == nullptr ? m.Reshape(values[0], {Int64(-1)}) : values[0];
    const std::vector<PrimExpr> dims = m.Dims(data);
    const int64_t axis = m.Axis(number == nullptr ? 0 : *number, dims.size());
    if (dims.empty() || !m.DType(data).is_floating()) m.Fail("mode \"nan\" of what has no axis, or no NaN");
    if (!m.Take(data).ok()) return done(name);
    const DataType index_type = DataType::Int(64);
    const Expr index = m.Cast(values[1], index_type);
    const Expr end = m("shape_to_tensor", {m.Shape({dims[static_cast<size_t>(axis)]})});
    const Expr last = end == nullptr ? Expr() : m.Reshape(end, {});
    const Expr is_inside =
        m("logical_and", {m("greater_equal", {index, m.Number(0, index_type)}), m("less", {index, last})});
    own.resize(own.size() + dims.size() - 1 - static_cast<size_t>(axis), Int64(1));
    values = {is_inside == nullptr ? Expr() : m.Reshape(is_inside, std::move(own)),
              m("take", {data, values[1]}, {{"axis", axis}, {"mode", "clip"}}),
              m.Number(std::numeric_limits<double>::quiet_NaN(), m.DType(data))};
    attrs.clear();
    return done("where");
  }
  if (name == "take" && values.size() > 1 && As<PrimTypeNode>(values[1]->type) != nullptr) {
    const auto* index = As<PrimValueNode>(values[1]);
    if (index == nullptr) return name;
    const auto number = AsConstInt(index->value);
    values[1] = number ? op::NumberConstant(static_cast<double>(*number), DataType::Int(64))
                       : m.Reshape(m("shape_to_tensor", {m.Shape({index->value})}), {});
    return done(name);
  }
  return name;
}

namespace {

// Where a dimension of the result comes from: a dimension of the argument, or one of its two parts.
struct MappedDim {
  size_t from;
  enum class Part : uint8_t { kWhole, kOuter, kInner } part;
  int64_t factor = 1;
};

std::optional<MappedDim> ReadMappedDim(const Syntax& syntax, const std::vector<std::string_view>& names) {
  const bool is_part = syntax.kind == SyntaxKind::kBinary && (syntax.text == "//" || syntax.text == "%");
  const Syntax& name = is_part ? syntax[0] : syntax;
  const auto found = std::ranges::find(names, name.text);
  if (name.kind != SyntaxKind::kName || found == names.end()) return std::nullopt;
  MappedDim dim{static_cast<size_t>(found - names.begin()), MappedDim::Part::kWhole};
  if (!is_part) return dim;
  const std::optional<int64_t> factor = AsInt(syntax[1]);
  if (!factor || *factor < 1) return std::nullopt;
  dim.part = syntax.text == "%" ? MappedDim::Part::kInner : MappedDim::Part::kOuter;
  dim.factor = *factor;
  return dim;
}

}  // namespace

// R.layout_transform(x, index_map=T.index_map(lambda i, j: (j // 4, i, j % 4)), pad_value=...): dimensions are split
// into two parts and permuted.
Expr GraphReader::ReadLayoutTransform(const Syntax& call, Builder& builder) {
  const std::string name = "R.layout_transform";
  Arguments args(context_, call, name);
  const Syntax* x_syntax = args.Require(0, "x");
  const Syntax* map = args.Require(1, "index_map");
  const Syntax* pad_syntax = args.Get(2, "pad_value");
  for (const std::string_view separators : {"axis_separators", "input_axis_separators"}) {
    const Syntax* given = args.Keyword(separators);
    if (given != nullptr && !IsNone(*given) && !given->children.empty()) {
      return context_.Error(*given, name + ": " + std::string(separators) + " are not supported");
    }
  }
  if (x_syntax == nullptr || map == nullptr || !args.Done()) return nullptr;
  const bool is_map =
      CalleeName(*map) == "T.index_map" && map->children.size() == 2 && CalleeName((*map)[1]) == "lambda";
  const auto refuse = [&] {
    return context_.Error(*map, name + ": expected dimensions, or their parts i // 4 and i % 4, in another order");
  };
  if (!is_map) return refuse();
  const Syntax& lambda = (*map)[1];
  std::vector<std::string_view> names;
  for (size_t i = 1; i + 1 < lambda.children.size(); ++i) names.push_back(lambda[i].text);
  const Syntax& body = *lambda.children.back();
  const bool is_list = body.kind == SyntaxKind::kTuple || body.kind == SyntaxKind::kList;
  std::vector<MappedDim> mapped;
  std::vector<int64_t> factors(names.size(), 1), uses(names.size(), 0);
  for (size_t i = 0; i < (is_list ? body.children.size() : 1); ++i) {
    const std::optional<MappedDim> dim = ReadMappedDim(is_list ? body[i] : body, names);
    if (!dim) return refuse();
    const int64_t bit = dim->part == MappedDim::Part::kWhole ? 3 : dim->part == MappedDim::Part::kOuter ? 1 : 2;
    if ((uses[dim->from] & bit) != 0 || (uses[dim->from] != 0 && factors[dim->from] != dim->factor)) return refuse();
    uses[dim->from] |= bit;
    factors[dim->from] = dim->factor;
    mapped.push_back(*dim);
  }
  if (std::ranges::any_of(uses, [](int64_t use) { return use != 3; })) return refuse();
  const Expr x = ReadArgument(*x_syntax, builder);
  if (x == nullptr) return nullptr;
  const BindValue bind = [&](Expr value) { return Leaf(std::move(value), call.place, builder); };
  CompositeMaker m(bind);
  const std::vector<PrimExpr> dims = m.Dims(x);
  if (dims.size() != names.size()) m.Fail("expected " + std::to_string(names.size()) + " dimensions");
  std::vector<int64_t> widths;
  std::vector<PrimExpr> split;
  std::vector<size_t> places(names.size());  // of the first part of each dimension
  bool pads = false;
  for (size_t i = 0; i < std::min(dims.size(), names.size()); ++i) {
    const bool whole = std::ranges::any_of(
        mapped, [&](const MappedDim& dim) { return dim.from == i && dim.part == MappedDim::Part::kWhole; });
    places[i] = split.size();
    const int64_t extent = whole ? 0 : m.Constant(dims[i], "a dimension that is split");
    const int64_t filled = whole ? 0 : (factors[i] - extent % factors[i]) % factors[i];
    widths.insert(widths.end(), {0, filled});
    pads = pads || filled != 0;
    split.push_back(whole ? dims[i] : Int64((extent + filled) / factors[i]));
    if (!whole) split.push_back(Int64(factors[i]));
  }
  Expr value = x;
  if (pads) {
    std::optional<AttrValue> pad;
    if (pad_syntax != nullptr && !IsNone(*pad_syntax)) pad = prim_.ReadAttr(*pad_syntax);
    const double* number = pad ? pad->get<double>() : nullptr;
    const int64_t* whole = pad ? pad->get<int64_t>() : nullptr;
    if (number == nullptr && whole == nullptr) m.Fail("pad_value: parts that do not fill up a dimension need a value");
    const double fill = number != nullptr ? *number : whole != nullptr ? static_cast<double>(*whole) : 0.0;
    value = m("nn.pad", {x}, {{"pad_width", AttrValue::Ints(widths)}, {"pad_value", fill}});
  }
  std::vector<int64_t> order;
  for (const MappedDim& dim : mapped) {
    order.push_back(static_cast<int64_t>(places[dim.from] + (dim.part == MappedDim::Part::kInner ? 1 : 0)));
  }
  const Result<Expr> made = m.Take(m.Permute(m.Reshape(value, split), order));
  return made.ok() ? *made : Expr(context_.Error(call, name + ": " + made.status().message()));
}

}  // namespace ingot::script
