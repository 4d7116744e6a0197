#include "runtime/suggest.h"

#include <doctest/doctest.h>

namespace ingot {
namespace {

constexpr std::string_view kNames[] = {"batch", "sequence", "n"};

TEST_CASE("the nearest name is suggested, a far one is not") {
  CHECK(NearestName("bacth", kNames) == "batch");
  CHECK(NearestName("sequnece", kNames) == "sequence");
  CHECK(NearestName("image", kNames) == "");
  CHECK(NearestName("m", kNames) == "");  // nothing in common
  CHECK(NearestName("", kNames) == "");
  CHECK(DidYouMean("batc", kNames) == "; did you mean \"batch\"?");
  CHECK(DidYouMean(std::string(1000, 'x'), kNames) == "");
}

}  // namespace
}  // namespace ingot
