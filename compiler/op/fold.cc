// The table of host routines by the names of their builtins (kRoutines), and tensors over constants' bytes for the
// routines to read and write.
#include "compiler/op/fold.h"

#include <algorithm>
#include <cstring>

#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "runtime/host_ops.h"
#include "runtime/tensor.h"

namespace ingot::op {
namespace {

// A host tensor over a constant's bytes. Mapped files may place tensors at any byte; those are copied once.
Result<Tensor> HostTensor(const ir::ConstantData& data) {
  auto* bytes = const_cast<std::byte*>(data.bytes().data());  // read only: routines take inputs as views
  const int64_t element_bytes = std::max(1, data.dtype().total_bits() / 8);
  if (reinterpret_cast<uintptr_t>(bytes) % static_cast<uintptr_t>(element_bytes) != 0) {
    const auto* begin = reinterpret_cast<const uint8_t*>(bytes);
    return Tensor::FromBytes(data.dtype(), data.dims(), {begin, data.bytes().size()});
  }
  INGOT_ASSIGN_OR_RETURN(const TensorView view,
                         TensorView::Make(bytes, data.dtype(), data.dims(), nullptr, DeviceId{}));
  return Tensor::FromView(view, ingot::Ref<Storage>());
}

struct Output {
  std::vector<std::byte> bytes;
  TensorView view;
};
Result<Output> AllocateOutput(const ir::Call& call) {
  const auto* type = ir::As<ir::TensorTypeNode>(call->type);
  if (type == nullptr || !type->dtype) {
    return OpError(call, "cannot fold a result of type " + Describe(call->type));
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  INGOT_ASSIGN_OR_RETURN(const int64_t count, CountElements(dims));
  INGOT_ASSIGN_OR_RETURN(const int64_t size_bytes, type->dtype->SizeBytes(count));
  Output output;
  output.bytes.resize(static_cast<size_t>(size_bytes));
  INGOT_ASSIGN_OR_RETURN(output.view, TensorView::Make(output.bytes.data(), *type->dtype, dims, nullptr, DeviceId{}));
  return output;
}

ConstantPtr Finish(Output output) {
  const auto dims = output.view.shape();
  return ir::ConstantData::FromBytes(output.view.dtype, {dims.begin(), dims.end()}, std::move(output.bytes));
}

// The arguments of a builtin by kind: tensors in order, and what else a routine takes.
struct RoutineArguments {
  std::vector<TensorView> tensors;
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<std::vector<int64_t>> shapes;
};
using Routine = Status (*)(const RoutineArguments& arguments, const TensorView& out);

template <host::BinaryOp op>
Status BinaryRoutine(const RoutineArguments& a, const TensorView& out) {
  return host::Binary(op, a.tensors.at(0), a.tensors.at(1), out);
}

struct RoutineRow {
  std::string_view builtin;
  Routine run;
};
const RoutineRow kRoutines[] = {
    {"permute", [](const RoutineArguments& a,
                   const TensorView& out) { return host::Permute(a.tensors.at(0), a.shapes.at(0), out); }},
    {"pad", [](const RoutineArguments& a,
               const TensorView& out) { return host::Pad(a.tensors.at(0), a.shapes.at(0), a.floats.at(0), out); }},
    {"slice", [](const RoutineArguments& a,
                 const TensorView& out) { return host::Slice(a.tensors.at(0), a.shapes.at(0), a.shapes.at(1), out); }},
    {"concat",
     [](const RoutineArguments& a, const TensorView& out) { return host::Concat(a.tensors, a.ints.at(0), out); }},
    {"reshape", [](const RoutineArguments& a, const TensorView& out) { return host::Reshape(a.tensors.at(0), out); }},
    {"cast", [](const RoutineArguments& a, const TensorView& out) { return host::Cast(a.tensors.at(0), out); }},
    {"add", BinaryRoutine<host::BinaryOp::kAdd>},
    {"sub", BinaryRoutine<host::BinaryOp::kSub>},
    {"mul", BinaryRoutine<host::BinaryOp::kMul>},
    {"div", BinaryRoutine<host::BinaryOp::kDiv>},
    {"minimum", BinaryRoutine<host::BinaryOp::kMin>},
    {"maximum", BinaryRoutine<host::BinaryOp::kMax>},
    {"sqrt", [](const RoutineArguments& a, const TensorView& out) { return host::Sqrt(a.tensors.at(0), out); }},
    {"negate", [](const RoutineArguments& a, const TensorView& out) { return host::Negate(a.tensors.at(0), out); }},
    {"broadcast_to",
     [](const RoutineArguments& a, const TensorView& out) { return host::BroadcastTo(a.tensors.at(0), out); }},
    {"matmul", [](const RoutineArguments& a,
                  const TensorView& out) { return host::MatMul(a.tensors.at(0), a.tensors.at(1), out); }},
    {"quantize",
     [](const RoutineArguments& a, const TensorView& out) {
       return host::Quantize(a.tensors.at(0), a.tensors.at(1), a.tensors.at(2), a.ints.at(0), out);
     }},
};

}  // namespace

Result<ConstantPtr> RunHostRoutine(const ir::Call& call, const PrepareCall& prepare,
                                   std::span<const ConstantPtr> inputs) {
  const RoutineRow* routine = nullptr;
  for (const RoutineRow& row : kRoutines) {
    if (row.builtin == prepare.builtin) routine = &row;
  }
  INGOT_CHECK(routine != nullptr, "a row names a host routine that does not exist");
  RoutineArguments arguments;
  std::vector<Tensor> owners;
  for (const PrepareArgument& argument : prepare.arguments) {
    if (const auto* input = std::get_if<InputIndex>(&argument)) {
      INGOT_ASSIGN_OR_RETURN(Tensor tensor, HostTensor(*inputs[input->index]));
      arguments.tensors.push_back(tensor.view());
      owners.push_back(std::move(tensor));
    } else if (const auto* number = std::get_if<int64_t>(&argument)) {
      arguments.ints.push_back(*number);
    } else if (const auto* value = std::get_if<double>(&argument)) {
      arguments.floats.push_back(*value);
    } else {
      arguments.shapes.push_back(std::get<std::vector<int64_t>>(argument));
    }
  }
  INGOT_ASSIGN_OR_RETURN(Output output, AllocateOutput(call));
  INGOT_RETURN_IF_ERROR(routine->run(arguments, output.view));
  return Finish(std::move(output));
}

Result<ConstantPtr> FoldByPrepare(const ir::Call& call, std::span<const ConstantPtr> inputs) {
  if (RowOf(call)->is_view) {  // the same bytes under other dims
    INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> dims, ConstantDims(call, call->type));
    const ConstantPtr& data = inputs[0];
    return std::make_shared<const ir::ConstantData>(data->dtype(), std::move(dims), data->bytes(), data->owner());
  }
  INGOT_ASSIGN_OR_RETURN(const PrepareCall prepare, RowOf(call)->prepare(call));
  return RunHostRoutine(call, prepare, inputs);
}

Result<ConstantPtr> FoldExact(const ir::Call& call, std::span<const ConstantPtr> inputs) {
  for (const ConstantPtr& input : inputs) {
    if (input->dtype() != DataType::UInt(64)) continue;
    const ReferenceTensor numbers = UnpackReference(input->dtype(), input->dims(), input->bytes());
    if (std::ranges::any_of(numbers.ints, [](int64_t x) { return x < 0; })) {
      return OpError(call, "there is no host routine for unsigned integers from 2^63 on");
    }
  }
  return FoldByReference(call, inputs);
}

Result<ConstantPtr> FoldByReference(const ir::Call& call, std::span<const ConstantPtr> inputs) {
  std::vector<ReferenceTensor> tensors;
  for (const ConstantPtr& input : inputs) {
    if (input->dtype().bits < 8 && !input->dtype().is_bool()) {
      return OpError(call, "folding does not read " + input->dtype().ToString());
    }
    tensors.push_back(UnpackReference(input->dtype(), input->dims(), input->bytes()));
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<ReferenceTensor> results, RowOf(call)->reference(call, tensors));
  INGOT_CHECK(results.size() == 1, "a row that folds has one result");
  return ir::ConstantData::FromBytes(results[0].dtype, results[0].dims, PackReference(results[0]));
}

Result<ConstantPtr> FilledConstant(const ir::Call& call, double value) {
  INGOT_ASSIGN_OR_RETURN(Output output, AllocateOutput(call));
  INGOT_ASSIGN_OR_RETURN(const TensorView number,
                         TensorView::Make(&value, DataType::Float(64), {}, nullptr, DeviceId{}));
  uint64_t element = 0;
  INGOT_ASSIGN_OR_RETURN(const TensorView scalar,
                         TensorView::Make(&element, output.view.dtype, {}, nullptr, DeviceId{}));
  INGOT_RETURN_IF_ERROR(host::Cast(number, scalar));
  INGOT_RETURN_IF_ERROR(host::BroadcastTo(scalar, output.view));
  return Finish(std::move(output));
}

ir::Expr NumberConstant(double value, DataType dtype) {
  ReferenceTensor tensor = NewReference(dtype, {});
  SetNumber(tensor, 0, value);
  return ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(dtype, {}, PackReference(tensor)));
}

}  // namespace ingot::op
