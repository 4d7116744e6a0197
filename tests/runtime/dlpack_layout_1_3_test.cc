// Compares our DLPack structs with a dlpack.h of version 1.x, at compile time where the build found one; there
// ingot/dlpack.h has casts of the versioned form.
#include <doctest/doctest.h>

#ifdef INGOT_HAVE_DLPACK1
#include "ingot/dlpack.h"
#include "tests/runtime/dlpack_layout.h"

static_assert(DLPACK_MAJOR_VERSION == INGOT_DL_MAJOR_VERSION);
static_assert(sizeof(ingot_dl_version) == sizeof(DLPackVersion));
static_assert(sizeof(ingot_dl_managed_tensor_versioned) == sizeof(DLManagedTensorVersioned));
INGOT_SAME_FIELD(ingot_dl_managed_tensor_versioned, DLManagedTensorVersioned, version);
INGOT_SAME_FIELD(ingot_dl_managed_tensor_versioned, DLManagedTensorVersioned, manager_ctx);
INGOT_SAME_FIELD(ingot_dl_managed_tensor_versioned, DLManagedTensorVersioned, deleter);
INGOT_SAME_FIELD(ingot_dl_managed_tensor_versioned, DLManagedTensorVersioned, flags);
INGOT_SAME_FIELD(ingot_dl_managed_tensor_versioned, DLManagedTensorVersioned, dl_tensor);
static_assert(DLPACK_FLAG_BITMASK_READ_ONLY == INGOT_DL_FLAG_READ_ONLY);
static_assert(DLPACK_FLAG_BITMASK_IS_COPIED == INGOT_DL_FLAG_IS_COPIED);
static_assert(DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED == INGOT_DL_FLAG_SUBBYTE_PADDED);
static_assert(kDLBool == static_cast<int>(ingot::TypeCode::kBool));
static_assert(kDLFloat8_e3m4 == static_cast<int>(ingot::TypeCode::kFloat8E3M4));
static_assert(kDLFloat8_e8m0fnu == static_cast<int>(ingot::TypeCode::kFloat8E8M0FNU));

TEST_CASE("DLPack 1.x: a versioned tensor goes in and out by casts") {
  double element = 2.5;
  int num_deleted = 0;
  DLManagedTensorVersioned managed{};
  managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed.manager_ctx = &num_deleted;
  managed.deleter = [](DLManagedTensorVersioned* self) { ++*static_cast<int*>(self->manager_ctx); };
  managed.dl_tensor.data = &element;
  managed.dl_tensor.device.device_type = kDLCPU;
  managed.dl_tensor.dtype = {kDLFloat, 64, 1};
  ingot_tensor* tensor = nullptr;
  REQUIRE(ingot_tensor_from_dlpack(ingot_from_dlversioned(&managed), &tensor) == nullptr);
  ingot_dl_managed_tensor_versioned* out = nullptr;
  REQUIRE(ingot_tensor_to_dlpack(tensor, &out) == nullptr);
  ingot_tensor_release(tensor);
  DLManagedTensorVersioned* theirs = ingot_to_dlversioned(out);
  CHECK(theirs->dl_tensor.data == &element);
  CHECK(theirs->dl_tensor.ndim == 0);
  theirs->deleter(theirs);
  CHECK(num_deleted == 1);
}
#else
TEST_CASE("DLPack 1.x layout") { MESSAGE("SKIP: no dlpack.h of version 1.x was found when the tests were configured"); }
#endif
