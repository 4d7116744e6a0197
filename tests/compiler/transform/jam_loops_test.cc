// The tensor pass jam_loops: iterations that run together compute the same, and only where registers hold them and none
// needs what another one stores.
#include <string>

#include "compiler/script/printer.h"
#include "compiler/target/target.h"
#include "tests/compiler/transform/same_when_lowered.h"

namespace ingot::transform {
namespace {

using testing::CheckSame;

const char* const kPlain = "range(T.int64(2))";
std::string Jammed(int bits) {
  return "T.serial(T.int64(2), annotations={\"jam_register_bits\": " + std::to_string(bits) + "})";
}

// Sums of rows in pairs, each with a sum and a name of its own, under conditions that pairs share and that they do not.
std::string RowSums(const std::string& loop) {
  return R"(
        for p in range(T.int64(3)):
            for q in )" +
         loop + R"(:
                total = T.alloc_buffer((T.int64(1),), scope="local")
                row: T.let[T.int64] = p * T.int64(2) + q
                total[T.int64(0)] = T.float32(0)
                for k in range(T.int64(8)):
                    if k < p + T.int64(4):
                        total[T.int64(0)] = total[T.int64(0)] + A[row, k] * A[p, k]
                for k in range(row):
                    total[T.int64(0)] = total[T.int64(0)] - A[row, k]
                if row < T.int64(5):
                    C[p * T.int64(2) + q, T.int64(0)] = total[T.int64(0)]
)";
}

int CountOf(const std::string& text, const std::string& word) {
  int count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

std::string Lowered(const std::string& body, const std::string& plain, const char* target) {
  return script::PrintFunction("f", CheckSame(body, plain, ParseTarget(target)->variants[0]));
}

TEST_CASE("iterations run together where registers hold them") {
  const std::string together = Lowered(RowSums(Jammed(8192)), RowSums(kPlain), "cpu:x86-64-v4");
  CHECK(CountOf(together, "alloc_buffer") == 2);
  const std::string apart = Lowered(RowSums(Jammed(8192)), RowSums(kPlain), "cpu:x86-64-v3");
  CHECK(CountOf(apart, "alloc_buffer") == 1);
  CHECK(CountOf(apart, "jam_register_bits") == 0);
}

TEST_CASE("iterations of which one loads what another one stores run in turn") {
  const auto body = [](const std::string& loop) {
    return R"(
        for p, k in T.grid(T.int64(6), T.int64(8)):
            C[p, k] = T.float32(1)
        for p in range(T.int64(3)):
            for q in )" +
           loop + R"(:
                for k in range(T.int64(7)):
                    C[p, k + T.int64(1)] = A[p, k] + C[p, k] * T.float32(2)
                    C[p, q] = A[p, k]
)";
  };
  const std::string lowered = Lowered(body(Jammed(1)), body(kPlain), "cpu:x86-64-v4");
  CHECK(lowered == Lowered(body(kPlain), body(kPlain), "cpu:x86-64-v4"));
}

}  // namespace
}  // namespace ingot::transform
