// The CUDA driver API, opened at run time: declarations of our own (no cuda.h is needed to build) and a table of entry
// points. The driver stays loaded until the last reference goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/ref.h"
#include "runtime/status.h"

namespace ingot {

using CudaResult = int;
using CudaOrdinal = int;
using CudaPointer = uint64_t;
using CudaContext = struct CudaContextObject*;
using CudaStream = struct CudaStreamObject*;
using CudaEvent = struct CudaEventObject*;
using CudaModule = struct CudaModuleObject*;
using CudaFunction = struct CudaFunctionObject*;
using CudaPool = struct CudaPoolObject*;
using CudaGraph = struct CudaGraphObject*;
using CudaGraphExec = struct CudaGraphExecObject*;
using CudaGraphNode = struct CudaGraphNodeObject*;

// CUmemPoolProps.
struct CudaPoolProperties {
  int allocation_type = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED
  int handle_types = 0;
  int location_type = 1;  // CU_MEM_LOCATION_TYPE_DEVICE
  int location_id = 0;
  void* security_attributes = nullptr;
  size_t max_size = 0;
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};

// CUDA_KERNEL_NODE_PARAMS_v1.
struct CudaKernelNode {
  CudaFunction function = nullptr;
  unsigned grid_x = 1, grid_y = 1, grid_z = 1, block_x = 1, block_y = 1, block_z = 1, shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
};

// The values that Ingot names, as in cuda.h.
enum : int {
  kCudaSuccess = 0,
  kCudaInvalidValue = 1,
  kCudaOutOfMemory = 2,
  kCudaNoDevice = 100,
  kCudaInvalidImage = 200,
  kCudaNoBinaryForGpu = 209,
  kCudaInvalidPtx = 218,
  kCudaUnsupportedPtxVersion = 222,
  kCudaNotFound = 500,
  // Attributes of devices, functions and pools.
  kCudaMaxSharedBytes = 97,
  kCudaCapabilityMajor = 75,
  kCudaCapabilityMinor = 76,
  kCudaPoolsSupported = 115,
  kCudaFuncMaxDynamicShared = 8,
  kCudaPoolReleaseThreshold = 4,
  // Options of the compiler in the driver.
  kCudaJitErrorLog = 5,
  kCudaJitErrorLogBytes = 6,
};

// What a call of the driver said.
struct CudaOutcome {
  CudaResult result = kCudaSuccess;
  const char* call = "";
  bool ok() const { return result == kCudaSuccess; }
};
// In functions that return one: ends them with a failure.
#define INGOT_CUDA_TRY(...) \
  if (const ::ingot::CudaOutcome tried{__VA_ARGS__}; !tried.ok()) return tried

class CudaDriver : public RefCounted {
 public:
  // Null path: libcuda.so.1, as the dynamic linker finds it. Not_found without a driver or with one that is too old.
  static Result<Ref<CudaDriver>> Open(const char* path);
  static void Destroy(CudaDriver* driver) { delete driver; }
  ~CudaDriver();

  // The newest CUDA that the driver knows: 12040 is CUDA 12.4.
  int version() const { return version_; }
  std::string VersionText() const;  // "CUDA 12.4"
  // "CUDA_ERROR_INVALID_VALUE (1): invalid argument".
  std::string Explain(CudaResult error) const;
  // True of errors after which the context can do nothing more.
  static bool LosesContext(CudaResult error);

  // Those that not every driver has are null where it has not.
#define INGOT_CUDA_CALL(member, symbol, parameters) CudaResult(*member) parameters = nullptr;
#define INGOT_CUDA_LATER_CALL INGOT_CUDA_CALL
#include "runtime/cuda_driver.def"

 private:
  CudaDriver() = default;
  void* library_ = nullptr;
  int version_ = 0;
};

}  // namespace ingot
