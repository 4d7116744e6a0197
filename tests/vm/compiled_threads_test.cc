// A compiled model (a kept executable, whose kernels the compiler wrote) called by many threads through the C API: with
// any number of threads in the pool, and of threads with contexts of their own, every invocation gives the bits of a
// serial run. tests/acceptance/python_module.py does the same with the digit classifier of the compiler beside it.
#include <atomic>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <map>
#include <thread>

#include "formats/file.h"
#include "tests/golden.h"
#include "tests/vm/c_api_session.h"

namespace ingot::test {
namespace {

#if defined(__x86_64__)

constexpr int64_t kInputs = 16, kOutputs = 10;  // columns
constexpr int64_t kRows[] = {1, 2, 7, 64, 513};

std::vector<std::byte> File() {
  const auto path = std::filesystem::path(golden::TestDirectory()) / "data/kept/1_raw.ingot";
  const SharedBytes file = *formats::MapFile(path.string());
  return {file.bytes.begin(), file.bytes.end()};
}

// The outputs for this number of rows, as bits, whose inputs depend on the number alone; empty after a failure.
std::vector<uint32_t> Call(ingot_context* context, const ingot_function* function, int64_t rows) {
  Array<float> x(std::vector<float>(static_cast<size_t>(rows * kInputs)), {rows, kInputs});
  Array<float> y(std::vector<float>(static_cast<size_t>(rows * kOutputs)), {rows, kOutputs});
  auto bits = static_cast<uint32_t>(rows);
  for (float& value : x.values) {
    bits = bits * 1664525 + 1013904223;
    value = static_cast<float>(static_cast<int32_t>(bits)) * 1e-9F;
  }
  const ingot_dl_tensor* const inputs[] = {&x.tensor};
  ingot_dl_tensor* const outputs[] = {&y.tensor};
  ingot_status* status = ingot_invoke_into(context, function, inputs, 1, outputs, 1);
  std::vector<uint32_t> result;
  if (status == nullptr) {
    for (const float value : y.values) result.push_back(std::bit_cast<uint32_t>(value));
  }
  ingot_status_release(status);
  return result;
}

TEST_CASE("a compiled model gives the bits of a serial run in 16,000 invocations by 16 threads, and with any pool") {
  std::map<int64_t, std::vector<uint32_t>> expected;
  {
    Session serial(File(), {.num_threads = 1, .trust = INGOT_TRUST_FILE});
    for (const int64_t rows : kRows) {
      expected[rows] = Call(serial.context, serial.Find("main"), rows);
      REQUIRE(expected[rows].size() == static_cast<size_t>(rows * kOutputs));
    }
  }
  CHECK(expected[1] != std::vector<uint32_t>(expected[2].begin(), expected[2].begin() + kOutputs));
  for (const int32_t threads : {1, 2, 5}) {
    Session session(File(), {.num_threads = threads, .trust = INGOT_TRUST_FILE});
    for (const auto& [rows, bits] : expected) CHECK(Call(session.context, session.Find("main"), rows) == bits);
  }
  constexpr int kThreads = 16, kInvocations = 1000;
  Session shared(File(), {.num_threads = 3, .trust = INGOT_TRUST_FILE});
  const ingot_function* function = shared.Find("main");
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ingot_context* context = nullptr;
      ingot_status* status = ingot_context_create(shared.executable, nullptr, &context);
      for (int k = 0; k < kInvocations && status == nullptr; ++k) {
        const int64_t rows = kRows[(k + t) % std::ssize(kRows)];
        if (Call(context, function, rows) == expected.at(rows)) ++right;
      }
      ingot_status_release(status);
      ingot_context_release(context);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == kThreads * kInvocations);
  std::printf("a compiled model on %d threads: %d invocations, %d of them equal to the serial run's bits\n", kThreads,
              kThreads * kInvocations, right.load());
}

#endif

}  // namespace
}  // namespace ingot::test
