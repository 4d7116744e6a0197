// NodeImporter: typed access to a node's inputs and attributes, and the calls that are made for it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>

#include "compiler/importer/onnx_ops.h"
#include "compiler/importer/ops/util.h"
#include "compiler/ir/type.h"
#include "compiler/op/assumed_dims.h"
#include "compiler/op/broadcast.h"
#include "compiler/op/infer.h"
#include "compiler/op/registry.h"
#include "runtime/tensor.h"
#include "vm/program/limits.h"

namespace ingot::importer {

using ir::Expr;

namespace {

Status WrongAttr(const OnnxAttribute& attribute, const char* expected) {
  return Status(StatusCode::kBadInput, "attribute \"" + attribute.name + "\": expected " + expected);
}

// Refuses a type that no tensor can have: too many dimensions, or too many elements to count.
Status CheckSize(const ir::Type& type) {
  const auto* tensor = ir::As<ir::TensorTypeNode>(type);
  if (tensor == nullptr || !tensor->dims.has_value()) return Status();
  if (tensor->rank > kMaxRank) {
    return Status(StatusCode::kUnsupportedModel, "a tensor of rank " + std::to_string(tensor->rank) + "; " +
                                                     std::to_string(kMaxRank) + " is the limit");
  }
  std::vector<int64_t> dims;
  for (const ir::PrimExpr& dim : *tensor->dims) {
    const auto value = ir::AsConstInt(dim);
    dims.push_back(!value ? 1 : *value);
  }
  const Result<int64_t> count = CountElements(dims);
  return count.ok() ? Status() : Status(StatusCode::kBadInput, count.status().message());
}

// For an operand of a broadcasting operator: its dims beside those of the other operand, if some pair of unlike dims
// can only broadcast by being equal (seq beside min(seq, 512)): then they are equal, or the model fails when it runs.
// Returns nothing if there is no such pair.
std::optional<std::vector<ir::PrimExpr>> DimsBeside(const std::vector<ir::PrimExpr>& dims,
                                                    const std::vector<ir::PrimExpr>& other, bool is_second) {
  std::vector<ir::PrimExpr> result = dims;
  bool changed = false;
  for (size_t i = 1; i <= std::min(dims.size(), other.size()); ++i) {
    ir::PrimExpr& own = result[dims.size() - i];
    const ir::PrimExpr& theirs = other[other.size() - i];
    if (ir::AsConstInt(own) || ir::AsConstInt(theirs) || op::DimsEqual(own, theirs)) continue;
    if (!op::BroadcastAsEqual(own, theirs)) continue;
    // The simpler of the two dims is kept; of two symbols, the first operand's.
    if (own->kind == ir::PrimKind::kPrimVar && !(is_second && theirs->kind == ir::PrimKind::kPrimVar)) continue;
    own = theirs;
    changed = true;
  }
  return changed ? std::optional(std::move(result)) : std::nullopt;
}

// A number and what it is where the condition holds, for a check whose message gives both: the side of a comparison and
// its limit, or whether the condition holds.
std::pair<ir::PrimExpr, ir::PrimExpr> AsNumbers(const ir::PrimExpr& condition) {
  const auto* binary = ir::As<ir::BinaryNode>(condition);
  if (binary != nullptr && binary->a->dtype == DataType::Int(64)) {
    if (binary->op == ir::BinaryOp::kLE) return {binary->a, ir::Min(binary->a, binary->b)};
    if (binary->op == ir::BinaryOp::kGE) return {binary->a, ir::Max(binary->a, binary->b)};
  }
  return {ir::Select(condition, ir::Int64(1), ir::Int64(0)), ir::Int64(1)};
}

}  // namespace

Result<Expr> NodeImporter::Input(size_t i) const {
  if (!HasInput(i)) return Invalid("input " + std::to_string(i) + " is missing");
  ImportedValue& value = *inputs_[i];
  if (value.expr == nullptr) {
    INGOT_CHECK(value.known.has_value(), "an input without a value reached a row");
    INGOT_ASSIGN_OR_RETURN(value.expr, Materialise(*value.known, bindings_, span_));
  }
  return value.expr;
}

Result<const ir::TensorTypeNode*> NodeImporter::InputType(size_t i) const {
  if (!HasInput(i)) return Invalid("input " + std::to_string(i) + " is missing");
  const auto* type = ir::As<ir::TensorTypeNode>(inputs_[i]->type);
  if (type == nullptr || !type->dims.has_value() || !type->dtype.has_value()) {
    return Unsupported("input " + std::to_string(i) + " has no known rank or data type");
  }
  return type;
}

Result<DataType> NodeImporter::ElementType(size_t i) const {
  if (PackedType(i)) return *PackedType(i);
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, InputType(i));
  return *type->dtype;
}

bool NodeImporter::MayBeKnown(size_t i) const {
  if (!HasInput(i)) return false;
  if (inputs_[i]->known.has_value()) return true;
  const auto* constant = ir::As<ir::ConstantNode>(inputs_[i]->expr);
  return constant != nullptr && IsSmallConstant(*constant->data);
}

std::optional<ShapeValue> NodeImporter::Known(size_t i) const {
  std::optional<ShapeValue> value = Formula(i);
  return value && value->is_exact() ? value : std::nullopt;
}

bool NodeImporter::IsConstant(size_t i) const {
  const std::optional<ShapeValue> value = Known(i);
  return value && value->is_constant();
}

std::optional<ShapeValue> NodeImporter::Formula(size_t i) const {
  if (!MayBeKnown(i)) return std::nullopt;
  if (inputs_[i]->known.has_value()) return inputs_[i]->known;
  return KnownConstant(*ir::As<ir::ConstantNode>(inputs_[i]->expr)->data);
}

std::optional<ShapeValue> NodeImporter::CheckedFormula(size_t i) const {
  std::optional<ShapeValue> value = Formula(i);
  if (!value) return std::nullopt;
  if (!value->conditions.empty()) {
    std::vector<ir::PrimExpr> numbers, expected;
    for (const ir::PrimExpr& condition : value->conditions) {
      const auto [number, held] = AsNumbers(condition);
      numbers.push_back(number);
      expected.push_back(held);
    }
    for (size_t begin = 0; begin < numbers.size(); begin += kMaxRank) {
      const size_t count = std::min<size_t>(kMaxRank, numbers.size() - begin);
      const auto part = [&](const std::vector<ir::PrimExpr>& all) {
        return std::vector<ir::PrimExpr>(all.begin() + begin, all.begin() + begin + count);
      };
      Match(ir::Make<ir::ShapeExprNode>(part(numbers)), ir::Make<ir::ShapeTypeNode>(part(expected)));
    }
  }
  return value;
}

Result<std::vector<ir::PrimExpr>> NodeImporter::SymbolicInts(size_t i, const char* what) const {
  if (!HasInput(i)) return Invalid("input " + std::to_string(i) + " is missing");
  std::optional<ShapeValue> value = CheckedFormula(i);
  if (!value.has_value()) {
    return Unsupported(std::string(what) + " is not a constant" +
                       (ir::As<ir::ConstantNode>(inputs_[i]->expr) != nullptr ? " that can be read" : ""));
  }
  if (!value->is_integer() || value->dims.size() > 1) {
    return Invalid(std::string(what) + ": expected a vector of integers");
  }
  return std::move(value->elements);
}

Result<std::vector<int64_t>> NodeImporter::ConstantInts(size_t i, const char* what) const {
  INGOT_ASSIGN_OR_RETURN(const std::vector<ir::PrimExpr> elements, SymbolicInts(i, what));
  std::vector<int64_t> values;
  for (const ir::PrimExpr& element : elements) {
    const auto value = ir::AsConstInt(element);
    if (!value) return Unsupported(std::string(what) + " is not a constant");
    values.push_back(*value);
  }
  return values;
}

Result<double> NodeImporter::ConstantNumber(size_t i, const char* what, double default_value) const {
  if (!HasInput(i)) return default_value;
  const std::optional<ShapeValue> value = Known(i);
  if (!value.has_value()) return Unsupported(std::string(what) + " is not a constant");
  if (value->elements.size() != 1) return Invalid(std::string(what) + ": expected one number");
  if (const auto* number = ir::As<ir::FloatImmNode>(value->elements[0])) return number->value;
  if (const auto number = ir::AsConstInt(value->elements[0])) {
    constexpr int64_t kExact = int64_t{1} << 53;
    if (*number >= -kExact && *number <= kExact) return static_cast<double>(*number);
    return Unsupported(std::string(what) + " is the integer " + std::to_string(*number));
  }
  return Unsupported(std::string(what) + " is not a constant");
}

Result<std::vector<ir::PrimExpr>> NodeImporter::DataInts(size_t i, const char* what,
                                                         std::optional<int64_t> count) const {
  if (!HasInput(i) || MayBeKnown(i)) return SymbolicInts(i, what);
  INGOT_ASSIGN_OR_RETURN(std::vector<ir::PrimExpr> symbols, NamedInts(i, what, count));
  RefuseNegative(symbols);
  return symbols;
}

Result<std::vector<ir::PrimExpr>> NodeImporter::DataPlaces(size_t i, const char* what) const {
  return !HasInput(i) || MayBeKnown(i) ? SymbolicInts(i, what) : NamedInts(i, what, std::nullopt);
}

Result<std::vector<ir::PrimExpr>> NodeImporter::NamedInts(size_t i, const char* what,
                                                          std::optional<int64_t> count) const {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, InputType(i));
  constexpr int64_t kMostNumbers = 1024;
  const DataType index = DataType::Int(64);
  std::optional<int64_t> length = type->rank == 1 ? ir::AsConstInt((*type->dims)[0]) : std::optional<int64_t>(1);
  const bool is_given_length = type->rank == 1 && !length && count;
  if (is_given_length) length = count;
  const bool is_readable = (*type->dtype == index || *type->dtype == DataType::Int(32)) && type->rank <= 1 &&
                           length.value_or(kMostNumbers + 1) <= kMostNumbers;
  if (!is_readable) return Unsupported(std::string(what) + " is not a constant");
  INGOT_ASSIGN_OR_RETURN(Expr ints, Input(i));
  if (is_given_length) {
    ints = Match(std::move(ints),
                 ir::Make<ir::TensorTypeNode>(std::vector<ir::PrimExpr>{ir::Int64(*count)}, *type->dtype));
  }
  if (type->rank == 0) {
    const Expr one = ir::Make<ir::ShapeExprNode>(std::vector<ir::PrimExpr>{ir::Int64(1)});
    INGOT_ASSIGN_OR_RETURN(ints, Bind("reshape", {ints, one}));
  }
  if (*type->dtype != index) {
    INGOT_ASSIGN_OR_RETURN(ints, Bind("astype", {ints}, {{"dtype", index}}));
  }
  const int64_t num_ints = length.value_or(1);
  if (num_ints <= kMaxRank) return NameElements(std::move(ints));
  std::vector<ir::PrimExpr> symbols;  // a shape has at most kMaxRank
  for (int64_t begin = 0; begin < num_ints; begin += kMaxRank) {
    const int64_t end = std::min<int64_t>(begin + kMaxRank, num_ints);
    const auto at = [](int64_t place) { return PrimTuple(std::vector<int64_t>{place}); };
    INGOT_ASSIGN_OR_RETURN(Expr part, Bind("strided_slice", {ints, at(0), at(begin), at(end)}));
    INGOT_ASSIGN_OR_RETURN(const std::vector<ir::PrimExpr> named, NameElements(std::move(part)));
    symbols.insert(symbols.end(), named.begin(), named.end());
  }
  return symbols;
}

Result<std::vector<ir::PrimExpr>> NodeImporter::NameElements(Expr ints) const {
  INGOT_ASSIGN_OR_RETURN(const Expr shape, Bind("tensor_to_shape", {std::move(ints)}));
  std::vector<ir::PrimExpr> symbols;
  for (int i = 0; i < ir::As<ir::ShapeTypeNode>(shape->type)->rank; ++i) symbols.push_back(ir::MakePrimVar("size"));
  Match(shape, ir::Make<ir::ShapeTypeNode>(symbols));
  return symbols;
}

Result<std::vector<ir::PrimExpr>> NodeImporter::NameLengths(Expr ints) const {
  INGOT_ASSIGN_OR_RETURN(std::vector<ir::PrimExpr> symbols, NameElements(std::move(ints)));
  RefuseNegative(symbols);
  return symbols;
}

// That a symbol is not negative is taken for granted by every proof, so max(s, 0) would be s. The quotient by a number that
// no length may reach is 0, or -1 of a negative one.
void NodeImporter::RefuseNegative(const std::vector<ir::PrimExpr>& symbols) const {
  const ir::PrimExpr zero = ir::Int64(0), beyond = ir::Int64(vm::kMaxBoundDim + 1);
  for (size_t begin = 0; begin < symbols.size(); begin += kMaxRank) {
    std::vector<ir::PrimExpr> quotients;
    for (size_t i = begin; i < std::min(begin + kMaxRank, symbols.size()); ++i) {
      quotients.push_back(ir::FloorDiv(symbols[i], beyond));
    }
    std::vector<ir::PrimExpr> expected(quotients.size(), zero);
    Match(ir::Make<ir::ShapeExprNode>(std::move(quotients)), ir::Make<ir::ShapeTypeNode>(std::move(expected)));
  }
}

const OnnxAttribute* NodeImporter::FindAttr(std::string_view name) const {
  for (const OnnxAttribute& attribute : node_.attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

Result<int64_t> NodeImporter::Int(std::string_view name, int64_t default_value) const {
  const OnnxAttribute* attribute = FindAttr(name);
  if (attribute == nullptr) return default_value;
  if (const auto* value = std::get_if<int64_t>(&attribute->value)) return *value;
  return WrongAttr(*attribute, "an integer");
}

Result<double> NodeImporter::Float(std::string_view name, double default_value) const {
  const OnnxAttribute* attribute = FindAttr(name);
  if (attribute == nullptr) return default_value;
  if (const auto* value = std::get_if<float>(&attribute->value)) return static_cast<double>(*value);
  return WrongAttr(*attribute, "a float");
}

Result<std::string> NodeImporter::String(std::string_view name, std::string default_value) const {
  const OnnxAttribute* attribute = FindAttr(name);
  if (attribute == nullptr) return default_value;
  if (const auto* value = std::get_if<std::string>(&attribute->value)) return *value;
  return WrongAttr(*attribute, "a string");
}

Result<std::vector<int64_t>> NodeImporter::Ints(std::string_view name, std::vector<int64_t> default_value,
                                                int64_t count) const {
  const OnnxAttribute* attribute = FindAttr(name);
  std::vector<int64_t> values = std::move(default_value);
  if (attribute != nullptr) {
    const auto* given = std::get_if<std::vector<int64_t>>(&attribute->value);
    if (given == nullptr) return WrongAttr(*attribute, "integers");
    values = *given;
  }
  if (count >= 0 && static_cast<int64_t>(values.size()) != count) {
    return Invalid("attribute \"" + std::string(name) + "\": expected " + std::to_string(count) + " integers, got " +
                   std::to_string(values.size()));
  }
  return values;
}

Result<Expr> NodeImporter::Call(std::string_view row, std::vector<Expr> args, ir::Attrs attrs) const {
  if (op::FindOp(row) == nullptr) return Unsupported("there is no operator \"" + std::string(row) + "\" to make of it");
  MatchBroadcastDims(row, args);
  INGOT_ASSIGN_OR_RETURN(ir::Call call, op::MakeCall(row, args, attrs));
  if (MatchAssumedDims(call, args)) {
    INGOT_ASSIGN_OR_RETURN(call, op::MakeCall(row, std::move(args), std::move(attrs)));
  }
  INGOT_RETURN_IF_ERROR(CheckSize(call->type));
  ir::CallNode with_span = *call;
  with_span.span = span_;
  return Expr(ir::Make<ir::CallNode>(std::move(with_span)));
}

void NodeImporter::MatchBroadcastDims(std::string_view name, std::vector<Expr>& args) const {
  const op::OpRow* row = op::FindOp(name);
  if (row == nullptr || row->fusion != op::FusionClass::kBroadcast || args.size() != 2) return;
  for (size_t i : {0, 1}) {
    const auto* own = args[i] ? ir::As<ir::TensorTypeNode>(args[i]->type) : nullptr;
    const auto* other = args[1 - i] ? ir::As<ir::TensorTypeNode>(args[1 - i]->type) : nullptr;
    if (own == nullptr || other == nullptr || !own->dims || !other->dims) continue;
    std::optional<std::vector<ir::PrimExpr>> dims = DimsBeside(*own->dims, *other->dims, i == 1);
    if (!dims) continue;
    ImplyBounds(*dims, *own->dims);
    args[i] = Match(args[i], ir::Make<ir::TensorTypeNode>(*std::move(dims), own->dtype, own->virtual_device));
  }
}

void NodeImporter::ImplyBounds(const std::vector<ir::PrimExpr>& a, const std::vector<ir::PrimExpr>& b) const {
  if (bounds_ == nullptr) return;
  for (size_t i = 0; i < a.size(); ++i) {
    for (const auto& [dim, other] : {std::pair(a[i], b[i]), std::pair(b[i], a[i])}) {
      ir::PrimVar symbol = ir::AsRef<ir::PrimVarNode>(dim);
      const auto* least = ir::As<ir::BinaryNode>(other);
      if (symbol == nullptr || least == nullptr || least->op != ir::BinaryOp::kMin) continue;
      const auto limit = ir::AsConstInt(ir::AsConstInt(least->a) ? least->a : least->b);
      if (limit) bounds_->emplace_back(std::move(symbol), *limit);
    }
  }
}

bool NodeImporter::MatchAssumedDims(const ir::Call& call, std::vector<Expr>& args) const {
  const std::vector<op::AssumedEqual> pairs = op::AssumedEqualDims(call);
  if (pairs.empty()) return false;
  std::vector<Expr> operands = op::OperandsOf(call->args);
  std::vector<std::vector<ir::PrimExpr>> dims;
  for (const Expr& operand : operands) dims.push_back(*ir::As<ir::TensorTypeNode>(operand->type)->dims);
  std::vector<bool> changed(operands.size(), false);
  const auto set = [&](op::OperandDim place, ir::PrimExpr dim) {
    dims[place.operand][place.axis] = std::move(dim);
    changed[place.operand] = true;
  };
  for (const auto& [a, b, factor] : pairs) {
    const ir::PrimExpr left = dims[a.operand][a.axis], part = dims[b.operand][b.axis];
    const ir::PrimExpr right = op::SimplifyDim(part * factor);
    if (op::DimsEqual(left, right)) continue;
    const auto number = ir::AsConstInt(left);
    // If one of them is a number, the other one must be it; otherwise the simpler one is kept, of two symbols the first
    // operand's.
    if (number && *number % factor == 0) {
      set(b, ir::Int64(*number / factor));
    } else if (!ir::AsConstInt(right) && factor == 1 && left->kind == ir::PrimKind::kPrimVar) {
      set(b, left);
    } else {
      set(a, right);
    }
  }
  bool any = false;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!changed[i]) continue;
    const auto* own = ir::As<ir::TensorTypeNode>(operands[i]->type);
    ImplyBounds(dims[i], *own->dims);
    operands[i] = Match(operands[i], ir::Make<ir::TensorTypeNode>(std::move(dims[i]), own->dtype, own->virtual_device));
    any = true;
  }
  if (!any) return false;
  if (args.size() != 1 || ir::As<ir::TupleNode>(args[0]) == nullptr) {
    args = std::move(operands);
    return true;
  }
  std::vector<ir::Type> types;
  for (const Expr& operand : operands) types.push_back(operand->type);
  args = {ir::Make<ir::TupleNode>(std::move(operands), ir::Make<ir::TupleTypeNode>(std::move(types)))};
  return true;
}

Result<Expr> NodeImporter::Bind(std::string_view row, std::vector<Expr> args, ir::Attrs attrs) const {
  INGOT_ASSIGN_OR_RETURN(const Expr call, Call(row, std::move(args), std::move(attrs)));
  const size_t dot = row.rfind('.');
  return BindValue(call, std::string(dot == std::string_view::npos ? row : row.substr(dot + 1)));
}

Expr NodeImporter::BindValue(Expr value, std::string name) const {
  const ir::Var var = ir::Make<ir::VarNode>(std::move(name), value->type, /*dataflow=*/true);
  bindings_.push_back({var, std::move(value), nullptr, span_});
  return var;
}

Expr NodeImporter::Match(Expr value, ir::Type type) const {
  const ir::Var var = ir::Make<ir::VarNode>("matched", type, /*dataflow=*/true);
  bindings_.push_back({var, std::move(value), std::move(type), span_});
  return var;
}

Result<Expr> NodeImporter::ScalarOfInteger(int64_t value, DataType dtype) const {
  const int bits = dtype.is_bool() ? 1 : dtype.bits - (dtype.is_int() ? 1 : 0);  // of the greatest number
  const bool is_negative = value < 0 && !dtype.is_int();
  if (!dtype.is_floating() && (is_negative || (bits < 63 && (value < 0 ? ~value : value) >> bits != 0))) {
    return Unsupported("the number " + std::to_string(value) + " as " + dtype.ToString());
  }
  constexpr int64_t kExact = int64_t{1} << 24;
  if (value >= -kExact && value <= kExact) return ScalarOfFloat(static_cast<double>(value), dtype);
  std::vector<std::byte> bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  const Expr scalar = ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(DataType::Int(64), {}, std::move(bytes)));
  if (dtype == DataType::Int(64)) return scalar;
  return Bind("astype", {scalar}, {{"dtype", dtype}});
}

Result<Expr> NodeImporter::Scalar(double value, DataType dtype) const {
  if (dtype.is_floating()) return ScalarOfFloat(value, dtype);
  if (std::trunc(value) != value || std::abs(value) >= 0x1p63) {
    return Unsupported("the number " + std::to_string(value) + " as " + dtype.ToString());
  }
  return ScalarOfInteger(static_cast<int64_t>(value), dtype);
}

Result<Expr> NodeImporter::ScalarOfFloat(double value, DataType dtype) const {
  const float narrow = static_cast<float>(value);
  if (dtype == DataType::Float(64) && static_cast<double>(narrow) != value) {
    std::vector<std::byte> wide(sizeof(value));
    std::memcpy(wide.data(), &value, sizeof(value));
    return Expr(ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(dtype, {}, std::move(wide))));
  }
  std::vector<std::byte> bytes(sizeof(narrow));
  std::memcpy(bytes.data(), &narrow, sizeof(narrow));
  const Expr scalar =
      ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(DataType::Float(32), {}, std::move(bytes)));
  if (dtype == DataType::Float(32)) return scalar;
  return Bind("astype", {scalar}, {{"dtype", dtype}});
}

}  // namespace ingot::importer
