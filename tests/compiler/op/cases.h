// The data of the differential tests: cases for every operator, and the ways of evaluating a call that are compared
// with the operator's reference evaluation. A new way (another device, another schedule) is one Evaluator.
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
// Every case; operators in the order of their table.
const std::vector<OpCase>& AllCases();

// The call of a case over variables with the dims of its inputs. With `symbolic`, every dim that equals the first dim
// of the first input is this variable; shapes among the arguments stay constant.
Result<ir::Call> CallOf(const OpCase& op_case, const ir::PrimVar& symbolic = nullptr);
Result<std::vector<ReferenceTensor>> EvaluateReference(const OpCase& op_case);

struct Evaluator {
  const char* name;
  // False when this way cannot evaluate the call (no implementation, no folding); then it is left out.
  bool (*applies)(const ir::Call& call);
  // The results; where there are several implementations, those of each, one after the other.
  Result<std::vector<ReferenceTensor>> (*evaluate)(const ir::Call& call, std::span<const ReferenceTensor> inputs,
                                                   std::span<const std::vector<int64_t>> out_dims);
};
std::span<const Evaluator> Evaluators();

// "" when equal within the case's tolerances (NaN equals NaN), else the first difference.
std::string Compare(const OpCase& op_case, const std::vector<ReferenceTensor>& expected,
                    const std::vector<ReferenceTensor>& got);

}  // namespace ingot::op
