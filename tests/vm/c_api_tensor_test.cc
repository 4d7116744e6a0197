#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ingot/ingot.h"

namespace ingot {
namespace {

std::string Take(ingot_status* status) {
  std::string text = status == nullptr ? "ok" : ingot_status_message(status);
  ingot_status_release(status);
  return text;
}

// A managed tensor of another library: float32[2, 3], which counts how often it is deleted.
template <typename Managed>
struct Foreign {
  float data[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[2] = {2, 3};
  int num_deleted = 0;
  Managed managed{};

  Foreign() {
    managed.dl_tensor = {data, {INGOT_DL_CPU, 0}, 2, {2, 32, 1}, shape, nullptr, 0};
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->manager_ctx)->num_deleted; };
  }
};
using Versioned = Foreign<ingot_dl_managed_tensor_versioned>;
using Legacy = Foreign<ingot_dl_managed_tensor>;

TEST_CASE("handles of tensors share memory both ways, and the foreign deleter runs once") {
  Versioned foreign;
  foreign.managed.version = {INGOT_DL_MAJOR_VERSION, 9};
  ingot_tensor* tensor = nullptr;
  REQUIRE(Take(ingot_tensor_from_dlpack(&foreign.managed, &tensor)) == "ok");
  const ingot_dl_tensor* view = ingot_tensor_view(tensor);
  CHECK(view->data == foreign.data);
  CHECK(view->ndim == 2);
  CHECK(view->shape[1] == 3);
  CHECK(view->strides[0] == 3);
  ingot_dl_managed_tensor_versioned* versioned = nullptr;
  ingot_dl_managed_tensor* legacy = nullptr;
  REQUIRE(Take(ingot_tensor_to_dlpack(tensor, &versioned)) == "ok");
  REQUIRE(Take(ingot_tensor_to_legacy_dlpack(tensor, &legacy)) == "ok");
  CHECK(versioned->dl_tensor.data == foreign.data);
  CHECK(legacy->dl_tensor.data == foreign.data);
  ingot_tensor_release(tensor);
  versioned->deleter(versioned);
  CHECK(foreign.num_deleted == 0);
  legacy->deleter(legacy);
  CHECK(foreign.num_deleted == 1);
}

TEST_CASE("the older form of DLPack comes in, and read-only tensors do not go out by it") {
  Legacy old;
  ingot_tensor* tensor = nullptr;
  REQUIRE(Take(ingot_tensor_from_legacy_dlpack(&old.managed, &tensor)) == "ok");
  CHECK(ingot_tensor_view(tensor)->data == old.data);
  ingot_tensor_release(tensor);
  CHECK(old.num_deleted == 1);

  Versioned constant;
  constant.managed.version = {INGOT_DL_MAJOR_VERSION, 0};
  constant.managed.flags = INGOT_DL_FLAG_READ_ONLY;
  REQUIRE(Take(ingot_tensor_from_dlpack(&constant.managed, &tensor)) == "ok");
  ingot_dl_managed_tensor* legacy = nullptr;
  CHECK(Take(ingot_tensor_to_legacy_dlpack(tensor, &legacy)).find("read-only") != std::string::npos);
  CHECK(legacy == nullptr);
  ingot_dl_managed_tensor_versioned* versioned = nullptr;
  REQUIRE(Take(ingot_tensor_to_dlpack(tensor, &versioned)) == "ok");
  CHECK((versioned->flags & INGOT_DL_FLAG_READ_ONLY) != 0);
  versioned->deleter(versioned);
  ingot_tensor_release(tensor);
  CHECK(constant.num_deleted == 1);
}

TEST_CASE("refused tensors are deleted too, and missing arguments are named") {
  Versioned newer;
  newer.managed.version = {INGOT_DL_MAJOR_VERSION + 1, 0};
  ingot_tensor* tensor = nullptr;
  CHECK(Take(ingot_tensor_from_dlpack(&newer.managed, &tensor)) != "ok");
  CHECK(tensor == nullptr);
  CHECK(newer.num_deleted == 1);
  Versioned unwanted;
  unwanted.managed.version = {INGOT_DL_MAJOR_VERSION, 0};
  CHECK(Take(ingot_tensor_from_dlpack(&unwanted.managed, nullptr)) == "the argument \"tensor\" is NULL");
  CHECK(unwanted.num_deleted == 1);
  CHECK(Take(ingot_tensor_from_dlpack(nullptr, &tensor)) == "the argument \"managed\" is NULL");
  ingot_dl_managed_tensor_versioned* versioned = nullptr;
  CHECK(Take(ingot_tensor_to_dlpack(nullptr, &versioned)) == "the argument \"tensor\" is NULL");
  CHECK(ingot_tensor_view(nullptr) == nullptr);
  ingot_tensor_release(nullptr);
}

}  // namespace
}  // namespace ingot
