#include "runtime/status.h"

#include <doctest/doctest.h>

namespace ingot {
namespace {

Result<int> Half(int x) {
  if (x % 2 != 0) return Status(StatusCode::kInvalidArgument, "odd");
  return x / 2;
}

Result<int> Quarter(int x) {
  INGOT_ASSIGN_OR_RETURN(int half, Half(x));
  return Half(half);
}

TEST_CASE("a Result carries a value or the first failure") {
  CHECK(Quarter(8).value() == 2);
  CHECK(Quarter(6).status().code() == StatusCode::kInvalidArgument);
  CHECK(Quarter(6).status().ToString() == "invalid_argument: odd");
}

TEST_CASE("context is put in front of a message, and out of memory stays as it is") {
  CHECK(Status(StatusCode::kBadInput, "rank 3").WithContext("image").message() == "image: rank 3");
  CHECK(Status::OutOfMemory().WithContext("x").message() == "out of memory");
}

TEST_CASE("statuses copy and move") {
  Status a(StatusCode::kCorrupt, "x");
  Status b = a;
  CHECK(b.message() == "x");
  Status c = std::move(a);
  CHECK(c.code() == StatusCode::kCorrupt);
  c = Status();
  CHECK(c.ok());
}

}  // namespace
}  // namespace ingot
