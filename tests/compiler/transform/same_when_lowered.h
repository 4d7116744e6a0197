// Whether a function that is written as text computes the same before and after the tensor pipeline.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "compiler/interp/interpreter.h"
#include "compiler/script/parser.h"
#include "compiler/transform/tensor/lowered.h"
#include "tests/compiler/codegen/jit.h"

namespace ingot::transform::testing {

constexpr int64_t kRows = 6, kColumns = 8;

inline std::vector<float> Interpreted(const ir::PrimFunc& function) {
  std::vector<float> in(kRows * kColumns), out(kRows * kColumns, -1);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * i % 31);
  const std::vector<interp::HostBuffer> buffers{
      {DataType::Float(32), {kRows, kColumns}, std::as_writable_bytes(std::span(in)), true},
      {DataType::Float(32), {kRows, kColumns}, std::as_writable_bytes(std::span(out)), false}};
  const Status status = interp::Interpret(function, buffers);
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  return out;
}

// A function of A and C, float32[6, 8], whose body is this text.
inline ir::PrimFunc FunctionOf(const std::string& body) {
  const std::string text = R"(
@T.prim_func(private=True, s_tir=True)
def f(A: T.Buffer((T.int64(6), T.int64(8)), "float32"), C: T.Buffer((T.int64(6), T.int64(8)), "float32")):
    with T.sblock("b"):
)" + body;
  const Result<ir::IRModule> module = script::ParseModule(text, "body.py");
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  return module->FindPrimFunc("f");
}

// The function of this body, when it is lowered, must store into C what the function of the other one does. Returns it.
inline ir::PrimFunc CheckSame(const std::string& body, const std::string& expected,
                              const Target& target = codegen::testing::TargetNamed("x86-64-v3")) {
  const Result<ir::PrimFunc> lowered = LowerPrimFunc(FunctionOf(body), target);
  REQUIRE_MESSAGE(lowered.ok(), lowered.status().message());
  CHECK(Interpreted(*lowered) == Interpreted(FunctionOf(expected)));
  return *lowered;
}
inline ir::PrimFunc CheckSame(const std::string& body) { return CheckSame(body, body); }

}  // namespace ingot::transform::testing
