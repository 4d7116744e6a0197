#include "runtime/text.h"

#include <doctest/doctest.h>

#include <limits>

#include "runtime/status.h"

namespace ingot {
namespace {

TEST_CASE("pieces of every kind, one after the other") {
  const std::string name = "image";
  CHECK(StrCat({"axis ", 3, " of \"", name, '"', std::string_view(" and more").substr(0, 4)}) ==
        "axis 3 of \"image\" and");
  CHECK(StrCat({}).empty());
  CHECK(StrCat({std::string("a\0b", 3)}).size() == 3);
}

TEST_CASE("integers of every width keep their sign and value") {
  CHECK(StrCat({std::numeric_limits<int64_t>::min()}) == "-9223372036854775808");
  CHECK(StrCat({std::numeric_limits<uint64_t>::max()}) == "18446744073709551615");
  CHECK(StrCat({uint8_t{65}, int8_t{-1}, uint32_t{0}}) == "65-10");
}

TEST_CASE("a list is a piece") {
  const auto inside = [](Text what) { return Status(StatusCode::kCorrupt, {"function \"f\": ", what}); };
  CHECK(inside({"r", 7, " is not written"}).message() == "function \"f\": r7 is not written");
  CHECK(inside("empty").message() == "function \"f\": empty");
}

TEST_CASE("text is put behind what is there") {
  std::string text = "[1";
  StrAppend(text, {", ", 2});
  CHECK(text == "[1, 2");
}

}  // namespace
}  // namespace ingot
