// Which memory an expression reads.
#pragma once

#include <unordered_set>

#include "compiler/ir/prim_expr.h"
#include "compiler/ir/visitor.h"

namespace ingot::transform {

// Whether the expression loads an element of a buffer with one of these data variables.
inline bool ReadsAnyOf(const ir::PrimExpr& expr, const std::unordered_set<const ir::PrimVarNode*>& data) {
  struct Finder : ir::PrimVisitor {
    explicit Finder(const std::unordered_set<const ir::PrimVarNode*>& all) : data(all) {}
    using PrimVisitor::Visit;
    void Visit(const ir::BufferLoadNode& load) override {
      found |= data.contains(load.buffer->data.get());
      PrimVisitor::Visit(load);
    }
    const std::unordered_set<const ir::PrimVarNode*>& data;
    bool found = false;
  } finder(data);
  finder.VisitPrim(expr);
  return finder.found;
}

}  // namespace ingot::transform
