// Scalar expressions, buffers' indices and regions, dimensions, dtypes and attribute values. Plain numbers stay
// undecided (Operand::is_number) until the other operand or the context gives them a dtype. Calls are in prim_calls.cc.
#include "compiler/script/prim_reader.h"

#include <algorithm>
#include <cmath>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/structural.h"
#include "compiler/script/syntax_parser.h"
#include "compiler/script/tokenizer.h"
#include "runtime/suggest.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

std::optional<BinaryOp> OpOf(std::string_view text) {
  constexpr std::pair<std::string_view, BinaryOp> kRows[] = {
      {"+", BinaryOp::kAdd},       {"-", BinaryOp::kSub},      {"*", BinaryOp::kMul}, {"/", BinaryOp::kDiv},
      {"//", BinaryOp::kFloorDiv}, {"%", BinaryOp::kFloorMod}, {"==", BinaryOp::kEQ}, {"!=", BinaryOp::kNE},
      {"<", BinaryOp::kLT},        {"<=", BinaryOp::kLE},      {">", BinaryOp::kGT},  {">=", BinaryOp::kGE},
      {"and", BinaryOp::kAnd},     {"or", BinaryOp::kOr}};
  for (const auto& [name, op] : kRows) {
    if (name == text) return op;
  }
  return std::nullopt;
}

std::optional<Intrinsic> IntrinsicOf(std::string_view text) {
  constexpr std::pair<std::string_view, Intrinsic> kRows[] = {{"<<", Intrinsic::kShiftLeft},
                                                              {">>", Intrinsic::kShiftRight},
                                                              {"&", Intrinsic::kBitwiseAnd},
                                                              {"|", Intrinsic::kBitwiseOr},
                                                              {"^", Intrinsic::kBitwiseXor}};
  for (const auto& [name, op] : kRows) {
    if (name == text) return op;
  }
  return std::nullopt;
}

// Reads a dtype, also by the names of TVM's releases before 0.27.
Result<DataType> ParseDataType(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kOldNames[] = {
      {"boolean", "bool"}, {"e4m3_float8", "float8_e4m3fn"}, {"e5m2_float8", "float8_e5m2"}};
  for (const auto& [old_name, new_name] : kOldNames) {
    if (name == old_name) return DataType::Parse(new_name);
  }
  return DataType::Parse(name);
}

bool IsWhole(DataType dtype) { return dtype.is_integral() || dtype.is_bool(); }

}  // namespace

PrimExpr PrimReader::Read(const Syntax& syntax, DataType number_type) {
  Operand operand = ReadOperand(syntax);
  SetNumberType(operand, number_type, syntax);
  return operand.expr;
}

void PrimReader::SetNumberType(Operand& operand, DataType number_type, const Syntax& where) {
  if (operand.expr == nullptr || !operand.is_number) return;
  const bool same_kind = operand.expr->dtype.is_floating() ? number_type.is_floating() : number_type.is_integral();
  if (same_kind)
    operand.expr = Convert(operand, number_type, where);
  else
    Settle(operand, where);
}

void PrimReader::Settle(Operand& operand, const Syntax& where) {
  if (operand.expr == nullptr || !operand.is_number || !operand.expr->dtype.is_floating()) return;
  operand.expr = Convert(operand, DataType::Float(32), where);
}

PrimExpr PrimReader::ReadAs(const Syntax& syntax, DataType dtype) {
  const Operand operand = ReadOperand(syntax);
  return operand.expr == nullptr ? PrimExpr() : Convert(operand, dtype, syntax);
}

PrimExpr PrimReader::ReadCondition(const Syntax& syntax) {
  PrimExpr condition = Read(syntax);
  if (condition == nullptr || condition->dtype.is_bool()) return condition;
  return context_.Error(syntax, "expected a condition (bool), got " + condition->dtype.ToString());
}

std::nullptr_t PrimReader::UnknownName(const Syntax& syntax) {
  const std::vector<std::string_view> names = scope_.Names();
  return context_.Error(syntax, "unknown name \"" + std::string(syntax.text) + "\"" + DidYouMean(syntax.text, names));
}

PrimReader::Operand PrimReader::ReadName(const Syntax& syntax) {
  if (syntax.text == "True" || syntax.text == "False") {
    return {MakeAt<IntImmNode>(syntax, DataType::Bool(), syntax.text == "True" ? 1 : 0)};
  }
  const Symbol* symbol = scope_.Find(syntax.text);
  if (symbol == nullptr) {
    if (!new_symbols_) return {UnknownName(syntax)};
    const PrimVar var = MakePrimVar(std::string(syntax.text));
    scope_.DefineOutermost(syntax.text, Symbol::Prim(var));
    return {var};
  }
  switch (symbol->kind) {
    case Symbol::Kind::kError:
      return {};
    case Symbol::Kind::kPrim:
      return {symbol->prim};
    case Symbol::Kind::kBuffer:
      return {context_.Error(syntax, "\"" + std::string(syntax.text) + "\" is a buffer: expected a scalar, such as " +
                                         std::string(syntax.text) + "[i]")};
    case Symbol::Kind::kValue:
      if (const auto* number = symbol->value->type == nullptr ? nullptr : As<PrimTypeNode>(symbol->value->type);
          number != nullptr && number->value != nullptr) {
        return {number->value};
      }
      return {context_.Error(syntax, "\"" + std::string(syntax.text) + "\" is a value of the graph, no scalar")};
    case Symbol::Kind::kModule:
      break;
  }
  return {context_.Error(syntax, "expected a scalar, got the module")};
}

PrimReader::Operand PrimReader::ReadOperand(const Syntax& syntax) {
  switch (syntax.kind) {
    case SyntaxKind::kError:
      return {};
    case SyntaxKind::kName:
      return ReadName(syntax);
    case SyntaxKind::kInt: {
      const std::optional<int64_t> value = AsInt(syntax);
      if (!value) return {context_.Error(syntax, "this number is out of the range of 64 bits")};
      return {MakeAt<IntImmNode>(syntax, DataType::Int(64), *value), true};
    }
    case SyntaxKind::kFloat: {
      const std::optional<double> value = AsFloat(syntax);
      if (!value) return {context_.Error(syntax, "this number cannot be read")};
      return {MakeAt<FloatImmNode>(syntax, DataType::Float(64), *value), true};
    }
    case SyntaxKind::kString:
      return {MakeAt<StringImmNode>(syntax, syntax.value)};
    case SyntaxKind::kAttribute:
      return ReadAttribute(syntax);
    case SyntaxKind::kCall:
      return {ReadCall(syntax)};
    case SyntaxKind::kSubscript:
      return ReadSubscript(syntax);
    case SyntaxKind::kUnary:
      return ReadUnary(syntax);
    case SyntaxKind::kBinary:
      return ReadBinary(syntax);
    case SyntaxKind::kConditional:
      return ReadConditional(syntax);
    case SyntaxKind::kKeyword:
    case SyntaxKind::kSlice:
    case SyntaxKind::kTuple:
    case SyntaxKind::kList:
    case SyntaxKind::kDict:
      return {context_.Error(syntax, "expected a scalar expression, got " + Describe(syntax))};
  }
  INGOT_UNREACHABLE("SyntaxKind");
}

// A.shape[i], A.strides[i]
PrimReader::Operand PrimReader::ReadLayout(const Syntax& syntax) {
  const Buffer buffer = ReadBuffer(syntax[0][0]);
  if (buffer == nullptr) return {};
  const std::vector<PrimExpr>& dims = ShapeOf(buffer);
  const std::optional<int64_t> place = syntax.children.size() == 2 ? AsInt(syntax[1]) : std::nullopt;
  const auto rank = static_cast<int64_t>(dims.size());
  if (!place || *place >= rank || *place < -rank) {
    return {context_.Error(syntax, "expected one of the buffer's " + std::to_string(rank) + " dimensions")};
  }
  const auto axis = static_cast<size_t>(*place < 0 ? *place + rank : *place);
  if (syntax[0].text == "shape") return {dims[axis]};
  if (!buffer->strides.empty()) return {buffer->strides[axis]};
  PrimExpr stride = IntImm(dims[axis]->dtype, 1);  // tensors are compact
  for (size_t i = axis + 1; i < dims.size(); ++i) stride = stride * dims[i];
  return {arith::Analyzer().Simplify(stride)};
}

PrimReader::Operand PrimReader::ReadAttribute(const Syntax& syntax) {
  if (syntax[0].kind == SyntaxKind::kName) {
    const Symbol* symbol = scope_.Find(syntax[0].text);
    if (symbol != nullptr && symbol->kind == Symbol::Kind::kError) return {};
    if (symbol != nullptr && symbol->kind == Symbol::Kind::kBuffer && syntax.text == "data")
      return {symbol->buffer->data};
    if (symbol != nullptr && symbol->kind == Symbol::Kind::kBuffer && syntax.text == "elem_offset") {
      const PrimExpr& offset = symbol->buffer->elem_offset;
      return offset != nullptr ? Operand{offset} : Operand{Int64(0), true};  // tensors are compact
    }
  }
  return {context_.Error(syntax, "expected a scalar expression, got " + Describe(syntax))};
}

PrimReader::Operand PrimReader::ReadUnary(const Syntax& syntax) {
  const Syntax& inner = syntax[0];
  if (syntax.text == "not") {
    PrimExpr condition = ReadCondition(inner);
    if (condition == nullptr) return {};
    return {MakeAt<NotNode>(syntax, std::move(condition))};
  }
  if (syntax.text == "-" && inner.kind == SyntaxKind::kInt) {  // the smallest integer has no positive counterpart
    const std::optional<int64_t> value = AsInt(syntax);
    if (!value) return {context_.Error(syntax, "this number is out of the range of 64 bits")};
    return {MakeAt<IntImmNode>(syntax, DataType::Int(64), *value), true};
  }
  Operand operand = ReadOperand(inner);
  if (operand.expr == nullptr || syntax.text == "+") return operand;
  if (syntax.text == "~") {
    if (!IsWhole(operand.expr->dtype)) {
      return {context_.Error(syntax, "expected an integer, got " + operand.expr->dtype.ToString())};
    }
    const DataType dtype = operand.expr->dtype;
    return {MakeAt<PrimCallNode>(syntax, dtype, Intrinsic::kBitwiseNot, std::vector<PrimExpr>{operand.expr})};
  }
  if (const auto* number = As<IntImmNode>(operand.expr); number != nullptr && operand.is_number) {
    const auto negated = static_cast<int64_t>(-static_cast<uint64_t>(number->value));
    return {MakeAt<IntImmNode>(syntax, number->dtype, negated), true};
  }
  if (const auto* number = As<FloatImmNode>(operand.expr); number != nullptr && operand.is_number) {
    return {MakeAt<FloatImmNode>(syntax, number->dtype, -number->value), true};
  }
  if (!operand.expr->dtype.is_integral() && !operand.expr->dtype.is_floating()) {
    return {context_.Error(syntax, "expected a number, got " + operand.expr->dtype.ToString())};
  }
  Operand minus_one{IntImm(operand.expr->dtype.element_of(), -1), true};
  return {MakeBinary(BinaryOp::kMul, std::move(operand), std::move(minus_one), syntax)};
}

PrimExpr PrimReader::Convert(const Operand& operand, DataType dtype, const Syntax& where) {
  const PrimExpr& expr = operand.expr;
  if (expr->dtype == dtype) return expr;
  if (operand.is_number) {
    const auto* i = As<IntImmNode>(expr);
    const auto* f = As<FloatImmNode>(expr);
    PrimExpr number;
    if (dtype.is_floating()) {
      number = FloatImm(dtype.element_of(), i != nullptr ? static_cast<double>(i->value) : f->value);
    } else if (i != nullptr && (dtype.is_integral() || dtype.is_bool())) {
      number = MakeAt<IntImmNode>(where, dtype.element_of(), i->value);
    }
    if (number != nullptr)
      return dtype.lanes == 1 ? number : PrimExpr(MakeAt<BroadcastNode>(where, number, dtype.lanes));
  }
  if (expr->dtype.is_handle() || dtype.is_handle() || (expr->dtype.lanes != 1 && expr->dtype.lanes != dtype.lanes)) {
    return context_.Error(where, "expected " + dtype.ToString() + ", got " + expr->dtype.ToString());
  }
  PrimExpr value = expr;
  if (value->dtype.element_of() != dtype.element_of()) {
    value = MakeAt<CastNode>(where, dtype.element_of().with_lanes(value->dtype.lanes), value);
  }
  return value->dtype.lanes == dtype.lanes ? value : PrimExpr(MakeAt<BroadcastNode>(where, value, dtype.lanes));
}

bool PrimReader::Match(Operand& a, Operand& b, const Syntax& where) {
  if (!b.expr->dtype.is_floating() || b.is_number) Settle(a, where);
  if (!a.expr->dtype.is_floating() || a.is_number) Settle(b, where);
  const DataType x = a.expr->dtype, y = b.expr->dtype;
  if (x == y) return true;
  const int lanes = std::max<int>(x.lanes, y.lanes);
  DataType element = x.element_of();
  if (a.is_number && !b.is_number && !y.is_bool() && (!x.is_floating() || y.is_floating())) {
    element = y.element_of();
  } else if (b.is_number && !x.is_bool() && (!y.is_floating() || x.is_floating())) {
    element = x.element_of();
  } else if (x.element_of() != y.element_of()) {
    const bool both_whole = IsWhole(x) && IsWhole(y);
    const bool clash =
        x.is_handle() || y.is_handle() ||
        (x.bits == y.bits && !x.is_bool() && !y.is_bool() && (both_whole || (x.is_floating() && y.is_floating())));
    if (clash) {
      context_.Error(where, "operands of dtypes " + x.ToString() + " and " + y.ToString() + "; cast one with T.Cast");
      return false;
    }
    // A floating dtype wins over an integer, a wider one over a narrower one.
    const auto rank = [](DataType t) { return std::pair(t.is_floating() ? 2 : t.is_bool() ? 0 : 1, int{t.bits}); };
    element = rank(x) < rank(y) ? y.element_of() : x.element_of();
  }
  a.expr = Convert(a, element.with_lanes(lanes), where);
  b.expr = a.expr == nullptr ? nullptr : Convert(b, element.with_lanes(lanes), where);
  return a.expr != nullptr && b.expr != nullptr;
}

PrimExpr PrimReader::MakeBinary(BinaryOp op, Operand a, Operand b, const Syntax& where) {
  if (a.expr == nullptr || b.expr == nullptr) return nullptr;
  if (!Match(a, b, where)) return nullptr;
  const DataType dtype = a.expr->dtype;
  const bool logical = op == BinaryOp::kAnd || op == BinaryOp::kOr;
  const bool equality = op == BinaryOp::kEQ || op == BinaryOp::kNE;
  if (logical != dtype.is_bool() && !(equality && dtype.is_bool())) {
    return context_.Error(
        where, std::string("expected ") + (logical ? "conditions (bool)" : "numbers") + ", got " + dtype.ToString());
  }
  if (dtype.is_handle() && !equality) return context_.Error(where, "expected numbers, got pointers");
  return MakeAt<BinaryNode>(where, op, std::move(a.expr), std::move(b.expr));
}

PrimReader::Operand PrimReader::ReadBinary(const Syntax& syntax) {
  const std::optional<BinaryOp> op = OpOf(syntax.text);
  Operand a = ReadOperand(syntax[0]), b = ReadOperand(syntax[1]);
  if (a.expr == nullptr || b.expr == nullptr) return {};
  if (const std::optional<Intrinsic> intrinsic = IntrinsicOf(syntax.text)) {
    if (!IsWhole(a.expr->dtype) || !IsWhole(b.expr->dtype)) {
      return {context_.Error(
          syntax, "expected integers, got " + a.expr->dtype.ToString() + " and " + b.expr->dtype.ToString())};
    }
    if (!Match(a, b, syntax)) return {};
    const DataType dtype = a.expr->dtype;
    return {MakeAt<PrimCallNode>(syntax, dtype, *intrinsic, std::vector<PrimExpr>{a.expr, b.expr})};
  }
  if (!op) return {context_.Error(syntax, "the operator \"" + std::string(syntax.text) + "\" is not supported here")};
  if (*op == BinaryOp::kDiv && !a.expr->dtype.is_floating() && !b.expr->dtype.is_floating()) {
    return {context_.Error(syntax, "\"/\" divides floats; write \"//\" (rounds down) or T.truncdiv(a, b)")};
  }
  return {MakeBinary(*op, std::move(a), std::move(b), syntax)};
}

PrimReader::Operand PrimReader::ReadConditional(const Syntax& syntax) {
  PrimExpr condition = ReadCondition(syntax[1]);
  Operand yes = ReadOperand(syntax[0]), no = ReadOperand(syntax[2]);
  if (condition == nullptr || yes.expr == nullptr || no.expr == nullptr || !Match(yes, no, syntax)) return {};
  const DataType dtype = yes.expr->dtype;
  return {MakeAt<PrimCallNode>(syntax, dtype, Intrinsic::kIfThenElse,
                               std::vector<PrimExpr>{std::move(condition), yes.expr, no.expr})};
}

// ---- Buffers

Buffer PrimReader::ReadBuffer(const Syntax& syntax) {
  if (syntax.kind == SyntaxKind::kError) return nullptr;
  if (syntax.kind != SyntaxKind::kName) return context_.Error(syntax, "expected a buffer, got " + Describe(syntax));
  const Symbol* symbol = scope_.Find(syntax.text);
  if (symbol == nullptr) return UnknownName(syntax);
  if (symbol->kind == Symbol::Kind::kError) return nullptr;
  if (symbol->kind == Symbol::Kind::kBuffer) return symbol->buffer;
  return context_.Error(syntax, "\"" + std::string(syntax.text) + "\" is no buffer");
}

bool PrimReader::CheckInteger(const PrimExpr& expr, const Syntax& where) {
  if (expr->dtype.is_integral() && expr->dtype.is_scalar()) return true;
  context_.Error(where, "expected an integer, got " + expr->dtype.ToString());
  return false;
}

Range PrimReader::MakeRange(PrimExpr start, PrimExpr stop) {
  const auto* sum = As<BinaryNode>(stop);
  const auto min = AsConstInt(start);
  const auto max = AsConstInt(stop);
  if (sum != nullptr && sum->op == BinaryOp::kAdd && StructuralEqual(sum->a, start)) return {start, sum->b};
  int64_t extent = 0;
  if (min && max && !__builtin_sub_overflow(*max, *min, &extent)) {
    return {start, IntImm(stop->dtype, extent)};
  }
  return {start, IsConstInt(start, 0) ? stop : ir::MakeBinary(BinaryOp::kSub, stop, start)};
}

std::optional<Range> PrimReader::ReadRange(const Syntax* start_syntax, const Syntax& stop_syntax,
                                           DataType number_type) {
  Operand stop = ReadOperand(stop_syntax);
  SetNumberType(stop, number_type, stop_syntax);
  if (stop.expr == nullptr) return std::nullopt;
  Operand start{IntImm(stop.expr->dtype, 0), true};
  if (start_syntax != nullptr) start = ReadOperand(*start_syntax);
  SetNumberType(start, number_type, start_syntax != nullptr ? *start_syntax : stop_syntax);
  if (start.expr == nullptr || !Match(start, stop, stop_syntax)) return std::nullopt;
  if (!CheckInteger(stop.expr, stop_syntax)) return std::nullopt;
  return MakeRange(start.expr, stop.expr);
}

namespace {
// Whether the only index is "()": an element of a tensor without dimensions.
bool IsEmptyIndex(const Syntax& subscript) {
  return subscript.children.size() == 2 && subscript[1].kind == SyntaxKind::kTuple && subscript[1].children.empty();
}
}  // namespace

std::optional<BufferRegion> PrimReader::ReadRegion(const Syntax& syntax) {
  if (syntax.kind == SyntaxKind::kName) {  // the whole buffer
    const Buffer buffer = ReadBuffer(syntax);
    if (buffer == nullptr) return std::nullopt;
    BufferRegion region{buffer, {}};
    for (const PrimExpr& dim : ShapeOf(buffer)) region.region.push_back({IntImm(dim->dtype, 0), dim});
    return FlatRegion(std::move(region));
  }
  if (syntax.kind != SyntaxKind::kSubscript) {
    context_.Error(syntax, "expected a region of a buffer, such as A[i, 0:4], got " + Describe(syntax));
    return std::nullopt;
  }
  const Buffer buffer = ReadBuffer(syntax[0]);
  if (buffer == nullptr) return std::nullopt;
  BufferRegion region{buffer, {}};
  const std::vector<PrimExpr>& shape = ShapeOf(buffer);
  if (IsEmptyIndex(syntax)) return region;
  for (size_t i = 1; i < syntax.children.size(); ++i) {
    const Syntax& index = syntax[i];
    if (index.kind != SyntaxKind::kSlice) {
      PrimExpr min = Read(index);
      if (!min || !CheckInteger(min, index)) return std::nullopt;
      region.region.push_back({min, IntImm(min->dtype, 1)});
      continue;
    }
    if (index.children[2] != nullptr && AsInt(index[2]) != 1) {
      context_.Error(index, "a region has no step");
      return std::nullopt;
    }
    const bool full = i - 1 < shape.size();
    Operand start = index.children[0] != nullptr ? ReadOperand(index[0]) : Operand{Int64(0), true};
    Operand stop = index.children[1] != nullptr ? ReadOperand(index[1]) : full ? Operand{shape[i - 1]} : Operand{};
    if (start.expr == nullptr || stop.expr == nullptr || !Match(start, stop, index)) return std::nullopt;
    if (!CheckInteger(start.expr, index)) return std::nullopt;
    region.region.push_back(MakeRange(start.expr, stop.expr));
  }
  for (size_t i = region.region.size(); i < shape.size() && i > 0; ++i) {  // dimensions that are left out are whole
    region.region.push_back({IntImm(shape[i]->dtype, 0), shape[i]});
  }
  if (region.region.size() != shape.size()) {
    context_.Error(syntax, "\"" + buffer->name + "\" has " + std::to_string(shape.size()) + " dimensions, got " +
                               std::to_string(region.region.size()) + " indices");
    return std::nullopt;
  }
  return FlatRegion(std::move(region));
}

const std::vector<PrimExpr>& PrimReader::ShapeOf(const Buffer& buffer) const {
  const auto view = views_.find(buffer.get());
  return view == views_.end() ? buffer->shape : view->second.shape;
}

DataType PrimReader::DTypeOf(const Buffer& buffer) const {
  const auto view = views_.find(buffer.get());
  return view == views_.end() ? buffer->dtype : view->second.dtype;
}

std::vector<PrimExpr> PrimReader::FlatIndices(const Buffer& buffer, std::vector<PrimExpr> indices) const {
  const auto view = views_.find(buffer.get());
  if (view == views_.end()) return indices;
  const auto& [shape, strides, offset, dtype] = view->second;
  PrimExpr flat = offset;
  for (size_t d = 0; d < indices.size(); ++d) {
    const PrimExpr index = Cast(DataType::Int(64).with_lanes(indices[d]->dtype.lanes), indices[d]);
    const auto* ramp = As<RampNode>(indices[d]);
    if (ramp == nullptr) {
      flat = flat + index * strides[d];
    } else {
      const PrimExpr base = Cast(DataType::Int(64), ramp->base), step = Cast(DataType::Int(64), ramp->stride);
      flat = Make<RampNode>(flat + base * strides[d], step * strides[d], ramp->lanes);
    }
  }
  return {std::move(flat)};
}

// Returns the span of the region in memory, as a region of the flat buffer.
BufferRegion PrimReader::FlatRegion(BufferRegion region) const {
  const auto view = views_.find(region.buffer.get());
  if (view == views_.end()) return region;
  const auto& [shape, strides, offset, dtype] = view->second;
  PrimExpr min = offset, last = Int64(0);
  for (size_t d = 0; d < region.region.size(); ++d) {
    const auto& [start, extent] = region.region[d];
    min = min + Cast(DataType::Int(64), start) * strides[d];
    last = last + (Cast(DataType::Int(64), extent) - 1) * strides[d];
  }
  const int64_t bits = dtype.bits * dtype.lanes, owner_bits = region.buffer->dtype.bits;
  if (bits == owner_bits) return {std::move(region.buffer), {{std::move(min), last + 1}}};
  if (bits > owner_bits) {  // each element is several of the memory's
    const PrimExpr parts = Int64(bits / owner_bits);
    return {std::move(region.buffer), {{min * parts, (last + 1) * parts}}};
  }
  const PrimExpr parts = Int64(owner_bits / bits), first = FloorDiv(min, parts);
  return {std::move(region.buffer), {{first, FloorDiv(min + last, parts) - first + 1}}};
}

std::optional<std::vector<PrimExpr>> PrimReader::ReadIndices(const Syntax& subscript, const Buffer& buffer) {
  std::vector<PrimExpr> indices;
  const bool none = IsEmptyIndex(subscript);
  for (size_t i = 1; i < subscript.children.size() && !none; ++i) {
    const Syntax& index = subscript[i];
    if (index.kind != SyntaxKind::kSlice) {
      PrimExpr value = Read(index);
      if (value == nullptr) return std::nullopt;
      if (!value->dtype.is_integral()) {
        context_.Error(index, "expected an integer index, got " + value->dtype.ToString());
        return std::nullopt;
      }
      indices.push_back(std::move(value));
      continue;
    }
    // start:stop:step is a ramp; its length must be a number.
    if (index.children[0] == nullptr || index.children[1] == nullptr) {
      context_.Error(index, "a slice of a load or store needs a start and an end");
      return std::nullopt;
    }
    Operand start = ReadOperand(index[0]), stop = ReadOperand(index[1]);
    if (start.expr == nullptr || stop.expr == nullptr || !Match(start, stop, index)) return std::nullopt;
    if (!CheckInteger(start.expr, index)) return std::nullopt;
    const std::optional<int64_t> step = index.children[2] != nullptr ? AsInt(index[2]) : 1;
    const Range range = MakeRange(start.expr, stop.expr);
    const auto extent = AsConstInt(range.extent);
    if (!extent || !step || *step < 1 || *extent < 1 || (*extent - 1) / *step + 1 > 4096) {
      context_.Error(index, "a slice of a load or store has a number of elements from 1 to 4096; use T.Ramp");
      return std::nullopt;
    }
    const int lanes = static_cast<int>((*extent - 1) / *step + 1);
    if (lanes == 1) {
      indices.push_back(start.expr);
    } else {
      indices.push_back(MakeAt<RampNode>(index, start.expr, IntImm(start.expr->dtype, *step), lanes));
    }
  }
  const size_t rank = ShapeOf(buffer).size();
  if (indices.size() == rank) {
    if (indices.empty() || DTypeOf(buffer).lanes * indices.back()->dtype.lanes <= 4096) {
      return FlatIndices(buffer, std::move(indices));
    }
    context_.Error(subscript, "vectors have at most 4096 lanes");
    return std::nullopt;
  }
  context_.Error(subscript, "\"" + buffer->name + "\" has " + std::to_string(rank) + " dimensions, got " +
                                std::to_string(indices.size()) + " indices");
  return std::nullopt;
}

PrimReader::Operand PrimReader::ReadSubscript(const Syntax& syntax) {
  if (syntax[0].kind == SyntaxKind::kAttribute && (syntax[0].text == "shape" || syntax[0].text == "strides")) {
    return ReadLayout(syntax);
  }
  const Buffer buffer = ReadBuffer(syntax[0]);
  if (buffer == nullptr) return {};
  std::optional<std::vector<PrimExpr>> indices = ReadIndices(syntax, buffer);
  if (!indices) return {};
  return {Load(syntax, buffer, std::move(*indices))};
}

// ---- Dimensions and dtypes

PrimExpr PrimReader::ReadQuoted(const Syntax& string) {
  const SourceText text{context_.source()->name, string.value};  // nodes refer to the outer source
  DiagnosticSink inner(std::make_shared<const SourceText>(text));
  const std::vector<Token> tokens = Tokenize(text, inner);
  const SyntaxPtr expression = SyntaxParser(tokens, inner).ParseSingleExpression();
  if (inner.has_errors()) return context_.Error(string, "in this string: " + inner.errors()[0].message);
  const ReadContext::Quoted quoted(context_, string.place);
  const bool outer = std::exchange(new_symbols_, true);
  PrimExpr value = Read(*expression);
  new_symbols_ = outer;
  return value;
}

PrimExpr PrimReader::ReadDim(const Syntax& syntax) {
  PrimExpr dim = syntax.kind == SyntaxKind::kString ? ReadQuoted(syntax) : Read(syntax);
  if (dim == nullptr || (dim->dtype.is_integral() && dim->dtype.is_scalar())) return dim;
  return context_.Error(syntax, "expected an integer dimension, got " + dim->dtype.ToString());
}

std::optional<std::vector<PrimExpr>> PrimReader::ReadDims(const Syntax& syntax) {
  std::vector<PrimExpr> dims;
  const bool is_list = syntax.kind == SyntaxKind::kTuple || syntax.kind == SyntaxKind::kList;
  if (!is_list) {
    PrimExpr dim = ReadDim(syntax);
    if (dim == nullptr) return std::nullopt;
    dims.push_back(std::move(dim));
    return dims;
  }
  for (const SyntaxPtr& item : syntax.children) {
    PrimExpr dim = ReadDim(*item);
    if (dim == nullptr) return std::nullopt;
    dims.push_back(std::move(dim));
  }
  return dims;
}

std::optional<DataType> PrimReader::ReadDataType(const Syntax& syntax) {
  std::string name;
  if (syntax.kind == SyntaxKind::kString) name = syntax.value;
  const std::string dotted = DottedName(syntax);
  if (dotted.starts_with("T.")) name = dotted.substr(2);
  if (const std::string callee = CalleeName(syntax);
      callee == "R.dtype" || callee == "T.dtype" || callee == "I.dtype") {
    if (syntax.children.size() == 2) return ReadDataType(syntax[1]);
  }
  if (name.empty()) {
    if (syntax.kind != SyntaxKind::kError) context_.Error(syntax, "expected a data type, got " + Describe(syntax));
    return std::nullopt;
  }
  const Result<DataType> dtype = ParseDataType(name);
  if (dtype.ok()) return *dtype;
  context_.Error(syntax, dtype.status().message());
  return std::nullopt;
}

std::optional<DataType> PrimReader::ReadVarDeclaration(const Syntax& syntax) {
  const std::string callee = CalleeName(syntax);
  if (!callee.starts_with("T.")) return std::nullopt;
  const size_t num_args = syntax.children.size() - 1;
  if (callee == "T.Var" || callee == "T.SizeVar" || callee == "T.var") {
    const bool has_name = num_args > 0 && callee != "T.var";  // T.var("int64") takes its name from the left
    if (num_args != (has_name ? 2 : 1)) return std::nullopt;
    return ReadDataType(syntax[has_name ? 2 : 1]);
  }
  const bool size_var = num_args == 1 && syntax[1].kind == SyntaxKind::kKeyword && syntax[1].text == "is_size_var";
  if (num_args != 0 && !size_var) return std::nullopt;
  const Result<DataType> dtype = ParseDataType(callee.substr(2));
  return dtype.ok() ? std::optional(*dtype) : std::nullopt;
}

// ---- Attributes

std::optional<Attrs> PrimReader::ReadAttrs(const Syntax& syntax) {
  if (syntax.kind != SyntaxKind::kDict) {
    if (syntax.kind != SyntaxKind::kError) context_.Error(syntax, "expected a dictionary, got " + Describe(syntax));
    return std::nullopt;
  }
  std::optional<AttrValue> value = ReadAttr(syntax);
  if (!value) return std::nullopt;
  return Attrs(*value->get<AttrDict>());
}

std::optional<AttrValue> PrimReader::ReadAttr(const Syntax& syntax) {
  if (IsNone(syntax)) return AttrValue();
  if (syntax.is_name("True") || syntax.is_name("False")) return AttrValue(syntax.text == "True");
  if (const auto number = AsInt(syntax)) return AttrValue(*number);
  if (const auto number = AsFloat(syntax)) return AttrValue(*number);
  if (const auto text = AsString(syntax)) return AttrValue(*text);
  if (syntax.kind == SyntaxKind::kTuple || syntax.kind == SyntaxKind::kList) {
    AttrList list;
    for (const SyntaxPtr& item : syntax.children) {
      std::optional<AttrValue> value = ReadAttr(*item);
      if (!value) return std::nullopt;
      list.push_back(std::move(*value));
    }
    return AttrValue(std::move(list));
  }
  if (syntax.kind == SyntaxKind::kDict) {
    AttrDict dict;
    for (size_t i = 0; i + 1 < syntax.children.size(); i += 2) {
      const std::optional<std::string> key = AsString(syntax[i]);
      if (!key) {
        context_.Error(syntax[i], "expected a string as the key, got " + Describe(syntax[i]));
        return std::nullopt;
      }
      // A list of buffers whose layout TVM's tuning may change: a permission that nothing here uses.
      if (*key == "layout_free_placeholders") continue;
      // TVM before 0.27 said "tir." for the tensor level's attributes.
      const std::string name = key->starts_with("tir.") ? "tirx." + key->substr(4) : *key;
      std::optional<AttrValue> value = ReadAttr(syntax[i + 1]);
      if (!value) return std::nullopt;
      if (std::any_of(dict.begin(), dict.end(), [&](const auto& item) { return item.first == name; })) {
        context_.Error(syntax[i], "the key \"" + name + "\" stands twice");
        return std::nullopt;
      }
      dict.emplace_back(name, std::move(*value));
    }
    return AttrValue(std::move(dict));
  }
  const std::string callee = CalleeName(syntax);
  const bool one_argument = syntax.children.size() == 2 && syntax[1].kind != SyntaxKind::kKeyword;
  if (callee == "float" && one_argument) {
    const std::optional<double> value = FloatWord(syntax[1]);
    if (!value) return std::nullopt;
    return AttrValue(*value);
  }
  if (callee == "I.dtype" || callee == "R.dtype" || callee == "T.dtype") {
    const std::optional<DataType> dtype = ReadDataType(syntax);
    if (!dtype) return std::nullopt;
    return AttrValue(*dtype);
  }
  // A target is read as its text or its dictionary.
  if ((callee == "R.str" || callee == "T.target") && one_argument) return ReadAttr(syntax[1]);
  if (callee == "I.expr" && one_argument) {
    PrimExpr expr = Read(syntax[1]);
    if (expr == nullptr) return std::nullopt;
    return AttrValue(std::move(expr));
  }
  if (syntax.kind == SyntaxKind::kSubscript && syntax[0].kind == SyntaxKind::kSubscript &&
      syntax[0][0].is_name("metadata")) {
    context_.Error(
        syntax,
        "this value stands in TVM's metadata; of its objects, constants of graph functions alone are supported");
    return std::nullopt;
  }
  PrimExpr expr = Read(syntax);
  if (expr == nullptr) return std::nullopt;
  // T.bool(True), T.int64(1), T.float32(0.5): plain values.
  if (const auto* number = As<IntImmNode>(expr)) {
    return expr->dtype.is_bool() ? AttrValue(number->value != 0) : AttrValue(number->value);
  }
  if (const auto* number = As<FloatImmNode>(expr)) return AttrValue(number->value);
  return AttrValue(std::move(expr));
}

}  // namespace ingot::script
