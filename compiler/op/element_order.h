// Integers in place of elements, in the order of sorting: NaN is the greatest element, 0 and -0 are equal.
#pragma once

#include "compiler/ir/stmt.h"

namespace ingot::op {

// int32 for elements that it holds in order, int64 for others.
DataType OrderDataType(DataType dtype);
// An integer of that dtype, the greater the greater the element is, and the greatest one for NaN.
ir::PrimExpr OrderOf(const ir::PrimExpr& element);
// What machines compare in place of narrow floats and booleans.
ir::PrimExpr ComparableOf(const ir::PrimExpr& element);

}  // namespace ingot::op
