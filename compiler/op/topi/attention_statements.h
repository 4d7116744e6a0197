// How the fused kernels of attention are written: loops, allocations, loads and stores.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/te/tensor.h"

namespace ingot::op::topi::statements {

using ir::Buffer;
using ir::ForKind;
using ir::Int64;
using ir::Make;
using ir::PrimExpr;
using ir::PrimVar;
using ir::Stmt;

inline const DataType kFloat32 = DataType::Float(32);

inline PrimExpr CeilDiv(const PrimExpr& a, int64_t b) { return ir::FloorDiv(a + (b - 1), Int64(b)); }

inline int64_t GreatestDivisor(int64_t n, int64_t limit) {
  for (int64_t d = std::min(n, limit); d > 1; --d) {
    if (n % d == 0) return d;
  }
  return 1;
}

using Body = std::function<Stmt(const PrimExpr&)>;
inline Stmt Loop(const char* name, const PrimExpr& extent, ForKind kind, const Body& body) {
  if (ir::IsConstInt(extent, 1)) return body(Int64(0));
  const PrimVar var = ir::MakePrimVar(name);
  return Make<ir::ForNode>(var, Int64(0), extent, kind, body(var));
}
inline Stmt Serial(const char* name, const PrimExpr& extent, const Body& body) {
  return Loop(name, extent, ForKind::kSerial, body);
}
inline Stmt Unrolled(const char* name, int64_t extent, const Body& body) {
  return Loop(name, Int64(extent), ForKind::kUnrolled, body);
}
inline Stmt Vector(int64_t lanes, const Body& body) { return Loop("lane", Int64(lanes), ForKind::kVectorized, body); }

inline Stmt Let(const char* name, const PrimExpr& value, const Body& body) {
  if (value->kind == ir::PrimKind::kIntImm) return body(value);
  const PrimVar var = ir::MakePrimVar(name);
  return Make<ir::LetStmtNode>(var, value, body(var));
}
inline Stmt Allocate(const Buffer& buffer, Stmt body) { return Make<ir::AllocateNode>(buffer, std::move(body)); }
inline Buffer Local(const char* name, te::Indices shape) {
  return ir::MakeBuffer(name, kFloat32, std::move(shape), "local");
}

inline PrimExpr Load(const Buffer& buffer, te::Indices indices) {
  return Make<ir::BufferLoadNode>(buffer, std::move(indices));
}
inline Stmt Store(const Buffer& buffer, PrimExpr value, te::Indices indices) {
  return Make<ir::BufferStoreNode>(buffer, std::move(value), std::move(indices));
}
inline Stmt If(const PrimExpr& condition, Stmt then_case) {
  return Make<ir::IfStmtNode>(condition, std::move(then_case), nullptr);
}
inline Stmt Seq(std::vector<Stmt> stmts) { return ir::MakeSeq(std::move(stmts)); }

// On CUDA: a launch of so many blocks, what the threads of a block do, and a loop with a note (schedule/device_loops.h).
inline Stmt Bound(const char* name, const char* axis, const PrimExpr& extent, const Body& body, ir::Attrs notes = {}) {
  const PrimVar var = ir::MakePrimVar(name);
  return Make<ir::ForNode>(var, Int64(0), extent, ForKind::kThreadBinding, body(var), axis, std::move(notes));
}
inline Stmt OverBlocks(const PrimExpr& count, const Body& body) { return Bound("b", "blockIdx.x", count, body); }
inline Stmt OverThreads(int64_t count, const Body& body, ir::Attrs notes = {}) {
  return Bound("t", "threadIdx.x", Int64(count), body, std::move(notes));
}
inline Stmt WithNote(const Stmt& loop, const char* note, int64_t value) {
  ir::ForNode copy = *ir::As<ir::ForNode>(loop);
  copy.annotations = ir::Attrs{{note, value}};
  return Make<ir::ForNode>(std::move(copy));
}

}  // namespace ingot::op::topi::statements
