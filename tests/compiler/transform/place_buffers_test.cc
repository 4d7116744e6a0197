// The tensor pass place_buffers: a buffer is an iteration's own only where the iteration writes what it reads.
#include <doctest/doctest.h>

#include <ctime>
#include <string>

#include "compiler/ir/visitor.h"
#include "tests/compiler/transform/same_when_lowered.h"

namespace ingot::transform {
namespace {

using testing::CheckSame;

// The scopes and extents of what a function allocates.
std::string AllocationsOf(const ir::PrimFunc& function) {
  struct Lister : ir::StmtVisitor {
    using ir::StmtVisitor::Visit;
    void Visit(const ir::AllocateNode& node) override {
      scopes += node.buffer->scope + " ";
      for (const ir::PrimExpr& extent : node.buffer->shape) scopes += std::to_string(*ir::AsConstInt(extent)) + " ";
      StmtVisitor::Visit(node);
    }
    std::string scopes;
  } lister;
  lister.VisitStmt(function->body);
  return lister.scopes;
}

TEST_CASE("what one iteration leaves for the next is not its own") {
  // A line of delays: the second column is what the row before has left.
  CheckSame(R"(
        S = T.alloc_buffer((T.int64(8), T.int64(2)), "float32")
        for i in range(T.int64(6)):
            for j in range(T.int64(8)):
                S[j, T.int64(0)] = A[i, j]
                C[i, j] = S[j, T.int64(0)] + T.if_then_else(i > T.int64(0), S[j, T.int64(1)], T.float32(0))
                S[j, T.int64(1)] = S[j, T.int64(0)]
)");
  // A store that only some iterations reach.
  CheckSame(R"(
        S = T.alloc_buffer((T.int64(7),), "float32")
        for i in range(T.int64(6)):
            S[i + T.int64(1)] = A[i, T.int64(0)]
            if i % T.int64(4) == T.int64(0):
                S[i] = T.float32(0)
            for j in range(T.int64(8)):
                C[i, j] = S[i] + S[i + T.int64(1)]
)");
}

TEST_CASE("what only some iterations store is not each iteration's own") {
  for (const char* guard : {"i < T.int64(1)", "i <= T.int64(0)", "T.int64(1) > i", "not i > T.int64(0)",
                            "i * T.int64(8) < T.int64(8)", "i % T.int64(4) < T.int64(1)"}) {
    CAPTURE(guard);
    for (const char* scope : {"global", "local"}) {
      const std::string buffer = std::string(R"(
        S = T.alloc_buffer((T.int64(8),), "float32", scope=")") +
                                 scope + R"(")
        for i in range(T.int64(6)):
)";
      CheckSame(buffer + R"(
            for j in range(T.int64(8)):
                if )" +
                guard + R"(:
                    S[j] = T.float32(0)
            for j in range(T.int64(8)):
                S[j] = S[j] + A[i, j]
                C[i, j] = S[j]
)");
    }
  }
}

// The first iteration stores all of S, the others what `stores` say; all of it is read.
std::string StoredByAll(const std::string& stores) {
  return R"(
        S = T.alloc_buffer((T.int64(8),), "float32", scope="local")
        for i in range(T.int64(6)):
            if i < T.int64(1):
                for j in range(T.int64(8)):
                    S[j] = T.Cast("float32", j)
)" + stores +
         R"(
            for j in range(T.int64(8)):
                C[i, j] = S[j]
)";
}

TEST_CASE("what some iterations of the loops below store is not all") {
  for (const char* guard :
       {"i + j < T.int64(8)", "i <= j", "i * j < T.int64(8)", "T.int64(3) * j + i >= T.int64(2) * i", "j < T.int64(5)",
        "j % T.int64(2) < T.int64(1)", "j * T.int64(2) < T.int64(9)", "not j < i", "i < T.int64(1) or j < T.int64(4)",
        "j == T.int64(3)", "i == j", "A[i, j] < T.float32(9)"}) {
    CAPTURE(guard);
    CheckSame(StoredByAll(R"(
            for j in range(T.int64(8)):
                if )" + std::string(guard) +
                          R"(:
                    S[j] = A[i, j]
)"));
    CheckSame(StoredByAll(R"(
            for j in range(T.int64(8)):
                if )" + std::string(guard) +
                          R"(:
                    C[i, j] = A[i, j]
                else:
                    S[j] = A[i, j]
)"));
  }
}

TEST_CASE("stores with holes between them are no box") {
  for (const char* place : {"T.int64(2) * j", "j * T.int64(7) % T.int64(6)", "(i + T.int64(2) * j) % T.int64(8)",
                            "j // T.int64(2) * T.int64(7)"}) {
    CAPTURE(place);
    CheckSame(StoredByAll(R"(
            for j in range(T.int64(4)):
                S[)" + std::string(place) +
                          R"(] = A[i, j]
)"));
  }
  CheckSame(StoredByAll(R"(
            S[T.int64(0)] = A[i, T.int64(0)]
            S[T.int64(7)] = A[i, T.int64(7)]
)"));
  CheckSame(StoredByAll(R"(
            for k in range(T.int64(1) - i):
                for j in range(T.int64(8)):
                    S[j] = A[i, j]
)"));
  CheckSame(R"(
        S = T.alloc_buffer((T.int64(8), T.int64(8)), "float32", scope="local")
        for i in range(T.int64(6)):
            if i < T.int64(1):
                for j, k in T.grid(T.int64(8), T.int64(8)):
                    S[j, k] = T.Cast("float32", j * k)
            for j in range(T.int64(8)):
                S[j, j] = A[i, j]
            for j in range(T.int64(8)):
                C[i, j] = S[j, T.int64(7) - j]
)");
}

TEST_CASE("what is asked of elements may change between a store and a load") {
  CheckSame(R"(
        S = T.alloc_buffer((T.int64(8),), "float32", scope="local")
        F = T.alloc_buffer((T.int64(1),), "int64", scope="local")
        for i in range(T.int64(6)):
            F[T.int64(0)] = i
            if F[T.int64(0)] < T.int64(1):
                for j in range(T.int64(8)):
                    S[j] = A[i, j]
            F[T.int64(0)] = T.int64(0)
            if F[T.int64(0)] < T.int64(1):
                for j in range(T.int64(8)):
                    C[i, j] = S[j]
)");
}

TEST_CASE("a block's predicate guards what is stored and what is read") {
  // In tiles, the last of which is shorter, by sums and by a quotient and a remainder, and through a choice.
  const char* bodies[] = {R"(
        S = T.alloc_buffer((T.int64(6), T.int64(8)), "float32", scope="local")
        for t in range(T.int64(2)):
            for i, j in T.grid(T.int64(4), T.int64(8)):
                if t * T.int64(4) + i < T.int64(6):
                    S[t * T.int64(4) + i, j] = A[t * T.int64(4) + i, j]
            for i, j in T.grid(T.int64(4), T.int64(8)):
                if t * T.int64(4) + i < T.int64(6):
                    C[t * T.int64(4) + i, j] = S[t * T.int64(4) + i, j]
)",
                          R"(
        S = T.alloc_buffer((T.int64(6), T.int64(8)), "float32", scope="local")
        for t in range(T.int64(2)):
            for i, j in T.grid(T.int64(4), T.int64(8)):
                if t * T.int64(4) + i < T.int64(6):
                    S[t * T.int64(4) + i, j] = A[t * T.int64(4) + i, j]
            for f in range(T.int64(32)):
                if t * T.int64(4) + f // T.int64(8) < T.int64(6):
                    C[t * T.int64(4) + f // T.int64(8), f % T.int64(8)] = S[t * T.int64(4) + f // T.int64(8), f % T.int64(8)]
)",
                          R"(
        S = T.alloc_buffer((T.int64(6), T.int64(8)), "float32", scope="local")
        for t in range(T.int64(2)):
            for f in range(T.int64(32)):
                if t * T.int64(4) + f // T.int64(8) < T.int64(6):
                    S[t * T.int64(4) + f // T.int64(8), f % T.int64(8)] = A[t * T.int64(4) + f // T.int64(8), f % T.int64(8)]
            for i, j in T.grid(T.int64(4), T.int64(8)):
                if t * T.int64(4) + i < T.int64(6):
                    C[t * T.int64(4) + i, j] = S[t * T.int64(4) + i, j]
)",
                          R"(
        S = T.alloc_buffer((T.int64(8), T.int64(8)), "float32", scope="local")
        for t in range(T.int64(2)):
            for i, j in T.grid(T.int64(4), T.int64(8)):
                if t * T.int64(4) + i < T.int64(6):
                    S[t * T.int64(4) + i, j] = A[t * T.int64(4) + i, j]
            for i, j in T.grid(T.int64(3), T.int64(8)):
                C[t * T.int64(3) + i, j] = T.if_then_else(t * T.int64(4) + i < T.int64(6), S[t * T.int64(4) + i, j], T.float32(0))
)"};
  for (const char* body : bodies) {
    CAPTURE(body);
    CHECK(AllocationsOf(CheckSame(body)).starts_with("local 4 8 "));
  }
}

TEST_CASE("what a later iteration of a loop stores is not there before") {
  CheckSame(R"(
        S = T.alloc_buffer((T.int64(8),), "float32", scope="local")
        for i in range(T.int64(6)):
            S[T.int64(0)] = A[i, T.int64(0)]
            for j in range(T.int64(8)):
                C[i, j] = T.if_then_else(i > T.int64(0), S[(j + T.int64(1)) % T.int64(8)], T.float32(0))
                S[j] = A[i, j]
)");
  CheckSame(R"(
        S = T.alloc_buffer((T.int64(8),), "float32", scope="local")
        for i in range(T.int64(6)):
            for j in range(T.int64(8)):
                S[j] = A[i, j]
                C[i, j] = T.if_then_else(i > T.int64(0), S[(j + T.int64(1)) % T.int64(8)], T.float32(0))
            C[i, T.int64(0)] = S[T.int64(0)]
)");
}

TEST_CASE("places that elements say") {
  CheckSame(R"(
        S = T.alloc_buffer((T.int64(8),), "float32")
        for i in range(T.int64(6)):
            for k in range(T.int64(8)):
                S[k] = T.float32(k)
            for j in range(T.int64(8)):
                d: T.let[T.int64] = T.Cast("int64", A[i, j]) % T.int64(8)
                S[T.int64(7) - d] = S[d] + T.float32(1)
            for j in range(T.int64(8)):
                C[i, j] = S[j]
)");
}

TEST_CASE("loops as long as an element says, which is another one later") {
  const char* bodies[] = {R"(
        S = T.alloc_buffer((T.int64(8),), "float32", scope="local")
        F = T.alloc_buffer((T.int64(1),), "int64", scope="local")
        for k in range(T.int64(8)):
            S[k] = T.float32(0)
        for i in range(T.int64(6)):
            F[T.int64(0)] = T.if_then_else(i < T.int64(1), T.int64(8), T.int64(4))
            for j in range(F[T.int64(0)]):
                S[j] = A[i, j]
            F[T.int64(0)] = T.int64(8)
            for k in range(F[T.int64(0)]):
                C[i, k] = S[k]
)",
                          R"(
        F = T.alloc_buffer((T.int64(1),), "int64", scope="local")
        for i in range(T.int64(6)):
            for j in range(T.int64(8)):
                C[i, j] = T.float32(-1)
            F[T.int64(0)] = T.int64(8)
            for k in range(F[T.int64(0)]):
                F[T.int64(0)] = T.int64(4)
                if k < F[T.int64(0)]:
                    C[i, k] = A[i, k]
)"};
  for (const char* body : bodies) {
    CAPTURE(body);
    CheckSame(body);
  }
}

// What the function of a body allocates when it is lowered for CUDA.
std::string AllocationsOnCuda(const std::string& body) {
  return AllocationsOf(CheckSame(body, body, ParseTarget("cuda:sm_80")->variants.at(0)));
}

// Four threads fill the first columns of a row, and read them in a loop of their own, after others have run.
std::string OfThreads(const std::string& scope, const std::string& filled, const std::string& read) {
  const std::string body = R"(
        S = T.alloc_buffer((T.int64(6), T.int64(8)), "float32", scope=")" +
                           scope + R"(")
        for i in T.thread_binding(T.int64(6), thread="blockIdx.x"):
            for t in T.thread_binding(T.int64(4), thread="threadIdx.x"):
                for j in range(T.int64(2)):
                    S[i, )" +
                           filled + R"(] = A[i, t * T.int64(2) + j]
            for k in range(T.int64(3)):
                for t in T.thread_binding(T.int64(4), thread="threadIdx.x"):
                    for j in range(T.int64(2)):
                        S[i, )" +
                           read + R"(] = S[i, )" + read + R"(] * T.float32(2)
            for t in T.thread_binding(T.int64(4), thread="threadIdx.x"):
                for j in range(T.int64(2)):
                    C[i, t * T.int64(2) + j] = S[i, )" +
                           read + R"(]
)";
  return AllocationsOnCuda(body);
}

TEST_CASE("what each thread of a block has for itself it keeps from loop to loop") {
  CHECK(OfThreads("local", "t * T.int64(2) + j", "t * T.int64(2) + j") == "thread 4 1 2 ");
  CHECK(OfThreads("shared", "t * T.int64(2) + j", "t * T.int64(2) + j") == "shared 1 8 ");
  // The elements of others: in another order of threads, between those of one thread, and one thread's too many.
  CHECK(OfThreads("local", "t * T.int64(2) + j", "(T.int64(3) - t) * T.int64(2) + j") == "shared 1 8 ");
  CHECK(OfThreads("local", "j * T.int64(4) + t", "j * T.int64(4) + t") == "shared 1 8 ");
}

TEST_CASE("a block of one thread keeps what its loops share") {
  CHECK(AllocationsOnCuda(R"(
        S = T.alloc_buffer((T.int64(6), T.int64(8)), "float32", scope="local")
        for i in T.thread_binding(T.int64(6), thread="blockIdx.x"):
            for t in T.thread_binding(T.int64(1), thread="threadIdx.x"):
                for j in range(T.int64(8)):
                    S[i, j] = A[i, j]
            for t in T.thread_binding(T.int64(1), thread="threadIdx.x"):
                for j in range(T.int64(8)):
                    C[i, j] = S[i, T.int64(7) - j]
)") == "shared 1 8 ");
}

// The third of three steps reads beyond the row, so that the loop is cut there.
TEST_CASE("parts of a loop share what the threads of a block share") {
  CHECK(AllocationsOnCuda(R"(
        S = T.alloc_buffer((T.int64(6), T.int64(4)), "float32", scope="shared")
        for i in T.thread_binding(T.int64(6), thread="blockIdx.x"):
            for k in range(T.int64(3)):
                for t in T.thread_binding(T.int64(4), thread="threadIdx.x"):
                    S[i, t] = T.if_then_else(k * T.int64(4) + t < T.int64(8), A[i, k * T.int64(4) + t], T.float32(0))
                for t in T.thread_binding(T.int64(4), thread="threadIdx.x"):
                    if t < T.int64(2):
                        C[i, k * T.int64(2) + t] = S[i, T.int64(3) - t] + S[i, T.int64(1) - t]
)") == "shared 1 4 ");
}

// Processor seconds of the pass over a function that stores rows of a buffer `accesses` times, and loads them as often.
double SecondsToPlace(int accesses) {
  std::string body = R"(
        S = T.alloc_buffer((T.int64(6), T.int64(8)), "float32")
        for i in range(T.int64(6)):)";
  for (const char* statement : {"S[i, j] = A[i, j]", "C[i, j] = S[i, T.int64(7) - j]"}) {
    for (int k = 0; k < accesses; ++k) {
      body += "\n            for j in range(T.int64(8)):\n                " + std::string(statement);
    }
  }
  ir::PrimFunc function = testing::FunctionOf(body + "\n");
  for (const TensorPassRow& row : TensorPipeline()) {
    const std::clock_t start = std::clock();
    Result<ir::PrimFunc> next = row.run(function, Target());
    REQUIRE_MESSAGE(next.ok(), next.status().message());
    function = *next;
    if (row.name != std::string("place_buffers")) continue;
    CHECK(AllocationsOf(function) == "global 1 8 ");
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  }
  FAIL("no pass place_buffers");
  return 0;
}

TEST_CASE("the time to place a buffer grows about as its accesses do") {
  const double few = SecondsToPlace(100), many = SecondsToPlace(400);
  CHECK_MESSAGE(many < 10 * few + 0.05, few << " and " << many << " seconds");
}

}  // namespace
}  // namespace ingot::transform
