// Profilers, instruments and the search for NaN, through the VM and through the C API.
#include "vm/run/observation.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/vm/round_trip.h"
#include "tests/vm/test_kernels.h"
#include "vm/run/context.h"
#include "vm/verify/failure_text.h"

namespace ingot::vm {
namespace {

constexpr const char* kProgram = R"(ingot 1
external @twice(k: float32[2]) -> (y: float32[2])
kernel @add_n {
  int n: int64
  in a: float32[n]
  in b: float32[n]
  out c: float32[n]
  flops n
  bytes n * 12
}
function @main export [n](x: float32[n]) -> (y: float32[n]) {
  register r2: arena float32[n]
  register r3: float32[n]
  arena device 0, size (n * 4 + 63) // 64 * 64
  entry 0: arena 0, offset 0, size n * 4, live 0..4
  note "double"
  plan_view r2, 0, [n]
  call_kernel @add_n, [r1, r1, r2], [r0]
  note "square"
  alloc_output r3, 0, [n]
  call_builtin [], mul, [r3, r2, r2]
  return [r3]
}
function @outside export (x: float32[2]) -> (y: float32[2]) {
  register r1: float32[2]
  call_external [r1], @twice, [r0]
  return [r1]
}
function @copies export (x: float32[8]) -> (y: float32[8]) {
  register r1: float32[8]
  copy r1, r0
  return [r1]
}
)";

struct Fixture {
  std::shared_ptr<const Executable> executable;
  std::unique_ptr<Context> context;
  Fixture() {
    InstanceOptions instance;
    instance.num_threads = 1;
    OpenOptions open;
    open.find_kernel = test::FindTestKernel;
    executable = *Executable::FromProgram(*Instance::Create(instance), test::Assembled(kProgram), "m", open);
    ContextOptions options;
    options.externals["twice"].call = [](std::span<const Value> arguments) -> Result<std::vector<Value>> {
      const Tensor& x = std::get<Tensor>(arguments[0]);
      INGOT_ASSIGN_OR_RETURN(Tensor y, Tensor::Allocate(x.dtype(), x.dims()));
      for (size_t i = 0; i < 2; ++i) y.MutableElements<float>()[i] = 2 * x.Elements<float>()[i];
      return std::vector<Value>{y};
    };
    context = *Context::Create(executable, std::move(options));
  }
  Result<std::vector<float>> Call(const char* name, const std::vector<float>& x) {
    const std::vector<int64_t> dims = {static_cast<int64_t>(x.size())};
    Tensor tensor = *Tensor::Allocate(DataType::Float(32), dims);
    std::copy(x.begin(), x.end(), tensor.MutableElements<float>().begin());
    const Value argument = tensor;
    INGOT_ASSIGN_OR_RETURN(const std::vector<Value> results, context->Invoke(**executable->Find(name), {&argument, 1}));
    const std::span<const float> y = std::get<Tensor>(results[0]).Elements<float>();
    return std::vector<float>(y.begin(), y.end());
  }
};

std::string Text(const Event& event) {
  return std::string(event.operation) + "/" + event.name + " " + std::to_string(event.flops) + " " +
         std::to_string(event.bytes);
}

TEST_CASE("a profiler sees every instruction with its source operation, FLOPs and bytes") {
  Fixture f;
  std::vector<std::string> seen;
  int64_t last_end = 0;
  f.context->set_profiler([&](const Event& event) {
    CHECK(event.begin_ns >= last_end);
    CHECK(event.end_ns >= event.begin_ns);
    last_end = event.end_ns;
    seen.push_back(Text(event));
  });
  CHECK(*f.Call("main", {1, 2, 3}) == std::vector<float>{4, 16, 36});
  CHECK(seen == std::vector<std::string>{"double/plan_view 0 0", "double/add_n 3 36", "square/alloc_output 0 0",
                                         "square/mul 0 36"});
  seen.clear();
  REQUIRE(f.Call("copies", {1, 2, 3, 4, 5, 6, 7, 8}).ok());
  CHECK(seen == std::vector<std::string>{"/copy 0 64"});
  f.context->set_profiler(nullptr);
  seen.clear();
  REQUIRE(f.Call("main", {1}).ok());
  CHECK(seen.empty());
}

TEST_CASE("an instrument sees tensors before and after, and may write them") {
  Fixture f;
  std::vector<std::string> seen;
  f.context->set_instrument([&](EventPhase phase, const Event& event, std::span<const EventArgument> arguments) {
    std::string text = std::string(phase == EventPhase::kBefore ? "before " : "after ") + event.name;
    for (const EventArgument& argument : arguments) {
      text +=
          std::string(" ") + ParamRoleName(argument.role) + " " + argument.name + " " + argument.view.TypeToString();
    }
    seen.push_back(text);
    auto* out = static_cast<float*>(arguments.back().view.data);
    if (phase == EventPhase::kAfter && event.kind == EventKind::kKernel) out[1] = 10;
    return Decision::kRun;
  });
  CHECK(*f.Call("main", {1, 2}) == std::vector<float>{4, 100});
  CHECK(seen == std::vector<std::string>{"before add_n in a float32[2] in b float32[2] out c float32[2]",
                                         "after add_n in a float32[2] in b float32[2] out c float32[2]",
                                         "before mul out out float32[2] in a float32[2] in b float32[2]",
                                         "after mul out out float32[2] in a float32[2] in b float32[2]"});
  seen.clear();
  CHECK(*f.Call("outside", {1, 2}) == std::vector<float>{2, 4});
  CHECK(seen == std::vector<std::string>{"before twice in k float32[2]", "after twice out y float32[2]"});
}

TEST_CASE("an instrument may skip what has no results, or stop the invocation") {
  Fixture f;
  Decision decision = Decision::kSkip;
  f.context->set_instrument([&](EventPhase phase, const Event& event, std::span<const EventArgument> arguments) {
    if (event.kind == EventKind::kBuiltin) return Decision::kRun;
    if (phase == EventPhase::kBefore && event.kind == EventKind::kKernel) {
      static_cast<float*>(arguments[2].view.data)[0] = 7;  // in the kernel's stead
    }
    return phase == EventPhase::kBefore ? decision : Decision::kRun;
  });
  CHECK(*f.Call("main", {1}) == std::vector<float>{49});
  CHECK(f.Call("outside", {1, 2}).status().ToString() ==
        "invalid_argument: m: function \"outside\", call_external (instruction 0): external function \"twice\": it has "
        "results, so it cannot be skipped");
  decision = Decision::kStop;
  CHECK(f.Call("main", {1}).status().ToString() ==
        "cancelled: m: function \"main\", double, instruction 1: kernel \"add_n\": stopped by the instrument");
  f.context->set_instrument(nullptr);
  CHECK(*f.Call("main", {1}) == std::vector<float>{4});
}

TEST_CASE("the first operation that makes a NaN or an infinity is named; what only passes them on is not") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Fixture f;
  f.context->set_check_finite(true);
  CHECK(*f.Call("main", {1, 2}) == std::vector<float>{4, 16});
  CHECK(*f.Call("main", {1, -kInfinity}) == std::vector<float>{4, kInfinity});
  CHECK(f.Call("main", {1, 2, 3e38F}).status().ToString() ==
        "failed: m: function \"main\", double, instruction 1: kernel \"add_n\", output \"c\": element [2] is infinite, "
        "its inputs have none");
  CHECK(f.context->failure_place().operation == "double, instruction 1");
  CHECK(f.Call("main", {1e30F}).status().message() ==
        "m: function \"main\", square, instruction 3: builtin \"mul\", output \"out\": element [0] is infinite, its "
        "inputs have none");
  CHECK(
      f.Call("outside", {3e38F, 0}).status().message().find("external function \"twice\", output \"y\": element [0]") !=
      std::string::npos);
  CHECK(f.Call("main", {1, NAN}).status().message() == "m: function \"main\", parameter \"x\": element [1] is NaN");
  f.context->set_check_finite(false);
  CHECK(f.Call("main", {1, NAN}).ok());
}

TEST_CASE("registers, instructions and expected types in the source's names") {
  const Program program = test::Assembled(kProgram);
  const Function& main = program.functions[0];
  CHECK(DescribeRegister(main, RegisterId(0)) == "symbol \"n\"");
  CHECK(DescribeRegister(main, RegisterId(1)) == "parameter \"x\"");
  CHECK(DescribeRegister(main, RegisterId(3)) == "r3");
  CHECK(DescribeInstruction(main, 1) == "double, instruction 1");
  CHECK(DescribeInstruction(program.functions[1], 0) == "call_external (instruction 0)");
  const std::vector<int64_t> symbols = {5};
  CHECK(DescribeExpected(main.registers[2], main.signature, symbols) == "float32[n] with n = 5");
}

}  // namespace
}  // namespace ingot::vm
