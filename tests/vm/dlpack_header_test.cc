// ingot/dlpack.h: tensors in the structs of DLPack's own header go in and come out by casts. Here with the system's
// dlpack.h; tests/runtime/dlpack_layout_1_3_test.cc has the versioned form. c_api_header_test.c includes it in C11.
#include "ingot/dlpack.h"

#include <doctest/doctest.h>

#include "tests/vm/c_api_session.h"

namespace ingot {
namespace {

using test::Take;

TEST_CASE("DLPack's own structs go into the C API and come back by casts") {
  float data[6] = {1, 2, 3, 4, 5, 6};
  int64_t shape[2] = {2, 3};
  int num_deleted = 0;
  DLManagedTensor managed{};
  managed.dl_tensor.data = data;
  managed.dl_tensor.device.device_type = kDLCPU;
  managed.dl_tensor.ndim = 2;
  managed.dl_tensor.dtype = {kDLFloat, 32, 1};
  managed.dl_tensor.shape = shape;
  managed.manager_ctx = &num_deleted;
  managed.deleter = [](DLManagedTensor* self) { ++*static_cast<int*>(self->manager_ctx); };

  ingot_tensor* tensor = nullptr;
  REQUIRE(Take(ingot_tensor_from_legacy_dlpack(ingot_from_dlmanaged(&managed), &tensor)) == "ok");
  const DLTensor* view = ingot_to_dltensor(ingot_tensor_view(tensor));
  CHECK(view->data == data);
  CHECK(view->shape[1] == 3);
  CHECK(view->dtype.code == kDLFloat);
  ingot_dl_managed_tensor* out = nullptr;
  REQUIRE(Take(ingot_tensor_to_legacy_dlpack(tensor, &out)) == "ok");
  ingot_tensor_release(tensor);
  DLManagedTensor* theirs = ingot_to_dlmanaged(out);
  CHECK(theirs->dl_tensor.data == data);
  theirs->deleter(theirs);
  CHECK(num_deleted == 1);
}

TEST_CASE("a DLTensor is an argument by a cast") {
  test::Session session(
      std::string("ingot 1\n"
                  "function @copy export (x: float32[3]) -> (y: float32[3]) {\n"
                  "  register r1: float32[3]\n"
                  "  copy r1, r0\n"
                  "  return [r1]\n"
                  "}\n"));
  float data[3] = {1, 2, 3};
  int64_t shape[1] = {3};
  DLTensor x{};
  x.data = data;
  x.device.device_type = kDLCPU;
  x.ndim = 1;
  x.dtype = {kDLFloat, 32, 1};
  x.shape = shape;
  ingot_value argument{INGOT_KIND_TENSOR, {}}, result{};
  argument.as.tensor = ingot_from_dltensor(&x);
  REQUIRE(Take(ingot_invoke(session.context, session.Find("copy"), &argument, 1, &result, 1)) == "ok");
  const DLTensor* y = ingot_to_dltensor(&result.as.owned_tensor->dl_tensor);
  CHECK(y->data != data);
  CHECK(static_cast<const float*>(y->data)[2] == 3);
  ingot_value_clear(&result);
}

}  // namespace
}  // namespace ingot
