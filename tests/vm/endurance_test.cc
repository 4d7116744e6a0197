// Resources do not grow: memory when shapes change with every call; memory, descriptors, threads and mappings over
// cycles of loading, running and unloading. INGOT_LONG_TESTS=1 makes 10,000 of these cycles instead of 200.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "ingot/ingot.h"
#include "tests/vm/elf_image.h"
#include "tests/vm/round_trip.h"
#include "tests/vm/test_kernels.h"
#include "vm/program/program_codec.h"
#include "vm/run/context.h"

namespace ingot {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsOurs = false;  // a sanitizer keeps freed memory
#else
constexpr bool kMemoryIsOurs = true;
#endif

struct Held {
  int64_t resident_bytes = 0, descriptors = 0, threads = 0, maps = 0;
};

int64_t CountEntries(const char* directory) {
  int64_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

Held Now() {
  Held held;
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  held.resident_bytes = pages * sysconf(_SC_PAGESIZE);
  held.descriptors = CountEntries("/proc/self/fd");
  held.threads = CountEntries("/proc/self/task");
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++held.maps;
  return held;
}

constexpr const char* kSymbolic = R"(ingot 1
kernel @add_n {
  int n: int64
  in a: float32[n]
  in b: float32[n]
  out c: float32[n]
}
function @main export [n](x: float32[n]) -> (y: float32[n], t: tuple(float32[n])) {
  register r2: arena float32[n]
  register r3: float32[n]
  register r4: float32[n]
  register r5: tuple(float32[n])
  arena device 0, size (n * 4 + 63) // 64 * 64
  entry 0: arena 0, offset 0, size n * 4, live 0..5
  plan_view r2, 0, [n]
  call_kernel @add_n, [r1, r1, r2], [r0]
  alloc_output r3, 0, [n]
  call_kernel @add_n, [r2, r1, r3], [r0]
  alloc r4, [n]
  call_kernel @add_n, [r2, r2, r4], [r0]
  tuple r5, [r4]
  return [r3, r5]
}
)";

TEST_CASE("100,000 calls with changing shapes: memory does not grow") {
  constexpr int64_t kLargest = 3000;
  vm::InstanceOptions instance;
  instance.num_threads = 1;
  vm::OpenOptions open;
  open.find_kernel = test::FindTestKernel;
  const auto executable =
      *vm::Executable::FromProgram(*vm::Instance::Create(instance), test::Assembled(kSymbolic), "m", open);
  const auto context = *vm::Context::Create(executable);
  const vm::Function& function = **executable->Find("main");
  const Tensor whole = *Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{kLargest});
  for (float& element : whole.MutableElements<float>()) element = 1;
  uint32_t random = 1;
  int wrong = 0;
  Held before;
  for (int i = 0; i < 100'000; ++i) {
    random = random * 1664525 + 1013904223;
    const int64_t n = 1 + static_cast<int64_t>(random >> 8) % kLargest;
    const vm::Value argument = *whole.Slice(0, 0, n);
    const Result<std::vector<vm::Value>> results = context->Invoke(function, {&argument, 1});
    if (!results.ok() || std::get<Tensor>((*results)[0]).Elements<float>()[static_cast<size_t>(n - 1)] != 3) ++wrong;
    if (i == 20'000) before = Now();
  }
  const Held after = Now();
  CHECK(wrong == 0);
  MESSAGE("calls with changing shapes: 100000, wrong: ", wrong);
  // In use: the arena. Kept: at most what the largest call needed, in each of the pool's size classes.
  CHECK(context->memory_stats().bytes_in_use <= 2 * kLargest * 4);
  CHECK(context->memory_stats().bytes_kept <= 64 * kLargest * 4);
  if (kMemoryIsOurs) CHECK(after.resident_bytes - before.resident_bytes < 1 << 20);
}

// One cycle: open, call (in parallel, under a deadline, asynchronously), release.
bool OneCycle(const std::string& path) {
  ingot_instance* instance = nullptr;
  ingot_executable* executable = nullptr;
  ingot_context* context = nullptr;
  const ingot_function* function = nullptr;
  ingot_task* task = nullptr;
  ingot_instance_options options = INGOT_INSTANCE_OPTIONS_INIT;
  options.num_threads = 2;
  ingot_open_options open = INGOT_OPEN_OPTIONS_INIT;
  open.trust = INGOT_TRUST_FILE;
  alignas(64) float x[16] = {1, 2, 3}, y[16] = {};
  int64_t shape[1] = {16};
  const ingot_dl_tensor input = {x, {INGOT_DL_CPU, 0}, 1, {2, 32, 1}, shape, nullptr, 0};
  ingot_dl_tensor output = {y, {INGOT_DL_CPU, 0}, 1, {2, 32, 1}, shape, nullptr, 0};
  const ingot_dl_tensor* const inputs[] = {&input};
  ingot_dl_tensor* const outputs[] = {&output};
  ingot_value argument = {}, result = {};
  argument.kind = INGOT_KIND_TENSOR;
  argument.as.tensor = &input;
  bool good = true;
  const auto run = [&](ingot_status* status) {
    good = good && status == nullptr;
    ingot_status_release(status);
    return good;
  };
  if (run(ingot_instance_create(&options, &instance)) &&
      run(ingot_executable_open(instance, path.c_str(), &open, &executable)) &&
      run(ingot_executable_find_function(executable, "main", &function)) &&
      run(ingot_context_create(executable, nullptr, &context)) && run(ingot_context_set_deadline(context, 60)) &&
      run(ingot_invoke(context, function, &argument, 1, &result, 1)) &&
      run(ingot_invoke_into_async(context, function, inputs, 1, outputs, 1, &task))) {
    run(ingot_task_wait(task, nullptr, 0));
  }
  ingot_value_clear(&result);
  ingot_task_release(task);
  ingot_context_release(context);
  ingot_executable_release(executable);
  ingot_instance_release(instance);
  return good && y[2] == 6;
}

TEST_CASE("loading, running and unloading again and again: nothing grows") {
  const int cycles = std::getenv("INGOT_LONG_TESTS") != nullptr ? 10'000 : 200;
  const std::string path =
      (std::filesystem::temp_directory_path() / ("ingot-endurance-" + std::to_string(getpid()) + ".ingot")).string();
  const std::vector<std::byte> bytes = *vm::EncodeProgram(test::Assembled(test::Add16Program()));
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  int failed = 0;
  for (int i = 0; i < 50; ++i) failed += OneCycle(path) ? 0 : 1;
  const Held before = Now();
  for (int i = 0; i < cycles; ++i) failed += OneCycle(path) ? 0 : 1;
  const Held after = Now();
  std::filesystem::remove(path);
  CHECK(failed == 0);
  MESSAGE("load cycles: ", cycles, ", failed: ", failed);
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.threads == before.threads);
  if (kMemoryIsOurs) {
    CHECK(after.maps <= before.maps + 2);  // the allocator's own come and go
    CHECK(after.resident_bytes - before.resident_bytes < 1 << 20);
  }
}

}  // namespace
}  // namespace ingot
