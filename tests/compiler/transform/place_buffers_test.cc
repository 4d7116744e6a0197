// The tensor pass place_buffers: a buffer is an iteration's own only where the iteration writes what it reads.
#include <doctest/doctest.h>

#include "tests/compiler/transform/same_when_lowered.h"

namespace ingot::transform {
namespace {

using testing::CheckSame;

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

}  // namespace
}  // namespace ingot::transform
