// Modules compiled and called in this process, and kernels as text.

#include <doctest/doctest.h>

#include <cmath>

#include "compiler/kernels/show_kernels.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/schedule/schedule.h"
#include "compiler/script/parser.h"
#include "compiler/te/tensor.h"
#include "tests/compiler/jit_module.h"

namespace ingot::driver {
namespace {

// out[i] = a[i] + b[i], n symbolic.
ir::PrimFunc VectorAdd() {
  const ir::PrimVar n = ir::MakePrimVar("n");
  const te::Tensor a = te::Placeholder({n}, DataType::Float(32), "a");
  const te::Tensor b = te::Placeholder({n}, DataType::Float(32), "b");
  const te::Tensor c = te::Compute(
      {n}, [&](const te::Indices& i) { return a(i) + b(i); }, "c");
  return te::CreatePrimFunc({a, b, c});
}

Tensor Filled(std::vector<int64_t> dims, float step) {
  Tensor tensor = Tensor::Allocate(DataType::Float(32), dims).value();
  float value = 1;
  for (float& element : tensor.MutableElements<float>()) element = value += step;
  return tensor;
}

TEST_CASE("a tensor function is compiled and called in one process") {
  ir::IRModule module;
  module.Add("matrix_add", VectorAdd());
  const auto jit = test::CompileJit(module);
  REQUIRE_MESSAGE(jit.ok(), jit.status().message());
  for (const int64_t n : {int64_t{1}, int64_t{1023}, int64_t{1024}}) {
    const Tensor a = Filled({n}, 0.5F), b = Filled({n}, 0.25F), c = Filled({n}, 0);
    const Status status = (*jit)->CallInto("matrix_add", {a, b}, {c});
    REQUIRE_MESSAGE(status.ok(), status.message());
    for (int64_t i = 0; i < n; ++i) {
      CHECK(c.Elements<float>()[i] == a.Elements<float>()[i] + b.Elements<float>()[i]);
    }
  }
  const Tensor wrong = Tensor::Allocate(DataType::Float(64), std::vector<int64_t>{4}).value();
  CHECK((*jit)->CallInto("matrix_add", {wrong, wrong}, {wrong}).message().find("expected float32[n], got float64[4]") !=
        std::string::npos);
  CHECK((*jit)->Call("matrix_ad", {}).status().message().find("did you mean \"matrix_add\"") != std::string::npos);
}

TEST_CASE("a schedule by hand is compiled as it is") {
  schedule::Schedule schedule = schedule::Schedule::Create(VectorAdd()).value();
  const schedule::LoopRVs loops = schedule.GetLoops(schedule.GetBlock("c"));
  const schedule::LoopRVs parts = schedule.Split(loops[0], {schedule::kRest, 4});
  schedule.Parallel(parts[0]);
  REQUIRE_MESSAGE(schedule.status().ok(), schedule.status().message());
  const ir::PrimFunc scheduled = schedule::MarkScheduled(schedule.function());
  const auto untouched = schedule::ApplyDefaultSchedule(scheduled, ParseTarget("cpu:x86-64-v3")->variants[0]);
  REQUIRE(untouched.ok());
  CHECK(untouched->function.same_as(scheduled));
  ir::IRModule module;
  module.Add("myadd", scheduled);
  const auto jit = test::CompileJit(module);
  REQUIRE_MESSAGE(jit.ok(), jit.status().message());
  const Tensor a = Filled({1023}, 0.5F), b = Filled({1023}, 0.25F), c = Filled({1023}, 0);
  const Status status = (*jit)->CallInto("myadd", {a, b}, {c});
  REQUIRE_MESSAGE(status.ok(), status.message());
  for (int64_t i = 0; i < 1023; ++i) {
    CHECK(c.Elements<float>()[i] == a.Elements<float>()[i] + b.Elements<float>()[i]);
  }
}

TEST_CASE("loops that count in int32 run") {
  const auto module = script::ParseModule(R"(
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((5, 3), "float32"), B: T.Buffer((5, 3), "float32")):
        for i in range(T.int32(1), T.int32(5)):
            for j in T.grid(T.int64(3)):
                B[i, j] = A[i - T.int32(1), j] + T.float32(i)
)",
                                          "module.py");
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  const auto jit = test::CompileJit(*module);
  REQUIRE_MESSAGE(jit.ok(), jit.status().message());
  const Tensor a = Filled({5, 3}, 0.5F), b = Filled({5, 3}, 0);
  const Status status = (*jit)->CallInto("main", {a}, {b});
  REQUIRE_MESSAGE(status.ok(), status.message());
  for (int64_t i = 0; i < 5; ++i) {
    const float expected = i == 0 ? 1 : a.Elements<float>()[(i - 1) * 3 + 2] + static_cast<float>(i);
    CHECK(b.Elements<float>()[i * 3 + 2] == expected);
  }
}

constexpr const char* kGraph = R"(
from tvm.script import ir as I
from tvm.script import relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 3), "float32")):
        with R.dataflow():
            product = R.matmul(x, w)
            out = (R.nn.relu(product), R.sum(product, axis=[1]))
            R.output(out)
        return out
)";

TEST_CASE("a graph function's tuple of results comes as tensors") {
  const auto module = script::ParseModule(kGraph, "graph.py");
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  const auto jit = test::CompileJit(*module);
  REQUIRE_MESSAGE(jit.ok(), jit.status().message());
  const Tensor x = Filled({2, 4}, 1), w = Filled({4, 3}, -0.5F);
  const auto results = (*jit)->Call("main", {x, w});
  REQUIRE_MESSAGE(results.ok(), results.status().message());
  REQUIRE(results->size() == 2);
  for (int64_t i = 0; i < 2; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < 3; ++j) {
      float product = 0;
      for (int64_t k = 0; k < 4; ++k) product += x.Elements<float>()[i * 4 + k] * w.Elements<float>()[k * 3 + j];
      CHECK((*results)[0].Elements<float>()[i * 3 + j] == doctest::Approx(std::max(product, 0.0F)));
      sum += product;
    }
    CHECK((*results)[1].Elements<float>()[i] == doctest::Approx(sum));
  }
}

TEST_CASE("kernels are chosen by name, as schedule, LLVM IR and assembly") {
  const auto parsed = script::ParseModule(kGraph, "graph.py");
  REQUIRE(parsed.ok());
  CompileOptions options;
  options.target = ParseTarget("cpu:x86-64-v3").value();
  const Target& target = options.target.variants[0];
  const auto module = OptimizeModule(PrepareModule(*parsed).value(), options, {});
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  const std::vector<std::string> names{"matmul"}, unknown{"matmol"};
  const auto chosen = kernels::SelectKernels(*module, names);
  REQUIRE_MESSAGE(chosen.ok(), chosen.status().message());
  REQUIRE(chosen->functions().size() == 1);
  CHECK(kernels::EmitSchedules(*chosen, target).value().starts_with("# matmul for x86-64-v3: gemm(matmul)"));
  const auto llvm = kernels::EmitAssembly(*chosen, target, kernels::AssemblyKind::kLlvm, {});
  REQUIRE_MESSAGE(llvm.ok(), llvm.status().message());
  CHECK(llvm->find("@matmul(") != std::string::npos);
  CHECK(llvm->find("@sum(") == std::string::npos);
  const auto assembly = kernels::EmitAssembly(*chosen, target, kernels::AssemblyKind::kAssembly, {});
  REQUIRE(assembly.ok());
  CHECK(assembly->find("matmul:") != std::string::npos);
  CHECK(kernels::SelectKernels(*module, unknown).status().message().find("did you mean \"matmul\"") !=
        std::string::npos);
}

}  // namespace
}  // namespace ingot::driver
