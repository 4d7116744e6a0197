// Each measurement is the best of several short ones on all threads at once: other work on the machine can make a loop
// slower, and nothing makes it faster. The loops are compiled for each width of vectors, the machine's widest is taken.
#include "apps/common/machine_peaks.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>

#include "runtime/cpu_features.h"
#include "runtime/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace ingot::apps {
namespace {

using PeakClock = std::chrono::steady_clock;

// Enough independent sums to hide a latency of five cycles on two ports.
constexpr int kSums = 12;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) float MultiplyAdds512(int64_t steps, float factor) {
  __m512 sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 x = _mm512_set1_ps(factor);
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = _mm512_fmadd_ps(sums[i], x, x);
  }
  for (int i = 1; i < kSums; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  alignas(64) float lanes[16];
  _mm512_store_ps(lanes, sums[0]);
  return lanes[0];
}
__attribute__((target("avx512f"))) int64_t Read512(const int64_t* data, int64_t count) {
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
  for (int64_t i = 0; i + 32 <= count; i += 32) {
    a = _mm512_xor_si512(a, _mm512_load_si512(data + i));
    b = _mm512_xor_si512(b, _mm512_load_si512(data + i + 8));
    c = _mm512_xor_si512(c, _mm512_load_si512(data + i + 16));
    d = _mm512_xor_si512(d, _mm512_load_si512(data + i + 24));
  }
  alignas(64) int64_t lanes[8];
  _mm512_store_si512(lanes, _mm512_or_si512(_mm512_or_si512(a, b), _mm512_or_si512(c, d)));
  return lanes[0];
}
__attribute__((target("avx2,fma"))) float MultiplyAdds256(int64_t steps, float factor) {
  __m256 sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 x = _mm256_set1_ps(factor);
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = _mm256_fmadd_ps(sums[i], x, x);
  }
  for (int i = 1; i < kSums; ++i) sums[0] = _mm256_add_ps(sums[0], sums[i]);
  return _mm256_cvtss_f32(sums[0]);
}
__attribute__((target("avx2"))) int64_t Read256(const int64_t* data, int64_t count) {
  __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
  const auto* vectors = reinterpret_cast<const __m256i*>(data);
  for (int64_t i = 0; i + 4 <= count / 4; i += 4) {
    a = _mm256_xor_si256(a, _mm256_load_si256(vectors + i));
    b = _mm256_xor_si256(b, _mm256_load_si256(vectors + i + 1));
    c = _mm256_xor_si256(c, _mm256_load_si256(vectors + i + 2));
    d = _mm256_xor_si256(d, _mm256_load_si256(vectors + i + 3));
  }
  return _mm256_extract_epi64(_mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d)), 0);
}
#endif

// By the C++ compiler's vectors of 128 bits, which every machine has.
using Floats = float __attribute__((vector_size(16)));
using Integers = int64_t __attribute__((vector_size(16)));

Floats MultiplyAdd(Floats sum, Floats x) {
#if defined(__aarch64__)
  return vfmaq_f32(x, sum, x);
#else
  return sum * x + x;
#endif
}
float MultiplyAdds128(int64_t steps, float factor) {
  Floats sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = Floats{} + static_cast<float>(i);
  const Floats x = Floats{} + factor;
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = MultiplyAdd(sums[i], x);
  }
  for (int i = 1; i < kSums; ++i) sums[0] += sums[i];
  return sums[0][0];
}
int64_t Read128(const int64_t* data, int64_t count) {
  Integers a{}, b{}, c{}, d{};
  const auto* vectors = reinterpret_cast<const Integers*>(data);
  for (int64_t i = 0; i + 4 <= count / 2; i += 4) {
    a ^= vectors[i];
    b ^= vectors[i + 1];
    c ^= vectors[i + 2];
    d ^= vectors[i + 3];
  }
  return (a | b | c | d)[0];
}

struct Loops {
  int vector_bits;
  float (*multiply_adds)(int64_t steps, float factor);
  int64_t (*read)(const int64_t* data, int64_t count);
};

Loops WidestLoops() {
#if defined(__x86_64__)
  const CpuFeatures features = CpuFeatures::Detect();
  if (features.Covers(CpuFeatures::Level(4))) return {512, MultiplyAdds512, Read512};
  if (features.Covers(CpuFeatures::Level(3))) return {256, MultiplyAdds256, Read256};
#endif
  return {128, MultiplyAdds128, Read128};
}

// The least seconds of some runs of work(thread) on all threads at once.
double BestSeconds(ThreadPool& pool, const std::function<void(int64_t thread)>& work) {
  constexpr int kRuns = 12;
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    const PeakClock::time_point start = PeakClock::now();
    pool.ParallelFor(
        pool.num_threads(),
        [](void* closure, int64_t thread) {
          (*static_cast<const std::function<void(int64_t)>*>(closure))(thread);
          return int32_t{0};
        },
        const_cast<std::function<void(int64_t)>*>(&work));
    const double seconds = std::chrono::duration<double>(PeakClock::now() - start).count();
    if (run == 0 || seconds < best) best = seconds;
  }
  return best;
}

}  // namespace

double MachinePeaks::GbytesPerSecond(double bytes) const {
  for (const Read& read : reads) {
    if (bytes <= static_cast<double>(read.bytes)) return read.gbytes_per_s;
  }
  return reads.empty() ? 0 : reads.back().gbytes_per_s;
}

Result<MachinePeaks> MeasurePeaks(int threads) {
  INGOT_ASSIGN_OR_RETURN(const std::unique_ptr<ThreadPool> pool, ThreadPool::Create(threads));
  const Loops loops = WidestLoops();
  MachinePeaks peaks;
  peaks.threads = pool->num_threads();
  peaks.vector_bits = loops.vector_bits;
  volatile float factor = 0.5F;  // sums stay finite
  volatile float float_sink = 0;
  volatile int64_t sink = 0;

  constexpr int64_t kSteps = 400'000;
  const double seconds =
      BestSeconds(*pool, [&](int64_t) { float_sink = loops.multiply_adds(kSteps, factor); });
  const double flops = 2.0 * kSums * kSteps * (loops.vector_bits / 32) * peaks.threads;
  peaks.gflops = flops / seconds * 1e-9;

  constexpr int64_t kSizes[] = {64 << 10, 512 << 10, 4 << 20, 32 << 20, 128 << 20};
  constexpr int64_t kLeastBytes = 16 << 20;  // that a run reads
  constexpr size_t kAlignment = 64;
  for (const int64_t size : kSizes) {
    const int64_t own = std::max<int64_t>(size / peaks.threads / kAlignment, 64) * kAlignment;
    std::vector<std::unique_ptr<int64_t[], void (*)(int64_t*)>> parts;
    for (int i = 0; i < peaks.threads; ++i) {
      auto* data = static_cast<int64_t*>(std::aligned_alloc(kAlignment, static_cast<size_t>(own)));
      if (data == nullptr) return Status(StatusCode::kOutOfMemory, "no memory to measure how fast it is read");
      std::fill_n(data, own / 8, int64_t{i});
      parts.emplace_back(data, [](int64_t* p) { std::free(p); });
    }
    const int64_t rounds = std::max<int64_t>(kLeastBytes / size, 1);
    const double read_seconds = BestSeconds(*pool, [&](int64_t thread) {
      for (int64_t round = 0; round < rounds; ++round) sink = loops.read(parts[thread].get(), own / 8);
    });
    const double bytes = static_cast<double>(own) * peaks.threads * static_cast<double>(rounds);
    peaks.reads.push_back({size, bytes / read_seconds * 1e-9});
  }
  return peaks;
}

}  // namespace ingot::apps
