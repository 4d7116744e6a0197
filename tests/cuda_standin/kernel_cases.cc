#include "tests/cuda_standin/kernel_cases.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include "tests/cuda_standin/float_formats.h"

namespace ingot::ptx {
namespace {

// Device memory of exactly the size of the values.
template <typename T>
Result<uint64_t> Upload(Machine& machine, const std::vector<T>& values) {
  const auto bytes = static_cast<int64_t>(values.size() * sizeof(T));
  INGOT_ASSIGN_OR_RETURN(const uint64_t address, machine.Allocate(bytes));
  INGOT_RETURN_IF_ERROR(machine.Write(address, values.data(), bytes));
  return address;
}
Result<uint64_t> Unwritten(Machine& machine, size_t bytes) { return machine.Allocate(static_cast<int64_t>(bytes)); }

template <typename T>
Status Expect(Machine& machine, uint64_t address, const std::vector<T>& expected, double tolerance = 0) {
  std::vector<T> got(expected.size());
  INGOT_RETURN_IF_ERROR(machine.Read(got.data(), address, static_cast<int64_t>(got.size() * sizeof(T))));
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::fabs(static_cast<double>(got[i]) - static_cast<double>(expected[i])) <= tolerance) continue;
    return Status(StatusCode::kFailed,
                  {"element ", i, " is ", std::to_string(got[i]), ", expected ", std::to_string(expected[i])});
  }
  return Status();
}

Status RunBlockSum(Machine& machine, ModuleId module, int n) {
  std::vector<float> x(static_cast<size_t>(n)), expected(2);
  for (int i = 0; i < n; ++i) {
    x[static_cast<size_t>(i)] = static_cast<float>(i % 13 + 1);
    expected[static_cast<size_t>(i / 64 % 2)] += x[static_cast<size_t>(i)];
  }
  INGOT_ASSIGN_OR_RETURN(const uint64_t in, Upload(machine, x));
  INGOT_ASSIGN_OR_RETURN(const uint64_t out, Unwritten(machine, 8));
  INGOT_RETURN_IF_ERROR(
      machine.Launch(module, "block_sum", {{2, 1, 1}, {64, 1, 1}}, Arguments().Add(in).Add(out).Add(n)).status());
  return Expect(machine, out, expected);
}

Status RunHistogram(Machine& machine, ModuleId module) {
  std::vector<int> x(201), expected(16);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<int>(i * i % 23 + i), ++expected[static_cast<size_t>(x[i] & 15)];
  INGOT_ASSIGN_OR_RETURN(const uint64_t in, Upload(machine, x));
  INGOT_ASSIGN_OR_RETURN(const uint64_t bins, Upload(machine, std::vector<int>(16)));
  INGOT_RETURN_IF_ERROR(
      machine.Launch(module, "histogram", {{4, 1, 1}, {64, 1, 1}}, Arguments().Add(in).Add(bins).Add(201)).status());
  return Expect(machine, bins, expected);
}

Status RunSoftmax(Machine& machine, ModuleId module, int columns) {
  const int rows = 2;
  std::vector<float> x(static_cast<size_t>(rows * columns)), expected(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i)) * 4 + 100;
  // The largest one is the last: with another maximum the exponential overflows.
  for (int row = 1; row <= rows; ++row) x[static_cast<size_t>(row * columns - 1)] = 102 + static_cast<float>(columns);
  for (int row = 0; row < rows; ++row) {
    double sum = 0;
    const auto at = [&](int i) { return static_cast<size_t>(row * columns + i); };
    for (int i = 0; i < columns; ++i) sum += std::exp(double{x[at(i)]});
    for (int i = 0; i < columns; ++i) expected[at(i)] = static_cast<float>(std::exp(double{x[at(i)]}) / sum);
  }
  INGOT_ASSIGN_OR_RETURN(const uint64_t in, Upload(machine, x));
  INGOT_ASSIGN_OR_RETURN(const uint64_t out, Unwritten(machine, x.size() * 4));
  INGOT_RETURN_IF_ERROR(
      machine.Launch(module, "warp_softmax", {{rows, 1, 1}, {32, 1, 1}}, Arguments().Add(in).Add(out).Add(columns))
          .status());
  return Expect(machine, out, expected, 1e-6);
}

Status RunMatmul(Machine& machine, ModuleId module, int k) {
  const int m = 32, n = 64;
  std::vector<uint16_t> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n));
  const auto half = [](size_t value) {
    return static_cast<uint16_t>(RoundTo(kHalfFormat, static_cast<double>(value % 15) - 7, Rounding::kNearest));
  };
  for (size_t i = 0; i < a.size(); ++i) a[i] = half(i * i * 7 + i / 5);
  for (size_t i = 0; i < b.size(); ++i) b[i] = half(i * i * 3 + i / 7);
  std::vector<float> expected(static_cast<size_t>(m * n));
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum += HalfValue(a[static_cast<size_t>(i * k + l)]) * HalfValue(b[static_cast<size_t>(l * n + j)]);
      expected[static_cast<size_t>(i * n + j)] = static_cast<float>(sum);
    }
  }
  INGOT_ASSIGN_OR_RETURN(const uint64_t da, Upload(machine, a));
  INGOT_ASSIGN_OR_RETURN(const uint64_t db, Upload(machine, b));
  INGOT_ASSIGN_OR_RETURN(const uint64_t dc, Unwritten(machine, expected.size() * 4));
  INGOT_RETURN_IF_ERROR(machine
                            .Launch(module, "mma_matmul", {{n / 32, m / 32, 1}, {128, 1, 1}},
                                    Arguments().Add(da).Add(db).Add(dc).Add(m).Add(n).Add(k))
                            .status());
  return Expect(machine, dc, expected);
}

Status RunTf32(Machine& machine, ModuleId module) {
  std::vector<float> a(128), b(64), expected(128);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 5 % 31) - 15;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 7 % 29) / 4;
  for (size_t i = 0; i < 128; ++i) {
    for (size_t l = 0; l < 8; ++l) expected[i] += a[i / 8 * 8 + l] * b[l * 8 + i % 8];
  }
  INGOT_ASSIGN_OR_RETURN(const uint64_t da, Upload(machine, a));
  INGOT_ASSIGN_OR_RETURN(const uint64_t db, Upload(machine, b));
  INGOT_ASSIGN_OR_RETURN(const uint64_t dc, Unwritten(machine, 512));
  INGOT_RETURN_IF_ERROR(
      machine.Launch(module, "mma_tf32", {{1, 1, 1}, {32, 1, 1}}, Arguments().Add(da).Add(db).Add(dc)).status());
  return Expect(machine, dc, expected);
}

Status RunBf16(Machine& machine, ModuleId module) {
  std::vector<uint16_t> a(256), bt(128);
  const auto bits = [](double value) { return static_cast<uint16_t>(RoundTo(kBf16Format, value, Rounding::kNearest)); };
  for (size_t i = 0; i < a.size(); ++i) a[i] = bits(static_cast<double>(i * 11 % 37) - 18);
  for (size_t i = 0; i < bt.size(); ++i) bt[i] = bits(static_cast<double>(i * 13 % 41) / 8);
  std::vector<float> expected(128, 1.0f);
  for (size_t i = 0; i < 128; ++i) {
    for (size_t l = 0; l < 16; ++l)
      expected[i] += static_cast<float>(Bf16Value(a[i / 8 * 16 + l]) * Bf16Value(bt[i % 8 * 16 + l]));
  }
  INGOT_ASSIGN_OR_RETURN(const uint64_t da, Upload(machine, a));
  INGOT_ASSIGN_OR_RETURN(const uint64_t db, Upload(machine, bt));
  INGOT_ASSIGN_OR_RETURN(const uint64_t dc, Unwritten(machine, 512));
  INGOT_RETURN_IF_ERROR(
      machine.Launch(module, "mma_bf16", {{1, 1, 1}, {32, 1, 1}}, Arguments().Add(da).Add(db).Add(dc)).status());
  return Expect(machine, dc, expected);
}

Status RunTranspose(Machine& machine, ModuleId module, int m) {
  const int n = 98 - m;
  std::vector<float> x(static_cast<size_t>(m * n)), expected(x.size());
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j)
      expected[static_cast<size_t>(j * m + i)] = x[static_cast<size_t>(i * n + j)] = static_cast<float>(i * 1000 + j);
  }
  INGOT_ASSIGN_OR_RETURN(const uint64_t in, Upload(machine, x));
  INGOT_ASSIGN_OR_RETURN(const uint64_t out, Unwritten(machine, x.size() * 4));
  INGOT_RETURN_IF_ERROR(
      machine.Launch(module, "transpose", {{2, 2, 1}, {32, 8, 1}}, Arguments().Add(in).Add(out).Add(m).Add(n))
          .status());
  return Expect(machine, out, expected);
}

Status RunScan(Machine& machine, ModuleId module) {
  const int n = 250;
  std::vector<int> x(n), expected(n);
  for (size_t i = 0; i < n; ++i)
    x[i] = static_cast<int>(i * 7 % 11) + 1, expected[i] = x[i] + (i > 0 ? expected[i - 1] : 0);
  INGOT_ASSIGN_OR_RETURN(const uint64_t in, Upload(machine, x));
  INGOT_ASSIGN_OR_RETURN(const uint64_t out, Unwritten(machine, n * 4));
  INGOT_RETURN_IF_ERROR(
      machine.Launch(module, "scan", {{1, 1, 1}, {256, 1, 1}}, Arguments().Add(in).Add(out).Add(n)).status());
  return Expect(machine, out, expected);
}

// A kernel for several sizes: those of its edges, and of the loops that nvcc has unrolled by four.
template <Status (*run)(Machine&, ModuleId, int), int... sizes>
Status RunSizes(Machine& machine, ModuleId module) {
  Status status;
  static_cast<void>(((status = run(machine, module, sizes)).ok() && ...));
  return status;
}

}  // namespace

const std::vector<KernelCase>& KernelCases() {
  static const std::vector<KernelCase> cases = {
      {"block_sum", RunSizes<RunBlockSum, 100, 301>},
      {"histogram", RunHistogram},
      {"warp_softmax", RunSizes<RunSoftmax, 20, 110, 331>},
      // The loop is unrolled by four: only the last copy of its body can meet the last step.
      {"mma_matmul", RunSizes<RunMatmul, 32, 128, 224, 256>, 6},
      {"mma_tf32", RunTf32},
      {"mma_bf16", RunBf16},
      {"transpose", RunSizes<RunTranspose, 37, 45, 53, 61>},
      {"scan", RunScan},
  };
  return cases;
}

std::string ReadData(const std::string& name) {
  std::ifstream file(std::string(INGOT_STANDIN_DATA) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace ingot::ptx
