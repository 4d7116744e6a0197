// Whether what a load reads was stored before it in the same iteration of the loops around a place: then each such
// iteration may have the buffer for itself.
//   in:  the accesses of a buffer, in order of execution, with the statements around each; how many of these are around
//        the place; what is known of the loops there;
//   out: yes, or "not proved".
// A store counts for a load if it stands before, and if for each element that is read an iteration of the store's loops
// exists that stores it: one is solved for from the indices, and must lie in the loops and fulfil every condition around
// the store, given what holds where the load is. Loops around both run in step: what their later iterations store, and
// what earlier ones did, does not count.
#pragma once

#include <optional>
#include <unordered_set>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/visitor.h"

namespace ingot::transform {

struct BufferAccess {
  bool is_store;
  std::vector<ir::PrimExpr> indices;
  std::vector<ir::Stmt> path;        // from the body down to the statement itself
  std::vector<ir::PrimExpr> chosen;  // conditions of choices between values, which hold where the value counts
};

// The conditions of the statements on a path from one entry on, as parts; none of an If of which neither branch follows.
std::vector<ir::PrimExpr> GuardsOn(const std::vector<ir::Stmt>& path, size_t from);

// A loop around an access alone, or a digit of its variable.
struct OwnLoop {
  ir::PrimVar var;
  ir::PrimExpr min, extent;
};

class StoredBefore {
 public:
  // `written` are the buffers that the function stores to.
  StoredBefore(const ir::Buffer& buffer, const std::vector<BufferAccess>& accesses, size_t prefix,
               const arith::Analyzer& around, const std::unordered_set<const ir::PrimVarNode*>& written)
      : buffer_(buffer), accesses_(accesses), prefix_(prefix), around_(around), written_(written) {}

  // Whether the access of this number, a load, reads what was stored before.
  bool Holds(size_t load);

 private:
  void LearnFrom(const BufferAccess& load);
  bool IsStoredBy(const BufferAccess& store, const BufferAccess& load);
  bool Stores(const BufferAccess& store, size_t shared, const std::vector<ir::PrimExpr>& places);
  bool SplitIntoDigits(const OwnLoop& loop, const std::vector<ir::PrimExpr>& exprs, ir::PrimVarMap& sums,
                       std::vector<OwnLoop>& digits);
  bool IsOfWritten(const ir::PrimExpr& expr) const;

  const ir::Buffer& buffer_;
  const std::vector<BufferAccess>& accesses_;
  size_t prefix_;
  const arith::Analyzer& around_;
  const std::unordered_set<const ir::PrimVarNode*>& written_;  // their data variables
  // Where the present load is:
  arith::Analyzer analyzer_;
  std::vector<ir::PrimExpr> places_;       // what it reads
  std::vector<ir::PrimExpr> data_guards_;  // conditions that ask for data
  bool in_known_loops_ = true;             // no loop around it has bounds that the function stores
};

}  // namespace ingot::transform
