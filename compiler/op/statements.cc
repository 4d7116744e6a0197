// Builders of loops, blocks and statements. A block's reads and writes are derived from its body.
#include "compiler/op/statements.h"

#include "compiler/arith/block_util.h"

namespace ingot::op {

Stmt Loops(const Dims& dims, const std::function<Stmt(const Places&)>& body) {
  std::vector<ir::PrimVar> vars;
  Places places;
  for (size_t i = 0; i < dims.size(); ++i) {
    vars.push_back(ir::MakePrimVar("i" + std::to_string(i)));
    places.push_back(vars.back());
  }
  Stmt nest = body(places);
  for (size_t i = dims.size(); i-- > 0;) {
    nest = ir::Make<ir::ForNode>(vars[i], ir::Int64(0), dims[i], ir::ForKind::kSerial, nest);
  }
  return nest;
}

Stmt Loop(const PrimExpr& extent, const std::function<Stmt(const PrimExpr&)>& body) {
  return Loops({extent}, [&](const Places& places) { return body(places[0]); });
}

Stmt SpatialNest(const std::string& name, const Dims& dims, const std::function<Stmt(const Places&)>& body,
                 std::vector<Buffer> local) {
  // A block has at least one variable, so that there is something to bind.
  const Dims extents = dims.empty() ? Dims{ir::Int64(1)} : dims;
  return Loops(extents, [&](const Places& loops) {
    std::vector<ir::IterVar> iters;
    Places places;
    for (size_t i = 0; i < extents.size(); ++i) {
      const ir::PrimVar var = ir::MakePrimVar("v_i" + std::to_string(i));
      iters.push_back(ir::Make<ir::IterVarNode>(ir::Range{ir::Int64(0), extents[i]}, var, ir::IterType::kSpatial));
      if (i < dims.size()) places.push_back(var);
    }
    ir::BlockNode block(name, std::move(iters), {}, {}, body(places));
    block.alloc_buffers = std::move(local);
    arith::ReadWriteRegions regions = arith::GetBlockReadWriteRegions(block);
    block.reads = std::move(regions.reads);
    block.writes = std::move(regions.writes);
    return Stmt(ir::Make<ir::BlockRealizeNode>(loops, ir::BoolImm(true), ir::Make<ir::BlockNode>(std::move(block))));
  });
}

Stmt While(PrimExpr condition, Stmt body) { return ir::Make<ir::WhileNode>(std::move(condition), std::move(body)); }

Stmt If(PrimExpr condition, Stmt then_case) {
  return ir::Make<ir::IfStmtNode>(std::move(condition), std::move(then_case), nullptr);
}

Stmt Let(const std::string& name, PrimExpr value, const std::function<Stmt(const PrimExpr&)>& body) {
  const ir::PrimVar var = ir::MakePrimVar(name, value->dtype);
  return ir::Make<ir::LetStmtNode>(var, std::move(value), body(var));
}

Stmt Assert(PrimExpr condition, std::string message, Stmt body) {
  if (ir::IsConstInt(condition, 1)) return body;
  return ir::Make<ir::AssertStmtNode>(std::move(condition), std::move(message), std::move(body));
}

PrimExpr IsNan(const PrimExpr& x) {
  return x->dtype.is_floating() ? ir::CallIntrinsic(ir::Intrinsic::kIsNan, {x}) : ir::BoolImm(false);
}

PrimExpr ComparesLess(const PrimExpr& a, const PrimExpr& b) {
  return a->dtype.is_bool() ? ir::And(ir::Not(a), b) : a < b;
}

PrimExpr IsLess(const PrimExpr& a, const PrimExpr& b) {
  if (!a->dtype.is_floating()) return ComparesLess(a, b);
  return ir::Or(a < b, ir::And(IsNan(b), ir::Not(IsNan(a))));
}

PrimExpr Load(const Buffer& buffer, Places places) { return ir::Make<ir::BufferLoadNode>(buffer, std::move(places)); }

Stmt Store(const Buffer& buffer, PrimExpr value, Places places) {
  return ir::Make<ir::BufferStoreNode>(buffer, std::move(value), std::move(places));
}

}  // namespace ingot::op
