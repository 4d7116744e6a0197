// Descriptions of types and dims for messages, checked access to arguments and attributes, and small questions about
// dims that the analyzer answers.
#include "compiler/op/infer.h"

#include <algorithm>

#include "compiler/arith/analyzer.h"
#include "compiler/op/broadcast.h"
#include "compiler/op/dim_size.h"
#include "compiler/op/registry.h"

namespace ingot::op {
namespace {

const char* SymbolOf(ir::BinaryOp op) {
  switch (op) {
    case ir::BinaryOp::kAdd:
      return " + ";
    case ir::BinaryOp::kSub:
      return " - ";
    case ir::BinaryOp::kMul:
      return " * ";
    case ir::BinaryOp::kDiv:
      return " / ";
    case ir::BinaryOp::kTruncMod:
      return " truncmod ";
    case ir::BinaryOp::kFloorDiv:
      return " // ";
    case ir::BinaryOp::kFloorMod:
      return " % ";
    case ir::BinaryOp::kMin:
      return " min ";
    case ir::BinaryOp::kMax:
      return " max ";
    case ir::BinaryOp::kEQ:
      return " == ";
    case ir::BinaryOp::kNE:
      return " != ";
    case ir::BinaryOp::kLT:
      return " < ";
    case ir::BinaryOp::kLE:
      return " <= ";
    case ir::BinaryOp::kGT:
      return " > ";
    case ir::BinaryOp::kGE:
      return " >= ";
    case ir::BinaryOp::kAnd:
      return " and ";
    case ir::BinaryOp::kOr:
      return " or ";
  }
  INGOT_UNREACHABLE();
}

std::string DescribeDims(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + Describe(dims[i]);
  return text + "]";
}

}  // namespace

Status OpError(const ir::Call& call, const std::string& message) {
  const auto* op = ir::As<ir::OpNode>(call->callee);
  std::string text = (op != nullptr ? op->name : std::string("call")) + ": " + message;
  if (call->span.is_known()) text = call->span.ToString() + ": " + text;
  return Status(StatusCode::kBadInput, std::move(text));
}

std::string Describe(const ir::PrimExpr& expr) {
  if (const auto* value = ir::As<ir::IntImmNode>(expr)) return std::to_string(value->value);
  if (const auto* value = ir::As<ir::FloatImmNode>(expr)) return std::to_string(value->value);
  if (const auto* var = ir::As<ir::PrimVarNode>(expr)) return var->name;
  if (const auto* binary = ir::As<ir::BinaryNode>(expr)) {
    const auto operand = [](const ir::PrimExpr& e) {
      return e->kind == ir::PrimKind::kBinary ? "(" + Describe(e) + ")" : Describe(e);
    };
    return operand(binary->a) + SymbolOf(binary->op) + operand(binary->b);
  }
  return "...";
}

Status CheckHasElements(const ir::Call& call, const ir::TensorType& x, size_t axis, const Dims& result) {
  const auto is_some = [](const ir::PrimExpr& dim) { return ir::AsConstInt(dim).value_or(0) > 0; };
  if (!ir::IsConstInt((*x->dims)[axis], 0) || !std::ranges::all_of(result, is_some)) return Status();
  return OpError(call, "axis " + std::to_string(axis) + " of " + Describe(x) + " has no elements to read");
}

std::string Describe(const ir::Type& type) {
  if (type == nullptr) return "a value of unknown type";
  switch (type->kind) {
    case ir::TypeKind::kObject:
      return "an object";
    case ir::TypeKind::kPrim: {
      const auto* prim = ir::As<ir::PrimTypeNode>(type);
      return "scalar " + prim->dtype.ToString();
    }
    case ir::TypeKind::kShape: {
      const auto* shape = ir::As<ir::ShapeTypeNode>(type);
      return "shape" + (shape->dims ? DescribeDims(*shape->dims) : " of rank " + std::to_string(shape->rank));
    }
    case ir::TypeKind::kTensor: {
      const auto* tensor = ir::As<ir::TensorTypeNode>(type);
      const std::string dtype = tensor->dtype ? tensor->dtype->ToString() : "tensor";
      if (tensor->dims) return dtype + DescribeDims(*tensor->dims);
      return dtype + (tensor->rank < 0 ? " of unknown rank" : " of rank " + std::to_string(tensor->rank));
    }
    case ir::TypeKind::kTuple: {
      std::string text = "tuple(";
      const auto* tuple = ir::As<ir::TupleTypeNode>(type);
      for (size_t i = 0; i < tuple->fields.size(); ++i) text += (i == 0 ? "" : ", ") + Describe(tuple->fields[i]);
      return text + ")";
    }
    case ir::TypeKind::kCallable:
      return "a function";
  }
  INGOT_UNREACHABLE();
}

bool HasArg(const ir::Call& call, size_t i) { return i < call->args.size(); }

namespace {
std::string ArgName(const ir::Call& call, size_t i) {
  const OpRow* row = RowOf(call);
  if (row == nullptr || row->arg_names.empty()) return "argument " + std::to_string(i);
  return "argument \"" + std::string(row->arg_names[std::min(i, row->arg_names.size() - 1)]) + "\"";
}
}  // namespace

Result<ir::TensorType> TensorArg(const ir::Call& call, size_t i) {
  INGOT_CHECK(HasArg(call, i), "arity was checked before");
  ir::TensorType type = ir::AsRef<ir::TensorTypeNode>(call->args[i]->type);
  if (type == nullptr) {
    return OpError(call, ArgName(call, i) + ": expected a tensor, got " + Describe(call->args[i]->type));
  }
  return type;
}

Result<std::vector<ir::TensorType>> TensorTupleArg(const ir::Call& call, size_t i) {
  INGOT_CHECK(HasArg(call, i), "arity was checked before");
  const ir::Type& type = call->args[i]->type;
  std::vector<ir::TensorType> tensors;
  if (const auto* tuple = ir::As<ir::TupleTypeNode>(type)) {
    for (const ir::Type& field : tuple->fields) tensors.push_back(ir::AsRef<ir::TensorTypeNode>(field));
  } else {
    tensors.push_back(ir::AsRef<ir::TensorTypeNode>(type));
  }
  for (const ir::TensorType& tensor : tensors) {
    if (tensor == nullptr) {
      return OpError(call, ArgName(call, i) + ": expected a tuple of tensors, got " + Describe(type));
    }
  }
  return tensors;
}

Result<std::optional<Dims>> ShapeArg(const ir::Call& call, size_t i, int* rank) {
  INGOT_CHECK(HasArg(call, i), "arity was checked before");
  const auto* type = ir::As<ir::ShapeTypeNode>(call->args[i]->type);
  if (type == nullptr) {
    return OpError(call, ArgName(call, i) + ": expected a shape, got " + Describe(call->args[i]->type));
  }
  if (rank != nullptr) *rank = type->rank;
  return type->dims;
}

Result<ir::PrimExpr> PrimArg(const ir::Call& call, size_t i) {
  INGOT_CHECK(HasArg(call, i), "arity was checked before");
  if (const auto* value = ir::As<ir::PrimValueNode>(call->args[i])) return value->value;
  const auto* type = ir::As<ir::PrimTypeNode>(call->args[i]->type);
  if (type != nullptr && type->value != nullptr) return type->value;
  return OpError(call, ArgName(call, i) + ": expected a known scalar, got " + Describe(call->args[i]->type));
}

Result<std::vector<ir::PrimExpr>> PrimTupleArg(const ir::Call& call, size_t i) {
  INGOT_CHECK(HasArg(call, i), "arity was checked before");
  const auto* tuple = ir::As<ir::TupleNode>(call->args[i]);
  std::vector<ir::PrimExpr> values;
  if (tuple != nullptr) {
    for (const ir::Expr& field : tuple->fields) {
      const auto* prim = ir::As<ir::PrimValueNode>(field);
      if (prim == nullptr || !prim->value->dtype.is_integral()) break;
      values.push_back(ir::Cast(DataType::Int(64), prim->value));
    }
  }
  if (tuple != nullptr && values.size() == tuple->fields.size()) return values;
  return OpError(call, ArgName(call, i) + ": expected a tuple of integers, got " + Describe(call->args[i]->type));
}

Result<std::vector<int64_t>> IntTupleArg(const ir::Call& call, size_t i) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<ir::PrimExpr> exprs, PrimTupleArg(call, i));
  std::vector<int64_t> values;
  for (const ir::PrimExpr& expr : exprs) {
    const auto value = ir::AsConstInt(expr);
    if (!value) {
      return OpError(
          call, ArgName(call, i) + ": expected a tuple of constant integers, got " + Describe(call->args[i]->type));
    }
    values.push_back(*value);
  }
  return values;
}

std::optional<DataType> DataTypeAttr(const ir::Call& call, const char* name) {
  const ir::AttrValue* value = call->attrs.Find(name);
  const DataType* dtype = value ? value->get<DataType>() : nullptr;
  return dtype != nullptr ? std::optional<DataType>(*dtype) : std::nullopt;
}

std::optional<std::vector<int64_t>> IntsAttr(const ir::Call& call, const char* name) {
  const ir::AttrValue* value = call->attrs.Find(name);
  if (!value || value->is_none()) return std::nullopt;
  return call->attrs.GetInts(name);
}

Result<int> NormalizeAxis(const ir::Call& call, int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  return OpError(call, "expected an axis in [" + std::to_string(-rank) + ", " + std::to_string(rank) + "), got " +
                           std::to_string(axis));
}

Result<int> AxisOf(const ir::Call& call, int rank) { return NormalizeAxis(call, call->attrs.GetInt("axis"), rank); }

Result<std::vector<int>> NormalizeAxes(const ir::Call& call, const std::optional<std::vector<int64_t>>& axes,
                                       int rank) {
  std::vector<int> result;
  if (!axes) {
    for (int axis = 0; axis < rank; ++axis) result.push_back(axis);
    return result;
  }
  for (int64_t axis : *axes) {
    INGOT_ASSIGN_OR_RETURN(const int normal, NormalizeAxis(call, axis, rank));
    if (std::ranges::find(result, normal) != result.end()) {
      return OpError(call, "axis " + std::to_string(axis) + " is given twice");
    }
    result.push_back(normal);
  }
  return result;
}

bool DimsEqual(const ir::PrimExpr& a, const ir::PrimExpr& b) {
  if (a.same_as(b)) return true;
  const auto x = ir::AsConstInt(a);
  const auto y = ir::AsConstInt(b);
  if (x && y) return *x == *y;
  if (IsLongerThan(a, kMaxDimNodes) || IsLongerThan(b, kMaxDimNodes)) return false;
  return arith::Analyzer().ProveEqual(a, b);
}

bool DimsDiffer(const ir::PrimExpr& a, const ir::PrimExpr& b) {
  const auto x = ir::AsConstInt(a);
  const auto y = ir::AsConstInt(b);
  if (x && y) return *x != *y;
  if (IsLongerThan(a, kMaxDimNodes) || IsLongerThan(b, kMaxDimNodes)) return false;
  arith::Analyzer analyzer;
  return analyzer.ProveLess(a, b) || analyzer.ProveLess(b, a);
}

ir::PrimExpr SimplifyDim(const ir::PrimExpr& dim) {
  return IsLongerThan(dim, kMaxDimNodes) ? dim : arith::Analyzer().Simplify(dim);
}

ir::PrimExpr ProductOf(const Dims& dims) {
  ir::PrimExpr product = ir::Int64(1);
  for (const ir::PrimExpr& dim : dims) product = product * dim;
  return SimplifyDim(product);
}

Result<std::optional<Dims>> BroadcastDims(const ir::Call& call, const Dims& a, const Dims& b) {
  const size_t rank = std::max(a.size(), b.size());
  Dims dims(rank);
  for (size_t i = 0; i < rank; ++i) {
    const bool has_a = i + a.size() >= rank;
    const bool has_b = i + b.size() >= rank;
    const ir::PrimExpr x = has_a ? a[i + a.size() - rank] : ir::Int64(1);
    const ir::PrimExpr y = has_b ? b[i + b.size() - rank] : ir::Int64(1);
    const auto m = ir::AsConstInt(x), n = ir::AsConstInt(y);
    if (m && n && *m != *n && *m != 1 && *n != 1) {
      return OpError(call, "expected dims that broadcast, got " + DescribeDims(a) + " and " + DescribeDims(b));
    }
    dims[i] = BroadcastDim(x, y);
  }
  return std::optional<Dims>(std::move(dims));
}

Result<std::optional<DataType>> CommonDataType(const ir::Call& call, const ir::TensorType& a, const ir::TensorType& b) {
  if (!a->dtype || !b->dtype) return std::optional<DataType>();
  if (*a->dtype == *b->dtype) return a->dtype;
  return OpError(call, "expected equal dtypes, got " + Describe(a) + " and " + Describe(b));
}

ir::Type TensorOf(Dims dims, std::optional<DataType> dtype, const ir::TensorType& like) {
  return ir::Make<ir::TensorTypeNode>(std::move(dims), dtype, like != nullptr ? like->virtual_device : std::string());
}

ir::Type TensorOfRank(int rank, std::optional<DataType> dtype, const ir::TensorType& like) {
  return ir::Make<ir::TensorTypeNode>(rank, dtype, like != nullptr ? like->virtual_device : std::string());
}

Result<std::vector<int64_t>> ConstantDims(const ir::Call& call, const ir::Type& type) {
  const auto* tensor = ir::As<ir::TensorTypeNode>(type);
  std::vector<int64_t> dims;
  if (tensor != nullptr && tensor->dims) {
    for (const ir::PrimExpr& dim : *tensor->dims) {
      const auto value = ir::AsConstInt(dim);
      if (!value) break;
      dims.push_back(*value);
    }
  }
  if (tensor == nullptr || !tensor->dims || dims.size() != tensor->dims->size()) {
    return OpError(call, "expected a tensor with constant dims, got " + Describe(type));
  }
  return dims;
}

}  // namespace ingot::op
