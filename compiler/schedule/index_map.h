// Where the elements of a buffer lie in another layout: each dimension of the new buffer is an expression over the old
// indices. Maps are one to one: every old index is divided by quotients and remainders into digits (a channel into
// block of channels and place in the block), and every new dimension is one digit, or several of them as one number. A
// dimension of constant extent that a factor does not divide is padded: places that no old index has are never accessed.
// A map of another form, or with a factor that does not divide another dimension, is refused with the reason.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/prim_expr.h"
#include "runtime/status.h"

namespace ingot::schedule {

struct IndexMap {
  std::vector<ir::PrimVar> from;  // i0, i1, ...: one per old dimension
  std::vector<ir::PrimExpr> to;   // one per new dimension
  std::string ToString() const;   // lambda i0, i1: (i1, i0)
};

using IndexMapFn = std::function<std::vector<ir::PrimExpr>(const std::vector<ir::PrimExpr>&)>;
IndexMap MakeIndexMap(int64_t rank, const IndexMapFn& fn);
// New dimension i is the old one's axes[i]; an axis that does not exist gives a map that MapShape refuses.
IndexMap PermutingMap(const std::vector<int64_t>& axes);

// The new extents of a buffer of this shape; fails when the map is not one to one there.
Result<std::vector<ir::PrimExpr>> MapShape(const IndexMap& map, const std::vector<ir::PrimExpr>& shape);
// The new indices of one element.
std::vector<ir::PrimExpr> MapIndices(const IndexMap& map, const std::vector<ir::PrimExpr>& indices,
                                     arith::Analyzer& analyzer);
// A box of the new buffer that holds all elements of the region; new_shape is MapShape's result. A dimension that is
// neither moved nor a single place becomes the whole one.
std::vector<ir::Range> MapRegion(const IndexMap& map, const std::vector<ir::Range>& region,
                                 const std::vector<ir::PrimExpr>& new_shape, arith::Analyzer& analyzer);

}  // namespace ingot::schedule
