// Which nests of thread-bound loops may be launches, and what is refused.
#include "compiler/codegen/cuda_launches.h"

#include <doctest/doctest.h>

#include "tests/compiler/codegen/jit.h"

namespace ingot::codegen::testing {
namespace {

using ir::Int64;
using ir::PrimExpr;
using ir::Stmt;

const DataType kF32 = DataType::Float(32);

Stmt Threads(const char* axis, int64_t extent, const std::function<Stmt(const PrimExpr&)>& body) {
  const ir::PrimVar t = ir::MakePrimVar("t");
  return ir::Make<ir::ForNode>(t, Int64(0), Int64(extent), ir::ForKind::kThreadBinding, body(t), axis);
}

// A buffer of this scope is filled by the threads of one loop of a block, and read by those of another one, or of the
// same.
Result<std::vector<CudaLaunch>> Launches(const std::string& scope, int64_t threads, bool in_one_loop) {
  const ir::Buffer in = ir::MakeBuffer("in", kF32, {Int64(4), Int64(threads)});
  const ir::Buffer out = ir::MakeBuffer("out", kF32, {Int64(4), Int64(threads)});
  const ir::Buffer between = ir::MakeBuffer("between", kF32, {Int64(4), Int64(threads)}, scope);
  const Stmt body = Threads("blockIdx.x", 4, [&](const PrimExpr& b) {
    const auto fill = [&](const PrimExpr& t) { return Store(between, Load(in, {b, t}), {b, t}); };
    const auto take = [&](const PrimExpr& t) {
      const PrimExpr other = in_one_loop ? t : Int64(threads - 1) - t;
      return Store(out, Load(between, {b, other}), {b, t});
    };
    if (in_one_loop) {
      return Threads("threadIdx.x", threads, [&](const PrimExpr& t) { return ir::MakeSeq({fill(t), take(t)}); });
    }
    return ir::MakeSeq({Threads("threadIdx.x", threads, fill), Threads("threadIdx.x", threads, take)});
  });
  return LaunchesOf(Function({in, out}, ir::Make<ir::AllocateNode>(between, body)));
}

TEST_CASE("a nest whose threads would have to wait for each other is no launch") {
  for (const char* scope : {"global", "local"}) {
    CAPTURE(std::string(scope));
    const Result<std::vector<CudaLaunch>> one = Launches(scope, 32, true);
    REQUIRE_MESSAGE(one.ok(), one.status().message());
    CHECK(one->size() == 1);
    const Result<std::vector<CudaLaunch>> two = Launches(scope, 32, false);
    REQUIRE(!two.ok());
    CHECK(two.status().message().find("\"between\" is accessed in several loops of threads") != std::string::npos);
    CHECK(Launches(scope, 1, false).ok());  // one thread is in no need of others
  }
}

}  // namespace
}  // namespace ingot::codegen::testing
