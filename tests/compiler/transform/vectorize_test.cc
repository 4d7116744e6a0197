// The tensor pass vectorize: what lanes read of each other keeps its order.
#include <string>

#include "tests/compiler/transform/same_when_lowered.h"

namespace ingot::transform {
namespace {

using testing::CheckSame;

TEST_CASE("a sum whose terms read the sum is not joined over lanes") {
  const auto body = [](const std::string& loop) {
    return R"(
        for i in range(T.int64(6)):
            C[i, T.int64(0)] = T.float32(1)
            for j in )" +
           loop + R"((T.int64(8)):
                C[i, T.int64(0)] = C[i, T.int64(0)] + C[i, T.int64(0)] * A[i, j]
            for j in )" +
           loop + R"((T.int64(8)):
                C[i, T.int64(0)] = T.max(C[i, T.int64(0)], A[i, j] - C[i, T.int64(0)])
)";
  };
  CheckSame(body("T.vectorized"), body("range"));
}

}  // namespace
}  // namespace ingot::transform
