// Handlers of the instructions that call out of the program's functions, to external functions and builtins, and of the
// one that makes a closure. A part of vm/run/interpreter.h.
#include "vm/program/builtins.h"
#include "vm/run/frame_words.h"
#include "vm/run/interpreter.h"
#include "vm/verify/failure_text.h"
#include "vm/verify/type_rules.h"

namespace ingot::vm {
namespace {

Status FailedOutside(Text message) { return Status(StatusCode::kFailed, message); }

}  // namespace

Status Interpreter::CallExternal(const Record& record, const op::CallExternal<FrameOffset>& in,
                                 const op::CallExternal<>& source, int64_t* frame) {
  if (context_.interrupt_.load(std::memory_order_relaxed) != kNotInterrupted || --fuel_left_ < 0) return Interrupted();
  const uint32_t id = in.external().value;
  const External& external = context_.executable_->program().externals[id];
  const std::string where = StrCat({"external function \"", external.name, "\""});
  const Function& function = *record.linked->function;
  // Symbols are bound by the arguments, as in a call of a function.
  std::vector<int64_t> symbols(external.signature.symbols.size(), -1);
  std::vector<Value> arguments;
  for (size_t i = 0; i < in.args().size(); ++i) {
    const Type& type = function.TypeOf(source.args()[i]);
    const int64_t* slot = frame + in.args()[i];
    if (type.is_tensor()) {
      INGOT_ASSIGN_OR_RETURN(TensorView view, ViewOf(type, slot));
      view.is_read_only = external.signature.params[i].type.storage != Storage::kBorrowedMut;
      INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::FromView(view, {}));
      arguments.emplace_back(std::move(tensor));
    } else {
      INGOT_ASSIGN_OR_RETURN(Value value, Box(type, slot));
      arguments.push_back(std::move(value));
    }
    const std::vector<Dim>& dims = external.signature.params[i].type.dims;
    const int64_t* extents = type.is_tensor() ? slot + kTensorHeadWords : slot;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      if (!dims[axis] || dims[axis]->is_constant() || dims[axis]->steps().size() != 1) continue;
      int64_t& symbol = symbols[static_cast<size_t>(dims[axis]->steps()[0].value)];
      if (symbol < 0) symbol = extents[axis];
    }
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (HasType(arguments[i], external.signature.params[i].type, symbols, context_.device_ids_)) continue;
    return Status(StatusCode::kBadInput,
                  {where, ", parameter \"", external.signature.params[i].name, "\": expected ",
                   DescribeExpected(external.signature.params[i].type, external.signature, symbols), ", got ",
                   DescribeValue(arguments[i])});
  }
  Result<std::vector<Value>> results = context_.externals_[id]->call(arguments);
  if (!results.ok()) return std::move(results).status().WithContext(where);
  if (results->size() != external.signature.results.size()) {
    return FailedOutside(
        {where, ": gives ", results->size(), " results, expected ", external.signature.results.size()});
  }
  for (size_t i = 0; i < results->size(); ++i) {
    if (!HasType((*results)[i], external.signature.results[i].type, symbols, context_.device_ids_)) {
      return FailedOutside({where, ", result \"", external.signature.results[i].name, "\": expected ",
                            DescribeExpected(external.signature.results[i].type, external.signature, symbols), ", got ",
                            DescribeValue((*results)[i])});
    }
    const Type& to = function.TypeOf(source.results()[i]);
    Drop(to, frame + in.results()[i]);
    INGOT_RETURN_IF_ERROR(Unbox(to, frame + in.results()[i], (*results)[i]));
  }
  return Status();
}

Status Interpreter::CallBuiltin(const Record& record, const op::CallBuiltin<FrameOffset>& in,
                                const op::CallBuiltin<>& source, int64_t* frame) {
  if (context_.interrupt_.load(std::memory_order_relaxed) != kNotInterrupted || --fuel_left_ < 0) return Interrupted();
  builtin_call_.Clear();
  builtin_call_.SetResultSlot(in.results().empty() ? nullptr : frame + in.results()[0]);
  for (size_t i = 0; i < in.args().size(); ++i) {
    const Type& type = record.linked->function->TypeOf(source.args()[i]);
    const int64_t* slot = frame + in.args()[i];
    if (type.is_tensor()) {
      INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(type, slot));
      builtin_call_.AddTensor(type, slot, view);
    } else {
      builtin_call_.Add(type, slot);
    }
  }
  const BuiltinInfo& row = InfoOf(in.builtin());
  const auto fail = [&](Status status) { return std::move(status).WithContext({"builtin ", row.name}); };
  // The verifier refuses equal registers and plan entries; views and tensors in sequences are compared here.
  if (!builtin_call_.WritesApart(row)) return fail(FailedOutside("its output overlaps an input"));
  Status status = RunBuiltin(in.builtin(), builtin_call_, *context_.executable_->instance());
  if (!status.ok() && status.code() == StatusCode::kCancelled) return Interrupted();
  if (!status.ok()) return fail(std::move(status));
  if (in.results().empty()) return status;
  const Function& function = *record.linked->function;
  const std::span<const int64_t> symbols(frame, function.signature.symbols.size());
  const Type& to = function.TypeOf(source.results()[0]);
  const Value result = builtin_call_.TakeResult();
  if (!HasType(result, to, symbols, context_.device_ids_)) {
    return fail(Status(StatusCode::kBadInput, {"expected ", DescribeExpected(to, function.signature, symbols), ", got ",
                                               DescribeValue(result)}));
  }
  Drop(to, frame + in.results()[0]);
  return Unbox(to, frame + in.results()[0], result);
}

Status Interpreter::MakeClosure(const Record& record, const op::MakeClosure<FrameOffset>& in,
                                const op::MakeClosure<>& source, int64_t* frame) {
  const Function& function = *record.linked->function;
  const FunctionId id = in.function();
  const Signature& callee = context_.executable_->program().functions[id.value].signature;
  std::vector<Value> captures;
  for (size_t i = 0; i < in.captures().size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Value value, Box(function.TypeOf(source.captures()[i]), frame + in.captures()[i]));
    captures.push_back(std::move(value));
  }
  const std::vector<Dim> no_symbols(callee.symbols.size());
  Type type = Type::Scalar(ValueKind::kClosure);
  for (size_t i = captures.size(); i < callee.params.size(); ++i) {
    type.elements.push_back(SubstituteSymbols(callee.params[i].type, no_symbols));
  }
  for (const NamedType& result : callee.results) type.results.push_back(SubstituteSymbols(result.type, no_symbols));
  int64_t* slot = frame + in.dst();
  Drop(function.TypeOf(source.dst()), slot);
  *slot = WordOf(new ClosureObject(context_.executable_->program(), id, std::move(type), std::move(captures)));
  return Status();
}

}  // namespace ingot::vm
