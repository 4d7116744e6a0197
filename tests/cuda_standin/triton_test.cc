// Kernels that Triton has compiled (data/kernels_triton.py), beside what they mean: like machine_test.cc, of a compiler
// that leaves more to the manual: ldmatrix and mma.sync over tiles that cp.async brings, exchanged layouts, conversions.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/cuda_standin/float_formats.h"
#include "tests/cuda_standin/kernel_cases.h"
#include "tests/cuda_standin/machine.h"

namespace ingot::ptx {
namespace {

class TritonKernel {
 public:
  explicit TritonKernel(const std::string& name, bool check_races = true)
      : name_(name), machine_({.check_races = check_races}) {
    const std::string text = ReadData("kernels_triton_" + name + "_sm_80.ptx");
    REQUIRE(!text.empty());
    const Result<ModuleId> loaded = machine_.LoadModule(text);
    REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
    module_ = *loaded;
  }
  template <typename T>
  uint64_t Upload(const std::vector<T>& values) {
    const uint64_t address = Room(values.size() * sizeof(T));
    REQUIRE(machine_.Write(address, values.data(), static_cast<int64_t>(values.size() * sizeof(T))).ok());
    return address;
  }
  uint64_t Room(size_t size_bytes) { return machine_.Allocate(static_cast<int64_t>(size_bytes)).value(); }
  // The result of `count` floats. Two more pointers, to scratch memory, are null: the kernels use none.
  std::vector<float> Run(std::array<int64_t, 3> grid, int64_t shared_bytes, Arguments arguments, uint64_t result,
                         size_t count) {
    arguments.Add(uint64_t{0}).Add(uint64_t{0});
    const LaunchConfig config{{grid[0], grid[1], grid[2]}, {128, 1, 1}, shared_bytes};
    const Result<LaunchCounts> counts = machine_.Launch(module_, name_, config, arguments);
    REQUIRE_MESSAGE(counts.ok(), counts.status().message());
    std::vector<float> values(count);
    const Status status = machine_.Read(values.data(), result, static_cast<int64_t>(count * sizeof(float)));
    REQUIRE_MESSAGE(status.ok(), status.message());
    return values;
  }
  void CheckAllBlocksRan() {
    const KernelFacts facts = machine_.Facts(module_, name_).value();
    std::string lines;
    for (const int line : facts.lines_not_run) lines += " " + std::to_string(line);
    CHECK_MESSAGE(lines.empty(), name_ << ": blocks that do not run:" << lines);
  }

 private:
  std::string name_;
  Machine machine_;
  ModuleId module_{};
};

// Small numbers, of which float16 has every one.
std::vector<double> SmallNumbers(int64_t count, int64_t seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>((i * i * 7 + i / 5 + seed) % 17 - 8) / 8);
  return values;
}
std::vector<uint16_t> Halves(const std::vector<double>& values) {
  std::vector<uint16_t> bits;
  for (const double value : values) {
    bits.push_back(static_cast<uint16_t>(RoundTo(kHalfFormat, value, Rounding::kNearest)));
  }
  return bits;
}

TEST_CASE("ptx of triton: softmax by shuffles and shared memory") {
  // All lanes of a warp store one value at one place, which the manual allows and the check takes for a race.
  TritonKernel kernel("softmax", /*check_races=*/false);
  const int64_t rows = 3;
  for (const int columns : {1, 700, 1024}) {
    CAPTURE(columns);
    std::vector<float> x;
    for (int64_t i = 0; i < rows * columns; ++i) x.push_back(static_cast<float>(std::sin(static_cast<double>(i))) * 9);
    const uint64_t in = kernel.Upload(x), out = kernel.Room(x.size() * 4);
    const std::vector<float> y = kernel.Run({rows, 1, 1}, 16, Arguments().Add(in).Add(out).Add(columns), out, x.size());
    for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
      const size_t width = static_cast<size_t>(columns), first = row * width;
      double sum = 0;
      for (size_t i = 0; i < width; ++i) sum += std::exp(double{x[first + i]});
      for (size_t i = 0; i < width; ++i) {
        CHECK(std::fabs(double{y[first + i]} - std::exp(double{x[first + i]}) / sum) < 1e-6);
      }
    }
  }
  kernel.CheckAllBlocksRan();
}

TEST_CASE("ptx of triton: a matrix product by cp.async, ldmatrix and mma.sync") {
  TritonKernel kernel("matmul");
  for (const auto [m, n, k] : {std::array{70, 80, 112}, std::array{1, 16, 16}, std::array{64, 64, 0}}) {
    CAPTURE(k);
    const std::vector<double> a = SmallNumbers(m * k, 1), b = SmallNumbers(k * n, 2);
    const auto upload = [&](const std::vector<double>& x) {
      return x.empty() ? kernel.Room(16) : kernel.Upload(Halves(x));
    };
    const uint64_t da = upload(a), db = upload(b);
    const auto count = static_cast<size_t>(m * n);
    const uint64_t dc = kernel.Room(count * 4);
    const std::vector<float> c = kernel.Run({(m + 63) / 64, (n + 63) / 64, 1}, 16384,
                                            Arguments().Add(da).Add(db).Add(dc).Add(m).Add(n).Add(k), dc, count);
    size_t wrong = 0;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) sum += a[static_cast<size_t>(i * k + l)] * b[static_cast<size_t>(l * n + j)];
        wrong += double{c[static_cast<size_t>(i * n + j)]} != sum ? 1 : 0;
      }
    }
    CHECK(wrong == 0);
  }
  kernel.CheckAllBlocksRan();
}

TEST_CASE("ptx of triton: attention in one kernel") {
  TritonKernel kernel("attention");
  const int64_t depth = 64;
  const float scale = 0.125f;
  for (const auto [queries, keys] : {std::array{70, 90}, std::array{3, 1}, std::array{64, 64}, std::array{2, 0}}) {
    CAPTURE(keys);
    const std::vector<double> q = SmallNumbers(queries * depth, 3), k = SmallNumbers(keys * depth, 4),
                              v = SmallNumbers(keys * depth, 5);
    const auto upload = [&](const std::vector<double>& x) {
      return x.empty() ? kernel.Room(16) : kernel.Upload(Halves(x));
    };
    const uint64_t dq = upload(q), dk = upload(k), dv = upload(v);
    const auto count = static_cast<size_t>(queries * depth);
    const uint64_t out = kernel.Room(count * 4);
    const std::vector<float> o =
        kernel.Run({(queries + 63) / 64, 1, 1}, 16384,
                   Arguments().Add(dq).Add(dk).Add(dv).Add(out).Add(queries).Add(keys).Add(scale), out, count);
    if (keys == 0) {  // nothing is divided by nothing
      CHECK(std::ranges::all_of(o, [](float x) { return std::isnan(x); }));
      continue;
    }
    double most = 0;
    for (int64_t i = 0; i < queries; ++i) {
      std::vector<double> weights, sums(static_cast<size_t>(depth));
      double total = 0;
      for (int64_t j = 0; j < keys; ++j) {
        double score = 0;
        for (int64_t l = 0; l < depth; ++l) {
          score += q[static_cast<size_t>(i * depth + l)] * k[static_cast<size_t>(j * depth + l)];
        }
        weights.push_back(std::exp(score * double{scale}));
        total += weights.back();
        for (int64_t l = 0; l < depth; ++l) {
          sums[static_cast<size_t>(l)] += weights.back() * v[static_cast<size_t>(j * depth + l)];
        }
      }
      for (int64_t l = 0; l < depth; ++l) {
        most = std::max(
            most, std::fabs(double{o[static_cast<size_t>(i * depth + l)]} - sums[static_cast<size_t>(l)] / total));
      }
    }
    CHECK(most < 2e-3);  // weights are rounded to float16
  }
  kernel.CheckAllBlocksRan();
}

}  // namespace
}  // namespace ingot::ptx
