// Rows that are spread over axes of any kind: which iterations of each stage are of rows, and which are within a row. The
// rows of a function are the elements of its reductions' results: columns of a matrix, places of an image, groups of
// channels, of which a stage that has all channels has the quotients.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "compiler/schedule/index_map.h"
#include "compiler/schedule/rules/analysis.h"

namespace ingot::schedule {

// An iteration variable of a stage (a position), or a dimension of a buffer; of it, its quotient by `part`, its remainder
// by -part, or all (0).
struct AxisPart {
  int axis;
  int64_t part = 0;
  bool operator==(const AxisPart&) const = default;
};
struct RowAxes {
  std::vector<AxisPart> rows, own;
};
using StageAxes = std::map<BlockName, RowAxes>;

// Of reductions and element-wise stages that all read results of reductions at their own rows; nothing of others.
std::optional<StageAxes> FindRowAxes(const ScheduleState& state, const std::vector<BlockSite>& sites);

// The values of these parts of the block's iterations together; nothing where they are not known.
std::optional<int64_t> LengthOfParts(const BlockSite& site, const std::vector<AxisPart>& parts);

// Where each element of a buffer of this shape lies as row and place within it.
IndexMap MapToRows(const RowAxes& dimensions, const std::vector<ir::PrimExpr>& shape);

// The dimensions of what the stage stores to that are its rows and places; of an input, where the stage reads it at its
// variables. Nothing where these are not all of both.
std::optional<RowAxes> DimensionsOf(const BlockSite& site, const RowAxes& axes,
                                    const std::vector<ir::PrimExpr>& indices);

// The block gets one variable for its rows and one for its places.
void FuseRows(Schedule& schedule, BlockRV block, const RowAxes& axes);

}  // namespace ingot::schedule
