#include "runtime/tensor.h"

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

namespace ingot {
namespace {

using Dims = std::vector<int64_t>;

Tensor Iota(Dims dims) {
  Tensor tensor = Tensor::Allocate(DataType::Int(32), dims).value();
  auto elements = tensor.MutableElements<int32_t>();
  std::iota(elements.begin(), elements.end(), 0);
  return tensor;
}

std::vector<int32_t> Values(const Tensor& tensor) {
  const Tensor compact = tensor.Compact().value();
  const auto elements = compact.Elements<int32_t>();
  return {elements.begin(), elements.end()};
}

TEST_CASE("what packed elements do not fill of the last byte is zero") {
  for (int i = 0; i < 10; ++i) {
    Tensor before = Tensor::Allocate(DataType::UInt(8), Dims{64}).value();
    for (uint8_t& byte : before.MutableElements<uint8_t>()) byte = 0xff;
    before = Tensor();
    const Tensor packed = Tensor::Allocate(DataType::Int(4), Dims{127}).value();
    CHECK(packed.bytes().size() == 64);
    for (const uint8_t byte : packed.bytes()) REQUIRE(byte == 0);
  }
}

TEST_CASE("element counts are checked in any order of dims") {
  CHECK(CountElements(Dims{}).value() == 1);
  CHECK(CountElements(Dims{2, 0, 3}).value() == 0);
  CHECK_FALSE(CountElements(Dims{-1}).ok());
  CHECK_FALSE(CountElements(Dims{-2, -3}).ok());
  CHECK_FALSE(CountElements(Dims{int64_t{1} << 32, int64_t{1} << 31}).ok());
  CHECK_FALSE(CountElements(Dims{0, int64_t{1} << 32, int64_t{1} << 32}).ok());
  CHECK_FALSE(CountElements(Dims(9, 1)).ok());
}

TEST_CASE("a new tensor is compact and aligned, of any rank, empty ones too") {
  const Tensor tensor = Iota({2, 3});
  CHECK(tensor.TypeToString() == "int32[2, 3]");
  CHECK(tensor.view().IsAligned(kTensorAlignment));
  CHECK(tensor.size_bytes() == 24);
  CHECK(Dims(tensor.strides().begin(), tensor.strides().end()) == Dims{3, 1});
  CHECK(Iota({}).num_elements() == 1);
  CHECK(Iota({0, 3}).num_elements() == 0);
  CHECK(Tensor::Allocate(DataType::Int(8), Dims{int64_t{1} << 60}).status().code() == StatusCode::kOutOfMemory);
  CHECK_FALSE(Tensor::Allocate(DataType::Float(64), Dims{int64_t{1} << 61}).ok());
}

TEST_CASE("views share the storage") {
  const Tensor tensor = Iota({3, 4});
  const Tensor slice = tensor.Slice(1, 1, 3).value();
  CHECK(slice.storage() == tensor.storage());
  CHECK_FALSE(slice.is_compact());
  CHECK(slice.byte_offset() == 4);
  CHECK(Values(slice) == std::vector<int32_t>{1, 2, 5, 6, 9, 10});
  const Tensor rows = tensor.Slice(0, 1, 3).value();
  CHECK(rows.is_compact());
  CHECK(rows.data() == tensor.Elements<int32_t>().data() + 4);
  CHECK(Values(tensor.Permute(std::vector<int>{1, 0}).value()) ==
        std::vector<int32_t>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
  CHECK(Values(slice.Permute(std::vector<int>{1, 0}).value()) == std::vector<int32_t>{1, 5, 9, 2, 6, 10});
  CHECK(tensor.Reshape(Dims{2, 6}).value().dim(1) == 6);
  CHECK(tensor.Slice(0, 3, 3).value().num_elements() == 0);
  CHECK(tensor.AsReadOnly().value().Slice(0, 0, 1).value().is_read_only());
}

TEST_CASE("views refuse what they cannot express") {
  const Tensor tensor = Iota({3, 4});
  CHECK_FALSE(tensor.Slice(1, 1, 3).value().Reshape(Dims{6}).ok());
  CHECK_FALSE(tensor.Reshape(Dims{13}).ok());
  CHECK_FALSE(tensor.Slice(2, 0, 1).ok());
  CHECK_FALSE(tensor.Slice(0, 2, 4).ok());
  CHECK_FALSE(tensor.Slice(0, -1, 2).ok());
  CHECK_FALSE(tensor.Slice(0, 2, 1).ok());
  CHECK_FALSE(tensor.Permute(std::vector<int>{0, 0}).ok());
  CHECK_FALSE(tensor.Permute(std::vector<int>{0}).ok());
  CHECK_FALSE(tensor.Permute(std::vector<int>{0, 2}).ok());
}

TEST_CASE("a tensor must fit its storage") {
  const Ref<Storage> storage = Storage::AllocateHost(64).value();
  const DataType f32 = DataType::Float(32);
  CHECK(Tensor::InStorage(storage, f32, Dims{16}).ok());
  CHECK_FALSE(Tensor::InStorage(storage, f32, Dims{17}).ok());
  CHECK(Tensor::InStorage(storage, f32, Dims{15}, 4).ok());
  CHECK_FALSE(Tensor::InStorage(storage, f32, Dims{16}, 4).ok());
  CHECK_FALSE(Tensor::InStorage(storage, f32, Dims{1}, -4).ok());
  CHECK_FALSE(Tensor::InStorage(storage, f32, Dims{1}, 65).ok());
  const int64_t strides[] = {5, 1};
  CHECK(Tensor::InStorage(storage, f32, Dims{3, 5}, 4, strides).ok());
  CHECK_FALSE(Tensor::InStorage(storage, f32, Dims{4, 2}, 0, strides).ok());
  const int64_t huge[] = {INT64_MAX, 1};
  CHECK_FALSE(Tensor::InStorage(storage, f32, Dims{4, 2}, 0, huge).ok());
  CHECK(Tensor::InStorage(storage, f32, Dims{1, 2}, 0, huge).value().is_compact());
  CHECK(Tensor::InStorage(storage, f32, Dims{0, 2}, 0, huge).value().is_compact());
}

TEST_CASE("copying goes by elements between any layouts") {
  const Tensor source = Iota({2, 3, 4});
  const Tensor target = Tensor::Allocate(DataType::Int(32), Dims{4, 2, 3}).value();
  const Tensor permuted = target.Permute(std::vector<int>{1, 2, 0}).value();
  REQUIRE(CopyElements(source.view(), permuted.view()).ok());
  CHECK(Values(permuted) == Values(source));
  CHECK(target.Elements<int32_t>()[1] == 4);  // [0, 0, 1] is source[0, 1, 0]
  CHECK_FALSE(CopyElements(source.view(), target.view()).ok());
  const int64_t repeat[] = {0, 1};
  const Tensor broadcast = Tensor::InStorage(source.storage(), DataType::Int(32), Dims{2, 3}, 4, repeat).value();
  CHECK(Values(broadcast) == std::vector<int32_t>{1, 2, 3, 1, 2, 3});
}

TEST_CASE("storage is given back once, when the last tensor goes") {
  int freed = 0;
  const auto deleter = [](void* context, void*, int64_t) { ++*static_cast<int*>(context); };
  float data[4] = {};
  {
    Tensor a =
        Tensor::InStorage(Storage::Wrap(data, 16, DeviceId{}, deleter, &freed).value(), DataType::Float(32), Dims{4})
            .value();
    Tensor b = a.Slice(0, 1, 2).value();
    a = Tensor();
    CHECK(freed == 0);
  }
  CHECK(freed == 1);
}

TEST_CASE("device names print and parse") {
  CHECK(DeviceId::Parse("cuda:1").value() == DeviceId{DeviceKind::kCuda, 1});
  CHECK(DeviceId::Parse("cpu").value().ToString() == "cpu");
  CHECK(DeviceId{DeviceKind::kNull, 2}.ToString() == "null:2");
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", ":0"}) {
    CAPTURE(text);
    CHECK_FALSE(DeviceId::Parse(text).ok());
  }
}

}  // namespace
}  // namespace ingot
