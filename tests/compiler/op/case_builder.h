// Helpers to write cases: small tensors of known values, arguments that are no tensors, and a list to which cases are
// added. Families of cases stand in files of their own and add to one CaseBuilder (cases.cc joins them).
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/compiler/op/cases.h"

namespace ingot::op {

using IntList = std::vector<int64_t>;
using Arguments = std::function<std::vector<ir::Expr>(const std::vector<ir::Expr>& inputs)>;

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline const DataType kF16 = DataType::Float(16);
inline const DataType kBF16 = DataType::Bfloat16();
inline const DataType kF32 = DataType::Float(32);
inline const DataType kF64 = DataType::Float(64);
inline const DataType kI8 = DataType::Int(8);
inline const DataType kI32 = DataType::Int(32);
inline const DataType kI64 = DataType::Int(64);
inline const DataType kBool = DataType::Bool();

// Values that repeat rarely, some negative, none near the ends of a dtype; exact in every dtype but the smallest.
ReferenceTensor Data(DataType dtype, IntList dims, uint64_t seed = 1);
ReferenceTensor Of(DataType dtype, IntList dims, const std::vector<double>& values);
// Infinities, NaN, zeros of both signs, a subnormal and large numbers of float32.
ReferenceTensor Specials(DataType dtype = kF32);

ir::Expr ShapeOf(const IntList& dims);
ir::Expr Scalar(double value);
ir::Expr IntTuple(const IntList& values);
// The inputs as one tuple.
std::vector<ir::Expr> AsTuple(const std::vector<ir::Expr>& inputs);
// The inputs and then more arguments.
Arguments Then(std::vector<ir::Expr> more);

class CaseBuilder {
 public:
  std::vector<OpCase> cases;

  OpCase& Add(std::string op, std::string label, std::vector<ReferenceTensor> inputs, ir::Attrs attrs = {},
              Arguments args = nullptr);
};

// Cases of an operator of one tensor: one of each of its dtypes, a scalar, an empty tensor, special values.
void UnaryCases(CaseBuilder& b, const OpRow& row, const ir::Attrs& attrs = {}, const Arguments& args = nullptr);
// One case of these dims for each dtype of the operator.
void MoveCases(CaseBuilder& b, const char* op, const ir::Attrs& attrs, const IntList& dims,
               const Arguments& args = nullptr);

// The families that have files of their own.
void AttentionCases(CaseBuilder& b);
void DynamicShapeCases(CaseBuilder& b);
void MovementCases(CaseBuilder& b);
void NnCases(CaseBuilder& b);
void RecurrentCases(CaseBuilder& b);

}  // namespace ingot::op
