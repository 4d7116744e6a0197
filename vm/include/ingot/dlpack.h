/* For programs that use ingot.h together with DLPack's own header: casts between its structs and Ingot's, which have
 * the same layout under other names. Includes <dlpack/dlpack.h>, of whichever version the program uses; ingot.h itself
 * needs none. */
#ifndef INGOT_DLPACK_H_
#define INGOT_DLPACK_H_

#include <dlpack/dlpack.h>

#include "ingot/ingot.h"

#ifdef __cplusplus
#define INGOT_SAME_SIZE(a, b) static_assert(sizeof(a) == sizeof(b), "another layout of DLPack")
#else
#define INGOT_SAME_SIZE(a, b) _Static_assert(sizeof(a) == sizeof(b), "another layout of DLPack")
#endif

INGOT_SAME_SIZE(DLTensor, ingot_dl_tensor);
INGOT_SAME_SIZE(DLManagedTensor, ingot_dl_managed_tensor);
static inline const ingot_dl_tensor* ingot_from_dltensor(const DLTensor* tensor) {
  return (const ingot_dl_tensor*)tensor;
}
static inline const DLTensor* ingot_to_dltensor(const ingot_dl_tensor* tensor) { return (const DLTensor*)tensor; }
static inline ingot_dl_managed_tensor* ingot_from_dlmanaged(DLManagedTensor* managed) {
  return (ingot_dl_managed_tensor*)managed;
}
static inline DLManagedTensor* ingot_to_dlmanaged(ingot_dl_managed_tensor* managed) {
  return (DLManagedTensor*)managed;
}

#ifdef DLPACK_MAJOR_VERSION /* 1.x has the versioned form */
INGOT_SAME_SIZE(DLManagedTensorVersioned, ingot_dl_managed_tensor_versioned);
static inline ingot_dl_managed_tensor_versioned* ingot_from_dlversioned(DLManagedTensorVersioned* managed) {
  return (ingot_dl_managed_tensor_versioned*)managed;
}
static inline DLManagedTensorVersioned* ingot_to_dlversioned(ingot_dl_managed_tensor_versioned* managed) {
  return (DLManagedTensorVersioned*)managed;
}
#endif
#undef INGOT_SAME_SIZE

#endif
