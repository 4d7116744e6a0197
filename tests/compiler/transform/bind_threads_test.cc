// The tensor pass bind_threads: which loops have independent iterations, and in which of its three ways a part runs.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "compiler/ir/visitor.h"
#include "compiler/transform/tensor/independent_loops.h"
#include "compiler/transform/tensor/passes.h"
#include "tests/compiler/codegen/jit.h"

namespace ingot::transform {
namespace {

using codegen::testing::Function;
using codegen::testing::Load;
using codegen::testing::Loop;
using codegen::testing::Store;
using ir::Buffer;
using ir::Int64;
using ir::PrimExpr;
using ir::Stmt;

const DataType kF32 = DataType::Float(32), kI64 = DataType::Int(64);
using Body = std::function<Stmt(const PrimExpr&)>;

bool IsIndependent(const Stmt& loop) { return IterationsAreIndependent(*ir::As<ir::ForNode>(loop), {}); }

TEST_CASE("iterations are independent where each has elements of its own") {
  const PrimExpr n = ir::MakePrimVar("n");
  const Buffer x = ir::MakeBuffer("x", kF32, {Int64(64)}), y = ir::MakeBuffer("y", kF32, {Int64(64)});
  const Buffer places = ir::MakeBuffer("places", kI64, {Int64(64)}), square = ir::MakeBuffer("square", kF32, {n, n});
  const auto loop = [](const Body& body) { return Loop(Int64(16), body); };
  const auto inner = [](int64_t extent, const Body& body) { return Loop(Int64(extent), body); };
  const auto one = ir::MakeConst(kF32, 1);

  CHECK(IsIndependent(loop([&](const PrimExpr& i) { return Store(y, Load(x, {Int64(63) - i}), {i}); })));
  CHECK(IsIndependent(loop([&](const PrimExpr& i) { return Store(y, Load(y, {i}) + one, {i}); })));
  CHECK(!IsIndependent(loop([&](const PrimExpr& i) { return Store(y, Load(y, {i + 1}), {i}); })));
  CHECK(!IsIndependent(loop([&](const PrimExpr&) { return Store(y, Load(y, {Int64(0)}) + one, {Int64(0)}); })));
  CHECK(!IsIndependent(loop([&](const PrimExpr& i) { return Store(y, one, {Load(places, {i})}); })));
  CHECK(!IsIndependent(loop([&](const PrimExpr& i) { return Store(y, one, {ir::FloorDiv(i, Int64(2))}); })));
  // Places of four elements, of which an iteration may touch four and no more.
  for (const int64_t width : {3, 4, 5}) {
    CAPTURE(width);
    CHECK(IsIndependent(loop([&](const PrimExpr& i) {
            return inner(width, [&](const PrimExpr& j) { return Store(y, Load(y, {i * 4 + j}), {i * 4 + j}); });
          })) == (width <= 4));
    CHECK(IsIndependent(loop([&](const PrimExpr& i) {
            return ir::MakeSeq({Store(y, one, {i * 4 + Int64(4 - width)}), Store(y, one, {i * 4 + 3})});
          })) == (width <= 4));
  }
  // Equal indices of views in other shapes are other elements.
  const Buffer wide = ir::MakeBuffer("wide", kF32, {Int64(4), Int64(16)});
  ir::BufferNode high = *wide;
  high.shape = {Int64(16), Int64(4)};
  const Buffer view = ir::Make<ir::BufferNode>(std::move(high));
  const auto rows = [&](const Buffer& second) {
    return Loop(Int64(4), [&](const PrimExpr& i) {
      return ir::MakeSeq({Store(wide, one, {i, Int64(0)}), Store(second, one, {i, Int64(0)})});
    });
  };
  CHECK(IsIndependent(rows(wide)));
  CHECK(!IsIndependent(rows(view)));
  // One of the dimensions is enough; a variable that an iteration makes says nothing.
  CHECK(IsIndependent(loop([&](const PrimExpr& i) {
    return Loop(n, [&](const PrimExpr& j) { return Store(square, one, {j, i}); });
  })));
  const ir::PrimVar place = ir::MakePrimVar("place");
  const auto let = [&](std::vector<PrimExpr> at) {
    return [&, at](const PrimExpr& i) {
      std::vector<PrimExpr> indices = at;
      if (indices.size() == 2) indices[1] = i;
      return Stmt(
          ir::Make<ir::LetStmtNode>(place, Load(places, {i}), Store(at.size() == 2 ? square : y, one, indices)));
    };
  };
  CHECK(!IsIndependent(loop(let({place}))));
  CHECK(IsIndependent(loop(let({place, place}))));
}

TEST_CASE("what is allocated inside of a loop belongs to an iteration") {
  const Buffer y = ir::MakeBuffer("y", kF32, {Int64(16)}), sum = ir::MakeBuffer("sum", kF32, {Int64(1)});
  const std::vector<PrimExpr> first = {Int64(0)};
  const auto body = [&](const PrimExpr& i) {
    return ir::MakeSeq({Store(sum, ir::MakeConst(kF32, 0), first), Store(y, Load(sum, first), {i})});
  };
  CHECK(!IsIndependent(Loop(Int64(16), body)));
  CHECK(IsIndependent(
      Loop(Int64(16), [&](const PrimExpr& i) { return Stmt(ir::Make<ir::AllocateNode>(sum, body(i))); })));
}

// The loops over threads and blocks with their extents, and what is serial, in the order in which they stand.
std::string Loops(const ir::PrimFunc& function) {
  struct Lister : ir::StmtVisitor {
    std::string text;
    using ir::StmtVisitor::Visit;
    void Visit(const ir::ForNode& loop) override {
      const auto extent = ir::AsConstInt(loop.extent);
      const std::string axis =
          loop.thread_tag.empty() ? "serial" : loop.thread_tag.substr(0, loop.thread_tag.size() - 5);
      text += axis + (extent ? " " + std::to_string(*extent) : "") + " {";
      VisitStmt(loop.body);
      text += "}";
    }
  } lister;
  lister.VisitStmt(function->body);
  return lister.text;
}

std::string Bound(const ir::PrimFunc& function) {
  const Result<ir::PrimFunc> bound = BindThreads(function, ParseTarget("cuda:sm_80")->variants.at(0));
  REQUIRE(bound.ok());
  return Loops(*bound);
}

TEST_CASE("parts become grids of threads, grids of blocks, or one block") {
  const Buffer x = ir::MakeBuffer("x", kF32, {Int64(64), Int64(512)}), y = ir::MakeBuffer("y", kF32, x->shape);
  const auto serial = [](int64_t extent, const Body& body) { return Loop(Int64(extent), body); };
  const auto previous = [](const PrimExpr& j) { return ir::Max(j - 1, Int64(0)); };
  // Rows are independent, their elements are not.
  const Stmt scan = serial(64, [&](const PrimExpr& i) {
    return serial(512, [&](const PrimExpr& j) {
      return Store(y, Load(y, {i, previous(j)}) + Load(x, {i, j}), {i, j});
    });
  });
  CHECK(Bound(Function({x, y}, scan)) == "block 2 {thread 32 {serial 512 {}}}");
  // Steps depend on each other; the elements of each do not.
  const Buffer state = ir::MakeBuffer("state", kF32, {Int64(512)});
  const Stmt steps = serial(64, [&](const PrimExpr& i) {
    return ir::MakeSeq({serial(512,
                               [&](const PrimExpr& j) {
                                 return Store(y, Load(state, {Int64(511) - j}), {i, j});
                               }),
                        serial(512, [&](const PrimExpr& j) {
                          return Store(state, Load(y, {i, j}), {j});
                        })});
  });
  CHECK(Bound(Function({x, y}, ir::Make<ir::AllocateNode>(state, steps))) ==
        "block 1 {serial 64 {thread 256 {serial {}}thread 256 {serial {}}}}");
  // The same for each row of a few: a block each.
  const Buffer rows = ir::MakeBuffer("rows", kF32, {Int64(8), Int64(512)});
  const Stmt of_rows = serial(8, [&](const PrimExpr& b) {
    return serial(64, [&](const PrimExpr& i) {
      return ir::MakeSeq({serial(512,
                                 [&](const PrimExpr& j) {
                                   return Store(y, Load(rows, {b, Int64(511) - j}), {b * 8 + i, j});
                                 }),
                          serial(512, [&](const PrimExpr& j) {
                            return Store(rows, Load(x, {b, j}), {b, j});
                          })});
    });
  });
  CHECK(Bound(Function({x, y}, ir::Make<ir::AllocateNode>(rows, of_rows))).starts_with("block 1 {serial 8 {serial 64"));
  // Nothing is independent, and a condition that depends on what is computed is one thread's.
  const Stmt chain = serial(64, [&](const PrimExpr& i) {
    return Stmt(ir::Make<ir::IfStmtNode>(Load(y, {Int64(0), i}) < ir::MakeConst(kF32, 1),
                                         Store(y, ir::MakeConst(kF32, 1), {Int64(0), i + 1}), nullptr));
  });
  CHECK(Bound(Function({x, y}, chain)) == "block 1 {thread 1 {serial 64 {}}}");
  // What follows each other in one block becomes one; a CPU's function stays.
  CHECK(Bound(Function({x, y}, ir::MakeSeq({chain, chain}))) == "block 1 {thread 1 {serial 64 {}serial 64 {}}}");
  CHECK(Loops(*BindThreads(Function({x, y}, chain), codegen::testing::TargetNamed("x86-64-v3"))) == "serial 64 {}");
}

}  // namespace
}  // namespace ingot::transform
