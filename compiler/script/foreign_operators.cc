// Two tables: operators with a reason each, and attributes by operator.
#include "compiler/script/foreign_operators.h"

#include <algorithm>
#include <iterator>

namespace ingot::script {
namespace {

constexpr std::string_view kLowered =
    "it stands in modules that TVM lowered for its own VM; print the module before that (memory is planned here)";
constexpr std::string_view kDevices = "values have no other device than their function's";
constexpr std::string_view kForeign = "it calls into TVM's runtime or Python";

struct Row {
  std::string_view name, reason;
};
constexpr Row kRows[] = {
    {"builtin.stop_lift_params", "which weights are prepared is found by the compiler"},
    {"call_builtin_with_ctx", kForeign},
    {"call_inplace_packed", "a function of the embedding program writes into its outputs: R.call_dps_packed"},
    {"call_py_func", kForeign},
    {"call_tir_with_grad", "there is no training"},
    {"hint_on_device", kDevices},
    {"inspect.tensor_byte_offset", "tensors are compact"},
    {"inspect.tensor_dtype_bits", "a tensor's type is known when it is compiled"},
    {"inspect.tensor_dtype_code", "a tensor's type is known when it is compiled"},
    {"inspect.tensor_dtype_lanes", "a tensor's type is known when it is compiled"},
    {"inspect.tensor_elem_offset", "tensors are compact"},
    {"inspect.tensor_ndim", "a tensor's type is known when it is compiled"},
    {"inspect.tensor_shape_i", "dimensions are symbolic variables: n = T.int64()"},
    {"inspect.tensor_stride_i", "tensors are compact"},
    {"memory.kill_storage", kLowered},
    {"memory.kill_tensor", kLowered},
    {"to_vdevice", kDevices},
    {"vm.alloc_storage", kLowered},
    {"vm.alloc_tensor", kLowered},
    {"vm.call_tir_dyn", kLowered},
    {"vm.kill_object", kLowered},
};

}  // namespace

std::string_view WhyForeign(std::string_view name) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.name == name; });
  return row == std::end(kRows) ? "" : row->reason;
}

std::string_view ForeignAttribute(std::string_view op) { return op == "nn.attention" ? "window_size" : ""; }

}  // namespace ingot::script
