// The differential tests' material: cases for every row of the operator table, and the ways of evaluating a call that
// are compared with the row's reference evaluation. A new way (another device, another schedule) is one Evaluator.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/op/registry.h"
#include "runtime/status.h"

namespace ingot::op {

struct OpCase {
  std::string op;
  std::string label;
  std::vector<ReferenceTensor> inputs;
  ir::Attrs attrs;
  // The call's arguments, given one typed variable per input; null: the variables themselves.
  std::function<std::vector<ir::Expr>(const std::vector<ir::Expr>& inputs)> args;
  double rtol = 1e-5;
  double atol = 1e-6;

  std::string Name() const { return op + "/" + label; }
};
// Every case, rows in the table's order.
const std::vector<OpCase>& AllCases();

// The call of a case over variables of these dims (constant ones, unless symbolic is given: then every dim equal to the
// first input's first one is this variable, and shapes among the arguments are as written).
Result<ir::Call> CallOf(const OpCase& op_case, const ir::PrimVar& symbolic = nullptr);
Result<std::vector<ReferenceTensor>> EvaluateReference(const OpCase& op_case);

struct Evaluator {
  const char* name;
  // False: this way does not know the call (no implementation, no folding); it is left out.
  bool (*applies)(const ir::Call& call);
  // The results; of several implementations one after the other.
  Result<std::vector<ReferenceTensor>> (*evaluate)(const ir::Call& call, std::span<const ReferenceTensor> inputs,
                                                   std::span<const std::vector<int64_t>> out_dims);
};
std::span<const Evaluator> Evaluators();

// "" when equal within the case's tolerances (NaN equals NaN), else the first difference.
std::string Compare(const OpCase& op_case, const std::vector<ReferenceTensor>& expected,
                    const std::vector<ReferenceTensor>& got);

}  // namespace ingot::op
