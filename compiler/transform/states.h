// The attributes by which a function describes the states of its context, and by which passes hand them on:
//     "states": {"past": "present", ...}      pairs of an input and an output that are one state, by name (vm-compile
//                                             --state); until keep_states
//     "state_params": [{"param": 1, "result": 1, "axis": 2, "length": 5}, ...]   from then on: parameter and result by
//                                             number; a cache also has the axis along which it grows, and the parameter
//                                             (a shape of one dimension) that holds its length
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/expr.h"
#include "runtime/status.h"

namespace ingot::transform {

inline constexpr const char* kStatesAttr = "states";
inline constexpr const char* kStateParamsAttr = "state_params";

struct StateParam {
  size_t param = 0;
  size_t result = 0;
  struct Growth {
    int64_t axis = 0;
    size_t length = 0;  // number of the parameter
  };
  std::optional<Growth> growth;
};
// Empty for functions without states. A malformed attribute is kBadInput.
Result<std::vector<StateParam>> StateParamsOf(const ir::Function& function);
ir::AttrValue StateParamsAttr(const std::vector<StateParam>& states);

// The names in the signature: from the attributes "input_names" and "output_names", otherwise the parameters' names,
// and "output" or "output_0", ... for the results.
std::string InputName(const ir::Function& function, size_t param);
std::string OutputName(const ir::Function& function, size_t result, size_t num_results);

// The range of a symbolic dimension: "tir_var_lower_bound" and "tir_var_upper_bound" (dict: name -> bound), by default
// 0 and INT64_MAX.
std::pair<int64_t, int64_t> DimBounds(const ir::Attrs& attrs, const std::string& name);
// Returns an analyzer that knows these ranges for the variables.
arith::Analyzer AnalyzerOf(const ir::Attrs& attrs, const std::vector<ir::PrimVar>& vars);

}  // namespace ingot::transform
