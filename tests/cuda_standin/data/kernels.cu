#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void block_sum(const float* x, float* out, int n) {
  __shared__ float partial[256];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}
extern "C" __global__ void histogram(const int* x, int* bins, int n) {
  __shared__ int local_bins[16];
  if (threadIdx.x < 16) local_bins[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&local_bins[x[i] & 15], 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local_bins[threadIdx.x]);
}
extern "C" __global__ void warp_softmax(const float* x, float* y, int columns) {
  const float* row = x + blockIdx.x * columns;
  float m = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += 32) m = fmaxf(m, row[i]);
  for (int o = 16; o; o /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, o));
  float s = 0;
  for (int i = threadIdx.x; i < columns; i += 32) s += expf(row[i] - m);
  for (int o = 16; o; o /= 2) s += __shfl_xor_sync(0xffffffffu, s, o);
  for (int i = threadIdx.x; i < columns; i += 32) y[blockIdx.x * columns + i] = expf(row[i] - m) / s;
}
extern "C" __global__ void wmma_matmul(const half* a, const half* b, float* c, int n) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  for (int k = 0; k < n; k += 16) {
    wmma::load_matrix_sync(fa, a + blockIdx.y * 16 * n + k, n);
    wmma::load_matrix_sync(fb, b + k * n + blockIdx.x * 16, n);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  wmma::store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, fc, n, wmma::mem_row_major);
}
extern "C" __global__ void compact(const int* x, int* y, int* count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool keep = i < n && x[i] > 0;
  unsigned mask = __ballot_sync(0xffffffffu, keep);
  int lane = threadIdx.x & 31;
  int base = 0;
  if (lane == 0) base = atomicAdd(count, __popc(mask));
  base = __shfl_sync(0xffffffffu, base, 0);
  if (keep) y[base + __popc(mask & ((1u << lane) - 1))] = x[i];
}
__device__ __noinline__ float poly(float x, int n) { float r = 1; for (int i = 0; i < n; i++) r = r * x + i; return r; }
extern "C" __global__ void calls(float* x, int n) {
  int i = threadIdx.x; 
  if (i < n) { if (i & 1) x[i] = poly(x[i], i % 5); else x[i] = sinf(x[i]) + powf(fabsf(x[i]), 1.5f) + __half2float(__float2half(x[i])) ; }
}
__constant__ float table[4] = {1.f, 2.f, 3.f, 4.f};
extern "C" __global__ void doubles(const double* x, double* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  double local[4];
  for (int k = 0; k < 4; ++k) local[k] = x[(i + k) % n];
  double r = 0;
  for (int k = 0; k < n % 5; ++k) r += local[(i + k) & 3] * table[k & 3];
  switch (i % 7) { case 0: r = exp(r); break; case 1: r = sqrt(fabs(r)); break; case 2: r = 1 / r; break; case 3: r= floor(r); break; case 4: r = (long long)r; break; case 5: r = -r; break; default: r = fmod(r, 3.0);}
  if (i < n) y[i] = r;
}
