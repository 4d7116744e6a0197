// The messages of failed calls: what the function takes or gives, and what it got.
#include "vm/run/call_failures.h"

#include <algorithm>
#include <new>

#include "vm/program/limits.h"
#include "vm/run/value.h"
#include "vm/verify/failure_text.h"

namespace ingot::vm {
namespace {

Status TooDeep(Text reached, const LinkedFunction& callee) {
  return Status(StatusCode::kFailed,
                {"calls nest too deep: ", reached, ", at function \"", callee.function->name, "\""});
}

Status OutsideOfRange(const Function& function, const Symbol& symbol, const char* what, const std::string& name,
                      int64_t value) {
  return Status(StatusCode::kBadInput,
                {"function \"", function.name, "\", ", what, " \"", name, "\": ", symbol.name, " is ", value,
                 ", expected ", symbol.min, "..", std::min(symbol.max, kMaxBoundDim)});
}

}  // namespace

Status RunsAlready() {
  return Status(StatusCode::kInvalidArgument,
                "the context is running already; an external function may not call into it");
}

Status InFile(Status status, const Executable& executable) {
  try {
    return std::move(status).WithContext(executable.name());
  } catch (const std::bad_alloc&) {
    return Status::OutOfMemory();
  }
}

Status InFunction(Status status, const Function& function) {
  return std::move(status).WithContext({"function \"", function.name, "\""});
}

Status CallsTooDeep(const LinkedFunction& callee) { return TooDeep({"more than ", kMaxCallDepth}, callee); }

Status FramesTooLarge(const LinkedFunction& callee, size_t num_frames) {
  return TooDeep({"the frames of ", num_frames, " take more than ", kMaxStackWords * 8, " bytes"}, callee);
}

Status ForeignClosure() { return Status(StatusCode::kBadInput, "the closure is another executable's"); }

Status WrongArgumentCount(const Function& function, size_t num_arguments) {
  return Status(StatusCode::kInvalidArgument,
                {"function \"", function.name, "\" takes ", function.signature.params.size(), " arguments, got ",
                 num_arguments, "; it is ", function.name, function.signature.ToString()});
}

Status WrongCounts(const Function& function, size_t num_inputs, size_t num_outputs) {
  const Signature& signature = function.signature;
  return Status(StatusCode::kInvalidArgument, {"function \"", function.name, "\" takes ", signature.params.size(),
                                               " inputs and ", signature.results.size(), " outputs, got ", num_inputs,
                                               " and ", num_outputs, "; it is ", function.name, signature.ToString()});
}

Status ParameterMismatch(const Function& function, size_t parameter, const std::string& got) {
  const NamedType& param = function.signature.params[parameter];
  Type shown = param.type;
  shown.storage = Storage::kOwned;  // which is not printed
  return Status(StatusCode::kBadInput, {"function \"", function.name, "\", parameter \"", param.name, "\": expected ",
                                        shown.ToString(function.signature.symbol_names()), ", got ", got});
}

Status DimMismatch(const LinkedFunction& linked, size_t parameter, const int64_t* extents, size_t axis,
                   int64_t expected) {
  const Function& function = *linked.function;
  const NamedType& param = function.signature.params[parameter];
  const DimRule& rule = linked.parameters[parameter].dims[axis];
  if (rule.kind == DimRule::Kind::kBind) {
    return OutsideOfRange(function, function.signature.symbols[static_cast<size_t>(rule.value)], "parameter",
                          param.name, extents[axis]);
  }
  const std::span<const int64_t> shape(extents, param.type.dims.size());
  std::string got = ShapeToString(param.type.dtype, shape);
  if (param.type.kind == ValueKind::kShape) got = DescribeValue(ShapeValue{{shape.begin(), shape.end()}});
  if (rule.kind == DimRule::Kind::kCompare) StrAppend(got, {" (axis ", axis, " should be ", expected, ")"});
  return ParameterMismatch(function, parameter, got);
}

Status KernelFailed(const Kernel& kernel, const KernelFailure& failure) {
  const std::string where = StrCat({"kernel \"", kernel.name, "\""});
  if (failure.code == INGOT_KERNEL_ASSERT && failure.a >= 0 &&
      static_cast<uint64_t>(failure.a) < kernel.messages.size()) {
    return Status(StatusCode::kFailed, {where, ": ", kernel.messages[static_cast<size_t>(failure.a)]});
  }
  return KernelFailureStatus(failure).WithContext(where);
}

Status StateOutsideOfRange(const Function& function, const Symbol& symbol, const State& state, int64_t value) {
  return OutsideOfRange(function, symbol, "state", state.name, value);
}

Status OutputRefused(const Function& function, size_t output, Text why) {
  return Status(StatusCode::kBadInput,
                {"function \"", function.name, "\", output \"", function.signature.results[output].name, "\": ", why});
}

Status OutputMismatch(const Function& function, size_t output, std::span<const int64_t> symbols,
                      const TensorView& got) {
  const Type& type = function.signature.results[output].type;
  return OutputRefused(
      function, output,
      {"expected ", DescribeExpected(type, function.signature, symbols), ", got ", got.TypeToString()});
}

Status OutputElsewhere(const Function& function, size_t output, const TensorView& got) {
  return OutputRefused(function, output, {"the tensor is on ", got.device.ToString()});
}

Status OutputOverlaps(const Function& function, size_t output, size_t parameter) {
  return OutputRefused(function, output,
                       {"the tensor overlaps input \"", function.signature.params[parameter].name, "\""});
}

Status ResultMismatch(const Function& function, size_t output, const TensorView& result, const TensorView& got) {
  return OutputRefused(function, output, {"the result is ", result.TypeToString(), ", got ", got.TypeToString()});
}

}  // namespace ingot::vm
