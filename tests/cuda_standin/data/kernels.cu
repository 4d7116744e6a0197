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

// ---- tensor cores by hand, as libraries write them
__device__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ void copy_16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
// c[m, n] = a[m, k] b[k, n], row-major, of float16 with float32 sums: a block makes 32 x 32 by four warps, two stages of
// cp.async ahead. m, n, k are multiples of 32.
extern "C" __global__ void __launch_bounds__(128) mma_matmul(const half* a, const half* b, float* c, int m, int n, int k) {
  __shared__ __align__(16) half sa[2][32][40];
  __shared__ __align__(16) half sb[2][32][40];
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int row0 = blockIdx.y * 32, column0 = blockIdx.x * 32;
  const int warp_row = warp / 2 * 16, warp_column = warp % 2 * 16;
  float sums[2][4] = {};
  const int copy_row = thread / 4, copy_column = thread % 4 * 8;
  auto load = [&](int stage, int k0) {
    copy_16(&sa[stage][copy_row][copy_column], a + (row0 + copy_row) * k + k0 + copy_column);
    copy_16(&sb[stage][copy_row][copy_column], b + (k0 + copy_row) * n + column0 + copy_column);
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  load(0, 0);
  const int steps = k / 32;
  for (int step = 0; step < steps; ++step) {
    const int stage = step % 2;
    if (step + 1 < steps) {
      load(1 - stage, (step + 1) * 32);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    for (int kk = 0; kk < 32; kk += 16) {
      unsigned fa[4], fb[2][2];
      const half* pa = &sa[stage][warp_row + lane % 16][kk + lane / 16 * 8];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(shared_address(pa)) : "memory");
      for (int j = 0; j < 2; ++j) {
        const half* pb = &sb[stage][kk + lane % 16][warp_column + j * 8];
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                     : "=r"(fb[j][0]), "=r"(fb[j][1]) : "r"(shared_address(pb)) : "memory");
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(sums[j][0]), "+f"(sums[j][1]), "+f"(sums[j][2]), "+f"(sums[j][3])
                     : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[j][0]), "r"(fb[j][1]));
      }
    }
    __syncthreads();
  }
  for (int j = 0; j < 2; ++j) {
    for (int i = 0; i < 4; ++i) {
      const int row = row0 + warp_row + lane / 4 + i / 2 * 8, column = column0 + warp_column + j * 8 + lane % 4 * 2 + i % 2;
      if (row < m) c[row * n + column] = sums[j][i];
    }
  }
}
// One warp: c[16, 8] = a[16, 8] b[8, 8] in tf32, and in bfloat16 with a depth of 16, fragments loaded element by element.
extern "C" __global__ void mma_tf32(const float* a, const float* b, float* c) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  const unsigned* ua = reinterpret_cast<const unsigned*>(a);
  const unsigned* ub = reinterpret_cast<const unsigned*>(b);
  float d[4];
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
               : "r"(ua[g * 8 + t]), "r"(ua[(g + 8) * 8 + t]), "r"(ua[g * 8 + t + 4]), "r"(ua[(g + 8) * 8 + t + 4]),
                 "r"(ub[t * 8 + g]), "r"(ub[(t + 4) * 8 + g]), "f"(0.0f));
  c[g * 8 + 2 * t] = d[0], c[g * 8 + 2 * t + 1] = d[1], c[(g + 8) * 8 + 2 * t] = d[2], c[(g + 8) * 8 + 2 * t + 1] = d[3];
}
extern "C" __global__ void mma_bf16(const __nv_bfloat16* a, const __nv_bfloat16* bt, float* c) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  const unsigned* ua = reinterpret_cast<const unsigned*>(a);   // pairs along a row of 16
  const unsigned* ub = reinterpret_cast<const unsigned*>(bt);  // b is transposed: pairs along a column of b
  float d[4];
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
               : "r"(ua[g * 8 + t]), "r"(ua[(g + 8) * 8 + t]), "r"(ua[g * 8 + t + 4]), "r"(ua[(g + 8) * 8 + t + 4]),
                 "r"(ub[g * 8 + t]), "r"(ub[g * 8 + t + 4]), "f"(1.0f));
  c[g * 8 + 2 * t] = d[0], c[g * 8 + 2 * t + 1] = d[1], c[(g + 8) * 8 + 2 * t] = d[2], c[(g + 8) * 8 + 2 * t + 1] = d[3];
}
// y[n, m] = x[m, n] transposed, by tiles of shared memory, with edges.
extern "C" __global__ void transpose(const float* x, float* y, int m, int n) {
  __shared__ float tile[32][33];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (column < n && row + j < m) tile[threadIdx.y + j][threadIdx.x] = x[(row + j) * n + column];
  }
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (column < m && row + j < n) y[(row + j) * m + column] = tile[threadIdx.x][threadIdx.y + j];
  }
}
// A scan of one block: out[i] = x[0] + ... + x[i], by shuffles in a warp and shared memory between warps.
extern "C" __global__ void scan(const int* x, int* out, int n) {
  __shared__ int sums[32];
  const int i = threadIdx.x, lane = i % 32, warp = i / 32;
  int value = i < n ? x[i] : 0;
  for (int o = 1; o < 32; o *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, value, o);
    if (lane >= o) value += other;
  }
  if (lane == 31) sums[warp] = value;
  __syncthreads();
  if (warp == 0) {
    int s = lane < blockDim.x / 32 ? sums[lane] : 0;
    for (int o = 1; o < 32; o *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, s, o);
      if (lane >= o) s += other;
    }
    sums[lane] = s;
  }
  __syncthreads();
  if (warp > 0) value += sums[warp - 1];
  if (i < n) out[i] = value;
}
