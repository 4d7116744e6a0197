// Finds the driver's entry points by name and refuses drivers without pools of memory.
#include "runtime/cuda_driver.h"

#include <dlfcn.h>

#include <new>
#include <string>

namespace ingot {

Result<Ref<CudaDriver>> CudaDriver::Open(const char* path) {
  auto* driver = new (std::nothrow) CudaDriver();
  if (driver == nullptr) return Status::OutOfMemory();
  Ref<CudaDriver> opened = Ref<CudaDriver>::Adopt(driver);
  if (path == nullptr) path = "libcuda.so.1";
  driver->library_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (driver->library_ == nullptr) {
    const char* why = dlerror();
    return Status(StatusCode::kNotFound, {"cuda: no driver: ", why != nullptr ? why : path});
  }
  const auto find = [&](const char* symbol) { return dlsym(driver->library_, symbol); };
  constexpr int kOldest = 11020;  // CUDA 11.2: pools of memory
  int& version = driver->version_;
#define INGOT_CUDA_CALL(member, symbol, parameters) \
  driver->member = reinterpret_cast<decltype(driver->member)>(find(#symbol));
#define INGOT_CUDA_LATER_CALL INGOT_CUDA_CALL
#include "runtime/cuda_driver.def"
  if (driver->DriverGetVersion == nullptr || driver->DriverGetVersion(&version) != kCudaSuccess) {
    return Status(StatusCode::kNotFound, {"cuda: ", path, " is no CUDA driver"});
  }
  if (version < kOldest) {
    return Status(StatusCode::kNotFound,
                  {"cuda: the driver is one for ", driver->VersionText(), "; CUDA 11.2 or later is needed"});
  }
  const char* missing = nullptr;
#define INGOT_CUDA_CALL(member, symbol, parameters) \
  if (driver->member == nullptr) missing = #symbol;
#define INGOT_CUDA_LATER_CALL(member, symbol, parameters)
#include "runtime/cuda_driver.def"
  if (missing != nullptr) return Status(StatusCode::kNotFound, {"cuda: the driver has no ", missing});
  const CudaResult result = driver->Init(0);
  if (result != kCudaSuccess) return Status(StatusCode::kNotFound, {"cuda: no GPU: ", driver->Explain(result)});
  return opened;
}

CudaDriver::~CudaDriver() {
  if (library_ != nullptr) dlclose(library_);
}

std::string CudaDriver::VersionText() const { return StrCat({"CUDA ", version_ / 1000, ".", version_ % 1000 / 10}); }

std::string CudaDriver::Explain(CudaResult error) const {
  const char *name = nullptr, *text = nullptr;
  if (GetErrorName(error, &name) != kCudaSuccess || name == nullptr) name = "error";
  if (GetErrorString(error, &text) != kCudaSuccess || text == nullptr) text = "unknown to the driver";
  return StrCat({name, " (", error, "): ", text});
}

bool CudaDriver::LosesContext(CudaResult error) {
  switch (error) {
    case 4:    // DEINITIALIZED
    case 201:  // INVALID_CONTEXT
    case 214:  // ECC_UNCORRECTABLE
    case 220:  // NVLINK_UNCORRECTABLE
    case 700:  // ILLEGAL_ADDRESS
    case 702:  // LAUNCH_TIMEOUT
    case 709:  // CONTEXT_IS_DESTROYED
    case 710:  // ASSERT
    case 714:  // HARDWARE_STACK_ERROR
    case 715:  // ILLEGAL_INSTRUCTION
    case 716:  // MISALIGNED_ADDRESS
    case 717:  // INVALID_ADDRESS_SPACE
    case 718:  // INVALID_PC
    case 719:  // LAUNCH_FAILED
      return true;
    default:
      return false;
  }
}

}  // namespace ingot
