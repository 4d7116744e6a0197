// A switch over the kinds of expressions; an operand gets parentheses if its precedence needs them.
#include "compiler/script/prim_printer.h"

#include <utility>

#include "compiler/script/literals.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

// Python's precedences, from loose to tight. A comparison takes no comparison as an operand (Python would chain them).
enum Precedence : int {
  kLoosest = 0,
  kOr = 1,
  kAnd = 2,
  kNotPrecedence = 3,
  kComparePrecedence = 4,
  kBitOr = 5,
  kBitXor = 6,
  kBitAnd = 7,
  kShift = 8,
  kSum = 9,
  kProduct = 10,
  kUnaryPrecedence = 11,
};

struct Infix {
  const char* text;  // null: the operation is printed as a function
  int precedence;
};
Infix InfixOf(BinaryOp op, bool is_float) {
  switch (op) {
    case BinaryOp::kAdd:
      return {" + ", kSum};
    case BinaryOp::kSub:
      return {" - ", kSum};
    case BinaryOp::kMul:
      return {" * ", kProduct};
    case BinaryOp::kDiv:
      return {is_float ? " / " : nullptr, kProduct};
    case BinaryOp::kTruncMod:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      return {nullptr, 0};
    case BinaryOp::kFloorDiv:
      return {" // ", kProduct};
    case BinaryOp::kFloorMod:
      return {" % ", kProduct};
    case BinaryOp::kEQ:
      return {" == ", kComparePrecedence};
    case BinaryOp::kNE:
      return {" != ", kComparePrecedence};
    case BinaryOp::kLT:
      return {" < ", kComparePrecedence};
    case BinaryOp::kLE:
      return {" <= ", kComparePrecedence};
    case BinaryOp::kGT:
      return {" > ", kComparePrecedence};
    case BinaryOp::kGE:
      return {" >= ", kComparePrecedence};
    case BinaryOp::kAnd:
      return {" and ", kAnd};
    case BinaryOp::kOr:
      return {" or ", kOr};
  }
  INGOT_UNREACHABLE("BinaryOp");
}

const char* FunctionOf(BinaryOp op) {
  if (op == BinaryOp::kMin) return "T.min";
  if (op == BinaryOp::kMax) return "T.max";
  return op == BinaryOp::kDiv ? "T.truncdiv" : "T.truncmod";
}

Infix InfixOf(Intrinsic op) {
  switch (op) {  // only those that Python has an operator for
    case Intrinsic::kShiftLeft:
      return {" << ", kShift};
    case Intrinsic::kShiftRight:
      return {" >> ", kShift};
    case Intrinsic::kBitwiseAnd:
      return {" & ", kBitAnd};
    case Intrinsic::kBitwiseXor:
      return {" ^ ", kBitXor};
    case Intrinsic::kBitwiseOr:
      return {" | ", kBitOr};
    default:
      return {nullptr, 0};
  }
}

std::string Parenthesized(std::string text, bool needed) { return needed ? "(" + std::move(text) + ")" : text; }

// The dtype that the intrinsic's table row implies for the result; handle if it implies none.
DataType ImpliedDtype(const PrimCallNode& node) {
  switch (GetIntrinsicRow(node.op).result) {
    case IntrinsicRow::kSameAsFirst:
      return node.args.empty() ? DataType::Handle() : node.args[0]->dtype;
    case IntrinsicRow::kSameAsSecond:
      return node.args.size() < 2 ? DataType::Handle() : node.args[1]->dtype;
    case IntrinsicRow::kBoolLanes:
      return node.args.empty() ? DataType::Handle() : DataType::Bool(node.args[0]->dtype.lanes);
    case IntrinsicRow::kGiven:
      return node.dtype;
  }
  INGOT_UNREACHABLE("IntrinsicRow::Result");
}

}  // namespace

std::string PrimPrinter::VarText(const PrimVarNode& var) {
  if (const std::string* name = names_.Find(&var)) return *name;
  symbols_.emplace_back(&var);
  return names_.DefineOutermost(&var, var.name);
}

std::string PrimPrinter::BufferName(const Buffer& buffer) {
  if (const std::string* name = names_.Find(buffer.get())) return *name;
  return names_.DefineOutermost(buffer.get(), buffer->name);  // a fragment: its definition is not printed
}

std::string PrimPrinter::Expr(const PrimExpr& expr, int precedence) {
  if (expr == nullptr) return "<null>";
  switch (expr->kind) {
    case PrimKind::kIntImm: {
      const int64_t value = As<IntImmNode>(expr)->value;
      const std::string digits = IntLiteral(expr->dtype, value);
      if (dialect_ == Dialect::kGraph && expr->dtype == DataType::Int(64)) {
        return Parenthesized(digits, value < 0 && precedence > kSum);
      }
      return "T." + expr->dtype.ToString() + "(" + digits + ")";
    }
    case PrimKind::kFloatImm:
      return "T." + expr->dtype.ToString() + "(" + FloatLiteral(expr->dtype, As<FloatImmNode>(expr)->value) + ")";
    case PrimKind::kStringImm:
      return Quote(As<StringImmNode>(expr)->value);
    case PrimKind::kPrimVar:
      return VarText(*As<PrimVarNode>(expr));
    case PrimKind::kBinary:
      return Binary(*As<BinaryNode>(expr), precedence);
    case PrimKind::kNot:
      return Parenthesized("not " + Expr(As<NotNode>(expr)->a, kNotPrecedence), precedence > kNotPrecedence);
    case PrimKind::kSelect: {
      const auto* node = As<SelectNode>(expr);
      return "T.Select(" + Expr(node->condition) + ", " + Expr(node->true_value) + ", " + Expr(node->false_value) + ")";
    }
    case PrimKind::kCast:
      return "T.Cast(" + Quote(expr->dtype.ToString()) + ", " + Expr(As<CastNode>(expr)->value) + ")";
    case PrimKind::kBufferLoad: {
      const auto* node = As<BufferLoadNode>(expr);
      return Access(BufferName(node->buffer), node->indices);
    }
    case PrimKind::kRamp: {
      const auto* node = As<RampNode>(expr);
      return "T.Ramp(" + Expr(node->base) + ", " + Expr(node->stride) + ", " + std::to_string(node->lanes) + ")";
    }
    case PrimKind::kBroadcast: {
      const auto* node = As<BroadcastNode>(expr);
      return "T.Broadcast(" + Expr(node->value) + ", " + std::to_string(node->lanes) + ")";
    }
    case PrimKind::kShuffle: {
      const auto* node = As<ShuffleNode>(expr);
      std::string indices;
      for (const int64_t index : node->indices) indices += (indices.empty() ? "" : ", ") + std::to_string(index);
      return "T.Shuffle(" + List(node->vectors) + ", [" + indices + "])";
    }
    case PrimKind::kLet: {
      const auto* node = As<LetNode>(expr);
      std::string value = Expr(node->value);
      NameSupply::Scope scope(names_);
      const std::string name = names_.Define(node->var.get(), node->var->name);
      return "T.Let(" + Expr(node->body) + ", where={" + name + ": " + value + "})";
    }
    case PrimKind::kPrimCall:
      return Call(*As<PrimCallNode>(expr), precedence);
    case PrimKind::kReduce: {  // only in tensor expressions, which are no part of modules: for messages
      const auto* node = As<ReduceNode>(expr);
      std::string axes;
      for (const IterVar& axis : node->axes) axes += (axes.empty() ? "" : ", ") + VarText(*axis->var);
      return "te.reduce(" + Expr(node->source.at(static_cast<size_t>(node->value_index))) + ", axis=[" + axes + "])";
    }
    case PrimKind::kProducerLoad:
      return Access("producer", As<ProducerLoadNode>(expr)->indices);
  }
  INGOT_UNREACHABLE("PrimKind");
}

std::string PrimPrinter::Binary(const BinaryNode& node, int precedence) {
  const Infix infix = InfixOf(node.op, node.a->dtype.is_floating());
  if (infix.text == nullptr) return std::string(FunctionOf(node.op)) + "(" + Expr(node.a) + ", " + Expr(node.b) + ")";
  const int left = infix.precedence == kComparePrecedence ? kComparePrecedence + 1 : infix.precedence;
  return Parenthesized(Expr(node.a, left) + infix.text + Expr(node.b, infix.precedence + 1),
                       precedence > infix.precedence);
}

std::string PrimPrinter::Call(const PrimCallNode& node, int precedence) {
  const IntrinsicRow& row = GetIntrinsicRow(node.op);
  const bool implied = ImpliedDtype(node) == node.dtype;
  if (const Infix infix = InfixOf(node.op); infix.text != nullptr && node.args.size() == 2 && implied) {
    return Parenthesized(Expr(node.args[0], infix.precedence) + infix.text + Expr(node.args[1], infix.precedence + 1),
                         precedence > infix.precedence);
  }
  if (node.op == Intrinsic::kBitwiseNot && node.args.size() == 1 && implied) {
    return Parenthesized("~" + Expr(node.args[0], kUnaryPrecedence), precedence > kUnaryPrecedence);
  }
  std::string args;
  const auto add = [&](const std::string& text) { args += (args.empty() ? "" : ", ") + text; };
  const bool packed = node.op == Intrinsic::kCallPacked;  // its result is int32 by default, as in TVM
  if (row.result == IntrinsicRow::kGiven && !packed) add(Quote(node.dtype.ToString()));
  for (const PrimExpr& arg : node.args) add(Expr(arg));
  if (packed ? node.dtype != DataType::Int(32) : !implied) add("dtype=" + Quote(node.dtype.ToString()));
  return "T." + std::string(row.name) + "(" + args + ")";
}

std::string PrimPrinter::Access(const std::string& name, const std::vector<PrimExpr>& indices) {
  if (indices.empty()) return name + "[()]";
  std::string text;
  for (const PrimExpr& index : indices) text += (text.empty() ? "" : ", ") + Expr(index);
  return name + "[" + text + "]";
}

std::string PrimPrinter::Region(const BufferRegion& region) {
  std::string text;
  for (const Range& range : region.region) {
    if (!text.empty()) text += ", ";
    text += Expr(range.min);
    if (!IsConstInt(range.extent, 1)) text += ":" + RangeEnd(range);
  }
  return BufferName(region.buffer) + "[" + (region.region.empty() ? "()" : text) + "]";
}

std::string PrimPrinter::RangeEnd(const Range& range) {
  const auto min = AsConstInt(range.min);
  const auto extent = AsConstInt(range.extent);
  int64_t end = 0;
  if (min && extent && !__builtin_add_overflow(*min, *extent, &end)) {
    return Expr(IntImm(range.extent->dtype, end));
  }
  return Expr(Make<BinaryNode>(BinaryOp::kAdd, range.min, range.extent));
}

std::string PrimPrinter::Dim(const PrimExpr& expr, bool in_signature) {
  const bool compound = expr->kind != PrimKind::kIntImm && expr->kind != PrimKind::kPrimVar;
  return in_signature && compound ? Quote(Expr(expr)) : Expr(expr);
}

std::string PrimPrinter::List(const std::vector<PrimExpr>& exprs, bool in_signature) {
  std::string text;
  for (const PrimExpr& expr : exprs) text += (text.empty() ? "" : ", ") + Dim(expr, in_signature);
  return "[" + text + "]";
}

std::string PrimPrinter::Tuple(const std::vector<PrimExpr>& exprs, bool in_signature) {
  std::string text = List(exprs, in_signature);
  return "(" + text.substr(1, text.size() - 2) + (exprs.size() == 1 ? ",)" : ")");
}

std::string PrimPrinter::BufferArguments(const Buffer& buffer, bool in_signature, bool omit_float32) {
  std::string text = Tuple(buffer->shape, in_signature);
  if (!omit_float32 || buffer->dtype != DataType::Float(32)) text += ", " + Quote(buffer->dtype.ToString());
  if (!buffer->strides.empty()) text += ", strides=" + Tuple(buffer->strides, in_signature);
  if (buffer->elem_offset) text += ", elem_offset=" + Dim(buffer->elem_offset, in_signature);
  if (buffer->scope != "global") text += ", scope=" + Quote(buffer->scope);
  if (buffer->alignment != 64) text += ", align=" + std::to_string(buffer->alignment);
  return text;
}

std::string PrimPrinter::Dict(const AttrDict& items) {
  std::string text;
  for (const auto& [key, value] : items) text += (text.empty() ? "" : ", ") + Quote(key) + ": " + Attr(value);
  return "{" + text + "}";
}

std::string PrimPrinter::Attr(const AttrValue& value) {
  if (value.is_none()) return "None";
  if (const auto* v = value.get<bool>()) return *v ? "True" : "False";
  if (const auto* v = value.get<int64_t>()) return std::to_string(*v);
  if (const auto* v = value.get<double>()) return PythonFloat(*v);
  if (const auto* v = value.get<std::string>()) return Quote(*v);
  if (const auto* v = value.get<DataType>()) return "I.dtype(" + Quote(v->ToString()) + ")";
  if (const auto* v = value.get<AttrDict>()) return Dict(*v);
  if (const auto* v = value.get<AttrList>()) {
    std::string text;
    for (const AttrValue& item : *v) text += (text.empty() ? "" : ", ") + Attr(item);
    return "[" + text + "]";
  }
  const PrimExpr& expr = *value.get<PrimExpr>();
  const Dialect outer = std::exchange(dialect_, Dialect::kTensor);
  std::string text = Expr(expr);
  dialect_ = outer;
  // A constant alone would read back as a plain number or string.
  const bool constant =
      expr->kind == PrimKind::kIntImm || expr->kind == PrimKind::kFloatImm || expr->kind == PrimKind::kStringImm;
  return constant ? "I.expr(" + text + ")" : text;
}

std::string PrimPrinter::TensorTypeText(const TensorTypeNode& type, bool in_signature) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (type.dims) add(Tuple(*type.dims, in_signature));
  if (type.dtype) add("dtype=" + Quote(type.dtype->ToString()));
  if (!type.dims && type.rank >= 0) add("ndim=" + std::to_string(type.rank));
  if (!type.virtual_device.empty()) add("vdevice=" + Quote(type.virtual_device));
  return text.empty() ? "R.Tensor" : "R.Tensor(" + text + ")";
}

std::string PrimPrinter::Type(const ir::Type& type, bool in_signature) {
  if (type == nullptr) return "<unknown>";
  switch (type->kind) {
    case TypeKind::kObject:
      return "R.Any";
    case TypeKind::kPrim: {
      const auto* prim = As<PrimTypeNode>(type);
      return prim->value ? "R.Prim(value=" + Dim(prim->value, in_signature) + ")" : "T." + prim->dtype.ToString();
    }
    case TypeKind::kShape: {
      const auto* shape = As<ShapeTypeNode>(type);
      if (shape->dims) return "R.Shape(" + List(*shape->dims, in_signature) + ")";
      return shape->rank < 0 ? "R.Shape" : "R.Shape(ndim=" + std::to_string(shape->rank) + ")";
    }
    case TypeKind::kTensor:
      return TensorTypeText(*As<TensorTypeNode>(type), in_signature);
    case TypeKind::kTuple: {
      std::string fields;
      for (const ir::Type& field : As<TupleTypeNode>(type)->fields) {
        fields += (fields.empty() ? "" : ", ") + Type(field, in_signature);
      }
      return fields.empty() ? "R.Tuple" : "R.Tuple(" + fields + ")";
    }
    case TypeKind::kCallable: {
      const auto* callable = As<CallableTypeNode>(type);
      std::string params;
      if (callable->params) {
        for (const ir::Type& param : *callable->params) params += Type(param, in_signature) + ", ";
        if (callable->params->size() > 1) params.resize(params.size() - 2);
        if (callable->params->size() == 1) params.pop_back();
        params = "(" + params + ")";
      } else {
        if (callable->result != nullptr && callable->result->kind == TypeKind::kObject && !callable->is_pure) {
          return "R.Callable";
        }
        params = "None";
      }
      return "R.Callable(" + params + ", " + Type(callable->result, in_signature) + ", " +
             (callable->is_pure ? "True" : "False") + ")";
    }
  }
  INGOT_UNREACHABLE("TypeKind");
}

}  // namespace ingot::script
