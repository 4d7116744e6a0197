// Evaluation: one run over a module. It evaluates graph expressions itself, and hands tensor functions, and operators
// as the tensor functions they legalise to, to the interpreter. What is kept between runs is in Evaluator.
#include "compiler/validate/evaluate.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "compiler/interp/interpreter.h"
#include "compiler/ir/int_math.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/infer.h"
#include "compiler/op/names.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/tensor/passes.h"
#include "compiler/validate/arena_tenants.h"

namespace ingot::validate {

using ir::As;
using ir::Expr;

// The values of a function's variables and symbols; a nested function also sees those of the functions around it.
struct Environment {
  std::shared_ptr<Environment> outer;
  std::unordered_map<const ir::VarNode*, Value> values;
  std::unordered_map<const ir::PrimVarNode*, int64_t> symbols;

  const Value* Find(const ir::VarNode* var) const {
    for (const Environment* at = this; at != nullptr; at = at->outer.get()) {
      if (const auto found = at->values.find(var); found != at->values.end()) return &found->second;
    }
    return nullptr;
  }
  std::optional<int64_t> Symbol(const ir::PrimVarNode* var) const {
    for (const Environment* at = this; at != nullptr; at = at->outer.get()) {
      if (const auto found = at->symbols.find(var); found != at->symbols.end()) return found->second;
    }
    return std::nullopt;
  }
};

namespace {

constexpr int kMaxCalls = 2000;  // nesting depth of calls

Status NotEvaluated(const std::string& what) {
  return Status(StatusCode::kUnsupportedModel, "the validator does not evaluate " + what);
}
Status DoesNotFit(std::string what) { return Status(StatusCode::kBadInput, std::move(what)); }

std::vector<ir::Type> ResultTypes(const ir::Type& type) {
  if (const auto* tuple = As<ir::TupleTypeNode>(type)) return tuple->fields;
  return {type};
}

Value OneOrTuple(const ir::Type& type, std::vector<HostTensor> tensors) {
  if (As<ir::TupleTypeNode>(type) == nullptr && tensors.size() == 1) return Value::Of(std::move(tensors[0]));
  std::vector<Value> fields;
  for (HostTensor& tensor : tensors) fields.push_back(Value::Of(std::move(tensor)));
  return Value::OfTuple(std::move(fields));
}

std::optional<int64_t> Fold(ir::BinaryOp op, int64_t a, int64_t b) {
  switch (op) {
    case ir::BinaryOp::kAdd:
      return ir::CheckedAdd(a, b);
    case ir::BinaryOp::kSub:
      return ir::CheckedSub(a, b);
    case ir::BinaryOp::kMul:
      return ir::CheckedMul(a, b);
    case ir::BinaryOp::kDiv:
      return ir::CheckedTruncDiv(a, b);
    case ir::BinaryOp::kTruncMod:
      return ir::CheckedTruncMod(a, b);
    case ir::BinaryOp::kFloorDiv:
      return ir::CheckedFloorDiv(a, b);
    case ir::BinaryOp::kFloorMod:
      return ir::CheckedFloorMod(a, b);
    case ir::BinaryOp::kMin:
      return std::min(a, b);
    case ir::BinaryOp::kMax:
      return std::max(a, b);
    case ir::BinaryOp::kEQ:
      return a == b;
    case ir::BinaryOp::kNE:
      return a != b;
    case ir::BinaryOp::kLT:
      return a < b;
    case ir::BinaryOp::kLE:
      return a <= b;
    case ir::BinaryOp::kGT:
      return a > b;
    case ir::BinaryOp::kGE:
      return a >= b;
    case ir::BinaryOp::kAnd:
      return a != 0 && b != 0;
    case ir::BinaryOp::kOr:
      return a != 0 || b != 0;
  }
  return std::nullopt;
}

}  // namespace

class Evaluation {
 public:
  Evaluation(Evaluator& evaluator, const ir::IRModule& module)
      : evaluator_(evaluator), module_(module), steps_left_(evaluator.options_.max_steps) {}

  int64_t steps_left() const { return steps_left_; }

  Result<std::vector<HostTensor>> Main(std::span<const Value> inputs) {
    const ir::Function main_function = module_.FindFunction("main");
    if (main_function == nullptr) return NotEvaluated("a module without a function \"main\"");
    std::vector<Value> arguments(inputs.begin(), inputs.end());
    if (const ir::AttrValue* packed_by = main_function->attrs.Find(transform::kPackedByAttr)) {
      const ir::Function prepare = module_.FindFunction(*packed_by->get<std::string>());
      if (prepare == nullptr) return DoesNotFit("there is no function that packs the weights");
      INGOT_ASSIGN_OR_RETURN(Value packed, Call(prepare, nullptr, {}));
      if (packed.kind != ValueKind::kTuple) packed = Value::OfTuple({packed});
      arguments.insert(arguments.end(), packed.fields.begin(), packed.fields.end());
    }
    INGOT_ASSIGN_OR_RETURN(const Value result, Call(main_function, nullptr, std::move(arguments)));
    std::vector<HostTensor> results = TensorsOf(std::span(&result, 1));
    for (const HostTensor& tensor : results) INGOT_RETURN_IF_ERROR(tenants_.Reads(tensor, "a result"));
    return results;
  }

 private:
  using Scope = std::shared_ptr<Environment>;

  Result<Value> Call(const ir::Function& function, Scope outer, std::vector<Value> arguments) {
    if (arguments.size() != function->params.size()) return DoesNotFit("another number of arguments than parameters");
    if (++depth_ > kMaxCalls) return Status(StatusCode::kDeadlineExceeded, "calls nest too deep");
    auto scope = std::make_shared<Environment>();
    scope->outer = std::move(outer);
    for (const bool only_lone : {true, false}) {  // binds symbols that stand alone first, then compares
      for (size_t i = 0; i < arguments.size(); ++i) {
        const ir::Var& param = function->params[i];
        INGOT_RETURN_IF_ERROR(Match(param->type, arguments[i], *scope, only_lone).WithContext(param->name));
      }
    }
    for (size_t i = 0; i < arguments.size(); ++i) scope->values[function->params[i].get()] = std::move(arguments[i]);
    Result<Value> result = Run(*function->body, scope);
    --depth_;
    return result;
  }

  Status MatchDims(const std::vector<ir::PrimExpr>& dims, std::span<const int64_t> extents, Environment& scope,
                   bool only_lone) {
    if (dims.size() != extents.size()) return DoesNotFit("the rank differs");
    for (size_t i = 0; i < dims.size(); ++i) {
      const auto* var = As<ir::PrimVarNode>(dims[i]);
      if (only_lone) {
        if (var != nullptr && !scope.Symbol(var)) scope.symbols[var] = extents[i];
        continue;
      }
      INGOT_ASSIGN_OR_RETURN(const int64_t expected, Number(dims[i], scope));
      if (expected == extents[i]) continue;
      return DoesNotFit("dim " + std::to_string(i) + " is " + std::to_string(extents[i]) + ", expected " +
                        std::to_string(expected));
    }
    return Status();
  }

  // Binds the symbols of the type that have no value, and compares the others.
  Status Match(const ir::Type& type, const Value& value, Environment& scope, bool only_lone) {
    if (const auto* tensor = As<ir::TensorTypeNode>(type)) {
      if (value.kind != ValueKind::kTensor) return DoesNotFit("expected a tensor");
      if (tensor->dtype && *tensor->dtype != value.tensor.dtype) return DoesNotFit("another dtype");
      if (tensor->rank >= 0 && tensor->rank != std::ssize(value.tensor.dims)) return DoesNotFit("another rank");
      return tensor->dims ? MatchDims(*tensor->dims, value.tensor.dims, scope, only_lone) : Status();
    }
    if (const auto* shape = As<ir::ShapeTypeNode>(type)) {
      if (value.kind != ValueKind::kShape) return DoesNotFit("expected a shape");
      return shape->dims ? MatchDims(*shape->dims, value.shape, scope, only_lone) : Status();
    }
    if (const auto* prim = As<ir::PrimTypeNode>(type)) {
      if (value.kind != ValueKind::kPrim) return NotEvaluated("a scalar that is no integer");
      return prim->value ? MatchDims({prim->value}, value.shape, scope, only_lone) : Status();
    }
    if (const auto* tuple = As<ir::TupleTypeNode>(type)) {
      if (value.kind != ValueKind::kTuple || value.fields.size() != tuple->fields.size()) {
        return DoesNotFit("expected a tuple of as many fields");
      }
      for (size_t i = 0; i < tuple->fields.size(); ++i) {
        INGOT_RETURN_IF_ERROR(Match(tuple->fields[i], value.fields[i], scope, only_lone));
      }
    }
    return Status();
  }

  Result<int64_t> Number(const ir::PrimExpr& expr, const Environment& scope) {
    if (const auto constant = ir::AsConstInt(expr)) return *constant;
    if (const auto* var = As<ir::PrimVarNode>(expr)) {
      if (const std::optional<int64_t> value = scope.Symbol(var)) return *value;
      return NotEvaluated("the symbol \"" + var->name + "\", which nothing binds");
    }
    if (const auto* binary = As<ir::BinaryNode>(expr)) {
      INGOT_ASSIGN_OR_RETURN(const int64_t a, Number(binary->a, scope));
      INGOT_ASSIGN_OR_RETURN(const int64_t b, Number(binary->b, scope));
      const std::optional<int64_t> value = Fold(binary->op, a, b);
      return value ? Result<int64_t>(*value) : DoesNotFit("a dim that overflows or divides by 0");
    }
    if (const auto* select = As<ir::SelectNode>(expr)) {
      INGOT_ASSIGN_OR_RETURN(const int64_t condition, Number(select->condition, scope));
      return Number(condition != 0 ? select->true_value : select->false_value, scope);
    }
    if (const auto* negation = As<ir::NotNode>(expr)) {
      INGOT_ASSIGN_OR_RETURN(const int64_t value, Number(negation->a, scope));
      return int64_t{value == 0};
    }
    if (const auto* cast = As<ir::CastNode>(expr); cast != nullptr && !cast->value->dtype.is_floating()) {
      return Number(cast->value, scope);
    }
    if (const auto* call = As<ir::PrimCallNode>(expr); call != nullptr && call->op == ir::Intrinsic::kIfThenElse) {
      INGOT_ASSIGN_OR_RETURN(const int64_t condition, Number(call->args[0], scope));
      return Number(call->args[condition != 0 ? 1 : 2], scope);
    }
    return NotEvaluated("a dim that is no arithmetic of integers");
  }

  Result<std::vector<int64_t>> Numbers(const std::vector<ir::PrimExpr>& exprs, const Environment& scope) {
    std::vector<int64_t> numbers;
    for (const ir::PrimExpr& expr : exprs) {
      INGOT_ASSIGN_OR_RETURN(const int64_t number, Number(expr, scope));
      numbers.push_back(number);
    }
    return numbers;
  }

  Result<Value> Run(const ir::SeqExprNode& seq, const Scope& scope) {
    for (const ir::BindingBlock& block : seq.blocks) {
      for (const ir::Binding& binding : block.bindings) {
        Result<Value> value = Evaluate(binding.value, scope);
        if (!value.ok()) return std::move(value).status().WithContext("\"" + binding.var->name + "\"");
        if (binding.is_match_cast()) {
          for (const bool only_lone : {true, false}) {
            INGOT_RETURN_IF_ERROR(Match(binding.match_cast, *value, *scope, only_lone).WithContext(binding.var->name));
          }
        }
        scope->values[binding.var.get()] = *std::move(value);
      }
    }
    return Evaluate(seq.body, scope);
  }

  Result<Value> Evaluate(const Expr& expr, const Scope& scope) {
    switch (expr->kind) {
      case ir::ExprKind::kVar: {
        const Value* value = scope->Find(As<ir::VarNode>(expr));
        return value != nullptr ? Result<Value>(*value) : NotEvaluated("a variable that nothing binds");
      }
      case ir::ExprKind::kConstant: {
        const ir::ConstantData& data = *As<ir::ConstantNode>(expr)->data;
        INGOT_ASSIGN_OR_RETURN(HostTensor tensor, NewTensor(data.dtype(), data.dims()));
        std::memcpy(tensor.bytes().data(), data.bytes().data(), tensor.size_bytes);
        return Value::Of(std::move(tensor));
      }
      case ir::ExprKind::kTuple: {
        std::vector<Value> fields;
        for (const Expr& field : As<ir::TupleNode>(expr)->fields) {
          INGOT_ASSIGN_OR_RETURN(Value value, Evaluate(field, scope));
          fields.push_back(std::move(value));
        }
        return Value::OfTuple(std::move(fields));
      }
      case ir::ExprKind::kTupleGetItem: {
        const auto* item = As<ir::TupleGetItemNode>(expr);
        INGOT_ASSIGN_OR_RETURN(const Value tuple, Evaluate(item->tuple, scope));
        if (tuple.kind != ValueKind::kTuple || item->index >= std::ssize(tuple.fields)) return DoesNotFit("no field");
        return tuple.fields[static_cast<size_t>(item->index)];
      }
      case ir::ExprKind::kIf: {
        const auto* branch = As<ir::IfNode>(expr);
        INGOT_ASSIGN_OR_RETURN(const Value value, Evaluate(branch->condition, scope));
        INGOT_ASSIGN_OR_RETURN(const bool is_true, Truth(value));
        return Run(is_true ? *branch->then_branch : *branch->else_branch, scope);
      }
      case ir::ExprKind::kShapeExpr: {
        INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> dims, Numbers(As<ir::ShapeExprNode>(expr)->dims, *scope));
        return Value::OfShape(std::move(dims));
      }
      case ir::ExprKind::kPrimValue: {
        const ir::PrimExpr& number = As<ir::PrimValueNode>(expr)->value;
        if (number->dtype.is_floating()) return Value();  // operators read it from the call
        INGOT_ASSIGN_OR_RETURN(const int64_t value, Number(number, *scope));
        return Value::OfPrim(value);
      }
      case ir::ExprKind::kStringValue:
      case ir::ExprKind::kDataTypeValue:
        return Value();
      case ir::ExprKind::kFunction: {
        Value value;
        value.kind = ValueKind::kFunction;
        value.function = ir::AsRef<ir::FunctionNode>(expr);
        value.environment = scope;
        return value;
      }
      case ir::ExprKind::kGlobalVar: {
        Value value;
        value.kind = ValueKind::kFunction;
        value.function = module_.FindFunction(As<ir::GlobalVarNode>(expr)->name);
        return value.function ? Result<Value>(value) : NotEvaluated("a tensor function as a value");
      }
      case ir::ExprKind::kCall:
        return EvaluateCall(ir::AsRef<ir::CallNode>(expr), scope);
      case ir::ExprKind::kSeqExpr:
        return Run(*As<ir::SeqExprNode>(expr), scope);
      case ir::ExprKind::kOp:
      case ir::ExprKind::kExternFunc:
      case ir::ExprKind::kPrimFunc:
        break;
    }
    return NotEvaluated("such an expression");
  }

  static Result<bool> Truth(const Value& value) {
    if (value.kind == ValueKind::kPrim) return value.shape[0] != 0;
    if (value.kind != ValueKind::kTensor || value.tensor.size_bytes != 1) return DoesNotFit("no truth value");
    return value.tensor.bytes()[0] != std::byte{0};
  }

  Result<std::vector<Value>> EvaluateAll(std::span<const Expr> exprs, const Scope& scope) {
    std::vector<Value> values;
    for (const Expr& expr : exprs) {
      INGOT_ASSIGN_OR_RETURN(Value value, Evaluate(expr, scope));
      values.push_back(std::move(value));
    }
    return values;
  }

  Result<Value> CallValue(const Value& callee, std::vector<Value> arguments) {
    if (callee.kind != ValueKind::kFunction) return NotEvaluated("a call of what is no function");
    arguments.insert(arguments.end(), callee.fields.begin(), callee.fields.end());
    return Call(callee.function, callee.environment, std::move(arguments));
  }

  Result<Value> EvaluateCall(const ir::Call& call, const Scope& scope) {
    if (const op::OpRow* row = op::RowOf(call)) {
      Result<Value> value = row->is_primitive ? Primitive(call, row->name, scope) : Operator(call, *row, scope);
      return value.ok() ? std::move(value) : std::move(value).status().WithContext(row->name);
    }
    if (const auto* external = As<ir::ExternFuncNode>(call->callee)) {
      INGOT_ASSIGN_OR_RETURN(const std::vector<Value> values, EvaluateAll(call->args, scope));
      const bool is_copy = external->name == "vm.builtin.reshape" && values.size() == 2 &&
                           values[0].tensor.size_bytes == values[1].tensor.size_bytes;
      if (!is_copy) return NotEvaluated("the external function or builtin \"" + external->name + "\"");
      INGOT_RETURN_IF_ERROR(tenants_.Reads(values[1].tensor, external->name));
      tenants_.Writes(values[0].tensor);
      std::memmove(values[0].tensor.bytes().data(), values[1].tensor.bytes().data(), values[0].tensor.size_bytes);
      return Value::OfTuple({});
    }
    if (const auto* callee = As<ir::GlobalVarNode>(call->callee)) {
      INGOT_ASSIGN_OR_RETURN(std::vector<Value> values, EvaluateAll(call->args, scope));
      const ir::PrimFunc function = module_.FindPrimFunc(callee->name);
      if (function != nullptr) {
        INGOT_RETURN_IF_ERROR(RunInPlace(function, values).WithContext(callee->name));
        return Value::OfTuple({});
      }
      INGOT_ASSIGN_OR_RETURN(const Value target, Evaluate(call->callee, scope));
      Result<Value> result = CallValue(target, std::move(values));
      return result.ok() ? std::move(result) : std::move(result).status().WithContext(callee->name);
    }
    INGOT_ASSIGN_OR_RETURN(const Value callee, Evaluate(call->callee, scope));
    INGOT_ASSIGN_OR_RETURN(std::vector<Value> values, EvaluateAll(call->args, scope));
    return CallValue(callee, std::move(values));
  }

  // ---- Primitives

  Result<Value> Primitive(const ir::Call& call, std::string_view name, const Scope& scope) {
    if (name == op::names::kCallTir || name == op::names::kCallTirInplace) return CallTir(call, scope);
    if (name == op::names::kAllocTensor || name == op::names::kAllocStorage ||
        name == op::names::kAllocTensorInStorage) {
      return Allocate(call, name, scope);
    }
    INGOT_ASSIGN_OR_RETURN(const std::vector<Value> values, EvaluateAll(call->args, scope));
    for (const HostTensor& tensor : TensorsOf(values)) INGOT_RETURN_IF_ERROR(tenants_.Reads(tensor, "an argument"));
    if (name == op::names::kPrint) return Value::OfTuple({});
    if (name == op::names::kAssert) {
      INGOT_ASSIGN_OR_RETURN(const bool holds, Truth(values[0]));
      return holds ? Result<Value>(Value::OfTuple({})) : DoesNotFit("an assertion does not hold");
    }
    if (name == op::names::kMakeClosure) {
      Value closure = values[0];
      closure.fields.insert(closure.fields.begin(), values[1].fields.begin(), values[1].fields.end());
      return closure;
    }
    if (name == op::names::kInvokeClosure || name == op::names::kInvokePureClosure)
      return CallValue(values[0], values[1].fields);
    if (name == op::names::kMemoryBitcast) {
      INGOT_ASSIGN_OR_RETURN(const std::vector<HostTensor> shaped, NewResults({call->type}, *scope));
      HostTensor view = values[0].tensor;
      if (shaped[0].size_bytes != view.size_bytes) return DoesNotFit("other elements of another number of bytes");
      view.dims = shaped[0].dims;
      view.dtype = shaped[0].dtype;
      return Value::Of(std::move(view));
    }
    if (name == op::names::kShapeOf) return Value::OfShape(values[0].tensor.dims);
    if (name == op::names::kTensorToShape) return TensorToShape(values[0].tensor);
    if (name == op::names::kAppendToCache) return Append(*call, values);
    if (name == op::names::kWriteRow) return WriteRow(values);
    if (name.starts_with("sequence.")) return Sequence(name, values);
    return NotEvaluated("this call");
  }

  Result<Value> Allocate(const ir::Call& call, std::string_view name, const Scope& scope) {
    const size_t first = name == op::names::kAllocTensorInStorage ? 2 : 0;
    INGOT_ASSIGN_OR_RETURN(const Value shape, Evaluate(call->args[first], scope));
    if (name == op::names::kAllocStorage) {
      INGOT_ASSIGN_OR_RETURN(HostTensor bytes, NewTensor(DataType::UInt(8), shape.shape, kUnwritten));
      Value storage = Value::Of(std::move(bytes));
      storage.kind = ValueKind::kStorage;
      tenants_.AddArena(storage.tensor);
      return storage;
    }
    const auto* type = As<ir::DataTypeValueNode>(call->args[first + 1]);
    if (type == nullptr || shape.kind != ValueKind::kShape) return DoesNotFit("no shape or dtype");
    INGOT_ASSIGN_OR_RETURN(HostTensor tensor, NewTensor(type->value, shape.shape, kUnwritten));
    if (first == 0) return Value::Of(std::move(tensor));
    INGOT_ASSIGN_OR_RETURN(const Value storage, Evaluate(call->args[0], scope));
    INGOT_ASSIGN_OR_RETURN(const Value offset, Evaluate(call->args[1], scope));
    const auto at = static_cast<size_t>(offset.shape[0]);
    if (storage.kind != ValueKind::kStorage || at > storage.tensor.size_bytes ||
        tensor.size_bytes > storage.tensor.size_bytes - at) {
      return Status(StatusCode::kFailed, "a tensor outside of its arena");
    }
    tensor.storage = storage.tensor.storage;
    tensor.offset = at;
    tensor.tenant = tenants_.NewTenant();
    return Value::Of(std::move(tensor));
  }

  static Result<Value> TensorToShape(const HostTensor& tensor) {
    std::vector<int64_t> extents;
    const auto width = static_cast<size_t>(tensor.dtype.bits / 8);
    for (size_t at = 0; width > 0 && at + width <= tensor.size_bytes; at += width) {
      uint64_t bits = 0;
      std::memcpy(&bits, tensor.bytes().data() + at, width);
      const int shift = tensor.dtype.is_int() ? 64 - tensor.dtype.bits : 0;
      extents.push_back(static_cast<int64_t>(bits << shift) >> shift);
    }
    return Value::OfShape(std::move(extents));
  }

  static Result<Value> WriteRow(const std::vector<Value>& values) {
    HostTensor buffer = values[0].tensor.Copy();
    const HostTensor& row = values[1].tensor;
    const int64_t index = values[2].shape[0];
    if (index < 0 || buffer.dims.empty() || index >= buffer.dims[0]) return DoesNotFit("a row outside");
    std::memcpy(buffer.bytes().data() + static_cast<size_t>(index) * row.size_bytes, row.bytes().data(),
                row.size_bytes);
    return Value::Of(std::move(buffer));
  }

  static Result<Value> Append(const ir::CallNode& call, const std::vector<Value>& values) {
    HostTensor cache = values[0].tensor.Copy();
    const HostTensor& part = values[1].tensor;
    const auto rank = std::ssize(cache.dims);
    const int64_t axis = call.attrs.GetInt("axis") < 0 ? call.attrs.GetInt("axis") + rank : call.attrs.GetInt("axis");
    size_t outer = 1, inner = cache.dtype.bits / 8U;
    for (int64_t i = 0; i < rank; ++i) {
      if (i < axis) outer *= static_cast<size_t>(cache.dims[static_cast<size_t>(i)]);
      if (i > axis) inner *= static_cast<size_t>(cache.dims[static_cast<size_t>(i)]);
    }
    const auto length = static_cast<size_t>(cache.dims[static_cast<size_t>(axis)]);
    const auto count = static_cast<size_t>(part.dims[static_cast<size_t>(axis)]);
    const auto position = static_cast<size_t>(values[2].shape[0]);
    if (position > length || count > length - position) return DoesNotFit("the cache is full");
    for (size_t i = 0; i < outer; ++i) {
      std::memcpy(cache.bytes().data() + (i * length + position) * inner, part.bytes().data() + i * count * inner,
                  count * inner);
    }
    return Value::Of(std::move(cache));
  }

  static Result<Value> Sequence(std::string_view name, const std::vector<Value>& values) {
    if (name == op::names::kSequenceConstruct) return Value::OfTuple(values);
    if (name == op::names::kSequenceConcat || name == op::names::kSequenceConcatShape)
      return NotEvaluated("the tensors of a sequence in a row");
    if (name == op::names::kSequenceLength) return Value::OfShape({std::ssize(values[0].fields)});
    std::vector<Value> fields = values[0].fields;
    const auto size = std::ssize(fields);
    int64_t position = values[name == op::names::kSequenceInsert ? 2 : 1].shape[0];
    if (position < 0) position += size;
    if (position < 0 || position > size || (position == size && name != op::names::kSequenceInsert))
      return DoesNotFit("no such element");
    if (name == op::names::kSequenceAt) return fields[static_cast<size_t>(position)];
    if (name == op::names::kSequenceInsert) fields.insert(fields.begin() + position, values[1]);
    if (name == op::names::kSequenceErase) fields.erase(fields.begin() + position);
    return Value::OfTuple(std::move(fields));
  }

  Result<Value> CallTir(const ir::Call& call, const Scope& scope) {
    const auto* callee = As<ir::GlobalVarNode>(call->args[0]);
    const ir::PrimFunc function = callee == nullptr ? nullptr : module_.FindPrimFunc(callee->name);
    if (function == nullptr) return NotEvaluated("a call of an unknown tensor function");
    INGOT_ASSIGN_OR_RETURN(const Value arguments, Evaluate(call->args[1], scope));
    std::vector<HostTensor> inputs;
    for (const Value& argument : arguments.kind == ValueKind::kTuple ? arguments.fields : std::vector{arguments}) {
      if (argument.kind != ValueKind::kTensor) return NotEvaluated("an argument that is no tensor");
      inputs.push_back(argument.tensor);
    }
    std::vector<int64_t> scalars;
    if (call->args.size() > 2) {
      INGOT_ASSIGN_OR_RETURN(const Value numbers, Evaluate(call->args[2], scope));
      scalars = numbers.shape;
    }
    std::vector<ir::Type> types;
    for (const ir::Type& type : call->type_args) {
      for (const ir::Type& field : ResultTypes(type)) types.push_back(field);
    }
    INGOT_ASSIGN_OR_RETURN(std::vector<HostTensor> results, NewResults(types, *scope));
    const auto in_place = call->attrs.Find("inplace_indices") == nullptr ? std::vector<int64_t>(results.size(), -1)
                                                                         : call->attrs.GetInts("inplace_indices");
    const bool writes_arguments = std::ranges::any_of(in_place, [](int64_t index) { return index >= 0; });
    if (writes_arguments) {
      std::vector<HostTensor> buffers = inputs;
      for (size_t i = 0; i < results.size(); ++i) {
        HostTensor& place =
            in_place[i] < 0 ? buffers.emplace_back(results[i]) : buffers.at(static_cast<size_t>(in_place[i]));
        if (in_place[i] >= 0) place = place.Copy();
        results[i] = place;
      }
      INGOT_RETURN_IF_ERROR(Interpret(function, buffers, scalars, buffers.size()));
    } else {
      INGOT_RETURN_IF_ERROR(RunFunction(function, inputs, results, scalars).WithContext(callee->name));
    }
    return OneOrTuple(call->type, std::move(results));
  }

  // ---- Operators

  static ir::Call OpenTuples(const ir::Call& call) {
    ir::CallNode opened = *call;
    for (Expr& arg : opened.args) {
      const auto* type = arg->type == nullptr ? nullptr : As<ir::TupleTypeNode>(arg->type);
      if (type == nullptr || As<ir::TupleNode>(arg) != nullptr) continue;
      std::vector<Expr> fields;
      for (size_t i = 0; i < type->fields.size(); ++i) {
        fields.push_back(ir::Make<ir::TupleGetItemNode>(arg, static_cast<int64_t>(i), type->fields[i]));
      }
      arg = ir::Make<ir::TupleNode>(std::move(fields), arg->type);
    }
    return ir::Make<ir::CallNode>(std::move(opened));
  }

  static bool HasKnownShapes(const ir::Call& call) {
    std::vector<ir::Type> types = ResultTypes(call->type);
    for (const Expr& input : op::InputTensors(call)) types.push_back(input->type);
    return std::ranges::all_of(types, [](const ir::Type& type) { return transform::HasKnownShape(type); });
  }

  // Returns the call with numbers in place of symbols and with the tensors' actual types.
  Result<ir::Call> WithNumbers(const ir::Call& call, const Scope& scope) {
    ir::CallNode result = *call;
    const std::function<Result<Expr>(const Expr&)> fixed = [&](const Expr& arg) -> Result<Expr> {
      if (arg->kind == ir::ExprKind::kStringValue || arg->kind == ir::ExprKind::kDataTypeValue ||
          arg->kind == ir::ExprKind::kConstant) {
        return arg;
      }
      if (const auto* tuple = As<ir::TupleNode>(arg)) {
        std::vector<Expr> fields;
        std::vector<ir::Type> types;
        for (const Expr& field : tuple->fields) {
          INGOT_ASSIGN_OR_RETURN(Expr part, fixed(field));
          types.push_back(part->type);
          fields.push_back(std::move(part));
        }
        return Expr(ir::Make<ir::TupleNode>(std::move(fields), ir::Make<ir::TupleTypeNode>(std::move(types))));
      }
      INGOT_ASSIGN_OR_RETURN(const Value value, Evaluate(arg, scope));
      std::vector<ir::PrimExpr> dims;
      const std::vector<int64_t>& numbers = value.kind == ValueKind::kTensor ? value.tensor.dims : value.shape;
      for (int64_t number : numbers) dims.push_back(ir::Int64(number));
      if (value.kind == ValueKind::kTensor) {
        return Expr(ir::Make<ir::VarNode>("x", ir::Make<ir::TensorTypeNode>(std::move(dims), value.tensor.dtype)));
      }
      if (value.kind == ValueKind::kShape) return Expr(ir::Make<ir::ShapeExprNode>(std::move(dims)));
      if (value.kind == ValueKind::kPrim) return Expr(ir::Make<ir::PrimValueNode>(dims[0]));
      return arg;
    };
    for (Expr& arg : result.args) {
      INGOT_ASSIGN_OR_RETURN(arg, fixed(arg));
    }
    ir::Call untyped = ir::Make<ir::CallNode>(result);
    INGOT_ASSIGN_OR_RETURN(result.type, op::InferCallType(module_, untyped));
    return ir::Call(ir::Make<ir::CallNode>(std::move(result)));
  }

  Result<std::vector<HostTensor>> NewResults(const std::vector<ir::Type>& types, const Environment& scope) {
    std::vector<HostTensor> results;
    for (const ir::Type& type : types) {
      const auto* tensor = As<ir::TensorTypeNode>(type);
      if (tensor == nullptr || !tensor->dims || !tensor->dtype) return NotEvaluated("a result of unknown shape");
      INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> dims, Numbers(*tensor->dims, scope));
      for (const int64_t dim : dims) {
        if (dim < 0) return DoesNotFit("a dim below 0");
      }
      INGOT_ASSIGN_OR_RETURN(const int64_t count, CountOf(dims));
      if (count > evaluator_.options_.max_tensor_bytes / std::max(1, tensor->dtype->bits / 8)) {
        return Status(StatusCode::kDeadlineExceeded, "a tensor above the validator's budget");
      }
      INGOT_ASSIGN_OR_RETURN(HostTensor result, NewTensor(*tensor->dtype, std::move(dims), kUnwritten));
      results.push_back(std::move(result));
    }
    return results;
  }

  static Result<int64_t> CountOf(std::span<const int64_t> dims) {
    int64_t count = 1;
    for (const int64_t dim : dims) {
      if (__builtin_mul_overflow(count, dim, &count)) {
        return Status(StatusCode::kDeadlineExceeded, "a tensor above the validator's budget");
      }
    }
    return count;
  }

  Result<Value> Operator(const ir::Call& original, const op::OpRow& row, const Scope& scope) {
    Evaluator::Prepared& prepared = evaluator_.prepared_[original.get()];
    if (prepared.call == nullptr) prepared = {original, OpenTuples(original), nullptr};
    ir::Call call = prepared.call;
    std::vector<HostTensor> inputs;
    for (const Expr& input : op::InputTensors(call)) {
      INGOT_ASSIGN_OR_RETURN(Value value, Evaluate(input, scope));
      if (value.kind != ValueKind::kTensor) return NotEvaluated("an argument that is no tensor");
      inputs.push_back(std::move(value.tensor));
    }
    const bool is_known = HasKnownShapes(call);
    if (!is_known || row.extents.count > 0) {
      INGOT_ASSIGN_OR_RETURN(call, WithNumbers(call, scope));
      if (row.extents.count > 0) return CountAndFill(call, row, inputs, scope);
    }
    if (row.is_view) {
      INGOT_ASSIGN_OR_RETURN(const std::vector<HostTensor> shaped, NewResults({call->type}, *scope));
      HostTensor view = inputs.at(0);
      if (shaped[0].size_bytes != view.size_bytes) return DoesNotFit("a view of another number of elements");
      view.dims = shaped[0].dims;
      return Value::Of(std::move(view));
    }
    INGOT_ASSIGN_OR_RETURN(std::vector<HostTensor> results, NewResults(ResultTypes(call->type), *scope));
    ir::PrimFunc function = is_known ? prepared.function : nullptr;
    if (function == nullptr) {
      const op::Implementation* best = op::CheapestImplementation(call, evaluator_.options_.target);
      if (best == nullptr) return NotEvaluated("an operator without an implementation that takes this call");
      INGOT_ASSIGN_OR_RETURN(function, best->build(call, evaluator_.options_.target));
      if (is_known) evaluator_.prepared_[original.get()].function = function;
    }
    INGOT_RETURN_IF_ERROR(RunCall(call, function, inputs, results, scope));
    return OneOrTuple(call->type, std::move(results));
  }

  Status RunCall(const ir::Call& call, const ir::PrimFunc& function, const std::vector<HostTensor>& inputs,
                 std::vector<HostTensor>& results, const Scope& scope) {
    std::vector<ir::PrimExpr> vars;
    for (const ir::PrimVar& var : op::UnboundShapeVars(call)) vars.push_back(var);
    INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> scalars, Numbers(vars, *scope));
    return RunFunction(function, inputs, results, scalars, /*is_kernel=*/false);
  }

  Result<Value> CountAndFill(const ir::Call& call, const op::OpRow& row, std::vector<HostTensor> inputs,
                             const Scope& scope) {
    const Target& target = evaluator_.options_.target;
    INGOT_ASSIGN_OR_RETURN(const ir::Call count, op::CountCall(call));
    const op::Implementation* best = op::CheapestImplementation(count, target);
    if (best == nullptr) return NotEvaluated("an operator without an implementation that takes this call");
    INGOT_ASSIGN_OR_RETURN(const ir::PrimFunc count_function, best->count(count, target));
    INGOT_ASSIGN_OR_RETURN(std::vector<HostTensor> counted, NewResults(ResultTypes(count->type), *scope));
    INGOT_RETURN_IF_ERROR(RunCall(count, count_function, inputs, counted, scope));
    INGOT_ASSIGN_OR_RETURN(const Value extents, TensorToShape(counted[0]));
    std::vector<ir::PrimExpr> dims;
    for (const int64_t extent : extents.shape) dims.push_back(ir::Int64(extent));
    std::vector<Expr> carried;
    for (size_t i = 1; i < counted.size(); ++i) {
      carried.push_back(ir::Make<ir::VarNode>("carried", ResultTypes(count->type)[i]));
      inputs.push_back(counted[i]);
    }
    INGOT_ASSIGN_OR_RETURN(const ir::Call fill, op::FillCall(call, carried, dims));
    best = op::CheapestImplementation(fill, target);
    if (best == nullptr || row.extents.count == 0) return NotEvaluated("an operator that nothing fills");
    INGOT_ASSIGN_OR_RETURN(const ir::PrimFunc function, best->build(fill, target));
    INGOT_ASSIGN_OR_RETURN(std::vector<HostTensor> results, NewResults(ResultTypes(fill->type), *scope));
    INGOT_RETURN_IF_ERROR(RunCall(fill, function, inputs, results, scope));
    return OneOrTuple(fill->type, std::move(results));
  }

  // ---- Tensor functions

  uint64_t HashOf(const ir::PrimFunc& function) {
    auto [entry, is_new] = evaluator_.hashes_.try_emplace(function.get(), function, 0);
    if (is_new) entry->second.second = ir::StructuralHash(function);
    return entry->second.second;
  }

  // Computes the results of equal functions over equal bytes once.
  Status RunFunction(const ir::PrimFunc& function, const std::vector<HostTensor>& inputs,
                     std::vector<HostTensor>& results, const std::vector<int64_t>& scalars, bool is_kernel = true) {
    KernelCall call{function, {}, {}, scalars, inputs.size()};
    uint64_t key = HashOf(function);
    for (const HostTensor& input : inputs) {
      key = XXH3_64bits_withSeed(input.bytes().data(), input.size_bytes, key + 1);
      key = XXH3_64bits_withSeed(input.dims.data(), input.dims.size() * sizeof(int64_t), key + 1);
    }
    for (const HostTensor& result : results) {
      key = XXH3_64bits_withSeed(result.dims.data(), result.dims.size() * sizeof(int64_t), key + 1);
    }
    key = XXH3_64bits_withSeed(scalars.data(), scalars.size() * sizeof(int64_t), key + 1);
    const bool is_watched = is_kernel && evaluator_.on_kernel;
    if (is_watched) {
      call.before = inputs;
      for (const HostTensor& result : results) call.before.push_back(result.Copy());
    }
    if (const auto found = evaluator_.results_.find(key); found != evaluator_.results_.end()) {
      for (size_t i = 0; i < results.size(); ++i) results[i] = found->second[i].Copy();
    } else {
      std::vector<HostTensor> buffers = inputs;
      buffers.insert(buffers.end(), results.begin(), results.end());
      INGOT_RETURN_IF_ERROR(Interpret(function, buffers, scalars, inputs.size()));
      Remember(key, results);
    }
    if (is_watched) {
      call.after = inputs;
      call.after.insert(call.after.end(), results.begin(), results.end());
      evaluator_.on_kernel(call);
    }
    return Status();
  }

  void Remember(uint64_t key, const std::vector<HostTensor>& results) {
    for (const HostTensor& result : results) evaluator_.cached_bytes_ += static_cast<int64_t>(result.size_bytes);
    if (evaluator_.cached_bytes_ > evaluator_.options_.max_cached_bytes) {
      evaluator_.results_.clear();
      evaluator_.cached_bytes_ = 0;
      return;
    }
    std::vector<HostTensor>& kept = evaluator_.results_[key];
    for (const HostTensor& result : results) kept.push_back(result.Copy());
  }

  // Runs a call as destination passing leaves it: arguments (buffers and scalars) are in the parameters' order.
  Status RunInPlace(const ir::PrimFunc& function, const std::vector<Value>& arguments) {
    if (arguments.size() != function->params.size()) return DoesNotFit("another number of arguments than parameters");
    std::vector<HostTensor> buffers;
    std::vector<int64_t> scalars;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (function->params[i].buffer) {
        buffers.push_back(arguments[i].tensor);
      } else {
        if (arguments[i].kind != ValueKind::kPrim) return NotEvaluated("a scalar that is no integer");
        scalars.push_back(arguments[i].shape[0]);
      }
    }
    INGOT_RETURN_IF_ERROR(tenants_.RunsKernel(function, buffers));
    return Interpret(function, buffers, scalars, buffers.size());
  }

  Status Interpret(const ir::PrimFunc& function, const std::vector<HostTensor>& buffers,
                   const std::vector<int64_t>& scalars, size_t num_inputs) {
    std::vector<interp::HostBuffer> host;
    for (size_t i = 0; i < buffers.size(); ++i) {
      host.push_back({buffers[i].dtype, buffers[i].dims, buffers[i].bytes(), i < num_inputs});
    }
    int64_t steps = 0;
    interp::InterpretOptions options;
    options.check_races = false;
    options.max_steps = std::max<int64_t>(steps_left_, 1);
    options.executed_steps = &steps;
    // Only after the first tensor pass does a function write the result of a reduction over no elements.
    INGOT_ASSIGN_OR_RETURN(const ir::PrimFunc complete, transform::SeparateInits(function, evaluator_.options_.target));
    const Status status = interp::Interpret(complete, host, scalars, options);
    steps_left_ -= steps;
    return status;
  }

  static constexpr std::byte kUnwritten{0xab};

  Evaluator& evaluator_;
  const ir::IRModule& module_;
  int64_t steps_left_;
  int depth_ = 0;
  ArenaTenants tenants_;
};

Result<std::vector<HostTensor>> Evaluator::Run(const ir::IRModule& module, std::span<const Value> inputs) {
  Evaluation evaluation(*this, module);
  Result<std::vector<HostTensor>> results = evaluation.Main(inputs);
  steps_of_last_run_ = options_.max_steps - evaluation.steps_left();
  return results;
}

}  // namespace ingot::validate
