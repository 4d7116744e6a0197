// The C API, golden cases: decoded when they are first asked for, and kept with the executable.
#include "runtime/dlpack.h"
#include "vm/api/c_api_types.h"
#include "vm/program/golden_cases.h"

struct ingot_golden_cases {
  std::vector<ingot::vm::GoldenCase> cases;
  // Borrowed views of a case's tensors, inputs before outputs.
  std::vector<std::vector<ingot_named_tensor>> views;
};

ingot_executable::ingot_executable() = default;
ingot_executable::~ingot_executable() = default;

namespace ingot::capi {
namespace {

ingot_named_tensor View(const vm::GoldenTensor& golden) {
  const Tensor& tensor = golden.tensor;
  ingot_named_tensor named{golden.name.c_str(), {}};
  named.tensor.data = tensor.data();
  named.tensor.device = {INGOT_DL_CPU, 0};
  named.tensor.ndim = tensor.rank();
  named.tensor.dtype = {static_cast<uint8_t>(tensor.dtype().code), tensor.dtype().bits, tensor.dtype().lanes};
  named.tensor.shape = const_cast<int64_t*>(tensor.dims().data());
  return named;
}

Result<const ingot_golden_cases*> CasesOf(const ingot_executable* given) {
  if (given == nullptr) return NullArgument("executable");
  auto* executable = const_cast<ingot_executable*>(given);  // a cache, behind its mutex
  const std::lock_guard<std::mutex> lock(executable->golden_mutex);
  if (executable->golden != nullptr) return executable->golden.get();
  auto golden = std::make_unique<ingot_golden_cases>();
  if (const formats::Container* container = executable->executable->container()) {
    Result<std::vector<vm::GoldenCase>> cases = vm::DecodeGoldenCases(*container);
    if (!cases.ok()) return std::move(cases).status().WithContext(executable->executable->name());
    golden->cases = *std::move(cases);
  }
  for (const vm::GoldenCase& one : golden->cases) {
    std::vector<ingot_named_tensor>& views = golden->views.emplace_back();
    for (const auto* list : {&one.inputs, &one.outputs}) {
      for (const vm::GoldenTensor& tensor : *list) views.push_back(View(tensor));
    }
  }
  executable->golden = std::move(golden);
  return executable->golden.get();
}

}  // namespace
}  // namespace ingot::capi

using namespace ingot;        // NOLINT: this file implements a C header
using namespace ingot::capi;  // NOLINT

extern "C" {

ingot_status* ingot_executable_golden_case_count(const ingot_executable* executable, size_t* count) {
  return Guard([&]() -> Status {
    if (count == nullptr) return NullArgument("count");
    INGOT_ASSIGN_OR_RETURN(const ingot_golden_cases* golden, CasesOf(executable));
    *count = golden->cases.size();
    return Status();
  });
}

ingot_status* ingot_executable_golden_case(const ingot_executable* executable, size_t index,
                                           ingot_golden_case* golden_case) {
  return Guard([&]() -> Status {
    if (golden_case == nullptr) return NullArgument("golden_case");
    if (golden_case->struct_size < sizeof(ingot_golden_case)) {
      return Status(StatusCode::kInvalidArgument, "struct_size of the golden case is too small");
    }
    INGOT_ASSIGN_OR_RETURN(const ingot_golden_cases* golden, CasesOf(executable));
    if (index >= golden->cases.size()) {
      return Status(StatusCode::kNotFound, {"there is no golden case ", index});
    }
    const vm::GoldenCase& found = golden->cases[index];
    const ingot_named_tensor* views = golden->views[index].data();
    *golden_case = {sizeof(ingot_golden_case), found.function.c_str(),      vm::GoldenOriginName(found.origin),
                    found.relative_tolerance,  found.absolute_tolerance,    views,
                    found.inputs.size(),       views + found.inputs.size(), found.outputs.size()};
    return Status();
  });
}

}  // extern "C"
