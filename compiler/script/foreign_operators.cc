// Two tables: operators with a reason each, and attributes by operator.
#include "compiler/script/foreign_operators.h"

#include <algorithm>
#include <iterator>

namespace ingot::script {
namespace {

constexpr std::string_view kDevices = "values have no other device than their function's";
constexpr std::string_view kWorkers = "there is one device, and one process";
constexpr std::string_view kForeign = "it calls into TVM's runtime or Python";

struct Row {
  std::string_view name, reason;
};
constexpr Row kRows[] = {
    {"call_inplace_packed", "a function of the embedding program writes into its outputs: R.call_dps_packed"},
    {"call_py_func", kForeign},
    {"ccl.allgather", kWorkers},
    {"ccl.allreduce", kWorkers},
    {"ccl.broadcast_from_worker0", kWorkers},
    {"ccl.scatter_from_worker0", kWorkers},
    {"dist.annotate_sharding", kWorkers},
    {"dist.call_tir_local_view", kWorkers},
    {"dist.redistribute", kWorkers},
    {"dist.redistribute_replica_to_shard", kWorkers},
    {"dynamic_strided_slice", "R.strided_slice takes its bounds as numbers and dimensions: R.tensor_to_shape gives those"},
    {"hint_on_device", kDevices},
    {"nn.attention_var_len", "R.nn.attention takes sequences of one length: split the tensor before"},
    {"to_vdevice", kDevices},
    {"vision.non_max_suppression", "boxes are chosen per class by R.vision.all_class_non_max_suppression"},
};

}  // namespace

std::string_view WhyForeign(std::string_view name) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.name == name; });
  return row == std::end(kRows) ? "" : row->reason;
}

std::string_view ForeignAttribute(std::string_view op) { return op == "nn.attention" ? "window_size" : ""; }

}  // namespace ingot::script
