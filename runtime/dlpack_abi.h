/* DLPack's structs under our own names, layout-identical to dlpack.h 0.x (ingot_dl_managed_tensor) and 1.x
 * (ingot_dl_managed_tensor_versioned), so that a program may include any dlpack.h beside this header and cast
 * pointers. Field meanings are DLPack's. C11 and C++; includes nothing but stdint.h. */
#ifndef INGOT_RUNTIME_DLPACK_ABI_H_
#define INGOT_RUNTIME_DLPACK_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of DLPack that exported tensors state; any minor version of this major one is accepted. */
#define INGOT_DL_MAJOR_VERSION 1
#define INGOT_DL_MINOR_VERSION 1

/* Values of ingot_dl_device.device_type (DLDeviceType). */
enum {
  INGOT_DL_CPU = 1,
  INGOT_DL_CUDA = 2,
  INGOT_DL_CUDA_HOST = 3,
  INGOT_DL_EXT_DEV = 12, /* the null device */
  INGOT_DL_CUDA_MANAGED = 13
};

/* Bits of ingot_dl_managed_tensor_versioned.flags. */
#define INGOT_DL_FLAG_READ_ONLY (UINT64_C(1) << 0)
#define INGOT_DL_FLAG_IS_COPIED (UINT64_C(1) << 1)
#define INGOT_DL_FLAG_SUBBYTE_PADDED (UINT64_C(1) << 2)

typedef struct ingot_dl_device {
  int32_t device_type;
  int32_t device_id;
} ingot_dl_device;

typedef struct ingot_dl_data_type {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} ingot_dl_data_type;

typedef struct ingot_dl_tensor {
  void* data;
  ingot_dl_device device;
  int32_t ndim;
  ingot_dl_data_type dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; NULL = compact, row-major */
  uint64_t byte_offset;
} ingot_dl_tensor;

typedef struct ingot_dl_managed_tensor {
  ingot_dl_tensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct ingot_dl_managed_tensor* self); /* may be NULL */
} ingot_dl_managed_tensor;

typedef struct ingot_dl_version {
  uint32_t major;
  uint32_t minor;
} ingot_dl_version;

typedef struct ingot_dl_managed_tensor_versioned {
  ingot_dl_version version;
  void* manager_ctx;
  void (*deleter)(struct ingot_dl_managed_tensor_versioned* self); /* may be NULL */
  uint64_t flags;
  ingot_dl_tensor dl_tensor;
} ingot_dl_managed_tensor_versioned;

#ifdef __cplusplus
}
#endif
#endif
