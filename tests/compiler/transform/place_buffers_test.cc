// The tensor pass place_buffers: a buffer is an iteration's own only where the iteration writes what it reads.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "compiler/interp/interpreter.h"
#include "compiler/script/parser.h"
#include "compiler/transform/tensor/lowered.h"
#include "tests/compiler/codegen/jit.h"

namespace ingot::transform {
namespace {

constexpr int64_t kRows = 6, kColumns = 8;

std::vector<float> Interpreted(const ir::PrimFunc& function) {
  std::vector<float> in(kRows * kColumns), out(kRows * kColumns, -1);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * i % 31);
  const std::vector<interp::HostBuffer> buffers{
      {DataType::Float(32), {kRows, kColumns}, std::as_writable_bytes(std::span(in)), true},
      {DataType::Float(32), {kRows, kColumns}, std::as_writable_bytes(std::span(out)), false}};
  const Status status = interp::Interpret(function, buffers);
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  return out;
}

void CheckSame(const std::string& body) {
  const std::string text = R"(
@T.prim_func(private=True, s_tir=True)
def f(A: T.Buffer((T.int64(6), T.int64(8)), "float32"), C: T.Buffer((T.int64(6), T.int64(8)), "float32")):
    with T.sblock("b"):
)" + body;
  const Result<ir::IRModule> module = script::ParseModule(text, "body.py");
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  const ir::PrimFunc function = module->FindPrimFunc("f");
  const Result<ir::PrimFunc> lowered = LowerPrimFunc(function, codegen::testing::TargetNamed("x86-64-v3"));
  REQUIRE_MESSAGE(lowered.ok(), lowered.status().message());
  CHECK(Interpreted(*lowered) == Interpreted(function));
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
