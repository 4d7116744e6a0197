// What an outside function gets is made of registers; what it gives is checked before it gets into one.
#include "vm/run/outside_calls.h"

#include "vm/program/builtins.h"
#include "vm/run/frame_words.h"
#include "vm/run/register_values.h"
#include "vm/verify/failure_text.h"
#include "vm/verify/type_rules.h"

namespace ingot::vm {
namespace {

Status FailedOutside(Text message) { return Status(StatusCode::kFailed, message); }

}  // namespace

Status OutsideCalls::CallExternal(const CallRecord& record, const op::CallExternal<FrameOffset>& in,
                                  const op::CallExternal<>& source, int64_t* frame) {
  if (environment_.limits.IsReached()) return environment_.limits.Failure();
  const uint32_t id = in.external().value;
  const External& external = environment_.executable.program().externals[id];
  const std::string where = StrCat({"external function \"", external.name, "\""});
  const Function& function = *record.linked->function;
  // Symbols are bound by the arguments, as in a call of a function.
  std::vector<int64_t> symbols(external.signature.symbols.size(), -1);
  std::vector<Value> arguments;
  for (size_t i = 0; i < in.args().size(); ++i) {
    const Type& type = function.TypeOf(source.args()[i]);
    const int64_t* slot = frame + in.args()[i];
    if (type.is_tensor()) {
      INGOT_ASSIGN_OR_RETURN(TensorView view, ViewOf(environment_.devices, type, slot));
      view.is_read_only = external.signature.params[i].type.storage != Storage::kBorrowedMut;
      INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::FromView(view, {}));
      arguments.emplace_back(std::move(tensor));
    } else {
      INGOT_ASSIGN_OR_RETURN(Value value, Box(environment_.devices, type, slot));
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
    if (HasType(arguments[i], external.signature.params[i].type, symbols, environment_.devices.ids())) continue;
    return Status(StatusCode::kBadInput,
                  {where, ", parameter \"", external.signature.params[i].name, "\": expected ",
                   DescribeExpected(external.signature.params[i].type, external.signature, symbols), ", got ",
                   DescribeValue(arguments[i])});
  }
  Result<std::vector<Value>> results = environment_.externals[id].call(arguments);
  if (!results.ok()) return std::move(results).status().WithContext(where);
  if (results->size() != external.signature.results.size()) {
    return FailedOutside(
        {where, ": gives ", results->size(), " results, expected ", external.signature.results.size()});
  }
  for (size_t i = 0; i < results->size(); ++i) {
    if (!HasType((*results)[i], external.signature.results[i].type, symbols, environment_.devices.ids())) {
      return FailedOutside({where, ", result \"", external.signature.results[i].name, "\": expected ",
                            DescribeExpected(external.signature.results[i].type, external.signature, symbols), ", got ",
                            DescribeValue((*results)[i])});
    }
    const Type& to = function.TypeOf(source.results()[i]);
    Drop(to, frame + in.results()[i]);
    INGOT_RETURN_IF_ERROR(Unbox(environment_.devices, to, frame + in.results()[i], (*results)[i]));
  }
  return Status();
}

Status OutsideCalls::CallBuiltin(const CallRecord& record, const op::CallBuiltin<FrameOffset>& in,
                                 const op::CallBuiltin<>& source, int64_t* frame) {
  if (environment_.limits.IsReached()) return environment_.limits.Failure();
  builtin_call_.Clear();
  builtin_call_.SetResultSlot(in.results().empty() ? nullptr : frame + in.results()[0]);
  for (size_t i = 0; i < in.args().size(); ++i) {
    const Type& type = record.linked->function->TypeOf(source.args()[i]);
    const int64_t* slot = frame + in.args()[i];
    if (type.is_tensor()) {
      INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(environment_.devices, type, slot));
      builtin_call_.AddTensor(type, slot, view);
    } else {
      builtin_call_.Add(type, slot);
    }
  }
  const BuiltinInfo& row = InfoOf(in.builtin());
  const auto fail = [&](Status status) { return std::move(status).WithContext({"builtin ", row.name}); };
  // The verifier refuses equal registers and plan entries; views and tensors in sequences are compared here.
  if (!builtin_call_.WritesApart(row)) return fail(FailedOutside("its output overlaps an input"));
  Status status = RunBuiltin(in.builtin(), builtin_call_, *environment_.executable.instance());
  if (!status.ok() && status.code() == StatusCode::kCancelled) return environment_.limits.Failure();
  if (!status.ok()) return fail(std::move(status));
  if (in.results().empty()) return status;
  const Function& function = *record.linked->function;
  const std::span<const int64_t> symbols(frame, function.signature.symbols.size());
  const Type& to = function.TypeOf(source.results()[0]);
  const Value result = builtin_call_.TakeResult();
  if (!HasType(result, to, symbols, environment_.devices.ids())) {
    return fail(Status(StatusCode::kBadInput, {"expected ", DescribeExpected(to, function.signature, symbols), ", got ",
                                               DescribeValue(result)}));
  }
  Drop(to, frame + in.results()[0]);
  return Unbox(environment_.devices, to, frame + in.results()[0], result);
}

}  // namespace ingot::vm
