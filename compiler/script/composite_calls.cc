// Reads what TVM's graph functions have and the operator table lacks: operators that become several of this compiler's
// operators (composite_operators.h), Python's infix operators between tensors, and scalars as operands of element-wise
// arithmetic. The calls get bindings like nested calls do, and print as what they became.
#include <algorithm>

#include "compiler/op/fold.h"
#include "compiler/op/registry.h"
#include "compiler/script/composite_maker.h"
#include "compiler/script/composite_operators.h"
#include "compiler/script/graph_reader.h"
#include "compiler/script/printer.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

struct OperatorRow {
  std::string_view text;
  const char* row;
};
constexpr OperatorRow kOperators[] = {{"+", "add"},         {"-", "subtract"},      {"*", "multiply"}, {"/", "divide"},
                                      {"%", "mod"},         {"//", "floor_divide"}, {"<", "less"},     {">", "greater"},
                                      {"<=", "less_equal"}, {">=", "greater_equal"}};

}  // namespace

// Whether an expression holds a tensor or another value of the graph; then its infix operators are the graph's ones.
bool GraphReader::NamesValue(const Syntax& syntax) {
  switch (syntax.kind) {
    case SyntaxKind::kName: {
      const Symbol* symbol = scope_.Find(syntax.text);
      return symbol != nullptr && symbol->kind == Symbol::Kind::kValue;
    }
    case SyntaxKind::kCall:
      return !CalleeName(syntax).starts_with("T.");
    case SyntaxKind::kSubscript:
      return NamesValue(syntax[0]);
    case SyntaxKind::kUnary:
    case SyntaxKind::kBinary:
      return std::any_of(syntax.children.begin(), syntax.children.end(),
                         [&](const SyntaxPtr& child) { return NamesValue(*child); });
    default:
      return false;
  }
}

Expr GraphReader::Emit(const Syntax& syntax, std::string_view name, std::vector<Expr> args, Attrs attrs,
                       Builder& builder) {
  const Result<Call> made = op::MakeCall(name, std::move(args), std::move(attrs));
  if (!made.ok()) return context_.Error(syntax, made.status().message());
  CallNode node = **made;
  node.span = context_.SpanOf(syntax.place);
  return Leaf(Make<CallNode>(std::move(node)), syntax.place, builder);
}

// x + y, -x: returns the call of the operator that Python's infix operator stands for.
Expr GraphReader::ReadOperator(const Syntax& syntax, Builder& builder) {
  const bool unary = syntax.kind == SyntaxKind::kUnary;
  const auto row = std::find_if(std::begin(kOperators), std::end(kOperators),
                                [&](const OperatorRow& candidate) { return candidate.text == syntax.text; });
  if (unary ? syntax.text != "-" : row == std::end(kOperators)) {
    return context_.Error(syntax, "the operator \"" + std::string(syntax.text) +
                                      "\" is not supported between tensors; call the operator by its name, R....");
  }
  std::vector<Expr> operands;
  bool fine = true;
  for (const SyntaxPtr& child : syntax.children) {
    operands.push_back(ReadArgument(*child, builder));
    fine = fine && operands.back() != nullptr;
  }
  if (!fine || !ScalarsToTensors(syntax, operands, builder)) return nullptr;
  const Result<Call> made = op::MakeCall(unary ? "negative" : row->row, std::move(operands));
  if (!made.ok()) return context_.Error(syntax, made.status().message());
  CallNode node = **made;
  node.span = context_.SpanOf(syntax.place);
  return Make<CallNode>(std::move(node));
}

Expr GraphReader::ReadComposite(const Syntax& call, const CompositeOperator& composite, Builder& builder) {
  const std::string name = "R." + std::string(composite.name);
  Arguments args(context_, call, name);
  std::vector<Expr> values;
  AttrDict attrs;
  bool fine = true;
  size_t place = 0;
  for (const std::string_view arg_name : composite.args) {
    const bool is_optional = place + composite.num_optional >= composite.args.size();
    const Syntax* syntax = is_optional ? args.Get(place, arg_name) : args.Require(place, arg_name);
    ++place;
    if (is_optional && (syntax == nullptr || IsNone(*syntax))) {
      values.emplace_back();
      continue;
    }
    const bool is_list = syntax != nullptr && (syntax->kind == SyntaxKind::kTuple || syntax->kind == SyntaxKind::kList);
    if (syntax == nullptr) {
      values.push_back(nullptr);
    } else if (is_list && (arg_name == "size" || arg_name == "shape")) {
      std::optional<std::vector<PrimExpr>> dims = prim_.ReadDims(*syntax);
      values.push_back(dims ? MakeExpr<ShapeExprNode>(*syntax, std::move(*dims)) : Expr());
    } else {
      values.push_back(ReadArgument(*syntax, builder));
    }
    fine = fine && values.back() != nullptr;
  }
  for (const CompositeAttr& attr : composite.attrs) {
    const Syntax* syntax = args.Get(place++, attr.name);
    std::optional<AttrValue> value = attr.value;
    if (syntax != nullptr && attr.is_dtype && !IsNone(*syntax)) {
      const std::optional<DataType> dtype = prim_.ReadDataType(*syntax);
      value = dtype ? std::optional<AttrValue>(*dtype) : std::nullopt;
    } else if (syntax != nullptr) {
      value = prim_.ReadAttr(*syntax);
      if (value && attr.value.get<double>() != nullptr && value->get<int64_t>() != nullptr) {
        value = static_cast<double>(*value->get<int64_t>());
      }
      const bool is_wrapped = CalleeName(*syntax) == "R.prim_value" && syntax->children.size() == 2;
      if (is_wrapped) value = prim_.ReadAttr((*syntax)[1]);
      if (value && !attr.value.is_none() && value->value.index() != attr.value.value.index()) {
        context_.Error(*syntax,
                       name + ": " + std::string(attr.name) + " is of another kind, such as " + PrintAttr(attr.value));
        value.reset();
      }
    }
    fine = fine && value;
    if (value) attrs.emplace_back(attr.name, std::move(*value));
  }
  if (!args.Done() || !fine) return nullptr;
  const auto bind = [&](Expr value) { return Leaf(std::move(value), call.place, builder); };
  const Result<Expr> made = composite.compose(values, Attrs(std::move(attrs)), bind);
  if (!made.ok()) return context_.Error(call, name + ": " + made.status().message());
  if (As<CallNode>(*made) == nullptr) return *made;
  CallNode node = *As<CallNode>(*made);
  node.span = context_.SpanOf(call.place);
  return Make<CallNode>(std::move(node));
}

Expr GraphReader::ReadNullValue(const Syntax& call) {
  Arguments args(context_, call, "R.null_value");
  if (!args.Done()) return nullptr;
  return MakeExpr<TupleNode>(call, std::vector<Expr>{}, Make<TupleTypeNode>(std::vector<Type>{}));
}

Expr GraphReader::ReadMemoryView(const Syntax& call, const std::string& name, Builder& builder) {
  Arguments args(context_, call, name);
  const bool is_lowered = !name.starts_with("R.");  // a call of a function of TVM's runtime, whose name comes first
  const size_t first = is_lowered ? 1 : 0;
  if (is_lowered) args.Require(0, "func");
  const Syntax* data = args.Require(first, "data");
  const bool is_view = name == "R.memory.view" || name == "runtime.TVMTensorCreateView";
  const Syntax* shape_syntax = is_view ? args.Get(first + 1, "shape") : nullptr;
  const Syntax* dtype_syntax = is_view ? args.Get(first + 2, "dtype") : nullptr;
  const Syntax* offset_syntax = is_view ? args.Get(first + 3, "relative_byte_offset") : nullptr;
  for (const std::string_view type : {"out_ty", "ty_args", "sinfo_args"}) {
    if (is_lowered) args.Keyword(type);  // it is inferred
  }
  if (data == nullptr || !args.Done()) return nullptr;
  bool fine = true;
  const auto read = [&](const Syntax* syntax) -> Expr {  // null: the argument is absent
    if (syntax == nullptr || IsNone(*syntax)) return nullptr;
    const Expr value = ReadArgument(*syntax, builder);
    fine = fine && value != nullptr;
    const auto* tuple = value == nullptr ? nullptr : As<TupleNode>(value);
    return tuple != nullptr && tuple->fields.empty() ? nullptr : value;
  };
  const Expr value = read(data), shape = read(shape_syntax), dtype = read(dtype_syntax), offset = read(offset_syntax);
  if (!fine || value == nullptr) return nullptr;
  const auto* tensor = As<TensorTypeNode>(value->type);
  const auto* given = dtype == nullptr ? nullptr : As<DataTypeValueNode>(dtype);
  if (dtype != nullptr && (given == nullptr || tensor == nullptr || !tensor->dtype)) {
    return context_.Error(*dtype_syntax, name + ": expected a dtype, and a tensor of a known one");
  }
  const auto* number = offset == nullptr ? nullptr : As<PrimValueNode>(offset);
  const std::optional<int64_t> bytes = offset == nullptr   ? 0
                                       : number == nullptr ? std::nullopt
                                                           : AsConstInt(number->value);
  if (!bytes || *bytes < 0) {
    return context_.Error(*offset_syntax, name + ": expected the offset as a number");
  }
  if (given != nullptr && given->value != *tensor->dtype) {
    return ReadRetypedMemory(call, name, value, shape, given->value, *bytes, builder);
  }
  if (*bytes != 0) return ReadPartOfMemory(call, name, value, shape, *bytes, builder);
  if (shape == nullptr) return value;
  const Result<Call> made = op::MakeCall("reshape", {value, shape});
  if (!made.ok()) return context_.Error(call, made.status().message());
  CallNode node = **made;
  node.span = context_.SpanOf(call.place);
  return Make<CallNode>(std::move(node));
}

// The bytes of a tensor, from an offset on, as elements of another dtype: of the same width the bits of each element;
// narrower ones are parts of the elements' bytes, and wider ones are put together of several elements.
Expr GraphReader::ReadRetypedMemory(const Syntax& call, const std::string& name, const Expr& value, const Expr& shape,
                                    DataType dtype, int64_t offset_bytes, Builder& builder) {
  const auto* tensor = As<TensorTypeNode>(value->type);
  const auto* dims = shape == nullptr ? nullptr : As<ShapeTypeNode>(shape->type);
  const DataType own = *tensor->dtype;
  const auto is_whole = [](DataType type) { return type.is_scalar() && type.bits >= 8 && !type.is_bool(); };
  if (!is_whole(own) || !is_whole(dtype)) {
    return context_.Error(call, name + ": elements of " + own.ToString() + " as " + dtype.ToString());
  }
  if (!tensor->dims || (shape != nullptr && (dims == nullptr || !dims->dims)) ||
      (shape == nullptr && own.bits != dtype.bits)) {
    return context_.Error(call, name + ": another dtype needs a tensor of known dimensions, and a shape");
  }
  const std::vector<PrimExpr> wanted = dims == nullptr ? *tensor->dims : *dims->dims;
  PrimExpr count = Int64(1), size = Int64(1);  // of the view and of the tensor
  for (const PrimExpr& dim : wanted) count = count * dim;
  for (const PrimExpr& dim : *tensor->dims) size = size * dim;
  const int64_t width = own.bits / 8, new_width = dtype.bits / 8;
  if (offset_bytes % width != 0) return context_.Error(call, name + ": the offset is within an element");
  const BindValue bind = [&](Expr bound) { return Leaf(std::move(bound), call.place, builder); };
  CompositeMaker m(bind);
  const PrimExpr first = Int64(offset_bytes / width);
  const PrimExpr taken = new_width >= width ? count * (new_width / width) : FloorDiv(count, Int64(width / new_width));
  const auto available = AsConstInt(size), needed = AsConstInt(first + taken), view = AsConstInt(count);
  if ((available && needed && *needed > *available) ||
      (view && new_width < width && *view % (width / new_width) != 0)) {
    return context_.Error(call, name + ": the tensor has other bytes than the view");
  }
  Expr part = m.Reshape(value, {Int64(-1)});
  if (offset_bytes != 0 || !available || !needed || *needed != *available)
    part = m.Slice(part, 0, first, first + taken);
  if (new_width < width) {
    const Expr as_dtype = Make<DataTypeValueNode>(dtype);
    return Taken(call, name, m, part == nullptr ? Expr() : m("memory.bitcast", {part, m.Shape(wanted), as_dtype}));
  }
  if (new_width > width) {
    const DataType narrow = DataType::UInt(own.bits), wide = DataType::UInt(dtype.bits);
    const int64_t parts = new_width / width;
    if (own != narrow) part = m("bitcast", {part}, {{"dtype", narrow}});
    part = m.Cast(m.Reshape(part, {count, Int64(parts)}), wide);
    Expr whole;
    for (int64_t i = 0; i < parts; ++i) {
      const Expr places = m.Number(static_cast<double>(i * own.bits), wide);
      const Expr shifted = m("left_shift", {m.Slice(part, 1, Int64(i), Int64(i + 1)), places});
      whole = whole == nullptr ? shifted : m("bitwise_or", {whole, shifted});
    }
    part = whole;
    if (dtype == wide) return Taken(call, name, m, part == nullptr ? Expr() : m.Reshape(part, wanted));
  }
  part = part == nullptr ? Expr() : m("bitcast", {part}, {{"dtype", dtype}});
  return Taken(call, name, m, part == nullptr ? Expr() : m.Reshape(part, wanted));
}

Expr GraphReader::Taken(const Syntax& call, const std::string& name, CompositeMaker& maker, Expr value) {
  Result<Expr> made = maker.Take(std::move(value));
  if (!made.ok()) return context_.Error(call, name + ": " + made.status().message());
  return *std::move(made);
}

// The elements of a tensor from an offset in bytes on, as many as the shape has.
Expr GraphReader::ReadPartOfMemory(const Syntax& call, const std::string& name, const Expr& value, const Expr& shape,
                                   int64_t offset_bytes, Builder& builder) {
  const auto* tensor = As<TensorTypeNode>(value->type);
  const auto* dims = shape == nullptr ? nullptr : As<ShapeTypeNode>(shape->type);
  if (tensor == nullptr || !tensor->dtype || !tensor->dims || dims == nullptr || !dims->dims) {
    return context_.Error(call, name + ": an offset needs a tensor of known dimensions, and a shape");
  }
  const Result<int64_t> element = tensor->dtype->SizeBytes(1);
  if (!element.ok() || offset_bytes % *element != 0) {
    return context_.Error(call, name + ": the offset is no number of elements of " + tensor->dtype->ToString());
  }
  PrimExpr size = Int64(1), count = Int64(1);
  for (const PrimExpr& dim : *tensor->dims) size = size * dim;
  for (const PrimExpr& dim : *dims->dims) count = count * dim;
  const PrimExpr first = Int64(offset_bytes / *element);
  const auto available = AsConstInt(size), needed = AsConstInt(first + count);
  if (available && needed && *needed > *available) {
    return context_.Error(call,
                          name + ": the part ends behind the tensor's " + std::to_string(*available) + " elements");
  }
  const BindValue bind = [&](Expr bound) { return Leaf(std::move(bound), call.place, builder); };
  CompositeMaker m(bind);
  const Expr part = m.Slice(m.Reshape(value, {Int64(-1)}), 0, first, first + count);
  return Taken(call, name, m, part == nullptr ? Expr() : m.Reshape(part, *dims->dims));
}

bool GraphReader::ScalarsToTensors(const Syntax& call, std::vector<Expr>& operands, Builder& builder) {
  if (operands.size() != 2) return true;
  const auto* first = As<TensorTypeNode>(operands[0]->type);
  const auto* second = As<TensorTypeNode>(operands[1]->type);
  if ((first == nullptr) == (second == nullptr)) return true;
  Expr& scalar = operands[first == nullptr ? 0 : 1];
  const auto* value = As<PrimValueNode>(scalar);
  const std::optional<DataType>& dtype = (first == nullptr ? second : first)->dtype;
  if (value == nullptr || !dtype || !dtype->is_scalar()) return true;
  const auto whole = AsConstInt(value->value);
  const auto* broken = As<FloatImmNode>(value->value);
  if (!whole && broken == nullptr) {  // a symbol becomes the one element of a range
    if (!dtype->is_integral() || value->value->dtype != DataType::Int(64)) return true;
    const Expr end = Make<PrimValueNode>(value->value + 1), step = Make<PrimValueNode>(Int64(1));
    scalar = Emit(call, "arange", {scalar, end, step}, {{"dtype", *dtype}}, builder);
    return scalar != nullptr;
  }
  if (!dtype->is_floating() && (broken != nullptr || !dtype->is_int())) return true;
  scalar = op::NumberConstant(broken != nullptr ? broken->value : static_cast<double>(*whole), *dtype);
  if ((first == nullptr ? second : first)->rank != 0) return true;
  scalar = Emit(call, "reshape", {scalar, Make<ShapeExprNode>(std::vector<PrimExpr>{Int64(1)})}, {}, builder);
  return scalar != nullptr;
}

}  // namespace ingot::script
