// The tensor passes vectorize and load_first: what lanes and copies read of each other keeps its order.
#include <string>

#include "compiler/script/printer.h"
#include "compiler/target/target.h"
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

// Also where a condition differs between them.
TEST_CASE("on a GPU lanes are computed one by one where their places are no neighbours") {
  const Target gpu = ParseTarget("cuda:sm_80")->variants[0];
  const auto body = [](const std::string& loop) {
    return R"(
        for i in range(T.int64(6)):
            for j in )" +
           loop + R"((T.int64(8)):
                C[i, j] = T.if_then_else((i * T.int64(8) + j) % T.int64(5) < T.int64(3), A[(i * T.int64(8) + j) // T.int64(9), (i * T.int64(8) + j) % T.int64(7)], A[T.int64(5) - i, T.int64(7) - j])
)";
  };
  CheckSame(body("T.vectorized"), body("range"), gpu);
}

// The values come first, and a store that is left out leaves what is there.
TEST_CASE("on a GPU unrolled copies load all elements before they store one") {
  const Target gpu = ParseTarget("cuda:sm_80")->variants[0];
  const auto body = [](const std::string& loop) {
    return R"(
        for i in range(T.int64(6)):
            for j in )" +
           loop + R"((T.int64(4)):
                for k in )" +
           loop + R"((T.int64(2)):
                    if j * T.int64(2) + k < i + T.int64(2):
                        C[i, j * T.int64(2) + k] = A[i, T.int64(7) - j * T.int64(2) - k] + T.float32(1)
)";
  };
  const ir::PrimFunc lowered = CheckSame(body("T.unroll"), body("range"), gpu);
  CHECK(script::PrintFunction("f", lowered).find("value7") != std::string::npos);
  // What a copy stores, the next one loads.
  const auto chain = [](const std::string& loop) {
    return R"(
        for i in range(T.int64(6)):
            C[i, T.int64(0)] = A[i, T.int64(0)]
            for j in )" +
           loop + R"((T.int64(7)):
                C[i, j + T.int64(1)] = C[i, j] + A[i, j]
)";
  };
  CheckSame(chain("T.unroll"), chain("range"), gpu);
}

}  // namespace
}  // namespace ingot::transform
