// What TVM's graph functions say and the operator table has no row for: Python's operators between tensors, scalars as
// operands of element-wise arithmetic, and batch normalisation, which is arithmetic of other rows so that it folds into
// what stands before it. The calls are bound like nested ones, and print as what they became.
#include <algorithm>

#include "compiler/op/fold.h"
#include "compiler/op/registry.h"
#include "compiler/script/graph_reader.h"

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

// Whether an expression holds a tensor or another value of the graph, so that its operators are not the scalars' ones.
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

// x + y, -x: the call of the row that Python's operator stands for.
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

bool GraphReader::ScalarsToTensors(const Syntax& call, std::vector<Expr>& operands, Builder& builder) {
  if (operands.size() != 2) return true;
  const auto* first = As<TensorTypeNode>(operands[0]->type);
  const auto* second = As<TensorTypeNode>(operands[1]->type);
  if ((first == nullptr) == (second == nullptr)) return true;
  Expr& scalar = operands[first == nullptr ? 0 : 1];
  const auto* value = As<PrimValueNode>(scalar);
  const std::optional<DataType>& dtype = (first == nullptr ? second : first)->dtype;
  if (value == nullptr || !dtype || !dtype->is_scalar()) return true;
  const int64_t* whole = AsConstInt(value->value);
  const auto* broken = As<FloatImmNode>(value->value);
  if (whole == nullptr && broken == nullptr) {  // a symbol: the one element of a range
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

// R.nn.batch_norm(data, gamma, beta, moving_mean, moving_var, axis, epsilon, center, scale, momentum, training): at
// inference (data - mean) / sqrt(variance + epsilon) * gamma + beta along the axis, with the statistics as they came.
Expr GraphReader::ReadBatchNorm(const Syntax& call, Builder& builder) {
  const char* const kNames[] = {"data", "gamma", "beta", "moving_mean", "moving_var"};
  Arguments args(context_, call, "R.nn.batch_norm");
  std::vector<Expr> values;
  bool fine = true;
  for (const char* name : kNames) {
    const Syntax* syntax = args.Require(values.size(), name);
    values.push_back(syntax == nullptr ? Expr() : ReadArgument(*syntax, builder));
    fine = fine && values.back() != nullptr;
  }
  const auto attr = [&](size_t place, const char* name, AttrValue default_value) {
    const Syntax* syntax = args.Get(place, name);
    return syntax == nullptr ? std::optional(std::move(default_value)) : prim_.ReadAttr(*syntax);
  };
  const std::optional<AttrValue> axis_value = attr(5, "axis", -1), epsilon_value = attr(6, "epsilon", 1e-5),
                                 center = attr(7, "center", true), scale = attr(8, "scale", true),
                                 momentum = attr(9, "momentum", 0.1), training = attr(10, "training", true);
  if (!args.Done() || !fine || !axis_value || !epsilon_value || !center || !scale || !momentum || !training) {
    return nullptr;
  }
  if (training->get<bool>() == nullptr || *training->get<bool>()) {
    return context_.Error(call, "R.nn.batch_norm: training is not supported; write training=False");
  }
  const auto* data = As<TensorTypeNode>(values[0]->type);
  const auto* variance = As<TensorTypeNode>(values[4]->type);
  if (data == nullptr || !data->dims || !data->dtype || variance == nullptr || !variance->dtype) {
    return context_.Error(call, "R.nn.batch_norm: expected tensors of known shape and dtype");
  }
  const int64_t* axis_number = axis_value->get<int64_t>();
  const double* epsilon_number = epsilon_value->get<double>();
  const int64_t rank = data->rank;
  const int64_t axis = axis_number == nullptr ? rank : *axis_number < 0 ? *axis_number + rank : *axis_number;
  if (axis < 0 || axis >= rank || epsilon_number == nullptr) {
    return context_.Error(call, "R.nn.batch_norm: expected an axis of the data and a floating epsilon");
  }
  const auto is_true = [](const std::optional<AttrValue>& value) {
    return value->get<bool>() == nullptr || *value->get<bool>();
  };
  // Factor and shift of every channel depend on parameters alone.
  const auto emit = [&](const char* name, std::vector<Expr> operands) -> Expr {
    for (const Expr& operand : operands) {
      if (operand == nullptr) return nullptr;
    }
    return Emit(call, name, std::move(operands), {}, builder);
  };
  const Expr deviation =
      emit("sqrt", {emit("add", {values[4], op::NumberConstant(*epsilon_number, *variance->dtype)})});
  Expr factor = is_true(scale) ? emit("divide", {values[1], deviation})
                               : emit("divide", {op::NumberConstant(1, *variance->dtype), deviation});
  Expr shift = emit("multiply", {values[3], factor});
  shift = is_true(center) ? emit("subtract", {values[2], shift}) : emit("negative", {shift});
  std::vector<PrimExpr> dims(static_cast<size_t>(rank), Int64(1));
  dims[static_cast<size_t>(axis)] = (*data->dims)[static_cast<size_t>(axis)];
  const Expr shape = Make<ShapeExprNode>(std::move(dims));
  factor = emit("reshape", {factor, shape});
  shift = emit("reshape", {shift, shape});
  const Expr result = emit("add", {emit("multiply", {values[0], factor}), shift});
  if (result == nullptr) return nullptr;
  std::vector<Type> types = {result->type, values[3]->type, values[4]->type};
  return MakeExpr<TupleNode>(call, std::vector<Expr>{result, values[3], values[4]},
                             Make<TupleTypeNode>(std::move(types)));
}

}  // namespace ingot::script
