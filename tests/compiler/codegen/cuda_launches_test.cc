// Which nests of thread-bound loops may be launches, and what is refused.
#include "compiler/codegen/cuda_launches.h"

#include <doctest/doctest.h>

#include "compiler/ir/visitor.h"
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

TEST_CASE("threads wait for each other between their loops; what is a thread's own does not outlive a loop") {
  for (const char* scope : {"global", "shared", "local"}) {
    CAPTURE(std::string(scope));
    const Result<std::vector<CudaLaunch>> one = Launches(scope, 32, true);
    REQUIRE_MESSAGE(one.ok(), one.status().message());
    CHECK(one->size() == 1);
    CHECK(!one->front().has_barriers);
    const Result<std::vector<CudaLaunch>> single = Launches(scope, 1, false);
    REQUIRE_MESSAGE(single.ok(), single.status().message());
    CHECK(!single->front().has_barriers);  // one thread is in no need of others
    const Result<std::vector<CudaLaunch>> two = Launches(scope, 32, false);
    if (scope != std::string("local")) {
      REQUIRE_MESSAGE(two.ok(), two.status().message());
      CHECK(two->front().has_barriers);
      continue;
    }
    REQUIRE(!two.ok());
    CHECK(two.status().message().find("\"between\" is accessed in several loops of threads") != std::string::npos);
  }
}

TEST_CASE("what each thread keeps from loop to loop is accessed at its own number") {
  const auto why = [](bool at_own) {
    const ir::Buffer out = ir::MakeBuffer("out", kF32, {Int64(32), Int64(2)});
    const ir::Buffer kept = ir::MakeBuffer("kept", kF32, {Int64(32), Int64(2)}, "thread");
    const Stmt body = Threads("blockIdx.x", 1, [&](const PrimExpr&) {
      const auto fill = [&](const PrimExpr& t) { return Store(kept, ir::MakeConst(kF32, 1), {t, Int64(1)}); };
      const auto take = [&](const PrimExpr& t) {
        return Store(out, Load(kept, {at_own ? t : Int64(31) - t, Int64(1)}), {t, Int64(0)});
      };
      return Stmt(ir::Make<ir::AllocateNode>(
          kept, ir::MakeSeq({Threads("threadIdx.x", 32, fill), Threads("threadIdx.x", 32, take)})));
    });
    const Result<std::vector<CudaLaunch>> made = LaunchesOf(Function({out}, body));
    if (made.ok()) {
      CHECK(made->front().waits.empty());
      // The kernel has it without the number.
      struct Finder : ir::StmtVisitor {
        using ir::StmtVisitor::Visit;
        void Visit(const ir::AllocateNode& node) override {
          text = node.buffer->scope;
          rank = node.buffer->shape.size();
        }
        std::string text;
        size_t rank = 0;
      } finder;
      finder.VisitStmt(ir::As<ir::ForNode>(made->front().body)->body);
      CHECK(finder.text == "local");
      CHECK(finder.rank == 1);
    }
    return made.ok() ? "" : made.status().message();
  };
  CHECK(why(true) == "");
  CHECK(why(false) == "\"kept\" is of each thread, and accessed at another index than the thread's");
}

TEST_CASE("threads wait behind loops, unless the next one has nothing to do with what was done since they waited") {
  const ir::Buffer x = ir::MakeBuffer("x", kF32, {Int64(32)}, "shared"),
                   y = ir::MakeBuffer("y", kF32, x->shape, "shared");
  const ir::Buffer in = ir::MakeBuffer("in", kF32, x->shape), out = ir::MakeBuffer("out", kF32, x->shape);
  const auto move = [](const ir::Buffer& from, const ir::Buffer& to) {
    return Threads("threadIdx.x", 32, [&](const PrimExpr& t) { return Store(to, Load(from, {t}), {Int64(31) - t}); });
  };
  const auto both =
      Threads("threadIdx.x", 32, [&](const PrimExpr& t) { return Store(out, Load(x, {t}) + Load(y, {t}), {t}); });
  const auto waits = [&](const std::vector<Stmt>& parts, bool in_loop) {
    Stmt body = ir::MakeSeq(parts);
    if (in_loop) body = Loop(Int64(3), [&](const PrimExpr&) { return body; });
    const Stmt nest = Threads("blockIdx.x", 1, [&](const PrimExpr&) {
      return Stmt(ir::Make<ir::AllocateNode>(x, Stmt(ir::Make<ir::AllocateNode>(y, body))));
    });
    const Result<std::vector<CudaLaunch>> made = LaunchesOf(Function({in, out}, nest));
    REQUIRE_MESSAGE(made.ok(), made.status().message());
    std::string text;
    for (const Stmt& part : parts) {
      text += made->front().waits.contains(ir::As<ir::ForNode>(part)->var.get()) ? '1' : '0';
    }
    return text;
  };
  CHECK(waits({move(in, x), move(in, y), both}, false) == "010");
  CHECK(waits({move(in, x), move(in, y), both}, true) == "011");         // nobody goes around the loop alone
  CHECK(waits({move(in, x), move(x, y), move(in, x)}, false) == "110");  // also for what others have still to read
  CHECK(waits({move(in, x), move(in, x)}, false) == "10");
  const ir::Buffer own = ir::MakeBuffer("own", kF32, {Int64(32)}, "thread");
  const auto keep =
      Threads("threadIdx.x", 32, [&](const PrimExpr& t) { return Store(own, ir::MakeConst(kF32, 0), {t}); });
  CHECK(waits({keep, move(in, x), both}, true) == "011");
  CHECK(waits({move(in, x), both, keep}, true) == "101");
}

TEST_CASE("blocks do not wait for each other, and what threads store is read by threads alone") {
  const ir::Buffer out = ir::MakeBuffer("out", kF32, {Int64(4)});
  const auto fill = [&](const char* axis) {
    return Threads(axis, 4, [&](const PrimExpr& b) { return Store(out, ir::MakeConst(kF32, 1), {b}); });
  };
  const auto why = [&](const Stmt& body) {
    const Result<std::vector<CudaLaunch>> made = LaunchesOf(Function({out}, body));
    return made.ok() ? "" : made.status().message();
  };
  const auto twice = [&](const char* axis, const char* around) {
    return Threads(around, 2, [&](const PrimExpr&) { return ir::MakeSeq({fill(axis), fill(axis)}); });
  };
  CHECK(why(ir::MakeSeq({fill("blockIdx.x"), fill("blockIdx.x")})) == "");
  CHECK(why(twice("blockIdx.x", "threadIdx.x")).find("in several loops of blocks") != std::string::npos);
  const Stmt reads = Threads("blockIdx.x", 1, [&](const PrimExpr&) {
    const Stmt then = fill("threadIdx.x");
    const PrimExpr condition =
        ir::Make<ir::BufferLoadNode>(out, std::vector<PrimExpr>{Int64(0)}) < ir::MakeConst(kF32, 2);
    return Stmt(ir::Make<ir::IfStmtNode>(condition, then, nullptr));
  });
  CHECK(why(reads) == "\"out\" is stored to in loops of threads and read outside of them");
}

TEST_CASE("serial loops around launches are rounds of them") {
  const ir::Buffer out = ir::MakeBuffer("out", kF32, {Int64(4), Int64(32)});
  const auto loop = [](const char* name, PrimExpr extent, const std::function<Stmt(const PrimExpr&)>& body) {
    const ir::PrimVar var = ir::MakePrimVar(name);
    return Stmt(ir::Make<ir::ForNode>(var, Int64(0), std::move(extent), ir::ForKind::kSerial, body(var)));
  };
  const auto nest = [&](const PrimExpr& value) {
    return Threads("blockIdx.x", 4, [&](const PrimExpr& b) {
      return Threads("threadIdx.x", 32, [&](const PrimExpr& t) { return Store(out, ir::Cast(kF32, value), {b, t}); });
    });
  };
  const auto two = [&](const PrimExpr& s) { return ir::MakeSeq({nest(s), nest(s + 1)}); };
  const Result<std::vector<CudaLaunch>> launches =
      LaunchesOf(Function({out}, ir::MakeSeq({nest(Int64(1)), loop("s", Int64(7), two), loop("s", Int64(7), two)})));
  REQUIRE_MESSAGE(launches.ok(), launches.status().message());
  REQUIRE(launches->size() == 5);
  CHECK(!(*launches)[0].round);
  for (const size_t i : {1, 2, 3, 4}) {
    const CudaLaunch& launch = (*launches)[i];
    CHECK(ir::IsConstInt(launch.rounds, 7));
    CHECK(launch.number_in_round == static_cast<int64_t>(i - 1) % 2);
  }
  CHECK((*launches)[1].round.same_as((*launches)[2].round));
  CHECK(!(*launches)[2].round.same_as((*launches)[3].round));
  const auto why = [&](const Stmt& body) { return std::string(LaunchesOf(Function({out}, body)).status().message()); };
  CHECK(why(loop("s", Int64(7), [&](const PrimExpr&) {
          return loop("r", Int64(2), two);
        })).find("inside of another one") != std::string::npos);
  CHECK(why(loop("s", ir::Cast(DataType::Int(64), Load(out, {Int64(0), Int64(0)})), two)).find("depends on elements") !=
        std::string::npos);
}

TEST_CASE("a nest of more threads than a device launches is no launch") {
  const auto launches = [](const char* axis, int64_t extent, const char* other, int64_t other_extent) {
    const ir::Buffer out = ir::MakeBuffer("out", kF32, {Int64(extent), Int64(other_extent)});
    const Stmt body = Threads(axis, extent, [&](const PrimExpr& a) {
      return Threads(other, other_extent, [&](const PrimExpr& b) {
        return Store(out, ir::MakeConst(kF32, 1), {a, b});
      });
    });
    return LaunchesOf(Function({out}, body));
  };
  const auto why = [&](const char* axis, int64_t extent, const char* other, int64_t other_extent) {
    const Result<std::vector<CudaLaunch>> made = launches(axis, extent, other, other_extent);
    return made.ok() ? "" : made.status().message();
  };
  CHECK(why("blockIdx.x", int64_t{1} << 30, "threadIdx.x", 1024) == "");
  CHECK(why("threadIdx.y", 32, "threadIdx.x", 32) == "");
  CHECK(why("blockIdx.x", 2, "threadIdx.x", 1025) == "threadIdx.x has 1025 iterations; at most 1024 can be launched");
  CHECK(why("threadIdx.y", 64, "threadIdx.x", 32) == "a block has 2048 threads; at most 1024 can be launched");
  CHECK(why("threadIdx.z", 65, "threadIdx.x", 2) == "threadIdx.z has 65 iterations; at most 64 can be launched");
  CHECK(why("blockIdx.y", 65536, "threadIdx.x", 2) == "blockIdx.y has 65536 iterations; at most 65535 can be launched");
}

// Two warps store a matrix of the scope "warp", each element at these places; a loop of another kind reads it.
Result<std::vector<CudaLaunch>> StoreInWarps(const std::function<std::vector<PrimExpr>(const PrimExpr&)>& places,
                                             bool is_read) {
  const DataType dtype = DataType::Float(16);
  const ir::Buffer out = ir::MakeBuffer("out", dtype, {Int64(64)});
  const ir::Buffer kept = ir::MakeBuffer("kept", dtype, {Int64(32), Int64(16)}, "warp");
  const Stmt body = Threads("blockIdx.x", 1, [&](const PrimExpr&) {
    std::vector<Stmt> loops = {
        Threads("threadIdx.x", 64, [&](const PrimExpr& t) { return Store(kept, ir::MakeConst(dtype, 1), places(t)); })};
    if (is_read) {
      loops.push_back(Threads("threadIdx.x", 64, [&](const PrimExpr& t) {
        return Store(out, Load(kept, {Int64(0), Int64(0)}), {t});
      }));
    }
    return ir::Make<ir::AllocateNode>(kept, ir::MakeSeq(std::move(loops)));
  });
  return LaunchesOf(Function({out}, body));
}

TEST_CASE("lanes store what their warp keeps where matrix instructions take it") {
  const auto row = [](const PrimExpr& t) {
    return ir::FloorDiv(t, Int64(32)) * 16 + ir::FloorDiv(ir::FloorMod(t, Int64(32)), Int64(4));
  };
  const auto column = [](const PrimExpr& t) { return ir::FloorMod(t, Int64(4)) * 2; };
  const auto fits = [&](const PrimExpr& t) { return std::vector<PrimExpr>{row(t) + 8, column(t) + 9}; };
  CHECK(StoreInWarps(fits, false).ok());
  const auto refusal = [&](const std::function<std::vector<PrimExpr>(const PrimExpr&)>& places, bool is_read) {
    const Result<std::vector<CudaLaunch>> launches = StoreInWarps(places, is_read);
    return launches.ok() ? "" : std::string(launches.status().message());
  };
  CHECK(refusal(fits, true) == "buffer \"kept\" lies in \"warp\", and is read by no product of warps");
  const std::string other = "buffer \"kept\" lies in \"warp\", and a lane stores an element of another one's registers";
  CHECK(refusal([&](const PrimExpr& t) { return std::vector<PrimExpr>{row(t) + 4, column(t)}; }, false) == other);
  CHECK(refusal([&](const PrimExpr& t) { return std::vector<PrimExpr>{row(t), column(t) + 2}; }, false) == other);
  CHECK(refusal(
            [&](const PrimExpr& t) {
              return std::vector<PrimExpr>{row(t), Int64(6) - column(t)};
            },
            false) == other);
}

}  // namespace
}  // namespace ingot::codegen::testing
