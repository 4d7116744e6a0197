// Measures the time that the VM adds to a kernel call, and the time of an invocation through the C API. An assembler
// program of 1,000 call_kernel instructions to a 16-float addition runs against a C loop that makes the same calls with
// the same pointers; both are timed in turns, so that disturbances affect both. Prints the medians and the difference
// per call, then the medians of invocations of functions that do nothing; exit code 1 when the difference is above the
// first limit on the command line, an invocation of nothing above the second, or one with two tensors above the third
// (nanoseconds; 15, 100 and 250 by default, which holds on a machine that has nothing else to do).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ingot/ingot.h"
#include "runtime/kernel_context.h"
#include "tests/vm/test_kernels.h"
#include "vm/program/program_codec.h"
#include "vm/run/context.h"
#include "vm/text/assembler.h"

namespace ingot {
namespace {

constexpr int kCalls = 1000;
constexpr int kRounds = 2000;

// Calls alternate between two arena tensors, so that each depends on the one before.
std::string Program() {
  std::string text = R"(ingot 1
kernel @add16 {
  in a: float32[16]
  in b: float32[16]
  out c: float32[16]
}
function @main export (x: float32[16]) -> (y: float32[16]) {
  register r1: arena float32[16]
  register r2: arena float32[16]
  register r3: float32[16]
  arena device 0, size 128
  entry 0: arena 0, offset 0, size 64, live 0..1003
  entry 1: arena 0, offset 64, size 64, live 0..1003
  plan_view r1, 0, [16]
  plan_view r2, 1, [16]
  call_kernel @add16, [r0, r0, r1], []
)";
  for (int i = 1; i < kCalls - 1; ++i) {
    text += i % 2 == 1 ? "  call_kernel @add16, [r1, r1, r2], []\n" : "  call_kernel @add16, [r2, r2, r1], []\n";
  }
  return text + "  alloc_output r3, 0, [16]\n  call_kernel @add16, [r1, r1, r3], []\n  return [r3]\n}\n";
}

double Nanoseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::nano>(duration).count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

int MeasureCalls(double limit_ns) {
  vm::InstanceOptions instance_options;
  instance_options.num_threads = 1;
  vm::OpenOptions open;
  open.find_kernel = test::FindTestKernel;
  const auto program = vm::Assemble(Program());
  if (!program.ok()) return std::fprintf(stderr, "%s\n", program.status().message().c_str()), 2;
  const auto executable = vm::Executable::FromProgram(*vm::Instance::Create(instance_options), *program, "bench", open);
  if (!executable.ok()) return std::fprintf(stderr, "%s\n", executable.status().message().c_str()), 2;
  const auto context = *vm::Context::Create(*executable);
  const vm::Function& function = **(*executable)->Find("main");

  alignas(64) float x[16] = {}, y[16] = {}, a[16] = {}, b[16] = {};
  const std::vector<int64_t> dims = {16};
  const TensorView in = *TensorView::Make(x, DataType::Float(32), dims, nullptr, DeviceId());
  const TensorView out = *TensorView::Make(y, DataType::Float(32), dims, nullptr, DeviceId());
  const std::atomic<int32_t> cancel{0};
  KernelContext kernels(nullptr, &cancel);
  const IngotKernelFn add = test::FindTestKernel("add16");
  std::vector<void*> pointers;
  for (int i = 0; i < kCalls; ++i) {
    float* from = i == 0 ? x : i % 2 == 1 ? a : b;
    float* to = i == kCalls - 1 ? y : i % 2 == 1 ? b : a;
    pointers.insert(pointers.end(), {from, from, to});
  }

  std::vector<double> vm_ns, loop_ns;
  for (int round = 0; round < kRounds; ++round) {
    const auto t0 = std::chrono::steady_clock::now();
    if (const Status status = context->InvokeInto(function, {&in, 1}, {&out, 1}); !status.ok()) {
      return std::fprintf(stderr, "%s\n", status.message().c_str()), 2;
    }
    const auto t1 = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) {
      if (add(kernels.abi(), &pointers[static_cast<size_t>(3 * i)], nullptr) != 0) return 2;
    }
    const auto t2 = std::chrono::steady_clock::now();
    vm_ns.push_back(Nanoseconds(t1 - t0) / kCalls);
    loop_ns.push_back(Nanoseconds(t2 - t1) / kCalls);
  }
  const double vm = Median(vm_ns), loop = Median(loop_ns);
  std::printf("VM %.2f ns per call, C loop %.2f ns, ratio %.2f, beyond the loop %.2f ns (limit %.0f ns)\n", vm, loop,
              vm / loop, vm - loop, limit_ns);
  return vm - loop <= limit_ns ? 0 : 1;
}

constexpr const char* kEmpty = R"(ingot 1
function @nothing export () -> () {
  return []
}
function @ignore export [n](x: float32[16], y: float32[n]) -> () {
  return []
}
)";

// The median time of an ingot_invoke_into of a function that does nothing; negative: it failed.
double InvocationNs(ingot_context* context, const ingot_function* function, const ingot_dl_tensor* const* inputs,
                    size_t num_inputs) {
  constexpr int kPerSample = 1000;
  std::vector<double> samples;
  for (int sample = 0; sample < 500; ++sample) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kPerSample; ++i) {
      ingot_status* const status = ingot_invoke_into(context, function, inputs, num_inputs, nullptr, 0);
      if (status == nullptr) continue;
      std::fprintf(stderr, "%s\n", ingot_status_message(status));
      ingot_status_release(status);
      return -1;
    }
    samples.push_back(Nanoseconds(std::chrono::steady_clock::now() - begin) / kPerSample);
  }
  return Median(samples);
}

int MeasureInvocations(double limit_ns, double tensors_limit_ns) {
  const auto program = vm::Assemble(kEmpty);
  if (!program.ok()) return std::fprintf(stderr, "%s\n", program.status().message().c_str()), 2;
  const std::vector<std::byte> bytes = *vm::EncodeProgram(*program);
  ingot_instance* instance = nullptr;
  ingot_executable* executable = nullptr;
  ingot_context* context = nullptr;
  ingot_status* status = ingot_instance_create(nullptr, &instance);
  if (status == nullptr) {
    status = ingot_executable_open_memory(instance, bytes.data(), bytes.size(), "bench", nullptr, &executable);
  }
  if (status == nullptr) status = ingot_context_create(executable, nullptr, &context);
  double nothing = -1, ignored = -1;
  if (status == nullptr) {
    alignas(64) float x[16] = {};
    int64_t shape[1] = {16};
    const ingot_dl_tensor tensor = {x, {INGOT_DL_CPU, 0}, 1, {2, 32, 1}, shape, nullptr, 0};
    const ingot_dl_tensor* const inputs[] = {&tensor, &tensor};
    nothing = InvocationNs(context, ingot_executable_function(executable, 0), nullptr, 0);
    ignored = InvocationNs(context, ingot_executable_function(executable, 1), inputs, 2);
    std::printf(
        "an invocation through the C API: %.1f ns without tensors, %.1f ns with two (limits %.0f and %.0f ns)\n",
        nothing, ignored, limit_ns, tensors_limit_ns);
  } else {
    std::fprintf(stderr, "%s\n", ingot_status_message(status));
  }
  ingot_status_release(status);
  ingot_context_release(context);
  ingot_executable_release(executable);
  ingot_instance_release(instance);
  if (nothing < 0 || ignored < 0) return 2;
  return nothing <= limit_ns && ignored <= tensors_limit_ns ? 0 : 1;
}

}  // namespace
}  // namespace ingot

int main(int argc, char** argv) {
  const auto limit = [&](int i, double usual) { return argc > i ? std::atof(argv[i]) : usual; };
  const int calls = ingot::MeasureCalls(limit(1, 15));
  const int invocations = ingot::MeasureInvocations(limit(2, 100), limit(3, 250));
  return calls > invocations ? calls : invocations;
}
