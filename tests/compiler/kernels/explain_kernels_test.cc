// What --explain says of kernels: rules and layouts, the reasons of rules that declined, how parts run, and predictions
// that follow the loops.
#include "compiler/kernels/explain_kernels.h"

#include <algorithm>
#include <limits>

#include "compiler/script/parser.h"
#include "doctest/doctest.h"

namespace ingot::kernels {
namespace {

constexpr const char* kModule = R"(from tvm.script import ir as I, tirx as T

@I.ir_module
class Module:
    @T.prim_func
    def relu(A: T.Buffer((64, 1000), "float32"), B: T.Buffer((64, 1000), "float32")):
        for i, j in T.grid(64, 1000):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], T.float32(0))

    @T.prim_func
    def scatter(A: T.Buffer((20000,), "float32"), P: T.Buffer((20000,), "int64"), B: T.Buffer((500,), "float32")):
        for i in range(20000):
            with T.sblock("B"):
                vi = T.axis.opaque(20000, i)
                B[P[vi]] = A[vi]

    @T.prim_func
    def panels(A: T.Buffer((64, 256), "float32"), W: T.Buffer((8, 256, 16), "float32"), C: T.Buffer((64, 128), "float32")):
        for i, j, k in T.grid(64, 128, 256):
            with T.sblock("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * W[vj // 16, vk, vj % 16]

    @T.prim_func
    def rows(A: T.Buffer((64, 1000), "float32"), B: T.Buffer((64,), "float32")):
        for i, j in T.grid(64, 1000):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vj]

    @T.prim_func
    def free(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, n), "float32")
        B = T.match_buffer(b, (n, n), "float32")
        for i, j in T.grid(n, n):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.exp(A[vi, vj])
)";

std::vector<KernelExplanation> ExplainAll(const char* target, const char* text = kModule) {
  const Result<ir::IRModule> module = script::ParseModule(text, "kernels.py");
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  Result<std::vector<KernelExplanation>> kernels = ExplainKernels(*module, ParseTarget(target)->variants[0]);
  REQUIRE_MESSAGE(kernels.ok(), kernels.status().message());
  return *std::move(kernels);
}

const KernelExplanation& Named(const std::vector<KernelExplanation>& kernels, const std::string& name) {
  const auto found = std::ranges::find(kernels, name, &KernelExplanation::name);
  REQUIRE(found != kernels.end());
  return *found;
}

std::string WhyNot(const ScheduledPart& part, const std::string& rule) {
  const auto found = std::ranges::find(part.declined, rule, &DeclinedRule::rule);
  return found == part.declined.end() ? "" : found->why;
}

TEST_CASE("explain: rules, layouts, vectors and threads of parts") {
  const std::vector<KernelExplanation> kernels = ExplainAll("cpu:x86-64-v3");
  const ScheduledPart& relu = Named(kernels, "relu").parts.at(0);
  CHECK(relu.rule == "elementwise");
  CHECK(relu.lanes == 8);
  CHECK(relu.stores == 64000);
  CHECK(WhyNot(relu, "inline") == "it writes a result of the kernel");
  const ScheduledPart& panels = Named(kernels, "panels").parts.at(0);
  CHECK(panels.rule == "gemm");
  CHECK(panels.layout == "second factor in panels of columns");
  CHECK(panels.is_parallel);
  CHECK(WhyNot(panels, "conv") == "its result is no image with channels in blocks");
  const ScheduledPart& rows = Named(kernels, "rows").parts.at(0);
  CHECK(rows.rule == "rows");
  CHECK(WhyNot(rows, "gemm") == "it is no sum of products of two loads");
  CHECK(!WhyNot(rows, "tile").empty());
}

TEST_CASE("explain: a block that no rule takes says why each did not, and that it runs element by element") {
  const std::vector<KernelExplanation> kernels = ExplainAll("cpu:x86-64-v3");
  const KernelExplanation& kernel = Named(kernels, "scatter");
  REQUIRE(kernel.parts.size() == 1);
  const ScheduledPart& scatter = kernel.parts[0];
  CHECK(scatter.rule == "");
  CHECK(scatter.is_serial_scalar());
  CHECK(scatter.stores == 20000);
  for (const DeclinedRule& declined : scatter.declined) CHECK(declined.why == "it stores at computed places");
  CHECK(scatter.declined.size() >= 9);
  const std::string text = ExplanationText({kernel});
  CHECK(text.find("  B: no rule, plain, no vectors, serial, 20 kstores\n") != std::string::npos);
  CHECK(text.find("\n    not inline, phases, conv, gemm, tile, ") != std::string::npos);
  CHECK(text.ends_with(": it stores at computed places\n"));
}

TEST_CASE("explain: predictions follow the work, the vectors and the symbols") {
  const std::vector<KernelExplanation> narrow = ExplainAll("cpu:x86-64-v3"), wide = ExplainAll("cpu:x86-64-v4");
  const auto ns = [](const std::vector<KernelExplanation>& kernels, const char* name) {
    return Named(kernels, name).predicted.value().nanoseconds;
  };
  CHECK(Named(narrow, "panels").flops == 2.0 * 64 * 128 * 256);
  CHECK(ns(wide, "panels") < 0.7 * ns(narrow, "panels"));
  // Between the peak of two ports and a tenth of it.
  const double gflops = Named(narrow, "panels").flops / ns(narrow, "panels");
  CHECK(gflops < 32 * 4);
  CHECK(gflops > 32 * 0.2);
  CHECK(ns(narrow, "scatter") / 20000 > 2 * ns(narrow, "relu") / 64000);  // an element takes longer
  const KernelExplanation& free = Named(narrow, "free");
  CHECK(free.is_symbolic);
  CHECK(free.bytes == 2.0 * 4 * kLikelySize * kLikelySize);
  CHECK(free.predicted.value().vector_stores == free.predicted->stores);
}

TEST_CASE("explain: the threads of a device are no serial loops, and nothing is predicted of them") {
  const std::vector<KernelExplanation> kernels = ExplainAll("cuda:sm_80", R"(from tvm.script import ir as I, tirx as T

@I.ir_module
class Module:
    @T.prim_func
    def relu(A: T.Buffer((64, 1000), "float32"), B: T.Buffer((64, 1000), "float32")):
        for i, j in T.grid(64, 1000):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], T.float32(0))
)");
  CHECK(Named(kernels, "relu").parts.at(0).is_parallel);
  const std::string text = ExplanationText(kernels);
  CHECK(text.starts_with("kernel relu for sm_80: 64 kFLOP, 512 kbytes\n"));
  CHECK(text.find("rule cuda_threads, plain, no vectors, parallel, 64 kstores\n") != std::string::npos);
}

TEST_CASE("explain: likely values are those of constant folding, and a likely size where there is none") {
  using namespace ir;  // NOLINT
  const PrimVar n = MakePrimVar("n");
  const PrimExpr most = Int64(std::numeric_limits<int64_t>::max());
  CHECK(LikelyValue(n - 60) == kLikelySize - 60);
  CHECK(LikelyValue(FloorDiv(n - 61, Int64(2))) == -3);
  CHECK(LikelyValue(FloorMod(n - 61, Int64(2))) == 1);
  CHECK(LikelyValue(IfThenElse(And(n > Int64(3), n < Int64(57)), n + 1, n)) == kLikelySize + 1);
  CHECK(LikelyValue(most + n) == kLikelySize);  // beyond 64 bits
  CHECK(LikelyValue((most - n) * (most - n)) == kLikelySize);
  CHECK(LikelyValue(FloorDiv(Int64(7), n - 56)) == kLikelySize);  // by zero
  CHECK(LikelyValue(FloorMod(n, n - 56)) == kLikelySize);
}

}  // namespace
}  // namespace ingot::kernels
