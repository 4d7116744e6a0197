// Joins the families into the table; completes and checks calls (arity, attributes, short forms); infers the types of
// calls of functions, whose parameters' symbolic variables are matched with the arguments' dims; makes calls of tensor
// functions and the halves of calls with dynamic output shapes.
#include "compiler/op/registry.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/ir/visitor.h"
#include "compiler/op/dim_size.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "runtime/suggest.h"

namespace ingot::op {
namespace {

// Every row, its name and its node, ordered by name; made once, never changed.
struct Table {
  std::vector<OpRow> storage;
  std::vector<const OpRow*> rows;
  std::vector<std::string_view> names;
  std::vector<ir::Expr> nodes;

  Table() {
    for (auto family :
         {BatchNormOps,     CacheOps,           DynamicShapeOps, PoolIndicesOps, ElementwiseOps,     BinaryOps,
          CreateOps,        ShapeOps,           TransformOps,    ReductionOps,   ActivationOps,      NormalizationOps,
          LinearOps,        EinsumOps,          AttentionOps,    ConvolutionOps, WinogradOps,        RecurrentOps,
          ResizeOps,        VisionOps,          CallOps,         TreeOps,        CouplingOps,        ControlOps,
          IndexingOps,      MovementOps,        OrderingOps,     ScatterOps,     MemoryOps,          ByteProductOps,
          PackedElementOps, LinearAttentionOps, DeterminantOps,  AntialiasOps,   WordConvolutionOps, WindowSumOps,
          ImageBlockOps}) {
      for (OpRow& row : family()) storage.push_back(std::move(row));
    }
    std::ranges::sort(storage, {}, [](const OpRow& row) { return std::string_view(row.name); });
    for (const OpRow& row : storage) {
      INGOT_CHECK(names.empty() || names.back() != row.name, "two operators of one name");
      rows.push_back(&row);
      names.push_back(row.name);
      nodes.push_back(ir::Make<ir::OpNode>(row.name, &row));
    }
  }
  // The place of a name, or the number of rows.
  size_t Find(std::string_view name) const {
    const auto found = std::ranges::lower_bound(names, name);
    return found != names.end() && *found == name ? static_cast<size_t>(found - names.begin()) : names.size();
  }
};
const Table& GetTable() {
  static const Table table;
  return table;
}

Status RowError(const OpRow& row, const std::string& message) {
  return Status(StatusCode::kBadInput, std::string(row.name) + ": " + message);
}

Status CheckArity(const OpRow& row, size_t num_args) {
  const size_t most = row.arg_names.size();
  const size_t least = most - static_cast<size_t>(row.num_optional_args);
  if (num_args >= least && (row.variadic || num_args <= most)) return Status();
  std::string expected = std::to_string(least);
  if (row.variadic) {
    expected = "at least " + expected;
  } else if (least != most) {
    expected += " to " + std::to_string(most);
  }
  std::string names;
  for (const char* name : row.arg_names) names += (names.empty() ? "" : ", ") + std::string(name);
  return RowError(row, "expected " + expected + " arguments (" + names + "), got " + std::to_string(num_args));
}

const char* NameOf(AttrType type) {
  switch (type) {
    case AttrType::kBool:
      return "a bool";
    case AttrType::kInt:
      return "an integer";
    case AttrType::kFloat:
      return "a number";
    case AttrType::kString:
      return "a string";
    case AttrType::kDataType:
      return "a data type";
    case AttrType::kInts:
      return "integers";
    case AttrType::kStrings:
      return "strings";
    case AttrType::kAny:
      return "any value";
  }
  INGOT_UNREACHABLE();
}

// An integer given as one, or as a constant expression.
std::optional<int64_t> AsInt(const ir::AttrValue& value) {
  if (const auto* number = value.get<int64_t>()) return *number;
  const auto* expr = value.get<ir::PrimExpr>();
  return expr != nullptr ? ir::AsConstInt(*expr) : std::nullopt;
}

template <typename T>
bool IsListOf(const ir::AttrValue& value) {
  const auto* list = value.get<ir::AttrList>();
  return list != nullptr && std::ranges::all_of(*list, [](const ir::AttrValue& v) { return v.get<T>() != nullptr; });
}

// value as the spec stores it, or nothing when it does not fit.
std::optional<ir::AttrValue> ConvertAttr(const AttrSpec& spec, const ir::AttrValue& value) {
  if (value.is_none() && !spec.required && spec.default_value.is_none()) return value;
  switch (spec.type) {
    case AttrType::kBool:
      if (value.get<bool>() != nullptr) return value;
      break;
    case AttrType::kInt:
      if (const auto number = AsInt(value)) return ir::AttrValue(*number);
      break;
    case AttrType::kFloat:
      if (value.get<double>() != nullptr) return value;
      if (const auto number = AsInt(value)) return ir::AttrValue(static_cast<double>(*number));
      break;
    case AttrType::kString:
      if (value.get<std::string>() != nullptr) return value;
      break;
    case AttrType::kDataType:
      if (value.get<DataType>() != nullptr) return value;
      if (const auto* text = value.get<std::string>()) {
        if (*text == "void" || text->empty()) {
          return spec.required ? std::nullopt : std::optional<ir::AttrValue>(ir::AttrValue());
        }
        Result<DataType> dtype = DataType::Parse(*text);
        if (dtype.ok()) return ir::AttrValue(*dtype);
      }
      break;
    case AttrType::kInts: {
      if (const auto number = AsInt(value)) return ir::AttrValue::Ints({*number});
      const auto* list = value.get<ir::AttrList>();
      std::vector<int64_t> numbers;
      for (const ir::AttrValue& item : list != nullptr ? *list : ir::AttrList()) {
        if (const auto number = AsInt(item)) numbers.push_back(*number);
      }
      if (list != nullptr && numbers.size() == list->size()) return ir::AttrValue::Ints(numbers);
      break;
    }
    case AttrType::kStrings:
      if (IsListOf<std::string>(value)) return value;
      break;
    case AttrType::kAny:
      return value;
  }
  return std::nullopt;
}

Result<ir::Attrs> CompleteAttrs(const OpRow& row, const ir::Attrs& attrs) {
  std::vector<std::string_view> names;
  for (const AttrSpec& spec : row.attrs) names.push_back(spec.name);
  for (const auto& [name, value] : attrs.items()) {
    if (std::ranges::find(names, name) == names.end()) {
      return RowError(row, "no attribute \"" + name + "\"" + DidYouMean(name, names));
    }
  }
  ir::AttrDict complete;
  for (const AttrSpec& spec : row.attrs) {
    const ir::AttrValue* given = attrs.Find(spec.name);
    if (given == nullptr && spec.required) {
      return RowError(row, std::string("missing attribute \"") + spec.name + "\", " + NameOf(spec.type));
    }
    std::optional<ir::AttrValue> value =
        given == nullptr ? std::optional(spec.default_value) : ConvertAttr(spec, *given);
    if (!value) {
      return RowError(row, std::string("attribute \"") + spec.name + "\": expected " + NameOf(spec.type));
    }
    complete.emplace_back(spec.name, std::move(*value));
  }
  return ir::Attrs(std::move(complete));
}

// ---- Calls of functions: parameters' symbolic variables take the values of the arguments' dims.
class Signature {
 public:
  // of_closure: the callee's types may also name symbolic variables of the enclosing function, which stay as they are.
  Signature(const ir::Call& call, bool of_closure) : call_(call), of_closure_(of_closure) {}

  Status Match(const ir::Type& parameter, const ir::Type& argument) {
    if (parameter == nullptr || argument == nullptr) return Status();
    if (const auto* tensor = ir::As<ir::TensorTypeNode>(parameter)) {
      const auto* got = ir::As<ir::TensorTypeNode>(argument);
      const bool fits = got != nullptr && (!tensor->dtype || !got->dtype || *tensor->dtype == *got->dtype) &&
                        (tensor->rank < 0 || got->rank < 0 || tensor->rank == got->rank);
      if (!fits) return Mismatch(parameter, argument);
      return tensor->dims && got->dims ? MatchDims(*tensor->dims, *got->dims, parameter, argument) : Status();
    }
    if (const auto* shape = ir::As<ir::ShapeTypeNode>(parameter)) {
      const auto* got = ir::As<ir::ShapeTypeNode>(argument);
      if (got == nullptr || (shape->rank >= 0 && got->rank >= 0 && shape->rank != got->rank)) {
        return Mismatch(parameter, argument);
      }
      return shape->dims && got->dims ? MatchDims(*shape->dims, *got->dims, parameter, argument) : Status();
    }
    if (const auto* prim = ir::As<ir::PrimTypeNode>(parameter)) {
      const auto* got = ir::As<ir::PrimTypeNode>(argument);
      if (got == nullptr || prim->dtype != got->dtype) return Mismatch(parameter, argument);
      if (prim->value != nullptr && got->value != nullptr) {
        return MatchDims({prim->value}, {got->value}, parameter, argument);
      }
      return Status();
    }
    if (const auto* tuple = ir::As<ir::TupleTypeNode>(parameter)) {
      const auto* got = ir::As<ir::TupleTypeNode>(argument);
      if (got == nullptr || got->fields.size() != tuple->fields.size()) return Mismatch(parameter, argument);
      for (size_t i = 0; i < tuple->fields.size(); ++i) {
        INGOT_RETURN_IF_ERROR(Match(tuple->fields[i], got->fields[i]));
      }
    }
    return Status();
  }

  // The result with the variables replaced; dims that nothing binds are unknown.
  ir::Type ResultOf(const ir::Type& type) const {
    if (const auto* tuple = ir::As<ir::TupleTypeNode>(type)) {
      std::vector<ir::Type> fields;
      for (const ir::Type& field : tuple->fields) fields.push_back(ResultOf(field));
      return ir::Make<ir::TupleTypeNode>(std::move(fields));
    }
    for (const ir::PrimVar& var : ir::FreePrimVars(type)) {
      if (bound_.contains(var) || of_closure_) continue;
      if (const auto* tensor = ir::As<ir::TensorTypeNode>(type)) {
        return ir::Make<ir::TensorTypeNode>(tensor->rank, tensor->dtype, tensor->virtual_device);
      }
      if (const auto* shape = ir::As<ir::ShapeTypeNode>(type)) return ir::Make<ir::ShapeTypeNode>(shape->rank);
      if (const auto* prim = ir::As<ir::PrimTypeNode>(type)) return ir::Make<ir::PrimTypeNode>(prim->dtype);
    }
    return ir::Substitute(type, bound_);
  }

 private:
  Status Mismatch(const ir::Type& parameter, const ir::Type& argument) const {
    return OpError(call_, "expected " + Describe(parameter) + ", got " + Describe(argument));
  }
  Status MatchDims(const Dims& parameter, const Dims& argument, const ir::Type& expected, const ir::Type& got) {
    for (size_t i = 0; i < parameter.size(); ++i) {
      const ir::PrimVar var = ir::AsRef<ir::PrimVarNode>(parameter[i]);
      if (var != nullptr && bound_.emplace(var, argument[i]).second) continue;
      if (DimsDiffer(ir::Substitute(parameter[i], bound_), argument[i])) return Mismatch(expected, got);
    }
    return Status();
  }

  const ir::Call& call_;
  const bool of_closure_;
  ir::PrimVarMap bound_;
};

Result<ir::Type> InferSignature(const ir::Call& call, const std::vector<ir::Type>& params, const ir::Type& result,
                                bool of_closure) {
  if (params.size() != call->args.size()) {
    return OpError(
        call, "expected " + std::to_string(params.size()) + " arguments, got " + std::to_string(call->args.size()));
  }
  Signature signature(call, of_closure);
  for (size_t i = 0; i < params.size(); ++i) {
    INGOT_RETURN_IF_ERROR(signature.Match(params[i], call->args[i]->type));
  }
  return result != nullptr ? signature.ResultOf(result) : ir::Type(ir::Make<ir::ObjectTypeNode>());
}

}  // namespace

std::span<const OpRow* const> AllOps() { return GetTable().rows; }

const OpRow* FindOp(std::string_view name) {
  const Table& table = GetTable();
  const size_t at = table.Find(name);
  return at < table.rows.size() ? table.rows[at] : nullptr;
}

std::string SuggestOp(std::string_view name) { return std::string(NearestName(name, GetTable().names)); }

ir::Expr GetOp(std::string_view name) {
  const Table& table = GetTable();
  const size_t at = table.Find(name);
  INGOT_CHECK(at < table.rows.size(), "no operator of this name");
  return table.nodes[at];
}

const Implementation* CheapestImplementation(const ir::Call& call, const Target& target, bool of_tensors) {
  const Implementation* best = nullptr;
  double best_cost = 0;
  for (const Implementation& implementation : RowOf(call)->implementations) {
    if (of_tensors && implementation.build.tensors == nullptr) continue;
    if (!implementation.predicate(call, target)) continue;
    const double cost = implementation.cost(call, target);
    if (best != nullptr && cost >= best_cost) continue;
    best = &implementation;
    best_cost = cost;
  }
  return best;
}

const OpRow* RowOf(const ir::Call& call) {
  const auto* op = ir::As<ir::OpNode>(call->callee);
  return op != nullptr ? op->row : nullptr;
}

Result<CallParts> CompleteCall(const OpRow& row, CallParts parts) {
  INGOT_RETURN_IF_ERROR(CheckArity(row, parts.args.size()));
  INGOT_ASSIGN_OR_RETURN(parts.attrs, CompleteAttrs(row, parts.attrs));
  if (row.normalize == nullptr) return parts;
  Result<CallParts> normal = row.normalize(std::move(parts));
  if (!normal.ok()) return std::move(normal).status().WithContext(row.name);
  return normal;
}

Result<ir::Call> MakeCall(std::string_view name, std::vector<ir::Expr> args, ir::Attrs attrs,
                          std::vector<ir::Type> type_args) {
  const OpRow* row = FindOp(name);
  if (row == nullptr) {
    return Status(StatusCode::kBadInput,
                  "unknown operator \"" + std::string(name) + "\"" + DidYouMean(name, GetTable().names));
  }
  INGOT_ASSIGN_OR_RETURN(CallParts parts, CompleteCall(*row, {std::move(args), std::move(attrs)}));
  const ir::Call untyped =
      ir::Make<ir::CallNode>(GetOp(name), std::move(parts.args), std::move(parts.attrs), std::move(type_args));
  INGOT_ASSIGN_OR_RETURN(ir::Type type, row->infer(untyped));
  if (const Status sizes = CheckDimSizes(type); !sizes.ok()) return OpError(untyped, sizes.message());
  ir::CallNode typed = *untyped;
  typed.type = std::move(type);
  return ir::Make<ir::CallNode>(std::move(typed));
}

namespace {

Result<ir::Type> InferUnchecked(const ir::IRModule& module, const ir::Call& call) {
  if (const OpRow* row = RowOf(call)) {
    INGOT_RETURN_IF_ERROR(CheckArity(*row, call->args.size()));
    return row->infer(call);
  }
  if (const auto* var = ir::As<ir::GlobalVarNode>(call->callee)) {
    if (const ir::Function function = module.FindFunction(var->name)) {
      std::vector<ir::Type> params;
      for (const ir::Var& param : function->params) params.push_back(param->type);
      return InferSignature(call, params, function->result_type, /*of_closure=*/false);
    }
    // A direct call of a tensor function, after destination passing: it writes the buffers that it is given.
    if (module.FindPrimFunc(var->name) != nullptr)
      return ir::Type(ir::Make<ir::TupleTypeNode>(std::vector<ir::Type>{}));
  }
  if (ir::As<ir::ExternFuncNode>(call->callee) != nullptr && !call->type_args.empty()) {
    if (call->type_args.size() == 1) return call->type_args[0];
    return ir::Type(ir::Make<ir::TupleTypeNode>(call->type_args));
  }
  if (const auto* callable = ir::As<ir::CallableTypeNode>(call->callee->type)) {
    if (callable->params) {
      const bool of_closure = ir::As<ir::VarNode>(call->callee) != nullptr;
      return InferSignature(call, *callable->params, callable->result, of_closure);
    }
    return callable->result != nullptr ? callable->result : ir::Type(ir::Make<ir::ObjectTypeNode>());
  }
  if (ir::As<ir::ExternFuncNode>(call->callee) != nullptr) return ir::Type(ir::Make<ir::ObjectTypeNode>());
  return OpError(call, "expected a function to call, got " + Describe(call->callee->type));
}

}  // namespace

Result<ir::Type> InferCallType(const ir::IRModule& module, const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(ir::Type type, InferUnchecked(module, call));
  if (const Status sizes = CheckDimSizes(type); !sizes.ok()) return OpError(call, sizes.message());
  return type;
}

ir::Call MakeCallTIR(const ir::GlobalVar& function, std::vector<ir::Expr> inputs, std::vector<ir::Type> out_types,
                     std::vector<ir::PrimExpr> shape_vars) {
  std::vector<ir::Type> types;
  for (const ir::Expr& input : inputs) types.push_back(input->type);
  std::vector<ir::Expr> args = {
      function, ir::Make<ir::TupleNode>(std::move(inputs), ir::Make<ir::TupleTypeNode>(std::move(types)))};
  if (!shape_vars.empty()) args.push_back(ir::Make<ir::ShapeExprNode>(std::move(shape_vars)));
  ir::Type type = out_types.size() == 1 ? out_types[0] : ir::Type(ir::Make<ir::TupleTypeNode>(out_types));
  return ir::Make<ir::CallNode>(GetOp("call_tir"), std::move(args), ir::Attrs(), std::move(out_types), std::move(type));
}

Result<ir::Call> CountCall(const ir::Call& call) {
  const DataExtents& extents = RowOf(call)->extents;
  std::vector<ir::Type> types = {TensorOf({ir::Int64(extents.count)}, DataType::Int(64), nullptr)};
  if (extents.carried != nullptr) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<ir::Type> carried, extents.carried(call));
    types.insert(types.end(), carried.begin(), carried.end());
  }
  ir::CallNode count = *call;
  count.type = types.size() == 1 ? types[0] : ir::Type(ir::Make<ir::TupleTypeNode>(std::move(types)));
  return ir::Call(ir::Make<ir::CallNode>(std::move(count)));
}

Result<ir::Call> FillCall(const ir::Call& call, const std::vector<ir::Expr>& carried,
                          const std::vector<ir::PrimExpr>& extents) {
  ir::CallNode fill = *call;
  INGOT_ASSIGN_OR_RETURN(fill.type, RowOf(call)->extents.type(call, extents));
  fill.args.insert(fill.args.end(), carried.begin(), carried.end());
  return ir::Call(ir::Make<ir::CallNode>(std::move(fill)));
}

std::vector<ir::Expr> InputTensors(const ir::Call& call) {
  std::vector<ir::Expr> inputs;
  for (const ir::Expr& arg : call->args) {
    if (const auto* tuple = ir::As<ir::TupleNode>(arg)) {
      for (const ir::Expr& field : tuple->fields) {
        if (ir::As<ir::TensorTypeNode>(field->type) != nullptr) inputs.push_back(field);
      }
    } else if (ir::As<ir::TensorTypeNode>(arg->type) != nullptr) {
      inputs.push_back(arg);
    }
  }
  return inputs;
}

namespace {
// The dims of the tensors in a type, tuples opened.
void CollectDims(const ir::Type& type, Dims& dims) {
  if (const auto* tensor = ir::As<ir::TensorTypeNode>(type)) {
    if (tensor->dims) dims.insert(dims.end(), tensor->dims->begin(), tensor->dims->end());
  } else if (const auto* tuple = ir::As<ir::TupleTypeNode>(type)) {
    for (const ir::Type& field : tuple->fields) CollectDims(field, dims);
  }
}
}  // namespace

std::vector<ir::PrimVar> UnboundShapeVars(const ir::Call& call) {
  Dims dims;
  for (const ir::Expr& input : InputTensors(call)) CollectDims(input->type, dims);
  CollectDims(call->type, dims);
  std::unordered_set<ir::PrimVar, ir::RefHash, ir::RefSame> seen;
  for (const ir::PrimExpr& dim : dims) {
    if (const ir::PrimVar var = ir::AsRef<ir::PrimVarNode>(dim)) seen.insert(var);
  }
  for (const ir::Expr& arg : call->args) {
    if (const auto* shape = ir::As<ir::ShapeExprNode>(arg))
      dims.insert(dims.end(), shape->dims.begin(), shape->dims.end());
    if (const auto* value = ir::As<ir::PrimValueNode>(arg)) dims.push_back(value->value);
    if (const auto* tuple = ir::As<ir::TupleNode>(arg)) {
      for (const ir::Expr& field : tuple->fields) {
        if (const auto* value = ir::As<ir::PrimValueNode>(field)) dims.push_back(value->value);
      }
    }
  }
  std::vector<ir::PrimVar> unbound;
  for (const ir::PrimExpr& dim : dims) {
    for (const ir::PrimVar& var : ir::FreePrimVars(dim)) {
      if (seen.insert(var).second) unbound.push_back(var);
    }
  }
  return unbound;
}

}  // namespace ingot::op

template class std::vector<ingot::op::OpRow>;
template class std::vector<ingot::op::Implementation>;
template class std::vector<ingot::op::ReferenceTensor>;
template class std::vector<ingot::op::AttrSpec>;
