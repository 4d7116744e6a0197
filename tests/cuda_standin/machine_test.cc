// Kernels that nvcc has compiled (data/kernels.cu), beside what they mean: an outside compiler's reading of the manual.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <sstream>

#include "tests/cuda_standin/float_formats.h"
#include "tests/cuda_standin/machine.h"

namespace ingot::ptx {
namespace {

std::string ReadText(const std::string& name) {
  std::ifstream file(std::string(INGOT_STANDIN_DATA) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  REQUIRE(!text.str().empty());
  return text.str();
}

// Device memory with the values of a vector.
template <typename T>
struct Buffer {
  Machine& machine;
  int64_t size_bytes;
  uint64_t address;
  Buffer(Machine& m, const std::vector<T>& values) : Buffer(m, values.size()) {
    REQUIRE(machine.Write(address, values.data(), size_bytes).ok());
  }
  Buffer(Machine& m, size_t count)
      : machine(m), size_bytes(static_cast<int64_t>(count * sizeof(T))), address(m.Allocate(size_bytes).value()) {}
  ~Buffer() { CHECK(machine.Free(address).ok()); }
  Buffer(const Buffer&) = delete;
  std::vector<T> Read() const {
    std::vector<T> values(static_cast<size_t>(size_bytes) / sizeof(T));
    const Status status = machine.Read(values.data(), address, size_bytes);
    CHECK_MESSAGE(status.ok(), status.message());
    return values;
  }
};

LaunchCounts Run(Machine& machine, ModuleId module, const char* kernel, const LaunchConfig& config,
                 const Arguments& arguments) {
  const Result<LaunchCounts> counts = machine.Launch(module, kernel, config, arguments);
  REQUIRE_MESSAGE(counts.ok(), counts.status().message());
  return *counts;
}

struct Kernels {
  Machine machine;
  ModuleId module;
  Kernels() : module(Load()) {}
  ModuleId Load() {
    const Result<ModuleId> loaded = machine.LoadModule(ReadText("kernels_nvcc_sm_80.ptx"));
    REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
    return *loaded;
  }
};

TEST_CASE("ptx of nvcc: a sum by shared memory and barriers") {
  Kernels k;
  std::vector<float> x(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17);
  Buffer<float> in(k.machine, x), out(k.machine, size_t{4});
  Run(k.machine, k.module, "block_sum", {{4, 1, 1}, {128, 1, 1}},
      Arguments().Add(in.address).Add(out.address).Add(1000));
  float sum = 0, expected = 0;
  for (const float value : out.Read()) sum += value;
  for (const float value : x) expected += value;
  CHECK(sum == expected);
}

TEST_CASE("ptx of nvcc: a histogram by atomics in shared and global memory") {
  Kernels k;
  std::vector<int> x(1000), expected(16);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int>(i * i % 23), ++expected[static_cast<size_t>(x[i] & 15)];
  Buffer<int> in(k.machine, x), bins(k.machine, std::vector<int>(16));
  Run(k.machine, k.module, "histogram", {{8, 1, 1}, {128, 1, 1}},
      Arguments().Add(in.address).Add(bins.address).Add(1000));
  CHECK(bins.Read() == expected);
}

TEST_CASE("ptx of nvcc: a softmax by shuffles") {
  Kernels k;
  const int columns = 100;
  std::vector<float> x(3 * columns);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i)) * 4;
  Buffer<float> in(k.machine, x), out(k.machine, x.size());
  Run(k.machine, k.module, "warp_softmax", {{3, 1, 1}, {32, 1, 1}},
      Arguments().Add(in.address).Add(out.address).Add(columns));
  const std::vector<float> y = out.Read();
  for (int row = 0; row < 3; ++row) {
    double sum = 0;
    for (int i = 0; i < columns; ++i) sum += std::exp(double{x[static_cast<size_t>(row * columns + i)]});
    for (int i = 0; i < columns; ++i) {
      const auto at = static_cast<size_t>(row * columns + i);
      CHECK(y[at] == doctest::Approx(std::exp(double{x[at]}) / sum).epsilon(1e-5));
    }
  }
}

TEST_CASE("ptx of nvcc: a matrix product by WMMA") {
  Kernels k;
  const int n = 48;
  std::vector<uint16_t> a(n * n), b(n * n);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<uint16_t>(RoundTo(kHalfFormat, static_cast<double>(i * 7 % 13) - 6, Rounding::kNearest));
    b[i] = static_cast<uint16_t>(RoundTo(kHalfFormat, static_cast<double>(i * 5 % 11) - 5, Rounding::kNearest));
  }
  Buffer<uint16_t> da(k.machine, a), db(k.machine, b);
  Buffer<float> dc(k.machine, static_cast<size_t>(n * n));
  Run(k.machine, k.module, "wmma_matmul", {{3, 3, 1}, {32, 1, 1}},
      Arguments().Add(da.address).Add(db.address).Add(dc.address).Add(n));
  const std::vector<float> c = dc.Read();
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < n; ++l)
        sum += HalfValue(a[static_cast<size_t>(i * n + l)]) * HalfValue(b[static_cast<size_t>(l * n + j)]);
      REQUIRE(c[static_cast<size_t>(i * n + j)] == sum);
    }
  }
}

TEST_CASE("ptx of nvcc: calls of functions under divergence, tables, local memory") {
  Kernels k;
  std::vector<float> x(32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 1.25f - 9;
  x[2] = 1e6f;  // sinf's slow way
  Buffer<float> data(k.machine, x);
  Run(k.machine, k.module, "calls", {{1, 1, 1}, {32, 1, 1}}, Arguments().Add(data.address).Add(31));
  const std::vector<float> y = data.Read();
  for (int i = 0; i < 32; ++i) {
    const float v = x[static_cast<size_t>(i)];
    double expected = v;
    if (i < 31 && (i & 1) != 0) {
      float r = 1;
      for (int j = 0; j < i % 5; ++j) r = std::fma(r, v, static_cast<float>(j));
      expected = r;
    } else if (i < 31) {
      const double half = HalfValue(static_cast<uint16_t>(RoundTo(kHalfFormat, v, Rounding::kNearest)));
      expected = std::sin(double{v}) + std::pow(std::fabs(double{v}), 1.5) + half;
    }
    const double got = y[static_cast<size_t>(i)];
    CHECK((got == expected || got == doctest::Approx(expected).epsilon(1e-5)));  // element 2 is infinite as a half
  }
  const int n = 40;
  std::vector<double> d(n);
  for (size_t i = 0; i < d.size(); ++i) d[i] = std::cos(static_cast<double>(i)) * 3;
  Buffer<double> in(k.machine, d), out(k.machine, std::vector<double>(n));
  Run(k.machine, k.module, "doubles", {{2, 1, 1}, {32, 1, 1}}, Arguments().Add(in.address).Add(out.address).Add(n));
  CHECK(out.Read()[3] == 0);  // no terms: floor(0)
}

TEST_CASE("ptx: results that depend on the order of warps are found, and so is who reads what") {
  Kernels k;
  std::vector<int> x(256);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int>(i) - 100;
  Buffer<int> in(k.machine, x), out(k.machine, std::vector<int>(256)), count(k.machine, std::vector<int>(1));
  const Result<LaunchCounts> counts =
      k.machine.Launch(k.module, "compact", {{2, 1, 1}, {128, 1, 1}},
                       Arguments().Add(in.address).Add(out.address).Add(count.address).Add(256));
  REQUIRE_FALSE(counts.ok());
  CHECK(counts.status().message().find("depend on the order of warps") != std::string::npos);
}

TEST_CASE("ptx: speed" * doctest::skip()) {
  Machine machine({.orders = {WarpOrder::kLowestFirst}});
  const ModuleId module = machine.LoadModule(ReadText("kernels_nvcc_sm_80.ptx")).value();
  std::vector<float> x(1 << 20, 1.0f);
  Buffer<float> in(machine, x), out(machine, x.size());
  for (const char* kernel : {"block_sum", "warp_softmax"}) {
    const auto start = std::chrono::steady_clock::now();
    const bool sum = kernel[0] == 'b';
    const LaunchCounts counts = Run(
        machine, module, kernel, sum ? LaunchConfig{{64, 1, 1}, {256, 1, 1}} : LaunchConfig{{1024, 1, 1}, {32, 1, 1}},
        Arguments().Add(in.address).Add(out.address).Add(sum ? 1 << 20 : 1024));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    MESSAGE(std::string(kernel) << ": " << static_cast<double>(counts.thread_instructions) / seconds / 1e6
                                << " million thread instructions per second, " << counts.thread_instructions);
  }
}

}  // namespace
}  // namespace ingot::ptx
