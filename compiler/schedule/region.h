// Regions under loops: the box of a buffer (or of iteration variables) that is touched while inner loops run, as
// expressions over the variables outside of them. compute_at finds with it what a consumer needs, lowering how large a
// buffer has to be where it is allocated.
#pragma once

#include <optional>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/visitor.h"

namespace ingot::schedule {

// The annotation of a block whose results have spread rows: [[output, axis, factor, offset], ...], as storage_align
// writes and lowering reads it.
inline constexpr const char* kBufferDimAlign = "buffer_dim_align";

// A variable that runs over [min, min + extent) inside of the place in question.
struct InnerVar {
  ir::PrimVar var;
  ir::PrimExpr min, extent;
};

// All values that expr takes lie in [min, min + span], both over outer variables alone; nothing where no
// bound is found. Exact for linear expressions; the analyzer knows the outer variables.
struct Span1D {
  ir::PrimExpr min, span;
};
std::optional<Span1D> RelaxExpr(const ir::PrimExpr& expr, const std::vector<InnerVar>& inner,
                                arith::Analyzer& analyzer);

// The region's hull over the inner variables; a dimension without a bound becomes the whole one (shape).
ir::BufferRegion RelaxRegion(const ir::BufferRegion& region, const std::vector<InnerVar>& inner,
                             arith::Analyzer& analyzer);
// The hull of two regions of one buffer.
ir::BufferRegion UnionRegion(const ir::BufferRegion& a, const ir::BufferRegion& b, arith::Analyzer& analyzer);

// The region with a block's iteration variables replaced by what they are bound to.
ir::BufferRegion BindRegion(const ir::BufferRegion& region, const ir::BlockRealizeNode& realize);
ir::PrimVarMap BindingMap(const ir::BlockRealizeNode& realize);

}  // namespace ingot::schedule
