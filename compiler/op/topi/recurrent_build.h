// What the scan of a recurrent layer is put together from: loops, accesses, activations. Private to recurrent.cc.
#pragma once

#include <functional>

#include "compiler/ir/stmt.h"
#include "compiler/op/recurrent.h"

namespace ingot::op::topi {

using BodyFn = std::function<ir::Stmt(const ir::PrimExpr& index)>;

ir::Stmt LoopOver(const char* name, ir::PrimExpr extent, ir::ForKind kind, const BodyFn& body);
ir::Stmt SerialLoop(const char* name, ir::PrimExpr extent, const BodyFn& body);
ir::Stmt UnrolledLoop(const char* name, int64_t extent, const BodyFn& body);
// Of the threads or blocks of an axis of CUDA.
ir::Stmt ThreadLoop(const char* axis, ir::PrimExpr extent, const BodyFn& body);
ir::PrimExpr LoadAt(const ir::Buffer& buffer, std::vector<ir::PrimExpr> indices);
ir::Stmt StoreAt(const ir::Buffer& buffer, std::vector<ir::PrimExpr> indices, ir::PrimExpr value);
ir::PrimExpr Call(ir::Intrinsic op, ir::PrimExpr x);
ir::PrimExpr Apply(const ActivationFunction& f, const ir::PrimExpr& x);

}  // namespace ingot::op::topi
