// Calls of T functions in scalar expressions: typed numbers and casts, arithmetic by name, vectors, intrinsics. A part
// of PrimReader (prim_reader.h).
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "compiler/ir/visitor.h"
#include "compiler/script/prim_reader.h"
#include "runtime/suggest.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

struct NamedOp {
  std::string_view name;
  BinaryOp op;
};
constexpr NamedOp kNamedOps[] = {{"min", BinaryOp::kMin},
                                 {"max", BinaryOp::kMax},
                                 {"truncdiv", BinaryOp::kDiv},
                                 {"truncmod", BinaryOp::kTruncMod},
                                 {"floordiv", BinaryOp::kFloorDiv},
                                 {"floormod", BinaryOp::kFloorMod},
                                 {"Add", BinaryOp::kAdd},
                                 {"Sub", BinaryOp::kSub},
                                 {"Mul", BinaryOp::kMul},
                                 {"Div", BinaryOp::kDiv},
                                 {"Mod", BinaryOp::kTruncMod},
                                 {"FloorDiv", BinaryOp::kFloorDiv},
                                 {"FloorMod", BinaryOp::kFloorMod},
                                 {"Min", BinaryOp::kMin},
                                 {"Max", BinaryOp::kMax},
                                 {"EQ", BinaryOp::kEQ},
                                 {"NE", BinaryOp::kNE},
                                 {"LT", BinaryOp::kLT},
                                 {"LE", BinaryOp::kLE},
                                 {"GT", BinaryOp::kGT},
                                 {"GE", BinaryOp::kGE},
                                 {"And", BinaryOp::kAnd},
                                 {"Or", BinaryOp::kOr}};

constexpr std::string_view kOtherFunctions[] = {"Cast",    "cast", "Select", "Ramp",      "Broadcast", "broadcast",
                                                "Shuffle", "Let",  "Not",    "max_value", "min_value", "infinity",
                                                "ceildiv", "nan",  "all",    "any"};

constexpr int kMaxLanes = 4096;

bool IsLong(const PrimExpr& expr) {
  constexpr int kMaxCopiedNodes = 32;
  struct Counter : PrimVisitor {
    int nodes = 0;
    void VisitPrim(const PrimExpr& part) override {
      if (++nodes <= kMaxCopiedNodes) PrimVisitor::VisitPrim(part);
    }
  } counter;
  counter.VisitPrim(expr);
  return counter.nodes > kMaxCopiedNodes;
}
PrimExpr CeilDivOf(const PrimExpr& a, const PrimExpr& b) { return FloorDiv(a + (b - 1), b); }

}  // namespace

std::optional<double> PrimReader::FloatWord(const Syntax& syntax) {
  const std::optional<std::string> text = AsString(syntax);
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  constexpr std::string_view kBits = "bits:0x";
  if (text && text->starts_with(kBits)) {
    uint64_t bits = 0;
    const char* end = text->data() + text->size();
    const auto read = std::from_chars(text->data() + kBits.size(), end, bits, 16);
    if (read.ec == std::errc() && read.ptr == end) return std::bit_cast<double>(bits);
  }
  context_.Error(syntax, "expected \"nan\", \"inf\" or \"-inf\", got " + Describe(syntax));
  return std::nullopt;
}

PrimExpr PrimReader::ReadTypedNumber(const Syntax& call, DataType dtype) {
  Arguments args(context_, call, "T." + dtype.ToString());
  const Syntax* value = args.Require(0, "value");
  if (value == nullptr || !args.Done()) return nullptr;
  if (value->kind == SyntaxKind::kString && dtype.is_floating()) {
    const std::optional<double> word = FloatWord(*value);
    return word ? PrimExpr(MakeAt<FloatImmNode>(call, dtype, *word)) : PrimExpr();
  }
  if (const std::optional<int64_t> number = AsInt(*value); number && dtype.is_scalar()) {
    if (dtype.is_floating()) return FloatImm(dtype, static_cast<double>(*number));
    if (!dtype.is_integral() && !dtype.is_bool()) return context_.Error(call, "a number is no " + dtype.ToString());
    const int unused = 64 - dtype.bits;
    const bool fits = dtype.is_bool() ? *number == 0 || *number == 1
                      : dtype.is_uint()
                          ? dtype.bits == 64 || (*number >= 0 && (*number >> dtype.bits) == 0)
                          : (static_cast<int64_t>(static_cast<uint64_t>(*number) << unused) >> unused) == *number;
    if (!fits) return context_.Error(*value, "the number is out of the range of " + dtype.ToString());
    return MakeAt<IntImmNode>(call, dtype, *number);
  }
  if (const std::optional<double> number = AsFloat(*value); number && dtype.is_floating() && dtype.is_scalar()) {
    const PrimExpr rounded = FloatImm(dtype, *number);
    return MakeAt<FloatImmNode>(call, dtype, As<FloatImmNode>(rounded)->value);
  }
  if ((value->is_name("True") || value->is_name("False")) && dtype.is_bool()) {
    return MakeAt<IntImmNode>(call, dtype, value->text == "True" ? 1 : 0);
  }
  PrimExpr expr = Read(*value);
  return expr == nullptr ? PrimExpr() : Convert({expr}, dtype, call);
}

PrimExpr PrimReader::ReadCall(const Syntax& call) {
  // x.astype("float16")
  if (call[0].kind == SyntaxKind::kAttribute && call[0].text == "astype") {
    Arguments args(context_, call, "astype");
    const Syntax* dtype_syntax = args.Require(0, "dtype");
    if (dtype_syntax == nullptr || !args.Done()) return nullptr;
    const std::optional<DataType> dtype = ReadDataType(*dtype_syntax);
    PrimExpr value = Read(call[0][0]);
    return dtype && value != nullptr ? Convert({value}, *dtype, call) : PrimExpr();
  }
  const std::string name = CalleeName(call);
  if (name == "lambda") return context_.Error(call, "lambda expressions are not supported");
  if (!name.starts_with("T.")) {
    if (call[0].kind == SyntaxKind::kError) return nullptr;
    return context_.Error(call, "expected a scalar expression, got " + Describe(call));
  }
  const std::string function = name.substr(2);
  if (function == "boolean") return ReadTypedNumber(call, DataType::Bool());  // before TVM 0.20
  if (const Result<DataType> dtype = DataType::Parse(function); dtype.ok()) return ReadTypedNumber(call, *dtype);
  for (const NamedOp& row : kNamedOps) {
    if (row.name != function) continue;
    Arguments args(context_, call, name);
    const Syntax* a = args.Require(0, "a");
    const Syntax* b = args.Require(1, "b");
    if (a == nullptr || b == nullptr || !args.Done()) return nullptr;
    return MakeBinary(row.op, ReadOperand(*a), ReadOperand(*b), call);
  }
  if (function == "all") return ReadJunction(call, BinaryOp::kAnd);
  if (function == "any") return ReadJunction(call, BinaryOp::kOr);
  if (function == "Let") return ReadLet(call);
  if (function == "comm_reducer") return ReadReducer(call);
  if (function == "Ramp" || function == "Broadcast" || function == "broadcast") return ReadVector(call, function);
  if (function == "Shuffle") return ReadShuffle(call);
  Arguments args(context_, call, name);
  if (function == "Cast" || function == "cast") {  // T.Cast(dtype, value), T.cast(value, dtype)
    const bool type_first = function == "Cast";
    const Syntax* dtype_syntax = args.Require(type_first ? 0 : 1, "dtype");
    const Syntax* value_syntax = args.Require(type_first ? 1 : 0, "value");
    if (dtype_syntax == nullptr || value_syntax == nullptr || !args.Done()) return nullptr;
    const std::optional<DataType> dtype = ReadDataType(*dtype_syntax);
    PrimExpr value = Read(*value_syntax);
    if (!dtype || value == nullptr) return nullptr;
    if (value->dtype.lanes != dtype->lanes || value->dtype.is_handle() || dtype->is_handle()) {
      return context_.Error(call, "a cast of " + value->dtype.ToString() + " to " + dtype->ToString());
    }
    return MakeAt<CastNode>(call, *dtype, std::move(value));
  }
  if (function == "Select") {
    const Syntax* condition_syntax = args.Require(0, "condition");
    const Syntax* yes_syntax = args.Require(1, "true_value");
    const Syntax* no_syntax = args.Require(2, "false_value");
    if (condition_syntax == nullptr || yes_syntax == nullptr || no_syntax == nullptr || !args.Done()) return nullptr;
    PrimExpr condition = ReadCondition(*condition_syntax);
    Operand yes = ReadOperand(*yes_syntax), no = ReadOperand(*no_syntax);
    if (condition == nullptr || yes.expr == nullptr || no.expr == nullptr || !Match(yes, no, call)) return nullptr;
    return MakeAt<SelectNode>(call, std::move(condition), yes.expr, no.expr);
  }
  if (function == "Not") {
    const Syntax* value = args.Require(0, "a");
    PrimExpr condition = value == nullptr || !args.Done() ? PrimExpr() : ReadCondition(*value);
    return condition == nullptr ? PrimExpr() : PrimExpr(MakeAt<NotNode>(call, std::move(condition)));
  }
  if (function == "max_value" || function == "min_value" || function == "infinity" || function == "nan") {
    const Syntax* dtype_syntax = args.Get(0, "dtype");
    if (!args.Done()) return nullptr;
    const std::optional<DataType> dtype = dtype_syntax == nullptr ? DataType::Float(32) : ReadDataType(*dtype_syntax);
    if (!dtype) return nullptr;
    if (function == "max_value") return MaxValue(*dtype);
    if (function == "min_value") return MinValue(*dtype);
    if (!dtype->is_floating()) return context_.Error(call, dtype->ToString() + " has no such value");
    return FloatImm(*dtype, function == "nan" ? std::nan("") : std::numeric_limits<double>::infinity());
  }
  if (function == "ceildiv") {
    const Syntax* a_syntax = args.Require(0, "lhs");
    const Syntax* b_syntax = args.Require(1, "rhs");
    if (a_syntax == nullptr || b_syntax == nullptr || !args.Done()) return nullptr;
    Operand a = ReadOperand(*a_syntax), b = ReadOperand(*b_syntax);
    if (a.expr == nullptr || b.expr == nullptr || !Match(a, b, call) || !CheckInteger(b.expr, call)) return nullptr;
    // The divisor is mentioned twice. A long one is computed once, since copies of such calls in it would double with
    // each of them; others stay index arithmetic.
    if (!IsLong(b.expr)) return CeilDivOf(a.expr, b.expr);
    const PrimVar divisor = MakePrimVar("divisor", b.expr->dtype);
    return MakeAt<LetNode>(call, divisor, b.expr, CeilDivOf(a.expr, divisor));
  }
  const IntrinsicRow* row = FindIntrinsic(function);
  if (row != nullptr) return ReadIntrinsic(call, *row);
  for (const ExpandedIntrinsic& expanded : ExpandedIntrinsics()) {
    if (expanded.name == function) return ReadExpanded(call, expanded);
  }
  if (function == "undef") {  // nobody relies on the value
    const Syntax* dtype_syntax = args.Get(0, "dtype");
    if (!args.Done()) return nullptr;
    const std::optional<DataType> dtype = dtype_syntax == nullptr ? DataType::Int(32) : ReadDataType(*dtype_syntax);
    return dtype ? Cast(*dtype, IntImm(DataType::Int(32), 0)) : PrimExpr();
  }
  const size_t errors = context_.sink().count();
  if (PrimExpr device = ReadDeviceCall(call, function); device != nullptr || context_.sink().count() != errors) {
    return device;
  }

  std::vector<std::string_view> known(std::begin(kOtherFunctions), std::end(kOtherFunctions));
  for (const NamedOp& named : kNamedOps) known.push_back(named.name);
  for (const ExpandedIntrinsic& expanded : ExpandedIntrinsics()) known.push_back(expanded.name);
#define INGOT_INTRINSIC(id, text, arity, result, traits, expansion, operations) known.push_back(text);
#include "compiler/ir/intrinsics.def"
  const std::string_view near = NearestName(function, known);
  return context_.Error(call[0], "unknown function \"" + name + "\"" +
                                     (near.empty() ? "" : "; did you mean \"T." + std::string(near) + "\"?"));
}

PrimExpr PrimReader::ReadIntrinsic(const Syntax& call, const IntrinsicRow& row) {
  const std::string name = std::string("T.") + row.name;
  Arguments args(context_, call, name);
  std::optional<DataType> dtype;
  if (const Syntax* given = args.Keyword("dtype")) {
    dtype = ReadDataType(*given);
    if (!dtype) return nullptr;
  }
  size_t first = 0;
  const bool packed = row.id == Intrinsic::kCallPacked;
  if (row.result == IntrinsicRow::kGiven && !dtype && !packed) {
    const Syntax* given = args.Require(0, "dtype");
    if (given == nullptr) return nullptr;
    // The function returns nothing; in a statement the value is dropped anyway.
    const bool is_void = row.id == Intrinsic::kCallExtern && AsString(*given) == "void";
    dtype = is_void ? DataType::Int(32) : ReadDataType(*given);
    if (!dtype) return nullptr;
    first = 1;
  }
  std::vector<Operand> operands;
  for (size_t i = first; i < args.num_positional(); ++i) {
    operands.push_back(ReadOperand(*args.Get(i, "value")));
    if (packed) SetNumberType(operands.back(), DataType::Int(32), call);
    if (operands.back().expr == nullptr) return nullptr;
  }
  if (operands.size() == 1 || row.result == IntrinsicRow::kGiven) {
    for (Operand& operand : operands) Settle(operand, call);
  }
  if (!args.Done()) return nullptr;
  if (row.arity >= 0 && static_cast<size_t>(row.arity) != operands.size()) {
    return context_.Error(
        call, name + ": expected " + std::to_string(row.arity) + " arguments, got " + std::to_string(operands.size()));
  }
  // Operands that must agree in dtype: all of them in arithmetic, the last two in if_then_else.
  const bool lazy = row.id == Intrinsic::kIfThenElse;
  if (lazy && !operands[0].expr->dtype.is_bool()) {
    return context_.Error(call, name + ": expected a condition (bool), got " + operands[0].expr->dtype.ToString());
  }
  if (row.result != IntrinsicRow::kGiven && operands.size() > 1) {
    const size_t begin = lazy ? 1 : 0;
    for (size_t i = begin + 1; i < operands.size(); ++i) {
      if (!Match(operands[begin], operands[i], call)) return nullptr;
    }
    for (size_t i = begin + 1; i < operands.size(); ++i) {  // the first may have been converted since
      if (!Match(operands[begin], operands[i], call)) return nullptr;
    }
  }
  if (!dtype) {
    switch (row.result) {
      case IntrinsicRow::kSameAsFirst:
        dtype = operands[0].expr->dtype;
        break;
      case IntrinsicRow::kSameAsSecond:
        dtype = operands[1].expr->dtype;
        break;
      case IntrinsicRow::kBoolLanes:
        dtype = DataType::Bool(operands[0].expr->dtype.lanes);
        break;
      case IntrinsicRow::kGiven:
        dtype = DataType::Int(32);
        break;
    }
  }
  std::vector<PrimExpr> values;
  for (Operand& operand : operands) values.push_back(std::move(operand.expr));
  return MakeAt<PrimCallNode>(call, *dtype, row.id, std::move(values));
}

PrimExpr PrimReader::ReadExpanded(const Syntax& call, const ExpandedIntrinsic& row) {
  const std::string name = "T." + std::string(row.name);
  Arguments args(context_, call, name);
  std::vector<Operand> operands;
  for (size_t i = 0; i < args.num_positional(); ++i) {
    operands.push_back(ReadOperand(*args.Get(i, "value")));
    if (operands.back().expr == nullptr) return nullptr;
  }
  if (!args.Done()) return nullptr;
  if (operands.size() != row.arity) {
    return context_.Error(
        call, name + ": expected " + std::to_string(row.arity) + " arguments, got " + std::to_string(operands.size()));
  }
  if (row.arity == 2 && !row.of_integers && !Match(operands[0], operands[1], call)) return nullptr;
  std::vector<PrimExpr> values;
  for (Operand& operand : operands) {
    Settle(operand, call);
    values.push_back(std::move(operand.expr));
  }
  const DataType dtype = values[0]->dtype;
  const bool fits = row.of_integers ? dtype.is_integral() && dtype.bits >= 8 : dtype.is_floating() && dtype.bits >= 16;
  if (!fits || !dtype.is_scalar()) {
    return context_.Error(call, name + ": expected " + (row.of_integers ? "integers" : "floating-point numbers") +
                                    ", got " + dtype.ToString());
  }
  return row.expand(values);
}

PrimExpr PrimReader::ReadJunction(const Syntax& call, BinaryOp op) {
  PrimExpr result;
  for (size_t i = 1; i < call.children.size(); ++i) {
    PrimExpr condition = ReadCondition(call[i]);
    if (condition == nullptr) return nullptr;
    result = result == nullptr ? std::move(condition) : MakeBinary(op, {result}, {condition}, call);
  }
  return result != nullptr ? result : PrimExpr(context_.Error(call, CalleeName(call) + ": expected conditions"));
}

// T.Let(body, where={x: value})
PrimExpr PrimReader::ReadLet(const Syntax& call) {
  Arguments args(context_, call, "T.Let");
  const Syntax* body = args.Require(0, "expr");
  const Syntax* where = args.Require(1, "where");
  if (body == nullptr || where == nullptr || !args.Done()) return nullptr;
  if (where->kind != SyntaxKind::kDict || where->children.size() != 2 || (*where)[0].kind != SyntaxKind::kName) {
    return context_.Error(*where, "expected one variable with its value: where={x: value}");
  }
  PrimExpr value = Read((*where)[1]);
  if (value == nullptr) return nullptr;
  const std::string_view name = (*where)[0].text;
  const PrimVar var = MakePrimVar(std::string(name), value->dtype);
  const ScopeTable::Scope inner(scope_);
  scope_.Define(name, Symbol::Prim(var));
  PrimExpr result = Read(*body);
  return result == nullptr ? PrimExpr() : PrimExpr(MakeAt<LetNode>(call, var, std::move(value), std::move(result)));
}

PrimExpr PrimReader::ReadVector(const Syntax& call, const std::string& function) {
  Arguments args(context_, call, "T." + function);
  const bool is_ramp = function == "Ramp";
  const Syntax* base_syntax = args.Require(0, is_ramp ? "base" : "value");
  const Syntax* stride_syntax = is_ramp ? args.Require(1, "stride") : nullptr;
  const Syntax* lanes_syntax = args.Require(is_ramp ? 2 : 1, "lanes");
  if (base_syntax == nullptr || lanes_syntax == nullptr || (is_ramp && stride_syntax == nullptr) || !args.Done()) {
    return nullptr;
  }
  const std::optional<int64_t> lanes = AsInt(*lanes_syntax);
  if (!lanes || *lanes < 2 || *lanes > kMaxLanes) {
    return context_.Error(*lanes_syntax, "expected a number of lanes from 2 to 4096");
  }
  Operand base = ReadOperand(*base_syntax);
  Settle(base, call);
  if (base.expr == nullptr) return nullptr;
  if (base.expr->dtype.lanes * *lanes > kMaxLanes) return context_.Error(call, "vectors have at most 4096 lanes");
  if (!is_ramp) return MakeAt<BroadcastNode>(call, std::move(base.expr), static_cast<int>(*lanes));
  Operand stride = ReadOperand(*stride_syntax);
  if (stride.expr == nullptr || !Match(base, stride, call)) return nullptr;
  if (!base.expr->dtype.is_integral() || !base.expr->dtype.is_scalar()) {
    return context_.Error(call, "T.Ramp: expected integers, got " + base.expr->dtype.ToString());
  }
  return MakeAt<RampNode>(call, std::move(base.expr), std::move(stride.expr), static_cast<int>(*lanes));
}

PrimExpr PrimReader::ReadShuffle(const Syntax& call) {
  Arguments args(context_, call, "T.Shuffle");
  const Syntax* vectors_syntax = args.Require(0, "vectors");
  const Syntax* indices_syntax = args.Require(1, "indices");
  if (vectors_syntax == nullptr || indices_syntax == nullptr || !args.Done()) return nullptr;
  const auto is_list = [](const Syntax& s) { return s.kind == SyntaxKind::kList || s.kind == SyntaxKind::kTuple; };
  if (!is_list(*vectors_syntax) || !is_list(*indices_syntax) || vectors_syntax->children.empty() ||
      indices_syntax->children.empty() || indices_syntax->children.size() > kMaxLanes) {
    return context_.Error(call, "T.Shuffle: expected a list of vectors and a list of positions");
  }
  std::vector<PrimExpr> vectors;
  int64_t lanes = 0;
  for (const SyntaxPtr& item : vectors_syntax->children) {
    PrimExpr vector = Read(*item);
    if (vector == nullptr) return nullptr;
    lanes += vector->dtype.lanes;
    if (!vectors.empty() && vectors[0]->dtype.element_of() != vector->dtype.element_of()) {
      return context_.Error(*item, "T.Shuffle: expected " + vectors[0]->dtype.element_of().ToString() + ", got " +
                                       vector->dtype.element_of().ToString());
    }
    vectors.push_back(std::move(vector));
  }
  std::vector<int64_t> indices;
  for (const SyntaxPtr& item : indices_syntax->children) {
    const std::optional<int64_t> index = AsInt(*item);
    if (!index || *index < 0 || *index >= lanes) {
      return context_.Error(*item, "T.Shuffle: expected a position below " + std::to_string(lanes));
    }
    indices.push_back(*index);
  }
  return MakeAt<ShuffleNode>(call, std::move(vectors), std::move(indices));
}

}  // namespace ingot::script
