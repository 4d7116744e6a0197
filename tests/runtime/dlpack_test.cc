#include "runtime/dlpack.h"

#include <doctest/doctest.h>

#include <functional>
#include <vector>

namespace ingot {
namespace {

// A foreign tensor float32[2, 3] whose deleter counts.
template <typename Managed>
struct Foreign {
  float data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  int64_t shape[9] = {2, 3, 1, 1, 1, 1, 1, 1, 1};
  int64_t strides[2] = {3, 1};
  int deleted = 0;
  Managed managed{};

  Foreign() {
    managed.dl_tensor = {data, {INGOT_DL_CPU, 0}, 2, {2, 32, 1}, shape, nullptr, 0};
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
    if constexpr (requires { managed.version; }) managed.version = {1, 3};
  }
};
using Legacy = Foreign<ingot_dl_managed_tensor>;
using Versioned = Foreign<ingot_dl_managed_tensor_versioned>;

TEST_CASE_TEMPLATE("an imported tensor is taken over and deleted once", F, Legacy, Versioned) {
  F foreign;
  {
    const Tensor tensor = ImportDLPack(&foreign.managed).value();
    CHECK(tensor.TypeToString() == "float32[2, 3]");
    CHECK(tensor.data() == foreign.data);
    const Tensor row = tensor.Slice(0, 1, 2).value();
    CHECK(row.Elements<float>()[0] == 3);
    CHECK(foreign.deleted == 0);
  }
  CHECK(foreign.deleted == 1);
}

TEST_CASE_TEMPLATE("a null deleter is legal", F, Legacy, Versioned) {
  F foreign;
  foreign.managed.deleter = nullptr;
  CHECK(ImportDLPack(&foreign.managed).ok());
  foreign.managed.dl_tensor.ndim = 99;
  CHECK_FALSE(ImportDLPack(&foreign.managed).ok());
}

TEST_CASE("strides, offsets and flags come along") {
  Versioned foreign;
  int64_t strides[] = {1, 2};
  foreign.managed.dl_tensor.strides = strides;
  foreign.managed.dl_tensor.byte_offset = 4;
  foreign.managed.flags = INGOT_DL_FLAG_READ_ONLY;
  const Tensor tensor = ImportDLPack(&foreign.managed).value();
  CHECK(tensor.is_read_only());
  CHECK_FALSE(tensor.is_compact());
  CHECK(tensor.Compact().value().Elements<float>()[1] == 3);
  CHECK(tensor.Compact().value().Elements<float>()[3] == 2);
}

TEST_CASE("lanes make one wide element") {
  Legacy foreign;
  foreign.managed.dl_tensor.dtype.lanes = 4;
  foreign.shape[0] = 1;
  foreign.shape[1] = 2;
  const Tensor tensor = ImportDLPack(&foreign.managed).value();
  CHECK(tensor.TypeToString() == "float32x4[1, 2]");
  CHECK(tensor.size_bytes() == 32);
}

TEST_CASE("what is wrong is refused by name and deleted once") {
  struct Case {
    const char* message;
    std::function<void(Versioned&)> damage;
  };
  const Case cases[] = {
      {"rank 9, expected 0 to 8", [](auto& f) { f.managed.dl_tensor.ndim = 9; }},
      {"rank -1, expected 0 to 8", [](auto& f) { f.managed.dl_tensor.ndim = -1; }},
      {"no shape", [](auto& f) { f.managed.dl_tensor.shape = nullptr; }},
      {"dimension 1 is negative: -3", [](auto& f) { f.shape[1] = -3; }},
      {"the number of elements overflows 64 bits", [](auto& f) { f.shape[0] = f.shape[1] = int64_t{1} << 32; }},
      {"overflows 64 bits", [](auto& f) { f.shape[0] = int64_t{1} << 60; }},
      {"stride 0 is negative: -3; negative strides are not supported",
       [](auto& f) {
         f.strides[0] = -3;
         f.managed.dl_tensor.strides = f.strides;
       }},
      {"reach beyond 64 bits",
       [](auto& f) {
         f.strides[0] = INT64_MAX;
         f.managed.dl_tensor.strides = f.strides;
       }},
      {"no data for float32[2, 3]", [](auto& f) { f.managed.dl_tensor.data = nullptr; }},
      {"byte offset 18446744073709551615 lies beyond", [](auto& f) { f.managed.dl_tensor.byte_offset = ~uint64_t{0}; }},
      {"unsupported device device_type_4", [](auto& f) { f.managed.dl_tensor.device.device_type = 4; }},
      {"code 16 (float6_e3m2fn), 6 bits",
       [](auto& f) {
         f.managed.dl_tensor.dtype = {16, 6, 1};
       }},
      {"code 6, 1 bits, 1 lanes",
       [](auto& f) {
         f.managed.dl_tensor.dtype = {6, 1, 1};
       }},
      {"32 bits, 0 lanes", [](auto& f) { f.managed.dl_tensor.dtype.lanes = 0; }},
      {"strides of the sub-byte type int4",
       [](auto& f) {
         f.managed.dl_tensor.dtype = {0, 4, 1};
         f.strides[0] = 4;
         f.managed.dl_tensor.strides = f.strides;
       }},
      {"padded to bytes",
       [](auto& f) {
         f.managed.dl_tensor.dtype = {0, 4, 1};
         f.managed.flags = INGOT_DL_FLAG_SUBBYTE_PADDED;
       }},
      {"version 99.3, expected 1.x", [](auto& f) { f.managed.version.major = 99; }},
      {"version 0.3, expected 1.x", [](auto& f) { f.managed.version.major = 0; }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.message);
    Versioned foreign;
    c.damage(foreign);
    const Status status = ImportDLPack(&foreign.managed).status();
    CHECK(status.code() == StatusCode::kBadInput);
    CHECK_MESSAGE(status.message().find(c.message) != std::string::npos, status.message());
    CHECK(foreign.deleted == 1);
  }
}

TEST_CASE("rank 0, and empty tensors without data") {
  Legacy scalar;
  scalar.managed.dl_tensor.ndim = 0;
  scalar.managed.dl_tensor.shape = nullptr;
  CHECK(ImportDLPack(&scalar.managed).value().num_elements() == 1);
  Legacy empty;
  empty.shape[0] = 0;
  empty.managed.dl_tensor.data = nullptr;
  empty.managed.dl_tensor.byte_offset = 64;
  CHECK(ImportDLPack(&empty.managed).value().data() == nullptr);
}

TEST_CASE("exported tensors share the storage and import back") {
  Tensor tensor = Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{4, 2}).value();
  tensor.MutableElements<float>()[2] = 5;
  ingot_dl_managed_tensor_versioned* versioned = ExportDLPackVersioned(tensor.Slice(0, 1, 3).value()).value();
  ingot_dl_managed_tensor* legacy = ExportDLPack(tensor).value();
  tensor = Tensor();
  CHECK(versioned->version.major == 1);
  CHECK(versioned->flags == 0);
  CHECK(versioned->dl_tensor.byte_offset == 0);
  CHECK(versioned->dl_tensor.strides[0] == 2);
  const Tensor again = ImportDLPack(versioned).value();
  CHECK(again.Elements<float>()[0] == 5);
  legacy->deleter(legacy);
  CHECK(again.Elements<float>()[0] == 5);
}

TEST_CASE("a read-only tensor is exported with its flag, and not as legacy") {
  const Tensor tensor = Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{1}).value().AsReadOnly().value();
  ingot_dl_managed_tensor_versioned* versioned = ExportDLPackVersioned(tensor).value();
  CHECK(versioned->flags == INGOT_DL_FLAG_READ_ONLY);
  CHECK(ImportDLPack(versioned).value().is_read_only());
  CHECK(ExportDLPack(tensor).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a borrowed tensor leaves its owner alone") {
  Legacy foreign;
  CHECK(BorrowDLTensor(foreign.managed.dl_tensor).value().byte_offset() == 0);
  CHECK(foreign.deleted == 0);
}

}  // namespace
}  // namespace ingot
