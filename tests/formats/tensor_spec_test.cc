#include "formats/tensor_spec.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/file.h"
#include "formats/tensor_files.h"
#include "formats/tensor_print.h"

namespace ingot::formats {
namespace {

using Dims = std::vector<int64_t>;

Result<Tensor> Make(std::string_view spec, uint64_t seed = 0) { return MakeTensorFromSpec(spec, nullptr, seed); }
std::string Text(std::string_view spec) { return TensorToText(Make(spec).value()).value(); }

TEST_CASE("a type and its elements") {
  CHECK(Make("4xf32=1 2 3 4").value().TypeToString() == "float32[4]");
  CHECK(Text("2x2xi64=1,2 3,-4") == "[[ 1  2]\n [ 3 -4]]");
  CHECK(Text("2x2xf16=[[1 2][3 0.5]]") == "[[1.  2. ]\n [3.  0.5]]");
  CHECK(Text("3xbf16=0.5") == "[0.5 0.5 0.5]");
  CHECK(Text("f32=-1e-3") == "-0.001");
  CHECK(Text("2xi1=true 0") == "[ True False]");
  CHECK(Text("2xui8=255 0") == "[255   0]");
  CHECK(Text("3xint4=-8 7 0") == "[-8  7  0]");
  CHECK(Text("2xfloat64=nan -inf") == "[ nan -inf]");
  CHECK(Text("0xf32=") == "[]");
  CHECK(Make("2x0xf32=").value().TypeToString() == "float32[2, 0]");
  CHECK(Text("2xfloat8_e4m3fn=1 448") == "[1.0e+00 4.5e+02]");
}

TEST_CASE("what is wrong is refused, with the text") {
  CHECK(Make("4xf32=1 2 3").status().message() == "float32[4] has 4 elements, got 3");
  CHECK(Make("2xi8=1 128").status().message() == "\"128\" is no int8");
  CHECK(Make("4xflot32=1").status().message() ==
        "\"4xflot32=1\": unknown data type \"flot32\"; did you mean \"float32\"?");
  for (const char* spec : {"",
                           "4",
                           "4xf32",
                           "xf32=1",
                           "4x=1",
                           "-1xf32=1",
                           "99999999999999999999xf32=1",
                           "f32=x",
                           "2xui8=-1 0",
                           "2xi1=2 0",
                           "2xf32=1 2x",
                           "i64=9223372036854775808",
                           "random",
                           "randint",
                           "randint:1",
                           "randint:2,1",
                           "randint:1,1",
                           "randint:1,2,3",
                           "4xf32=randint:5",
                           "1x1x1x1x1x1x1x1x1xf32=1",
                           "4294967296x4294967296xf32=1",
                           "complex64=1"}) {
    CAPTURE(std::string(spec));
    const Status status = Make(spec).status();
    CHECK_FALSE(status.ok());
    CHECK((status.code() == StatusCode::kBadInput || status.code() == StatusCode::kInvalidArgument));
  }
  CHECK_FALSE(Make("rand").ok());
}

TEST_CASE("generators take the expected type, or state one") {
  const Dims dims = {3, 2};
  ExpectedTensor expected{DataType::Float(32), dims};
  CHECK(TensorToText(MakeTensorFromSpec("zeros", &expected, 0).value()).value() == "[[0. 0.]\n [0. 0.]\n [0. 0.]]");
  CHECK(TensorToText(MakeTensorFromSpec("ones", &expected, 0).value()).value() == "[[1. 1.]\n [1. 1.]\n [1. 1.]]");
  CHECK(Text("2xi1=ones") == "[ True  True]");
  CHECK(Make("4x8xf32=rand").value().TypeToString() == "float32[4, 8]");
  expected.dtype = DataType::Int(8);
  CHECK_FALSE(MakeTensorFromSpec("randint:0,1000", &expected, 0).ok());
}

TEST_CASE("random numbers stay in range and depend on the seed alone") {
  const Tensor a = Make("1000xf32=rand", 7).value();
  const Tensor b = Make("1000xf32=rand", 7).value();
  CHECK(std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin()));
  const Tensor c = Make("1000xf32=rand", 8).value();
  CHECK_FALSE(std::equal(a.bytes().begin(), a.bytes().end(), c.bytes().begin()));
  const auto [low, high] = std::minmax_element(a.Elements<float>().begin(), a.Elements<float>().end());
  CHECK(*low >= -1);
  CHECK(*low < -0.9);
  CHECK(*high < 1);
  CHECK(*high > 0.9);
  const Tensor n = Make("1000xi64=randint:-3,4", 1).value();
  const std::set<int64_t> values(n.Elements<int64_t>().begin(), n.Elements<int64_t>().end());
  CHECK(values == std::set<int64_t>{-3, -2, -1, 0, 1, 2, 3});
  const Tensor i = Make("1000xi32=rand", 1).value();
  CHECK(*std::max_element(i.Elements<int32_t>().begin(), i.Elements<int32_t>().end()) == 9);
  CHECK(Text("2xf32=rand") == "[ 0.7666216  -0.13694406]");
}

TEST_CASE("files: raw, single and keyed") {
  const std::string base = "/tmp/ingot-spec-test-" + std::to_string(getpid());
  const std::string raw = base + ".bin", npy = base + ".npy", npz = base + ".npz";
  REQUIRE(WriteFileAtomically(raw, AsBytes(std::string_view("\1\0\2\0", 4))).ok());
  const std::vector<NamedTensor> one = {{"x", Make("2xf32=1 2").value()}};
  const std::vector<NamedTensor> two = {{"image", Make("2xf32=1 2").value()}, {"onnx::a:b", Make("i8=5").value()}};
  REQUIRE(WriteTensorFile(npy, one).ok());
  REQUIRE(WriteTensorFile(npz, two).ok());
  CHECK(Text("2xi16=@" + raw) == "[1 2]");
  CHECK_FALSE(Make("3xi16=@" + raw).ok());
  CHECK(Text("@" + npy) == "[1. 2.]");
  CHECK(Text("@" + npz + ":image") == "[1. 2.]");
  CHECK(Text("@" + npz + ":onnx::a:b") == "5");
  CHECK(Make("@" + npz + ":imgae").status().message() == npz + ": no tensor \"imgae\"; did you mean \"image\"?");
  CHECK(Make("@" + npz).status().message() == npz + ": expected one tensor or a name, got 2 tensors: image, onnx::a:b");
  CHECK(Make("@" + base + ".txt").status().code() == StatusCode::kBadInput);
  CHECK(Make("@" + base + "none.npy").status().code() == StatusCode::kIo);
  for (const std::string& path : {raw, npy, npz}) unlink(path.c_str());
}

}  // namespace
}  // namespace ingot::formats
