// What a function says of the states of its context, as the attributes that the passes hand on:
//     "states": {"past": "present", ...}      which input and output are one state, by name (vm-compile --state); until
//                                             keep_states
//     "state_params": [{"param": 1, "result": 1, "axis": 2, "length": 5}, ...]   from then on: parameter and result by
//                                             number; a cache also has the axis along which it grows, and the parameter
//                                             (a shape of one dimension) that says how far it is filled
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
    size_t length = 0;  // parameter
  };
  std::optional<Growth> growth;
};
// Empty for functions without states. A malformed attribute (of a text) is bad_input.
Result<std::vector<StateParam>> StateParamsOf(const ir::Function& function);
ir::AttrValue StateParamsAttr(const std::vector<StateParam>& states);

// The names that the signature shows: of attributes "input_names" and "output_names", else of the parameters, and
// "output" or "output_0", ... of the results.
std::string InputName(const ir::Function& function, size_t param);
std::string OutputName(const ir::Function& function, size_t result, size_t num_results);

// The range of a symbolic dimension: "tir_var_lower_bound" and "tir_var_upper_bound" (dict: name -> bound), else 0 and
// INT64_MAX.
std::pair<int64_t, int64_t> DimBounds(const ir::Attrs& attrs, const std::string& name);
// An analyzer that knows them for the variables of a type.
arith::Analyzer AnalyzerOf(const ir::Attrs& attrs, const std::vector<ir::PrimVar>& vars);

}  // namespace ingot::transform
