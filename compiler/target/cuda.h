// CUDA architectures: the records of "cuda:" targets and what launches on them may ask for. The numbers are NVIDIA's
// (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"); nothing is asked of a device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/target/target.h"
#include "runtime/status.h"

namespace ingot {

inline constexpr int64_t kCudaWarpThreads = 32;
inline constexpr int64_t kCudaMaxBlockThreads = 1024;
// The note of a schedule on a loop that reduces: the threads of a block, each of which has one of its iterations, may
// reduce in any order (transform/tensor/cross_threads).
inline constexpr const char* kCudaCrossThreads = "cross_threads";
// Its value: whether threads beside each other have values of one element, or one value of neighbouring elements each.
inline constexpr int64_t kCudaNeighbouringValues = 1, kCudaNeighbouringElements = 2;
// The key of a lowered attribute around the store of a value that the lanes of a warp have, all of them at once: each of
// them stores what the values of its group of lanes give together (transform/tensor/lowered.h).
inline constexpr const char* kCudaWarpReduce = "warp_reduce";
// Notes on loops that become instructions of their own (schedule/device_loops.h says what each loop must be). The value
// of a copy that may be on its way until the next loop over threads with kCudaAwaitCopies has ended is kCudaIsAwaited;
// nothing reads what it stores, or stores there, before.
inline constexpr const char* kCudaWarpProduct = "cuda_warp_product";
inline constexpr const char* kCudaChunkCopy = "cuda_chunk_copy";
inline constexpr int64_t kCudaIsAwaited = 2;
inline constexpr const char* kCudaAwaitCopies = "cuda_await_copies";
// What every architecture gives a block of threads: without being asked, and if asked.
inline constexpr int64_t kCudaUsualSharedBytes = 48 << 10, kCudaMostSharedBytes = 99 << 10;

struct CudaArch {
  std::string_view name;     // "sm_80"
  std::string_view ptx;      // LLVM's feature: the lowest version of PTX that knows the architecture
  int64_t max_shared_bytes;  // that a block may ask for
  // It has instructions that no other one has (wgmma), and its code runs on this compute capability alone. Code of the
  // others runs on all later ones, too.
  bool is_exact = false;
};

// The row of a record's architecture; null: the record is none of CUDA.
const CudaArch* FindCudaArch(const Target& target);
// The shared memory that a block of code for the record's architecture may ask for wherever the code runs.
int64_t CudaSharedBytes(const Target& target);
// "sm_80,sm_90": one record each, in the order of the table, each architecture once. Errors suggest the nearest name.
Result<TargetFamily> ParseCuda(std::string_view architectures);
std::vector<std::string> ListCudaArchs();

}  // namespace ingot
